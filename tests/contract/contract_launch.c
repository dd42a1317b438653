// SPDX-License-Identifier: Apache-2.0
//
// contract: launches: their arguments, their limits, their results.
#include <string.h>

#include "contract.h"
#include "table/cuda_table.h"

static void whole_grid(contract_t* t) {
  enum { BLOCKS = 37, THREADS = 96, COUNT = BLOCKS * THREADS };
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_function_t put = contract_function(t, module, "put");
  kiln_cu_deviceptr_t a = 0;
  static uint32_t back[COUNT + 1];
  uint32_t value = 13;
  OK(t->cu->cuMemAlloc(&a, sizeof(back)));
  OK(t->cu->cuMemsetD8(a, 0, sizeof(back)));
  void* params[] = {&a, &value};
  OK(t->cu->cuLaunchKernel(put, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, params,
                           NULL));
  value = 14;  // arguments are read by the call
  OK(t->cu->cuMemcpyDtoH(back, a, sizeof(back)));
  for (int i = 0; i < COUNT; i++) CHECK(back[i] == 13);
  CHECK(back[COUNT] == 0);
  OK(t->cu->cuMemFree(a));
  OK(t->cu->cuModuleUnload(module));
}

static void argument_forms(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_function_t mixed = contract_function(t, module, "mixed");
  kiln_cu_deviceptr_t a = 0;
  uint8_t b = 200;
  uint16_t c = 60000;
  uint64_t d = 0x100000005ull;
  uint32_t back[3];
  OK(t->cu->cuMemAlloc(&a, sizeof(back)));
  void* params[] = {&a, &b, &c, &d};
  OK(t->cu->cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
  OK(t->cu->cuMemcpyDtoH(back, a, sizeof(back)));
  CHECK(back[0] == 200 && back[1] == 60000 && back[2] == 5);
  uint8_t packed[24];
  memset(packed, 0, sizeof(packed));
  memcpy(packed, &a, 8);
  packed[8] = 3;
  packed[10] = 4;
  packed[16] = 9;
  size_t bytes = sizeof(packed);
  void* extra[] = {KILN_CU_LAUNCH_PARAM_BUFFER_POINTER, packed,
                   KILN_CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   KILN_CU_LAUNCH_PARAM_END};
  OK(t->cu->cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
  OK(t->cu->cuMemcpyDtoH(back, a, sizeof(back)));
  CHECK(back[0] == 3 && back[1] == 4 && back[2] == 9);
  IS(INVALID_VALUE,
     t->cu->cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra));
  // A buffer too short is no case: driver 580 takes it, and reads what it
  // likes.
  IS(INVALID_VALUE,
     t->cu->cuLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
  OK(t->cu->cuMemFree(a));
  OK(t->cu->cuModuleUnload(module));
}

static void limits_of_shape(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_function_t bump = contract_function(t, module, "bump");
  static const unsigned int kBad[][6] = {
      {0, 1, 1, 1, 1, 1},    {1, 0, 1, 1, 1, 1},     {1, 1, 0, 1, 1, 1},
      {1, 1, 1, 0, 1, 1},    {1, 1, 1, 1, 0, 1},     {1, 1, 1, 1, 1, 0},
      {1, 1, 1, 1025, 1, 1}, {1, 1, 1, 1, 1025, 1},  {1, 1, 1, 1, 1, 65},
      {1, 1, 1, 32, 32, 2},  {1, 65536, 1, 1, 1, 1}, {1, 1, 65536, 1, 1, 1},
  };
  for (size_t i = 0; i < sizeof(kBad) / sizeof(*kBad); i++) {
    const unsigned int* s = kBad[i];
    IS(INVALID_VALUE, t->cu->cuLaunchKernel(bump, s[0], s[1], s[2], s[3], s[4],
                                            s[5], 0, NULL, NULL, NULL));
  }
  kiln_cu_function_t narrow = contract_function(t, module, "narrow");
  IS_EITHER(
      INVALID_VALUE, LAUNCH_OUT_OF_RESOURCES,
      t->cu->cuLaunchKernel(narrow, 1, 1, 1, 65, 1, 1, 0, NULL, NULL, NULL));
  OK(t->cu->cuLaunchKernel(narrow, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL));
  // A refused launch leaves the context well.
  OK(t->cu->cuCtxSynchronize());
  IS_EITHER(INVALID_HANDLE, INVALID_VALUE,
            t->cu->cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
  OK(t->cu->cuModuleUnload(module));
}

static void dynamic_shared(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_function_t shared = contract_function(t, module, "shared");
  kiln_cu_deviceptr_t a = 0;
  uint32_t offset = (48 << 10) - 4;
  uint32_t back = 0;
  OK(t->cu->cuMemAlloc(&a, 4));
  OK(t->cu->cuMemsetD32(a, 0, 1));
  void* params[] = {&a, &offset};
  OK(t->cu->cuLaunchKernel(shared, 1, 1, 1, 1, 1, 1, 48 << 10, NULL, params,
                           NULL));
  OK(t->cu->cuMemcpyDtoH(&back, a, 4));
  CHECK(back == 77);
  IS(INVALID_VALUE, t->cu->cuLaunchKernel(shared, 1, 1, 1, 1, 1, 1, 64 << 10,
                                          NULL, params, NULL));
  OK(t->cu->cuFuncSetAttribute(
      shared, KILN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10));
  OK(t->cu->cuMemsetD32(a, 0, 1));
  offset = (64 << 10) - 4;
  OK(t->cu->cuLaunchKernel(shared, 1, 1, 1, 1, 1, 1, 64 << 10, NULL, params,
                           NULL));
  OK(t->cu->cuMemcpyDtoH(&back, a, 4));
  CHECK(back == 77);
  IS(INVALID_VALUE,
     t->cu->cuFuncSetAttribute(
         shared, KILN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
         16 << 20));
  OK(t->cu->cuMemFree(a));
  OK(t->cu->cuModuleUnload(module));
}

static void launch_ex(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_function_t put = contract_function(t, module, "put");
  kiln_cu_deviceptr_t a = 0;
  uint32_t value = 3;
  uint32_t back[32];
  OK(t->cu->cuMemAlloc(&a, sizeof(back)));
  void* params[] = {&a, &value};
  kiln_cu_launch_attribute_t attributes[1];
  memset(attributes, 0, sizeof(attributes));
  attributes[0].id = KILN_CU_LAUNCH_ATTRIBUTE_IGNORE;
  kiln_cu_launch_config_t config = {.grid_x = 2,
                                    .grid_y = 1,
                                    .grid_z = 1,
                                    .block_x = 16,
                                    .block_y = 1,
                                    .block_z = 1,
                                    .attributes = attributes,
                                    .attribute_count = 1};
  OK(t->cu->cuLaunchKernelEx(&config, put, params, NULL));
  OK(t->cu->cuMemcpyDtoH(back, a, sizeof(back)));
  for (int i = 0; i < 32; i++) CHECK(back[i] == 3);
  config.grid_x = 0;
  IS(INVALID_VALUE, t->cu->cuLaunchKernelEx(&config, put, params, NULL));
  OK(t->cu->cuMemFree(a));
  OK(t->cu->cuModuleUnload(module));
}

// Launches `put` with one attribute, and looks for what it wrote.
static kiln_cu_result_t put_with(contract_t* t, kiln_cu_function_t put,
                                 const kiln_cu_launch_attribute_t* attributes,
                                 unsigned int count) {
  enum { BLOCKS = 4, THREADS = 32 };
  static uint32_t value;
  uint32_t back[BLOCKS * THREADS];
  kiln_cu_deviceptr_t a = 0;
  value++;
  OK(t->cu->cuMemAlloc(&a, sizeof(back)));
  void* params[] = {&a, &value};
  kiln_cu_launch_attribute_t list[4];
  memcpy(list, attributes, count * sizeof(*list));
  kiln_cu_launch_config_t config = {.grid_x = BLOCKS,
                                    .grid_y = 1,
                                    .grid_z = 1,
                                    .block_x = THREADS,
                                    .block_y = 1,
                                    .block_z = 1,
                                    .attributes = list,
                                    .attribute_count = count};
  kiln_cu_result_t result = t->cu->cuLaunchKernelEx(&config, put, params, NULL);
  if (result == KILN_CU_SUCCESS) {
    OK(t->cu->cuMemcpyDtoH(back, a, sizeof(back)));
    for (int i = 0; i < BLOCKS * THREADS; i++) CHECK(back[i] == value);
  }
  OK(t->cu->cuMemFree(a));
  return result;
}

static kiln_cu_launch_attribute_t attribute(kiln_cu_launch_attribute_id_t id) {
  kiln_cu_launch_attribute_t made;
  memset(&made, 0, sizeof(made));
  made.id = id;
  return made;
}
#define ATTRIBUTE(name) attribute(KILN_CU_LAUNCH_ATTRIBUTE_##name)

static int driver_version(contract_t* t) {
  int version = 0;
  OK(t->cu->cuDriverGetVersion(&version));
  return version;
}

static int device_has(contract_t* t, kiln_cu_device_attribute_t id) {
  int value = 0;
  OK(t->cu->cuDeviceGetAttribute(&value, id, t->device));
  return value;
}

// What changes no result is taken and changes none.
static void launch_hints(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_function_t put = contract_function(t, module, "put");
  int version = driver_version(t);
  kiln_cu_launch_attribute_t a = ATTRIBUTE(PRIORITY);
  OK(put_with(t, put, &a, 1));
  if (device_has(t, KILN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 9) {
    a = ATTRIBUTE(PROGRAMMATIC_STREAM_SERIALIZATION);
    a.value.programmatic_serialization = 1;
    OK(put_with(t, put, &a, 1));
  }
  if (device_has(t, KILN_CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT) >= 1) {
    a = ATTRIBUTE(MEM_SYNC_DOMAIN);
    OK(put_with(t, put, &a, 1));
    a.value.sync_domain = KILN_CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    OK(put_with(t, put, &a, 1));
    a = ATTRIBUTE(MEM_SYNC_DOMAIN_MAP);
    OK(put_with(t, put, &a, 1));
  }
  if (device_has(t, KILN_CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE) >
      0) {
    kiln_cu_deviceptr_t window = 0;
    OK(t->cu->cuMemAlloc(&window, 4096));
    a = ATTRIBUTE(ACCESS_POLICY_WINDOW);
    a.value.window.address = (void*)(uintptr_t)window;
    a.value.window.bytes = 4096;
    a.value.window.hit_ratio = 1;
    a.value.window.hit = KILN_CU_ACCESS_PROPERTY_PERSISTING;
    a.value.window.miss = KILN_CU_ACCESS_PROPERTY_STREAMING;
    OK(put_with(t, put, &a, 1));
    OK(t->cu->cuMemFree(window));
  }
  if (version >= 12050) {
    a = ATTRIBUTE(PREFERRED_SHARED_MEMORY_CARVEOUT);
    a.value.carveout = 50;
    OK(put_with(t, put, &a, 1));
  }
  if (version >= 13000) {
    a = ATTRIBUTE(NVLINK_UTIL_CENTRIC_SCHEDULING);
    a.value.nvlink_centric = 1;
    OK(put_with(t, put, &a, 1));
  }
  OK(t->cu->cuModuleUnload(module));
}

static void launch_events(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_function_t put = contract_function(t, module, "put");
  kiln_cu_event_t event = NULL;
  unsigned int count = 0;
  kiln_cu_launch_attribute_t list[2];
  OK(t->cu->cuEventCreate(&event, KILN_CU_EVENT_DISABLE_TIMING));
  if (driver_version(t) >= 12030) {
    list[count] = ATTRIBUTE(LAUNCH_COMPLETION_EVENT);
    list[count++].value.completion_event.event = event;
    OK(put_with(t, put, list, count));
    OK(t->cu->cuEventSynchronize(event));
    OK(t->cu->cuEventQuery(event));
  }
  if (device_has(t, KILN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 9) {
    list[0] = ATTRIBUTE(PROGRAMMATIC_EVENT);
    list[0].value.programmatic_event.event = event;
    list[0].value.programmatic_event.trigger_at_block_start = 1;
    OK(put_with(t, put, list, 1));
    OK(t->cu->cuEventSynchronize(event));
  }
  OK(t->cu->cuEventDestroy(event));
  OK(t->cu->cuModuleUnload(module));
}

static void launch_cooperative(contract_t* t) {
  if (device_has(t, KILN_CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) == 0) return;
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_function_t put = contract_function(t, module, "put");
  kiln_cu_deviceptr_t a = 0;
  uint32_t value = 1;
  int blocks = 0;
  kiln_cu_launch_attribute_t one = ATTRIBUTE(COOPERATIVE);
  one.value.cooperative = 1;
  OK(put_with(t, put, &one, 1));
  OK(t->cu->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, put, 1024, 0));
  unsigned int most =
      (unsigned int)(blocks *
                     device_has(t,
                                KILN_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  OK(t->cu->cuMemAlloc(&a, (size_t)(most + 1) * 4096));
  void* params[] = {&a, &value};
  kiln_cu_launch_config_t config = {.grid_x = most,
                                    .grid_y = 1,
                                    .grid_z = 1,
                                    .block_x = 1024,
                                    .block_y = 1,
                                    .block_z = 1,
                                    .attributes = &one,
                                    .attribute_count = 1};
  OK(t->cu->cuLaunchKernelEx(&config, put, params, NULL));
  OK(t->cu->cuCtxSynchronize());
  config.grid_x = most + 1;
  IS(COOPERATIVE_LAUNCH_TOO_LARGE,
     t->cu->cuLaunchKernelEx(&config, put, params, NULL));
  OK(t->cu->cuCtxSynchronize());
  OK(t->cu->cuMemFree(a));
  OK(t->cu->cuModuleUnload(module));
}

// Outside of a capture it is refused, by any number.
static void launch_updatable_node(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_function_t put = contract_function(t, module, "put");
  if (driver_version(t) >= 12040) {
    kiln_cu_launch_attribute_t a = ATTRIBUTE(DEVICE_UPDATABLE_KERNEL_NODE);
    a.value.cooperative = 1;  // the first word: on
    CHECK(put_with(t, put, &a, 1) != KILN_CU_SUCCESS);
    OK(t->cu->cuCtxSynchronize());
  }
  OK(t->cu->cuModuleUnload(module));
}

static const contract_case_t kCases[] = {
    {"whole_grid", whole_grid, CONTRACT_PLAIN},
    {"argument_forms", argument_forms, CONTRACT_PLAIN},
    {"limits_of_shape", limits_of_shape, CONTRACT_PLAIN},
    {"dynamic_shared", dynamic_shared, CONTRACT_PLAIN},
    {"launch_ex", launch_ex, CONTRACT_PLAIN},
    {"launch_hints", launch_hints, CONTRACT_PLAIN},
    {"launch_events", launch_events, CONTRACT_PLAIN},
    {"launch_cooperative", launch_cooperative, CONTRACT_PLAIN},
    {"launch_updatable_node", launch_updatable_node, CONTRACT_PLAIN},
};
CONTRACT_GROUP(contract_launch, kCases);
