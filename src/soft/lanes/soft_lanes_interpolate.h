// SPDX-License-Identifier: Apache-2.0
//
// soft: the units of the special function unit, to the last bit.
//
// Each function is what the hardware's instruction does to 32 lanes, the same
// array or another: subnormal numbers are zeros to it, and it makes none. What
// the compiler of a GPU puts around it to make the .approx form without .ftz is
// in soft_ops_approx.c.
//
// A significand's upper bits name a row (c0, c1, c2) of a table, its other 17
// bits are x; the answer is c0 * 2^s + c1 * x + c2 * square(x) and a constant,
// cut off. square(x) leaves out the products of bits that would come out below
// the last place: a unit of its own result is 2^19.
#ifndef KILN_SRC_SOFT_LANES_SOFT_LANES_INTERPOLATE_H_
#define KILN_SRC_SOFT_LANES_SOFT_LANES_INTERPOLATE_H_

#include "soft/lanes/soft_lanes_float.h"

// c0, then c1 in 19 bits and c2 in 13; of the tangent, whose c2 are negative,
// the unit in two bits, c1 in 16 and -c2 in 14, 16 times for each binade.
#define ROW(c0, c1, c2) \
  {(c0), (uint32_t)(c1) << 13 | ((uint32_t)(c2) & 0x1fffu)},
#define TANH(binade, n, unit, c0, c1, c2)
static const uint32_t kilni_soft_lanes_rows[][2] KILNI_LANES_ALIGNED
    __attribute__((unused)) = {
#include "soft/lanes/soft_interpolate.inc"
};
#undef ROW
#undef TANH
#define ROW(c0, c1, c2)
#define TANH_1(c0, c12)  {c0, c12},
#define TANH_2(c0, c12)  TANH_1(c0, c12) TANH_1(c0, c12)
#define TANH_4(c0, c12)  TANH_2(c0, c12) TANH_2(c0, c12)
#define TANH_8(c0, c12)  TANH_4(c0, c12) TANH_4(c0, c12)
#define TANH_16(c0, c12) TANH_8(c0, c12) TANH_8(c0, c12)
#define TANH_OF_1        TANH_16
#define TANH_OF_2        TANH_8
#define TANH_OF_4        TANH_4
#define TANH_OF_8        TANH_2
#define TANH_OF_16       TANH_1
#define TANH(binade, n, unit, c0, c1, c2) \
  TANH_OF_##n((c0),                       \
              ((unit) - 36u) << 30 | (uint32_t)(c1) << 14 | (uint32_t)-(c2))
static const uint32_t kilni_soft_lanes_tanh_rows[][2] KILNI_LANES_ALIGNED
    __attribute__((unused)) = {
#include "soft/lanes/soft_interpolate.inc"
};
#undef ROW
#undef TANH

#if defined(__AVX2__)
KILNI_LANES_INLINE __m128d row_pair(const uint32_t (*table)[2], uint32_t a,
                                    uint32_t b) {
  const double* at = (const double*)(const void*)table;
  return _mm_loadh_pd(_mm_load_sd(at + a), at + b);
}
#endif

// Where the tables begin.
enum {
  KILNI_LANES_RCP_ROWS = 0,
  KILNI_LANES_EX2_ROWS = 128,
  KILNI_LANES_RSQRT_ROWS = 192,
  KILNI_LANES_SQRT_ROWS = 320,
  KILNI_LANES_LG2_ROWS = 448,
  KILNI_LANES_SIN_ROWS = 512,
  KILNI_LANES_ROWS_END = 576,
  KILNI_LANES_TANH_ROWS = 176,
};
_Static_assert(sizeof(kilni_soft_lanes_rows) / 8 == KILNI_LANES_ROWS_END &&
                   sizeof(kilni_soft_lanes_tanh_rows) / 8 ==
                       KILNI_LANES_TANH_ROWS,
               "a table is too long or too short");

// What a unit asks the tables for, and what it gets.
typedef struct {
  uint32_t row[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  uint32_t x[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;  // 17 bits
  uint32_t c0[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  uint32_t c12[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  uint16_t square[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
} kilni_soft_lanes_rows_t;

typedef uint16_t kilni_soft_lanes_words_t
    __attribute__((vector_size(KILNI_LANES_BYTES), may_alias));
typedef int16_t kilni_soft_lanes_signs_t
    __attribute__((vector_size(KILNI_LANES_BYTES), may_alias));

// All of `x` without its lower two bits where bit `bit` of it is set, shifted.
KILNI_LANES_INLINE kilni_soft_lanes_words_t
bit_times(kilni_soft_lanes_words_t x, int bit) {
  kilni_soft_lanes_signs_t top = (kilni_soft_lanes_signs_t)(x << (17 - bit));
  return (kilni_soft_lanes_words_t)(top >> 15) & (x >> (16 - bit));
}

// The squares of 17 bits: the products of bits i and j with i + j >= 18. All of
// those among the upper eight bits are; one of the lower nine goes with what
// is high enough of the upper ones, twice. Bits 0 and 1 go with none.
KILNI_LANES_INLINE void square_all(kilni_soft_lanes_rows_t* rows) {
  KILNI_LANES_EACH(i) {
    rows->square[i] = (uint16_t)(rows->x[i] >> 2);
  }
  kilni_soft_lanes_words_t* at = (kilni_soft_lanes_words_t*)(void*)rows->square;
  for (unsigned i = 0; i < KILNI_SOFT_LANES * 2 / KILNI_LANES_BYTES; i++) {
    kilni_soft_lanes_words_t x = at[i];
    kilni_soft_lanes_words_t h = x >> 7;
    kilni_soft_lanes_words_t low = bit_times(x, 2) + bit_times(x, 3);
    low += bit_times(x, 4) + bit_times(x, 5) + bit_times(x, 6);
    at[i] = ((h * h) >> 1) + low + bit_times(x, 7) + bit_times(x, 8);
  }
}

KILNI_LANES_INLINE void lanes_interpolate_look_up(kilni_soft_lanes_rows_t* rows,
                                                  const uint32_t (*table)[2]) {
#if defined(__AVX2__)
  // Faster than the instruction that gathers.
  for (unsigned i = 0; i < KILNI_SOFT_LANES; i += 8) {
    const uint32_t* row = rows->row + i;
    const __m256d even = _mm256_set_m128d(row_pair(table, row[4], row[5]),
                                          row_pair(table, row[0], row[1]));
    const __m256d odd = _mm256_set_m128d(row_pair(table, row[6], row[7]),
                                         row_pair(table, row[2], row[3]));
    const __m256 a = _mm256_castpd_ps(even), b = _mm256_castpd_ps(odd);
    _mm256_store_ps((float*)(void*)(rows->c0 + i),
                    _mm256_shuffle_ps(a, b, 0x88));
    _mm256_store_ps((float*)(void*)(rows->c12 + i),
                    _mm256_shuffle_ps(a, b, 0xdd));
  }
#else
  KILNI_LANES_EACH(i) {
    rows->c0[i] = table[rows->row[i]][0];
    rows->c12[i] = table[rows->row[i]][1];
  }
#endif
  square_all(rows);
}

// The sum is up to 41 bits: `high` in units of 512, and the rest.
typedef struct {
  uint32_t high;
  int32_t low;
} kilni_soft_lanes_sum_t;

KILNI_LANES_INLINE kilni_soft_lanes_sum_t
lanes_interpolate_sum_of(const kilni_soft_lanes_rows_t* rows, unsigned i,
                         int shift, int32_t constant) {
  uint32_t x = rows->x[i];
  int32_t c1 = (int32_t)rows->c12[i] >> 13;
  int32_t c2 = (int32_t)(rows->c12[i] << 19) >> 19;
  kilni_soft_lanes_sum_t sum;
  sum.high = (rows->c0[i] << (shift - 9)) + (uint32_t)c1 * (x >> 9);
  sum.low = c1 * (int32_t)(x & 511) + c2 * (int32_t)rows->square[i] + constant;
  return sum;
}
KILNI_LANES_INLINE uint32_t upper_of(kilni_soft_lanes_sum_t sum) {
  return sum.high + (uint32_t)(sum.low >> 9);
}

#define NAN32 0x7fffffffu

// Cuts what does not fit off.
KILNI_LANES_INLINE uint32_t cut_off(double x) {
  return bits32((float)float64(bits64(x) & ~(uint64_t)0x1fffffff));
}

KILNI_LANES_INLINE void mufu_rcp(const uint32_t* a, uint32_t* r) {
  kilni_soft_lanes_rows_t rows;
  KILNI_LANES_EACH(i) {
    rows.row[i] = KILNI_LANES_RCP_ROWS + (a[i] >> 16 & 0x7f);
    rows.x[i] = a[i] << 1 & 0x1ffff;
  }
  lanes_interpolate_look_up(&rows, kilni_soft_lanes_rows);
  KILNI_LANES_EACH(i) {
    int32_t u = (int32_t)(a[i] & 0x7fffffffu);
    uint32_t y = upper_of(lanes_interpolate_sum_of(&rows, i, 14, 0x8fce)) >> 7;
    uint32_t n = ((252 - ((uint32_t)u >> 23)) << 23) + y;
    n = (int32_t)n < 0x00800000 ? 0 : n;
    n = u < 0x00800000 ? 0x7f800000u : n;
    n |= a[i] & 0x80000000u;
    r[i] = u > 0x7f800000 ? NAN32 : n;
  }
}

// The result of roots and logarithms of zeros, negative numbers, infinity and
// NaN; `r` otherwise.
KILNI_LANES_INLINE uint32_t lanes_interpolate_root_of(uint32_t a, uint32_t r,
                                                      uint32_t of_zero,
                                                      uint32_t of_infinity) {
  int32_t u = (int32_t)(a & 0x7fffffffu);
  r = u == 0x7f800000 ? of_infinity : r;
  r = u > 0x7f800000 ? NAN32 : r;
  r = (int32_t)a < 0 ? NAN32 : r;
  return u < 0x00800000 ? of_zero | (a & 0x80000000u) : r;
}

KILNI_LANES_INLINE void mufu_rsq(const uint32_t* a, uint32_t* r) {
  kilni_soft_lanes_rows_t rows;
  KILNI_LANES_EACH(i) {
    rows.row[i] = KILNI_LANES_RSQRT_ROWS + ((a[i] >> 17 & 0x7f) ^ 0x40);
    rows.x[i] = a[i] & 0x1ffff;
  }
  lanes_interpolate_look_up(&rows, kilni_soft_lanes_rows);
  KILNI_LANES_EACH(i) {
    uint32_t y = upper_of(lanes_interpolate_sum_of(&rows, i, 14, 0x7fff)) >> 7;
    y = (a[i] & 0xffffff) == 0x800000 ? 0x1000000 : y;
    uint32_t half = ((a[i] >> 23) + 1) >> 1;  // 64 for [1, 4)
    uint32_t n = ((189 - half) << 23) + y;
    r[i] = lanes_interpolate_root_of(a[i], n, 0x7f800000u, 0);
  }
}

KILNI_LANES_INLINE void mufu_sqrt(const uint32_t* a, uint32_t* r) {
  kilni_soft_lanes_rows_t rows;
  KILNI_LANES_EACH(i) {
    rows.row[i] = KILNI_LANES_SQRT_ROWS + ((a[i] >> 17 & 0x7f) ^ 0x40);
    rows.x[i] = a[i] & 0x1ffff;
  }
  lanes_interpolate_look_up(&rows, kilni_soft_lanes_rows);
  KILNI_LANES_EACH(i) {
    uint32_t y = upper_of(lanes_interpolate_sum_of(&rows, i, 14, 0x7fff)) >> 7;
    y = a[i] & 0x800000 ? y >> 1 : y;
    uint32_t half = ((a[i] >> 23) + 1) >> 1;
    uint32_t n = ((62 + half) << 23) + y;
    r[i] = lanes_interpolate_root_of(a[i], n, 0, 0x7f800000u);
  }
}

KILNI_LANES_INLINE void mufu_lg2(const uint32_t* a, uint32_t* r) {
  kilni_soft_lanes_rows_t rows;
  KILNI_LANES_EACH(i) {
    rows.row[i] = KILNI_LANES_LG2_ROWS + (a[i] >> 17 & 0x3f);
    rows.x[i] = a[i] & 0x1ffff;
  }
  lanes_interpolate_look_up(&rows, kilni_soft_lanes_rows);
  KILNI_LANES_EACH(i) {
    int32_t u = (int32_t)(a[i] & 0x7fffffffu);
    kilni_soft_lanes_sum_t sum = lanes_interpolate_sum_of(&rows, i, 12, 0x3345);
    // In 2^-36, to which the exponent is added.
    double e = (double)((u >> 23) - 127);
    double y = (double)(int32_t)sum.high * 0x1p7 + (double)(sum.low >> 2);
    y += e * 0x1p36;
    y = u == 0x3f800000 ? 0.0 : y;
    uint32_t n = cut_off((y < 0.0 ? -1.0 - y : y) * 0x1p-36);
    n |= y < 0.0 ? 0x80000000u : 0;
    r[i] = lanes_interpolate_root_of(a[i], n, 0xff800000u, 0x7f800000u);
  }
}

KILNI_LANES_INLINE void mufu_ex2(const uint32_t* a, uint32_t* r) {
  kilni_soft_lanes_rows_t rows;
  uint32_t fixed[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  KILNI_LANES_EACH(i) {
    // In 2^-23. Of a negative number the bits are inverted where there are any
    // after the point.
    float size = fabsf(float32(a[i]));
    int32_t q = (int32_t)(size < 128.0f ? size * 0x1p23f : 0.0f);
    int32_t negative = q & 0x7fffff ? ~q : -q;
    fixed[i] = (uint32_t)((int32_t)a[i] < 0 ? negative : q);
    rows.row[i] = KILNI_LANES_EX2_ROWS + (fixed[i] >> 17 & 0x3f);
    rows.x[i] = fixed[i] & 0x1ffff;
  }
  lanes_interpolate_look_up(&rows, kilni_soft_lanes_rows);
  KILNI_LANES_EACH(i) {
    int32_t u = (int32_t)(a[i] & 0x7fffffffu);
    uint32_t y = upper_of(lanes_interpolate_sum_of(&rows, i, 14, 0xefc4)) >> 7;
    int32_t e = (int32_t)fixed[i] >> 23;
    uint32_t n = ((uint32_t)(e + 126) << 23) + y;
    n = (int32_t)n < 0x00800000 ? 0 : n;
    uint32_t far = (int32_t)a[i] < 0 ? 0 : 0x7f800000u;
    n = u >= 0x43000000 ? far : n;
    r[i] = u > 0x7f800000 ? NAN32 : n;
  }
}

// The sine (turn 0) or cosine (turn 1) of `a` turns, already cut off to f32.
KILNI_LANES_INLINE void mufu_sin(const float* a, uint32_t turn, uint32_t* r) {
  kilni_soft_lanes_rows_t rows;
  uint32_t fixed[KILNI_SOFT_LANES] KILNI_LANES_ALIGNED;
  KILNI_LANES_EACH(i) {
    // In 2^-23 of a quadrant, the quadrant above; whole turns go.
    float size = fabsf(a[i]);
    size = size < 0x1p24f ? size : 0.0f;
    float part = size - (float)(int32_t)size;
    uint32_t q = (uint32_t)(int32_t)(part * 0x1p25f) + (turn << 23);
    fixed[i] = q & 0x800000 ? q ^ 0x7fffff : q;
    rows.row[i] = KILNI_LANES_SIN_ROWS + (fixed[i] >> 17 & 0x3f);
    rows.x[i] = fixed[i] & 0x1ffff;
  }
  lanes_interpolate_look_up(&rows, kilni_soft_lanes_rows);
  KILNI_LANES_EACH(i) {
    kilni_soft_lanes_sum_t sum = lanes_interpolate_sum_of(&rows, i, 12, 0);
    double y = (double)(int32_t)sum.high * 0x1p9 + (double)sum.low;
    uint32_t sign = turn ? 0 : bits32(a[i]) & 0x80000000u;
    sign ^= fixed[i] << 7 & 0x80000000u;
    uint32_t n = cut_off(y * 0x1p-37) | sign;
    r[i] = fabsf(a[i]) <= 0x1.fffffep127f ? n : NAN32;
  }
}

// Below 2^-8 the source itself, from 8 on 1. In between a binade has 1, 2, 4, 8
// or 16 segments, and bits after the 17 bits of x are ignored.
KILNI_LANES_INLINE void mufu_tanh(const uint32_t* a, uint32_t* r) {
  kilni_soft_lanes_rows_t rows;
  KILNI_LANES_EACH(i) {
    int32_t u = (int32_t)(a[i] & 0x7fffffffu);
    int32_t e = (u >> 23) - 127;
    uint32_t shift = e < -5 ? 6 : (e < -3 ? 5 : 4);
    shift = e < 0 ? shift : (e == 1 ? 2 : 3);
    rows.x[i] = (uint32_t)u >> shift & 0x1ffff;
    int32_t row = (u >> 19) - ((127 - 8) << 4);
    row = row < 0 ? 0 : row;
    rows.row[i] = (uint32_t)(row < 175 ? row : 175);
  }
  lanes_interpolate_look_up(&rows, kilni_soft_lanes_tanh_rows);
  KILNI_LANES_EACH(i) {
    int32_t u = (int32_t)(a[i] & 0x7fffffffu);
    uint32_t c12 = rows.c12[i];
    int32_t c1 = (int32_t)(c12 >> 14 & 0xffff);
    int32_t c2 = (int32_t)(c12 & 0x3fff);
    uint32_t x = rows.x[i];
    int32_t high = (int32_t)rows.c0[i] + c1 * (int32_t)(x >> 9);
    int32_t low = c1 * (int32_t)(x & 511) - c2 * (int32_t)rows.square[i];
    double unit = float64((uint64_t)((1023 - 36) - (c12 >> 30)) << 52);
    uint32_t n = cut_off(((double)high * 0x1p9 + (double)low) * unit);
    n = u < 0x3b800000 ? (uint32_t)u : n;
    n = u < 0x41000000 ? n : 0x3f800000u;
    n |= a[i] & 0x80000000u;
    r[i] = u > 0x7f800000 ? NAN32 : n;
  }
}

// Of upper words of f64: 20 bits of a significand in, 20 out.
KILNI_LANES_INLINE void mufu_rcp64h(const uint32_t* a, uint32_t* r) {
  kilni_soft_lanes_rows_t rows;
  KILNI_LANES_EACH(i) {
    rows.row[i] = KILNI_LANES_RCP_ROWS + (a[i] >> 13 & 0x7f);
    rows.x[i] = a[i] << 4 & 0x1ffff;
  }
  lanes_interpolate_look_up(&rows, kilni_soft_lanes_rows);
  KILNI_LANES_EACH(i) {
    int32_t u = (int32_t)(a[i] & 0x7fffffffu);
    uint32_t y = upper_of(lanes_interpolate_sum_of(&rows, i, 14, 0x8fce)) >> 10;
    uint32_t n = ((2044 - ((uint32_t)u >> 20)) << 20) + y;
    n = (int32_t)n < 0x00100000 ? 0 : n;
    n = u < 0x00100000 ? 0x7ff00000u : n;
    n |= a[i] & 0x80000000u;
    r[i] = u > 0x7ff00000 ? NAN32 : n;
  }
}

KILNI_LANES_INLINE void mufu_rsq64h(const uint32_t* a, uint32_t* r) {
  kilni_soft_lanes_rows_t rows;
  KILNI_LANES_EACH(i) {
    rows.row[i] = KILNI_LANES_RSQRT_ROWS + ((a[i] >> 14 & 0x7f) ^ 0x40);
    rows.x[i] = a[i] << 3 & 0x1ffff;
  }
  lanes_interpolate_look_up(&rows, kilni_soft_lanes_rows);
  KILNI_LANES_EACH(i) {
    int32_t u = (int32_t)(a[i] & 0x7fffffffu);
    uint32_t y = upper_of(lanes_interpolate_sum_of(&rows, i, 14, 0x7fff)) >> 10;
    y = (a[i] & 0x1fffff) == 0x100000 ? 0x200000 : y;
    uint32_t half = ((a[i] >> 20) + 1) >> 1;  // 512 for [1, 4)
    uint32_t n = ((1533 - half) << 20) + y;
    n = u == 0x7ff00000 ? 0 : n;
    n = u > 0x7ff00000 ? NAN32 : n;
    n = (int32_t)a[i] < 0 ? NAN32 : n;
    r[i] = u < 0x00100000 ? 0x7ff00000u | (a[i] & 0x80000000u) : n;
  }
}

#endif  // KILN_SRC_SOFT_LANES_SOFT_LANES_INTERPOLATE_H_
