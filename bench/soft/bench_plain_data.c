// SPDX-License-Identifier: Apache-2.0
//
// bench: the kernels of the benchmarks as plain C: products of matrices, a
// hash, a sort.
#include <string.h>

#include "bench_plain.h"

enum { TILE = 32, MOST_MESSAGE = 1 << 16 };

// Tiles of `b` that stay in the cache, rows that lie one after another.
#define PRODUCT(name, T)                                              \
  void name(void* const* buffers, const int32_t* scalars) {           \
    const T* restrict a = buffers[0];                                 \
    const T* restrict b = buffers[1];                                 \
    T* restrict c = buffers[2];                                       \
    int n = scalars[0];                                               \
    memset(c, 0, sizeof(T) * (unsigned)n * (unsigned)n);              \
    for (int k0 = 0; k0 < n; k0 += TILE) {                            \
      for (int j0 = 0; j0 < n; j0 += TILE) {                          \
        for (int i = 0; i < n; i++) {                                 \
          T* restrict row = c + i * n + j0;                           \
          for (int k = k0; k < k0 + TILE; k++) {                      \
            T left = a[i * n + k];                                    \
            const T* restrict right = b + k * n + j0;                 \
            for (int j = 0; j < TILE; j++) row[j] += left * right[j]; \
          }                                                           \
        }                                                             \
      }                                                               \
    }                                                                 \
  }
PRODUCT(bench_plain_product_f32, float)
PRODUCT(bench_plain_product_f64, double)

static const uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, int n) {
  return x >> n | x << (32 - n);
}

static void sha_step(uint32_t* h, const uint8_t* bytes) {
  uint32_t w[64];
  for (int t = 0; t < 16; t++) {
    const uint8_t* p = bytes + 4 * t;
    w[t] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
  }
  for (int t = 16; t < 64; t++) {
    uint32_t x = w[t - 15];
    uint32_t y = w[t - 2];
    w[t] = w[t - 16] + (turn(x, 7) ^ turn(x, 18) ^ x >> 3) + w[t - 7] +
           (turn(y, 17) ^ turn(y, 19) ^ y >> 10);
  }
  uint32_t a = h[0], b = h[1], c = h[2], d = h[3];
  uint32_t e = h[4], f = h[5], g = h[6], i = h[7];
  for (int t = 0; t < 64; t++) {
    uint32_t one = i + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +
                   ((e & f) ^ (~e & g)) + kRounds[t] + w[t];
    uint32_t two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) +
                   ((a & b) ^ (a & c) ^ (b & c));
    i = g, g = f, f = e, e = d + one;
    d = c, c = b, b = a, a = one + two;
  }
  h[0] += a, h[1] += b, h[2] += c, h[3] += d;
  h[4] += e, h[5] += f, h[6] += g, h[7] += i;
}

void bench_plain_sha256(void* const* buffers, const int32_t* scalars) {
  static const uint32_t kFirst[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                     0xa54ff53a, 0x510e527f, 0x9b05688c,
                                     0x1f83d9ab, 0x5be0cd19};
  static uint8_t message[MOST_MESSAGE];
  const uint8_t* text = buffers[0];
  uint32_t* out = buffers[1];
  uint32_t messages = (uint32_t)scalars[0];
  for (uint32_t m = 0; m < messages && m + 72 < MOST_MESSAGE; m++) {
    uint32_t total = (m + 9 + 63) / 64 * 64;
    memcpy(message, text + m, m);
    memset(message + m, 0, total - m);
    message[m] = 0x80;
    for (uint32_t i = 0; i < 4; i++) {
      message[total - 1 - i] = (uint8_t)(m * 8 >> 8 * i);
    }
    uint32_t* h = out + 8 * m;
    memcpy(h, kFirst, sizeof(kFirst));
    for (uint32_t at = 0; at < total; at += 64) sha_step(h, message + at);
  }
}

static void sort_part(uint32_t* keys, uint32_t* values, uint32_t size) {
  uint32_t key[2][BENCH_PLAIN_MOST_KEYS];
  uint32_t value[2][BENCH_PLAIN_MOST_KEYS];
  memcpy(key[0], keys, 4 * size);
  memcpy(value[0], values, 4 * size);
  for (uint32_t pass = 0; pass < 8; pass++) {
    uint32_t from = pass & 1;
    uint32_t start[17] = {0};
    for (uint32_t i = 0; i < size; i++) {
      start[(key[from][i] >> (4 * pass) & 15) + 1]++;
    }
    for (int d = 0; d < 16; d++) start[d + 1] += start[d];
    for (uint32_t i = 0; i < size; i++) {
      uint32_t at = start[key[from][i] >> (4 * pass) & 15]++;
      key[!from][at] = key[from][i];
      value[!from][at] = value[from][i];
    }
  }
  memcpy(keys, key[0], 4 * size);
  memcpy(values, value[0], 4 * size);
}

void bench_plain_radix_sort(void* const* buffers, const int32_t* scalars) {
  uint32_t* keys = buffers[0];
  uint32_t* values = buffers[1];
  uint32_t size = (uint32_t)scalars[0];
  for (int32_t part = 0; part < scalars[1]; part++) {
    sort_part(keys + (uint32_t)part * size, values + (uint32_t)part * size,
              size);
  }
}
