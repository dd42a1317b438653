// SPDX-License-Identifier: Apache-2.0
//
// cli: tests of which variables count as misspelt.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/cli_variables.h"

static void slips_are_seen(void** state) {
  (void)state;
  static const char* const rows[][2] = {
      {"KILN_SOFT_REPOT", "KILN_SOFT_REPORT"},
      {"KILN_SOFT_REPORTS", "KILN_SOFT_REPORT"},
      {"KILN_SOFT_ODRER", "KILN_SOFT_ORDER"},
      {"KILN_SOFTSEED", "KILN_SOFT_SEED"},
      {"KILN_TRACES", "KILN_TRACE"},
      {"KILN_CACHEDIR", "KILN_CACHE_DIR"},
      {"KILN_LOCAT_LIB_NVRTC", "KILN_LOCATE_"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    assert_non_null(kilni_cli_variable_meant(rows[i][0]));
    assert_string_equal(kilni_cli_variable_meant(rows[i][0]), rows[i][1]);
  }
}

// Kiln's own, those of its tests and tools, and other people's.
static void others_are_left_alone(void** state) {
  (void)state;
  static const char* const rows[] = {
      "KILN_SOFT_REPORT",
      "KILN_CACHE",
      "KILN_LOCATE_LIB_NVRTC",
      "KILN_SOURCES",
      "KILN_TEST_SEED",
      "KILN_TEST_DEVICE",
      "KILN_FAULT_POINTS",
      "KILN_FULL",
      "KILN_",
      "KILN",
      "",
      "PATH",
      "KILN_SOFT",
      "KILN_MY_OWN_THING",
      "SOFT_REPOT",
      "XKILN_SOFT_REPORT",
      "KILN_CHECK",
      "KILN_BENCH",
      "KILN_PLACE",
      "KILN_COMPAT",
      "KILN_TREE_OF",
      "KILN_SOFT_SOMETHING_THAT_IS_LONGER_THAN_ANY_NAME_THAT_ANYBODY_KNOWS_OF",
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    assert_null(kilni_cli_variable_meant(rows[i]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(slips_are_seen),
      cmocka_unit_test(others_are_left_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
