// SPDX-License-Identifier: Apache-2.0
//
// table: the seam. The CUDA driver, NVRTC, libNVVM, nvJitLink and NVML as
// structs of entry points.
//
// Everything above this room is written once against kiln_cuda_table_t and
// calls `table->cuMemAlloc(...)`. Who fills the table is the only difference
// between a GPU and no GPU: libcuda (here), the software device (soft/), the
// null provider (here), and the wrappers trace and fault around any of them.
// This room opens the library that it is handed and never searches for one.
//
// The rows and their columns are the files *_rows.inc. A table is filled once
// and only read afterwards.
#ifndef KILN_SRC_TABLE_TABLE_H_
#define KILN_SRC_TABLE_TABLE_H_

#include "base/dynlib.h"
#include "base/host.h"
#include "base/status_make.h"
#include "table/cuda_abi.h"
#include "table/nvml_abi.h"
#include "table/nvjitlink_abi.h"
#include "table/nvrtc_abi.h"
#include "table/nvtx_abi.h"
#include "table/nvvm_abi.h"
#include "table/table_types_gen.h"

// ---- Rows ----

// Names one row: KILNI_CUDA_ROW_cuMemAlloc.
typedef enum kilni_cuda_row_id_t {
#define KILNI_CUDA_ROW(name, ...) KILNI_CUDA_ROW_##name,
#include "table/cuda_rows.inc"
#undef KILNI_CUDA_ROW
  KILNI_CUDA_ROW_COUNT
} kilni_cuda_row_id_t;

enum { KILNI_NEED_REQUIRED = 0, KILNI_NEED_OPTIONAL = 1 };

enum {
  KILNI_CONTEXT_NONE = 0,         // works without a current context
  KILNI_CONTEXT_FROM_STREAM = 1,  // takes its stream's
  KILNI_CONTEXT_CURRENT = 2,      // needs a current one
};

enum { KILNI_CAPTURE_SAFE = 0, KILNI_CAPTURE_UNSAFE = 1 };

enum {
  KILNI_EFFECT_QUERY = 0,
  KILNI_EFFECT_CREATE = 1,
  KILNI_EFFECT_DESTROY = 2,
  KILNI_EFFECT_ACT = 3,
};

enum {
  KILNI_HANDLE_NONE = 0,
  KILNI_HANDLE_PRIMARY_CONTEXT = 1,
  KILNI_HANDLE_MEMORY = 2,
  KILNI_HANDLE_HOST_MEMORY = 3,
  KILNI_HANDLE_HOST_REGISTRATION = 4,
  KILNI_HANDLE_STREAM = 5,
  KILNI_HANDLE_EVENT = 6,
  KILNI_HANDLE_MODULE = 7,
  KILNI_HANDLE_PROGRAM = 8,
  KILNI_HANDLE_SESSION = 9,  // of NVML, which counts its users
  KILNI_HANDLE_LINK = 10,
  KILNI_HANDLE_LIBRARY = 11,
  KILNI_HANDLE_MEMORY_POOL = 12,
  KILNI_HANDLE_ADDRESSES = 13,  // reserved
  KILNI_HANDLE_PHYSICAL = 14,   // memory to be mapped there
  KILNI_HANDLE_MAPPING = 15,
  KILNI_HANDLE_GREEN_CONTEXT = 16,
  KILNI_HANDLE_ARRAY = 17,
  KILNI_HANDLE_TEXTURE = 18,
  KILNI_HANDLE_SURFACE = 19,
  KILNI_HANDLE_OPENED_MEMORY = 20,  // of another process, by cuIpcOpenMemHandle
  KILNI_HANDLE_MIPMAPPED_ARRAY = 21,
  KILNI_HANDLE_GRAPH = 22,
  KILNI_HANDLE_GRAPH_EXEC = 23,
  KILNI_HANDLE_USER_OBJECT = 24,  // a reference to one
  KILNI_HANDLE_SEMAPHORE = 25,
  KILNI_HANDLE_COUNT = 26,
};

// The columns of one row. thread-safe
typedef struct kilni_table_row_t {
  const char* name;     // "cuMemAlloc"
  const char* symbol;   // "cuMemAlloc_v2"
  const char* feature;  // of an optional row: what is missing without it
  uint32_t version;     // 3020 is CUDA 3.2
  uint8_t need;         // KILNI_NEED_*
  uint8_t context;      // KILNI_CONTEXT_*
  uint8_t capture;      // KILNI_CAPTURE_*
  uint8_t effect;       // KILNI_EFFECT_*
  uint8_t handle;       // KILNI_HANDLE_*: what it creates or destroys
  uint8_t reserved;
  uint16_t place;  // of its entry point in the table, in bytes
} kilni_table_row_t;

// The columns of a row; static.
const kilni_table_row_t* kilni_cuda_row(kilni_cuda_row_id_t row);

// ---- The driver's table ----

// The CUDA driver's entry points. thread-safe
//
// Filled by a provider, then const. An absent row is never NULL: it answers
// KILN_CU_ERROR_CALL_REQUIRES_NEWER_DRIVER. Ask kilni_cuda_has for it.
typedef struct kiln_cuda_table_t {
  char provider[32];    // "libcuda", "soft", "null", "trace(libcuda)"
  const char* origin;   // where it came from, for messages; borrowed
  int driver_version;   // 13000 is CUDA 13.0; 0 before it is known
  uint32_t slot;        // of a wrapper: which of its places it holds
  uint64_t present[6];  // one bit for each row
#define KILNI_CUDA_ROW(name, ...) kilni_##name##_fn_t name;
#include "table/cuda_rows.inc"
#undef KILNI_CUDA_ROW
} kiln_cuda_table_t;

// True if the provider has the row.
static inline bool kilni_cuda_has(const kiln_cuda_table_t* table,
                                  kilni_cuda_row_id_t row) {
  return (table->present[(unsigned)row / 64] >> ((unsigned)row % 64)) & 1;
}

// OK if the provider has the row; else UNSUPPORTED, naming what is missing and
// the first driver that has it.
kiln_status_t kilni_cuda_need(const kiln_cuda_table_t* table,
                              kilni_cuda_row_id_t row);

// For a provider: every row absent, then one KILNI_CUDA_SET for each that it
// has (the compiler checks the signature), then kilni_cuda_table_check.
// `origin` must outlive the table.
void kilni_cuda_table_init(kiln_cuda_table_t* table, const char* provider,
                           const char* origin);
#define KILNI_CUDA_SET(table, name, fn) \
  ((table)->name = (fn), kilni_cuda_mark((table), KILNI_CUDA_ROW_##name, true))
void kilni_cuda_mark(kiln_cuda_table_t* table, kilni_cuda_row_id_t row,
                     bool present);

// OK if every REQUIRED row is there; else INCOMPATIBLE, naming all that are
// not and the driver version found.
kiln_status_t kilni_cuda_table_check(const kiln_cuda_table_t* table);

// ---- Provider: the driver library ----

// Opens `library` (a path or a name for the system loader; NULL is the value
// of KILN_LIBCUDA, else "libcuda.so.1") and fills the table from it. The
// driver is not started: the caller calls cuInit. NOT_FOUND without such a
// library, INCOMPATIBLE for a driver that is too old or for the toolkit's
// link-time stand-in. `*out_library` must stay open while the table is used.
kiln_status_t kilni_cuda_table_open(const kiln_host_t* host,
                                    const char* library,
                                    kiln_cuda_table_t* out_table,
                                    kilni_dynlib_t** out_library);

// Only asks for the driver's CUDA version (13000 is 13.0), which needs neither
// a table nor a driver that is new enough. NOT_FOUND and INCOMPATIBLE as above.
// The caller closes `*out_library`.
kiln_status_t kilni_cuda_version_ask(const kiln_host_t* host,
                                     const char* library, int* out_version,
                                     kilni_dynlib_t** out_library);

// ---- Provider: null ----

// A device that does nothing and fails nothing: every row is there, each
// CREATE gives a new handle that is not NULL, page-locked host memory is real
// memory, host functions are called at once. For tests of what stands above,
// which read the balance of handles. One in a process; its current context is
// one for all threads. Its own memory is the C library's, as a driver's is.
void kilni_cuda_table_null(kiln_cuda_table_t* out_table);
// Handles of `kind` (KILNI_HANDLE_*; NONE is all kinds) not yet destroyed.
uint64_t kilni_cuda_null_live(uint32_t kind);
// Destroys of a handle that did not live. 0 unless there is a bug above.
uint64_t kilni_cuda_null_bad_destroys(void);
// Forgets every handle.
void kilni_cuda_null_reset(void);

// ---- Wrappers ----
//
// A thunk with the driver's own signature carries no user pointer. What each
// wrapper wraps is therefore the one mutable global of this room, with
// KILNI_WRAP_SLOTS places for each kind of wrapper, so that the driver and the
// software device can both be wrapped. Install wrappers before the first call
// through the table and remove them after the last.
enum { KILNI_WRAP_SLOTS = 2 };
//
// Every library's table has the same ones; what is said here of the driver's
// holds for all. `result` of a fault is in the library's own numbers.

// Fills `out_table` (which may be `wrapped` itself: it is copied) with thunks
// that call `wrapped` and log each call with its arguments, what it gave and
// its result, at level TRACE. LIMIT_EXCEEDED when all places are taken.
kiln_status_t kilni_cuda_trace_install(const kiln_cuda_table_t* wrapped,
                                       kiln_log_sink_t log,
                                       kiln_cuda_table_t* out_table);
void kilni_cuda_trace_remove(const kiln_cuda_table_t* table);

// The same with thunks that fail a chosen call on the thread that armed them.
kiln_status_t kilni_cuda_fault_install(const kiln_cuda_table_t* wrapped,
                                       kiln_cuda_table_t* out_table);
void kilni_cuda_fault_remove(const kiln_cuda_table_t* table);

enum { KILNI_FAULT_ONCE = 0, KILNI_FAULT_FROM = 1 };

// From now on, the `nth` call (from 1; 0 fails none and only counts) of the
// calling thread fails with `result`; with KILNI_FAULT_FROM every later one
// too. A failed DESTROY calls through first and then reports; any other failed
// call does not happen. cuGetErrorName and cuGetErrorString are not counted.
void kilni_cuda_fault_arm(const kiln_cuda_table_t* table, uint64_t nth,
                          uint32_t mode, uint32_t result);
// Ends it. Returns the number of calls counted since, failed ones included.
uint64_t kilni_cuda_fault_disarm(const kiln_cuda_table_t* table);
// The name of the first call that was made to fail; NULL if none was.
const char* kilni_cuda_fault_hit(const kiln_cuda_table_t* table);

// ---- Results of the driver ----

// The status of a driver call: OK for success, NOT_READY bare, else with the
// native part, the call's name and a Fix. `call` is "cuMemAlloc".
kiln_status_t kilni_cuda_status(const kiln_cuda_table_t* table,
                                kiln_cu_result_t result, const char* call,
                                const char* room, const char* file, int line);

//   kiln_status_t status = KILNI_CUDA_STATUS(
//       table, table->cuMemAlloc(&address, bytes), "cuMemAlloc");
#define KILNI_CUDA_STATUS(table, result, call) \
  kilni_cuda_status((table), (result), (call), KILNI_ROOM, __FILE__, __LINE__)

// A UUID as text: "GPU-" (or another word of three letters) and 32 digits.
enum { KILNI_UUID_BYTES = 48 };
void kilni_cuda_uuid_text(const kiln_cu_uuid_t* uuid, const char* word,
                          char out_text[KILNI_UUID_BYTES]);

// "CUDA_ERROR_INVALID_VALUE"; NULL for a number that is not known here.
const char* kilni_cuda_result_name(kiln_cu_result_t result);
// One sentence for cuGetErrorString of providers; NULL as above.
const char* kilni_cuda_result_text(kiln_cu_result_t result);
// True if every later call on the context fails with it too.
bool kilni_cuda_result_is_sticky(kiln_cu_result_t result);
// The code of kilni_cuda_status for it.
kiln_status_code_t kilni_cuda_result_code(kiln_cu_result_t result);
// "MULTIPROCESSOR_COUNT"; NULL for a number that is not known here.
const char* kilni_cuda_attribute_name(kiln_cu_device_attribute_t attribute);

// ---- NVRTC ----

// Names one row: KILNI_NVRTC_ROW_nvrtcGetPTX.
typedef enum kilni_nvrtc_row_id_t {
#define KILNI_NVRTC_ROW(name, ...) KILNI_NVRTC_ROW_##name,
#include "table/nvrtc_rows.inc"
#undef KILNI_NVRTC_ROW
  KILNI_NVRTC_ROW_COUNT
} kilni_nvrtc_row_id_t;

const kilni_table_row_t* kilni_nvrtc_row(kilni_nvrtc_row_id_t row);

// NVRTC's entry points. thread-safe
//
// As kiln_cuda_table_t. An absent row answers
// KILN_NVRTC_ERROR_INTERNAL_ERROR.
typedef struct kiln_nvrtc_table_t {
  char provider[32];   // "libnvrtc"
  const char* origin;  // the file; borrowed from the library
  int major;           // of NVRTC's own version
  int minor;
  uint32_t slot;  // of a wrapper: which of its places it holds
  uint32_t reserved;
  uint64_t present[1];  // one bit for each row
#define KILNI_NVRTC_ROW(name, ...) kilni_##name##_fn_t name;
#include "table/nvrtc_rows.inc"
#undef KILNI_NVRTC_ROW
} kiln_nvrtc_table_t;

static inline bool kilni_nvrtc_has(const kiln_nvrtc_table_t* table,
                                   kilni_nvrtc_row_id_t row) {
  return (table->present[0] >> (unsigned)row) & 1;
}
kiln_status_t kilni_nvrtc_need(const kiln_nvrtc_table_t* table,
                               kilni_nvrtc_row_id_t row);

// For a provider, as kilni_cuda_table_init and KILNI_CUDA_SET.
void kilni_nvrtc_table_init(kiln_nvrtc_table_t* table, const char* provider,
                            const char* origin);
#define KILNI_NVRTC_SET(table, name, fn) \
  ((table)->name = (fn),                 \
   kilni_nvrtc_mark((table), KILNI_NVRTC_ROW_##name, true))
void kilni_nvrtc_mark(kiln_nvrtc_table_t* table, kilni_nvrtc_row_id_t row,
                      bool present);

// Opens `library`, which somebody else has found, and fills the table, version
// included. NOT_FOUND or INCOMPATIBLE as kilni_cuda_table_open.
kiln_status_t kilni_nvrtc_table_open(const kiln_host_t* host,
                                     const char* library,
                                     kiln_nvrtc_table_t* out_table,
                                     kilni_dynlib_t** out_library);

// A compiler that compiles nothing: every source becomes the same PTX without a
// kernel. Its programs are among the handles of kilni_cuda_null_live.
void kilni_nvrtc_table_null(kiln_nvrtc_table_t* out_table);

// Wrappers, as those of the driver. nvrtcGetErrorString is not wrapped.
kiln_status_t kilni_nvrtc_trace_install(const kiln_nvrtc_table_t* wrapped,
                                        kiln_log_sink_t log,
                                        kiln_nvrtc_table_t* out_table);
void kilni_nvrtc_trace_remove(const kiln_nvrtc_table_t* table);
kiln_status_t kilni_nvrtc_fault_install(const kiln_nvrtc_table_t* wrapped,
                                        kiln_nvrtc_table_t* out_table);
void kilni_nvrtc_fault_remove(const kiln_nvrtc_table_t* table);
void kilni_nvrtc_fault_arm(const kiln_nvrtc_table_t* table, uint64_t nth,
                           uint32_t mode, uint32_t result);
uint64_t kilni_nvrtc_fault_disarm(const kiln_nvrtc_table_t* table);
const char* kilni_nvrtc_fault_hit(const kiln_nvrtc_table_t* table);

// The status of a call into NVRTC, as kilni_cuda_status.
kiln_status_t kilni_nvrtc_status(const kiln_nvrtc_table_t* table,
                                 kiln_nvrtc_result_t result, const char* call,
                                 const char* room, const char* file, int line);
#define KILNI_NVRTC_STATUS(table, result, call) \
  kilni_nvrtc_status((table), (result), (call), KILNI_ROOM, __FILE__, __LINE__)
const char* kilni_nvrtc_result_name(kiln_nvrtc_result_t result);

// ---- nvJitLink ----

// Names one row: KILNI_NVJITLINK_ROW_nvJitLinkComplete.
typedef enum kilni_nvjitlink_row_id_t {
#define KILNI_NVJITLINK_ROW(name, ...) KILNI_NVJITLINK_ROW_##name,
#include "table/nvjitlink_rows.inc"
#undef KILNI_NVJITLINK_ROW
  KILNI_NVJITLINK_ROW_COUNT
} kilni_nvjitlink_row_id_t;

const kilni_table_row_t* kilni_nvjitlink_row(kilni_nvjitlink_row_id_t row);

// nvJitLink's entry points. thread-safe
//
// As kiln_cuda_table_t. An absent row answers
// KILN_NVJITLINK_ERROR_INTERNAL.
typedef struct kiln_nvjitlink_table_t {
  char provider[32];   // "libnvJitLink"
  const char* origin;  // the file; borrowed from the library
  unsigned int major;  // of its own version
  unsigned int minor;
  uint32_t slot;  // of a wrapper: which of its places it holds
  uint32_t reserved;
  uint64_t present[1];  // one bit for each row
#define KILNI_NVJITLINK_ROW(name, ...) kilni_##name##_fn_t name;
#include "table/nvjitlink_rows.inc"
#undef KILNI_NVJITLINK_ROW
} kiln_nvjitlink_table_t;

static inline bool kilni_nvjitlink_has(const kiln_nvjitlink_table_t* table,
                                       kilni_nvjitlink_row_id_t row) {
  return (table->present[0] >> (unsigned)row) & 1;
}
kiln_status_t kilni_nvjitlink_need(const kiln_nvjitlink_table_t* table,
                                   kilni_nvjitlink_row_id_t row);

// For a provider, as kilni_cuda_table_init and KILNI_CUDA_SET.
void kilni_nvjitlink_table_init(kiln_nvjitlink_table_t* table,
                                const char* provider, const char* origin);
#define KILNI_NVJITLINK_SET(table, name, fn) \
  ((table)->name = (fn),                     \
   kilni_nvjitlink_mark((table), KILNI_NVJITLINK_ROW_##name, true))
void kilni_nvjitlink_mark(kiln_nvjitlink_table_t* table,
                          kilni_nvjitlink_row_id_t row, bool present);

// Opens `library`, which somebody else has found, and fills the table, version
// included. NOT_FOUND or INCOMPATIBLE as kilni_cuda_table_open.
kiln_status_t kilni_nvjitlink_table_open(const kiln_host_t* host,
                                         const char* library,
                                         kiln_nvjitlink_table_t* out_table,
                                         kilni_dynlib_t** out_library);

// A linker that links nothing: whatever goes in, a cubin, PTX or LTO-IR comes
// out that only begins as one. Its links are among the handles of
// kilni_cuda_null_live.
void kilni_nvjitlink_table_null(kiln_nvjitlink_table_t* out_table);

// Wrappers, as those of the driver.
kiln_status_t kilni_nvjitlink_trace_install(
    const kiln_nvjitlink_table_t* wrapped, kiln_log_sink_t log,
    kiln_nvjitlink_table_t* out_table);
void kilni_nvjitlink_trace_remove(const kiln_nvjitlink_table_t* table);
kiln_status_t kilni_nvjitlink_fault_install(
    const kiln_nvjitlink_table_t* wrapped, kiln_nvjitlink_table_t* out_table);
void kilni_nvjitlink_fault_remove(const kiln_nvjitlink_table_t* table);
void kilni_nvjitlink_fault_arm(const kiln_nvjitlink_table_t* table,
                               uint64_t nth, uint32_t mode, uint32_t result);
uint64_t kilni_nvjitlink_fault_disarm(const kiln_nvjitlink_table_t* table);
const char* kilni_nvjitlink_fault_hit(const kiln_nvjitlink_table_t* table);

// The status of a call into nvJitLink, as kilni_cuda_status.
kiln_status_t kilni_nvjitlink_status(const kiln_nvjitlink_table_t* table,
                                     kiln_nvjitlink_result_t result,
                                     const char* call, const char* room,
                                     const char* file, int line);
#define KILNI_NVJITLINK_STATUS(table, result, call)                       \
  kilni_nvjitlink_status((table), (result), (call), KILNI_ROOM, __FILE__, \
                         __LINE__)
const char* kilni_nvjitlink_result_name(kiln_nvjitlink_result_t result);

// ---- libNVVM ----

// Names one row: KILNI_NVVM_ROW_nvvmCompileProgram.
typedef enum kilni_nvvm_row_id_t {
#define KILNI_NVVM_ROW(name, ...) KILNI_NVVM_ROW_##name,
#include "table/nvvm_rows.inc"
#undef KILNI_NVVM_ROW
  KILNI_NVVM_ROW_COUNT
} kilni_nvvm_row_id_t;

const kilni_table_row_t* kilni_nvvm_row(kilni_nvvm_row_id_t row);

// libNVVM's entry points. thread-safe
//
// As kiln_cuda_table_t. An absent row answers
// KILN_NVVM_ERROR_INVALID_PROGRAM.
typedef struct kiln_nvvm_table_t {
  char provider[32];   // "libnvvm"
  const char* origin;  // the file; borrowed from the library
  int major;           // of its own version
  int minor;
  uint32_t slot;  // of a wrapper: which of its places it holds
  uint32_t reserved;
  uint64_t present[1];  // one bit for each row
#define KILNI_NVVM_ROW(name, ...) kilni_##name##_fn_t name;
#include "table/nvvm_rows.inc"
#undef KILNI_NVVM_ROW
} kiln_nvvm_table_t;

static inline bool kilni_nvvm_has(const kiln_nvvm_table_t* table,
                                  kilni_nvvm_row_id_t row) {
  return (table->present[0] >> (unsigned)row) & 1;
}
kiln_status_t kilni_nvvm_need(const kiln_nvvm_table_t* table,
                              kilni_nvvm_row_id_t row);

// For a provider, as kilni_cuda_table_init and KILNI_CUDA_SET.
void kilni_nvvm_table_init(kiln_nvvm_table_t* table, const char* provider,
                           const char* origin);
#define KILNI_NVVM_SET(table, name, fn) \
  ((table)->name = (fn), kilni_nvvm_mark((table), KILNI_NVVM_ROW_##name, true))
void kilni_nvvm_mark(kiln_nvvm_table_t* table, kilni_nvvm_row_id_t row,
                     bool present);

// Opens `library`, which somebody else has found, and fills the table, version
// included. NOT_FOUND or INCOMPATIBLE as kilni_cuda_table_open.
kiln_status_t kilni_nvvm_table_open(const kiln_host_t* host,
                                    const char* library,
                                    kiln_nvvm_table_t* out_table,
                                    kilni_dynlib_t** out_library);

// A compiler that compiles nothing: every module becomes the same PTX without a
// kernel. Its programs are among the handles of kilni_cuda_null_live.
void kilni_nvvm_table_null(kiln_nvvm_table_t* out_table);

// Wrappers, as those of the driver. nvvmGetErrorString is not wrapped.
kiln_status_t kilni_nvvm_trace_install(const kiln_nvvm_table_t* wrapped,
                                       kiln_log_sink_t log,
                                       kiln_nvvm_table_t* out_table);
void kilni_nvvm_trace_remove(const kiln_nvvm_table_t* table);
kiln_status_t kilni_nvvm_fault_install(const kiln_nvvm_table_t* wrapped,
                                       kiln_nvvm_table_t* out_table);
void kilni_nvvm_fault_remove(const kiln_nvvm_table_t* table);
void kilni_nvvm_fault_arm(const kiln_nvvm_table_t* table, uint64_t nth,
                          uint32_t mode, uint32_t result);
uint64_t kilni_nvvm_fault_disarm(const kiln_nvvm_table_t* table);
const char* kilni_nvvm_fault_hit(const kiln_nvvm_table_t* table);

// The status of a call into libNVVM, as kilni_cuda_status.
kiln_status_t kilni_nvvm_status(const kiln_nvvm_table_t* table,
                                kiln_nvvm_result_t result, const char* call,
                                const char* room, const char* file, int line);
#define KILNI_NVVM_STATUS(table, result, call) \
  kilni_nvvm_status((table), (result), (call), KILNI_ROOM, __FILE__, __LINE__)
const char* kilni_nvvm_result_name(kiln_nvvm_result_t result);

// ---- NVTX ----

// Where ranges of a profiler are told to. thread-safe
//
// Whole or not there: no entry is NULL.
typedef struct kiln_nvtx_table_t {
  kiln_nvtx_domain_t domain;  // Kiln's own
#define KILNI_NVTX_ROW(name, number, result, params) result(*name) params;
#include "table/nvtx_rows.inc"
#undef KILNI_NVTX_ROW
} kiln_nvtx_table_t;

// The process's table: of the library that a profiler names in
// NVTX_INJECTION64_PATH, or else, if `wanted`, of libnvToolsExt.so.1. NULL
// where there is none. Opened once in a process, and never closed.
const kiln_nvtx_table_t* kilni_nvtx_table_open(const kiln_host_t* host,
                                               bool wanted);

// ---- NVML ----

// Names one row: KILNI_NVML_ROW_nvmlDeviceGetName.
typedef enum kilni_nvml_row_id_t {
#define KILNI_NVML_ROW(name, ...) KILNI_NVML_ROW_##name,
#include "table/nvml_rows.inc"
#undef KILNI_NVML_ROW
  KILNI_NVML_ROW_COUNT
} kilni_nvml_row_id_t;

const kilni_table_row_t* kilni_nvml_row(kilni_nvml_row_id_t row);

// NVML's entry points. thread-safe
//
// As kiln_cuda_table_t. An absent row answers
// KILN_NVML_ERROR_FUNCTION_NOT_FOUND. Between nvmlInit and nvmlShutdown, which
// are counted, it answers; before and after it is UNINITIALIZED.
typedef struct kiln_nvml_table_t {
  char provider[32];   // "libnvidia-ml"
  const char* origin;  // the file; borrowed from the library
  uint32_t slot;       // of a wrapper: which of its places it holds
  uint32_t reserved;
  uint64_t present[2];  // one bit for each row
#define KILNI_NVML_ROW(name, ...) kilni_##name##_fn_t name;
#include "table/nvml_rows.inc"
#undef KILNI_NVML_ROW
} kiln_nvml_table_t;

static inline bool kilni_nvml_has(const kiln_nvml_table_t* table,
                                  kilni_nvml_row_id_t row) {
  return (table->present[(unsigned)row / 64] >> ((unsigned)row % 64)) & 1;
}
kiln_status_t kilni_nvml_need(const kiln_nvml_table_t* table,
                              kilni_nvml_row_id_t row);

// For a provider, as kilni_cuda_table_init and KILNI_CUDA_SET.
void kilni_nvml_table_init(kiln_nvml_table_t* table, const char* provider,
                           const char* origin);
#define KILNI_NVML_SET(table, name, fn) \
  ((table)->name = (fn), kilni_nvml_mark((table), KILNI_NVML_ROW_##name, true))
void kilni_nvml_mark(kiln_nvml_table_t* table, kilni_nvml_row_id_t row,
                     bool present);

// Opens `library` (a path or a name for the system loader; NULL is
// "libnvidia-ml.so.1") and fills the table. NOT_FOUND or INCOMPATIBLE as
// kilni_cuda_table_open. Nothing is initialised: the caller calls nvmlInit.
kiln_status_t kilni_nvml_table_open(const kiln_host_t* host,
                                    const char* library,
                                    kiln_nvml_table_t* out_table,
                                    kilni_dynlib_t** out_library);

// The display driver's release as NVML says it ("580.65.06"), with a NUL;
// "" where there is no NVML, or none that answers. `library` as above,
// `capacity` above 0.
kiln_status_t kilni_nvml_release_ask(const kiln_host_t* host,
                                     const char* library, size_t capacity,
                                     char* out_text);
// The same of a table. False, and "", where it does not answer.
bool kilni_nvml_release_read(const kiln_nvml_table_t* table, size_t capacity,
                             char* out_text);

// A machine with one GPU that does nothing: it has a name, memory and no
// processes. Its sessions are among the handles of kilni_cuda_null_live.
void kilni_nvml_table_null(kiln_nvml_table_t* out_table);

// Wrappers, as those of the driver. nvmlErrorString is not wrapped.
kiln_status_t kilni_nvml_trace_install(const kiln_nvml_table_t* wrapped,
                                       kiln_log_sink_t log,
                                       kiln_nvml_table_t* out_table);
void kilni_nvml_trace_remove(const kiln_nvml_table_t* table);
kiln_status_t kilni_nvml_fault_install(const kiln_nvml_table_t* wrapped,
                                       kiln_nvml_table_t* out_table);
void kilni_nvml_fault_remove(const kiln_nvml_table_t* table);
void kilni_nvml_fault_arm(const kiln_nvml_table_t* table, uint64_t nth,
                          uint32_t mode, uint32_t result);
uint64_t kilni_nvml_fault_disarm(const kiln_nvml_table_t* table);
const char* kilni_nvml_fault_hit(const kiln_nvml_table_t* table);

// The status of a call into NVML, as kilni_cuda_status.
kiln_status_t kilni_nvml_status(const kiln_nvml_table_t* table,
                                kiln_nvml_result_t result, const char* call,
                                const char* room, const char* file, int line);
#define KILNI_NVML_STATUS(table, result, call) \
  kilni_nvml_status((table), (result), (call), KILNI_ROOM, __FILE__, __LINE__)
const char* kilni_nvml_result_name(kiln_nvml_result_t result);

#endif  // KILN_SRC_TABLE_TABLE_H_
