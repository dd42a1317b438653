// SPDX-License-Identifier: Apache-2.0
//
// soft: the lane layer: how a handler reads, computes and writes 32 lanes.
//
// Every file with handlers is compiled once for each lane set, with KILNI_LANES
// naming the set (src/soft/CMakeLists.txt). A handler computes all 32 lanes
// into local arrays, which the compiler keeps in vector registers, and then
// stores them: straight when every lane executes, through the mask otherwise.
// So a destination may overlap a source in any way, and what an unselected lane
// computes is discarded: it must not trap, and may be anything.
#ifndef KILN_SRC_SOFT_LANES_SOFT_LANES_H_
#define KILN_SRC_SOFT_LANES_SOFT_LANES_H_

#include <stdint.h>

#include "soft/code/soft_engine.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#ifndef KILNI_LANES
#error "compile handler files with kiln_soft_handlers() (KILNI_LANES unset)"
#endif

#define KILNI_LANES_PASTE(set, id) kilni_soft_##set##_##id
#define KILNI_LANES_JOIN(set, id)  KILNI_LANES_PASTE(set, id)
// The name of a handler, or of anything else that each lane set has its own of.
#define KILNI_LANES_NAME(id) KILNI_LANES_JOIN(KILNI_LANES, id)

// Opens the definition of a handler; `warp` and `instr` are in scope.
#define KILNI_SOFT_HANDLER(id)                    \
  const kilni_soft_instr_t* KILNI_LANES_NAME(id)( \
      kilni_soft_warp_t * warp, const kilni_soft_instr_t* instr)

// All handlers of this lane set.
#define KILNI_SOFT_OP(id, family, signature, forms) KILNI_SOFT_HANDLER(id);
#include "soft/code/soft_ops_alu.inc"
#include "soft/code/soft_ops_core.inc"
#undef KILNI_SOFT_OP
#define KILNI_SOFT_FUSED(id)     KILNI_SOFT_HANDLER(id##_branch);
#define KILNI_SOFT_FUSED_SUM(id) KILNI_SOFT_HANDLER(id##_sum_branch);
#include "soft/code/soft_ops_fused.inc"
#undef KILNI_SOFT_FUSED_SUM
#undef KILNI_SOFT_FUSED

// Bytes of a vector register of this lane set.
#if defined(__AVX512F__)
#define KILNI_LANES_BYTES 64
#elif defined(__AVX2__)
#define KILNI_LANES_BYTES 32
#else
#define KILNI_LANES_BYTES 16
#endif

#define KILNI_LANES_ALIGNED __attribute__((aligned(64)))
#define KILNI_LANES_INLINE  static inline __attribute__((always_inline, unused))

// A vector register, for moving lanes and nothing else.
typedef uint32_t kilni_soft_lanes_chunk_t
    __attribute__((vector_size(KILNI_LANES_BYTES), may_alias));

// A bit per lane, in the width of the lanes that it selects from: `mask &
// bit[i]` is a vector operation on every lane set, a variable shift is not.
#define KILNI_LANES_BITS4(b) 1u << (b), 2u << (b), 4u << (b), 8u << (b)
#define KILNI_LANES_BITS                                                \
  {KILNI_LANES_BITS4(0),  KILNI_LANES_BITS4(4),  KILNI_LANES_BITS4(8),  \
   KILNI_LANES_BITS4(12), KILNI_LANES_BITS4(16), KILNI_LANES_BITS4(20), \
   KILNI_LANES_BITS4(24), KILNI_LANES_BITS4(28)}
static const uint32_t
    kilni_soft_lanes_bit32[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED
    __attribute__((unused)) = KILNI_LANES_BITS;
static const uint64_t
    kilni_soft_lanes_bit64[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED
    __attribute__((unused)) = KILNI_LANES_BITS;

// Left alone, clang unrolls 32 lanes of 256-bit vectors before it looks for
// vectors, and half of them stay narrow.
#if defined(__clang__) && defined(__AVX2__) && !defined(__AVX512F__)
#define KILNI_LANES_VECTORS \
  _Pragma("clang loop vectorize(enable) interleave_count(4) unroll(disable)")
#else
#define KILNI_LANES_VECTORS
#endif

#define KILNI_LANES_EACH(i) \
  KILNI_LANES_VECTORS       \
  for (unsigned i = 0; i < (unsigned)KILNI_SOFT_LANES; i++)

// The slot of operand `word` as an array of `type`.
#define KILNI_LANES_AT(type, word) \
  ((type*)__builtin_assume_aligned(kilni_soft_slot(warp, (word)), 64))

// Copies the lanes of `exec` from `from` to the slot `to`.
KILNI_LANES_INLINE void kilni_soft_lanes_store32(void* to, const void* from,
                                                 uint32_t exec) {
  if (__builtin_expect(exec == KILNI_SOFT_FULL_MASK, 1)) {
    kilni_soft_lanes_chunk_t* d = to;
    const kilni_soft_lanes_chunk_t* s = from;
    for (int i = 0; i < KILNI_SOFT_SLOT32_BYTES / KILNI_LANES_BYTES; i++) {
      d[i] = s[i];
    }
    return;
  }
#if defined(__AVX512F__)
  _mm512_mask_store_epi32(to, (__mmask16)exec, _mm512_load_si512(from));
  _mm512_mask_store_epi32((char*)to + 64, (__mmask16)(exec >> 16),
                          _mm512_load_si512((const char*)from + 64));
#else
  uint32_t* d = __builtin_assume_aligned(to, 64);
  const uint32_t* s = __builtin_assume_aligned(from, 64);
  KILNI_LANES_EACH(i) {
    uint32_t old = d[i];
    uint32_t value = s[i];
    d[i] = exec & kilni_soft_lanes_bit32[i] ? value : old;
  }
#endif
}

KILNI_LANES_INLINE void kilni_soft_lanes_store64(void* to, const void* from,
                                                 uint32_t exec) {
  if (__builtin_expect(exec == KILNI_SOFT_FULL_MASK, 1)) {
    kilni_soft_lanes_chunk_t* d = to;
    const kilni_soft_lanes_chunk_t* s = from;
    for (int i = 0; i < KILNI_SOFT_SLOT64_BYTES / KILNI_LANES_BYTES; i++) {
      d[i] = s[i];
    }
    return;
  }
#if defined(__AVX512F__)
  for (int i = 0; i < 4; i++) {
    _mm512_mask_store_epi64((char*)to + 64 * i, (__mmask8)(exec >> (8 * i)),
                            _mm512_load_si512((const char*)from + 64 * i));
  }
#else
  uint64_t* d = __builtin_assume_aligned(to, 64);
  const uint64_t* s = __builtin_assume_aligned(from, 64);
  uint64_t mask = exec;
  KILNI_LANES_EACH(i) {
    uint64_t old = d[i];
    uint64_t value = s[i];
    d[i] = mask & kilni_soft_lanes_bit64[i] ? value : old;
  }
#endif
}

KILNI_LANES_INLINE void kilni_soft_lanes_store(void* to, const void* from,
                                               uint32_t exec,
                                               unsigned lane_bytes) {
  if (lane_bytes == 8) {
    kilni_soft_lanes_store64(to, from, exec);
  } else {
    kilni_soft_lanes_store32(to, from, exec);
  }
}

// The mask of the lanes of `t` (all ones or zero each).
KILNI_LANES_INLINE uint32_t kilni_soft_lanes_mask(const int32_t* t) {
#if defined(__AVX512F__)
  return (uint32_t)_mm512_movepi32_mask(_mm512_load_si512(t)) |
         (uint32_t)_mm512_movepi32_mask(_mm512_load_si512(t + 16)) << 16;
#elif defined(__AVX2__)
  uint32_t mask = 0;
  for (int i = 0; i < 4; i++) {
    __m256 v = _mm256_load_ps((const float*)(const void*)(t + 8 * i));
    mask |= (uint32_t)_mm256_movemask_ps(v) << (8 * i);
  }
  return mask;
#elif defined(__SSE2__)
  uint32_t mask = 0;
  for (int i = 0; i < 8; i++) {
    __m128 v = _mm_load_ps((const float*)(const void*)(t + 4 * i));
    mask |= (uint32_t)_mm_movemask_ps(v) << (4 * i);
  }
  return mask;
#else
  uint32_t mask = 0;
  KILNI_LANES_EACH(i) {
    mask |= (uint32_t)t[i] & kilni_soft_lanes_bit32[i];
  }
  return mask;
#endif
}

// Rounding of a handler's float operations.
enum {
  KILNI_LANES_RN,
  KILNI_LANES_RZ,
  KILNI_LANES_RM,
  KILNI_LANES_RP,
};

#if !defined(__SSE2__)
#include <fenv.h>
#endif

// Rounds by `mode` until kilni_soft_lanes_round_end. Loads in between stay in
// between; results must go through `kilni_soft_lanes_round_end`.
KILNI_LANES_INLINE unsigned kilni_soft_lanes_round_begin(int mode) {
#if defined(__SSE2__)
  static const unsigned bits[4] = {0, 0x6000, 0x2000, 0x4000};
  unsigned old = _mm_getcsr();
  _mm_setcsr((old & ~0x6000u) | bits[mode]);
#else
  static const int bits[4] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD,
                              FE_UPWARD};
  unsigned old = (unsigned)fegetround();
  fesetround(bits[mode]);
#endif
  __asm__ volatile("" ::: "memory");
  return old;
}

KILNI_LANES_INLINE void kilni_soft_lanes_round_end(unsigned old,
                                                   const void* results) {
  // The compiler must have written the results before the mode changes.
  __asm__ volatile("" : : "r"(results) : "memory");
#if defined(__SSE2__)
  _mm_setcsr(old);
#else
  fesetround((int)old);
#endif
}

// The body of a handler: `load` declares lane `i` of the sources, `expr` is the
// value of lane `i` of the destination, rounded by `mode`.
#define KILNI_LANES_BODY(TD, mode, load, expr)                      \
  TD r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;                       \
  if ((mode) == KILNI_LANES_RN) {                                   \
    KILNI_LANES_EACH(i) {                                           \
      load;                                                         \
      r[i] = (expr);                                                \
    }                                                               \
  } else {                                                          \
    unsigned old = kilni_soft_lanes_round_begin(mode);              \
    KILNI_LANES_EACH(i) {                                           \
      load;                                                         \
      r[i] = (expr);                                                \
    }                                                               \
    kilni_soft_lanes_round_end(old, r);                             \
  }                                                                 \
  kilni_soft_lanes_store(KILNI_LANES_AT(TD, instr->d), r,           \
                         kilni_soft_exec(warp, instr), sizeof(TD)); \
  return instr + 1;

// The whole of a handler of one to four sources and one destination slot.
#define KILNI_LANES_UNARY_ROUNDED(id, mode, TD, TA, expr) \
  KILNI_SOFT_HANDLER(id) {                                \
    const TA* pa = KILNI_LANES_AT(TA, instr->a);          \
    KILNI_LANES_BODY(TD, mode, TA a = pa[i], expr)        \
  }
#define KILNI_LANES_BINARY_ROUNDED(id, mode, TD, TA, TB, expr)   \
  KILNI_SOFT_HANDLER(id) {                                       \
    const TA* pa = KILNI_LANES_AT(TA, instr->a);                 \
    const TB* pb = KILNI_LANES_AT(TB, instr->b);                 \
    KILNI_LANES_BODY(TD, mode, TA a = pa[i]; TB b = pb[i], expr) \
  }
#define KILNI_LANES_TERNARY_ROUNDED(id, mode, TD, TA, TB, TC, expr)            \
  KILNI_SOFT_HANDLER(id) {                                                     \
    const TA* pa = KILNI_LANES_AT(TA, instr->a);                               \
    const TB* pb = KILNI_LANES_AT(TB, instr->b);                               \
    const TC* pc = KILNI_LANES_AT(TC, instr->c);                               \
    KILNI_LANES_BODY(TD, mode, TA a = pa[i]; TB b = pb[i]; TC c = pc[i], expr) \
  }
#define KILNI_LANES_UNARY(id, TD, TA, expr) \
  KILNI_LANES_UNARY_ROUNDED(id, KILNI_LANES_RN, TD, TA, expr)
#define KILNI_LANES_BINARY(id, TD, TA, TB, expr) \
  KILNI_LANES_BINARY_ROUNDED(id, KILNI_LANES_RN, TD, TA, TB, expr)
#define KILNI_LANES_TERNARY(id, TD, TA, TB, TC, expr) \
  KILNI_LANES_TERNARY_ROUNDED(id, KILNI_LANES_RN, TD, TA, TB, TC, expr)
// The fourth source's slot is named by `aux`; its lanes are w.
#define KILNI_LANES_QUATERNARY(id, TD, TA, TB, TC, TW, expr)         \
  KILNI_SOFT_HANDLER(id) {                                           \
    const TA* pa = KILNI_LANES_AT(TA, instr->a);                     \
    const TB* pb = KILNI_LANES_AT(TB, instr->b);                     \
    const TC* pc = KILNI_LANES_AT(TC, instr->c);                     \
    const TW* pw = KILNI_LANES_AT(TW, instr->aux);                   \
    KILNI_LANES_BODY(TD, KILNI_LANES_RN, TA a = pa[i]; TB b = pb[i]; \
                     TC c = pc[i]; TW w = pw[i], expr)               \
  }

#endif  // KILN_SRC_SOFT_LANES_SOFT_LANES_H_
