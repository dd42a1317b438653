// SPDX-License-Identifier: Apache-2.0
//
// cli: tests of the choice of the one visible GPU.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli_visible.h"

// What the user set, which GPU, and what the process sets; NULL: refused.
typedef struct case_t {
  const char* visible;
  uint32_t ordinal;
  const char* value;
} case_t;

static void composes(void** state) {
  (void)state;
  static const case_t CASES[] = {
      {NULL, 0, "0"},
      {NULL, 3, "3"},
      {"2,0,1", 0, "2"},
      {"2,0,1", 2, "1"},
      {"2,0,1", 3, NULL},
      {"", 0, NULL},
      {"-1", 0, NULL},
      {"0,-1,1", 0, "0"},
      {"0,-1,1", 1, NULL},
      {"0,x,1", 1, NULL},
      {"0,,1", 1, NULL},
      {"0,", 1, NULL},
      {" 3 , 4 ", 1, "4"},
      {"GPU-1234-abcd,1", 0, "GPU-1234-abcd"},
      {"1,GPU-1234-abcd", 1, "GPU-1234-abcd"},
      {"MIG-aa/bb", 0, "MIG-aa/bb"},
      {"MIG-GPU-8b/1/0", 0, "MIG-GPU-8b/1/0"},
      {"GPU-", 0, NULL},
      {"NoDevFiles", 0, NULL},
      {"1 2", 0, NULL},
  };
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
    char out[KILNI_CLI_VISIBLE_MAX];
    kilni_cli_error_t error;
    bool ok = kilni_cli_visible_compose(CASES[i].visible, CASES[i].ordinal, out,
                                        &error);
    assert_int_equal(ok, CASES[i].value != NULL);
    if (ok) {
      assert_string_equal(out, CASES[i].value);
    } else {
      assert_int_equal(error.code, KILN_STATUS_NOT_FOUND);
      assert_string_equal(out, "");
      assert_true(error.fix[0] != 0);
    }
  }
}

static void an_endless_entry_ends_the_list(void** state) {
  (void)state;
  char visible[512];
  char out[KILNI_CLI_VISIBLE_MAX];
  kilni_cli_error_t error;
  memset(visible, '7', sizeof(visible));
  visible[sizeof(visible) - 1] = 0;
  assert_false(kilni_cli_visible_compose(visible, 0, out, &error));
}

static void names_are_read(void** state) {
  (void)state;
  uint32_t n;
  assert_true(kilni_cli_cuda_name_parse("cuda:12", &n));
  assert_int_equal(n, 12);
  assert_true(kilni_cli_cuda_name_parse("cuda", &n));
  assert_int_equal(n, 0);
  static const char* const BAD[] = {
      "cuda:",  "cuda:-1",  "cuda:1x",          "cuda1", "soft",
      "CUDA:0", "cuda:0x1", "cuda:99999999999", ""};
  for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
    assert_false(kilni_cli_cuda_name_parse(BAD[i], &n));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(composes),
      cmocka_unit_test(an_endless_entry_ends_the_list),
      cmocka_unit_test(names_are_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
