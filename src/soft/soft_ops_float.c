// SPDX-License-Identifier: Apache-2.0
//
// soft: f32 add, sub, mul and fma in all roundings. Compiled once for each
// lane set.
#include "soft/soft_lanes_float.h"

#define KEEP(x) (x)

// The variants of one operation: `in` and `out` flush or keep, and saturate.
// Saturation makes +0 of a NaN, so it comes in place of the canonical NaN.
#define ADD(name, mode, in, out)                              \
  KILNI_LANES_BINARY_ROUNDED(name, mode, float, float, float, \
                             out(in(a) + in(b)))
#define SUB(name, mode, in, out) \
  KILNI_LANES_BINARY_ROUNDED(name, mode, float, float, float, out(in(a)-in(b)))
#define MUL(name, mode, in, out) \
  KILNI_LANES_BINARY_ROUNDED(name, mode, float, float, float, out(in(a)*in(b)))
#define FMA(name, mode, in, out)                                      \
  KILNI_LANES_TERNARY_ROUNDED(name, mode, float, float, float, float, \
                              out(fmaf(in(a), in(b), in(c))))
#define PLAIN_OUT(x)    canonical32(x)
#define FLUSH_OUT(x)    flush32(canonical32(x))
#define SAT_OUT(x)      saturate32(x)
#define FLUSHSAT_OUT(x) flush32(saturate32(x))

#define VARIANTS(OP, name, mode)               \
  OP(name##_f32, mode, KEEP, PLAIN_OUT)        \
  OP(name##_sat_f32, mode, KEEP, SAT_OUT)      \
  OP(name##_ftz_f32, mode, flush32, FLUSH_OUT) \
  OP(name##_ftz_sat_f32, mode, flush32, FLUSHSAT_OUT)
#define ROUNDINGS(OP, name)               \
  VARIANTS(OP, name, KILNI_LANES_RN)      \
  VARIANTS(OP, name##_rz, KILNI_LANES_RZ) \
  VARIANTS(OP, name##_rm, KILNI_LANES_RM) \
  VARIANTS(OP, name##_rp, KILNI_LANES_RP)

ROUNDINGS(ADD, add)
ROUNDINGS(SUB, sub)
ROUNDINGS(MUL, mul)
ROUNDINGS(FMA, fma)
