// SPDX-License-Identifier: Apache-2.0
//
// program: what ptxas gets wrong, written otherwise.
//
// Forms of integers for which ptxas 13.0 makes other code than the PTX says,
// most of them only on sm_90 and later; found by programs whose results on a
// GPU were not the evaluator's (live_program_diff, also by `nests`). The
// module's page has a table of them. Each costs nothing, or an instruction.
#include <string.h>

#include "program/ir/program_types.h"
#include "program/lower/program_lowering.h"

#define T(NAME) KILN_PROGRAM_TYPE_##NAME
#define B(NAME) KILN_PROGRAM_BINARY_##NAME

// What `x` is behind casts that keep its bits.
static kilni_program_value_t uncast(const kilni_program_lowering_t* w,
                                    kilni_program_value_t x) {
  const kilni_program_instruction_t* i = kilni_program_define_of(w, x);
  while (i != NULL &&
         (strcmp(i->name, "mov.b32") == 0 || strcmp(i->name, "mov.b64") == 0)) {
    x = i->operand[1];
    i = kilni_program_define_of(w, x);
  }
  return x;
}

// ---- A minus ----

// What `x` is the negation of; 0: it is none.
static kilni_program_value_t negated_by(const kilni_program_lowering_t* w,
                                        kilni_program_value_t x) {
  const kilni_program_instruction_t* i =
      kilni_program_define_of(w, uncast(w, x));
  if (i == NULL) return 0;
  if (strncmp(i->name, "sub.", 4) == 0) {
    return kilni_program_value_is(w, i->operand[1], 0) ? i->operand[2] : 0;
  }
  if (strncmp(i->name, "mul.lo.", 7) != 0) return 0;
  if (kilni_program_value_is(w, i->operand[2], UINT32_MAX)) {
    return i->operand[1];
  }
  return kilni_program_value_is(w, i->operand[1], UINT32_MAX) ? i->operand[2]
                                                              : 0;
}

static bool is_difference(const kilni_program_lowering_t* w,
                          kilni_program_value_t x) {
  const kilni_program_instruction_t* i =
      kilni_program_define_of(w, uncast(w, x));
  return i != NULL && strncmp(i->name, "sub.", 4) == 0;
}

// The operands of a `min` or `max` of 32 bits. ptxas 13.0 makes one instruction
// of two of them on sm_90 and later, max(a, max(b, -c)), and leaves the minus
// of the inner one's second operand away: so there is none there.
void kilni_program_avoid_minus(kilni_program_lowering_t* w,
                               kilni_program_value_t* x,
                               kilni_program_value_t* y) {
  if (kilni_program_type_bytes(kilni_program_value_type(w, *y)) != 4) return;
  // What ptxas itself finds to be a negation is a difference.
  if (is_difference(w, *y) && !is_difference(w, *x)) {
    kilni_program_value_t swap = *x;
    *x = *y, *y = swap;
  }
  kilni_program_value_t of = negated_by(w, *y);
  if (of == 0) return;
  uint8_t type = kilni_program_value_type(w, *y);
  of = kilni_program_pure(w, "not.b32", type, of, 0, 0);
  *y = kilni_program_pure(w, "add.u32", type, of,
                          kilni_program_const(w, type, 1), 0);
}

// ptxas makes a `min` or `max` of a comparison and what it chooses of the two
// that it compares, and then what kilni_program_avoid_minus() is for: where
// there may be a minus it is one already here. 0: it is none.
kilni_program_value_t kilni_program_avoid_choice(kilni_program_lowering_t* w,
                                                 kilni_program_value_t c,
                                                 kilni_program_value_t x,
                                                 kilni_program_value_t y) {
  const kilni_program_instruction_t* i = kilni_program_define_of(w, c);
  const uint8_t type = kilni_program_value_type(w, x);
  if (type != T(U32) && type != T(I32)) return 0;
  if (i != NULL && strcmp(i->name, "not.pred") == 0) {
    return kilni_program_avoid_choice(w, i->operand[1], y, x);
  }
  if (i == NULL) return 0;
  if (strncmp(i->name, "setp.", 5) != 0 || strlen(i->name) != 11) return 0;
  const bool less = i->name[5] == 'l', is_signed = i->name[8] == 's';
  if ((!less && i->name[5] != 'g') || strcmp(i->name + 9, "32") != 0) return 0;
  const kilni_program_value_t p = uncast(w, i->operand[1]);
  const kilni_program_value_t q = uncast(w, i->operand[2]);
  const kilni_program_value_t a = uncast(w, x), b = uncast(w, y);
  const bool straight = a == p && b == q;
  if (!straight && (a != q || b != p)) return 0;
  if (negated_by(w, a) == 0 && negated_by(w, b) == 0 && !is_difference(w, a) &&
      !is_difference(w, b)) {
    return 0;
  }
  const uint8_t as = is_signed ? T(I32) : T(U32);
  const kilni_program_value_t out = kilni_program_binary(
      w, less == straight ? B(MIN) : B(MAX), kilni_program_retype(w, as, x),
      kilni_program_retype(w, as, y));
  return kilni_program_retype(w, type, out);
}

// ---- A clamp ----

static bool is_extreme(const kilni_program_instruction_t* i) {
  return i != NULL &&
         (strcmp(i->name, "max.s32") == 0 || strcmp(i->name, "min.s32") == 0);
}

// Whether x is max(max(a, y), 0) or max(min(a, y), 0). ptxas 13.0 takes whether
// that is y from the instruction that makes it, on sm_90 and later, and finds
// another answer.
static bool is_clamped_by(const kilni_program_lowering_t* w,
                          kilni_program_value_t x, kilni_program_value_t y) {
  const kilni_program_instruction_t* i = kilni_program_define_of(w, x);
  if (!is_extreme(i) || i->name[1] != 'a') return false;
  for (uint32_t zero = 1; zero <= 2; zero++) {
    if (!kilni_program_value_is(w, i->operand[zero], 0)) continue;
    const kilni_program_instruction_t* inner =
        kilni_program_define_of(w, i->operand[3 - zero]);
    if (!is_extreme(inner)) continue;
    if (inner->operand[1] == y || inner->operand[2] == y) return true;
  }
  return false;
}

void kilni_program_avoid_clamp(kilni_program_lowering_t* w,
                               kilni_program_value_t* x,
                               kilni_program_value_t* y) {
  const uint8_t type = kilni_program_value_type(w, *x);
  if (type != T(I32)) return;
  const kilni_program_value_t bytes =
      kilni_program_u32(w, 0x3210);  // all, in their order
  if (is_clamped_by(w, *x, *y)) {
    *x = kilni_program_pure(w, "prmt.b32", type, *x, *x, bytes);
  } else if (is_clamped_by(w, *y, *x)) {
    *y = kilni_program_pure(w, "prmt.b32", type, *y, *y, bytes);
  }
}

// ---- A difference ----

// Whether x is a high half of a product, with zeros in front. ptxas 13.0 makes
// one instruction of the product and of the difference's low half, and is wrong
// by 2^32 where the low half of what is subtracted is 0.
static bool is_high_half(const kilni_program_lowering_t* w,
                         kilni_program_value_t x) {
  const kilni_program_instruction_t* i =
      kilni_program_define_of(w, uncast(w, x));
  if (i == NULL || strcmp(i->name, "cvt.u64.u32") != 0) return false;
  i = kilni_program_define_of(w, i->operand[1]);
  return i != NULL && strncmp(i->name, "mul.hi.", 7) == 0;
}

kilni_program_value_t kilni_program_avoid_difference(
    kilni_program_lowering_t* w, kilni_program_value_t x,
    kilni_program_value_t y) {
  if (!is_high_half(w, x)) return 0;
  const uint8_t type = kilni_program_value_type(w, x);
  const char* add = type == T(I64) ? "add.s64" : "add.u64";
  if (kilni_program_value_is_const(w, y)) {
    y = kilni_program_const(w, type, 0 - kilni_program_value_of(w, y)->bits);
  } else {
    y = kilni_program_pure(w, "not.b64", type, y, 0, 0);
    y = kilni_program_pure(w, add, type, y, kilni_program_const(w, type, 1), 0);
  }
  return kilni_program_pure(w, add, type, x, y, 0);
}

// ---- A conversion ----

// Of one of two constants it is one of two others; 0: x is none. ptxas 13.0 is
// not to be trusted with conversions of those (sm_90: one of several `cvt` of
// f64 was the result of another one).
kilni_program_value_t kilni_program_avoid_conversion(
    kilni_program_lowering_t* w, uint8_t type, kilni_program_value_t x) {
  const kilni_program_instruction_t* i = kilni_program_define_of(w, x);
  if (i == NULL || strncmp(i->name, "selp.", 5) != 0) return 0;
  const kilni_program_value_t c = i->operand[3],
                              sides[2] = {i->operand[1], i->operand[2]};
  for (uint32_t k = 0; k < 2; k++) {
    if (!kilni_program_value_is_const(w, sides[k]) ||
        kilni_program_value_type(w, sides[k]) !=
            kilni_program_value_type(w, x)) {
      return 0;
    }
  }
  return kilni_program_select(w, c, kilni_program_cast(w, type, sides[0]),
                              kilni_program_cast(w, type, sides[1]));
}
