// SPDX-License-Identifier: Apache-2.0
//
// toolkit: which environment variables count, and when none does.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "locate_world.h"
#include "toolkit/toolkit.h"

static kiln_status_t try_make(world_t* world, kiln_toolkit_t** out_toolkit) {
  kiln_toolkit_options_t options = kiln_toolkit_options_default();
  options.locate = &world->options;
  return kilni_toolkit_create(&options, &world->env, out_toolkit);
}

static const kiln_toolkit_variable_t* variable(const kiln_toolkit_t* toolkit,
                                               const char* name) {
  for (uint32_t i = 0; i < kiln_toolkit_variable_count(toolkit); i++) {
    const kiln_toolkit_variable_t* v = kiln_toolkit_variable(toolkit, i);
    if (strcmp(v->name, name) == 0) return v;
  }
  return NULL;
}

static void all_that_a_search_or_the_mode_follows(void** state) {
  world_t* world = *state;
  kiln_toolkit_t* toolkit = NULL;
  assert_null(kilni_base_env_set(&world->env, KILNI_ENV_CUDA_HOME, "/a/b"));
  assert_null(kilni_base_env_set(&world->env, KILNI_ENV_KILN_COMPAT, "strict"));
  assert_null(
      kilni_base_env_set_member(&world->env, "KILN_LOCATE_LIB_NVRTC", "/c"));
  assert_null(try_make(world, &toolkit));
  // They are those of then.
  assert_null(kilni_base_env_set(&world->env, KILNI_ENV_CUDA_HOME, "/other"));
  assert_string_equal(variable(toolkit, "CUDA_HOME")->value, "/a/b");
  assert_string_equal(variable(toolkit, "KILN_COMPAT")->value, "strict");
  assert_string_equal(variable(toolkit, "KILN_LOCATE_LIB_NVRTC")->value, "/c");
  assert_null(variable(toolkit, "CUDA_PATH")->value);
  // A family is no variable, and what others read is no part of it.
  assert_null(variable(toolkit, "KILN_LOCATE_"));
  assert_null(variable(toolkit, "KILN_SOFT_SEED"));
  assert_null(
      kiln_toolkit_variable(toolkit, kiln_toolkit_variable_count(toolkit)));
  kiln_toolkit_release(toolkit);
}

static void none_where_it_is_hermetic_or_secure(void** state) {
  world_t* world = *state;
  kiln_toolkit_t* toolkit = NULL;
  // A value that none may have: it is not even read.
  assert_null(
      kilni_base_env_set(&world->env, KILNI_ENV_KILN_COMPAT, "no such"));
  kiln_status_t status = try_make(world, &toolkit);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  world->options.hermetic = KILN_SWITCH_ON;
  assert_null(try_make(world, &toolkit));
  assert_int_equal(kiln_toolkit_variable_count(toolkit), 0);
  assert_int_equal(kiln_toolkit_mode(toolkit), KILN_COMPAT_MODE_WARN);
  kiln_toolkit_release(toolkit);
  world->options.hermetic = KILN_SWITCH_DEFAULT;
  world->options.secure = KILN_SWITCH_ON;
  assert_null(try_make(world, &toolkit));
  assert_int_equal(kiln_toolkit_variable_count(toolkit), 0);
  kiln_toolkit_release(toolkit);
}

#define TEST(name) \
  cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(all_that_a_search_or_the_mode_follows),
      TEST(none_where_it_is_hermetic_or_secure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
