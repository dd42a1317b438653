// SPDX-License-Identifier: Apache-2.0
//
// program: integer quotients and remainders.
//
// By a constant: a multiplication and shifts (Granlund and Montgomery, 1994).
// By anything else: the instruction, and selects for what it leaves open.
#include "program/ir/program_types.h"
#include "program/lower/program_lowering.h"

#define B(NAME) KILN_PROGRAM_BINARY_##NAME
#define T(NAME) KILN_PROGRAM_TYPE_##NAME

static uint32_t divide_width_of(uint8_t type) {
  return 8 * kilni_program_type_bytes(type);
}

// How x / c is computed: high half of x * factor, then a shift; where `add`,
// the factor has a further bit above.
typedef struct division_t {
  uint64_t factor;
  uint32_t shift;
  bool add;
} division_t;

// c is no power of two.
static division_t division_by(uint64_t c, uint32_t width) {
  uint64_t ones = UINT64_MAX >> (64 - width);
  // 2^(width + shift) = c * q + r.
  uint64_t q = ones / c, r = ones % c + 1;
  division_t out = {0, 0, false};
  bool over = false;  // q has more bits than the width
  while (!over && out.shift < 64 && c - r > UINT64_C(1) << out.shift) {
    over = q >> (width - 1) != 0;
    bool carry = r >= c - r;
    q = (q << 1 | carry) & ones;
    r = carry ? r - (c - r) : 2 * r;
    out.shift++;
  }
  // With one bit more than the width there is always one that serves.
  while (out.shift < 64 && c - r > UINT64_C(1) << out.shift) {
    bool carry = r >= c - r;
    q = (q << 1 | carry) & ones;
    r = carry ? r - (c - r) : 2 * r;
    out.shift++;
  }
  out.factor = (q + 1) & ones;
  out.add = over;
  return out;
}

static kilni_program_value_t quotient_by(kilni_program_lowering_t* w,
                                         kilni_program_value_t x, uint64_t c) {
  uint8_t type = kilni_program_value_type(w, x);
  uint64_t most = kilni_program_value_of(w, x)->most;
  kilni_program_value_t out;
  if ((c & (c - 1)) == 0) {
    uint32_t log = 0;
    while (c >> log > 1) log++;
    return KILNI_BIN(SHR, x, kilni_program_u32(w, log));
  }
  division_t by = division_by(c, divide_width_of(type));
  kilni_program_value_t factor = kilni_program_const(w, type, by.factor);
  out = KILNI_BIN(MUL_HIGH, x, factor);
  if (by.add) {
    kilni_program_value_t rest = KILNI_BIN(SUB, x, out);
    rest = KILNI_BIN(SHR, rest, kilni_program_u32(w, 1));
    out = KILNI_BIN(ADD, rest, out);
    by.shift--;
  }
  out = KILNI_BIN(SHR, out, kilni_program_u32(w, by.shift));
  if (w->values.items[out].most > most / c) {
    w->values.items[out].most = most / c;
  }
  return out;
}

// x and c of a computed type; c is not zero.
static kilni_program_value_t by_constant(kilni_program_lowering_t* w,
                                         uint32_t op, kilni_program_value_t x,
                                         uint64_t c) {
  uint8_t type = kilni_program_value_type(w, x);
  uint32_t width = divide_width_of(type);
  kilni_program_value_t quotient;
  if (type == T(U32) || type == T(U64)) {
    if (op == B(REM) && (c & (c - 1)) == 0) {
      return KILNI_BIN(BIT_AND, x, kilni_program_const(w, type, c - 1));
    }
    quotient = quotient_by(w, x, c);
  } else {
    uint8_t plain = (uint8_t)kilni_program_type_unsigned(type);
    bool negative = (c >> (width - 1) & 1) != 0;
    uint64_t size = negative ? (0 - c) & (UINT64_MAX >> (64 - width)) : c;
    kilni_program_value_t zero = kilni_program_const(w, type, 0);
    kilni_program_value_t below = KILNI_BIN(LT, x, zero);
    kilni_program_value_t abs =
        kilni_program_unary(w, KILN_PROGRAM_UNARY_ABS, x);
    kilni_program_value_t q =
        quotient_by(w, kilni_program_retype(w, plain, abs), size);
    q = kilni_program_retype(w, type, q);
    kilni_program_value_t turned = KILNI_BIN(SUB, zero, q);
    quotient = negative ? kilni_program_select(w, below, q, turned)
                        : kilni_program_select(w, below, turned, q);
  }
  if (op == B(DIV)) return quotient;
  return KILNI_BIN(SUB, x,
                   KILNI_BIN(MUL, quotient, kilni_program_const(w, type, c)));
}

static const char* divide_name_of(uint32_t op, uint8_t type) {
  bool quotient = op == B(DIV);
  switch (type) {
    case T(U32):
      return quotient ? "div.u32" : "rem.u32";
    case T(I32):
      return quotient ? "div.s32" : "rem.s32";
    case T(U64):
      return quotient ? "div.u64" : "rem.u64";
    default:
      return quotient ? "div.s64" : "rem.s64";
  }
}

static kilni_program_value_t by_any(kilni_program_lowering_t* w, uint32_t op,
                                    kilni_program_value_t x,
                                    kilni_program_value_t y) {
  uint8_t type = kilni_program_value_type(w, x);
  kilni_program_value_t zero = kilni_program_const(w, type, 0);
  kilni_program_value_t none = KILNI_BIN(EQ, y, zero);
  bool quotient = op == B(DIV);
  if (type == T(U32) || type == T(U64)) {
    kilni_program_value_t out =
        kilni_program_pure(w, divide_name_of(op, type), type, x, y, 0);
    kilni_program_value_t ones = kilni_program_const(w, type, UINT64_MAX);
    return kilni_program_select(w, none, quotient ? ones : zero, out);
  }
  kilni_program_value_t minus =
      KILNI_BIN(EQ, y, kilni_program_const(w, type, UINT64_MAX));
  kilni_program_value_t odd = KILNI_BIN(OR, none, minus);
  kilni_program_value_t safe =
      kilni_program_select(w, odd, kilni_program_const(w, type, 1), y);
  kilni_program_value_t out =
      kilni_program_pure(w, divide_name_of(op, type), type, x, safe, 0);
  if (!quotient) return kilni_program_select(w, odd, zero, out);
  out = kilni_program_select(w, minus, KILNI_BIN(SUB, zero, x), out);
  return kilni_program_select(w, none, zero, out);
}

kilni_program_value_t kilni_program_divide(kilni_program_lowering_t* w,
                                           uint32_t op, uint8_t type,
                                           kilni_program_value_t x,
                                           kilni_program_value_t y) {
  uint8_t computed = kilni_program_type_computed(type);
  kilni_program_value_t a = kilni_program_cast(w, computed, x);
  kilni_program_value_t b = kilni_program_cast(w, computed, y);
  kilni_program_value_t out;
  if (kilni_program_value_is_const(w, b) &&
      kilni_program_value_of(w, b)->bits != 0 &&
      (w->off & KILN_PROGRAM_WITHOUT_STRENGTH) == 0) {
    out = by_constant(w, op, a, kilni_program_value_of(w, b)->bits);
  } else {
    out = by_any(w, op, a, b);
  }
  kilni_program_value_t narrow = kilni_program_narrow(w, type, out);
  uint64_t most = kilni_program_value_of(w, x)->most;
  if (kilni_program_type_class(type) == KILNI_CLASS_UNSIGNED && op == B(REM) &&
      w->values.items[narrow].most > most) {
    w->values.items[narrow].most = most;
  }
  return narrow;
}
