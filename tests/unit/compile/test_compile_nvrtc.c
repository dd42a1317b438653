// SPDX-License-Identifier: Apache-2.0
//
// compile: compilations by the machine's NVRTC. Without one, skipped.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/keep.h"
#include "base/thread.h"
#include "compile/compile.h"
#include "compile/compile_inside.h"
#include "kiln/toolkit.h"
#include "table/nvrtc_table.h"
#include "toolkit/toolkit.h"
#include "fault_alloc.h"

static fault_alloc_t g_watch;
static kilni_base_env_t g_env;
static kiln_host_t g_host;
static kiln_compiler_t* g_compiler;

static const char kScale[] =
    "extern \"C\" __global__ void scale(float* x, float a, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) x[i] *= a;\n"
    "}\n";

static kiln_string_view_t view(const char* text) {
  kiln_string_view_t result = {text, strlen(text)};
  return result;
}

static bool bytes_contain(kiln_bytes_view_t bytes, const char* word) {
  size_t length = strlen(word);
  for (size_t i = 0; i + length <= bytes.size; i++) {
    if (memcmp(bytes.data + i, word, length) == 0) return true;
  }
  return false;
}

static void test_ptx(void** state) {
  (void)state;
  kiln_compile_result_t* result = NULL;
  assert_null(kiln_compiler_compile(g_compiler, view(kScale), NULL, &result));
  kiln_bytes_view_t code = kiln_code_bytes(kiln_compile_result_code(result));
  assert_true(bytes_contain(code, ".visible .entry scale("));
  assert_int_equal(strlen((const char*)code.data), code.size);
  assert_int_equal(kiln_code_format(kiln_compile_result_code(result)),
                   KILN_CODE_FORMAT_PTX);
  assert_true(strncmp(kiln_code_arch(kiln_compile_result_code(result)),
                      "compute_", 8) == 0);
  assert_string_equal(kiln_compile_result_log(result), "");
  assert_null(kiln_code_lowered(kiln_compile_result_code(result), 0));
  kiln_compile_result_release(result);
}

static void test_cubin(void** state) {
  (void)state;
  kiln_compile_options_t options = kiln_compile_options_default();
  options.output = KILN_CODE_FORMAT_CUBIN;
  options.arch = "sm_90";
  kiln_compile_result_t* result = NULL;
  assert_null(
      kiln_compiler_compile(g_compiler, view(kScale), &options, &result));
  kiln_bytes_view_t code = kiln_code_bytes(kiln_compile_result_code(result));
  assert_true(code.size > 64);
  assert_memory_equal(code.data, "\177ELF", 4);
  assert_string_equal(kiln_code_arch(kiln_compile_result_code(result)),
                      "sm_90");
  kiln_compile_result_release(result);
  // Without a real architecture there is no cubin.
  options.arch = "compute_90";
  kiln_status_t status =
      kiln_compiler_compile(g_compiler, view(kScale), &options, &result);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  assert_non_null(strstr(kiln_status_message(status), "compute_90"));
  assert_null(result);
  kiln_status_free(status);
}

static void test_errors_have_a_log(void** state) {
  (void)state;
  kiln_compile_options_t options = kiln_compile_options_default();
  options.file_name = "broken.cu";
  kiln_compile_result_t* result = NULL;
  kiln_status_t status = kiln_compiler_compile(
      g_compiler, view("__global__ void k() {\n  undefined_thing = 1;\n}\n"),
      &options, &result);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_COMPILE_FAILED);
  // The first error is the message, with file and line.
  assert_non_null(strstr(kiln_status_message(status), "broken.cu(2)"));
  assert_non_null(strstr(kiln_status_message(status), "undefined_thing"));
  kiln_status_native_t native;
  assert_true(kiln_status_native(status, &native));
  assert_string_equal(native.domain, "nvrtc");
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
  assert_non_null(result);
  assert_non_null(strstr(kiln_compile_result_log(result), "undefined_thing"));
  assert_int_equal(kiln_code_bytes(kiln_compile_result_code(result)).size, 0);
  kiln_compile_result_release(result);
}

static void test_warnings_have_a_log(void** state) {
  (void)state;
  kiln_compile_result_t* result = NULL;
  assert_null(kiln_compiler_compile(
      g_compiler, view("__global__ void k() { int never_used = 1; }\n"), NULL,
      &result));
  assert_non_null(strstr(kiln_compile_result_log(result), "never_used"));
  assert_true(kiln_code_bytes(kiln_compile_result_code(result)).size > 0);
  kiln_compile_result_release(result);
}

static void test_lowered_names(void** state) {
  (void)state;
  static const char* const names[] = {"add<float>", "space::add<int>"};
  kiln_compile_options_t options = kiln_compile_options_default();
  options.name_expressions = names;
  options.name_expression_count = 2;
  kiln_compile_result_t* result = NULL;
  assert_null(kiln_compiler_compile(
      g_compiler,
      view("template <class T> __global__ void add(T* x) { *x += 1; }\n"
           "namespace space {\n"
           "template <class T> __global__ void add(T* x) { *x += 2; }\n}\n"),
      &options, &result));
  assert_string_equal(
      kiln_code_lowered(kiln_compile_result_code(result), 0)->lowered,
      "_Z3addIfEvPT_");
  assert_string_equal(
      kiln_code_lowered(kiln_compile_result_code(result), 1)->lowered,
      "_ZN5space3addIiEEvPT_");
  assert_null(kiln_code_lowered(kiln_compile_result_code(result), 2));
  assert_true(bytes_contain(kiln_code_bytes(kiln_compile_result_code(result)),
                            "_ZN5space3addIiEEvPT_"));
  kiln_compile_result_release(result);
}

static void test_options_pass_through(void** state) {
  (void)state;
  static const char* const defines[] = {"WIDTH=7", "FLAG"};
  static const char* const raw[] = {"-arch=compute_80", "--fmad=false"};
  kiln_compile_options_t options = kiln_compile_options_default();
  options.defines = defines;
  options.define_count = 2;
  options.options = raw;
  options.option_count = 2;
  options.arch = "compute_90";  // the raw one wins
  kiln_compile_result_t* result = NULL;
  assert_null(kiln_compiler_compile(
      g_compiler,
      view("#ifndef FLAG\n#error no flag\n#endif\n"
           "extern \"C\" __global__ void k(float* x, float a) {\n"
           "  x[0] = x[0] * a + WIDTH;\n}\n"),
      &options, &result));
  kiln_bytes_view_t code = kiln_code_bytes(kiln_compile_result_code(result));
  assert_true(bytes_contain(code, ".target sm_80"));
  assert_false(bytes_contain(code, "fma."));
  assert_string_equal(kiln_code_arch(kiln_compile_result_code(result)),
                      "compute_80");
  kiln_compile_result_release(result);
}

static void test_a_wrong_option(void** state) {
  (void)state;
  static const char* const raw[] = {"--no-such-option"};
  kiln_compile_options_t options = kiln_compile_options_default();
  options.options = raw;
  options.option_count = 1;
  kiln_compile_result_t* result = NULL;
  kiln_status_t status =
      kiln_compiler_compile(g_compiler, view(kScale), &options, &result);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_COMPILE_FAILED);
  assert_non_null(strstr(kiln_status_message(status), "no-such-option"));
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
  assert_non_null(strstr(kiln_compile_result_log(result), "no-such-option"));
  kiln_compile_result_release(result);
}

static void test_the_toolkits_headers(void** state) {
  (void)state;
  if (kiln_compiler_include_dir(g_compiler)[0] == 0) {
    print_message("this NVRTC has no include folder beside it\n");
    skip();
  }
  const char* source =
      "#include <cuda_fp16.h>\n"
      "extern \"C\" __global__ void k(__half* x) { x[0] = __float2half(1); }\n";
  kiln_compile_result_t* result = NULL;
  assert_null(kiln_compiler_compile(g_compiler, view(source), NULL, &result));
  kiln_compile_result_release(result);
  kiln_compile_options_t options = kiln_compile_options_default();
  options.toolkit_include = KILN_SWITCH_OFF;
  kiln_status_t status =
      kiln_compiler_compile(g_compiler, view(source), &options, &result);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_COMPILE_FAILED);
  kiln_status_free(status);
  kiln_compile_result_release(result);
}

static void test_bad_arguments(void** state) {
  (void)state;
  kiln_compile_result_t* result = NULL;
  kiln_string_view_t with_nul = {"__global__\0void", 15};
  kiln_status_t status =
      kiln_compiler_compile(g_compiler, with_nul, NULL, &result);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  assert_non_null(strstr(kiln_status_message(status), "byte 10"));
  assert_null(result);
  kiln_status_free(status);
  kiln_compile_options_t options = kiln_compile_options_default();
  options.option_count = 1;
  status = kiln_compiler_compile(g_compiler, view(kScale), &options, &result);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  options = kiln_compile_options_default();
  options.output = 9;
  status = kiln_compiler_compile(g_compiler, view(kScale), &options, &result);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  status = kiln_compiler_compile(NULL, view(kScale), NULL, &result);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
}

static void test_the_locale_stays(void** state) {
  (void)state;
  char before[256];
  snprintf(before, sizeof(before), "%s", setlocale(LC_ALL, NULL));
  kiln_compile_result_t* result = NULL;
  assert_null(kiln_compiler_compile(g_compiler, view(kScale), NULL, &result));
  kiln_compile_result_release(result);
  assert_string_equal(setlocale(LC_ALL, NULL), before);
}

static void compile_on_thread(void* user) {
  kiln_compile_result_t* result = NULL;
  kiln_status_t status =
      kiln_compiler_compile(g_compiler, view(kScale), NULL, &result);
  *(bool*)user = kiln_status_is_ok(status);
  kiln_status_free(status);
  kiln_compile_result_release(result);
}

static void test_threads(void** state) {
  (void)state;
  kilni_base_thread_t threads[3] = {0};
  bool done[3] = {false, false, false};
  for (int i = 0; i < 3; i++) {
    assert_null(kilni_base_thread_start(&threads[i], "compile",
                                        compile_on_thread, &done[i]));
  }
  for (int i = 0; i < 3; i++) {
    kilni_base_thread_join(&threads[i]);
    assert_true(done[i]);
  }
}

static void test_what_is_known(void** state) {
  (void)state;
  assert_true(kiln_compiler_version(g_compiler) >= 12000);
  assert_non_null(strstr(kiln_compiler_path(g_compiler), "nvrtc"));
  assert_true(kiln_compiler_has_arch(g_compiler, 90));
  assert_false(kiln_compiler_has_arch(g_compiler, 1));
}

// ---- What else NVRTC makes ----

static uint32_t compile_as(uint32_t output, const char* arch) {
  kiln_compile_options_t options = kiln_compile_options_default();
  options.output = output;
  options.arch = arch;
  kiln_compile_result_t* result = NULL;
  assert_null(
      kiln_compiler_compile(g_compiler, view(kScale), &options, &result));
  kiln_code_t* code = kiln_compile_result_code(result);
  uint32_t format = kiln_code_format_of(kiln_code_bytes(code));
  assert_int_equal(kiln_code_format(code), output);
  kiln_compile_result_release(result);
  return format;
}

static void test_every_output(void** state) {
  (void)state;
  assert_int_equal(compile_as(KILN_CODE_FORMAT_LTOIR, NULL),
                   KILN_CODE_FORMAT_LTOIR);
  assert_int_equal(compile_as(KILN_CODE_FORMAT_RELOCATABLE, "sm_90"),
                   KILN_CODE_FORMAT_RELOCATABLE);
}

static void test_virtual_headers(void** state) {
  (void)state;
  static const kiln_compile_file_t headers[] = {
      {"v/a.h", {(const uint8_t*)"#include <b.h>\n", 15}},
      {"b.h", {(const uint8_t*)"#define N 77", 12}}};
  kiln_compile_options_t options = kiln_compile_options_default();
  options.headers = headers;
  options.header_count = 2;
  kiln_compile_result_t* result = NULL;
  assert_null(kiln_compiler_compile(
      g_compiler,
      view("#include \"v/a.h\"\n__global__ void k(int* x) { x[0] = N; }\n"),
      &options, &result));
  assert_true(
      bytes_contain(kiln_code_bytes(kiln_compile_result_code(result)), "77;"));
  kiln_compile_result_release(result);
}

// Every typed option is one that this NVRTC takes, or is refused by name.
static void try_option(kiln_compile_options_t* options, const char* field,
                       uint32_t since) {
  // What needs an architecture, a file or other options beside it.
  bool special = strcmp(field, "float128") == 0;
  if (special) options->arch = "compute_120";
  if (strcmp(field, "numba_debug") == 0) options->debug = KILN_SWITCH_ON;
  kiln_compile_result_t* result = NULL;
  kiln_status_t status =
      kiln_compiler_compile(g_compiler, view(kScale), options, &result);
  bool ok = kiln_status_is_ok(status);
  if (since > kiln_compiler_version(g_compiler)) {
    assert_int_equal(kiln_status_code(status), KILN_STATUS_UNSUPPORTED);
  } else if (!ok) {
    fail_msg("%s: %s", field, kiln_status_message(status));
  }
  kiln_status_free(status);
  kiln_compile_result_release(result);
}

static void test_every_option(void** state) {
  (void)state;
  static const char* const numbers[] = {"177"};
  static const char* const defined[] = {"NOTHING"};
  static const char* const assembler[] = {"-O1"};
  kiln_compile_options_t with = kiln_compile_options_default();
  with.undefines = defined;
  with.ptxas_options = assembler;
  with.diag_error = with.diag_suppress = with.diag_warn = numbers;
  with.std = "c++17";
  with.optimization_info = "inline";
  with.ofast_compile = "0";
  with.random_seed = "7";
  with.max_registers = 32;
  with.pch_dir = "/tmp";
#define BEGIN(field) \
  do {               \
    kiln_compile_options_t options = kiln_compile_options_default();
#define END(field, since)              \
  try_option(&options, #field, since); \
  }                                    \
  while (0)
#define KILNI_COMPILE_ON(field, nvrtc, nvvm, since) \
  BEGIN(field) options.field = KILN_SWITCH_ON;      \
  END(field, since);
#define KILNI_COMPILE_OFF(field, nvrtc, nvvm, since) \
  BEGIN(field) options.field = KILN_SWITCH_OFF;      \
  END(field, since);
#define KILNI_COMPILE_NUMBER(field, nvrtc, since) \
  BEGIN(field) options.field = with.field;        \
  END(field, since);
#define KILNI_COMPILE_TEXT(field, nvrtc, since) \
  if (with.field != NULL) {                     \
    BEGIN(field) options.field = with.field;    \
    END(field, since);                          \
  }
#define KILNI_COMPILE_LIST(field, count, nvrtc, since) \
  if (with.field != NULL) {                            \
    BEGIN(field) options.field = with.field;           \
    options.count = 1;                                 \
    END(field, since);                                 \
  }
#include "compile/compile_options.inc"
#undef KILNI_COMPILE_ON
#undef KILNI_COMPILE_OFF
#undef KILNI_COMPILE_NUMBER
#undef KILNI_COMPILE_TEXT
#undef KILNI_COMPILE_LIST
#undef BEGIN
#undef END
}

static bool say_after(void* user) {
  int* left = user;
  return --*left < 0;
}

// Before NVRTC begins, and behind it, it is asked once each; a third time only
// NVRTC can have asked, which it does since 12.8.
static void test_cancelled_while_it_runs(void** state) {
  (void)state;
  int left = kiln_compiler_version(g_compiler) >= 12080 ? 2 : 1;
  kiln_compile_options_t options = kiln_compile_options_default();
  options.cancelled = say_after;
  options.cancelled_user = &left;
  kiln_compile_result_t* result = NULL;
  kiln_status_t status =
      kiln_compiler_compile(g_compiler, view(kScale), &options, &result);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_CANCELLED);
  assert_null(kiln_compile_result_code(result));
  kiln_status_free(status);
  kiln_compile_result_release(result);
  // And the compiler goes on working.
  assert_null(kiln_compiler_compile(g_compiler, view(kScale), NULL, &result));
  kiln_compile_result_release(result);
}

static void test_precompiled_headers(void** state) {
  (void)state;
  if (kiln_compiler_version(g_compiler) < 12080) {
    print_message("this NVRTC has no precompiled headers\n");
    skip();
  }
  static char text[1 << 20];
  size_t used = 0;
  for (int i = 0; i < 6000; i++) {
    used += (size_t)snprintf(text + used, sizeof(text) - used,
                             "template <class T> struct S%d { T a; int f() { "
                             "return %d; } };\n",
                             i, i);
  }
  const kiln_compile_file_t header = {"big.h", {(const uint8_t*)text, used}};
  char folder[] = "/tmp/kiln-pch-XXXXXX";
  assert_non_null(mkdtemp(folder));
  kiln_compile_options_t options = kiln_compile_options_default();
  options.headers = &header;
  options.header_count = 1;
  options.pch = KILN_SWITCH_ON;
  options.pch_dir = folder;
  options.default_device = KILN_SWITCH_ON;
  // The heap is too small: it grows by itself, and the header is made.
  const kiln_nvrtc_table_t* table = &g_compiler->table;
  assert_int_equal(table->nvrtcSetPCHHeapSize(256 << 10), 0);
  kiln_compile_result_t* result = NULL;
  kiln_status_t status = kiln_compiler_compile(
      g_compiler, view("#include \"big.h\"\n__global__ void k() {}\n"),
      &options, &result);
  if (!kiln_status_is_ok(status)) {
    fail_msg("%s\n%s", kiln_status_message(status),
             kiln_compile_result_log(result));
  }
  assert_int_equal(kiln_compile_result_pch(result), KILN_COMPILE_PCH_CREATED);
  assert_non_null(kiln_compile_result_code(result));
  kiln_compile_result_release(result);
  size_t heap = 0;
  assert_int_equal(table->nvrtcGetPCHHeapSize(&heap), 0);
  assert_true(heap > 256 << 10);
  char line[64];
  snprintf(line, sizeof(line), "rm -rf '%s'", folder);
  assert_int_equal(system(line), 0);
}

static void test_newer_architectures(void** state) {
  (void)state;
  kiln_compile_options_t options = kiln_compile_options_default();
  options.arch = "compute_990";
  kiln_compile_result_t* result = NULL;
  assert_null(
      kiln_compiler_compile(g_compiler, view(kScale), &options, &result));
  assert_non_null(strstr(kiln_compile_result_note(result), "compute_990 is "));
  kiln_compile_result_release(result);
}

int main(void) {
  fault_alloc_init(&g_watch);
  g_host.allocator = fault_alloc_allocator(&g_watch);
  g_host.env = &g_env;
  g_host.process_id = kilni_base_process_id();
  if (!kiln_status_is_ok(kilni_base_env_init(&g_env, g_host.allocator))) {
    return 1;
  }
  kilni_base_keep_t nobody = {0};
  kiln_toolkit_t* toolkit = NULL;
  kiln_toolkit_options_t how = kiln_toolkit_options_default();
  how.allocator = &g_host.allocator;
  if (!kiln_status_is_ok(kilni_toolkit_create(&how, &g_env, &toolkit))) {
    return 1;
  }
  kiln_status_t status = kilni_compile_compiler_open(
      &g_host, nobody,
      &(kilni_compile_compiler_wish_t){.toolkit = toolkit, .library = NULL},
      NULL, &g_compiler);
  if (!kiln_status_is_ok(status)) {
    char text[4096];
    kiln_status_format(status, sizeof(text), text, NULL);
    printf("skipped: %s\n", text);
    kiln_status_free(status);
    return 77;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ptx),
      cmocka_unit_test(test_cubin),
      cmocka_unit_test(test_errors_have_a_log),
      cmocka_unit_test(test_warnings_have_a_log),
      cmocka_unit_test(test_lowered_names),
      cmocka_unit_test(test_options_pass_through),
      cmocka_unit_test(test_a_wrong_option),
      cmocka_unit_test(test_the_toolkits_headers),
      cmocka_unit_test(test_bad_arguments),
      cmocka_unit_test(test_the_locale_stays),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_what_is_known),
      cmocka_unit_test(test_every_output),
      cmocka_unit_test(test_virtual_headers),
      cmocka_unit_test(test_every_option),
      cmocka_unit_test(test_cancelled_while_it_runs),
      cmocka_unit_test(test_precompiled_headers),
      cmocka_unit_test(test_newer_architectures),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  kiln_compiler_release(g_compiler);
  kiln_toolkit_release(toolkit);
  kilni_base_env_deinit(&g_env);
  const char* problem = fault_alloc_problem(&g_watch);
  if (problem != NULL) printf("memory: %s\n", problem);
  return failed + (problem != NULL);
}
