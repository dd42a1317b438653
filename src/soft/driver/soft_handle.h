// SPDX-License-Identifier: Apache-2.0
//
// soft: the driver's handles as values that can be checked.
//
// A handle holds its kind, a slot and the slot's generation, so that a handle
// that was destroyed, made up or of another kind is detected and never
// followed. The driver front's lock guards it.
#ifndef KILN_SRC_SOFT_DRIVER_SOFT_HANDLE_H_
#define KILN_SRC_SOFT_DRIVER_SOFT_HANDLE_H_

#include <stdint.h>

#include "kiln/allocator.h"
#include "kiln/status.h"

typedef enum kilni_soft_kind_t {
  KILNI_SOFT_KIND_CONTEXT = 1,
  KILNI_SOFT_KIND_STREAM = 2,
  KILNI_SOFT_KIND_EVENT = 3,
  KILNI_SOFT_KIND_MODULE = 4,
  KILNI_SOFT_KIND_FUNCTION = 5,
  KILNI_SOFT_KIND_LIBRARY = 6,  // a module
  KILNI_SOFT_KIND_KERNEL = 7,   // a function
  KILNI_SOFT_KIND_LINK = 8,
  KILNI_SOFT_KIND_POOL = 9,
  KILNI_SOFT_KIND_PHYSICAL = 10,
  KILNI_SOFT_KIND_GRAPH = 11,
  KILNI_SOFT_KIND_NODE = 12,
  KILNI_SOFT_KIND_EXEC = 13,
  KILNI_SOFT_KIND_OBJECT = 14,
} kilni_soft_kind_t;

// The live handles. thread-compatible
typedef struct kilni_soft_handles_t {
  kiln_allocator_t allocator;
  struct kilni_soft_slot_t* slots;
  size_t count;
  size_t capacity;
  uint32_t free_head;         // slot index + 1
  uint32_t first_generation;  // of a slot used for the first time
} kilni_soft_handles_t;

// `epoch` keeps handles of an earlier registry from being taken for live ones.
void kilni_soft_handles_init(kilni_soft_handles_t* handles,
                             kiln_allocator_t allocator, uint32_t epoch);
void kilni_soft_handles_deinit(kilni_soft_handles_t* handles);

// LIMIT_EXCEEDED (bare) when all slots are taken, or OUT_OF_MEMORY.
kiln_status_t kilni_soft_handle_add(kilni_soft_handles_t* handles,
                                    kilni_soft_kind_t kind, void* object,
                                    uint64_t* out_handle);
// The object, NULL unless `handle` is live and of `kind`.
void* kilni_soft_handle_get(const kilni_soft_handles_t* handles,
                            kilni_soft_kind_t kind, uint64_t handle);
// Ends a live handle.
void kilni_soft_handle_remove(kilni_soft_handles_t* handles, uint64_t handle);

#endif  // KILN_SRC_SOFT_DRIVER_SOFT_HANDLE_H_
