// SPDX-License-Identifier: Apache-2.0
//
// soft: kernels that NVRTC compiled (tests/kernels) against the same
// computation in plain C, on every lane set with one and two workers.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "soft_kit.h"
#include "test_tree.h"

static soft_kit_t kit;

static void load(const char* name) {
  char path[512];
  snprintf(path, sizeof(path), "%s/tests/kernels/%s.cu.ptx", test_tree(), name);
  uint8_t* text;
  size_t size;
  assert_true(kiln_status_is_ok(kilni_base_file_read(
      kiln_allocator_libc(), path, 1 << 24, &text, &size)));
  soft_kit_load(&kit, (const char*)text);
  kilni_base_file_free(kiln_allocator_libc(), text, size);
}

// The generators of tests/kernels/README.md.
static uint64_t random_at(uint64_t seed, uint64_t i) {
  uint64_t x = seed * 0x9e3779b97f4a7c15ull + i;
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

static void fill_bits(uint32_t* out, uint32_t count, uint64_t seed) {
  for (uint32_t i = 0; i < count; i++) out[i] = (uint32_t)random_at(seed, i);
}

static void fill_small(int32_t* out, uint32_t count, uint64_t seed) {
  for (uint32_t i = 0; i < count; i++) {
    out[i] = (int32_t)((random_at(seed, i) >> 33) % 201) - 100;
  }
}

static void fill_unit(float* out, uint32_t count, uint64_t seed) {
  for (uint32_t i = 0; i < count; i++) {
    out[i] = (float)(random_at(seed, i) >> 40) * 0x1p-24f;
  }
}

// A parameter buffer. one-thread
typedef struct params_t {
  uint8_t bytes[128];
  size_t size;
} params_t;

static void add(params_t* params, const void* value, size_t size) {
  params->size = (params->size + size - 1) / size * size;
  memcpy(params->bytes + params->size, value, size);
  params->size += size;
}

static uint64_t add_buffer(params_t* params, const void* data, size_t size) {
  uint64_t address = soft_kit_buffer(&kit, data, size);
  add(params, &address, 8);
  return address;
}

static void add_i32(params_t* params, int32_t value) {
  add(params, &value, 4);
}

static void launch(const char* entry, const uint32_t grid[3],
                   const uint32_t block[3], uint32_t shared,
                   const params_t* params) {
  if (soft_kit_launch(&kit, entry, grid, block, shared, params->bytes,
                      params->size) != KILNI_SOFT_FAULT_NONE) {
    fail_msg("%s", kit.report);
  }
}

// --- divergence.cu -----------------------------------------------------------

static void diverge_one(int32_t x, int32_t* out) {
  int steps = 0;
  int odd = 0;
  x &= 0xffff;
  while (x != 1) {
    if (steps > 200) break;
    steps++;
    if (x <= 0) {
      *out = -steps;
      return;
    }
    if (x % 2 == 0) {
      x /= 2;
      continue;
    }
    odd++;
    x = 3 * x + 1;
  }
  int which = steps % 7;
  if (which == 0) {
    odd += 100;
  } else if (which == 1 || which == 2) {
    if (which == 1) odd *= 3;
    odd -= 7;
  } else if (which == 3) {
    if (odd & 1) return;
    odd = ~odd;
  } else if (which == 5) {
    odd = steps << 3;
  } else {
    odd ^= steps;
  }
  *out = odd * 1000 + steps;
}

static uint32_t nested_one(uint32_t lane, uint32_t limit) {
  uint32_t sum = 0;
  for (uint32_t a = 0; a < lane % 11 + 1; a++) {
    for (uint32_t b = 0;; b++) {
      if (b > limit) return sum;
      if (((a * 7 + b * 3 + lane) & 15) == 0) break;
      if ((b & 3) == (lane & 3)) continue;
      do {
        sum = sum * 31 + b + a;
      } while ((sum & 7) > (lane & 7));
    }
  }
  return sum;
}

static void test_divergence(void** state) {
  (void)state;
  static uint32_t in[480];
  static int32_t out[480];
  fill_bits(in, 480, 11);
  SOFT_KIT_EVERY_WAY(&kit) {
    load("divergence");
    params_t p = {.size = 0};
    add_buffer(&p, in, sizeof(in));
    uint64_t o = add_buffer(&p, NULL, sizeof(out));
    add_i32(&p, 450);
    launch("diverge", (uint32_t[]){5, 1, 1}, (uint32_t[]){96, 1, 1}, 0, &p);
    soft_kit_read(&kit, o, out, sizeof(out));
    for (int i = 0; i < 480; i++) {
      int32_t want = 0;
      if (i < 450) diverge_one((int32_t)in[i], &want);
      assert_int_equal(out[i], want);
    }
    p.size = 0;
    o = add_buffer(&p, NULL, 384 * 4);
    add_i32(&p, 23);
    launch("nested", (uint32_t[]){3, 1, 1}, (uint32_t[]){32, 4, 1}, 0, &p);
    soft_kit_read(&kit, o, out, 384 * 4);
    for (uint32_t i = 0; i < 384; i++) {
      assert_int_equal((uint32_t)out[i], nested_one(i % 128, 23));
    }
  }
}

// --- mandelbrot.cu -----------------------------------------------------------

static uint8_t mandelbrot_one(int px, int py) {
  float cx = -2.2f + 3.2f * ((float)px + 0.5f) / 128.0f;
  float cy = -1.2f + 2.4f * ((float)py + 0.5f) / 96.0f;
  float x = 0;
  float y = 0;
  int n = 0;
  while (n < 200) {
    float xx = x * x;
    float yy = y * y;
    if (xx + yy > 4.0f) break;
    y = 2.0f * x * y + cy;
    x = xx - yy + cx;
    n++;
  }
  return (uint8_t)(255 - n * 255 / 200);
}

static void test_mandelbrot(void** state) {
  (void)state;
  static uint8_t out[128 * 96];
  SOFT_KIT_EVERY_WAY(&kit) {
    load("mandelbrot");
    params_t p = {.size = 0};
    uint64_t o = add_buffer(&p, NULL, sizeof(out));
    add_i32(&p, 128);
    add_i32(&p, 96);
    add_i32(&p, 200);
    launch("mandelbrot", (uint32_t[]){8, 12, 1}, (uint32_t[]){16, 8, 1}, 0, &p);
    soft_kit_read(&kit, o, out, sizeof(out));
    for (int y = 0; y < 96; y++) {
      for (int x = 0; x < 128; x++) {
        assert_int_equal(out[y * 128 + x], mandelbrot_one(x, y));
      }
    }
  }
}

// --- reduction.cu ------------------------------------------------------------

static void test_reduction(void** state) {
  (void)state;
  static uint32_t in[1024];
  static float values[1024];
  static int32_t small[320];
  fill_bits(in, 1024, 21);
  fill_unit(values, 1024, 22);
  fill_small(small, 320, 23);
  SOFT_KIT_EVERY_WAY(&kit) {
    load("reduction");
    params_t p = {.size = 0};
    add_buffer(&p, in, sizeof(in));
    add_buffer(&p, values, sizeof(values));
    uint64_t sums = add_buffer(&p, NULL, 16);
    uint64_t tops = add_buffer(&p, NULL, 16);
    uint64_t totals = add_buffer(&p, NULL, 32);
    launch("reduce", (uint32_t[]){4, 1, 1}, (uint32_t[]){256, 1, 1}, 0, &p);
    uint32_t s[4];
    float f[4];
    double d[4];
    soft_kit_read(&kit, sums, s, 16);
    soft_kit_read(&kit, tops, f, 16);
    soft_kit_read(&kit, totals, d, 32);
    for (int b = 0; b < 4; b++) {
      uint32_t sum = 0;
      float top = 0;
      double total[256];
      for (int t = 0; t < 256; t++) {
        sum += in[b * 256 + t];
        top = fmaxf(top, values[b * 256 + t]);
        total[t] = (double)values[b * 256 + t] * 0.5;
      }
      for (int step = 128; step > 0; step /= 2) {
        for (int t = 0; t < step; t++) total[t] += total[t + step];
      }
      assert_int_equal(s[b], sum);
      assert_true(f[b] == top);
      assert_true(d[b] == total[0]);
    }
    p.size = 0;
    add_buffer(&p, small, sizeof(small));
    uint64_t o = add_buffer(&p, NULL, 32);
    launch("vote_barriers", (uint32_t[]){2, 1, 1}, (uint32_t[]){160, 1, 1}, 0,
           &p);
    int32_t out[8];
    soft_kit_read(&kit, o, out, 32);
    for (int b = 0; b < 2; b++) {
      int count = 0;
      int any = 0;
      for (int t = 0; t < 160; t++) {
        count += small[b * 160 + t] > 10;
        any |= small[b * 160 + t] == 100;
      }
      assert_int_equal(out[b * 4], count);
      assert_int_equal(out[b * 4 + 1], 1);
      assert_int_equal(out[b * 4 + 2], any);
      assert_int_equal(out[b * 4 + 3], 0);
    }
  }
}

// --- shuffle.cu --------------------------------------------------------------

static void shuffle_one(const uint32_t* x, uint32_t lane, uint32_t* o) {
  o[0] = x[5];
  o[1] = x[lane * 7 % 32];
  o[2] = x[lane >= 3 ? lane - 3 : lane];
  o[3] = x[lane + 4 < 32 ? lane + 4 : lane];
  o[4] = x[lane ^ 17];
  o[5] = x[lane % 8 >= 2 ? lane - 2 : lane];
  o[6] = x[lane % 16 + 5 < 16 ? lane + 5 : lane];
  o[7] = x[(lane ^ 9) / 8 <= lane / 8 ? lane ^ 9 : lane];
  o[8] = x[lane / 8 * 8 + 13 % 8];
  if (lane & 1) {
    o[9] = x[lane + 2 < 32 ? lane + 2 : lane];
  } else {
    o[9] = ~x[lane >= 2 ? lane - 2 : lane];
  }
}

static void test_shuffle(void** state) {
  (void)state;
  static uint32_t in[128];
  static uint32_t out[1280];
  fill_bits(in, 128, 31);
  SOFT_KIT_EVERY_WAY(&kit) {
    load("shuffle");
    params_t p = {.size = 0};
    add_buffer(&p, in, sizeof(in));
    uint64_t o = add_buffer(&p, NULL, sizeof(out));
    launch("shuffle", (uint32_t[]){2, 1, 1}, (uint32_t[]){64, 1, 1}, 0, &p);
    soft_kit_read(&kit, o, out, sizeof(out));
    for (uint32_t i = 0; i < 128; i++) {
      uint32_t want[10];
      shuffle_one(in + i / 32 * 32, i % 32, want);
      for (int k = 0; k < 10; k++) {
        assert_int_equal(out[i * 10 + (uint32_t)k], want[k]);
      }
    }
  }
}

// --- votes.cu ----------------------------------------------------------------

static uint32_t lanes_like(const int32_t* x, uint32_t lane, int32_t mask) {
  uint32_t same = 0;
  for (uint32_t j = 0; j < 32; j++) {
    if ((x[j] & mask) == (x[lane] & mask)) same |= 1u << j;
  }
  return same;
}

static void votes_one(const int32_t* x, uint32_t lane, uint32_t* o) {
  memset(o, 0, 64);
  uint32_t equal = 1;
  o[2] = 1;
  o[8] = (uint32_t)x[0];
  o[10] = ~0u;
  for (uint32_t j = 0; j < 32; j++) {
    uint32_t v = (uint32_t)x[j];
    o[0] |= (uint32_t)(x[j] > 0) << j;
    o[1] |= x[j] == 77;
    if (x[j] >= 101) o[2] = 0;
    if (x[j] != x[0]) equal = 0;
    o[7] += v;
    if (x[j] < (int32_t)o[8]) o[8] = v;
    if (v > o[9]) o[9] = v;
    o[10] &= v | j;
    o[11] |= v & 0xf0u;
    o[12] ^= v * 2654435761u;
    if (lane < 11 && j < 11) o[13] |= (v & 1u) << j;
    if (lane >= 11 && j >= 11) o[13] |= (v >> 1 & 1u) << j;
    if (lane >= 11 && j >= 11 && j / 4 == lane / 4) o[14] |= 1u << j;
  }
  o[3] = lanes_like(x, lane, 7);
  o[4] = 0xffffffffu + 1u;
  o[5] = equal ? 0xffffffffu + 2u : 0;
  o[6] = lanes_like(x, lane, 3);
  if (lane < 11) o[14] = 0x7ff;
  o[15] = 1;
}

static void test_votes(void** state) {
  (void)state;
  static int32_t in[128];
  static uint32_t out[2048];
  fill_small(in, 128, 41);
  SOFT_KIT_EVERY_WAY(&kit) {
    load("votes");
    params_t p = {.size = 0};
    add_buffer(&p, in, sizeof(in));
    uint64_t o = add_buffer(&p, NULL, sizeof(out));
    launch("votes", (uint32_t[]){2, 1, 1}, (uint32_t[]){64, 1, 1}, 0, &p);
    soft_kit_read(&kit, o, out, sizeof(out));
    for (uint32_t i = 0; i < 128; i++) {
      uint32_t want[16];
      votes_one(in + i / 32 * 32, i % 32, want);
      for (uint32_t k = 0; k < 16; k++) {
        assert_int_equal(out[i * 16 + k], want[k]);
      }
    }
  }
}

// --- calls.cu ----------------------------------------------------------------

static uint32_t fibonacci(uint32_t n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
static uint32_t odd(uint32_t n);
static uint32_t even(uint32_t n) {
  return n == 0 ? 1 : odd(n - 1) * 3 + 1;
}
static uint32_t odd(uint32_t n) {
  return n == 0 ? 0 : even(n - 1) * 5 + 2;
}

static int32_t step_of(uint32_t which, int32_t x) {
  if (which == 0) return 2 * x;
  if (which == 1) return x * x;
  return which == 2 ? ~x : x;
}

static void test_calls(void** state) {
  (void)state;
  static uint32_t out[256];
  static int32_t in[128];
  static double reals[128];
  fill_small(in, 128, 61);
  SOFT_KIT_EVERY_WAY(&kit) {
    load("calls");
    params_t p = {.size = 0};
    uint64_t o = add_buffer(&p, NULL, 192 * 4);
    launch("recurse", (uint32_t[]){2, 1, 1}, (uint32_t[]){48, 1, 1}, 0, &p);
    soft_kit_read(&kit, o, out, 192 * 4);
    for (uint32_t i = 0; i < 96; i++) {
      assert_int_equal(out[i * 2], fibonacci(i % 48 % 13));
      assert_int_equal(out[i * 2 + 1], even(i % 9) - odd(i % 17));
    }
    p.size = 0;
    add_buffer(&p, in, sizeof(in));
    o = add_buffer(&p, NULL, sizeof(out));
    uint64_t r = add_buffer(&p, NULL, sizeof(reals));
    launch("pointers", (uint32_t[]){2, 1, 1}, (uint32_t[]){64, 1, 1}, 0, &p);
    soft_kit_read(&kit, o, out, sizeof(out));
    soft_kit_read(&kit, r, reals, sizeof(reals));
    for (int32_t i = 0; i < 128; i++) {
      uint32_t which = (uint32_t)(in[i] ^ i) & 3u;
      int32_t first = step_of(which, in[i]);
      assert_int_equal((int32_t)out[i * 2], first);
      assert_int_equal((int32_t)out[i * 2 + 1],
                       step_of(in[i] > 0 ? 1 : 2, first & 0xff));
      assert_true(reals[i] == i * 0.5 + (double)((in[i] + 1) * (i & 63)));
    }
  }
}

// --- dynamic_shared.cu -------------------------------------------------------

static void test_dynamic_shared(void** state) {
  (void)state;
  static uint32_t in[1280];
  static uint32_t out[1280];
  static float a[1024];
  static float b[1024];
  static float c[1024];
  fill_bits(in, 1280, 101);
  fill_unit(a, 1024, 102);
  fill_unit(b, 1024, 103);
  SOFT_KIT_EVERY_WAY(&kit) {
    load("dynamic_shared");
    params_t p = {.size = 0};
    add_buffer(&p, in, sizeof(in));
    uint64_t o = add_buffer(&p, NULL, sizeof(out));
    add_i32(&p, 40);
    add_i32(&p, 32);
    launch("transpose", (uint32_t[]){3, 2, 1}, (uint32_t[]){16, 16, 1}, 1088,
           &p);
    soft_kit_read(&kit, o, out, sizeof(out));
    for (int y = 0; y < 32; y++) {
      for (int x = 0; x < 40; x++) {
        assert_int_equal(out[x * 32 + y], in[y * 40 + x]);
      }
    }
    p.size = 0;
    add_buffer(&p, a, sizeof(a));
    add_buffer(&p, b, sizeof(b));
    o = add_buffer(&p, NULL, sizeof(c));
    add_i32(&p, 32);
    launch("matmul", (uint32_t[]){2, 2, 1}, (uint32_t[]){16, 16, 1}, 2048, &p);
    soft_kit_read(&kit, o, c, sizeof(c));
    for (int row = 0; row < 32; row++) {
      for (int column = 0; column < 32; column++) {
        float sum = 0;
        for (int k = 0; k < 32; k++) {
          sum += a[row * 32 + k] * b[k * 32 + column];
        }
        assert_true(c[row * 32 + column] == sum);
      }
    }
  }
}

// --- local_memory.cu ---------------------------------------------------------

static uint32_t local_one(uint32_t in) {
  static const uint32_t primes[16] = {2,  3,  5,  7,  11, 13, 17, 19,
                                      23, 29, 31, 37, 41, 43, 47, 53};
  uint32_t stack[24];
  uint16_t counts[8] = {0};
  for (uint32_t k = 0; k < 24; k++) stack[k] = k * in;
  uint32_t at = in % 24;
  for (uint32_t r = 0; r < 40; r++) {
    uint32_t next = (stack[at] + primes[r & 15]) % 24;
    stack[at] ^= stack[next] + r;
    counts[stack[at] & 7]++;
    at = next;
  }
  uint32_t sum = 0;
  for (int k = 0; k < 24; k++) sum = sum * 33 + stack[k];
  for (int k = 0; k < 8; k++) sum = sum * 17 + counts[k];
  return sum;
}

static int64_t table_one(uint32_t x) {
  static const int64_t weights[3] = {1000000007, -42, 1ll << 40};
  static const int keys[3] = {-5, 7, 300};
  static const int tags[3][5] = {
      {1, 2, 3, 4, 5}, {9, 8, 7, 6, 5}, {0, 255, 128, 127, 1}};
  static const int halves[3][3] = {{1, -2, 3}, {30, 40, 50}, {-4, 5, -6}};
  static const char* const words[4] = {"kiln", "warp", "", "block of threads"};
  int64_t sum = weights[x % 3] + keys[x % 3] + tags[x % 3][x % 5];
  sum += halves[x % 3][(x >> 8) % 3];
  for (const char* w = words[(x >> 4) & 3]; *w; w++) {
    sum = (int64_t)((uint64_t)sum * 131 + (uint64_t)*w);
  }
  return sum;
}

static void test_local_memory(void** state) {
  (void)state;
  uint8_t bytes[128];
  uint32_t in[96];
  uint32_t out[128];
  int64_t wide[96];
  for (uint32_t i = 0; i < 128; i++) bytes[i] = (uint8_t)random_at(71, i);
  fill_bits(in, 96, 72);
  SOFT_KIT_EVERY_WAY(&kit) {
    load("local_memory");
    params_t p = {.size = 0};
    add_buffer(&p, bytes, sizeof(bytes));
    uint64_t o = add_buffer(&p, NULL, sizeof(out));
    add_i32(&p, 40);
    launch("local_arrays", (uint32_t[]){2, 1, 1}, (uint32_t[]){64, 1, 1}, 0,
           &p);
    soft_kit_read(&kit, o, out, sizeof(out));
    for (int i = 0; i < 128; i++) assert_int_equal(out[i], local_one(bytes[i]));
    p.size = 0;
    add_buffer(&p, in, sizeof(in));
    o = add_buffer(&p, NULL, sizeof(wide));
    launch("tables", (uint32_t[]){1, 1, 1}, (uint32_t[]){96, 1, 1}, 0, &p);
    soft_kit_read(&kit, o, wide, sizeof(wide));
    for (int i = 0; i < 96; i++) assert_true(wide[i] == table_one(in[i]));
  }
}

// --- atomics.cu --------------------------------------------------------------

static void check_atomics(const uint32_t* in, const uint32_t* words,
                          const uint64_t* wide) {
  uint32_t w[32] = {0};
  int32_t low = 0;
  int32_t high = 0;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < 512; i++) {
    uint32_t x = in[i];
    w[0] += x;
    w[1] -= x;
    if ((int32_t)x < low) low = (int32_t)x;
    if ((int32_t)x > high) high = (int32_t)x;
    if (x > w[5]) w[5] = x;
    w[6] |= x & 0x0ff00ff0u;
    w[7] ^= x;
    w[9] = w[9] >= 99 ? 0 : w[9] + 1;
    w[10] = w[10] == 0 || w[10] > 49 ? 49 : w[10] - 1;
    w[14] += 7;
    w[15] = w[15] * 3 + 1;
    sum += (uint64_t)x << 20;
  }
  assert_int_equal(words[0], w[0]);
  assert_int_equal(words[1], w[1]);
  assert_int_equal((int32_t)words[2], low);
  assert_int_equal((int32_t)words[3], high);
  assert_int_equal(words[4], 0);
  assert_int_equal(words[5], w[5]);
  assert_int_equal(words[6], w[6]);
  assert_int_equal(words[7], w[7]);
  assert_int_equal(words[9], w[9]);
  assert_int_equal(words[10], w[10]);
  assert_int_equal(words[11], 512);
  assert_int_equal(words[12], 1536);
  assert_int_equal(words[13] + words[14], w[14]);
  assert_int_equal(words[15], w[15]);
  assert_true(wide[0] == sum);
  assert_true(wide[3] == 0);
  assert_true(wide[4] == ~0ull);
  assert_true(wide[6] == 512ull * 512);
  assert_true(wide[7] == 42);
}

static void test_atomics(void** state) {
  (void)state;
  static uint32_t in[512];
  fill_bits(in, 512, 51);
  float total = 0;
  for (int i = 0; i < 512; i++) total += (float)(in[i] & 15);
  SOFT_KIT_EVERY_WAY(&kit) {
    load("atomics");
    params_t p = {.size = 0};
    add_buffer(&p, in, sizeof(in));
    uint64_t a = add_buffer(&p, NULL, 128);
    uint64_t b = add_buffer(&p, NULL, 128);
    uint64_t c = add_buffer(&p, NULL, 16);
    add_buffer(&p, NULL, 32);
    launch("atomics", (uint32_t[]){4, 1, 1}, (uint32_t[]){128, 1, 1}, 0, &p);
    uint32_t words[32];
    uint64_t wide[16];
    float sums[4];
    soft_kit_read(&kit, a, words, sizeof(words));
    soft_kit_read(&kit, b, wide, sizeof(wide));
    soft_kit_read(&kit, c, sums, sizeof(sums));
    check_atomics(in, words, wide);
    assert_true(sums[0] == total);
  }
}

// --- print.cu ----------------------------------------------------------------

static void test_print(void** state) {
  (void)state;
  int32_t in[8];
  int32_t index[32];
  fill_small(in, 8, 111);
  for (int i = 0; i < 32; i++) index[i] = i;
  SOFT_KIT_EVERY_WAY(&kit) {
    if (way_.workers != 1) continue;  // the kit's text takes one printer
    load("print");
    params_t p = {.size = 0};
    add_buffer(&p, in, sizeof(in));
    add_buffer(&p, NULL, 32);
    launch("print", (uint32_t[]){2, 1, 1}, (uint32_t[]){4, 1, 1}, 0, &p);
    char want[128];
    snprintf(want, sizeof(want),
             "thread 3 of block 0: %5d|%-5d|00003|+3|%x|%#X|3\n", in[3], in[3],
             (unsigned)in[3], (unsigned)in[3]);
    assert_non_null(strstr(kit.text, want));
    assert_non_null(strstr(
        kit.text, "text has x and % and -1234567890123, 18446744073709551615"));
    int lines = 0;
    for (size_t i = 0; i < kit.text_size; i++) lines += kit.text[i] == '\n';
    assert_int_equal(lines, 14);
    p.size = 0;
    add_buffer(&p, index, sizeof(index));
    add_i32(&p, 31);
    assert_int_equal(
        soft_kit_launch(&kit, "check", (uint32_t[]){1, 1, 1},
                        (uint32_t[]){32, 1, 1}, 0, p.bytes, p.size),
        KILNI_SOFT_FAULT_ASSERT);
    assert_int_equal(kit.fault.thread[0], 31);
    assert_non_null(strstr(kit.text,
                           "block: [0,0,0], thread: [31,0,0] "
                           "Assertion `in[threadIdx.x] < limit` "
                           "failed."));
  }
}

// A parameter whose address is taken is in memory, for all who use it.
static void addresses_of_parameters(void** state) {
  static const char ptx[] = SOFT_KIT_HEAD
      ".func (.param .b32 r) f(.param .align 8 .b8 p[12], .param .b32 i)\n{\n"
      ".reg .b32 %x<9>;\n.reg .b64 %a<9>;\n"
      "mov.b64 %a1, p;\nld.param.u32 %x1, [i];\n"
      "mul.wide.u32 %a2, %x1, 4;\nadd.s64 %a2, %a2, %a1;\n"
      "ld.local.u32 %x2, [%a2];\nadd.u32 %x2, %x2, 5;\n"
      "st.local.u32 [%a2], %x2;\nld.param.u32 %x3, [p+8];\n"
      "cvta.local.u64 %a3, %a1;\nld.u32 %x4, [%a3];\n"
      "mad.lo.u32 %x5, %x2, 100, %x3;\nmad.lo.u32 %x5, %x5, 100, %x4;\n"
      "st.param.b32 [r], %x5;\nret;\n}\n" SOFT_KIT_KERNEL(
          "rem.u32 %r5, %r4, 3;\n{\n.param .align 8 .b8 p[12];\n"
          ".param .b32 i;\n.param .b32 r;\nst.param.b32 [p], 1;\n"
          "st.param.b32 [p+4], 2;\nst.param.b32 [p+8], 3;\n"
          "st.param.b32 [i], %r5;\ncall.uni (r), f, (p, i);\n"
          "ld.param.b32 %r6, [r];\n}\nst.global.u32 [%rd1], %r6;\nret;\n");
  static const uint32_t want[3] = {60306, 70301, 80801};
  uint32_t out[96];
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    soft_kit_must_words(&kit, ptx, 1, 96, out, 96);
    for (uint32_t i = 0; i < 96; i++) assert_int_equal(out[i], want[i % 3]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_divergence),
      cmocka_unit_test(test_mandelbrot),
      cmocka_unit_test(test_reduction),
      cmocka_unit_test(test_shuffle),
      cmocka_unit_test(test_votes),
      cmocka_unit_test(test_calls),
      cmocka_unit_test(test_dynamic_shared),
      cmocka_unit_test(test_local_memory),
      cmocka_unit_test(addresses_of_parameters),
      cmocka_unit_test(test_atomics),
      cmocka_unit_test(test_print),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
