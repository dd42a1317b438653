// SPDX-License-Identifier: Apache-2.0
//
// base: tests of the library's version.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "kiln/version.h"

static void number_and_text_agree(void** state) {
  (void)state;
  char text[32];
  int version = kiln_version();
  assert_int_equal(version, KILN_VERSION);
  snprintf(text, sizeof(text), "%d.%d.%d", version / 10000, version / 100 % 100,
           version % 100);
  assert_string_equal(kiln_version_string(), text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(number_and_text_agree)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
