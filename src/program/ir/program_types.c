// SPDX-License-Identifier: Apache-2.0
//
// program: types and operators: the lists of program_operators.h as tables.
#include "program/ir/program_types.h"

#define ROW(NAME, spelling, operands, result, ...) \
  {spelling, KILNI_OPERANDS_##operands, KILNI_RESULT_##result, 0},
const kilni_program_operator_t kilni_program_unary_operators[] = {
    KILN_PROGRAM_UNARY_OPERATORS(ROW)};
const kilni_program_operator_t kilni_program_binary_operators[] = {
    KILN_PROGRAM_BINARY_OPERATORS(ROW)};
#undef ROW

#define ROW(NAME, spelling, operands, meaning) \
  {spelling, KILNI_OPERANDS_##operands, KILNI_RESULT_SAME, 0},
const kilni_program_operator_t kilni_program_atomics[] = {
    KILN_PROGRAM_ATOMICS(ROW)};
#undef ROW

#define ROW(NAME, spelling, operands, result, lane, meaning) \
  {spelling, KILNI_OPERANDS_##operands, KILNI_RESULT_##result, lane},
const kilni_program_operator_t kilni_program_subgroups[] = {
    KILN_PROGRAM_SUBGROUPS(ROW)};
#undef ROW

#define ROW(NAME, spelling) spelling,
const char* const kilni_program_orderings[] = {KILN_PROGRAM_ORDERINGS(ROW)};
const char* const kilni_program_scopes[] = {KILN_PROGRAM_SCOPES(ROW)};
#undef ROW

#define ROW(NAME, spelling, axes, meaning) {spelling, axes},
const kilni_program_id_t kilni_program_ids[] = {KILN_PROGRAM_IDS(ROW)};
#undef ROW

typedef struct type_row_t {
  const char* spelling;
  uint8_t bytes;
  uint8_t class_;
} type_row_t;

#define ROW(NAME, spelling, bytes, class_) \
  {spelling, bytes, KILNI_CLASS_##class_},
static const type_row_t kTypes[] = {{"nothing", 0, 0}, KILN_PROGRAM_TYPES(ROW)};
#undef ROW

static const type_row_t* types_row_of(uint32_t type) {
  return &kTypes[type < KILNI_TYPE_COUNT ? type : 0];
}

const char* kilni_program_type_name(uint32_t type) {
  return types_row_of(type)->spelling;
}
uint32_t kilni_program_type_bytes(uint32_t type) {
  return types_row_of(type)->bytes;
}
uint32_t kilni_program_type_class(uint32_t type) {
  return types_row_of(type)->class_;
}

const char* kilni_program_role_name(uint32_t role) {
  static const char* const kRoles[] = {
      "", "in", "out", "inout", "uniform", "resident", "shared", "private"};
  return kRoles[role < sizeof(kRoles) / sizeof(kRoles[0]) ? role : 0];
}

bool kilni_program_type_is_integer(uint32_t type) {
  return kilni_program_type_is(type, KILNI_OPERANDS_INTEGER);
}

uint32_t kilni_program_type_unsigned(uint32_t type) {
  if (kilni_program_type_class(type) == KILNI_CLASS_SIGNED) return type - 1;
  return type;
}

bool kilni_program_type_is(uint32_t type, uint32_t operands) {
  uint32_t class_ = kilni_program_type_class(type);
  switch (operands) {
    case KILNI_OPERANDS_ANY:
      return class_ != KILNI_CLASS_NONE;
    case KILNI_OPERANDS_NUMBER:
      return class_ >= KILNI_CLASS_UNSIGNED;
    case KILNI_OPERANDS_INTEGER:
      return class_ == KILNI_CLASS_UNSIGNED || class_ == KILNI_CLASS_SIGNED;
    case KILNI_OPERANDS_SIGNED:
      return class_ >= KILNI_CLASS_SIGNED;
    case KILNI_OPERANDS_FLOAT:
      return class_ == KILNI_CLASS_FLOAT;
    default:
      return class_ == KILNI_CLASS_BOOL;
  }
}

const char* kilni_program_operands_name(uint32_t operands) {
  static const char* const kNames[] = {
      "any value", "a number", "an integer", "a signed integer or a float",
      "a float",   "a bool"};
  return kNames[operands < sizeof(kNames) / sizeof(kNames[0]) ? operands : 0];
}

uint32_t kilni_program_operator_result(const kilni_program_operator_t* row,
                                       uint32_t type) {
  switch (row->result) {
    case KILNI_RESULT_BOOL:
      return KILN_PROGRAM_TYPE_BOOL;
    case KILNI_RESULT_U32:
      return KILN_PROGRAM_TYPE_U32;
    case KILNI_RESULT_UNSIGNED:
      return kilni_program_type_unsigned(type);
    default:
      return type;
  }
}

static uint32_t result_of(const kilni_program_operator_t* row, uint32_t type) {
  if (!kilni_program_type_is(type, row->operands)) {
    return KILN_PROGRAM_TYPE_NONE;
  }
  return kilni_program_operator_result(row, type);
}

uint32_t kilni_program_type_of_unary(uint32_t op, uint32_t type) {
  if (op >= KILNI_UNARY_COUNT) return KILN_PROGRAM_TYPE_NONE;
  return result_of(&kilni_program_unary_operators[op], type);
}

bool kilni_program_binary_is_shift(uint32_t op) {
  return op == KILN_PROGRAM_BINARY_SHL || op == KILN_PROGRAM_BINARY_SHR ||
         op == KILN_PROGRAM_BINARY_ROTATE_LEFT ||
         op == KILN_PROGRAM_BINARY_ROTATE_RIGHT;
}

uint32_t kilni_program_type_of_binary(uint32_t op, uint32_t left,
                                      uint32_t right) {
  if (op >= KILNI_BINARY_COUNT) return KILN_PROGRAM_TYPE_NONE;
  if (kilni_program_binary_is_shift(op)) {
    if (kilni_program_type_class(right) != KILNI_CLASS_UNSIGNED) return 0;
  } else if (left != right) {
    return KILN_PROGRAM_TYPE_NONE;
  }
  return result_of(&kilni_program_binary_operators[op], left);
}

uint32_t kilni_program_type_of_subgroup(uint32_t op, uint32_t type) {
  if (op >= KILNI_SUBGROUP_COUNT) return KILN_PROGRAM_TYPE_NONE;
  return result_of(&kilni_program_subgroups[op], type);
}

uint32_t kilni_program_atomic_values(uint32_t op) {
  if (op == KILN_PROGRAM_ATOMIC_LOAD) return 0;
  return op == KILN_PROGRAM_ATOMIC_COMPARE_EXCHANGE ? 2 : 1;
}

bool kilni_program_atomic_has_result(uint32_t op) {
  return op != KILN_PROGRAM_ATOMIC_STORE;
}

uint64_t kilni_program_float_infinity(uint32_t type) {
  switch (type) {
    case KILN_PROGRAM_TYPE_F16:
      return 0x7c00;
    case KILN_PROGRAM_TYPE_BF16:
      return 0x7f80;
    case KILN_PROGRAM_TYPE_F32:
      return 0x7f800000;
    case KILN_PROGRAM_TYPE_F64:
      return UINT64_C(0x7ff0000000000000);
    default:
      return 0;
  }
}

uint64_t kilni_program_float_nan(uint32_t type) {
  switch (type) {
    case KILN_PROGRAM_TYPE_F16:
      return 0x7e00;
    case KILN_PROGRAM_TYPE_BF16:
      return 0x7fc0;
    case KILN_PROGRAM_TYPE_F32:
      return 0x7fc00000;
    case KILN_PROGRAM_TYPE_F64:
      return UINT64_C(0x7ff8000000000000);
    default:
      return 0;
  }
}

uint64_t kilni_program_float_canonical(uint32_t type, uint64_t bits) {
  if (kilni_program_type_class(type) != KILNI_CLASS_FLOAT) return bits;
  uint64_t sign = UINT64_C(1) << (8 * kilni_program_type_bytes(type) - 1);
  bool is_nan = (bits & (sign - 1)) > kilni_program_float_infinity(type);
  return is_nan ? kilni_program_float_nan(type) : bits;
}
