// SPDX-License-Identifier: Apache-2.0
//
// soft: conversions between floats. Compiled once for each lane set.
#include "soft/lanes/soft_lanes_float.h"

// f32 to f32 and f64 to f64: rounding to an integral number, or none. Without
// rounding, flushing and saturation it is a move, and a NaN keeps its bits.
KILNI_LANES_UNARY(cvt_f32_f32, uint32_t, uint32_t, a)
KILNI_LANES_UNARY(cvt_f64_f64, uint64_t, uint64_t, a)
#define SINGLE_ROUND(r, round) \
  KILNI_LANES_UNARY(cvt_##r##f32_f32, float, float, canonical32(round(a)))
#define SINGLE(r, round)                                                      \
  KILNI_LANES_UNARY(cvt_##r##sat_f32_f32, float, float, saturate32(round(a))) \
  KILNI_LANES_UNARY(cvt_##r##ftz_f32_f32, float, float,                       \
                    canonical32(round(flush32(a))))                           \
  KILNI_LANES_UNARY(cvt_##r##ftz_sat_f32_f32, float, float,                   \
                    saturate32(round(flush32(a))))
#define DOUBLE_ROUND(r, round) \
  KILNI_LANES_UNARY(cvt_##r##f64_f64, double, double, nan64_1(round(a), a))
#define DOUBLE(r, round)                                  \
  KILNI_LANES_UNARY(cvt_##r##sat_f64_f64, double, double, \
                    lanes_float_saturate64(round(a)))
#define SAME(x) (x)

SINGLE(, SAME)
SINGLE(rni_, rintf)
SINGLE(rzi_, truncf)
SINGLE(rmi_, floorf)
SINGLE(rpi_, ceilf)
DOUBLE(, SAME)
DOUBLE(rni_, rint)
DOUBLE(rzi_, trunc)
DOUBLE(rmi_, floor)
DOUBLE(rpi_, ceil)
SINGLE_ROUND(rni_, rintf)
SINGLE_ROUND(rzi_, truncf)
SINGLE_ROUND(rmi_, floorf)
SINGLE_ROUND(rpi_, ceilf)
DOUBLE_ROUND(rni_, rint)
DOUBLE_ROUND(rzi_, trunc)
DOUBLE_ROUND(rmi_, floor)
DOUBLE_ROUND(rpi_, ceil)

// f32 to f64 is exact; a NaN keeps its payload and becomes quiet.
KILNI_LANES_INLINE double ops_float_float_widen(float x) {
  double r = (double)x;
  uint32_t u = bits32(x);
  uint64_t nan = (uint64_t)(u & 0x80000000u) << 32 | 0x7ff8000000000000u |
                 (uint64_t)(u & 0x7fffffu) << 29;
  return x == x ? r : float64(nan);
}
KILNI_LANES_UNARY(cvt_f64_f32, double, float, ops_float_float_widen(a))
KILNI_LANES_UNARY(cvt_sat_f64_f32, double, float,
                  lanes_float_saturate64((double)a))
// With .ftz it is the canonical NaN of f32 that is widened.
KILNI_LANES_UNARY(cvt_ftz_f64_f32, double, float,
                  ops_float_float_widen(canonical32(flush32(a))))
KILNI_LANES_UNARY(cvt_ftz_sat_f64_f32, double, float,
                  lanes_float_saturate64((double)flush32(a)))

// A NaN keeps its sign and the upper bits of its payload, and becomes quiet.
KILNI_LANES_INLINE float ops_float_float_narrow(double x) {
  float r = (float)x;
  uint64_t u = bits64(x);
  uint32_t nan = (uint32_t)(u >> 32 & 0x80000000u) | 0x7fc00000u |
                 (uint32_t)(u >> 29 & 0x7fffffu);
  return x == x ? r : float32(nan);
}

#define NARROW(r, mode)                                                     \
  KILNI_LANES_UNARY_ROUNDED(cvt_##r##_f32_f64, mode, float, double,         \
                            ops_float_float_narrow(a))                      \
  KILNI_LANES_UNARY_ROUNDED(cvt_##r##_sat_f32_f64, mode, float, double,     \
                            saturate32((float)a))                           \
  KILNI_LANES_UNARY_ROUNDED(cvt_##r##_ftz_f32_f64, mode, float, double,     \
                            flush32(ops_float_float_narrow(a)))             \
  KILNI_LANES_UNARY_ROUNDED(cvt_##r##_ftz_sat_f32_f64, mode, float, double, \
                            flush32(saturate32((float)a)))
NARROW(rn, KILNI_LANES_RN)
NARROW(rz, KILNI_LANES_RZ)
NARROW(rm, KILNI_LANES_RM)
NARROW(rp, KILNI_LANES_RP)
