// SPDX-License-Identifier: Apache-2.0
//
// soft: f16, bf16, tf32 and fp8: arithmetic and conversions. Compiled once for
// each lane set.
//
// Everything is computed in f64, where sums that are not exact are rounded to
// odd, and then rounded once to its format: f64 has more than twice the digits
// of any of them. A NaN that comes out is the format's canonical one.
#include "soft/code/soft_half.h"
#include "soft/lanes/soft_lanes_interpolate.h"

// A small format. one-thread
typedef struct format_t {
  uint64_t digits;    // of the fraction
  int64_t least;      // exponent of the smallest normal number
  uint64_t greatest;  // the greatest finite number
  uint64_t infinity;
  uint64_t nan;
  uint64_t sign;  // the bit of the sign
} format_t;

static const format_t kFormats[] = {
    [KILNI_SOFT_HALF_F16] = {10, -14, 0x7bff, 0x7c00, 0x7fff, 15},
    [KILNI_SOFT_HALF_BF16] = {7, -126, 0x7f7f, 0x7f80, 0x7fff, 15},
    [KILNI_SOFT_HALF_TF32] = {10, -126, 0x3fbff, 0x3fc00, 0x3ffff, 18},
    [KILNI_SOFT_HALF_E4M3] = {3, -6, 0x7e, 0x7e, 0x7f, 7},
    [KILNI_SOFT_HALF_E5M2] = {2, -14, 0x7b, 0x7c, 0x7f, 7},
};

#define DOUBLES(name) double name[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED
#define FLOATS(name)  float name[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED
#define WORDS(name)   uint32_t name[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED

// ---- To wider floats, exactly ----

// A NaN keeps its sign, for .xorsign.
KILNI_LANES_INLINE float with_sign(float magnitude, uint32_t sign_up) {
  return float32(bits32(canonical32(magnitude)) | (sign_up & 0x80000000u));
}

KILNI_LANES_INLINE float widen_f16(uint32_t x) {
  uint32_t body = x & 0x7fffu;
  float r = float32(body << 13) * 0x1p112f;
  // A NaN keeps its bits.
  uint32_t u = body >= 0x7c00u ? 0x7f800000u | body << 13 : bits32(r);
  return float32(u | (x << 16 & 0x80000000u));
}

KILNI_LANES_INLINE float ops_half_widen_e4m3(uint32_t x) {
  uint32_t body = x & 0x7fu;
  float r = float32(body << 20) * 0x1p120f;
  return with_sign(body == 0x7fu ? NAN : r, x << 24);
}

// Lane `i` of the slot `word`, the bits from `shift` upward.
static void widen_all(const uint32_t* from, uint32_t shift, uint32_t format,
                      float* to) {
  switch (format) {
    case KILNI_SOFT_HALF_F16:
      KILNI_LANES_EACH(i) {
        to[i] = widen_f16(from[i] >> shift);
      }
      return;
    case KILNI_SOFT_HALF_BF16:
      KILNI_LANES_EACH(i) {
        to[i] = float32((from[i] >> shift) << 16);
      }
      return;
    case KILNI_SOFT_HALF_E4M3:
      KILNI_LANES_EACH(i) {
        to[i] = ops_half_widen_e4m3(from[i] >> shift);
      }
      return;
    default:  // e5m2: the upper half of an f16
      KILNI_LANES_EACH(i) {
        to[i] = widen_f16((from[i] >> shift & 0xffu) << 8);
      }
  }
}

// ---- To a small format, with one rounding ----

// What rounds upward: to the nearest, away from zero depending on the sign.
// one-thread
typedef struct rounding_t {
  uint64_t nearest;  // all ones or nothing, as the others
  uint64_t even;     // ties
  uint64_t up;       // numbers above zero
  uint64_t down;     // and below
} rounding_t;

static rounding_t ops_half_rounding_of(uint32_t how) {
  rounding_t r = {0, 0, 0, 0};
  if (how == KILNI_SOFT_HALF_RN || how == KILNI_SOFT_HALF_RNA) {
    r.nearest = ~0ull;
  }
  if (how == KILNI_SOFT_HALF_RN) r.even = 1;
  if (how == KILNI_SOFT_HALF_RP) r.up = ~0ull;
  if (how == KILNI_SOFT_HALF_RM) r.down = ~0ull;
  return r;
}

KILNI_LANES_INLINE uint32_t ops_half_narrow(double x, const format_t* format,
                                            const rounding_t* rounding,
                                            uint64_t over, uint64_t infinity) {
  uint64_t u = bits64(x);
  uint64_t negative = 0 - (u >> 63);
  uint64_t biased = u >> 52 & 0x7ffu;
  uint64_t usual = biased != 0;
  uint64_t whole = (u & 0xfffffffffffffull) | usual << 52;
  int64_t e = (int64_t)biased - 1023;
  int64_t low = e < format->least ? format->least : e;
  uint64_t shift = 52 - format->digits + (uint64_t)(low - e);
  shift = shift > 62 ? 62 : shift;
  uint64_t kept = whole >> shift;
  uint64_t rest = whole & ((1ull << shift) - 1);
  uint64_t half = 1ull << (shift - 1);
  uint64_t tie = rest == half;
  uint64_t nearest = (uint64_t)(rest > half) | (tie & (kept | ~rounding->even));
  uint64_t some = rest != 0;
  uint64_t away = (negative & rounding->down) | (~negative & rounding->up);
  uint64_t more = (nearest & rounding->nearest & 1) | (some & away & 1);
  uint64_t r =
      ((uint64_t)(low - format->least) << format->digits) + kept + more;
  // Too large a number goes to `over`, or, rounded away from zero, on.
  uint64_t large = away & 1 ? format->infinity : over;
  r = r > format->greatest ? large : r;
  r = biased == 0x7ffu ? infinity : r;
  r |= (u >> 63) << format->sign;
  return (uint32_t)(x == x ? r : format->nan);
}

static void narrow_all(const double* from, uint32_t flags, uint32_t* to) {
  const format_t format = kFormats[flags & KILNI_SOFT_HALF_FORMAT];
  uint32_t how = KILNI_SOFT_HALF_ROUNDING(flags);
  const rounding_t rounding = ops_half_rounding_of(how);
  bool finite = flags & KILNI_SOFT_HALF_SATFINITE;
  uint64_t infinity = finite ? format.greatest : format.infinity;
  format_t used = format;
  if (finite) used.infinity = format.greatest;
  uint64_t over = rounding.nearest ? infinity : format.greatest;
  KILNI_LANES_EACH(i) {
    to[i] = ops_half_narrow(from[i], &used, &rounding, over, infinity);
  }
}

// The flags that change the number before it is rounded.
static void adjust(double* x, uint32_t flags) {
  if (flags & KILNI_SOFT_HALF_SAT) {
    KILNI_LANES_EACH(i) {
      x[i] = lanes_float_saturate64(x[i]);
    }
  }
  if (flags & KILNI_SOFT_HALF_RELU) {
    KILNI_LANES_EACH(i) {
      x[i] = x[i] > 0.0 || x[i] != x[i] ? x[i] : 0.0;
    }
  }
}

// tf32 rounded away keeps a NaN but its low bits.
static void away_tf32(const float* from, uint32_t flags, uint32_t* to) {
  KILNI_LANES_EACH(i) {
    uint32_t u = bits32(from[i]);
    uint32_t body = u & 0x7fffffffu;
    uint32_t r = body < 0x7f800000u ? u + 0x1000u : u;
    to[i] = r & 0xffffe000u;
  }
  if (!(flags & KILNI_SOFT_HALF_SATFINITE)) return;
  KILNI_LANES_EACH(i) {
    // An infinity becomes the greatest number, and a NaN one less in its last
    // bit too, as an H200 has it.
    uint32_t body = to[i] & 0x7fffffffu;
    to[i] = body >= 0x7f800000u ? to[i] - 0x2000u : to[i];
  }
}

static void place_tf32(uint32_t* r) {
  KILNI_LANES_EACH(i) {
    r[i] = r[i] << 13;
  }
}

// A slot of f32 lanes in the format.
static void narrow_f32(const float* from, uint32_t flags, uint32_t* to) {
  if ((flags & KILNI_SOFT_HALF_FORMAT) == KILNI_SOFT_HALF_TF32 &&
      KILNI_SOFT_HALF_ROUNDING(flags) == KILNI_SOFT_HALF_RNA) {
    away_tf32(from, flags, to);
    return;
  }
  // To f16, .ftz leaves a subnormal source as it is, as an H200 has it.
  DOUBLES(x);
  bool ftz = flags & KILNI_SOFT_HALF_FTZ &&
             (flags & KILNI_SOFT_HALF_FORMAT) != KILNI_SOFT_HALF_F16;
  KILNI_LANES_EACH(i) {
    x[i] = (double)(ftz ? flush32(from[i]) : from[i]);
  }
  adjust(x, flags);
  narrow_all(x, flags, to);
  if ((flags & KILNI_SOFT_HALF_FORMAT) == KILNI_SOFT_HALF_TF32) place_tf32(to);
}

#define STORE32(r)                                                  \
  kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), (r), \
                           kilni_soft_exec(warp, instr))

// `d`, the number; `a`, f32; `b`, f32 that becomes the lower half, where `aux`
// requests it.
KILNI_SOFT_HANDLER(half_narrow_f32) {
  WORDS(r);
  uint32_t flags = instr->aux;
  narrow_f32(KILNI_LANES_AT(const float, instr->a), flags, r);
  if (flags & KILNI_SOFT_HALF_PAIR) {
    WORDS(low);
    uint32_t bits = (uint32_t)kFormats[flags & KILNI_SOFT_HALF_FORMAT].sign + 1;
    narrow_f32(KILNI_LANES_AT(const float, instr->b), flags, low);
    KILNI_LANES_EACH(i) {
      r[i] = r[i] << bits | low[i];
    }
  }
  STORE32(r);
  return instr + 1;
}

// A NaN keeps its sign and the upper bits of its payload.
static void keep_nans(const double* from, uint32_t format, uint32_t* r) {
  bool f16 = format == KILNI_SOFT_HALF_F16;
  uint32_t quiet = f16 ? 0x7e00u : 0x7fc0u;
  uint32_t digits = f16 ? 10 : 7;
  KILNI_LANES_EACH(i) {
    uint64_t u = bits64(from[i]);
    uint64_t payload = (u & 0xfffffffffffffull) >> (52 - digits);
    uint32_t nan = quiet | (uint32_t)payload | (uint32_t)(u >> 48 & 0x8000u);
    r[i] = from[i] == from[i] ? r[i] : nan;
  }
}

// `a`: f64.
KILNI_SOFT_HANDLER(half_narrow_f64) {
  const double* a = KILNI_LANES_AT(const double, instr->a);
  DOUBLES(x);
  WORDS(r);
  KILNI_LANES_EACH(i) {
    x[i] = a[i];
  }
  adjust(x, instr->aux);
  narrow_all(x, instr->aux, r);
  keep_nans(x, instr->aux & KILNI_SOFT_HALF_FORMAT, r);
  STORE32(r);
  return instr + 1;
}

// `d`, f32; `a`, a number that starts at a bit that `aux` specifies.
KILNI_SOFT_HANDLER(half_widen) {
  FLOATS(r);
  uint32_t flags = instr->aux;
  widen_all(KILNI_LANES_AT(const uint32_t, instr->a),
            KILNI_SOFT_HALF_SHIFT(flags), flags & KILNI_SOFT_HALF_FORMAT, r);
  if (!(flags & KILNI_SOFT_HALF_KEEP)) {
    KILNI_LANES_EACH(i) {
      r[i] = canonical32(r[i]);
    }
  }
  if (flags & KILNI_SOFT_HALF_FTZ) {
    // What is subnormal in the small format.
    float least = (flags & KILNI_SOFT_HALF_FORMAT) == KILNI_SOFT_HALF_F16
                      ? 0x1p-14f
                      : 0x1p-126f;
    KILNI_LANES_EACH(i) {
      float zero = float32(bits32(r[i]) & 0x80000000u);
      r[i] = fabsf(r[i]) < least ? zero : r[i];
    }
  }
  STORE32(r);
  return instr + 1;
}

// 64-bit integers as f64, rounded to odd in the last of twelve bits: what is
// then rounded to a small format is rounded once. `aux`: 1 for signed ones.
KILNI_SOFT_HANDLER(half_from_int) {
  const uint64_t* a = KILNI_LANES_AT(const uint64_t, instr->a);
  DOUBLES(r);
  uint64_t is_signed = 0 - (uint64_t)(instr->aux & 1u);
  KILNI_LANES_EACH(i) {
    uint64_t negative = (0 - (a[i] >> 63)) & is_signed;
    uint64_t x = (a[i] ^ negative) - negative;
    uint64_t lost = (x & 0x7ffu) != 0 && x >> 53 != 0;
    x = x >> 53 ? (x & ~(uint64_t)0x7ff) | lost << 11 : x;
    double y = (double)(x >> 32) * 0x1p32 + (double)(uint32_t)x;
    r[i] = negative ? -y : y;
  }
  kilni_soft_lanes_store64(KILNI_LANES_AT(double, instr->d), r,
                           kilni_soft_exec(warp, instr));
  return instr + 1;
}

// ---- Arithmetic ----

// p + c, rounded to odd.
KILNI_LANES_INLINE double ops_half_odd_sum(double p, double c) {
  double s = p + c;
  double back = s - p;
  double error = (p - (s - back)) + (c - back);
  uint64_t u = bits64(s);
  uint64_t away = 1u - ((bits64(error) ^ u) >> 63 << 1);
  uint64_t odd = u + (away & ((u & 1u) - 1u));
  return error > 0.0 || error < 0.0 ? float64(odd) : s;
}

// The number where one is a NaN; -0 below +0.
KILNI_LANES_INLINE double ops_half_lesser(double a, double b) {
  double tie = float64(bits64(a) | bits64(b));
  double r = a < b ? a : b;
  r = a == b ? tie : r;
  r = a == a ? r : b;
  return b == b ? r : a;
}
KILNI_LANES_INLINE double ops_half_greater(double a, double b) {
  double tie = float64(bits64(a) & bits64(b));
  double r = a > b ? a : b;
  r = a == b ? tie : r;
  r = a == a ? r : b;
  return b == b ? r : a;
}

static void extreme(double* r, const double* a, const double* b,
                    uint32_t flags) {
  bool least = KILNI_SOFT_HALF_ACTION(flags) == KILNI_SOFT_HALF_MIN;
  bool xorsign = flags & KILNI_SOFT_HALF_XORSIGN;
  bool nan = flags & KILNI_SOFT_HALF_NAN;
  KILNI_LANES_EACH(i) {
    double x = xorsign ? fabs(a[i]) : a[i];
    double y = xorsign ? fabs(b[i]) : b[i];
    double z = least ? ops_half_lesser(x, y) : ops_half_greater(x, y);
    uint64_t sign = (bits64(a[i]) ^ bits64(b[i])) & 0x8000000000000000ull;
    z = xorsign ? float64(bits64(z) | sign) : z;
    r[i] = nan && (x != x || y != y) ? (double)NAN : z;
  }
}

// What does not fit is cut off, of an f16 below the normal ones too; an
// infinity stays for the rounding to find.
static void ops_half_approximate(double* r, const double* a, uint32_t flags) {
  WORDS(x);
  KILNI_LANES_EACH(i) {
    x[i] = bits32((float)a[i]);
  }
  if (KILNI_SOFT_HALF_ACTION(flags) == KILNI_SOFT_HALF_EX2) {
    mufu_ex2(x, x);
  } else {
    mufu_tanh(x, x);
  }
  if ((flags & KILNI_SOFT_HALF_FORMAT) == KILNI_SOFT_HALF_F16) {
    KILNI_LANES_EACH(i) {
      float y = float32(x[i] & ~0x1fffu);
      float least = fabsf(y) < 0x1p-14f ? y : 0.0f;
      least = (float)(int32_t)(least * 0x1p24f) * 0x1p-24f;
      y = fabsf(y) < 0x1p-14f ? least : y;
      r[i] = (double)float32(bits32(y) | (x[i] & 0x80000000u));
    }
  } else {
    KILNI_LANES_EACH(i) {
      r[i] = (double)float32(x[i] & ~0xffffu);
    }
  }
}

static void ops_half_compute(double* r, const double* a, const double* b,
                             const double* c, uint32_t flags) {
  switch (KILNI_SOFT_HALF_ACTION(flags)) {
    case KILNI_SOFT_HALF_ADD:
      KILNI_LANES_EACH(i) {
        r[i] = ops_half_odd_sum(a[i], b[i]);
      }
      return;
    case KILNI_SOFT_HALF_SUB:
      KILNI_LANES_EACH(i) {
        r[i] = ops_half_odd_sum(a[i], -b[i]);
      }
      return;
    case KILNI_SOFT_HALF_MUL:
      KILNI_LANES_EACH(i) {
        r[i] = a[i] * b[i];
      }
      return;
    case KILNI_SOFT_HALF_FMA:
      KILNI_LANES_EACH(i) {
        r[i] = ops_half_odd_sum(a[i] * b[i], c[i]);
      }
      return;
    case KILNI_SOFT_HALF_NEG:
      KILNI_LANES_EACH(i) {
        r[i] = -a[i];
      }
      return;
    case KILNI_SOFT_HALF_ABS:
      KILNI_LANES_EACH(i) {
        r[i] = fabs(a[i]);
      }
      return;
    case KILNI_SOFT_HALF_MIN:
    case KILNI_SOFT_HALF_MAX:
      extreme(r, a, b, flags);
      return;
    default:
      ops_half_approximate(r, a, flags);
  }
}

// A source's lanes from bit `shift` upward.
static void ops_half_load(kilni_soft_warp_t* warp, uint32_t word,
                          uint32_t shift, uint32_t flags, double* out) {
  FLOATS(x);
  uint32_t format = flags & KILNI_SOFT_HALF_FORMAT;
  widen_all(KILNI_LANES_AT(const uint32_t, word), shift, format, x);
  bool ftz = flags & KILNI_SOFT_HALF_FTZ;
  float least = format == KILNI_SOFT_HALF_F16 ? 0x1p-14f : 0x1p-126f;
  KILNI_LANES_EACH(i) {
    float zero = float32(bits32(x[i]) & 0x80000000u);
    out[i] = (double)(ftz && fabsf(x[i]) < least ? zero : x[i]);
  }
}

// .ftz tests whether the result is below the smallest normal number once it is
// rounded to the format's digits, its exponent being free.
static void flush_small(double* r, uint32_t format) {
  bool f16 = format == KILNI_SOFT_HALF_F16;
  double least = f16 ? 0x1p-14 - 0x1p-26 : 0x1p-126 - 0x1p-135;
  KILNI_LANES_EACH(i) {
    double zero = float64(bits64(r[i]) & 0x8000000000000000ull);
    r[i] = fabs(r[i]) < least ? zero : r[i];
  }
}

// One half of each lane.
static void one_half(kilni_soft_warp_t* warp, const kilni_soft_instr_t* instr,
                     uint32_t shift, uint32_t* out) {
  uint32_t flags = instr->aux;
  DOUBLES(a);
  DOUBLES(b);
  DOUBLES(c);
  DOUBLES(r);
  ops_half_load(warp, instr->a, shift, flags, a);
  ops_half_load(warp, instr->b, shift, flags, b);
  ops_half_load(warp, instr->c, shift, flags, c);
  ops_half_compute(r, a, b, c, flags);
  if (flags & KILNI_SOFT_HALF_FTZ) {
    flush_small(r, flags & KILNI_SOFT_HALF_FORMAT);
  }
  adjust(r, flags);
  narrow_all(r, flags & KILNI_SOFT_HALF_FORMAT, out);
}

// `d`; `a`, `b`, `c`, missing ones being `a`; `aux`.
KILNI_SOFT_HANDLER(half_math) {
  WORDS(r);
  one_half(warp, instr, 0, r);
  if (instr->aux & KILNI_SOFT_HALF_PAIR) {
    WORDS(high);
    one_half(warp, instr, 16, high);
    KILNI_LANES_EACH(i) {
      r[i] |= high[i] << 16;
    }
  }
  STORE32(r);
  return instr + 1;
}

// ---- Pairs of 16-bit integers ----

KILNI_LANES_INLINE int32_t ops_half_pick(uint32_t action, int32_t a,
                                         int32_t b) {
  if (action == KILNI_SOFT_HALF_ADD) return a + b;
  if (action == KILNI_SOFT_HALF_MIN) return a < b ? a : b;
  return a > b ? a : b;
}

// `aux`: the action; SIGNED, RELU.
KILNI_SOFT_HANDLER(half_int) {
  const uint32_t* a = KILNI_LANES_AT(const uint32_t, instr->a);
  const uint32_t* b = KILNI_LANES_AT(const uint32_t, instr->b);
  WORDS(r);
  uint32_t action = KILNI_SOFT_HALF_ACTION(instr->aux);
  uint32_t sign = instr->aux & KILNI_SOFT_HALF_SIGNED ? 0x8000u : 0;
  bool relu = instr->aux & KILNI_SOFT_HALF_RELU;
  KILNI_LANES_EACH(i) {
    uint32_t out = 0;
    for (uint32_t shift = 0; shift < 32; shift += 16) {
      uint32_t x = a[i] >> shift & 0xffffu;
      uint32_t y = b[i] >> shift & 0xffffu;
      int32_t z = ops_half_pick(action, (int32_t)(x ^ sign) - (int32_t)sign,
                                (int32_t)(y ^ sign) - (int32_t)sign);
      z = relu && z < 0 ? 0 : z;
      out |= ((uint32_t)z & 0xffffu) << shift;
    }
    r[i] = out;
  }
  STORE32(r);
  return instr + 1;
}
