// SPDX-License-Identifier: Apache-2.0
//
// program: tables of a program, types and operators.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "program/ir/program_ir.h"
#include "program/ir/program_types.h"

static kilni_program_expr_record_t length_of(uint32_t buffer) {
  kilni_program_expr_record_t record = {
      KILNI_EXPR_LENGTH, KILN_PROGRAM_TYPE_U32, 0, buffer, 0, 0};
  return record;
}

static void adds_count_from_one(void** state) {
  (void)state;
  kilni_program_ir_t ir;
  kilni_program_ir_init(&ir, kiln_allocator_libc());
  for (uint32_t i = 1; i <= 100; i++) {
    assert_int_equal(kilni_program_ir_add_expr(&ir, length_of(i)), i);
  }
  assert_int_equal(ir.exprs.count, 101);
  assert_int_equal(ir.exprs.items[0].op, KILNI_EXPR_NONE);
  assert_int_equal(ir.exprs.items[77].a, 77);
  uint32_t run[3] = {7, 8, 9};
  assert_int_equal(kilni_program_ir_add_operands(&ir, run, 0), 1);
  assert_int_equal(kilni_program_ir_add_operands(&ir, run, 3), 1);
  assert_int_equal(kilni_program_ir_add_operands(&ir, run, 3), 4);
  assert_int_equal(ir.operands.items[6], 9);
  uint32_t name = kilni_program_ir_add_name(&ir, "saxpy!", 5);
  assert_string_equal(kilni_program_ir_name(&ir, name), "saxpy");
  assert_string_equal(kilni_program_ir_name(&ir, 0), "");
  assert_true(kiln_status_is_ok(kilni_program_ir_status(&ir)));
  kilni_program_ir_deinit(&ir);
  kilni_program_ir_deinit(&ir);
}

static void a_copy_stands_alone(void** state) {
  (void)state;
  kilni_program_ir_t ir, copy;
  kilni_program_ir_init(&ir, kiln_allocator_libc());
  kilni_program_ir_add_expr(&ir, length_of(5));
  ir.name = kilni_program_ir_add_name(&ir, "p", 1);
  assert_true(kiln_status_is_ok(
      kilni_program_ir_copy(&ir, kiln_allocator_libc(), &copy)));
  kilni_program_ir_deinit(&ir);
  assert_int_equal(copy.exprs.items[1].a, 5);
  assert_string_equal(kilni_program_ir_name(&copy, copy.name), "p");
  assert_int_equal(kilni_program_ir_add_expr(&copy, length_of(6)), 2);
  kilni_program_ir_deinit(&copy);
}

static void a_full_table_says_so(void** state) {
  (void)state;
  kilni_program_ir_t ir;
  kilni_program_ir_init(&ir, kiln_allocator_libc());
  kilni_program_scalar_record_t scalar = {0, KILN_PROGRAM_TYPE_U32, {0, 0, 0}};
  for (uint32_t i = 1; i < KILNI_IR_MAX_SCALARS; i++) {
    assert_int_equal(kilni_program_ir_add_scalar(&ir, scalar), i);
  }
  assert_int_equal(kilni_program_ir_add_scalar(&ir, scalar), 0);
  assert_int_equal(kilni_program_ir_add_expr(&ir, length_of(1)), 0);
  kiln_status_t status = kilni_program_ir_status(&ir);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_LIMIT_EXCEEDED);
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
  kilni_program_ir_deinit(&ir);
}

static void literals_have_one_spelling(void** state) {
  (void)state;
  static const struct {
    uint8_t type;
    uint64_t bits, want;
  } kCases[] = {
      {KILN_PROGRAM_TYPE_BOOL, 0x7e, 1},
      {KILN_PROGRAM_TYPE_I8, UINT64_MAX, 0xff},
      {KILN_PROGRAM_TYPE_U64, UINT64_MAX, UINT64_MAX},
      {KILN_PROGRAM_TYPE_F16, 0xfc01, 0x7e00},
      {KILN_PROGRAM_TYPE_F16, 0xfc00, 0xfc00},
      {KILN_PROGRAM_TYPE_BF16, 0x7f81, 0x7fc0},
      {KILN_PROGRAM_TYPE_F32, 0xffffffff, 0x7fc00000},
      {KILN_PROGRAM_TYPE_F32, 0x80000000, 0x80000000},
      {KILN_PROGRAM_TYPE_F64, UINT64_C(0x7ff0000000000001),
       UINT64_C(0x7ff8000000000000)},
  };
  kilni_program_ir_t ir;
  kilni_program_ir_init(&ir, kiln_allocator_libc());
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    uint32_t at =
        kilni_program_ir_add_literal(&ir, kCases[i].type, kCases[i].bits);
    uint64_t bits = kilni_program_ir_literal_bits(&ir.exprs.items[at]);
    if (bits != kCases[i].want) fail_msg("case %zu", i);
  }
  kilni_program_ir_deinit(&ir);
}

static void operators_know_their_types(void** state) {
  (void)state;
  assert_int_equal(kilni_program_type_of_unary(KILN_PROGRAM_UNARY_POPCOUNT,
                                               KILN_PROGRAM_TYPE_I64),
                   KILN_PROGRAM_TYPE_U32);
  assert_int_equal(
      kilni_program_type_of_unary(KILN_PROGRAM_UNARY_NOT, KILN_PROGRAM_TYPE_U8),
      KILN_PROGRAM_TYPE_NONE);
  assert_int_equal(kilni_program_type_of_binary(KILN_PROGRAM_BINARY_ABS_DIFF,
                                                KILN_PROGRAM_TYPE_I16,
                                                KILN_PROGRAM_TYPE_I16),
                   KILN_PROGRAM_TYPE_U16);
  assert_int_equal(kilni_program_type_of_binary(KILN_PROGRAM_BINARY_ADD,
                                                KILN_PROGRAM_TYPE_I16,
                                                KILN_PROGRAM_TYPE_U16),
                   KILN_PROGRAM_TYPE_NONE);
  assert_int_equal(
      kilni_program_type_of_binary(KILN_PROGRAM_BINARY_SHL,
                                   KILN_PROGRAM_TYPE_I64, KILN_PROGRAM_TYPE_U8),
      KILN_PROGRAM_TYPE_I64);
  assert_int_equal(kilni_program_type_of_binary(KILN_PROGRAM_BINARY_SHL,
                                                KILN_PROGRAM_TYPE_I64,
                                                KILN_PROGRAM_TYPE_I64),
                   KILN_PROGRAM_TYPE_NONE);
  assert_int_equal(kilni_program_type_of_subgroup(KILN_PROGRAM_SUBGROUP_BALLOT,
                                                  KILN_PROGRAM_TYPE_BOOL),
                   KILN_PROGRAM_TYPE_U32);
  assert_int_equal(kilni_program_type_bytes(KILN_PROGRAM_TYPE_BF16), 2);
  assert_string_equal(kilni_program_type_name(KILN_PROGRAM_TYPE_F64), "f64");
  assert_int_equal(kilni_program_type_bytes(99), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(adds_count_from_one),
      cmocka_unit_test(a_copy_stands_alone),
      cmocka_unit_test(a_full_table_says_so),
      cmocka_unit_test(literals_have_one_spelling),
      cmocka_unit_test(operators_know_their_types),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
