// SPDX-License-Identifier: Apache-2.0
//
// soft: what one lane must compute, worked out from the text of a PTX form by
// the manual's pseudo-code and by MPFR, apart from the engine's own code.
#ifndef KILN_TESTS_UNIT_SOFT_SOFT_REFERENCE_H_
#define KILN_TESTS_UNIT_SOFT_SOFT_REFERENCE_H_

#include <stdbool.h>
#include <stdint.h>

// One lane's sources, as bits. thread-compatible
typedef struct soft_lane_in_t {
  uint64_t s[4];
  uint32_t immediate;
  uint32_t carry;  // 0 or 1
} soft_lane_in_t;

// One lane's result. thread-compatible
typedef struct soft_lane_out_t {
  uint64_t d;      // bits of the register or of the predicate
  uint32_t carry;  // 0 or 1, where `has_carry`
  bool has_carry;
  // How far from `d` a float may be, in units of its last place, or as an
  // absolute error; 0 asks for the same bits.
  uint32_t ulps;
  double error;
} soft_lane_out_t;

// False when `form` is not arithmetic that the reference knows.
bool soft_reference(const char* form, const soft_lane_in_t* in,
                    soft_lane_out_t* out);

// The type of source `index` of `form`, as a PTX type name, for choosing test
// inputs: "f32", "u16", "pred" and so on.
const char* soft_reference_source_type(const char* form, unsigned index);

// Whether `got` is good enough; `bits` is 32 or 64.
bool soft_reference_agrees(const soft_lane_out_t* want, uint64_t got,
                           unsigned bits);

#endif  // KILN_TESTS_UNIT_SOFT_SOFT_REFERENCE_H_
