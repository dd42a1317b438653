// SPDX-License-Identifier: Apache-2.0
//
// tests: references of the kernels that compute over arrays. Floats are added
// in the kernels' order, with no contraction, so every bit is the same.
#include <math.h>
#include <string.h>

#include "kernel_reference.h"

static void n_body(kernel_case_t* c) {
  const float* b = kernel_in(c, "bodies");
  float* speeds = kernel_out(c, "speeds");
  uint32_t count = kernel_u32(c, "count");
  float step;
  memcpy(&step, kernel_in(c, "step"), 4);
  for (uint32_t i = 0; i < count; i++) {
    float pull[3] = {0, 0, 0};
    for (uint32_t j = 0; j < count; j++) {
      float d[3];
      for (int k = 0; k < 3; k++) {
        d[k] = b[j * 4 + (uint32_t)k] - b[i * 4 + (uint32_t)k];
      }
      float square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0x1p-10f;
      float force = b[j * 4 + 3] / (square * sqrtf(square));
      for (int k = 0; k < 3; k++) pull[k] += force * d[k];
    }
    for (uint32_t k = 0; k < 3; k++) speeds[i * 3 + k] += pull[k] * step;
  }
}

// ---- life.cu: a step on 32 by 32 cells ----

static void life_step(uint8_t now[1024]) {
  uint8_t next[1024];
  for (int i = 0; i < 1024; i++) {
    int around = 0;
    for (int n = 0; n < 9; n++) {
      int x = (i + n % 3 + 31) % 32;
      int y = (i / 32 + n / 3 + 31) % 32;
      if (n != 4) around += now[y * 32 + x];
    }
    next[i] = around == 3 || (now[i] && around == 2);
  }
  memcpy(now, next, sizeof(next));
}

static void cells(kernel_case_t* c) {
  uint8_t* board = kernel_out(c, "board");
  for (int i = 0; i < 2048; i++) board[i] &= 1;
  for (uint32_t s = 0; s < kernel_u32(c, "steps"); s++) {
    life_step(board);
    life_step(board + 1024);
  }
}

static void bits(kernel_case_t* c) {
  uint32_t* rows = kernel_out(c, "rows");
  for (int b = 0; b < 4; b++) {
    uint8_t board[1024];
    for (int i = 0; i < 1024; i++) {
      board[i] = rows[b * 32 + i / 32] >> i % 32 & 1;
    }
    for (uint32_t s = 0; s < kernel_u32(c, "steps"); s++) life_step(board);
    memset(rows + b * 32, 0, 128);
    for (int i = 0; i < 1024; i++) {
      rows[b * 32 + i / 32] |= (uint32_t)board[i] << i % 32;
    }
  }
}

static void k_means(kernel_case_t* c) {
  const int32_t* points = kernel_in(c, "points");
  const int32_t* old = kernel_in(c, "centres");
  int32_t* centres = kernel_out(c, "centres");
  uint8_t* nearest = kernel_out(c, "nearest");
  int32_t* sums = kernel_out(c, "sums");
  *(uint32_t*)kernel_out(c, "done") = kernel_blocks(c);
  for (uint32_t i = 0; i < kernel_u32(c, "count"); i++) {
    int32_t least = INT32_MAX;
    for (uint32_t k = 0; k < 8; k++) {
      int32_t dx = points[i * 2] - old[k * 2];
      int32_t dy = points[i * 2 + 1] - old[k * 2 + 1];
      if (dx * dx + dy * dy >= least) continue;
      least = dx * dx + dy * dy;
      nearest[i] = (uint8_t)k;
    }
    sums[nearest[i] * 3] += points[i * 2];
    sums[nearest[i] * 3 + 1] += points[i * 2 + 1];
    sums[nearest[i] * 3 + 2]++;
  }
  for (int k = 0; k < 8; k++) {
    if (sums[k * 3 + 2] == 0) continue;
    centres[k * 2] = sums[k * 3] / sums[k * 3 + 2];
    centres[k * 2 + 1] = sums[k * 3 + 1] / sums[k * 3 + 2];
  }
}

static void matmul(kernel_case_t* c) {
  const float* a = kernel_in(c, "a");
  const float* b = kernel_in(c, "b");
  float* out = kernel_out(c, "c");
  for (int i = 0; i < 4096; i++) {
    for (int k = 0; k < 64; k++) {
      out[i] = fmaf(a[i / 64 * 64 + k], b[k * 64 + i % 64], out[i]);
    }
  }
}

static void matmul_f64(kernel_case_t* c) {
  const double* a = kernel_in(c, "a");
  const double* b = kernel_in(c, "b");
  double* out = kernel_out(c, "c");
  for (int i = 0; i < 4096; i++) {
    for (int k = 0; k < 64; k++) {
      out[i] = fma(a[i / 64 * 64 + k], b[k * 64 + i % 64], out[i]);
    }
  }
}

static void transpose(kernel_case_t* c) {
  const uint64_t* in = kernel_in(c, "in");
  uint64_t* out = kernel_out(c, "out");
  uint32_t width = kernel_u32(c, "width");
  uint32_t height = kernel_u32(c, "height");
  for (uint32_t i = 0; i < width * height; i++) {
    out[i % width * height + i / width] = in[i];
  }
}

static void transpose_bytes(kernel_case_t* c) {
  const uint8_t* in = kernel_in(c, "in");
  uint8_t* out = kernel_out(c, "out");
  for (uint32_t i = 0; i < 16384; i++) out[i % 128 * 128 + i / 128] = in[i];
}

static void stencil(kernel_case_t* c) {
  const float* in = kernel_in(c, "in");
  float* out = kernel_out(c, "out");
  for (int z = 0; z < 12; z++) {
    for (int y = 0; y < 16; y++) {
      for (int x = 0; x < 16; x++) {
        const float* at = in + (z * 16 + y) * 16 + x;
        float sides = (x > 0 ? at[-1] : 0) + (x < 15 ? at[1] : 0);
        float ends = (y > 0 ? at[-16] : 0) + (y < 15 ? at[16] : 0);
        float poles = (z > 0 ? at[-256] : 0) + (z < 11 ? at[256] : 0);
        out[at - in] = *at * 0.4f + (sides + ends + poles) * 0.1f;
      }
    }
  }
}

// ---- fft.cu ----

// Recursive, in the same order of additions; the roots as the kernel's table
// has them: cosines rounded to nine places.
static void fft_of(const float* in, int stride, int count, float* out) {
  if (count == 1) {
    memcpy(out, in, 8);
    return;
  }
  int half = count / 2;
  fft_of(in, stride * 2, half, out);
  fft_of(in + stride * 2, stride * 2, half, out + count);
  for (int k = 0; k < half; k++) {
    double angle = -6.283185307179586 * k / count;
    float c = (float)(round(cos(angle) * 1e9) / 1e9);
    float s = (float)(round(sin(angle) * 1e9) / 1e9);
    float* a = out + k * 2;
    float* b = out + (k + half) * 2;
    float re = b[0] * c - b[1] * s;
    float im = b[0] * s + b[1] * c;
    b[0] = a[0] - re;
    b[1] = a[1] - im;
    a[0] += re;
    a[1] += im;
  }
}

static void fft(kernel_case_t* c) {
  const float* in = kernel_in(c, "data");
  float* out = kernel_out(c, "data");
  for (int b = 0; b < 4; b++) fft_of(in + b * 128, 1, 64, out + b * 128);
}

// The sum that defines it.
static void field(kernel_case_t* c) {
  const uint64_t prime = 998244353;
  const uint32_t* in = kernel_in(c, "data");
  uint32_t* out = kernel_out(c, "data");
  uint64_t root = 3;  // of order 256 after this
  for (int i = 0; i < 15; i++) root = root * root % prime;
  uint64_t base = root;
  root = 1;
  for (int i = 0; i < 119; i++) root = root * base % prime;
  for (uint32_t b = 0; b < 2; b++) {
    uint64_t turn = 1;
    for (uint32_t k = 0; k < 256; k++) {
      uint64_t sum = 0;
      uint64_t w = 1;
      for (uint32_t n = 0; n < 256; n++) {
        sum = (sum + in[b * 256 + n] % prime * w) % prime;
        w = w * turn % prime;
      }
      out[b * 256 + k] = (uint32_t)sum;
      turn = turn * root % prime;
    }
  }
}

static void mandelbrot_double(kernel_case_t* c) {
  uint16_t* out = kernel_out(c, "out");
  for (int i = 0; i < 64 * 48; i++) {
    double cx = -0.743643887 + 1e-7 * (i % 64 - 32);
    double cy = 0.131825904 + 1e-7 * (i / 64 - 24);
    double x = 0;
    double y = 0;
    while (out[i] < 500 && !(x * x + y * y > 4)) {
      double next = x * x - y * y + cx;
      y = 2.0 * x * y + cy;
      x = next;
      out[i]++;
    }
  }
}

// ---- ray_tracer.cu ----

typedef struct vec_t {
  float v[3];
} vec_t;

static float dot(vec_t a, vec_t b) {
  return a.v[0] * b.v[0] + a.v[1] * b.v[1] + a.v[2] * b.v[2];
}

static vec_t along(vec_t a, vec_t d, float t) {
  for (int i = 0; i < 3; i++) a.v[i] += d.v[i] * t;
  return a;
}

static vec_t unit(vec_t a) {
  float length = sqrtf(dot(a, a));
  for (int i = 0; i < 3; i++) a.v[i] /= length;
  return a;
}

static vec_t centre(const float* sphere) {
  return (vec_t){{sphere[0] * 6 - 3, sphere[1] * 4 - 2, sphere[2] * 4 + 3}};
}

static float nearest_hit(const float* spheres, vec_t eye, vec_t ray,
                         int* which) {
  float best = -1;
  for (int i = 0; i < 12; i++) {
    vec_t to = along(centre(spheres + i * 4), eye, -1);
    float radius = spheres[i * 4 + 3] * 0.5f + 0.25f;
    float b = dot(to, ray);
    float inside = b * b - dot(to, to) + radius * radius;
    if (inside < 0) continue;
    float t = b - sqrtf(inside);
    if (t > 0.001f && (best < 0 || t < best)) {
      best = t;
      *which = i;
    }
  }
  return best;
}

static float shade_of(const float* spheres, float x, float y) {
  vec_t eye = {{0, 0, -1}};
  vec_t ray = unit((vec_t){{(x - 24) / 32, (y - 16) / 32, 1}});
  vec_t light = unit((vec_t){{0.6f, -0.8f, -0.4f}});
  float shade = 0;
  float weight = 1;
  for (int bounce = 0; bounce < 2; bounce++) {
    int hit = 0;
    int ignored = 0;
    float t = nearest_hit(spheres, eye, ray, &hit);
    if (t < 0) return shade + weight * (0.5f - 0.5f * ray.v[1]);
    vec_t at = along(eye, ray, t);
    vec_t normal = unit(along(at, centre(spheres + hit * 4), -1));
    float bright = dot(normal, light);
    if (bright > 0 && nearest_hit(spheres, at, light, &ignored) < 0) {
      shade += weight * 0.7f * bright;
    }
    ray = along(ray, normal, -2 * dot(ray, normal));
    eye = at;
    weight *= 0.3f;
  }
  return shade;
}

static void trace(kernel_case_t* c) {
  const float* spheres = kernel_in(c, "spheres");
  uint8_t* out = kernel_out(c, "out");
  for (int i = 0; i < 48 * 32; i++) {
    float shade = shade_of(spheres, (float)(i % 48), (float)(i / 48));
    shade = shade < 0 ? 0 : shade > 1 ? 1 : shade;
    out[i] = (uint8_t)(shade * 255.0f + 0.5f);
  }
}

// ---- vector_loads.cu ----

static void vectors(kernel_case_t* c) {
  float* f = kernel_out(c, "floats");
  uint32_t* p = kernel_out(c, "pairs");
  uint64_t* l = kernel_out(c, "longs");
  uint8_t* b = kernel_out(c, "bytes");
  int16_t* s = kernel_out(c, "shorts");
  for (uint32_t i = 0; i < 128; i++, f += 4, p += 2, l += 2, b += 4, s += 4) {
    float f4[4] = {f[3], -f[2], f[1], f[0]};
    memcpy(f, f4, sizeof(f4));
    uint32_t p2[2] = {p[1], p[0] + i};
    memcpy(p, p2, sizeof(p2));
    uint64_t l2[2] = {l[0] ^ l[1], l[0] & l[1]};
    memcpy(l, l2, sizeof(l2));
    uint8_t b4[4] = {(uint8_t)(b[0] + b[1]), (uint8_t)(b[1] - b[2]),
                     (uint8_t)(b[2] * b[3]), (uint8_t)~b[0]};
    memcpy(b, b4, sizeof(b4));
    int16_t s4[4] = {(int16_t)(s[3] >> 1), (int16_t)(s[2] - s[0]),
                     (int16_t)(s[0] ^ s[1]), (int16_t)-s[1]};
    memcpy(s, s4, sizeof(s4));
  }
}

static void unaligned(kernel_case_t* c) {
  const uint8_t* in = kernel_in(c, "in");
  uint8_t* out = kernel_out(c, "out");
  for (int i = 0; i < 64; i++) {
    memcpy(out + 16 * i, in + 4 * i, 3);
    for (int n = 0; n < 11; n++) {
      out[16 * i + 3 + n] = (uint8_t)(in[13 * i + 1 + n] ^ n);
    }
  }
}

// ---- constant_memory.cu ----

static void filter(kernel_case_t* c) {
  const float* weights = kernel_in(c, "weights");
  const uint8_t* order = kernel_in(c, "order");
  const float* in = kernel_in(c, "in");
  float* out = kernel_out(c, "out");
  int64_t* picked = kernel_out(c, "picked");
  for (int i = 0; i < 128; i++) {
    for (int k = 0; k < 9; k++) out[i] += weights[k] * in[i + k];
    picked[i] = order[i * 7 % 64] + *(const int64_t*)kernel_in(c, "offset");
  }
}

static void tally(kernel_case_t* c) {
  const uint32_t* counters = kernel_in(c, "counters");
  uint32_t* out = kernel_out(c, "out");
  for (int i = 0; i < 4; i++) out[i] = counters[i] + 32;
  *(uint32_t*)kernel_out(c, "turn") = kernel_blocks(c);
}

const kernel_reference_t kernel_references_data[] = {
    {"n_body.n_body", n_body, NULL},
    {"life.cells", cells, NULL},
    {"life.bits", bits, NULL},
    {"k_means.k_means", k_means, NULL},
    {"matmul_tiled.matmul", matmul, NULL},
    {"matmul_tiled.matmul_f64", matmul_f64, NULL},
    {"transpose_padded.transpose", transpose, NULL},
    {"transpose_padded.transpose_bytes", transpose_bytes, NULL},
    {"stencil_3d.stencil", stencil, NULL},
    {"fft.fft", fft, NULL},
    {"fft.field", field, NULL},
    {"mandelbrot_double.mandelbrot_double", mandelbrot_double, NULL},
    {"ray_tracer.trace", trace, NULL},
    {"vector_loads.vectors", vectors, NULL},
    {"vector_loads.unaligned", unaligned, NULL},
    {"constant_memory.filter", filter, NULL},
    {"constant_memory.tally", tally, NULL},
    {NULL, NULL, NULL},
};
