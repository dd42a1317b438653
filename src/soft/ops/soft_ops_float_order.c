// SPDX-License-Identifier: Apache-2.0
//
// soft: f32 sign, minimum, maximum and class. Compiled once for each lane set.
//
// min and max take the number where one source is a NaN (.NaN: the NaN), and
// order -0 below +0.
#include "soft/lanes/soft_lanes_float.h"

#define SIGN 0x80000000u

KILNI_LANES_UNARY(abs_f32, float, float,
                  canonical32(float32(bits32(a) & ~SIGN)))
KILNI_LANES_UNARY(abs_ftz_f32, float, float,
                  canonical32(flush32(float32(bits32(a) & ~SIGN))))
KILNI_LANES_UNARY(neg_f32, float, float, canonical32(float32(bits32(a) ^ SIGN)))
KILNI_LANES_UNARY(neg_ftz_f32, float, float,
                  canonical32(flush32(float32(bits32(a) ^ SIGN))))

// Equal sources differ at most in the sign of a zero: or keeps -0, and +0.
KILNI_LANES_INLINE float ops_float_order_lesser(float a, float b) {
  float tie = float32(bits32(a) | bits32(b));
  float r = a < b ? a : b;
  r = a == b ? tie : r;
  r = a == a ? r : b;
  return canonical32(b == b ? r : a);
}
KILNI_LANES_INLINE float ops_float_order_greater(float a, float b) {
  float tie = float32(bits32(a) & bits32(b));
  float r = a > b ? a : b;
  r = a == b ? tie : r;
  r = a == a ? r : b;
  return canonical32(b == b ? r : a);
}
KILNI_LANES_INLINE float either_nan(float r, float a, float b) {
  return a == a && b == b ? r : float32(0x7fffffffu);
}
// The order of magnitudes under the product of the signs.
KILNI_LANES_INLINE float ops_float_order_magnitude(float a) {
  return float32(bits32(a) & ~SIGN);
}
KILNI_LANES_INLINE float sign_of_product(float r, float a, float b) {
  float signed_r =
      float32((bits32(r) & ~SIGN) | ((bits32(a) ^ bits32(b)) & SIGN));
  return r == r ? signed_r : r;
}

#define KEEP(x) (x)
#define ORDER(name, pick, ftz, in)                                             \
  KILNI_LANES_BINARY(name##ftz##_f32, float, float, float, pick(in(a), in(b))) \
  KILNI_LANES_BINARY(name##ftz##_nan_f32, float, float, float,                 \
                     either_nan(pick(in(a), in(b)), a, b))                     \
  KILNI_LANES_BINARY(name##ftz##_xorsign_abs_f32, float, float, float,         \
                     sign_of_product(pick(ops_float_order_magnitude(in(a)),    \
                                          ops_float_order_magnitude(in(b))),   \
                                     a, b))                                    \
  KILNI_LANES_BINARY(                                                          \
      name##ftz##_nan_xorsign_abs_f32, float, float, float,                    \
      either_nan(sign_of_product(pick(ops_float_order_magnitude(in(a)),        \
                                      ops_float_order_magnitude(in(b))),       \
                                 a, b),                                        \
                 a, b))
ORDER(min, ops_float_order_lesser, , KEEP)
ORDER(min, ops_float_order_lesser, _ftz, flush32)
ORDER(max, ops_float_order_greater, , KEEP)
ORDER(max, ops_float_order_greater, _ftz, flush32)

// copysign d, a, b: the sign of a with the magnitude of b.
KILNI_LANES_BINARY(copysign_f32, uint32_t, uint32_t, uint32_t,
                   (a & SIGN) | (b & ~SIGN))

#define TEST(id, expr)                                                \
  KILNI_SOFT_HANDLER(id) {                                            \
    const uint32_t* pa = KILNI_LANES_AT(uint32_t, instr->a);          \
    int32_t t[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;                  \
    KILNI_LANES_EACH(i) {                                             \
      uint32_t m = pa[i] & ~SIGN;                                     \
      t[i] = -(int32_t)(expr);                                        \
    }                                                                 \
    kilni_soft_set_pred(warp, instr->d, kilni_soft_exec(warp, instr), \
                        kilni_soft_lanes_mask(t));                    \
    return instr + 1;                                                 \
  }
TEST(testp_finite_f32, m < 0x7f800000u)
TEST(testp_infinite_f32, m == 0x7f800000u)
TEST(testp_number_f32, m <= 0x7f800000u)
TEST(testp_notanumber_f32, m > 0x7f800000u)
TEST(testp_normal_f32, (m >= 0x00800000u && m < 0x7f800000u) || m == 0)
TEST(testp_subnormal_f32, m > 0 && m < 0x00800000u)
