// SPDX-License-Identifier: Apache-2.0
//
// program: the builder reaches as far as the text.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/program_builder.h"
#include "program_kit.h"
#include "says.h"

typedef kiln_program_builder_t builder_t;

static builder_t* begin(void) {
  builder_t* b;
  kiln_status_t status = kiln_program_builder_create("p", NULL, &b);
  assert_true(kiln_status_is_ok(status));
  return b;
}

static kiln_expr_t binary(builder_t* b, uint32_t op, kiln_expr_t x,
                          kiln_expr_t y) {
  return kiln_program_builder_binary(b, op, x, y);
}

// Finishes `b`, whose text must be this one.
static void finish_as(builder_t* b, const char* want) {
  kiln_program_t* program;
  kiln_program_report_t* report;
  kiln_status_t status = kiln_program_builder_finish(b, &report, &program);
  if (!kiln_status_is_ok(status)) {
    fail_msg("%s\n%s", kiln_status_message(status),
             kiln_program_report_text(report));
  }
  char* text = kit_print(program);
  assert_string_equal(text, want);
  kiln_program_t* read = kit_parse(text);
  char first[KILN_PROGRAM_HASH_BYTES], second[KILN_PROGRAM_HASH_BYTES];
  assert_true(kiln_status_is_ok(kiln_program_hash(program, first)));
  assert_true(kiln_status_is_ok(kiln_program_hash(read, second)));
  assert_string_equal(first, second);
  free(text);
  kiln_program_release(read);
  kiln_program_release(program);
  kiln_program_report_release(report);
  kiln_program_builder_release(b);
}

static void saxpy_is_built(void** state) {
  (void)state;
  builder_t* b = begin();
  kiln_expr_t a = kiln_program_builder_scalar(b, "a", KILN_PROGRAM_TYPE_F32);
  uint32_t x = kiln_program_builder_buffer(b, "x", KILN_PROGRAM_ROLE_IN,
                                           KILN_PROGRAM_TYPE_F32);
  uint32_t y = kiln_program_builder_buffer(b, "y", KILN_PROGRAM_ROLE_INOUT,
                                           KILN_PROGRAM_TYPE_F32);
  kiln_program_builder_count(b, y, kiln_program_builder_length(b, x));
  kiln_program_builder_work(b, kiln_program_builder_length(b, x), 0, 0);
  kiln_program_builder_block(b, 256, 1, 1);
  kiln_expr_t i = kiln_program_builder_let(
      b, "i", kiln_program_builder_id(b, KILN_PROGRAM_ID_GLOBAL_ID, 0));
  kiln_program_builder_store(
      b, y, i,
      kiln_program_builder_fma(b, a, kiln_program_builder_load(b, x, i),
                               kiln_program_builder_load(b, y, i)));
  finish_as(b,
            "program p(a: f32, x: in f32[], y: inout f32[length(x)])\n"
            "  work length(x)\n"
            "  block 256\n"
            "{\n"
            "  let i = global_id.x;\n"
            "  y[i] = fma(a, x[i], y[i]);\n"
            "}\n");
}

static void build_statements(builder_t* b, kiln_expr_t n, uint32_t o) {
  kiln_expr_t zero = kiln_program_builder_u32(b, 0);
  kiln_expr_t s = kiln_program_builder_var(b, "s", n);
  kiln_expr_t k = kiln_program_builder_begin_for(b, "k", zero, n, 2, true);
  kiln_program_builder_begin_if(b, binary(b, KILN_PROGRAM_BINARY_EQ, k, n));
  kiln_program_builder_break(b);
  kiln_program_builder_begin_else(b);
  kiln_program_builder_continue(b);
  kiln_program_builder_end(b);
  kiln_program_builder_end(b);
  kiln_program_builder_begin_while(b, binary(b, KILN_PROGRAM_BINARY_GT, s, n));
  kiln_program_builder_assign(
      b, s,
      binary(b, KILN_PROGRAM_BINARY_SUB, s, kiln_program_builder_u32(b, 1)));
  kiln_program_builder_end(b);
  kiln_program_builder_barrier(b);
  kiln_program_builder_grid_barrier(b);
  kiln_program_builder_subgroup_barrier(b);
  kiln_program_builder_begin_if(
      b, binary(b, KILN_PROGRAM_BINARY_EQ, s, kiln_program_builder_u32(b, 9)));
  kiln_program_builder_trap(b, s, kiln_program_builder_length64(b, o));
  kiln_program_builder_end(b);
  kiln_program_builder_return(b, 0);
}

static void build_values(builder_t* b, kiln_expr_t n, uint32_t o,
                         uint32_t tile) {
  kiln_expr_t zero = kiln_program_builder_u32(b, 0);
  kiln_expr_t f = kiln_program_builder_let(
      b, "f",
      kiln_program_builder_cast(
          b, KILN_PROGRAM_TYPE_F32,
          kiln_program_builder_unary(b, KILN_PROGRAM_UNARY_BIT_NOT, n)));
  kiln_program_builder_let(
      b, "g",
      kiln_program_builder_select(b, kiln_program_builder_bool(b, true), f,
                                  kiln_program_builder_f32(b, -0.5F)));
  kiln_program_builder_let(b, "h", kiln_program_builder_f64(b, 1e300));
  kiln_program_builder_let(
      b, "w", kiln_program_builder_bitcast(b, KILN_PROGRAM_TYPE_I32, f));
  kiln_program_builder_let(b, "j", kiln_program_builder_i32(b, -7));
  kiln_program_builder_let(
      b, "r",
      kiln_program_builder_subgroup(b, KILN_PROGRAM_SUBGROUP_SHUFFLE, f, zero));
  kiln_program_atomic_t atomic = {KILN_PROGRAM_ATOMIC_COMPARE_EXCHANGE,
                                  o,
                                  zero,
                                  n,
                                  zero,
                                  KILN_PROGRAM_ORDERING_ACQ_REL,
                                  KILN_PROGRAM_SCOPE_SYSTEM};
  kiln_program_builder_evaluate(b, kiln_program_builder_atomic(b, &atomic));
  kiln_program_copy_t copy = {tile, o, zero, zero, n, 3};
  kiln_program_builder_copy(b, &copy);
  kiln_program_builder_wait(b, 3);
}

static void everything_is_built(void** state) {
  (void)state;
  builder_t* b = begin();
  uint32_t set = kiln_program_builder_begin_function(b, "set", 0);
  uint32_t v = kiln_program_builder_buffer(b, "v", KILN_PROGRAM_ROLE_INOUT,
                                           KILN_PROGRAM_TYPE_U32);
  kiln_expr_t at = kiln_program_builder_scalar(b, "at", KILN_PROGRAM_TYPE_U32);
  uint32_t own = kiln_program_builder_array(b, "own", KILN_PROGRAM_ROLE_PRIVATE,
                                            KILN_PROGRAM_TYPE_U32, 4);
  kiln_program_builder_store(b, v, at, kiln_program_builder_load(b, own, at));
  kiln_program_builder_end_function(b);
  kiln_expr_t n = kiln_program_builder_scalar(b, "n", KILN_PROGRAM_TYPE_U32);
  uint32_t o = kiln_program_builder_buffer(b, "o", KILN_PROGRAM_ROLE_OUT,
                                           KILN_PROGRAM_TYPE_U32);
  uint32_t tile = kiln_program_builder_array(
      b, "tile", KILN_PROGRAM_ROLE_SHARED, KILN_PROGRAM_TYPE_U32, 64);
  uint32_t operands[2] = {o, n};
  kiln_program_builder_evaluate(b,
                                kiln_program_builder_call(b, set, operands, 2));
  const uint32_t sums = kiln_program_builder_array(
      b, "sums", KILN_PROGRAM_ROLE_PRIVATE, KILN_PROGRAM_TYPE_F32, 4);
  const uint32_t left = kiln_program_builder_array(
      b, "left", KILN_PROGRAM_ROLE_PRIVATE, KILN_PROGRAM_TYPE_BF16, 8);
  const uint32_t right = kiln_program_builder_array(
      b, "right", KILN_PROGRAM_ROLE_PRIVATE, KILN_PROGRAM_TYPE_BF16, 4);
  kiln_program_builder_matrix(b, sums, left, right);
  build_values(b, n, o, tile);
  build_statements(b, n, o);
  finish_as(b,
            "fn set(v: inout u32[], at: u32) {\n"
            "  private own: u32[4];\n"
            "  v[at] = own[at];\n"
            "}\n"
            "\n"
            "program p(n: u32, o: out u32[])\n"
            "{\n"
            "  shared tile: u32[64];\n"
            "  private sums: f32[4];\n"
            "  private left: bf16[8];\n"
            "  private right: bf16[4];\n"
            "  set(o, n);\n"
            "  matrix_multiply_accumulate(sums, left, right);\n"
            "  let f = f32(~n);\n"
            "  let g = select(true, f, -0.5);\n"
            "  let h = 1.0e300f64;\n"
            "  let w = bitcast_i32(f);\n"
            "  let j = -7i32;\n"
            "  let r = shuffle(f, 0);\n"
            "  atomic_compare_exchange(o[0], n, 0, acq_rel, system);\n"
            "  async_copy(tile, 0, o, 0, n) tag 3;\n"
            "  async_wait 3;\n"
            "  var s = n;\n"
            "  for k in 0..n step 2 unroll {\n"
            "    if k == n {\n"
            "      break;\n"
            "    } else {\n"
            "      continue;\n"
            "    }\n"
            "  }\n"
            "  while s > n {\n"
            "    s = s - 1;\n"
            "  }\n"
            "  barrier;\n"
            "  grid_barrier;\n"
            "  subgroup_barrier;\n"
            "  if s == 9 {\n"
            "    trap(s, length64(o));\n"
            "  }\n"
            "  return;\n"
            "}\n");
}

// What has no name gets one, and a minus in front of a number stays one.
static void nameless_programs_print(void** state) {
  (void)state;
  builder_t* b = begin();
  uint32_t o = kiln_program_builder_buffer(b, "o", KILN_PROGRAM_ROLE_OUT,
                                           KILN_PROGRAM_TYPE_I32);
  kiln_expr_t x = kiln_program_builder_let(
      b, NULL,
      kiln_program_builder_unary(b, KILN_PROGRAM_UNARY_NEGATE,
                                 kiln_program_builder_i32(b, 5)));
  kiln_program_builder_store(b, o, x, x);
  finish_as(b,
            "program p(o: out i32[])\n"
            "{\n"
            "  let _v1 = -(5i32);\n"
            "  o[_v1] = _v1;\n"
            "}\n");
}

// Prints what `b` comes to, reads that, and finds the same program.
static void reads_back(builder_t* b) {
  kiln_program_t* program;
  kiln_status_t status = kiln_program_builder_finish(b, NULL, &program);
  if (!kiln_status_is_ok(status)) fail_msg("%s", kiln_status_message(status));
  kiln_program_builder_release(b);
  char* text = kit_print(program);
  kiln_program_t* read = kit_parse(text);
  char first[KILN_PROGRAM_HASH_BYTES], second[KILN_PROGRAM_HASH_BYTES];
  assert_null(kiln_program_hash(program, first));
  assert_null(kiln_program_hash(read, second));
  assert_string_equal(first, second);
  free(text);
  kiln_program_release(read);
  kiln_program_release(program);
}

// The deepest program that may be built can be printed and read.
static void the_deepest_reads_as_it_prints(void** state) {
  (void)state;
  for (int way = 0; way < 3; way++) {
    builder_t* b = begin();
    kiln_expr_t one = kiln_program_builder_u32(b, 1), x = one;
    for (int i = 0; i < 118; i++) {
      kiln_program_builder_begin_if(b, kiln_program_builder_bool(b, true));
      if (i % 2 != 0) kiln_program_builder_begin_else(b);
    }
    for (int i = 0; i < 255; i++) {
      x = way == 0 ? binary(b, KILN_PROGRAM_BINARY_SUB, one, x)
          : way == 1
              ? kiln_program_builder_unary(b, KILN_PROGRAM_UNARY_BIT_NOT, x)
              : binary(b, KILN_PROGRAM_BINARY_MIN, one, x);
    }
    kiln_program_builder_let(b, "a", x);
    for (int i = 0; i < 118; i++) kiln_program_builder_end(b);
    reads_back(b);
  }
}

// Nobody is called like what has no name.
static void names_that_look_made_up_stay(void** state) {
  (void)state;
  builder_t* b = begin();
  uint32_t o = kiln_program_builder_buffer(b, "_v1", KILN_PROGRAM_ROLE_OUT,
                                           KILN_PROGRAM_TYPE_U32);
  kiln_expr_t one = kiln_program_builder_u32(b, 1);
  kiln_expr_t x = kiln_program_builder_let(b, NULL, one);
  kiln_expr_t y = kiln_program_builder_let(b, "__v1", one);
  kiln_program_builder_store(b, o, x, y);
  reads_back(b);
}

// ---- Errors ----

static void refuses(builder_t* b, kiln_status_code_t code, const char* word) {
  kiln_program_t* program;
  assert_says(kiln_program_builder_finish(b, NULL, &program), code, word);
  assert_null(program);
  kiln_program_builder_release(b);
}

static void the_first_error_is_told_at_the_end(void** state) {
  (void)state;
  builder_t* b = begin();
  assert_int_equal(kiln_program_builder_load(b, 3, 1), 0);
  kiln_program_builder_end(b);
  refuses(b, KILN_STATUS_INVALID_ARGUMENT, "buffer 3");
  b = begin();
  kiln_program_builder_unary(b, 999, kiln_program_builder_u32(b, 1));
  refuses(b, KILN_STATUS_INVALID_ARGUMENT, "operator 999");
  b = begin();
  kiln_program_builder_assign(b, kiln_program_builder_u32(b, 1), 1);
  refuses(b, KILN_STATUS_INVALID_ARGUMENT, "no variable");
  b = begin();
  kiln_program_builder_end(b);
  refuses(b, KILN_STATUS_INVALID_STATE, "where none is begun");
  b = begin();
  kiln_program_builder_begin_if(b, kiln_program_builder_bool(b, true));
  refuses(b, KILN_STATUS_INVALID_STATE, "not ended");
  b = begin();
  kiln_program_builder_begin_else(b);
  refuses(b, KILN_STATUS_INVALID_STATE, "where none is begun");
  b = begin();
  kiln_program_builder_call(b, 1, NULL, 0);
  refuses(b, KILN_STATUS_INVALID_ARGUMENT, "function 1");
  b = begin();
  kiln_program_builder_literal(b, 99, 0);
  refuses(b, KILN_STATUS_INVALID_ARGUMENT, "type 99");
  b = begin();
  kiln_program_builder_buffer(b, NULL, KILN_PROGRAM_ROLE_IN,
                              KILN_PROGRAM_TYPE_U32);
  refuses(b, KILN_STATUS_INVALID_ARGUMENT, "no name");
  b = begin();
  kiln_program_builder_scalar(b, "", KILN_PROGRAM_TYPE_U32);
  refuses(b, KILN_STATUS_INVALID_ARGUMENT, "no name");
  b = begin();
  kiln_expr_t from = kiln_program_builder_literal(b, KILN_PROGRAM_TYPE_U8, 0);
  kiln_program_builder_begin_for(b, "k", from, from, 257, false);
  kiln_program_builder_end(b);
  refuses(b, KILN_STATUS_INVALID_ARGUMENT, "a step of 257");
  kiln_status_t status = kiln_program_builder_create("", NULL, &b);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  assert_null(b);
  kiln_status_free(status);
}

static void rules_hold_for_what_is_built(void** state) {
  (void)state;
  builder_t* b = begin();
  uint32_t o = kiln_program_builder_buffer(b, "o", KILN_PROGRAM_ROLE_OUT,
                                           KILN_PROGRAM_TYPE_U32);
  kiln_program_builder_store(b, o, kiln_program_builder_u32(b, 0),
                             kiln_program_builder_f32(b, 1));
  refuses(b, KILN_STATUS_COMPILE_FAILED, "u32 wanted, this is f32");
  b = begin();
  kiln_program_builder_let(b, "if", kiln_program_builder_u32(b, 0));
  refuses(b, KILN_STATUS_COMPILE_FAILED, "\"if\"");
  b = begin();
  kiln_program_builder_let(b, "a b", kiln_program_builder_u32(b, 0));
  refuses(b, KILN_STATUS_COMPILE_FAILED, "\"a b\"");
  b = begin();
  kiln_program_builder_let(b, "a", kiln_program_builder_u32(b, 0));
  kiln_program_builder_let(b, "a", kiln_program_builder_u32(b, 0));
  refuses(b, KILN_STATUS_COMPILE_FAILED, "the name is in use");
  // P047, which no text can break: a variable outside of its block.
  for (int breaks = 0; breaks < 2; breaks++) {
    b = begin();
    kiln_program_builder_begin_if(b, kiln_program_builder_bool(b, true));
    kiln_expr_t a =
        kiln_program_builder_let(b, "a", kiln_program_builder_u32(b, 0));
    if (!breaks) kiln_program_builder_let(b, "c", a);
    kiln_program_builder_end(b);
    if (!breaks) {
      finish_as(b,
                "program p()\n{\n  if true {\n    let a = 0;\n"
                "    let c = a;\n  }\n}\n");
      continue;
    }
    kiln_program_builder_let(b, "c", a);
    refuses(b, KILN_STATUS_COMPILE_FAILED, "another place: \"a\"");
  }
}

// Nor arrays of another body.
static void matrices_are_of_one_body(void** state) {
  (void)state;
  for (int breaks = 0; breaks < 2; breaks++) {
    builder_t* b = begin();
    uint32_t arrays[3];
    static const uint32_t kCounts[] = {4, 8, 4};
    (void)kiln_program_builder_begin_function(b, "f", 0);
    for (int i = 0; i < 3; i++) {
      arrays[i] = kiln_program_builder_array(
          b, NULL, KILN_PROGRAM_ROLE_PRIVATE,
          i == 0 ? KILN_PROGRAM_TYPE_F32 : KILN_PROGRAM_TYPE_F16, kCounts[i]);
    }
    if (!breaks) {
      kiln_program_builder_matrix(b, arrays[0], arrays[1], arrays[2]);
    }
    kiln_program_builder_end_function(b);
    if (breaks) {
      kiln_program_builder_matrix(b, arrays[0], arrays[1], arrays[2]);
      refuses(b, KILN_STATUS_COMPILE_FAILED, "another place");
      continue;
    }
    finish_as(b,
              "fn f() {\n"
              "  private _b1: f32[4];\n"
              "  private _b2: f16[8];\n"
              "  private _b3: f16[4];\n"
              "  matrix_multiply_accumulate(_b1, _b2, _b3);\n"
              "}\n"
              "\n"
              "program p()\n"
              "{\n"
              "}\n");
  }
}

static void trees_that_grow_are_refused(void** state) {
  (void)state;
  builder_t* b = begin();
  kiln_expr_t x = kiln_program_builder_u32(b, 1);
  for (int i = 0; i < 30; i++) x = binary(b, KILN_PROGRAM_BINARY_ADD, x, x);
  kiln_program_builder_let(b, "a", x);
  refuses(b, KILN_STATUS_COMPILE_FAILED, "too large");
  b = begin();
  x = kiln_program_builder_u32(b, 1);
  for (int i = 0; i < 256; i++) {
    x = kiln_program_builder_unary(b, KILN_PROGRAM_UNARY_BIT_NOT, x);
  }
  refuses(b, KILN_STATUS_LIMIT_EXCEEDED, "256 levels");
  b = begin();
  for (int i = 0; i < 200; i++) {
    kiln_program_builder_begin_if(b, kiln_program_builder_bool(b, true));
  }
  refuses(b, KILN_STATUS_LIMIT_EXCEEDED, "120 levels");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(saxpy_is_built),
      cmocka_unit_test(everything_is_built),
      cmocka_unit_test(nameless_programs_print),
      cmocka_unit_test(the_deepest_reads_as_it_prints),
      cmocka_unit_test(names_that_look_made_up_stay),
      cmocka_unit_test(the_first_error_is_told_at_the_end),
      cmocka_unit_test(rules_hold_for_what_is_built),
      cmocka_unit_test(matrices_are_of_one_body),
      cmocka_unit_test(trees_that_grow_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
