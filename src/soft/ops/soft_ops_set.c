// SPDX-License-Identifier: Apache-2.0
//
// soft: compares into registers: all ones or 1.0f where they are true, else
// zero. Compiled once for each lane set.
#include "soft/lanes/soft_lanes_compare.h"

KILNI_LANES_INLINE void store_chosen(kilni_soft_warp_t* warp,
                                     const kilni_soft_instr_t* instr,
                                     uint32_t mask, uint32_t yes) {
  uint32_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  KILNI_LANES_EACH(i) {
    r[i] = mask & kilni_soft_lanes_bit32[i] ? yes : 0;
  }
  kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), r,
                           kilni_soft_exec(warp, instr));
}

#define SET(name)                                                       \
  KILNI_SOFT_HANDLER(set_##name) {                                      \
    store_chosen(warp, instr, name##_lanes(warp, instr), UINT32_MAX);   \
    return instr + 1;                                                   \
  }                                                                     \
  KILNI_SOFT_HANDLER(setf_##name) {                                     \
    store_chosen(warp, instr, name##_lanes(warp, instr), bits32(1.0f)); \
    return instr + 1;                                                   \
  }
KILNI_LANES_WIDE_COMPARES(SET)
KILNI_LANES_ORDERED_COMPARES(SET, _s16)
