// SPDX-License-Identifier: Apache-2.0
//
// base: how far two names are apart.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/name_distance.h"

static void steps_are_counted(void** state) {
  (void)state;
  assert_int_equal(kilni_base_name_distance("", ""), 0);
  assert_int_equal(kilni_base_name_distance("scale", "scale"), 0);
  assert_int_equal(kilni_base_name_distance("scale", "SCALE"), 0);
  assert_int_equal(kilni_base_name_distance("scale", "scaled"), 1);
  assert_int_equal(kilni_base_name_distance("scale", "sale"), 1);
  assert_int_equal(kilni_base_name_distance("scale", "scope"), 2);
  assert_int_equal(kilni_base_name_distance("", "ab"), 2);
}

static void long_names_are_far(void** state) {
  char text[66];
  (void)state;
  memset(text, 'a', 65);
  text[65] = 0;
  assert_true(kilni_base_name_distance(text, text) > 64);
  assert_int_equal(kilni_base_name_distance(text + 1, text + 1), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_are_counted),
      cmocka_unit_test(long_names_are_far),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
