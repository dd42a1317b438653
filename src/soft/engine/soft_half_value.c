// SPDX-License-Identifier: Apache-2.0
//
// soft: one f16 or bf16 at a time, for atomics and matrices, as the operations
// on registers give it (soft_ops_half.c).
#include <math.h>
#include <string.h>

#include "soft/engine/soft_warp.h"

double kilni_soft_half_widen(bool bf16, uint16_t x) {
  uint32_t digits = bf16 ? 7 : 10;
  int32_t least = bf16 ? -126 : -14;
  uint32_t exponent = (x & 0x7fffu) >> digits;
  uint32_t fraction = x & ((1u << digits) - 1u);
  uint32_t top = 0x7fffu >> digits;
  double r;
  if (exponent == top) {
    r = fraction ? (double)NAN : (double)INFINITY;
  } else if (exponent == 0) {
    r = ldexp(fraction, least - (int32_t)digits);
  } else {
    r = ldexp(fraction | 1u << digits,
              (int32_t)exponent - 1 + least - (int32_t)digits);
  }
  return x & 0x8000u ? -r : r;
}

// To the nearest even.
uint16_t kilni_soft_half_narrow(bool bf16, double x) {
  int32_t digits = bf16 ? 7 : 10;
  int32_t least = bf16 ? -126 : -14;
  uint16_t sign = signbit(x) ? 0x8000u : 0;
  uint32_t infinity = 0x7fffu & ~((1u << digits) - 1u);
  if (isnan(x)) return 0x7fffu;
  if (isinf(x)) return (uint16_t)(sign | infinity);
  if (x == 0.0) return sign;
  int exponent;
  frexp(x, &exponent);
  exponent--;
  if (exponent < least) exponent = least;
  double scaled = rint(ldexp(fabs(x), digits - exponent));
  double code = ldexp(exponent - least, digits) + scaled;
  if (code > infinity) code = infinity;
  return (uint16_t)(sign | (uint16_t)code);
}

// a + b, rounded to odd where it is not exact.
static double half_value_odd_sum(double a, double b) {
  double s = a + b;
  double back = s - a;
  double error = (a - (s - back)) + (b - back);
  uint64_t u;
  memcpy(&u, &s, 8);
  if (!(error > 0.0 || error < 0.0) || (u & 1u)) return s;
  u += (error > 0.0) == (s > 0.0) ? 1u : UINT64_MAX;
  memcpy(&s, &u, 8);
  return s;
}

uint16_t kilni_soft_half_combine(bool bf16, uint32_t action, uint16_t x,
                                 uint16_t y) {
  double a = kilni_soft_half_widen(bf16, x);
  double b = kilni_soft_half_widen(bf16, y);
  if (action == KILNI_SOFT_ACTION_ADD) {
    return kilni_soft_half_narrow(
        bf16, isinf(a) || isinf(b) ? a + b : half_value_odd_sum(a, b));
  }
  if (isnan(a) || isnan(b)) {
    return isnan(a) ? kilni_soft_half_narrow(bf16, b) : x;
  }
  bool less = a < b || (a == b && signbit(a));
  return less == (action == KILNI_SOFT_ACTION_MIN) ? x : y;
}
