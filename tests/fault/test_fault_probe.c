// SPDX-License-Identifier: Apache-2.0
//
// fault: the fact sheet: every allocation, every operation on a file and every
// call into the driver fails in turn.
//
// Without memory there is no sheet. Whatever else fails, there is one: what
// could not be read is missing in it.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/status_make.h"
#include "base/thread.h"
#include "fault_calls.h"
#include "fault_files.h"
#include "kiln/kiln.h"
#include "locate_world.h"
#include "probe/probe.h"
#include "table/cuda_table.h"
#include "toolkit/toolkit.h"

// ---- The machine ----

static void kit(world_t* world, const char* name, const char* version) {
  char path[256];
  char text[256];
  snprintf(path, sizeof(path), "%s/version.json", name);
  snprintf(text, sizeof(text), "{\"cuda\":{\"version\":\"%s\"}}", version);
  world_text(world, path, text);
}

// Two toolkits that do not fit together, wheels, a cache, and a driver.
static void furnish(world_t* world) {
  kit(world, "a", "13.2.0");
  kit(world, "b", "13.0.1");
  world_put(world, "a/lib64/libnvrtc.so.13");
  world_put(world, "b/lib64/libnvrtc.so.13");
  world_put(world, "b/lib64/libnvJitLink.so.13");
  world_put(world, "b/lib64/libcudart.so.13");
  world_text(world, "a/include/cuda.h", "#define CUDA_VERSION 13020\n");
  world_put(world, "b/bin/nvcc");
  assert_int_equal(chmod(world_path(world, "b/bin/nvcc"), 0755), 0);
  world_put(world, "usr/lib/libcuda.so.580.65.06");
  world_text(world, "etc/os-release", "ID=debian\nPRETTY_NAME=\"Deb 12\"\n");
  world_text(world, "proc/sys/kernel/osrelease", "6.1.0\n");
  world_text(world, "proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  x\n");
  world_write(world, "home/.nv/ComputeCache/1/2/x", "12345678", 8);
  world_set(world, KILNI_ENV_HOME, "home");
  world_set(world, KILNI_ENV_CUDA_PATH, "a");
  world_folder(world, "loader");
  world_set(world, KILNI_ENV_LD_LIBRARY_PATH, "loader");
}

// A run over it. one-thread
typedef struct run_t {
  world_t* world;
  const kiln_cuda_table_t* table;
} run_t;

static kiln_status_t look(const run_t* run, kiln_allocator_t allocator) {
  static char roots[2][WORLD_PATH_BYTES];
  static const char* const names[2] = {roots[0], roots[1]};
  world_t* world = run->world;
  snprintf(roots[0], sizeof(roots[0]), "%s", world_path(world, "a"));
  snprintf(roots[1], sizeof(roots[1]), "%s", world_path(world, "b"));
  world->options.roots = names;
  world->options.root_count = 2;
  kiln_host_t host;
  memset(&host, 0, sizeof(host));
  host.allocator = allocator;
  host.env = &world->env;
  host.process_id = kilni_base_process_id();
  kilni_probe_source_t source = {.host = &host,
                                 .table = run->table,
                                 .ask_devices = true,
                                 .system_root = world->root};
  source.soft.lanes = "plain";
  source.soft.lanes_have = "plain";
  kiln_compat_driver_t none = kiln_compat_driver_default();
  none.state = KILN_COMPAT_DRIVER_NONE;
  kiln_toolkit_options_t options = kiln_toolkit_options_default();
  options.locate = &world->options;
  options.allocator = &allocator;
  options.driver = &none;
  kiln_probe_t* probe = NULL;
  kiln_status_t status =
      kilni_toolkit_create(&options, &world->env, &source.toolkit);
  if (kiln_status_is_ok(status)) status = kilni_probe_create(&source, &probe);
  kiln_toolkit_release(source.toolkit);
  assert_int_equal(probe == NULL, !kiln_status_is_ok(status));
  if (probe == NULL) return status;
  for (uint32_t i = 0; i < kiln_probe_problem_count(probe); i++) {
    const kiln_probe_problem_t* problem = kiln_probe_problem(probe, i);
    assert_true(problem->message[0] != 0);
    assert_true(problem->fix != NULL);
  }
  kiln_probe_release(probe);
  return kiln_ok();
}

static kiln_cuda_table_t a_driver(const world_t* world) {
  static char origin[WORLD_PATH_BYTES];
  kiln_cuda_table_t table;
  kilni_table_cuda_null_reset();
  kilni_table_cuda_table_null(&table);
  snprintf(origin, sizeof(origin), "%s",
           world_path(world, "usr/lib/libcuda.so.580.65.06"));
  table.origin = origin;
  return table;
}

// ---- What fails ----

static kiln_status_t allocation_body(kiln_allocator_t allocator, void* user) {
  return look(user, allocator);
}

static void test_allocations(void** state) {
  furnish(*state);
  kiln_cuda_table_t table = a_driver(*state);
  run_t run = {*state, &table};
  uint64_t count = fault_run_allocations(allocation_body, &run, 0);
  print_message("%llu allocations\n", (unsigned long long)count);
  assert_true(count > 100);
}

// Clean in memory, and never without a sheet.
static kiln_status_t watched(run_t* run) {
  kiln_status_t status = fault_run_watched(allocation_body, run);
  assert_null(status);
  return status;
}

static kiln_status_t file_body(void* user) {
  return watched(user);
}

static void test_files(void** state) {
  static const int errors[] = {EIO, EACCES, EMFILE, ENOENT};
  furnish(*state);
  kiln_cuda_table_t table = a_driver(*state);
  run_t run = {*state, &table};
  for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
    fault_files_t files = {.error = errors[i]};
    fault_points_t points = fault_files_points(&files);
    uint64_t count = fault_run(&points, file_body, &run, FAULT_RUN_MAY_PASS);
    print_message("%llu operations on files\n", (unsigned long long)count);
    assert_true(count > 200);
  }
}

static kiln_status_t call_body(const kiln_cuda_table_t* table, void* user) {
  run_t* run = user;
  run->table = table;
  return watched(run);
}

static void test_calls(void** state) {
  furnish(*state);
  run_t run = {*state, NULL};
  uint64_t count = fault_run_calls(call_body, &run, KILN_CU_ERROR_UNKNOWN,
                                   FAULT_RUN_MAY_PASS);
  print_message("%llu driver calls\n", (unsigned long long)count);
  assert_true(count > 5);
}

// ---- By way of the runtime ----

static kiln_status_t runtime_body(kiln_allocator_t allocator, void* user) {
  (void)user;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.allocator = &allocator;
  // A machine with nothing on it: a real one would be searched, and its driver
  // started, once for each point.
  kiln_locate_options_t locate = kiln_locate_options_default();
  locate.hermetic = KILN_SWITCH_ON;
  locate.system_root = KILN_SOURCE_DIR "/tests/fault";
  kiln_toolkit_options_t toolkit = kiln_toolkit_options_default();
  toolkit.locate = &locate;
  options.toolkit = &toolkit;
  options.cuda_library = "/nowhere/libcuda.so";
  kiln_runtime_t* runtime = NULL;
  kiln_status_t status = kiln_runtime_create(&options, &runtime);
  if (!kiln_status_is_ok(status)) return status;
  kiln_probe_options_t probing = kiln_probe_options_default();
  kiln_probe_t* probe = NULL;
  status = kiln_runtime_probe(runtime, &probing, &probe);
  assert_int_equal(probe == NULL, !kiln_status_is_ok(status));
  kiln_probe_release(probe);
  kiln_runtime_release(runtime);
  return status;
}

// What the machine lacks is a fact of the sheet: a search that fails for want
// of memory may end as one.
static void test_runtime_allocations(void** state) {
  (void)state;
  uint64_t count =
      fault_run_allocations(runtime_body, NULL, FAULT_RUN_MAY_PASS);
  print_message("%llu allocations\n", (unsigned long long)count);
  assert_true(count > 10);
}

#define TEST(name) \
  cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_allocations),
      TEST(test_files),
      TEST(test_calls),
      TEST(test_runtime_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
