// SPDX-License-Identifier: Apache-2.0
//
// soft: atomics of every type, width, order and scope; ordered loads and stores
// of vectors; accesses of 16 bytes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "soft/soft.h"
#include "soft_kit.h"

static soft_kit_t kit;
static uint32_t out[4096];

static void must_run(const char* ptx, uint32_t grid, uint32_t block) {
  soft_kit_must_words(&kit, ptx, grid, block, out, 4096);
}

#define HEAD90 ".version 8.6\n.target sm_90\n.address_size 64\n"

// 96 threads of 3 blocks add to one cell each: exact in every format.
static const char halves_ptx[] =
    HEAD90 ".shared .align 4 .b32 box[2];\n" SOFT_KIT_KERNEL(
        "mov.b16 %rs1, 0x3c00;\nmov.b16 %rs2, 0x3f80;\n"
        "mov.b32 %r10, 0x40003c00;\nmov.b32 %r11, 0x40003f80;\n"
        "atom.global.add.noftz.f16 %rs3, [%rd3], %rs1;\n"
        "atom.add.noftz.bf16 %rs4, [%rd3+4], %rs2;\n"
        "red.relaxed.gpu.global.add.noftz.f16x2 [%rd3+8], %r10;\n"
        "atom.acq_rel.sys.global.add.noftz.bf16x2 %r12, [%rd3+12], %r11;\n"
        "setp.eq.u32 %p1, %r4, 0;\nmov.b32 %r13, box;\n"
        "@%p1 st.shared.u32 [%r13], 0;\nbar.sync 0;\n"
        "atom.shared.add.noftz.f16x2 %r14, [%r13], %r10;\nbar.sync 0;\n"
        "ld.shared.u32 %r15, [%r13];\n"
        "@%p1 st.global.u32 [%rd1+64], %r15;\nret;\n");

static void test_halves(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(halves_ptx, 3, 32);
    assert_int_equal(out[0], 0x5600);      // 96
    assert_int_equal(out[1], 0x42c0);      // 96
    assert_int_equal(out[2], 0x5a005600);  // 192, 96
    assert_int_equal(out[3], 0x434042c0);  // 192, 96
    for (int b = 0; b < 3; b++) {
      assert_int_equal(out[16 + 32 * b], 0x54005000);  // 64, 32
    }
  }
}

// What an atomic leaves is what the instruction of registers gives, for seeded
// bits: `$` is the type, `#` the action.
static const char same_ptx[] = HEAD90 SOFT_KIT_KERNEL(
    "mul.lo.u32 %r5, %r1, 0x9e3779b1;\nshr.u32 %r6, %r5, 15;\n"
    "xor.b32 %r5, %r5, %r6;\nmul.lo.u32 %r5, %r5, 0x85ebca77;\n"
    "shr.u32 %r6, %r5, 13;\nxor.b32 %r5, %r5, %r6;\n"
    "mul.lo.u32 %r6, %r5, 0xc2b2ae3d;\nshr.u32 %r7, %r6, 16;\n"
    "xor.b32 %r6, %r6, %r7;\n"
    "and.b32 %r20, %r1, 3;\nsetp.eq.u32 %p1, %r20, 0;\n"
    "@%p1 and.b32 %r5, %r5, 0x83ff83ff;\n"
    "setp.eq.u32 %p1, %r20, 1;\n@%p1 or.b32 %r6, %r6, 0x7c007f80;\n"
    "mul.wide.u32 %rd5, %r1, 16;\nadd.s64 %rd6, %rd3, %rd5;\n"
    "mov.b32 %r8, %r6;\n"
    "st.global.v4.u32 [%rd6], {%r5, %r6, %r5, %r6};\n"
    "atom.global.#.noftz.v4.$ {%r10, %r11, %r12, %r13}, [%rd6], "
    "{%r6, %r5, %r6, %r5};\n"
    "#.$ %r14, %r5, %r6;\n#.$ %r15, %r6, %r5;\n"
    "ld.global.v4.u32 {%r16, %r17, %r18, %r19}, [%rd6];\n"
    "setp.eq.u32 %p2, %r14, %r16;\nsetp.eq.and.u32 %p2, %r15, %r17, "
    "%p2;\nsetp.eq.and.u32 %p2, %r14, %r18, %p2;\n"
    "setp.eq.and.u32 %p2, %r10, %r5, %p2;\n"
    "setp.eq.and.u32 %p2, %r13, %r8, %p2;\n"
    "selp.u32 %r9, 1, 0, %p2;\n"
    "bar.sync 0;\nst.global.u32 [%rd6], %r9;\nret;\n");

static void fill(char* to, const char* from, const char* action,
                 const char* type) {
  for (; *from; from++) {
    const char* text = *from == '#' ? action : *from == '$' ? type : NULL;
    if (text) {
      to += strlen(strcpy(to, text));
    } else {
      *to++ = *from;
    }
  }
  *to = 0;
}

static void test_same_as_registers(void** state) {
  (void)state;
  static const char* const types[] = {"f16x2", "bf16x2"};
  static const char* const actions[] = {"add", "min", "max"};
  char ptx[4096];
  SOFT_KIT_EVERY_WAY(&kit) {
    for (int t = 0; t < 2; t++) {
      for (int a = 0; a < 3; a++) {
        fill(ptx, same_ptx, actions[a], types[t]);
        must_run(ptx, 4, 256);
        for (int i = 0; i < 1024; i++) assert_int_equal(out[4 * i], 1);
      }
    }
  }
}

// Words 0 and 1: subnormals in global and in shared memory; 2: a NaN; 4 and 5,
// 6 and 7: a NaN in memory and one that is added.
static const char odd_ptx[] = HEAD90 SOFT_KIT_KERNEL(
    ".shared .align 4 .b32 cell;\n"
    "mov.b32 %r5, 3;\nmov.b32 %f1, %r5;\n"
    "st.global.u32 [%rd3], %r5;\nst.shared.u32 [cell], %r5;\n"
    "red.global.add.f32 [%rd3], %f1;\nred.shared.add.f32 [cell], %f1;\n"
    "ld.shared.u32 %r6, [cell];\nst.global.u32 [%rd3+4], %r6;\n"
    "mov.b32 %f2, 0x7fc00035;\nmov.f32 %f3, 0f3f800000;\n"
    "st.global.f32 [%rd3+8], %f2;\nred.global.add.f32 [%rd3+8], %f3;\n"
    "mov.b64 %rd5, 0x7ff0000000000001;\nmov.b64 %rd6, 0x3ff0000000000000;\n"
    "st.global.u64 [%rd3+16], %rd5;\nst.global.u64 [%rd3+24], %rd6;\n"
    "red.global.add.f64 [%rd3+16], %rd6;\n"
    "red.global.add.f64 [%rd3+24], %rd5;\nret;\n");

static void test_odd_floats(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(odd_ptx, 1, 1);
    static const uint32_t want[8] = {0, 6,          0x7fffffff, 0,
                                     1, 0x7ff00000, 1,          0x7ff00000};
    for (int i = 0; i < 8; i++) {
      if (i != 3) assert_int_equal(out[i], want[i]);
    }
  }
}

// Vectors of f32, and their old values; the lanes of one warp one by one.
static const char vectors_ptx[] = HEAD90 SOFT_KIT_KERNEL(
    "mov.f32 %f1, 0f3f800000;\nmov.f32 %f2, 0f40000000;\n"
    "mov.f32 %f3, 0f40400000;\nmov.f32 %f4, 0f40800000;\n"
    "atom.global.add.v4.f32 {%f4, %f3, %f2, %f1}, [%rd3], "
    "{%f1, %f2, %f3, %f4};\n"
    "red.global.add.v2.f32 [%rd3+16], {%f4, %f1};\n"
    "setp.eq.u32 %p1, %r1, 0;\n@!%p1 ret;\n"
    "mov.f32 %f5, 0f3f800000;\n"
    "atom.add.v2.f32 {%f6, _}, [%rd3+32], {%f5, %f5};\n"
    "atom.global.add.v2.f32 {%f7, %f8}, [%rd3+32], {%f5, %f5};\n"
    "st.global.v2.f32 [%rd3+40], {%f7, %f8};\nret;\n");

static void test_vectors(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(vectors_ptx, 1, 8);
    static const float sums[4] = {8, 16, 24, 32};
    float f[4096];
    memcpy(f, out, sizeof(f));
    for (int i = 0; i < 4; i++) assert_true(f[i] == sums[i]);
    // The old values were 0..7 of the first and 0, 4, .. 28 of the last.
    assert_true(f[4] == 28.0f && f[5] == 112.0f);
    assert_true(f[8] == 2.0f && f[9] == 2.0f);
    assert_true(f[10] == 1.0f && f[11] == 1.0f);
  }
}

// Every order and scope is taken, and adds.
static void test_orders(void** state) {
  (void)state;
  static const char* const orders[] = {"", ".relaxed", ".acquire", ".release",
                                       ".acq_rel"};
  static const char* const scopes[] = {"", ".cta", ".cluster", ".gpu", ".sys"};
  static const char* const spaces[] = {"", ".global"};
  static char ptx[32768];
  size_t at = 0;
  unsigned count = 0;
  at += (size_t)snprintf(ptx, sizeof(ptx), "%s",
                         HEAD90
                         ".visible .entry k(.param .u64 out)\n{\n"
                         ".reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n"
                         "ld.param.u64 %rd1, [out];\n");
  for (int o = 0; o < 5; o++) {
    for (int s = 0; s < 5; s++) {
      for (int p = 0; p < 2; p++) {
        at += (size_t)snprintf(ptx + at, sizeof(ptx) - at,
                               "atom%s%s%s.add.u32 %%r1, [%%rd1], 1;\n"
                               "atom%s%s%s.inc.u32 %%r1, [%%rd1], 100000;\n",
                               orders[o], scopes[s], spaces[p], orders[o],
                               scopes[s], spaces[p]);
        count += 2;
        if (o > 1) continue;
        at += (size_t)snprintf(ptx + at, sizeof(ptx) - at,
                               "red%s%s%s.add.u32 [%%rd1], 1;\n", orders[o],
                               scopes[s], spaces[p]);
        count++;
      }
    }
  }
  snprintf(ptx + at, sizeof(ptx) - at, "ret;\n}\n");
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(ptx, 2, 64);
    assert_int_equal(out[0], 128 * count);
  }
}

// A number of 128 bits that all threads count up, by compare and swap: the
// lower half by 1, the upper by 2.
static const char wide_ptx[] = HEAD90 SOFT_KIT_KERNEL(
    ".reg .b128 %q<4>;\n.reg .b64 %lo, %hi, %a, %b;\n"
    "ld.relaxed.gpu.global.u64 %lo, [%rd3];\n"
    "ld.relaxed.gpu.global.u64 %hi, [%rd3+8];\n"
    "TRY:\nadd.u64 %a, %lo, 1;\nadd.u64 %b, %hi, 2;\n"
    "mov.b128 %q1, {%lo, %hi};\nmov.b128 %q2, {%a, %b};\n"
    "atom.global.cas.b128 %q3, [%rd3], %q1, %q2;\n"
    "mov.b128 {%a, %b}, %q3;\n"
    "setp.ne.u64 %p1, %a, %lo;\nsetp.ne.u64 %p2, %b, %hi;\n"
    "mov.u64 %lo, %a;\nmov.u64 %hi, %b;\nor.pred %p1, %p1, %p2;\n"
    "@%p1 bra TRY;\n"
    "setp.eq.u32 %p3, %r1, 0;\n@!%p3 ret;\n"
    "mov.u64 %a, 0x1111111122222222;\nmov.u64 %b, 0x3333333344444444;\n"
    "mov.b128 %q1, {%a, %b};\n"
    "atom.exch.b128 %q2, [%rd3+32], %q1;\n"
    "st.global.b128 [%rd3+48], %q2;\nld.global.b128 %q3, [%rd3+32];\n"
    "st.global.b128 [%rd3+64], %q3;\nret;\n");

static void test_128(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(wide_ptx, 5, 96);
    assert_int_equal(out[0], 480);
    assert_int_equal(out[2], 960);
    for (int i = 12; i < 16; i++) assert_int_equal(out[i], 0);
    static const uint32_t want[4] = {0x22222222, 0x11111111, 0x44444444,
                                     0x33333333};
    assert_memory_equal(&out[8], want, 16);
    assert_memory_equal(&out[16], want, 16);
  }
}

// Vectors that are volatile or ordered; the address is overwritten.
static const char ordered_ptx[] = HEAD90 SOFT_KIT_KERNEL(
    "mul.wide.u32 %rd5, %r1, 64;\nadd.s64 %rd6, %rd3, %rd5;\n"
    "add.u32 %r5, %r1, 1;\nadd.u32 %r6, %r1, 2;\nadd.u32 %r7, %r1, 3;\n"
    "st.volatile.global.v4.u32 [%rd6], {%r1, %r5, %r6, %r7};\n"
    "ld.relaxed.gpu.global.v2.b64 {%rd7, %rd8}, [%rd6];\n"
    "st.release.sys.global.v2.u64 [%rd6+16], {%rd8, %rd7};\n"
    "mov.u64 %rd9, %rd6;\n"
    "ld.acquire.cta.v2.u64 {%rd9, %rd10}, [%rd9+16];\n"
    "st.mmio.relaxed.sys.global.u64 [%rd6+32], %rd9;\n"
    "ld.mmio.relaxed.sys.u32 %r8, [%rd6+32];\n"
    "createpolicy.fractional.L2::evict_last.b64 %rd11, 1.0;\n"
    "ld.global.L2::cache_hint.u32 %r9, [%rd6+36], %rd11;\n"
    "st.global.L2::cache_hint.v2.u32 [%rd6+40], {%r9, %r8}, %rd11;\n"
    "ld.volatile.global.v2.f32 {%f1, _}, [%rd6];\n"
    "st.global.f32 [%rd6+48], %f1;\nret;\n");

static void test_ordered(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(ordered_ptx, 2, 32);
    for (uint32_t i = 0; i < 64; i++) {
      const uint32_t want[13] = {i,     i + 1, i + 2, i + 3, i + 2, i + 3, i,
                                 i + 1, i + 2, i + 3, i + 3, i + 2, i};
      assert_memory_equal(&out[16 * i], want, sizeof(want));
    }
  }
}

static kilni_soft_fault_kind_t fault_of(const char* body) {
  char ptx[4096];
  snprintf(ptx, sizeof(ptx), "%s", body);
  return soft_kit_words(&kit, ptx, 1, 32, out, 4096, NULL);
}

// A vector is aligned as a whole.
static void test_misaligned(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    assert_int_equal(
        fault_of(HEAD90 SOFT_KIT_KERNEL(
            "red.global.add.v4.f32 [%rd3+8], {%f1, %f1, %f1, %f1};\nret;\n")),
        KILNI_SOFT_FAULT_MISALIGNED);
    assert_int_equal(fault_of(HEAD90 SOFT_KIT_KERNEL(
                         "ld.volatile.global.v2.u32 {%r5, %r6}, [%rd3+4];\n"
                         "ret;\n")),
                     KILNI_SOFT_FAULT_MISALIGNED);
    assert_int_equal(fault_of(HEAD90 SOFT_KIT_KERNEL(
                         ".reg .b128 %q<3>;\n"
                         "atom.global.exch.b128 %q1, [%rd3+8], %q1;\nret;\n")),
                     KILNI_SOFT_FAULT_MISALIGNED);
  }
}

// Blocks of even numbers publish v and ~v side by side in one vector, those of
// odd numbers read both in one, as the look-back of a scan does: nobody sees
// half of a store. The last word of `out` counts the halves that were seen.
static const char publish_ptx[] = SOFT_KIT_HEAD SOFT_KIT_KERNEL(
    "and.b32 %r20, %r4, 15;\nmul.wide.u32 %rd10, %r20, 16;\n"
    "add.u64 %rd10, %rd3, %rd10;\nmov.u32 %r21, 0;\nmov.u32 %r22, 0;\n"
    "and.b32 %r23, %r2, 1;\nsetp.ne.u32 %p1, %r23, 0;\n"
    "LOOP:\nmad.lo.u32 %r10, %r21, 0x9e3779b1, %r1;\nnot.b32 %r11, %r10;\n"
    "mov.b64 %rd11, {%r10, %r10};\nmov.b64 %rd12, {%r11, %r11};\n"
    "@%p1 bra READ;\n# [%rd10], {$};\nbra NEXT;\n"
    "READ:\n@ {&}, [%rd10];\n"
    "NEXT:\nadd.u32 %r21, %r21, 1;\nsetp.lt.u32 %p3, %r21, 3000;\n"
    "@%p3 bra LOOP;\n"
    "@%p1 red.global.add.u32 [%rd3+1020], %r22;\nret;\n");

// one-thread
typedef struct publish_t {
  const char* store;
  const char* load;
  const char* type;
} publish_t;

static void publish_text(const publish_t* p, size_t size, char* text) {
  static const char check[] =
      "xor.b32 %r14, %r12, %r13;\nsetp.ne.u32 %p2, %r14, -1;\n"
      "or.b32 %r15, %r12, %r13;\nsetp.ne.and.u32 %p2, %r15, 0, %p2;\n"
      "@%p2 add.u32 %r22, %r22, 1;\n";
  bool wide = strcmp(p->type, "v2.u64") == 0;
  bool four = strcmp(p->type, "v4.u32") == 0;
  const char* values = wide   ? "%rd11, %rd12"
                       : four ? "%r10, %r10, %r11, %r11"
                              : "%r10, %r11";
  const char* into = wide   ? "%rd13, %rd14"
                     : four ? "%r12, %r16, %r17, %r13"
                            : "%r12, %r13";
  size_t at = 0;
  for (const char* c = publish_ptx; *c; c++) {
    int wrote;
    if (*c == '#') {
      wrote = snprintf(text + at, size - at, "%s.%s", p->store, p->type);
    } else if (*c == '$') {
      wrote = snprintf(text + at, size - at, "%s", values);
    } else if (*c == '@' && c[1] == ' ') {
      wrote = snprintf(text + at, size - at, "%s.%s", p->load, p->type);
    } else if (*c == '&') {
      wrote = snprintf(text + at, size - at, "%s", into);
    } else if (strncmp(c, "NEXT:", 5) == 0) {
      wrote = snprintf(text + at, size - at, "%s%sNEXT:",
                       wide ? "cvt.u32.u64 %r12, %rd13;\n"
                              "cvt.u32.u64 %r13, %rd14;\n"
                            : "",
                       check);
      c += 4;
    } else {
      wrote = snprintf(text + at, size - at, "%c", *c);
    }
    assert_true(wrote > 0 && (size_t)wrote < size - at);
    at += (size_t)wrote;
  }
}

static const publish_t publishes[] = {
    {"st.relaxed.gpu.global", "ld.relaxed.gpu.global", "v2.u32"},
    {"st.relaxed.gpu.global", "ld.relaxed.gpu.global", "v4.u32"},
    {"st.relaxed.gpu.global", "ld.relaxed.gpu.global", "v2.u64"},
    {"st.release.gpu.global", "ld.acquire.gpu.global", "v4.u32"},
    {"st.volatile.global", "ld.volatile.global", "v2.u64"},
    {"st.global", "ld.global", "v2.u32"},
    {"st.global", "ld.relaxed.gpu.global", "v4.u32"},
    {"st.global", "ld.global", "v4.u32"},
    {"st.global", "ld.global", "v2.u64"},
};

static void publish_all(const char* lanes, uint32_t workers, bool locks) {
  soft_kit_way_t way = {.lanes = lanes, .workers = workers};
  soft_kit_open(&kit, &way);
  if (locks) kilni_soft_memory_lock_wide(kit.memory);
  for (size_t i = 0; i < sizeof(publishes) / sizeof(publishes[0]); i++) {
    char ptx[4096];
    // What is not ordered takes no lock.
    if (locks && i > 4) break;
    publish_text(&publishes[i], sizeof(ptx), ptx);
    soft_kit_must_words(&kit, ptx, 16, 32, out, 256);
    if (out[255]) {
      fail_msg("%s.%s, %s, %u workers: %u halves", publishes[i].load,
               publishes[i].type, lanes, workers, out[255]);
    }
    for (int k = 0; k < 64; k += 4) assert_int_not_equal(out[k], 0);
  }
  soft_kit_close(&kit);
}

// Blocks that spin take a sanitizer minutes.
#if defined(KILNI_SANITIZED)
enum { SETS = 1, CROWDS = 1 };
#else
enum { SETS = 3, CROWDS = 3 };
#endif

static void test_vectors_are_seen_whole(void** state) {
  (void)state;
  static const char* const sets[] = {"plain", "avx2", "avx512"};
  static const uint32_t workers[] = {2, 1, 8};
  bool whole = strcmp(kilni_soft_wide_would(), "vector") == 0;
  for (size_t s = 0; s < SETS && whole; s++) {
    if (!kilni_soft_lanes_choose(sets[s])) continue;
    for (size_t w = 0; w < CROWDS; w++) {
      publish_all(sets[s], workers[w], false);
    }
  }
  for (size_t w = 0; w < CROWDS; w++) publish_all("plain", workers[w], true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_halves),
      cmocka_unit_test(test_same_as_registers),
      cmocka_unit_test(test_odd_floats),
      cmocka_unit_test(test_vectors),
      cmocka_unit_test(test_orders),
      cmocka_unit_test(test_128),
      cmocka_unit_test(test_ordered),
      cmocka_unit_test(test_misaligned),
      cmocka_unit_test(test_vectors_are_seen_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
