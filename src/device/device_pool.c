// SPDX-License-Identifier: Apache-2.0
//
// device: streams and events that the device keeps for its own use.
//
// An event between two streams lives for two calls, and making one costs more
// than both. What comes back is kept, up to a bound, and is destroyed before
// the context goes. Timed events are kept apart: a record of one is slower.
#include <string.h>

#include "base/alloc.h"
#include "device/device_scope.h"

kiln_status_t kilni_device_pools_init(kilni_device_pools_t* pools) {
  memset(pools, 0, sizeof(*pools));
  return kilni_base_mutex_init(&pools->lock);
}

void kilni_device_pools_deinit(kilni_device_pools_t* pools) {
  kilni_base_mutex_deinit(&pools->lock);
}

kilni_device_pool_counts_t kilni_device_pools_counts(kiln_device_t* device,
                                                     uint32_t pool) {
  kilni_base_mutex_lock(&device->pools.lock);
  kilni_device_pool_counts_t counts = device->pools.counts[pool];
  kilni_base_mutex_unlock(&device->pools.lock);
  return counts;
}

static void count_use(kilni_device_pool_counts_t* counts) {
  if (++counts->in_use > counts->peak) counts->peak = counts->in_use;
}

// One that was kept; NULL if there is none.
static void* take_kept(kiln_device_t* device, uint32_t pool) {
  kilni_device_pools_t* pools = &device->pools;
  kilni_device_pool_counts_t* counts = &pools->counts[pool];
  void* taken = NULL;
  kilni_base_mutex_lock(&pools->lock);
  if (counts->kept > 0) {
    taken = pools->kept[pool][--counts->kept];
    count_use(counts);
  }
  kilni_base_mutex_unlock(&pools->lock);
  return taken;
}

static void count_made(kiln_device_t* device, uint32_t pool) {
  kilni_base_mutex_lock(&device->pools.lock);
  device->pools.counts[pool].made++;
  count_use(&device->pools.counts[pool]);
  kilni_base_mutex_unlock(&device->pools.lock);
}

// False if the pool is full: the handle is to be destroyed.
static bool pool_keep(kiln_device_t* device, uint32_t pool, void* handle) {
  kilni_device_pools_t* pools = &device->pools;
  kilni_device_pool_counts_t* counts = &pools->counts[pool];
  kilni_base_mutex_lock(&pools->lock);
  counts->in_use--;
  bool kept = counts->kept < KILNI_POOL_KEPT;
  if (kept) pools->kept[pool][counts->kept++] = handle;
  kilni_base_mutex_unlock(&pools->lock);
  return kept;
}

// ---- Memory ----

kiln_status_t kilni_device_spare_take(kiln_device_t* device, void** out_block) {
  kilni_device_pools_t* pools = &device->whole->pools;
  kilni_base_mutex_lock(&pools->lock);
  *out_block =
      pools->spare_count > 0 ? pools->spares[--pools->spare_count] : NULL;
  kilni_base_mutex_unlock(&pools->lock);
  if (*out_block != NULL) return kiln_ok();
  return kilni_base_alloc_unset(device->host->allocator, KILNI_SPARE_BYTES,
                                out_block);
}

void kilni_device_spare_give(kiln_device_t* device, void* block) {
  kilni_device_pools_t* pools = &device->whole->pools;
  kilni_base_mutex_lock(&pools->lock);
  bool kept = pools->spare_count < KILNI_SPARES_KEPT;
  if (kept) pools->spares[pools->spare_count++] = block;
  kilni_base_mutex_unlock(&pools->lock);
  if (!kept) {
    kilni_base_free(device->host->allocator, block, KILNI_SPARE_BYTES);
  }
}

void kilni_device_spares_drain(kiln_device_t* device) {
  kilni_device_pools_t* pools = &device->pools;
  for (;;) {
    kilni_base_mutex_lock(&pools->lock);
    void* block =
        pools->spare_count > 0 ? pools->spares[--pools->spare_count] : NULL;
    kilni_base_mutex_unlock(&pools->lock);
    if (block == NULL) return;
    kilni_base_free(device->host->allocator, block, KILNI_SPARE_BYTES);
  }
}

// ---- Events ----

static uint32_t events_of(bool timing) {
  return timing ? KILNI_POOL_TIMED_EVENTS : KILNI_POOL_EVENTS;
}

static void destroy_event(kiln_device_t* device, kiln_cu_event_t event) {
  KILNI_DEVICE_END(device, cuEventDestroy, event);
}

kiln_status_t kilni_device_event_acquire(kiln_device_t* device, bool timing,
                                         kiln_cu_event_t* out_event) {
  *out_event = take_kept(device, events_of(timing));
  if (*out_event != NULL) return kiln_ok();
  kiln_cu_event_t event = NULL;
  kiln_status_t status;
  KILNI_DEVICE_CREATE(
      status, device, &event, cuEventCreate,
      timing ? KILN_CU_EVENT_DEFAULT : KILN_CU_EVENT_DISABLE_TIMING);
  if (!kiln_status_is_ok(status)) {
    if (event != NULL) destroy_event(device, event);
    return status;
  }
  count_made(device, events_of(timing));
  *out_event = event;
  return kiln_ok();
}

void kilni_device_event_recycle(kiln_device_t* device, bool timing,
                                kiln_cu_event_t event) {
  if (!pool_keep(device, events_of(timing), event)) {
    destroy_event(device, event);
  }
}

// ---- Streams ----

static void destroy_stream(kiln_device_t* device, kiln_cu_stream_t stream) {
  KILNI_DEVICE_END(device, cuStreamDestroy, stream);
}

kiln_status_t kilni_device_stream_acquire(kiln_device_t* device,
                                          kiln_cu_stream_t* out_stream) {
  *out_stream = take_kept(device, KILNI_POOL_STREAMS);
  if (*out_stream != NULL) return kiln_ok();
  kiln_cu_stream_t stream = NULL;
  kiln_status_t status =
      kilni_device_stream_make(device, KILN_CU_STREAM_NON_BLOCKING, 0, &stream);
  if (!kiln_status_is_ok(status)) {
    if (stream != NULL) destroy_stream(device, stream);
    return status;
  }
  count_made(device, KILNI_POOL_STREAMS);
  *out_stream = stream;
  return kiln_ok();
}

void kilni_device_stream_recycle(kiln_device_t* device,
                                 kiln_cu_stream_t stream) {
  if (!pool_keep(device, KILNI_POOL_STREAMS, stream)) {
    destroy_stream(device, stream);
  }
}

static void* pool_take_out(kilni_device_pools_t* pools, uint32_t pool) {
  kilni_device_pool_counts_t* counts = &pools->counts[pool];
  kilni_base_mutex_lock(&pools->lock);
  void* handle = counts->kept > 0 ? pools->kept[pool][--counts->kept] : NULL;
  kilni_base_mutex_unlock(&pools->lock);
  return handle;
}

void kilni_device_pools_drain(kiln_device_t* device) {
  for (uint32_t pool = 0; pool < KILNI_POOL_COUNT; pool++) {
    for (;;) {
      void* handle = pool_take_out(&device->pools, pool);
      if (handle == NULL) break;
      if (pool == KILNI_POOL_STREAMS) {
        destroy_stream(device, handle);
      } else {
        destroy_event(device, handle);
      }
    }
  }
}

void kilni_device_stream_forget(kiln_device_t* device, kiln_cu_stream_t stream,
                                bool destroy) {
  kilni_base_mutex_lock(&device->pools.lock);
  device->pools.counts[KILNI_POOL_STREAMS].in_use--;
  kilni_base_mutex_unlock(&device->pools.lock);
  if (destroy) destroy_stream(device, stream);
}
