// SPDX-License-Identifier: Apache-2.0
//
// base: tests of strings.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "base/str.h"
#include "fault_run.h"

static void views_compare(void** state) {
  (void)state;
  assert_int_equal(kilni_base_sv(NULL).size, 0);
  assert_true(kilni_base_sv_equal(kilni_base_sv(NULL), kilni_base_sv("")));
  assert_true(kilni_base_sv_equal_cstr(kilni_base_sv_make("abcd", 3), "abc"));
  assert_false(kilni_base_sv_equal_cstr(kilni_base_sv("abd"), "abc"));
  assert_false(kilni_base_sv_equal_cstr(kilni_base_sv("ab"), "abc"));
  assert_true(kilni_base_sv_starts_with(kilni_base_sv("abc"), "ab"));
  assert_true(kilni_base_sv_starts_with(kilni_base_sv(NULL), ""));
  assert_false(kilni_base_sv_starts_with(kilni_base_sv("a"), "ab"));
  assert_true(kilni_base_sv_ends_with(kilni_base_sv("abc"), "bc"));
  assert_false(kilni_base_sv_ends_with(kilni_base_sv("c"), "bc"));
  assert_false(kilni_base_sv_ends_with(kilni_base_sv("abd"), "bc"));
}

static void split_gives_each_part(void** state) {
  (void)state;
  kiln_string_view_t rest = kilni_base_sv("a,,bc,");
  kiln_string_view_t part;
  assert_true(kilni_base_sv_split(&rest, ',', &part));
  assert_true(kilni_base_sv_equal_cstr(part, "a"));
  assert_true(kilni_base_sv_split(&rest, ',', &part));
  assert_int_equal(part.size, 0);
  assert_true(kilni_base_sv_split(&rest, ',', &part));
  assert_true(kilni_base_sv_equal_cstr(part, "bc"));
  assert_false(kilni_base_sv_split(&rest, ',', &part));
  assert_int_equal(part.size, 0);
}

static void numbers_are_read_whole_or_refused(void** state) {
  (void)state;
  static const struct {
    const char* text;
    bool ok;
    uint64_t value;
  } cases[] = {
      {"0", true, 0},
      {"42", true, 42},
      {"18446744073709551615", true, UINT64_MAX},
      {"18446744073709551616", false, 0},
      {"99999999999999999999", false, 0},
      {"0xffffffffffffffff", true, UINT64_MAX},
      {"0X1F", true, 31},
      {"0x10000000000000000", false, 0},
      {"0x", false, 0},
      {"", false, 0},
      {"-1", false, 0},
      {"+1", false, 0},
      {" 1", false, 0},
      {"1 ", false, 0},
      {"1f", false, 0},
      {"0xg", false, 0},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    uint64_t value = 7;
    bool ok = kilni_base_sv_to_u64(kilni_base_sv(cases[i].text), &value);
    if (ok != cases[i].ok || value != cases[i].value) {
      fail_msg("\"%s\" is read as %d %llu", cases[i].text, ok,
               (unsigned long long)value);
    }
  }
}

static kiln_status_t builder_body(kiln_allocator_t allocator, void* user) {
  (void)user;
  kilni_base_str_t str;
  kilni_base_str_init(&str, allocator, 1000);
  assert_string_equal(kilni_base_str_cstr(&str), "");
  kilni_base_str_add_cstr(&str, "one");
  kilni_base_str_add_char(&str, ' ');
  kilni_base_str_addf(
      &str, "%d-%s", 2,
      "three and something much longer than what is set aside at first");
  kilni_base_str_add(&str, kilni_base_sv_make("!!!", 1));
  kilni_base_str_addf(&str, "%s", "");
  char* text = NULL;
  kiln_status_t status = kilni_base_str_take(&str, &text);
  assert_int_equal(kiln_status_is_ok(status), text != NULL);
  if (text != NULL) {
    assert_string_equal(
        text,
        "one 2-three and something much longer than what is set "
        "aside at first!");
  }
  kilni_base_strfree(allocator, text);
  return status;
}

static void a_builder_joins_and_survives_failure(void** state) {
  (void)state;
  assert_int_equal(fault_run_allocations(builder_body, NULL, 0), 3);
}

static void a_builder_stops_at_its_limit(void** state) {
  (void)state;
  kilni_base_str_t str;
  kilni_base_str_init(&str, kiln_allocator_libc(), 5);
  kilni_base_str_add_cstr(&str, "12345");
  assert_null(kilni_base_str_status(&str));
  kilni_base_str_add_char(&str, '6');
  kilni_base_str_addf(&str, "%d", 7);
  assert_string_equal(kilni_base_str_cstr(&str), "12345");
  kiln_status_t status = kilni_base_str_status(&str);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_LIMIT_EXCEEDED);
  kiln_status_free(status);
  char* text = (char*)&str;
  status = kilni_base_str_take(&str, &text);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_LIMIT_EXCEEDED);
  assert_null(text);
  kiln_status_free(status);
}

static void names_are_shown_on_one_line(void** state) {
  (void)state;
  static const char* const cases[][2] = {
      {"", ""},
      {"plain \"name\"", "plain \"name\""},
      {"a\nb\tc\x1b[2J\x7f", "a\\x0ab\\x09c\\x1b[2J\\x7f"},
      {"h\xc3\xa4t \xe2\x82\xac \xf0\x9f\x94\xa5",
       "h\xc3\xa4t \xe2\x82\xac \xf0\x9f\x94\xa5"},
      {"\xc2\x9b|\xe2\x80\xa8|\xe2\x80\x8f|\xd8\x9c",
       "\\u009b|\\u2028|\\u200f|\\u061c"},
      {"\xc3|\xff|\xe2\x82", "\\xc3|\\xff|\\xe2\\x82"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    char out[64];
    size_t size = kilni_base_show(cases[i][0], sizeof(out), out);
    assert_string_equal(out, cases[i][1]);
    assert_int_equal(size, strlen(out));
  }
  char few[6];
  assert_int_equal(kilni_base_show("ab\n\n", sizeof(few), few), 2);
  assert_string_equal(few, "ab");
  assert_int_equal(kilni_base_show("abcdefgh", sizeof(few), few), 5);
  assert_int_equal(kilni_base_show("a", 0, NULL), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(views_compare),
      cmocka_unit_test(split_gives_each_part),
      cmocka_unit_test(numbers_are_read_whole_or_refused),
      cmocka_unit_test(a_builder_joins_and_survives_failure),
      cmocka_unit_test(a_builder_stops_at_its_limit),
      cmocka_unit_test(names_are_shown_on_one_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
