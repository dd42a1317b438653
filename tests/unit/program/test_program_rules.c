// SPDX-License-Identifier: Apache-2.0
//
// program: every rule of the language, a program that breaks it beside one
// that keeps it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "program/ir/program_rules.h"
#include "program_kit.h"

typedef struct case_t {
  uint32_t rule;
  const char* breaks;
  const char* keeps;
} case_t;

// Bodies of one program; a text that begins with a declaration is a whole one.
static const case_t kCases[] = {
    {1, "o[0] = nothing;", "o[0] = n;"},
    {2, "let n = 1;", "let m = 1;"},
    {2, "let a = 1; if c { let a = 2; }",
     "if c { let a = 1; } else { let a = 2; }"},
    {2, "for n in 0..3 { }", "for k in 0..3 { } for k in 0..3 { }"},
    {3, "let sqrt = 1;", "let square = 1;"},
    {4, "let a = 256u8;", "let a = 255u8;"},
    {4, "let a: i8 = 128;", "let a: i8 = -128;"},
    {5, "o[0] = length(n);", "o[0] = length(v);"},
    {5, "o[0] = barrier;", "barrier;"},
    {6, "let a = !n;", "let a = !c;"},
    {6, "let a = sqrt(n);", "let a = sqrt(f);"},
    {6, "let a = c + c;", "let a = c && c;"},
    {6, "let a = f & f;", "let a = n & n;"},
    {7, "let a = n + f;", "let a = f32(n) + f;"},
    {7, "let a = n << s;", "let a = s << n;"},
    {8, "if n { }", "if n != 0 { }"},
    {8, "while f { }", "while f > 0.0 { }"},
    {8, "let a = select(n, f, f);", "let a = select(c, f, f);"},
    {9, "let a = select(c, n, f);", "let a = select(c, n, 1);"},
    {10, "let a = fma(n, n, n);", "let a = fma(f, 2, f);"},
    {10, "let a = fma(f, 1.0f64, f);", "let a = fma(1.0f64, 2, 3);"},
    {11, "o[f] = 1;", "o[s] = 1;"},
    {11, "o[0] = o[c];", "o[0] = o[u32(c)];"},
    {12, "let a = bitcast_f64(n);", "let a = bitcast_f32(n);"},
    {12, "let a = bitcast_u8(c);", "let a = u8(c);"},
    {13, "let a = ballot(n);", "let a = ballot(c);"},
    {13, "let a = reduce_and(f);", "let a = reduce_and(n);"},
    {13, "let a = shuffle(f, s);", "let a = shuffle(f, n);"},
    {14, "atomic_and(w[0], 1);", "atomic_and(o[0], 1);"},
    {14, "atomic_add(w[0], n);", "atomic_add(w[0], f);"},
    {15, "atomic_add(v[0], 1);", "let a = atomic_load(v[0]);"},
    {15, "atomic_add(own[0], 1);", "atomic_add(all[0], 1);"},
    {16, "let a = atomic_load(o[0], release);",
     "let a = atomic_load(o[0], acquire);"},
    {16, "atomic_store(o[0], 1, acq_rel);", "atomic_store(o[0], 1, release);"},
    {16, "atomic_add(all[0], 1, device);", "atomic_add(o[0], 1, system);"},
    {17, "let a = pure(f);", "let a = pure(n);"},
    {17, "let a = pure();", "let a = pure(1);"},
    {17, "write(w, 0);", "write(o, 0);"},
    {18, "write(v, 0);", "write(all, 0);"},
    {19, "let a = write(o, 0);", "write(o, 0);"},
    {20, "o[0] = 1 + atomic_add(o[1], 1);", "let a = atomic_add(o[1], 1);"},
    {20, "if ballot(c) == 0 { }", "let a = ballot(c); if a == 0 { }"},
    {20, "o[0] = effect(o);", "o[0] = pure(1);"},
    {21, "min(n, 1);", "atomic_min(o[0], 1);"},
    {21, "pure(n);", "effect(o);"},
    {22, "let a = 1; a = 2;", "var a = 1; a = 2;"},
    {22, "for k in 0..3 { k = 1; }", "for k in 0..3 { var a = k; a = 1; }"},
    {22, "n = 1;", "var a = n; a += 1;"},
    {23, "var a = n; a = f;", "var a = n; a = u32(f);"},
    {23, "let a: u8 = n;", "let a: u8 = u8(n);"},
    {24, "v[0] = 1;", "o[0] = 1;"},
    {25, "o[0] = f;", "w[0] = f;"},
    {26, "for k in 0.0..f { }", "for k in 0..u32(f) { }"},
    {26, "for k in n..s { }", "for k in n..u32(s) { }"},
    {27, "for k in 0..n step 0 { }", "for k in 0..n step 3 { }"},
    {28, "break;", "while c { break; }"},
    {28, "if c { continue; }", "for k in 0..n { if c { continue; } }"},
    {29, "return; o[0] = 1;", "o[0] = 1; return;"},
    {29, "for k in 0..n { break; o[0] = 1; }", "for k in 0..n { break; }"},
    {29, "if c { return; } else { return; } o[0] = 1;",
     "if c { return; } o[0] = 1;"},
    {29, "trap(1, 2); o[0] = 1;", "if c { trap(1, 2); } o[0] = 1;"},
    {30, "return 1;", "return;"},
    {30, "fn g() -> u32 { return 1.5f32; } program p() { }",
     "fn g() -> f32 { return 1.5f32; } program p() { }"},
    {30, "fn g() { return 1; } program p() { }",
     "fn g() { return; } program p() { }"},
    {31, "fn g(c: bool) -> u32 { if c { return 1; } } program p() { }",
     "fn g(c: bool) -> u32 { if c { return 1; } else { return 2; } }"
     "program p() { }"},
    {31, "fn g() -> u32 { while true { return 1; } } program p() { }",
     "fn g() -> u32 { trap(1, 2); } program p() { }"},
    {32, "if local_id.x > 3 { barrier; }", "if block_id.x > 3 { barrier; }"},
    {32, "for k in 0..lane { barrier; }", "for k in 0..n { barrier; }"},
    {32, "for k in 0..n { if lane == k { break; } barrier; }",
     "for k in 0..n { if n == k { break; } barrier; }"},
    {32, "if v[lane] == 0 { barrier; }", "if v[n] == 0 { barrier; }"},
    {32, "if o[0] == 0 { barrier; }",
     "if global_id.x > n { return; } barrier;"},
    {32, "let a = reduce_add(n); if a == 0 { barrier; }",
     "let a = reduce_add(n); o[0] = a; barrier;"},
    {32, "var a = n; while a > 0 { a = a - lane; barrier; }",
     "var a = n; while a > 0 { a = a - 1; barrier; }"},
    {32, "if lane > 3 { together(n); }", "if n > 3 { together(n); }"},
    {32, "together(lane);", "together(block_id.y);"},
    {32,
     "fn g(v: in u32[]) { if v[0] == 1 { barrier; } }"
     "program p(o: inout u32[]) { g(o); }",
     "fn g(v: in u32[]) { if v[0] == 1 { barrier; } }"
     "program p(o: in u32[]) { g(o); }"},
    {32,
     "fn g(c: bool) { if c { return; } barrier; }"
     "program p() { g(lane == 0); }",
     "fn g(c: bool) { if c { return; } barrier; }"
     "program p() { g(block_id.x == 0); }"},
    {33, "if block_id.x > 3 { grid_barrier; }", "if n > 3 { grid_barrier; }"},
    {34, "if lane > 3 { subgroup_barrier; }",
     "if subgroup > 3 { subgroup_barrier; }"},
    {34, "if lane > 3 { matrix_multiply_accumulate(md, ma, mb); }",
     "if subgroup > 3 { matrix_multiply_accumulate(md, ma, mb); }"},
    {34, "if lane > 3 { let a = ballot(c); }",
     "if subgroup > 3 { let a = ballot(c); }"},
    {34,
     "let m = ballot(lane > n); let b = scan_add(m); if b == 0 { let a = "
     "reduce_max(n); }",
     "let m = ballot(lane > n); if m == 0 { let a = reduce_max(n); }"},
    {35, "async_copy(all, 0, v, lane, 4);", "async_copy(all, 0, v, n, 4);"},
    {35, "if lane == 0 { async_wait 1; }", "async_wait 1;"},
    {36, "async_copy(all, 0, all, 1, 4);", "async_copy(o, 0, all, 1, 4);"},
    {36, "async_copy(all, 0, w, 1, 4);", "async_copy(all, 0, o, 1, 4);"},
    {37, "trap(u8(n), 0);", "trap(n, 0);"},
    {37, "trap(n, n);", "trap(n, u64(n));"},
    {38, "fn g(n: u32) -> u32 { return g(n - 1); } program p() { }",
     "fn g(n: u32) -> u32 { return n; } fn h(n: u32) -> u32 { return g(g(n)); "
     "} program p() { }"},
    {39, "program p(x: in f32[], y: out f32[u32(x[0])]) { }",
     "program p(x: in f32[], y: out f32[length(x) * 2 + 1]) { }"},
    {39, "program p(a: f32) work u32(a) { }",
     "program p(a: u8) work a * 2 { }"},
    {39, "program p(x: in f32[]) work global_id.x { }",
     "program p(x: in f32[]) work (length(x), 4) { }"},
    {40, "program p(x: in f32[length(y)], y: in f32[length(x) + 1]) { }",
     "program p(x: in f32[], y: in f32[length(z)], z: in u8[length(x)]) { }"},
    {40, "program p(x: in f32[length(x)]) { }", "program p(x: in f32[8]) { }"},
    {41, "program p() { shared a: f32[0]; }",
     "program p() { shared a: f32[1]; }"},
    {41, "program p() { shared a: f64[100000]; shared b: f64[100000]; }",
     "program p() { shared a: f64[100000]; }"},
    {42, "program p() block 1025 { }", "program p() block 1024 { }"},
    {42, "program p() block (1, 1, 65) { }",
     "program p() block (1, 1, 64) { }"},
    {43, "fn g(x: uniform f32[]) { } program p() { }",
     "fn g(x: in f32[]) { } program p() { }"},
    {43, "fn g() { shared a: f32[4]; } program p() { }",
     "fn g() { private a: f32[4]; } program p() { }"},
    {48, "var a = all[16];", "var a = all[15];"},
    {49, "matrix_multiply_accumulate(ma, ma, mb);",
     "matrix_multiply_accumulate(md, ma, mb);"},
    {49, "matrix_multiply_accumulate(md, mb, mb);",
     "ma[0] = 1.0; mb[1] = 2.0; matrix_multiply_accumulate(md, ma, mb);"},
    {49, "matrix_multiply_accumulate(md, ma, ma);", "md[0] = 1.0;"},
    {49, "matrix_multiply_accumulate(all, ma, mb);", "md[0] = 1.0;"},
    {49, "matrix_multiply_accumulate(w, ma, mb);", "md[0] = 1.0;"},
    {49, "matrix_multiply_accumulate(md, ma, mc);", "mc[0] = 1.0;"},
    {49, "matrix_multiply_accumulate(md, own, mb);", "md[0] = 1.0;"},
    {49,
     "program p() { private d: f32[4]; private a: f32[8]; private b: f32[4];"
     "matrix_multiply_accumulate(d, a, b); }",
     "program p() { private d: f32[4]; private a: f16[8]; private b: f16[4];"
     "matrix_multiply_accumulate(d, a, b); }"},
    {50, "program p() { private a: f64[65537]; }",
     "program p() { private a: f64[65536]; }"},
    {50, "program p() { private a: u8[1]; private b: f64[65536]; }",
     "program p() { private a: u8[8]; private b: f64[65535]; }"},
    {50,
     "fn g(x: u32) -> u32 { private a: u32[65536]; a[x] = x; return a[1]; }\n"
     "program p() { private b: u32[65537]; }",
     "fn g(x: u32) -> u32 { private a: u32[65536]; a[x] = x; return a[1]; }\n"
     "program p() { private b: u32[65536]; shared c: u32[262144]; }"},
    {50, "program p() { private a: u8[18446744073709551615u64]; }",
     "program p() { private a: u8[524288u64]; }"},
    {48, "all[-1] = 1;", "all[0] = 1;"},
    {48, "let a = v[-1];", "let a = v[0];"},
    {48, "o[-2] = 1;", "o[18446744073709551615u64] = 1;"},
};

static char* whole(const char* text) {
  static const char kHead[] =
      "fn pure(x: u32) -> u32 { private a: u32[4]; a[x] = x; return a[1]; }\n"
      "fn effect(x: inout u32[]) -> u32 { x[0] = 1; return 2; }\n"
      "fn write(x: inout u32[], i: u32) { x[i] = 1; }\n"
      "fn together(x: u32) { if x > 3 { barrier; } }\n"
      "program p(n: u32, s: i32, f: f32, c: bool, v: in u32[], o: out u32[],\n"
      "  w: inout f32[])\n"
      "{\n"
      "  shared all: u32[16];\n"
      "  private own: u32[16];\n"
      "  private md: f32[4]; private ma: f16[8]; private mb: f16[4];\n"
      "  private mc: bf16[4];\n"
      "  ";
  char* made = malloc(sizeof(kHead) + strlen(text) + 16);
  assert_non_null(made);
  bool is_whole = strncmp(text, "fn ", 3) == 0 ||
                  strncmp(text, "program ", 8) == 0 ||
                  strncmp(text, "const ", 6) == 0;
  sprintf(made, "%s%s%s", is_whole ? "" : kHead, text, is_whole ? "" : "\n}\n");
  return made;
}

// The report on a text holds the rule, or it holds nothing.
static void check(const char* text, uint32_t rule) {
  char* made = whole(text);
  kiln_program_t* program;
  kiln_program_report_t* report;
  kiln_status_t status =
      kiln_program_parse(kilni_base_sv(made), NULL, &report, &program);
  const char* all = kiln_program_report_text(report);
  bool found = false;
  for (uint32_t i = 0; i < kiln_program_report_count(report); i++) {
    kiln_program_problem_t problem;
    kiln_program_report_problem(report, i, &problem);
    if (problem.rule == rule) found = true;
    if (problem.line == 0) fail_msg("no place: %s", problem.message);
  }
  if (rule == 0 && all[0] != 0) fail_msg("%s\n%s", text, all);
  if (rule != 0 && !found) fail_msg("no P%03u: %s\n%s", rule, text, all);
  bool is_note = rule == KILNI_RULE_OUT_OF_RANGE;
  assert_int_equal(kiln_status_is_ok(status), rule == 0 || is_note);
  kiln_status_free(status);
  kiln_program_release(program);
  kiln_program_report_release(report);
  free(made);
}

// Once, where they become too many, with the bytes in front.
static void private_arrays_are_told_once(void** state) {
  (void)state;
  kiln_program_t* program = NULL;
  kiln_program_report_t* report = NULL;
  kiln_program_problem_t problem;
  kiln_status_t status = kiln_program_parse(
      kilni_base_sv("program p()\n{ private a: u8[12];\n"
                    "  private b: u32[131072];\n  private c: u32[4]; }\n"),
      NULL, &report, &program);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_COMPILE_FAILED);
  assert_non_null(strstr(kiln_status_fix(status), "512 KiB"));
  kiln_status_free(status);
  assert_int_equal(kiln_program_report_count(report), 1);
  kiln_program_report_problem(report, 0, &problem);
  assert_int_equal(problem.rule, KILNI_RULE_PRIVATE);
  assert_int_equal(problem.line, 3);
  assert_non_null(
      strstr(problem.message, "\"b\" with 131072 elements, behind 16 bytes"));
  kiln_program_report_release(report);
}

static void rules_are_kept_and_broken(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    check(kCases[i].breaks, kCases[i].rule);
    check(kCases[i].keeps, 0);
  }
}

// ---- Limits, which take long texts ----

static char* repeated(const char* head, const char* part, uint32_t count,
                      const char* tail) {
  size_t size = strlen(head) + (strlen(part) + 8) * count + strlen(tail) + 1;
  char* text = malloc(size);
  assert_non_null(text);
  char* to = text + sprintf(text, "%s", head);
  for (uint32_t i = 0; i < count; i++) to += sprintf(to, part, i, i);
  sprintf(to, "%s", tail);
  return text;
}

static void check_repeated(uint32_t rule, const char* head, const char* part,
                           uint32_t keeps, uint32_t breaks, const char* tail) {
  char* text = repeated(head, part, breaks, tail);
  check(text, rule);
  free(text);
  text = repeated(head, part, keeps, tail);
  check(text, 0);
  free(text);
}

static void limits_are_kept_and_broken(void** state) {
  (void)state;
  check_repeated(44, "let a = 1", " + 1", 255, 256, ";");
  check_repeated(44, "let a = ", "-", 255, 256, "n;");
  check_repeated(46, "program p(", "a%u: u32, ", 127, 128, "n: u32) { }");
  char consts[4000] = "const C0 = 1.5;";
  for (int i = 1; i <= 22; i++) {
    sprintf(consts + strlen(consts), "const C%d = C%d + C%d;", i, i - 1, i - 1);
  }
  char text[5000];
  sprintf(text, "%s program p(o: out f32[]) { o[0] = C22; }", consts);
  check(text, 45);
  sprintf(text, "%s program p(o: out f32[]) { o[0] = 1.0; }", consts);
  check(text, 45);
  *strstr(consts, "const C19") = 0;
  sprintf(text, "%s program p(o: out f32[]) { o[0] = C18; }", consts);
  check(text, 0);
  // A chain of functions, each of which calls the one before it.
  for (int count = 31; count <= 32; count++) {
    char chain[4000] = "fn g0(x: inout u32[]) { x[0] = 1; }";
    for (int i = 1; i <= count; i++) {
      sprintf(chain + strlen(chain), "fn g%d(x: inout u32[]) { g%d(x); }", i,
              i - 1);
    }
    strcat(chain, "program p() { }");
    check(chain, count == 31 ? 0 : 46);
  }
}

static void every_rule_has_a_case(void** state) {
  (void)state;
  // These are tested elsewhere: above, and by the builder's test, the only one
  // who can use what is out of sight.
  bool seen[KILNI_RULE_END] = {false};
  seen[0] = seen[KILNI_RULE_DEPTH] = seen[KILNI_RULE_SIZE] = true;
  seen[KILNI_RULE_LIMIT] = seen[KILNI_RULE_NOT_VISIBLE] = true;
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    seen[kCases[i].rule] = true;
  }
  for (uint32_t i = 0; i < KILNI_RULE_END; i++) {
    if (!seen[i]) fail_msg("no case for P%03u", i);
    if (i > 0) assert_int_not_equal(kilni_program_rule_message(i)[0], 0);
    if (i > 0) assert_int_not_equal(kilni_program_rule_fix(i)[0], 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rules_are_kept_and_broken),
      cmocka_unit_test(private_arrays_are_told_once),
      cmocka_unit_test(limits_are_kept_and_broken),
      cmocka_unit_test(every_rule_has_a_case),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
