// SPDX-License-Identifier: Apache-2.0
//
// soft: integer division and remainder. Compiled once for each lane set.
//
// Division by zero gives all ones, for the remainder too: PTX leaves it open.
// The least number divided by -1 is itself, with remainder 0.
#include "soft/soft_lanes.h"

KILNI_LANES_INLINE uint32_t div_u(uint32_t a, uint32_t b) {
  return b ? a / b : UINT32_MAX;
}
KILNI_LANES_INLINE uint32_t rem_u(uint32_t a, uint32_t b) {
  return b ? a % b : UINT32_MAX;
}
KILNI_LANES_INLINE uint64_t div_ul(uint64_t a, uint64_t b) {
  return b ? a / b : UINT64_MAX;
}
KILNI_LANES_INLINE uint64_t rem_ul(uint64_t a, uint64_t b) {
  return b ? a % b : UINT64_MAX;
}
KILNI_LANES_INLINE uint32_t div_s(int32_t a, int32_t b) {
  if (b == 0) return UINT32_MAX;
  return b == -1 ? 0u - (uint32_t)a : (uint32_t)(a / b);
}
KILNI_LANES_INLINE uint32_t rem_s(int32_t a, int32_t b) {
  if (b == 0) return UINT32_MAX;
  return b == -1 ? 0u : (uint32_t)(a % b);
}
KILNI_LANES_INLINE uint64_t div_sl(int64_t a, int64_t b) {
  if (b == 0) return UINT64_MAX;
  return b == -1 ? 0u - (uint64_t)a : (uint64_t)(a / b);
}
KILNI_LANES_INLINE uint64_t rem_sl(int64_t a, int64_t b) {
  if (b == 0) return UINT64_MAX;
  return b == -1 ? 0u : (uint64_t)(a % b);
}

#define TWO(id, T, expr) KILNI_LANES_BINARY(id, T, T, T, expr)
#define LOW16(x)         ((uint32_t)(x)&0xffffu)

TWO(div_u16, uint32_t, LOW16(div_u(LOW16(a), LOW16(b))))
TWO(rem_u16, uint32_t, LOW16(rem_u(LOW16(a), LOW16(b))))
TWO(div_s16, uint32_t, LOW16(div_s((int16_t)a, (int16_t)b)))
TWO(rem_s16, uint32_t, LOW16(rem_s((int16_t)a, (int16_t)b)))
TWO(div_u32, uint32_t, div_u(a, b))
TWO(rem_u32, uint32_t, rem_u(a, b))
TWO(div_s32, uint32_t, div_s((int32_t)a, (int32_t)b))
TWO(rem_s32, uint32_t, rem_s((int32_t)a, (int32_t)b))
TWO(div_u64, uint64_t, div_ul(a, b))
TWO(rem_u64, uint64_t, rem_ul(a, b))
TWO(div_s64, uint64_t, div_sl((int64_t)a, (int64_t)b))
TWO(rem_s64, uint64_t, rem_sl((int64_t)a, (int64_t)b))
