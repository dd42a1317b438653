// SPDX-License-Identifier: Apache-2.0
//
// soft: the approximate units. Compiled once for each lane set.
//
// A form is what ptxas makes of it for sm_90: an instruction of the special
// function unit (soft_lanes_interpolate.h), and around it what subnormal
// numbers and far divisors need. So it gives an H200's bits.
#include "soft/lanes/soft_lanes_interpolate.h"

// The unit's answers to the source.
#define PLAIN(id, unit)                                             \
  KILNI_SOFT_HANDLER(id) {                                          \
    uint32_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;               \
    unit(KILNI_LANES_AT(uint32_t, instr->a), r);                    \
    kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), r, \
                             kilni_soft_exec(warp, instr));         \
    return instr + 1;                                               \
  }

// The source `a` becomes `before`, the unit's answer `y` becomes `after`.
#define SCALED(id, unit, before, after)                             \
  KILNI_SOFT_HANDLER(id) {                                          \
    const float* pa = KILNI_LANES_AT(float, instr->a);              \
    uint32_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;               \
    KILNI_LANES_EACH(i) {                                           \
      float a = pa[i];                                              \
      r[i] = bits32(before);                                        \
    }                                                               \
    unit(r, r);                                                     \
    KILNI_LANES_EACH(i) {                                           \
      float a = pa[i];                                              \
      float y = float32(r[i]);                                      \
      r[i] = bits32(canonical32(after));                            \
    }                                                               \
    kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), r, \
                             kilni_soft_exec(warp, instr));         \
    return instr + 1;                                               \
  }

#define SUBNORMAL(a) (fabsf(a) < 0x1p-126f)
// What a divisor is multiplied by, so that it and its reciprocal are normal.
KILNI_LANES_INLINE float scale_up(float b) {
  return SUBNORMAL(b) ? 0x1p24f : 1.0f;
}
KILNI_LANES_INLINE float scale_down(float b) {
  return fabsf(b) > 0x1p126f ? 0.25f : 1.0f;
}
KILNI_LANES_INLINE float scale_both(float b) {
  return fabsf(b) > 0x1p126f ? 0.25f : scale_up(b);
}
KILNI_LANES_INLINE float scale_none(float b) {
  (void)b;
  return 1.0f;
}

PLAIN(rcp_approx_ftz_f32, mufu_rcp)
SCALED(rcp_approx_f32, mufu_rcp, a * scale_both(a), y * scale_both(a))
PLAIN(sqrt_approx_ftz_f32, mufu_sqrt)
SCALED(sqrt_approx_f32, mufu_sqrt, SUBNORMAL(a) ? a * 0x1p24f : a,
       SUBNORMAL(a) ? y * 0x1p-12f : y)
PLAIN(rsqrt_approx_ftz_f32, mufu_rsq)
SCALED(rsqrt_approx_f32, mufu_rsq, SUBNORMAL(a) ? a * 0x1p24f : a,
       SUBNORMAL(a) ? y * 0x1p12f : y)
PLAIN(lg2_approx_ftz_f32, mufu_lg2)
SCALED(lg2_approx_f32, mufu_lg2, SUBNORMAL(a) ? a * 0x1p24f : a,
       SUBNORMAL(a) ? y - 24.0f : y)
PLAIN(ex2_approx_ftz_f32, mufu_ex2)
SCALED(ex2_approx_f32, mufu_ex2, a < -126.0f ? a * 0.5f : a,
       a < -126.0f ? y * y : y)

// The source as turns, cut off: the same with .ftz.
#define SINE(id, turn)                                              \
  KILNI_SOFT_HANDLER(id) {                                          \
    const float* pa = KILNI_LANES_AT(float, instr->a);              \
    float turns[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;              \
    uint32_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;               \
    KILNI_LANES_EACH(i) {                                           \
      turns[i] = float32(cut_off((double)pa[i] * 0x1.45f306p-3));   \
    }                                                               \
    mufu_sin(turns, (turn), r);                                     \
    kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), r, \
                             kilni_soft_exec(warp, instr));         \
    return instr + 1;                                               \
  }
SINE(sin_approx_f32, 0)
SINE(sin_approx_ftz_f32, 0)
SINE(cos_approx_f32, 1)
SINE(cos_approx_ftz_f32, 1)

PLAIN(tanh_approx_f32, mufu_tanh)

// A result below the smallest normal number when 24 bits are kept of it becomes
// zero.
KILNI_LANES_INLINE float flushed_product(float a, float b) {
  float r = a * b;
  float zero = float32(bits32(r) & 0x80000000u);
  return fabsf((a * 0x1p64f) * b) < 0x1p-62f ? zero : r;
}
KILNI_LANES_INLINE float ops_approx_product(float a, float b) {
  return a * b;
}

// a times the reciprocal of b, scale(b) being what both are multiplied by
// first.
#define QUOTIENT(id, scale, in, times)                              \
  KILNI_SOFT_HANDLER(id) {                                          \
    const float* pa = KILNI_LANES_AT(float, instr->a);              \
    const float* pb = KILNI_LANES_AT(float, instr->b);              \
    uint32_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;               \
    KILNI_LANES_EACH(i) {                                           \
      float b = in(pb[i]);                                          \
      r[i] = bits32(in(b * scale(b)));                              \
    }                                                               \
    mufu_rcp(r, r);                                                 \
    KILNI_LANES_EACH(i) {                                           \
      float b = in(pb[i]);                                          \
      float a = in(in(pa[i]) * scale(b));                           \
      r[i] = bits32(canonical32(times(a, float32(r[i]))));          \
    }                                                               \
    kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), r, \
                             kilni_soft_exec(warp, instr));         \
    return instr + 1;                                               \
  }
#define KEEP(x) (x)
QUOTIENT(div_approx_f32, scale_up, KEEP, ops_approx_product)
QUOTIENT(div_approx_ftz_f32, scale_none, flush32, flushed_product)
QUOTIENT(div_full_f32, scale_both, KEEP, ops_approx_product)
QUOTIENT(div_full_ftz_f32, scale_down, flush32, flushed_product)

// The unit's answers to the upper word; the lower is not looked at, and zero.
#define UPPER(id, unit)                                             \
  KILNI_SOFT_HANDLER(id) {                                          \
    const uint64_t* pa = KILNI_LANES_AT(uint64_t, instr->a);        \
    uint32_t upper[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;           \
    uint64_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;               \
    KILNI_LANES_EACH(i) {                                           \
      upper[i] = (uint32_t)(pa[i] >> 32);                           \
    }                                                               \
    unit(upper, upper);                                             \
    KILNI_LANES_EACH(i) {                                           \
      r[i] = (uint64_t)upper[i] << 32;                              \
    }                                                               \
    kilni_soft_lanes_store64(KILNI_LANES_AT(uint64_t, instr->d), r, \
                             kilni_soft_exec(warp, instr));         \
    return instr + 1;                                               \
  }
UPPER(rcp_approx_ftz_f64, mufu_rcp64h)
UPPER(rsqrt_approx_ftz_f64, mufu_rsq64h)
// The unit's answer to x, once refined.
KILNI_LANES_INLINE double refined(double x, uint32_t upper) {
  double y = float64((uint64_t)upper << 32);
  double error = fma(-(y * y), x, 1.0);
  return fma(fma(error, 0.375, 0.5), y * error, y);
}

KILNI_SOFT_HANDLER(rsqrt_approx_f64) {
  const double* pa = KILNI_LANES_AT(double, instr->a);
  uint32_t upper[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  double r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  KILNI_LANES_EACH(i) {
    double a = fabs(pa[i]) < 0x1p-1022 ? pa[i] * 0x1p54 : pa[i];
    upper[i] = (uint32_t)(bits64(a) >> 32);
  }
  mufu_rsq64h(upper, upper);
  KILNI_LANES_EACH(i) {
    double a = pa[i];
    double scale = a < 0x1p-1022 ? 0x1p54 : 1.0;
    double y = refined(a * scale, upper[i]) * (a < 0x1p-1022 ? 0x1p27 : 1.0);
    uint64_t sign = bits64(a) & 0x8000000000000000u;
    y = a == INFINITY ? 0.0 : y;
    y = a < 0.0 ? float64(KILNI_LANES_DEFAULT64) : y;
    y = a == 0.0 ? float64(sign | 0x7ff0000000000000u) : y;
    r[i] = a == a ? y : quiet64(a);
  }
  kilni_soft_lanes_store64(KILNI_LANES_AT(double, instr->d), r,
                           kilni_soft_exec(warp, instr));
  return instr + 1;
}
