// SPDX-License-Identifier: Apache-2.0
//
// soft: how an access of 16 bytes is made whole.
#include "soft/memory/soft_wide.h"

#include <string.h>

#include "base/cpu_features.h"
#include "soft/soft.h"

kilni_soft_wide_t kilni_soft_wide_way(uint32_t cpu_features) {
  return cpu_features & KILNI_CPU_WHOLE16 ? KILNI_SOFT_WIDE_VECTOR
                                          : KILNI_SOFT_WIDE_LOCK;
}

const char* kilni_soft_wide_name(kilni_soft_wide_t way) {
  return way == KILNI_SOFT_WIDE_VECTOR ? "vector" : "lock";
}

const char* kilni_soft_wide_would(void) {
  return kilni_soft_wide_name(kilni_soft_wide_way(kilni_base_cpu_features()));
}

// One move. In assembly, since a compiler may make two of one of C. Other CPUs
// than these always lock.
#if defined(__x86_64__)
typedef long long wide_t __attribute__((vector_size(16), may_alias));

static void move_in(const void* from, uint64_t out_value[2]) {
  wide_t v;
  __asm__ volatile("movdqa %1, %0"
                   : "=x"(v)
                   : "m"(*(const wide_t*)from)
                   : "memory");
  memcpy(out_value, &v, sizeof(v));
}

static void move_out(void* to, const uint64_t value[2]) {
  wide_t v;
  memcpy(&v, value, sizeof(v));
  __asm__ volatile("movdqa %1, %0" : "=m"(*(wide_t*)to) : "x"(v) : "memory");
}

static bool wide_swap(void* at, uint64_t old[2], const uint64_t value[2]) {
  bool done;
  __asm__ volatile("lock cmpxchg16b %1"
                   : "=@ccz"(done), "+m"(*(uint64_t(*)[2])at), "+a"(old[0]),
                     "+d"(old[1])
                   : "b"(value[0]), "c"(value[1])
                   : "memory");
  return done;
}
#elif defined(__aarch64__)
static void move_in(const void* from, uint64_t out_value[2]) {
  __asm__ volatile("ldp %0, %1, [%2]"
                   : "=&r"(out_value[0]), "=&r"(out_value[1])
                   : "r"(from)
                   : "memory");
}

static void move_out(void* to, const uint64_t value[2]) {
  __asm__ volatile("stp %0, %1, [%2]"
                   :
                   : "r"(value[0]), "r"(value[1]), "r"(to)
                   : "memory");
}

static bool wide_swap(void* at, uint64_t old[2], const uint64_t value[2]) {
  uint64_t low;
  uint64_t high;
  uint32_t failed;
  do {
    __asm__ volatile("ldaxp %0, %1, [%2]"
                     : "=&r"(low), "=&r"(high)
                     : "r"(at)
                     : "memory");
    bool same = low == old[0] && high == old[1];
    __asm__ volatile("stlxp %w0, %1, %2, [%3]"
                     : "=&r"(failed)
                     : "r"(same ? value[0] : low), "r"(same ? value[1] : high),
                       "r"(at)
                     : "memory");
  } while (failed);
  bool done = low == old[0] && high == old[1];
  old[0] = low;
  old[1] = high;
  return done;
}
#else
static void move_in(const void* from, uint64_t out_value[2]) {
  memcpy(out_value, from, 16);
}

static void move_out(void* to, const uint64_t value[2]) {
  memcpy(to, value, 16);
}

static bool wide_swap(void* at, uint64_t old[2], const uint64_t value[2]) {
  uint64_t now[2];
  memcpy(now, at, 16);
  bool done = now[0] == old[0] && now[1] == old[1];
  memcpy(old, now, 16);
  if (done) memcpy(at, value, 16);
  return done;
}
#endif

// The lock of an address, taken; NULL where none is needed.
static atomic_uint* wide_take(atomic_uint* locks, const void* at) {
  if (!locks) return NULL;
  atomic_uint* lock = &locks[((uintptr_t)at >> 4) % KILNI_SOFT_WIDE_LOCKS];
  while (atomic_exchange_explicit(lock, 1u, memory_order_acquire)) {
  }
  return lock;
}

static void wide_give(atomic_uint* lock) {
  if (lock) atomic_store_explicit(lock, 0u, memory_order_release);
}

void kilni_soft_wide_load(atomic_uint* locks, const void* from,
                          uint64_t out_value[2]) {
  atomic_uint* lock = wide_take(locks, from);
  move_in(from, out_value);
  wide_give(lock);
}

void kilni_soft_wide_store(atomic_uint* locks, void* to,
                           const uint64_t value[2]) {
  atomic_uint* lock = wide_take(locks, to);
  move_out(to, value);
  wide_give(lock);
}

bool kilni_soft_wide_swap(atomic_uint* locks, void* at, uint64_t inout_old[2],
                          const uint64_t value[2]) {
  atomic_uint* lock = wide_take(locks, at);
  bool done = wide_swap(at, inout_old, value);
  wide_give(lock);
  return done;
}
