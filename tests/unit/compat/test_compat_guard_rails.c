// SPDX-License-Identifier: Apache-2.0
//
// compat: the guard-rail cases of cuda-pathfinder, as facts.
//
// docs/reference/pathfinder-cases.md numbers them. Where Kiln decides
// otherwise, the test says so and why. The driver is 13.0 unless a test says
// otherwise.
#include "compat_kit.h"

#define NO   KILN_COMPAT_VERDICT_INCOMPATIBLE
#define OPEN KILN_COMPAT_VERDICT_UNKNOWN

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

static void case_1_component(void** state) {
  (void)state;
  kit_lib(&kit, "cublas", 12080);
  kit_lib(&kit, "cusolver", 12090);
  kit_refuses(&kit, KILN_COMPAT_RULE_COMPONENT, NO,
              "dynamic-link component 'cuda_blas_solver_runtime'");
}

static void case_2_independent(void** state) {
  (void)state;
  kit_lib(&kit, "nvrtc", 12080);
  kit_lib(&kit, "nvJitLink", 12090);
  kit_accepts(&kit);
}

static void case_3_companions(void** state) {
  (void)state;
  kit_add(&kit, KILN_COMPAT_KIND_STATIC, "cudadevrt", 12080);
  kit_add(&kit, KILN_COMPAT_KIND_BINARY, "nvcc", 12090);
  kit_refuses(&kit, KILN_COMPAT_RULE_COMPANION, NO,
              "companion tag 'toolchain_cuda_nvcc'");
}

static void case_4_ltoir_into_older(void** state) {
  (void)state;
  kit_lib(&kit, "nvrtc", 12090);
  kit_use(&kit, "nvrtc", "nvJitLink", KILN_COMPAT_ARTIFACT_LTOIR);
  kit_accepts(&kit);
  kit_lib(&kit, "nvJitLink", 12080);
  kit_refuses(&kit, KILN_COMPAT_RULE_LINKER_RANGE, NO,
              "nvJitLink must be >= the producer version");
}

static void case_5_ltoir_into_newer(void** state) {
  (void)state;
  kit_lib(&kit, "nvrtc", 12080);
  kit_lib(&kit, "nvJitLink", 12090);
  kit_use(&kit, "nvrtc", "nvJitLink", KILN_COMPAT_ARTIFACT_LTOIR);
  kit_accepts(&kit);
}

static void case_6_code_into_newer_major(void** state) {
  (void)state;
  kit_lib(&kit, "nvrtc", 12080);
  kit_lib(&kit, "nvJitLink", 13000);
  kit_use(&kit, "nvrtc", "nvJitLink", KILN_COMPAT_ARTIFACT_PTX);
  kit_use(&kit, "nvrtc", "nvJitLink", KILN_COMPAT_ARTIFACT_CUBIN);
  kit_accepts(&kit);
  // On purpose another answer: nvJitLink reports success and leaves it out.
  kit_use(&kit, "nvrtc", "nvJitLink", KILN_COMPAT_ARTIFACT_ELF);
  kit_refuses(&kit, KILN_COMPAT_RULE_LINKER_RANGE, OPEN, "omit finished");
  kit.request.mode = KILN_COMPAT_MODE_BEST_EFFORT;
  kit_accepts(&kit);
}

static void case_7_nvvm_pipeline(void** state) {
  (void)state;
  kit_lib(&kit, "nvvm", 12080);
  kit_lib(&kit, "nvJitLink", 12090);
  kit_accepts(&kit);
  kit_use(&kit, "nvvm", "nvJitLink", KILN_COMPAT_ARTIFACT_PTX);
  kit_refuses(&kit, KILN_COMPAT_RULE_NVVM_IR, NO, "one release on both sides");
  // Beyond the original: with both IR versions known, PTX is PTX.
  kit.facts[0].nvvm_ir = 2000;
  kit.facts[1].nvvm_ir = 2000;
  kit_accepts(&kit);
}

static void case_8_artifact(void** state) {
  (void)state;
  uint32_t artifact = 7;
  kiln_status_t status = kiln_compat_artifact_parse("fatbin", &artifact);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  assert_non_null(strstr(kiln_status_message(status), "fatbin"));
  assert_non_null(strstr(kiln_status_fix(status), "ltoir"));
  assert_int_equal(artifact, 0);
  kiln_status_free(status);
}

static void case_9_older_driver_major(void** state) {
  (void)state;
  kit_driver(&kit, "12.8");
  kit_lib(&kit, "nvrtc", 13000);
  kit_refuses(&kit, KILN_COMPAT_RULE_DRIVER, NO, "driver major >= its own");
}

static void case_10_unknown_line(void** state) {
  (void)state;
  kit_lib(&kit, "nvrtc", 0);
  kit_refuses(&kit, KILN_COMPAT_RULE_LINE, OPEN, "states its release");
  assert_non_null(
      strstr(kiln_compat_report_refusal(kit.report, 0)->fix, "cuda.h"));
}

static void case_11_newer_minor(void** state) {
  (void)state;
  kit_lib(&kit, "nvrtc", 13020);
  kit_accepts(&kit);
}

// Kiln decides otherwise (the original refuses every piece that is not of the
// toolkit): nothing is known against it, no rule asks for its line, and a
// strict mode that no product with its own numbers passes is of no use.
static void case_12_other(void** state) {
  (void)state;
  kit_add(&kit, KILN_COMPAT_KIND_BITCODE, "nvshmem_device", 0);
  kit_accepts(&kit);
  assert_int_equal(kiln_compat_report_verdict(kit.report),
                   KILN_COMPAT_VERDICT_COMPATIBLE);
}

static void case_13_driver_library(void** state) {
  (void)state;
  kit_lib(&kit, "nvml", 0);
  kit_lib(&kit, "nvrtc", 12090);
  kit_accepts(&kit);
}

static void case_14_driver_library_hides_nothing(void** state) {
  (void)state;
  kit_lib(&kit, "nvml", 0);
  kit_lib(&kit, "nvrtc", 12080);
  kit_add(&kit, KILN_COMPAT_KIND_HEADER, "nvrtc", 12090);
  kit_refuses(&kit, KILN_COMPAT_RULE_COMPANION, NO,
              "companion tag 'api_nvrtc'");
}

// Kiln decides otherwise on the range: any newer wheel satisfies it, so it
// proves nothing. The wheel's own number says 13.2 without it.
static void case_15_pins(void** state) {
  (void)state;
  kiln_compat_evidence_t evidence =
      kiln_compat_evidence_of_pin("13.2.1", "nvidia-nvjitlink", " == 13.2.78.*",
                                  "nvidia-nvjitlink", "13.2.78");
  assert_int_equal(evidence.source, KILN_COMPAT_SOURCE_EXACT_PIN);
  assert_int_equal(evidence.line, 13020);
  evidence =
      kiln_compat_evidence_of_pin("13.2.1", "nvidia-nvjitlink", "<14,>=13.2.78",
                                  "nvidia-nvjitlink", "13.2.78");
  assert_int_equal(evidence.source, KILN_COMPAT_SOURCE_RANGE_PIN);
  assert_int_equal(kiln_compat_line_conclude(&evidence, 1).line, 0);
  evidence = kiln_compat_evidence_of_wheel("nvidia-nvjitlink", "13.2.78");
  assert_int_equal(kiln_compat_line_conclude(&evidence, 1).line, 13020);
}

static void case_16_constraint(void** state) {
  (void)state;
  kit_lib(&kit, "nvrtc", 12090);
  kit.request.constraint = ">=12.9,<13";
  kit_accepts(&kit);
}

static void case_17_constraint_refuses(void** state) {
  (void)state;
  kit_lib(&kit, "nvrtc", 12090);
  kit.request.constraint = "<12.9";
  kit_refuses(&kit, KILN_COMPAT_RULE_CONSTRAINT, NO, "ctk_version<12.9");
}

static void case_18_no_specifier(void** state) {
  (void)state;
  kit_lib(&kit, "nvrtc", 12090);
  kit.request.constraint = "13.2";
  for (uint32_t mode = 0; mode <= KILN_COMPAT_MODE_STRICT; mode++) {
    kit.request.mode = mode;
    kiln_compat_report_t* report = kit.report;
    kiln_status_t status = kiln_compat_check(&kit.request, &report);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(kiln_status_message(status), "PEP 440 specifier"));
    assert_null(report);
    kiln_status_free(status);
  }
}

static void case_19_one_root(void** state) {
  (void)state;
  kiln_compat_fact_t* nvrtc = kit_lib(&kit, "nvrtc", 13000);
  assert_string_equal(nvrtc->component, "nvrtc_mathdx");
  kiln_compat_fact_t* headers =
      kit_add(&kit, KILN_COMPAT_KIND_HEADER, "nvrtc", 13000);
  assert_string_equal(headers->tags[0], "api_nvrtc");
  kit_add(&kit, KILN_COMPAT_KIND_STATIC, "cudadevrt", 13000);
  kit_add(&kit, KILN_COMPAT_KIND_BITCODE, "device", 13000);
  kit_add(&kit, KILN_COMPAT_KIND_BINARY, "nvcc", 13000);
  kit_accepts(&kit);
}

// Case 20, every name has a class: of whole classes here, of the catalog
// itself in its own test.
static void case_20_every_row_has_a_class(void** state) {
  (void)state;
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    const kiln_locate_entry_t* entry = kiln_locate_entry(i);
    kit_init(&kit);
    kit_add(&kit, kiln_locate_entry_kind(entry), kiln_locate_entry_name(entry),
            13000);
    kit_accepts(&kit);
    kit_deinit(&kit);
  }
}

static void case_21_four_kinds(void** state) {
  (void)state;
  kit_lib(&kit, "nvrtc", 12090);
  kit_add(&kit, KILN_COMPAT_KIND_STATIC, "cudadevrt", 12090);
  kit_add(&kit, KILN_COMPAT_KIND_BITCODE, "device", 12090);
  kit_add(&kit, KILN_COMPAT_KIND_BINARY, "nvcc", 12090);
  kit_accepts(&kit);
}

// Case 22, the driver is asked once, is of the module toolkit; here a driver
// that is new enough needs no release.
static void case_22_release_not_needed(void** state) {
  (void)state;
  kit_driver(&kit, "13.0");
  assert_int_equal(kit.driver.branch, 0);
  kit_lib(&kit, "nvrtc", 13000);
  kit_accepts(&kit);
}

// Kiln decides otherwise: a driver that cannot be asked is "unknown", which
// strict refuses and best_effort lets pass; none at all refuses nothing, or no
// build machine could check anything.
static void case_23_no_answer(void** state) {
  (void)state;
  kit_driver(&kit, "unknown");
  kit_lib(&kit, "nvrtc", 12090);
  kit_refuses(&kit, KILN_COMPAT_RULE_DRIVER, OPEN, "unknown");
  assert_null(
      kiln_compat_report_refusal(kit.report, KILN_COMPAT_MODE_BEST_EFFORT));
  kit_driver(&kit, "none");
  kit_accepts(&kit);
}

static void case_24_branch_is_new_enough(void** state) {
  (void)state;
  kit_driver(&kit, "12.0,525.60.13");
  kit_lib(&kit, "nvrtc", 12090);
  kit_accepts(&kit);
}

static void case_25_branch_is_too_old(void** state) {
  (void)state;
  kit_driver(&kit, "12.0,520.30.01");
  kit_lib(&kit, "nvrtc", 12090);
  kit_refuses(&kit, KILN_COMPAT_RULE_DRIVER, NO, "branch 520 is below 525");
}

static void case_26_branch_unknown(void** state) {
  (void)state;
  kit_driver(&kit, "12.0");
  kit_lib(&kit, "nvrtc", 12090);
  kit_refuses(&kit, KILN_COMPAT_RULE_DRIVER, OPEN, "at least 525");
  assert_null(
      kiln_compat_report_refusal(kit.report, KILN_COMPAT_MODE_BEST_EFFORT));
}

// Case 27, a header that is not there: no fact, no finding.
static void case_27_nothing_to_check(void** state) {
  (void)state;
  kit_accepts(&kit);
  assert_int_equal(kiln_compat_report_finding_count(kit.report), 0);
  assert_int_equal(kiln_compat_report_verdict(kit.report),
                   KILN_COMPAT_VERDICT_COMPATIBLE);
}

static void case_28_repeated(void** state) {
  (void)state;
  kit_lib(&kit, "cublas", 12080);
  kit_lib(&kit, "cusolver", 12090);
  kit_lib(&kit, "cusolver", 12090);
  kit_lib(&kit, "cublas", 12080);
  kit_check(&kit);
  assert_int_equal(kiln_compat_report_finding_count(kit.report), 1);
}

// The type of the refusal is the rule. Kiln checks before it loads, so no
// sentence about a handle that stays is needed.
static void case_29_refusal_names_its_rule(void** state) {
  (void)state;
  kit_driver(&kit, "12.8");
  kit_lib(&kit, "nvrtc", 13000);
  kit_check(&kit);
  kiln_status_t status = kiln_compat_report_status(kit.report, 0);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INCOMPATIBLE);
  assert_non_null(strstr(kiln_status_message(status), "(rule driver)"));
  kiln_status_free(status);
  assert_string_equal(
      kiln_compat_rule_word(kiln_compat_report_refusal(kit.report, 0)->rule),
      "driver");
}

// ---- Process-wide ----

static void override_relaxes_the_driver_rule(void** state) {
  (void)state;
  kit_driver(&kit, "12.8");
  kit_lib(&kit, "nvrtc", 13000);
  kit.request.forward_compat = KILN_SWITCH_ON;
  kit_accepts(&kit);
}

static void override_relaxes_nothing_else(void** state) {
  (void)state;
  kit_driver(&kit, "12.8");
  kit_lib(&kit, "nvrtc", 13000);
  kit_add(&kit, KILN_COMPAT_KIND_HEADER, "nvrtc", 12090);
  kit.request.forward_compat = KILN_SWITCH_ON;
  kit_refuses(&kit, KILN_COMPAT_RULE_COMPANION, NO, "api_nvrtc");
}

static void driver_refusal_advertises_the_override(void** state) {
  (void)state;
  kit_driver(&kit, "12.8");
  kit_lib(&kit, "nvrtc", 13000);
  kit_check(&kit);
  const char* fix = kiln_compat_report_refusal(kit.report, 0)->fix;
  assert_non_null(strstr(fix,
                         "CUDA_PATHFINDER_DRIVER_COMPATIBILITY="
                         "assume_forward_compatibility"));
  assert_non_null(strstr(fix, "--forward-compat"));
  assert_non_null(strstr(fix, "waives this rule only"));
}

static void driver_library_is_neutral_in_strict(void** state) {
  (void)state;
  kit_driver(&kit, "unknown");
  kit_lib(&kit, "nvml", 0);
  kit_accepts(&kit);
}

static void off_checks_nothing(void** state) {
  (void)state;
  kit_lib(&kit, "cublas", 12080);
  kit_lib(&kit, "cusolver", 12090);
  kit.request.mode = KILN_COMPAT_MODE_OFF;
  kit_accepts(&kit);
  assert_int_equal(kiln_compat_report_finding_count(kit.report), 0);
  assert_int_equal(kiln_compat_report_verdict(kit.report),
                   KILN_COMPAT_VERDICT_UNKNOWN);
  // A report of `off` has nothing that another mode could refuse.
  assert_null(kiln_compat_report_refusal(kit.report, KILN_COMPAT_MODE_STRICT));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(case_1_component),
      CASE(case_2_independent),
      CASE(case_3_companions),
      CASE(case_4_ltoir_into_older),
      CASE(case_5_ltoir_into_newer),
      CASE(case_6_code_into_newer_major),
      CASE(case_7_nvvm_pipeline),
      CASE(case_8_artifact),
      CASE(case_9_older_driver_major),
      CASE(case_10_unknown_line),
      CASE(case_11_newer_minor),
      CASE(case_12_other),
      CASE(case_13_driver_library),
      CASE(case_14_driver_library_hides_nothing),
      CASE(case_15_pins),
      CASE(case_16_constraint),
      CASE(case_17_constraint_refuses),
      CASE(case_18_no_specifier),
      CASE(case_19_one_root),
      CASE(case_20_every_row_has_a_class),
      CASE(case_21_four_kinds),
      CASE(case_22_release_not_needed),
      CASE(case_23_no_answer),
      CASE(case_24_branch_is_new_enough),
      CASE(case_25_branch_is_too_old),
      CASE(case_26_branch_unknown),
      CASE(case_27_nothing_to_check),
      CASE(case_28_repeated),
      CASE(case_29_refusal_names_its_rule),
      CASE(override_relaxes_the_driver_rule),
      CASE(override_relaxes_nothing_else),
      CASE(driver_refusal_advertises_the_override),
      CASE(driver_library_is_neutral_in_strict),
      CASE(off_checks_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
