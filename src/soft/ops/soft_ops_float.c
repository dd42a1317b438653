// SPDX-License-Identifier: Apache-2.0
//
// soft: f32 add, sub, mul and fma in all roundings. Compiled once for each
// lane set.
#include "soft/lanes/soft_lanes_float.h"

#define KEEP(x) (x)

// a * b + c, rounded once by `mode`. Where the CPU has no fma: the product is
// exact in f64, and a second rounding in the direction of the first changes
// nothing. To the nearest, the sum is first rounded to odd, by the error that
// it left (and so needs f64's 53 bits, more than twice 24).
KILNI_LANES_INLINE float fused(int mode, float a, float b, float c) {
#if defined(__FMA__) || defined(__FP_FAST_FMAF)
  (void)mode;
  return fmaf(a, b, c);
#else
  double p = (double)a * (double)b;
  double s = p + (double)c;
  if (mode != KILNI_LANES_RN) return (float)s;
  double back = s - p;
  double error = (p - (s - back)) + ((double)c - back);
  // The odd one of s and its neighbour on the side of the error.
  uint64_t u = bits64(s);
  uint64_t away = 1u - ((bits64(error) ^ u) >> 63 << 1);
  uint64_t odd = u + (away & ((u & 1u) - 1u));
  return (float)float64(error * error > 0.0 ? odd : u);
#endif
}

// The variants of one operation: `in` and `out` flush or keep, and saturate.
// Saturation makes +0 of a NaN, so it comes in place of the canonical NaN.
#define ADD(name, mode, in, out)                              \
  KILNI_LANES_BINARY_ROUNDED(name, mode, float, float, float, \
                             out(in(a) + in(b)))
#define SUB(name, mode, in, out)                              \
  KILNI_LANES_BINARY_ROUNDED(name, mode, float, float, float, \
                             out(in(a) - in(b)))
#define MUL(name, mode, in, out)                              \
  KILNI_LANES_BINARY_ROUNDED(name, mode, float, float, float, \
                             out(in(a) * in(b)))
#define FMA(name, mode, in, out)                                      \
  KILNI_LANES_TERNARY_ROUNDED(name, mode, float, float, float, float, \
                              out(fused(mode, in(a), in(b), in(c))))
// With .ftz; the smaller factor is made greater, which then is still finite.
#define MUL_FLUSHED(name, mode, in, out)                                 \
  KILNI_SOFT_HANDLER(name) {                                             \
    const float* pa = KILNI_LANES_AT(float, instr->a);                   \
    const float* pb = KILNI_LANES_AT(float, instr->b);                   \
    KILNI_LANES_FLUSHED_BODY(mode, float a = in(pa[i]);                  \
                             float b = in(pb[i]), a * b,                 \
                             ops_float_greater(a, b) * other(a, b), out) \
  }
#define FMA_FLUSHED(name, mode, in, out)                                     \
  KILNI_SOFT_HANDLER(name) {                                                 \
    const float* pa = KILNI_LANES_AT(float, instr->a);                       \
    const float* pb = KILNI_LANES_AT(float, instr->b);                       \
    const float* pc = KILNI_LANES_AT(float, instr->c);                       \
    KILNI_LANES_FLUSHED_BODY(                                                \
        mode, float a = in(pa[i]); float b = in(pb[i]);                      \
        float c = in(pc[i]), fused(mode, a, b, c),                           \
        fused(mode, ops_float_greater(a, b), other(a, b), c * 0x1p64f), out) \
  }
KILNI_LANES_INLINE float ops_float_greater(float a, float b) {
  return (fabsf(a) < fabsf(b) ? a : b) * 0x1p64f;
}
KILNI_LANES_INLINE float other(float a, float b) {
  return fabsf(a) < fabsf(b) ? b : a;
}
#define PLAIN_OUT(x)    canonical32(x)
#define FLUSH_OUT(x)    flush32(canonical32(x))
#define SAT_OUT(x)      saturate32(x)
#define FLUSHSAT_OUT(x) flush32(saturate32(x))

// Sums that are subnormal are exact, so they need no second look.
#define ADD_FLUSHED ADD
#define SUB_FLUSHED SUB

#define VARIANTS(OP, name, mode)                         \
  OP(name##_f32, mode, KEEP, PLAIN_OUT)                  \
  OP(name##_sat_f32, mode, KEEP, SAT_OUT)                \
  OP##_FLUSHED(name##_ftz_f32, mode, flush32, FLUSH_OUT) \
      OP##_FLUSHED(name##_ftz_sat_f32, mode, flush32, FLUSHSAT_OUT)
#define ROUNDINGS(OP, name)               \
  VARIANTS(OP, name, KILNI_LANES_RN)      \
  VARIANTS(OP, name##_rz, KILNI_LANES_RZ) \
  VARIANTS(OP, name##_rm, KILNI_LANES_RM) \
  VARIANTS(OP, name##_rp, KILNI_LANES_RP)

ROUNDINGS(ADD, add)
ROUNDINGS(SUB, sub)
ROUNDINGS(MUL, mul)
ROUNDINGS(FMA, fma)
