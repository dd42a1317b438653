// SPDX-License-Identifier: Apache-2.0
//
// contract: modules and what is in them.
#include <string.h>

#include "contract.h"
#include "table/cuda_table.h"

static const char kTruncated[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry cut(.param .u64 p) {\n  .reg .b64 %d<2>;\n  ld.par";
static const char kBadLine[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry wrong() {\n  frobnicate.u32 %r1;\n  ret;\n}\n";

static void load_refusals(contract_t* t) {
  kiln_cu_module_t module = NULL;
  IS_EITHER(INVALID_PTX, INVALID_IMAGE,
            t->cu->cuModuleLoadData(&module, "this is no code at all"));
  IS(INVALID_PTX, t->cu->cuModuleLoadData(&module, kTruncated));
  IS(INVALID_PTX, t->cu->cuModuleLoadData(&module, kBadLine));
  IS(UNSUPPORTED_PTX_VERSION,
     t->cu->cuModuleLoadData(&module,
                             ".version 99.0\n.target sm_70\n"
                             ".address_size 64\n"));
  IS(INVALID_VALUE, t->cu->cuModuleLoadData(NULL, contract_ptx));
  CHECK(module == NULL);
}

static void load_log(contract_t* t) {
  kiln_cu_module_t module = NULL;
  char log[4096];
  memset(log, 0, sizeof(log));
  kiln_cu_jit_option_t options[] = {KILN_CU_JIT_ERROR_LOG_BUFFER,
                                    KILN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, (void*)(uintptr_t)sizeof(log)};
  IS(INVALID_PTX,
     t->cu->cuModuleLoadDataEx(&module, kBadLine, 2, options, values));
  CHECK(log[0] != '\0');
  CHECK(memchr(log, '\0', sizeof(log)) != NULL);
  CHECK(strchr(log, '5') != NULL);  // the line
  values[1] = (void*)(uintptr_t)sizeof(log);
  OK(t->cu->cuModuleLoadDataEx(&module, contract_ptx, 2, options, values));
  OK(t->cu->cuModuleUnload(module));
}

static void names(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_function_t function = NULL;
  kiln_cu_module_t owner = NULL;
  OK(t->cu->cuModuleGetFunction(&function, module, "put"));
  OK(t->cu->cuFuncGetModule(&owner, function));
  CHECK(owner == module);
  IS(NOT_FOUND, t->cu->cuModuleGetFunction(&function, module, "absent"));
  IS(INVALID_VALUE, t->cu->cuModuleGetFunction(NULL, module, "put"));
  IS(INVALID_VALUE, t->cu->cuModuleGetFunction(&function, module, NULL));
  OK(t->cu->cuModuleUnload(module));
}

static void globals(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_deviceptr_t address = 0;
  size_t bytes = 0;
  uint32_t value = 0;
  OK(t->cu->cuModuleGetGlobal(&address, &bytes, module, "counter"));
  CHECK(address != 0 && bytes == 4);
  OK(t->cu->cuMemcpyDtoH(&value, address, sizeof(value)));
  CHECK(value == 7);
  OK(contract_one(t, module, "bump", NULL, NULL));
  OK(t->cu->cuMemcpyDtoH(&value, address, sizeof(value)));
  CHECK(value == 8);
  uint8_t zeroes[64];
  memset(zeroes, 1, sizeof(zeroes));
  OK(t->cu->cuModuleGetGlobal(&address, &bytes, module, "zeroes"));
  CHECK(bytes == sizeof(zeroes));
  OK(t->cu->cuMemcpyDtoH(zeroes, address, sizeof(zeroes)));
  for (size_t i = 0; i < sizeof(zeroes); i++) CHECK(zeroes[i] == 0);
  OK(t->cu->cuModuleGetGlobal(&address, NULL, module, "counter"));
  OK(t->cu->cuModuleGetGlobal(NULL, &bytes, module, "counter"));
  IS(NOT_FOUND, t->cu->cuModuleGetGlobal(&address, &bytes, module, "absent"));
  // Two loads of one text are two modules.
  kiln_cu_module_t second = contract_load(t);
  OK(t->cu->cuModuleGetGlobal(&address, &bytes, second, "counter"));
  OK(t->cu->cuMemcpyDtoH(&value, address, sizeof(value)));
  CHECK(value == 7);
  OK(t->cu->cuModuleUnload(second));
  OK(t->cu->cuModuleUnload(module));
}

static void listing(contract_t* t) {
  if (!kilni_table_cuda_has(t->cu, KILNI_CUDA_ROW_cuModuleEnumerateFunctions) ||
      !kilni_table_cuda_has(t->cu, KILNI_CUDA_ROW_cuFuncGetName) ||
      !kilni_table_cuda_has(t->cu, KILNI_CUDA_ROW_cuModuleGetFunctionCount)) {
    return;  // an OPTIONAL row: an older driver
  }
  kiln_cu_module_t module = contract_load(t);
  unsigned int count = 0;
  OK(t->cu->cuModuleGetFunctionCount(&count, module));
  CHECK(count >= 11 && count < 64);
  kiln_cu_function_t functions[64] = {NULL};
  OK(t->cu->cuModuleEnumerateFunctions(functions, count, module));
  bool seen = false;
  for (unsigned int i = 0; i < count; i++) {
    const char* name = NULL;
    OK(t->cu->cuFuncGetName(&name, functions[i]));
    seen = seen || strcmp(name, "slow_put") == 0;
  }
  CHECK(seen);
  OK(t->cu->cuModuleUnload(module));
}

static void parameters(contract_t* t) {
  if (!kilni_table_cuda_has(t->cu, KILNI_CUDA_ROW_cuFuncGetParamInfo)) return;
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_function_t mixed = contract_function(t, module, "mixed");
  static const size_t kOffsets[] = {0, 8, 10, 16};
  static const size_t kBytes[] = {8, 1, 2, 8};
  for (size_t i = 0; i < 4; i++) {
    size_t offset = 99;
    size_t bytes = 99;
    OK(t->cu->cuFuncGetParamInfo(mixed, i, &offset, &bytes));
    CHECK(offset == kOffsets[i] && bytes == kBytes[i]);
  }
  size_t offset = 0;
  size_t bytes = 0;
  IS(INVALID_VALUE, t->cu->cuFuncGetParamInfo(mixed, 4, &offset, &bytes));
  OK(t->cu->cuModuleUnload(module));
}

static void function_attributes(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_function_t put = contract_function(t, module, "put");
  kiln_cu_function_t narrow = contract_function(t, module, "narrow");
  int value = -1;
  OK(t->cu->cuFuncGetAttribute(
      &value, KILN_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, put));
  CHECK(value == 1024);
  OK(t->cu->cuFuncGetAttribute(
      &value, KILN_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, narrow));
  CHECK(value == 64);
  OK(t->cu->cuFuncGetAttribute(&value, KILN_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                               put));
  CHECK(value == 0);
  OK(t->cu->cuFuncGetAttribute(&value, KILN_CU_FUNC_ATTRIBUTE_NUM_REGS, put));
  CHECK(value > 0 && value <= 255);
  OK(t->cu->cuFuncGetAttribute(&value, KILN_CU_FUNC_ATTRIBUTE_PTX_VERSION,
                               put));
  CHECK(value == 70);
  IS(INVALID_VALUE, t->cu->cuFuncGetAttribute(&value, 1000, put));
  int blocks = -1;
  OK(t->cu->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, put, 256, 0));
  CHECK(blocks >= 1 && blocks <= 32);
  IS(INVALID_VALUE,
     t->cu->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, put, 0, 0));
  int grid = 0;
  int block = 0;
  OK(t->cu->cuOccupancyMaxPotentialBlockSize(&grid, &block, put, NULL, 0, 0));
  CHECK(grid >= 1 && block >= 32 && block <= 1024 && block % 32 == 0);
  OK(t->cu->cuModuleUnload(module));
}

static void clusters(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_function_t put = contract_function(t, module, "put");
  int major = 0;
  OK(t->cu->cuDeviceGetAttribute(
      &major, KILN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, t->device));
  if (major >= 9) {
    kiln_cu_launch_attribute_t one = {
        .id = KILN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        .value.cluster = {1, 1, 1}};
    kiln_cu_launch_config_t config = {8, 1, 1, 128, 1, 1, 0, NULL, NULL, 0};
    int most = -1;
    OK(t->cu->cuOccupancyMaxPotentialClusterSize(&most, put, &config));
    CHECK(most >= 1 && most <= 16);
    config.attributes = &one;
    config.attribute_count = 1;
    int at_once = -1;
    OK(t->cu->cuOccupancyMaxActiveClusters(&at_once, put, &config));
    CHECK(at_once >= 1);
    // A cluster of one block is a block.
    int blocks = 0;
    int processors = 0;
    OK(t->cu->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, put, 128,
                                                          0));
    OK(t->cu->cuDeviceGetAttribute(
        &processors, KILN_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, t->device));
    CHECK(at_once <= blocks * processors);
    // As large as there may be: still at least one, or more blocks than one
    // is not taken at all.
    if (most > 1) {
      one.value.cluster.x = (unsigned int)most;
      OK(t->cu->cuOccupancyMaxActiveClusters(&at_once, put, &config));
      CHECK(at_once >= 1);
    }
    one.value.cluster.x = 8 * (unsigned int)most;
    config.grid_x = one.value.cluster.x;
    CHECK(t->cu->cuOccupancyMaxActiveClusters(&at_once, put, &config) !=
              KILN_CU_SUCCESS ||
          at_once == 0);
  }
  OK(t->cu->cuModuleUnload(module));
}

static const contract_case_t kCases[] = {
    {"load_refusals", load_refusals, CONTRACT_PLAIN},
    {"load_log", load_log, CONTRACT_PLAIN},
    {"names", names, CONTRACT_PLAIN},
    {"globals", globals, CONTRACT_PLAIN},
    {"listing", listing, CONTRACT_PLAIN},
    {"parameters", parameters, CONTRACT_PLAIN},
    {"function_attributes", function_attributes, CONTRACT_PLAIN},
    {"clusters", clusters, CONTRACT_PLAIN},
};
CONTRACT_GROUP(contract_module, kCases);
