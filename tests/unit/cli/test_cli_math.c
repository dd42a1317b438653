// SPDX-License-Identifier: Apache-2.0
//
// cli: tests: what the command opens libm for is what libm gives.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/cli_math.h"

static const double kNumbers[] = {
    0.0,    -0.0,   0.5,    -0.5,     1.5,  2.5,      -2.5,      1e300,
    -1e300, 0x1p52, 0x1p-3, 1048577., 3e38, INFINITY, -INFINITY, NAN};

enum { COUNT = sizeof(kNumbers) / sizeof(kNumbers[0]) };

// A NaN is as good as another.
static void same(double got, double want) {
  if (isnan(want)) {
    assert_true(isnan(got));
  } else {
    assert_memory_equal(&got, &want, sizeof(got));
  }
}

static void test_one_argument(void** state) {
  (void)state;
  for (int i = 0; i < COUNT; i++) {
    volatile double x = kNumbers[i];
    volatile float y = (float)x;
    same(kilni_cli_math_ceil(x), ceil(x));
    same(kilni_cli_math_cos(x), cos(x));
    same(kilni_cli_math_floor(x), floor(x));
    same(kilni_cli_math_rint(x), rint(x));
    same(kilni_cli_math_sin(x), sin(x));
    same(kilni_cli_math_trunc(x), trunc(x));
    same(kilni_cli_math_ceilf(y), ceilf(y));
    same(kilni_cli_math_floorf(y), floorf(y));
    same(kilni_cli_math_rintf(y), rintf(y));
    same(kilni_cli_math_truncf(y), truncf(y));
  }
}

static void test_more_arguments(void** state) {
  (void)state;
  for (int i = 0; i < COUNT; i++) {
    for (int j = 0; j < COUNT; j++) {
      volatile double x = kNumbers[i], y = kNumbers[j], z = 0x1p-60;
      volatile float a = (float)x, b = (float)y, c = 0x1p-30f;
      same(kilni_cli_math_pow(x, y), pow(x, y));
      same(kilni_cli_math_fma(x, y, z), fma(x, y, z));
      same(kilni_cli_math_fmaf(a, b, c), fmaf(a, b, c));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_argument),
      cmocka_unit_test(test_more_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
