// SPDX-License-Identifier: Apache-2.0
//
// soft: the checked translation of a device address to host memory, one lane at
// a time. The handlers of loads and stores look at whole warps first
// (soft_ops_memory.c) and come here when that is not enough.
#include "soft/engine/soft_state.h"

static void* in_global(kilni_soft_run_t* run, const kilni_soft_instr_t* instr,
                       uint64_t address, uint32_t bytes, bool is_store) {
  kilni_soft_worker_t* worker = run->worker;
  uint32_t site = (uint32_t)(instr - run->frame->function->code);
  kilni_soft_range_t* range = &worker->ranges[site % KILNI_SOFT_RANGE_SITES];
  if (address < range->lo || address >= range->hi) {
    kilni_soft_range_t found;
    if (!kilni_soft_memory_find(run->grid->memory, address, &found)) {
      return NULL;
    }
    *range = found;
  }
  if (bytes > range->hi - address) return NULL;
  if (is_store && !range->writable) return NULL;
  return (void*)(uintptr_t)(address + (uint64_t)range->delta);
}

static void* in_shared(const kilni_soft_run_t* run, uint64_t offset,
                       uint32_t bytes) {
  const kilni_soft_grid_t* grid = run->grid;
  uint32_t size = grid->shared_bytes;
  if (offset < size && bytes <= size - offset) {
    return run->block->shared + offset;
  }
  uint64_t own = offset - KILNI_SOFT_RESERVED_AT;
  size = grid->reserved_bytes;
  if (own >= size || bytes > size - own) return NULL;
  return run->block->memory + grid->reserved_offset + own;
}

static void* in_local(const kilni_soft_run_t* run, uint32_t lane,
                      uint64_t offset, uint32_t bytes) {
  uint32_t size = run->local_top;
  if (offset >= size || bytes > size - offset) return NULL;
  return run->local + lane * run->local_stride + offset;
}

static void* in_param(const kilni_soft_run_t* run, uint64_t offset,
                      uint32_t bytes, bool is_store) {
  uint32_t size = run->grid->entry->param_bytes;
  if (is_store || offset >= size || bytes > size - offset) return NULL;
  return run->grid->params + offset;
}

static void* access_place(kilni_soft_run_t* run,
                          const kilni_soft_instr_t* instr, uint32_t lane,
                          uint32_t space, uint64_t address, uint32_t bytes,
                          bool is_store) {
  switch (space) {
    case KILNI_SOFT_SPACE_SHARED:
      return in_shared(run, address, bytes);
    case KILNI_SOFT_SPACE_LOCAL:
      return in_local(run, lane, address, bytes);
    case KILNI_SOFT_SPACE_PARAM:
      return in_param(run, address, bytes, is_store);
    case KILNI_SOFT_SPACE_GENERIC:
      break;
    default:
      return in_global(run, instr, address, bytes, is_store);
  }
  if (address - KILNI_SOFT_SHARED_BASE < KILNI_SOFT_SHARED_BYTES) {
    return in_shared(run, address - KILNI_SOFT_SHARED_BASE, bytes);
  }
  if (address - KILNI_SOFT_LOCAL_BASE < KILNI_SOFT_LOCAL_BYTES) {
    return in_local(run, lane, address - KILNI_SOFT_LOCAL_BASE, bytes);
  }
  if (address - KILNI_SOFT_PARAM_BASE < KILNI_SOFT_PARAM_BYTES) {
    return in_param(run, address - KILNI_SOFT_PARAM_BASE, bytes, is_store);
  }
  return in_global(run, instr, address, bytes, is_store);
}

void* kilni_soft_access(kilni_soft_run_t* run, const kilni_soft_instr_t* instr,
                        uint32_t lane, uint32_t space, uint64_t address,
                        uint32_t bytes, bool is_store) {
  kilni_soft_fault_kind_t kind = KILNI_SOFT_FAULT_MISALIGNED;
  if ((address & (bytes - 1)) == 0) {
    void* host =
        access_place(run, instr, lane, space, address, bytes, is_store);
    if (host) return host;
    kind = KILNI_SOFT_FAULT_ILLEGAL_ADDRESS;
  }
  kilni_soft_fault_access(run, instr, kind, lane, space, address, bytes,
                          is_store);
  return NULL;
}

void* kilni_soft_access_watched(kilni_soft_run_t* run,
                                const kilni_soft_instr_t* instr, uint32_t lane,
                                uint32_t space, uint64_t address,
                                uint32_t bytes, bool is_store) {
  void* host =
      kilni_soft_access(run, instr, lane, space, address, bytes, is_store);
  if (host && run->grid->watched &&
      !kilni_soft_watch_lane(run, instr, lane, space, address, bytes,
                             is_store)) {
    return NULL;
  }
  return host;
}

KILNI_SOFT_RACY
bool kilni_soft_access_text(kilni_soft_run_t* run,
                            const kilni_soft_instr_t* instr, uint32_t lane,
                            uint64_t address, size_t capacity, char* out_text) {
  size_t size = 0;
  for (; size + 1 < capacity; size++) {
    const char* c = kilni_soft_access(
        run, instr, lane, KILNI_SOFT_SPACE_GENERIC, address + size, 1, false);
    if (!c) return false;
    if (*c == 0) break;
    out_text[size] = *c;
  }
  out_text[size] = 0;
  return true;
}
