// SPDX-License-Identifier: Apache-2.0
//
// support: libraries that stand in for NVML when loading is tested.
//
//   FAKE_VERSION   of CUDA; rows brought by a later one are not there
//   FAKE_RELEASE   what it says of the display driver
//   FAKE_INIT      the result of nvmlInit_v2; 0 without
//   FAKE_NOTHING   has no symbol of NVML at all
#include <stdio.h>

#include "table/nvml_table.h"

#define FAKE_EXPORT __attribute__((visibility("default"), used))

#if defined(FAKE_NOTHING)

FAKE_EXPORT int kiln_fake_no_nvml(void);
FAKE_EXPORT int kiln_fake_no_nvml(void) {
  return 0;
}

#else

#if !defined(FAKE_INIT)
#define FAKE_INIT KILN_NVML_SUCCESS
#endif

// How many sessions are open, for the test that loads it.
extern int kiln_fake_sessions;
FAKE_EXPORT int kiln_fake_sessions;

FAKE_EXPORT kiln_nvml_result_t nvmlInit_v2(void);
FAKE_EXPORT kiln_nvml_result_t nvmlInit_v2(void) {
  // The build may give another.
  // NOLINTNEXTLINE(misc-redundant-expression)
  if (FAKE_INIT != KILN_NVML_SUCCESS) return FAKE_INIT;
  kiln_fake_sessions++;
  return KILN_NVML_SUCCESS;
}

FAKE_EXPORT kiln_nvml_result_t nvmlShutdown(void);
FAKE_EXPORT kiln_nvml_result_t nvmlShutdown(void) {
  if (kiln_fake_sessions == 0) return KILN_NVML_ERROR_UNINITIALIZED;
  kiln_fake_sessions--;
  return KILN_NVML_SUCCESS;
}

FAKE_EXPORT const char* nvmlErrorString(kiln_nvml_result_t result);
FAKE_EXPORT const char* nvmlErrorString(kiln_nvml_result_t result) {
  return result == 77 ? "Seventy-Seven" : "Other";
}

FAKE_EXPORT kiln_nvml_result_t nvmlSystemGetDriverVersion(char* text,
                                                          unsigned int space);
FAKE_EXPORT kiln_nvml_result_t nvmlSystemGetDriverVersion(char* text,
                                                          unsigned int space) {
  if (kiln_fake_sessions == 0) return KILN_NVML_ERROR_UNINITIALIZED;
  int size = snprintf(text, space, "%s", FAKE_RELEASE);
  return size >= 0 && (unsigned int)size < space
             ? KILN_NVML_SUCCESS
             : KILN_NVML_ERROR_INSUFFICIENT_SIZE;
}

#define FAKE_NVML_ROW(name, symbol, params, ...)              \
  FAKE_EXPORT kiln_nvml_result_t symbol params;               \
  FAKE_EXPORT kiln_nvml_result_t symbol params {              \
    __VA_ARGS__                                               \
    return 10000 + (kiln_nvml_result_t)KILNI_NVML_ROW_##name; \
  }
#include "fake_rows_gen.inc"

#endif  // FAKE_NOTHING
