// SPDX-License-Identifier: Apache-2.0
//
// table: tests of results as statuses.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test_tree.h"
#include "table/cuda_table.h"
#include "table/nvrtc_table.h"

static const kiln_cu_result_t results[] = {
#define KILNI_CUDA_RESULT(name, number, status, sticky, fix) number,
#include "table/cuda_results.inc"
#undef KILNI_CUDA_RESULT
};
enum { RESULT_COUNT = sizeof(results) / sizeof(results[0]) };

static void success_is_ok(void** state) {
  (void)state;
  assert_true(
      kiln_status_is_ok(KILNI_CUDA_STATUS(NULL, KILN_CU_SUCCESS, "cuInit")));
  assert_true(kiln_status_is_ok(
      KILNI_NVRTC_STATUS(NULL, KILN_NVRTC_SUCCESS, "nvrtcVersion")));
  assert_string_equal(kilni_table_cuda_result_name(0), "CUDA_SUCCESS");
}

static void not_ready_is_a_bare_code(void** state) {
  (void)state;
  kiln_status_t status =
      KILNI_CUDA_STATUS(NULL, KILN_CU_ERROR_NOT_READY, "cuEventQuery");
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_READY);
  assert_null(kiln_status_origin(status));  // no payload
  kiln_status_free(status);
  status = KILNI_NVRTC_STATUS(NULL, KILN_NVRTC_ERROR_OUT_OF_MEMORY, "x");
  assert_int_equal(kiln_status_code(status), KILN_STATUS_OUT_OF_MEMORY);
  assert_null(kiln_status_origin(status));
  kiln_status_free(status);
}

static void every_result_has_code_name_number_call_and_fix(void** state) {
  (void)state;
  for (unsigned i = 0; i < RESULT_COUNT; i++) {
    if (results[i] == KILN_CU_ERROR_NOT_READY) continue;
    kiln_status_t status = KILNI_CUDA_STATUS(NULL, results[i], "cuMemAlloc");
    kiln_status_native_t native;
    assert_true(kiln_status_native(status, &native));
    assert_string_equal(native.domain, "cuda");
    assert_int_equal(native.number, results[i]);
    assert_int_equal(strncmp(native.name, "CUDA_ERROR_", 11), 0);
    assert_non_null(strstr(kiln_status_message(status), "cuMemAlloc"));
    assert_non_null(strstr(kiln_status_message(status), native.name));
    assert_non_null(kiln_status_fix(status));
    assert_string_equal(kiln_status_origin(status), "test");
    assert_int_equal(kiln_status_code(status),
                     kilni_table_cuda_result_code(results[i]));
    kiln_status_free(status);
  }
}

static void sticky_results_are_a_lost_device_and_no_others(void** state) {
  (void)state;
  for (unsigned i = 0; i < RESULT_COUNT; i++) {
    assert_int_equal(
        kilni_table_cuda_result_is_sticky(results[i]),
        kilni_table_cuda_result_code(results[i]) == KILN_STATUS_DEVICE_LOST);
  }
  assert_true(kilni_table_cuda_result_is_sticky(KILN_CU_ERROR_ILLEGAL_ADDRESS));
  assert_true(kilni_table_cuda_result_is_sticky(KILN_CU_ERROR_LAUNCH_FAILED));
  assert_false(kilni_table_cuda_result_is_sticky(KILN_CU_ERROR_INVALID_VALUE));
  assert_false(
      kilni_table_cuda_result_is_sticky(KILN_CU_ERROR_LAUNCH_OUT_OF_RESOURCES));
  assert_int_equal(kilni_table_cuda_result_code(KILN_CU_ERROR_OUT_OF_MEMORY),
                   KILN_STATUS_DEVICE_OUT_OF_MEMORY);
}

static kiln_cu_result_t newer_name(kiln_cu_result_t error, const char** text) {
  *text = "CUDA_ERROR_OF_TOMORROW";
  return error == 4711 ? KILN_CU_SUCCESS : KILN_CU_ERROR_INVALID_VALUE;
}

// The page lists each result as what it is: in the second table if it stays
// with the context, in the first one alone or not at all if it does not.
static void sticky_results_are_on_their_page(void** state) {
  (void)state;
  static char text[1 << 16];
  char path[4096];
  FILE* file = fopen(
      test_tree_path(path, sizeof(path), "docs/reference/lost-devices.md"),
      "rb");
  assert_non_null(file);
  size_t size = fread(text, 1, sizeof(text) - 1, file);
  fclose(file);
  text[size] = 0;
  char* lost = strstr(text, "## The device is lost");
  char* behind = strstr(text, "## What a lost device does");
  assert_non_null(lost);
  assert_non_null(behind);
  *behind = 0;
  for (unsigned i = 0; i < RESULT_COUNT; i++) {
    const char* name = kilni_table_cuda_result_name(results[i]);
    char word[80];
    snprintf(word, sizeof(word), "`%s`", name + strlen("CUDA_ERROR_"));
    if ((strstr(lost, word) != NULL) !=
        kilni_table_cuda_result_is_sticky(results[i])) {
      fail_msg("%s is on the wrong side of the page", name);
    }
  }
}

static void the_driver_names_what_the_list_does_not_know(void** state) {
  (void)state;
  assert_null(kilni_table_cuda_result_name(4711));
  assert_int_equal(kilni_table_cuda_result_code(4711),
                   KILN_STATUS_DRIVER_ERROR);
  kiln_cuda_table_t table;
  kilni_table_cuda_table_init(&table, "new", "nowhere");
  kiln_status_t status = KILNI_CUDA_STATUS(&table, 4711, "cuInit");
  kiln_status_native_t native;
  assert_true(kiln_status_native(status, &native));
  assert_string_equal(native.name, "unknown result");
  kiln_status_free(status);
  KILNI_CUDA_SET(&table, cuGetErrorName, newer_name);
  status = KILNI_CUDA_STATUS(&table, 4711, "cuInit");
  assert_int_equal(kiln_status_code(status), KILN_STATUS_DRIVER_ERROR);
  assert_true(kiln_status_native(status, &native));
  assert_string_equal(native.name, "CUDA_ERROR_OF_TOMORROW");
  assert_int_equal(native.number, 4711);
  kiln_status_free(status);
}

static void attributes_have_names(void** state) {
  (void)state;
  assert_string_equal(kilni_table_cuda_attribute_name(
                          KILN_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
                      "MULTIPROCESSOR_COUNT");
  assert_null(kilni_table_cuda_attribute_name(0));
  assert_null(kilni_table_cuda_attribute_name(100000));
  for (unsigned i = 1; i < 92; i++) {
    assert_non_null(kilni_table_cuda_attribute_name(i));
  }
}

static void nvrtc_results_are_told_apart(void** state) {
  (void)state;
  kiln_status_t status =
      KILNI_NVRTC_STATUS(NULL, KILN_NVRTC_ERROR_COMPILATION, "nvrtcCompile");
  assert_int_equal(kiln_status_code(status), KILN_STATUS_COMPILE_FAILED);
  kiln_status_native_t native;
  assert_true(kiln_status_native(status, &native));
  assert_string_equal(native.domain, "nvrtc");
  assert_string_equal(native.name, "NVRTC_ERROR_COMPILATION");
  assert_int_equal(native.number, 6);
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
  assert_string_equal(kilni_table_nvrtc_result_name(5),
                      "NVRTC_ERROR_INVALID_OPTION");
  assert_null(kilni_table_nvrtc_result_name(99));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(success_is_ok),
      cmocka_unit_test(not_ready_is_a_bare_code),
      cmocka_unit_test(every_result_has_code_name_number_call_and_fix),
      cmocka_unit_test(sticky_results_are_a_lost_device_and_no_others),
      cmocka_unit_test(sticky_results_are_on_their_page),
      cmocka_unit_test(the_driver_names_what_the_list_does_not_know),
      cmocka_unit_test(attributes_have_names),
      cmocka_unit_test(nvrtc_results_are_told_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
