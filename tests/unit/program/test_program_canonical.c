// SPDX-License-Identifier: Apache-2.0
//
// program: the canonical form, the hash, and what a program takes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "program_kit.h"
#include "says.h"

static uint8_t* bytes_of(const kiln_program_t* program, size_t* out_size) {
  assert_true(
      kiln_status_is_ok(kiln_program_canonical(program, 0, NULL, out_size)));
  uint8_t* bytes = malloc(*out_size);
  assert_non_null(bytes);
  assert_true(kiln_status_is_ok(
      kiln_program_canonical(program, *out_size, bytes, NULL)));
  return bytes;
}

static void hash_of(const char* text, char out_text[KILN_PROGRAM_HASH_BYTES]) {
  kiln_program_t* program = kit_parse(text);
  assert_true(kiln_status_is_ok(kiln_program_hash(program, out_text)));
  assert_int_equal(strlen(out_text), 32);
  kiln_program_release(program);
}

static void bytes_read_back_as_the_same_program(void** state) {
  (void)state;
  kiln_program_t* program = kit_parse(kit_everything);
  size_t size, again_size;
  uint8_t* bytes = bytes_of(program, &size);
  kiln_program_t* again;
  kiln_status_t status = kiln_program_read_canonical(
      (kiln_bytes_view_t){bytes, size}, NULL, &again);
  if (!kiln_status_is_ok(status)) fail_msg("%s", kiln_status_message(status));
  uint8_t* more = bytes_of(again, &again_size);
  assert_int_equal(size, again_size);
  assert_memory_equal(bytes, more, size);
  // Its text is a program too, the same one but for names.
  char* text = kit_print(again);
  kiln_program_t* third = kit_parse(text);
  free(more);
  more = bytes_of(third, &again_size);
  assert_int_equal(size, again_size);
  assert_memory_equal(bytes, more, size);
  free(text);
  free(more);
  free(bytes);
  kiln_program_release(program);
  kiln_program_release(again);
  kiln_program_release(third);
}

static void names_that_do_not_matter(void** state) {
  (void)state;
  static const char* const kSame[] = {
      "fn f(x: f32) -> f32 { return x; } program p(v: inout f32[]) "
      "{ shared s: u8[4]; let i = lane; v[i] = f(1.0); }",
      "// other\nconst ONE = 1.0; fn g(y: f32) -> f32 { return y; } "
      "fn unused() { } program p(v: inout f32[]) "
      "{ shared t: u8[2 + 2]; let k = lane; v[k] = g(ONE); }"};
  static const char* const kOther[] = {
      "fn f(x: f32) -> f32 { return x; } program q(v: inout f32[]) "
      "{ shared s: u8[4]; let i = lane; v[i] = f(1.0); }",
      "fn f(x: f32) -> f32 { return x; } program p(w: inout f32[]) "
      "{ shared s: u8[4]; let i = lane; w[i] = f(1.0); }",
      "fn f(x: f32) -> f32 { return x; } program p(v: inout f32[]) "
      "{ shared s: u8[4]; var i = lane; v[i] = f(1.0); }",
      "fn f(x: f32) -> f32 { return x; } program p(v: inout f32[]) "
      "{ shared s: u8[5]; let i = lane; v[i] = f(1.0); }",
      "fn f(x: f32) -> f32 { return x; } program p(v: inout f32[]) "
      "{ shared s: u8[4]; let i = lane; v[i] = f(-1.0); }",
      "fn f(x: f32) -> f32 { return x; } program p(v: inout f32[]) block 32 "
      "{ shared s: u8[4]; let i = lane; v[i] = f(1.0); }"};
  char first[KILN_PROGRAM_HASH_BYTES], second[KILN_PROGRAM_HASH_BYTES];
  hash_of(kSame[0], first);
  hash_of(kSame[1], second);
  assert_string_equal(first, second);
  for (size_t i = 0; i < sizeof(kOther) / sizeof(kOther[0]); i++) {
    hash_of(kOther[i], second);
    assert_string_not_equal(first, second);
  }
}

// Whatever is cut off or turned: an error, or another program's bytes whole.
static void broken_bytes_are_refused(void** state) {
  (void)state;
  kiln_program_t* program = kit_parse(kit_everything);
  size_t size;
  uint8_t* bytes = bytes_of(program, &size);
  kiln_program_release(program);
  for (size_t cut = 0; cut < size; cut++) {
    kiln_program_t* none;
    kiln_status_t status = kiln_program_read_canonical(
        (kiln_bytes_view_t){bytes, cut}, NULL, &none);
    assert_null(none);
    assert_says(status, KILN_STATUS_BAD_DATA, "byte ");
  }
  for (size_t at = 0; at < size; at++) {
    for (int bit = 0; bit < 8; bit++) {
      bytes[at] ^= (uint8_t)(1 << bit);
      kiln_program_t* other;
      kiln_status_t status = kiln_program_read_canonical(
          (kiln_bytes_view_t){bytes, size}, NULL, &other);
      if (kiln_status_is_ok(status)) {
        kiln_program_release(other);
      } else {
        assert_says(status, KILN_STATUS_BAD_DATA, "canonical form");
      }
      bytes[at] ^= (uint8_t)(1 << bit);
    }
  }
  free(bytes);
}

// Axes of a work size follow each other; text cannot say anything else.
static void work_sizes_have_no_gaps(void** state) {
  (void)state;
  kiln_program_t* program = kit_parse("program p() work (1, 2) { }");
  size_t size;
  uint8_t* bytes = bytes_of(program, &size);
  kiln_program_release(program);
  // Magic, versions, name and the number of parameters; then a literal of three
  // bytes for each axis, which becomes none.
  enum { FIRST = 8 + 2 + 2 + 1, LITERAL = 3 };
  assert_int_equal(bytes[FIRST + 2], 1);
  assert_int_equal(bytes[FIRST + LITERAL + 2], 2);
  bytes[FIRST] = 0;
  memmove(bytes + FIRST + 1, bytes + FIRST + LITERAL, size - FIRST - LITERAL);
  kiln_program_t* none;
  kiln_status_t status = kiln_program_read_canonical(
      (kiln_bytes_view_t){bytes, size - LITERAL + 1}, NULL, &none);
  assert_null(none);
  assert_says(status, KILN_STATUS_BAD_DATA, "behind an axis without one");
  free(bytes);
}

// What a program means is a part of it: another hash, and no reading of what
// means something else here.
static void the_meaning_is_a_part(void** state) {
  (void)state;
  enum { MEANING = 9 };
  kiln_program_t* program = kit_parse("program p() { }");
  size_t size;
  uint8_t* bytes = bytes_of(program, &size);
  kiln_program_release(program);
  assert_int_equal(bytes[MEANING - 1], 2);
  assert_int_equal(bytes[MEANING], 1);
  bytes[MEANING]++;
  kiln_program_t* none;
  kiln_status_t status = kiln_program_read_canonical(
      (kiln_bytes_view_t){bytes, size}, NULL, &none);
  assert_null(none);
  assert_says(status, KILN_STATUS_BAD_DATA, "means something else");
  free(bytes);
}

static void parameters_are_listed(void** state) {
  (void)state;
  kiln_program_t* program = kit_parse(
      "fn f(a: in u8[], b: in u8[]) -> u8 { return a[0] + b[0]; }"
      "program p(a: f32, x: in f16[], y: inout f64[length(x) * 2]) "
      "work (length(x), 3) block (8, 4) { }");
  assert_string_equal(kiln_program_name(program), "p");
  assert_int_equal(kiln_program_parameter_count(program), 3);
  kiln_program_parameter_info_t parameter;
  assert_true(kiln_program_parameter(program, 0, &parameter));
  assert_string_equal(parameter.name, "a");
  assert_int_equal(parameter.role, KILN_PROGRAM_ROLE_NONE);
  assert_int_equal(parameter.type, KILN_PROGRAM_TYPE_F32);
  assert_true(kiln_program_parameter(program, 2, &parameter));
  assert_string_equal(parameter.name, "y");
  assert_int_equal(parameter.role, KILN_PROGRAM_ROLE_INOUT);
  assert_int_equal(parameter.type_bytes, 8);
  assert_int_equal(parameter.is_counted, 1);
  assert_false(kiln_program_parameter(program, 3, &parameter));
  uint32_t index;
  assert_true(kiln_program_find_parameter(program, "x", &index));
  assert_int_equal(index, 1);
  assert_false(kiln_program_find_parameter(program, "z", &index));
  assert_int_equal(kiln_program_work_dimensions(program), 2);
  uint32_t block[3];
  kiln_program_block(program, block);
  assert_int_equal(block[0], 8);
  assert_int_equal(block[1], 4);
  assert_int_equal(block[2], 1);
  assert_int_equal(kiln_program_type_find("bf16"), KILN_PROGRAM_TYPE_BF16);
  assert_int_equal(kiln_program_type_find("nothing"), KILN_PROGRAM_TYPE_NONE);
  assert_string_equal(kiln_program_type_name(99), "");
  assert_string_equal(kiln_program_role_name(KILN_PROGRAM_ROLE_UNIFORM),
                      "uniform");
  kiln_program_release(program);
}

#define UNKNOWN KILN_PROGRAM_COUNT_UNKNOWN

static void sizes_follow_from_each_other(void** state) {
  (void)state;
  kiln_program_t* program = kit_parse(
      "fn f(q: in f32[]) -> f32 { return q[1]; }"
      "program p(z: out u8[length(y) + n], y: out f32[length(x) * 2], "
      "x: in f32[], n: u32, s: i8) "
      "work ((length(x) + 3) / 4, u32(s), n << 1) { }");
  kiln_program_size_t sizes[5] = {
      {UNKNOWN, 0}, {UNKNOWN, 0}, {10, 0}, {0, 7}, {0, 5}};
  uint64_t work[3];
  kiln_status_t status = kiln_program_sizes(program, sizes, work);
  assert_true(kiln_status_is_ok(status));
  assert_int_equal(sizes[1].count, 20);
  assert_int_equal(sizes[0].count, 27);
  assert_int_equal(work[0], 3);
  assert_int_equal(work[1], 5);
  assert_int_equal(work[2], 14);
  // The same again, with what is known now.
  assert_true(kiln_status_is_ok(kiln_program_sizes(program, sizes, work)));
  sizes[1].count = 21;
  assert_says(kiln_program_sizes(program, sizes, work),
              KILN_STATUS_INVALID_ARGUMENT, "the program says 20");
  sizes[1].count = UNKNOWN;
  sizes[2].count = UNKNOWN;
  assert_says(kiln_program_sizes(program, sizes, work),
              KILN_STATUS_INVALID_ARGUMENT, "how long \"x\" is");
  sizes[2].count = UINT64_C(1) << 32;
  sizes[0].count = UNKNOWN;
  assert_says(kiln_program_sizes(program, sizes, work),
              KILN_STATUS_OUT_OF_RANGE, "length64()");
  kiln_program_release(program);
}

static void work_has_limits(void** state) {
  (void)state;
  kiln_program_t* program =
      kit_parse("program p(n: u64, x: in f64[n]) work (n, 2) { }");
  kiln_program_size_t sizes[2] = {{0, 4294967295U}, {UNKNOWN, 0}};
  uint64_t work[3];
  assert_true(kiln_status_is_ok(kiln_program_sizes(program, sizes, work)));
  assert_int_equal(work[0], 4294967295U);
  assert_int_equal(work[2], 1);
  sizes[0].bits = UINT64_C(1) << 32;
  sizes[1].count = UNKNOWN;
  assert_says(kiln_program_sizes(program, sizes, work),
              KILN_STATUS_OUT_OF_RANGE, "the work size of \"p\"");
  sizes[0].bits = UINT64_C(1) << 61;
  sizes[1].count = UNKNOWN;
  assert_says(kiln_program_sizes(program, sizes, work),
              KILN_STATUS_OUT_OF_RANGE, "2^63 bytes");
  kiln_program_release(program);
  program = kit_parse("program p(s: i32, x: out u8[s]) { }");
  kiln_program_size_t other[2] = {{0, 0xffffffffU}, {UNKNOWN, 0}};
  assert_says(kiln_program_sizes(program, other, work),
              KILN_STATUS_OUT_OF_RANGE, "is negative");
  other[0].bits = 3;
  other[1].count = UNKNOWN;
  assert_true(kiln_status_is_ok(kiln_program_sizes(program, other, work)));
  assert_int_equal(other[1].count, 3);
  assert_int_equal(work[0], 0);
  kiln_program_release(program);
}

// A count that wraps around in its type would be a small one, and its program
// would do nothing, or a part.
static void sizes_do_not_wrap(void** state) {
  (void)state;
  static const struct {
    const char* text;
    uint64_t bits[2];
    bool wraps;
  } kCases[] = {
      {"n: u32, m: u32) work (n + 255) / 256 * 256", {4294967040U, 0}, false},
      {"n: u32, m: u32) work (n + 255) / 256 * 256", {4294967041U, 0}, true},
      {"n: u32, m: u32) work n * m", {65535, 65537}, false},
      {"n: u32, m: u32) work n * m", {65536, 65536}, true},
      {"n: u32, m: u32) work n * m", {73, 294168 * 200U}, false},
      {"n: u8, m: u8) work n * m", {7, 73}, true},
      {"n: i32, m: i32) work n * m", {65536, 32768}, true},
      {"n: i32, m: i32) work n * m * n", {0xffffffffU, 5}, false},
      {"n: i8, m: i8) work n + m", {100, 28}, true},
      {"n: u32, m: u32) work n - m", {5, 5}, false},
      {"n: u32, m: u32) work n - m", {5, 6}, true},
      {"n: i32, m: i32) work n - m", {5, 0xfffffffeU}, false},
      {"n: u32, m: u32) work n << m", {3, 30}, false},
      {"n: u32, m: u32) work n << m", {3, 31}, true},
      {"n: u64, m: u64) work n * m / m", {UINT64_C(1) << 31, 1 << 30}, false},
      {"n: u64, m: u64) work n * m / m", {UINT64_C(1) << 34, 1 << 30}, true},
      // What is not chosen says nothing.
      {"n: u32, m: u32) work select(n == 0, 0, n - 1)", {0, 0}, false},
  };
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    char text[200];
    snprintf(text, sizeof(text), "program p(%s { }", kCases[i].text);
    kiln_program_t* program = kit_parse(text);
    kiln_program_size_t sizes[2] = {{0, kCases[i].bits[0]},
                                    {0, kCases[i].bits[1]}};
    uint64_t work[3];
    kiln_status_t status = kiln_program_sizes(program, sizes, work);
    if (kCases[i].wraps) {
      assert_says(status, KILN_STATUS_OUT_OF_RANGE, "wraps around");
    } else if (!kiln_status_is_ok(status)) {
      fail_msg("%s: %s", text, kiln_status_message(status));
    }
    kiln_program_release(program);
  }
  kiln_program_t* program =
      kit_parse("program p(w: u32, h: u32, x: out u8[w * h]) { }");
  kiln_program_size_t sizes[3] = {{0, 1 << 20}, {0, 1 << 20}, {UNKNOWN, 0}};
  uint64_t work[3];
  assert_says(kiln_program_sizes(program, sizes, work),
              KILN_STATUS_OUT_OF_RANGE, "\"x\"");
  kiln_program_release(program);
}

// As on the device, where a byte that is not 0 is true.
static void sizes_take_any_byte_for_true(void** state) {
  (void)state;
  kiln_program_t* program = kit_parse(
      "program p(c: bool, d: bool, x: out u8[select(c && d, 3, 4)]) "
      "work select(c == d, 5, 6) { }");
  kiln_program_size_t sizes[3] = {{0, 2}, {0, 1}, {UNKNOWN, 0}};
  uint64_t work[3];
  assert_null(kiln_program_sizes(program, sizes, work));
  assert_int_equal(sizes[2].count, 3);
  assert_int_equal(work[0], 5);
  kiln_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_read_back_as_the_same_program),
      cmocka_unit_test(names_that_do_not_matter),
      cmocka_unit_test(broken_bytes_are_refused),
      cmocka_unit_test(work_sizes_have_no_gaps),
      cmocka_unit_test(the_meaning_is_a_part),
      cmocka_unit_test(parameters_are_listed),
      cmocka_unit_test(sizes_follow_from_each_other),
      cmocka_unit_test(work_has_limits),
      cmocka_unit_test(sizes_take_any_byte_for_true),
      cmocka_unit_test(sizes_do_not_wrap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
