// SPDX-License-Identifier: Apache-2.0
//
// soft: matrices that a warp holds together: mma in the layouts of the manual,
// wmma from memory to memory, ldmatrix, stmatrix and movmatrix. Numbers are
// small integers, so that every sum is exact in whatever order.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "soft_kit.h"

static soft_kit_t kit;

#define HEAD90 ".version 8.6\n.target sm_90\n.address_size 64\n"

// ---- Elements ----

static uint32_t seed;
static int next(void) {
  seed = seed * 1664525u + 1013904223u;
  return (int)(seed >> 28) - 8;
}

static uint64_t bits_of(const char* type, int x) {
  float f = (float)x;
  double d = x;
  uint32_t word;
  uint64_t wide;
  memcpy(&word, &f, 4);
  memcpy(&wide, &d, 8);
  if (!strcmp(type, "f64")) return wide;
  if (!strcmp(type, "f32") || !strcmp(type, "tf32")) return word;
  if (!strcmp(type, "bf16")) return word >> 16;
  if (!strcmp(type, "s32")) return (uint32_t)x;
  if (!strcmp(type, "s8") || !strcmp(type, "u8")) return (uint8_t)x;
  // f16, and fp8 from its upper bits: small integers are exact.
  if (x == 0) return 0;
  uint32_t exponent = (word >> 23 & 255) - 127 + 15;
  uint32_t half = (word >> 31) << 15 | exponent << 10 | (word >> 13 & 0x3ff);
  if (!strcmp(type, "f16")) return half;
  if (!strcmp(type, "e5m2")) return half >> 8;
  return (half >> 15) << 7 | (exponent - 8) << 3 | (half >> 7 & 7);
}

static unsigned width_of(const char* type) {
  if (!strcmp(type, "f64")) return 64;
  if (!strcmp(type, "f32") || !strcmp(type, "tf32") || !strcmp(type, "s32")) {
    return 32;
  }
  if (!strcmp(type, "f16") || !strcmp(type, "bf16")) return 16;
  return 8;
}

// ---- mma: where the manual puts element i of a lane ----

// thread-compatible
typedef struct where_t {
  int row;
  int column;
} where_t;

static where_t a_of(const char* shape, unsigned bits, int lane, int i) {
  int group = lane >> 2, thread = lane % 4;
  if (!strcmp(shape, "m16n8k16") && bits == 16) {
    return (where_t){i < 2 || (i >= 4 && i < 6) ? group : group + 8,
                     thread * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
  }
  if (!strcmp(shape, "m16n8k8") && bits == 16) {
    return (where_t){i < 2 ? group : group + 8, thread * 2 + (i & 1)};
  }
  if (!strcmp(shape, "m16n8k8")) {
    return (where_t){i == 0 || i == 2 ? group : group + 8,
                     i < 2 ? thread : thread + 4};
  }
  if (!strcmp(shape, "m16n8k4")) {
    return (where_t){i == 0 ? group : group + 8, thread};
  }
  if (!strcmp(shape, "m16n8k16") && bits == 64) {
    return (where_t){i % 2 == 0 ? group : group + 8,
                     (i % 2 == 0 ? i * 2 : i * 2 - 2) + thread};
  }
  if (!strcmp(shape, "m16n8k16")) {
    return (where_t){i < 4 ? group : group + 8, thread * 4 + (i & 3)};
  }
  if (!strcmp(shape, "m16n8k32")) {
    return (where_t){i < 4 || (i >= 8 && i < 12) ? group : group + 8,
                     thread * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
  }
  if (!strcmp(shape, "m8n8k16")) {
    return (where_t){group, thread * 4 + i};
  }
  return (where_t){group, thread};
}

static where_t b_of(const char* shape, unsigned bits, int lane, int i) {
  int group = lane >> 2, thread = lane % 4;
  if (!strcmp(shape, "m16n8k16") && bits == 16) {
    return (where_t){thread * 2 + (i & 1) + (i >= 2 ? 8 : 0), group};
  }
  if (!strcmp(shape, "m16n8k8") && bits == 16) {
    return (where_t){thread * 2 + i, group};
  }
  if (!strcmp(shape, "m16n8k8")) return (where_t){thread + 4 * i, group};
  if (!strcmp(shape, "m16n8k32")) {
    return (where_t){thread * 4 + (i & 3) + (i >= 4 ? 16 : 0), group};
  }
  if (bits == 8) return (where_t){thread * 4 + i, group};
  return (where_t){thread + 4 * i, group};
}

static where_t c_of(const char* shape, int lane, int i) {
  int group = lane >> 2, thread = lane % 4;
  if (shape[1] == '8') return (where_t){group, thread * 2 + i};
  return (where_t){i < 2 ? group : group + 8, thread * 2 + (i & 1)};
}

// One mma. thread-compatible
typedef struct case_t {
  const char* shape;
  int m, n, k;
  const char* d;
  const char* a;
  const char* b;
} case_t;

static const case_t cases[] = {
    {"m16n8k16", 16, 8, 16, "f32", "f16", "f16"},
    {"m16n8k16", 16, 8, 16, "f16", "f16", "f16"},
    {"m16n8k16", 16, 8, 16, "f32", "bf16", "bf16"},
    {"m16n8k8", 16, 8, 8, "f32", "f16", "f16"},
    {"m16n8k8", 16, 8, 8, "f16", "f16", "f16"},
    {"m16n8k8", 16, 8, 8, "f32", "bf16", "bf16"},
    {"m16n8k8", 16, 8, 8, "f32", "tf32", "tf32"},
    {"m16n8k4", 16, 8, 4, "f32", "tf32", "tf32"},
    {"m16n8k16", 16, 8, 16, "s32", "s8", "s8"},
    {"m16n8k32", 16, 8, 32, "s32", "s8", "u8"},
    {"m16n8k32", 16, 8, 32, "s32", "u8", "s8"},
    {"m8n8k16", 8, 8, 16, "s32", "s8", "s8"},
    {"m8n8k4", 8, 8, 4, "f64", "f64", "f64"},
    {"m16n8k4", 16, 8, 4, "f64", "f64", "f64"},
    {"m16n8k8", 16, 8, 8, "f64", "f64", "f64"},
    {"m16n8k16", 16, 8, 16, "f64", "f64", "f64"},
    {"m16n8k32", 16, 8, 32, "f32", "e4m3", "e5m2"},
    {"m16n8k32", 16, 8, 32, "f32", "e5m2", "e4m3"},
};

enum { LANE_WORDS = 32 };  // of a lane's row of registers, 64 bits each

// The text of a list of `count` registers from `first` on.
static size_t registers(char* out, size_t capacity, const char* letter,
                        int first, int count) {
  size_t at = (size_t)snprintf(out, capacity, "{");
  for (int i = 0; i < count; i++) {
    at += (size_t)snprintf(out + at, capacity - at, "%s%%%s%d", i ? ", " : "",
                           letter, first + i);
  }
  at += (size_t)snprintf(out + at, capacity - at, "}");
  return at;
}

static int registers_of(const char* type, int elements) {
  int bits = (int)width_of(type);
  return bits >= 32 ? elements : elements * bits / 32;
}

// Loads `na + nb + nc` registers of a lane, and stores `nd`.
static void write_mma(const case_t* c, int na, int nb, int nc, char* out,
                      size_t capacity) {
  bool wide = width_of(c->a) == 64;
  const char* letter = wide ? "d" : "r";
  size_t at = (size_t)snprintf(
      out, capacity,
      HEAD90
      ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %%r<64>;\n.reg .b64 %%d<64>;\n.reg .b64 %%p<9>;\n"
      ".reg .b32 %%t;\n"
      "ld.param.u64 %%p1, [in];\nld.param.u64 %%p2, [out];\n"
      "mov.u32 %%t, %%tid.x;\nmul.wide.u32 %%p3, %%t, %d;\n"
      "add.s64 %%p1, %%p1, %%p3;\nadd.s64 %%p2, %%p2, %%p3;\n",
      LANE_WORDS * 8);
  for (int i = 0; i < na + nb + nc; i++) {
    at += (size_t)snprintf(out + at, capacity - at,
                           "ld.global.b%d %%%s%d, [%%p1+%d];\n", wide ? 64 : 32,
                           letter, i, 8 * i);
  }
  at += (size_t)snprintf(out + at, capacity - at,
                         "mma.sync.aligned.%s.row.col.%s.%s.%s.%s ", c->shape,
                         c->d, c->a, c->b, c->d);
  // d is c, as in a chain of products.
  at += registers(out + at, capacity - at, letter, na + nb, nc);
  at += (size_t)snprintf(out + at, capacity - at, ", ");
  at += registers(out + at, capacity - at, letter, 0, na);
  at += (size_t)snprintf(out + at, capacity - at, ", ");
  at += registers(out + at, capacity - at, letter, na, nb);
  at += (size_t)snprintf(out + at, capacity - at, ", ");
  at += registers(out + at, capacity - at, letter, na + nb, nc);
  at += (size_t)snprintf(out + at, capacity - at, ";\n");
  for (int i = 0; i < nc; i++) {
    at += (size_t)snprintf(out + at, capacity - at,
                           "st.global.b%d [%%p2+%d], %%%s%d;\n", wide ? 64 : 32,
                           8 * i, letter, na + nb + i);
  }
  snprintf(out + at, capacity - at, "ret;\n}\n");
}

static int at_a[32][32], at_b[32][32], at_c[32][32];

// Small numbers; those of u8 are not negative.
static void fill(int (*m)[32], int rows, int columns, const char* type) {
  for (int i = 0; i < rows; i++) {
    for (int j = 0; j < columns; j++) {
      int x = next();
      m[i][j] = !strcmp(type, "u8") ? x + 8 : x;
    }
  }
}

static void put(uint64_t* lane, const char* type, int first, int i, int x) {
  unsigned bits = width_of(type);
  unsigned each = bits >= 32 ? 1 : 32 / bits;
  lane[first + i / (int)each] |= bits_of(type, x)
                                 << ((unsigned)i % each * bits);
}

static void check_mma(const case_t* c) {
  static uint64_t in[32][LANE_WORDS], out[32][LANE_WORDS];
  char ptx[4096];
  int ea = c->m * c->k / 32, eb = c->k * c->n / 32, ec = c->m * c->n / 32;
  int na = registers_of(c->a, ea), nb = registers_of(c->b, eb);
  int nc = registers_of(c->d, ec);
  write_mma(c, na, nb, nc, ptx, sizeof(ptx));
  fill(at_a, c->m, c->k, c->a);
  fill(at_b, c->k, c->n, c->b);
  fill(at_c, c->m, c->n, c->d);
  memset(in, 0, sizeof(in));
  for (int l = 0; l < 32; l++) {
    for (int i = 0; i < ea; i++) {
      where_t w = a_of(c->shape, width_of(c->a), l, i);
      put(in[l], c->a, 0, i, at_a[w.row][w.column]);
    }
    for (int i = 0; i < eb; i++) {
      where_t w = b_of(c->shape, width_of(c->b), l, i);
      put(in[l], c->b, na, i, at_b[w.row][w.column]);
    }
    for (int i = 0; i < ec; i++) {
      where_t w = c_of(c->shape, l, i);
      put(in[l], c->d, na + nb, i, at_c[w.row][w.column]);
    }
  }
  soft_kit_load(&kit, ptx);
  uint64_t params[2] = {soft_kit_buffer(&kit, in, sizeof(in)),
                        soft_kit_buffer(&kit, NULL, sizeof(out))};
  soft_kit_run(&kit, "k", 1, 32, 2, params);
  soft_kit_read(&kit, params[1], out, sizeof(out));
  for (int l = 0; l < 32; l++) {
    uint64_t want[LANE_WORDS] = {0};
    for (int i = 0; i < ec; i++) {
      where_t w = c_of(c->shape, l, i);
      int sum = at_c[w.row][w.column];
      for (int k = 0; k < c->k; k++) sum += at_a[w.row][k] * at_b[k][w.column];
      put(want, c->d, 0, i, sum);
    }
    for (int i = 0; i < nc; i++) {
      if (out[l][i] == want[i]) continue;
      fail_msg("%s %s.%s.%s lane %d register %d: %llx, not %llx", c->shape,
               c->d, c->a, c->b, l, i, (unsigned long long)out[l][i],
               (unsigned long long)want[i]);
    }
  }
}

static void test_mma(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    seed = 5;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
      check_mma(&cases[i]);
    }
  }
}

// Sums beyond 32 bits, clamped or not; a number that f32 must round.
static const char limits_ptx[] = HEAD90 SOFT_KIT_KERNEL(
    "mov.b32 %r10, 0x7f7f7f7f;\nmov.b32 %r11, 0x7ffffff0;\n"
    "mma.sync.aligned.m16n8k16.row.col.satfinite.s32.s8.s8.s32 "
    "{%r20, %r21, %r22, %r23}, {%r10, %r10}, {%r10}, "
    "{%r11, %r11, %r11, %r11};\n"
    "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 "
    "{%r24, %r25, %r26, %r27}, {%r10, %r10}, {%r10}, "
    "{%r11, %r11, %r11, %r11};\n"
    "st.global.u32 [%rd1], %r20;\nst.global.u32 [%rd1+128], %r27;\nret;\n");

static void test_limits(void** state) {
  (void)state;
  uint32_t out[64];
  SOFT_KIT_EVERY_WAY(&kit) {
    soft_kit_must_words(&kit, limits_ptx, 1, 32, out, 64);
    for (int i = 0; i < 32; i++) {
      assert_int_equal(out[i], 0x7fffffff);
      assert_int_equal(out[32 + i], 0x7ffffff0u + 16u * 127u * 127u);
    }
  }
}

// ---- wmma ----

// thread-compatible
typedef struct wmma_t {
  const char* shape;
  int m, n, k;
  const char* d;
  const char* a;
  int na, nb, nc;
  const char* types;  // of wmma.mma
} wmma_t;

static const wmma_t wmmas[] = {
    {"m16n16k16", 16, 16, 16, "f32", "f16", 8, 8, 8, "f32.f32"},
    {"m16n16k16", 16, 16, 16, "f16", "f16", 8, 8, 4, "f16.f16"},
    {"m32n8k16", 32, 8, 16, "f32", "f16", 8, 8, 8, "f32.f32"},
    {"m8n32k16", 8, 32, 16, "f16", "f16", 8, 8, 4, "f16.f16"},
    {"m16n16k16", 16, 16, 16, "f32", "bf16", 4, 4, 8, "f32.bf16.bf16.f32"},
    {"m32n8k16", 32, 8, 16, "f32", "bf16", 8, 2, 8, "f32.bf16.bf16.f32"},
    {"m16n16k8", 16, 16, 8, "f32", "tf32", 4, 4, 8, "f32.tf32.tf32.f32"},
    {"m16n16k16", 16, 16, 16, "s32", "s8", 2, 2, 8, "s32.s8.s8.s32"},
    {"m8n32k16", 8, 32, 16, "s32", "u8", 1, 4, 8, "s32.u8.u8.s32"},
    {"m8n8k4", 8, 8, 4, "f64", "f64", 1, 1, 2, "f64.f64.f64.f64"},
};

static const char* const layouts[2] = {"row", "col"};

static void write_wmma(const wmma_t* w, int la, int lb, int lc, char* out,
                       size_t capacity) {
  char a[256], b[256], c[256];
  const char* letter = width_of(w->a) == 64 ? "d" : "r";
  registers(a, sizeof(a), letter, 0, w->na);
  registers(b, sizeof(b), letter, 10, w->nb);
  registers(c, sizeof(c), letter, 20, w->nc);
  snprintf(out, capacity,
           HEAD90
           ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, "
           ".param .u64 out)\n{\n.reg .b32 %%r<64>;\n.reg .b64 %%d<64>;\n"
           ".reg .b64 %%p<9>;\n.reg .b32 %%s;\n"
           "ld.param.u64 %%p1, [a];\nld.param.u64 %%p2, [b];\n"
           "ld.param.u64 %%p3, [c];\nld.param.u64 %%p4, [out];\n"
           "mov.u32 %%s, 40;\n"
           "wmma.load.a.sync.aligned.%s.%s.global.%s %s, [%%p1], %%s;\n"
           "wmma.load.b.sync.aligned.%s.%s.%s %s, [%%p2], 40;\n"
           "wmma.load.c.sync.aligned.%s.%s.global.%s %s, [%%p3], 40;\n"
           "wmma.mma.sync.aligned.%s.%s.%s.%s %s, %s, %s, %s;\n"
           "wmma.store.d.sync.aligned.%s.%s.global.%s [%%p4], %s, 40;\n"
           "ret;\n}\n",
           layouts[la], w->shape, w->a, a, layouts[lb], w->shape, w->a, b,
           layouts[lc], w->shape, w->d, c, layouts[la], layouts[lb], w->shape,
           w->types, c, a, b, c, layouts[lc], w->shape, w->d, c);
}

enum { MATRIX_BYTES = 40 * 40 * 8 };

static void to_memory(uint8_t* out, int (*m)[32], int rows, int columns,
                      const char* type, int by_column) {
  unsigned bytes = width_of(type) / 8;
  for (int i = 0; i < rows; i++) {
    for (int j = 0; j < columns; j++) {
      uint64_t bits = bits_of(type, m[i][j]);
      size_t at = (size_t)(by_column ? j * 40 + i : i * 40 + j);
      memcpy(out + at * bytes, &bits, bytes);
    }
  }
}

static void check_wmma(const wmma_t* w, int la, int lb, int lc) {
  static uint8_t a[MATRIX_BYTES], b[MATRIX_BYTES], c[MATRIX_BYTES];
  static uint8_t out[MATRIX_BYTES], want[MATRIX_BYTES];
  char ptx[4096];
  write_wmma(w, la, lb, lc, ptx, sizeof(ptx));
  fill(at_a, w->m, w->k, w->a);
  fill(at_b, w->k, w->n, w->a);
  fill(at_c, w->m, w->n, w->d);
  to_memory(a, at_a, w->m, w->k, w->a, la);
  to_memory(b, at_b, w->k, w->n, w->a, lb);
  to_memory(c, at_c, w->m, w->n, w->d, lc);
  for (int i = 0; i < w->m; i++) {
    for (int j = 0; j < w->n; j++) {
      for (int k = 0; k < w->k; k++) at_c[i][j] += at_a[i][k] * at_b[k][j];
    }
  }
  memset(want, 0, sizeof(want));
  to_memory(want, at_c, w->m, w->n, w->d, lc);
  soft_kit_load(&kit, ptx);
  uint64_t params[4] = {soft_kit_buffer(&kit, a, sizeof(a)),
                        soft_kit_buffer(&kit, b, sizeof(b)),
                        soft_kit_buffer(&kit, c, sizeof(c)),
                        soft_kit_buffer(&kit, NULL, sizeof(out))};
  soft_kit_run(&kit, "k", 1, 32, 4, params);
  soft_kit_read(&kit, params[3], out, sizeof(out));
  if (memcmp(out, want, sizeof(out)) != 0) {
    fail_msg("wmma %s %s %d%d%d differs", w->shape, w->types, la, lb, lc);
  }
}

static void test_wmma(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    seed = 9;
    for (size_t i = 0; i < sizeof(wmmas) / sizeof(wmmas[0]); i++) {
      for (int l = 0; l < 8; l++) {
        check_wmma(&wmmas[i], l & 1, l >> 1 & 1, l >> 2);
      }
    }
  }
}

// ---- Rows of shared memory ----

// Lane l writes its row; four matrices are loaded straight and transposed,
// stored transposed, and one is turned in registers.
static const char rows_ptx[] = HEAD90
    ".shared .align 16 .b8 box[512];\n.shared .align 16 .b8 "
    "two[512];\n" SOFT_KIT_KERNEL(
        "mov.b32 %r5, box;\nmov.b32 %r6, two;\n"
        "mad.lo.u32 %r7, %r4, 16, %r5;\nmad.lo.u32 %r8, %r4, 16, %r6;\n"
        "shl.b32 %r9, %r4, 3;\nmov.u32 %r10, 0;\n"
        "FILL:\nadd.u32 %r11, %r9, %r10;\nadd.u32 %r12, %r11, 1;\n"
        "shl.b32 %r12, %r12, 16;\nor.b32 %r11, %r11, %r12;\n"
        "mad.lo.u32 %r13, %r10, 2, %r7;\nst.shared.u32 [%r13], %r11;\n"
        "add.u32 %r10, %r10, 2;\nsetp.lt.u32 %p1, %r10, 8;\n@%p1 bra FILL;\n"
        "bar.warp.sync 0xffffffff;\n"
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, "
        "[%r7];\n"
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r24, %r25}, [%r7];\n"
        "movmatrix.sync.aligned.m8n8.trans.b16 %r26, %r20;\n"
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r8], "
        "{%r20, %r21, %r22, %r23};\n"
        "bar.warp.sync 0xffffffff;\nld.shared.u32 %r27, [%r8+4];\n"
        "mul.wide.u32 %rd5, %r4, 32;\nadd.s64 %rd6, %rd3, %rd5;\n"
        "st.global.v4.u32 [%rd6], {%r20, %r21, %r22, %r23};\n"
        "st.global.v4.u32 [%rd6+16], {%r24, %r25, %r26, %r27};\nret;\n");

static uint32_t pair(uint32_t low, uint32_t high) {
  return low | high << 16;
}

static void test_rows(void** state) {
  (void)state;
  uint32_t out[256];
  SOFT_KIT_EVERY_WAY(&kit) {
    soft_kit_must_words(&kit, rows_ptx, 1, 32, out, 256);
    for (uint32_t l = 0; l < 32; l++) {
      uint32_t row = l / 4, column = l % 4 * 2;
      uint32_t turned = pair(8 * column + row, 8 * (column + 1) + row);
      for (uint32_t j = 0; j < 4; j++) {
        uint32_t x = 64 * j + 8 * row + column;
        assert_int_equal(out[8 * l + j], pair(x, x + 1));
      }
      assert_int_equal(out[8 * l + 4], turned);
      assert_int_equal(out[8 * l + 5], turned + pair(64, 64));
      assert_int_equal(out[8 * l + 6], turned);
      // Row l % 8 of matrix l / 8, stored transposed: its elements 2 and 3.
      uint32_t x = 64 * (l / 8) + l % 8;
      assert_int_equal(out[8 * l + 7], pair(x + 16, x + 24));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_mma),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_wmma),
      cmocka_unit_test(test_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
