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

#include "base/thread.h"
#include "compile/compile.h"
#include "kiln/locate.h"
#include "kiln/toolkit.h"
#include "toolkit/toolkit.h"

static kilni_base_env_t g_env;
static kiln_host_t g_host;
static kiln_toolkit_t* g_toolkit;

static int setup(void** state) {
  (void)state;
  memset(&g_env, 0, sizeof(g_env));
  g_env.allocator = kiln_allocator_libc();
  g_host.allocator = kiln_allocator_libc();
  g_host.env = &g_env;
  g_host.process_id = kilni_base_process_id();
  kiln_locate_options_t where = kiln_locate_options_default();
  where.system_root = "/nonexistent-root";
  kiln_toolkit_options_t options = kiln_toolkit_options_default();
  options.locate = &where;
  assert_null(kilni_toolkit_create(&options, &g_env, &g_toolkit));
  return 0;
}

static int teardown(void** state) {
  (void)state;
  kiln_toolkit_release(g_toolkit);
  kilni_base_env_deinit(&g_env);
  return 0;
}

static void test_a_file_that_is_no_library(void** state) {
  (void)state;
  char path[] = "/tmp/kiln-nvrtc-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(write(file, "no library", 10), 10);
  close(file);
  kilni_base_keep_t nobody = {0};
  kiln_compiler_t* compiler = NULL;
  kiln_status_t status = kilni_compile_compiler_open(
      &g_host, nobody,
      &(kilni_compile_compiler_wish_t){.toolkit = g_toolkit, .library = path},
      NULL, &compiler);
  unlink(path);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  assert_null(compiler);
  assert_non_null(strstr(kiln_status_message(status), path));
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
}

static void test_a_library_that_is_not_nvrtc(void** state) {
  (void)state;
  kilni_base_keep_t nobody = {0};
  kiln_compiler_t* compiler = NULL;
  kiln_status_t status = kilni_compile_compiler_open(
      &g_host, nobody,
      &(kilni_compile_compiler_wish_t){.toolkit = g_toolkit,
                                       .library = "libm.so.6"},
      NULL, &compiler);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INCOMPATIBLE);
  assert_null(compiler);
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
}

static void test_the_places_are_listed(void** state) {
  (void)state;
  kilni_base_keep_t nobody = {0};
  kiln_compiler_t* compiler = NULL;
  kiln_status_t status = kilni_compile_compiler_open(
      &g_host, nobody,
      &(kilni_compile_compiler_wish_t){.toolkit = g_toolkit, .library = NULL},
      NULL, &compiler);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_NOT_FOUND);
  char text[8192];
  kiln_status_format(status, sizeof(text), text, NULL);
  assert_non_null(strstr(text, "/nonexistent-root/usr/local/cuda"));
  assert_non_null(strstr(text, "KILN_LOCATE_LIB_NVRTC"));
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
