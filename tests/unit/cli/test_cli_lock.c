// SPDX-License-Identifier: Apache-2.0
//
// cli: tests of lock files as text: what is one, what is damaged, what differs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/config_lock_text.h"

#define SHA "73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac"
#define ITEM(name, more)                                                 \
  "{\"kind\":\"lib\",\"name\":\"" name                                   \
  "\",\"path\":\"/a\",\"file\":\"/a\","                                  \
  "\"scope\":\"root\",\"version\":\"13.0\",\"size\":2,\"sha256\":\"" SHA \
  "\"" more "}"
#define LOCK(items)                                                     \
  "{\"kiln_lock\":1,\"kiln\":\"0.1.0\",\"components\":[\"nvrtc\"],"     \
  "\"static\":false,\"version\":\"13.0\",\"environment\":{\"A\":null}," \
  "\"items\":[" items "]}"

static json_t* read_good(const char* text) {
  json_t* lock = NULL;
  kilni_cli_error_t error = {0};
  if (!kilni_cli_config_lock_parse(text, strlen(text), "l", &lock, &error)) {
    fail_msg("%s", error.message);
  }
  assert_non_null(lock);
  return lock;
}

static void expect_bad(const char* text, size_t size, kiln_status_code_t code,
                       const char* words) {
  json_t* lock = NULL;
  kilni_cli_error_t error = {0};
  if (kilni_cli_config_lock_parse(text, size, "l", &lock, &error)) {
    fail_msg("read: %.*s", (int)size, text);
  }
  assert_null(lock);
  assert_int_equal(error.code, code);
  assert_non_null(strstr(error.message, "\"l\""));
  if (strstr(error.message, words) == NULL) {
    fail_msg("%s: no \"%s\"", error.message, words);
  }
  assert_int_not_equal(error.fix[0], 0);
}

static void every_beginning_is_part_of_one(void** state) {
  (void)state;
  static const char text[] = LOCK(ITEM("nvrtc", ""));
  json_decref(read_good(text));
  for (size_t size = 0; size < sizeof(text) - 1; size++) {
    expect_bad(text, size, KILN_STATUS_INVALID_ARGUMENT, "only part");
  }
}

static void what_is_damaged_is_named(void** state) {
  (void)state;
  static const struct {
    const char* from;
    const char* to;
    const char* words;
  } rows[] = {
      {"\"kiln_lock\":1,", "", "\"kiln_lock\""},
      {"\"kiln_lock\":1,", "\"kiln_lock\":\"1\",", "\"kiln_lock\""},
      {"[\"nvrtc\"]", "\"nvrtc\"", "\"components\""},
      {"[\"nvrtc\"]", "[\"nvrtc\",7]", "\"components[1]\""},
      {"[\"nvrtc\"]", "[\"\"]", "\"components[0]\""},
      {"\"static\":false", "\"static\":0", "\"static\""},
      {"{\"A\":null}", "[]", "\"environment\""},
      {"{\"A\":null}", "{\"A\":1}", "\"environment\""},
      {"\"kind\":\"lib\",", "", "\"items[0].kind\""},
      {"\"path\":\"/a\"", "\"path\":null", "\"items[0].path\""},
      {"\"file\":\"/a\"", "\"file\":\"\"", "\"items[0].file\""},
      {"\"version\":\"13.0\",\"size\"", "\"version\":13,\"size\"",
       "\"items[0].version\""},
      {"\"size\":2", "\"size\":-2", "\"items[0].size\""},
      {"\"size\":2", "\"size\":2.5", "\"items[0].size\""},
      {"\"73cb", "\"73CB", "\"items[0].sha256\""},
      {"\"73cb", "\"3cb", "\"items[0].sha256\""},
      {"\"items\":[", "\"items\":[7,", "\"items[0]\""},
      {"\"static\":false", "\"static\":false,\"static\":true", "duplicate"},
  };
  static const char text[] = LOCK(ITEM("nvrtc", ""));
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    char bad[1024];
    const char* at = strstr(text, rows[i].from);
    assert_non_null(at);
    int n = snprintf(bad, sizeof(bad), "%.*s%s%s", (int)(at - text), text,
                     rows[i].to, at + strlen(rows[i].from));
    assert_true(n > 0 && (size_t)n < sizeof(bad));
    expect_bad(bad, (size_t)n, KILN_STATUS_INVALID_ARGUMENT, rows[i].words);
  }
  static const char none[] = LOCK("");
  expect_bad(none, strlen(none), KILN_STATUS_INVALID_ARGUMENT, "\"items\"");
  static const char twice[] = LOCK(ITEM("nvrtc", "") "," ITEM("nvrtc", ""));
  expect_bad(twice, strlen(twice), KILN_STATUS_INVALID_ARGUMENT, "items[1]");
}

static void another_format_is_said_with_its_maker(void** state) {
  (void)state;
  static const char text[] = "{\"kiln_lock\":2,\"kiln\":\"9.1\",\"new\":[]}";
  expect_bad(text, strlen(text), KILN_STATUS_UNSUPPORTED,
             "format 2, made by kiln 9.1");
  static const char bare[] = "{\"kiln_lock\":0}";
  expect_bad(bare, strlen(bare), KILN_STATUS_UNSUPPORTED, "format 0");
}

// Keys that a later kiln adds are no damage.
static void more_keys_are_no_damage(void** state) {
  (void)state;
  json_decref(read_good(LOCK(ITEM("nvrtc", ",\"more\":[1]"))));
}

static void expect_difference(const json_t* list, size_t index,
                              const char* item, const char* what) {
  const json_t* one = json_array_get(list, index);
  assert_string_equal(json_string_value(json_object_get(one, "item")), item);
  assert_string_equal(json_string_value(json_object_get(one, "what")), what);
}

static void differences(void** state) {
  (void)state;
  json_t* a = read_good(LOCK(ITEM("nvrtc", "") "," ITEM("cudart", "")));
  json_t* b = read_good(
      LOCK(ITEM("nvrtc", ",\"release\":\"13.0.88\"") "," ITEM("cublas", "")));
  const json_t* items_a = json_object_get(a, "items");
  const json_t* items_b = json_object_get(b, "items");
  json_t* list = kilni_cli_config_lock_differences(items_a, items_a);
  assert_int_equal(json_array_size(list), 0);
  json_decref(list);
  list = kilni_cli_config_lock_differences(items_a, items_b);
  assert_int_equal(json_array_size(list), 3);
  expect_difference(list, 0, "lib:nvrtc", "release");
  expect_difference(list, 1, "lib:cudart", "presence");
  assert_true(json_is_null(json_object_get(json_array_get(list, 1), "now")));
  expect_difference(list, 2, "lib:cublas", "presence");
  assert_true(json_is_null(json_object_get(json_array_get(list, 2), "locked")));
  json_decref(list);
  json_decref(a);
  json_decref(b);
}

static void variables(void** state) {
  (void)state;
  json_t* then =
      json_pack("{s:s,s:n,s:s,s:n}", "SAME", "1", "UNSET", "GONE", "2", "SET");
  json_t* now = json_pack("{s:s,s:s,s:s,s:n}", "SAME", "1", "SET", "3", "NEW",
                          "4", "NEVER");
  json_t* list = kilni_cli_config_lock_variables(then, now);
  static const char* const names[] = {"GONE", "SET", "NEW"};
  assert_int_equal(json_array_size(list), 3);
  for (size_t i = 0; i < 3; i++) {
    const json_t* one = json_array_get(list, i);
    assert_string_equal(json_string_value(json_object_get(one, "name")),
                        names[i]);
  }
  json_decref(list);
  // A file of before there were variables in it.
  list = kilni_cli_config_lock_variables(NULL, now);
  assert_int_equal(json_array_size(list), 3);
  json_decref(list);
  json_decref(then);
  json_decref(now);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_beginning_is_part_of_one),
      cmocka_unit_test(what_is_damaged_is_named),
      cmocka_unit_test(another_format_is_said_with_its_maker),
      cmocka_unit_test(more_keys_are_no_damage),
      cmocka_unit_test(differences),
      cmocka_unit_test(variables),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
