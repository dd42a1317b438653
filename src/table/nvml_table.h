// SPDX-License-Identifier: Apache-2.0
//
// table: NVML's entry points.
#ifndef KILN_SRC_TABLE_NVML_TABLE_H_
#define KILN_SRC_TABLE_NVML_TABLE_H_

#include "base/dynlib.h"
#include "base/host.h"
#include "kiln/status.h"
#include "table/nvml_abi.h"
#include "table/nvml_types_gen.h"
#include "table/table.h"

// Names one row: KILNI_NVML_ROW_nvmlDeviceGetName.
typedef enum kilni_nvml_row_id_t {
#define KILNI_NVML_ROW(name, ...) KILNI_NVML_ROW_##name,
#include "table/nvml_rows.inc"
#undef KILNI_NVML_ROW
  KILNI_NVML_ROW_COUNT
} kilni_nvml_row_id_t;

const kilni_table_row_t* kilni_table_nvml_row(kilni_nvml_row_id_t row);

// NVML's entry points. thread-safe
//
// As kiln_cuda_table_t. An absent row answers
// KILN_NVML_ERROR_FUNCTION_NOT_FOUND. Between nvmlInit and nvmlShutdown, which
// are counted, it answers; before and after it is UNINITIALIZED.
struct kiln_nvml_table_t {
  char provider[32];   // "libnvidia-ml"
  const char* origin;  // the file; borrowed from the library
  uint32_t slot;       // of a wrapper: which of its slots it has
  uint32_t reserved;
  uint64_t present[2];  // one bit for each row
#define KILNI_NVML_ROW(name, ...) kilni_##name##_fn_t name;
#include "table/nvml_rows.inc"
#undef KILNI_NVML_ROW
};

static inline bool kilni_table_nvml_has(const kiln_nvml_table_t* table,
                                        kilni_nvml_row_id_t row) {
  return (table->present[(unsigned)row / 64] >> ((unsigned)row % 64)) & 1;
}
kiln_status_t kilni_table_nvml_need(const kiln_nvml_table_t* table,
                                    kilni_nvml_row_id_t row);

// For a provider, as kilni_table_cuda_table_init and KILNI_CUDA_SET.
void kilni_table_nvml_table_init(kiln_nvml_table_t* table, const char* provider,
                                 const char* origin);
#define KILNI_NVML_SET(table, name, fn) \
  ((table)->name = (fn),                \
   kilni_table_nvml_mark((table), KILNI_NVML_ROW_##name, true))
void kilni_table_nvml_mark(kiln_nvml_table_t* table, kilni_nvml_row_id_t row,
                           bool present);

// Opens `library` (a path or a name for the system loader; NULL is
// "libnvidia-ml.so.1") and fills the table. NOT_FOUND or INCOMPATIBLE as
// kilni_table_cuda_table_open. Nothing is initialised: the caller calls
// nvmlInit.
kiln_status_t kilni_table_nvml_table_open(const kiln_host_t* host,
                                          const char* library,
                                          kiln_nvml_table_t* out_table,
                                          kilni_base_dynlib_t** out_library);

// The display driver's release as NVML reports it ("580.65.06"), with a NUL; ""
// where there is no NVML, or none that answers. `library` as above, `capacity`
// above 0.
kiln_status_t kilni_table_nvml_release_ask(const kiln_host_t* host,
                                           const char* library, size_t capacity,
                                           char* out_text);
// The same of a table. False, and "", where it does not answer.
bool kilni_table_nvml_release_read(const kiln_nvml_table_t* table,
                                   size_t capacity, char* out_text);

// A machine with one GPU that does nothing: it has a name, memory and no
// processes. Its sessions are among the handles of kilni_table_cuda_null_live.
void kilni_table_nvml_table_null(kiln_nvml_table_t* out_table);

// Wrappers, as those of the driver. nvmlErrorString is not wrapped.
kiln_status_t kilni_table_nvml_trace_install(const kiln_nvml_table_t* wrapped,
                                             kiln_log_sink_t log,
                                             kiln_nvml_table_t* out_table);
void kilni_table_nvml_trace_remove(const kiln_nvml_table_t* table);
kiln_status_t kilni_table_nvml_fault_install(const kiln_nvml_table_t* wrapped,
                                             kiln_nvml_table_t* out_table);
void kilni_table_nvml_fault_remove(const kiln_nvml_table_t* table);
void kilni_table_nvml_fault_arm(const kiln_nvml_table_t* table, uint64_t nth,
                                uint32_t mode, uint32_t result);
uint64_t kilni_table_nvml_fault_disarm(const kiln_nvml_table_t* table);
const char* kilni_table_nvml_fault_hit(const kiln_nvml_table_t* table);

// The status of a call into NVML, as kilni_table_cuda_status.
kiln_status_t kilni_table_nvml_status(const kiln_nvml_table_t* table,
                                      kiln_nvml_result_t result,
                                      const char* call, const char* space,
                                      const char* file, int line);
#define KILNI_NVML_STATUS(table, result, call)                               \
  kilni_table_nvml_status((table), (result), (call), KILNI_MODULE, __FILE__, \
                          __LINE__)
const char* kilni_table_nvml_result_name(kiln_nvml_result_t result);

#endif  // KILN_SRC_TABLE_NVML_TABLE_H_
