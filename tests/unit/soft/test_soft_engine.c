// SPDX-License-Identifier: Apache-2.0
//
// soft: straight-line code, divergence, barriers, collectives, on every lane
// set of this machine with one and two workers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "soft_kit.h"

#define HEAD         SOFT_KIT_HEAD
#define KERNEL(body) HEAD SOFT_KIT_KERNEL(body)

enum { LANES = 32 };

static soft_kit_t kit;

// Runs `k` of `ptx` and gives the words it wrote.
static void run_words(const char* ptx, uint32_t grid, uint32_t block,
                      uint32_t* out, uint32_t count) {
  soft_kit_must_words(&kit, ptx, grid, block, out, count);
}

static void test_vector_add(void** state) {
  (void)state;
  static const char ptx[] = HEAD
      ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c,\n"
      "  .param .u64 n)\n{\n"
      ".reg .pred %p<2>;\n.reg .b32 %r<6>;\n.reg .b64 %rd<11>;\n"
      ".reg .f32 %f<4>;\n"
      "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\n"
      "ld.param.u64 %rd3, [c];\nld.param.u32 %r2, [n];\n"
      "mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmov.u32 %r5, %tid.x;\n"
      "mad.lo.s32 %r1, %r3, %r4, %r5;\nsetp.ge.s32 %p1, %r1, %r2;\n"
      "@%p1 bra DONE;\n"
      "cvta.to.global.u64 %rd4, %rd1;\nmul.wide.s32 %rd5, %r1, 4;\n"
      "add.s64 %rd6, %rd4, %rd5;\ncvta.to.global.u64 %rd7, %rd2;\n"
      "add.s64 %rd8, %rd7, %rd5;\nld.global.f32 %f1, [%rd8];\n"
      "ld.global.f32 %f2, [%rd6];\nadd.f32 %f3, %f2, %f1;\n"
      "cvta.to.global.u64 %rd9, %rd3;\nadd.s64 %rd10, %rd9, %rd5;\n"
      "st.global.f32 [%rd10], %f3;\nDONE:\nret;\n}\n";
  enum { N = 1000 };
  float a[N];
  float b[N];
  float c[N];
  for (int i = 0; i < N; i++) {
    a[i] = (float)i * 0.5f;
    b[i] = (float)(N - i) * 3.0f;
  }
  SOFT_KIT_EVERY_WAY(&kit) {
    soft_kit_load(&kit, ptx);
    uint64_t p[4] = {soft_kit_buffer(&kit, a, sizeof(a)),
                     soft_kit_buffer(&kit, b, sizeof(b)),
                     soft_kit_buffer(&kit, NULL, sizeof(c)), N};
    soft_kit_run(&kit, "add", 8, 128, 4, p);
    soft_kit_read(&kit, p[2], c, sizeof(c));
    for (int i = 0; i < N; i++) assert_true(c[i] == a[i] + b[i]);
    // 10 instructions up to the branch, 12 behind it.
    assert_int_equal(kit.executed, 1024 * 10 + 1000 * 11 + 1024);
  }
}

// Each thread counts collatz steps: trip counts differ from lane to lane, with
// a branch in the loop and an early return.
static const char collatz_ptx[] = KERNEL(
    "mov.u32 %r5, 0;\nmov.u32 %r6, %r1;\n"
    "setp.eq.u32 %p1, %r1, 0;\n@%p1 ret;\n"
    "LOOP:\nsetp.eq.u32 %p2, %r6, 1;\n@%p2 bra DONE;\n"
    "and.b32 %r7, %r6, 1;\nsetp.eq.u32 %p3, %r7, 0;\n"
    "@%p3 bra EVEN;\n"
    "mad.lo.u32 %r6, %r6, 3, 1;\nbra NEXT;\n"
    "EVEN:\nshr.u32 %r6, %r6, 1;\n"
    "NEXT:\nadd.u32 %r5, %r5, 1;\nbra LOOP;\n"
    "DONE:\nst.global.u32 [%rd1], %r5;\nret;\n");

static void test_divergence(void** state) {
  (void)state;
  enum { N = 500 };
  uint32_t out[N];
  SOFT_KIT_EVERY_WAY(&kit) {
    run_words(collatz_ptx, N / 100, 100, out, N);
    assert_int_equal(out[0], 0);
    for (uint32_t i = 1; i < N; i++) {
      uint32_t steps = 0;
      for (uint32_t x = i; x != 1; steps++) x = x & 1 ? 3 * x + 1 : x / 2;
      assert_int_equal(out[i], steps);
    }
  }
}

// Lanes part four ways and meet again: what the warp does behind the meeting
// is done once, by all.
static const char meeting_ptx[] = KERNEL(
    "and.b32 %r5, %r1, 3;\n"
    "setp.eq.u32 %p1, %r5, 0;\n@%p1 bra A;\n"
    "setp.eq.u32 %p1, %r5, 1;\n@%p1 bra B;\n"
    "setp.eq.u32 %p1, %r5, 2;\n@%p1 bra C;\n"
    "mov.u32 %r6, 4;\nbra MEET;\n"
    "C:\nmov.u32 %r6, 3;\nbra MEET;\n"
    "B:\nmov.u32 %r6, 2;\nbra MEET;\n"
    "A:\nmov.u32 %r6, 1;\n"
    "MEET:\nactivemask.b32 %r7;\npopc.b32 %r8, %r7;\n"
    "mad.lo.u32 %r9, %r8, 100, %r6;\n"
    "st.global.u32 [%rd1], %r9;\nret;\n");

static void test_meeting(void** state) {
  (void)state;
  uint32_t out[64];
  SOFT_KIT_EVERY_WAY(&kit) {
    if (way_.seed) continue;  // where lanes meet is open then
    run_words(meeting_ptx, 2, 32, out, 64);
    for (uint32_t i = 0; i < 64; i++) {
      assert_int_equal(out[i], 3200 + (i & 3) + 1);
    }
  }
}

// A loop whose exit lies above its body in the text: lanes that leave early
// wait for the rest all the same.
static const char exit_above_ptx[] = KERNEL(
    "mov.u32 %r5, 0;\n"
    "HEAD:\nsetp.lt.u32 %p1, %r5, %r4;\n@%p1 bra BODY;\n"
    "activemask.b32 %r7;\npopc.b32 %r8, %r7;\n"
    "mad.lo.u32 %r9, %r8, 100, %r5;\nst.global.u32 [%rd1], %r9;\nret;\n"
    "BODY:\nadd.u32 %r5, %r5, 1;\nbra HEAD;\n");

static void test_exit_above(void** state) {
  (void)state;
  uint32_t out[32];
  SOFT_KIT_EVERY_WAY(&kit) {
    if (way_.seed) continue;
    run_words(exit_above_ptx, 1, 32, out, 32);
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(out[i], 3200 + i);
  }
}

// A tree sum in shared memory with a barrier between the steps.
static const char tree_ptx[] =
    HEAD ".shared .align 4 .b8 sums[1024];\n" SOFT_KIT_KERNEL(
        "mov.u32 %r10, sums;\nshl.b32 %r11, %r4, 2;\nadd.s32 %r12, %r10, "
        "%r11;\n"
        "st.shared.u32 [%r12], %r1;\n"
        "shr.u32 %r13, %r3, 1;\n"
        "STEP:\nbar.sync 0;\nsetp.ge.u32 %p1, %r4, %r13;\n@%p1 bra NEXT;\n"
        "shl.b32 %r14, %r13, 2;\nadd.s32 %r15, %r12, %r14;\n"
        "ld.shared.u32 %r16, [%r15];\nld.shared.u32 %r17, [%r12];\n"
        "add.u32 %r18, %r16, %r17;\nst.shared.u32 [%r12], %r18;\n"
        "NEXT:\nshr.u32 %r13, %r13, 1;\nsetp.ne.u32 %p2, %r13, 0;\n"
        "@%p2 bra STEP;\n"
        "bar.sync 0;\nld.shared.u32 %r20, [sums];\n"
        "st.global.u32 [%rd1], %r20;\nret;\n");

static void test_barrier(void** state) {
  (void)state;
  enum { BLOCKS = 5, THREADS = 256 };
  uint32_t out[BLOCKS * THREADS];
  SOFT_KIT_EVERY_WAY(&kit) {
    run_words(tree_ptx, BLOCKS, THREADS, out, BLOCKS * THREADS);
    for (uint32_t b = 0; b < BLOCKS; b++) {
      uint32_t sum = 0;
      for (uint32_t t = 0; t < THREADS; t++) sum += b * THREADS + t;
      for (uint32_t t = 0; t < THREADS; t++) {
        assert_int_equal(out[b * THREADS + t], sum);
      }
    }
  }
}

// Vectors move at once: what is overwritten has been read.
static const char vectors_ptx[] = KERNEL(
    "mov.u32 %r5, 1;\nmov.u32 %r6, 20;\nmov.u32 %r7, 300;\n"
    "mov.u32 %r8, 4000;\n"
    "mov.v4.b32 {%r5, %r6, %r7, %r8}, {%r8, %r5, %r6, 7000};\n"
    "mov.b64 %rd5, {%r5, %r6};\nmov.b64 %rd6, {%r7, %r8};\n"
    "mov.v2.u64 {%rd5, %rd6}, {%rd6, %rd5};\n"
    "mov.b64 {%r5, %r6}, %rd5;\nmov.b64 {%r7, %r8}, %rd6;\n"
    "mov.b32 {%rs1, %rs2}, %r5;\n"
    "mov.v2.b16 {%rs1, %rs2}, {%rs2, %rs1};\nmov.b32 %r5, {%rs1, %rs2};\n"
    "mad.lo.u32 %r9, %r6, 3, %r7;\nadd.u32 %r9, %r9, %r8;\n"
    "add.u32 %r9, %r9, %r5;\nst.global.u32 [%rd1], %r9;\nret;\n");

static void test_move_vectors(void** state) {
  (void)state;
  uint32_t out[1];
  SOFT_KIT_EVERY_WAY(&kit) {
    run_words(vectors_ptx, 1, 1, out, 1);
    // {4000, 1, 20, 7000} with its halves swapped; 20 to the upper half.
    assert_int_equal(out[0], 3 * 7000 + 4000 + 1 + (20 << 16));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_vector_add), cmocka_unit_test(test_divergence),
      cmocka_unit_test(test_meeting),    cmocka_unit_test(test_exit_above),
      cmocka_unit_test(test_barrier),    cmocka_unit_test(test_move_vectors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
