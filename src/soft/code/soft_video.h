// SPDX-License-Identifier: Apache-2.0
//
// soft: what the operation on parts of a word is told in `aux`: the decoder
// writes it, soft_ops_video.c reads it.
#ifndef KILN_SRC_SOFT_CODE_SOFT_VIDEO_H_
#define KILN_SRC_SOFT_CODE_SOFT_VIDEO_H_

enum {
  KILNI_SOFT_VIDEO_ADD,
  KILNI_SOFT_VIDEO_SUB,
  KILNI_SOFT_VIDEO_ABSDIFF,
  KILNI_SOFT_VIDEO_MIN,
  KILNI_SOFT_VIDEO_MAX,
  KILNI_SOFT_VIDEO_AVRG,
  KILNI_SOFT_VIDEO_PACK  // cvt.pack: a and b above what c has
};
#define KILNI_SOFT_VIDEO_ACTION(aux) ((aux)&15u)
#define KILNI_SOFT_VIDEO_BITS(aux)   ((aux) >> 4 & 31u)  // of a part
#define KILNI_SOFT_VIDEO_SIGNED_A    0x200u
#define KILNI_SOFT_VIDEO_SIGNED_B    0x400u
#define KILNI_SOFT_VIDEO_SIGNED_D    0x800u
#define KILNI_SOFT_VIDEO_SAT         0x1000u
#define KILNI_SOFT_VIDEO_SUM         0x2000u  // of all parts, and c

#endif  // KILN_SRC_SOFT_CODE_SOFT_VIDEO_H_
