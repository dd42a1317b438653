// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln check`: whether components of a CUDA toolkit are compatible with
// each other and with the driver.
#include <stdio.h>
#include <string.h>

#include "cli/cli_buffer.h"
#include "cli/cli_command.h"
#include "cli/cli_error.h"
#include "cli/cli_piece_report.h"
#include "cli/cli_pieces.h"
#include "cli/cli_report.h"
#include "kiln/api.h"
#include "kiln/compat.h"
#include "kiln/locate.h"
#include "kiln/locate_catalog.h"
#include "kiln/status.h"
#include "kiln/toolkit.h"

// What is checked, and the results. one-thread
typedef struct check_t {
  const kilni_cli_call_t* call;
  kilni_cli_error_t* error;
  kilni_cli_where_t where;
  kiln_compat_driver_t driver;
  kiln_toolkit_t* toolkit;
  kiln_compat_report_t* report;
  kilni_cli_buffer_t wanted;  // kilni_cli_piece_t
  kilni_cli_buffer_t uses;    // use_t
  kilni_cli_buffer_t found;   // kiln_toolkit_item_t*
} check_t;

// A pipeline; components are identified by their index in `wanted`, since the
// list may move as it grows. thread-compatible
typedef struct use_t {
  uint32_t artifact;
  size_t producer;
  size_t consumer;
} use_t;

static kilni_cli_piece_t* pieces(const check_t* check) {
  return (kilni_cli_piece_t*)(void*)check->wanted.data;
}

static size_t piece_count(const check_t* check) {
  return check->wanted.size / sizeof(kilni_cli_piece_t);
}

static kiln_toolkit_item_t** items(const check_t* check) {
  return (kiln_toolkit_item_t**)(void*)check->found.data;
}

static size_t cmd_check_item_count(const check_t* check) {
  return check->found.size / sizeof(kiln_toolkit_item_t*);
}

static bool cmd_check_is_found(const kiln_toolkit_item_t* item) {
  return kiln_locate_item_found(kiln_toolkit_item_located(item));
}

// ---- What is checked ----

// The index of a component in `wanted`; each is added once.
static bool cmd_check_want(check_t* check, const kilni_cli_piece_t* piece,
                           size_t* out_index) {
  size_t count = piece_count(check);
  for (*out_index = 0; *out_index < count; ++*out_index) {
    const kilni_cli_piece_t* other = &pieces(check)[*out_index];
    if (other->kind == piece->kind && strcmp(other->name, piece->name) == 0) {
      return true;
    }
  }
  return kilni_cli_buffer_add(&check->wanted, piece, sizeof(*piece),
                              check->error);
}

static bool read_end(check_t* check, const char* text, size_t size,
                     size_t* out_index) {
  kilni_cli_piece_t piece;
  // The driver is its library, and is always present.
  if (size == 6 && memcmp(text, "driver", 6) == 0) {
    *out_index = SIZE_MAX;
    return true;
  }
  if (!kilni_cli_piece_read(&piece, text, size, 0, check->error)) return false;
  if (piece.kind == KILN_LOCATE_KIND_LIB && strcmp(piece.name, "cuda") == 0) {
    *out_index = SIZE_MAX;
    return true;
  }
  return cmd_check_want(check, &piece, out_index);
}

// "lib:nvrtc>lib:nvJitLink:ltoir"
static bool cmd_check_read_use(check_t* check, const char* text,
                               const char* arrow) {
  const char* last = strrchr(arrow, ':');
  use_t use = {0, 0, 0};
  // The consumer contains a colon, unless it is the driver.
  bool whole = last != NULL && last != arrow + 1 &&
               (memchr(arrow, ':', (size_t)(last - arrow)) != NULL ||
                strncmp(arrow, ">driver:", 8) == 0);
  if (!whole) {
    return kilni_cli_fail(check->error, KILN_STATUS_INVALID_ARGUMENT,
                          "write PRODUCER>CONSUMER:ARTIFACT, e.g. "
                          "\"lib:nvrtc>lib:nvJitLink:ltoir\"",
                          "\"%s\" is not a pipeline", text);
  }
  return kilni_cli_check(check->error,
                         kiln_compat_artifact_parse(last + 1, &use.artifact)) &&
         read_end(check, text, (size_t)(arrow - text), &use.producer) &&
         read_end(check, arrow + 1, (size_t)(last - arrow - 1),
                  &use.consumer) &&
         kilni_cli_buffer_add(&check->uses, &use, sizeof(use), check->error);
}

static bool cmd_check_read_operands(check_t* check) {
  const kilni_cli_call_t* call = check->call;
  for (size_t i = 0; i < call->operand_count; i++) {
    const char* text = call->operands[i];
    const char* arrow = strchr(text, '>');
    kilni_cli_piece_t piece;
    size_t index = 0;
    bool ok = arrow != NULL ? cmd_check_read_use(check, text, arrow)
                            : kilni_cli_piece_read(&piece, text, strlen(text),
                                                   0, check->error) &&
                                  cmd_check_want(check, &piece, &index);
    if (!ok) return false;
  }
  return true;
}

// ---- How it is checked ----

static bool cmd_check_make_context(check_t* check) {
  kiln_toolkit_options_t options = kiln_toolkit_options_default();
  const char* driver = kilni_cli_option_value(check->call, "driver");
  if (!kilni_cli_where_read(&check->where, check->call, check->error) ||
      !kilni_cli_mode_read(check->call, &options.mode, check->error)) {
    return false;
  }
  if (driver != NULL &&
      !kilni_cli_check(check->error,
                       kiln_compat_driver_parse(driver, &check->driver))) {
    return false;
  }
  options.locate = &check->where.options;
  options.default_mode = KILN_COMPAT_MODE_STRICT;
  options.ctk_version = kilni_cli_option_value(check->call, "ctk-version");
  if (driver != NULL) options.driver = &check->driver;
  if (kilni_cli_option_value(check->call, "forward-compat") != NULL) {
    options.forward_compat = KILN_SWITCH_ON;
  }
  if (kilni_cli_option_value(check->call, "verify") != NULL) {
    options.verify = KILN_SWITCH_ON;
  }
  return kilni_cli_check(check->error,
                         kiln_toolkit_create(&options, &check->toolkit));
}

static bool find_items(check_t* check) {
  for (size_t i = 0; i < piece_count(check); i++) {
    kiln_toolkit_item_t* item = NULL;
    const kilni_cli_piece_t* piece = &pieces(check)[i];
    if (!kilni_cli_check(check->error,
                         kiln_toolkit_resolve(check->toolkit, piece->kind,
                                              piece->name, &item))) {
      return false;
    }
    if (!kilni_cli_buffer_add(&check->found, &item, sizeof(item),
                              check->error)) {
      kiln_toolkit_item_release(item);
      return false;
    }
  }
  return true;
}

static void take_end(const check_t* check, size_t index, uint32_t* out_kind,
                     const char** out_name) {
  *out_kind = KILN_COMPAT_KIND_LIB;
  *out_name = "cuda";
  if (index == SIZE_MAX) return;
  *out_kind = pieces(check)[index].kind;
  *out_name = pieces(check)[index].name;
}

static bool cmd_check_ask(check_t* check) {
  size_t count = check->uses.size / sizeof(use_t);
  const use_t* given = (const use_t*)(const void*)check->uses.data;
  kilni_cli_buffer_t uses = {0}, places = {0};
  bool ok =
      kilni_cli_buffer_resize(&uses, count * sizeof(kiln_compat_use_t),
                              check->error) &&
      kilni_cli_buffer_resize(&places, count * sizeof(void*), check->error);
  kiln_compat_use_t* list = (kiln_compat_use_t*)(void*)uses.data;
  const kiln_compat_use_t** at = (const kiln_compat_use_t**)(void*)places.data;
  for (size_t i = 0; ok && i < count; i++) {
    list[i] = kiln_compat_use_default();
    list[i].artifact = given[i].artifact;
    take_end(check, given[i].producer, &list[i].producer_kind,
             &list[i].producer);
    take_end(check, given[i].consumer, &list[i].consumer_kind,
             &list[i].consumer);
    at[i] = &list[i];
  }
  ok = ok &&
       kilni_cli_check(check->error,
                       kiln_toolkit_check(check->toolkit, items(check),
                                          (uint32_t)cmd_check_item_count(check),
                                          at, (uint32_t)count, &check->report));
  kilni_cli_buffer_deinit(&uses);
  kilni_cli_buffer_deinit(&places);
  return ok;
}

// ---- Showing ----

static size_t missing_count(const check_t* check) {
  size_t count = 0;
  for (size_t i = 0; i < cmd_check_item_count(check); i++) {
    if (!cmd_check_is_found(items(check)[i])) count++;
  }
  return count;
}

// A missing component cannot be judged.
static uint32_t verdict_of(const check_t* check) {
  uint32_t verdict = kiln_compat_report_verdict(check->report);
  if (missing_count(check) != 0 && verdict == KILN_COMPAT_VERDICT_COMPATIBLE) {
    return KILN_COMPAT_VERDICT_UNKNOWN;
  }
  return verdict;
}

static json_t* cmd_check_driver_json(const kiln_compat_driver_t* driver) {
  static const char* const states[] = {"unknown", "none", "known"};
  char line[32];
  kilni_cli_line_text(driver->line, line);
  return json_pack("{s:s,s:o,s:o,s:o}", "state",
                   driver->state < 3 ? states[driver->state] : "unknown",
                   "version", kilni_cli_text_json(line), "release",
                   kilni_cli_text_json(driver->release), "evidence",
                   kilni_cli_text_json(driver->evidence));
}

// The uses that have a verdict, declared or not.
static json_t* uses_json(const kiln_compat_report_t* report) {
  json_t* list = json_array();
  for (uint32_t use = KILN_COMPAT_USE_LTO; use <= KILN_COMPAT_USE_NVVM; use++) {
    uint32_t declared = 0;
    if (kiln_compat_report_judged_count(report, use, &declared) == 0) continue;
    uint32_t verdict = kiln_compat_report_verdict_of_use(report, use);
    (void)json_array_append_new(
        list, json_pack("{s:s,s:s,s:b}", "use", kiln_compat_use_word(use),
                        "verdict", kiln_compat_verdict_word(verdict),
                        "declared", declared != 0));
  }
  return list;
}

static bool cmd_check_show_json(check_t* check) {
  json_t* list = json_array();
  json_t* findings = json_array();
  for (size_t i = 0; i < cmd_check_item_count(check); i++) {
    (void)json_array_append_new(list, kilni_cli_item_json(items(check)[i]));
  }
  uint32_t count = kiln_compat_report_finding_count(check->report);
  for (uint32_t i = 0; i < count; i++) {
    (void)json_array_append_new(
        findings,
        kilni_cli_finding_json(kiln_compat_report_finding(check->report, i)));
  }
  kiln_compat_driver_t driver = kiln_compat_driver_default();
  if (kiln_toolkit_mode(check->toolkit) != KILN_COMPAT_MODE_OFF &&
      !kilni_cli_check(check->error,
                       kiln_toolkit_driver(check->toolkit, &driver))) {
    json_decref(list);
    json_decref(findings);
    return false;
  }
  return kilni_cli_json_write(
      check->call->results,
      json_pack("{s:s,s:s,s:o,s:o,s:o,s:o}", "verdict",
                kiln_compat_verdict_word(verdict_of(check)), "mode",
                kiln_compat_mode_word(kiln_toolkit_mode(check->toolkit)),
                "driver", cmd_check_driver_json(&driver), "items", list, "uses",
                uses_json(check->report), "findings", findings),
      check->error);
}

static void print_finding(FILE* out, const kiln_compat_finding_t* f) {
  char text[8192];
  bool named = f->use != KILN_COMPAT_USE_ANY;
  kilni_cli_copy_text(text, sizeof(text), f->message);
  (void)fprintf(out, "%s (%s%s%s%s): %s\n",
                kiln_compat_verdict_word(f->verdict),
                kiln_compat_rule_word(f->rule), named ? ", " : "",
                named ? kiln_compat_use_word(f->use) : "",
                f->counts ? "" : ", not declared", text);
  if (f->fix == NULL || f->fix[0] == 0) return;
  kilni_cli_copy_text(text, sizeof(text), f->fix);
  (void)fprintf(out, "  Fix: %s\n", text);
}

static void cmd_check_print_missing(FILE* out,
                                    const kiln_toolkit_item_t* item) {
  kilni_cli_error_t why = {0};
  if (kilni_cli_check(
          &why, kiln_locate_item_require(kiln_toolkit_item_located(item)))) {
    return;
  }
  (void)fprintf(out, "not found: %s\n", why.message);
  if (why.fix[0] != 0) (void)fprintf(out, "  Fix: %s\n", why.fix);
}

static void cmd_check_show_lines(check_t* check) {
  FILE* out = check->call->results;
  kilni_cli_columns_t columns = {0};
  for (size_t i = 0; i < cmd_check_item_count(check); i++) {
    kilni_cli_columns_fit(&columns, items(check)[i]);
  }
  for (size_t i = 0; i < cmd_check_item_count(check); i++) {
    kilni_cli_item_print(out, &columns, items(check)[i]);
  }
  for (size_t i = 0; i < cmd_check_item_count(check); i++) {
    cmd_check_print_missing(out, items(check)[i]);
  }
  uint32_t count = kiln_compat_report_finding_count(check->report);
  for (uint32_t i = 0; i < count; i++) {
    print_finding(out, kiln_compat_report_finding(check->report, i));
  }
  (void)fprintf(out, "%s\n", kiln_compat_verdict_word(verdict_of(check)));
}

static bool cmd_check_show(check_t* check) {
  if (check->call->json) {
    if (!cmd_check_show_json(check)) return false;
  } else {
    cmd_check_show_lines(check);
    if (!kilni_cli_results_flush(check->call->results, check->error)) {
      return false;
    }
  }
  if (missing_count(check) != 0) {
    return kilni_cli_tell(check->error, KILN_STATUS_NOT_FOUND);
  }
  kiln_status_t status = kiln_compat_report_status(
      check->report, kiln_toolkit_mode(check->toolkit));
  kiln_status_code_t code = kiln_status_code(status);
  kiln_status_free(status);
  return code == KILN_STATUS_OK || kilni_cli_tell(check->error, code);
}

static bool run_check(const kilni_cli_call_t* call, kilni_cli_error_t* error) {
  check_t check = {.call = call, .error = error};
  bool ok = cmd_check_read_operands(&check) && cmd_check_make_context(&check) &&
            find_items(&check) && cmd_check_ask(&check) &&
            cmd_check_show(&check);
  for (size_t i = 0; i < cmd_check_item_count(&check); i++) {
    kiln_toolkit_item_release(items(&check)[i]);
  }
  kiln_compat_report_release(check.report);
  kiln_toolkit_release(check.toolkit);
  kilni_cli_where_deinit(&check.where);
  kilni_cli_buffer_deinit(&check.wanted);
  kilni_cli_buffer_deinit(&check.uses);
  kilni_cli_buffer_deinit(&check.found);
  return ok;
}

static const kilni_cli_option_t kOptions[] = {
    {"mode", "MODE",
     "How a finding affects the exit code. Default: KILN_COMPAT, else strict.",
     false, "strict best-effort warn off"},
    {"ctk-version", "SPEC",
     "The allowed CUDA versions, as a PEP 440 specifier: \">=12.9,<13\".",
     false, NULL},
    {"driver", "DRIVER",
     "The driver to check against: CUDA version and "
     "release (13.0,580.65.06), or none; this machine's "
     "without it.",
     false, "none unknown"},
    {"forward-compat", NULL,
     "Allow an older driver: a forward compatibility package is installed.",
     false, NULL},
    KILNI_CLI_WHERE_OPTIONS,
    {"json", NULL, "Write the result, or the error, as JSON.", false, NULL},
    {"help", NULL, "Print this help.", false, NULL},
};

const kilni_cli_command_t kilni_cli_command_check = {
    "check",
    "ITEM|PIPELINE...",
    "Check that components of a CUDA toolkit are compatible with each other "
    "and the driver.",
    "ITEM is KIND:NAME: lib:nvrtc, header:cudart, bin:nvcc, static:cudadevrt, "
    "bitcode:device. PIPELINE declares what one component passes to another: "
    "\"lib:nvrtc>lib:nvJitLink:ltoir\" (ltoir, ptx, elf, cubin or nvvm; "
    "\"driver\" is a consumer too).\nA finding about a use that no pipeline "
    "declares is shown but does not affect the exit code. Nothing is loaded "
    "except the driver's library, which is queried for its version.\nThe exit "
    "code is 0 if the check passes in this mode, 4 if components are "
    "incompatible, 5 if not enough is known to decide, 3 if a component is "
    "not found.",
    kOptions,
    sizeof(kOptions) / sizeof(kOptions[0]),
    1,
    KILNI_CLI_MAX_PIECES,
    NULL,
    "kiln check lib:nvrtc header:cudart \"lib:nvrtc>lib:nvJitLink:ltoir\"",
    run_check,
};
