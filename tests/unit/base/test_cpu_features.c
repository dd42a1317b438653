// SPDX-License-Identifier: Apache-2.0
//
// base: tests: the CPU's features, beside what the compiler's own check says.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// After the above, which it needs.
#include <cmocka.h>

#include "base/cpu_features.h"

static void levels_are_nested(void** state) {
  (void)state;
  uint32_t features = kilni_base_cpu_features();
  assert_int_equal(
      features &
          ~(uint32_t)(KILNI_CPU_V2 | KILNI_CPU_V3 | KILNI_CPU_V4 |
                      KILNI_CPU_INTEL | KILNI_CPU_AVX512ER | KILNI_CPU_WHOLE16),
      0);
  if (features & KILNI_CPU_V4) assert_true(features & KILNI_CPU_V3);
  if (features & KILNI_CPU_V3) assert_true(features & KILNI_CPU_V2);
}

static void agrees_with_the_compiler(void** state) {
  (void)state;
#if defined(__x86_64__)
  uint32_t features = kilni_base_cpu_features();
  bool v2 =
      __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  bool v3 = v2 && __builtin_cpu_supports("avx2") &&
            __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
  bool v4 = v3 && __builtin_cpu_supports("avx512f") &&
            __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512cd") &&
            __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl");
  assert_int_equal((features & KILNI_CPU_V2) != 0, v2);
  assert_int_equal((features & KILNI_CPU_V3) != 0, v3);
  assert_int_equal((features & KILNI_CPU_V4) != 0, v4);
  bool intel = v2 && __builtin_cpu_is("intel");
  assert_int_equal((features & KILNI_CPU_INTEL) != 0, intel);
  bool says = __builtin_cpu_is("intel") || __builtin_cpu_is("amd");
  if (v2 && says && __builtin_cpu_supports("avx")) {
    assert_true(features & KILNI_CPU_WHOLE16);
  }
#else
  assert_int_equal(kilni_base_cpu_features() & ~(uint32_t)KILNI_CPU_WHOLE16, 0);
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(levels_are_nested),
      cmocka_unit_test(agrees_with_the_compiler),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
