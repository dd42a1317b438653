// SPDX-License-Identifier: Apache-2.0
//
// device: captures that stay on a stream when their builder has gone.
//
// A driver lets only the thread that began a capture end it, unless it is a
// relaxed one, and a last release comes from any thread. What would be lost
// otherwise is the stream: a launch on it would be taken, and never run.
#include "base/thread.h"
#include "device/device_scope.h"

// In a forked child somebody may have it for ever, and nobody runs beside.
static void lock(kiln_stream_t* stream) {
  if (kilni_device_is_forked(stream->device)) return;
  kilni_base_mutex_lock(&stream->device->pools.lock);
}

static void unlock(kiln_stream_t* stream) {
  if (kilni_device_is_forked(stream->device)) return;
  kilni_base_mutex_unlock(&stream->device->pools.lock);
}

// The stream of somebody else's handle is kept until the capture has ended:
// whoever adopts the handle again is to meet it.
static bool is_kept(const kiln_stream_t* stream) {
  return stream->kind == KILN_STREAM_FOREIGN ||
         stream->kind == KILN_STREAM_PER_THREAD;
}

// ---- Bodies ----

void kilni_stream_add_body(kiln_stream_t* stream) {
  if (stream->kind == KILN_STREAM_PER_THREAD) return;
  lock(stream);
  stream->bodies++;
  atomic_fetch_or(&stream->way, KILNI_WAY_BODY);
  unlock(stream);
}

void kilni_stream_drop_body(kiln_stream_t* stream) {
  if (stream->kind == KILN_STREAM_PER_THREAD) return;
  lock(stream);
  if (--stream->bodies == 0) {
    atomic_fetch_and(&stream->way, ~(unsigned)KILNI_WAY_BODY);
  }
  unlock(stream);
}

void kilni_stream_clear_bodies(kiln_stream_t* stream) {
  uint32_t way = atomic_load_explicit(&stream->way, memory_order_relaxed);
  if ((way & KILNI_WAY_BODY) == 0) return;
  lock(stream);
  stream->bodies = 0;
  atomic_fetch_and(&stream->way, ~(unsigned)KILNI_WAY_BODY);
  unlock(stream);
}

// ---- What was left ----

static void put(kiln_stream_t* stream, kilni_left_t* left) {
  lock(stream);
  left->next = stream->left;
  stream->left = left;
  atomic_fetch_or(&stream->way, KILNI_WAY_LEFT);
  unlock(stream);
}

void kilni_stream_leave(kiln_stream_t* stream, kilni_left_t* left) {
  if (is_kept(stream)) kiln_stream_retain(stream);
  put(stream, left);
}

// What this thread has begun, which is then in nobody's list; or NULL.
static kilni_left_t* take_own(kiln_stream_t* stream) {
  uint64_t self = kilni_base_thread_number();
  lock(stream);
  kilni_left_t** link = &stream->left;
  while (*link != NULL && (*link)->thread != self) link = &(*link)->next;
  kilni_left_t* left = *link;
  if (left != NULL) *link = left->next;
  unlock(stream);
  return left;
}

static void clear(kiln_stream_t* stream) {
  lock(stream);
  if (stream->left == NULL) {
    atomic_fetch_and(&stream->way, ~(unsigned)KILNI_WAY_LEFT);
  }
  unlock(stream);
}

uint32_t kilni_stream_settle(kiln_stream_t* stream) {
  kilni_left_t* left = take_own(stream);
  bool stays = false;
  if (left != NULL) {
    stays = !left->end(left, stream);
    if (stays) {
      put(stream, left);
    } else {
      clear(stream);
      // The caller has a reference, so that this is not the last one.
      if (is_kept(stream)) kiln_stream_release(stream);
    }
  }
  uint32_t way = atomic_load_explicit(&stream->way, memory_order_relaxed);
  // The default stream of another thread is another stream.
  bool foreign = stream->kind == KILN_STREAM_PER_THREAD && !stays;
  return foreign ? way & ~(uint32_t)KILNI_WAY_LEFT : way;
}

void kilni_stream_drop_left(kiln_stream_t* stream) {
  (void)kilni_stream_settle(stream);
  kilni_left_t* left = stream->left;
  stream->left = NULL;
  while (left != NULL) {
    kilni_left_t* next = left->next;
    stream->spoiled = true;
    left->drop(left);
    left = next;
  }
}
