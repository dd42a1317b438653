// SPDX-License-Identifier: Apache-2.0
//
// test: PTX text run on the software device's engine, without a driver.
#include "soft_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "soft_fault_story.h"

bool soft_kit_way(uint32_t index, soft_kit_way_t* out_way) {
  static const char* const names[] = {"plain", "avx2", "avx512"};
  uint32_t at = 0;
  for (uint32_t n = 0; n < 3; n++) {
    if (!kilni_soft_lanes_choose(names[n])) continue;
    for (uint32_t workers = 1; workers <= 2; workers++) {
      if (at++ != index) continue;
      *out_way = (soft_kit_way_t){names[n], workers, workers == 2 ? 77 : 0};
      return true;
    }
  }
  return false;
}

void soft_kit_open_with(soft_kit_t* kit, const soft_kit_way_t* way,
                        kiln_allocator_t allocator) {
  memset(kit, 0, sizeof(*kit));
  kit->host = (kiln_host_t){.allocator = allocator,
                            .worker_count = way->workers,
                            .process_id = kilni_base_process_id()};
  kit->workers = way->workers;
  kit->seed = way->seed;
  kit->stack_bytes = 1024;
  kit->lanes = kilni_soft_lanes_choose(way->lanes);
  assert_non_null(kit->lanes);
  assert_true(kiln_status_is_ok(
      kilni_soft_memory_create(&kit->host, true, &kit->memory)));
}

void soft_kit_open(soft_kit_t* kit, const soft_kit_way_t* way) {
  soft_kit_open_with(kit, way, kiln_allocator_libc());
}

static void unload(soft_kit_t* kit) {
  kilni_soft_code_destroy(kit->code);
  kilni_image_ptx_module_release(kit->module);
  kit->code = NULL;
  kit->module = NULL;
}

void soft_kit_close(soft_kit_t* kit) {
  unload(kit);
  kilni_soft_memory_destroy(kit->memory);
}

kiln_status_t soft_kit_try(soft_kit_t* kit, const char* ptx) {
  unload(kit);
  kiln_bytes_view_t text = {(const uint8_t*)ptx, strlen(ptx)};
  kiln_status_t status = kilni_image_ptx_module_create(
      text, "test", NULL, kit->host.allocator, &kit->module);
  if (!kiln_status_is_ok(status)) return status;
  return kilni_soft_code_create(&kit->host, kit->module, kit->lanes,
                                kit->memory, &kit->code);
}

void soft_kit_load(soft_kit_t* kit, const char* ptx) {
  kiln_status_t status = soft_kit_try(kit, ptx);
  if (kiln_status_is_ok(status)) return;
  char text[2048];
  kiln_status_format(status, sizeof(text), text, NULL);
  kiln_status_free(status);
  fail_msg("%s", text);
}

uint64_t soft_kit_buffer(soft_kit_t* kit, const void* data, uint64_t bytes) {
  uint64_t address = 0;
  assert_true(kiln_status_is_ok(kilni_soft_memory_alloc(
      kit->memory, bytes, KILNI_SOFT_ALLOC_DEVICE, &address)));
  void* host = kilni_soft_memory_host(kit->memory, address, bytes);
  assert_non_null(host);
  if (data) {
    memcpy(host, data, bytes);
  } else {
    memset(host, 0, bytes);
  }
  return address;
}

void soft_kit_read(soft_kit_t* kit, uint64_t address, void* out,
                   uint64_t bytes) {
  const void* host = kilni_soft_memory_host(kit->memory, address, bytes);
  assert_non_null(host);
  memcpy(out, host, bytes);
}

void soft_kit_global(soft_kit_t* kit, const char* name, uint64_t* out_address,
                     uint64_t* out_bytes) {
  assert_true(kilni_soft_code_global(kit->code, name, out_address, out_bytes));
}

static void take_text(const char* text, size_t size, void* user) {
  soft_kit_t* kit = user;
  if (size > sizeof(kit->text) - 1 - kit->text_size) return;
  memcpy(kit->text + kit->text_size, text, size);
  kit->text_size += size;
  kit->text[kit->text_size] = 0;
}

static void work(void* user) {
  kilni_soft_grid_work(user);
}

typedef struct cancel_t {
  kilni_soft_grid_t* grid;
  uint64_t after_ns;
} cancel_t;

static void cancel_later(void* user) {
  cancel_t* cancel = user;
  kilni_base_mutex_t mutex;
  kilni_base_cond_t cond;
  kiln_status_free(kilni_base_mutex_init(&mutex));
  kiln_status_free(kilni_base_cond_init(&cond));
  kilni_base_mutex_lock(&mutex);
  uint64_t deadline = kilni_base_time_ns() + cancel->after_ns;
  while (kilni_base_cond_wait_until(&cond, &mutex, deadline)) {
  }
  kilni_base_mutex_unlock(&mutex);
  kilni_base_cond_deinit(&cond);
  kilni_base_mutex_deinit(&mutex);
  kilni_soft_grid_cancel(cancel->grid);
}

static void run_workers(soft_kit_t* kit, kilni_soft_grid_t* grid) {
  kilni_base_thread_t threads[SOFT_KIT_WORKERS_MAX];
  memset(threads, 0, sizeof(threads));
  cancel_t cancel = {grid, kit->cancel_after_ns};
  if (kit->cancel_after_ns) {
    assert_true(kiln_status_is_ok(
        kilni_base_thread_start(&threads[0], "cancel", cancel_later, &cancel)));
  }
  for (uint32_t i = 1; i < kit->workers; i++) {
    assert_true(kiln_status_is_ok(
        kilni_base_thread_start(&threads[i], "worker", work, grid)));
  }
  kilni_soft_grid_work(grid);
  for (uint32_t i = 0; i < kit->workers || i < 1; i++) {
    kilni_base_thread_join(&threads[i]);
  }
}

kilni_soft_fault_kind_t soft_kit_launch(soft_kit_t* kit, const char* entry,
                                        const uint32_t grid[3],
                                        const uint32_t block[3],
                                        uint32_t shared, const void* params,
                                        size_t param_bytes) {
  kilni_soft_launch_t launch = {.entry = kilni_soft_code_find(kit->code, entry),
                                .dynamic_shared_bytes = shared,
                                .stack_bytes = kit->stack_bytes,
                                .cooperative = kit->cooperative,
                                .profiled = kit->profiled,
                                .params = params,
                                .seed = kit->seed,
                                .print = take_text,
                                .print_user = kit};
  assert_non_null(launch.entry);
  assert_int_equal(launch.entry->param_bytes, param_bytes);
  memcpy(launch.grid, grid, sizeof(launch.grid));
  memcpy(launch.block, block, sizeof(launch.block));
  kit->text_size = 0;
  kit->text[0] = 0;
  kilni_soft_grid_t* g = NULL;
  assert_true(kiln_status_is_ok(
      kilni_soft_grid_create(&kit->host, kit->memory, &launch, &g)));
  run_workers(kit, g);
  kit->fault = *kilni_soft_grid_fault(g);
  kiln_fault_t told = kiln_fault_default();
  kilni_soft_fault_tell(&kit->fault, &told);
  soft_fault_format(&told, kit->report, sizeof(kit->report));
  kit->executed = kilni_soft_grid_executed(g);
  if (kit->profiled) {
    kilni_soft_profile_sum(kilni_soft_grid_profile(g), &kit->profile);
  }
  kilni_soft_grid_destroy(g);
  return kit->fault.kind;
}

void soft_kit_run(soft_kit_t* kit, const char* entry, uint32_t grid,
                  uint32_t block, uint32_t count, const uint64_t* params) {
  uint32_t g[3] = {grid, 1, 1};
  uint32_t b[3] = {block, 1, 1};
  if (soft_kit_launch(kit, entry, g, b, 0, params, count * 8) !=
      KILNI_SOFT_FAULT_NONE) {
    fail_msg("%s", kit->report);
  }
}

kilni_soft_fault_kind_t soft_kit_words(soft_kit_t* kit, const char* ptx,
                                       uint32_t grid, uint32_t block,
                                       uint32_t* out, uint32_t count,
                                       uint64_t* out_address) {
  soft_kit_load(kit, ptx);
  uint64_t bytes = (uint64_t)count * sizeof(*out);
  uint64_t address = soft_kit_buffer(kit, NULL, bytes);
  const uint32_t g[3] = {grid, 1, 1};
  const uint32_t b[3] = {block, 1, 1};
  kilni_soft_fault_kind_t kind =
      soft_kit_launch(kit, "k", g, b, 0, &address, sizeof(address));
  soft_kit_read(kit, address, out, bytes);
  if (out_address) *out_address = address;
  return kind;
}

void soft_kit_must_words(soft_kit_t* kit, const char* ptx, uint32_t grid,
                         uint32_t block, uint32_t* out, uint32_t count) {
  if (soft_kit_words(kit, ptx, grid, block, out, count, NULL) !=
      KILNI_SOFT_FAULT_NONE) {
    fail_msg("%s", kit->report);
  }
}
