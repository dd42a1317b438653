// SPDX-License-Identifier: Apache-2.0
//
// cli: the facts as JSON.
#include <inttypes.h>
#include <string.h>

#include "cli/cli_error.h"
#include "cli/cli_piece_report.h"
#include "cli/doctor_report.h"
#include "kiln/version.h"

// A string that may contain invalid UTF-8.
static json_t* doctor_json_text_json(const char* text) {
  char clean[4096];
  if (text == NULL) return json_null();
  kilni_cli_copy_text(clean, sizeof(clean), text);
  return json_string(clean);
}

static void doctor_json_version_text(uint32_t version, char out[32]) {
  (void)snprintf(out, 32, "%" PRIu32 ".%" PRIu32, version / 1000,
                 version % 1000 / 10);
}

static json_t* version_json(uint32_t version) {
  char text[32];
  doctor_json_version_text(version, text);
  return version == 0 ? json_null() : json_string(text);
}

static json_t* maybe(const char* text) {
  return text == NULL || text[0] == 0 ? json_null()
                                      : doctor_json_text_json(text);
}

static json_t* doctor_json_driver_json(const kiln_probe_t* probe) {
  const kiln_probe_driver_t* d = kiln_probe_driver(probe);
  return json_pack("{s:b,s:b,s:o,s:o,s:o,s:o,s:o,s:o}", "found", d->found != 0,
                   "works", d->works != 0, "version", version_json(d->version),
                   "release", maybe(d->release), "path", maybe(d->path), "why",
                   maybe(d->why), "real_path", maybe(d->real_path),
                   "library_release", maybe(d->library_release));
}

// The facts that the driver reported; an unknown one is never 0.
static json_t* attributes_json(const kiln_probe_device_t* device) {
  json_t* object = json_object();
  for (uint32_t i = 0; i < kiln_probe_attribute_count(); i++) {
    if (device->known[i] == 0) continue;
    (void)json_object_set_new(object, kiln_probe_attribute_name(i),
                              json_integer(device->attributes[i]));
  }
  return object;
}

static json_t* devices_json(const kiln_probe_t* probe) {
  json_t* list = json_array();
  for (uint32_t i = 0; i < kiln_probe_device_count(probe); i++) {
    const kiln_probe_device_t* d = kiln_probe_device(probe, i);
    char compute[32];
    (void)snprintf(compute, sizeof(compute), "%" PRIu32 ".%" PRIu32,
                   d->compute_major, d->compute_minor);
    (void)json_array_append_new(
        list, json_pack("{s:s,s:s,s:o,s:s,s:I,s:I,s:o,s:o,s:o}", "name",
                        d->name, "kind", "cuda", "model",
                        doctor_json_text_json(d->model), "compute", compute,
                        "multiprocessors", (json_int_t)d->multiprocessors,
                        "memory_bytes", (json_int_t)d->memory_bytes, "uuid",
                        doctor_json_text_json(d->uuid), "address",
                        doctor_json_text_json(d->address), "attributes",
                        attributes_json(d)));
  }
  const kiln_probe_soft_t* soft = kiln_probe_soft(probe);
  (void)json_array_append_new(
      list,
      json_pack("{s:s,s:s,s:o,s:o,s:s,s:I,s:b,s:I}", "name", "soft", "kind",
                "soft", "lanes", doctor_json_text_json(soft->lanes),
                "lanes_have", doctor_json_text_json(soft->lanes_have), "wide",
                soft->wide, "workers", (json_int_t)soft->workers, "page_check",
                soft->page_check != 0, "seed", (json_int_t)soft->seed));
  return list;
}

// The words of a text, as a list.
static json_t* doctor_json_words_json(const char* text) {
  json_t* list = json_array();
  while (*text != 0) {
    size_t size = strcspn(text, " ");
    (void)json_array_append_new(list, json_stringn(text, size));
    text += size + (text[size] != 0);
  }
  return list;
}

static json_t* toolkits_json(const kiln_probe_t* probe) {
  json_t* list = json_array();
  for (uint32_t i = 0; i < kiln_probe_toolkit_count(probe); i++) {
    const kiln_probe_toolkit_t* t = kiln_probe_toolkit(probe, i);
    (void)json_array_append_new(
        list, json_pack("{s:o,s:o,s:o,s:o,s:o,s:I,s:o,s:o}", "root",
                        doctor_json_text_json(t->root), "include_dir",
                        maybe(t->include_dir), "version", maybe(t->version),
                        "scope", doctor_json_text_json(t->scope), "line",
                        version_json(t->line), "pieces",
                        (json_int_t)t->piece_count, "lines", maybe(t->lines),
                        "has", doctor_json_words_json(t->has)));
  }
  return list;
}

static json_t* copies_json(const kiln_probe_piece_t* piece) {
  json_t* list = json_array();
  for (uint32_t i = 0; piece != NULL && i < piece->copy_count; i++) {
    const kiln_probe_copy_t* c = &piece->copies[i];
    (void)json_array_append_new(
        list,
        json_pack("{s:o,s:o,s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "path",
                  doctor_json_text_json(c->path), "real_path",
                  maybe(c->real_path), "scope", c->scope, "root",
                  maybe(c->root), "via", maybe(c->via), "version",
                  version_json(c->line), "release", maybe(c->version), "source",
                  maybe(c->source), "evidence", maybe(c->evidence)));
  }
  return list;
}

static json_t* libraries_json(const kiln_probe_t* probe, bool trail) {
  json_t* list = json_array();
  for (uint32_t i = 0; i < kiln_probe_library_count(probe); i++) {
    const kiln_probe_library_t* l = kiln_probe_library(probe, i);
    uint32_t count = trail ? l->tried_count : 0;
    (void)json_array_append_new(
        list, json_pack("{s:s,s:b,s:o,s:o,s:o,s:o,s:o}", "name", l->name,
                        "found", l->found != 0, "path", maybe(l->path), "scope",
                        maybe(l->scope), "version", version_json(l->version),
                        "tried", kilni_cli_tried_json(l->tried, count),
                        "copies", copies_json(l->piece)));
  }
  return list;
}

// Components other than libraries: headers, programs, bitcode ...
static json_t* others_json(const kiln_probe_t* probe,
                           kilni_cli_doctor_view_t view) {
  json_t* list = json_array();
  for (uint32_t i = 0; i < kiln_probe_piece_count(probe); i++) {
    const kiln_probe_piece_t* p = kiln_probe_piece(probe, i);
    if (kiln_locate_entry_kind(p->entry) == KILN_LOCATE_KIND_LIB) continue;
    if (p->copy_count == 0 && !view.all) continue;
    uint32_t count = p->located != NULL && view.trail
                         ? kiln_locate_item_tried_count(p->located)
                         : 0;
    (void)json_array_append_new(
        list,
        json_pack("{s:s,s:s,s:b,s:o,s:o}", "kind", p->kind, "name", p->name,
                  "found", p->copy_count != 0, "copies", copies_json(p),
                  "tried",
                  kilni_cli_tried_json(
                      count == 0 ? NULL : kiln_locate_item_tried(p->located, 0),
                      count)));
  }
  return list;
}

static json_t* system_json(const kiln_probe_t* probe) {
  const kiln_probe_system_t* s = kiln_probe_system(probe);
  return json_pack("{s:o,s:o,s:s,s:b,s:b}", "name", maybe(s->name), "kernel",
                   maybe(s->kernel), "machine", s->machine, "wsl",
                   s->is_wsl != 0, "container", s->is_container != 0);
}

static json_t* cache_json(const kiln_probe_t* probe) {
  const kiln_probe_cache_t* c = kiln_probe_cache(probe);
  return json_pack("{s:o,s:b,s:b,s:b,s:I,s:I,s:I,s:b}", "path", maybe(c->path),
                   "exists", c->exists != 0, "writable", c->writable != 0,
                   "disabled", c->disabled != 0, "bytes", (json_int_t)c->bytes,
                   "limit", (json_int_t)c->limit, "files", (json_int_t)c->files,
                   "complete", c->complete != 0);
}

static json_t* store_json(const kiln_probe_t* probe) {
  const kiln_probe_store_t* s = kiln_probe_store(probe);
  if (s == NULL) return json_null();
  json_int_t limit = s->limit > INT64_MAX ? INT64_MAX : (json_int_t)s->limit;
  return json_pack("{s:o,s:b,s:b,s:o,s:I,s:I,s:I}", "path", maybe(s->path),
                   "exists", s->exists != 0, "on", s->switched != 0, "problem",
                   maybe(s->problem), "entries", (json_int_t)s->entries,
                   "bytes", (json_int_t)s->bytes, "limit", limit);
}

uint32_t kilni_cli_doctor_verdict(const kiln_compat_report_t* report,
                                  uint32_t use) {
  uint32_t worst = KILN_COMPAT_VERDICT_COMPATIBLE;
  if (use != KILN_COMPAT_USE_ANY &&
      kiln_compat_report_judged_count(report, use, NULL) == 0) {
    return 0;
  }
  for (uint32_t i = 0; i < kiln_compat_report_finding_count(report); i++) {
    const kiln_compat_finding_t* f = kiln_compat_report_finding(report, i);
    if (f->use == use && f->verdict > worst) worst = f->verdict;
  }
  return worst;
}

// Verdicts by use; null without a search, and for a use that could not be
// judged here.
static json_t* fits_json(const kiln_probe_t* probe) {
  const kiln_compat_report_t* report = kiln_probe_report(probe);
  if (report == NULL) return json_null();
  json_t* object = json_object();
  for (uint32_t use = KILN_COMPAT_USE_ANY; use <= KILN_COMPAT_USE_NVVM; use++) {
    uint32_t verdict = kilni_cli_doctor_verdict(report, use);
    (void)json_object_set_new(
        object, kiln_compat_use_word(use),
        verdict == 0 ? json_null()
                     : json_string(kiln_compat_verdict_word(verdict)));
  }
  return object;
}

static json_t* environment_json(const kiln_probe_t* probe) {
  json_t* list = json_array();
  for (uint32_t i = 0; i < kiln_probe_variable_count(probe); i++) {
    const kiln_probe_variable_t* v = kiln_probe_variable(probe, i);
    (void)json_array_append_new(
        list, json_pack("{s:s,s:o,s:s,s:o,s:o}", "name", v->name, "value",
                        doctor_json_text_json(v->value), "type", v->type,
                        "default", doctor_json_text_json(v->fallback), "text",
                        doctor_json_text_json(v->text)));
  }
  return list;
}

static json_t* problems_json(const kiln_probe_t* probe) {
  json_t* list = json_array();
  for (uint32_t i = 0; i < kiln_probe_problem_count(probe); i++) {
    const kiln_probe_problem_t* p = kiln_probe_problem(probe, i);
    (void)json_array_append_new(
        list,
        json_pack("{s:s,s:s,s:o,s:o}", "id", p->id, "severity",
                  kiln_probe_severity_name(p->severity), "message",
                  doctor_json_text_json(p->message), "fix", maybe(p->fix)));
  }
  return list;
}

// How many problems there are of each severity.
static json_t* counts_json(const kiln_probe_t* probe) {
  json_int_t counts[KILN_PROBE_SEVERITY_ERROR + 1] = {0};
  for (uint32_t i = 0; i < kiln_probe_problem_count(probe); i++) {
    counts[kiln_probe_problem(probe, i)->severity]++;
  }
  return json_pack("{s:I,s:I,s:I}", "errors", counts[KILN_PROBE_SEVERITY_ERROR],
                   "warnings", counts[KILN_PROBE_SEVERITY_WARNING], "notes",
                   counts[KILN_PROBE_SEVERITY_NOTE]);
}

json_t* kilni_cli_doctor_json(const kiln_probe_t* probe,
                              kilni_cli_doctor_view_t view) {
  return json_pack(
      "{s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "kiln",
      kiln_version_string(), "counts", counts_json(probe), "system",
      system_json(probe), "driver", doctor_json_driver_json(probe), "devices",
      devices_json(probe), "telemetry", kilni_cli_now_json(view.watch),
      "toolkits", toolkits_json(probe), "libraries",
      libraries_json(probe, view.trail), "others", others_json(probe, view),
      "fits", fits_json(probe), "cache", store_json(probe), "jit_cache",
      cache_json(probe), "environment", environment_json(probe), "problems",
      problems_json(probe));
}
