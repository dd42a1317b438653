// SPDX-License-Identifier: Apache-2.0
//
// contract: streams, events, host functions, and the order among them. The
// kernels that must be waited for take a while, so that a missing wait shows.
#include <stdatomic.h>
#include <string.h>

#include "contract.h"
#include "table/cuda_table.h"

static uint32_t read_word(contract_t* t, kiln_cu_deviceptr_t address) {
  uint32_t value = 0;
  OK(t->cu->cuMemcpyDtoH(&value, address, sizeof(value)));
  return value;
}

static kiln_cu_deviceptr_t zeroed(contract_t* t) {
  kiln_cu_deviceptr_t address = 0;
  OK(t->cu->cuMemAlloc(&address, 256));
  OK(t->cu->cuMemsetD8(address, 0, 256));
  OK(t->cu->cuCtxSynchronize());
  return address;
}

static void stream_life(contract_t* t) {
  kiln_cu_stream_t stream = NULL;
  kiln_cu_context_t context = NULL;
  unsigned int flags = 99;
  OK(t->cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  CHECK(stream != NULL);
  OK(t->cu->cuStreamGetFlags(stream, &flags));
  CHECK(flags == KILN_CU_STREAM_NON_BLOCKING);
  OK(t->cu->cuStreamGetCtx(stream, &context));
  CHECK(context == t->context);
  OK(t->cu->cuStreamQuery(stream));
  OK(t->cu->cuStreamSynchronize(stream));
  OK(t->cu->cuStreamDestroy(stream));
  IS(INVALID_VALUE, t->cu->cuStreamCreate(&stream, 0x80));
  IS(INVALID_VALUE, t->cu->cuStreamCreate(NULL, 0));
  OK(t->cu->cuStreamGetFlags(NULL, &flags));
  CHECK(flags == KILN_CU_STREAM_DEFAULT);
  OK(t->cu->cuStreamGetCtx(NULL, &context));
  CHECK(context == t->context);
}

static void priorities(contract_t* t) {
  kiln_cu_stream_t stream = NULL;
  int least = 0;
  int greatest = 0;
  int priority = 99;
  OK(t->cu->cuCtxGetStreamPriorityRange(&least, &greatest));
  OK(t->cu->cuStreamCreateWithPriority(&stream, 0, greatest));
  OK(t->cu->cuStreamGetPriority(stream, &priority));
  CHECK(priority == greatest);
  OK(t->cu->cuStreamDestroy(stream));
  OK(t->cu->cuStreamCreateWithPriority(&stream, 0, greatest - 100));
  OK(t->cu->cuStreamGetPriority(stream, &priority));
  CHECK(priority == greatest);  // clamped
  OK(t->cu->cuStreamDestroy(stream));
}

static void fifo(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_stream_t stream = NULL;
  kiln_cu_deviceptr_t a = zeroed(t);
  kiln_cu_deviceptr_t b = a + 4;
  OK(t->cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  contract_slow_put(t, module, stream, a, 3);
  void* params[] = {&b, &a};
  OK(contract_one(t, module, "move", stream, params));
  OK(t->cu->cuStreamSynchronize(stream));
  OK(t->cu->cuStreamQuery(stream));
  CHECK(read_word(t, b) == 3);
  OK(t->cu->cuStreamDestroy(stream));
  OK(t->cu->cuMemFree(a));
  OK(t->cu->cuModuleUnload(module));
}

static void legacy_waits(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_stream_t streams[2] = {NULL, NULL};
  kiln_cu_deviceptr_t a = zeroed(t);
  kiln_cu_deviceptr_t b = a + 4;
  kiln_cu_deviceptr_t c = a + 8;
  OK(t->cu->cuStreamCreate(&streams[0], KILN_CU_STREAM_DEFAULT));
  OK(t->cu->cuStreamCreate(&streams[1], KILN_CU_STREAM_DEFAULT));
  // blocking stream, then legacy, then another blocking stream
  contract_slow_put(t, module, streams[0], a, 6);
  void* first[] = {&b, &a};
  OK(contract_one(t, module, "move", NULL, first));
  contract_slow_put(t, module, KILN_CU_STREAM_LEGACY, a, 8);
  void* second[] = {&c, &a};
  OK(contract_one(t, module, "move", streams[1], second));
  OK(t->cu->cuCtxSynchronize());
  CHECK(read_word(t, b) == 6);
  CHECK(read_word(t, c) == 8);
  OK(t->cu->cuStreamDestroy(streams[0]));
  OK(t->cu->cuStreamDestroy(streams[1]));
  OK(t->cu->cuMemFree(a));
  OK(t->cu->cuModuleUnload(module));
}

static void per_thread_stream(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_deviceptr_t a = zeroed(t);
  contract_slow_put(t, module, KILN_CU_STREAM_PER_THREAD, a, 4);
  OK(t->cu->cuStreamSynchronize(KILN_CU_STREAM_PER_THREAD));
  CHECK(read_word(t, a) == 4);
  OK(t->cu->cuMemFree(a));
  OK(t->cu->cuModuleUnload(module));
}

static void destroy_with_work(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_stream_t stream = NULL;
  kiln_cu_deviceptr_t a = zeroed(t);
  OK(t->cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  contract_slow_put(t, module, stream, a, 5);
  OK(t->cu->cuStreamDestroy(stream));
  OK(t->cu->cuCtxSynchronize());
  CHECK(read_word(t, a) == 5);
  OK(t->cu->cuMemFree(a));
  OK(t->cu->cuModuleUnload(module));
}

static void free_waits(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_stream_t stream = NULL;
  kiln_cu_deviceptr_t a = zeroed(t);
  kiln_cu_deviceptr_t b = zeroed(t);
  OK(t->cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  contract_slow_put(t, module, stream, a, 5);
  void* params[] = {&b, &a};
  OK(contract_one(t, module, "move", stream, params));
  OK(t->cu->cuMemFree(a));  // not before the kernels that use it end
  CHECK(read_word(t, b) == 5);
  OK(t->cu->cuStreamDestroy(stream));
  OK(t->cu->cuMemFree(b));
  OK(t->cu->cuModuleUnload(module));
}

// ---- Events ----

static void event_life(contract_t* t) {
  kiln_cu_event_t event = NULL;
  OK(t->cu->cuEventCreate(&event, 0));
  OK(t->cu->cuEventQuery(event));  // never recorded: nothing to wait for
  OK(t->cu->cuEventSynchronize(event));
  OK(t->cu->cuStreamWaitEvent(NULL, event, 0));
  OK(t->cu->cuEventRecord(event, NULL));
  OK(t->cu->cuEventSynchronize(event));
  OK(t->cu->cuEventQuery(event));
  OK(t->cu->cuEventDestroy(event));
  IS(INVALID_VALUE, t->cu->cuEventCreate(&event, 0x80));
  IS(INVALID_VALUE, t->cu->cuEventCreate(NULL, 0));
  IS(INVALID_HANDLE, t->cu->cuEventRecord(NULL, NULL));
}

static void event_times(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_event_t start = NULL;
  kiln_cu_event_t end = NULL;
  kiln_cu_event_t untimed = NULL;
  kiln_cu_deviceptr_t a = zeroed(t);
  float ms = -1.0f;
  OK(t->cu->cuEventCreate(&start, 0));
  OK(t->cu->cuEventCreate(&end, 0));
  OK(t->cu->cuEventCreate(&untimed, KILN_CU_EVENT_DISABLE_TIMING));
  IS(INVALID_HANDLE, t->cu->cuEventElapsedTime(&ms, start, end));
  OK(t->cu->cuEventRecord(start, NULL));
  contract_slow_put(t, module, NULL, a, 1);
  OK(t->cu->cuEventRecord(end, NULL));
  OK(t->cu->cuEventRecord(untimed, NULL));
  OK(t->cu->cuEventSynchronize(end));
  OK(t->cu->cuEventElapsedTime(&ms, start, end));
  CHECK(ms > 0.0f && ms < 60000.0f);
  OK(t->cu->cuEventSynchronize(untimed));
  IS(INVALID_HANDLE, t->cu->cuEventElapsedTime(&ms, start, untimed));
  OK(t->cu->cuEventDestroy(start));
  OK(t->cu->cuEventDestroy(end));
  OK(t->cu->cuEventDestroy(untimed));
  OK(t->cu->cuMemFree(a));
  OK(t->cu->cuModuleUnload(module));
}

static void events_order(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_stream_t streams[2] = {NULL, NULL};
  kiln_cu_event_t event = NULL;
  kiln_cu_deviceptr_t a = zeroed(t);
  kiln_cu_deviceptr_t b = a + 4;
  for (int i = 0; i < 2; i++) {
    OK(t->cu->cuStreamCreate(&streams[i], KILN_CU_STREAM_NON_BLOCKING));
  }
  OK(t->cu->cuEventCreate(&event, KILN_CU_EVENT_DISABLE_TIMING));
  contract_slow_put(t, module, streams[0], a, 7);
  OK(t->cu->cuEventRecord(event, streams[0]));
  OK(t->cu->cuStreamWaitEvent(streams[1], event, 0));
  OK(t->cu->cuEventDestroy(event));  // what waits for it goes on waiting
  void* params[] = {&b, &a};
  OK(contract_one(t, module, "move", streams[1], params));
  OK(t->cu->cuStreamSynchronize(streams[1]));
  CHECK(read_word(t, b) == 7);
  OK(t->cu->cuStreamDestroy(streams[0]));
  OK(t->cu->cuStreamDestroy(streams[1]));
  OK(t->cu->cuMemFree(a));
  OK(t->cu->cuModuleUnload(module));
}

static void queries_become_ready(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_stream_t stream = NULL;
  kiln_cu_event_t event = NULL;
  kiln_cu_deviceptr_t a = zeroed(t);
  OK(t->cu->cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(t->cu->cuEventCreate(&event, 0));
  contract_slow_put(t, module, stream, a, 7);
  OK(t->cu->cuEventRecord(event, stream));
  kiln_cu_result_t result;
  // A program that only polls gets there, too.
  while ((result = t->cu->cuEventQuery(event)) == KILN_CU_ERROR_NOT_READY) {
    continue;
  }
  OK(result);
  while ((result = t->cu->cuStreamQuery(stream)) == KILN_CU_ERROR_NOT_READY) {
    continue;
  }
  OK(result);
  OK(t->cu->cuEventDestroy(event));
  OK(t->cu->cuStreamDestroy(stream));
  OK(t->cu->cuMemFree(a));
  OK(t->cu->cuModuleUnload(module));
}

// ---- Host functions ----

static void count_up(void* user) {
  atomic_fetch_add((atomic_int*)user, 1);
}

static void host_functions(contract_t* t) {
  kiln_cu_module_t module = contract_load(t);
  kiln_cu_stream_t stream = NULL;
  void* host = NULL;
  atomic_int calls;
  atomic_init(&calls, 0);
  OK(t->cu->cuStreamCreate(&stream, 0));
  OK(t->cu->cuMemHostAlloc(&host, 64, 0));
  *(uint32_t*)host = 0;
  contract_slow_put(t, module, stream, (uintptr_t)host, 1);
  for (int i = 0; i < 5; i++) {
    OK(t->cu->cuLaunchHostFunc(stream, count_up, &calls));
  }
  OK(t->cu->cuStreamSynchronize(stream));
  CHECK(atomic_load(&calls) == 5);
  CHECK(*(uint32_t*)host == 1);
  IS(INVALID_VALUE, t->cu->cuLaunchHostFunc(stream, NULL, NULL));
  OK(t->cu->cuMemFreeHost(host));
  OK(t->cu->cuStreamDestroy(stream));
  OK(t->cu->cuModuleUnload(module));
}

// ---- How a thread lives with captures ----

static void capture_mode(contract_t* t) {
  kiln_cu_capture_mode_t mode = KILN_CU_STREAM_CAPTURE_MODE_RELAXED;
  OK(t->cu->cuThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == KILN_CU_STREAM_CAPTURE_MODE_GLOBAL);
  mode = KILN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  OK(t->cu->cuThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == KILN_CU_STREAM_CAPTURE_MODE_RELAXED);
  // It is the thread's own, not the context's.
  OK(t->cu->cuCtxSetCurrent(NULL));
  mode = KILN_CU_STREAM_CAPTURE_MODE_GLOBAL;
  OK(t->cu->cuThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == KILN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  OK(t->cu->cuCtxSetCurrent(t->context));
}

// ---- Between processes: opening one takes another process ----

static void event_export(contract_t* t) {
  kiln_cu_ipc_event_handle_t handle = {{0}};
  kiln_cu_ipc_event_handle_t zero = {{0}};
  kiln_cu_event_t event = NULL;
  OK(t->cu->cuEventCreate(
      &event, KILN_CU_EVENT_DISABLE_TIMING | KILN_CU_EVENT_INTERPROCESS));
  OK(t->cu->cuIpcGetEventHandle(&handle, event));
  CHECK(memcmp(&handle, &zero, sizeof(handle)) != 0);
  OK(t->cu->cuEventDestroy(event));
  // It is shared without times or not at all.
  IS(INVALID_VALUE, t->cu->cuEventCreate(&event, KILN_CU_EVENT_INTERPROCESS));
}

static const contract_case_t kCases[] = {
    {"stream_life", stream_life, CONTRACT_PLAIN},
    {"priorities", priorities, CONTRACT_PLAIN},
    {"fifo", fifo, CONTRACT_PLAIN},
    {"legacy_waits", legacy_waits, CONTRACT_PLAIN},
    {"per_thread_stream", per_thread_stream, CONTRACT_PLAIN},
    {"destroy_with_work", destroy_with_work, CONTRACT_PLAIN},
    {"free_waits", free_waits, CONTRACT_PLAIN},
    {"event_life", event_life, CONTRACT_PLAIN},
    {"event_times", event_times, CONTRACT_PLAIN},
    {"events_order", events_order, CONTRACT_PLAIN},
    {"queries_become_ready", queries_become_ready, CONTRACT_PLAIN},
    {"host_functions", host_functions, CONTRACT_PLAIN},
    {"capture_mode", capture_mode, CONTRACT_PLAIN},
    {"event_export", event_export, CONTRACT_PLAIN},
};
CONTRACT_GROUP(contract_stream, kCases);
