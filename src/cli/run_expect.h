// SPDX-License-Identifier: Apache-2.0
//
// cli: compares an output with its expected contents. Pure.
#ifndef KILN_SRC_CLI_RUN_EXPECT_H_
#define KILN_SRC_CLI_RUN_EXPECT_H_

#include "cli/cli_array.h"

enum { KILNI_CLI_NUMBER_BYTES = 40 };

// How two arrays differ. thread-compatible
typedef struct kilni_cli_difference_t {
  uint64_t count;  // elements that differ; 0: none, and the rest is unset
  uint64_t first;  // the first of them, in C order
  char expected[KILNI_CLI_NUMBER_BYTES];  // its value
  char got[KILNI_CLI_NUMBER_BYTES];
  // The largest difference between two numbers; infinite if one is NaN or
  // infinite.
  double largest;
  // The tolerance with which all agree, if every difference is of the size of
  // rounding; 0: one is larger, and no tolerance should hide it.
  double rounding;
} kilni_cli_difference_t;

// Compares arrays of the same type and length. Two elements agree if they are
// equal (-0 equals 0), if both are NaN, or if |got - expected| is at most
// `tolerance` or at most `tolerance` * |expected|. Truths are not numbers: they
// agree or not.
void kilni_cli_expect_compare(const kilni_cli_array_t* expected,
                              const kilni_cli_array_t* got, double tolerance,
                              kilni_cli_difference_t* out);

// Whether the expected array can be compared with a buffer: the same type and
// the same extents; one dimension matches any shape of as many elements.
bool kilni_cli_expect_fits(const kilni_cli_shape_t* expected,
                           const kilni_cli_shape_t* buffer);

// "[2,5]": the place of the element `at` of an array.
void kilni_cli_expect_place(const kilni_cli_shape_t* shape, uint64_t at,
                            char* out, size_t capacity);

// A tolerance with few digits that is `least` or just above it.
void kilni_cli_expect_tolerance(double least, char out[KILNI_CLI_NUMBER_BYTES]);

#endif  // KILN_SRC_CLI_RUN_EXPECT_H_
