// SPDX-License-Identifier: Apache-2.0
//
// program: unary and binary operators as instructions.
//
// Integers of 8 and 16 bits are kept in registers of 32 bits, extended by
// their sign or by zeros, and brought back to that after what may leave it
// (kilni_program_narrow). f16 and bf16 are kept as f32 and rounded after each
// operation. Where an instruction's answer differs from the operator's
// meaning, the difference is selected.
#include <string.h>

#include "program/ir/program_types.h"
#include "program/lower/program_lowering.h"

#define U(NAME) KILN_PROGRAM_UNARY_##NAME
#define B(NAME) KILN_PROGRAM_BINARY_##NAME
#define T(NAME) KILN_PROGRAM_TYPE_##NAME

// The computed types, as columns of the tables of instructions.
enum { C_U32, C_I32, C_U64, C_I64, C_F32, C_F64, C_COUNT };

static uint32_t operate_column_of(uint8_t type) {
  switch (kilni_program_type_computed(type)) {
    case T(U32):
      return C_U32;
    case T(I32):
      return C_I32;
    case T(U64):
      return C_U64;
    case T(I64):
      return C_I64;
    case T(F32):
      return C_F32;
    default:
      return C_F64;
  }
}

#define INTEGERS(op) op ".u32", op ".s32", op ".u64", op ".s64"
#define BITS(op)     op ".b32", op ".b32", op ".b64", op ".b64"
#define ROW(op)      {INTEGERS(op), op ".f32", op ".f64"}
#define ROW_RN(op)   {INTEGERS(op), op ".rn.f32", op ".rn.f64"}

static const char* const kAdd[C_COUNT] = ROW_RN("add");
static const char* const kSub[C_COUNT] = ROW_RN("sub");
static const char* const kMul[C_COUNT] = {INTEGERS("mul.lo"), "mul.rn.f32",
                                          "mul.rn.f64"};
static const char* const kHigh[C_COUNT] = {INTEGERS("mul.hi")};
static const char* const kMin[C_COUNT] = ROW("min");
static const char* const kMax[C_COUNT] = ROW("max");
static const char* const kAnd[C_COUNT] = {BITS("and")};
static const char* const kOr[C_COUNT] = {BITS("or")};
static const char* const kXor[C_COUNT] = {BITS("xor")};
static const char* const kShl[C_COUNT] = {BITS("shl")};
static const char* const kShr[C_COUNT] = {INTEGERS("shr")};
static const char* const kEq[C_COUNT] = ROW("setp.eq");
static const char* const kNe[C_COUNT] = {INTEGERS("setp.ne"), "setp.neu.f32",
                                         "setp.neu.f64"};
static const char* const kLt[C_COUNT] = ROW("setp.lt");
static const char* const kLe[C_COUNT] = ROW("setp.le");
static const char* const kGt[C_COUNT] = ROW("setp.gt");
static const char* const kGe[C_COUNT] = ROW("setp.ge");

static uint32_t operate_width_of(uint8_t type) {
  return 8 * kilni_program_type_bytes(type);
}
static bool operate_is_float(uint8_t type) {
  return kilni_program_type_class(type) == KILNI_CLASS_FLOAT;
}
static bool operate_is_signed(uint8_t type) {
  return kilni_program_type_class(type) == KILNI_CLASS_SIGNED;
}
static uint8_t unsigned_of(uint8_t type) {
  return (uint8_t)kilni_program_type_unsigned(type);
}

// The greatest number of a type of whole numbers.
static uint64_t most_positive(uint8_t type) {
  return operate_is_signed(type) ? UINT64_MAX >> (65 - operate_width_of(type))
                                 : kilni_program_type_most(type);
}

kilni_program_value_t kilni_program_retype(kilni_program_lowering_t* w,
                                           uint8_t type,
                                           kilni_program_value_t x) {
  uint8_t from = kilni_program_value_type(w, x);
  if (from == type) return x;
  if (kilni_program_value_is_const(w, x)) {
    return kilni_program_const(w, type, kilni_program_value_of(w, x)->bits);
  }
  const char* name = operate_width_of(kilni_program_type_computed(type)) == 64
                         ? "mov.b64"
                         : "mov.b32";
  kilni_program_value_t y = kilni_program_pure(w, name, type, x, 0, 0);
  uint64_t most = kilni_program_value_of(w, x)->most;
  if (most <= most_positive(type)) w->values.items[y].most = most;
  return y;
}

static void limit(kilni_program_lowering_t* w, kilni_program_value_t x,
                  uint64_t most) {
  if (w->values.items[x].most > most) w->values.items[x].most = most;
}

// ---- Rounding and wrapping ----

// f32 to the nearest bf16, as f32: by its bits, since the instruction is there
// from sm_80 on only.
static kilni_program_value_t round_bf16(kilni_program_lowering_t* w,
                                        kilni_program_value_t x) {
  if (w->sm >= 80) {
    if (w->need_sm < 80) w->need_sm = 80;
    if (w->need_isa < 70) w->need_isa = 70;
    kilni_program_value_t h =
        kilni_program_pure(w, "cvt.rn.bf16.f32", KILNI_TYPE_HALF_BITS, x, 0, 0);
    kilni_program_value_t b =
        kilni_program_pure(w, "cvt.u32.u16", T(U32), h, 0, 0);
    b = kilni_program_pure(w, "shl.b32", T(U32), b, kilni_program_u32(w, 16),
                           0);
    return kilni_program_pure(w, "mov.b32", T(BF16), b, 0, 0);
  }
  kilni_program_value_t bits =
      kilni_program_pure(w, "mov.b32", T(U32), x, 0, 0);
  kilni_program_value_t last = KILNI_BIN(SHR, bits, kilni_program_u32(w, 16));
  last = KILNI_BIN(BIT_AND, last, kilni_program_u32(w, 1));
  kilni_program_value_t up = KILNI_BIN(ADD, bits, kilni_program_u32(w, 0x7fff));
  up = KILNI_BIN(ADD, up, last);
  up = KILNI_BIN(BIT_AND, up, kilni_program_u32(w, 0xffff0000U));
  kilni_program_value_t nan =
      kilni_program_pure(w, "setp.nan.f32", T(BOOL), x, x, 0);
  up = kilni_program_select(w, nan, kilni_program_u32(w, 0x7fc00000), up);
  return kilni_program_pure(w, "mov.b32", T(BF16), up, 0, 0);
}

kilni_program_value_t kilni_program_narrow(kilni_program_lowering_t* w,
                                           uint8_t type,
                                           kilni_program_value_t x) {
  uint64_t most = kilni_program_value_of(w, x)->most;
  kilni_program_value_t y;
  switch (type) {
    case T(F16):
      y = kilni_program_pure(w, "cvt.rn.f16.f32", KILNI_TYPE_HALF_BITS, x, 0,
                             0);
      return kilni_program_pure(w, "cvt.f32.f16", T(F16), y, 0, 0);
    case T(BF16):
      return round_bf16(w, x);
    case T(U8):
    case T(U16):
      if (most <= kilni_program_type_most(type)) {
        return kilni_program_retype(w, type, x);
      }
      y = kilni_program_u32(w, (uint32_t)kilni_program_type_most(type));
      return kilni_program_pure(w, "and.b32", type, x, y, 0);
    case T(I8):
    case T(I16):
      if (most <= (type == T(I8) ? 0x7f : 0x7fff)) {
        return kilni_program_retype(w, type, x);
      }
      // Not bfe.s32 of the low bits: ptxas 13.0 joins that and a conversion
      // from u32 to a float into one from s8 or s16.
      return kilni_program_pure(w, type == T(I8) ? "cvt.s32.s8" : "cvt.s32.s16",
                                type, x, 0, 0);
    default:
      return kilni_program_retype(w, type, x);
  }
}

// x as it stands in its register, as a number of the computed type; signed
// small ones without the copies of their sign where `bits` is set.
static kilni_program_value_t operate_plain(kilni_program_lowering_t* w,
                                           kilni_program_value_t x, bool bits) {
  uint8_t type = kilni_program_value_type(w, x);
  uint8_t to = kilni_program_type_computed(type);
  if (to == type) return bits ? kilni_program_retype(w, unsigned_of(to), x) : x;
  if (kilni_program_value_is_const(w, x) && operate_is_float(type)) {
    return kilni_program_const(
        w, to,
        kilni_program_fold_widen(type, kilni_program_value_of(w, x)->bits));
  }
  if (!bits) return kilni_program_cast(w, to, x);
  uint8_t narrow = unsigned_of(type);
  if (kilni_program_value_is_const(w, x)) {
    return kilni_program_u32(w, (uint32_t)kilni_program_value_of(w, x)->bits);
  }
  kilni_program_value_t y = kilni_program_pure(w, "mov.b32", T(U32), x, 0, 0);
  if (operate_is_signed(type)) {
    y = KILNI_BIN(
        BIT_AND, y,
        kilni_program_u32(w, (uint32_t)kilni_program_type_most(narrow)));
  }
  limit(w, y, kilni_program_type_most(narrow));
  return y;
}

// ---- Unary ----

static kilni_program_value_t count_bits(kilni_program_lowering_t* w,
                                        uint32_t op, kilni_program_value_t x) {
  uint32_t width = operate_width_of(kilni_program_value_type(w, x));
  kilni_program_value_t y = operate_plain(w, x, true);
  bool wide = width == 64;
  kilni_program_value_t out;
  if (op == U(POPCOUNT)) {
    out =
        kilni_program_pure(w, wide ? "popc.b64" : "popc.b32", T(U32), y, 0, 0);
  } else {
    if (op == U(CTZ)) {
      if (width < 32) {
        y = KILNI_BIN(BIT_OR, y, kilni_program_u32(w, 1U << width));
      }
      y = kilni_program_pure(w, wide ? "brev.b64" : "brev.b32",
                             wide ? T(U64) : T(U32), y, 0, 0);
    }
    out = kilni_program_pure(w, wide ? "clz.b64" : "clz.b32", T(U32), y, 0, 0);
    if (op == U(CLZ) && width < 32) {
      out = KILNI_BIN(SUB, out, kilni_program_u32(w, 32 - width));
    }
  }
  limit(w, out, width);
  return out;
}

static kilni_program_value_t bits_of_x(kilni_program_lowering_t* w,
                                       uint8_t type, kilni_program_value_t x,
                                       uint32_t shift, uint64_t mask) {
  kilni_program_value_t y = operate_plain(w, x, true);
  uint8_t wide = kilni_program_value_type(w, y);
  if (shift != 0) y = KILNI_BIN(SHR, y, kilni_program_u32(w, shift));
  y = KILNI_BIN(BIT_AND, y, kilni_program_const(w, wide, mask));
  return kilni_program_narrow(w, type, y);
}

static kilni_program_value_t unary_integer(kilni_program_lowering_t* w,
                                           uint32_t op, uint8_t type,
                                           kilni_program_value_t x) {
  bool wide = operate_width_of(type) == 64;
  kilni_program_value_t y, zero = kilni_program_const(w, type, 0);
  switch (op) {
    case U(NEGATE):
      return KILNI_BIN(SUB, zero, x);
    case U(BIT_NOT):
      return KILNI_BIN(BIT_XOR, x, kilni_program_const(w, type, UINT64_MAX));
    case U(POPCOUNT):
    case U(CLZ):
    case U(CTZ):
      return count_bits(w, op, x);
    case U(REVERSE_BITS):
      y = operate_plain(w, x, true);
      y = kilni_program_pure(w, wide ? "brev.b64" : "brev.b32",
                             wide ? T(U64) : T(U32), y, 0, 0);
      if (operate_width_of(type) < 32) {
        y = KILNI_BIN(SHR, y,
                      kilni_program_u32(w, 32 - operate_width_of(type)));
      }
      return kilni_program_narrow(w, type, y);
    case U(UNPACK4_LOW):
      return bits_of_x(w, type, x, 0, 15);
    case U(UNPACK4_HIGH):
      return bits_of_x(w, type, x, 4, 15);
    case U(UNPACK8_LOW):
      return bits_of_x(w, type, x, 0, 255);
    case U(UNPACK8_HIGH):
      return bits_of_x(w, type, x, 8, 255);
    case U(ABS):
      return KILNI_BIN(MAX, x, KILNI_BIN(SUB, zero, x));
    default:  // SIGN
      y = kilni_program_const(w, type, UINT64_MAX);
      return KILNI_BIN(MIN, KILNI_BIN(MAX, x, y),
                       kilni_program_const(w, type, 1));
  }
}

static kilni_program_value_t sign_of(kilni_program_lowering_t* w, uint8_t type,
                                     kilni_program_value_t x) {
  bool wide = type == T(F64);
  kilni_program_value_t bits = kilni_program_to_bits(w, x);
  uint8_t bt = wide ? T(U64) : T(U32);
  uint64_t top = wide ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
  kilni_program_value_t sign =
      KILNI_BIN(BIT_AND, bits, kilni_program_const(w, bt, top));
  uint64_t unit = wide ? UINT64_C(0x3ff0000000000000) : 0x3f800000;
  kilni_program_value_t with =
      KILNI_BIN(BIT_OR, sign, kilni_program_const(w, bt, unit));
  with = kilni_program_from_bits(w, type, with);
  // Not equal to zero and ordered: less or greater.
  kilni_program_value_t some =
      kilni_program_pure(w, wide ? "setp.ne.f64" : "setp.ne.f32", T(BOOL), x,
                         kilni_program_const(w, type, 0), 0);
  return kilni_program_select(w, some, with, x);
}

static kilni_program_value_t round_away(kilni_program_lowering_t* w,
                                        uint8_t type, kilni_program_value_t x) {
  kilni_program_value_t cut = kilni_program_unary(w, U(TRUNC), x);
  kilni_program_value_t rest =
      kilni_program_unary(w, U(ABS), KILNI_BIN(SUB, x, cut));
  uint64_t half = type == T(F64) ? UINT64_C(0x3fe0000000000000) : 0x3f000000;
  kilni_program_value_t far =
      KILNI_BIN(GE, rest, kilni_program_const(w, type, half));
  kilni_program_value_t step = sign_of(w, type, x);
  return kilni_program_select(w, far, KILNI_BIN(ADD, cut, step), cut);
}

static kilni_program_value_t operate_approximate(kilni_program_lowering_t* w,
                                                 uint32_t op,
                                                 kilni_program_value_t x);

static kilni_program_value_t float_class(kilni_program_lowering_t* w,
                                         uint32_t op, uint8_t type,
                                         kilni_program_value_t x) {
  bool wide = type == T(F64);
  if (op == U(IS_NAN)) {
    return kilni_program_pure(w, wide ? "setp.nan.f64" : "setp.nan.f32",
                              T(BOOL), x, x, 0);
  }
  uint64_t infinity = wide ? UINT64_C(0x7ff0000000000000) : 0x7f800000;
  kilni_program_value_t size = kilni_program_unary(w, U(ABS), x);
  kilni_program_value_t top = kilni_program_const(w, type, infinity);
  return op == U(IS_INF) ? KILNI_BIN(EQ, size, top) : KILNI_BIN(LT, size, top);
}

// Without its sign's bit. ptxas 13.0 leaves `abs.f32` away where it takes the
// operand to be 0 or more, and takes -0 to be that (`selp` of -0 and 12).
static kilni_program_value_t operate_magnitude(kilni_program_lowering_t* w,
                                               uint8_t type,
                                               kilni_program_value_t x) {
  bool wide = type == T(F64);
  const char* move = wide ? "mov.b64" : "mov.b32";
  uint8_t bits = wide ? T(U64) : T(U32);
  uint64_t mask = wide ? INT64_MAX : INT32_MAX;
  kilni_program_value_t y = kilni_program_pure(w, move, bits, x, 0, 0);
  y = KILNI_BIN(BIT_AND, y, kilni_program_const(w, bits, mask));
  return kilni_program_pure(w, move, type, y, 0, 0);
}

// Of f32 or f64.
static kilni_program_value_t operate_unary_float(kilni_program_lowering_t* w,
                                                 uint32_t op, uint8_t type,
                                                 kilni_program_value_t x) {
  bool wide = type == T(F64);
#define EITHER(a, b) kilni_program_pure(w, wide ? (b) : (a), type, x, 0, 0)
  switch (op) {
    case U(NEGATE):
      return EITHER("neg.f32", "neg.f64");
    case U(ABS):
      return operate_magnitude(w, type, x);
    case U(FLOOR):
      return EITHER("cvt.rmi.f32.f32", "cvt.rmi.f64.f64");
    case U(CEIL):
      return EITHER("cvt.rpi.f32.f32", "cvt.rpi.f64.f64");
    case U(TRUNC):
      return EITHER("cvt.rzi.f32.f32", "cvt.rzi.f64.f64");
    case U(ROUND):
      return EITHER("cvt.rni.f32.f32", "cvt.rni.f64.f64");
    case U(SQRT):
      return EITHER("sqrt.rn.f32", "sqrt.rn.f64");
    case U(RECIPROCAL):
      return EITHER("rcp.rn.f32", "rcp.rn.f64");
    case U(SIGN):
      return sign_of(w, type, x);
    case U(ROUND_AWAY):
      return round_away(w, type, x);
    case U(IS_NAN):
    case U(IS_INF):
    case U(IS_FINITE):
      return float_class(w, op, type, x);
    default:
      return operate_approximate(w, op, x);
  }
#undef EITHER
}

// What no instruction computes: a function of the library.
static kilni_program_value_t operate_approximate(kilni_program_lowering_t* w,
                                                 uint32_t op,
                                                 kilni_program_value_t x) {
  (void)x;
  kilni_program_lower_fail(w, KILN_STATUS_UNSUPPORTED,
                           "uses an operator that is not lowered yet",
                           kilni_program_unary_operators[op].spelling);
  return x;
}

kilni_program_value_t kilni_program_unary(kilni_program_lowering_t* w,
                                          uint32_t op,
                                          kilni_program_value_t x) {
  uint8_t type = kilni_program_value_type(w, x);
  uint8_t out_type = (uint8_t)kilni_program_type_of_unary(op, type);
  uint64_t folded;
  if (out_type == 0) {
    kilni_program_lower_fail(
        w, KILN_STATUS_INTERNAL, "has operands of a wrong type",
        op < KILNI_UNARY_COUNT ? kilni_program_unary_operators[op].spelling
                               : "?");
    return x;
  }
  if (kilni_program_value_is_const(w, x) &&
      (w->off & KILN_PROGRAM_WITHOUT_FOLDING) == 0 &&
      kilni_program_fold_unary(op, type, kilni_program_value_of(w, x)->bits,
                               w->floats != 0, &folded)) {
    return kilni_program_const(w, out_type, folded);
  }
  if (type == T(BOOL)) return kilni_program_pure(w, "not.pred", type, x, 0, 0);
  if (!operate_is_float(type)) return unary_integer(w, op, type, x);
  uint8_t computed = kilni_program_type_computed(type);
  if (computed == type) return operate_unary_float(w, op, type, x);
  kilni_program_value_t y =
      operate_unary_float(w, op, computed, operate_plain(w, x, false));
  return out_type == T(BOOL) ? y : kilni_program_narrow(w, type, y);
}

// ---- Binary ----

static kilni_program_value_t two(kilni_program_lowering_t* w,
                                 const char* const* row, uint8_t type,
                                 kilni_program_value_t x,
                                 kilni_program_value_t y) {
  return kilni_program_pure(w, row[operate_column_of(type)],
                            kilni_program_type_computed(type), x, y, 0);
}

static kilni_program_value_t operate_compare(kilni_program_lowering_t* w,
                                             uint32_t op,
                                             kilni_program_value_t x,
                                             kilni_program_value_t y) {
  static const char* const* const kRows[] = {kEq, kNe, kLt, kGt, kLe, kGe};
  const char* const* row = kRows[op - B(EQ)];
  uint8_t type = kilni_program_value_type(w, x);
  if (op == B(EQ) || op == B(NE)) kilni_program_avoid_clamp(w, &x, &y);
  return kilni_program_pure(w, row[operate_column_of(type)], T(BOOL), x, y, 0);
}

static kilni_program_value_t operate_shift(kilni_program_lowering_t* w,
                                           uint32_t op, uint8_t type,
                                           kilni_program_value_t x,
                                           kilni_program_value_t y) {
  uint32_t width = operate_width_of(type);
  kilni_program_value_t by = kilni_program_cast(w, T(U32), y);
  by = KILNI_BIN(BIT_AND, by, kilni_program_u32(w, width - 1));
  if (kilni_program_value_is(w, by, 0)) return x;
  uint8_t computed = kilni_program_type_computed(type);
  uint64_t most = kilni_program_value_of(w, x)->most;
  if (op == B(SHL)) {
    kilni_program_value_t out =
        two(w, kShl, type, operate_plain(w, x, false), by);
    if (kilni_program_value_is_const(w, by)) {
      uint64_t count = kilni_program_value_of(w, by)->bits;
      if (most <= most_positive(computed) >> count) {
        limit(w, out, most << count);
      }
    }
    return kilni_program_narrow(w, type, out);
  }
  if (op == B(SHR)) {
    kilni_program_value_t out =
        two(w, kShr, type, operate_plain(w, x, false), by);
    if (kilni_program_value_is_const(w, by)) {
      if (most != UINT64_MAX || !operate_is_signed(type)) {
        limit(w, out, most >> kilni_program_value_of(w, by)->bits);
      }
    } else if (most != UINT64_MAX) {
      limit(w, out, most);
    }
    return kilni_program_narrow(w, type, out);
  }
  if (width == 32) {
    const char* name =
        op == B(ROTATE_LEFT) ? "shf.l.wrap.b32" : "shf.r.wrap.b32";
    return kilni_program_pure(w, name, computed, x, x, by);
  }
  // x << by | x >> (width - by), where a count of the whole width may come up:
  // 64 of a 64-bit shift, and less than 32 of a small one.
  kilni_program_value_t bits = operate_plain(w, x, true);
  kilni_program_value_t back = KILNI_BIN(SUB, kilni_program_u32(w, width), by);
  if (op == B(ROTATE_RIGHT)) {
    kilni_program_value_t swap = by;
    by = back, back = swap;
  }
  const char* left = width == 64 ? "shl.b64" : "shl.b32";
  const char* right = width == 64 ? "shr.u64" : "shr.u32";
  uint8_t bits_type = kilni_program_value_type(w, bits);
  kilni_program_value_t up =
      kilni_program_pure(w, left, bits_type, bits, by, 0);
  kilni_program_value_t down =
      kilni_program_pure(w, right, bits_type, bits, back, 0);
  return kilni_program_narrow(w, type, KILNI_BIN(BIT_OR, up, down));
}

// Sums of small integers are exact in 32 bits, and of 32 bits in 64.
static kilni_program_value_t operate_clamp(kilni_program_lowering_t* w,
                                           uint8_t type,
                                           kilni_program_value_t exact) {
  uint8_t wide = kilni_program_value_type(w, exact);
  uint32_t width = operate_width_of(type);
  if (operate_is_signed(type)) {
    uint64_t top = (UINT64_C(1) << (width - 1)) - 1;
    exact = KILNI_BIN(MIN, exact, kilni_program_const(w, wide, top));
    exact = KILNI_BIN(MAX, exact, kilni_program_const(w, wide, ~top));
  } else {
    uint64_t top = (UINT64_C(1) << width) - 1;
    exact = KILNI_BIN(MIN, exact, kilni_program_const(w, wide, top));
  }
  return kilni_program_cast(w, type, exact);
}

static kilni_program_value_t operate_saturate64(kilni_program_lowering_t* w,
                                                uint32_t op,
                                                kilni_program_value_t x,
                                                kilni_program_value_t y) {
  uint8_t type = kilni_program_value_type(w, x);
  kilni_program_value_t zero = kilni_program_const(w, type, 0);
  kilni_program_value_t ones = kilni_program_const(w, type, UINT64_MAX);
  kilni_program_value_t over, sum;
  if (type == T(U64)) {
    if (op == B(SUB_SAT)) {
      return kilni_program_select(w, KILNI_BIN(LT, x, y), zero,
                                  KILNI_BIN(SUB, x, y));
    }
    if (op == B(ADD_SAT)) {
      sum = KILNI_BIN(ADD, x, y);
      return kilni_program_select(w, KILNI_BIN(LT, sum, x), ones, sum);
    }
    over = KILNI_BIN(NE, KILNI_BIN(MUL_HIGH, x, y), zero);
    return kilni_program_select(w, over, ones, KILNI_BIN(MUL, x, y));
  }
  kilni_program_value_t least = kilni_program_const(w, type, UINT64_C(1) << 63);
  kilni_program_value_t most = kilni_program_const(w, type, UINT64_MAX >> 1);
  kilni_program_value_t mixed = KILNI_BIN(BIT_XOR, x, y);
  kilni_program_value_t below = KILNI_BIN(LT, x, zero);
  if (op == B(MUL_SAT)) {
    sum = KILNI_BIN(MUL, x, y);
    over = KILNI_BIN(SHR, sum, kilni_program_u32(w, 63));
    over = KILNI_BIN(NE, KILNI_BIN(MUL_HIGH, x, y), over);
    below = KILNI_BIN(LT, mixed, zero);
  } else {
    bool add = op == B(ADD_SAT);
    sum = add ? KILNI_BIN(ADD, x, y) : KILNI_BIN(SUB, x, y);
    kilni_program_value_t turned = KILNI_BIN(BIT_XOR, x, sum);
    if (add) mixed = KILNI_BIN(BIT_XOR, mixed, ones);
    over = KILNI_BIN(LT, KILNI_BIN(BIT_AND, turned, mixed), zero);
  }
  kilni_program_value_t end = kilni_program_select(w, below, least, most);
  return kilni_program_select(w, over, end, sum);
}

static kilni_program_value_t saturate(kilni_program_lowering_t* w, uint32_t op,
                                      uint8_t type, kilni_program_value_t x,
                                      kilni_program_value_t y) {
  uint32_t width = operate_width_of(type);
  if (width == 64) return operate_saturate64(w, op, x, y);
  if (op == B(SUB_SAT) && !operate_is_signed(type)) {
    kilni_program_value_t less = KILNI_BIN(LT, x, y);
    return kilni_program_select(w, less, kilni_program_const(w, type, 0),
                                KILNI_BIN(SUB, x, y));
  }
  bool sign = operate_is_signed(type);
  uint8_t wide =
      width == 32 ? (sign ? T(I64) : T(U64)) : (sign ? T(I32) : T(U32));
  kilni_program_value_t a = kilni_program_cast(w, wide, x),
                        b = kilni_program_cast(w, wide, y);
  kilni_program_value_t exact = op == B(ADD_SAT)   ? KILNI_BIN(ADD, a, b)
                                : op == B(SUB_SAT) ? KILNI_BIN(SUB, a, b)
                                                   : KILNI_BIN(MUL, a, b);
  return operate_clamp(w, type, exact);
}

static kilni_program_value_t mul_high(kilni_program_lowering_t* w, uint8_t type,
                                      kilni_program_value_t x,
                                      kilni_program_value_t y) {
  uint32_t width = operate_width_of(type);
  if (width >= 32) return two(w, kHigh, type, x, y);
  kilni_program_value_t all =
      KILNI_BIN(MUL, operate_plain(w, x, false), operate_plain(w, y, false));
  all = KILNI_BIN(SHR, all, kilni_program_u32(w, width));
  return kilni_program_narrow(w, type, all);
}

static kilni_program_value_t operate_distance(kilni_program_lowering_t* w,
                                              uint8_t type,
                                              kilni_program_value_t x,
                                              kilni_program_value_t y) {
  if (operate_is_float(type)) {
    return kilni_program_unary(w, U(ABS), KILNI_BIN(SUB, x, y));
  }
  kilni_program_value_t more = KILNI_BIN(GT, x, y);
  uint8_t to = unsigned_of(type);
  kilni_program_value_t a = kilni_program_cast(w, to, x),
                        b = kilni_program_cast(w, to, y);
  return kilni_program_select(w, more, KILNI_BIN(SUB, a, b),
                              KILNI_BIN(SUB, b, a));
}

// What is known of the result's size.
static void operate_bound(kilni_program_lowering_t* w, uint32_t op,
                          uint8_t type, kilni_program_value_t x,
                          kilni_program_value_t y, kilni_program_value_t out) {
  if (!kilni_program_type_is_integer(type)) return;
  uint64_t a = kilni_program_value_of(w, x)->most,
           b = kilni_program_value_of(w, y)->most;
  uint64_t top = most_positive(type);
  bool both = a <= top && b <= top;
  switch (op) {
    case B(ADD):
      if (both && a <= top - b) limit(w, out, a + b);
      break;
    case B(MUL):
      if (both && (b == 0 || a <= top / b)) limit(w, out, a * b);
      break;
    case B(BIT_AND):
      if (a <= top || b <= top) limit(w, out, a < b ? a : b);
      break;
    case B(BIT_OR):
    case B(BIT_XOR):
      if (both) {
        uint64_t all = a | b;
        while ((all & (all + 1)) != 0) all |= all >> 1;
        limit(w, out, all);
      }
      break;
    case B(MIN):
      if (both) limit(w, out, a < b ? a : b);
      break;
    case B(MAX):
      if (both) limit(w, out, a > b ? a : b);
      break;
    default:
      break;
  }
}

// max(max(a, b), b), and the like: what is there already; else 0.
static kilni_program_value_t extreme_again(const kilni_program_lowering_t* w,
                                           uint32_t op, uint8_t type,
                                           kilni_program_value_t x,
                                           kilni_program_value_t y) {
  const char* name = (op == B(MIN) ? kMin : kMax)[operate_column_of(type)];
  for (uint32_t side = 0; side < 2; side++) {
    const kilni_program_instruction_t* i = kilni_program_define_of(w, x);
    if (i != NULL && strcmp(i->name, name) == 0 &&
        (i->operand[1] == y || i->operand[2] == y)) {
      return x;
    }
    kilni_program_value_t swap = x;
    x = y, y = swap;
  }
  return 0;
}

static kilni_program_value_t arithmetic(kilni_program_lowering_t* w,
                                        uint32_t op, uint8_t type,
                                        kilni_program_value_t x,
                                        kilni_program_value_t y) {
  static const char* const* const kRows[] = {
      [B(ADD)] = kAdd,     [B(SUB)] = kSub,   [B(MUL)] = kMul,
      [B(BIT_AND)] = kAnd, [B(BIT_OR)] = kOr, [B(BIT_XOR)] = kXor,
      [B(MIN)] = kMin,     [B(MAX)] = kMax,
  };
  kilni_program_value_t a = operate_plain(w, x, false),
                        b = operate_plain(w, y, false);
  if ((op == B(MIN) || op == B(MAX)) && !operate_is_float(type)) {
    kilni_program_value_t again = extreme_again(w, op, type, a, b);
    if (again != 0) return kilni_program_retype(w, type, again);
    kilni_program_avoid_minus(w, &a, &b);
  }
  kilni_program_value_t out =
      op == B(SUB) ? kilni_program_avoid_difference(w, a, b) : 0;
  if (out == 0) out = two(w, kRows[op], type, a, b);
  operate_bound(w, op, type, x, y, out);
  return kilni_program_narrow(w, type, out);
}

static kilni_program_value_t binary_bool(kilni_program_lowering_t* w,
                                         uint32_t op, kilni_program_value_t x,
                                         kilni_program_value_t y) {
  bool turned = op == B(EQ) || op == B(NE);
  // A known side leaves the other, its opposite, or a constant.
  for (uint32_t side = 0; side < 2; side++) {
    kilni_program_value_t known = side == 0 ? x : y, other = side == 0 ? y : x;
    if (!kilni_program_value_is_const(w, known)) continue;
    bool yes = kilni_program_value_of(w, known)->bits != 0;
    if (turned) {
      return yes == (op == B(EQ)) ? other
                                  : kilni_program_unary(w, U(NOT), other);
    }
    return yes == (op == B(AND)) ? other : known;
  }
  const char* name = op == B(AND)  ? "and.pred"
                     : op == B(OR) ? "or.pred"
                                   : "xor.pred";
  kilni_program_value_t out = kilni_program_pure(w, name, T(BOOL), x, y, 0);
  return op == B(EQ) ? kilni_program_unary(w, U(NOT), out) : out;
}

static uint32_t log2_of(uint64_t x) {
  uint32_t log = 0;
  while (x >> log > 1) log++;
  return log;
}

// Integer operations that a constant makes simple; 0 if it does not.
static kilni_program_value_t simplify(kilni_program_lowering_t* w, uint32_t op,
                                      uint8_t type, kilni_program_value_t x,
                                      kilni_program_value_t y) {
  if ((w->off & KILN_PROGRAM_WITHOUT_STRENGTH) != 0) return 0;
  bool commutes = op == B(ADD) || op == B(MUL) || op == B(BIT_AND) ||
                  op == B(BIT_OR) || op == B(BIT_XOR);
  if (commutes && kilni_program_value_is_const(w, x)) {
    kilni_program_value_t swap = x;
    x = y, y = swap;
  }
  if (!kilni_program_value_is_const(w, y)) return 0;
  uint64_t c = kilni_program_value_of(w, y)->bits;
  uint64_t ones = UINT64_MAX >> (64 - operate_width_of(type));
  switch (op) {
    case B(ADD):
    case B(SUB):
    case B(BIT_XOR):
      return c == 0 ? x : 0;
    case B(BIT_OR):
      return c == 0 ? x : c == ones ? y : 0;
    case B(BIT_AND):
      if (c == 0 || c == ones) return c == 0 ? y : x;
      // A mask of low bits that are all that x has.
      if ((c & (c + 1)) == 0 && kilni_program_value_of(w, x)->most <= c) {
        return x;
      }
      return 0;
    case B(MUL):
      if (c == 0 || c == 1) return c == 0 ? y : x;
      if ((c & (c - 1)) != 0) return 0;
      return KILNI_BIN(SHL, x, kilni_program_u32(w, log2_of(c)));
    default:
      return 0;
  }
}

static kilni_program_value_t binary_number(kilni_program_lowering_t* w,
                                           uint32_t op, uint8_t type,
                                           kilni_program_value_t x,
                                           kilni_program_value_t y) {
  switch (op) {
    case B(ADD):
    case B(SUB):
    case B(MUL):
    case B(BIT_AND):
    case B(BIT_OR):
    case B(BIT_XOR):
    case B(MIN):
    case B(MAX):
      return arithmetic(w, op, type, x, y);
    case B(EQ):
    case B(NE):
    case B(LT):
    case B(GT):
    case B(LE):
    case B(GE):
      return operate_compare(w, op, operate_plain(w, x, false),
                             operate_plain(w, y, false));
    case B(ABS_DIFF):
      return operate_distance(w, type, x, y);
    case B(ADD_SAT):
    case B(SUB_SAT):
    case B(MUL_SAT):
      return saturate(w, op, type, x, y);
    case B(MUL_HIGH):
      return mul_high(w, type, x, y);
    case B(DIV):
    case B(REM):
      if (!operate_is_float(type)) {
        return kilni_program_divide(w, op, type, x, y);
      }
      if (op == B(DIV)) {
        uint8_t computed = kilni_program_type_computed(type);
        kilni_program_value_t q = kilni_program_pure(
            w, computed == T(F64) ? "div.rn.f64" : "div.rn.f32", computed,
            operate_plain(w, x, false), operate_plain(w, y, false), 0);
        return kilni_program_narrow(w, type, q);
      }
      break;
    default:
      break;
  }
  kilni_program_lower_fail(w, KILN_STATUS_UNSUPPORTED,
                           "uses an operator that is not lowered yet",
                           kilni_program_binary_operators[op].spelling);
  return x;
}

static bool is_by(const kilni_program_lowering_t* w,
                  const kilni_program_instruction_t* i, const char* name,
                  uint64_t bits) {
  return i != NULL && i->count == 3 && strcmp(i->name, name) == 0 &&
         kilni_program_value_is(w, i->operand[2], bits);
}

// The word whose byte `*out_byte` a value is; 0: it is none.
static kilni_program_value_t word_of_byte(const kilni_program_lowering_t* w,
                                          kilni_program_value_t x,
                                          uint32_t* out_byte) {
  const kilni_program_instruction_t* i = kilni_program_define_of(w, x);
  *out_byte = 3;
  if (is_by(w, i, "shr.u32", 24)) return i->operand[1];
  if (!is_by(w, i, "and.b32", 255)) return 0;
  kilni_program_value_t word = i->operand[1];
  const kilni_program_instruction_t* of = kilni_program_define_of(w, word);
  for (*out_byte = 2; *out_byte != 0; --*out_byte) {
    if (is_by(w, of, "shr.u32", 8 * *out_byte)) return of->operand[1];
  }
  return word;
}

// x << 8 | a byte of a word, by one instruction: the steps of automata. 0: it
// is none of those.
static kilni_program_value_t join_byte(kilni_program_lowering_t* w,
                                       kilni_program_value_t x,
                                       kilni_program_value_t y) {
  const kilni_program_instruction_t* i = kilni_program_define_of(w, x);
  if (!is_by(w, i, "shl.b32", 8)) {
    kilni_program_value_t swap = x;
    x = y, y = swap;
    i = kilni_program_define_of(w, x);
    if (!is_by(w, i, "shl.b32", 8)) return 0;
  }
  kilni_program_value_t high = i->operand[1];
  uint32_t byte;
  kilni_program_value_t word = word_of_byte(w, y, &byte);
  if (word == 0) return 0;
  uint64_t most = kilni_program_value_of(w, high)->most;
  kilni_program_value_t out = kilni_program_pure(
      w, "prmt.b32", T(U32), word, high, kilni_program_u32(w, 0x6540 + byte));
  if (most <= 0xffffff) limit(w, out, most << 8 | 255);
  return out;
}

kilni_program_value_t kilni_program_binary(kilni_program_lowering_t* w,
                                           uint32_t op, kilni_program_value_t x,
                                           kilni_program_value_t y) {
  uint8_t type = kilni_program_value_type(w, x);
  uint8_t out_type = (uint8_t)kilni_program_type_of_binary(
      op, type, kilni_program_value_type(w, y));
  if (out_type == 0) {
    kilni_program_lower_fail(
        w, KILN_STATUS_INTERNAL, "has operands of a wrong type",
        op < KILNI_BINARY_COUNT ? kilni_program_binary_operators[op].spelling
                                : "?");
    return x;
  }
  uint64_t folded;
  if (kilni_program_value_is_const(w, x) &&
      kilni_program_value_is_const(w, y) &&
      (w->off & KILN_PROGRAM_WITHOUT_FOLDING) == 0 &&
      kilni_program_fold_binary(op, type, kilni_program_value_of(w, x)->bits,
                                kilni_program_value_of(w, y)->bits,
                                w->floats != 0, &folded)) {
    return kilni_program_const(w, out_type, folded);
  }
  if (kilni_program_binary_is_shift(op)) {
    return operate_shift(w, op, type, x, y);
  }
  if (type == T(BOOL)) return binary_bool(w, op, x, y);
  if (!operate_is_float(type)) {
    kilni_program_value_t simple = simplify(w, op, type, x, y);
    if (simple == 0 && op == B(BIT_OR) && type == T(U32)) {
      simple = kilni_program_group_join(w, x, y);
      if (simple == 0) simple = join_byte(w, x, y);
    }
    if (simple != 0) return simple;
  }
  return binary_number(w, op, type, x, y);
}

// ---- Three operands ----

kilni_program_value_t kilni_program_select(kilni_program_lowering_t* w,
                                           kilni_program_value_t c,
                                           kilni_program_value_t x,
                                           kilni_program_value_t y) {
  if (x == y) return x;
  if (kilni_program_value_is_const(w, c)) {
    return kilni_program_value_of(w, c)->bits != 0 ? x : y;
  }
  uint8_t type = kilni_program_value_type(w, x);
  if (type == T(BOOL)) {
    kilni_program_value_t yes = KILNI_BIN(AND, c, x);
    kilni_program_value_t no =
        KILNI_BIN(AND, kilni_program_unary(w, U(NOT), c), y);
    return KILNI_BIN(OR, yes, no);
  }
  const kilni_program_value_t bound = kilni_program_avoid_choice(w, c, x, y);
  if (bound != 0) return bound;
  static const char* const kSelect[C_COUNT] = {BITS("selp"), "selp.f32",
                                               "selp.f64"};
  kilni_program_value_t out =
      kilni_program_pure(w, kSelect[operate_column_of(type)], type, x, y, c);
  uint64_t a = kilni_program_value_of(w, x)->most,
           b = kilni_program_value_of(w, y)->most;
  if (kilni_program_type_is_integer(type)) limit(w, out, a > b ? a : b);
  return out;
}

kilni_program_value_t kilni_program_fma(kilni_program_lowering_t* w,
                                        kilni_program_value_t x,
                                        kilni_program_value_t y,
                                        kilni_program_value_t z) {
  uint8_t type = kilni_program_value_type(w, x);
  uint64_t folded;
  if (kilni_program_value_is_const(w, x) &&
      kilni_program_value_is_const(w, y) &&
      kilni_program_value_is_const(w, z) &&
      (w->off & KILN_PROGRAM_WITHOUT_FOLDING) == 0 &&
      kilni_program_fold_fma(type, kilni_program_value_of(w, x)->bits,
                             kilni_program_value_of(w, y)->bits,
                             kilni_program_value_of(w, z)->bits, w->floats != 0,
                             &folded)) {
    return kilni_program_const(w, type, folded);
  }
  uint8_t computed = kilni_program_type_computed(type);
  kilni_program_value_t out = kilni_program_pure(
      w, computed == T(F64) ? "fma.rn.f64" : "fma.rn.f32", computed,
      operate_plain(w, x, false), operate_plain(w, y, false),
      operate_plain(w, z, false));
  return kilni_program_narrow(w, type, out);
}
