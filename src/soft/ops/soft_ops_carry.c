// SPDX-License-Identifier: Apache-2.0
//
// soft: carry chains (add.cc and its kin). Compiled once for each lane set.
//
// CC.CF of lane i is bit i of warp->carry. As on a GPU, whose subtraction adds
// the complement, it is the carry of that sum: 0 where a subtraction borrows.
#include "soft/lanes/soft_lanes_wide.h"

// `term` is what is added to c (a*b, say) or subtracted from; it sees a, b and
// c. `in` is 1 where the carry goes in, `out` where it is written.
#define CHAIN(id, T, add, term, other, in, out)                              \
  KILNI_SOFT_HANDLER(id) {                                                   \
    const T* pa = KILNI_LANES_AT(T, instr->a);                               \
    const T* pb = KILNI_LANES_AT(T, instr->b);                               \
    const T* pc = KILNI_LANES_AT(T, (add) == 2 ? instr->c : instr->b);       \
    uint32_t exec = kilni_soft_exec(warp, instr);                            \
    uint32_t before = !(in) ? 0 : (add) ? warp->carry : ~warp->carry;        \
    T r[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;                               \
    uint32_t t[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;                        \
    KILNI_LANES_EACH(i) {                                                    \
      T a = pa[i];                                                           \
      T b = pb[i];                                                           \
      T c = pc[i];                                                           \
      T cin = before & kilni_soft_lanes_bit32[i] ? 1u : 0u;                  \
      T x = (term);                                                          \
      T y = (other);                                                         \
      T sum = (add) ? x + y : x - y;                                         \
      T all = (add) ? sum + cin : sum - cin;                                 \
      uint32_t over = (add) ? (uint32_t)(sum < x) | (uint32_t)(all < sum)    \
                            : (uint32_t)(x < y) | (uint32_t)(sum < cin);     \
      r[i] = all;                                                            \
      t[i] = (add) ? 0u - over : over - 1;                                   \
      (void)a, (void)b, (void)c;                                             \
    }                                                                        \
    kilni_soft_lanes_store(KILNI_LANES_AT(T, instr->d), r, exec, sizeof(T)); \
    if (out) {                                                               \
      uint32_t after = kilni_soft_lanes_mask((const int32_t*)t);             \
      warp->carry = (warp->carry & ~exec) | (after & exec);                  \
    }                                                                        \
    return instr + 1;                                                        \
  }

#define CHAINS(w, T, hu, hs)                      \
  CHAIN(add_cc_b##w, T, 1, a, b, 0, 1)            \
  CHAIN(addc_b##w, T, 1, a, b, 1, 0)              \
  CHAIN(addc_cc_b##w, T, 1, a, b, 1, 1)           \
  CHAIN(sub_cc_b##w, T, 0, a, b, 0, 1)            \
  CHAIN(subc_b##w, T, 0, a, b, 1, 0)              \
  CHAIN(subc_cc_b##w, T, 0, a, b, 1, 1)           \
  CHAIN(mad_lo_cc_b##w, T, 2, (a * b), c, 0, 1)   \
  CHAIN(madc_lo_b##w, T, 2, (a * b), c, 1, 0)     \
  CHAIN(madc_lo_cc_b##w, T, 2, (a * b), c, 1, 1)  \
  CHAIN(mad_hi_cc_u##w, T, 2, hu(a, b), c, 0, 1)  \
  CHAIN(madc_hi_u##w, T, 2, hu(a, b), c, 1, 0)    \
  CHAIN(madc_hi_cc_u##w, T, 2, hu(a, b), c, 1, 1) \
  CHAIN(mad_hi_cc_s##w, T, 2, hs(a, b), c, 0, 1)  \
  CHAIN(madc_hi_s##w, T, 2, hs(a, b), c, 1, 0)    \
  CHAIN(madc_hi_cc_s##w, T, 2, hs(a, b), c, 1, 1)

CHAINS(32, uint32_t, high_u32, high_s32)
CHAINS(64, uint64_t, high_u64, high_s64)
