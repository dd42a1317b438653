// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln compile`: a source to device code, for build systems.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_buffer.h"
#include "cli/cli_command.h"
#include "cli/cli_output.h"
#include "cli/cli_report.h"
#include "kiln/link.h"
#include "kiln/runtime.h"

#define MAX_SOURCE_BYTES ((size_t)256 << 20)
#define MAX_LIST         1024

// One call. one-thread
typedef struct compile_t {
  const kilni_cli_call_t* call;
  const char* file;
  const char* out;
  const char* depfile;
  uint32_t kind;
  kilni_cli_buffer_t source;
  kiln_compile_options_t options;
  const char* lists[5][MAX_LIST];
  kiln_runtime_t* runtime;
  kiln_compiler_t* compiler;
  kiln_cache_t* cache;
  kiln_compile_result_t* result;
  kiln_code_t* code;  // what was made
} compile_t;

// For find_kind: PTX, which is linked and not compiled.
enum { KIND_PTX = 99 };

// ---- What was asked for ----

static bool ends_with(const char* text, const char* end) {
  size_t a = strlen(text), b = strlen(end);
  return a > b && strcmp(text + a - b, end) == 0;
}

static bool find_kind(compile_t* c, kilni_cli_error_t* error) {
  if (ends_with(c->file, ".cu")) {
    c->kind = KILN_COMPILER_KIND_NVRTC;
    return true;
  }
  if (ends_with(c->file, ".ll") || ends_with(c->file, ".bc")) {
    c->kind = KILN_COMPILER_KIND_NVVM;
    return true;
  }
  if (ends_with(c->file, ".kiln"))
    return kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED,
                          "give CUDA C++ (.cu) or NVVM IR (.ll, .bc); this "
                          "version has no program compiler",
                          "compiling the kiln file \"%s\"", c->file);
  if (ends_with(c->file, ".ptx")) {
    c->kind = KIND_PTX;
    return true;
  }
  return kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED,
                        "name it .cu for CUDA C++, .ll or .bc for NVVM IR, "
                        ".ptx for PTX",
                        "\"%s\": its name does not say what it is", c->file);
}

static bool find_output(compile_t* c, kilni_cli_error_t* error) {
  static const uint32_t FORMATS[] = {
      KILN_CODE_FORMAT_PTX, KILN_CODE_FORMAT_CUBIN, KILN_CODE_FORMAT_LTOIR,
      KILN_CODE_FORMAT_RELOCATABLE};
  const char* word = kilni_cli_option_value(c->call, "output");
  for (size_t i = 0; i < sizeof(FORMATS) / sizeof(FORMATS[0]); ++i) {
    const char* name = kiln_code_format_name(FORMATS[i]);
    char end[32];
    (void)snprintf(end, sizeof(end), ".%s", name);
    if (word != NULL ? strcmp(word, name) == 0 : ends_with(c->out, end)) {
      c->options.output = FORMATS[i];
      return true;
    }
  }
  if (word == NULL) return true;
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                        "use ptx, cubin, ltoir or relocatable",
                        "no output is called \"%s\"", word);
}

static bool collect(const compile_t* c, const char* name, const char** list,
                    uint32_t* out_count, kilni_cli_error_t* error) {
  for (size_t i = 0; i < c->call->given_count; ++i) {
    const kilni_cli_given_t* given = &c->call->given[i];
    if (strcmp(given->option->name, name) != 0) continue;
    if (*out_count == MAX_LIST)
      return kilni_cli_fail(error, KILN_STATUS_LIMIT_EXCEEDED,
                            "put them into a header", "more than %d of --%s",
                            MAX_LIST, name);
    list[(*out_count)++] = given->value;
  }
  return true;
}

static bool read_lists(compile_t* c, kilni_cli_error_t* error) {
  kiln_compile_options_t* o = &c->options;
  o->defines = c->lists[0];
  o->include_dirs = c->lists[1];
  o->name_expressions = c->lists[2];
  o->options = c->lists[3];
  o->pre_includes = c->lists[4];
  return collect(c, "define", c->lists[0], &o->define_count, error) &&
         collect(c, "include", c->lists[1], &o->include_dir_count, error) &&
         collect(c, "name", c->lists[2], &o->name_expression_count, error) &&
         collect(c, "option", c->lists[3], &o->option_count, error) &&
         collect(c, "pre-include", c->lists[4], &o->pre_include_count, error);
}

static bool read_call(compile_t* c, kilni_cli_error_t* error) {
  c->file = c->call->operands[0];
  c->out = kilni_cli_option_value(c->call, "out-file");
  c->depfile = kilni_cli_option_value(c->call, "depfile");
  if (c->out == NULL)
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "say where the code goes: -o FILE", "no output file");
  c->options = kiln_compile_options_default();
  c->options.file_name = c->file;
  c->options.arch = kilni_cli_option_value(c->call, "arch");
  c->options.std = kilni_cli_option_value(c->call, "std");
  if (kilni_cli_option_value(c->call, "lineinfo") != NULL)
    c->options.lineinfo = KILN_SWITCH_ON;
  if (kilni_cli_option_value(c->call, "debug") != NULL)
    c->options.debug = KILN_SWITCH_ON;
  if (c->depfile != NULL) c->options.list_headers = KILN_SWITCH_ON;
  return find_kind(c, error) && find_output(c, error) && read_lists(c, error) &&
         kilni_cli_output_check(c->out, error) &&
         (c->depfile == NULL || kilni_cli_output_check(c->depfile, error)) &&
         kilni_cli_buffer_read(&c->source, c->file, MAX_SOURCE_BYTES, error);
}

// ---- Compiling ----

static bool open_cache(compile_t* c, kilni_cli_error_t* error) {
  if (kilni_cli_option_value(c->call, "no-cache") != NULL) return true;
  kiln_cache_options_t options = kiln_cache_options_default();
  const char* folder = kilni_cli_option_value(c->call, "cache-dir");
  options.directory = folder;
  if (folder != NULL) options.disk = KILN_SWITCH_ON;
  if (!kilni_cli_check(error, kiln_cache_create(&options, &c->cache)))
    return false;
  c->options.cache = c->cache;
  return true;
}

static bool open_compiler(compile_t* c, kilni_cli_error_t* error) {
  kiln_compiler_options_t options = kiln_compiler_options_default();
  options.kind = c->kind;
  options.lazy = c->cache != NULL ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
  return kilni_cli_check(error, kiln_runtime_create(NULL, &c->runtime)) &&
         kilni_cli_check(error, kiln_runtime_open_compiler(c->runtime, &options,
                                                           &c->compiler));
}

// A log is the compiler's own text and goes out as it is.
static void show_text(const char* text) {
  size_t size = strlen(text);
  if (size == 0) return;
  (void)fputs(text, stderr);
  if (text[size - 1] != '\n') (void)fputc('\n', stderr);
}

static void show_log(const compile_t* c) {
  show_text(kiln_compile_result_log(c->result));
  if (kiln_compile_result_note(c->result)[0] != 0)
    kilni_cli_note("%s", kiln_compile_result_note(c->result));
}

static bool compile_source(compile_t* c, kilni_cli_error_t* error) {
  if (!open_compiler(c, error)) return false;
  kiln_string_view_t source = {(const char*)c->source.data, c->source.size};
  kiln_status_t status =
      kiln_compiler_compile(c->compiler, source, &c->options, &c->result);
  if (c->result != NULL) show_log(c);
  if (!kilni_cli_check(error, status)) return false;
  c->code = kiln_compile_result_code(c->result);
  kiln_code_retain(c->code);
  return true;
}

// What has a meaning for a compiler only.
static bool check_ptx(const compile_t* c, kilni_cli_error_t* error) {
  static const char* const WORDS[] = {"define", "include", "pre-include",
                                      "std",    "name",    "cache-dir"};
  for (size_t i = 0; i < sizeof(WORDS) / sizeof(WORDS[0]); ++i)
    if (kilni_cli_option_value(c->call, WORDS[i]) != NULL)
      return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, "leave it out",
                            "--%s means nothing for PTX", WORDS[i]);
  return true;
}

static bool link_ptx(compile_t* c, kilni_cli_error_t* error) {
  kiln_linker_t* linker = NULL;
  kiln_link_t* link = NULL;
  kiln_link_options_t options = kiln_link_options_default();
  options.output = c->options.output != 0 ? c->options.output
                                          : (uint32_t)KILN_CODE_FORMAT_CUBIN;
  options.arch = c->options.arch;
  options.lineinfo = c->options.lineinfo;
  options.debug = c->options.debug;
  options.extra = c->options.options;
  options.extra_count = c->options.option_count;
  options.name = c->file;
  kiln_bytes_view_t bytes = {c->source.data, c->source.size};
  bool ok =
      check_ptx(c, error) &&
      kilni_cli_check(error, kiln_runtime_create(NULL, &c->runtime)) &&
      kilni_cli_check(error,
                      kiln_runtime_open_linker(c->runtime, NULL, &linker)) &&
      kilni_cli_check(error, kiln_link_create(linker, &options, &link)) &&
      kilni_cli_check(error, kiln_link_add_bytes(
                                 link, bytes, KILN_CODE_FORMAT_PTX, c->file)) &&
      kilni_cli_check(error, kiln_link_finish(link, &c->code));
  if (link != NULL) {
    show_text(kiln_link_log(link, KILN_LINK_LOG_INFO));
    show_text(kiln_link_log(link, KILN_LINK_LOG_ERROR));
  }
  kiln_link_release(link);
  kiln_linker_release(linker);
  return ok;
}

static bool compile(compile_t* c, kilni_cli_error_t* error) {
  if (c->kind == KIND_PTX) return link_ptx(c, error);
  return open_cache(c, error) && compile_source(c, error);
}

// ---- The dependencies ----

// As make and ninja read a path: blanks and # behind a backslash, $ doubled.
static bool add_path(kilni_cli_buffer_t* out, const char* path,
                     kilni_cli_error_t* error) {
  for (const char* at = path; *at != 0; ++at) {
    size_t slashes = strspn(at, "\\");
    // Backslashes right before a blank are doubled.
    if (slashes != 0 && at[slashes] == ' ') {
      for (size_t i = 0; i < 2 * slashes; ++i)
        if (!kilni_cli_buffer_add(out, "\\", 1, error)) return false;
      at += slashes - 1;
      continue;
    }
    const char* before = *at == ' ' || *at == '#' ? "\\"
                         : *at == '$'             ? "$"
                                                  : "";
    if (*at == '\n')
      return kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED,
                            "rename it, or leave --depfile out",
                            "a path with a line break in a depfile");
    if (!kilni_cli_buffer_add(out, before, strlen(before), error) ||
        !kilni_cli_buffer_add(out, at, 1, error))
      return false;
  }
  return true;
}

static bool make_depfile(const compile_t* c, kilni_cli_buffer_t* out,
                         kilni_cli_error_t* error) {
  if (!add_path(out, c->out, error) ||
      !kilni_cli_buffer_add(out, ": ", 2, error) ||
      !add_path(out, c->file, error))
    return false;
  uint32_t count = kiln_compile_result_header_count(c->result);
  for (uint32_t i = 0; i < count; ++i)
    if (!kilni_cli_buffer_add(out, " \\\n  ", 5, error) ||
        !add_path(out, kiln_compile_result_header(c->result, i), error))
      return false;
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
    ++count;
  }
  kiln_bytes_view_t code = kiln_code_bytes(c->code);
  outputs[count].path = c->out;
  ok = ok && kilni_cli_buffer_add(&outputs[count].content, code.data, code.size,
                                  error);
  ++count;
  ok = ok && kilni_cli_outputs_write(outputs, count, error);
  kilni_cli_outputs_deinit(outputs, count);
  return ok;
}

static const char* cache_word(const kiln_compile_result_t* result) {
  static const char* const WORDS[] = {"none", "hit", "miss", "uncacheable"};
  return WORDS[kiln_compile_result_cache(result) & 3];
}

static json_t* text_json(const char* text) {
  json_t* value = json_string(text);
  return value != NULL ? value : json_string_nocheck("?");
}

static bool report(const compile_t* c, kilni_cli_error_t* error) {
  if (!c->call->json) return true;
  const kiln_code_t* code = c->code;
  json_t* names = json_array();
  for (uint32_t i = 0; i < kiln_code_lowered_count(code); ++i)
    (void)json_array_append_new(
        names, json_pack("{s:o,s:s}", "expression",
                         text_json(kiln_code_lowered(code, i)->expression),
                         "lowered", kiln_code_lowered(code, i)->lowered));
  uint32_t line = kiln_code_producer_line(code);
  char version[32];
  (void)snprintf(version, sizeof(version), "%u.%u", (unsigned)(line / 1000),
                 (unsigned)(line % 1000 / 10));
  json_t* object = json_pack(
      "{s:o,s:s,s:s,s:I,s:s?,s:s,s:s,s:o,s:o,s:o}", "file", text_json(c->out),
      "format", kiln_code_format_name(kiln_code_format(code)), "arch",
      kiln_code_arch(code), "bytes", (json_int_t)kiln_code_bytes(code).size,
      "compiler_version", line != 0 ? version : NULL, "cache",
      cache_word(c->result), "cache_reason",
      kiln_compile_result_cache_reason(c->result), "names", names, "note",
      text_json(kiln_compile_result_note(c->result)), "log",
      text_json(kiln_compile_result_log(c->result)));
  return kilni_cli_json_write(c->call->results, object, error);
}

static bool run_compile(const kilni_cli_call_t* call,
                        kilni_cli_error_t* error) {
  compile_t* c = calloc(1, sizeof(*c));
  if (c == NULL)
    return kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "no memory for the options");
  c->call = call;
  bool ok = read_call(c, error) && compile(c, error) &&
            write_outputs(c, error) && report(c, error);
  kiln_code_release(c->code);
  kiln_compile_result_release(c->result);
  kiln_compiler_release(c->compiler);
  kiln_runtime_release(c->runtime);
  kiln_cache_release(c->cache);
  kilni_cli_buffer_deinit(&c->source);
  free(c);
  return ok;
}

static const kilni_cli_option_t OPTIONS[] = {
    {"out-file", "FILE", "Where the code goes; -o FILE is the same. Required.",
     false, "file"},
    {"output", "ptx|cubin|ltoir|relocatable",
     "What is made. Default: what the end of the output's name says, else ptx.",
     false, "ptx cubin ltoir relocatable"},
    {"arch", "ARCH",
     "The architecture, such as sm_90 or compute_80. Required for machine "
     "code; else compute_75, which every later GPU can load.",
     false, NULL},
    {"define", "NAME[=VALUE]", "A macro.", true, NULL},
    {"include", "DIR", "A folder for #include.", true, "file"},
    {"pre-include", "FILE", "A header that goes first.", true, "file"},
    {"std", "DIALECT", "The language, such as c++17.", false,
     "c++11 c++14 c++17 c++20"},
    {"name", "EXPRESSION",
     "An expression, such as add<float>, that is compiled and whose name in "
     "the code is said with --json.",
     true, NULL},
    {"lineinfo", NULL, "Keep line numbers in the code.", false, NULL},
    {"debug", NULL, "Make code for a debugger.", false, NULL},
    {"option", "TEXT",
     "An option as the compiler takes it: --option=--ftz=true.", true, NULL},
    {"depfile", "FILE",
     "Write what the output depends on, as make and ninja read it: the files "
     "that are or may be included, of both sides of every condition.",
     false, "file"},
    {"cache-dir", "DIR", "The folder of the cache. Default: as kiln cache.",
     false, "file"},
    {"no-cache", NULL, "Neither look into the cache nor fill it.", false, NULL},
    {"json", NULL, "Write the result, or the error, as JSON.", false, NULL},
    {"help", NULL, "Print this help.", false, NULL},
};

const kilni_cli_command_t kilni_cli_command_compile = {
    "compile",
    "FILE",
    "Compile a source to device code.",
    "FILE is CUDA C++ (.cu, by NVRTC), NVVM IR (.ll or .bc, by libNVVM) or PTX "
    "(.ptx, by nvJitLink, to a cubin). No GPU and no driver is needed. What "
    "the compiler says goes to standard "
    "error. The output appears whole or not at all.\n"
    "The result is kept, and taken from there where source, options, every "
    "included file and the compiler are as they were; then no compiler is "
    "loaded.",
    OPTIONS,
    sizeof(OPTIONS) / sizeof(OPTIONS[0]),
    1,
    1,
    "file",
    "kiln compile saxpy.cu -o saxpy.cubin --arch sm_90 --depfile saxpy.d",
    run_compile,
};
