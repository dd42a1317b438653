// SPDX-License-Identifier: Apache-2.0
//
// bench: the kernels of the benchmarks as plain C: pictures.
#include "bench_plain.h"

#include <stdbool.h>

static void mandelbrot_pixel(uint8_t* pixel, int x, int y, int width,
                             int height, int limit) {
  float step = 3.0f / (float)width;
  float cr = -2.2f + (float)x * step;
  float ci = (float)(y - height / 2) * step;
  float zr = 0.0f, zi = 0.0f;
  int n = 0;
  for (; n < limit; n++) {
    float rr = zr * zr;
    float ii = zi * zi;
    if (rr + ii > 4.0f) break;
    zi = (zr + zr) * zi + ci;
    zr = (rr - ii) + cr;
  }
  bool inside = n == limit;
  pixel[0] = (uint8_t)(inside ? 0 : (n * 9) & 255);
  pixel[1] = (uint8_t)(inside ? 0 : (n * 5 + 60) & 255);
  pixel[2] = (uint8_t)(inside ? 0 : (n * 3 + 120) & 255);
}

void bench_plain_mandelbrot(void* const* buffers, const int32_t* scalars) {
  uint8_t* out = buffers[0];
  int width = scalars[0], height = scalars[1];
  for (int y = 0; y < height; y++) {
    for (int x = 0; x < width; x++) {
      mandelbrot_pixel(out + 3 * (y * width + x), x, y, width, height,
                       scalars[2]);
    }
  }
}

static int clamp(int value, int most) {
  return value < 0 ? 0 : value > most ? most : value;
}

// The rows first, then the columns, as the kernel does.
void bench_plain_blur(void* const* buffers, const int32_t* scalars) {
  const uint8_t* in = buffers[0];
  uint8_t* out = buffers[1];
  static int rows[BENCH_PLAIN_MAX_PIXELS];
  int width = scalars[0], height = scalars[1];
  for (int y = 0; y < height; y++) {
    const uint8_t* row = in + y * width;
    for (int x = 0; x < width; x++) {
      rows[y * width + x] = row[clamp(x - 2, width - 1)] +
                            4 * row[clamp(x - 1, width - 1)] + 6 * row[x] +
                            4 * row[clamp(x + 1, width - 1)] +
                            row[clamp(x + 2, width - 1)];
    }
  }
  for (int y = 0; y < height; y++) {
    const int* r[5];
    for (int i = 0; i < 5; i++) {
      r[i] = rows + clamp(y + i - 2, height - 1) * width;
    }
    for (int x = 0; x < width; x++) {
      int sum = r[0][x] + 4 * r[1][x] + 6 * r[2][x] + 4 * r[3][x] + r[4][x];
      out[y * width + x] = (uint8_t)((sum + 128) >> 8);
    }
  }
}
