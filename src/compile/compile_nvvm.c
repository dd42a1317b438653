// SPDX-License-Identifier: Apache-2.0
//
// compile: NVVM IR through libNVVM.
//
// The program is verified before it is compiled, so that errors of the IR are
// reported in terms of the IR. The device library is added lazily: only what
// the modules lack is taken from it.
#include "base/fix_words.h"
#include "base/alloc.h"
#include "base/status_make.h"
#include "base/str.h"
#include "compile/compile_inside.h"
#include "table/nvvm_table.h"

// One program of libNVVM. one-thread
typedef struct run_t {
  const kilni_compile_job_t* job;
  const kiln_nvvm_table_t* table;
  kiln_nvvm_program_t program;
} run_t;

static kiln_status_t nvvm_take_log(const run_t* run) {
  kiln_compile_result_t* result = run->job->result;
  const kiln_nvvm_table_t* table = run->table;
  size_t bytes = 0;
  KILNI_RETURN_IF_ERROR(KILNI_NVVM_STATUS(
      table, table->nvvmGetProgramLogSize(run->program, &bytes),
      "nvvmGetProgramLogSize"));
  void* text = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(result->allocator, bytes + 1, &text));
  kiln_status_t status = KILNI_NVVM_STATUS(
      table, table->nvvmGetProgramLog(run->program, text), "nvvmGetProgramLog");
  if (kiln_status_is_ok(status)) {
    kilni_base_strfree(result->allocator, result->log);
    result->log = NULL;
    status =
        kilni_base_strdup(result->allocator, kilni_base_sv(text), &result->log);
  }
  kilni_base_free(result->allocator, text, bytes + 1);
  return status;
}

static kiln_status_t nvvm_take_code(const run_t* run) {
  const kiln_nvvm_table_t* table = run->table;
  kiln_compile_result_t* result = run->job->result;
  size_t bytes = 0;
  KILNI_RETURN_IF_ERROR(KILNI_NVVM_STATUS(
      table, table->nvvmGetCompiledResultSize(run->program, &bytes),
      "nvvmGetCompiledResultSize"));
  void* code = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(result->allocator, bytes, &code));
  const uint8_t* data = code;
  kiln_status_t status =
      KILNI_NVVM_STATUS(table, table->nvvmGetCompiledResult(run->program, code),
                        "nvvmGetCompiledResult");
  if (kiln_status_is_ok(status) && bytes == 0) {
    status = kilni_base_status_with_fix(
        KILNI_FAIL(COMPILE_FAILED, "libNVVM produced no %s for \"%s\"",
                   kiln_code_format_name(result->format), result->arch),
        "check the options: some request another kind of output");
  }
  if (kiln_status_is_ok(status)) {
    bool text = result->format == KILN_CODE_FORMAT_PTX && data[bytes - 1] == 0;
    kiln_bytes_view_t view = {data, text ? bytes - 1 : bytes};
    status = kilni_compile_take(run->job, view, NULL, 0);
  }
  kilni_base_free(result->allocator, code, bytes);
  return status;
}

static kiln_status_t nvvm_add_module(const run_t* run, const char* name,
                                     kiln_bytes_view_t bytes) {
  const kiln_nvvm_table_t* table = run->table;
  kiln_status_t status = KILNI_NVVM_STATUS(
      table,
      table->nvvmAddModuleToProgram(run->program, (const char*)bytes.data,
                                    bytes.size, name),
      "nvvmAddModuleToProgram");
  return KILNI_ANNOTATE(status, "in the module \"%s\"", name);
}

static kiln_status_t add_modules(const run_t* run) {
  const kilni_compile_job_t* job = run->job;
  const kiln_compile_options_t* options = job->options;
  const kiln_compiler_t* compiler = job->compiler;
  kiln_bytes_view_t source = {(const uint8_t*)job->source.data,
                              job->source.size};
  KILNI_RETURN_IF_ERROR(nvvm_add_module(run, job->name, source));
  for (uint32_t i = 0; i < options->module_count; i++) {
    KILNI_RETURN_IF_ERROR(nvvm_add_module(run, options->modules[i].name,
                                          options->modules[i].bytes));
  }
  if (options->device_library == KILN_SWITCH_OFF) return kiln_ok();
  if (compiler->device_bytes == 0) {
    if (options->device_library != KILN_SWITCH_ON) return kiln_ok();
    return kilni_base_status_with_fix(
        KILNI_FAIL(NOT_FOUND, "libNVVM's device library was not found"),
        "install it, e.g. with `python3 -m pip install "
        "nvidia-nvvm`" KILNI_FIX_ENVIRONMENT
        ", or name it in "
        "KILN_LOCATE_BITCODE_DEVICE");
  }
  return KILNI_NVVM_STATUS(run->table,
                           run->table->nvvmLazyAddModuleToProgram(
                               run->program, (const char*)compiler->device_code,
                               compiler->device_bytes, "libdevice"),
                           "nvvmLazyAddModuleToProgram");
}

static kiln_status_t nvvm_refused(const run_t* run, kiln_nvvm_result_t result,
                                  const char* call) {
  if (result == KILN_NVVM_ERROR_CANCELLED) {
    return kilni_compile_cancelled(run->job);
  }
  kiln_status_t native = KILNI_NVVM_STATUS(run->table, result, call);
  bool of_source = kiln_status_code(native) == KILN_STATUS_COMPILE_FAILED ||
                   result == KILN_NVVM_ERROR_INVALID_OPTION;
  return kilni_compile_refused(native, of_source, run->job->result->log, NULL);
}

// libNVVM takes its options as texts that it might change; it does not.
static kiln_status_t nvvm_compile_program(const run_t* run) {
  const kiln_nvvm_table_t* table = run->table;
  const kilni_compile_job_t* job = run->job;
  const kilni_compile_line_t* line = &job->result->line;
  KILNI_RETURN_IF_ERROR(add_modules(run));
  void* block = NULL;
  kiln_allocator_t allocator = job->result->allocator;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(allocator, line->count + 1,
                                               sizeof(char*), &block));
  const char** options = block;
  for (size_t i = 0; i < line->count; i++) options[i] = line->items[i];
  int count = (int)line->count;
  const char* call = "nvvmVerifyProgram";
  kiln_nvvm_result_t result =
      table->nvvmVerifyProgram(run->program, count, options);
  bool cancelled = kilni_compile_is_cancelled(job->options);
  if (result == KILN_NVVM_SUCCESS && !cancelled) {
    call = "nvvmCompileProgram";
    result = table->nvvmCompileProgram(run->program, count, options);
    cancelled = kilni_compile_is_cancelled(job->options);
  }
  kilni_base_free_array(allocator, block, line->count + 1, sizeof(char*));
  KILNI_RETURN_IF_ERROR(nvvm_take_log(run));
  if (cancelled) return kilni_compile_cancelled(job);
  if (result != KILN_NVVM_SUCCESS) return nvvm_refused(run, result, call);
  return nvvm_take_code(run);
}

kiln_status_t kilni_compile_nvvm(const kilni_compile_job_t* job) {
  run_t run = {job, &job->compiler->nvvm, NULL};
  const kiln_nvvm_table_t* table = run.table;
  if (job->source.size == 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "\"%s\" is empty", job->name),
        "give NVVM IR, as bitcode or as text");
  }
  KILNI_RETURN_IF_ERROR(KILNI_NVVM_STATUS(
      table, table->nvvmCreateProgram(&run.program), "nvvmCreateProgram"));
  kiln_status_t status = nvvm_compile_program(&run);
  return kilni_base_status_join(
      status, KILNI_NVVM_STATUS(table, table->nvvmDestroyProgram(&run.program),
                                "nvvmDestroyProgram"));
}
