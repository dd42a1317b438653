// SPDX-License-Identifier: Apache-2.0
//
// table: tests of the trace wrapper.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "table/cuda_table.h"

// What was logged, one line behind the other. one-thread
typedef struct log_t {
  char text[8192];
  int lines;
} log_t;

static void collect(kiln_log_level_t level, const char* space, const char* line,
                    void* user) {
  log_t* log = user;
  assert_int_equal(level, KILN_LOG_TRACE);
  assert_string_equal(space, "table");
  assert_null(strchr(line, '\n'));
  const size_t used = strlen(log->text);
  snprintf(log->text + used, sizeof(log->text) - used, "%s\n", line);
  log->lines++;
}

static kiln_log_sink_t sink_of(log_t* log, uint32_t level) {
  memset(log, 0, sizeof(*log));
  const kiln_log_sink_t sink = {collect, log, level, 0};
  return sink;
}

static int fresh(void** state) {
  (void)state;
  kilni_table_cuda_null_reset();
  return 0;
}

static void must_install(const kiln_cuda_table_t* wrapped, kiln_log_sink_t sink,
                         kiln_cuda_table_t* out) {
  kiln_status_t status = kilni_table_cuda_trace_install(wrapped, sink, out);
  assert_true(kiln_status_is_ok(status));
}

static void a_line_has_arguments_outs_and_result(void** state) {
  (void)state;
  log_t log;
  kiln_cuda_table_t table;
  kilni_table_cuda_table_null(&table);
  must_install(&table, sink_of(&log, KILN_LOG_TRACE), &table);
  assert_string_equal(table.provider, "trace(null)");

  kiln_cu_deviceptr_t address = 0;
  assert_int_equal(table.cuMemAlloc(&address, 1024), KILN_CU_SUCCESS);
  char wanted[256];
  snprintf(wanted, sizeof(wanted),
           "cuMemAlloc(bytes=1024) = CUDA_SUCCESS, address=0x%llx\n", address);
  assert_string_equal(log.text, wanted);

  sink_of(&log, 0);
  assert_int_equal(table.cuMemFree(address), KILN_CU_SUCCESS);
  snprintf(wanted, sizeof(wanted), "cuMemFree(address=0x%llx) = CUDA_SUCCESS\n",
           address);
  assert_string_equal(log.text, wanted);

  // After a failure nothing has come out.
  sink_of(&log, 0);
  assert_int_equal(table.cuMemFree(7), KILN_CU_ERROR_INVALID_HANDLE);
  assert_int_equal(table.cuMemAlloc(&address, 0), KILN_CU_ERROR_INVALID_VALUE);
  assert_string_equal(log.text,
                      "cuMemFree(address=0x7) = CUDA_ERROR_INVALID_HANDLE\n"
                      "cuMemAlloc(bytes=0) = CUDA_ERROR_INVALID_VALUE\n");
  kilni_table_cuda_trace_remove(&table);
}

static void names_texts_and_numbers_are_readable(void** state) {
  (void)state;
  log_t log;
  kiln_cuda_table_t table;
  kilni_table_cuda_table_null(&table);
  must_install(&table, sink_of(&log, KILN_LOG_TRACE), &table);
  int value = 0;
  char name[32];
  const char* text = NULL;
  kiln_cu_function_t function = NULL;
  float elapsed = 1;
  kiln_cu_uuid_t uuid;
  table.cuDeviceGetAttribute(&value, KILN_CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0);
  table.cuDeviceGetAttribute(&value, 5000, 0);
  table.cuDeviceGetName(name, sizeof(name), 0);
  table.cuGetErrorName(KILN_CU_ERROR_ASSERT, &text);
  table.cuModuleGetFunction(&function, (kiln_cu_module_t)(uintptr_t)0x100,
                            "kernel");
  table.cuEventElapsedTime(&elapsed, NULL, NULL);
  table.cuDeviceGetUuid(&uuid, 0);
  table.cuMemcpyHtoD(16, name, 3);
  table.cuLaunchKernel(NULL, 1, 2, 3, 4, 5, 6, 7, NULL, NULL, NULL);
  table.cuCtxSynchronize();
  assert_non_null(strstr(log.text,
                         "cuDeviceGetAttribute(attribute=WARP_SIZE, device=0) "
                         "= CUDA_SUCCESS, value=32\n"));
  assert_non_null(strstr(log.text, "(attribute=5000, device=0)"));
  assert_non_null(strstr(log.text,
                         "cuDeviceGetName(space=32, device=0) = "
                         "CUDA_SUCCESS, name=\"Kiln null device\"\n"));
  assert_non_null(strstr(log.text,
                         "cuGetErrorName(error=CUDA_ERROR_ASSERT) = "
                         "CUDA_SUCCESS, text=\"CUDA_ERROR_ASSERT\"\n"));
  assert_non_null(strstr(log.text,
                         "cuModuleGetFunction(module=0x100, "
                         "name=\"kernel\") = CUDA_SUCCESS, "
                         "function=0x10"));
  assert_non_null(strstr(log.text, "milliseconds=0\n"));
  assert_non_null(strstr(log.text, "uuid=6b696c6e206e756c6c00000000000000\n"));
  assert_non_null(strstr(log.text, "cuMemcpyHtoD(to=0x10, from=0x"));
  assert_non_null(strstr(log.text, ", bytes=3) = CUDA_SUCCESS\n"));
  assert_non_null(
      strstr(log.text,
             "cuLaunchKernel(function=0x0, grid_x=1, grid_y=2, grid_z=3, "
             "block_x=4, block_y=5, block_z=6, shared_bytes=7, stream=0x0, "
             "params=0x0, extra=0x0) = CUDA_SUCCESS\n"));
  assert_non_null(strstr(log.text, "cuCtxSynchronize() = CUDA_SUCCESS\n"));
  assert_int_equal(log.lines, 10);
  kilni_table_cuda_trace_remove(&table);
}

static void a_long_text_is_cut(void** state) {
  (void)state;
  log_t log;
  kiln_cuda_table_t table;
  kilni_table_cuda_table_null(&table);
  must_install(&table, sink_of(&log, KILN_LOG_TRACE), &table);
  char name[4096];
  memset(name, 'n', sizeof(name) - 1);
  name[sizeof(name) - 1] = '\0';
  kiln_cu_function_t function = NULL;
  table.cuModuleGetFunction(&function, NULL, name);
  assert_true(strlen(log.text) < 400);
  assert_non_null(strstr(log.text, "= CUDA_SUCCESS"));
  kilni_table_cuda_trace_remove(&table);
}

static void a_sink_that_does_not_want_it_gets_nothing(void** state) {
  (void)state;
  log_t log;
  kiln_cuda_table_t table;
  kilni_table_cuda_table_null(&table);
  must_install(&table, sink_of(&log, KILN_LOG_DEBUG), &table);
  int count = 0;
  assert_int_equal(table.cuDeviceGetCount(&count), KILN_CU_SUCCESS);
  assert_int_equal(count, 1);
  assert_int_equal(log.lines, 0);
  kilni_table_cuda_trace_remove(&table);
}

static void absent_rows_stay_absent(void** state) {
  (void)state;
  log_t log;
  kiln_cuda_table_t table;
  kilni_table_cuda_table_init(&table, "empty", "nowhere");
  must_install(&table, sink_of(&log, KILN_LOG_TRACE), &table);
  assert_false(kilni_table_cuda_has(&table, KILNI_CUDA_ROW_cuInit));
  assert_int_equal(table.cuInit(0), KILN_CU_ERROR_CALL_REQUIRES_NEWER_DRIVER);
  assert_int_equal(log.lines, 0);
  kilni_table_cuda_trace_remove(&table);
}

static kiln_cu_result_t other_init(unsigned int flags) {
  return 40 + flags;
}

static void two_tables_at_once_and_no_third(void** state) {
  (void)state;
  log_t log[2];
  kiln_cuda_table_t null, other, first, second, third;
  kilni_table_cuda_table_null(&null);
  kilni_table_cuda_table_init(&other, "other", "nowhere");
  KILNI_CUDA_SET(&other, cuInit, other_init);
  must_install(&null, sink_of(&log[0], KILN_LOG_TRACE), &first);
  must_install(&other, sink_of(&log[1], KILN_LOG_TRACE), &second);
  kiln_status_t status =
      kilni_table_cuda_trace_install(&null, sink_of(&log[0], 4), &third);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_LIMIT_EXCEEDED);
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
  assert_int_equal(first.cuInit(0), KILN_CU_SUCCESS);
  assert_int_equal(second.cuInit(2), 42);
  assert_string_equal(log[0].text, "cuInit(flags=0) = CUDA_SUCCESS\n");
  assert_string_equal(log[1].text, "cuInit(flags=2) = 42\n");
  kilni_table_cuda_trace_remove(&first);
  must_install(&null, sink_of(&log[0], KILN_LOG_TRACE), &third);
  kilni_table_cuda_trace_remove(&second);
  kilni_table_cuda_trace_remove(&third);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(a_line_has_arguments_outs_and_result, fresh),
      cmocka_unit_test_setup(names_texts_and_numbers_are_readable, fresh),
      cmocka_unit_test_setup(a_long_text_is_cut, fresh),
      cmocka_unit_test_setup(a_sink_that_does_not_want_it_gets_nothing, fresh),
      cmocka_unit_test_setup(absent_rows_stay_absent, fresh),
      cmocka_unit_test_setup(two_tables_at_once_and_no_third, fresh),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
