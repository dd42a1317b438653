// SPDX-License-Identifier: Apache-2.0
//
// probe: a watch on GPUs that a made-up NVML shows: two of them, one divided,
// with processes and links; then one that knows little, one whose every call
// fails in turn, and none.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fault_alloc.h"
#include "kiln/kiln.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"
#include "table/nvml_table.h"

enum { GPUS = 2, MIG = 0x40, HANDLE = 0x1000, DIVIDED = 1 };

// one-thread
typedef struct world_t {
  fault_alloc_t watch_alloc;
  kiln_allocator_t allocator;
  kiln_nvml_table_t table;
  kiln_runtime_t* runtime;
} world_t;

static unsigned int g_gpus;
static unsigned int g_used;  // MiB

static uintptr_t number_of(kiln_nvml_device_t device) {
  return (uintptr_t)device - HANDLE;
}

static kiln_nvml_result_t see_count(unsigned int* count) {
  *count = g_gpus;
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_handle(unsigned int index,
                                     kiln_nvml_device_t* device) {
  if (index == 7) return KILN_NVML_ERROR_GPU_IS_LOST;
  *device = (kiln_nvml_device_t)(uintptr_t)(HANDLE + index);
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_name(kiln_nvml_device_t device, char* text,
                                   unsigned int space) {
  snprintf(text, space, "model %u", (unsigned)number_of(device));
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_uuid(kiln_nvml_device_t device, char* text,
                                   unsigned int space) {
  snprintf(text, space, "%s-%u", number_of(device) >= MIG ? "MIG" : "GPU",
           (unsigned)number_of(device));
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_pci(kiln_nvml_device_t device,
                                  kiln_nvml_pci_t* pci) {
  memset(pci, 0, sizeof(*pci));
  snprintf(pci->address, sizeof(pci->address), "00000000:%02X:00.0",
           (unsigned)number_of(device) + 1);
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_memory(kiln_nvml_device_t device,
                                     kiln_nvml_memory_t* memory) {
  (void)device;
  memory->total = UINT64_C(1) << 30;
  memory->used = (unsigned long long)g_used << 20;
  memory->free = memory->total - memory->used;
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_no_memory_v2(kiln_nvml_device_t device,
                                           kiln_nvml_memory_v2_t* memory) {
  (void)device;
  (void)memory;
  return KILN_NVML_ERROR_FUNCTION_NOT_FOUND;
}

static kiln_nvml_result_t see_temperature(kiln_nvml_device_t device,
                                          kiln_nvml_temperature_t* now) {
  (void)device;
  now->celsius = -3;
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_mig(kiln_nvml_device_t device, unsigned int* now,
                                  unsigned int* pending) {
  *now = *pending = number_of(device) == DIVIDED;
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_mig_most(kiln_nvml_device_t device,
                                       unsigned int* count) {
  (void)device;
  *count = 7;
  return KILN_NVML_SUCCESS;
}

// Numbers 0 and 3; the others are not there.
static kiln_nvml_result_t see_mig_handle(kiln_nvml_device_t device,
                                         unsigned int index,
                                         kiln_nvml_device_t* mig) {
  (void)device;
  if (index != 0 && index != 3) return KILN_NVML_ERROR_NOT_FOUND;
  *mig = (kiln_nvml_device_t)(uintptr_t)(HANDLE + MIG + index);
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_instance(kiln_nvml_device_t device,
                                       unsigned int* id) {
  *id = (unsigned int)number_of(device) - MIG + 10;
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_attributes(kiln_nvml_device_t device,
                                         kiln_nvml_attributes_t* has) {
  (void)device;
  has->multiprocessors = 16;
  return KILN_NVML_SUCCESS;
}

static void process(kiln_nvml_process_t* out, unsigned int pid,
                    unsigned long long bytes) {
  memset(out, 0, sizeof(*out));
  out->pid = pid;
  out->used_bytes = bytes;
  out->gpu_instance = KILN_NVML_NOT_AVAILABLE_32;
}

static kiln_nvml_result_t see_compute(kiln_nvml_device_t device,
                                      unsigned int* count,
                                      kiln_nvml_process_t* list) {
  *count = 0;
  if (number_of(device) != 0) return KILN_NVML_SUCCESS;
  process(&list[0], 11, 1 << 20);
  process(&list[1], 12, KILN_NVML_NOT_AVAILABLE);
  *count = 2;
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_graphics(kiln_nvml_device_t device,
                                       unsigned int* count,
                                       kiln_nvml_process_t* list) {
  *count = 0;
  if (number_of(device) != 0) return KILN_NVML_SUCCESS;
  process(&list[0], 12, 5);
  *count = 1;
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_process_name(unsigned int pid, char* text,
                                           unsigned int space) {
  snprintf(text, space, "program %u", pid);
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_shares(kiln_nvml_device_t device,
                                     kiln_nvml_process_sample_t* samples,
                                     unsigned int* count,
                                     unsigned long long since) {
  (void)device;
  (void)since;
  memset(samples, 0, 3 * sizeof(*samples));
  samples[0].pid = samples[1].pid = 11;
  samples[0].timestamp = 200;
  samples[0].sm = 60;
  samples[1].timestamp = 100;
  samples[1].sm = 10;
  samples[2].pid = 99;
  *count = 3;
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_link(kiln_nvml_device_t device, unsigned int link,
                                   unsigned int* active) {
  (void)device;
  if (link >= 3) return KILN_NVML_ERROR_INVALID_ARGUMENT;
  *active = link != 1;
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_link_version(kiln_nvml_device_t device,
                                           unsigned int link,
                                           unsigned int* version) {
  (void)device;
  (void)link;
  *version = 4;
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_link_type(kiln_nvml_device_t device,
                                        unsigned int link, unsigned int* type) {
  (void)device;
  *type = link == 0 ? KILN_NVML_NVLINK_DEVICE_TYPE_SWITCH : 255;
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_throttle(kiln_nvml_device_t device,
                                       unsigned long long* reasons) {
  (void)device;
  *reasons = KILN_NVML_CLOCKS_SW_POWER_CAP | KILN_NVML_CLOCKS_GPU_IDLE;
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_ancestor(kiln_nvml_device_t device,
                                       kiln_nvml_device_t other,
                                       unsigned int* level) {
  (void)device;
  (void)other;
  *level = KILN_NVML_TOPOLOGY_NODE;
  return KILN_NVML_SUCCESS;
}

static kiln_nvml_result_t see_peer(kiln_nvml_device_t device,
                                   kiln_nvml_device_t other, unsigned int way,
                                   unsigned int* status) {
  (void)device;
  (void)other;
  (void)way;
  *status = KILN_NVML_P2P_STATUS_OK;
  return KILN_NVML_SUCCESS;
}

static void make_gpus(kiln_nvml_table_t* t) {
  KILNI_NVML_SET(t, nvmlDeviceGetCount, see_count);
  KILNI_NVML_SET(t, nvmlDeviceGetHandleByIndex, see_handle);
  KILNI_NVML_SET(t, nvmlDeviceGetName, see_name);
  KILNI_NVML_SET(t, nvmlDeviceGetUUID, see_uuid);
  KILNI_NVML_SET(t, nvmlDeviceGetPciInfo, see_pci);
  KILNI_NVML_SET(t, nvmlDeviceGetMemoryInfo, see_memory);
  KILNI_NVML_SET(t, nvmlDeviceGetMemoryInfo_v2, see_no_memory_v2);
  KILNI_NVML_SET(t, nvmlDeviceGetTemperatureV, see_temperature);
  KILNI_NVML_SET(t, nvmlDeviceGetMigMode, see_mig);
  KILNI_NVML_SET(t, nvmlDeviceGetMaxMigDeviceCount, see_mig_most);
  KILNI_NVML_SET(t, nvmlDeviceGetMigDeviceHandleByIndex, see_mig_handle);
  KILNI_NVML_SET(t, nvmlDeviceGetGpuInstanceId, see_instance);
  KILNI_NVML_SET(t, nvmlDeviceGetComputeInstanceId, see_instance);
  KILNI_NVML_SET(t, nvmlDeviceGetAttributes, see_attributes);
  KILNI_NVML_SET(t, nvmlDeviceGetComputeRunningProcesses, see_compute);
  KILNI_NVML_SET(t, nvmlDeviceGetGraphicsRunningProcesses, see_graphics);
  KILNI_NVML_SET(t, nvmlSystemGetProcessName, see_process_name);
  KILNI_NVML_SET(t, nvmlDeviceGetProcessUtilization, see_shares);
  KILNI_NVML_SET(t, nvmlDeviceGetNvLinkState, see_link);
  KILNI_NVML_SET(t, nvmlDeviceGetNvLinkVersion, see_link_version);
  KILNI_NVML_SET(t, nvmlDeviceGetNvLinkRemoteDeviceType, see_link_type);
  KILNI_NVML_SET(t, nvmlDeviceGetCurrentClocksThrottleReasons, see_throttle);
  KILNI_NVML_SET(t, nvmlDeviceGetTopologyCommonAncestor, see_ancestor);
  KILNI_NVML_SET(t, nvmlDeviceGetP2PStatus, see_peer);
}

static int setup(void** state) {
  static world_t world;
  memset(&world, 0, sizeof(world));
  fault_alloc_init(&world.watch_alloc);
  world.allocator = fault_alloc_allocator(&world.watch_alloc);
  kilni_table_cuda_null_reset();
  kilni_table_nvml_table_null(&world.table);
  g_gpus = GPUS;
  g_used = 256;
  *state = &world;
  return 0;
}

static int teardown(void** state) {
  world_t* w = *state;
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 0);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 0);
  fault_alloc_assert_clean(&w->watch_alloc);
  fault_alloc_deinit(&w->watch_alloc);
  return 0;
}

static void open_runtime(world_t* w) {
  kiln_runtime_options_t options = kiln_runtime_options_default();
  kilni_runtime_hooks_t hooks = {0};
  options.allocator = &w->allocator;
  hooks.nvml_table = &w->table;
  assert_null(kilni_runtime_create_with(&options, &hooks, &w->runtime));
}

static kiln_watch_t* open_watch(world_t* w) {
  kiln_watch_t* watch = NULL;
  make_gpus(&w->table);
  open_runtime(w);
  assert_null(kiln_runtime_watch(w->runtime, NULL, &watch));
  return watch;
}

static void close_all(world_t* w, kiln_watch_t* watch) {
  kiln_runtime_release(w->runtime);  // the watch keeps it
  kiln_watch_close(watch);
}

static int64_t told(const kiln_watch_t* watch, uint32_t device,
                    uint32_t metric) {
  int64_t value = 0;
  assert_true(kiln_watch_value(watch, device, metric, &value));
  return value;
}

static void test_what_is_seen(void** state) {
  world_t* w = *state;
  kiln_watch_t* watch = open_watch(w);
  int64_t value = 1;
  assert_int_equal(kiln_watch_device_count(watch), 4);
  assert_string_equal(kiln_watch_why(watch), "");
  assert_string_equal(kiln_watch_release(watch), "580.65.06");
  assert_int_equal(kiln_watch_driver_version(watch), 13000);
  const kiln_watch_device_t* d = kiln_watch_device(watch, 0);
  assert_string_equal(d->model, "model 0");
  assert_string_equal(d->uuid, "GPU-0");
  assert_string_equal(d->address, "00000000:01:00.0");
  assert_true(d->parent == KILN_WATCH_NO_PARENT);
  assert_null(kiln_watch_device(watch, 4));
  assert_int_equal(told(watch, 0, KILN_WATCH_MEMORY_USED), 256 << 20);
  assert_int_equal(told(watch, 0, KILN_WATCH_TEMPERATURE), -3);
  assert_int_equal(told(watch, 0, KILN_WATCH_MIG), 0);
  assert_int_equal(told(watch, 1, KILN_WATCH_MIG), 1);
  assert_false(kiln_watch_value(watch, 0, KILN_WATCH_MEMORY_RESERVED, &value));
  assert_int_equal(value, 0);
  assert_false(kiln_watch_value(watch, 0, KILN_WATCH_PCIE_SENT, &value));
  assert_false(kiln_watch_value(watch, 9, 0, &value));
  assert_false(kiln_watch_value(watch, 0, KILN_WATCH_METRICS, &value));
  assert_string_equal(
      kiln_watch_throttle_text(watch, told(watch, 0, KILN_WATCH_THROTTLE)),
      "idle, power-cap");
  assert_string_equal(kiln_watch_throttle_text(watch, 0), "");
  // And again, with what is now.
  g_used = 512;
  assert_null(kiln_watch_sample(watch));
  assert_int_equal(told(watch, 1, KILN_WATCH_MEMORY_USED), 512 << 20);
  close_all(w, watch);
}

static void test_mig(void** state) {
  world_t* w = *state;
  kiln_watch_t* watch = open_watch(w);
  const kiln_watch_device_t* d = kiln_watch_device(watch, 3);
  assert_int_equal(d->parent, 1);
  assert_int_equal(d->index, 3);
  assert_int_equal(d->gpu_instance, 13);
  assert_int_equal(d->compute_instance, 13);
  assert_string_equal(d->uuid, "MIG-67");
  assert_string_equal(d->address, "");
  assert_int_equal(told(watch, 3, KILN_WATCH_MULTIPROCESSORS), 16);
  close_all(w, watch);
}

static void test_processes(void** state) {
  world_t* w = *state;
  kiln_watch_t* watch = open_watch(w);
  assert_int_equal(kiln_watch_device(watch, 0)->process_count, 2);
  const kiln_watch_process_t* p = kiln_watch_process(watch, 0, 0);
  assert_int_equal(p->pid, 11);
  assert_string_equal(p->name, "program 11");
  assert_int_equal(p->kinds, KILN_WATCH_PROCESS_COMPUTE);
  assert_int_equal(p->used_bytes, 1 << 20);
  assert_int_equal(p->percent, 60);  // of the newest sample
  p = kiln_watch_process(watch, 0, 1);
  assert_int_equal(p->kinds,
                   KILN_WATCH_PROCESS_COMPUTE | KILN_WATCH_PROCESS_GRAPHICS);
  assert_true(p->used_bytes == UINT64_MAX);
  assert_int_equal(p->percent, -1);
  assert_null(kiln_watch_process(watch, 0, 2));
  assert_null(kiln_watch_process(watch, 9, 0));
  close_all(w, watch);
}

static void test_links_and_paths(void** state) {
  world_t* w = *state;
  kiln_watch_t* watch = open_watch(w);
  int32_t peer = 0;
  assert_int_equal(kiln_watch_device(watch, 0)->link_count, 3);
  assert_int_equal(told(watch, 0, KILN_WATCH_NVLINKS), 2);
  const kiln_watch_link_t* l = kiln_watch_link(watch, 0, 0);
  assert_int_equal(l->active, 1);
  assert_int_equal(l->version, 4);
  assert_int_equal(l->leads_to, KILN_WATCH_LINK_SWITCH);
  assert_int_equal(kiln_watch_link(watch, 0, 1)->active, 0);
  assert_int_equal(kiln_watch_link(watch, 0, 2)->leads_to,
                   KILN_WATCH_LINK_UNKNOWN);
  assert_null(kiln_watch_link(watch, 0, 3));
  assert_int_equal(kiln_watch_path(watch, 0, 1, &peer), KILN_WATCH_PATH_NODE);
  assert_int_equal(peer, 1);
  assert_int_equal(kiln_watch_path(watch, 0, 0, &peer),
                   KILN_WATCH_PATH_UNKNOWN);
  assert_int_equal(peer, -1);
  assert_string_equal(kiln_watch_path_name(KILN_WATCH_PATH_NODE), "node");
  assert_string_equal(kiln_watch_path_name(99), "?");
  assert_string_equal(kiln_watch_link_name(KILN_WATCH_LINK_CPU), "cpu");
  close_all(w, watch);
}

// A GPU that has gone does not hide the others.
static void test_a_lost_gpu(void** state) {
  world_t* w = *state;
  g_gpus = 9;
  kiln_watch_t* watch = open_watch(w);
  assert_int_equal(kiln_watch_device_count(watch), 8 + 2);
  assert_int_equal(kiln_watch_device(watch, 9)->index, 8);
  close_all(w, watch);
}

static void test_no_gpu(void** state) {
  world_t* w = *state;
  g_gpus = 0;
  kiln_watch_t* watch = open_watch(w);
  assert_int_equal(kiln_watch_device_count(watch), 0);
  assert_string_equal(kiln_watch_why(watch), "NVML shows no GPU");
  assert_true(kiln_watch_fix(watch)[0] != 0);
  // One comes.
  g_gpus = 1;
  assert_null(kiln_watch_sample(watch));
  assert_int_equal(kiln_watch_device_count(watch), 1);
  assert_string_equal(kiln_watch_why(watch), "");
  close_all(w, watch);
}

static void test_no_library(void** state) {
  world_t* w = *state;
  kiln_watch_t* watch = NULL;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  kilni_runtime_hooks_t hooks = {0};
  options.allocator = &w->allocator;
  assert_null(kilni_runtime_create_with(&options, &hooks, &w->runtime));
  assert_null(kiln_runtime_watch(w->runtime, NULL, &watch));
  bool seen = kiln_watch_device_count(watch) > 0;
  assert_int_equal(seen, kiln_watch_why(watch)[0] == 0);
  assert_null(kiln_watch_sample(watch));
  close_all(w, watch);
  kiln_watch_close(NULL);
}

// The null provider: what it does not make up is not known.
static void test_a_gpu_that_tells_little(void** state) {
  world_t* w = *state;
  kiln_watch_t* watch = NULL;
  int64_t value = 0;
  open_runtime(w);
  assert_null(kiln_runtime_watch(w->runtime, NULL, &watch));
  assert_int_equal(kiln_watch_device_count(watch), 1);
  assert_int_equal(kiln_watch_device(watch, 0)->process_count, 0);
  assert_int_equal(kiln_watch_device(watch, 0)->link_count, 0);
  assert_int_equal(told(watch, 0, KILN_WATCH_COMPUTE_MAJOR), 7);
  assert_int_equal(told(watch, 0, KILN_WATCH_MEMORY_TOTAL), 1 << 30);
  (void)kiln_watch_value(watch, 0, KILN_WATCH_POWER, &value);
  close_all(w, watch);
}

static void test_options(void** state) {
  world_t* w = *state;
  kiln_watch_t* watch = (kiln_watch_t*)w;
  kiln_watch_options_t options = kiln_watch_options_default();
  options.pcie_traffic = 7;
  open_runtime(w);
  kiln_status_t status = kiln_runtime_watch(w->runtime, &options, &watch);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  assert_null(watch);
  kiln_status_free(status);
  kiln_runtime_release(w->runtime);
}

static void test_metrics_have_names(void** state) {
  (void)state;
  for (uint32_t i = 0; i < KILN_WATCH_METRICS; i++) {
    assert_non_null(kiln_watch_metric_name(i));
    assert_non_null(kiln_watch_metric_unit(i));
  }
  assert_null(kiln_watch_metric_name(KILN_WATCH_METRICS));
  assert_null(kiln_watch_metric_unit(KILN_WATCH_METRICS));
}

// Every call fails in turn: there is a watch each time, which knows less.
static void test_every_call_fails(void** state) {
  world_t* w = *state;
  uint64_t calls = 0;
  make_gpus(&w->table);
  assert_null(kilni_table_nvml_fault_install(&w->table, &w->table));
  open_runtime(w);
  for (uint64_t nth = 1;; nth++) {
    kiln_watch_t* watch = NULL;
    kilni_table_nvml_fault_arm(&w->table, nth, KILNI_FAULT_ONCE,
                               KILN_NVML_ERROR_UNKNOWN);
    assert_null(kiln_runtime_watch(w->runtime, NULL, &watch));
    assert_int_equal(kiln_watch_device_count(watch) == 0,
                     kiln_watch_why(watch)[0] != 0);
    kiln_watch_close(watch);
    assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 0);
    calls = kilni_table_nvml_fault_disarm(&w->table);
    if (calls < nth) break;
  }
  assert_true(calls > 100);
  kiln_runtime_release(w->runtime);
  kilni_table_nvml_fault_remove(&w->table);
}

static void test_every_allocation_fails(void** state) {
  world_t* w = *state;
  uint64_t nth = 1;
  g_gpus = 6;
  make_gpus(&w->table);
  open_runtime(w);
  for (;; nth++) {
    kiln_watch_t* watch = NULL;
    fault_alloc_arm(&w->watch_alloc, nth, false);
    kiln_status_t status = kiln_runtime_watch(w->runtime, NULL, &watch);
    (void)fault_alloc_disarm(&w->watch_alloc);
    kiln_watch_close(watch);
    if (kiln_status_is_ok(status)) break;
    assert_int_equal(kiln_status_code(status), KILN_STATUS_OUT_OF_MEMORY);
    assert_null(watch);
    assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 0);
  }
  assert_int_equal(nth, 4);  // the object, the list, the list again
  kiln_runtime_release(w->runtime);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_what_is_seen),     TEST(test_mig),
      TEST(test_processes),        TEST(test_links_and_paths),
      TEST(test_a_lost_gpu),       TEST(test_no_gpu),
      TEST(test_no_library),       TEST(test_a_gpu_that_tells_little),
      TEST(test_options),          TEST(test_metrics_have_names),
      TEST(test_every_call_fails), TEST(test_every_allocation_fails),
  };
  return cmocka_run_group_tests_name("probe: watch", tests, NULL, NULL);
}
