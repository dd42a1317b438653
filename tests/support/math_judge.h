// SPDX-License-Identifier: Apache-2.0
//
// test: how far a result of strict math is from the exact value, by MPFR.
#ifndef KILN_TESTS_SUPPORT_MATH_JUDGE_H_
#define KILN_TESTS_SUPPORT_MATH_JUDGE_H_

#include "math_points.h"

// The distance from the exact value in units of the last place of the exact
// value in its type (f32 or f64), of the least subnormal's below the normal
// ones. A wrong NaN, infinity or sign of zero is 1e9. math_quick_error
// answers for almost all; MPFR where it says more than `trust`, and always if
// `trust` is 0.
double math_error(const math_function_t* function, uint8_t type, uint64_t x,
                  uint64_t y, uint64_t result, double trust);

// Frees what a thread that judged has kept.
void math_judge_end(void);

#endif  // KILN_TESTS_SUPPORT_MATH_JUDGE_H_
