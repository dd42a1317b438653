// SPDX-License-Identifier: Apache-2.0
//
// cli: tests of what is one file under two names.
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cli_files.h"

static char folder[64];

// Everything lies in a folder of its own, which is the working directory:
// "file" exists, "link" leads to it, "hard" is it, "ahead" leads to "later",
// which does not exist.
static int make_folder(void** state) {
  (void)state;
  memcpy(folder, "/tmp/kiln-cli-XXXXXX", 21);
  if (mkdtemp(folder) == NULL || chdir(folder) != 0) return -1;
  int fd = open("file", O_CREAT | O_WRONLY, 0600);
  if (fd < 0 || close(fd) != 0) return -1;
  return symlink("file", "link") + link("file", "hard") +
         symlink("later", "ahead") + symlink("ahead", "further") +
         symlink("circle", "circle") + mkdir("sub", 0700) +
         symlink("..", "sub/up");
}

static int drop_folder(void** state) {
  (void)state;
  static const char* const names[] = {"file",    "link",   "hard",  "ahead",
                                      "further", "circle", "sub/up"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    if (unlink(names[i]) != 0) return -1;
  }
  return rmdir("sub") + chdir("/") + rmdir(folder);
}

static bool is_refused(const char* in, const char* out) {
  kilni_cli_files_t files = {0};
  kilni_cli_error_t error;
  assert_true(kilni_cli_files_add_input(&files, in, "the input", &error));
  bool ok = kilni_cli_files_add_output(&files, out, "-o", &error);
  kilni_cli_files_deinit(&files);
  if (ok) return false;
  assert_int_equal(error.code, KILN_STATUS_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, in));
  assert_non_null(strstr(error.message, out));
  assert_true(error.fix[0] != 0);
  // In the other order it is the same.
  assert_true(kilni_cli_files_add_output(&files, out, "-o", &error));
  assert_false(kilni_cli_files_add_input(&files, in, "the input", &error));
  kilni_cli_files_deinit(&files);
  return true;
}

static void one_file_by_any_name(void** state) {
  (void)state;
  char whole[128];
  (void)snprintf(whole, sizeof(whole), "%s/sub/../file", folder);
  assert_true(is_refused("file", "file"));
  assert_true(is_refused("file", "./file"));
  assert_true(is_refused("file", whole));
  assert_true(is_refused("file", "link"));
  assert_true(is_refused("link", "hard"));
  assert_true(is_refused("file", "sub/up/file"));
}

static void an_open_file_by_its_descriptor(void** state) {
  (void)state;
  char path[64];
  int fd = open("file", O_RDONLY);
  assert_true(fd >= 0);
  (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
  assert_true(is_refused(path, "hard"));
  assert_true(is_refused("hard", path));
  assert_int_equal(close(fd), 0);
}

static void a_file_that_is_not_there_yet(void** state) {
  (void)state;
  assert_true(is_refused("later", "./later"));
  assert_true(is_refused("later", "ahead"));
  assert_true(is_refused("ahead", "further"));
  assert_true(is_refused("sub/up/later", "further"));
  assert_false(is_refused("later", "sub/later"));
  assert_false(is_refused("nowhere/later", "later"));
  assert_false(is_refused("circle", "file"));
}

static void other_files(void** state) {
  (void)state;
  assert_false(is_refused("file", "later"));
  assert_false(is_refused("/dev/null", "/dev/null"));
  assert_false(is_refused("file", "/dev/null"));
}

static void inputs_may_be_one_file_and_outputs_not(void** state) {
  (void)state;
  kilni_cli_files_t files = {0};
  kilni_cli_error_t error;
  assert_true(kilni_cli_files_add_input(&files, "file", "--in a", &error));
  assert_true(kilni_cli_files_add_input(&files, "link", "--in b", &error));
  assert_true(kilni_cli_files_add_output(&files, "later", "--out c", &error));
  assert_false(kilni_cli_files_add_output(&files, "ahead", "--out d", &error));
  assert_non_null(strstr(error.message, "--out c"));
  assert_non_null(strstr(error.message, "--out d"));
  kilni_cli_files_deinit(&files);
}

// Only one that is there may have been read as a header.
static void outputs_that_are_there(void** state) {
  (void)state;
  static const struct {
    const char* path;
    bool replaces;
  } CASES[] = {{"file", true},     {"link", true},     {"later", false},
               {"ahead", false},   {"sub/new", false}, {"/dev/null", false},
               {"none/new", false}};
  for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
    kilni_cli_files_t files = {0};
    kilni_cli_error_t error;
    assert_false(kilni_cli_files_replaces(&files));
    assert_true(kilni_cli_files_add_input(&files, "hard", "the input", &error));
    assert_false(kilni_cli_files_replaces(&files));
    kilni_cli_files_deinit(&files);
    assert_true(
        kilni_cli_files_add_output(&files, CASES[i].path, "-o", &error));
    assert_int_equal(kilni_cli_files_replaces(&files), CASES[i].replaces);
    kilni_cli_files_deinit(&files);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_file_by_any_name),
      cmocka_unit_test(an_open_file_by_its_descriptor),
      cmocka_unit_test(a_file_that_is_not_there_yet),
      cmocka_unit_test(other_files),
      cmocka_unit_test(inputs_may_be_one_file_and_outputs_not),
      cmocka_unit_test(outputs_that_are_there),
  };
  return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
