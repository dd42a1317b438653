// SPDX-License-Identifier: Apache-2.0
//
// soft: what lanes of a warp do together though they come to it apart: at
// several instructions with one mask, at one instruction with several masks,
// at barriers whose number each lane chooses; and what a report says when they
// do not fit together.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "soft_kit.h"

enum { WORDS = 1024 };

static soft_kit_t kit;
static uint32_t out[WORDS];

static void must_run(const char* ptx, uint32_t grid, uint32_t block) {
  soft_kit_must_words(&kit, ptx, grid, block, out, WORDS);
}

// Both branches hold one of their own; r5 is what goes in.
#define BOTH(low, high)                                         \
  SOFT_KIT_HEAD SOFT_KIT_KERNEL(                                \
      "mad.lo.u32 %r5, %r4, 7, 3;\nsetp.lt.u32 %p1, %r4, 16;\n" \
      "and.b32 %r8, %r4, 3;\nsetp.eq.u32 %p2, %r8, 1;\n"        \
      "@%p1 bra LOW;\n" high "bra DONE;\nLOW:\n" low            \
      "DONE:\nst.global.u32 [%rd1], %r6;\nret;\n")

static void shuffles_meet_at_two_places(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(BOTH("shfl.sync.bfly.b32 %r6, %r5, 16, 31, 0xffffffff;\n",
                  "add.u32 %r5, %r5, 1000;\n"
                  "shfl.sync.bfly.b32 %r6|%p3, %r5, 16, 31, -1;\n"
                  "@%p3 add.u32 %r6, %r6, 5000;\n"),
             2, 32);
    for (uint32_t i = 0; i < 64; i++) {
      uint32_t lane = i & 31;
      uint32_t want = (lane ^ 16) * 7 + 3 + (lane < 16 ? 1000 : 5000);
      assert_int_equal(out[i], want);
    }
  }
}

static void votes_meet_at_two_places(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(BOTH("vote.sync.ballot.b32 %r6, %p2, -1;\n",
                  "vote.sync.ballot.b32 %r6, !%p2, -1;\n"),
             1, 32);
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(out[i], 0xdddd2222u);
    must_run(BOTH("vote.sync.all.pred %p4, %p1, -1;\nselp.b32 %r6, 1, 2, "
                  "%p4;\n",
                  "vote.sync.all.pred %p4, !%p1, -1;\nselp.b32 %r6, 3, 4, "
                  "%p4;\n"),
             1, 32);
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(out[i], i < 16 ? 1 : 3);
  }
}

static void matches_and_sums_meet_at_two_places(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(BOTH("match.any.sync.b32 %r6, %r8, -1;\n",
                  "match.any.sync.b32 %r6, %r8, -1;\n"),
             1, 32);
    for (uint32_t i = 0; i < 32; i++) {
      assert_int_equal(out[i], 0x11111111u << (i & 3));
    }
    must_run(BOTH("cvt.u64.u32 %rd9, 5;\n"
                  "match.all.sync.b64 %r6|%p4, %rd9, -1;\n"
                  "@!%p4 mov.u32 %r6, 9;\n",
                  "mov.u64 %rd9, 5;\n"
                  "match.all.sync.b64 %r6, %rd9, -1;\n"),
             1, 32);
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(out[i], 0xffffffffu);
    must_run(BOTH("redux.sync.add.u32 %r6, %r5, -1;\n",
                  "redux.sync.add.u32 %r6, %r4, -1;\nadd.u32 %r6, %r6, 1;\n"),
             1, 32);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 32; i++) sum += i < 16 ? i * 7 + 3 : i;
    for (uint32_t i = 0; i < 32; i++) {
      assert_int_equal(out[i], sum + (i >= 16));
    }
  }
}

// One function, called from two places, with all lanes in the mask.
static const char calls_ptx[] = SOFT_KIT_HEAD
    ".func (.param .b32 r) f(.param .b32 x)\n{\n.reg .b32 %r<9>;\n"
    "ld.param.b32 %r1, [x];\nshfl.sync.idx.b32 %r2, %r1, 20, 31, -1;\n"
    "redux.sync.max.u32 %r3, %r1, -1;\nadd.u32 %r2, %r2, %r3;\n"
    "st.param.b32 [r], %r2;\nret;\n}\n" SOFT_KIT_KERNEL(
        "setp.lt.u32 %p1, %r4, 5;\n@%p1 bra LOW;\n"
        "{ .param .b32 a0; .param .b32 r0;\nst.param.b32 [a0], %r4;\n"
        "call.uni (r0), f, (a0);\nld.param.b32 %r6, [r0];\n}\nbra DONE;\n"
        "LOW:\nadd.u32 %r9, %r4, 100;\n"
        "{ .param .b32 a0; .param .b32 r0;\nst.param.b32 [a0], %r9;\n"
        "call.uni (r0), f, (a0);\nld.param.b32 %r6, [r0];\n}\n"
        "DONE:\nst.global.u32 [%rd1], %r6;\nret;\n");

static void calls_from_two_places_meet(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(calls_ptx, 1, 32);
    for (uint32_t i = 0; i < 32; i++) assert_int_equal(out[i], 20 + 104);
  }
}

// Lanes of one group with masks of their own: by the remainder of three, and
// the whole counts as if they had never parted.
static const char masks_ptx[] = SOFT_KIT_HEAD SOFT_KIT_KERNEL(
    "and.b32 %r8, %r4, 31;\nrem.u32 %r5, %r8, 3;\n"
    "mov.u32 %r6, 0x49249249;\nshl.b32 %r7, %r6, %r5;\n"
    "redux.sync.add.u32 %r9, %r4, %r7;\n"
    "bar.warp.sync %r7;\n"
    "vote.sync.ballot.b32 %r10, 1, %r7;\n"
    "xor.b32 %r10, %r10, %r7;\nadd.u32 %r9, %r9, %r10;\n"
    "mov.u32 %r12, %r4;\n"
    "shfl.sync.idx.b32 %r11, %r12, %r5, 31, %r7;\n"
    "shl.b32 %r11, %r11, 16;\nadd.u32 %r9, %r9, %r11;\n"
    "st.global.u32 [%rd1], %r9;\nret;\n");

static void lanes_of_a_mask_meet_only_each_other(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(masks_ptx, 1, 64);
    for (uint32_t i = 0; i < 64; i++) {
      uint32_t sum = 0, first = i & 32;
      uint32_t kind = i % 32 % 3;
      uint32_t mask = 0x49249249u << kind;
      for (uint32_t k = 0; k < 32; k++) {
        if (mask >> k & 1) sum += first + k;
      }
      assert_int_equal(out[i], sum + ((first + kind) << 16));
    }
    // 8 instructions before the body's 15, each of 64 threads.
    assert_int_equal(kit.executed, 64u * (8 + 15));
  }
}

// Each lane chooses its barrier: the odd ones of two warps exchange through
// shared memory by one, the even ones by another.
static const char barriers_ptx[] =
    SOFT_KIT_HEAD ".shared .b32 box[64];\n" SOFT_KIT_KERNEL(
        "and.b32 %r5, %r4, 1;\nadd.u32 %r6, %r5, 3;\nshl.b32 %r7, %r4, 2;\n"
        "mov.u32 %r8, box;\nadd.u32 %r9, %r8, %r7;\nxor.b32 %r10, %r7, 128;\n"
        "add.u32 %r11, %r8, %r10;\nmul.lo.u32 %r12, %r4, 11;\n"
        "st.shared.u32 [%r9], %r12;\nbarrier.sync %r6, 32;\n"
        "ld.shared.u32 %r13, [%r11];\nst.global.u32 [%rd1], %r13;\nret;\n");

static void lanes_choose_their_barrier(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(barriers_ptx, 2, 64);
    for (uint32_t i = 0; i < 128; i++) {
      assert_int_equal(out[i], ((i & 63) ^ 32) * 11);
    }
  }
}

// A lane that ends completes two waits at once.
static const char ended_ptx[] = SOFT_KIT_HEAD SOFT_KIT_KERNEL(
    "setp.eq.u32 %p1, %r4, 31;\n@%p1 bra LAST;\n"
    "setp.lt.u32 %p2, %r4, 8;\n@%p2 bra A;\nsetp.lt.u32 %p2, %r4, 16;\n"
    "@%p2 bra B;\n"
    "redux.sync.add.u32 %r6, 1, 0xffff0000;\nbra DONE;\n"
    "A:\nredux.sync.add.u32 %r6, 1, 0x800000ff;\nbra DONE;\n"
    "B:\nredux.sync.add.u32 %r6, 1, 0x8000ff00;\n"
    "DONE:\nst.global.u32 [%rd1], %r6;\nret;\n"
    "LAST:\nmov.u32 %r7, 0;\nLOOP:\nadd.u32 %r7, %r7, 1;\n"
    "setp.lt.u32 %p3, %r7, 100;\n@%p3 bra LOOP;\nexit;\n");

static void an_end_lets_all_go_that_waited_for_it(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(ended_ptx, 1, 32);
    for (uint32_t i = 0; i < 31; i++) {
      assert_int_equal(out[i], i < 16 ? 8 : 15);
    }
    assert_int_equal(out[31], 0);
  }
}

static void must_deadlock(const char* ptx, const char* one, const char* two) {
  assert_int_equal(soft_kit_words(&kit, ptx, 1, 32, out, WORDS, NULL),
                   KILNI_SOFT_FAULT_DEADLOCK);
  if (!strstr(kit.report, one) || !strstr(kit.report, two)) {
    fail_msg("not both \"%s\" and \"%s\" in:\n%s", one, two, kit.report);
  }
}

static void what_does_not_fit_is_told_with_both_lines(void** state) {
  (void)state;
  char one[128], two[128];
  // In BOTH, the high lanes' comes first.
  int high = SOFT_KIT_BODY_LINE + 5;
  SOFT_KIT_EVERY_WAY(&kit) {
    // Other qualifiers.
    snprintf(one, sizeof(one),
             "at shfl.sync.up of mask 0xffffffff for lanes 0x0000ffff, PTX "
             "line %d",
             high);
    snprintf(two, sizeof(two),
             "at shfl.sync.down of mask 0xffffffff for lanes 0xffff0000, PTX "
             "line %d",
             high + 3);
    must_deadlock(BOTH("shfl.sync.down.b32 %r6, %r5, 1, 31, -1;\n",
                       "shfl.sync.up.b32 %r6, %r5, 1, 0, -1;\n"),
                  one, two);
    // Other masks.
    snprintf(one, sizeof(one),
             "at vote.sync.any of mask 0xffff0001 for lanes 0x00000001, PTX "
             "line %d",
             high);
    snprintf(two, sizeof(two),
             "at vote.sync.any of mask 0x8000ffff for lanes 0x80000000, PTX "
             "line %d",
             high + 4);
    must_deadlock(BOTH("vote.sync.any.pred %p4, %p1, 0x8000ffff;\n"
                       "selp.b32 %r6, 1, 0, %p4;\n",
                       "vote.sync.any.pred %p4, %p1, 0xffff0001;\n"
                       "selp.b32 %r6, 1, 0, %p4;\n"),
                  one, two);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shuffles_meet_at_two_places),
      cmocka_unit_test(votes_meet_at_two_places),
      cmocka_unit_test(matches_and_sums_meet_at_two_places),
      cmocka_unit_test(calls_from_two_places_meet),
      cmocka_unit_test(lanes_of_a_mask_meet_only_each_other),
      cmocka_unit_test(lanes_choose_their_barrier),
      cmocka_unit_test(an_end_lets_all_go_that_waited_for_it),
      cmocka_unit_test(what_does_not_fit_is_told_with_both_lines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
