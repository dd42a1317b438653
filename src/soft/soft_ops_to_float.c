// SPDX-License-Identifier: Apache-2.0
//
// soft: conversions from integers to floats. Compiled once for each lane set.
//
// Compilers make unsigned conversions of two halves, whose sum of nothing is
// -0 when rounding down: zero is set apart.
#include "soft/soft_lanes.h"

#define EXACT(id, TD, TA, T) KILNI_LANES_UNARY(id, TD, TA, (TD)(T)a)

EXACT(cvt_f32_u8, float, uint32_t, uint8_t)
EXACT(cvt_f32_s8, float, uint32_t, int8_t)
EXACT(cvt_f32_u16, float, uint32_t, uint16_t)
EXACT(cvt_f32_s16, float, uint32_t, int16_t)
EXACT(cvt_f64_u8, double, uint32_t, uint8_t)
EXACT(cvt_f64_s8, double, uint32_t, int8_t)
EXACT(cvt_f64_u16, double, uint32_t, uint16_t)
EXACT(cvt_f64_s16, double, uint32_t, int16_t)
EXACT(cvt_f64_u32, double, uint32_t, uint32_t)
EXACT(cvt_f64_s32, double, uint32_t, int32_t)

#define ROUNDED(r, mode, TD, d, TA, s)                         \
  KILNI_LANES_UNARY_ROUNDED(cvt_##r##_##d##_##s, mode, TD, TA, \
                            a == 0 ? (TD)0 : (TD)a)
#define ROUNDINGS(TD, d, TA, s)             \
  ROUNDED(rn, KILNI_LANES_RN, TD, d, TA, s) \
  ROUNDED(rz, KILNI_LANES_RZ, TD, d, TA, s) \
  ROUNDED(rm, KILNI_LANES_RM, TD, d, TA, s) \
  ROUNDED(rp, KILNI_LANES_RP, TD, d, TA, s)

ROUNDINGS(float, f32, uint32_t, u32)
ROUNDINGS(float, f32, int32_t, s32)
ROUNDINGS(float, f32, uint64_t, u64)
ROUNDINGS(float, f32, int64_t, s64)
ROUNDINGS(double, f64, uint64_t, u64)
ROUNDINGS(double, f64, int64_t, s64)
