// SPDX-License-Identifier: Apache-2.0
//
// dispatch: what the files of this module share.
#ifndef KILN_SRC_DISPATCH_DISPATCH_INSIDE_H_
#define KILN_SRC_DISPATCH_DISPATCH_INSIDE_H_

#include <stdatomic.h>

#include "base/thread.h"
#include "device/device_inside.h"
#include "dispatch/dispatch_counters.h"
#include "dispatch/staging_ring.h"
#include "kiln/pool.h"
#include "kiln/program_code.h"
#include "table/table.h"

// ---- Ranges of a profiler (dispatch_telemetry.c) ----

enum { KILNI_RANGE_DISPATCH = 1, KILNI_RANGE_PIPELINE = 2 };

// On the calling thread. Only where `ranges` is not NULL.
void kilni_dispatch_range_begin(const kiln_nvtx_table_t* ranges,
                                uint32_t category, const char* label);
void kilni_dispatch_range_end(const kiln_nvtx_table_t* ranges);

// ---- Own streams (dispatch_streams.c) ----

enum {
  KILNI_OWN_STREAMS = 64,    // most that there may be
  KILNI_SEEN_STREAMS = 64,   // that are remembered
  KILNI_MEMORY_STREAMS = 2,  // after them: allocations, and frees
};

// One of the dispatcher's streams. thread-safe
//
// `store` is for one thread at a time: a thread that takes it leaves NULL, and
// one that finds NULL does without.
typedef struct kilni_dispatch_own_stream_t {
  _Atomic(kiln_stream_t*) stream;    // NULL: not made yet
  _Atomic(kiln_transient_t*) store;  // NULL: not made yet, or taken
  atomic_bool has_store;             // it was made
  atomic_bool given_out;             // others may put work on it
} kilni_dispatch_own_stream_t;

// Streams of callers that work was put on. thread-safe
//
// Searched without a lock, changed under one, which is not held during a driver
// call.
typedef struct kilni_dispatch_seen_t {
  kilni_base_mutex_t lock;
  atomic_uint count;
  uint32_t next;  // to make space
  _Atomic(kiln_stream_t*) streams[KILNI_SEEN_STREAMS];
} kilni_dispatch_seen_t;

// ---- Resident buffers (resident_table.c) ----

// Slots lie in chunks, each twice as large as the one before, so that few cost
// little and none ever moves.
enum {
  KILNI_RESIDENT_INDEX_BITS = 20,
  KILNI_RESIDENT_SLOTS = 1 << KILNI_RESIDENT_INDEX_BITS,
  KILNI_RESIDENT_FIRST_BITS = 5,  // of the first chunk's size
  KILNI_RESIDENT_FIRST = 1 << KILNI_RESIDENT_FIRST_BITS,
  KILNI_RESIDENT_CHUNKS =
      KILNI_RESIDENT_INDEX_BITS - KILNI_RESIDENT_FIRST_BITS + 1,
};

// One place of the table. thread-safe
//
// `id` is 0 while the slot is empty. A reader of the other fields reads it
// before and after them; a writer has the lock.
typedef struct kilni_dispatch_resident_slot_t {
  atomic_ullong id;
  atomic_ullong address;
  atomic_ullong bytes;
  kiln_buffer_t* buffer;  // under the lock
  uint32_t generation;    // under the lock
  uint32_t next_free;     // under the lock: index + 1
} kilni_dispatch_resident_slot_t;

// thread-safe
typedef struct kilni_dispatch_residents_t {
  kilni_base_mutex_t lock;  // locked for a few loads, and never during a call
  uint64_t tag;     // of this dispatcher, in the bits above the generation
  uint64_t budget;  // under the lock, as all up to `made`
  uint64_t bytes;
  uint64_t peak;
  bool asks;  // the device, when the budget is passed
  uint32_t count;
  uint32_t first_free;  // index + 1
  uint32_t made;        // slots that were ever used
  atomic_uint frees;    // ever: what was found is still there if it is the same
  _Atomic(kilni_dispatch_resident_slot_t*) chunks[KILNI_RESIDENT_CHUNKS];
} kilni_dispatch_residents_t;

// What a name refers to. thread-compatible
typedef struct kilni_dispatch_resident_view_t {
  uint64_t address;
  uint64_t bytes;
} kilni_dispatch_resident_view_t;

// ---- Trap records (dispatch_traps.c) ----

enum {
  KILNI_TRAP_RECORDS = 64,       // of a page
  KILNI_TRAP_RECORD_BYTES = 64,  // each has a line of its own
};

// A record in pinned memory, and its place in a list. thread-compatible
typedef struct kilni_dispatch_trap_record_t {
  kiln_program_trap_t* host;
  uint64_t address;
  struct kilni_dispatch_trap_page_t* page;
  struct kilni_dispatch_trap_record_t* next;
} kilni_dispatch_trap_record_t;

// Pinned memory for many of them. thread-compatible
typedef struct kilni_dispatch_trap_page_t {
  kiln_buffer_t* buffer;
  struct kilni_dispatch_trap_page_t* next;
  uint32_t in_use;  // records that were taken
  uint32_t reserved;
  kilni_dispatch_trap_record_t records[KILNI_TRAP_RECORDS];
} kilni_dispatch_trap_page_t;

// Whether a thread has trapped; the device may be writing it.
static inline bool kilni_dispatch_trap_is_set(
    const kilni_dispatch_trap_record_t* record) {
  return __atomic_load_n(&record->host->set, __ATOMIC_ACQUIRE) != 0;
}

// Unused records, and the pages that they are of. thread-safe under the lock,
// which is not held during a driver call
typedef struct kilni_dispatch_traps_t {
  kilni_base_mutex_t lock;
  kilni_dispatch_trap_record_t* free;
  kilni_dispatch_trap_page_t* pages;
  uint32_t page_count;
  uint32_t reserved;
} kilni_dispatch_traps_t;

// ---- The dispatcher ----

// Pendings that were released before they were done. thread-safe
typedef struct kilni_dispatch_limbo_t {
  kilni_base_mutex_t lock;
  kiln_pending_t* first;
  kiln_pending_t* last;  // where there is a first one
} kilni_dispatch_limbo_t;

struct kiln_dispatcher_t {
  kiln_device_t* device;
  kiln_allocator_t allocator;
  atomic_uint references;
  uint32_t stream_count;
  bool has_seen_lock;
  bool has_resident_lock;
  bool has_limbo_lock;
  bool has_trap_lock;
  uint64_t transient_bytes;  // of the stores of all own streams
  kiln_cache_t* cache;
  kiln_linker_t* linker;
  kilni_dispatch_counters_t* counters;  // NULL: off
  const kiln_nvtx_table_t* ranges;      // NULL: off, or no profiler listens
  kilni_dispatch_staging_t* staging;
  atomic_uint pipelines;
  atomic_uint pendings;
  kilni_dispatch_limbo_t limbo;
  kilni_dispatch_traps_t traps;
  kilni_dispatch_seen_t seen;
  kilni_dispatch_residents_t residents;
  kilni_dispatch_own_stream_t own[KILNI_OWN_STREAMS + KILNI_MEMORY_STREAMS];
};

// The one of that number, made if it is not there yet.
kiln_status_t kilni_dispatch_own_stream(kiln_dispatcher_t* dispatcher,
                                        uint32_t index,
                                        kiln_stream_t** out_stream);
// Whether only this dispatcher puts work on it: launches may then overlap each
// other by default, since all work before them waits.
bool kilni_dispatch_stream_is_ours(const kiln_dispatcher_t* dispatcher,
                                   const kiln_stream_t* stream);
// The caller's stream after a look at it, or for NULL the first own one; and
// remembers it.
kiln_status_t kilni_dispatch_stream(kiln_dispatcher_t* dispatcher,
                                    kiln_stream_t* stream,
                                    kiln_stream_t** out_stream);
// Later work on `stream` waits for all work on streams of this dispatcher, and
// on those it has seen.
kiln_status_t kilni_dispatch_streams_join(kiln_dispatcher_t* dispatcher,
                                          kiln_stream_t* stream);
// Device memory for work on `stream`, freed after it by its release.
kiln_status_t kilni_dispatch_transient_buffer(kiln_dispatcher_t* dispatcher,
                                              kiln_stream_t* stream,
                                              uint64_t bytes,
                                              kiln_buffer_t** out_buffer);
// What is kept for own streams goes back.
void kilni_dispatch_streams_trim(kiln_dispatcher_t* dispatcher);
// Callers' streams are remembered no more: the stream of frees waits for what
// is on them by now.
kiln_status_t kilni_dispatch_streams_forget(kiln_dispatcher_t* dispatcher);
void kilni_dispatch_streams_count(kiln_dispatcher_t* dispatcher,
                                  kiln_dispatcher_counts_t* counts);
void kilni_dispatch_streams_deinit(kiln_dispatcher_t* dispatcher);

// ---- The table ----

// The chunk that a slot lies in, and where: the highest bit of the index behind
// the first chunk's size says which it is, the bits below it say where.
static inline uint32_t kilni_dispatch_resident_chunk(uint32_t index,
                                                     uint32_t* out_at) {
  uint32_t place = index + KILNI_RESIDENT_FIRST;
  uint32_t top = 31u - (uint32_t)__builtin_clz(place);
  *out_at = place - (1u << top);
  return top - KILNI_RESIDENT_FIRST_BITS;
}

static inline kilni_dispatch_resident_slot_t* kilni_dispatch_resident_slot(
    kilni_dispatch_residents_t* table, kiln_resident_t resident) {
  uint32_t at = 0;
  uint32_t index = (uint32_t)resident.id & (KILNI_RESIDENT_SLOTS - 1);
  kilni_dispatch_resident_slot_t* chunk = atomic_load_explicit(
      &table->chunks[kilni_dispatch_resident_chunk(index, &at)],
      memory_order_acquire);
  return chunk == NULL ? NULL : &chunk[at];
}

// Reads what a name refers to, without a lock; false: it is not a name.
static inline bool kilni_dispatch_resident_find(
    kilni_dispatch_residents_t* table, kiln_resident_t resident,
    kilni_dispatch_resident_view_t* out_view) {
  kilni_dispatch_resident_slot_t* slot =
      kilni_dispatch_resident_slot(table, resident);
  if (slot == NULL || resident.id == 0 ||
      atomic_load_explicit(&slot->id, memory_order_acquire) != resident.id) {
    return false;
  }
  // Before the second look at `id`, without a fence, which gcc's thread
  // sanitizer does not know.
  out_view->address =
      atomic_load_explicit(&slot->address, memory_order_acquire);
  out_view->bytes = atomic_load_explicit(&slot->bytes, memory_order_acquire);
  return atomic_load_explicit(&slot->id, memory_order_relaxed) == resident.id;
}

// Does that with a status. INVALID_ARGUMENT, for an invalid name, without a
// text that names its owner.
kiln_status_t kilni_dispatch_resident_look(
    kiln_dispatcher_t* dispatcher, kiln_resident_t resident,
    kilni_dispatch_resident_view_t* out_view);
// Its buffer, with a reference more; NULL for one of no bytes.
kiln_status_t kilni_dispatch_resident_get(kiln_dispatcher_t* dispatcher,
                                          kiln_resident_t resident,
                                          kiln_buffer_t** out_buffer);
// Returns it after the work on `stream`, which may have been freed meanwhile.
kiln_status_t kilni_dispatch_resident_put(kiln_dispatcher_t* dispatcher,
                                          kiln_resident_t resident,
                                          kiln_buffer_t* buffer,
                                          kiln_stream_t* stream,
                                          kiln_status_t status);
// Without references to the dispatcher: frees what was not freed.
void kilni_dispatch_residents_deinit(kiln_dispatcher_t* dispatcher);

// ---- Pendings (dispatch_pending.c) ----

enum {
  KILNI_PENDING_RUNS = 0,
  KILNI_PENDING_DONE = 1,
  KILNI_PENDING_TRAPPED = 2,
  KILNI_PENDING_LOST = 3,
  KILNI_PENDING_UNCONVERGED = 4,
};

// How work of many steps has ended. thread-compatible
typedef struct kilni_dispatch_pending_end_t {
  uint32_t state;     // KILNI_PENDING_DONE, _TRAPPED or _UNCONVERGED
  uint32_t rounds;    // of a fixpoint that reached its limit
  kiln_trap_t trap;   //
  const char* label;  // of the step; lives as long as the work's object
} kilni_dispatch_pending_end_t;

// What a pending of many steps is of. thread-compatible
typedef struct kilni_dispatch_pending_of_t {
  void* object;  // NULL: of a dispatch; else with a reference
  void (*look)(void* object,
               kilni_dispatch_pending_end_t* out_end);  // it is done
  void (*release)(void* object);
} kilni_dispatch_pending_of_t;

struct kiln_pending_t {
  kiln_dispatcher_t* dispatcher;
  atomic_uint references;
  atomic_uint state;    // KILNI_PENDING_*
  kiln_event_t* start;  // NULL: no times are taken
  kiln_event_t* end;
  uint64_t began_ns;    // of kilni_base_time_ns
  uint64_t enqueue_ns;  //
  uint64_t timeout_ns;  // 0: none
  atomic_ullong wait_ns;
  kilni_dispatch_pending_of_t of;
  kilni_dispatch_pending_end_t how;      // once the state allows it
  kilni_dispatch_trap_record_t* record;  // NULL: the code cannot trap
  kiln_kernel_t* kernel;                 // kept loaded; may be NULL
  char* label;                           // for messages
  kiln_pending_t* next;                  // deferred
};

// One with its events, not yet recorded. `label` is copied.
kiln_status_t kilni_dispatch_pending_create(kiln_dispatcher_t* dispatcher,
                                            const char* label, bool timed,
                                            kiln_pending_t** out_pending);
// After the last operation: records its end.
kiln_status_t kilni_dispatch_pending_finish(kiln_pending_t* pending,
                                            kiln_stream_t* stream);
// A record of zeroes, and its return: after the work that it was for.
kiln_status_t kilni_dispatch_trap_take(
    kiln_dispatcher_t* dispatcher, kilni_dispatch_trap_record_t** out_record);
void kilni_dispatch_trap_give(kiln_dispatcher_t* dispatcher,
                              kilni_dispatch_trap_record_t* record);
// Does that after all work that is now on streams, without waiting for it.
void kilni_dispatch_trap_retire(kiln_dispatcher_t* dispatcher,
                                kilni_dispatch_trap_record_t* record);
// Pages that no record of is in use go back.
void kilni_dispatch_traps_trim(kiln_dispatcher_t* dispatcher);
uint32_t kilni_dispatch_traps_count(kiln_dispatcher_t* dispatcher);
void kilni_dispatch_traps_deinit(kiln_dispatcher_t* dispatcher);
// What a record reports, and as a status.
void kilni_dispatch_trap_read(const kiln_program_trap_t* record,
                              kiln_trap_t* out_trap);
kiln_status_t kilni_dispatch_trap_status(const char* label,
                                         const kiln_trap_t* trap);
// A fixpoint that reached its limit.
kiln_status_t kilni_dispatch_rounds_status(const char* label, uint32_t rounds);
// Ends some of those whose work is done: few enough for every call.
void kilni_dispatch_limbo_look(kiln_dispatcher_t* dispatcher);
// Ends those whose work is done; `all`: waits for the others too, unless the
// device is lost.
void kilni_dispatch_limbo_sweep(kiln_dispatcher_t* dispatcher, bool all);

#endif  // KILN_SRC_DISPATCH_DISPATCH_INSIDE_H_
