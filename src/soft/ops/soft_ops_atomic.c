// SPDX-License-Identifier: Apache-2.0
//
// soft: atomics, ordered and volatile accesses: lane by lane in soft_atomic.c.
// Compiled once for each lane set.
#include "soft/lanes/soft_lanes.h"
#include "soft/engine/soft_warp.h"

KILNI_SOFT_HANDLER(ld_sync) {
  return kilni_soft_load_sync(kilni_soft_run(warp), instr);
}

KILNI_SOFT_HANDLER(st_sync) {
  return kilni_soft_store_sync(kilni_soft_run(warp), instr);
}

KILNI_SOFT_HANDLER(atom) {
  return kilni_soft_atomic(kilni_soft_run(warp), instr);
}

KILNI_SOFT_HANDLER(atom_b128) {
  return kilni_soft_atomic_128(kilni_soft_run(warp), instr);
}
