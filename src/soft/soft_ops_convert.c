// SPDX-License-Identifier: Apache-2.0
//
// soft: conversions between integers. Compiled once for each lane set.
//
// Results of 8 and 16 bits are written as 16-bit registers: signed bytes are
// sign-extended to 16 bits, the upper half of the lane is zero.
#include "soft/soft_lanes.h"

#define TO(id, TD, TA, expr) KILNI_LANES_UNARY(cvt_##id, TD, TA, expr)

TO(b8_b32, uint32_t, uint32_t, (uint8_t)a)
TO(b8_b64, uint32_t, uint64_t, (uint8_t)a)
TO(s8_b32, uint32_t, uint32_t, (uint16_t)(int8_t)a)
TO(s8_b64, uint32_t, uint64_t, (uint16_t)(int8_t)a)
TO(b16_u8, uint32_t, uint32_t, (uint8_t)a)
TO(b16_s8, uint32_t, uint32_t, (uint16_t)(int8_t)a)
TO(b16_b32, uint32_t, uint32_t, (uint16_t)a)
TO(b16_b64, uint32_t, uint64_t, (uint16_t)a)
TO(b32_u8, uint32_t, uint32_t, (uint8_t)a)
TO(b32_s8, uint32_t, uint32_t, (uint32_t)(int8_t)a)
TO(b32_u16, uint32_t, uint32_t, (uint16_t)a)
TO(b32_s16, uint32_t, uint32_t, (uint32_t)(int16_t)a)
TO(b32_b32, uint32_t, uint32_t, a)
TO(b32_b64, uint32_t, uint64_t, (uint32_t)a)
TO(b64_u8, uint64_t, uint32_t, (uint8_t)a)
TO(b64_s8, uint64_t, uint32_t, (uint64_t)(int8_t)a)
TO(b64_u16, uint64_t, uint32_t, (uint16_t)a)
TO(b64_s16, uint64_t, uint32_t, (uint64_t)(int16_t)a)
TO(b64_u32, uint64_t, uint32_t, a)
TO(b64_s32, uint64_t, int32_t, (uint64_t)a)
TO(b64_b64, uint64_t, uint64_t, a)

// Saturation goes through 64 signed bits, which hold every source but large
// u64 ones.
KILNI_LANES_INLINE int64_t clamp_s(int64_t x, int64_t low, int64_t high) {
  int64_t above = x < low ? low : x;
  return above > high ? high : above;
}
KILNI_LANES_INLINE uint64_t clamp_u(uint64_t x, uint64_t high) {
  return x > high ? high : x;
}

#define FROM_SIGNED(s, TA, T)                                                  \
  TO(sat_u8_##s, uint32_t, TA, (uint32_t)clamp_s((T)a, 0, UINT8_MAX))          \
  TO(sat_s8_##s, uint32_t, TA, (uint16_t)clamp_s((T)a, INT8_MIN, INT8_MAX))    \
  TO(sat_u16_##s, uint32_t, TA, (uint32_t)clamp_s((T)a, 0, UINT16_MAX))        \
  TO(sat_s16_##s, uint32_t, TA, (uint16_t)clamp_s((T)a, INT16_MIN, INT16_MAX)) \
  TO(sat_u32_##s, uint32_t, TA, (uint32_t)clamp_s((T)a, 0, UINT32_MAX))        \
  TO(sat_s32_##s, uint32_t, TA, (uint32_t)clamp_s((T)a, INT32_MIN, INT32_MAX)) \
  TO(sat_u64_##s, uint64_t, TA, (uint64_t)clamp_s((T)a, 0, INT64_MAX))         \
  TO(sat_s64_##s, uint64_t, TA, (uint64_t)(int64_t)(T)a)
#define FROM_UNSIGNED(s, TA, T)                                      \
  TO(sat_u8_##s, uint32_t, TA, (uint32_t)clamp_u((T)a, UINT8_MAX))   \
  TO(sat_s8_##s, uint32_t, TA, (uint32_t)clamp_u((T)a, INT8_MAX))    \
  TO(sat_u16_##s, uint32_t, TA, (uint32_t)clamp_u((T)a, UINT16_MAX)) \
  TO(sat_s16_##s, uint32_t, TA, (uint32_t)clamp_u((T)a, INT16_MAX))  \
  TO(sat_u32_##s, uint32_t, TA, (uint32_t)clamp_u((T)a, UINT32_MAX)) \
  TO(sat_s32_##s, uint32_t, TA, (uint32_t)clamp_u((T)a, INT32_MAX))  \
  TO(sat_u64_##s, uint64_t, TA, (uint64_t)(T)a)                      \
  TO(sat_s64_##s, uint64_t, TA, clamp_u((T)a, INT64_MAX))

FROM_UNSIGNED(u8, uint32_t, uint8_t)
FROM_SIGNED(s8, uint32_t, int8_t)
FROM_UNSIGNED(u16, uint32_t, uint16_t)
FROM_SIGNED(s16, uint32_t, int16_t)
FROM_UNSIGNED(u32, uint32_t, uint32_t)
FROM_SIGNED(s32, uint32_t, int32_t)
FROM_UNSIGNED(u64, uint64_t, uint64_t)
FROM_SIGNED(s64, uint64_t, int64_t)
