// SPDX-License-Identifier: Apache-2.0
//
// locate: one consistent set from one place.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "locate_world.h"

#define LIB    KILN_LOCATE_KIND_LIB
#define HEADER KILN_LOCATE_KIND_HEADER
#define SITE   "env/lib/python3.11/site-packages"

static const kiln_locate_want_t kWants[] = {
    {LIB, 0, "nvrtc"}, {LIB, 0, "nvJitLink"}, {HEADER, 0, "cudart"}};

static kiln_locate_set_t* find(world_t* world) {
  kiln_locate_set_t* set = NULL;
  assert_null(kiln_locate_find_set(world_locate(world), kWants, 3, &set));
  assert_non_null(set);
  assert_int_equal(kiln_locate_set_count(set), 3);
  return set;
}

static void a_mixture_is_refused(void** state) {
  world_t* world = *state;
  // By itself each piece is found, half of them in the toolkit.
  world_put(world, SITE "/nvidia/cu13/lib/libnvrtc.so.13");
  world_put(world, SITE "/nvidia/cu13/lib/libnvJitLink.so.13");
  world_put(world, "kit/lib64/libnvrtc.so.12");
  world_put(world, "kit/include/cuda_runtime.h");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  world_set(world, KILNI_ENV_CUDA_PATH, "kit");
  world_expect(world, HEADER, "cudart", KILN_LOCATE_SCOPE_CUDA_PATH,
               "kit/include");
  kiln_locate_set_t* set = find(world);
  assert_int_equal(kiln_locate_set_scope(set), KILN_LOCATE_SCOPE_WHEEL);
  assert_string_equal(kiln_locate_set_root(set), world_path(world, SITE));
  assert_int_equal(kiln_locate_set_missing_count(set), 1);
  assert_true(kiln_locate_item_found(kiln_locate_set_item(set, 0)));
  assert_true(kiln_locate_item_found(kiln_locate_set_item(set, 1)));
  assert_false(kiln_locate_item_found(kiln_locate_set_item(set, 2)));
  kiln_status_t status = kiln_locate_set_require(set);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  assert_non_null(strstr(kiln_status_message(status), world_path(world, SITE)));
  char text[4096];
  kiln_status_format(status, sizeof(text), text, NULL);
  assert_non_null(strstr(text, "lacks header cudart"));
  assert_non_null(strstr(text, "lacks lib nvJitLink"));
  kiln_status_free(status);
  kiln_locate_set_release(set);
}

static void the_first_complete_place(void** state) {
  world_t* world = *state;
  world_put(world, SITE "/nvidia/cu13/lib/libnvrtc.so.13");
  world_put(world, SITE "/nvidia/cu13/lib/libnvJitLink.so.13");
  world_put(world, "usr/local/cuda-12.9/lib64/libnvrtc.so.12");
  world_put(world, "usr/local/cuda-12.9/lib64/libnvJitLink.so.12");
  world_put(world, "usr/local/cuda-12.9/include/cuda_runtime.h");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  kiln_locate_set_t* set = find(world);
  assert_null(kiln_locate_set_require(set));
  assert_int_equal(kiln_locate_set_missing_count(set), 0);
  assert_int_equal(kiln_locate_set_scope(set), KILN_LOCATE_SCOPE_SYSTEM);
  assert_string_equal(kiln_locate_set_root(set),
                      world_path(world, "usr/local/cuda-12.9"));
  // Which other places there are, and what they lack.
  assert_true(kiln_locate_set_tried_count(set) >= 1);
  assert_string_equal(kiln_locate_set_tried(set, 0)->path,
                      world_path(world, SITE));
  assert_non_null(strstr(kiln_locate_set_tried(set, 0)->why, "header cudart"));
  assert_null(kiln_locate_set_tried(set, 1000));
  kiln_locate_set_release(set);
  // The user's choice of places holds for sets too.
  world->options.forbid_scopes =
      KILN_LOCATE_SCOPE_BIT(KILN_LOCATE_SCOPE_SYSTEM);
  world_forget(world);
  set = find(world);
  assert_int_equal(kiln_locate_set_scope(set), KILN_LOCATE_SCOPE_WHEEL);
  kiln_locate_set_release(set);
}

static void majors_are_not_mixed(void** state) {
  world_t* world = *state;
  // One folder of wheels, two majors, neither whole but for 12.
  world_put(world, SITE "/nvidia/cu13/lib/libnvrtc.so.13");
  world_put(world, SITE "/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  world_put(world, SITE "/nvidia/nvjitlink/lib/libnvJitLink.so.12");
  world_put(world, SITE "/nvidia/cuda_runtime/include/cuda_runtime.h");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_WHEEL,
               SITE "/nvidia/cu13/lib/libnvrtc.so.13");
  kiln_locate_set_t* set = find(world);
  assert_int_equal(kiln_locate_set_missing_count(set), 0);
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(kiln_locate_item_major(kiln_locate_set_item(set, i)), 12);
  }
  kiln_locate_set_release(set);
}

// What a toolkit lacks is said once, though two scopes lead to it and it could
// have been of several majors.
static void what_is_lacking_is_said_once(void** state) {
  world_t* world = *state;
  world_put(world, "usr/local/cuda/lib64/libcudart_static.a");
  world_put(world, "usr/local/cuda/include/cuda_runtime.h");
  world_set(world, KILNI_ENV_CUDA_PATH, "usr/local/cuda");
  kiln_locate_set_t* set = find(world);
  assert_int_equal(kiln_locate_set_missing_count(set), 2);
  assert_int_equal(kiln_locate_set_tried_count(set), 1);
  assert_string_equal(kiln_locate_set_tried(set, 0)->why,
                      "lacks lib nvrtc, lib nvJitLink");
  kiln_locate_set_release(set);
  // Of a major that is there it is said.
  world_put(world, "usr/local/cuda/lib64/libnvrtc.so.12");
  world_forget(world);
  set = find(world);
  assert_int_equal(kiln_locate_set_missing_count(set), 1);
  uint32_t count = kiln_locate_set_tried_count(set);
  assert_true(count >= 1);
  assert_string_equal(kiln_locate_set_tried(set, count - 1)->why,
                      "of CUDA 12 lacks lib nvJitLink");
  kiln_locate_set_release(set);
}

static void nothing_anywhere(void** state) {
  world_t* world = *state;
  kiln_locate_set_t* set = find(world);
  assert_int_equal(kiln_locate_set_missing_count(set), 3);
  assert_int_equal(kiln_locate_set_scope(set), 0);
  assert_string_equal(kiln_locate_set_root(set), "");
  kiln_status_t status = kiln_locate_set_require(set);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  kiln_status_free(status);
  kiln_locate_set_retain(set);
  kiln_locate_set_release(set);
  kiln_locate_set_release(set);
}

// Where no scope has a folder to look in, none is made up: what is said are
// the scopes' own reasons.
static void no_folder_to_look_in(void** state) {
  world_t* world = *state;
  world->options.require_scopes =
      KILN_LOCATE_SCOPE_BIT(KILN_LOCATE_SCOPE_CONDA);
  kiln_locate_set_t* set = find(world);
  assert_int_equal(kiln_locate_set_missing_count(set), 3);
  for (uint32_t i = 0; i < 3; i++) {
    const kiln_locate_item_t* item = kiln_locate_set_item(set, i);
    assert_int_equal(kiln_locate_item_tried_count(item), 1);
    assert_true(world_tried(item, "CONDA_PREFIX", "not set"));
  }
  kiln_status_t status = kiln_locate_set_require(set);
  char text[4096];
  kiln_status_format(status, sizeof(text), text, NULL);
  assert_non_null(strstr(text, "tried \"CONDA_PREFIX\": not set"));
  assert_non_null(strstr(text, "Fix: "));
  kiln_status_free(status);
  kiln_locate_set_release(set);
}

static void what_stands_alone(void** state) {
  world_t* world = *state;
  world_put(world, "kit/lib64/libnvrtc.so.13");
  world_put(world, "mine/libnvJitLink.so.13");
  world_put(world, "usr/lib64/libcuda.so.1");
  world_set(world, KILNI_ENV_CUDA_PATH, "kit");
  assert_null(kilni_base_env_set_member(
      &world->env, "KILN_LOCATE_LIB_NVJITLINK", world_path(world, "mine")));
  static const kiln_locate_want_t wants[] = {
      {LIB, 0, "nvrtc"}, {LIB, 0, "nvJitLink"}, {LIB, 0, "cuda"}};
  kiln_locate_set_t* set = NULL;
  assert_null(kiln_locate_find_set(world_locate(world), wants, 3, &set));
  assert_int_equal(kiln_locate_set_missing_count(set), 0);
  static const uint32_t scopes[] = {KILN_LOCATE_SCOPE_CUDA_PATH,
                                    KILN_LOCATE_SCOPE_OVERRIDE,
                                    KILN_LOCATE_SCOPE_LOADER};
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(kiln_locate_item_scope(kiln_locate_set_item(set, i)),
                     scopes[i]);
  }
  assert_string_equal(kiln_locate_set_root(set), world_path(world, "kit"));
  kiln_locate_set_release(set);
}

static void wrong_wants(void** state) {
  world_t* world = *state;
  const kiln_locate_want_t unknown = {LIB, 0, "nvrct"};
  kiln_locate_set_t* set = NULL;
  kiln_status_t status =
      kiln_locate_find_set(world_locate(world), &unknown, 1, &set);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  assert_null(set);
  kiln_status_free(status);
  status = kiln_locate_find_set(world->locate, kWants, 0, &set);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
}

#define IN_A_WORLD(test) \
  cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_WORLD(a_mixture_is_refused),
      IN_A_WORLD(the_first_complete_place),
      IN_A_WORLD(majors_are_not_mixed),
      IN_A_WORLD(what_is_lacking_is_said_once),
      IN_A_WORLD(what_is_lacking_is_said_once),
      IN_A_WORLD(nothing_anywhere),
      IN_A_WORLD(no_folder_to_look_in),
      IN_A_WORLD(what_stands_alone),
      IN_A_WORLD(wrong_wants),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
