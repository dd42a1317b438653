// SPDX-License-Identifier: Apache-2.0
//
// cli: tests of typed values, shapes and assignments.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli_literal.h"

// A value that must be read as these bits.
typedef struct good_t {
  const char* text;
  kilni_cli_type_t type;
  uint64_t bits;
} good_t;

static void values_are_read(void** state) {
  (void)state;
  static const good_t GOOD[] = {
      {"1024i32", KILNI_CLI_TYPE_I32, 1024},
      {"2.5f32", KILNI_CLI_TYPE_F32, 0x40200000},
      {"0x1fu64", KILNI_CLI_TYPE_U64, 31},
      {"-3i64", KILNI_CLI_TYPE_I64, (uint64_t)-3},
      {"-3i8", KILNI_CLI_TYPE_I8, 0xfd},
      {"-128i8", KILNI_CLI_TYPE_I8, 0x80},
      {"127i8", KILNI_CLI_TYPE_I8, 127},
      {"255u8", KILNI_CLI_TYPE_U8, 255},
      {"-0u8", KILNI_CLI_TYPE_U8, 0},
      {"18446744073709551615u64", KILNI_CLI_TYPE_U64, UINT64_MAX},
      {"-9223372036854775808i64", KILNI_CLI_TYPE_I64, (uint64_t)1 << 63},
      {"0xffffffffu32", KILNI_CLI_TYPE_U32, 0xffffffff},
      {"0xfi32", KILNI_CLI_TYPE_I32, 15},
      {"1e3f64", KILNI_CLI_TYPE_F64, 0x408f400000000000},
      {"-inff32", KILNI_CLI_TYPE_F32, 0xff800000},
      {"0.1f32", KILNI_CLI_TYPE_F32, 0x3dcccccd},
      {"true", KILNI_CLI_TYPE_BOOL, 1},
      {"false", KILNI_CLI_TYPE_BOOL, 0},
  };
  for (size_t i = 0; i < sizeof(GOOD) / sizeof(GOOD[0]); i++) {
    kilni_cli_value_t value;
    kilni_cli_error_t error;
    assert_true(kilni_cli_value_parse(GOOD[i].text, &value, &error));
    assert_false(value.is_length);
    assert_int_equal(value.scalar.type, GOOD[i].type);
    assert_true(value.scalar.bits == GOOD[i].bits);
  }
}

// Whatever the sign, and however the x is written.
static void types_of_floats_are_digits_too(void** state) {
  (void)state;
  static const char* const HEX[] = {"0x1ff64", "0X1ff64", "+0x1ff64",
                                    "+0X1FF64"};
  for (size_t i = 0; i < sizeof(HEX) / sizeof(HEX[0]); i++) {
    kilni_cli_scalar_t scalar;
    kilni_cli_error_t error;
    assert_false(kilni_cli_value_is_typed(HEX[i]));
    assert_true(
        kilni_cli_value_parse_as(HEX[i], KILNI_CLI_TYPE_U32, &scalar, &error));
    assert_int_equal(scalar.bits, 0x1ff64);
  }
}

static void wrong_values_are_refused(void** state) {
  (void)state;
  static const char* const BAD[] = {"",
                                    "5",
                                    "i32",
                                    "128i8",
                                    "-129i8",
                                    "256u8",
                                    "-1u8",
                                    "1.5i32",
                                    "0x1fu4",
                                    "0xu32",
                                    "--1i32",
                                    "1 i32",
                                    "2,5f32",
                                    "1e999f64",
                                    "1e39f32",
                                    "0x1p3f32",
                                    "nan(1)f32",
                                    "truee",
                                    "4294967296u32",
                                    "len(",
                                    "len()",
                                    "len(1",
                                    "1bool",
                                    "abcf32",
                                    "f32",
                                    "18446744073709551616u64",
                                    "-9223372036854775809i64"};
  for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
    kilni_cli_value_t value;
    kilni_cli_error_t error;
    if (kilni_cli_value_parse(BAD[i], &value, &error)) {
      fail_msg("\"%s\" was taken", BAD[i]);
    }
    assert_int_equal(error.code, KILN_STATUS_INVALID_ARGUMENT);
    assert_true(error.fix[0] != 0);
  }
  kilni_cli_value_t value;
  kilni_cli_error_t error;
  assert_true(kilni_cli_value_parse("1.0f16", &value, &error));
  assert_int_equal(value.scalar.bits, 0x3c00);
  assert_true(kilni_cli_value_parse("-1.5bf16", &value, &error));
  assert_int_equal(value.scalar.bits, 0xbfc0);
  assert_false(kilni_cli_value_parse("65520f16", &value, &error));
  assert_int_equal(error.code, KILN_STATUS_INVALID_ARGUMENT);
}

static void a_length_names_its_parameter(void** state) {
  (void)state;
  kilni_cli_value_t value;
  kilni_cli_error_t error;
  assert_true(kilni_cli_value_parse("len(x_0)", &value, &error));
  assert_true(value.is_length);
  assert_int_equal(value.parameter_size, 3);
  assert_memory_equal(value.parameter, "x_0", 3);
}

static void a_length_must_fit(void** state) {
  (void)state;
  kilni_cli_scalar_t scalar;
  kilni_cli_error_t error;
  assert_true(kilni_cli_scalar_length(127, 1, true, &scalar, &error));
  assert_false(kilni_cli_scalar_length(128, 1, true, &scalar, &error));
  assert_true(kilni_cli_scalar_length(255, 1, false, &scalar, &error));
  assert_true(kilni_cli_scalar_length(2147483647, 4, true, &scalar, &error));
  assert_false(kilni_cli_scalar_length(2147483648u, 4, true, &scalar, &error));
  assert_true(kilni_cli_scalar_length(UINT64_MAX, 8, false, &scalar, &error));
}

// As a C compiler lays them out.
static void structs_are_laid_out(void** state) {
  (void)state;
  struct inner_t {
    uint8_t a;
    double b;
  };
  struct outer_t {
    float a;
    uint8_t b;
    struct inner_t c[2];
    int16_t d;
  } wanted;
  kilni_cli_buffer_t got = {0};
  kilni_cli_error_t error;
  memset(&wanted, 0, sizeof(wanted));
  wanted.a = 2.5f;
  wanted.b = 7;
  wanted.c[0].a = 1;
  wanted.c[0].b = -1.5;
  wanted.c[1].a = 2;
  wanted.c[1].b = 3;
  wanted.d = -4;
  assert_true(kilni_cli_struct_parse(
      "{2.5f32, 7u8,{ {1u8,-1.5f64} ,{2u8, 3f64}},-4i16,0u16,0u32 }", &got,
      &error));
  assert_int_equal(got.size, sizeof(wanted));
  assert_memory_equal(got.data, &wanted, sizeof(wanted));
  kilni_cli_buffer_deinit(&got);
  assert_true(kilni_cli_struct_parse("{true}", &got, &error));
  assert_int_equal(got.size, 1);
  kilni_cli_buffer_deinit(&got);
  static const char* const BAD[] = {"",
                                    "{",
                                    "{}",
                                    "{1}",
                                    "{1i32",
                                    "{1i32,}",
                                    "{1i32}}",
                                    "{1i32} ",
                                    "{1i32 2i32}",
                                    "{{1i32}",
                                    "{len(0)}",
                                    "{,1i32}",
                                    "1i32",
                                    "{1.5b16}",
                                    "{nothing}",
                                    "{1u64,2i32}",
                                    "{{1i64,1u8},2i64}"};
  for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
    if (kilni_cli_struct_parse(BAD[i], &got, &error)) fail_msg("%s", BAD[i]);
    assert_int_equal(error.code, KILN_STATUS_INVALID_ARGUMENT);
    kilni_cli_buffer_deinit(&got);
  }
  char deep[64];
  memset(deep, '{', sizeof(deep));
  deep[63] = 0;
  assert_false(kilni_cli_struct_parse(deep, &got, &error));
  kilni_cli_buffer_deinit(&got);
}

static void specs_are_read(void** state) {
  (void)state;
  kilni_cli_spec_t spec;
  kilni_cli_error_t error;
  assert_true(kilni_cli_spec_parse("a.bin", &spec, &error));
  assert_int_equal(spec.kind, KILNI_CLI_SPEC_NONE);
  assert_int_equal(spec.path_size, 5);
  assert_true(kilni_cli_spec_parse("a.bin:f32[2,3]", &spec, &error));
  assert_int_equal(spec.kind, KILNI_CLI_SPEC_SHAPE);
  assert_int_equal(spec.path_size, 5);
  assert_int_equal(spec.shape.type, KILNI_CLI_TYPE_F32);
  assert_int_equal(spec.shape.rank, 2);
  assert_int_equal(spec.shape.count, 6);
  assert_int_equal(spec.shape.bytes, 24);
  assert_true(kilni_cli_spec_parse("a:bf16[]", &spec, &error));
  assert_int_equal(spec.shape.rank, 0);
  assert_int_equal(spec.shape.bytes, 2);
  assert_true(kilni_cli_spec_parse("a:u8", &spec, &error));
  assert_int_equal(spec.kind, KILNI_CLI_SPEC_TYPE);
  assert_true(kilni_cli_spec_parse("a:@12", &spec, &error));
  assert_int_equal(spec.kind, KILNI_CLI_SPEC_COPY);
  assert_string_equal(spec.copied, "12");
  // A colon may be part of a name.
  assert_true(kilni_cli_spec_parse("c:file.bin", &spec, &error));
  assert_int_equal(spec.kind, KILNI_CLI_SPEC_NONE);
  assert_int_equal(spec.path_size, 10);
  static const char* const NAMES[] = {"a:v2", "a:f",     "a:2",
                                      "a:",   "a:first", "a:f32.bin"};
  for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
    assert_true(kilni_cli_spec_parse(NAMES[i], &spec, &error));
    assert_int_equal(spec.kind, KILNI_CLI_SPEC_NONE);
    assert_int_equal(spec.path_size, strlen(NAMES[i]));
  }
  assert_true(kilni_cli_spec_parse("a:u8/b[1]", &spec, &error));
  assert_int_equal(spec.kind, KILNI_CLI_SPEC_NONE);
}

static void wrong_specs_are_refused(void** state) {
  (void)state;
  static const char* const BAD[] = {"a:f32[",
                                    "a:f32[1",
                                    "a:f32[1,]",
                                    "a:f32[,1]",
                                    "a:f32[-1]",
                                    "a:f32[1]x",
                                    "a:f33[1]",
                                    "a:@",
                                    ":f32[1]",
                                    "a:f32[1 ]",
                                    "a:f32[1][2]",
                                    "a:[3]",
                                    "a:f33",
                                    "a:float32",
                                    "a:int",
                                    "a:uint8",
                                    "a:u8[1,1,1,1,1,1,1,1,1]"};
  for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
    kilni_cli_spec_t spec;
    kilni_cli_error_t error;
    if (kilni_cli_spec_parse(BAD[i], &spec, &error)) {
      fail_msg("\"%s\" was taken", BAD[i]);
    }
    assert_int_equal(error.code, KILN_STATUS_INVALID_ARGUMENT);
    assert_true(error.fix[0] != 0);
  }
}

static void shapes_have_a_limit(void** state) {
  (void)state;
  kilni_cli_spec_t spec;
  kilni_cli_error_t error;
  assert_true(kilni_cli_spec_parse("a:u8[17179869184]", &spec, &error));
  assert_false(kilni_cli_spec_parse("a:u8[17179869185]", &spec, &error));
  assert_int_equal(error.code, KILN_STATUS_INVALID_ARGUMENT);
  assert_false(kilni_cli_spec_parse("a:u8[4294967296,4294967296,4294967296]",
                                    &spec, &error));
  // A zero anywhere is no elements, however large the rest.
  assert_true(
      kilni_cli_spec_parse("a:u8[18446744073709551615,0]", &spec, &error));
  assert_int_equal(spec.shape.count, 0);
}

static void dims_are_read(void** state) {
  (void)state;
  uint32_t d[3];
  kilni_cli_error_t error;
  assert_true(kilni_cli_dims_parse("grid", "7", d, &error));
  assert_int_equal(d[0], 7);
  assert_int_equal(d[1], 1);
  assert_true(kilni_cli_dims_parse("grid", "1,2,4294967295", d, &error));
  assert_int_equal(d[2], 4294967295u);
  static const char* const BAD[] = {"",       "0",       "1,", "1,2,",
                                    "1,2,3,", "1,2,3,4", "a",  "4294967296",
                                    "-1",     "1 "};
  for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
    if (kilni_cli_dims_parse("grid", BAD[i], d, &error)) {
      fail_msg("\"%s\" was taken", BAD[i]);
    }
  }
}

static void assignments_are_split(void** state) {
  (void)state;
  size_t size;
  const char* rest;
  kilni_cli_error_t error;
  assert_true(kilni_cli_split_assignment("in", "x=a=b", &size, &rest, &error));
  assert_int_equal(size, 1);
  assert_string_equal(rest, "a=b");
  assert_false(kilni_cli_split_assignment("in", "x", &size, &rest, &error));
  assert_false(kilni_cli_split_assignment("in", "=x", &size, &rest, &error));
  assert_false(kilni_cli_split_assignment("in", "x=", &size, &rest, &error));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_are_read),
      cmocka_unit_test(types_of_floats_are_digits_too),
      cmocka_unit_test(wrong_values_are_refused),
      cmocka_unit_test(a_length_names_its_parameter),
      cmocka_unit_test(a_length_must_fit),
      cmocka_unit_test(structs_are_laid_out),
      cmocka_unit_test(specs_are_read),
      cmocka_unit_test(wrong_specs_are_refused),
      cmocka_unit_test(shapes_have_a_limit),
      cmocka_unit_test(dims_are_read),
      cmocka_unit_test(assignments_are_split),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
