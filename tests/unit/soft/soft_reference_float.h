// SPDX-License-Identifier: Apache-2.0
//
// soft: inside the reference: a form taken apart, and floats by MPFR.
#ifndef KILN_TESTS_UNIT_SOFT_SOFT_REFERENCE_FLOAT_H_
#define KILN_TESTS_UNIT_SOFT_SOFT_REFERENCE_FLOAT_H_

#include "soft_reference.h"

enum { SOFT_FORM_TOKENS = 10 };

// thread-compatible
typedef struct soft_type_t {
  const char* name;
  char kind;  // u, s, b, f, p
  unsigned bits;
} soft_type_t;

// A form, its tokens and types. thread-compatible
typedef struct soft_form_t {
  char text[64];
  const char* token[SOFT_FORM_TOKENS];
  unsigned count;
  soft_type_t type[3];
  unsigned types;
  const char* rounding;
} soft_form_t;

// thread-compatible
typedef enum soft_int_t {
  SOFT_INT_EXACT,
  SOFT_INT_BEYOND,
  SOFT_INT_NAN,
} soft_int_t;

bool soft_form_has(const soft_form_t* f, const char* token);

int soft_float_order(const soft_form_t* f, unsigned bits, uint64_t x,
                     uint64_t y);
bool soft_float_to_float(const soft_form_t* f, uint64_t x,
                         soft_lane_out_t* out);
uint64_t soft_float_of_int(const soft_form_t* f, bool negative,
                           uint64_t magnitude);
soft_int_t soft_float_to_int(const soft_form_t* f, uint64_t x,
                             bool* out_negative, uint64_t* out_magnitude);
bool soft_float_reference(const soft_form_t* f, const soft_lane_in_t* in,
                          soft_lane_out_t* out);

#endif  // KILN_TESTS_UNIT_SOFT_SOFT_REFERENCE_FLOAT_H_
