// SPDX-License-Identifier: Apache-2.0
//
// locate: what is named for one thing: taken, or a loud error.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "locate_world.h"

#define LIB    KILN_LOCATE_KIND_LIB
#define HEADER KILN_LOCATE_KIND_HEADER
#define SCOPE  KILN_LOCATE_SCOPE_OVERRIDE

static void name_it(world_t* world, const char* variable, const char* path) {
  assert_null(kilni_base_env_set_member(&world->env, variable,
                                        path ? world_path(world, path) : NULL));
  world_forget(world);
}

static void a_file_or_its_folder(void** state) {
  world_t* world = *state;
  world_put(world, "kit/lib64/libnvrtc.so.12");
  world_put(world, "mine/my_nvrtc.so");
  world_put(world,
            "env/lib/python3.11/site-packages/nvidia/cu13/lib/"
            "libnvrtc.so.13");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  static const struct {
    const char* value;
    const char* path;
  } rows[] = {{"kit/lib64/libnvrtc.so.12", "kit/lib64/libnvrtc.so.12"},
              {"kit/lib64", "kit/lib64/libnvrtc.so.12"},
              {"kit", "kit/lib64/libnvrtc.so.12"},
              {"mine/my_nvrtc.so", "mine/my_nvrtc.so"}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    name_it(world, "KILN_LOCATE_LIB_NVRTC", rows[i].value);
    world_expect(world, LIB, "nvrtc", SCOPE, rows[i].path);
  }
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  assert_string_equal(kiln_locate_item_via(item), "KILN_LOCATE_LIB_NVRTC");
  kiln_locate_item_release(item);
  // It outdoes every policy but an explicit no.
  world->options.require_scopes =
      KILN_LOCATE_SCOPE_BIT(KILN_LOCATE_SCOPE_WHEEL);
  world_forget(world);
  world_expect(world, LIB, "nvrtc", SCOPE, "mine/my_nvrtc.so");
  world->options.forbid_scopes = KILN_LOCATE_SCOPE_BIT(SCOPE);
  world_forget(world);
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_WHEEL,
               "env/lib/python3.11/site-packages/nvidia/cu13/lib/"
               "libnvrtc.so.13");
}

static void names_of_the_variables(void** state) {
  world_t* world = *state;
  world_put(world, "inc/cuda/std/version");
  world_put(world, "bin/compute-sanitizer");
  world_put(world, "bin/cudafe++");
  world_put(world, "a/libcudadevrt.a");
  assert_int_equal(chmod(world_path(world, "bin/compute-sanitizer"), 0755), 0);
  assert_int_equal(chmod(world_path(world, "bin/cudafe++"), 0755), 0);
  name_it(world, "KILN_LOCATE_HEADER_CCCL", "inc");
  name_it(world, "KILN_LOCATE_BINARY_COMPUTE_SANITIZER", "bin");
  name_it(world, "KILN_LOCATE_BINARY_CUDAFE__", "bin/cudafe++");
  name_it(world, "KILN_LOCATE_STATIC_CUDADEVRT", "a/libcudadevrt.a");
  world_expect(world, HEADER, "cccl", SCOPE, "inc");
  world_expect(world, KILN_LOCATE_KIND_BINARY, "compute-sanitizer", SCOPE,
               "bin/compute-sanitizer");
  world_expect(world, KILN_LOCATE_KIND_BINARY, "cudafe++", SCOPE,
               "bin/cudafe++");
  world_expect(world, KILN_LOCATE_KIND_STATIC, "cudadevrt", SCOPE,
               "a/libcudadevrt.a");
  // The header file itself, in its folder of folders.
  name_it(world, "KILN_LOCATE_HEADER_CCCL", "inc/cuda/std/version");
  world_expect(world, HEADER, "cccl", SCOPE, "inc");
}

static void wrong_is_an_error(void** state) {
  world_t* world = *state;
  world_put(world, "usr/local/cuda/lib64/libnvrtc.so.13");
  world_folder(world, "empty");
  world_link(world, "broken", "nowhere");
  static const char* const values[] = {"gone", "empty", "broken", NULL};
  for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
    if (values[i] != NULL) {
      name_it(world, "KILN_LOCATE_LIB_NVRTC", values[i]);
    } else {
      assert_null(kilni_base_env_set_member(
          &world->env, "KILN_LOCATE_LIB_NVRTC", "usr/local/cuda"));
      world_forget(world);
    }
    kiln_locate_item_t* item = NULL;
    kiln_status_t status =
        kiln_locate_find(world_locate(world), LIB, "nvrtc", &item);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
    assert_null(item);
    assert_non_null(
        strstr(kiln_status_message(status), "KILN_LOCATE_LIB_NVRTC"));
    assert_non_null(strstr(kiln_status_message(status), "libnvrtc.so.13"));
    assert_non_null(strstr(kiln_status_fix(status), "unset it"));
    kiln_status_free(status);
    // Others are not touched by it.
    world_expect(world, LIB, "cufft", 0, NULL);
  }
  // A program that cannot be executed is no program.
  world_put(world, "bin/ptxas");
  name_it(world, "KILN_LOCATE_BINARY_PTXAS", "bin/ptxas");
  kiln_locate_item_t* item = NULL;
  kiln_status_t status = kiln_locate_find(
      world_locate(world), KILN_LOCATE_KIND_BINARY, "ptxas", &item);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  kiln_status_free(status);
  // Empty is unset.
  assert_null(
      kilni_base_env_set_member(&world->env, "KILN_LOCATE_LIB_NVRTC", ""));
  world_forget(world);
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_SYSTEM,
               "usr/local/cuda/lib64/libnvrtc.so.13");
}

static void an_option_outdoes_a_variable(void** state) {
  world_t* world = *state;
  world_put(world, "one/libnvrtc.so.13");
  world_put(world, "two/libnvrtc.so.13");
  name_it(world, "KILN_LOCATE_LIB_NVRTC", "one");
  kiln_locate_override_t override = {LIB, 0, "nvrtc", world_path(world, "two")};
  world->options.overrides = &override;
  world->options.override_count = 1;
  world_expect(world, LIB, "nvrtc", SCOPE, "two/libnvrtc.so.13");
  override.path = world_path(world, "three");
  world_forget(world);
  kiln_locate_item_t* item = NULL;
  kiln_status_t status =
      kiln_locate_find(world_locate(world), LIB, "nvrtc", &item);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  assert_non_null(strstr(kiln_status_message(status), "option"));
  kiln_status_free(status);
}

static void a_misspelled_name_is_told(void** state) {
  world_t* world = *state;
  world_put(world, "usr/local/cuda/lib64/libnvrtc.so.13");
  name_it(world, "KILN_LOCATE_LIB_NVRCT", "mine");
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  assert_true(kiln_locate_item_found(item));
  assert_int_equal(kiln_locate_item_warning_count(item), 1);
  const char* text = kiln_locate_item_warning(item, 0);
  assert_non_null(strstr(text, "KILN_LOCATE_LIB_NVRCT"));
  assert_non_null(strstr(text, "KILN_LOCATE_LIB_NVRTC"));
  kiln_locate_item_release(item);
  // Another row's own name is nobody's slip.
  name_it(world, "KILN_LOCATE_LIB_NVRCT", NULL);
  world_put(world, "mine/libnppim.so.13");
  name_it(world, "KILN_LOCATE_LIB_NPPIM", "mine");
  item = world_find(world, LIB, "nppig");
  assert_int_equal(kiln_locate_item_warning_count(item), 0);
  kiln_locate_item_release(item);
}

static void what_lies_beside(void** state) {
  world_t* world = *state;
  world_put(world, "kit/targets/x86_64-linux/lib/libnvrtc.so.13");
  world_put(world, "kit/include/cuda_runtime.h");
  world_put(world, "site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  world_put(world, "site-packages/nvidia/cuda_runtime/include/cuda_runtime.h");
  static const char* const rows[][2] = {
      {"kit/targets/x86_64-linux/lib/libnvrtc.so.13", "kit/include"},
      {"site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
       "site-packages/nvidia/cuda_runtime/include"}};
  for (size_t i = 0; i < 2; i++) {
    name_it(world, "KILN_LOCATE_LIB_NVRTC", rows[i][0]);
    kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
    kiln_locate_item_t* header = NULL;
    assert_null(kiln_locate_find_beside(world->locate, item, HEADER, "cudart",
                                        &header));
    assert_string_equal(kiln_locate_item_path(header),
                        world_path(world, rows[i][1]));
    kiln_locate_item_release(header);
    kiln_locate_item_release(item);
  }
}

#define IN_A_WORLD(test) \
  cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_WORLD(a_file_or_its_folder),
      IN_A_WORLD(names_of_the_variables),
      IN_A_WORLD(wrong_is_an_error),
      IN_A_WORLD(an_option_outdoes_a_variable),
      IN_A_WORLD(a_misspelled_name_is_told),
      IN_A_WORLD(what_lies_beside),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
