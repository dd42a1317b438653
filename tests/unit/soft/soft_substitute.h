// SPDX-License-Identifier: Apache-2.0
//
// soft: an engine whose kernels are C functions, so that the driver front is
// tested by itself: soft_code.h and soft_grid.h, implemented over names.
//
//   .entry put(u64 address, u32 value)     stores the value
//   .entry add(u64 address, u32 value)     adds it
//   .entry append(u64 address, u32 value)  puts it at the end of a list whose
//                                          first word counts
//   .entry wait(u64 address)               returns once the word is not zero
//   .entry bad()                           an illegal address
//   .entry stop()                          a trap
//   .entry spin()                          runs until it is cancelled
#ifndef KILN_TESTS_UNIT_SOFT_SOFT_SUBSTITUTE_H_
#define KILN_TESTS_UNIT_SOFT_SOFT_SUBSTITUTE_H_

// The module text of all of them.
extern const char* const soft_substitute_ptx;

#endif  // KILN_TESTS_UNIT_SOFT_SOFT_SUBSTITUTE_H_
