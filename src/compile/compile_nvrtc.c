// SPDX-License-Identifier: Apache-2.0
//
// compile: one source through NVRTC.
//
// Everything is taken out of NVRTC's program before that is destroyed.
#include <locale.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log_line.h"
#include "base/status_make.h"
#include "base/str.h"
#include "compile/compile_inside.h"
#include "table/nvrtc_table.h"

// One program of NVRTC. one-thread
typedef struct run_t {
  const kilni_compile_job_t* job;
  const kiln_nvrtc_table_t* table;
  kiln_nvrtc_program_t program;
  const char* source;
  const char* const* texts;  // of the virtual headers, then their names
} run_t;

// ---- Taking things out of NVRTC's program ----

static kiln_status_t nvrtc_take_log(const run_t* run) {
  kiln_compile_result_t* result = run->job->result;
  const kiln_nvrtc_table_t* table = run->table;
  size_t bytes = 0;
  KILNI_RETURN_IF_ERROR(KILNI_NVRTC_STATUS(
      table, table->nvrtcGetProgramLogSize(run->program, &bytes),
      "nvrtcGetProgramLogSize"));
  void* text = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(result->allocator, bytes + 1, &text));
  kiln_status_t status =
      KILNI_NVRTC_STATUS(table, table->nvrtcGetProgramLog(run->program, text),
                         "nvrtcGetProgramLog");
  if (kiln_status_is_ok(status)) {
    kilni_base_strfree(result->allocator, result->log);
    result->log = NULL;
    status =
        kilni_base_strdup(result->allocator, kilni_base_sv(text), &result->log);
  }
  kilni_base_free(result->allocator, text, bytes + 1);
  return status;
}

// How one kind of output is asked for. thread-safe
typedef struct output_t {
  const char* size_call;
  const char* call;
  kiln_nvrtc_result_t (*size)(kiln_nvrtc_program_t program, size_t* bytes);
  kiln_nvrtc_result_t (*get)(kiln_nvrtc_program_t program, char* data);
} output_t;

static output_t output_of(const kiln_nvrtc_table_t* table, uint32_t format) {
  switch (format) {
    case KILN_CODE_FORMAT_CUBIN:
    case KILN_CODE_FORMAT_RELOCATABLE:
      return (output_t){"nvrtcGetCUBINSize", "nvrtcGetCUBIN",
                        table->nvrtcGetCUBINSize, table->nvrtcGetCUBIN};
    case KILN_CODE_FORMAT_LTOIR:
      return (output_t){"nvrtcGetLTOIRSize", "nvrtcGetLTOIR",
                        table->nvrtcGetLTOIRSize, table->nvrtcGetLTOIR};
    default:
      return (output_t){"nvrtcGetPTXSize", "nvrtcGetPTX",
                        table->nvrtcGetPTXSize, table->nvrtcGetPTX};
  }
}

static kiln_status_t nvrtc_take_code(const run_t* run,
                                     const kiln_code_name_t* names,
                                     uint32_t name_count) {
  kiln_compile_result_t* result = run->job->result;
  output_t output = output_of(run->table, result->format);
  size_t bytes = 0;
  KILNI_RETURN_IF_ERROR(KILNI_NVRTC_STATUS(
      run->table, output.size(run->program, &bytes), output.size_call));
  if (bytes == 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(COMPILE_FAILED, "the compiler produced no %s for \"%s\"",
                   kiln_code_format_name(result->format), result->arch),
        "check the options: some request another kind of output, or none");
  }
  void* code = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(result->allocator, bytes, &code));
  const uint8_t* data = code;
  kiln_status_t status = KILNI_NVRTC_STATUS(
      run->table, output.get(run->program, code), output.call);
  if (kiln_status_is_ok(status)) {
    // PTX comes with its NUL counted.
    bool text = result->format == KILN_CODE_FORMAT_PTX && data[bytes - 1] == 0;
    kiln_bytes_view_t view = {data, text ? bytes - 1 : bytes};
    status = kilni_compile_take(run->job, view, names, name_count);
  }
  kilni_base_free(result->allocator, code, bytes);
  return status;
}

// The names belong to the program and are copied before that is destroyed.
static kiln_status_t nvrtc_take_all(const run_t* run) {
  const kiln_compile_options_t* options = run->job->options;
  kiln_allocator_t allocator = run->job->result->allocator;
  uint32_t count = options->name_expression_count;
  if (options->syntax_only == KILN_SWITCH_ON) return kiln_ok();
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, count, sizeof(kiln_code_name_t), &block));
  kiln_code_name_t* names = block;
  kiln_status_t status = kiln_ok();
  for (uint32_t i = 0; i < count && kiln_status_is_ok(status); i++) {
    names[i].expression = options->name_expressions[i];
    status = KILNI_NVRTC_STATUS(
        run->table,
        run->table->nvrtcGetLoweredName(
            run->program, options->name_expressions[i], &names[i].lowered),
        "nvrtcGetLoweredName");
  }
  if (kiln_status_is_ok(status)) status = nvrtc_take_code(run, names, count);
  kilni_base_free_array(allocator, block, count, sizeof(kiln_code_name_t));
  return status;
}

// ---- Running it ----

// NVRTC up to 12.6 may leave another locale set, which it shares with the whole
// process.
static kiln_nvrtc_result_t nvrtc_compile(const run_t* run) {
  const kiln_nvrtc_table_t* table = run->table;
  const kilni_compile_line_t* line = &run->job->result->line;
  bool guarded = table->major < 12 || (table->major == 12 && table->minor <= 6);
  char saved[256] = "";
  if (guarded) {
    const char* now = setlocale(LC_ALL, NULL);
    if (now != NULL && strlen(now) < sizeof(saved)) {
      memcpy(saved, now, strlen(now) + 1);
    }
  }
  kiln_nvrtc_result_t result = table->nvrtcCompileProgram(
      run->program, (int)line->count, (const char* const*)line->items);
  if (saved[0] != 0) {
    const char* now = setlocale(LC_ALL, NULL);
    if (now == NULL || strcmp(now, saved) != 0) (void)setlocale(LC_ALL, saved);
  }
  return result;
}

static int ask_flow(void* user, void* reserved) {
  (void)reserved;
  return kilni_compile_is_cancelled(user) ? 1 : 0;
}

static kiln_status_t nvrtc_prepare(const run_t* run) {
  const kiln_compile_options_t* options = run->job->options;
  const kiln_nvrtc_table_t* table = run->table;
  for (uint32_t i = 0; i < options->name_expression_count; i++) {
    KILNI_RETURN_IF_ERROR(
        KILNI_NVRTC_STATUS(table,
                           table->nvrtcAddNameExpression(
                               run->program, options->name_expressions[i]),
                           "nvrtcAddNameExpression"));
  }
  if (options->cancelled == NULL ||
      !kilni_table_nvrtc_has(table, KILNI_NVRTC_ROW_nvrtcSetFlowCallback)) {
    return kiln_ok();
  }
  kiln_compile_options_t* user = (kiln_compile_options_t*)(uintptr_t)options;
  return KILNI_NVRTC_STATUS(
      table, table->nvrtcSetFlowCallback(run->program, ask_flow, user),
      "nvrtcSetFlowCallback");
}

// ---- Precompiled headers ----

static bool wants_pch(const kiln_compile_options_t* options) {
  return options->pch == KILN_SWITCH_ON || options->create_pch != NULL;
}

// What became of it; true if a larger heap was made and it is worth a retry.
static bool read_pch(const run_t* run) {
  const kiln_nvrtc_table_t* table = run->table;
  kiln_compile_result_t* result = run->job->result;
  if (!wants_pch(run->job->options) ||
      !kilni_table_nvrtc_has(table, KILNI_NVRTC_ROW_nvrtcGetPCHCreateStatus)) {
    return false;
  }
  kiln_nvrtc_result_t state = table->nvrtcGetPCHCreateStatus(run->program);
  result->pch = KILN_COMPILE_PCH_FAILED;
  if (state == KILN_NVRTC_SUCCESS) {
    result->pch = KILN_COMPILE_PCH_CREATED;
  } else if (state == KILN_NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED) {
    result->pch = KILN_COMPILE_PCH_NOT_ATTEMPTED;
  } else if (state == KILN_NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED) {
    size_t bytes = 0;
    kiln_compiler_t* compiler = run->job->compiler;
    // The heap is the library's: one caller at a time changes it.
    kilni_base_mutex_lock(&compiler->lock);
    bool grown = table->nvrtcGetPCHHeapSizeRequired(run->program, &bytes) ==
                     KILN_NVRTC_SUCCESS &&
                 bytes != 0 &&
                 table->nvrtcSetPCHHeapSize(bytes) == KILN_NVRTC_SUCCESS;
    kilni_base_mutex_unlock(&compiler->lock);
    if (grown) {
      KILNI_LOG(&compiler->host->log, INFO,
                "the heap for precompiled headers has %zu bytes now", bytes);
    }
    return grown;
  }
  return false;
}

// ---- The compilation ----

static kiln_status_t nvrtc_refused(const run_t* run,
                                   kiln_nvrtc_result_t result) {
  if (result == KILN_NVRTC_ERROR_CANCELLED) {
    return kilni_compile_cancelled(run->job);
  }
  kiln_status_t native =
      KILNI_NVRTC_STATUS(run->table, result, "nvrtcCompileProgram");
  bool of_source = kiln_status_code(native) == KILN_STATUS_COMPILE_FAILED ||
                   result == KILN_NVRTC_ERROR_INVALID_OPTION;
  return kilni_compile_refused(
      native, of_source, run->job->result->log,
      result == KILN_NVRTC_ERROR_COMPILATION ? run->job : NULL);
}

static kiln_status_t nvrtc_compile_program(const run_t* run,
                                           bool* inout_again) {
  KILNI_RETURN_IF_ERROR(nvrtc_prepare(run));
  kiln_nvrtc_result_t compiled = nvrtc_compile(run);
  KILNI_RETURN_IF_ERROR(nvrtc_take_log(run));
  if (compiled != KILN_NVRTC_SUCCESS) return nvrtc_refused(run, compiled);
  bool retry = read_pch(run);
  if (kilni_compile_is_cancelled(run->job->options)) {
    return kilni_compile_cancelled(run->job);
  }
  if (retry && *inout_again) return kiln_ok();
  *inout_again = false;
  return nvrtc_take_all(run);
}

static kiln_status_t nvrtc_run_once(run_t* run, bool* inout_again) {
  const kiln_nvrtc_table_t* table = run->table;
  size_t count = run->job->options->header_count;
  const char* const* texts = run->texts;
  const char* const* names = count != 0 ? texts + count : NULL;
  KILNI_RETURN_IF_ERROR(KILNI_NVRTC_STATUS(
      table,
      table->nvrtcCreateProgram(&run->program, run->source, run->job->name,
                                (int)count, count != 0 ? texts : NULL, names),
      "nvrtcCreateProgram"));
  kiln_status_t status = nvrtc_compile_program(run, inout_again);
  return kilni_base_status_join(
      status,
      KILNI_NVRTC_STATUS(table, table->nvrtcDestroyProgram(&run->program),
                         "nvrtcDestroyProgram"));
}

// Once more with the larger heap that a precompiled header asked for.
static kiln_status_t run_twice(run_t* run) {
  bool again = true;
  kiln_status_t status = nvrtc_run_once(run, &again);
  if (!kiln_status_is_ok(status) || !again) return status;
  again = false;
  return nvrtc_run_once(run, &again);
}

kiln_status_t kilni_compile_nvrtc(const kilni_compile_job_t* job) {
  const kiln_compile_options_t* options = job->options;
  kiln_allocator_t allocator = job->result->allocator;
  size_t count = options->header_count;
  void* block = NULL;
  char* source = NULL;
  // Texts with their NUL, which are copies, followed by the names.
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(allocator, 2 * count + 1, sizeof(char*), &block));
  char** texts = block;
  const char** names = block;
  kiln_status_t status = kilni_base_strdup(allocator, job->source, &source);
  for (size_t i = 0; i < count && kiln_status_is_ok(status); i++) {
    const kiln_compile_file_t* file = &options->headers[i];
    names[count + i] = file->name;
    status = kilni_base_strdup(
        allocator,
        kilni_base_sv_make((const char*)file->bytes.data, file->bytes.size),
        &texts[i]);
  }
  if (kiln_status_is_ok(status)) {
    run_t run = {job, &job->compiler->table, NULL, source, names};
    status = run_twice(&run);
  }
  for (size_t i = 0; i < count; i++) kilni_base_strfree(allocator, texts[i]);
  kilni_base_strfree(allocator, source);
  kilni_base_free_array(allocator, block, 2 * count + 1, sizeof(char*));
  return status;
}
