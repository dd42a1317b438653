// SPDX-License-Identifier: Apache-2.0
//
// soft: the masks of all compares, for setp, set and the fused branch.
#ifndef KILN_SRC_SOFT_LANES_SOFT_LANES_COMPARE_H_
#define KILN_SRC_SOFT_LANES_SOFT_LANES_COMPARE_H_

#include "soft/lanes/soft_lanes_float.h"

// Defines <name>_lanes: the mask of the lanes where `expr` is true, from the
// sources a and b.
#define KILNI_LANES_COMPARE(name, T, expr)                                    \
  KILNI_LANES_INLINE uint32_t name##_lanes(const kilni_soft_warp_t* warp,     \
                                           const kilni_soft_instr_t* instr) { \
    const T* pa = KILNI_LANES_AT(T, instr->a);                                \
    const T* pb = KILNI_LANES_AT(T, instr->b);                                \
    int32_t t[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;                          \
    KILNI_LANES_EACH(i) {                                                     \
      T a = pa[i];                                                            \
      T b = pb[i];                                                            \
      t[i] = -(int32_t)(expr);                                                \
    }                                                                         \
    return kilni_soft_lanes_mask(t);                                          \
  }

// With vector compares that give a mask the mask is had directly. `load`,
// `to_mask` and the count of lanes in a vector depend on the lane set.
#define KILNI_LANES_COMPARE_VECTOR(name, T, per, a_b_mask)                    \
  KILNI_LANES_INLINE uint32_t name##_lanes(const kilni_soft_warp_t* warp,     \
                                           const kilni_soft_instr_t* instr) { \
    const T* pa = KILNI_LANES_AT(T, instr->a);                                \
    const T* pb = KILNI_LANES_AT(T, instr->b);                                \
    uint32_t mask = 0;                                                        \
    for (int i = 0; i < KILNI_SOFT_LANES; i += (per)) {                       \
      const void* a = pa + i;                                                 \
      const void* b = pb + i;                                                 \
      mask |= (uint32_t)(a_b_mask) << i;                                      \
    }                                                                         \
    return mask;                                                              \
  }

#if defined(__AVX512F__)
#define INT_LANES(name, T, per, suffix, imm, expr)                           \
  KILNI_LANES_COMPARE_VECTOR(                                                \
      name, T, per,                                                          \
      _mm512_cmp_##suffix##_mask(_mm512_load_si512(a), _mm512_load_si512(b), \
                                 _MM_CMPINT_##imm))
#define F32_LANES(name, imm, expr) \
  KILNI_LANES_COMPARE_VECTOR(      \
      name##_f32, float, 16,       \
      _mm512_cmp_ps_mask(_mm512_load_ps(a), _mm512_load_ps(b), imm))
#define F64_LANES(name, imm, expr) \
  KILNI_LANES_COMPARE_VECTOR(      \
      name##_f64, double, 8,       \
      _mm512_cmp_pd_mask(_mm512_load_pd(a), _mm512_load_pd(b), imm))
#elif defined(__AVX2__)
#define INT_LANES(name, T, per, suffix, imm, expr) \
  KILNI_LANES_COMPARE(name, T, expr)
#define F32_LANES(name, imm, expr)                             \
  KILNI_LANES_COMPARE_VECTOR(name##_f32, float, 8,             \
                             _mm256_movemask_ps(_mm256_cmp_ps( \
                                 _mm256_load_ps(a), _mm256_load_ps(b), imm)))
#define F64_LANES(name, imm, expr)                             \
  KILNI_LANES_COMPARE_VECTOR(name##_f64, double, 4,            \
                             _mm256_movemask_pd(_mm256_cmp_pd( \
                                 _mm256_load_pd(a), _mm256_load_pd(b), imm)))
#else
#define INT_LANES(name, T, per, suffix, imm, expr) \
  KILNI_LANES_COMPARE(name, T, expr)
#define F32_LANES(name, imm, expr) KILNI_LANES_COMPARE(name##_f32, float, expr)
#define F64_LANES(name, imm, expr) KILNI_LANES_COMPARE(name##_f64, double, expr)
#endif

#define ORDERED_INTS(OP, imm, op)                       \
  INT_LANES(OP##_s32, int32_t, 16, epi32, imm, a op b)  \
  INT_LANES(OP##_u32, uint32_t, 16, epu32, imm, a op b) \
  INT_LANES(OP##_s64, int64_t, 8, epi64, imm, a op b)   \
  INT_LANES(OP##_u64, uint64_t, 8, epu64, imm, a op b)  \
  KILNI_LANES_COMPARE(OP##_s16, uint32_t, (int16_t)a op(int16_t) b)
INT_LANES(eq_b32, uint32_t, 16, epu32, EQ, a == b)
INT_LANES(ne_b32, uint32_t, 16, epu32, NE, a != b)
INT_LANES(eq_b64, uint64_t, 8, epu64, EQ, a == b)
INT_LANES(ne_b64, uint64_t, 8, epu64, NE, a != b)
ORDERED_INTS(lt, LT, <)
ORDERED_INTS(le, LE, <=)
ORDERED_INTS(gt, NLE, >)
ORDERED_INTS(ge, NLT, >=)

// The compares that end in u are true for a NaN too.
#define FLOATS(OP, imm, expr) \
  F32_LANES(OP, imm, expr)    \
  F64_LANES(OP, imm, expr)
FLOATS(eq, _CMP_EQ_OQ, a == b)
FLOATS(ne, _CMP_NEQ_OQ, ((a < b) | (a > b)))
FLOATS(lt, _CMP_LT_OQ, a < b)
FLOATS(le, _CMP_LE_OQ, a <= b)
FLOATS(gt, _CMP_GT_OQ, a > b)
FLOATS(ge, _CMP_GE_OQ, a >= b)
FLOATS(equ, _CMP_EQ_UQ, !((a < b) | (a > b)))
FLOATS(neu, _CMP_NEQ_UQ, a != b)
FLOATS(ltu, _CMP_NGE_UQ, !(a >= b))
FLOATS(leu, _CMP_NGT_UQ, !(a > b))
FLOATS(gtu, _CMP_NLE_UQ, !(a <= b))
FLOATS(geu, _CMP_NLT_UQ, !(a < b))
FLOATS(num, _CMP_ORD_Q, ((a == a) & (b == b)))
FLOATS(nan, _CMP_UNORD_Q, ((a != a) | (b != b)))

#define FLUSHED(OP, expr)                                 \
  KILNI_LANES_INLINE int OP##_flushed(float a, float b) { \
    return (expr);                                        \
  }                                                       \
  KILNI_LANES_COMPARE(OP##_ftz_f32, float, OP##_flushed(flush32(a), flush32(b)))
FLUSHED(eq, a == b)
FLUSHED(ne, (a < b) | (a > b))
FLUSHED(lt, a < b)
FLUSHED(le, a <= b)
FLUSHED(gt, a > b)
FLUSHED(ge, a >= b)
FLUSHED(equ, !((a < b) | (a > b)))
FLUSHED(neu, a != b)
FLUSHED(ltu, !(a >= b))
FLUSHED(leu, !(a > b))
FLUSHED(gtu, !(a <= b))
FLUSHED(geu, !(a < b))
FLUSHED(num, (a == a) & (b == b))
FLUSHED(nan, (a != a) | (b != b))

// Every compare by name, for macros that make a handler of each.
// clang-format off
#define KILNI_LANES_ORDERED_COMPARES(X, type) \
  X(lt##type) X(le##type) X(gt##type) X(ge##type)
#define KILNI_LANES_FLOAT_COMPARES(X, type)                        \
  X(eq##type)                                                      \
  X(ne##type)                                                      \
  KILNI_LANES_ORDERED_COMPARES(X, type)                            \
  X(equ##type) X(neu##type) X(ltu##type) X(leu##type) X(gtu##type) \
      X(geu##type) X(num##type) X(nan##type)
// All but those of 16 bits.
#define KILNI_LANES_WIDE_COMPARES(X)       \
  X(eq_b32) X(ne_b32) X(eq_b64) X(ne_b64)  \
  KILNI_LANES_ORDERED_COMPARES(X, _s32)    \
  KILNI_LANES_ORDERED_COMPARES(X, _u32)    \
  KILNI_LANES_ORDERED_COMPARES(X, _s64)    \
  KILNI_LANES_ORDERED_COMPARES(X, _u64)    \
  KILNI_LANES_FLOAT_COMPARES(X, _f32)      \
  KILNI_LANES_FLOAT_COMPARES(X, _ftz_f32)  \
  KILNI_LANES_FLOAT_COMPARES(X, _f64)
// clang-format on

#endif  // KILN_SRC_SOFT_LANES_SOFT_LANES_COMPARE_H_
