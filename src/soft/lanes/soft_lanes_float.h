// SPDX-License-Identifier: Apache-2.0
//
// soft: what the float handlers share: canonical NaNs, flushing, saturation.
//
// A NaN that an f32 instruction makes is 0x7fffffff, whatever went in. An f64
// instruction hands on the first NaN among its sources, made quiet, and makes
// 0xfff8000000000000 where none went in.
#ifndef KILN_SRC_SOFT_LANES_SOFT_LANES_FLOAT_H_
#define KILN_SRC_SOFT_LANES_SOFT_LANES_FLOAT_H_

#include <math.h>

#include "soft/lanes/soft_lanes.h"

KILNI_LANES_INLINE uint32_t bits32(float x) {
  union {
    float value;
    uint32_t bits;
  } u = {x};
  return u.bits;
}
KILNI_LANES_INLINE float float32(uint32_t x) {
  union {
    uint32_t bits;
    float value;
  } u = {x};
  return u.value;
}
KILNI_LANES_INLINE uint64_t bits64(double x) {
  union {
    double value;
    uint64_t bits;
  } u = {x};
  return u.bits;
}
KILNI_LANES_INLINE double float64(uint64_t x) {
  union {
    uint64_t bits;
    double value;
  } u = {x};
  return u.value;
}

KILNI_LANES_INLINE float canonical32(float x) {
  return x == x ? x : float32(0x7fffffffu);
}

// Subnormals become zeros of their sign.
KILNI_LANES_INLINE float flush32(float x) {
  uint32_t u = bits32(x);
  return float32(u & 0x7f800000u ? u : u & 0x80000000u);
}
KILNI_LANES_INLINE double flush64(double x) {
  uint64_t u = bits64(x);
  return float64(u & 0x7ff0000000000000u ? u : u & 0x8000000000000000u);
}

// A handler of an operation with .ftz whose result may have to be rounded. A
// result becomes zero if it is below the smallest normal number when 24 bits
// are kept of it, however small it is; a subnormal has fewer, and may have been
// rounded up to the smallest normal number. `again` is the operation with a
// result 2^64 times as large, which has 24 bits; it is computed only where that
// may have happened.
#define KILNI_LANES_FLUSHED_BODY(mode, load, expr, again, out)            \
  float r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;                          \
  unsigned old = 0;                                                       \
  uint32_t close = 0;                                                     \
  if ((mode) != KILNI_LANES_RN) old = kilni_soft_lanes_round_begin(mode); \
  KILNI_LANES_EACH(i) {                                                   \
    load;                                                                 \
    float x = (expr);                                                     \
    close |= (bits32(x) & 0x7fffffffu) == 0x00800000u ? 1u : 0u;          \
    r[i] = out(x);                                                        \
  }                                                                       \
  if (__builtin_expect(close != 0, 0)) {                                  \
    for (int i = 0; i < KILNI_SOFT_LANES; i++) {                          \
      load;                                                               \
      float x = (expr);                                                   \
      int edge = (bits32(x) & 0x7fffffffu) == 0x00800000u;                \
      float wide = edge ? (again) : 1.0f;                                 \
      if (fabsf(wide) < 0x1p-62f)                                         \
        r[i] = out(float32(bits32(x) & ~0x00800000u));                    \
    }                                                                     \
  }                                                                       \
  if ((mode) != KILNI_LANES_RN) kilni_soft_lanes_round_end(old, r);       \
  kilni_soft_lanes_store(KILNI_LANES_AT(float, instr->d), r,              \
                         kilni_soft_exec(warp, instr), sizeof(float));    \
  return instr + 1;

// To [+0, 1]; a NaN becomes +0.
KILNI_LANES_INLINE float saturate32(float x) {
  float low = x > 0.0f ? x : 0.0f;
  return low < 1.0f ? low : 1.0f;
}
KILNI_LANES_INLINE double lanes_float_saturate64(double x) {
  double low = x > 0.0 ? x : 0.0;
  return low < 1.0 ? low : 1.0;
}

#define KILNI_LANES_QUIET64   0x0008000000000000u
#define KILNI_LANES_DEFAULT64 0xfff8000000000000u

KILNI_LANES_INLINE double quiet64(double x) {
  return float64(bits64(x) | KILNI_LANES_QUIET64);
}
// The result `r` of an operation on a, b and c.
KILNI_LANES_INLINE double nan64_3(double r, double a, double b, double c) {
  double nan = float64(KILNI_LANES_DEFAULT64);
  nan = c == c ? nan : quiet64(c);
  nan = b == b ? nan : quiet64(b);
  nan = a == a ? nan : quiet64(a);
  return r == r ? r : nan;
}
KILNI_LANES_INLINE double nan64_2(double r, double a, double b) {
  return nan64_3(r, a, b, 0.0);
}
KILNI_LANES_INLINE double nan64_1(double r, double a) {
  return nan64_3(r, a, 0.0, 0.0);
}

#endif  // KILN_SRC_SOFT_LANES_SOFT_LANES_FLOAT_H_
