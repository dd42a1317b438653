// SPDX-License-Identifier: Apache-2.0
//
// table: tests of the null provider.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "table/cuda_table.h"

static int fresh(void** state) {
  (void)state;
  kilni_table_cuda_null_reset();
  return 0;
}

// Every row is there and the required ones pass the check.
static void it_has_every_row(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_table_cuda_table_null(&table);
  assert_string_equal(table.provider, "null");
  assert_true(kiln_status_is_ok(kilni_table_cuda_table_check(&table)));
  for (unsigned i = 0; i < KILNI_CUDA_ROW_COUNT; i++) {
    assert_true(kilni_table_cuda_has(&table, (kilni_cuda_row_id_t)i));
  }
  assert_int_equal(table.cuInit(0), KILN_CU_SUCCESS);
  int count = 0;
  assert_int_equal(table.cuDeviceGetCount(&count), KILN_CU_SUCCESS);
  assert_int_equal(count, 1);
  char name[8];
  assert_int_equal(table.cuDeviceGetName(name, sizeof(name), 0),
                   KILN_CU_SUCCESS);
  assert_string_equal(name, "Kiln nu");
}

static void handles_are_distinct_and_counted(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_table_cuda_table_null(&table);
  kiln_cu_stream_t streams[3] = {NULL};
  kiln_cu_event_t event = NULL;
  kiln_cu_module_t module = NULL;
  for (int i = 0; i < 3; i++) {
    assert_int_equal(table.cuStreamCreate(&streams[i], 0), KILN_CU_SUCCESS);
    assert_non_null(streams[i]);
  }
  assert_ptr_not_equal(streams[0], streams[1]);
  assert_ptr_not_equal(streams[1], streams[2]);
  assert_int_equal(table.cuEventCreate(&event, 0), KILN_CU_SUCCESS);
  assert_int_equal(table.cuModuleLoadData(&module, "x"), KILN_CU_SUCCESS);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_STREAM), 3);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_EVENT), 1);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 5);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(table.cuStreamDestroy(streams[i]), KILN_CU_SUCCESS);
  }
  assert_int_equal(table.cuEventDestroy(event), KILN_CU_SUCCESS);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 1);
  assert_int_equal(table.cuModuleUnload(module), KILN_CU_SUCCESS);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 0);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 0);
}

static void a_second_destroy_is_seen(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_table_cuda_table_null(&table);
  kiln_cu_event_t event = NULL;
  assert_int_equal(table.cuEventCreate(&event, 0), KILN_CU_SUCCESS);
  assert_int_equal(table.cuEventDestroy(event), KILN_CU_SUCCESS);
  assert_int_equal(table.cuEventDestroy(event), KILN_CU_ERROR_INVALID_HANDLE);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 1);
  // One kind's handle is not another's.
  kiln_cu_stream_t stream = NULL;
  assert_int_equal(table.cuStreamCreate(&stream, 0), KILN_CU_SUCCESS);
  assert_int_equal(table.cuModuleUnload((kiln_cu_module_t)(void*)stream),
                   KILN_CU_ERROR_INVALID_HANDLE);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 2);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_STREAM), 1);
}

static void handles_are_the_same_in_every_run(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_table_cuda_table_null(&table);
  kiln_cu_stream_t stream[2] = {NULL};
  kiln_cu_deviceptr_t address[2] = {0};
  for (int i = 0; i < 2; i++) {
    kilni_table_cuda_null_reset();
    assert_int_equal(table.cuStreamCreate(&stream[i], 0), KILN_CU_SUCCESS);
    assert_int_equal(table.cuMemAlloc(&address[i], 100), KILN_CU_SUCCESS);
  }
  assert_ptr_equal(stream[0], stream[1]);
  assert_int_equal(address[0], address[1]);
}

static void memory_does_not_overlap(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_table_cuda_table_null(&table);
  kiln_cu_deviceptr_t first = 0, second = 0;
  assert_int_equal(table.cuMemAlloc(&first, 1000), KILN_CU_SUCCESS);
  assert_int_equal(table.cuMemAllocAsync(&second, 1, NULL), KILN_CU_SUCCESS);
  assert_true(second >= first + 1000);
  // What one call allocated, the other may free.
  assert_int_equal(table.cuMemFreeAsync(first, NULL), KILN_CU_SUCCESS);
  assert_int_equal(table.cuMemFree(second), KILN_CU_SUCCESS);
  assert_int_equal(table.cuMemFree(0), KILN_CU_SUCCESS);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 0);
  first = 9;
  assert_int_equal(table.cuMemAlloc(&first, 0), KILN_CU_ERROR_INVALID_VALUE);
  assert_int_equal(first, 0);
  assert_int_equal(table.cuMemAlloc(&first, SIZE_MAX),
                   KILN_CU_ERROR_OUT_OF_MEMORY);
}

static void host_memory_is_memory(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_table_cuda_table_null(&table);
  void* host = NULL;
  assert_int_equal(table.cuMemHostAlloc(&host, 4096, 0), KILN_CU_SUCCESS);
  memset(host, 0x5a, 4096);
  kiln_cu_memory_type_t type = 0;
  assert_int_equal(
      table.cuPointerGetAttribute(&type, KILN_CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  (kiln_cu_deviceptr_t)(uintptr_t)host + 9),
      KILN_CU_SUCCESS);
  assert_int_equal(type, KILN_CU_MEMORYTYPE_HOST);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_HOST_MEMORY), 1);
  assert_int_equal(table.cuMemFreeHost(host), KILN_CU_SUCCESS);
  assert_int_equal(table.cuMemHostAlloc(&host, 64, 0), KILN_CU_SUCCESS);
  kilni_table_cuda_null_reset();  // frees it: a leak checker would tell

  char own[64];
  assert_int_equal(table.cuMemHostRegister(own, sizeof(own), 0),
                   KILN_CU_SUCCESS);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_HOST_REGISTRATION),
                   1);
  assert_int_equal(table.cuMemHostUnregister(own), KILN_CU_SUCCESS);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 0);
  assert_int_equal(
      table.cuPointerGetAttribute(&type, KILN_CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  (kiln_cu_deviceptr_t)(uintptr_t)own),
      KILN_CU_ERROR_INVALID_VALUE);
}

static void reads_give_zeroes(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_table_cuda_table_null(&table);
  unsigned char bytes[8];
  memset(bytes, 0xff, sizeof(bytes));
  assert_int_equal(table.cuMemcpyDtoH(bytes, 1, 4), KILN_CU_SUCCESS);
  const unsigned char wanted[8] = {0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
  assert_memory_equal(bytes, wanted, sizeof(wanted));
  size_t offset = 1, size = 1;
  // A caller that counts parameters ends.
  assert_int_equal(table.cuFuncGetParamInfo(NULL, 0, &offset, &size),
                   KILN_CU_ERROR_INVALID_VALUE);
}

static void functions_know_their_module(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_table_cuda_table_null(&table);
  kiln_cu_module_t module = NULL, back = NULL;
  kiln_cu_function_t one = NULL, again = NULL;
  assert_int_equal(table.cuModuleLoadData(&module, "x"), KILN_CU_SUCCESS);
  assert_int_equal(table.cuModuleGetFunction(&one, module, "saxpy"),
                   KILN_CU_SUCCESS);
  assert_int_equal(table.cuModuleGetFunction(&again, module, "saxpy"),
                   KILN_CU_SUCCESS);
  assert_non_null(one);
  assert_ptr_equal(one, again);
  assert_int_equal(table.cuFuncGetModule(&back, one), KILN_CU_SUCCESS);
  assert_ptr_equal(back, module);
}

static void contexts_are_a_stack(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_table_cuda_table_null(&table);
  kiln_cu_context_t context = NULL, now = NULL;
  assert_int_equal(table.cuCtxGetCurrent(&now), KILN_CU_SUCCESS);
  assert_null(now);
  assert_int_equal(table.cuDevicePrimaryCtxRetain(&context, 0),
                   KILN_CU_SUCCESS);
  assert_int_equal(table.cuCtxPushCurrent(context), KILN_CU_SUCCESS);
  assert_int_equal(table.cuCtxGetCurrent(&now), KILN_CU_SUCCESS);
  assert_ptr_equal(now, context);
  assert_int_equal(table.cuCtxPopCurrent(&now), KILN_CU_SUCCESS);
  assert_ptr_equal(now, context);
  assert_int_equal(table.cuCtxPopCurrent(&now), KILN_CU_ERROR_INVALID_CONTEXT);
  assert_int_equal(table.cuCtxSetCurrent(context), KILN_CU_SUCCESS);
  assert_int_equal(table.cuCtxSetCurrent(NULL), KILN_CU_SUCCESS);
  assert_int_equal(table.cuCtxGetCurrent(&now), KILN_CU_SUCCESS);
  assert_null(now);
  assert_int_equal(table.cuDevicePrimaryCtxRelease(0), KILN_CU_SUCCESS);
  assert_int_equal(table.cuDevicePrimaryCtxRelease(0),
                   KILN_CU_ERROR_INVALID_HANDLE);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 1);
}

static void set_flag(void* user) {
  *(int*)user = 1;
}

static void host_functions_are_called(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_table_cuda_table_null(&table);
  int called = 0;
  assert_int_equal(table.cuLaunchHostFunc(NULL, set_flag, &called),
                   KILN_CU_SUCCESS);
  assert_int_equal(called, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(it_has_every_row, fresh),
      cmocka_unit_test_setup(handles_are_distinct_and_counted, fresh),
      cmocka_unit_test_setup(a_second_destroy_is_seen, fresh),
      cmocka_unit_test_setup(handles_are_the_same_in_every_run, fresh),
      cmocka_unit_test_setup(memory_does_not_overlap, fresh),
      cmocka_unit_test_setup(host_memory_is_memory, fresh),
      cmocka_unit_test_setup(reads_give_zeroes, fresh),
      cmocka_unit_test_setup(functions_know_their_module, fresh),
      cmocka_unit_test_setup(contexts_are_a_stack, fresh),
      cmocka_unit_test_setup(host_functions_are_called, fresh),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  kilni_table_cuda_null_reset();
  return failed;
}
