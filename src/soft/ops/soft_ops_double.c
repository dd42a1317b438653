// SPDX-License-Identifier: Apache-2.0
//
// soft: f64 arithmetic in all roundings. Compiled once for each lane set.
#include "soft/lanes/soft_lanes_float.h"

#define TWO(id, mode, op)                                      \
  KILNI_LANES_BINARY_ROUNDED(id, mode, double, double, double, \
                             nan64_2(a op b, a, b))
#define ROUNDED(r, mode)                                                  \
  TWO(add##r##_f64, mode, +)                                              \
  TWO(sub##r##_f64, mode, -)                                              \
  TWO(mul##r##_f64, mode, *)                                              \
  TWO(div##r##_f64, mode, /)                                              \
  KILNI_LANES_TERNARY_ROUNDED(fma##r##_f64, mode, double, double, double, \
                              double, nan64_3(fma(a, b, c), a, b, c))     \
  KILNI_LANES_UNARY_ROUNDED(rcp##r##_f64, mode, double, double,           \
                            nan64_1(1.0 / a, a))                          \
  KILNI_LANES_UNARY_ROUNDED(sqrt##r##_f64, mode, double, double,          \
                            nan64_1(sqrt(a), a))
ROUNDED(, KILNI_LANES_RN)
ROUNDED(_rz, KILNI_LANES_RZ)
ROUNDED(_rm, KILNI_LANES_RM)
ROUNDED(_rp, KILNI_LANES_RP)

#define SIGN 0x8000000000000000u

#define QUIET        0x0008000000000000u
#define IS_NAN(bits) (((bits) & ~SIGN) > 0x7ff0000000000000u)

// A NaN keeps its sign and becomes quiet, as an H200 has it.
KILNI_LANES_UNARY(abs_f64, uint64_t, uint64_t,
                  IS_NAN(a) ? a | QUIET : a & ~SIGN)
KILNI_LANES_UNARY(neg_f64, uint64_t, uint64_t, IS_NAN(a) ? a | QUIET : a ^ SIGN)
KILNI_LANES_BINARY(copysign_f64, uint64_t, uint64_t, uint64_t,
                   (a & SIGN) | (b & ~SIGN))

// As in f32: the number against a NaN, -0 below +0.
KILNI_LANES_INLINE double ops_double_lesser(double a, double b) {
  double tie = float64(bits64(a) | bits64(b));
  double r = a < b ? a : b;
  r = a == b ? tie : r;
  r = a == a ? r : b;
  r = b == b ? r : a;
  return r == r ? r : quiet64(a);
}
KILNI_LANES_INLINE double ops_double_greater(double a, double b) {
  double tie = float64(bits64(a) & bits64(b));
  double r = a > b ? a : b;
  r = a == b ? tie : r;
  r = a == a ? r : b;
  r = b == b ? r : a;
  return r == r ? r : quiet64(a);
}
KILNI_LANES_BINARY(min_f64, double, double, double, ops_double_lesser(a, b))
KILNI_LANES_BINARY(max_f64, double, double, double, ops_double_greater(a, b))

#define TEST(id, expr)                                                \
  KILNI_SOFT_HANDLER(id) {                                            \
    const uint64_t* pa = KILNI_LANES_AT(uint64_t, instr->a);          \
    int32_t t[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;                  \
    KILNI_LANES_EACH(i) {                                             \
      uint64_t m = pa[i] & ~SIGN;                                     \
      t[i] = -(int32_t)(expr);                                        \
    }                                                                 \
    kilni_soft_set_pred(warp, instr->d, kilni_soft_exec(warp, instr), \
                        kilni_soft_lanes_mask(t));                    \
    return instr + 1;                                                 \
  }
#define INF 0x7ff0000000000000u
#define MIN 0x0010000000000000u
TEST(testp_finite_f64, m < INF)
TEST(testp_infinite_f64, m == INF)
TEST(testp_number_f64, m <= INF)
TEST(testp_notanumber_f64, m > INF)
TEST(testp_normal_f64, (m >= MIN && m < INF) || m == 0)
TEST(testp_subnormal_f64, m > 0 && m < MIN)
