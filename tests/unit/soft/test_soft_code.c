// SPDX-License-Identifier: Apache-2.0
//
// soft: a module without memory for it: every allocation of loading and of
// running may fail, and nothing leaks.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "base/file.h"
#include "base/thread.h"
#include "fault_alloc.h"
#include "soft/engine/soft_grid.h"
#include "test_tree.h"

static kilni_image_ptx_module_t* read_module(const char* name) {
  char path[512];
  snprintf(path, sizeof(path), "%s/tests/kernels/%s.cu.ptx", test_tree(), name);
  uint8_t* text;
  size_t size;
  assert_true(kiln_status_is_ok(kilni_base_file_read(
      kiln_allocator_libc(), path, 1 << 24, &text, &size)));
  kilni_image_ptx_module_t* module = NULL;
  kiln_bytes_view_t view = {text, size};
  assert_true(kiln_status_is_ok(kilni_image_ptx_module_create(
      view, name, NULL, kiln_allocator_libc(), &module)));
  kilni_base_file_free(kiln_allocator_libc(), text, size);
  return module;
}

// Loads the module and runs its kernel `recurse`; false if memory failed.
static bool load_and_run(const kiln_host_t* host, kilni_soft_memory_t* memory,
                         const kilni_image_ptx_module_t* module,
                         uint64_t buffer) {
  kilni_soft_code_t* code = NULL;
  kiln_status_t status = kilni_soft_code_create(
      host, module, kilni_soft_lanes_choose("auto"), memory, &code);
  if (!kiln_status_is_ok(status)) {
    kiln_status_code_t why = kiln_status_code(status);
    assert_true(why == KILN_STATUS_OUT_OF_MEMORY ||
                why == KILN_STATUS_DEVICE_OUT_OF_MEMORY);
    assert_null(code);
    kiln_status_free(status);
    return false;
  }
  kilni_soft_launch_t launch = {.entry = kilni_soft_code_find(code, "recurse"),
                                .grid = {2, 1, 1},
                                .block = {48, 1, 1},
                                .params = &buffer};
  kilni_soft_grid_t* grid = NULL;
  status = kilni_soft_grid_create(host, memory, &launch, &grid);
  bool done = kiln_status_is_ok(status);
  if (done) {
    kilni_soft_grid_work(grid);
    kilni_soft_fault_kind_t kind = kilni_soft_grid_fault(grid)->kind;
    assert_true(kind == KILNI_SOFT_FAULT_NONE ||
                kind == KILNI_SOFT_FAULT_OUT_OF_MEMORY);
    done = kind == KILNI_SOFT_FAULT_NONE;
  } else {
    assert_int_equal(kiln_status_code(status), KILN_STATUS_OUT_OF_MEMORY);
    assert_null(grid);
  }
  kiln_status_free(status);
  kilni_soft_grid_destroy(grid);
  kilni_soft_code_destroy(code);
  return done;
}

static void test_no_memory(void** state) {
  (void)state;
  kilni_image_ptx_module_t* module = read_module("calls");
  int64_t failed = 0;
  for (uint64_t n = 1;; n++) {
    static fault_alloc_t watch;
    fault_alloc_init(&watch);
    kiln_host_t host = {.allocator = fault_alloc_allocator(&watch),
                        .worker_count = 1,
                        .process_id = kilni_base_process_id()};
    kilni_soft_memory_t* memory = NULL;
    uint64_t buffer = 0;
    assert_true(
        kiln_status_is_ok(kilni_soft_memory_create(&host, true, &memory)));
    assert_true(kiln_status_is_ok(kilni_soft_memory_alloc(
        memory, 192 * 4, KILNI_SOFT_ALLOC_DEVICE, &buffer)));
    fault_alloc_arm(&watch, n, false);
    bool done = load_and_run(&host, memory, module, buffer);
    fault_alloc_disarm(&watch);
    kilni_soft_memory_destroy(memory);
    fault_alloc_assert_clean(&watch);
    fault_alloc_deinit(&watch);
    if (done) break;
    failed++;
  }
  assert_true(failed > 20);
  kilni_image_ptx_module_release(module);
}

static void test_entries(void** state) {
  (void)state;
  kilni_image_ptx_module_t* module = read_module("dynamic_shared");
  kiln_host_t host = {.allocator = kiln_allocator_libc(),
                      .worker_count = 1,
                      .process_id = kilni_base_process_id()};
  kilni_soft_memory_t* memory = NULL;
  kilni_soft_code_t* code = NULL;
  assert_true(
      kiln_status_is_ok(kilni_soft_memory_create(&host, true, &memory)));
  assert_true(kiln_status_is_ok(kilni_soft_code_create(
      &host, module, kilni_soft_lanes_choose("plain"), memory, &code)));
  kilni_image_ptx_module_release(module);  // the code keeps nothing of it
  assert_int_equal(kilni_soft_code_entry_count(code), 2);
  const kilni_soft_entry_t* entry = kilni_soft_code_find(code, "matmul");
  assert_non_null(entry);
  assert_null(kilni_soft_code_find(code, "matmu"));
  assert_string_equal(entry->name, "matmul");
  assert_int_equal(entry->param_count, 4);
  assert_int_equal(entry->param_bytes, 28);
  assert_int_equal(entry->params[3].offset, 24);
  assert_int_equal(entry->params[3].bytes, 4);
  assert_int_equal(entry->static_shared_bytes, 0);
  assert_int_equal(entry->max_threads, 1024);
  kilni_soft_code_destroy(code);
  kilni_soft_memory_destroy(memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_memory),
      cmocka_unit_test(test_entries),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
