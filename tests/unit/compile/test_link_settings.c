// SPDX-License-Identifier: Apache-2.0
//
// compile: what options become for each backend.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdlib.h>

#include "compile/link_text.h"
#include "fault_alloc.h"
#include "image/image.h"
#include "kiln/link.h"

static const uint32_t kNvjitlink = KILN_LINK_BACKEND_NVJITLINK;
static const uint32_t kDriver = KILN_LINK_BACKEND_DRIVER;

static kiln_link_options_t for_90(void) {
  kiln_link_options_t options = kiln_link_options_default();
  options.arch = "sm_90";
  return options;
}

// All options, separated by blanks.
static const char* text_of(const kiln_link_options_t* options,
                           uint32_t backend) {
  static char text[4096];
  kiln_link_settings_t* settings = NULL;
  assert_null(kiln_link_settings_create(options, backend, NULL, &settings));
  text[0] = 0;
  for (uint32_t i = 0; i < kiln_link_settings_count(settings); i++) {
    if (i > 0) strcat(text, " ");
    strcat(text, kiln_link_settings_option(settings, i));
  }
  assert_null(
      kiln_link_settings_option(settings, kiln_link_settings_count(settings)));
  kiln_link_settings_release(settings);
  return text;
}

static kiln_status_code_t code_of(const kiln_link_options_t* options,
                                  uint32_t backend, const char* word) {
  kiln_link_settings_t* settings = NULL;
  kiln_status_t status =
      kiln_link_settings_create(options, backend, NULL, &settings);
  kiln_status_code_t code = kiln_status_code(status);
  assert_null(settings);
  if (strstr(kiln_status_message(status), word) == NULL) {
    print_message("message: %s\n", kiln_status_message(status));
    assert_true(false);
  }
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
  return code;
}

// One option, and what it becomes. thread-safe
typedef struct one_t {
  size_t offset;
  uint32_t value;
  const char* native;
  const char* driver;  // NULL: refused; "": ignored with a warning
} one_t;

#define AT(field) offsetof(kiln_link_options_t, field)

static bool is_one_of(const one_t* ones, size_t count, size_t offset) {
  for (size_t i = 0; i < count; i++) {
    if (ones[i].offset == offset) return true;
  }
  return false;
}

static void test_each_option(void** state) {
  (void)state;
  static const one_t kOnes[] = {
      {AT(max_registers), 32, "-maxrregcount=32", "CU_JIT_MAX_REGISTERS=32"},
      {AT(optimization_level), KILN_LINK_LEVEL_0, "-O0",
       "CU_JIT_OPTIMIZATION_LEVEL=0"},
      {AT(optimization_level), KILN_LINK_LEVEL_3, "-O3",
       "CU_JIT_OPTIMIZATION_LEVEL=3"},
      {AT(debug), 2, "-g", "CU_JIT_GENERATE_DEBUG_INFO=1"},
      {AT(lineinfo), 2, "-lineinfo", "CU_JIT_GENERATE_LINE_INFO=1"},
      {AT(time), 2, "-time", NULL},
      {AT(verbose), 2, "-verbose", "CU_JIT_LOG_VERBOSE=1"},
      {AT(ftz), 2, "-ftz=1", ""},
      {AT(ftz), 1, "-ftz=0", ""},
      {AT(prec_div), 2, "-prec-div=1", ""},
      {AT(prec_sqrt), 1, "-prec-sqrt=0", ""},
      {AT(fma), 1, "-fma=0", ""},
      {AT(optimize_unused_variables), 2, "-optimize-unused-variables", ""},
      {AT(split_compile), 3, "-split-compile=3", NULL},
      {AT(split_compile), UINT32_MAX, "-split-compile=0", NULL},
      {AT(split_compile_extended), 2, "-split-compile-extended=2", NULL},
      {AT(no_cache), 2, "-no-cache", "CU_JIT_CACHE_MODE=0"},
  };
  // Every row of the table is here, or among the lists and architectures.
#define KILNI_LINK_OPTION(field, kind, spelling, key, treatment, what)         \
  assert_true(is_one_of(kOnes, sizeof(kOnes) / sizeof(kOnes[0]), AT(field)) || \
              strcmp(#kind, "LIST") == 0 || strcmp(#kind, "TEXT") == 0);
#include "compile/link_options.inc"
#undef KILNI_LINK_OPTION
  for (size_t i = 0; i < sizeof(kOnes) / sizeof(kOnes[0]); i++) {
    kiln_link_options_t options = for_90();
    memcpy((char*)&options + kOnes[i].offset, &kOnes[i].value, 4);
    char wanted[256] = "-arch=sm_90 ";
    strcat(wanted, kOnes[i].native);
    assert_string_equal(text_of(&options, kNvjitlink), wanted);
    if (kOnes[i].driver == NULL) {
      assert_int_equal(code_of(&options, kDriver, "no option `"),
                       KILN_STATUS_UNSUPPORTED);
      continue;
    }
    strcpy(wanted, "CU_JIT_TARGET=90");
    if (kOnes[i].driver[0] != 0) {
      strcat(wanted, " ");
      strcat(wanted, kOnes[i].driver);
    }
    assert_string_equal(text_of(&options, kDriver), wanted);
    kiln_link_settings_t* settings = NULL;
    assert_null(kiln_link_settings_create(&options, kDriver, NULL, &settings));
    bool ignored = kOnes[i].driver[0] == 0;
    assert_int_equal(kiln_link_settings_warning_count(settings), ignored);
    if (ignored) {
      assert_non_null(
          strstr(kiln_link_settings_warning(settings, 0), "has no effect"));
    }
    assert_null(kiln_link_settings_warning(settings, 1));
    kiln_link_settings_release(settings);
  }
}

// cuda.core gives `-time` and `-optimize-unused-variables` also for False.
static void test_off_is_no_flag(void** state) {
  (void)state;
  kiln_link_options_t options = for_90();
  options.time = KILN_SWITCH_OFF;
  options.optimize_unused_variables = KILN_SWITCH_OFF;
  options.debug = KILN_SWITCH_OFF;
  options.lineinfo = KILN_SWITCH_OFF;
  options.verbose = KILN_SWITCH_OFF;
  options.no_cache = KILN_SWITCH_OFF;
  options.lto = KILN_SWITCH_OFF;
  assert_string_equal(text_of(&options, kNvjitlink), "-arch=sm_90");
  assert_string_equal(text_of(&options, kDriver), "CU_JIT_TARGET=90");
}

// cuda.core drops a tuple without a word.
static void test_lists(void** state) {
  (void)state;
  static const char* const kernels[] = {"a", "b"};
  static const char* const variables[] = {"v"};
  static const char* const ptxas[] = {"-v", "--warn-on-spills"};
  static const char* const extra[] = {"-Xnvvm=-opt=2"};
  kiln_link_options_t options = for_90();
  options.kernels_used = kernels;
  options.kernels_used_count = 2;
  options.variables_used = variables;
  options.variables_used_count = 1;
  options.ptxas_options = ptxas;
  options.ptxas_options_count = 2;
  options.extra = extra;
  options.extra_count = 1;
  options.lto = KILN_SWITCH_ON;
  assert_string_equal(
      text_of(&options, kNvjitlink),
      "-lto -arch=sm_90 -kernels-used=a -kernels-used=b -variables-used=v "
      "-Xptxas=-v -Xptxas=--warn-on-spills -Xnvvm=-opt=2");
  options.lto = KILN_SWITCH_DEFAULT;
  assert_int_equal(code_of(&options, kDriver, "`ptxas_options`"),
                   KILN_STATUS_UNSUPPORTED);
  options.ptxas_options_count = 0;
  assert_int_equal(code_of(&options, kDriver, "`extra`"),
                   KILN_STATUS_UNSUPPORTED);
  options.extra_count = 0;
  assert_string_equal(text_of(&options, kDriver), "CU_JIT_TARGET=90");
  kiln_link_settings_t* settings = NULL;
  assert_null(kiln_link_settings_create(&options, kDriver, NULL, &settings));
  assert_int_equal(kiln_link_settings_warning_count(settings), 2);
  assert_non_null(
      strstr(kiln_link_settings_warning(settings, 0), "`kernels_used`"));
  assert_non_null(
      strstr(kiln_link_settings_warning(settings, 1), "`variables_used`"));
  kiln_link_settings_release(settings);
}

static void test_outputs(void** state) {
  (void)state;
  kiln_link_options_t options = for_90();
  options.output = KILN_CODE_FORMAT_PTX;
  assert_string_equal(text_of(&options, kNvjitlink), "-lto -ptx -arch=sm_90");
  options.output = KILN_CODE_FORMAT_LTOIR;
  assert_string_equal(text_of(&options, kNvjitlink), "-lto -r -arch=sm_90");
  options.output = KILN_CODE_FORMAT_RELOCATABLE;
  assert_string_equal(text_of(&options, kNvjitlink), "-r -arch=sm_90");
  assert_int_equal(code_of(&options, kDriver, "relocatable"),
                   KILN_STATUS_UNSUPPORTED);
  options.output = 0;
  options.lto = KILN_SWITCH_ON;
  assert_string_equal(text_of(&options, kNvjitlink), "-lto -arch=sm_90");
  assert_int_equal(code_of(&options, kDriver, "link-time"),
                   KILN_STATUS_UNSUPPORTED);
  options.output = KILN_CODE_FORMAT_OBJECT;
  assert_int_equal(code_of(&options, kNvjitlink, "`output`"),
                   KILN_STATUS_INVALID_ARGUMENT);
}

// L11: with everything that the driver takes, seven keys besides those of the
// four log buffers (cuda.core has CU_JIT_LTO too, which links no LTO-IR).
static void test_all_of_the_driver(void** state) {
  (void)state;
  kiln_link_options_t options = for_90();
  options.arch = "sm_100f";
  options.max_registers = 64;
  options.optimization_level = KILN_LINK_LEVEL_2;
  options.debug = KILN_SWITCH_ON;
  options.lineinfo = KILN_SWITCH_ON;
  options.verbose = KILN_SWITCH_ON;
  options.no_cache = KILN_SWITCH_ON;
  assert_string_equal(
      text_of(&options, kDriver),
      "CU_JIT_TARGET=131172 CU_JIT_MAX_REGISTERS=64 "
      "CU_JIT_OPTIMIZATION_LEVEL=2 CU_JIT_GENERATE_DEBUG_INFO=1 "
      "CU_JIT_GENERATE_LINE_INFO=1 CU_JIT_LOG_VERBOSE=1 CU_JIT_CACHE_MODE=0");
}

// What the Fix says for an architecture that was refused.
static void assert_arch_fix(const char* arch, const char* word) {
  kiln_link_options_t options = kiln_link_options_default();
  kiln_link_settings_t* settings = NULL;
  options.arch = arch;
  kiln_status_t status =
      kiln_link_settings_create(&options, kNvjitlink, NULL, &settings);
  assert_non_null(strstr(kiln_status_fix(status), word));
  kiln_status_free(status);
}

static void test_architectures(void** state) {
  (void)state;
  kiln_link_options_t options = kiln_link_options_default();
  assert_string_equal(text_of(&options, kDriver), "");
  assert_int_equal(code_of(&options, kNvjitlink, "architecture"),
                   KILN_STATUS_INVALID_ARGUMENT);
  options.arch = "sm_90a";
  assert_string_equal(text_of(&options, kDriver), "CU_JIT_TARGET=65626");
  static const char* const wrong[] = {"90",     "sm_",     "sm_9",
                                      "sm_90b", "sm_90aa", "sm_9000",
                                      "SM_90",  "sm_90 ",  "sm_1"};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    options.arch = wrong[i];
    assert_int_equal(code_of(&options, kDriver, "not an architecture"),
                     KILN_STATUS_INVALID_ARGUMENT);
    assert_int_equal(code_of(&options, kNvjitlink, "not an architecture"),
                     KILN_STATUS_INVALID_ARGUMENT);
  }
  // PTX is for a virtual one, machine code for one of a device.
  options.arch = "compute_80";
  assert_int_equal(code_of(&options, kNvjitlink, "architecture of PTX"),
                   KILN_STATUS_INVALID_ARGUMENT);
  assert_arch_fix("compute_80", "write --arch sm_80 ");
  assert_arch_fix("compute_90a", "write --arch sm_90a ");
  assert_arch_fix("sm90", "as sm_90, or with a letter");
  assert_string_equal(text_of(&options, kDriver), "CU_JIT_TARGET=80");
  options.output = KILN_CODE_FORMAT_PTX;
  assert_string_equal(text_of(&options, kNvjitlink),
                      "-lto -ptx -arch=compute_80");
}

static void test_refused_values(void** state) {
  (void)state;
  kiln_link_options_t options = for_90();
  options.ftz = 3;
  assert_int_equal(code_of(&options, kNvjitlink, "`ftz`"),
                   KILN_STATUS_INVALID_ARGUMENT);
  options = for_90();
  options.optimization_level = 5;
  assert_int_equal(code_of(&options, kNvjitlink, "`optimization_level`"),
                   KILN_STATUS_INVALID_ARGUMENT);
  options = for_90();
  options.kernels_used_count = 1;
  assert_int_equal(code_of(&options, kNvjitlink, "`kernels_used`"),
                   KILN_STATUS_INVALID_ARGUMENT);
  static const char* const holes[] = {"a", NULL};
  options.kernels_used = holes;
  options.kernels_used_count = 2;
  assert_int_equal(code_of(&options, kNvjitlink, "`kernels_used[1]`"),
                   KILN_STATUS_INVALID_ARGUMENT);
  options.kernels_used_count = KILN_LINK_MAX_LIST + 1;
  assert_int_equal(code_of(&options, kNvjitlink, "`kernels_used`"),
                   KILN_STATUS_LIMIT_EXCEEDED);
  static const char* const behind[] = {"-lto", "-dlto", "-ptx", "-r",
                                       "-arch=sm_80"};
  for (size_t i = 0; i < 5; i++) {
    options = for_90();
    options.extra = &behind[i];
    options.extra_count = 1;
    assert_int_equal(code_of(&options, kNvjitlink, behind[i]),
                     KILN_STATUS_INVALID_ARGUMENT);
  }
  static const char* const lines[] = {"-g\n-lto", "-O3\t", "\x7f"};
  for (size_t i = 0; i < 3; i++) {
    options = for_90();
    options.extra = &lines[i];
    options.extra_count = 1;
    assert_int_equal(code_of(&options, kNvjitlink, "control character"),
                     KILN_STATUS_INVALID_ARGUMENT);
    options = for_90();
    options.ptxas_options = &lines[i];
    options.ptxas_options_count = 1;
    assert_int_equal(code_of(&options, kNvjitlink, "`ptxas_options`"),
                     KILN_STATUS_INVALID_ARGUMENT);
  }
  size_t size = (size_t)KILN_LINK_MAX_OPTION_BYTES + 2;
  char* huge = malloc(size);
  assert_non_null(huge);
  memset(huge, 'a', size - 1);
  huge[size - 1] = 0;
  options = for_90();
  options.arch = huge;
  assert_int_equal(code_of(&options, kNvjitlink, "`arch`"),
                   KILN_STATUS_LIMIT_EXCEEDED);
  free(huge);
}

// ---- What inputs and logs say ----

static uint32_t isa(const char* text) {
  return kilni_image_ptx_isa(
      (kiln_bytes_view_t){(const uint8_t*)text, strlen(text)});
}

static void test_ptx_isa(void** state) {
  (void)state;
  assert_int_equal(isa(".version 9.0\n"), 90);
  assert_int_equal(isa("// a\n/* b */\n\t.version  8.7\n"), 87);
  assert_int_equal(isa(".version 10.2"), 102);
  static const char* const none[] = {"",
                                     ".version",
                                     ".version ",
                                     ".version 9",
                                     ".version 9.",
                                     ".version9.0",
                                     "/* .version 9.0",
                                     "//",
                                     "/",
                                     "/*",
                                     ".version 9.10",
                                     ".version 9999.1",
                                     "x.version 9.0"};
  for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
    assert_int_equal(isa(none[i]), 0);
  }
  assert_int_equal(kilni_image_ptx_isa((kiln_bytes_view_t){NULL, 0}), 0);
}

static void check_first(const char* log, const char* wanted) {
  kiln_string_view_t line = kilni_compile_link_first_error(log);
  assert_int_equal(line.size, strlen(wanted));
  if (line.size > 0) assert_memory_equal(line.data, wanted, line.size);
}

static void test_first_error(void** state) {
  (void)state;
  check_first("", "");
  check_first("\n \n", "");
  check_first("info\nerror   : Undefined reference to '_Z1Zv' in 'CBA'\n",
              "Undefined reference to '_Z1Zv' in 'CBA'");
  check_first("ptxas x, line 3; error   : bad\n",
              "ptxas x, line 3; error   : bad");
  check_first("warning\nmore\n", "warning");
  check_first("a terror\nERROR 4 in nvvm\n", "ERROR 4 in nvvm");
  check_first("error", "error");
  check_first("ptxas fatal   : no such arch\nERROR 4\n",
              "ptxas fatal   : no such arch");
}

static void check_reported(const char* log, const char* wanted) {
  kiln_string_view_t line = kilni_compile_link_reported_error(log);
  assert_int_equal(line.size, strlen(wanted));
  if (line.size > 0) assert_memory_equal(line.data, wanted, line.size);
}

// Of a link that succeeded: a line that says it itself.
static void test_reported_error(void** state) {
  (void)state;
  check_reported("", "");
  check_reported("info    : 0 errors\nwarning : no fatal one\n", "");
  check_reported("a\nerror   : Multiple definition of 'k'\n",
                 "error   : Multiple definition of 'k'");
  check_reported("fatal   : Internal error: section not mapped\n",
                 "fatal   : Internal error: section not mapped");
  check_reported("nvlink fatal   : elfLink error\n",
                 "nvlink fatal   : elfLink error");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_option),
      cmocka_unit_test(test_off_is_no_flag),
      cmocka_unit_test(test_lists),
      cmocka_unit_test(test_outputs),
      cmocka_unit_test(test_all_of_the_driver),
      cmocka_unit_test(test_architectures),
      cmocka_unit_test(test_refused_values),
      cmocka_unit_test(test_ptx_isa),
      cmocka_unit_test(test_first_error),
      cmocka_unit_test(test_reported_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
