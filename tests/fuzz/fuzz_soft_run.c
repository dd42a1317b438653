// SPDX-License-Identifier: Apache-2.0
//
// fuzz: any bytes as PTX text, read, decoded and run on the software device's
// engine with a limit of time: whatever the kernel does, the process stays
// whole and what the kernel took is given back.
//
// The first byte chooses the lane set, the seed and whether the launch is
// cooperative; the rest is the text.
#include <string.h>

#include "base/thread.h"
#include "soft/engine/soft_grid.h"

enum {
  LIMIT_NS = 5000000,
  BUFFER_BYTES = 65536,
  SHARED_MOST = 64 << 10,
  LOCAL_MOST = 64 << 10,
  PARAM_MOST = 4096,
  ENTRIES_MOST = 2
};

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void require(bool condition) {
  if (!condition) __builtin_trap();
}

static void take(kiln_status_t status) {
  bool good = kiln_status_is_ok(status);
  kiln_status_free(status);
  require(good);
}

// Cancels the grid that runs when its time is over. One thread for all of them:
// to start a thread for each takes longer than most kernels.
typedef struct watch_t {
  kilni_base_mutex_t mutex;
  kilni_base_cond_t cond;
  kilni_soft_grid_t* grid;
  uint64_t deadline;
} watch_t;

static void watch(void* user) {
  watch_t* w = user;
  kilni_base_mutex_lock(&w->mutex);
  for (;;) {
    while (w->grid == NULL) kilni_base_cond_wait(&w->cond, &w->mutex);
    uint64_t deadline = w->deadline;
    if (!kilni_base_cond_wait_until(&w->cond, &w->mutex, deadline) &&
        w->grid != NULL && w->deadline == deadline) {
      kilni_soft_grid_cancel(w->grid);
      w->grid = NULL;
    }
  }
}

static watch_t* watch_start(void) {
  static watch_t w;
  static kilni_base_thread_t thread;
  take(kilni_base_mutex_init(&w.mutex));
  take(kilni_base_cond_init(&w.cond));
  take(kilni_base_thread_start(&thread, "watch", watch, &w));
  kilni_base_thread_detach(&thread);
  return &w;
}

static void run_grid(kilni_soft_grid_t* grid) {
  static watch_t* w;
  if (w == NULL) w = watch_start();
  kilni_base_mutex_lock(&w->mutex);
  w->grid = grid;
  w->deadline = kilni_base_time_ns() + LIMIT_NS;
  kilni_base_cond_signal(&w->cond);
  kilni_base_mutex_unlock(&w->mutex);
  kilni_soft_grid_work(grid);
  kilni_base_mutex_lock(&w->mutex);
  w->grid = NULL;
  kilni_base_mutex_unlock(&w->mutex);
}

// Every parameter of 8 bytes is the buffer, what is smaller a small number.
static void fill_params(const kilni_soft_entry_t* entry, uint64_t buffer,
                        uint8_t* params) {
  memset(params, 0, PARAM_MOST);
  for (uint32_t i = 0; i < entry->param_count; i++) {
    uint64_t value = entry->params[i].bytes == 8 ? buffer : 40;
    uint32_t bytes = entry->params[i].bytes < 8 ? entry->params[i].bytes : 8;
    memcpy(params + entry->params[i].offset, &value, bytes);
  }
}

static void run_entry(const kiln_host_t* host, kilni_soft_memory_t* memory,
                      const kilni_soft_entry_t* entry, uint8_t choice) {
  static uint8_t params[PARAM_MOST];
  if (entry->param_bytes > PARAM_MOST ||
      entry->static_shared_bytes > SHARED_MOST ||
      entry->local_bytes > LOCAL_MOST) {
    return;
  }
  uint64_t buffer;
  take(kilni_soft_memory_alloc(memory, BUFFER_BYTES, KILNI_SOFT_ALLOC_DEVICE,
                               &buffer));
  fill_params(entry, buffer, params);
  kilni_soft_launch_t launch = {.entry = entry,
                                .grid = {3, 1, 1},
                                .block = {24, 2, 1},
                                .dynamic_shared_bytes = 256,
                                .stack_bytes = 1024,
                                .cooperative = choice >> 4 & 1,
                                .params = params,
                                .seed = choice >> 2 & 3};
  kilni_soft_grid_t* grid;
  kiln_status_t status = kilni_soft_grid_create(host, memory, &launch, &grid);
  if (kiln_status_is_ok(status)) {
    run_grid(grid);
    require(kilni_soft_grid_fault(grid)->kind <= KILNI_SOFT_FAULT_CANCELLED);
    kilni_soft_grid_destroy(grid);
  }
  kiln_status_free(status);
  take(kilni_soft_memory_free(memory, buffer, KILNI_SOFT_ALLOC_DEVICE));
}

static const kilni_soft_lane_set_t* lanes_of(uint8_t choice) {
  static const char* const names[] = {"plain", "avx2", "avx512", "plain"};
  const kilni_soft_lane_set_t* lanes =
      kilni_soft_lanes_choose(names[choice & 3]);
  return lanes ? lanes : &kilni_soft_lanes_plain;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static kilni_base_env_t env;
  static kiln_host_t host;
  static kilni_soft_memory_t* memory;
  if (size == 0) return 0;
  host.allocator = kiln_allocator_libc();
  host.env = &env;
  host.worker_count = 1;
  host.process_id = kilni_base_process_id();
  if (memory == NULL) take(kilni_soft_memory_create(&host, true, &memory));
  kilni_image_ptx_limits_t limits;
  memset(&limits, 0, sizeof(limits));
  limits.variable_bytes = 1 << 16;
  kilni_image_ptx_module_t* module;
  kiln_status_t status =
      kilni_image_ptx_module_create((kiln_bytes_view_t){data + 1, size - 1},
                                    "fuzz", &limits, host.allocator, &module);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return 0;
  }
  kilni_soft_code_t* code;
  status =
      kilni_soft_code_create(&host, module, lanes_of(data[0]), memory, &code);
  kilni_image_ptx_module_release(module);
  for (uint32_t i = 0; kiln_status_is_ok(status) && i < ENTRIES_MOST &&
                       i < kilni_soft_code_entry_count(code);
       i++) {
    run_entry(&host, memory, kilni_soft_code_entry(code, i), data[0]);
  }
  kiln_status_free(status);
  kilni_soft_code_destroy(code);
  // What kernels took from the heap and never gave back.
  kilni_soft_memory_clear(memory);
  require(kilni_soft_memory_used(memory) == 0);
  return 0;
}
