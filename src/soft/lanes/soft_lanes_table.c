// SPDX-License-Identifier: Apache-2.0
//
// soft: the table of handlers of one lane set; compiled once for each.
#include "soft/lanes/soft_lanes.h"

#define KILNI_LANES_TEXT_OF(set) #set
#define KILNI_LANES_TEXT(set)    KILNI_LANES_TEXT_OF(set)
#define KILNI_LANES_SET_OF(set)  kilni_soft_lanes_##set
#define KILNI_LANES_SET(set)     KILNI_LANES_SET_OF(set)

const kilni_soft_lane_set_t KILNI_LANES_SET(KILNI_LANES) = {
    .name = KILNI_LANES_TEXT(KILNI_LANES),
    .fn =
        {
#define KILNI_SOFT_OP(id, family, signature, forms) \
  [KILNI_SOFT_OP_##id] = KILNI_LANES_NAME(id),
#include "soft/code/soft_ops_alu.inc"
#include "soft/code/soft_ops_core.inc"
#undef KILNI_SOFT_OP
        },
    .compare_branch =
        {
#define KILNI_SOFT_FUSED_SUM(id)
#define KILNI_SOFT_FUSED(id) \
  [KILNI_SOFT_OP_##id] = KILNI_LANES_NAME(id##_branch),
#include "soft/code/soft_ops_fused.inc"
#undef KILNI_SOFT_FUSED
#undef KILNI_SOFT_FUSED_SUM
        },
    .sum_branch =
        {
#define KILNI_SOFT_FUSED(id)
#define KILNI_SOFT_FUSED_SUM(id) \
  [KILNI_SOFT_OP_##id] = KILNI_LANES_NAME(id##_sum_branch),
#include "soft/code/soft_ops_fused.inc"
#undef KILNI_SOFT_FUSED
#undef KILNI_SOFT_FUSED_SUM
        },
    .combines = 1,
};
