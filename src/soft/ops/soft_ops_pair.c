// SPDX-License-Identifier: Apache-2.0
//
// soft: two operations as one, where the value between them is read once
// (soft_combine.c). Compiled once for each lane set.
//
// Each computes exactly what its two operations would: floats are rounded
// twice, since nothing here is contracted, and a NaN between the two comes out
// as the same canonical NaN.
#include "soft/lanes/soft_lanes_float.h"

#define THREE(id, T, expr) KILNI_LANES_TERNARY(id, T, T, T, T, expr)

// Integers.
#define SHIFTED(a, b, bits) ((b) < (bits) ? (a) << ((b) & ((bits) - 1)) : 0)
THREE(shl_add_b32, uint32_t, SHIFTED(a, b, 32) + c)
THREE(add_add_b32, uint32_t, a + b + c)
KILNI_LANES_TERNARY(shl_add_b64, uint64_t, uint64_t, uint32_t, uint64_t,
                    SHIFTED(a, b, 64) + c)
THREE(add_add_b64, uint64_t, a + b + c)
KILNI_LANES_BINARY(add_wide_s32, uint64_t, int32_t, uint64_t,
                   (uint64_t)(int64_t)a + b)
KILNI_LANES_BINARY(add_wide_u32, uint64_t, uint32_t, uint64_t, a + b)

// Floats.
THREE(mul_add_f32, float, canonical32(a * b + c))
THREE(mul_sub_f32, float, canonical32(a * b - c))
THREE(sub_mul_f32, float, canonical32(c - a * b))
THREE(mul_mul_f32, float, canonical32(a * b * c))
THREE(add_add_f32, float, canonical32(a + b + c))
THREE(add_mul_f32, float, canonical32((a + b) * c))
THREE(diff_add_f32, float, canonical32((a - b) + c))
THREE(diff_mul_f32, float, canonical32((a - b) * c))

// A sum, the compare that reads it first, and the branch after that: `instr`,
// the instructions after it stay as they are.
#define SUM_BRANCH(id, T, add, expr)                                   \
  KILNI_SOFT_HANDLER(setp_##id##_sum_branch) {                         \
    const T* pa = KILNI_LANES_AT(T, instr->a);                         \
    const T* pb = KILNI_LANES_AT(T, instr->b);                         \
    T r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;                         \
    int32_t t[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;                   \
    KILNI_LANES_EACH(i) {                                              \
      r[i] = add(pa[i], pb[i]);                                        \
    }                                                                  \
    kilni_soft_lanes_store(KILNI_LANES_AT(T, instr->d), r, warp->mask, \
                           sizeof(T));                                 \
    const T* other = KILNI_LANES_AT(T, instr[1].b);                    \
    KILNI_LANES_EACH(i) {                                              \
      T a = r[i];                                                      \
      T b = other[i];                                                  \
      t[i] = -(int32_t)(expr);                                         \
    }                                                                  \
    kilni_soft_set_pred(warp, instr[1].d, warp->mask,                  \
                        kilni_soft_lanes_mask(t));                     \
    return kilni_soft_branch(warp, instr + 2,                          \
                             kilni_soft_exec(warp, instr + 2));        \
  }
#define ADD_INT(a, b)              ((uint32_t)(a) + (uint32_t)(b))
#define ADD_FLOAT(a, b)            canonical32((a) + (b))
#define INT_SUM_BRANCH(id, T, op)  SUM_BRANCH(id, T, (T)ADD_INT, a op b)
#define FLOAT_SUM_BRANCH(id, expr) SUM_BRANCH(id, float, ADD_FLOAT, expr)
INT_SUM_BRANCH(eq_b32, uint32_t, ==)
INT_SUM_BRANCH(ne_b32, uint32_t, !=)
INT_SUM_BRANCH(lt_s32, int32_t, <)
INT_SUM_BRANCH(le_s32, int32_t, <=)
INT_SUM_BRANCH(gt_s32, int32_t, >)
INT_SUM_BRANCH(ge_s32, int32_t, >=)
INT_SUM_BRANCH(lt_u32, uint32_t, <)
INT_SUM_BRANCH(le_u32, uint32_t, <=)
INT_SUM_BRANCH(gt_u32, uint32_t, >)
INT_SUM_BRANCH(ge_u32, uint32_t, >=)
FLOAT_SUM_BRANCH(lt_f32, a < b)
FLOAT_SUM_BRANCH(le_f32, a <= b)
FLOAT_SUM_BRANCH(gt_f32, a > b)
FLOAT_SUM_BRANCH(ge_f32, a >= b)
FLOAT_SUM_BRANCH(ltu_f32, !(a >= b))
FLOAT_SUM_BRANCH(leu_f32, !(a > b))
FLOAT_SUM_BRANCH(gtu_f32, !(a <= b))
FLOAT_SUM_BRANCH(geu_f32, !(a < b))
