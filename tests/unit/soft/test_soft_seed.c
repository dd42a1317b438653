// SPDX-License-Identifier: Apache-2.0
//
// soft: every order that CUDA leaves open is the seed's choice: what a program
// defines comes out the same under many seeds, what it leaves open does not.
// Grids that wait for all of their blocks, and blocks that look back.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "soft_kit.h"

// A sanitizer makes each run many times slower.
#if defined(KILNI_SANITIZED)
enum { SEEDS = 8, GRIDS = 3, BLOCKS = 700, WORDS = 8192 };
#else
enum { SEEDS = 24, GRIDS = 18, BLOCKS = 3000, WORDS = 8192 };
#endif

static soft_kit_t kit;
static uint32_t out[WORDS];
static uint32_t other[WORDS];

static void open_kit(uint32_t workers, uint64_t seed) {
  soft_kit_way_t way = {"auto", workers, seed};
  soft_kit_open(&kit, &way);
}

static void must_run(const char* ptx, uint32_t grid, uint32_t block) {
  soft_kit_must_words(&kit, ptx, grid, block, out, WORDS);
}

#define HEAD90 ".version 8.6\n.target sm_90\n.address_size 64\n"

// A lock between lanes, warps and blocks, divergent loops, a shuffle in
// divergent code, a tree of sums with barriers: the sum is defined.
static const char defined_ptx[] =
    HEAD90 ".shared .b32 box[128];\n" SOFT_KIT_KERNEL(
        "mov.u32 %r20, 0;\nmov.u32 %r21, 0;\n"
        "LOOP:\nsetp.ge.u32 %p1, %r20, %r4;\n@%p1 bra OUT;\n"
        "add.u32 %r21, %r21, %r20;\nadd.u32 %r20, %r20, 1;\nbra LOOP;\n"
        "OUT:\nand.b32 %r22, %r4, 1;\nsetp.eq.u32 %p2, %r22, 0;\n"
        "@%p2 bra EVEN;\n"
        "shfl.sync.bfly.b32 %r23, %r21, 2, 31, 0xaaaaaaaa;\nbra MET;\n"
        "EVEN:\nshfl.sync.bfly.b32 %r23, %r21, 4, 31, 0x55555555;\n"
        "MET:\nbar.warp.sync 0xffffffff;\n"
        "mov.b32 %r5, box;\nmad.lo.u32 %r6, %r4, 4, %r5;\n"
        "st.shared.u32 [%r6], %r23;\nmov.u32 %r7, 64;\n"
        "TREE:\nbar.sync 0;\nsetp.ge.u32 %p3, %r4, %r7;\n@%p3 bra SKIP;\n"
        "mad.lo.u32 %r8, %r7, 4, %r6;\nld.shared.u32 %r9, [%r8];\n"
        "ld.shared.u32 %r10, [%r6];\nadd.u32 %r10, %r10, %r9;\n"
        "st.shared.u32 [%r6], %r10;\n"
        "SKIP:\nshr.u32 %r7, %r7, 1;\nsetp.ne.u32 %p4, %r7, 0;\n@%p4 bra "
        "TREE;\n"
        "bar.sync 0;\n"
        "SPIN:\natom.global.cas.b32 %r11, [%rd3+4], 0, 1;\n"
        "setp.ne.u32 %p5, %r11, 0;\n@%p5 bra SPIN;\n"
        "membar.gl;\nld.shared.u32 %r12, [%r5];\n"
        "ld.volatile.global.u32 %r13, [%rd3];\nadd.u32 %r13, %r13, %r12;\n"
        "add.u32 %r13, %r13, %r23;\n"
        "st.volatile.global.u32 [%rd3], %r13;\nmembar.gl;\n"
        "atom.global.exch.b32 %r14, [%rd3+4], 0;\nret;\n");

static void test_defined(void** state) {
  (void)state;
  uint32_t want = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    open_kit(1 + seed % 3, seed * 0x9e3779b97f4a7c15u);
    must_run(defined_ptx, 7, 128);
    if (seed == 0) want = out[0];
    assert_int_not_equal(out[0], 0);
    assert_int_equal(out[0], want);
    soft_kit_close(&kit);
  }
}

// Tickets: the order of blocks, of warps, of the lanes of an atomic.
static const char tickets_ptx[] = HEAD90 SOFT_KIT_KERNEL(
    "atom.global.add.u32 %r5, [%rd3+16384], 1;\n"
    "st.global.u32 [%rd1], %r5;\nret;\n");

// One for each warp, so that the order of lanes tells nothing.
static const char warps_ptx[] = HEAD90 SOFT_KIT_KERNEL(
    "and.b32 %r5, %r4, 31;\nsetp.ne.u32 %p1, %r5, 0;\n@%p1 ret;\n"
    "atom.global.add.u32 %r5, [%rd3+16384], 1;\n"
    "st.global.u32 [%rd1], %r5;\nret;\n");

// Two sides of a branch tell which was last.
static const char sides_ptx[] = HEAD90 SOFT_KIT_KERNEL(
    "and.b32 %r5, %r4, 1;\nsetp.eq.u32 %p1, %r5, 0;\n@%p1 bra EVEN;\n"
    "st.volatile.global.u32 [%rd3], 1;\nret;\n"
    "EVEN:\nst.volatile.global.u32 [%rd3], 2;\nret;\n");

static unsigned outcomes(const char* ptx, uint32_t grid, uint32_t block,
                         uint32_t words) {
  unsigned different = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    open_kit(1, seed);
    must_run(ptx, grid, block);
    soft_kit_close(&kit);
    if (seed == 0) memcpy(other, out, sizeof(out));
    if (memcmp(out, other, 4 * words) != 0) different++;
  }
  return different;
}

// One worker and one seed are one order.
static void test_open(void** state) {
  (void)state;
  assert_true(outcomes(tickets_ptx, 1, 32, 32) >= SEEDS / 2);  // lanes
  assert_true(outcomes(warps_ptx, 1, 256, 256) >= SEEDS / 2);  // warps
  assert_true(outcomes(tickets_ptx, 64, 1, 64) >= SEEDS / 2);  // blocks
  unsigned sides = outcomes(sides_ptx, 1, 32, 1);              // groups
  assert_true(sides >= 2 && sides <= SEEDS - 2);
  for (uint64_t seed = 0; seed < 4; seed++) {
    for (int again = 0; again < 2; again++) {
      open_kit(1, seed);
      must_run(tickets_ptx, 8, 96);
      soft_kit_close(&kit);
      if (!again) memcpy(other, out, sizeof(out));
    }
    assert_memory_equal(out, other, sizeof(out));
  }
}

// The lanes of one store to one address, or to a few: whose value stays. `%rd1`
// is the word of the thread, and the first 64 bytes are stored to.
#define LAST(body)                                                        \
  HEAD90 ".shared .align 16 .b8 box[64];\n" SOFT_KIT_KERNEL(              \
      "mov.u32 %r5, box;\nand.b32 %r6, %r4, 3;\nmul.wide.u32 %rd5, %r6, " \
      "16;\nadd.s64 %rd5, %rd5, %rd3;\nadd.u32 %r7, %r4, 100;\n" body     \
      "ret;\n")
static const struct {
  uint32_t lane;
  const char* ptx;
} kLast[] = {
    {0, LAST("st.global.u32 [%rd3], %r7;\n")},
    {0, LAST("st.global.u32 [%rd5], %r7;\n")},
    {0, LAST("st.u8 [%rd5], %r7;\n")},
    {0, LAST("st.volatile.global.u32 [%rd3], %r7;\n")},
    {24, LAST("st.global.v4.u32 [%rd5], {%r7, %r4, %r7, %r4};\n")},
    {16, LAST("st.global.v2.u32 [%rd3], {%r7, %r4};\n")},
    {0, LAST("st.shared.u32 [%r5], %r7;\nbar.sync 0;\n"
             "ld.shared.u32 %r8, [%r5];\nst.global.u32 [%rd3], %r8;\n")},
};

static void test_last_store(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(kLast) / sizeof(kLast[0]); i++) {
    unsigned different = outcomes(kLast[i].ptx, 1, 32, 16);
    if (different < SEEDS / 4) fail_msg("store %zu has one order", i);
    // Without a seed that of the lowest of the lanes that are stored last.
    open_kit(1, 0);
    must_run(kLast[i].ptx, 1, 32);
    soft_kit_close(&kit);
    assert_int_equal(out[0] & 0xff, 100 + kLast[i].lane);
  }
}

// The lanes of a ticket differ among themselves under some seed.
static void test_lanes_differ(void** state) {
  (void)state;
  unsigned mixed = 0;
  for (uint64_t seed = 1; seed < SEEDS; seed++) {
    open_kit(1, seed);
    must_run(tickets_ptx, 1, 32);
    soft_kit_close(&kit);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < 32; i++) {
      seen |= 1u << out[i];
      mixed += out[i] != i;
    }
    assert_int_equal(seen, UINT32_MAX);
  }
  assert_true(mixed > 32);
}

// grid.sync() as cooperative_groups has it: each round, every block adds what
// it finds of its neighbour in the round before.
static const char grid_sync_ptx[] = HEAD90 SOFT_KIT_KERNEL(
    ".reg .b32 %hi, %lo, %n, %round, %old, %now, %add, %next;\n"
    ".reg .b64 %ws, %cell;\n"
    "mov.u32 %hi, %envreg1;\nmov.u32 %lo, %envreg2;\nmov.b64 %ws, {%lo, %hi};\n"
    "setp.ne.s64 %p1, %ws, 0;\n@%p1 bra GOOD;\ntrap;\n"
    "GOOD:\nadd.s64 %ws, %ws, 4;\nmov.u32 %n, %nctaid.x;\nmov.u32 %round, 0;\n"
    "add.u32 %next, %r2, 1;\nrem.u32 %next, %next, %n;\n"
    "ROUND:\nbar.sync 0;\nsetp.ne.u32 %p2, %r4, 0;\n@%p2 bra WAITED;\n"
    "and.b32 %r5, %round, 1;\nmad.lo.u32 %r5, %r5, 1024, %next;\n"
    "mul.wide.u32 %cell, %r5, 4;\nadd.s64 %cell, %cell, %rd3;\n"
    "ld.volatile.global.u32 %r6, [%cell];\nadd.u32 %r6, %r6, 1;\n"
    "not.b32 %r5, %round;\nand.b32 %r5, %r5, 1;\n"
    "mad.lo.u32 %r5, %r5, 1024, %r2;\n"
    "mul.wide.u32 %cell, %r5, 4;\nadd.s64 %cell, %cell, %rd3;\n"
    "st.volatile.global.u32 [%cell], %r6;\n"
    "sub.u32 %add, 0x80000001, %n;\nsetp.eq.u32 %p3, %r2, 0;\n"
    "selp.b32 %add, %add, 1, %p3;\n"
    "atom.add.release.gpu.u32 %old, [%ws], %add;\n"
    "WAIT:\nld.acquire.gpu.u32 %now, [%ws];\nxor.b32 %now, %now, %old;\n"
    "setp.gt.s32 %p4, %now, -1;\n@%p4 bra WAIT;\n"
    "WAITED:\nbar.sync 0;\nadd.u32 %round, %round, 1;\n"
    "setp.lt.u32 %p5, %round, 6;\n@%p5 bra ROUND;\nret;\n");

static void test_grid_sync(void** state) {
  (void)state;
  for (uint64_t i = 0; i < GRIDS; i++) {
    open_kit(1 + (uint32_t)i % 3, i / 3);
    kit.cooperative = 1;
    must_run(grid_sync_ptx, 600, 64);
    for (uint32_t block = 0; block < 600; block++) {
      assert_int_equal(out[block], 6);
    }
    soft_kit_close(&kit);
  }
  // Without a cooperative launch there is nothing to wait at.
  open_kit(1, 0);
  assert_int_equal(soft_kit_words(&kit, grid_sync_ptx, 2, 64, out, WORDS, NULL),
                   KILNI_SOFT_FAULT_TRAP);
  soft_kit_close(&kit);
}

// Decoupled look-back over more blocks than a worker holds without need: block
// i publishes its own sum, looks at those before it until it finds a whole
// prefix, and publishes its own. `%s` says which number a block has.
#define LOOK_BACK(number)                                                      \
  HEAD90 ".shared .b32 box;\n" SOFT_KIT_KERNEL(                                \
      ".reg .b32 %me, %at, %sum, %word, %flag;\n.reg .b64 %cell;\n"            \
      "setp.ne.u32 %p1, %r4, 0;\n@%p1 ret;\n" number                           \
      "mad.lo.u32 %sum, %me, 2, 4;\n"                                          \
      "mul.wide.u32 %cell, %me, 4;\nadd.s64 %cell, %cell, %rd3;\n"             \
      "shl.b32 %word, %sum, 2;\nor.b32 %word, %word, 1;\n"                     \
      "st.release.gpu.global.u32 [%cell], %word;\nmov.u32 %at, %me;\n"         \
      "setp.eq.u32 %p2, %at, 0;\n@%p2 bra DONE;\n"                             \
      "BACK:\nsub.u32 %at, %at, 1;\nmul.wide.u32 %cell, %at, 4;\n"             \
      "add.s64 %cell, %cell, %rd3;\n"                                          \
      "LOOK:\nld.acquire.gpu.global.u32 %word, [%cell];\n"                     \
      "and.b32 %flag, %word, 3;\nsetp.eq.u32 %p3, %flag, 0;\n@%p3 bra LOOK;\n" \
      "shr.u32 %word, %word, 2;\nadd.u32 %sum, %sum, %word;\n"                 \
      "setp.eq.u32 %p4, %flag, 2;\n@%p4 bra DONE;\n"                           \
      "setp.ne.u32 %p5, %at, 0;\n@%p5 bra BACK;\n"                             \
      "DONE:\nmul.wide.u32 %cell, %me, 4;\nadd.s64 %cell, %cell, %rd3;\n"      \
      "shl.b32 %word, %sum, 2;\nor.b32 %word, %word, 2;\n"                     \
      "st.release.gpu.global.u32 [%cell], %word;\nret;\n")
static const char by_index_ptx[] = LOOK_BACK("mov.u32 %me, %r2;\n");
static const char by_ticket_ptx[] =
    LOOK_BACK("atom.global.add.u32 %me, [%rd3+32764], 1;\n");

static void check_prefix(const char* ptx, uint32_t workers, uint64_t seed,
                         uint32_t blocks) {
  open_kit(workers, seed);
  must_run(ptx, blocks, 32);
  uint32_t sum = 0;
  for (uint32_t i = 0; i < blocks; i++) {
    sum += 2 * i + 4;
    assert_int_equal(out[i], sum << 2 | 2);
  }
  soft_kit_close(&kit);
}

static void test_look_back(void** state) {
  (void)state;
  for (uint64_t seed = 0; seed < 4; seed++) {
    check_prefix(by_ticket_ptx, 1 + seed % 2, seed, BLOCKS);
    // By their own index blocks wait for others that a seed starts later.
    check_prefix(by_index_ptx, 1 + seed % 2, seed, BLOCKS / 4);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_defined),      cmocka_unit_test(test_open),
      cmocka_unit_test(test_lanes_differ), cmocka_unit_test(test_last_store),
      cmocka_unit_test(test_grid_sync),    cmocka_unit_test(test_look_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
