// SPDX-License-Identifier: Apache-2.0
//
// program: operators on constants.
//
// The same total meaning as the instructions that the lowering writes, on the
// bits of a type. An operator without a case here is left to the device.
#include <fenv.h>
#include <math.h>
#include <string.h>

#include "program/lower/program_lowering.h"

#define U(NAME) KILN_PROGRAM_UNARY_##NAME
#define B(NAME) KILN_PROGRAM_BINARY_##NAME
#define T(NAME) KILN_PROGRAM_TYPE_##NAME

static uint32_t width_of(uint8_t type) {
  return 8 * kilni_type_bytes(type);
}

static uint64_t mask_of(uint8_t type) {
  return UINT64_MAX >> (64 - width_of(type));
}

static int64_t signed_of(uint8_t type, uint64_t x) {
  uint32_t shift = 64 - width_of(type);
  uint64_t up = x << shift;
  // The sign by hand: a shift of a negative number is the compiler's choice.
  uint64_t down = up >> shift;
  if (shift != 0 && up >> 63 != 0) down |= UINT64_MAX << (64 - shift);
  int64_t value;
  memcpy(&value, &down, sizeof(value));
  return value;
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

bool kilni_fold_floats(void) {
  volatile float least = 0x1p-149f;
  volatile float half = 0.5f;
  volatile float normal = 0x1p-126f;
  return fegetround() == FE_TONEAREST && least != 0 && normal * half != 0;
}

uint32_t kilni_fold_widen(uint8_t type, uint64_t bits) {
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
    if (part != 0) return kilni_float_canonical(type, infinity | 1);
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

static uint64_t narrow(uint8_t type, double x) {
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
      return (double)f32_of(kilni_fold_widen(type, x));
  }
}

// The result of an f32 operation on f32, f16 or bf16.
static uint64_t small_bits(uint8_t type, float value) {
  uint64_t bits = type == T(F32) ? f32_bits(value) : narrow(type, value);
  return kilni_float_canonical(type, bits);
}

// ---- Integers ----

static uint32_t popcount(uint64_t x) {
  uint32_t count = 0;
  for (; x != 0; x &= x - 1) count++;
  return count;
}

static uint64_t reverse(uint64_t x, uint32_t width) {
  uint64_t out = 0;
  for (uint32_t i = 0; i < width; i++) out |= (x >> i & 1) << (width - 1 - i);
  return out;
}

static bool unary_integer(uint32_t op, uint8_t type, uint64_t x,
                          uint64_t* out) {
  uint32_t width = width_of(type);
  uint32_t zeros = 0;
  switch (op) {
    case U(NEGATE):
      return *out = (0 - x) & mask_of(type), true;
    case U(BIT_NOT):
      return *out = ~x & mask_of(type), true;
    case U(POPCOUNT):
      return *out = popcount(x), true;
    case U(CLZ):
      while (zeros < width && (x >> (width - 1 - zeros) & 1) == 0) zeros++;
      return *out = zeros, true;
    case U(CTZ):
      while (zeros < width && (x >> zeros & 1) == 0) zeros++;
      return *out = zeros, true;
    case U(REVERSE_BITS):
      return *out = reverse(x, width), true;
    case U(UNPACK4_LOW):
      return *out = x & 15, true;
    case U(UNPACK4_HIGH):
      return *out = x >> 4 & 15, true;
    case U(UNPACK8_LOW):
      return *out = x & 255, true;
    case U(UNPACK8_HIGH):
      return *out = x >> 8 & 255, true;
    case U(ABS):
      if (signed_of(type, x) < 0) x = (0 - x) & mask_of(type);
      return *out = x, true;
    case U(SIGN):
      if (x != 0) x = signed_of(type, x) < 0 ? mask_of(type) : 1;
      return *out = x, true;
    default:
      return false;
  }
}

static bool unary_float(uint32_t op, uint8_t type, uint64_t x, uint64_t* out) {
  uint64_t sign = UINT64_C(1) << (width_of(type) - 1);
  double value = real_of(type, x);
  switch (op) {
    case U(NEGATE):
      return *out = kilni_float_canonical(type, x ^ sign), true;
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

bool kilni_fold_unary(uint32_t op, uint8_t type, uint64_t x, bool floats,
                      uint64_t* out) {
  if (type == T(BOOL)) {
    *out = x == 0;
    return op == U(NOT);
  }
  if (kilni_type_class(type) != KILNI_CLASS_FLOAT) {
    return unary_integer(op, type, x, out);
  }
  return floats && unary_float(op, type, x, out);
}

static uint64_t divide(uint32_t op, uint8_t type, uint64_t x, uint64_t y) {
  bool quotient = op == B(DIV);
  if (kilni_type_class(type) == KILNI_CLASS_UNSIGNED) {
    if (y == 0) return quotient ? mask_of(type) : 0;
    return quotient ? x / y : x % y;
  }
  int64_t a = signed_of(type, x), b = signed_of(type, y);
  if (b == 0) return 0;
  if (b == -1) return quotient ? (0 - x) & mask_of(type) : 0;
  return (uint64_t)(quotient ? a / b : a % b) & mask_of(type);
}

static uint64_t shift(uint32_t op, uint8_t type, uint64_t x, uint64_t y) {
  uint32_t width = width_of(type);
  uint32_t by = (uint32_t)y & (width - 1);
  uint64_t mask = mask_of(type);
  if (by == 0) return x;
  switch (op) {
    case B(SHL):
      return x << by & mask;
    case B(SHR):
      if (kilni_type_class(type) == KILNI_CLASS_SIGNED &&
          signed_of(type, x) < 0) {
        return (x >> by | mask << (width - by)) & mask;
      }
      return x >> by;
    case B(ROTATE_LEFT):
      return (x << by | x >> (width - by)) & mask;
    default:
      return (x >> by | x << (width - by)) & mask;
  }
}

static bool compare_integer(uint32_t op, uint8_t type, uint64_t x, uint64_t y) {
  bool less = kilni_type_class(type) == KILNI_CLASS_SIGNED
                  ? signed_of(type, x) < signed_of(type, y)
                  : x < y;
  switch (op) {
    case B(EQ):
      return x == y;
    case B(NE):
      return x != y;
    case B(LT):
      return less;
    case B(GE):
      return !less;
    case B(LE):
      return less || x == y;
    default:
      return !less && x != y;
  }
}

static bool binary_integer(uint32_t op, uint8_t type, uint64_t x, uint64_t y,
                           uint64_t* out) {
  uint64_t mask = mask_of(type);
  switch (op) {
    case B(ADD):
      return *out = (x + y) & mask, true;
    case B(SUB):
      return *out = (x - y) & mask, true;
    case B(MUL):
      return *out = x * y & mask, true;
    case B(DIV):
    case B(REM):
      return *out = divide(op, type, x, y), true;
    case B(BIT_AND):
      return *out = x & y, true;
    case B(BIT_OR):
      return *out = x | y, true;
    case B(BIT_XOR):
      return *out = x ^ y, true;
    case B(SHL):
    case B(SHR):
    case B(ROTATE_LEFT):
    case B(ROTATE_RIGHT):
      return *out = shift(op, type, x, y), true;
    case B(EQ):
    case B(NE):
    case B(LT):
    case B(GT):
    case B(LE):
    case B(GE):
      return *out = compare_integer(op, type, x, y), true;
    case B(MIN):
      return *out = compare_integer(B(LT), type, x, y) ? x : y, true;
    case B(MAX):
      return *out = compare_integer(B(LT), type, x, y) ? y : x, true;
    default:
      return false;
  }
}

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
  *out = wide ? kilni_float_canonical(type, f64_bits(d)) : small_bits(type, f);
  return true;
}

bool kilni_fold_binary(uint32_t op, uint8_t type, uint64_t x, uint64_t y,
                       bool floats, uint64_t* out) {
  if (type == T(BOOL)) {
    *out = op == B(AND) ? x & y : op == B(OR) ? x | y : x ^ y;
    if (op == B(EQ)) *out ^= 1;
    return op == B(AND) || op == B(OR) || op == B(EQ) || op == B(NE);
  }
  if (kilni_type_class(type) != KILNI_CLASS_FLOAT) {
    return binary_integer(op, type, x, y, out);
  }
  return floats && binary_float(op, type, x, y, out);
}

bool kilni_fold_fma(uint8_t type, uint64_t x, uint64_t y, uint64_t z,
                    bool floats, uint64_t* out) {
  if (!floats) return false;
  double a = real_of(type, x), b = real_of(type, y), c = real_of(type, z);
  if (type == T(F64)) {
    *out = kilni_float_canonical(type, f64_bits(fma(a, b, c)));
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
  bool is_signed = kilni_type_class(from) == KILNI_CLASS_SIGNED;
  int64_t s = signed_of(from, x);
  bool negative = is_signed && s < 0;
  if (to == T(F64)) return f64_bits(is_signed ? (double)s : (double)x);
  if (to == T(F32)) return f32_bits(is_signed ? (float)s : (float)x);
  return narrow(to, odd_real(negative, negative ? 0 - (uint64_t)s : x));
}

static uint64_t integer_of_float(uint8_t from, uint8_t to, uint64_t x) {
  double value = real_of(from, x);
  uint32_t width = width_of(to);
  bool is_signed = kilni_type_class(to) == KILNI_CLASS_SIGNED;
  if (isnan(value)) return 0;
  double top = ldexp(1, (int)(is_signed ? width - 1 : width));
  uint64_t most = is_signed ? mask_of(to) >> 1 : mask_of(to);
  if (value >= top) return most;
  if (!is_signed) return value <= 0 ? 0 : (uint64_t)value;
  if (value < -top) return most + 1;
  return (uint64_t)(int64_t)value & mask_of(to);
}

bool kilni_fold_cast(uint8_t from, uint8_t to, uint64_t x, bool floats,
                     uint64_t* out) {
  bool from_float = kilni_type_class(from) == KILNI_CLASS_FLOAT;
  bool to_float = kilni_type_class(to) == KILNI_CLASS_FLOAT;
  if ((from_float || to_float) && !floats) return false;
  if (to == T(BOOL)) {
    *out = from_float ? real_of(from, x) != 0 : x != 0;
  } else if (from_float && to_float) {
    double value = real_of(from, x);
    uint64_t bits = to == T(F64)   ? f64_bits(value)
                    : to == T(F32) ? f32_bits((float)value)
                                   : narrow(to, value);
    *out = kilni_float_canonical(to, bits);
  } else if (from_float) {
    *out = integer_of_float(from, to, x);
  } else if (to_float) {
    *out = float_of_integer(from, to, x);
  } else {
    if (kilni_type_class(from) == KILNI_CLASS_SIGNED) {
      x = (uint64_t)signed_of(from, x);
    }
    *out = x & mask_of(to);
  }
  return true;
}

uint64_t kilni_fold_bitcast(uint8_t from, uint8_t to, uint64_t x) {
  x = kilni_float_canonical(from, x);
  return to == T(BOOL) ? x != 0 : x;
}
