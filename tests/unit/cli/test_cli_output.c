// SPDX-License-Identifier: Apache-2.0
//
// cli: tests of writing output files.
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cli_output.h"

static char folder[64];

static int make_folder(void** state) {
  (void)state;
  memcpy(folder, "/tmp/kiln-cli-XXXXXX", 21);
  return mkdtemp(folder) == NULL;
}

// Deletes what is in the folder and counts it.
static int empty_folder(void) {
  int count = 0;
  DIR* dir = opendir(folder);
  assert_non_null(dir);
  for (struct dirent* e = readdir(dir); e != NULL; e = readdir(dir)) {
    char path[400];
    if (e->d_name[0] == '.') continue;
    (void)snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
    assert_int_equal(unlink(path), 0);
    count++;
  }
  (void)closedir(dir);
  return count;
}

static int drop_folder(void** state) {
  (void)state;
  (void)empty_folder();
  return rmdir(folder);
}

static char paths[3][128];

static void prepare(kilni_cli_output_t out[3], size_t size) {
  kilni_cli_error_t error;
  memset(out, 0, 3 * sizeof(out[0]));
  for (int i = 0; i < 3; i++) {
    (void)snprintf(paths[i], sizeof(paths[i]), "%s/%d", folder, i);
    out[i].path = paths[i];
    assert_true(kilni_cli_buffer_resize(&out[i].content, size, &error));
    memset(out[i].content.data, '0' + i, size);
  }
}

static void all_are_written(void** state) {
  (void)state;
  kilni_cli_output_t out[3];
  kilni_cli_error_t error;
  struct stat st;
  prepare(out, 5000);
  assert_true(kilni_cli_outputs_write(out, 3, &error));
  assert_int_equal(stat(paths[2], &st), 0);
  assert_int_equal(st.st_size, 5000);
  // Again: what is there is replaced, and keeps its rights.
  assert_int_equal(chmod(paths[2], 0600), 0);
  kilni_cli_outputs_deinit(out, 3);
  prepare(out, 7);
  assert_true(kilni_cli_outputs_write(out, 3, &error));
  kilni_cli_outputs_deinit(out, 3);
  assert_int_equal(stat(paths[2], &st), 0);
  assert_int_equal(st.st_size, 7);
  assert_int_equal(st.st_mode & 0777, 0600);
  assert_int_equal(empty_folder(), 3);
}

static void a_link_is_followed(void** state) {
  (void)state;
  kilni_cli_output_t out[3];
  kilni_cli_error_t error;
  struct stat st;
  prepare(out, 3);
  assert_true(kilni_cli_outputs_write(out, 1, &error));
  assert_int_equal(symlink(paths[0], paths[1]), 0);
  assert_true(kilni_cli_outputs_write(out + 1, 1, &error));
  kilni_cli_outputs_deinit(out, 3);
  assert_int_equal(lstat(paths[1], &st), 0);
  assert_true(S_ISLNK(st.st_mode));
  FILE* file = fopen(paths[0], "r");
  assert_non_null(file);
  assert_int_equal(fgetc(file), '1');
  (void)fclose(file);
  assert_int_equal(empty_folder(), 2);
}

static void a_full_device_leaves_nothing(void** state) {
  (void)state;
  kilni_cli_output_t out[3];
  kilni_cli_error_t error;
  prepare(out, 100);
  out[1].path = "/dev/full";
  assert_false(kilni_cli_outputs_write(out, 3, &error));
  assert_int_equal(error.code, KILN_STATUS_IO_ERROR);
  assert_non_null(strstr(error.message, "/dev/full"));
  assert_int_equal(empty_folder(), 0);
  kilni_cli_outputs_deinit(out, 3);
}

// A limit on the size of files stands in for a full disk: the second file does
// not fit.
static void a_full_disk_leaves_nothing(void** state) {
  (void)state;
  kilni_cli_output_t out[3];
  kilni_cli_error_t error;
  struct rlimit old, small;
  prepare(out, 1000);
  assert_true(kilni_cli_buffer_resize(&out[1].content, 9000, &error));
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  small = old;
  small.rlim_cur = 4096;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  bool ok = kilni_cli_outputs_write(out, 3, &error);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
  assert_false(ok);
  assert_int_equal(error.code, KILN_STATUS_IO_ERROR);
  assert_int_equal(empty_folder(), 0);
  kilni_cli_outputs_deinit(out, 3);
}

static void a_missing_folder_is_found_early_and_late(void** state) {
  (void)state;
  kilni_cli_output_t out[3];
  kilni_cli_error_t error;
  prepare(out, 10);
  out[2].path = "/nowhere/at/all";
  assert_false(kilni_cli_output_check(out[2].path, &error));
  assert_int_equal(error.code, KILN_STATUS_NOT_FOUND);
  assert_false(kilni_cli_output_check(folder, &error));
  assert_true(kilni_cli_output_check(paths[0], &error));
  assert_true(kilni_cli_output_check("/dev/null", &error));
  assert_false(kilni_cli_outputs_write(out, 3, &error));
  assert_int_equal(error.code, KILN_STATUS_NOT_FOUND);
  assert_int_equal(empty_folder(), 0);
  kilni_cli_outputs_deinit(out, 3);
}

// The first file lies there under its other name when the pipe gets its bytes,
// and the pipe holds fewer than it shall get.
static void leave_by(int number) {
  char byte;
  int status = 0;
  kilni_cli_output_t out[3];
  kilni_cli_error_t error;
  prepare(out, (size_t)4 << 20);
  assert_int_equal(mkfifo(paths[1], 0600), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(kilni_cli_outputs_write(out, 3, &error) ? 0 : 1);
  int fd = open(paths[1], O_RDONLY);
  assert_true(fd >= 0);
  assert_int_equal(read(fd, &byte, 1), 1);
  assert_int_equal(kill(child, number), 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(close(fd), 0);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(WTERMSIG(status), number);
  assert_int_equal(empty_folder(), 1);
  kilni_cli_outputs_deinit(out, 3);
}

static void a_signal_leaves_nothing(void** state) {
  (void)state;
  leave_by(SIGINT);
  leave_by(SIGTERM);
  leave_by(SIGHUP);
}

static void an_ignored_signal_is_ignored(void** state) {
  (void)state;
  char bytes[65536];
  int status = 0;
  ssize_t got;
  kilni_cli_output_t out[3];
  kilni_cli_error_t error;
  prepare(out, 1 << 20);
  assert_int_equal(mkfifo(paths[1], 0600), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    (void)signal(SIGHUP, SIG_IGN);
    _exit(kilni_cli_outputs_write(out, 3, &error) ? 0 : 1);
  }
  int fd = open(paths[1], O_RDONLY);
  assert_true(fd >= 0);
  assert_int_equal(read(fd, bytes, 1), 1);
  assert_int_equal(kill(child, SIGHUP), 0);
  do {
    got = read(fd, bytes, sizeof(bytes));
  } while (got > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(close(fd), 0);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_int_equal(empty_folder(), 3);
  kilni_cli_outputs_deinit(out, 3);
}

static void a_link_to_nothing_is_followed(void** state) {
  (void)state;
  kilni_cli_output_t out[3];
  kilni_cli_error_t error;
  struct stat st;
  prepare(out, 3);
  assert_int_equal(symlink("0", paths[1]), 0);
  assert_true(kilni_cli_output_check(paths[1], &error));
  assert_true(kilni_cli_outputs_write(out + 1, 1, &error));
  kilni_cli_outputs_deinit(out, 3);
  assert_int_equal(lstat(paths[1], &st), 0);
  assert_true(S_ISLNK(st.st_mode));
  assert_int_equal(lstat(paths[0], &st), 0);
  assert_true(S_ISREG(st.st_mode));
  assert_int_equal(empty_folder(), 2);
}

int main(void) {
  // What would be a signal is an error of write().
  (void)signal(SIGXFSZ, SIG_IGN);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_are_written),
      cmocka_unit_test(a_link_is_followed),
      cmocka_unit_test(a_link_to_nothing_is_followed),
      cmocka_unit_test(a_signal_leaves_nothing),
      cmocka_unit_test(an_ignored_signal_is_ignored),
      cmocka_unit_test(a_full_device_leaves_nothing),
      cmocka_unit_test(a_full_disk_leaves_nothing),
      cmocka_unit_test(a_missing_folder_is_found_early_and_late),
  };
  return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
