// SPDX-License-Identifier: Apache-2.0
//
// program: what the programs of lib/ compute, in plain C.
#include "library_plain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void plain_map(const float* x, float* y, size_t count) {
  for (size_t i = 0; i < count; i++) y[i] = (x[i] * 3 + 2) * x[i] + 1;
}

void plain_saxpy(float a, const float* x, float* y, size_t count) {
  for (size_t i = 0; i < count; i++) y[i] = fmaf(a, x[i], y[i]);
}

// The order of the sums is a part of what the program says.
static float sum_of_warp(float sums[32]) {
  for (uint32_t d = 16; d != 0; d /= 2) {
    float next[32];
    for (uint32_t i = 0; i < 32; i++) {
      next[i] = (i & d) == 0 ? sums[i] + sums[i ^ d] : sums[i ^ d] + sums[i];
    }
    memcpy(sums, next, sizeof(next));
  }
  return sums[0];
}

void plain_reduce(const float* x, size_t count, float* sums) {
  for (size_t first = 0; first < count; first += 4096) {
    float total = 0;
    for (size_t warp = 0; warp < 8; warp++) {
      float parts[32];
      for (size_t lane = 0; lane < 32; lane++) {
        parts[lane] = 0;
        for (size_t k = 0; k < 16; k++) {
          size_t i = first + k * 256 + warp * 32 + lane;
          parts[lane] += i < count ? x[i] : 0;
        }
      }
      total += sum_of_warp(parts);
    }
    sums[first / 4096] = total;
  }
}

void plain_transpose(const float* x, float* y, uint32_t w, uint32_t h) {
  for (size_t i = 0; i < h; i++) {
    for (size_t j = 0; j < w; j++) y[j * h + i] = x[i * w + j];
  }
}

void plain_histogram(const uint8_t* x, size_t count, uint32_t counts[256]) {
  memset(counts, 0, 256 * sizeof(counts[0]));
  for (size_t i = 0; i < count; i++) counts[x[i]]++;
}

// Steps until the point has left the circle, without any shortcut.
static uint32_t steps(float cr, float ci, uint32_t limit) {
  float zr = 0, zi = 0;
  for (uint32_t n = 0; n < limit; n++) {
    float rr = zr * zr, ii = zi * zi;
    if (rr + ii > 4) return n;
    zi = (zr + zr) * zi + ci;
    zr = rr - ii + cr;
  }
  return limit;
}

void plain_mandelbrot(uint8_t* picture, uint32_t w, uint32_t h,
                      uint32_t limit) {
  float scale = 3.0f / (float)w;
  for (uint32_t y = 0; y < h; y++) {
    for (uint32_t x = 0; x < w; x++) {
      float cr = -2.2f + (float)x * scale;
      float ci = (float)((int32_t)y - (int32_t)(h / 2)) * scale;
      uint32_t n = steps(cr, ci, limit);
      uint8_t* pixel = picture + ((size_t)y * w + x) * 3;
      memset(pixel, 0, 3);
      if (n == limit) continue;
      pixel[0] = (uint8_t)(n * 9);
      pixel[1] = (uint8_t)(n * 5 + 60);
      pixel[2] = (uint8_t)(n * 3 + 120);
    }
  }
}

void plain_matmul(const float* a, const float* b, float* c, uint32_t m,
                  uint32_t n, uint32_t k) {
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j < n; j++) {
      float sum = 0;
      for (size_t p = 0; p < k; p++) {
        sum = fmaf(a[i * k + p], b[p * n + j], sum);
      }
      c[i * n + j] = sum;
    }
  }
}

static int clamp(int x, int most) {
  return x < 0 ? 0 : x > most ? most : x;
}

void plain_blur(const uint8_t* picture, uint8_t* blurred, int w, int h,
                int channels) {
  static const int kWeights[5] = {1, 4, 6, 4, 1};
  for (int y = 0; y < h; y++) {
    for (int x = 0; x < w; x++) {
      for (int channel = 0; channel < channels; channel++) {
        int sum = 128;
        for (int j = 0; j < 5; j++) {
          for (int i = 0; i < 5; i++) {
            int at = clamp(y + j - 2, h - 1) * w + clamp(x + i - 2, w - 1);
            sum += kWeights[i] * kWeights[j] * picture[at * channels + channel];
          }
        }
        blurred[(y * w + x) * channels + channel] = (uint8_t)(sum / 256);
      }
    }
  }
}

static void generation(const uint8_t* from, uint8_t* to, uint32_t w,
                       uint32_t h) {
  for (uint32_t y = 0; y < h; y++) {
    for (uint32_t x = 0; x < w; x++) {
      uint32_t near = 0;
      for (uint32_t j = 0; j < 3; j++) {
        for (uint32_t i = 0; i < 3; i++) {
          if (i == 1 && j == 1) continue;
          near += from[(y + h + j - 1) % h * w + (x + w + i - 1) % w] != 0;
        }
      }
      uint8_t alive = from[y * w + x];
      to[y * w + x] = near == 3 || (near == 2 && alive != 0) ? 255 : 0;
    }
  }
}

void plain_life(const uint8_t* cells, uint8_t* next, uint32_t w, uint32_t h,
                uint32_t generations) {
  size_t size = (size_t)w * h;
  uint8_t* now = malloc(size);
  for (size_t i = 0; i < size; i++) next[i] = cells[i] != 0 ? 255 : 0;
  for (uint32_t g = 0; g < generations; g++) {
    memcpy(now, next, size);
    generation(now, next, w, h);
  }
  free(now);
}

// By what the bytes stand for: not too large, no half of a surrogate pair, and
// written in as few bytes as possible.
size_t plain_utf8_character(const uint8_t* text, size_t size) {
  static const uint32_t kLeast[5] = {0, 0, 0x80, 0x800, 0x10000};
  if (size == 0) return 0;
  uint32_t lead = text[0];
  if (lead < 0x80) return 1;
  size_t bytes = lead >> 5 == 6    ? 2
                 : lead >> 4 == 14 ? 3
                 : lead >> 3 == 30 ? 4
                                   : 0;
  if (bytes == 0 || bytes > size) return 0;
  uint32_t code = lead & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; i++) {
    if (text[i] >> 6 != 2) return 0;
    code = code << 6 | (text[i] & 63u);
  }
  if (code < kLeast[bytes] || code > 0x10ffff) return 0;
  return code >= 0xd800 && code <= 0xdfff ? 0 : bytes;
}

size_t plain_utf8(const uint8_t* text, size_t size) {
  size_t at = 0;
  while (at < size) {
    size_t bytes = plain_utf8_character(text + at, size - at);
    if (bytes == 0) break;
    at += bytes;
  }
  return size - at;
}
