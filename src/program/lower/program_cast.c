// SPDX-License-Identifier: Apache-2.0
//
// program: casts by value and by bits.
#include "program/ir/program_types.h"
#include "program/lower/program_lowering.h"

#define T(NAME) KILN_PROGRAM_TYPE_##NAME

static uint32_t cast_width_of(uint8_t type) {
  return 8 * kilni_program_type_bytes(type);
}
static bool cast_is_float(uint8_t type) {
  return kilni_program_type_class(type) == KILNI_CLASS_FLOAT;
}
static bool cast_is_signed(uint8_t type) {
  return kilni_program_type_class(type) == KILNI_CLASS_SIGNED;
}

// The computed form of x: a small float as f32, a small integer as 32 bits.
static kilni_program_value_t cast_computed(kilni_program_lowering_t* w,
                                           kilni_program_value_t x) {
  uint8_t type = kilni_program_value_type(w, x);
  uint8_t to = kilni_program_type_computed(type);
  if (to == type) return x;
  if (kilni_program_value_is_const(w, x)) {
    uint64_t bits = kilni_program_value_of(w, x)->bits;
    if (cast_is_float(type)) {
      return kilni_program_const(w, to, kilni_program_fold_widen(type, bits));
    }
    kilni_program_fold_cast(type, to, bits, true, &bits);
    return kilni_program_const(w, to, bits);
  }
  return kilni_program_retype(w, to, x);
}

// ---- Integers ----

static kilni_program_value_t resize(kilni_program_lowering_t* w, uint8_t type,
                                    kilni_program_value_t x) {
  uint8_t from = kilni_program_value_type(w, x);
  uint8_t to = kilni_program_type_computed(type);
  bool from_wide = cast_width_of(from) == 64, to_wide = cast_width_of(to) == 64;
  kilni_program_value_t y = cast_computed(w, x);
  uint64_t most = kilni_program_value_of(w, y)->most;
  if (from_wide && !to_wide) {
    y = kilni_program_pure(w, "cvt.u32.u64", T(U32), y, 0, 0);
    if (most < w->values.items[y].most) w->values.items[y].most = most;
  } else if (!from_wide && to_wide) {
    const char* name = cast_is_signed(from) ? "cvt.s64.s32" : "cvt.u64.u32";
    y = kilni_program_pure(w, name, to, y, 0, 0);
    if (most < w->values.items[y].most) w->values.items[y].most = most;
    return y;
  }
  // A negative number is not in range of what `narrow` may keep: its `most`
  // says so.
  y = kilni_program_retype(w, to, y);
  return kilni_program_narrow(w, type, y);
}

// ---- Floats and integers ----

static kilni_program_value_t to_integer(kilni_program_lowering_t* w,
                                        uint8_t type, kilni_program_value_t x) {
  static const char* const kNames[2][4] = {
      {"cvt.rzi.u32.f32", "cvt.rzi.s32.f32", "cvt.rzi.u64.f32",
       "cvt.rzi.s64.f32"},
      {"cvt.rzi.u32.f64", "cvt.rzi.s32.f64", "cvt.rzi.u64.f64",
       "cvt.rzi.s64.f64"}};
  uint8_t to = kilni_program_type_computed(type);
  kilni_program_value_t y = cast_computed(w, x);
  bool wide = kilni_program_value_type(w, y) == T(F64);
  uint32_t column =
      (cast_width_of(to) == 64 ? 2U : 0U) + (cast_is_signed(to) ? 1U : 0U);
  kilni_program_value_t out =
      kilni_program_pure(w, kNames[wide][column], to, y, 0, 0);
  kilni_program_value_t nan =
      kilni_program_unary(w, KILN_PROGRAM_UNARY_IS_NAN, y);
  out = kilni_program_select(w, nan, kilni_program_const(w, to, 0), out);
  if (to == type) return out;
  uint64_t most = UINT64_MAX >> (64 - cast_width_of(type));
  if (cast_is_signed(type)) {
    most >>= 1;
    out = KILNI_BIN(MAX, out, kilni_program_const(w, to, ~most));
  }
  out = KILNI_BIN(MIN, out, kilni_program_const(w, to, most));
  return kilni_program_narrow(w, type, out);
}

// f32 with the last bit set where something was lost: it rounds to bf16 as
// what it comes from.
static kilni_program_value_t mark_lost(kilni_program_lowering_t* w,
                                       kilni_program_value_t cut,
                                       kilni_program_value_t lost) {
  kilni_program_value_t bits =
      kilni_program_pure(w, "mov.b32", T(U32), cut, 0, 0);
  kilni_program_value_t odd = KILNI_BIN(BIT_OR, bits, kilni_program_u32(w, 1));
  bits = kilni_program_select(w, lost, odd, bits);
  return kilni_program_pure(w, "mov.b32", T(F32), bits, 0, 0);
}

static kilni_program_value_t integer_to_bf16(kilni_program_lowering_t* w,
                                             kilni_program_value_t x) {
  static const char* const kTo[4] = {"cvt.rz.f32.u32", "cvt.rz.f32.s32",
                                     "cvt.rz.f32.u64", "cvt.rz.f32.s64"};
  static const char* const kBack[4] = {"cvt.rzi.u32.f32", "cvt.rzi.s32.f32",
                                       "cvt.rzi.u64.f32", "cvt.rzi.s64.f32"};
  uint8_t type = kilni_program_value_type(w, x);
  uint32_t column =
      (cast_width_of(type) == 64 ? 2U : 0U) + (cast_is_signed(type) ? 1U : 0U);
  kilni_program_value_t cut =
      kilni_program_pure(w, kTo[column], T(F32), x, 0, 0);
  kilni_program_value_t back =
      kilni_program_pure(w, kBack[column], type, cut, 0, 0);
  kilni_program_value_t lost = KILNI_BIN(NE, x, back);
  return kilni_program_narrow(w, T(BF16), mark_lost(w, cut, lost));
}

static kilni_program_value_t from_integer(kilni_program_lowering_t* w,
                                          uint8_t type,
                                          kilni_program_value_t x) {
  static const char* const kNames[3][4] = {
      {"cvt.rn.f16.u32", "cvt.rn.f16.s32", "cvt.rn.f16.u64", "cvt.rn.f16.s64"},
      {"cvt.rn.f32.u32", "cvt.rn.f32.s32", "cvt.rn.f32.u64", "cvt.rn.f32.s64"},
      {"cvt.rn.f64.u32", "cvt.rn.f64.s32", "cvt.rn.f64.u64", "cvt.rn.f64.s64"}};
  kilni_program_value_t y = cast_computed(w, x);
  uint8_t from = kilni_program_value_type(w, y);
  uint32_t column =
      (cast_width_of(from) == 64 ? 2U : 0U) + (cast_is_signed(from) ? 1U : 0U);
  switch (type) {
    case T(F16):
      y = kilni_program_pure(w, kNames[0][column], KILNI_TYPE_HALF_BITS, y, 0,
                             0);
      return kilni_program_pure(w, "cvt.f32.f16", type, y, 0, 0);
    case T(BF16):
      return integer_to_bf16(w, y);
    case T(F32):
      return kilni_program_pure(w, kNames[1][column], type, y, 0, 0);
    default:
      return kilni_program_pure(w, kNames[2][column], type, y, 0, 0);
  }
}

static kilni_program_value_t float_to_float(kilni_program_lowering_t* w,
                                            uint8_t type,
                                            kilni_program_value_t x) {
  kilni_program_value_t y = cast_computed(w, x);
  if (kilni_program_value_type(w, y) == T(F32)) {
    if (type == T(F32)) return y;
    if (type == T(F64)) {
      return kilni_program_pure(w, "cvt.f64.f32", type, y, 0, 0);
    }
    return kilni_program_narrow(w, type, y);
  }
  switch (type) {
    case T(F64):
      return y;
    case T(F32):
      return kilni_program_pure(w, "cvt.rn.f32.f64", type, y, 0, 0);
    case T(F16):
      y = kilni_program_pure(w, "cvt.rn.f16.f64", KILNI_TYPE_HALF_BITS, y, 0,
                             0);
      return kilni_program_pure(w, "cvt.f32.f16", type, y, 0, 0);
    default: {
      kilni_program_value_t cut =
          kilni_program_pure(w, "cvt.rz.f32.f64", T(F32), y, 0, 0);
      kilni_program_value_t back =
          kilni_program_pure(w, "cvt.f64.f32", T(F64), cut, 0, 0);
      kilni_program_value_t lost =
          kilni_program_pure(w, "setp.ne.f64", T(BOOL), y, back, 0);
      return kilni_program_narrow(w, type, mark_lost(w, cut, lost));
    }
  }
}

static uint64_t cast_one_of(uint8_t type) {
  switch (type) {
    case T(F16):
      return 0x3c00;
    case T(BF16):
      return 0x3f80;
    case T(F32):
      return 0x3f800000;
    case T(F64):
      return UINT64_C(0x3ff0000000000000);
    default:
      return 1;
  }
}

kilni_program_value_t kilni_program_cast(kilni_program_lowering_t* w,
                                         uint8_t type,
                                         kilni_program_value_t x) {
  uint8_t from = kilni_program_value_type(w, x);
  if (from == type) return x;
  uint64_t folded;
  if (kilni_program_value_is_const(w, x) &&
      kilni_program_fold_cast(from, type, kilni_program_value_of(w, x)->bits,
                              w->floats != 0, &folded)) {
    return kilni_program_const(w, type, folded);
  }
  const kilni_program_value_t selected =
      kilni_program_avoid_conversion(w, type, x);
  if (selected != 0) return selected;
  if (from == T(BOOL)) {
    return kilni_program_select(w, x,
                                kilni_program_const(w, type, cast_one_of(type)),
                                kilni_program_const(w, type, 0));
  }
  if (type == T(BOOL)) return KILNI_BIN(NE, x, kilni_program_const(w, from, 0));
  if (cast_is_float(from)) {
    return cast_is_float(type) ? float_to_float(w, type, x)
                               : to_integer(w, type, x);
  }
  return cast_is_float(type) ? from_integer(w, type, x) : resize(w, type, x);
}

// ---- Bits ----

kilni_program_value_t kilni_program_to_bits(kilni_program_lowering_t* w,
                                            kilni_program_value_t x) {
  uint8_t type = kilni_program_value_type(w, x);
  bool wide = cast_width_of(type) == 64;
  uint8_t to = wide ? T(U64) : T(U32);
  if (kilni_program_value_is_const(w, x)) {
    return kilni_program_const(w, to, kilni_program_value_of(w, x)->bits);
  }
  kilni_program_value_t y;
  switch (type) {
    case T(BOOL):
      return kilni_program_cast(w, to, x);
    case T(F16):
      y = kilni_program_pure(w, "cvt.rn.f16.f32", KILNI_TYPE_HALF_BITS, x, 0,
                             0);
      y = kilni_program_pure(w, "cvt.u32.u16", to, y, 0, 0);
      w->values.items[y].most = 0xffff;
      return y;
    case T(BF16):
      y = kilni_program_pure(w, "mov.b32", to, x, 0, 0);
      return KILNI_BIN(SHR, y, kilni_program_u32(w, 16));
    case T(I8):
    case T(I16):
      y = kilni_program_cast(w, (uint8_t)kilni_program_type_unsigned(type), x);
      return kilni_program_cast(w, to, y);
    case T(F32):
    case T(F64):
      return kilni_program_pure(w, wide ? "mov.b64" : "mov.b32", to, x, 0, 0);
    default:
      return kilni_program_retype(w, to, x);
  }
}

kilni_program_value_t kilni_program_from_bits(kilni_program_lowering_t* w,
                                              uint8_t type,
                                              kilni_program_value_t bits) {
  if (kilni_program_value_is_const(w, bits)) {
    return kilni_program_const(w, type, kilni_program_value_of(w, bits)->bits);
  }
  kilni_program_value_t y;
  switch (type) {
    case T(BOOL):
      return KILNI_BIN(
          NE, bits,
          kilni_program_const(w, kilni_program_value_type(w, bits), 0));
    case T(F16):
      // Twice, which nothing reads: where the bits are one of two constants,
      // ptxas 13.0 takes them for integers that the cvt below converts.
      y = kilni_program_pure(w, "prmt.b32", T(U32), bits, bits,
                             kilni_program_u32(w, 0x1010));
      y = kilni_program_pure(w, "cvt.u16.u32", KILNI_TYPE_HALF_BITS, y, 0, 0);
      return kilni_program_pure(w, "cvt.f32.f16", type, y, 0, 0);
    case T(BF16):
      y = kilni_program_pure(w, "shl.b32", T(U32), bits,
                             kilni_program_u32(w, 16), 0);
      return kilni_program_pure(w, "mov.b32", type, y, 0, 0);
    case T(F32):
    case T(F64):
      return kilni_program_pure(w, type == T(F64) ? "mov.b64" : "mov.b32", type,
                                bits, 0, 0);
    default:
      return kilni_program_narrow(
          w, type,
          kilni_program_retype(w, kilni_program_type_computed(type), bits));
  }
}

kilni_program_value_t kilni_program_bitcast(kilni_program_lowering_t* w,
                                            uint8_t type,
                                            kilni_program_value_t x) {
  uint8_t from = kilni_program_value_type(w, x);
  if (from == type) return x;
  if (kilni_program_value_is_const(w, x)) {
    return kilni_program_const(
        w, type,
        kilni_program_fold_bitcast(from, type,
                                   kilni_program_value_of(w, x)->bits));
  }
  kilni_program_value_t bits = kilni_program_to_bits(w, x);
  if (cast_is_float(from)) {
    uint8_t wide = kilni_program_value_type(w, bits);
    uint64_t nan = kilni_program_float_canonical(
        from, UINT64_MAX >> 1 >> (64 - cast_width_of(from)));
    kilni_program_value_t is_nan =
        kilni_program_unary(w, KILN_PROGRAM_UNARY_IS_NAN, x);
    bits = kilni_program_select(w, is_nan, kilni_program_const(w, wide, nan),
                                bits);
  }
  return kilni_program_from_bits(w, type, bits);
}
