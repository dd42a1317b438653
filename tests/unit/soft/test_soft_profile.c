// SPDX-License-Identifier: Apache-2.0
//
// soft: what a profiled kernel is said to have done, against what it does.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "soft_kit.h"

static soft_kit_t kit;

static uint64_t total_of(const kiln_soft_profile_t* profile) {
  uint64_t total = 0;
  for (int i = 0; i < KILN_SOFT_CLASS_COUNT; i++) {
    total += profile->instructions[i];
  }
  return total;
}

static const kiln_soft_traffic_t* traffic_of(uint32_t place, uint32_t shape) {
  return &kit.profile.traffic[place][shape];
}

// A word in shared memory of each thread, behind a barrier; its neighbour's,
// one that is the same for all, one in eight bytes, one by a permutation.
static const char shapes_ptx[] =
    SOFT_KIT_HEAD ".shared .align 4 .b8 box[8192];\n" SOFT_KIT_KERNEL(
        "mov.u32 %r6, box;\ncvt.u64.u32 %rd9, %r4;\nmov.u64 %rd5, box;\n"
        "shl.b64 %rd6, %rd9, 2;\nadd.s64 %rd7, %rd5, %rd6;\n"
        "st.shared.u32 [%rd7], %r1;\nbar.sync 0;\n"
        "ld.shared.u32 %r7, [%rd7+4];\n"
        "ld.shared.u32 %r8, [box];\n"
        "shl.b64 %rd8, %rd9, 3;\nadd.s64 %rd10, %rd5, %rd8;\n"
        "ld.shared.u32 %r9, [%rd10];\n"
        "mul.lo.u32 %r10, %r4, %r4;\nand.b32 %r11, %r10, 31;\n"
        "shl.b32 %r12, %r11, 2;\ncvt.u64.u32 %rd11, %r12;\n"
        "add.s64 %rd12, %rd5, %rd11;\nld.shared.u32 %r13, [%rd12];\n"
        "st.global.u32 [%rd1], %r8;\nret;\n");

static void test_shapes(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    kit.profiled = 1;
    uint32_t out[256];
    soft_kit_must_words(&kit, shapes_ptx, 2, 128, out, 256);
    assert_int_equal(total_of(&kit.profile), kit.executed);
    const uint32_t shared = KILN_SOFT_PLACE_SHARED;
    // Eight warps: a store and a load one after another, and each other load.
    assert_int_equal(traffic_of(shared, KILN_SOFT_SHAPE_CONSECUTIVE)->accesses,
                     16);
    assert_int_equal(traffic_of(shared, KILN_SOFT_SHAPE_UNIFORM)->accesses, 8);
    assert_int_equal(traffic_of(shared, KILN_SOFT_SHAPE_UNIFORM)->sectors, 8);
    assert_int_equal(traffic_of(shared, KILN_SOFT_SHAPE_STRIDED)->accesses, 8);
    assert_int_equal(traffic_of(shared, KILN_SOFT_SHAPE_STRIDED)->sectors,
                     8 * 8);
    assert_int_equal(traffic_of(shared, KILN_SOFT_SHAPE_SCATTERED)->accesses,
                     8);
    assert_int_equal(
        traffic_of(KILN_SOFT_PLACE_GLOBAL, KILN_SOFT_SHAPE_CONSECUTIVE)
            ->sectors,
        8 * 4);
    assert_int_equal(kit.profile.barriers, 8);
    assert_int_equal(kit.profile.instructions[KILN_SOFT_CLASS_BARRIER], 256);
    assert_int_equal(kit.profile.instructions[KILN_SOFT_CLASS_LOAD], 256 * 4);
    assert_int_equal(kit.profile.instructions[KILN_SOFT_CLASS_STORE], 256 * 2);
    assert_int_equal(kit.profile.warp_instructions * 32, kit.executed);
    assert_int_equal(kit.profile.blocks, 2);
    assert_true(kit.profile.block_ns_least <= kit.profile.block_ns_median);
    assert_true(kit.profile.block_ns_median <= kit.profile.block_ns_most);
    assert_true(kit.profile.block_ns_least > 0);
  }
}

// Even lanes go one way, odd ones the other; a guarded instruction is executed
// by a quarter.
static const char parted_ptx[] = SOFT_KIT_HEAD SOFT_KIT_KERNEL(
    "and.b32 %r5, %r4, 1;\nsetp.eq.u32 %p1, %r5, 0;\n"
    "mov.u32 %r6, %r1;\n@%p1 bra EVEN;\n"
    "cvt.rn.f32.u32 %f1, %r1;\nadd.f32 %f2, %f1, %f1;\n"
    "mov.b32 %r6, %f2;\nbra.uni BOTH;\n"
    "EVEN:\nadd.s32 %r6, %r6, 1;\nBOTH:\n"
    "and.b32 %r7, %r4, 3;\nsetp.eq.u32 %p2, %r7, 0;\n"
    "@%p2 add.f32 %f3, %f1, 0f3f800000;\n"
    "st.global.u32 [%rd1], %r6;\nret;\n");

static void test_parted(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    uint32_t plain[64];
    uint32_t out[64];
    kit.profiled = 0;
    soft_kit_must_words(&kit, parted_ptx, 1, 64, plain, 64);
    uint64_t executed = kit.executed;
    kit.profiled = 1;
    soft_kit_must_words(&kit, parted_ptx, 1, 64, out, 64);
    assert_memory_equal(out, plain, sizeof(out));
    assert_int_equal(kit.executed, executed);
    assert_int_equal(total_of(&kit.profile), executed);
    assert_int_equal(kit.profile.diverged, 2);
    assert_int_equal(kit.profile.instructions[KILN_SOFT_CLASS_F32], 32 + 16);
    assert_int_equal(kit.profile.instructions[KILN_SOFT_CLASS_CONVERT], 32);
    assert_int_equal(kit.profile.instructions[KILN_SOFT_CLASS_COMPARE], 128);
    assert_true(kit.profile.warp_instructions * 32 > executed);
  }
}

// Calls, loops of other lengths, a switch, shuffles and atomics.
static const char many_ptx[] = SOFT_KIT_HEAD
    ".func (.param .b32 r) twice(.param .b32 x)\n{\n.reg .b32 %r<4>;\n"
    "ld.param.b32 %r1, [x];\nadd.s32 %r2, %r1, %r1;\n"
    "st.param.b32 [r], %r2;\nret;\n}\n" SOFT_KIT_KERNEL(
        "and.b32 %r5, %r4, 7;\nmov.u32 %r6, 0;\nLOOP:\n"
        "{\n.param .b32 a;\n.param .b32 b;\nst.param.b32 [a], %r5;\n"
        "call.uni (b), twice, (a);\nld.param.b32 %r7, [b];\n}\n"
        "add.s32 %r6, %r6, %r7;\nsub.s32 %r5, %r5, 1;\n"
        "setp.gt.s32 %p1, %r5, 0;\n@%p1 bra LOOP;\n"
        "shfl.sync.bfly.b32 %r8, %r6, 1, 31, -1;\n"
        "atom.global.add.u32 %r9, [%rd3], %r8;\nret;\n");

static void test_sum(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    uint32_t out[96];
    kit.profiled = 0;
    soft_kit_must_words(&kit, many_ptx, 3, 32, out, 96);
    uint64_t executed = kit.executed;
    uint32_t sum = out[0];
    kit.profiled = 1;
    soft_kit_must_words(&kit, many_ptx, 3, 32, out, 96);
    assert_int_equal(out[0], sum);
    assert_int_equal(kit.executed, executed);
    assert_int_equal(total_of(&kit.profile), executed);
    assert_int_equal(kit.profile.instructions[KILN_SOFT_CLASS_WARP], 96);
    assert_int_equal(kit.profile.instructions[KILN_SOFT_CLASS_ATOMIC], 96);
    assert_true(kit.profile.instructions[KILN_SOFT_CLASS_CALL] > 96);
  }
}

static void test_times(void** state) {
  (void)state;
  static kilni_soft_profile_t times;
  kiln_soft_profile_t sums;
  memset(&times, 0, sizeof(times));
  kilni_soft_profile_sum(&times, &sums);
  assert_int_equal(sums.block_ns_median, 0);
  for (uint64_t ns = 1; ns < 1u << 20; ns += 7) {
    kilni_soft_profile_block(&times, ns);
  }
  kilni_soft_profile_block(&times, UINT64_MAX);
  kilni_soft_profile_sum(&times, &sums);
  assert_int_equal(sums.block_ns_least, 1);
  assert_true(sums.block_ns_most == UINT64_MAX);
  assert_in_range(sums.block_ns_median, 508000, 541000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shapes),
      cmocka_unit_test(test_parted),
      cmocka_unit_test(test_sum),
      cmocka_unit_test(test_times),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
