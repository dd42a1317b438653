// SPDX-License-Identifier: Apache-2.0
//
// soft: powers of two and the hyperbolic tangent in f64, for the approximate
// units of all formats.
#ifndef KILN_SRC_SOFT_LANES_SOFT_LANES_EXP_H_
#define KILN_SRC_SOFT_LANES_SOFT_LANES_EXP_H_

#include "soft/lanes/soft_lanes_float.h"

// Adding and taking away this rounds to an integer, which the low bits of the
// sum hold.
#define KILNI_LANES_MAGIC 0x1.8p52

// 2^x for |x| <= 1000, no NaN.
KILNI_LANES_INLINE double exp2_f64(double x) {
  double sum = x + KILNI_LANES_MAGIC;
  double f = x - (sum - KILNI_LANES_MAGIC);
  double p = 0x1.b5253d395e7c4p-24;
  p = p * f + 0x1.62c0223a5c824p-20;
  p = p * f + 0x1.ffcbfc588b0c7p-17;
  p = p * f + 0x1.430912f86c787p-13;
  p = p * f + 0x1.5d87fe78a6731p-10;
  p = p * f + 0x1.3b2ab6fba4e77p-7;
  p = p * f + 0x1.c6b08d704a0c0p-5;
  p = p * f + 0x1.ebfbdff82c58fp-3;
  p = p * f + 0x1.62e42fefa39efp-1;
  p = p * f + 1.0;
  return float64(bits64(p) + (bits64(sum) << 52));
}

// The tangent of y >= 0, no NaN.
KILNI_LANES_INLINE double tanh_f64(double y) {
  double z = y * y;
  double near = y + y * z * (z * 0x1.1111111111111p-3 - 0x1.5555555555555p-2);
  double far = y < 40.0 ? y : 40.0;
  far = 1.0 - 2.0 / (exp2_f64(far * 0x1.71547652b82fep+1) + 1.0);
  return y < 0x1p-6 ? near : far;
}

#endif  // KILN_SRC_SOFT_LANES_SOFT_LANES_EXP_H_
