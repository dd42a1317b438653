// SPDX-License-Identifier: Apache-2.0
//
// soft: conversions from floats to integers. Compiled once for each lane set.
//
// Out of range goes to the nearest number of the destination. A NaN becomes 0
// when the source is f32 and the destination has at most 32 bits, else a one
// in the destination's top bit.
#include "soft/lanes/soft_lanes_float.h"

// `low` is the smallest number of TI, `end` the first float beyond the largest.
// A lane that is out of range converts zero and is replaced.
#define CONVERT(name, TF, TI, low, end, least, greatest, nan) \
  KILNI_LANES_INLINE TI name(TF x) {                          \
    int above = x >= (end);                                   \
    int below = x < (low);                                    \
    int number = x == x;                                      \
    TI r = (TI)((number & !above & !below) ? x : (TF)0);      \
    r = above ? (greatest) : r;                               \
    r = below ? (least) : r;                                  \
    return number ? r : (nan);                                \
  }
CONVERT(f32_s32, float, int32_t, -0x1p31f, 0x1p31f, INT32_MIN, INT32_MAX, 0)
CONVERT(f32_u32, float, uint32_t, 0.0f, 0x1p32f, 0, UINT32_MAX, 0)
CONVERT(f32_s64, float, int64_t, -0x1p63f, 0x1p63f, INT64_MIN, INT64_MAX,
        INT64_MIN)
CONVERT(f32_u64, float, uint64_t, 0.0f, 0x1p64f, 0, UINT64_MAX,
        0x8000000000000000u)
CONVERT(f32_s16, float, int32_t, -0x1p15f, 0x1p15f, INT16_MIN, INT16_MAX, 0)
CONVERT(f32_u16, float, int32_t, 0.0f, 0x1p16f, 0, UINT16_MAX, 0)
CONVERT(f32_s8, float, int32_t, -0x1p7f, 0x1p7f, INT8_MIN, INT8_MAX, 0)
CONVERT(f32_u8, float, int32_t, 0.0f, 0x1p8f, 0, UINT8_MAX, 0)
CONVERT(f64_s32, double, int32_t, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX,
        INT32_MIN)
CONVERT(f64_u32, double, uint32_t, 0.0, 0x1p32, 0, UINT32_MAX, 0x80000000u)
CONVERT(f64_s64, double, int64_t, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX,
        INT64_MIN)
CONVERT(f64_u64, double, uint64_t, 0.0, 0x1p64, 0, UINT64_MAX,
        0x8000000000000000u)
CONVERT(f64_s16, double, int32_t, -0x1p15, 0x1p15, INT16_MIN, INT16_MAX,
        INT16_MIN)
CONVERT(f64_u16, double, int32_t, 0.0, 0x1p16, 0, UINT16_MAX, 0x8000)
CONVERT(f64_s8, double, int32_t, -0x1p7, 0x1p7, INT8_MIN, INT8_MAX, INT8_MIN)
CONVERT(f64_u8, double, int32_t, 0.0, 0x1p8, 0, UINT8_MAX, 0x80)

#define LOW16(x) ((uint32_t)(x) & 0xffffu)

// `r` names the rounding (and flushing), `round` does it to the source a.
#define ALL(r, TF, f, round)                                                   \
  KILNI_LANES_UNARY(cvt_##r##_u8_##f, uint32_t, TF, (uint32_t)f##_u8(round))   \
  KILNI_LANES_UNARY(cvt_##r##_s8_##f, uint32_t, TF, LOW16(f##_s8(round)))      \
  KILNI_LANES_UNARY(cvt_##r##_u16_##f, uint32_t, TF, (uint32_t)f##_u16(round)) \
  KILNI_LANES_UNARY(cvt_##r##_s16_##f, uint32_t, TF, LOW16(f##_s16(round)))    \
  KILNI_LANES_UNARY(cvt_##r##_u32_##f, uint32_t, TF, f##_u32(round))           \
  KILNI_LANES_UNARY(cvt_##r##_s32_##f, int32_t, TF, f##_s32(round))            \
  KILNI_LANES_UNARY(cvt_##r##_u64_##f, uint64_t, TF, f##_u64(round))           \
  KILNI_LANES_UNARY(cvt_##r##_s64_##f, int64_t, TF, f##_s64(round))

ALL(rni, float, f32, rintf(a))
ALL(rzi, float, f32, truncf(a))
ALL(rmi, float, f32, floorf(a))
ALL(rpi, float, f32, ceilf(a))
ALL(rni_ftz, float, f32, rintf(flush32(a)))
ALL(rzi_ftz, float, f32, truncf(flush32(a)))
ALL(rmi_ftz, float, f32, floorf(flush32(a)))
ALL(rpi_ftz, float, f32, ceilf(flush32(a)))
ALL(rni, double, f64, rint(a))
ALL(rzi, double, f64, trunc(a))
ALL(rmi, double, f64, floor(a))
ALL(rpi, double, f64, ceil(a))
