// SPDX-License-Identifier: Apache-2.0
//
// soft: the parameters in `aux` of operations on small floats: the decoder
// writes it, soft_ops_half.c reads it.
#ifndef KILN_SRC_SOFT_CODE_SOFT_HALF_H_
#define KILN_SRC_SOFT_CODE_SOFT_HALF_H_

// Formats.
enum {
  KILNI_SOFT_HALF_F16,
  KILNI_SOFT_HALF_BF16,
  KILNI_SOFT_HALF_TF32,
  KILNI_SOFT_HALF_E4M3,
  KILNI_SOFT_HALF_E5M2
};
#define KILNI_SOFT_HALF_FORMAT 7u

// Roundings; 0 is to the nearest even.
enum {
  KILNI_SOFT_HALF_RN,
  KILNI_SOFT_HALF_RZ,
  KILNI_SOFT_HALF_RM,
  KILNI_SOFT_HALF_RP,
  KILNI_SOFT_HALF_RNA
};
#define KILNI_SOFT_HALF_ROUNDING(aux) ((aux) >> 4 & 7u)

// What half_math and half_int compute.
enum {
  KILNI_SOFT_HALF_ADD,
  KILNI_SOFT_HALF_SUB,
  KILNI_SOFT_HALF_MUL,
  KILNI_SOFT_HALF_FMA,
  KILNI_SOFT_HALF_NEG,
  KILNI_SOFT_HALF_ABS,
  KILNI_SOFT_HALF_MIN,
  KILNI_SOFT_HALF_MAX,
  KILNI_SOFT_HALF_EX2,
  KILNI_SOFT_HALF_TANH
};
#define KILNI_SOFT_HALF_ACTION(aux) ((aux) >> 8 & 15u)

#define KILNI_SOFT_HALF_PAIR      0x1000u   // two in 32 bits (fp8: in 16)
#define KILNI_SOFT_HALF_FTZ       0x2000u   // sources and results
#define KILNI_SOFT_HALF_SAT       0x4000u   // to [+0, 1]
#define KILNI_SOFT_HALF_RELU      0x8000u   // at least +0
#define KILNI_SOFT_HALF_SATFINITE 0x10000u  // no infinities
#define KILNI_SOFT_HALF_NAN       0x20000u  // min, max: a NaN wins
#define KILNI_SOFT_HALF_XORSIGN   0x40000u
#define KILNI_SOFT_HALF_KEEP      0x80000u   // half_widen: a NaN's bits stay
#define KILNI_SOFT_HALF_SIGNED    0x100000u  // half_int
// half_widen: where the number's bits start.
#define KILNI_SOFT_HALF_SHIFT(aux) ((aux) >> 24 & 31u)

#endif  // KILN_SRC_SOFT_CODE_SOFT_HALF_H_
