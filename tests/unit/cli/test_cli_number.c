// SPDX-License-Identifier: Apache-2.0
//
// cli: tests of numbers as elements of other types.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli_number.h"

static uint64_t bits_of(double value, kilni_cli_type_t type) {
  uint64_t bits = 0;
  assert_true(kilni_cli_number_bits(value, type, &bits));
  return bits;
}

// Every half is next to itself, and to what is between it and its neighbours.
static void halves_round_to_the_nearest(void** state) {
  (void)state;
  for (uint32_t i = 0; i < 0x7c00; i++) {
    double value = kilni_cli_number_of(KILNI_CLI_TYPE_F16, i);
    double next = kilni_cli_number_of(KILNI_CLI_TYPE_F16, i + 1);
    assert_int_equal(bits_of(value, KILNI_CLI_TYPE_F16), i);
    assert_int_equal(bits_of(-value, KILNI_CLI_TYPE_F16), i | 0x8000);
    if (isinf(next)) break;
    double middle = (value + next) / 2;
    assert_int_equal(bits_of(middle, KILNI_CLI_TYPE_F16), (i + 1) & ~1u);
    assert_int_equal(bits_of(nextafter(middle, 0), KILNI_CLI_TYPE_F16), i);
    assert_int_equal(bits_of(nextafter(middle, 1e9), KILNI_CLI_TYPE_F16),
                     i + 1);
  }
  uint64_t bits;
  assert_true(kilni_cli_number_bits(65519, KILNI_CLI_TYPE_F16, &bits));
  assert_false(kilni_cli_number_bits(65520, KILNI_CLI_TYPE_F16, &bits));
  assert_int_equal(bits_of((double)INFINITY, KILNI_CLI_TYPE_F16), 0x7c00);
  assert_int_equal(bits_of(5e-324, KILNI_CLI_TYPE_F16), 0);
}

// As the compiler's own conversion does it.
static void floats_round_as_the_processor_does(void** state) {
  (void)state;
  uint64_t seed = 1;
  for (int i = 0; i < 200000; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    // Exponents about those of an f32, the smallest ones too.
    uint64_t bits = (seed >> 12) | (uint64_t)(1023 - 160 + i % 300) << 52;
    double value;
    uint64_t got = 0;
    uint32_t wanted;
    memcpy(&value, &bits, sizeof(value));
    float narrow = (float)value;
    memcpy(&wanted, &narrow, sizeof(wanted));
    assert_int_equal(kilni_cli_number_bits(value, KILNI_CLI_TYPE_F32, &got),
                     isinf(narrow) == 0);
    assert_int_equal(got, wanted);
  }
  assert_int_equal(bits_of(1.00390625, KILNI_CLI_TYPE_BF16), 0x3f80);
  assert_int_equal(bits_of(1.01171875, KILNI_CLI_TYPE_BF16), 0x3f82);
}

static void literals_say_the_same_number(void** state) {
  (void)state;
  static const struct {
    kilni_cli_type_t type;
    uint64_t bits;
    kilni_cli_type_t as;
    const char* text;  // NULL: there is none
  } CASES[] = {
      {KILNI_CLI_TYPE_I64, 77, KILNI_CLI_TYPE_I32, "77i32"},
      {KILNI_CLI_TYPE_I64, UINT64_MAX, KILNI_CLI_TYPE_I8, "-1i8"},
      {KILNI_CLI_TYPE_I8, 0x80, KILNI_CLI_TYPE_I8, "-128i8"},
      {KILNI_CLI_TYPE_I32, 0xffffff7f, KILNI_CLI_TYPE_I8, NULL},
      {KILNI_CLI_TYPE_I64, UINT64_MAX, KILNI_CLI_TYPE_U32, NULL},
      {KILNI_CLI_TYPE_U64, UINT64_MAX, KILNI_CLI_TYPE_I64, NULL},
      {KILNI_CLI_TYPE_U16, 0xffff, KILNI_CLI_TYPE_U16, "65535u16"},
      {KILNI_CLI_TYPE_I32, 2, KILNI_CLI_TYPE_F32, "2f32"},
      {KILNI_CLI_TYPE_F32, 0x3dcccccd, KILNI_CLI_TYPE_F32, "0.1f32"},
      {KILNI_CLI_TYPE_F64, 0x3fb999999999999a, KILNI_CLI_TYPE_F32, "0.1f32"},
      {KILNI_CLI_TYPE_F64, 0x3fb999999999999a, KILNI_CLI_TYPE_I32, NULL},
      {KILNI_CLI_TYPE_F64, 0xc000000000000000, KILNI_CLI_TYPE_I32, "-2i32"},
      {KILNI_CLI_TYPE_F64, 0x7ff0000000000000, KILNI_CLI_TYPE_F32, NULL},
      {KILNI_CLI_TYPE_F64, 0x7e37e43c8800759c, KILNI_CLI_TYPE_F32, NULL},
      {KILNI_CLI_TYPE_F16, 0x3e00, KILNI_CLI_TYPE_BF16, "1.5bf16"},
  };
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
    char text[KILNI_CLI_NUMBER_TEXT];
    bool has =
        kilni_cli_number_text(CASES[i].type, CASES[i].bits, CASES[i].as, text);
    assert_int_equal(has, CASES[i].text != NULL);
    if (has) assert_string_equal(text, CASES[i].text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(halves_round_to_the_nearest),
      cmocka_unit_test(floats_round_as_the_processor_does),
      cmocka_unit_test(literals_say_the_same_number),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
