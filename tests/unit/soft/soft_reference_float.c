// SPDX-License-Identifier: Apache-2.0
//
// soft: floats by MPFR: every rounding exact, subnormals as IEEE 754 has them.
#include "soft_reference_float.h"

#include <math.h>
#include <mpfr.h>
#include <string.h>

// What the device makes of NaNs (soft-instructions.md).
#define NAN32 0x7fffffffu
#define NAN64 0xfff8000000000000u
#define QUIET 0x0008000000000000u
#define UPPER 0x7fffffff00000000u

static bool is_nan(unsigned bits, uint64_t x) {
  return bits == 32 ? (x & 0x7fffffffu) > 0x7f800000u
                    : (x & 0x7fffffffffffffffu) > 0x7ff0000000000000u;
}

static uint64_t sign_bit(unsigned bits) {
  return (uint64_t)1 << (bits - 1);
}

// Subnormals to zeros, where the form says .ftz.
static uint64_t flush(const soft_form_t* f, unsigned bits, uint64_t x) {
  uint64_t exponent = bits == 32 ? 0x7f800000u : 0x7ff0000000000000u;
  if (!soft_form_has(f, "ftz") || (x & exponent)) return x;
  return x & sign_bit(bits);
}

static void value_of(mpfr_t r, unsigned bits, uint64_t x) {
  if (bits == 32) {
    uint32_t word = (uint32_t)x;
    float value;
    memcpy(&value, &word, 4);
    mpfr_set_flt(r, value, MPFR_RNDN);
  } else {
    double value;
    memcpy(&value, &x, 8);
    mpfr_set_d(r, value, MPFR_RNDN);
  }
}

static uint64_t bits_of(const mpfr_t x, unsigned bits) {
  if (mpfr_nan_p(x)) return bits == 32 ? NAN32 : NAN64;
  if (bits == 32) {
    float value = mpfr_get_flt(x, MPFR_RNDN);
    uint32_t word;
    memcpy(&word, &value, 4);
    return word;
  }
  double value = mpfr_get_d(x, MPFR_RNDN);
  uint64_t word;
  memcpy(&word, &value, 8);
  return word;
}

static mpfr_rnd_t rounding_of(const soft_form_t* f) {
  switch (f->rounding[0] ? f->rounding[1] : 'n') {
    case 'z':
      return MPFR_RNDZ;
    case 'm':
      return MPFR_RNDD;
    case 'p':
      return MPFR_RNDU;
    default:
      return MPFR_RNDN;
  }
}

// A variable of the precision and exponent range of a float of `bits`.
static void float_init(mpfr_t x, unsigned bits) {
  mpfr_set_emin(bits == 32 ? -148 : -1073);
  mpfr_set_emax(bits == 32 ? 128 : 1024);
  mpfr_init2(x, bits == 32 ? 24 : 53);
}

static bool is(const soft_form_t* f, const char* opcode) {
  return strcmp(f->token[0], opcode) == 0;
}

static bool operate(const soft_form_t* f, mpfr_t r, mpfr_t a, mpfr_t b,
                    mpfr_t c, mpfr_rnd_t mode, int* t) {
  if (is(f, "add")) {
    *t = mpfr_add(r, a, b, mode);
  } else if (is(f, "sub")) {
    *t = mpfr_sub(r, a, b, mode);
  } else if (is(f, "mul")) {
    *t = mpfr_mul(r, a, b, mode);
  } else if (is(f, "fma") || is(f, "mad")) {
    *t = mpfr_fma(r, a, b, c, mode);
  } else if (is(f, "div")) {
    *t = mpfr_div(r, a, b, mode);
  } else if (is(f, "rcp")) {
    *t = mpfr_ui_div(r, 1, a, mode);
  } else if (is(f, "sqrt")) {
    *t = mpfr_sqrt(r, a, mode);
  } else if (is(f, "rsqrt")) {
    // MPFR has +inf for -0.
    *t = mpfr_rec_sqrt(r, a, mode);
    if (mpfr_zero_p(a)) mpfr_set_inf(r, mpfr_signbit(a) ? -1 : 1);
  } else if (is(f, "ex2")) {
    *t = mpfr_exp2(r, a, mode);
  } else if (is(f, "lg2")) {
    *t = mpfr_log2(r, a, mode);
  } else if (is(f, "sin")) {
    *t = mpfr_sin(r, a, mode);
  } else if (is(f, "cos")) {
    *t = mpfr_cos(r, a, mode);
  } else if (is(f, "tanh")) {
    *t = mpfr_tanh(r, a, mode);
  } else {
    return false;
  }
  return true;
}

static uint64_t saturate(const soft_form_t* f, unsigned bits, uint64_t x) {
  if (!soft_form_has(f, "sat")) return x;
  uint64_t one = bits == 32 ? 0x3f800000u : 0x3ff0000000000000u;
  if (is_nan(bits, x) || (x & sign_bit(bits))) return 0;
  return x > one ? one : x;
}

// div.approx: 0 or NaN where the divisor is beyond 2^126.
static bool division_far(const soft_form_t* f, const uint64_t* s,
                         soft_lane_out_t* out) {
  uint64_t b = s[1] & 0x7fffffffu;
  uint64_t a = s[0] & 0x7fffffffu;
  if (!is(f, "div") || !soft_form_has(f, "approx")) return false;
  if (b <= 0x7e800000u || b >= 0x7f800000u || a > 0x7f800000u) return false;
  out->d = a == 0x7f800000u ? NAN32 : ((s[0] ^ s[1]) & 0x80000000u);
  return true;
}

static double as_double(uint64_t x, unsigned bits) {
  if (bits == 64) {
    double value;
    memcpy(&value, &x, 8);
    return value;
  }
  uint32_t word = (uint32_t)x;
  float value;
  memcpy(&value, &word, 4);
  return value;
}

// As far apart as PTX allows; that the bits are a GPU's is what the recorded
// truth is for.
static void tolerate(const soft_form_t* f, const uint64_t* s,
                     soft_lane_out_t* out) {
  bool full = soft_form_has(f, "full");
  if (!soft_form_has(f, "approx") && !full) return;
  if (is_nan(f->type[0].bits, out->d)) return;
  out->ulps = is(f, "div") || is(f, "rsqrt") || is(f, "lg2") ? 2 : 1;
  if (f->type[0].bits == 64) out->ulps = 1;
  // A subnormal power is the square of a root.
  if (is(f, "ex2")) out->ulps = 4;
  if (is(f, "lg2")) out->error = 0x1.8p-22;
  if (is(f, "tanh")) out->error = fabs(as_double(out->d, 32)) * 0x1p-11;
  if (is(f, "sin") || is(f, "cos")) {
    // Beyond two turns it grows with what the source was rounded by.
    double size = fabs(as_double(s[0], 32));
    out->error = size < 6.3 ? 0x1.8p-21 : 0x1.8p-21 + size * 0x1p-22;
  }
  // As above.
  if (soft_form_has(f, "ftz") && !(out->error > 0)) out->error = 0x1p-125;
}

static bool computes(const soft_form_t* f, const soft_lane_in_t* in,
                     soft_lane_out_t* out) {
  unsigned bits = f->type[0].bits;
  uint64_t s[3];
  for (int i = 0; i < 3; i++) s[i] = flush(f, bits, in->s[i]);
  // Only the upper word is looked at: what has no NaN there is an infinity.
  if (bits == 64 && soft_form_has(f, "ftz") &&
      (s[0] & 0x7fffffff00000000u) == 0x7ff0000000000000u) {
    s[0] &= 0xfff0000000000000u;
  }
  unsigned sources = is(f, "fma") || is(f, "mad")   ? 3
                     : is(f, "add") || is(f, "sub") ? 2
                     : is(f, "mul") || is(f, "div") ? 2
                                                    : 1;
  if (division_far(f, s, out)) return true;
  mpfr_t a, b, c, r;
  float_init(a, bits), float_init(b, bits), float_init(c, bits);
  float_init(r, bits);
  value_of(a, bits, s[0]), value_of(b, bits, s[1]), value_of(c, bits, s[2]);
  mpfr_rnd_t mode = rounding_of(f);
  int t = 0;
  bool known = operate(f, r, a, b, c, mode, &t);
  // What .ftz makes zero is what is below the least normal number when 24 bits
  // are kept of it, however small it is.
  bool tiny = bits == 32 && soft_form_has(f, "ftz") &&
              !soft_form_has(f, "approx") && !soft_form_has(f, "full") &&
              mpfr_regular_p(r) && mpfr_get_exp(r) < -125;
  mpfr_subnormalize(r, t, mode);
  out->d = bits_of(r, bits);
  if (tiny) out->d &= 0x80000000u;
  mpfr_clears(a, b, c, r, (mpfr_ptr)0);
  if (!known) return false;
  if (is_nan(bits, out->d) && bits == 64) {
    for (unsigned i = sources; i-- > 0;) {
      if (is_nan(64, s[i])) out->d = s[i] | QUIET;
    }
  }
  out->d = flush(f, bits, saturate(f, bits, out->d));
  if (bits == 64 && soft_form_has(f, "ftz")) {
    bool nan = is_nan(64, out->d);
    out->d = nan ? UPPER : (out->d + 0x80000000u) & 0xffffffff00000000u;
    if (!nan) {
      // To 20 bits; what is flushed by one may be the least normal number.
      out->ulps = 1;
      out->error = fabs(as_double(out->d, 64)) * 0x1.8p-20 + 0x1p-1021;
      return true;
    }
  }
  tolerate(f, s, out);
  return true;
}

int soft_float_order(const soft_form_t* f, unsigned bits, uint64_t x,
                     uint64_t y) {
  x = flush(f, bits, x);
  y = flush(f, bits, y);
  if (is_nan(bits, x) || is_nan(bits, y)) return 2;
  uint64_t magnitude = sign_bit(bits) - 1;
  int64_t a = (int64_t)(x & magnitude);
  int64_t b = (int64_t)(y & magnitude);
  if (x & sign_bit(bits)) a = -a;
  if (y & sign_bit(bits)) b = -b;
  return (a > b) - (a < b);
}

static uint64_t extreme(const soft_form_t* f, const soft_lane_in_t* in) {
  unsigned bits = f->type[0].bits;
  uint64_t s = sign_bit(bits);
  uint64_t a = flush(f, bits, in->s[0]);
  uint64_t b = flush(f, bits, in->s[1]);
  uint64_t sign = (a ^ b) & s;
  bool nan_a = is_nan(bits, a), nan_b = is_nan(bits, b);
  bool xorsign = soft_form_has(f, "xorsign");
  if ((nan_a && nan_b) || ((nan_a || nan_b) && soft_form_has(f, "NaN"))) {
    return bits == 32 ? NAN32 : a | QUIET;
  }
  if (xorsign) a &= s - 1, b &= s - 1;
  uint64_t r;
  if (nan_a || nan_b) {
    r = nan_a ? b : a;
  } else {
    int o = soft_float_order(f, bits, a, b);
    // Equal ones differ in the sign of zero at most.
    if (o == 0) o = (a & s) ? -1 : 1;
    r = (o < 0) == is(f, "min") ? a : b;
  }
  return xorsign ? (r & (s - 1)) | sign : r;
}

static bool classify(const char* what, unsigned bits, uint64_t x) {
  uint64_t inf = bits == 32 ? 0x7f800000u : 0x7ff0000000000000u;
  uint64_t least = bits == 32 ? 0x00800000u : 0x0010000000000000u;
  uint64_t m = x & (sign_bit(bits) - 1);
  if (!strcmp(what, "finite")) return m < inf;
  if (!strcmp(what, "infinite")) return m == inf;
  if (!strcmp(what, "number")) return m <= inf;
  if (!strcmp(what, "notanumber")) return m > inf;
  if (!strcmp(what, "normal")) return m < inf && (m >= least || !m);
  return m && m < least;
}

bool soft_float_reference(const soft_form_t* f, const soft_lane_in_t* in,
                          soft_lane_out_t* out) {
  unsigned bits = f->type[0].bits;
  uint64_t s = sign_bit(bits);
  uint64_t a = bits == 32 ? (uint32_t)in->s[0] : in->s[0];
  uint64_t b = bits == 32 ? (uint32_t)in->s[1] : in->s[1];
  if (is(f, "min") || is(f, "max")) {
    out->d = extreme(f, in);
  } else if (is(f, "abs") || is(f, "neg")) {
    out->d = flush(f, bits, is(f, "abs") ? a & ~s : a ^ s);
    if (is_nan(bits, a)) out->d = bits == 32 ? NAN32 : a | QUIET;
  } else if (is(f, "copysign")) {
    out->d = (a & s) | (b & (s - 1));
  } else if (is(f, "testp")) {
    out->d = classify(f->token[1], bits, a);
  } else {
    return computes(f, in, out);
  }
  return true;
}

uint64_t soft_float_of_int(const soft_form_t* f, bool negative,
                           uint64_t magnitude) {
  unsigned bits = f->type[0].bits;
  mpfr_t wide, r;
  float_init(r, bits);
  mpfr_init2(wide, 64);
  mpfr_set_uj(wide, magnitude, MPFR_RNDN);
  if (negative) mpfr_neg(wide, wide, MPFR_RNDN);
  mpfr_set(r, wide, rounding_of(f));
  uint64_t d = bits_of(r, bits);
  mpfr_clears(wide, r, (mpfr_ptr)0);
  return d;
}

// Rounds to an integral number in x's own precision, keeping its zero's sign.
static void integral(const soft_form_t* f, mpfr_t r, const mpfr_t x) {
  if (f->rounding[0] && f->rounding[2] == 'i') {
    mpfr_rint(r, x, rounding_of(f));
    if (mpfr_zero_p(r)) mpfr_setsign(r, r, mpfr_signbit(x), MPFR_RNDN);
  } else {
    mpfr_set(r, x, MPFR_RNDN);
  }
}

soft_int_t soft_float_to_int(const soft_form_t* f, uint64_t x,
                             bool* out_negative, uint64_t* out_magnitude) {
  unsigned bits = f->type[1].bits;
  mpfr_t a, r;
  float_init(a, bits), float_init(r, bits);
  value_of(a, bits, flush(f, bits, x));
  integral(f, r, a);
  soft_int_t kind = SOFT_INT_EXACT;
  *out_negative = mpfr_signbit(r) != 0;
  if (mpfr_nan_p(r)) {
    kind = SOFT_INT_NAN;
  } else if (mpfr_inf_p(r) || (!mpfr_zero_p(r) && mpfr_get_exp(r) > 64)) {
    kind = SOFT_INT_BEYOND;
  } else {
    mpfr_abs(r, r, MPFR_RNDN);
    *out_magnitude = mpfr_get_uj(r, MPFR_RNDN);
  }
  mpfr_clears(a, r, (mpfr_ptr)0);
  return kind;
}

bool soft_float_to_float(const soft_form_t* f, uint64_t x,
                         soft_lane_out_t* out) {
  unsigned to = f->type[0].bits;
  unsigned from = f->type[1].bits;
  if (from == 32) x = flush(f, 32, x);
  if (is_nan(from, x) && from == to && !f->rounding[0] &&
      !soft_form_has(f, "ftz") && !soft_form_has(f, "sat")) {
    out->d = x;  // moved, not converted
    return true;
  }
  if (is_nan(from, x)) {
    uint64_t wide =
        (x & 0x80000000u) << 32 | 0x7ff8000000000000u | (x & 0x7fffffu) << 29;
    uint32_t upper = (uint32_t)(x >> 32 & 0x80000000u) | 0x7fc00000u |
                     (uint32_t)(x >> 29 & 0x7fffffu);
    if (to == 32) {
      out->d = from == 32 ? NAN32 : upper;
    } else {
      out->d = from == 32 ? wide : x | QUIET;
      // With .ftz the number is an f32 result first.
      if (from == 32 && soft_form_has(f, "ftz")) out->d = 0x7fffffffe0000000u;
    }
    out->d = saturate(f, to, out->d);
    return true;
  }
  mpfr_t a, r, rounded;
  float_init(a, from), float_init(r, from);
  value_of(a, from, x);
  integral(f, r, a);
  float_init(rounded, to);
  mpfr_rnd_t mode = rounding_of(f);
  int t = mpfr_set(rounded, r, mode);
  t = mpfr_check_range(rounded, t, mode);
  mpfr_subnormalize(rounded, t, mode);
  out->d = bits_of(rounded, to);
  mpfr_clears(a, r, rounded, (mpfr_ptr)0);
  out->d = saturate(f, to, out->d);
  if (to == 32) out->d = flush(f, 32, out->d);
  return true;
}

// A float's place among all floats.
static int64_t place(uint64_t x, unsigned bits) {
  int64_t magnitude = (int64_t)(x & (sign_bit(bits) - 1));
  return x & sign_bit(bits) ? -magnitude : magnitude;
}

bool soft_reference_agrees(const soft_lane_out_t* want, uint64_t got,
                           unsigned bits) {
  if (got == want->d) return true;
  if (!want->ulps || is_nan(bits, got)) return false;
  int64_t apart = place(got, bits) - place(want->d, bits);
  if (apart <= (int64_t)want->ulps && apart >= -(int64_t)want->ulps) {
    return true;
  }
  return fabs(as_double(got, bits) - as_double(want->d, bits)) < want->error;
}
