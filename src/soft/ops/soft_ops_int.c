// SPDX-License-Identifier: Apache-2.0
//
// soft: integer arithmetic but division and carry chains. Compiled once for
// each lane set.
//
// A lane of 16 bits is a zero-extended lane of 32: sources are cast down where
// their sign counts, results are masked.
#include "soft/lanes/soft_lanes_wide.h"

#define LOW16(x) ((uint32_t)(x) & 0xffffu)

// Handlers of two and three sources of one type.
#define TWO(id, T, expr)   KILNI_LANES_BINARY(id, T, T, T, expr)
#define THREE(id, T, expr) KILNI_LANES_TERNARY(id, T, T, T, T, expr)

// 16 bits; S and U are the sources as numbers.
#define S(x) ((int32_t)(int16_t)(x))
#define U(x) LOW16(x)

TWO(add_b16, uint32_t, LOW16(a + b))
TWO(sub_b16, uint32_t, LOW16(a - b))
TWO(mul_lo_b16, uint32_t, LOW16(a * b))
THREE(mad_lo_b16, uint32_t, LOW16(a * b + c))
KILNI_LANES_UNARY(neg_b16, uint32_t, uint32_t, LOW16(0u - a))
KILNI_LANES_UNARY(abs_s16, uint32_t, uint32_t, LOW16(S(a) < 0 ? 0u - a : a))
TWO(mul_hi_u16, uint32_t, LOW16((U(a) * U(b)) >> 16))
TWO(mul_hi_s16, uint32_t, LOW16((uint32_t)(S(a) * S(b)) >> 16))
THREE(mad_hi_u16, uint32_t, LOW16(((U(a) * U(b)) >> 16) + c))
THREE(mad_hi_s16, uint32_t, LOW16(((uint32_t)(S(a) * S(b)) >> 16) + c))
TWO(min_u16, uint32_t, U(a) < U(b) ? U(a) : U(b))
TWO(max_u16, uint32_t, U(a) > U(b) ? U(a) : U(b))
TWO(min_s16, uint32_t, S(a) < S(b) ? U(a) : U(b))
TWO(max_s16, uint32_t, S(a) > S(b) ? U(a) : U(b))
THREE(sad_u16, uint32_t, LOW16(c + (U(a) < U(b) ? b - a : a - b)))
THREE(sad_s16, uint32_t, LOW16(c + (S(a) < S(b) ? b - a : a - b)))
TWO(mul_wide_u16, uint32_t, U(a) * U(b))
TWO(mul_wide_s16, uint32_t, (uint32_t)(S(a) * S(b)))
THREE(mad_wide_u16, uint32_t, U(a) * U(b) + c)
THREE(mad_wide_s16, uint32_t, (uint32_t)(S(a) * S(b)) + c)

// 32 bits.
#define S32(x) ((int32_t)(x))

TWO(add_b32, uint32_t, a + b)
TWO(sub_b32, uint32_t, a - b)
TWO(mul_lo_b32, uint32_t, a * b)
THREE(mad_lo_b32, uint32_t, a * b + c)
KILNI_LANES_UNARY(neg_b32, uint32_t, uint32_t, 0u - a)
KILNI_LANES_UNARY(abs_s32, uint32_t, uint32_t, S32(a) < 0 ? 0u - a : a)
TWO(mul_hi_u32, uint32_t, high_u32(a, b))
TWO(mul_hi_s32, uint32_t, high_s32(a, b))
THREE(mad_hi_u32, uint32_t, high_u32(a, b) + c)
THREE(mad_hi_s32, uint32_t, high_s32(a, b) + c)
TWO(min_u32, uint32_t, a < b ? a : b)
TWO(max_u32, uint32_t, a > b ? a : b)
TWO(min_s32, int32_t, a < b ? a : b)
TWO(max_s32, int32_t, a > b ? a : b)
TWO(min_relu_s32, int32_t, (a < b ? a : b) > 0 ? (a < b ? a : b) : 0)
TWO(max_relu_s32, int32_t, (a > b ? a : b) > 0 ? (a > b ? a : b) : 0)
THREE(sad_u32, uint32_t, c + (a < b ? b - a : a - b))
THREE(sad_s32, uint32_t, c + (S32(a) < S32(b) ? b - a : a - b))
KILNI_LANES_BINARY(mul_wide_u32, uint64_t, uint32_t, uint32_t, (uint64_t)a * b)
KILNI_LANES_BINARY(mul_wide_s32, int64_t, int32_t, int32_t, (int64_t)a * b)
KILNI_LANES_TERNARY(mad_wide_u32, uint64_t, uint32_t, uint32_t, uint64_t,
                    (uint64_t)a * b + c)
KILNI_LANES_TERNARY(mad_wide_s32, uint64_t, int32_t, int32_t, uint64_t,
                    (uint64_t)((int64_t)a * b) + c)

KILNI_LANES_INLINE uint32_t clamp_s32(int64_t x) {
  int64_t low = x < INT32_MIN ? INT32_MIN : x;
  return (uint32_t)(low > INT32_MAX ? INT32_MAX : low);
}
TWO(add_sat_s32, uint32_t, clamp_s32((int64_t)S32(a) + S32(b)))
TWO(sub_sat_s32, uint32_t, clamp_s32((int64_t)S32(a) - S32(b)))
THREE(mad_hi_sat_s32, uint32_t,
      clamp_s32((int64_t)S32(high_s32(a, b)) + S32(c)))

// 24 bits: the product of 48 bits, its low 32 or its bits 16 to 47.
#define U24(x) ((uint64_t)((x) & 0xffffffu))
#define S24(x) ((int64_t)((int32_t)((x) << 8) >> 8))

TWO(mul24_lo_u32, uint32_t, (uint32_t)(U24(a) * U24(b)))
TWO(mul24_hi_u32, uint32_t, (uint32_t)((U24(a) * U24(b)) >> 16))
TWO(mul24_lo_s32, uint32_t, (uint32_t)(S24(a) * S24(b)))
TWO(mul24_hi_s32, uint32_t, (uint32_t)((uint64_t)(S24(a) * S24(b)) >> 16))
THREE(mad24_lo_u32, uint32_t, (uint32_t)(U24(a) * U24(b)) + c)
THREE(mad24_hi_u32, uint32_t, (uint32_t)((U24(a) * U24(b)) >> 16) + c)
THREE(mad24_lo_s32, uint32_t, (uint32_t)(S24(a) * S24(b)) + c)
THREE(mad24_hi_s32, uint32_t, (uint32_t)((uint64_t)(S24(a) * S24(b)) >> 16) + c)
THREE(mad24_hi_sat_s32, uint32_t,
      clamp_s32(
          (int64_t)(int32_t)(uint32_t)((uint64_t)(S24(a) * S24(b)) >> 16) +
          S32(c)))

// 64 bits.
#define S64(x) ((int64_t)(x))

TWO(add_b64, uint64_t, a + b)
TWO(sub_b64, uint64_t, a - b)
TWO(mul_lo_b64, uint64_t, a * b)
THREE(mad_lo_b64, uint64_t, a * b + c)
KILNI_LANES_UNARY(neg_b64, uint64_t, uint64_t, 0u - a)
KILNI_LANES_UNARY(abs_s64, uint64_t, uint64_t, S64(a) < 0 ? 0u - a : a)
TWO(mul_hi_u64, uint64_t, high_u64(a, b))
TWO(mul_hi_s64, uint64_t, high_s64(a, b))
THREE(mad_hi_u64, uint64_t, high_u64(a, b) + c)
THREE(mad_hi_s64, uint64_t, high_s64(a, b) + c)
TWO(min_u64, uint64_t, a < b ? a : b)
TWO(max_u64, uint64_t, a > b ? a : b)
TWO(min_s64, int64_t, a < b ? a : b)
TWO(max_s64, int64_t, a > b ? a : b)
THREE(sad_u64, uint64_t, c + (a < b ? b - a : a - b))
THREE(sad_s64, uint64_t, c + (S64(a) < S64(b) ? b - a : a - b))
