// SPDX-License-Identifier: Apache-2.0
//
// soft: two or four numbers in a word: the video instructions that work on all
// of them, and cvt.pack. Compiled once for each lane set.
#include "soft/code/soft_video.h"
#include "soft/lanes/soft_lanes.h"

KILNI_LANES_INLINE int32_t part(uint32_t x, uint32_t at, uint32_t bits,
                                bool is_signed) {
  uint32_t value = x >> at & ((1u << bits) - 1u);
  uint32_t sign = is_signed ? 1u << (bits - 1) : 0;
  return (int32_t)(value ^ sign) - (int32_t)sign;
}

KILNI_LANES_INLINE int32_t act(uint32_t action, int32_t a, int32_t b) {
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
    default:
      return (a + b + (a + b < 0 ? 0 : 1)) >> 1;
  }
}

KILNI_LANES_INLINE int32_t clamp(int32_t x, uint32_t bits, bool is_signed) {
  int32_t most = (int32_t)((1u << (is_signed ? bits - 1 : bits)) - 1u);
  int32_t least = is_signed ? -most - 1 : 0;
  return x < least ? least : x > most ? most : x;
}

// `d`, `a`, `b`, `c`: slots.
KILNI_SOFT_HANDLER(video) {
  const uint32_t* a = KILNI_LANES_AT(const uint32_t, instr->a);
  const uint32_t* b = KILNI_LANES_AT(const uint32_t, instr->b);
  const uint32_t* c = KILNI_LANES_AT(const uint32_t, instr->c);
  uint32_t aux = instr->aux;
  uint32_t bits = KILNI_SOFT_VIDEO_BITS(aux);
  uint32_t mask = (1u << bits) - 1u;
  bool is_signed = aux & KILNI_SOFT_VIDEO_SIGNED_D;
  uint32_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  if (KILNI_SOFT_VIDEO_ACTION(aux) == KILNI_SOFT_VIDEO_PACK) {
    KILNI_LANES_EACH(i) {
      uint32_t high = (uint32_t)clamp((int32_t)a[i], bits, is_signed) & mask;
      uint32_t low = (uint32_t)clamp((int32_t)b[i], bits, is_signed) & mask;
      uint32_t pair = high << bits | low;
      r[i] = bits == 16 ? pair : c[i] << (2 * bits) | pair;
    }
  } else {
    KILNI_LANES_EACH(i) {
      uint32_t sum = c[i];
      uint32_t out = 0;
      for (uint32_t at = 0; at < 32; at += bits) {
        int32_t x = act(KILNI_SOFT_VIDEO_ACTION(aux),
                        part(a[i], at, bits, aux & KILNI_SOFT_VIDEO_SIGNED_A),
                        part(b[i], at, bits, aux & KILNI_SOFT_VIDEO_SIGNED_B));
        if (aux & KILNI_SOFT_VIDEO_SAT) x = clamp(x, bits, is_signed);
        sum += (uint32_t)x;
        out |= ((uint32_t)x & mask) << at;
      }
      r[i] = aux & KILNI_SOFT_VIDEO_SUM ? sum : out;
    }
  }
  kilni_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), r,
                      kilni_soft_exec(warp, instr));
  return instr + 1;
}
