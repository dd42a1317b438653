// SPDX-License-Identifier: Apache-2.0
//
// image: what the PTX reader makes of good text.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ptx_check.h"
#include "ptx_text.h"

static void a_header_is_recorded(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m = ptx_read(
      ".version 7.8\n.target sm_90a, texmode_independent\n.address_size 64\n");
  assert_int_equal(m->version_major, 7);
  assert_int_equal(m->version_minor, 8);
  assert_int_equal(m->target_sm, 90);
  assert_int_equal(m->target_suffix, 'a');
  assert_string_equal(m->target_text, "sm_90a");
  assert_int_equal(m->texmode_independent, 1);
  assert_int_equal(m->address_size, 64);
  kilni_image_ptx_module_release(m);
}

static void an_instruction_keeps_everything(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m =
      ptx_read(PTX_KERNEL("@!%p2 mad.lo.s32 %r1, %r2, -3, 0xffffffffU;"));
  const kilni_image_ptx_function_t* f = ptx_only_function(m);
  const kilni_image_ptx_instruction_t* i = ptx_instruction(m, 0);
  assert_int_equal(f->instruction_count, 2);
  assert_string_equal(kilni_image_ptx_instruction_text(m, i), "mad.lo.s32");
  assert_int_equal(i->opcode, KILNI_PTX_OP_MAD);
  const kilni_image_ptx_form_t* form = kilni_image_ptx_instruction_form(m, i);
  assert_int_equal(form->modifier_count, 2);
  assert_int_equal(form->modifiers[0], KILNI_PTX_MOD_LO);
  assert_int_equal(form->modifiers[1], KILNI_PTX_TYPE_S32);
  assert_true(kilni_image_ptx_modifier_is_type(form->modifiers[1]));
  assert_false(kilni_image_ptx_modifier_is_type(form->modifiers[0]));
  assert_int_equal(i->guard, KILNI_PTX_GUARD_FALSE);
  assert_string_equal(f->registers[i->guard_register].name, "%p2");
  assert_int_equal(i->line, 7);
  assert_int_equal(i->column, 1);
  assert_int_equal(i->operand_count, 4);
  const kilni_image_ptx_operand_t* o =
      kilni_image_ptx_instruction_operands(m, i);
  assert_int_equal(o[0].kind, KILNI_PTX_OPERAND_REGISTER);
  assert_string_equal(f->registers[o[0].index].name, "%r1");
  assert_int_equal(f->registers[o[0].index].type, KILNI_PTX_TYPE_B32);
  assert_int_equal(o[2].kind, KILNI_PTX_OPERAND_IMMEDIATE);
  assert_int_equal(o[2].immediate, KILNI_PTX_IMMEDIATE_S64);
  assert_true((int64_t)o[2].value == -3);
  assert_int_equal(o[3].immediate, KILNI_PTX_IMMEDIATE_U64);
  assert_true(o[3].value == 0xffffffffu);
  // Three registers and a predicate are named; those are all there are.
  assert_int_equal(f->register_count, 3);
  kilni_image_ptx_module_release(m);
}

static void equal_spellings_share_a_form(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m = ptx_read(PTX_KERNEL(
      "add.s32 %r1,%r2,%r3;\nadd .s32 %r4,%r5,%r6;\nadd.u32 %r1,%r2,%r3;"));
  assert_int_equal(ptx_instruction(m, 0)->form, ptx_instruction(m, 1)->form);
  assert_int_not_equal(ptx_instruction(m, 0)->form,
                       ptx_instruction(m, 2)->form);
  assert_int_equal(m->form_count, 3);  // and ret
  kilni_image_ptx_module_release(m);
}

static void every_kind_of_operand(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m =
      ptx_read(PTX_KERNEL(".shared .align 4 .b32 s[8];\n"
                          "mov.u32 %r1, %tid.y;\n"
                          "mov.u32 %r1, %envreg5;\n"
                          "mov.u32 %r1, s+4;\n"
                          "ld.shared.u32 %r1, [s+8];\n"
                          "ld.global.u32 %r1, [%rd1+-4];\n"
                          "ld.local.u32 %r1, [16];\n"
                          "ld.global.v4.u32 {%r1, _, %r2, %r3}, [%rd1];\n"
                          "setp.lt.s32 %p1|_, %r1, %r2;\n"
                          "setp.lt.and.s32 %p1, %r1, %r2, !%p3;\n"
                          "mov.f32 %f1, 0f3F800000;\n"
                          "mov.f64 %fd1, -1.5;\n"
                          "mov.u64 %rd1, k;\n"
                          "ld.shared.u32 %r1, s[3];\n"
                          "mov.u32 %r1, s[3];\n"
                          "vadd.s32.s32.s32 %r1, %r2.b1, -%r3.h1;\n"
                          "mov.u32 %r1, WARP_SZ;\n"));
  const kilni_image_ptx_operand_t* o = ptx_operand(m, 0, 1);
  assert_int_equal(o->kind, KILNI_PTX_OPERAND_SPECIAL);
  assert_int_equal(o->index, KILNI_PTX_SREG_TID);
  assert_int_equal(o->component, 1);
  o = ptx_operand(m, 1, 1);
  assert_int_equal(o->index, KILNI_PTX_SREG_ENVREG);
  assert_int_equal(o->value, 5);
  o = ptx_operand(m, 2, 1);
  assert_int_equal(o->kind, KILNI_PTX_OPERAND_VARIABLE);
  assert_string_equal(m->variables[o->index].name, "s");
  assert_int_equal(o->value, 4);
  o = ptx_operand(m, 3, 1);
  assert_int_equal(o->kind, KILNI_PTX_OPERAND_ADDRESS);
  assert_int_equal(o->base, KILNI_PTX_BASE_VARIABLE);
  assert_int_equal(o->value, 8);
  o = ptx_operand(m, 4, 1);
  assert_int_equal(o->base, KILNI_PTX_BASE_REGISTER);
  assert_true((int64_t)o->value == -4);
  o = ptx_operand(m, 5, 1);
  assert_int_equal(o->base, KILNI_PTX_BASE_NONE);
  assert_int_equal(o->value, 16);
  o = ptx_operand(m, 6, 0);
  assert_int_equal(o->kind, KILNI_PTX_OPERAND_VECTOR);
  assert_int_equal(o->count, 4);
  assert_int_equal(kilni_image_ptx_operand_children(m, o)[1].kind,
                   KILNI_PTX_OPERAND_SINK);
  o = ptx_operand(m, 7, 0);
  assert_int_equal(o->kind, KILNI_PTX_OPERAND_PAIR);
  assert_int_equal(kilni_image_ptx_operand_children(m, o)[0].kind,
                   KILNI_PTX_OPERAND_REGISTER);
  assert_int_equal(kilni_image_ptx_operand_children(m, o)[1].kind,
                   KILNI_PTX_OPERAND_SINK);
  assert_int_equal(ptx_operand(m, 8, 3)->negated, 1);
  o = ptx_operand(m, 9, 1);
  assert_int_equal(o->immediate, KILNI_PTX_IMMEDIATE_F32);
  assert_int_equal(o->value, 0x3f800000);
  o = ptx_operand(m, 10, 1);
  assert_int_equal(o->immediate, KILNI_PTX_IMMEDIATE_F64);
  assert_true(o->value == UINT64_C(0xbff8000000000000));
  assert_int_equal(ptx_operand(m, 11, 1)->kind, KILNI_PTX_OPERAND_FUNCTION);
  o = ptx_operand(m, 12, 1);
  assert_int_equal(o->kind, KILNI_PTX_OPERAND_ADDRESS);
  assert_int_equal(o->value, 12);
  o = ptx_operand(m, 13, 1);
  assert_int_equal(o->kind, KILNI_PTX_OPERAND_VARIABLE);
  assert_int_equal(o->value, 12);
  assert_int_equal(ptx_operand(m, 14, 1)->selector, KILNI_PTX_SELECT_B1);
  assert_int_equal(ptx_operand(m, 14, 2)->selector, KILNI_PTX_SELECT_H1);
  assert_int_equal(ptx_operand(m, 14, 2)->negated, 1);
  assert_int_equal(ptx_operand(m, 15, 1)->value, 32);
  kilni_image_ptx_module_release(m);
}

static void calls_have_one_shape(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m = ptx_read(
      PTX_HEAD
      ".func (.param .b32 r) f(.param .b32 a);\n.func g();\n"
      ".func body() {\n.reg .b32 %r<3>; .reg .b64 %rd<3>;\n"
      ".param .b32 x; .param .b32 y;\n"
      "call (y), f, (x);\ncall g;\ncall.uni g, ();\n"
      "P: .callprototype (.param .b32 _) _ (.param .b32 _) .noreturn;\n"
      "call (y), %rd1, (x), P;\nT: .calltargets f;\n"
      "call (y), %rd1, (x), T;\n}\n");
  static const struct {
    uint32_t returns;
    uint32_t callee;
    uint32_t arguments;
    uint32_t last;
  } kCalls[] = {
      {1, KILNI_PTX_OPERAND_FUNCTION, 1, KILNI_PTX_OPERAND_NONE},
      {0, KILNI_PTX_OPERAND_FUNCTION, 0, KILNI_PTX_OPERAND_NONE},
      {0, KILNI_PTX_OPERAND_FUNCTION, 0, KILNI_PTX_OPERAND_NONE},
      {1, KILNI_PTX_OPERAND_REGISTER, 1, KILNI_PTX_OPERAND_TABLE},
      {1, KILNI_PTX_OPERAND_REGISTER, 1, KILNI_PTX_OPERAND_TABLE},
  };
  for (uint32_t i = 0; i < 5; i++) {
    assert_int_equal(ptx_operand(m, i, 0)->count, kCalls[i].returns);
    assert_int_equal(ptx_operand(m, i, 1)->kind, kCalls[i].callee);
    assert_int_equal(ptx_operand(m, i, 2)->count, kCalls[i].arguments);
    assert_int_equal(ptx_operand(m, i, 3)->kind, kCalls[i].last);
  }
  const kilni_image_ptx_function_t* f = ptx_only_function(m);
  assert_int_equal(f->table_count, 2);
  assert_int_equal(f->tables[0].kind, KILNI_PTX_TABLE_PROTOTYPE);
  assert_int_equal(f->tables[0].noreturn, 1);
  assert_int_equal(f->tables[0].parameter_count, 1);
  assert_int_equal(m->variables[f->tables[0].first_parameter].size_bytes, 4);
  // The prototype's parameters are no variables of the body.
  assert_int_equal(f->variable_count, 2);
  assert_int_equal(f->tables[1].kind, KILNI_PTX_TABLE_CALL_TARGETS);
  assert_int_equal(m->entries[f->tables[1].first], 0);
  kilni_image_ptx_module_release(m);
}

static void functions_have_parameters_and_directives(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m = ptx_read(
      PTX_HEAD
      ".weak .entry e(.param .u64 .ptr .global .align 16 p,\n"
      " .param .align 8 .b8 s[12], .param .f32 x)\n"
      ".maxntid 128, 2 .minnctapersm 3 .maxnreg 40 {\nret;\n}\n"
      ".entry q() .reqntid 32, 4, 1 .explicitcluster .reqnctapercluster 2"
      " { ret; }\n"
      ".func (.reg .u32 r) f(.reg .u32 a) .noreturn { mov.u32 r, a; }\n");
  const kilni_image_ptx_function_t* e = &m->functions[0];
  assert_int_equal(e->is_entry, 1);
  assert_int_equal(e->linkage, KILNI_PTX_LINKAGE_WEAK);
  assert_int_equal(e->parameter_count, 3);
  const kilni_image_ptx_variable_t* p = &m->variables[e->first_parameter];
  assert_int_equal(p[0].is_pointer, 1);
  assert_int_equal(p[0].pointer_space, KILNI_PTX_SPACE_GLOBAL);
  assert_int_equal(p[0].pointer_align, 16);
  assert_int_equal(p[1].size_bytes, 12);
  assert_int_equal(p[1].align, 8);
  assert_int_equal(p[2].type, KILNI_PTX_TYPE_F32);
  assert_int_equal(p[2].align, 4);
  assert_int_equal(e->maxntid[0], 128);
  assert_int_equal(e->maxntid[1], 2);
  assert_int_equal(e->maxntid[2], 1);
  assert_int_equal(e->minnctapersm, 3);
  assert_int_equal(e->maxnreg, 40);
  const kilni_image_ptx_function_t* q = &m->functions[1];
  assert_int_equal(q->reqntid[0], 32);
  assert_int_equal(q->reqntid[1], 4);
  assert_int_equal(q->explicit_cluster, 1);
  assert_int_equal(q->reqnctapercluster[0], 2);
  const kilni_image_ptx_function_t* f = &m->functions[2];
  assert_int_equal(f->noreturn, 1);
  const kilni_image_ptx_variable_t* a = &m->variables[f->first_parameter];
  assert_int_equal(a->space, KILNI_PTX_SPACE_REG);
  assert_string_equal(f->registers[a->register_index].name, "a");
  assert_int_equal(
      kilni_image_ptx_function_find(m, (kiln_string_view_t){"q", 1}), 1);
  assert_int_equal(
      kilni_image_ptx_function_find(m, (kiln_string_view_t){"none", 4}),
      KILNI_PTX_NONE);
  kilni_image_ptx_module_release(m);
}

static void declarations_meet_their_definitions(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m =
      ptx_read(PTX_HEAD
               ".func f(.param .u32 a);\n.extern .global .u32 v;\n"
               ".func g() { .param .u32 x; call f, (x); ret; }\n"
               ".func f(.param .u32 a) { ret; }\n.visible .global .u32 v = 5;\n"
               ".extern .shared .align 16 .b8 dynamic[];\n");
  assert_int_equal(m->function_count, 2);
  assert_string_equal(m->functions[0].name, "f");
  assert_int_equal(m->functions[0].is_defined, 1);
  assert_int_equal(m->functions[0].line, 7);
  uint32_t v = kilni_image_ptx_variable_find(m, (kiln_string_view_t){"v", 1});
  assert_int_equal(m->variables[v].declared_only, 0);
  assert_int_equal(m->variables[v].bytes[0], 5);
  uint32_t d =
      kilni_image_ptx_variable_find(m, (kiln_string_view_t){"dynamic", 7});
  assert_int_equal(m->variables[d].unsized, 1);
  assert_int_equal(m->variables[d].declared_only, 1);
  assert_int_equal(m->variables[d].align, 16);
  kilni_image_ptx_module_release(m);
}

static void debug_marks_are_kept_or_skipped(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m = ptx_read(
      PTX_HEAD
      ".file 1 \"a.cu\"\n.file 2 \"b.h\", 5, 6\n"
      ".section .debug_str { .b8 1,2 { } }\n"
      ".entry e() {\nret;\n.loc 2 17 3\nret;\n"
      ".loc 1 2 3, function_name L, inlined_at 2 17 3\n.pragma \"x\";\nret;\n"
      "}\n");
  const kilni_image_ptx_function_t* e = ptx_only_function(m);
  assert_int_equal(m->file_count, 2);
  assert_string_equal(m->files[1].name, "b.h");
  assert_int_equal(e->instructions[0].location, KILNI_PTX_NONE);
  assert_int_equal(m->locations[e->instructions[1].location].line, 17);
  assert_int_equal(m->locations[e->instructions[1].location].inlined_line, 0);
  assert_int_equal(m->locations[e->instructions[2].location].file, 1);
  assert_int_equal(m->locations[e->instructions[2].location].inlined_file, 2);
  assert_int_equal(m->locations[e->instructions[2].location].inlined_line, 17);
  kilni_image_ptx_module_release(m);
}

// Spellings that compilers write and that were once missing.
static void rare_modifiers_are_words(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m = ptx_read(PTX_KERNEL(
      "shf.l.wrap.b32 %r1, %r2, %r3, 5;\n"
      "max.NaN.bf16x2 %r1, %r2, %r3;\n"
      "setp.nan.f32 %p1, %f1, %f2;\n"
      "prmt.b32.f4e %r1, %r2, %r3, %r4;\n"
      "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], "
      "{%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, %r1;\n"
      "wmma.load.c.sync.aligned.row.m16n16k16.f32 {%f1, %f2}, [%rd1], %r1;\n"
      "ld.global.L1::no_allocate.L2::128B.v4.f32 {%f1, %f2, %f3, %f4}, "
      "[%rd1];\n"));
  const kilni_image_ptx_form_t* form =
      kilni_image_ptx_instruction_form(m, ptx_instruction(m, 1));
  assert_int_equal(form->modifiers[0], KILNI_PTX_MOD_NAN_RESULT);
  form = kilni_image_ptx_instruction_form(m, ptx_instruction(m, 2));
  assert_int_equal(form->modifiers[0], KILNI_PTX_MOD_NAN);
  kilni_image_ptx_module_release(m);
}

static void a_texture_load_may_say_what_is_resident(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m = ptx_read(
      PTX_HEAD
      ".entry k() { .reg .f32 %f<9>; .reg .pred %p<2>; .reg .b64 %rd<2>;\n"
      "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}|%p1, [%rd1, {%f5, %f6}];\n"
      "ret; }\n");
  const kilni_image_ptx_operand_t* pair = ptx_operand(m, 0, 0);
  assert_int_equal(pair->kind, KILNI_PTX_OPERAND_PAIR);
  const kilni_image_ptx_operand_t* parts =
      kilni_image_ptx_operand_children(m, pair);
  assert_int_equal(parts[0].kind, KILNI_PTX_OPERAND_VECTOR);
  assert_int_equal(parts[0].count, 4);
  assert_int_equal(parts[1].kind, KILNI_PTX_OPERAND_REGISTER);
  kilni_image_ptx_module_release(m);
}

// What needs a version or a target above the oracle's is taken too.
static void newer_forms_keep_their_operands(void** state) {
  (void)state;
  kilni_image_ptx_module_release(ptx_read(
      ".version 8.8\n.target sm_100a\n.address_size 64\n"
      ".entry k() { .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
      ".reg .b128 %q<9>; .reg .f32 %f<9>; .reg .pred %p<9>; .reg .b8 %c<9>;\n"
      "mov.b128 %q1, {%rd1, %rd2}; mov.b128 {%rd1, _}, %q1;\n"
      "ld.relaxed.gpu.global.b128 %q1, [%rd1];\n"
      "atom.global.cas.b128 %q1, [%rd1], %q2, %q3;\n"
      "atom.global.add.v2.f32 {%f1, %f2}, [%rd1], {%f3, %f4};\n"
      "red.global.v4.f16x2.add.noftz [%rd1], {%r1, %r2, %r3, %r4};\n"
      "ld.global.v8.b32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%rd1];\n"
      "ld.global.v4.b64 {%rd1, _, %rd3, %rd4}, [%rd5];\n"
      "cvt.rn.satfinite.e2m1x2.f32 %c1, %f1, %f2;\n"
      "cvt.rs.satfinite.e4m3x4.f32 %r1, {%f1, %f2, %f3, %f4}, %r2;\n"
      "add.f32x2 %rd1, %rd2, %rd3; add.rn.f32.bf16 %f1, %h1, %f2;\n"
      "min.f32 %f1, %f2, %f3, %f4; lop3.or.b32 _|%p1,%r1,%r2,%r3,0x80,%p2;\n"
      "st.bulk.weak.shared::cta [%rd1], %rd2, 0;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r2, "
      "[%r3];\n"
      "ret; }\n"));
}

static void a_tree_holds_nothing_of_its_text(void** state) {
  (void)state;
  static const char kText[] = PTX_KERNEL("L1: bra L1;");
  char* text = malloc(sizeof(kText));
  assert_non_null(text);
  memcpy(text, kText, sizeof(kText));
  kilni_image_ptx_module_t* m = ptx_read(text);
  memset(text, 'x', sizeof(kText));
  free(text);
  assert_null(ptx_check(m));
  assert_string_equal(ptx_only_function(m)->labels[0].name, "L1");
  kilni_image_ptx_module_release(m);
  kilni_image_ptx_module_release(NULL);
}

static void every_kernel_of_the_tree_is_read(void** state) {
  (void)state;
  static const char* const kNames[] = {
      "atomics",      "calls",      "divergence", "dynamic_shared", "integers",
      "local_memory", "mandelbrot", "math_f32",   "math_f64",       "print",
      "reduction",    "shuffle",    "votes"};
  for (size_t i = 0; i < sizeof(kNames) / sizeof(kNames[0]); i++) {
    char path[1024];
    snprintf(path, sizeof(path), "%s/tests/kernels/%s.cu.ptx", KILN_SOURCE_DIR,
             kNames[i]);
    FILE* file = fopen(path, "rb");
    assert_non_null(file);
    static char text[1 << 20];
    size_t size = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[size] = '\0';
    kilni_image_ptx_module_release(ptx_read(text));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_header_is_recorded),
      cmocka_unit_test(an_instruction_keeps_everything),
      cmocka_unit_test(equal_spellings_share_a_form),
      cmocka_unit_test(every_kind_of_operand),
      cmocka_unit_test(calls_have_one_shape),
      cmocka_unit_test(functions_have_parameters_and_directives),
      cmocka_unit_test(declarations_meet_their_definitions),
      cmocka_unit_test(debug_marks_are_kept_or_skipped),
      cmocka_unit_test(rare_modifiers_are_words),
      cmocka_unit_test(a_texture_load_may_say_what_is_resident),
      cmocka_unit_test(newer_forms_keep_their_operands),
      cmocka_unit_test(a_tree_holds_nothing_of_its_text),
      cmocka_unit_test(every_kernel_of_the_tree_is_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
