// SPDX-License-Identifier: Apache-2.0
//
// tests: links of what is damaged, doubled and mixed, with options without
// sense, by this machine's own nvJitLink; and who would link, fact by fact.
//
// Found in 0.1.0: a cut object linked to a result without its kernel, two
// definitions of one name linked, a failed link with link-time optimisation
// and then a doubled name ended the process, and a link that needs a device was
// promised where there was none.
#define _POSIX_C_SOURCE 200809L  // nanosleep

#include <stdlib.h>

#include "hostile.h"

static const char kCaller[] =
    "extern __device__ int f(int);\n"
    "extern \"C\" __global__ void k(int* p) { p[threadIdx.x] = "
    "f(threadIdx.x); }\n";
static const char kCalled[] =
    "__device__ __noinline__ int f(int x) { return x * 3 + 1; }\n";

static kiln_runtime_t* runtime;
static kiln_compiler_t* compiler;
static kiln_linker_t* linker;  // without a device
static bool has_nvjitlink;

static int open_all(void** state) {
  (void)state;
  uint32_t count = 0;
  WORKS(kiln_runtime_create(NULL, &runtime));
  kiln_status_free(kiln_runtime_open_compiler(runtime, NULL, &compiler));
  WORKS(kiln_runtime_open_linker(runtime, NULL, &linker));
  kiln_status_free(kiln_linker_nvjitlink_count(linker, &count));
  has_nvjitlink = count > 0;
  return 0;
}

static int close_all(void** state) {
  (void)state;
  kiln_linker_release(linker);
  kiln_compiler_release(compiler);
  kiln_runtime_release(runtime);
  return 0;
}

static bool is_missing(void) {
  if (compiler != NULL && has_nvjitlink) return false;
  print_message("skip: no NVRTC and nvJitLink on this machine\n");
  return true;
}

static kiln_code_t* compile(const char* source, uint32_t format) {
  kiln_compile_options_t options = kiln_compile_options_default();
  kiln_compile_result_t* result = NULL;
  bool is_machine = format == KILN_CODE_FORMAT_RELOCATABLE;
  options.output = format;
  options.arch = is_machine ? "sm_80" : "compute_80";
  if (format != KILN_CODE_FORMAT_LTOIR) {
    options.relocatable_device_code = KILN_SWITCH_ON;
  }
  options.toolkit_include = KILN_SWITCH_OFF;
  WORKS(kiln_compiler_compile(compiler,
                              (kiln_string_view_t){source, strlen(source)},
                              &options, &result));
  kiln_code_t* code = kiln_compile_result_code(result);
  kiln_code_retain(code);
  kiln_compile_result_release(result);
  return code;
}

static kiln_status_t link_with(const kiln_link_options_t* given,
                               kiln_code_t* const* inputs, uint32_t count,
                               kiln_code_t** out_code) {
  kiln_link_options_t options = kiln_link_options_default();
  kiln_link_t* link = NULL;
  if (given != NULL) options = *given;
  if (options.arch == NULL) options.arch = "sm_80";
  if (options.backend == 0) options.backend = KILN_LINK_BACKEND_NVJITLINK;
  *out_code = NULL;
  kiln_status_t status = kiln_link_create(linker, &options, &link);
  for (uint32_t i = 0; i < count && kiln_status_is_ok(status); i++) {
    status = kiln_link_add(link, inputs[i]);
  }
  if (kiln_status_is_ok(status)) status = kiln_link_finish(link, out_code);
  kiln_link_release(link);
  return status;
}

// Links must be refused with that code; none may end the process.
static void is_refused(kiln_status_code_t code, kiln_code_t* const* inputs,
                       uint32_t count) {
  kiln_code_t* linked = NULL;
  kiln_status_t status = link_with(NULL, inputs, count, &linked);
  assert_string_equal(kiln_status_code_name(kiln_status_code(status)),
                      kiln_status_code_name(code));
  assert_non_null(kiln_status_fix(status));
  assert_null(linked);
  kiln_status_free(status);
}

// ---- By the machine's own ----

static const uint32_t kFormats[] = {
    KILN_CODE_FORMAT_RELOCATABLE, KILN_CODE_FORMAT_PTX, KILN_CODE_FORMAT_LTOIR};

static void test_whole_and_doubled(void** state) {
  (void)state;
  if (is_missing()) skip();
  for (int i = 0; i < 3; i++) {
    kiln_code_t* all[] = {compile(kCaller, kFormats[i]),
                          compile(kCalled, kFormats[i]),
                          compile(kCalled, KILN_CODE_FORMAT_PTX)};
    kiln_code_t* doubled[] = {all[0], all[1], all[1]};
    kiln_code_t* linked = NULL;
    WORKS(link_with(NULL, all, 2, &linked));
    kiln_code_release(linked);
    is_refused(KILN_STATUS_LINK_FAILED, all, 1);      // f is nowhere
    is_refused(KILN_STATUS_LINK_FAILED, doubled, 3);  // f is there twice
    // And in two forms; what IR defines, nobody sees before the linker.
    if (kFormats[i] != KILN_CODE_FORMAT_LTOIR) {
      is_refused(KILN_STATUS_LINK_FAILED, all, 3);
    }
    for (int k = 0; k < 3; k++) kiln_code_release(all[k]);
  }
}

// A link with link-time optimisation that fails, then one with a doubled name:
// this ended the process. Then all goes on.
static void test_a_failed_link_before(void** state) {
  (void)state;
  if (is_missing()) skip();
  kiln_code_t* caller = compile(kCaller, KILN_CODE_FORMAT_LTOIR);
  kiln_code_t* called = compile(kCalled, KILN_CODE_FORMAT_RELOCATABLE);
  kiln_code_t* user = compile(kCaller, KILN_CODE_FORMAT_RELOCATABLE);
  kiln_code_t* doubled[] = {called, called};
  kiln_code_t* whole[] = {user, called};
  kiln_code_t* linked = NULL;
  for (int i = 0; i < 3; i++) {
    is_refused(KILN_STATUS_LINK_FAILED, &caller, 1);
    is_refused(KILN_STATUS_LINK_FAILED, doubled, 2);
  }
  WORKS(link_with(NULL, whole, 2, &linked));
  kiln_code_release(linked);
  kiln_code_release(caller);
  kiln_code_release(called);
  kiln_code_release(user);
}

// Machine code cut off anywhere never links to something less.
static void test_cut_off(void** state) {
  (void)state;
  if (is_missing()) skip();
  kiln_code_t* caller = compile(kCaller, KILN_CODE_FORMAT_RELOCATABLE);
  kiln_code_t* called = compile(kCalled, KILN_CODE_FORMAT_RELOCATABLE);
  kiln_bytes_view_t whole = kiln_code_bytes(caller);
  uint32_t refused = 0;
  for (size_t size = 1; size < whole.size; size += 1 + whole.size / 60) {
    // Exactly so many bytes, so that a sanitizer sees who reads behind them.
    uint8_t* part = malloc(size);
    kiln_code_t* cut = NULL;
    kiln_code_t* linked = NULL;
    assert_non_null(part);
    memcpy(part, whole.data, size);
    kiln_status_t status =
        kiln_code_create((kiln_bytes_view_t){part, size}, NULL, &cut);
    if (kiln_status_is_ok(status)) {
      kiln_code_t* inputs[] = {cut, called};
      status = link_with(NULL, inputs, 2, &linked);
    }
    assert_false(kiln_status_is_ok(status));
    assert_null(linked);
    kiln_status_free(status);
    kiln_code_release(cut);
    free(part);
    refused++;
  }
  assert_true(refused > 50);
  kiln_code_release(caller);
  kiln_code_release(called);
}

// What a set of options is called, and one that sets it.
typedef struct option_row_t {
  const char* what;
  void (*set)(kiln_link_options_t* options);
} option_row_t;

static const char* const kBogus[] = {"-bogus"};
static const char* const kArch[] = {"-arch=sm_90"};
static const char* const kEmpty[] = {""};
static const char* const kNope[] = {"nope"};

static void arch_one(kiln_link_options_t* o) {
  o->arch = "sm_1";
}
static void arch_999(kiln_link_options_t* o) {
  o->arch = "sm_999";
}
static void arch_empty(kiln_link_options_t* o) {
  o->arch = "";
}
static void arch_long(kiln_link_options_t* o) {
  o->arch = "sm_8000000000000000000000";
}
static void arch_minus(kiln_link_options_t* o) {
  o->arch = "sm_-1";
}
static void arch_two(kiln_link_options_t* o) {
  o->arch = "sm_80 -lto";
}
static void level_five(kiln_link_options_t* o) {
  o->optimization_level = 6;
}
static void switch_nine(kiln_link_options_t* o) {
  o->debug = 9;
}
static void extra_bogus(kiln_link_options_t* o) {
  o->extra = kBogus;
  o->extra_count = 1;
}
static void extra_arch(kiln_link_options_t* o) {
  o->extra = kArch;
  o->extra_count = 1;
}
static void extra_empty(kiln_link_options_t* o) {
  o->extra = kEmpty;
  o->extra_count = 1;
}
static void size_zero(kiln_link_options_t* o) {
  o->struct_size = 0;
}
static void size_four(kiln_link_options_t* o) {
  o->struct_size = 4;
}
static void lto_of_none(kiln_link_options_t* o) {
  o->lto = KILN_SWITCH_ON;
}

static const option_row_t kWrong[] = {
    {"sm_1", arch_one},
    {"sm_999", arch_999},
    {"no name", arch_empty},
    {"a long name", arch_long},
    {"sm_-1", arch_minus},
    {"two words", arch_two},
    {"level 5", level_five},
    {"switch 9", switch_nine},
    {"-bogus", extra_bogus},
    {"-arch twice", extra_arch},
    {"an empty one", extra_empty},
    {"size 0", size_zero},
    {"size 4", size_four},
    {"no IR", lto_of_none},
};

static void test_options_without_sense(void** state) {
  (void)state;
  if (is_missing()) skip();
  kiln_code_t* inputs[] = {compile(kCaller, KILN_CODE_FORMAT_RELOCATABLE),
                           compile(kCalled, KILN_CODE_FORMAT_RELOCATABLE)};
  for (size_t i = 0; i < sizeof(kWrong) / sizeof(kWrong[0]); i++) {
    kiln_link_options_t options = kiln_link_options_default();
    kiln_code_t* linked = NULL;
    options.arch = "sm_80";
    kWrong[i].set(&options);
    kiln_status_t status = link_with(&options, inputs, 2, &linked);
    if (kiln_status_is_ok(status)) fail_msg("links: %s", kWrong[i].what);
    assert_null(linked);
    kiln_status_free(status);
  }
  // What leaves all out that there is, is refused or keeps it.
  kiln_link_options_t options = kiln_link_options_default();
  kiln_code_t* linked = NULL;
  options.kernels_used = kNope;
  options.kernels_used_count = 1;
  kiln_status_free(link_with(&options, inputs, 2, &linked));
  kiln_code_release(linked);
  kiln_code_release(inputs[0]);
  kiln_code_release(inputs[1]);
}

// A closed link tells its logs still, and does nothing more.
static void test_a_closed_link(void** state) {
  (void)state;
  if (is_missing()) skip();
  kiln_code_t* caller = compile(kCaller, KILN_CODE_FORMAT_RELOCATABLE);
  kiln_link_options_t options = kiln_link_options_default();
  kiln_link_t* link = NULL;
  kiln_code_t* linked = NULL;
  options.arch = "sm_80";
  options.backend = KILN_LINK_BACKEND_NVJITLINK;
  WORKS(kiln_link_create(linker, &options, &link));
  WORKS(kiln_link_add(link, caller));
  REFUSED(LINK_FAILED, kiln_link_finish(link, &linked));
  kiln_link_close(link);
  assert_non_null(strstr(kiln_link_log(link, KILN_LINK_LOG_ERROR), "f"));
  REFUSED(INVALID_STATE, kiln_link_finish(link, &linked));
  REFUSED(INVALID_STATE, kiln_link_add(link, caller));
  assert_null(linked);
  kiln_link_release(link);
  kiln_code_release(caller);
}

// LTO-IR says by itself what made it.
static void test_the_line_of_ltoir(void** state) {
  (void)state;
  if (is_missing()) skip();
  kiln_code_t* made = compile(kCalled, KILN_CODE_FORMAT_LTOIR);
  kiln_code_t* read = NULL;
  kiln_link_input_fact_t fact;
  WORKS(kiln_code_create(kiln_code_bytes(made), NULL, &read));
  kiln_link_input_fact_of(read, &fact);
  assert_int_equal(fact.format, KILN_CODE_FORMAT_LTOIR);
  assert_int_equal(fact.line, kiln_compiler_version(compiler));
  kiln_code_release(read);
  kiln_code_release(made);
}

// ---- Who would link ----

static uint32_t chosen(uint32_t driver, uint32_t nvjitlink, uint32_t ir_line,
                       bool lto, bool no_device) {
  kiln_link_facts_t facts = kiln_link_facts_default();
  kiln_link_input_fact_t inputs[2];
  kiln_link_choice_t* choice = NULL;
  memset(inputs, 0, sizeof(inputs));
  inputs[0].format = KILN_CODE_FORMAT_PTX;
  inputs[0].ptx_isa = 70;
  inputs[1] = inputs[0];
  if (ir_line > 0) {
    inputs[1].format = KILN_CODE_FORMAT_LTOIR;
    inputs[1].line = ir_line;
    inputs[1].ptx_isa = 0;
  }
  facts.inputs = inputs;
  facts.input_count = 2;
  facts.nvjitlinks = &nvjitlink;
  facts.nvjitlink_count = nvjitlink > 0 ? 1 : 0;
  facts.lto = lto ? KILN_SWITCH_ON : KILN_SWITCH_DEFAULT;
  facts.driver = kiln_compat_driver_default();
  facts.has_no_device = no_device ? 1 : 0;
  if (driver > 0) {
    facts.driver.state = KILN_COMPAT_DRIVER_KNOWN;
    facts.driver.line = driver;
  }
  WORKS(kiln_link_choose(&facts, NULL, &choice));
  uint32_t backend = kiln_link_choice_backend(choice);
  kiln_status_t status = kiln_link_choice_status(choice);
  assert_int_equal(kiln_status_is_ok(status),
                   backend != KILN_LINK_BACKEND_AUTO);
  assert_int_equal(kiln_link_choice_fix(choice) != NULL,
                   backend == KILN_LINK_BACKEND_AUTO);
  assert_true(kiln_link_choice_reason_count(choice) > 0);
  kiln_status_free(status);
  kiln_link_choice_release(choice);
  return backend;
}

enum {
  NOBODY = KILN_LINK_BACKEND_AUTO,
  NVJITLINK = KILN_LINK_BACKEND_NVJITLINK,
  DRIVER = KILN_LINK_BACKEND_DRIVER
};

static void test_who_links(void** state) {
  (void)state;
  static const uint32_t rows[][5] = {
      // driver, nvJitLink, of PTX, with LTO-IR, without a device
      {0, 0, DRIVER, NOBODY, NOBODY},
      {0, 12020, DRIVER, NOBODY, NOBODY},  // too old to count
      {0, 12090, NVJITLINK, NVJITLINK, NVJITLINK},
      {0, 13000, NVJITLINK, NVJITLINK, NVJITLINK},
      {12080, 0, DRIVER, NOBODY, NOBODY},
      {12080, 12020, DRIVER, NOBODY, NOBODY},
      {12080, 12090, NVJITLINK, NVJITLINK, NVJITLINK},
      {12080, 13000, DRIVER, NOBODY, NOBODY},  // of a newer major
      {13000, 0, DRIVER, NOBODY, NOBODY},
      {13000, 12020, DRIVER, NOBODY, NOBODY},
      {13000, 12090, NVJITLINK, NVJITLINK, NVJITLINK},
      {13000, 13000, NVJITLINK, NVJITLINK, NVJITLINK},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    const uint32_t* row = rows[i];
    assert_int_equal(chosen(row[0], row[1], 0, false, false), row[2]);
    assert_int_equal(chosen(row[0], row[1], 12000, true, false), row[3]);
    assert_int_equal(chosen(row[0], row[1], 0, true, false), row[3]);
    assert_int_equal(chosen(row[0], row[1], 0, false, true), row[4]);
  }
}

static void test_facts_that_are_none(void** state) {
  (void)state;
  kiln_link_facts_t facts = kiln_link_facts_default();
  kiln_link_input_fact_t input = {0};
  kiln_link_choice_t* choice = NULL;
  REFUSED(INVALID_ARGUMENT, kiln_link_choose(&facts, NULL, &choice));
  REFUSED(INVALID_ARGUMENT, kiln_link_choose(NULL, NULL, &choice));
  facts.inputs = &input;
  facts.input_count = 1;
  REFUSED(INVALID_ARGUMENT, kiln_link_choose(&facts, NULL, &choice));
  input.format = 99;
  REFUSED(INVALID_ARGUMENT, kiln_link_choose(&facts, NULL, &choice));
  input.format = KILN_CODE_FORMAT_PTX;
  facts.output = 99;
  REFUSED(INVALID_ARGUMENT, kiln_link_choose(&facts, NULL, &choice));
  facts.output = 0;
  facts.backend = 7;
  REFUSED(INVALID_ARGUMENT, kiln_link_choose(&facts, NULL, &choice));
  facts.backend = 0;
  facts.lto = 9;
  REFUSED(INVALID_ARGUMENT, kiln_link_choose(&facts, NULL, &choice));
  facts.lto = 0;
  facts.struct_size = 0;
  REFUSED(INVALID_ARGUMENT, kiln_link_choose(&facts, NULL, &choice));
  facts.struct_size = sizeof(facts);
  facts.input_count = KILN_LINK_MAX_INPUTS + 1;
  REFUSED(LIMIT_EXCEEDED, kiln_link_choose(&facts, NULL, &choice));
  assert_null(choice);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_who_links),
      cmocka_unit_test(test_facts_that_are_none),
      cmocka_unit_test(test_whole_and_doubled),
      cmocka_unit_test(test_a_failed_link_before),
      cmocka_unit_test(test_cut_off),
      cmocka_unit_test(test_options_without_sense),
      cmocka_unit_test(test_a_closed_link),
      cmocka_unit_test(test_the_line_of_ltoir),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
