// SPDX-License-Identifier: Apache-2.0
//
// program: operators on constants.
//
// The same total meaning as the instructions that the lowering writes, on the
// bits of a type. Whole numbers are those of program_integers.c; an operator of
// floats without a case here is left to the device.
#include <fenv.h>
#include <math.h>
#include <string.h>

#include "program/ir/program_integers.h"
#include "program/ir/program_types.h"
#include "program/lower/program_lowering.h"

#define U(NAME) KILN_PROGRAM_UNARY_##NAME
#define B(NAME) KILN_PROGRAM_BINARY_##NAME
#define T(NAME) KILN_PROGRAM_TYPE_##NAME

static uint32_t fold_width_of(uint8_t type) {
  return 8 * kilni_program_type_bytes(type);
}

static uint64_t fold_mask_of(uint8_t type) {
  return UINT64_MAX >> (64 - fold_width_of(type));
}

// ---- Floats ----

static double f64_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static uint64_t f64_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static float f32_of(uint64_t bits) {
  uint32_t low = (uint32_t)bits;
  float value;
  memcpy(&value, &low, sizeof(value));
  return value;
}

static uint64_t f32_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

bool kilni_program_fold_floats(void) {
  volatile float least = 0x1p-149f;
  volatile float half = 0.5f;
  volatile float normal = 0x1p-126f;
  return fegetround() == FE_TONEAREST && least != 0 && normal * half != 0;
}

uint32_t kilni_program_fold_widen(uint8_t type, uint64_t bits) {
  if (type == T(BF16)) return (uint32_t)(bits & 0xffff) << 16;
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
  uint32_t exponent = (uint32_t)(bits >> 10 & 31);
  uint32_t fraction = (uint32_t)(bits & 0x3ff);
  if (exponent == 31) return sign | 0x7f800000U | fraction << 13;
  if (exponent != 0) return sign | (exponent + 112) << 23 | fraction << 13;
  if (fraction == 0) return sign;
  uint32_t shift = 0;
  while ((fraction & 0x400) == 0) fraction <<= 1, shift++;
  return sign | (113 - shift) << 23 | (fraction & 0x3ff) << 13;
}

// The bits of an f64 as f16 or bf16, rounded once to the nearest even one.
static uint64_t narrow_bits(uint8_t type, uint64_t x) {
  uint32_t fraction = type == T(F16) ? 10 : 7;
  int bias = type == T(F16) ? 15 : 127;
  uint64_t sign = x >> 63 << 15;
  uint64_t infinity = (uint64_t)(2 * bias + 1) << fraction;
  int exponent = (int)(x >> 52 & 0x7ff);
  uint64_t part = x & (UINT64_MAX >> 12);
  if (exponent == 0x7ff) {
    if (part != 0) return kilni_program_float_canonical(type, infinity | 1);
    return sign | infinity;
  }
  if (exponent == 0) return sign;  // far below the least of both
  int e = exponent - 1023 + bias;
  uint64_t all = part | UINT64_C(1) << 52;
  uint32_t drop = 52 - fraction;
  if (e <= 0) {
    drop += (uint32_t)(1 - e);
    e = 0;
  }
  if (drop > 62) return sign;
  uint64_t kept = all >> drop;
  uint64_t rest = all & ((UINT64_C(1) << drop) - 1);
  uint64_t half = UINT64_C(1) << (drop - 1);
  if (rest > half || (rest == half && (kept & 1) != 0)) kept++;
  // `kept` holds the leading one of a normal number, which adds to `e`.
  uint64_t bits = e == 0 ? kept : ((uint64_t)(e - 1) << fraction) + kept;
  return sign | (bits > infinity ? infinity : bits);
}

static uint64_t fold_narrow(uint8_t type, double x) {
  return narrow_bits(type, f64_bits(x));
}

// Any float as f64, exactly.
static double real_of(uint8_t type, uint64_t x) {
  switch (type) {
    case T(F64):
      return f64_of(x);
    case T(F32):
      return (double)f32_of(x);
    default:
      return (double)f32_of(kilni_program_fold_widen(type, x));
  }
}

// The result of an f32 operation on f32, f16 or bf16.
static uint64_t small_bits(uint8_t type, float value) {
  uint64_t bits = type == T(F32) ? f32_bits(value) : fold_narrow(type, value);
  return kilni_program_float_canonical(type, bits);
}

// ---- One operand ----

static bool fold_unary_float(uint32_t op, uint8_t type, uint64_t x,
                             uint64_t* out) {
  uint64_t sign = UINT64_C(1) << (fold_width_of(type) - 1);
  double value = real_of(type, x);
  switch (op) {
    case U(NEGATE):
      return *out = kilni_program_float_canonical(type, x ^ sign), true;
    case U(ABS):
      return *out = x & ~sign, true;
    case U(IS_NAN):
      return *out = isnan(value), true;
    case U(IS_INF):
      return *out = isinf(value), true;
    case U(IS_FINITE):
      return *out = isfinite(value) != 0, true;
    default:
      return false;
  }
}

bool kilni_program_fold_unary(uint32_t op, uint8_t type, uint64_t x,
                              bool floats, uint64_t* out) {
  if (kilni_program_type_class(type) != KILNI_CLASS_FLOAT) {
    return kilni_program_integer_unary(op, type, x, out);
  }
  return floats && fold_unary_float(op, type, x, out);
}

// ---- Two and three operands ----

static bool compare_float(uint32_t op, double x, double y) {
  switch (op) {
    case B(EQ):
      return x == y;
    case B(NE):
      return x != y;
    case B(LT):
      return x < y;
    case B(GT):
      return x > y;
    case B(LE):
      return x <= y;
    default:
      return x >= y;
  }
}

static bool binary_float(uint32_t op, uint8_t type, uint64_t x, uint64_t y,
                         uint64_t* out) {
  double a = real_of(type, x), b = real_of(type, y);
  bool wide = type == T(F64);
  double d;
  float f, fa = (float)a, fb = (float)b;
  switch (op) {
    case B(ADD):
      d = a + b, f = fa + fb;
      break;
    case B(SUB):
      d = a - b, f = fa - fb;
      break;
    case B(MUL):
      d = a * b, f = fa * fb;
      break;
    case B(DIV):
      d = a / b, f = fa / fb;
      break;
    case B(EQ):
    case B(NE):
    case B(LT):
    case B(GT):
    case B(LE):
    case B(GE):
      return *out = compare_float(op, a, b), true;
    default:
      return false;
  }
  *out = wide ? kilni_program_float_canonical(type, f64_bits(d))
              : small_bits(type, f);
  return true;
}

bool kilni_program_fold_binary(uint32_t op, uint8_t type, uint64_t x,
                               uint64_t y, bool floats, uint64_t* out) {
  if (kilni_program_type_class(type) != KILNI_CLASS_FLOAT) {
    // The count of a shift is unsigned, of any width.
    uint32_t right = kilni_program_binary_is_shift(op) ? T(U64) : type;
    return kilni_program_integer_binary(op, type, x, right, y, out);
  }
  return floats && binary_float(op, type, x, y, out);
}

bool kilni_program_fold_fma(uint8_t type, uint64_t x, uint64_t y, uint64_t z,
                            bool floats, uint64_t* out) {
  if (!floats) return false;
  double a = real_of(type, x), b = real_of(type, y), c = real_of(type, z);
  if (type == T(F64)) {
    *out = kilni_program_float_canonical(type, f64_bits(fma(a, b, c)));
  } else {
    *out = small_bits(type, fmaf((float)a, (float)b, (float)c));
  }
  return true;
}

// ---- Casts ----

// An integer as f64 that rounds to f16 and bf16 as the integer would: exact,
// or with its last bit set where something was lost.
static double odd_real(bool negative, uint64_t size) {
  uint32_t drop = 0;
  while (size >> drop >= UINT64_C(1) << 53) drop++;
  uint64_t kept = size >> drop;
  if (kept << drop != size) kept |= 1;
  double value = ldexp((double)kept, (int)drop);
  return negative ? -value : value;
}

static uint64_t float_of_integer(uint8_t from, uint8_t to, uint64_t x) {
  bool is_signed = kilni_program_type_class(from) == KILNI_CLASS_SIGNED;
  int64_t s = kilni_program_integer_signed(from, x);
  bool negative = is_signed && s < 0;
  if (to == T(F64)) return f64_bits(is_signed ? (double)s : (double)x);
  if (to == T(F32)) return f32_bits(is_signed ? (float)s : (float)x);
  return fold_narrow(to, odd_real(negative, negative ? 0 - (uint64_t)s : x));
}

static uint64_t integer_of_float(uint8_t from, uint8_t to, uint64_t x) {
  double value = real_of(from, x);
  uint32_t width = fold_width_of(to);
  bool is_signed = kilni_program_type_class(to) == KILNI_CLASS_SIGNED;
  if (isnan(value)) return 0;
  double top = ldexp(1, (int)(is_signed ? width - 1 : width));
  uint64_t most = is_signed ? fold_mask_of(to) >> 1 : fold_mask_of(to);
  if (value >= top) return most;
  if (!is_signed) return value <= 0 ? 0 : (uint64_t)value;
  if (value < -top) return most + 1;
  return (uint64_t)(int64_t)value & fold_mask_of(to);
}

bool kilni_program_fold_cast(uint8_t from, uint8_t to, uint64_t x, bool floats,
                             uint64_t* out) {
  bool from_float = kilni_program_type_class(from) == KILNI_CLASS_FLOAT;
  bool to_float = kilni_program_type_class(to) == KILNI_CLASS_FLOAT;
  if ((from_float || to_float) && !floats) return false;
  if (to == T(BOOL)) {
    *out = from_float ? real_of(from, x) != 0 : x != 0;
  } else if (from_float && to_float) {
    double value = real_of(from, x);
    uint64_t bits = to == T(F64)   ? f64_bits(value)
                    : to == T(F32) ? f32_bits((float)value)
                                   : fold_narrow(to, value);
    *out = kilni_program_float_canonical(to, bits);
  } else if (from_float) {
    *out = integer_of_float(from, to, x);
  } else if (to_float) {
    *out = float_of_integer(from, to, x);
  } else {
    return kilni_program_integer_cast(to, from, x, out);
  }
  return true;
}

uint64_t kilni_program_fold_bitcast(uint8_t from, uint8_t to, uint64_t x) {
  x = kilni_program_float_canonical(from, x);
  return to == T(BOOL) ? x != 0 : x;
}
