// SPDX-License-Identifier: Apache-2.0
//
// soft: asynchronous copies and mbarriers: lane by lane in soft_async.c.
// Compiled once for each lane set.
#include "soft/lanes/soft_lanes.h"
#include "soft/engine/soft_warp.h"

KILNI_SOFT_HANDLER(cp_async) {
  return kilni_soft_copy_async(kilni_soft_run(warp), instr);
}

KILNI_SOFT_HANDLER(mbarrier) {
  return kilni_soft_mbarrier(kilni_soft_run(warp), instr);
}
