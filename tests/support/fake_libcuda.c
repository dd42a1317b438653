// SPDX-License-Identifier: Apache-2.0
//
// support: libraries that stand in for the driver's when loading is tested.
//
// Every function answers a number that says which row it is and by which way
// it was found. Built several times (tests/unit/table/CMakeLists.txt):
//
//   FAKE_VERSION   the driver's CUDA version; rows brought by a later one are
//                  not there
//   FAKE_ASK       1: has cuGetProcAddress_v2, which finds functions of its
//                  own; 2: has one that finds nothing
//   FAKE_EXPORTS   exports the rows by their exact symbols
//   FAKE_STUB      answers like the toolkit's link-time stand-in
//   FAKE_INIT      what cuInit answers instead
//   FAKE_NOTHING   has no symbol of a driver at all
#include <string.h>

#include "table/cuda_table.h"

#if defined(FAKE_INIT)
#define FAKE_ANSWER(way, name)                    \
  (KILNI_CUDA_ROW_##name == KILNI_CUDA_ROW_cuInit \
       ? (unsigned)FAKE_INIT                      \
       : (unsigned)(way) + KILNI_CUDA_ROW_##name)
#else
#define FAKE_ANSWER(way, name) ((way) + KILNI_CUDA_ROW_##name)
#endif

#define FAKE_EXPORT __attribute__((visibility("default"), used))

#if defined(FAKE_NOTHING)

FAKE_EXPORT int kiln_fake_nothing(void);
FAKE_EXPORT int kiln_fake_nothing(void) {
  return 0;
}

#else

FAKE_EXPORT kiln_cu_result_t cuDriverGetVersion(int* version);
FAKE_EXPORT kiln_cu_result_t cuDriverGetVersion(int* version) {
  *version = FAKE_VERSION;
#if defined(FAKE_STUB)
  return KILN_CU_ERROR_STUB_LIBRARY;
#else
  return KILN_CU_SUCCESS;
#endif
}

#if FAKE_EXPORTS
#define FAKE_CUDA_ROW(name, symbol, base, version, params, ...) \
  FAKE_EXPORT kiln_cu_result_t symbol params;                   \
  FAKE_EXPORT kiln_cu_result_t symbol params {                  \
    __VA_ARGS__                                                 \
    return FAKE_ANSWER(10000, name);                            \
  }
#include "fake_rows_gen.inc"
#undef FAKE_CUDA_ROW

// What an unpinned search would take: older signatures under the bare names,
// and the twins for the other default stream.
#define FAKE_TRAP(symbol)                     \
  FAKE_EXPORT kiln_cu_result_t symbol(void);  \
  FAKE_EXPORT kiln_cu_result_t symbol(void) { \
    return 66;                                \
  }
FAKE_TRAP(cuMemAlloc)
FAKE_TRAP(cuMemFree)
FAKE_TRAP(cuStreamDestroy)
FAKE_TRAP(cuCtxSynchronize_v2)
FAKE_TRAP(cuLaunchKernel_ptsz)
FAKE_TRAP(cuMemcpyHtoD_v2_ptds)
#endif

#if FAKE_ASK
#define FAKE_CUDA_ROW(name, symbol, base, version, params, ...) \
  static kiln_cu_result_t asked_##name params {                 \
    __VA_ARGS__                                                 \
    return FAKE_ANSWER(20000, name);                            \
  }
#include "fake_rows_gen.inc"
#undef FAKE_CUDA_ROW

FAKE_EXPORT kiln_cu_result_t
cuGetProcAddress_v2(const char* symbol, void** address, int version,
                    uint64_t flags, kiln_cu_proc_address_query_t* found);
FAKE_EXPORT kiln_cu_result_t
cuGetProcAddress_v2(const char* symbol, void** address, int version,
                    uint64_t flags, kiln_cu_proc_address_query_t* found) {
  *address = NULL;
  *found = KILN_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  // Only the pinned version and the legacy default stream are answered.
  if (flags != KILN_CU_GET_PROC_ADDRESS_LEGACY_STREAM) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  kilni_cuGetProcAddress_fn_t self = cuGetProcAddress_v2;
  if (strcmp(symbol, "cuGetProcAddress") == 0 && version == 12000) {
    memcpy(address, &self, sizeof(self));
  }
  kilni_cuDriverGetVersion_fn_t ask_version = cuDriverGetVersion;
  if (strcmp(symbol, "cuDriverGetVersion") == 0 && version == 2020) {
    memcpy(address, &ask_version, sizeof(ask_version));
  }
#define FAKE_CUDA_ROW(name, symbol_, base, version_, params, ...) \
  if (strcmp(symbol, #base) == 0 && version == version_) {        \
    kilni_##name##_fn_t function = asked_##name;                  \
    memcpy(address, &function, sizeof(function));                 \
  }
#include "fake_rows_gen.inc"
#undef FAKE_CUDA_ROW
  if (FAKE_ASK == 2) *address = NULL;
  if (*address == NULL) return KILN_CU_ERROR_NOT_FOUND;
  *found = KILN_CU_GET_PROC_ADDRESS_SUCCESS;
  return KILN_CU_SUCCESS;
}
#endif

#endif  // FAKE_NOTHING
