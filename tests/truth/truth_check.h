// SPDX-License-Identifier: Apache-2.0
//
// truth: are two answers the same, and how far apart are two floats?
#ifndef KILN_TESTS_TRUTH_TRUTH_CHECK_H_
#define KILN_TESTS_TRUTH_TRUTH_CHECK_H_

#include <stdio.h>

#include "truth_device.h"

enum { TRUTH_BUCKETS = 8 };

// What comparing one entry's answers found. one-thread
typedef struct truth_finding_t {
  uint64_t compared;
  uint64_t different;
  // Of one float: how many answers are 0, 1, 2, 3 to 4, 5 to 8, 9 to 16, up to
  // 256 and more units in the last place apart; the others (one is no number)
  // count as the last.
  uint64_t apart[TRUTH_BUCKETS];
  uint64_t greatest;
} truth_finding_t;

// Compares `count` inputs, from `position` of the plan on, and prints the first
// few differences to `out`.
void truth_compare(const truth_entry_t* entry, const truth_plan_t* plan,
                   uint32_t position, uint32_t count, const uint8_t* truth,
                   const uint8_t* answers, FILE* out,
                   truth_finding_t* inout_finding);

#endif  // KILN_TESTS_TRUTH_TRUTH_CHECK_H_
