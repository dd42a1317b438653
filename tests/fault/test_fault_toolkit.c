// SPDX-License-Identifier: Apache-2.0
//
// fault: finding pieces, judging them, asking the driver and loading: every
// allocation and every operation on a file fails in turn.
//
// Without memory each of them fails. Without a file a find may still answer,
// with less evidence: what it answers is never wrong, and an error says what
// to do.
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

#include "base/file.h"
#include "base/status_make.h"
#include "fault_child.h"
#include "fault_files.h"
#include "locate_world.h"
#include "toolkit/toolkit.h"

// ---- The machine ----

static void put(const world_t* world, const char* name, const char* piece) {
  uint8_t* data = NULL;
  size_t size = 0;
  assert_null(kilni_base_file_read(kiln_allocator_libc(), piece, 16 << 20,
                                   &data, &size));
  world_write(world, name, data, size);
  kilni_base_file_free(kiln_allocator_libc(), data, size);
}

// Wheels of CUDA 13.0 on the site `a`, a toolkit of the same line in `kit`.
static void furnish(world_t* world) {
  put(world, "a/nvidia/cu13/lib/libcublas.so.13", PIECE_CUBLAS13);
  put(world, "a/nvidia/cu13/lib/libcublasLt.so.13", PIECE_CUBLASLT13);
  world_text(world, "a/nvidia_cublas-13.1.0.3.dist-info/RECORD",
             "nvidia/cu13/lib/libcublas.so.13,,\n"
             "nvidia/cu13/lib/libcublasLt.so.13,,\n");
  world_text(world, "kit/version.json", "{\"cuda\":{\"version\":\"13.0.1\"}}");
  world_text(world, "kit/include/cuda.h", "#define CUDA_VERSION 13000\n");
  world_put(world, "kit/include/cuda_runtime.h");
  world_put(world, "kit/bin/nvcc");
  assert_int_equal(chmod(world_path(world, "kit/bin/nvcc"), 0755), 0);
  world_set(world, KILNI_ENV_CUDA_PATH, "kit");
}

// A run over it. one-thread
typedef struct run_t {
  world_t* world;
  kiln_allocator_t allocator;
  fault_alloc_t* watch;  // NULL: it watches itself
  kiln_status_t (*work)(kiln_toolkit_t* toolkit);
  bool asks_driver;
} run_t;

static kiln_status_t run(run_t* run) {
  const char* site = world_path(run->world, "a");
  kiln_compat_driver_t none = kiln_compat_driver_default();
  none.state = KILN_COMPAT_DRIVER_NONE;
  run->world->options.sites = &site;
  run->world->options.site_count = 1;
  kiln_toolkit_options_t options = kiln_toolkit_options_default();
  options.locate = &run->world->options;
  options.mode = KILN_COMPAT_MODE_STRICT;
  options.allocator = &run->allocator;
  options.cuda_library = FAKE_DRIVER;
  if (!run->asks_driver) options.driver = &none;
  kiln_toolkit_t* toolkit = NULL;
  kiln_status_t status =
      kilni_toolkit_create(&options, &run->world->env, &toolkit);
  if (kiln_status_is_ok(status)) status = run->work(toolkit);
  kiln_toolkit_release(toolkit);
  return status;
}

static kiln_status_t wrong(const char* what) {
  return KILNI_FAIL(INTERNAL, "%s", what);
}

// ---- Work ----

// Finds one piece, and judges what is told of it.
static kiln_status_t find_one(kiln_toolkit_t* toolkit, uint32_t kind,
                              const char* name) {
  kiln_toolkit_item_t* item = NULL;
  kiln_status_t status = kiln_toolkit_find(toolkit, kind, name, &item);
  if (!kiln_status_is_ok(status)) {
    return item == NULL ? status : wrong("an item came with an error");
  }
  uint32_t line = kiln_toolkit_item_line(item);
  bool found = kiln_locate_item_found(kiln_toolkit_item_located(item));
  kiln_toolkit_item_release(item);
  if (line != 0 && line != 13000) return wrong("a line that nothing says");
  if (!found && line != 0) return wrong("a line of nothing");
  return kiln_ok();
}

static kiln_status_t find(kiln_toolkit_t* toolkit) {
  kiln_status_t status = find_one(toolkit, KILN_LOCATE_KIND_LIB, "cublas");
  if (kiln_status_is_ok(status)) {
    status = find_one(toolkit, KILN_LOCATE_KIND_HEADER, "cudart");
  }
  if (kiln_status_is_ok(status)) {
    status = find_one(toolkit, KILN_LOCATE_KIND_BINARY, "nvcc");
  }
  if (kiln_status_is_ok(status)) {
    status = find_one(toolkit, KILN_LOCATE_KIND_LIB, "cusparse");
  }
  return status;
}

// The driver first: what no file can be read of, nobody asks it about.
static kiln_status_t check(kiln_toolkit_t* toolkit) {
  kiln_compat_driver_t driver;
  kiln_compat_use_t use = kiln_compat_use_default();
  use.producer = "nvrtc";
  use.consumer = "nvJitLink";
  use.artifact = KILN_COMPAT_ARTIFACT_LTOIR;
  kiln_toolkit_item_t* items[2] = {NULL, NULL};
  kiln_compat_report_t* report = NULL;
  kiln_status_t status = kiln_toolkit_driver(toolkit, &driver);
  if (kiln_status_is_ok(status)) {
    status = kiln_toolkit_use_declare(toolkit, &use);
  }
  if (kiln_status_is_ok(status)) {
    status = kiln_toolkit_resolve(toolkit, KILN_LOCATE_KIND_LIB, "cublas",
                                  &items[0]);
  }
  if (kiln_status_is_ok(status)) {
    status = kiln_toolkit_resolve(toolkit, KILN_LOCATE_KIND_BINARY, "nvcc",
                                  &items[1]);
  }
  if (kiln_status_is_ok(status)) {
    status = kiln_toolkit_check(toolkit, items, 2, NULL, 0, &report);
  }
  if (kiln_status_is_ok(status) &&
      kiln_compat_report_verdict(report) == KILN_COMPAT_VERDICT_INCOMPATIBLE) {
    status = wrong("what fits is refused");
  }
  if (!kiln_status_is_ok(status) && report != NULL &&
      kiln_status_code(status) != KILN_STATUS_INTERNAL) {
    kiln_status_free(status);
    status = wrong("a report came with an error");
  }
  kiln_compat_report_release(report);
  kiln_toolkit_item_release(items[0]);
  kiln_toolkit_item_release(items[1]);
  return status;
}

static kiln_status_t load(kiln_toolkit_t* toolkit) {
  const kiln_toolkit_library_t* library = NULL;
  kiln_status_t status = kiln_toolkit_load(toolkit, "cublas", &library);
  if (!kiln_status_is_ok(status)) {
    return library == NULL ? status : wrong("a library came with an error");
  }
  if (kiln_toolkit_library_symbol(library, "kiln_fake_blas") == NULL) {
    return wrong("it is another library");
  }
  if (kiln_toolkit_library_before_count(library) != 1) {
    return wrong("what it needs is not told");
  }
  return kiln_ok();
}

// ---- Allocations ----

static kiln_status_t allocation_body(kiln_allocator_t allocator, void* user) {
  run_t* path = user;
  path->allocator = allocator;
  return run(path);
}

static void sweep_allocations(world_t* world,
                              kiln_status_t (*work)(kiln_toolkit_t* toolkit)) {
  run_t path = {.world = world, .work = work, .asks_driver = work == check};
  furnish(world);
  uint64_t count = fault_run_allocations(allocation_body, &path, 0);
  print_message("%llu allocations\n", (unsigned long long)count);
  assert_true(count > 50);
}

static void test_find_allocations(void** state) {
  sweep_allocations(*state, find);
}

static void test_check_allocations(void** state) {
  sweep_allocations(*state, check);
}

static kiln_status_t watched_body(void* user) {
  run_t* path = user;
  path->allocator = fault_alloc_allocator(path->watch);
  return run(path);
}

// Each load in a process that has not loaded it.
static void test_load_allocations(void** state) {
  static fault_alloc_t watch;
  run_t path = {.world = *state, .work = load, .watch = &watch};
  furnish(*state);
  fault_alloc_init(&watch);
  fault_points_t points = fault_alloc_points(&watch);
  uint64_t count = fault_run_in_children(&points, watched_body, &path, 0);
  print_message("%llu allocations\n", (unsigned long long)count);
  assert_true(count > 50);
  fault_alloc_deinit(&watch);
}

// ---- Files ----

// Clean in memory too, and an error that helps.
static kiln_status_t file_body(void* user) {
  static fault_alloc_t watch;
  run_t* path = user;
  fault_alloc_init(&watch);
  path->allocator = fault_alloc_allocator(&watch);
  kiln_status_t status = run(path);
  if (!kiln_status_is_ok(status) && (kiln_status_message(status)[0] == 0 ||
                                     kiln_status_fix(status) == NULL)) {
    kiln_status_free(status);
    status = wrong("an error that does not say what to do");
  }
  const char* problem = fault_alloc_problem(&watch);
  if (problem != NULL) {
    kiln_status_free(status);
    status = wrong(problem);
  }
  fault_alloc_deinit(&watch);
  return status;
}

static void sweep_files(world_t* world,
                        kiln_status_t (*work)(kiln_toolkit_t* toolkit)) {
  static const int errors[] = {EIO, EACCES, EMFILE, ENOENT};
  run_t path = {.world = world, .work = work, .asks_driver = work == check};
  furnish(world);
  for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
    fault_files_t files = {.error = errors[i]};
    fault_points_t points = fault_files_points(&files);
    uint64_t count =
        fault_run_in_children(&points, file_body, &path, FAULT_RUN_MAY_PASS);
    print_message("%llu operations on files\n", (unsigned long long)count);
    assert_true(count > 20);
  }
}

static void test_find_files(void** state) {
  sweep_files(*state, find);
}

static void test_check_files(void** state) {
  sweep_files(*state, check);
}

static void test_load_files(void** state) {
  sweep_files(*state, load);
}

#define TEST(name) \
  cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_find_allocations), TEST(test_check_allocations),
      TEST(test_load_allocations), TEST(test_find_files),
      TEST(test_check_files),      TEST(test_load_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
