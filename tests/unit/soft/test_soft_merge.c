// SPDX-License-Identifier: Apache-2.0
//
// soft: several PTX texts as one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "soft/driver/soft_merge.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

// What came out. one-thread
typedef struct merged_t {
  kilni_base_str_t text;
  kilni_base_str_t errors;
  kilni_base_str_t infos;
  kilni_image_ptx_module_t* tree;  // NULL with errors
} merged_t;

static kilni_image_ptx_module_t* read_text(const char* text, size_t size) {
  kiln_bytes_view_t view = {(const uint8_t*)text, size};
  kilni_image_ptx_module_t* tree = NULL;
  kiln_status_t status = kilni_image_ptx_module_create(
      view, "text", NULL, kiln_allocator_libc(), &tree);
  if (!kiln_status_is_ok(status)) {
    print_error("%s\n%s", kiln_status_message(status), text);
  }
  assert_null(status);
  return tree;
}

static merged_t merge(const char* first, const char* second) {
  kilni_soft_part_t parts[2] = {{"one", kilni_base_sv(first), NULL},
                                {"two", kilni_base_sv(second), NULL}};
  for (int i = 0; i < 2; i++) {
    parts[i].tree = read_text(parts[i].text.data, parts[i].text.size);
  }
  merged_t merged;
  kilni_base_str_init(&merged.text, kiln_allocator_libc(), SIZE_MAX);
  kilni_base_str_init(&merged.errors, kiln_allocator_libc(), SIZE_MAX);
  kilni_base_str_init(&merged.infos, kiln_allocator_libc(), SIZE_MAX);
  merged.tree = NULL;
  assert_null(kilni_soft_merge(kiln_allocator_libc(), parts, 2, &merged.text,
                               &merged.errors, &merged.infos));
  if (merged.errors.size == 0) {
    merged.tree = read_text(merged.text.data, merged.text.size);
  }
  for (int i = 0; i < 2; i++) kilni_image_ptx_module_release(parts[i].tree);
  return merged;
}

static void drop(merged_t* merged) {
  kilni_image_ptx_module_release(merged->tree);
  kilni_base_str_deinit(&merged->text);
  kilni_base_str_deinit(&merged->errors);
  kilni_base_str_deinit(&merged->infos);
}

static const kilni_image_ptx_variable_t* variable(const merged_t* merged,
                                                  const char* name) {
  uint32_t index =
      kilni_image_ptx_variable_find(merged->tree, kilni_base_sv(name));
  assert_int_not_equal(index, KILNI_PTX_NONE);
  return &merged->tree->variables[index];
}

// The strong one stays, in whatever order, and is declared where the weak was.
static void test_weak_and_strong(void** state) {
  (void)state;
  static const char weak[] = HEAD
      ".weak .global .align 4 .u32 v = 1;\n"
      ".weak .func f() { .reg .b32 %r<2>; mov.u32 %r1, 1; ret; }\n"
      ".visible .entry a() { .reg .b32 %r<2>; ld.global.u32 %r1, [v];\n"
      "call.uni f, (); ret; }\n";
  static const char strong[] = HEAD
      ".visible .global .align 4 .u32 v = 2;\n"
      ".visible .func f() { ret; }\n";
  for (int i = 0; i < 2; i++) {
    merged_t m = i == 0 ? merge(weak, strong) : merge(strong, weak);
    assert_non_null(m.tree);
    assert_int_equal(variable(&m, "v")->bytes[0], 2);
    uint32_t f = kilni_image_ptx_function_find(m.tree, kilni_base_sv("f"));
    assert_int_equal(m.tree->functions[f].instruction_count, 1);
    drop(&m);
  }
  merged_t m = merge(weak, weak);
  assert_null(m.tree);  // two kernels of one name
  assert_non_null(strstr(kilni_base_str_cstr(&m.errors),
                         "Multiple definition of 'a' in 'two', first defined "
                         "in 'one'"));
  drop(&m);
}

static void test_common(void** state) {
  (void)state;
  merged_t m = merge(HEAD ".common .global .align 4 .b8 c[4];\n", HEAD
                     ".common .global .align 4 .b8 c[16];\n"
                     ".visible .global .u64 at = c;\n");
  assert_non_null(m.tree);
  assert_int_equal(variable(&m, "c")->size_bytes, 16);
  drop(&m);
}

// Names that only their text sees, also such that look like instructions.
static void test_private_names(void** state) {
  (void)state;
#define BODY(name)                                        \
  HEAD ".global .align 4 .u32 add = 1;\n"                 \
       ".shared .align 4 .b8 space[64];\n"                \
       ".func help() { ret; }\n"                          \
       ".visible .entry " name                            \
       "() { .reg .b32 %r<3>;\n"                          \
       "ld.global.u32 %r1, [add]; add.u32 %r2, %r1, 1;\n" \
       "call.uni help, (); mov.u32 %r1, space; ret; }\n"
  static const char first[] = BODY("a");
  static const char two[] = BODY("b");
#undef BODY
  merged_t m = merge(first, two);
  assert_non_null(m.tree);
  assert_int_equal(variable(&m, "add$0")->bytes[0], 1);
  assert_int_equal(variable(&m, "add$1")->bytes[0], 1);
  assert_int_not_equal(
      kilni_image_ptx_function_find(m.tree, kilni_base_sv("help$1")),
      KILNI_PTX_NONE);
  assert_non_null(strstr(m.text.data, "add.u32 %r2"));
  drop(&m);
}

static void test_dynamic_shared(void** state) {
  (void)state;
  merged_t m = merge(HEAD
                     ".extern .shared .align 16 .b8 s[];\n"
                     ".visible .entry a() { .reg .b32 %r<2>;\n"
                     "mov.u32 %r1, s; ret; }\n",
                     HEAD
                     ".extern .shared .align 4 .u32 s[];\n"
                     ".visible .entry b() { .reg .b32 %r<2>;\n"
                     "mov.u32 %r1, s; ret; }\n");
  assert_non_null(m.tree);
  drop(&m);
}

static void test_versions_and_files(void** state) {
  (void)state;
  merged_t m = merge(
      ".version 7.0\n.target sm_50\n.address_size 64\n"
      ".visible .entry a() { .loc 1 5 0\n ret; }\n.file 1 \"a.cu\"\n",
      ".version 8.3\n.target sm_80, debug\n.address_size 64\n"
      ".visible .entry b() { .loc 1 7 0\n ret; }\n.file 1 \"b.cu\"\n");
  assert_non_null(m.tree);
  assert_int_equal(m.tree->version_major, 8);
  assert_int_equal(m.tree->version_minor, 3);
  assert_int_equal(m.tree->target_sm, 80);
  assert_int_equal(m.tree->file_count, 2);
  assert_int_equal(m.tree->locations[1].file, 2);
  drop(&m);
}

static void test_undefined(void** state) {
  (void)state;
  merged_t m = merge(HEAD
                     ".extern .global .u32 gone;\n.extern .func unused();\n"
                     ".visible .entry a() { .reg .b32 %r<2>;\n"
                     "ld.global.u32 %r1, [gone]; ret; }\n",
                     HEAD);
  assert_string_equal(kilni_base_str_cstr(&m.errors),
                      "error   : Undefined reference to 'gone' in 'one'\n");
  drop(&m);
}

// Sections of two texts cannot stay, and that is said of each text once.
static void test_debug_sections(void** state) {
  (void)state;
  static const char with[] = HEAD
      ".visible .entry a() { ret; }\n"
      ".section .debug_info {\n.b32 1\n}\n"
      ".section .debug_abbrev {\n.b8 0\n}\n";
  static const char without[] = HEAD ".visible .entry b() { ret; }\n";
  merged_t m = merge(without, with);
  assert_non_null(m.tree);
  assert_null(strstr(kilni_base_str_cstr(&m.text), ".section"));
  const char* said = strstr(kilni_base_str_cstr(&m.infos),
                            "the debug sections of 'two' were left out");
  assert_non_null(said);
  assert_null(strstr(said + 16, "debug sections"));
  assert_null(strstr(kilni_base_str_cstr(&m.infos), "'one'"));
  drop(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_debug_sections),
      cmocka_unit_test(test_weak_and_strong),
      cmocka_unit_test(test_common),
      cmocka_unit_test(test_private_names),
      cmocka_unit_test(test_dynamic_shared),
      cmocka_unit_test(test_versions_and_files),
      cmocka_unit_test(test_undefined),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
