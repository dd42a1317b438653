// SPDX-License-Identifier: Apache-2.0
//
// support: libraries that stand in for NVRTC when loading is tested.
//
//   FAKE_VERSION   of CUDA; rows brought by a later one are not there
//   FAKE_SLOW      every call succeeds, and a compilation never ends
//   FAKE_NOTHING   has no symbol of NVRTC at all
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include "table/nvrtc_table.h"

#define FAKE_EXPORT __attribute__((visibility("default"), used))

#if defined(FAKE_NOTHING)

FAKE_EXPORT int kiln_fake_no_nvrtc(void);
FAKE_EXPORT int kiln_fake_no_nvrtc(void) {
  return 0;
}

#else

FAKE_EXPORT kiln_nvrtc_result_t nvrtcVersion(int* major, int* minor);
FAKE_EXPORT kiln_nvrtc_result_t nvrtcVersion(int* major, int* minor) {
  *major = FAKE_VERSION / 1000;
  *minor = FAKE_VERSION % 1000 / 10;
  return KILN_NVRTC_SUCCESS;
}

FAKE_EXPORT const char* nvrtcGetErrorString(kiln_nvrtc_result_t result);
FAKE_EXPORT const char* nvrtcGetErrorString(kiln_nvrtc_result_t result) {
  return result == 77 ? "NVRTC_ERROR_SEVENTY_SEVEN" : "NVRTC_OTHER";
}

#if defined(FAKE_SLOW)
static kiln_nvrtc_result_t answer(kilni_nvrtc_row_id_t row) {
  // Until the test kills it.
  // NOLINTNEXTLINE(bugprone-infinite-loop)
  while (row == KILNI_NVRTC_ROW_nvrtcCompileProgram) pause();
  return KILN_NVRTC_SUCCESS;
}
#else
static kiln_nvrtc_result_t answer(kilni_nvrtc_row_id_t row) {
  return 10000 + (kiln_nvrtc_result_t)row;
}
#endif

FAKE_EXPORT kiln_nvrtc_result_t nvrtcGetNumSupportedArchs(int* count);
FAKE_EXPORT kiln_nvrtc_result_t nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return answer(KILNI_NVRTC_ROW_nvrtcGetNumSupportedArchs);
}

#define FAKE_NVRTC_ROW(name, params, ...)       \
  FAKE_EXPORT kiln_nvrtc_result_t name params;  \
  FAKE_EXPORT kiln_nvrtc_result_t name params { \
    __VA_ARGS__                                 \
    return answer(KILNI_NVRTC_ROW_##name);      \
  }
#include "fake_rows_gen.inc"

#endif  // FAKE_NOTHING
