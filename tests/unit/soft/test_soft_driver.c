// SPDX-License-Identifier: Apache-2.0
//
// soft: the driver front by itself, over the substitute engine: what the
// contract suite cannot see, because it holds for this provider only: order by
// seed, stale handles, faults, starts and stops, failing allocations.
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/status_make.h"
#include "base/thread.h"
#include "fault_alloc.h"
#include "fault_run.h"
#include "soft_fault_story.h"
#include "soft/soft.h"
#include "soft/memory/soft_memory.h"
#include "table/cuda_table.h"
#include "soft_substitute.h"
#include "test_tree.h"

#define OK(call)    assert_int_equal((call), KILN_CU_SUCCESS)
#define IS(e, call) assert_int_equal((call), KILN_CU_ERROR_##e)

// A started device with a current context and the substitute's module.
typedef struct device_t {
  kilni_base_env_t env;
  kiln_host_t host;
  kiln_cuda_table_t cu;
  kiln_cu_context_t context;
  kiln_cu_module_t module;
  char logged[256];
  int log_count;
} device_t;

static void keep_log(kiln_log_level_t level, const char* space,
                     const char* line, void* user) {
  device_t* d = user;
  (void)level;
  (void)space;
  snprintf(d->logged, sizeof(d->logged), "%s", line);
  d->log_count++;
}

static void make_host(device_t* d, kiln_allocator_t allocator) {
  memset(d, 0, sizeof(*d));
  assert_true(
      kiln_status_is_ok(kilni_base_env_init(&d->env, kiln_allocator_libc())));
  // The tests say what they need; the user's settings must not leak in.
  for (int i = 0; i < KILNI_ENV_COUNT; i++) {
    assert_true(kiln_status_is_ok(
        kilni_base_env_set(&d->env, (kilni_base_env_id_t)i, NULL)));
  }
  d->host = (kiln_host_t){.allocator = allocator,
                          .log = {keep_log, d, KILN_LOG_WARNING, 0},
                          .env = &d->env,
                          .worker_count = 2,
                          .process_id = kilni_base_process_id()};
}

static void start(device_t* d, uint32_t workers, uint64_t seed) {
  kilni_soft_options_t options = {
      .struct_size = sizeof(options), .worker_count = workers, .seed = seed};
  kiln_status_t status = kilni_soft_start(&d->host, &options, &d->cu);
  assert_true(kiln_status_is_ok(status));
}

static void open_device(device_t* d, uint32_t workers, uint64_t seed) {
  make_host(d, kiln_allocator_libc());
  start(d, workers, seed);
  OK(d->cu.cuInit(0));
  OK(d->cu.cuDevicePrimaryCtxRetain(&d->context, 0));
  OK(d->cu.cuCtxSetCurrent(d->context));
  OK(d->cu.cuModuleLoadData(&d->module, soft_substitute_ptx));
}

static void close_device(device_t* d) {
  kilni_soft_stop();
  kilni_base_env_deinit(&d->env);
}

static kiln_cu_function_t function(device_t* d, const char* name) {
  kiln_cu_function_t f = NULL;
  OK(d->cu.cuModuleGetFunction(&f, d->module, name));
  return f;
}

static kiln_cu_result_t launch(device_t* d, const char* name,
                               kiln_cu_stream_t stream, uint64_t address,
                               uint32_t value) {
  void* params[] = {&address, &value};
  return d->cu.cuLaunchKernel(function(d, name), 1, 1, 1, 1, 1, 1, 0, stream,
                              params, NULL);
}

static uint32_t* pinned(device_t* d) {
  void* words = NULL;
  OK(d->cu.cuMemHostAlloc(&words, 4096, 0));
  memset(words, 0, 4096);
  return words;
}

// ---- Starting and stopping ----

static void test_before_init(void** state) {
  (void)state;
  device_t d;
  make_host(&d, kiln_allocator_libc());
  int count = 7;
  kiln_cu_deviceptr_t address;
  start(&d, 1, 0);
  IS(NOT_INITIALIZED, d.cu.cuDeviceGetCount(&count));
  IS(NOT_INITIALIZED, d.cu.cuMemAlloc(&address, 4));
  assert_int_equal(count, 7);
  IS(INVALID_VALUE, d.cu.cuInit(1));
  OK(d.cu.cuInit(0));
  OK(d.cu.cuDeviceGetCount(&count));
  assert_int_equal(count, 1);
  IS(INVALID_CONTEXT, d.cu.cuMemAlloc(&address, 4));
  close_device(&d);
  IS(NOT_INITIALIZED, d.cu.cuDeviceGetCount(&count));
}

static void test_two_users(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 2, 5);
  kiln_cuda_table_t second;
  kilni_soft_options_t options = {.struct_size = sizeof(options)};
  assert_true(kiln_status_is_ok(kilni_soft_start(&d.host, &options, &second)));
  assert_ptr_equal(second.cuMemAlloc, d.cu.cuMemAlloc);
  options.seed = 6;
  kiln_status_t status = kilni_soft_start(&d.host, &options, &second);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_STATE);
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
  kilni_soft_stop();
  OK(d.cu.cuCtxSynchronize());
  assert_non_null(kilni_soft_lanes_name());
  close_device(&d);
  assert_null(kilni_soft_lanes_name());
  kilni_soft_stop();  // one too many is accepted
}

static void test_bad_options(void** state) {
  (void)state;
  device_t d;
  make_host(&d, kiln_allocator_libc());
  kilni_soft_options_t options = {.struct_size = sizeof(options),
                                  .lanes = "abacus"};
  kiln_status_t status = kilni_soft_start(&d.host, &options, &d.cu);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_UNSUPPORTED);
  assert_non_null(strstr(kiln_status_message(status), "abacus"));
  kiln_status_free(status);
  options.lanes = NULL;
  options.worker_count = 100000;
  status = kilni_soft_start(&d.host, &options, &d.cu);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_LIMIT_EXCEEDED);
  kiln_status_free(status);
  options.worker_count = 1;
  status = kilni_base_env_set(&d.env, KILNI_ENV_KILN_SOFT_CHECK, "sometimes");
  assert_true(kiln_status_is_ok(status));
  status = kilni_soft_start(&d.host, &options, &d.cu);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  kilni_base_env_deinit(&d.env);
}

static void test_stop_cancels(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 2, 0);
  kiln_cu_stream_t stream;
  OK(d.cu.cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(launch(&d, "spin", stream, 0, 0));
  IS(NOT_READY, d.cu.cuStreamQuery(stream));
  OK(launch(&d, "put", stream, 0, 0));
  close_device(&d);
}

static void test_restart_forgets(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 1, 0);
  kiln_cu_stream_t stream;
  OK(d.cu.cuStreamCreate(&stream, 0));
  kiln_cu_context_t old = d.context;
  close_device(&d);
  make_host(&d, kiln_allocator_libc());
  start(&d, 1, 0);
  OK(d.cu.cuInit(0));
  kiln_cu_context_t current = old;
  OK(d.cu.cuCtxGetCurrent(&current));
  assert_null(current);
  IS(INVALID_CONTEXT, d.cu.cuCtxSetCurrent(old));
  IS(INVALID_HANDLE, d.cu.cuStreamSynchronize(stream));
  close_device(&d);
}

// ---- Handles ----

static void test_stale_handles(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 2, 0);
  kiln_cu_stream_t stream;
  kiln_cu_event_t event;
  kiln_cu_function_t f = function(&d, "put");
  assert_ptr_equal(f, function(&d, "put"));
  OK(d.cu.cuStreamCreate(&stream, 0));
  OK(d.cu.cuEventCreate(&event, 0));
  OK(d.cu.cuStreamDestroy(stream));
  OK(d.cu.cuEventDestroy(event));
  OK(d.cu.cuModuleUnload(d.module));
  IS(INVALID_HANDLE, d.cu.cuStreamDestroy(stream));
  IS(INVALID_HANDLE, d.cu.cuStreamQuery(stream));
  IS(INVALID_HANDLE, d.cu.cuEventRecord(event, NULL));
  IS(INVALID_HANDLE, d.cu.cuEventDestroy(event));
  IS(INVALID_HANDLE, d.cu.cuModuleUnload(d.module));
  IS(INVALID_HANDLE, d.cu.cuModuleGetFunction(&f, d.module, "put"));
  void* none[1] = {NULL};
  IS(INVALID_HANDLE,
     d.cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, none, NULL));
  // Made up, of another kind, and not a handle at all.
  IS(INVALID_HANDLE,
     d.cu.cuStreamQuery((kiln_cu_stream_t)(uintptr_t)0x1234567812));
  IS(INVALID_HANDLE, d.cu.cuEventQuery((kiln_cu_event_t)(void*)d.context));
  IS(INVALID_HANDLE, d.cu.cuEventQuery(NULL));
  IS(INVALID_HANDLE,
     d.cu.cuEventQuery((kiln_cu_event_t)(uintptr_t)UINTPTR_MAX));
  close_device(&d);
}

static void test_context_release(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 2, 0);
  kiln_cu_stream_t stream;
  kiln_cu_deviceptr_t address;
  OK(d.cu.cuStreamCreate(&stream, 0));
  OK(d.cu.cuMemAlloc(&address, 1 << 20));
  OK(d.cu.cuDevicePrimaryCtxRelease(0));
  IS(INVALID_CONTEXT, d.cu.cuDevicePrimaryCtxRelease(0));
  IS(CONTEXT_IS_DESTROYED, d.cu.cuCtxSynchronize());
  IS(INVALID_HANDLE, d.cu.cuStreamQuery(stream));
  IS(INVALID_CONTEXT, d.cu.cuCtxSetCurrent(d.context));
  OK(d.cu.cuCtxSetCurrent(NULL));
  OK(d.cu.cuDevicePrimaryCtxRetain(&d.context, 0));
  OK(d.cu.cuCtxSetCurrent(d.context));
  size_t available;
  size_t total;
  OK(d.cu.cuMemGetInfo(&available, &total));
  assert_int_equal(available, total);
  IS(INVALID_VALUE, d.cu.cuMemFree(address));
  close_device(&d);
}

static void hold(void* user) {
  atomic_int* gate = user;
  while (atomic_load(gate) == 0) sched_yield();
}

// A thread that releases the primary context. one-thread
typedef struct releaser_t {
  device_t* d;
  kiln_cu_result_t result;
} releaser_t;

static void release_main(void* user) {
  releaser_t* releaser = user;
  releaser->result = releaser->d->cu.cuDevicePrimaryCtxRelease(0);
}

// The last release waits for what is queued; who retains the context while it
// waits keeps that same context, and whoever has it current still has one.
static void test_retain_while_released(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 1, 0);
  atomic_int gate;
  atomic_init(&gate, 0);
  OK(d.cu.cuLaunchHostFunc(NULL, hold, &gate));
  releaser_t releaser = {&d, KILN_CU_ERROR_UNKNOWN};
  kilni_base_thread_t thread;
  assert_true(kiln_status_is_ok(
      kilni_base_thread_start(&thread, "releaser", release_main, &releaser)));
  unsigned int flags;
  int active = 1;
  while (active != 0) {
    OK(d.cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
  }
  kiln_cu_context_t again = NULL;
  OK(d.cu.cuDevicePrimaryCtxRetain(&again, 0));
  atomic_store(&gate, 1);
  kilni_base_thread_join(&thread);
  OK(releaser.result);
  assert_ptr_equal(again, d.context);
  OK(d.cu.cuCtxSynchronize());
  OK(d.cu.cuDevicePrimaryCtxRelease(0));
  IS(INVALID_CONTEXT, d.cu.cuCtxSetCurrent(d.context));
  close_device(&d);
}

// A forked child has none of the driver's threads: the call says that nothing
// runs and waits for no lock that one of them may hold.
static void test_forked_child(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 2, 0);
  assert_non_null(kilni_soft_lanes_name());
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    char text[8] = "before";
    soft_fault_story(text, sizeof(text));
    int count = 0;
    bool good = kilni_soft_lanes_name() == NULL && kilni_soft_executed() == 0 &&
                text[0] == '\0' &&
                d.cu.cuDeviceGetCount(&count) == KILN_CU_ERROR_NOT_INITIALIZED;
    kilni_soft_stop();
    _exit(good ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  OK(d.cu.cuCtxSynchronize());
  close_device(&d);
}

// ---- Order ----

// Two streams append their names without waiting for each other.
static void run_order(uint32_t workers, uint64_t seed, uint32_t out[16]) {
  device_t d;
  open_device(&d, workers, seed);
  kiln_cu_stream_t streams[4];
  uint32_t* list = pinned(&d);
  for (int i = 0; i < 4; i++) {
    OK(d.cu.cuStreamCreate(&streams[i], KILN_CU_STREAM_NON_BLOCKING));
  }
  for (uint32_t i = 0; i < 16; i++) {
    OK(launch(&d, "append", streams[i % 4], (uintptr_t)list, i));
  }
  OK(d.cu.cuCtxSynchronize());
  assert_int_equal(list[0], 16);
  memcpy(out, list + 1, 16 * sizeof(*out));
  close_device(&d);
}

static void test_seed_decides_order(void** state) {
  (void)state;
  uint32_t first[16];
  uint32_t again[16];
  uint32_t in_order[16];
  for (uint32_t i = 0; i < 16; i++) in_order[i] = i;
  run_order(1, 0, first);
  assert_memory_equal(first, in_order, sizeof(first));
  int differing = 0;
  for (uint64_t seed = 1; seed <= 8; seed++) {
    run_order(1, seed, first);
    run_order(1, seed, again);
    assert_memory_equal(first, again, sizeof(first));
    differing += memcmp(first, in_order, sizeof(first)) != 0;
    // Within a stream the order is that of the calls.
    uint32_t next[4] = {0, 1, 2, 3};
    for (int i = 0; i < 16; i++) {
      assert_int_equal(first[i], next[first[i] % 4]);
      next[first[i] % 4] += 4;
    }
  }
  assert_true(differing >= 7);
}

static void test_legacy_stream_orders(void** state) {
  (void)state;
  for (uint64_t seed = 0; seed < 12; seed++) {
    device_t d;
    open_device(&d, seed % 3 == 0 ? 2 : 1, seed);
    uint32_t* list = pinned(&d);
    kiln_cu_stream_t blocking;
    kiln_cu_stream_t other;
    OK(d.cu.cuStreamCreate(&blocking, KILN_CU_STREAM_DEFAULT));
    OK(d.cu.cuStreamCreate(&other, KILN_CU_STREAM_DEFAULT));
    uint64_t at = (uintptr_t)list;
    OK(launch(&d, "append", blocking, at, 1));
    OK(launch(&d, "append", NULL, at, 2));
    OK(launch(&d, "append", other, at, 3));
    OK(launch(&d, "append", KILN_CU_STREAM_LEGACY, at, 4));
    OK(launch(&d, "append", KILN_CU_STREAM_PER_THREAD, at, 5));
    OK(d.cu.cuStreamSynchronize(NULL));
    const uint32_t expected[] = {5, 1, 2, 3, 4, 5};
    assert_memory_equal(list, expected, sizeof(expected));
    close_device(&d);
  }
}

static void test_non_blocking_goes_on(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 2, 0);
  uint32_t* flag = pinned(&d);
  kiln_cu_stream_t free_stream;
  OK(d.cu.cuStreamCreate(&free_stream, KILN_CU_STREAM_NON_BLOCKING));
  // The legacy stream waits for what the other one does.
  OK(launch(&d, "wait", NULL, (uintptr_t)flag, 0));
  OK(launch(&d, "put", free_stream, (uintptr_t)flag, 1));
  OK(d.cu.cuCtxSynchronize());
  assert_int_equal(*flag, 1);
  close_device(&d);
}

static void test_events_order(void** state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 8; seed++) {
    device_t d;
    open_device(&d, 1, seed);
    uint32_t* list = pinned(&d);
    uint64_t at = (uintptr_t)list;
    kiln_cu_stream_t a;
    kiln_cu_stream_t b;
    kiln_cu_event_t event;
    OK(d.cu.cuStreamCreate(&a, KILN_CU_STREAM_NON_BLOCKING));
    OK(d.cu.cuStreamCreate(&b, KILN_CU_STREAM_NON_BLOCKING));
    OK(d.cu.cuEventCreate(&event, 0));
    OK(launch(&d, "append", a, at, 1));
    OK(d.cu.cuEventRecord(event, a));
    IS(NOT_READY, d.cu.cuEventQuery(event));
    OK(d.cu.cuStreamWaitEvent(b, event, 0));
    OK(launch(&d, "append", b, at, 2));
    // A later record does not move what was waited for.
    OK(d.cu.cuEventRecord(event, b));
    OK(d.cu.cuEventDestroy(event));
    OK(d.cu.cuStreamDestroy(a));
    OK(d.cu.cuStreamSynchronize(b));
    const uint32_t expected[] = {2, 1, 2};
    assert_memory_equal(list, expected, sizeof(expected));
    close_device(&d);
  }
}

static void test_full_queue(void** state) {
  (void)state;
  for (uint64_t seed = 0; seed < 2; seed++) {
    device_t d;
    open_device(&d, 1, seed);
    uint32_t* word = pinned(&d);
    for (int i = 0; i < 3000; i++) {
      OK(launch(&d, "add", NULL, (uintptr_t)word, 1));
    }
    OK(d.cu.cuStreamSynchronize(NULL));
    assert_int_equal(*word, 3000);
    assert_int_equal(kilni_soft_executed(), 3000);
    close_device(&d);
  }
}

// ---- Copies ----

static void test_staging(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 1, 3);  // lazy: nothing runs before somebody waits
  kiln_cu_stream_t stream;
  kiln_cu_deviceptr_t address;
  OK(d.cu.cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(d.cu.cuMemAlloc(&address, 64));
  uint32_t value = 11;
  OK(d.cu.cuMemcpyHtoDAsync(address, &value, sizeof(value), stream));
  value = 12;  // already read
  IS(NOT_READY, d.cu.cuStreamQuery(stream));
  uint32_t back = 0;
  OK(d.cu.cuMemcpyDtoHAsync(&back, address, sizeof(back), stream));
  assert_int_equal(back, 11);  // already written
  uint32_t* held = pinned(&d);
  held[0] = 21;
  OK(d.cu.cuMemcpyHtoDAsync(address, held, sizeof(*held), stream));
  held[0] = 22;  // pinned memory is read when the copy runs
  OK(d.cu.cuMemcpyDtoHAsync(held + 1, address, sizeof(*held), stream));
  assert_int_equal(held[1], 0);
  OK(d.cu.cuStreamSynchronize(stream));
  assert_int_equal(held[1], 22);
  close_device(&d);
}

static void test_use_after_ordered_free(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 1, 3);
  kiln_cu_stream_t stream;
  kiln_cu_deviceptr_t address;
  OK(d.cu.cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(d.cu.cuMemAllocAsync(&address, 64, stream));
  OK(d.cu.cuMemsetD32Async(address, 1, 16, stream));
  OK(d.cu.cuMemFreeAsync(address, stream));
  IS(INVALID_VALUE, d.cu.cuMemFreeAsync(address, stream));
  IS(INVALID_VALUE, d.cu.cuMemFree(address));
  OK(d.cu.cuMemsetD32Async(address, 1, 16, stream));
  IS(ILLEGAL_ADDRESS, d.cu.cuStreamSynchronize(stream));
  assert_int_equal(d.log_count, 1);
  close_device(&d);
}

// ---- Faults ----

static void count_call(void* user) {
  ++*(int*)user;
}

static void test_sticky(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 2, 0);
  kiln_cu_stream_t stream;
  kiln_cu_event_t event;
  kiln_cu_deviceptr_t address;
  int calls = 0;
  OK(d.cu.cuStreamCreate(&stream, 0));
  OK(d.cu.cuEventCreate(&event, 0));
  OK(d.cu.cuMemAlloc(&address, 64));
  OK(launch(&d, "bad", stream, 0, 0));
  // Behind the fault nothing runs; whether it is still taken is a race.
  kiln_cu_result_t behind = d.cu.cuLaunchHostFunc(stream, count_call, &calls);
  assert_true(behind == KILN_CU_SUCCESS ||
              behind == KILN_CU_ERROR_ILLEGAL_ADDRESS);
  IS(ILLEGAL_ADDRESS, d.cu.cuStreamSynchronize(stream));
  assert_int_equal(calls, 0);
  IS(ILLEGAL_ADDRESS, d.cu.cuCtxSynchronize());
  IS(ILLEGAL_ADDRESS, d.cu.cuMemsetD8(address, 0, 1));
  IS(ILLEGAL_ADDRESS, d.cu.cuEventQuery(event));
  IS(ILLEGAL_ADDRESS, d.cu.cuMemAlloc(&address, 4));
  // A destroy does its work and says the error.
  IS(ILLEGAL_ADDRESS, d.cu.cuStreamDestroy(stream));
  IS(INVALID_HANDLE, d.cu.cuStreamDestroy(stream));
  IS(ILLEGAL_ADDRESS, d.cu.cuMemFree(address));
  IS(INVALID_VALUE, d.cu.cuMemFree(address));
  kiln_fault_t fault;
  char text[64];
  kilni_soft_fault_of(0, &fault);
  kiln_fault_message(&fault, sizeof(text), text, NULL);
  assert_string_equal(text, "kernel \"bad\" failed");
  assert_memory_equal(d.logged, text, strlen(text));
  assert_int_equal(d.log_count, 1);
  // The end of the context ends the error.
  OK(d.cu.cuDevicePrimaryCtxRelease(0));
  OK(d.cu.cuDevicePrimaryCtxRetain(&d.context, 0));
  OK(d.cu.cuCtxSetCurrent(d.context));
  OK(d.cu.cuCtxSynchronize());
  kilni_soft_fault_of(0, &fault);
  assert_int_equal(fault.kind, KILN_FAULT_NONE);
  close_device(&d);
}

static void test_fault_cancels_others(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 2, 0);
  kiln_cu_stream_t a;
  kiln_cu_stream_t b;
  OK(d.cu.cuStreamCreate(&a, KILN_CU_STREAM_NON_BLOCKING));
  OK(d.cu.cuStreamCreate(&b, KILN_CU_STREAM_NON_BLOCKING));
  OK(launch(&d, "spin", a, 0, 0));
  OK(launch(&d, "stop", b, 0, 0));
  IS(LAUNCH_FAILED, d.cu.cuCtxSynchronize());
  assert_int_equal(d.log_count, 1);
  close_device(&d);
}

static device_t* callback_device;

static void call_back(void* user) {
  size_t a;
  size_t b;
  *(kiln_cu_result_t*)user = callback_device->cu.cuMemGetInfo(&a, &b);
}

static void test_host_function_may_not_call(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 1, 0);
  callback_device = &d;
  kiln_cu_result_t result = KILN_CU_SUCCESS;
  OK(d.cu.cuLaunchHostFunc(NULL, call_back, &result));
  OK(d.cu.cuStreamSynchronize(NULL));
  assert_int_equal(result, KILN_CU_ERROR_NOT_PERMITTED);
  close_device(&d);
}

// ---- Modules ----

static void test_load_errors(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 1, 0);
  kiln_cu_module_t module = NULL;
  char log[512] = "untouched";
  kiln_cu_jit_option_t options[] = {KILN_CU_JIT_ERROR_LOG_BUFFER,
                                    KILN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, (void*)(uintptr_t)sizeof(log)};
  IS(INVALID_PTX, d.cu.cuModuleLoadDataEx(&module,
                                          ".version 7.0\n.target sm_70\n"
                                          ".address_size 64\n  hello\n",
                                          2, options, values));
  assert_null(module);
  assert_non_null(strstr(log, "4"));  // the line
  assert_int_equal((uintptr_t)values[1], strlen(log));
  values[1] = (void*)(uintptr_t)8;  // a short buffer is cut
  IS(INVALID_PTX, d.cu.cuModuleLoadDataEx(&module, "x", 2, options, values));
  assert_int_equal(strlen(log), 7);
  IS(UNSUPPORTED_PTX_VERSION,
     d.cu.cuModuleLoadData(&module, ".version 99.0\n.target sm_70\n"));
  IS(INVALID_PTX, d.cu.cuModuleLoadData(&module,
                                        ".version 8.6\n.target sm_100\n"
                                        ".address_size 64\n"));
  IS(NO_BINARY_FOR_GPU, d.cu.cuModuleLoadData(&module,
                                              "\x7f"
                                              "ELF"));
  IS(NO_BINARY_FOR_GPU, d.cu.cuModuleLoadData(&module, "\x50\xed\x55\xba"));
  IS(INVALID_IMAGE, d.cu.cuModuleLoadData(&module, ""));
  IS(INVALID_VALUE, d.cu.cuModuleLoadData(&module, NULL));
  assert_null(module);
  kiln_cu_function_t f = NULL;
  IS(NOT_FOUND, d.cu.cuModuleGetFunction(&f, d.module, "nobody"));
  kiln_cu_deviceptr_t address;
  size_t bytes;
  OK(d.cu.cuModuleGetGlobal(&address, &bytes, d.module, "word"));
  assert_int_equal(bytes, 4);
  IS(NOT_FOUND, d.cu.cuModuleGetGlobal(&address, &bytes, d.module, "nobody"));
  close_device(&d);
}

// ---- The table ----

static void test_attributes_answer(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 1, 0);
  static const unsigned int listed[] = {
#define KILNI_CUDA_ATTRIBUTES_UNTIL                     13000  // what it is
#define KILNI_CUDA_ATTRIBUTE(name, number, since, unit) number,
#include "table/cuda_attributes.inc"
#undef KILNI_CUDA_ATTRIBUTE
  };
  int value;
  for (size_t i = 0; i < sizeof(listed) / sizeof(*listed); i++) {
    OK(d.cu.cuDeviceGetAttribute(&value, listed[i], 0));
  }
  IS(INVALID_VALUE, d.cu.cuDeviceGetAttribute(&value, 0, 0));
  IS(INVALID_VALUE, d.cu.cuDeviceGetAttribute(&value, 10000, 0));
  IS(INVALID_DEVICE, d.cu.cuDeviceGetAttribute(&value, 1, 1));
  close_device(&d);
}

// docs/reference/soft-rows.md says of each row what the table says.
static void test_rows_page(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 1, 0);
  uint8_t* page = NULL;
  size_t size = 0;
  char path[512];
  test_tree_path(path, sizeof(path), "docs/reference/soft-rows.md");
  assert_true(kiln_status_is_ok(kilni_base_file_read(
      kiln_allocator_libc(), path, 1 << 20, &page, &size)));
  size_t lines = 0;
  for (const char* at = (const char*)page; (at = strstr(at, "\n| `")); at++) {
    lines++;
  }
  assert_int_equal(lines, KILNI_CUDA_ROW_COUNT);
  for (int i = 0; i < KILNI_CUDA_ROW_COUNT; i++) {
    kilni_cuda_row_id_t row = (kilni_cuda_row_id_t)i;
    bool present = kilni_table_cuda_has(&d.cu, row);
    char begin[128];
    snprintf(begin, sizeof(begin), "\n| `%s` | %s | ",
             kilni_table_cuda_row(row)->name, present ? "present" : "absent");
    const char* line = strstr((const char*)page, begin);
    if (line == NULL) print_error("no line %s\n", begin + 1);
    assert_non_null(line);
    // An absent row has a reason.
    assert_true(present ||
                // It is there: that was asserted above.
                // NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker)
                strchr(line + strlen(begin), '|') > line + strlen(begin) + 10);
  }
  kilni_base_file_free(kiln_allocator_libc(), page, size);
  close_device(&d);
}

static void test_proc_address(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 1, 0);
  void* address = NULL;
  kiln_cu_proc_address_query_t found = 9;
  OK(d.cu.cuGetProcAddress("cuMemAlloc", &address, 12000, 0, &found));
  assert_memory_equal(&address, &d.cu.cuMemAlloc, sizeof(address));
  assert_int_equal(found, KILN_CU_GET_PROC_ADDRESS_SUCCESS);
  IS(NOT_FOUND, d.cu.cuGetProcAddress("cuMemAlloc", &address, 2000, 0, &found));
  assert_int_equal(found, KILN_CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  assert_null(address);
  IS(NOT_FOUND, d.cu.cuGetProcAddress("cuDance", &address, 12000, 0, &found));
  assert_int_equal(found, KILN_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  close_device(&d);
}

// ---- Failing allocations ----

static kiln_status_t as_status(kiln_cu_result_t result) {
  if (result == KILN_CU_SUCCESS) return kiln_ok();
  return kilni_base_status_bare(result == KILN_CU_ERROR_OUT_OF_MEMORY
                                    ? KILN_STATUS_OUT_OF_MEMORY
                                    : KILN_STATUS_INTERNAL);
}

#define TRY(call)                                                    \
  do {                                                               \
    kiln_cu_result_t try_result = (call);                            \
    if (try_result != KILN_CU_SUCCESS) return as_status(try_result); \
  } while (0)

static kiln_status_t whole_path(device_t* d) {
  kiln_cu_function_t f = NULL;
  kiln_cu_stream_t stream = NULL;
  kiln_cu_event_t event = NULL;
  kiln_cu_deviceptr_t address = 0;
  uint32_t value = 5;
  TRY(d->cu.cuInit(0));
  TRY(d->cu.cuDevicePrimaryCtxRetain(&d->context, 0));
  TRY(d->cu.cuCtxSetCurrent(d->context));
  TRY(d->cu.cuModuleLoadData(&d->module, soft_substitute_ptx));
  TRY(d->cu.cuModuleGetFunction(&f, d->module, "put"));
  TRY(d->cu.cuStreamCreate(&stream, 0));
  TRY(d->cu.cuEventCreate(&event, 0));
  TRY(d->cu.cuMemAllocAsync(&address, 64, stream));
  TRY(d->cu.cuMemcpyHtoDAsync(address, &value, sizeof(value), stream));
  void* params[] = {&address, &value};
  TRY(d->cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
  TRY(d->cu.cuEventRecord(event, stream));
  TRY(d->cu.cuStreamWaitEvent(NULL, event, 0));
  TRY(d->cu.cuMemcpyDtoHAsync(&value, address, sizeof(value), stream));
  TRY(d->cu.cuMemFreeAsync(address, stream));
  TRY(d->cu.cuCtxSynchronize());
  return kiln_ok();
}

static kiln_status_t start_and_run(kiln_allocator_t allocator, void* user) {
  (void)user;
  device_t d;
  make_host(&d, allocator);
  kilni_soft_options_t options = {
      .struct_size = sizeof(options), .worker_count = 1, .seed = 1};
  kiln_status_t status = kilni_soft_start(&d.host, &options, &d.cu);
  if (kiln_status_is_ok(status)) {
    status = whole_path(&d);
    kilni_soft_stop();
  }
  kilni_base_env_deinit(&d.env);
  return status;
}

static void test_allocation_faults(void** state) {
  (void)state;
  uint64_t points = fault_run_allocations(start_and_run, NULL, 0);
  assert_true(points > 15);
}

// ---- Many threads ----

typedef struct crowd_t {
  device_t* d;
  kiln_cu_deviceptr_t counter;
  int failures;
} crowd_t;

static void crowd_main(void* user) {
  crowd_t* crowd = user;
  device_t* d = crowd->d;
  if (d->cu.cuCtxSetCurrent(d->context) != KILN_CU_SUCCESS) crowd->failures++;
  for (int i = 0; i < 50; i++) {
    kiln_cu_stream_t stream = NULL;
    kiln_cu_event_t event = NULL;
    kiln_cu_deviceptr_t address = 0;
    uint32_t back = 0;
    uint32_t value = (uint32_t)i;
    kiln_cu_function_t f = NULL;
    void* params[] = {&address, &value};
    kiln_cu_result_t bad = d->cu.cuStreamCreate(&stream, i & 1);
    bad |= d->cu.cuEventCreate(&event, 0);
    bad |= d->cu.cuMemAllocAsync(&address, 64, stream);
    bad |= d->cu.cuModuleGetFunction(&f, d->module, "put");
    bad |= d->cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
    bad |= d->cu.cuEventRecord(event, stream);
    bad |= d->cu.cuStreamWaitEvent(KILN_CU_STREAM_PER_THREAD, event, 0);
    bad |=
        d->cu.cuMemcpyDtoHAsync(&back, address, 4, KILN_CU_STREAM_PER_THREAD);
    bad |= d->cu.cuMemFreeAsync(address, KILN_CU_STREAM_PER_THREAD);
    bad |= d->cu.cuEventDestroy(event);
    bad |= d->cu.cuStreamDestroy(stream);
    if (bad != KILN_CU_SUCCESS || back != value) crowd->failures++;
  }
}

static void test_crowd(void** state) {
  (void)state;
  for (uint64_t seed = 0; seed < 3; seed++) {
    device_t d;
    open_device(&d, 1 + (uint32_t)seed, seed);
    crowd_t crowds[3];
    kilni_base_thread_t threads[3];
    for (int i = 0; i < 3; i++) {
      crowds[i] = (crowd_t){&d, 0, 0};
      assert_true(kiln_status_is_ok(kilni_base_thread_start(
          &threads[i], "crowd", crowd_main, &crowds[i])));
    }
    for (int i = 0; i < 3; i++) {
      kilni_base_thread_join(&threads[i]);
      assert_int_equal(crowds[i].failures, 0);
    }
    OK(d.cu.cuCtxSynchronize());
    close_device(&d);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_before_init),
      cmocka_unit_test(test_two_users),
      cmocka_unit_test(test_bad_options),
      cmocka_unit_test(test_stop_cancels),
      cmocka_unit_test(test_restart_forgets),
      cmocka_unit_test(test_stale_handles),
      cmocka_unit_test(test_context_release),
      cmocka_unit_test(test_retain_while_released),
      cmocka_unit_test(test_forked_child),
      cmocka_unit_test(test_seed_decides_order),
      cmocka_unit_test(test_legacy_stream_orders),
      cmocka_unit_test(test_non_blocking_goes_on),
      cmocka_unit_test(test_events_order),
      cmocka_unit_test(test_full_queue),
      cmocka_unit_test(test_staging),
      cmocka_unit_test(test_use_after_ordered_free),
      cmocka_unit_test(test_sticky),
      cmocka_unit_test(test_fault_cancels_others),
      cmocka_unit_test(test_host_function_may_not_call),
      cmocka_unit_test(test_load_errors),
      cmocka_unit_test(test_attributes_answer),
      cmocka_unit_test(test_rows_page),
      cmocka_unit_test(test_proc_address),
      cmocka_unit_test(test_allocation_faults),
      cmocka_unit_test(test_crowd),
  };
  return cmocka_run_group_tests_name("soft_driver", tests, NULL, NULL);
}
