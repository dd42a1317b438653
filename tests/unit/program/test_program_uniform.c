// SPDX-License-Identifier: Apache-2.0
//
// program: which threads come where together, however long it takes to get
// about; and what hangs on memory that is only read.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "program/program.h"
#include "program_kit.h"

enum { SPACE = 1 << 20 };

// The errors of a text, all of which are of P032.
static uint32_t divergent_barriers(const char* text) {
  kiln_program_t* program = NULL;
  kiln_program_report_t* report = NULL;
  kiln_status_t status = kiln_program_parse(
      (kiln_string_view_t){text, strlen(text)}, NULL, &report, &program);
  uint32_t errors = 0;
  if (!kiln_status_is_ok(status)) {
    for (const char* at = kiln_program_report_text(report);
         (at = strstr(at, "[P032]")) != NULL; at++) {
      errors++;
    }
    if (errors == 0) fail_msg("%s", kiln_program_report_text(report));
    kiln_status_free(status);
  }
  kiln_program_report_release(report);
  kiln_program_release(program);
  return errors;
}

// A register of `count` variables, through which `first` is shifted in a loop
// whose end is the last one.
static char* shift(uint32_t count, const char* first) {
  char* text = malloc(SPACE);
  assert_non_null(text);
  size_t at = (size_t)sprintf(
      text, "program p(x: in u32[], o: out u32[]) work 64 block 64 {\n");
  for (uint32_t i = 0; i < count; i++) {
    at += (size_t)sprintf(text + at, "  var r%u = 1u32;\n", i);
  }
  at += (size_t)sprintf(text + at,
                        "  var k = 0u32;\n  while k < r%u {\n    barrier;\n",
                        count - 1);
  for (uint32_t i = count - 1; i > 0; i--) {
    at += (size_t)sprintf(text + at, "    r%u = r%u;\n", i, i - 1);
  }
  (void)sprintf(text + at, "    r0 = %s;\n    k = k + 1;\n  }\n}\n", first);
  return text;
}

static void test_shift_registers(void** state) {
  (void)state;
  static const uint32_t kCounts[] = {2, 40, 60, 1000, 8000};
  for (size_t i = 0; i < sizeof(kCounts) / sizeof(kCounts[0]); i++) {
    char* text = shift(kCounts[i], "x[0]");
    assert_int_equal(divergent_barriers(text), 0);
    free(text);
    text = shift(kCounts[i], "local_index");
    assert_int_equal(divergent_barriers(text), 1);
    free(text);
  }
}

// The same through functions, each of which hands it on.
static void test_chains_of_functions(void** state) {
  (void)state;
  for (int thread = 0; thread < 2; thread++) {
    char* text = malloc(SPACE);
    assert_non_null(text);
    size_t at =
        (size_t)sprintf(text, "fn g0(n: u32) { for k in 0..n { barrier; } }\n");
    for (int i = 1; i < 30; i++) {
      at +=
          (size_t)sprintf(text + at, "fn g%d(n: u32) { g%d(n); }\n", i, i - 1);
    }
    (void)sprintf(text + at,
                  "program p(o: out u32[]) work 64 block 64 { g29(%s); }\n",
                  thread != 0 ? "local_index" : "block_id.x");
    assert_int_equal(divergent_barriers(text), thread);
    free(text);
  }
}

static void relies(const char* body, bool a, bool b) {
  char text[1000];
  (void)snprintf(text, sizeof(text),
                 "fn of(m: in u32[], i: u32) -> u32 { return m[i]; }\n"
                 "program p(a: in u32[], b: in u32[], o: inout u32[], n: u32) "
                 "work 64 block 64 {\n%s\n}\n",
                 body);
  kiln_program_t* program = kit_parse(text);
  bool is = false;
  assert_null(kilni_program_relies_on(program, 0, &is));
  assert_int_equal(is, a);
  assert_null(kilni_program_relies_on(program, 1, &is));
  assert_int_equal(is, b);
  for (uint32_t i = 2; i < 4; i++) {
    assert_null(kilni_program_relies_on(program, i, &is));
    assert_false(is);
  }
  kiln_program_release(program);
}

static void test_what_is_relied_on(void** state) {
  (void)state;
  relies("o[0] = a[0] + b[0];", false, false);
  relies("barrier; o[0] = a[local_index];", false, false);
  relies("for k in 0..a[0] { barrier; o[0] = b[0]; }", true, false);
  relies("if n < b[a[0]] { barrier; }", true, true);
  relies("if of(b, 3) > 0 { barrier; }", false, true);
  relies(
      "let s = subgroup; if a[s] > b[0] { let t = reduce_add(n); o[0] = t; }",
      true, true);
  relies("if local_index < a[0] { o[0] = 1; }", false, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shift_registers),
      cmocka_unit_test(test_chains_of_functions),
      cmocka_unit_test(test_what_is_relied_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
