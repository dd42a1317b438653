// SPDX-License-Identifier: Apache-2.0
//
// tests: references of the kernels about groups of threads and atomics.
#include <math.h>
#include <string.h>

#include "kernel_reference.h"

// ---- cooperative_tiles.cu ----

// What a tile of `size` lanes around lane i makes of x. thread-compatible
typedef struct tile_t {
  int32_t sum, least, greatest;
  uint32_t positive;   // lanes of the tile with x > 0
  uint32_t same;       // lanes with the same two low bits
  uint32_t both, odd;  // and, exclusive or
} tile_t;

static tile_t tile_of(const int32_t* in, uint32_t i, uint32_t size) {
  const int32_t* x = in + i / size * size;
  tile_t t = {.least = x[0], .greatest = x[0], .both = UINT32_MAX};
  for (uint32_t n = 0; n < size; n++) {
    t.sum += x[n];
    t.least = x[n] < t.least ? x[n] : t.least;
    t.greatest = x[n] > t.greatest ? x[n] : t.greatest;
    t.positive |= (uint32_t)(x[n] > 0) << n;
    t.same |= (uint32_t)((x[n] & 3) == (in[i] & 3)) << n;
    t.both &= (uint32_t)x[n];
    t.odd ^= (uint32_t)x[n];
  }
  return t;
}

static void tiles(kernel_case_t* c) {
  const int32_t* in = kernel_in(c, "in");
  int32_t* o = kernel_out(c, "out");
  for (uint32_t i = 0; i < 128; i++, o += 8) {
    tile_t eight = tile_of(in, i, 8);
    tile_t four = tile_of(in, i, 4);
    o[0] = tile_of(in, i, 32).sum;
    o[1] = eight.sum * 100 + (int32_t)(i % 8);
    o[2] = four.sum * 100 + (int32_t)(i % 8 / 4);
    o[3] = in[i / 8 * 8 + 5];
    o[4] = in[i % 8 >= 2 ? i - 2 : i];
    o[5] = (int32_t)eight.positive;
    o[6] = (four.greatest > 50) * 2 + (four.least > -50);
    o[7] = (int32_t)four.same + 32 * 256;
  }
}

static void together(kernel_case_t* c) {
  const int32_t* in = kernel_in(c, "in");
  uint32_t* o = kernel_out(c, "out");
  for (uint32_t i = 0; i < 128; i++, o += 4) {
    const int32_t* warp = in + i / 32 * 32;
    bool found = false;
    for (uint32_t n = 0; n < 32; n++) {
      if ((warp[n] > 0) == (in[i] > 0)) {
        o[0] += 64 + (n < i % 32);
        if (!found) o[1] = (uint32_t)warp[n];
        found = true;
      }
      if ((warp[n] & 3) == (in[i] & 3)) o[2] += 64 + (n < i % 32);
    }
    o[3] = in[i] & 1 ? 7 : 0;
  }
}

// ---- cooperative_reduce.cu ----

static void reduce(kernel_case_t* c) {
  const int32_t* in = kernel_in(c, "in");
  int32_t* o = kernel_out(c, "out");
  int64_t* wide = kernel_out(c, "wide");
  for (uint32_t i = 0; i < 128; i++, o += 8) {
    tile_t warp = tile_of(in, i, 32);
    tile_t half = tile_of(in, i, 16);
    o[0] = warp.sum;
    o[1] = half.least;
    o[2] = half.greatest;
    o[3] = (int32_t)warp.both;
    o[4] = (int32_t)half.odd;
    o[5] = half.sum;
    for (uint32_t n = i / 32 * 32; n < i / 32 * 32 + 32; n++) {
      if ((in[n] & 1) == (in[i] & 1)) o[6] += in[n];
    }
    o[7] = half.greatest;
    wide[i] = (int64_t)warp.sum * ((int64_t)1 << 33);
  }
}

static void scans(kernel_case_t* c) {
  const int32_t* in = kernel_in(c, "in");
  int32_t* o = kernel_out(c, "out");
  for (uint32_t i = 0; i < 128; i++, o += 3) {
    for (uint32_t n = i / 32 * 32; n <= i; n++) o[0] += in[n];
    for (uint32_t n = i / 8 * 8; n < i; n++) o[1] += in[n];
    o[2] = in[i];
    for (uint32_t n = i / 8 * 8; n < i; n++) {
      o[2] = in[n] > o[2] ? in[n] : o[2];
    }
  }
}

static void relax(kernel_case_t* c) {
  uint32_t* from = kernel_out(c, "cells");
  uint32_t* to = kernel_out(c, "other");
  uint32_t count = kernel_u32(c, "count");
  for (uint32_t s = 0; s < kernel_u32(c, "steps"); s++) {
    for (uint32_t i = 0; i < count; i++) {
      uint32_t left = from[(i + count - 1) % count];
      to[i] = (left ^ from[(i + 1) % count]) * 3 + from[i];
    }
    uint32_t* swap = from;
    from = to;
    to = swap;
  }
}

// ---- atomics_scopes.cu: one thread after the other ----

static void least_of(uint32_t* at, uint32_t x, bool is_signed) {
  uint32_t flip = is_signed ? 0x80000000 : 0;
  if ((x ^ flip) < (*at ^ flip)) *at = x;
}

static void most_of(uint32_t* at, uint32_t x, bool is_signed) {
  uint32_t flip = is_signed ? 0x80000000 : 0;
  if ((x ^ flip) > (*at ^ flip)) *at = x;
}

static void least_of64(uint64_t* at, uint64_t x, bool is_signed) {
  uint64_t flip = (uint64_t)is_signed << 63;
  if ((x ^ flip) < (*at ^ flip)) *at = x;
}

static void most_of64(uint64_t* at, uint64_t x, bool is_signed) {
  uint64_t flip = (uint64_t)is_signed << 63;
  if ((x ^ flip) > (*at ^ flip)) *at = x;
}

static void increment(uint32_t* at, uint32_t most) {
  *at = *at >= most ? 0 : *at + 1;
}

static void decrement(uint32_t* at, uint32_t most) {
  *at = *at == 0 || *at > most ? most : *at - 1;
}

static void scopes_of(uint32_t x, uint32_t* w, uint64_t* v) {
  uint64_t y = x * 0x9e3779b97f4a7c15ull;
  w[0] += x, w[1] += x, w[2] -= x, w[3] -= x, w[4] -= x;
  least_of(&w[5], x, true);
  least_of(&w[6], x, false);
  most_of(&w[7], x, true);
  most_of(&w[8], x, false);
  w[9] &= x | 0xffff, w[10] &= x | 0xff;
  w[11] |= x & 0x11111111, w[12] |= x & 0x10101;
  w[13] ^= x, w[14] ^= x;
  w[15] = 77, w[16] = 0u - 77;
  increment(&w[17], 9);
  decrement(&w[18], 9);
  w[19]++, w[20]--;
  v[0] += y, v[1] += y;
  least_of64(&v[2], y, false);
  least_of64(&v[3], y, true);
  most_of64(&v[4], y, true);
  most_of64(&v[5], y, false);
  v[6] &= y | 0xffffffff, v[7] |= y & 0x0101010101010101;
  v[8] ^= y, v[9] = 0x123456789abc;
}

static void scopes(kernel_case_t* c) {
  const uint32_t* in = kernel_in(c, "in");
  uint32_t* free_words = kernel_out(c, "free");
  uint64_t* free_wide = kernel_out(c, "free_wide");
  for (int i = 0; i < 256; i++) {
    scopes_of(in[i], kernel_out(c, "words"), kernel_out(c, "wide"));
  }
  free_words[0] = 1000, free_words[1] = 1;
  free_words[2] = 0u - 5, free_words[3] = 0u - 1;
  free_wide[0] = (uint64_t)9 << 40, free_wide[1] = (uint64_t)1 << 50;
}

static void by_block(kernel_case_t* c) {
  const uint32_t* in = kernel_in(c, "in");
  uint32_t* words = kernel_out(c, "words");
  uint64_t* wide = kernel_out(c, "wide");
  for (uint32_t b = 0; b < 4; b++) {
    uint32_t* w = words + b * 4;
    uint32_t l[8] = {0, 0, 0, 0, ~0u, ~0u, ~0u, ~0u};
    uint64_t lw[4] = {0, 0, UINT64_MAX, UINT64_MAX};
    for (uint32_t t = 0; t < 64; t++) {
      uint32_t x = in[b * 64 + t];
      uint64_t y = (uint64_t)x << 17 ^ x;
      w[0] += x;
      most_of(&w[1], x, true);
      w[2] ^= x;
      w[3]++;
      l[0] += x;
      most_of(&l[1], x, false);
      l[2] |= x & 0x00ff00ff;
      increment(&l[3], 50);
      l[4] &= x | 0xff;
      least_of(&l[5], x, true);
      l[6] -= x;
      decrement(&l[7], 60);
      lw[0] += y;
      most_of64(&lw[1], y, false);
      least_of64(&lw[2], y, false);
      lw[3] &= y | 0xfff;
    }
    memcpy(words + 16 + b * 8, l, sizeof(l));
    memcpy(wide + b * 4, lw, sizeof(lw));
  }
}

// ---- atomics_float.cu, atomics_half.cu ----

static void sums(kernel_case_t* c) {
  const int32_t* in = kernel_in(c, "in");
  float* f = kernel_out(c, "singles");
  double* d = kernel_out(c, "doubles");
  for (int i = 0; i < 256; i++) {
    f[0] += (float)in[i];
    f[1] += (float)in[i] * 0.5f;
    f[2] += (float)(in[i] & 15);
    d[0] += in[i];
    d[1] += in[i] * 0.25;
    d[2] += in[i] & 31;
  }
  f[3] = 2.5f;
}

static void swaps(kernel_case_t* c) {
  const float* in = kernel_in(c, "in");
  float* most = kernel_out(c, "most");
  uint16_t* halves = kernel_out(c, "halves");
  int power = 0;
  for (int i = 0; i < 256; i++) {
    if (in[i] > most[0]) most[0] = in[i];
    if (fabsf(in[i]) > most[1]) most[1] = fabsf(in[i]);
    power += i % 2 == 1 ? -1 : i % 16 == 0 ? 2 : 1;
    halves[i % 8] = (uint16_t)(halves[i % 8] + i);
  }
  *(double*)kernel_out(c, "product") = ldexp(1, power);
}

// A whole number as a float of `bits` bits below the exponent, which it fits.
static uint16_t small_float(int32_t x, int bits, int bias) {
  if (x == 0) return 0;
  uint32_t size = (uint32_t)(x < 0 ? -x : x);
  int power = 0;
  while (size >> power > 1) power++;
  uint32_t rest = size - ((uint32_t)1 << power);
  uint32_t fraction =
      power <= bits ? rest << (bits - power) : rest >> (power - bits);
  return (uint16_t)((x < 0 ? 0x8000u : 0u) | (uint32_t)(power + bias) << bits |
                    fraction);
}

static void half_sums(kernel_case_t* c) {
  const uint8_t* in = kernel_in(c, "in");
  uint16_t* out = kernel_out(c, "halves");
  int32_t sum = 0;
  int32_t low = 0;
  for (int i = 0; i < 128; i++) {
    sum += in[i] & 15;
    low += in[i] & 3;
  }
  const int32_t all[6] = {sum, -sum, sum, 128, 128, low};
  for (int i = 0; i < 6; i++) out[i] = small_float(all[i], 10, 15);
}

static void bf16_sums(kernel_case_t* c) {
  const uint8_t* in = kernel_in(c, "in");
  uint16_t* out = kernel_out(c, "bfloats");
  int32_t sum = 0;
  for (int i = 0; i < 128; i++) sum += in[i] & 1;
  const int32_t all[4] = {sum, -sum, sum, 128};
  for (int i = 0; i < 4; i++) out[i] = small_float(all[i], 7, 127);
}

const kernel_reference_t kernel_references_groups[] = {
    {"cooperative_tiles.tiles", tiles, NULL},
    {"cooperative_tiles.together", together, NULL},
    {"cooperative_reduce.reduce", reduce, NULL},
    {"cooperative_reduce.scans", scans, NULL},
    {"grid_sync.relax", relax, NULL},
    {"atomics_scopes.scopes", scopes, NULL},
    {"atomics_scopes.by_block", by_block, NULL},
    {"atomics_float.sums", sums, NULL},
    {"atomics_float.swaps", swaps, NULL},
    {"atomics_half.half_sums", half_sums, NULL},
    {"atomics_half.bf16_sums", bf16_sums, NULL},
    {NULL, NULL, NULL},
};
