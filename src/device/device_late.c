// SPDX-License-Identifier: Apache-2.0
//
// device: releases that are owed to a thread which may call the driver.
//
// A driver reports on a thread of its own that what a graph retained is no
// longer needed, and no CUDA call may be made there. What is to be released is
// put on a list without a lock; a thread of ours takes it from there, or the
// thread inside the call that caused it (kilni_device_late_begin), so that what
// a driver reports at once is released before that call returns.
//
// The list is not the device's: the last thing let go may be what kept the
// device, which then ends on the thread that is to be ended with it.
#include "base/alloc.h"
#include "base/status_make.h"
#include "base/thread.h"
#include "device/device_inside.h"

struct kilni_device_late_t {
  kilni_base_mutex_t lock;
  kilni_base_cond_t changed;
  _Atomic(kilni_device_late_entry_t*) first;
  atomic_uint helpers;               // threads that will look at the list
  atomic_uint references;            // the device, and the thread
  bool stops;                        // under `lock`
  bool busy;                         // under `lock`: the thread is letting go
  bool lost;                         // under `lock`: the driver does not call
                                     // back any more
  uint32_t users;                    // under `lock`
  kilni_device_late_entry_t* known;  // under `lock`
  kilni_base_thread_t thread;
};

static void unreference(kilni_device_late_t* late) {
  if (atomic_fetch_sub_explicit(&late->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kilni_base_cond_deinit(&late->changed);
  kilni_base_mutex_deinit(&late->lock);
  kilni_base_free(kiln_allocator_libc(), late, sizeof(*late));
}

static bool late_let_go(kilni_device_late_t* late) {
  kilni_device_late_entry_t* entry =
      atomic_exchange_explicit(&late->first, NULL, memory_order_acq_rel);
  if (entry == NULL) return false;
  while (entry != NULL) {
    kilni_device_late_entry_t* next = entry->next;
    entry->let_go(entry);
    entry = next;
  }
  return true;
}

// Not weaker: kilni_device_late_end counts itself out and then looks here, and
// kilni_device_late_push puts an entry here and then looks at that count. One
// of the two must see what the other did.
static bool late_is_empty(kilni_device_late_t* late) {
  return atomic_load(&late->first) == NULL;
}

// Under the lock: whether something waits for a call that will never come.
static bool has_lost(kilni_device_late_t* late) {
  const kilni_device_late_entry_t* entry = late->known;
  while (entry != NULL && atomic_load(&entry->claimed)) {
    entry = entry->next_known;
  }
  return late->lost && late->users == 0 && entry != NULL;
}

// Under the lock: such a one, which is the caller's now; NULL: none.
static kilni_device_late_entry_t* claim_lost(kilni_device_late_t* late) {
  if (!late->lost || late->users != 0) return NULL;
  kilni_device_late_entry_t* entry = late->known;
  while (entry != NULL && atomic_exchange(&entry->claimed, true)) {
    entry = entry->next_known;
  }
  return entry;
}

static void late_run(void* user) {
  kilni_device_late_t* late = user;
  kilni_base_mutex_lock(&late->lock);
  for (;;) {
    kilni_device_late_entry_t* lost = claim_lost(late);
    while (late_is_empty(late) && lost == NULL && !late->stops) {
      kilni_base_cond_wait(&late->changed, &late->lock);
      lost = claim_lost(late);
    }
    if (late_is_empty(late) && lost == NULL) break;
    late->busy = true;
    kilni_base_mutex_unlock(&late->lock);
    if (lost != NULL) lost->let_go(lost);
    while (late_let_go(late)) {
    }
    kilni_base_mutex_lock(&late->lock);
    late->busy = false;
    kilni_base_cond_broadcast(&late->changed);
  }
  kilni_base_mutex_unlock(&late->lock);
  unreference(late);
}

static void wake(kilni_device_late_t* late) {
  kilni_base_mutex_lock(&late->lock);
  kilni_base_cond_broadcast(&late->changed);
  kilni_base_mutex_unlock(&late->lock);
}

// The entry may be what keeps the device, and the list with it: once another
// thread has it, only a reference of our own does.
void kilni_device_late_push(kilni_device_late_t* late,
                            kilni_device_late_entry_t* entry) {
  if (atomic_exchange(&entry->claimed, true)) return;
  atomic_fetch_add_explicit(&late->references, 1, memory_order_relaxed);
  kilni_device_late_entry_t* first =
      atomic_load_explicit(&late->first, memory_order_relaxed);
  do {
    entry->next = first;
  } while (!atomic_compare_exchange_weak(&late->first, &first, entry));
  if (atomic_load(&late->helpers) == 0) wake(late);
  unreference(late);
}

void kilni_device_late_begin(kilni_device_late_t* late) {
  atomic_fetch_add(&late->helpers, 1);
}

void kilni_device_late_end(kilni_device_late_t* late) {
  while (late_let_go(late)) {
  }
  atomic_fetch_sub(&late->helpers, 1);
  // Another thread may have relied on this one after its last check.
  if (!late_is_empty(late)) wake(late);
}

void kilni_device_late_enter(kilni_device_late_t* late,
                             kilni_device_late_entry_t* entry) {
  kilni_base_mutex_lock(&late->lock);
  entry->previous_known = NULL;
  entry->next_known = late->known;
  if (late->known != NULL) late->known->previous_known = entry;
  late->known = entry;
  kilni_base_mutex_unlock(&late->lock);
}

void kilni_device_late_leave(kilni_device_late_t* late,
                             kilni_device_late_entry_t* entry) {
  kilni_base_mutex_lock(&late->lock);
  if (entry->next_known != NULL) {
    entry->next_known->previous_known = entry->previous_known;
  }
  if (entry->previous_known != NULL) {
    entry->previous_known->next_known = entry->next_known;
  } else if (late->known == entry) {
    late->known = entry->next_known;
  }
  kilni_base_mutex_unlock(&late->lock);
}

void kilni_device_late_add_user(kilni_device_late_t* late) {
  kilni_base_mutex_lock(&late->lock);
  late->users++;
  kilni_base_mutex_unlock(&late->lock);
}

void kilni_device_late_drop_user(kilni_device_late_t* late, bool lost) {
  kilni_base_mutex_lock(&late->lock);
  late->users--;
  if (lost) late->lost = true;
  kilni_device_late_entry_t* entry = claim_lost(late);
  kilni_base_mutex_unlock(&late->lock);
  while (entry != NULL) {
    entry->let_go(entry);  // which leaves the list
    kilni_base_mutex_lock(&late->lock);
    entry = claim_lost(late);
    kilni_base_mutex_unlock(&late->lock);
  }
}

void kilni_device_late_lose(kilni_device_late_t* late) {
  kilni_base_mutex_lock(&late->lock);
  late->lost = true;
  kilni_base_cond_broadcast(&late->changed);
  kilni_base_mutex_unlock(&late->lock);
}

void kilni_device_late_settle(kilni_device_late_t* late) {
  while (late_let_go(late)) {
  }
  if (kilni_base_thread_is_current(&late->thread)) return;
  kilni_base_mutex_lock(&late->lock);
  while (late->busy || !late_is_empty(late) || has_lost(late)) {
    kilni_base_cond_wait(&late->changed, &late->lock);
  }
  kilni_base_mutex_unlock(&late->lock);
}

// A thread's own libc memory: it outlives the runtime's allocator by a moment
// where the device ends on it.
static kiln_status_t late_start(kilni_device_late_t** out_late) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(kiln_allocator_libc(),
                                         sizeof(kilni_device_late_t), &block));
  kilni_device_late_t* late = block;
  kiln_status_t status = kilni_base_mutex_init(&late->lock);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(kiln_allocator_libc(), late, sizeof(*late));
    return status;
  }
  status = kilni_base_cond_init(&late->changed);
  if (!kiln_status_is_ok(status)) {
    kilni_base_mutex_deinit(&late->lock);
    kilni_base_free(kiln_allocator_libc(), late, sizeof(*late));
    return status;
  }
  atomic_init(&late->first, NULL);
  atomic_init(&late->helpers, 0);
  atomic_init(&late->references, 2);
  status = kilni_base_thread_start(&late->thread, "kiln-late", late_run, late);
  if (!kiln_status_is_ok(status)) {
    atomic_store(&late->references, 1);
    unreference(late);
    return status;
  }
  *out_late = late;
  return kiln_ok();
}

kiln_status_t kilni_device_late_need(kiln_device_t* device,
                                     kilni_device_late_t** out_late) {
  _Atomic(kilni_device_late_t*)* place = &device->whole->late;
  *out_late = atomic_load_explicit(place, memory_order_acquire);
  if (*out_late != NULL) return kiln_ok();
  kilni_device_late_t* made = NULL;
  KILNI_RETURN_IF_ERROR(late_start(&made));
  kilni_device_late_t* first = NULL;
  if (atomic_compare_exchange_strong(place, &first, made)) {
    *out_late = made;
    return kiln_ok();
  }
  kilni_device_late_stop(made);  // another thread was faster
  *out_late = first;
  return kiln_ok();
}

void kilni_device_late_stop(kilni_device_late_t* late) {
  if (late == NULL) return;
  kilni_base_mutex_lock(&late->lock);
  late->stops = true;
  kilni_base_cond_broadcast(&late->changed);
  kilni_base_mutex_unlock(&late->lock);
  if (kilni_base_thread_is_current(&late->thread)) {
    kilni_base_thread_detach(&late->thread);
  } else {
    kilni_base_thread_join(&late->thread);
  }
  unreference(late);
}
