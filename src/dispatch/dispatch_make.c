// SPDX-License-Identifier: Apache-2.0
//
// dispatch: making, warming, cleaning and ending a dispatcher.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "dispatch/dispatch_inside.h"
#include "table/nvtx_table.h"

enum {
  DEFAULT_STREAMS = 4,
  MAX_COPY_THREADS = 16,
  MAX_CHUNKS = 1024,
  TAG_BITS = 12,
};
#define DEFAULT_STAGING   (32ull << 20)
#define DEFAULT_CHUNK     (4ull << 20)
#define LEAST_CHUNK       (4ull << 10)
#define LARGEST_CHUNK     (1ull << 30)
#define DEFAULT_TRANSIENT (256ull << 20)

static void make_destroy(kiln_dispatcher_t* dispatcher) {
  kiln_device_t* device = dispatcher->device;
  if (dispatcher->has_limbo_lock) kilni_dispatch_limbo_sweep(dispatcher, true);
  kilni_dispatch_traps_deinit(dispatcher);
  kilni_dispatch_residents_deinit(dispatcher);
  kilni_dispatch_staging_destroy(dispatcher->staging);
  kilni_dispatch_streams_deinit(dispatcher);
  kilni_dispatch_counters_destroy(dispatcher->allocator, dispatcher->counters);
  if (dispatcher->has_limbo_lock) {
    kilni_base_mutex_deinit(&dispatcher->limbo.lock);
  }
  if (dispatcher->has_seen_lock) {
    kilni_base_mutex_deinit(&dispatcher->seen.lock);
  }
  kiln_linker_release(dispatcher->linker);
  kiln_cache_release(dispatcher->cache);
  kilni_base_free(dispatcher->allocator, dispatcher, sizeof(*dispatcher));
  kiln_device_release(device);
}

// ---- Options ----

static kiln_status_t check_staging(kiln_dispatcher_options_t* given) {
  if (given->staging_chunk_bytes == 0) {
    given->staging_chunk_bytes = DEFAULT_CHUNK;
    if (given->staging_bytes != 0 && given->staging_bytes < DEFAULT_CHUNK) {
      given->staging_chunk_bytes = given->staging_bytes;
    }
  }
  if (given->staging_bytes == 0) {
    given->staging_bytes = given->staging_chunk_bytes > DEFAULT_STAGING
                               ? given->staging_chunk_bytes
                               : DEFAULT_STAGING;
  }
  uint64_t chunks = given->staging_bytes / given->staging_chunk_bytes;
  if (given->staging_chunk_bytes >= LEAST_CHUNK &&
      given->staging_chunk_bytes <= LARGEST_CHUNK && chunks >= 1 &&
      chunks <= MAX_CHUNKS) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "pinned memory of %llu bytes in chunks of %llu",
                 (unsigned long long)given->staging_bytes,
                 (unsigned long long)given->staging_chunk_bytes),
      "ask for 1 to %u chunks of %llu to %llu bytes", (unsigned)MAX_CHUNKS,
      LEAST_CHUNK, LARGEST_CHUNK);
}

static kiln_status_t make_check_options(kiln_dispatcher_options_t* given) {
  KILNI_CHECK_ARGUMENT(given->telemetry <= KILN_SWITCH_ON, "options.telemetry");
  KILNI_CHECK_ARGUMENT(given->ranges <= KILN_SWITCH_ON, "options.ranges");
  if (given->streams == 0) given->streams = DEFAULT_STREAMS;
  if (given->copy_threads == 0) given->copy_threads = 1;
  if (given->transient_bytes == 0) given->transient_bytes = DEFAULT_TRANSIENT;
  if (given->streams > KILNI_OWN_STREAMS) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "a dispatcher with %u streams",
                   (unsigned)given->streams),
        "ask for at most %u", (unsigned)KILNI_OWN_STREAMS);
  }
  if (given->copy_threads > MAX_COPY_THREADS) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "a dispatcher with %u copy threads",
                   (unsigned)given->copy_threads),
        "ask for at most %u", (unsigned)MAX_COPY_THREADS);
  }
  if ((given->cache == NULL) != (given->linker == NULL)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "a %s without a %s",
                   given->cache != NULL ? "cache" : "linker",
                   given->cache != NULL ? "linker" : "cache"),
        "give both, or none: the cache stores what the linker makes");
  }
  return check_staging(given);
}

// ---- Making ----

static kiln_status_t dispatch_make_make_locks(kiln_dispatcher_t* dispatcher) {
  KILNI_RETURN_IF_ERROR(kilni_base_mutex_init(&dispatcher->limbo.lock));
  dispatcher->has_limbo_lock = true;
  KILNI_RETURN_IF_ERROR(kilni_base_mutex_init(&dispatcher->traps.lock));
  dispatcher->has_trap_lock = true;
  KILNI_RETURN_IF_ERROR(kilni_base_mutex_init(&dispatcher->seen.lock));
  dispatcher->has_seen_lock = true;
  KILNI_RETURN_IF_ERROR(kilni_base_mutex_init(&dispatcher->residents.lock));
  dispatcher->has_resident_lock = true;
  return kiln_ok();
}

// What names of this dispatcher look like: as those of none of the 4,095 before
// it on the same device; as those of another device's, by a chance of 1 in
// 4,096.
static uint64_t make_tag(const kiln_dispatcher_t* dispatcher) {
  kiln_device_t* whole = dispatcher->device->whole;
  uint64_t mixed = (uint64_t)(uintptr_t)whole * 0x9e3779b97f4a7c15u;
  uint64_t number = atomic_fetch_add(&whole->dispatchers, 1);
  return ((mixed >> (64 - TAG_BITS)) + number) & ((1u << TAG_BITS) - 1);
}

static kiln_status_t dispatch_make_make_parts(
    kiln_dispatcher_t* dispatcher, const kiln_dispatcher_options_t* given) {
  KILNI_RETURN_IF_ERROR(dispatch_make_make_locks(dispatcher));
  if (given->telemetry == KILN_SWITCH_ON) {
    KILNI_RETURN_IF_ERROR(kilni_dispatch_counters_create(
        dispatcher->allocator, &dispatcher->counters));
  }
  if (given->ranges != KILN_SWITCH_OFF) {
    dispatcher->ranges = kilni_table_nvtx_table_open(
        dispatcher->device->host, given->ranges == KILN_SWITCH_ON);
  }
  kilni_dispatch_residents_t* residents = &dispatcher->residents;
  residents->tag = make_tag(dispatcher);
  residents->budget = given->resident_bytes;
  residents->asks = given->resident_bytes == 0;
  if (residents->asks) {
    uint64_t free_bytes = 0;
    KILNI_RETURN_IF_ERROR(
        kiln_device_query_free(dispatcher->device, &free_bytes));
    residents->budget = free_bytes / 10 * 9;
  }
  kilni_dispatch_staging_options_t staging = {
      given->staging_bytes, given->staging_chunk_bytes, given->copy_threads, 0,
      dispatcher->counters};
  KILNI_RETURN_IF_ERROR(kilni_dispatch_staging_create(
      dispatcher->device, &staging, &dispatcher->staging));
  kiln_stream_t* first = NULL;
  return kilni_dispatch_own_stream(dispatcher, 0, &first);
}

kiln_status_t kiln_dispatcher_create(kiln_device_t* device,
                                     const kiln_dispatcher_options_t* options,
                                     kiln_dispatcher_t** out_dispatcher) {
  KILNI_CHECK_ARGUMENT(out_dispatcher != NULL, "out_dispatcher");
  *out_dispatcher = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  kiln_dispatcher_options_t given;
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_dispatcher_options_t, &given));
  KILNI_RETURN_IF_ERROR(make_check_options(&given));
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(device->host->allocator,
                                         sizeof(kiln_dispatcher_t), &block));
  kiln_dispatcher_t* dispatcher = block;
  dispatcher->device = device;
  dispatcher->allocator = device->host->allocator;
  dispatcher->stream_count = given.streams;
  dispatcher->transient_bytes = given.transient_bytes;
  dispatcher->cache = given.cache;
  dispatcher->linker = given.linker;
  kiln_device_retain(device);
  kiln_cache_retain(given.cache);
  kiln_linker_retain(given.linker);
  atomic_init(&dispatcher->references, 1);
  kiln_status_t status = dispatch_make_make_parts(dispatcher, &given);
  if (!kiln_status_is_ok(status)) {
    make_destroy(dispatcher);
    return status;
  }
  *out_dispatcher = dispatcher;
  return kiln_ok();
}

void kiln_dispatcher_retain(kiln_dispatcher_t* dispatcher) {
  if (dispatcher == NULL) return;
  atomic_fetch_add_explicit(&dispatcher->references, 1, memory_order_relaxed);
}

void kiln_dispatcher_release(kiln_dispatcher_t* dispatcher) {
  if (dispatcher == NULL || kilni_device_is_forked(dispatcher->device)) return;
  if (atomic_fetch_sub_explicit(&dispatcher->references, 1,
                                memory_order_acq_rel) == 1) {
    make_destroy(dispatcher);
  }
}

kiln_device_t* kiln_dispatcher_device(const kiln_dispatcher_t* dispatcher) {
  return dispatcher->device;
}

// ---- All at once ----

static kiln_status_t make_check_usable(const kiln_dispatcher_t* dispatcher) {
  KILNI_CHECK_ARGUMENT(dispatcher != NULL, "dispatcher");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(dispatcher->device->host));
  if (!kilni_device_is_lost(dispatcher->device)) return kiln_ok();
  return kilni_device_lost_status(dispatcher->device);
}

kiln_status_t kiln_dispatcher_warm(kiln_dispatcher_t* dispatcher) {
  KILNI_RETURN_IF_ERROR(make_check_usable(dispatcher));
  uint32_t all = dispatcher->stream_count + KILNI_MEMORY_STREAMS;
  for (uint32_t i = 0; i < all; i++) {
    kiln_stream_t* stream = NULL;
    kiln_buffer_t* buffer = NULL;
    KILNI_RETURN_IF_ERROR(kilni_dispatch_own_stream(dispatcher, i, &stream));
    // The driver sets a stream up when it is first used.
    if (i < dispatcher->stream_count) {
      KILNI_RETURN_IF_ERROR(
          kilni_dispatch_transient_buffer(dispatcher, stream, 1, &buffer));
    }
    kiln_buffer_release(buffer);
    KILNI_RETURN_IF_ERROR(kiln_stream_synchronize(stream));
  }
  return kilni_dispatch_staging_warm(dispatcher->staging);
}

kiln_status_t kiln_dispatcher_synchronize(kiln_dispatcher_t* dispatcher) {
  KILNI_RETURN_IF_ERROR(make_check_usable(dispatcher));
  uint64_t began = kilni_dispatch_count_clock(dispatcher->counters);
  kilni_dispatch_count(dispatcher->counters, KILNI_COUNTER_WAITS, 1);
  for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
    kiln_stream_t* stream = atomic_load(&dispatcher->own[i].stream);
    if (stream == NULL) continue;
    KILNI_RETURN_IF_ERROR(kiln_stream_synchronize(stream));
  }
  (void)kilni_dispatch_count_since(dispatcher->counters, KILNI_COUNTER_WAIT_NS,
                                   began);
  return kiln_ok();
}

kiln_status_t kiln_dispatcher_clean(kiln_dispatcher_t* dispatcher) {
  KILNI_RETURN_IF_ERROR(kiln_dispatcher_synchronize(dispatcher));
  for (uint32_t i = 0; i < KILNI_MEMORY_STREAMS; i++) {
    kiln_stream_t* stream =
        atomic_load(&dispatcher->own[dispatcher->stream_count + i].stream);
    if (stream == NULL) continue;
    KILNI_RETURN_IF_ERROR(kiln_stream_synchronize(stream));
  }
  kilni_dispatch_limbo_sweep(dispatcher, false);
  kilni_dispatch_traps_trim(dispatcher);
  kiln_status_t status = kilni_dispatch_streams_forget(dispatcher);
  kilni_dispatch_streams_trim(dispatcher);
  status = kilni_base_status_join(
      status, kilni_dispatch_staging_trim(dispatcher->staging));
  // The device's own, which its other users make again as well.
  kilni_device_pools_drain(dispatcher->device);
  kilni_device_spares_drain(dispatcher->device->whole);
  return status;
}

bool kiln_dispatcher_has_grid_barrier(const kiln_dispatcher_t* dispatcher) {
  return dispatcher->device->info.cooperative_launch != 0;
}

void kiln_dispatcher_counts(kiln_dispatcher_t* dispatcher,
                            kiln_dispatcher_counts_t* out_counts) {
  memset(out_counts, 0, sizeof(*out_counts));
  if (dispatcher == NULL) return;
  kilni_dispatch_residents_t* residents = &dispatcher->residents;
  kilni_base_mutex_lock(&residents->lock);
  out_counts->resident_bytes = residents->bytes;
  out_counts->resident_peak = residents->peak;
  out_counts->resident_budget = residents->budget;
  out_counts->residents = residents->count;
  kilni_base_mutex_unlock(&residents->lock);
  kilni_dispatch_staging_count(dispatcher->staging, out_counts);
  kilni_dispatch_streams_count(dispatcher, out_counts);
  out_counts->pipelines = atomic_load(&dispatcher->pipelines);
  out_counts->pendings = atomic_load(&dispatcher->pendings);
  out_counts->trap_pages = kilni_dispatch_traps_count(dispatcher);
}
