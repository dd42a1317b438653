// SPDX-License-Identifier: Apache-2.0
//
// soft: f32 arithmetic. Compiled once for each lane set.
//
// Every NaN that an instruction makes is 0x7fffffff.
#include <math.h>

#include "soft/soft_lanes.h"

KILNI_LANES_INLINE float canonical(float x) {
  union {
    uint32_t bits;
    float value;
  } nan = {0x7fffffffu};
  return x == x ? x : nan.value;
}

KILNI_LANES_BINARY(add_f32, float, float, float, canonical(a + b))
KILNI_LANES_BINARY(sub_f32, float, float, float, canonical(a - b))
KILNI_LANES_BINARY(mul_f32, float, float, float, canonical(a* b))
KILNI_LANES_TERNARY(fma_f32, float, float, float, float,
                    canonical(fmaf(a, b, c)))
