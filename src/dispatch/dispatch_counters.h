// SPDX-License-Identifier: Apache-2.0
//
// dispatch: counting what is done: one branch where it is off, and where it is
// on an addition to a line of memory that few threads share.
#ifndef KILN_SRC_DISPATCH_DISPATCH_COUNTERS_H_
#define KILN_SRC_DISPATCH_DISPATCH_COUNTERS_H_

#include <stdalign.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "dispatch/telemetry_fields.h"
#include "kiln/allocator.h"
#include "kiln/status.h"

// What is counted: KILNI_TELEMETRY_COUNTERS.
enum {
#define KILNI_COUNTER_ID(NAME, field, what) KILNI_COUNTER_##NAME,
  KILNI_TELEMETRY_COUNTERS(KILNI_COUNTER_ID)
#undef KILNI_COUNTER_ID
      KILNI_COUNTER_COUNT,
  KILNI_COUNTER_SHARDS = 16,
};

// What some of the threads have counted. thread-safe
typedef struct kilni_dispatch_counter_shard_t {
  alignas(64) atomic_ullong values[KILNI_COUNTER_COUNT];
} kilni_dispatch_counter_shard_t;

// What a dispatcher counts. thread-safe
typedef struct kilni_dispatch_counters_t {
  kilni_dispatch_counter_shard_t shards[KILNI_COUNTER_SHARDS];
  alignas(64) atomic_ullong longest_ns;  // of a timed dispatch
} kilni_dispatch_counters_t;

// All zero. End it with kilni_dispatch_counters_destroy; NULL is accepted
// there.
kiln_status_t kilni_dispatch_counters_create(
    kiln_allocator_t allocator, kilni_dispatch_counters_t** out_counters);
void kilni_dispatch_counters_destroy(kiln_allocator_t allocator,
                                     kilni_dispatch_counters_t* counters);

// The sum of all shards; 0 for NULL.
uint64_t kilni_dispatch_counters_read(const kilni_dispatch_counters_t* counters,
                                      uint32_t counter);
void kilni_dispatch_counters_reset(kilni_dispatch_counters_t* counters);

// Remembers the longest.
void kilni_dispatch_counters_longest(kilni_dispatch_counters_t* counters,
                                     uint64_t ns);

// The line of this thread.
static inline kilni_dispatch_counter_shard_t* kilni_dispatch_count_shard(
    kilni_dispatch_counters_t* counters) {
  uint64_t self = kilni_base_thread_self();
  uint32_t shard =
      (uint32_t)((self ^ self >> 12 ^ self >> 21) >> 4) % KILNI_COUNTER_SHARDS;
  return &counters->shards[shard];
}

static inline void kilni_dispatch_count_in(
    kilni_dispatch_counter_shard_t* shard, uint32_t counter, uint64_t amount) {
  atomic_fetch_add_explicit(&shard->values[counter], amount,
                            memory_order_relaxed);
}

// `counters` NULL: counting is off.
static inline void kilni_dispatch_count(kilni_dispatch_counters_t* counters,
                                        uint32_t counter, uint64_t amount) {
  if (counters == NULL) return;
  kilni_dispatch_count_in(kilni_dispatch_count_shard(counters), counter,
                          amount);
}

// A time to count from; 0 where counting is off.
static inline uint64_t kilni_dispatch_count_clock(
    const kilni_dispatch_counters_t* counters) {
  return counters == NULL ? 0 : kilni_base_time_ns();
}

// Counts the time since; it is the answer.
static inline uint64_t kilni_dispatch_count_since(
    kilni_dispatch_counters_t* counters, uint32_t counter, uint64_t began) {
  if (counters == NULL) return 0;
  uint64_t passed = kilni_base_time_ns() - began;
  kilni_dispatch_count(counters, counter, passed);
  return passed;
}

#endif  // KILN_SRC_DISPATCH_DISPATCH_COUNTERS_H_
