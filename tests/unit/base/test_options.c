// SPDX-License-Identifier: Apache-2.0
//
// base: tests of reading options structs of other versions.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/options.h"

// The library's struct, an older caller's and a newer one's.
typedef struct ours_t {
  uint32_t struct_size;
  uint32_t a;
  uint64_t b;
} ours_t;

typedef struct newer_t {
  ours_t known;
  uint64_t c;
} newer_t;

static void none_is_all_defaults(void** state) {
  (void)state;
  ours_t out;
  memset(&out, 0xff, sizeof(out));
  assert_null(kilni_base_options_read(NULL, "ours_t", sizeof(out), &out));
  assert_int_equal(out.struct_size, sizeof(out));
  assert_int_equal(out.a, 0);
  assert_int_equal(out.b, 0);
}

static void an_older_struct_is_extended_with_zeroes(void** state) {
  (void)state;
  ours_t in = {.struct_size = 8, .a = 5, .b = 77};
  ours_t out;
  assert_null(
      kilni_base_options_read_since(&in, "ours_t", 8, sizeof(out), &out));
  assert_int_equal(out.struct_size, sizeof(out));
  assert_int_equal(out.a, 5);
  assert_int_equal(out.b, 0);
}

static void a_newer_struct_passes_while_its_tail_is_zero(void** state) {
  (void)state;
  newer_t in = {.known = {.struct_size = sizeof(in), .a = 1, .b = 2}};
  ours_t out;
  assert_null(kilni_base_options_read(&in, "ours_t", sizeof(out), &out));
  assert_int_equal(out.b, 2);
  assert_int_equal(out.struct_size, sizeof(out));

  in.c = 9;
  kiln_status_t status =
      kilni_base_options_read(&in, "ours_t", sizeof(out), &out);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INCOMPATIBLE);
  assert_non_null(strstr(kiln_status_message(status), "ours_t"));
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
  assert_int_equal(out.struct_size, sizeof(out));
  assert_int_equal(out.a, 0);
  assert_int_equal(out.b, 0);
}

static void a_struct_without_its_size_is_refused(void** state) {
  (void)state;
  for (uint32_t size = 0; size < sizeof(ours_t) + 8; size++) {
    bool since = size < 8;
    ours_t in = {.struct_size = since ? size : size - 8, .a = 5};
    ours_t out;
    kiln_status_t status =
        since
            ? kilni_base_options_read_since(&in, "ours_t", 8, sizeof(out), &out)
            : kilni_base_options_read(&in, "ours_t", sizeof(out), &out);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
    assert_non_null(kiln_status_fix(status));
    kiln_status_free(status);
    assert_int_equal(out.a, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(none_is_all_defaults),
      cmocka_unit_test(an_older_struct_is_extended_with_zeroes),
      cmocka_unit_test(a_newer_struct_passes_while_its_tail_is_zero),
      cmocka_unit_test(a_struct_without_its_size_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
