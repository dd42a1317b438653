// SPDX-License-Identifier: Apache-2.0
//
// soft: the parameters in `aux` of video instructions: the decoder writes it,
// soft_ops_video.c reads it.
#ifndef KILN_SRC_SOFT_CODE_SOFT_VIDEO_H_
#define KILN_SRC_SOFT_CODE_SOFT_VIDEO_H_

enum {
  KILNI_SOFT_VIDEO_ADD,
  KILNI_SOFT_VIDEO_SUB,
  KILNI_SOFT_VIDEO_ABSDIFF,
  KILNI_SOFT_VIDEO_MIN,
  KILNI_SOFT_VIDEO_MAX,
  KILNI_SOFT_VIDEO_AVRG,
  KILNI_SOFT_VIDEO_EQ,
  KILNI_SOFT_VIDEO_NE,
  KILNI_SOFT_VIDEO_LT,
  KILNI_SOFT_VIDEO_LE,
  KILNI_SOFT_VIDEO_GT,
  KILNI_SOFT_VIDEO_GE,
  KILNI_SOFT_VIDEO_SHL,
  KILNI_SOFT_VIDEO_SHR,
  KILNI_SOFT_VIDEO_PACK  // cvt.pack: a and b above what c has
};
#define KILNI_SOFT_VIDEO_ACTION(aux) ((aux) & 15u)

// video: two or four parts of a word, and cvt.pack.
#define KILNI_SOFT_VIDEO_BITS(aux) ((aux) >> 4 & 31u)  // of a part
#define KILNI_SOFT_VIDEO_SIGNED_A  0x200u
#define KILNI_SOFT_VIDEO_SIGNED_B  0x400u
#define KILNI_SOFT_VIDEO_SIGNED_D  0x800u
#define KILNI_SOFT_VIDEO_SAT       0x1000u
#define KILNI_SOFT_VIDEO_SUM       0x2000u              // with c
#define KILNI_SOFT_VIDEO_LEFT(aux) ((aux) >> 14 & 15u)  // parts left out

// video_one, video_mad: one number each; which part of its word it is, as
// kilni_image_ptx_selector_t has it. They share the flags above.
#define KILNI_SOFT_VIDEO_PART_A(aux) ((aux) >> 14 & 7u)
#define KILNI_SOFT_VIDEO_PART_B(aux) ((aux) >> 17 & 7u)
#define KILNI_SOFT_VIDEO_PART_D(aux) ((aux) >> 20 & 7u)
enum {
  KILNI_SOFT_VIDEO_PARTS_A = 14,
  KILNI_SOFT_VIDEO_PARTS_B = 17,
  KILNI_SOFT_VIDEO_PARTS_D = 20
};
// What is done with c: SUM, or
#define KILNI_SOFT_VIDEO_LEAST 0x800000u
#define KILNI_SOFT_VIDEO_MOST  0x1000000u
#define KILNI_SOFT_VIDEO_WRAP  0x2000000u  // the count of a shift
// video_mad.
#define KILNI_SOFT_VIDEO_MINUS_PRODUCT 0x4000000u
#define KILNI_SOFT_VIDEO_MINUS_C       0x8000000u
#define KILNI_SOFT_VIDEO_PLUS_ONE      0x10000000u
#define KILNI_SOFT_VIDEO_SHR7          0x20000000u
#define KILNI_SOFT_VIDEO_SHR15         0x40000000u

#endif  // KILN_SRC_SOFT_CODE_SOFT_VIDEO_H_
