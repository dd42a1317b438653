// SPDX-License-Identifier: Apache-2.0
//
// soft: moves and selects. Compiled once for each lane set.
#include "soft/soft_lanes.h"

KILNI_LANES_UNARY(mov_b32, uint32_t, uint32_t, a)
KILNI_LANES_UNARY(mov_b64, uint64_t, uint64_t, a)

KILNI_SOFT_HANDLER(mov_pred) {
  kilni_soft_set_pred(warp, instr->d, kilni_soft_exec(warp, instr),
                      kilni_soft_pred(warp, instr->a));
  return instr + 1;
}

#define SELECT(id, type, bits)                                     \
  KILNI_SOFT_HANDLER(id) {                                         \
    const type* a = KILNI_LANES_AT(type, instr->a);                \
    const type* b = KILNI_LANES_AT(type, instr->b);                \
    type which = kilni_soft_pred(warp, instr->c);                  \
    type r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;                  \
    KILNI_LANES_EACH(i) {                                          \
      type yes = a[i];                                             \
      type no = b[i];                                              \
      r[i] = which & bits[i] ? yes : no;                           \
    }                                                              \
    kilni_lanes_store(KILNI_LANES_AT(type, instr->d), r,           \
                      kilni_soft_exec(warp, instr), sizeof(type)); \
    return instr + 1;                                              \
  }

SELECT(selp_b32, uint32_t, kilni_lanes_bit32)
SELECT(selp_b64, uint64_t, kilni_lanes_bit64)
