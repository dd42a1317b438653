// SPDX-License-Identifier: Apache-2.0
//
// support: an allocator that watches and fails.
//
// Every block is known by address, so that a leak, a double free, a free with
// a wrong size or alignment and a write through a stale pointer come to light.
// A resize always moves. Armed, it fails the n-th allocation or growth that
// the arming thread makes, once or from then on; other threads' never count.
#ifndef KILN_TESTS_SUPPORT_FAULT_ALLOC_H_
#define KILN_TESTS_SUPPORT_FAULT_ALLOC_H_

#include <pthread.h>

#include "kiln/allocator.h"

enum { FAULT_ALLOC_BUCKETS = 4096, FAULT_ALLOC_MESSAGE_BYTES = 256 };

// The watching allocator. thread-safe, but for arming
typedef struct fault_alloc_t {
  pthread_mutex_t lock;
  struct fault_block_t* buckets[FAULT_ALLOC_BUCKETS];
  uint64_t live_blocks;
  uint64_t live_bytes;
  uint64_t total_blocks;  // ever given out

  bool armed;
  pthread_t thread;
  uint64_t nth;      // 1 is the first; 0 only counts
  bool from_on;      // fail the n-th and every later one
  uint64_t met;      // points met since arming
  uint64_t misuses;  // wrong frees and the like
  char first_misuse[FAULT_ALLOC_MESSAGE_BYTES];
} fault_alloc_t;

void fault_alloc_init(fault_alloc_t* watch);
kiln_allocator_t fault_alloc_allocator(fault_alloc_t* watch);

// Counts points on this thread from here on and fails the n-th (0: none).
void fault_alloc_arm(fault_alloc_t* watch, uint64_t nth, bool from_on);
// Ends that and returns how many points were met.
uint64_t fault_alloc_disarm(fault_alloc_t* watch);

// NULL if every block is freed and none was misused; otherwise the first
// thing wrong, as text that lives as long as `watch`.
const char* fault_alloc_problem(fault_alloc_t* watch);
// Fails the cmocka test unless fault_alloc_problem is NULL.
void fault_alloc_assert_clean(fault_alloc_t* watch);
// Frees what leaked, too.
void fault_alloc_deinit(fault_alloc_t* watch);

#endif  // KILN_TESTS_SUPPORT_FAULT_ALLOC_H_
