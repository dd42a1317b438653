// SPDX-License-Identifier: Apache-2.0
//
// soft: a block: its memory, its warps' turns, its barriers.
//
// All warps of a block are run by one worker, so nothing here is locked.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "soft/engine/soft_state.h"

enum { SHARED_PATTERN = 0xcd, BLOCK_ALIGN = 64 };

static void warp_start(kilni_soft_block_t* block, kilni_soft_worker_t* worker,
                       uint32_t index) {
  kilni_soft_grid_t* grid = worker->grid;
  kilni_soft_run_t* run = &block->warps[index];
  uint8_t* frame = block->memory + grid->frames_offset +
                   (uint64_t)index * grid->frame_stride;
  uint32_t left = grid->threads - index * KILNI_SOFT_LANES;
  uint32_t lanes =
      left >= KILNI_SOFT_LANES ? KILNI_SOFT_FULL_MASK : (1u << left) - 1u;
  memset(run, 0, offsetof(kilni_soft_run_t, groups));
  run->block = block;
  run->worker = worker;
  run->grid = grid;
  run->index = index;
  run->started = lanes;
  run->alive = lanes;
  run->outcome = KILNI_SOFT_YIELDED;
  run->current = KILNI_SOFT_NONE;
  run->local = block->memory + grid->local_offset +
               (uint64_t)index * grid->local_stride * KILNI_SOFT_LANES;
  run->local_stride = grid->local_stride;
  run->root.function = grid->function;
  run->root.pred = (uint32_t*)(void*)frame;
  run->root.pred[0] = KILNI_SOFT_FULL_MASK;
  run->root.slots = frame + grid->frame_stride - grid->function->frame_bytes;
  run->root.constants = grid->constants[grid->entry->function];
  run->root.live = lanes;
  run->group_count = 1;
  run->groups[0] = (kilni_soft_group_t){.frame = &run->root,
                                        .pc = grid->function->code,
                                        .mask = lanes,
                                        .state = KILNI_SOFT_READY};
}

kiln_status_t kilni_soft_block_start(kilni_soft_worker_t* worker,
                                     uint64_t linear,
                                     kilni_soft_block_t** out_block) {
  kilni_soft_grid_t* grid = worker->grid;
  kilni_soft_block_t* block = worker->idle;
  *out_block = NULL;
  if (block) {
    worker->idle = block->next;
  } else {
    void* memory;
    KILNI_RETURN_IF_ERROR(kilni_base_alloc_aligned(
        grid->host->allocator, grid->block_bytes, BLOCK_ALIGN, &memory));
    block = memory;
    block->memory = memory;
    block->shared = block->memory + grid->shared_offset;
    block->warps =
        (kilni_soft_run_t*)(void*)(block->memory + grid->warps_offset);
    block->warp_count = grid->warp_count;
  }
  block->linear = linear;
  block->index[0] = (uint32_t)(linear % grid->launch.grid[0]);
  linear /= grid->launch.grid[0];
  block->index[1] = (uint32_t)(linear % grid->launch.grid[1]);
  block->index[2] = (uint32_t)(linear / grid->launch.grid[1]);
  block->alive = grid->threads;
  block->done = 0;
  block->rounds = 0;
  block->waits = 0;
  block->said = 0;
  memset(block->barriers, 0, sizeof(block->barriers));
  memset(block->shared, SHARED_PATTERN, grid->shared_bytes);
  // Its users rely on zeroes: only the system can set it up.
  memset(block->memory + grid->reserved_offset, 0, grid->reserved_bytes);
  if (grid->marks) {
    memset(block->memory + grid->marks_offset, 0,
           KILNI_SOFT_MARKS_SIZE((size_t)grid->shared_bytes));
  }
  for (uint32_t i = 0; i < block->warp_count; i++) warp_start(block, worker, i);
  block->next = worker->resident;
  worker->resident = block;
  worker->resident_count++;
  *out_block = block;
  return kiln_ok();
}

static void free_local(kilni_soft_run_t* run) {
  if (!run->own_local) return;
  kilni_base_free_aligned(run->grid->host->allocator, run->local,
                          run->local_stride * KILNI_SOFT_LANES, BLOCK_ALIGN);
  run->own_local = 0;
  run->local_stride = 0;
}

// Gives back the frames of a warp that a fault has stopped.
static void free_frames(kilni_soft_run_t* run) {
  for (uint32_t i = 0; i < run->group_count; i++) {
    kilni_soft_frame_t* frame = run->groups[i].frame;
    uint32_t mask = run->groups[i].mask;
    while (frame->depth) {
      kilni_soft_frame_t* caller = frame->caller;
      kilni_soft_frame_leave(run, frame, mask);
      frame = caller;
    }
  }
}

void kilni_soft_block_free_all(kilni_soft_worker_t* worker) {
  kilni_soft_grid_t* grid = worker->grid;
  for (kilni_soft_block_t* block = worker->resident; block;
       block = block->next) {
    for (uint32_t i = 0; i < block->warp_count; i++) {
      free_frames(&block->warps[i]);
      free_local(&block->warps[i]);
      worker->executed += block->warps[i].warp.executed;
    }
  }
  kilni_soft_block_t* lists[2] = {worker->resident, worker->idle};
  for (int i = 0; i < 2; i++) {
    kilni_soft_block_t* block = lists[i];
    while (block) {
      kilni_soft_block_t* next = block->next;
      kilni_base_free_aligned(grid->host->allocator, block->memory,
                              grid->block_bytes, BLOCK_ALIGN);
      block = next;
    }
  }
  worker->resident = NULL;
  worker->idle = NULL;
}

static void write_result(kilni_soft_group_t* g,
                         const kilni_soft_barrier_t* barrier) {
  const kilni_soft_instr_t* instr = g->pc;
  uint32_t votes = barrier->votes;
  if (instr->aux == KILNI_SOFT_BARRIER_POPC) {
    uint32_t* d = (uint32_t*)(void*)(g->frame->slots + (instr->d & ~63u));
    for (uint32_t m = g->mask; m; m &= m - 1) d[__builtin_ctz(m)] = votes;
  } else if (instr->aux >= KILNI_SOFT_BARRIER_AND) {
    bool yes = instr->aux == KILNI_SOFT_BARRIER_AND ? votes == barrier->lanes
                                                    : votes != 0;
    uint32_t* p = &g->frame->pred[instr->d];
    *p = yes ? *p | g->mask : *p & ~g->mask;
  }
}

// All threads that wait at barrier `id` go on.
static void barrier_release(kilni_soft_block_t* block, uint32_t id) {
  kilni_soft_barrier_t* barrier = &block->barriers[id];
  for (uint32_t w = 0; w < block->warp_count; w++) {
    kilni_soft_run_t* run = &block->warps[w];
    if (id == KILNI_SOFT_CLUSTER_BARRIER) run->arrived = 0;
    for (uint32_t i = 0; i < run->group_count; i++) {
      kilni_soft_group_t* g = &run->groups[i];
      if (g->state != KILNI_SOFT_AT_BARRIER || g->want != id) continue;
      write_result(g, barrier);
      g->state = KILNI_SOFT_READY;
      g->pc++;
      if (run->outcome == KILNI_SOFT_BLOCKED) {
        run->outcome = KILNI_SOFT_YIELDED;
      }
    }
  }
  memset(barrier, 0, sizeof(*barrier));
}

static bool barrier_complete(const kilni_soft_block_t* block,
                             const kilni_soft_barrier_t* barrier) {
  if (barrier->expected) {
    return barrier->arrived + barrier->padding >= barrier->expected;
  }
  return barrier->arrived >= block->alive;
}

void kilni_soft_block_settle(kilni_soft_block_t* block) {
  for (uint32_t id = 0; id <= KILNI_SOFT_CLUSTER_BARRIER; id++) {
    const kilni_soft_barrier_t* barrier = &block->barriers[id];
    if (barrier->arrived && barrier_complete(block, barrier)) {
      barrier_release(block, id);
    }
  }
}

// Words of a barrier: `d`, the result of a reduction; `a`, the number; `b`, the
// count of threads, or KILNI_SOFT_NONE; `c`, the predicate of a reduction;
// `aux`, the action.
const kilni_soft_instr_t* kilni_soft_barrier(kilni_soft_run_t* run,
                                             const kilni_soft_instr_t* instr) {
  kilni_soft_warp_t* warp = &run->warp;
  // Lanes that name another barrier or count arrive there by themselves.
  uint32_t same = kilni_soft_same_lanes(warp, instr->a);
  if (instr->b != KILNI_SOFT_NONE) {
    same &= kilni_soft_same_lanes(warp, instr->b);
  }
  kilni_soft_part(run, instr, same);
  uint32_t first = (uint32_t)__builtin_ctz(warp->mask);
  uint32_t id = ((const uint32_t*)kilni_soft_slot(warp, instr->a))[first];
  uint32_t expected = 0;
  if (instr->b != KILNI_SOFT_NONE) {
    expected = ((const uint32_t*)kilni_soft_slot(warp, instr->b))[first];
    if (expected == 0 || expected % KILNI_SOFT_LANES) id = KILNI_SOFT_BARRIERS;
  }
  if (id >= KILNI_SOFT_BARRIERS) {
    return kilni_soft_fault_instr(run, instr, KILN_FAULT_CAUSE_BARRIER_NUMBER,
                                  first);
  }
  kilni_soft_barrier_t* barrier = &run->block->barriers[id];
  barrier->expected = expected;
  barrier->arrived += kilni_soft_popcount(warp->mask);
  if (warp->mask & 1u) {
    barrier->padding += KILNI_SOFT_LANES - kilni_soft_popcount(run->started);
  }
  if (instr->aux >= KILNI_SOFT_BARRIER_AND) {
    barrier->lanes += kilni_soft_popcount(warp->mask);
    barrier->votes +=
        kilni_soft_popcount(kilni_soft_pred(warp, instr->c) & warp->mask);
  }
  kilni_soft_group_t* g = &run->groups[run->current];
  if (instr->aux == KILNI_SOFT_BARRIER_ARRIVE) {
    if (barrier_complete(run->block, barrier)) barrier_release(run->block, id);
    return instr + 1;
  }
  if (barrier_complete(run->block, barrier)) {
    g->pc = instr;
    write_result(g, barrier);
    barrier_release(run->block, id);
    return kilni_soft_park(run, instr + 1, KILNI_SOFT_READY, 0);
  }
  return kilni_soft_park(run, instr, KILNI_SOFT_AT_BARRIER, id);
}

// The barrier of a cluster, which is one block: a thread that arrives goes on,
// one that waits does so until all have arrived. `aux`: 1 to wait.
const kilni_soft_instr_t* kilni_soft_cluster_barrier(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr) {
  kilni_soft_barrier_t* barrier =
      &run->block->barriers[KILNI_SOFT_CLUSTER_BARRIER];
  uint32_t mask = run->warp.mask;
  if (instr->aux) {
    if (!(run->arrived & mask)) return instr + 1;
    return kilni_soft_park(run, instr, KILNI_SOFT_AT_BARRIER,
                           KILNI_SOFT_CLUSTER_BARRIER);
  }
  barrier->arrived += kilni_soft_popcount(mask & ~run->arrived);
  run->arrived |= mask;
  if (barrier_complete(run->block, barrier)) {
    barrier_release(run->block, KILNI_SOFT_CLUSTER_BARRIER);
  }
  return instr + 1;
}

static void warp_done(kilni_soft_block_t* block, kilni_soft_run_t* run) {
  block->done++;
  run->worker->executed += run->warp.executed;
  run->warp.executed = 0;
  free_local(run);
}

static bool coprime(uint32_t a, uint32_t b) {
  while (b) {
    uint32_t rest = a % b;
    a = b;
    b = rest;
  }
  return a == 1;
}

bool kilni_soft_block_round(kilni_soft_block_t* block, bool* out_spinning) {
  kilni_soft_worker_t* worker = block->warps[0].worker;
  uint32_t start = 0;
  uint32_t step = 1;
  if (worker->random) {
    start = kilni_soft_random(worker) % block->warp_count;
    step = kilni_soft_random(worker) % block->warp_count;
    while (!coprime(step, block->warp_count)) step++;
  }
  bool ran = false;
  bool spinning = true;
  if (block->waits) kilni_soft_block_release(block);
  for (uint32_t i = 0; i < block->warp_count; i++) {
    uint32_t w = (start + i * step) % block->warp_count;
    kilni_soft_run_t* run = &block->warps[w];
    if (run->outcome != KILNI_SOFT_YIELDED) continue;
    if (kilni_soft_is_stopped(worker->grid, block)) return false;
    ran = true;
    kilni_soft_run_warp(run);
    if (run->outcome == KILNI_SOFT_FAULTED) return false;
    if (run->outcome == KILNI_SOFT_DONE) warp_done(block, run);
    if (run->outcome != KILNI_SOFT_YIELDED || !run->spun) spinning = false;
  }
  if (block->done == block->warp_count) return false;
  if (!ran && block->waits) {
    *out_spinning = true;
    return true;
  }
  if (!ran) {
    kilni_soft_fault_deadlock(block);
    return false;
  }
  *out_spinning = spinning || ++block->rounds % 64 == 0;
  return true;
}
