// SPDX-License-Identifier: Apache-2.0
//
// soft: branches: where lanes part, and the places where they meet again.
#include "soft/engine/soft_warp.h"

// Words of a branch: `d`, its target relative to itself; `aux`, the
// instructions of the block that it ends, each lane's.

// A group that is ready at `pc` of the running frame.
static void add_group(kilni_soft_run_t* run, const kilni_soft_instr_t* pc,
                      uint32_t mask) {
  for (uint32_t i = 0; i < run->group_count; i++) {
    kilni_soft_group_t* g = &run->groups[i];
    if (i != run->current && g->state == KILNI_SOFT_READY && g->pc == pc &&
        g->frame == run->frame) {
      g->mask |= mask;
      return;
    }
  }
  kilni_soft_group_t* g = &run->groups[run->group_count++];
  *g = (kilni_soft_group_t){.frame = run->frame,
                            .pc = pc,
                            .mask = mask,
                            .stamp = ++run->clock,
                            .state = KILNI_SOFT_READY};
}

const kilni_soft_instr_t* kilni_soft_expire(kilni_soft_run_t* run,
                                            const kilni_soft_instr_t* pc) {
  kilni_soft_flush(run);
  kilni_soft_group_t* g = &run->groups[run->current];
  g->pc = pc;
  g->stamp = ++run->clock;
  run->rotate = run->spun || run->clock % KILNI_SOFT_SPIN_QUANTUM == 0;
  run->current = KILNI_SOFT_NONE;
  run->outcome = KILNI_SOFT_YIELDED;
  return NULL;
}

// The whole group goes to `pc`, which is not simply the next thing to run.
static const kilni_soft_instr_t* branch_arrive(kilni_soft_run_t* run,
                                               const kilni_soft_instr_t* from,
                                               const kilni_soft_instr_t* pc) {
  if (pc <= from) {
    if (--run->warp.budget <= 0) return kilni_soft_expire(run, pc);
    return pc;
  }
  if ((uintptr_t)pc < (uintptr_t)run->limit) return pc;
  return kilni_soft_jump(run, pc);
}

static const kilni_soft_instr_t* after(const kilni_soft_instr_t* branch) {
  return branch[1].op == KILNI_SOFT_OP_join ? branch + 2 : branch + 1;
}

static __attribute__((noinline)) const kilni_soft_instr_t* diverge(
    kilni_soft_run_t* run, const kilni_soft_instr_t* branch,
    const kilni_soft_instr_t* target, uint32_t taken) {
  const kilni_soft_instr_t* fall = after(branch);
  uint32_t rest = run->warp.mask & ~taken;
  kilni_soft_flush(run);
  if (fall == target) return branch_arrive(run, branch, target);
  kilni_soft_group_t* g = &run->groups[run->current];
  bool down = target > branch;  // the taken lanes wait
  const kilni_soft_instr_t* low = down ? fall : target;
  g->mask = down ? rest : taken;
  g->pc = low;
  run->warp.mask = g->mask;
  add_group(run, down ? target : fall, down ? taken : rest);
  if (run->worker->random && kilni_soft_random(run->worker) & 1u) {
    run->shuffled = 1;  // which side goes first is open
    return kilni_soft_park(run, low, KILNI_SOFT_READY, 0);
  }
  kilni_soft_set_limit(run);
  return branch_arrive(run, branch, low);
}

const kilni_soft_instr_t* kilni_soft_branch(kilni_soft_warp_t* warp,
                                            const kilni_soft_instr_t* branch,
                                            uint32_t taken) {
  kilni_soft_run_t* run = kilni_soft_run(warp);
  const kilni_soft_instr_t* target = branch + (int32_t)branch->d;
  run->steps += branch->aux;
  if (taken == warp->mask) return branch_arrive(run, branch, target);
  if (taken == 0) return branch + 1;
  return diverge(run, branch, target, taken);
}

// Each lane of the group goes to its entry of `targets`.
const kilni_soft_instr_t* kilni_soft_scatter(
    kilni_soft_run_t* run, const kilni_soft_instr_t* branch,
    const kilni_soft_instr_t* const targets[KILNI_SOFT_LANES]) {
  uint32_t left = run->warp.mask;
  run->steps += branch->aux;
  const kilni_soft_instr_t* first = targets[__builtin_ctz(left)];
  uint32_t same = 0;
  for (uint32_t lane = 0; lane < KILNI_SOFT_LANES; lane++) {
    if ((left >> lane & 1u) && targets[lane] == first) same |= 1u << lane;
  }
  if (same == left) return branch_arrive(run, branch, first);
  kilni_soft_flush(run);
  run->groups[run->current].mask = same;
  run->warp.mask = same;
  for (uint32_t lane = 0; lane < KILNI_SOFT_LANES; lane++) {
    if ((left & ~same) >> lane & 1u) add_group(run, targets[lane], 1u << lane);
  }
  if (--run->warp.budget <= 0) return kilni_soft_expire(run, first);
  run->shuffled = run->worker->random != 0;
  return kilni_soft_park(run, first, KILNI_SOFT_READY, 0);
}
