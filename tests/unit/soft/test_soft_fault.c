// SPDX-License-Identifier: Apache-2.0
//
// soft: what a fault says: the kernel's deed in one line, the same whoever is
// first among workers; where; what to do. And several blocks that fault at
// once: one fault is reported, whole, and what the others held is given back.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// After the above, which it needs.
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "fault_alloc.h"
#include "soft_kit.h"

enum { BLOCKS = 8, ROUNDS = 400 };

// What SOFT_KIT_KERNEL has before its body.
static const char kKernelHead[] =
    ".visible .entry k(.param .u64 out)\n{\n"
    ".reg .pred %p<20>;\n.reg .b32 %r<60>;\n.reg .b64 %rd<40>;\n"
    "ld.param.u64 %rd2, [out];\ncvta.to.global.u64 %rd3, %rd2;\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\n"
    "mov.u32 %r4, %tid.x;\nmad.lo.s32 %r1, %r2, %r3, %r4;\n"
    "mul.wide.u32 %rd4, %r1, 4;\nadd.s64 %rd1, %rd3, %rd4;\n";

// Every block waits until all are there, and then loads from nowhere, in a
// function.
static const char kAtOnce[] = SOFT_KIT_HEAD
    ".func bad(.param .b64 at)\n{\n"
    ".reg .b64 %rd<2>;\n.reg .b32 %r<2>;\n"
    "ld.param.u64 %rd1, [at];\nld.global.u32 %r1, [%rd1];\n"
    "st.global.u32 [%rd1], %r1;\nret;\n}\n" SOFT_KIT_KERNEL(
        "atom.global.add.u32 %r5, [%rd3], 1;\n"
        "WAIT:\nld.volatile.global.u32 %r6, [%rd3];\n"
        "setp.lt.u32 %p1, %r6, 8;\n@%p1 bra WAIT;\n"
        "mov.u64 %rd5, 16;\n{\n.param .b64 p;\nst.param.b64 [p], %rd5;\n"
        "call.uni bad, (p);\n}\nret;\n");

static void check_round(soft_kit_t* kit) {
  uint32_t out[BLOCKS];
  assert_int_equal(soft_kit_words(kit, kAtOnce, BLOCKS, 1, out, BLOCKS, NULL),
                   KILNI_SOFT_FAULT_ILLEGAL_ADDRESS);
  assert_int_not_equal(kit->fault.line, 0);
  assert_non_null(strstr(kit->report, "function \"bad\""));
  assert_non_null(strstr(kit->report, "thread (0, 0, 0) of block ("));
}

static void test_blocks_fault_at_once(void** state) {
  (void)state;
  static soft_kit_t kit;
  static fault_alloc_t watch;
  const soft_kit_way_t way = {"plain", BLOCKS, 0};
  fault_alloc_init(&watch);
  soft_kit_open_with(&kit, &way, fault_alloc_allocator(&watch));
  for (int i = 0; i < ROUNDS; i++) check_round(&kit);
  soft_kit_close(&kit);
  fault_alloc_assert_clean(&watch);
  fault_alloc_deinit(&watch);
}

// ---- What each kind says ----

#define HEAP                                               \
  ".extern .func (.param .b64 r) malloc(.param .b64 n);\n" \
  ".extern .func free(.param .b64 p);\n"
#define MALLOC(bytes, to)                                    \
  "{\n.param .b64 a;\n.param .b64 b;\nmov.u64 %rd30, " bytes \
  ";\n"                                                      \
  "st.param.b64 [a], %rd30;\ncall.uni (b), malloc, (a);\n"   \
  "ld.param.b64 " to ", [b];\n}\n"
#define FREE(what)                             \
  "{\n.param .b64 a;\nst.param.b64 [a], " what \
  ";\n"                                        \
  "call.uni free, (a);\n}\n"

typedef struct row_t {
  const char* head;  // declarations
  const char* body;
  uint32_t threads;
  const char* message;  // the first line, whole
  const char* also;     // in the lines behind it; NULL: nothing particular
  const char* fix;      // in the Fix
} row_t;

// The buffer has 36 bytes.
static const row_t kRows[] = {
    {"", "st.global.u32 [%rd1], %r1;\nret;\n", 10,
     "out-of-bounds store of 4 bytes, 0 bytes past a 36-byte allocation",
     "thread (9, 0, 0) of block (0, 0, 0)", "ends at byte 40, and it has 36"},
    {"", "ld.global.u8 %r5, [%rd3+37];\nst.global.u32 [%rd1], %r5;\nret;\n", 1,
     "out-of-bounds load of 1 byte, 1 byte past a 36-byte allocation", NULL,
     "compare the index with the buffer's size"},
    {"", "st.global.u32 [%rd3+-4], %r1;\nret;\n", 1,
     "out-of-bounds store of 4 bytes, 4 bytes before a 36-byte allocation",
     NULL, "negative"},
    {"", "st.global.u64 [%rd3+32], %rd3;\nret;\n", 1,
     "out-of-bounds store of 8 bytes, at byte 32 of a 36-byte allocation", NULL,
     "ends at byte 40"},
    {"", "atom.global.add.u32 %r5, [%rd3+36], 1;\nret;\n", 1,
     "out-of-bounds atomic of 4 bytes, 0 bytes past a 36-byte allocation", NULL,
     "compare the index"},
    {".global .align 4 .b8 table[8];\n",
     "ld.global.u32 %r5, [table+8];\nst.global.u32 [%rd1], %r5;\nret;\n", 1,
     "out-of-bounds load of 4 bytes, 0 bytes past table (8 bytes)", NULL,
     "compare the index"},
    {".const .align 4 .b8 fixed[8];\n",
     "ld.const.u32 %r5, [fixed+8];\nst.global.u32 [%rd1], %r5;\nret;\n", 1,
     "out-of-bounds load of 4 bytes, 0 bytes past fixed (8 bytes)", NULL,
     "__constant__ variable"},
    // So far away that no allocation is meant: the nearest is told as such.
    {"",
     "mov.u64 %rd5, 0x40000000;\nadd.u64 %rd5, %rd3, %rd5;\n"
     "st.global.u32 [%rd5], %r1;\nret;\n",
     1, "store of 4 bytes at an address where the device has no memory",
     "1073741788 bytes past the nearest allocation, of 36 bytes", "index"},
    {"", "st.global.u32 [%rd3+1048000], %r1;\nret;\n", 1,
     "out-of-bounds store of 4 bytes, 1047964 bytes past a 36-byte allocation",
     NULL, "compare the index"},
    {".const .align 4 .b8 fixed[8];\n",
     "mov.u64 %rd5, fixed;\ncvta.const.u64 %rd6, %rd5;\n"
     "st.u32 [%rd6+4], %r1;\nret;\n",
     1,
     "store of 4 bytes to memory that is read-only, at byte 4 of fixed (8 "
     "bytes)",
     NULL, "do not store to it"},
    {"", "mov.u64 %rd5, 0;\nst.global.u32 [%rd5], %r1;\nret;\n", 1,
     "store of 4 bytes through a null pointer", NULL, "each pointer"},
    {"",
     "mov.u64 %rd5, 8;\nld.global.u64 %rd6, [%rd5];\n"
     "st.global.u64 [%rd1], %rd6;\nret;\n",
     1, "load of 8 bytes through a null pointer plus 8 bytes", NULL,
     "each pointer"},
    {"", "mov.u64 %rd5, 0x123456789000;\nst.global.u32 [%rd5], %r1;\nret;\n", 1,
     "store of 4 bytes at an address where the device has no memory",
     "address 0x123456789000", "device memory"},
    {"", "st.global.u32 [%rd3+2], %r1;\nret;\n", 1,
     "misaligned store of 4 bytes, at byte 2 of a 36-byte allocation",
     "not a multiple of 4", "multiple of the 4 bytes"},
    {".shared .align 4 .b8 box[16];\n",
     "mov.u32 %r5, box;\nst.shared.u32 [%r5+16], %r1;\nret;\n", 1,
     "out-of-bounds store of 4 bytes, 0 bytes past the block's shared memory "
     "(16 bytes)",
     NULL, "shared array"},
    {".shared .align 4 .b8 box[16];\n",
     "mov.u32 %r5, box;\nst.shared.u32 [%r5+-8], %r1;\nret;\n", 1,
     "out-of-bounds store of 4 bytes, 8 bytes before the block's shared memory "
     "(16 bytes)",
     NULL, "shared array"},
    {"",
     ".local .align 4 .b8 own[16];\nmov.u64 %rd5, own;\n"
     "st.local.u32 [%rd5+16], %r1;\nret;\n",
     1,
     "out-of-bounds store of 4 bytes, 0 bytes past the thread's local memory "
     "(16 bytes)",
     NULL, "local array"},
    {HEAP, MALLOC("64", "%rd5") FREE("%rd5") FREE("%rd5") "ret;\n", 1,
     "free() of a block that was freed already, of 64 bytes", NULL,
     "once for each block"},
    {HEAP, MALLOC("64", "%rd5") FREE("%rd5") "st.u32 [%rd5+8], %r1;\nret;\n", 1,
     "use of a freed heap block: store of 4 bytes, at byte 8 of a 64-byte heap "
     "block",
     NULL, "free() after the last use"},
    {HEAP, MALLOC("63", "%rd5") "st.u8 [%rd5+63], %r1;\nret;\n", 1,
     "out-of-bounds store of 1 byte, 0 bytes past a 63-byte heap block", NULL,
     "compare the index"},
    {HEAP,
     MALLOC("63", "%rd5") "add.u64 %rd5, %rd5, 8;\n" FREE("%rd5") "ret;\n", 1,
     "free() of an address that malloc() did not return", NULL,
     "only what malloc()"},
    {HEAP, MALLOC("0x10000000", "%rd5") "st.u32 [%rd5], %r1;\nret;\n", 1,
     "store of 4 bytes through a null pointer", NULL, "the heap was full"},
    {"", "trap;\n", 1, "trap: the kernel stopped itself", NULL, "__trap()"},
    {"", "mov.u32 %r5, %envreg1;\nst.global.u32 [%rd1], %r5;\ntrap;\n", 1,
     "trap: the kernel stopped itself", NULL, "launch it cooperatively"},
    {"",
     "setp.ne.u32 %p1, %r4, 0;\n@%p1 bra DONE;\nbarrier.sync 0;\n"
     "barrier.sync 1, 64;\nDONE:\nbarrier.sync 1, 64;\nret;\n",
     32, "deadlock: every thread of a block waits for another",
     "1 thread from (0, 0, 0) waits at barrier 0", "same barrier"},
    // The mask of the low lanes lacks them.
    {"",
     "setp.lt.u32 %p1, %r4, 16;\n@%p1 bra LOW;\nbarrier.sync 0;\nret;\nLOW:\n"
     "vote.sync.ballot.b32 %r5, %p1, 0x00ff0000;\n"
     "st.global.u32 [%rd3], %r5;\nret;\n",
     32, "deadlock: every thread of a block waits for another",
     "of warp 0 are not in the mask 0x00ff0000 that they give",
     "name the calling lane in its own mask"},
    {"", "mov.u32 %r5, 16;\nbarrier.sync %r5;\nret;\n", 1,
     "barrier with an invalid number or count", NULL, "barriers 0 to 15"},
    {".func down(.param .b32 n)\n{\n.reg .b32 %r<4>;\n"
     "ld.param.u32 %r1, [n];\nadd.u32 %r2, %r1, 1;\n{\n.param .b32 a;\n"
     "st.param.b32 [a], %r2;\ncall.uni down, (a);\n}\nret;\n}\n",
     "{\n.param .b32 a;\nst.param.b32 [a], %r1;\ncall.uni down, (a);\n}\n"
     "ret;\n",
     1, "stack overflow: a call would exceed 65536 bytes, 64 times the limit",
     "function \"down\" (call depth ", "recursion"},
    {"",
     "mov.u64 %rd5, 16;\nP: .callprototype _ ();\ncall %rd5, (), P;\n"
     "ret;\n",
     1, "call through a pointer that is not a function of its type", NULL,
     "address in device code"},
};

static void check_first_line(const soft_kit_t* kit, const char* message) {
  size_t size = strcspn(kit->report, "\n");
  if (size == strlen(message) && memcmp(kit->report, message, size) == 0) {
    return;
  }
  fail_msg("not \"%s\" but:\n%s", message, kit->report);
}

static void check_row(soft_kit_t* kit, const row_t* row) {
  static char ptx[4096];
  uint32_t out[9];
  snprintf(ptx, sizeof(ptx), "%s%s%s%s}\n", SOFT_KIT_HEAD, row->head,
           kKernelHead, row->body);
  if (soft_kit_words(kit, ptx, 1, row->threads, out, 9, NULL) ==
      KILNI_SOFT_FAULT_NONE) {
    fail_msg("no \"%s\"", row->message);
  }
  check_first_line(kit, row->message);
  const char* fix = strstr(kit->report, "\nFix: ");
  assert_non_null(fix);
  if (strstr(fix, row->fix) == NULL ||
      (row->also != NULL && strstr(kit->report, row->also) == NULL)) {
    fail_msg("not \"%s\" and \"%s\" in:\n%s", row->fix,
             row->also != NULL ? row->also : "", kit->report);
  }
  assert_non_null(strstr(kit->report, "in kernel \"k\""));
  assert_null(strstr(fix, "device soft"));
}

static void test_kinds(void** state) {
  (void)state;
  static soft_kit_t kit;
  for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); i++) {
    SOFT_KIT_EVERY_WAY(&kit) check_row(&kit, &kRows[i]);
  }
}

// ---- Which fault is told ----

// From block 3 on every block stores past the buffer, the later the sooner.
static const char kMany[] = SOFT_KIT_HEAD SOFT_KIT_KERNEL(
    "setp.lt.u32 %p1, %r2, 3;\n@%p1 bra DONE;\n"
    "sub.u32 %r5, 63, %r2;\nmul.lo.u32 %r5, %r5, 50;\nLOOP:\n"
    "add.u32 %r6, %r6, 1;\nsetp.lt.u32 %p2, %r6, %r5;\n@%p2 bra LOOP;\n"
    "st.global.u32 [%rd3+65536], %r1;\nDONE:\nret;\n");

// However many workers there are, and whichever is first, one text.
static void test_first_block_is_told(void** state) {
  (void)state;
  static soft_kit_t kit;
  static char first[sizeof(kit.report)];
  static const uint32_t kWorkers[] = {1, 2, 8};
  uint32_t out[8];
  for (size_t w = 0; w < 3; w++) {
    const soft_kit_way_t way = {"plain", kWorkers[w], 0};
    soft_kit_open(&kit, &way);
    for (int i = 0; i < 40; i++) {
      assert_int_equal(soft_kit_words(&kit, kMany, 64, 32, out, 8, NULL),
                       KILNI_SOFT_FAULT_ILLEGAL_ADDRESS);
      // Addresses are given out in turn, so that of each run is another.
      char* address = strstr(kit.report, "address 0x");
      assert_non_null(address);
      memset(address, '-', strcspn(address, "\n"));
      if (w == 0 && i == 0) memcpy(first, kit.report, sizeof(first));
      assert_string_equal(kit.report, first);
    }
    soft_kit_close(&kit);
  }
  assert_non_null(strstr(first, "thread (0, 0, 0) of block (3, 0, 0)"));
}

// Block 0 waits for what block 1 never does: the fault of that is told all the
// same, soon.
static const char kWaits[] = SOFT_KIT_HEAD SOFT_KIT_KERNEL(
    "setp.eq.u32 %p1, %r2, 1;\n@%p1 bra BAD;\nWAIT:\n"
    "ld.volatile.global.u32 %r6, [%rd3];\nsetp.eq.u32 %p2, %r6, 0;\n"
    "@%p2 bra WAIT;\nret;\nBAD:\nst.global.u32 [%rd3+65536], %r1;\nret;\n");

static void test_earlier_blocks_are_not_waited_for(void** state) {
  (void)state;
  static soft_kit_t kit;
  uint32_t out[8];
  for (uint32_t workers = 1; workers <= 2; workers++) {
    const soft_kit_way_t way = {"plain", workers, 0};
    soft_kit_open(&kit, &way);
    assert_int_equal(soft_kit_words(&kit, kWaits, 2, 1, out, 8, NULL),
                     KILNI_SOFT_FAULT_ILLEGAL_ADDRESS);
    assert_non_null(strstr(kit.report, "of block (1, 0, 0)"));
    soft_kit_close(&kit);
  }
}

// ---- Where ----

static const char kLines[] = SOFT_KIT_HEAD
    ".file 1 \"/src/x.cu\"\n.file 2 \"/src/put.h\"\n" SOFT_KIT_KERNEL(
        ".loc 1 7 3\nmov.u32 %r5, 1;\n"
        ".loc 2 3 1, function_name L, inlined_at 1 9 3\n"
        "st.global.u32 [%rd1], %r5;\n.loc 1 11 1\nret;\n");

static void test_lines_of_the_source(void** state) {
  (void)state;
  static soft_kit_t kit;
  uint32_t out[9];
  SOFT_KIT_EVERY_WAY(&kit) {
    assert_int_equal(soft_kit_words(&kit, kLines, 1, 10, out, 9, NULL),
                     KILNI_SOFT_FAULT_ILLEGAL_ADDRESS);
    assert_non_null(strstr(
        kit.report, "\nat /src/put.h:3, called at /src/x.cu:9, PTX line 24\n"));
    assert_int_equal(kit.fault.source_line, 3);
    assert_int_equal(kit.fault.call_line, 9);
  }
}

static const char kEndless[] =
    SOFT_KIT_HEAD ".file 1 \"x.cu\"\n" SOFT_KIT_KERNEL(
        "setp.eq.u32 %p1, %r4, 5;\n@%p1 bra OTHER;\n.loc 1 4 1\n"
        "LOOP:\nadd.u32 %r5, %r5, 1;\nbra LOOP;\n.loc 1 8 1\n"
        "OTHER:\nadd.u32 %r6, %r6, 1;\nbra OTHER;\n");

static bool says_both(const soft_kit_t* kit) {
  return strstr(kit->report, "x.cu:4, PTX line 2") != NULL &&
         strstr(kit->report, "x.cu:8, PTX line 2") != NULL;
}

// A kernel that is cancelled says where its threads were: one that had begun,
// which on a machine with other work takes a while.
static void test_place_of_the_cancelled(void** state) {
  (void)state;
  static soft_kit_t kit;
  uint32_t out[32];
  SOFT_KIT_EVERY_WAY(&kit) {
    uint64_t after = 10 * 1000 * 1000;
    do {
      kit.cancel_after_ns = after;
      assert_int_equal(soft_kit_words(&kit, kEndless, 3, 32, out, 32, NULL),
                       KILNI_SOFT_FAULT_CANCELLED);
      after *= 4;
    } while (!says_both(&kit) && after < 10000000000u);
    kit.cancel_after_ns = 0;
    assert_true(says_both(&kit));
    assert_non_null(strstr(kit.report, "thread (5, 0, 0) of "));
    assert_int_equal(kit.fault.what, KILN_FAULT_TIME_LIMIT);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kinds),
      cmocka_unit_test(test_first_block_is_told),
      cmocka_unit_test(test_earlier_blocks_are_not_waited_for),
      cmocka_unit_test(test_lines_of_the_source),
      cmocka_unit_test(test_place_of_the_cancelled),
      cmocka_unit_test(test_blocks_fault_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
