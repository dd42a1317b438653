// SPDX-License-Identifier: Apache-2.0
//
// contract: the driver as a whole, its devices, the current context.
#include <string.h>

#include "base/thread.h"
#include "table/cuda_table.h"
#include "contract.h"

static void before_init(contract_t* t) {
  int count = 0;
  kiln_cu_device_t device;
  kiln_cu_context_t context;
  kiln_cu_deviceptr_t address;
  kiln_cu_module_t module;
  IS(NOT_INITIALIZED, t->cu->cuDeviceGetCount(&count));
  IS(NOT_INITIALIZED, t->cu->cuDeviceGet(&device, 0));
  IS(NOT_INITIALIZED, t->cu->cuDevicePrimaryCtxRetain(&context, 0));
  IS(NOT_INITIALIZED, t->cu->cuMemAlloc(&address, 4));
  IS(NOT_INITIALIZED, t->cu->cuModuleLoadData(&module, contract_ptx));
  int version = 0;
  OK(t->cu->cuDriverGetVersion(&version));
  CHECK(version >= 12000);
  IS(INVALID_VALUE, t->cu->cuInit(1));
  OK(t->cu->cuInit(0));
  OK(t->cu->cuInit(0));
  OK(t->cu->cuDeviceGetCount(&count));
  CHECK(count >= 1);
}

static void version_and_count(contract_t* t) {
  int version = 0;
  int count = 0;
  OK(t->cu->cuDriverGetVersion(&version));
  CHECK(version >= 12000);
  IS(INVALID_VALUE, t->cu->cuDriverGetVersion(NULL));
  OK(t->cu->cuDeviceGetCount(&count));
  CHECK(count >= 1);
  IS(INVALID_VALUE, t->cu->cuDeviceGetCount(NULL));
}

static void error_names(contract_t* t) {
  const char* text = NULL;
  OK(t->cu->cuGetErrorName(KILN_CU_ERROR_ILLEGAL_ADDRESS, &text));
  CHECK(strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
  OK(t->cu->cuGetErrorName(KILN_CU_SUCCESS, &text));
  CHECK(strcmp(text, "CUDA_SUCCESS") == 0);
  OK(t->cu->cuGetErrorString(KILN_CU_ERROR_OUT_OF_MEMORY, &text));
  CHECK(text != NULL && text[0] != '\0');
  IS(INVALID_VALUE, t->cu->cuGetErrorName(123456, &text));
  CHECK(text == NULL);
  IS(INVALID_VALUE, t->cu->cuGetErrorString(123456, &text));
  CHECK(text == NULL);
}

static void devices(contract_t* t) {
  kiln_cu_device_t device;
  int count = 0;
  OK(t->cu->cuDeviceGetCount(&count));
  IS(INVALID_DEVICE, t->cu->cuDeviceGet(&device, count));
  IS(INVALID_DEVICE, t->cu->cuDeviceGet(&device, -1));
  IS(INVALID_VALUE, t->cu->cuDeviceGet(NULL, 0));
  char name[128] = "";
  OK(t->cu->cuDeviceGetName(name, sizeof(name), t->device));
  CHECK(strlen(name) > 3);
  kiln_cu_uuid_t uuid;
  kiln_cu_uuid_t zero;
  memset(&zero, 0, sizeof(zero));
  memset(&uuid, 0, sizeof(uuid));
  OK(t->cu->cuDeviceGetUuid(&uuid, t->device));
  CHECK(memcmp(&uuid, &zero, sizeof(uuid)) != 0);
  size_t bytes = 0;
  OK(t->cu->cuDeviceTotalMem(&bytes, t->device));
  CHECK(bytes >= (size_t)1 << 30);
  char bus[16] = "";
  OK(t->cu->cuDeviceGetPCIBusId(bus, sizeof(bus), t->device));
  CHECK(strlen(bus) == 12);
}

static void attributes(contract_t* t) {
  int value = -1;
  OK(t->cu->cuDeviceGetAttribute(&value, KILN_CU_DEVICE_ATTRIBUTE_WARP_SIZE,
                                 t->device));
  CHECK(value == 32);
  OK(t->cu->cuDeviceGetAttribute(
      &value, KILN_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, t->device));
  CHECK(value == 1024);
  OK(t->cu->cuDeviceGetAttribute(
      &value, KILN_CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, t->device));
  CHECK(value == 1);
  OK(t->cu->cuDeviceGetAttribute(
      &value, KILN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, t->device));
  CHECK(value >= 7);
  IS(INVALID_VALUE, t->cu->cuDeviceGetAttribute(&value, 100000, t->device));
  IS(INVALID_VALUE, t->cu->cuDeviceGetAttribute(
                        NULL, KILN_CU_DEVICE_ATTRIBUTE_WARP_SIZE, t->device));
  IS(INVALID_DEVICE, t->cu->cuDeviceGetAttribute(
                         &value, KILN_CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1000));
}

static void primary_context(contract_t* t) {
  unsigned int flags = 0;
  int active = 0;
  OK(t->cu->cuDevicePrimaryCtxGetState(t->device, &flags, &active));
  CHECK(active == 1);
  kiln_cu_context_t again = NULL;
  OK(t->cu->cuDevicePrimaryCtxRetain(&again, t->device));
  CHECK(again == t->context);
  OK(t->cu->cuDevicePrimaryCtxRelease(t->device));
  OK(t->cu->cuDevicePrimaryCtxGetState(t->device, &flags, &active));
  CHECK(active == 1);
  unsigned int version = 0;
  OK(t->cu->cuCtxGetApiVersion(t->context, &version));
  CHECK(version > 0);
}

static void context_stack(contract_t* t) {
  kiln_cu_context_t context = NULL;
  kiln_cu_device_t device = -1;
  OK(t->cu->cuCtxGetCurrent(&context));
  CHECK(context == t->context);
  OK(t->cu->cuCtxGetDevice(&device));
  CHECK(device == t->device);
  OK(t->cu->cuCtxPushCurrent(t->context));
  OK(t->cu->cuCtxPopCurrent(&context));
  CHECK(context == t->context);
  OK(t->cu->cuCtxGetCurrent(&context));
  CHECK(context == t->context);
  OK(t->cu->cuCtxSetCurrent(NULL));
  OK(t->cu->cuCtxGetCurrent(&context));
  CHECK(context == NULL);
  IS(INVALID_CONTEXT, t->cu->cuCtxGetDevice(&device));
  kiln_cu_deviceptr_t address;
  IS(INVALID_CONTEXT, t->cu->cuMemAlloc(&address, 4));
  IS(INVALID_CONTEXT, t->cu->cuCtxSynchronize());
  IS(INVALID_CONTEXT, t->cu->cuCtxPopCurrent(&context));
  kiln_cu_stream_t stream;
  IS(INVALID_CONTEXT, t->cu->cuStreamCreate(&stream, 0));
  OK(t->cu->cuCtxSetCurrent(t->context));
  OK(t->cu->cuCtxSynchronize());
}

typedef struct other_thread_t {
  const kiln_cuda_table_t* cu;
  kiln_cu_context_t seen;
  kiln_cu_result_t result;
} other_thread_t;

static void look(void* user) {
  other_thread_t* other = user;
  other->result = other->cu->cuCtxGetCurrent(&other->seen);
}

static void current_is_per_thread(contract_t* t) {
  other_thread_t other = {t->cu, t->context, KILN_CU_ERROR_UNKNOWN};
  kilni_base_thread_t thread;
  kiln_status_t status = kilni_base_thread_start(&thread, "look", look, &other);
  CHECK(kiln_status_is_ok(status));
  kilni_base_thread_join(&thread);
  OK(other.result);
  CHECK(other.seen == NULL);
}

static void limits(contract_t* t) {
  size_t before = 0;
  size_t value = 0;
  OK(t->cu->cuCtxGetLimit(&before, KILN_CU_LIMIT_STACK_SIZE));
  CHECK(before > 0);
  OK(t->cu->cuCtxSetLimit(KILN_CU_LIMIT_STACK_SIZE, 4096));
  OK(t->cu->cuCtxGetLimit(&value, KILN_CU_LIMIT_STACK_SIZE));
  CHECK(value >= 4096);
  OK(t->cu->cuCtxSetLimit(KILN_CU_LIMIT_STACK_SIZE, before));
  OK(t->cu->cuCtxGetLimit(&value, KILN_CU_LIMIT_PRINTF_FIFO_SIZE));
  CHECK(value > 0);
  IS_EITHER(UNSUPPORTED_LIMIT, INVALID_VALUE,
            t->cu->cuCtxGetLimit(&value, 1000));
  int least = 0;
  int greatest = 0;
  OK(t->cu->cuCtxGetStreamPriorityRange(&least, &greatest));
  CHECK(greatest <= least);
}

static void proc_address(contract_t* t) {
  void* address = NULL;
  kiln_cu_proc_address_query_t found = 99;
  OK(t->cu->cuGetProcAddress("cuMemAlloc", &address, 12000, 0, &found));
  CHECK(address != NULL);
  CHECK(found == KILN_CU_GET_PROC_ADDRESS_SUCCESS);
  kiln_cu_result_t result =
      t->cu->cuGetProcAddress("cuNoSuchThing", &address, 12000, 0, &found);
  CHECK(result == KILN_CU_SUCCESS || result == KILN_CU_ERROR_NOT_FOUND);
  CHECK(address == NULL);
  CHECK(found == KILN_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

static const contract_case_t kCases[] = {
    {"before_init", before_init, CONTRACT_NO_INIT},
    {"version_and_count", version_and_count, CONTRACT_PLAIN},
    {"error_names", error_names, CONTRACT_PLAIN},
    {"devices", devices, CONTRACT_PLAIN},
    {"attributes", attributes, CONTRACT_PLAIN},
    {"primary_context", primary_context, CONTRACT_PLAIN},
    {"context_stack", context_stack, CONTRACT_PLAIN},
    {"current_is_per_thread", current_is_per_thread, CONTRACT_PLAIN},
    {"limits", limits, CONTRACT_PLAIN},
    {"proc_address", proc_address, CONTRACT_PLAIN},
};
CONTRACT_GROUP(contract_device, kCases);
