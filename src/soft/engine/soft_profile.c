// SPDX-License-Identifier: Apache-2.0
//
// soft: a warp run with counting: instructions by class, branches, accesses by
// their address pattern, barriers, the time of blocks.
//
// It is a loop of its own, so that the engine's has nothing to ask. It runs
// the plain handler of each instruction where the engine's runs fused ones,
// which compute the same. Instructions are counted where the engine counts
// them, at the end of a block, so the classes add up to its count.
#include "soft/engine/soft_profile.h"

#include <string.h>

#include "soft/engine/soft_address.h"
#include "soft/engine/soft_state.h"

enum { SECTOR_SHIFT = 5 };

static uint32_t profile_place_of(const kilni_soft_address_t* access,
                                 uint64_t address) {
  switch (access->space) {
    case KILNI_SOFT_SPACE_SHARED:
      return KILN_SOFT_PLACE_SHARED;
    case KILNI_SOFT_SPACE_LOCAL:
    case KILNI_SOFT_SPACE_PARAM:
      return KILN_SOFT_PLACE_LOCAL;
    case KILNI_SOFT_SPACE_GENERIC:
      break;
    default:
      return KILN_SOFT_PLACE_GLOBAL;
  }
  if (address - KILNI_SOFT_SHARED_BASE < KILNI_SOFT_SHARED_BYTES) {
    return KILN_SOFT_PLACE_SHARED;
  }
  bool own = address - KILNI_SOFT_LOCAL_BASE < KILNI_SOFT_LOCAL_BYTES ||
             address - KILNI_SOFT_PARAM_BASE < KILNI_SOFT_PARAM_BYTES;
  return own ? KILN_SOFT_PLACE_LOCAL : KILN_SOFT_PLACE_GLOBAL;
}

// By the distance between the first two lanes that execute. One lane alone is
// uniform.
static uint32_t profile_shape_of(const kilni_soft_address_t* access,
                                 uint32_t exec) {
  uint32_t first = (uint32_t)__builtin_ctz(exec);
  uint32_t rest = exec & (exec - 1);
  if (!rest) return KILN_SOFT_SHAPE_UNIFORM;
  uint32_t second = (uint32_t)__builtin_ctz(rest);
  int64_t apart = (int64_t)(access->lane[second] - access->lane[first]);
  int64_t step = apart / (int64_t)(second - first);
  for (uint32_t m = rest; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    uint64_t d = access->lane[lane] - access->lane[first];
    if (d != (uint64_t)step * (lane - first)) return KILN_SOFT_SHAPE_SCATTERED;
  }
  if (step == 0) return KILN_SOFT_SHAPE_UNIFORM;
  return step == (int64_t)access->bytes ? KILN_SOFT_SHAPE_CONSECUTIVE
                                        : KILN_SOFT_SHAPE_STRIDED;
}

// Aligned chunks that the lanes touch; a lane's bytes are in one of them.
static uint32_t sectors_of(const kilni_soft_address_t* access, uint32_t exec) {
  uint64_t seen[KILNI_SOFT_LANES];
  uint32_t count = 0;
  for (uint32_t m = exec; m; m &= m - 1) {
    uint64_t sector = access->lane[__builtin_ctz(m)] >> SECTOR_SHIFT;
    uint32_t i = count;
    while (i > 0 && seen[i - 1] != sector) i--;
    if (i == 0) seen[count++] = sector;
  }
  return count;
}

static void count_access(kilni_soft_profile_t* profile,
                         const kilni_soft_warp_t* warp,
                         const kilni_soft_instr_t* instr) {
  kilni_soft_address_t access;
  uint32_t exec = kilni_soft_exec(warp, instr);
  if (!exec || !kilni_soft_address_find(warp, instr, exec, &access)) return;
  uint32_t place = profile_place_of(&access, access.lane[__builtin_ctz(exec)]);
  kiln_soft_traffic_t* traffic =
      &profile->sums.traffic[place][profile_shape_of(&access, exec)];
  traffic->accesses++;
  traffic->sectors += place == KILN_SOFT_PLACE_LOCAL
                          ? kilni_soft_popcount(exec)
                          : sectors_of(&access, exec);
}

// The lanes for which `instr` counts. A call by pointer is run for one function
// after another.
static uint32_t counting_lanes(const kilni_soft_run_t* run,
                               const kilni_soft_instr_t* instr) {
  const kilni_soft_warp_t* warp = &run->warp;
  if (instr->op == KILNI_SOFT_OP_count) return kilni_soft_exec(warp, instr);
  if (instr->op != KILNI_SOFT_OP_call_indirect) return warp->mask;
  const uint64_t* pointers = kilni_soft_slot(warp, instr->a);
  uint64_t first = pointers[__builtin_ctz(warp->mask)];
  uint32_t same = 0;
  for (uint32_t m = warp->mask; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    if (pointers[lane] == first) same |= 1u << lane;
  }
  return same;
}

// What the instruction counts of the block that it ends.
static void count_block(kilni_soft_profile_t* profile,
                        const kilni_soft_run_t* run,
                        const kilni_soft_instr_t* instr) {
  const kilni_soft_function_t* function = run->frame->function;
  size_t at = (size_t)(instr - function->code);
  uint32_t first = at ? function->tally_ends[at - 1] : 0;
  if (first == function->tally_ends[at]) return;
  uint32_t lanes = kilni_soft_popcount(counting_lanes(run, instr));
  for (uint32_t i = first; i < function->tally_ends[at]; i++) {
    const kilni_soft_tally_t* tally = &function->tallies[i];
    profile->sums.instructions[tally->class_] += (uint64_t)tally->count * lanes;
    if (lanes) profile->sums.warp_instructions += tally->count;
  }
}

static void count_branch(kilni_soft_profile_t* profile,
                         const kilni_soft_warp_t* warp,
                         const kilni_soft_instr_t* instr) {
  uint32_t taken = kilni_soft_exec(warp, instr);
  profile->sums.branches++;
  if (taken && taken != warp->mask) profile->sums.diverged++;
}

static void count_table(kilni_soft_profile_t* profile,
                        const kilni_soft_warp_t* warp,
                        const kilni_soft_instr_t* instr) {
  profile->sums.branches++;
  if (kilni_soft_same_lanes(warp, instr->a) != warp->mask) {
    profile->sums.diverged++;
  }
}

static void count_one(kilni_soft_profile_t* profile,
                      const kilni_soft_run_t* run,
                      const kilni_soft_instr_t* instr) {
  count_block(profile, run, instr);
  switch (instr->op) {
    case KILNI_SOFT_OP_bra:
      count_branch(profile, &run->warp, instr);
      return;
    case KILNI_SOFT_OP_brx:
      count_table(profile, &run->warp, instr);
      return;
    case KILNI_SOFT_OP_barrier:
    case KILNI_SOFT_OP_cluster_barrier:
      profile->sums.barriers++;
      return;
    default:
      count_access(profile, &run->warp, instr);
      return;
  }
}

void kilni_soft_run_profiled(kilni_soft_run_t* run,
                             const kilni_soft_instr_t* instr) {
  const kilni_soft_lane_set_t* lanes = run->grid->code->lanes;
  kilni_soft_profile_t* profile = run->worker->profile;
  bool watched = run->grid->watched;
  while (instr) {
    if (profile) count_one(profile, run, instr);
    if (watched && !kilni_soft_watch(run, instr)) return;
    instr = lanes->fn[instr->op](&run->warp, instr);
  }
}

void kilni_soft_profile_merge(kilni_soft_worker_t* worker) {
  kilni_soft_grid_t* grid = worker->grid;
  while (
      atomic_exchange_explicit(&grid->profile_lock, 1, memory_order_acquire)) {
  }
  kilni_soft_profile_add(grid->profile, worker->profile);
  atomic_store_explicit(&grid->profile_lock, 0, memory_order_release);
}
