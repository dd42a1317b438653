// SPDX-License-Identifier: Apache-2.0
//
// soft: single-copy atomic accesses of 16 bytes, so that no reader sees half of
// one.
//
// Kernels publish a value and its state side by side in one vector store, and
// others read both in one load. Every CPU moves 8 bytes at once. It moves 16
// with one aligned vector move where its manufacturer guarantees that: Intel
// and AMD wherever there is AVX, Arm where there is LSE2. Anywhere else ordered
// accesses and atomics of 16 bytes take a lock, one of several by their
// address.
#ifndef KILN_SRC_SOFT_MEMORY_SOFT_WIDE_H_
#define KILN_SRC_SOFT_MEMORY_SOFT_WIDE_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum kilni_soft_wide_t {
  KILNI_SOFT_WIDE_VECTOR = 0,  // one move of the CPU
  KILNI_SOFT_WIDE_LOCK
} kilni_soft_wide_t;

enum { KILNI_SOFT_WIDE_LOCKS = 64 };

// The method of a CPU with these features (KILNI_CPU_*).
kilni_soft_wide_t kilni_soft_wide_way(uint32_t cpu_features);
// "vector" or "lock".
const char* kilni_soft_wide_name(kilni_soft_wide_t way);

// 16 bytes of memory that kernels share, which is aligned to them; `locks` are
// the memory's, NULL where none are needed (soft_memory.h).
void kilni_soft_wide_load(atomic_uint* locks, const void* from,
                          uint64_t out_value[2]);
void kilni_soft_wide_store(atomic_uint* locks, void* to,
                           const uint64_t value[2]);
// If `inout_old` is there, `value` takes its place; otherwise, and false,
// `inout_old` becomes what is there.
bool kilni_soft_wide_swap(atomic_uint* locks, void* at, uint64_t inout_old[2],
                          const uint64_t value[2]);

#endif  // KILN_SRC_SOFT_MEMORY_SOFT_WIDE_H_
