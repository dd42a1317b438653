// SPDX-License-Identifier: Apache-2.0
//
// table: results of the driver and of the toolkit's libraries as statuses.
#include "base/status_make.h"
#include "table/cuda_table.h"
#include "table/nvjitlink_table.h"
#include "table/nvml_table.h"
#include "table/nvrtc_table.h"
#include "table/nvvm_table.h"

// One row of a file *_results.inc. thread-safe
typedef struct result_row_t {
  uint32_t number;
  kiln_status_code_t code;
  bool sticky;
  const char* name;
  const char* fix;
} result_row_t;

static const result_row_t kCudaResults[] = {
    {0, KILN_STATUS_OK, false, "CUDA_SUCCESS", ""},
#define KILNI_CUDA_RESULT(name, number, status, sticky, fix) \
  {number, KILN_STATUS_##status, (sticky) != 0, "CUDA_ERROR_" #name, fix},
#include "table/cuda_results.inc"
#undef KILNI_CUDA_RESULT
};

static const result_row_t kNvrtcResults[] = {
    {0, KILN_STATUS_OK, false, "NVRTC_SUCCESS", ""},
#define KILNI_NVRTC_RESULT(name, number, status, fix) \
  {number, KILN_STATUS_##status, false, "NVRTC_ERROR_" #name, fix},
#include "table/nvrtc_results.inc"
#undef KILNI_NVRTC_RESULT
};

static const result_row_t kNvjitlinkResults[] = {
    {0, KILN_STATUS_OK, false, "NVJITLINK_SUCCESS", ""},
#define KILNI_NVJITLINK_RESULT(name, number, status, fix) \
  {number, KILN_STATUS_##status, false, "NVJITLINK_ERROR_" #name, fix},
#include "table/nvjitlink_results.inc"
#undef KILNI_NVJITLINK_RESULT
};

static const result_row_t kNvvmResults[] = {
    {0, KILN_STATUS_OK, false, "NVVM_SUCCESS", ""},
#define KILNI_NVVM_RESULT(name, number, status, fix) \
  {number, KILN_STATUS_##status, false, "NVVM_ERROR_" #name, fix},
#include "table/nvvm_results.inc"
#undef KILNI_NVVM_RESULT
};

static const result_row_t kNvmlResults[] = {
    {0, KILN_STATUS_OK, false, "NVML_SUCCESS", ""},
#define KILNI_NVML_RESULT(name, number, status, fix) \
  {number, KILN_STATUS_##status, false, "NVML_ERROR_" #name, fix},
#include "table/nvml_results.inc"
#undef KILNI_NVML_RESULT
};

static const char* const kAttributeNames[] = {
#define KILNI_CUDA_ATTRIBUTE(name, number, since, unit) [number] = #name,
#include "table/cuda_attributes.inc"
#undef KILNI_CUDA_ATTRIBUTE
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const result_row_t* results_find(const result_row_t* rows, size_t count,
                                        uint32_t number) {
  for (size_t i = 0; i < count; i++) {
    if (rows[i].number == number) return &rows[i];
  }
  return NULL;
}

static const result_row_t* cuda_result(kiln_cu_result_t result) {
  return results_find(kCudaResults, LENGTH(kCudaResults), result);
}

const char* kilni_table_cuda_result_name(kiln_cu_result_t result) {
  const result_row_t* row = cuda_result(result);
  return row != NULL ? row->name : NULL;
}

const char* kilni_table_cuda_result_text(kiln_cu_result_t result) {
  const result_row_t* row = cuda_result(result);
  return row != NULL ? kiln_status_code_text(row->code) : NULL;
}

bool kilni_table_cuda_result_is_sticky(kiln_cu_result_t result) {
  const result_row_t* row = cuda_result(result);
  return row != NULL && row->sticky;
}

kiln_status_code_t kilni_table_cuda_result_code(kiln_cu_result_t result) {
  const result_row_t* row = cuda_result(result);
  return row != NULL ? row->code : KILN_STATUS_DRIVER_ERROR;
}

const char* kilni_table_cuda_attribute_name(
    kiln_cu_device_attribute_t attribute) {
  if (attribute >= LENGTH(kAttributeNames)) return NULL;
  return kAttributeNames[attribute];
}

const char* kilni_table_nvrtc_result_name(kiln_nvrtc_result_t result) {
  const result_row_t* row =
      results_find(kNvrtcResults, LENGTH(kNvrtcResults), result);
  return row != NULL ? row->name : NULL;
}

const char* kilni_table_nvjitlink_result_name(kiln_nvjitlink_result_t result) {
  const result_row_t* row =
      results_find(kNvjitlinkResults, LENGTH(kNvjitlinkResults), result);
  return row != NULL ? row->name : NULL;
}

const char* kilni_table_nvvm_result_name(kiln_nvvm_result_t result) {
  const result_row_t* row =
      results_find(kNvvmResults, LENGTH(kNvvmResults), result);
  return row != NULL ? row->name : NULL;
}

const char* kilni_table_nvml_result_name(kiln_nvml_result_t result) {
  const result_row_t* row =
      results_find(kNvmlResults, LENGTH(kNvmlResults), result);
  return row != NULL ? row->name : NULL;
}

// The name that the driver itself gives to a result which this list lacks.
static const char* ask_name(const kiln_cuda_table_t* table,
                            kiln_cu_result_t result) {
  const char* name = NULL;
  if (table != NULL &&
      kilni_table_cuda_has(table, KILNI_CUDA_ROW_cuGetErrorName) &&
      table->cuGetErrorName(result, &name) == KILN_CU_SUCCESS && name != NULL) {
    return name;
  }
  return "unknown result";
}

kiln_status_t kilni_table_cuda_status(const kiln_cuda_table_t* table,
                                      kiln_cu_result_t result, const char* call,
                                      const char* module, const char* file,
                                      int line) {
  if (result == KILN_CU_SUCCESS) return kiln_ok();
  if (result == KILN_CU_ERROR_NOT_READY) {
    return kilni_base_status_bare(KILN_STATUS_NOT_READY);
  }
  const result_row_t* row = cuda_result(result);
  const char* name = row != NULL ? row->name : ask_name(table, result);
  const kiln_status_code_t code =
      row != NULL ? row->code : KILN_STATUS_DRIVER_ERROR;
  const char* provider = table != NULL ? table->provider : "the driver";
  kiln_status_t status = kilni_base_status_make(
      code, module, file, line,
      "the driver call \"%s\" returned %s (%s, by \"%s\")", call, name,
      kiln_status_code_text(code), provider);
  status = kilni_base_status_with_native(status, "cuda", result, name);
  if (row != NULL && row->fix[0] != '\0') {
    return kilni_base_status_with_fix(status, "%s", row->fix);
  }
  return kilni_base_status_with_fix(
      status, "set KILN_TRACE=on and look at the arguments of \"%s\"", call);
}

// One result of a compiler or linker of the toolkit, and what returned it.
// thread-compatible
typedef struct tool_result_t {
  const char* title;        // "NVRTC"
  const char* domain;       // of the native part
  const char* origin;       // the file; NULL where the table is not known
  const char* said;         // the library's own name for it; may be NULL
  const result_row_t* row;  // NULL: this list lacks it
  uint32_t number;
  int major;
  int minor;
  kiln_status_code_t otherwise;
} tool_result_t;

static kiln_status_t tool_status(const tool_result_t* result, const char* call,
                                 const char* module, const char* file,
                                 int line) {
  const result_row_t* row = result->row;
  const char* name = row != NULL ? row->name : result->said;
  if (name == NULL) name = "unknown result";
  kiln_status_code_t code = row != NULL ? row->code : result->otherwise;
  kiln_status_t status = kilni_base_status_make(
      code, module, file, line, "the %s call \"%s\" returned %s (%s)",
      result->title, call, name, kiln_status_code_text(code));
  status = kilni_base_status_with_native(status, result->domain, result->number,
                                         name);
  if (row != NULL && row->fix[0] != '\0') {
    return kilni_base_status_with_fix(status, "%s", row->fix);
  }
  if (result->origin == NULL) return status;
  return kilni_base_status_with_fix(
      status, "this is %s %d.%d from \"%s\"; a newer one may succeed",
      result->title, result->major, result->minor, result->origin);
}

static void results_read_table(tool_result_t* result, const char* origin,
                               int major, int minor) {
  result->origin = origin;
  result->major = major;
  result->minor = minor;
}

kiln_status_t kilni_table_nvrtc_status(const kiln_nvrtc_table_t* table,
                                       kiln_nvrtc_result_t result,
                                       const char* call, const char* module,
                                       const char* file, int line) {
  if (result == KILN_NVRTC_SUCCESS) return kiln_ok();
  if (result == KILN_NVRTC_ERROR_OUT_OF_MEMORY) {
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  tool_result_t of = {"NVRTC", "nvrtc", NULL,
                      NULL,    NULL,    result,
                      0,       0,       KILN_STATUS_COMPILE_FAILED};
  of.row = results_find(kNvrtcResults, LENGTH(kNvrtcResults), result);
  if (table != NULL) {
    results_read_table(&of, table->origin, table->major, table->minor);
    if (of.row == NULL) of.said = table->nvrtcGetErrorString(result);
  }
  return tool_status(&of, call, module, file, line);
}

kiln_status_t kilni_table_nvvm_status(const kiln_nvvm_table_t* table,
                                      kiln_nvvm_result_t result,
                                      const char* call, const char* module,
                                      const char* file, int line) {
  if (result == KILN_NVVM_SUCCESS) return kiln_ok();
  if (result == KILN_NVVM_ERROR_OUT_OF_MEMORY) {
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  tool_result_t of = {"libNVVM", "nvvm", NULL,
                      NULL,      NULL,   result,
                      0,         0,      KILN_STATUS_COMPILE_FAILED};
  of.row = results_find(kNvvmResults, LENGTH(kNvvmResults), result);
  if (table != NULL) {
    results_read_table(&of, table->origin, table->major, table->minor);
    if (of.row == NULL) of.said = table->nvvmGetErrorString(result);
  }
  return tool_status(&of, call, module, file, line);
}

kiln_status_t kilni_table_nvjitlink_status(const kiln_nvjitlink_table_t* table,
                                           kiln_nvjitlink_result_t result,
                                           const char* call, const char* module,
                                           const char* file, int line) {
  if (result == KILN_NVJITLINK_SUCCESS) return kiln_ok();
  tool_result_t of = {"nvJitLink", "nvjitlink", NULL,
                      NULL,        NULL,        result,
                      0,           0,           KILN_STATUS_LINK_FAILED};
  of.row = results_find(kNvjitlinkResults, LENGTH(kNvjitlinkResults), result);
  if (table != NULL) {
    results_read_table(&of, table->origin, (int)table->major,
                       (int)table->minor);
  }
  return tool_status(&of, call, module, file, line);
}

kiln_status_t kilni_table_nvml_status(const kiln_nvml_table_t* table,
                                      kiln_nvml_result_t result,
                                      const char* call, const char* module,
                                      const char* file, int line) {
  if (result == KILN_NVML_SUCCESS) return kiln_ok();
  if (result == KILN_NVML_ERROR_MEMORY) {
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  const result_row_t* row =
      results_find(kNvmlResults, LENGTH(kNvmlResults), result);
  const char* name = row != NULL ? row->name : NULL;
  if (name == NULL && table != NULL) name = table->nvmlErrorString(result);
  if (name == NULL) name = "unknown result";
  const kiln_status_code_t code =
      row != NULL ? row->code : KILN_STATUS_DRIVER_ERROR;
  kiln_status_t status = kilni_base_status_make(
      code, module, file, line, "the NVML call \"%s\" returned %s (%s)", call,
      name, kiln_status_code_text(code));
  status = kilni_base_status_with_native(status, "nvml", result, name);
  if (row != NULL && row->fix[0] != '\0') {
    return kilni_base_status_with_fix(status, "%s", row->fix);
  }
  return kilni_base_status_with_fix(
      status, "check whether `nvidia-smi` reports the same; it uses NVML too");
}

void kilni_table_cuda_uuid_text(const kiln_cu_uuid_t* uuid, const char* word,
                                char out_text[KILNI_UUID_BYTES]) {
  static const char digits[] = "0123456789abcdef";
  size_t at = 0;
  for (; at < 3; at++) out_text[at] = word[at];
  for (size_t i = 0; i < sizeof(uuid->bytes); i++) {
    unsigned char byte = (unsigned char)uuid->bytes[i];
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) out_text[at++] = '-';
    out_text[at++] = digits[byte >> 4];
    out_text[at++] = digits[byte & 15];
  }
  out_text[at] = 0;
}
