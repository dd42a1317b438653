// SPDX-License-Identifier: Apache-2.0
//
// soft: high halves of products, for arithmetic and carry chains.
#ifndef KILN_SRC_SOFT_LANES_SOFT_LANES_WIDE_H_
#define KILN_SRC_SOFT_LANES_SOFT_LANES_WIDE_H_

#include "soft/lanes/soft_lanes.h"

__extension__ typedef unsigned __int128 kilni_soft_lanes_u128_t;
__extension__ typedef __int128 kilni_soft_lanes_s128_t;

KILNI_LANES_INLINE uint32_t high_u32(uint32_t a, uint32_t b) {
  return (uint32_t)(((uint64_t)a * b) >> 32);
}
KILNI_LANES_INLINE uint32_t high_s32(uint32_t a, uint32_t b) {
  return (uint32_t)((uint64_t)((int64_t)(int32_t)a * (int32_t)b) >> 32);
}
KILNI_LANES_INLINE uint64_t high_u64(uint64_t a, uint64_t b) {
  return (uint64_t)(((kilni_soft_lanes_u128_t)a * b) >> 64);
}
KILNI_LANES_INLINE uint64_t high_s64(uint64_t a, uint64_t b) {
  kilni_soft_lanes_s128_t product =
      (kilni_soft_lanes_s128_t)(int64_t)a * (int64_t)b;
  return (uint64_t)((kilni_soft_lanes_u128_t)product >> 64);
}

#endif  // KILN_SRC_SOFT_LANES_SOFT_LANES_WIDE_H_
