// SPDX-License-Identifier: Apache-2.0
//
// cli: tests of what each parameter gets and the shape of the launch.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/run_element.h"
#include "cli/run_plan.h"

// A kernel void f(const T* in, T* out, int n, float s, double d, char c).
// What its parameter 2 is called; NULL: "n".
static const char* g_name;

static void make_kernel(kilni_cli_kernel_t* k) {
  memset(k, 0, sizeof(*k));
  k->name = "f";
  k->params_known = true;
  k->param_count = 6;
  k->params[0] = (kilni_cli_param_t){"f_0", 8, KILN_PARAM_KIND_INTEGER, NULL};
  k->params[1] = (kilni_cli_param_t){"f_1", 8, KILN_PARAM_KIND_POINTER, NULL};
  k->params[2] = (kilni_cli_param_t){"n", 4, KILN_PARAM_KIND_INTEGER, NULL};
  if (g_name != NULL) k->params[2].name = g_name;
  k->params[3] = (kilni_cli_param_t){"s", 4, KILN_PARAM_KIND_FLOAT, NULL};
  k->params[4] = (kilni_cli_param_t){"d", 8, KILN_PARAM_KIND_FLOAT, NULL};
  k->params[5] = (kilni_cli_param_t){"c", 1, KILN_PARAM_KIND_INTEGER, NULL};
}

// One "option=value" of the request.
static void bind(kilni_cli_request_t* r, kilni_cli_binding_t* b,
                 const char* option, const char* text) {
  kilni_cli_error_t error;
  const char* rest;
  memset(b, 0, sizeof(*b));
  b->option = option;
  b->parameter = text;
  b->is_in = strcmp(option, "in") == 0 || strcmp(option, "inout") == 0;
  b->is_out = strcmp(option, "out") == 0 || strcmp(option, "inout") == 0;
  b->is_arg = strcmp(option, "arg") == 0;
  assert_true(kilni_cli_split_assignment(option, text, &b->parameter_size,
                                         &rest, &error));
  if (b->is_arg) {
    assert_true(kilni_cli_value_parse(rest, &b->value, &error));
  } else {
    assert_true(kilni_cli_spec_parse(rest, &b->spec, &error));
    assert_true(
        kilni_cli_buffer_add(&b->path, rest, b->spec.path_size, &error));
    if (b->is_in) b->array.shape = b->spec.shape;
  }
  r->binding_count++;
}

static const char* const GOOD[] = {"in",  "0=x:f32[100]", "out", "1=y:@0",
                                   "arg", "2=len(0)",     "arg", "s=2.5f32",
                                   "arg", "4=1f64",       "arg", "c=true"};

// The plan for GOOD with `text` in place of (or behind) binding `index`.
static bool plan_with(size_t index, const char* option, const char* text,
                      kilni_cli_plan_t* plan, kilni_cli_error_t* error) {
  kilni_cli_kernel_t kernel;
  kilni_cli_request_t r = {0};
  kilni_cli_binding_t bindings[8];
  make_kernel(&kernel);
  r.bindings = bindings;
  for (size_t i = 0; i < 6; i++) {
    if (i != index) {
      bind(&r, &bindings[r.binding_count], GOOD[2 * i], GOOD[2 * i + 1]);
    } else if (text != NULL) {
      bind(&r, &bindings[r.binding_count], option, text);
    }
  }
  if (index > 6) bind(&r, &bindings[r.binding_count], option, text);
  bool ok = kilni_cli_plan_make(&kernel, &r, plan, error);
  for (size_t i = 0; i < r.binding_count; i++) {
    kilni_cli_buffer_deinit(&bindings[i].path);
  }
  return ok;
}

static void a_good_request_is_planned(void** state) {
  (void)state;
  kilni_cli_plan_t plan;
  kilni_cli_error_t error;
  assert_true(plan_with(6, NULL, NULL, &plan, &error));
  assert_int_equal(plan.count, 6);
  assert_int_equal(plan.slots[1].shape.bytes, 400);
  assert_int_equal(plan.slots[2].scalar.bits, 100);
  assert_int_equal(plan.slots[2].scalar.bytes, 4);
  assert_int_equal(plan.block[0], 256);
  assert_int_equal(plan.grid[0], 1);
  assert_true(plan.grid_chosen);
  assert_int_equal(plan.grid_covers, 100);
}

static void what_is_wrong_names_the_parameter(void** state) {
  (void)state;
  static const struct {
    size_t index;
    const char* option;
    const char* text;
    const char* part;  // of the message
  } BAD[] = {
      {0, "in", NULL, "parameter 0"},
      {1, "arg", "1=1i32", "type i32"},
      {1, "arg", "1=1.0f64", "type f64"},
      {1, "out", "1=y:@1", "cycle"},
      {1, "out", "1=y:@2", "not a buffer"},
      {1, "out", "1=y:@9", "no parameter \"9\""},
      {1, "out", "1=y", "no type and shape"},
      {1, "out", "1=y.png:f32[2,2]", "picture"},
      {2, "arg", "n=1i64", "\"n\""},
      {2, "arg", "2=1f32", "an integer"},
      {2, "arg", "2=len(3)", "not a buffer"},
      {2, "in", "2=x:u8[4]", "not a buffer"},
      {3, "arg", "s=1i32", "a float"},
      {3, "arg", "s=1f64", "of 4 bytes"},
      {3, "arg", "s=len(0)", "a float"},
      {4, "arg", "d=1i64", "a float"},
      {5, "arg", "c=1i32", "of 1 byte)"},
      {9, "arg", "2=1i32", "twice"},
      {9, "in", "2=x:u8[4]", "twice"},
      {9, "in", "0=x:u8[4]", "twice"},
      {9, "arg", "zz=1i32", "no parameter \"zz\""},
      {9, "arg", "6=1i32", "no parameter \"6\""},
      {9, "arg", "99999999999=1i32", "no parameter"},
  };
  for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
    kilni_cli_plan_t plan;
    kilni_cli_error_t error;
    if (plan_with(BAD[i].index, BAD[i].option, BAD[i].text, &plan, &error)) {
      fail_msg("case %zu was taken", i);
    }
    assert_int_equal(error.code, KILN_STATUS_INVALID_ARGUMENT);
    if (strstr(error.message, BAD[i].part) == NULL) {
      fail_msg("case %zu: \"%s\" lacks \"%s\"", i, error.message, BAD[i].part);
    }
    assert_true(error.fix[0] != 0);
  }
}

// By its name, where it has one that a user gave it and can write.
static void what_to_write_names_the_parameter(void** state) {
  (void)state;
  static const struct {
    size_t index;
    const char* option;
    const char* text;
    const char* name;  // of parameter 2; NULL: as it is
    const char* message;
    const char* fix;
  } BAD[] = {
      {2, "arg", NULL, NULL, "parameter 2 (\"n\", an integer of 4 bytes)",
       "write --arg 'n=len(f_0)', if it counts those elements, or a number"},
      {2, "arg", "2=1f32", "f_param_2", "parameter 2 (\"f_param_2\", ",
       "write --arg 2=1i32"},
      {2, "arg", NULL, "f_param_1", "(\"f_param_1\", ",
       "write --arg 'f_param_1=len(f_0)', if"},
      {2, "arg", NULL, "", "parameter 2 (an integer of 4 bytes)",
       "write --arg '2=len(f_0)', if"},
      {2, "arg", NULL, "a=b", "(\"a=b\", ", "write --arg '2=len(f_0)', if"},
      {2, "arg", NULL,
       "a234567890123456789012345678901234567890123456789012345678901234",
       "parameter 2 (\"a23", "write --arg '2=len(f_0)', if"},
      {1, "out", NULL, NULL, "parameter 1 (\"f_1\", a pointer of 8 bytes)",
       "write --in f_1=FILE, --out f_1=FILE:TYPE[N], --inout f_1=FILE"},
      {1, "out", "1=y", NULL, "parameter 1 (\"f_1\") has no type and shape",
       "write --out f_1=y:TYPE[N,...], or :@P to copy those of parameter P"},
      {1, "out", "1=y:@2", NULL, "parameter 2 (\"n\"), whose shape", "copy"},
      {1, "out", "1=y:@1", NULL, "parameter 1 (\"f_1\") is copied", "give"},
      {2, "arg", "2=len(3)", NULL, "parameter 3 (\"s\") is not a buffer", ""},
      {9, "arg", "2=1i32", NULL, "parameter 2 (\"n\") is given twice", ""},
      {9, "arg", "2=1i32", "", "parameter 2 is given twice", ""},
  };
  for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
    kilni_cli_plan_t plan;
    kilni_cli_error_t error;
    g_name = BAD[i].name;
    assert_false(
        plan_with(BAD[i].index, BAD[i].option, BAD[i].text, &plan, &error));
    g_name = NULL;
    if (strstr(error.message, BAD[i].message) == NULL ||
        strncmp(error.fix, BAD[i].fix, strlen(BAD[i].fix)) != 0) {
      fail_msg("case %zu: %s: %s", i, error.message, error.fix);
    }
  }
}

// A program says what its numbers are: they are asked for so.
static void a_number_is_asked_for_with_its_type(void** state) {
  (void)state;
  static const struct {
    const char* type;
    uint32_t bytes;
    uint32_t kind;
    const char* fix;
  } CASES[] = {
      {"u32", 4, KILN_PARAM_KIND_INTEGER, "write --arg m=1u32"},
      {"i64", 8, KILN_PARAM_KIND_INTEGER, "write --arg m=1i64"},
      {"u64", 8, KILN_PARAM_KIND_INTEGER, "write --arg m=1u64"},
      {"u8", 1, KILN_PARAM_KIND_INTEGER, "write --arg m=1u8"},
      {"bool", 1, KILN_PARAM_KIND_INTEGER, "write --arg m=true"},
      {"f32", 4, KILN_PARAM_KIND_FLOAT, "write --arg m=2.5f32"},
      {"f64", 8, KILN_PARAM_KIND_FLOAT, "write --arg m=2.5f64"},
      {"f16", 2, KILN_PARAM_KIND_FLOAT, "write --arg m=2.5f16"},
      {"bf16", 2, KILN_PARAM_KIND_FLOAT, "write --arg m=2.5bf16"},
  };
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
    kilni_cli_kernel_t kernel;
    kilni_cli_request_t r = {0};
    kilni_cli_plan_t plan;
    kilni_cli_error_t error;
    memset(&kernel, 0, sizeof(kernel));
    kernel.name = "g";
    kernel.params_known = true;
    kernel.param_count = 1;
    kernel.params[0] =
        (kilni_cli_param_t){"m", CASES[i].bytes, CASES[i].kind, CASES[i].type};
    assert_false(kilni_cli_plan_make(&kernel, &r, &plan, &error));
    assert_string_equal(error.fix, CASES[i].fix);
  }
}

// What is proposed for a struct has just its bytes.
static void a_struct_is_proposed_with_its_size(void** state) {
  (void)state;
  for (uint32_t bytes = 1; bytes <= 33; bytes++) {
    kilni_cli_kernel_t kernel;
    kilni_cli_request_t r = {0};
    kilni_cli_plan_t plan;
    kilni_cli_error_t error;
    kilni_cli_buffer_t got = {0};
    memset(&kernel, 0, sizeof(kernel));
    kernel.name = "g";
    kernel.params_known = true;
    kernel.param_count = 1;
    kernel.params[0] =
        (kilni_cli_param_t){"m", bytes, KILN_PARAM_KIND_BYTES, NULL};
    assert_false(kilni_cli_plan_make(&kernel, &r, &plan, &error));
    char* text = strstr(error.fix, "'m={");
    if (bytes == 2 || bytes > 32) {
      assert_null(text);
      continue;
    }
    assert_non_null(text);
    text += 3;
    text[strcspn(text, "'")] = 0;
    if (!kilni_cli_struct_parse(text, &got, &error)) fail_msg("%s", text);
    assert_int_equal(got.size, bytes);
    kilni_cli_buffer_deinit(&got);
  }
}

static void an_input_may_be_written_elsewhere(void** state) {
  (void)state;
  kilni_cli_plan_t plan;
  kilni_cli_error_t error;
  assert_true(plan_with(9, "out", "0=z", &plan, &error));
  assert_non_null(plan.slots[0].in);
  assert_non_null(plan.slots[0].out);
  assert_int_equal(plan.slots[0].shape.count, 100);
  assert_true(plan_with(9, "out", "0=z:f32[100]", &plan, &error));
  assert_false(plan_with(9, "out", "0=z:f32[99]", &plan, &error));
}

static void the_longest_buffer_makes_the_grid(void** state) {
  (void)state;
  kilni_cli_plan_t plan;
  kilni_cli_error_t error;
  assert_true(plan_with(1, "out", "1=y:u8[256]", &plan, &error));
  assert_int_equal(plan.grid[0], 1);
  assert_true(plan_with(1, "out", "1=y:u8[257]", &plan, &error));
  assert_int_equal(plan.grid[0], 2);
  assert_true(plan_with(1, "out", "1=y:u8[16,32,3]", &plan, &error));
  assert_int_equal(plan.grid[0], 6);
}

static void a_given_or_required_block_is_taken(void** state) {
  (void)state;
  kilni_cli_kernel_t kernel;
  kilni_cli_request_t r = {0};
  kilni_cli_binding_t b;
  kilni_cli_plan_t plan;
  kilni_cli_error_t error;
  memset(&kernel, 0, sizeof(kernel));
  kernel.name = "g";
  kernel.params_known = true;
  kernel.param_count = 1;
  kernel.params[0] = (kilni_cli_param_t){"", 8, KILN_PARAM_KIND_UNKNOWN, NULL};
  kernel.required_block[0] = 8;
  kernel.required_block[1] = 4;
  r.bindings = &b;
  bind(&r, &b, "out", "0=y:u8[33]");
  assert_true(kilni_cli_plan_make(&kernel, &r, &plan, &error));
  assert_int_equal(plan.block[0], 8);
  assert_int_equal(plan.block[1], 4);
  assert_int_equal(plan.block[2], 1);
  assert_int_equal(plan.grid[0], 2);
  r.has_block = r.has_grid = true;
  r.block[0] = r.block[1] = r.block[2] = 1;
  r.grid[0] = r.grid[1] = r.grid[2] = 3;
  assert_true(kilni_cli_plan_make(&kernel, &r, &plan, &error));
  assert_int_equal(plan.block[0], 1);
  assert_int_equal(plan.grid[2], 3);
  assert_false(plan.grid_chosen);
  kilni_cli_buffer_deinit(&b.path);
}

static void a_kernel_is_named_as_cpp_does(void** state) {
  (void)state;
  kilni_cli_kernel_t kernel;
  kilni_cli_request_t r = {0};
  kilni_cli_plan_t plan;
  kilni_cli_error_t error;
  make_kernel(&kernel);
  kernel.name = "_ZN2ns2tkIfEEvPT_";
  assert_false(kilni_cli_plan_make(&kernel, &r, &plan, &error));
  assert_non_null(strstr(error.message, "the kernel \"ns::tk<float>\": "));
}

// What a name in C++ says of its pointers, data must agree with.
static void data_are_what_the_pointer_is_of(void** state) {
  (void)state;
  static const struct {
    const char* kernel;
    const char* type;
    bool fits;
  } rows[] = {
      {"_Z1fPKfPfi", "f32", true},         {"_Z1fPKfPfi", "f64", false},
      {"_Z1fPKfPfi", "i32", false},        {"_Z1fPKfPfi", "u8", true},
      {"_Z1fPiPfi", "u32", true},          {"_Z1fPiPfi", "i64", false},
      {"_Z1fPiPfi", "f32", false},         {"_Z2tkIdEvPT_", "f64", true},
      {"_Z2tkIdEvPT_", "f32", false},      {"_Z1fP6__half", "f16", true},
      {"_Z1fP6__half", "u16", true},       {"_Z1fP6__half", "bf16", false},
      {"_Z1fP6__half", "f32", false},      {"_Z1fPvi", "f64", true},
      {"_Z1fP4Pair", "f64", true},         {"f", "f64", true},
      {"_Z1fPVjS_", "i32", true},          {"_Z1fPbi", "i8", true},
      {"_Z1fN2ns1VIiLi3EEE", "f64", true}, {"_Z1fPy", "i64", true},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    char pointee[64];
    kilni_cli_type_t type = kilni_cli_type_find(rows[i].type,
                                                strlen(rows[i].type)),
                     own;
    if (kilni_cli_element_fits(rows[i].kernel, 0, type, true, pointee, &own) !=
        rows[i].fits) {
      fail_msg("%s of %s: \"%s\"", rows[i].type, rows[i].kernel, pointee);
    }
  }
  kilni_cli_type_t own;
  char pointee[64];
  assert_false(kilni_cli_element_fits("_Z1fN2ns1VIiLi3EEEPKdi", 1,
                                      kilni_cli_type_find("f32", 3), true,
                                      pointee, &own));
  assert_string_equal(pointee, "double const");
  // u8 that are no bytes of other elements.
  kilni_cli_type_t u8 = KILNI_CLI_TYPE_U8;
  assert_false(
      kilni_cli_element_fits("_Z1fPKfPfi", 0, u8, false, pointee, &own));
  assert_true(kilni_cli_element_fits("_Z1fPbi", 0, u8, false, pointee, &own));
  assert_false(kilni_cli_element_fits("_Z1fN2ns1VIiLi3EEEPKdi", 1,
                                      KILNI_CLI_TYPE_F32, true, pointee, &own));
  assert_string_equal(kilni_cli_type_info(own)->text, "f64");
}

// A kernel that reads one word of each thread's: `body` has its address in
// %rd2.
static kiln_image_use_t* use_of(const char* body, uint32_t bytes) {
  char text[1024];
  int size = snprintf(
      text, sizeof(text),
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry f(.param .u64 p) {\n.reg .b64 %%rd<4>; .reg .b32 "
      "%%r<4>; .reg .f32 %%f<4>; .reg .f64 %%fd<4>; .reg .b16 %%h<4>;\n"
      "ld.param.u64 %%rd1, [p]; mov.u32 %%r1, %%tid.x;\n"
      "mul.wide.u32 %%rd2, %%r1, %u; add.s64 %%rd2, %%rd1, %%rd2;\n"
      "%s ret; }\n",
      bytes, body);
  kiln_bytes_view_t view = {(const uint8_t*)text, (size_t)size};
  kiln_image_t* image;
  kiln_image_use_t* use;
  assert_null(kiln_image_create(view, NULL, &image));
  assert_null(kiln_image_use_create(image, 0, &use));
  kiln_image_release(image);
  return use;
}

// Where the name says nothing, data must not contradict all accesses.
static void data_are_what_the_kernel_computes_with(void** state) {
  (void)state;
  static const char F32[] = "ld.global.f32 %f1, [%rd2]; add.f32 %f1, %f1, %f1;";
  static const char F64[] =
      "ld.global.f64 %fd1, [%rd2]; add.f64 %fd1, %fd1, %fd1;";
  static const char WORD[] = "ld.global.u32 %r2, [%rd2];";
  static const char HALF[] = "ld.global.u16 %h1, [%rd2];";
  static const char HALF2[] =
      "ld.global.u32 %r2, [%rd2]; add.f16x2 %r3, %r2, %r2;";
  static const char BYTE[] = "ld.global.u8 %h1, [%rd2];";
  static const char PIXEL[] =
      "ld.global.u8 %h1, [%rd2]; cvt.rn.f32.u16 %f1, %h1;";
  static const char COUNT[] = "atom.global.add.u32 %r2, [%rd2], 1;";
  static const char MOST[] = "atom.global.max.s32 %r2, [%rd2], 1;";
  static const struct {
    const char* body;
    uint32_t apart;
    const char* data;
    const char* fix;  // NULL: it fits
  } rows[] = {
      {F32, 4, "f32", NULL},
      {F32, 4, "u8", NULL},
      {F32, 4, "f64", "f32"},
      {F32, 4, "i32", "f32"},
      {F32, 4, "u32", "f32"},
      {F32, 4, "f16", "f32"},
      {F32, 4, "i64", "f32"},
      {F32, 4, "bool", "f32"},
      {F32, 8, "f64", "f32"},
      {F64, 8, "f64", NULL},
      {F64, 8, "f32", "f64"},
      {F64, 8, "i64", "f64"},
      {WORD, 4, "f32", NULL},
      {WORD, 4, "i32", NULL},
      {WORD, 4, "i64", "i32, u32 or f32"},
      {WORD, 4, "u64", "i32, u32 or f32"},
      {WORD, 4, "f64", "i32, u32 or f32"},
      {WORD, 4, "f16", NULL},
      {WORD, 4, "i8", NULL},
      // The low half of a number.
      {WORD, 8, "i64", NULL},
      {WORD, 8, "f64", NULL},
      {HALF, 2, "f16", NULL},
      {HALF, 2, "bf16", NULL},
      {HALF, 2, "u16", NULL},
      {HALF, 2, "f32", "i16, u16, f16 or bf16"},
      {HALF, 2, "i32", "i16, u16, f16 or bf16"},
      {HALF, 4, "i32", NULL},
      {HALF2, 4, "f16", NULL},
      {HALF2, 4, "bf16", NULL},
      {HALF2, 4, "u16", NULL},
      {HALF2, 4, "u32", NULL},
      {HALF2, 4, "u8", NULL},
      {HALF2, 4, "f32", "f16 or bf16"},
      {HALF2, 4, "f64", "f16 or bf16"},
      {HALF2, 4, "i64", "f16 or bf16"},
      {BYTE, 1, "f32", NULL},
      {BYTE, 1, "u32", NULL},
      {PIXEL, 1, "u8", NULL},
      {PIXEL, 1, "f32", "u8"},
      {PIXEL, 1, "u32", NULL},
      {PIXEL, 4, "f32", NULL},
      {COUNT, 4, "i32", NULL},
      {COUNT, 4, "f32", "i32"},
      {COUNT, 4, "u64", "u32"},
      {MOST, 4, "f32", NULL},
      {"st.global.u32 [%rd2], 0;", 4, "f32", NULL},
      {"ret;", 4, "f64", NULL},
  };
  char what[64], types[64];
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kiln_image_use_t* use = use_of(rows[i].body, rows[i].apart);
    kilni_cli_type_t type =
        kilni_cli_type_find(rows[i].data, strlen(rows[i].data));
    bool fits = kilni_cli_access_fits(use, 0, type, true, what, types);
    if (fits != (rows[i].fix == NULL)) {
      fail_msg("%s at \"%s\": \"%s\"", rows[i].data, rows[i].body, what);
    }
    if (!fits) {
      assert_string_equal(types, rows[i].fix);
      // What is proposed is taken.
      kilni_cli_type_t first = kilni_cli_type_find(types, strcspn(types, ", "));
      assert_true(kilni_cli_access_fits(use, 0, first, true, what, types));
    }
    kiln_image_use_release(use);
  }
  assert_true(
      kilni_cli_access_fits(NULL, 0, KILNI_CLI_TYPE_F64, true, what, types));
  kiln_image_use_t* use = use_of(F32, 4);
  assert_false(
      kilni_cli_access_fits(use, 0, KILNI_CLI_TYPE_U8, false, what, types));
  assert_string_equal(types, "f32");
  kiln_image_use_release(use);
  use = use_of(WORD, 4);
  assert_true(
      kilni_cli_access_fits(use, 0, KILNI_CLI_TYPE_U8, false, what, types));
  kiln_image_use_release(use);
}

// A name of one of CUDA's vectors, and arithmetic on what it says.
static void vectors_are_what_their_name_says(void** state) {
  (void)state;
  static const char ONE[] =
      "ld.global.v4.f32 {%f1, %f2, %f3, %f0}, [%rd2]; add.f32 %f1, %f1, %f1;";
  static const char MOVES[] = "ld.global.v4.f32 {%f1, %f2, %f3, %f0}, [%rd2];";
  static const char HALF2[] =
      "ld.global.u32 %r2, [%rd2]; add.f16x2 %r3, %r2, %r2;";
  static const char PIXEL[] =
      "ld.global.v4.u8 {%h0, %h1, %h2, %h3}, [%rd2]; cvt.rn.f32.u16 %f1, %h1;";
  static const struct {
    const char* name;
    const char* body;
    const char* data;
    bool fits;
  } rows[] = {
      {"_Z1fP6float4", ONE, "f32", true},
      {"_Z1fP6float4", ONE, "u8", true},
      {"_Z1fP6float4", ONE, "i32", false},
      {"_Z1fPK6float4", ONE, "f64", false},
      {"_Z1fP6float4", MOVES, "i32", true},
      {"_Z1fP6float4", MOVES, "f64", true},
      {"_Z1fP4Pair", ONE, "i32", true},
      {"f", ONE, "i32", true},
      {"_Z1fP7__half2", HALF2, "u32", true},
      {"_Z1fP7__half2", HALF2, "f16", true},
      {"_Z1fP7__half2", HALF2, "f32", false},
      {"_Z1fP6uchar4", PIXEL, "u32", true},
      {"_Z1fP6uchar4", PIXEL, "f32", false},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kilni_cli_kernel_t kernel;
    kilni_cli_error_t error;
    kilni_cli_shape_t shape = {.rank = 1, .dims = {4}};
    kiln_image_use_t* use = use_of(rows[i].body, 16);
    make_kernel(&kernel);
    kernel.name = rows[i].name;
    kernel.use = use;
    shape.type = kilni_cli_type_find(rows[i].data, strlen(rows[i].data));
    assert_true(kilni_cli_shape_finish(&shape, &error));
    if (kilni_cli_fit_data(&kernel, 0, &shape, true, &error) != rows[i].fits) {
      fail_msg("%s of %s", rows[i].data, rows[i].name);
    }
    if (!rows[i].fits) assert_non_null(strstr(error.message, "points to"));
    kiln_image_use_release(use);
  }
}

static void the_plan_asks_the_kernel(void** state) {
  (void)state;
  kilni_cli_kernel_t kernel;
  kilni_cli_request_t r = {0};
  kilni_cli_binding_t b;
  kilni_cli_plan_t plan;
  kilni_cli_error_t error;
  kiln_image_use_t* use =
      use_of("ld.global.f32 %f1, [%rd2]; add.f32 %f1, %f1, %f1;", 4);
  make_kernel(&kernel);
  kernel.param_count = 1;
  kernel.use = use;
  r.bindings = &b;
  bind(&r, &b, "in", "0=x:f64[4]");
  assert_false(kilni_cli_plan_make(&kernel, &r, &plan, &error));
  assert_non_null(strstr(error.message, "floats of 4 bytes"));
  assert_non_null(strstr(error.message, "f64[4]"));
  // What its name says goes first.
  kernel.name = "_Z1fPd";
  assert_true(kilni_cli_plan_make(&kernel, &r, &plan, &error));
  kilni_cli_buffer_deinit(&b.path);
  kiln_image_use_release(use);
}

// What a launch is when so much is said of it; no row where it is refused.
static void a_launch_says_all_that_the_kernel_counts_in(void** state) {
  (void)state;
  static const uint32_t LINE[3] = {4, 1, 1}, PLANE[3] = {4, 4, 1};
  static const struct {
    uint32_t threads;  // dimensions
    uint32_t blocks;
    const uint32_t* grid;
    const uint32_t* block;
    uint64_t longest;
    bool fits;
  } rows[] = {
      {1, 1, NULL, NULL, 1000, true}, {0, 0, NULL, NULL, 1000, true},
      {2, 1, NULL, NULL, 10, false},  {1, 2, NULL, NULL, 10, false},
      {2, 2, LINE, NULL, 10, false},  {2, 2, PLANE, NULL, 10, false},
      {1, 2, LINE, NULL, 10, false},  {1, 2, PLANE, NULL, 10, true},
      {2, 2, NULL, LINE, 4, false},   {2, 2, NULL, PLANE, 16, true},
      {2, 2, NULL, PLANE, 17, false}, {2, 1, NULL, PLANE, 17, true},
      {3, 3, LINE, LINE, 10, true},   {1, 3, NULL, PLANE, 17, false},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kilni_cli_kernel_t kernel;
    kilni_cli_error_t error;
    uint32_t grid[3], block[3];
    kilni_cli_asked_t asked = {rows[i].grid, rows[i].block, rows[i].longest,
                               "--"};
    make_kernel(&kernel);
    kernel.thread_dimensions = rows[i].threads;
    kernel.block_dimensions = rows[i].blocks;
    if (kilni_cli_fit_launch(&kernel, &asked, grid, block, &error) !=
        rows[i].fits) {
      fail_msg("launch %zu", i);
    }
    if (rows[i].fits) continue;
    assert_int_equal(error.code, KILN_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(error.fix, "--block X,Y"));
  }
}

static void unknown_parameters_go_by_position(void** state) {
  (void)state;
  kilni_cli_kernel_t kernel;
  kilni_cli_request_t r = {0};
  kilni_cli_binding_t b[2];
  kilni_cli_plan_t plan;
  kilni_cli_error_t error;
  memset(&kernel, 0, sizeof(kernel));
  kernel.name = "g";
  r.bindings = b;
  bind(&r, &b[0], "arg", "1=7u16");
  assert_false(kilni_cli_plan_make(&kernel, &r, &plan, &error));
  assert_non_null(strstr(error.message, "parameter 0"));
  bind(&r, &b[1], "arg", "0=1f64");
  assert_true(kilni_cli_plan_make(&kernel, &r, &plan, &error));
  assert_int_equal(plan.count, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_good_request_is_planned),
      cmocka_unit_test(what_is_wrong_names_the_parameter),
      cmocka_unit_test(what_to_write_names_the_parameter),
      cmocka_unit_test(a_number_is_asked_for_with_its_type),
      cmocka_unit_test(a_struct_is_proposed_with_its_size),
      cmocka_unit_test(an_input_may_be_written_elsewhere),
      cmocka_unit_test(the_longest_buffer_makes_the_grid),
      cmocka_unit_test(a_given_or_required_block_is_taken),
      cmocka_unit_test(a_kernel_is_named_as_cpp_does),
      cmocka_unit_test(data_are_what_the_pointer_is_of),
      cmocka_unit_test(data_are_what_the_kernel_computes_with),
      cmocka_unit_test(vectors_are_what_their_name_says),
      cmocka_unit_test(the_plan_asks_the_kernel),
      cmocka_unit_test(a_launch_says_all_that_the_kernel_counts_in),
      cmocka_unit_test(unknown_parameters_go_by_position),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
