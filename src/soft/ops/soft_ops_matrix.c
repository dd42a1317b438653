// SPDX-License-Identifier: Apache-2.0
//
// soft: matrices that are distributed over a warp: lane by lane in
// soft_matrix.c. Compiled once for each lane set.
#include "soft/lanes/soft_lanes.h"
#include "soft/engine/soft_warp.h"

KILNI_SOFT_HANDLER(mma) {
  return kilni_soft_mma(kilni_soft_run(warp), instr);
}

KILNI_SOFT_HANDLER(wmma_load) {
  return kilni_soft_wmma_load(kilni_soft_run(warp), instr);
}

KILNI_SOFT_HANDLER(wmma_store) {
  return kilni_soft_wmma_store(kilni_soft_run(warp), instr);
}

KILNI_SOFT_HANDLER(ldmatrix) {
  return kilni_soft_ldmatrix(kilni_soft_run(warp), instr);
}

KILNI_SOFT_HANDLER(stmatrix) {
  return kilni_soft_stmatrix(kilni_soft_run(warp), instr);
}

KILNI_SOFT_HANDLER(movmatrix) {
  return kilni_soft_movmatrix(kilni_soft_run(warp), instr);
}
