// SPDX-License-Identifier: Apache-2.0
//
// device: pools, buffers of every kind, transient stores: who owns what, in
// which order it ends, and what is asked of the driver. Over the null provider
// with a driver's books kept, over the same with every call and allocation
// failing in turn, and over the software device for what is in the memory.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "device_world.h"
#include "driver_books.h"
#include "says.h"

#define MIB (1ull << 20)

// What the calls that are watched here were given. What threads change is
// atomic.
static struct {
  kiln_cuda_table_t under;
  kiln_cu_capture_status_t captured;
  _Atomic(kiln_cu_stream_t) freed_on;
  atomic_uint calls;  // of the driver for memory
  atomic_uint plain_frees;
  uint32_t sets;
  kiln_cu_mem_access_desc_t access[8];
  uint32_t sets_at_destroy;
} seen;

static kiln_cu_result_t seen_is_capturing(kiln_cu_stream_t stream,
                                          kiln_cu_capture_status_t* status) {
  (void)stream;
  *status = seen.captured;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t seen_alloc(kiln_cu_deviceptr_t* address, size_t bytes,
                                   kiln_cu_stream_t stream) {
  atomic_fetch_add(&seen.calls, 1);
  return seen.under.cuMemAllocAsync(address, bytes, stream);
}

static kiln_cu_result_t seen_free(kiln_cu_deviceptr_t address,
                                  kiln_cu_stream_t stream) {
  atomic_fetch_add(&seen.calls, 1);
  atomic_store(&seen.freed_on, stream);
  return seen.under.cuMemFreeAsync(address, stream);
}

static kiln_cu_result_t seen_plain_free(kiln_cu_deviceptr_t address) {
  atomic_fetch_add(&seen.plain_frees, 1);
  return seen.under.cuMemFree(address);
}

static kiln_cu_result_t seen_set_access(kiln_cu_mempool_t pool,
                                        const kiln_cu_mem_access_desc_t* list,
                                        size_t count) {
  if (seen.sets < 8) seen.access[seen.sets] = list[0];
  seen.sets++;
  return seen.under.cuMemPoolSetAccess(pool, list, count);
}

static kiln_cu_result_t seen_pool_destroy(kiln_cu_mempool_t pool) {
  seen.sets_at_destroy = seen.sets;
  return seen.under.cuMemPoolDestroy(pool);
}

typedef device_world_t world_t;

static int setup(void** state) {
  static world_t world;
  device_world_begin(&world);
  driver_books_open(&world.table);
  memset(&seen, 0, sizeof(seen));
  seen.under = world.table;
  KILNI_CUDA_SET(&world.table, cuStreamIsCapturing, seen_is_capturing);
  KILNI_CUDA_SET(&world.table, cuMemAllocAsync, seen_alloc);
  KILNI_CUDA_SET(&world.table, cuMemFreeAsync, seen_free);
  KILNI_CUDA_SET(&world.table, cuMemFree, seen_plain_free);
  KILNI_CUDA_SET(&world.table, cuMemPoolSetAccess, seen_set_access);
  KILNI_CUDA_SET(&world.table, cuMemPoolDestroy, seen_pool_destroy);
  *state = &world;
  return 0;
}

static int teardown(void** state) {
  driver_books_close();
  device_world_end(*state);
  return 0;
}

// An argument of the wrong kind: its name says enough.
static void assert_argument(kiln_status_t status, const char* word) {
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  assert_non_null(strstr(kiln_status_message(status), word));
  kiln_status_free(status);
}

static kiln_buffer_options_t with(kiln_stream_t* stream, kiln_pool_t* pool) {
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.stream = stream;
  options.pool = pool;
  return options;
}

// ---- Pools ----

// A pool, two buffers of it, its stream and device end in every order: the pool
// behind its last buffer, everything once.
static void test_every_order_of_release(void** state) {
  world_t* world = *state;
  int order[5] = {0, 1, 2, 3, 4};
  int tried = 0;
  for (int code = 0; code < 3125; code++) {
    bool used[5] = {false};
    bool is_order = true;
    for (int i = 0, rest = code; i < 5; i++, rest /= 5) {
      order[i] = rest % 5;
      if (used[order[i]]) is_order = false;
      used[order[i]] = true;
    }
    if (!is_order) continue;
    device_world_open_stream(world, "cuda:0");
    kiln_pool_t* pool = NULL;
    kiln_buffer_t* a = NULL;
    kiln_buffer_t* b = NULL;
    assert_null(kiln_pool_create(world->device, NULL, &pool));
    kiln_buffer_options_t options = with(world->stream, pool);
    assert_null(kiln_buffer_create(world->device, 4096, &options, &a));
    assert_null(kiln_buffer_create(world->device, 8192, &options, &b));
    kiln_runtime_release(world->runtime);
    int buffers = 2;
    for (int i = 0; i < 5; i++) {
      switch (order[i]) {
        case 0:
          kiln_device_release(world->device);
          break;
        case 1:
          kiln_stream_release(world->stream);
          break;
        case 2:
          kiln_pool_release(pool);
          break;
        case 3:
          kiln_buffer_release(a);
          buffers--;
          break;
        default:
          kiln_buffer_release(b);
          buffers--;
          break;
      }
      assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_MEMORY),
                       buffers);
      if (buffers > 0) {
        assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_MEMORY_POOL),
                         1);
      }
    }
    assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 0);
    assert_int_equal(world->watch.live_blocks, 0);
    tried++;
  }
  assert_int_equal(tried, 120);
}

static void test_pool_numbers(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "soft");
  kiln_pool_options_t options = kiln_pool_options_default();
  options.threshold_bytes = 64 * MIB;
  options.max_bytes = 32 * MIB;
  kiln_pool_t* pool = NULL;
  kiln_buffer_t* buffer = NULL;
  kiln_pool_stats_t stats;
  assert_null(kiln_pool_create(world->device, &options, &pool));
  assert_int_equal(kiln_pool_kind(pool), KILN_MEMORY_DEVICE);
  assert_non_null(kiln_pool_handle(pool));
  assert_ptr_equal(kiln_pool_device(pool), world->device);
  kiln_buffer_options_t from = with(world->stream, pool);
  assert_null(kiln_buffer_create(world->device, 8 * MIB, &from, &buffer));
  assert_null(kiln_pool_stats(pool, &stats));
  assert_true(stats.used_bytes == 8 * MIB && stats.reserved_bytes == 8 * MIB);
  assert_true(stats.threshold_bytes == 64 * MIB);
  kiln_buffer_t* more = NULL;
  kiln_status_t full =
      kiln_buffer_create(world->device, 30 * MIB, &from, &more);
  assert_null(more);
  assert_says(full, KILN_STATUS_DEVICE_OUT_OF_MEMORY,
              "from a pool whose limit is 33554432 bytes");
  kiln_buffer_release(buffer);
  assert_null(kiln_stream_synchronize(world->stream));
  assert_null(kiln_pool_stats(pool, &stats));
  assert_true(stats.used_bytes == 0 && stats.used_peak_bytes == 8 * MIB);
  assert_true(stats.reserved_bytes == 8 * MIB);
  assert_null(kiln_pool_trim(pool, 0));
  assert_null(kiln_pool_reset_peaks(pool));
  assert_null(kiln_pool_stats(pool, &stats));
  assert_true(stats.reserved_bytes == 0 && stats.reserved_peak_bytes == 0);
  assert_true(stats.used_peak_bytes == 0);
  kiln_pool_release(pool);
  device_world_close(world);
}

// The device's own pool is left as it was found unless more is asked for, and
// is never destroyed.
static void test_default_pool(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "soft");
  kiln_pool_t* pool = NULL;
  kiln_pool_stats_t stats;
  assert_null(kiln_pool_default(world->device, 0, &pool));
  assert_null(kiln_pool_stats(pool, &stats));
  assert_true(stats.threshold_bytes == 0);
  kiln_pool_release(pool);
  assert_null(kiln_pool_default(world->device, UINT64_MAX, &pool));
  assert_null(kiln_pool_stats(pool, &stats));
  assert_true(stats.threshold_bytes == UINT64_MAX);
  kiln_pool_release(pool);
  // What somebody has set stays.
  assert_null(kiln_pool_default(world->device, 4096, &pool));
  assert_null(kiln_pool_stats(pool, &stats));
  assert_true(stats.threshold_bytes == UINT64_MAX);
  // Buffers without a pool come from it.
  kiln_buffer_options_t options = with(world->stream, NULL);
  kiln_buffer_t* buffer = NULL;
  assert_null(kiln_buffer_create(world->device, MIB, &options, &buffer));
  assert_null(kiln_pool_stats(pool, &stats));
  assert_true(stats.used_bytes == MIB);
  kiln_buffer_release(buffer);
  kiln_pool_release(pool);
  device_world_close(world);
}

// What other devices may do is taken back before the pool ends, once for each.
static void test_peers(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_device_t* other = NULL;
  kiln_pool_t* pool = NULL;
  assert_null(kiln_runtime_open_device(world->runtime, "cuda:1", &other));
  assert_null(kiln_pool_create(world->device, NULL, &pool));
  assert_says(kiln_pool_allow(pool, world->device, KILN_ACCESS_NONE),
              KILN_STATUS_INVALID_ARGUMENT, "own");
  assert_argument(kiln_pool_allow(pool, other, 2), "access");
  assert_int_equal(seen.sets, 0);
  assert_null(kiln_pool_allow(pool, other, KILN_ACCESS_READ_WRITE));
  uint32_t access = 99;
  assert_null(kiln_pool_query_access(pool, other, &access));
  assert_int_not_equal(access, 99);
  kiln_device_release(other);
  assert_int_equal(seen.sets, 1);
  assert_int_equal(seen.access[0].location.id, 1);
  assert_int_equal(seen.access[0].flags, KILN_ACCESS_READ_WRITE);
  kiln_pool_release(pool);
  assert_int_equal(seen.sets, 2);
  assert_int_equal(seen.sets_at_destroy, 2);
  assert_int_equal(seen.access[1].location.id, 1);
  assert_int_equal(seen.access[1].flags, KILN_ACCESS_NONE);
  device_world_close(world);
}

static void make_global(world_t* world) {
  kiln_cu_capture_mode_t mode = KILN_CU_STREAM_CAPTURE_MODE_GLOBAL;
  world->table.cuThreadExchangeStreamCaptureMode(&mode);
}

// Access that was given is taken back, also where the call failed behind that.
static void test_peers_that_were_let_in_by_a_failure(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_device_t* other = NULL;
  kiln_pool_t* pool = NULL;
  assert_null(kiln_runtime_open_device(world->runtime, "cuda:1", &other));
  assert_null(kiln_pool_create(world->device, NULL, &pool));
  driver_books_fail_exchange(2);  // the way back
  assert_says(kiln_pool_allow(pool, other, KILN_ACCESS_READ),
              KILN_STATUS_INVALID_STATE, "it stays relaxed");
  make_global(world);
  kiln_device_release(other);
  kiln_pool_release(pool);
  assert_int_equal(seen.sets, 2);
  assert_int_equal(seen.sets_at_destroy, 2);
  assert_int_equal(seen.access[1].flags, KILN_ACCESS_NONE);
  device_world_close(world);
}

static void count_release(void* user) {
  ++*(int*)user;
}

static void test_foreign_pool(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_cu_mempool_t handle = NULL;
  kiln_cu_mempool_props_t props;
  memset(&props, 0, sizeof(props));
  kiln_cu_capture_mode_t mode = KILN_CU_STREAM_CAPTURE_MODE_RELAXED;
  world->table.cuThreadExchangeStreamCaptureMode(&mode);
  assert_int_equal(world->table.cuMemPoolCreate(&handle, &props), 0);
  int released = 0;
  kiln_owner_t owner = {count_release, &released};
  kiln_pool_t* pool = NULL;
  assert_says(kiln_pool_adopt(world->device, 9, handle, &owner, &pool),
              KILN_STATUS_INVALID_ARGUMENT, "kind");
  assert_null(pool);
  assert_null(kiln_pool_adopt(world->device, KILN_MEMORY_DEVICE, handle, &owner,
                              &pool));
  kiln_buffer_options_t options = with(world->stream, pool);
  kiln_buffer_t* buffer = NULL;
  assert_null(kiln_buffer_create(world->device, 512, &options, &buffer));
  kiln_pool_release(pool);
  assert_int_equal(released, 0);
  kiln_buffer_release(buffer);
  assert_int_equal(released, 1);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_MEMORY_POOL), 1);
  assert_int_equal(world->table.cuMemPoolDestroy(handle), 0);
  world->table.cuThreadExchangeStreamCaptureMode(&mode);
  device_world_close(world);
}

// One handle is one pool, and nobody ends it twice.
static void test_one_handle_one_pool(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  int released = 0;
  const kiln_owner_t owner = {count_release, &released};
  void* handle = world;
  kiln_pool_t* pool = NULL;
  kiln_pool_t* again = NULL;
  assert_null(kiln_pool_create(world->device, NULL, &pool));
  assert_null(kiln_pool_adopt(world->device, KILN_MEMORY_DEVICE,
                              kiln_pool_handle(pool), &owner, &again));
  assert_ptr_equal(again, pool);
  assert_int_equal(released, 1);
  kiln_pool_release(again);
  assert_says(kiln_pool_adopt(world->device, KILN_MEMORY_PINNED,
                              kiln_pool_handle(pool), &owner, &again),
              KILN_STATUS_INVALID_ARGUMENT, "adopted as one of kind");
  assert_null(again);
  assert_int_equal(released, 1);
  kiln_pool_release(pool);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_MEMORY_POOL), 0);
  // Two of a foreign one without an owner are one, too.
  assert_null(
      kiln_pool_adopt(world->device, KILN_MEMORY_DEVICE, handle, NULL, &pool));
  assert_null(
      kiln_pool_adopt(world->device, KILN_MEMORY_DEVICE, handle, NULL, &again));
  assert_ptr_equal(again, pool);
  kiln_pool_release(again);
  kiln_pool_release(pool);
  device_world_close(world);
}

static void test_other_kinds_need_a_driver(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "soft");
  kiln_pool_options_t options = kiln_pool_options_default();
  for (uint32_t kind = KILN_MEMORY_PINNED; kind <= KILN_MEMORY_MANAGED;
       kind++) {
    options.kind = kind;
    kiln_pool_t* pool = NULL;
    kiln_buffer_t* buffer = NULL;
    assert_null(kiln_pool_create(world->device, &options, &pool));
    kiln_buffer_options_t from = with(world->stream, pool);
    assert_null(kiln_buffer_create(world->device, 4096, &from, &buffer));
    assert_int_equal(kiln_buffer_kind(buffer), kind);
    assert_null(kiln_buffer_fill_async(buffer, world->stream, 0, 4096, 7, 4));
    assert_null(kiln_stream_synchronize(world->stream));
    assert_int_equal(((const uint32_t*)kiln_buffer_host(buffer))[1023], 7);
    kiln_buffer_release(buffer);
    kiln_pool_release(pool);
  }
  options.kind = 3;
  kiln_pool_t* none = NULL;
  assert_says(kiln_pool_create(world->device, &options, &none),
              KILN_STATUS_INVALID_ARGUMENT, "kind 3");
  device_world_close(world);
}

static kiln_cu_result_t version_12(int* version) {
  *version = 12000;
  return KILN_CU_SUCCESS;
}

static void test_an_older_driver(void** state) {
  world_t* world = *state;
  KILNI_CUDA_SET(&world->table, cuDriverGetVersion, version_12);
  device_world_open_stream(world, "cuda:0");
  kiln_pool_options_t options = kiln_pool_options_default();
  kiln_pool_t* pool = NULL;
  options.kind = KILN_MEMORY_PINNED;
  assert_says(kiln_pool_create(world->device, &options, &pool),
              KILN_STATUS_UNSUPPORTED, "CUDA 13.0");
  options.kind = KILN_MEMORY_DEVICE;
  options.max_bytes = MIB;
  assert_says(kiln_pool_create(world->device, &options, &pool),
              KILN_STATUS_UNSUPPORTED, "CUDA 12.2");
  assert_null(pool);
  device_world_close(world);
}

// ---- Buffers ----

static void test_pinned_and_managed(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "soft");
  kiln_buffer_options_t options = kiln_buffer_options_default();
  for (options.kind = KILN_MEMORY_PINNED; options.kind <= KILN_MEMORY_MANAGED;
       options.kind++) {
    kiln_buffer_t* buffer = NULL;
    uint32_t words[4] = {1, 2, 3, 4};
    uint32_t back[4] = {0};
    assert_null(kiln_buffer_create(world->device, 64, &options, &buffer));
    assert_int_equal(kiln_buffer_kind(buffer), options.kind);
    uint32_t* host = kiln_buffer_host(buffer);
    assert_non_null(host);
    assert_true(kiln_buffer_address(buffer) != 0);
    assert_null(kiln_buffer_write(buffer, 16, sizeof(words), words));
    assert_int_equal(host[4], 1);
    host[7] = 9;
    assert_null(kiln_buffer_read(buffer, 16, sizeof(back), back));
    assert_int_equal(back[3], 9);
    assert_says(kiln_buffer_set_stream(buffer, world->stream),
                KILN_STATUS_INVALID_STATE, "stream order");
    kiln_buffer_release(buffer);
  }
  kiln_buffer_t* none = NULL;
  assert_argument(kiln_buffer_create(world->device, 64, &options, &none),
                  "kind");
  device_world_close(world);
}

static void test_pool_arguments(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_pool_t* pool = NULL;
  kiln_buffer_t* buffer = NULL;
  assert_null(kiln_pool_create(world->device, NULL, &pool));
  kiln_buffer_options_t options = with(NULL, pool);
  assert_says(kiln_buffer_create(world->device, 64, &options, &buffer),
              KILN_STATUS_INVALID_ARGUMENT, "without a stream");
  options.stream = world->stream;
  options.kind = KILN_MEMORY_PINNED;
  assert_says(kiln_buffer_create(world->device, 64, &options, &buffer),
              KILN_STATUS_INVALID_ARGUMENT, "kind");
  assert_null(buffer);
  // No bytes are no address and no call.
  options.kind = KILN_MEMORY_DEVICE;
  assert_null(kiln_buffer_create(world->device, 0, &options, &buffer));
  assert_true(kiln_buffer_address(buffer) == 0);
  kiln_buffer_release(buffer);
  kiln_pool_release(pool);
  device_world_close(world);
}

// The free goes to the stream that was set last; what it had is let go.
static void test_set_stream(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_stream_t* later = NULL;
  kiln_stream_t* token = NULL;
  kiln_buffer_t* buffer = NULL;
  assert_null(kiln_stream_create(world->device, NULL, &later));
  kiln_buffer_options_t options = with(world->stream, NULL);
  assert_null(kiln_buffer_create(world->device, 64, &options, &buffer));
  assert_null(kiln_buffer_set_stream(buffer, later));
  void* handle = kiln_stream_handle(later);
  kiln_stream_release(later);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_STREAM), 2);
  kiln_buffer_release(buffer);
  assert_ptr_equal(atomic_load(&seen.freed_on), handle);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_STREAM), 1);
  // A default stream is the device's own, whatever is current at the end.
  assert_null(kiln_stream_default(world->device, KILN_STREAM_LEGACY, &token));
  assert_null(kiln_buffer_create(world->device, 64, &options, &buffer));
  assert_null(kiln_buffer_set_stream(buffer, token));
  kiln_stream_release(token);
  world->table.cuCtxSetCurrent((kiln_cu_context_t)(uintptr_t)0xabc0);
  kiln_buffer_release(buffer);
  assert_ptr_equal(driver_books_token_context(),
                   kiln_device_context(world->device));
  assert_ptr_equal(driver_books_current(), (void*)(uintptr_t)0xabc0);
  world->table.cuCtxSetCurrent(NULL);
  device_world_close(world);
}

static void release_buffer(void* buffer) {
  kiln_buffer_release(buffer);
}

static void test_release_on_another_thread(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_buffer_t* buffer = NULL;
  kiln_buffer_options_t options = with(world->stream, NULL);
  assert_null(kiln_buffer_create(world->device, 64, &options, &buffer));
  kilni_base_thread_t thread = {0};
  assert_null(
      kilni_base_thread_start(&thread, "release", release_buffer, buffer));
  kilni_base_thread_join(&thread);
  assert_ptr_equal(atomic_load(&seen.freed_on),
                   kiln_stream_handle(world->stream));
  device_world_close(world);
}

// There the per-thread default stream is another one: no free on it.
static void test_the_stream_of_a_thread(void** state) {
  world_t* world = *state;
  device_world_open(world, "cuda:0");
  kiln_stream_t* own = NULL;
  kiln_transient_t* store = NULL;
  assert_null(kiln_stream_default(world->device, KILN_STREAM_PER_THREAD, &own));
  kiln_buffer_options_t options = with(own, NULL);
  kiln_buffer_t* buffer[3] = {NULL, NULL, NULL};
  for (int i = 0; i < 3; i++) {
    assert_null(kiln_buffer_create(world->device, 64, &options, &buffer[i]));
  }
  kilni_base_thread_t thread = {0};
  assert_null(
      kilni_base_thread_start(&thread, "release", release_buffer, buffer[0]));
  kilni_base_thread_join(&thread);
  assert_int_equal(atomic_load(&seen.plain_frees), 1);
  assert_null(atomic_load(&seen.freed_on));
  // On the thread that made it, or took it over, it is a free like any other.
  kiln_buffer_release(buffer[1]);
  assert_int_equal(atomic_load(&seen.plain_frees), 1);
  assert_ptr_equal(atomic_load(&seen.freed_on), KILN_CU_STREAM_PER_THREAD);
  assert_null(kiln_buffer_set_stream(buffer[2], own));
  kiln_buffer_release(buffer[2]);
  assert_int_equal(atomic_load(&seen.plain_frees), 1);
  assert_says(kiln_transient_create(own, NULL, &store),
              KILN_STATUS_INVALID_ARGUMENT,
              "a different stream on each thread");
  assert_null(store);
  kiln_stream_release(own);
  device_world_close(world);
}

static void test_a_captured_stream(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_buffer_options_t options = with(world->stream, NULL);
  kiln_buffer_t* before = NULL;
  kiln_buffer_t* buffer = NULL;
  assert_null(kiln_buffer_create(world->device, 64, &options, &before));
  seen.captured = KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE;
  assert_says(kiln_buffer_create(world->device, 64, &options, &buffer),
              KILN_STATUS_INVALID_STATE, "before the capture begins");
  assert_null(buffer);
  // Memory of before gets into no graph.
  kiln_buffer_release(before);
  assert_int_equal(atomic_load(&seen.plain_frees), 1);
  assert_null(atomic_load(&seen.freed_on));
  // Without a stream nothing is asked.
  assert_null(kiln_buffer_create(world->device, 64, NULL, &buffer));
  kiln_buffer_release(buffer);
  device_world_close(world);
}

static void test_foreign_memory(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "soft");
  kiln_buffer_options_t pinned = kiln_buffer_options_default();
  pinned.kind = KILN_MEMORY_PINNED;
  kiln_buffer_t* ours = NULL;
  kiln_buffer_t* page = NULL;
  kiln_buffer_t* view = NULL;
  int released = 0;
  kiln_owner_t owner = {count_release, &released};
  uint32_t local = 5;
  assert_null(kiln_buffer_create(world->device, 8192, NULL, &ours));
  assert_null(kiln_buffer_create(world->device, 4096, &pinned, &page));
  uint64_t at = kiln_buffer_address(ours);
  assert_null(kiln_buffer_adopt(world->device, at + 4, 8, &owner, &view));
  assert_int_equal(kiln_buffer_kind(view), KILN_MEMORY_DEVICE);
  assert_null(kiln_buffer_host(view));
  assert_null(kiln_buffer_write(view, 0, 4, &local));
  uint32_t back = 0;
  assert_null(kiln_buffer_read(ours, 4, 4, &back));
  assert_int_equal(back, 5);
  kiln_buffer_retain(view);
  kiln_buffer_release(view);
  assert_int_equal(released, 0);
  kiln_buffer_release(view);
  assert_int_equal(released, 1);
  // Page-locked memory by its own address, without an owner.
  uint64_t host = (uint64_t)(uintptr_t)kiln_buffer_host(page);
  assert_null(kiln_buffer_adopt(world->device, host + 8, 16, NULL, &view));
  assert_int_equal(kiln_buffer_kind(view), KILN_MEMORY_PINNED);
  assert_ptr_equal(kiln_buffer_host(view), (void*)(uintptr_t)(host + 8));
  kiln_buffer_release(view);
  // A failure has taken nothing.
  uint64_t plain = (uint64_t)(uintptr_t)&local;
  assert_says(kiln_buffer_adopt(world->device, plain, 4, &owner, &view),
              KILN_STATUS_INVALID_ARGUMENT, "does not know the memory");
  assert_null(view);
  assert_says(kiln_buffer_adopt(world->device, at, 64 * MIB, &owner, &view),
              KILN_STATUS_OUT_OF_RANGE, "fewer than");
  assert_argument(kiln_buffer_adopt(world->device, 0, 4, &owner, &view),
                  "address");
  assert_argument(kiln_buffer_adopt(world->device, at, 0, &owner, &view),
                  "size_bytes");
  assert_int_equal(released, 1);
  kiln_buffer_release(page);
  kiln_buffer_release(ours);
  device_world_close(world);
}

// Two objects over the same bytes are no other place than one.
static void test_copies_that_overlap(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "soft");
  kiln_buffer_t* ours = NULL;
  kiln_buffer_t* view = NULL;
  assert_null(kiln_buffer_create(world->device, 4096, NULL, &ours));
  assert_null(kiln_buffer_fill(ours, 0, 4096, 1, 4));
  assert_null(kiln_buffer_adopt(world->device, kiln_buffer_address(ours) + 256,
                                1024, NULL, &view));
  const kiln_copy_t copy = {ours, 0, view, 0, 512};
  const kiln_status_code_t bad = KILN_STATUS_INVALID_ARGUMENT;
  assert_says(kiln_buffer_copy(view, 0, ours, 0, 257), bad, "overlap");
  assert_says(kiln_buffer_copy_async(ours, world->stream, 512, view, 0, 512),
              bad, "overlap");
  assert_says(kiln_copy_batch(world->stream, &copy, 1, NULL), bad, "overlap");
  assert_null(kiln_buffer_copy(view, 0, ours, 0, 256));
  assert_null(kiln_buffer_copy(ours, 2048, view, 0, 1024));
  assert_null(kiln_buffer_copy(ours, 256, view, 0, 0));
  kiln_buffer_release(view);
  kiln_buffer_release(ours);
  device_world_close(world);
}

// ---- Transient stores ----

static kiln_transient_stats_t stats_of(kiln_transient_t* store) {
  kiln_transient_stats_t stats;
  kiln_transient_stats(store, &stats);
  return stats;
}

// A block comes back as it was: the same object, address and no call, no
// allocation.
static void test_blocks_come_back(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_transient_t* store = NULL;
  kiln_buffer_t* first = NULL;
  assert_null(kiln_transient_create(world->stream, NULL, &store));
  assert_ptr_equal(kiln_transient_stream(store), world->stream);
  assert_null(kiln_transient_acquire(store, 5000, &first));
  assert_int_equal(kiln_buffer_size(first), 5000);
  uint64_t address = kiln_buffer_address(first);
  kiln_buffer_release(first);
  unsigned calls = atomic_load(&seen.calls);
  uint64_t blocks = world->watch.total_blocks;
  for (uint64_t size = 4609; size <= 5120; size++) {
    kiln_buffer_t* again = NULL;
    assert_null(kiln_transient_acquire(store, size, &again));
    assert_ptr_equal(again, first);
    assert_true(kiln_buffer_address(again) == address);
    assert_true(kiln_buffer_size(again) == size);
    kiln_buffer_release(again);
  }
  assert_int_equal(atomic_load(&seen.calls), calls);
  assert_true(world->watch.total_blocks == blocks);
  // Two at once are two.
  kiln_buffer_t* a = NULL;
  kiln_buffer_t* b = NULL;
  assert_null(kiln_transient_acquire(store, 5000, &a));
  assert_null(kiln_transient_acquire(store, 5000, &b));
  assert_ptr_not_equal(a, b);
  assert_true(kiln_buffer_address(a) != kiln_buffer_address(b));
  assert_says(kiln_buffer_set_stream(a, world->stream),
              KILN_STATUS_INVALID_STATE, "stream order");
  kiln_buffer_release(a);
  kiln_buffer_release(b);
  assert_int_equal(stats_of(store).hits, 513);
  assert_int_equal(stats_of(store).misses, 2);
  kiln_transient_trim(store, 5120);
  assert_int_equal(stats_of(store).blocks, 1);
  kiln_transient_release(store);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_MEMORY), 0);
  device_world_close(world);
}

// Every size fits its block, and the waste stays below a quarter.
static void test_sizes(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_transient_t* store = NULL;
  kiln_transient_options_t options = kiln_transient_options_default();
  options.max_bytes = 1ull << 44;
  assert_null(kiln_transient_create(world->stream, &options, &store));
  for (uint64_t base = 512; base <= (1ull << 33); base *= 2) {
    for (int64_t off = -1; off <= 1; off++) {
      uint64_t size = base + (uint64_t)off;
      kiln_buffer_t* block = NULL;
      assert_null(kiln_transient_acquire(store, size, &block));
      uint64_t bytes = stats_of(store).bytes;
      assert_true(bytes >= size);
      assert_true(size <= 2048 || bytes - size < size / 4 + 512);
      kiln_buffer_release(block);
      kiln_transient_trim(store, 0);
      assert_true(stats_of(store).bytes == 0);
    }
  }
  kiln_buffer_t* none = NULL;
  assert_says(kiln_transient_acquire(store, (1ull << 44) + 1, &none),
              KILN_STATUS_INVALID_ARGUMENT, "transient block");
  assert_null(kiln_transient_acquire(store, 0, &none));
  assert_true(kiln_buffer_address(none) == 0);
  kiln_buffer_release(none);
  kiln_transient_release(store);
  device_world_close(world);
}

static void test_bounds(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_transient_options_t options = kiln_transient_options_default();
  kiln_transient_t* store = NULL;
  options.max_bytes = 16 * 1024;
  options.max_blocks = 3;
  assert_null(kiln_transient_create(world->stream, &options, &store));
  kiln_buffer_t* blocks[6] = {NULL};
  for (int i = 0; i < 6; i++) {
    assert_null(kiln_transient_acquire(store, 1024, &blocks[i]));
  }
  assert_int_equal(stats_of(store).blocks, 3);
  for (int i = 0; i < 6; i++) kiln_buffer_release(blocks[i]);
  assert_int_equal(stats_of(store).idle_blocks, 3);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_MEMORY), 3);
  // A larger one takes the place of idle ones; one above all bounds none.
  assert_null(kiln_transient_acquire(store, 15 * 1024, &blocks[0]));
  assert_true(stats_of(store).bytes <= 16 * 1024);
  assert_null(kiln_transient_acquire(store, 64 * 1024, &blocks[1]));
  assert_true(stats_of(store).bytes <= 16 * 1024);
  kiln_buffer_release(blocks[1]);
  kiln_buffer_release(blocks[0]);
  kiln_transient_release(store);
  options.max_bytes = UINT64_MAX;
  assert_says(kiln_transient_create(world->stream, &options, &store),
              KILN_STATUS_INVALID_ARGUMENT, "transient store");
  assert_null(store);
  device_world_close(world);
}

// Blocks may outlive their store, its stream and its device.
static void test_blocks_outlive_the_store(void** state) {
  world_t* world = *state;
  for (int out = 0; out <= 3; out++) {
    device_world_open_stream(world, "cuda:0");
    kiln_transient_t* store = NULL;
    kiln_buffer_t* blocks[4] = {NULL};
    assert_null(kiln_transient_create(world->stream, NULL, &store));
    for (int i = 0; i < 4; i++) {
      assert_null(kiln_transient_acquire(store, 4096, &blocks[i]));
    }
    for (int i = out; i < 4; i++) kiln_buffer_release(blocks[i]);
    kiln_transient_release(store);
    assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_MEMORY), out);
    device_world_close(world);
    for (int i = 0; i < out; i++) kiln_buffer_release(blocks[i]);
    assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 0);
  }
}

static void test_captures_pass_through(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_transient_options_t options = kiln_transient_options_default();
  kiln_transient_t* store = NULL;
  kiln_buffer_t* kept = NULL;
  kiln_buffer_t* block = NULL;
  options.ask_capture = KILN_SWITCH_ON;
  assert_null(kiln_transient_create(world->stream, &options, &store));
  assert_null(kiln_transient_acquire(store, 4096, &kept));
  kiln_buffer_release(kept);
  seen.captured = KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE;
  atomic_store(&seen.freed_on, NULL);
  assert_null(kiln_transient_acquire(store, 4096, &block));
  assert_ptr_not_equal(block, kept);
  kiln_buffer_release(block);  // in the graph, as it was allocated
  assert_ptr_equal(atomic_load(&seen.freed_on),
                   kiln_stream_handle(world->stream));
  assert_int_equal(atomic_load(&seen.plain_frees), 0);
  assert_int_equal(stats_of(store).passed, 1);
  assert_int_equal(stats_of(store).blocks, 1);
  // One that fails behind the driver's call is freed there too.
  atomic_store(&seen.freed_on, NULL);
  driver_books_fail_exchange(2);
  assert_says(kiln_transient_acquire(store, 4096, &block),
              KILN_STATUS_INVALID_STATE, "it stays relaxed");
  make_global(world);
  assert_null(block);
  assert_ptr_equal(atomic_load(&seen.freed_on),
                   kiln_stream_handle(world->stream));
  assert_int_equal(atomic_load(&seen.plain_frees), 0);
  assert_int_equal(stats_of(store).passed, 1);
  seen.captured = KILN_CU_STREAM_CAPTURE_STATUS_NONE;
  assert_null(kiln_transient_acquire(store, 4096, &block));
  assert_ptr_equal(block, kept);
  kiln_buffer_release(block);
  kiln_transient_release(store);
  device_world_close(world);
}

// ---- From several threads ----

enum { THREADS = 4, ROUNDS = 1500, HELD = 12, SHARED = 16 };

// Blocks that any thread may take and release. thread-safe
static _Atomic(kiln_buffer_t*) shared[SHARED];

typedef struct worker_t {
  world_t* world;
  kiln_pool_t* pool;
  uint64_t random;
  int made;      // buffers
  int failures;  // for the main thread to assert on
} worker_t;

static uint64_t next(worker_t* worker) {
  worker->random ^= worker->random << 13;
  worker->random ^= worker->random >> 7;
  worker->random ^= worker->random << 17;
  return worker->random;
}

// Makes and drops buffers and stores in an order of its own, and lets go of
// blocks that others made.
static void work(void* user) {
  worker_t* worker = user;
  world_t* world = worker->world;
  kiln_stream_t* stream = NULL;
  kiln_transient_t* store = NULL;
  kiln_buffer_t* held[HELD] = {NULL};
  worker->failures += kiln_stream_create(world->device, NULL, &stream) != NULL;
  for (int i = 0; i < ROUNDS && stream != NULL; i++) {
    uint64_t what = next(worker);
    kiln_buffer_t** at = &held[what % HELD];
    kiln_buffer_options_t options = with(stream, worker->pool);
    if (store == NULL && kiln_transient_create(stream, NULL, &store) != NULL) {
      worker->failures++;
      break;
    }
    kiln_buffer_release(*at);
    *at = NULL;
    uint64_t size = 1 + next(worker) % 20000;
    kiln_status_t status = kiln_ok();
    switch ((what >> 16) % 8) {
      case 0:
        status = kiln_buffer_create(world->device, size, &options, at);
        break;
      case 1:
        status = kiln_buffer_create(world->device, size, NULL, at);
        break;
      case 2:
        kiln_transient_release(store);
        store = NULL;
        break;
      case 3:
        kiln_transient_trim(store, size);
        break;
      default:
        status = kiln_transient_acquire(store, size, at);
        break;
    }
    worker->failures += status != NULL;
    worker->made += *at != NULL;
    kiln_status_free(status);
    kiln_buffer_retain(*at);
    kiln_buffer_release(*at);
    kiln_buffer_t* other = atomic_exchange(&shared[(what >> 32) % SHARED], *at);
    *at = other;
  }
  for (int i = 0; i < HELD; i++) kiln_buffer_release(held[i]);
  kiln_transient_release(store);
  kiln_stream_release(stream);
}

static void run_threads(world_t* world, const char* name) {
  device_world_open_stream(world, name);
  kiln_pool_t* pool = NULL;
  assert_null(kiln_pool_create(world->device, NULL, &pool));
  kilni_base_thread_t threads[THREADS] = {{0}};
  worker_t workers[THREADS];
  memset(workers, 0, sizeof(workers));
  for (int i = 0; i < THREADS; i++) {
    workers[i].world = world;
    workers[i].pool = pool;
    workers[i].random = 0x9e3779b97f4a7c15ull * (uint64_t)(i + 1);
    assert_null(
        kilni_base_thread_start(&threads[i], "memory", work, &workers[i]));
  }
  for (int i = 0; i < THREADS; i++) {
    kilni_base_thread_join(&threads[i]);
    assert_int_equal(workers[i].failures, 0);
    assert_true(workers[i].made > ROUNDS / 2);
  }
  kiln_pool_release(pool);
  device_world_close(world);
  for (int i = 0; i < SHARED; i++) {
    kiln_buffer_release(atomic_exchange(&shared[i], NULL));
  }
}

static void test_threads(void** state) {
  run_threads(*state, "cuda:0");
}

static void test_threads_on_soft(void** state) {
  run_threads(*state, "soft");
}

// ---- Faults ----

static kiln_status_t use_pools(kiln_device_t* device, kiln_stream_t* stream,
                               kiln_pool_t* pool) {
  kiln_buffer_t* buffer = NULL;
  kiln_buffer_options_t options = with(stream, pool);
  kiln_pool_stats_t stats;
  kiln_status_t status = kiln_pool_stats(pool, &stats);
  if (status == NULL) status = kiln_pool_set_threshold(pool, MIB);
  if (status == NULL) status = kiln_pool_reset_peaks(pool);
  if (status == NULL) {
    status = kiln_buffer_create(device, 4096, &options, &buffer);
    assert_true((status == NULL) == (buffer != NULL));
  }
  if (status == NULL) status = kiln_buffer_set_stream(buffer, stream);
  if (status == NULL) status = kiln_pool_trim(pool, 0);
  uint32_t access = 0;
  if (status == NULL) status = kiln_pool_query_access(pool, device, &access);
  kiln_buffer_release(buffer);
  return status;
}

static kiln_status_t use_kinds(kiln_device_t* device, kiln_stream_t* stream) {
  kiln_status_t status = kiln_ok();
  for (uint32_t kind = 0; kind <= KILN_MEMORY_MANAGED && status == NULL;
       kind++) {
    kiln_pool_options_t pool_options = kiln_pool_options_default();
    kiln_buffer_options_t options = kiln_buffer_options_default();
    kiln_pool_t* pool = NULL;
    kiln_buffer_t* buffer = NULL;
    kiln_buffer_t* view = NULL;
    pool_options.kind = kind;
    pool_options.threshold_bytes = MIB;
    options.kind = kind;
    status = kiln_pool_create(device, &pool_options, &pool);
    assert_true((status == NULL) == (pool != NULL));
    if (status == NULL) status = use_pools(device, stream, pool);
    if (status == NULL) {
      status = kiln_buffer_create(device, 4096, &options, &buffer);
      assert_true((status == NULL) == (buffer != NULL));
    }
    if (status == NULL) {
      status = kiln_buffer_adopt(device, kiln_buffer_address(buffer), 64, NULL,
                                 &view);
      assert_true((status == NULL) == (view != NULL));
    }
    kiln_pool_release(pool);
    kiln_buffer_release(buffer);
    kiln_buffer_release(view);
  }
  return status;
}

static kiln_status_t use_store(kiln_stream_t* stream) {
  kiln_transient_options_t options = kiln_transient_options_default();
  kiln_transient_t* store = NULL;
  options.ask_capture = KILN_SWITCH_ON;
  options.max_blocks = 2;
  kiln_status_t status = kiln_transient_create(stream, &options, &store);
  assert_true((status == NULL) == (store != NULL));
  kiln_buffer_t* blocks[3] = {NULL};
  for (int i = 0; i < 3 && status == NULL; i++) {
    status = kiln_transient_acquire(store, 4096, &blocks[i]);
    assert_true((status == NULL) == (blocks[i] != NULL));
  }
  kiln_buffer_release(blocks[0]);
  kiln_transient_trim(store, 0);
  kiln_buffer_release(blocks[1]);
  kiln_transient_release(store);
  kiln_buffer_release(blocks[2]);
  return status;
}

static kiln_status_t sweep(kiln_device_t* device) {
  kiln_stream_t* stream = NULL;
  kiln_pool_t* own = NULL;
  kiln_status_t status = kiln_stream_create(device, NULL, &stream);
  if (status == NULL) {
    status = kiln_pool_default(device, MIB, &own);
    assert_true((status == NULL) == (own != NULL));
  }
  if (status == NULL) status = use_kinds(device, stream);
  if (status == NULL) status = use_store(stream);
  kiln_pool_release(own);
  kiln_stream_release(stream);
  return status;
}

static void test_every_call_fails(void** state) {
  (void)state;
  device_sweep_calls(sweep, KILN_CU_ERROR_INVALID_VALUE, 100);
}

static void test_no_memory_anywhere(void** state) {
  (void)state;
  device_sweep_calls(sweep, KILN_CU_ERROR_OUT_OF_MEMORY, 100);
}

static void test_every_allocation_fails(void** state) {
  (void)state;
  device_sweep_allocations(sweep, 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_every_order_of_release),
      TEST(test_pool_numbers),
      TEST(test_default_pool),
      TEST(test_peers),
      TEST(test_peers_that_were_let_in_by_a_failure),
      TEST(test_foreign_pool),
      TEST(test_one_handle_one_pool),
      TEST(test_other_kinds_need_a_driver),
      TEST(test_an_older_driver),
      TEST(test_pinned_and_managed),
      TEST(test_pool_arguments),
      TEST(test_set_stream),
      TEST(test_release_on_another_thread),
      TEST(test_the_stream_of_a_thread),
      TEST(test_a_captured_stream),
      TEST(test_foreign_memory),
      TEST(test_copies_that_overlap),
      TEST(test_blocks_come_back),
      TEST(test_sizes),
      TEST(test_bounds),
      TEST(test_blocks_outlive_the_store),
      TEST(test_captures_pass_through),
      TEST(test_threads),
      TEST(test_threads_on_soft),
      cmocka_unit_test(test_every_call_fails),
      cmocka_unit_test(test_no_memory_anywhere),
      cmocka_unit_test(test_every_allocation_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
