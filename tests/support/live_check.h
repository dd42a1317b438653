// SPDX-License-Identifier: Apache-2.0
//
// tests: what programs that ask a real device judge by. They need no test
// library: a failure is printed with its place and counted, and the program
// goes on.
#ifndef KILN_TESTS_SUPPORT_LIVE_CHECK_H_
#define KILN_TESTS_SUPPORT_LIVE_CHECK_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "kiln/status.h"

static atomic_int failures;
static atomic_int skips;

static inline const char* live_check_file(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

// Ends the status.
static inline void live_check_print(kiln_status_t status, const char* what,
                                    const char* file, int line) {
  char text[4096];
  kiln_status_format(status, sizeof(text), text, NULL);
  printf("%s:%d: %s: %s\n", live_check_file(file), line, what, text);
  kiln_status_free(status);
  failures++;
}

static inline bool live_check_is(bool good, const char* what, const char* file,
                                 int line) {
  if (good) return true;
  printf("%s:%d: %s\n", live_check_file(file), line, what);
  failures++;
  return false;
}

static inline bool live_check_ok(kiln_status_t status, const char* what,
                                 const char* file, int line) {
  if (kiln_status_is_ok(status)) return true;
  live_check_print(status, what, file, line);
  return false;
}

static inline bool live_check_refused(kiln_status_t status,
                                      kiln_status_code_t code, const char* word,
                                      const char* file, int line) {
  char text[4096];
  kiln_status_format(status, sizeof(text), text, NULL);
  bool good = kiln_status_code(status) == code && strstr(text, word) != NULL;
  if (!good) {
    printf("%s:%d: not %s with \"%s\": %s\n", live_check_file(file), line,
           kiln_status_code_name(code), word, text);
    failures++;
  }
  kiln_status_free(status);
  return good;
}

// True where the device does not have it, which is told.
static inline bool lacks(kiln_status_t status, const char* what) {
  if (kiln_status_code(status) != KILN_STATUS_UNSUPPORTED) return false;
  printf("skipped: %s: %s\n", what, kiln_status_message(status));
  kiln_status_free(status);
  skips++;
  return true;
}

#define IS(condition) live_check_is((condition), #condition, __FILE__, __LINE__)
#define OK(call)      live_check_ok((call), #call, __FILE__, __LINE__)
#define CU(call) \
  live_check_is((call) == KILN_CU_SUCCESS, #call, __FILE__, __LINE__)
#define REFUSED(call, code, word) \
  live_check_refused((call), KILN_STATUS_##code, word, __FILE__, __LINE__)

#endif  // KILN_TESTS_SUPPORT_LIVE_CHECK_H_
