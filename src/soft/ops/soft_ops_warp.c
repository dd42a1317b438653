// SPDX-License-Identifier: Apache-2.0
//
// soft: what lanes of a warp and warps of a block do together. Compiled once
// for each lane set.
//
// The decoder makes a branch of a guard, so the lanes of the group are those
// that execute. Each waits until every lane that its mask names is here.
#include <string.h>

#include "soft/lanes/soft_lanes.h"
#include "soft/engine/soft_warp.h"

KILNI_LANES_INLINE uint32_t first_lane(const kilni_soft_warp_t* warp) {
  return (uint32_t)__builtin_ctz(warp->mask);
}

KILNI_LANES_INLINE uint32_t ops_warp_first_of(const kilni_soft_warp_t* warp,
                                              uint32_t word) {
  return KILNI_LANES_AT(const uint32_t, word)[first_lane(warp)];
}

// The lanes whose mask is the first lane's run `instr`, the others after them.
KILNI_LANES_INLINE void part_by(kilni_soft_warp_t* warp,
                                const kilni_soft_instr_t* instr,
                                uint32_t word) {
  if (word & KILNI_SOFT_AREA_CONSTANT) return;
  kilni_soft_part(kilni_soft_run(warp), instr,
                  kilni_soft_same_lanes(warp, word));
}

// Waits for the lanes of the mask in slot `word`, or returns what runs next.
#define COLLECT(word)                                                   \
  do {                                                                  \
    const kilni_soft_instr_t* next_;                                    \
    part_by(warp, instr, (word));                                       \
    if (!kilni_soft_collect(kilni_soft_run(warp), instr,                \
                            ops_warp_first_of(warp, (word)), &next_)) { \
      return next_;                                                     \
    }                                                                   \
  } while (0)

KILNI_SOFT_HANDLER(activemask) {
  uint32_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  KILNI_LANES_EACH(i) {
    r[i] = warp->mask;
  }
  kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), r,
                           kilni_soft_exec(warp, instr));
  return instr + 1;
}

// The lane that each lane reads: itself where that one is outside its segment.
// Returns the lanes for which it is inside.
#define SOURCES(name, expr, is_inside)                                     \
  KILNI_LANES_INLINE uint32_t name(const uint32_t* pb, const uint32_t* pc, \
                                   uint32_t* out) {                        \
    int32_t t[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;                       \
    KILNI_LANES_EACH(i) {                                                  \
      uint32_t clamp = pc[i] & 31u;                                        \
      uint32_t segment = pc[i] >> 8 & 31u;                                 \
      uint32_t by = pb[i] & 31u;                                           \
      int32_t top = (int32_t)((i & segment) | (clamp & ~segment));         \
      int32_t j = (int32_t)(expr);                                         \
      t[i] = -(int32_t)(is_inside);                                        \
      out[i] = (is_inside) ? (uint32_t)j & 31u : i;                        \
    }                                                                      \
    return kilni_soft_lanes_mask(t);                                       \
  }
SOURCES(sources_up, i - by, j >= top)
SOURCES(sources_down, i + by, j <= top)
SOURCES(sources_bfly, i ^ by, j <= top)
SOURCES(sources_idx, (i & segment) | (by & ~segment), j <= top)

KILNI_LANES_INLINE void ops_warp_permute(const uint32_t* a,
                                         const uint32_t* from, uint32_t* r) {
#if defined(__AVX512F__)
  __m512i low = _mm512_load_si512(a);
  __m512i high = _mm512_load_si512(a + 16);
  for (int i = 0; i < KILNI_SOFT_LANES; i += 16) {
    __m512i at = _mm512_load_si512(from + i);
    _mm512_store_si512(r + i, _mm512_permutex2var_epi32(low, at, high));
  }
#elif defined(__AVX2__)
  for (int i = 0; i < KILNI_SOFT_LANES; i += 8) {
    __m256i at = _mm256_load_si256((const __m256i*)(const void*)(from + i));
    __m256i v = _mm256_i32gather_epi32((const int*)(const void*)a, at, 4);
    _mm256_store_si256((__m256i*)(void*)(r + i), v);
  }
#else
  KILNI_LANES_EACH(i) {
    r[i] = a[from[i]];
  }
#endif
}

// `d`, the result; `a`, the value; `b`, the lane; `c`, the clamp. A word
// instruction follows: `d`, the predicate or KILNI_SOFT_NONE; `a`, the mask.
// `aux`: the mode.
KILNI_SOFT_HANDLER(shfl) {
  COLLECT(instr[1].a);
  const uint32_t* b = KILNI_LANES_AT(const uint32_t, instr->b);
  const uint32_t* c = KILNI_LANES_AT(const uint32_t, instr->c);
  uint32_t from[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  uint32_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  uint32_t inside;
  switch (instr->aux) {
    case KILNI_SOFT_SHFL_UP:
      inside = sources_up(b, c, from);
      break;
    case KILNI_SOFT_SHFL_DOWN:
      inside = sources_down(b, c, from);
      break;
    case KILNI_SOFT_SHFL_BFLY:
      inside = sources_bfly(b, c, from);
      break;
    default:
      inside = sources_idx(b, c, from);
      break;
  }
  ops_warp_permute(KILNI_LANES_AT(const uint32_t, instr->a), from, r);
  kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), r, warp->mask);
  if (instr[1].d != KILNI_SOFT_NONE) {
    kilni_soft_set_pred(warp, instr[1].d, warp->mask, inside);
  }
  return instr + 2;
}

// `d`, a predicate or (ballot) a slot; `a`, the predicate; `b`, the mask;
// `aux`, the mode.
KILNI_SOFT_HANDLER(vote) {
  COLLECT(instr->b);
  uint32_t who = ops_warp_first_of(warp, instr->b) & warp->mask;
  uint32_t yes = kilni_soft_pred(warp, instr->a) & who;
  if (instr->aux == KILNI_SOFT_VOTE_BALLOT) {
    uint32_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
    KILNI_LANES_EACH(i) {
      r[i] = yes;
    }
    kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), r, warp->mask);
    return instr + 1;
  }
  bool result = yes == who;
  if (instr->aux == KILNI_SOFT_VOTE_ANY) result = yes != 0;
  if (instr->aux == KILNI_SOFT_VOTE_UNI) result = yes == who || yes == 0;
  kilni_soft_set_pred(warp, instr->d, warp->mask, result ? ~0u : 0u);
  return instr + 1;
}

// The lanes whose value is `value`, and in them `r` becomes that mask. The
// values are few where many lanes match, so lanes are compared value by value.
#define SAME_VALUES(name, T)                                          \
  KILNI_LANES_INLINE uint32_t name(const T* a, T value, uint32_t who, \
                                   uint32_t* r) {                     \
    int32_t t[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;                  \
    KILNI_LANES_EACH(i) {                                             \
      t[i] = -(int32_t)(a[i] == value);                               \
    }                                                                 \
    uint32_t same = kilni_soft_lanes_mask(t) & who;                   \
    KILNI_LANES_EACH(i) {                                             \
      r[i] = t[i] ? same : r[i];                                      \
    }                                                                 \
    return same;                                                      \
  }
SAME_VALUES(same_narrow, uint32_t)
SAME_VALUES(same_wide, uint64_t)

// `d`, the result; `a`, the value; `b`, the mask; `c`, the predicate of .all
// or KILNI_SOFT_NONE; `aux`: 1 for .all, 2 for 64-bit values.
KILNI_SOFT_HANDLER(match) {
  COLLECT(instr->b);
  uint32_t who = ops_warp_first_of(warp, instr->b) & warp->mask;
  const uint32_t* narrow = KILNI_LANES_AT(const uint32_t, instr->a);
  const uint64_t* wide = KILNI_LANES_AT(const uint64_t, instr->a);
  uint32_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED = {0};
  uint32_t all = 0;
  for (uint32_t left = who; left;) {
    uint32_t lane = (uint32_t)__builtin_ctz(left);
    uint32_t same = instr->aux & 2u ? same_wide(wide, wide[lane], who, r)
                                    : same_narrow(narrow, narrow[lane], who, r);
    if (same == who) all = who;
    left &= ~same;
  }
  if ((instr->aux & 1u) && !all) memset(r, 0, sizeof(r));
  kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), r, warp->mask);
  if (instr->c != KILNI_SOFT_NONE) {
    kilni_soft_set_pred(warp, instr->c, warp->mask, all);
  }
  return instr + 1;
}

KILNI_LANES_INLINE uint32_t ops_warp_reduce(uint32_t action, bool is_signed,
                                            uint32_t x, uint32_t y) {
  bool less = is_signed ? (int32_t)x < (int32_t)y : x < y;
  switch (action) {
    case KILNI_SOFT_ACTION_ADD:
      return x + y;
    case KILNI_SOFT_ACTION_MIN:
      return less ? x : y;
    case KILNI_SOFT_ACTION_MAX:
      return less ? y : x;
    case KILNI_SOFT_ACTION_AND:
      return x & y;
    case KILNI_SOFT_ACTION_OR:
      return x | y;
    default:
      return x ^ y;
  }
}

// `d`, the result; `a`, the value; `b`, the mask; `aux`: kilni_soft_action_t,
// bit 8 for signed numbers.
KILNI_SOFT_HANDLER(redux) {
  COLLECT(instr->b);
  uint32_t who = ops_warp_first_of(warp, instr->b) & warp->mask;
  const uint32_t* a = KILNI_LANES_AT(const uint32_t, instr->a);
  uint32_t value = 0;
  bool any = false;
  KILNI_LANES_EACH(i) {
    if (!(who >> i & 1u)) continue;
    value = any ? ops_warp_reduce(instr->aux & 0xffu, instr->aux >> 8 & 1u,
                                  value, a[i])
                : a[i];
    any = true;
  }
  uint32_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  KILNI_LANES_EACH(i) {
    r[i] = value;
  }
  kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), r, warp->mask);
  return instr + 1;
}

// `d`, the lane that is elected: the first; `b`, the mask; `c`, the predicate
// of whether it is this one, or KILNI_SOFT_NONE.
KILNI_SOFT_HANDLER(elect) {
  COLLECT(instr->b);
  uint32_t who = ops_warp_first_of(warp, instr->b) & warp->mask;
  uint32_t leader = who ? (uint32_t)__builtin_ctz(who) : 0;
  uint32_t r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  KILNI_LANES_EACH(i) {
    r[i] = leader;
  }
  kilni_soft_lanes_store32(KILNI_LANES_AT(uint32_t, instr->d), r, warp->mask);
  if (instr->c != KILNI_SOFT_NONE) {
    kilni_soft_set_pred(warp, instr->c, warp->mask, 1u << leader);
  }
  return instr + 1;
}

// `a`: the mask.
KILNI_SOFT_HANDLER(warp_sync) {
  part_by(warp, instr, instr->a);
  return kilni_soft_meet(kilni_soft_run(warp), instr,
                         ops_warp_first_of(warp, instr->a));
}

KILNI_SOFT_HANDLER(barrier) {
  return kilni_soft_barrier(kilni_soft_run(warp), instr);
}

KILNI_SOFT_HANDLER(cluster_barrier) {
  return kilni_soft_cluster_barrier(kilni_soft_run(warp), instr);
}
