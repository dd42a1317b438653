// SPDX-License-Identifier: Apache-2.0
//
// image: code files as lists of kernels and parameters.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "image/image.h"
#include "ptx_text.h"

static kiln_bytes_view_t bytes_of(const char* text) {
  kiln_bytes_view_t bytes = {(const uint8_t*)text, strlen(text)};
  return bytes;
}

static const char kText[] =
    ".version 9.0\n.target sm_90a\n.address_size 64\n"
    ".shared .align 16 .b8 tile[100];\n.shared .b8 other[1000];\n"
    ".extern .shared .b8 dynamic[];\n.func f() { ret; }\n"
    ".visible .entry first(.param .u64 p, .param .u32 n, .param .f32 x,\n"
    ".param .u64 .ptr .global .align 4 q, .param .align 8 .b8 s[12],\n"
    ".param .u8 c) .reqntid 32, 2 {\n.shared .u32 own[3];\n.reg .b64 %a;\n"
    "mov.u64 %a, tile;\nst.shared.b8 [tile+1], 1;\nmov.u64 %a, dynamic;\n"
    "ret;\n}\n.visible .entry second() .maxntid 256 { ret; }\n";

static void kernels_and_parameters_are_listed(void** state) {
  (void)state;
  kiln_image_t* image;
  assert_null(kiln_image_create(bytes_of(kText), NULL, &image));
  assert_int_equal(kiln_image_format(image), KILN_CODE_FORMAT_PTX);
  assert_int_equal(kiln_image_ptx_version(image), 9000);
  assert_int_equal(kiln_image_target_count(image), 1);
  assert_string_equal(kiln_image_target(image, 0), "sm_90a");
  assert_null(kiln_image_target(image, 1));
  assert_int_equal(kiln_image_kernel_count(image), 2);
  const kiln_image_kernel_t* first = kiln_image_kernel(image, 0);
  assert_string_equal(first->name, "first");
  assert_int_equal(first->line, 8);
  assert_int_equal(first->params_known, 1);
  assert_int_equal(first->param_count, 6);
  assert_int_equal(first->param_bytes, 37);
  assert_int_equal(first->required_block[0], 32);
  assert_int_equal(first->required_block[1], 2);
  assert_int_equal(first->required_block[2], 1);
  // own, then tile behind it on 16 bytes; other is not named, dynamic is not
  // static.
  assert_int_equal(first->static_shared_bytes, 116);
  static const struct {
    const char* name;
    const char* type;
    uint32_t offset;
    uint32_t bytes;
    uint32_t kind;
  } kParams[] = {{"p", "u64", 0, 8, KILN_IMAGE_PARAM_INTEGER},
                 {"n", "u32", 8, 4, KILN_IMAGE_PARAM_INTEGER},
                 {"x", "f32", 12, 4, KILN_IMAGE_PARAM_FLOAT},
                 {"q", "u64", 16, 8, KILN_IMAGE_PARAM_POINTER},
                 {"s", "b8", 24, 12, KILN_IMAGE_PARAM_BYTES},
                 {"c", "u8", 36, 1, KILN_IMAGE_PARAM_INTEGER}};
  for (uint32_t i = 0; i < 6; i++) {
    const kiln_image_param_t* param = kiln_image_kernel_param(image, 0, i);
    assert_string_equal(param->name, kParams[i].name);
    assert_string_equal(param->type, kParams[i].type);
    assert_int_equal(param->offset, kParams[i].offset);
    assert_int_equal(param->bytes, kParams[i].bytes);
    assert_int_equal(param->kind, kParams[i].kind);
  }
  assert_null(kiln_image_kernel_param(image, 0, 6));
  assert_null(kiln_image_kernel_param(image, 2, 0));
  assert_int_equal(kiln_image_kernel(image, 1)->maximum_block[0], 256);
  assert_int_equal(kiln_image_kernel(image, 1)->static_shared_bytes, 0);
  assert_null(kiln_image_kernel(image, 2));
  assert_non_null(kilni_image_ptx(image));
  kiln_image_retain(image);
  kiln_image_release(image);
  assert_int_equal(kiln_image_kernel_count(image), 2);
  kiln_image_release(image);
  kiln_image_release(NULL);
  kiln_image_retain(NULL);
}

static void kernels_are_found_by_name(void** state) {
  (void)state;
  kiln_image_t* image;
  uint32_t index = 9;
  assert_null(kiln_image_create(bytes_of(kText), NULL, &image));
  assert_null(kiln_image_kernel_find(image, "second", &index));
  assert_int_equal(index, 1);
  kiln_status_t status = kiln_image_kernel_find(image, "third", &index);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  assert_int_equal(index, 0);
  assert_non_null(strstr(kiln_status_message(status), "third"));
  assert_string_equal(kiln_status_fix(status), "name one of: first, second");
  kiln_status_free(status);
  kiln_image_release(image);
}

static void formats_are_seen_from_the_bytes(void** state) {
  (void)state;
  uint8_t elf[64] = {0x7f, 'E', 'L', 'F'};
  elf[18] = 190;
  kiln_bytes_view_t cubin = {elf, sizeof(elf)};
  static const uint8_t kFat[8] = {0x50, 0xed, 0x55, 0xba};
  kiln_bytes_view_t fatbin = {kFat, sizeof(kFat)};
  assert_int_equal(kiln_code_format_of(cubin), KILN_CODE_FORMAT_CUBIN);
  assert_int_equal(kiln_code_format_of(fatbin), KILN_CODE_FORMAT_FATBIN);
  elf[18] = 62;  // a program of this machine
  assert_int_equal(kiln_code_format_of(cubin), KILN_CODE_FORMAT_UNKNOWN);
  assert_int_equal(kiln_code_format_of(bytes_of(kText)), KILN_CODE_FORMAT_PTX);
  assert_int_equal(
      kiln_code_format_of(bytes_of("// c\n /* .x */ \t.version 8.0\n")),
      KILN_CODE_FORMAT_PTX);
  static const char* const kOther[] = {"",   ".versio", "text", "/* .version",
                                       "//", "/"};
  for (size_t i = 0; i < sizeof(kOther) / sizeof(kOther[0]); i++) {
    assert_int_equal(kiln_code_format_of(bytes_of(kOther[i])),
                     KILN_CODE_FORMAT_UNKNOWN);
  }
  assert_string_equal(kiln_code_format_name(KILN_CODE_FORMAT_CUBIN), "cubin");
  assert_string_equal(kiln_code_format_name(77), "unknown");
  elf[18] = 190;
  kiln_image_t* image;
  kiln_status_t status = kiln_image_create(cubin, NULL, &image);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_UNSUPPORTED);
  assert_null(image);
  kiln_status_free(status);
  status = kiln_image_create(bytes_of("junk"), NULL, &image);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_BAD_DATA);
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
}

static void errors_name_what_the_caller_named(void** state) {
  (void)state;
  kiln_image_options_t options = kiln_image_options_default();
  options.name = "my.ptx";
  kiln_image_t* image;
  kiln_status_t status =
      kiln_image_create(bytes_of(PTX_KERNEL("nope;")), &options, &image);
  assert_non_null(
      strstr(kiln_status_message(status), "my.ptx: line 7, column 1"));
  kiln_status_free(status);
  options.struct_size = 0;
  status = kiln_image_create(bytes_of(kText), &options, &image);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kernels_and_parameters_are_listed),
      cmocka_unit_test(kernels_are_found_by_name),
      cmocka_unit_test(formats_are_seen_from_the_bytes),
      cmocka_unit_test(errors_name_what_the_caller_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
