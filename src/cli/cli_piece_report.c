// SPDX-License-Identifier: Apache-2.0
//
// cli: components that were found, as JSON and as lines.
#include "cli/cli_error.h"
#include "cli/cli_piece_report.h"
#include "cli/cli_pieces.h"
#include "cli/cli_report.h"
#include "cli/cli_trail.h"
#include "kiln/compat.h"
#include "kiln/locate.h"
#include "kiln/locate_catalog.h"
#include "kiln/toolkit.h"

#include <stdio.h>
#include <string.h>

#define MAX_PATH_COLUMN 72

json_t* kilni_cli_text_json(const char* text) {
  char clean[8192];
  if (text == NULL || text[0] == 0) return json_null();
  kilni_cli_copy_text(clean, sizeof(clean), text);
  return json_string(clean);
}

static json_t* piece_report_line_json(uint32_t line) {
  char text[32];
  kilni_cli_line_text(line, text);
  return kilni_cli_text_json(text);
}

static json_t* evidence_json(const kiln_toolkit_item_t* item) {
  json_t* list = json_array();
  for (uint32_t i = 0; i < kiln_toolkit_item_evidence_count(item); i++) {
    const kiln_compat_evidence_t* e = kiln_toolkit_item_evidence(item, i);
    (void)json_array_append_new(
        list,
        json_pack("{s:s,s:o,s:o}", "source", kiln_compat_source_word(e->source),
                  "version", piece_report_line_json(e->line), "text",
                  kilni_cli_text_json(e->text)));
  }
  return list;
}

// The evidence for the component's own version.
static json_t* release_source_json(const kiln_toolkit_item_t* item) {
  if (kiln_toolkit_item_release_text(item)[0] == 0) return json_null();
  return json_pack(
      "{s:s,s:o}", "source", kiln_toolkit_item_release_source(item), "text",
      kilni_cli_text_json(kiln_toolkit_item_release_evidence(item)));
}

json_t* kilni_cli_tried_json(const kiln_locate_tried_t* tried, uint32_t count) {
  json_t* list = json_array();
  kilni_cli_trail_t trail;
  kilni_cli_trail_init(&trail, tried, count);
  const kiln_locate_tried_t* t;
  while ((t = kilni_cli_trail_next(&trail)) != NULL) {
    (void)json_array_append_new(
        list, json_pack("{s:o,s:o}", "path", kilni_cli_text_json(t->path),
                        "why", kilni_cli_text_json(t->why)));
  }
  kilni_cli_trail_deinit(&trail);
  return list;
}

static json_t* warnings_json(const kiln_locate_item_t* located) {
  json_t* list = json_array();
  for (uint32_t i = 0; i < kiln_locate_item_warning_count(located); i++) {
    (void)json_array_append_new(
        list, kilni_cli_text_json(kiln_locate_item_warning(located, i)));
  }
  return list;
}

json_t* kilni_cli_item_json(const kiln_toolkit_item_t* item) {
  kiln_locate_item_t* located = kiln_toolkit_item_located(item);
  const kiln_locate_entry_t* entry = kiln_locate_item_entry(located);
  bool found = kiln_locate_item_found(located);
  const char* scope =
      found ? kiln_locate_scope_name(kiln_locate_item_scope(located)) : "";
  return json_pack(
      "{s:s,s:s,s:s,s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "kind",
      kiln_locate_kind_name(kiln_locate_entry_kind(entry)), "name",
      kiln_locate_entry_name(entry), "class",
      kiln_locate_class_name(kiln_locate_entry_class(entry)), "found", found,
      "path", kilni_cli_text_json(kiln_locate_item_path(located)), "real_path",
      kilni_cli_text_json(kiln_locate_item_real_path(located)), "scope",
      kilni_cli_text_json(scope), "root",
      kilni_cli_text_json(kiln_locate_item_root(located)), "via",
      kilni_cli_text_json(kiln_locate_item_via(located)), "version",
      piece_report_line_json(kiln_toolkit_item_line(item)), "release",
      kilni_cli_text_json(kiln_toolkit_item_release_text(item)),
      "release_source", release_source_json(item), "evidence",
      evidence_json(item), "warnings", warnings_json(located), "tried",
      kilni_cli_tried_json(kiln_locate_item_tried(located, 0),
                           kiln_locate_item_tried_count(located)));
}

json_t* kilni_cli_finding_json(const kiln_compat_finding_t* f) {
  json_t* parties = json_array();
  for (uint32_t i = 0; i < f->party_count; i++) {
    (void)json_array_append_new(parties,
                                kilni_cli_text_json(f->parties[i].item));
  }
  return json_pack("{s:s,s:s,s:s,s:b,s:o,s:o,s:o}", "rule",
                   kiln_compat_rule_word(f->rule), "use",
                   kiln_compat_use_word(f->use), "verdict",
                   kiln_compat_verdict_word(f->verdict), "counts", f->counts,
                   "items", parties, "message", kilni_cli_text_json(f->message),
                   "fix", kilni_cli_text_json(f->fix));
}

// ---- Lines ----

static const char* piece_report_version_of(const kiln_toolkit_item_t* item,
                                           char text[32]) {
  kilni_cli_line_text(kiln_toolkit_item_line(item), text);
  if (text[0] != 0) return text;
  const char* release = kiln_toolkit_item_release_text(item);
  return release[0] != 0 ? release : "?";
}

static int width(int at_least, const char* text, int at_most) {
  size_t size = strlen(text);
  if (size > (size_t)at_most) return at_most;
  return (int)size > at_least ? (int)size : at_least;
}

void kilni_cli_columns_fit(kilni_cli_columns_t* columns,
                           const kiln_toolkit_item_t* item) {
  kiln_locate_item_t* located = kiln_toolkit_item_located(item);
  char text[32];
  if (!kiln_locate_item_found(located)) return;
  columns->name =
      width(columns->name,
            kiln_locate_entry_name(kiln_locate_item_entry(located)), 32);
  columns->version =
      width(columns->version, piece_report_version_of(item, text), 16);
  columns->path =
      width(columns->path, kiln_locate_item_path(located), MAX_PATH_COLUMN);
}

void kilni_cli_item_print(FILE* out, const kilni_cli_columns_t* columns,
                          const kiln_toolkit_item_t* item) {
  kiln_locate_item_t* located = kiln_toolkit_item_located(item);
  const kiln_locate_entry_t* entry = kiln_locate_item_entry(located);
  const char* kind = kiln_locate_kind_name(kiln_locate_entry_kind(entry));
  char text[32];
  char path[8192];
  if (!kiln_locate_item_found(located)) {
    (void)fprintf(out, "%-7s  %-*s  not found\n", kind, columns->name,
                  kiln_locate_entry_name(entry));
    return;
  }
  const char* via = kiln_locate_item_via(located);
  const char* scope = kiln_locate_scope_name(kiln_locate_item_scope(located));
  bool more = via[0] != 0 && strcmp(via, scope) != 0;
  kilni_cli_copy_text(path, sizeof(path), kiln_locate_item_path(located));
  (void)fprintf(out, "%-7s  %-*s  %-*s  %-*s  %s%s%s\n", kind, columns->name,
                kiln_locate_entry_name(entry), columns->version,
                piece_report_version_of(item, text), columns->path, path, scope,
                more ? ": " : "", more ? via : "");
  for (uint32_t i = 0; i < kiln_locate_item_warning_count(located); i++) {
    kilni_cli_note("%s", kiln_locate_item_warning(located, i));
  }
}

void kilni_cli_trail_print(FILE* out, const kiln_toolkit_item_t* item) {
  kiln_locate_item_t* located = kiln_toolkit_item_located(item);
  char text[32];
  char clean[8192];
  for (uint32_t i = 0; i < kiln_toolkit_item_evidence_count(item); i++) {
    const kiln_compat_evidence_t* e = kiln_toolkit_item_evidence(item, i);
    kilni_cli_line_text(e->line, text);
    kilni_cli_copy_text(clean, sizeof(clean), e->text == NULL ? "" : e->text);
    (void)fprintf(out, "    %s gives %s: %s\n",
                  kiln_compat_source_word(e->source), text, clean);
  }
  if (kiln_toolkit_item_release_text(item)[0] != 0) {
    kilni_cli_copy_text(clean, sizeof(clean),
                        kiln_toolkit_item_release_evidence(item));
    (void)fprintf(out, "    %s gives release %s: %s\n",
                  kiln_toolkit_item_release_source(item),
                  kiln_toolkit_item_release_text(item), clean);
  }
  const char* real = kiln_locate_item_real_path(located);
  if (strcmp(real, kiln_locate_item_path(located)) != 0) {
    kilni_cli_copy_text(clean, sizeof(clean), real);
    (void)fprintf(out, "    leads to %s\n", clean);
  }
  kilni_cli_trail_t trail;
  kilni_cli_trail_init(&trail, kiln_locate_item_tried(located, 0),
                       kiln_locate_item_tried_count(located));
  const kiln_locate_tried_t* t;
  while ((t = kilni_cli_trail_next(&trail)) != NULL) {
    kilni_cli_copy_text(clean, sizeof(clean), t->path);
    (void)fprintf(out, "    tried %s: %s\n", clean, t->why);
  }
  kilni_cli_trail_deinit(&trail);
}
