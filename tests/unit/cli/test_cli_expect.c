// SPDX-License-Identifier: Apache-2.0
//
// cli: tests of comparing an output with what it should be.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/run_expect.h"

// `data` is only read.
static kilni_cli_array_t array_of(kilni_cli_type_t type, uint64_t count,
                                  const void* data) {
  kilni_cli_array_t array;
  memset(&array, 0, sizeof(array));
  array.shape.type = type;
  array.shape.rank = 1;
  array.shape.dims[0] = count;
  array.shape.count = count;
  array.shape.bytes = count * kilni_cli_type_info(type)->bytes;
  memcpy(&array.data.data, &data, sizeof(data));
  array.data.size = (size_t)array.shape.bytes;
  return array;
}

static kilni_cli_difference_t compare(kilni_cli_type_t type, uint64_t count,
                                      const void* expected, const void* got,
                                      double tolerance) {
  kilni_cli_difference_t d;
  kilni_cli_array_t a = array_of(type, count, expected);
  kilni_cli_array_t b = array_of(type, count, got);
  kilni_cli_expect_compare(&a, &b, tolerance, &d);
  return d;
}

static void floats_agree_as_documented(void** state) {
  (void)state;
  static const uint32_t kNan[2] = {0x7fc00000, 0xffc00001};
  static const float A[] = {1.0f, 0.0f, 100.0f, 0.001f};
  static const float B[] = {1.0f, -0.0f, 100.5f, 0.002f};
  kilni_cli_difference_t d = compare(KILNI_CLI_TYPE_F32, 4, A, B, 0);
  assert_int_equal(d.count, 2);
  assert_int_equal(d.first, 2);
  assert_string_equal(d.expected, "100");
  assert_string_equal(d.got, "100.5");
  assert_true(d.largest == 0.5);
  // Relative for the large, absolute for the small.
  assert_int_equal(compare(KILNI_CLI_TYPE_F32, 4, A, B, 0.01).count, 0);
  assert_int_equal(compare(KILNI_CLI_TYPE_F32, 4, A, B, 0.0009).count, 2);
  assert_int_equal(compare(KILNI_CLI_TYPE_F32, 1, &kNan[0], &kNan[1], 0).count,
                   0);
  d = compare(KILNI_CLI_TYPE_F32, 1, A, kNan, 1e9);
  assert_int_equal(d.count, 1);
  assert_string_equal(d.got, "nan");
  assert_true(d.largest > 1e300);
}

static void infinities_agree_with_themselves_alone(void** state) {
  (void)state;
  static const double A[] = {1e308, -1e308};
  static const double B[] = {-1e308, -1e308};
  uint64_t infinite[2] = {0x7ff0000000000000u, 0xfff0000000000000u};
  assert_int_equal(
      compare(KILNI_CLI_TYPE_F64, 1, &infinite[0], &infinite[1], 1e300).count,
      1);
  assert_int_equal(
      compare(KILNI_CLI_TYPE_F64, 1, &infinite[0], &infinite[0], 0).count, 0);
  assert_int_equal(compare(KILNI_CLI_TYPE_F64, 1, &infinite[0], A, 1).count, 1);
  assert_int_equal(compare(KILNI_CLI_TYPE_F64, 1, A, &infinite[0], 1).count, 1);
  assert_int_equal(compare(KILNI_CLI_TYPE_F64, 2, A, B, 1).count, 1);
}

static void halves_are_numbers(void** state) {
  (void)state;
  static const uint16_t A[] = {0x3c00, 0x0001, 0x7c00, 0xc000};
  static const uint16_t B[] = {0x3c01, 0x0002, 0x7c00, 0xc000};
  kilni_cli_difference_t d = compare(KILNI_CLI_TYPE_F16, 4, A, B, 0);
  assert_int_equal(d.count, 2);
  assert_string_equal(d.expected, "1");
  assert_string_equal(d.got, "1.00098");
  assert_int_equal(compare(KILNI_CLI_TYPE_F16, 4, A, B, 0.001).count, 0);
  static const uint16_t C[] = {0x3f80}, D[] = {0xbf80};
  d = compare(KILNI_CLI_TYPE_BF16, 1, C, D, 1.5);
  assert_int_equal(d.count, 1);
  assert_string_equal(d.got, "-1");
  assert_int_equal(compare(KILNI_CLI_TYPE_BF16, 1, C, D, 2).count, 0);
}

static void integers_are_exact(void** state) {
  (void)state;
  static const int64_t A[] = {INT64_MAX, -1, 5}, B[] = {INT64_MIN, -2, 5};
  kilni_cli_difference_t d = compare(KILNI_CLI_TYPE_I64, 3, A, B, 0);
  assert_int_equal(d.count, 2);
  assert_string_equal(d.expected, "9223372036854775807");
  assert_string_equal(d.got, "-9223372036854775808");
  // Neighbours that are one double.
  static const uint64_t C[] = {UINT64_MAX}, D[] = {UINT64_MAX - 1};
  assert_int_equal(compare(KILNI_CLI_TYPE_U64, 1, C, D, 0).count, 1);
  assert_int_equal(compare(KILNI_CLI_TYPE_U64, 1, C, D, 1).count, 0);
  static const int8_t E[] = {-128, 127}, F[] = {127, 127};
  d = compare(KILNI_CLI_TYPE_I8, 2, E, F, 0);
  assert_string_equal(d.expected, "-128");
  assert_true(d.largest == 255);
  static const uint8_t G[] = {1, 0}, H[] = {2, 1};
  d = compare(KILNI_CLI_TYPE_BOOL, 2, G, H, 100);
  assert_int_equal(d.count, 1);
  assert_int_equal(d.first, 1);
  assert_string_equal(d.got, "true");
}

static double rounding(double expected, double got) {
  const double a[] = {1000, expected}, b[] = {1000, got};
  kilni_cli_difference_t d = compare(KILNI_CLI_TYPE_F64, 2, a, b, 0);
  if (d.rounding > 0) {
    char text[KILNI_CLI_NUMBER_BYTES];
    kilni_cli_expect_tolerance(d.rounding, text);
    double enough = strtod(text, NULL);
    assert_int_equal(compare(KILNI_CLI_TYPE_F64, 2, a, b, enough).count, 0);
  }
  return d.rounding;
}

static void a_tolerance_is_for_rounding_alone(void** state) {
  (void)state;
  assert_true(rounding(12, 12.000001) > 0 && rounding(12, 12.000001) < 1e-6);
  assert_true(rounding(1e6, 1e6 + 1) < 2e-6);
  assert_true(rounding(0, 1e-9) > 0);
  assert_true(rounding(12, 12.1) == 0);
  assert_true(rounding(0, 0.5) == 0);
  assert_true(rounding(1, -1) == 0);
  assert_true(rounding(1, (double)INFINITY) == 0);
  assert_true(rounding(1, (double)NAN) == 0);
  assert_true(rounding(1, 1e10) == 0);
  static const int32_t kA[] = {1000000}, kB[] = {1000001};
  assert_true(compare(KILNI_CLI_TYPE_I32, 1, kA, kB, 0).rounding == 0);
  static const uint16_t kC[] = {0x3c00}, kD[] = {0x3c01};  // f16, neighbours
  assert_true(compare(KILNI_CLI_TYPE_F16, 1, kC, kD, 0).rounding > 0);
  assert_true(compare(KILNI_CLI_TYPE_BF16, 1, kC, kD, 0).rounding > 0);
}

static void shapes_fit_or_not(void** state) {
  (void)state;
  kilni_cli_shape_t a = {KILNI_CLI_TYPE_F32, 2, {2, 3}, 6, 24};
  kilni_cli_shape_t b = {KILNI_CLI_TYPE_F32, 2, {3, 2}, 6, 24};
  kilni_cli_shape_t flat = {KILNI_CLI_TYPE_F32, 1, {6}, 6, 24};
  kilni_cli_shape_t other = {KILNI_CLI_TYPE_I32, 1, {6}, 6, 24};
  kilni_cli_shape_t shorter = {KILNI_CLI_TYPE_F32, 1, {5}, 5, 20};
  assert_true(kilni_cli_expect_fits(&a, &a));
  assert_false(kilni_cli_expect_fits(&a, &b));
  assert_true(kilni_cli_expect_fits(&a, &flat));
  assert_true(kilni_cli_expect_fits(&flat, &b));
  assert_false(kilni_cli_expect_fits(&flat, &other));
  assert_false(kilni_cli_expect_fits(&flat, &shorter));
  char place[64];
  kilni_cli_expect_place(&a, 5, place, sizeof(place));
  assert_string_equal(place, "[1,2]");
  kilni_cli_expect_place(&flat, 5, place, sizeof(place));
  assert_string_equal(place, "[5]");
  kilni_cli_shape_t one = {KILNI_CLI_TYPE_F32, 0, {0}, 1, 4};
  kilni_cli_expect_place(&one, 0, place, sizeof(place));
  assert_string_equal(place, "[]");
  kilni_cli_expect_place(&a, 5, place, 3);
  assert_string_equal(place, "[1");
}

// What a fix says to allow is enough.
static void a_tolerance_is_not_below(void** state) {
  (void)state;
  static const double LARGEST[] = {0.5,   0.1,   1.0 / 3,  2.0 / 3, 1e-300,
                                   1e300, 0.999, 123456.5, 5e-324,  1.7e308};
  for (size_t i = 0; i < sizeof(LARGEST) / sizeof(LARGEST[0]); i++) {
    char text[KILNI_CLI_NUMBER_BYTES];
    kilni_cli_expect_tolerance(LARGEST[i], text);
    assert_true(strtod(text, NULL) >= LARGEST[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(floats_agree_as_documented),
      cmocka_unit_test(infinities_agree_with_themselves_alone),
      cmocka_unit_test(halves_are_numbers),
      cmocka_unit_test(integers_are_exact),
      cmocka_unit_test(a_tolerance_is_for_rounding_alone),
      cmocka_unit_test(shapes_fit_or_not),
      cmocka_unit_test(a_tolerance_is_not_below),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
