// SPDX-License-Identifier: Apache-2.0
//
// program: integer and bool operators on values.
#include "program/ir/program_integers.h"

#include "program/ir/program_types.h"

static uint32_t integers_width_of(uint32_t type) {
  return 8 * kilni_program_type_bytes(type);
}

static bool integers_is_signed(uint32_t type) {
  return kilni_program_type_class(type) == KILNI_CLASS_SIGNED;
}

static uint64_t integers_mask_of(uint32_t type) {
  if (type == KILN_PROGRAM_TYPE_BOOL) return 1;
  return UINT64_MAX >> (64 - integers_width_of(type));
}

int64_t kilni_program_integer_signed(uint32_t type, uint64_t x) {
  uint64_t sign = (integers_mask_of(type) >> 1) + 1;
  if (integers_is_signed(type) && (x & sign) != 0) x |= ~integers_mask_of(type);
  return (int64_t)x;
}

static bool integers_is_whole(uint32_t type) {
  return kilni_program_type_is_integer(type) || type == KILN_PROGRAM_TYPE_BOOL;
}

// ---- One operand ----

static uint64_t count_ones(uint64_t x) {
  uint64_t count = 0;
  for (; x != 0; x &= x - 1) count++;
  return count;
}

static uint64_t leading(uint32_t type, uint64_t x) {
  uint64_t count = integers_width_of(type);
  for (; x != 0; x >>= 1) count--;
  return count;
}

static uint64_t trailing(uint32_t type, uint64_t x) {
  uint64_t count = 0;
  if (x == 0) return integers_width_of(type);
  for (; (x & 1) == 0; x >>= 1) count++;
  return count;
}

static uint64_t reversed(uint32_t type, uint64_t x) {
  uint64_t y = 0;
  for (uint32_t i = 0; i < integers_width_of(type); i++) {
    y = y << 1 | (x >> i & 1);
  }
  return y;
}

bool kilni_program_integer_unary(uint32_t op, uint32_t type, uint64_t x,
                                 uint64_t* out_value) {
  *out_value = 0;
  if (!integers_is_whole(type) || kilni_program_type_of_unary(op, type) == 0) {
    return false;
  }
  int64_t s = kilni_program_integer_signed(type, x);
  uint64_t y = 0;
  switch (op) {
    case KILN_PROGRAM_UNARY_NEGATE:
      y = UINT64_C(0) - x;
      break;
    case KILN_PROGRAM_UNARY_BIT_NOT:
      y = ~x;
      break;
    case KILN_PROGRAM_UNARY_NOT:
      y = !x;
      break;
    case KILN_PROGRAM_UNARY_POPCOUNT:
      y = count_ones(x);
      break;
    case KILN_PROGRAM_UNARY_CLZ:
      y = leading(type, x);
      break;
    case KILN_PROGRAM_UNARY_CTZ:
      y = trailing(type, x);
      break;
    case KILN_PROGRAM_UNARY_REVERSE_BITS:
      y = reversed(type, x);
      break;
    case KILN_PROGRAM_UNARY_UNPACK4_LOW:
      y = x & 15;
      break;
    case KILN_PROGRAM_UNARY_UNPACK4_HIGH:
      y = x >> 4 & 15;
      break;
    case KILN_PROGRAM_UNARY_UNPACK8_LOW:
      y = x & 255;
      break;
    case KILN_PROGRAM_UNARY_UNPACK8_HIGH:
      y = x >> 8 & 255;
      break;
    case KILN_PROGRAM_UNARY_ABS:
      y = s < 0 ? UINT64_C(0) - x : x;
      break;
    case KILN_PROGRAM_UNARY_SIGN:
      y = s < 0 ? UINT64_MAX : s > 0;
      break;
    default:
      return false;
  }
  *out_value = y & integers_mask_of(kilni_program_type_of_unary(op, type));
  return true;
}

// ---- Two operands ----

static bool integers_less(uint32_t type, uint64_t x, uint64_t y) {
  if (!integers_is_signed(type)) return x < y;
  return kilni_program_integer_signed(type, x) <
         kilni_program_integer_signed(type, y);
}

static uint64_t least_of(uint32_t type) {
  return integers_is_signed(type) ? (integers_mask_of(type) >> 1) + 1 : 0;
}

static uint64_t most_of(uint32_t type) {
  return integers_is_signed(type) ? integers_mask_of(type) >> 1
                                  : integers_mask_of(type);
}

static uint64_t integers_divide(uint32_t type, uint64_t x, uint64_t y,
                                bool rest) {
  if (!integers_is_signed(type)) {
    if (y == 0) return rest ? 0 : integers_mask_of(type);
    return rest ? x % y : x / y;
  }
  if (y == 0) return 0;
  // The least by -1 overflows in C.
  if (y == integers_mask_of(type)) return rest ? 0 : UINT64_C(0) - x;
  int64_t a = kilni_program_integer_signed(type, x),
          b = kilni_program_integer_signed(type, y);
  return (uint64_t)(rest ? a % b : a / b);
}

static uint64_t integers_shift(uint32_t op, uint32_t type, uint64_t x,
                               uint64_t by) {
  uint32_t width = integers_width_of(type);
  by %= width;
  switch (op) {
    case KILN_PROGRAM_BINARY_SHL:
      return x << by;
    case KILN_PROGRAM_BINARY_SHR:
      if (!integers_is_signed(type)) return x >> by;
      // Right shifts of negative numbers are the compiler's own affair in C.
      if (kilni_program_integer_signed(type, x) >= 0) return x >> by;
      return ~((~x & integers_mask_of(type)) >> by);
    case KILN_PROGRAM_BINARY_ROTATE_RIGHT:
      by = (width - by) % width;
      break;
    default:
      break;
  }
  return by == 0 ? x : x << by | x >> (width - by);
}

// The upper half of the product of two 64-bit magnitudes, and the lower.
static uint64_t wide_product(uint64_t x, uint64_t y, uint64_t* out_low) {
  uint64_t a = x >> 32, b = x & UINT32_MAX, c = y >> 32, d = y & UINT32_MAX;
  uint64_t middle = a * d + (b * d >> 32);
  uint64_t other = b * c + (middle & UINT32_MAX);
  *out_low = x * y;
  return a * c + (middle >> 32) + (other >> 32);
}

// The product as sign and a magnitude of 128 bits.
static bool integers_product(uint32_t type, uint64_t x, uint64_t y,
                             uint64_t* out_high, uint64_t* out_low) {
  int64_t a = kilni_program_integer_signed(type, x),
          b = kilni_program_integer_signed(type, y);
  bool minus = integers_is_signed(type) && (a < 0) != (b < 0);
  if (integers_is_signed(type) && a < 0) x = UINT64_C(0) - (uint64_t)a;
  if (integers_is_signed(type) && b < 0) y = UINT64_C(0) - (uint64_t)b;
  *out_high = wide_product(x, y, out_low);
  return minus;
}

static uint64_t multiply_high(uint32_t type, uint64_t x, uint64_t y) {
  uint64_t high, low;
  bool minus = integers_product(type, x, y, &high, &low);
  if (minus) {
    high = ~high + (low == 0 ? 1 : 0);
    low = UINT64_C(0) - low;
  }
  return integers_width_of(type) == 64 ? high : low >> integers_width_of(type);
}

static uint64_t multiply_sat(uint32_t type, uint64_t x, uint64_t y) {
  uint64_t high, low;
  bool minus = integers_product(type, x, y, &high, &low);
  uint64_t most = minus ? least_of(type) : most_of(type);
  if (high != 0 || low > most) return most;
  return minus ? UINT64_C(0) - low : low;
}

static uint64_t add_sat(uint32_t type, uint64_t x, uint64_t y, bool sub) {
  uint64_t mask = integers_mask_of(type);
  uint64_t sum = (sub ? x - y : x + y) & mask;
  if (!integers_is_signed(type)) {
    if (sub) return x < y ? 0 : sum;
    return sum < x ? mask : sum;
  }
  uint64_t sign = least_of(type);
  uint64_t other = sub ? ~y : y;
  bool over = ((x ^ sum) & (other ^ sum) & sign) != 0;
  if (!over) return sum;
  return (x & sign) != 0 ? sign : most_of(type);
}

static uint64_t integers_compare(uint32_t op, uint32_t type, uint64_t x,
                                 uint64_t y) {
  switch (op) {
    case KILN_PROGRAM_BINARY_EQ:
      return x == y;
    case KILN_PROGRAM_BINARY_NE:
      return x != y;
    case KILN_PROGRAM_BINARY_LT:
      return integers_less(type, x, y);
    case KILN_PROGRAM_BINARY_GT:
      return integers_less(type, y, x);
    case KILN_PROGRAM_BINARY_LE:
      return !integers_less(type, y, x);
    default:
      return !integers_less(type, x, y);
  }
}

bool kilni_program_integer_binary(uint32_t op, uint32_t type, uint64_t x,
                                  uint32_t right, uint64_t y,
                                  uint64_t* out_value) {
  *out_value = 0;
  uint32_t result = kilni_program_type_of_binary(op, type, right);
  if (!integers_is_whole(type) || result == 0) return false;
  uint64_t z;
  switch (op) {
    case KILN_PROGRAM_BINARY_ADD:
      z = x + y;
      break;
    case KILN_PROGRAM_BINARY_SUB:
      z = x - y;
      break;
    case KILN_PROGRAM_BINARY_MUL:
      z = x * y;
      break;
    case KILN_PROGRAM_BINARY_DIV:
      z = integers_divide(type, x, y, false);
      break;
    case KILN_PROGRAM_BINARY_REM:
      z = integers_divide(type, x, y, true);
      break;
    case KILN_PROGRAM_BINARY_BIT_AND:
    case KILN_PROGRAM_BINARY_AND:
      z = x & y;
      break;
    case KILN_PROGRAM_BINARY_BIT_OR:
    case KILN_PROGRAM_BINARY_OR:
      z = x | y;
      break;
    case KILN_PROGRAM_BINARY_BIT_XOR:
      z = x ^ y;
      break;
    case KILN_PROGRAM_BINARY_SHL:
    case KILN_PROGRAM_BINARY_SHR:
    case KILN_PROGRAM_BINARY_ROTATE_LEFT:
    case KILN_PROGRAM_BINARY_ROTATE_RIGHT:
      z = integers_shift(op, type, x, y);
      break;
    case KILN_PROGRAM_BINARY_MIN:
      z = integers_less(type, y, x) ? y : x;
      break;
    case KILN_PROGRAM_BINARY_MAX:
      z = integers_less(type, x, y) ? y : x;
      break;
    case KILN_PROGRAM_BINARY_ABS_DIFF:
      z = integers_less(type, x, y) ? y - x : x - y;
      break;
    case KILN_PROGRAM_BINARY_ADD_SAT:
      z = add_sat(type, x, y, false);
      break;
    case KILN_PROGRAM_BINARY_SUB_SAT:
      z = add_sat(type, x, y, true);
      break;
    case KILN_PROGRAM_BINARY_MUL_SAT:
      z = multiply_sat(type, x, y);
      break;
    case KILN_PROGRAM_BINARY_MUL_HIGH:
      z = multiply_high(type, x, y);
      break;
    default:
      if (result != KILN_PROGRAM_TYPE_BOOL) return false;
      z = integers_compare(op, type, x, y);
      break;
  }
  *out_value = z & integers_mask_of(result);
  return true;
}

bool kilni_program_integer_cast(uint32_t to, uint32_t from, uint64_t x,
                                uint64_t* out_value) {
  *out_value = 0;
  if (!integers_is_whole(to) || !integers_is_whole(from)) return false;
  if (to == KILN_PROGRAM_TYPE_BOOL) {
    *out_value = x != 0;
  } else {
    *out_value =
        (uint64_t)kilni_program_integer_signed(from, x) & integers_mask_of(to);
  }
  return true;
}

// ---- Expressions ----

// Whether `z`, what x op y wraps to, is another number than x op y.
static bool does_wrap(uint32_t op, uint32_t type, uint64_t x, uint64_t y,
                      uint64_t z) {
  uint64_t mask = integers_mask_of(type), above = 0;
  switch (op) {
    case KILN_PROGRAM_BINARY_ADD:
    case KILN_PROGRAM_BINARY_SUB:
      return z != add_sat(type, x, y, op == KILN_PROGRAM_BINARY_SUB);
    case KILN_PROGRAM_BINARY_MUL:
      if (kilni_program_integer_signed(type, z) < 0 &&
          integers_is_signed(type)) {
        above = mask;
      }
      return (multiply_high(type, x, y) & mask) != above;
    case KILN_PROGRAM_BINARY_SHL:
      return (integers_shift(KILN_PROGRAM_BINARY_SHR, type, z, y) & mask) != x;
    default:
      return false;
  }
}

static bool evaluate_binary(const kilni_program_ir_t* ir,
                            const kilni_program_expr_record_t* expr,
                            const kilni_program_known_t* known, uint64_t a,
                            uint64_t* out_value) {
  uint64_t b;
  uint32_t type = ir->exprs.items[expr->a].type;
  if (!kilni_program_ir_evaluate(ir, expr->b, known, &b) ||
      !kilni_program_integer_binary(
          expr->extra, type, a, ir->exprs.items[expr->b].type, b, out_value)) {
    return false;
  }
  if (known != NULL && does_wrap(expr->extra, type, a, b, *out_value)) {
    *known->wraps = true;
  }
  return true;
}

static bool evaluate_operator(const kilni_program_ir_t* ir,
                              const kilni_program_expr_record_t* expr,
                              const kilni_program_known_t* known,
                              uint64_t* out_value) {
  uint64_t a, other;
  uint32_t type = ir->exprs.items[expr->a].type;
  if (!kilni_program_ir_evaluate(ir, expr->a, known, &a)) return false;
  switch (expr->op) {
    case KILNI_EXPR_UNARY:
      return kilni_program_integer_unary(expr->extra, type, a, out_value);
    case KILNI_EXPR_BINARY:
      return evaluate_binary(ir, expr, known, a, out_value);
    case KILNI_EXPR_SELECT:
      // A constant is one on both sides.
      if (known == NULL && !kilni_program_ir_evaluate(
                               ir, a != 0 ? expr->c : expr->b, NULL, &other)) {
        return false;
      }
      return kilni_program_ir_evaluate(ir, a != 0 ? expr->b : expr->c, known,
                                       out_value);
    default:
      return kilni_program_integer_cast(expr->type, type, a, out_value);
  }
}

bool kilni_program_ir_evaluate(const kilni_program_ir_t* ir, uint32_t expr,
                               const kilni_program_known_t* known,
                               uint64_t* out_value) {
  *out_value = 0;
  const kilni_program_expr_record_t* record = &ir->exprs.items[expr];
  if (!integers_is_whole(record->type)) return false;
  switch (record->op) {
    case KILNI_EXPR_LITERAL:
      *out_value = kilni_program_ir_literal_bits(record);
      return true;
    case KILNI_EXPR_LENGTH:
      if (known == NULL) return false;
      *out_value =
          known->lengths[kilni_program_ir_parameter_of(ir, record->a)] &
          integers_mask_of(record->type);
      return true;
    case KILNI_EXPR_SCALAR:
      if (known == NULL) return false;
      *out_value = known->scalars[record->a];
      return true;
    case KILNI_EXPR_UNARY:
    case KILNI_EXPR_BINARY:
    case KILNI_EXPR_SELECT:
    case KILNI_EXPR_CAST:
      return evaluate_operator(ir, record, known, out_value);
    default:
      return false;
  }
}
