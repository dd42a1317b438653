// SPDX-License-Identifier: Apache-2.0
//
// image: where the addresses of a kernel's parameters go.
//
// An address that goes where it is not followed (into memory, to a function,
// into arithmetic that is not an address's) makes its parameters unknown.
#include "image/ptx_use.h"

enum { LEAST_PAGE = 4096 };

// The parameter that a variable is; PARAMS: none, or one that is not followed.
static uint32_t ptx_use_address_param_of(const kilni_image_ptx_look_t* look,
                                         uint32_t variable) {
  uint32_t first = look->function->first_parameter;
  if (variable < first || variable - first >= look->use->param_count) {
    return KILNI_PTX_USE_PARAMS;
  }
  return variable - first;
}

static void lose(kilni_image_ptx_look_t* look, uint64_t params) {
  look->unknown |= params;
}

// Everything that an operand names is lost sight of.
static void lose_operand(kilni_image_ptx_look_t* look,
                         const kilni_image_ptx_operand_t* operand) {
  bool is_variable = operand->kind == KILNI_PTX_OPERAND_VARIABLE;
  bool is_register = operand->kind == KILNI_PTX_OPERAND_REGISTER;
  if (operand->kind == KILNI_PTX_OPERAND_ADDRESS) {
    is_variable = operand->base == KILNI_PTX_BASE_VARIABLE;
    is_register = operand->base == KILNI_PTX_BASE_REGISTER;
  }
  if (is_register) lose(look, look->facts[operand->index].params);
  if (is_variable) {
    uint32_t param = ptx_use_address_param_of(look, operand->index);
    if (param < KILNI_PTX_USE_PARAMS) lose(look, (uint64_t)1 << param);
  }
}

// As above, with its children; these precede their parent, one after the other.
static void lose_operands(kilni_image_ptx_look_t* look,
                          const kilni_image_ptx_operand_t* operands,
                          uint32_t count, uint32_t depth) {
  for (uint32_t i = 0; i < count; i++) {
    lose_operand(look, &operands[i]);
    if (depth == 0) continue;
    const kilni_image_ptx_operand_t* children =
        kilni_image_ptx_operand_children(look->module, &operands[i]);
    if (children != NULL) {
      lose_operands(look, children, operands[i].count, depth - 1);
    }
  }
}

enum { DEPTH = 4 };  // of brackets in one operand, at the most

// What comes out is derived from what goes in.
static void pass(kilni_image_ptx_look_t* look,
                 const kilni_image_ptx_operand_t* to,
                 const kilni_image_ptx_operand_t* from) {
  uint32_t param = from->kind == KILNI_PTX_OPERAND_VARIABLE
                       ? ptx_use_address_param_of(look, from->index)
                       : KILNI_PTX_USE_PARAMS;
  if (param < KILNI_PTX_USE_PARAMS) lose(look, (uint64_t)1 << param);
  const kilni_image_ptx_fact_t* source = kilni_image_ptx_fact(look, from);
  if (source == NULL) {
    lose_operands(look, from, 1, DEPTH);
    return;
  }
  if (source->params == 0) return;
  kilni_image_ptx_fact_t* target = kilni_image_ptx_fact(look, to);
  if (target == NULL) {
    lose(look, source->params);
    return;
  }
  look->changed |= (source->params & ~target->params) != 0;
  target->params |= source->params;
}

// ld.param of a kernel's own: an address begins here.
static bool ptx_use_address_begin(kilni_image_ptx_look_t* look,
                                  const kilni_image_ptx_form_t* form,
                                  const kilni_image_ptx_operand_t* ops) {
  if (ops[1].kind != KILNI_PTX_OPERAND_ADDRESS ||
      ops[1].base != KILNI_PTX_BASE_VARIABLE) {
    return false;
  }
  uint32_t param = ptx_use_address_param_of(look, ops[1].index);
  if (param == KILNI_PTX_USE_PARAMS) return true;
  const kilni_image_ptx_variable_t* variable =
      &look->module->variables[ops[1].index];
  if (variable->dimension_count != 0 || variable->vector > 1 ||
      variable->size_bytes != 8) {
    return true;
  }
  uint32_t types[2];
  uint64_t bit = (uint64_t)1 << param;
  kilni_image_ptx_fact_t* target = kilni_image_ptx_fact(look, &ops[0]);
  if (target == NULL || ops[1].value != 0 ||
      kilni_image_ptx_form_types(form, types) != 1 ||
      kilni_image_ptx_type_bytes(types[0]) != 8) {
    lose(look, bit);
    return true;
  }
  look->changed |= (target->params & bit) == 0;
  target->params |= bit;
  return true;
}

static bool is_reachable(const kilni_image_ptx_form_t* form) {
  uint32_t space = kilni_image_ptx_form_space(form);
  return space == KILNI_PTX_SPACE_NONE || space == KILNI_PTX_SPACE_GLOBAL;
}

// A load, store or atomic at `ops[at]`; what else goes in is stored. An access
// by an address of several parameters shows nothing of either.
static void use_memory(kilni_image_ptx_look_t* look,
                       const kilni_image_ptx_form_t* form,
                       const kilni_image_ptx_operand_t* ops, uint32_t count,
                       uint32_t at) {
  if (!is_reachable(form)) lose_operands(look, &ops[at], 1, DEPTH);
  if (ops[at].kind == KILNI_PTX_OPERAND_ADDRESS &&
      ops[at].base == KILNI_PTX_BASE_REGISTER) {
    uint64_t params = look->facts[ops[at].index].params;
    if ((params & (params - 1)) != 0) lose(look, params);
  }
  if (count > at + 1) {
    lose_operands(look, &ops[at + 1], count - at - 1, DEPTH);
  }
  if (ops[at].kind != KILNI_PTX_OPERAND_ADDRESS ||
      ops[at].base == KILNI_PTX_BASE_VARIABLE) {
    lose_operands(look, &ops[at], 1, DEPTH);
  }
}

// Whether an AND takes the lowest bits of an address, which are none.
static bool takes_low_bits(const kilni_image_ptx_operand_t* ops) {
  return (ops[1].kind == KILNI_PTX_OPERAND_IMMEDIATE &&
          ops[1].value < LEAST_PAGE) ||
         (ops[2].kind == KILNI_PTX_OPERAND_IMMEDIATE &&
          ops[2].value < LEAST_PAGE);
}

static void use_instruction(kilni_image_ptx_look_t* look,
                            const kilni_image_ptx_instruction_t* ins) {
  const kilni_image_ptx_form_t* form =
      kilni_image_ptx_instruction_form(look->module, ins);
  const kilni_image_ptx_operand_t* ops =
      kilni_image_ptx_instruction_operands(look->module, ins);
  uint32_t count = ins->operand_count;
  if (ops == NULL) return;
  switch (ins->opcode) {
    case KILNI_PTX_OP_LD:
      if (ptx_use_address_begin(look, form, ops)) return;
      use_memory(look, form, ops, count, 1);
      return;
    case KILNI_PTX_OP_LDU:
    case KILNI_PTX_OP_ATOM:
      use_memory(look, form, ops, count, 1);
      return;
    case KILNI_PTX_OP_ST:
    case KILNI_PTX_OP_RED:
      use_memory(look, form, ops, count, 0);
      return;
    case KILNI_PTX_OP_MOV:
    case KILNI_PTX_OP_CVTA:
      pass(look, &ops[0], &ops[1]);
      return;
    case KILNI_PTX_OP_ADD:
    case KILNI_PTX_OP_SUB:
    case KILNI_PTX_OP_SELP:
      pass(look, &ops[0], &ops[1]);
      pass(look, &ops[0], &ops[2]);
      return;
    case KILNI_PTX_OP_MAD:
      lose_operands(look, &ops[1], 2, DEPTH);
      pass(look, &ops[0], &ops[3]);
      return;
    case KILNI_PTX_OP_SETP:
    case KILNI_PTX_OP_ISSPACEP:
    case KILNI_PTX_OP_PREFETCH:
    case KILNI_PTX_OP_PREFETCHU:
      return;
    case KILNI_PTX_OP_AND:
      if (takes_low_bits(ops)) return;
      lose_operands(look, &ops[1], count - 1, DEPTH);
      return;
    // A register that is only written loses nothing.
    case KILNI_PTX_OP_MUL:
    case KILNI_PTX_OP_CVT:
    case KILNI_PTX_OP_SHL:
    case KILNI_PTX_OP_SHR:
    case KILNI_PTX_OP_OR:
    case KILNI_PTX_OP_XOR:
      lose_operands(look, &ops[1], count - 1, DEPTH);
      return;
    default:
      lose_operands(look, ops, count, DEPTH);
      return;
  }
}

void kilni_image_ptx_use_addresses(kilni_image_ptx_look_t* look) {
  const kilni_image_ptx_function_t* f = look->function;
  for (uint32_t sweep = 0; sweep < KILNI_PTX_USE_SWEEPS; sweep++) {
    look->changed = false;
    for (uint32_t i = 0; i < f->instruction_count; i++) {
      use_instruction(look, &f->instructions[i]);
    }
    if (!look->changed) return;
  }
  look->unknown = UINT64_MAX;
}
