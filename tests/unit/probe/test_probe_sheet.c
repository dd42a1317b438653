// SPDX-License-Identifier: Apache-2.0
//
// probe: the fact sheet, over made-up machines.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/status_make.h"
#include "base/thread.h"
#include "probe/probe.h"
#include "table/cuda_table.h"

static kilni_base_env_t g_env;
static kiln_host_t g_host;
static kiln_cuda_table_t g_table;

static int setup(void** state) {
  (void)state;
  memset(&g_env, 0, sizeof(g_env));
  g_env.allocator = kiln_allocator_libc();
  g_host.allocator = kiln_allocator_libc();
  g_host.env = &g_env;
  g_host.process_id = kilni_base_process_id();
  kilni_table_cuda_null_reset();
  kilni_table_cuda_table_null(&g_table);
  return 0;
}

static int teardown(void** state) {
  (void)state;
  kilni_base_env_deinit(&g_env);
  return 0;
}

static kilni_probe_source_t a_machine(void) {
  kilni_probe_source_t source = {0};
  source.host = &g_host;
  source.table = &g_table;
  source.ask_devices = true;
  source.nvrtc_path = "/kit/lib64/libnvrtc.so.12";
  source.nvrtc_version = 12000;
  source.nvrtc_scope = KILN_LOCATE_SCOPE_CUDA_PATH;
  source.soft.lanes = "avx2";
  source.soft.lanes_have = "plain avx2";
  source.soft.workers = 3;
  source.soft.seed = 9;
  source.soft_lanes_wanted = "auto";
  return source;
}

static const kiln_probe_problem_t* find(const kiln_probe_t* probe,
                                        const char* id) {
  for (uint32_t i = 0; i < kiln_probe_problem_count(probe); i++) {
    const kiln_probe_problem_t* problem = kiln_probe_problem(probe, i);
    if (strcmp(problem->id, id) == 0) return problem;
  }
  return NULL;
}

static void test_a_good_machine(void** state) {
  (void)state;
  kilni_probe_source_t source = a_machine();
  kiln_probe_t* probe = NULL;
  assert_null(kilni_base_env_set(&g_env, KILNI_ENV_CUDA_PATH, "/"));
  assert_null(kilni_probe_create(&source, &probe));
  assert_int_equal(kiln_probe_problem_count(probe), 0);
  const kiln_probe_driver_t* driver = kiln_probe_driver(probe);
  assert_int_equal(driver->found, 1);
  assert_int_equal(driver->works, 1);
  assert_int_equal(driver->version, 13000);
  assert_string_equal(driver->why, "");
  assert_true(kiln_probe_device_count(probe) >= 1);
  const kiln_probe_device_t* device = kiln_probe_device(probe, 0);
  assert_string_equal(device->name, "cuda:0");
  assert_true(device->memory_bytes > 0);
  assert_true(device->model[0] != 0);
  assert_null(kiln_probe_device(probe, kiln_probe_device_count(probe)));
  assert_int_equal(kiln_probe_library_count(probe), 1);
  const kiln_probe_library_t* library = kiln_probe_library(probe, 0);
  assert_string_equal(library->name, "nvrtc");
  assert_string_equal(library->scope, "CUDA_PATH");
  assert_int_equal(library->version, 12000);
  const kiln_probe_soft_t* soft = kiln_probe_soft(probe);
  assert_string_equal(soft->lanes, "avx2");
  assert_int_equal(soft->workers, 3);
  assert_int_equal(kiln_probe_variable_count(probe), KILNI_ENV_COUNT);
  const kiln_probe_variable_t* first = kiln_probe_variable(probe, 0);
  assert_string_equal(first->name, "CUDA_PATH");
  assert_string_equal(first->value, "/");
  assert_null(kiln_probe_variable(probe, 1)->value);
  kiln_probe_retain(probe);
  kiln_probe_release(probe);
  kiln_probe_release(probe);
  kiln_probe_release(NULL);
}

static void test_an_empty_machine(void** state) {
  (void)state;
  kilni_probe_source_t source = a_machine();
  source.table = NULL;
  source.driver_status = kilni_base_status_with_fix(
      KILNI_FAIL(NOT_FOUND, "no driver here"), "get one");
  source.nvrtc_path = NULL;
  source.nvrtc_status = kilni_base_status_with_fix(
      KILNI_FAIL(NOT_FOUND, "no compiler here"), "get that");
  source.soft.lanes = "";
  source.soft_lanes_wanted = "avx512";
  kiln_probe_t* probe = NULL;
  assert_null(kilni_probe_create(&source, &probe));
  kiln_status_free(source.driver_status);
  kiln_status_free(source.nvrtc_status);
  assert_int_equal(kiln_probe_driver(probe)->found, 0);
  assert_string_equal(kiln_probe_driver(probe)->why, "no driver here");
  assert_int_equal(kiln_probe_device_count(probe), 0);
  const kiln_probe_problem_t* problem = find(probe, "driver-not-found");
  assert_non_null(problem);
  assert_int_equal(problem->severity, KILN_PROBE_SEVERITY_NOTE);
  assert_string_equal(problem->fix, "get one");
  problem = find(probe, "nvrtc-not-found");
  assert_non_null(problem);
  assert_int_equal(problem->severity, KILN_PROBE_SEVERITY_WARNING);
  assert_string_equal(problem->fix, "get that");
  problem = find(probe, "lanes-not-available");
  assert_non_null(problem);
  assert_non_null(strstr(problem->message, "avx512"));
  kiln_probe_release(probe);
}

static kiln_cu_result_t no_device(unsigned int flags) {
  (void)flags;
  return KILN_CU_ERROR_NO_DEVICE;
}

static void test_a_driver_without_gpus(void** state) {
  (void)state;
  g_table.cuInit = no_device;
  kilni_probe_source_t source = a_machine();
  kiln_probe_t* probe = NULL;
  assert_null(kilni_probe_create(&source, &probe));
  assert_int_equal(kiln_probe_driver(probe)->found, 1);
  assert_int_equal(kiln_probe_driver(probe)->works, 0);
  assert_non_null(find(probe, "no-gpu"));
  assert_true(find(probe, "no-gpu")->fix[0] != 0);
  kiln_probe_release(probe);
  // Not asked, not known.
  source.ask_devices = false;
  assert_null(kilni_probe_create(&source, &probe));
  assert_null(find(probe, "no-gpu"));
  assert_int_equal(kiln_probe_device_count(probe), 0);
  kiln_probe_release(probe);
}

static kiln_cu_result_t broken_init(unsigned int flags) {
  (void)flags;
  return KILN_CU_ERROR_UNKNOWN;
}

static kiln_cu_result_t broken_name(char* name, int size,
                                    kiln_cu_device_t device) {
  (void)name;
  (void)size;
  (void)device;
  return KILN_CU_ERROR_UNKNOWN;
}

static void test_a_driver_that_does_not_work(void** state) {
  (void)state;
  kilni_probe_source_t source = a_machine();
  kiln_probe_t* probe = NULL;
  g_table.cuDeviceGetName = broken_name;
  assert_null(kilni_probe_create(&source, &probe));
  assert_non_null(find(probe, "device-not-readable"));
  assert_null(find(probe, "driver-not-working"));
  kiln_probe_release(probe);
  g_table.cuInit = broken_init;
  assert_null(kilni_probe_create(&source, &probe));
  assert_non_null(find(probe, "driver-not-working"));
  kiln_probe_release(probe);
}

static void test_a_compiler_that_is_too_new(void** state) {
  (void)state;
  kilni_probe_source_t source = a_machine();
  source.nvrtc_version = 13020;
  kiln_probe_t* probe = NULL;
  assert_null(kilni_probe_create(&source, &probe));
  const kiln_probe_problem_t* problem = find(probe, "nvrtc-newer-than-driver");
  assert_non_null(problem);
  assert_non_null(strstr(problem->message, "13.2"));
  assert_non_null(strstr(problem->message, "13.0"));
  kiln_probe_release(probe);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_a_good_machine),
      TEST(test_an_empty_machine),
      TEST(test_a_driver_without_gpus),
      TEST(test_a_driver_that_does_not_work),
      TEST(test_a_compiler_that_is_too_new),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
