// SPDX-License-Identifier: Apache-2.0
//
// soft: moves and selects. Compiled once for each lane set.
#include "soft/lanes/soft_lanes_float.h"

KILNI_LANES_UNARY(mov_b32, uint32_t, uint32_t, a)
KILNI_LANES_UNARY(mov_b64, uint64_t, uint64_t, a)

KILNI_SOFT_HANDLER(mov_pred) {
  kilni_soft_set_pred(warp, instr->d, kilni_soft_exec(warp, instr),
                      kilni_soft_pred(warp, instr->a));
  return instr + 1;
}

KILNI_LANES_BINARY(pack_b64_b32x2, uint64_t, uint32_t, uint32_t,
                   a | (uint64_t)b << 32)
KILNI_SOFT_HANDLER(unpack_b64_b32x2) {
  uint32_t exec = kilni_soft_exec(warp, instr);
  const uint64_t* a = KILNI_LANES_AT(uint64_t, instr->a);
  uint32_t low[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  uint32_t high[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  KILNI_LANES_EACH(i) {
    low[i] = (uint32_t)a[i];
    high[i] = (uint32_t)(a[i] >> 32);
  }
  kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), low, exec);
  kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->b), high, exec);
  return instr + 1;
}

#define SELECT(id, type, bits)                                \
  KILNI_SOFT_HANDLER(id) {                                    \
    const type* pa = KILNI_LANES_AT(type, instr->a);          \
    const type* pb = KILNI_LANES_AT(type, instr->b);          \
    type which = kilni_soft_pred(warp, instr->c);             \
    KILNI_LANES_BODY(type, KILNI_LANES_RN, type a = pa[i];    \
                     type b = pb[i], which & bits[i] ? a : b) \
  }

SELECT(selp_b32, uint32_t, kilni_soft_lanes_bit32)
SELECT(selp_b64, uint64_t, kilni_soft_lanes_bit64)

// A NaN chooses b.
KILNI_LANES_TERNARY(slct_b32_s32, uint32_t, uint32_t, uint32_t, int32_t,
                    c >= 0 ? a : b)
KILNI_LANES_TERNARY(slct_b64_s32, uint64_t, uint64_t, uint64_t, int32_t,
                    c >= 0 ? a : b)
KILNI_LANES_TERNARY(slct_b32_f32, uint32_t, uint32_t, uint32_t, float,
                    c >= 0.0f ? a : b)
KILNI_LANES_TERNARY(slct_b64_f32, uint64_t, uint64_t, uint64_t, float,
                    c >= 0.0f ? a : b)
KILNI_LANES_TERNARY(slct_b32_ftz_f32, uint32_t, uint32_t, uint32_t, float,
                    flush32(c) >= 0.0f ? a : b)
KILNI_LANES_TERNARY(slct_b64_ftz_f32, uint64_t, uint64_t, uint64_t, float,
                    flush32(c) >= 0.0f ? a : b)
