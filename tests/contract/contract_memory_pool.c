// SPDX-License-Identifier: Apache-2.0
//
// contract: memory pools, and managed memory.
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <unistd.h>

#include "contract.h"
#include "table/cuda_table.h"

#define MIB (1ull << 20)

static kiln_cu_mempool_props_t device_pool(const contract_t* t) {
  kiln_cu_mempool_props_t props;
  memset(&props, 0, sizeof(props));
  props.allocation = KILN_CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = KILN_CU_MEM_LOCATION_TYPE_DEVICE;
  props.location.id = t->device;
  return props;
}

static uint64_t number(contract_t* t, kiln_cu_mempool_t pool,
                       kiln_cu_mempool_attribute_t attribute) {
  uint64_t value = ~0ull;
  OK(t->cu->cuMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

// Asks only what needs no answer, for the null provider too.
static void pool_life(contract_t* t) {
  kiln_cu_mempool_props_t props = device_pool(t);
  kiln_cu_mempool_t a = NULL;
  kiln_cu_mempool_t b = NULL;
  OK(t->cu->cuMemPoolCreate(&a, &props));
  OK(t->cu->cuMemPoolCreate(&b, &props));
  CHECK(a != NULL && b != NULL && a != b);
  OK(t->cu->cuMemPoolDestroy(a));
  OK(t->cu->cuMemPoolDestroy(b));
}

static void pool_arguments(contract_t* t) {
  kiln_cu_mempool_props_t props = device_pool(t);
  kiln_cu_mempool_t pool = NULL;
  IS(INVALID_VALUE, t->cu->cuMemPoolCreate(&pool, NULL));
  IS(INVALID_VALUE, t->cu->cuMemPoolCreate(NULL, &props));
  props.allocation = 0;
  IS(INVALID_VALUE, t->cu->cuMemPoolCreate(&pool, &props));
  props = device_pool(t);
  OK(t->cu->cuMemPoolCreate(&pool, &props));
  uint64_t value = 4096;
  IS(INVALID_VALUE, t->cu->cuMemPoolSetAttribute(
                        pool, KILN_CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
  IS(INVALID_VALUE, t->cu->cuMemPoolSetAttribute(
                        pool, KILN_CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
  IS(INVALID_VALUE, t->cu->cuMemPoolGetAttribute(pool, 999, &value));
  OK(t->cu->cuMemPoolDestroy(pool));
}

static void pool_numbers(contract_t* t) {
  kiln_cu_mempool_props_t props = device_pool(t);
  kiln_cu_mempool_t pool = NULL;
  kiln_cu_stream_t stream = NULL;
  kiln_cu_deviceptr_t a = 0;
  kiln_cu_deviceptr_t b = 0;
  uint64_t keep = 64 * MIB;
  OK(t->cu->cuMemPoolCreate(&pool, &props));
  OK(t->cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  CHECK(number(t, pool, KILN_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == 0);
  OK(t->cu->cuMemPoolSetAttribute(pool, KILN_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                                  &keep));
  CHECK(number(t, pool, KILN_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == keep);
  OK(t->cu->cuMemAllocFromPoolAsync(&a, 3 * MIB, pool, stream));
  OK(t->cu->cuMemAllocFromPoolAsync(&b, 5 * MIB, pool, stream));
  CHECK(a != 0 && b != 0 && a != b);
  CHECK(number(t, pool, KILN_CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= 8 * MIB);
  CHECK(number(t, pool, KILN_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 8 * MIB);
  OK(t->cu->cuMemFreeAsync(a, stream));
  OK(t->cu->cuMemFreeAsync(b, stream));
  OK(t->cu->cuStreamSynchronize(stream));
  CHECK(number(t, pool, KILN_CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
  CHECK(number(t, pool, KILN_CU_MEMPOOL_ATTR_USED_MEM_HIGH) >= 8 * MIB);
  // Below the threshold it is kept, until it is given back on request.
  CHECK(number(t, pool, KILN_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 8 * MIB);
  OK(t->cu->cuMemPoolTrimTo(pool, 0));
  CHECK(number(t, pool, KILN_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0);
  CHECK(number(t, pool, KILN_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) >= 8 * MIB);
  uint64_t zero = 0;
  OK(t->cu->cuMemPoolSetAttribute(pool, KILN_CU_MEMPOOL_ATTR_USED_MEM_HIGH,
                                  &zero));
  OK(t->cu->cuMemPoolSetAttribute(pool, KILN_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
                                  &zero));
  CHECK(number(t, pool, KILN_CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 0);
  CHECK(number(t, pool, KILN_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == 0);
  OK(t->cu->cuStreamDestroy(stream));
  OK(t->cu->cuMemPoolDestroy(pool));
}

// What is above the threshold goes at a synchronisation.
static void pool_threshold(contract_t* t) {
  kiln_cu_mempool_props_t props = device_pool(t);
  kiln_cu_mempool_t pool = NULL;
  kiln_cu_stream_t stream = NULL;
  kiln_cu_deviceptr_t a = 0;
  OK(t->cu->cuMemPoolCreate(&pool, &props));
  OK(t->cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(t->cu->cuMemAllocFromPoolAsync(&a, 8 * MIB, pool, stream));
  OK(t->cu->cuMemFreeAsync(a, stream));
  OK(t->cu->cuStreamSynchronize(stream));
  CHECK(number(t, pool, KILN_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0);
  OK(t->cu->cuStreamDestroy(stream));
  OK(t->cu->cuMemPoolDestroy(pool));
}

// Memory of a pool is memory like any other, and outlives its pool's handle.
static void pool_memory(contract_t* t) {
  kiln_cu_mempool_props_t props = device_pool(t);
  kiln_cu_mempool_t pool = NULL;
  kiln_cu_stream_t stream = NULL;
  kiln_cu_deviceptr_t a = 0;
  uint32_t back[4] = {0};
  int ordinal = -1;
  OK(t->cu->cuMemPoolCreate(&pool, &props));
  OK(t->cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(t->cu->cuMemAllocFromPoolAsync(&a, 4096, pool, stream));
  CHECK(a % 256 == 0);
  OK(t->cu->cuMemsetD32Async(a, 7, 4, stream));
  OK(t->cu->cuMemcpyDtoHAsync(back, a, sizeof(back), stream));
  OK(t->cu->cuStreamSynchronize(stream));
  CHECK(back[0] == 7 && back[3] == 7);
  OK(t->cu->cuPointerGetAttribute(&ordinal,
                                  KILN_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a));
  CHECK(ordinal == t->device);
  kiln_cu_mempool_t of = NULL;
  OK(t->cu->cuPointerGetAttribute(&of, KILN_CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                                  a));
  CHECK(of == pool);
  OK(t->cu->cuMemPoolDestroy(pool));
  OK(t->cu->cuMemsetD32Async(a, 8, 4, stream));
  OK(t->cu->cuMemcpyDtoHAsync(back, a, sizeof(back), stream));
  OK(t->cu->cuMemFreeAsync(a, stream));
  OK(t->cu->cuStreamSynchronize(stream));
  CHECK(back[0] == 8);
  OK(t->cu->cuStreamDestroy(stream));
}

// What a stream allocates while it is captured is a graph's, in the numbers
// too; what the same call gives otherwise is the pool's.
static void pool_and_graphs(contract_t* t) {
  kiln_cu_mempool_props_t props = device_pool(t);
  kiln_cu_mempool_t pool = NULL;
  kiln_cu_stream_t stream = NULL;
  kiln_cu_graph_t graph = NULL;
  kiln_cu_graph_instantiate_t how = {0, NULL, NULL, 0};
  kiln_cu_graph_exec_t exec = NULL;
  kiln_cu_deviceptr_t a = 0;
  kiln_cu_deviceptr_t b = 0;
  uint64_t before = 0;
  uint64_t during = 0;
  const kiln_cu_graph_mem_attribute_t used =
      KILN_CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT;
  OK(t->cu->cuMemPoolCreate(&pool, &props));
  OK(t->cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(t->cu->cuDeviceGetGraphMemAttribute(t->device, used, &before));
  OK(t->cu->cuStreamBeginCapture(stream, KILN_CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(t->cu->cuMemAllocFromPoolAsync(&a, MIB, pool, stream));
  CHECK(a != 0);
  OK(t->cu->cuMemsetD8Async(a, 1, MIB, stream));
  OK(t->cu->cuStreamEndCapture(stream, &graph));
  OK(t->cu->cuGraphInstantiateWithParams(&exec, graph, &how));
  OK(t->cu->cuGraphLaunch(exec, stream));
  OK(t->cu->cuMemAllocFromPoolAsync(&b, 2 * MIB, pool, stream));
  OK(t->cu->cuStreamSynchronize(stream));
  const uint64_t of_pool =
      number(t, pool, KILN_CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
  CHECK(of_pool >= 2 * MIB && of_pool < 3 * MIB);
  OK(t->cu->cuDeviceGetGraphMemAttribute(t->device, used, &during));
  CHECK(during >= before + MIB);
  OK(t->cu->cuMemFreeAsync(a, stream));
  OK(t->cu->cuMemFreeAsync(b, stream));
  OK(t->cu->cuStreamSynchronize(stream));
  CHECK(number(t, pool, KILN_CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
  OK(t->cu->cuGraphExecDestroy(exec));
  OK(t->cu->cuGraphDestroy(graph));
  OK(t->cu->cuDeviceGraphMemTrim(t->device));
  OK(t->cu->cuStreamDestroy(stream));
  OK(t->cu->cuMemPoolDestroy(pool));
}

// A pool may have a limit (CUDA 12.2).
static void pool_limit(contract_t* t) {
  kiln_cu_mempool_props_t props = device_pool(t);
  kiln_cu_mempool_t pool = NULL;
  kiln_cu_stream_t stream = NULL;
  kiln_cu_deviceptr_t a = 0;
  props.max_bytes = (size_t)(64 * MIB);
  OK(t->cu->cuMemPoolCreate(&pool, &props));
  OK(t->cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  IS(OUT_OF_MEMORY,
     t->cu->cuMemAllocFromPoolAsync(&a, (size_t)(256 * MIB), pool, stream));
  OK(t->cu->cuMemAllocFromPoolAsync(&a, (size_t)MIB, pool, stream));
  OK(t->cu->cuMemFreeAsync(a, stream));
  OK(t->cu->cuStreamSynchronize(stream));
  OK(t->cu->cuStreamDestroy(stream));
  OK(t->cu->cuMemPoolDestroy(pool));
}

// The device's current pool is what cuMemAllocAsync takes from.
static void pool_of_the_device(contract_t* t) {
  kiln_cu_mempool_t pool = NULL;
  kiln_cu_mempool_t again = NULL;
  kiln_cu_stream_t stream = NULL;
  kiln_cu_deviceptr_t a = 0;
  OK(t->cu->cuDeviceGetMemPool(&pool, t->device));
  OK(t->cu->cuDeviceGetMemPool(&again, t->device));
  CHECK(pool != NULL && pool == again);
  OK(t->cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  uint64_t before = number(t, pool, KILN_CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
  OK(t->cu->cuMemAllocAsync(&a, (size_t)MIB, stream));
  CHECK(number(t, pool, KILN_CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= before + MIB);
  OK(t->cu->cuMemFreeAsync(a, stream));
  OK(t->cu->cuStreamSynchronize(stream));
  CHECK(number(t, pool, KILN_CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == before);
  OK(t->cu->cuStreamDestroy(stream));
}

static void pool_access(contract_t* t) {
  kiln_cu_mempool_props_t props = device_pool(t);
  kiln_cu_mempool_t pool = NULL;
  kiln_cu_mem_access_t access = 0;
  OK(t->cu->cuMemPoolCreate(&pool, &props));
  OK(t->cu->cuMemPoolGetAccess(&access, pool, &props.location));
  CHECK(access == KILN_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(t->cu->cuMemPoolDestroy(pool));
}

// Pinned host memory from a pool (CUDA 13.0).
static void pool_of_the_host(contract_t* t) {
  int can = 0;
  OK(t->cu->cuDeviceGetAttribute(
      &can, KILN_CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, t->device));
  if (!can) return;
  kiln_cu_mempool_props_t props = device_pool(t);
  kiln_cu_mem_access_desc_t here = {props.location,
                                    KILN_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  props.location.type = KILN_CU_MEM_LOCATION_TYPE_HOST;
  props.location.id = 0;
  kiln_cu_mempool_t pool = NULL;
  kiln_cu_stream_t stream = NULL;
  kiln_cu_deviceptr_t a = 0;
  OK(t->cu->cuMemPoolCreate(&pool, &props));
  OK(t->cu->cuMemPoolSetAccess(pool, &here, 1));
  OK(t->cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(t->cu->cuMemAllocFromPoolAsync(&a, 4096, pool, stream));
  OK(t->cu->cuMemsetD32Async(a, 11, 4, stream));
  OK(t->cu->cuStreamSynchronize(stream));
  CHECK(((const uint32_t*)(uintptr_t)a)[3] == 11);
  OK(t->cu->cuMemFreeAsync(a, stream));
  OK(t->cu->cuStreamSynchronize(stream));
  OK(t->cu->cuStreamDestroy(stream));
  OK(t->cu->cuMemPoolDestroy(pool));
}

static void managed(contract_t* t) {
  int can = 0;
  OK(t->cu->cuDeviceGetAttribute(&can, KILN_CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
                                 t->device));
  if (!can) return;
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_deviceptr_t a = 0;
  unsigned int is_managed = 0;
  uint32_t value = 21;
  IS(INVALID_VALUE, t->cu->cuMemAllocManaged(&a, 0, KILN_CU_MEM_ATTACH_GLOBAL));
  IS(INVALID_VALUE, t->cu->cuMemAllocManaged(&a, 4096, 0));
  OK(t->cu->cuMemAllocManaged(&a, 4096, KILN_CU_MEM_ATTACH_GLOBAL));
  uint32_t* words = (uint32_t*)(uintptr_t)a;
  words[0] = 1;
  words[1] = 2;
  void* params[] = {&a, &value};
  OK(contract_one(t, module, "put", NULL, params));
  OK(t->cu->cuCtxSynchronize());
  CHECK(words[0] == 21 && words[1] == 2);
  OK(t->cu->cuPointerGetAttribute(&is_managed,
                                  KILN_CU_POINTER_ATTRIBUTE_IS_MANAGED, a));
  CHECK(is_managed == 1);
  OK(t->cu->cuMemFree(a));
  IS(INVALID_VALUE, t->cu->cuMemFree(a));
  OK(t->cu->cuModuleUnload(module));
}

static void no_capture(contract_t* t) {
  kiln_cu_stream_t stream = NULL;
  kiln_cu_capture_status_t status = 99;
  OK(t->cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(t->cu->cuStreamIsCapturing(stream, &status));
  CHECK(status == KILN_CU_STREAM_CAPTURE_STATUS_NONE);
  OK(t->cu->cuStreamDestroy(stream));
}

// ---- Between processes: opening takes another process ----

static void memory_export(contract_t* t) {
  kiln_cu_mempool_props_t props = device_pool(t);
  kiln_cu_mempool_t pool = NULL;
  kiln_cu_stream_t stream = NULL;
  kiln_cu_deviceptr_t memory = 0;
  kiln_cu_deviceptr_t plain = 0;
  kiln_cu_mempool_export_t shared;
  kiln_cu_ipc_mem_handle_t handle;
  int fd = 0;
  props.handle_types = KILN_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  OK(t->cu->cuMemPoolCreate(&pool, &props));
  OK(t->cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(t->cu->cuMemAllocFromPoolAsync(&memory, 4096, pool, stream));
  OK(t->cu->cuMemAlloc(&plain, 4096));
  OK(t->cu->cuMemPoolExportToShareableHandle(
      &fd, pool, KILN_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  OK(t->cu->cuMemPoolExportPointer(&shared, memory));
  OK(t->cu->cuIpcGetMemHandle(&handle, plain));
  if (fd > 2) OK(close(fd) == 0 ? KILN_CU_SUCCESS : KILN_CU_ERROR_UNKNOWN);
  OK(t->cu->cuMemFree(plain));
  OK(t->cu->cuMemFreeAsync(memory, stream));
  OK(t->cu->cuStreamDestroy(stream));
  OK(t->cu->cuMemPoolDestroy(pool));
}

static int told(contract_t* t, kiln_cu_deviceptr_t memory,
                kiln_cu_mem_range_attribute_t attribute) {
  int value = 99;
  OK(t->cu->cuMemRangeGetAttribute(&value, sizeof(value), attribute, memory,
                                   4096));
  return value;
}

// A device that lets the host use managed memory meanwhile.
static void managed_hints(contract_t* t) {
  const kiln_cuda_table_t* cu = t->cu;
  int can = 0;
  OK(cu->cuDeviceGetAttribute(
      &can, KILN_CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, t->device));
  if (can == 0 ||
      !kilni_table_cuda_has(cu, KILNI_CUDA_ROW_cuMemPrefetchAsync)) {
    return;
  }
  const kiln_cu_mem_location_t here = {KILN_CU_MEM_LOCATION_TYPE_DEVICE,
                                       t->device};
  const kiln_cu_mem_location_t host = {KILN_CU_MEM_LOCATION_TYPE_HOST, 0};
  kiln_cu_deviceptr_t a = 0;
  kiln_cu_deviceptr_t plain = 0;
  kiln_cu_stream_t stream = NULL;
  OK(cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(cu->cuMemAlloc(&plain, 4096));
  OK(cu->cuMemAllocManaged(&a, 4096, KILN_CU_MEM_ATTACH_GLOBAL));
  CHECK(told(t, a, KILN_CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
  CHECK(told(t, a, KILN_CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) ==
        KILN_CU_DEVICE_INVALID);
  OK(cu->cuMemAdvise(a, 4096, KILN_CU_MEM_ADVISE_SET_READ_MOSTLY, here));
  CHECK(told(t, a, KILN_CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 1);
  OK(cu->cuMemAdvise(a, 4096, KILN_CU_MEM_ADVISE_UNSET_READ_MOSTLY, here));
  OK(cu->cuMemAdvise(a, 4096, KILN_CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
  CHECK(told(t, a, KILN_CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) ==
        KILN_CU_DEVICE_CPU);
  OK(cu->cuMemAdvise(a, 4096, KILN_CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION,
                     host));
  OK(cu->cuMemPrefetchAsync(a, 4096, here, 0, stream));
  OK(cu->cuStreamSynchronize(stream));
  CHECK(told(t, a, KILN_CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) ==
        t->device);
  OK(cu->cuMemPrefetchAsync(a, 4096, host, 0, stream));
  IS(INVALID_VALUE, cu->cuMemPrefetchAsync(plain, 4096, here, 0, stream));
  IS(INVALID_VALUE, cu->cuMemPrefetchAsync(a, 4096, here, 1, stream));
  IS(INVALID_VALUE, cu->cuMemAdvise(a, 4096, 99, here));
  if (kilni_table_cuda_has(cu, KILNI_CUDA_ROW_cuMemDiscardBatchAsync)) {
    size_t bytes = 4096;
    size_t first = 0;
    kiln_cu_mem_location_t location = here;
    OK(cu->cuMemDiscardBatchAsync(&a, &bytes, 1, 0, stream));
    OK(cu->cuMemDiscardAndPrefetchBatchAsync(&a, &bytes, 1, &location, &first,
                                             1, 0, stream));
  }
  OK(cu->cuStreamSynchronize(stream));
  OK(cu->cuMemFree(a));
  OK(cu->cuMemFree(plain));
  OK(cu->cuStreamDestroy(stream));
}

static const contract_case_t kCases[] = {
    {"managed_hints", managed_hints, CONTRACT_PLAIN},
    {"pool_life", pool_life, CONTRACT_PLAIN},
    {"pool_arguments", pool_arguments, CONTRACT_PLAIN},
    {"pool_numbers", pool_numbers, CONTRACT_PLAIN},
    {"pool_threshold", pool_threshold, CONTRACT_PLAIN},
    {"pool_memory", pool_memory, CONTRACT_PLAIN},
    {"pool_and_graphs", pool_and_graphs, CONTRACT_PLAIN},
    {"pool_limit", pool_limit, CONTRACT_PLAIN},
    {"pool_of_the_device", pool_of_the_device, CONTRACT_PLAIN},
    {"pool_access", pool_access, CONTRACT_PLAIN},
    {"pool_of_the_host", pool_of_the_host, CONTRACT_PLAIN},
    {"managed_memory", managed, CONTRACT_PLAIN},
    {"no_capture", no_capture, CONTRACT_PLAIN},
    {"memory_export", memory_export, CONTRACT_PLAIN},
};
CONTRACT_GROUP(contract_memory_pool, kCases);
