// SPDX-License-Identifier: Apache-2.0
//
// compat: three variables say how strict a check is.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/compat.h"

static kiln_compat_policy_t parse(const char* kiln, const char* guard,
                                  const char* driver) {
  kiln_compat_policy_t policy;
  kiln_status_t status = kiln_compat_mode_parse(
      kiln, guard, driver, KILN_COMPAT_MODE_DEFAULT, &policy);
  if (!kiln_status_is_ok(status)) {
    print_error("%s\n", kiln_status_message(status));
  }
  assert_true(kiln_status_is_ok(status));
  return policy;
}

static void refused(const char* kiln, const char* guard, const char* driver,
                    const char* name) {
  kiln_compat_policy_t policy;
  kiln_status_t status = kiln_compat_mode_parse(
      kiln, guard, driver, KILN_COMPAT_MODE_STRICT, &policy);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  assert_non_null(strstr(kiln_status_message(status), name));
  assert_non_null(strstr(kiln_status_fix(status), name));
  kiln_status_free(status);
  assert_int_equal(policy.mode, KILN_COMPAT_MODE_STRICT);
  assert_false(policy.forward_compat);
}

static void unset_and_empty_are_the_fallback(void** state) {
  (void)state;
  kiln_compat_policy_t policy = parse(NULL, NULL, NULL);
  assert_int_equal(policy.mode, KILN_COMPAT_MODE_WARN);
  assert_null(policy.mode_from);
  assert_false(policy.forward_compat);
  policy = parse("", "", "");
  assert_int_equal(policy.mode, KILN_COMPAT_MODE_WARN);
  kiln_status_t status = kiln_compat_mode_parse(
      NULL, NULL, NULL, KILN_COMPAT_MODE_STRICT, &policy);
  assert_true(kiln_status_is_ok(status));
  assert_int_equal(policy.mode, KILN_COMPAT_MODE_STRICT);
}

static void every_word(void** state) {
  (void)state;
  assert_int_equal(parse("off", NULL, NULL).mode, KILN_COMPAT_MODE_OFF);
  assert_int_equal(parse("warn", NULL, NULL).mode, KILN_COMPAT_MODE_WARN);
  assert_int_equal(parse("best_effort", NULL, NULL).mode,
                   KILN_COMPAT_MODE_BEST_EFFORT);
  assert_int_equal(parse("best-effort", NULL, NULL).mode,
                   KILN_COMPAT_MODE_BEST_EFFORT);
  assert_int_equal(parse("strict", NULL, NULL).mode, KILN_COMPAT_MODE_STRICT);
  assert_int_equal(parse(NULL, "off", NULL).mode, KILN_COMPAT_MODE_OFF);
  assert_int_equal(parse(NULL, "best_effort", NULL).mode,
                   KILN_COMPAT_MODE_BEST_EFFORT);
  assert_int_equal(parse(NULL, "strict", NULL).mode, KILN_COMPAT_MODE_STRICT);
  assert_false(parse(NULL, NULL, "default").forward_compat);
  kiln_compat_policy_t policy =
      parse(NULL, NULL, "assume_forward_compatibility");
  assert_true(policy.forward_compat);
  assert_string_equal(policy.forward_from,
                      "CUDA_PATHFINDER_DRIVER_COMPATIBILITY");
  assert_int_equal(policy.mode, KILN_COMPAT_MODE_WARN);
}

static void ours_beats_theirs(void** state) {
  (void)state;
  kiln_compat_policy_t policy = parse("warn", "strict", NULL);
  assert_int_equal(policy.mode, KILN_COMPAT_MODE_WARN);
  assert_string_equal(policy.mode_from, "KILN_COMPAT");
  policy = parse(NULL, "strict", NULL);
  assert_string_equal(policy.mode_from,
                      "CUDA_PATHFINDER_COMPATIBILITY_GUARD_RAILS");
  policy =
      parse("strict,no_forward_compat", "off", "assume_forward_compatibility");
  assert_int_equal(policy.mode, KILN_COMPAT_MODE_STRICT);
  assert_false(policy.forward_compat);
  assert_string_equal(policy.forward_from, "KILN_COMPAT");
  policy = parse("strict,forward_compat", NULL, "default");
  assert_true(policy.forward_compat);
  // What it does not speak of is left to the others.
  policy = parse("strict", NULL, "assume_forward_compatibility");
  assert_true(policy.forward_compat);
  policy = parse("forward_compat", "strict", NULL);
  assert_int_equal(policy.mode, KILN_COMPAT_MODE_STRICT);
  assert_true(policy.forward_compat);
}

static void bad_values_are_errors_in_every_mode(void** state) {
  (void)state;
  static const char* const bad[] = {"on",
                                    "Strict",
                                    "strict ",
                                    "strict,",
                                    ",strict",
                                    "strict,off",
                                    "forward_compat,strict",
                                    ",",
                                    "strict,forward_compat,no_forward_compat",
                                    "1"};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    refused(bad[i], NULL, NULL, "KILN_COMPAT");
  }
  static const char guard[] = "CUDA_PATHFINDER_COMPATIBILITY_GUARD_RAILS";
  static const char driver[] = "CUDA_PATHFINDER_DRIVER_COMPATIBILITY";
  refused(NULL, "warn", NULL, guard);
  refused("off", "bad", NULL, guard);
  refused(NULL, "off", "bad", driver);
  refused("off,no_forward_compat", NULL, "yes", driver);
}

static void the_fix_lists_the_words(void** state) {
  (void)state;
  kiln_compat_policy_t policy;
  kiln_status_t status = kiln_compat_mode_parse(NULL, "x", NULL, 0, &policy);
  assert_non_null(
      strstr(kiln_status_fix(status), "off, best_effort or strict"));
  kiln_status_free(status);
  status = kiln_compat_mode_parse(NULL, NULL, "x", 0, &policy);
  assert_non_null(strstr(kiln_status_fix(status),
                         "default or assume_forward_compatibility"));
  kiln_status_free(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(unset_and_empty_are_the_fallback),
      cmocka_unit_test(every_word),
      cmocka_unit_test(ours_beats_theirs),
      cmocka_unit_test(bad_values_are_errors_in_every_mode),
      cmocka_unit_test(the_fix_lists_the_words),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
