// SPDX-License-Identifier: Apache-2.0
//
// tests: whether two answers of a kernel are the same.
#ifndef KILN_TESTS_KERNELS_KERNEL_COMPARE_H_
#define KILN_TESTS_KERNELS_KERNEL_COMPARE_H_

#include "kernel_run.h"

// How far two answers are apart. thread-compatible
typedef struct kernel_apart_t {
  size_t differing;  // elements that are not the same bits (any NaN is one)
  size_t first;      // the first of them
  uint64_t ulps;     // the greatest distance; UINT64_MAX: a NaN and a number
} kernel_apart_t;

kernel_apart_t kernel_compare(const kernel_param_t* param, const uint8_t* left,
                              const uint8_t* right);

#endif  // KILN_TESTS_KERNELS_KERNEL_COMPARE_H_
