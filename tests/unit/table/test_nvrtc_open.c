// SPDX-License-Identifier: Apache-2.0
//
// table: tests of loading NVRTC, with libraries that the build makes in its
// place and with the real one where a toolkit has it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fault_run.h"
#include "table/nvrtc_table.h"

static kiln_status_t open_with(kiln_allocator_t allocator, const char* path,
                               kiln_nvrtc_table_t* table,
                               kilni_base_dynlib_t** library) {
  kiln_host_t host;
  memset(&host, 0, sizeof(host));
  host.allocator = allocator;
  *library = (kilni_base_dynlib_t*)library;
  return kilni_table_nvrtc_table_open(&host, path, table, library);
}

static void must_open(const char* path, kiln_nvrtc_table_t* table,
                      kilni_base_dynlib_t** library) {
  kiln_status_t status = open_with(kiln_allocator_libc(), path, table, library);
  if (!kiln_status_is_ok(status)) {
    char text[4096];
    kiln_status_format(status, sizeof(text), text, NULL);
    kiln_status_free(status);
    fail_msg("%s", text);
  }
}

static kiln_status_t must_not_open(const char* path) {
  kiln_nvrtc_table_t table;
  kilni_base_dynlib_t* library;
  kiln_status_t status =
      open_with(kiln_allocator_libc(), path, &table, &library);
  assert_false(kiln_status_is_ok(status));
  assert_null(library);
  assert_null(table.origin);
  assert_non_null(kiln_status_fix(status));
  return status;
}

static void a_new_one_has_every_row(void** state) {
  (void)state;
  kiln_nvrtc_table_t table;
  kilni_base_dynlib_t* library;
  must_open(FAKE_NVRTC_NEW, &table, &library);
  assert_int_equal(table.major, 13);
  assert_int_equal(table.minor, 0);
  assert_string_equal(table.provider, "libnvrtc");
  assert_string_equal(table.origin, FAKE_NVRTC_NEW);
  for (unsigned i = 0; i < KILNI_NVRTC_ROW_COUNT; i++) {
    assert_true(kilni_table_nvrtc_has(&table, (kilni_nvrtc_row_id_t)i));
  }
  assert_int_equal(table.nvrtcGetPTX(NULL, NULL),
                   10000 + KILNI_NVRTC_ROW_nvrtcGetPTX);
  // What our list does not know, the library names.
  kiln_status_t status = KILNI_NVRTC_STATUS(&table, 77, "nvrtcGetPTX");
  kiln_status_native_t native;
  assert_true(kiln_status_native(status, &native));
  assert_string_equal(native.name, "NVRTC_ERROR_SEVENTY_SEVEN");
  assert_int_equal(kiln_status_code(status), KILN_STATUS_COMPILE_FAILED);
  kiln_status_free(status);
  kilni_base_dynlib_close(library);
}

static void optional_rows_of_an_older_one_are_absent(void** state) {
  (void)state;
  kiln_nvrtc_table_t table;
  kilni_base_dynlib_t* library;
  must_open(FAKE_NVRTC_12_0, &table, &library);
  for (unsigned i = 0; i < KILNI_NVRTC_ROW_COUNT; i++) {
    const kilni_nvrtc_row_id_t id = (kilni_nvrtc_row_id_t)i;
    assert_int_equal(kilni_table_nvrtc_has(&table, id),
                     kilni_table_nvrtc_row(id)->need == KILNI_NEED_REQUIRED);
  }
  assert_int_equal(table.nvrtcSetPCHHeapSize(1),
                   KILN_NVRTC_ERROR_INTERNAL_ERROR);
  kilni_base_dynlib_close(library);
}

static void missing_rows_are_reported_all_at_once(void** state) {
  (void)state;
  kiln_status_t status = must_not_open(FAKE_NVRTC_8_0);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INCOMPATIBLE);
  char text[4096];
  kiln_status_format(status, sizeof(text), text, NULL);
  assert_non_null(strstr(text, "NVRTC 8.0"));
  assert_non_null(strstr(text, "nvrtcGetCUBIN,"));
  assert_non_null(strstr(text, "nvrtcGetLTOIR,"));
  assert_non_null(strstr(text, "nvrtcGetSupportedArchs,"));
  assert_null(strstr(text, "nvrtcGetPTX"));
  assert_null(strstr(text, "PCH"));
  kiln_status_free(status);
}

static void other_libraries_are_refused(void** state) {
  (void)state;
  kiln_status_t status = must_not_open(FAKE_NVRTC_NOTHING);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INCOMPATIBLE);
  assert_non_null(strstr(kiln_status_message(status), "not an NVRTC"));
  kiln_status_free(status);
  status = must_not_open("/no/such/libnvrtc.so.13");
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  assert_non_null(strstr(kiln_status_message(status), "/no/such/"));
  kiln_status_free(status);
}

static kiln_status_t open_body(kiln_allocator_t allocator, void* user) {
  kiln_nvrtc_table_t table;
  kilni_base_dynlib_t* library;
  kiln_status_t status =
      open_with(allocator, (const char*)user, &table, &library);
  assert_int_equal(kiln_status_is_ok(status), library != NULL);
  kilni_base_dynlib_close(library);
  return status;
}

static void a_failed_allocation_leaves_nothing(void** state) {
  (void)state;
  char path[] = FAKE_NVRTC_NEW;
  assert_true(fault_run_allocations(open_body, path, 0) >= 1);
}

#if defined(TEST_NVRTC)
static kilni_base_dynlib_t* volatile kept;
#endif

static void the_real_one_compiles_through_the_table(void** state) {
  (void)state;
#if !defined(TEST_NVRTC)
  print_message("no NVRTC in CUDA_PATH, CUDA_HOME or /usr/local/cuda\n");
  skip();
#else
  kiln_nvrtc_table_t table;
  kilni_base_dynlib_t* library;
  must_open(TEST_NVRTC, &table, &library);
  assert_true(table.major >= 12);
  int count = 0;
  assert_int_equal(table.nvrtcGetNumSupportedArchs(&count), 0);
  assert_in_range(count, 1, 64);
  int archs[64];
  assert_int_equal(table.nvrtcGetSupportedArchs(archs), 0);

  kiln_nvrtc_program_t program = NULL;
  assert_int_equal(
      table.nvrtcCreateProgram(
          &program, "template<class T> __global__ void k(T* p) { *p = T(1); }",
          "k.cu", 0, NULL, NULL),
      KILN_NVRTC_SUCCESS);
  const char* lowered = NULL;
  assert_int_equal(table.nvrtcGetLoweredName(program, "k<float>", &lowered),
                   KILN_NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION);
  assert_int_equal(table.nvrtcAddNameExpression(program, "k<float>"), 0);
  const char* options[] = {"--gpu-architecture=compute_90"};
  assert_int_equal(table.nvrtcCompileProgram(program, 1, options), 0);
  assert_int_equal(table.nvrtcGetLoweredName(program, "k<float>", &lowered), 0);
  assert_string_equal(lowered, "_Z1kIfEvPT_");
  size_t bytes = 0;
  assert_int_equal(table.nvrtcGetPTXSize(program, &bytes), 0);
  char* text = calloc(1, bytes + 1);
  assert_int_equal(table.nvrtcGetPTX(program, text), 0);
  assert_non_null(strstr(text, ".entry _Z1kIfEvPT_"));
  free(text);
  assert_int_equal(table.nvrtcDestroyProgram(&program), 0);
  assert_null(program);

  assert_int_equal(
      table.nvrtcCreateProgram(&program, "int x = ;", "bad.cu", 0, NULL, NULL),
      0);
  assert_int_equal(table.nvrtcCompileProgram(program, 0, NULL),
                   KILN_NVRTC_ERROR_COMPILATION);
  assert_int_equal(table.nvrtcGetProgramLogSize(program, &bytes), 0);
  assert_true(bytes > 1);
  assert_int_equal(table.nvrtcDestroyProgram(&program), 0);
  // Every result has the library's own name.
#define KILNI_NVRTC_RESULT(name, number, status, fix)           \
  if (number <= 11) {                                           \
    assert_string_equal(table.nvrtcGetErrorString(number),      \
                        kilni_table_nvrtc_result_name(number)); \
  }
#include "table/nvrtc_results.inc"
#undef KILNI_NVRTC_RESULT
  // It stays open: its C++ runtime holds memory that only it can reach, which
  // a leak checker would report once it is unloaded.
  kept = library;
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_new_one_has_every_row),
      cmocka_unit_test(optional_rows_of_an_older_one_are_absent),
      cmocka_unit_test(missing_rows_are_reported_all_at_once),
      cmocka_unit_test(other_libraries_are_refused),
      cmocka_unit_test(a_failed_allocation_leaves_nothing),
      cmocka_unit_test(the_real_one_compiles_through_the_table),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
