// SPDX-License-Identifier: Apache-2.0
//
// base: tests of what travels down from the runtime.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/host.h"
#include "base/thread.h"

static void the_making_process_is_at_home(void** state) {
  (void)state;
  kiln_host_t host = {.process_id = kilni_base_process_id()};
  assert_true(kiln_status_is_ok(kilni_base_host_check_fork(&host)));
}

static void another_process_is_refused(void** state) {
  (void)state;
  kiln_host_t host = {.process_id = kilni_base_process_id() + 1};
  kiln_status_t status = kilni_base_host_check_fork(&host);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_STATE);
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_making_process_is_at_home),
      cmocka_unit_test(another_process_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
