// SPDX-License-Identifier: Apache-2.0
//
// table: tests of the fault wrapper.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "table/cuda_table.h"

static kiln_cuda_table_t table;

static int install(void** state) {
  (void)state;
  kiln_cuda_table_t null;
  kilni_table_cuda_null_reset();
  kilni_table_cuda_table_null(&null);
  return kiln_status_is_ok(kilni_table_cuda_fault_install(&null, &table)) ? 0
                                                                          : 1;
}

static int removed(void** state) {
  (void)state;
  kilni_table_cuda_fault_remove(&table);
  kilni_table_cuda_null_reset();
  return 0;
}

static void unarmed_it_is_not_there(void** state) {
  (void)state;
  assert_string_equal(table.provider, "fault(null)");
  kiln_cu_event_t event = NULL;
  assert_int_equal(table.cuEventCreate(&event, 0), KILN_CU_SUCCESS);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_EVENT), 1);
  assert_int_equal(table.cuEventDestroy(event), KILN_CU_SUCCESS);
  assert_int_equal(kilni_table_cuda_fault_disarm(&table), 0);
  assert_null(kilni_table_cuda_fault_hit(&table));
}

static void it_counts_without_failing(void** state) {
  (void)state;
  kilni_table_cuda_fault_arm(&table, 0, KILNI_FAULT_ONCE,
                             KILN_CU_ERROR_UNKNOWN);
  int count = 0;
  const char* text = NULL;
  assert_int_equal(table.cuInit(0), KILN_CU_SUCCESS);
  assert_int_equal(table.cuDeviceGetCount(&count), KILN_CU_SUCCESS);
  // Asked while an error is made: not a call of the path that is tested.
  assert_int_equal(table.cuGetErrorName(1, &text), KILN_CU_SUCCESS);
  assert_int_equal(table.cuGetErrorString(1, &text), KILN_CU_SUCCESS);
  assert_int_equal(kilni_table_cuda_fault_disarm(&table), 2);
}

static void the_nth_call_fails_once(void** state) {
  (void)state;
  kilni_table_cuda_fault_arm(&table, 2, KILNI_FAULT_ONCE,
                             KILN_CU_ERROR_OUT_OF_MEMORY);
  kiln_cu_deviceptr_t address = 7;
  assert_int_equal(table.cuInit(0), KILN_CU_SUCCESS);
  assert_int_equal(table.cuMemAlloc(&address, 8), KILN_CU_ERROR_OUT_OF_MEMORY);
  // It did not happen, and wrote nothing.
  assert_int_equal(address, 7);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 0);
  assert_int_equal(table.cuMemAlloc(&address, 8), KILN_CU_SUCCESS);
  assert_int_equal(table.cuMemFree(address), KILN_CU_SUCCESS);
  assert_string_equal(kilni_table_cuda_fault_hit(&table), "cuMemAlloc");
  assert_int_equal(kilni_table_cuda_fault_disarm(&table), 4);
  assert_int_equal(table.cuInit(0), KILN_CU_SUCCESS);
}

static void from_the_nth_on_all_fail(void** state) {
  (void)state;
  kilni_table_cuda_fault_arm(&table, 2, KILNI_FAULT_FROM,
                             KILN_CU_ERROR_ILLEGAL_ADDRESS);
  assert_int_equal(table.cuInit(0), KILN_CU_SUCCESS);
  for (int i = 0; i < 5; i++) {
    assert_int_equal(table.cuCtxSynchronize(), KILN_CU_ERROR_ILLEGAL_ADDRESS);
  }
  assert_int_equal(kilni_table_cuda_fault_disarm(&table), 6);
  assert_int_equal(table.cuCtxSynchronize(), KILN_CU_SUCCESS);
}

// A driver that reports an earlier error from a destroy has destroyed.
static void a_failed_destroy_has_destroyed(void** state) {
  (void)state;
  kiln_cu_context_t context = NULL;
  kiln_cu_stream_t stream = NULL;
  kiln_cu_event_t event = NULL;
  kiln_cu_module_t module = NULL;
  kiln_cu_deviceptr_t address = 0, other = 0;
  void* host = NULL;
  char own[16];
  assert_int_equal(table.cuDevicePrimaryCtxRetain(&context, 0), 0);
  assert_int_equal(table.cuStreamCreate(&stream, 0), 0);
  assert_int_equal(table.cuEventCreate(&event, 0), 0);
  assert_int_equal(table.cuModuleLoadData(&module, "x"), 0);
  assert_int_equal(table.cuMemAlloc(&address, 1), 0);
  assert_int_equal(table.cuMemAllocAsync(&other, 1, NULL), 0);
  assert_int_equal(table.cuMemHostAlloc(&host, 1, 0), 0);
  assert_int_equal(table.cuMemHostRegister(own, sizeof(own), 0), 0);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 8);
  kilni_table_cuda_fault_arm(&table, 1, KILNI_FAULT_FROM,
                             KILN_CU_ERROR_LAUNCH_FAILED);
  const kiln_cu_result_t bad = KILN_CU_ERROR_LAUNCH_FAILED;
  assert_int_equal(table.cuMemHostUnregister(own), bad);
  assert_int_equal(table.cuMemFreeHost(host), bad);
  assert_int_equal(table.cuMemFreeAsync(other, NULL), bad);
  assert_int_equal(table.cuMemFree(address), bad);
  assert_int_equal(table.cuModuleUnload(module), bad);
  assert_int_equal(table.cuEventDestroy(event), bad);
  assert_int_equal(table.cuStreamDestroy(stream), bad);
  assert_int_equal(table.cuDevicePrimaryCtxRelease(0), bad);
  assert_int_equal(kilni_table_cuda_fault_disarm(&table), 8);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 0);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 0);
}

static void arming_again_starts_again(void** state) {
  (void)state;
  kilni_table_cuda_fault_arm(&table, 1, KILNI_FAULT_ONCE, 2);
  assert_int_equal(table.cuInit(0), 2);
  assert_string_equal(kilni_table_cuda_fault_hit(&table), "cuInit");
  kilni_table_cuda_fault_arm(&table, 1, KILNI_FAULT_ONCE, 3);
  assert_null(kilni_table_cuda_fault_hit(&table));
  assert_int_equal(table.cuCtxSynchronize(), 3);
  assert_int_equal(kilni_table_cuda_fault_disarm(&table), 1);
}

static void it_can_be_wrapped_and_absent_rows_stay_absent(void** state) {
  (void)state;
  kiln_cuda_table_t empty, wrapped, third;
  kilni_table_cuda_table_init(&empty, "empty", "nowhere");
  assert_true(
      kiln_status_is_ok(kilni_table_cuda_fault_install(&empty, &wrapped)));
  kilni_table_cuda_fault_arm(&wrapped, 1, KILNI_FAULT_FROM, 2);
  assert_int_equal(wrapped.cuInit(0), KILN_CU_ERROR_CALL_REQUIRES_NEWER_DRIVER);
  assert_false(kilni_table_cuda_has(&wrapped, KILNI_CUDA_ROW_cuInit));
  assert_int_equal(kilni_table_cuda_fault_disarm(&wrapped), 0);
  kiln_status_t status = kilni_table_cuda_fault_install(&empty, &third);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_LIMIT_EXCEEDED);
  kiln_status_free(status);
  kilni_table_cuda_fault_remove(&wrapped);

  // Trace around fault sees what fault made of the call.
  const kiln_log_sink_t silence = {NULL, NULL, 0, 0};
  kiln_cuda_table_t traced;
  assert_true(kiln_status_is_ok(
      kilni_table_cuda_trace_install(&table, silence, &traced)));
  assert_string_equal(traced.provider, "trace(fault(null))");
  kilni_table_cuda_fault_arm(&table, 1, KILNI_FAULT_ONCE, 77);
  assert_int_equal(traced.cuInit(0), 77);
  kilni_table_cuda_fault_disarm(&table);
  kilni_table_cuda_trace_remove(&traced);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, install, removed)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(unarmed_it_is_not_there),
      TEST(it_counts_without_failing),
      TEST(the_nth_call_fails_once),
      TEST(from_the_nth_on_all_fail),
      TEST(a_failed_destroy_has_destroyed),
      TEST(arming_again_starts_again),
      TEST(it_can_be_wrapped_and_absent_rows_stay_absent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
