// SPDX-License-Identifier: Apache-2.0
//
// image: tests of what a kernel does with its parameters and thread numbers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fault_run.h"
#include "image/image.h"
#include "ptx_text.h"

#define HEAD                                                      \
  PTX_HEAD                                                        \
  ".visible .entry k(.param .u64 a, .param .u64 b, .param .u32 "  \
  "n)\n{\n.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>;\n" \
  ".reg .b64 %rd<20>; .reg .f32 %f<9>; .reg .f64 %fd<9>;\n"       \
  ".shared .b8 tile[256];\n"
#define TAIL "\nret;\n}\n"
// A kernel with the addresses of a and b in %rd1 and %rd2, and those of the
// thread's own elements of four bytes in %rd4 and %rd5, of eight in %rd7.
#define KERNEL(body)                                                     \
  HEAD "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];\n"               \
       "cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;\n" \
       "mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;\n"               \
       "add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;\n"           \
       "mul.wide.u32 %rd6, %r1, 8; add.s64 %rd7, %rd1, %rd6;\n" body TAIL

static kiln_image_use_t* use_of(const char* text) {
  kiln_bytes_view_t bytes = {(const uint8_t*)text, strlen(text)};
  kiln_image_t* image;
  kiln_image_use_t* use;
  uint32_t index;
  kiln_status_t status = kiln_image_create(bytes, NULL, &image);
  if (!kiln_status_is_ok(status)) fail_msg("%s", kiln_status_message(status));
  assert_null(kiln_image_kernel_find(image, "k", &index));
  assert_null(kiln_image_use_create(image, index, &use));
  kiln_image_release(image);
  return use;
}

// "f4/4 b8": floats of 4 bytes that lie 4 apart, and bits of 8.
static const char* seen(const char* text, uint32_t param) {
  static char out[128];
  kiln_image_use_t* use = use_of(text);
  out[0] = 0;
  for (uint32_t i = 0; i < kiln_image_use_access_count(use, param); i++) {
    const kiln_image_access_t* a = kiln_image_use_access(use, param, i);
    size_t used = strlen(out);
    (void)snprintf(out + used, sizeof(out) - used, "%s%c%u",
                   used == 0 ? "" : " ", " bif"[a->kind], a -> bytes);
    used = strlen(out);
    if (a->pitch == 0) continue;
    (void)snprintf(out + used, sizeof(out) - used, "/%u", a->pitch);
  }
  assert_null(kiln_image_use_access(use, param,
                                    kiln_image_use_access_count(use, param)));
  kiln_image_use_release(use);
  return out;
}

#define SEES(body, what) assert_string_equal(seen(KERNEL(body), 0), what)

static void arithmetic_tells_floats(void** state) {
  (void)state;
  SEES("ld.global.f32 %f1, [%rd4]; add.f32 %f2, %f1, %f1;", "f4/4");
  SEES("ld.global.f64 %fd1, [%rd7]; mul.f64 %fd2, %fd1, %fd1;", "f8/8");
  // Untyped registers are what is done with them.
  SEES("ld.global.b32 %r2, [%rd4]; add.f32 %r3, %r2, %r2;", "f4/4");
  SEES("ld.global.v2.f32 {%f1, %f2}, [%rd7]; add.f32 %f3, %f1, %f2;", "f4/8");
  SEES("add.f32 %f1, 0f3F800000, 0f3F800000; st.global.f32 [%rd4], %f1;",
       "f4/4");
  SEES("ld.global.f32 %f1, [%rd4]; cvt.f64.f32 %fd1, %f1;", "f4/4");
  SEES("ld.global.f32 %f1, [%rd4]; setp.gt.f32 %p1, %f1, 0f00000000;", "f4/4");
  // By way of other registers, of other lanes and of the block's memory.
  SEES("ld.global.f32 %f1, [%rd4]; mov.f32 %f2, %f1; neg.f32 %f3, %f2;",
       "f4/4");
  SEES(
      "ld.global.f32 %f1, [%rd4]; mov.b32 %r2, %f1;\n"
      "shfl.sync.bfly.b32 %r3|%p1, %r2, 1, 31, -1; mov.b32 %f2, %r3;\n"
      "max.f32 %f3, %f2, %f2;",
      "f4/4");
  SEES(
      "ld.global.f32 %f1, [%rd4]; st.shared.f32 [tile], %f1;\n"
      "ld.shared.f32 %f2, [tile+4]; fma.rn.f32 %f3, %f2, %f2, %f2;",
      "f4/4");
  SEES("ld.global.f32 %f1, [%rd4]; st.global.f32 [%rd5], %f1;", "b4/4");
  // Words that are loaded as integers hold a float's bits.
  SEES("ld.global.u32 %r2, [%rd4]; mov.b32 %f1, %r2; add.f32 %f2, %f1, %f1;",
       "b4/4");
}

static void what_is_moved_may_be_anything(void** state) {
  (void)state;
  SEES("ld.global.f32 %f1, [%rd4];", "b4/4");
  SEES("ld.global.u32 %r2, [%rd4]; add.s32 %r3, %r2, 1;", "b4/4");
  SEES(
      "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd4];\n"
      "st.global.v4.f32 [%rd5], {%f1, %f2, %f3, %f4};",
      "b4/4");
  // Two halves in a float.
  SEES(
      "ld.global.f32 %f1, [%rd4]; mov.b32 {%h1, %h2}, %f1;\n"
      "mul.f16 %h1, %h1, %h2;",
      "b4/4");
  // The bits of a float that is a float, too.
  SEES(
      "ld.global.f32 %f1, [%rd4]; mul.f32 %f2, %f1, %f1; mov.b32 %r2, %f1;\n"
      "shr.u32 %r3, %r2, 1;",
      "b4/4");
  SEES(
      "ld.global.u32 %r2, [%rd4]; st.shared.u32 [tile], %r2;\n"
      "ld.shared.f32 %f1, [tile]; add.f32 %f1, %f1, %f1;",
      "b4/4");
  // A register that is used again.
  SEES(
      "ld.global.b32 %r2, [%rd4]; st.global.b32 [%rd5], %r2;\n"
      "ld.shared.b32 %r2, [tile]; add.f32 %r3, %r2, %r2;",
      "b4/4");
  SEES("ld.global.u16 %h1, [%rd4]; add.f16 %h2, %h1, %h1; xor.b16 %h3, %h1, 1;",
       "b2/4");
  SEES("ld.global.v2.u64 {%rd8, %rd9}, [%rd4];", "b8/4");
}

static void halves_are_floats_in_words(void** state) {
  (void)state;
  SEES("ld.global.u16 %h1, [%rd4]; add.f16 %h2, %h1, %h1;", "f2/4");
  SEES("ld.global.b16 %h1, [%rd4]; cvt.f32.bf16 %f1, %h1;", "f2/4");
  SEES("ld.global.u32 %r2, [%rd4]; add.f16x2 %r3, %r2, %r2;", "f2/4");
  SEES("cvt.rn.bf16x2.f32 %r2, %f1, %f2; st.global.u32 [%rd4], %r2;", "f2/4");
  // Words of a vector may be more than what one of them is used as.
  SEES("ld.global.v2.b32 {%r2, %r3}, [%rd7]; fma.rn.bf16x2 %r4, %r2, %r3, %r3;",
       "b4/8");
  SEES("ld.global.u32 %r2, [%rd4]; add.f16x2 %r3, %r2, %r2; not.b32 %r4, %r2;",
       "b4/4");
}

// What a struct that is passed by value is read as: "f4@0 b4@4".
static const char* members(const char* body) {
  static char out[160];
  char text[2048];
  (void)snprintf(text, sizeof(text),
                 ".version 8.0\n.target sm_75\n.address_size 64\n"
                 ".visible .entry k(.param .u64 q, .param .align 8 .b8 p[32])\n"
                 "{\n.reg .b32 %%r<9>; .reg .f32 %%f<9>; .reg .b64 %%rd<9>;\n"
                 ".reg .f64 %%fd<9>; .reg .b16 %%rs<9>;\n%s\nret;\n}\n",
                 body);
  kiln_image_use_t* use = use_of(text);
  out[0] = 0;
  for (uint32_t i = 0; i < kiln_image_use_access_count(use, 1); i++) {
    const kiln_image_access_t* a = kiln_image_use_access(use, 1, i);
    size_t used = strlen(out);
    assert_int_equal(a->pitch, 0);
    (void)snprintf(out + used, sizeof(out) - used, "%s%c%u@%u",
                   used == 0 ? "" : " ", " bif"[a->kind], a -> bytes,
                   a -> offset);
  }
  assert_int_equal(kiln_image_use_access_count(use, 0), 0);
  kiln_image_use_release(use);
  return out;
}

static void members_of_structs_are_told(void** state) {
  (void)state;
  assert_string_equal(
      members("ld.param.f32 %f1, [p]; ld.param.u32 %r1, [p+4];\n"
              "cvt.rn.f32.s32 %f2, %r1; mul.f32 %f3, %f1, %f2;"),
      "f4@0 b4@4");
  assert_string_equal(
      members("ld.param.v2.b32 {%r1, %r2}, [p+8];\n"
              "add.f32 %r3, %r1, %r1; ld.param.b64 %rd1, [p+16];\n"
              "add.f64 %rd2, %rd1, %rd1; ld.param.s32 %r4, [p+24];"),
      "b4@8 b4@12 f8@16 i4@24");
  assert_string_equal(
      members("ld.param.b16 %rs1, [p+2]; add.f16 %rs2, %rs1, %rs1;"), "f2@2");
  // Both ways, as of a union; and whoever has its address may read all of it.
  assert_string_equal(members("ld.param.f32 %f1, [p]; add.f32 %f2, %f1, %f1;\n"
                              "ld.param.u32 %r1, [p]; add.u32 %r2, %r1, %r1;"),
                      "f4@0 b4@0");
  assert_string_equal(members("ld.param.f32 %f1, [p]; add.f32 %f2, %f1, %f1;\n"
                              "mov.b64 %rd1, p;"),
                      "");
}

static void integers(void** state) {
  (void)state;
  SEES("ld.global.s32 %r2, [%rd4];", "i4/4");
  SEES("atom.global.add.u32 %r2, [%rd4], 1;", "i4/4");
  SEES("red.global.inc.u32 [%rd4], 7;", "i4/4");
  SEES("atom.global.add.f32 %f1, [%rd4], 0f3F800000;", "f4/4");
  // The greatest of floats is often taken as that of integers.
  SEES("atom.global.max.s32 %r2, [%rd4], 1;", "b4/4");
  SEES("atom.global.cas.b64 %rd9, [%rd7], %rd8, %rd8;", "b8/8");
  SEES("ld.global.u8 %h1, [%rd4]; cvt.rn.f32.u16 %f1, %h1;", "i1/4");
  SEES("cvt.rzi.u32.f32 %r2, %f1; st.global.u8 [%rd4], %r2;", "i1/4");
  SEES("ld.global.u8 %h1, [%rd4]; xor.b16 %h2, %h1, 1;", "b1/4");
}

static void constants_have_a_width_alone(void** state) {
  (void)state;
  SEES("mov.u32 %r2, 1065353216; st.global.u32 [%rd4], %r2;", "b4/4");
  SEES("st.global.u32 [%rd4], 0;", "b4/4");
  SEES(
      "st.global.u32 [%rd4], 0; ld.global.f32 %f1, [%rd4];\n"
      "add.f32 %f1, %f1, %f1; st.global.f32 [%rd4], %f1;",
      "f4/4");
}

static void addresses_are_followed(void** state) {
  (void)state;
  SEES(
      "mov.u64 %rd8, %rd4; add.s64 %rd9, %rd8, 16; ld.global.u32 %r2, "
      "[%rd9+4];",
      "b4/4");
  SEES("mad.wide.u32 %rd8, %r1, 2, %rd1; ld.global.u16 %h1, [%rd8];", "b2/2");
  SEES("@%p1 ld.global.u32 %r2, [%rd4];", "b4/4");
  // An offset and an address in one register.
  SEES(
      "mul.wide.u32 %rd8, %r1, 4; add.s64 %rd8, %rd1, %rd8;\n"
      "ld.global.u32 %r2, [%rd8];",
      "b4/4");
  // A loop that steps.
  SEES(
      "mov.u64 %rd8, %rd1;\nL: ld.global.u32 %r2, [%rd8];\n"
      "add.s64 %rd8, %rd8, 8; @%p1 bra L;",
      "b4/8");
  // Nothing is known of the other parameter, nor of numbers.
  assert_string_equal(seen(KERNEL("ld.global.u32 %r2, [%rd4];"), 1), "");
  assert_string_equal(seen(KERNEL("ld.global.u32 %r2, [%rd4];"), 2), "");
  assert_string_equal(seen(KERNEL("ld.global.u32 %r2, [%rd4];"), 99), "");
  SEES(
      "setp.eq.u64 %p1, %rd1, 0; and.b64 %rd8, %rd1, 15;\n"
      "ld.global.u32 %r2, [%rd4];",
      "b4/4");
}

static void what_gets_out_of_sight_is_unknown(void** state) {
  (void)state;
#define LOSES(body) SEES("ld.global.s32 %r2, [%rd4];\n" body, "")
  LOSES("st.global.u64 [%rd5], %rd1;");
  LOSES("st.local.u64 [%rd9], %rd4;");
  LOSES("mul.lo.s64 %rd8, %rd1, 3;");
  LOSES("mov.b64 {%r2, %r3}, %rd1;");
  LOSES("cvt.u32.u64 %r3, %rd1;");
  LOSES("selp.b64 %rd8, %rd1, %rd2, %p1; ld.global.u8 %h1, [%rd8];");
  LOSES("cp.async.ca.shared.global [tile], [%rd1], 4;");
  LOSES("ld.param.u32 %r2, [a];");
  LOSES("atom.global.exch.b64 %rd8, [%rd5], %rd1;");
  LOSES("{ .param .b64 q; st.param.b64 [q], %rd4; }");
#undef LOSES
  assert_string_equal(
      seen(PTX_HEAD ".func f(.reg .b64 q) { ret; }\n.visible .entry "
                    "k(.param .u64 a) { .reg .b64 %rd1; .reg .b32 %r1;\n"
                    "ld.param.u64 %rd1, [a]; ld.global.s32 %r1, [%rd1];\n"
                    "call f, (%rd1); ret; }\n",
           0),
      "");
}

static void pitches(void** state) {
  (void)state;
  // The low half of numbers of eight bytes, and the low byte of those of four.
  SEES("ld.global.u32 %r2, [%rd7];", "b4/8");
  SEES("ld.global.u32 %r2, [%rd7+4];", "b4/8");
  SEES("ld.global.u8 %r2, [%rd4];", "b1/4");
  // The upper half of a double as an int.
  SEES(
      "shl.b32 %r2, %r1, 1; or.b32 %r3, %r2, 1; mul.wide.u32 %rd8, %r3, 4;\n"
      "add.s64 %rd9, %rd1, %rd8; ld.global.u32 %r4, [%rd9];",
      "b4/8");
  // A row that is as long as somebody says, and what was loaded.
  SEES(
      "ld.param.u32 %r2, [n]; mul.wide.u32 %rd8, %r1, %r2;\n"
      "add.s64 %rd9, %rd1, %rd8; ld.global.u32 %r3, [%rd9];",
      "b4");
  SEES(
      "ld.global.u32 %r2, [%rd5]; mul.wide.u32 %rd8, %r2, 4;\n"
      "add.s64 %rd9, %rd1, %rd8; ld.global.u32 %r3, [%rd9];",
      "b4");
  SEES("ld.global.u32 %r2, [%rd1];", "b4");
  SEES("ld.global.u32 %r2, [%rd1]; ld.global.u32 %r2, [%rd4];", "b4/4");
  SEES("ld.global.u32 %r2, [%rd7]; ld.global.u32 %r2, [%rd4];", "b4/8");
  SEES(
      "cvt.u64.u32 %rd8, %r1; shl.b64 %rd9, %rd8, 32; shr.s64 %rd10, %rd9, "
      "30;\nadd.s64 %rd11, %rd1, %rd10; ld.global.u32 %r2, [%rd11];",
      "b4/4");
}

static uint32_t dimensions(const char* text) {
  kiln_image_use_t* use = use_of(text);
  uint32_t found = kiln_image_use_threads(use)->dimensions;
  kiln_image_use_release(use);
  return found;
}

#define DIMENSIONS(body, count) \
  assert_int_equal(dimensions(PTX_KERNEL(body)), count)
// What is kept counts.
#define READ(what) "mov.u32 %r1, " what "; st.global.u32 [%rd1], %r1;\n"

static void places_are_counted(void** state) {
  (void)state;
  DIMENSIONS(READ("%tid.x") READ("%ctaid.x"), 1);
  DIMENSIONS(READ("%tid.y"), 2);
  DIMENSIONS(READ("%ctaid.y") READ("%tid.x"), 2);
  DIMENSIONS(READ("%tid.z"), 3);
  DIMENSIONS(READ("%ctaid.z") READ("%tid.y"), 3);
  // How many there are says nothing of where one is.
  DIMENSIONS(READ("%ntid.y") READ("%nctaid.z"), 1);
  DIMENSIONS("", 1);
  // Read, and used for nothing.
  DIMENSIONS("mov.u32 %r1, %tid.y;", 1);
  DIMENSIONS("// %tid.y }\n/* %tid.z */", 1);
}

static void only_the_kernel_counts(void** state) {
  (void)state;
#define ENTRY(name, body)                       \
  ".visible .entry " name                       \
  "(.param .u64 p) { .reg .b32 %r1; .reg .b64 " \
  "%rd1;\n" body " ret; }\n"
  assert_int_equal(dimensions(PTX_HEAD ENTRY("k", "{ " READ("%tid.x") " }")
                                  ENTRY("deep", READ("%tid.y"))),
                   1);
  // What it calls is, and what that calls; not what it does not reach.
#define FUNC(name, body) \
  ".func " name "() { .reg .b32 %r1; .reg .b64 %rd1;\n" body " ret; }\n"
  assert_int_equal(dimensions(PTX_HEAD FUNC("f", READ("%ctaid.y")) ENTRY(
                       "k", "call f;") ENTRY("o", READ("%tid.z"))),
                   2);
  assert_int_equal(dimensions(PTX_HEAD FUNC("f", READ("%ctaid.x")) FUNC(
                       "g", READ("%ctaid.y") "call f;") ENTRY("k", "call f;")),
                   1);
  assert_int_equal(dimensions(PTX_HEAD FUNC("g", READ("%tid.z"))
                                  FUNC("f", "call g;") ENTRY("k", "call f;")),
                   3);
  // By an address it may be any.
  assert_int_equal(dimensions(PTX_HEAD FUNC("g", READ("%ctaid.y")) ENTRY(
                       "k", "p0: .callprototype _ ();\ncall %rd1, (), p0;")),
                   2);
  // In a function the same counts as in a kernel, and what comes out of it.
  assert_int_equal(
      dimensions(PTX_HEAD FUNC(
          "f", ".reg .pred %p1; mov.u32 %r1, %tid.y; setp.eq.s32 %p1, %r1, 0;")
                     ENTRY("k", "call f;")),
      1);
  assert_int_equal(
      dimensions(PTX_HEAD
                 ".func (.param .b32 o) f() { .reg .b32 %r1; mov.u32 %r1, "
                 "%tid.y; st.param.b32 [o], %r1; ret; }\n" ENTRY(
                     "k", "{ .param .b32 q; call (q), f; }")),
      2);
#undef FUNC
#undef ENTRY
}

// %r1 to %r3 are the thread's place, %r4 and %r5 the block's width and height.
#define PLACE                                               \
  "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, " \
  "%tid.z;\nmov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y;\n"
#define KEEP(reg) "st.global.u32 [%rd1], " reg ";"

static void ranks_are_of_one_dimension(void** state) {
  (void)state;
  DIMENSIONS(PLACE
             "mad.lo.s32 %r6, %r5, %r3, %r2;\n"
             "mad.lo.s32 %r7, %r6, %r4, %r1;" KEEP("%r7"),
             1);
  DIMENSIONS(PLACE "mad.lo.s32 %r6, %r2, %r4, %r1;" KEEP("%r6"), 1);
  DIMENSIONS(PLACE
             "mul.lo.s32 %r6, %r4, %r5; mul.lo.s32 %r7, %r6, %r3;\n"
             "mad.lo.s32 %r8, %r2, %r4, %r7; add.s32 %r9, %r8, "
             "%r1;" KEEP("%r9"),
             1);
  // this_grid().thread_rank(), as compilers write it.
  DIMENSIONS(
      PLACE
      "mov.u32 %r6, %ctaid.z; mov.u32 %r7, %nctaid.y;\n"
      "mul.wide.u32 %rd2, %r7, %r6; mov.u32 %r8, %nctaid.x;\n"
      "cvt.u64.u32 %rd3, %r8; mov.u32 %r9, %ctaid.y; cvt.u64.u32 %rd4, %r9;\n"
      "add.s64 %rd5, %rd2, %rd4; mul.lo.s64 %rd6, %rd5, %rd3;\n"
      "mad.lo.s32 %r10, %r5, %r3, %r2; mad.lo.s32 %r11, %r10, %r4, %r1;\n"
      "st.global.u64 [%rd1], %rd6;" KEEP("%r11"),
      1);
  // In a loop, before its size is known in the order of the text.
  DIMENSIONS(
      "L: mul.lo.s32 %r6, %r2, %r4; mov.u32 %r2, %tid.y;\n"
      "mov.u32 %r4, %ntid.x;" KEEP("%r6") "@%p1 bra L;",
      1);
}

// One thread of all does what is done once, and says where it is.
static void zeroes_and_prints_do_not_count(void** state) {
  (void)state;
  DIMENSIONS(PLACE "setp.eq.s32 %p1, %r2, 0; setp.ne.u32 %p1, %r3, 0;", 1);
  DIMENSIONS(PLACE
             "or.b32 %r6, %r1, %r2; or.b32 %r7, %r6, %r3; mov.b32 %r8, %r7;\n"
             "setp.ne.s32 %p1, %r8, 0;",
             1);
  DIMENSIONS(PLACE "or.b32 %r6, %r1, %r2;" KEEP("%r6"), 2);
  DIMENSIONS(PLACE "or.b32 %r6, %r1, %r3; setp.eq.s32 %p1, %r6, 1;", 3);
  DIMENSIONS(PLACE "or.b32 %r6, %r1, %r2; add.s32 %r7, %r6, 1;", 2);
  DIMENSIONS(PLACE "setp.lt.s32 %p1, %r2, 0;", 2);
  DIMENSIONS(PLACE "setp.eq.s32 %p1, %r2, %r1;", 2);
#define PRINTS                                                             \
  PTX_HEAD                                                                 \
  ".extern .func (.param .b32 o) vprintf(.param .b64 a, .param .b64 b);\n" \
  ".func (.param .b32 o) keeps(.param .b64 a, .param .b64 b) { ret; }\n"   \
  ".visible .entry k(.param .u64 p) { .local .b8 depot[8];\n"              \
  ".reg .b32 %r<9>; .reg .b64 %rd<9>; .param .b64 a; .param .b64 b;\n"     \
  ".param .b32 o; mov.u32 %r1, %tid.y; ld.param.u64 %rd1, [p];\n"          \
  "mov.u64 %rd2, depot; st.local.v2.u32 [%rd2], {%r1, %r1};\n"
  assert_int_equal(dimensions(PRINTS "call (o), vprintf, (a, b); ret; }"), 1);
  assert_int_equal(dimensions(PRINTS "call (o), keeps, (a, b); ret; }"), 2);
  assert_int_equal(dimensions(PRINTS "ld.local.u32 %r2, [%rd2]; ret; }"), 2);
  assert_int_equal(dimensions(PRINTS "ld.u32 %r2, [%rd1]; ret; }"), 2);
#undef PRINTS
}

static void threads_and_blocks_count_apart(void** state) {
  (void)state;
  kiln_image_use_t* use = use_of(PTX_KERNEL(READ("%ctaid.y") READ("%tid.x")));
  assert_int_equal(kiln_image_use_threads(use)->tid_dimensions, 1);
  assert_int_equal(kiln_image_use_threads(use)->ctaid_dimensions, 2);
  kiln_image_use_release(use);
  use = use_of(PTX_KERNEL(READ("%ctaid.x") READ("%tid.z")));
  assert_int_equal(kiln_image_use_threads(use)->tid_dimensions, 3);
  assert_int_equal(kiln_image_use_threads(use)->ctaid_dimensions, 1);
  assert_int_equal(kiln_image_use_threads(use)->dimensions, 3);
  kiln_image_use_release(use);
}

static void what_is_more_than_a_rank_counts(void** state) {
  (void)state;
  // A row and a column.
  DIMENSIONS(PLACE
             "mov.u32 %r6, %ctaid.y; mad.lo.s32 %r7, %r6, %r5, %r2;\n"
             "mul.lo.s32 %r8, %r7, 100;" KEEP("%r8"),
             2);
  DIMENSIONS(PLACE "mad.lo.s32 %r6, %r2, %r4, %r1;\n" KEEP(
                 "%r6") "setp.eq.s32 %p1, %r2, 1;",
             2);
  DIMENSIONS(PLACE "mul.lo.s32 %r6, %r2, %r5;" KEEP("%r6"), 2);
  DIMENSIONS(PLACE "mul.lo.s32 %r6, %r3, %r4;" KEEP("%r6"), 3);
  DIMENSIONS(
      PLACE "mov.u32 %r6, %nctaid.x; mul.lo.s32 %r6, %r2, %r6;" KEEP("%r6"), 2);
  DIMENSIONS(PLACE "shl.b32 %r6, %r3, 5;" KEEP("%r6"), 3);
  // A size that may be another.
  DIMENSIONS(PLACE "mov.u32 %r4, 7; mul.lo.s32 %r6, %r2, %r4;" KEEP("%r6"), 2);
  DIMENSIONS(PLACE "@%p1 mov.u32 %r6, %r2; mul.hi.u32 %r7, %r6, %r4;", 2);
}

static void parts_that_are_read_are_told(void** state) {
  (void)state;
  kiln_image_use_t* use = use_of(PTX_KERNEL(READ("%tid.x") READ("%tid.z") READ(
      "%ntid.y") READ("%ctaid.x") READ("%nctaid.z")));
  const kiln_image_threads_t* threads = kiln_image_use_threads(use);
  assert_int_equal(threads->tid, 5);
  assert_int_equal(threads->ntid, 2);
  assert_int_equal(threads->ctaid, 1);
  assert_int_equal(threads->nctaid, 4);
  kiln_image_use_release(use);
}

static void misuse_is_refused(void** state) {
  (void)state;
  const char* text = PTX_KERNEL("");
  kiln_bytes_view_t bytes = {(const uint8_t*)text, strlen(text)};
  kiln_image_t* image;
  kiln_image_use_t* use;
  assert_null(kiln_image_create(bytes, NULL, &image));
  static const kiln_status_code_t kCodes[] = {KILN_STATUS_INVALID_ARGUMENT,
                                              KILN_STATUS_INVALID_ARGUMENT,
                                              KILN_STATUS_NOT_FOUND};
  kiln_status_t got[] = {kiln_image_use_create(image, 0, NULL),
                         kiln_image_use_create(NULL, 0, &use),
                         kiln_image_use_create(image, 1, &use)};
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(kiln_status_code(got[i]), kCodes[i]);
    kiln_status_free(got[i]);
  }
  assert_null(use);
  kiln_image_use_release(NULL);
  kiln_image_release(image);
}

static kiln_status_t look(kiln_allocator_t allocator, void* user) {
  const char* text = user;
  kiln_bytes_view_t bytes = {(const uint8_t*)text, strlen(text)};
  kiln_image_options_t options = kiln_image_options_default();
  options.allocator = &allocator;
  kiln_image_t* image = NULL;
  kiln_image_use_t* use = NULL;
  kiln_status_t status = kiln_image_create(bytes, &options, &image);
  if (kiln_status_is_ok(status)) {
    status = kiln_image_use_create(image, 0, &use);
    assert_int_equal(kiln_status_is_ok(status), use != NULL);
  }
  kiln_image_use_release(use);
  kiln_image_release(image);
  return status;
}

static void allocations_may_fail(void** state) {
  (void)state;
  static char text[] = KERNEL("ld.global.f32 %f1, [%rd4];");
  assert_true(fault_run_allocations(look, text, 0) > 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arithmetic_tells_floats),
      cmocka_unit_test(what_is_moved_may_be_anything),
      cmocka_unit_test(halves_are_floats_in_words),
      cmocka_unit_test(members_of_structs_are_told),
      cmocka_unit_test(integers),
      cmocka_unit_test(constants_have_a_width_alone),
      cmocka_unit_test(addresses_are_followed),
      cmocka_unit_test(what_gets_out_of_sight_is_unknown),
      cmocka_unit_test(pitches),
      cmocka_unit_test(places_are_counted),
      cmocka_unit_test(only_the_kernel_counts),
      cmocka_unit_test(ranks_are_of_one_dimension),
      cmocka_unit_test(zeroes_and_prints_do_not_count),
      cmocka_unit_test(threads_and_blocks_count_apart),
      cmocka_unit_test(what_is_more_than_a_rank_counts),
      cmocka_unit_test(parts_that_are_read_are_told),
      cmocka_unit_test(misuse_is_refused),
      cmocka_unit_test(allocations_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
