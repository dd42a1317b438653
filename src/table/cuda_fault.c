// SPDX-License-Identifier: Apache-2.0
//
// table: the fault wrapper, which makes a chosen call fail.
//
// Calls are counted on the thread that armed the wrapper, and only there:
// workers and other tests go through untouched, so that the n-th call is the
// same call in every run.
#include <pthread.h>
#include <stdio.h>

#include "table/table_inside.h"

static uintptr_t this_thread(void) {
  return (uintptr_t)pthread_self();
}

static const kiln_cuda_table_t* fault_wrapped(unsigned slot) {
  return &kilni_table_state.fault[slot].wrapped;
}

static kiln_cu_result_t fault_result(unsigned slot) {
  return kilni_table_state.fault[slot].result;
}

static bool fault_is_due(unsigned index, const char* call) {
  kilni_fault_slot_t* slot = &kilni_table_state.fault[index];
  if (atomic_load_explicit(&slot->thread, memory_order_relaxed) !=
      this_thread()) {
    return false;
  }
  ++slot->calls;
  if (slot->nth == 0 || slot->calls < slot->nth) return false;
  if (slot->mode == KILNI_FAULT_ONCE && slot->calls > slot->nth) return false;
  if (slot->hit == NULL) slot->hit = call;
  return true;
}

#define KILNI_SLOT        0
#define KILNI_THUNK(name) fault0_##name
#include "table/fault_thunks_gen.inc"
#undef KILNI_SLOT
#undef KILNI_THUNK

#define KILNI_SLOT        1
#define KILNI_THUNK(name) fault1_##name
#include "table/fault_thunks_gen.inc"
#undef KILNI_SLOT
#undef KILNI_THUNK

_Static_assert(KILNI_WRAP_SLOTS == 2, "one set of thunks for each place");

kiln_status_t kilni_cuda_fault_install(const kiln_cuda_table_t* wrapped,
                                       kiln_cuda_table_t* out_table) {
  for (uint32_t i = 0; i < KILNI_WRAP_SLOTS; ++i) {
    kilni_fault_slot_t* slot = &kilni_table_state.fault[i];
    if (atomic_exchange(&slot->used, true)) continue;
    atomic_store(&slot->thread, 0);
    slot->calls = 0;
    slot->hit = NULL;
    slot->wrapped = *wrapped;
    *out_table = slot->wrapped;
    snprintf(out_table->provider, sizeof(out_table->provider), "fault(%.*s)",
             (int)sizeof(out_table->provider) - 8, slot->wrapped.provider);
    out_table->slot = i;
    (i == 0 ? fault0_cover : fault1_cover)(out_table);
    return NULL;
  }
  return kilni_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED,
                 "\"%s\" cannot be wrapped: %d tables have a "
                 "fault wrapper already",
                 wrapped->provider, KILNI_WRAP_SLOTS),
      "remove a fault wrapper first");
}

void kilni_cuda_fault_remove(const kiln_cuda_table_t* table) {
  kilni_fault_slot_t* slot = &kilni_table_state.fault[table->slot];
  atomic_store(&slot->thread, 0);
  atomic_store(&slot->used, false);
}

void kilni_cuda_fault_arm(const kiln_cuda_table_t* table, uint64_t nth,
                          uint32_t mode, kiln_cu_result_t result) {
  kilni_fault_slot_t* slot = &kilni_table_state.fault[table->slot];
  atomic_store(&slot->thread, 0);
  slot->nth = nth;
  slot->calls = 0;
  slot->hit = NULL;
  slot->mode = mode;
  slot->result = result;
  atomic_store(&slot->thread, this_thread());
}

uint64_t kilni_cuda_fault_disarm(const kiln_cuda_table_t* table) {
  kilni_fault_slot_t* slot = &kilni_table_state.fault[table->slot];
  atomic_store(&slot->thread, 0);
  return slot->calls;
}

const char* kilni_cuda_fault_hit(const kiln_cuda_table_t* table) {
  return kilni_table_state.fault[table->slot].hit;
}
