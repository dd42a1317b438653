// SPDX-License-Identifier: Apache-2.0
//
// test: what each operator of a program yields: the semantics table as code.
//
// Written for reading, not for speed. A value is the bits of its type in the
// low end of a uint64_t, zeroes above. An operator of the tables without a
// function here does not compile.
#ifndef KILN_TESTS_SUPPORT_EVALUATOR_VALUES_H_
#define KILN_TESTS_SUPPORT_EVALUATOR_VALUES_H_

#include <stdbool.h>
#include <stdint.h>

#include "kiln/program.h"

// One operator on values of `type` (KILN_PROGRAM_TYPE_*).
uint64_t program_unary(uint32_t op, uint8_t type, uint64_t x);
uint64_t program_binary(uint32_t op, uint8_t type, uint64_t x, uint64_t y);
uint64_t program_fma(uint8_t type, uint64_t x, uint64_t y, uint64_t z);
uint64_t program_cast(uint8_t from, uint8_t to, uint64_t x);
uint64_t program_bitcast(uint8_t from, uint8_t to, uint64_t x);

// Types: size in bytes, class.
uint32_t program_type_bytes(uint8_t type);
bool program_type_is_float(uint8_t type);
bool program_type_is_signed(uint8_t type);  // a signed integer

// The value of an integer with its sign carried to 64 bits.
uint64_t program_extend(uint8_t type, uint64_t x);
// A float's value; every f16, bf16 and f32 is a double.
double program_number(uint8_t type, uint64_t x);
// The value of a float type nearest to (-1)^sign * magnitude * 2^exponent,
// halves to the even one.
uint64_t program_nearest(uint8_t type, bool sign, uint64_t magnitude,
                         int32_t exponent);
bool program_is_nan(uint8_t type, uint64_t x);
// The one NaN of a type that a bitcast yields.
uint64_t program_nan(uint8_t type);

// Whether two results are the same: bit for bit, any NaN as any other.
bool program_same(uint8_t type, uint64_t x, uint64_t y);

// What a lane that takes no part holds for KILN_PROGRAM_SUBGROUP_*, and the
// KILN_PROGRAM_BINARY_* that joins two lanes.
uint64_t program_neutral(uint32_t subgroup_op, uint8_t type);
uint32_t program_join(uint32_t subgroup_op);

#endif  // KILN_TESTS_SUPPORT_EVALUATOR_VALUES_H_
