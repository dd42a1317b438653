// SPDX-License-Identifier: Apache-2.0
//
// soft: all memory spaces and widths, faults and what their reports say, and
// what is refused when a module is loaded.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "soft_kit.h"

enum { OUT_BYTES = 4096 };

static soft_kit_t kit;
static uint32_t out[OUT_BYTES / 4];
static uint64_t out_address;

static kilni_soft_fault_kind_t run(const char* ptx, uint32_t grid,
                                   uint32_t block) {
  return soft_kit_words(&kit, ptx, grid, block, out, OUT_BYTES / 4,
                        &out_address);
}

static void must_run(const char* ptx, uint32_t grid, uint32_t block) {
  soft_kit_must_words(&kit, ptx, grid, block, out, OUT_BYTES / 4);
}

// Each width goes through each space and comes back, by consecutive, equal,
// strided and scattered addresses.
static const char spaces_ptx[] = SOFT_KIT_HEAD
    ".shared .align 16 .b8 pool[4096];\n.const .align 8 .u64 big[2] = "
    "{0x1122334455667788, 5};\n"
    ".global .align 4 .u32 seed[4] = {7, 8, 9, 10};\n" SOFT_KIT_KERNEL(
        ".local .align 16 .b8 mine[64];\n"
        // shared, through a 32-bit address, 16-bit lanes in reverse
        "mov.u32 %r10, pool;\nsub.u32 %r11, 63, %r4;\nshl.b32 %r12, %r11, 1;\n"
        "add.u32 %r13, %r10, %r12;\ncvt.u16.u32 %rs1, %r4;\n"
        "st.shared.u16 [%r13], %rs1;\nbar.sync 0;\n"
        "shl.b32 %r14, %r4, 1;\nadd.u32 %r14, %r10, %r14;\n"
        "ld.shared.u16 %rs2, [%r14];\ncvt.u32.u16 %r15, %rs2;\n"
        // local, a vector and its parts, through the generic space
        "mov.u64 %rd10, mine;\ncvta.local.u64 %rd11, %rd10;\n"
        "st.v4.u32 [%rd11+16], {%r4, %r15, 3, 4};\n"
        "ld.local.v2.u32 {%r16, %r17}, [mine+16];\nld.u8 %r18, [%rd11+24];\n"
        // constant and global variables
        "ld.const.u8 %r19, [big+1];\nld.const.s8 %r20, [big];\n"
        "and.b32 %r21, %r4, 3;\nmul.wide.u32 %rd12, %r21, 4;\n"
        "mov.u64 %rd13, seed;\nadd.u64 %rd13, %rd13, %rd12;\n"
        "ld.global.u32 %r22, [%rd13];\nld.global.u32 %r23, [seed+4];\n"
        // sum of all
        "add.u32 %r30, %r15, %r16;\nadd.u32 %r30, %r30, %r17;\n"
        "add.u32 %r30, %r30, %r18;\nadd.u32 %r30, %r30, %r19;\n"
        "add.u32 %r30, %r30, %r20;\nadd.u32 %r30, %r30, %r22;\n"
        "add.u32 %r30, %r30, %r23;\nst.global.u32 [%rd1], %r30;\nret;\n");

static void test_spaces(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(spaces_ptx, 1, 64);
    for (uint32_t i = 0; i < 64; i++) {
      uint32_t back = 63 - i;
      uint32_t want =
          back + i + back + 3 + 0x77 + (uint32_t)-0x78 + (7 + i % 4) + 8;
      assert_int_equal(out[i], want);
    }
  }
}

// What NVRTC makes of a volatile variable of a thread from PTX 9.1 on.
static const char volatile_ptx[] =
    ".version 9.5\n.target sm_90\n.address_size 64\n" SOFT_KIT_KERNEL(
        ".local .align 16 .b8 mine[64];\n.reg .f64 %fd<4>;\n"
        "mov.u64 %rd10, mine;\ncvta.local.u64 %rd11, %rd10;\n"
        "st.volatile.local.u32 [%rd10], %r4;\n"
        "cvt.u16.u32 %rs1, %r4;\nst.volatile.local.u8 [%rd10+4], %rs1;\n"
        "mov.f64 %fd1, 0d4008000000000000;\n"
        "st.volatile.local.f64 [mine+8], %fd1;\n"
        "st.volatile.local.v2.u32 [mine+16], {%r4, 5};\n"
        "ld.volatile.u32 %r10, [%rd11];\nst.volatile.u32 [%rd11], 100;\n"
        "ld.volatile.local.u32 %r11, [%rd10];\n"
        "ld.volatile.local.s8 %r12, [%rd10+4];\n"
        "ld.volatile.local.f64 %fd2, [%rd10+8];\ncvt.rzi.u32.f64 %r13, %fd2;\n"
        "ld.volatile.local.v2.u32 {%r14, %r15}, [mine+16];\n"
        "add.u32 %r30, %r10, %r11;\nadd.u32 %r30, %r30, %r12;\n"
        "add.u32 %r30, %r30, %r13;\nadd.u32 %r30, %r30, %r14;\n"
        "add.u32 %r30, %r30, %r15;\nst.global.u32 [%rd1], %r30;\nret;\n");

static void test_volatile_local(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(volatile_ptx, 1, 64);
    for (uint32_t i = 0; i < 64; i++) {
      assert_int_equal(out[i], i + 100 + i + 3 + i + 5);
    }
  }
}

// Rows of a tile and permuted vectors, which whole warps take by eights and by
// rows of 16 bytes; of lanes that store vectors to one place that of the lowest
// of the last eight stays.
static const char tiles_ptx[] = SOFT_KIT_HEAD
    ".shared .align 16 .b8 pool[1024];\n"
    ".shared .align 16 .b8 few[64];\n" SOFT_KIT_KERNEL(
        "mov.u64 %rd10, pool;\nmov.u64 %rd11, few;\n"
        "mul.wide.u32 %rd12, %r4, 16;\nadd.u64 %rd13, %rd10, %rd12;\n"
        "shl.b32 %r10, %r4, 2;\nadd.u32 %r11, %r10, 1;\n"
        "add.u32 %r12, %r10, 2;\nadd.u32 %r13, %r10, 3;\n"
        "st.shared.v4.u32 [%rd13], {%r10, %r11, %r12, %r13};\nbar.sync 0;\n"
        "mul.lo.u32 %r14, %r4, 5;\nand.b32 %r14, %r14, 31;\n"
        "mul.wide.u32 %rd14, %r14, 16;\nadd.u64 %rd14, %rd10, %rd14;\n"
        "ld.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%rd14];\n"
        "ld.shared.v2.u64 {%rd20, %rd21}, [%rd14];\n"
        "cvt.u32.u64 %r24, %rd20;\nshr.u64 %rd21, %rd21, 32;\n"
        "cvt.u32.u64 %r25, %rd21;\n"
        "mul.wide.u32 %rd15, %r14, 8;\nadd.u64 %rd15, %rd10, %rd15;\n"
        "ld.shared.v2.u32 {%r26, %r27}, [%rd15];\n"
        "shr.u32 %r15, %r4, 3;\nand.b32 %r16, %r4, 7;\n"
        "mul.wide.u32 %rd16, %r15, 8;\nadd.u64 %rd16, %rd10, %rd16;\n"
        "ld.shared.u32 %r28, [%rd16];\nld.shared.u64 %rd22, [%rd16];\n"
        "shr.u64 %rd22, %rd22, 32;\ncvt.u32.u64 %r29, %rd22;\n"
        "mad.lo.u32 %r17, %r15, 11, %r16;\n"
        "mul.wide.u32 %rd17, %r17, 8;\nadd.u64 %rd17, %rd10, %rd17;\n"
        "ld.shared.u64 %rd23, [%rd17+8];\ncvt.u32.u64 %r30, %rd23;\n"
        "mul.wide.u32 %rd18, %r17, 4;\nadd.u64 %rd18, %rd10, %rd18;\n"
        "ld.shared.u32 %r31, [%rd18+4];\n"
        "and.b32 %r18, %r4, 3;\nmul.wide.u32 %rd19, %r18, 16;\n"
        "add.u64 %rd19, %rd11, %rd19;\nadd.u32 %r19, %r4, 100;\n"
        "st.shared.v4.u32 [%rd19], {%r4, %r4, %r4, %r19};\nbar.sync 0;\n"
        "ld.shared.u32 %r32, [%rd19+4];\nld.shared.u32 %r33, [%rd19+12];\n"
        "mul.wide.u32 %rd24, %r4, 64;\nadd.u64 %rd24, %rd3, %rd24;\n"
        "st.global.v4.u32 [%rd24], {%r20, %r21, %r22, %r23};\n"
        "st.global.v4.u32 [%rd24+16], {%r24, %r25, %r26, %r27};\n"
        "st.global.v4.u32 [%rd24+32], {%r28, %r29, %r30, %r31};\n"
        "st.global.v2.u32 [%rd24+48], {%r32, %r33};\nret;\n");

static void test_tiles(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(tiles_ptx, 1, 32);
    for (uint32_t i = 0; i < 32; i++) {
      uint32_t p = i * 5 % 32;
      uint32_t at = i / 8 * 11 + i % 8;
      // The lane that stays of those that store to one place.
      uint32_t last = way_.seed ? out[16 * i + 12] : 24 + i % 4;
      assert_true(last < 32 && last % 4 == i % 4);
      uint32_t want[14] = {4 * p,     4 * p + 1,     4 * p + 2,  4 * p + 3,
                           4 * p,     4 * p + 3,     2 * p,      2 * p + 1,
                           i / 8 * 2, i / 8 * 2 + 1, 2 * at + 2, at + 1,
                           last,      last + 100};
      assert_memory_equal(out + 16 * i, want, sizeof(want));
    }
  }
}

// Stores of each size by the lanes whose bit is set in `mask`: to one address,
// and to addresses of which each is two lanes'.
static const char one_address_ptx[] = SOFT_KIT_HEAD
    ".shared .align 16 .b8 pool[4096];\n"
    ".visible .entry k(.param .u64 out, .param .u64 mask)\n{\n"
    ".reg .pred %p<9>;\n.reg .b16 %rs<9>;\n.reg .b32 %r<30>;\n"
    ".reg .b64 %rd<30>;\n"
    "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [mask];\n"
    "mov.u32 %r1, %tid.x;\ncvt.u16.u32 %rs1, %r1;\ncvt.u64.u32 %rd3, %r1;\n"
    "cvt.u32.u64 %r2, %rd2;\nshr.u32 %r3, %r2, %r1;\nand.b32 %r3, %r3, 1;\n"
    "setp.ne.u32 %p1, %r3, 0;\nmov.u64 %rd10, pool;\n"
    "cvta.shared.u64 %rd11, %rd10;\n"
    // Lane 3 apart, the rest in one place; and two lanes to a place.
    "setp.eq.u32 %p2, %r1, 3;\nselp.u32 %r4, 16, 0, %p2;\n"
    "cvt.u64.u32 %rd4, %r4;\nshr.u32 %r5, %r1, 1;\n"
    "mul.wide.u32 %rd5, %r5, 16;\n"
    "add.u64 %rd12, %rd1, %rd4;\nadd.u64 %rd13, %rd1, %rd5;\n"
    "add.u64 %rd14, %rd10, %rd5;\nadd.u64 %rd15, %rd11, %rd5;\n"
    "mov.b64 %rd20, {%r1, %r1};\n"
    "@%p1 st.global.u8 [%rd1], %rs1;\n@%p1 st.global.u16 [%rd1+16], %rs1;\n"
    "@%p1 st.global.u32 [%rd1+32], %r1;\n@%p1 st.global.u64 [%rd1+48], %rd3;\n"
    "@%p1 st.global.v2.u32 [%rd1+64], {%r1, %r1};\n"
    "@%p1 st.global.v4.u32 [%rd1+80], {%r1, %r1, %r1, %r1};\n"
    "@%p1 st.global.v2.u64 [%rd1+96], {%rd20, %rd20};\n"
    "@%p1 st.global.v4.u8 [%rd1+112], {%rs1, %rs1, %rs1, %rs1};\n"
    "@%p1 st.relaxed.gpu.global.u32 [%rd1+128], %r1;\n"
    "@%p1 st.volatile.global.v4.u32 [%rd1+144], {%r1, %r1, %r1, %r1};\n"
    "@%p1 st.u32 [%rd1+160], %r1;\n"
    "@%p1 st.global.u32 [%rd12+176], %r1;\n"
    "@%p1 st.global.u32 [%rd13+1024], %r1;\n"
    "@%p1 st.global.u8 [%rd13+1028], %rs1;\n"
    "@%p1 st.global.u64 [%rd13+1032], %rd3;\n"
    "@%p1 st.global.v4.u32 [%rd13+1280], {%r1, %r1, %r1, %r1};\n"
    "@%p1 st.global.v2.u64 [%rd13+1536], {%rd20, %rd20};\n"
    "@%p1 st.shared.u32 [%rd14], %r1;\n@%p1 st.u32 [%rd15+4], %r1;\n"
    "@%p1 st.shared.v2.u32 [%rd14+8], {%r1, %r1};\n"
    "bar.warp.sync -1;\nld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%rd14];\n"
    "@%p1 st.global.v4.u32 [%rd13+1792], {%r10, %r11, %r12, %r13};\nret;\n}\n";

static uint32_t lowest(uint32_t mask) {
  return (uint32_t)__builtin_ctz(mask);
}

// The lane of `mask` whose `bytes` stay in one place: 128 bytes are stored at a
// time, so that of the last 16 lanes or the last 8 that store the lowest stays.
static uint32_t remaining(uint32_t mask, uint32_t bytes) {
  uint32_t lanes = bytes <= 4 ? 32 : 128 / bytes;
  uint32_t end = 32 - (uint32_t)__builtin_clz(mask);
  uint32_t begin = (end - 1) / lanes * lanes;
  return lowest(mask & UINT32_MAX << begin);
}

static void one_address(uint32_t mask) {
  static const uint32_t one[3] = {1, 1, 1};
  static const uint32_t warp[3] = {32, 1, 1};
  uint32_t got[1024];
  uint64_t given[2] = {soft_kit_buffer(&kit, NULL, sizeof(got)), mask};
  kilni_soft_fault_kind_t kind =
      soft_kit_launch(&kit, "k", one, warp, 0, given, sizeof(given));
  if (kind != KILNI_SOFT_FAULT_NONE) fail_msg("%s", kit.report);
  soft_kit_read(&kit, given[0], got, sizeof(got));
  static const uint32_t kBytes[11] = {1, 2, 4, 8, 8, 16, 16, 4, 4, 16, 4};
  for (uint32_t i = 0; i < 11; i++) {
    uint32_t first = remaining(mask, kBytes[i]);
    uint32_t want = i == 7 ? first * 0x01010101u : first;
    for (uint32_t k = 0; k < (kBytes[i] < 16 ? 1 : 4); k++) {
      if (got[4 * i + k] == want) continue;
      fail_msg("mask %#x, %u bytes at %u: %u", mask, kBytes[i], 16 * i,
               got[4 * i + k]);
    }
  }
  uint32_t others = mask & ~8u;
  if (others) assert_int_equal(got[44], lowest(others));
  for (uint32_t pair = 0; pair < 16; pair++) {
    uint32_t both = mask & 3u << 2 * pair;
    if (!both) continue;
    uint32_t want = lowest(both);
    assert_int_equal(got[256 + 4 * pair], want);
    assert_int_equal(got[256 + 4 * pair + 1], want);
    assert_int_equal(got[256 + 4 * pair + 2], want);
    for (uint32_t k = 0; k < 4; k++) {
      assert_int_equal(got[320 + 4 * pair + k], want);
      assert_int_equal(got[384 + 4 * pair + k], want);
      assert_int_equal(got[448 + 4 * pair + k], want);
    }
  }
}

// Where lanes of a warp store to one address by one instruction an H200 keeps
// the value of the lowest that executes, among those that it stores at once.
static void test_the_lowest_lane_remains(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    if (way_.seed) continue;
    soft_kit_load(&kit, one_address_ptx);
    for (uint32_t lane = 0; lane < 32; lane++) {
      one_address(UINT32_MAX << lane);
      one_address(1u << lane | 0x90000000u);
      one_address(0x9e3779b9u * (lane + 1));
    }
  }
}

// The same register is address and destination, of a load and of an atomic.
static const char overlap_ptx[] = SOFT_KIT_HEAD SOFT_KIT_KERNEL(
    "st.global.u64 [%rd3+1024], %rd3;\nadd.s64 %rd5, %rd3, 1024;\n"
    "ld.global.u64 %rd5, [%rd5];\nsetp.eq.u64 %p1, %rd5, %rd3;\n"
    "mov.u64 %rd6, %rd3;\nadd.s64 %rd6, %rd6, 2048;\n"
    "atom.global.add.u64 %rd6, [%rd6], 1;\n"
    "cvt.u32.u64 %r5, %rd6;\nselp.b32 %r6, %r5, 999, %p1;\n"
    "st.global.u32 [%rd1], %r6;\nret;\n");

static void test_overlap(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(overlap_ptx, 1, 32);
    // A seed chooses the order of the lanes of an atomic.
    uint32_t seen = 0;
    for (uint32_t i = 0; i < 32; i++) {
      if (!way_.seed) assert_int_equal(out[i], i);
      assert_true(out[i] < 32);
      seen |= 1u << out[i];
    }
    assert_int_equal(seen, UINT32_MAX);
    assert_int_equal(out[512], 32);
  }
}

// A register of 32 bits plus an offset wraps in the spaces that 32 bits span:
// what is -8 + 12 is 4, in plain accesses, ordered ones, vectors, atomics and
// barriers.
static const char wrap_ptx[] =
    ".version 8.6\n.target sm_90\n.address_size 64\n"
    ".shared .align 16 .b8 pool[1024];\n"
    ".const .align 16 .u32 before = 5;\n"
    ".global .align 16 .u32 before_global = 99;\n"
    ".const .align 16 .u32 table[8] = {70, 71, 72, 73, 74, 75, 76, 77};\n"
    ".visible .entry p(.param .u64 out, .param .align 16 .b8 given[32])\n{\n"
    ".reg .b32 %r<20>;\n.reg .b64 %rd<9>;\n"
    "ld.param.u64 %rd1, [out];\nmov.b32 %r1, given;\nsub.u32 %r2, %r1, 64;\n"
    "ld.param.u32 %r3, [%r2+68];\nld.param.v2.u32 {%r4, %r5}, [%r2+72];\n"
    "st.global.v4.u32 [%rd1], {%r3, %r4, %r5, 0};\nret;\n}\n" SOFT_KIT_KERNEL(
        ".local .align 16 .b8 mine[64];\n"
        // Shared: the pool begins at 0.
        "mov.u32 %r10, pool;\nsub.u32 %r10, %r10, 256;\n"
        "add.u32 %r11, %r10, 240;\n"
        "st.shared.u32 [%r10+260], 11;\nld.shared.u32 %r20, [%r10+260];\n"
        "st.shared.v2.u32 [%r11+32], {12, 13};\n"
        "ld.shared.v2.u32 {%r21, %r22}, [%r11+32];\n"
        "st.volatile.shared.u32 [%r11+40], 14;\n"
        "ld.volatile.shared.u32 %r23, [%r11+40];\n"
        "atom.shared.add.u32 %r24, [%r11+40], 6;\n"
        "red.shared.add.u32 [%r11+40], 1;\nld.shared.u32 %r25, [%r11+40];\n"
        "mbarrier.init.shared.b64 [%r10+320], 4;\n"
        "mbarrier.arrive.shared.b64 %rd10, [%r10+320];\n"
        "mbarrier.pending_count.b64 %r26, %rd10;\n"
        "cp.async.ca.shared.global [%r10+384], [before_global], 4;\n"
        "cp.async.wait_all;\nld.shared.u32 %r27, [%r10+384];\n"
        // Local, by an address that is close to nothing.
        "mov.u32 %r12, mine;\nsub.u32 %r12, %r12, 4096;\n"
        "st.local.u32 [%r12+4100], 15;\nld.local.u32 %r28, [%r12+4100];\n"
        "st.local.v2.u64 [%r12+4112], {16, 17};\n"
        "ld.local.v2.u64 {%rd11, %rd12}, [%r12+4112];\n"
        "cvt.u32.u64 %r29, %rd12;\n"
        // Constants.
        "mov.u32 %r13, table;\nld.const.u32 %r30, [%r13+4];\n"
        "mov.u32 %r14, before;\nld.const.u32 %r31, [%r14];\n"
        "sub.u32 %r13, %r13, 2147483640;\nshl.b32 %r15, %r4, 2;\n"
        "and.b32 %r15, %r15, 28;\nadd.u32 %r13, %r13, %r15;\n"
        "ld.const.u32 %r32, [%r13+2147483640];\n"
        "mul.wide.u32 %rd20, %r4, 64;\nadd.u64 %rd20, %rd3, %rd20;\n"
        "st.global.v4.u32 [%rd20], {%r20, %r21, %r22, %r23};\n"
        "st.global.v4.u32 [%rd20+16], {%r24, %r25, %r26, %r27};\n"
        "st.global.v4.u32 [%rd20+32], {%r28, %r29, %r30, %r31};\n"
        "st.global.u32 [%rd20+48], %r32;\nret;\n");

static void test_sums_of_32_bits_wrap(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    static const uint32_t want[12] = {11, 12, 13, 14, 14, 21,
                                      4,  99, 15, 17, 71, 5};
    must_run(wrap_ptx, 1, 1);
    assert_memory_equal(out, want, sizeof(want));
    assert_int_equal(out[12], 70);
    uint64_t given[6] = {soft_kit_buffer(&kit, NULL, 16), 0, (uint64_t)41 << 32,
                         (uint64_t)43 << 32 | 42,         0, 0};
    static const uint32_t one[3] = {1, 1, 1};
    uint32_t got[4];
    assert_int_equal(
        soft_kit_launch(&kit, "p", one, one, 0, given, sizeof(given)),
        KILNI_SOFT_FAULT_NONE);
    soft_kit_read(&kit, given[0], got, sizeof(got));
    static const uint32_t passed[3] = {41, 42, 43};
    assert_memory_equal(got, passed, sizeof(passed));
  }
}

// Reserved shared memory, which cooperative groups use for tiles of several
// warps: it begins as zero in every block, is of the block, ends where it says,
// and is nothing that a run over an end of the block's own comes to.
static const char reserved_ptx[] =
    SOFT_KIT_HEAD ".shared .align 4 .b8 own[64];\n" SOFT_KIT_KERNEL(
        "mov.b32 %r5, %reserved_smem_offset_1;\n"
        "atom.shared.add.u32 %r6, [%r5], 1;\nbar.sync 0;\n"
        "cvt.u64.u32 %rd5, %r5;\ncvta.shared.u64 %rd5, %rd5;\n"
        "ld.volatile.u32 %r6, [%rd5];\n"
        "mov.b32 %r7, %reserved_smem_offset_begin;\n"
        "mov.b32 %r8, %reserved_smem_offset_end;\nsub.u32 %r8, %r8, %r7;\n"
        "mov.b32 %r9, %reserved_smem_offset_cap;\n"
        "setp.eq.u32 %p1, %r8, %r9;\nselp.b32 %r6, %r6, 0, %p1;\n"
        "sub.u32 %r8, %r5, %r7;\nadd.u32 %r8, %r8, 288;\n"
        "setp.le.u32 %p1, %r8, %r9;\nselp.b32 %r6, %r6, 0, %p1;\n"
        "mov.b32 %r8, %reserved_smem_offset_0;\n"
        "setp.eq.u32 %p1, %r8, %r7;\nselp.b32 %r6, %r6, 0, %p1;\n"
        "st.global.u32 [%rd1], %r6;\nret;\n");

static void test_reserved(void** state) {
  (void)state;
  static const char* const outside[] = {
      SOFT_KIT_HEAD SOFT_KIT_KERNEL("mov.b32 %r5, %reserved_smem_offset_end;\n"
                                    "st.shared.u32 [%r5], 1;\nret;\n"),
      SOFT_KIT_HEAD SOFT_KIT_KERNEL(
          "mov.b32 %r5, %reserved_smem_offset_begin;\n"
          "st.shared.u32 [%r5+-4], 1;\nret;\n"),
      SOFT_KIT_HEAD SOFT_KIT_KERNEL(
          "mov.b32 %r5, %reserved_smem_offset_end;\n"
          "st.shared.v4.u32 [%r5], {%r5, %r5, %r5, %r5};\nret;\n"),
      // Who does not ask for it has none.
      SOFT_KIT_HEAD SOFT_KIT_KERNEL(
          "mov.b32 %r5, 0x800000;\nst.shared.u32 [%r5], 1;\nret;\n")};
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(reserved_ptx, 3, 96);
    for (uint32_t i = 0; i < 288; i++) assert_int_equal(out[i], 96);
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
      assert_int_equal(run(outside[i], 1, 1), KILNI_SOFT_FAULT_ILLEGAL_ADDRESS);
    }
  }
}

static const char outside_ptx[] = SOFT_KIT_HEAD SOFT_KIT_KERNEL(
    "setp.eq.u32 %p1, %r1, 37;\nadd.s64 %rd5, %rd1, 4112;\n"
    "@!%p1 bra OK;\n"
    "mad.wide.u32 %rd6, %r1, 0, %rd3;\n"
    "st.global.u32 [%rd6+4112], %r1;\n"
    "OK:\nst.global.u32 [%rd1], 1;\nret;\n");

static void test_outside(void** state) {
  (void)state;
  SOFT_KIT_EVERY_WAY(&kit) {
    assert_int_equal(run(outside_ptx, 2, 32), KILNI_SOFT_FAULT_ILLEGAL_ADDRESS);
    assert_int_equal(kit.fault.line, SOFT_KIT_BODY_LINE + 4);
    assert_int_equal(kit.fault.thread[0], 5);
    assert_int_equal(kit.fault.block[0], 1);
    assert_true(kit.fault.address == out_address + 4112);
    assert_int_equal(kit.fault.bytes, 4);
    assert_int_equal(kit.fault.is_store, 1);
    assert_non_null(strstr(kit.report, "in kernel \"k\"\nat PTX line 23"));
    assert_non_null(strstr(kit.report, "16 bytes past a 4096-byte allocation"));
  }
}

// A warp's span that leaves the allocation in its last lanes only.
static const char edge_ptx[] = SOFT_KIT_HEAD SOFT_KIT_KERNEL(
    "ld.global.u64 %rd5, [%rd1+4032];\nst.global.u64 [%rd1], %rd5;\nret;\n");

static void test_faults(void** state) {
  (void)state;
  static const struct {
    const char* body;
    kilni_soft_fault_kind_t kind;
    uint32_t bytes;
    uint32_t is_store;
  } cases[] = {
      {"ld.global.u32 %r5, [%rd1+2];\nret;\n", KILNI_SOFT_FAULT_MISALIGNED, 4,
       0},
      {"ld.global.v4.u32 {%r5,%r6,%r7,%r8}, [%rd3+8];\nret;\n",
       KILNI_SOFT_FAULT_MISALIGNED, 16, 0},
      {"mov.u64 %rd5, 0;\nld.u8 %r5, [%rd5];\nret;\n",
       KILNI_SOFT_FAULT_ILLEGAL_ADDRESS, 1, 0},
      {"mov.u64 %rd5, 0;\natom.add.u32 %r5, [%rd5], 1;\nret;\n",
       KILNI_SOFT_FAULT_ILLEGAL_ADDRESS, 4, 1},
      {"mov.u64 %rd5, -4;\nst.global.u32 [%rd5], 1;\nret;\n",
       KILNI_SOFT_FAULT_ILLEGAL_ADDRESS, 4, 1},
      {"mov.u32 %r6, 64;\nld.shared.u32 %r5, [%r6];\nret;\n",
       KILNI_SOFT_FAULT_ILLEGAL_ADDRESS, 4, 0},
      {".local .b8 a[8];\nst.local.u32 [a+8], 1;\nret;\n",
       KILNI_SOFT_FAULT_ILLEGAL_ADDRESS, 4, 1},
      {"mov.u64 %rd5, c;\nst.global.u32 [%rd5], 1;\nret;\n",
       KILNI_SOFT_FAULT_ILLEGAL_ADDRESS, 4, 1},
      {"trap;\n", KILNI_SOFT_FAULT_TRAP, 0, 0},
      {"brkpt;\n", KILNI_SOFT_FAULT_TRAP, 0, 0},
  };
  SOFT_KIT_EVERY_WAY(&kit) {
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
      char ptx[4096];
      snprintf(ptx, sizeof(ptx), "%s.const .u32 c = 5;\n%s%s}\n", SOFT_KIT_HEAD,
               SOFT_KIT_KERNEL(""), "");
      char* end = strrchr(ptx, '}');
      *end = 0;
      end = strrchr(ptx, '}');
      snprintf(end, sizeof(ptx) - (size_t)(end - ptx), "%s}\n", cases[i].body);
      kilni_soft_fault_kind_t kind = run(ptx, 1, 32);
      if (kind != cases[i].kind) {
        fail_msg("case %zu: %s", i, kit.report);
      }
      assert_int_equal(kit.fault.bytes, cases[i].bytes);
      assert_int_equal(kit.fault.is_store, cases[i].is_store);
    }
    assert_int_equal(run(edge_ptx, 1, 32), KILNI_SOFT_FAULT_MISALIGNED);
  }
}

// Thousands of virtual registers that never live together share few places.
static void test_slots(void** state) {
  (void)state;
  enum { COUNT = 5000 };
  size_t size = COUNT * 40 + 2000;
  char* ptx = malloc(size);
  assert_non_null(ptx);
  size_t at = (size_t)snprintf(
      ptx, size,
      SOFT_KIT_HEAD
      ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %%v<%d>;\n"
      ".reg .b64 %%rd<9>;\n.reg .pred %%p<9>;\n"
      "ld.param.u64 %%rd1, [out];\nmov.u32 %%v0, %%tid.x;\n"
      "mul.wide.u32 %%rd2, %%v0, 4;\nadd.s64 %%rd3, %%rd1, %%rd2;\n",
      COUNT + 1);
  uint32_t want = 0;
  for (int i = 1; i < COUNT; i++) {
    at += (size_t)snprintf(ptx + at, size - at,
                           "mad.lo.u32 %%v%d, %%v%d, 3, %d;\n", i, i - 1, i);
    want = want * 3 + (uint32_t)i;
  }
  snprintf(ptx + at, size - at, "st.global.u32 [%%rd3], %%v%d;\nret;\n}\n",
           COUNT - 1);
  SOFT_KIT_EVERY_WAY(&kit) {
    must_run(ptx, 1, 32);
    assert_int_equal(out[0], want);
    assert_true(kilni_soft_code_entry(kit.code, 0)->register_count < 16);
  }
  free(ptx);
}

static void expect_refused(const char* ptx, const char* line,
                           const char* what) {
  kiln_status_t status = soft_kit_try(&kit, ptx);
  char text[2048];
  kiln_status_format(status, sizeof(text), text, NULL);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_UNSUPPORTED);
  kiln_status_free(status);
  assert_non_null(strstr(text, line));
  assert_non_null(strstr(text, what));
  assert_non_null(strstr(text, "Fix: "));
}

static void test_refused(void** state) {
  (void)state;
  soft_kit_way_t way;
  assert_true(soft_kit_way(0, &way));
  soft_kit_open(&kit, &way);
  expect_refused(SOFT_KIT_HEAD SOFT_KIT_KERNEL("ret;\n") ".extern .func malloc;\n"
                                       ".visible .entry g()\n{\n"
                                       "call.uni malloc, ();\nret;\n}\n",
                 "line 24", "malloc");
  expect_refused(SOFT_KIT_HEAD SOFT_KIT_KERNEL(
                     "fence.proxy.tensormap::generic.release.cta;\n"
                     "wgmma.fence.sync.aligned;\nret;\n"),
                 "line 19", "and 1 more");
  soft_kit_close(&kit);
}

// One call of `formals` with the variables `actuals`.
#define CALL(returns, formals, actuals, call)                                \
  SOFT_KIT_HEAD SOFT_KIT_KERNEL("ret;\n") ".func " returns "g" formals       \
                                          "\n{\nret;\n}\n"                   \
                                          ".visible .entry h()\n{\n" actuals \
                                          "\n" call "\nret;\n}\n"

// What a call passes has the size of what the function takes, or the callee
// would read past the caller's words.
static void test_calls_that_do_not_fit(void** state) {
  (void)state;
  soft_kit_way_t way;
  assert_true(soft_kit_way(0, &way));
  soft_kit_open(&kit, &way);
  expect_refused(CALL("", "(.param .align 8 .b8 f[60])",
                      ".param .align 8 .b8 a[16];", "call g, (a);"),
                 "line 28", "\"a\" of 16 bytes in the place of \"f\" of 60");
  expect_refused(CALL("(.param .align 4 .b8 f[64]) ", "()",
                      ".param .align 4 .b8 a[4];", "call (a), g;"),
                 "line 28", "\"a\" of 4 bytes in the place of \"f\" of 64");
  expect_refused(
      CALL("", "(.param .b32 n, .param .align 4 .b8 f[])",
           ".param .b32 n;\n.param .align 4 .b8 a[16];", "call g, (n, a);"),
      "line 29", "variable number of arguments");
  kiln_status_t status =
      soft_kit_try(&kit, CALL("", "(.param .align 8 .b8 f[60])",
                              ".param .align 8 .b8 a[60];", "call g, (a);"));
  assert_true(kiln_status_is_ok(status));
  soft_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_spaces),
      cmocka_unit_test(test_volatile_local),
      cmocka_unit_test(test_tiles),
      cmocka_unit_test(test_the_lowest_lane_remains),
      cmocka_unit_test(test_overlap),
      cmocka_unit_test(test_sums_of_32_bits_wrap),
      cmocka_unit_test(test_reserved),
      cmocka_unit_test(test_outside),
      cmocka_unit_test(test_faults),
      cmocka_unit_test(test_slots),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_calls_that_do_not_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
