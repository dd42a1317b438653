// SPDX-License-Identifier: Apache-2.0
//
// soft: kernels that begin before the preceding one on the stream has ended
// (programmatic stream serialization), under a seed.
//
// A held grid runs its blocks until they wait for the preceding kernel
// (griddepcontrol.wait), and is then put aside, a worker's blocks at a time;
// once it is released, any worker resumes them. A block lets the next kernel
// begin by griddepcontrol.launch_dependents, or by its end. The driver front
// knows which kernel precedes and when it ends.
#include "soft/engine/soft_state.h"

void kilni_soft_block_say(kilni_soft_block_t* block) {
  kilni_soft_grid_t* grid = block->warps[0].grid;
  if (!grid->launch.released || block->said) return;
  block->said = 1;
  if (atomic_fetch_add(&grid->said, 1) + 1 == grid->block_count) {
    grid->launch.released(grid, grid->launch.ahead_user);
  }
}

void kilni_soft_block_release(kilni_soft_block_t* block) {
  if (atomic_load(&block->warps[0].grid->held)) return;
  block->waits = 0;
  for (uint32_t w = 0; w < block->warp_count; w++) {
    kilni_soft_run_t* run = &block->warps[w];
    for (uint32_t i = 0; i < run->group_count; i++) {
      kilni_soft_group_t* g = &run->groups[i];
      if (g->state != KILNI_SOFT_AHEAD) continue;
      g->state = KILNI_SOFT_READY;
      g->pc++;
      if (run->outcome == KILNI_SOFT_BLOCKED) {
        run->outcome = KILNI_SOFT_YIELDED;
      }
    }
  }
}

const kilni_soft_instr_t* kilni_soft_wait_ahead(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr) {
  if (!atomic_load(&run->grid->held)) return instr + 1;
  run->block->waits = 1;
  return kilni_soft_park(run, instr, KILNI_SOFT_AHEAD, 0);
}

const kilni_soft_instr_t* kilni_soft_let_follow(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr) {
  kilni_soft_block_say(run->block);
  // Others may come to run before the rest of this block does.
  if (run->worker->random && atomic_load(&run->grid->followed) &&
      (kilni_soft_random(run->worker) & 1u)) {
    return kilni_soft_expire(run, instr + 1);
  }
  return instr + 1;
}

// ---- Workers that are put aside ----

void kilni_soft_put_aside(kilni_soft_worker_t* worker) {
  kilni_soft_grid_t* grid = worker->grid;
  kilni_soft_worker_t* first = atomic_load(&grid->aside);
  do {
    worker->next_put_aside = first;
  } while (!atomic_compare_exchange_weak(&grid->aside, &first, worker));
}

// All are taken and the others put back, so that none is met while another
// takes it.
kilni_soft_worker_t* kilni_soft_take_aside(kilni_soft_grid_t* grid) {
  kilni_soft_worker_t* worker = atomic_exchange(&grid->aside, NULL);
  if (!worker) return NULL;
  kilni_soft_worker_t* other = worker->next_put_aside;
  while (other) {
    kilni_soft_worker_t* next = other->next_put_aside;
    kilni_soft_put_aside(other);
    other = next;
  }
  return worker;
}

void kilni_soft_grid_let_go(kilni_soft_grid_t* grid) {
  atomic_store(&grid->held, 0);
}

void kilni_soft_grid_follow(kilni_soft_grid_t* grid) {
  atomic_store(&grid->followed, grid->launch.pause != NULL);
}

bool kilni_soft_grid_is_aside(kilni_soft_grid_t* grid) {
  return atomic_load(&grid->aside) != NULL;
}
