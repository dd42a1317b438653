// SPDX-License-Identifier: Apache-2.0
//
// soft: several blocks that fault at once, on several workers: one fault is
// reported, whole, and what the others held is given back.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// After the above, which it needs.
#include <cmocka.h>

#include <string.h>

#include "fault_alloc.h"
#include "soft_kit.h"

enum { BLOCKS = 8, ROUNDS = 400 };

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
  assert_non_null(strstr(kit->fault.report, "function \"bad\""));
  assert_non_null(strstr(kit->fault.report, "thread (0, 0, 0) of block ("));
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_blocks_fault_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
