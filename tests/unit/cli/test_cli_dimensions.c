// SPDX-License-Identifier: Apache-2.0
//
// cli: tests of in how many dimensions a kernel counts.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/run_dimensions.h"

static uint32_t of(const char* text, const char* entry) {
  kiln_bytes_view_t bytes = {(const uint8_t*)text, strlen(text)};
  return kilni_cli_dimensions_of(bytes, entry);
}

#define ENTRY(name, body) \
  ".visible .entry " name "(.param .u64 p)\n{" body "}\n"
#define READ(what) "mov.u32 %r1, " what ";\n"

static void places_are_counted(void** state) {
  (void)state;
  assert_int_equal(of(ENTRY("k", READ("%tid.x") READ("%ctaid.x")), "k"), 1);
  assert_int_equal(of(ENTRY("k", READ("%tid.y")), "k"), 2);
  assert_int_equal(of(ENTRY("k", READ("%ctaid.y") READ("%tid.x")), "k"), 2);
  assert_int_equal(of(ENTRY("k", READ("%tid.z")), "k"), 3);
  assert_int_equal(of(ENTRY("k", READ("%ctaid.z") READ("%tid.y")), "k"), 3);
  // How many there are says nothing of where one is.
  assert_int_equal(of(ENTRY("k", READ("%ntid.y") READ("%nctaid.z")), "k"), 1);
  assert_int_equal(of("", "k"), 1);
}

static void only_the_kernel_counts(void** state) {
  (void)state;
  static const char TWO[] = ENTRY("flat", "{ " READ("%tid.x") " }")
      ENTRY("deep", "{ " READ("%tid.x") " }" READ("%tid.y"));
  assert_int_equal(of(TWO, "flat"), 1);
  assert_int_equal(of(TWO, "deep"), 2);
  assert_int_equal(of(TWO, "fla"), 1);
  // What it calls may be any function.
  static const char CALLS[] = ENTRY("k", "call f;")
      ENTRY("other", READ("%tid.z")) ".func f() { " READ("%ctaid.y") " }\n";
  assert_int_equal(of(CALLS, "k"), 2);
}

static void comments_and_texts_are_none(void** state) {
  (void)state;
  assert_int_equal(of(ENTRY("k", "// %tid.y }\n"), "k"), 1);
  assert_int_equal(of(ENTRY("k", "/* %tid.y } */" READ("%tid.y")), "k"), 2);
  assert_int_equal(of(".file 1 \"%tid.y{\"\n" ENTRY("k", ""), "k"), 1);
  assert_int_equal(of("/* %tid.y", "k"), 1);
  assert_int_equal(of("\"%tid.y", "k"), 1);
  assert_int_equal(of(".entry", "k"), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(places_are_counted),
      cmocka_unit_test(only_the_kernel_counts),
      cmocka_unit_test(comments_and_texts_are_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
