// SPDX-License-Identifier: Apache-2.0
//
// program: the semantics table as the evaluator has it, against definitions
// written a second time: 8-bit integers exhaustively, f16 and bf16 in every
// value, the cases that the table names at every width.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "evaluator_values.h"

#define TYPE(NAME) KILN_PROGRAM_TYPE_##NAME
#define BINARY(NAME, type, x, y) \
  program_binary(KILN_PROGRAM_BINARY_##NAME, TYPE(type), (x), (y))
#define UNARY(NAME, type, x) \
  program_unary(KILN_PROGRAM_UNARY_##NAME, TYPE(type), (x))

static int clamp(int value, int low, int high) {
  return value < low ? low : value > high ? high : value;
}

// What C says of two numbers of 8 bits, in `low` to `high`.
static int wanted(uint32_t op, int x, int y, int low, int high) {
  const int shift = y & 7;
  switch (op) {
    case KILN_PROGRAM_BINARY_ADD:
      return x + y;
    case KILN_PROGRAM_BINARY_SUB:
      return x - y;
    case KILN_PROGRAM_BINARY_MUL:
      return x * y;
    case KILN_PROGRAM_BINARY_DIV:
      return y ? x / y : low ? 0 : 255;
    case KILN_PROGRAM_BINARY_REM:
      return y ? x % y : 0;
    case KILN_PROGRAM_BINARY_BIT_AND:
      return x & y;
    case KILN_PROGRAM_BINARY_BIT_OR:
      return x | y;
    case KILN_PROGRAM_BINARY_BIT_XOR:
      return x ^ y;
    case KILN_PROGRAM_BINARY_SHL:
      return x * (1 << shift);
    case KILN_PROGRAM_BINARY_SHR:
      return (int)floor(ldexp(x, -shift));
    case KILN_PROGRAM_BINARY_ROTATE_LEFT:
      return (x & 255) << shift | (x & 255) >> (8 - shift);
    case KILN_PROGRAM_BINARY_ROTATE_RIGHT:
      return (x & 255) >> shift | (x & 255) << (8 - shift);
    case KILN_PROGRAM_BINARY_MIN:
      return x < y ? x : y;
    case KILN_PROGRAM_BINARY_MAX:
      return x > y ? x : y;
    case KILN_PROGRAM_BINARY_ABS_DIFF:
      return x < y ? y - x : x - y;
    case KILN_PROGRAM_BINARY_ADD_SAT:
      return clamp(x + y, low, high);
    case KILN_PROGRAM_BINARY_SUB_SAT:
      return clamp(x - y, low, high);
    case KILN_PROGRAM_BINARY_MUL_SAT:
      return clamp(x * y, low, high);
    default:
      return (int)floor(ldexp(x * y, -8));  // mul_high
  }
}

static void every_pair_of_8_bits(void** state) {
  (void)state;
  static const uint32_t ops[] = {
      KILN_PROGRAM_BINARY_ADD,         KILN_PROGRAM_BINARY_SUB,
      KILN_PROGRAM_BINARY_MUL,         KILN_PROGRAM_BINARY_DIV,
      KILN_PROGRAM_BINARY_REM,         KILN_PROGRAM_BINARY_BIT_AND,
      KILN_PROGRAM_BINARY_BIT_OR,      KILN_PROGRAM_BINARY_BIT_XOR,
      KILN_PROGRAM_BINARY_SHL,         KILN_PROGRAM_BINARY_SHR,
      KILN_PROGRAM_BINARY_ROTATE_LEFT, KILN_PROGRAM_BINARY_ROTATE_RIGHT,
      KILN_PROGRAM_BINARY_MIN,         KILN_PROGRAM_BINARY_MAX,
      KILN_PROGRAM_BINARY_ABS_DIFF,    KILN_PROGRAM_BINARY_ADD_SAT,
      KILN_PROGRAM_BINARY_SUB_SAT,     KILN_PROGRAM_BINARY_MUL_SAT,
      KILN_PROGRAM_BINARY_MUL_HIGH};
  for (int is_signed = 0; is_signed < 2; is_signed++) {
    const uint8_t type = is_signed ? TYPE(I8) : TYPE(U8);
    const int low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
      for (int x = low; x <= high; x++) {
        for (int y = low; y <= high; y++) {
          const uint64_t got = program_binary(ops[o], type, (uint64_t)(x & 255),
                                              (uint64_t)(y & 255));
          const int want = wanted(ops[o], x, y, low, high) & 255;
          if (got != (uint64_t)want) {
            fail_msg("operator %u of %d and %d: %d, not %d", ops[o], x, y,
                     (int)got, want);
          }
        }
      }
    }
  }
}

static void division_is_total_at_every_width(void** state) {
  (void)state;
  assert_int_equal(BINARY(DIV, U32, 7, 0), UINT32_MAX);
  assert_int_equal(BINARY(DIV, U64, 7, 0), UINT64_MAX);
  assert_int_equal(BINARY(REM, U64, 7, 0), 0);
  assert_int_equal(BINARY(DIV, I64, 7, 0), 0);
  assert_int_equal(BINARY(DIV, I32, 0x80000000U, UINT32_MAX), 0x80000000U);
  assert_int_equal(BINARY(REM, I32, 0x80000000U, UINT32_MAX), 0);
  assert_int_equal(BINARY(DIV, I64, UINT64_C(1) << 63U, UINT64_MAX),
                   UINT64_C(1) << 63U);
  assert_int_equal(BINARY(MUL_HIGH, U64, UINT64_MAX, UINT64_MAX),
                   UINT64_MAX - 1U);
  assert_int_equal(BINARY(MUL_HIGH, I64, UINT64_MAX, 5), UINT64_MAX);
  assert_int_equal(BINARY(MUL_SAT, I64, UINT64_C(1) << 62U, 2), INT64_MAX);
  assert_int_equal(BINARY(MUL_SAT, U64, UINT64_C(1) << 63U, 2), UINT64_MAX);
  assert_int_equal(BINARY(ADD_SAT, I64, INT64_MAX, 1), INT64_MAX);
  assert_int_equal(BINARY(SHL, U64, 1, 64), 1);
  assert_int_equal(UNARY(CLZ, U16, 0), 16);
  assert_int_equal(UNARY(CTZ, I8, 0), 8);
  assert_int_equal(UNARY(REVERSE_BITS, U8, 1), 128);
  assert_int_equal(UNARY(ABS, I16, 0x8000U), 0x8000U);
  assert_int_equal(UNARY(UNPACK8_HIGH, U32, 0x12345678U), 0x56);
}

// The double that the bits of a small float stand for, by hand.
static double by_hand(uint32_t bits, int fraction_bits, int exponent_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent =
      (int)(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction =
      ldexp((double)(bits & ((1U << fraction_bits) - 1U)), -fraction_bits);
  double value = 0.0;
  if (exponent == (1 << exponent_bits) - 1) {
    value = fraction != 0.0 ? (double)NAN : (double)INFINITY;
  } else if (exponent == 0) {
    value = ldexp(fraction, 1 - bias);
  } else {
    value = ldexp(1.0 + fraction, exponent - bias);
  }
  return bits >> (fraction_bits + exponent_bits) != 0U ? -value : value;
}

static uint64_t bits_of(double value) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static void narrowing_of(uint8_t type, int fraction_bits, int exponent_bits) {
  const uint32_t infinity = ((1U << exponent_bits) - 1U) << fraction_bits;
  for (uint32_t bits = 0; bits < 65536U; bits++) {
    const double value = by_hand(bits, fraction_bits, exponent_bits);
    const double read = program_number(type, bits);
    if (isnan(value)) {
      assert_true(isnan(read) && program_is_nan(type, bits));
      assert_int_equal(program_bitcast(type, TYPE(U16), bits),
                       program_nan(type));
      continue;
    }
    assert_true(read == value && signbit(read) == signbit(value));
    assert_int_equal(program_cast(TYPE(F64), type, bits_of(value)), bits);
    assert_int_equal(program_bitcast(type, TYPE(U16), bits), bits);
    if ((bits & 0x7fffU) + 1U >= infinity) continue;
    // Half way to the next one: to the even one; a hair beside: to its side.
    const double next = by_hand(bits + 1U, fraction_bits, exponent_bits);
    const double half = (value + next) / 2.0;
    const uint32_t even = (bits & 1U) != 0U ? bits + 1U : bits;
    const uint64_t middle = bits_of(half);
    assert_int_equal(program_cast(TYPE(F64), type, middle), even);
    assert_int_equal(program_cast(TYPE(F64), type, middle - 1U), bits);
    assert_int_equal(program_cast(TYPE(F64), type, middle + 1U), bits + 1U);
  }
  const double last = by_hand(infinity - 1U, fraction_bits, exponent_bits);
  const double before = by_hand(infinity - 2U, fraction_bits, exponent_bits);
  const uint64_t end = bits_of(last + (last - before) / 2.0);
  assert_int_equal(program_cast(TYPE(F64), type, end), infinity);
  assert_int_equal(program_cast(TYPE(F64), type, end - 1U), infinity - 1U);
}

static void small_floats_are_read_and_rounded_once(void** state) {
  (void)state;
  narrowing_of(TYPE(F16), 10, 5);
  narrowing_of(TYPE(BF16), 7, 8);
  // 2049 lies half way; 2^-60 decides, and a detour by f32 would lose it.
  assert_int_equal(program_cast(TYPE(U64), TYPE(F16), 2049), 0x6800);
  assert_int_equal(program_cast(TYPE(F64), TYPE(F16), bits_of(2049.0)), 0x6800);
  assert_int_equal(
      program_cast(TYPE(F64), TYPE(F16), bits_of(2049.0 + 0x1p-40)), 0x6801);
  assert_int_equal(
      program_cast(TYPE(U64), TYPE(BF16), (UINT64_C(0x101) << 55U) + 1U),
      0x5f01);
  assert_int_equal(program_cast(TYPE(U64), TYPE(F32), UINT64_MAX), 0x5f800000U);
  assert_int_equal(program_cast(TYPE(I64), TYPE(F16), (uint64_t)-70000),
                   0xfc00);
}

static void casts_saturate(void** state) {
  (void)state;
  const uint64_t nan = bits_of((double)NAN);
  assert_int_equal(program_cast(TYPE(F64), TYPE(I8), bits_of(-1e9)), 0x80);
  assert_int_equal(program_cast(TYPE(F64), TYPE(U8), bits_of(256.0)), 255);
  assert_int_equal(program_cast(TYPE(F64), TYPE(U8), bits_of(-0.9)), 0);
  assert_int_equal(program_cast(TYPE(F64), TYPE(I64), bits_of(0x1p63)),
                   INT64_MAX);
  assert_int_equal(program_cast(TYPE(F64), TYPE(I64), bits_of(-0x1p63)),
                   UINT64_C(1) << 63U);
  assert_int_equal(program_cast(TYPE(F64), TYPE(U64), bits_of(0x1p64)),
                   UINT64_MAX);
  assert_int_equal(program_cast(TYPE(F64), TYPE(U64), nan), 0);
  assert_int_equal(program_cast(TYPE(F64), TYPE(BOOL), nan), 1);
  assert_int_equal(program_cast(TYPE(F64), TYPE(BOOL), bits_of(-0.0)), 0);
  assert_int_equal(program_cast(TYPE(I8), TYPE(U32), 0xff), UINT32_MAX);
  assert_int_equal(program_cast(TYPE(U8), TYPE(I32), 0xff), 255);
  assert_int_equal(program_cast(TYPE(BOOL), TYPE(F32), 1), 0x3f800000U);
}

static void floats_keep_their_rules(void** state) {
  (void)state;
  const uint64_t nan = 0x7fc00001U, one = 0x3f800000U, minus = 0x80000000U;
  assert_int_equal(BINARY(MIN, F32, nan, one), one);
  assert_int_equal(BINARY(MAX, F32, one, nan), one);
  assert_true(program_is_nan(TYPE(F32), BINARY(MAX, F32, nan, nan)));
  assert_int_equal(BINARY(MIN, F32, 0, minus), minus);
  assert_int_equal(BINARY(MIN, F32, minus, 0), minus);
  assert_int_equal(BINARY(MAX, F32, minus, 0), 0);
  assert_int_equal(BINARY(EQ, F32, minus, 0), 1);
  assert_int_equal(BINARY(EQ, F32, nan, nan), 0);
  assert_int_equal(BINARY(NE, F32, nan, nan), 1);
  assert_int_equal(BINARY(GE, F32, nan, nan), 0);
  assert_int_equal(UNARY(NEGATE, F32, 0), minus);
  assert_int_equal(UNARY(SIGN, F32, minus), minus);
  assert_int_equal(UNARY(SIGN, F64, bits_of(-3.0)), bits_of(-1.0));
  assert_int_equal(UNARY(ROUND, F64, bits_of(2.5)), bits_of(2.0));
  assert_int_equal(UNARY(ROUND_AWAY, F64, bits_of(2.5)), bits_of(3.0));
  assert_int_equal(UNARY(ROUND, F64, bits_of(-0.5)), bits_of(-0.0));
  assert_int_equal(BINARY(REM, F64, bits_of(-7.5), bits_of(2.0)),
                   bits_of(-1.5));
  assert_true(program_is_nan(TYPE(F64), BINARY(REM, F64, bits_of(1.0), 0)));
  // f16: 1 + 2^-11 is half way and goes to the even one; fma rounds f32 first.
  assert_int_equal(BINARY(ADD, F16, 0x3c00, 0x1000), 0x3c00);
  assert_int_equal(BINARY(ABS_DIFF, F32, one, 0x40000000U), one);
  assert_true(program_same(TYPE(F32), nan, program_nan(TYPE(F32))));
  assert_false(program_same(TYPE(F32), 0, minus));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_pair_of_8_bits),
      cmocka_unit_test(division_is_total_at_every_width),
      cmocka_unit_test(small_floats_are_read_and_rounded_once),
      cmocka_unit_test(casts_saturate),
      cmocka_unit_test(floats_keep_their_rules),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
