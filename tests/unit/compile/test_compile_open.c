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
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread.h"
#include "compile/compile.h"
#include "kiln/locate.h"
#include "kiln/toolkit.h"
#include "locate/locate_inside.h"
#include "toolkit/toolkit.h"

static unsigned g_whole_searches;  // of every place
static unsigned g_looks_in_roots;  // of one root alone

kiln_status_t __real_kilni_locate_search(kiln_locate_t* locate,
                                         const kilni_locate_search_plan_t* plan,
                                         kiln_locate_item_t** out_item);
kiln_status_t __wrap_kilni_locate_search(kiln_locate_t* locate,
                                         const kilni_locate_search_plan_t* plan,
                                         kiln_locate_item_t** out_item);
kiln_status_t __wrap_kilni_locate_search(kiln_locate_t* locate,
                                         const kilni_locate_search_plan_t* plan,
                                         kiln_locate_item_t** out_item) {
  g_whole_searches += plan->root == NULL;
  g_looks_in_roots += plan->root != NULL;
  return __real_kilni_locate_search(locate, plan, out_item);
}

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

// ---- One search for the compiler and what goes with it ----

static void put_file(const char* root, const char* name, const char* text) {
  char path[512];
  snprintf(path, sizeof(path), "%s/%s", root, name);
  for (char* at = path + 1; *at != 0; at++) {
    if (*at != '/') continue;
    *at = 0;
    (void)mkdir(path, 0777);
    *at = '/';
  }
  FILE* file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

// NVRTC is not loaded before something is compiled, so that any file will do.
static void put_compiler(const char* root) {
  put_file(root, "lib64/libnvrtc.so.13", "no library");
  put_file(root, "version.json", "{\"cuda\": {\"version\": \"13.0.0\"}}\n");
}

static void put_headers(const char* root) {
  put_file(root, "include/cuda_runtime.h", "\n");
  put_file(root, "include/cccl/cuda/std/version", "\n");
}

// Two roots, the first of which has NVRTC. one-thread
typedef struct toolkits_t {
  char folder[32];
  char roots[2][48];
} toolkits_t;

static void make_toolkits(toolkits_t* made) {
  char folder[] = "/tmp/kiln-once-XXXXXX";
  assert_non_null(mkdtemp(folder));
  memcpy(made->folder, folder, sizeof(folder));
  for (int i = 0; i < 2; i++) {
    snprintf(made->roots[i], sizeof(made->roots[i]), "%s/cuda%d", folder, i);
    put_file(made->roots[i], "lib64/readme", "\n");
  }
  put_compiler(made->roots[0]);
}

static void end_toolkits(const toolkits_t* made) {
  char line[64];
  snprintf(line, sizeof(line), "rm -rf '%s'", made->folder);
  assert_int_equal(system(line), 0);
}

// Opens the compiler, whose headers must be those of `root`.
static void open_lazily(const toolkits_t* made,
                        const kiln_locate_override_t* named, const char* root) {
  const char* roots[] = {made->roots[0], made->roots[1]};
  kiln_locate_options_t where = kiln_locate_options_default();
  kiln_toolkit_options_t options = kiln_toolkit_options_default();
  kiln_toolkit_t* toolkit = NULL;
  kiln_compiler_t* compiler = NULL;
  kilni_base_keep_t nobody = {0};
  where.roots = roots;
  where.root_count = 2;
  where.hermetic = KILN_SWITCH_ON;
  where.overrides = named;
  where.override_count = named != NULL ? 1 : 0;
  options.locate = &where;
  assert_null(kilni_toolkit_create(&options, &g_env, &toolkit));
  g_whole_searches = 0;
  g_looks_in_roots = 0;
  assert_null(kilni_compile_compiler_open(
      &g_host, nobody,
      &(kilni_compile_compiler_wish_t){.toolkit = toolkit, .lazy = true}, NULL,
      &compiler));
  char wanted[64];
  snprintf(wanted, sizeof(wanted), "%s/include", root);
  assert_string_equal(kiln_compiler_include_dir(compiler), wanted);
  kiln_compiler_release(compiler);
  kiln_toolkit_release(toolkit);
}

static void test_one_search_finds_all_of_a_toolkit(void** state) {
  (void)state;
  toolkits_t made;
  make_toolkits(&made);
  put_headers(made.roots[0]);
  put_headers(made.roots[1]);
  open_lazily(&made, NULL, made.roots[0]);
  // For NVRTC; its headers are looked for beside it.
  assert_int_equal(g_whole_searches, 1);
  assert_int_equal(g_looks_in_roots, 2);
  end_toolkits(&made);
}

static void test_headers_that_are_not_beside_it_are_searched(void** state) {
  (void)state;
  toolkits_t made;
  make_toolkits(&made);
  put_headers(made.roots[1]);
  open_lazily(&made, NULL, made.roots[1]);
  assert_int_equal(g_whole_searches, 3);
  end_toolkits(&made);
}

static void test_headers_that_are_named_win(void** state) {
  (void)state;
  toolkits_t made;
  make_toolkits(&made);
  put_headers(made.roots[0]);
  put_headers(made.roots[1]);
  kiln_locate_override_t named = {KILN_LOCATE_KIND_HEADER, 0, "cudart",
                                  made.roots[1]};
  open_lazily(&made, &named, made.roots[1]);
  assert_int_equal(g_whole_searches, 2);
  assert_int_equal(g_looks_in_roots, 1);
  end_toolkits(&made);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_a_file_that_is_no_library, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_a_library_that_is_not_nvrtc, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_the_places_are_listed, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_one_search_finds_all_of_a_toolkit,
                                      setup, teardown),
      cmocka_unit_test_setup_teardown(
          test_headers_that_are_not_beside_it_are_searched, setup, teardown),
      cmocka_unit_test_setup_teardown(test_headers_that_are_named_win, setup,
                                      teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
