// SPDX-License-Identifier: Apache-2.0
//
// support: an open device over the null provider, watched, and what fails on
// the way to one.
#include "device_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fault_calls.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"

static void count_line(kiln_log_level_t level, const char* module,
                       const char* line, void* user) {
  device_world_t* world = user;
  (void)level;
  (void)module;
  if (world->log_word != NULL && strstr(line, world->log_word) != NULL) {
    world->log_lines++;
  }
}

void device_world_begin(device_world_t* world) {
  memset(world, 0, sizeof(*world));
  fault_alloc_init(&world->watch);
  world->allocator = fault_alloc_allocator(&world->watch);
  kilni_table_cuda_null_reset();
  kilni_table_cuda_table_null(&world->table);
}

void device_world_open(device_world_t* world, const char* name) {
  const kiln_log_sink_t log = {count_line, world, KILN_LOG_WARNING, 0};
  kiln_runtime_options_t options = kiln_runtime_options_default();
  kilni_runtime_hooks_t hooks = {0};
  options.allocator = &world->allocator;
  if (world->log_word != NULL) options.log = &log;
  hooks.cuda_table = &world->table;
  assert_null(kilni_runtime_create_with(&options, &hooks, &world->runtime));
  assert_null(kiln_runtime_open_device(world->runtime, name, &world->device));
}

void device_world_open_stream(device_world_t* world, const char* name) {
  device_world_open(world, name);
  assert_null(kiln_stream_create(world->device, NULL, &world->stream));
}

void device_world_close(device_world_t* world) {
  kiln_stream_release(world->stream);
  kiln_device_release(world->device);
  kiln_runtime_release(world->runtime);
  world->stream = NULL;
  world->device = NULL;
  world->runtime = NULL;
}

void device_world_end(device_world_t* world) {
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 0);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 0);
  fault_alloc_assert_clean(&world->watch);
  fault_alloc_deinit(&world->watch);
}

// ---- Sweeps ----

// What a sweep runs. thread-compatible
typedef struct sweep_t {
  device_sweep_body_t body;
  kiln_cuda_table_t table;
} sweep_t;

static kiln_status_t run(const sweep_t* sweep, const kiln_cuda_table_t* table,
                         const kiln_allocator_t* allocator) {
  kiln_runtime_options_t options = kiln_runtime_options_default();
  kilni_runtime_hooks_t hooks = {0};
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* device = NULL;
  options.allocator = allocator;
  hooks.cuda_table = table;
  kiln_status_t status = kilni_runtime_create_with(&options, &hooks, &runtime);
  if (status == NULL) {
    status = kiln_runtime_open_device(runtime, "cuda:0", &device);
  }
  if (status == NULL) status = sweep->body(device);
  kiln_device_release(device);
  kiln_runtime_release(runtime);
  return status;
}

static kiln_status_t with_calls(const kiln_cuda_table_t* table, void* user) {
  kiln_allocator_t allocator = kiln_allocator_libc();
  return run(user, table, &allocator);
}

static kiln_status_t with_allocations(kiln_allocator_t allocator, void* user) {
  const sweep_t* sweep = user;
  return run(sweep, &sweep->table, &allocator);
}

void device_sweep_calls(device_sweep_body_t body, kiln_cu_result_t result,
                        uint64_t least) {
  static sweep_t sweep;
  sweep.body = body;
  kilni_table_cuda_null_reset();
  uint64_t points =
      fault_run_calls(with_calls, &sweep, result, FAULT_RUN_MAY_PASS);
  print_message("%llu calls\n", (unsigned long long)points);
  assert_true(points > least);
}

void device_sweep_allocations(device_sweep_body_t body, uint64_t least) {
  static sweep_t sweep;
  sweep.body = body;
  kilni_table_cuda_null_reset();
  kilni_table_cuda_table_null(&sweep.table);
  uint64_t points =
      fault_run_allocations(with_allocations, &sweep, FAULT_RUN_MAY_PASS);
  print_message("%llu allocations\n", (unsigned long long)points);
  assert_true(points > least);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 0);
}
