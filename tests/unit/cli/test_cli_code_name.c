// SPDX-License-Identifier: Apache-2.0
//
// cli: what the name of a code file says is in it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli_code_name.h"
#include "kiln/code.h"

static void case_does_not_count(void** state) {
  (void)state;
  assert_true(kilni_cli_ends_in("a.PtX", ".ptx"));
  assert_false(kilni_cli_ends_in(".ptx", ".ptx"));
  assert_int_equal(kilni_cli_code_name_format("a.PTX"), KILN_CODE_FORMAT_PTX);
  assert_int_equal(kilni_cli_code_name_format("d/a.b.Cubin"),
                   KILN_CODE_FORMAT_CUBIN);
  assert_int_equal(kilni_cli_code_name_format("a.LTOIR"),
                   KILN_CODE_FORMAT_LTOIR);
  assert_int_equal(kilni_cli_code_name_format("a.relocatable"),
                   KILN_CODE_FORMAT_RELOCATABLE);
  assert_int_equal(kilni_cli_code_name_format("ptx"), 0);
  assert_int_equal(kilni_cli_code_name_format("a.ptx.bak"), 0);
}

// No name says that something else is in the file.
static void names_fit_what_is_in(void** state) {
  (void)state;
  enum {
    PTX = KILN_CODE_FORMAT_PTX,
    CUBIN = KILN_CODE_FORMAT_CUBIN,
    RELOCATABLE = KILN_CODE_FORMAT_RELOCATABLE,
  };
  static const struct {
    const char* path;
    uint32_t format;
    bool asked;
    kiln_status_code_t code;
  } rows[] = {
      {NULL, CUBIN, false, KILN_STATUS_OK},
      {"a", CUBIN, false, KILN_STATUS_OK},
      {"a.bak", CUBIN, false, KILN_STATUS_OK},
      {"a.CUBIN", CUBIN, false, KILN_STATUS_OK},
      {"a.cubin", RELOCATABLE, true, KILN_STATUS_OK},
      {"a.relocatable", CUBIN, true, KILN_STATUS_INVALID_ARGUMENT},
      {"a.ptx", CUBIN, true, KILN_STATUS_INVALID_ARGUMENT},
      {"a.Cubin", PTX, true, KILN_STATUS_INVALID_ARGUMENT},
      {"a.txt", PTX, false, KILN_STATUS_OK},
      {"a.txt", CUBIN, false, KILN_STATUS_UNSUPPORTED},
      {"a.txt", CUBIN, true, KILN_STATUS_OK},
      {"a.json", PTX, false, KILN_STATUS_UNSUPPORTED},
      {"a.O", RELOCATABLE, false, KILN_STATUS_UNSUPPORTED},
      {"a.o", RELOCATABLE, true, KILN_STATUS_OK},
      {"a.cubin.gz", CUBIN, false, KILN_STATUS_UNSUPPORTED},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kilni_cli_error_t error;
    memset(&error, 0, sizeof(error));
    bool fits = kilni_cli_code_name_check(rows[i].path, rows[i].format,
                                          rows[i].asked, &error);
    assert_true(fits == (rows[i].code == KILN_STATUS_OK));
    if (fits) continue;
    assert_int_equal(error.code, rows[i].code);
    assert_true(error.fix[0] != 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(case_does_not_count),
      cmocka_unit_test(names_fit_what_is_in),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
