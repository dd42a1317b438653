// SPDX-License-Identifier: Apache-2.0
//
// soft: the video instructions, on one number, or on two or four in a word,
// and cvt.pack. Compiled once for each lane set.
#include "soft/code/soft_video.h"
#include "soft/lanes/soft_lanes.h"

KILNI_LANES_INLINE int32_t ops_video_part(uint32_t x, uint32_t at,
                                          uint32_t bits, bool is_signed) {
  uint32_t value = x >> at & ((1u << bits) - 1u);
  uint32_t sign = is_signed ? 1u << (bits - 1) : 0;
  return (int32_t)(value ^ sign) - (int32_t)sign;
}

KILNI_LANES_INLINE int32_t ops_video_act(uint32_t action, int32_t a,
                                         int32_t b) {
  switch (action) {
    case KILNI_SOFT_VIDEO_ADD:
      return a + b;
    case KILNI_SOFT_VIDEO_SUB:
      return a - b;
    case KILNI_SOFT_VIDEO_ABSDIFF:
      return a > b ? a - b : b - a;
    case KILNI_SOFT_VIDEO_MIN:
      return a < b ? a : b;
    case KILNI_SOFT_VIDEO_MAX:
      return a > b ? a : b;
    case KILNI_SOFT_VIDEO_EQ:
      return a == b;
    case KILNI_SOFT_VIDEO_NE:
      return a != b;
    case KILNI_SOFT_VIDEO_LT:
      return a < b;
    case KILNI_SOFT_VIDEO_LE:
      return a <= b;
    case KILNI_SOFT_VIDEO_GT:
      return a > b;
    case KILNI_SOFT_VIDEO_GE:
      return a >= b;
    default:
      return (a + b + (a + b < 0 ? 0 : 1)) >> 1;
  }
}

KILNI_LANES_INLINE int32_t ops_video_clamp(int32_t x, uint32_t bits,
                                           bool is_signed) {
  int32_t most = (int32_t)((1u << (is_signed ? bits - 1 : bits)) - 1u);
  int32_t least = is_signed ? -most - 1 : 0;
  return x < least ? least : x > most ? most : x;
}

KILNI_LANES_INLINE uint32_t in_parts(uint32_t aux, uint32_t a, uint32_t b,
                                     uint32_t c) {
  uint32_t bits = KILNI_SOFT_VIDEO_BITS(aux);
  uint32_t mask = (1u << bits) - 1u;
  uint32_t left = KILNI_SOFT_VIDEO_LEFT(aux);
  uint32_t sum = c;
  uint32_t out = 0;
  for (uint32_t at = 0; at < 32; at += bits, left >>= 1) {
    int32_t x = ops_video_act(
        KILNI_SOFT_VIDEO_ACTION(aux),
        ops_video_part(a, at, bits, aux & KILNI_SOFT_VIDEO_SIGNED_A),
        ops_video_part(b, at, bits, aux & KILNI_SOFT_VIDEO_SIGNED_B));
    if (aux & KILNI_SOFT_VIDEO_SAT) {
      x = ops_video_clamp(x, bits, aux & KILNI_SOFT_VIDEO_SIGNED_D);
    }
    sum += left & 1u ? 0 : (uint32_t)x;
    out |= left & 1u ? c & mask << at : ((uint32_t)x & mask) << at;
  }
  return aux & KILNI_SOFT_VIDEO_SUM ? sum : out;
}

// `d`, `a`, `b`, `c`: slots.
KILNI_SOFT_HANDLER(video) {
  const uint32_t* a = KILNI_LANES_AT(const uint32_t, instr->a);
  const uint32_t* b = KILNI_LANES_AT(const uint32_t, instr->b);
  const uint32_t* c = KILNI_LANES_AT(const uint32_t, instr->c);
  uint32_t aux = instr->aux;
  uint32_t bits = KILNI_SOFT_VIDEO_BITS(aux);
  uint32_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  if (KILNI_SOFT_VIDEO_ACTION(aux) == KILNI_SOFT_VIDEO_PACK) {
    uint32_t mask = (1u << bits) - 1u;
    bool is_signed = aux & KILNI_SOFT_VIDEO_SIGNED_D;
    KILNI_LANES_EACH(i) {
      uint32_t high =
          (uint32_t)ops_video_clamp((int32_t)a[i], bits, is_signed) & mask;
      uint32_t low =
          (uint32_t)ops_video_clamp((int32_t)b[i], bits, is_signed) & mask;
      uint32_t pair = high << bits | low;
      r[i] = bits == 16 ? pair : c[i] << (2 * bits) | pair;
    }
  } else {
    KILNI_LANES_EACH(i) {
      r[i] = in_parts(aux, a[i], b[i], c[i]);
    }
  }
  kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), r,
                           kilni_soft_exec(warp, instr));
  return instr + 1;
}

// ---- One number ----

// Where a part is: selectors 1 to 4 are bytes, 5 and 6 halves, 0 is all.
KILNI_LANES_INLINE uint32_t part_bits(uint32_t selector) {
  return selector == 0 ? 32 : selector < 5 ? 8 : 16;
}

KILNI_LANES_INLINE uint32_t part_at(uint32_t selector) {
  if (selector == 0) return 0;
  return selector < 5 ? (selector - 1) * 8 : (selector - 5) * 16;
}

KILNI_LANES_INLINE int64_t wide(uint32_t x, bool is_signed) {
  return is_signed ? (int64_t)(int32_t)x : (int64_t)x;
}

KILNI_LANES_INLINE int64_t part_of(uint32_t x, uint32_t selector,
                                   bool is_signed) {
  if (selector == 0) return wide(x, is_signed);
  return ops_video_part(x, part_at(selector), part_bits(selector), is_signed);
}

KILNI_LANES_INLINE int64_t clamp_wide(int64_t x, uint32_t bits,
                                      bool is_signed) {
  int64_t most = ((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1;
  int64_t least = is_signed ? -most - 1 : 0;
  return x < least ? least : x > most ? most : x;
}

KILNI_LANES_INLINE int64_t act_wide(uint32_t aux, int64_t a, int64_t b) {
  int64_t count = aux & KILNI_SOFT_VIDEO_WRAP ? b & 31 : b > 32 ? 32 : b;
  switch (KILNI_SOFT_VIDEO_ACTION(aux)) {
    case KILNI_SOFT_VIDEO_ADD:
      return a + b;
    case KILNI_SOFT_VIDEO_SUB:
      return a - b;
    case KILNI_SOFT_VIDEO_ABSDIFF:
      return a > b ? a - b : b - a;
    case KILNI_SOFT_VIDEO_MIN:
      return a < b ? a : b;
    case KILNI_SOFT_VIDEO_MAX:
      return a > b ? a : b;
    case KILNI_SOFT_VIDEO_EQ:
      return a == b;
    case KILNI_SOFT_VIDEO_NE:
      return a != b;
    case KILNI_SOFT_VIDEO_LT:
      return a < b;
    case KILNI_SOFT_VIDEO_LE:
      return a <= b;
    case KILNI_SOFT_VIDEO_GT:
      return a > b;
    case KILNI_SOFT_VIDEO_GE:
      return a >= b;
    case KILNI_SOFT_VIDEO_SHL:
      return (int64_t)((uint64_t)a << count);
    default:
      return a >> count;
  }
}

// How far a result is clamped, as ptxas implements `.sat` (an H200 agrees; PTX
// specifies otherwise): a part of d takes what is not in 32 bits, and what is
// below zero, as too much; an unsigned word is only kept from being below zero,
// but for shifts, of which 34 bits count and no part is clamped.
KILNI_LANES_INLINE int64_t saturate_one(uint32_t aux, int64_t x) {
  bool is_signed = aux & KILNI_SOFT_VIDEO_SIGNED_D;
  uint32_t bits = part_bits(KILNI_SOFT_VIDEO_PART_D(aux));
  if (KILNI_SOFT_VIDEO_ACTION(aux) >= KILNI_SOFT_VIDEO_SHL) {
    int64_t cut = (int64_t)((uint64_t)x << 30) >> 30;
    return (int32_t)clamp_wide(cut, 32, is_signed);
  }
  if (bits < 32) {
    uint64_t most = (1u << (is_signed ? bits - 1 : bits)) - 1;
    return (int64_t)((uint64_t)x > most ? most : (uint64_t)x);
  }
  if (is_signed) return clamp_wide(x, 32, true);
  return x < 0 ? 0 : x;
}

// What c does with `x`: sums and differences are numbers of 32 bits with a
// sign to a secondary minimum or maximum, the others keep what is above.
KILNI_LANES_INLINE uint32_t join_c(uint32_t aux, int64_t x, uint32_t c) {
  uint32_t action = KILNI_SOFT_VIDEO_ACTION(aux);
  bool compares =
      action >= KILNI_SOFT_VIDEO_EQ && action <= KILNI_SOFT_VIDEO_GE;
  bool is_signed =
      aux & (compares ? KILNI_SOFT_VIDEO_SIGNED_A : KILNI_SOFT_VIDEO_SIGNED_D);
  int64_t with = wide(c, is_signed);
  if (aux & KILNI_SOFT_VIDEO_SUM) return (uint32_t)x + c;
  if (action <= KILNI_SOFT_VIDEO_SUB) x = (int32_t)(uint32_t)x;
  bool less = is_signed ? x < with : (uint64_t)x < (uint64_t)with;
  if (aux & KILNI_SOFT_VIDEO_LEAST) return less ? (uint32_t)x : c;
  if (aux & KILNI_SOFT_VIDEO_MOST) return less ? c : (uint32_t)x;
  return (uint32_t)x;
}

// `d`, `a`, `b`, `c`: slots. The upper half of d is the result's upper half:
// ptxas chooses those bytes, PTX the lower ones.
KILNI_SOFT_HANDLER(video_one) {
  const uint32_t* a = KILNI_LANES_AT(const uint32_t, instr->a);
  const uint32_t* b = KILNI_LANES_AT(const uint32_t, instr->b);
  const uint32_t* c = KILNI_LANES_AT(const uint32_t, instr->c);
  uint32_t aux = instr->aux;
  uint32_t part_d = KILNI_SOFT_VIDEO_PART_D(aux);
  uint32_t bits = part_bits(part_d);
  uint32_t mask = 0xffffffffu >> (32 - bits) << part_at(part_d);
  uint32_t up = bits == 16 ? 0 : part_at(part_d);
  uint32_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  KILNI_LANES_EACH(i) {
    int64_t x = act_wide(aux,
                         part_of(a[i], KILNI_SOFT_VIDEO_PART_A(aux),
                                 aux & KILNI_SOFT_VIDEO_SIGNED_A),
                         part_of(b[i], KILNI_SOFT_VIDEO_PART_B(aux),
                                 aux & KILNI_SOFT_VIDEO_SIGNED_B));
    if (aux & KILNI_SOFT_VIDEO_SAT) x = saturate_one(aux, x);
    r[i] = (join_c(aux, x, c[i]) << up & mask) | (c[i] & ~mask);
  }
  kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), r,
                           kilni_soft_exec(warp, instr));
  return instr + 1;
}

// Whole words are multiplied and c is added as signed numbers, whatever their
// types: ptxas does so, and it shows where the sum is shifted or clamped.
KILNI_LANES_INLINE uint32_t mad_one(uint32_t aux, int64_t a, int64_t b,
                                    uint32_t c) {
  bool is_signed = aux & KILNI_SOFT_VIDEO_SIGNED_D;
  uint32_t shift = aux & KILNI_SOFT_VIDEO_SHR15  ? 15
                   : aux & KILNI_SOFT_VIDEO_SHR7 ? 7
                                                 : 0;
  uint64_t sum = (uint64_t)((int64_t)(int32_t)a * (int32_t)b);
  uint64_t with = (uint64_t)wide(c, true);
  if (aux & KILNI_SOFT_VIDEO_MINUS_PRODUCT) sum = 0 - sum;
  if (aux & KILNI_SOFT_VIDEO_MINUS_C) with = 0 - with;
  sum += with + (aux & KILNI_SOFT_VIDEO_PLUS_ONE ? 1 : 0);
  sum = is_signed ? (uint64_t)((int64_t)sum >> shift) : sum >> shift;
  if (aux & KILNI_SOFT_VIDEO_SAT) {
    sum = (uint64_t)clamp_wide((int64_t)sum, 32, is_signed);
  }
  return (uint32_t)sum;
}

// `d`, `a`, `b`, `c`: slots.
KILNI_SOFT_HANDLER(video_mad) {
  const uint32_t* a = KILNI_LANES_AT(const uint32_t, instr->a);
  const uint32_t* b = KILNI_LANES_AT(const uint32_t, instr->b);
  const uint32_t* c = KILNI_LANES_AT(const uint32_t, instr->c);
  uint32_t aux = instr->aux;
  uint32_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  KILNI_LANES_EACH(i) {
    r[i] = mad_one(aux,
                   part_of(a[i], KILNI_SOFT_VIDEO_PART_A(aux),
                           aux & KILNI_SOFT_VIDEO_SIGNED_A),
                   part_of(b[i], KILNI_SOFT_VIDEO_PART_B(aux),
                           aux & KILNI_SOFT_VIDEO_SIGNED_B),
                   c[i]);
  }
  kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), r,
                           kilni_soft_exec(warp, instr));
  return instr + 1;
}
