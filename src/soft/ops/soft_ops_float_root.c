// SPDX-License-Identifier: Apache-2.0
//
// soft: f32 division, reciprocal and square root, rounded as IEEE 754 says.
// Compiled once for each lane set.
#include "soft/lanes/soft_lanes_float.h"

#define ROOTS(r, mode)                                                      \
  KILNI_LANES_BINARY_ROUNDED(div##r##_f32, mode, float, float, float,       \
                             canonical32(a / b))                            \
  KILNI_LANES_BINARY_ROUNDED(div##r##_ftz_f32, mode, float, float, float,   \
                             flush32(canonical32(flush32(a) / flush32(b)))) \
  KILNI_LANES_UNARY_ROUNDED(rcp##r##_f32, mode, float, float,               \
                            canonical32(1.0f / a))                          \
  KILNI_LANES_UNARY_ROUNDED(rcp##r##_ftz_f32, mode, float, float,           \
                            flush32(canonical32(1.0f / flush32(a))))        \
  KILNI_LANES_UNARY_ROUNDED(sqrt##r##_f32, mode, float, float,              \
                            canonical32(sqrtf(a)))                          \
  KILNI_LANES_UNARY_ROUNDED(sqrt##r##_ftz_f32, mode, float, float,          \
                            canonical32(sqrtf(flush32(a))))

ROOTS(, KILNI_LANES_RN)
ROOTS(_rz, KILNI_LANES_RZ)
ROOTS(_rm, KILNI_LANES_RM)
ROOTS(_rp, KILNI_LANES_RP)
