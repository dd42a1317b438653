// SPDX-License-Identifier: Apache-2.0
//
// image: bad PTX is refused at its place.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ptx_text.h"

typedef struct error_case_t {
  const char* text;
  uint32_t line;
  uint32_t column;
  const char* says;  // part of the message
} error_case_t;

// The body stands in line 7, from column 1.
#define BODY(text, column, says) {PTX_KERNEL(text), 7, column, says}
// The text stands in line 4, from column 1.
#define MODULE(text, column, says) {PTX_HEAD text, 4, column, says}

static const error_case_t kCases[] = {
    BODY("foo.u32 %r1;", 1, "\"foo\" is not an instruction"),
    BODY("ADD.u32 %r1, %r2, %r3;", 1, "\"ADD\" is not an instruction"),
    BODY("add.foo.u32 %r1, %r2, %r3;", 4, "\".foo\" is not known"),
    BODY("add.u32 %r1, %r2;", 1, "takes 3 to 3 operands and has 2"),
    BODY("add.u32 %r1, %r2, %r3, %r4;", 1, "has 4"),
    BODY("ret 1;", 1, "has 1"),
    BODY("mov.u32 %r1, %x;", 14, "\"%x\" is not declared"),
    BODY("mov.u32 %r20, 1;", 9, "\"%r20\" is not declared"),
    BODY("mov.u32 $x, 1;", 9, "\"$x\" is not declared"),
    BODY("mov.u32 %r1, %envreg32;", 14, "is not declared"),
    BODY("ld.global.u32 %r1, [nosuch];", 21, "\"nosuch\" is not declared"),
    BODY("ld.global.u32 %r1, [%rd1-4];", 25, "written with +"),
    BODY("ld.global.u32 %r1, [%rd1+%r2];", 26, "a constant"),
    BODY("ld.global.u32 %r1, [%rd1;", 25, "\"]\""),
    BODY("mov.u32 %r1 %r2;", 13, "\";\""),
    {PTX_KERNEL("mov.u32 %r1, %r2"), 8, 1, "\"ret\" where \";\" belongs"},
    BODY("mov.u32 %r1, %r2,;", 18, "an operand"),
    BODY("mov . u32 %r1, %r2;", 5, "an operand"),
    BODY(";", 1, "an instruction"),
    BODY("mov.u32 %r1, 1;;", 16, "an instruction"),
    BODY("mov.u32 %r1, 08;", 14, "malformed number"),
    BODY("mov.u32 %r1, 99999999999999999999;", 14, "does not fit 64 bits"),
    BODY("mov.f32 %f1, 0f3F80;", 14, "exactly 8"),
    BODY("mov.f64 %fd1, 0d3FF000000000000;", 15, "exactly 16"),
    BODY("mov.f32 %f1, -0f3F800000;", 14, "cannot be applied"),
    BODY("mov.u32 %r1, 1/0;", 15, "divided by zero"),
    BODY("mov.u32 %r1, 1 ? 2 : 1/0;", 23, "divided by zero"),
    BODY("mov.u32 %r1, (1;", 16, "\")\""),
    BODY("mov.u32 %r1, -%r2;", 14, "cannot be negated"),
    BODY("add.u32 %r1, %r2, !%r3;", 19, "cannot be negated"),
    BODY("mov.u32 %r1, 'a';", 14, "PTX does not allow"),
    BODY("mov.u32 %r1, %tid.q;", 18, "no component .q"),
    BODY("mov.u32 %r1, %laneid.x;", 21, "no component .x"),
    BODY("mov.u32 %r1, %r2.x;", 17, "no component .x"),
    BODY("bra nolabel;", 5, "label \"nolabel\" is not found"),
    BODY("bra %r1;", 5, "is not found"),
    BODY("bra L1; { L1: }", 5, "label \"L1\" is not found"),
    BODY(".reg .b32 x; bra x;", 18, "\"x\" is not a label"),
    BODY("L1: L1:", 5, "declared twice in one scope, first in line 7"),
    BODY(".reg .b32 %r3;", 11, "declared twice"),
    BODY(".reg .b32 %r<5>;", 11, "declared twice"),
    BODY(".reg .b32 L; L: ret;", 14, "declared twice"),
    BODY(".reg .b32 q; .shared .b32 q;", 27, "declared twice"),
    BODY(".reg .b32 x[4];", 12, "\";\""),
    BODY(".reg .b32 x<1+1>;", 14, "\">\""),
    BODY(".reg .b32 _;", 11, "a name"),
    BODY("@%r1 bra L; L:", 2, "\"%r1\" is not a predicate"),
    BODY("@p bra L; L:", 2, "\"p\" is not a predicate"),
    BODY("@%p1 L: ret;", 6, "\"L\" is not an instruction"),
    BODY("@%p1 { ret; }", 6, "an instruction"),
    BODY("call nosuch, ();", 6, "\"nosuch\" is not a function"),
    BODY("call %rd1, (%r1);", 6, "needs a prototype"),
    BODY("call k, ();", 6, "2 parameters"),
    BODY("brx.idx %r1, ts; ts: .branchtargets L0; L0:", 14, "not declared"),
    BODY("ts: .branchtargets L9;", 20, "\"L9\" is not found"),
    BODY(".branchtargets L1;", 1, "a state space"),
    BODY("ts: .calltargets nosuch;", 18, "is not a function"),
    BODY(".shared .align 3 .b8 x[4];", 16, "not a power of two"),
    BODY(".shared .b8 .align 4 x[4];", 13, "a name"),
    BODY(".shared .b8 x[];", 13, "has no size"),
    BODY(".shared .b8 x[0];", 13, "has no size"),
    BODY(".shared .b8 x[-1];", 15, "an array dimension"),
    BODY(".shared .u32 x = 4;", 14, "cannot have an initial value"),
    BODY(".local .pred x;", 8, "can only be a register"),
    BODY(".extern .shared .b8 x[];", 1, "a state space"),
    BODY(".pragma nounroll;", 9, "a string"),
    BODY("mov.u32 %r1, {};", 14, "without elements"),
    BODY("/* unterminated", 1, "never ends"),
    BODY(".pragma \"x", 9, "never ends"),
    MODULE("garbage", 1, "a directive"),
    MODULE(".garbage", 1, "a state space"),
    MODULE(".version 8.0", 1, "a state space"),
    MODULE(".target sm_90", 1, "a state space"),
    MODULE(".address_size 64", 1, "a state space"),
    MODULE(".reg .b32 x;", 1, "belong in a function"),
    MODULE(".local .b32 x;", 1, "belong in a function"),
    MODULE(".param .b32 x;", 1, "belong in a function"),
    MODULE(".global .pred x;", 9, "can only be a register"),
    MODULE(".global .foo x;", 9, "a type"),
    MODULE(".global .u32 a; .global .u32 a;", 30, "defined twice"),
    MODULE(".extern .global .u32 a; .extern .global .u64 a;", 46, "differs"),
    MODULE(".extern .global .u32 a; .global .u32 a=4;", 38, "declared .extern"),
    MODULE(".global .u32 f; .func f() { ret; }", 23, "already a variable"),
    MODULE(".func f() { ret; } .global .u32 f;", 33, "already a function"),
    MODULE(".func f() { ret; } .func f() { ret; }", 26, "defined twice"),
    MODULE(".func f(); .func f(.param .u32 x) { ret; }", 18, "differs"),
    MODULE(".extern .func f(); .visible .func f() { ret; }", 35,
           "declared .extern"),
    MODULE(".extern .func f() { ret; }", 15, "has a body"),
    MODULE(".common .func f() { ret; }", 9, "a state space"),
    MODULE(".func f(.param .b32 x, .param .b32 x) { ret; }", 36,
           "declared twice"),
    MODULE(".func f(.param .b32 x) { .reg .b32 x; ret; }", 36,
           "declared twice"),
    MODULE(".func f(.param .b32 _) { ret; }", 21, "a name"),
    MODULE(".func .noreturn f() { trap; }", 7, "a function's name"),
    MODULE(".entry e(.reg .u32 x) { ret; }", 20, "must be a .param"),
    MODULE(".entry e(.param .b8 x[]) { ret; }", 21, "must have a size"),
    MODULE(".entry e() .maxntid 1,2,3,4 { ret; }", 26, "\";\""),
    MODULE(".entry e() .maxntid 0 { ret; }", 21, "no meaning"),
    MODULE(".entry e() .reqntid 32 .maxntid 64 { ret; }", 12, "exclude"),
    MODULE(".entry e() {", 13, "the text ends"),
    MODULE(".entry e() { { ret; }", 22, "the text ends"),
    MODULE(".entry e() { ret; };", 20, "a directive"),
    MODULE(".entry e(", 10, "the text ends"),
    MODULE(".section .debug { .b8 1", 1, "a section that never ends"),
    {".target sm_90\n", 1, 1, "does not begin with .version"},
    {"", 1, 1, "does not begin with .version"},
    {"#include <x>\n", 1, 1, "PTX does not allow"},
    {".version 8\n.target sm_90\n", 1, 10, "a version"},
    {".version 8.0\n", 2, 1, ".target"},
    {".version 8.0\n.target foo\n", 2, 9, "a target"},
    {".version 8.0\n.target sm_\n", 2, 9, "a target"},
    {".version 8.0\n.target debug\n", 3, 1, "an architecture"},
    {".version 8.0\n.target sm_90\n.address_size 16\n", 3, 15, "not 64"},
    {".version 8.0\n.target sm_90\n.address_size 32\n", 3, 15, "not 64"},
};

static void refused_at_the_offending_token(void** state) {
  (void)state;
  size_t wrong = 0;
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    const error_case_t* c = &kCases[i];
    kiln_status_t status = ptx_refuse(c->text, NULL);
    char place[64];
    snprintf(place, sizeof(place), "test: line %u, column %u: ", c->line,
             c->column);
    const char* message = kiln_status_message(status);
    if (kiln_status_code(status) != KILN_STATUS_BAD_DATA ||
        strncmp(message, place, strlen(place)) != 0 ||
        strstr(message, c->says) == NULL || kiln_status_fix(status) == NULL ||
        kiln_status_fix(status)[0] == '\0') {
      print_message("%s\n  wanted %s%s\n  got    %s\n", c->text, place, c->says,
                    message);
      wrong++;
    }
    assert_string_equal(kiln_status_origin(status), "image");
    kiln_status_free(status);
  }
  assert_int_equal(wrong, 0);
}

// The place is the operand's, and the message names both types.
static void operands_are_named_with_what_they_must_be(void** state) {
  (void)state;
  static const struct {
    const char* body;
    uint32_t column;
    const char* says;
  } kOperands[] = {
      {"mov.u32 %r1, %f1;", 14, "must be of type .u32, and is .f32"},
      {"cvt.s64.s32 %r1, %r2;", 13, "must be of type .s64 or wider, and is"},
      {"ld.global.u32 %r1, [%r2];", 20, "an address of 64 bits, and is .b32"},
      {"ld.global.u32 %r1, [p];", 20, "address in .global, and is one in .p"},
      {"ld.shared.u32 %r1, [16];", 20, "of a variable, and is a number"},
      {"mov.b64 %rd1, {%r1, %rd2};", 15, "parts of one type that make up .b64"},
      {"ld.global.v2.u32 %r1, [%rd1];", 18, "a vector of 2, and is one of 0"},
      {"bar.sync 16;", 10, "a number from 0 to 15"},
      {"bar.sync 0, 33;", 13, "a multiple of 32"},
      {"add.u32 %r1, %tid.x, 1;", 14, "a register or a number, and is %tid"},
      {"atom.global.and.u32 %r1, [%rd1], 1;", 1, "does not work on .u32"},
      {"st.const.u32 [%rd1], 1;", 1, "does not work on .const"},
      {"st.param.u32 [n], 1;", 14, "a parameter of this function"},
      {"red.global.add.u32 [%rd1], 1, %rd2;", 35, "does not take 3 operands"},
  };
  for (size_t i = 0; i < sizeof(kOperands) / sizeof(kOperands[0]); i++) {
    char text[1024];
    char place[64];
    snprintf(text, sizeof(text), "%s%s%s", PTX_KERNEL_HEAD, kOperands[i].body,
             PTX_KERNEL_TAIL);
    snprintf(place, sizeof(place), "line 7, column %u: ", kOperands[i].column);
    kiln_status_t status = ptx_refuse(text, NULL);
    const char* message = kiln_status_message(status);
    if (strstr(message, place) == NULL ||
        strstr(message, kOperands[i].says) == NULL ||
        kiln_status_fix(status) == NULL) {
      fail_msg("%s: %s", kOperands[i].body, message);
    }
    kiln_status_free(status);
  }
}

static void the_line_and_a_caret_are_shown(void** state) {
  (void)state;
  kiln_status_t status =
      ptx_refuse(PTX_KERNEL("\tadd.u32 %r1, %nope, 4;"), NULL);
  char text[2048];
  kiln_status_format(status, sizeof(text), text, NULL);
  assert_non_null(strstr(text, "|  add.u32 %r1, %nope, 4;\n"));
  assert_non_null(strstr(text, "|               ^\n"));
  kiln_status_free(status);
}

static void long_lines_are_cut_around_the_caret(void** state) {
  (void)state;
  char body[4096];
  memset(body, ' ', sizeof(body));
  memcpy(body + 2000, "bad;", 4);
  body[sizeof(body) - 1] = '\0';
  static char text[8192];
  snprintf(text, sizeof(text), "%s%s}", PTX_KERNEL_HEAD, body);
  kiln_status_t status = ptx_refuse(text, NULL);
  assert_non_null(strstr(kiln_status_message(status), "column 2001"));
  char whole[2048];
  size_t length;
  kiln_status_format(status, sizeof(whole), whole, &length);
  assert_true(length < 600);
  assert_non_null(strstr(whole, "bad;"));
  kiln_status_free(status);
}

static void other_versions_are_named(void** state) {
  (void)state;
  static const char* const kTexts[] = {".version 5.9\n.target sm_30\n",
                                       ".version 10.0\n.target sm_90\n",
                                       ".version 1.4\n.target sm_13\n"};
  static const char* const kVersions[] = {"5.9", "10.0", "1.4"};
  for (size_t i = 0; i < 3; i++) {
    kiln_status_t status = ptx_refuse(kTexts[i], NULL);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_UNSUPPORTED);
    assert_non_null(strstr(kiln_status_message(status), kVersions[i]));
    assert_non_null(kiln_status_fix(status));
    kiln_status_free(status);
  }
}

// No prefix of a good text is worse than an error.
static void truncated_text_is_an_error_at_most(void** state) {
  (void)state;
  static const char kText[] = PTX_HEAD
      ".global .u32 t[2][2] = {{1, 2}, {3, 4}};\n"
      ".func (.param .b32 r) f(.param .b32 a) { ret; }\n"
      ".entry e(.param .u64 p) .reqntid 32 {\n.reg .b32 %r<4>;\n"
      ".param .b32 x; .param .b32 y;\ncall (y), f, (x);\n"
      "L: bra.uni L;\nld.param.v2.u32 {%r1, %r2}, [p+8];\nret;\n}\n";
  for (size_t size = 0; size < sizeof(kText); size++) {
    kilni_image_ptx_module_t* module;
    kiln_bytes_view_t bytes = {(const uint8_t*)kText, size};
    kiln_status_t status = kilni_image_ptx_module_create(
        bytes, "cut", NULL, kiln_allocator_libc(), &module);
    if (!kiln_status_is_ok(status)) {
      assert_int_equal(kiln_status_code(status), KILN_STATUS_BAD_DATA);
    }
    kiln_status_free(status);
    kilni_image_ptx_module_release(module);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refused_at_the_offending_token),
      cmocka_unit_test(operands_are_named_with_what_they_must_be),
      cmocka_unit_test(the_line_and_a_caret_are_shown),
      cmocka_unit_test(long_lines_are_cut_around_the_caret),
      cmocka_unit_test(other_versions_are_named),
      cmocka_unit_test(truncated_text_is_an_error_at_most),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
