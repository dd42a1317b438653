// SPDX-License-Identifier: Apache-2.0
//
// test: how far a result of strict math is from the exact value, by MPFR.
#ifndef KILN_TESTS_SUPPORT_MATH_JUDGE_H_
#define KILN_TESTS_SUPPORT_MATH_JUDGE_H_

#include <stdbool.h>
#include <stdint.h>

// A function of one or two operands: KILN_PROGRAM_UNARY_* or _BINARY_*.
typedef struct math_function_t {
  const char* name;
  uint32_t op;
  bool two;
} math_function_t;

// Those of strict math, `rem` included; name NULL behind the last.
extern const math_function_t MATH_FUNCTIONS[];

// The distance from the exact value in units of the last place of the exact
// value in its type (f32 or f64), of the least subnormal's below the normal
// ones. A wrong NaN, infinity or sign of zero is 1e9. The C library's own
// function in a wider type answers for almost all; MPFR where it says more
// than `trust`, and always if `trust` is 0.
double math_error(const math_function_t* function, uint8_t type, uint64_t x,
                  uint64_t y, uint64_t result, double trust);

// A number of a seed, spread over all exponents, subnormals, special values
// and the neighbourhood of whole numbers and of multiples of pi/2.
uint64_t math_sample(uint8_t type, uint64_t* seed);

// Inputs known to be hard: number `i` of a function; false behind the last.
bool math_hard(const math_function_t* function, uint8_t type, uint32_t i,
               uint64_t* x, uint64_t* y);

#endif  // KILN_TESTS_SUPPORT_MATH_JUDGE_H_
