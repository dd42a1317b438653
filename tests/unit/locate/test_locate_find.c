// SPDX-License-Identifier: Apache-2.0
//
// locate: the order of the scopes, for each kind of thing.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "locate_world.h"

#define LIB    KILN_LOCATE_KIND_LIB
#define HEADER KILN_LOCATE_KIND_HEADER
#define STATIC KILN_LOCATE_KIND_STATIC
#define BITC   KILN_LOCATE_KIND_BITCODE
#define BINARY KILN_LOCATE_KIND_BINARY
#define SITE   "env/lib/python3.11/site-packages/"

static void an_empty_machine(void** state) {
  world_t* world = *state;
  kiln_locate_item_t* item = world_find(world, LIB, "nvrtc");
  assert_false(kiln_locate_item_found(item));
  assert_string_equal(kiln_locate_item_path(item), "");
  assert_int_equal(kiln_locate_item_scope(item), 0);
  assert_true(world_tried(item, "CUDA_PATH", "not set"));
  assert_true(world_tried(item, "CUDA_HOME", "not set"));
  assert_true(world_tried(item, "VIRTUAL_ENV", "not set"));
  assert_true(world_tried(item, "CONDA_PREFIX", "not set"));
  assert_true(
      world_tried(item, world_path(world, "etc/ld.so.cache"), "no such file"));
  assert_true(
      world_tried(item, world_path(world, "usr/local/cuda"), "no such folder"));
  kiln_status_t status = kiln_locate_item_require(item);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  assert_non_null(strstr(kiln_status_fix(status), "KILN_LOCATE_LIB_NVRTC"));
  kiln_status_free(status);
  kiln_locate_item_release(item);
}

static void the_order_for_a_library(void** state) {
  world_t* world = *state;
  world_put(world, SITE "nvidia/cu13/lib/libnvrtc.so.13");
  world_put(world, "conda/lib/libnvrtc.so.13");
  world_put(world, "usr/lib64/libnvrtc.so.13");
  world_put(world, "kit/lib64/libnvrtc.so.12");
  world_put(world, "home/lib/libnvrtc.so.12");
  world_put(world, "usr/local/cuda-12.9/lib64/libnvrtc.so.12");
  world_put(world, "usr/local/cuda-13.0/lib64/libnvrtc.so.13");
  world_put(world, "opt/cuda/lib64/libnvrtc.so.13");
  world_put(world,
            "opt/nvidia/hpc_sdk/Linux_x86_64/25.1/cuda/lib64/libnvrtc.so.12");
  world_set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  world_set(world, KILNI_ENV_CONDA_PREFIX, "conda");
  world_set(world, KILNI_ENV_CUDA_PATH, "kit");
  world_set(world, KILNI_ENV_CUDA_HOME, "home");
  static const struct {
    uint32_t scope;
    const char* path;
    const char* gone;
  } rows[] = {
      {KILN_LOCATE_SCOPE_WHEEL, SITE "nvidia/cu13/lib/libnvrtc.so.13", "env"},
      {KILN_LOCATE_SCOPE_CONDA, "conda/lib/libnvrtc.so.13", "conda"},
      {KILN_LOCATE_SCOPE_LOADER, "usr/lib64/libnvrtc.so.13", "usr/lib64"},
      {KILN_LOCATE_SCOPE_CUDA_PATH, "kit/lib64/libnvrtc.so.12", "kit"},
      // CUDA_HOME does not count behind CUDA_PATH, even if that is empty.
      {KILN_LOCATE_SCOPE_SYSTEM, "usr/local/cuda-13.0/lib64/libnvrtc.so.13",
       "usr/local/cuda-13.0"},
      {KILN_LOCATE_SCOPE_SYSTEM, "usr/local/cuda-12.9/lib64/libnvrtc.so.12",
       "usr/local/cuda-12.9"},
      {KILN_LOCATE_SCOPE_SYSTEM, "opt/cuda/lib64/libnvrtc.so.13", "opt/cuda"},
      {KILN_LOCATE_SCOPE_HPC_SDK,
       "opt/nvidia/hpc_sdk/Linux_x86_64/25.1/cuda/lib64/libnvrtc.so.12",
       "opt/nvidia"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    world_expect(world, LIB, "nvrtc", rows[i].scope, rows[i].path);
    world_remove(world, rows[i].gone);
    kiln_locate_refresh(world->locate);
  }
  world_expect(world, LIB, "nvrtc", 0, NULL);
  assert_null(kilni_env_set(&world->env, KILNI_ENV_CUDA_PATH, NULL));
  world_forget(world);
  world_expect(world, LIB, "nvrtc", KILN_LOCATE_SCOPE_CUDA_HOME,
               "home/lib/libnvrtc.so.12");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(an_empty_machine, world_setup,
                                      world_teardown),
      cmocka_unit_test_setup_teardown(the_order_for_a_library, world_setup,
                                      world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
