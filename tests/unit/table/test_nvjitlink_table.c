// SPDX-License-Identifier: Apache-2.0
//
// table: nvJitLink as a provider of its table: the null one, the wrappers,
// fakes of several versions, and the real library where a toolkit has one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fault_run.h"
#include "trace_lines.h"
#include "table/cuda_table.h"
#include "table/nvjitlink_table.h"

// ---- Null and wrappers ----

static uint32_t make_and_end(const kiln_nvjitlink_table_t* table, bool twice) {
  kiln_nvjitlink_handle_t handle = NULL;
  uint32_t made = table->nvJitLinkCreate(&handle, 0, NULL);
  if (made != 0) {
    assert_null(handle);
    return made;
  }
  assert_non_null(handle);
  kiln_nvjitlink_handle_t again = handle;
  uint32_t ended = table->nvJitLinkDestroy(&handle);
  if (ended == 0) assert_null(handle);
  if (twice) assert_int_not_equal(table->nvJitLinkDestroy(&again), 0);
  return ended;
}

static void null_knows_its_handles(void** state) {
  (void)state;
  kiln_nvjitlink_table_t table;
  kilni_table_nvjitlink_table_null(&table);
  assert_string_equal(table.provider, "null");
  for (unsigned row = 0; row < KILNI_NVJITLINK_ROW_COUNT; row++) {
    assert_true(
        kilni_table_nvjitlink_has(&table, (kilni_nvjitlink_row_id_t)row));
    assert_null(
        kilni_table_nvjitlink_need(&table, (kilni_nvjitlink_row_id_t)row));
  }
  assert_int_equal(make_and_end(&table, false), 0);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_LINK), 0);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 0);
  assert_int_equal(make_and_end(&table, true), 0);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 1);
}

static void trace_says_what_goes_in_and_out(void** state) {
  (void)state;
  static log_t log;
  memset(&log, 0, sizeof(log));
  kiln_log_sink_t sink = {collect, &log, KILN_LOG_TRACE, 0};
  kiln_nvjitlink_table_t table;
  kilni_table_nvjitlink_table_null(&table);
  assert_null(kilni_table_nvjitlink_trace_install(&table, sink, &table));
  assert_string_equal(table.provider, "trace(null)");
  assert_int_equal(make_and_end(&table, false), 0);
  assert_non_null(strstr(log.text, "nvJitLinkCreate"));
  assert_non_null(strstr(log.text, "nvJitLinkDestroy"));
  kilni_table_nvjitlink_trace_remove(&table);
}

// A failed destroy ends its handle all the same; a failed create makes none.
static void fault_fails_the_chosen_call(void** state) {
  (void)state;
  kiln_nvjitlink_table_t table;
  kilni_table_nvjitlink_table_null(&table);
  assert_null(kilni_table_nvjitlink_fault_install(&table, &table));
  for (uint64_t nth = 1; nth <= 2; nth++) {
    kilni_table_nvjitlink_fault_arm(&table, nth, KILNI_FAULT_ONCE,
                                    KILN_NVJITLINK_ERROR_FINALIZE);
    assert_int_equal(make_and_end(&table, false),
                     KILN_NVJITLINK_ERROR_FINALIZE);
    assert_string_equal(kilni_table_nvjitlink_fault_hit(&table),
                        nth == 1 ? "nvJitLinkCreate" : "nvJitLinkDestroy");
    kilni_table_nvjitlink_fault_disarm(&table);
    assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_LINK), 0);
  }
  kilni_table_nvjitlink_fault_remove(&table);
}

// ---- Opening ----

static kiln_status_t open_with(kiln_allocator_t allocator, const char* path,
                               kiln_nvjitlink_table_t* table,
                               kilni_base_dynlib_t** out_library) {
  kiln_host_t host;
  memset(&host, 0, sizeof(host));
  host.allocator = allocator;
  return kilni_table_nvjitlink_table_open(&host, path, table, out_library);
}

static kiln_status_t open_fake(const char* path, kiln_nvjitlink_table_t* table,
                               kilni_base_dynlib_t** out_library) {
  return open_with(kiln_allocator_libc(), path, table, out_library);
}

static void a_new_one_has_every_row(void** state) {
  (void)state;
  kiln_nvjitlink_table_t table;
  kilni_base_dynlib_t* library;
  assert_null(open_fake(FAKE_NVJITLINK_NEW, &table, &library));
  assert_int_equal(table.major, 13);
  for (unsigned i = 0; i < KILNI_NVJITLINK_ROW_COUNT; i++) {
    assert_true(kilni_table_nvjitlink_has(&table, (kilni_nvjitlink_row_id_t)i));
  }
  assert_int_equal(table.nvJitLinkComplete(NULL),
                   10000 + KILNI_NVJITLINK_ROW_nvJitLinkComplete);
  kiln_status_t status =
      KILNI_NVJITLINK_STATUS(&table, 77, "nvJitLinkComplete");
  assert_int_equal(kiln_status_code(status), KILN_STATUS_LINK_FAILED);
  kiln_status_native_t native;
  assert_true(kiln_status_native(status, &native));
  assert_int_equal(native.number, 77);
  assert_string_equal(native.name, "unknown result");
  assert_non_null(strstr(kiln_status_fix(status), "13.3"));
  kiln_status_free(status);
  kilni_base_dynlib_close(library);
}

static void expect_refused(const char* path, kiln_status_code_t code,
                           const char* text) {
  kiln_nvjitlink_table_t table;
  kilni_base_dynlib_t* library;
  kiln_status_t status = open_fake(path, &table, &library);
  assert_null(library);
  assert_int_equal(kiln_status_code(status), code);
  assert_non_null(kiln_status_fix(status));
  char whole[4096];
  kiln_status_format(status, sizeof(whole), whole, NULL);
  assert_non_null(strstr(whole, text));
  kiln_status_free(status);
}

static void what_is_none_is_refused(void** state) {
  (void)state;
  expect_refused(FAKE_NVJITLINK_OLD, KILN_STATUS_INCOMPATIBLE,
                 "nvJitLinkAddData");
  expect_refused(FAKE_NVJITLINK_NOTHING, KILN_STATUS_INCOMPATIBLE,
                 "fake_nvjitlink_nothing");
  expect_refused("/no/such/library.so", KILN_STATUS_NOT_FOUND, "/no/such/");
}

static kiln_status_t open_body(kiln_allocator_t allocator, void* user) {
  kiln_nvjitlink_table_t table;
  kilni_base_dynlib_t* library;
  kiln_status_t status =
      open_with(allocator, (const char*)user, &table, &library);
  assert_int_equal(kiln_status_is_ok(status), library != NULL);
  kilni_base_dynlib_close(library);
  return status;
}

static void a_failed_allocation_leaves_nothing(void** state) {
  (void)state;
  char path[] = FAKE_NVJITLINK_NEW;
  assert_true(fault_run_allocations(open_body, path, 0) >= 1);
}

static void an_older_one_makes_no_ltoir(void** state) {
  (void)state;
  kiln_nvjitlink_table_t table;
  kilni_base_dynlib_t* library;
  assert_null(open_fake(FAKE_NVJITLINK_12_3, &table, &library));
  for (unsigned i = 0; i < KILNI_NVJITLINK_ROW_COUNT; i++) {
    const kilni_nvjitlink_row_id_t id = (kilni_nvjitlink_row_id_t)i;
    assert_int_equal(
        kilni_table_nvjitlink_has(&table, id),
        kilni_table_nvjitlink_row(id)->need == KILNI_NEED_REQUIRED);
  }
  kiln_status_t status = kilni_table_nvjitlink_need(
      &table, KILNI_NVJITLINK_ROW_nvJitLinkGetLinkedLTOIR);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_UNSUPPORTED);
  assert_non_null(strstr(kiln_status_message(status), "13.3"));
  kiln_status_free(status);
  kilni_base_dynlib_close(library);
}

// ---- The real one ----

#if defined(TEST_NVJITLINK)
static kilni_base_dynlib_t* volatile kept;  // a leak checker reaches through it

static void use_the_real_one(const kiln_nvjitlink_table_t* table) {
  static const char ptx[] =
      ".version 8.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry k() { ret; }\n";
  kiln_nvjitlink_handle_t link = NULL;
  const char* options[] = {"-arch=sm_90"};
  assert_int_equal(table->nvJitLinkCreate(&link, 1, options), 0);
  assert_int_equal(table->nvJitLinkAddData(link, KILN_NVJITLINK_INPUT_PTX, ptx,
                                           sizeof(ptx) - 1, "k.ptx"),
                   0);
  assert_int_equal(table->nvJitLinkComplete(link), 0);
  size_t bytes = 0;
  assert_int_equal(table->nvJitLinkGetLinkedCubinSize(link, &bytes), 0);
  char* code = calloc(1, bytes);
  assert_int_equal(table->nvJitLinkGetLinkedCubin(link, code), 0);
  assert_memory_equal(code, "\177ELF", 4);
  free(code);
  assert_int_equal(table->nvJitLinkDestroy(&link), 0);
  // Without an architecture there is no link.
  options[0] = "-O3";
  assert_int_equal(table->nvJitLinkCreate(&link, 1, options),
                   KILN_NVJITLINK_ERROR_MISSING_ARCH);
  if (link != NULL) assert_int_equal(table->nvJitLinkDestroy(&link), 0);
}
#endif

static void the_real_one_works_through_the_table(void** state) {
  (void)state;
#if !defined(TEST_NVJITLINK)
  print_message("no nvJitLink in CUDA_PATH, CUDA_HOME or /usr/local/cuda\n");
  skip();
#else
  kiln_nvjitlink_table_t table;
  kilni_base_dynlib_t* library;
  assert_null(open_fake(TEST_NVJITLINK, &table, &library));
  kept = library;
  use_the_real_one(&table);
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(null_knows_its_handles, fresh),
      cmocka_unit_test_setup(trace_says_what_goes_in_and_out, fresh),
      cmocka_unit_test_setup(fault_fails_the_chosen_call, fresh),
      cmocka_unit_test(a_new_one_has_every_row),
      cmocka_unit_test(what_is_none_is_refused),
      cmocka_unit_test(a_failed_allocation_leaves_nothing),
      cmocka_unit_test(an_older_one_makes_no_ltoir),
      cmocka_unit_test(the_real_one_works_through_the_table),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
