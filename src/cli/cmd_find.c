// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln find`: where the components of a CUDA toolkit are, and their
// versions.
//
// Creates no runtime and opens no library.
#include <stdio.h>
#include <string.h>

#include "cli/cli_buffer.h"
#include "cli/cli_command.h"
#include "cli/cli_error.h"
#include "cli/cli_piece_report.h"
#include "cli/cli_pieces.h"
#include "cli/cli_report.h"
#include "kiln/api.h"
#include "kiln/locate.h"
#include "kiln/locate_catalog.h"
#include "kiln/toolkit.h"

// What is looked for, and the results. one-thread
typedef struct find_t {
  const kilni_cli_call_t* call;
  kilni_cli_error_t* error;
  kilni_cli_where_t where;
  kiln_toolkit_t* toolkit;
  kiln_locate_set_t* set;     // with --set
  kilni_cli_buffer_t wanted;  // kilni_cli_piece_t
  kilni_cli_buffer_t found;   // kiln_toolkit_item_t*
} find_t;

static bool cmd_find_is_on(const find_t* find, const char* option) {
  return kilni_cli_option_value(find->call, option) != NULL;
}

static size_t cmd_find_item_count(const find_t* find) {
  return find->found.size / sizeof(kiln_toolkit_item_t*);
}

static kiln_toolkit_item_t* item_at(const find_t* find, size_t index) {
  return ((kiln_toolkit_item_t**)(void*)find->found.data)[index];
}

static bool cmd_find_is_found(const kiln_toolkit_item_t* item) {
  return kiln_locate_item_found(kiln_toolkit_item_located(item));
}

// ---- What is looked for ----

static bool cmd_find_want(find_t* find, const kilni_cli_piece_t* piece) {
  return kilni_cli_buffer_add(&find->wanted, piece, sizeof(*piece),
                              find->error);
}

// The whole catalog, or one kind of it.
static bool want_all(find_t* find, uint32_t kind) {
  uint32_t count = kiln_locate_entry_count();
  for (uint32_t i = 0; i < count; i++) {
    const kiln_locate_entry_t* entry = kiln_locate_entry(i);
    kilni_cli_piece_t piece = {kiln_locate_entry_kind(entry), ""};
    if (kind != 0 && piece.kind != kind) continue;
    (void)snprintf(piece.name, sizeof(piece.name), "%s",
                   kiln_locate_entry_name(entry));
    if (!cmd_find_want(find, &piece)) return false;
  }
  return true;
}

static bool cmd_find_read_wants(find_t* find) {
  const kilni_cli_call_t* call = find->call;
  uint32_t kind = 0;
  size_t at = 0;
  if (call->operand_count != 0 && strchr(call->operands[0], ':') == NULL) {
    kiln_string_view_t word = {call->operands[0], strlen(call->operands[0])};
    kind = kiln_locate_kind_parse(word);
    if (kind == 0) {
      return kilni_cli_fail(
          find->error, KILN_STATUS_INVALID_ARGUMENT,
          "begin with lib, header, static, bitcode, binary or stub, or write "
          "KIND:NAME for each",
          "no component is of the kind \"%s\"", call->operands[0]);
    }
    at = 1;
  }
  if (cmd_find_is_on(find, "all") && at == call->operand_count) {
    return want_all(find, kind);
  }
  if (cmd_find_is_on(find, "all")) {
    return kilni_cli_fail(find->error, KILN_STATUS_INVALID_ARGUMENT,
                          "omit --all or the names",
                          "--all cannot be combined with a name");
  }
  if (at == call->operand_count) {
    return kilni_cli_fail(find->error, KILN_STATUS_INVALID_ARGUMENT,
                          "write \"kiln find lib nvrtc\", for example, or "
                          "\"kiln find --all\"",
                          "the name of a component is missing");
  }
  for (; at < call->operand_count; at++) {
    kilni_cli_piece_t piece;
    const char* text = call->operands[at];
    // No component has the name of a kind: the word applies to the names after
    // it.
    const uint32_t next =
        kiln_locate_kind_parse((kiln_string_view_t){text, strlen(text)});
    if (next != 0 && at + 1 < call->operand_count) {
      kind = next;
      continue;
    }
    if (!kilni_cli_piece_read(&piece, text, strlen(text), kind, find->error) ||
        !cmd_find_want(find, &piece)) {
      return false;
    }
  }
  return true;
}

// ---- Finding ----

static bool cmd_find_keep(find_t* find, kiln_toolkit_item_t* item) {
  if (kilni_cli_buffer_add(&find->found, &item, sizeof(item), find->error)) {
    return true;
  }
  kiln_toolkit_item_release(item);
  return false;
}

static bool cmd_find_make_context(find_t* find) {
  if (!kilni_cli_where_read(&find->where, find->call, find->error)) {
    return false;
  }
  kiln_toolkit_options_t options = kiln_toolkit_options_default();
  options.locate = &find->where.options;
  options.mode = KILN_COMPAT_MODE_OFF;  // nothing is taken into use
  // A line of text shows only the evidence for the version.
  if (!cmd_find_is_on(find, "json")) options.verify = KILN_SWITCH_OFF;
  if (cmd_find_is_on(find, "verify")) options.verify = KILN_SWITCH_ON;
  return kilni_cli_check(find->error,
                         kiln_toolkit_create(&options, &find->toolkit));
}

static bool find_each(find_t* find, const kilni_cli_piece_t* wanted,
                      size_t count) {
  for (size_t i = 0; i < count; i++) {
    kiln_toolkit_item_t* item = NULL;
    if (!kilni_cli_check(find->error,
                         kiln_toolkit_resolve(find->toolkit, wanted[i].kind,
                                              wanted[i].name, &item)) ||
        !cmd_find_keep(find, item)) {
      return false;
    }
  }
  return true;
}

static bool cmd_find_find_set(find_t* find, const kilni_cli_piece_t* wanted,
                              size_t count) {
  kilni_cli_buffer_t wants = {0};
  bool ok = kilni_cli_buffer_resize(&wants, count * sizeof(kiln_locate_want_t),
                                    find->error);
  kiln_locate_want_t* list = (kiln_locate_want_t*)(void*)wants.data;
  for (size_t i = 0; i < count && ok; i++) {
    list[i].kind = wanted[i].kind;
    list[i].name = wanted[i].name;
  }
  ok = ok &&
       kilni_cli_check(find->error,
                       kiln_locate_find_set(kiln_toolkit_locate(find->toolkit),
                                            list, (uint32_t)count, &find->set));
  kilni_cli_buffer_deinit(&wants);
  for (uint32_t i = 0; ok && i < kiln_locate_set_count(find->set); i++) {
    kiln_toolkit_item_t* item = NULL;
    ok = kilni_cli_check(
             find->error,
             kiln_toolkit_resolve_located(
                 find->toolkit, kiln_locate_set_item(find->set, i), &item)) &&
         cmd_find_keep(find, item);
  }
  return ok;
}

static bool find_all_wants(find_t* find) {
  const kilni_cli_piece_t* wanted =
      (const kilni_cli_piece_t*)(const void*)find->wanted.data;
  size_t count = find->wanted.size / sizeof(*wanted);
  return cmd_find_is_on(find, "set") ? cmd_find_find_set(find, wanted, count)
                                     : find_each(find, wanted, count);
}

// ---- Showing ----

static json_t* set_json(const kiln_locate_set_t* set) {
  json_t* tried = json_array();
  for (uint32_t i = 0; i < kiln_locate_set_tried_count(set); i++) {
    const kiln_locate_tried_t* t = kiln_locate_set_tried(set, i);
    (void)json_array_append_new(
        tried, json_pack("{s:o,s:o}", "path", kilni_cli_text_json(t->path),
                         "why", kilni_cli_text_json(t->why)));
  }
  uint32_t scope = kiln_locate_set_scope(set);
  return json_pack(
      "{s:o,s:o,s:I,s:o}", "root",
      kilni_cli_text_json(kiln_locate_set_root(set)), "scope",
      kilni_cli_text_json(scope == 0 ? "" : kiln_locate_scope_name(scope)),
      "missing", (json_int_t)kiln_locate_set_missing_count(set), "tried",
      tried);
}

static bool cmd_find_show_json(find_t* find) {
  json_t* items = json_array();
  for (size_t i = 0; i < cmd_find_item_count(find); i++) {
    (void)json_array_append_new(items, kilni_cli_item_json(item_at(find, i)));
  }
  json_t* object = json_pack("{s:o}", "items", items);
  if (find->set != NULL) {
    (void)json_object_set_new(object, "set", set_json(find->set));
  }
  return kilni_cli_json_write(find->call->results, object, find->error);
}

static void cmd_find_show_lines(find_t* find) {
  kilni_cli_columns_t columns = {0};
  bool trail = cmd_find_is_on(find, "trail");
  size_t missing = 0;
  for (size_t i = 0; i < cmd_find_item_count(find); i++) {
    kilni_cli_columns_fit(&columns, item_at(find, i));
  }
  for (size_t i = 0; i < cmd_find_item_count(find); i++) {
    const kiln_toolkit_item_t* item = item_at(find, i);
    if (cmd_find_is_found(item) || trail) {
      kilni_cli_item_print(find->call->results, &columns, item);
    }
    if (trail) kilni_cli_trail_print(find->call->results, item);
    if (!cmd_find_is_found(item)) missing++;
  }
  if (cmd_find_is_on(find, "all") && !trail && missing != 0) {
    kilni_cli_note("%zu of %zu were not found; --trail or --json shows them",
                   missing, cmd_find_item_count(find));
  }
}

// What is missing, as the error; all but the last are printed here.
static bool cmd_find_fail_missing(find_t* find) {
  kilni_cli_error_t* error = find->error;
  if (find->set != NULL) {
    return kilni_cli_check(error, kiln_locate_set_require(find->set));
  }
  bool any = false;
  for (size_t i = 0; i < cmd_find_item_count(find); i++) {
    const kiln_toolkit_item_t* item = item_at(find, i);
    if (cmd_find_is_found(item)) continue;
    if (any) (void)kilni_cli_error_report(find->call->results, false, error);
    (void)kilni_cli_check(
        error, kiln_locate_item_require(kiln_toolkit_item_located(item)));
    any = true;
  }
  return !any;
}

static bool cmd_find_show(find_t* find) {
  bool missing = false;
  for (size_t i = 0; i < cmd_find_item_count(find); i++) {
    if (!cmd_find_is_found(item_at(find, i))) missing = true;
  }
  if (cmd_find_is_on(find, "all")) missing = false;  // the list is the work
  if (find->call->json) {
    if (!cmd_find_show_json(find)) return false;
    return !missing || kilni_cli_tell(find->error, KILN_STATUS_NOT_FOUND);
  }
  cmd_find_show_lines(find);
  if (!kilni_cli_results_flush(find->call->results, find->error)) return false;
  return !missing || cmd_find_fail_missing(find);
}

static bool run_find(const kilni_cli_call_t* call, kilni_cli_error_t* error) {
  find_t find = {.call = call, .error = error};
  bool ok = cmd_find_read_wants(&find) && cmd_find_make_context(&find) &&
            find_all_wants(&find) && cmd_find_show(&find);
  for (size_t i = 0; i < cmd_find_item_count(&find); i++) {
    kiln_toolkit_item_release(item_at(&find, i));
  }
  kiln_locate_set_release(find.set);
  kiln_toolkit_release(find.toolkit);
  kilni_cli_where_deinit(&find.where);
  kilni_cli_buffer_deinit(&find.wanted);
  kilni_cli_buffer_deinit(&find.found);
  return ok;
}

static const kilni_cli_option_t kOptions[] = {
    {"all", NULL, "Look for everything in the catalog.", false, NULL},
    {"set", NULL,
     "Take all of them from one place and one CUDA major "
     "version.",
     false, NULL},
    KILNI_CLI_WHERE_OPTIONS,
    {"trail", NULL, "Show every place that was searched, and the evidence.",
     false, NULL},
    {"json", NULL, "Write the result, or the error, as JSON.", false, NULL},
    {"help", NULL, "Print this help.", false, NULL},
};

const kilni_cli_command_t kilni_cli_command_find = {
    "find",
    "KIND NAME...",
    "Find the components of a CUDA toolkit and their versions.",
    "KIND is lib, header, static, bitcode, binary or stub; NAME is a name in "
    "the catalog, e.g. nvrtc. A KIND among the names applies to the names "
    "after it; KIND:NAME applies to one. Each line shows kind, name, CUDA "
    "version (\"?\" if unknown), path and the scope that it was found in; for "
    "headers, the path is the folder for -I.\nNothing is loaded and no "
    "program is run. The exit code is 3 if a component is not found; with "
    "--all it is 0.",
    kOptions,
    sizeof(kOptions) / sizeof(kOptions[0]),
    0,
    KILNI_CLI_MAX_PIECES,
    "lib header static bitcode binary stub",
    "kiln find lib nvrtc nvJitLink",
    run_find,
};
