// SPDX-License-Identifier: Apache-2.0
//
// contract: memory, copies and fills.
#include <string.h>

#include "base/alloc.h"
#include "table/cuda_table.h"
#include "contract.h"

enum { WORDS = 1024, LARGE = 3 << 20 };

static void allocate(contract_t* t) {
  kiln_cu_deviceptr_t a = 0;
  kiln_cu_deviceptr_t b = 0;
  size_t available = 0;
  size_t total = 0;
  OK(t->cu->cuMemGetInfo(&available, &total));
  CHECK(available <= total && total > 0);
  OK(t->cu->cuMemAlloc(&a, 1000));
  OK(t->cu->cuMemAlloc(&b, 1));
  CHECK(a != 0 && b != 0 && a != b);
  CHECK(a % 256 == 0 && b % 256 == 0);
  OK(t->cu->cuMemFree(a));
  OK(t->cu->cuMemFree(b));
  OK(t->cu->cuMemFree(0));
  IS(INVALID_VALUE, t->cu->cuMemAlloc(&a, 0));
  IS(INVALID_VALUE, t->cu->cuMemAlloc(NULL, 4));
  IS(OUT_OF_MEMORY, t->cu->cuMemAlloc(&a, (size_t)1 << 50));
}

static void free_of_nothing(contract_t* t) {
  kiln_cu_deviceptr_t a = 0;
  OK(t->cu->cuMemAlloc(&a, 4096));
  IS(INVALID_VALUE, t->cu->cuMemFree(a + 256));
  OK(t->cu->cuMemFree(a));
  IS(INVALID_VALUE, t->cu->cuMemFree(a));
}

static void copies(contract_t* t) {
  kiln_cu_deviceptr_t a = 0;
  kiln_cu_deviceptr_t b = 0;
  uint32_t out[WORDS];
  uint32_t back[WORDS];
  for (uint32_t i = 0; i < WORDS; i++) out[i] = i * 2654435761u;
  OK(t->cu->cuMemAlloc(&a, sizeof(out)));
  OK(t->cu->cuMemAlloc(&b, sizeof(out)));
  OK(t->cu->cuMemcpyHtoD(a, out, sizeof(out)));
  OK(t->cu->cuMemcpyDtoD(b, a, sizeof(out)));
  memset(back, 0, sizeof(back));
  OK(t->cu->cuMemcpyDtoH(back, b, sizeof(back)));
  CHECK(memcmp(out, back, sizeof(out)) == 0);
  // By what the addresses are.
  OK(t->cu->cuMemsetD8(b, 0, sizeof(out)));
  OK(t->cu->cuMemcpy(b + 4, (uintptr_t)out, 8));
  OK(t->cu->cuMemcpy((uintptr_t)back, b, 16));
  CHECK(back[0] == 0 && back[1] == out[0] && back[2] == out[1] && back[3] == 0);
  OK(t->cu->cuMemcpyHtoD(a, out, 0));
  IS(INVALID_VALUE, t->cu->cuMemcpyHtoD(16, out, 4));
  IS(INVALID_VALUE, t->cu->cuMemcpyDtoH(back, 16, 4));
  OK(t->cu->cuMemFree(a));
  OK(t->cu->cuMemFree(b));
}

static void large_copy(contract_t* t) {
  kiln_allocator_t libc = kiln_allocator_libc();
  kiln_cu_deviceptr_t a = 0;
  void* block = NULL;
  CHECK(kiln_status_is_ok(kilni_base_alloc(libc, 2 * LARGE, &block)));
  uint8_t* out = block;
  uint8_t* back = out + LARGE;
  for (size_t i = 0; i < LARGE; i++) out[i] = (uint8_t)(i * 7 + (i >> 11));
  OK(t->cu->cuMemAlloc(&a, LARGE));
  OK(t->cu->cuMemcpyHtoDAsync(a, out, LARGE, NULL));
  OK(t->cu->cuMemcpyDtoHAsync(back, a, LARGE, NULL));
  OK(t->cu->cuStreamSynchronize(NULL));
  CHECK(memcmp(out, back, LARGE) == 0);
  OK(t->cu->cuMemFree(a));
  kilni_base_free(libc, block, 2 * LARGE);
}

static void fills(contract_t* t) {
  kiln_cu_deviceptr_t a = 0;
  uint32_t back[8];
  OK(t->cu->cuMemAlloc(&a, sizeof(back)));
  OK(t->cu->cuMemsetD32(a, 0x12345678u, 8));
  OK(t->cu->cuMemsetD16(a + 4, 0xabcd, 2));
  OK(t->cu->cuMemsetD8(a + 9, 0x5a, 3));
  OK(t->cu->cuMemcpyDtoH(back, a, sizeof(back)));
  CHECK(back[0] == 0x12345678u && back[1] == 0xabcdabcdu);
  CHECK(back[2] == 0x5a5a5a78u && back[3] == 0x12345678u);
  IS(INVALID_VALUE, t->cu->cuMemsetD32(a + 1, 0, 1));
  IS(INVALID_VALUE, t->cu->cuMemsetD16(a + 1, 0, 1));
  OK(t->cu->cuMemsetD32(a, 1, 0));
  OK(t->cu->cuMemFree(a));
}

static void plain_host_memory(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_stream_t stream = NULL;
  kiln_cu_deviceptr_t a = 0;
  uint32_t word = 1;
  uint32_t back = 0;
  OK(t->cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(t->cu->cuMemAlloc(&a, 64));
  OK(t->cu->cuMemsetD8(a, 0, 64));
  OK(t->cu->cuCtxSynchronize());
  contract_slow_put(t, module, stream, a + 4, 5);
  OK(t->cu->cuMemcpyHtoDAsync(a, &word, sizeof(word), stream));
  word = 2;  // the call has read it
  OK(t->cu->cuMemcpyDtoHAsync(&back, a, sizeof(back), stream));
  CHECK(back == 1);  // and this one has written it
  OK(t->cu->cuStreamDestroy(stream));
  OK(t->cu->cuMemFree(a));
  OK(t->cu->cuModuleUnload(module));
}

static void pinned(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  void* host = NULL;
  kiln_cu_deviceptr_t mapped = 0;
  OK(t->cu->cuMemHostAlloc(&host, 8192, KILN_CU_MEMHOSTALLOC_DEVICEMAP));
  uint32_t* words = host;
  memset(words, 0, 8192);
  OK(t->cu->cuMemHostGetDevicePointer(&mapped, host, 0));
  CHECK(mapped != 0);
  uint32_t value = 9;
  void* params[] = {&mapped, &value};
  OK(contract_one(t, module, "put", NULL, params));
  OK(t->cu->cuCtxSynchronize());
  CHECK(words[0] == 9 && words[1] == 0);
  IS(INVALID_VALUE, t->cu->cuMemHostAlloc(&host, 64, 0x80));
  OK(t->cu->cuMemFreeHost(words));
  IS(INVALID_VALUE, t->cu->cuMemFreeHost(words));
  OK(t->cu->cuModuleUnload(module));
}

static void registered(contract_t* t) {
  static uint8_t mine[3 * 4096];
  uint8_t* page = (uint8_t*)(((uintptr_t)mine + 4095) & ~(uintptr_t)4095);
  OK(t->cu->cuMemHostRegister(page, 4096, 0));
  IS(HOST_MEMORY_ALREADY_REGISTERED, t->cu->cuMemHostRegister(page, 4096, 0));
  unsigned int type = 0;
  OK(t->cu->cuPointerGetAttribute(&type, KILN_CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  (uintptr_t)page));
  CHECK(type == KILN_CU_MEMORYTYPE_HOST);
  OK(t->cu->cuMemHostUnregister(page));
  IS(HOST_MEMORY_NOT_REGISTERED, t->cu->cuMemHostUnregister(page));
  IS(INVALID_VALUE, t->cu->cuMemHostRegister(page, 0, 0));
}

static void pointers(contract_t* t) {
  kiln_cu_deviceptr_t a = 0;
  unsigned int type = 0;
  kiln_cu_context_t context = NULL;
  int ordinal = -1;
  kiln_cu_deviceptr_t start = 0;
  OK(t->cu->cuMemAlloc(&a, 4096));
  OK(t->cu->cuPointerGetAttribute(&type, KILN_CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  a + 100));
  CHECK(type == KILN_CU_MEMORYTYPE_DEVICE);
  OK(t->cu->cuPointerGetAttribute(&context, KILN_CU_POINTER_ATTRIBUTE_CONTEXT,
                                  a));
  CHECK(context == t->context);
  OK(t->cu->cuPointerGetAttribute(&ordinal,
                                  KILN_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a));
  CHECK(ordinal == t->device);
  OK(t->cu->cuPointerGetAttribute(
      &start, KILN_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, a + 100));
  CHECK(start == a);
  int local = 0;
  IS(INVALID_VALUE,
     t->cu->cuPointerGetAttribute(&type, KILN_CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  (uintptr_t)&local));
  kiln_cu_pointer_attribute_t names[] = {KILN_CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                         KILN_CU_POINTER_ATTRIBUTE_CONTEXT};
  void* values[] = {&type, &context};
  OK(t->cu->cuPointerGetAttributes(2, names, values, a));
  CHECK(type == KILN_CU_MEMORYTYPE_DEVICE && context == t->context);
  // Unknown addresses are no error here.
  OK(t->cu->cuPointerGetAttributes(2, names, values, (uintptr_t)&local));
  CHECK(type == 0 && context == NULL);
  OK(t->cu->cuMemFree(a));
}

static void stream_ordered(contract_t* t) {
  kiln_cu_stream_t stream = NULL;
  kiln_cu_deviceptr_t a = 0;
  uint32_t back[4] = {0, 0, 0, 0};
  OK(t->cu->cuStreamCreate(&stream, 0));
  for (uint32_t round = 1; round <= 10; round++) {
    OK(t->cu->cuMemAllocAsync(&a, sizeof(back), stream));
    OK(t->cu->cuMemsetD32Async(a, round, 4, stream));
    OK(t->cu->cuMemcpyDtoHAsync(back, a, sizeof(back), stream));
    OK(t->cu->cuMemFreeAsync(a, stream));
    OK(t->cu->cuStreamSynchronize(stream));
    CHECK(back[0] == round && back[3] == round);
  }
  OK(t->cu->cuMemAllocAsync(&a, 0, stream));
  CHECK(a == 0);
  OK(t->cu->cuMemAllocAsync(&a, 64, stream));
  OK(t->cu->cuStreamSynchronize(stream));
  OK(t->cu->cuMemFree(a));
  OK(t->cu->cuStreamDestroy(stream));
}

static void copy_batch(contract_t* t) {
  const kiln_cuda_table_t* cu = t->cu;
  if (!kilni_table_cuda_has(cu, KILNI_CUDA_ROW_cuMemcpyBatchAsync)) return;
  kiln_cu_deviceptr_t a = 0;
  kiln_cu_stream_t stream = NULL;
  OK(cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(cu->cuMemAlloc(&a, 4096));
  OK(cu->cuMemsetD32Async(a, 3, 1024, stream));
  OK(cu->cuMemsetD32Async(a, 4, 8, stream));
  kiln_cu_deviceptr_t to[2] = {a + 1024, a + 2048};
  kiln_cu_deviceptr_t from[2] = {a, a + 4};
  size_t sizes[2] = {4, 8};
  kiln_cu_copy_attributes_t attributes[2] = {
      {KILN_CU_COPY_ORDER_STREAM, {0, 0}, {0, 0}, 0},
      {KILN_CU_COPY_ORDER_ANY, {0, 0}, {0, 0}, 0}};
  size_t first[2] = {0, 1};
  OK(cu->cuMemcpyBatchAsync(to, from, sizes, 2, attributes, first, 1, stream));
  OK(cu->cuStreamSynchronize(stream));
  uint32_t words[3] = {0, 0, 0};
  OK(cu->cuMemcpyDtoH(&words[0], a + 1024, 4));
  OK(cu->cuMemcpyDtoH(&words[1], a + 2048, 8));
  CHECK(words[0] == 4 && words[1] == 4 && words[2] == 4);
  OK(cu->cuMemcpyBatchAsync(to, from, sizes, 2, attributes, first, 2, stream));
  IS(INVALID_VALUE,
     cu->cuMemcpyBatchAsync(to, from, sizes, 2, attributes, first, 0, stream));
  first[0] = 1;
  IS(INVALID_VALUE,
     cu->cuMemcpyBatchAsync(to, from, sizes, 2, attributes, first, 1, stream));
  first[0] = 0;
  attributes[0].order = 0;
  IS(INVALID_VALUE,
     cu->cuMemcpyBatchAsync(to, from, sizes, 2, attributes, first, 1, stream));
  attributes[0].order = KILN_CU_COPY_ORDER_STREAM;
  IS(INVALID_VALUE,
     cu->cuMemcpyBatchAsync(to, from, sizes, 2, attributes, first, 1, NULL));
  // It wants a current context, though the stream has one.
  OK(cu->cuCtxSetCurrent(NULL));
  IS(INVALID_VALUE,
     cu->cuMemcpyBatchAsync(to, from, sizes, 2, attributes, first, 1, stream));
  OK(cu->cuCtxSetCurrent(t->context));
  // The capture of another stream does not mind.
  kiln_cu_stream_t other = NULL;
  kiln_cu_graph_t graph = NULL;
  OK(cu->cuStreamCreate(&other, KILN_CU_STREAM_NON_BLOCKING));
  OK(cu->cuStreamBeginCapture(other, KILN_CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cu->cuMemcpyBatchAsync(to, from, sizes, 2, attributes, first, 1, stream));
  OK(cu->cuStreamEndCapture(other, &graph));
  OK(cu->cuGraphDestroy(graph));
  OK(cu->cuStreamSynchronize(stream));
  OK(cu->cuStreamDestroy(other));
  OK(cu->cuMemFree(a));
  OK(cu->cuStreamDestroy(stream));
}

static const contract_case_t kCases[] = {
    {"copy_batch", copy_batch, CONTRACT_PLAIN},
    {"allocate", allocate, CONTRACT_PLAIN},
    {"free_of_nothing", free_of_nothing, CONTRACT_PLAIN},
    {"copies", copies, CONTRACT_PLAIN},
    {"large_copy", large_copy, CONTRACT_PLAIN},
    {"fills", fills, CONTRACT_PLAIN},
    {"plain_host_memory", plain_host_memory, CONTRACT_PLAIN},
    {"pinned", pinned, CONTRACT_PLAIN},
    {"registered", registered, CONTRACT_PLAIN},
    {"pointers", pointers, CONTRACT_PLAIN},
    {"stream_ordered", stream_ordered, CONTRACT_PLAIN},
};
CONTRACT_GROUP(contract_memory, kCases);
