// SPDX-License-Identifier: Apache-2.0
//
// cli: what many measurements say.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/bench_samples.h"

static kilni_cli_samples_t list_of(size_t count, double first, double step) {
  kilni_cli_samples_t samples;
  memset(&samples, 0, sizeof(samples));
  for (size_t i = 0; i < count; i++) {
    // Not in order.
    size_t at = i % 2 == 0 ? i / 2 : count - 1 - i / 2;
    samples.values[at] = first + step * (double)i;
  }
  samples.count = count;
  return samples;
}

static void test_sum(void** state) {
  (void)state;
  kilni_cli_summary_t s;
  kilni_cli_samples_t samples = list_of(0, 0, 0);
  kilni_cli_samples_sum(&samples, &s);
  assert_true(s.median == 0 && s.most == 0);
  samples = list_of(1, 7, 0);
  kilni_cli_samples_sum(&samples, &s);
  assert_true(s.median == 7 && s.least == 7 && s.most == 7);
  assert_true(s.low == 7 && s.high == 7);
  assert_true(s.median_low == 7 && s.median_high == 7);
  samples = list_of(100, 1, 1);
  kilni_cli_samples_sum(&samples, &s);
  assert_true(s.median == 50.5 && s.least == 1 && s.most == 100);
  assert_true(s.low == 6 && s.high == 95);
  // Ranks 50 -+ 11 of 100 hold the median 19 times of 20.
  assert_true(s.median_low == 40 && s.median_high == 62);
}

static void test_steady(void** state) {
  (void)state;
  kilni_cli_samples_t samples = list_of(9, 100, 0);
  assert_false(kilni_cli_samples_steady(&samples, 0.01));
  samples = list_of(10, 100, 0);
  assert_true(kilni_cli_samples_steady(&samples, 0));
  samples = list_of(100, 1, 1);
  assert_false(kilni_cli_samples_steady(&samples, 0.1));
  assert_true(kilni_cli_samples_steady(&samples, 0.3));
}

static void test_ratio(void** state) {
  (void)state;
  kilni_cli_samples_t a = list_of(5, 10, 10);
  kilni_cli_samples_t b = a;
  for (size_t i = 0; i < b.count; i++) b.values[i] /= 2;
  assert_true(kilni_cli_samples_ratio(&a, &b) == 2);
  // A pair with nothing in it is none.
  b.values[0] = 0;
  assert_true(kilni_cli_samples_ratio(&a, &b) == 2);
  b.count = 0;
  assert_true(kilni_cli_samples_ratio(&a, &b) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sum),
      cmocka_unit_test(test_steady),
      cmocka_unit_test(test_ratio),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
