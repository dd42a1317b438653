// SPDX-License-Identifier: Apache-2.0
//
// dispatch: work in progress, and how it ended.
//
// One that is released before its work is done goes to the deferred list: the
// device may still write its trap records. Calls that make or end pendings
// check that list.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "base/str.h"
#include "dispatch/dispatch_inside.h"

enum {
  FIRST_PAUSE_NS = 2000,
  LOOKS = 2,  // at what is not over, by one call
};

static kiln_status_t pending_make_event(kiln_dispatcher_t* dispatcher,
                                        bool timed, kiln_event_t** out_event) {
  kiln_event_options_t options = kiln_event_options_default();
  if (timed) options.timing = KILN_SWITCH_ON;
  return kiln_event_create(dispatcher->device, &options, out_event);
}

// Ends one without references whose work is done, or was never begun.
static void pending_destroy(kiln_pending_t* pending) {
  kiln_dispatcher_t* dispatcher = pending->dispatcher;
  kiln_event_release(pending->start);
  kiln_event_release(pending->end);
  kilni_dispatch_trap_give(dispatcher, pending->record);
  kiln_kernel_release(pending->kernel);
  if (pending->of.object != NULL) pending->of.release(pending->of.object);
  kilni_base_strfree(dispatcher->allocator, pending->label);
  kilni_base_free(dispatcher->allocator, pending, sizeof(*pending));
  atomic_fetch_sub(&dispatcher->pendings, 1);
}

kiln_status_t kilni_dispatch_pending_create(kiln_dispatcher_t* dispatcher,
                                            const char* label, bool timed,
                                            kiln_pending_t** out_pending) {
  void* block = NULL;
  *out_pending = NULL;
  kilni_dispatch_limbo_look(dispatcher);
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(dispatcher->allocator, sizeof(kiln_pending_t), &block));
  kiln_pending_t* pending = block;
  pending->dispatcher = dispatcher;
  pending->began_ns = kilni_base_time_ns();
  atomic_init(&pending->references, 1);
  atomic_init(&pending->state, KILNI_PENDING_RUNS);
  atomic_init(&pending->wait_ns, 0);
  atomic_fetch_add(&dispatcher->pendings, 1);
  kiln_status_t status = kilni_base_strdup(
      dispatcher->allocator, kilni_base_sv(label), &pending->label);
  if (kiln_status_is_ok(status)) {
    status = pending_make_event(dispatcher, timed, &pending->end);
  }
  if (kiln_status_is_ok(status) && timed) {
    status = pending_make_event(dispatcher, timed, &pending->start);
  }
  if (!kiln_status_is_ok(status)) {
    pending_destroy(pending);
    return status;
  }
  kiln_dispatcher_retain(dispatcher);
  *out_pending = pending;
  return kiln_ok();
}

kiln_status_t kilni_dispatch_pending_finish(kiln_pending_t* pending,
                                            kiln_stream_t* stream) {
  kiln_status_t status = kiln_event_record(pending->end, stream);
  pending->enqueue_ns = kilni_base_time_ns() - pending->began_ns;
  if (pending->start == NULL) return status;
  kilni_dispatch_counters_t* counters = pending->dispatcher->counters;
  kilni_dispatch_count(counters, KILNI_COUNTER_TIMED_DISPATCHES, 1);
  kilni_dispatch_count(counters, KILNI_COUNTER_TIMED_ENQUEUE_NS,
                       pending->enqueue_ns);
  return status;
}

// ---- The deferred list ----

static bool pending_is_over(kiln_pending_t* pending) {
  bool ready = true;
  if (kilni_device_is_lost(pending->dispatcher->device)) return false;
  kiln_status_t status = kiln_event_query(pending->end, &ready);
  bool known = kiln_status_is_ok(status);
  kiln_status_free(status);
  return known && ready;
}

// After those that already wait.
static void put_last(kilni_dispatch_limbo_t* limbo, kiln_pending_t* pending) {
  pending->next = NULL;
  kilni_base_mutex_lock(&limbo->lock);
  if (limbo->first == NULL) {
    limbo->first = pending;
  } else {
    limbo->last->next = pending;
  }
  limbo->last = pending;
  kilni_base_mutex_unlock(&limbo->lock);
}

static kiln_pending_t* take_first(kilni_dispatch_limbo_t* limbo) {
  kilni_base_mutex_lock(&limbo->lock);
  kiln_pending_t* pending = limbo->first;
  if (pending != NULL) limbo->first = pending->next;
  kilni_base_mutex_unlock(&limbo->lock);
  return pending;
}

// Each call checks others, so that long work does not hide any, and no call
// checks many that are not done.
void kilni_dispatch_limbo_look(kiln_dispatcher_t* dispatcher) {
  for (int waits = 0; waits < LOOKS;) {
    kiln_pending_t* pending = take_first(&dispatcher->limbo);
    if (pending == NULL) return;
    if (pending_is_over(pending)) {
      pending_destroy(pending);
    } else {
      put_last(&dispatcher->limbo, pending);
      waits++;
    }
  }
}

void kilni_dispatch_limbo_sweep(kiln_dispatcher_t* dispatcher, bool all) {
  kilni_dispatch_limbo_t* limbo = &dispatcher->limbo;
  kilni_base_mutex_lock(&limbo->lock);
  kiln_pending_t* list = limbo->first;
  limbo->first = NULL;
  kilni_base_mutex_unlock(&limbo->lock);
  while (list != NULL) {
    kiln_pending_t* next = list->next;
    if (all && !kilni_device_is_lost(dispatcher->device)) {
      kiln_status_free(kiln_event_synchronize(list->end));
    }
    if (all || pending_is_over(list)) {
      pending_destroy(list);
    } else {
      put_last(limbo, list);
    }
    list = next;
  }
}

void kiln_pending_retain(kiln_pending_t* pending) {
  if (pending == NULL) return;
  atomic_fetch_add_explicit(&pending->references, 1, memory_order_relaxed);
}

void kiln_pending_release(kiln_pending_t* pending) {
  if (pending == NULL || kilni_device_is_forked(pending->dispatcher->device)) {
    return;
  }
  if (atomic_fetch_sub_explicit(&pending->references, 1,
                                memory_order_acq_rel) != 1) {
    return;
  }
  kiln_dispatcher_t* dispatcher = pending->dispatcher;
  if (atomic_load(&pending->state) != KILNI_PENDING_RUNS ||
      pending->record == NULL || pending_is_over(pending)) {
    pending_destroy(pending);
  } else {
    put_last(&dispatcher->limbo, pending);
  }
  kiln_dispatcher_release(dispatcher);
}

// ---- How it ended ----

static void count_end(kiln_pending_t* pending, bool traps) {
  kilni_dispatch_counters_t* counters = pending->dispatcher->counters;
  uint64_t device_ns = 0;
  if (counters == NULL) return;
  if (traps) kilni_dispatch_count(counters, KILNI_COUNTER_TRAPS, 1);
  if (pending->start == NULL) return;
  kiln_status_t status =
      kiln_event_elapsed(pending->start, pending->end, &device_ns);
  if (kiln_status_is_ok(status)) {
    kilni_dispatch_count(counters, KILNI_COUNTER_MEASURED, 1);
    kilni_dispatch_count(counters, KILNI_COUNTER_MEASURED_NS, device_ns);
    kilni_dispatch_counters_longest(counters, device_ns);
  }
  kiln_status_free(status);
}

static void pending_look(kiln_pending_t* pending) {
  kilni_dispatch_pending_end_t* how = &pending->how;
  how->state = KILNI_PENDING_DONE;
  how->label = pending->label;
  if (pending->of.object != NULL) {
    pending->of.look(pending->of.object, how);
  } else if (pending->record != NULL &&
             kilni_dispatch_trap_is_set(pending->record)) {
    kilni_dispatch_trap_read(pending->record->host, &how->trap);
    how->state = KILNI_PENDING_TRAPPED;
  }
}

// Several threads may look at once: the first to find it reports it.
static void find_end(kiln_pending_t* pending) {
  kilni_base_mutex_t* lock = &pending->dispatcher->limbo.lock;
  kilni_base_mutex_lock(lock);
  bool first = atomic_load(&pending->state) == KILNI_PENDING_RUNS;
  if (first) {
    pending_look(pending);
    atomic_store(&pending->state, pending->how.state);
  }
  kilni_base_mutex_unlock(lock);
  if (first) {
    // What sequences and replays trapped in is counted when it is forgotten.
    count_end(pending, pending->how.state == KILNI_PENDING_TRAPPED &&
                           pending->of.object == NULL);
  }
}

static kiln_status_t limit_passed(kiln_pending_t* pending) {
  kiln_status_t status = kilni_device_end_of_time(
      pending->dispatcher->device,
      KILNI_FAIL(DEVICE_LOST,
                 "\"%s\" had not finished %.3g s after its dispatch",
                 pending->label, (double)pending->timeout_ns * 1e-9),
      "give it more time (`timeout_ns`), or look for a loop or a wait that "
      "never ends");
  atomic_store(&pending->state, KILNI_PENDING_LOST);
  return status;
}

kiln_status_t kiln_pending_query(kiln_pending_t* pending, bool* out_ready) {
  KILNI_CHECK_ARGUMENT(out_ready != NULL, "out_ready");
  *out_ready = false;
  KILNI_CHECK_ARGUMENT(pending != NULL, "pending");
  kiln_device_t* device = pending->dispatcher->device;
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  uint32_t state = atomic_load(&pending->state);
  if (state == KILNI_PENDING_RUNS) {
    bool ready = false;
    kiln_status_t status = kiln_event_query(pending->end, &ready);
    if (!kiln_status_is_ok(status)) {
      *out_ready = true;
      return KILNI_ANNOTATE(status, "dispatching \"%s\"", pending->label);
    }
    if (!ready) {
      if (pending->timeout_ns == 0 ||
          kilni_base_time_ns() - pending->began_ns < pending->timeout_ns) {
        return kiln_ok();
      }
      *out_ready = true;
      return limit_passed(pending);
    }
    find_end(pending);
    state = atomic_load(&pending->state);
  }
  *out_ready = true;
  if (state == KILNI_PENDING_TRAPPED) {
    return kilni_dispatch_trap_status(pending->how.label, &pending->how.trap);
  }
  if (state == KILNI_PENDING_UNCONVERGED) {
    return kilni_dispatch_rounds_status(pending->how.label,
                                        pending->how.rounds);
  }
  return state == KILNI_PENDING_LOST ? kilni_device_lost_status(device)
                                     : kiln_ok();
}

static kiln_status_t ask_pending(void* user, bool* out_ready) {
  return kiln_pending_query(user, out_ready);
}

static kiln_status_t poll(kiln_pending_t* pending, uint64_t began,
                          uint64_t timeout_ns) {
  kilni_device_ask_t ask = {ask_pending, pending, began, timeout_ns,
                            FIRST_PAUSE_NS};
  bool ready = false;
  KILNI_RETURN_IF_ERROR(kilni_device_ask_until_ready(&ask, &ready));
  return ready ? kiln_ok() : kilni_base_status_bare(KILN_STATUS_TIMED_OUT);
}

kiln_status_t kiln_pending_wait(kiln_pending_t* pending, uint64_t timeout_ns) {
  KILNI_CHECK_ARGUMENT(pending != NULL, "pending");
  uint64_t began = kilni_base_time_ns();
  bool ready = false;
  kilni_dispatch_count(pending->dispatcher->counters, KILNI_COUNTER_WAITS, 1);
  kiln_status_t status = kiln_pending_query(pending, &ready);
  if (ready || !kiln_status_is_ok(status)) return status;
  if (timeout_ns == KILN_PENDING_FOREVER && pending->timeout_ns == 0) {
    status = kiln_event_synchronize(pending->end);
    if (kiln_status_is_ok(status)) status = kiln_pending_query(pending, &ready);
  } else {
    status = poll(pending, began, timeout_ns);
  }
  uint64_t waited = kilni_base_time_ns() - began;
  kilni_dispatch_count(pending->dispatcher->counters, KILNI_COUNTER_WAIT_NS,
                       waited);
  unsigned long long longest = atomic_load(&pending->wait_ns);
  while (waited > longest &&
         !atomic_compare_exchange_weak(&pending->wait_ns, &longest, waited)) {
  }
  return status;
}

bool kiln_pending_trap(kiln_pending_t* pending, kiln_trap_t* out_trap) {
  memset(out_trap, 0, sizeof(*out_trap));
  bool ready = false;
  kiln_status_free(kiln_pending_query(pending, &ready));
  if (atomic_load(&pending->state) != KILNI_PENDING_TRAPPED) return false;
  *out_trap = pending->how.trap;
  return true;
}

kiln_status_t kiln_pending_times(kiln_pending_t* pending,
                                 kiln_pending_times_t* out_times) {
  KILNI_CHECK_ARGUMENT(out_times != NULL, "out_times");
  memset(out_times, 0, sizeof(*out_times));
  KILNI_CHECK_ARGUMENT(pending != NULL, "pending");
  if (pending->start == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE, "the dispatch of \"%s\" was not timed",
                   pending->label),
        "dispatch it with `timed`");
  }
  uint64_t device_ns = 0;
  KILNI_RETURN_IF_ERROR(
      kiln_event_elapsed(pending->start, pending->end, &device_ns));
  out_times->enqueue_ns = pending->enqueue_ns;
  out_times->device_ns = device_ns;
  out_times->wait_ns = atomic_load(&pending->wait_ns);
  return kiln_ok();
}

kiln_event_t* kiln_pending_event(const kiln_pending_t* pending) {
  return pending->end;
}
