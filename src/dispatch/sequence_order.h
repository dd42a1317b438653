// SPDX-License-Identifier: Apache-2.0
//
// dispatch: which steps have to wait for which, by the memory that they touch.
//
// Knows addresses and numbers, and nothing of steps or graphs.
#ifndef KILN_SRC_DISPATCH_SEQUENCE_ORDER_H_
#define KILN_SRC_DISPATCH_SEQUENCE_ORDER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/allocator.h"
#include "kiln/status.h"

enum {
  // Accesses that are remembered; beyond, everything is ordered once.
  KILNI_ORDER_ENTRIES = 1024,
  // How far back it is known what a unit waits for through others.
  KILNI_ORDER_WINDOW = 64,
};

// Bytes that are touched. thread-compatible
typedef struct kilni_dispatch_access_t {
  uint64_t address;
  uint64_t bytes;
  bool writes;  // also if it reads too
} kilni_dispatch_access_t;

// All memory.
static inline kilni_dispatch_access_t kilni_dispatch_access_all(void) {
  kilni_dispatch_access_t access = {0, UINT64_MAX, true};
  return access;
}

// What units before have touched, as far as later ones may have to wait for it.
// one-thread
typedef struct kilni_dispatch_order_t {
  kiln_allocator_t allocator;
  struct kilni_dispatch_order_entry_t* entries;
  size_t entry_capacity;
  uint32_t* after;  // of the unit that was added last
  size_t after_capacity;
  uint32_t entry_count;
  uint32_t unit_count;
  uint32_t after_count;
  uint32_t reserved;
  // Of the last units, by number modulo the window: bit i is set if the unit
  // waits, through whatever others, for the one i + 1 before it.
  uint64_t behind[KILNI_ORDER_WINDOW];
} kilni_dispatch_order_t;

void kilni_dispatch_order_init(kilni_dispatch_order_t* order,
                               kiln_allocator_t allocator);
void kilni_dispatch_order_deinit(kilni_dispatch_order_t* order);

// So much is remembered that a unit should be added that touches all memory.
bool kilni_dispatch_order_is_full(const kilni_dispatch_order_t* order);

// Adds a unit, numbered from 0. `order->after` are the units that it has to
// wait for, ascending, without those that others among them wait for within
// the window. OUT_OF_MEMORY.
kiln_status_t kilni_dispatch_order_add(kilni_dispatch_order_t* order,
                                       const kilni_dispatch_access_t* accesses,
                                       uint32_t count);

#endif  // KILN_SRC_DISPATCH_SEQUENCE_ORDER_H_
