// SPDX-License-Identifier: Apache-2.0
//
// test: where strict math is looked at, and a quick word on each result.
#include "math_points.h"

#include <math.h>
#include <string.h>

#include "evaluator_values.h"
#include "kiln/program.h"

static const double WRONG = 1e9;

// X(operator, the C function, the wider C function)
// clang-format off
#define ONE(X)                                                            \
  X(EXP, exp, expl) X(EXP2, exp2, exp2l) X(LOG, log, logl)                \
  X(LOG2, log2, log2l) X(SIN, sin, sinl) X(COS, cos, cosl)                \
  X(TAN, tan, tanl) X(ASIN, asin, asinl) X(ACOS, acos, acosl)             \
  X(ATAN, atan, atanl) X(SINH, sinh, sinhl) X(COSH, cosh, coshl)          \
  X(TANH, tanh, tanhl) X(INVERSE_SQRT, inverse_sqrt, inverse_sqrtl)
#define TWO(X) X(REM, fmodl) X(POW, powl) X(ATAN2, atan2l)
// clang-format on

static double inverse_sqrt(double x) {
  return 1.0 / sqrt(x);
}

static long double inverse_sqrtl(long double x) {
  return 1.0L / sqrtl(x);
}

#define ROW_1(NAME, f, wide) {#NAME, KILN_PROGRAM_UNARY_##NAME, false},
#define ROW_2(NAME, f)       {#NAME, KILN_PROGRAM_BINARY_##NAME, true},
const math_function_t MATH_FUNCTIONS[] = {ONE(ROW_1)
                                              TWO(ROW_2){NULL, 0, false}};

static long double guess(const math_function_t* f, double x, double y) {
#define GUESS_1(NAME, f, function) \
  case KILN_PROGRAM_UNARY_##NAME:  \
    return function(x);
#define GUESS_2(NAME, function)    \
  case KILN_PROGRAM_BINARY_##NAME: \
    return function(x, y);
  if (f->two) {
    switch (f->op) { TWO(GUESS_2) }
  } else {
    switch (f->op) { ONE(GUESS_1) }
  }
  return 0.0L;
}

// Precision, the least exponent of a last place, and where infinity begins.
static int precision(uint8_t type) {
  return type == KILN_PROGRAM_TYPE_F64 ? 53 : 24;
}

int math_least_place(uint8_t type) {
  return type == KILN_PROGRAM_TYPE_F64 ? -1074 : -149;
}

int math_top(uint8_t type) {
  return type == KILN_PROGRAM_TYPE_F64 ? 1024 : 128;
}

int math_place(uint8_t type, long exponent) {
  const long p = exponent - precision(type);
  return p < math_least_place(type) ? math_least_place(type) : (int)p;
}

// C's answer where x and y leave no space for rounding; else false.
bool math_ends(long double want, double got, double* out_error) {
  if (isnan(want) || isnan(got)) {
    *out_error = isnan(want) && isnan(got) ? 0.0 : WRONG;
    return true;
  }
  if (isinf(want) && isinf(got)) {
    *out_error = (want > 0.0L) == (got > 0.0) ? 0.0 : WRONG;
    return true;
  }
  if (want == 0.0L && got == 0.0) {
    *out_error = (signbit(want) != 0) == (signbit(got) != 0) ? 0.0 : WRONG;
    return true;
  }
  return false;
}

static double by_guess(long double want, uint8_t type, double got) {
  int exponent = 0;
  // The exact value of a power of two may lie below it.
  if (fabsl(frexpl(want, &exponent)) == 0.5L) exponent--;
  if (isinf(got)) {
    const long double end = ldexpl(got > 0.0 ? 1.0L : -1.0L, math_top(type));
    if (fabsl(want) >= fabsl(end)) return want * end > 0.0L ? 0.0 : WRONG;
    return (double)ldexpl(fabsl(want - end), -math_place(type, exponent));
  }
  return (double)ldexpl(fabsl(want - (long double)got),
                        -math_place(type, exponent));
}

double math_distance(long double want, uint8_t type, double got) {
  double error = 0.0;
  if (math_ends(want, got, &error)) return error;
  if (want == 0.0L || isinf(want)) return WRONG;
  return by_guess(want, type, got);
}

double math_quick_error(const math_function_t* function, uint8_t type, double x,
                        double y, double got) {
  return math_distance(guess(function, x, y), type, got);
}

static double plain(const math_function_t* f, double x) {
#define PLAIN_1(NAME, function, wide) \
  case KILN_PROGRAM_UNARY_##NAME:     \
    return function(x);
  switch (f->op) { ONE(PLAIN_1) }
  return 0.0;
}

// 2^exponent, in range.
static double power(int exponent) {
  const uint64_t bits = (uint64_t)(exponent + 1023) << 52U;
  double value = 0.0;
  memcpy(&value, &bits, sizeof value);
  return value;
}

double math_quicker_error(const math_function_t* function, float x, float got) {
  const double want = plain(function, (double)x);
  const double size = fabs(want);
  double have = (double)got;
  if (size != size || have != have) {
    return size != size && have != have ? 0.0 : WRONG;
  }
  if ((signbit(want) != 0) != (signbit(have) != 0)) {
    return want == 0.0 || have == 0.0
               ? WRONG
               : math_quick_error(function, KILN_PROGRAM_TYPE_F32, (double)x,
                                  0.0, have);
  }
  if (fabs(have) > 0x1.fffffep+127) {
    if (size >= 0x1p+128) return 0.0;
    have = have > 0.0 ? 0x1p+128 : -0x1p+128;
  } else if (size > 0x1p+128) {
    return size == (double)INFINITY ? WRONG
                                    : fabs(want - have) * power(-(127 - 23));
  }
  uint64_t bits = 0;
  memcpy(&bits, &size, sizeof bits);
  // The exact value of a power of two may lie below it, where places are
  // half as far apart.
  const bool edge = (bits & UINT64_C(0xfffffffffffff)) == 0U;
  const int exponent = (int)(bits >> 52U) - 1023 - (edge ? 1 : 0);
  const int place = exponent < -126 ? -126 : exponent > 127 ? 127 : exponent;
  return fabs(want - have) * power(23 - place);
}

static uint64_t next(uint64_t* seed) {
  *seed += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = *seed;
  z = (z ^ z >> 30U) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27U) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31U;
}

static uint64_t to_type(uint8_t type, double value) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return program_cast(KILN_PROGRAM_TYPE_F64, type, bits);
}

uint64_t math_sample(uint8_t type, uint64_t* seed) {
  static const double special[] = {0.0, 1.0, 0.5, 2.0, 1e300, INFINITY, NAN};
  const uint64_t how = next(seed), word = next(seed);
  const double unit = ldexp((double)(word >> 11U), -53);
  const double sign = (how >> 8U & 1U) != 0U ? -1.0 : 1.0;
  const int nudge = (int)(how >> 16U & 7U) - 3;
  uint64_t bits = 0;
  switch (how & 7U) {
    case 0:
    case 1:  // every exponent alike
      return type == KILN_PROGRAM_TYPE_F32 ? word >> 32U : word;
    case 2:
      bits = to_type(type, sign * unit);
      break;
    case 3:
      bits = to_type(type, sign * 20.0 * unit);
      break;
    case 4:  // where exp and its kin end
      bits = to_type(
          type, sign * unit * (type == KILN_PROGRAM_TYPE_F32 ? 160.0 : 1100.0));
      break;
    case 5:  // around 1
      bits = to_type(type, 1.0 + sign * ldexp(unit, -(int)(how >> 24U & 31U)));
      break;
    case 6:  // multiples of pi/2 and whole numbers
      bits =
          to_type(type, sign * floor(ldexp(unit, (int)(how >> 24U & 31U))) *
                            ((how >> 40U & 1U) ? 1.57079632679489661923 : 1.0));
      bits += (uint64_t)(int64_t)nudge;
      break;
    default:
      bits = to_type(type, sign * special[word % 7U]);
      break;
  }
  return type == KILN_PROGRAM_TYPE_F32 ? bits & UINT32_MAX : bits;
}

// Ends of ranges, of every function; then those of one function.
static const double ENDS[] = {0.0,
                              0x1p-1074,
                              0x1p-1022,
                              0x1.fffffffffffffp-1023,
                              0x1p-149,
                              0x1p-126,
                              0x1p-27,
                              0x1p-26,
                              0x1p-14,
                              0x1p-13,
                              0.5,
                              0x1.0000000000001p-1,
                              0x1.fffffffffffffp-2,
                              0x1.fffffep-2,
                              0x1.fffffffffffffp-1,
                              0x1.fffffep-1,
                              1.0,
                              0x1.0000000000001p+0,
                              0x1.000002p+0,
                              0x1.6a09e667f3bcdp-1,
                              0x1.6a09e667f3bccp-1,
                              0x1.6a09e667f3bcdp+0,
                              0x1.a827999fcef32p-2,
                              0x1.921fb54442d18p-1,
                              0x1.921fb54442d18p+0,
                              0x1.921fb54442d18p+1,
                              0x1.62e42fefa39efp-1,
                              0x1.62e42fefa39efp-2,
                              2.0,
                              3.0,
                              10.0,
                              20.0,
                              40.0,
                              0x1.62e42fefa39efp+9,
                              0x1.62e42fefa39fp+9,
                              0x1.74910d52d3051p+9,
                              0x1.74385446d71c3p+9,
                              0x1.74385446d71c4p+9,
                              0x1.6232bdd7abcd2p+9,
                              0x1.633ce8fb9f87dp+9,
                              0x1.62e42ep+6,
                              0x1.62e43p+6,
                              0x1.9fe368p+6,
                              0x1.5d589ep+6,
                              0x1.5d58ap+6,
                              0x1.65a9fap+6,
                              126.0,
                              127.0,
                              128.0,
                              149.0,
                              150.0,
                              1022.0,
                              1023.0,
                              1024.0,
                              1074.0,
                              1075.0,
                              1000000.0,
                              999999.5,
                              0x1p+20,
                              0x1p+27,
                              0x1.fffffep+26,
                              0x1p+53,
                              0x1p+63,
                              0x1p+64,
                              0x1p+100,
                              0x1.fffffep+127,
                              0x1p+128,
                              0x1p+900,
                              0x1.fffffffffffffp+1023,
                              INFINITY,
                              NAN};
// Near multiples of pi/2, and where exp, log and pow are hard to round.
static const double HARD[] = {
    0x1.6ac5b262ca1ffp+849, 0x1.6ac5b262ca1ffp+850,  0x1.6ac5b262ca1ffp+851,
    0x1.921fb54442d18p+20,  0x1.2d97c7f3321d2p+1,    0x1.921fb54442d18p+62,
    0x1.4cc01f3d5d1f4p+18,  0x1.f9cbe7p+29,          0x1.f5e44p+16,
    0x1.2a9aep+40,          0x1.47d0fep+34,          0x1.fdf6b4p+88,
    0x1.33333p+3,           0x1.bd5e9f4cd9a56p+1023, 0x1.9e9cbbfd6080bp-31,
    0x1.83d4bcdebb3f4p-3,   0x1.accfbe46b4efp-1,     0x1.fffffffffffffp-54,
    0x1.7fffffffffffdp-52,  0x1.22e8d75e2bc7fp-11,   0x1.4bcd58e5a5ec4p-1,
    0x1.e12f66d4c7d2ep+2};

bool math_hard(const math_function_t* function, uint8_t type, uint32_t i,
               uint64_t* x, uint64_t* y) {
  enum {
    END_COUNT = sizeof ENDS / sizeof *ENDS,
    HARD_COUNT = sizeof HARD / sizeof *HARD,
    ALL = 2 * (END_COUNT + HARD_COUNT)
  };
  const uint32_t first = function->two ? i / ALL : i;
  const uint32_t of[2] = {first, i % ALL};
  uint64_t* const out[2] = {x, y};
  if (first >= (uint32_t)ALL) return false;
  for (uint32_t k = 0; k < 2U; k++) {
    const uint32_t at = of[k] / 2U;
    const double value =
        at < (uint32_t)END_COUNT ? ENDS[at] : HARD[at - (uint32_t)END_COUNT];
    *out[k] = to_type(type, of[k] % 2U != 0U ? -value : value);
  }
  return true;
}
