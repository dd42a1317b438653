// SPDX-License-Identifier: Apache-2.0
//
// soft: compares into predicates, alone and fused with the branch that
// follows. Compiled once for each lane set.
#include "soft/lanes/soft_lanes_compare.h"

#define COMPARE(name)                                                 \
  KILNI_SOFT_HANDLER(setp_##name) {                                   \
    kilni_soft_set_pred(warp, instr->d, kilni_soft_exec(warp, instr), \
                        name##_lanes(warp, instr));                   \
    return instr + 1;                                                 \
  }
KILNI_LANES_WIDE_COMPARES(COMPARE)
KILNI_LANES_ORDERED_COMPARES(COMPARE, _s16)

// The fused pair. The compare is unguarded; its branch reads the predicate
// through its own guard, negated or not.
#define COMPARE_BRANCH(name)                                    \
  KILNI_SOFT_HANDLER(setp_##name##_branch) {                    \
    kilni_soft_set_pred(warp, instr->d, warp->mask,             \
                        name##_lanes(warp, instr));             \
    return kilni_soft_branch(warp, instr + 1,                   \
                             kilni_soft_exec(warp, instr + 1)); \
  }
KILNI_LANES_WIDE_COMPARES(COMPARE_BRANCH)
