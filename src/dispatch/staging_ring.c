// SPDX-License-Identifier: Apache-2.0
//
// dispatch: pinned memory that pageable memory is copied through, chunk by
// chunk.
//
// A chunk belongs to one copy at a time. It is taken under a lock, which is not
// held during a driver call, and waits for its own event before it is written
// again: copies from it, by the device or the host, are done then.
//
// Both directions are one loop over parts in progress: each is begun, and ended
// when the next one is, or when there is no chunk for it. An upload lets the
// threads begin and passes a chunk to the device when it is full; a download
// lets the device begin and empties a chunk when its data has arrived. Parts
// that a download has in progress when it returns are emptied by the driver's
// own thread (a host function of the stream), with the same threads.
#include "device/device_scope.h"
#include "dispatch/staging_ring.h"

#include <string.h>

#include "base/alloc.h"
#include "base/debug_assert.h"
#include "base/status_make.h"
#include "dispatch/copy_crew.h"

enum { UNDER_WAY = 32 };  // parts of one copy

// One chunk of pinned memory. thread-compatible, owned by the thread that has
// taken it
typedef struct chunk_t {
  kiln_buffer_t* buffer;  // NULL: not made yet
  kiln_event_t* free;     // after its last use
  bool used;              // `free` was recorded
  bool taken;             // under the lock
  // May still use it, where no event could mark the end. Kept for it.
  kiln_stream_t* stray;
  kilni_dispatch_crew_t* crew;
  kilni_dispatch_copy_t copy;  // by the host, in or out
} chunk_t;

struct kilni_dispatch_staging_t {
  kiln_device_t* device;
  kilni_dispatch_counters_t* counters;
  kilni_base_mutex_t lock;
  kilni_base_cond_t changed;
  uint64_t chunk_bytes;
  uint32_t count;
  uint32_t next;     // under the lock, as the next two
  uint32_t taken;    //
  uint32_t waiting;  // for a chunk
  bool has_lock;
  bool has_cond;
  bool crowd;        // more than one thread copies
  bool past_caches;  // uploads too
  atomic_uint made;
  kilni_dispatch_crew_t* crew;
  chunk_t* chunks;
};

// ---- Waiting ----

// Until nothing uses a chunk that the caller has taken. What cannot be waited
// for uses it still.
static kiln_status_t staging_ring_wait_for(chunk_t* chunk) {
  if (chunk->stray != NULL) {
    KILNI_RETURN_IF_ERROR(kiln_stream_synchronize(chunk->stray));
    kiln_stream_release(chunk->stray);
    chunk->stray = NULL;
  }
  if (chunk->used) {
    KILNI_RETURN_IF_ERROR(kiln_event_synchronize(chunk->free));
    chunk->used = false;
  }
  return kiln_ok();
}

// ---- Making and ending ----

kiln_status_t kilni_dispatch_staging_create(
    kiln_device_t* device, const kilni_dispatch_staging_options_t* options,
    kilni_dispatch_staging_t** out_staging) {
  kiln_allocator_t allocator = device->host->allocator;
  void* block = NULL;
  *out_staging = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kilni_dispatch_staging_t), &block));
  kilni_dispatch_staging_t* staging = block;
  staging->device = device;
  staging->counters = options->counters;
  staging->chunk_bytes = options->chunk_bytes;
  staging->count = (uint32_t)(options->bytes / options->chunk_bytes);
  staging->crowd = options->threads > 1;
  staging->past_caches = options->past_caches != 0;
  kiln_status_t status =
      kilni_dispatch_crew_create(allocator, options->threads, &staging->crew);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_alloc_array(allocator, staging->count, sizeof(chunk_t),
                                    &block);
  }
  if (kiln_status_is_ok(status)) {
    staging->chunks = block;
    for (uint32_t i = 0; i < staging->count; i++) {
      staging->chunks[i].crew = staging->crew;
    }
    status = kilni_base_mutex_init(&staging->lock);
    staging->has_lock = kiln_status_is_ok(status);
  }
  if (kiln_status_is_ok(status)) {
    status = kilni_base_cond_init(&staging->changed);
    staging->has_cond = kiln_status_is_ok(status);
  }
  if (!kiln_status_is_ok(status)) {
    kilni_dispatch_staging_destroy(staging);
    return status;
  }
  *out_staging = staging;
  return kiln_ok();
}

// Ends the memory of a chunk that the caller has taken.
static void staging_ring_drop(kilni_dispatch_staging_t* staging,
                              chunk_t* chunk) {
  if (chunk->buffer == NULL) return;
  kiln_stream_release(chunk->stray);
  kiln_event_release(chunk->free);
  kiln_buffer_release(chunk->buffer);
  chunk->stray = NULL;
  chunk->free = NULL;
  chunk->buffer = NULL;
  chunk->used = false;
  atomic_fetch_sub(&staging->made, 1);
}

void kilni_dispatch_staging_destroy(kilni_dispatch_staging_t* staging) {
  if (staging == NULL) return;
  kiln_allocator_t allocator = staging->device->host->allocator;
  for (uint32_t i = 0; staging->chunks != NULL && i < staging->count; i++) {
    kiln_status_free(staging_ring_wait_for(&staging->chunks[i]));
    staging_ring_drop(staging, &staging->chunks[i]);
  }
  kilni_dispatch_crew_destroy(staging->crew);  // work in progress has used it
  if (staging->has_cond) kilni_base_cond_deinit(&staging->changed);
  if (staging->has_lock) kilni_base_mutex_deinit(&staging->lock);
  kilni_base_free_array(allocator, staging->chunks, staging->count,
                        sizeof(chunk_t));
  kilni_base_free(allocator, staging, sizeof(*staging));
}

// ---- Chunks ----

// Under the lock.
static chunk_t* find_free(kilni_dispatch_staging_t* staging) {
  for (uint32_t i = 0; i < staging->count; i++) {
    uint32_t at = (staging->next + i) % staging->count;
    if (staging->chunks[at].taken) continue;
    staging->next = (at + 1) % staging->count;
    return &staging->chunks[at];
  }
  return NULL;
}

// NULL where there is none at the moment. A thread that has chunks already must
// not wait for one, and leaves free chunks to threads that wait.
static chunk_t* staging_ring_take(kilni_dispatch_staging_t* staging,
                                  bool may_wait) {
  chunk_t* chunk = NULL;
  kilni_base_mutex_lock(&staging->lock);
  if (may_wait) {
    staging->waiting++;
    while ((chunk = find_free(staging)) == NULL) {
      kilni_base_cond_wait(&staging->changed, &staging->lock);
    }
    staging->waiting--;
  } else if (staging->count - staging->taken > staging->waiting) {
    chunk = find_free(staging);
  }
  if (chunk != NULL) {
    chunk->taken = true;
    staging->taken++;
  }
  kilni_base_mutex_unlock(&staging->lock);
  return chunk;
}

static bool take_this(kilni_dispatch_staging_t* staging, chunk_t* chunk) {
  kilni_base_mutex_lock(&staging->lock);
  bool ours = !chunk->taken;
  if (ours) staging->taken++;
  chunk->taken = true;
  kilni_base_mutex_unlock(&staging->lock);
  return ours;
}

static void staging_ring_give(kilni_dispatch_staging_t* staging,
                              chunk_t* chunk) {
  kilni_base_mutex_lock(&staging->lock);
  chunk->taken = false;
  staging->taken--;
  kilni_base_cond_signal(&staging->changed);
  kilni_base_mutex_unlock(&staging->lock);
}

// Memory for a chunk that was taken and is no longer used.
static kiln_status_t staging_ring_make_ready(kilni_dispatch_staging_t* staging,
                                             chunk_t* chunk) {
  if (chunk->buffer != NULL) return staging_ring_wait_for(chunk);
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.kind = KILN_MEMORY_PINNED;
  KILNI_RETURN_IF_ERROR(kiln_event_create(staging->device, NULL, &chunk->free));
  kiln_status_t status = kiln_buffer_create(
      staging->device, staging->chunk_bytes, &options, &chunk->buffer);
  if (!kiln_status_is_ok(status)) {
    kiln_event_release(chunk->free);
    chunk->free = NULL;
    return status;
  }
  atomic_fetch_add(&staging->made, 1);
  return kiln_ok();
}

kiln_status_t kilni_dispatch_staging_warm(kilni_dispatch_staging_t* staging) {
  for (uint32_t i = 0; i < staging->count; i++) {
    chunk_t* chunk = staging_ring_take(staging, true);
    kiln_status_t status = staging_ring_make_ready(staging, chunk);
    staging_ring_give(staging, chunk);
    KILNI_RETURN_IF_ERROR(status);
  }
  return kilni_dispatch_crew_start(staging->crew);
}

kiln_status_t kilni_dispatch_staging_trim(kilni_dispatch_staging_t* staging) {
  kiln_status_t status = kiln_ok();
  for (uint32_t i = 0; i < staging->count; i++) {
    chunk_t* chunk = &staging->chunks[i];
    if (!take_this(staging, chunk)) continue;
    kiln_status_t waited = staging_ring_wait_for(chunk);
    if (kiln_status_is_ok(waited)) staging_ring_drop(staging, chunk);
    status = kilni_base_status_join(status, waited);
    staging_ring_give(staging, chunk);
  }
  kilni_dispatch_crew_rest(staging->crew);
  return status;
}

// Whether a chunk that was taken waits for nothing.
static bool is_idle(chunk_t* chunk) {
  bool ready = true;
  if (chunk->stray != NULL) return false;
  if (!chunk->used) return true;
  kiln_status_t status = kiln_event_query(chunk->free, &ready);
  bool idle = kiln_status_is_ok(status) && ready;
  kiln_status_free(status);
  chunk->used = !idle;
  return idle;
}

void kilni_dispatch_staging_count(kilni_dispatch_staging_t* staging,
                                  kiln_dispatcher_counts_t* counts) {
  uint64_t idle = 0;
  for (uint32_t i = 0; i < staging->count; i++) {
    chunk_t* chunk = &staging->chunks[i];
    if (!take_this(staging, chunk)) continue;
    idle += chunk->buffer != NULL && is_idle(chunk);
    staging_ring_give(staging, chunk);
  }
  uint64_t made = atomic_load(&staging->made);
  counts->staging_bytes = made * staging->chunk_bytes;
  counts->staging_idle = (idle < made ? idle : made) * staging->chunk_bytes;
  counts->copy_threads = kilni_dispatch_crew_running(staging->crew);
}

// ---- Before a copy ----

// Whether the driver knows the memory, and so copies it by itself.
static bool is_pinned(kilni_dispatch_staging_t* staging, const void* data) {
  uint32_t type = 0;
  kiln_cu_pointer_attribute_t names[] = {KILN_CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
  void* values[] = {&type};
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, staging->device, cuPointerGetAttributes, 1, names,
                    values, (kiln_cu_deviceptr_t)(uintptr_t)data);
  bool known = kiln_status_is_ok(status) && type != 0;
  kiln_status_free(status);
  return known;
}

static kiln_status_t staging_ring_check_capture(kiln_stream_t* stream) {
  bool captured = false;
  KILNI_RETURN_IF_ERROR(kilni_device_stream_ask_capture(stream, &captured));
  if (!captured) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "pageable host memory on a stream that is being captured"),
      "pin the memory (kiln_resident_pin), or copy it before the capture");
}

static kiln_status_t begin_staged(kilni_dispatch_staging_t* staging,
                                  kiln_stream_t* stream, uint64_t bytes) {
  KILNI_RETURN_IF_ERROR(staging_ring_check_capture(stream));
  kilni_dispatch_count(staging->counters, KILNI_COUNTER_STAGED_BYTES, bytes);
  return kilni_dispatch_crew_start(staging->crew);
}

// ---- Parts of a copy ----

// One copy, and its parts in progress, the oldest first. one-thread
typedef struct transfer_t {
  kilni_dispatch_staging_t* staging;
  kiln_stream_t* stream;
  kiln_buffer_t* buffer;
  uint64_t offset;
  const char* from;  // NULL: a download
  char* to;          // NULL: an upload
  bool waits;        // a download that has been emptied when it returns
  uint32_t most;     // parts under way
  uint32_t first;
  uint32_t count;
  struct {
    chunk_t* chunk;
    uint64_t offset;
  } parts[UNDER_WAY];
} transfer_t;

// Any work on the stream may use the chunk. Where nothing can mark its end, the
// chunk waits for it: now or, where that fails too, before its next use.
static kiln_status_t guard(chunk_t* chunk, kiln_stream_t* stream) {
  kiln_status_t status = kiln_event_record(chunk->free, stream);
  chunk->used = kiln_status_is_ok(status);
  if (chunk->used) return kiln_ok();
  kiln_stream_retain(stream);
  chunk->stray = stream;
  return kilni_base_status_join(status, staging_ring_wait_for(chunk));
}

static kiln_status_t begin_part(const transfer_t* t, chunk_t* chunk,
                                uint64_t at, size_t bytes) {
  void* pinned = kiln_buffer_host(chunk->buffer);
  chunk->copy.bytes = bytes;
  if (t->from != NULL) {
    chunk->copy.to = pinned;
    chunk->copy.from = t->from + at;
    // The device reads it from the caches, and the next one is written there.
    chunk->copy.past_caches = t->staging->past_caches;
    kilni_dispatch_crew_begin(chunk->crew, &chunk->copy);
    return kiln_ok();
  }
  chunk->copy.to = t->to + at;
  chunk->copy.from = pinned;
  chunk->copy.past_caches = true;
  kiln_status_t status = kiln_buffer_read_async(t->buffer, t->stream,
                                                t->offset + at, bytes, pinned);
  return kilni_base_status_join(status, guard(chunk, t->stream));
}

static void copy_out(void* user) {
  chunk_t* chunk = user;
  kilni_dispatch_crew_begin(chunk->crew, &chunk->copy);
  kilni_dispatch_crew_finish(chunk->crew, &chunk->copy);
}

// Ends the oldest part. `good`: nothing has failed; else what it began is only
// waited for.
static kiln_status_t staging_ring_end_part(transfer_t* t, bool good) {
  chunk_t* chunk = t->parts[t->first].chunk;
  uint64_t at = t->parts[t->first].offset;
  kiln_status_t status = kiln_ok();
  KILNI_ASSERT(chunk != NULL);  // a part that has begun has its chunk
  t->first = (t->first + 1) % UNDER_WAY;
  t->count--;
  if (t->from != NULL) {
    kilni_dispatch_crew_finish(chunk->crew, &chunk->copy);
    if (good) {
      status = kiln_buffer_write_async(t->buffer, t->stream, t->offset + at,
                                       chunk->copy.bytes, chunk->copy.to);
      status = kilni_base_status_join(status, guard(chunk, t->stream));
    }
  } else if (good) {
    status = staging_ring_wait_for(chunk);
    if (kiln_status_is_ok(status)) copy_out(chunk);
  }
  staging_ring_give(t->staging, chunk);
  return status;
}

// The device has all of a download that is left; the stream empties it.
static kiln_status_t leave_part(transfer_t* t) {
  chunk_t* chunk = t->parts[t->first].chunk;
  kiln_status_t status = kiln_stream_call_host(t->stream, copy_out, chunk);
  if (!kiln_status_is_ok(status)) {
    return kilni_base_status_join(status, staging_ring_end_part(t, false));
  }
  t->first = (t->first + 1) % UNDER_WAY;
  t->count--;
  status = guard(chunk, t->stream);
  staging_ring_give(t->staging, chunk);
  return status;
}

// A chunk for the next part, with space for the part in the list.
static kiln_status_t next_chunk(transfer_t* t, chunk_t** out_chunk) {
  chunk_t* chunk = NULL;
  for (;;) {
    if (t->count < t->most) {
      chunk = staging_ring_take(t->staging, t->count == 0);
    }
    if (chunk != NULL) break;
    KILNI_RETURN_IF_ERROR(staging_ring_end_part(t, true));
  }
  kiln_status_t status = staging_ring_make_ready(t->staging, chunk);
  if (!kiln_status_is_ok(status)) {
    staging_ring_give(t->staging, chunk);
    return status;
  }
  *out_chunk = chunk;
  return kiln_ok();
}

static kiln_status_t move_parts(transfer_t* t, uint64_t bytes) {
  uint64_t part = 0;
  for (uint64_t at = 0; at < bytes; at += part) {
    chunk_t* chunk = NULL;
    part = bytes - at;
    if (part > t->staging->chunk_bytes) part = t->staging->chunk_bytes;
    KILNI_RETURN_IF_ERROR(next_chunk(t, &chunk));
    uint32_t place = (t->first + t->count++) % UNDER_WAY;
    t->parts[place].chunk = chunk;
    t->parts[place].offset = at;
    KILNI_RETURN_IF_ERROR(begin_part(t, chunk, at, (size_t)part));
  }
  while (t->count > 0) {
    bool leaves = t->to != NULL && !t->waits;
    KILNI_RETURN_IF_ERROR(leaves ? leave_part(t)
                                 : staging_ring_end_part(t, true));
  }
  return kiln_ok();
}

static kiln_status_t move_all(transfer_t* t, uint64_t bytes) {
  kiln_status_t status = move_parts(t, bytes);
  while (t->count > 0) {
    status = kilni_base_status_join(status, staging_ring_end_part(t, false));
  }
  return status;
}

// ---- Copies ----

kiln_status_t kilni_dispatch_staging_upload(kilni_dispatch_staging_t* staging,
                                            kiln_stream_t* stream,
                                            kiln_buffer_t* buffer,
                                            uint64_t offset, uint64_t bytes,
                                            const void* data) {
  kilni_dispatch_count(staging->counters, KILNI_COUNTER_UPLOADS, 1);
  kilni_dispatch_count(staging->counters, KILNI_COUNTER_UPLOADED_BYTES, bytes);
  if (is_pinned(staging, data)) {
    return kiln_buffer_write_async(buffer, stream, offset, (size_t)bytes, data);
  }
  KILNI_RETURN_IF_ERROR(begin_staged(staging, stream, bytes));
  transfer_t t = {.staging = staging,
                  .stream = stream,
                  .buffer = buffer,
                  .offset = offset,
                  .from = data,
                  .most = 1};
  // The threads go on with the next chunk while this one hands a full one over;
  // with fewer than three the device would wait for that.
  if (staging->crowd && staging->count > 2) t.most = 2;
  return move_all(&t, bytes);
}

kiln_status_t kilni_dispatch_staging_download(kilni_dispatch_staging_t* staging,
                                              kiln_stream_t* stream,
                                              kiln_buffer_t* buffer,
                                              uint64_t offset, uint64_t bytes,
                                              void* out_data, bool waits) {
  kilni_dispatch_count(staging->counters, KILNI_COUNTER_DOWNLOADS, 1);
  kilni_dispatch_count(staging->counters, KILNI_COUNTER_DOWNLOADED_BYTES,
                       bytes);
  if (is_pinned(staging, out_data)) {
    return kiln_buffer_read_async(buffer, stream, offset, (size_t)bytes,
                                  out_data);
  }
  KILNI_RETURN_IF_ERROR(begin_staged(staging, stream, bytes));
  transfer_t t = {.staging = staging,
                  .stream = stream,
                  .buffer = buffer,
                  .offset = offset,
                  .to = out_data,
                  .waits = waits,
                  .most = UNDER_WAY};
  return move_all(&t, bytes);
}
