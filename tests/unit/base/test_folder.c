// SPDX-License-Identifier: Apache-2.0
//
// base: a folder that is held open, and the files in it.
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <ftw.h>
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

#include "base/folder.h"

enum { PATH_BYTES = 256 };

// A folder for one test. one-thread
typedef struct place_t {
  char top[PATH_BYTES];
  kilni_base_folder_calls_t calls;
  int folder;
} place_t;

static void begin(place_t* place) {
  snprintf(place->top, sizeof(place->top), "/tmp/kiln-folder-XXXXXX");
  assert_non_null(mkdtemp(place->top));
  place->calls = kilni_base_folder_calls_system();
  assert_int_equal(kilni_base_folder_open(&place->calls, place->top, SIZE_MAX,
                                          &place->folder),
                   0);
}

static int remove_one(const char* path, const struct stat* info, int kind,
                      struct FTW* at) {
  (void)info, (void)kind, (void)at;
  return remove(path);
}

static void end(place_t* place) {
  place->calls.close(NULL, place->folder);
  assert_int_equal(nftw(place->top, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static int open_file(const place_t* place, const char* name, uint32_t how) {
  return kilni_base_folder_open_file(&place->calls, place->folder, name, how);
}

static void test_makes_what_is_missing(void** state) {
  (void)state;
  place_t place;
  begin(&place);
  char path[PATH_BYTES + 32];
  int folder = 7;
  snprintf(path, sizeof(path), "%s/a/b//c", place.top);
  assert_int_equal(
      kilni_base_folder_open(&place.calls, path, SIZE_MAX, &folder), -ENOENT);
  assert_int_equal(folder, -1);
  // "a" must be there.
  size_t must = strlen(place.top) + 2;
  assert_int_equal(kilni_base_folder_open(&place.calls, path, must, &folder),
                   -ENOENT);
  assert_int_equal(kilni_base_folder_open(&place.calls, path, 0, &folder), 0);
  kilni_base_file_look_t look;
  assert_int_equal(place.calls.look(NULL, folder, &look), 0);
  assert_int_equal(look.kind, KILNI_FILE_DIR);
  assert_int_equal(look.mode & 077, 0);
  assert_int_equal(look.owner, kilni_base_file_user());
  place.calls.close(NULL, folder);
  assert_int_equal(kilni_base_folder_open(&place.calls, path, 0, &folder), 0);
  place.calls.close(NULL, folder);
  end(&place);
}

static void test_files(void** state) {
  (void)state;
  place_t place;
  begin(&place);
  char data[16];
  kilni_base_file_look_t look;
  assert_int_equal(open_file(&place, "x", KILNI_OPEN_READ), -ENOENT);
  int file = open_file(&place, "x", KILNI_OPEN_NEW);
  assert_true(file >= 0);
  assert_int_equal(open_file(&place, "x", KILNI_OPEN_NEW), -EEXIST);
  assert_int_equal(kilni_base_folder_write(&place.calls, file, 0, 5, "hello"),
                   0);
  assert_int_equal(kilni_base_folder_read(&place.calls, file, 1, 16, data), 4);
  assert_memory_equal(data, "ello", 4);
  assert_int_equal(kilni_base_folder_read(&place.calls, file, 9, 16, data), 0);
  assert_int_equal(place.calls.look(NULL, file, &look), 0);
  assert_int_equal(look.kind, KILNI_FILE_REGULAR);
  assert_int_equal(look.size, 5);
  assert_int_equal(look.links, 1);
  assert_true(look.modified_ns > INT64_C(1500000000000000000));
  assert_int_equal(place.calls.rename(NULL, place.folder, "x", "y"), 0);
  assert_int_equal(place.calls.look_at(NULL, place.folder, "y", &look), 0);
  assert_int_equal(place.calls.remove(NULL, place.folder, "y"), 0);
  assert_int_equal(place.calls.remove(NULL, place.folder, "y"), -ENOENT);
  assert_int_equal(place.calls.look(NULL, file, &look), 0);
  assert_int_equal(look.links, 0);
  place.calls.close(NULL, file);
  end(&place);
}

static void test_a_link_is_not_followed(void** state) {
  (void)state;
  place_t place;
  begin(&place);
  char path[PATH_BYTES + 32];
  snprintf(path, sizeof(path), "%s/link", place.top);
  assert_int_equal(symlink("/etc/passwd", path), 0);
  assert_int_equal(open_file(&place, "link", KILNI_OPEN_READ), -ELOOP);
  assert_int_equal(open_file(&place, "link", KILNI_OPEN_WRITE), -ELOOP);
  assert_int_equal(open_file(&place, "link", KILNI_OPEN_LOCK), -ELOOP);
  kilni_base_file_look_t look;
  assert_int_equal(place.calls.look_at(NULL, place.folder, "link", &look), 0);
  assert_int_equal(look.kind, KILNI_FILE_OTHER);
  end(&place);
}

static void test_a_file_gets_a_name(void** state) {
  (void)state;
  place_t place;
  begin(&place);
  int file = open_file(&place, "", KILNI_OPEN_UNNAMED);
  if (file == -EOPNOTSUPP || file == -EISDIR) {
    end(&place);
    print_message("this file system has no files without a name\n");
    skip();
  }
  assert_true(file >= 0);
  assert_int_equal(kilni_base_folder_write(&place.calls, file, 0, 2, "ab"), 0);
  assert_int_equal(place.calls.link(NULL, file, place.folder, "name"), 0);
  assert_int_equal(place.calls.link(NULL, file, place.folder, "name"), -EEXIST);
  place.calls.close(NULL, file);
  kilni_base_file_look_t look;
  assert_int_equal(place.calls.look_at(NULL, place.folder, "name", &look), 0);
  assert_int_equal(look.size, 2);
  end(&place);
}

// A lock belongs to the open file: another of the same process is another.
static void test_locks(void** state) {
  (void)state;
  place_t place;
  begin(&place);
  int one = open_file(&place, "locks", KILNI_OPEN_LOCK);
  int two = open_file(&place, "locks", KILNI_OPEN_LOCK);
  const uint64_t far = UINT64_C(1) << 62;
  assert_true(one >= 0 && two >= 0);
  assert_int_equal(place.calls.lock(NULL, one, far, KILNI_LOCK_TRY), 0);
  assert_int_equal(place.calls.lock(NULL, one, far, KILNI_LOCK_TRY), 0);
  assert_int_equal(place.calls.lock(NULL, two, far, KILNI_LOCK_TRY), -EAGAIN);
  assert_int_equal(place.calls.lock(NULL, two, far - 1, KILNI_LOCK_TRY), 0);
  assert_int_equal(place.calls.lock(NULL, one, far, KILNI_LOCK_RELEASE), 0);
  assert_int_equal(place.calls.lock(NULL, two, far, KILNI_LOCK_TRY), 0);
  // Closing ends it.
  place.calls.close(NULL, two);
  assert_int_equal(place.calls.lock(NULL, one, far, KILNI_LOCK_TRY), 0);
  place.calls.close(NULL, one);
  end(&place);
}

static bool count_name(const char* name, void* user) {
  assert_int_not_equal(name[0], '.');
  return ++*(int*)user != 3;
}

static void test_list(void** state) {
  (void)state;
  place_t place;
  begin(&place);
  for (int round = 0; round < 2; round++) {
    // Twice: the place in the list is not the open folder's.
    int count = 0;
    assert_int_equal(place.calls.list(NULL, place.folder, count_name, &count),
                     0);
    assert_int_equal(count, 0);
  }
  for (int i = 0; i < 5; i++) {
    char name[2] = {(char)('a' + i), 0};
    place.calls.close(NULL, open_file(&place, name, KILNI_OPEN_NEW));
  }
  int count = 0;
  assert_int_equal(place.calls.list(NULL, place.folder, count_name, &count), 0);
  assert_int_equal(count, 3);
  end(&place);
}

// ---- What is made of the calls ----

static int g_calls;

static int64_t little_read(void* user, int file, uint64_t offset, size_t size,
                           void* out) {
  (void)user, (void)file;
  if (++g_calls % 2 != 0) return -EINTR;
  if (offset >= 10 || size == 0) return 0;
  memset(out, 'a' + (int)offset, 1);
  return 1;
}

static int64_t little_write(void* user, int file, uint64_t offset, size_t size,
                            const void* data) {
  (void)user, (void)file, (void)data;
  if (++g_calls % 2 != 0) return -EINTR;
  if (offset >= 10) return 0;
  return size > 2 ? 2 : (int64_t)size;
}

static int late_open(void* user, int folder, const char* name, uint32_t how) {
  (void)user, (void)folder, (void)name, (void)how;
  return ++g_calls < 3 ? -EINTR : 5;
}

static void test_bits_and_interruptions(void** state) {
  (void)state;
  kilni_base_folder_calls_t calls = kilni_base_folder_calls_system();
  char data[16] = "";
  calls.read = little_read;
  calls.write = little_write;
  calls.open = late_open;
  g_calls = 0;
  assert_int_equal(kilni_base_folder_read(&calls, 0, 2, 5, data), 5);
  assert_memory_equal(data, "cdefg", 5);
  assert_int_equal(kilni_base_folder_read(&calls, 0, 6, 16, data), 4);
  assert_int_equal(kilni_base_folder_write(&calls, 0, 1, 9, "123456789"), 0);
  // What takes nothing and says nothing is full.
  assert_int_equal(kilni_base_folder_write(&calls, 0, 8, 9, "123456789"),
                   -ENOSPC);
  g_calls = 0;
  assert_int_equal(kilni_base_folder_open_file(&calls, 0, "x", KILNI_OPEN_READ),
                   5);
}

static void test_which_errors_mean_no_locks(void** state) {
  (void)state;
  assert_true(kilni_base_folder_has_no_locks(-ENOLCK));
  assert_true(kilni_base_folder_has_no_locks(-EOPNOTSUPP));
  assert_true(kilni_base_folder_has_no_locks(ENOSYS));
  assert_false(kilni_base_folder_has_no_locks(-EAGAIN));
  assert_false(kilni_base_folder_has_no_locks(-EINTR));
  assert_false(kilni_base_folder_has_no_locks(0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_makes_what_is_missing),
      cmocka_unit_test(test_files),
      cmocka_unit_test(test_a_link_is_not_followed),
      cmocka_unit_test(test_a_file_gets_a_name),
      cmocka_unit_test(test_locks),
      cmocka_unit_test(test_list),
      cmocka_unit_test(test_bits_and_interruptions),
      cmocka_unit_test(test_which_errors_mean_no_locks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
