// SPDX-License-Identifier: Apache-2.0
//
// soft: what a kernel did, counted where a launch asks for it.
#ifndef KILN_SRC_SOFT_ENGINE_SOFT_PROFILE_H_
#define KILN_SRC_SOFT_ENGINE_SOFT_PROFILE_H_

#include "kiln/soft.h"

enum {
  // Powers of two in 32 steps each: times to three per cent.
  KILNI_SOFT_TIME_STEPS = 32,
  KILNI_SOFT_TIME_BUCKETS = 60 * KILNI_SOFT_TIME_STEPS
};

// Sums, with the times of blocks by size. thread-compatible
typedef struct kilni_soft_profile_t {
  kiln_soft_profile_t sums;  // but for the median
  uint64_t times[KILNI_SOFT_TIME_BUCKETS];
} kilni_soft_profile_t;

// A block has ended.
void kilni_soft_profile_block(kilni_soft_profile_t* profile, uint64_t spent_ns);
void kilni_soft_profile_add(kilni_soft_profile_t* into,
                            const kilni_soft_profile_t* from);
// The sums with the median.
void kilni_soft_profile_sum(const kilni_soft_profile_t* profile,
                            kiln_soft_profile_t* out_sums);

#endif  // KILN_SRC_SOFT_ENGINE_SOFT_PROFILE_H_
