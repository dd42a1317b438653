// SPDX-License-Identifier: Apache-2.0
//
// table: the wrappers of NVML over its null provider, and its rows. What the
// null provider itself promises is a contract (tests/contract/contract_nvml.c).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "trace_lines.h"
#include "table/cuda_table.h"
#include "table/nvml_table.h"

static void rows_are_sound(void** state) {
  (void)state;
  for (unsigned i = 0; i < KILNI_NVML_ROW_COUNT; i++) {
    const kilni_table_row_t* row = kilni_table_nvml_row((kilni_nvml_row_id_t)i);
    assert_int_equal(strncmp(row->name, "nvml", 4), 0);
    assert_int_equal(strncmp(row->symbol, row->name, strlen(row->name)), 0);
    assert_in_range(row->version, 11010, 14000);
    assert_int_equal(row->feature[0] != '\0', row->need == KILNI_NEED_OPTIONAL);
    assert_int_equal(row->handle == KILNI_HANDLE_SESSION,
                     row->effect != KILNI_EFFECT_QUERY);
    assert_int_not_equal(row->effect, KILNI_EFFECT_ACT);  // nothing is changed
    for (unsigned j = 0; j < i; j++) {
      assert_string_not_equal(
          kilni_table_nvml_row((kilni_nvml_row_id_t)j)->symbol, row->symbol);
    }
  }
}

static void trace_says_what_goes_in_and_out(void** state) {
  (void)state;
  static log_t log;
  memset(&log, 0, sizeof(log));
  kiln_log_sink_t sink = {collect, &log, KILN_LOG_TRACE, 0};
  kiln_nvml_table_t table;
  kilni_table_nvml_table_null(&table);
  kilni_table_nvml_mark(&table, KILNI_NVML_ROW_nvmlDeviceGetFanSpeed, false);
  assert_null(kilni_table_nvml_trace_install(&table, sink, &table));
  assert_string_equal(table.provider, "trace(null)");
  assert_false(
      kilni_table_nvml_has(&table, KILNI_NVML_ROW_nvmlDeviceGetFanSpeed));
  kiln_nvml_device_t device = NULL;
  kiln_nvml_pci_t pci;
  kiln_nvml_memory_v2_t memory = {.version = KILN_NVML_MEMORY_V2};
  char text[KILN_NVML_VERSION_BYTES];
  unsigned int count = 4;
  assert_int_equal(table.nvmlDeviceGetCount(&count),
                   KILN_NVML_ERROR_UNINITIALIZED);
  assert_int_equal(table.nvmlInit(), 0);
  assert_int_equal(table.nvmlSystemGetDriverVersion(text, sizeof(text)), 0);
  assert_int_equal(table.nvmlDeviceGetHandleByIndex(0, &device), 0);
  assert_int_equal(table.nvmlDeviceGetPciInfo(device, &pci), 0);
  assert_int_equal(table.nvmlDeviceGetMemoryInfo_v2(device, &memory), 0);
  assert_int_equal(
      table.nvmlDeviceGetComputeRunningProcesses(device, &count, NULL), 0);
  assert_int_equal(table.nvmlShutdown(), 0);
  assert_string_equal(
      log.text,
      "nvmlDeviceGetCount() = NVML_ERROR_UNINITIALIZED\n"
      "nvmlInit() = NVML_SUCCESS\n"
      "nvmlSystemGetDriverVersion(space=80) = NVML_SUCCESS, "
      "text=\"580.65.06\"\n"
      "nvmlDeviceGetHandleByIndex(index=0) = NVML_SUCCESS, device=0x1000\n"
      "nvmlDeviceGetPciInfo(device=0x1000) = NVML_SUCCESS, "
      "address=\"00000000:01:00.0\"\n"
      "nvmlDeviceGetMemoryInfo_v2(device=0x1000) = NVML_SUCCESS, "
      "total=1073741824, reserved=0, used=0\n"
      "nvmlDeviceGetComputeRunningProcesses(device=0x1000, processes=0x0) = "
      "NVML_SUCCESS, count=0\n"
      "nvmlShutdown() = NVML_SUCCESS\n");
  kilni_table_nvml_trace_remove(&table);
}

static void fault_fails_the_nth_call(void** state) {
  (void)state;
  kiln_nvml_table_t table;
  kilni_table_nvml_table_null(&table);
  assert_null(kilni_table_nvml_fault_install(&table, &table));
  assert_string_equal(table.provider, "fault(null)");
  kilni_table_nvml_fault_arm(&table, 2, KILNI_FAULT_ONCE,
                             KILN_NVML_ERROR_GPU_IS_LOST);
  assert_int_equal(table.nvmlInit(), KILN_NVML_SUCCESS);
  assert_non_null(table.nvmlErrorString(KILN_NVML_ERROR_UNKNOWN));
  // A failed destroy happens, and then reports.
  assert_int_equal(table.nvmlShutdown(), KILN_NVML_ERROR_GPU_IS_LOST);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_SESSION), 0);
  assert_string_equal(kilni_table_nvml_fault_hit(&table), "nvmlShutdown");
  assert_int_equal(kilni_table_nvml_fault_disarm(&table), 2);
  // A failed create does not.
  kilni_table_nvml_fault_arm(&table, 1, KILNI_FAULT_FROM,
                             KILN_NVML_ERROR_DRIVER_NOT_LOADED);
  assert_int_equal(table.nvmlInit(), KILN_NVML_ERROR_DRIVER_NOT_LOADED);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_SESSION), 0);
  assert_int_equal(kilni_table_nvml_fault_disarm(&table), 1);
  kilni_table_nvml_fault_remove(&table);
}

static void places_are_counted(void** state) {
  (void)state;
  kiln_log_sink_t sink = {collect, NULL, 0, 0};
  kiln_nvml_table_t null;
  kiln_nvml_table_t wrapped[KILNI_WRAP_SLOTS];
  kiln_nvml_table_t more;
  kilni_table_nvml_table_null(&null);
  for (int i = 0; i < KILNI_WRAP_SLOTS; i++) {
    assert_null(kilni_table_nvml_trace_install(&null, sink, &wrapped[i]));
  }
  kiln_status_t status = kilni_table_nvml_trace_install(&null, sink, &more);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_LIMIT_EXCEEDED);
  kiln_status_free(status);
  for (int i = 0; i < KILNI_WRAP_SLOTS; i++) {
    kilni_table_nvml_trace_remove(&wrapped[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_sound),
      cmocka_unit_test_setup(trace_says_what_goes_in_and_out, fresh),
      cmocka_unit_test_setup(fault_fails_the_nth_call, fresh),
      cmocka_unit_test_setup(places_are_counted, fresh),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
