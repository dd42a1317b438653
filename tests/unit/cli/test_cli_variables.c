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
      {"KILN_LOCATE_LIB_NVTRC", "KILN_LOCATE_LIB_NVRTC"},
      {"KILN_LOCATE_LIB_nvrtc", "KILN_LOCATE_"},
      {"KILN_LOCATE_NVRTC", "KILN_LOCATE_"},
      {"KLIN_CACHE", "KILN_CACHE"},
      {"KLN_CACHE_DIR", "KILN_CACHE_DIR"},
      {"Kiln_cache", "KILN_CACHE"},
      {"kiln_locate_lib_nvrtc", "KILN_LOCATE_LIB_NVRTC"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    char space[KILNI_CLI_VARIABLE_BYTES];
    const char* meant = kilni_cli_variable_meant(rows[i][0], space);
    if (meant == NULL) print_error("%s\n", rows[i][0]);
    assert_non_null(meant);
    assert_string_equal(meant, rows[i][1]);
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
      "KILN_LOCATE_HEADER_CUDART",
      "KILN_LOCATE_BINARY_COMPUTE_SANITIZER",
      "BUILD_CACHE",
      "CACHE_DIR",
      "KILN_TREE_OF",
      "KILN_SOFT_SOMETHING_THAT_IS_LONGER_THAN_ANY_NAME_THAT_ANYBODY_KNOWS_OF",
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    char space[KILNI_CLI_VARIABLE_BYTES];
    assert_null(kilni_cli_variable_meant(rows[i], space));
  }
}

static void what_nobody_reads_is_known(void** state) {
  (void)state;
  assert_true(kilni_cli_variable_is_nobodys("KILN_FOO"));
  assert_true(kilni_cli_variable_is_nobodys("KILN_MY_OWN_THING"));
  assert_false(kilni_cli_variable_is_nobodys("KILN_CACHE"));
  assert_false(kilni_cli_variable_is_nobodys("KILN_LOCATE_LIB_NVRTC"));
  assert_false(kilni_cli_variable_is_nobodys("KILN_TEST_SEED"));
  assert_false(kilni_cli_variable_is_nobodys("KILN_SOURCES"));
  assert_false(kilni_cli_variable_is_nobodys("FOO"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(slips_are_seen),
      cmocka_unit_test(others_are_left_alone),
      cmocka_unit_test(what_nobody_reads_is_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
