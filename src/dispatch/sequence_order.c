// SPDX-License-Identifier: Apache-2.0
//
// dispatch: which steps have to wait for which, by the memory that they touch.
//
// A write replaces all that it covers: a later access that would have to wait
// for that must wait for the write, which waits for it.
#include "dispatch/sequence_order.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"

// Bytes from `begin` up to `end`, which a unit touches. thread-compatible
typedef struct kilni_dispatch_order_entry_t {
  uint64_t begin;
  uint64_t end;
  uint32_t unit;
  bool writes;
} kilni_dispatch_order_entry_t;

void kilni_dispatch_order_init(kilni_dispatch_order_t* order,
                               kiln_allocator_t allocator) {
  memset(order, 0, sizeof(*order));
  order->allocator = allocator;
}

void kilni_dispatch_order_deinit(kilni_dispatch_order_t* order) {
  kilni_base_free_array(order->allocator, order->entries, order->entry_capacity,
                        sizeof(kilni_dispatch_order_entry_t));
  kilni_base_free_array(order->allocator, order->after, order->after_capacity,
                        sizeof(uint32_t));
}

bool kilni_dispatch_order_is_full(const kilni_dispatch_order_t* order) {
  return order->entry_count > KILNI_ORDER_ENTRIES;
}

static uint64_t end_of(const kilni_dispatch_access_t* access) {
  return access->bytes > UINT64_MAX - access->address
             ? UINT64_MAX
             : access->address + access->bytes;
}

static kiln_status_t sequence_order_make_space(kilni_dispatch_order_t* order,
                                               uint32_t count) {
  void* entries = order->entries;
  void* after = order->after;
  kiln_status_t status = kilni_base_grow(
      order->allocator, (size_t)order->entry_count + count,
      sizeof(kilni_dispatch_order_entry_t), &order->entry_capacity, &entries);
  order->entries = entries;
  if (kiln_status_is_ok(status)) {
    status = kilni_base_grow(order->allocator, (size_t)order->entry_count + 1,
                             sizeof(uint32_t), &order->after_capacity, &after);
  }
  order->after = after;
  return status;
}

// The units that one of the accesses must wait for; each once, ascending.
static void sequence_order_find(kilni_dispatch_order_t* order,
                                const kilni_dispatch_access_t* accesses,
                                uint32_t count) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < order->entry_count; i++) {
    const kilni_dispatch_order_entry_t* entry = &order->entries[i];
    bool waits = false;
    for (uint32_t j = 0; j < count && !waits; j++) {
      waits = accesses[j].bytes > 0 && (entry->writes || accesses[j].writes) &&
              entry->begin < end_of(&accesses[j]) &&
              accesses[j].address < entry->end;
    }
    if (!waits) continue;
    // Entries are in the order of their units.
    if (found > 0 && order->after[found - 1] == entry->unit) continue;
    order->after[found++] = entry->unit;
  }
  order->after_count = found;
}

// Leaves out those that others among them wait for.
static void sequence_order_reduce(kilni_dispatch_order_t* order) {
  uint32_t unit = order->unit_count;
  uint64_t through = 0;
  uint64_t all = 0;
  for (uint32_t i = 0; i < order->after_count; i++) {
    uint32_t far = unit - order->after[i];
    if (far > KILNI_ORDER_WINDOW) continue;
    all |= UINT64_C(1) << (far - 1);
    if (far < KILNI_ORDER_WINDOW) {
      through |= order->behind[order->after[i] % KILNI_ORDER_WINDOW] << far;
    }
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; i < order->after_count; i++) {
    uint32_t far = unit - order->after[i];
    if (far <= KILNI_ORDER_WINDOW && (through >> (far - 1) & 1) != 0) continue;
    order->after[kept++] = order->after[i];
  }
  order->after_count = kept;
  order->behind[unit % KILNI_ORDER_WINDOW] = all | through;
}

// What a write covers is not asked for any more.
static void sequence_order_forget(kilni_dispatch_order_t* order,
                                  const kilni_dispatch_access_t* accesses,
                                  uint32_t count) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < order->entry_count; i++) {
    const kilni_dispatch_order_entry_t* entry = &order->entries[i];
    bool covered = false;
    for (uint32_t j = 0; j < count && !covered; j++) {
      covered = accesses[j].writes && accesses[j].address <= entry->begin &&
                entry->end <= end_of(&accesses[j]);
    }
    if (!covered) order->entries[kept++] = *entry;
  }
  order->entry_count = kept;
}

kiln_status_t kilni_dispatch_order_add(kilni_dispatch_order_t* order,
                                       const kilni_dispatch_access_t* accesses,
                                       uint32_t count) {
  KILNI_RETURN_IF_ERROR(sequence_order_make_space(order, count));
  sequence_order_find(order, accesses, count);
  sequence_order_reduce(order);
  sequence_order_forget(order, accesses, count);
  for (uint32_t i = 0; i < count; i++) {
    if (accesses[i].bytes == 0) continue;
    kilni_dispatch_order_entry_t* entry = &order->entries[order->entry_count++];
    entry->begin = accesses[i].address;
    entry->end = end_of(&accesses[i]);
    entry->unit = order->unit_count;
    entry->writes = accesses[i].writes;
  }
  order->unit_count++;
  return kiln_ok();
}
