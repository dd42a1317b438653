// SPDX-License-Identifier: Apache-2.0
//
// soft: compares into predicates, alone and fused with the branch that
// follows. Compiled once for each lane set.
#include "soft/soft_lanes.h"

// `expr` says whether lane `i` compares, from the sources a and b.
#define COMPARE(id, T, expr)                                                \
  KILNI_LANES_INLINE uint32_t id##_lanes(const kilni_soft_warp_t* warp,     \
                                         const kilni_soft_instr_t* instr) { \
    const T* pa = KILNI_LANES_AT(T, instr->a);                              \
    const T* pb = KILNI_LANES_AT(T, instr->b);                              \
    int32_t t[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;                        \
    KILNI_LANES_EACH(i) {                                                   \
      T a = pa[i];                                                          \
      T b = pb[i];                                                          \
      t[i] = -(int32_t)(expr);                                              \
    }                                                                       \
    return kilni_lanes_mask(t);                                             \
  }                                                                         \
  KILNI_SOFT_HANDLER(id) {                                                  \
    kilni_soft_set_pred(warp, instr->d, kilni_soft_exec(warp, instr),       \
                        id##_lanes(warp, instr));                           \
    return instr + 1;                                                       \
  }

// The fused pair. The compare is unguarded; its branch reads the predicate
// through its own guard, negated or not.
#define COMPARE_BRANCH(id, T, expr)                                           \
  COMPARE(id, T, expr)                                                        \
  KILNI_SOFT_HANDLER(id##_branch) {                                           \
    kilni_soft_set_pred(warp, instr->d, warp->mask, id##_lanes(warp, instr)); \
    return kilni_soft_branch(warp, instr + 1,                                 \
                             kilni_soft_exec(warp, instr + 1));               \
  }

COMPARE_BRANCH(setp_eq_b32, uint32_t, a == b)
COMPARE_BRANCH(setp_ne_b32, uint32_t, a != b)
COMPARE_BRANCH(setp_lt_s32, int32_t, a < b)
COMPARE_BRANCH(setp_le_s32, int32_t, a <= b)
COMPARE_BRANCH(setp_gt_s32, int32_t, a > b)
COMPARE_BRANCH(setp_ge_s32, int32_t, a >= b)
COMPARE_BRANCH(setp_lt_u32, uint32_t, a < b)
COMPARE_BRANCH(setp_le_u32, uint32_t, a <= b)
COMPARE_BRANCH(setp_gt_u32, uint32_t, a > b)
COMPARE_BRANCH(setp_ge_u32, uint32_t, a >= b)
