// SPDX-License-Identifier: Apache-2.0
//
// locate: the search for NVRTC, over made-up roots.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault_run.h"
#include "base/str.h"
#include "locate/locate.h"

enum { PATH_BYTES = 512 };

// A folder of its own and an environment with nothing set. one-thread
typedef struct world_t {
  char root[64];
  kilni_env_t env;
} world_t;

static int setup(void** state) {
  world_t* world = calloc(1, sizeof(*world));
  snprintf(world->root, sizeof(world->root), "/tmp/kiln-locate-XXXXXX");
  if (mkdtemp(world->root) == NULL) return 1;
  world->env.allocator = kiln_allocator_libc();
  *state = world;
  return 0;
}

static int remove_one(const char* path, const struct stat* info, int flag,
                      struct FTW* place) {
  (void)info;
  (void)flag;
  (void)place;
  return remove(path);
}

static int teardown(void** state) {
  world_t* world = *state;
  kilni_env_deinit(&world->env);
  int result = nftw(world->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  free(world);
  return result;
}

// Makes an empty file, and the folders above it, below the world's root.
static void put(const world_t* world, const char* name) {
  char path[PATH_BYTES];
  snprintf(path, sizeof(path), "%s/%s", world->root, name);
  for (char* at = path + strlen(world->root) + 1; *at != 0; at++) {
    if (*at != '/') continue;
    *at = 0;
    mkdir(path, 0755);
    *at = '/';
  }
  FILE* file = fopen(path, "w");
  assert_non_null(file);
  fclose(file);
}

static const char* below(const world_t* world, const char* name) {
  static char path[4][PATH_BYTES];
  static int turn;
  char* text = path[turn++ % 4];
  snprintf(text, PATH_BYTES, "%s/%s", world->root, name);
  return text;
}

static void set(world_t* world, kilni_env_id_t id, const char* name) {
  assert_null(kilni_env_set(&world->env, id, below(world, name)));
}

static kiln_locate_report_t* look(world_t* world) {
  kiln_locate_report_t* report = NULL;
  assert_null(kilni_locate_nvrtc(kiln_allocator_libc(), &world->env, NULL,
                                 world->root, &report));
  assert_non_null(report);
  return report;
}

static void assert_candidate(const kiln_locate_report_t* report, uint32_t index,
                             uint32_t scope, const char* path,
                             const char* include_dir) {
  const kiln_locate_candidate_t* item =
      kiln_locate_report_candidate(report, index);
  assert_non_null(item);
  assert_string_equal(item->path, path);
  assert_string_equal(item->include_dir, include_dir);
  assert_int_equal(item->scope, scope);
}

static bool was_tried(const kiln_locate_report_t* report, const char* path,
                      const char* why) {
  for (uint32_t i = 0; i < kiln_locate_report_tried_count(report); i++) {
    const kiln_locate_tried_t* item = kiln_locate_report_tried(report, i);
    if (strcmp(item->path, path) == 0 && strstr(item->why, why)) return true;
  }
  return false;
}

static void test_an_empty_machine(void** state) {
  world_t* world = *state;
  kiln_locate_report_t* report = look(world);
  // Nothing on disk: only the loader's names are left to try.
  assert_int_equal(kiln_locate_report_candidate_count(report), 2);
  assert_candidate(report, 0, KILN_LOCATE_SCOPE_LOADER, "libnvrtc.so.13", "");
  assert_candidate(report, 1, KILN_LOCATE_SCOPE_LOADER, "libnvrtc.so.12", "");
  assert_null(kiln_locate_report_candidate(report, 2));
  assert_true(was_tried(report, "CUDA_PATH", "not set"));
  assert_true(was_tried(report, "CUDA_HOME", "not set"));
  assert_true(was_tried(report, "VIRTUAL_ENV", "not set"));
  assert_true(
      was_tried(report, below(world, "usr/local/cuda"), "no such folder"));
  kiln_locate_report_release(report);
}

static void test_the_order(void** state) {
  world_t* world = *state;
  put(world, "one/lib64/libnvrtc.so.12");
  put(world, "one/include/cuda_fp16.h");
  put(world, "two/lib/libnvrtc.so.13");
  put(world, "usr/local/cuda-12.9/lib64/libnvrtc.so.12");
  put(world, "usr/local/cuda-13.0/lib64/libnvrtc.so.13");
  put(world, "usr/local/cuda-9.2/lib64/libnvrtc.so.9");
  put(world, "env/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  put(world,
      "env/lib/python3.11/site-packages/nvidia/cu13/include/"
      "cuda_runtime.h");
  put(world,
      "env/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/"
      "libnvrtc.so.12");
  set(world, KILNI_ENV_CUDA_PATH, "one");
  set(world, KILNI_ENV_CUDA_HOME, "two");
  set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  kiln_locate_report_t* report = look(world);
  assert_int_equal(kiln_locate_report_candidate_count(report), 9);
  assert_candidate(report, 0, KILN_LOCATE_SCOPE_CUDA_PATH,
                   below(world, "one/lib64/libnvrtc.so.12"),
                   below(world, "one/include"));
  assert_candidate(report, 1, KILN_LOCATE_SCOPE_CUDA_HOME,
                   below(world, "two/lib/libnvrtc.so.13"), "");
  assert_candidate(report, 2, KILN_LOCATE_SCOPE_LOADER, "libnvrtc.so.13", "");
  assert_candidate(report, 4, KILN_LOCATE_SCOPE_SYSTEM,
                   below(world, "usr/local/cuda-13.0/lib64/libnvrtc.so.13"),
                   "");
  assert_candidate(report, 5, KILN_LOCATE_SCOPE_SYSTEM,
                   below(world, "usr/local/cuda-12.9/lib64/libnvrtc.so.12"),
                   "");
  assert_candidate(report, 6, KILN_LOCATE_SCOPE_SYSTEM,
                   below(world, "usr/local/cuda-9.2/lib64/libnvrtc.so.9"), "");
  assert_candidate(
      report, 7, KILN_LOCATE_SCOPE_WHEEL,
      below(world,
            "env/lib/python3.11/site-packages/nvidia/cu13/lib/"
            "libnvrtc.so.13"),
      below(world, "env/lib/python3.11/site-packages/nvidia/cu13/include"));
  assert_candidate(
      report, 8, KILN_LOCATE_SCOPE_WHEEL,
      below(world,
            "env/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/"
            "libnvrtc.so.12"),
      "");
  kiln_locate_report_release(report);
}

static void test_the_newest_of_a_folder(void** state) {
  world_t* world = *state;
  put(world, "kit/lib64/libnvrtc.so");
  put(world, "kit/lib64/libnvrtc.so.9");
  put(world, "kit/lib64/libnvrtc.so.13");
  put(world, "kit/lib64/libnvrtc.so.12.9.86");
  put(world, "kit/lib64/libnvrtc.alt.so.14");
  put(world, "kit/lib64/libnvrtc.so.99.txt");
  put(world, "kit/lib64/libnvrtc-builtins.so.15");
  set(world, KILNI_ENV_CUDA_HOME, "kit");
  kiln_locate_report_t* report = look(world);
  assert_candidate(report, 0, KILN_LOCATE_SCOPE_CUDA_HOME,
                   below(world, "kit/lib64/libnvrtc.so.13"), "");
  kiln_locate_report_release(report);
}

static void test_a_folder_without_it(void** state) {
  world_t* world = *state;
  put(world, "kit/lib64/libcudart.so.13");
  set(world, KILNI_ENV_CUDA_PATH, "kit");
  set(world, KILNI_ENV_CUDA_HOME, "nowhere");
  kiln_locate_report_t* report = look(world);
  assert_true(was_tried(report, below(world, "kit"), "no libnvrtc.so"));
  assert_true(was_tried(report, below(world, "nowhere"), "no such folder"));
  assert_int_equal(kiln_locate_report_candidate_count(report), 2);
  kiln_locate_report_release(report);
}

static void test_a_file_is_named_once(void** state) {
  world_t* world = *state;
  put(world, "usr/local/cuda-13.0/lib64/libnvrtc.so.13");
  char link_path[PATH_BYTES];
  snprintf(link_path, sizeof(link_path), "%s", below(world, "usr/local/cuda"));
  assert_int_equal(symlink("cuda-13.0", link_path), 0);
  kiln_locate_report_t* report = look(world);
  assert_int_equal(kiln_locate_report_candidate_count(report), 3);
  assert_candidate(report, 2, KILN_LOCATE_SCOPE_SYSTEM,
                   below(world, "usr/local/cuda/lib64/libnvrtc.so.13"), "");
  assert_true(was_tried(
      report, below(world, "usr/local/cuda-13.0/lib64/libnvrtc.so.13"),
      "the same file as"));
  kiln_locate_report_release(report);
}

static void test_a_named_library(void** state) {
  world_t* world = *state;
  put(world, "kit/lib64/libnvrtc.so.13");
  put(world, "kit/include/cuda_fp16.h");
  put(world, "other/libnvrtc.so");
  set(world, KILNI_ENV_KILN_LIBNVRTC, "other/libnvrtc.so");
  // What the caller names wins over the variable, and either ends the search.
  kiln_locate_report_t* report = NULL;
  assert_null(kilni_locate_nvrtc(kiln_allocator_libc(), &world->env,
                                 below(world, "kit/lib64/libnvrtc.so.13"),
                                 world->root, &report));
  assert_int_equal(kiln_locate_report_candidate_count(report), 1);
  assert_candidate(report, 0, KILN_LOCATE_SCOPE_EXPLICIT,
                   below(world, "kit/lib64/libnvrtc.so.13"),
                   below(world, "kit/include"));
  kiln_locate_report_release(report);
  report = look(world);
  assert_int_equal(kiln_locate_report_candidate_count(report), 1);
  assert_candidate(report, 0, KILN_LOCATE_SCOPE_EXPLICIT,
                   below(world, "other/libnvrtc.so"), "");
  kiln_locate_report_release(report);
}

static void test_a_wrong_name_is_an_error(void** state) {
  world_t* world = *state;
  set(world, KILNI_ENV_KILN_LIBNVRTC, "gone/libnvrtc.so.13");
  kiln_locate_report_t* report = NULL;
  kiln_status_t status = kilni_locate_nvrtc(kiln_allocator_libc(), &world->env,
                                            NULL, world->root, &report);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  assert_non_null(strstr(kiln_status_message(status), "gone/libnvrtc.so.13"));
  assert_non_null(strstr(kiln_status_message(status), "KILN_LIBNVRTC"));
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
  assert_non_null(report);
  assert_int_equal(kiln_locate_report_candidate_count(report), 0);
  assert_true(
      was_tried(report, below(world, "gone/libnvrtc.so.13"), "no such file"));
  kiln_locate_report_release(report);
}

static void test_include_folders(void** state) {
  world_t* world = *state;
  put(world, "kit/targets/x86_64-linux/lib/libnvrtc.so.13");
  put(world, "kit/targets/x86_64-linux/include/cuda_fp16.h");
  put(world, "site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  put(world, "site/nvidia/cuda_nvrtc/include/nvrtc.h");
  put(world, "site/nvidia/cuda_runtime/include/cuda_runtime.h");
  put(world, "bare/libnvrtc.so.12");
  static const char* const cases[][2] = {
      {"kit/targets/x86_64-linux/lib/libnvrtc.so.13",
       "kit/targets/x86_64-linux/include"},
      {"site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
       "site/nvidia/cuda_runtime/include"},
      {"bare/libnvrtc.so.12", ""},
      {"missing/libnvrtc.so.12", ""},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    char* dir = NULL;
    assert_null(kilni_locate_include_dir(kiln_allocator_libc(),
                                         below(world, cases[i][0]), &dir));
    assert_string_equal(dir, cases[i][1][0] ? below(world, cases[i][1]) : "");
    kilni_strfree(kiln_allocator_libc(), dir);
  }
}

static kiln_status_t search_body(kiln_allocator_t allocator, void* user) {
  world_t* world = user;
  kiln_locate_report_t* report = NULL;
  kiln_status_t status =
      kilni_locate_nvrtc(allocator, &world->env, NULL, world->root, &report);
  assert_int_equal(report == NULL, !kiln_status_is_ok(status));
  kiln_locate_report_release(report);
  return status;
}

static void test_memory_may_run_out(void** state) {
  world_t* world = *state;
  put(world, "kit/lib64/libnvrtc.so.12");
  put(world, "kit/include/cuda_fp16.h");
  put(world, "usr/local/cuda-13.0/lib64/libnvrtc.so.13");
  put(world, "env/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  set(world, KILNI_ENV_CUDA_PATH, "kit");
  set(world, KILNI_ENV_VIRTUAL_ENV, "env");
  assert_true(fault_run_allocations(search_body, world, 0) > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_an_empty_machine, setup, teardown),
      cmocka_unit_test_setup_teardown(test_the_order, setup, teardown),
      cmocka_unit_test_setup_teardown(test_the_newest_of_a_folder, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_a_folder_without_it, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_a_file_is_named_once, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_a_named_library, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_wrong_name_is_an_error, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_include_folders, setup, teardown),
      cmocka_unit_test_setup_teardown(test_memory_may_run_out, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
