// SPDX-License-Identifier: Apache-2.0
//
// image: what names mean in nested scopes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ptx_text.h"

static uint32_t type_of(const kilni_image_ptx_module_t* m,
                        uint32_t instruction) {
  const kilni_image_ptx_function_t* f = ptx_only_function(m);
  return f->registers[ptx_operand(m, instruction, 0)->index].type;
}

static void inner_registers_shadow_outer_ones(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m = ptx_read(
      PTX_KERNEL("mov.u32 %r3, 1;\n{ .reg .f64 %r3; mov.f64 %r3, 1.0;\n"
                 "{ .reg .f32 %r<9>; mov.f32 %r3, 1.0; mov.f32 %r8, 1.0; }\n"
                 "mov.f64 %r3, 2.0; mov.u32 %r8, 5; }\nmov.u32 %r3, 2;\n"));
  assert_int_equal(type_of(m, 0), KILNI_PTX_TYPE_B32);
  assert_int_equal(type_of(m, 1), KILNI_PTX_TYPE_F64);
  assert_int_equal(type_of(m, 2), KILNI_PTX_TYPE_F32);
  assert_int_equal(type_of(m, 3), KILNI_PTX_TYPE_F32);
  assert_int_equal(type_of(m, 4), KILNI_PTX_TYPE_F64);
  assert_int_equal(type_of(m, 5), KILNI_PTX_TYPE_B32);
  assert_int_equal(ptx_operand(m, 1, 0)->index, ptx_operand(m, 4, 0)->index);
  assert_int_equal(ptx_operand(m, 0, 0)->index, ptx_operand(m, 6, 0)->index);
  // %r3 three times, %r8 twice.
  assert_int_equal(ptx_only_function(m)->register_count, 5);
  kilni_image_ptx_module_release(m);
}

static void sibling_scopes_share_no_names(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m = ptx_read(PTX_KERNEL(
      "{ .reg .b32 t; .param .b32 a; mov.b32 t, 1; st.param.b32 [a], t; }\n"
      "{ .reg .b64 t; .param .b64 a; mov.b64 t, 1; st.param.b64 [a], t; }\n"));
  const kilni_image_ptx_function_t* f = ptx_only_function(m);
  assert_int_equal(f->register_count, 2);
  assert_int_equal(f->variable_count, 2);
  assert_int_equal(m->variables[ptx_operand(m, 1, 0)->index].size_bytes, 4);
  assert_int_equal(m->variables[ptx_operand(m, 3, 0)->index].size_bytes, 8);
  kilni_image_ptx_module_release(m);
  kiln_status_t status =
      ptx_refuse(PTX_KERNEL("{ .reg .b32 t; } mov.b32 t, 1;"), NULL);
  kiln_status_free(status);
}

static uint32_t target_of(const kilni_image_ptx_module_t* m,
                          uint32_t instruction) {
  const kilni_image_ptx_function_t* f = ptx_only_function(m);
  return f->labels[ptx_operand(m, instruction, 0)->index].instruction;
}

static void labels_belong_to_their_scope(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m = ptx_read(PTX_KERNEL(
      "bra L;\n{ bra L; bra M; L: { bra L; bra M; } bra L; }\nL: bra L;\n"
      "M:"));
  //  0: outer L is 6; 1: inner L is 3; 2: M is 7, the ret behind
  assert_int_equal(target_of(m, 0), 6);
  assert_int_equal(target_of(m, 1), 3);
  assert_int_equal(target_of(m, 2), 7);
  assert_int_equal(target_of(m, 3), 3);
  assert_int_equal(target_of(m, 4), 7);
  assert_int_equal(target_of(m, 5), 3);
  assert_int_equal(target_of(m, 6), 6);
  kilni_image_ptx_module_release(m);
}

static void a_later_inner_label_wins_over_an_earlier_outer(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m =
      ptx_read(PTX_KERNEL("L: ret;\n{ bra L; ret; L: ret; }\n"));
  assert_int_equal(target_of(m, 1), 3);
  kilni_image_ptx_module_release(m);
}

static void ranges_name_their_members_only(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m = ptx_read(
      PTX_KERNEL(".reg .f32 %q<20>; .reg .f64 %v1<3>;\n"
                 "mov.f32 %q12, 1.0; mov.f32 %q07, 1.0; mov.f32 %q7, 1.0;\n"
                 "mov.f64 %v12, 1.0;\n"));
  assert_int_equal(type_of(m, 0), KILNI_PTX_TYPE_F32);
  assert_int_equal(type_of(m, 3), KILNI_PTX_TYPE_F64);
  assert_int_equal(ptx_operand(m, 1, 0)->index, ptx_operand(m, 2, 0)->index);
  kilni_image_ptx_module_release(m);
  static const char* const kBad[] = {
      PTX_KERNEL(".reg .b32 %q<3>; mov.b32 %q3, 1;"),
      PTX_KERNEL(".reg .b32 %q<3>; mov.b32 %q, 1;"),
      PTX_KERNEL(".reg .b32 %q<0>; mov.b32 %q0, 1;"),
      PTX_KERNEL(".reg .b32 %q<3>; mov.b32 %q000000000001, 1;")};
  for (size_t i = 0; i < sizeof(kBad) / sizeof(kBad[0]); i++) {
    kiln_status_free(ptx_refuse(kBad[i], NULL));
  }
}

static void locals_shadow_globals_and_special_registers(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m = ptx_read(
      PTX_HEAD
      ".global .u32 g;\n.entry e() {\n.reg .b64 %a;\nmov.u64 %a, g;\n"
      "{ .shared .u64 g; mov.u64 %a, g; .reg .b32 %tid; mov.b32 %tid, 3; }\n"
      "mov.u64 %a, g; }\n");
  assert_int_equal(ptx_operand(m, 0, 1)->index, ptx_operand(m, 3, 1)->index);
  assert_int_equal(m->variables[ptx_operand(m, 1, 1)->index].space,
                   KILNI_PTX_SPACE_SHARED);
  assert_int_equal(ptx_operand(m, 2, 0)->kind, KILNI_PTX_OPERAND_REGISTER);
  kilni_image_ptx_module_release(m);
}

static void registers_do_not_leak_into_the_next_function(void** state) {
  (void)state;
  kiln_status_t status =
      ptx_refuse(PTX_HEAD
                 ".func f() { .reg .b32 %r<3>; mov.b32 %r1, 1; ret; }\n"
                 ".func g() { mov.b32 %r1, 1; ret; }\n",
                 NULL);
  assert_non_null(strstr(kiln_status_message(status), "line 5"));
  kiln_status_free(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(inner_registers_shadow_outer_ones),
      cmocka_unit_test(sibling_scopes_share_no_names),
      cmocka_unit_test(labels_belong_to_their_scope),
      cmocka_unit_test(a_later_inner_label_wins_over_an_earlier_outer),
      cmocka_unit_test(ranges_name_their_members_only),
      cmocka_unit_test(locals_shadow_globals_and_special_registers),
      cmocka_unit_test(registers_do_not_leak_into_the_next_function),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
