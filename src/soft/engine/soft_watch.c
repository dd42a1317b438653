// SPDX-License-Identifier: Apache-2.0
//
// soft: checks the accesses of kernels for reads of uninitialised memory, and
// for uses of memory that is freed meanwhile. Only grids whose memory keeps
// marks, or that have forbidden memory, run through it.
//
// A byte is marked before it is written, so that any reader of the new value
// sees the mark; and checked before it is read.
#include "soft/engine/soft_address.h"
#include "soft/engine/soft_state.h"

static bool is_store(uint32_t op) {
  switch (op) {
#define SIZES(name)               \
  case KILNI_SOFT_OP_##name##_8:  \
  case KILNI_SOFT_OP_##name##_16: \
  case KILNI_SOFT_OP_##name##_32: \
  case KILNI_SOFT_OP_##name##_64: \
  case KILNI_SOFT_OP_##name##_v:
    SIZES(st_global)
    SIZES(st_generic)
    SIZES(st_shared)
#undef SIZES
    case KILNI_SOFT_OP_st_sync:
      return true;
    default:
      return false;
  }
}

// The space that an address of the generic one is of, and its address there.
static uint32_t watch_space_of(uint32_t space, uint64_t* address) {
  if (space != KILNI_SOFT_SPACE_GENERIC) return space;
  if (*address - KILNI_SOFT_SHARED_BASE < KILNI_SOFT_SHARED_BYTES) {
    *address -= KILNI_SOFT_SHARED_BASE;
    return KILNI_SOFT_SPACE_SHARED;
  }
  // Everything else that is not the device's memory has no marks.
  return KILNI_SOFT_SPACE_GLOBAL;
}

// False, after the report, if lane `lane` reads what was never written. An
// access that is wrong by its address is left to the handler.
static bool watch_look(kilni_soft_run_t* run, const kilni_soft_instr_t* instr,
                       uint32_t lane, uint32_t space, uint64_t given,
                       uint32_t bytes) {
  kilni_soft_unwritten_t story = {.space = space, .address = given};
  uint64_t address = given;
  story.bytes = bytes;
  if (address & (bytes - 1)) return true;
  if (watch_space_of(space, &address) == KILNI_SOFT_SPACE_SHARED) {
    kilni_soft_marks_t marks = kilni_soft_shared_marks(run);
    uint64_t first = 0;
    if (address + bytes > marks.bytes ||
        kilni_soft_marks_all(&marks, address, bytes, &first)) {
      return true;
    }
    story.space = KILNI_SOFT_SPACE_SHARED;
    story.first = first;
  } else {
    if (kilni_soft_marks_all(run->grid->marks, address, bytes, &story.first) ||
        !kilni_soft_memory_query(run->grid->memory, address, &story.alloc)) {
      return true;
    }
    uint64_t end = story.alloc.address + story.alloc.bytes;
    if (story.first >= end || address + bytes > end) return true;
  }
  kilni_soft_fault_unwritten(run, instr, lane, &story);
  return false;
}

// False, after the report, if the address is of memory that is freed meanwhile.
static bool allowed(kilni_soft_run_t* run, const kilni_soft_instr_t* instr,
                    uint32_t lane, uint64_t address, uint32_t bytes,
                    bool store) {
  const kilni_soft_grid_t* grid = run->grid;
  for (size_t i = 0; i < grid->forbidden_count; i++) {
    const kilni_soft_freed_t* freed = &grid->forbidden[i];
    if (address - freed->address >= freed->bytes) continue;
    kilni_soft_fault_freed(run, instr, lane, address, bytes, store, freed);
    return false;
  }
  return true;
}

bool kilni_soft_watch_lane(kilni_soft_run_t* run,
                           const kilni_soft_instr_t* instr, uint32_t lane,
                           uint32_t space, uint64_t address, uint32_t bytes,
                           bool store) {
  if (space == KILNI_SOFT_SPACE_LOCAL || space == KILNI_SOFT_SPACE_PARAM) {
    return true;
  }
  if (run->grid->forbidden_count && space != KILNI_SOFT_SPACE_SHARED &&
      !allowed(run, instr, lane, address, bytes, store)) {
    return false;
  }
  if (!run->grid->marks) return true;
  if (!store) return watch_look(run, instr, lane, space, address, bytes);
  if (watch_space_of(space, &address) == KILNI_SOFT_SPACE_SHARED) {
    kilni_soft_marks_t marks = kilni_soft_shared_marks(run);
    kilni_soft_marks_set(&marks, address, bytes);
  } else {
    kilni_soft_marks_set(run->grid->marks, address, bytes);
  }
  return true;
}

bool kilni_soft_watch(kilni_soft_run_t* run, const kilni_soft_instr_t* instr) {
  kilni_soft_address_t access;
  uint32_t exec = kilni_soft_exec(&run->warp, instr);
  if (!exec || !kilni_soft_address_find(&run->warp, instr, exec, &access)) {
    return true;
  }
  bool wide = instr->op == KILNI_SOFT_OP_atom_b128;
  bool atomic = wide || instr->op == KILNI_SOFT_OP_atom;
  bool store = is_store(instr->op);
  uint32_t bytes = wide ? 16 : access.bytes;
  for (uint32_t m = exec; m && !store; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    if (!kilni_soft_watch_lane(run, instr, lane, access.space,
                               access.lane[lane], bytes, false)) {
      return false;
    }
  }
  for (uint32_t m = exec; m && (store || atomic); m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    if (!kilni_soft_watch_lane(run, instr, lane, access.space,
                               access.lane[lane], bytes, true)) {
      return false;
    }
  }
  return true;
}
