// SPDX-License-Identifier: Apache-2.0
//
// program: what the 32 threads of a subgroup do together.
//
// All lanes that there are run these, also those of threads that have
// returned: they hold what changes nothing. None of it is ever moved or
// shared: its result is that of the lanes that come to this very place.
#include <string.h>

#include "program/ir/program_types.h"
#include "program/lower/program_lowering.h"

#define T(NAME) KILN_PROGRAM_TYPE_##NAME
#define S(NAME) KILN_PROGRAM_SUBGROUP_##NAME

static bool is_ragged(const kilni_program_lowering_t* w) {
  return w->threads % 32 != 0;
}

// How many lanes this subgroup has.
static kilni_program_value_t lane_count(kilni_program_lowering_t* w) {
  uint32_t rest = w->threads % 32;
  if (rest == 0) return kilni_program_u32(w, 32);
  if (w->threads < 32) return kilni_program_u32(w, rest);
  kilni_program_value_t last =
      KILNI_BIN(GE, kilni_program_local_index(w),
                kilni_program_u32(w, w->threads - rest));
  return kilni_program_select(w, last, kilni_program_u32(w, rest),
                              kilni_program_u32(w, 32));
}

kilni_program_value_t kilni_program_lanes(kilni_program_lowering_t* w) {
  uint32_t rest = w->threads % 32;
  uint32_t some = (UINT32_C(1) << rest) - 1;
  if (rest == 0) return kilni_program_u32(w, UINT32_MAX);
  if (w->threads < 32) return kilni_program_u32(w, some);
  kilni_program_value_t last =
      KILNI_BIN(GE, kilni_program_local_index(w),
                kilni_program_u32(w, w->threads - rest));
  return kilni_program_select(w, last, kilni_program_u32(w, some),
                              kilni_program_u32(w, UINT32_MAX));
}

static kilni_program_value_t lane_of(kilni_program_lowering_t* w) {
  return KILNI_BIN(BIT_AND, kilni_program_local_index(w),
                   kilni_program_u32(w, 31));
}

static bool is_same_constant(const kilni_program_lowering_t* w,
                             kilni_program_value_t a, kilni_program_value_t b) {
  return kilni_program_value_is_const(w, a) &&
         kilni_program_value_is(w, b, kilni_program_value_of(w, a)->bits);
}

kilni_program_value_t kilni_program_masked(kilni_program_lowering_t* w,
                                           kilni_program_value_t x,
                                           kilni_program_value_t neutral) {
  if (!w->keeps_live || is_same_constant(w, x, neutral)) return x;
  uint8_t type = kilni_program_value_type(w, x);
  if (type == T(BOOL)) {
    if (kilni_program_value_is_const(w, x)) x = kilni_program_in_register(w, x);
    return kilni_program_fresh(w, "and.pred", type, x, w->live);
  }
  const char* name = "selp.b32";
  uint8_t computed = kilni_program_type_computed(type);
  if (computed == T(F32)) name = "selp.f32";
  if (computed == T(F64)) name = "selp.f64";
  if (computed == T(U64) || computed == T(I64)) name = "selp.b64";
  kilni_program_value_t operands[3] = {x, neutral, w->live};
  return kilni_program_pin_value(w, name, type, 3, operands, 0);
}

// A constant is the same in every lane. That it is folded here is more than
// thrift: where ptxas 13.0 finds out itself that a shuffle gives a constant c,
// it makes max(c - y, z) into VIADDMNMX(y, -c, z), which is max(y - c, z).
static kilni_program_value_t shuffle32(kilni_program_lowering_t* w,
                                       const char* name,
                                       kilni_program_value_t x,
                                       kilni_program_value_t by,
                                       uint32_t clamp) {
  if (kilni_program_value_is_const(w, x)) return x;
  kilni_program_value_t operands[4] = {x, by, kilni_program_u32(w, clamp),
                                       kilni_program_lanes(w)};
  return kilni_program_pin_value(w, name, kilni_program_value_type(w, x), 4,
                                 operands, 0);
}

// What another lane holds.
static kilni_program_value_t shuffle(kilni_program_lowering_t* w,
                                     const char* name, kilni_program_value_t x,
                                     kilni_program_value_t by, uint32_t clamp) {
  uint8_t type = kilni_program_value_type(w, x);
  if (type == T(BOOL)) {
    kilni_program_value_t y =
        shuffle32(w, name, kilni_program_cast(w, T(U32), x), by, clamp);
    return KILNI_BIN(NE, y, kilni_program_u32(w, 0));
  }
  if (kilni_program_type_bytes(type) < 8) {
    return shuffle32(w, name, x, by, clamp);
  }
  kilni_program_value_t bits = kilni_program_to_bits(w, x);
  kilni_program_value_t low = kilni_program_cast(w, T(U32), bits);
  kilni_program_value_t high = KILNI_BIN(SHR, bits, kilni_program_u32(w, 32));
  high = kilni_program_cast(w, T(U32), high);
  low = kilni_program_cast(w, T(U64), shuffle32(w, name, low, by, clamp));
  high = kilni_program_cast(w, T(U64), shuffle32(w, name, high, by, clamp));
  high = KILNI_BIN(SHL, high, kilni_program_u32(w, 32));
  return kilni_program_from_bits(w, type, KILNI_BIN(BIT_OR, high, low));
}

// ---- Reductions and scans ----

static uint32_t operator_of(uint32_t op) {
  switch (op) {
    case S(REDUCE_ADD):
    case S(SCAN_ADD):
    case S(SCAN_EXCLUSIVE_ADD):
      return KILN_PROGRAM_BINARY_ADD;
    case S(REDUCE_MUL):
    case S(SCAN_MUL):
      return KILN_PROGRAM_BINARY_MUL;
    case S(REDUCE_MIN):
    case S(SCAN_MIN):
      return KILN_PROGRAM_BINARY_MIN;
    case S(REDUCE_MAX):
    case S(SCAN_MAX):
      return KILN_PROGRAM_BINARY_MAX;
    case S(REDUCE_AND):
      return KILN_PROGRAM_BINARY_BIT_AND;
    case S(REDUCE_OR):
      return KILN_PROGRAM_BINARY_BIT_OR;
    default:
      return KILN_PROGRAM_BINARY_BIT_XOR;
  }
}

static uint64_t lanes_one_of(uint8_t type) {
  uint64_t one = 1;
  if (kilni_program_type_class(type) == KILNI_CLASS_FLOAT) {
    kilni_program_fold_cast(T(U32), type, 1, true, &one);
  }
  return one;
}

static uint64_t lanes_infinity_of(uint8_t type) {
  switch (type) {
    case T(F16):
      return 0x7c00;
    case T(BF16):
      return 0x7f80;
    case T(F32):
      return 0x7f800000;
    default:
      return UINT64_C(0x7ff0000000000000);
  }
}

// What changes nothing.
static kilni_program_value_t neutral_of(kilni_program_lowering_t* w,
                                        uint32_t op, uint8_t type) {
  uint32_t class_ = kilni_program_type_class(type);
  uint64_t top = UINT64_C(1) << (8 * kilni_program_type_bytes(type) - 1);
  switch (operator_of(op)) {
    case KILN_PROGRAM_BINARY_ADD:
      return kilni_program_const(w, type,
                                 class_ == KILNI_CLASS_FLOAT ? top : 0);
    case KILN_PROGRAM_BINARY_MUL:
      return kilni_program_const(w, type, lanes_one_of(type));
    case KILN_PROGRAM_BINARY_MIN:
      if (class_ == KILNI_CLASS_FLOAT) {
        return kilni_program_const(w, type, lanes_infinity_of(type));
      }
      return kilni_program_const(
          w, type, class_ == KILNI_CLASS_SIGNED ? top - 1 : UINT64_MAX);
    case KILN_PROGRAM_BINARY_MAX:
      if (class_ == KILNI_CLASS_FLOAT) {
        return kilni_program_const(w, type, lanes_infinity_of(type) | top);
      }
      return kilni_program_const(w, type,
                                 class_ == KILNI_CLASS_SIGNED ? top : 0);
    case KILN_PROGRAM_BINARY_BIT_AND:
      return kilni_program_const(w, type, UINT64_MAX);
    default:
      return kilni_program_const(w, type, 0);
  }
}

// Whether any number of the same, with what changes nothing among them, gives
// that. (A NaN and infinity give infinity.)
static bool is_idempotent(uint32_t op, uint8_t type) {
  if (kilni_program_type_class(type) == KILNI_CLASS_FLOAT) return false;
  return op == S(REDUCE_MIN) || op == S(REDUCE_MAX) || op == S(REDUCE_AND) ||
         op == S(REDUCE_OR);
}

// One instruction, where the order does not tell.
static const char* redux_of(uint32_t op, uint8_t type) {
  bool is_signed = type == T(I32);
  if (type != T(U32) && !is_signed) return NULL;
  switch (op) {
    case S(REDUCE_ADD):
      return is_signed ? "redux.sync.add.s32" : "redux.sync.add.u32";
    case S(REDUCE_MIN):
      return is_signed ? "redux.sync.min.s32" : "redux.sync.min.u32";
    case S(REDUCE_MAX):
      return is_signed ? "redux.sync.max.s32" : "redux.sync.max.u32";
    case S(REDUCE_AND):
      return "redux.sync.and.b32";
    case S(REDUCE_OR):
      return "redux.sync.or.b32";
    case S(REDUCE_XOR):
      return "redux.sync.xor.b32";
    default:
      return NULL;
  }
}

static kilni_program_value_t lanes_reduce(kilni_program_lowering_t* w,
                                          uint32_t op,
                                          kilni_program_value_t x) {
  uint8_t type = kilni_program_value_type(w, x);
  kilni_program_value_t neutral = neutral_of(w, op, type);
  if (is_same_constant(w, x, neutral)) return x;
  if (kilni_program_value_is_const(w, x) && is_idempotent(op, type)) return x;
  x = kilni_program_masked(w, x, neutral);
  const char* redux = w->sm >= 80 ? redux_of(op, type) : NULL;
  if (redux != NULL) {
    if (w->need_sm < 80) w->need_sm = 80;
    if (w->need_isa < 70) w->need_isa = 70;
    if (kilni_program_value_is_const(w, x)) x = kilni_program_in_register(w, x);
    kilni_program_value_t operands[2] = {x, kilni_program_lanes(w)};
    return kilni_program_pin_value(w, redux, type, 2, operands, 0);
  }
  uint32_t binary = operator_of(op);
  if (!is_ragged(w)) {
    for (uint32_t d = 16; d != 0; d /= 2) {
      kilni_program_value_t other =
          shuffle(w, "shfl.sync.bfly.b32", x, kilni_program_u32(w, d), 31);
      x = kilni_program_binary(w, binary, x, other);
    }
    return x;
  }
  // Lanes that are not there hold the neutral value. What lane 0 comes to is
  // the same as with all of them.
  for (uint32_t d = 16; d != 0; d /= 2) {
    kilni_program_value_t other =
        shuffle(w, "shfl.sync.down.b32", x, kilni_program_u32(w, d), 31);
    kilni_program_value_t there =
        KILNI_BIN(ADD, lane_of(w), kilni_program_u32(w, d));
    there = KILNI_BIN(LT, there, lane_count(w));
    x = kilni_program_binary(w, binary, x,
                             kilni_program_select(w, there, other, neutral));
  }
  return shuffle(w, "shfl.sync.idx.b32", x, kilni_program_u32(w, 0), 31);
}

static kilni_program_value_t lanes_scan(kilni_program_lowering_t* w,
                                        uint32_t op, kilni_program_value_t x) {
  uint8_t type = kilni_program_value_type(w, x);
  x = kilni_program_masked(w, x, neutral_of(w, op, type));
  uint32_t binary = operator_of(op);
  for (uint32_t d = 1; d < 32; d *= 2) {
    kilni_program_value_t other =
        shuffle(w, "shfl.sync.up.b32", x, kilni_program_u32(w, d), 0);
    kilni_program_value_t takes =
        KILNI_BIN(GE, lane_of(w), kilni_program_u32(w, d));
    x = kilni_program_select(w, takes,
                             kilni_program_binary(w, binary, other, x), x);
  }
  if (op != S(SCAN_EXCLUSIVE_ADD)) return x;
  x = shuffle(w, "shfl.sync.up.b32", x, kilni_program_u32(w, 1), 0);
  kilni_program_value_t first =
      KILNI_BIN(EQ, lane_of(w), kilni_program_u32(w, 0));
  return kilni_program_select(w, first, kilni_program_const(w, type, 0), x);
}

static kilni_program_value_t lanes_ballot(kilni_program_lowering_t* w,
                                          kilni_program_value_t x) {
  x = kilni_program_masked(w, x, 0);
  if (kilni_program_value_is_const(w, x)) x = kilni_program_in_register(w, x);
  kilni_program_value_t operands[2] = {x, kilni_program_lanes(w)};
  return kilni_program_pin_value(w, "vote.sync.ballot.b32", T(U32), 2, operands,
                                 0);
}

// A shuffle looks at the low five bits of a lane only: where those are cut out
// the whole number does as well.
static kilni_program_value_t uncut(const kilni_program_lowering_t* w,
                                   kilni_program_value_t lane) {
  const kilni_program_instruction_t* i = kilni_program_define_of(w, lane);
  bool is_cut = i != NULL && strcmp(i->name, "and.b32") == 0 &&
                kilni_program_value_is(w, i->operand[2], 31);
  return is_cut ? i->operand[1] : lane;
}

kilni_program_value_t kilni_program_of_lane(kilni_program_lowering_t* w,
                                            kilni_program_value_t x,
                                            kilni_program_value_t lane) {
  kilni_program_value_t zero =
      kilni_program_const(w, kilni_program_value_type(w, x), 0);
  kilni_program_value_t count = lane_count(w);
  bool is_there = kilni_program_value_is_const(w, count) &&
                  kilni_program_value_of(w, lane)->most <
                      kilni_program_value_of(w, count)->bits;
  kilni_program_value_t there =
      is_there ? kilni_program_bool(w, true) : KILNI_BIN(LT, lane, count);
  kilni_program_value_t y =
      shuffle(w, "shfl.sync.idx.b32", x, uncut(w, lane), 31);
  return kilni_program_select(w, there, y, zero);
}

static kilni_program_value_t lanes_pick(kilni_program_lowering_t* w,
                                        kilni_program_value_t x,
                                        kilni_program_value_t lane) {
  kilni_program_value_t zero =
      kilni_program_const(w, kilni_program_value_type(w, x), 0);
  return kilni_program_of_lane(w, kilni_program_masked(w, x, zero), lane);
}

kilni_program_value_t kilni_program_subgroup(
    kilni_program_lowering_t* w, const kilni_program_expr_record_t* expr) {
  kilni_program_value_t x = kilni_program_expr(w, expr->a), lane = 0;
  if (expr->b != 0) lane = kilni_program_expr(w, expr->b);
  switch (expr->extra) {
    case S(BALLOT):
      return lanes_ballot(w, x);
    case S(BROADCAST):
      if (w->keeps_live) {
        // The lane that the lowest thread that takes part names.
        kilni_program_value_t who =
            lanes_ballot(w, kilni_program_bool(w, true));
        who = kilni_program_unary(w, KILN_PROGRAM_UNARY_CTZ, who);
        lane = shuffle32(w, "shfl.sync.idx.b32", lane, who, 31);
      } else {
        lane = shuffle32(w, "shfl.sync.idx.b32", lane, kilni_program_u32(w, 0),
                         31);
      }
      return lanes_pick(w, x, lane);
    case S(SHUFFLE):
      return lanes_pick(w, x, lane);
    case S(SCAN_ADD):
    case S(SCAN_MUL):
    case S(SCAN_MIN):
    case S(SCAN_MAX):
    case S(SCAN_EXCLUSIVE_ADD):
      return lanes_scan(w, expr->extra, x);
    default:
      return lanes_reduce(w, expr->extra, x);
  }
}
