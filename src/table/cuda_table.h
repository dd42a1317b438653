// SPDX-License-Identifier: Apache-2.0
//
// table: the driver's entry points.
#ifndef KILN_SRC_TABLE_CUDA_TABLE_H_
#define KILN_SRC_TABLE_CUDA_TABLE_H_

#include "base/dynlib.h"
#include "base/host.h"
#include "kiln/status.h"
#include "table/cuda_abi.h"
#include "table/cuda_types_gen.h"
#include "table/table.h"

// Names one row: KILNI_CUDA_ROW_cuMemAlloc.
typedef enum kilni_cuda_row_id_t {
#define KILNI_CUDA_ROW(name, ...) KILNI_CUDA_ROW_##name,
#include "table/cuda_rows.inc"
#undef KILNI_CUDA_ROW
  KILNI_CUDA_ROW_COUNT
} kilni_cuda_row_id_t;

// The columns of a row; static.
const kilni_table_row_t* kilni_table_cuda_row(kilni_cuda_row_id_t row);

// ---- The driver's table ----

// The CUDA driver's entry points. thread-safe
//
// Filled by a provider, then const. An absent row is never NULL: it answers
// KILN_CU_ERROR_CALL_REQUIRES_NEWER_DRIVER. Ask kilni_table_cuda_has for it.
struct kiln_cuda_table_t {
  char provider[32];    // "libcuda", "soft", "null", "trace(libcuda)"
  const char* origin;   // where it came from, for messages; borrowed
  int driver_version;   // 13000 is CUDA 13.0; 0 before it is known
  uint32_t slot;        // of a wrapper: which of its slots it has
  uint64_t present[6];  // one bit for each row
#define KILNI_CUDA_ROW(name, ...) kilni_##name##_fn_t name;
#include "table/cuda_rows.inc"
#undef KILNI_CUDA_ROW
};

// True if the provider has the row.
static inline bool kilni_table_cuda_has(const kiln_cuda_table_t* table,
                                        kilni_cuda_row_id_t row) {
  return (table->present[(unsigned)row / 64] >> ((unsigned)row % 64)) & 1;
}

// OK if the provider has the row; else UNSUPPORTED, naming what is missing and
// the first driver that has it.
kiln_status_t kilni_table_cuda_need(const kiln_cuda_table_t* table,
                                    kilni_cuda_row_id_t row);

// For a provider: every row absent, then one KILNI_CUDA_SET for each that it
// has (the compiler checks the signature), then kilni_table_cuda_table_check.
// `origin` must outlive the table.
void kilni_table_cuda_table_init(kiln_cuda_table_t* table, const char* provider,
                                 const char* origin);
#define KILNI_CUDA_SET(table, name, fn) \
  ((table)->name = (fn),                \
   kilni_table_cuda_mark((table), KILNI_CUDA_ROW_##name, true))
void kilni_table_cuda_mark(kiln_cuda_table_t* table, kilni_cuda_row_id_t row,
                           bool present);

// OK if every REQUIRED row is there; else INCOMPATIBLE, naming all that are
// not and the driver version found.
kiln_status_t kilni_table_cuda_table_check(const kiln_cuda_table_t* table);

// ---- Provider: the driver library ----

// Opens `library` (a path or a name for the system loader; NULL is the value
// of KILN_LIBCUDA, else "libcuda.so.1") and fills the table from it. The
// driver is not started: the caller calls cuInit. NOT_FOUND without such a
// library, INCOMPATIBLE for a driver that is too old or for the toolkit's
// link-time stand-in. `*out_library` must stay open while the table is used.
kiln_status_t kilni_table_cuda_table_open(const kiln_host_t* host,
                                          const char* library,
                                          kiln_cuda_table_t* out_table,
                                          kilni_base_dynlib_t** out_library);

// Only asks for the driver's CUDA version (13000 is 13.0), which needs neither
// a table nor a driver that is new enough. NOT_FOUND and INCOMPATIBLE as above.
// The caller closes `*out_library`.
kiln_status_t kilni_table_cuda_version_ask(const kiln_host_t* host,
                                           const char* library,
                                           int* out_version,
                                           kilni_base_dynlib_t** out_library);

// ---- Provider: null ----

// A device that does nothing and fails nothing: every row is present, each
// CREATE gives a new handle that is not NULL, page-locked host memory is real
// memory, host functions are called at once. For tests of the modules above,
// which read the balance of handles. One in a process; its current context is
// one for all threads. Its own memory is the C library's, as a driver's is.
void kilni_table_cuda_table_null(kiln_cuda_table_t* out_table);
// Handles of `kind` (KILNI_HANDLE_*; NONE is all kinds) not yet destroyed.
uint64_t kilni_table_cuda_null_live(uint32_t kind);
// Destroys of a handle that did not live. 0 unless there is a bug above.
uint64_t kilni_table_cuda_null_bad_destroys(void);
// Forgets every handle.
void kilni_table_cuda_null_reset(void);

// ---- Wrappers ----

// Fills `out_table` (which may be `wrapped` itself: it is copied) with thunks
// that call `wrapped` and log each call with its arguments, what it gave and
// its result, at level TRACE. LIMIT_EXCEEDED when all places are taken.
kiln_status_t kilni_table_cuda_trace_install(const kiln_cuda_table_t* wrapped,
                                             kiln_log_sink_t log,
                                             kiln_cuda_table_t* out_table);
void kilni_table_cuda_trace_remove(const kiln_cuda_table_t* table);

// The same with thunks that fail a chosen call on the thread that armed them.
kiln_status_t kilni_table_cuda_fault_install(const kiln_cuda_table_t* wrapped,
                                             kiln_cuda_table_t* out_table);
void kilni_table_cuda_fault_remove(const kiln_cuda_table_t* table);

// From now on, the `nth` call (from 1; 0 fails none and only counts) of the
// calling thread fails with `result`; with KILNI_FAULT_FROM every later one
// too. A failed DESTROY calls through first and then reports; any other failed
// call does not happen. cuGetErrorName and cuGetErrorString are not counted.
void kilni_table_cuda_fault_arm(const kiln_cuda_table_t* table, uint64_t nth,
                                uint32_t mode, uint32_t result);
// Ends it. Returns the number of calls counted since, failed ones included.
uint64_t kilni_table_cuda_fault_disarm(const kiln_cuda_table_t* table);
// The name of the first call that was made to fail; NULL if none was.
const char* kilni_table_cuda_fault_hit(const kiln_cuda_table_t* table);

// ---- Results of the driver ----

// The status of a driver call: OK for success, NOT_READY bare, else with the
// native part, the call's name and a Fix. `call` is "cuMemAlloc".
kiln_status_t kilni_table_cuda_status(const kiln_cuda_table_t* table,
                                      kiln_cu_result_t result, const char* call,
                                      const char* space, const char* file,
                                      int line);

//   kiln_status_t status = KILNI_CUDA_STATUS(
//       table, table->cuMemAlloc(&address, bytes), "cuMemAlloc");
#define KILNI_CUDA_STATUS(table, result, call)                               \
  kilni_table_cuda_status((table), (result), (call), KILNI_MODULE, __FILE__, \
                          __LINE__)

// A UUID as text: "GPU-" (or another word of three letters) and 32 digits.
enum { KILNI_UUID_BYTES = 48 };
void kilni_table_cuda_uuid_text(const kiln_cu_uuid_t* uuid, const char* word,
                                char out_text[KILNI_UUID_BYTES]);

// "CUDA_ERROR_INVALID_VALUE"; NULL for a number that is not known here.
const char* kilni_table_cuda_result_name(kiln_cu_result_t result);
// One sentence for cuGetErrorString of providers; NULL as above.
const char* kilni_table_cuda_result_text(kiln_cu_result_t result);
// True if every later call on the context fails with it too.
bool kilni_table_cuda_result_is_sticky(kiln_cu_result_t result);
// The code of kilni_table_cuda_status for it.
kiln_status_code_t kilni_table_cuda_result_code(kiln_cu_result_t result);
// "MULTIPROCESSOR_COUNT"; NULL for a number that is not known here.
const char* kilni_table_cuda_attribute_name(
    kiln_cu_device_attribute_t attribute);

#endif  // KILN_SRC_TABLE_CUDA_TABLE_H_
