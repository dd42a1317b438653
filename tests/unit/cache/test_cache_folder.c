// SPDX-License-Identifier: Apache-2.0
//
// cache: which folder is taken, and what becomes of one that cannot be used.
#define _XOPEN_SOURCE 700
#include <errno.h>
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

#include "cache_kit.h"
#include "base/env.h"
#include "cache/cache.h"
#include "kiln/cache.h"

static uint32_t mode_of(const char* path) {
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  return info.st_mode & 07777;
}

// ---- Which one ----

// What three variables give: a folder, "" for none, NULL for an error.
typedef struct choice_t {
  const char *own, *caches, *home;
  const char* wanted;
} choice_t;

static void test_choice(void** state) {
  (void)state;
  static const choice_t choices[] = {
      {"/a/b", "/c", "/h", "/a/b"},
      {"/a/b//", NULL, NULL, "/a/b"},
      {NULL, "/c", "/h", "/c/kiln"},
      {NULL, "/c/", NULL, "/c/kiln"},
      {NULL, NULL, "/h", "/h/.cache/kiln"},
      {NULL, "relative", "/h", "/h/.cache/kiln"},
      {NULL, NULL, "/", "/.cache/kiln"},
      {NULL, NULL, "relative", ""},
      {NULL, NULL, NULL, ""},
      {"relative", "/c", "/h", NULL},
  };
  for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++) {
    const choice_t* choice = &choices[i];
    kilni_base_env_t env;
    kiln_cache_t* cache = NULL;
    cache_kit_env(&env);
    cache_kit_ok(
        kilni_base_env_set(&env, KILNI_ENV_KILN_CACHE_DIR, choice->own));
    cache_kit_ok(
        kilni_base_env_set(&env, KILNI_ENV_XDG_CACHE_HOME, choice->caches));
    cache_kit_ok(kilni_base_env_set(&env, KILNI_ENV_HOME, choice->home));
    kiln_status_t status = kilni_cache_create(NULL, &env, &cache);
    if (choice->wanted == NULL) {
      assert_non_null(strstr(kiln_status_message(status), "KILN_CACHE_DIR"));
      assert_non_null(kiln_status_fix(status));
      cache_kit_fails(status, KILN_STATUS_INVALID_ARGUMENT);
      assert_null(cache);
    } else {
      cache_kit_ok(status);
      assert_string_equal(kiln_cache_directory(cache), choice->wanted);
    }
    kiln_cache_release(cache);
    kilni_base_env_deinit(&env);
  }
}

// An empty variable is none: the snapshot drops it, as for every path.
static void test_empty_is_unset(void** state) {
  (void)state;
  kiln_cache_t* cache = NULL;
  assert_int_equal(setenv("KILN_CACHE_DIR", "", 1), 0);
  assert_int_equal(setenv("XDG_CACHE_HOME", "", 1), 0);
  assert_int_equal(setenv("HOME", "/h", 1), 0);
  cache_kit_ok(kiln_cache_create(NULL, &cache));
  assert_string_equal(kiln_cache_directory(cache), "/h/.cache/kiln");
  kiln_cache_release(cache);
}

static void test_variables_and_options(void** state) {
  (void)state;
  kilni_base_env_t env;
  kiln_cache_t* cache = NULL;
  kiln_cache_options_t options = kiln_cache_options_default();
  cache_kit_env(&env);
  cache_kit_ok(kilni_base_env_set(&env, KILNI_ENV_KILN_CACHE, "off"));
  cache_kit_ok(kilni_base_env_set(&env, KILNI_ENV_KILN_CACHE_DIR, "/a"));
  cache_kit_ok(
      kilni_base_env_set(&env, KILNI_ENV_KILN_CACHE_MAX_BYTES, "4096"));
  cache_kit_ok(kilni_cache_create(NULL, &env, &cache));
  assert_string_equal(kiln_cache_directory(cache), "");
  kiln_cache_release(cache);
  options.disk = KILN_SWITCH_ON;
  cache_kit_ok(kilni_cache_create(&options, &env, &cache));
  assert_string_equal(kiln_cache_directory(cache), "/a");
  assert_int_equal(cache_kit_stats(cache).disk_limit_bytes, 4096);
  kiln_cache_release(cache);
  options.disk_bytes = 1;
  options.directory = "/b";
  cache_kit_ok(kilni_cache_create(&options, &env, &cache));
  assert_string_equal(kiln_cache_directory(cache), "/b");
  assert_int_equal(cache_kit_stats(cache).disk_limit_bytes, 1);
  kiln_cache_release(cache);
  options.directory = "b";
  cache_kit_fails(kilni_cache_create(&options, &env, &cache),
                  KILN_STATUS_INVALID_ARGUMENT);
  options.directory = NULL;
  options.disk = 7;
  cache_kit_fails(kilni_cache_create(&options, &env, &cache),
                  KILN_STATUS_INVALID_ARGUMENT);
  options.disk = 0;
  options.memory = 7;
  cache_kit_fails(kilni_cache_create(&options, &env, &cache),
                  KILN_STATUS_INVALID_ARGUMENT);
  options.memory = 0;
  cache_kit_ok(kilni_base_env_set(&env, KILNI_ENV_KILN_CACHE, "perhaps"));
  kiln_status_t status = kilni_cache_create(&options, &env, &cache);
  assert_non_null(strstr(kiln_status_message(status), "KILN_CACHE"));
  cache_kit_fails(status, KILN_STATUS_INVALID_ARGUMENT);
  assert_null(cache);
  kilni_base_env_deinit(&env);
}

// ---- How it is made ----

static void test_made_late_and_for_the_user_alone(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  char above[CACHE_KIT_PATH_BYTES];
  snprintf(above, sizeof(above), "%.400s/x", kit.top);
  snprintf(kit.folder, sizeof(kit.folder), "%.400s/x/y/z", kit.top);
  mode_t before = umask(0);
  kiln_cache_t* cache = cache_kit_create(&kit);
  kiln_cache_key_t key = cache_kit_key("a");
  kiln_cache_entry_t* entry = NULL;
  cache_kit_ok(kiln_cache_get(cache, &key, &entry));
  cache_kit_ok(kiln_cache_trim(cache, NULL));
  cache_kit_ok(kiln_cache_walk(cache, 0, NULL, NULL, NULL));
  // Looking makes nothing.
  assert_int_equal(access(above, F_OK), -1);
  cache_maker_t maker = {.text = "x"};
  assert_int_equal(cache_maker_from(&maker, cache, "a"), KILN_CACHE_FROM_MAKE);
  umask(before);
  assert_int_equal(mode_of(above), 0700);
  assert_int_equal(mode_of(kit.folder), 0700);
  char path[CACHE_KIT_PATH_BYTES];
  cache_kit_entry_path(&kit, "a", path);
  assert_int_equal(mode_of(path), 0600);
  assert_int_equal(kit.warnings, 0);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

// A folder made by HOME's rule makes .cache and kiln, not HOME.
static void test_home_is_not_made(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  for (int i = 0; i < 2; i++) {
    kilni_base_env_t env;
    kiln_cache_t* cache = NULL;
    char home[CACHE_KIT_PATH_BYTES];
    cache_kit_env(&env);
    snprintf(home, sizeof(home), "%.400s/home", kit.top);
    if (i == 1) assert_int_equal(mkdir(home, 0755), 0);
    cache_kit_ok(kilni_base_env_set(&env, KILNI_ENV_HOME, home));
    cache_kit_ok(kilni_cache_create(NULL, &env, &cache));
    cache_maker_t maker = {.text = "x"};
    (void)cache_maker_from(&maker, cache, "a");
    assert_int_equal(cache_kit_stats(cache).stored, i);
    assert_int_equal(access(home, F_OK), i - 1);
    assert_int_equal(strlen(kiln_cache_disk_problem(cache)) > 0, i == 0);
    kiln_cache_release(cache);
    kilni_base_env_deinit(&env);
  }
  cache_kit_deinit(&kit);
}

// ---- What cannot be used ----

// The cache works, in memory, and has said so once.
static void expect_memory_only(cache_kit_t* kit, kiln_cache_t* cache,
                               const char* why) {
  cache_maker_t maker = {.text = "x"};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(cache_maker_from(&maker, cache, "a"),
                     i == 0 ? KILN_CACHE_FROM_MAKE : KILN_CACHE_FROM_MEMORY);
    (void)cache_maker_from(&maker, cache, "b");
  }
  assert_int_equal(maker.calls, 2);
  assert_int_equal(kit->warnings, 1);
  if (strstr(kit->first_warning, why) == NULL) {
    fail_msg("\"%s\" does not say \"%s\"", kit->first_warning, why);
  }
  assert_non_null(strstr(kiln_cache_disk_problem(cache), why));
  assert_int_equal(cache_kit_stats(cache).stored, 0);
}

static void expect_refused(kiln_cache_t* cache, kiln_status_code_t code) {
  kiln_status_t status = kiln_cache_walk(cache, 0, NULL, NULL, NULL);
  assert_non_null(kiln_status_fix(status));
  cache_kit_fails(status, code);
  cache_kit_fails(kiln_cache_trim(cache, NULL), code);
  cache_kit_fails(kiln_cache_clear(cache, NULL), code);
}

static void test_writable_by_others(void** state) {
  (void)state;
  static const mode_t modes[] = {0770, 0707, 0777, 01777};
  for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
    cache_kit_t kit;
    cache_kit_init(&kit);
    assert_int_equal(mkdir(kit.folder, 0700), 0);
    assert_int_equal(chmod(kit.folder, modes[i]), 0);
    kiln_cache_t* cache = cache_kit_create(&kit);
    expect_memory_only(&kit, cache, "others may write");
    expect_refused(cache, KILN_STATUS_PERMISSION_DENIED);
    assert_int_equal(cache_kit_count(&kit, ""), 0);
    kiln_cache_release(cache);
    cache_kit_deinit(&kit);
  }
}

static void test_readable_by_others_is_taken(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  assert_int_equal(mkdir(kit.folder, 0700), 0);
  assert_int_equal(chmod(kit.folder, 0755), 0);
  kiln_cache_t* cache = cache_kit_create(&kit);
  cache_maker_t maker = {.text = "x"};
  (void)cache_maker_from(&maker, cache, "a");
  assert_int_equal(cache_kit_stats(cache).stored, 1);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

// The calls of the system, but somebody else owns what is looked at.
static int look_foreign(void* user, int handle,
                        kilni_base_file_look_t* out_look) {
  kilni_base_folder_calls_t system = kilni_base_folder_calls_system();
  int code = system.look(user, handle, out_look);
  out_look->owner++;
  return code;
}

static void test_foreign_owner(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  kiln_cache_t* cache = cache_kit_create(&kit);
  cache->calls.look = look_foreign;
  expect_memory_only(&kit, cache, "another user");
  expect_refused(cache, KILN_STATUS_PERMISSION_DENIED);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static void test_foreign_owner_for_real(void** state) {
  (void)state;
  if (geteuid() != 0) {
    print_message("only root can give a folder away\n");
    skip();
  }
  cache_kit_t kit;
  cache_kit_init(&kit);
  assert_int_equal(mkdir(kit.folder, 0700), 0);
  if (chown(kit.folder, 12345, 12345) != 0) {
    cache_kit_deinit(&kit);
    print_message("a folder cannot be given away here\n");
    skip();
  }
  kiln_cache_t* cache = cache_kit_create(&kit);
  expect_memory_only(&kit, cache, "another user");
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static void test_a_link_leads_to_the_folder(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  char target[CACHE_KIT_PATH_BYTES];
  snprintf(target, sizeof(target), "%.400s/elsewhere", kit.top);
  assert_int_equal(mkdir(target, 0700), 0);
  assert_int_equal(symlink("elsewhere", kit.folder), 0);
  kiln_cache_t* cache = cache_kit_create(&kit);
  cache_maker_t maker = {.text = "x"};
  (void)cache_maker_from(&maker, cache, "a");
  assert_int_equal(cache_kit_stats(cache).stored, 1);
  kiln_cache_release(cache);
  // It is judged by what it leads to.
  assert_int_equal(chmod(target, 0777), 0);
  cache = cache_kit_create(&kit);
  expect_memory_only(&kit, cache, "others may write");
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static void test_a_file_in_its_place(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  cache_kit_write(kit.folder, "x", 1);
  kiln_cache_t* cache = cache_kit_create(&kit);
  expect_memory_only(&kit, cache, "cannot be opened");
  expect_refused(cache, KILN_STATUS_IO_ERROR);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static void test_no_folder_at_all(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  kiln_cache_options_t options = cache_kit_options(&kit);
  kilni_base_env_t env;
  kiln_cache_t* cache = NULL;
  cache_kit_env(&env);
  options.directory = NULL;
  cache_kit_ok(kilni_cache_create(&options, &env, &cache));
  expect_memory_only(&kit, cache, "KILN_CACHE_DIR");
  cache_kit_ok(kiln_cache_walk(cache, 0, NULL, NULL, NULL));
  cache_kit_ok(kiln_cache_clear(cache, NULL));
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

// ---- A disk that takes nothing ----

static int read_only_open(void* user, int folder, const char* name,
                          uint32_t how) {
  kilni_base_folder_calls_t system = kilni_base_folder_calls_system();
  if (how != KILNI_OPEN_READ) return -EROFS;
  return system.open(user, folder, name, how);
}

static int64_t full_write(void* user, int file, uint64_t offset, size_t size,
                          const void* data) {
  kilni_base_folder_calls_t system = kilni_base_folder_calls_system();
  // A part still fits.
  if (offset == 0 && size > 10) return system.write(user, file, 0, 10, data);
  return -ENOSPC;
}

static void test_read_only(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  cache_maker_t maker = {.text = "x"};
  kiln_cache_t* cache = cache_kit_create(&kit);
  (void)cache_maker_from(&maker, cache, "there");
  kiln_cache_release(cache);
  cache = cache_kit_create(&kit);
  cache->calls.open = read_only_open;
  // What is there is read.
  assert_int_equal(cache_maker_from(&maker, cache, "there"),
                   KILN_CACHE_FROM_DISK);
  assert_int_equal(kit.warnings, 0);
  expect_memory_only(&kit, cache, "written");
  assert_int_equal(cache_kit_stats(cache).store_failures, 2);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static void test_full(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  kiln_cache_t* cache = cache_kit_create(&kit);
  for (int named = 0; named < 2; named++) {
    kit.warnings = 0;
    cache->calls.write = full_write;
    atomic_store(&cache->needs_names, named == 1);
    if (named == 0) expect_memory_only(&kit, cache, "written");
    cache_maker_t maker = {.text = "x"};
    (void)cache_maker_from(&maker, cache, named ? "c" : "d");
    assert_int_equal(cache_kit_count(&kit, ""), 1);  // the file of locks
  }
  // Once there is space again entries are stored again.
  cache->calls = kilni_base_folder_calls_system();
  cache_maker_t maker = {.text = "x"};
  (void)cache_maker_from(&maker, cache, "e");
  assert_int_equal(cache_kit_stats(cache).stored, 1);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_choice),
      cmocka_unit_test(test_empty_is_unset),
      cmocka_unit_test(test_variables_and_options),
      cmocka_unit_test(test_made_late_and_for_the_user_alone),
      cmocka_unit_test(test_home_is_not_made),
      cmocka_unit_test(test_writable_by_others),
      cmocka_unit_test(test_readable_by_others_is_taken),
      cmocka_unit_test(test_foreign_owner),
      cmocka_unit_test(test_foreign_owner_for_real),
      cmocka_unit_test(test_a_link_leads_to_the_folder),
      cmocka_unit_test(test_a_file_in_its_place),
      cmocka_unit_test(test_no_folder_at_all),
      cmocka_unit_test(test_read_only),
      cmocka_unit_test(test_full),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
