// SPDX-License-Identifier: Apache-2.0
//
// dispatch: the table of resident buffers.
//
// A name is an index, the generation of its place and a tag of its dispatcher.
// Slots are in chunks that never move, so that a lookup needs no lock: it reads
// the name in the slot, its data, and the name once more.
//
// Memory is allocated on one stream, which nothing else is put on, and waited
// for: usable everywhere. It is freed on another one, which waits for all
// streams that work was put on.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "dispatch/pipeline_inside.h"

enum {
  GENERATION_BITS = 32,
  TAG_SHIFT = KILNI_RESIDENT_INDEX_BITS + GENERATION_BITS,
};

static kilni_dispatch_resident_slot_t* slot_at(
    kilni_dispatch_residents_t* table, uint32_t index) {
  kiln_resident_t resident = {index};
  return kilni_dispatch_resident_slot(table, resident);
}

static uint32_t index_of(kiln_resident_t resident) {
  return (uint32_t)(resident.id & ((1u << KILNI_RESIDENT_INDEX_BITS) - 1));
}

// ---- Looking ----

static kiln_status_t resident_table_no_such(
    const kilni_dispatch_residents_t* table, kiln_resident_t resident) {
  if (resident.id == 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "resident buffer 0, which is none"),
        "bind what kiln_resident_allocate returned");
  }
  if (resident.id >> TAG_SHIFT != table->tag) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "resident buffer %llx is not of this dispatcher",
                   (unsigned long long)resident.id),
        "use it with the dispatcher that it was allocated from");
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "resident buffer %llx was freed",
                 (unsigned long long)resident.id),
      "free it after its last use, or allocate another one");
}

kiln_status_t kilni_dispatch_resident_look(
    kiln_dispatcher_t* dispatcher, kiln_resident_t resident,
    kilni_dispatch_resident_view_t* out_view) {
  if (kilni_dispatch_resident_find(&dispatcher->residents, resident,
                                   out_view)) {
    return kiln_ok();
  }
  return resident_table_no_such(&dispatcher->residents, resident);
}

kiln_status_t kilni_dispatch_resident_get(kiln_dispatcher_t* dispatcher,
                                          kiln_resident_t resident,
                                          kiln_buffer_t** out_buffer) {
  kilni_dispatch_residents_t* table = &dispatcher->residents;
  kilni_dispatch_resident_slot_t* slot = slot_at(table, index_of(resident));
  *out_buffer = NULL;
  if (slot == NULL || resident.id == 0) {
    return resident_table_no_such(table, resident);
  }
  kilni_base_mutex_lock(&table->lock);
  bool there = atomic_load(&slot->id) == resident.id;
  if (there) {
    *out_buffer = slot->buffer;
    kiln_buffer_retain(slot->buffer);
  }
  kilni_base_mutex_unlock(&table->lock);
  return there ? kiln_ok() : resident_table_no_such(table, resident);
}

// What cannot be ordered is freed by the call that waits by itself.
static void free_by_waiting(kiln_buffer_t* buffer) {
  if (buffer->end == KILNI_BUFFER_ASYNC) buffer->end = KILNI_BUFFER_FREE;
}

kiln_status_t kilni_dispatch_resident_put(kiln_dispatcher_t* dispatcher,
                                          kiln_resident_t resident,
                                          kiln_buffer_t* buffer,
                                          kiln_stream_t* stream,
                                          kiln_status_t status) {
  if (buffer == NULL) return status;
  kilni_dispatch_resident_view_t view = {0, 0};
  kiln_status_t look =
      kilni_dispatch_resident_look(dispatcher, resident, &view);
  if (!kiln_status_is_ok(look)) {
    // It was freed meanwhile, and this may be the last reference.
    kiln_stream_t* frees = NULL;
    kiln_status_t order = kilni_dispatch_own_stream(
        dispatcher, dispatcher->stream_count + 1, &frees);
    if (kiln_status_is_ok(order)) {
      order = kiln_stream_wait_stream(frees, stream);
    }
    if (!kiln_status_is_ok(order)) free_by_waiting(buffer);
    status = kilni_base_status_join(status, order);
  }
  kiln_status_free(look);
  kiln_buffer_release(buffer);
  return status;
}

// ---- Making ----

static kiln_status_t over_budget(uint64_t bytes, uint64_t left) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(DEVICE_OUT_OF_MEMORY,
                 "%llu bytes of resident memory; the budget has %llu left",
                 (unsigned long long)bytes, (unsigned long long)left),
      "free resident buffers, or make the dispatcher with more "
      "`resident_bytes`");
}

static bool resident_table_reserve(kilni_dispatch_residents_t* table,
                                   uint64_t bytes, uint64_t* out_left) {
  kilni_base_mutex_lock(&table->lock);
  *out_left = table->bytes < table->budget ? table->budget - table->bytes : 0;
  bool fits = bytes <= *out_left;
  if (fits) table->bytes += bytes;
  if (table->bytes > table->peak) table->peak = table->bytes;
  kilni_base_mutex_unlock(&table->lock);
  return fits;
}

static void unreserve(kilni_dispatch_residents_t* table, uint64_t bytes) {
  kilni_base_mutex_lock(&table->lock);
  table->bytes -= bytes;
  kilni_base_mutex_unlock(&table->lock);
}

// The default budget follows the memory of the device.
static kiln_status_t reserve_or_ask(kiln_dispatcher_t* dispatcher,
                                    uint64_t bytes) {
  kilni_dispatch_residents_t* table = &dispatcher->residents;
  uint64_t left = 0;
  if (resident_table_reserve(table, bytes, &left)) return kiln_ok();
  if (!table->asks) return over_budget(bytes, left);
  uint64_t free_bytes = 0;
  KILNI_RETURN_IF_ERROR(
      kiln_device_query_free(dispatcher->device, &free_bytes));
  kilni_base_mutex_lock(&table->lock);
  table->budget = table->bytes + free_bytes / 10 * 9;
  kilni_base_mutex_unlock(&table->lock);
  return resident_table_reserve(table, bytes, &left) ? kiln_ok()
                                                     : over_budget(bytes, left);
}

kiln_status_t kilni_dispatch_memory_allocate(kiln_dispatcher_t* dispatcher,
                                             uint64_t bytes,
                                             kiln_buffer_t** out_buffer) {
  kiln_buffer_options_t options = kiln_buffer_options_default();
  *out_buffer = NULL;
  if (bytes == 0) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_dispatch_own_stream(
      dispatcher, dispatcher->stream_count, &options.stream));
  KILNI_RETURN_IF_ERROR(
      kiln_buffer_create(dispatcher->device, bytes, &options, out_buffer));
  kiln_status_t status = kiln_stream_synchronize(options.stream);
  if (kiln_status_is_ok(status)) return kiln_ok();
  free_by_waiting(*out_buffer);
  kiln_buffer_release(*out_buffer);
  *out_buffer = NULL;
  return status;
}

// A free slot; under the lock. NULL: `*out_chunk` more are needed, or there are
// too many.
static kilni_dispatch_resident_slot_t* resident_table_take_place(
    kilni_dispatch_residents_t* table, uint32_t* out_index) {
  uint32_t index = table->first_free - 1;
  if (table->first_free == 0) index = table->made;
  *out_index = index;
  if (index >= KILNI_RESIDENT_SLOTS) return NULL;
  kilni_dispatch_resident_slot_t* slot = slot_at(table, index);
  if (slot == NULL) return NULL;
  if (table->first_free == 0) {
    table->made++;
  } else {
    table->first_free = slot->next_free;
  }
  return slot;
}

// How many slots a chunk has: of the last one only those that have an index.
static size_t chunk_slots(uint32_t chunk) {
  return chunk + 1 < KILNI_RESIDENT_CHUNKS
             ? (size_t)KILNI_RESIDENT_FIRST << chunk
             : KILNI_RESIDENT_FIRST;
}

static kiln_status_t add_chunk(kiln_dispatcher_t* dispatcher, uint32_t index) {
  if (index >= KILNI_RESIDENT_SLOTS) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "more than %u resident buffers",
                   (unsigned)KILNI_RESIDENT_SLOTS),
        "free some, or put several into one");
  }
  uint32_t at = 0;
  uint32_t chunk = kilni_dispatch_resident_chunk(index, &at);
  void* block = NULL;
  kilni_dispatch_resident_slot_t* none = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(dispatcher->allocator, chunk_slots(chunk),
                             sizeof(kilni_dispatch_resident_slot_t), &block));
  if (!atomic_compare_exchange_strong(&dispatcher->residents.chunks[chunk],
                                      &none,
                                      (kilni_dispatch_resident_slot_t*)block)) {
    kilni_base_free_array(dispatcher->allocator, block, chunk_slots(chunk),
                          sizeof(kilni_dispatch_resident_slot_t));
  }
  return kiln_ok();
}

static kiln_status_t resident_table_enter(kiln_dispatcher_t* dispatcher,
                                          uint64_t bytes, kiln_buffer_t* buffer,
                                          kiln_resident_t* out_resident) {
  kilni_dispatch_residents_t* table = &dispatcher->residents;
  for (;;) {
    uint32_t index = 0;
    kilni_base_mutex_lock(&table->lock);
    kilni_dispatch_resident_slot_t* slot =
        resident_table_take_place(table, &index);
    if (slot != NULL) {
      // Never 0, so that no name is.
      if (++slot->generation == 0) slot->generation = 1;
      slot->buffer = buffer;
      uint64_t address = buffer == NULL ? 0 : kiln_buffer_address(buffer);
      atomic_store_explicit(&slot->address, address, memory_order_relaxed);
      atomic_store_explicit(&slot->bytes, bytes, memory_order_relaxed);
      out_resident->id =
          table->tag << TAG_SHIFT |
          (uint64_t)slot->generation << KILNI_RESIDENT_INDEX_BITS | index;
      atomic_store_explicit(&slot->id, out_resident->id, memory_order_release);
      table->count++;
    }
    kilni_base_mutex_unlock(&table->lock);
    if (slot != NULL) return kiln_ok();
    KILNI_RETURN_IF_ERROR(add_chunk(dispatcher, index));
  }
}

kiln_status_t kiln_resident_allocate(kiln_dispatcher_t* dispatcher,
                                     uint64_t bytes,
                                     kiln_resident_t* out_resident) {
  KILNI_CHECK_ARGUMENT(out_resident != NULL, "out_resident");
  out_resident->id = 0;
  KILNI_CHECK_ARGUMENT(dispatcher != NULL, "dispatcher");
  KILNI_CHECK_ARGUMENT_SAYS(bytes <= UINT64_MAX >> 1, "bytes",
                            "exceeds any device's memory",
                            "pass the number of its bytes");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(dispatcher->device->host));
  if (kilni_device_is_lost(dispatcher->device)) {
    return kilni_device_lost_status(dispatcher->device);
  }
  KILNI_RETURN_IF_ERROR(reserve_or_ask(dispatcher, bytes));
  kiln_buffer_t* buffer = NULL;
  // Whole words: atomics on narrow elements use those around them.
  kiln_status_t status =
      kilni_dispatch_memory_allocate(dispatcher, (bytes + 3) / 4 * 4, &buffer);
  if (kiln_status_is_ok(status)) {
    status = resident_table_enter(dispatcher, bytes, buffer, out_resident);
  }
  if (!kiln_status_is_ok(status)) {
    unreserve(&dispatcher->residents, bytes);
    kiln_buffer_release(buffer);
    return status;
  }
  kilni_dispatch_count(dispatcher->counters, KILNI_COUNTER_RESIDENTS, 1);
  kilni_dispatch_count(dispatcher->counters, KILNI_COUNTER_RESIDENT_BYTES,
                       bytes);
  return kiln_ok();
}

// ---- Ending ----

kiln_status_t kilni_dispatch_memory_let_go(kiln_dispatcher_t* dispatcher,
                                           kiln_buffer_t* buffer) {
  kiln_stream_t* frees = NULL;
  if (buffer == NULL) return kiln_ok();
  kiln_status_t status = kilni_dispatch_own_stream(
      dispatcher, dispatcher->stream_count + 1, &frees);
  if (kiln_status_is_ok(status)) {
    status = kilni_dispatch_streams_join(dispatcher, frees);
  }
  // Refused on a device without pools, whose memory is freed by waiting.
  if (kiln_status_is_ok(status) && atomic_load(&buffer->stream) != NULL) {
    status = kiln_buffer_set_stream(buffer, frees);
  }
  if (!kiln_status_is_ok(status)) free_by_waiting(buffer);
  kiln_buffer_release(buffer);
  return status;
}

kiln_status_t kiln_resident_free(kiln_dispatcher_t* dispatcher,
                                 kiln_resident_t resident) {
  KILNI_CHECK_ARGUMENT(dispatcher != NULL, "dispatcher");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(dispatcher->device->host));
  kilni_dispatch_residents_t* table = &dispatcher->residents;
  uint32_t index = index_of(resident);
  kilni_dispatch_resident_slot_t* slot = slot_at(table, index);
  if (slot == NULL || resident.id == 0) {
    return resident_table_no_such(table, resident);
  }
  kilni_base_mutex_lock(&table->lock);
  bool there = atomic_load(&slot->id) == resident.id;
  kiln_buffer_t* buffer = NULL;
  if (there) {
    buffer = slot->buffer;
    slot->buffer = NULL;
    atomic_store(&slot->id, 0);
    table->bytes -= atomic_load(&slot->bytes);
    table->count--;
    slot->next_free = table->first_free;
    table->first_free = index + 1;
    atomic_fetch_add(&table->frees, 1);
  }
  kilni_base_mutex_unlock(&table->lock);
  return there ? kilni_dispatch_memory_let_go(dispatcher, buffer)
               : resident_table_no_such(table, resident);
}

void kilni_dispatch_residents_deinit(kiln_dispatcher_t* dispatcher) {
  kilni_dispatch_residents_t* table = &dispatcher->residents;
  for (uint32_t i = 0; i < table->made; i++) {
    kilni_dispatch_resident_slot_t* slot = slot_at(table, i);
    if (atomic_load(&slot->id) == 0) continue;
    kiln_status_free(kilni_dispatch_memory_let_go(dispatcher, slot->buffer));
  }
  for (uint32_t i = 0; i < KILNI_RESIDENT_CHUNKS; i++) {
    kilni_dispatch_resident_slot_t* chunk = atomic_load(&table->chunks[i]);
    kilni_base_free_array(dispatcher->allocator, chunk, chunk_slots(i),
                          sizeof(*chunk));
  }
  if (dispatcher->has_resident_lock) kilni_base_mutex_deinit(&table->lock);
}

// ---- Questions ----

kiln_status_t kiln_resident_size(kiln_dispatcher_t* dispatcher,
                                 kiln_resident_t resident,
                                 uint64_t* out_bytes) {
  KILNI_CHECK_ARGUMENT(out_bytes != NULL, "out_bytes");
  *out_bytes = 0;
  KILNI_CHECK_ARGUMENT(dispatcher != NULL, "dispatcher");
  kilni_dispatch_resident_view_t view = {0, 0};
  KILNI_RETURN_IF_ERROR(
      kilni_dispatch_resident_look(dispatcher, resident, &view));
  *out_bytes = view.bytes;
  return kiln_ok();
}

kiln_status_t kiln_resident_address(kiln_dispatcher_t* dispatcher,
                                    kiln_resident_t resident,
                                    uint64_t* out_address) {
  KILNI_CHECK_ARGUMENT(out_address != NULL, "out_address");
  *out_address = 0;
  KILNI_CHECK_ARGUMENT(dispatcher != NULL, "dispatcher");
  kilni_dispatch_resident_view_t view = {0, 0};
  KILNI_RETURN_IF_ERROR(
      kilni_dispatch_resident_look(dispatcher, resident, &view));
  *out_address = view.address;
  return kiln_ok();
}
