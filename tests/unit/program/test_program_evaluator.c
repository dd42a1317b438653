// SPDX-License-Identifier: Apache-2.0
//
// program: the reference evaluator does what the semantics say, on programs
// whose results are known by hand; generated programs are valid, and printed
// and read again they stay what they were.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "evaluator_values.h"
#include "kiln/program.h"
#include "program/ir/program_object.h"
#include "program_evaluator.h"
#include "program_generate.h"

// A sanitizer makes each run many times slower.
#if defined(KILNI_SANITIZED)
enum { GENERATED = 100 };
#else
enum { GENERATED = 1000 };
#endif

static kiln_program_t* read_program(const char* text) {
  kiln_program_t* program = NULL;
  kiln_program_report_t* report = NULL;
  const kiln_string_view_t view = {text, strlen(text)};
  kiln_status_t status = kiln_program_parse(view, NULL, &report, &program);
  if (!kiln_status_is_ok(status)) {
    fail_msg("%s\n%s", kiln_program_report_text(report), text);
  }
  kiln_program_report_release(report);
  return program;
}

// Runs a program whose first buffer, of `count` u32, is `out`; the second, if
// it has one, is `in`. NULL, or what the evaluator said.
static const char* run(const char* text, uint32_t* out, uint32_t count,
                       uint32_t* in, uint32_t in_count, program_trap_t* trap) {
  kiln_program_t* program = read_program(text);
  program_world_t world = {.step_limit = 1000000};
  const kilni_program_ir_t* ir = kilni_program_ir(program);
  bool second = false;
  for (uint32_t b = 1; b < ir->buffers.count; b++) {
    if (ir->buffers.items[b].function != 0U) continue;
    world.buffers[b].data = second ? in : out;
    world.buffers[b].count = second ? in_count : count;
    second = true;
  }
  const char* error = program_evaluate(ir, &world);
  if (trap != NULL) *trap = world.trap;
  kiln_program_release(program);
  return error;
}

static void must(const char* text, uint32_t* out, uint32_t count) {
  const char* error = run(text, out, count, NULL, 0, NULL);
  if (error != NULL) fail_msg("%s\n%s", error, text);
}

static void loops_end_where_they_should(void** state) {
  (void)state;
  uint32_t out[8] = {0};
  must(
      "program p(o: out u32[]) work 1 block 32 {\n"
      "  for k in 250u8..255u8 step 3u8 { o[0] += u32(k); }\n"
      "  for k in (-2i8)..2i8 { o[1] += 1u32; }\n"
      "  for k in 5u32..5u32 { o[2] = 9u32; }\n"
      "  for k in 0u32..10u32 { if k == 3u32 { continue; }\n"
      "    if k == 6u32 { break; } o[3] += k; }\n"
      "  var n = 0u32; while n < 4u32 { n += 1u32;\n"
      "    for k in 0u32..9u32 { if k > n { break; } o[4] += 1u32; } }\n"
      "}\n",
      out, 8);
  assert_int_equal(out[0], 250 + 253);
  assert_int_equal(out[1], 4);
  assert_int_equal(out[2], 0);
  assert_int_equal(out[3], 0 + 1 + 2 + 4 + 5);
  assert_int_equal(out[4], 2 + 3 + 4 + 5);
}

// f16 by way of f32: (1 + 2^-5)(1 + 2^-6) + 2^-24 is above the middle of two
// f16, its f32 is the middle.
static void fma_of_halves_is_that_of_f32(void** state) {
  (void)state;
  uint32_t out[2] = {0};
  must(
      "program p(o: out u32[]) work 1 block 32 {\n"
      "  let a = bitcast_f16(15392u16); let b = bitcast_f16(15376u16);\n"
      "  o[0] = u32(bitcast_u16(fma(a, b, bitcast_f16(1u16))));\n"
      "  o[1] = bitcast_u32(fma(f32(a), f32(b), f32(bitcast_f16(1u16))));\n"
      "}\n",
      out, 2);
  assert_int_equal(out[0], 0x3c30);
  assert_int_equal(out[1], 0x3f861000);
}

static void indices_out_of_range_do_nothing(void** state) {
  (void)state;
  uint32_t out[4] = {7, 7, 7, 7};
  must(
      "program p(o: inout u32[]) work 1 block 1 {\n"
      "  private a: u32[2];\n"
      "  o[4294967295u32] = 1u32; o[-1i32] = 1u32; o[4] = 1u32;\n"
      "  o[0] = o[-1i64] + o[99]; a[2] = 5u32; a[1] = 3u32;\n"
      "  o[1] = a[0] + a[1] + a[2]; o[2] = length(o);\n"
      "  let t = atomic_add(o[7], 1u32); o[3] = t;\n"
      "}\n",
      out, 4);
  assert_int_equal(out[0], 0);
  assert_int_equal(out[1], 3);
  assert_int_equal(out[2], 4);
  assert_int_equal(out[3], 0);
}

static void blocks_share_and_wait(void** state) {
  (void)state;
  uint32_t out[96] = {0};
  // 90 threads in 2 blocks of 48: each reads its neighbour's number; thread 5
  // has returned, and those beyond the work are not there.
  must(
      "program p(o: out u32[]) work 90 block 48 {\n"
      "  shared s: u32[48];\n"
      "  if global_id.x == 5u32 { return; }\n"
      "  s[local_index] = global_id.x + 1u32;\n"
      "  barrier;\n"
      "  o[global_id.x] = s[local_index + 1u32];\n"
      "}\n",
      out, 96);
  assert_int_equal(out[0], 2);
  assert_int_equal(out[4], 0);
  assert_int_equal(out[5], 0);
  assert_int_equal(out[6], 8);
  assert_int_equal(out[47], 0);
  assert_int_equal(out[48], 50);
  assert_int_equal(out[88], 90);
  assert_int_equal(out[89], 0);
  assert_int_equal(out[90], 0);
}

static void subgroups_have_one_order(void** state) {
  (void)state;
  uint32_t out[280] = {0};
  must(
      "program p(o: out u32[]) work 40 block 64 {\n"
      "  if lane == 3u32 { return; }\n"
      "  let i = global_id.x;\n"
      "  let b = ballot(lane % 2u32 == 0u32);\n"
      "  let s = scan_add(1u32);\n"
      "  let e = scan_exclusive_add(1u32);\n"
      "  let r = reduce_add(lane);\n"
      "  let m = reduce_max(bitcast_u32(i32(lane) - 4i32));\n"
      "  let h = shuffle(i, lane + 1u32);\n"
      "  let c = broadcast(i, 3u32);\n"
      "  o[i] = b; o[40u32 + i] = s; o[80u32 + i] = e; o[120u32 + i] = r;\n"
      "  o[160u32 + i] = h; o[200u32 + i] = c; o[240u32 + i] = m;\n"
      "}\n",
      out, 280);
  assert_int_equal(out[0], 0x55555555U);
  assert_int_equal(out[32], 0x55U);
  assert_int_equal(out[40 + 2], 3);
  assert_int_equal(out[40 + 4], 4);
  assert_int_equal(out[40 + 31], 31);
  assert_int_equal(out[80 + 0], 0);
  assert_int_equal(out[80 + 4], 3);
  assert_int_equal(out[120], 496 - 3);
  assert_int_equal(out[120 + 32], 28 - 3);
  assert_int_equal(out[160 + 2], 0);
  assert_int_equal(out[160 + 30], 31);
  assert_int_equal(out[160 + 31], 0);
  assert_int_equal(out[200], 0);
  assert_int_equal(out[240], (uint32_t)-2);
}

static void functions_calls_and_their_arrays(void** state) {
  (void)state;
  uint32_t out[4] = {0};
  must(
      "fn twice(x: u32) -> u32 { if x > 100u32 { return 1u32; }\n"
      "  return x * 2u32; }\n"
      "fn put(b: inout u32[], at: u32, v: u32) -> u32 {\n"
      "  private a: u32[2]; let before = a[1]; a[1] = v; b[at] = a[1];\n"
      "  return before + length(b); }\n"
      "program p(o: out u32[]) work 1 block 1 {\n"
      "  let x = put(o, 0u32, twice(twice(3u32)));\n"
      "  let y = put(o, 1u32, twice(200u32));\n"
      "  o[2] = x; o[3] = y;\n"
      "}\n",
      out, 4);
  assert_int_equal(out[0], 12);
  assert_int_equal(out[1], 1);
  assert_int_equal(out[2], 4);
  assert_int_equal(out[3], 4);
}

static void a_trap_ends_its_thread(void** state) {
  (void)state;
  uint32_t out[4] = {0};
  program_trap_t trap;
  assert_null(
      run("program p(o: out u32[]) work 4 block 2 {\n"
          "  if global_id.x == 3u32 { trap(7u32, 99u64); }\n"
          "  o[global_id.x] = 1u32;\n"
          "}\n",
          out, 4, NULL, 0, &trap));
  assert_int_equal(trap.set, 1);
  assert_int_equal(trap.tag, 7);
  assert_int_equal(trap.address, 99);
  assert_int_equal(trap.block[0], 1);
  assert_int_equal(trap.thread[0], 1);
  assert_int_equal(out[2], 1);
  assert_int_equal(out[3], 0);
}

static void the_grid_waits_and_copies_arrive(void** state) {
  (void)state;
  uint32_t out[8] = {0};
  uint32_t in[6] = {10, 11, 12, 13, 14, 15};
  assert_null(
      run("program p(o: inout u32[], i: in u32[]) work 8 block 4 {\n"
          "  shared s: u32[4];\n"
          "  o[global_id.x] = global_id.x;\n"
          "  grid_barrier;\n"
          "  let other = o[7u32 - global_id.x];\n"
          "  grid_barrier;\n"
          "  async_copy(s, 0u32, i, block_id.x * 4u32, 4u32) tag 1;\n"
          "  async_wait 1;\n"
          "  o[global_id.x] = other * 100u32 + s[local_index];\n"
          "}\n",
          out, 8, in, 6, NULL));
  assert_int_equal(out[0], 710);
  assert_int_equal(out[5], 215);
  assert_int_equal(out[6], 100);
}

static void a_subgroup_waits_for_itself(void** state) {
  (void)state;
  uint32_t out[8] = {0};
  assert_null(
      run("program p(o: inout u32[]) work 7 block 8 {\n"
          "  shared s: u32[8];\n"
          "  s[local_index] = local_index + 10u32;\n"
          "  subgroup_barrier;\n"
          "  let other = s[local_index ^ 1u32];\n"
          "  subgroup_barrier;\n"
          "  s[local_index] = other;\n"
          "  subgroup_barrier;\n"
          "  o[global_id.x] = s[local_index ^ 3u32];\n"
          "}\n",
          out, 8, NULL, 0, NULL));
  // s[k] is of k ^ 1, then of k ^ 3 ^ 1; nobody is 7.
  assert_int_equal(out[0], 12);
  assert_int_equal(out[4], 0);
  assert_int_equal(out[5], 0);
  assert_int_equal(out[6], 14);
}

// a of 16 x 16 has row * 16 + column at each place, b of 16 x 8 the same of 8:
// by lane and element as mma.m16n8k16 has them. d[0][0] begins with 1.
static void matrices_are_multiplied(void** state) {
  (void)state;
  uint32_t out[128] = {0};
  assert_null(
      run("program p(o: inout f32[128]) work 32 block 32 {\n"
          "  private d: f32[4]; private a: f16[8]; private b: f16[4];\n"
          "  let g = lane / 4;\n"
          "  let t = lane % 4 * 2;\n"
          "  for e in 0..8 {\n"
          "    let row = g + e / 2 % 2 * 8;\n"
          "    a[e] = f16(row * 16 + t + e % 2 + e / 4 * 8);\n"
          "  }\n"
          "  for e in 0..4 {\n"
          "    b[e] = f16((t + e % 2 + e / 2 * 8) * 8 + g);\n"
          "  }\n"
          "  d[0] = select(lane == 0, 1.0, 0.0);\n"
          "  matrix_multiply_accumulate(d, a, b);\n"
          "  for e in 0..4 {\n"
          "    o[(g + e / 2 * 8) * 8 + t + e % 2] = d[e];\n"
          "  }\n"
          "}\n",
          out, 128, NULL, 0, NULL));
  for (uint32_t row = 0; row < 16; row++) {
    for (uint32_t column = 0; column < 8; column++) {
      uint32_t sum = row + column == 0 ? 1 : 0;
      for (uint32_t k = 0; k < 16; k++) {
        sum += (row * 16 + k) * (k * 8 + column);
      }
      float got;
      memcpy(&got, &out[row * 8 + column], sizeof(got));
      assert_true(got == (float)sum);
    }
  }
}

static void endless_programs_are_stopped(void** state) {
  (void)state;
  uint32_t out[1] = {0};
  const char* error = run(
      "program p(o: out u32[]) work 1 block 1 { while true { o[0] += 1u32; } }",
      out, 1, NULL, 0, NULL);
  assert_non_null(error);
}

static char* print(const kiln_program_t* program) {
  size_t size = 0;
  assert_true(kiln_status_is_ok(kiln_program_print(program, 0, NULL, &size)));
  char* text = malloc(size + 1U);
  assert_non_null(text);
  assert_true(
      kiln_status_is_ok(kiln_program_print(program, size + 1U, text, NULL)));
  return text;
}

static void generated_programs_are_valid_and_print_as_themselves(void** state) {
  (void)state;
  static char text[PROGRAM_TEXT_BYTES];
  for (uint64_t seed = 0; seed < GENERATED; seed++) {
    program_generate(seed, PROGRAM_WITH_MATH | PROGRAM_WITH_TRAP, "p", text);
    kiln_program_t* program = read_program(text);
    char* printed = print(program);
    kiln_program_t* again = read_program(printed);
    char* twice = print(again);
    assert_string_equal(printed, twice);
    free(printed);
    free(twice);
    kiln_program_release(program);
    kiln_program_release(again);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(loops_end_where_they_should),
      cmocka_unit_test(fma_of_halves_is_that_of_f32),
      cmocka_unit_test(indices_out_of_range_do_nothing),
      cmocka_unit_test(blocks_share_and_wait),
      cmocka_unit_test(subgroups_have_one_order),
      cmocka_unit_test(functions_calls_and_their_arrays),
      cmocka_unit_test(a_trap_ends_its_thread),
      cmocka_unit_test(the_grid_waits_and_copies_arrive),
      cmocka_unit_test(a_subgroup_waits_for_itself),
      cmocka_unit_test(matrices_are_multiplied),
      cmocka_unit_test(endless_programs_are_stopped),
      cmocka_unit_test(generated_programs_are_valid_and_print_as_themselves),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
