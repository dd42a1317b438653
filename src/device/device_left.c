// SPDX-License-Identifier: Apache-2.0
//
// device: captures that stay on a stream when their builder has gone.
//
// A driver lets only the thread that began a capture end it, unless it is a
// relaxed one, and a last release comes from any thread. What would be lost
// otherwise is the stream: a launch on it would be taken, and never run.
#include "base/thread.h"
#include "device/device_scope.h"

// In a forked child it may stay locked indefinitely, and no other thread runs.
static void left_lock(kiln_stream_t* stream) {
  if (kilni_device_is_forked(stream->device)) return;
  kilni_base_mutex_lock(&stream->device->pools.lock);
}

static void left_unlock(kiln_stream_t* stream) {
  if (kilni_device_is_forked(stream->device)) return;
  kilni_base_mutex_unlock(&stream->device->pools.lock);
}

// The stream of a foreign handle is kept until the capture has ended: adopting
// the handle again must find it.
static bool is_kept(const kiln_stream_t* stream) {
  return stream->kind == KILN_STREAM_FOREIGN ||
         stream->kind == KILN_STREAM_PER_THREAD;
}

// ---- Bodies ----

void kilni_device_stream_add_body(kiln_stream_t* stream) {
  if (stream->kind == KILN_STREAM_PER_THREAD) return;
  left_lock(stream);
  stream->bodies++;
  atomic_fetch_or(&stream->way, KILNI_WAY_BODY);
  left_unlock(stream);
}

void kilni_device_stream_drop_body(kiln_stream_t* stream) {
  if (stream->kind == KILN_STREAM_PER_THREAD) return;
  left_lock(stream);
  if (--stream->bodies == 0) {
    atomic_fetch_and(&stream->way, ~(unsigned)KILNI_WAY_BODY);
  }
  left_unlock(stream);
}

void kilni_device_stream_clear_bodies(kiln_stream_t* stream) {
  uint32_t way = atomic_load_explicit(&stream->way, memory_order_relaxed);
  if ((way & KILNI_WAY_BODY) == 0) return;
  left_lock(stream);
  stream->bodies = 0;
  atomic_fetch_and(&stream->way, ~(unsigned)KILNI_WAY_BODY);
  left_unlock(stream);
}

// ---- What was left ----

static void left_put(kiln_stream_t* stream, kilni_device_left_t* left) {
  left_lock(stream);
  left->next = stream->left;
  stream->left = left;
  atomic_fetch_or(&stream->way, KILNI_WAY_LEFT);
  left_unlock(stream);
}

void kilni_device_stream_leave(kiln_stream_t* stream,
                               kilni_device_left_t* left) {
  if (is_kept(stream)) kiln_stream_retain(stream);
  left_put(stream, left);
}

// What this thread has begun, which is then in no list; or NULL.
static kilni_device_left_t* left_take_own(kiln_stream_t* stream) {
  uint64_t self = kilni_base_thread_number();
  left_lock(stream);
  kilni_device_left_t** link = &stream->left;
  while (*link != NULL && (*link)->thread != self) link = &(*link)->next;
  kilni_device_left_t* left = *link;
  if (left != NULL) *link = left->next;
  left_unlock(stream);
  return left;
}

static void left_clear(kiln_stream_t* stream) {
  left_lock(stream);
  if (stream->left == NULL) {
    atomic_fetch_and(&stream->way, ~(unsigned)KILNI_WAY_LEFT);
  }
  left_unlock(stream);
}

uint32_t kilni_device_stream_settle(kiln_stream_t* stream) {
  kilni_device_left_t* left = left_take_own(stream);
  bool stays = false;
  if (left != NULL) {
    stays = !left->end(left, stream);
    if (stays) {
      left_put(stream, left);
    } else {
      left_clear(stream);
      // The caller has a reference, so that this is not the last one.
      if (is_kept(stream)) kiln_stream_release(stream);
    }
  }
  uint32_t way = atomic_load_explicit(&stream->way, memory_order_relaxed);
  // The default stream of another thread is another stream.
  bool foreign = stream->kind == KILN_STREAM_PER_THREAD && !stays;
  return foreign ? way & ~(uint32_t)KILNI_WAY_LEFT : way;
}

void kilni_device_stream_drop_left(kiln_stream_t* stream) {
  (void)kilni_device_stream_settle(stream);
  kilni_device_left_t* left = stream->left;
  stream->left = NULL;
  while (left != NULL) {
    kilni_device_left_t* next = left->next;
    stream->spoiled = true;
    left->drop(left);
    left = next;
  }
}
