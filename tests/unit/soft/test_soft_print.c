// SPDX-License-Identifier: Apache-2.0
//
// soft: tests of the text of a kernel's printf.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "soft/engine/soft_print.h"

// A device memory of one page that starts at BASE.
enum { BASE = 0x10000, MEMORY_BYTES = 8192, ARGUMENTS = 4096 };

typedef struct memory_t {
  char bytes[MEMORY_BYTES];
  size_t used;  // of the arguments
} memory_t;

static bool read_memory(uint64_t address, void* out, size_t bytes, void* user) {
  const memory_t* memory = user;
  if (address < BASE || address + bytes > BASE + MEMORY_BYTES) return false;
  memcpy(out, memory->bytes + (address - BASE), bytes);
  return true;
}

static void push(memory_t* memory, const void* value, size_t bytes) {
  memory->used = (memory->used + bytes - 1) & ~(bytes - 1);
  memcpy(memory->bytes + ARGUMENTS + memory->used, value, bytes);
  memory->used += bytes;
}

static void push_int(memory_t* m, int32_t value) {
  push(m, &value, 4);
}
static void push_long(memory_t* m, int64_t value) {
  push(m, &value, 8);
}
static void push_double(memory_t* m, double value) {
  push(m, &value, 8);
}

static kilni_soft_print_result_t run(memory_t* memory, const char* format,
                                     char* out, size_t capacity,
                                     kilni_soft_print_t* print) {
  snprintf(memory->bytes, ARGUMENTS, "%s", format);
  return kilni_soft_print_format(read_memory, memory, BASE, BASE + ARGUMENTS,
                                 out, capacity, print);
}

static void expect(memory_t* memory, const char* format, const char* text,
                   int returned) {
  char out[1024];
  kilni_soft_print_t print;
  assert_int_equal(run(memory, format, out, sizeof(out) - 1, &print),
                   KILNI_SOFT_PRINT_OK);
  out[print.size] = 0;
  assert_string_equal(out, text);
  assert_int_equal(print.returned, returned);
  memset(memory, 0, sizeof(*memory));
}

static void test_plain_text(void** state) {
  (void)state;
  memory_t m = {{0}, 0};
  expect(&m, "no arguments, 100%%\n", "no arguments, 100%\n", 0);
  expect(&m, "", "", 0);
}

static void test_integers(void** state) {
  (void)state;
  memory_t m = {{0}, 0};
  push_int(&m, -7);
  push_int(&m, -1);
  push_int(&m, 0x2a);
  push_int(&m, 8);
  expect(&m, "%d %u %#x %o", "-7 4294967295 0x2a 10", 4);
  push_long(&m, INT64_MIN);
  push_int(&m, 5);
  push_long(&m, -1);
  expect(&m, "%lld|%-4d|%lx", "-9223372036854775808|5   |ffffffffffffffff", 3);
  push_int(&m, 0x12345);
  push_int(&m, 0x1ff);
  expect(&m, "%hd %hhu", "9029 255", 2);
}

static void test_width_from_argument(void** state) {
  (void)state;
  memory_t m = {{0}, 0};
  push_int(&m, 6);
  push_int(&m, 42);
  push_int(&m, -6);
  push_int(&m, 42);
  expect(&m, "[%*d][%*d]", "[    42][42    ]", 4);
}

static void test_floats(void** state) {
  (void)state;
  memory_t m = {{0}, 0};
  push_double(&m, 3.5);
  push_int(&m, 1);
  push_double(&m, -0.25);
  push_double(&m, 1e10);
  expect(&m, "%f %d %.3e %g", "3.500000 1 -2.500e-01 1e+10", 4);
}

static void test_strings_chars_pointers(void** state) {
  (void)state;
  memory_t m = {{0}, 0};
  strcpy(m.bytes + 2048, "kiln");
  push_long(&m, BASE + 2048);
  push_int(&m, 'x');
  push_long(&m, 0x7e00);
  push_long(&m, 0);
  expect(&m, "%6s%c %p %s", "  kilnx 0x7e00 (null)", 4);
}

// What is no conversion is printed without its size, as an H200 does (the text
// of each line and what it printed: tests/live/live_source.py); where nothing
// takes an argument, as it stands.
static void test_what_is_no_conversion_is_printed(void** state) {
  (void)state;
  memory_t m = {{0}, 0};
  expect(&m, "%q 3", "%q 3", 0);
  expect(&m, "%y %", "%y %", 0);
  expect(&m, "a%", "a%", 0);
  expect(&m, "%ll", "%ll", 0);
  expect(&m, "100%% of %-5y", "100% of %-5y", 0);
  static const char* const kLines[][2] = {
      {"%D|%d", "%D|7"},         {"%l d|%d", "% d|7"},
      {"%llld|%d", "%ld|7"},     {"%hld|%d", "%ld|7"},
      {"%lhd|%d", "%hd|7"},      {"%hhhd|%d", "%hd|7"},
      {"%.3.4d|%d", "%.3.4d|7"}, {"%.-3d|%d", "%.0-3d|7"},
      {"%d %>", "7 %>"},         {"%q 3|%d", "% 3|7"},
      {"%d %", "7 %"},           {"%-5.2lw|%d", "%-5.2w|7"},
      {"%5%|%d", "%|7"},
  };
  for (size_t i = 0; i < sizeof(kLines) / sizeof(kLines[0]); i++) {
    push_int(&m, 7);
    expect(&m, kLines[i][0], kLines[i][1], 1);
  }
}

// Sizes of the standard: what follows finds its own argument.
static void test_sizes(void** state) {
  (void)state;
  memory_t m = {{0}, 0};
  push_int(&m, 70000);
  push_int(&m, 300);
  push_long(&m, 9000000000);
  push_long(&m, -9000000000);
  push_int(&m, 3);
  push_long(&m, -5);
  push_long(&m, -6);
  push_long(&m, INT64_MIN);
  push_int(&m, 77);
  expect(&m, "%hd %hhd %zu %jd %d %td %ld %lld %d",
         "4464 44 9000000000 -9000000000 3 -5 -6 -9223372036854775808 77", 9);
  push_long(&m, 0xfffffffff);
  push_long(&m, 8);
  push_long(&m, 5);
  push_int(&m, 77);
  expect(&m, "%zx|%-4jo|%+05td|%d", "fffffffff|10  |+0005|77", 4);
}

// A NUL is a character as any other, in a width as well.
static void test_a_nul_is_printed(void** state) {
  (void)state;
  memory_t m = {{0}, 0};
  char out[64];
  kilni_soft_print_t print;
  for (int i = 0; i < 3; i++) push_int(&m, i == 2 ? 7 : 0);
  assert_int_equal(run(&m, "[%c][%3c]%d", out, sizeof(out), &print),
                   KILNI_SOFT_PRINT_OK);
  assert_int_equal(print.size, 9);
  assert_memory_equal(out, "[\0][  \0]7", 9);
}

// %n would write host memory; it is no conversion of ours.
static void test_n_is_no_conversion(void** state) {
  (void)state;
  memory_t m = {{0}, 0};
  push_long(&m, BASE);
  expect(&m, "a%nb", "a%nb", 0);
}

// A long double of the device is a double; a flag that only groups digits
// changes nothing; of no text as little is printed as of a text.
static void test_what_c_knows(void** state) {
  (void)state;
  memory_t m = {{0}, 0};
  push_double(&m, 2.5);
  push_int(&m, 7000);
  push_int(&m, 8);
  expect(&m, "%Lf|%'d|%d", "2.500000|7000|8", 3);
  push_long(&m, 0);
  push_long(&m, 0);
  expect(&m, "[%.2s][%.6s]", "[][(null)]", 2);
}

static void test_null_format_returns_minus_one(void** state) {
  (void)state;
  memory_t m = {{0}, 0};
  kilni_soft_print_t print;
  char out[4];
  assert_int_equal(kilni_soft_print_format(read_memory, &m, 0, BASE, out,
                                           sizeof(out), &print),
                   KILNI_SOFT_PRINT_OK);
  assert_int_equal(print.returned, -1);
}

static void test_bad_addresses_are_reported(void** state) {
  (void)state;
  memory_t m = {{0}, 0};
  kilni_soft_print_t print;
  char out[64];
  assert_int_equal(kilni_soft_print_format(read_memory, &m, 0x44, BASE, out,
                                           sizeof(out), &print),
                   KILNI_SOFT_PRINT_BAD_ADDRESS);
  assert_int_equal(print.address, 0x44);
  push_long(&m, 0x1234);
  assert_int_equal(run(&m, "%s", out, sizeof(out), &print),
                   KILNI_SOFT_PRINT_BAD_ADDRESS);
  assert_int_equal(print.address, 0x1234);
}

static void test_text_is_cut_at_the_capacity(void** state) {
  (void)state;
  memory_t m = {{0}, 0};
  kilni_soft_print_t print;
  char out[8];
  memset(out, '#', sizeof(out));
  push_int(&m, 123456);
  assert_int_equal(run(&m, "%d-%d", out, 5, &print), KILNI_SOFT_PRINT_OK);
  assert_int_equal(print.size, 5);
  assert_memory_equal(out, "12345###", 8);
  memset(&m, 0, sizeof(m));
  push_int(&m, 1);
  assert_int_equal(run(&m, "%999999999d", out, 5, &print), KILNI_SOFT_PRINT_OK);
  assert_int_equal(print.size, 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_plain_text),
      cmocka_unit_test(test_integers),
      cmocka_unit_test(test_width_from_argument),
      cmocka_unit_test(test_floats),
      cmocka_unit_test(test_strings_chars_pointers),
      cmocka_unit_test(test_what_is_no_conversion_is_printed),
      cmocka_unit_test(test_what_c_knows),
      cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_a_nul_is_printed),
      cmocka_unit_test(test_n_is_no_conversion),
      cmocka_unit_test(test_null_format_returns_minus_one),
      cmocka_unit_test(test_bad_addresses_are_reported),
      cmocka_unit_test(test_text_is_cut_at_the_capacity),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
