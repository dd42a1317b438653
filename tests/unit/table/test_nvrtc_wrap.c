// SPDX-License-Identifier: Apache-2.0
//
// table: NVRTC's null provider and its wrappers, which are made from its rows
// as the driver's are.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "trace_lines.h"
#include "table/cuda_table.h"
#include "table/nvrtc_table.h"

static void null_knows_its_programs(void** state) {
  (void)state;
  kiln_nvrtc_table_t table;
  kilni_table_nvrtc_table_null(&table);
  assert_string_equal(table.provider, "null");
  for (unsigned row = 0; row < KILNI_NVRTC_ROW_COUNT; row++) {
    assert_true(kilni_table_nvrtc_has(&table, (kilni_nvrtc_row_id_t)row));
  }
  kiln_nvrtc_program_t program = NULL;
  assert_int_equal(
      table.nvrtcCreateProgram(&program, "", "a.cu", 0, NULL, NULL),
      KILN_NVRTC_SUCCESS);
  assert_non_null(program);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_PROGRAM), 1);
  assert_int_equal(table.nvrtcCompileProgram(program, 0, NULL),
                   KILN_NVRTC_SUCCESS);
  size_t bytes = 0;
  char text[128];
  assert_int_equal(table.nvrtcGetPTXSize(program, &bytes), KILN_NVRTC_SUCCESS);
  assert_in_range(bytes, 1, sizeof(text));
  assert_int_equal(table.nvrtcGetPTX(program, text), KILN_NVRTC_SUCCESS);
  assert_int_equal(strlen(text) + 1, bytes);
  kiln_nvrtc_program_t again = program;
  assert_int_equal(table.nvrtcDestroyProgram(&program), KILN_NVRTC_SUCCESS);
  assert_null(program);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_PROGRAM), 0);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 0);
  assert_int_equal(table.nvrtcDestroyProgram(&again),
                   KILN_NVRTC_ERROR_INVALID_PROGRAM);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 1);
}

static void trace_says_what_goes_in_and_out(void** state) {
  (void)state;
  static log_t log;
  memset(&log, 0, sizeof(log));
  kiln_log_sink_t sink = {collect, &log, KILN_LOG_TRACE, 0};
  kiln_nvrtc_table_t table;
  kilni_table_nvrtc_table_null(&table);
  kilni_table_nvrtc_mark(&table, KILNI_NVRTC_ROW_nvrtcSetPCHHeapSize, false);
  assert_true(
      kiln_status_is_ok(kilni_table_nvrtc_trace_install(&table, sink, &table)));
  assert_string_equal(table.provider, "trace(null)");
  int count = 0;
  assert_int_equal(table.nvrtcGetNumSupportedArchs(&count), 0);
  assert_string_equal(log.text,
                      "nvrtcGetNumSupportedArchs() = NVRTC_SUCCESS, count=1\n");
  log.text[0] = '\0';
  kiln_nvrtc_program_t program = (kiln_nvrtc_program_t)(uintptr_t)0x77;
  assert_int_equal(table.nvrtcDestroyProgram(&program),
                   KILN_NVRTC_ERROR_INVALID_PROGRAM);
  assert_string_equal(
      log.text,
      "nvrtcDestroyProgram(program=0x77) = NVRTC_ERROR_INVALID_PROGRAM\n");
  // An absent row stays absent, and is no call.
  log.text[0] = '\0';
  assert_false(
      kilni_table_nvrtc_has(&table, KILNI_NVRTC_ROW_nvrtcSetPCHHeapSize));
  kilni_table_nvrtc_trace_remove(&table);
}

static void fault_fails_the_nth_call(void** state) {
  (void)state;
  kiln_nvrtc_table_t table;
  kilni_table_nvrtc_table_null(&table);
  assert_true(
      kiln_status_is_ok(kilni_table_nvrtc_fault_install(&table, &table)));
  assert_string_equal(table.provider, "fault(null)");
  kilni_table_nvrtc_fault_arm(&table, 2, KILNI_FAULT_ONCE,
                              KILN_NVRTC_ERROR_INTERNAL_ERROR);
  kiln_nvrtc_program_t program = NULL;
  assert_int_equal(
      table.nvrtcCreateProgram(&program, "", "a.cu", 0, NULL, NULL),
      KILN_NVRTC_SUCCESS);
  // Asked while an error is made: not a call of the path that is tested.
  assert_string_equal(
      table.nvrtcGetErrorString(KILN_NVRTC_ERROR_INTERNAL_ERROR),
      "NVRTC_ERROR_INTERNAL_ERROR");
  // A failed destroy happens, and then reports.
  assert_int_equal(table.nvrtcDestroyProgram(&program),
                   KILN_NVRTC_ERROR_INTERNAL_ERROR);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_PROGRAM), 0);
  assert_string_equal(kilni_table_nvrtc_fault_hit(&table),
                      "nvrtcDestroyProgram");
  assert_int_equal(
      table.nvrtcCreateProgram(&program, "", "a.cu", 0, NULL, NULL),
      KILN_NVRTC_SUCCESS);
  assert_int_equal(kilni_table_nvrtc_fault_disarm(&table), 3);
  assert_int_equal(table.nvrtcDestroyProgram(&program), KILN_NVRTC_SUCCESS);
  kilni_table_nvrtc_fault_remove(&table);
}

static void places_are_counted_for_each_library(void** state) {
  (void)state;
  kiln_nvrtc_table_t null;
  kiln_nvrtc_table_t wrapped[KILNI_WRAP_SLOTS + 1];
  kiln_cuda_table_t cuda;
  kilni_table_nvrtc_table_null(&null);
  for (int i = 0; i < KILNI_WRAP_SLOTS; i++) {
    assert_true(
        kiln_status_is_ok(kilni_table_nvrtc_fault_install(&null, &wrapped[i])));
  }
  kiln_status_t status =
      kilni_table_nvrtc_fault_install(&null, &wrapped[KILNI_WRAP_SLOTS]);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_LIMIT_EXCEEDED);
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
  kilni_table_cuda_table_null(&cuda);
  assert_true(kiln_status_is_ok(kilni_table_cuda_fault_install(&cuda, &cuda)));
  kilni_table_cuda_fault_remove(&cuda);
  for (int i = 0; i < KILNI_WRAP_SLOTS; i++) {
    kilni_table_nvrtc_fault_remove(&wrapped[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(null_knows_its_programs, fresh),
      cmocka_unit_test_setup(trace_says_what_goes_in_and_out, fresh),
      cmocka_unit_test_setup(fault_fails_the_nth_call, fresh),
      cmocka_unit_test_setup(places_are_counted_for_each_library, fresh),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
