// SPDX-License-Identifier: Apache-2.0
//
// table: tests of loading NVML, with libraries that the build makes in its
// place.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fault_run.h"
#include "table/nvml_table.h"

static kiln_host_t host_with(kiln_allocator_t allocator) {
  kiln_host_t host;
  memset(&host, 0, sizeof(host));
  host.allocator = allocator;
  return host;
}

static kilni_base_dynlib_t* must_open(const char* path,
                                      kiln_nvml_table_t* table) {
  kiln_host_t host = host_with(kiln_allocator_libc());
  kilni_base_dynlib_t* library = NULL;
  assert_null(kilni_table_nvml_table_open(&host, path, table, &library));
  assert_non_null(library);
  return library;
}

static kiln_status_t must_not_open(const char* path) {
  kiln_host_t host = host_with(kiln_allocator_libc());
  kiln_nvml_table_t table;
  kilni_base_dynlib_t* library = (kilni_base_dynlib_t*)&host;
  kiln_status_t status =
      kilni_table_nvml_table_open(&host, path, &table, &library);
  assert_false(kiln_status_is_ok(status));
  assert_null(library);
  assert_null(table.origin);
  assert_non_null(kiln_status_fix(status));
  return status;
}

static int sessions(const kilni_base_dynlib_t* library) {
  const int* count = kilni_base_dynlib_symbol(library, "kiln_fake_sessions");
  assert_non_null(count);
  return *count;
}

static void a_new_one_has_every_row(void** state) {
  (void)state;
  kiln_nvml_table_t table;
  kilni_base_dynlib_t* library = must_open(FAKE_NVML_NEW, &table);
  assert_string_equal(table.provider, "libnvidia-ml");
  assert_string_equal(table.origin, FAKE_NVML_NEW);
  for (unsigned i = 0; i < KILNI_NVML_ROW_COUNT; i++) {
    assert_true(kilni_table_nvml_has(&table, (kilni_nvml_row_id_t)i));
  }
  // Each row is bound to the symbol with its own suffix.
  assert_int_equal(table.nvmlDeviceGetCount(NULL),
                   10000 + KILNI_NVML_ROW_nvmlDeviceGetCount);
  assert_int_equal(table.nvmlDeviceGetMemoryInfo(NULL, NULL),
                   10000 + KILNI_NVML_ROW_nvmlDeviceGetMemoryInfo);
  assert_int_equal(table.nvmlDeviceGetMemoryInfo_v2(NULL, NULL),
                   10000 + KILNI_NVML_ROW_nvmlDeviceGetMemoryInfo_v2);
  kilni_base_dynlib_close(library);
}

static void an_older_one_lacks_what_came_later(void** state) {
  (void)state;
  kiln_nvml_table_t table;
  kilni_base_dynlib_t* library = must_open(FAKE_NVML_11_4, &table);
  for (unsigned i = 0; i < KILNI_NVML_ROW_COUNT; i++) {
    const kilni_nvml_row_id_t id = (kilni_nvml_row_id_t)i;
    const bool there = kilni_table_nvml_row(id)->version <= 11040;
    assert_int_equal(kilni_table_nvml_has(&table, id), there);
    kiln_status_t status = kilni_table_nvml_need(&table, id);
    assert_int_equal(kiln_status_is_ok(status), there);
    if (!there) {
      assert_int_equal(kiln_status_code(status), KILN_STATUS_UNSUPPORTED);
      assert_non_null(strstr(kiln_status_message(status),
                             kilni_table_nvml_row(id)->symbol));
    }
    kiln_status_free(status);
  }
  assert_int_equal(table.nvmlDeviceGetMemoryInfo_v2(NULL, NULL),
                   KILN_NVML_ERROR_FUNCTION_NOT_FOUND);
  kilni_base_dynlib_close(library);
}

static void other_libraries_are_refused(void** state) {
  (void)state;
  kiln_status_t status = must_not_open(FAKE_NVML_NOTHING);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INCOMPATIBLE);
  char text[4096];
  kiln_status_format(status, sizeof(text), text, NULL);
  assert_non_null(strstr(text, "nvmlInit_v2"));
  assert_non_null(strstr(text, "nvmlDeviceGetCount_v2"));
  assert_null(strstr(text, "nvmlDeviceGetName"));  // may be missing
  kiln_status_free(status);
  status = must_not_open("/no/such/libnvidia-ml.so.1");
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  kiln_status_free(status);
}

static void results_become_statuses(void** state) {
  (void)state;
  kiln_nvml_table_t table;
  kilni_base_dynlib_t* library = must_open(FAKE_NVML_NEW, &table);
  kiln_status_native_t native;
  assert_null(KILNI_NVML_STATUS(&table, KILN_NVML_SUCCESS, "nvmlInit"));
  kiln_status_t status =
      KILNI_NVML_STATUS(&table, KILN_NVML_ERROR_DRIVER_NOT_LOADED, "nvmlInit");
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  assert_true(kiln_status_native(status, &native));
  assert_string_equal(native.name, "NVML_ERROR_DRIVER_NOT_LOADED");
  assert_non_null(strstr(kiln_status_fix(status), "modprobe"));
  kiln_status_free(status);
  // What our list does not know, the library says.
  status = KILNI_NVML_STATUS(&table, 77, "nvmlInit");
  assert_int_equal(kiln_status_code(status), KILN_STATUS_DRIVER_ERROR);
  assert_non_null(strstr(kiln_status_message(status), "Seventy-Seven"));
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
  status = KILNI_NVML_STATUS(&table, KILN_NVML_ERROR_MEMORY, "nvmlInit");
  assert_int_equal(kiln_status_code(status), KILN_STATUS_OUT_OF_MEMORY);
  kilni_base_dynlib_close(library);
}

// ---- The release ----

static void ask(const char* path, size_t capacity, const char* wanted) {
  kiln_host_t host = host_with(kiln_allocator_libc());
  char text[64] = "untouched";
  assert_null(kilni_table_nvml_release_ask(&host, path, capacity, text));
  assert_string_equal(text, wanted);
}

static void the_release_is_asked(void** state) {
  (void)state;
  kiln_nvml_table_t table;
  kilni_base_dynlib_t* library = must_open(FAKE_NVML_NEW, &table);
  ask(FAKE_NVML_NEW, 64, "580.65.06");
  assert_int_equal(sessions(library), 0);
  ask(FAKE_NVML_NEW, 10, "580.65.06");
  ask(FAKE_NVML_NEW, 9, "");  // no space: nothing, and never half of it
  // A program that uses it too keeps its session.
  assert_int_equal(table.nvmlInit(), KILN_NVML_SUCCESS);
  ask(FAKE_NVML_NEW, 64, "580.65.06");
  assert_int_equal(sessions(library), 1);
  assert_int_equal(table.nvmlShutdown(), KILN_NVML_SUCCESS);
  kilni_base_dynlib_close(library);
}

static void what_is_no_release_is_none(void** state) {
  (void)state;
  ask(FAKE_NVML_WORDS, 64, "");
  ask(FAKE_NVML_DOWN, 64, "");
  ask(FAKE_NVML_NOTHING, 64, "");
  ask("/no/such/libnvidia-ml.so.1", 64, "");
}

// ---- Memory ----

static kiln_status_t open_body(kiln_allocator_t allocator, void* user) {
  (void)user;
  kiln_host_t host = host_with(allocator);
  kiln_nvml_table_t table;
  kilni_base_dynlib_t* library = NULL;
  kiln_status_t status =
      kilni_table_nvml_table_open(&host, FAKE_NVML_NEW, &table, &library);
  assert_int_equal(kiln_status_is_ok(status), library != NULL);
  kilni_base_dynlib_close(library);
  return status;
}

static kiln_status_t ask_body(kiln_allocator_t allocator, void* user) {
  (void)user;
  kiln_host_t host = host_with(allocator);
  char text[64];
  kiln_status_t status =
      kilni_table_nvml_release_ask(&host, FAKE_NVML_NEW, sizeof(text), text);
  assert_int_equal(kiln_status_is_ok(status), text[0] != 0);
  return status;
}

static void a_failed_allocation_leaves_nothing(void** state) {
  (void)state;
  assert_true(fault_run_allocations(open_body, NULL, 0) >= 1);
  assert_true(fault_run_allocations(ask_body, NULL, 0) >= 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_new_one_has_every_row),
      cmocka_unit_test(an_older_one_lacks_what_came_later),
      cmocka_unit_test(other_libraries_are_refused),
      cmocka_unit_test(results_become_statuses),
      cmocka_unit_test(the_release_is_asked),
      cmocka_unit_test(what_is_no_release_is_none),
      cmocka_unit_test(a_failed_allocation_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
