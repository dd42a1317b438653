// SPDX-License-Identifier: Apache-2.0
//
// table: nvJitLink's entry points.
#ifndef KILN_SRC_TABLE_NVJITLINK_TABLE_H_
#define KILN_SRC_TABLE_NVJITLINK_TABLE_H_

#include "base/dynlib.h"
#include "base/host.h"
#include "kiln/status.h"
#include "table/nvjitlink_abi.h"
#include "table/nvjitlink_types_gen.h"
#include "table/table.h"

// Names one row: KILNI_NVJITLINK_ROW_nvJitLinkComplete.
typedef enum kilni_nvjitlink_row_id_t {
#define KILNI_NVJITLINK_ROW(name, ...) KILNI_NVJITLINK_ROW_##name,
#include "table/nvjitlink_rows.inc"
#undef KILNI_NVJITLINK_ROW
  KILNI_NVJITLINK_ROW_COUNT
} kilni_nvjitlink_row_id_t;

const kilni_table_row_t* kilni_table_nvjitlink_row(
    kilni_nvjitlink_row_id_t row);

// nvJitLink's entry points. thread-safe
//
// As kiln_cuda_table_t. An absent row answers
// KILN_NVJITLINK_ERROR_INTERNAL.
struct kiln_nvjitlink_table_t {
  char provider[32];   // "libnvJitLink"
  const char* origin;  // the file; borrowed from the library
  unsigned int major;  // of its own version
  unsigned int minor;
  uint32_t slot;  // of a wrapper: which of its slots it has
  uint32_t reserved;
  uint64_t present[1];  // one bit for each row
#define KILNI_NVJITLINK_ROW(name, ...) kilni_##name##_fn_t name;
#include "table/nvjitlink_rows.inc"
#undef KILNI_NVJITLINK_ROW
};

static inline bool kilni_table_nvjitlink_has(
    const kiln_nvjitlink_table_t* table, kilni_nvjitlink_row_id_t row) {
  return (table->present[0] >> (unsigned)row) & 1;
}
kiln_status_t kilni_table_nvjitlink_need(const kiln_nvjitlink_table_t* table,
                                         kilni_nvjitlink_row_id_t row);

// For a provider, as kilni_table_cuda_table_init and KILNI_CUDA_SET.
void kilni_table_nvjitlink_table_init(kiln_nvjitlink_table_t* table,
                                      const char* provider, const char* origin);
#define KILNI_NVJITLINK_SET(table, name, fn) \
  ((table)->name = (fn),                     \
   kilni_table_nvjitlink_mark((table), KILNI_NVJITLINK_ROW_##name, true))
void kilni_table_nvjitlink_mark(kiln_nvjitlink_table_t* table,
                                kilni_nvjitlink_row_id_t row, bool present);

// Opens `library`, which the caller has found, and fills the table, version
// included. NOT_FOUND or INCOMPATIBLE as kilni_table_cuda_table_open.
kiln_status_t kilni_table_nvjitlink_table_open(
    const kiln_host_t* host, const char* library,
    kiln_nvjitlink_table_t* out_table, kilni_base_dynlib_t** out_library);

// A linker that links nothing: whatever goes in, a cubin, PTX or LTO-IR comes
// out that only begins as one. Its links are among the handles of
// kilni_table_cuda_null_live.
void kilni_table_nvjitlink_table_null(kiln_nvjitlink_table_t* out_table);

// Wrappers, as those of the driver.
kiln_status_t kilni_table_nvjitlink_trace_install(
    const kiln_nvjitlink_table_t* wrapped, kiln_log_sink_t log,
    kiln_nvjitlink_table_t* out_table);
void kilni_table_nvjitlink_trace_remove(const kiln_nvjitlink_table_t* table);
kiln_status_t kilni_table_nvjitlink_fault_install(
    const kiln_nvjitlink_table_t* wrapped, kiln_nvjitlink_table_t* out_table);
void kilni_table_nvjitlink_fault_remove(const kiln_nvjitlink_table_t* table);
void kilni_table_nvjitlink_fault_arm(const kiln_nvjitlink_table_t* table,
                                     uint64_t nth, uint32_t mode,
                                     uint32_t result);
uint64_t kilni_table_nvjitlink_fault_disarm(
    const kiln_nvjitlink_table_t* table);
const char* kilni_table_nvjitlink_fault_hit(
    const kiln_nvjitlink_table_t* table);

// The status of a call into nvJitLink, as kilni_table_cuda_status.
kiln_status_t kilni_table_nvjitlink_status(const kiln_nvjitlink_table_t* table,
                                           kiln_nvjitlink_result_t result,
                                           const char* call, const char* space,
                                           const char* file, int line);
#define KILNI_NVJITLINK_STATUS(table, result, call)                     \
  kilni_table_nvjitlink_status((table), (result), (call), KILNI_MODULE, \
                               __FILE__, __LINE__)
const char* kilni_table_nvjitlink_result_name(kiln_nvjitlink_result_t result);

#endif  // KILN_SRC_TABLE_NVJITLINK_TABLE_H_
