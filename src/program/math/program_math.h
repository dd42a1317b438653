// SPDX-License-Identifier: Apache-2.0
//
// program: strict math: the functions that no instruction computes exactly.
//
// Each is written in the program's own operators (integers, + - * / sqrt fma
// with one rounding, selects, casts and bitcasts), so that its result is the
// same on every device, and under 1 ULP from the exact value. The functions
// are one read-only program of their own, the library: a use of an operator is
// a call of the library's function of that operator, to be inlined.
#ifndef KILN_SRC_PROGRAM_MATH_PROGRAM_MATH_H_
#define KILN_SRC_PROGRAM_MATH_PROGRAM_MATH_H_

#include "program/ir/program_ir.h"

// A view of the library: tables that nobody changes or frees. Only `exprs`,
// `statements`, `variables`, `functions`, `operands` and `names` have records.
// Every function is pure; has one or two parameters by value, in `operands`
// from its `parameters` on; calls nothing, touches no buffer. Its statements
// are LET, VAR, ASSIGN, IF, WHILE (in rem only) and one RETURN, which is the
// last of the function's outermost list. A value that is used more than once
// is a LET. No operator in it is one that this header expands.
void kilni_program_math_view(kilni_program_ir_t* out_library);

// The library's function for an operator of f32 or f64: sqrt, reciprocal, the
// arithmetic and the comparisons have none, their instructions are exact.
// KILN_PROGRAM_UNARY_*: inverse_sqrt and everything from exp to tanh.
// KILN_PROGRAM_BINARY_*: rem, pow and atan2. 0: there is none. Of f16 and
// bf16: the f32 one between two casts.
uint32_t kilni_program_math_unary(uint32_t op, uint8_t type);
uint32_t kilni_program_math_binary(uint32_t op, uint8_t type);

// Fast math: what the hardware's approximation of an operator promises, as
// the PTX ISA says it (docs/reference/program-math.md names the sections).
typedef enum kilni_program_math_fast_t {
  KILNI_MATH_FAST_NONE = 0,  // the budget is too small, or there is none
  KILNI_MATH_FAST_RCP,       // rcp.approx.f32
  KILNI_MATH_FAST_RSQRT,     // rsqrt.approx.f32
  KILNI_MATH_FAST_SQRT,      // sqrt.approx.f32
  KILNI_MATH_FAST_EX2,       // ex2.approx.f32
  KILNI_MATH_FAST_EXP,       // ex2.approx.f32 of x * log2(e)
  KILNI_MATH_FAST_LG2,       // lg2.approx.f32
  KILNI_MATH_FAST_LOG,       // lg2.approx.f32 * ln(2)
  KILNI_MATH_FAST_SIN,       // sin.approx.f32
  KILNI_MATH_FAST_COS,       // cos.approx.f32
  KILNI_MATH_FAST_TANH,      // tanh.approx.f32 (sm_75, ISA 7.0)
  KILNI_MATH_FAST_DIV,       // div.full.f32
} kilni_program_math_fast_t;

// The approximation that a budget of `max_ulp` (0: strict) allows for an
// operator of f32; NONE for every other type.
kilni_program_math_fast_t kilni_program_math_fast_unary(uint32_t op,
                                                        uint8_t type,
                                                        uint32_t max_ulp);
kilni_program_math_fast_t kilni_program_math_fast_binary(uint32_t op,
                                                         uint8_t type,
                                                         uint32_t max_ulp);

// Whether a budget of `max_ulp` allows mma for a matrix_multiply_accumulate.
bool kilni_program_math_fast_matrix(uint32_t max_ulp);

#endif  // KILN_SRC_PROGRAM_MATH_PROGRAM_MATH_H_
