// SPDX-License-Identifier: Apache-2.0
//
// image: whether an address is in the space that its instruction names.
#include "image/ptx_reader.h"

#include <stdio.h>

const kilni_image_ptx_variable_t* kilni_image_ptx_variable(
    const kilni_image_ptx_reader_t* reader,
    const kilni_image_ptx_operand_t* operand) {
  return KILNI_PTX_AT(reader->arena->variables, kilni_image_ptx_variable_t,
                      operand->index);
}

// Global and generic addresses have 64 bits; in the other spaces the lower 32
// are enough.
static bool check_base_register(const kilni_image_ptx_judge_t* judge,
                                uint32_t index) {
  uint32_t type =
      kilni_image_ptx_register(judge->reader, &judge->operands[index])->type;
  uint32_t space = judge->rule->space;
  char found[64];
  snprintf(found, sizeof(found), ".%s", kilni_image_ptx_modifier_text(type));
  switch (kilni_image_ptx_type_class(type)) {
    case KILNI_PTX_CLASS_UNSIGNED:
    case KILNI_PTX_CLASS_SIGNED:
    case KILNI_PTX_CLASS_BITS:
      break;
    default:
      return kilni_image_ptx_fail_operand(judge, index,
                                          "put it into a .b64 register",
                                          "an address in an integer", found);
  }
  if (kilni_image_ptx_type_bits(type) > 64) {
    return kilni_image_ptx_fail_operand(judge, index,
                                        "put it into a .b64 register",
                                        "an address of 64 bits", found);
  }
  bool is_far =
      space == KILNI_PTX_SPACE_NONE || space == KILNI_PTX_SPACE_GLOBAL;
  if (is_far && kilni_image_ptx_type_bits(type) == 32) {
    return kilni_image_ptx_fail_operand(
        judge, index,
        "put it into a .b64 register, or name the "
        "space in which 32 bits are enough",
        "an address of 64 bits", found);
  }
  return true;
}

static bool is_input(const kilni_image_ptx_judge_t* judge, uint32_t variable) {
  if (judge->reader->function == KILNI_PTX_NONE) return false;
  const kilni_image_ptx_function_t* function =
      KILNI_PTX_AT(judge->reader->arena->functions, kilni_image_ptx_function_t,
                   judge->reader->function);
  return variable >= function->first_parameter &&
         variable - function->first_parameter < function->parameter_count;
}

static bool check_base_variable(const kilni_image_ptx_judge_t* judge,
                                uint32_t index, bool is_written) {
  const kilni_image_ptx_operand_t* operand = &judge->operands[index];
  uint32_t have = kilni_image_ptx_variable(judge->reader, operand)->space;
  uint32_t want = judge->rule->space;
  bool fits = have == want;
  if (want == KILNI_PTX_SPACE_NONE) {
    fits = have == KILNI_PTX_SPACE_GLOBAL || have == KILNI_PTX_SPACE_SHARED ||
           have == KILNI_PTX_SPACE_LOCAL;
  }
  if (!fits) {
    char wanted[64];
    char found[64];
    snprintf(wanted, sizeof(wanted), "an address in %s%s",
             want == KILNI_PTX_SPACE_NONE ? "the generic space" : ".",
             kilni_image_ptx_space_text(want));
    snprintf(found, sizeof(found), "one in .%s",
             kilni_image_ptx_space_text(have));
    return kilni_image_ptx_fail_operand(
        judge, index, "name the space that the variable is in", wanted, found);
  }
  if (is_written && is_input(judge, operand->index)) {
    return kilni_image_ptx_fail_operand(
        judge, index, "write to a .local or .param variable of the body",
        "an address that can be written", "a parameter of this function");
  }
  return true;
}

bool kilni_image_ptx_check_address(const kilni_image_ptx_judge_t* judge,
                                   uint32_t index, bool is_written) {
  const kilni_image_ptx_operand_t* operand = &judge->operands[index];
  if (operand->kind != KILNI_PTX_OPERAND_ADDRESS) {
    return kilni_image_ptx_fail_operand(
        judge, index, "put the address between brackets", "an address", "none");
  }
  switch (operand->base) {
    case KILNI_PTX_BASE_REGISTER:
      return check_base_register(judge, index);
    case KILNI_PTX_BASE_VARIABLE:
      return check_base_variable(judge, index, is_written);
    case KILNI_PTX_BASE_FUNCTION:
      return kilni_image_ptx_fail_operand(judge, index, "use a variable",
                                          "an address of data", "a function");
    default:
      if (judge->rule->space == KILNI_PTX_SPACE_LOCAL) return true;
      return kilni_image_ptx_fail_operand(
          judge, index, "put the number into a register first",
          "an address in a register or of a variable", "a number");
  }
}
