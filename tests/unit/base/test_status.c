// SPDX-License-Identifier: Apache-2.0
//
// base: tests of the error value.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/status_make.h"
#include "fault_run.h"

static kiln_status_t make_with(kiln_allocator_t allocator,
                               kiln_status_code_t code, const char* format, ...)
    KILN_PRINTF(3, 4);
static kiln_status_t make_with(kiln_allocator_t allocator,
                               kiln_status_code_t code, const char* format,
                               ...) {
  va_list args;
  va_start(args, format);
  kiln_status_t status = kilni_base_status_make_with(
      allocator, code, "image", "reader.c", 12, format, args);
  va_end(args);
  return status;
}

static void codes_have_names_texts_and_exits(void** state) {
  (void)state;
  for (int i = 0; i < KILN_STATUS_CODE_COUNT; i++) {
    kiln_status_code_t code = (kiln_status_code_t)i;
    assert_string_not_equal(kiln_status_code_name(code), "UNKNOWN");
    assert_true(kiln_status_code_text(code)[0] != 0);
    assert_in_range(kiln_status_code_exit(code), 0, 9);
    kiln_status_t bare = kilni_base_status_bare(code);
    assert_int_equal(kiln_status_code(bare), code);
    assert_string_equal(kiln_status_message(bare), kiln_status_code_text(code));
    assert_int_equal(kiln_status_is_ok(bare), i == 0);
    kiln_status_free(bare);
  }
  assert_string_equal(kiln_status_code_name((kiln_status_code_t)31), "UNKNOWN");
  assert_string_equal(kiln_status_code_name((kiln_status_code_t)-1), "UNKNOWN");
  assert_int_equal(kiln_status_code_exit(KILN_STATUS_INVALID_ARGUMENT), 2);
}

static void a_bare_code_says_nothing_more(void** state) {
  (void)state;
  kiln_status_t bare = kilni_base_status_bare(KILN_STATUS_NOT_READY);
  kiln_status_native_t native;
  int line = 7;
  assert_null(kiln_status_fix(bare));
  assert_null(kiln_status_origin(bare));
  assert_null(kiln_status_source(bare, &line));
  assert_int_equal(line, 0);
  assert_false(kiln_status_native(bare, &native));
  assert_ptr_equal(KILNI_ANNOTATE(bare, "more"), bare);
  assert_ptr_equal(kilni_base_status_with_fix(bare, "x"), bare);
  assert_ptr_equal(kilni_base_status_with_native(bare, "cuda", 1, "X"), bare);
  assert_ptr_equal(kiln_status_clone(bare), bare);
}

static kiln_status_t full(kiln_allocator_t allocator) {
  kiln_status_t status =
      make_with(allocator, KILN_STATUS_BAD_DATA, "\"%s\" is odd", "a.ptx");
  status = kilni_base_status_with_fix(status, "try %d", 2);
  status = kilni_base_status_annotate(status, "device", "while loading");
  status = kilni_base_status_with_native(status, "cuda", 218,
                                         "CUDA_ERROR_INVALID_PTX");
  return kilni_base_status_annotate(status, "runtime", "for \"%s\"", "soft");
}

static const char kFullText[] =
    "image: \"a.ptx\" is odd\n"
    "  device: while loading\n"
    "  runtime: for \"soft\"\n"
    "  cuda 218 CUDA_ERROR_INVALID_PTX\n"
    "Fix: try 2";

static void a_payload_says_it_all(void** state) {
  (void)state;
  kiln_status_t status = full(kiln_allocator_libc());
  kiln_status_native_t native;
  int line;
  assert_int_equal(kiln_status_code(status), KILN_STATUS_BAD_DATA);
  assert_string_equal(kiln_status_message(status), "\"a.ptx\" is odd");
  assert_string_equal(kiln_status_fix(status), "try 2");
  assert_string_equal(kiln_status_origin(status), "image");
  assert_string_equal(kiln_status_source(status, &line), "reader.c");
  assert_int_equal(line, 12);
  assert_true(kiln_status_native(status, &native));
  assert_string_equal(native.domain, "cuda");
  assert_int_equal(native.number, 218);
  assert_string_equal(native.name, "CUDA_ERROR_INVALID_PTX");
  kiln_status_free(status);
}

static void format_writes_as_much_as_fits(void** state) {
  (void)state;
  kiln_status_t status = full(kiln_allocator_libc());
  char text[512];
  size_t length = 0;
  kiln_status_format(status, sizeof(text), text, &length);
  assert_string_equal(text, kFullText);
  assert_int_equal(length, sizeof(kFullText) - 1);
  kiln_status_format(status, 0, NULL, &length);
  assert_int_equal(length, sizeof(kFullText) - 1);
  for (size_t capacity = 1; capacity <= sizeof(kFullText); capacity++) {
    memset(text, '#', sizeof(text));
    kiln_status_format(status, capacity, text, NULL);
    assert_int_equal(strlen(text), capacity - 1);
    assert_memory_equal(text, kFullText, capacity - 1);
    assert_int_equal(text[capacity], '#');
  }
  kiln_status_free(status);
}

static void a_clone_lives_by_itself(void** state) {
  (void)state;
  kiln_status_t status = full(kiln_allocator_libc());
  kiln_status_t copy = kiln_status_clone(status);
  kiln_status_free(status);
  copy = KILNI_ANNOTATE(copy, "and a last line");
  char text[512];
  kiln_status_format(copy, sizeof(text), text, NULL);
  assert_non_null(strstr(text, "runtime: for \"soft\"\n"));
  assert_non_null(strstr(text, "test: and a last line\n"));
  kiln_status_free(copy);
}

static void long_lines_are_cut_and_many_are_bounded(void** state) {
  (void)state;
  kiln_status_t status = KILNI_FAIL(INTERNAL, "%5000s", "x");
  assert_int_equal(strlen(kiln_status_message(status)), 1023);
  for (int i = 0; i < 5000; i++) status = KILNI_ANNOTATE(status, "%900d", i);
  size_t length = 0;
  kiln_status_format(status, 0, NULL, &length);
  assert_in_range(length, 900 * 1000, (1 << 20) + 16 * 1024);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INTERNAL);
  kiln_status_free(status);
}

static void a_fix_can_be_said_anew(void** state) {
  (void)state;
  kiln_status_t status = KILNI_FAIL(NOT_FOUND, "no \"x\"");
  status = kilni_base_status_with_fix(status, "first");
  status = kilni_base_status_with_fix(status, "second");
  char text[128];
  kiln_status_format(status, sizeof(text), text, NULL);
  assert_string_equal(text, "test: no \"x\"\nFix: second");
  kiln_status_free(status);
}

static void join_keeps_the_first(void** state) {
  (void)state;
  assert_null(kilni_base_status_join(NULL, NULL));
  kiln_status_t bare = kilni_base_status_bare(KILN_STATUS_END);
  assert_ptr_equal(kilni_base_status_join(NULL, bare), bare);
  assert_ptr_equal(kilni_base_status_join(bare, NULL), bare);
  kiln_status_t both = kilni_base_status_join(KILNI_FAIL(IO_ERROR, "one"),
                                              KILNI_FAIL(INTERNAL, "two"));
  assert_int_equal(kiln_status_code(both), KILN_STATUS_IO_ERROR);
  char text[128];
  kiln_status_format(both, sizeof(text), text, NULL);
  assert_string_equal(text, "test: one\n  base: and then: two");
  kiln_status_free(both);
}

// A payload is a courtesy: without memory the code still arrives, and what
// could be said before stays said.
static kiln_status_t starved_body(kiln_allocator_t allocator, void* user) {
  (void)user;
  kiln_status_t status = full(allocator);
  for (int i = 0; i < 10; i++) {
    status = KILNI_ANNOTATE(status, "%100d", i);
  }
  assert_int_equal(kiln_status_code(status), KILN_STATUS_BAD_DATA);
  const char* message = kiln_status_message(status);
  assert_true(strcmp(message, "\"a.ptx\" is odd") == 0 ||
              strcmp(message, kiln_status_code_text(KILN_STATUS_BAD_DATA)) ==
                  0);
  char text[4096];
  kiln_status_format(status, sizeof(text), text, NULL);
  kiln_status_free(status);
  return kiln_ok();
}

static void without_memory_the_code_still_arrives(void** state) {
  (void)state;
  uint64_t points =
      fault_run_allocations(starved_body, NULL, FAULT_RUN_MAY_PASS);
  assert_true(points >= 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(codes_have_names_texts_and_exits),
      cmocka_unit_test(a_bare_code_says_nothing_more),
      cmocka_unit_test(a_payload_says_it_all),
      cmocka_unit_test(format_writes_as_much_as_fits),
      cmocka_unit_test(a_clone_lives_by_itself),
      cmocka_unit_test(long_lines_are_cut_and_many_are_bounded),
      cmocka_unit_test(a_fix_can_be_said_anew),
      cmocka_unit_test(join_keeps_the_first),
      cmocka_unit_test(without_memory_the_code_still_arrives),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
