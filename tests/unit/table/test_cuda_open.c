// SPDX-License-Identifier: Apache-2.0
//
// table: tests of loading the driver's library, with libraries that the build
// makes in its place (tests/support/fake_libcuda.c).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fault_run.h"
#include "table/cuda_table.h"

enum { EXPORTED = 10000, ASKED = 20000 };

static kiln_host_t host_with(kiln_allocator_t allocator,
                             const kilni_base_env_t* env) {
  kiln_host_t host;
  memset(&host, 0, sizeof(host));
  host.allocator = allocator;
  host.env = env;
  return host;
}

static kiln_status_t open_fake(const char* path, kiln_cuda_table_t* table,
                               kilni_base_dynlib_t** library) {
  const kiln_host_t host = host_with(kiln_allocator_libc(), NULL);
  *library = (kilni_base_dynlib_t*)library;
  return kilni_table_cuda_table_open(&host, path, table, library);
}

static void must_open(const char* path, kiln_cuda_table_t* table,
                      kilni_base_dynlib_t** library) {
  kiln_status_t status = open_fake(path, table, library);
  if (!kiln_status_is_ok(status)) {
    char text[4096];
    kiln_status_format(status, sizeof(text), text, NULL);
    kiln_status_free(status);
    fail_msg("%s", text);
  }
  assert_non_null(*library);
}

// The error of a library that must not open, and that it leaves nothing.
static kiln_status_t must_not_open(const char* path) {
  kiln_cuda_table_t table;
  kilni_base_dynlib_t* library;
  kiln_status_t status = open_fake(path, &table, &library);
  assert_false(kiln_status_is_ok(status));
  assert_null(library);
  const kiln_cuda_table_t empty = {.slot = 0};
  assert_memory_equal(&table.present, &empty.present, sizeof(empty.present));
  assert_null((void*)(uintptr_t)table.cuInit);
  assert_non_null(kiln_status_fix(status));
  return status;
}

static void rows_come_by_pinned_version(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_base_dynlib_t* library;
  must_open(FAKE_CUDA_NEW, &table, &library);
  assert_string_equal(table.provider, "libcuda");
  assert_string_equal(table.origin, FAKE_CUDA_NEW);
  assert_int_equal(table.driver_version, 13000);
  for (unsigned i = 0; i < KILNI_CUDA_ROW_COUNT; i++) {
    assert_true(kilni_table_cuda_has(&table, (kilni_cuda_row_id_t)i));
  }
  assert_int_equal(table.cuMemAlloc(NULL, 0),
                   ASKED + KILNI_CUDA_ROW_cuMemAlloc);
  assert_int_equal(table.cuCtxSynchronize(),
                   ASKED + KILNI_CUDA_ROW_cuCtxSynchronize);
  assert_int_equal(table.cuFuncGetParamInfo(NULL, 0, NULL, NULL),
                   ASKED + KILNI_CUDA_ROW_cuFuncGetParamInfo);
  kilni_base_dynlib_close(library);
}

static void a_driver_that_exports_nothing_can_be_asked(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_base_dynlib_t* library;
  must_open(FAKE_CUDA_ASK_ONLY, &table, &library);
  assert_int_equal(table.cuStreamDestroy(NULL),
                   ASKED + KILNI_CUDA_ROW_cuStreamDestroy);
  kilni_base_dynlib_close(library);
}

static void a_driver_that_cannot_be_asked_gives_exact_symbols(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_base_dynlib_t* library;
  // It lacks cuGetProcAddress, which is REQUIRED: nothing else is missing.
  kiln_status_t status = must_not_open(FAKE_CUDA_EXPORTS);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INCOMPATIBLE);
  char text[4096];
  kiln_status_format(status, sizeof(text), text, NULL);
  assert_non_null(strstr(text, "lacks 1 of"));
  assert_non_null(strstr(text, "missing: cuGetProcAddress_v2"));
  kiln_status_free(status);
  // One that finds nothing when asked: every row by its exact symbol, and no
  // older signature under a bare name.
  must_open(FAKE_CUDA_DEAF, &table, &library);
  assert_int_equal(table.cuMemAlloc(NULL, 0),
                   EXPORTED + KILNI_CUDA_ROW_cuMemAlloc);
  assert_int_equal(table.cuMemFree(0), EXPORTED + KILNI_CUDA_ROW_cuMemFree);
  assert_int_equal(table.cuStreamDestroy(NULL),
                   EXPORTED + KILNI_CUDA_ROW_cuStreamDestroy);
  assert_int_equal(table.cuCtxSynchronize(),
                   EXPORTED + KILNI_CUDA_ROW_cuCtxSynchronize);
  assert_int_equal(table.cuMemcpyHtoD(0, NULL, 0),
                   EXPORTED + KILNI_CUDA_ROW_cuMemcpyHtoD);
  kilni_base_dynlib_close(library);
}

static void optional_rows_of_an_older_driver_are_absent(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_base_dynlib_t* library;
  must_open(FAKE_CUDA_525, &table, &library);
  assert_int_equal(table.driver_version, 12000);
  for (unsigned i = 0; i < KILNI_CUDA_ROW_COUNT; i++) {
    const kilni_cuda_row_id_t id = (kilni_cuda_row_id_t)i;
    assert_int_equal(kilni_table_cuda_has(&table, id),
                     kilni_table_cuda_row(id)->need == KILNI_NEED_REQUIRED);
  }
  assert_int_equal(table.cuFuncGetParamInfo(NULL, 0, NULL, NULL),
                   KILN_CU_ERROR_CALL_REQUIRES_NEWER_DRIVER);
  kilni_base_dynlib_close(library);
}

static void missing_rows_are_reported_all_at_once(void** state) {
  (void)state;
  kiln_status_t status = must_not_open(FAKE_CUDA_11_4);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INCOMPATIBLE);
  char text[16384];
  kiln_status_format(status, sizeof(text), text, NULL);
  assert_non_null(strstr(text, "CUDA 11.4"));
  assert_non_null(strstr(text, "cuLaunchKernelEx"));
  assert_non_null(strstr(text, "cuGetProcAddress_v2"));
  assert_non_null(strstr(text, FAKE_CUDA_11_4));
  assert_non_null(strstr(kiln_status_fix(status), "525"));
  // Optional rows are no reason.
  assert_null(strstr(text, "cuFuncGetParamInfo"));
  kiln_status_free(status);

  status = must_not_open(FAKE_CUDA_ANCIENT);
  size_t length = 0;
  kiln_status_format(status, sizeof(text), text, &length);
  assert_true(length < sizeof(text));
  for (unsigned i = 0; i < KILNI_CUDA_ROW_COUNT; i++) {
    const kilni_table_row_t* row = kilni_table_cuda_row((kilni_cuda_row_id_t)i);
    if (row->need == KILNI_NEED_OPTIONAL) continue;
    if (i == KILNI_CUDA_ROW_cuDriverGetVersion) continue;
    assert_non_null(strstr(text, row->symbol));
  }
  kiln_status_free(status);
}

static void the_toolkits_stand_in_is_refused_by_name(void** state) {
  (void)state;
  kiln_status_t status = must_not_open(FAKE_CUDA_STUB);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INCOMPATIBLE);
  assert_non_null(strstr(kiln_status_message(status), FAKE_CUDA_STUB));
  assert_non_null(strstr(kiln_status_fix(status), "stubs"));
  kiln_status_free(status);

  status = must_not_open(FAKE_CUDA_IN_STUBS);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INCOMPATIBLE);
  assert_non_null(strstr(kiln_status_message(status), "stand-in"));
  kiln_status_free(status);
}

static void a_library_that_is_no_driver_is_refused(void** state) {
  (void)state;
  kiln_status_t status = must_not_open(FAKE_CUDA_NOTHING);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INCOMPATIBLE);
  assert_non_null(strstr(kiln_status_message(status), "not a CUDA driver"));
  kiln_status_free(status);
}

static void an_absent_driver_is_not_found(void** state) {
  (void)state;
  kiln_status_t status = must_not_open("libkiln-no-driver.so.1");
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  assert_non_null(
      strstr(kiln_status_message(status), "libkiln-no-driver.so.1"));
  kiln_status_free(status);
}

static void the_environment_chooses_unless_the_caller_does(void** state) {
  (void)state;
  kilni_base_env_t env;
  assert_true(
      kiln_status_is_ok(kilni_base_env_init(&env, kiln_allocator_libc())));
  assert_true(kiln_status_is_ok(
      kilni_base_env_set(&env, KILNI_ENV_KILN_LIBCUDA, FAKE_CUDA_525)));
  const kiln_host_t host = host_with(kiln_allocator_libc(), &env);
  kiln_cuda_table_t table;
  kilni_base_dynlib_t* library = NULL;
  assert_true(kiln_status_is_ok(
      kilni_table_cuda_table_open(&host, NULL, &table, &library)));
  assert_string_equal(table.origin, FAKE_CUDA_525);
  kilni_base_dynlib_close(library);
  assert_true(kiln_status_is_ok(
      kilni_table_cuda_table_open(&host, FAKE_CUDA_NEW, &table, &library)));
  assert_string_equal(table.origin, FAKE_CUDA_NEW);
  kilni_base_dynlib_close(library);

  // A wrong choice is an error, not a reason to look elsewhere.
  assert_true(kiln_status_is_ok(
      kilni_base_env_set(&env, KILNI_ENV_KILN_LIBCUDA, "/no/such/libcuda.so")));
  kiln_status_t status =
      kilni_table_cuda_table_open(&host, NULL, &table, &library);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  assert_null(library);
  assert_non_null(strstr(kiln_status_fix(status), "KILN_LIBCUDA"));
  kiln_status_free(status);
  kilni_base_env_deinit(&env);
}

static kiln_status_t open_body(kiln_allocator_t allocator, void* user) {
  const kiln_host_t host = host_with(allocator, NULL);
  kiln_cuda_table_t table;
  kilni_base_dynlib_t* library = (kilni_base_dynlib_t*)&library;
  kiln_status_t status =
      kilni_table_cuda_table_open(&host, (const char*)user, &table, &library);
  assert_int_equal(kiln_status_is_ok(status), library != NULL);
  kilni_base_dynlib_close(library);
  return status;
}

static void a_failed_allocation_leaves_nothing(void** state) {
  (void)state;
  char path[] = FAKE_CUDA_NEW;
  assert_true(fault_run_allocations(open_body, path, 0) >= 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_come_by_pinned_version),
      cmocka_unit_test(a_driver_that_exports_nothing_can_be_asked),
      cmocka_unit_test(a_driver_that_cannot_be_asked_gives_exact_symbols),
      cmocka_unit_test(optional_rows_of_an_older_driver_are_absent),
      cmocka_unit_test(missing_rows_are_reported_all_at_once),
      cmocka_unit_test(the_toolkits_stand_in_is_refused_by_name),
      cmocka_unit_test(a_library_that_is_no_driver_is_refused),
      cmocka_unit_test(an_absent_driver_is_not_found),
      cmocka_unit_test(the_environment_chooses_unless_the_caller_does),
      cmocka_unit_test(a_failed_allocation_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
