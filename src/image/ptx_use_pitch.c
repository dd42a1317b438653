// SPDX-License-Identifier: Apache-2.0
//
// image: how near to each other the places are that a kernel's threads and
// loops reach.
//
// A thread's number may be any, so that four times it names places four bytes
// apart. Of values that are loaded or computed otherwise nothing is known, and
// constants move all places alike.
#include "image/ptx_use.h"

static uint32_t zeroes_at_end(uint64_t value) {
  uint32_t count = 0;
  while (count < KILNI_PTX_USE_APART && (value >> count & 1) == 0) count++;
  return count;
}

static uint32_t ptx_use_pitch_least(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

static uint32_t sum(uint32_t a, uint32_t b) {
  return ptx_use_pitch_least(a + b, KILNI_PTX_USE_APART);
}

static bool is_immediate(const kilni_image_ptx_operand_t* operand) {
  return operand->kind == KILNI_PTX_OPERAND_IMMEDIATE;
}

// Of an operand that is added.
static uint32_t pitch_of(const kilni_image_ptx_look_t* look,
                         const kilni_image_ptx_operand_t* operand) {
  const kilni_image_ptx_fact_t* fact = kilni_image_ptx_fact(look, operand);
  if (fact != NULL) return fact->pitch;
  if (operand->kind != KILNI_PTX_OPERAND_SPECIAL) return KILNI_PTX_USE_APART;
  switch (operand->index) {
    case KILNI_PTX_SREG_TID:
    case KILNI_PTX_SREG_CTAID:
    case KILNI_PTX_SREG_LANEID:
    case KILNI_PTX_SREG_WARPID:
      return 0;
    default:
      return KILNI_PTX_USE_APART;
  }
}

// Of an operand that is multiplied.
static uint32_t factor_of(const kilni_image_ptx_look_t* look,
                          const kilni_image_ptx_operand_t* operand) {
  return is_immediate(operand) ? zeroes_at_end(operand->value)
                               : pitch_of(look, operand);
}

// Of a sum: a loop that adds a constant to a register steps by it.
static uint32_t pitch_of_sum(const kilni_image_ptx_look_t* look,
                             const kilni_image_ptx_operand_t* ops) {
  for (uint32_t i = 1; i < 3; i++) {
    const kilni_image_ptx_operand_t* other = &ops[3 - i];
    if (is_immediate(&ops[i]) && other->kind == KILNI_PTX_OPERAND_REGISTER &&
        other->index == ops[0].index) {
      return ptx_use_pitch_least(zeroes_at_end(ops[i].value),
                                 pitch_of(look, other));
    }
  }
  return ptx_use_pitch_least(pitch_of(look, &ops[1]), pitch_of(look, &ops[2]));
}

static uint32_t pitch_of_shift(const kilni_image_ptx_look_t* look,
                               const kilni_image_ptx_operand_t* ops,
                               bool left) {
  uint32_t pitch = pitch_of(look, &ops[1]);
  if (!is_immediate(&ops[2]) || pitch == KILNI_PTX_USE_APART) {
    return KILNI_PTX_USE_APART;
  }
  uint32_t by = ops[2].value < KILNI_PTX_USE_APART ? (uint32_t)ops[2].value
                                                   : KILNI_PTX_USE_APART;
  if (left) return sum(pitch, by);
  return pitch > by ? pitch - by : 0;
}

static uint32_t pitch_of_mask(const kilni_image_ptx_look_t* look,
                              const kilni_image_ptx_operand_t* ops) {
  uint32_t a = factor_of(look, &ops[1]);
  uint32_t b = factor_of(look, &ops[2]);
  return is_immediate(&ops[1]) || is_immediate(&ops[2]) ? (a > b ? a : b)
                                                        : KILNI_PTX_USE_APART;
}

static bool is_of_integers(const kilni_image_ptx_form_t* form) {
  uint32_t types[2];
  kilni_image_ptx_form_types(form, types);
  return kilni_image_ptx_type_class(types[0]) != KILNI_PTX_CLASS_FLOAT &&
         kilni_image_ptx_type_class(types[1]) != KILNI_PTX_CLASS_FLOAT;
}

// Of what an instruction puts into its first operand.
static uint32_t pitch_of_result(const kilni_image_ptx_look_t* look,
                                const kilni_image_ptx_instruction_t* ins,
                                const kilni_image_ptx_operand_t* ops) {
  const kilni_image_ptx_form_t* form =
      kilni_image_ptx_instruction_form(look->module, ins);
  bool high = kilni_image_ptx_form_has(form, KILNI_PTX_MOD_HI);
  switch (ins->opcode) {
    case KILNI_PTX_OP_MOV:
    case KILNI_PTX_OP_CVTA:
      return pitch_of(look, &ops[1]);
    case KILNI_PTX_OP_CVT:
      return is_of_integers(form) ? pitch_of(look, &ops[1])
                                  : KILNI_PTX_USE_APART;
    case KILNI_PTX_OP_ADD:
    case KILNI_PTX_OP_SUB:
    case KILNI_PTX_OP_OR:
      return pitch_of_sum(look, ops);
    case KILNI_PTX_OP_SELP:
      return ptx_use_pitch_least(pitch_of(look, &ops[1]),
                                 pitch_of(look, &ops[2]));
    case KILNI_PTX_OP_MUL:
      if (high) return KILNI_PTX_USE_APART;
      return sum(factor_of(look, &ops[1]), factor_of(look, &ops[2]));
    case KILNI_PTX_OP_MAD:
      if (high) return KILNI_PTX_USE_APART;
      return ptx_use_pitch_least(
          sum(factor_of(look, &ops[1]), factor_of(look, &ops[2])),
          pitch_of(look, &ops[3]));
    case KILNI_PTX_OP_SHL:
      return pitch_of_shift(look, ops, true);
    case KILNI_PTX_OP_SHR:
      return pitch_of_shift(look, ops, false);
    case KILNI_PTX_OP_AND:
      return pitch_of_mask(look, ops);
    default:
      return KILNI_PTX_USE_APART;
  }
}

void kilni_image_ptx_use_pitches(kilni_image_ptx_look_t* look) {
  const kilni_image_ptx_function_t* f = look->function;
  for (uint32_t sweep = 0; sweep < KILNI_PTX_USE_SWEEPS; sweep++) {
    look->changed = false;
    for (uint32_t i = 0; i < f->instruction_count; i++) {
      const kilni_image_ptx_operand_t* ops =
          kilni_image_ptx_instruction_operands(look->module,
                                               &f->instructions[i]);
      kilni_image_ptx_fact_t* fact =
          ops == NULL ? NULL : kilni_image_ptx_fact(look, ops);
      if (fact == NULL) continue;
      uint32_t pitch = pitch_of_result(look, &f->instructions[i], ops);
      if (pitch >= fact->pitch) continue;
      fact->pitch = (uint8_t)pitch;
      look->changed = true;
    }
    if (!look->changed) return;
  }
  look->unknown = UINT64_MAX;
}
