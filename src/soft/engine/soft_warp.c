// SPDX-License-Identifier: Apache-2.0
//
// soft: the schedule of a warp: which group of lanes runs next, which groups
// reconverge, which wait for which.
//
// The deepest call first, then the smallest address; groups that come to the
// same address of the same frame are one again. A group that has had its turn
// without an end makes space for the one that has waited longest, so that a
// lane that spins cannot starve the lane that it waits for.
#include "soft/engine/soft_warp.h"

#include "soft/engine/soft_state.h"

enum { SHORT_TURN = 64 };  // backward branches, at most

void kilni_soft_flush(kilni_soft_run_t* run) {
  run->warp.executed += run->steps * kilni_soft_popcount(run->warp.mask);
  run->steps = 0;
}

static void group_remove(kilni_soft_run_t* run, uint32_t index) {
  uint32_t last = --run->group_count;
  if (index == last) return;
  run->groups[index] = run->groups[last];
  if (run->current == last) run->current = index;
}

void kilni_soft_set_limit(kilni_soft_run_t* run) {
  const kilni_soft_group_t* me = &run->groups[run->current];
  uintptr_t limit = UINTPTR_MAX;
  for (uint32_t i = 0; i < run->group_count; i++) {
    const kilni_soft_group_t* g = &run->groups[i];
    if (i == run->current || g->state != KILNI_SOFT_READY) continue;
    if (g->frame != me->frame || (uintptr_t)g->pc <= (uintptr_t)me->pc) {
      continue;
    }
    if ((uintptr_t)g->pc < limit) limit = (uintptr_t)g->pc;
  }
  run->limit = (const kilni_soft_instr_t*)limit;
}

// Joins to group `index` those that are ready at the same place.
static uint32_t absorb(kilni_soft_run_t* run, uint32_t index) {
  for (uint32_t i = 0; i < run->group_count;) {
    kilni_soft_group_t* g = &run->groups[i];
    kilni_soft_group_t* into = &run->groups[index];
    if (i == index || g->state != KILNI_SOFT_READY || g->pc != into->pc ||
        g->frame != into->frame) {
      i++;
      continue;
    }
    into->mask |= g->mask;
    uint32_t last = run->group_count - 1;
    group_remove(run, i);
    if (index == last) index = i;
  }
  return index;
}

static const kilni_soft_instr_t* warp_enter(kilni_soft_run_t* run,
                                            uint32_t index) {
  index = absorb(run, index);
  const kilni_soft_group_t* g = &run->groups[index];
  const kilni_soft_frame_t* frame = g->frame;
  run->current = index;
  run->frame = g->frame;
  run->warp.area[0] = frame->slots;
  run->warp.area[1] = frame->constants;
  run->warp.pred = frame->pred;
  run->warp.mask = g->mask;
  run->local_top = frame->local_base + frame->function->local_bytes;
  kilni_soft_set_limit(run);
  return g->pc;
}

static bool runs_before(const kilni_soft_group_t* a,
                        const kilni_soft_group_t* b, bool rotate) {
  if (rotate) return a->stamp < b->stamp;
  if (a->frame->depth != b->frame->depth) {
    return a->frame->depth > b->frame->depth;
  }
  return (uintptr_t)a->pc < (uintptr_t)b->pc;
}

// A group that can run, any of them.
static uint32_t any_ready(kilni_soft_run_t* run) {
  uint32_t start = kilni_soft_random(run->worker) % run->group_count;
  for (uint32_t i = 0; i < run->group_count; i++) {
    uint32_t at = (start + i) % run->group_count;
    if (run->groups[at].state == KILNI_SOFT_READY) return at;
  }
  return KILNI_SOFT_NONE;
}

const kilni_soft_instr_t* kilni_soft_next(kilni_soft_run_t* run) {
  if (run->outcome == KILNI_SOFT_FAULTED) return NULL;
  uint32_t best = KILNI_SOFT_NONE;
  for (uint32_t i = 0; i < run->group_count; i++) {
    if (run->groups[i].state != KILNI_SOFT_READY) continue;
    if (best == KILNI_SOFT_NONE ||
        runs_before(&run->groups[i], &run->groups[best], run->rotate != 0)) {
      best = i;
    }
  }
  if (run->shuffled && run->group_count) best = any_ready(run);
  run->shuffled = 0;
  if (best == KILNI_SOFT_NONE) {
    run->outcome = run->group_count ? KILNI_SOFT_BLOCKED : KILNI_SOFT_DONE;
    return NULL;
  }
  run->rotate = 0;
  return warp_enter(run, best);
}

const kilni_soft_instr_t* kilni_soft_park(kilni_soft_run_t* run,
                                          const kilni_soft_instr_t* pc,
                                          kilni_soft_state_t state,
                                          uint32_t want) {
  kilni_soft_flush(run);
  kilni_soft_group_t* g = &run->groups[run->current];
  g->pc = pc;
  g->state = state;
  g->want = want;
  g->stamp = ++run->clock;
  run->current = KILNI_SOFT_NONE;
  if (state != KILNI_SOFT_READY) kilni_soft_settle(run);
  return kilni_soft_next(run);
}

const kilni_soft_instr_t* kilni_soft_jump(kilni_soft_run_t* run,
                                          const kilni_soft_instr_t* pc) {
  if (pc != run->limit) return kilni_soft_park(run, pc, KILNI_SOFT_READY, 0);
  kilni_soft_flush(run);
  run->groups[run->current].pc = pc;
  run->current = absorb(run, run->current);
  run->warp.mask = run->groups[run->current].mask;
  kilni_soft_set_limit(run);
  return pc;
}

const kilni_soft_instr_t* kilni_soft_end_lanes(kilni_soft_run_t* run) {
  uint32_t mask = run->warp.mask;
  kilni_soft_frame_t* frame = run->frame;
  kilni_soft_flush(run);
  group_remove(run, run->current);
  run->current = KILNI_SOFT_NONE;
  run->alive &= ~mask;
  run->block->alive -= kilni_soft_popcount(mask);
  while (frame) {
    kilni_soft_frame_t* caller = frame->caller;
    kilni_soft_frame_leave(run, frame, mask);
    frame = caller;
  }
  if (run->group_count) kilni_soft_settle(run);
  kilni_soft_block_settle(run->block);
  return kilni_soft_next(run);
}

// Joins to group `index`, which collects, those that wait at the same
// instruction, also in other activations of the same call.
static uint32_t warp_gather(kilni_soft_run_t* run, uint32_t index) {
  for (uint32_t i = 0; i < run->group_count;) {
    kilni_soft_group_t* g = &run->groups[i];
    kilni_soft_group_t* into = &run->groups[index];
    if (i == index || g->state != KILNI_SOFT_COLLECTING || g->pc != into->pc ||
        g->want != into->want ||
        !kilni_soft_frame_merge(run, into->frame, g->frame)) {
      i++;
      continue;
    }
    into->mask |= g->mask;
    uint32_t last = run->group_count - 1;
    group_remove(run, i);
    if (index == last) index = i;
    i = 0;
  }
  return index;
}

static void settle_meeting(kilni_soft_run_t* run, uint32_t want) {
  uint32_t there = 0;
  for (uint32_t i = 0; i < run->group_count; i++) {
    const kilni_soft_group_t* g = &run->groups[i];
    if (g->state == KILNI_SOFT_MEETING && g->want == want) there |= g->mask;
  }
  if (want & run->alive & ~there) return;
  for (uint32_t i = 0; i < run->group_count; i++) {
    kilni_soft_group_t* g = &run->groups[i];
    if (g->state != KILNI_SOFT_MEETING || g->want != want) continue;
    g->state = KILNI_SOFT_READY;
    g->pc++;
  }
}

// Lets the lanes that wait with group `index` go on if all are there.
static bool settle_collecting(kilni_soft_run_t* run, uint32_t index) {
  uint32_t at = warp_gather(run, index);
  kilni_soft_group_t* g = &run->groups[at];
  if (g->want & run->alive & ~g->mask) {
    return kilni_soft_collect_apart(run, at);
  }
  g->state = KILNI_SOFT_READY;
  return true;
}

void kilni_soft_settle(kilni_soft_run_t* run) {
  for (uint32_t i = 0; i < run->group_count;) {
    uint32_t state = run->groups[i].state;
    uint32_t count = run->group_count;
    bool moved = false;
    if (state == KILNI_SOFT_MEETING) {
      settle_meeting(run, run->groups[i].want);
    } else if (state == KILNI_SOFT_COLLECTING) {
      moved = settle_collecting(run, i);
    }
    // Groups that became one have left others in their places.
    i = moved || run->group_count != count ? 0 : i + 1;
  }
}

bool kilni_soft_collect(kilni_soft_run_t* run, const kilni_soft_instr_t* instr,
                        uint32_t want, const kilni_soft_instr_t** out_next) {
  if ((want & run->alive & ~run->warp.mask) == 0) return true;
  *out_next = kilni_soft_park(run, instr, KILNI_SOFT_COLLECTING, want);
  return false;
}

const kilni_soft_instr_t* kilni_soft_meet(kilni_soft_run_t* run,
                                          const kilni_soft_instr_t* instr,
                                          uint32_t want) {
  if ((want & run->alive & ~run->warp.mask) == 0) return instr + 1;
  return kilni_soft_park(run, instr, KILNI_SOFT_MEETING, want);
}

void kilni_soft_run_warp(kilni_soft_run_t* run) {
  run->outcome = KILNI_SOFT_RUNNING;
  run->warp.budget = KILNI_SOFT_QUANTUM;
  run->spun = 0;
  if (run->worker->random && kilni_soft_random(run->worker) & 1u) {
    // A short turn, and not of the group that would be next.
    run->warp.budget = 1 + kilni_soft_random(run->worker) % SHORT_TURN;
    run->shuffled = 1;
  }
  const kilni_soft_instr_t* instr = kilni_soft_next(run);
  if (run->worker->looked_at) {
    kilni_soft_run_profiled(run, instr);
    return;
  }
  while (instr) instr = instr->fn(&run->warp, instr);
}
