// SPDX-License-Identifier: Apache-2.0
//
// image: initial values as bytes and relocations.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ptx_text.h"

typedef struct value_case_t {
  const char* text;  // declares x
  uint64_t size;
  const char* bytes;  // the leading ones
  size_t count;
} value_case_t;

static const value_case_t kValues[] = {
    {".global .u32 x = 0x01020304;", 4, "\4\3\2\1", 4},
    {".global .u32 x;", 4, "", 0},
    {".const .s8 x = -2;", 1, "\xfe", 1},
    {".global .u8 x = 256;", 1, "\0", 1},
    {".global .b64 x = 1 << 40;", 8, "\0\0\0\0\0\1\0\0", 8},
    {".global .f32 x = 0f3F800000;", 4, "\0\0\x80\x3f", 4},
    {".global .f32 x = 1.5;", 4, "\0\0\xc0\x3f", 4},
    {".global .f64 x = 0f3F800000;", 8, "\0\0\0\0\0\0\xf0\x3f", 8},
    {".global .f64 x = 1.5;", 8, "\0\0\0\0\0\0\xf8\x3f", 8},
    {".global .u16 x[] = {1, 2, 3};", 6, "\1\0\2\0\3\0", 6},
    {".global .u16 x[5] = {1, 2};", 10, "\1\0\2\0", 4},
    {".global .u8 x[2][3] = {{1}, {2, 3}};", 6, "\1\0\0\2\3", 5},
    {".global .u8 x[][2] = {{1, 2}, {3}, {4}};", 6, "\1\2\3\0\4", 5},
    {".global .v2 .u8 x[2] = {{1, 2}, {3, 4}};", 4, "\1\2\3\4", 4},
    {".global .v4 .u8 x = {1, 2, 3, 4};", 4, "\1\2\3\4", 4},
    {".global .u8 x[2] = {};", 2, "", 0},
};

static const kilni_image_ptx_variable_t* x_of(
    const kilni_image_ptx_module_t* m) {
  uint32_t x = kilni_image_ptx_variable_find(m, (kiln_string_view_t){"x", 1});
  assert_int_not_equal(x, KILNI_PTX_NONE);
  return &m->variables[x];
}

static void values_become_bytes(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(kValues) / sizeof(kValues[0]); i++) {
    char text[512];
    strcpy(text, PTX_HEAD);
    strcat(text, kValues[i].text);
    kilni_image_ptx_module_t* m = ptx_read(text);
    const kilni_image_ptx_variable_t* x = x_of(m);
    if (x->size_bytes != kValues[i].size || x->byte_count != kValues[i].count ||
        (x->byte_count > 0 &&
         memcmp(x->bytes, kValues[i].bytes, kValues[i].count) != 0)) {
      fail_msg("%s", kValues[i].text);
    }
    kilni_image_ptx_module_release(m);
  }
}

static void addresses_become_relocations(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m =
      ptx_read(PTX_HEAD
               ".global .u32 y;\n.func f();\n"
               ".global .u64 x[4] = {y+4, generic(y), 7, f};\n");
  const kilni_image_ptx_variable_t* x = x_of(m);
  assert_int_equal(x->relocation_count, 3);
  const kilni_image_ptx_relocation_t* r = &m->relocations[x->first_relocation];
  assert_int_equal(r[0].offset, 0);
  assert_int_equal(r[0].addend, 4);
  assert_int_equal(r[0].generic, 0);
  assert_int_equal(r[0].size, 8);
  assert_int_equal(r[1].offset, 8);
  assert_int_equal(r[1].generic, 1);
  assert_string_equal(m->variables[r[1].index].name, "y");
  assert_int_equal(x->bytes[16], 7);
  assert_int_equal(r[2].offset, 24);
  assert_int_equal(r[2].kind, KILNI_PTX_RELOC_FUNCTION);
  kilni_image_ptx_module_release(m);
}

static void masks_select_a_byte_of_an_address(void** state) {
  (void)state;
  kilni_image_ptx_module_t* m = ptx_read(
      PTX_HEAD
      ".global .u8 y;\n.global .u8 x[3] = {0xff(y), 0xff00(generic(y)+2), 9};"
      "\n");
  const kilni_image_ptx_variable_t* x = x_of(m);
  const kilni_image_ptx_relocation_t* r = &m->relocations[x->first_relocation];
  assert_int_equal(x->relocation_count, 2);
  assert_int_equal(r[0].size, 1);
  assert_int_equal(r[0].shift, 0);
  assert_int_equal(r[1].shift, 8);
  assert_int_equal(r[1].generic, 1);
  assert_int_equal(r[1].addend, 2);
  kilni_image_ptx_module_release(m);
}

static void wrong_values_are_refused(void** state) {
  (void)state;
  static const char* const kBad[] = {
      ".global .f32 x = 1;",
      ".global .f32 x = {1.0};",
      ".global .f32 x[2] = {1.0, 2};",
      ".global .u32 x = 1.5;",
      ".global .u32 x = 0f3F800000;",
      ".global .f16 x = 1.0;",
      ".global .u32 x[2] = {1, 2, 3};",
      ".global .u32 x[2][2] = {1, 2, 3, 4};",
      ".global .u32 x = {1};",
      ".global .u32 x = ;",
      ".global .u32 x = \"s\";",
      ".global .u64 x = z; .global .u32 z;",
      ".global .u64 x = x;",
      ".global .u32 y; .global .u64 x = generic(y+8);",
      ".global .u32 y; .global .u64 x = y[1];",
      ".global .u32 y; .global .f64 x = y;",
      ".global .u32 y; .global .u8 x = y;",
      ".global .u32 y; .global .u8 x[1] = {0xf0(y)};",
      ".global .u32 y; .global .u32 x = 0xff(y);",
      ".global .u32 y; .global .u8 x[1] = {mask(0xff, y)};",
      ".extern .global .u32 x = 1;",
      ".shared .u32 x = 1;",
      ".global .u64 x = g; .func g() { ret; }",
      ".global .u8 x[2] = {1, 2",
      ".global .texref x = {width = 3};",
  };
  for (size_t i = 0; i < sizeof(kBad) / sizeof(kBad[0]); i++) {
    char text[512];
    strcpy(text, PTX_HEAD);
    strcat(text, kBad[i]);
    kiln_status_t status = ptx_refuse(text, NULL);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_BAD_DATA);
    kiln_status_free(status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_become_bytes),
      cmocka_unit_test(addresses_become_relocations),
      cmocka_unit_test(masks_select_a_byte_of_an_address),
      cmocka_unit_test(wrong_values_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
