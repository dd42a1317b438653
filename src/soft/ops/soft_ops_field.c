// SPDX-License-Identifier: Apache-2.0
//
// soft: bit fields, counts, permutes and dot products of bytes. Compiled once
// for each lane set.
#include "soft/lanes/soft_lanes.h"

KILNI_LANES_INLINE uint32_t popcount32(uint32_t x) {
  x -= x >> 1 & 0x55555555u;
  x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0fu;
  return (x * 0x01010101u) >> 24;
}
KILNI_LANES_INLINE uint32_t popcount64(uint64_t x) {
  return popcount32((uint32_t)x) + popcount32((uint32_t)(x >> 32));
}
// Zeros above the highest one; the width for zero.
#if defined(__LZCNT__)
KILNI_LANES_INLINE uint32_t leading32(uint32_t x) {
  return x ? (uint32_t)__builtin_clz(x) : 32;
}
KILNI_LANES_INLINE uint32_t leading64(uint64_t x) {
  return x ? (uint32_t)__builtin_clzll(x) : 64;
}
#else
KILNI_LANES_INLINE uint32_t leading32(uint32_t x) {
  x |= x >> 1;
  x |= x >> 2;
  x |= x >> 4;
  x |= x >> 8;
  x |= x >> 16;
  return popcount32(~x);
}
KILNI_LANES_INLINE uint32_t leading64(uint64_t x) {
  uint32_t high = (uint32_t)(x >> 32);
  return high ? leading32(high) : 32 + leading32((uint32_t)x);
}
#endif
KILNI_LANES_INLINE uint32_t reverse32(uint32_t x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  x = (x >> 8 & 0x00ff00ffu) | (x & 0x00ff00ffu) << 8;
  return x >> 16 | x << 16;
}
KILNI_LANES_INLINE uint64_t reverse64(uint64_t x) {
  return (uint64_t)reverse32((uint32_t)x) << 32 |
         reverse32((uint32_t)(x >> 32));
}

KILNI_LANES_UNARY(popc_b32, uint32_t, uint32_t, popcount32(a))
KILNI_LANES_UNARY(popc_b64, uint32_t, uint64_t, popcount64(a))
KILNI_LANES_UNARY(clz_b32, uint32_t, uint32_t, leading32(a))
KILNI_LANES_UNARY(clz_b64, uint32_t, uint64_t, leading64(a))
KILNI_LANES_UNARY(brev_b32, uint32_t, uint32_t, reverse32(a))
KILNI_LANES_UNARY(brev_b64, uint64_t, uint64_t, reverse64(a))

// The highest bit that differs from the sign; all ones when there is none.
#define FIND(name, T, leading, last)              \
  KILNI_LANES_INLINE uint32_t name(T x) {         \
    return x ? (last) - leading(x) : UINT32_MAX;  \
  }                                               \
  KILNI_LANES_INLINE uint32_t name##_shift(T x) { \
    return x ? leading(x) : UINT32_MAX;           \
  }
FIND(find32, uint32_t, leading32, 31u)
FIND(find64, uint64_t, leading64, 63u)
#define FOLD32(a) ((a) ^ (0u - ((a) >> 31)))
#define FOLD64(a) ((a) ^ (0u - ((a) >> 63)))

KILNI_LANES_UNARY(bfind_u32, uint32_t, uint32_t, find32(a))
KILNI_LANES_UNARY(bfind_s32, uint32_t, uint32_t, find32(FOLD32(a)))
KILNI_LANES_UNARY(bfind_u64, uint32_t, uint64_t, find64(a))
KILNI_LANES_UNARY(bfind_s64, uint32_t, uint64_t, find64(FOLD64(a)))
KILNI_LANES_UNARY(bfind_shiftamt_u32, uint32_t, uint32_t, find32_shift(a))
KILNI_LANES_UNARY(bfind_shiftamt_s32, uint32_t, uint32_t,
                  find32_shift(FOLD32(a)))
KILNI_LANES_UNARY(bfind_shiftamt_u64, uint32_t, uint64_t, find64_shift(a))
KILNI_LANES_UNARY(bfind_shiftamt_s64, uint32_t, uint64_t,
                  find64_shift(FOLD64(a)))

// `len` ones from bit 0, for any len.
#define ONES(T, width, len) \
  ((len) < (width) ? ((T)1 << ((len) & ((width) - 1))) - 1u : ~(T)0)
// x shifted, zero beyond the width.
#define LEFT(x, width, n)  ((n) < (width) ? (x) << ((n) & ((width) - 1)) : 0)
#define RIGHT(x, width, n) ((n) < (width) ? (x) >> ((n) & ((width) - 1)) : 0)

// The manual gives positions and lengths of 0 to 255. Above it a GPU takes
// those of 32 bits modulo 256, and those of 64 bits as they are.
#define COUNT_32(x) ((x) & 0xffu)
#define COUNT_64(x) ((x) < 255u ? (x) : 255u)

// The last bit of the field, or of the word where the field leaves it, fills
// a signed field.
#define EXTRACT(name, T, width)                                           \
  KILNI_LANES_INLINE T name(T a, uint32_t b, uint32_t c, int is_signed) { \
    uint32_t pos = COUNT_##width(b);                                      \
    uint32_t len = COUNT_##width(c);                                      \
    uint32_t last = pos + len - 1u;                                       \
    uint32_t top = len && last < (width) - 1u ? last : (width) - 1u;      \
    T sign = (T)0 - (a >> (top & ((width) - 1u)) & 1u);                   \
    T fill = is_signed && len ? sign : 0;                                 \
    uint32_t space = pos < (width) ? (width) - pos : 0;                   \
    uint32_t kept = len < space ? len : space;                            \
    T ones = ONES(T, width, kept);                                        \
    return (RIGHT(a, width, pos) & ones) | (fill & ~ones);                \
  }
EXTRACT(extract32, uint32_t, 32)
EXTRACT(extract64, uint64_t, 64)

KILNI_LANES_TERNARY(bfe_u32, uint32_t, uint32_t, uint32_t, uint32_t,
                    extract32(a, b, c, 0))
KILNI_LANES_TERNARY(bfe_s32, uint32_t, uint32_t, uint32_t, uint32_t,
                    extract32(a, b, c, 1))
KILNI_LANES_TERNARY(bfe_u64, uint64_t, uint64_t, uint32_t, uint32_t,
                    extract64(a, b, c, 0))
KILNI_LANES_TERNARY(bfe_s64, uint64_t, uint64_t, uint32_t, uint32_t,
                    extract64(a, b, c, 1))

#define INSERT(name, T, width)                                  \
  KILNI_LANES_INLINE T name(T a, T b, uint32_t c, uint32_t d) { \
    uint32_t pos = COUNT_##width(c);                            \
    uint32_t len = COUNT_##width(d);                            \
    T ones = ONES(T, width, len);                               \
    T field = LEFT(ones, width, pos);                           \
    return (LEFT(a, width, pos) & field) | (b & ~field);        \
  }
INSERT(insert32, uint32_t, 32)
INSERT(insert64, uint64_t, 64)

KILNI_LANES_QUATERNARY(bfi_b32, uint32_t, uint32_t, uint32_t, uint32_t,
                       uint32_t, insert32(a, b, c, w))
KILNI_LANES_QUATERNARY(bfi_b64, uint64_t, uint64_t, uint64_t, uint32_t,
                       uint32_t, insert64(a, b, c, w))

KILNI_LANES_INLINE uint32_t mask_clamp(uint32_t a, uint32_t b) {
  uint32_t ones = b < 32 ? (1u << (b & 31)) - 1u : UINT32_MAX;
  return a < 32 ? ones << (a & 31) : 0;
}
KILNI_LANES_BINARY(bmsk_clamp, uint32_t, uint32_t, uint32_t, mask_clamp(a, b))
KILNI_LANES_BINARY(bmsk_wrap, uint32_t, uint32_t, uint32_t,
                   mask_clamp(a & 31, b & 31))

// The low b bits of a; all 32 where b is 32 or more.
KILNI_LANES_INLINE uint32_t ops_field_extend(uint32_t a, uint32_t b,
                                             int is_signed) {
  uint32_t ones = b < 32 ? (1u << (b & 31)) - 1u : UINT32_MAX;
  uint32_t sign = 0u - (a >> ((b - 1u) & 31) & 1u);
  return (a & ones) | (is_signed && b ? sign & ~ones : 0);
}
KILNI_LANES_BINARY(szext_clamp_u32, uint32_t, uint32_t, uint32_t,
                   ops_field_extend(a, b, 0))
KILNI_LANES_BINARY(szext_clamp_s32, uint32_t, uint32_t, uint32_t,
                   ops_field_extend(a, b, 1))
KILNI_LANES_BINARY(szext_wrap_u32, uint32_t, uint32_t, uint32_t,
                   ops_field_extend(a, b & 31, 0))
KILNI_LANES_BINARY(szext_wrap_s32, uint32_t, uint32_t, uint32_t,
                   ops_field_extend(a, b & 31, 1))

// The n-th one of `mask` from bit `base`, upwards or downwards.
KILNI_LANES_INLINE uint32_t find_nth(uint32_t mask, uint32_t base,
                                     uint32_t offset) {
  int32_t step = offset >> 31 ? -1 : 1;
  uint32_t count = offset >> 31 ? 0u - offset : offset;
  if (base > 31) return UINT32_MAX;
  if (count == 0) return mask >> base & 1u ? base : UINT32_MAX;
  for (int32_t at = (int32_t)base; at >= 0 && at < 32; at += step) {
    count -= mask >> at & 1u;
    if (count == 0) return (uint32_t)at;
  }
  return UINT32_MAX;
}
KILNI_LANES_TERNARY(fns_b32, uint32_t, uint32_t, uint32_t, uint32_t,
                    find_nth(a, b, c))

// The byte that nibble `k` of `how` selects, in its place; bit 3 of a nibble
// asks for eight copies of the byte's sign.
KILNI_LANES_INLINE uint32_t permute_byte(uint64_t both, uint32_t how, int k) {
  uint32_t nibble = how >> (4 * k);
  uint32_t byte = (uint32_t)(both >> (8 * (nibble & 7))) & 0xffu;
  uint32_t sign = byte & 0x80u ? 0xffu : 0;
  return (nibble & 8 ? sign : byte) << (8 * k);
}
KILNI_LANES_INLINE uint32_t ops_field_permute(uint32_t a, uint32_t b,
                                              uint32_t how) {
  uint64_t both = (uint64_t)b << 32 | a;
  return permute_byte(both, how, 0) | permute_byte(both, how, 1) |
         permute_byte(both, how, 2) | permute_byte(both, how, 3);
}
KILNI_LANES_TERNARY(prmt_b32, uint32_t, uint32_t, uint32_t, uint32_t,
                    ops_field_permute(a, b, c))
// The named modes: a selector for each value of the low two bits of c.
#define PERMUTE(id, zero, one, two, three)        \
  KILNI_LANES_TERNARY(                            \
      id, uint32_t, uint32_t, uint32_t, uint32_t, \
      ops_field_permute(a, b,                               \
              c & 2 ? (c & 1 ? (three) : (two)) : (c & 1 ? (one) : (zero))))
PERMUTE(prmt_f4e, 0x3210u, 0x4321u, 0x5432u, 0x6543u)
PERMUTE(prmt_b4e, 0x5670u, 0x6701u, 0x7012u, 0x0123u)
PERMUTE(prmt_rc8, 0x0000u, 0x1111u, 0x2222u, 0x3333u)
PERMUTE(prmt_ecl, 0x3210u, 0x3211u, 0x3222u, 0x3333u)
PERMUTE(prmt_ecr, 0x0000u, 0x1110u, 0x2210u, 0x3210u)
PERMUTE(prmt_rc16, 0x1010u, 0x3232u, 0x1010u, 0x3232u)

#define U8(x, k)  ((int32_t)((x) >> (8 * (k)) & 0xffu))
#define S8(x, k)  ((int32_t)(int8_t)((x) >> (8 * (k)) & 0xffu))
#define U16(x, k) ((int32_t)((x) >> (16 * (k)) & 0xffffu))
#define S16(x, k) ((int32_t)(int16_t)((x) >> (16 * (k)) & 0xffffu))
#define DOT4(id, A, B)                                                       \
  KILNI_LANES_TERNARY(id, uint32_t, uint32_t, uint32_t, uint32_t,            \
                      c + (uint32_t)(A(a, 0) * B(b, 0) + A(a, 1) * B(b, 1) + \
                                     A(a, 2) * B(b, 2) + A(a, 3) * B(b, 3)))
#define DOT2(id, A, B, k)                         \
  KILNI_LANES_TERNARY(                            \
      id, uint32_t, uint32_t, uint32_t, uint32_t, \
      c + (uint32_t)(A(a, 0) * B(b, (k)) + A(a, 1) * B(b, (k) + 1)))
DOT4(dp4a_u_u, U8, U8)
DOT4(dp4a_u_s, U8, S8)
DOT4(dp4a_s_u, S8, U8)
DOT4(dp4a_s_s, S8, S8)
DOT2(dp2a_lo_u_u, U16, U8, 0)
DOT2(dp2a_lo_u_s, U16, S8, 0)
DOT2(dp2a_lo_s_u, S16, U8, 0)
DOT2(dp2a_lo_s_s, S16, S8, 0)
DOT2(dp2a_hi_u_u, U16, U8, 2)
DOT2(dp2a_hi_u_s, U16, S8, 2)
DOT2(dp2a_hi_s_u, S16, U8, 2)
DOT2(dp2a_hi_s_s, S16, S8, 2)
