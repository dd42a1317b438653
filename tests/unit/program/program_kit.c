// SPDX-License-Identifier: Apache-2.0
//
// program: programs from text and back, where nothing may go wrong.
#include "program_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/str.h"

kiln_program_t* kit_parse(const char* text) {
  kiln_program_t* program;
  kiln_program_report_t* report;
  kiln_status_t status =
      kiln_program_parse(kilni_sv(text), NULL, &report, &program);
  if (!kiln_status_is_ok(status)) {
    fail_msg("%s\n%s", kiln_status_message(status),
             kiln_program_report_text(report));
  }
  kiln_program_report_release(report);
  return program;
}

char* kit_print(const kiln_program_t* program) {
  size_t length;
  kiln_status_t status = kiln_program_print(program, 0, NULL, &length);
  assert_true(kiln_status_is_ok(status));
  char* text = malloc(length + 1);
  assert_non_null(text);
  status = kiln_program_print(program, length + 1, text, NULL);
  assert_true(kiln_status_is_ok(status));
  return text;
}
