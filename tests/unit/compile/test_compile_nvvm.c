// SPDX-License-Identifier: Apache-2.0
//
// compile: NVVM IR through the machine's libNVVM. Without one, skipped.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "kiln/runtime.h"

static kiln_runtime_t* g_runtime;
static kiln_compiler_t* g_compiler;

#define HEAD                                                              \
  "target datalayout = \"e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-" \
  "i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-"       \
  "v64:64:64-v128:128:128-n16:32:64\"\n"                                  \
  "target triple = \"nvptx64-nvidia-cuda\"\n"                             \
  "!nvvmir.version = !{!1}\n!1 = !{i32 2, i32 0}\n"
#define KERNEL                  \
  "!nvvm.annotations = !{!0}\n" \
  "!0 = !{void (float*)* @k, !\"kernel\", i32 1}\n"

static const char kSine[] = HEAD KERNEL
    "declare float @__nv_sinf(float)\n"
    "define void @k(float* %x) {\n"
    "  %v = load float, float* %x\n"
    "  %s = call float @__nv_sinf(float %v)\n"
    "  store float %s, float* %x\n  ret void\n}\n";
static const char kCaller[] = HEAD KERNEL
    "declare float @twice(float)\n"
    "define void @k(float* %x) {\n"
    "  %v = load float, float* %x\n"
    "  %s = call float @twice(float %v)\n"
    "  store float %s, float* %x\n  ret void\n}\n";
static const char kTwice[] = HEAD
    "define float @twice(float %v) {\n"
    "  %s = fadd float %v, %v\n  ret float %s\n}\n";
static const char kBad[] = HEAD
    "define void @k(float* %x) {\n  store float %nothing, float* %x\n"
    "  ret void\n}\n";

static kiln_status_t compile(const char* text,
                             const kiln_compile_options_t* options,
                             kiln_compile_result_t** out_result) {
  kiln_string_view_t source = {text, strlen(text)};
  return kiln_compiler_compile(g_compiler, source, options, out_result);
}

static const char* code_text(const kiln_compile_result_t* result) {
  return (const char*)kiln_code_bytes(kiln_compile_result_code(result)).data;
}

static void a_module_with_the_device_library(void** state) {
  (void)state;
  if (kiln_compiler_device_library(g_compiler)[0] == 0) {
    print_message("this libNVVM has no device library beside it\n");
    skip();
  }
  kiln_compile_options_t options = kiln_compile_options_default();
  kiln_compile_result_t* result = NULL;
  assert_null(compile(kSine, &options, &result));
  assert_non_null(strstr(code_text(result), ".entry k("));
  assert_null(strstr(code_text(result), ".extern .func"));
  kiln_compile_result_release(result);
  options.device_library = KILN_SWITCH_OFF;
  assert_null(compile(kSine, &options, &result));
  assert_non_null(strstr(code_text(result), "__nv_sinf"));
  kiln_compile_result_release(result);
}

static void more_modules_are_linked_in(void** state) {
  (void)state;
  const kiln_compile_file_t more[] = {
      {"twice.ll", {(const uint8_t*)kTwice, sizeof(kTwice) - 1}}};
  kiln_compile_options_t options = kiln_compile_options_default();
  options.modules = more;
  options.module_count = 1;
  options.arch = "sm_90";
  options.ftz = KILN_SWITCH_ON;
  options.fma = KILN_SWITCH_OFF;
  kiln_compile_result_t* result = NULL;
  assert_null(compile(kCaller, &options, &result));
  assert_non_null(strstr(code_text(result), ".target sm_90"));
  assert_non_null(strstr(code_text(result), "ftz.f32"));
  kiln_compile_result_release(result);
}

static void code_for_link_time(void** state) {
  (void)state;
  kiln_compile_options_t options = kiln_compile_options_default();
  options.output = KILN_CODE_FORMAT_LTOIR;
  kiln_compile_result_t* result = NULL;
  assert_null(compile(kTwice, &options, &result));
  kiln_code_t* code = kiln_compile_result_code(result);
  assert_int_equal(kiln_code_format_of(kiln_code_bytes(code)),
                   KILN_CODE_FORMAT_LTOIR);
  kiln_compile_result_release(result);
}

static void what_is_wrong_is_told(void** state) {
  (void)state;
  kiln_compile_options_t options = kiln_compile_options_default();
  options.file_name = "bad.ll";
  kiln_compile_result_t* result = NULL;
  kiln_status_t status = compile(kBad, &options, &result);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_COMPILE_FAILED);
  assert_non_null(strstr(kiln_compile_result_log(result), "nothing"));
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
  kiln_compile_result_release(result);
}

static void versions_are_known(void** state) {
  (void)state;
  assert_true(kiln_compiler_version(g_compiler) >= 12000);
  assert_true(kiln_compiler_ir_version(g_compiler) >= 1000);
}

static void a_cache_keeps_it(void** state) {
  (void)state;
  kiln_cache_t* cache = NULL;
  kiln_cache_options_t where = kiln_cache_options_default();
  where.disk = KILN_SWITCH_OFF;
  assert_null(kiln_cache_create(&where, &cache));
  kiln_compile_options_t options = kiln_compile_options_default();
  options.cache = cache;
  for (uint32_t i = 0; i < 2; i++) {
    kiln_compile_result_t* result = NULL;
    assert_null(compile(kTwice, &options, &result));
    assert_int_equal(kiln_compile_result_cache(result),
                     i == 0 ? KILN_COMPILE_CACHE_MISS : KILN_COMPILE_CACHE_HIT);
    kiln_compile_result_release(result);
  }
  kiln_cache_release(cache);
}

int main(void) {
  kiln_compiler_options_t how = kiln_compiler_options_default();
  how.kind = KILN_COMPILER_KIND_NVVM;
  kiln_status_t status = kiln_runtime_create(NULL, &g_runtime);
  if (kiln_status_is_ok(status)) {
    status = kiln_runtime_open_compiler(g_runtime, &how, &g_compiler);
  }
  if (!kiln_status_is_ok(status)) {
    printf("skipped: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(g_runtime);
    return 77;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_module_with_the_device_library),
      cmocka_unit_test(more_modules_are_linked_in),
      cmocka_unit_test(code_for_link_time),
      cmocka_unit_test(what_is_wrong_is_told),
      cmocka_unit_test(versions_are_known),
      cmocka_unit_test(a_cache_keeps_it),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  kiln_compiler_release(g_compiler);
  kiln_runtime_release(g_runtime);
  return failed;
}
