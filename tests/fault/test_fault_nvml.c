// SPDX-License-Identifier: Apache-2.0
//
// fault: what is asked of NVML: every call fails in turn. No session stays
// open, and an answer is whole or none.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fault_run.h"
#include "table/cuda_table.h"
#include "table/nvml_table.h"

// The wrapped table and what a failed call gives. one-thread
typedef struct calls_t {
  kiln_nvml_table_t table;
  kiln_nvml_result_t result;
} calls_t;

static void arm(void* user, uint64_t nth, bool from_on) {
  calls_t* calls = user;
  kilni_table_nvml_fault_arm(&calls->table, nth,
                             from_on ? KILNI_FAULT_FROM : KILNI_FAULT_ONCE,
                             calls->result);
}

static uint64_t disarm(void* user) {
  calls_t* calls = user;
  return kilni_table_nvml_fault_disarm(&calls->table);
}

static const char* problem(void* user) {
  (void)user;
  if (kilni_table_cuda_null_bad_destroys() != 0) {
    return "a session was ended twice";
  }
  if (kilni_table_cuda_null_live(KILNI_HANDLE_NONE) != 0) {
    return "a session was left open";
  }
  return NULL;
}

static kiln_status_t release_body(void* user) {
  calls_t* calls = user;
  char text[64] = "untouched";
  bool told = kilni_table_nvml_release_read(&calls->table, sizeof(text), text);
  assert_string_equal(text, told ? "580.65.06" : "");
  return kiln_ok();
}

static void test_release(void** state) {
  (void)state;
  static const kiln_nvml_result_t results[] = {
      KILN_NVML_ERROR_UNKNOWN, KILN_NVML_ERROR_GPU_IS_LOST,
      KILN_NVML_ERROR_LIB_RM_VERSION_MISMATCH, KILN_NVML_ERROR_MEMORY};
  calls_t calls;
  kilni_table_cuda_null_reset();
  kilni_table_nvml_table_null(&calls.table);
  assert_null(kilni_table_nvml_fault_install(&calls.table, &calls.table));
  for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
    calls.result = results[i];
    fault_points_t points = {"call into NVML", arm, disarm, problem, &calls};
    assert_int_equal(
        fault_run(&points, release_body, &calls, FAULT_RUN_MAY_PASS), 3);
  }
  kilni_table_nvml_fault_remove(&calls.table);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_release),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
