// SPDX-License-Identifier: Apache-2.0
//
// test: how far a result of strict math is from the exact value, by MPFR.
#include "math_judge.h"

#include <math.h>
#include <mpfr.h>
#include <string.h>

#include "kiln/program.h"
#include "evaluator_values.h"

enum { DIGITS = 160 };

static const double WRONG = 1e9;

static int exact_1(mpfr_t r, uint32_t op, mpfr_t x) {
  switch (op) {
    case KILN_PROGRAM_UNARY_EXP:
      return mpfr_exp(r, x, MPFR_RNDN);
    case KILN_PROGRAM_UNARY_EXP2:
      return mpfr_exp2(r, x, MPFR_RNDN);
    case KILN_PROGRAM_UNARY_LOG:
      return mpfr_log(r, x, MPFR_RNDN);
    case KILN_PROGRAM_UNARY_LOG2:
      return mpfr_log2(r, x, MPFR_RNDN);
    case KILN_PROGRAM_UNARY_SIN:
      return mpfr_sin(r, x, MPFR_RNDN);
    case KILN_PROGRAM_UNARY_COS:
      return mpfr_cos(r, x, MPFR_RNDN);
    case KILN_PROGRAM_UNARY_TAN:
      return mpfr_tan(r, x, MPFR_RNDN);
    case KILN_PROGRAM_UNARY_ASIN:
      return mpfr_asin(r, x, MPFR_RNDN);
    case KILN_PROGRAM_UNARY_ACOS:
      return mpfr_acos(r, x, MPFR_RNDN);
    case KILN_PROGRAM_UNARY_ATAN:
      return mpfr_atan(r, x, MPFR_RNDN);
    case KILN_PROGRAM_UNARY_SINH:
      return mpfr_sinh(r, x, MPFR_RNDN);
    case KILN_PROGRAM_UNARY_COSH:
      return mpfr_cosh(r, x, MPFR_RNDN);
    case KILN_PROGRAM_UNARY_TANH:
      return mpfr_tanh(r, x, MPFR_RNDN);
    default:
      return mpfr_rec_sqrt(r, x, MPFR_RNDN);
  }
}

static int exact_2(mpfr_t r, uint32_t op, mpfr_t x, mpfr_t y) {
  switch (op) {
    case KILN_PROGRAM_BINARY_REM:
      return mpfr_fmod(r, x, y, MPFR_RNDN);
    case KILN_PROGRAM_BINARY_POW:
      return mpfr_pow(r, x, y, MPFR_RNDN);
    default:
      return mpfr_atan2(r, x, y, MPFR_RNDN);
  }
}

static double by_mpfr(const math_function_t* f, uint8_t type, double x,
                      double y, double got) {
  mpfr_t a, b, want;
  double error = 0.0;
  mpfr_inits2(DIGITS, a, b, want, (mpfr_ptr)NULL);
  mpfr_set_d(a, x, MPFR_RNDN);
  mpfr_set_d(b, y, MPFR_RNDN);
  if (f->two) {
    (void)exact_2(want, f->op, a, b);
  } else {
    (void)exact_1(want, f->op, a);
  }
  if (mpfr_nan_p(want) || mpfr_inf_p(want) || mpfr_zero_p(want)) {
    const long double end = mpfr_get_ld(want, MPFR_RNDN);
    if (!math_ends(end, got, &error)) {
      error = isfinite(got) && mpfr_zero_p(want)
                  ? ldexp(fabs(got), -math_least_place(type))
                  : WRONG;
    }
  } else if (isnan(got)) {
    error = WRONG;
  } else {
    const long exponent = mpfr_get_exp(want);
    const int sign = mpfr_sgn(want);
    if (isinf(got)) {
      mpfr_set_si_2exp(a, got > 0.0 ? 1 : -1, math_top(type), MPFR_RNDN);
      if (mpfr_cmpabs(want, a) >= 0) mpfr_set(want, a, MPFR_RNDN);
    } else {
      mpfr_set_d(a, got, MPFR_RNDN);
    }
    mpfr_sub(want, want, a, MPFR_RNDN);
    mpfr_mul_2si(want, want, -math_place(type, exponent), MPFR_RNDN);
    error = fabs(mpfr_get_d(want, MPFR_RNDN));
    const bool end = got == 0.0 || isinf(got);
    if (end && (signbit(got) != 0) != (sign < 0)) error = WRONG;
  }
  mpfr_clears(a, b, want, (mpfr_ptr)NULL);
  return error;
}

double math_error(const math_function_t* function, uint8_t type, uint64_t x,
                  uint64_t y, uint64_t result, double trust) {
  const double a = program_number(type, x), b = program_number(type, y);
  const double got = program_number(type, result);
  if (trust > 0.0) {
    const double error = math_quick_error(function, type, a, b, got);
    if (error <= trust) return error;
  }
  // The inverse square root of -0 is C's 1 / sqrt(-0), not MPFR's.
  if (!function->two && function->op == KILN_PROGRAM_UNARY_INVERSE_SQRT &&
      a == 0.0) {
    return isinf(got) && (got < 0.0) == (signbit(a) != 0) ? 0.0 : WRONG;
  }
  return by_mpfr(function, type, a, b, got);
}

void math_judge_end(void) {
  mpfr_free_cache();
}
