// SPDX-License-Identifier: Apache-2.0
//
// dispatch: the shards of the counters.
#include "dispatch/dispatch_counters.h"

#include "base/alloc.h"
#include "base/status_make.h"

kiln_status_t kilni_dispatch_counters_create(
    kiln_allocator_t allocator, kilni_dispatch_counters_t** out_counters) {
  void* block = NULL;
  *out_counters = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_aligned(allocator, sizeof(kilni_dispatch_counters_t),
                               alignof(kilni_dispatch_counters_t), &block));
  *out_counters = block;
  kilni_dispatch_counters_reset(*out_counters);
  return kiln_ok();
}

void kilni_dispatch_counters_destroy(kiln_allocator_t allocator,
                                     kilni_dispatch_counters_t* counters) {
  if (counters == NULL) return;
  kilni_base_free_aligned(allocator, counters, sizeof(*counters),
                          alignof(kilni_dispatch_counters_t));
}

uint64_t kilni_dispatch_counters_read(const kilni_dispatch_counters_t* counters,
                                      uint32_t counter) {
  uint64_t sum = 0;
  if (counters == NULL) return 0;
  for (uint32_t i = 0; i < KILNI_COUNTER_SHARDS; i++) {
    sum += atomic_load_explicit(&counters->shards[i].values[counter],
                                memory_order_relaxed);
  }
  return sum;
}

void kilni_dispatch_counters_reset(kilni_dispatch_counters_t* counters) {
  if (counters == NULL) return;
  for (uint32_t i = 0; i < KILNI_COUNTER_SHARDS; i++) {
    for (uint32_t j = 0; j < KILNI_COUNTER_COUNT; j++) {
      atomic_store_explicit(&counters->shards[i].values[j], 0,
                            memory_order_relaxed);
    }
  }
  atomic_store_explicit(&counters->longest_ns, 0, memory_order_relaxed);
}

void kilni_dispatch_counters_longest(kilni_dispatch_counters_t* counters,
                                     uint64_t ns) {
  unsigned long long longest =
      atomic_load_explicit(&counters->longest_ns, memory_order_relaxed);
  while (ns > longest && !atomic_compare_exchange_weak_explicit(
                             &counters->longest_ns, &longest, ns,
                             memory_order_relaxed, memory_order_relaxed)) {
  }
}
