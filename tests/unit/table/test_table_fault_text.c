// SPDX-License-Identifier: Apache-2.0
//
// table: every kind of fault in words.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// After the above, which it needs.
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "kiln/fault.h"

enum { TEXT_BYTES = 4096 };

// Every kind with every cause and memory has a line and a Fix, and no Fix sends
// anybody to the device that has found the fault.
static void test_all_are_told(void** state) {
  (void)state;
  char text[TEXT_BYTES];
  for (uint32_t kind = 1; kind < KILN_FAULT_KIND_COUNT; kind++) {
    assert_string_not_equal(kiln_fault_kind_name(kind), "none");
    for (uint32_t cause = 0; cause < KILN_FAULT_CAUSE_COUNT; cause++) {
      for (uint32_t memory = 0; memory < KILN_FAULT_MEMORY_COUNT; memory++) {
        kiln_fault_t fault = kiln_fault_default();
        fault.kind = kind;
        fault.cause = cause;
        fault.memory = memory;
        fault.access = KILN_FAULT_ACCESS_STORE;
        fault.bytes = 4;
        fault.buffer_bytes = 8;
        fault.offset = 8;
        kiln_fault_message(&fault, sizeof(text), text, NULL);
        assert_string_not_equal(text, "");
        assert_null(strchr(text, '\n'));
        kiln_fault_fix(&fault, sizeof(text), text, NULL);
        assert_string_not_equal(text, "");
        assert_null(strstr(text, "device soft"));
        assert_null(strstr(text, "display"));
        assert_true(text[0] < 'A' || text[0] > 'Z');
        assert_int_not_equal(text[strlen(text) - 1], '.');
      }
    }
  }
  assert_string_equal(kiln_fault_kind_name(KILN_FAULT_NONE), "none");
  assert_string_equal(kiln_fault_kind_name(KILN_FAULT_KIND_COUNT), "none");
  assert_string_equal(kiln_fault_kind_name(UINT32_MAX), "none");
}

typedef struct row_t {
  uint64_t bytes;
  uint64_t buffer_bytes;
  int64_t offset;
  const char* name;
  const char* message;
} row_t;

static void test_positions(void** state) {
  (void)state;
  static const row_t kRows[] = {
      {4, 32, 32, "p",
       "out-of-bounds store of 4 bytes, 0 bytes past p (32 bytes)"},
      {1, 1, 2, "p", "out-of-bounds store of 1 byte, 1 byte past p (1 byte)"},
      {4, 32, 32, "",
       "out-of-bounds store of 4 bytes, 0 bytes past a 32-byte allocation"},
      {4, 8, 8, "",
       "out-of-bounds store of 4 bytes, 0 bytes past an 8-byte allocation"},
      {4, 18000, 18000, "",
       "out-of-bounds store of 4 bytes, 0 bytes past an 18000-byte allocation"},
      {4, 1100, 1100, "",
       "out-of-bounds store of 4 bytes, 0 bytes past a 1100-byte allocation"},
      {4, 32, -1, "",
       "out-of-bounds store of 4 bytes, 1 byte before a 32-byte allocation"},
      {8, 36, 32, "q",
       "out-of-bounds store of 8 bytes, at byte 32 of q (36 bytes)"},
      {4, 0, 0, "q",
       "out-of-bounds store of 4 bytes, 0 bytes past q (0 bytes)"},
      {4, 8, INT64_MIN, "q",
       "out-of-bounds store of 4 bytes, 9223372036854775808 bytes before q (8 "
       "bytes)"},
  };
  for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); i++) {
    char text[TEXT_BYTES];
    kiln_fault_t fault = kiln_fault_default();
    fault.kind = KILN_FAULT_OUT_OF_BOUNDS;
    fault.access = KILN_FAULT_ACCESS_STORE;
    fault.memory = KILN_FAULT_MEMORY_ALLOCATION;
    fault.bytes = kRows[i].bytes;
    fault.buffer_bytes = kRows[i].buffer_bytes;
    fault.offset = kRows[i].offset;
    snprintf(fault.buffer_name, sizeof(fault.buffer_name), "%s", kRows[i].name);
    size_t length = 0;
    kiln_fault_message(&fault, sizeof(text), text, &length);
    assert_string_equal(text, kRows[i].message);
    assert_int_equal(length, strlen(text));
    // Cut, and not asked for.
    kiln_fault_message(&fault, 8, text, &length);
    assert_string_equal(text, "out-of-");
    assert_int_equal(length, strlen(kRows[i].message));
    kiln_fault_message(&fault, 0, NULL, NULL);
  }
}

static void test_notes(void** state) {
  (void)state;
  char text[TEXT_BYTES];
  kiln_fault_t fault = kiln_fault_default();
  kiln_fault_notes(&fault, sizeof(text), text, NULL);
  assert_string_equal(text, "");
  fault.kind = KILN_FAULT_ASSERT;
  fault.has_thread = 1;
  fault.thread[0] = 3;
  fault.block[1] = 2;
  fault.ptx_line = 36;
  fault.source_line = 3;
  fault.call_line = 7;
  fault.call_depth = 2;
  strcpy(fault.kernel, "_Z4overPfi");
  strcpy(fault.function, "_ZN1a3putEPf");
  strcpy(fault.source, "x.cu");
  strcpy(fault.call_source, "y.h");
  strcpy(fault.node, "step");
  strcpy(fault.detail, "assertion `a` failed\nmore\n");
  kiln_fault_notes(&fault, sizeof(text), text, NULL);
  assert_string_equal(
      text,
      "in kernel \"over(float*, int)\", function \"a::put(float*)\" (call "
      "depth 2)\nin graph node \"step\"\nat x.cu:3, called at y.h:7, PTX line "
      "36\nthread (3, 0, 0) of block (0, 2, 0)\nmore");
  kiln_fault_message(&fault, sizeof(text), text, NULL);
  assert_string_equal(text, "assertion `a` failed");
  kiln_fault_kernel(&fault, sizeof(text), text, NULL);
  assert_string_equal(text, "over(float*, int)");
}

// A free that had its turn before: there may be one stream or two.
static void test_fix_of_a_free(void** state) {
  (void)state;
  char text[TEXT_BYTES];
  kiln_fault_t fault = kiln_fault_default();
  fault.kind = KILN_FAULT_USE_AFTER_FREE;
  fault.memory = KILN_FAULT_MEMORY_ALLOCATION;
  fault.cause = KILN_FAULT_CAUSE_FREED_ORDERED;
  kiln_fault_fix(&fault, sizeof(text), text, NULL);
  assert_non_null(strstr(text, "on the same stream, or on a stream"));
  fault.cause = KILN_FAULT_CAUSE_FREED_PENDING;
  kiln_fault_fix(&fault, sizeof(text), text, NULL);
  assert_non_null(strstr(text, "let the stream of the free wait"));
}

static void test_names_are_shown(void** state) {
  (void)state;
  char text[TEXT_BYTES];
  kiln_fault_t fault = kiln_fault_default();
  fault.kind = KILN_FAULT_TRAP;
  strcpy(fault.node, "a\n\x1b[2J");
  kiln_fault_notes(&fault, sizeof(text), text, NULL);
  assert_string_equal(text, "in graph node \"a\\x0a\\x1b[2J\"");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_are_told),
      cmocka_unit_test(test_positions),
      cmocka_unit_test(test_notes),
      cmocka_unit_test(test_fix_of_a_free),
      cmocka_unit_test(test_names_are_shown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
