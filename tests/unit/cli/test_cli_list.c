// SPDX-License-Identifier: Apache-2.0
//
// cli: tests of texts that may be lists of numbers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli_list.h"

static kilni_cli_list_t look(const char* text) {
  kilni_cli_list_t list;
  kilni_cli_list_look((const uint8_t*)text, strlen(text), &list);
  return list;
}

static void lists(void** state) {
  (void)state;
  static const char* const PLAIN[] = {
      "1",           "1,2\n3,4\n",     "1 , 2",
      "1;2;3\r\n",   "1  2\t3\n\n4\n", "-1.5e3,+.5",
      "nan,-INF,2.", "x\n1\n",         "a,b\n1,2\n",
      "\n1\n",       "\"a;b\"\n1\n",
  };
  static const char* const NONE[] = {
      "",
      "\n",
      "a,b\n",
      "1,,3\n",
      "1,2,\n",
      ",1",
      "2,5;3,5",
      "1,x\n2,3",
      "1\nx\n",
      "a\nb\n1\n",
      "1 2,3",
      "\n a\n1",
      "0x10\n5",
      "1e",
      "1.2.3",
      "-",
      "# 1\n2,3 4",
      "1\xc2\xa0",
      "\357\273\2771\n2",
  };
  for (size_t i = 0; i < sizeof(PLAIN) / sizeof(PLAIN[0]); i++) {
    if (!look(PLAIN[i]).is_plain) fail_msg("\"%s\" is none", PLAIN[i]);
  }
  for (size_t i = 0; i < sizeof(NONE) / sizeof(NONE[0]); i++) {
    if (look(NONE[i]).is_plain) fail_msg("\"%s\" is one", NONE[i]);
  }
  assert_true(look("a,b\n1,2\n").has_head);
  assert_false(look("1,2\n").has_head);
}

static void types(void** state) {
  (void)state;
  static const struct {
    const char* text;
    const char* type;
    bool fits;
  } rows[] = {
      {"1,2", "i32", true},
      {"1.0", "i32", false},
      {"1.0", "f32", true},
      {"1e3", "u16", false},
      {"-1", "u32", false},
      {"-1", "i16", true},
      {"-32768", "i16", true},
      {"-32769", "i16", false},
      {"65535", "u16", true},
      {"65536", "u16", false},
      {"4294967296", "u32", false},
      {"18446744073709551615", "u64", true},
      {"18446744073709551616", "u64", false},
      {"9223372036854775808", "i64", false},
      {"-9223372036854775808", "i64", true},
      {"nan", "i32", false},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kilni_cli_list_t list = look(rows[i].text);
    assert_true(list.is_plain);
    kilni_cli_type_t type =
        kilni_cli_type_find(rows[i].type, strlen(rows[i].type));
    if (kilni_cli_list_fits(&list, type) != rows[i].fits) {
      fail_msg("%s as %s", rows[i].text, rows[i].type);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lists),
      cmocka_unit_test(types),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
