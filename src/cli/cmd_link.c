// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln link`: links device code with nvJitLink or with the driver.
#define _DEFAULT_SOURCE  // readlink, setrlimit
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/cli_cache.h"
#include "cli/cli_code_name.h"
#include "cli/cli_files.h"
#include "cli/cli_log.h"
#include "cli/cli_output.h"
#include "cli/cli_pieces.h"
#include "cli/cli_report.h"
#include "kiln/code.h"
#include "kiln/compat.h"
#include "kiln/device.h"
#include "kiln/image.h"
#include "kiln/link.h"
#include "kiln/runtime.h"
#include "kiln/toolkit.h"

#define MAX_CODE_BYTES ((size_t)1 << 31)

enum { MAX_FILES = 4096 };

// ---- Options of the table ----

typedef enum kind_t { FLAG, CHOICE, NUMBER, LEVEL, THREADS } kind_t;

// A flag that is one field. thread-safe
typedef struct field_t {
  const char* name;
  kind_t kind;
  size_t offset;
} field_t;

#define AT(field) offsetof(kiln_link_options_t, field)

static const field_t kFields[] = {
    {"max-registers", NUMBER, AT(max_registers)},
    {"optimization-level", LEVEL, AT(optimization_level)},
    {"debug", FLAG, AT(debug)},
    {"lineinfo", FLAG, AT(lineinfo)},
    {"time", FLAG, AT(time)},
    {"verbose", FLAG, AT(verbose)},
    {"ftz", CHOICE, AT(ftz)},
    {"prec-div", CHOICE, AT(prec_div)},
    {"prec-sqrt", CHOICE, AT(prec_sqrt)},
    {"fma", CHOICE, AT(fma)},
    {"optimize-unused-variables", FLAG, AT(optimize_unused_variables)},
    {"split-compile", THREADS, AT(split_compile)},
    {"split-compile-extended", THREADS, AT(split_compile_extended)},
    {"no-cache", FLAG, AT(no_cache)},
    {"lto", FLAG, AT(lto)},
    {"isolated", FLAG, AT(isolated)},
    {"isolated-seconds", NUMBER, AT(isolated_seconds)},
};

static bool fail_value(kilni_cli_error_t* error, const char* name,
                       const char* value, const char* fix) {
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, fix,
                        "--%s cannot be \"%s\"", name, value);
}

static bool cmd_link_read_number(const char* text, uint32_t* out) {
  uint64_t number = 0;
  size_t length = strlen(text);
  *out = 0;
  if (length == 0 || length > 9) return false;
  for (size_t i = 0; i < length; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    number = number * 10 + (uint64_t)(text[i] - '0');
  }
  *out = (uint32_t)number;
  return true;
}

static bool read_field(const field_t* field, const char* value, uint32_t* out,
                       kilni_cli_error_t* error) {
  uint32_t number = 0;
  switch (field->kind) {
    case FLAG:
      *out = KILN_SWITCH_ON;
      return true;
    case CHOICE:
      if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0) {
        return fail_value(error, field->name, value, "write true or false");
      }
      *out = value[0] == 't' ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
      return true;
    case LEVEL:
      if (!cmd_link_read_number(value, &number) || number > 3) {
        return fail_value(error, field->name, value, "give 0, 1, 2 or 3");
      }
      *out = KILN_LINK_LEVEL_0 + number;
      return true;
    case THREADS:
      if (!cmd_link_read_number(value, &number)) {
        return fail_value(error, field->name, value,
                          "give a number of threads; 0 is all processors");
      }
      *out = number == 0 ? KILN_LINK_ALL_THREADS : number;
      return true;
    default:
      if (!cmd_link_read_number(value, &number) || number == 0) {
        return fail_value(error, field->name, value, "give a number from 1");
      }
      *out = number;
      return true;
  }
}

// What is linked, with what, and the results. one-thread
typedef struct link_run_t {
  const kilni_cli_call_t* call;
  kilni_cli_error_t* error;
  kiln_link_options_t options;
  kilni_cli_where_t where;
  kilni_cli_cache_t cache;
  kilni_cli_buffer_t lists[4];  // const char*
  kilni_cli_buffer_t codes;     // kiln_code_t*
  kilni_cli_buffer_t facts;     // kiln_link_input_fact_t
  kilni_cli_buffer_t lines;     // uint32_t, of the nvJitLinks
  kiln_compat_driver_t driver;
  bool assumes_driver;
  bool assumes_nvjitlink;
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_linker_t* linker;
  kiln_link_t* link;
  kiln_link_choice_t* choice;
  kiln_code_t* code;
  char program[4000];  // this one
} link_run_t;

static const char* cmd_link_value_of(const link_run_t* run, const char* name) {
  return kilni_cli_option_value(run->call, name);
}

static bool read_lists(link_run_t* run) {
  static const char* const NAMES[] = {"kernels-used", "variables-used",
                                      "ptxas-options", "extra"};
  kiln_link_options_t* o = &run->options;
  const char* const** const places[] = {&o->kernels_used, &o->variables_used,
                                        &o->ptxas_options, &o->extra};
  uint32_t* const counts[] = {&o->kernels_used_count, &o->variables_used_count,
                              &o->ptxas_options_count, &o->extra_count};
  for (size_t k = 0; k < 4; k++) {
    for (size_t i = 0; i < run->call->given_count; i++) {
      const kilni_cli_given_t* given = &run->call->given[i];
      if (strcmp(given->option->name, NAMES[k]) != 0) continue;
      if (!kilni_cli_buffer_add(&run->lists[k], &given->value,
                                sizeof(given->value), run->error)) {
        return false;
      }
    }
    *places[k] = (const char* const*)(const void*)run->lists[k].data;
    *counts[k] = (uint32_t)(run->lists[k].size / sizeof(char*));
  }
  return true;
}

// The value for one of `words`; they end with a NULL.
static bool cmd_link_read_word(const link_run_t* run, const char* name,
                               const char* const* words, const uint32_t* values,
                               uint32_t* out) {
  const char* value = cmd_link_value_of(run, name);
  if (value == NULL) return true;
  for (size_t i = 0; words[i] != NULL; i++) {
    if (strcmp(words[i], value) != 0) continue;
    *out = values[i];
    return true;
  }
  return fail_value(run->error, name, value,
                    "\"kiln link --help\" lists what it can be");
}

// This program links in the other process as well.
static const char* own_program(link_run_t* run) {
  ssize_t size =
      readlink("/proc/self/exe", run->program, sizeof(run->program) - 1);
  if (size <= 0) return NULL;
  run->program[size] = 0;
  return run->program;
}

// The output format, if the file name determines it; the name must match.
static bool read_name(link_run_t* run) {
  const char* file = cmd_link_value_of(run, "out-file");
  kiln_link_options_t* o = &run->options;
  bool asked = cmd_link_value_of(run, "output") != NULL;
  if (file == NULL) return true;
  if (!asked) o->output = kilni_cli_code_name_format(file);
  uint32_t format =
      o->output != 0 ? o->output : (uint32_t)KILN_CODE_FORMAT_CUBIN;
  return kilni_cli_code_name_check(file, format, asked, run->error);
}

static bool cmd_link_read_options(link_run_t* run) {
  static const char* const BACKENDS[] = {"auto", "nvjitlink", "driver", NULL};
  static const uint32_t BACKEND_VALUES[] = {0, 1, 2};
  static const char* const OUTPUTS[] = {"cubin", "ptx", "ltoir", "relocatable",
                                        NULL};
  static const uint32_t OUTPUT_VALUES[] = {
      KILN_CODE_FORMAT_CUBIN, KILN_CODE_FORMAT_PTX, KILN_CODE_FORMAT_LTOIR,
      KILN_CODE_FORMAT_RELOCATABLE};
  kiln_link_options_t* o = &run->options;
  *o = kiln_link_options_default();
  for (size_t i = 0; i < sizeof(kFields) / sizeof(kFields[0]); i++) {
    const char* value = cmd_link_value_of(run, kFields[i].name);
    uint32_t number = 0;
    if (value == NULL) continue;
    if (!read_field(&kFields[i], value, &number, run->error)) return false;
    memcpy((char*)o + kFields[i].offset, &number, sizeof(number));
  }
  o->arch = cmd_link_value_of(run, "arch");
  o->name = cmd_link_value_of(run, "name");
  o->isolated_program = own_program(run);
  return read_lists(run) &&
         cmd_link_read_word(run, "backend", BACKENDS, BACKEND_VALUES,
                            &o->backend) &&
         cmd_link_read_word(run, "output", OUTPUTS, OUTPUT_VALUES,
                            &o->output) &&
         read_name(run);
}

// ---- Assumed facts ----

static bool fail_assume(link_run_t* run, const char* text) {
  return kilni_cli_fail(
      run->error, KILN_STATUS_INVALID_ARGUMENT,
      "write driver=13.0, nvjitlink=12.9 or both with a comma between them; "
      "\"none\" is an absent one and \"unknown\" one that cannot be queried",
      "--assume cannot be \"%s\"", text);
}

static bool assume_nvjitlink(link_run_t* run, const char* value,
                             const char* whole) {
  kiln_compat_driver_t read;
  uint32_t line = KILN_LINK_NVJITLINK_UNKNOWN;
  run->assumes_nvjitlink = true;
  if (strcmp(value, "none") == 0) return true;
  if (strcmp(value, "unknown") != 0) {
    kiln_status_t status = kiln_compat_driver_parse(value, &read);
    bool ok = kiln_status_is_ok(status) &&
              read.state == KILN_COMPAT_DRIVER_KNOWN && read.branch == 0;
    kiln_status_free(status);
    if (!ok) return fail_assume(run, whole);
    line = read.line;
  }
  return kilni_cli_buffer_add(&run->lines, &line, sizeof(line), run->error);
}

static bool assume_one(link_run_t* run, const char* text, const char* whole) {
  if (strncmp(text, "nvjitlink=", 10) == 0) {
    return assume_nvjitlink(run, text + 10, whole);
  }
  if (strncmp(text, "driver=", 7) != 0) return fail_assume(run, whole);
  kiln_status_t status = kiln_compat_driver_parse(text + 7, &run->driver);
  bool ok = kiln_status_is_ok(status);
  kiln_status_free(status);
  run->driver.release = NULL;  // it points into the text
  run->assumes_driver = true;
  return ok || fail_assume(run, whole);
}

static bool read_assumed(link_run_t* run) {
  for (size_t i = 0; i < run->call->given_count; i++) {
    const kilni_cli_given_t* given = &run->call->given[i];
    if (strcmp(given->option->name, "assume") != 0) continue;
    const char* at = given->value;
    while (true) {
      char part[64];
      size_t size = strcspn(at, ",");
      if (size == 0 || size >= sizeof(part)) {
        return fail_assume(run, given->value);
      }
      memcpy(part, at, size);
      part[size] = 0;
      if (!assume_one(run, part, given->value)) return false;
      if (at[size] == 0) break;
      at += size + 1;
    }
  }
  if (!run->assumes_nvjitlink || cmd_link_value_of(run, "explain") != NULL) {
    return true;
  }
  return kilni_cli_fail(run->error, KILN_STATUS_INVALID_ARGUMENT,
                        "add --explain, or name a file with --nvjitlink",
                        "an assumed nvJitLink cannot link");
}

// ---- Inputs ----

static size_t code_count(const link_run_t* run) {
  return run->codes.size / sizeof(kiln_code_t*);
}

static kiln_code_t* code_at(const link_run_t* run, size_t index) {
  return ((kiln_code_t**)(void*)run->codes.data)[index];
}

static bool read_input(link_run_t* run, const char* path) {
  kilni_cli_buffer_t file = {0};
  kiln_code_t* code = NULL;
  kiln_link_input_fact_t fact;
  bool ok = kilni_cli_buffer_read_some(&file, path, MAX_CODE_BYTES, run->error);
  if (ok) {
    kiln_code_options_t options = kiln_code_options_default();
    options.name = path;
    ok = kilni_cli_check(
        run->error, kiln_code_create((kiln_bytes_view_t){file.data, file.size},
                                     &options, &code));
  }
  kilni_cli_buffer_deinit(&file);
  if (!ok) return false;
  kiln_link_input_fact_of(code, &fact);
  if (!kilni_cli_buffer_add(&run->codes, &code, sizeof(code), run->error)) {
    kiln_code_release(code);
    return false;
  }
  return kilni_cli_buffer_add(&run->facts, &fact, sizeof(fact), run->error);
}

static bool cmd_link_read_inputs(link_run_t* run) {
  for (size_t i = 0; i < run->call->operand_count; i++) {
    if (!read_input(run, run->call->operands[i])) return false;
  }
  return true;
}

// ---- The linker ----

// What the library reports about a toolkit, and about a missing linker.
static void cmd_link_on_log(kiln_log_level_t level, const char* space,
                            const char* line, void* user) {
  (void)user;
  if (kilni_cli_log_trace(level, line)) return;
  if (level == KILN_LOG_WARNING &&
      (kilni_cli_log_matters(level, space) || strcmp(space, "compile") == 0)) {
    kilni_cli_note("%s", line);
  }
}

static bool open_linker(link_run_t* run) {
  kiln_linker_options_t options = kiln_linker_options_default();
  options.device = run->device;
  options.nvjitlink = cmd_link_value_of(run, "nvjitlink");
  if (run->assumes_driver) options.driver = &run->driver;
  kiln_linker_release(run->linker);
  run->linker = NULL;
  return kilni_cli_check(run->error, kiln_runtime_open_linker(
                                         run->runtime, &options, &run->linker));
}

static bool cmd_link_open_device(link_run_t* run, const char* label) {
  return kilni_cli_check(
      run->error, kiln_runtime_open_device(run->runtime, label, &run->device));
}

static bool cmd_link_open_runtime(link_run_t* run) {
  if (!kilni_cli_where_read(&run->where, run->call, run->error)) return false;
  kiln_log_sink_t log = {cmd_link_on_log, NULL, kilni_cli_log_level(), 0};
  kiln_toolkit_options_t toolkit = kiln_toolkit_options_default();
  toolkit.locate = &run->where.options;
  if (cmd_link_value_of(run, "verify") != NULL) toolkit.verify = KILN_SWITCH_ON;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.log = &log;
  options.toolkit = &toolkit;
  options.cache = &run->cache.options;
  if (!kilni_cli_cache_read(&run->cache, run->call, run->error) ||
      !kilni_cli_check(run->error,
                       kiln_runtime_create(&options, &run->runtime))) {
    return false;
  }
  if (!run->cache.off) run->options.cache = kiln_runtime_cache(run->runtime);
  const char* label = cmd_link_value_of(run, "device");
  return (label == NULL || cmd_link_open_device(run, label)) &&
         open_linker(run);
}

// The nvJitLinks of this machine, unless they were assumed.
static bool gather_lines(link_run_t* run) {
  uint32_t count = 0;
  if (run->assumes_nvjitlink) return true;
  if (!kilni_cli_check(run->error,
                       kiln_linker_nvjitlink_count(run->linker, &count))) {
    return false;
  }
  for (uint32_t i = 0; i < count; i++) {
    uint32_t line = 0;
    if (!kilni_cli_check(run->error,
                         kiln_linker_nvjitlink(run->linker, i, &line, NULL)) ||
        !kilni_cli_buffer_add(&run->lines, &line, sizeof(line), run->error)) {
      return false;
    }
  }
  return true;
}

static bool cmd_link_choose(link_run_t* run) {
  kiln_link_facts_t facts = kiln_link_facts_default();
  facts.backend = run->options.backend;
  facts.output = run->options.output;
  facts.lto = run->options.lto;
  facts.inputs = (const kiln_link_input_fact_t*)(const void*)run->facts.data;
  facts.input_count = (uint32_t)code_count(run);
  if (run->assumes_driver) {
    facts.driver = run->driver;
  } else if (!kilni_cli_check(run->error,
                              kiln_linker_driver(run->linker, &facts.driver))) {
    return false;
  }
  if (facts.backend != KILN_LINK_BACKEND_DRIVER && !gather_lines(run)) {
    return false;
  }
  facts.nvjitlinks = (const uint32_t*)(const void*)run->lines.data;
  facts.nvjitlink_count = (uint32_t)(run->lines.size / sizeof(uint32_t));
  return kilni_cli_check(run->error,
                         kiln_link_choose(&facts, NULL, &run->choice));
}

// ---- Showing ----

static json_t* choice_json(const kiln_link_choice_t* choice) {
  uint32_t backend = kiln_link_choice_backend(choice);
  json_t* reasons = json_array();
  for (uint32_t i = 0; i < kiln_link_choice_reason_count(choice); i++) {
    (void)json_array_append_new(
        reasons, json_string(kiln_link_choice_reason(choice, i)));
  }
  return json_pack(
      "{s:s?,s:s,s:o,s:s?,s:b,s:s}", "backend",
      backend == KILN_LINK_BACKEND_AUTO ? NULL
                                        : kiln_link_backend_word(backend),
      "output", kiln_code_format_name(kiln_link_choice_output(choice)),
      "reasons", reasons, "fix", kiln_link_choice_fix(choice), "lto",
      (int)kiln_link_choice_lto(choice), "verdict",
      kiln_compat_verdict_word(kiln_link_choice_verdict(choice)));
}

static bool cmd_link_explain(link_run_t* run) {
  FILE* out = run->call->results;
  const kiln_link_choice_t* choice = run->choice;
  kiln_status_t status = kiln_link_choice_status(choice);
  kiln_status_code_t code = kiln_status_code(status);
  if (run->call->json) {
    kiln_status_free(status);
    return kilni_cli_json_write(out, choice_json(choice), run->error) &&
           (code == KILN_STATUS_OK || kilni_cli_tell(run->error, code));
  }
  (void)fprintf(
      out, "%s: %s%s\n",
      code != KILN_STATUS_OK
          ? "no linker"
          : kiln_link_backend_word(kiln_link_choice_backend(choice)),
      kiln_code_format_name(kiln_link_choice_output(choice)),
      kiln_link_choice_lto(choice) ? ", with link-time optimisation" : "");
  for (uint32_t i = 0; i < kiln_link_choice_reason_count(choice); i++) {
    (void)fprintf(out, "  %s\n", kiln_link_choice_reason(choice, i));
  }
  return kilni_cli_results_flush(out, run->error) &&
         kilni_cli_check(run->error, status);
}

static void show_logs(const link_run_t* run) {
  static const uint32_t LOGS[] = {KILN_LINK_LOG_INFO, KILN_LINK_LOG_ERROR};
  for (size_t i = 0; i < 2; i++) {
    const char* text = kiln_link_log(run->link, LOGS[i]);
    size_t size = strlen(text);
    if (size == 0) continue;
    kilni_cli_print_text(stderr, text, size);
    if (text[size - 1] != '\n') (void)fputc('\n', stderr);
  }
  const kiln_link_settings_t* used = kiln_link_used(run->link);
  for (uint32_t i = 0; i < kiln_link_settings_warning_count(used); i++) {
    kilni_cli_note("%s", kiln_link_settings_warning(used, i));
  }
}

// ---- Linking ----

static bool cmd_link_begin_link(link_run_t* run) {
  kiln_link_release(run->link);
  run->link = NULL;
  if (!kilni_cli_check(run->error, kiln_link_create(run->linker, &run->options,
                                                    &run->link))) {
    return false;
  }
  for (size_t i = 0; i < code_count(run); i++) {
    if (!kilni_cli_check(run->error,
                         kiln_link_add(run->link, code_at(run, i)))) {
      return false;
    }
  }
  return true;
}

// The driver links in a context: without a device there is none yet.
static bool cmd_link_prepare(link_run_t* run) {
  if (run->device != NULL) return cmd_link_begin_link(run);
  if (!cmd_link_choose(run)) return false;
  bool needs =
      kiln_link_choice_backend(run->choice) == KILN_LINK_BACKEND_DRIVER;
  return (!needs ||
          (cmd_link_open_device(run, "cuda:0") && open_linker(run))) &&
         cmd_link_begin_link(run);
}

static bool cmd_link_report(link_run_t* run, const char* path, size_t bytes) {
  const kiln_link_choice_t* chosen = kiln_link_chosen(run->link);
  if (!run->call->json) {
    kilni_cli_note("wrote %s (%s, %zu bytes), linked by %s", path,
                   kiln_code_format_name(kiln_code_format(run->code)), bytes,
                   kiln_link_backend_word(kiln_link_choice_backend(chosen)));
    return true;
  }
  const kiln_link_settings_t* used = kiln_link_used(run->link);
  json_t* options = json_array();
  json_t* warnings = json_array();
  for (uint32_t i = 0; i < kiln_link_settings_count(used); i++) {
    (void)json_array_append_new(
        options, json_string(kiln_link_settings_option(used, i)));
  }
  for (uint32_t i = 0; i < kiln_link_settings_warning_count(used); i++) {
    (void)json_array_append_new(
        warnings, json_string(kiln_link_settings_warning(used, i)));
  }
  json_t* object = choice_json(chosen);
  json_t* file = json_string(path);
  // The output: PTX on the software device, whatever was requested.
  (void)json_object_set_new(
      object, "output",
      json_string(kiln_code_format_name(kiln_code_format(run->code))));
  (void)json_object_set_new(object, "file",
                            file != NULL ? file : json_string_nocheck("?"));
  (void)json_object_set_new(object, "bytes", json_integer((json_int_t)bytes));
  (void)json_object_set_new(object, "options", options);
  (void)json_object_set_new(object, "warnings", warnings);
  (void)json_object_set_new(
      object, "cache",
      json_string(kilni_cli_cache_word(kiln_link_cache(run->link))));
  (void)json_object_set_new(object, "cache_reason",
                            json_string(kiln_link_cache_reason(run->link)));
  return kilni_cli_json_write(run->call->results, object, run->error);
}

static bool cmd_link_link_all(link_run_t* run) {
  const char* path = cmd_link_value_of(run, "out-file");
  if (path == NULL) {
    return kilni_cli_fail(run->error, KILN_STATUS_INVALID_ARGUMENT,
                          "add -o FILE, or --explain to see which linker "
                          "would be used",
                          "no output file");
  }
  if (!kilni_cli_output_check(path, run->error) || !cmd_link_prepare(run)) {
    return false;
  }
  bool ok =
      kilni_cli_check(run->error, kiln_link_finish(run->link, &run->code));
  show_logs(run);
  // The software device's linker makes PTX.
  ok = ok && kilni_cli_code_name_check(path, kiln_code_format(run->code),
                                       cmd_link_value_of(run, "output") != NULL,
                                       run->error);
  if (!ok) return false;
  kiln_bytes_view_t bytes = kiln_code_bytes(run->code);
  kilni_cli_output_t output;
  memset(&output, 0, sizeof(output));
  output.path = path;
  ok = kilni_cli_buffer_add(&output.content, bytes.data, bytes.size,
                            run->error) &&
       kilni_cli_outputs_write(&output, 1, run->error) &&
       cmd_link_report(run, path, bytes.size);
  kilni_cli_outputs_deinit(&output, 1);
  return ok;
}

// The output must not be one of the inputs.
static bool cmd_link_check_files(link_run_t* run) {
  const char* out = cmd_link_value_of(run, "out-file");
  const char* nvjitlink = cmd_link_value_of(run, "nvjitlink");
  kilni_cli_files_t files = {0};
  bool ok = true;
  if (out == NULL || cmd_link_value_of(run, "explain") != NULL) return true;
  for (size_t i = 0; ok && i < run->call->operand_count; i++) {
    ok = kilni_cli_files_add_input(&files, run->call->operands[i],
                                   "the code to link", run->error);
  }
  ok = ok &&
       (nvjitlink == NULL ||
        kilni_cli_files_add_input(&files, nvjitlink, "--nvjitlink",
                                  run->error)) &&
       kilni_cli_files_add_output(&files, out, "-o", run->error);
  kilni_cli_files_deinit(&files);
  return ok;
}

// For kiln_link_finish of the process that started this one. The process ends
// directly afterwards: exit handlers of nvJitLink do not run.
static bool cmd_link_serve(link_run_t* run) {
  struct rlimit none = {0, 0};
  uint32_t descriptor = 0;
  if (!cmd_link_read_number(run->call->operands[0], &descriptor)) {
    return fail_value(run->error, "serve", run->call->operands[0],
                      "only libkiln calls this");
  }
  (void)setrlimit(RLIMIT_CORE, &none);
  if (!kilni_cli_check(run->error, kiln_link_serve((int)descriptor))) {
    return false;
  }
  _exit(0);
}

// For a device, its own linker decides: that of the software device joins PTX.
// It ignores what is assumed about nvJitLink.
static bool choose_for(link_run_t* run) {
  if (run->device == NULL || run->assumes_nvjitlink) {
    return cmd_link_choose(run);
  }
  return cmd_link_begin_link(run) &&
         kilni_cli_check(run->error,
                         kiln_link_explain(run->link, &run->choice));
}

static bool cmd_link_run_all(link_run_t* run) {
  if (cmd_link_value_of(run, "serve") != NULL) return cmd_link_serve(run);
  if (!cmd_link_read_options(run) || !read_assumed(run) ||
      !cmd_link_check_files(run) || !cmd_link_read_inputs(run)) {
    return false;
  }
  bool is_pure = cmd_link_value_of(run, "explain") != NULL &&
                 run->assumes_driver && run->assumes_nvjitlink;
  if (!is_pure && !cmd_link_open_runtime(run)) return false;
  if (cmd_link_value_of(run, "explain") == NULL) return cmd_link_link_all(run);
  return choose_for(run) && cmd_link_explain(run);
}

static bool run_link(const kilni_cli_call_t* call, kilni_cli_error_t* error) {
  link_run_t run;
  memset(&run, 0, sizeof(run));
  run.call = call;
  run.error = error;
  run.driver = kiln_compat_driver_default();
  bool ok = cmd_link_run_all(&run);
  if (!ok) kilni_cli_error_name_arch(error);
  kiln_code_release(run.code);
  kiln_link_choice_release(run.choice);
  kiln_link_release(run.link);
  kiln_linker_release(run.linker);
  kiln_device_release(run.device);
  kiln_runtime_release(run.runtime);
  for (size_t i = 0; i < code_count(&run); i++) {
    kiln_code_release(code_at(&run, i));
  }
  for (size_t i = 0; i < 4; i++) kilni_cli_buffer_deinit(&run.lists[i]);
  kilni_cli_buffer_deinit(&run.codes);
  kilni_cli_buffer_deinit(&run.facts);
  kilni_cli_buffer_deinit(&run.lines);
  kilni_cli_where_deinit(&run.where);
  kilni_cli_cache_deinit(&run.cache);
  return ok;
}

#define BOOL_HELP "true|false"

static const kilni_cli_option_t kOptions[] = {
    {"out-file", "FILE", "The output file, also as -o FILE.", false, "file"},
    {"output", "cubin|ptx|ltoir|relocatable",
     "The output format. Default: by the extension of FILE, in upper or lower "
     "case, else cubin; an extension of another format is refused. Only "
     "link-time optimisation can output PTX and LTO-IR; the linker of the "
     "software device joins PTX into PTX.",
     false, "cubin ptx ltoir relocatable"},
    {"arch", "ARCH",
     "The architecture, e.g. sm_90. Default: that of the device; nvJitLink "
     "needs one of the two.",
     false, NULL},
    {"lto", NULL, "Optimise across inputs. LTO-IR among the inputs enables it.",
     false, NULL},
    {"backend", "auto|nvjitlink|driver",
     "The linker. auto, the default, decides by the versions found.", false,
     "auto nvjitlink driver"},
    {"explain", NULL,
     "Report which linker would be used and why; link "
     "nothing.",
     false, NULL},
    {"assume", "FACT=VERSION",
     "A version to assume in place of this machine's: driver=13.0, "
     "nvjitlink=12.9; none for an absent one, unknown for one that cannot be "
     "queried. Separate several with commas. With an assumed nvJitLink only "
     "--explain works.",
     true, NULL},
    {"nvjitlink", "FILE", "The nvJitLink library to link with.", false, "file"},
    {"device", "cuda:N|soft",
     "The device that will load the result: its architecture and its driver "
     "count.",
     false, "cuda:0 soft"},
    {"name", "NAME", "The name of the result in messages.", false, NULL},
    {"max-registers", "N",
     "The maximum number of registers per thread. Like every compilation "
     "option, it is refused where it would have no effect: machine code is "
     "not recompiled.",
     false, NULL},
    {"optimization-level", "0|1|2|3", "The optimisation level.", false,
     "0 1 2 3"},
    {"debug", NULL, "Full debug information.", false, NULL},
    {"lineinfo", NULL, "Line numbers only.", false, NULL},
    {"time", NULL, "Log how long each step took.", false, NULL},
    {"verbose", NULL, "Log what is used.", false, NULL},
    {"ftz", BOOL_HELP,
     "Flush denormal numbers to zero. This and the next three options affect "
     "only LTO-IR, and are refused if there is none.",
     false, "true false"},
    {"prec-div", BOOL_HELP, "Divide as specified by IEEE 754.", false,
     "true false"},
    {"prec-sqrt", BOOL_HELP, "Take square roots as specified by IEEE 754.",
     false, "true false"},
    {"fma", BOOL_HELP, "Contract a * b + c into one operation.", false,
     "true false"},
    {"kernels-used", "NAME",
     "A kernel that will be used, by its name in the machine code; others may "
     "be dropped. A name that no input defines is refused.",
     true, NULL},
    {"variables-used", "NAME",
     "A variable that will be used; others may be dropped. A name that no "
     "input defines is refused. Object files also need --kernels-used.",
     true, NULL},
    {"optimize-unused-variables", NULL, "Drop variables that nothing reads.",
     false, NULL},
    {"ptxas-options", "OPTION", "An option for the assembler.", true, NULL},
    {"split-compile", "N", "Threads to compile with; 0: all processors.", false,
     NULL},
    {"split-compile-extended", "N",
     "Threads to compile with, splitting more finely; 0: all processors.",
     false, NULL},
    {"isolated", NULL,
     "Run nvJitLink in a separate process: if it crashes, the error names the "
     "signal and the inputs.",
     false, NULL},
    {"isolated-seconds", "N",
     "The maximum time for that process. Default: "
     "600.",
     false, NULL},
    {"serve", NULL,
     "Link for the process that started this one; FILE is a descriptor "
     "number. For libkiln only.",
     false, NULL},
    {"cache-dir", "DIR", "The folder of Kiln's cache. Default: as kiln cache.",
     false, "file"},
    {"no-cache", NULL,
     "Cache nothing: neither in Kiln's cache nor in the driver's.", false,
     NULL},
    {"extra", "OPTION", "An option in nvJitLink's own syntax.", true, NULL},
    KILNI_CLI_WHERE_OPTIONS,
    {"json", NULL, "Write the result, or the error, as JSON.", false, NULL},
    {"help", NULL, "Print this help.", false, NULL},
};

const kilni_cli_command_t kilni_cli_command_link = {
    "link",
    "FILE...",
    "Link device code, with nvJitLink or with the driver.",
    "FILE is PTX, a cubin (relocatable or not), a fatbin, an object file, an "
    "archive of object files or LTO-IR, recognised by its content; they are "
    "linked in the given order. The linker is chosen for each link, by the "
    "versions of the driver, of each nvJitLink and of the inputs; --explain "
    "shows the decision and its reasons. The linker's logs go to standard "
    "error; the output is written completely or not at all.\nHow each linker "
    "handles each option: docs/reference/link-options.md.",
    kOptions,
    sizeof(kOptions) / sizeof(kOptions[0]),
    1,
    MAX_FILES,
    "file",
    "kiln link a.ltoir b.ltoir --arch sm_90 -o ab.cubin",
    run_link,
};
