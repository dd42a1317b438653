// SPDX-License-Identifier: Apache-2.0
//
// soft: the parameters in `aux` of operations on matrices of a warp: the
// decoder writes it, soft_matrix.c reads it.
#ifndef KILN_SRC_SOFT_CODE_SOFT_MATRIX_H_
#define KILN_SRC_SOFT_CODE_SOFT_MATRIX_H_

#include <stdint.h>

// Types of elements: name, bits.
#define KILNI_SOFT_MATRIX_TYPES(X) \
  X(F16, 16)                       \
  X(BF16, 16)                      \
  X(TF32, 32)                      \
  X(F32, 32)                       \
  X(F64, 64)                       \
  X(S8, 8)                         \
  X(U8, 8)                         \
  X(S32, 32)                       \
  X(E4M3, 8)                       \
  X(E5M2, 8)

typedef enum kilni_soft_matrix_type_t {
#define KILNI_SOFT_MATRIX_ENUM(name, bits) KILNI_SOFT_MATRIX_##name,
  KILNI_SOFT_MATRIX_TYPES(KILNI_SOFT_MATRIX_ENUM)
#undef KILNI_SOFT_MATRIX_ENUM
} kilni_soft_matrix_type_t;

// Shapes: m, n, k. The second half are those of wmma.
#define KILNI_SOFT_MATRIX_SHAPES(X) \
  X(16, 8, 16)                      \
  X(16, 8, 8)                       \
  X(16, 8, 4)                       \
  X(16, 8, 32)                      \
  X(8, 8, 16)                       \
  X(8, 8, 4)                        \
  X(16, 16, 16)                     \
  X(32, 8, 16)                      \
  X(8, 32, 16)                      \
  X(16, 16, 8)

typedef enum kilni_soft_matrix_shape_t {
#define KILNI_SOFT_MATRIX_ENUM(m, n, k) KILNI_SOFT_MATRIX_M##m##N##n##K##k,
  KILNI_SOFT_MATRIX_SHAPES(KILNI_SOFT_MATRIX_ENUM)
#undef KILNI_SOFT_MATRIX_ENUM
      KILNI_SOFT_MATRIX_SHAPE_COUNT
} kilni_soft_matrix_shape_t;

// Which of d = a * b + c.
enum {
  KILNI_SOFT_MATRIX_A,
  KILNI_SOFT_MATRIX_B,
  KILNI_SOFT_MATRIX_C,
  KILNI_SOFT_MATRIX_D
};

// mma: all four types. wmma_load, wmma_store: which, and its type as A's.
#define KILNI_SOFT_MATRIX_SHAPE(aux)   ((aux) & 15u)
#define KILNI_SOFT_MATRIX_TYPE(aux, w) ((aux) >> (4 + 4 * (w)) & 15u)
#define KILNI_SOFT_MATRIX_MAKE(shape, a, b, c, d)                \
  ((uint32_t)(shape) | (uint32_t)(a) << 4 | (uint32_t)(b) << 8 | \
   (uint32_t)(c) << 12 | (uint32_t)(d) << 16)
#define KILNI_SOFT_MATRIX_WHICH(aux) ((aux) >> 8 & 3u)
#define KILNI_SOFT_MATRIX_SATFINITE  0x100000u
#define KILNI_SOFT_MATRIX_OPAQUE     0x200000u  // the layout is our own
#define KILNI_SOFT_MATRIX_BY_COLUMN  0x400000u
#define KILNI_SOFT_MATRIX_HAS_STRIDE 0x800000u
#define KILNI_SOFT_MATRIX_SPACE(aux) ((aux) >> 24 & 7u)
// ldmatrix, stmatrix: matrices, and whether they are transposed.
#define KILNI_SOFT_MATRIX_COUNT(aux) ((aux) & 7u)
#define KILNI_SOFT_MATRIX_TRANS      8u

// What one of the four matrices is in the registers of a lane.
// thread-compatible
typedef struct kilni_soft_fragment_t {
  uint32_t rows;
  uint32_t columns;
  uint32_t type;
  uint32_t bits;      // of an element
  uint32_t each;      // elements of a register
  uint32_t elements;  // of a lane; a multiple of `each`
  uint32_t registers;
} kilni_soft_fragment_t;

static inline kilni_soft_fragment_t kilni_soft_fragment(uint32_t shape,
                                                        uint32_t which,
                                                        uint32_t type,
                                                        uint32_t opaque) {
  static const uint8_t shapes[][3] = {
#define KILNI_SOFT_MATRIX_ROW(m, n, k) {m, n, k},
      KILNI_SOFT_MATRIX_SHAPES(KILNI_SOFT_MATRIX_ROW)
#undef KILNI_SOFT_MATRIX_ROW
  };
  static const uint8_t widths[] = {
#define KILNI_SOFT_MATRIX_BITS(name, bits) bits,
      KILNI_SOFT_MATRIX_TYPES(KILNI_SOFT_MATRIX_BITS)
#undef KILNI_SOFT_MATRIX_BITS
  };
  const uint8_t* s = shapes[shape];
  kilni_soft_fragment_t f;
  f.rows = which == KILNI_SOFT_MATRIX_B ? s[2] : s[0];
  f.columns = which == KILNI_SOFT_MATRIX_A ? s[2] : s[1];
  f.type = type;
  f.bits = widths[type];
  f.each = f.bits >= 32 ? 1 : 32 / f.bits;
  f.elements = f.rows * f.columns / 32;
  // Sources of f16 have 16 elements in each lane, whatever their size.
  if (opaque && type == KILNI_SOFT_MATRIX_F16 && which < KILNI_SOFT_MATRIX_C) {
    f.elements = 16;
  }
  f.registers = f.elements / f.each;
  return f;
}

#endif  // KILN_SRC_SOFT_CODE_SOFT_MATRIX_H_
