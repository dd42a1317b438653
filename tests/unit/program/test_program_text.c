// SPDX-License-Identifier: Apache-2.0
//
// program: reading and printing the text form.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "program_kit.h"
#include "says.h"

// Reads `text`, prints it, reads that and prints it again: the same bytes.
static void round_trip(const char* text, const char* want) {
  kiln_program_t* program = kit_parse(text);
  char* once = kit_print(program);
  kiln_program_t* again = kit_parse(once);
  char* twice = kit_print(again);
  assert_string_equal(once, twice);
  if (want != NULL) assert_string_equal(once, want);
  free(once);
  free(twice);
  kiln_program_release(program);
  kiln_program_release(again);
}

static void everything_reads_as_it_prints(void** state) {
  (void)state;
  round_trip(kit_everything, NULL);
}

static void printing_is_this(void** state) {
  (void)state;
  round_trip(
      "program saxpy(a:f32,x:in f32[],y:inout f32[length(x)]) work length(x) "
      "block 256 {let i=global_id.x;y[i]=fma(a,x[i],y[i]);}",
      "program saxpy(a: f32, x: in f32[], y: inout f32[length(x)])\n"
      "  work length(x)\n"
      "  block 256\n"
      "{\n"
      "  let i = global_id.x;\n"
      "  y[i] = fma(a, x[i], y[i]);\n"
      "}\n");
  round_trip(
      "fn f(x: i32) -> i32 { if x < 0 { return -x; } else if x == 0 { return "
      "7; } else { return -(5); } }"
      "program p(o: out i32[]) { o[0] = f(-2147483648) - (1 - (2 - 3)); }",
      "fn f(x: i32) -> i32 {\n"
      "  if x < 0i32 {\n"
      "    return -x;\n"
      "  } else if x == 0i32 {\n"
      "    return 7i32;\n"
      "  } else {\n"
      "    return -(5i32);\n"
      "  }\n"
      "}\n"
      "\n"
      "program p(o: out i32[])\n"
      "{\n"
      "  o[0] = f(-2147483648i32) - (1i32 - (2i32 - 3i32));\n"
      "}\n");
}

// What one value, put into a place of a type, prints as.
static void prints_value(const char* type, const char* value,
                         const char* want) {
  char text[400], line[400];
  snprintf(text, sizeof(text), "program p(o: out %s[]) { o[0] = %s; }", type,
           value);
  snprintf(line, sizeof(line), "program p(o: out %s[])\n{\n  o[0] = %s;\n}\n",
           type, want);
  round_trip(text, line);
}

static void literals_take_the_type_of_their_place(void** state) {
  (void)state;
  prints_value("u32", "1", "1");
  prints_value("u64", "18446744073709551615", "18446744073709551615u64");
  prints_value("i8", "-128", "-128i8");
  prints_value("f32", "1", "1.0");
  prints_value("f32", "16777217", "16777216.0");
  prints_value("f64", "1e300", "1.0e300f64");
  prints_value("f64", "0.1", "0.1f64");
  prints_value("f16", "65519.9", "65500.0f16");
  prints_value("bf16", "3.14", "3.14bf16");
  prints_value("f32", "0x1p-149", "1.0e-45");
  prints_value("f32", "-0.0", "-0.0");
  prints_value("f32", "-inf_f32", "-inf_f32");
  prints_value("f32", "-nan_f32", "nan_f32");
  prints_value("f32", "0x1f", "31.0");
  prints_value("u8", "(1 + 2) * 3", "(1u8 + 2u8) * 3u8");
  prints_value("u32", "1 << 3", "1 << 3");
  prints_value("u64", "1 << 40", "1u64 << 40");
  prints_value("bool", "1 < 2", "1 < 2");
  prints_value("bool", "-1 < 2", "-1i32 < 2i32");
  prints_value("bool", "1 < 2.5", "1.0 < 2.5");
  prints_value("f64", "select(true, 1, 2.5)", "select(true, 1.0f64, 2.5f64)");
  prints_value("f32", "fma(1, 2, 3)", "fma(1.0, 2.0, 3.0)");
  prints_value("i32", "i32(-1)", "i32(-1i32)");
  prints_value("f64", "bitcast_f64(1)", "bitcast_f64(1u64)");
  prints_value("u32", "popcount(7)", "popcount(7)");
  prints_value("f32", "sqrt(2)", "sqrt(2.0)");
}

static void precedence_is_that_of_the_page(void** state) {
  (void)state;
  prints_value("u32", "1 + 2 << 3", "1 + 2 << 3");
  prints_value("u32", "(1 + 2) << 3", "(1 + 2) << 3");
  prints_value("u32", "1 | 2 & 3", "1 | 2 & 3");
  prints_value("u32", "(1 | 2) & 3", "(1 | 2) & 3");
  prints_value("bool", "1 & 2 == 3 && true || false",
               "1 & 2 == 3 && true || false");
  prints_value("bool", "1 & 2 == 3 && (true || false)",
               "1 & 2 == 3 && (true || false)");
  prints_value("u32", "1 - (2 - 3)", "1 - (2 - 3)");
  prints_value("u32", "(1 - 2) - 3", "1 - 2 - 3");
  prints_value("u32", "~1 * 2", "~(1) * 2");
}

// ---- Errors ----

static void fails(const char* text, const char* want) {
  kiln_program_t* program;
  kiln_program_report_t* report;
  kiln_status_t status =
      kiln_program_parse(kilni_base_sv(text), NULL, &report, &program);
  assert_null(program);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_COMPILE_FAILED);
  assert_non_null(kiln_status_fix(status));
  const char* all = kiln_program_report_text(report);
  if (strstr(all, want) == NULL) fail_msg("no \"%s\" in:\n%s", want, all);
  kiln_status_free(status);
  kiln_program_report_release(report);
}

static void errors_point_at_their_place(void** state) {
  (void)state;
  fails("program p(x: out u32[]) {\n\tx[0] = y + 1;\n}\n",
        "program.kiln:2:9: error: no such name: \"y\" [P001]\n"
        "  \tx[0] = y + 1;\n"
        "  \t       ^\n"
        "  Fix: declare it above, or correct its spelling\n");
  fails("program p() { let x = 1 }", ":1:25: error: expected \";\"");
  fails("program p() { let x 1; }", "expected \"=\", found \"1\"");
  fails("program p() { x[0 = 1; }", "no such name: \"x\"");
  fails("program p(", "found the end of the text");
  fails("", "the text has no program");
  fails("let x = 1;", "expected const, type, fn or program");
  fails("program p() { } program q() { }", "a second program");
  fails("program p() { let let = 1; }", "P003");
  fails("program p() { let a = 1; if true { let a = 2; } }", "P002");
  fails("program p() { let a = 300u8; }", "300 as u8 [P004]");
  fails("program p() { let a: u32 = -1; }", "-1 as u32 [P004]");
  fails("program p() { let a: u32 = 1.5; }", "1.5 as u32 [P004]");
  fails("program p() { let a: f16 = 65520; }", "65520 as f16 [P004]");
  fails("program p() { let a = 1q8; }", "a suffix that is no type");
  fails("program p() { let a = 1e; }", "a number that breaks off");
  fails("program p(x: in f32[]) { let a = x; }", "expected \"[\"");
  fails("program p(x: f32[]) { }", "expected a role");
  fails("program p(n: u32) { let a = n[0]; }", "expected \";\"");
  fails("program p(n: u32) { n = 1; }", "P022");
  fails("fn f(x: u32) { } program p() { let a = f(1); }", "P019");
  fails("fn f(x: u32) { } program p() { f(); }", "\"f\" has 1 parameters");
  fails("fn f(x: u32) { } program p() { f(1, 2); }", "\"f\" has 1 parameters");
  fails("program p() { let a = min(1); }", "min takes 2 operands, not 1");
  fails("program p() { let a = global_id; }", "expected \".\"");
  fails("program p() { shared a: f32[0x100000000u64 * 2]; shared b: u8[1.5]; }",
        "1.5 as u32 [P004]");
  fails("program p(n: u32) block n { }", "no whole number known beforehand");
  fails("program p() block true { }", "no whole number known beforehand");
  fails("program p() block (2, true) { }", "no whole number known beforehand");
  fails("const b = 1 < 2; program p() block b { }",
        "no whole number known beforehand");
  fails("program p() block 1f32 { }", "no whole number known beforehand");
  fails("program p() { shared a: f32[true]; }",
        "no whole number known beforehand");
  fails("program p() { for k in 0..9 step true { } }",
        "no whole number known beforehand");
  fails("program p() { async_wait true; }", "no whole number known beforehand");
  fails("program p() work true { }", "[P039]");
  fails("program p(b: bool) work (2, b) { }", "[P039]");
  fails("program p() { let a = #; }",
        "a character that the language does not use");
  // Three bytes that mark UTF-8 are no part of the text.
  fails("\xef\xbb\xbfprogram p() { let a = #; }",
        ":1:23: error: expected a value, found a character that the language "
        "does not use\n  program p() { let a = #; }\n                        "
        "^\n");
}

static uint32_t count_of(const char* text, const char* word) {
  uint32_t count = 0;
  for (; (text = strstr(text, word)) != NULL; text++) count++;
  return count;
}

// One mistake is one error, also where what is around it is read again.
static void one_mistake_is_one_error(void** state) {
  (void)state;
  static const char* const kTexts[] = {
      "program p() work (n + 1) * 2 { }",
      "program p() work (n) { }",
      "program p() work (2, n) { }",
      "program p() block (n + 1) * 2 { }",
      "program p() work (n + 1) * 2 block 64 { }",
  };
  for (size_t i = 0; i < sizeof kTexts / sizeof *kTexts; i++) {
    kiln_program_t* program;
    kiln_program_report_t* report;
    kiln_status_t status =
        kiln_program_parse(kilni_base_sv(kTexts[i]), NULL, &report, &program);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_COMPILE_FAILED);
    kiln_status_free(status);
    const char* all = kiln_program_report_text(report);
    if (count_of(all, "error:") != 1) fail_msg("%s", all);
    kiln_program_report_release(report);
  }
}

// What other languages write, and slips: the Fix says what to write here.
static void mistakes_have_a_fix_of_their_own(void** state) {
  (void)state;
  static const struct {
    const char* body;
    const char* want;
  } kCases[] = {
      {"let a = x[i]\n  y[i] = a;",
       ":4:15: error: expected \";\" at the end of the statement\n"
       "    let a = x[i]\n"
       "                ^\n"
       "  Fix: put it here\n"},
      {"if i = 3 { }", "Fix: compare with =="},
      {"for (int k = 0; k < 4; k++) { }", "Fix: write for k in 0..n { ... }"},
      {"var k = 0; k++;", "Fix: write x += 1;"},
      {"y[i] = x[i] > 0.0 ? x[i] : 0.0;",
       "Fix: choose by select(condition, a, b)"},
      {"y[threadIdx.x] = x[i];",
       "Fix: a thread's number in its block is local_id.x"},
      {"__syncthreads();", "Fix: write barrier;"},
      {"int k = 0;", "Fix: write let name: i32 = value; or var"},
      {"y = x;", "Fix: write one element: x[i] = value;"},
      {"let n = x.length;", "Fix: a buffer's length is length(x)"},
      {"y[global_id] = 0.0;", "Fix: name the axis: .x, .y or .z"},
      {"y[i] = (f32)i;", "Fix: a cast is written f32(x)"},
      {"y[i] = x[i] ** 2;", "Fix: a power is pow(x, y)"},
      {"let a: float = 1.0;", "Fix: write f32"},
      {"barier;", "Fix: write \"barrier\", if that is meant"},
      {"y[i] = sqrtf(x[i]);", "Fix: write \"sqrt\", if that is meant"},
      {"y[i] = zebras;", "Fix: declare it above, or correct its spelling"},
      {"if i == 1 { } elif i == 2 { }", "Fix: write else if"},
      {"if i & 1 && true { }", "Fix: compare: x != 0"},
      {"if i > 3 { y[i] = 1.0;",
       "Fix: close the body that is opened in line 3"},
  };
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    char text[600];
    snprintf(text, sizeof text,
             "program p(x: in f32[], y: out f32[length(x)])\n"
             "  work length(x)\n"
             "{ let i = global_id.x;\n"
             "  %s\n"
             "}\n",
             kCases[i].body);
    fails(text, kCases[i].want);
  }
  fails("/* what it does */", "Fix: a comment begins with //");
  fails("program p() { } }", "Fix: one } is too many");
  fails("void k(float* x) { }", "Fix: write program NAME(...)");
  fails("// By hand.\n.version 8.0\n.target sm_80", "Fix: this is PTX: ");
  fails(".v", "Fix: put statements into the body");
  fails("program p(float* x) { }", "Fix: a name and its type: n: u32");
}

static void has_one_error(const char* text, const char* want) {
  kiln_program_t* program;
  kiln_program_report_t* report;
  kiln_status_t status =
      kiln_program_parse(kilni_base_sv(text), NULL, &report, &program);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_COMPILE_FAILED);
  kiln_status_free(status);
  const char* all = kiln_program_report_text(report);
  const char* fix = strstr(all, "Fix: ");
  assert_non_null(fix);
  if (strstr(fix, want) == NULL || count_of(all, "error:") != 1) {
    fail_msg("\"%s\", and one error, not:\n%s", want, all);
  }
  kiln_program_report_release(report);
}

// Each of these is one mistake, and one error that says what to write.
static void one_mistake_has_one_fix(void** state) {
  (void)state;
  static const char* const kCases[][2] = {
      {"y[i] = x[i] * 2.0f;", "write 2.0 without a suffix"},
      {"let n = 1u;", "a suffix is a type"},
      {"let c = if i > 3 {0} else {1};", "choose by select(condition, a, b)"},
      {"y[i] = while i > 3 { };", "a loop is a statement"},
      {"let round = 1;", "choose another name"},
      {"let lane = 1;", "choose another name"},
      {"let n = 1_000;", "write the digits together"},
      {"y[i] = x[i] * 2.;", "digits on both sides of the point"},
      {"y[i] = .5;", "digits on both sides of the point"},
      {"let h = 0x;", "write it out"},
      {"float a = x[i];", "write let name: f32 = value"},
      {"let a = x[threadIdx.x] + 1.0;", "local_id.x"},
      {"let a = get_global_id(0) * 2;", "global_id.x"},
      {"if (i < 3) y[i] = 1.0;", "a body stands in braces"},
      {"y[i] = 1.0;;", "Fix: remove it"},
      {"for k in 0...4 { }", "a range is 0..n"},
      {"for k in 0..=4 { y[k] = 1.0; }", "a range is 0..n"},
      {"let a; y[i] = 1.0;", "give it a first value"},
      {"var a: f32;", "give it a first value"},
      {"let a, b = 1, 2;", "declare one at a time"},
      {"y[i] = x[i] ^ 2;", "a power is pow(x, y)"},
      {"if not (i == 3) { }", "write !x"},
      {"if i == 3 or i == 4 { }", "write ||"},
      {"if i == 3 and (i == 4) { } else { }", "write &&"},
      {"if !i { }", "compare: x != 0"},
      {"y[i] = x[i] if i > 3 else 0.0;", "select(condition, a, b)"},
      {"y[i] = i as f32;", "a cast is written f32(x)"},
      {"y[i] = (float)i;", "a cast is written f32(x)"},
      {"y[i] = float(i);", "a cast is written f32(x)"},
      {"y[i] = f32 i;", "a cast is written f32(x)"},
      {"let b = 1; shared t: f32[64]; y[i] = t[i];", "before statements"},
      {"let t = f32[4];", "private t: f32[4];"},
      {"let t = [1, 2, 3];", "write an array at the head of a body"},
      {"y[i] = max(x[i], x[0], x[1]);", "write max(x, max(y, z))"},
      {"y[i] = select(x[i], 1.0);", "write select(x, y, z)"},
      {"let n = len(x);", "length(x)"},
      {"y[i] = sum(x);", "add up in a loop"},
      {"print(x[i]);", "a program writes into buffers only"},
      {"let old = atomicAdd(&y[0], 1.0);",
       "write atomic_add(buffer[i], value)"},
      {"atomic_add(y, 0, 1.0);", "name one element: x[i]"},
      {"atomic_add(&y[0], 1.0);", "name a parameter with []"},
      {"let v = x;", "name one element: x[i]"},
      {"let v = x(3);", "name one element: x[i]"},
      {"y[0:4] = 1.0;", "write a loop over the elements"},
      {"y[0, 4] = 1.0;", "x[row * width + column]"},
      {"global_id.x = 3;", "assign to a var, or to an element"},
      {"let k = i[2];", "this is one value"},
      {"let k = i\n  if k > 3 { y[i] = 1.0; }", "put it here"},
      {"let k = i\n  let l = 2;", "put it here"},
      {"y[i] = x[i] /* two */ * 2.0;", "a comment begins with //"},
      {"# what it does", "a comment begins with //"},
      {"y[i] = \"a\";", "there are numbers only"},
      {"let c = 'a';", "there are numbers only"},
      {"const N = 3;", "inside write let"},
      {"else { y[i] = 1.0; }", "right behind the } of its if"},
      {"++i;", "write x += 1;"},
      {"{ y[i] = 1.0; }", "or the statements without the braces"},
      {"goto end;", "write a loop"},
      {"y[i] = x[i] >> 1;", "shifts are of integers"},
      {"let a = i << -1;", "the count of a shift is unsigned: u32(x)"},
      {"let a = i + (i > 3);", "cast one of them: u32(x)"},
      {"let a = x[i] + i;", "cast one of them: f32(x), u32(x)"},
      {"let a = add_sat(i, x[i]);", "cast one of them: u32(x)\n"},
      {"var b: u8 = i;", "cast it: u8(x)"},
      {"y[i] = i;", "cast it: f32(x)"},
      {"var b = i > 3; b = i;", "compare: x != 0"},
      {"if i > 3 { barrier; }", "move the barrier out"},
  };
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    char text[600];
    snprintf(text, sizeof text,
             "program p(x: in f32[], y: out f32[length(x)])\n"
             "  work length(x)\n"
             "{ let i = global_id.x;\n"
             "  %s\n"
             "}\n",
             kCases[i][0]);
    has_one_error(text, kCases[i][1]);
  }
}

// The same for heads.
static void one_mistake_in_a_head_has_one_fix(void** state) {
  (void)state;
  static const char* const kCases[][2] = {
      {"program 3d() { }", "no digit first"},
      {"program p(x: f32*) { }", "there are no pointers: x: in f32[]"},
      {"program p(x: in f32) { }", "the type of a buffer ends in []"},
      {"program p(x: in f32[],) { }", "remove the comma"},
      {"program p(x in f32[]) { }", "a name and its type"},
      {"program p(x: f32[]) { }", "write in, out, inout"},
      {"program p(n: u32) block 64 work n { }", "work stands in front"},
      {"program p(n: u32) work n, 4 { }", "work (w, h)"},
      {"program p() -> f32 { }", "a program has no result"},
      {"fn f(x: f32): f32 { return x; } program p() { }", "behind ->"},
      {"fn f(x: f32) -> f32 { x * 2.0 } program p() { }", "or return ...;"},
      {"fn f(x: in f32[]) { } program p(y: in f32[]) { f(y[0]); }",
       "hand it over whole"},
      {"program p() { f(1); } fn f(x: u32) { }", "declare it above"},
      {"program p(x: in f32[]) work { }", "write a number, a name"},
  };
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    has_one_error(kCases[i][0], kCases[i][1]);
  }
}

static void all_errors_are_told_at_once(void** state) {
  (void)state;
  kiln_program_t* program;
  kiln_program_report_t* report;
  kiln_status_t status =
      kiln_program_parse(kilni_base_sv("fn f(x: in u33[]) { let ; }\n"
                                       "program p(o: out u32[]) {\n"
                                       "  o[0] = a + 1;\n"
                                       "  let b = c;\n"
                                       "  o[1] = b;\n"
                                       "  if d { o[2] = + ; }\n"
                                       "  o[3] = 7;\n"
                                       "  e = 3;\n"
                                       "}\n"),
                         NULL, &report, &program);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_COMPILE_FAILED);
  static const uint32_t kLines[] = {1, 3, 4, 6, 6, 8};
  uint32_t count = kiln_program_report_count(report);
  if (count != 6) fail_msg("%s", kiln_program_report_text(report));
  for (uint32_t i = 0; i < count; i++) {
    kiln_program_problem_t problem;
    assert_true(kiln_program_report_problem(report, i, &problem));
    assert_int_equal(problem.line, kLines[i]);
    assert_int_not_equal(problem.fix[0], 0);
  }
  kiln_program_problem_t none;
  assert_false(kiln_program_report_problem(report, 6, &none));
  assert_null(none.message);
  kiln_status_free(status);
  kiln_program_report_release(report);
}

static void at_most_twenty_errors(void** state) {
  (void)state;
  char text[4000] = "program p() {\n";
  for (int i = 0; i < 50; i++) strcat(text, "  let a = b;\n");
  kiln_program_t* program;
  kiln_program_report_t* report;
  kiln_status_t status =
      kiln_program_parse(kilni_base_sv(text), NULL, &report, &program);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_COMPILE_FAILED);
  assert_int_equal(kiln_program_report_count(report),
                   KILN_PROGRAM_MAX_PROBLEMS);
  kiln_status_free(status);
  kiln_program_report_release(report);
}

// Notes are no reason to lose an error.
static void errors_take_the_place_of_notes(void** state) {
  (void)state;
  char text[4000] = "program p(o: out u32[1]) block 64 {\n";
  for (int i = 0; i < 30; i++) strcat(text, "  o[1] = 1;\n");
  strcat(text, "  if lane > 3 { barrier; }\n}\n");
  kiln_program_t* program;
  kiln_program_report_t* report;
  kiln_status_t status =
      kiln_program_parse(kilni_base_sv(text), NULL, &report, &program);
  assert_says(status, KILN_STATUS_COMPILE_FAILED, ":32:17: not all threads");
  assert_int_equal(kiln_program_report_count(report),
                   KILN_PROGRAM_MAX_PROBLEMS);
  kiln_program_problem_t problem;
  assert_true(kiln_program_report_problem(report, 0, &problem));
  assert_int_equal(problem.is_note, 1);
  assert_int_equal(problem.line, 2);
  assert_true(kiln_program_report_problem(report, KILN_PROGRAM_MAX_PROBLEMS - 1,
                                          &problem));
  assert_int_equal(problem.is_note, 0);
  kiln_program_report_release(report);
}

// The caret stands below the place also far behind in a line.
static void long_lines_are_cut_around_the_place(void** state) {
  (void)state;
  for (uint32_t spaces = 0; spaces < 400; spaces += 39) {
    char text[1000] = "program p(o: out u32[]) {";
    for (uint32_t i = 0; i < spaces; i++) strcat(text, " ");
    strcat(text, "o[0] = nowhere;");
    for (uint32_t i = 0; i < 200; i++) strcat(text, " ");
    strcat(text, "}");
    kiln_program_t* program;
    kiln_program_report_t* report;
    kiln_status_t status =
        kiln_program_parse(kilni_base_sv(text), NULL, &report, &program);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_COMPILE_FAILED);
    kiln_status_free(status);
    kiln_program_problem_t problem;
    assert_true(kiln_program_report_problem(report, 0, &problem));
    assert_int_equal(problem.column, 33 + spaces);
    assert_true(strlen(problem.source) <= 160);
    const char* line = strstr(kiln_program_report_text(report), "\n  ") + 3;
    const char* below = strchr(line, '\n') + 3;
    const char* caret = strchr(below, '^');
    assert_non_null(caret);
    assert_memory_equal(line + (caret - below), "nowhere", 7);
    kiln_program_report_release(report);
  }
}

// ---- Defines ----

static kiln_status_t parse_with(const char* name, const char* value,
                                kiln_program_t** out_program) {
  kiln_program_define_t define = {name, value};
  kiln_program_parse_options_t options = kiln_program_parse_options_default();
  options.defines = &define;
  options.define_count = 1;
  return kiln_program_parse(
      kilni_base_sv("const N = 4u8; const M = u32(N) + 1; type T = f32;"
                    "program p(o: out T[M]) { o[0] = 1; }"),
      &options, NULL, out_program);
}

// A bitcast to what a type of the text stands for; other names that begin so
// are as unknown as any.
static void a_type_has_its_bitcast(void** state) {
  (void)state;
  kiln_program_t* program = kit_parse(
      "type T = f32; type U = u32;"
      "program p(o: out T[1]) { o[0] = bitcast_T(bitcast_U(o[0]) + 1); }");
  char* text = kit_print(program);
  assert_non_null(strstr(text, "bitcast_f32(bitcast_u32(o[0]) + 1)"));
  free(text);
  kiln_program_release(program);
  kiln_program_report_t* report;
  kiln_status_t status = kiln_program_parse(
      kilni_base_sv(
          "type T = f32; program p(o: out T[1]) { o[0] = bitcast_V(1); }"),
      NULL, &report, &program);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_COMPILE_FAILED);
  kiln_status_free(status);
  assert_non_null(strstr(kiln_program_report_text(report), "bitcast_V"));
  kiln_program_report_release(report);
}

static void defines_take_the_place_of_consts(void** state) {
  (void)state;
  static const char* const kCases[][3] = {{"N", "9", "10]"},
                                          {"N", "9u8", "10]"},
                                          {"M", "3 + 4", "7]"},
                                          {"T", "f16", "1.0f16"}};
  for (size_t i = 0; i < 4; i++) {
    kiln_program_t* program;
    kiln_status_t status = parse_with(kCases[i][0], kCases[i][1], &program);
    if (!kiln_status_is_ok(status)) fail_msg("%s", kiln_status_message(status));
    char* text = kit_print(program);
    if (strstr(text, kCases[i][2]) == NULL) fail_msg("%s", text);
    free(text);
    kiln_program_release(program);
  }
  kiln_program_t* program;
  assert_says(parse_with("Q", "9", &program), KILN_STATUS_NOT_FOUND, "\"Q\"");
  assert_says(parse_with("N", "9u32", &program), KILN_STATUS_COMPILE_FAILED,
              "in the define of \"N\"");
  assert_says(parse_with("N", "", &program), KILN_STATUS_COMPILE_FAILED,
              "in the define of \"N\"");
  assert_says(parse_with("N", "1 2", &program), KILN_STATUS_COMPILE_FAILED,
              "expected one value");
  assert_says(parse_with("T", "f33", &program), KILN_STATUS_COMPILE_FAILED,
              "expected a type");
  assert_says(parse_with("N", NULL, &program), KILN_STATUS_INVALID_ARGUMENT,
              "define 0");
}

static void defines_are_looked_at_first(void** state) {
  (void)state;
  kiln_program_define_t defines[] = {{"N", "1"}, {"M", "2"}, {"N", "3"}};
  kiln_program_parse_options_t options = kiln_program_parse_options_default();
  kiln_program_t* program;
  options.define_count = 3;
  assert_says(kiln_program_parse(kilni_base_sv("const N = 4; const M = 5;"),
                                 &options, NULL, &program),
              KILN_STATUS_INVALID_ARGUMENT, "defines");
  options.defines = defines;
  assert_says(kiln_program_parse(kilni_base_sv("const N = 4; const M = 5;"),
                                 &options, NULL, &program),
              KILN_STATUS_INVALID_ARGUMENT, "\"N\" is defined twice");
}

// What the validator finds in a define is told where its const stands, since
// the define is no part of the text.
static void defines_stand_where_their_const_does(void** state) {
  (void)state;
  kiln_program_define_t define = {"N", "clz(1.5)"};
  kiln_program_parse_options_t options = kiln_program_parse_options_default();
  options.defines = &define;
  options.define_count = 1;
  kiln_program_t* program;
  assert_says(
      kiln_program_parse(kilni_base_sv("type T = u32;\n\n  const N = 4;\n"
                                       "program p(o: out T[1]) { o[0] = N; }"),
                         &options, NULL, &program),
      KILN_STATUS_COMPILE_FAILED, ":3:13: the operator does not take");
}

// ---- Limits ----

static char* repeated(const char* head, const char* part, uint32_t count,
                      const char* tail) {
  size_t size = strlen(head) + strlen(part) * count + strlen(tail) + 1;
  char* text = malloc(size);
  assert_non_null(text);
  char* to = text;
  to += sprintf(to, "%s", head);
  for (uint32_t i = 0; i < count; i++) to += sprintf(to, "%s", part);
  sprintf(to, "%s", tail);
  return text;
}

static void limits_have_names(void** state) {
  (void)state;
  char* deep = repeated("program p() { let a = ", "(", 5000, "1;}");
  fails(deep, "P044");
  free(deep);
  deep = repeated("program p() { let a = 1", " + 1", 5000, ";}");
  fails(deep, "an expression of more than 256 levels [P044]");
  free(deep);
  deep = repeated("program p() { ", "if true { ", 5000, "");
  fails(deep, "P044");
  free(deep);
  deep = repeated("program p() { let a = min(1", ", 1", 100, ");}");
  fails(deep, "at most 64 [P046]");
  free(deep);
  deep = repeated("program p() { let ", "a", 64, " = 1;}");
  fails(deep, "64 characters [P003]");
  free(deep);
  deep = repeated("program p() { let a = ", "1", 129, ";}");
  fails(deep, "more than 128 characters");
  free(deep);
  kiln_program_t* program;
  char* large = repeated("", " ", (4 << 20) + 1, "");
  assert_says(kiln_program_parse(kilni_base_sv(large), NULL, NULL, &program),
              KILN_STATUS_LIMIT_EXCEEDED, "the limit is");
  free(large);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(everything_reads_as_it_prints),
      cmocka_unit_test(printing_is_this),
      cmocka_unit_test(literals_take_the_type_of_their_place),
      cmocka_unit_test(precedence_is_that_of_the_page),
      cmocka_unit_test(errors_point_at_their_place),
      cmocka_unit_test(mistakes_have_a_fix_of_their_own),
      cmocka_unit_test(one_mistake_has_one_fix),
      cmocka_unit_test(one_mistake_in_a_head_has_one_fix),
      cmocka_unit_test(all_errors_are_told_at_once),
      cmocka_unit_test(at_most_twenty_errors),
      cmocka_unit_test(one_mistake_is_one_error),
      cmocka_unit_test(errors_take_the_place_of_notes),
      cmocka_unit_test(long_lines_are_cut_around_the_place),
      cmocka_unit_test(a_type_has_its_bitcast),
      cmocka_unit_test(defines_take_the_place_of_consts),
      cmocka_unit_test(defines_are_looked_at_first),
      cmocka_unit_test(defines_stand_where_their_const_does),
      cmocka_unit_test(limits_have_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
