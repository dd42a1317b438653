// SPDX-License-Identifier: Apache-2.0
//
// soft: who waits for whom: locks between lanes, warps and blocks, collectives
// in divergent code, barriers with counts, deadlocks, cancelled loops.
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
static uint32_t out[4096];

static kilni_soft_fault_kind_t run(const char* ptx, uint32_t grid,
                                   uint32_t block) {
  return soft_kit_words(&kit, ptx, grid, block, out, 4096, NULL);
}

static void must_run(const char* ptx, uint32_t grid, uint32_t block) {
  soft_kit_must_words(&kit, ptx, grid, block, out, 4096);
}

// Every thread of the grid takes one lock, adds, and gives it back. The naive
// spin: the winner must run while the losers spin.
static const char lock_ptx[] = SOFT_KIT_HEAD SOFT_KIT_KERNEL(
    "SPIN:\natom.global.cas.b32 %r10, [%rd3], 0, 1;\n"
    "setp.ne.u32 %p1, %r10, 0;\n@%p1 bra SPIN;\n"
    "membar.gl;\nld.volatile.global.u32 %r11, [%rd3+4];\n"
    "add.u32 %r11, %r11, 1;\nst.volatile.global.u32 [%rd3+4], %r11;\n"
    "membar.gl;\natom.global.exch.b32 %r12, [%rd3], 0;\nret;\n");

static void test_lock(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(lock_ptx, 3, 96);
    assert_int_equal(out[0], 0);
    assert_int_equal(out[1], 288);
  }
}

// Block 0 waits for a flag that the last block sets: with one worker the
// blocks between must start while it spins.
static const char blocks_ptx[] = SOFT_KIT_HEAD SOFT_KIT_KERNEL(
    "mov.u32 %r6, %nctaid.x;\nsub.u32 %r6, %r6, 1;\n"
    "setp.eq.u32 %p1, %r2, %r6;\n@%p1 bra GIVE;\n"
    "WAIT:\nld.acquire.gpu.global.u32 %r10, [%rd3+1024];\n"
    "setp.eq.u32 %p2, %r10, 0;\n@%p2 bra WAIT;\n"
    "st.global.u32 [%rd1], %r10;\nret;\n"
    "GIVE:\nst.release.gpu.global.u32 [%rd3+1024], 7;\nret;\n");

static void test_blocks_wait(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(blocks_ptx, 6, 32);
    for (int i = 0; i < 160; i++) assert_int_equal(out[i], 7);
  }
}

// The odd and the even lanes shuffle among themselves, in a function that both
// halves call: each half is complete by itself.
static const char halves_ptx[] = SOFT_KIT_HEAD
    ".func (.param .b32 r) f(.param .b32 x, .param .b32 m)\n{\n"
    ".reg .b32 %r<9>;\n"
    "ld.param.b32 %r1, [x];\nld.param.b32 %r2, [m];\n"
    "shfl.sync.bfly.b32 %r3, %r1, 2, 31, %r2;\n"
    "st.param.b32 [r], %r3;\nret;\n}\n" SOFT_KIT_KERNEL(
        "and.b32 %r5, %r1, 1;\nsetp.eq.u32 %p1, %r5, 0;\n@%p1 bra EVEN;\n"
        "{ .param .b32 a0; .param .b32 a1; .param .b32 r0;\n"
        "st.param.b32 [a0], %r1;\nst.param.b32 [a1], 0xaaaaaaaa;\n"
        "call.uni (r0), f, (a0, a1);\nld.param.b32 %r6, [r0];\n}\n"
        "add.u32 %r6, %r6, 1000;\nbra DONE;\n"
        "EVEN:\n"
        "{ .param .b32 a0; .param .b32 a1; .param .b32 r0;\n"
        "st.param.b32 [a0], %r1;\nst.param.b32 [a1], 0x55555555;\n"
        "call.uni (r0), f, (a0, a1);\nld.param.b32 %r6, [r0];\n}\n"
        "DONE:\nst.global.u32 [%rd1], %r6;\nret;\n");

static void test_halves(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(halves_ptx, 1, 64);
    for (uint32_t i = 0; i < 64; i++) {
      assert_int_equal(out[i], (i ^ 2) + (i & 1 ? 1000 : 0));
    }
  }
}

// Lanes come to one full-mask shuffle at different times: those that arrive
// first wait, also inside a call that they entered apart.
static const char late_ptx[] = SOFT_KIT_HEAD
    ".func (.param .b32 r) f(.param .b32 x)\n{\n.reg .b32 %r<9>;\n"
    "ld.param.b32 %r1, [x];\n"
    "shfl.sync.down.b32 %r2, %r1, 1, 31, 0xffffffff;\n"
    "st.param.b32 [r], %r2;\nret;\n}\n" SOFT_KIT_KERNEL(
        "mov.u32 %r7, 0;\n"
        "LOOP:\nsetp.ge.u32 %p1, %r7, %r4;\n@%p1 bra OUT;\n"
        "add.u32 %r7, %r7, 1;\nbra LOOP;\n"
        "OUT:\n"
        "{ .param .b32 a0; .param .b32 r0;\n"
        "st.param.b32 [a0], %r7;\n"
        "call.uni (r0), f, (a0);\nld.param.b32 %r6, [r0];\n}\n"
        "st.global.u32 [%rd1], %r6;\nret;\n");

static void test_late_lanes(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(late_ptx, 1, 32);
    for (uint32_t i = 0; i < 32; i++) {
      assert_int_equal(out[i], i < 31 ? i + 1 : 31);
    }
  }
}

// Producer and consumer warps with named, counted barriers.
static const char counted_ptx[] =
    SOFT_KIT_HEAD ".shared .b32 box[64];\n" SOFT_KIT_KERNEL(
        "mov.u32 %r10, box;\nand.b32 %r11, %r4, 31;\nshl.b32 %r11, %r11, 2;\n"
        "add.u32 %r12, %r10, %r11;\nsetp.lt.u32 %p1, %r4, 32;\n@%p1 bra MAKE;\n"
        "barrier.sync 1, 64;\nld.shared.u32 %r13, [%r12];\n"
        "st.global.u32 [%rd1], %r13;\nret;\n"
        "MAKE:\nmad.lo.u32 %r14, %r4, 5, 3;\nst.shared.u32 [%r12], %r14;\n"
        "barrier.arrive 1, 64;\nret;\n");

static void test_counted_barrier(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(counted_ptx, 2, 64);
    for (uint32_t i = 32; i < 64; i++) {
      assert_int_equal(out[i], (i - 32) * 5 + 3);
    }
  }
}

// Threads that have ended are not waited for.
static const char left_ptx[] = SOFT_KIT_HEAD SOFT_KIT_KERNEL(
    "setp.gt.u32 %p1, %r4, 40;\n@%p1 exit;\n"
    "bar.sync 0;\nst.global.u32 [%rd1], 9;\nret;\n");

static void test_ended_threads(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(left_ptx, 1, 128);
    for (uint32_t i = 0; i < 128; i++) {
      assert_int_equal(out[i], i > 40 ? 0 : 9);
    }
  }
}

static const char deadlock_ptx[] = SOFT_KIT_HEAD SOFT_KIT_KERNEL(
    "setp.lt.u32 %p1, %r4, 16;\n@%p1 bra WAIT;\n"
    "bar.sync 1;\nret;\n"
    "WAIT:\nbar.sync 2;\nret;\n");

static void test_deadlock(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    assert_int_equal(run(deadlock_ptx, 1, 32), KILNI_SOFT_FAULT_DEADLOCK);
    assert_non_null(strstr(kit.report, "at barrier 1"));
    assert_non_null(strstr(kit.report, "at barrier 2"));
    assert_int_not_equal(kit.fault.line, 0);
  }
}

static const char forever_ptx[] =
    SOFT_KIT_HEAD SOFT_KIT_KERNEL("LOOP:\nbra LOOP;\n");

// Two calls of itself at each of 60 depths: it would take for ever, and has no
// branch backward.
static const char tree_ptx[] = SOFT_KIT_HEAD
    ".func f(.param .b32 x)\n{\n.reg .b32 %r<9>;\n.reg .pred %p<2>;\n"
    "ld.param.b32 %r1, [x];\nsetp.gt.u32 %p1, %r1, 60;\n@%p1 ret;\n"
    "add.u32 %r1, %r1, 1;\n"
    "{ .param .b32 a0;\nst.param.b32 [a0], %r1;\ncall.uni f, (a0);\n}\n"
    "{ .param .b32 a1;\nst.param.b32 [a1], %r1;\ncall.uni f, (a1);\n}\n"
    "ret;\n}\n" SOFT_KIT_KERNEL(
        "{ .param .b32 a0;\nst.param.b32 [a0], %r1;\n"
        "call.uni f, (a0);\n}\nret;\n");

static void test_cancel(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    kit.cancel_after_ns = 20000000;
    assert_int_equal(run(forever_ptx, 4, 64), KILNI_SOFT_FAULT_CANCELLED);
    assert_int_equal(run(tree_ptx, 1, 32), KILNI_SOFT_FAULT_CANCELLED);
    kit.cancel_after_ns = 0;
  }
}

static const char recurse_ptx[] = SOFT_KIT_HEAD
    ".func f(.param .b32 x)\n{\n.reg .b32 %r<9>;\n"
    "ld.param.b32 %r1, [x];\nadd.u32 %r1, %r1, 1;\n"
    "{ .param .b32 a0;\nst.param.b32 [a0], %r1;\ncall.uni f, (a0);\n}\n"
    "ret;\n}\n" SOFT_KIT_KERNEL(
        "{ .param .b32 a0;\nst.param.b32 [a0], %r1;\ncall.uni f, "
        "(a0);\n}\nret;\n");

static void test_stack(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    assert_int_equal(run(recurse_ptx, 1, 32), KILNI_SOFT_FAULT_STACK);
    assert_non_null(strstr(kit.report, "function \"f\""));
  }
}

// A pointer that is no function.
static const char wild_call_ptx[] = SOFT_KIT_HEAD SOFT_KIT_KERNEL(
    "mov.u64 %rd9, 64;\n"
    "proto: .callprototype _ ();\n"
    "call %rd9, proto;\nret;\n");

static void test_wild_call(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    assert_int_equal(run(wild_call_ptx, 1, 32),
                     KILNI_SOFT_FAULT_ILLEGAL_INSTRUCTION);
  }
}

static const char brx_ptx[] = SOFT_KIT_HEAD SOFT_KIT_KERNEL(
    "and.b32 %r5, %r1, 3;\n"
    "targets: .branchtargets A, B, C, D;\n"
    "brx.idx %r5, targets;\n"
    "A:\nmov.u32 %r6, 10;\nbra OUT;\nB:\nmov.u32 %r6, 20;\nbra OUT;\n"
    "C:\nmov.u32 %r6, 30;\nbra OUT;\nD:\nmov.u32 %r6, 40;\n"
    "OUT:\nactivemask.b32 %r7;\npopc.b32 %r8, %r7;\nadd.u32 %r6, %r6, %r8;\n"
    "st.global.u32 [%rd1], %r6;\nret;\n");

static void test_branch_table(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    if (way_.seed) continue;  // where lanes meet is open then
    must_run(brx_ptx, 1, 64);
    for (uint32_t i = 0; i < 64; i++) {
      assert_int_equal(out[i], (i % 4 + 1) * 10 + 32);
    }
  }
}

// A guarded return, a guarded barrier that all take, a guarded trap nobody
// takes.
static const char guarded_ptx[] = SOFT_KIT_HEAD SOFT_KIT_KERNEL(
    "setp.lt.u32 %p1, %r4, 1000;\nsetp.eq.u32 %p2, %r4, 5;\n@%p2 ret;\n"
    "@!%p1 trap;\n@%p1 bar.sync 0;\n@%p1 st.global.u32 [%rd1], 3;\n"
    "@%p1 add.u32 %r5, %r4, 1;\n@!%p1 add.u32 %r5, %r4, 2;\n"
    "@%p1 st.global.u32 [%rd1], %r5;\nret;\n");

static void test_guards(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(guarded_ptx, 1, 64);
    for (uint32_t i = 0; i < 64; i++) {
      assert_int_equal(out[i], i == 5 ? 0 : i + 1);
    }
    // Head 8 (ld.param, cvta, 3 mov, mad, mul, add), 2 setp; the lanes that
    // stay: barrier, store, add, store, ret; the one that leaves: ret.
    assert_int_equal(kit.executed, 64 * 10 + 63 * 5 + 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lock),
      cmocka_unit_test(test_blocks_wait),
      cmocka_unit_test(test_halves),
      cmocka_unit_test(test_late_lanes),
      cmocka_unit_test(test_counted_barrier),
      cmocka_unit_test(test_ended_threads),
      cmocka_unit_test(test_deadlock),
      cmocka_unit_test(test_cancel),
      cmocka_unit_test(test_stack),
      cmocka_unit_test(test_wild_call),
      cmocka_unit_test(test_branch_table),
      cmocka_unit_test(test_guards),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
