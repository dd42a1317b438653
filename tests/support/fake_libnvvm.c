// SPDX-License-Identifier: Apache-2.0
//
// support: libraries that stand in for libNVVM when loading is tested.
//
//   FAKE_VERSION   of CUDA; rows brought by a later one are not there
//   FAKE_NOTHING   has no symbol of libNVVM at all
#include "table/nvvm_table.h"

#define FAKE_EXPORT __attribute__((visibility("default"), used))

#if defined(FAKE_NOTHING)

FAKE_EXPORT int kiln_fake_no_nvvm(void);
FAKE_EXPORT int kiln_fake_no_nvvm(void) {
  return 0;
}

#else

FAKE_EXPORT kiln_nvvm_result_t nvvmVersion(int* major, int* minor);
FAKE_EXPORT kiln_nvvm_result_t nvvmVersion(int* major, int* minor) {
  *major = FAKE_VERSION / 1000;
  *minor = FAKE_VERSION % 1000 / 10;
  return KILN_NVVM_SUCCESS;
}

FAKE_EXPORT const char* nvvmGetErrorString(kiln_nvvm_result_t result);
FAKE_EXPORT const char* nvvmGetErrorString(kiln_nvvm_result_t result) {
  return result == 77 ? "NVVM_ERROR_SEVENTY_SEVEN" : "NVVM_OTHER";
}

#define FAKE_NVVM_ROW(name, params, ...)       \
  FAKE_EXPORT kiln_nvvm_result_t name params;  \
  FAKE_EXPORT kiln_nvvm_result_t name params { \
    __VA_ARGS__                                \
    return 10000 + KILNI_NVVM_ROW_##name;      \
  }
#include "fake_rows_gen.inc"

#endif  // FAKE_NOTHING
