// SPDX-License-Identifier: Apache-2.0
//
// soft: workers are started as there is work for them, and never more than
// there may be.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// After the above, which it needs.
#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/thread.h"
#include "soft/soft.h"
#include "table/cuda_table.h"

#define OK(call) assert_int_equal((call), KILN_CU_SUCCESS)

enum { STREAMS = 6, LONG_BLOCKS = 64 };

// A block takes about a millisecond and never spins on memory.
static const char kPtx[] =
    ".version 7.8\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u32 turns)\n{\n"
    ".reg .pred %p;\n.reg .b32 %r<4>;\n"
    "ld.param.u32 %r1, [turns];\nmov.u32 %r2, 0;\n"
    "LOOP:\nsetp.ge.u32 %p, %r2, %r1;\n@%p bra OUT;\n"
    "add.u32 %r2, %r2, 1;\nxor.b32 %r3, %r3, %r2;\nbra LOOP;\n"
    "OUT:\nret;\n}\n";

// one-thread
typedef struct device_t {
  kilni_base_env_t env;
  kiln_host_t host;
  kiln_cuda_table_t cu;
  kiln_cu_function_t kernel;
} device_t;

static void open_device(device_t* d, uint32_t workers) {
  memset(d, 0, sizeof(*d));
  assert_null(kilni_base_env_init(&d->env, kiln_allocator_libc()));
  for (int i = 0; i < KILNI_ENV_COUNT; i++) {
    assert_null(kilni_base_env_set(&d->env, (kilni_base_env_id_t)i, NULL));
  }
  d->host = (kiln_host_t){.allocator = kiln_allocator_libc(),
                          .env = &d->env,
                          .process_id = kilni_base_process_id()};
  kilni_soft_options_t options = {.struct_size = sizeof(options),
                                  .worker_count = workers};
  assert_null(kilni_soft_start(&d->host, &options, &d->cu));
  kiln_cu_context_t context;
  kiln_cu_module_t module;
  OK(d->cu.cuInit(0));
  OK(d->cu.cuDevicePrimaryCtxRetain(&context, 0));
  OK(d->cu.cuCtxSetCurrent(context));
  OK(d->cu.cuModuleLoadData(&module, kPtx));
  OK(d->cu.cuModuleGetFunction(&d->kernel, module, "k"));
}

static void close_device(device_t* d) {
  kilni_soft_stop();
  kilni_base_env_deinit(&d->env);
}

static void launch(device_t* d, uint32_t blocks, uint32_t turns) {
  void* params[] = {&turns};
  OK(d->cu.cuLaunchKernel(d->kernel, blocks, 1, 1, 1, 1, 1, 0, NULL, params,
                          NULL));
  OK(d->cu.cuCtxSynchronize());
}

// The threads of this process that are workers.
static uint32_t count_workers(void) {
  uint32_t count = 0;
  DIR* tasks = opendir("/proc/self/task");
  assert_non_null(tasks);
  for (struct dirent* task; (task = readdir(tasks)) != NULL;) {
    char path[512];
    char name[32] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
    FILE* file = task->d_name[0] != '.' ? fopen(path, "r") : NULL;
    if (file == NULL) continue;
    if (fgets(name, sizeof(name), file) == NULL) name[0] = 0;
    fclose(file);
    count += strcmp(name, "kiln-soft\n") == 0;
  }
  closedir(tasks);
  return count;
}

static void test_no_more_than_there_is_work_for(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 1000);
  assert_in_range(count_workers(), 1, 2);
  for (int i = 0; i < 20; i++) launch(&d, 1, 1);
  kiln_cu_deviceptr_t memory;
  OK(d.cu.cuMemAlloc(&memory, 4096));
  OK(d.cu.cuMemsetD8Async(memory, 1, 4096, NULL));
  OK(d.cu.cuCtxSynchronize());
  assert_in_range(count_workers(), 1, 2);
  // Three blocks are no work for four.
  for (int i = 0; i < 20; i++) launch(&d, 3, 1);
  assert_in_range(count_workers(), 2, 3);
  close_device(&d);
}

static void test_blocks_get_workers(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 5);
  launch(&d, LONG_BLOCKS, 20000);
  assert_in_range(count_workers(), 3, 5);
  close_device(&d);
}

static void test_one_worker_is_one(void** state) {
  (void)state;
  device_t d;
  open_device(&d, 1);
  launch(&d, LONG_BLOCKS, 100);
  assert_int_equal(count_workers(), 1);
  close_device(&d);
}

// Functions that are done only once so many of them have come.
// thread-safe
typedef struct meeting_t {
  pthread_barrier_t all;
} meeting_t;

static void meet(void* user) {
  meeting_t* meeting = user;
  pthread_barrier_wait(&meeting->all);
}

// Whatever is ready runs, though what runs already waits for it.
static void test_tasks_that_wait_for_each_other(void** state) {
  (void)state;
  device_t d;
  meeting_t meeting;
  assert_int_equal(pthread_barrier_init(&meeting.all, NULL, STREAMS), 0);
  open_device(&d, STREAMS);
  kiln_cu_stream_t streams[STREAMS];
  for (int i = 0; i < STREAMS; i++) {
    OK(d.cu.cuStreamCreate(&streams[i], KILN_CU_STREAM_NON_BLOCKING));
  }
  for (int turn = 0; turn < 10; turn++) {
    for (int i = 0; i < STREAMS; i++) {
      OK(d.cu.cuLaunchHostFunc(streams[i], meet, &meeting));
    }
    OK(d.cu.cuCtxSynchronize());
  }
  assert_int_equal(count_workers(), STREAMS);
  close_device(&d);
  pthread_barrier_destroy(&meeting.all);
}

// How many run at one time. thread-safe
typedef struct crowd_t {
  atomic_uint inside;
  atomic_uint most;
} crowd_t;

static void crowd(void* user) {
  crowd_t* c = user;
  uint32_t now = atomic_fetch_add(&c->inside, 1) + 1;
  uint32_t most = atomic_load(&c->most);
  while (now > most && !atomic_compare_exchange_weak(&c->most, &most, now)) {
  }
  atomic_fetch_sub(&c->inside, 1);
}

static void test_the_limit_holds(void** state) {
  (void)state;
  device_t d;
  crowd_t c = {0};
  open_device(&d, 3);
  for (int i = 0; i < 4 * STREAMS; i++) {
    kiln_cu_stream_t stream;
    OK(d.cu.cuStreamCreate(&stream, KILN_CU_STREAM_NON_BLOCKING));
    for (int turn = 0; turn < 20; turn++) {
      OK(d.cu.cuLaunchHostFunc(stream, crowd, &c));
    }
  }
  OK(d.cu.cuCtxSynchronize());
  assert_in_range(atomic_load(&c.most), 1, 3);
  assert_in_range(count_workers(), 2, 3);
  close_device(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_more_than_there_is_work_for),
      cmocka_unit_test(test_blocks_get_workers),
      cmocka_unit_test(test_one_worker_is_one),
      cmocka_unit_test(test_tasks_that_wait_for_each_other),
      cmocka_unit_test(test_the_limit_holds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
