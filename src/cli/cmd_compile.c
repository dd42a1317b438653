// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln compile`: a source to device code, for build systems.
#define _POSIX_C_SOURCE 200809L
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_cache.h"
#include "cli/cli_files.h"
#include "cli/cli_log.h"
#include "cli/cli_output.h"
#include "cli/cli_program.h"
#include "cli/cli_report.h"
#include "cli/run_request.h"
#include "cli/compile_job.h"

// One call. one-thread
typedef struct compile_t {
  const kilni_cli_call_t* call;
  const char* out;
  const char* depfile;
  kilni_cli_files_t files;
  kilni_cli_compile_t job;
  kilni_cli_cache_t where;
  kiln_runtime_t* runtime;
} compile_t;

static bool cmd_compile_note_files(compile_t* c, kilni_cli_error_t* error) {
  bool ok = kilni_cli_files_add_input(&c->files, c->call->operands[0],
                                      "the source", error);
  for (size_t i = 0; ok && i < c->call->given_count; i++) {
    const kilni_cli_given_t* given = &c->call->given[i];
    if (strcmp(given->option->name, "pre-include") != 0) continue;
    ok = kilni_cli_files_add_input(&c->files, given->value, "--pre-include",
                                   error);
  }
  return ok && kilni_cli_files_add_output(&c->files, c->out, "-o", error) &&
         (c->depfile == NULL || kilni_cli_files_add_output(
                                    &c->files, c->depfile, "--depfile", error));
}

static bool cmd_compile_read_call(compile_t* c, kilni_cli_error_t* error) {
  c->out = kilni_cli_option_value(c->call, "out-file");
  c->depfile = kilni_cli_option_value(c->call, "depfile");
  if (c->out == NULL) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "name the output file: -o FILE", "no output file");
  }
  if (!cmd_compile_note_files(c, error) ||
      !kilni_cli_compile_read(&c->job, c->call, c->call->operands[0], c->out,
                              error)) {
    return false;
  }
  // A file that does not exist yet is not a header.
  if (c->depfile != NULL || access(c->out, F_OK) == 0) {
    c->job.asked.options.list_headers = KILN_SWITCH_ON;
  }
  return kilni_cli_cache_read(&c->where, c->call, error) &&
         kilni_cli_output_check(c->out, error) &&
         (c->depfile == NULL || kilni_cli_output_check(c->depfile, error));
}

static void cmd_compile_on_log(kiln_log_level_t level, const char* space,
                               const char* line, void* user) {
  (void)user;
  if (kilni_cli_log_trace(level, line)) return;
  if (kilni_cli_log_matters(level, space)) kilni_cli_note("%s", line);
}

static bool cmd_compile_compile(compile_t* c, kilni_cli_error_t* error) {
  kiln_log_sink_t log = {cmd_compile_on_log, NULL, kilni_cli_log_level(), 0};
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.log = &log;
  options.cache = &c->where.options;
  return kilni_cli_check(error, kiln_runtime_create(&options, &c->runtime)) &&
         kilni_cli_compile_make(
             &c->job, c->runtime,
             c->where.off ? NULL : kiln_runtime_cache(c->runtime), error);
}

// ---- The dependencies ----

// As make and ninja read a path: blanks and # after a backslash, $ doubled.
static bool cmd_compile_add_path(kilni_cli_buffer_t* out, const char* path,
                                 kilni_cli_error_t* error) {
  for (const char* at = path; *at != 0; at++) {
    size_t slashes = strspn(at, "\\");
    // Backslashes right before a blank are doubled.
    if (slashes != 0 && at[slashes] == ' ') {
      for (size_t i = 0; i < 2 * slashes; i++) {
        if (!kilni_cli_buffer_add(out, "\\", 1, error)) return false;
      }
      at += slashes - 1;
      continue;
    }
    const char* before = *at == ' ' || *at == '#' ? "\\"
                         : *at == '$'             ? "$"
                                                  : "";
    if (*at == '\n') {
      return kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED,
                            "rename it, or omit --depfile",
                            "a path with a line break in a depfile");
    }
    if (!kilni_cli_buffer_add(out, before, strlen(before), error) ||
        !kilni_cli_buffer_add(out, at, 1, error)) {
      return false;
    }
  }
  return true;
}

static bool make_depfile(const compile_t* c, kilni_cli_buffer_t* out,
                         kilni_cli_error_t* error) {
  if (!cmd_compile_add_path(out, c->out, error) ||
      !kilni_cli_buffer_add(out, ": ", 2, error) ||
      !cmd_compile_add_path(out, c->job.file, error)) {
    return false;
  }
  uint32_t count = c->job.result != NULL
                       ? kiln_compile_result_header_count(c->job.result)
                       : 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!kilni_cli_buffer_add(out, " \\\n  ", 5, error) ||
        !cmd_compile_add_path(out, kiln_compile_result_header(c->job.result, i),
                              error)) {
      return false;
    }
  }
  return kilni_cli_buffer_add(out, "\n", 1, error);
}

// ---- Results ----

static bool write_outputs(const compile_t* c, kilni_cli_error_t* error) {
  kilni_cli_output_t outputs[2];
  memset(outputs, 0, sizeof(outputs));
  size_t count = 0;
  bool ok = true;
  if (c->depfile != NULL) {
    outputs[count].path = c->depfile;
    ok = make_depfile(c, &outputs[count].content, error);
    count++;
  }
  kiln_bytes_view_t code = kiln_code_bytes(c->job.code);
  outputs[count].path = c->out;
  ok = ok && kilni_cli_buffer_add(&outputs[count].content, code.data, code.size,
                                  error);
  count++;
  ok = ok && kilni_cli_outputs_write(outputs, count, error);
  kilni_cli_outputs_deinit(outputs, count);
  return ok;
}

static json_t* cmd_compile_text_json(const char* text) {
  json_t* value = json_string(text);
  return value != NULL ? value : json_string_nocheck("?");
}

static bool cmd_compile_report(const compile_t* c, kilni_cli_error_t* error) {
  const kiln_code_t* code = c->job.code;
  kilni_cli_compile_note_name(c->out, kiln_code_format(code));
  if (!c->call->json) return true;
  const kiln_compile_result_t* result = c->job.result;
  json_t* names = json_array();
  for (uint32_t i = 0; i < kiln_code_lowered_count(code); i++) {
    (void)json_array_append_new(
        names,
        json_pack("{s:o,s:s}", "expression",
                  cmd_compile_text_json(kiln_code_lowered(code, i)->expression),
                  "lowered", kiln_code_lowered(code, i)->lowered));
  }
  uint32_t line = kiln_code_producer_line(code);
  char version[32];
  (void)snprintf(version, sizeof(version), "%u.%u", (unsigned)(line / 1000),
                 (unsigned)(line % 1000 / 10));
  json_t* object = json_pack(
      "{s:o,s:s,s:s,s:I,s:s?,s:s,s:s,s:o,s:o,s:o}", "file",
      cmd_compile_text_json(c->out), "format",
      kiln_code_format_name(kiln_code_format(code)), "arch",
      kiln_code_arch(code), "bytes", (json_int_t)kiln_code_bytes(code).size,
      "compiler_version", line != 0 ? version : NULL, "cache",
      kilni_cli_cache_word(c->job.cache), "cache_reason", c->job.cache_reason,
      "names", names, "note",
      cmd_compile_text_json(result != NULL ? kiln_compile_result_note(result)
                                           : ""),
      "log",
      cmd_compile_text_json(result != NULL ? kiln_compile_result_log(result)
                                           : ""));
  return kilni_cli_json_write(c->call->results, object, error);
}

static bool run_compile(const kilni_cli_call_t* call,
                        kilni_cli_error_t* error) {
  if (kilni_cli_program_is(call->operands[0])) {
    const char* out = kilni_cli_option_value(call, "out-file");
    if (out != NULL) return kilni_cli_program_compile(call, out, error);
  } else if (!kilni_cli_program_only(call, "max-ulp", error)) {
    return false;
  }
  compile_t* c = calloc(1, sizeof(*c));
  if (c == NULL) {
    return kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "no memory for the options");
  }
  c->call = call;
  bool ok = cmd_compile_read_call(c, error) && cmd_compile_compile(c, error) &&
            kilni_cli_compile_check_headers(c->job.result, &c->files, error) &&
            write_outputs(c, error) && cmd_compile_report(c, error);
  kilni_cli_compile_deinit(&c->job);
  kilni_cli_files_deinit(&c->files);
  kiln_runtime_release(c->runtime);
  kilni_cli_cache_deinit(&c->where);
  free(c);
  return ok;
}

static const kilni_cli_option_t kOptions[] = {
    {"out-file", "FILE", "The output file, also as -o FILE. Required.", false,
     "file"},
    KILNI_CLI_COMPILE_OPTIONS,
    {"depfile", "FILE",
     "Write the dependencies of the output, as make and ninja read them: the "
     "files that are or may be included, on both sides of every condition.",
     false, "file"},
    {"max-ulp", "N",
     "For a program: the maximum error of its f32 functions, in units in the "
     "last place. Default: 0, strict: less than 1, and the same bits on every "
     "device.",
     false, NULL},
    KILNI_CLI_CACHE_OPTIONS,
    {"json", NULL, "Write the result, or the error, as JSON.", false, NULL},
    {"help", NULL, "Print this help.", false, NULL},
};

const kilni_cli_command_t kilni_cli_command_compile = {
    "compile",
    "FILE",
    "Compile a source file to device code.",
    "FILE is CUDA C++ (.cu, by NVRTC), NVVM IR (.ll or .bc, by libNVVM), PTX "
    "(.ptx, by nvJitLink, to a cubin), or a program (.kiln, by Kiln itself, "
    "to PTX; --define sets its consts and types). Neither a GPU nor a driver "
    "is needed. What the compiler prints goes to standard error. The output "
    "is written completely or not at all.\nThe result is cached (see kiln "
    "cache), and reused while source, options, every included file and the "
    "compiler are unchanged; then no compiler is loaded.",
    kOptions,
    sizeof(kOptions) / sizeof(kOptions[0]),
    1,
    1,
    "program",
    "kiln compile saxpy.cu -o saxpy.cubin --arch sm_90 --depfile saxpy.d",
    run_compile,
};
