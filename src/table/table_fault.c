// SPDX-License-Identifier: Apache-2.0
//
// table: the fault wrapper, which makes a chosen call fail.
//
// Calls are counted on the thread that armed the wrapper, and only there:
// workers and other tests go through untouched, so that the n-th call is the
// same call in every run.
#include <pthread.h>

#include "base/status_make.h"
#include "table/table.h"
#include "table/table_wrap.h"

static uintptr_t this_thread(void) {
  return (uintptr_t)pthread_self();
}

bool kilni_table_fault_is_due(kilni_fault_slot_t* slot, const char* call) {
  if (atomic_load_explicit(&slot->thread, memory_order_relaxed) !=
      this_thread()) {
    return false;
  }
  slot->calls++;
  if (slot->nth == 0 || slot->calls < slot->nth) return false;
  if (slot->mode == KILNI_FAULT_ONCE && slot->calls > slot->nth) return false;
  if (slot->hit == NULL) slot->hit = call;
  return true;
}

void kilni_table_fault_arm(kilni_fault_slot_t* slot, uint64_t nth,
                           uint32_t mode, uint32_t result) {
  atomic_store(&slot->thread, 0);
  slot->nth = nth;
  slot->calls = 0;
  slot->hit = NULL;
  slot->mode = mode;
  slot->result = result;
  atomic_store(&slot->thread, this_thread());
}

uint64_t kilni_table_fault_disarm(kilni_fault_slot_t* slot) {
  atomic_store(&slot->thread, 0);
  return slot->calls;
}

kiln_status_t kilni_table_fault_full(const char* provider) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED,
                 "\"%s\" cannot be wrapped: %d tables of its kind have a "
                 "fault wrapper already",
                 provider, KILNI_WRAP_SLOTS),
      "remove a fault wrapper first");
}
