// SPDX-License-Identifier: Apache-2.0
//
// dispatch: pinned memory that pageable memory is copied through, chunk by
// chunk.
//
// A chunk belongs to one copy at a time. It is taken under a lock, which is not
// held over a driver call, and waits for its own event before it is written
// again: what was copied from it, or by the host out of it, is done then.
#include "dispatch/staging_ring.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "device/device_inside.h"

// One piece of pinned memory. thread-safe by whoever has taken it
typedef struct chunk_t {
  kiln_buffer_t* buffer;  // NULL: not made yet
  kiln_event_t* free;     // behind its last use
  bool used;              // `free` was recorded
  bool taken;             // under the lock
  // Of a download: what the host copies when the device has.
  void* target;
  size_t bytes;
} chunk_t;

struct kilni_staging_t {
  kiln_device_t* device;
  kilni_counters_t* counters;
  kilni_mutex_t lock;
  kilni_cond_t changed;
  uint64_t chunk_bytes;
  uint32_t count;
  uint32_t next;  // under the lock
  bool has_lock;
  bool has_cond;
  atomic_uint made;
  chunk_t* chunks;
};

// ---- Making and ending ----

kiln_status_t kilni_staging_create(kiln_device_t* device,
                                   const kilni_staging_options_t* options,
                                   kilni_staging_t** out_staging) {
  kiln_allocator_t allocator = device->host->allocator;
  void* block = NULL;
  *out_staging = NULL;
  if (options->threads > 1) {
    return kilni_status_with_fix(
        KILNI_FAIL(UNSUPPORTED, "`copy_threads` above 1: %u",
                   (unsigned)options->threads),
        "leave `copy_threads` at 1");
  }
  KILNI_RETURN_IF_ERROR(
      kilni_alloc(allocator, sizeof(kilni_staging_t), &block));
  kilni_staging_t* staging = block;
  staging->device = device;
  staging->counters = options->counters;
  staging->chunk_bytes = options->chunk_bytes;
  staging->count = (uint32_t)(options->bytes / options->chunk_bytes);
  kiln_status_t status =
      kilni_alloc_array(allocator, staging->count, sizeof(chunk_t), &block);
  if (kiln_status_is_ok(status)) {
    staging->chunks = block;
    status = kilni_mutex_init(&staging->lock);
    staging->has_lock = kiln_status_is_ok(status);
  }
  if (kiln_status_is_ok(status)) {
    status = kilni_cond_init(&staging->changed);
    staging->has_cond = kiln_status_is_ok(status);
  }
  if (!kiln_status_is_ok(status)) {
    kilni_staging_destroy(staging);
    return status;
  }
  *out_staging = staging;
  return NULL;
}

// Ends the memory of a chunk that the caller has taken.
static kiln_status_t drop(kilni_staging_t* staging, chunk_t* chunk) {
  kiln_status_t status = NULL;
  if (chunk->buffer == NULL) return NULL;
  if (chunk->used) status = kiln_event_synchronize(chunk->free);
  kiln_event_release(chunk->free);
  kiln_buffer_release(chunk->buffer);
  chunk->free = NULL;
  chunk->buffer = NULL;
  chunk->used = false;
  atomic_fetch_sub(&staging->made, 1);
  return status;
}

void kilni_staging_destroy(kilni_staging_t* staging) {
  if (staging == NULL) return;
  kiln_allocator_t allocator = staging->device->host->allocator;
  for (uint32_t i = 0; staging->chunks != NULL && i < staging->count; i++) {
    kiln_status_free(drop(staging, &staging->chunks[i]));
  }
  if (staging->has_cond) kilni_cond_deinit(&staging->changed);
  if (staging->has_lock) kilni_mutex_deinit(&staging->lock);
  kilni_free_array(allocator, staging->chunks, staging->count, sizeof(chunk_t));
  kilni_free(allocator, staging, sizeof(*staging));
}

// ---- Chunks ----

static chunk_t* take(kilni_staging_t* staging) {
  chunk_t* chunk = NULL;
  kilni_mutex_lock(&staging->lock);
  while (chunk == NULL) {
    for (uint32_t i = 0; i < staging->count && chunk == NULL; i++) {
      uint32_t at = (staging->next + i) % staging->count;
      if (staging->chunks[at].taken) continue;
      chunk = &staging->chunks[at];
      staging->next = (at + 1) % staging->count;
    }
    if (chunk == NULL) kilni_cond_wait(&staging->changed, &staging->lock);
  }
  chunk->taken = true;
  kilni_mutex_unlock(&staging->lock);
  return chunk;
}

static void give(kilni_staging_t* staging, chunk_t* chunk) {
  kilni_mutex_lock(&staging->lock);
  chunk->taken = false;
  kilni_cond_signal(&staging->changed);
  kilni_mutex_unlock(&staging->lock);
}

// Memory for a chunk that was taken, which nobody uses any more.
static kiln_status_t make_ready(kilni_staging_t* staging, chunk_t* chunk) {
  if (chunk->buffer != NULL) {
    if (!chunk->used) return NULL;
    chunk->used = false;
    return kiln_event_synchronize(chunk->free);
  }
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
  return NULL;
}

kiln_status_t kilni_staging_warm(kilni_staging_t* staging) {
  for (uint32_t i = 0; i < staging->count; i++) {
    chunk_t* chunk = take(staging);
    kiln_status_t status = make_ready(staging, chunk);
    give(staging, chunk);
    KILNI_RETURN_IF_ERROR(status);
  }
  return NULL;
}

kiln_status_t kilni_staging_trim(kilni_staging_t* staging) {
  kiln_status_t status = NULL;
  for (uint32_t i = 0; i < staging->count; i++) {
    chunk_t* chunk = &staging->chunks[i];
    kilni_mutex_lock(&staging->lock);
    bool ours = !chunk->taken;
    chunk->taken = true;
    kilni_mutex_unlock(&staging->lock);
    if (!ours) continue;
    status = kilni_status_join(status, drop(staging, chunk));
    give(staging, chunk);
  }
  return status;
}

uint64_t kilni_staging_bytes(kilni_staging_t* staging) {
  return atomic_load(&staging->made) * staging->chunk_bytes;
}

// ---- Copies ----

// Whether the driver knows the memory, and so copies it by itself.
static bool is_pinned(kilni_staging_t* staging, const void* data) {
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

static kiln_status_t check_capture(kiln_stream_t* stream) {
  bool captured = false;
  KILNI_RETURN_IF_ERROR(kilni_stream_ask_capture(stream, &captured));
  if (!captured) return NULL;
  return kilni_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "pageable host memory on a stream that is being captured"),
      "pin the memory (kiln_resident_pin), or copy it before the capture");
}

static kiln_status_t leave(kilni_staging_t* staging, chunk_t* chunk,
                           kiln_stream_t* stream, kiln_status_t status) {
  // Whatever was put on the stream may use the chunk, so it is always guarded.
  kiln_status_t record = kiln_event_record(chunk->free, stream);
  chunk->used = kiln_status_is_ok(record);
  give(staging, chunk);
  return kilni_status_join(status, record);
}

kiln_status_t kilni_staging_upload(kilni_staging_t* staging,
                                   kiln_stream_t* stream, kiln_buffer_t* buffer,
                                   uint64_t offset, uint64_t bytes,
                                   const void* data) {
  kilni_count(staging->counters, KILNI_COUNTER_UPLOADS, 1);
  kilni_count(staging->counters, KILNI_COUNTER_UPLOADED_BYTES, bytes);
  if (is_pinned(staging, data)) {
    return kiln_buffer_write_async(buffer, stream, offset, (size_t)bytes, data);
  }
  KILNI_RETURN_IF_ERROR(check_capture(stream));
  kilni_count(staging->counters, KILNI_COUNTER_STAGED_BYTES, bytes);
  for (uint64_t at = 0; at < bytes;) {
    uint64_t part = bytes - at;
    if (part > staging->chunk_bytes) part = staging->chunk_bytes;
    chunk_t* chunk = take(staging);
    kiln_status_t status = make_ready(staging, chunk);
    if (!kiln_status_is_ok(status)) {
      give(staging, chunk);
      return status;
    }
    memcpy(kiln_buffer_host(chunk->buffer), (const char*)data + at,
           (size_t)part);
    status = kiln_buffer_write_async(buffer, stream, offset + at, (size_t)part,
                                     kiln_buffer_host(chunk->buffer));
    KILNI_RETURN_IF_ERROR(leave(staging, chunk, stream, status));
    at += part;
  }
  return NULL;
}

static void copy_out(void* user) {
  chunk_t* chunk = user;
  memcpy(chunk->target, kiln_buffer_host(chunk->buffer), chunk->bytes);
}

kiln_status_t kilni_staging_download(kilni_staging_t* staging,
                                     kiln_stream_t* stream,
                                     kiln_buffer_t* buffer, uint64_t offset,
                                     uint64_t bytes, void* out_data) {
  kilni_count(staging->counters, KILNI_COUNTER_DOWNLOADS, 1);
  kilni_count(staging->counters, KILNI_COUNTER_DOWNLOADED_BYTES, bytes);
  if (is_pinned(staging, out_data)) {
    return kiln_buffer_read_async(buffer, stream, offset, (size_t)bytes,
                                  out_data);
  }
  KILNI_RETURN_IF_ERROR(check_capture(stream));
  kilni_count(staging->counters, KILNI_COUNTER_STAGED_BYTES, bytes);
  for (uint64_t at = 0; at < bytes;) {
    uint64_t part = bytes - at;
    if (part > staging->chunk_bytes) part = staging->chunk_bytes;
    chunk_t* chunk = take(staging);
    kiln_status_t status = make_ready(staging, chunk);
    if (!kiln_status_is_ok(status)) {
      give(staging, chunk);
      return status;
    }
    chunk->target = (char*)out_data + at;
    chunk->bytes = (size_t)part;
    status = kiln_buffer_read_async(buffer, stream, offset + at, (size_t)part,
                                    kiln_buffer_host(chunk->buffer));
    if (kiln_status_is_ok(status)) {
      status = kiln_stream_call_host(stream, copy_out, chunk);
    }
    KILNI_RETURN_IF_ERROR(leave(staging, chunk, stream, status));
    at += part;
  }
  return NULL;
}
