// SPDX-License-Identifier: Apache-2.0
//
// dispatch: streams of a dispatcher, those of callers that it has seen, and
// device memory that work on them needs for a short while.
//
// A caller's stream is remembered as long as there is space, so that memory can
// be freed after the work on it. Where there is none, the stream of frees waits
// for the one that is dropped, which covers every later free.
#include "base/status_make.h"
#include "dispatch/dispatch_inside.h"

// ---- Own streams ----

static kiln_status_t streams_make(kiln_dispatcher_t* dispatcher, uint32_t index,
                                  kiln_stream_t** out_stream) {
  kiln_stream_t* made = NULL;
  kiln_stream_t* first = NULL;
  KILNI_RETURN_IF_ERROR(kiln_stream_create(dispatcher->device, NULL, &made));
  if (!atomic_compare_exchange_strong(&dispatcher->own[index].stream, &first,
                                      made)) {
    kiln_stream_release(made);
    made = first;
  }
  *out_stream = made;
  return kiln_ok();
}

kiln_status_t kilni_dispatch_own_stream(kiln_dispatcher_t* dispatcher,
                                        uint32_t index,
                                        kiln_stream_t** out_stream) {
  *out_stream = atomic_load_explicit(&dispatcher->own[index].stream,
                                     memory_order_acquire);
  return *out_stream != NULL ? kiln_ok()
                             : streams_make(dispatcher, index, out_stream);
}

uint32_t kiln_dispatcher_stream_count(const kiln_dispatcher_t* dispatcher) {
  return dispatcher->stream_count;
}

kiln_status_t kiln_dispatcher_stream(kiln_dispatcher_t* dispatcher,
                                     uint32_t index,
                                     kiln_stream_t** out_stream) {
  KILNI_CHECK_ARGUMENT(out_stream != NULL, "out_stream");
  *out_stream = NULL;
  KILNI_CHECK_ARGUMENT(dispatcher != NULL, "dispatcher");
  if (index >= dispatcher->stream_count) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(OUT_OF_RANGE, "own stream %u of %u", (unsigned)index,
                   (unsigned)dispatcher->stream_count),
        "number them from 0, or make the dispatcher with more `streams`");
  }
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(dispatcher->device->host));
  if (kilni_device_is_lost(dispatcher->device)) {
    return kilni_device_lost_status(dispatcher->device);
  }
  atomic_store(&dispatcher->own[index].given_out, true);
  return kilni_dispatch_own_stream(dispatcher, index, out_stream);
}

bool kilni_dispatch_stream_is_ours(const kiln_dispatcher_t* dispatcher,
                                   const kiln_stream_t* stream) {
  for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
    const kilni_dispatch_own_stream_t* own = &dispatcher->own[i];
    if (atomic_load_explicit(&own->stream, memory_order_relaxed) == stream) {
      return !atomic_load_explicit(&own->given_out, memory_order_relaxed);
    }
  }
  return false;
}

// ---- Streams of callers ----

static bool streams_is_own(kiln_dispatcher_t* dispatcher,
                           const kiln_stream_t* stream) {
  for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
    if (atomic_load_explicit(&dispatcher->own[i].stream,
                             memory_order_relaxed) == stream) {
      return true;
    }
  }
  return false;
}

static bool was_seen(kilni_dispatch_seen_t* seen, const kiln_stream_t* stream) {
  uint32_t count = atomic_load_explicit(&seen->count, memory_order_acquire);
  for (uint32_t i = 0; i < count; i++) {
    if (atomic_load_explicit(&seen->streams[i], memory_order_relaxed) ==
        stream) {
      return true;
    }
  }
  return false;
}

// What a graph under capture will do is its owner's to order. The stream of a
// graph builder that is not capturing has nothing on it, and takes nothing.
static kiln_status_t streams_wait_for(kiln_stream_t* stream,
                                      kiln_stream_t* other) {
  bool captured = false;
  if ((kilni_device_stream_way(other) & (KILNI_WAY_IDLE | KILNI_WAY_LEFT)) !=
      0) {
    return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(kilni_device_stream_ask_capture(other, &captured));
  return captured ? kiln_ok() : kiln_stream_wait_stream(stream, other);
}

static kiln_status_t remember(kiln_dispatcher_t* dispatcher,
                              kiln_stream_t* stream) {
  kilni_dispatch_seen_t* seen = &dispatcher->seen;
  kiln_stream_t* leaves = NULL;
  kilni_base_mutex_lock(&seen->lock);
  if (!was_seen(seen, stream)) {
    uint32_t count = atomic_load(&seen->count);
    uint32_t at = count;
    kiln_stream_retain(stream);
    if (count == KILNI_SEEN_STREAMS) {
      at = seen->next;
      seen->next = (at + 1) % KILNI_SEEN_STREAMS;
      leaves = atomic_load(&seen->streams[at]);
      // Prepared dispatches that remember it look again.
      atomic_fetch_add(&dispatcher->residents.frees, 1);
    }
    atomic_store(&seen->streams[at], stream);
    if (at == count) atomic_store(&seen->count, count + 1);
  }
  kilni_base_mutex_unlock(&seen->lock);
  if (leaves == NULL) return kiln_ok();
  kiln_stream_t* frees = NULL;
  kiln_status_t status = kilni_dispatch_own_stream(
      dispatcher, dispatcher->stream_count + 1, &frees);
  if (kiln_status_is_ok(status)) status = streams_wait_for(frees, leaves);
  kiln_stream_release(leaves);
  return status;
}

kiln_status_t kilni_dispatch_stream(kiln_dispatcher_t* dispatcher,
                                    kiln_stream_t* stream,
                                    kiln_stream_t** out_stream) {
  *out_stream = stream;
  if (stream == NULL) {
    return kilni_dispatch_own_stream(dispatcher, 0, out_stream);
  }
  if (stream->device != dispatcher->device) {
    KILNI_RETURN_IF_ERROR(kilni_device_check_memory(
        dispatcher->device, stream->device, "the stream"));
  }
  if (was_seen(&dispatcher->seen, stream) ||
      streams_is_own(dispatcher, stream)) {
    return kiln_ok();
  }
  return remember(dispatcher, stream);
}

kiln_status_t kilni_dispatch_streams_join(kiln_dispatcher_t* dispatcher,
                                          kiln_stream_t* stream) {
  kiln_stream_t* all[KILNI_OWN_STREAMS + KILNI_SEEN_STREAMS];
  uint32_t count = 0;
  for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
    all[count] = atomic_load(&dispatcher->own[i].stream);
    kiln_stream_retain(all[count]);
    if (all[count] != NULL) count++;
  }
  kilni_base_mutex_lock(&dispatcher->seen.lock);
  uint32_t seen = atomic_load(&dispatcher->seen.count);
  for (uint32_t i = 0; i < seen; i++) {
    all[count] = atomic_load(&dispatcher->seen.streams[i]);
    kiln_stream_retain(all[count++]);
  }
  kilni_base_mutex_unlock(&dispatcher->seen.lock);
  kiln_status_t status = kiln_ok();
  for (uint32_t i = 0; i < count; i++) {
    status = kilni_base_status_join(status, streams_wait_for(stream, all[i]));
    kiln_stream_release(all[i]);
  }
  return status;
}

// ---- Memory for a dispatch ----

static kiln_status_t make_store(kiln_dispatcher_t* dispatcher,
                                kiln_stream_t* stream,
                                kiln_transient_t** out_store) {
  kiln_transient_options_t options = kiln_transient_options_default();
  options.max_bytes = dispatcher->transient_bytes / dispatcher->stream_count;
  if (options.max_bytes == 0) options.max_bytes = 1;
  return kiln_transient_create(stream, &options, out_store);
}

static kilni_dispatch_own_stream_t* streams_find_own(
    kiln_dispatcher_t* dispatcher, const kiln_stream_t* stream) {
  for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
    if (atomic_load_explicit(&dispatcher->own[i].stream,
                             memory_order_relaxed) == stream) {
      return &dispatcher->own[i];
    }
  }
  return NULL;
}

static kiln_status_t make_plainly(kiln_dispatcher_t* dispatcher,
                                  kiln_stream_t* stream, uint64_t bytes,
                                  kiln_buffer_t** out_buffer) {
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.stream = stream;
  kilni_dispatch_count(dispatcher->counters, KILNI_COUNTER_TRANSIENT_MISSES, 1);
  return kiln_buffer_create(dispatcher->device, bytes, &options, out_buffer);
}

// The thread that took the store out of its place reads its counters.
static kiln_status_t acquire(kiln_dispatcher_t* dispatcher,
                             kiln_transient_t* store, uint64_t bytes,
                             kiln_buffer_t** out_buffer) {
  kiln_transient_stats_t before, after;
  if (dispatcher->counters == NULL) {
    return kiln_transient_acquire(store, bytes, out_buffer);
  }
  kiln_transient_stats(store, &before);
  kiln_status_t status = kiln_transient_acquire(store, bytes, out_buffer);
  kiln_transient_stats(store, &after);
  kilni_dispatch_count(dispatcher->counters, KILNI_COUNTER_TRANSIENT_HITS,
                       after.hits - before.hits);
  kilni_dispatch_count(dispatcher->counters, KILNI_COUNTER_TRANSIENT_MISSES,
                       after.misses - before.misses);
  return status;
}

kiln_status_t kilni_dispatch_transient_buffer(kiln_dispatcher_t* dispatcher,
                                              kiln_stream_t* stream,
                                              uint64_t bytes,
                                              kiln_buffer_t** out_buffer) {
  kilni_dispatch_own_stream_t* own = streams_find_own(dispatcher, stream);
  *out_buffer = NULL;
  if (own == NULL) {
    return make_plainly(dispatcher, stream, bytes, out_buffer);
  }
  kiln_transient_t* store = atomic_exchange(&own->store, NULL);
  if (store == NULL) {
    if (atomic_exchange(&own->has_store, true)) {
      return make_plainly(dispatcher, stream, bytes, out_buffer);
    }
    kiln_status_t status = make_store(dispatcher, stream, &store);
    if (!kiln_status_is_ok(status)) {
      atomic_store(&own->has_store, false);
      return status;
    }
  }
  kiln_status_t status = acquire(dispatcher, store, bytes, out_buffer);
  atomic_store(&own->store, store);
  return status;
}

void kilni_dispatch_streams_trim(kiln_dispatcher_t* dispatcher) {
  for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
    kiln_transient_t* store = atomic_exchange(&dispatcher->own[i].store, NULL);
    if (store == NULL) continue;
    kiln_transient_trim(store, 0);
    atomic_store(&dispatcher->own[i].store, store);
  }
}

// Prepared dispatches that remember one look again, before its memory may be
// another stream's.
kiln_status_t kilni_dispatch_streams_forget(kiln_dispatcher_t* dispatcher) {
  kilni_dispatch_seen_t* seen = &dispatcher->seen;
  kiln_stream_t* leave[KILNI_SEEN_STREAMS];
  kiln_stream_t* frees = NULL;
  kilni_base_mutex_lock(&seen->lock);
  uint32_t count = atomic_load(&seen->count);
  for (uint32_t i = 0; i < count; i++) {
    leave[i] = atomic_load(&seen->streams[i]);
  }
  atomic_store(&seen->count, 0);
  seen->next = 0;
  if (count > 0) atomic_fetch_add(&dispatcher->residents.frees, 1);
  kilni_base_mutex_unlock(&seen->lock);
  if (count == 0) return kiln_ok();
  kiln_status_t status = kilni_dispatch_own_stream(
      dispatcher, dispatcher->stream_count + 1, &frees);
  for (uint32_t i = 0; i < count; i++) {
    if (frees != NULL) {
      status =
          kilni_base_status_join(status, streams_wait_for(frees, leave[i]));
    }
    kiln_stream_release(leave[i]);
  }
  return status;
}

void kilni_dispatch_streams_count(kiln_dispatcher_t* dispatcher,
                                  kiln_dispatcher_counts_t* counts) {
  for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
    kilni_dispatch_own_stream_t* own = &dispatcher->own[i];
    counts->streams += atomic_load(&own->stream) != NULL;
    kiln_transient_t* store = atomic_exchange(&own->store, NULL);
    if (store == NULL) continue;
    kiln_transient_stats_t stats;
    kiln_transient_stats(store, &stats);
    atomic_store(&own->store, store);
    counts->transient_bytes += stats.bytes;
    counts->transient_idle += stats.idle_bytes;
    counts->transient_hits += stats.hits;
    counts->transient_misses += stats.misses;
  }
}

void kilni_dispatch_streams_deinit(kiln_dispatcher_t* dispatcher) {
  for (uint32_t i = 0; i < KILNI_OWN_STREAMS + KILNI_MEMORY_STREAMS; i++) {
    kiln_transient_release(atomic_load(&dispatcher->own[i].store));
    kiln_stream_release(atomic_load(&dispatcher->own[i].stream));
  }
  uint32_t seen = atomic_load(&dispatcher->seen.count);
  for (uint32_t i = 0; i < seen; i++) {
    kiln_stream_release(atomic_load(&dispatcher->seen.streams[i]));
  }
}
