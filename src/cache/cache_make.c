// SPDX-License-Identifier: Apache-2.0
//
// cache: get, put, and get or make: one maker of a key at a time.
//
// Threads of this cache find each other in its list of flights, processes (and
// other caches of this one) by a byte lock of the folder's file of locks. Both
// waits end at the caller's deadline; a caller that reaches it makes the entry
// too, which only costs time. So there is no order of locks that a
// `cache_make_make` could break by using the cache.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "cache/cache_inside.h"
#include "kiln/cache.h"

static const uint64_t kNsPerMs = 1000000;
static const uint64_t kFirstPauseNs = 250000;
static const uint64_t kLastPauseNs = 20000000;
// How often a caller that waits asks whether it is to give up.
static const uint64_t kAskNs = 20000000;

static void make_count(atomic_uint_fast64_t* counter) {
  atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

// ---- Memory and disk together ----

static kiln_cache_entry_t* memory_get(kiln_cache_t* cache,
                                      const kilni_cache_hash_t* hash,
                                      const kiln_cache_key_t* key) {
  kilni_base_mutex_lock(&cache->lock);
  kiln_cache_entry_t* entry = kilni_cache_memory_get(&cache->memory, hash, key);
  kilni_base_mutex_unlock(&cache->lock);
  if (entry != NULL) kilni_cache_disk_mark(cache, entry);
  return entry;
}

static void memory_put(kiln_cache_t* cache, kiln_cache_entry_t* entry) {
  kilni_base_mutex_lock(&cache->lock);
  kiln_cache_entry_t* gone = kilni_cache_memory_put(&cache->memory, entry);
  kilni_base_mutex_unlock(&cache->lock);
  kilni_cache_release_list(gone);
}

static kiln_status_t disk_get(kiln_cache_t* cache,
                              const kilni_cache_hash_t* hash,
                              const kiln_cache_key_t* key,
                              kiln_cache_entry_t** out_entry) {
  *out_entry = NULL;
  if (!kilni_cache_disk_open(cache, false)) return kiln_ok();
  return kilni_cache_disk_get(cache, hash, key, out_entry);
}

static kiln_status_t entry_of(kiln_cache_t* cache, const kiln_cache_key_t* key,
                              kiln_bytes_view_t metadata,
                              kiln_bytes_view_t payload,
                              kiln_cache_entry_t** out_entry) {
  kilni_cache_layout_t layout;
  KILNI_RETURN_IF_ERROR(kilni_cache_layout_make(
      key, metadata, payload, kilni_base_date_ns() / 1000000000, &layout));
  KILNI_RETURN_IF_ERROR(
      kilni_cache_entry_create(cache->allocator, &layout, out_entry));
  kilni_cache_image_write(&layout, key, metadata, payload, (*out_entry)->image);
  return kiln_ok();
}

static void cache_make_store(kiln_cache_t* cache, kiln_cache_entry_t* entry) {
  kilni_cache_disk_put(cache, entry);
  memory_put(cache, entry);
}

// ---- Get, put, remove ----

kiln_status_t kiln_cache_get(kiln_cache_t* cache, const kiln_cache_key_t* key,
                             kiln_cache_entry_t** out_entry) {
  KILNI_CHECK_ARGUMENT(out_entry != NULL, "out_entry");
  *out_entry = NULL;
  KILNI_CHECK_ARGUMENT(cache != NULL, "cache");
  KILNI_RETURN_IF_ERROR(kilni_cache_check_fork(cache));
  KILNI_RETURN_IF_ERROR(kilni_cache_check_key(key));
  kilni_cache_hash_t hash = kilni_cache_key_hash(key);
  *out_entry = memory_get(cache, &hash, key);
  if (*out_entry != NULL) {
    make_count(&cache->counts.memory_hits);
    return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(disk_get(cache, &hash, key, out_entry));
  if (*out_entry == NULL) {
    make_count(&cache->counts.misses);
    return kiln_ok();
  }
  make_count(&cache->counts.disk_hits);
  memory_put(cache, *out_entry);
  return kiln_ok();
}

static bool view_is_bad(kiln_bytes_view_t view) {
  return view.data == NULL && view.size != 0;
}

kiln_status_t kiln_cache_put(kiln_cache_t* cache, const kiln_cache_key_t* key,
                             kiln_bytes_view_t metadata,
                             kiln_bytes_view_t payload,
                             kiln_cache_entry_t** out_entry) {
  if (out_entry != NULL) *out_entry = NULL;
  KILNI_CHECK_ARGUMENT(cache != NULL, "cache");
  KILNI_CHECK_ARGUMENT_SAYS(!view_is_bad(metadata), "metadata",
                            "has a size, and its data is NULL",
                            "pass the address of the bytes, or a size of 0");
  KILNI_CHECK_ARGUMENT_SAYS(!view_is_bad(payload), "payload",
                            "has a size, and its data is NULL",
                            "pass the address of the bytes, or a size of 0");
  KILNI_RETURN_IF_ERROR(kilni_cache_check_fork(cache));
  KILNI_RETURN_IF_ERROR(kilni_cache_check_key(key));
  kiln_cache_entry_t* entry;
  KILNI_RETURN_IF_ERROR(entry_of(cache, key, metadata, payload, &entry));
  cache_make_store(cache, entry);
  if (out_entry != NULL) {
    *out_entry = entry;
  } else {
    kiln_cache_entry_release(entry);
  }
  return kiln_ok();
}

kiln_status_t kiln_cache_remove(kiln_cache_t* cache,
                                const kiln_cache_key_t* key) {
  KILNI_CHECK_ARGUMENT(cache != NULL, "cache");
  KILNI_RETURN_IF_ERROR(kilni_cache_check_fork(cache));
  KILNI_RETURN_IF_ERROR(kilni_cache_check_key(key));
  kilni_cache_hash_t hash = kilni_cache_key_hash(key);
  kilni_base_mutex_lock(&cache->lock);
  kiln_cache_entry_t* gone =
      kilni_cache_memory_take(&cache->memory, &hash, key);
  kilni_base_mutex_unlock(&cache->lock);
  kiln_cache_entry_release(gone);
  if (kilni_cache_disk_open(cache, false)) {
    kilni_cache_disk_remove(cache, &hash);
  }
  return kiln_ok();
}

// ---- Get or make ----

// One call of kiln_cache_get_or_make. one-thread
typedef struct call_t {
  kiln_cache_t* cache;
  const kiln_cache_request_t* request;
  kilni_cache_hash_t hash;
  uint64_t deadline_ns;
  kiln_cache_entry_t* entry;
  kiln_cache_entry_t* refused;  // by `check`, the last one
  uint32_t from;
  bool shareable;
} call_t;

static kiln_status_t check_cancelled(const call_t* call) {
  const kiln_cache_request_t* request = call->request;
  if (request->cancelled == NULL || !request->cancelled(request->user)) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(
          CANCELLED,
          "the wait for an entry that another caller makes was cancelled"),
      "request it again; `cancelled` of the request ended the wait");
}

// Takes `entry` if it is valid.
static bool accept(call_t* call, kiln_cache_entry_t* entry, uint32_t from) {
  const kiln_cache_request_t* request = call->request;
  if (entry == NULL) return false;
  if (request->check != NULL && !request->check(request->user, entry)) {
    make_count(&call->cache->counts.stale);
    // Kept, so that its address is not taken for that of a newer one.
    kiln_cache_entry_release(call->refused);
    call->refused = entry;
    return false;
  }
  call->entry = entry;
  call->from = from;
  return true;
}

static kiln_status_t from_disk(call_t* call) {
  kiln_cache_entry_t* entry;
  KILNI_RETURN_IF_ERROR(
      disk_get(call->cache, &call->hash, &call->request->key, &entry));
  if (accept(call, entry, KILN_CACHE_FROM_DISK)) {
    make_count(&call->cache->counts.disk_hits);
    memory_put(call->cache, entry);
  }
  return kiln_ok();
}

static kiln_status_t cache_make_make(call_t* call) {
  kiln_cache_t* cache = call->cache;
  kiln_cache_output_t output;
  memset(&output, 0, sizeof(output));
  make_count(&cache->counts.misses);
  kiln_status_t status = call->request->make(call->request->user, &output);
  if (kiln_status_is_ok(status) &&
      (view_is_bad(output.payload) || view_is_bad(output.metadata))) {
    status = kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "`make` returned bytes at NULL"),
        "return the addresses of the payload and the metadata, or a size of 0");
  }
  if (kiln_status_is_ok(status) && output.reserved != 0) {
    status = kilni_base_options_not_reserved("kiln_cache_output_t");
  }
  if (kiln_status_is_ok(status)) {
    status = entry_of(cache, &call->request->key, output.metadata,
                      output.payload, &call->entry);
  }
  if (!kiln_status_is_ok(status)) {
    make_count(&cache->counts.make_failures);
    return status;
  }
  make_count(&cache->counts.made);
  call->from = KILN_CACHE_FROM_MAKE;
  call->shareable = output.store != KILN_SWITCH_OFF;
  if (call->shareable) cache_make_store(cache, call->entry);
  return kiln_ok();
}

// A pause that ends early when a flight of this cache is done.
static void pause_until(kiln_cache_t* cache, uint64_t until_ns) {
  kilni_base_mutex_lock(&cache->lock);
  (void)kilni_base_cond_wait_until(&cache->changed, &cache->lock, until_ns);
  kilni_base_mutex_unlock(&cache->lock);
}

// Waits for the lock of the key, or for the entry that another process makes
// meanwhile. OK with neither at the deadline.
static kiln_status_t wait_for_lock(call_t* call, bool* out_held) {
  kiln_cache_t* cache = call->cache;
  uint64_t pause_ns = kFirstPauseNs;
  bool waited = false;
  *out_held = false;
  for (;;) {
    uint32_t lock = kilni_cache_lock_try(cache, &call->hash);
    *out_held = lock == KILNI_CACHE_LOCK_HELD;
    // The previous owner of the lock may have made it since the last lookup.
    KILNI_RETURN_IF_ERROR(from_disk(call));
    if (call->entry != NULL || lock != KILNI_CACHE_LOCK_BUSY) return kiln_ok();
    if (!waited) make_count(&cache->counts.lock_waits);
    waited = true;
    uint64_t now = kilni_base_time_ns();
    if (now >= call->deadline_ns) {
      make_count(&cache->counts.lock_timeouts);
      return kiln_ok();
    }
    KILNI_RETURN_IF_ERROR(check_cancelled(call));
    uint64_t until = now + pause_ns;
    pause_until(cache, until < call->deadline_ns ? until : call->deadline_ns);
    pause_ns += pause_ns / 2;
    if (pause_ns > kLastPauseNs) pause_ns = kLastPauseNs;
  }
}

// As the only thread of this process.
static kiln_status_t make_in_flight(call_t* call) {
  KILNI_RETURN_IF_ERROR(from_disk(call));
  if (call->entry != NULL) return kiln_ok();
  // The folder must exist for its locks.
  if (!kilni_cache_disk_open(call->cache, true)) return cache_make_make(call);
  bool held;
  kiln_status_t status = wait_for_lock(call, &held);
  if (kiln_status_is_ok(status) && call->entry == NULL) {
    status = cache_make_make(call);
  }
  if (held) kilni_cache_lock_release(call->cache, &call->hash);
  return status;
}

// ---- Flights ----

static kilni_cache_flight_t* find_flight(const call_t* call) {
  const kiln_cache_key_t* key = &call->request->key;
  kilni_cache_flight_t* flight = call->cache->flights;
  for (; flight != NULL; flight = flight->next) {
    const kiln_cache_key_t* other = flight->key;
    if (memcmp(&flight->hash, &call->hash, sizeof(call->hash)) == 0 &&
        other->version == key->version && strcmp(other->kind, key->kind) == 0 &&
        other->bytes.size == key->bytes.size &&
        (key->bytes.size == 0 ||
         memcmp(other->bytes.data, key->bytes.data, key->bytes.size) == 0)) {
      return flight;
    }
  }
  return NULL;
}

// Under the lock, which is released.
static void leave_flight(kiln_cache_t* cache, kilni_cache_flight_t* flight) {
  bool last = --flight->users == 0;
  kilni_base_mutex_unlock(&cache->lock);
  if (!last) return;
  kiln_cache_entry_release(flight->entry);
  kilni_base_free(cache->allocator, flight, sizeof(*flight));
}

static void end_flight(call_t* call, kilni_cache_flight_t* flight,
                       kiln_status_t status) {
  kiln_cache_t* cache = call->cache;
  kilni_base_mutex_lock(&cache->lock);
  flight->done = true;
  flight->alone = kiln_status_is_ok(status) && !call->shareable;
  if (kiln_status_is_ok(status) && call->shareable) {
    kiln_cache_entry_retain(call->entry);
    flight->entry = call->entry;
  }
  kilni_cache_flight_t** at = &cache->flights;
  while (*at != flight) at = &(*at)->next;
  *at = flight->next;
  kilni_base_cond_broadcast(&cache->changed);
  leave_flight(cache, flight);
}

// What to do next.
enum { NEXT_DONE, NEXT_AGAIN, NEXT_ALONE, NEXT_FLY };

// Under the lock, which is let go to ask whether the caller gives up. Until
// the flight is done, or the deadline.
static kiln_status_t wait_for_flight(const call_t* call,
                                     const kilni_cache_flight_t* flight) {
  kiln_cache_t* cache = call->cache;
  bool asks = call->request->cancelled != NULL;
  kiln_status_t status = kiln_ok();
  while (!flight->done && kiln_status_is_ok(status)) {
    uint64_t now = kilni_base_time_ns();
    if (now >= call->deadline_ns) break;
    uint64_t until = call->deadline_ns;
    if (asks && now + kAskNs < until) until = now + kAskNs;
    (void)kilni_base_cond_wait_until(&cache->changed, &cache->lock, until);
    if (!asks || flight->done) continue;
    kilni_base_mutex_unlock(&cache->lock);
    status = check_cancelled(call);
    kilni_base_mutex_lock(&cache->lock);
  }
  return status;
}

// Under the lock, which is released. Waits for another's flight.
static kiln_status_t join_flight(call_t* call, kilni_cache_flight_t* flight,
                                 uint32_t* out_next) {
  kiln_cache_t* cache = call->cache;
  flight->users++;
  make_count(&cache->counts.lock_waits);
  kiln_status_t status = wait_for_flight(call, flight);
  bool done = flight->done;
  bool alone = flight->alone;
  kiln_cache_entry_t* entry = flight->entry;
  kiln_cache_entry_retain(entry);
  leave_flight(cache, flight);
  *out_next = alone ? NEXT_ALONE : NEXT_AGAIN;
  if (!kiln_status_is_ok(status)) {
    kiln_cache_entry_release(entry);
    return status;
  }
  if (!done) {
    make_count(&cache->counts.lock_timeouts);
    *out_next = NEXT_ALONE;
  } else if (accept(call, entry, KILN_CACHE_FROM_OTHER)) {
    make_count(&cache->counts.shared);
    *out_next = NEXT_DONE;
  }
  return kiln_ok();
}

// Finds which call makes it: another, or this one, whose flight is then listed.
static kiln_status_t find_maker(call_t* call, kilni_cache_flight_t* own,
                                uint32_t* out_next) {
  kiln_cache_t* cache = call->cache;
  kilni_base_mutex_lock(&cache->lock);
  kilni_cache_flight_t* flight = find_flight(call);
  if (flight != NULL) {
    bool can_wait = flight->thread != own->thread &&
                    kilni_base_time_ns() < call->deadline_ns;
    if (can_wait) return join_flight(call, flight, out_next);
    kilni_base_mutex_unlock(&cache->lock);
    *out_next = NEXT_ALONE;
    return kiln_ok();
  }
  // A flight that has ended since memory was asked has left its entry there.
  kiln_cache_entry_t* entry =
      kilni_cache_memory_get(&cache->memory, &call->hash, &call->request->key);
  if (entry != NULL && entry != call->refused) {
    kilni_base_mutex_unlock(&cache->lock);
    *out_next = NEXT_AGAIN;
    if (accept(call, entry, KILN_CACHE_FROM_OTHER)) {
      make_count(&cache->counts.shared);
      *out_next = NEXT_DONE;
    }
    return kiln_ok();
  }
  own->next = cache->flights;
  cache->flights = own;
  kilni_base_mutex_unlock(&cache->lock);
  kiln_cache_entry_release(entry);
  *out_next = NEXT_FLY;
  return kiln_ok();
}

static kiln_status_t get_or_make(call_t* call) {
  kiln_cache_t* cache = call->cache;
  const kiln_cache_key_t* key = &call->request->key;
  void* block;
  if (accept(call, memory_get(cache, &call->hash, key),
             KILN_CACHE_FROM_MEMORY)) {
    make_count(&cache->counts.memory_hits);
    return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(cache->allocator, sizeof(kilni_cache_flight_t), &block));
  kilni_cache_flight_t* own = block;
  own->hash = call->hash;
  own->key = key;
  own->thread = kilni_base_thread_self();
  own->users = 1;
  uint32_t next = NEXT_AGAIN;
  kiln_status_t status = kiln_ok();
  while (next == NEXT_AGAIN && kiln_status_is_ok(status)) {
    status = find_maker(call, own, &next);
  }
  if (kiln_status_is_ok(status) && next == NEXT_FLY) {
    status = make_in_flight(call);
    end_flight(call, own, status);
    return status;
  }
  kilni_base_free(cache->allocator, own, sizeof(*own));
  KILNI_RETURN_IF_ERROR(status);
  return next == NEXT_ALONE ? cache_make_make(call) : kiln_ok();
}

kiln_status_t kiln_cache_get_or_make(kiln_cache_t* cache,
                                     const kiln_cache_request_t* request,
                                     kiln_cache_entry_t** out_entry,
                                     uint32_t* out_from) {
  KILNI_CHECK_ARGUMENT(out_entry != NULL, "out_entry");
  *out_entry = NULL;
  if (out_from != NULL) *out_from = KILN_CACHE_FROM_NOWHERE;
  KILNI_CHECK_ARGUMENT(cache != NULL, "cache");
  KILNI_CHECK_ARGUMENT(request != NULL, "request");
  kiln_cache_request_t wanted;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(request, "kiln_cache_request_t",
                                                sizeof(wanted), &wanted));
  KILNI_CHECK_ARGUMENT(wanted.make != NULL, "request->make");
  KILNI_RETURN_IF_ERROR(kilni_cache_check_fork(cache));
  KILNI_RETURN_IF_ERROR(kilni_cache_check_key(&wanted.key));
  uint32_t wait_ms =
      wanted.lock_wait_ms ? wanted.lock_wait_ms : cache->lock_wait_ms;
  if (wait_ms == KILN_CACHE_NO_WAIT) wait_ms = 0;
  call_t call = {.cache = cache, .request = &wanted, .shareable = true};
  call.hash = kilni_cache_key_hash(&wanted.key);
  call.deadline_ns = kilni_base_time_ns() + wait_ms * kNsPerMs;
  kiln_status_t status = get_or_make(&call);
  kiln_cache_entry_release(call.refused);
  KILNI_RETURN_IF_ERROR(status);
  *out_entry = call.entry;
  if (out_from != NULL) *out_from = call.from;
  return kiln_ok();
}
