// SPDX-License-Identifier: Apache-2.0
//
// program: what each part of the optimiser does to the text, and that it
// changes no result; what it must leave alone; what a lowering takes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fault_alloc.h"
#include "program_kit.h"
#include "program_machine.h"
#include "says.h"

// In the code of one element.
static uint32_t words(const char* text, uint32_t sm, uint32_t without,
                      const char* word) {
  char* ptx = machine_ptx(text, sm, without | KILN_PROGRAM_WITHOUT_VECTORS);
  uint32_t count = machine_count(ptx, word);
  free(ptx);
  return count;
}

// How often `word` is written with the pass and without it, and that both mean
// what the evaluator says.
static void effect(const char* text, uint32_t pass, const char* word,
                   uint32_t with, uint32_t without) {
  assert_int_equal(words(text, 75, 0, word), with);
  assert_int_equal(words(text, 75, pass, word), without);
  const uint64_t counts[] = {700, 700, 700};
  const uint64_t scalars[] = {5, 5, 5};
  machine_check(text, counts, scalars, pass);
}

#define HEAD_WITH(array)                                    \
  "program p(x: in u32[], o: out u32[length(x)], n: u32)\n" \
  "  work length(x) block 64 { " array " let i = global_id.x;\n"
#define HEAD                                                \
  "program p(x: in u32[], o: out u32[length(x)], n: u32)\n" \
  "  work length(x) block 64 { let i = global_id.x;\n"

static void test_folding(void** state) {
  (void)state;
  effect(HEAD "let a = 3 * 5 + 7; o[i] = x[i] ^ (a * a); }",
         KILN_PROGRAM_WITHOUT_FOLDING, "mul.lo.u32", 0, 2);
}

static void test_sharing(void** state) {
  (void)state;
  effect(HEAD "o[i] = (x[i] ^ n) * 3 + (x[i] ^ n) * 7; }",
         KILN_PROGRAM_WITHOUT_SHARING, "xor.b32", 1, 2);
}

static void test_hoisting(void** state) {
  (void)state;
  const char* text =
      HEAD "var s = 0; for k in 0..n { s += k ^ (n * 77); } o[i] = s; }";
  effect(text, KILN_PROGRAM_WITHOUT_HOISTING, "mul.lo.u32", 1, 1);
  char* ptx = machine_ptx(text, 75, 0);
  assert_true(strstr(ptx, "mul.lo.u32") < strstr(ptx, "\nL"));
  free(ptx);
  ptx = machine_ptx(text, 75, KILN_PROGRAM_WITHOUT_HOISTING);
  assert_true(strstr(ptx, "mul.lo.u32") > strstr(ptx, "\nL"));
  free(ptx);
}

static void test_strength(void** state) {
  (void)state;
  effect(HEAD "o[i] = x[i] / 7 + x[i] % 8; }", KILN_PROGRAM_WITHOUT_STRENGTH,
         "div.u32", 0, 1);
}

static void test_ranges(void** state) {
  (void)state;
  // Work size, guard, counter, mask: no check is left.
  effect(HEAD "o[i] = x[i]; }", KILN_PROGRAM_WITHOUT_RANGES, "setp.lt", 1, 2);
  effect(HEAD_WITH("shared s: u32[64];") "s[local_id.x] = x[i]; barrier;\n"
         "var t = 0; for k in 0..64 { t += s[k] ^ s[k & 31]; }\n"
         "o[i] = t; }",
         KILN_PROGRAM_WITHOUT_RANGES, "setp.lt", 3, 6);
  effect(HEAD "let j = i * 3 + 1; if j < length(x) { o[i] = x[j]; } }",
         KILN_PROGRAM_WITHOUT_RANGES, "setp.lt", 2, 3);
}

// A shift may make a negative number of one that is not, and loses bits at the
// top: what was known of the operand's size is then no longer known.
static void test_ranges_of_shifts(void** state) {
  (void)state;
  const uint64_t counts[] = {700, 16};
  machine_check(
      "program p(x: in u32[], o: inout u32[16]) work length(x) {\n"
      "  let s = i32(x[global_id.x] & 0x7fffffff) << 1u32;\n"
      "  if s < 16 { o[s] = 1; } }",
      counts, NULL, 3);
  const uint64_t same[] = {700, 700};
  machine_check(HEAD
                "let y = u64(min(x[i] >> 7, 0x1000001)) << 40u32;\n"
                "o[i] = u32((y & 0x1ffffffffff) >> 12u32); }",
                same, (const uint64_t[]){5}, 3);
}

static void test_unrolling(void** state) {
  (void)state;
  effect(HEAD
         "var t = 0; for k in 0..4 unroll { t = t * 3 + (x[i] >> k); }\n"
         "o[i] = t; }",
         KILN_PROGRAM_WITHOUT_UNROLLING, "bra ", 0, 2);
}

static void test_dropping(void** state) {
  (void)state;
  effect(HEAD "let unused = x[i] / n; o[i] = 1; }",
         KILN_PROGRAM_WITHOUT_DROPPING, "div.u32", 0, 1);
}

static void test_scalars(void** state) {
  (void)state;
  effect(HEAD_WITH("private v: u32[4];") "for k in 0..4 unroll { v[k] = x[i] + k; }\n"
         "o[i] = v[0] * v[3] + v[4]; }",
         KILN_PROGRAM_WITHOUT_SCALARS, ".local", 0, 11);
  // An index that is not known puts it back into memory.
  assert_true(
      words(HEAD_WITH("private v: u32[4];") "v[x[i]] = 1; o[i] = v[1]; }", 75,
            0, ".local") > 0);
}

static void test_read_only(void** state) {
  (void)state;
  effect(HEAD "o[i] = x[i]; }", KILN_PROGRAM_WITHOUT_READ_ONLY, "ld.global.nc",
         1, 0);
  assert_int_equal(words("program p(x: inout u32[]) work length(x)\n"
                         "{ let i = global_id.x; x[i] = x[i] + 1; }",
                         75, 0, "ld.global.nc"),
                   0);
}

// ---- Waiting for what is in front on the stream ----

// Programs whose threads touch memory in all kinds of places, or do not.
static const char* const kWaiting[] = {
    HEAD "o[i] = x[i]; }",
    HEAD "if x[i] == 3 { return; } o[i] = x[n]; }",
    HEAD "if x[i] == 3 { trap(1, u64(i)); } o[i] = 1; }",
    HEAD_WITH("shared s: u32[64];") "s[local_id.x % 64] = x[i]; barrier;\n"
    "o[i] = s[(local_id.x + 1) % 64]; }",
    HEAD "var s = 0; for k in 0..n { s += x[k]; } o[i] = s; }",
    HEAD
    "let a = reduce_add(x[i]); if i == 9 { return; }\n"
    "let b = reduce_add(a); o[i] = b; }",
    "program p(o: inout u32[]) work 1000 { let a = atomic_add(o[0], 1); }",
    "program p(o: inout u32[]) work 1 { if length(o) > 3 { return; } }",
};

// Where the first word of a list stands; the end if none does.
static const char* first_of(const char* ptx, const char* const* words,
                            size_t count) {
  const char* first = ptx + strlen(ptx);
  for (size_t i = 0; i < count; i++) {
    const char* at = strstr(ptx, words[i]);
    if (at != NULL && at < first) first = at;
  }
  return first;
}

static void test_waits(void** state) {
  (void)state;
  static const char* const kTouches[] = {"ld.global", "st.global", "atom.",
                                         "\tred.",    "\tret",     " ret"};
  for (size_t i = 0; i < sizeof(kWaiting) / sizeof(kWaiting[0]); i++) {
    kiln_program_t* program = NULL;
    kiln_program_code_t* code = NULL;
    kiln_string_view_t text = {kWaiting[i], strlen(kWaiting[i])};
    kiln_program_report_t* report = NULL;
    if (kiln_program_parse(text, NULL, &report, &program) != NULL) {
      fail_msg("%s", kiln_program_report_text(report));
    }
    kiln_program_report_release(report);
    kiln_program_lower_options_t how = kiln_program_lower_options_default();
    how.sm = 90;
    how.waits = KILN_SWITCH_ON;
    assert_null(kiln_program_lower(program, &how, &code));
    const char* ptx = kiln_program_code_text(code).data;
    const char* at = strstr(ptx, "\tgriddepcontrol.wait;\n");
    assert_non_null(at);
    assert_int_equal(machine_count(ptx, "griddepcontrol.wait"), 1);
    assert_int_equal(machine_count(ptx, "griddepcontrol.launch_dependents"), 1);
    assert_true(strstr(ptx, "launch_dependents") > at);
    if (first_of(ptx, kTouches, 6) < at) fail_msg("%s", ptx);
    assert_int_equal(machine_count(ptx, "ld.global.nc"), 0);
    assert_non_null(strstr(ptx, ".version 7.8\n.target sm_90\n"));
    kiln_program_launch_t launch;
    kiln_program_code_launch(code, &launch);
    assert_int_equal(launch.waits, 1);
    kiln_program_code_release(code);
    how.waits = KILN_SWITCH_OFF;
    assert_null(kiln_program_lower(program, &how, &code));
    ptx = kiln_program_code_text(code).data;
    assert_int_equal(machine_count(ptx, "griddepcontrol"), 0);
    kiln_program_code_launch(code, &launch);
    assert_int_equal(launch.waits, 0);
    kiln_program_code_release(code);
    // What is older has none of it.
    how.waits = KILN_SWITCH_ON;
    how.sm = 89;
    assert_says(kiln_program_lower(program, &how, &code),
                KILN_STATUS_UNSUPPORTED, "sm_90");
    how.sm = 90;
    how.newest_isa = 77;
    assert_says(kiln_program_lower(program, &how, &code),
                KILN_STATUS_UNSUPPORTED, "PTX 7.8");
    kiln_program_release(program);
  }
}

// ---- What may not be moved, shared or left out ----

static void test_lanes_stay(void** state) {
  (void)state;
  // Twice the same operation on the same value: twice written, in its loop.
  const char* text = HEAD
      "var s = 0; let v = x[i];\n"
      "for k in 0..n { let a = reduce_add(v); let b = reduce_add(v);\n"
      "  s += a ^ b; } o[i] = s; }";
  for (uint32_t sm = 75; sm <= 90; sm += 15) {
    char* ptx = machine_ptx(text, sm, 0);
    const char* word = sm == 75 ? "shfl.sync" : "redux.sync";
    assert_int_equal(machine_count(ptx, word), sm == 75 ? 10 : 2);
    assert_true(strstr(ptx, word) > strstr(ptx, "\nL"));
    free(ptx);
  }
  const char* unused = HEAD "let a = ballot(x[i] > 3); o[i] = 1; }";
  assert_int_equal(words(unused, 75, 0, "vote.sync.ballot"), 1);
}

// ---- What a translator of the PTX gets wrong ----

// ptxas 13.0 converts bfe.s32 of 8 or 16 bits from u32 to a float as if it were
// signed.
static void test_signs_before_floats(void** state) {
  (void)state;
  static const char* const kFrom[] = {"i8", "i16"};
  static const char* const kTo[] = {"f32", "f64"};
  for (uint32_t k = 0; k < 4; k++) {
    char text[512];
    snprintf(text, sizeof(text),
             "program p(x: in u32[], o: out %s[length(x)]) work length(x)\n"
             "{ let i = global_id.x; o[i] = %s(u32(%s(x[i]))); }",
             kTo[k / 2], kTo[k / 2], kFrom[k % 2]);
    assert_int_equal(words(text, 75, 0, "bfe.s32"), 0);
    assert_int_equal(words(text, 75, 0, "cvt.s32.s"), 1);
    const uint64_t counts[] = {700, 700};
    machine_check(text, counts, NULL, k);
  }
}

// Where ptxas 13.0 sees itself that a shuffle gives a constant c, it makes
// max(c - x, z) into max(x - c, z).
static void test_constants_in_lanes(void** state) {
  (void)state;
  static const char* const kConstants[] = {"reduce_mul(1)", "reduce_min(1)",
                                           "reduce_max(1)", "reduce_and(1)",
                                           "scan_mul(1)"};
  for (uint32_t k = 0; k < 5; k++) {
    char text[512];
    snprintf(text, sizeof(text),
             HEAD "let c = %s; o[i] = u32(max(i32(c) - i32(x[i]), 0i32)); }",
             kConstants[k]);
    assert_int_equal(words(text, 75, 0, "shfl.sync"), 0);
    const uint64_t counts[] = {700, 700};
    const uint64_t scalars[] = {5};
    machine_check(text, counts, scalars, k);
  }
  // A NaN is not what is left of a NaN and of lanes that take no part.
  const uint64_t few[] = {8, 8};
  machine_check(
      "program p(x: in f32[], o: out f32[length(x)]) work length(x) block 32\n"
      "{ let i = global_id.x; let c = reduce_min(nan_f32); o[i] = c; }",
      few, NULL, 9);
}

static void test_loads_stay(void** state) {
  (void)state;
  // Another thread writes between the two loads.
  const char* text =
      "program p(x: inout u32[], o: out u32[length(x)]) work length(x)\n"
      "  block 64 { let i = global_id.x; let a = x[i]; barrier;\n"
      "  x[i ^ 1] = a + 5; barrier; o[i] = x[i] * 10 + a % 10; }";
  assert_int_equal(words(text, 75, 0, "ld.global"), 2);
  const uint64_t counts[] = {640, 640};
  machine_check(text, counts, NULL, 3);
  // A loop reads what it wrote.
  machine_check(
      "program p(x: inout u32[], o: out u32[length(x)])\n"
      "  work length(x) block 64 { let i = global_id.x; var s = 0;\n"
      "  for k in 0..4 { s += x[i]; x[i] = s ^ k; } o[i] = s; }",
      counts, NULL, 3);
}

// ---- What it takes ----

static void test_memory(void** state) {
  (void)state;
  kiln_program_t* program =
      kit_parse(HEAD
                "var s = sin(f32(x[i])); for k in 0..n { s = s * 2.0; }\n"
                "o[i] = u32(s) / n; }");
  fault_alloc_t watch;
  fault_alloc_init(&watch);
  kiln_allocator_t allocator = fault_alloc_allocator(&watch);
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  options.allocator = &allocator;
  kiln_program_code_t* code;
  assert_true(kiln_status_is_ok(kiln_program_lower(program, &options, &code)));
  // One arena, one code object.
  assert_int_equal(watch.total_blocks, 2);
  kiln_program_code_release(code);
  for (uint64_t nth = 1; nth <= 2; nth++) {
    fault_alloc_arm(&watch, nth, false);
    kiln_status_t status = kiln_program_lower(program, &options, &code);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_OUT_OF_MEMORY);
    assert_null(code);
    kiln_status_free(status);
    fault_alloc_disarm(&watch);
  }
  fault_alloc_assert_clean(&watch);
  fault_alloc_deinit(&watch);
  kiln_program_release(program);
}

static void test_refusals(void** state) {
  (void)state;
  kiln_program_t* program = kit_parse(HEAD "o[i] = x[i]; }");
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  kiln_program_code_t* code;
  options.sm = 61;
  assert_says(kiln_program_lower(program, &options, &code),
              KILN_STATUS_UNSUPPORTED, "sm_61");
  assert_null(code);
  kiln_program_release(program);
  program = kit_parse(HEAD "let a = reduce_add(x[i]); o[i] = a; }");
  options.sm = 90;
  options.newest_isa = 65;
  assert_says(kiln_program_lower(program, &options, &code),
              KILN_STATUS_UNSUPPORTED, "PTX 7.0");
  options.sm = 75;
  assert_true(kiln_status_is_ok(kiln_program_lower(program, &options, &code)));
  kiln_program_launch_t launch;
  kiln_program_code_launch(code, &launch);
  assert_int_equal(launch.sm, 70);
  assert_int_equal(launch.isa, 60);
  assert_int_equal(launch.block[0], 64);
  assert_int_equal(launch.cooperative, 0);
  assert_string_equal(kiln_program_code_entry(code), "kiln_p");
  kiln_program_parameter_t parameter;
  assert_false(kiln_program_code_parameter(
      code, kiln_program_code_parameter_count(code), &parameter));
  assert_int_equal(parameter.kind, KILN_PROGRAM_PARAMETER_NONE);
  kiln_program_code_release(code);
  kiln_program_release(program);
}

static void test_fast_math(void** state) {
  (void)state;
  kiln_program_t* program = kit_parse(
      "program p(x: in f32[], o: out f32[length(x)])\n"
      "  work length(x) { let i = global_id.x; o[i] = exp(x[i]); }");
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  options.elements = 1;
  for (uint32_t ulp = 0; ulp <= 1000000; ulp += 1000000) {
    options.max_ulp = ulp;
    kiln_program_code_t* code;
    assert_true(
        kiln_status_is_ok(kiln_program_lower(program, &options, &code)));
    const char* text = kiln_program_code_text(code).data;
    assert_int_equal(machine_count(text, "ex2.approx"), ulp != 0);
    kiln_program_code_release(code);
  }
  kiln_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_folding),
      cmocka_unit_test(test_sharing),
      cmocka_unit_test(test_hoisting),
      cmocka_unit_test(test_strength),
      cmocka_unit_test(test_ranges),
      cmocka_unit_test(test_ranges_of_shifts),
      cmocka_unit_test(test_unrolling),
      cmocka_unit_test(test_dropping),
      cmocka_unit_test(test_scalars),
      cmocka_unit_test(test_read_only),
      cmocka_unit_test(test_waits),
      cmocka_unit_test(test_lanes_stay),
      cmocka_unit_test(test_signs_before_floats),
      cmocka_unit_test(test_constants_in_lanes),
      cmocka_unit_test(test_loads_stay),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_fast_math),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
