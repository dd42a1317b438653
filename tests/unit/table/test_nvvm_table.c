// SPDX-License-Identifier: Apache-2.0
//
// table: libNVVM as a provider of its table: the null one, the wrappers, fakes
// of several versions, and the real library where a toolkit has one.
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
#include "table/nvvm_table.h"

// ---- Null and wrappers ----

static uint32_t make_and_end(const kiln_nvvm_table_t* table, bool twice) {
  kiln_nvvm_program_t handle = NULL;
  uint32_t made = table->nvvmCreateProgram(&handle);
  if (made != 0) {
    assert_null(handle);
    return made;
  }
  assert_non_null(handle);
  kiln_nvvm_program_t again = handle;
  uint32_t ended = table->nvvmDestroyProgram(&handle);
  if (ended == 0) assert_null(handle);
  if (twice) assert_int_not_equal(table->nvvmDestroyProgram(&again), 0);
  return ended;
}

static void null_knows_its_handles(void** state) {
  (void)state;
  kiln_nvvm_table_t table;
  kilni_table_nvvm_table_null(&table);
  assert_string_equal(table.provider, "null");
  for (unsigned row = 0; row < KILNI_NVVM_ROW_COUNT; row++) {
    assert_true(kilni_table_nvvm_has(&table, (kilni_nvvm_row_id_t)row));
    assert_null(kilni_table_nvvm_need(&table, (kilni_nvvm_row_id_t)row));
  }
  assert_int_equal(make_and_end(&table, false), 0);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_PROGRAM), 0);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 0);
  assert_int_equal(make_and_end(&table, true), 0);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 1);
}

static void trace_says_what_goes_in_and_out(void** state) {
  (void)state;
  static log_t log;
  memset(&log, 0, sizeof(log));
  kiln_log_sink_t sink = {collect, &log, KILN_LOG_TRACE, 0};
  kiln_nvvm_table_t table;
  kilni_table_nvvm_table_null(&table);
  assert_null(kilni_table_nvvm_trace_install(&table, sink, &table));
  assert_string_equal(table.provider, "trace(null)");
  assert_int_equal(make_and_end(&table, false), 0);
  assert_non_null(strstr(log.text, "nvvmCreateProgram"));
  assert_non_null(strstr(log.text, "nvvmDestroyProgram"));
  kilni_table_nvvm_trace_remove(&table);
}

// A failed destroy ends its handle all the same; a failed create makes none.
static void fault_fails_the_chosen_call(void** state) {
  (void)state;
  kiln_nvvm_table_t table;
  kilni_table_nvvm_table_null(&table);
  assert_null(kilni_table_nvvm_fault_install(&table, &table));
  for (uint64_t nth = 1; nth <= 2; nth++) {
    kilni_table_nvvm_fault_arm(&table, nth, KILNI_FAULT_ONCE,
                               KILN_NVVM_ERROR_COMPILATION);
    assert_int_equal(make_and_end(&table, false), KILN_NVVM_ERROR_COMPILATION);
    assert_string_equal(kilni_table_nvvm_fault_hit(&table),
                        nth == 1 ? "nvvmCreateProgram" : "nvvmDestroyProgram");
    kilni_table_nvvm_fault_disarm(&table);
    assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_PROGRAM), 0);
  }
  kilni_table_nvvm_fault_remove(&table);
}

// ---- Opening ----

static kiln_status_t open_with(kiln_allocator_t allocator, const char* path,
                               kiln_nvvm_table_t* table,
                               kilni_base_dynlib_t** out_library) {
  kiln_host_t host;
  memset(&host, 0, sizeof(host));
  host.allocator = allocator;
  return kilni_table_nvvm_table_open(&host, path, table, out_library);
}

static kiln_status_t open_fake(const char* path, kiln_nvvm_table_t* table,
                               kilni_base_dynlib_t** out_library) {
  return open_with(kiln_allocator_libc(), path, table, out_library);
}

static void a_new_one_has_every_row(void** state) {
  (void)state;
  kiln_nvvm_table_t table;
  kilni_base_dynlib_t* library;
  assert_null(open_fake(FAKE_NVVM_NEW, &table, &library));
  assert_int_equal(table.major, 13);
  for (unsigned i = 0; i < KILNI_NVVM_ROW_COUNT; i++) {
    assert_true(kilni_table_nvvm_has(&table, (kilni_nvvm_row_id_t)i));
  }
  assert_int_equal(table.nvvmGetCompiledResult(NULL, NULL),
                   10000 + KILNI_NVVM_ROW_nvvmGetCompiledResult);
  kiln_status_t status = KILNI_NVVM_STATUS(&table, 77, "nvvmGetCompiledResult");
  assert_int_equal(kiln_status_code(status), KILN_STATUS_COMPILE_FAILED);
  kiln_status_native_t native;
  assert_true(kiln_status_native(status, &native));
  assert_int_equal(native.number, 77);
  assert_string_equal(native.name, "NVVM_ERROR_SEVENTY_SEVEN");
  assert_non_null(strstr(kiln_status_fix(status), "13.3"));
  kiln_status_free(status);
  kilni_base_dynlib_close(library);
}

static void expect_refused(const char* path, kiln_status_code_t code,
                           const char* text) {
  kiln_nvvm_table_t table;
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
  expect_refused(FAKE_NVVM_OLD, KILN_STATUS_INCOMPATIBLE,
                 "nvvmLazyAddModuleToProgram");
  expect_refused(FAKE_NVVM_NOTHING, KILN_STATUS_INCOMPATIBLE,
                 "fake_nvvm_nothing");
  expect_refused("/no/such/library.so", KILN_STATUS_NOT_FOUND, "/no/such/");
}

static kiln_status_t open_body(kiln_allocator_t allocator, void* user) {
  kiln_nvvm_table_t table;
  kilni_base_dynlib_t* library;
  kiln_status_t status =
      open_with(allocator, (const char*)user, &table, &library);
  assert_int_equal(kiln_status_is_ok(status), library != NULL);
  kilni_base_dynlib_close(library);
  return status;
}

static void a_failed_allocation_leaves_nothing(void** state) {
  (void)state;
  char path[] = FAKE_NVVM_NEW;
  assert_true(fault_run_allocations(open_body, path, 0) >= 1);
}

// ---- The real one ----

#if defined(TEST_NVVM)
static kilni_base_dynlib_t* volatile kept;  // a leak checker reaches through it

static void use_the_real_one(const kiln_nvvm_table_t* table) {
  static const char ir[] =
      "target datalayout = \"e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-"
      "i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-"
      "v64:64:64-v128:128:128-n16:32:64\"\n"
      "target triple = \"nvptx64-nvidia-cuda\"\n"
      "define void @k() {\n  ret void\n}\n"
      "!nvvm.annotations = !{!0}\n"
      "!0 = !{void ()* @k, !\"kernel\", i32 1}\n"
      "!nvvmir.version = !{!1}\n!1 = !{i32 2, i32 0}\n";
  int version[4];
  assert_int_equal(
      table->nvvmIRVersion(&version[0], &version[1], &version[2], &version[3]),
      0);
  assert_true(version[0] >= 1);
  kiln_nvvm_program_t program = NULL;
  assert_int_equal(table->nvvmCreateProgram(&program), 0);
  assert_int_equal(
      table->nvvmAddModuleToProgram(program, ir, sizeof(ir) - 1, "k"), 0);
  const char* options[] = {"-arch=compute_90"};
  uint32_t result = table->nvvmCompileProgram(program, 1, options);
  size_t bytes = 0;
  assert_int_equal(table->nvvmGetProgramLogSize(program, &bytes), 0);
  char* text = calloc(1, bytes + 1);
  assert_int_equal(table->nvvmGetProgramLog(program, text), 0);
  if (result != 0) print_error("%s\n", text);
  assert_int_equal(result, 0);
  free(text);
  assert_int_equal(table->nvvmGetCompiledResultSize(program, &bytes), 0);
  text = calloc(1, bytes + 1);
  assert_int_equal(table->nvvmGetCompiledResult(program, text), 0);
  assert_non_null(strstr(text, ".entry k"));
  free(text);
  assert_int_equal(table->nvvmDestroyProgram(&program), 0);
  // Every result has the library's own name.
#define KILNI_NVVM_RESULT(name, number, status, fix)           \
  if (number <= 9) {                                           \
    assert_string_equal(table->nvvmGetErrorString(number),     \
                        kilni_table_nvvm_result_name(number)); \
  }
#include "table/nvvm_results.inc"
#undef KILNI_NVVM_RESULT
}
#endif

static void the_real_one_works_through_the_table(void** state) {
  (void)state;
#if !defined(TEST_NVVM)
  print_message("no libNVVM in CUDA_PATH, CUDA_HOME or /usr/local/cuda\n");
  skip();
#else
  kiln_nvvm_table_t table;
  kilni_base_dynlib_t* library;
  assert_null(open_fake(TEST_NVVM, &table, &library));
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
      cmocka_unit_test(the_real_one_works_through_the_table),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
