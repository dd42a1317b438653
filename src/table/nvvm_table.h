// SPDX-License-Identifier: Apache-2.0
//
// table: libNVVM's entry points.
#ifndef KILN_SRC_TABLE_NVVM_TABLE_H_
#define KILN_SRC_TABLE_NVVM_TABLE_H_

#include "base/dynlib.h"
#include "base/host.h"
#include "kiln/status.h"
#include "table/nvvm_abi.h"
#include "table/nvvm_types_gen.h"
#include "table/table.h"

// Names one row: KILNI_NVVM_ROW_nvvmCompileProgram.
typedef enum kilni_nvvm_row_id_t {
#define KILNI_NVVM_ROW(name, ...) KILNI_NVVM_ROW_##name,
#include "table/nvvm_rows.inc"
#undef KILNI_NVVM_ROW
  KILNI_NVVM_ROW_COUNT
} kilni_nvvm_row_id_t;

const kilni_table_row_t* kilni_table_nvvm_row(kilni_nvvm_row_id_t row);

// libNVVM's entry points. thread-safe
//
// As kiln_cuda_table_t. An absent row answers
// KILN_NVVM_ERROR_INVALID_PROGRAM.
struct kiln_nvvm_table_t {
  char provider[32];   // "libnvvm"
  const char* origin;  // the file; borrowed from the library
  int major;           // of its own version
  int minor;
  uint32_t slot;  // of a wrapper: which of its slots it has
  uint32_t reserved;
  uint64_t present[1];  // one bit for each row
#define KILNI_NVVM_ROW(name, ...) kilni_##name##_fn_t name;
#include "table/nvvm_rows.inc"
#undef KILNI_NVVM_ROW
};

static inline bool kilni_table_nvvm_has(const kiln_nvvm_table_t* table,
                                        kilni_nvvm_row_id_t row) {
  return (table->present[0] >> (unsigned)row) & 1;
}
kiln_status_t kilni_table_nvvm_need(const kiln_nvvm_table_t* table,
                                    kilni_nvvm_row_id_t row);

// For a provider, as kilni_table_cuda_table_init and KILNI_CUDA_SET.
void kilni_table_nvvm_table_init(kiln_nvvm_table_t* table, const char* provider,
                                 const char* origin);
#define KILNI_NVVM_SET(table, name, fn) \
  ((table)->name = (fn),                \
   kilni_table_nvvm_mark((table), KILNI_NVVM_ROW_##name, true))
void kilni_table_nvvm_mark(kiln_nvvm_table_t* table, kilni_nvvm_row_id_t row,
                           bool present);

// Opens `library`, which the caller has found, and fills the table, version
// included. NOT_FOUND or INCOMPATIBLE as kilni_table_cuda_table_open.
kiln_status_t kilni_table_nvvm_table_open(const kiln_host_t* host,
                                          const char* library,
                                          kiln_nvvm_table_t* out_table,
                                          kilni_base_dynlib_t** out_library);

// A compiler that compiles nothing: every module becomes the same PTX without a
// kernel. Its programs are among the handles of kilni_table_cuda_null_live.
void kilni_table_nvvm_table_null(kiln_nvvm_table_t* out_table);

// Wrappers, as those of the driver. nvvmGetErrorString is not wrapped.
kiln_status_t kilni_table_nvvm_trace_install(const kiln_nvvm_table_t* wrapped,
                                             kiln_log_sink_t log,
                                             kiln_nvvm_table_t* out_table);
void kilni_table_nvvm_trace_remove(const kiln_nvvm_table_t* table);
kiln_status_t kilni_table_nvvm_fault_install(const kiln_nvvm_table_t* wrapped,
                                             kiln_nvvm_table_t* out_table);
void kilni_table_nvvm_fault_remove(const kiln_nvvm_table_t* table);
void kilni_table_nvvm_fault_arm(const kiln_nvvm_table_t* table, uint64_t nth,
                                uint32_t mode, uint32_t result);
uint64_t kilni_table_nvvm_fault_disarm(const kiln_nvvm_table_t* table);
const char* kilni_table_nvvm_fault_hit(const kiln_nvvm_table_t* table);

// The status of a call into libNVVM, as kilni_table_cuda_status.
kiln_status_t kilni_table_nvvm_status(const kiln_nvvm_table_t* table,
                                      kiln_nvvm_result_t result,
                                      const char* call, const char* space,
                                      const char* file, int line);
#define KILNI_NVVM_STATUS(table, result, call)                               \
  kilni_table_nvvm_status((table), (result), (call), KILNI_MODULE, __FILE__, \
                          __LINE__)
const char* kilni_table_nvvm_result_name(kiln_nvvm_result_t result);

#endif  // KILN_SRC_TABLE_NVVM_TABLE_H_
