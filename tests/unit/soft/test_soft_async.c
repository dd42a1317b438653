// SPDX-License-Identifier: Apache-2.0
//
// soft: copies to shared memory, mbarriers, elections, what a cluster of one
// block answers, lop3 with a predicate, malloc.
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

static void must_run(const char* ptx, uint32_t grid, uint32_t block) {
  soft_kit_must_words(&kit, ptx, grid, block, out, 4096);
}

#define HEAD90 ".version 8.6\n.target sm_90\n.address_size 64\n"

// Each thread copies 16 bytes that it wrote: whole, in part, and not at all.
static const char copy_ptx[] =
    HEAD90 ".shared .align 16 .b8 box[1024];\n" SOFT_KIT_KERNEL(
        "mul.wide.u32 %rd5, %r1, 32;\nadd.s64 %rd6, %rd3, %rd5;\n"
        "mad.lo.u32 %r5, %r1, 4, 1;\nadd.u32 %r6, %r5, 1;\n"
        "add.u32 %r7, %r5, 2;\nadd.u32 %r8, %r5, 3;\n"
        "st.global.v4.u32 [%rd6], {%r5, %r6, %r7, %r8};\n"
        "mov.b32 %r9, box;\nmad.lo.u32 %r10, %r4, 16, %r9;\n"
        "and.b32 %r11, %r1, 3;\nsetp.eq.u32 %p1, %r11, 0;\n"
        "setp.eq.u32 %p2, %r11, 1;\nsetp.eq.u32 %p3, %r11, 2;\n"
        "mov.b32 %r12, 6;\n"
        "@%p1 cp.async.cg.shared.global [%r10], [%rd6], 16;\n"
        "@%p2 cp.async.ca.shared.global.L2::128B [%r10], [%rd6], 16, %r12;\n"
        "@%p3 cp.async.ca.shared.global [%r10], [%rd6], 8, %p3;\n"
        "setp.eq.u32 %p4, %r11, 3;\n"
        "@%p4 cp.async.ca.shared::cta.global [%r10+4], [%rd6+4], 4;\n"
        "cp.async.commit_group;\ncp.async.wait_group 0;\ncp.async.wait_all;\n"
        "bar.sync 0;\nld.shared.v4.u32 {%r13, %r14, %r15, %r16}, [%r10];\n"
        "st.global.v4.u32 [%rd6+16], {%r13, %r14, %r15, %r16};\nret;\n");

static void test_copies(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(copy_ptx, 1, 64);
    for (uint32_t i = 0; i < 64; i++) {
      uint32_t v = 4 * i + 1;
      const uint32_t* got = &out[8 * i + 4];
      const uint32_t whole[4] = {v, v + 1, v + 2, v + 3};
      const uint32_t part[4] = {v, (v + 1) & 0xffff, 0, 0};
      if (i % 4 == 0) assert_memory_equal(got, whole, 16);
      if (i % 4 == 1) assert_memory_equal(got, part, 16);
      if (i % 4 == 2) assert_true(got[0] == 0 && got[1] == 0);
      if (i % 4 == 3) assert_int_equal(got[1], v + 1);
    }
  }
}

// A pipeline of one producer and one consumer warp over two stages, 6 rounds:
// full and empty barriers, by parity; copies arrive on the full one.
static const char pipe_ptx[] = HEAD90
    ".shared .align 8 .b64 full[2];\n.shared .align 8 .b64 empty[2];\n"
    ".shared .align 16 .b8 box[256];\n" SOFT_KIT_KERNEL(
        ".reg .b32 %full, %empty, %i, %stage, %parity, %buf, %fb, %eb, %v;\n"
        "mov.b32 %full, full;\nmov.b32 %empty, empty;\nmov.b32 %buf, box;\n"
        "setp.eq.u32 %p1, %r4, 0;\n@!%p1 bra READY;\n"
        "mbarrier.init.shared.b64 [%full], 32;\n"
        "mbarrier.init.shared.b64 [%full+8], 32;\n"
        "mbarrier.init.shared::cta.b64 [%empty], 32;\n"
        "mbarrier.init.shared::cta.b64 [%empty+8], 32;\n"
        "READY:\nbar.sync 0;\nmov.u32 %i, 0;\n"
        "setp.ge.u32 %p2, %r4, 32;\n@%p2 bra TAKE;\n"
        // The producer: waits for empty of the phase before.
        "GIVE:\nand.b32 %stage, %i, 1;\nshr.u32 %parity, %i, 1;\n"
        "and.b32 %parity, %parity, 1;\nxor.b32 %parity, %parity, 1;\n"
        "mad.lo.u32 %eb, %stage, 8, %empty;\nmad.lo.u32 %fb, %stage, 8, "
        "%full;\n"
        "W1:\nmbarrier.try_wait.parity.shared.b64 %p3, [%eb], %parity;\n"
        "@!%p3 bra W1;\n"
        "mad.lo.u32 %v, %i, 32, %r4;\nmul.wide.u32 %rd5, %v, 4;\n"
        "add.s64 %rd6, %rd3, %rd5;\nst.global.u32 [%rd6+8192], %v;\n"
        "mad.lo.u32 %r10, %stage, 128, %buf;\nmad.lo.u32 %r10, %r4, 4, %r10;\n"
        "cp.async.ca.shared.global [%r10], [%rd6+8192], 4;\n"
        "cp.async.mbarrier.arrive.shared.b64 [%fb];\n"
        "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%fb];\n"
        "add.u32 %i, %i, 1;\nsetp.lt.u32 %p4, %i, 6;\n@%p4 bra GIVE;\nret;\n"
        "TAKE:\nand.b32 %stage, %i, 1;\nshr.u32 %parity, %i, 1;\n"
        "and.b32 %parity, %parity, 1;\n"
        "mad.lo.u32 %eb, %stage, 8, %empty;\nmad.lo.u32 %fb, %stage, 8, "
        "%full;\n"
        "W2:\nmbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p3, "
        "[%fb], %parity;\n@!%p3 bra W2;\n"
        "sub.u32 %r11, %r4, 32;\nxor.b32 %r12, %r11, 31;\n"
        "mad.lo.u32 %r10, %stage, 128, %buf;\nmad.lo.u32 %r10, %r12, 4, "
        "%r10;\n"
        "ld.shared.u32 %v, [%r10];\n"
        "mad.lo.u32 %r13, %i, 32, %r11;\nmul.wide.u32 %rd5, %r13, 4;\n"
        "add.s64 %rd6, %rd3, %rd5;\nst.global.u32 [%rd6], %v;\n"
        "mbarrier.arrive.release.cta.shared::cta.b64 _, [%eb];\n"
        "add.u32 %i, %i, 1;\nsetp.lt.u32 %p4, %i, 6;\n@%p4 bra TAKE;\nret;\n");

static void test_pipeline(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(pipe_ptx, 1, 64);
    for (uint32_t i = 0; i < 6 * 32; i++) {
      assert_int_equal(out[i], i / 32 * 32 + (31 - i % 32));
    }
  }
}

// One thread goes through the phases by hand.
static const char phases_ptx[] =
    HEAD90 ".shared .align 8 .b64 bar;\n" SOFT_KIT_KERNEL(
        "mov.b32 %r5, bar;\nmov.b64 %rd5, bar;\ncvta.shared.u64 %rd6, %rd5;\n"
        "mbarrier.init.b64 [%rd6], 3;\n"
        "mbarrier.arrive.shared.b64 %rd7, [%r5];\n"
        "mbarrier.pending_count.b64 %r6, %rd7;\n"
        "st.global.u32 [%rd3], %r6;\n"  // 3
        "mbarrier.test_wait.shared.b64 %p1, [%r5], %rd7;\n"
        "selp.u32 %r7, 1, 0, %p1;\nst.global.u32 [%rd3+4], %r7;\n"  // 0
        "mbarrier.arrive.shared.b64 %rd8, [%r5], 2;\n"
        "mbarrier.pending_count.b64 %r6, %rd8;\n"
        "st.global.u32 [%rd3+8], %r6;\n"  // 2
        "mbarrier.test_wait.shared.b64 %p1, [%r5], %rd7;\n"
        "selp.u32 %r7, 1, 0, %p1;\nst.global.u32 [%rd3+12], %r7;\n"  // 1
        // The second phase waits for bytes, too, and loses one who arrives.
        "mbarrier.arrive.expect_tx.shared::cta.b64 %rd9, [%r5], 100;\n"
        "mbarrier.arrive_drop.shared.b64 %rd10, [%r5];\n"
        "mbarrier.arrive.noComplete.shared.b64 %rd11, [%r5], 1;\n"
        "mbarrier.try_wait.parity.shared.b64 %p1, [%r5], 1, 20;\n"
        "selp.u32 %r7, 1, 0, %p1;\nst.global.u32 [%rd3+16], %r7;\n"  // 0
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r5], 28;\n"
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r5], 100;\n"
        "mbarrier.test_wait.shared.b64 %p1, [%r5], %rd9;\n"
        "selp.u32 %r7, 1, 0, %p1;\nst.global.u32 [%rd3+20], %r7;\n"  // 0
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r5], 28;\n"
        "mbarrier.test_wait.shared.b64 %p1, [%r5], %rd9;\n"
        "selp.u32 %r7, 1, 0, %p1;\nst.global.u32 [%rd3+24], %r7;\n"  // 1
        "mbarrier.arrive.shared.b64 %rd12, [%r5];\n"
        "mbarrier.pending_count.b64 %r6, %rd12;\n"
        "st.global.u32 [%rd3+28], %r6;\n"  // 2: one was dropped
        "mbarrier.inval.shared.b64 [%r5];\nret;\n");

static void test_phases(void** state) {
  (void)state;
  static const uint32_t want[8] = {3, 0, 2, 1, 0, 0, 1, 2};
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(phases_ptx, 1, 1);
    assert_memory_equal(out, want, sizeof(want));
  }
}

static const char wrong_ptx[] =
    HEAD90 ".shared .align 8 .b64 bar;\n" SOFT_KIT_KERNEL(
        "mov.b32 %r5, bar;\nmbarrier.init.shared.b64 [%r5], 2;\n"
        "mbarrier.arrive.shared.b64 %rd7, [%r5], 3;\nret;\n");

static void test_wrong_arrival(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    assert_int_equal(soft_kit_words(&kit, wrong_ptx, 1, 1, out, 4096, NULL),
                     KILNI_SOFT_FAULT_ILLEGAL_INSTRUCTION);
  }
}

// Elections: of everybody, and of the odd lanes from two places.
static const char elect_ptx[] = HEAD90 SOFT_KIT_KERNEL(
    "elect.sync %r5|%p1, 0xffffffff;\nselp.u32 %r6, 100, 0, %p1;\n"
    "add.u32 %r6, %r6, %r5;\nst.global.u32 [%rd1], %r6;\n"
    "and.b32 %r7, %r4, 1;\nsetp.eq.u32 %p2, %r7, 0;\n@%p2 ret;\n"
    "setp.lt.u32 %p3, %r4, 16;\n@%p3 bra LOW;\n"
    "elect.sync %r8|%p4, 0xaaaaaaaa;\nbra BOTH;\n"
    "LOW:\nelect.sync %r8|%p4, 0xaaaaaaaa;\n"
    "BOTH:\nselp.u32 %r9, 100, 0, %p4;\nadd.u32 %r9, %r9, %r8;\n"
    "st.global.u32 [%rd1+512], %r9;\nret;\n");

static void test_elections(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(elect_ptx, 1, 32);
    for (uint32_t i = 0; i < 32; i++) {
      assert_int_equal(out[i], i == 0 ? 100 : 0);
      if (i & 1) assert_int_equal(out[128 + i], i == 1 ? 101 : 1);
    }
  }
}

// Every block is a cluster; its barrier has two halves.
static const char cluster_ptx[] =
    HEAD90 ".shared .b32 box[64];\n" SOFT_KIT_KERNEL(
        "mov.b32 %r5, box;\nmad.lo.u32 %r6, %r4, 4, %r5;\n"
        "mov.u32 %r7, %cluster_ctarank;\nmov.u32 %r8, %cluster_nctarank;\n"
        "mov.u32 %r9, %clusterid.x;\nmov.u32 %r10, %nclusterid.x;\n"
        "mov.pred %p1, %is_explicit_cluster;\nselp.u32 %r11, 1, 0, %p1;\n"
        "mul.lo.u32 %r12, %r7, 10;\nadd.u32 %r12, %r12, %r8;\n"
        "mad.lo.u32 %r12, %r9, 100, %r12;\nmad.lo.u32 %r12, %r10, 1000, "
        "%r12;\n"
        "mad.lo.u32 %r12, %r11, 10000, %r12;\n"
        "mapa.shared::cluster.u32 %r13, %r6, 0;\n"
        "st.shared::cluster.u32 [%r13], %r12;\n"
        "barrier.cluster.arrive.release;\n"
        "add.u32 %r14, %r4, 1;\n"
        "barrier.cluster.wait.acquire;\n"
        "xor.b32 %r15, %r4, 63;\nmad.lo.u32 %r15, %r15, 4, %r5;\n"
        "ld.shared.u32 %r16, [%r15];\n"
        "mov.b64 %rd5, box;\ngetctarank.shared::cluster.u64 %r17, %rd5;\n"
        "add.u32 %r16, %r16, %r17;\n"
        "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
        "griddepcontrol.wait;\ngriddepcontrol.launch_dependents;\n"
        "fence.proxy.async;\nfence.mbarrier_init.release.cluster;\n"
        "fence.acq_rel.cluster;\n"
        "st.global.u32 [%rd1], %r16;\nret;\n");

static void test_cluster_of_one(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(cluster_ptx, 2, 64);
    for (uint32_t i = 0; i < 128; i++) {
      assert_int_equal(out[i], 2001 + i / 64 * 100);
    }
  }
}

static const char lop_ptx[] = HEAD90 SOFT_KIT_KERNEL(
    "and.b32 %r5, %r4, 3;\nsetp.eq.u32 %p1, %r5, 1;\n"
    "mov.b32 %r6, 2;\n"
    "lop3.or.b32 %r7|%p2, %r4, %r6, 0, 0xc0, %p1;\n"  // a & b
    "lop3.and.b32 _|%p3, %r4, %r6, 0, 0xc0, !%p1;\n"
    "selp.u32 %r8, 10, 0, %p2;\nselp.u32 %r9, 100, 0, %p3;\n"
    "add.u32 %r7, %r7, %r8;\nadd.u32 %r7, %r7, %r9;\n"
    "st.global.u32 [%rd1], %r7;\nret;\n");

static void test_lop3(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(lop_ptx, 1, 32);
    for (uint32_t i = 0; i < 32; i++) {
      bool some = i & 2;
      bool p = (i & 3) == 1;
      assert_int_equal(out[i],
                       (i & 2) + (some || p ? 10 : 0) + (some && !p ? 100 : 0));
    }
  }
}

// Each thread takes a block from the heap, fills it, and gives back the one of
// its neighbour; what is too much is NULL.
static const char heap_ptx[] = HEAD90
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
    ".extern .func free(.param .b64 p);\n"
    ".shared .align 8 .b64 box[64];\n" SOFT_KIT_KERNEL(
        "mad.lo.u32 %r5, %r4, 4, 4;\ncvt.u64.u32 %rd5, %r5;\n"
        "{ .param .b64 a;\n.param .b64 b;\nst.param.b64 [a], %rd5;\n"
        "call.uni (b), malloc, (a);\nld.param.b64 %rd6, [b];\n}\n"
        "mul.wide.u32 %rd7, %r4, 4;\nadd.s64 %rd8, %rd6, %rd7;\n"
        "st.u32 [%rd8], %r1;\n"
        "mov.b32 %r6, box;\nmad.lo.u32 %r7, %r4, 8, %r6;\n"
        "st.shared.u64 [%r7], %rd6;\nbar.sync 0;\n"
        "xor.b32 %r8, %r4, 1;\nmad.lo.u32 %r9, %r8, 8, %r6;\n"
        "ld.shared.u64 %rd9, [%r9];\nmul.wide.u32 %rd10, %r8, 4;\n"
        "add.s64 %rd11, %rd9, %rd10;\nld.u32 %r10, [%rd11];\nbar.sync 0;\n"
        "{ .param .b64 a;\nst.param.b64 [a], %rd9;\n"
        "call.uni free, (a);\n}\n"
        "{ .param .b64 a;\nst.param.b64 [a], 0;\ncall.uni free, (a);\n}\n"
        "mov.u64 %rd12, 0x10000000;\n"
        "{ .param .b64 a;\n.param .b64 b;\nst.param.b64 [a], %rd12;\n"
        "call.uni (b), malloc, (a);\nld.param.b64 %rd13, [b];\n}\n"
        "setp.eq.u64 %p1, %rd13, 0;\nselp.u32 %r11, 1000, 0, %p1;\n"
        "add.u32 %r10, %r10, %r11;\nst.global.u32 [%rd1], %r10;\nret;\n");

static const char bad_free_ptx[] =
    HEAD90 ".extern .func free(.param .b64 p);\n" SOFT_KIT_KERNEL(
        "{ .param .b64 a;\nst.param.b64 [a], %rd1;\n"
        "call.uni free, (a);\n}\nret;\n");

static void test_heap(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    uint64_t before = 0;
    for (int round = 0; round < 3; round++) {
      must_run(heap_ptx, 4, 64);
      for (uint32_t i = 0; i < 256; i++) {
        assert_int_equal(out[i], (i ^ 1) + 1000);
      }
      // Nothing is left behind but what the kit holds.
      uint64_t used = kilni_soft_memory_used(kit.memory);
      if (round == 0) before = used;
      assert_true(used <= before + (uint64_t)round * sizeof(out));
    }
    assert_int_equal(soft_kit_words(&kit, bad_free_ptx, 1, 32, out, 4096, NULL),
                     KILNI_SOFT_FAULT_ILLEGAL_ADDRESS);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_copies),
      cmocka_unit_test(test_pipeline),
      cmocka_unit_test(test_phases),
      cmocka_unit_test(test_wrong_arrival),
      cmocka_unit_test(test_elections),
      cmocka_unit_test(test_lop3),
      cmocka_unit_test(test_cluster_of_one),
      cmocka_unit_test(test_heap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
