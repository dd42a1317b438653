// SPDX-License-Identifier: Apache-2.0
//
// program: matrices that the threads of a subgroup multiply together.
//
// A thread's part of each matrix is what mma.m16n8k16 wants of it, with g =
// lane / 4 and t = lane % 4:
//   a[0..7]: rows g, g, g + 8, g + 8, g, g, g + 8, g + 8, columns 2t and
//            2t + 1, of the last four 2t + 8 and 2t + 9
//   b[0..3]: column g, rows 2t, 2t + 1, 2t + 8, 2t + 9
//   d[0..3]: rows g, g, g + 8, g + 8, columns 2t, 2t + 1, 2t, 2t + 1
// Two halves side by side are a word of 32 bits.
#include <string.h>

#include "program/ir/program_types.h"
#include "program/lower/program_lowering.h"
#include "program/math/program_math.h"

#define T(NAME) KILN_PROGRAM_TYPE_##NAME

enum {
  D = KILNI_MATRIX_D,
  A = KILNI_MATRIX_A,
  B = KILNI_MATRIX_B,
  DEPTH = 16,  // products of one sum
};

// ---- Two halves in a word ----

// What a value is made of by an instruction of that name; 0: by another one.
static kilni_program_value_t made_by(const kilni_program_lowering_t* w,
                                     kilni_program_value_t value,
                                     const char* name) {
  const kilni_program_instruction_t* i =
      value == 0 ? NULL : kilni_program_define_of(w, value);
  return i != NULL && strcmp(i->name, name) == 0 ? i->operand[1] : 0;
}

static kilni_program_value_t to_half(kilni_program_lowering_t* w,
                                     kilni_program_value_t bits) {
  kilni_program_value_t half = made_by(w, bits, "cvt.u32.u16");
  if (half != 0) return half;
  return kilni_program_pure(w, "cvt.u16.u32", KILNI_TYPE_HALF_BITS, bits, 0, 0);
}

// A half in a register of 16 bits: that which it was read into, where it was
// only read.
static kilni_program_value_t matrix_half_of(kilni_program_lowering_t* w,
                                            kilni_program_value_t x) {
  if (kilni_program_value_is_const(w, x)) {
    uint64_t bits = kilni_program_value_of(w, x)->bits;
    return to_half(
        w, kilni_program_in_register(w, kilni_program_u32(w, (uint32_t)bits)));
  }
  if (kilni_program_value_type(w, x) == T(F16)) {
    kilni_program_value_t half = made_by(w, x, "cvt.f32.f16");
    if (half != 0) return half;
    return kilni_program_pure(w, "cvt.rn.f16.f32", KILNI_TYPE_HALF_BITS, x, 0,
                              0);
  }
  // A bf16 is the upper half of an f32.
  kilni_program_value_t upper = made_by(w, x, "mov.b32");
  kilni_program_value_t bits = made_by(w, upper, "shl.b32");
  bool read =
      bits != 0 && kilni_program_value_is(
                       w, kilni_program_define_of(w, upper)->operand[2], 16);
  return to_half(w, read ? bits : kilni_program_to_bits(w, x));
}

// The word whose 16 bits from `shift` on (0, 16) a value is; 0: it is no part
// of one.
static kilni_program_value_t matrix_word_of(const kilni_program_lowering_t* w,
                                            kilni_program_value_t x,
                                            uint64_t shift) {
  kilni_program_value_t bits = 0;
  if (kilni_program_value_type(w, x) == T(F16)) {
    bits = made_by(w, made_by(w, x, "cvt.f32.f16"), "cvt.u16.u32");
    bits = made_by(w, bits, "prmt.b32");
  } else {
    bits = made_by(w, made_by(w, x, "mov.b32"), "shl.b32");
  }
  // As an integer of 16 bits: what else it has is nothing to a half.
  for (;;) {
    const kilni_program_instruction_t* i =
        bits == 0 ? NULL : kilni_program_define_of(w, bits);
    if (i == NULL) break;
    bool cut = i->count == 3 && strcmp(i->name, "and.b32") == 0 &&
               kilni_program_value_is(w, i->operand[2], 0xffff);
    if (!cut && (i->count != 2 || strcmp(i->name, "mov.b32") != 0)) break;
    bits = i->operand[1];
  }
  if (shift == 0 || bits == 0) return bits;
  const kilni_program_instruction_t* i = kilni_program_define_of(w, bits);
  bool upper = i != NULL && i->count == 3 && strcmp(i->name, "shr.u32") == 0 &&
               kilni_program_value_is(w, i->operand[2], shift);
  return upper ? i->operand[1] : 0;
}

static kilni_program_value_t matrix_pack(kilni_program_lowering_t* w,
                                         kilni_program_value_t low,
                                         kilni_program_value_t high) {
  if (kilni_program_value_is_const(w, low) &&
      kilni_program_value_is_const(w, high)) {
    uint64_t bits = kilni_program_value_of(w, low)->bits;
    bits |= kilni_program_value_of(w, high)->bits << 16;
    return kilni_program_u32(w, (uint32_t)bits);
  }
  kilni_program_value_t word = matrix_word_of(w, low, 0);
  if (word != 0 && word == matrix_word_of(w, high, 16) &&
      kilni_program_type_bytes(kilni_program_value_type(w, word)) == 4) {
    return word;
  }
  kilni_program_instruction_t instruction = {0};
  instruction.name = "mov.b32";
  instruction.form = KILNI_FORM_PACK;
  instruction.count = 3;
  instruction.operand[1] = matrix_half_of(w, low);
  instruction.operand[2] = matrix_half_of(w, high);
  return kilni_program_pure_form(w, &instruction, T(U32));
}

static kilni_program_value_t matrix_unpack(kilni_program_lowering_t* w,
                                           uint8_t type,
                                           kilni_program_value_t word,
                                           uint32_t high) {
  kilni_program_value_t bits =
      high ? KILNI_BIN(SHR, word, kilni_program_u32(w, 16))
           : KILNI_BIN(BIT_AND, word, kilni_program_u32(w, 0xffff));
  return kilni_program_cast(w, T(F32), kilni_program_from_bits(w, type, bits));
}

// ---- By instruction ----

static kilni_program_value_t in_register(kilni_program_lowering_t* w,
                                         kilni_program_value_t x) {
  return kilni_program_value_is_const(w, x) ? kilni_program_in_register(w, x)
                                            : x;
}

// All lanes must be there.
static bool may_be_mma(const kilni_program_lowering_t* w) {
  return w->sm >= 80 && w->threads % 32 == 0 &&
         kilni_program_math_fast_matrix(w->max_ulp);
}

static void by_mma(kilni_program_lowering_t* w, uint8_t type,
                   const kilni_program_value_t* a,
                   const kilni_program_value_t* b, kilni_program_value_t* d) {
  kilni_program_value_t all[KILNI_WIDE_OPERANDS];
  for (uint32_t k = 0; k < D; k++) {
    all[k] = kilni_program_register(w, T(F32));
    all[D + A / 2 + B / 2 + k] = in_register(w, d[k]);
  }
  for (uint32_t k = 0; k < A / 2; k++) all[D + k] = in_register(w, a[k]);
  for (uint32_t k = 0; k < B / 2; k++) {
    all[D + A / 2 + k] = in_register(w, b[k]);
  }
  kilni_program_pin_wide(
      w,
      type == T(F16) ? "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
                     : "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
      all);
  for (uint32_t k = 0; k < D; k++) d[k] = all[k];
  if (w->need_sm < 80) w->need_sm = 80;
  if (w->need_isa < 70) w->need_isa = 70;
}

// ---- By definition ----

// What four lanes hold of two rows of a and of two columns of b: the lane for
// the columns 2t, 2t + 1, 2t + 8 and 2t + 9 of a, and those rows of b.
typedef struct quarter_t {
  kilni_program_value_t rows[A / 2];
  kilni_program_value_t columns[2][B / 2];
} quarter_t;

static quarter_t quarter_of(kilni_program_lowering_t* w,
                            const kilni_program_value_t* a,
                            const kilni_program_value_t* b, uint32_t t) {
  kilni_program_value_t lane = KILNI_BIN(BIT_AND, kilni_program_local_index(w),
                                         kilni_program_u32(w, 31));
  kilni_program_value_t row =
      KILNI_BIN(BIT_AND, lane, kilni_program_u32(w, 28));
  row = KILNI_BIN(ADD, row, kilni_program_u32(w, t));
  kilni_program_value_t column =
      KILNI_BIN(BIT_AND, lane, kilni_program_u32(w, 3));
  column = KILNI_BIN(MUL, column, kilni_program_u32(w, 8));
  quarter_t out;
  for (uint32_t k = 0; k < A / 2; k++) {
    out.rows[k] = kilni_program_of_lane(w, a[k], row);
  }
  for (uint32_t c = 0; c < 2; c++) {
    kilni_program_value_t from =
        KILNI_BIN(ADD, column, kilni_program_u32(w, 4 * c + t));
    for (uint32_t k = 0; k < B / 2; k++) {
      out.columns[c][k] = kilni_program_of_lane(w, b[k], from);
    }
  }
  return out;
}

static void by_definition(kilni_program_lowering_t* w, uint8_t type,
                          const kilni_program_value_t* a,
                          const kilni_program_value_t* b,
                          kilni_program_value_t* d) {
  quarter_t quarters[4];
  for (uint32_t t = 0; t < 4; t++) quarters[t] = quarter_of(w, a, b, t);
  for (uint32_t k = 0; k < DEPTH; k++) {
    const quarter_t* q = &quarters[k % 8 / 2];
    uint32_t later = k / 8, high = k % 2;
    for (uint32_t i = 0; i < D; i++) {
      kilni_program_value_t x =
          matrix_unpack(w, type, q->rows[2 * later + i / 2], high);
      kilni_program_value_t y =
          matrix_unpack(w, type, q->columns[i % 2][later], high);
      d[i] = kilni_program_fma(w, x, y, d[i]);
    }
  }
}

// ---- The statement ----

void kilni_program_matrix(kilni_program_lowering_t* w,
                          const kilni_program_statement_record_t* statement) {
  kilni_program_statement_record_t s = *statement;
  uint8_t type = kilni_program_place(w, s.b)->type;
  kilni_program_value_t a[A / 2], b[B / 2], d[D],
      zero = kilni_program_u32(w, 0);
  for (uint32_t k = 0; k < A / 2; k++) {
    kilni_program_value_t low =
        kilni_program_load(w, s.b, kilni_program_u32(w, 2 * k));
    kilni_program_value_t high =
        kilni_program_load(w, s.b, kilni_program_u32(w, 2 * k + 1));
    a[k] = kilni_program_masked(w, matrix_pack(w, low, high), zero);
  }
  for (uint32_t k = 0; k < B / 2; k++) {
    kilni_program_value_t low =
        kilni_program_load(w, s.c, kilni_program_u32(w, 2 * k));
    kilni_program_value_t high =
        kilni_program_load(w, s.c, kilni_program_u32(w, 2 * k + 1));
    b[k] = kilni_program_masked(w, matrix_pack(w, low, high), zero);
  }
  for (uint32_t k = 0; k < D; k++) {
    d[k] = kilni_program_load(w, s.a, kilni_program_u32(w, k));
  }
  if (may_be_mma(w)) {
    by_mma(w, type, a, b, d);
  } else {
    by_definition(w, type, a, b, d);
  }
  for (uint32_t k = 0; k < D; k++) {
    kilni_program_store(w, s.a, kilni_program_u32(w, k), d[k],
                        w->together ? w->live : 0);
  }
}
