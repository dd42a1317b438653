// SPDX-License-Identifier: Apache-2.0
//
// soft: the approximate units. Compiled once for each lane set.
//
// The hardware's bits are not documented, only its greatest errors. These are
// computed in f64 and rounded once, so that they are within half a unit of
// f32 and a hair, the same on every lane set; the exceptional results follow
// the tables of the PTX manual.
#include "soft/lanes/soft_lanes_exp.h"

KILNI_LANES_INLINE float exp2_f32(float a) {
  double x = (double)(a == a ? a : 0.0f);
  x = x < -200.0 ? -200.0 : x;
  x = x > 200.0 ? 200.0 : x;
  float r = (float)exp2_f64(x);
  return canonical32(a == a ? r : a);
}

// log2 of a positive finite x.
KILNI_LANES_INLINE double log2_f64(double x) {
  // The exponent of x over the root of a half, 1024 up to be positive.
  uint64_t u = bits64(x);
  uint64_t k = (u - 0x3fe6a09e667f3bcdu + ((uint64_t)1024 << 52)) >> 52;
  double e = float64(k | 0x4330000000000000u) - (0x1p52 + 1024.0);
  double m = float64(u - ((k - 1024) << 52));
  double s = (m - 1.0) / (m + 1.0);
  double z = s * s;
  double p = 0x1.c68f568d31760p-3;
  p = p * z + 0x1.0c9a84994022dp-2;
  p = p * z + 0x1.484b13d7c02a9p-2;
  p = p * z + 0x1.a61762a7aded9p-2;
  p = p * z + 0x1.2776c50ef9bfep-1;
  p = p * z + 0x1.ec709dc3a03fdp-1;
  p = p * z + 0x1.71547652b82fep+1;
  return e + p * s;
}

KILNI_LANES_INLINE float log2_f32(float a) {
  int usual = (a > 0.0f) & (a <= 0x1.fffffep127f);
  float r = (float)log2_f64(usual ? (double)a : 1.0);
  float odd = a == 0.0f ? -INFINITY : (a > 0.0f ? a : float32(0x7fffffffu));
  return usual ? r : odd;
}

// Sine and cosine of |r| <= pi / 4.
KILNI_LANES_INLINE double sine_of(double r, double z) {
  double p = -0x1.ae64567f544e4p-26;
  p = p * z + 0x1.71de3a556c734p-19;
  p = p * z - 0x1.a01a01a01a01ap-13;
  p = p * z + 0x1.1111111111111p-7;
  p = p * z - 0x1.5555555555555p-3;
  return r + (p * z) * r;
}
KILNI_LANES_INLINE double cosine_of(double z) {
  double p = 0x1.1eed8eff8d898p-29;
  p = p * z - 0x1.27e4fb7789f5cp-22;
  p = p * z + 0x1.a01a01a01a01ap-16;
  p = p * z - 0x1.6c16c16c16c17p-10;
  p = p * z + 0x1.5555555555555p-5;
  p = p * z - 0.5;
  return p * z + 1.0;
}

// What the reduction below holds exactly.
#define TURN_LIMIT 0x1p20f

// sin(a + turn * pi / 2) for |a| < TURN_LIMIT.
KILNI_LANES_INLINE float sine_f32(float a, uint64_t turn) {
  int usual = (a > -TURN_LIMIT) & (a < TURN_LIMIT);
  double x = usual ? (double)a : 0.0;
  double sum = x * 0x1.45f306dc9c883p-1 + KILNI_LANES_MAGIC;
  double q = sum - KILNI_LANES_MAGIC;
  double r = x - q * 0x1.921fb54400000p+0;
  r = r - q * 0x1.0b4611a600000p-34;
  r = r - q * 0x1.3198a2e037073p-69;
  uint64_t quadrant = bits64(sum) + turn;
  double z = r * r;
  uint64_t s = bits64(sine_of(r, z));
  uint64_t c = bits64(cosine_of(z));
  uint64_t odd = (uint64_t)0 - (quadrant & 1);
  uint64_t y = (s & ~odd) | (c & odd);
  return (float)float64(y ^ (quadrant & 2) << 62);
}

// Far arguments, one lane at a time.
static __attribute__((noinline)) float sine_far(float a, uint64_t turn) {
  if (a != a || fabsf(a) == INFINITY) return float32(0x7fffffffu);
  return (float)(turn ? cos((double)a) : sin((double)a));
}

#define SINE(id, turn, in, out)                                            \
  KILNI_SOFT_HANDLER(id) {                                                 \
    const float* pa = KILNI_LANES_AT(float, instr->a);                     \
    float r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;                         \
    int32_t t[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;                       \
    KILNI_LANES_EACH(i) {                                                  \
      float a = in(pa[i]);                                                 \
      r[i] = out(sine_f32(a, (turn)));                                     \
      t[i] = -(int32_t) !((a > -TURN_LIMIT) & (a < TURN_LIMIT));           \
    }                                                                      \
    uint32_t exec = kilni_soft_exec(warp, instr);                          \
    for (uint32_t far = kilni_lanes_mask(t) & exec; far; far &= far - 1) { \
      int i = __builtin_ctz(far);                                          \
      r[i] = out(sine_far(pa[i], (turn)));                                 \
    }                                                                      \
    kilni_lanes_store32(KILNI_LANES_AT(float, instr->d), r, exec);         \
    return instr + 1;                                                      \
  }

KILNI_LANES_INLINE float tanh_f32(float a) {
  double r = tanh_f64(fabs((double)(a == a ? a : 0.0f)));
  float magnitude = (float)r;
  float signed_r = float32(bits32(magnitude) | (bits32(a) & 0x80000000u));
  return canonical32(a == a ? signed_r : a);
}

KILNI_LANES_INLINE float rsqrt_f32(float a) {
  return canonical32((float)(1.0 / sqrt((double)a)));
}

#define KEEP(x)              (x)
#define UNIT(id, in, out, f) KILNI_LANES_UNARY(id, float, float, out(f(in(a))))
#define BOTH(name, f)                    \
  UNIT(name##_approx_f32, KEEP, KEEP, f) \
  UNIT(name##_approx_ftz_f32, flush32, flush32, f)

#define RECIPROCAL(x) canonical32(1.0f / (x))
#define ROOT(x)       canonical32(sqrtf(x))
BOTH(rcp, RECIPROCAL)
BOTH(sqrt, ROOT)
BOTH(rsqrt, rsqrt_f32)
BOTH(ex2, exp2_f32)
BOTH(lg2, log2_f32)
SINE(sin_approx_f32, 0u, KEEP, KEEP)
SINE(sin_approx_ftz_f32, 0u, flush32, flush32)
SINE(cos_approx_f32, 1u, KEEP, KEEP)
SINE(cos_approx_ftz_f32, 1u, flush32, flush32)
UNIT(tanh_approx_f32, KEEP, KEEP, tanh_f32)

// a times the reciprocal of b, which is 0 where b is beyond 2^126. Dividing
// by a subnormal is not left to overflow on the way.
KILNI_LANES_INLINE float quotient(float a, float b) {
  float r = a * flush32(1.0f / b);
  r = fabsf(b) < 0x1p-126f ? a / b : r;
  return canonical32(r);
}
KILNI_LANES_BINARY(div_approx_f32, float, float, float, quotient(a, b))
KILNI_LANES_BINARY(div_approx_ftz_f32, float, float, float,
                   flush32(quotient(flush32(a), flush32(b))))
KILNI_LANES_BINARY(div_full_f32, float, float, float, canonical32(a / b))
KILNI_LANES_BINARY(div_full_ftz_f32, float, float, float,
                   flush32(canonical32(flush32(a) / flush32(b))))

// A NaN with nothing in the upper word is an infinity: the lower is not looked
// at.
KILNI_LANES_INLINE double upper_source(double x) {
  uint64_t u = bits64(flush64(x));
  int infinite = (u & 0x7fffffff00000000u) == 0x7ff0000000000000u;
  return float64(infinite ? u & 0xffffffff00000000u : u);
}
// The upper word of the result, rounded; the lower is zero.
KILNI_LANES_INLINE double upper_word(double x) {
  uint64_t u = (bits64(x) + 0x80000000u) & 0xffffffff00000000u;
  return x == x ? float64(u) : float64(0x7fffffff00000000u);
}
KILNI_LANES_UNARY(rcp_approx_ftz_f64, double, double,
                  upper_word(flush64(1.0 / upper_source(a))))
KILNI_LANES_UNARY(rsqrt_approx_ftz_f64, double, double,
                  upper_word(1.0 / sqrt(upper_source(a))))
KILNI_LANES_UNARY(rsqrt_approx_f64, double, double, nan64_1(1.0 / sqrt(a), a))
