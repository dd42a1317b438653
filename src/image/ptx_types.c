// SPDX-License-Identifier: Apache-2.0
//
// image: whether the registers of an instruction are of the types it works on.
//
// Only instructions whose operands all follow from their one type are judged;
// the rules are those of the PTX ISA's section on operand types: the sizes are
// equal, a `.b` type goes with any class, signed with unsigned, and an integer
// never with a float. Loads, stores, conversions and moves, which relax sizes
// or take parts, are left to whoever executes them.
#include "image/ptx_reader.h"

// What an operand must be: `t` the instruction's type, `w` an integer of twice
// its size, `u` an integer of 32 bits, `p` a predicate.
static const char* const kShapes[KILNI_PTX_OPCODE_COUNT] = {
    [KILNI_PTX_OP_ABS] = "tt",       [KILNI_PTX_OP_ADD] = "ttt",
    [KILNI_PTX_OP_ADDC] = "ttt",     [KILNI_PTX_OP_AND] = "ttt",
    [KILNI_PTX_OP_BFE] = "ttuu",     [KILNI_PTX_OP_BFI] = "tttuu",
    [KILNI_PTX_OP_BFIND] = "ut",     [KILNI_PTX_OP_BREV] = "tt",
    [KILNI_PTX_OP_CLZ] = "ut",       [KILNI_PTX_OP_CNOT] = "tt",
    [KILNI_PTX_OP_COPYSIGN] = "ttt", [KILNI_PTX_OP_COS] = "tt",
    [KILNI_PTX_OP_DIV] = "ttt",      [KILNI_PTX_OP_EX2] = "tt",
    [KILNI_PTX_OP_FMA] = "tttt",     [KILNI_PTX_OP_LG2] = "tt",
    [KILNI_PTX_OP_LOP3] = "tttt",    [KILNI_PTX_OP_MAD] = "tttt",
    [KILNI_PTX_OP_MAD24] = "tttt",   [KILNI_PTX_OP_MADC] = "tttt",
    [KILNI_PTX_OP_MAX] = "tttt",     [KILNI_PTX_OP_MIN] = "tttt",
    [KILNI_PTX_OP_MUL] = "ttt",      [KILNI_PTX_OP_MUL24] = "ttt",
    [KILNI_PTX_OP_NEG] = "tt",       [KILNI_PTX_OP_NOT] = "tt",
    [KILNI_PTX_OP_OR] = "ttt",       [KILNI_PTX_OP_POPC] = "ut",
    [KILNI_PTX_OP_PRMT] = "tttt",    [KILNI_PTX_OP_RCP] = "tt",
    [KILNI_PTX_OP_REM] = "ttt",      [KILNI_PTX_OP_RSQRT] = "tt",
    [KILNI_PTX_OP_SAD] = "tttt",     [KILNI_PTX_OP_SELP] = "tttp",
    [KILNI_PTX_OP_SETP] = "pttp",    [KILNI_PTX_OP_SHF] = "tttt",
    [KILNI_PTX_OP_SHL] = "ttu",      [KILNI_PTX_OP_SHR] = "ttu",
    [KILNI_PTX_OP_SIN] = "tt",       [KILNI_PTX_OP_SQRT] = "tt",
    [KILNI_PTX_OP_SUB] = "ttt",      [KILNI_PTX_OP_SUBC] = "ttt",
    [KILNI_PTX_OP_TANH] = "tt",      [KILNI_PTX_OP_XOR] = "ttt",
};

static const char* shape_of(uint32_t opcode, bool wide) {
  if (!wide) return kShapes[opcode];
  if (opcode == KILNI_PTX_OP_MUL) return "wtt";
  return opcode == KILNI_PTX_OP_MAD ? "wttw" : NULL;
}

static bool is_integer(kilni_ptx_class_t class_) {
  return class_ == KILNI_PTX_CLASS_UNSIGNED || class_ == KILNI_PTX_CLASS_SIGNED;
}

// True if a register of type `have` may stand where `want` is worked on.
static bool fits(uint32_t have, uint32_t want) {
  kilni_ptx_class_t a = kilni_ptx_type_class(have);
  kilni_ptx_class_t b = kilni_ptx_type_class(want);
  if (a == KILNI_PTX_CLASS_PREDICATE || b == KILNI_PTX_CLASS_PREDICATE) {
    return a == b;
  }
  if (kilni_ptx_type_bits(have) != kilni_ptx_type_bits(want)) return false;
  // Half floats and packed ones are often declared as integers.
  if (kilni_ptx_type_bits(want) < 32 || b == KILNI_PTX_CLASS_PACKED) {
    return true;
  }
  if (a == KILNI_PTX_CLASS_BITS || b == KILNI_PTX_CLASS_BITS) return true;
  return is_integer(a) == is_integer(b);
}

static uint32_t wanted_type(char shape, uint32_t type) {
  switch (shape) {
    case 'p':
      return KILNI_PTX_TYPE_PRED;
    case 'u':
      return KILNI_PTX_TYPE_U32;
    case 'w':
      return kilni_ptx_type_bits(type) == 16 ? KILNI_PTX_TYPE_U32
                                             : KILNI_PTX_TYPE_U64;
    default:
      return type;
  }
}

static bool immediate_fits(const kilni_ptx_operand_t* operand, uint32_t want) {
  bool is_float = operand->immediate == KILNI_PTX_IMMEDIATE_F32 ||
                  operand->immediate == KILNI_PTX_IMMEDIATE_F64;
  kilni_ptx_class_t class_ = kilni_ptx_type_class(want);
  if (class_ == KILNI_PTX_CLASS_FLOAT) return is_float;
  return !is_float || !is_integer(class_);
}

// `*out_have` is the type of a register that does not fit, else NONE.
static bool operand_fits(const kilni_ptx_reader_t* reader,
                         const kilni_ptx_operand_t* operand, uint32_t want,
                         uint32_t* out_have) {
  *out_have = KILNI_PTX_TYPE_NONE;
  if (operand->kind == KILNI_PTX_OPERAND_IMMEDIATE) {
    return immediate_fits(operand, want);
  }
  if (operand->kind != KILNI_PTX_OPERAND_REGISTER) return true;
  if (operand->selector != KILNI_PTX_SELECT_NONE) return true;
  const kilni_ptx_register_t* r =
      KILNI_PTX_AT(reader->arena->registers, kilni_ptx_register_t,
                   reader->first_register + operand->index);
  if (fits(r->type, want)) return true;
  *out_have = r->type;
  return false;
}

bool kilni_ptx_check_types(kilni_ptx_reader_t* reader,
                           const kilni_ptx_token_t* at,
                           const kilni_ptx_form_t* form,
                           const uint16_t* modifiers,
                           const kilni_ptx_operand_t* operands,
                           uint32_t count) {
  uint32_t type = KILNI_PTX_TYPE_NONE;
  bool wide = false;
  for (uint32_t i = 0; i < form->modifier_count; i++) {
    if (modifiers[i] == KILNI_PTX_MOD_WIDE) wide = true;
    if (!kilni_ptx_modifier_is_type(modifiers[i])) continue;
    if (type != KILNI_PTX_TYPE_NONE) return true;  // of two types: no judge
    type = modifiers[i];
  }
  const char* shape = shape_of(form->opcode, wide);
  if (shape == NULL || type == KILNI_PTX_TYPE_NONE) return true;
  for (uint32_t i = 0; i < count && shape[i] != 0; i++) {
    uint32_t want = wanted_type(shape[i], type);
    uint32_t have;
    if (operand_fits(reader, &operands[i], want, &have)) continue;
    return kilni_ptx_fail(
        reader, at,
        "use an operand of that type, or convert it with cvt or mov.b",
        "operand %u of \"%s\" must be of type .%s, and is %s%s", i + 1,
        kilni_ptx_opcode_text(form->opcode), kilni_ptx_modifier_text(want),
        have ? "." : "a number of another kind",
        have ? kilni_ptx_modifier_text(have) : "");
  }
  return true;
}
