// SPDX-License-Identifier: Apache-2.0
//
// soft: integer arithmetic. Compiled once for each lane set.
#include "soft/soft_lanes.h"

KILNI_LANES_BINARY(add_b32, uint32_t, uint32_t, uint32_t, a + b)
KILNI_LANES_BINARY(sub_b32, uint32_t, uint32_t, uint32_t, a - b)
KILNI_LANES_BINARY(mul_lo_b32, uint32_t, uint32_t, uint32_t, a* b)
KILNI_LANES_TERNARY(mad_lo_b32, uint32_t, uint32_t, uint32_t, uint32_t,
                    a* b + c)
