// SPDX-License-Identifier: Apache-2.0
//
// image: the tests' own check that registers are written before they are read
// (ptx_defined.h) finds what it should, and nothing else.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ptx_defined.h"
#include "ptx_text.h"

// A body, and the register that its first wrong read reads; NULL: none does.
typedef struct defined_case_t {
  const char* body;
  const char* reads;
} defined_case_t;

#define READ  "st.global.u32 [%rd1], %r1;\n"
#define P     "setp.eq.u32 %p1, %r9, 0;\n"
#define HEAD  "ld.param.u64 %rd1, [p]; ld.param.u32 %r9, [n];\n"
#define WRITE "mov.u32 %r1, 5;\n"

static void check(const defined_case_t* cases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    char text[4096], out[PTX_DEFINED_BYTES], name[32];
    snprintf(text, sizeof(text), "%s%s%s", PTX_KERNEL_HEAD HEAD, cases[i].body,
             PTX_KERNEL_TAIL);
    kilni_image_ptx_module_t* m = ptx_read(text);
    const char* problem = ptx_defined(m, out);
    kilni_image_ptx_module_release(m);
    if (cases[i].reads == NULL) {
      if (problem != NULL) fail_msg("%s\n%s", problem, cases[i].body);
      continue;
    }
    if (problem == NULL) fail_msg("not found:\n%s", cases[i].body);
    assert_ptr_equal(problem, out);
    snprintf(name, sizeof(name), "reads %s,", cases[i].reads);
    if (strstr(out, name) == NULL) {
      fail_msg("%s, not %s\n%s", out, name, cases[i].body);
    }
  }
}

#define CHECK_ALL(cases) check(cases, sizeof(cases) / sizeof((cases)[0]))

static void straight(void** state) {
  (void)state;
  static const defined_case_t kCases[] = {
      {WRITE READ, NULL},
      {READ, "%r1"},
      {READ WRITE, "%r1"},
      {"mov.u32 %r1, %r1;", "%r1"},
      {"add.u32 %r2, %r9, %r1;", "%r1"},
      // In addresses, vectors and guards; both that one writes.
      {"ld.global.u32 %r1, [%rd2];", "%rd2"},
      {"st.global.v2.u32 [%rd1], {%r9, %r1};", "%r1"},
      {"ld.global.v2.u32 {%r1, %r2}, [%rd1]; st.global.u32 [%rd1], %r2;" READ,
       NULL},
      {"mov.b64 %rd2, {%r9, %r2};", "%r2"},
      {"mov.b64 {%r1, %r2}, %rd1;" READ, NULL},
      {"@%p1 ret;", "%p1"},
      {"setp.eq.u32 %p1|%p2, %r9, 0; @%p2 ret; @!%p1 ret;", NULL},
      {"setp.eq.and.u32 %p1, %r9, 0, !%p2;", "%p2"},
      // First operands that are read.
      {"bar.sync %r1;", "%r1"},
      {P "bar.red.popc.u32 %r1, 0, %p1;" READ, NULL},
      {"nanosleep.u32 %r1;", "%r1"},
      {"sust.b.2d.b32.trap [%rd1, {%r9, %r1}], {%r9};", "%r1"},
      {"red.global.add.u32 [%rd1], %r1;", "%r1"},
      {"atom.global.add.u32 %r1, [%rd1], %r9;" READ, NULL},
      // Nobody comes there.
      {"ret;" READ, NULL},
      {"bra.uni L;" READ "L: ret;", NULL},
      {"trap;" READ, NULL},
  };
  CHECK_ALL(kCases);
}

static void branches(void** state) {
  (void)state;
  static const defined_case_t kCases[] = {
      {P "@%p1 bra L;" WRITE "L:" READ, "%r1"},
      {P "@%p1 bra L;" WRITE "bra E; L: mov.u32 %r1, 6; E:" READ, NULL},
      {P "@%p1 bra L;" WRITE "bra E; L: mov.u32 %r2, 6; E:" READ, "%r1"},
      {WRITE P "@%p1 bra L; mov.u32 %r1, 6; L:" READ, NULL},
      // Who has not written leaves.
      {P "@%p1 ret;" WRITE READ, NULL},
      {P "@%p1 bra L;" WRITE "bra E; L: ret; E:" READ, NULL},
      {P "@%p1 bra L;" WRITE "L: @!%p1 ret;" READ, "%r1"},
      // The way that has not written comes last, and from behind.
      {P "@%p1 bra B;" WRITE "bra A; C:" READ "ret; A: bra C; B: bra A;",
       "%r1"},
      // By a table.
      {"T: .branchtargets A, B; brx.idx %r9, T; A:" WRITE "B:" READ, "%r1"},
      {"T: .branchtargets A, B; brx.idx %r9, T; A:" WRITE
       "bra E; B: mov.u32 %r1, 6; E:" READ,
       NULL},
      {"T: .branchtargets A, B; brx.idx %r1, T; A: B: ret;", "%r1"},
  };
  CHECK_ALL(kCases);
}

static void loops(void** state) {
  (void)state;
  static const defined_case_t kCases[] = {
      // No round at all.
      {"mov.u32 %r2, 0; L: setp.ge.u32 %p1, %r2, %r9; @%p1 bra E;" WRITE
       "add.u32 %r2, %r2, 1; bra L; E:" READ,
       "%r1"},
      {"mov.u32 %r2, 0;" WRITE
       "L: setp.ge.u32 %p1, %r2, %r9; @%p1 bra E; mov.u32 %r1, 6;"
       "add.u32 %r2, %r2, 1; bra L; E:" READ,
       NULL},
      // One round at least.
      {"mov.u32 %r2, 0; L:" WRITE
       "add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r9; @%p1 bra L;" READ,
       NULL},
      // Written by the round before, but for the first one.
      {"mov.u32 %r2, 0; L:" READ WRITE
       "add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r9; @%p1 bra L;",
       "%r1"},
      // Two loops, the inner one leaves before it has written.
      {"mov.u32 %r2, 0; L: add.u32 %r2, %r2, 1; M: setp.eq.u32 %p2, %r2, 7;"
       "@%p2 bra N;" WRITE
       "setp.lt.u32 %p1, %r2, %r9; @%p1 bra L; bra E; N: ret; E:" READ,
       NULL},
      {"mov.u32 %r2, 0; L: add.u32 %r2, %r2, 1; M: setp.eq.u32 %p2, %r2, 7;"
       "@%p2 bra E;" WRITE "setp.lt.u32 %p1, %r2, %r9; @%p1 bra L; E:" READ,
       "%r1"},
  };
  CHECK_ALL(kCases);
}

#define NOT "not.pred %p2, %p1;\n"

static void guards(void** state) {
  (void)state;
  static const defined_case_t kCases[] = {
      {P "@%p1 mov.u32 %r1, 5;" READ, "%r1"},
      {P WRITE "@%p1 mov.u32 %r1, 6;" READ, NULL},
      {P "@%p1 mov.u32 %r1, 5; @%p1 st.global.u32 [%rd1], %r1;", NULL},
      {P "@%p1 mov.u32 %r1, 5; @!%p1 st.global.u32 [%rd1], %r1;", "%r1"},
      {P "@%p1 mov.u32 %r1, 5; @!%p1 mov.u32 %r1, 6;" READ, NULL},
      {P "@%p1 mov.u32 %r1, 5; @%p1 mov.u32 %r1, 6;" READ, "%r1"},
      // Another value since then.
      {P "@%p1 mov.u32 %r1, 5; setp.eq.u32 %p1, %r9, 1;"
         "@%p1 st.global.u32 [%rd1], %r1;",
       "%r1"},
      {P "@%p1 mov.u32 %r1, 5; setp.eq.u32 %p1, %r9, 1;"
         "@!%p1 mov.u32 %r1, 6;" READ,
       "%r1"},
      {P "@%p1 mov.u32 %r1, 5; @!%p1 mov.u32 %r1, 6;"
         "setp.eq.u32 %p1, %r9, 1;" READ,
       NULL},
      {P "@!%p1 mov.u32 %r1, 5; setp.eq.u32 %p1, %r9, 1;"
         "@%p1 mov.u32 %r1, 6;" READ,
       "%r1"},
      {P "@%p1 setp.eq.u32 %p1, %r9, 1; @%p1 mov.u32 %r1, 5;" READ, "%r1"},
      {"@%p1 setp.eq.u32 %p1, %r9, 1;", "%p1"},
      // Two guards.
      {P "setp.eq.u32 %p2, %r9, 1; @%p1 mov.u32 %r1, 5;"
         "@%p2 st.global.u32 [%rd1], %r1;",
       "%r1"},
      {P "setp.eq.u32 %p2, %r9, 1; @%p1 mov.u32 %r1, 5; @!%p2 mov.u32 %r1, "
         "6;" READ,
       "%r1"},
      // Behind branches.
      {P "@%p1 mov.u32 %r1, 5; @!%p1 bra E;" READ "E: ret;", NULL},
      {P "@%p1 mov.u32 %r1, 5; @%p1 bra E;" READ "E: ret;", "%r1"},
      {P "@%p1 mov.u32 %r1, 5; @!%p1 ret;" READ, NULL},
      {P "@%p1 mov.u32 %r1, 5; @%p1 bra E; mov.u32 %r1, 6; E:" READ, NULL},
      // Negations and copies.
      {P NOT "@%p1 mov.u32 %r1, 5; @%p2 mov.u32 %r1, 6;" READ, NULL},
      {P NOT "@%p1 mov.u32 %r1, 5; @!%p2 mov.u32 %r1, 6;" READ, "%r1"},
      {P NOT "@%p1 mov.u32 %r1, 5; @!%p2 bra E; mov.u32 %r1, 6; E:" READ, NULL},
      {P NOT "@%p1 mov.u32 %r1, 5; @%p2 bra E; mov.u32 %r1, 6; E:" READ, "%r1"},
      {P "mov.pred %p2, %p1; @%p1 mov.u32 %r1, 5; @!%p2 mov.u32 %r1, 6;" READ,
       NULL},
      {P NOT
       "not.pred %p3, %p2; @%p3 mov.u32 %r1, 5; @%p2 mov.u32 %r1, 6;" READ,
       NULL},
      // Of what has a value of its own by now.
      {P NOT "@%p1 mov.u32 %r1, 5; setp.eq.u32 %p1, %r9, 1;"
             "@%p2 mov.u32 %r1, 6;" READ,
       "%r1"},
      {P NOT "setp.eq.u32 %p1, %r9, 1; @%p1 mov.u32 %r1, 5;"
             "@%p2 mov.u32 %r1, 6;" READ,
       "%r1"},
      {P NOT "setp.eq.u32 %p2, %r9, 1; @%p1 mov.u32 %r1, 5;"
             "@%p2 mov.u32 %r1, 6;" READ,
       "%r1"},
      // A guard that the round before has set.
      {"mov.u32 %r2, 0; L:" P
       "@%p1 mov.u32 %r1, 5; add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, %r9;"
       "@%p3 bra L; @%p1 st.global.u32 [%rd1], %r1;",
       NULL},
      {P "mov.u32 %r2, 0; @%p1 mov.u32 %r1, 5; L:"
         "@%p1 st.global.u32 [%rd1], %r1; add.u32 %r2, %r2, 1;"
         "setp.lt.u32 %p1, %r2, %r9; @%p1 bra L;",
       "%r1"},
  };
  CHECK_ALL(kCases);
}

// Each function by itself; what it is handed in registers is written.
static void functions(void** state) {
  (void)state;
  static const char kText[] = PTX_HEAD
      ".func (.reg .u32 %a) f(.reg .u32 %b) { add.u32 %a, %b, 1; ret; }\n"
      ".func (.reg .u32 %a) g(.reg .u32 %b) { .reg .u32 %c;\n"
      "call (%c), f, (%b);\n"
      "add.u32 %a, %c, 1; ret; }\n"
      ".func (.reg .u32 %a) h(.reg .u32 %b) { .reg .u32 %c;\n"
      "call (%a), f, (%c); ret; }\n";
  char out[PTX_DEFINED_BYTES];
  kilni_image_ptx_module_t* m = ptx_read(kText);
  assert_ptr_equal(ptx_defined(m, out), out);
  assert_string_equal(out,
                      "h, line 9: call reads %c, which may not be written");
  kilni_image_ptx_module_release(m);
}

// More than one word of registers, and a text that is none.
static void texts(void** state) {
  (void)state;
  char text[8192], out[PTX_DEFINED_BYTES];
  for (uint32_t wrong = 0; wrong <= 200; wrong += 40) {
    size_t size = (size_t)snprintf(
        text, sizeof(text),
        PTX_HEAD ".entry k() {\n.reg .u32 %%s<202>;\nmov.u32 %%s0, 1;\n");
    for (uint32_t i = 1; i <= 200; i++) {
      size += (size_t)snprintf(text + size, sizeof(text) - size,
                               "not.b32 %%s%u, %%s%u;\n", i,
                               i - (i == wrong ? 0 : 1));
    }
    size += (size_t)snprintf(text + size, sizeof(text) - size, "ret;\n}\n");
    const kiln_string_view_t view = {text, size};
    char want[64];
    snprintf(want, sizeof(want), "line %u: not.b32 reads %%s%u,", wrong + 6,
             wrong);
    const char* problem = ptx_defined_text(view, out);
    if (wrong == 0) {
      assert_null(problem);
    } else {
      assert_non_null(strstr(problem, want));
    }
  }
  const kiln_string_view_t none = {"none", 4};
  assert_non_null(strstr(ptx_defined_text(none, out), "refused"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(straight),  cmocka_unit_test(branches),
      cmocka_unit_test(loops),     cmocka_unit_test(guards),
      cmocka_unit_test(functions), cmocka_unit_test(texts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
