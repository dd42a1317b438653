// SPDX-License-Identifier: Apache-2.0
//
// dispatch: counting what is done: one branch where it is off, and where it is
// on an addition to a line of memory that few threads share.
#ifndef KILN_SRC_DISPATCH_DISPATCH_COUNTERS_H_
#define KILN_SRC_DISPATCH_DISPATCH_COUNTERS_H_

#include <stdalign.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "kiln/allocator.h"
#include "kiln/status.h"

// What is counted. NAME, and what one of it is.
#define KILNI_COUNTERS(X)                                     \
  X(DISPATCHES, "dispatches put on a stream")                 \
  X(PREPARED_RUNS, "runs of prepared dispatches")             \
  X(LAUNCHES, "kernels launched")                             \
  X(THREADS, "threads launched")                              \
  X(WORK, "work items of launches whose work size is known")  \
  X(UPLOADS, "copies from the host")                          \
  X(UPLOADED_BYTES, "bytes copied from the host")             \
  X(DOWNLOADS, "copies to the host")                          \
  X(DOWNLOADED_BYTES, "bytes copied to the host")             \
  X(STAGED_BYTES, "bytes that went through pinned memory")    \
  X(CLEARED_BYTES, "bytes of outputs filled with zero")       \
  X(TRANSIENT_BYTES, "bytes of device memory for dispatches") \
  X(RESIDENT_BYTES, "bytes of resident buffers allocated")    \
  X(RESIDENTS, "resident buffers allocated")                  \
  X(WAITS, "waits for a pending, a stream or the dispatcher") \
  X(TRAPS, "dispatches in which a thread trapped")            \
  X(PIPELINES, "pipelines made")                              \
  X(CACHED_PIPELINES, "pipelines whose code the cache had")

enum {
#define KILNI_COUNTER_ID(NAME, what) KILNI_COUNTER_##NAME,
  KILNI_COUNTERS(KILNI_COUNTER_ID)
#undef KILNI_COUNTER_ID
      KILNI_COUNTER_COUNT,
  KILNI_COUNTER_SHARDS = 16,
};

// What some of the threads have counted. thread-safe
typedef struct kilni_counter_shard_t {
  alignas(64) atomic_ullong values[KILNI_COUNTER_COUNT];
} kilni_counter_shard_t;

// What a dispatcher counts. thread-safe
typedef struct kilni_counters_t {
  kilni_counter_shard_t shards[KILNI_COUNTER_SHARDS];
} kilni_counters_t;

// All zero. End it with kilni_counters_destroy; NULL is accepted there.
kiln_status_t kilni_counters_create(kiln_allocator_t allocator,
                                    kilni_counters_t** out_counters);
void kilni_counters_destroy(kiln_allocator_t allocator,
                            kilni_counters_t* counters);

// The sum of all shards; 0 for NULL.
uint64_t kilni_counters_read(const kilni_counters_t* counters,
                             uint32_t counter);
void kilni_counters_reset(kilni_counters_t* counters);

// `counters` NULL: counting is off.
static inline void kilni_count(kilni_counters_t* counters, uint32_t counter,
                               uint64_t amount) {
  if (counters == NULL) return;
  uint64_t self = kilni_thread_self();
  uint32_t shard =
      (uint32_t)((self ^ self >> 12 ^ self >> 21) >> 4) % KILNI_COUNTER_SHARDS;
  atomic_fetch_add_explicit(&counters->shards[shard].values[counter], amount,
                            memory_order_relaxed);
}

#endif  // KILN_SRC_DISPATCH_DISPATCH_COUNTERS_H_
