// SPDX-License-Identifier: Apache-2.0
//
// image: what the values of a kernel's registers are taken for: floats, by the
// arithmetic that is done on them, or anything else.
//
// A load or move of 32 bits is written alike for an int and a float, and a
// float4 can move sixteen bytes of anything. Only arithmetic shows the type.
// Registers that values are moved between are one; so is the content of .shared
// and .local memory as f32, and as f64.
#include "image/ptx_use.h"

static uint32_t ptx_use_value_root_of(const kilni_image_ptx_look_t* look,
                                      uint32_t index) {
  kilni_image_ptx_fact_t* facts = look->facts;
  while (facts[index].parent != index) {
    facts[index].parent = facts[facts[index].parent].parent;
    index = facts[index].parent;
  }
  return index;
}

uint32_t kilni_image_ptx_values_of(const kilni_image_ptx_look_t* look,
                                   uint32_t index) {
  return look->facts[ptx_use_value_root_of(look, index)].values;
}

static void ptx_use_value_join(const kilni_image_ptx_look_t* look, uint32_t a,
                               uint32_t b) {
  a = ptx_use_value_root_of(look, a);
  b = ptx_use_value_root_of(look, b);
  uint32_t values = look->facts[a].values | look->facts[b].values;
  // By the lower index: a chain is as short as its halves become.
  uint32_t low = a < b ? a : b;
  look->facts[a].parent = low;
  look->facts[b].parent = low;
  look->facts[low].values = (uint8_t)values;
}

static void ptx_use_value_mark(const kilni_image_ptx_look_t* look,
                               const kilni_image_ptx_operand_t* operand,
                               uint32_t values) {
  const kilni_image_ptx_operand_t* parts = operand;
  uint32_t count = 1;
  if (operand->kind == KILNI_PTX_OPERAND_VECTOR ||
      operand->kind == KILNI_PTX_OPERAND_PAIR ||
      operand->kind == KILNI_PTX_OPERAND_LIST) {
    parts = kilni_image_ptx_operand_children(look->module, operand);
    count = operand->count;
  }
  for (uint32_t i = 0; parts != NULL && i < count; i++) {
    if (parts[i].kind != KILNI_PTX_OPERAND_REGISTER) continue;
    kilni_image_ptx_fact_t* fact =
        &look->facts[ptx_use_value_root_of(look, parts[i].index)];
    fact->values = (uint8_t)(fact->values | values);
  }
}

static void mark_all(const kilni_image_ptx_look_t* look,
                     const kilni_image_ptx_operand_t* ops, uint32_t count,
                     uint32_t values) {
  for (uint32_t i = 0; i < count; i++) {
    ptx_use_value_mark(look, &ops[i], values);
  }
}

// What arithmetic on a type takes its operands for.
static uint32_t values_of_type(uint32_t type) {
  switch (type) {
    case KILNI_PTX_TYPE_F32:
      return KILNI_PTX_VALUE_F32;
    case KILNI_PTX_TYPE_F64:
      return KILNI_PTX_VALUE_F64;
    case KILNI_PTX_TYPE_F16:
    case KILNI_PTX_TYPE_BF16:
    case KILNI_PTX_TYPE_F16X2:
    case KILNI_PTX_TYPE_BF16X2:
      return KILNI_PTX_VALUE_HALF;
    default:
      return KILNI_PTX_VALUE_BITS;
  }
}

static uint32_t ptx_use_value_bits_of(const kilni_image_ptx_look_t* look,
                                      uint32_t index) {
  return kilni_image_ptx_type_bits(look->function->registers[index].type);
}

// A value goes from one register to another as it is.
static void move(const kilni_image_ptx_look_t* look,
                 const kilni_image_ptx_operand_t* to,
                 const kilni_image_ptx_operand_t* from) {
  if (from->kind == KILNI_PTX_OPERAND_IMMEDIATE) return;
  if (kilni_image_ptx_fact(look, to) != NULL &&
      kilni_image_ptx_fact(look, from) != NULL &&
      ptx_use_value_bits_of(look, to->index) ==
          ptx_use_value_bits_of(look, from->index)) {
    ptx_use_value_join(look, to->index, from->index);
    return;
  }
  ptx_use_value_mark(look, to, KILNI_PTX_VALUE_BITS);
  ptx_use_value_mark(look, from, KILNI_PTX_VALUE_BITS);
}

// Where values stored in memory of the block or the thread are loaded again.
// Untyped words may be of many types side by side.
static void move_through(const kilni_image_ptx_look_t* look,
                         const kilni_image_ptx_form_t* form,
                         const kilni_image_ptx_operand_t* value) {
  uint32_t types[2];
  if (kilni_image_ptx_form_types(form, types) == 0) return;
  uint32_t space = kilni_image_ptx_form_space(form);
  if (space == KILNI_PTX_SPACE_PARAM) {
    ptx_use_value_mark(look, value, KILNI_PTX_VALUE_BITS);
    return;
  }
  bool is_f32 = types[1] == KILNI_PTX_TYPE_F32;
  if ((space != KILNI_PTX_SPACE_SHARED && space != KILNI_PTX_SPACE_LOCAL) ||
      (!is_f32 && types[1] != KILNI_PTX_TYPE_F64)) {
    return;
  }
  uint32_t memory = look->function->register_count + (is_f32 ? 0 : 1) +
                    (space == KILNI_PTX_SPACE_LOCAL ? 2 : 0);
  const kilni_image_ptx_operand_t* parts = value;
  uint32_t count = 1;
  if (value->kind == KILNI_PTX_OPERAND_VECTOR) {
    parts = kilni_image_ptx_operand_children(look->module, value);
    count = value->count;
  }
  for (uint32_t i = 0; parts != NULL && i < count; i++) {
    if (kilni_image_ptx_fact(look, &parts[i]) == NULL) continue;
    ptx_use_value_join(look, parts[i].index, memory);
  }
}

static bool ptx_use_value_is_float(uint32_t type) {
  return kilni_image_ptx_type_class(type) == KILNI_PTX_CLASS_FLOAT ||
         values_of_type(type) == KILNI_PTX_VALUE_HALF;
}

static void ptx_use_value_convert(const kilni_image_ptx_look_t* look,
                                  const kilni_image_ptx_form_t* form,
                                  const kilni_image_ptx_operand_t* ops,
                                  uint32_t count) {
  uint32_t types[2];
  kilni_image_ptx_form_types(form, types);
  uint32_t to = values_of_type(types[0]);
  uint32_t from = values_of_type(types[1]);
  if (ptx_use_value_is_float(types[0]) && !ptx_use_value_is_float(types[1])) {
    from |= KILNI_PTX_VALUE_NUMBER;
  }
  if (!ptx_use_value_is_float(types[0]) && ptx_use_value_is_float(types[1])) {
    to |= KILNI_PTX_VALUE_NUMBER;
  }
  ptx_use_value_mark(look, &ops[0], to);
  mark_all(look, ops + 1, count - 1, from);
}

static void see(const kilni_image_ptx_look_t* look,
                const kilni_image_ptx_instruction_t* ins) {
  const kilni_image_ptx_form_t* form =
      kilni_image_ptx_instruction_form(look->module, ins);
  const kilni_image_ptx_operand_t* ops =
      kilni_image_ptx_instruction_operands(look->module, ins);
  uint32_t count = ins->operand_count;
  uint32_t types[2];
  if (ops == NULL) return;
  switch (ins->opcode) {
    case KILNI_PTX_OP_MOV:
      move(look, &ops[0], &ops[1]);
      return;
    case KILNI_PTX_OP_SELP:
      move(look, &ops[0], &ops[1]);
      move(look, &ops[0], &ops[2]);
      return;
    case KILNI_PTX_OP_SHFL:
      move(look,
           ops[0].kind == KILNI_PTX_OPERAND_PAIR
               ? kilni_image_ptx_operand_children(look->module, &ops[0])
               : &ops[0],
           &ops[1]);
      return;
    case KILNI_PTX_OP_LD:
      if (kilni_image_ptx_form_space(form) == KILNI_PTX_SPACE_PARAM) return;
      move_through(look, form, &ops[0]);
      return;
    case KILNI_PTX_OP_ST:
      move_through(look, form, &ops[1]);
      return;
    case KILNI_PTX_OP_LDU:
    case KILNI_PTX_OP_ATOM:
    case KILNI_PTX_OP_RED:
      return;
    case KILNI_PTX_OP_CVT:
      ptx_use_value_convert(look, form, ops, count);
      return;
    default:
      break;
  }
  uint32_t found = kilni_image_ptx_form_types(form, types);
  mark_all(look, ops, count,
           found == 1 ? values_of_type(types[0]) : KILNI_PTX_VALUE_BITS);
}

void kilni_image_ptx_use_values(kilni_image_ptx_look_t* look) {
  const kilni_image_ptx_function_t* f = look->function;
  for (uint32_t i = 0; i < f->instruction_count; i++) {
    see(look, &f->instructions[i]);
  }
}
