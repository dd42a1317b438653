// SPDX-License-Identifier: Apache-2.0
//
// soft: bitwise logic and shifts. Compiled once for each lane set.
//
// Shift counts beyond the width act as the width, except in shf.wrap.
#include "soft/lanes/soft_lanes.h"

#define TWO(id, T, expr) KILNI_LANES_BINARY(id, T, T, T, expr)

TWO(and_b32, uint32_t, a & b)
TWO(and_b64, uint64_t, a & b)
TWO(or_b32, uint32_t, a | b)
TWO(or_b64, uint64_t, a | b)
TWO(xor_b32, uint32_t, a ^ b)
TWO(xor_b64, uint64_t, a ^ b)
KILNI_LANES_UNARY(not_b16, uint32_t, uint32_t, ~a & 0xffffu)
KILNI_LANES_UNARY(not_b32, uint32_t, uint32_t, ~a)
KILNI_LANES_UNARY(not_b64, uint64_t, uint64_t, ~a)
KILNI_LANES_UNARY(cnot_b32, uint32_t, uint32_t, a == 0 ? 1u : 0u)
KILNI_LANES_UNARY(cnot_b64, uint64_t, uint64_t, a == 0 ? 1u : 0u)

#define PREDICATE(id, expr)                                                    \
  KILNI_SOFT_HANDLER(id) {                                                     \
    uint32_t a = kilni_soft_pred(warp, instr->a);                              \
    uint32_t b = kilni_soft_pred(warp, instr->b);                              \
    kilni_soft_set_pred(warp, instr->d, kilni_soft_exec(warp, instr), (expr)); \
    return instr + 1;                                                          \
  }
PREDICATE(and_pred, a & b)
PREDICATE(or_pred, a | b)
PREDICATE(xor_pred, a ^ b)

KILNI_SOFT_HANDLER(not_pred) {
  kilni_soft_set_pred(warp, instr->d, kilni_soft_exec(warp, instr),
                      ~kilni_soft_pred(warp, instr->a));
  return instr + 1;
}

// Bit k of the table is the result where the bits of a, b and c spell k: a
// tree of selections, c nearest the leaves.
KILNI_SOFT_HANDLER(lop3_b32) {
  const uint32_t* pa = KILNI_LANES_AT(uint32_t, instr->a);
  const uint32_t* pb = KILNI_LANES_AT(uint32_t, instr->b);
  const uint32_t* pc = KILNI_LANES_AT(uint32_t, instr->c);
  uint32_t m[8];
  for (unsigned k = 0; k < 8; k++) m[k] = 0u - (instr->aux >> k & 1u);
  uint32_t m0 = m[0], m1 = m[0] ^ m[1], m2 = m[2], m3 = m[2] ^ m[3];
  uint32_t m4 = m[4], m5 = m[4] ^ m[5], m6 = m[6], m7 = m[6] ^ m[7];
  uint32_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  KILNI_LANES_EACH(i) {
    uint32_t a = pa[i];
    uint32_t b = pb[i];
    uint32_t c = pc[i];
    uint32_t low0 = m0 ^ (c & m1);
    uint32_t low1 = m2 ^ (c & m3);
    uint32_t high0 = m4 ^ (c & m5);
    uint32_t high1 = m6 ^ (c & m7);
    uint32_t low = low0 ^ (b & (low0 ^ low1));
    uint32_t high = high0 ^ (b & (high0 ^ high1));
    r[i] = low ^ (a & (low ^ high));
  }
  kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), r,
                           kilni_soft_exec(warp, instr));
  return instr + 1;
}

#define SHIFT(id, T, expr) KILNI_LANES_BINARY(id, T, T, uint32_t, expr)

SHIFT(shl_b16, uint32_t, b < 16 ? (a << (b & 15)) & 0xffffu : 0)
SHIFT(shl_b32, uint32_t, b < 32 ? a << (b & 31) : 0)
SHIFT(shl_b64, uint64_t, b < 64 ? a << (b & 63) : 0)
SHIFT(shr_u16, uint32_t, b < 16 ? (a & 0xffffu) >> (b & 15) : 0)
SHIFT(shr_s16, uint32_t,
      (uint32_t)((int32_t)(int16_t)a >> (b < 15 ? b : 15)) & 0xffffu)
SHIFT(shr_u32, uint32_t, b < 32 ? a >> (b & 31) : 0)
SHIFT(shr_s32, int32_t, a >> (b < 31 ? b : 31))
SHIFT(shr_u64, uint64_t, b < 64 ? a >> (b & 63) : 0)
SHIFT(shr_s64, int64_t, a >> (b < 63 ? b : 63))

#define FUNNEL(id, expr) \
  KILNI_LANES_TERNARY(id, uint32_t, uint32_t, uint32_t, uint32_t, expr)
// The shift by 32 less a count is made of two, since one by 32 is none.
#define BEYOND_LEFT(a, n)  (((a) >> 1) >> (31 - (n)))
#define BEYOND_RIGHT(b, n) (((b) << 1) << (31 - (n)))

FUNNEL(shf_l_wrap, b << (c & 31) | BEYOND_LEFT(a, c & 31))
FUNNEL(shf_l_clamp, c < 32 ? b << (c & 31) | BEYOND_LEFT(a, c & 31) : a)
FUNNEL(shf_r_wrap, a >> (c & 31) | BEYOND_RIGHT(b, c & 31))
FUNNEL(shf_r_clamp, c < 32 ? a >> (c & 31) | BEYOND_RIGHT(b, c & 31) : b)
