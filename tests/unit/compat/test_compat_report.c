// SPDX-License-Identifier: Apache-2.0
//
// compat: what a report says, in which mode it refuses, and bad requests.
#include "compat_kit.h"
#include "fault_run.h"

static kit_t kit;

static int setup(void** state) {
  (void)state;
  kit_init(&kit);
  return 0;
}

static int teardown(void** state) {
  (void)state;
  kit_deinit(&kit);
  return 0;
}

static kiln_status_code_t code_in(uint32_t mode) {
  kiln_status_t status = kiln_compat_report_status(kit.report, mode);
  kiln_status_code_t code = kiln_status_code(status);
  kiln_status_free(status);
  return code;
}

// ---- Modes ----

static void incompatible_in_each_mode(void** state) {
  (void)state;
  kit_lib(&kit, "cublas", 12080);
  kit_lib(&kit, "cusolver", 12090);
  kit_check(&kit);
  assert_int_equal(code_in(KILN_COMPAT_MODE_STRICT), KILN_STATUS_INCOMPATIBLE);
  assert_int_equal(code_in(KILN_COMPAT_MODE_BEST_EFFORT),
                   KILN_STATUS_INCOMPATIBLE);
  assert_int_equal(code_in(KILN_COMPAT_MODE_WARN), KILN_STATUS_OK);
  assert_int_equal(code_in(KILN_COMPAT_MODE_OFF), KILN_STATUS_OK);
  assert_int_equal(code_in(KILN_COMPAT_MODE_DEFAULT), KILN_STATUS_INCOMPATIBLE);
}

static void unknown_in_each_mode(void** state) {
  (void)state;
  kit_lib(&kit, "cublas", 0);
  kit_check(&kit);
  assert_int_equal(code_in(KILN_COMPAT_MODE_STRICT),
                   KILN_STATUS_INSUFFICIENT_METADATA);
  assert_int_equal(code_in(KILN_COMPAT_MODE_BEST_EFFORT), KILN_STATUS_OK);
  assert_int_equal(code_in(KILN_COMPAT_MODE_WARN), KILN_STATUS_OK);
}

static void the_default_is_warn(void** state) {
  (void)state;
  kit_lib(&kit, "cublas", 12080);
  kit_lib(&kit, "cusolver", 12090);
  kit.request.mode = KILN_COMPAT_MODE_DEFAULT;
  kit_accepts(&kit);
  assert_int_equal(kiln_compat_report_verdict(kit.report),
                   KILN_COMPAT_VERDICT_INCOMPATIBLE);
}

// What is incompatible comes before what is unknown.
static void the_worst_comes_first(void** state) {
  (void)state;
  kit_lib(&kit, "cublas", 12080);
  kit_lib(&kit, "cufft", 0);
  kit_lib(&kit, "cusolver", 12090);
  kit_check(&kit);
  kiln_status_t status = kiln_compat_report_status(kit.report, 0);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INCOMPATIBLE);
  char text[4096];
  kiln_status_format(status, sizeof(text), text, NULL);
  assert_non_null(strstr(text, "(rule component)"));
  assert_non_null(strstr(text, "(rule line)"));
  assert_non_null(strstr(text, "Fix: take both from one toolkit"));
  kiln_status_free(status);
}

static void a_status_of_many_findings_ends(void** state) {
  (void)state;
  for (int i = 0; i < 30; i++) {
    kit_lib(&kit, i % 2 == 0 ? "cublas" : "cusolver", 12000 + 10 * (i % 3))
        ->path = "/somewhere";
  }
  kit_check(&kit);
  kiln_status_t status = kiln_compat_report_status(kit.report, 0);
  char text[1 << 14];
  kiln_status_format(status, sizeof(text), text, NULL);
  assert_non_null(strstr(text, "and more; the report lists all of them"));
  kiln_status_free(status);
}

// ---- Text ----

static void a_report_prints_itself(void** state) {
  (void)state;
  kiln_compat_fact_t* old = kit_lib(&kit, "cublas", 12080);
  old->path = "/a/libcublas.so.12";
  old->evidence = "wheel nvidia-cublas-cu12 12.8.4.1";
  kit_lib(&kit, "cusolver", 12090);
  kit_check(&kit);
  char text[2048];
  size_t length = 0;
  kiln_compat_report_format(kit.report, sizeof(text), text, &length);
  assert_string_equal(
      text,
      "incompatible\nincompatible: lib:cublas of CUDA 12.8 "
      "(\"/a/libcublas.so.12\", by wheel nvidia-cublas-cu12 12.8.4.1) and "
      "lib:cusolver of CUDA 12.9 are in the same dynamic-link component "
      "'cuda_blas_solver_runtime', whose members must be of one release "
      "[component, any]\n  Fix: take both from one toolkit, e.g. `python3 -m "
      "pip install \"cuda-toolkit[cublas]==12.9.*\"` (outside an environment "
      "after `python3 -m venv cuda && . cuda/bin/activate`, which on Debian "
      "and Ubuntu needs `apt-get install python3-venv`)\n");
  assert_int_equal(length, strlen(text));
  char cut[10];
  kiln_compat_report_format(kit.report, sizeof(cut), cut, &length);
  assert_string_equal(cut, "incompati");
  assert_int_equal(length, strlen(text));
  kiln_compat_report_format(kit.report, 0, NULL, &length);
  assert_int_equal(length, strlen(text));
}

static void an_empty_report_prints_itself(void** state) {
  (void)state;
  char text[64];
  kit_check(&kit);
  kiln_compat_report_format(kit.report, sizeof(text), text, NULL);
  assert_string_equal(text, "compatible\n");
  kit.request.mode = KILN_COMPAT_MODE_OFF;
  kit_check(&kit);
  kiln_compat_report_format(kit.report, sizeof(text), text, NULL);
  assert_string_equal(text, "not checked: the mode is off\n");
}

static void a_report_outlives_what_it_was_made_of(void** state) {
  (void)state;
  char path[] = "/a/libcublas.so.12";
  kit_lib(&kit, "cublas", 0)->path = path;
  kit_check(&kit);
  path[1] = 'b';
  const kiln_compat_finding_t* finding =
      kiln_compat_report_finding(kit.report, 0);
  assert_string_equal(finding->parties[0].path, "/a/libcublas.so.12");
  assert_null(kiln_compat_report_finding(kit.report, 1));
  kiln_compat_report_retain(kit.report);
  kiln_compat_report_release(kit.report);
  assert_string_equal(finding->parties[0].item, "lib:cublas");
}

// Every rule has its sentence, and every sentence a fix that names a command
// or a step.
static void every_finding_has_message_and_fix(void** state) {
  (void)state;
  kit_driver(&kit, "12.9,575.1");
  kit_lib(&kit, "nvrtc", 13050);
  kit_lib(&kit, "nvJitLink", 13000);
  kit_lib(&kit, "cudart", 12090);
  kit_lib(&kit, "cublas", 13000);
  kit_lib(&kit, "cusparse", 13010);
  kit_lib(&kit, "nvvm", 0);
  kit_add(&kit, KILN_COMPAT_KIND_HEADER, "cudart", 13000);
  kit.request.constraint = "<13.5";
  kit_use(&kit, "nvrtc", "nvJitLink", KILN_COMPAT_ARTIFACT_LTOIR);
  kit_use(&kit, "nvrtc", "cuda", KILN_COMPAT_ARTIFACT_PTX);
  kit_check(&kit);
  uint32_t count = kiln_compat_report_finding_count(kit.report);
  assert_true(count >= 10);
  for (uint32_t i = 0; i < count; i++) {
    const kiln_compat_finding_t* finding =
        kiln_compat_report_finding(kit.report, i);
    assert_true(strlen(finding->message) > 20);
    assert_null(strchr(finding->message, '\n'));
    assert_true(strlen(finding->fix) > 10);
    assert_null(strchr(finding->fix, '\n'));
    assert_true(finding->party_count >= 1);
    assert_string_not_equal(kiln_compat_rule_word(finding->rule), "?");
    assert_string_not_equal(kiln_compat_use_word(finding->use), "?");
    assert_string_not_equal(kiln_compat_verdict_word(finding->verdict), "?");
  }
}

// ---- Bad requests ----

static void refused(kiln_status_code_t code) {
  kiln_compat_report_t* report = (kiln_compat_report_t*)&kit;
  kiln_status_t status = kiln_compat_check(&kit.request, &report);
  assert_int_equal(kiln_status_code(status), code);
  assert_null(report);
  kiln_status_free(status);
}

static void bad_requests(void** state) {
  (void)state;
  kiln_compat_fact_t* fact = kit_lib(&kit, "nvrtc", 13000);
  fact->name = NULL;
  refused(KILN_STATUS_INVALID_ARGUMENT);
  fact->name = "nvrtc";
  fact->kind = 0;
  refused(KILN_STATUS_INVALID_ARGUMENT);
  fact->kind = 7;
  refused(KILN_STATUS_INVALID_ARGUMENT);
  fact->kind = KILN_COMPAT_KIND_LIB;
  fact->class_id = 4;
  refused(KILN_STATUS_INVALID_ARGUMENT);
  fact->class_id = KILN_COMPAT_CLASS_CTK;
  fact->need_count = 1;
  refused(KILN_STATUS_INVALID_ARGUMENT);
  fact->need_count = 0;
  fact->struct_size = 0;
  refused(KILN_STATUS_INVALID_ARGUMENT);
  fact->struct_size = (uint32_t)sizeof(*fact);
  kit.fact_pointers[0] = NULL;
  refused(KILN_STATUS_INVALID_ARGUMENT);
  kit.fact_pointers[0] = fact;
  kit.request.subject = 2;
  refused(KILN_STATUS_INVALID_ARGUMENT);
  kit.request.subject = 0;
  kit.request.mode = 5;
  refused(KILN_STATUS_INVALID_ARGUMENT);
  kit.request.mode = KILN_COMPAT_MODE_OFF;
  kit.driver.state = 3;
  refused(KILN_STATUS_INVALID_ARGUMENT);
  kit.driver.state = 0;
  kit_use(&kit, "nvrtc", "nvJitLink", 6);
  refused(KILN_STATUS_INVALID_ARGUMENT);
  kit.uses[0].artifact = 1;
  kit.uses[0].consumer = NULL;
  refused(KILN_STATUS_INVALID_ARGUMENT);
  kit.request.use_count = 0;
  kit.request.fact_count = KILN_COMPAT_MAX_FACTS + 1;
  refused(KILN_STATUS_LIMIT_EXCEEDED);
  kit.request.fact_count = 1;
  kit_accepts(&kit);
}

// The most facts that may be, all at odds: the limit on findings answers.
static void too_many_findings(void** state) {
  (void)state;
  static const kiln_compat_fact_t* pointers[KILN_COMPAT_MAX_FACTS];
  static kiln_compat_fact_t facts[KILN_COMPAT_MAX_FACTS];
  kiln_compat_fact_t* first = kit_lib(&kit, "cublas", 13000);
  for (uint32_t i = 0; i < KILN_COMPAT_MAX_FACTS; i++) {
    facts[i] = *first;
    facts[i].line = 12000 + 10 * (i % 100);
    facts[i].nvvm_ir = i;
    pointers[i] = &facts[i];
  }
  kit.request.facts = pointers;
  kit.request.fact_count = KILN_COMPAT_MAX_FACTS;
  refused(KILN_STATUS_LIMIT_EXCEEDED);
}

// ---- Memory ----

static kiln_status_t check_body(kiln_allocator_t allocator, void* user) {
  (void)user;
  kiln_compat_report_t* report = (kiln_compat_report_t*)&kit;
  kit.request.allocator = &allocator;
  kiln_status_t status = kiln_compat_check(&kit.request, &report);
  kit.request.allocator = NULL;
  assert_true(kiln_status_is_ok(status) == (report != NULL));
  kiln_compat_report_release(report);
  return status;
}

static void every_allocation_may_fail(void** state) {
  (void)state;
  kit_lib(&kit, "nvrtc", 13050);
  kit_lib(&kit, "nvJitLink", 13000);
  kit_lib(&kit, "cublas", 0);
  kit_use(&kit, "nvrtc", "nvJitLink", KILN_COMPAT_ARTIFACT_LTOIR);
  assert_true(fault_run_allocations(check_body, NULL, 0) > 10);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(incompatible_in_each_mode),
      CASE(unknown_in_each_mode),
      CASE(the_default_is_warn),
      CASE(the_worst_comes_first),
      CASE(a_status_of_many_findings_ends),
      CASE(a_report_prints_itself),
      CASE(an_empty_report_prints_itself),
      CASE(a_report_outlives_what_it_was_made_of),
      CASE(every_finding_has_message_and_fix),
      CASE(bad_requests),
      CASE(too_many_findings),
      CASE(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
