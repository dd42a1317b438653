// SPDX-License-Identifier: Apache-2.0
//
// soft: two or four numbers in a word, and cvt.pack, from PTX text on, against
// the manual's words one part at a time.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "soft/decode/soft_forms.h"
#include "soft_kit.h"

enum { ROWS = 1024 };

static soft_kit_t kit;
static uint32_t in[ROWS][3];
static uint32_t out[ROWS];

static const uint32_t edges[] = {
    0,          1,          0xffffffff, 0x80808080, 0x7f7f7f7f, 0x80008000,
    0x7fff7fff, 0x00ff00ff, 0xff00ff00, 0x01020304, 0x80000000, 0x7fffffff,
    0x000000ff, 0x00000100, 0x0000ffff, 0x00010000, 0xffffff80, 0xffff8000,
    0xfffffff8, 0x00000007, 0x00000003, 0xfffffffe};

static uint32_t number(uint32_t row, uint32_t k) {
  uint32_t count = sizeof(edges) / 4;
  if (row < count * count && k < 2) {
    return edges[k == 0 ? row % count : row / count];
  }
  uint32_t x = (row * 3 + k) * 0x9e3779b1u;
  x = (x ^ x >> 15) * 0x85ebca77u;
  return x ^ x >> 13;
}

static int64_t clamp(int64_t x, unsigned bits, bool is_signed) {
  int64_t most = ((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1;
  int64_t least = is_signed ? -most - 1 : 0;
  return x < least ? least : x > most ? most : x;
}

static int64_t part(uint32_t x, unsigned i, unsigned bits, bool is_signed) {
  int64_t value = x >> (i * bits) & ((1ull << bits) - 1);
  return is_signed && value >> (bits - 1) ? value - ((int64_t)1 << bits)
                                          : value;
}

static int64_t act(const char* form, int64_t a, int64_t b) {
  if (!strncmp(form, "vadd", 4)) return a + b;
  if (!strncmp(form, "vsub", 4)) return a - b;
  if (!strncmp(form, "vabsdiff", 8)) return a > b ? a - b : b - a;
  if (!strncmp(form, "vmin", 4)) return a < b ? a : b;
  if (!strncmp(form, "vmax", 4)) return a > b ? a : b;
  int64_t sum = a + b;
  return (sum + (sum < 0 ? 0 : 1)) >> 1;
}

static uint32_t packed(const char* form, const uint32_t* s) {
  const char* type = strstr(form, ".sat.") + 5;
  unsigned bits = type[1] == '1' ? 16 : (unsigned)(type[1] - '0');
  uint32_t mask = (1u << bits) - 1;
  uint32_t a = (uint32_t)clamp((int32_t)s[0], bits, type[0] == 's') & mask;
  uint32_t b = (uint32_t)clamp((int32_t)s[1], bits, type[0] == 's') & mask;
  return (bits == 16 ? 0 : s[2] << (2 * bits)) | a << bits | b;
}

static uint32_t expected(const char* form, const uint32_t* s) {
  if (form[0] == 'c') return packed(form, s);
  const char* types = strchr(form, '.');
  unsigned bits = types[-1] == '4' ? 8 : 16;
  bool sum = strstr(form, ".add") != NULL;
  uint32_t d = 0;
  for (unsigned i = 0; i < 32 / bits; i++) {
    int64_t x = act(form, part(s[0], i, bits, types[5] == 's'),
                    part(s[1], i, bits, types[9] == 's'));
    if (strstr(form, ".sat")) x = clamp(x, bits, types[1] == 's');
    d += sum ? (uint32_t)x
             : ((uint32_t)x & (uint32_t)((1ull << bits) - 1)) << (i * bits);
  }
  return sum ? d + s[2] : d;
}

static void write_kernel(const char* form, char* ptx, size_t capacity) {
  bool two = strstr(form, ".u16.s32") || strstr(form, ".s16.s32");
  snprintf(ptx, capacity,
           ".version 8.6\n.target sm_90\n.address_size 64\n"
           ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
           ".reg .b32 %%r<20>;\n.reg .b64 %%d<9>;\n"
           "ld.param.u64 %%d1, [in];\nld.param.u64 %%d2, [out];\n"
           "mov.u32 %%r1, %%ctaid.x;\nmov.u32 %%r2, %%tid.x;\n"
           "mad.lo.u32 %%r3, %%r1, 256, %%r2;\n"
           "mul.wide.u32 %%d3, %%r3, 12;\nadd.s64 %%d3, %%d3, %%d1;\n"
           "mul.wide.u32 %%d4, %%r3, 4;\nadd.s64 %%d4, %%d4, %%d2;\n"
           "ld.global.u32 %%r4, [%%d3];\nld.global.u32 %%r5, [%%d3+4];\n"
           "ld.global.u32 %%r6, [%%d3+8];\n%s %%r7, %%r4, %%r5%s;\n"
           "st.global.u32 [%%d4], %%r7;\nret;\n}\n",
           form, two && form[0] == 'c' ? "" : ", %r6");
}

static void every_form_computes_its_parts(void** state) {
  (void)state;
  char ptx[2048];
  kilni_soft_op_t op;
  const char* form;
  unsigned forms = 0;
  for (uint32_t i = 0; i < ROWS; i++) {
    for (uint32_t k = 0; k < 3; k++) in[i][k] = number(i, k);
  }
  SOFT_KIT_EVERY_WAY(&kit) {
    if (way_.workers > 1) continue;
    for (size_t f = 0; (form = kilni_soft_form_at(f, &op)); f++) {
      if (op != KILNI_SOFT_OP_video) continue;
      write_kernel(form, ptx, sizeof(ptx));
      soft_kit_load(&kit, ptx);
      uint64_t params[2] = {soft_kit_buffer(&kit, in, sizeof(in)),
                            soft_kit_buffer(&kit, NULL, sizeof(out))};
      soft_kit_run(&kit, "k", ROWS / 256, 256, 2, params);
      soft_kit_read(&kit, params[1], out, sizeof(out));
      for (uint32_t i = 0; i < ROWS; i++) {
        uint32_t want = expected(form, in[i]);
        if (out[i] == want) continue;
        fail_msg("%s: %x %x %x gave %x, not %x", form, in[i][0], in[i][1],
                 in[i][2], out[i], want);
      }
      forms++;
    }
  }
  assert_true(forms >= 290);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_form_computes_its_parts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
