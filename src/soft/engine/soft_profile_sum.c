// SPDX-License-Identifier: Apache-2.0
//
// soft: adding up what several workers and kernels counted; times of blocks.
#include "soft/engine/soft_profile.h"

static uint32_t profile_sum_bucket_of(uint64_t ns) {
  if (ns < KILNI_SOFT_TIME_STEPS) return (uint32_t)ns;
  uint32_t shift = 58u - (uint32_t)__builtin_clzll(ns);
  return shift * KILNI_SOFT_TIME_STEPS + (uint32_t)(ns >> shift);
}

// The middle of what falls into a bucket.
static uint64_t bucket_value(uint32_t bucket) {
  if (bucket < 2 * KILNI_SOFT_TIME_STEPS) return bucket;
  uint32_t shift = bucket / KILNI_SOFT_TIME_STEPS - 1;
  uint64_t low = KILNI_SOFT_TIME_STEPS + bucket % KILNI_SOFT_TIME_STEPS;
  return (low << shift) + (1ull << shift) / 2;
}

static void take_time(kiln_soft_profile_t* sums, uint64_t least,
                      uint64_t most) {
  if (sums->blocks == 0 || least < sums->block_ns_least) {
    sums->block_ns_least = least;
  }
  if (most > sums->block_ns_most) sums->block_ns_most = most;
}

void kilni_soft_profile_block(kilni_soft_profile_t* profile,
                              uint64_t spent_ns) {
  take_time(&profile->sums, spent_ns, spent_ns);
  profile->sums.blocks++;
  profile->times[profile_sum_bucket_of(spent_ns)]++;
}

void kilni_soft_profile_add(kilni_soft_profile_t* into,
                            const kilni_soft_profile_t* from) {
  kiln_soft_profile_t* sums = &into->sums;
  const kiln_soft_profile_t* more = &from->sums;
  for (uint32_t i = 0; i < KILN_SOFT_CLASS_COUNT; i++) {
    sums->instructions[i] += more->instructions[i];
  }
  sums->warp_instructions += more->warp_instructions;
  sums->branches += more->branches;
  sums->diverged += more->diverged;
  sums->barriers += more->barriers;
  for (uint32_t p = 0; p < KILN_SOFT_PLACE_COUNT; p++) {
    for (uint32_t s = 0; s < KILN_SOFT_SHAPE_COUNT; s++) {
      sums->traffic[p][s].accesses += more->traffic[p][s].accesses;
      sums->traffic[p][s].sectors += more->traffic[p][s].sectors;
    }
  }
  if (more->blocks) {
    take_time(sums, more->block_ns_least, more->block_ns_most);
  }
  sums->blocks += more->blocks;
  for (uint32_t i = 0; i < KILNI_SOFT_TIME_BUCKETS; i++) {
    into->times[i] += from->times[i];
  }
}

void kilni_soft_profile_sum(const kilni_soft_profile_t* profile,
                            kiln_soft_profile_t* out_sums) {
  *out_sums = profile->sums;
  uint64_t before = 0;
  for (uint32_t i = 0; i < KILNI_SOFT_TIME_BUCKETS; i++) {
    before += profile->times[i];
    if (before * 2 < profile->sums.blocks + 1) continue;
    uint64_t value = bucket_value(i);
    if (value < out_sums->block_ns_least) value = out_sums->block_ns_least;
    if (value > out_sums->block_ns_most) value = out_sums->block_ns_most;
    out_sums->block_ns_median = value;
    return;
  }
}
