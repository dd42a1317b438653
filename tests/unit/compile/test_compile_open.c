// SPDX-License-Identifier: Apache-2.0
//
// compile: opening NVRTC where there is none, or a wrong one.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/dynlib.h"
#include "base/thread.h"
#include "compile/compile.h"
#include "locate/locate.h"

static kilni_env_t g_env;
static kiln_host_t g_host;

static int setup(void** state) {
  (void)state;
  memset(&g_env, 0, sizeof(g_env));
  g_env.allocator = kiln_allocator_libc();
  g_host.allocator = kiln_allocator_libc();
  g_host.env = &g_env;
  g_host.process_id = kilni_process_id();
  return 0;
}

static int teardown(void** state) {
  (void)state;
  kilni_env_deinit(&g_env);
  return 0;
}

static void test_a_file_that_is_no_library(void** state) {
  (void)state;
  char path[] = "/tmp/kiln-nvrtc-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(write(file, "no library", 10), 10);
  close(file);
  kilni_keep_t nobody = {0};
  kiln_locate_report_t* report = NULL;
  kiln_compiler_t* compiler = NULL;
  kiln_status_t status = kilni_compiler_open(
      &g_host, nobody, &(kilni_compiler_wish_t){path, NULL, false}, &report,
      &compiler);
  unlink(path);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  assert_null(compiler);
  assert_non_null(strstr(kiln_status_message(status), path));
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
  // The report says what became of it.
  assert_int_equal(kiln_locate_report_tried_count(report), 1);
  assert_string_equal(kiln_locate_report_tried(report, 0)->path, path);
  kiln_locate_report_release(report);
}

static void test_a_library_that_is_not_nvrtc(void** state) {
  (void)state;
  kilni_keep_t nobody = {0};
  kiln_compiler_t* compiler = NULL;
  kiln_status_t status = kilni_compiler_open(
      &g_host, nobody, &(kilni_compiler_wish_t){"libm.so.6", NULL, false}, NULL,
      &compiler);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INCOMPATIBLE);
  assert_null(compiler);
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
}

static void test_the_places_are_listed(void** state) {
  (void)state;
  // Where the system loader has one, that is found, whatever the disk says.
  kilni_dynlib_t* present = NULL;
  static const char* const names[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
  for (int i = 0; i < 2; i++) {
    kiln_status_t found =
        kilni_dynlib_open(kiln_allocator_libc(), names[i], &present);
    kiln_status_free(found);
    if (present == NULL) continue;
    kilni_dynlib_close(present);
    print_message("the system loader has %s\n", names[i]);
    skip();
  }
  kilni_keep_t nobody = {0};
  kiln_compiler_t* compiler = NULL;
  kiln_status_t status = kilni_compiler_open(
      &g_host, nobody,
      &(kilni_compiler_wish_t){NULL, "/nonexistent-root", false}, NULL,
      &compiler);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  char text[8192];
  kiln_status_format(status, sizeof(text), text, NULL);
  assert_non_null(strstr(text, "/nonexistent-root/usr/local/cuda"));
  assert_non_null(strstr(text, "CUDA_PATH"));
  assert_non_null(strstr(text, "libnvrtc.so.12"));
  assert_non_null(strstr(text, "Fix: "));
  kiln_status_free(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_a_file_that_is_no_library, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_a_library_that_is_not_nvrtc, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_the_places_are_listed, setup,
                                      teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
