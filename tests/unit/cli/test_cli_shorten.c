// SPDX-License-Identifier: Apache-2.0
//
// cli: tests of private paths in a report.
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/doctor_report.h"

// What `text` reads as to others, for a user whose folder is `home`.
static void expect(const char* text, const char* home, const char* wanted) {
  char* got = NULL;
  size_t size = 0;
  FILE* out = open_memstream(&got, &size);
  assert_non_null(out);
  kilni_cli_shorten(out, text, strlen(text), home);
  assert_int_equal(fclose(out), 0);
  assert_string_equal(got, wanted);
  free(got);
}

static void the_home_is_a_tilde(void** state) {
  (void)state;
  expect("/home/ada/x and /home/adam", "/home/ada", "~/x and /home/adam");
  expect("/home/ada/x", "/home/ada//", "~/x");
  expect("/srv/ada/x", "/home/ada", "/srv/USER/x");
  expect("/srv/root/x", "/root", "/srv/root/x");
}

// A service may run without HOME. Under the address sanitizer this also sees
// that nothing in front of a text is read.
static void without_a_home_all_stays(void** state) {
  (void)state;
  expect("/home/ada/x", NULL, "/home/ada/x");
  expect("/home/ada/x", "", "/home/ada/x");
  expect("/home/ada/x", "/", "/home/ada/x");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_home_is_a_tilde),
      cmocka_unit_test(without_a_home_all_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
