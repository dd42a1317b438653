// SPDX-License-Identifier: Apache-2.0
//
// base: tests of shared libraries opened at run time.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/dynlib.h"
#include "fault_run.h"

static kiln_status_t open_body(kiln_allocator_t allocator, void* user) {
  (void)user;
  kilni_base_dynlib_t* library = (kilni_base_dynlib_t*)&library;
  kiln_status_t status =
      kilni_base_dynlib_open(allocator, TEST_MODULE, &library);
  assert_int_equal(kiln_status_is_ok(status), library != NULL);
  if (!kiln_status_is_ok(status)) return status;

  int (*answer)(void) = NULL;
  void* symbol = kilni_base_dynlib_symbol(library, "kiln_test_answer");
  memcpy(&answer, &symbol, sizeof(answer));
  assert_non_null(symbol);
  assert_int_equal(answer(), 42);
  assert_null(kilni_base_dynlib_symbol(library, "kiln_test_question"));
  assert_string_equal(kilni_base_dynlib_path(library), TEST_MODULE);
  kilni_base_dynlib_close(library);
  return kiln_ok();
}

static void a_library_opens_and_answers(void** state) {
  (void)state;
  assert_int_equal(fault_run_allocations(open_body, NULL, 0), 2);
}

static void an_absent_library_is_not_found_with_the_reason(void** state) {
  (void)state;
  kilni_base_dynlib_t* library = (kilni_base_dynlib_t*)&library;
  kiln_status_t status = kilni_base_dynlib_open(
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
  kilni_base_dynlib_t* library = (kilni_base_dynlib_t*)&library;
  kiln_status_t status = kilni_base_dynlib_open(
      kiln_allocator_libc(), KILN_SOURCE_DIR "/LICENSE", &library);
  assert_null(library);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  kiln_status_free(status);
}

static void closing_nothing_is_accepted(void** state) {
  (void)state;
  kilni_base_dynlib_close(NULL);
}

// What a walk over the mapped objects saw. one-thread
typedef struct seen_t {
  const char* soname;  // of the object that is looked for
  char path[4096];
  uint32_t objects;
  bool program_first;
  bool program_needs_libc;
  uint32_t stop_after;
} seen_t;

static bool on_mapped(const kilni_base_dynlib_mapped_t* mapped, void* user) {
  seen_t* seen = user;
  if (seen->objects == 0) {
    seen->program_first = mapped->path[0] == 0 && mapped->soname[0] == 0;
    for (uint32_t i = 0; kilni_base_dynlib_mapped_need(mapped, i) != NULL;
         i++) {
      if (strcmp(kilni_base_dynlib_mapped_need(mapped, i), "libc.so.6") == 0) {
        seen->program_needs_libc = true;
      }
    }
  }
  seen->objects++;
  if (strcmp(mapped->soname, seen->soname) == 0) {
    snprintf(seen->path, sizeof(seen->path), "%s", mapped->path);
  }
  return seen->objects != seen->stop_after;
}

static void what_is_mapped_is_listed_with_what_it_needs(void** state) {
  (void)state;
  seen_t seen = {.soname = "libc.so.6"};
  kilni_base_dynlib_each_mapped(on_mapped, &seen);
  assert_true(seen.program_first);
  assert_true(seen.program_needs_libc);
  assert_true(seen.objects >= 3);
  assert_non_null(strstr(seen.path, "/libc.so.6"));

  seen_t one = {.soname = "libc.so.6", .stop_after = 1};
  kilni_base_dynlib_each_mapped(on_mapped, &one);
  assert_int_equal(one.objects, 1);
}

static void a_global_library_serves_those_that_follow(void** state) {
  (void)state;
  // The second module needs a symbol that only the first has, and was not
  // linked with it.
  kilni_base_dynlib_t* first = NULL;
  kilni_base_dynlib_t* second = NULL;
  assert_null(kilni_base_dynlib_open_with(kiln_allocator_libc(), TEST_MODULE, 0,
                                          &first));
  kiln_status_t status =
      kilni_base_dynlib_open(kiln_allocator_libc(), TEST_ASKER, &second);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  assert_non_null(strstr(kiln_status_message(status), "kiln_test_answer"));
  kiln_status_free(status);
  kilni_base_dynlib_close(first);

  assert_null(kilni_base_dynlib_open_with(kiln_allocator_libc(), TEST_MODULE,
                                          KILNI_DYNLIB_GLOBAL, &first));
  assert_non_null(kilni_base_dynlib_handle(first));
  assert_null(kilni_base_dynlib_open_with(kiln_allocator_libc(), TEST_ASKER,
                                          KILNI_DYNLIB_DEEPBIND, &second));
  kilni_base_dynlib_close(second);
  kilni_base_dynlib_close(first);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_library_opens_and_answers),
      cmocka_unit_test(an_absent_library_is_not_found_with_the_reason),
      cmocka_unit_test(a_file_that_is_no_library_is_refused),
      cmocka_unit_test(what_is_mapped_is_listed_with_what_it_needs),
      cmocka_unit_test(a_global_library_serves_those_that_follow),
      cmocka_unit_test(closing_nothing_is_accepted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
