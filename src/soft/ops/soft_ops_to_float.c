// SPDX-License-Identifier: Apache-2.0
//
// soft: conversions from integers to floats. Compiled once for each lane set.
//
// Compilers make wide conversions of two halves, whose sum of nothing is -0
// when rounding down. So zeros are set separately, after the results have been
// hidden from the compiler, which would otherwise drop that.
#include "soft/lanes/soft_lanes.h"

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

#define ROUNDED(r, mode, TD, to, TA, from)                            \
  KILNI_SOFT_HANDLER(cvt_##r##_##to##_##from) {                       \
    const TA* a = KILNI_LANES_AT(TA, instr->a);                       \
    TD x[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;                       \
    if ((mode) == KILNI_LANES_RN) {                                   \
      KILNI_LANES_EACH(i) {                                           \
        x[i] = (TD)a[i];                                              \
      }                                                               \
    } else {                                                          \
      unsigned old = kilni_soft_lanes_round_begin(mode);              \
      KILNI_LANES_EACH(i) {                                           \
        x[i] = (TD)a[i];                                              \
      }                                                               \
      kilni_soft_lanes_round_end(old, x);                             \
      KILNI_LANES_EACH(i) {                                           \
        x[i] = a[i] == 0 ? (TD)0 : x[i];                              \
      }                                                               \
    }                                                                 \
    kilni_soft_lanes_store(KILNI_LANES_AT(TD, instr->d), x,           \
                           kilni_soft_exec(warp, instr), sizeof(TD)); \
    return instr + 1;                                                 \
  }
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

// Saturated to [0, 1]: whether there is anything above zero.
#define SATURATED(from, TA, T)                                             \
  KILNI_LANES_UNARY(cvt_sat_f32_##from, float, TA, (T)a > 0 ? 1.0f : 0.0f) \
  KILNI_LANES_UNARY(cvt_sat_f64_##from, double, TA, (T)a > 0 ? 1.0 : 0.0)

SATURATED(u8, uint32_t, uint8_t)
SATURATED(s8, uint32_t, int8_t)
SATURATED(u16, uint32_t, uint16_t)
SATURATED(s16, uint32_t, int16_t)
SATURATED(u32, uint32_t, uint32_t)
SATURATED(s32, int32_t, int32_t)
SATURATED(u64, uint64_t, uint64_t)
SATURATED(s64, int64_t, int64_t)
