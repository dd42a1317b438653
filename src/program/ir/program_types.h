// SPDX-License-Identifier: Apache-2.0
//
// program: types and operators: what may be done with which, and what comes
// out. Straight from kiln/program_operators.h.
//
// The parser, the builder and the validator ask here; so may whoever makes
// expressions.
#ifndef KILN_SRC_PROGRAM_IR_PROGRAM_TYPES_H_
#define KILN_SRC_PROGRAM_IR_PROGRAM_TYPES_H_

#include "kiln/program.h"

// The classes of types.
enum {
  KILNI_CLASS_NONE,
  KILNI_CLASS_BOOL,
  KILNI_CLASS_UNSIGNED,
  KILNI_CLASS_SIGNED,
  KILNI_CLASS_FLOAT,
};

// What operands an operator takes.
enum {
  KILNI_OPERANDS_ANY,
  KILNI_OPERANDS_NUMBER,
  KILNI_OPERANDS_INTEGER,
  KILNI_OPERANDS_SIGNED,  // signed integers and floats
  KILNI_OPERANDS_FLOAT,
  KILNI_OPERANDS_BOOL,
};

// What comes out.
enum {
  KILNI_RESULT_SAME,
  KILNI_RESULT_BOOL,
  KILNI_RESULT_U32,
  KILNI_RESULT_UNSIGNED,
};

// An operator: a row of one of the lists.
typedef struct kilni_program_operator_t {
  const char* spelling;
  uint8_t operands;  // KILNI_OPERANDS_*
  uint8_t result;    // KILNI_RESULT_*
  uint8_t lane;      // of subgroup operations: 1 where a lane is named
} kilni_program_operator_t;

enum {
#define KILNI_COUNT_ONE(...) +1
  KILNI_TYPE_COUNT = 1 KILN_PROGRAM_TYPES(KILNI_COUNT_ONE),
  KILNI_UNARY_COUNT = 0 KILN_PROGRAM_UNARY_OPERATORS(KILNI_COUNT_ONE),
  KILNI_BINARY_COUNT = 0 KILN_PROGRAM_BINARY_OPERATORS(KILNI_COUNT_ONE),
  KILNI_ATOMIC_COUNT = 0 KILN_PROGRAM_ATOMICS(KILNI_COUNT_ONE),
  KILNI_ORDERING_COUNT = 0 KILN_PROGRAM_ORDERINGS(KILNI_COUNT_ONE),
  KILNI_SCOPE_COUNT = 0 KILN_PROGRAM_SCOPES(KILNI_COUNT_ONE),
  KILNI_SUBGROUP_COUNT = 0 KILN_PROGRAM_SUBGROUPS(KILNI_COUNT_ONE),
  KILNI_ID_COUNT = 0 KILN_PROGRAM_IDS(KILNI_COUNT_ONE),
#undef KILNI_COUNT_ONE
};

// The rows, by KILN_PROGRAM_UNARY_* and so on.
extern const kilni_program_operator_t
    kilni_program_unary_operators[KILNI_UNARY_COUNT];
extern const kilni_program_operator_t
    kilni_program_binary_operators[KILNI_BINARY_COUNT];
extern const kilni_program_operator_t kilni_program_atomics[KILNI_ATOMIC_COUNT];
extern const kilni_program_operator_t
    kilni_program_subgroups[KILNI_SUBGROUP_COUNT];
extern const char* const kilni_program_orderings[KILNI_ORDERING_COUNT];
extern const char* const kilni_program_scopes[KILNI_SCOPE_COUNT];

// By KILN_PROGRAM_ID_*.
typedef struct kilni_program_id_t {
  const char* spelling;
  uint8_t axes;  // 1 where .x, .y or .z follows
} kilni_program_id_t;
extern const kilni_program_id_t kilni_program_ids[KILNI_ID_COUNT];

// "f32"; "nothing" for NONE.
const char* kilni_program_type_name(uint32_t type);
// "in"; "" for NONE.
const char* kilni_program_role_name(uint32_t role);
// In bytes; 0 for NONE and what is no type.
uint32_t kilni_program_type_bytes(uint32_t type);
// KILNI_CLASS_*.
uint32_t kilni_program_type_class(uint32_t type);
bool kilni_program_type_is_integer(uint32_t type);
// The unsigned integer of as many bytes; a float's stays itself.
uint32_t kilni_program_type_unsigned(uint32_t type);

// Whether `type` is one of KILNI_OPERANDS_*, and the name of those: "an
// integer".
bool kilni_program_type_is(uint32_t type, uint32_t operands);
const char* kilni_program_operands_name(uint32_t operands);

// What comes of an operator on operands of `type`, whether they fit or not.
uint32_t kilni_program_operator_result(const kilni_program_operator_t* row,
                                       uint32_t type);

// The result's type for operands of those types; NONE where they do not fit.
uint32_t kilni_program_type_of_unary(uint32_t op, uint32_t type);
uint32_t kilni_program_type_of_binary(uint32_t op, uint32_t left,
                                      uint32_t right);
uint32_t kilni_program_type_of_subgroup(uint32_t op, uint32_t type);

// True for << >> rotate_left rotate_right, whose right operand is a count: an
// unsigned integer of any width.
bool kilni_program_binary_is_shift(uint32_t op);

// How many operands an atomic has behind its element: 0, 1 or 2.
uint32_t kilni_program_atomic_values(uint32_t op);
// False for a store alone.
bool kilni_program_atomic_has_result(uint32_t op);

// Infinity and the canonical NaN of a float type; 0 for others.
uint64_t kilni_program_float_infinity(uint32_t type);
uint64_t kilni_program_float_nan(uint32_t type);

// The canonical NaN of a float type, where `bits` are a NaN of it; else `bits`.
uint64_t kilni_program_float_canonical(uint32_t type, uint64_t bits);

#endif  // KILN_SRC_PROGRAM_IR_PROGRAM_TYPES_H_
