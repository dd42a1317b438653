// SPDX-License-Identifier: Apache-2.0
//
// tests: what a refusal says.
#ifndef KILN_TESTS_SUPPORT_SAYS_H_
#define KILN_TESTS_SUPPORT_SAYS_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/status.h"

// A status of that code, with `word` in its text and a fix. Ends it.
static inline void assert_says(kiln_status_t status, kiln_status_code_t code,
                               const char* word) {
  assert_string_equal(kiln_status_code_name(kiln_status_code(status)),
                      kiln_status_code_name(code));
  char text[4096];
  kiln_status_format(status, sizeof(text), text, NULL);
  if (strstr(text, word) == NULL) fail_msg("no \"%s\" in: %s", word, text);
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
}

#endif  // KILN_TESTS_SUPPORT_SAYS_H_
