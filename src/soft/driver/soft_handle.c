// SPDX-License-Identifier: Apache-2.0
//
// soft: the driver's handles as values that can be checked.
#include "soft/driver/soft_handle.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"

// Bits of a handle, from below: kind 4, slot 24, generation 32.
enum {
  KIND_BITS = 4,
  SLOT_BITS = 24,
  SLOT_LIMIT = 1 << SLOT_BITS,
  EPOCH_SHIFT = 16
};

// `kind` 0 is a free slot.
typedef struct kilni_soft_slot_t {
  void* object;
  uint32_t generation;
  uint32_t kind;
  uint32_t next_free;  // slot index + 1
  uint32_t reserved;
} kilni_soft_slot_t;

void kilni_soft_handles_init(kilni_soft_handles_t* handles,
                             kiln_allocator_t allocator, uint32_t epoch) {
  memset(handles, 0, sizeof(*handles));
  handles->allocator = allocator;
  handles->first_generation = (epoch << EPOCH_SHIFT) | 1;
}

void kilni_soft_handles_deinit(kilni_soft_handles_t* handles) {
  kilni_base_free_array(handles->allocator, handles->slots, handles->capacity,
                        sizeof(*handles->slots));
  handles->slots = NULL;
}

static kilni_soft_slot_t* handle_slot_of(const kilni_soft_handles_t* handles,
                                         uint64_t handle) {
  uint32_t index = (uint32_t)(handle >> KIND_BITS) & (SLOT_LIMIT - 1);
  uint32_t generation = (uint32_t)(handle >> (KIND_BITS + SLOT_BITS));
  if (index >= handles->count) return NULL;
  kilni_soft_slot_t* slot = &handles->slots[index];
  uint32_t kind = (uint32_t)handle & ((1u << KIND_BITS) - 1);
  bool top_is_clear = handle >> (KIND_BITS + SLOT_BITS + 32) == 0;
  bool live = slot->kind != 0 && slot->kind == kind &&
              slot->generation == generation && top_is_clear;
  return live ? slot : NULL;
}

kiln_status_t kilni_soft_handle_add(kilni_soft_handles_t* handles,
                                    kilni_soft_kind_t kind, void* object,
                                    uint64_t* out_handle) {
  *out_handle = 0;
  uint32_t index = handles->free_head - 1;
  if (handles->free_head != 0) {
    handles->free_head = handles->slots[index].next_free;
  } else {
    if (handles->count == SLOT_LIMIT) {
      return kilni_base_status_bare(KILN_STATUS_LIMIT_EXCEEDED);
    }
    void* slots = handles->slots;
    kiln_status_t status =
        kilni_base_grow(handles->allocator, handles->count + 1,
                        sizeof(*handles->slots), &handles->capacity, &slots);
    handles->slots = slots;
    KILNI_RETURN_IF_ERROR(status);
    index = (uint32_t)handles->count++;
    handles->slots[index].generation = handles->first_generation;
  }
  kilni_soft_slot_t* slot = &handles->slots[index];
  slot->object = object;
  slot->kind = (uint32_t)kind;
  *out_handle = ((uint64_t)slot->generation << (KIND_BITS + SLOT_BITS)) |
                ((uint64_t)index << KIND_BITS) | (uint64_t)kind;
  return kiln_ok();
}

void* kilni_soft_handle_get(const kilni_soft_handles_t* handles,
                            kilni_soft_kind_t kind, uint64_t handle) {
  const kilni_soft_slot_t* slot = handle_slot_of(handles, handle);
  return slot != NULL && slot->kind == (uint32_t)kind ? slot->object : NULL;
}

void kilni_soft_handle_remove(kilni_soft_handles_t* handles, uint64_t handle) {
  kilni_soft_slot_t* slot = handle_slot_of(handles, handle);
  if (slot == NULL) return;
  slot->object = NULL;
  slot->kind = 0;
  slot->generation++;
  slot->next_free = handles->free_head;
  handles->free_head = (uint32_t)(slot - handles->slots) + 1;
}
