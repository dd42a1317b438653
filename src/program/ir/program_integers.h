// SPDX-License-Identifier: Apache-2.0
//
// program: integer and bool operators on values, as the table of operators
// says: for what is known before a program runs.
//
// Values travel as the low bits of a uint64_t, with zeroes above.
#ifndef KILN_SRC_PROGRAM_IR_PROGRAM_INTEGERS_H_
#define KILN_SRC_PROGRAM_IR_PROGRAM_INTEGERS_H_

#include "program/ir/program_ir.h"

// False, with 0, for operators of floats only and types that do not fit.
bool kilni_program_integer_unary(uint32_t op, uint32_t type, uint64_t x,
                                 uint64_t* out_value);
// `right` is the type of y, which differs from `type` for shifts.
bool kilni_program_integer_binary(uint32_t op, uint32_t type, uint64_t x,
                                  uint32_t right, uint64_t y,
                                  uint64_t* out_value);
// A cast between integers and bools.
bool kilni_program_integer_cast(uint32_t to, uint32_t from, uint64_t x,
                                uint64_t* out_value);

// The value of `x`, a number of that type, with its sign.
int64_t kilni_program_integer_signed(uint32_t type, uint64_t x);

// What is known of the program's parameters.
typedef struct kilni_program_known_t {
  const uint64_t* lengths;  // by parameter
  const uint64_t* scalars;  // their bits, by scalar
  bool* wraps;  // set where a sum, a difference, a product or a shift to the
                // left is not that of its type; of what a select chooses only
} kilni_program_known_t;

// The value of an expression of literals and, where `known` is not NULL,
// lengths and scalars. False where it is made of anything else.
bool kilni_program_ir_evaluate(const kilni_program_ir_t* ir, uint32_t expr,
                               const kilni_program_known_t* known,
                               uint64_t* out_value);

#endif  // KILN_SRC_PROGRAM_IR_PROGRAM_INTEGERS_H_
