// SPDX-License-Identifier: Apache-2.0
//
// support: libraries that stand in for nvJitLink when loading is tested.
//
//   FAKE_VERSION   of CUDA; rows brought by a later one are not there
//   FAKE_NOTHING   has no symbol of nvJitLink at all
#include "table/nvjitlink_table.h"

#define FAKE_EXPORT __attribute__((visibility("default"), used))

#if defined(FAKE_NOTHING)

FAKE_EXPORT int kiln_fake_no_nvjitlink(void);
FAKE_EXPORT int kiln_fake_no_nvjitlink(void) {
  return 0;
}

#else

FAKE_EXPORT kiln_nvjitlink_result_t nvJitLinkVersion(unsigned int* major,
                                                     unsigned int* minor);
FAKE_EXPORT kiln_nvjitlink_result_t nvJitLinkVersion(unsigned int* major,
                                                     unsigned int* minor) {
  *major = FAKE_VERSION / 1000;
  *minor = FAKE_VERSION % 1000 / 10;
  return KILN_NVJITLINK_SUCCESS;
}

#define FAKE_NVJITLINK_ROW(name, params, ...)       \
  FAKE_EXPORT kiln_nvjitlink_result_t name params;  \
  FAKE_EXPORT kiln_nvjitlink_result_t name params { \
    __VA_ARGS__                                     \
    return 10000 + KILNI_NVJITLINK_ROW_##name;      \
  }
#include "fake_rows_gen.inc"

#endif  // FAKE_NOTHING
