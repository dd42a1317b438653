// SPDX-License-Identifier: Apache-2.0
//
// base: tests of shared libraries opened at run time.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/dynlib.h"
#include "fault_run.h"

static kiln_status_t open_body(kiln_allocator_t allocator, void* user) {
  (void)user;
  kilni_dynlib_t* library = (kilni_dynlib_t*)&library;
  kiln_status_t status = kilni_dynlib_open(allocator, TEST_MODULE, &library);
  assert_int_equal(kiln_status_is_ok(status), library != NULL);
  if (!kiln_status_is_ok(status)) return status;

  int (*answer)(void) = NULL;
  void* symbol = kilni_dynlib_symbol(library, "kiln_test_answer");
  memcpy(&answer, &symbol, sizeof(answer));
  assert_non_null(symbol);
  assert_int_equal(answer(), 42);
  assert_null(kilni_dynlib_symbol(library, "kiln_test_question"));
  assert_string_equal(kilni_dynlib_path(library), TEST_MODULE);
  kilni_dynlib_close(library);
  return NULL;
}

static void a_library_opens_and_answers(void** state) {
  (void)state;
  assert_int_equal(fault_run_allocations(open_body, NULL, 0), 2);
}

static void an_absent_library_is_not_found_with_the_reason(void** state) {
  (void)state;
  kilni_dynlib_t* library = (kilni_dynlib_t*)&library;
  kiln_status_t status = kilni_dynlib_open(
      kiln_allocator_libc(), "libkiln-is-not-there.so.9", &library);
  assert_null(library);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  assert_non_null(
      strstr(kiln_status_message(status), "libkiln-is-not-there.so.9"));
  assert_non_null(strstr(kiln_status_message(status), "No such file"));
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
}

static void a_file_that_is_no_library_is_refused(void** state) {
  (void)state;
  kilni_dynlib_t* library = (kilni_dynlib_t*)&library;
  kiln_status_t status = kilni_dynlib_open(
      kiln_allocator_libc(), KILN_SOURCE_DIR "/LICENSE", &library);
  assert_null(library);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  kiln_status_free(status);
}

static void closing_nothing_is_accepted(void** state) {
  (void)state;
  kilni_dynlib_close(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_library_opens_and_answers),
      cmocka_unit_test(an_absent_library_is_not_found_with_the_reason),
      cmocka_unit_test(a_file_that_is_no_library_is_refused),
      cmocka_unit_test(closing_nothing_is_accepted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
