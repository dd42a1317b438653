// SPDX-License-Identifier: Apache-2.0
//
// base: tests: questions about paths.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/path.h"

enum { PATH_BYTES = 4096 };  // what realpath may write

// root/real/in/file, and root/link leads to real.
static char g_root[PATH_BYTES];

static const char* at(const char* name) {
  static char path[2 * PATH_BYTES];
  snprintf(path, sizeof(path), "%s/%s", g_root, name);
  return path;
}

static int make(void** state) {
  (void)state;
  char made[] = "/tmp/kiln-path-XXXXXX";
  if (mkdtemp(made) == NULL || realpath(made, g_root) == NULL) return 1;
  if (mkdir(at("real"), 0700) != 0 || mkdir(at("real/in"), 0700) != 0) return 1;
  FILE* file = fopen(at("real/in/file"), "w");
  if (file == NULL || fclose(file) != 0) return 1;
  return symlink("real", at("link")) != 0 ||
         symlink("in/file", at("real/to_file")) != 0 ||
         symlink("nowhere", at("real/to_nothing")) != 0;
}

static int clear(void** state) {
  (void)state;
  return unlink(at("real/in/file")) != 0 || unlink(at("real/to_file")) != 0 ||
         unlink(at("real/to_nothing")) != 0 || unlink(at("link")) != 0 ||
         rmdir(at("real/in")) != 0 || rmdir(at("real")) != 0 ||
         rmdir(g_root) != 0;
}

static void test_links_are_seen(void** state) {
  (void)state;
  if (!kilni_base_path_has_no_link("/")) {
    print_message("the system cannot be asked whether a path has links\n");
    skip();
  }
  assert_true(kilni_base_path_has_no_link(at("real/in/file")));
  assert_true(kilni_base_path_has_no_link(at("real/in")));
  assert_false(kilni_base_path_has_no_link(at("link/in/file")));
  assert_false(kilni_base_path_has_no_link(at("real/to_file")));
  assert_false(kilni_base_path_has_no_link(at("link")));
  assert_false(kilni_base_path_has_no_link(at("real/missing")));
  assert_false(kilni_base_path_has_no_link(at("real/in/file/below")));
}

static void test_files_of_a_folder(void** state) {
  (void)state;
  const char* names[] = {"in", "to_file", "to_nothing", "missing", "to_file"};
  assert_int_equal(kilni_base_path_files_in(at("real"), names, 5), 0x12);
  assert_int_equal(kilni_base_path_files_in(at("link"), names, 2), 0x2);
  assert_int_equal(kilni_base_path_files_in(at("real"), names, 0), 0);
  assert_int_equal(kilni_base_path_files_in(at("missing"), names, 5), 0);
  assert_int_equal(kilni_base_path_files_in(at("real/in/file"), names, 5), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_links_are_seen),
      cmocka_unit_test(test_files_of_a_folder),
  };
  return cmocka_run_group_tests(tests, make, clear);
}
