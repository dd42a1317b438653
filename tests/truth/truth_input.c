// SPDX-License-Identifier: Apache-2.0
//
// truth: the inputs that every form is asked with.
#include "truth_input.h"

#include <stdbool.h>

// A floating format by its field widths.
typedef struct format_t {
  uint32_t mantissa;
  uint32_t exponent;
} format_t;

static const format_t formats[TRUTH_KINDS] = {
    [TRUTH_F16] = {10, 5},  [TRUTH_BF16] = {7, 8},   [TRUTH_F32] = {23, 8},
    [TRUTH_F64] = {52, 11}, [TRUTH_F16X2] = {10, 5}, [TRUTH_BF16X2] = {7, 8},
};

static uint64_t ones(uint32_t bits) {
  return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

// splitmix64's finaliser over a counter.
static uint64_t hash(uint32_t place, uint32_t index, uint32_t draw) {
  uint64_t z = ((uint64_t)index << 8 | place << 4 | draw) +
               (uint64_t)TRUTH_GENERATOR * 0x9e3779b97f4a7c15u;
  z *= 0xd1342543de82ef95u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

uint32_t truth_kind_bytes(truth_kind_t kind) {
  switch (kind) {
    case TRUTH_PRED:
      return 1;
    case TRUTH_U16:
    case TRUTH_F16:
    case TRUTH_BF16:
      return 2;
    case TRUTH_U64:
    case TRUTH_F64:
      return 8;
    default:
      return 4;
  }
}

// ---- Floats ----

static uint64_t make(format_t f, uint64_t sign, int64_t exponent,
                     uint64_t mantissa) {
  const int64_t top = (int64_t)ones(f.exponent);
  if (exponent < 0) exponent = 0;
  if (exponent > top) exponent = top;
  return (sign & 1) << (f.mantissa + f.exponent) |
         (uint64_t)exponent << f.mantissa | (mantissa & ones(f.mantissa));
}

// Magnitudes around powers of two, as offsets from the exponent of one and
// from the mantissa of zero.
static const struct {
  int16_t exponent;
  int8_t mantissa;
} powers[] = {
    {0, 0},   {0, 1},   {-1, -1},  {-1, 0},   {-1, 1},   {-2, -1},  {1, 0},
    {2, 0},   {3, 0},   {6, -1},   {7, 0},    {7, 1},    {8, 0},    {14, -1},
    {15, 0},  {15, 1},  {16, 0},   {23, 1},   {24, 0},   {30, -1},  {31, 0},
    {31, 1},  {32, -1}, {32, 0},   {52, 1},   {53, 0},   {63, -1},  {63, 0},
    {63, 1},  {64, 0},  {126, 1},  {127, 0},  {128, 0},  {-14, 0},  {-24, 0},
    {-25, 0}, {-25, 1}, {-126, 0}, {-149, 0}, {-150, 0}, {-150, 1},
};
enum { POWERS = sizeof(powers) / sizeof(powers[0]) };

static uint64_t float_magnitude_edge(format_t f, uint32_t n) {
  const uint64_t top = ones(f.exponent);
  const uint64_t all = ones(f.mantissa);
  const uint64_t half = (uint64_t)1 << (f.mantissa - 1);
  const int64_t bias = (int64_t)(top >> 1);
  const struct {
    uint64_t exponent;
    uint64_t mantissa;
  } fixed[] = {
      {0, 0},
      {top, 0},
      {top, half},
      {top, half | 0x35},
      {top, 1},
      {top, all},
      {0, 1},
      {0, 2},
      {0, 3},
      {0, half - 1},
      {0, half},
      {0, half + 1},
      {0, all - 1},
      {0, all},
      {1, 0},
      {1, 1},
      {1, all},
      {top - 1, all},
      {top - 1, all - 1},
      {top - 1, 0},
      {top >> 1, half},
      {(top >> 1) + 1, half >> 1},
      {top >> 1, half - 1},
  };
  enum { FIXED = sizeof(fixed) / sizeof(fixed[0]) };
  if (n < FIXED) {
    return make(f, 0, (int64_t)fixed[n].exponent, fixed[n].mantissa);
  }
  n -= FIXED;
  if (n >= POWERS) n = 0;
  return make(f, 0, bias + powers[n].exponent, (uint64_t)powers[n].mantissa);
}

static uint64_t float_edge(format_t f, uint32_t n) {
  return float_magnitude_edge(f, n >> 1 & 63) |
         (uint64_t)(n & 1) << (f.mantissa + f.exponent);
}

// The low `drop` bits at or beside half of what is kept.
static uint64_t near_tie(uint64_t bits, int64_t drop, uint64_t draw) {
  if (drop <= 0 || drop > 63) return bits;
  const uint64_t half = (uint64_t)1 << (drop - 1);
  const uint64_t low[4] = {half, half - 1, half + 1, 0};
  return (bits & ~ones((uint32_t)drop)) |
         (low[draw & 3] & ones((uint32_t)drop));
}

// A number that stands near the middle of two numbers of a narrower format,
// its subnormals too.
static uint64_t float_near_narrow(format_t f, uint64_t r, uint64_t s) {
  format_t to = f.mantissa == 52 ? formats[TRUTH_F32]
                                 : formats[s & 1 ? TRUTH_F16 : TRUTH_BF16];
  if (f.mantissa <= to.mantissa) return make(f, s, (int64_t)(s >> 8), r);
  const int64_t bias = (int64_t)(ones(f.exponent) >> 1);
  const int64_t span = (int64_t)ones(to.exponent) >> 1;
  const int64_t least = 1 - span;
  const int64_t from = least - (int64_t)to.mantissa - 2;
  int64_t e = from + (int64_t)((s >> 8) % (uint64_t)(span + 2 - from));
  if (s >> 60 == 0) e = span;
  int64_t drop = (int64_t)(f.mantissa - to.mantissa);
  if (e < least) drop += least - e;
  if (drop > (int64_t)f.mantissa) drop = (int64_t)f.mantissa;
  return make(f, r >> 63, bias + e, near_tie(r, drop, s >> 4));
}

// A number at or beside a half, up to 65 bits in front of the point.
static uint64_t float_near_integer(format_t f, uint64_t r, uint64_t s) {
  const int64_t bias = (int64_t)(ones(f.exponent) >> 1);
  const int64_t e = (int64_t)(s % 68) - 2;
  const int64_t drop = (int64_t)f.mantissa - e;
  if (drop > (int64_t)f.mantissa) return make(f, r >> 63, bias + e, r & 1);
  return make(f, r >> 63, bias + e, near_tie(r, drop, s >> 32));
}

static int64_t exponent_of(format_t f, uint64_t bits) {
  return (int64_t)(bits >> f.mantissa & ones(f.exponent));
}

static uint64_t float_seeded(format_t f, uint32_t place, uint32_t index);

// An exponent near those of the operands in front of this one.
static int64_t exponent_beside(format_t f, uint32_t place, uint32_t index,
                               uint64_t s, int64_t spread) {
  const int64_t bias = (int64_t)(ones(f.exponent) >> 1);
  const int64_t delta = (int64_t)(s % (uint64_t)(2 * spread + 1)) - spread;
  if (place <= TRUTH_FIRST) return bias + delta * 3;
  const uint64_t a = float_seeded(f, TRUTH_FIRST, index);
  if (place == TRUTH_SECOND) return exponent_of(f, a) + delta;
  const uint64_t b = float_seeded(f, TRUTH_SECOND, index);
  return exponent_of(f, a) + exponent_of(f, b) - bias + delta;
}

static uint64_t float_seeded(format_t f, uint32_t place, uint32_t index) {
  const uint64_t r = hash(place, index, 1);
  const uint64_t s = hash(place, index, 2);
  const int64_t bias = (int64_t)(ones(f.exponent) >> 1);
  const int64_t wide = (int64_t)f.mantissa + 3;
  switch (hash(15, index, 0) & 15) {
    case 4:
    case 5:
      return make(f, r >> 63, bias - 20 + (int64_t)(s % 41), r);
    case 6:
      return float_near_narrow(f, r, s);
    case 7: {  // a few bits: small numbers, halves, quarters
      const uint32_t keep = 6;
      const uint32_t drop = f.mantissa > keep ? f.mantissa - keep : 0;
      return make(f, r >> 63, bias - 3 + (int64_t)(s % 10), r & ~ones(drop));
    }
    case 8:
      return float_near_integer(f, r, s);
    case 9:
    case 10:
      return make(f, r >> 63, exponent_beside(f, place, index, s, 3), r);
    case 11:
      return make(f, r >> 63, exponent_beside(f, place, index, s, wide), r);
    case 12:
    case 13:
    case 14: {  // few bits, so that sums and products are ties
      const uint32_t drop = (uint32_t)(s >> 40) % (f.mantissa + 1);
      return make(f, r >> 63, exponent_beside(f, place, index, s, wide),
                  r & ~ones(drop));
    }
    case 15:  // subnormals and what is just above them, or the very great
      return make(f, r >> 63,
                  s & 1 ? (int64_t)(s >> 8 & 3)
                        : (int64_t)ones(f.exponent) - 1 - (int64_t)(s >> 8 & 3),
                  r);
    default:
      return r & ones(1 + f.exponent + f.mantissa);
  }
}

// Every sign and exponent, with mantissas at the ends and in between.
static uint64_t float_sweep(format_t f, uint32_t at) {
  const uint32_t tops = 2u << f.exponent;
  const uint64_t half = (uint64_t)1 << (f.mantissa - 1);
  const uint32_t turn = at / tops;
  const uint64_t mantissas[8] = {
      0,    hash(0, at, 3), 1,        ones(f.mantissa),
      half, half - 1,       half + 1, hash(0, at, 4)};
  return make(f, at, (int64_t)((at % tops) >> 1),
              turn < 8 ? mantissas[turn] : hash(0, at, 5));
}

static uint64_t float_input(format_t f, truth_place_t place, uint32_t index) {
  const uint32_t pair = index - TRUTH_RAW;
  if (place == TRUTH_ONLY) {
    if (index < TRUTH_EDGES) return float_edge(f, index);
    if (index >= TRUTH_RAW && pair < TRUTH_PAIRS) return float_sweep(f, pair);
    return float_seeded(f, place, index);
  }
  if (index < TRUTH_RAW * 3 / 4) {
    return float_edge(f, (uint32_t)hash(place, index, 6) % TRUTH_EDGES);
  }
  if (index < TRUTH_RAW || pair >= TRUTH_PAIRS) {
    return float_seeded(f, place, index);
  }
  if (place == TRUTH_FIRST) return float_edge(f, pair / TRUTH_EDGES);
  if (place == TRUTH_SECOND) return float_edge(f, pair % TRUTH_EDGES);
  return float_edge(f, (uint32_t)hash(place, index, 6) % TRUTH_EDGES);
}

// ---- Integers ----

// Not inlined: gcc 12 warns of an index that cannot be.
__attribute__((noinline)) static uint64_t integer_edge(uint32_t bits,
                                                       uint32_t n) {
  static const uint64_t few[] = {
      0,          1,          2,          3,          5,          7,
      10,         15,         31,         33,         63,         65,
      127,        129,        255,        0xfffe,     0x10001,    0x7fffff,
      0x800001,   0xffffff,   0x1000001,  0x7fffffc0, 0xfffffeff, 0x55555555,
      0x01234567, 0x80008000, 0x80808080, 0x7f7f7f7f, 0xff00ff00, 0x00ffff00,
      0x7fffffbf, 0x80000080,
  };
  enum { FEW = sizeof(few) / sizeof(few[0]) };
  uint64_t value;
  if (n < FEW) {
    value = few[n % FEW];
  } else if (n < 2 * FEW) {
    value = ~few[n % FEW];
  } else {  // around powers of two, both signs
    const uint32_t m = n - 2 * FEW;
    const uint32_t shift = m / 3 * 3 % bits;
    value = ((uint64_t)1 << shift) + (uint64_t)(m % 3) - 1;
    if (m == 63) value = ones(bits) >> 1;
    if (m == 62) value = (uint64_t)1 << (bits - 1);
    if (m == 61) value = ((uint64_t)1 << (bits - 1)) + 1;
  }
  return value & ones(bits);
}

static uint64_t integer_seeded(uint32_t bits, uint32_t place, uint32_t index) {
  const uint64_t r = hash(place, index, 1);
  const uint64_t s = hash(place, index, 2);
  const uint32_t shift = (uint32_t)(s % bits);
  uint64_t value = r;
  switch (hash(15, index, 0) & 15) {
    case 4:
    case 5:
      value = (r & ones(bits)) >> shift;
      break;
    case 6:
      value = ~((r & ones(bits)) >> shift);
      break;
    case 7:
      value = (r & 127) - 64;
      break;
    case 8:
      value = ((uint64_t)1 << shift) + (r & 7) - 4;
      break;
    case 9:
    case 10: {  // what a float of 24 bits, 53, 11 or 8 would round
      static const uint32_t kept[4] = {24, 53, 11, 8};
      const uint32_t keep = kept[s >> 56 & 3];
      const uint32_t width = bits - shift;
      value = (r & ones(bits)) >> shift | (uint64_t)1 << (width - 1);
      if (width > keep) value = near_tie(value, width - keep, s >> 32);
      if (s >> 63) value = 0 - value;
      break;
    }
    case 11:
    case 12:
      if (place > TRUTH_FIRST) {
        value = integer_seeded(bits, TRUTH_FIRST, index) + (r & 3) - 1;
      }
      break;
    case 13:
      value = r & s & hash(place, index, 3);
      break;
    case 14: {  // bytes at their ends
      static const uint8_t ends[8] = {0, 1, 0x7f, 0x80, 0x81, 0xff, 0xfe, 0x40};
      value = 0;
      for (uint32_t i = 0; i < 8; i++) {
        value |= (uint64_t)ends[r >> (3 * i) & 7] << (8 * i);
      }
      break;
    }
    default:
      break;
  }
  return value & ones(bits);
}

static uint64_t integer_input(uint32_t bits, truth_place_t place,
                              uint32_t index) {
  const uint32_t pair = index - TRUTH_RAW;
  if (place == TRUTH_ONLY && index < TRUTH_EDGES) {
    return integer_edge(bits, index);
  }
  if (place != TRUTH_ONLY && index < TRUTH_RAW * 3 / 4) {
    return integer_edge(bits, (uint32_t)hash(place, index, 6) % TRUTH_EDGES);
  }
  if (place == TRUTH_ONLY || index < TRUTH_RAW || pair >= TRUTH_PAIRS) {
    return integer_seeded(bits, place, index);
  }
  if (place == TRUTH_FIRST) return integer_edge(bits, pair / TRUTH_EDGES);
  if (place == TRUTH_SECOND) return integer_edge(bits, pair % TRUTH_EDGES);
  return integer_edge(bits, (uint32_t)hash(place, index, 6) % TRUTH_EDGES);
}

// Counts: mostly in range, some just outside, some anything.
static uint64_t shift_input(truth_place_t place, uint32_t index) {
  const uint64_t r = hash(place, index, 1);
  const uint32_t pair = index - TRUTH_RAW;
  if (place == TRUTH_SECOND && index >= TRUTH_RAW && pair < TRUTH_PAIRS) {
    const uint32_t n = pair % TRUTH_EDGES;
    if (n < 72) return n;
    return integer_edge(32, n);
  }
  switch (hash(place, index, 2) & 7) {
    case 0:
      return (uint32_t)r;
    case 1:
      return r & 255;
    case 2:
      return r & 127;
    case 3:
      return (uint32_t)(0 - (r & 63));
    case 4:
      return r & 63;
    default:
      return r & 31;
  }
}

// ---- All ----

static bool is_float(truth_kind_t kind) {
  return formats[kind].mantissa != 0;
}

static uint64_t sixteen(truth_kind_t kind, truth_place_t place,
                        uint32_t index) {
  if (is_float(kind)) return float_input(formats[kind], place, index);
  return integer_input(16, place, index);
}

uint64_t truth_input(truth_kind_t kind, truth_place_t place, uint32_t index) {
  switch (kind) {
    case TRUTH_PRED:
      return hash(place, index, 1) & 1;
    case TRUTH_U16:
    case TRUTH_F16:
    case TRUTH_BF16:
      // An odd factor goes through all of them, in an order of its own.
      if (place == TRUTH_ONLY) return index * 40503u & 0xffff;
      return sixteen(kind, place, index);
    case TRUTH_U16X2:
    case TRUTH_F16X2:
    case TRUTH_BF16X2:
      // The halves take different edges, and all pairs of them.
      return sixteen(kind, place, index) |
             sixteen(
                 kind, place,
                 index < TRUTH_RAW || index - TRUTH_RAW >= TRUTH_PAIRS
                     ? index + 0x40000000u
                     : TRUTH_RAW + (index - TRUTH_RAW) * 4099u % TRUTH_PAIRS)
                 << 16;
    case TRUTH_U32:
      return integer_input(32, place, index);
    case TRUTH_U64:
      return integer_input(64, place, index);
    case TRUTH_SHIFT:
      return shift_input(place, index);
    case TRUTH_F32:
    case TRUTH_F64:
      return float_input(formats[kind], place, index);
    default:
      return 0;
  }
}
