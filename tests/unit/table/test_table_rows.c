// SPDX-License-Identifier: Apache-2.0
//
// table: tests of the rows' columns and of tables before they are filled.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "table/cuda_table.h"
#include "table/nvrtc_table.h"

static void rows_have_names_and_symbols(void** state) {
  (void)state;
  for (unsigned i = 0; i < KILNI_CUDA_ROW_COUNT; i++) {
    const kilni_table_row_t* row = kilni_table_cuda_row((kilni_cuda_row_id_t)i);
    assert_int_equal(strncmp(row->symbol, row->name, strlen(row->name)), 0);
    const char* suffix = row->symbol + strlen(row->name);
    assert_true(suffix[0] == '\0' || strcmp(suffix, "_v2") == 0);
    assert_null(strstr(row->symbol, "_pt"));
    assert_in_range(row->version, 2000, 14000);
    for (unsigned j = 0; j < i; j++) {
      assert_string_not_equal(
          kilni_table_cuda_row((kilni_cuda_row_id_t)j)->name, row->name);
    }
  }
}

static void required_is_what_driver_525_has(void** state) {
  (void)state;
  for (unsigned i = 0; i < KILNI_CUDA_ROW_COUNT; i++) {
    const kilni_table_row_t* row = kilni_table_cuda_row((kilni_cuda_row_id_t)i);
    assert_int_equal(row->need == KILNI_NEED_REQUIRED, row->version <= 12000);
    // The software device may lack a REQUIRED one: that names its feature too.
    assert_true(row->feature[0] != '\0' || row->need == KILNI_NEED_REQUIRED);
  }
}

static void every_created_handle_can_be_destroyed(void** state) {
  (void)state;
  bool made[KILNI_HANDLE_COUNT] = {false};
  bool ended[KILNI_HANDLE_COUNT] = {false};
  for (unsigned i = 0; i < KILNI_CUDA_ROW_COUNT; i++) {
    const kilni_table_row_t* row = kilni_table_cuda_row((kilni_cuda_row_id_t)i);
    if (row->effect == KILNI_EFFECT_CREATE) made[row->handle] = true;
    if (row->effect == KILNI_EFFECT_DESTROY) ended[row->handle] = true;
    if (row->effect == KILNI_EFFECT_QUERY || row->effect == KILNI_EFFECT_ACT) {
      assert_int_equal(row->handle, KILNI_HANDLE_NONE);
    }
  }
  for (unsigned kind = KILNI_HANDLE_PRIMARY_CONTEXT;
       kind < KILNI_HANDLE_PROGRAM; kind++) {
    assert_true(made[kind]);
    assert_true(ended[kind]);
  }
}

static void columns_are_those_of_the_list(void** state) {
  (void)state;
  const kilni_table_row_t* row =
      kilni_table_cuda_row(KILNI_CUDA_ROW_cuMemFreeAsync);
  assert_string_equal(row->name, "cuMemFreeAsync");
  assert_int_equal(row->context, KILNI_CONTEXT_FROM_STREAM);
  assert_int_equal(row->capture, KILNI_CAPTURE_UNSAFE);
  assert_int_equal(row->effect, KILNI_EFFECT_DESTROY);
  assert_int_equal(row->handle, KILNI_HANDLE_MEMORY);
  row = kilni_table_cuda_row(KILNI_CUDA_ROW_cuMemAlloc);
  assert_string_equal(row->symbol, "cuMemAlloc_v2");
  assert_int_equal(row->context, KILNI_CONTEXT_CURRENT);
  assert_int_equal(row->capture, KILNI_CAPTURE_UNSAFE);
  assert_int_equal(
      kilni_table_nvrtc_row(KILNI_NVRTC_ROW_nvrtcCreateProgram)->handle,
      KILNI_HANDLE_PROGRAM);
}

static kiln_cu_result_t own_init(unsigned int flags) {
  return 1000 + flags;
}

static void an_absent_row_answers_and_does_not_crash(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_table_cuda_table_init(&table, "empty", "nowhere");
  kiln_cu_deviceptr_t address = 7;
  assert_false(kilni_table_cuda_has(&table, KILNI_CUDA_ROW_cuMemAlloc));
  assert_int_equal(table.cuMemAlloc(&address, 1),
                   KILN_CU_ERROR_CALL_REQUIRES_NEWER_DRIVER);
  assert_int_equal(table.cuInit(0), KILN_CU_ERROR_CALL_REQUIRES_NEWER_DRIVER);

  KILNI_CUDA_SET(&table, cuInit, own_init);
  assert_true(kilni_table_cuda_has(&table, KILNI_CUDA_ROW_cuInit));
  assert_int_equal(table.cuInit(5), 1005);
  for (unsigned i = 0; i < KILNI_CUDA_ROW_COUNT; i++) {
    assert_int_equal(kilni_table_cuda_has(&table, (kilni_cuda_row_id_t)i),
                     i == KILNI_CUDA_ROW_cuInit);
  }
  kilni_table_cuda_mark(&table, KILNI_CUDA_ROW_cuInit, false);
  assert_false(kilni_table_cuda_has(&table, KILNI_CUDA_ROW_cuInit));

  kiln_nvrtc_table_t nvrtc;
  kilni_table_nvrtc_table_init(&nvrtc, "empty", "nowhere");
  assert_null(nvrtc.nvrtcGetErrorString(1));
  assert_int_equal(nvrtc.nvrtcVersion(NULL, NULL),
                   KILN_NVRTC_ERROR_INTERNAL_ERROR);
}

static void check_names_every_missing_row_at_once(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_table_cuda_table_init(&table, "empty", "nowhere");
  table.driver_version = 11020;
  KILNI_CUDA_SET(&table, cuInit, own_init);
  kiln_status_t status = kilni_table_cuda_table_check(&table);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INCOMPATIBLE);
  char text[16384];
  size_t length = 0;
  kiln_status_format(status, sizeof(text), text, &length);
  assert_true(length < sizeof(text));
  assert_non_null(strstr(text, "CUDA 11.2"));
  assert_non_null(strstr(kiln_status_fix(status), "525"));
  for (unsigned i = 0; i < KILNI_CUDA_ROW_COUNT; i++) {
    const kilni_table_row_t* row = kilni_table_cuda_row((kilni_cuda_row_id_t)i);
    // Names are told apart by what stands around them.
    char first[80], next[80], last[80];
    snprintf(first, sizeof(first), " %s,", row->symbol);
    snprintf(next, sizeof(next), " %s\n", row->symbol);
    snprintf(last, sizeof(last), " %s ", row->symbol);
    const bool named =
        strstr(text, first) || strstr(text, next) || strstr(text, last);
    assert_int_equal(
        named, row->need == KILNI_NEED_REQUIRED && i != KILNI_CUDA_ROW_cuInit);
  }
  kiln_status_free(status);
}

static void an_absent_feature_is_named_with_the_driver_it_needs(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_table_cuda_table_init(&table, "libcuda", "nowhere");
  table.driver_version = 12020;
  kiln_status_t status =
      kilni_table_cuda_need(&table, KILNI_CUDA_ROW_cuFuncGetParamInfo);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_UNSUPPORTED);
  assert_non_null(strstr(kiln_status_message(status), "12.4"));
  assert_non_null(strstr(kiln_status_message(status), "12.2"));
  assert_non_null(strstr(kiln_status_message(status), "parameters"));
  assert_non_null(strstr(kiln_status_fix(status), "550"));
  kiln_status_free(status);

  table.driver_version = 13000;
  status = kilni_table_cuda_need(&table, KILNI_CUDA_ROW_cuFuncGetParamInfo);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_UNSUPPORTED);
  assert_null(strstr(kiln_status_message(status), "12.4"));
  kiln_status_free(status);

  kilni_table_cuda_mark(&table, KILNI_CUDA_ROW_cuFuncGetParamInfo, true);
  assert_true(kiln_status_is_ok(
      kilni_table_cuda_need(&table, KILNI_CUDA_ROW_cuFuncGetParamInfo)));

  kiln_nvrtc_table_t nvrtc;
  kilni_table_nvrtc_table_init(&nvrtc, "libnvrtc", "a/file.so");
  nvrtc.major = 12;
  nvrtc.minor = 3;
  status = kilni_table_nvrtc_need(&nvrtc, KILNI_NVRTC_ROW_nvrtcSetFlowCallback);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_UNSUPPORTED);
  assert_non_null(strstr(kiln_status_message(status), "12.8"));
  assert_non_null(strstr(kiln_status_message(status), "12.3"));
  kiln_status_free(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_have_names_and_symbols),
      cmocka_unit_test(required_is_what_driver_525_has),
      cmocka_unit_test(every_created_handle_can_be_destroyed),
      cmocka_unit_test(columns_are_those_of_the_list),
      cmocka_unit_test(an_absent_row_answers_and_does_not_crash),
      cmocka_unit_test(check_names_every_missing_row_at_once),
      cmocka_unit_test(an_absent_feature_is_named_with_the_driver_it_needs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
