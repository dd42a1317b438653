// SPDX-License-Identifier: Apache-2.0
//
// test: what each operator of a program yields: the semantics table as code.
#include "evaluator_values.h"

#include <math.h>
#include <string.h>

#include "program_evaluator.h"

#define TYPE(NAME) KILN_PROGRAM_TYPE_##NAME

enum { CLASS_BOOL, CLASS_UNSIGNED, CLASS_SIGNED, CLASS_FLOAT };

#define TYPE_BYTES(NAME, spelling, bytes, class_) [TYPE(NAME)] = (bytes),
#define TYPE_CLASS(NAME, spelling, bytes, class_) [TYPE(NAME)] = CLASS_##class_,
static const uint8_t BYTES[] = {KILN_PROGRAM_TYPES(TYPE_BYTES)};
static const uint8_t CLASSES[] = {KILN_PROGRAM_TYPES(TYPE_CLASS)};

uint32_t program_type_bytes(uint8_t type) {
  return BYTES[type];
}

bool program_type_is_float(uint8_t type) {
  return CLASSES[type] == CLASS_FLOAT;
}

bool program_type_is_signed(uint8_t type) {
  return CLASSES[type] == CLASS_SIGNED;
}

static uint32_t width(uint8_t type) {
  return 8U * BYTES[type];
}

static uint64_t low_bits(uint64_t x, uint32_t bits) {
  return bits >= 64U ? x : x & ((UINT64_C(1) << bits) - 1U);
}

static uint64_t cut(uint8_t type, uint64_t x) {
  return low_bits(x, width(type));
}

uint64_t program_extend(uint8_t type, uint64_t x) {
  const uint32_t bits = width(type);
  if (!program_type_is_signed(type) || bits == 64U) return x;
  const bool negative = (x >> (bits - 1U) & 1U) != 0U;
  return negative ? x | ~low_bits(UINT64_MAX, bits) : x;
}

static bool is_negative(uint8_t type, uint64_t x) {
  return program_type_is_signed(type) && program_extend(type, x) >> 63U != 0U;
}

// x < y for integers.
static bool is_less(uint8_t type, uint64_t x, uint64_t y) {
  const uint64_t turn = program_type_is_signed(type) ? UINT64_C(1) << 63U : 0U;
  return (program_extend(type, x) ^ turn) < (program_extend(type, y) ^ turn);
}

static uint64_t least(uint8_t type) {
  return program_type_is_signed(type) ? UINT64_C(1) << (width(type) - 1U) : 0U;
}

static uint64_t greatest(uint8_t type) {
  return cut(type, ~least(type));
}

// -- floats -----------------------------------------------------------------

typedef struct format_t {
  int32_t precision;  // bits of the significand, the hidden one included
  int32_t least;      // exponent of the lowest bit of a subnormal
  int32_t exponent_bits;
} format_t;

static format_t format_of(uint8_t type) {
  switch (type) {
    case TYPE(F16):
      return (format_t){11, -24, 5};
    case TYPE(BF16):
      return (format_t){8, -133, 8};
    case TYPE(F32):
      return (format_t){24, -149, 8};
    default:
      return (format_t){53, -1074, 11};
  }
}

uint64_t program_nan(uint8_t type) {
  const format_t f = format_of(type);
  return ((UINT64_C(1) << (f.exponent_bits + 1)) - 1U) << (f.precision - 2);
}

static uint64_t infinity_of(uint8_t type, bool sign) {
  const format_t f = format_of(type);
  return (uint64_t)sign << (width(type) - 1U) |
         ((UINT64_C(1) << f.exponent_bits) - 1U) << (f.precision - 1);
}

bool program_is_nan(uint8_t type, uint64_t x) {
  const uint64_t magnitude = low_bits(x, width(type) - 1U);
  return magnitude > infinity_of(type, false);
}

uint64_t program_nearest(uint8_t type, bool sign, uint64_t magnitude,
                         int32_t exponent) {
  const format_t f = format_of(type);
  const uint64_t signs = (uint64_t)sign << (width(type) - 1U);
  if (magnitude == 0U) return signs;
  int32_t bits = 64;
  while ((magnitude >> (bits - 1)) == 0U) bits--;
  // The exponent of the lowest bit that is kept.
  int32_t low = exponent + bits - f.precision;
  if (low < f.least) low = f.least;
  const int32_t drop = low - exponent;
  uint64_t kept = 0;
  if (drop <= 0) {
    kept = magnitude << -drop;
  } else if (drop <= 64) {
    kept = drop == 64 ? 0U : magnitude >> drop;
    const uint64_t rest =
        drop == 64 ? magnitude : low_bits(magnitude, (uint32_t)drop);
    const uint64_t half = UINT64_C(1) << (drop - 1);
    if (rest > half || (rest == half && (kept & 1U) != 0U)) kept++;
  }
  if (kept == UINT64_C(1) << f.precision) {
    kept >>= 1;
    low++;
  }
  if (kept < UINT64_C(1) << (f.precision - 1)) return signs | kept;
  const int32_t stored = low - f.least + 1;
  if (stored >= (1 << f.exponent_bits) - 1) return infinity_of(type, sign);
  return signs | (uint64_t)stored << (f.precision - 1) |
         low_bits(kept, (uint32_t)f.precision - 1U);
}

static double from_f64(uint64_t x) {
  double value = 0.0;
  memcpy(&value, &x, sizeof value);
  return value;
}

static uint64_t to_f64(double value) {
  uint64_t x = 0;
  memcpy(&x, &value, sizeof x);
  return x;
}

static uint64_t to_f32(float value) {
  uint32_t x = 0;
  memcpy(&x, &value, sizeof x);
  return x;
}

double program_number(uint8_t type, uint64_t x) {
  if (type == TYPE(F64)) return from_f64(x);
  const format_t f = format_of(type);
  const bool sign = x >> (width(type) - 1U) != 0U;
  const uint64_t magnitude = low_bits(x, width(type) - 1U);
  if (magnitude > infinity_of(type, false)) return (double)NAN;
  double value = (double)INFINITY;
  if (magnitude < infinity_of(type, false)) {
    const int32_t stored = (int32_t)(magnitude >> (f.precision - 1));
    uint64_t kept = low_bits(magnitude, (uint32_t)f.precision - 1U);
    if (stored != 0) kept |= UINT64_C(1) << (f.precision - 1);
    value = ldexp((double)kept, f.least + (stored > 0 ? stored - 1 : 0));
  }
  return sign ? -value : value;
}

// To a float type of at most 32 bits, with one rounding.
static uint64_t narrow(uint8_t type, double value) {
  if (isnan(value)) return program_nan(type);
  if (isinf(value)) return infinity_of(type, value < 0.0);
  const uint64_t bits = to_f64(value);
  const uint64_t fraction = low_bits(bits, 52);
  const int32_t stored = (int32_t)(bits >> 52U & 0x7ffU);
  const uint64_t magnitude = stored ? fraction | UINT64_C(1) << 52U : fraction;
  return program_nearest(type, bits >> 63U != 0U, magnitude,
                         (stored ? stored : 1) - 1075);
}

// The result of an operation in f32: f16 and bf16 round it once more.
static uint64_t settle(uint8_t type, float value) {
  return type == TYPE(F32) ? to_f32(value) : narrow(type, (double)value);
}

static float small(uint8_t type, uint64_t x) {
  return (float)program_number(type, x);
}

#define FLOAT_1(wide, small_)       \
  do {                              \
    if (type == TYPE(F64)) {        \
      const double a = from_f64(x); \
      return to_f64(wide);          \
    }                               \
    const float a = small(type, x); \
    return settle(type, small_);    \
  } while (0)

#define FLOAT_2(wide, small_)                           \
  do {                                                  \
    if (type == TYPE(F64)) {                            \
      const double a = from_f64(x), b = from_f64(y);    \
      return to_f64(wide);                              \
    }                                                   \
    const float a = small(type, x), b = small(type, y); \
    return settle(type, small_);                        \
  } while (0)

#define UNARY(NAME) static uint64_t unary_##NAME(uint8_t type, uint64_t x)
#define BINARY(NAME) \
  static uint64_t binary_##NAME(uint8_t type, uint64_t x, uint64_t y)

// -- one operand ------------------------------------------------------------

UNARY(NEGATE) {
  if (!program_type_is_float(type)) return cut(type, 0U - x);
  return x ^ UINT64_C(1) << (width(type) - 1U);
}

UNARY(BIT_NOT) {
  return cut(type, ~x);
}

UNARY(NOT) {
  (void)type;
  return x == 0U;
}

UNARY(POPCOUNT) {
  (void)type;
  uint64_t count = 0;
  for (uint32_t i = 0; i < 64U; i++) count += x >> i & 1U;
  return count;
}

UNARY(CLZ) {
  uint32_t count = 0;
  while (count < width(type) && (x >> (width(type) - 1U - count) & 1U) == 0U) {
    count++;
  }
  return count;
}

UNARY(CTZ) {
  uint32_t count = 0;
  while (count < width(type) && (x >> count & 1U) == 0U) count++;
  return count;
}

UNARY(REVERSE_BITS) {
  uint64_t result = 0;
  for (uint32_t i = 0; i < width(type); i++) {
    result |= (x >> i & 1U) << (width(type) - 1U - i);
  }
  return result;
}

UNARY(UNPACK4_LOW) {
  (void)type;
  return x & 15U;
}

UNARY(UNPACK4_HIGH) {
  (void)type;
  return x >> 4U & 15U;
}

UNARY(UNPACK8_LOW) {
  (void)type;
  return x & 255U;
}

UNARY(UNPACK8_HIGH) {
  (void)type;
  return x >> 8U & 255U;
}

UNARY(ABS) {
  if (program_type_is_float(type)) return low_bits(x, width(type) - 1U);
  return is_negative(type, x) ? cut(type, 0U - x) : x;
}

UNARY(SIGN) {
  if (!program_type_is_float(type)) {
    if (x == 0U) return 0U;
    return is_negative(type, x) ? cut(type, UINT64_MAX) : 1U;
  }
  const double value = program_number(type, x);
  if (isnan(value) || value == 0.0) return x;
  return program_nearest(type, value < 0.0, 1U, 0);
}

// clang-format off
UNARY(FLOOR) { FLOAT_1(floor(a), floorf(a)); }
UNARY(CEIL) { FLOAT_1(ceil(a), ceilf(a)); }
UNARY(TRUNC) { FLOAT_1(trunc(a), truncf(a)); }
UNARY(ROUND) { FLOAT_1(nearbyint(a), nearbyintf(a)); }
UNARY(ROUND_AWAY) { FLOAT_1(round(a), roundf(a)); }
UNARY(IS_NAN) { return program_is_nan(type, x); }
UNARY(IS_INF) { return isinf(program_number(type, x)) != 0; }
UNARY(IS_FINITE) { return isfinite(program_number(type, x)) != 0; }
UNARY(SQRT) { FLOAT_1(sqrt(a), sqrtf(a)); }
UNARY(RECIPROCAL) { FLOAT_1(1.0 / a, 1.0F / a); }
// clang-format on

// Strict math is the same everywhere because it is the library's program that
// runs everywhere; MPFR judges it (test_program_math).
#define STRICT_UNARY(NAME)                                           \
  UNARY(NAME) {                                                      \
    return program_strict_unary(KILN_PROGRAM_UNARY_##NAME, type, x); \
  }
#define STRICT_BINARY(NAME)                                               \
  BINARY(NAME) {                                                          \
    return program_strict_binary(KILN_PROGRAM_BINARY_##NAME, type, x, y); \
  }
STRICT_UNARY(INVERSE_SQRT)
STRICT_UNARY(EXP)
STRICT_UNARY(EXP2)
STRICT_UNARY(LOG)
STRICT_UNARY(LOG2)
STRICT_UNARY(SIN)
STRICT_UNARY(COS)
STRICT_UNARY(TAN)
STRICT_UNARY(ASIN)
STRICT_UNARY(ACOS)
STRICT_UNARY(ATAN)
STRICT_UNARY(SINH)
STRICT_UNARY(COSH)
STRICT_UNARY(TANH)

// -- two operands -----------------------------------------------------------

BINARY(ADD) {
  if (!program_type_is_float(type)) return cut(type, x + y);
  FLOAT_2(a + b, a + b);
}

BINARY(SUB) {
  if (!program_type_is_float(type)) return cut(type, x - y);
  FLOAT_2(a - b, a - b);
}

BINARY(MUL) {
  if (!program_type_is_float(type)) return cut(type, x * y);
  FLOAT_2(a * b, a * b);
}

// The size of an integer without its sign.
static uint64_t magnitude_of(uint8_t type, uint64_t x) {
  const uint64_t wide = program_extend(type, x);
  return is_negative(type, x) ? 0U - wide : wide;
}

BINARY(DIV) {
  if (program_type_is_float(type)) FLOAT_2(a / b, a / b);
  if (y == 0U) return program_type_is_signed(type) ? 0U : greatest(type);
  const uint64_t q = magnitude_of(type, x) / magnitude_of(type, y);
  return cut(type, is_negative(type, x) != is_negative(type, y) ? 0U - q : q);
}

BINARY(REM) {
  if (program_type_is_float(type)) FLOAT_2(fmod(a, b), fmodf(a, b));
  if (y == 0U) return 0U;
  const uint64_t r = magnitude_of(type, x) % magnitude_of(type, y);
  return cut(type, is_negative(type, x) ? 0U - r : r);
}

// clang-format off
BINARY(BIT_AND) { (void)type; return x & y; }
BINARY(BIT_OR) { (void)type; return x | y; }
BINARY(BIT_XOR) { (void)type; return x ^ y; }
BINARY(AND) { (void)type; return x != 0U && y != 0U; }
BINARY(OR) { (void)type; return x != 0U || y != 0U; }
// clang-format on

static uint32_t shift_count(uint8_t type, uint64_t y) {
  return (uint32_t)(y % width(type));
}

BINARY(SHL) {
  return cut(type, x << shift_count(type, y));
}

BINARY(SHR) {
  uint64_t wide = program_extend(type, x);
  const uint64_t top = is_negative(type, x) ? UINT64_C(1) << 63U : 0U;
  for (uint32_t i = 0; i < shift_count(type, y); i++) wide = wide >> 1U | top;
  return cut(type, wide);
}

BINARY(ROTATE_LEFT) {
  for (uint32_t i = 0; i < shift_count(type, y); i++) {
    x = cut(type, x << 1U) | x >> (width(type) - 1U);
  }
  return x;
}

BINARY(ROTATE_RIGHT) {
  for (uint32_t i = 0; i < shift_count(type, y); i++) {
    x = x >> 1U | (x & 1U) << (width(type) - 1U);
  }
  return x;
}

#define COMPARE(NAME, sign, integers)                              \
  BINARY(NAME) {                                                   \
    if (program_type_is_float(type)) {                             \
      return program_number(type, x) sign program_number(type, y); \
    }                                                              \
    return (integers);                                             \
  }
COMPARE(EQ, ==, x == y)
COMPARE(NE, !=, x != y)
COMPARE(LT, <, is_less(type, x, y))
COMPARE(GT, >, is_less(type, y, x))
COMPARE(LE, <=, !is_less(type, y, x))
COMPARE(GE, >=, !is_less(type, x, y))

// x comes before y: -0 before 0.
static bool comes_before(uint8_t type, uint64_t x, uint64_t y) {
  if (!program_type_is_float(type)) return is_less(type, x, y);
  const double a = program_number(type, x), b = program_number(type, y);
  if (a == 0.0 && b == 0.0) return signbit(a) && !signbit(b);
  return a < b;
}

BINARY(MIN) {
  if (program_type_is_float(type)) {
    if (program_is_nan(type, x)) return y;
    if (program_is_nan(type, y)) return x;
  }
  return comes_before(type, y, x) ? y : x;
}

BINARY(MAX) {
  if (program_type_is_float(type)) {
    if (program_is_nan(type, x)) return y;
    if (program_is_nan(type, y)) return x;
  }
  return comes_before(type, x, y) ? y : x;
}

BINARY(ABS_DIFF) {
  if (program_type_is_float(type)) FLOAT_2(fabs(a - b), fabsf(a - b));
  const uint64_t a = program_extend(type, x), b = program_extend(type, y);
  return cut(type, is_less(type, x, y) ? b - a : a - b);
}

BINARY(ADD_SAT) {
  const uint64_t sum = cut(type, x + y);
  if (!program_type_is_signed(type)) return sum < x ? greatest(type) : sum;
  const bool nx = is_negative(type, x), ny = is_negative(type, y);
  if (nx != ny || is_negative(type, sum) == nx) return sum;
  return nx ? least(type) : greatest(type);
}

BINARY(SUB_SAT) {
  const uint64_t difference = cut(type, x - y);
  if (!program_type_is_signed(type)) return x < y ? 0U : difference;
  const bool nx = is_negative(type, x), ny = is_negative(type, y);
  if (nx == ny || is_negative(type, difference) == nx) return difference;
  return nx ? least(type) : greatest(type);
}

// The product of two 64-bit numbers, by 32-bit digits.
static void product(uint64_t x, uint64_t y, uint64_t* high, uint64_t* low) {
  const uint64_t x0 = x & UINT32_MAX, x1 = x >> 32U;
  const uint64_t y0 = y & UINT32_MAX, y1 = y >> 32U;
  const uint64_t middle = x1 * y0 + (x0 * y0 >> 32U);
  const uint64_t carry = x0 * y1 + (middle & UINT32_MAX);
  *low = x * y;
  *high = x1 * y1 + (middle >> 32U) + (carry >> 32U);
}

// The product of two integers as a signed number of 128 bits.
static void signed_product(uint8_t type, uint64_t x, uint64_t y, uint64_t* high,
                           uint64_t* low) {
  product(magnitude_of(type, x), magnitude_of(type, y), high, low);
  if (is_negative(type, x) != is_negative(type, y)) {
    *low = 0U - *low;
    *high = ~*high + (*low == 0U ? 1U : 0U);
  }
}

BINARY(MUL_SAT) {
  uint64_t high = 0, low = 0;
  signed_product(type, x, y, &high, &low);
  const uint64_t kept = cut(type, low);
  const bool negative = is_negative(type, x) != is_negative(type, y);
  const uint64_t wide = program_extend(type, kept);
  const uint64_t above = is_negative(type, kept) ? UINT64_MAX : 0U;
  if (wide == low && above == high) return kept;
  return negative ? least(type) : greatest(type);
}

BINARY(MUL_HIGH) {
  uint64_t high = 0, low = 0;
  signed_product(type, x, y, &high, &low);
  const uint32_t bits = width(type);
  return bits == 64U ? high : cut(type, low >> bits);
}

STRICT_BINARY(POW)
STRICT_BINARY(ATAN2)

// -- tables -----------------------------------------------------------------

#define UNARY_ROW(NAME, ...)  unary_##NAME,
#define BINARY_ROW(NAME, ...) binary_##NAME,

uint64_t program_unary(uint32_t op, uint8_t type, uint64_t x) {
  static uint64_t (*const table[])(
      uint8_t, uint64_t) = {KILN_PROGRAM_UNARY_OPERATORS(UNARY_ROW)};
  return table[op](type, x);
}

uint64_t program_binary(uint32_t op, uint8_t type, uint64_t x, uint64_t y) {
  static uint64_t (*const table[])(uint8_t, uint64_t, uint64_t) = {
      KILN_PROGRAM_BINARY_OPERATORS(BINARY_ROW)};
  return table[op](type, x, y);
}

uint64_t program_fma(uint8_t type, uint64_t x, uint64_t y, uint64_t z) {
  if (type == TYPE(F64)) {
    return to_f64(fma(from_f64(x), from_f64(y), from_f64(z)));
  }
  return settle(type, fmaf(small(type, x), small(type, y), small(type, z)));
}

static uint64_t float_to_integer(uint8_t to, double value) {
  if (isnan(value)) return 0U;
  value = trunc(value);
  const int bits = (int)width(to) - (program_type_is_signed(to) ? 1 : 0);
  if (value >= ldexp(1.0, bits)) return greatest(to);
  if (value < 0.0 && !program_type_is_signed(to)) return 0U;
  if (value < -ldexp(1.0, bits)) return least(to);
  const uint64_t magnitude = (uint64_t)fabs(value);
  return cut(to, value < 0.0 ? 0U - magnitude : magnitude);
}

uint64_t program_cast(uint8_t from, uint8_t to, uint64_t x) {
  if (to == TYPE(BOOL)) {
    return program_type_is_float(from) ? program_number(from, x) != 0.0
                                       : x != 0U;
  }
  if (program_type_is_float(from)) {
    const double value = program_number(from, x);
    if (!program_type_is_float(to)) return float_to_integer(to, value);
    if (from == to) return x;
    return to == TYPE(F64) ? to_f64(value) : narrow(to, value);
  }
  if (!program_type_is_float(to)) return cut(to, program_extend(from, x));
  return program_nearest(to, is_negative(from, x), magnitude_of(from, x), 0);
}

uint64_t program_bitcast(uint8_t from, uint8_t to, uint64_t x) {
  const bool nan = program_type_is_float(from) && program_is_nan(from, x);
  (void)to;
  return nan ? program_nan(from) : x;
}

bool program_same(uint8_t type, uint64_t x, uint64_t y) {
  if (x == y) return true;
  return program_type_is_float(type) && program_is_nan(type, x) &&
         program_is_nan(type, y);
}

// X(what follows REDUCE_ or SCAN_, the operator)
// clang-format off
#define JOINS(X)                                                         \
  X(REDUCE_ADD, ADD) X(REDUCE_MUL, MUL) X(REDUCE_MIN, MIN)               \
  X(REDUCE_MAX, MAX) X(REDUCE_AND, BIT_AND) X(REDUCE_OR, BIT_OR)         \
  X(REDUCE_XOR, BIT_XOR) X(SCAN_ADD, ADD) X(SCAN_MUL, MUL)               \
  X(SCAN_MIN, MIN) X(SCAN_MAX, MAX) X(SCAN_EXCLUSIVE_ADD, ADD)
// clang-format on

uint32_t program_join(uint32_t subgroup_op) {
#define JOIN_CASE(name, op)          \
  case KILN_PROGRAM_SUBGROUP_##name: \
    return KILN_PROGRAM_BINARY_##op;
  switch (subgroup_op) {
    JOINS(JOIN_CASE)
    default:
      return UINT32_MAX;
  }
}

uint64_t program_neutral(uint32_t subgroup_op, uint8_t type) {
  const bool is_float = program_type_is_float(type);
  switch (program_join(subgroup_op)) {
    case KILN_PROGRAM_BINARY_ADD:
      return is_float ? UINT64_C(1) << (width(type) - 1U) : 0U;
    case KILN_PROGRAM_BINARY_MUL:
      return is_float ? program_nearest(type, false, 1U, 0) : 1U;
    case KILN_PROGRAM_BINARY_MIN:
      return is_float ? infinity_of(type, false) : greatest(type);
    case KILN_PROGRAM_BINARY_MAX:
      return is_float ? infinity_of(type, true) : least(type);
    case KILN_PROGRAM_BINARY_BIT_AND:
      return cut(type, UINT64_MAX);
    default:
      return 0U;
  }
}
