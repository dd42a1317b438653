// SPDX-License-Identifier: Apache-2.0
//
// base: tests of the environment snapshot. CTest sets the variables it reads.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/env.h"
#include "base/str.h"
#include "fault_run.h"

static void each_row_is_filled(void** state) {
  (void)state;
  for (int i = 0; i < KILNI_ENV_COUNT; i++) {
    const kilni_base_env_row_t* row =
        kilni_base_env_row((kilni_base_env_id_t)i);
    assert_true(row->name[0] != 0);
    assert_true(row->module[0] != 0);
    assert_true(row->text[0] != 0);
    bool known =
        strcmp(row->type, "path") == 0 || strcmp(row->type, "text") == 0 ||
        strcmp(row->type, "number") == 0 || strcmp(row->type, "switch") == 0 ||
        strcmp(row->type, "family") == 0;
    if (!known) fail_msg("%s has type %s", row->name, row->type);
    for (int j = 0; j < i; j++) {
      assert_string_not_equal(row->name,
                              kilni_base_env_row((kilni_base_env_id_t)j)->name);
    }
  }
}

static void every_default_can_be_read(void** state) {
  (void)state;
  kilni_base_env_t env = {.allocator = kiln_allocator_libc()};
  for (int i = 0; i < KILNI_ENV_COUNT; i++) {
    kilni_base_env_id_t id = (kilni_base_env_id_t)i;
    const kilni_base_env_row_t* row = kilni_base_env_row(id);
    uint64_t value;
    bool on;
    if (strcmp(row->type, "number") == 0) {
      assert_null(kilni_base_env_u64(&env, id, &value));
    } else if (strcmp(row->type, "switch") == 0) {
      assert_null(kilni_base_env_switch(&env, id, &on));
    }
  }
}

static kiln_status_t snapshot_body(kiln_allocator_t allocator, void* user) {
  (void)user;
  kilni_base_env_t env;
  kiln_status_t status = kilni_base_env_init(&env, allocator);
  if (kiln_status_is_ok(status)) {
    assert_string_equal(kilni_base_env_text(&env, KILNI_ENV_CUDA_PATH),
                        "/toolkit");
    // Empty: no path at all, but a text that hides every GPU.
    assert_null(kilni_base_env_text(&env, KILNI_ENV_CUDA_HOME));
    assert_string_equal(
        kilni_base_env_text(&env, KILNI_ENV_CUDA_VISIBLE_DEVICES), "");
    uint64_t seed = 0;
    assert_null(kilni_base_env_u64(&env, KILNI_ENV_KILN_SOFT_SEED, &seed));
    assert_int_equal(seed, 16);
    bool on = false;
    assert_null(kilni_base_env_switch(&env, KILNI_ENV_KILN_TRACE, &on));
    assert_true(on);
    status = kilni_base_env_set(&env, KILNI_ENV_KILN_TRACE, "off");
    if (kiln_status_is_ok(status)) {
      assert_null(kilni_base_env_switch(&env, KILNI_ENV_KILN_TRACE, &on));
      assert_false(on);
    } else {
      assert_string_equal(kilni_base_env_text(&env, KILNI_ENV_KILN_TRACE),
                          "on");
    }
    assert_null(kilni_base_env_set(&env, KILNI_ENV_KILN_TRACE, NULL));
    assert_null(kilni_base_env_text(&env, KILNI_ENV_KILN_TRACE));
  }
  kilni_base_env_deinit(&env);
  return status;
}

static void a_snapshot_holds_what_was_set(void** state) {
  (void)state;
  assert_true(fault_run_allocations(snapshot_body, NULL, 0) >= 5);
}

static void families_have_members(void** state) {
  (void)state;
  kilni_base_env_t env;
  assert_null(kilni_base_env_init(&env, kiln_allocator_libc()));
  // Set by CTest; the empty one is none.
  assert_string_equal(kilni_base_env_member(&env, "KILN_LOCATE_LIB_A"), "/a");
  assert_string_equal(kilni_base_env_member(&env, "KILN_LOCATE_LIB_A1"),
                      "/a1=x");
  assert_null(kilni_base_env_member(&env, "KILN_LOCATE_LIB_B"));
  assert_null(kilni_base_env_member(&env, "KILN_LOCATE_LIB_"));
  assert_null(kilni_base_env_set_member(&env, "KILN_LOCATE_LIB_B", "/b"));
  assert_null(kilni_base_env_set_member(&env, "KILN_LOCATE_LIB_A", "/c"));
  kilni_base_env_t copy;
  assert_null(kilni_base_env_copy(&env, kiln_allocator_libc(), &copy));
  kilni_base_env_deinit(&env);
  assert_string_equal(kilni_base_env_member(&copy, "KILN_LOCATE_LIB_A"), "/c");
  assert_string_equal(kilni_base_env_text_by_name(&copy, "CUDA_PATH"),
                      "/toolkit");
  assert_null(kilni_base_env_text_by_name(&copy, "NO_ROW"));
  size_t count = 0;
  kiln_string_view_t name;
  while (kilni_base_env_member_at(&copy, count, &name) != NULL) {
    assert_true(kilni_base_sv_starts_with(name, "KILN_LOCATE_LIB_"));
    count++;
  }
  assert_int_equal(count, 3);
  assert_null(kilni_base_env_set_member(&copy, "KILN_LOCATE_LIB_A", NULL));
  assert_null(kilni_base_env_member(&copy, "KILN_LOCATE_LIB_A"));
  kilni_base_env_deinit(&copy);
}

static kiln_status_t copy_body(kiln_allocator_t allocator, void* user) {
  kilni_base_env_t env;
  kiln_status_t status = kilni_base_env_copy(user, allocator, &env);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_env_set_member(&env, "KILN_LOCATE_LIB_A", "/d");
  }
  kilni_base_env_deinit(&env);
  return status;
}

static void a_copy_may_fail(void** state) {
  (void)state;
  kilni_base_env_t env;
  assert_null(kilni_base_env_init(&env, kiln_allocator_libc()));
  assert_true(fault_run_allocations(copy_body, &env, 0) >= 5);
  kilni_base_env_deinit(&env);
}

static void wrong_values_name_their_variable(void** state) {
  (void)state;
  kilni_base_env_t env = {.allocator = kiln_allocator_libc()};
  uint64_t value;
  bool on;
  assert_null(kilni_base_env_set(&env, KILNI_ENV_KILN_SOFT_SEED, "many"));
  assert_null(kilni_base_env_set(&env, KILNI_ENV_KILN_TRACE, "maybe"));
  kiln_status_t number =
      kilni_base_env_u64(&env, KILNI_ENV_KILN_SOFT_SEED, &value);
  kiln_status_t word = kilni_base_env_switch(&env, KILNI_ENV_KILN_TRACE, &on);
  assert_int_equal(kiln_status_code(number), KILN_STATUS_INVALID_ARGUMENT);
  assert_int_equal(kiln_status_code(word), KILN_STATUS_INVALID_ARGUMENT);
  assert_non_null(strstr(kiln_status_message(number), "KILN_SOFT_SEED"));
  assert_non_null(strstr(kiln_status_message(number), "many"));
  assert_non_null(strstr(kiln_status_message(word), "KILN_TRACE"));
  assert_non_null(kiln_status_fix(word));
  assert_int_equal(value, 0);
  assert_false(on);
  kiln_status_free(number);
  kiln_status_free(word);
  kilni_base_env_deinit(&env);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_row_is_filled),
      cmocka_unit_test(every_default_can_be_read),
      cmocka_unit_test(a_snapshot_holds_what_was_set),
      cmocka_unit_test(families_have_members),
      cmocka_unit_test(a_copy_may_fail),
      cmocka_unit_test(wrong_values_name_their_variable),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
