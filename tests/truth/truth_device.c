// SPDX-License-Identifier: Apache-2.0
//
// truth: runs entries on a device through the driver's table.
#include "truth_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "table/nvml_table.h"

enum { ANSWER_BYTES = 1 << 25, THREADS = 256 };

static bool must(kiln_cu_result_t result, const char* what) {
  if (result == KILN_CU_SUCCESS) return true;
  const char* name = kilni_table_cuda_result_name(result);
  printf("%s: %s\n", what, name ? name : "an unknown result");
  return false;
}

// ---- Plans ----

void truth_plan_make(const truth_layout_t* layout, truth_wish_t wish,
                     truth_plan_t* out_plan) {
  const uint32_t blocks = truth_layout_blocks(layout);
  const bool small = layout->coarse <= 1 && layout->fine <= 16;
  memset(out_plan, 0, sizeof(*out_plan));
  for (uint32_t b = 0; b < blocks && b < TRUTH_BLOCKS; b++) {
    uint32_t first, count;
    const bool chosen =
        wish.stride && (b + wish.phase) % wish.stride == wish.stride - 1;
    if (b > 0 && !small && !chosen && wish.stride != 1) continue;
    truth_layout_block(layout, b, &first, &count);
    out_plan->blocks[out_plan->count++] = b;
    out_plan->inputs += count;
  }
}

static truth_place_t place_of(const truth_entry_t* entry, uint32_t source) {
  if (entry->sources[1] == TRUTH_NONE) return TRUTH_ONLY;
  return (truth_place_t)(TRUTH_FIRST + source);
}

uint64_t truth_source(const truth_entry_t* entry, const truth_plan_t* plan,
                      uint32_t source, uint32_t position) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < plan->count; i++) {
    uint32_t first, count;
    truth_layout_block(&entry->layout, plan->blocks[i], &first, &count);
    if (position < at + count) {
      return truth_input(entry->sources[source], place_of(entry, source),
                         first + position - at);
    }
    at += count;
  }
  return 0;
}

// ---- Inputs ----

static void fill(uint8_t* bytes, truth_kind_t kind, truth_place_t place,
                 const truth_layout_t* layout, const truth_plan_t* plan) {
  const uint32_t width = truth_kind_bytes(kind);
  for (uint32_t i = 0; i < plan->count; i++) {
    uint32_t first, count;
    truth_layout_block(layout, plan->blocks[i], &first, &count);
    for (uint32_t k = first; k < first + count; k++, bytes += width) {
      const uint64_t value = truth_input(kind, place, k);
      memcpy(bytes, &value, width);  // little-endian, as the devices are
    }
  }
}

// The array of a source, made when it is first asked for; 0 if it failed.
static kiln_cu_deviceptr_t array_of(truth_device_t* device,
                                    const truth_entry_t* entry, uint32_t source,
                                    const truth_plan_t* plan) {
  const truth_kind_t kind = entry->sources[source];
  const truth_place_t place = place_of(entry, source);
  for (uint32_t i = 0; i < device->array_count; i++) {
    const truth_array_t* a = &device->arrays[i];
    if (a->kind == kind && a->place == place &&
        memcmp(&a->layout, &entry->layout, sizeof(a->layout)) == 0) {
      return a->address;
    }
  }
  if (device->array_count == TRUTH_ARRAYS) {
    printf("more than %d arrays of inputs\n", TRUTH_ARRAYS);
    return 0;
  }
  truth_array_t* a = &device->arrays[device->array_count];
  const size_t bytes = (size_t)plan->inputs * truth_kind_bytes(kind) + 64;
  *a = (truth_array_t){kind, place, entry->layout, 0, NULL};
  if (!must(device->t.cuMemHostAlloc(&a->pinned, bytes, 0), "host memory")) {
    return 0;
  }
  fill(a->pinned, kind, place, &entry->layout, plan);
  if (device->is_soft) {
    if (!must(device->t.cuMemHostGetDevicePointer(&a->address, a->pinned, 0),
              "host memory")) {
      return 0;
    }
  } else if (!must(device->t.cuMemAlloc(&a->address, bytes), "memory") ||
             !must(device->t.cuMemcpyHtoD(a->address, a->pinned, bytes),
                   "copy")) {
    return 0;
  }
  device->array_count++;
  return a->address;
}

// ---- The device ----

static int open_table(truth_device_t* device, const char* lanes) {
  static kilni_base_dynlib_t*
      library;  // never closed: the driver keeps threads
  kiln_status_t status;
  if (device->is_soft) {
    if (lanes && !kilni_soft_lanes_would(lanes)) {
      printf("skipped: this CPU has no lanes %s\n", lanes);
      return 77;
    }
    kilni_soft_options_t options;
    memset(&options, 0, sizeof(options));
    options.struct_size = sizeof(options);
    options.lanes = lanes;
    status = kilni_soft_start(&device->host, &options, &device->t);
  } else {
    status =
        kilni_table_cuda_table_open(&device->host, NULL, &device->t, &library);
  }
  if (kiln_status_is_ok(status)) return 0;
  printf("skipped: %s\n", kiln_status_message(status));
  kiln_status_free(status);
  return device->is_soft ? 1 : 77;
}

static void name_device(truth_device_t* device) {
  char release[32] = "";
  if (device->is_soft) {
    (void)snprintf(device->name, sizeof(device->name), "software device");
    (void)snprintf(device->driver, sizeof(device->driver), "none");
    (void)snprintf(device->lanes, sizeof(device->lanes), "%s",
                   kilni_soft_lanes_name());
    return;
  }
  (void)device->t.cuDeviceGetName(device->name, (int)sizeof(device->name),
                                  device->device);
  kiln_status_free(kilni_table_nvml_release_ask(&device->host, NULL,
                                                sizeof(release), release));
  (void)snprintf(device->driver, sizeof(device->driver), "%s (CUDA %d.%d)",
                 release, device->t.driver_version / 1000,
                 device->t.driver_version % 1000 / 10);
}

static bool make_buffers(truth_device_t* device) {
  kiln_cuda_table_t* t = &device->t;
  for (uint32_t i = 0; i < 2; i++) {
    if (!must(
            t->cuStreamCreate(&device->streams[i], KILN_CU_STREAM_NON_BLOCKING),
            "stream") ||
        !must(t->cuMemHostAlloc(&device->answers[i], ANSWER_BYTES, 0),
              "host memory")) {
      return false;
    }
    if (device->is_soft
            ? !must(t->cuMemHostGetDevicePointer(&device->written[i],
                                                 device->answers[i], 0),
                    "host memory")
            : !must(t->cuMemAlloc(&device->written[i], ANSWER_BYTES),
                    "memory")) {
      return false;
    }
  }
  return true;
}

int truth_device_open(truth_device_t* device, bool is_soft, const char* lanes,
                      truth_wish_t wish) {
  memset(device, 0, sizeof(*device));
  device->host.allocator = kiln_allocator_libc();
  device->host.process_id = kilni_base_process_id();
  device->host.env = &device->env;
  device->is_soft = is_soft;
  device->wish = wish;
  kiln_status_t status =
      kilni_base_env_init(&device->env, device->host.allocator);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return 1;
  }
  const int opened = open_table(device, lanes);
  if (opened != 0) return opened;
  if (device->t.cuInit(0) != KILN_CU_SUCCESS ||
      device->t.cuDeviceGet(&device->device, 0) != KILN_CU_SUCCESS) {
    printf("skipped: the driver has no device\n");
    return 77;
  }
  if (!must(
          device->t.cuDevicePrimaryCtxRetain(&device->context, device->device),
          "context") ||
      !must(device->t.cuCtxSetCurrent(device->context), "context") ||
      !make_buffers(device)) {
    return 1;
  }
  name_device(device);
  return 0;
}

void truth_device_close(truth_device_t* device) {
  kiln_cuda_table_t* t = &device->t;
  (void)t->cuCtxSetCurrent(device->context);
  for (uint32_t i = 0; i < device->array_count; i++) {
    if (!device->is_soft) (void)t->cuMemFree(device->arrays[i].address);
    (void)t->cuMemFreeHost(device->arrays[i].pinned);
  }
  for (uint32_t i = 0; i < 2; i++) {
    if (!device->is_soft) (void)t->cuMemFree(device->written[i]);
    (void)t->cuMemFreeHost(device->answers[i]);
    (void)t->cuStreamDestroy(device->streams[i]);
  }
  (void)t->cuDevicePrimaryCtxRelease(device->device);
  if (device->is_soft) kilni_soft_stop();
  kilni_base_env_deinit(&device->env);
}

// ---- Runs ----

// One entry between its launch and its answers. one-thread
typedef struct flight_t {
  size_t entry;
  bool open;
  truth_plan_t plan;
} flight_t;

static bool launch(truth_device_t* device, const truth_list_t* list,
                   kiln_cu_module_t module, size_t index, uint32_t slot,
                   flight_t* flight) {
  const truth_entry_t* entry = &list->entries[index];
  kiln_cu_function_t function = NULL;
  kiln_cu_deviceptr_t addresses[TRUTH_SOURCES + 1] = {0};
  void* params[TRUTH_SOURCES + 1];
  char name[32];
  flight->entry = index;
  truth_plan_make(&entry->layout, device->wish, &flight->plan);
  const size_t bytes = (size_t)flight->plan.inputs * entry->outs *
                       truth_kind_bytes(entry->result);
  if (bytes > ANSWER_BYTES || flight->plan.inputs % THREADS) {
    printf("%s: %zu bytes of answers\n", entry->name, bytes);
    return false;
  }
  for (uint32_t i = 0; i < TRUTH_SOURCES && entry->sources[i]; i++) {
    addresses[i] = array_of(device, entry, i, &flight->plan);
    if (addresses[i] == 0) return false;
  }
  addresses[TRUTH_SOURCES] = device->written[slot];
  for (uint32_t i = 0; i <= TRUTH_SOURCES; i++) params[i] = &addresses[i];
  (void)snprintf(name, sizeof(name), "t%zu", index);
  kiln_cuda_table_t* t = &device->t;
  if (!must(t->cuModuleGetFunction(&function, module, name), entry->name) ||
      !must(t->cuLaunchKernel(function, flight->plan.inputs / THREADS, 1, 1,
                              THREADS, 1, 1, 0, device->streams[slot], params,
                              NULL),
            entry->name)) {
    return false;
  }
  flight->open = true;
  if (device->is_soft) return true;
  return must(t->cuMemcpyDtoHAsync(device->answers[slot], device->written[slot],
                                   bytes, device->streams[slot]),
              entry->name);
}

static bool land(truth_device_t* device, const truth_list_t* list,
                 uint32_t slot, flight_t* flight, truth_take_t take,
                 void* user) {
  if (!flight->open) return true;
  flight->open = false;
  if (!must(device->t.cuStreamSynchronize(device->streams[slot]),
            list->entries[flight->entry].name)) {
    return false;
  }
  take(user, flight->entry, &flight->plan, device->answers[slot], NULL);
  return true;
}

static bool run_module(truth_device_t* device, const truth_list_t* list,
                       kiln_cu_module_t module, const size_t* which,
                       size_t count, truth_take_t take, void* user) {
  flight_t flights[2];
  memset(flights, 0, sizeof(flights));
  for (size_t i = 0; i < count; i++) {
    const uint32_t slot = i & 1;
    if (!launch(device, list, module, which[i], slot, &flights[slot]) ||
        !land(device, list, slot ^ 1, &flights[slot ^ 1], take, user)) {
      return false;
    }
  }
  const uint32_t last = (uint32_t)(count - 1) & 1;
  return land(device, list, last, &flights[last], take, user);
}

static kiln_cu_result_t load(truth_device_t* device, const char* text,
                             kiln_cu_module_t* out_module, char* log,
                             size_t capacity) {
  kiln_cu_jit_option_t options[] = {KILN_CU_JIT_ERROR_LOG_BUFFER,
                                    KILN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, (void*)(uintptr_t)capacity};
  memset(log, 0, capacity);
  return device->t.cuModuleLoadDataEx(out_module, text, 2, options, values);
}

// A module of several that is refused is halved until the culprit is alone.
static bool run_some(truth_device_t* device, const truth_list_t* list,
                     const size_t* which, size_t count, truth_take_t take,
                     void* user) {
  char log[1024];
  kiln_cu_module_t module = NULL;
  char* text = truth_module_text(list, which, count);
  if (text == NULL) return false;
  const kiln_cu_result_t result = load(device, text, &module, log, sizeof(log));
  free(text);
  if (result != KILN_CU_SUCCESS && count > 1) {
    const size_t half = count / 2;
    return run_some(device, list, which, half, take, user) &&
           run_some(device, list, which + half, count - half, take, user);
  }
  if (result != KILN_CU_SUCCESS) {
    log[sizeof(log) - 1] = '\0';
    take(user, which[0], NULL, NULL,
         log[0] ? log : kilni_table_cuda_result_name(result));
    return true;
  }
  const bool done = run_module(device, list, module, which, count, take, user);
  (void)device->t.cuModuleUnload(module);
  return done;
}

bool truth_device_run(truth_device_t* device, const truth_list_t* list,
                      const size_t* which, size_t count, truth_take_t take,
                      void* user) {
  if (!must(device->t.cuCtxSetCurrent(device->context), "context")) {
    return false;
  }
  for (size_t i = 0; i < count; i += TRUTH_BATCH) {
    const size_t some = count - i < TRUTH_BATCH ? count - i : TRUTH_BATCH;
    if (!run_some(device, list, which + i, some, take, user)) return false;
  }
  return true;
}
