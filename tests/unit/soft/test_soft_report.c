// SPDX-License-Identifier: Apache-2.0
//
// soft: errors of programs that the software device looks for when it is asked
// to: each planted and found, and not found in the program that is right.
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// After the above, which it needs.
#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/status_make.h"
#include "base/thread.h"
#include "soft_fault_story.h"
#include "soft/soft.h"
#include "table/cuda_table.h"

#define OK(call)    assert_int_equal((call), KILN_CU_SUCCESS)
#define IS(e, call) assert_int_equal((call), KILN_CU_ERROR_##e)

enum { THREADS = 64, BYTES = THREADS * 4 };

// Each kernel takes (out, in) and runs THREADS threads.
static const char kPtx[] =
    ".version 7.8\n.target sm_80\n.address_size 64\n"
#define HEAD(name)                                        \
  ".visible .entry " name                                 \
  "(.param .u64 out, .param .u64 in)\n{\n"                \
  ".reg .pred %p;\n.reg .b32 %r<8>;\n.reg .b64 %d<12>;\n" \
  ".shared .align 16 .b8 tile[256];\n"                    \
  "ld.param.u64 %d1, [out];\nld.param.u64 %d2, [in];\n"   \
  "mov.u32 %r1, %tid.x;\nmul.wide.u32 %d3, %r1, 4;\n"     \
  "add.s64 %d4, %d1, %d3;\nadd.s64 %d5, %d2, %d3;\n"      \
  "mov.u64 %d6, tile;\nadd.s64 %d7, %d6, %d3;\n"
    HEAD("put") "st.global.u32 [%d4], %r1;\nret;\n}\n"
    HEAD("copy") "ld.global.u32 %r2, [%d5];\n"
    "st.global.u32 [%d4], %r2;\nret;\n}\n"
    HEAD("copy_generic") "ld.u32 %r2, [%d5];\n"
    "st.u32 [%d4], %r2;\nret;\n}\n"
    HEAD("copy_volatile") "ld.volatile.global.u32 %r2, [%d5];\n"
    "st.volatile.global.u32 [%d4], %r2;\nret;\n}\n"
    HEAD("copy_v2") "and.b32 %r3, %r1, 31;\nmul.wide.u32 %d8, %r3, 8;\n"
    "add.s64 %d9, %d2, %d8;\nadd.s64 %d10, %d1, %d8;\n"
    "ld.global.v2.u32 {%r2, %r4}, [%d9];\n"
    "st.global.v2.u32 [%d10], {%r2, %r4};\nret;\n}\n"
    HEAD("copy_async") "cvt.u32.u64 %r2, %d7;\n"
    "cp.async.ca.shared.global [%r2], [%d5], 4;\n"
    "cp.async.wait_all;\nld.shared.u32 %r3, [%r2];\n"
    "st.global.u32 [%d4], %r3;\nret;\n}\n"
    HEAD("count") "atom.global.add.u32 %r2, [%d2], 1;\nret;\n}\n"
    HEAD("through_shared") "cvt.u32.u64 %r2, %d7;\n"
    "st.shared.u32 [%r2], %r1;\nbar.sync 0;\n"
    "ld.shared.u32 %r3, [%r2];\nst.global.u32 [%d4], %r3;\nret;\n}\n"
    HEAD("half_shared") "cvt.u32.u64 %r2, %d7;\n"
    "setp.lt.u32 %p, %r1, 32;\n@%p st.shared.u32 [%r2], %r1;\n"
    "bar.sync 0;\nld.shared.u32 %r3, [%r2];\n"
    "st.global.u32 [%d4], %r3;\nret;\n}\n";

// one-thread
typedef struct device_t {
  kilni_base_env_t env;
  kiln_host_t host;
  kiln_cuda_table_t cu;
  kiln_cu_module_t module;
} device_t;

static void make_host(device_t* d) {
  memset(d, 0, sizeof(*d));
  assert_null(kilni_base_env_init(&d->env, kiln_allocator_libc()));
  for (int i = 0; i < KILNI_ENV_COUNT; i++) {
    assert_null(kilni_base_env_set(&d->env, (kilni_base_env_id_t)i, NULL));
  }
  d->host = (kiln_host_t){.allocator = kiln_allocator_libc(),
                          .env = &d->env,
                          .process_id = kilni_base_process_id()};
}

static void open_with(device_t* d, const kilni_soft_options_t* options) {
  make_host(d);
  assert_null(kilni_soft_start(&d->host, options, &d->cu));
  kiln_cu_context_t context;
  OK(d->cu.cuInit(0));
  OK(d->cu.cuDevicePrimaryCtxRetain(&context, 0));
  OK(d->cu.cuCtxSetCurrent(context));
  OK(d->cu.cuModuleLoadData(&d->module, kPtx));
}

static void open_report(device_t* d, const char* report, uint32_t workers) {
  kilni_soft_options_t options = {.struct_size = sizeof(options),
                                  .worker_count = workers,
                                  .report = report};
  open_with(d, &options);
}

static void close_device(device_t* d) {
  kilni_soft_stop();
  kilni_base_env_deinit(&d->env);
}

static kiln_cu_result_t launch(device_t* d, const char* name,
                               kiln_cu_stream_t stream, kiln_cu_deviceptr_t out,
                               kiln_cu_deviceptr_t in) {
  kiln_cu_function_t function = NULL;
  void* params[] = {&out, &in};
  OK(d->cu.cuModuleGetFunction(&function, d->module, name));
  return d->cu.cuLaunchKernel(function, 1, 1, 1, THREADS, 1, 1, 0, stream,
                              params, NULL);
}

static void assert_told(const char* part) {
  char text[4096];
  soft_fault_story(text, sizeof(text));
  if (strstr(text, part) != NULL) return;
  print_error("the report lacks \"%s\":\n%s\n", part, text);
  fail();
}

// ---- Memory never written ----

static const char* const kReaders[] = {
    "copy", "copy_generic", "copy_volatile", "copy_v2", "copy_async", "count"};
enum { READERS = sizeof(kReaders) / sizeof(kReaders[0]) };

// Who reads one word that is missing is found, whatever reads it.
static void test_unwritten_is_found(void** state) {
  (void)state;
  for (size_t i = 0; i < READERS; i++) {
    device_t d;
    kiln_cu_deviceptr_t in;
    kiln_cu_deviceptr_t out;
    open_report(&d, "unwritten", 1);
    OK(d.cu.cuMemAlloc(&in, BYTES));
    OK(d.cu.cuMemAlloc(&out, BYTES));
    // `count` reads the first word, the others all.
    bool first = strcmp(kReaders[i], "count") == 0;
    OK(d.cu.cuMemsetD32(first ? in + 4 : in, 7, 40));
    OK(launch(&d, kReaders[i], NULL, out, in));
    IS(LAUNCH_FAILED, d.cu.cuCtxSynchronize());
    assert_told("read of uninitialised memory: ");
    assert_told(first ? "byte 0 of a 256-byte allocation"
                      : "byte 160 of a 256-byte allocation");
    char place[64];
    snprintf(place, sizeof(place), "in kernel \"%s\"", kReaders[i]);
    assert_told(place);
    assert_told(first                                 ? "thread (0, 0, 0)"
                : strcmp(kReaders[i], "copy_v2") == 0 ? "thread (20, 0, 0)"
                                                      : "thread (40, 0, 0)");
    assert_told("Fix: ");
    close_device(&d);
  }
}

// The same with all of it written: by a fill, a copy of the host's, and a
// kernel.
static void test_written_is_not(void** state) {
  (void)state;
  for (uint32_t workers = 1; workers <= 2; workers++) {
    for (size_t i = 0; i < READERS * 3; i++) {
      device_t d;
      kiln_cu_deviceptr_t in;
      kiln_cu_deviceptr_t out;
      uint32_t data[THREADS] = {0};
      open_report(&d, "all", workers);
      OK(d.cu.cuMemAlloc(&in, BYTES));
      OK(d.cu.cuMemAlloc(&out, BYTES));
      if (i / READERS == 0) OK(d.cu.cuMemsetD8(in, 7, BYTES));
      if (i / READERS == 1) OK(d.cu.cuMemcpyHtoD(in, data, BYTES));
      if (i / READERS == 2) OK(launch(&d, "put", NULL, in, 0));
      OK(launch(&d, kReaders[i % READERS], NULL, out, in));
      OK(d.cu.cuCtxSynchronize());
      // What a kernel wrote can be read.
      if (strcmp(kReaders[i % READERS], "count") != 0) {
        OK(launch(&d, "copy", NULL, in, out));
      }
      OK(d.cu.cuCtxSynchronize());
      close_device(&d);
    }
  }
}

// A copy within the device copies what was never written too, and an
// allocation starts anew where another was.
static void test_unwritten_is_copied(void** state) {
  (void)state;
  device_t d;
  kiln_cu_deviceptr_t a;
  kiln_cu_deviceptr_t b;
  open_report(&d, "unwritten", 1);
  OK(d.cu.cuMemAlloc(&a, 2 * BYTES));
  OK(d.cu.cuMemAlloc(&b, 2 * BYTES));
  OK(d.cu.cuMemsetD8(a, 1, BYTES));
  OK(d.cu.cuMemsetD8(b, 1, 2 * BYTES));
  OK(d.cu.cuMemcpyDtoD(b + 4, a, 2 * BYTES - 4));
  OK(launch(&d, "copy", NULL, a, b));
  OK(d.cu.cuCtxSynchronize());
  OK(launch(&d, "copy", NULL, a, b + 8));
  IS(LAUNCH_FAILED, d.cu.cuCtxSynchronize());
  assert_told("byte 260 of a 512-byte allocation");
  assert_told("thread (63, 0, 0)");
  close_device(&d);
}

static void test_pinned_and_off(void** state) {
  (void)state;
  device_t d;
  kiln_cu_deviceptr_t out;
  kiln_cu_deviceptr_t in;
  void* host;
  // Of the host's memory nobody knows.
  open_report(&d, "unwritten", 1);
  OK(d.cu.cuMemHostAlloc(&host, BYTES, 0));
  OK(d.cu.cuMemAlloc(&out, BYTES));
  OK(d.cu.cuMemAllocManaged(&in, BYTES, KILN_CU_MEM_ATTACH_GLOBAL));
  OK(launch(&d, "copy", NULL, out, (uintptr_t)host));
  OK(launch(&d, "copy", NULL, out, in));
  OK(d.cu.cuCtxSynchronize());
  close_device(&d);
  // Without the mode nothing is looked for.
  open_report(&d, NULL, 1);
  OK(d.cu.cuMemAlloc(&in, BYTES));
  OK(d.cu.cuMemAlloc(&out, BYTES));
  OK(launch(&d, "copy", NULL, out, in));
  OK(launch(&d, "half_shared", NULL, out, in));
  OK(d.cu.cuCtxSynchronize());
  close_device(&d);
}

static void test_unwritten_shared(void** state) {
  (void)state;
  device_t d;
  kiln_cu_deviceptr_t out;
  open_report(&d, "unwritten", 1);
  OK(d.cu.cuMemAlloc(&out, BYTES));
  OK(launch(&d, "through_shared", NULL, out, 0));
  OK(d.cu.cuCtxSynchronize());
  OK(launch(&d, "half_shared", NULL, out, 0));
  IS(LAUNCH_FAILED, d.cu.cuCtxSynchronize());
  assert_told("byte 128 of the block's shared memory (256 bytes)");
  assert_told("thread (32, 0, 0)");
  close_device(&d);
}

// Moves the place where the next search for addresses begins to the end of the
// window, so that the one after it starts at the front.
static void use_up_addresses(device_t* d) {
  uint64_t last = 0;
  for (size_t bytes = (size_t)1 << 36; bytes >= 2u << 20;) {
    kiln_cu_deviceptr_t at = 0;
    kiln_cu_result_t result = d->cu.cuMemAddressReserve(&at, bytes, 0, last, 0);
    if (result == KILN_CU_SUCCESS) OK(d->cu.cuMemAddressFree(at, bytes));
    if (result != KILN_CU_SUCCESS || at < last) {
      bytes /= 2;
    } else {
      last = at + bytes;
    }
  }
  // The last search went round: back to the end, by its address.
  kiln_cu_deviceptr_t at;
  OK(d->cu.cuMemAddressReserve(&at, 2u << 20, 0, last - (2u << 20), 0));
  assert_int_equal(at, last - (2u << 20));
  OK(d->cu.cuMemAddressFree(at, 2u << 20));
}

// Where memory was that was written, new memory is unwritten: marks of whole
// pages and of less.
static void test_unwritten_again(void** state) {
  (void)state;
  static const size_t kBytes[] = {BYTES, 3 << 20};
  for (size_t i = 0; i < 2; i++) {
    device_t d;
    kiln_cu_deviceptr_t in;
    kiln_cu_deviceptr_t again;
    kiln_cu_deviceptr_t out;
    open_report(&d, "unwritten", 1);
    OK(d.cu.cuMemAlloc(&out, BYTES));
    OK(d.cu.cuMemAlloc(&in, kBytes[i]));
    OK(d.cu.cuMemsetD8(in, 1, kBytes[i]));
    OK(launch(&d, "copy", NULL, out, in + kBytes[i] - BYTES));
    OK(d.cu.cuCtxSynchronize());
    OK(d.cu.cuMemFree(in));
    use_up_addresses(&d);
    OK(d.cu.cuMemAlloc(&again, kBytes[i]));
    assert_int_equal(again, in);
    OK(launch(&d, "copy", NULL, out, in + kBytes[i] - BYTES));
    IS(LAUNCH_FAILED, d.cu.cuCtxSynchronize());
    close_device(&d);
  }
}

static void test_report_names(void** state) {
  (void)state;
  device_t d;
  make_host(&d);
  static const char* const kBad[] = {"unwriten", "unwritten;all", ",",
                                     "unwritten,,all"};
  for (size_t i = 0; i < sizeof(kBad) / sizeof(kBad[0]); i++) {
    assert_null(
        kilni_base_env_set(&d.env, KILNI_ENV_KILN_SOFT_REPORT, kBad[i]));
    kiln_status_t status = kilni_soft_start(&d.host, NULL, &d.cu);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(kiln_status_fix(status), "KILN_SOFT_REPORT"));
    kiln_status_free(status);
  }
  assert_null(
      kilni_base_env_set(&d.env, KILNI_ENV_KILN_SOFT_REPORT, "unwritten,all"));
  assert_null(kilni_soft_start(&d.host, NULL, &d.cu));
  kiln_cuda_table_t second;
  kilni_soft_options_t other = {.struct_size = sizeof(other), .report = ""};
  kiln_status_t status = kilni_soft_start(&d.host, &other, &second);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_STATE);
  kiln_status_free(status);
  close_device(&d);
}

// ---- Order ----

// one-thread
typedef struct streams_t {
  device_t d;
  kiln_cu_stream_t a;
  kiln_cu_stream_t b;
  kiln_cu_event_t event;
  kiln_cu_deviceptr_t data;
  kiln_cu_deviceptr_t out;
  uint32_t* host;  // page-locked
} streams_t;

static void open_streams(streams_t* s, const char* order, uint64_t seed,
                         uint32_t workers) {
  kilni_soft_options_t options = {.struct_size = sizeof(options),
                                  .worker_count = workers,
                                  .seed = seed,
                                  .report = "unwritten",
                                  .order = order};
  void* host;
  open_with(&s->d, &options);
  kiln_cuda_table_t* cu = &s->d.cu;
  OK(cu->cuStreamCreate(&s->a, KILN_CU_STREAM_NON_BLOCKING));
  OK(cu->cuStreamCreate(&s->b, KILN_CU_STREAM_NON_BLOCKING));
  OK(cu->cuEventCreate(&s->event, 0));
  OK(cu->cuMemAlloc(&s->data, BYTES));
  OK(cu->cuMemAlloc(&s->out, BYTES));
  OK(cu->cuMemHostAlloc(&host, BYTES, 0));
  s->host = host;
  memset(host, 0xee, BYTES);
}

// One stream makes what the other one reads; with or without the wait.
static void two_streams(streams_t* s, bool waits) {
  kiln_cuda_table_t* cu = &s->d.cu;
  OK(launch(&s->d, "put", s->a, s->data, 0));
  OK(cu->cuEventRecord(s->event, s->a));
  if (waits) OK(cu->cuStreamWaitEvent(s->b, s->event, 0));
  OK(launch(&s->d, "copy", s->b, s->out, s->data));
}

static void test_missing_wait(void** state) {
  (void)state;
  for (uint64_t seed = 0; seed < 4; seed++) {
    for (uint32_t workers = 1; workers <= 2; workers++) {
      streams_t s;
      open_streams(&s, "latest", seed, workers);
      two_streams(&s, false);
      IS(LAUNCH_FAILED, s.d.cu.cuStreamSynchronize(s.b));
      assert_told("of a 256-byte allocation");
      assert_told("in kernel \"copy\"");
      close_device(&s.d);
      open_streams(&s, "latest", seed, workers);
      two_streams(&s, true);
      OK(s.d.cu.cuMemcpyDtoHAsync(s.host, s.out, BYTES, s.b));
      OK(s.d.cu.cuStreamSynchronize(s.b));
      assert_int_equal(s.host[THREADS - 1], THREADS - 1);
      close_device(&s.d);
    }
  }
  // Waiting for everything, too, runs the stream first that came last.
  streams_t s;
  open_streams(&s, "latest", 0, 1);
  two_streams(&s, false);
  IS(LAUNCH_FAILED, s.d.cu.cuCtxSynchronize());
  close_device(&s.d);
}

// Some seeds find it with the order of one worker and a seed as well.
static void test_missing_wait_by_seed(void** state) {
  (void)state;
  int found = 0;
  for (uint64_t seed = 1; seed <= 16; seed++) {
    streams_t s;
    open_streams(&s, NULL, seed, 1);
    two_streams(&s, false);
    found += s.d.cu.cuCtxSynchronize() == KILN_CU_ERROR_LAUNCH_FAILED;
    close_device(&s.d);
    open_streams(&s, NULL, seed, 1);
    two_streams(&s, true);
    OK(s.d.cu.cuCtxSynchronize());
    close_device(&s.d);
  }
  assert_in_range(found, 2, 14);
}

// Only what is asked after runs, and nothing of another stream.
static void test_nothing_runs_early(void** state) {
  (void)state;
  streams_t s;
  open_streams(&s, "latest", 0, 2);
  kiln_cuda_table_t* cu = &s.d.cu;
  OK(launch(&s.d, "put", s.a, s.data, 0));
  OK(cu->cuMemcpyDtoHAsync(s.host, s.data, BYTES, s.a));
  OK(launch(&s.d, "put", s.b, s.out, 0));
  OK(cu->cuStreamSynchronize(s.b));
  // Read back before the copy was waited for.
  assert_int_equal(s.host[1], 0xeeeeeeee);
  OK(cu->cuStreamSynchronize(s.a));
  assert_int_equal(s.host[1], 1);
  // Changed while a copy from it is pending.
  s.host[1] = 21;
  OK(cu->cuMemcpyHtoDAsync(s.data, s.host, BYTES, s.a));
  s.host[1] = 22;
  OK(cu->cuMemcpyDtoHAsync(s.host + 2, s.data + 4, 4, s.a));
  OK(cu->cuStreamSynchronize(s.a));
  assert_int_equal(s.host[2], 22);
  // A query is enough to make it run.
  OK(launch(&s.d, "put", s.a, s.data, 0));
  OK(cu->cuEventRecord(s.event, s.a));
  while (cu->cuEventQuery(s.event) == KILN_CU_ERROR_NOT_READY) sched_yield();
  OK(cu->cuEventQuery(s.event));
  close_device(&s.d);
}

// Chains through events, several streams, host functions and a full queue.
static void test_latest_is_an_order(void** state) {
  (void)state;
  for (uint64_t seed = 0; seed < 3; seed++) {
    streams_t s;
    open_streams(&s, "latest", seed, 2);
    kiln_cuda_table_t* cu = &s.d.cu;
    OK(cu->cuMemsetD32Async(s.data, 0, THREADS, s.a));
    for (int i = 0; i < 700; i++) {
      kiln_cu_stream_t from = i % 2 ? s.b : s.a;
      kiln_cu_stream_t to = i % 2 ? s.a : s.b;
      OK(launch(&s.d, "count", from, 0, s.data));
      OK(cu->cuEventRecord(s.event, from));
      OK(cu->cuStreamWaitEvent(to, s.event, 0));
    }
    OK(cu->cuMemcpyDtoHAsync(s.host, s.data, 4, s.a));
    OK(cu->cuStreamSynchronize(s.a));
    assert_int_equal(s.host[0], 700 * THREADS);
    close_device(&s.d);
  }
}

// ---- Memory that is freed ----

static void use_block(streams_t* s, const char* what, kiln_cu_stream_t stream,
                      kiln_cu_deviceptr_t block) {
  kiln_cuda_table_t* cu = &s->d.cu;
  if (strcmp(what, "fill") == 0) {
    OK(cu->cuMemsetD32Async(block, 1, THREADS, stream));
  } else if (strcmp(what, "from") == 0) {
    OK(cu->cuMemcpyDtoDAsync(s->out, block, BYTES, stream));
  } else if (strcmp(what, "to") == 0) {
    OK(cu->cuMemcpyDtoDAsync(block, s->data, BYTES, stream));
  } else if (strcmp(what, "put") == 0) {
    OK(launch(&s->d, what, stream, block, 0));
  } else {
    OK(launch(&s->d, what, stream, s->out, block));
  }
}

static void open_freed(streams_t* s, const char* order, const char* report) {
  kilni_soft_options_t options = {.struct_size = sizeof(options),
                                  .worker_count = 1,
                                  .report = report,
                                  .order = order};
  open_with(&s->d, &options);
  kiln_cuda_table_t* cu = &s->d.cu;
  OK(cu->cuStreamCreate(&s->a, KILN_CU_STREAM_NON_BLOCKING));
  OK(cu->cuStreamCreate(&s->b, KILN_CU_STREAM_NON_BLOCKING));
  OK(cu->cuEventCreate(&s->event, 0));
  OK(cu->cuMemAlloc(&s->data, BYTES));
  OK(cu->cuMemAlloc(&s->out, BYTES));
}

static const char* const kUsers[] = {
    "put", "copy", "copy_volatile", "copy_async", "fill", "from", "to"};
enum { USERS = sizeof(kUsers) / sizeof(kUsers[0]) };

// A block that stream a uses last and frees, while b still uses it; with or
// without a's waiting for b. `free_first`: the free runs before the use.
static void free_and_use(streams_t* s, const char* what, bool waits,
                         bool free_first) {
  kiln_cuda_table_t* cu = &s->d.cu;
  kiln_cu_deviceptr_t block;
  OK(cu->cuMemAllocAsync(&block, BYTES, s->a));
  OK(cu->cuMemsetD32Async(block, 0, THREADS, s->a));
  OK(cu->cuStreamSynchronize(s->a));
  // Something of a's that the free has to wait for.
  OK(cu->cuMemsetD32Async(s->data, 1, THREADS, s->a));
  use_block(s, what, s->b, block);
  if (waits) {
    OK(cu->cuEventRecord(s->event, s->b));
    OK(cu->cuStreamWaitEvent(s->a, s->event, 0));
  }
  OK(cu->cuMemFreeAsync(block, s->a));
  if (free_first) (void)cu->cuStreamSynchronize(s->a);
}

static void test_freed_is_found(void** state) {
  (void)state;
  for (size_t i = 0; i < USERS * 4; i++) {
    const char* what = kUsers[i % USERS];
    bool free_first = i / USERS % 2;
    bool waits = i / USERS / 2;
    streams_t s;
    open_freed(&s, "latest", "freed");
    free_and_use(&s, what, waits, free_first);
    kiln_cu_result_t result = s.d.cu.cuStreamSynchronize(s.b);
    if (waits) {
      OK(result);
      OK(s.d.cu.cuCtxSynchronize());
    } else {
      assert_int_equal(result, KILN_CU_ERROR_ILLEGAL_ADDRESS);
      assert_told("use after free: ");
      assert_told(" of a 256-byte allocation");
      assert_told("cuMemFreeAsync on stream 0x");
      assert_told(free_first ? "has freed it"
                             : "frees it without waiting for this");
      assert_told(free_first ? "Fix: free the memory after the work"
                             : "Fix: let the stream of the free wait");
    }
    close_device(&s.d);
  }
}

// Use between the free and the reuse of the block, on the stream itself.
static void test_used_behind_the_free(void** state) {
  (void)state;
  for (size_t i = 0; i < USERS; i++) {
    streams_t s;
    kiln_cu_deviceptr_t block;
    kiln_cu_deviceptr_t next;
    open_freed(&s, "latest", "all");
    OK(s.d.cu.cuMemAllocAsync(&block, BYTES, s.a));
    OK(s.d.cu.cuMemsetD8Async(s.data, 0, BYTES, s.a));
    OK(s.d.cu.cuMemsetD8Async(block, 0, BYTES, s.a));
    OK(s.d.cu.cuMemFreeAsync(block, s.a));
    OK(s.d.cu.cuMemAllocAsync(&next, BYTES, s.a));
    assert_int_not_equal(next, block);
    use_block(&s, kUsers[i], s.a, block);
    IS(ILLEGAL_ADDRESS, s.d.cu.cuStreamSynchronize(s.a));
    assert_told("use after free: ");
    assert_told("cuMemFreeAsync on stream 0x");
    assert_told("has freed");
    close_device(&s.d);
  }
}

// The same after a free that waited for everything; and of an address that
// nothing was ever at nothing is told of a free.
static void test_used_behind_a_waiting_free(void** state) {
  (void)state;
  streams_t s;
  kiln_cu_deviceptr_t block;
  open_freed(&s, NULL, "freed");
  OK(s.d.cu.cuMemAlloc(&block, BYTES));
  OK(s.d.cu.cuMemFree(block));
  OK(launch(&s.d, "copy", s.a, s.out, block));
  IS(ILLEGAL_ADDRESS, s.d.cu.cuStreamSynchronize(s.a));
  assert_told("byte 0 of a 256-byte allocation");
  assert_told("cuMemFree has freed it");
  close_device(&s.d);
  open_freed(&s, NULL, "freed");
  OK(launch(&s.d, "copy", s.a, s.out, s.data + (1 << 20)));
  IS(ILLEGAL_ADDRESS, s.d.cu.cuStreamSynchronize(s.a));
  char text[4096];
  soft_fault_story(text, sizeof(text));
  assert_null(strstr(text, "use after free"));
  close_device(&s.d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_unwritten_is_found),
      cmocka_unit_test(test_written_is_not),
      cmocka_unit_test(test_unwritten_is_copied),
      cmocka_unit_test(test_pinned_and_off),
      cmocka_unit_test(test_unwritten_shared),
      cmocka_unit_test(test_unwritten_again),
      cmocka_unit_test(test_report_names),
      cmocka_unit_test(test_missing_wait),
      cmocka_unit_test(test_missing_wait_by_seed),
      cmocka_unit_test(test_nothing_runs_early),
      cmocka_unit_test(test_latest_is_an_order),
      cmocka_unit_test(test_freed_is_found),
      cmocka_unit_test(test_used_behind_the_free),
      cmocka_unit_test(test_used_behind_a_waiting_free),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
