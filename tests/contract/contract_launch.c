// SPDX-License-Identifier: Apache-2.0
//
// contract: launches: their arguments, their limits, their results.
#include <string.h>

#include "contract.h"

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
  for (int i = 0; i < COUNT; ++i) CHECK(back[i] == 13);
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
  for (size_t i = 0; i < sizeof(kBad) / sizeof(*kBad); ++i) {
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
  for (int i = 0; i < 32; ++i) CHECK(back[i] == 3);
  config.grid_x = 0;
  IS(INVALID_VALUE, t->cu->cuLaunchKernelEx(&config, put, params, NULL));
  OK(t->cu->cuMemFree(a));
  OK(t->cu->cuModuleUnload(module));
}

static const contract_case_t kCases[] = {
    {"whole_grid", whole_grid, CONTRACT_PLAIN},
    {"argument_forms", argument_forms, CONTRACT_PLAIN},
    {"limits_of_shape", limits_of_shape, CONTRACT_PLAIN},
    {"dynamic_shared", dynamic_shared, CONTRACT_PLAIN},
    {"launch_ex", launch_ex, CONTRACT_PLAIN},
};
CONTRACT_GROUP(contract_launch, kCases);
