// SPDX-License-Identifier: Apache-2.0
//
// dispatch: pageable memory through pinned memory: by one thread and by
// several, at every size and alignment, from many threads at once; what is
// counted as kept and in use; and threads that cannot be started.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "dispatch_crowd.h"
#include "table/cuda_table.h"

enum { CHUNK = 1 << 17, MOST = 7 * CHUNK + 4099 };

// ---- Threads that cannot be started ----

static atomic_bool g_no_threads;
static atomic_uint g_starts;

// The linker leads the library's calls here.
int __real_pthread_create(pthread_t* out, const pthread_attr_t* attributes,
                          void* (*start)(void*), void* user);
int __wrap_pthread_create(pthread_t* out, const pthread_attr_t* attributes,
                          void* (*start)(void*), void* user);
int __wrap_pthread_create(pthread_t* out, const pthread_attr_t* attributes,
                          void* (*start)(void*), void* user) {
  atomic_fetch_add(&g_starts, 1);
  if (atomic_load(&g_no_threads)) return EAGAIN;
  return __real_pthread_create(out, attributes, start, user);
}

// ---- Bytes ----

static uint8_t byte_at(uint64_t i, uint32_t seed) {
  return (uint8_t)((i + seed) * 2654435761u >> 11);
}

static void fill(uint8_t* bytes, uint64_t count, uint32_t seed) {
  for (uint64_t i = 0; i < count; i++) bytes[i] = byte_at(i, seed);
}

static void open_with(dispatch_kit_t* kit, uint32_t threads, uint32_t chunks,
                      uint32_t chunk_bytes) {
  kiln_dispatcher_options_t options = kiln_dispatcher_options_default();
  options.copy_threads = threads;
  options.staging_chunk_bytes = chunk_bytes;
  options.staging_bytes = (uint64_t)chunks * chunk_bytes;
  dispatch_kit_open_with(kit, &options);
}

static kiln_dispatcher_counts_t counts_of(dispatch_kit_t* kit) {
  kiln_dispatcher_counts_t counts;
  kiln_dispatcher_counts(kit->dispatcher, &counts);
  return counts;
}

// ---- Both ways ----

// Up at an odd place, down by waiting and by an event; nothing around it is
// touched.
static void go_round(dispatch_kit_t* kit, kiln_resident_t r, uint64_t bytes,
                     uint32_t odd, uint8_t* from, uint8_t* to) {
  assert_null(
      kiln_resident_upload(kit->dispatcher, NULL, r, odd, bytes, from + odd));
  // The source is ours again.
  uint8_t first = bytes > 0 ? from[odd] : 0;
  if (bytes > 0) from[odd] = (uint8_t)~first;
  for (int by_event = 0; by_event < 2; by_event++) {
    memset(to, 0xa5, bytes + 128);
    kiln_resident_download_t one = {r, odd, bytes, to + 64 - odd};
    kiln_pending_t* pending = NULL;
    assert_null(kiln_resident_download_many(kit->dispatcher, NULL, &one, 1,
                                            by_event ? &pending : NULL));
    if (by_event) {
      assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
    }
    kiln_pending_release(pending);
    assert_int_equal(to[63 - odd], 0xa5);
    assert_int_equal(to[64 - odd + bytes], 0xa5);
    if (bytes == 0) continue;
    assert_int_equal(to[64 - odd], first);
    assert_memory_equal(to + 65 - odd, from + odd + 1, bytes - 1);
  }
  if (bytes > 0) from[odd] = first;
}

static void test_sizes(void** state) {
  (void)state;
  const struct {
    uint32_t threads, chunks, chunk_bytes;
  } kRings[] = {{1, 1, CHUNK}, {1, 3, CHUNK},     {2, 1, CHUNK},
                {3, 2, CHUNK}, {8, 4, CHUNK},     {16, 3, 96 << 10},
                {4, 40, 4096}, {2, 3, 4096 + 24}, {8, 64, CHUNK}};
  const uint64_t kSizes[] = {0,         1,         4095,          4097,
                             CHUNK - 1, CHUNK + 1, 3 * CHUNK + 5, MOST - 64};
  uint8_t* from = malloc(MOST);
  uint8_t* to = malloc(MOST + 128);
  assert_non_null(from);
  assert_non_null(to);
  fill(from, MOST, 1);
  for (size_t ring = 0; ring < sizeof(kRings) / sizeof(kRings[0]); ring++) {
    dispatch_kit_t kit;
    open_with(&kit, kRings[ring].threads, kRings[ring].chunks,
              kRings[ring].chunk_bytes);
    kiln_resident_t r = dispatch_kit_resident(&kit, MOST, NULL);
    for (uint32_t i = 0; i < sizeof(kSizes) / sizeof(kSizes[0]); i++) {
      go_round(&kit, r, kSizes[i], (i * 13 + (uint32_t)ring) % 64, from, to);
    }
    assert_null(kiln_resident_free(kit.dispatcher, r));
    dispatch_kit_close(&kit);
  }
  free(from);
  free(to);
}

// ---- Many at once ----

typedef struct crowd_t {
  dispatch_kit_t kit;
  atomic_uint wrong;
} crowd_t;

static void work(void* shared, uint32_t number) {
  crowd_t* crowd = shared;
  kiln_dispatcher_t* dispatcher = crowd->kit.dispatcher;
  enum { ROUNDS = 4, BYTES = 3 * CHUNK + 77 };
  uint8_t* from = malloc(BYTES);
  uint8_t* to = malloc(BYTES);
  kiln_stream_t* mine = NULL;
  kiln_resident_t r;
  OKAY(kiln_stream_create(crowd->kit.device, NULL, &mine));
  OKAY(kiln_resident_allocate(dispatcher, BYTES, &r));
  for (uint32_t round = 0; round < ROUNDS; round++) {
    kiln_stream_t* stream = (round + number) % 2 == 0 ? NULL : mine;
    uint64_t bytes = BYTES - round * 1001 - number;
    kiln_resident_download_t one = {r, 0, bytes, to};
    kiln_pending_t* pending = NULL;
    fill(from, bytes, number + round);
    memset(to, 0, BYTES);
    OKAY(kiln_resident_upload(dispatcher, stream, r, 0, bytes, from));
    OKAY(kiln_resident_download_many(dispatcher, stream, &one, 1,
                                     round % 2 == 0 ? &pending : NULL));
    if (pending != NULL) OKAY(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
    kiln_pending_release(pending);
    NEED(memcmp(from, to, bytes) == 0);
    // Threads go while others copy.
    if (number == 0) OKAY(kiln_dispatcher_clean(dispatcher));
  }
  OKAY(kiln_resident_free(dispatcher, r));
  kiln_stream_release(mine);
  free(from);
  free(to);
}

static void test_crowd(void** state) {
  (void)state;
  enum { THREADS = 8 };
  static crowd_t crowd;
  memset(&crowd, 0, sizeof(crowd));
  open_with(&crowd.kit, 4, 5, CHUNK);
  crowd_run(&crowd, THREADS, work);
  assert_int_equal(atomic_load(&crowd.wrong), 0);
  kiln_dispatcher_counts_t counts = counts_of(&crowd.kit);
  assert_int_equal(counts.residents, 0);
  assert_true(counts.staging_bytes <= 5 * CHUNK);
  assert_int_equal(counts.staging_idle, counts.staging_bytes);
  dispatch_kit_close(&crowd.kit);
}

// ---- What is counted ----

static void wait_for_gate(void* user) {
  sem_t* gate = user;
  while (sem_wait(gate) != 0) {
  }
}

static void test_counts(void** state) {
  (void)state;
  static uint8_t from[2 * CHUNK], to[2 * CHUNK];
  dispatch_kit_t kit;
  kiln_stream_t* stream = NULL;
  kiln_pending_t* pending = NULL;
  sem_t gate;
  assert_int_equal(sem_init(&gate, 0, 0), 0);
  open_with(&kit, 3, 4, CHUNK);
  // Nothing before it is needed.
  kiln_dispatcher_counts_t counts = counts_of(&kit);
  assert_int_equal(counts.staging_bytes, 0);
  assert_int_equal(counts.staging_idle, 0);
  assert_int_equal(counts.copy_threads, 0);
  kiln_resident_t r = dispatch_kit_resident(&kit, sizeof(from), NULL);
  assert_null(kiln_stream_create(kit.device, NULL, &stream));
  fill(from, sizeof(from), 3);
  assert_null(kiln_resident_upload(kit.dispatcher, stream, r, 0, CHUNK, from));
  assert_null(kiln_stream_synchronize(stream));
  counts = counts_of(&kit);
  assert_int_equal(counts.staging_bytes, CHUNK);
  assert_int_equal(counts.staging_idle, CHUNK);
  assert_int_equal(counts.copy_threads, 2);
  // In use as long as the device has not reached it, though no call runs.
  assert_null(kiln_stream_call_host(stream, wait_for_gate, &gate));
  assert_null(kiln_resident_upload(kit.dispatcher, stream, r, 0, CHUNK, from));
  kiln_resident_download_t one = {r, 0, CHUNK, to};
  assert_null(
      kiln_resident_download_many(kit.dispatcher, stream, &one, 1, &pending));
  counts = counts_of(&kit);
  assert_int_equal(counts.staging_bytes, 3 * CHUNK);
  assert_int_equal(counts.staging_idle, CHUNK);
  assert_int_equal(sem_post(&gate), 0);
  assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
  kiln_pending_release(pending);
  assert_memory_equal(from, to, CHUNK);
  counts = counts_of(&kit);
  assert_int_equal(counts.staging_idle, counts.staging_bytes);
  // Never more than was asked for.
  assert_null(kiln_dispatcher_warm(kit.dispatcher));
  assert_int_equal(counts_of(&kit).staging_bytes, 4 * CHUNK);
  assert_null(
      kiln_resident_upload(kit.dispatcher, stream, r, 0, sizeof(from), from));
  assert_int_equal(counts_of(&kit).staging_bytes, 4 * CHUNK);
  assert_null(kiln_dispatcher_clean(kit.dispatcher));
  counts = counts_of(&kit);
  assert_int_equal(counts.staging_bytes, 0);
  assert_int_equal(counts.staging_idle, 0);
  assert_int_equal(counts.copy_threads, 0);
  // What is used again is made again.
  dispatch_kit_fetch(&kit, r, sizeof(to), to);
  assert_memory_equal(from, to, sizeof(to));
  counts = counts_of(&kit);
  assert_int_equal(counts.staging_bytes, 2 * CHUNK);
  assert_int_equal(counts.copy_threads, 2);
  assert_null(kiln_resident_free(kit.dispatcher, r));
  kiln_stream_release(stream);
  dispatch_kit_close(&kit);
  sem_destroy(&gate);
}

// ---- Through a pipeline ----

// A dispatch of host memory, large enough to be divided.
static void test_host_bindings(void** state) {
  (void)state;
  enum { WORDS = (2 * CHUNK + 400) / 4 };
  dispatch_kit_t kit;
  open_with(&kit, 4, 2, CHUNK);
  kiln_pipeline_t* step = dispatch_kit_pipeline(&kit, kStep, NULL);
  uint32_t* x = malloc(WORDS * sizeof(*x));
  assert_non_null(x);
  for (uint32_t i = 0; i < WORDS; i++) x[i] = i;
  kiln_binding_t binding = kiln_bind_host_inout(x, WORDS * sizeof(*x));
  kiln_pending_t* pending = NULL;
  assert_null(kiln_pipeline_dispatch(step, NULL, &binding, 1, NULL, &pending));
  assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
  kiln_pending_release(pending);
  for (uint32_t i = 0; i < WORDS; i++) assert_int_equal(x[i], i * 2 + 1);
  free(x);
  kiln_pipeline_release(step);
  dispatch_kit_close(&kit);
}

static void test_no_threads(void** state) {
  (void)state;
  static uint8_t from[CHUNK], to[CHUNK];
  dispatch_kit_t kit;
  open_with(&kit, 5, 2, CHUNK);
  uint32_t starts = atomic_load(&g_starts);
  assert_null(kiln_dispatcher_warm(kit.dispatcher));
  assert_null(kiln_dispatcher_clean(kit.dispatcher));
  if (atomic_load(&g_starts) == starts) {
    dispatch_kit_close(&kit);
    print_message("the linker does not lead the library's calls here\n");
    skip();
  }
  fill(from, sizeof(from), 5);
  memset(to, 0, sizeof(to));
  kiln_resident_t r = dispatch_kit_resident(&kit, sizeof(from), NULL);
  kiln_resident_range_t all = {0, 0};
  assert_null(kiln_resident_fill(kit.dispatcher, NULL, r, all, 9, 1));
  assert_null(kiln_dispatcher_synchronize(kit.dispatcher));
  atomic_store(&g_no_threads, true);
  assert_says(kiln_resident_upload(kit.dispatcher, NULL, r, 0, CHUNK, from),
              KILN_STATUS_LIMIT_EXCEEDED, "4 copy threads");
  assert_says(kiln_resident_download(kit.dispatcher, NULL, r, 0, CHUNK, to),
              KILN_STATUS_LIMIT_EXCEEDED, "copy_threads");
  assert_says(kiln_dispatcher_warm(kit.dispatcher), KILN_STATUS_LIMIT_EXCEEDED,
              "4 copy threads");
  atomic_store(&g_no_threads, false);
  assert_int_equal(counts_of(&kit).copy_threads, 0);
  assert_int_equal(to[0], 0);
  dispatch_kit_fetch(&kit, r, CHUNK, to);
  for (uint32_t i = 0; i < CHUNK; i++) assert_int_equal(to[i], 9);
  assert_null(kiln_resident_upload(kit.dispatcher, NULL, r, 0, CHUNK, from));
  dispatch_kit_fetch(&kit, r, CHUNK, to);
  assert_memory_equal(from, to, CHUNK);
  assert_int_equal(counts_of(&kit).copy_threads, 4);
  assert_null(kiln_resident_free(kit.dispatcher, r));
  dispatch_kit_close(&kit);
}

// ---- A driver that fails ----

static atomic_uint g_failing;  // calls to come of those below that fail
static sem_t g_go;
static kiln_cuda_table_t g_real;

static bool fails_now(void) {
  unsigned left = atomic_load(&g_failing);
  if (left > 0) atomic_fetch_sub(&g_failing, 1);
  return left > 0;
}

static kiln_cu_result_t failing_record(kiln_cu_event_t event,
                                       kiln_cu_stream_t stream) {
  if (fails_now()) return KILN_CU_ERROR_OUT_OF_MEMORY;
  return g_real.cuEventRecord(event, stream);
}

static kiln_cu_result_t failing_synchronize(kiln_cu_stream_t stream) {
  if (fails_now()) return KILN_CU_ERROR_OUT_OF_MEMORY;
  return g_real.cuStreamSynchronize(stream);
}

static kiln_status_t make_fail(void* user, kiln_cuda_table_t* inout_table) {
  (void)user;
  g_real = *inout_table;
  KILNI_CUDA_SET(inout_table, cuEventRecord, failing_record);
  KILNI_CUDA_SET(inout_table, cuStreamSynchronize, failing_synchronize);
  return kiln_ok();
}

static void hold(void* user) {
  (void)user;
  while (sem_wait(&g_go) != 0) continue;
}

static void* let_go(void* user) {
  (void)user;
  const struct timespec soon = {0, 50000000};
  nanosleep(&soon, NULL);
  sem_post(&g_go);
  return NULL;
}

// An upload waits on its stream, and neither an event nor the stream itself
// could be asked for its end. The next one does not write over its bytes.
static void test_a_copy_that_nothing_guards(void** state) {
  (void)state;
  static uint8_t first[CHUNK], second[CHUNK], got[CHUNK];
  dispatch_kit_t kit;
  kiln_dispatcher_options_t options = kiln_dispatcher_options_default();
  kiln_stream_t* held = NULL;
  pthread_t thread;
  options.copy_threads = 1;
  options.staging_chunk_bytes = CHUNK;
  options.staging_bytes = CHUNK;
  assert_int_equal(sem_init(&g_go, 0, 0), 0);
  dispatch_kit_open_wrapped(&kit, &options, NULL, 0, make_fail);
  fill(first, CHUNK, 1);
  fill(second, CHUNK, 2);
  kiln_resident_t a = dispatch_kit_resident(&kit, CHUNK, NULL);
  kiln_resident_t b = dispatch_kit_resident(&kit, CHUNK, NULL);
  assert_null(kiln_dispatcher_warm(kit.dispatcher));
  assert_null(kiln_stream_create(kit.device, NULL, &held));
  assert_null(kiln_stream_call_host(held, hold, NULL));
  atomic_store(&g_failing, 2);
  assert_says(kiln_resident_upload(kit.dispatcher, held, a, 0, CHUNK, first),
              KILN_STATUS_DEVICE_OUT_OF_MEMORY, "");
  assert_int_equal(atomic_load(&g_failing), 0);
  assert_int_equal(pthread_create(&thread, NULL, let_go, NULL), 0);
  assert_null(kiln_resident_upload(kit.dispatcher, NULL, b, 0, CHUNK, second));
  assert_null(kiln_stream_synchronize(held));
  assert_int_equal(pthread_join(thread, NULL), 0);
  dispatch_kit_fetch(&kit, a, CHUNK, got);
  assert_memory_equal(got, first, CHUNK);
  dispatch_kit_fetch(&kit, b, CHUNK, got);
  assert_memory_equal(got, second, CHUNK);
  kiln_stream_release(held);
  assert_null(kiln_resident_free(kit.dispatcher, a));
  assert_null(kiln_resident_free(kit.dispatcher, b));
  dispatch_kit_close(&kit);
  assert_int_equal(sem_destroy(&g_go), 0);
}

// ---- The budget ----

static uint32_t g_asked;
static kiln_cuda_table_t g_under;

static kiln_cu_result_t count_info(size_t* free_bytes, size_t* total_bytes) {
  g_asked++;
  return g_under.cuMemGetInfo(free_bytes, total_bytes);
}

static kiln_status_t watch_info(void* user, kiln_cuda_table_t* inout_table) {
  (void)user;
  g_under = *inout_table;
  KILNI_CUDA_SET(inout_table, cuMemGetInfo, count_info);
  return kiln_ok();
}

// The device is asked for its free memory when a dispatcher is made, and by no
// buffer that fits.
static void test_budget_asks_once(void** state) {
  (void)state;
  static kiln_cuda_table_t table;
  kilni_runtime_hooks_t hooks = {0};
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* device = NULL;
  kiln_dispatcher_t* dispatcher = NULL;
  kilni_table_cuda_table_null(&table);
  hooks.cuda_table = &table;
  hooks.wrap = watch_info;
  assert_null(kilni_runtime_create_with(NULL, &hooks, &runtime));
  assert_null(kiln_runtime_open_device(runtime, "cuda:0", &device));
  g_asked = 0;
  assert_null(kiln_dispatcher_create(device, NULL, &dispatcher));
  assert_int_equal(g_asked, 1);
  for (int i = 0; i < 50; i++) {
    kiln_resident_t r;
    assert_null(kiln_resident_allocate(dispatcher, 4096, &r));
    if (i % 2 == 0) assert_null(kiln_resident_free(dispatcher, r));
  }
  assert_int_equal(g_asked, 1);
  kiln_dispatcher_release(dispatcher);
  kiln_device_release(device);
  kiln_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_crowd),
      cmocka_unit_test(test_counts),
      cmocka_unit_test(test_host_bindings),
      cmocka_unit_test(test_no_threads),
      cmocka_unit_test(test_a_copy_that_nothing_guards),
      cmocka_unit_test(test_budget_asks_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
