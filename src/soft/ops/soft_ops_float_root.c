// SPDX-License-Identifier: Apache-2.0
//
// soft: f32 division, reciprocal and square root, rounded as IEEE 754
// specifies. Compiled once for each lane set.
#include "soft/lanes/soft_lanes_float.h"

#define FLUSH_OUT(x) flush32(canonical32(x))
#define DIV_FLUSHED(name, mode)                                                \
  KILNI_SOFT_HANDLER(name) {                                                   \
    const float* pa = KILNI_LANES_AT(float, instr->a);                         \
    const float* pb = KILNI_LANES_AT(float, instr->b);                         \
    KILNI_LANES_FLUSHED_BODY(mode, float a = flush32(pa[i]);                   \
                             float b = flush32(pb[i]), a / b, a * 0x1p64f / b, \
                             FLUSH_OUT)                                        \
  }
#define RCP_FLUSHED(name, mode)                                        \
  KILNI_SOFT_HANDLER(name) {                                           \
    const float* pa = KILNI_LANES_AT(float, instr->a);                 \
    KILNI_LANES_FLUSHED_BODY(mode, float a = flush32(pa[i]), 1.0f / a, \
                             0x1p64f / a, FLUSH_OUT)                   \
  }

#define ROOTS(r, mode)                                                \
  KILNI_LANES_BINARY_ROUNDED(div##r##_f32, mode, float, float, float, \
                             canonical32(a / b))                      \
  DIV_FLUSHED(div##r##_ftz_f32, mode)                                 \
  KILNI_LANES_UNARY_ROUNDED(rcp##r##_f32, mode, float, float,         \
                            canonical32(1.0f / a))                    \
  RCP_FLUSHED(rcp##r##_ftz_f32, mode)                                 \
  KILNI_LANES_UNARY_ROUNDED(sqrt##r##_f32, mode, float, float,        \
                            canonical32(sqrtf(a)))                    \
  KILNI_LANES_UNARY_ROUNDED(sqrt##r##_ftz_f32, mode, float, float,    \
                            canonical32(sqrtf(flush32(a))))

ROOTS(, KILNI_LANES_RN)
ROOTS(_rz, KILNI_LANES_RZ)
ROOTS(_rm, KILNI_LANES_RM)
ROOTS(_rp, KILNI_LANES_RP)
