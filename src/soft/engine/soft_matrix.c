// SPDX-License-Identifier: Apache-2.0
//
// soft: matrices that are distributed over the lanes of a warp: mma, wmma, and
// their loads and stores.
//
// Products of small floats are exact in f64, where they are added to the
// accumulator before one rounding; the hardware's own sum is not documented.
// The layouts of mma are PTX's; those of wmma, which PTX leaves open, count
// elements lane after lane.
#include "soft/code/soft_engine.h"
#include "soft/code/soft_matrix.h"
#include "soft/engine/soft_warp.h"

#include <math.h>
#include <string.h>

enum { MOST_REGISTERS = 8, MOST_SIDE = 32 };

// An element. one-thread
typedef union element_t {
  double real;
  int64_t whole;
} element_t;

// One matrix, row after row. one-thread
typedef struct matrix_t {
  kilni_soft_fragment_t f;
  element_t at[MOST_SIDE * MOST_SIDE];
} matrix_t;

static bool matrix_is_whole(uint32_t type) {
  return type == KILNI_SOFT_MATRIX_S8 || type == KILNI_SOFT_MATRIX_U8 ||
         type == KILNI_SOFT_MATRIX_S32;
}

static double matrix_widen_e4m3(uint32_t x) {
  uint32_t exponent = x >> 3 & 15u;
  uint32_t fraction = x & 7u;
  double r =
      exponent ? ldexp(8 + fraction, (int)exponent - 10) : ldexp(fraction, -9);
  if ((x & 0x7fu) == 0x7fu) r = (double)NAN;
  return x & 0x80u ? -r : r;
}

static element_t matrix_decode(uint32_t type, uint64_t bits) {
  element_t e = {.whole = 0};
  uint32_t word = (uint32_t)bits;
  float single;
  switch (type) {
    case KILNI_SOFT_MATRIX_F16:
      e.real = kilni_soft_half_widen(false, (uint16_t)bits);
      return e;
    case KILNI_SOFT_MATRIX_BF16:
      e.real = kilni_soft_half_widen(true, (uint16_t)bits);
      return e;
    case KILNI_SOFT_MATRIX_TF32:
      word &= 0xffffe000u;
      memcpy(&single, &word, 4);
      e.real = (double)single;
      return e;
    case KILNI_SOFT_MATRIX_F32:
      memcpy(&single, &word, 4);
      e.real = (double)single;
      return e;
    case KILNI_SOFT_MATRIX_F64:
      memcpy(&e.real, &bits, 8);
      return e;
    case KILNI_SOFT_MATRIX_E4M3:
      e.real = matrix_widen_e4m3(word & 0xffu);
      return e;
    case KILNI_SOFT_MATRIX_E5M2:
      e.real = kilni_soft_half_widen(false, (uint16_t)((word & 0xffu) << 8));
      return e;
    case KILNI_SOFT_MATRIX_S8:
      // The sign is meant to go on.
      // NOLINTNEXTLINE(bugprone-signed-char-misuse)
      e.whole = (int8_t)(uint8_t)bits;
      return e;
    case KILNI_SOFT_MATRIX_U8:
      e.whole = (uint8_t)bits;
      return e;
    default:
      e.whole = (int32_t)word;
      return e;
  }
}

static uint64_t encode(uint32_t type, element_t e) {
  uint64_t bits = 0;
  uint32_t word;
  float single;
  switch (type) {
    case KILNI_SOFT_MATRIX_F16:
      return kilni_soft_half_narrow(false, e.real);
    case KILNI_SOFT_MATRIX_F64:
      memcpy(&bits, &e.real, 8);
      return bits;
    case KILNI_SOFT_MATRIX_S32:
      return (uint32_t)e.whole;
    default:
      single = (float)e.real;
      memcpy(&word, &single, 4);
      return single == single ? word : 0x7fffffffu;
  }
}

// The place of element `e` of a lane, as an index into the matrix.
static uint32_t matrix_place(const kilni_soft_fragment_t* f, uint32_t which,
                             bool opaque, uint32_t lane, uint32_t e) {
  if (opaque) {
    return (lane * f->elements + e) % (f->rows * f->columns);
  }
  uint32_t group = lane >> 2;
  uint32_t thread = lane & 3u;
  uint32_t r = e / f->each;
  uint32_t i = e % f->each;
  uint32_t row;
  uint32_t column;
  if (which == KILNI_SOFT_MATRIX_A) {
    uint32_t block = f->rows == 16 ? r >> 1 : r;
    row = group + (f->rows == 16 ? 8 * (r & 1u) : 0);
    column = thread * f->each + i + block * 4 * f->each;
  } else if (which == KILNI_SOFT_MATRIX_B) {
    row = thread * f->each + i + r * 4 * f->each;
    column = group;
  } else {
    row = group + 8 * (e >> 1);
    column = thread * 2 + (e & 1u);
  }
  return row * f->columns + column;
}

// Registers of the instruction, in the following word instructions.
static uint32_t slot_word(const kilni_soft_instr_t* words, uint32_t at) {
  const kilni_soft_instr_t* w = &words[at / 4];
  const uint32_t four[4] = {w->d, w->a, w->b, w->c};
  return four[at % 4];
}

static uint64_t matrix_read_lane(const kilni_soft_warp_t* warp, uint32_t word,
                                 uint32_t lane, bool wide) {
  const void* slot = kilni_soft_slot(warp, word);
  return wide ? ((const uint64_t*)slot)[lane] : ((const uint32_t*)slot)[lane];
}

static void matrix_write_lane(const kilni_soft_warp_t* warp, uint32_t word,
                              uint32_t lane, bool wide, uint64_t value) {
  void* slot = kilni_soft_slot(warp, word);
  if (wide) {
    ((uint64_t*)slot)[lane] = value;
  } else {
    ((uint32_t*)slot)[lane] = (uint32_t)value;
  }
}

// Gathers a matrix from the registers from number `*inout_at` on.
static void matrix_gather(const kilni_soft_warp_t* warp,
                          const kilni_soft_instr_t* words, uint32_t* inout_at,
                          uint32_t which, bool opaque, matrix_t* m) {
  const kilni_soft_fragment_t* f = &m->f;
  memset(m->at, 0, sizeof(m->at));
  for (uint32_t e = 0; e < f->elements; e++) {
    uint32_t word = slot_word(words, *inout_at + e / f->each);
    uint32_t shift = e % f->each * f->bits;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
      uint32_t lane = (uint32_t)__builtin_ctz(left);
      uint64_t bits =
          matrix_read_lane(warp, word, lane, f->bits == 64) >> shift;
      m->at[matrix_place(f, which, opaque, lane, e)] =
          matrix_decode(f->type, bits);
    }
  }
  *inout_at += f->registers;
}

static void matrix_scatter(const kilni_soft_warp_t* warp,
                           const kilni_soft_instr_t* words, uint32_t at,
                           bool opaque, const matrix_t* m) {
  const kilni_soft_fragment_t* f = &m->f;
  for (uint32_t r = 0; r < f->registers; r++) {
    uint32_t word = slot_word(words, at + r);
    for (uint32_t left = warp->mask; left; left &= left - 1) {
      uint32_t lane = (uint32_t)__builtin_ctz(left);
      uint64_t bits = 0;
      for (uint32_t i = 0; i < f->each; i++) {
        uint32_t from =
            matrix_place(f, KILNI_SOFT_MATRIX_D, opaque, lane, r * f->each + i);
        bits |= encode(f->type, m->at[from]) << (i * f->bits);
      }
      matrix_write_lane(warp, word, lane, f->bits == 64, bits);
    }
  }
}

static element_t dot(const matrix_t* a, const matrix_t* b, element_t c,
                     uint32_t row, uint32_t column, bool clamps) {
  uint32_t depth = a->f.columns;
  for (uint32_t k = 0; k < depth; k++) {
    element_t x = a->at[row * depth + k];
    element_t y = b->at[k * b->f.columns + column];
    if (matrix_is_whole(a->f.type)) {
      c.whole += x.whole * y.whole;
    } else {
      c.real = fma(x.real, y.real, c.real);
    }
  }
  if (clamps && matrix_is_whole(a->f.type)) {
    if (c.whole > INT32_MAX) c.whole = INT32_MAX;
    if (c.whole < INT32_MIN) c.whole = INT32_MIN;
  }
  return c;
}

// Waits for every living lane of the warp at this instruction.
static bool whole_warp(kilni_soft_run_t* run, const kilni_soft_instr_t* instr,
                       const kilni_soft_instr_t** out_next) {
  return kilni_soft_collect(run, instr, KILNI_SOFT_FULL_MASK, out_next);
}

static const kilni_soft_instr_t* matrix_behind(const kilni_soft_instr_t* instr,
                                               uint32_t before, uint32_t last) {
  return instr + 1 + (before + 3) / 4 + (last + 3) / 4;
}

// Words: the registers of a, b and c, then, in word instructions of their own,
// those of d.
const kilni_soft_instr_t* kilni_soft_mma(kilni_soft_run_t* run,
                                         const kilni_soft_instr_t* instr) {
  const kilni_soft_instr_t* next;
  if (!whole_warp(run, instr, &next)) return next;
  uint32_t aux = instr->aux;
  bool opaque = aux & KILNI_SOFT_MATRIX_OPAQUE;
  matrix_t m[4];
  uint32_t at = 0;
  for (uint32_t w = 0; w < 4; w++) {
    m[w].f = kilni_soft_fragment(KILNI_SOFT_MATRIX_SHAPE(aux), w,
                                 KILNI_SOFT_MATRIX_TYPE(aux, w), opaque);
    if (w < KILNI_SOFT_MATRIX_D) {
      matrix_gather(&run->warp, instr + 1, &at, w, opaque, &m[w]);
    }
  }
  matrix_t* d = &m[KILNI_SOFT_MATRIX_D];
  for (uint32_t row = 0; row < d->f.rows; row++) {
    for (uint32_t column = 0; column < d->f.columns; column++) {
      uint32_t i = row * d->f.columns + column;
      d->at[i] = dot(&m[KILNI_SOFT_MATRIX_A], &m[KILNI_SOFT_MATRIX_B],
                     m[KILNI_SOFT_MATRIX_C].at[i], row, column,
                     (aux & KILNI_SOFT_MATRIX_SATFINITE) != 0);
    }
  }
  matrix_scatter(&run->warp, instr + 1 + (at + 3) / 4, 0, opaque, d);
  return matrix_behind(instr, at, d->f.registers);
}

// ---- Memory ----

static KILNI_SOFT_RACY uint64_t load_bytes(const void* host, uint32_t bytes) {
  const uint8_t* from = host;
  uint64_t value = 0;
  for (uint32_t i = 0; i < bytes; i++) value |= (uint64_t)from[i] << (8 * i);
  return value;
}

static KILNI_SOFT_RACY void store_bytes(void* host, uint64_t value,
                                        uint32_t bytes) {
  uint8_t* to = host;
  for (uint32_t i = 0; i < bytes; i++) to[i] = (uint8_t)(value >> (8 * i));
}

// The host address of a lane's element; NULL after a fault.
static void* element_host(kilni_soft_run_t* run,
                          const kilni_soft_instr_t* instr,
                          const kilni_soft_fragment_t* f, uint32_t lane,
                          uint32_t e, bool is_store) {
  uint32_t aux = instr->aux;
  uint32_t at = matrix_place(f, 0, true, lane, e);
  uint64_t row = at / f->columns;
  uint64_t column = at % f->columns;
  bool by_column = aux & KILNI_SOFT_MATRIX_BY_COLUMN;
  uint64_t stride = by_column ? f->rows : f->columns;
  if (aux & KILNI_SOFT_MATRIX_HAS_STRIDE) {
    stride = matrix_read_lane(&run->warp, instr->b, lane, false);
  }
  uint64_t index = by_column ? column * stride + row : row * stride + column;
  uint32_t bytes = f->bits / 8;
  uint64_t address = matrix_read_lane(&run->warp, instr->a, lane, true);
  return kilni_soft_access_watched(run, instr, lane,
                                   KILNI_SOFT_MATRIX_SPACE(aux),
                                   address + index * bytes, bytes, is_store);
}

static kilni_soft_fragment_t fragment_of(uint32_t aux) {
  return kilni_soft_fragment(KILNI_SOFT_MATRIX_SHAPE(aux),
                             KILNI_SOFT_MATRIX_WHICH(aux),
                             KILNI_SOFT_MATRIX_TYPE(aux, 0), 1);
}

// `a`, the address; `b`, the stride in elements. The registers follow.
const kilni_soft_instr_t* kilni_soft_wmma_load(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr) {
  const kilni_soft_instr_t* next;
  if (!whole_warp(run, instr, &next)) return next;
  kilni_soft_fragment_t f = fragment_of(instr->aux);
  for (uint32_t left = run->warp.mask; left; left &= left - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(left);
    uint64_t values[MOST_REGISTERS] = {0};
    for (uint32_t e = 0; e < f.elements; e++) {
      const void* host = element_host(run, instr, &f, lane, e, false);
      if (!host) return NULL;
      values[e / f.each] |= load_bytes(host, f.bits / 8)
                            << (e % f.each * f.bits);
    }
    for (uint32_t r = 0; r < f.registers; r++) {
      matrix_write_lane(&run->warp, slot_word(instr + 1, r), lane, f.bits == 64,
                        values[r]);
    }
  }
  return matrix_behind(instr, 0, f.registers);
}

const kilni_soft_instr_t* kilni_soft_wmma_store(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr) {
  const kilni_soft_instr_t* next;
  if (!whole_warp(run, instr, &next)) return next;
  kilni_soft_fragment_t f = fragment_of(instr->aux);
  for (uint32_t left = run->warp.mask; left; left &= left - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(left);
    for (uint32_t e = 0; e < f.elements; e++) {
      void* host = element_host(run, instr, &f, lane, e, true);
      if (!host) return NULL;
      uint64_t bits = matrix_read_lane(
          &run->warp, slot_word(instr + 1, e / f.each), lane, f.bits == 64);
      store_bytes(host, bits >> (e % f.each * f.bits), f.bits / 8);
    }
  }
  return matrix_behind(instr, 0, f.registers);
}

// Matrices of 8 by 8 of 16 bits: row `r` of matrix `j` is at the address that
// lane 8 j + r gives; lane l has the elements 2 (l % 4) and the next of row
// l / 4, or, transposed, of column l / 4.
static bool each_row(kilni_soft_run_t* run, const kilni_soft_instr_t* instr,
                     uint16_t rows[32][8], bool is_store) {
  uint32_t count = KILNI_SOFT_MATRIX_COUNT(instr->aux) * 8;
  for (uint32_t lane = 0; lane < count; lane++) {
    if (!(run->warp.mask >> lane & 1u)) continue;
    uint8_t* host = kilni_soft_access_watched(
        run, instr, lane, KILNI_SOFT_MATRIX_SPACE(instr->aux),
        matrix_read_lane(&run->warp, instr->a, lane, true), 16, is_store);
    if (!host) return false;
    for (uint32_t i = 0; i < 8; i++) {
      if (is_store) {
        store_bytes(host + 2 * i, rows[lane][i], 2);
      } else {
        rows[lane][i] = (uint16_t)load_bytes(host + 2 * i, 2);
      }
    }
  }
  return true;
}

static uint16_t* cell(uint16_t rows[32][8], uint32_t aux, uint32_t matrix,
                      uint32_t lane, uint32_t half) {
  uint32_t along = lane % 4 * 2 + half;
  uint32_t across = lane / 4;
  if (aux & KILNI_SOFT_MATRIX_TRANS) return &rows[8 * matrix + along][across];
  return &rows[8 * matrix + across][along];
}

const kilni_soft_instr_t* kilni_soft_ldmatrix(kilni_soft_run_t* run,
                                              const kilni_soft_instr_t* instr) {
  const kilni_soft_instr_t* next;
  if (!whole_warp(run, instr, &next)) return next;
  uint16_t rows[32][8] = {{0}};
  if (!each_row(run, instr, rows, false)) return NULL;
  uint32_t count = KILNI_SOFT_MATRIX_COUNT(instr->aux);
  for (uint32_t j = 0; j < count; j++) {
    for (uint32_t left = run->warp.mask; left; left &= left - 1) {
      uint32_t lane = (uint32_t)__builtin_ctz(left);
      uint32_t value = *cell(rows, instr->aux, j, lane, 0) |
                       (uint32_t)*cell(rows, instr->aux, j, lane, 1) << 16;
      matrix_write_lane(&run->warp, slot_word(instr + 1, j), lane, false,
                        value);
    }
  }
  return matrix_behind(instr, 0, count);
}

static void take_cells(kilni_soft_run_t* run, uint32_t aux, uint32_t matrix,
                       uint32_t word, uint16_t rows[32][8]) {
  for (uint32_t left = run->warp.mask; left; left &= left - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(left);
    uint32_t value = (uint32_t)matrix_read_lane(&run->warp, word, lane, false);
    *cell(rows, aux, matrix, lane, 0) = (uint16_t)value;
    *cell(rows, aux, matrix, lane, 1) = (uint16_t)(value >> 16);
  }
}

const kilni_soft_instr_t* kilni_soft_stmatrix(kilni_soft_run_t* run,
                                              const kilni_soft_instr_t* instr) {
  const kilni_soft_instr_t* next;
  if (!whole_warp(run, instr, &next)) return next;
  uint16_t rows[32][8] = {{0}};
  uint32_t count = KILNI_SOFT_MATRIX_COUNT(instr->aux);
  for (uint32_t j = 0; j < count; j++) {
    take_cells(run, instr->aux, j, slot_word(instr + 1, j), rows);
  }
  if (!each_row(run, instr, rows, true)) return NULL;
  return matrix_behind(instr, 0, count);
}

// `d`, `a`: one matrix of 8 by 8, transposed.
const kilni_soft_instr_t* kilni_soft_movmatrix(
    kilni_soft_run_t* run, const kilni_soft_instr_t* instr) {
  const kilni_soft_instr_t* next;
  if (!whole_warp(run, instr, &next)) return next;
  uint16_t rows[32][8] = {{0}};
  take_cells(run, KILNI_SOFT_MATRIX_TRANS, 0, instr->a, rows);
  for (uint32_t left = run->warp.mask; left; left &= left - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(left);
    uint32_t value =
        *cell(rows, 0, 0, lane, 0) | (uint32_t)*cell(rows, 0, 0, lane, 1) << 16;
    matrix_write_lane(&run->warp, instr->d, lane, false, value);
  }
  return instr + 1;
}
