// SPDX-License-Identifier: Apache-2.0
//
// base: tests of files.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "fault_run.h"

enum { PATH_BYTES = 512, MUCH = 1 << 20 };

typedef struct folder_t {
  char path[PATH_BYTES / 2];
  char file[PATH_BYTES];
} folder_t;

static int setup(void** state) {
  folder_t* folder = calloc(1, sizeof(*folder));
  snprintf(folder->path, sizeof(folder->path), "/tmp/kiln-file-XXXXXX");
  if (mkdtemp(folder->path) == NULL) return 1;
  snprintf(folder->file, sizeof(folder->file), "%s/data.bin", folder->path);
  *state = folder;
  return 0;
}

static bool remove_entry(const char* name, void* user) {
  char path[PATH_BYTES * 2];
  snprintf(path, sizeof(path), "%s/%s", (const char*)user, name);
  return remove(path) == 0;
}

static int teardown(void** state) {
  folder_t* folder = *state;
  kiln_status_t status = kilni_base_dir_each(
      kiln_allocator_libc(), folder->path, remove_entry, folder->path);
  bool ok = kiln_status_is_ok(status) && rmdir(folder->path) == 0;
  kiln_status_free(status);
  free(folder);
  return ok ? 0 : 1;
}

static void assert_code(kiln_status_t status, kiln_status_code_t code,
                        const char* path) {
  assert_string_equal(kiln_status_code_name(kiln_status_code(status)),
                      kiln_status_code_name(code));
  assert_non_null(strstr(kiln_status_message(status), path));
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
}

static bool count_entry(const char* name, void* user) {
  (void)name;
  ++*(int*)user;
  return true;
}

static int entries(const folder_t* folder) {
  int count = 0;
  assert_null(kilni_base_dir_each(kiln_allocator_libc(), folder->path,
                                  count_entry, &count));
  return count;
}

static void put(const folder_t* folder, const char* text) {
  assert_null(kilni_base_file_write(kiln_allocator_libc(), folder->file, text,
                                    strlen(text)));
}

static void assert_holds(const char* path, const char* text) {
  uint8_t* data = NULL;
  size_t size = 0;
  assert_null(
      kilni_base_file_read(kiln_allocator_libc(), path, 1000, &data, &size));
  assert_int_equal(size, strlen(text));
  assert_string_equal((const char*)data, text);
  kilni_base_file_free(kiln_allocator_libc(), data, size);
}

static kiln_status_t round_trip(kiln_allocator_t allocator, void* user) {
  folder_t* folder = user;
  uint8_t* data = (uint8_t*)folder;
  size_t size = 1;
  kiln_status_t status =
      kilni_base_file_write(allocator, folder->file, "ab\0c", 4);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_file_read(allocator, folder->file, 4, &data, &size);
    assert_int_equal(kiln_status_is_ok(status), data != NULL);
    if (data != NULL) {
      assert_int_equal(size, 4);
      assert_memory_equal(data, "ab\0c", 5);
    } else {
      assert_int_equal(size, 0);
    }
    kilni_base_file_free(allocator, data, size);
  }
  // Whatever happened, no temporary file is left.
  assert_int_equal(entries(folder),
                   kilni_base_file_exists(folder->file) ? 1 : 0);
  return status;
}

static void what_is_written_is_read(void** state) {
  assert_true(fault_run_allocations(round_trip, *state, 0) >= 3);
}

static void an_empty_file_is_a_file(void** state) {
  folder_t* folder = *state;
  put(folder, "");
  assert_holds(folder->file, "");
}

static void the_limit_is_kept(void** state) {
  folder_t* folder = *state;
  put(folder, "12345");
  uint8_t* data = (uint8_t*)folder;
  size_t size = 1;
  kiln_status_t status = kilni_base_file_read(kiln_allocator_libc(),
                                              folder->file, 4, &data, &size);
  assert_null(data);
  assert_int_equal(size, 0);
  assert_code(status, KILN_STATUS_LIMIT_EXCEEDED, folder->file);
  // A file whose size the system does not tell beforehand.
  status = kilni_base_file_read(kiln_allocator_libc(), "/dev/zero", 100000,
                                &data, &size);
  assert_null(data);
  assert_code(status, KILN_STATUS_LIMIT_EXCEEDED, "/dev/zero");
}

static void a_file_without_a_told_size_is_read(void** state) {
  (void)state;
  uint8_t* data = NULL;
  size_t size = 0;
  assert_null(kilni_base_file_read(kiln_allocator_libc(), "/proc/self/status",
                                   MUCH, &data, &size));
  assert_true(size > 100);
  assert_int_equal(strlen((const char*)data), size);
  kilni_base_file_free(kiln_allocator_libc(), data, size);
}

static void absence_and_folders_are_named(void** state) {
  folder_t* folder = *state;
  kiln_allocator_t libc = kiln_allocator_libc();
  uint8_t* data;
  size_t size;
  assert_code(kilni_base_file_read(libc, folder->file, 10, &data, &size),
              KILN_STATUS_NOT_FOUND, folder->file);
  assert_code(kilni_base_file_read(libc, folder->path, 10, &data, &size),
              KILN_STATUS_IO_ERROR, folder->path);
  assert_code(kilni_base_file_write(libc, folder->path, "x", 1),
              KILN_STATUS_IO_ERROR, folder->path);
  assert_code(kilni_base_file_write(libc, "/tmp/kiln-no-such/folder/x", "x", 1),
              KILN_STATUS_NOT_FOUND, "/tmp/kiln-no-such/folder/x");
}

static void permission_is_named(void** state) {
  folder_t* folder = *state;
  if (geteuid() == 0) {
    print_message("skipped: root may write everywhere\n");
    skip();
  }
  assert_int_equal(chmod(folder->path, 0500), 0);
  kiln_status_t status =
      kilni_base_file_write(kiln_allocator_libc(), folder->file, "x", 1);
  assert_int_equal(chmod(folder->path, 0700), 0);
  assert_code(status, KILN_STATUS_PERMISSION_DENIED, folder->file);
}

static void an_old_file_keeps_its_mode_and_its_links(void** state) {
  folder_t* folder = *state;
  char link[PATH_BYTES];
  snprintf(link, sizeof(link), "%s/link", folder->path);
  put(folder, "old");
  assert_int_equal(chmod(folder->file, 0640), 0);
  assert_int_equal(symlink("data.bin", link), 0);
  assert_null(kilni_base_file_write(kiln_allocator_libc(), link, "new", 3));
  assert_holds(folder->file, "new");
  struct stat info;
  assert_int_equal(lstat(link, &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_int_equal(stat(folder->file, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0640);
  assert_int_equal(entries(folder), 2);
}

static void a_long_name_can_still_be_written(void** state) {
  folder_t* folder = *state;
  char path[PATH_BYTES];
  int length = snprintf(path, sizeof(path), "%s/", folder->path);
  memset(path + length, 'n', 255);
  path[length + 255] = 0;
  assert_null(kilni_base_file_write(kiln_allocator_libc(), path, "x", 1));
  assert_holds(path, "x");
}

// In a process of its own: a limit on file sizes stands in for a full disk
// half way through, and the old file must be there unharmed.
static void a_full_disk_leaves_the_old_file(void** state) {
  folder_t* folder = *state;
  put(folder, "old");
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {4096, 4096};
    char* much = calloc(1, MUCH);
    if (much == NULL || setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    kiln_status_t status =
        kilni_base_file_write(kiln_allocator_libc(), folder->file, much, MUCH);
    free(much);
    bool right = kiln_status_code(status) == KILN_STATUS_IO_ERROR &&
                 kiln_status_fix(status) != NULL;
    kiln_status_free(status);
    _exit(right ? 0 : 1);
  }
  int how = 0;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how));
  assert_int_equal(WEXITSTATUS(how), 0);
  assert_holds(folder->file, "old");
  assert_int_equal(entries(folder), 1);
}

static void a_full_device_is_named(void** state) {
  (void)state;
  kiln_status_t status =
      kilni_base_file_write(kiln_allocator_libc(), "/dev/full", "x", 1);
  kiln_status_native_t native;
  assert_true(kiln_status_native(status, &native));
  assert_string_equal(native.domain, "errno");
  assert_non_null(strstr(kiln_status_fix(status), "disk space"));
  assert_code(status, KILN_STATUS_IO_ERROR, "/dev/full");
}

static void a_device_is_written_through(void** state) {
  (void)state;
  assert_null(
      kilni_base_file_write(kiln_allocator_libc(), "/dev/null", "x", 1));
  struct stat info;
  assert_int_equal(stat("/dev/null", &info), 0);
  assert_true(S_ISCHR(info.st_mode));
}

typedef struct seen_t {
  char names[64];
  int stop_after;
} seen_t;

static bool see(const char* name, void* user) {
  seen_t* seen = user;
  strcat(seen->names, name);
  strcat(seen->names, " ");
  return --seen->stop_after != 0;
}

static kiln_status_t list_body(kiln_allocator_t allocator, void* user) {
  folder_t* folder = user;
  seen_t seen = {.stop_after = 0};
  kiln_status_t status =
      kilni_base_dir_each(allocator, folder->path, see, &seen);
  assert_string_equal(seen.names, kiln_status_is_ok(status) ? "a b c " : "");
  return status;
}

static void a_folder_is_listed_in_name_order(void** state) {
  folder_t* folder = *state;
  static const char* const names[] = {"c", "a", "b"};
  for (int i = 0; i < 3; i++) {
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/%s", folder->path, names[i]);
    assert_null(kilni_base_file_write(kiln_allocator_libc(), path, "x", 1));
  }
  assert_int_equal(fault_run_allocations(list_body, folder, 0), 4);
  seen_t seen = {.stop_after = 2};
  assert_null(
      kilni_base_dir_each(kiln_allocator_libc(), folder->path, see, &seen));
  assert_string_equal(seen.names, "a b ");
  assert_code(
      kilni_base_dir_each(kiln_allocator_libc(), folder->file, see, &seen),
      KILN_STATUS_NOT_FOUND, folder->file);
}

static kiln_status_t real_body(kiln_allocator_t allocator, void* user) {
  folder_t* folder = user;
  char path[PATH_BYTES * 2];
  snprintf(path, sizeof(path), "%s/./../%s/data.bin", folder->path,
           strrchr(folder->path, '/') + 1);
  char* real = (char*)folder;
  kiln_status_t status = kilni_base_path_real(allocator, path, &real);
  assert_int_equal(kiln_status_is_ok(status), real != NULL);
  if (real != NULL) assert_string_equal(real, folder->file);
  kilni_base_strfree(allocator, real);
  return status;
}

static void a_path_is_resolved(void** state) {
  folder_t* folder = *state;
  put(folder, "x");
  assert_int_equal(fault_run_allocations(real_body, folder, 0), 2);
  char* real = (char*)folder;
  kiln_status_t status =
      kilni_base_path_real(kiln_allocator_libc(), "/tmp/kiln-no-such", &real);
  assert_null(real);
  assert_code(status, KILN_STATUS_NOT_FOUND, "/tmp/kiln-no-such");
}

static void files_and_folders_are_told_apart(void** state) {
  folder_t* folder = *state;
  assert_false(kilni_base_file_exists(folder->file));
  put(folder, "x");
  assert_true(kilni_base_file_exists(folder->file));
  assert_false(kilni_base_dir_exists(folder->file));
  assert_true(kilni_base_dir_exists(folder->path));
  assert_false(kilni_base_file_exists(folder->path));
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
  const struct CMUnitTest tests[] = {
      IN_FOLDER(what_is_written_is_read),
      IN_FOLDER(an_empty_file_is_a_file),
      IN_FOLDER(the_limit_is_kept),
      IN_FOLDER(a_file_without_a_told_size_is_read),
      IN_FOLDER(absence_and_folders_are_named),
      IN_FOLDER(permission_is_named),
      IN_FOLDER(an_old_file_keeps_its_mode_and_its_links),
      IN_FOLDER(a_long_name_can_still_be_written),
      IN_FOLDER(a_full_disk_leaves_the_old_file),
      IN_FOLDER(a_full_device_is_named),
      IN_FOLDER(a_device_is_written_through),
      IN_FOLDER(a_folder_is_listed_in_name_order),
      IN_FOLDER(a_path_is_resolved),
      IN_FOLDER(files_and_folders_are_told_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
