// SPDX-License-Identifier: Apache-2.0
//
// soft: conversions between integers. Compiled once for each lane set.
//
// Results of 8 and 16 bits are written as 16-bit registers: signed bytes are
// sign-extended to 16 bits, the upper half of the lane is zero.
#include "soft/lanes/soft_lanes.h"

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

// Saturation goes through 64 signed bits, which fit every source but large u64
// ones.
KILNI_LANES_INLINE int64_t clamp_s(int64_t x, int64_t low, int64_t high) {
  int64_t above = x < low ? low : x;
  return above > high ? high : above;
}
KILNI_LANES_INLINE uint64_t clamp_u(uint64_t x, uint64_t high) {
  return x > high ? high : x;
}

// The pairs of PTX: those whose source has numbers that the destination does
// not. T is the source's type, M the destination's bits in its register.
#define SIGNED(d, s, TD, TA, T, M, low, high) \
  TO(sat_##d##_##s, TD, TA, (M)clamp_s((T)a, low, high))
#define UNSIGNED(d, s, TD, TA, T, high) \
  TO(sat_##d##_##s, TD, TA, (TD)clamp_u((T)a, high))

UNSIGNED(s8, u8, uint32_t, uint32_t, uint8_t, INT8_MAX)
SIGNED(u8, s8, uint32_t, uint32_t, int8_t, uint32_t, 0, UINT8_MAX)
SIGNED(u16, s8, uint32_t, uint32_t, int8_t, uint32_t, 0, UINT16_MAX)
SIGNED(u32, s8, uint32_t, uint32_t, int8_t, uint32_t, 0, UINT32_MAX)
SIGNED(u64, s8, uint64_t, uint32_t, int8_t, uint64_t, 0, INT64_MAX)
UNSIGNED(u8, u16, uint32_t, uint32_t, uint16_t, UINT8_MAX)
UNSIGNED(s8, u16, uint32_t, uint32_t, uint16_t, INT8_MAX)
UNSIGNED(s16, u16, uint32_t, uint32_t, uint16_t, INT16_MAX)
SIGNED(u8, s16, uint32_t, uint32_t, int16_t, uint32_t, 0, UINT8_MAX)
SIGNED(s8, s16, uint32_t, uint32_t, int16_t, uint16_t, INT8_MIN, INT8_MAX)
SIGNED(u16, s16, uint32_t, uint32_t, int16_t, uint32_t, 0, UINT16_MAX)
SIGNED(u32, s16, uint32_t, uint32_t, int16_t, uint32_t, 0, UINT32_MAX)
SIGNED(u64, s16, uint64_t, uint32_t, int16_t, uint64_t, 0, INT64_MAX)
UNSIGNED(u8, u32, uint32_t, uint32_t, uint32_t, UINT8_MAX)
UNSIGNED(s8, u32, uint32_t, uint32_t, uint32_t, INT8_MAX)
UNSIGNED(u16, u32, uint32_t, uint32_t, uint32_t, UINT16_MAX)
UNSIGNED(s16, u32, uint32_t, uint32_t, uint32_t, INT16_MAX)
UNSIGNED(s32, u32, uint32_t, uint32_t, uint32_t, INT32_MAX)
SIGNED(u8, s32, uint32_t, uint32_t, int32_t, uint32_t, 0, UINT8_MAX)
SIGNED(s8, s32, uint32_t, uint32_t, int32_t, uint16_t, INT8_MIN, INT8_MAX)
SIGNED(u16, s32, uint32_t, uint32_t, int32_t, uint32_t, 0, UINT16_MAX)
SIGNED(s16, s32, uint32_t, uint32_t, int32_t, uint16_t, INT16_MIN, INT16_MAX)
SIGNED(u32, s32, uint32_t, uint32_t, int32_t, uint32_t, 0, UINT32_MAX)
SIGNED(u64, s32, uint64_t, uint32_t, int32_t, uint64_t, 0, INT64_MAX)
UNSIGNED(u8, u64, uint32_t, uint64_t, uint64_t, UINT8_MAX)
UNSIGNED(s8, u64, uint32_t, uint64_t, uint64_t, INT8_MAX)
UNSIGNED(u16, u64, uint32_t, uint64_t, uint64_t, UINT16_MAX)
UNSIGNED(s16, u64, uint32_t, uint64_t, uint64_t, INT16_MAX)
UNSIGNED(u32, u64, uint32_t, uint64_t, uint64_t, UINT32_MAX)
UNSIGNED(s32, u64, uint32_t, uint64_t, uint64_t, INT32_MAX)
UNSIGNED(s64, u64, uint64_t, uint64_t, uint64_t, INT64_MAX)
SIGNED(u8, s64, uint32_t, uint64_t, int64_t, uint32_t, 0, UINT8_MAX)
SIGNED(s8, s64, uint32_t, uint64_t, int64_t, uint16_t, INT8_MIN, INT8_MAX)
SIGNED(u16, s64, uint32_t, uint64_t, int64_t, uint32_t, 0, UINT16_MAX)
SIGNED(s16, s64, uint32_t, uint64_t, int64_t, uint16_t, INT16_MIN, INT16_MAX)
SIGNED(u32, s64, uint32_t, uint64_t, int64_t, uint32_t, 0, UINT32_MAX)
SIGNED(s32, s64, uint32_t, uint64_t, int64_t, uint32_t, INT32_MIN, INT32_MAX)
SIGNED(u64, s64, uint64_t, uint64_t, int64_t, uint64_t, 0, INT64_MAX)
