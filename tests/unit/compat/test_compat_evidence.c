// SPDX-License-Identifier: Apache-2.0
//
// compat: which line follows from which evidence.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/compat.h"

#define SAYS(source, line) {KILN_COMPAT_SOURCE_##source, line, NULL}
#define COUNT(array)       (uint32_t)(sizeof(array) / sizeof((array)[0]))

static void nothing_says_nothing(void** state) {
  (void)state;
  kiln_compat_conclusion_t out = kiln_compat_line_conclude(NULL, 0);
  assert_int_equal(out.line, 0);
  assert_int_equal(out.strongest, UINT32_MAX);
  assert_false(out.sufficient);
  kiln_compat_evidence_t empty[] = {SAYS(SYMBOL, 0), SAYS(RANGE_PIN, 13000)};
  out = kiln_compat_line_conclude(empty, 2);
  assert_int_equal(out.line, 0);
  assert_int_equal(out.against, UINT32_MAX);
}

// The libnvJitLink of 13.5 in an environment of 13.0: its symbols, its text
// and its wheel say 13.5, the toolkit's range pin is satisfied.
static void mixed_environment(void** state) {
  (void)state;
  kiln_compat_evidence_t evidence[] = {
      SAYS(RANGE_PIN, 13000),
      kiln_compat_evidence_of_wheel("nvidia-nvjitlink", "13.5.37"),
      SAYS(TEXT, 13050),
      SAYS(SYMBOL, 13050),
  };
  kiln_compat_conclusion_t out =
      kiln_compat_line_conclude(evidence, COUNT(evidence));
  assert_int_equal(out.line, 13050);
  assert_int_equal(out.source, KILN_COMPAT_SOURCE_SYMBOL);
  assert_int_equal(out.against, UINT32_MAX);
  assert_true(out.sufficient);
}

static void stronger_wins_and_the_rest_is_named(void** state) {
  (void)state;
  // In the order of their strength, each saying a line of its own.
  kiln_compat_evidence_t evidence[] = {
      SAYS(VERSION_FILE, 12060), SAYS(HEADER, 12070), SAYS(EXACT_PIN, 12080),
      SAYS(WHEEL, 12090),        SAYS(CALL, 13000),   SAYS(SIBLING, 13010),
      SAYS(TEXT, 13020),
  };
  for (uint32_t count = 1; count <= COUNT(evidence); count++) {
    kiln_compat_conclusion_t out = kiln_compat_line_conclude(evidence, count);
    assert_int_equal(out.line, evidence[count - 1].line);
    assert_int_equal(out.strongest, count - 1);
    assert_int_equal(out.against, count > 1 ? count - 2 : UINT32_MAX);
    assert_false(out.sufficient);
  }
  // Alone, a wheel and what is stronger suffice.
  for (uint32_t i = 0; i < COUNT(evidence); i++) {
    kiln_compat_conclusion_t out = kiln_compat_line_conclude(&evidence[i], 1);
    assert_int_equal(out.line, evidence[i].line);
    assert_int_equal(out.sufficient, i >= 3);
  }
}

static void equals_that_disagree_leave_it_open(void** state) {
  (void)state;
  kiln_compat_evidence_t evidence[] = {SAYS(WHEEL, 13000), SAYS(SYMBOL, 13000),
                                       SAYS(TEXT, 13050)};
  kiln_compat_conclusion_t out = kiln_compat_line_conclude(evidence, 3);
  assert_int_equal(out.line, 0);
  assert_int_equal(out.strongest, 1);
  assert_int_equal(out.against, 2);
  assert_false(out.sufficient);
}

static void order_changes_nothing(void** state) {
  (void)state;
  kiln_compat_evidence_t a[] = {SAYS(HEADER, 13000), SAYS(WHEEL, 13050),
                                SAYS(VERSION_FILE, 12090)};
  uint8_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                          {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (int i = 0; i < 6; i++) {
    kiln_compat_evidence_t b[3];
    for (int j = 0; j < 3; j++) b[j] = a[orders[i][j]];
    kiln_compat_conclusion_t out = kiln_compat_line_conclude(b, 3);
    assert_int_equal(out.line, 13050);
    assert_int_equal(b[out.against].line, 13000);
  }
}

static void package(const char* name, const char* version, const char* source,
                    const char* toolkit, uint32_t line) {
  kiln_compat_evidence_t out =
      kiln_compat_evidence_of_package(name, version, source, toolkit);
  assert_int_equal(out.source, KILN_COMPAT_SOURCE_PACKAGE);
  if (name != NULL && version != NULL && out.line != line) {
    print_error("%s %s\n", name, version);
  }
  assert_int_equal(out.line, line);
}

static void packages(void** state) {
  (void)state;
  // NVIDIA's own have the line at the end of their names.
  package("cuda-nvrtc-12-9", "12.9.86-1", "cuda-nvrtc", "", 12090);
  package("libcublas-13-0", "13.1.0.3-1", NULL, NULL, 13000);
  package("libcublas-dev-12-9", "12.9.1.4-1", "libcublas", "", 12090);
  package("libcudnn9-cuda-12", "9.1.0-1", NULL, NULL, 0);
  // Debian's have the toolkit's release in their version.
  package("libcudart12", "12.4.127~12.4.1-2", "nvidia-cuda-toolkit", "", 12040);
  package("libcublas11", "11.11.3.6~11.8.0-5~deb12u1", "nvidia-cuda-toolkit",
          NULL, 11080);
  package("libcurand10", "11.1.1+~10.3.0.86~11.8.0-5~deb12u1",
          "nvidia-cuda-toolkit", NULL, 11080);
  package("nvidia-cuda-toolkit-gcc", "11.8.0-5", "nvidia-cuda-toolkit", NULL,
          11080);
  package("libcublas12", "12.0.1.189~12.0.1-4build4", "nvidia-cuda-toolkit",
          NULL, 12000);
  package("libcublas11", "11-5", "nvidia-cuda-toolkit", NULL, 0);
  package("libcublas11", "11.11.3.6~11.8.0-5", "somebody-elses", NULL, 0);
  // conda's ask for one cuda-version.
  package("libcublas", "12.9.1.4", "", ">=12.9,<12.10.0a0", 12090);
  package("libcublas", "12.9.1.4", "", "12.9.*", 12090);
  package("libcublas", "12.9.1.4", "", "==13.0", 13000);
  package("libcublas", "12.9.1.4", "", ">=12,<13.0a0", 0);
  package("libcublas", "12.9.1.4", "", ">=12.9", 0);
  package("libcublas", "12.9.1.4", "", "12.9.* h1_0", 0);
  package("libcublas", "12.9.1.4", "", "", 0);
  // Its number is one where it has the toolkit's.
  package("cuda-nvrtc", "12.9.86", "", "", 12090);
  package("cuda-nvcc-tools", "12.9.86", "", ">=12,<13.0a0", 12090);
  package("cuda-cudart_linux-64", "12.9.79", "", "", 12090);
  package("cuda-nvrtcx", "12.9.79", "", "", 0);
  package("cuda-nvrtc", "x", "", "", 0);
  package("cuda-nvrtc", "12", "", "", 0);
  package(NULL, "12.9.79", "", "", 0);
  package("cuda-nvrtc", NULL, "", "", 0);
}

static void wheel(const char* name, const char* version, uint32_t line) {
  kiln_compat_evidence_t out = kiln_compat_evidence_of_wheel(name, version);
  assert_int_equal(out.source, KILN_COMPAT_SOURCE_WHEEL);
  if (name != NULL && version != NULL && out.line != line) {
    print_error("%s %s\n", name, version);
  }
  assert_int_equal(out.line, line);
}

static void wheels(void** state) {
  (void)state;
  // The number is the line, also of one that no toolkit pins.
  wheel("nvidia-cuda-nvrtc", "13.0.88", 13000);
  wheel("nvidia-cuda-nvrtc", "13.9.1", 13090);
  wheel("nvidia-cuda-nvrtc-cu12", "12.9.86", 12090);
  wheel("Nvidia_CUDA.NVRTC", "13.0.88", 13000);
  wheel("nvidia-nvjitlink-cu12", "12.8.93", 12080);
  // It is not, and the table of pins knows it.
  wheel("nvidia-cublas", "13.1.0.3", 13000);
  wheel("nvidia-cublas", "13.4.0.1", 13020);
  wheel("nvidia-cufft", "12.0.0.61", 13000);
  wheel("nvidia-cufft-cu12", "11.4.1.4", 12090);
  wheel("nvidia-cuda-cccl", "13.3.4.3.1", 13040);
  wheel("nvidia-cuda-cccl", "13.0.85", 13000);
  // Neither.
  wheel("nvidia-cublas", "99.1.2.3", 0);
  wheel("nvidia-cuda-cccl", "13.3.5.0.6", 0);
  wheel("nvidia-nccl-cu13", "2.28.9", 0);
  wheel("numpy", "13.0.1", 0);
  wheel("nvidia-cuda-nvrtc", "x", 0);
  wheel("nvidia-cuda-nvrtc", "13", 0);
  wheel(NULL, "13.0.88", 0);
  wheel("nvidia-cuda-nvrtc", NULL, 0);
  wheel("nvidia-cuda-nvrtc-extra", "13.0.88", 0);
}

static void pin(const char* toolkit, const char* specifier, uint32_t source,
                uint32_t line) {
  kiln_compat_evidence_t out = kiln_compat_evidence_of_pin(
      toolkit, "nvidia_nvjitlink", specifier, "nvidia-nvjitlink", "13.5.37");
  assert_int_equal(out.source, source);
  assert_int_equal(out.line, line);
}

static void pins(void** state) {
  (void)state;
  pin("13.5.0", "==13.5.37.*", KILN_COMPAT_SOURCE_EXACT_PIN, 13050);
  pin("13.5.0", "(==13.5.37)", KILN_COMPAT_SOURCE_EXACT_PIN, 13050);
  pin("13.5.0.0", ">=13,==13.5.*", KILN_COMPAT_SOURCE_EXACT_PIN, 13050);
  pin("13.0.3.0", "<14,>=13.0.88", KILN_COMPAT_SOURCE_RANGE_PIN, 13000);
  pin("13.0.2", "==13.0.88.*", KILN_COMPAT_SOURCE_RANGE_PIN, 0);
  pin("13.0.2", "", KILN_COMPAT_SOURCE_RANGE_PIN, 0);
  pin("13.0.2", "nonsense", KILN_COMPAT_SOURCE_RANGE_PIN, 0);
  pin("x", "==13.5.37", KILN_COMPAT_SOURCE_RANGE_PIN, 0);
  kiln_compat_evidence_t out =
      kiln_compat_evidence_of_pin("13.0.2", "nvidia-cuda-nvrtc", "==13.0.88",
                                  "nvidia-nvjitlink", "13.0.88");
  assert_int_equal(out.line, 0);
}

static void words(void** state) {
  (void)state;
  assert_string_equal(kiln_compat_source_word(KILN_COMPAT_SOURCE_SYMBOL),
                      "symbol");
  assert_string_equal(kiln_compat_source_word(0), "?");
  assert_int_equal(kiln_compat_source_confidence(KILN_COMPAT_SOURCE_RANGE_PIN),
                   0);
  assert_int_equal(kiln_compat_source_confidence(99), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_says_nothing),
      cmocka_unit_test(mixed_environment),
      cmocka_unit_test(stronger_wins_and_the_rest_is_named),
      cmocka_unit_test(equals_that_disagree_leave_it_open),
      cmocka_unit_test(order_changes_nothing),
      cmocka_unit_test(wheels),
      cmocka_unit_test(packages),
      cmocka_unit_test(pins),
      cmocka_unit_test(words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
