// SPDX-License-Identifier: Apache-2.0
//
// soft: the video instructions, on one number, and on two or four in a word,
// with every selector and mask, and cvt.pack, from PTX text on, against the
// manual's words one part at a time.
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

// ---- The manual ----

// What a form and its operands' endings say. one-thread
typedef struct words_t {
  const char* form;
  const char* d;  // "" or an ending, as ".b2"
  const char* a;
  const char* b;
  char minus;  // 'a', 'b', 'c' or 0
} words_t;

static bool says(const words_t* w, const char* word) {
  return strstr(w->form, word) != NULL;
}

// The form's types: of d, a and b; a compare has none for d.
static bool is_signed(const words_t* w, int which) {
  const char* types = strchr(w->form, '.');
  if (!strncmp(w->form, "vset", 4)) {
    if (which == 0) return false;
    which--;
  }
  return types[4 * which + 1] == 's';
}

static int64_t clamp(int64_t x, unsigned bits, bool with_sign) {
  int64_t most = ((int64_t)1 << (with_sign ? bits - 1 : bits)) - 1;
  int64_t least = with_sign ? -most - 1 : 0;
  return x < least ? least : x > most ? most : x;
}

static int64_t part(uint64_t x, unsigned i, unsigned bits, bool with_sign) {
  int64_t value = (int64_t)(x >> (i * bits) & ((1ull << bits) - 1));
  return with_sign && value >> (bits - 1) ? value - ((int64_t)1 << bits)
                                          : value;
}

static int64_t act(const words_t* w, int64_t a, int64_t b) {
  const char* form = w->form;
  if (!strncmp(form, "vadd", 4)) return a + b;
  if (!strncmp(form, "vsub", 4)) return a - b;
  if (!strncmp(form, "vabsdiff", 8)) return a > b ? a - b : b - a;
  if (!strncmp(form, "vmin", 4)) return a < b ? a : b;
  if (!strncmp(form, "vmax", 4)) return a > b ? a : b;
  if (!strncmp(form, "vset", 4)) {
    if (says(w, ".eq")) return a == b;
    if (says(w, ".ne")) return a != b;
    if (says(w, ".lt")) return a < b;
    if (says(w, ".le")) return a <= b;
    return says(w, ".gt") ? a > b : a >= b;
  }
  if (!strncmp(form, "vsh", 3)) {
    b = says(w, ".wrap") ? b & 31 : b > 32 ? 32 : b;
    // A number of 33 bits, moved by up to 32: 64 bits of it are kept.
    return form[3] == 'l' ? (int64_t)((uint64_t)a << b) : a >> b;
  }
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

// The part of the pair b, a that an ending chooses for place `i`.
static unsigned chosen(const char* ending, unsigned i, unsigned otherwise) {
  size_t size = strlen(ending);
  return size < 2 ? otherwise : (unsigned)(ending[size - 1 - i] - '0');
}

static uint32_t in_parts(const words_t* w, const uint32_t* s) {
  unsigned count = strchr(w->form, '.')[-1] == '4' ? 4 : 2;
  unsigned bits = 32 / count;
  uint64_t pair = s[0] | (uint64_t)s[1] << 32;
  uint32_t sum = s[2];
  uint32_t d = 0;
  for (unsigned i = 0; i < count; i++) {
    int64_t x =
        act(w, part(pair, chosen(w->a, i, i), bits, is_signed(w, 1)),
            part(pair, chosen(w->b, i, count + i), bits, is_signed(w, 2)));
    if (says(w, ".sat")) x = clamp(x, bits, is_signed(w, 0));
    bool taken = w->d[0] == '\0' || strchr(w->d + 2, (int)('0' + i)) != NULL;
    if (taken) sum += (uint32_t)x;
    uint32_t mask = (uint32_t)((1ull << bits) - 1) << (i * bits);
    d |= taken ? (uint32_t)x << (i * bits) & mask : s[2] & mask;
  }
  return says(w, ".add") ? sum : d;
}

static unsigned bits_of(const char* ending) {
  return ending[0] == '\0' ? 32 : ending[1] == 'b' ? 8 : 16;
}

static int64_t part_of(const char* ending, uint32_t x, bool with_sign) {
  unsigned i = ending[0] == '\0' ? 0 : (unsigned)(ending[2] - '0');
  return part(x, i, bits_of(ending), with_sign);
}

static int64_t widened(uint32_t x, bool with_sign) {
  return with_sign ? (int64_t)(int32_t)x : (int64_t)x;
}

// A product, and what is added: whole words are signed to a GPU, for whatever
// is lost above 32 bits (soft_ops_video.c).
static uint32_t product(const words_t* w, const uint32_t* s) {
  int64_t a = (int32_t)part_of(w->a, s[0], is_signed(w, 1));
  int64_t b = (int32_t)part_of(w->b, s[1], is_signed(w, 2));
  bool minus = w->minus == 'a' || w->minus == 'b';
  bool final = is_signed(w, 1) || is_signed(w, 2) || w->minus;
  int64_t c = (int32_t)s[2];
  uint64_t sum = (uint64_t)(minus ? -(a * b) : a * b);
  sum += (uint64_t)(w->minus == 'c' ? -c : c);
  if (says(w, ".po")) sum++;
  unsigned shift = says(w, ".shr15") ? 15 : says(w, ".shr7") ? 7 : 0;
  int64_t x = final ? (int64_t)sum >> shift : (int64_t)(sum >> shift);
  return (uint32_t)(says(w, ".sat") ? clamp(x, 32, final) : x);
}

// What .sat makes of a number of 64 bits, where ptxas departs from the manual.
static int64_t saturated(const words_t* w, int64_t x) {
  int64_t most = ((int64_t)1 << (bits_of(w->d) - is_signed(w, 0))) - 1;
  if (!strncmp(w->form, "vsh", 3)) {
    // 34 bits of it, and never a part.
    int64_t low = part((uint64_t)x, 0, 34, true);
    return (int32_t)clamp(low, 32, is_signed(w, 0));
  }
  if (w->d[0]) return x < 0 || x > most ? most : x;
  if (is_signed(w, 0)) return clamp(x, 32, true);
  return x < 0 ? 0 : x;
}

static uint32_t one(const words_t* w, const uint32_t* s) {
  bool sets = !strncmp(w->form, "vset", 4);
  bool sum = !strncmp(w->form, "vadd", 4) || !strncmp(w->form, "vsub", 4);
  int64_t x = act(w, part_of(w->a, s[0], is_signed(w, 1)),
                  part_of(w->b, s[1], is_signed(w, 2)));
  if (says(w, ".sat")) x = saturated(w, x);
  if (w->d[0]) {
    unsigned at = (unsigned)(w->d[2] - '0') * bits_of(w->d);
    uint32_t mask = (uint32_t)((1ull << bits_of(w->d)) - 1) << at;
    // The upper half is the upper half.
    uint32_t moved = w->d[1] == 'h' ? (uint32_t)x : (uint32_t)x << at;
    return (moved & mask) | (s[2] & ~mask);
  }
  if (says(w, ".add")) return (uint32_t)x + s[2];
  // A sum is 32 bits with a sign first; a compare has the sign of its source.
  bool with_sign = is_signed(w, sets ? 1 : 0);
  int64_t c = widened(s[2], with_sign);
  if (sum) x = (int32_t)(uint32_t)x;
  bool less = with_sign ? x < c : (uint64_t)x < (uint64_t)c;
  if (says(w, ".min")) return less ? (uint32_t)x : s[2];
  if (says(w, ".max")) return less ? s[2] : (uint32_t)x;
  return (uint32_t)x;
}

static uint32_t expected(const words_t* w, const uint32_t* s) {
  if (w->form[0] == 'c') return packed(w->form, s);
  if (!strncmp(w->form, "vmad", 4)) return product(w, s);
  char last = strchr(w->form, '.')[-1];
  return last == '2' || last == '4' ? in_parts(w, s) : one(w, s);
}

// ---- Kernels ----

static void write_kernel(const words_t* w, char* ptx, size_t capacity) {
  bool two = says(w, ".u16.s32") || says(w, ".s16.s32");
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
           "ld.global.u32 %%r6, [%%d3+8];\n"
           "%s %%r7%s, %s%%r4%s, %s%%r5%s%s%s;\n"
           "st.global.u32 [%%d4], %%r7;\nret;\n}\n",
           w->form, w->d, w->minus == 'a' ? "-" : "", w->a,
           w->minus == 'b' ? "-" : "", w->b,
           two && w->form[0] == 'c' ? "" : ", ",
           two && w->form[0] == 'c' ? ""
           : w->minus == 'c'        ? "-%r6"
                                    : "%r6");
}

static void check(const words_t* w) {
  char ptx[2048];
  write_kernel(w, ptx, sizeof(ptx));
  soft_kit_load(&kit, ptx);
  uint64_t params[2] = {soft_kit_buffer(&kit, in, sizeof(in)),
                        soft_kit_buffer(&kit, NULL, sizeof(out))};
  soft_kit_run(&kit, "k", ROWS / 256, 256, 2, params);
  soft_kit_read(&kit, params[1], out, sizeof(out));
  for (uint32_t i = 0; i < ROWS; i++) {
    uint32_t want = expected(w, in[i]);
    if (out[i] == want) continue;
    fail_msg("%s %s %s %s %c: %x %x %x gave %x, not %x", w->form, w->d, w->a,
             w->b, w->minus ? w->minus : ' ', in[i][0], in[i][1], in[i][2],
             out[i], want);
  }
}

static void open_kit(void) {
  soft_kit_way_t way;
  assert_true(soft_kit_way(0, &way));
  soft_kit_open(&kit, &way);
}

static void fill_inputs(void) {
  for (uint32_t i = 0; i < ROWS; i++) {
    for (uint32_t k = 0; k < 3; k++) in[i][k] = number(i, k);
  }
}

static void every_form_computes_its_parts(void** state) {
  (void)state;
  kilni_soft_op_t op;
  unsigned forms = 0;
  fill_inputs();
  SOFT_KIT_EVERY_WAY(&kit) {
    if (way_.workers > 1) continue;
    words_t w = {.d = "", .a = "", .b = ""};
    for (size_t f = 0; (w.form = kilni_soft_form_at(f, &op)); f++) {
      if (strcmp(kilni_soft_op_family(op), "video") != 0) continue;
      check(&w);
      forms++;
    }
  }
  assert_true(forms >= 1060);
}

static void selectors_and_masks_choose_parts(void** state) {
  static const char* const ones[] = {"",    ".b0", ".b1", ".b2",
                                     ".b3", ".h0", ".h1"};
  static const char* const forms[] = {
      "vadd.s32.u32.s32",          "vsub.u32.s32.u32.sat",
      "vabsdiff.s32.s32.s32.sat",  "vmin.s32.u32.s32",
      "vmax.u32.s32.s32.sat",      "vset.s32.u32.lt",
      "vset.u32.u32.ne",           "vshl.u32.s32.u32.wrap",
      "vshr.s32.u32.u32.sat.clamp"};
  static const char* const fours[] = {".b7654", ".b0000", ".b3210",
                                      ".b0724", ".b5163", ".b7777"};
  static const char* const twos[] = {".h32", ".h10", ".h00", ".h13", ".h33"};
  static const char* const masks4[] = {
      "",    ".b0",  ".b1",  ".b10",  ".b2",  ".b20",  ".b21",  ".b210",
      ".b3", ".b30", ".b31", ".b310", ".b32", ".b320", ".b321", ".b3210"};
  static const char* const masks2[] = {"", ".h0", ".h1", ".h10"};
  static const char* const fours_of[] = {
      "vadd4.s32.u32.s32.sat", "vabsdiff4.u32.u32.u32.add", "vset4.u32.s32.ge",
      "vset4.s32.u32.ne.add"};
  static const char* const twos_of[] = {
      "vsub2.u32.s32.u32.sat", "vavrg2.s32.s32.u32.add", "vset2.u32.u32.le",
      "vmax2.s32.s32.s32"};
  (void)state;
  fill_inputs();
  open_kit();
  for (unsigned f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
    for (unsigned i = 0; i < 49; i++) {
      check(
          &(words_t){forms[f], ones[(i + f) % 7], ones[i % 7], ones[i / 7], 0});
    }
  }
  for (unsigned i = 0; i < 16 * 4; i++) {
    check(&(words_t){fours_of[i % 4], masks4[i / 4], fours[i % 6],
                     fours[i / 5 % 6], 0});
    check(&(words_t){twos_of[i % 4], masks2[i / 4 % 4], twos[i % 5],
                     twos[i / 7 % 5], 0});
  }
  soft_kit_close(&kit);
}

static void a_product_or_what_is_added_may_be_negated(void** state) {
  static const char* const forms[] = {
      "vmad.s32.u32.u32", "vmad.s32.s32.u32.sat", "vmad.s32.s32.s32.shr7",
      "vmad.s32.u32.u32.shr15", "vmad.s32.u32.u32.sat"};
  static const char* const parts[] = {"", ".h1", ".b2"};
  (void)state;
  fill_inputs();
  open_kit();
  for (unsigned f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
    for (unsigned i = 0; i < 9; i++) {
      for (unsigned m = 0; m < 3; m++) {
        check(&(words_t){forms[f], "", parts[i % 3], parts[i / 3], "abc"[m]});
      }
    }
  }
  soft_kit_close(&kit);
}

// What ptxas refuses.
static void other_operands_are_refused(void** state) {
  static const words_t wrong[] = {
      {"vadd.u32.u32.u32", "", "", "", 'b'},
      {"vadd.u32.u32.u32.add", ".h0", "", "", 0},
      {"vadd4.u32.u32.u32", ".b12", "", "", 0},
      {"vadd4.u32.u32.u32", "", ".b12", "", 0},
      {"vadd4.u32.u32.u32", "", ".b1", "", 0},
      {"vadd2.u32.u32.u32", "", ".h10", ".h0", 0},
      {"vadd4.u32.u32.u32.sat.add", "", "", "", 0},
      {"vset4.u32.u32.lt.max", "", "", "", 0},
      {"vset.u32.u32.lo", "", "", "", 0},
      {"vmad.u32.u32.u32.po", "", "", "", 'c'},
      {"vshl.u32.s32.s32.clamp", "", "", "", 0},
  };
  (void)state;
  char ptx[2048];
  open_kit();
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    write_kernel(&wrong[i], ptx, sizeof(ptx));
    kiln_status_t status = soft_kit_try(&kit, ptx);
    if (kiln_status_is_ok(status)) fail_msg("%s is taken", wrong[i].form);
    kiln_status_free(status);
  }
  soft_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_form_computes_its_parts),
      cmocka_unit_test(selectors_and_masks_choose_parts),
      cmocka_unit_test(a_product_or_what_is_added_may_be_negated),
      cmocka_unit_test(other_operands_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
