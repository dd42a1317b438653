// SPDX-License-Identifier: Apache-2.0
//
// soft: which memory a wrong access meant, and what is wrong with it.
#include <inttypes.h>
#include <stdio.h>

#include "soft/engine/soft_state.h"

enum {
  NULL_BYTES = 64 << 10,  // so far from null it is null with an index
  NEAR_MEMORY = 1 << 20,  // so far from memory it may be an index into it
  NEAR_SPACE = 64 << 10,  // below the window of a space, with a negative one
};

static const char* variable_name(const kilni_soft_code_t* code,
                                 uint64_t address) {
  for (uint32_t i = 0; i < code->symbol_count; i++) {
    if (code->symbols[i].address == address) return code->symbols[i].name;
  }
  return NULL;
}

void kilni_soft_fault_buffer(kilni_soft_fault_t* fault,
                             const kilni_soft_code_t* code,
                             const kilni_soft_alloc_t* alloc) {
  fault->memory = KILN_FAULT_MEMORY_ALLOCATION;
  if (kilni_soft_alloc_is_host(alloc->kind)) {
    fault->memory = KILN_FAULT_MEMORY_HOST;
  } else if (alloc->kind == KILNI_SOFT_ALLOC_HEAP) {
    fault->memory = KILN_FAULT_MEMORY_HEAP_BLOCK;
  } else if (alloc->kind == KILNI_SOFT_ALLOC_MODULE ||
             alloc->kind == KILNI_SOFT_ALLOC_CONSTANT) {
    fault->memory = KILN_FAULT_MEMORY_VARIABLE;
    fault->name = variable_name(code, alloc->address);
    if (alloc->kind == KILNI_SOFT_ALLOC_CONSTANT) {
      fault->cause = KILN_FAULT_CAUSE_CONSTANT;
    }
  }
  fault->buffer = alloc->address;
  fault->buffer_bytes = alloc->bytes;
  fault->offset = (int64_t)(fault->address - alloc->address);
}

static void own(kilni_soft_fault_t* fault, uint32_t memory, int64_t offset,
                uint64_t bytes) {
  fault->memory = memory;
  fault->offset = offset;
  fault->buffer_bytes = bytes;
}

// Sets the memory, for an address of the generic space too; false for memory
// that is not the block's, the thread's or the parameters'.
static bool fault_memory_find_own(kilni_soft_fault_t* fault,
                                  const kilni_soft_run_t* run, uint32_t space) {
  uint64_t address = fault->address;
  int64_t offset = (int64_t)address;
  if (space == KILNI_SOFT_SPACE_GENERIC) {
    offset = (int64_t)(address - KILNI_SOFT_SHARED_BASE);
    if (offset >= -NEAR_SPACE && offset < (int64_t)KILNI_SOFT_SHARED_BYTES) {
      space = KILNI_SOFT_SPACE_SHARED;
    }
    int64_t local = (int64_t)(address - KILNI_SOFT_LOCAL_BASE);
    if (local >= -NEAR_SPACE && local < (int64_t)KILNI_SOFT_LOCAL_BYTES) {
      space = KILNI_SOFT_SPACE_LOCAL;
      offset = local;
    }
    if (address - KILNI_SOFT_PARAM_BASE < KILNI_SOFT_PARAM_BYTES) {
      space = KILNI_SOFT_SPACE_PARAM;
      offset = (int64_t)(address - KILNI_SOFT_PARAM_BASE);
    }
  } else if (address <= UINT32_MAX) {
    offset = (int32_t)(uint32_t)address;  // a negative one in 32 bits
  }
  switch (space) {
    case KILNI_SOFT_SPACE_SHARED:
      own(fault, KILN_FAULT_MEMORY_SHARED, offset, run->grid->shared_bytes);
      return true;
    case KILNI_SOFT_SPACE_LOCAL:
      own(fault, KILN_FAULT_MEMORY_LOCAL, offset, run->local_top);
      return true;
    case KILNI_SOFT_SPACE_PARAM:
      own(fault, KILN_FAULT_MEMORY_PARAMETERS, offset,
          run->grid->entry->param_bytes);
      return true;
    default:
      return false;
  }
}

// True if the whole access is in memory.
static bool is_inside(const kilni_soft_fault_t* fault) {
  return fault->offset >= 0 &&
         (uint64_t)fault->offset + fault->bytes <= fault->buffer_bytes;
}

static uint64_t fault_memory_distance(const kilni_soft_alloc_t* near,
                                      uint64_t address) {
  return address < near->address ? near->address - address
                                 : address - (near->address + near->bytes);
}

// Whether an access may have meant this memory: its distance is at most the
// size of the memory.
static bool fault_memory_is_near(const kilni_soft_alloc_t* near,
                                 uint64_t address) {
  uint64_t away = fault_memory_distance(near, address);
  return away <= NEAR_MEMORY || away <= near->bytes;
}

// What is nearest all the same, and how far that is.
static void tell_nearest(kilni_soft_fault_t* fault,
                         const kilni_soft_memory_t* memory,
                         const kilni_soft_alloc_t* near) {
  if (!kilni_soft_memory_in_window(memory, fault->address)) return;
  (void)snprintf(
      fault->detail, sizeof(fault->detail),
      "%" PRIu64 " bytes %s the nearest allocation, of %" PRIu64 " bytes",
      fault_memory_distance(near, fault->address),
      fault->address < near->address ? "before" : "past", near->bytes);
  fault->cause = KILN_FAULT_CAUSE_FAR;
}

void kilni_soft_fault_use(kilni_soft_fault_t* fault,
                          const kilni_soft_freed_t* freed) {
  fault->what = KILN_FAULT_USE_AFTER_FREE;
  fault->cause = KILN_FAULT_CAUSE_FREED;
  if (freed->how == KILNI_SOFT_FREE_ORDERED) {
    fault->cause = KILN_FAULT_CAUSE_FREED_ORDERED;
  } else if (freed->how == KILNI_SOFT_FREE_PENDING) {
    fault->cause = KILN_FAULT_CAUSE_FREED_PENDING;
  }
  fault->memory = freed->kind == KILNI_SOFT_ALLOC_HEAP
                      ? KILN_FAULT_MEMORY_HEAP_BLOCK
                      : KILN_FAULT_MEMORY_ALLOCATION;
  fault->buffer = freed->address;
  fault->buffer_bytes = freed->bytes;
  fault->offset = (int64_t)(fault->address - freed->address);
  if (freed->kind != KILNI_SOFT_ALLOC_HEAP) {
    kilni_soft_freed_text(freed, fault->detail, sizeof(fault->detail));
  }
}

// Live memory at the address that all the same may not be accessed.
static void find_inside(kilni_soft_fault_t* fault,
                        const kilni_soft_grid_t* grid,
                        const kilni_soft_alloc_t* alloc) {
  kilni_soft_fault_buffer(fault, grid->code, alloc);
  if (!is_inside(fault)) return;
  fault->what = KILN_FAULT_READ_ONLY;
  if (alloc->kind == KILNI_SOFT_ALLOC_CONSTANT && fault->is_store) return;
  fault->what = KILN_FAULT_ILLEGAL_ADDRESS;
  fault->cause = KILN_FAULT_CAUSE_NO_ACCESS;
}

static void find_global(kilni_soft_fault_t* fault, kilni_soft_run_t* run) {
  const kilni_soft_grid_t* grid = run->grid;
  kilni_soft_memory_t* memory = grid->memory;
  uint64_t address = fault->address;
  kilni_soft_alloc_t near;
  kilni_soft_freed_t freed;
  if (address < NULL_BYTES) {
    fault->what = KILN_FAULT_NULL_POINTER;
    if (kilni_soft_heap_was_full(memory)) {
      fault->cause = KILN_FAULT_CAUSE_HEAP_FULL;
    }
  } else if (kilni_soft_memory_query(memory, address, &near)) {
    find_inside(fault, grid, &near);
  } else if (kilni_soft_memory_freed(memory, address, &freed)) {
    kilni_soft_fault_use(fault, &freed);
  } else if (!kilni_soft_memory_nearest(memory, address, &near)) {
    fault->what = KILN_FAULT_ILLEGAL_ADDRESS;
  } else if (fault_memory_is_near(&near, address)) {
    kilni_soft_fault_buffer(fault, grid->code, &near);
  } else {
    fault->what = KILN_FAULT_ILLEGAL_ADDRESS;
    tell_nearest(fault, memory, &near);
  }
}

void kilni_soft_fault_memory(kilni_soft_fault_t* fault, kilni_soft_run_t* run,
                             uint32_t space) {
  bool misaligned = fault->what == KILN_FAULT_MISALIGNED;
  if (!misaligned) fault->what = KILN_FAULT_OUT_OF_BOUNDS;
  if (fault_memory_find_own(fault, run, space)) {
    if (!misaligned && is_inside(fault)) fault->what = KILN_FAULT_READ_ONLY;
  } else {
    find_global(fault, run);
  }
  if (misaligned) {
    fault->what = KILN_FAULT_MISALIGNED;
    fault->cause = KILN_FAULT_CAUSE_NONE;
    fault->detail[0] = 0;
  }
}
