// SPDX-License-Identifier: Apache-2.0
//
// compile: one compilation, from its arguments to its result.
#include <string.h>

#include "base/log_line.h"
#include "base/options.h"
#include "base/status_make.h"
#include "base/str.h"
#include "compile/compile_hint.h"
#include "compile/compile_inside.h"
#include "image/image.h"

// What one compilation takes beside what its source makes it take.
static const uint64_t kLeastBytes = 64u << 20;
enum {
  BYTES_PER_BYTE = 32,
  ASSUMED_HEADER_BYTES = 3 << 20,  // of included files that were not searched
                                   // for
};

// ---- Errors ----

static bool contains(kiln_string_view_t text, const char* word) {
  size_t length = strlen(word);
  for (size_t i = 0; i + length <= text.size; i++) {
    if (memcmp(text.data + i, word, length) == 0) return true;
  }
  return false;
}

// The first line of the log that speaks of an error, else its first line.
static kiln_string_view_t source_first_error(const char* log) {
  kiln_string_view_t rest = kilni_base_sv(log);
  kiln_string_view_t first = {NULL, 0};
  kiln_string_view_t line;
  while (kilni_base_sv_split(&rest, '\n', &line)) {
    if (line.size == 0) continue;
    if (contains(line, "error")) return line;
    if (first.size == 0) first = line;
  }
  return first;
}

// The error's own text, or its cause.
static kiln_status_t say_refusal(kiln_string_view_t line,
                                 const kilni_compile_job_t* job,
                                 char fix[KILNI_HINT_BYTES]) {
  char message[KILNI_HINT_BYTES] = "";
  fix[0] = 0;
  if (job != NULL) {
    const kiln_compiler_t* compiler = job->compiler;
    bool own = job->options->toolkit_include != KILN_SWITCH_OFF;
    kilni_compile_refusal_t refusal = {
        .error = line,
        .source = job->source,
        .name = job->name,
        .line = kiln_compiler_version(compiler),
        .has_cccl = own && compiler->has_cccl,
        .has_toolkit = own && compiler->include_dir[0] != 0,
        .folders = {compiler->include_dir, compiler->include_dir2},
    };
    (void)kilni_compile_hint(&refusal, message, fix);
  }
  if (message[0] == 0) {
    return KILNI_FAIL(COMPILE_FAILED, "%.*s", KILNI_SV(line));
  }
  return KILNI_ANNOTATE(KILNI_FAIL(COMPILE_FAILED, "%s", message), "%.*s",
                        KILNI_SV(line));
}

kiln_status_t kilni_compile_refused(kiln_status_t native, bool of_source,
                                    const char* log,
                                    const kilni_compile_job_t* job) {
  char hint[KILNI_HINT_BYTES];
  kiln_string_view_t line = source_first_error(log != NULL ? log : "");
  if (line.size == 0) return native;
  if (!of_source) return KILNI_ANNOTATE(native, "%.*s", KILNI_SV(line));
  kiln_status_t status = say_refusal(line, job, hint);
  kiln_status_native_t part;
  if (kiln_status_native(native, &part)) {
    status = kilni_base_status_with_native(status, part.domain, part.number,
                                           part.name);
  }
  const char* fix = hint[0] != 0 ? hint : kiln_status_fix(native);
  status = kilni_base_status_with_fix(
      status, "%s",
      fix ? fix : "correct the source; the whole log is in the result");
  kiln_status_free(native);
  return status;
}

bool kilni_compile_is_cancelled(const kiln_compile_options_t* options) {
  return options->cancelled != NULL &&
         options->cancelled(options->cancelled_user);
}

kiln_status_t kilni_compile_cancelled(const kilni_compile_job_t* job) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(CANCELLED, "the compilation of \"%s\" was cancelled",
                 job->name),
      "compile it again; `cancelled` of its options requested this");
}

// ---- One compilation ----

kiln_status_t kilni_compile_take(const kilni_compile_job_t* job,
                                 kiln_bytes_view_t bytes,
                                 const kiln_code_name_t* names,
                                 uint32_t count) {
  kiln_compile_result_t* result = job->result;
  kiln_code_options_t how = kiln_code_options_default();
  how.format = result->format;
  how.name = job->name;
  how.arch = result->arch;
  how.names = names;
  how.name_count = count;
  how.producer_line = kiln_compiler_version(job->compiler);
  how.allocator = &result->allocator;
  return kilni_image_code_create(bytes, &how, result->keep, &result->code);
}

static kiln_status_t add_include_dirs(const kilni_compile_job_t* job,
                                      kilni_compile_line_t* line) {
  const kiln_compiler_t* compiler = job->compiler;
  const kiln_compile_options_t* options = job->options;
  for (uint32_t i = 0; i < options->define_count; i++) {
    KILNI_RETURN_IF_ERROR(
        kilni_compile_line_add(line, "--define-macro=", options->defines[i]));
  }
  for (uint32_t i = 0; i < options->include_dir_count; i++) {
    KILNI_RETURN_IF_ERROR(kilni_compile_line_add(
        line, "--include-path=", options->include_dirs[i]));
  }
  if (options->toolkit_include == KILN_SWITCH_OFF) return kiln_ok();
  if (compiler->include_dir[0] != 0) {
    KILNI_RETURN_IF_ERROR(
        kilni_compile_line_add(line, "--include-path=", compiler->include_dir));
  }
  if (compiler->include_dir2[0] == 0) return kiln_ok();
  return kilni_compile_line_add(line,
                                "--include-path=", compiler->include_dir2);
}

static kiln_status_t plan_line(const kilni_compile_job_t* job) {
  kilni_compile_line_t* line = &job->result->line;
  const kiln_compile_options_t* options = job->options;
  bool nvvm = job->compiler->kind == KILN_COMPILER_KIND_NVVM;
  if (kilni_compile_raw_arch(options) == NULL) {
    KILNI_RETURN_IF_ERROR(kilni_compile_line_add(
        line, nvvm ? "-arch=" : "--gpu-architecture=", job->result->arch));
  }
  if (nvvm) {
    KILNI_RETURN_IF_ERROR(kilni_compile_line_add_nvvm(line, options));
  } else {
    KILNI_RETURN_IF_ERROR(kilni_compile_line_add_nvrtc(
        line, options, kiln_compiler_version(job->compiler)));
    KILNI_RETURN_IF_ERROR(add_include_dirs(job, line));
  }
  for (uint32_t i = 0; i < options->option_count; i++) {
    KILNI_RETURN_IF_ERROR(
        kilni_compile_line_add(line, "", options->options[i]));
  }
  return kiln_ok();
}

// Plans: the architecture and the options of the result.
static kiln_status_t plan(const kilni_compile_job_t* job) {
  const kiln_compile_options_t* options = job->options;
  uint32_t output = job->result->format;
  if (job->compiler->kind == KILN_COMPILER_KIND_NVVM) {
    if (output == KILN_CODE_FORMAT_CUBIN ||
        output == KILN_CODE_FORMAT_RELOCATABLE) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(UNSUPPORTED, "libNVVM cannot make %s",
                     kiln_code_format_name(output)),
          "make PTX or LTO-IR, and link that");
    }
  } else if (options->module_count != 0 || options->device_library != 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED, "NVRTC has no option for `%s`",
                   options->module_count != 0 ? "modules" : "device_library"),
        "leave it at its default; it is for libNVVM");
  }
  KILNI_RETURN_IF_ERROR(
      kilni_compile_arch(job->compiler, options, job->result));
  return plan_line(job);
}

// Whether a text may include anything; also true for an #include in a comment.
static bool includes(kiln_string_view_t text) {
  static const char kWord[] = "include";
  const char* at = text.data;
  const char* end = text.data != NULL ? text.data + text.size : NULL;
  while (at != NULL && at < end &&
         (at = memchr(at, '#', (size_t)(end - at))) != NULL) {
    at++;
    while (at < end && (*at == ' ' || *at == '\t')) at++;
    if ((size_t)(end - at) >= sizeof(kWord) - 1 &&
        memcmp(at, kWord, sizeof(kWord) - 1) == 0) {
      return true;
    }
  }
  return false;
}

// NVRTC takes 28 to 32 bytes for each byte that it reads, of headers above all:
// cooperative_groups.h or a header of libcu++ brings 3 to 4 million.
uint64_t kilni_compile_estimate(const kilni_compile_job_t* job) {
  uint64_t bytes = job->source.size + job->header_bytes;
  if (job->header_bytes == 0 && includes(job->source)) {
    bytes += ASSUMED_HEADER_BYTES;
  }
  for (uint32_t i = 0; i < job->options->header_count; i++) {
    bytes += job->options->headers[i].bytes.size;
  }
  for (uint32_t i = 0; i < job->options->module_count; i++) {
    bytes += job->options->modules[i].bytes.size;
  }
  return kLeastBytes + bytes * BYTES_PER_BYTE;
}

kiln_status_t kilni_compile_run(const kilni_compile_job_t* job) {
  kiln_compiler_t* compiler = job->compiler;
  KILNI_RETURN_IF_ERROR(plan(job));
  if (job->result->note != NULL) {
    KILNI_LOG(&compiler->host->log, WARNING, "%s: %s", job->name,
              job->result->note);
  }
  uint64_t bytes = kilni_compile_estimate(job);
  if (!kilni_compile_gate_enter(&compiler->gate, bytes, job->options->cancelled,
                                job->options->cancelled_user)) {
    return kilni_compile_cancelled(job);
  }
  kiln_status_t status =
      kilni_compile_is_cancelled(job->options)    ? kilni_compile_cancelled(job)
      : compiler->kind == KILN_COMPILER_KIND_NVVM ? kilni_compile_nvvm(job)
                                                  : kilni_compile_nvrtc(job);
  kilni_compile_gate_leave(&compiler->gate, bytes);
  return status;
}

// ---- Public ----

static kiln_status_t compile_source_check_source(
    const kiln_compiler_t* compiler, kiln_string_view_t source) {
  KILNI_CHECK_ARGUMENT(source.data != NULL || source.size == 0, "source");
  if (source.size > KILNI_COMPILE_MAX_SOURCE_BYTES) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "the source has %zu bytes, more than %u",
                   source.size, (unsigned)KILNI_COMPILE_MAX_SOURCE_BYTES),
        "split it into several");
  }
  if (compiler->kind == KILN_COMPILER_KIND_NVVM) return kiln_ok();
  const char* nul = source.size ? memchr(source.data, 0, source.size) : NULL;
  if (nul == NULL || nul == source.data + source.size - 1) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "the source has a NUL at byte %zu",
                 (size_t)(nul - source.data)),
      "check that this is CUDA C++ text and not a binary file");
}

typedef kiln_status_t (*job_fn_t)(const kilni_compile_job_t* job);

// Runs `fn` with a result to fill; what leaves none is a caller's mistake.
static kiln_status_t with_result(kilni_compile_job_t* job, job_fn_t fn,
                                 kiln_compile_result_t** out_result) {
  kiln_compile_result_t* result = NULL;
  KILNI_RETURN_IF_ERROR(kilni_compile_result_create(job->compiler, &result));
  job->result = result;
  result->format = job->options->output ? job->options->output
                                        : (uint32_t)KILN_CODE_FORMAT_PTX;
  kiln_status_t status = fn(job);
  kiln_status_code_t code = kiln_status_code(status);
  if (code == KILN_STATUS_OUT_OF_MEMORY ||
      code == KILN_STATUS_INVALID_ARGUMENT ||
      code == KILN_STATUS_LIMIT_EXCEEDED || code == KILN_STATUS_INVALID_STATE) {
    kiln_compile_result_release(result);
    return status;
  }
  if (!kiln_status_is_ok(status)) {
    kiln_code_release(result->code);
    result->code = NULL;
  }
  *out_result = result;
  return status;
}

static kiln_status_t source_read_options(kiln_compiler_t* compiler,
                                         const kiln_compile_options_t* options,
                                         kiln_compile_options_t* out_given) {
  KILNI_CHECK_ARGUMENT(compiler != NULL, "compiler");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(compiler->host));
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_compile_options_t, out_given));
  return kilni_compile_check_options(out_given);
}

static kiln_status_t plan_ready(const kilni_compile_job_t* job) {
  kilni_compile_job_t ready = *job;
  KILNI_RETURN_IF_ERROR(
      kilni_compile_compiler_ready(job->compiler, &ready.compiler));
  return plan(&ready);
}

kiln_status_t kiln_compiler_compile(kiln_compiler_t* compiler,
                                    kiln_string_view_t source,
                                    const kiln_compile_options_t* options,
                                    kiln_compile_result_t** out_result) {
  KILNI_CHECK_ARGUMENT(out_result != NULL, "out_result");
  *out_result = NULL;
  kiln_compile_options_t given;
  KILNI_RETURN_IF_ERROR(source_read_options(compiler, options, &given));
  KILNI_RETURN_IF_ERROR(compile_source_check_source(compiler, source));
  bool nvvm = compiler->kind == KILN_COMPILER_KIND_NVVM;
  kilni_compile_job_t job = {compiler, source,          &given,
                             NULL,     given.file_name, 0};
  if (job.name == NULL) job.name = nvvm ? "module.ll" : "kernel.cu";
  size_t size = source.size;
  if (!nvvm && size > 0 && source.data[size - 1] == 0) job.source.size--;
  return with_result(&job, kilni_compile_cached, out_result);
}

kiln_status_t kiln_compiler_plan(kiln_compiler_t* compiler,
                                 const kiln_compile_options_t* options,
                                 kiln_compile_result_t** out_result) {
  KILNI_CHECK_ARGUMENT(out_result != NULL, "out_result");
  *out_result = NULL;
  kiln_compile_options_t given;
  KILNI_RETURN_IF_ERROR(source_read_options(compiler, options, &given));
  kilni_compile_job_t job = {compiler, {NULL, 0}, &given, NULL, "kernel.cu", 0};
  return with_result(&job, plan_ready, out_result);
}
