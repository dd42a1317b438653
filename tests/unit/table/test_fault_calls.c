// SPDX-License-Identifier: Apache-2.0
//
// table: tests of running a body over every driver call that may fail.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fault_calls.h"
#include "base/status_make.h"

// What a body under test does wrong.
typedef enum flaw_t { NO_FLAW, LEAKS, SWALLOWS, ENDS_TWICE } flaw_t;

static kiln_status_t body(const kiln_cuda_table_t* table, void* user) {
  const flaw_t flaw = *(const flaw_t*)user;
  kiln_cu_stream_t stream = NULL;
  kiln_cu_event_t event = NULL;
  kiln_status_t status = KILNI_CUDA_STATUS(
      table, table->cuStreamCreate(&stream, 0), "cuStreamCreate");
  if (flaw == SWALLOWS && !kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(status);
  status = KILNI_CUDA_STATUS(table, table->cuEventCreate(&event, 0),
                             "cuEventCreate");
  if (!kiln_status_is_ok(status)) {
    if (flaw == LEAKS) return status;
  } else {
    status = KILNI_CUDA_STATUS(table, table->cuEventDestroy(event),
                               "cuEventDestroy");
    if (flaw == ENDS_TWICE && !kiln_status_is_ok(status)) {
      (void)table->cuEventDestroy(event);
    }
  }
  return kilni_base_status_join(
      status, KILNI_CUDA_STATUS(table, table->cuStreamDestroy(stream),
                                "cuStreamDestroy"));
}

static kiln_status_t bound_body(void* user) {
  void** both = user;
  return body(both[0], both[1]);
}

static const char* problem_of(flaw_t flaw, char* text, size_t size) {
  fault_calls_t calls;
  fault_calls_init(&calls, NULL, KILN_CU_ERROR_LAUNCH_FAILED);
  const fault_points_t points = fault_calls_points(&calls);
  void* both[] = {&calls.table, &flaw};
  uint64_t count = 0;
  const char* problem =
      fault_run_problem(&points, bound_body, both, 0, text, size, &count);
  fault_calls_deinit(&calls);
  return problem;
}

static void a_body_that_cleans_up_passes(void** state) {
  (void)state;
  flaw_t flaw = NO_FLAW;
  assert_int_equal(fault_run_calls(body, &flaw, KILN_CU_ERROR_OUT_OF_MEMORY, 0),
                   4);
}

static void a_leak_is_found(void** state) {
  (void)state;
  char text[1024];
  const char* problem = problem_of(LEAKS, text, sizeof(text));
  assert_non_null(problem);
  assert_non_null(strstr(problem, "1 handles were not destroyed"));
  assert_non_null(strstr(problem, "cuEventCreate"));
}

static void a_swallowed_error_is_found(void** state) {
  (void)state;
  char text[1024];
  assert_non_null(problem_of(SWALLOWS, text, sizeof(text)));
}

// A failed destroy has destroyed: trying again is a double free.
static void a_second_destroy_is_found(void** state) {
  (void)state;
  char text[1024];
  const char* problem = problem_of(ENDS_TWICE, text, sizeof(text));
  assert_non_null(problem);
  assert_non_null(strstr(problem, "1 destroys had no handle"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_body_that_cleans_up_passes),
      cmocka_unit_test(a_leak_is_found),
      cmocka_unit_test(a_swallowed_error_is_found),
      cmocka_unit_test(a_second_destroy_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
