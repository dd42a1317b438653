// SPDX-License-Identifier: Apache-2.0
//
// cli: one file compiled as `kiln compile` does: through the cache.
#include "cli/compile_job.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli_code_name.h"
#include "cli/cli_progress.h"
#include "cli/cli_report.h"

#define MAX_SOURCE_BYTES ((size_t)256 << 20)

// ---- The request ----

static bool find_kind(kilni_cli_compile_t* c, kilni_cli_error_t* error) {
  if (kilni_cli_ends_in(c->file, ".cu")) {
    c->kind = KILN_COMPILER_KIND_NVRTC;
    return true;
  }
  if (kilni_cli_ends_in(c->file, ".ll") || kilni_cli_ends_in(c->file, ".bc")) {
    c->kind = KILN_COMPILER_KIND_NVVM;
    return true;
  }
  if (kilni_cli_ends_in(c->file, ".kiln")) {
    return kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED,
                          "name an output: `kiln compile FILE.kiln -o "
                          "FILE.ptx`; the result is not cached",
                          "compiling the kiln file \"%s\"", c->file);
  }
  if (kilni_cli_ends_in(c->file, ".ptx")) {
    c->is_ptx = true;
    return true;
  }
  return kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED,
                        "name it .cu for CUDA C++, .ll or .bc for NVVM IR, "
                        ".ptx for PTX",
                        "\"%s\": its name does not imply a format", c->file);
}

static bool find_output(kilni_cli_compile_t* c, const char* out,
                        kilni_cli_error_t* error) {
  static const uint32_t FORMATS[] = {
      KILN_CODE_FORMAT_PTX, KILN_CODE_FORMAT_CUBIN, KILN_CODE_FORMAT_LTOIR,
      KILN_CODE_FORMAT_RELOCATABLE};
  const char* word = kilni_cli_option_value(c->call, "output");
  uint32_t format = 0;
  if (word == NULL && out != NULL) format = kilni_cli_code_name_format(out);
  for (size_t i = 0; word != NULL && i < sizeof(FORMATS) / sizeof(FORMATS[0]);
       i++) {
    const char* name = kiln_code_format_name(FORMATS[i]);
    if (strcmp(word, name) == 0) format = FORMATS[i];
  }
  if (word != NULL && format == 0) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "use ptx, cubin, ltoir or relocatable",
                          "no output is called \"%s\"", word);
  }
  if (format != 0) c->asked.options.output = format;
  if (format == 0) {
    format = c->is_ptx ? (uint32_t)KILN_CODE_FORMAT_CUBIN
                       : (uint32_t)KILN_CODE_FORMAT_PTX;
  }
  return kilni_cli_code_name_check(out, format, word != NULL, error);
}

bool kilni_cli_compile_read(kilni_cli_compile_t* job,
                            const kilni_cli_call_t* call, const char* file,
                            const char* out, kilni_cli_error_t* error) {
  memset(job, 0, sizeof(*job));
  job->call = call;
  job->file = file;
  if (!find_kind(job, error) ||
      !kilni_cli_source_read(&job->asked, call, NULL, error)) {
    return false;
  }
  job->asked.options.file_name = file;
  return find_output(job, out, error) &&
         kilni_cli_buffer_read_some(&job->source, file, MAX_SOURCE_BYTES,
                                    error);
}

void kilni_cli_compile_note_name(const char* out, uint32_t format) {
  if (kilni_cli_code_name_format(out) != 0) return;
  kilni_cli_note("wrote %s (%s)", out, kiln_code_format_name(format));
}

bool kilni_cli_compile_is_asked(const kilni_cli_call_t* call) {
  return kilni_cli_source_asked(call) != NULL ||
         kilni_cli_option_value(call, "define") != NULL ||
         kilni_cli_option_value(call, "output") != NULL;
}

// ---- Compiling ----

// A log is the compiler's own text, which may quote the source.
static void show_text(const char* text) {
  size_t size = strlen(text);
  if (size == 0) return;
  kilni_cli_print_text(stderr, text, size);
  if (text[size - 1] != '\n') (void)fputc('\n', stderr);
}

static void show_log(const kilni_cli_compile_t* c) {
  show_text(kiln_compile_result_log(c->result));
  if (kiln_compile_result_note(c->result)[0] != 0) {
    kilni_cli_note("%s", kiln_compile_result_note(c->result));
  }
}

static void take_reason(kilni_cli_compile_t* c, uint32_t state,
                        const char* reason) {
  c->cache = state;
  kilni_cli_copy_text(c->cache_reason, sizeof(c->cache_reason), reason);
  if (state == KILN_COMPILE_CACHE_UNCACHEABLE) {
    kilni_cli_note("%s is compiled again each time: %s", c->file,
                   c->cache_reason);
  }
}

static bool compile_source(kilni_cli_compile_t* c, kiln_runtime_t* runtime,
                           kilni_cli_error_t* error) {
  kiln_compiler_options_t options = kiln_compiler_options_default();
  options.kind = c->kind;
  options.lazy =
      c->asked.options.cache != NULL ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
  if (!kilni_cli_check(
          error, kiln_runtime_open_compiler(runtime, &options, &c->compiler))) {
    return false;
  }
  kiln_string_view_t source = {(const char*)c->source.data, c->source.size};
  kiln_status_t status =
      kiln_compiler_compile(c->compiler, source, &c->asked.options, &c->result);
  if (c->result != NULL) show_log(c);
  if (!kilni_cli_check(error, status)) return false;
  take_reason(c, kiln_compile_result_cache(c->result),
              kiln_compile_result_cache_reason(c->result));
  c->code = kiln_compile_result_code(c->result);
  kiln_code_retain(c->code);
  return true;
}

// Options with a meaning only for a compiler.
static bool check_ptx(const kilni_cli_compile_t* c, kilni_cli_error_t* error) {
  static const char* const WORDS[] = {"define", "include", "pre-include", "std",
                                      "name"};
  for (size_t i = 0; i < sizeof(WORDS) / sizeof(WORDS[0]); i++) {
    if (kilni_cli_option_value(c->call, WORDS[i]) != NULL) {
      return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, "leave it out",
                            "--%s has no meaning for PTX", WORDS[i]);
    }
  }
  return true;
}

static bool link_ptx(kilni_cli_compile_t* c, kiln_runtime_t* runtime,
                     kilni_cli_error_t* error) {
  kiln_linker_t* linker = NULL;
  kiln_link_t* link = NULL;
  kiln_link_options_t options = kiln_link_options_default();
  options.output = c->asked.options.output != 0
                       ? c->asked.options.output
                       : (uint32_t)KILN_CODE_FORMAT_CUBIN;
  options.arch = c->asked.options.arch;
  options.lineinfo = c->asked.options.lineinfo;
  options.debug = c->asked.options.debug;
  options.extra = c->asked.options.options;
  options.extra_count = c->asked.options.option_count;
  options.name = c->file;
  options.cache = c->asked.options.cache;
  kiln_bytes_view_t bytes = {c->source.data, c->source.size};
  bool ok =
      check_ptx(c, error) &&
      kilni_cli_check(error,
                      kiln_runtime_open_linker(runtime, NULL, &linker)) &&
      kilni_cli_check(error, kiln_link_create(linker, &options, &link)) &&
      kilni_cli_check(error, kiln_link_add_bytes(
                                 link, bytes, KILN_CODE_FORMAT_PTX, c->file)) &&
      kilni_cli_check(error, kiln_link_finish(link, &c->code));
  if (link != NULL) {
    show_text(kiln_link_log(link, KILN_LINK_LOG_INFO));
    show_text(kiln_link_log(link, KILN_LINK_LOG_ERROR));
  }
  if (ok) take_reason(c, kiln_link_cache(link), kiln_link_cache_reason(link));
  kiln_link_release(link);
  kiln_linker_release(linker);
  return ok;
}

bool kilni_cli_compile_make(kilni_cli_compile_t* job, kiln_runtime_t* runtime,
                            kiln_cache_t* cache, kilni_cli_error_t* error) {
  job->asked.options.cache = cache;
  kilni_cli_progress_t progress;
  kilni_cli_progress_start(&progress, "compiling %s", job->file);
  bool ok = job->is_ptx ? link_ptx(job, runtime, error)
                        : compile_source(job, runtime, error);
  kilni_cli_progress_stop(&progress);
  if (!ok) kilni_cli_error_name_arch(error);
  return ok;
}

bool kilni_cli_compile_check_headers(const kiln_compile_result_t* result,
                                     const kilni_cli_files_t* files,
                                     kilni_cli_error_t* error) {
  uint32_t count =
      result != NULL ? kiln_compile_result_header_count(result) : 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!kilni_cli_files_check_input(files,
                                     kiln_compile_result_header(result, i),
                                     "an included header", error)) {
      return false;
    }
  }
  return true;
}

void kilni_cli_compile_deinit(kilni_cli_compile_t* job) {
  kiln_code_release(job->code);
  kiln_compile_result_release(job->result);
  kiln_compiler_release(job->compiler);
  kilni_cli_buffer_deinit(&job->source);
  kilni_cli_source_deinit(&job->asked);
}
