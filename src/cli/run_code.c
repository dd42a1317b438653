// SPDX-License-Identifier: Apache-2.0
//
// cli: makes a file loadable by a device: compiled and linked if necessary, or
// taken from the cache.
#define _POSIX_C_SOURCE 200809L
#include "cli/run_code.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_clock.h"
#include "cli/cli_limit.h"
#include "cli/cli_progress.h"
#include "cli/cli_report.h"
#include "cli/compile_job.h"
#include "kiln/compile.h"
#include "kiln/runtime.h"

#define MAX_CODE_BYTES ((size_t)1 << 30)

enum { ARCH_BYTES = 32, HEAD_BYTES = 8192 };

static void note_text(const char* text) {
  if (text == NULL || text[0] == 0) return;
  size_t size = strlen(text);
  kilni_cli_print_text(stderr, text, size);
  if (text[size - 1] != '\n') (void)fputc('\n', stderr);
}

static bool is_gpu(const kilni_cli_code_t* c) {
  return kiln_device_info(c->device)->kind == KILN_DEVICE_KIND_CUDA;
}

static uint32_t arch_number(const kilni_cli_code_t* c) {
  const kiln_device_info_t* info = kiln_device_info(c->device);
  return info->compute_major * 10 + info->compute_minor;
}

// ---- A step with a limit ----

// A running step. On the heap, as it may outlive the wait for it.
typedef struct step_t {
  kiln_compiler_t* compiler;
  kiln_compile_options_t options;
  kiln_compile_result_t* result;
  kiln_link_t* link;
  kiln_code_t* code;
  kiln_status_t status;
  char arch[ARCH_BYTES];
  kilni_cli_buffer_t source;  // that the compiler reads
} step_t;

static step_t* step_create(const kilni_cli_code_t* c,
                           kilni_cli_error_t* error) {
  step_t* step = calloc(1, sizeof(*step));
  if (step == NULL) {
    (void)kilni_cli_fail(error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                         "no memory to load \"%s\"", c->file);
  }
  return step;
}

static void step_free(step_t* step) {
  kiln_compile_result_release(step->result);
  kiln_link_release(step->link);
  kiln_code_release(step->code);
  kiln_compiler_release(step->compiler);
  kilni_cli_buffer_deinit(&step->source);
  free(step);
}

// False where the limit has passed: the step still runs, and nothing of it can
// be freed.
static bool step_run(kilni_cli_code_t* c, const char* what,
                     void (*work)(void* user), step_t* step,
                     kilni_cli_error_t* error) {
  kilni_cli_progress_t progress;
  kilni_cli_progress_start(&progress, "%s %s", what, c->file);
  bool done = kilni_cli_limit_run(c->time_limit_ns, work, step);
  kilni_cli_progress_stop(&progress);
  if (done) return true;
  c->left = true;
  return kilni_cli_fail(error, KILN_STATUS_DEVICE_LOST,
                        "give it more time with --time-limit",
                        "%s \"%s\" had not ended after %.3g s", what, c->file,
                        (double)c->time_limit_ns * 1e-9);
}

// ---- Compiling ----

static void do_compile(void* user) {
  step_t* step = user;
  kiln_string_view_t source = {(const char*)step->source.data,
                               step->source.size};
  step->status = kiln_compiler_compile(step->compiler, source, &step->options,
                                       &step->result);
}

static bool open_compiler(const kilni_cli_code_t* c, step_t* step,
                          kilni_cli_error_t* error) {
  kiln_compiler_options_t options = kiln_compiler_options_default();
  options.lazy = c->cache != NULL ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
  return kilni_cli_check(
      error, kiln_runtime_open_compiler(c->runtime, &options, &step->compiler));
}

static void take_compiled(kilni_cli_code_t* c, const step_t* step) {
  c->compile_cache = kiln_compile_result_cache(step->result);
  kilni_cli_copy_text(c->compile_reason, sizeof(c->compile_reason),
                      kiln_compile_result_cache_reason(step->result));
  if (c->compile_cache == KILN_COMPILE_CACHE_UNCACHEABLE) {
    kilni_cli_note("%s is compiled again each time: %s", c->file,
                   c->compile_reason);
  }
  kiln_code_release(c->text);
  c->text = kiln_compile_result_code(step->result);
  kiln_code_retain(c->text);
}

static bool run_code_compile(kilni_cli_code_t* c, uint32_t format,
                             kilni_cli_error_t* error) {
  step_t* step = step_create(c, error);
  if (step == NULL) return false;
  (void)snprintf(step->arch, sizeof(step->arch), "%s_%" PRIu32,
                 format == KILN_CODE_FORMAT_CUBIN ? "sm" : "compute",
                 arch_number(c));
  step->options = c->asked != NULL ? *c->asked : kiln_compile_options_default();
  step->options.output = format;
  step->options.file_name = c->file;
  // This code is not kept, so only its line table can locate a fault.
  if (step->options.lineinfo == KILN_SWITCH_DEFAULT) {
    step->options.lineinfo = KILN_SWITCH_ON;
  }
  if (step->options.arch == NULL) step->options.arch = step->arch;
  // Without a cache the headers are not listed otherwise.
  if (c->files != NULL && kilni_cli_files_replaces(c->files)) {
    step->options.list_headers = KILN_SWITCH_ON;
  }
  step->options.cache = c->cache;
  bool ok = kilni_cli_buffer_read_some(&step->source, c->file, MAX_CODE_BYTES,
                                       error) &&
            open_compiler(c, step, error) &&
            step_run(c, "compiling", do_compile, step, error);
  if (c->left) return false;
  if (step->result != NULL) note_text(kiln_compile_result_log(step->result));
  if (ok && !kilni_cli_check(error, step->status)) {
    kilni_cli_error_name_arch(error);
    ok = false;
  }
  ok = ok && (c->files == NULL ||
              kilni_cli_compile_check_headers(step->result, c->files, error));
  if (ok) take_compiled(c, step);
  step_free(step);
  return ok;
}

// ---- Linking ----

static void do_link(void* user) {
  step_t* step = user;
  step->status = kiln_link_finish(step->link, &step->code);
}

// The architecture that PTX asks for where it is a GPU's own, "sm_90a"; else
// the device's.
static void find_arch(const kilni_cli_code_t* c, char out[ARCH_BYTES]) {
  static const char WORD[] = "\n.target";
  kiln_bytes_view_t bytes = kiln_code_bytes(c->text);
  char head[HEAD_BYTES];
  char own[ARCH_BYTES];
  size_t size = bytes.size < sizeof(head) - 1 ? bytes.size : sizeof(head) - 1;
  (void)snprintf(out, ARCH_BYTES, "sm_%" PRIu32, arch_number(c));
  if (kiln_code_format(c->text) != KILN_CODE_FORMAT_PTX) return;
  memcpy(head, bytes.data, size);
  head[size] = 0;
  const char* at = strstr(head, WORD);
  if (at == NULL) return;
  at += sizeof(WORD) - 1;
  at += strspn(at, " \t");
  for (const char* end = "af"; *end != 0; end++) {
    (void)snprintf(own, sizeof(own), "%s%c", out, *end);
    if (strncmp(at, own, strlen(own)) != 0) continue;
    memcpy(out, own, sizeof(own));
    return;
  }
}

static bool run_code_begin_link(const kilni_cli_code_t* c, step_t* step,
                                kilni_cli_error_t* error) {
  kiln_linker_t* linker = NULL;
  kiln_linker_options_t how = kiln_linker_options_default();
  kiln_link_options_t options = kiln_link_options_default();
  how.device = c->device;
  find_arch(c, step->arch);
  options.arch = step->arch;
  options.name = c->file;
  options.cache = c->cache;
  bool ok =
      kilni_cli_check(error,
                      kiln_runtime_open_linker(c->runtime, &how, &linker)) &&
      kilni_cli_check(error, kiln_link_create(linker, &options, &step->link)) &&
      kilni_cli_check(error, kiln_link_add(step->link, c->text));
  kiln_linker_release(linker);
  return ok;
}

// `says`: whether the user sees the linker's log.
static bool run_code_link_text(kilni_cli_code_t* c, bool says,
                               kilni_cli_error_t* error) {
  step_t* step = step_create(c, error);
  if (step == NULL) return false;
  uint64_t began = kilni_cli_now_ns();
  bool ok = run_code_begin_link(c, step, error) &&
            step_run(c, "linking", do_link, step, error);
  if (c->left) return false;
  ok = ok && kilni_cli_check(error, step->status);
  if (ok) c->times.link_ns = kilni_cli_now_ns() - began;
  if (step->link != NULL && says) {
    note_text(kiln_link_log(step->link, KILN_LINK_LOG_INFO));
    note_text(kiln_link_log(step->link, KILN_LINK_LOG_ERROR));
  }
  if (ok) {
    c->link_cache = kiln_link_cache(step->link);
    c->link_reason = kiln_link_cache_reason(step->link);
    c->code = step->code;
    step->code = NULL;
  }
  step_free(step);
  return ok;
}

// ---- All together ----

// The file as it is.
static bool run_code_read_text(kilni_cli_code_t* c, kilni_cli_error_t* error) {
  kilni_cli_buffer_t file = {0};
  if (!kilni_cli_buffer_read_some(&file, c->file, MAX_CODE_BYTES, error)) {
    return false;
  }
  kiln_code_options_t options = kiln_code_options_default();
  options.name = c->file;
  options.format = c->kind == KILNI_CLI_CODE_PTX     ? KILN_CODE_FORMAT_PTX
                   : c->kind == KILNI_CLI_CODE_CUBIN ? KILN_CODE_FORMAT_CUBIN
                                                     : KILN_CODE_FORMAT_LTOIR;
  kiln_bytes_view_t bytes = {file.data, file.size};
  bool ok = kilni_cli_check(error, kiln_code_create(bytes, &options, &c->text));
  kilni_cli_buffer_deinit(&file);
  return ok;
}

// The newest PTX that the device's driver is sure to read; 0: any.
static uint32_t newest_isa(const kilni_cli_code_t* c) {
  if (!is_gpu(c)) return 0;
  return kiln_compat_line_ptx_isa(kiln_device_info(c->device)->driver_version /
                                  10 * 10);
}

// The program as PTX for this device.
static bool lower_program(kilni_cli_code_t* c, kilni_cli_error_t* error) {
  kiln_program_lower_options_t how = kiln_program_lower_options_default();
  how.sm = arch_number(c);
  how.newest_isa = newest_isa(c);
  how.max_ulp = c->max_ulp;
  if (!kilni_cli_check(error,
                       kiln_program_lower(c->program, &how, &c->lowered))) {
    return false;
  }
  kiln_string_view_t text = kiln_program_code_text(c->lowered);
  kiln_bytes_view_t bytes = {(const uint8_t*)text.data, text.size};
  kiln_code_options_t options = kiln_code_options_default();
  options.name = c->file;
  options.format = KILN_CODE_FORMAT_PTX;
  return kilni_cli_check(error, kiln_code_create(bytes, &options, &c->text));
}

static bool make_text(kilni_cli_code_t* c, kilni_cli_error_t* error) {
  if (c->kind != KILNI_CLI_CODE_SOURCE && c->kind != KILNI_CLI_CODE_PROGRAM) {
    return run_code_read_text(c, error);
  }
  uint64_t began = kilni_cli_now_ns();
  bool ok = c->kind == KILNI_CLI_CODE_SOURCE
                ? run_code_compile(c, KILN_CODE_FORMAT_PTX, error)
                : lower_program(c, error);
  c->times.lower_ns += kilni_cli_now_ns() - began;
  return ok;
}

static bool run_code_take_text(kilni_cli_code_t* c) {
  c->code = c->text;
  kiln_code_retain(c->code);
  return true;
}

bool kilni_cli_code_make(kilni_cli_code_t* code, kilni_cli_error_t* error) {
  code->link_reason = "";
  if (!make_text(code, error)) return false;
  if (code->kind == KILNI_CLI_CODE_LTOIR) {
    return run_code_link_text(code, true, error);
  }
  // Without a place on disk the next start would not find it.
  bool keeps = code->cache != NULL && kiln_cache_directory(code->cache)[0] != 0;
  if (!keeps || !is_gpu(code) ||
      kiln_code_format(code->text) != KILN_CODE_FORMAT_PTX) {
    return run_code_take_text(code);
  }
  // If linking fails, the driver may still load it, or report better why not.
  kilni_cli_error_t ignored;
  memset(&ignored, 0, sizeof(ignored));
  if (run_code_link_text(code, false, &ignored)) return true;
  if (code->left) *error = ignored;
  return !code->left && run_code_take_text(code);
}

// Makes `text` and `code` anew, as machine code of the compiler's own: for a
// driver that is too old for the compiler's PTX.
static bool make_cubin(kilni_cli_code_t* code, kilni_cli_error_t* error) {
  kiln_code_release(code->code);
  kiln_image_release(code->image);
  code->code = NULL;
  code->image = NULL;
  code->is_image_tried = false;
  uint64_t began = kilni_cli_now_ns();
  bool ok = run_code_compile(code, KILN_CODE_FORMAT_CUBIN, error) &&
            run_code_take_text(code);
  code->times.lower_ns += kilni_cli_now_ns() - began;
  return ok;
}

// ---- Loading ----

static bool run_code_is_ptx(const kiln_code_t* code) {
  return code != NULL && kiln_code_format(code) == KILN_CODE_FORMAT_PTX;
}

const kiln_image_t* kilni_cli_code_image(kilni_cli_code_t* code) {
  kiln_code_t* ptx = run_code_is_ptx(code->text)   ? code->text
                     : run_code_is_ptx(code->code) ? code->code
                                                   : NULL;
  if (code->is_image_tried || ptx == NULL) return code->image;
  code->is_image_tried = true;
  kiln_status_free(kiln_code_image(ptx, &code->image));
  return code->image;
}

static bool run_code_load(kilni_cli_code_t* code, kiln_module_t** out_module,
                          kilni_cli_error_t* error) {
  kiln_module_options_t options = kiln_module_options_default();
  options.name = code->file;
  if (run_code_is_ptx(code->text)) options.described_by = code->text;
  kiln_load_log_t* log = NULL;
  kilni_cli_progress_t progress;
  kilni_cli_progress_start(&progress, "loading %s", code->file);
  uint64_t began = kilni_cli_now_ns();
  // Read here, it is not read by the load; a program says by itself what its
  // kernel takes.
  if (code->program == NULL) (void)kilni_cli_code_image(code);
  kiln_status_t status = kiln_module_load(
      code->device, kiln_code_bytes(code->code), &options, &log, out_module);
  code->times.load_ns += kilni_cli_now_ns() - began;
  kilni_cli_progress_stop(&progress);
  // The error describes what the reader refuses.
  kiln_status_code_t code_of = kiln_status_code(status);
  bool said =
      code_of == KILN_STATUS_BAD_DATA || code_of == KILN_STATUS_UNSUPPORTED;
  if (log != NULL && !said) note_text(kiln_load_log_text(log));
  kiln_load_log_release(log);
  return kilni_cli_check(error, status);
}

// A compiler newer than the driver writes PTX that the driver cannot read; it
// can still run code for exactly this GPU.
bool kilni_cli_module_load(kilni_cli_code_t* code, kiln_module_t** out_module,
                           kilni_cli_error_t* error) {
  if (!kilni_cli_code_make(code, error)) return false;
  if (run_code_load(code, out_module, error)) return true;
  if (error->code != KILN_STATUS_INCOMPATIBLE ||
      code->kind != KILNI_CLI_CODE_SOURCE || !is_gpu(code) ||
      (code->asked != NULL && code->asked->arch != NULL)) {
    return false;
  }
  return make_cubin(code, error) && run_code_load(code, out_module, error);
}

void kilni_cli_code_deinit(kilni_cli_code_t* code) {
  if (code->left) return;
  kiln_code_release(code->code);
  kiln_code_release(code->text);
  kiln_program_code_release(code->lowered);
  kiln_image_release(code->image);
  code->image = NULL;
  code->code = NULL;
  code->text = NULL;
  code->lowered = NULL;
}
