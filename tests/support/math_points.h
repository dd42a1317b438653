// SPDX-License-Identifier: Apache-2.0
//
// test: where strict math is looked at, and a quick word on each result.
//
// Needs the C library only; math_judge.h has MPFR's word.
#ifndef KILN_TESTS_SUPPORT_MATH_POINTS_H_
#define KILN_TESTS_SUPPORT_MATH_POINTS_H_

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

// The distance of `got` from the exact value in units of the last place of the
// exact value in its type (f32 or f64), of the least subnormal's below the
// normal ones, by C's function in long double: to a few thousandths. A wrong
// NaN, infinity or sign of zero is 1e9, and where long double ends as well.
double math_quick_error(const math_function_t* function, uint8_t type, double x,
                        double y, double got);

// The distance of `got` from a value.
double math_distance(long double want, uint8_t type, double got);

// The same of a function of one operand in f32, by C's function in double: to
// a few 2^-29.
double math_quicker_error(const math_function_t* function, float x, float got);

// Whether `want` or `got` is no ordinary number, and the error then.
bool math_ends(long double want, double got, double* out_error);

// The exponent of the last place of a number of an exponent (as frexp has it)
// in a type, the least there is, and the exponent of where infinity begins.
int math_place(uint8_t type, long exponent);
int math_least_place(uint8_t type);
int math_top(uint8_t type);

// A number of a seed, spread over all exponents, subnormals, special values
// and the neighbourhood of whole numbers and of multiples of pi/2.
uint64_t math_sample(uint8_t type, uint64_t* seed);

// Inputs known to be hard: number `i` of a function; false behind the last.
bool math_hard(const math_function_t* function, uint8_t type, uint32_t i,
               uint64_t* x, uint64_t* y);

#endif  // KILN_TESTS_SUPPORT_MATH_POINTS_H_
