// SPDX-License-Identifier: Apache-2.0
//
// cache: entries in files: bad ones are misses, whole ones appear at once.
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

enum { FILE_BYTES = 4096 };

// Puts an entry "a" in the folder; its file's path and bytes.
static size_t plant(cache_kit_t* kit, char path[CACHE_KIT_PATH_BYTES],
                    uint8_t* bytes) {
  cache_maker_t maker = {.text = "payload"};
  kiln_cache_t* cache = cache_kit_create(kit);
  (void)cache_maker_from(&maker, cache, "a");
  kiln_cache_release(cache);
  cache_kit_entry_path(kit, "a", path);
  return cache_kit_read(path, FILE_BYTES, bytes);
}

// Expects the file to be a miss, told once, and what is made in its place.
static void expect_miss(cache_kit_t* kit, bool corrupt, const char* why) {
  cache_maker_t maker = {.text = "payload"};
  kit->warnings = 0;
  kiln_cache_t* cache = cache_kit_create(kit);
  kiln_cache_key_t key = cache_kit_key("a");
  kiln_cache_entry_t* entry = NULL;
  char path[CACHE_KIT_PATH_BYTES];
  cache_kit_entry_path(kit, "a", path);
  cache_kit_ok(kiln_cache_get(cache, &key, &entry));
  assert_null(entry);
  assert_int_equal(kit->warnings, 1);
  if (strstr(kit->first_warning, why) == NULL) {
    fail_msg("\"%s\" does not say \"%s\"", kit->first_warning, why);
  }
  // Only what is no use to anybody is removed.
  struct stat info;
  assert_int_equal(lstat(path, &info), corrupt ? -1 : 0);
  kiln_cache_stats_t stats = cache_kit_stats(cache);
  assert_int_equal(stats.corrupt, corrupt);
  assert_int_equal(stats.foreign, !corrupt);
  assert_int_equal(cache_maker_from(&maker, cache, "a"), KILN_CACHE_FROM_MAKE);
  assert_int_equal(kit->warnings, 1);
  kiln_cache_release(cache);
  // It has taken the bad one's place.
  cache = cache_kit_create(kit);
  assert_int_equal(cache_maker_from(&maker, cache, "a"), KILN_CACHE_FROM_DISK);
  assert_int_equal(cache_kit_count(kit, "tmp-"), 0);
  kiln_cache_release(cache);
}

static void test_corrupt(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  char path[CACHE_KIT_PATH_BYTES];
  uint8_t bytes[FILE_BYTES];
  size_t size = plant(&kit, path, bytes);
  // One bit of the payload.
  bytes[size - 20] ^= 1;
  cache_kit_write(path, bytes, size);
  expect_miss(&kit, true, "hash");
  bytes[size - 20] ^= 1;
  // Cut short: inside the head, behind it, by a byte, to nothing.
  const size_t lengths[] = {0, 50, 112, size - 1};
  for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
    cache_kit_write(path, bytes, lengths[i]);
    expect_miss(&kit, true, "cut short");
  }
  cache_kit_write(path, bytes, size + 1);
  expect_miss(&kit, true, "longer");
  memset(bytes, 0, size);
  cache_kit_write(path, bytes, size);
  expect_miss(&kit, true, "does not begin");
  cache_kit_deinit(&kit);
}

static void test_foreign(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  char path[CACHE_KIT_PATH_BYTES], aside[CACHE_KIT_PATH_BYTES];
  uint8_t bytes[FILE_BYTES];
  size_t size = plant(&kit, path, bytes);
  uint8_t other[FILE_BYTES];
  memcpy(other, bytes, size);
  other[8] = bytes[11];
  other[11] = bytes[8];
  cache_kit_write(path, other, size);
  expect_miss(&kit, false, "byte order");
  other[8] = bytes[8];
  other[11] = bytes[11];
  other[12] = 9;
  cache_kit_write(path, other, size);
  expect_miss(&kit, false, "another version");
  // A link, to a good entry even, is not followed.
  cache_kit_path(&kit, "aside", aside);
  cache_kit_write(aside, bytes, size);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(symlink("aside", path), 0);
  expect_miss(&kit, false, "link");
  // A pipe is not waited for. It is put away here: no entry replaces it
  // before it is looked at.
  assert_int_equal(unlink(path), 0);
  assert_int_equal(mkfifo(path, 0600), 0);
  expect_miss(&kit, false, "not a regular file");
  cache_kit_deinit(&kit);
}

static int look_foreign(void* user, int handle,
                        kilni_base_file_look_t* out_look) {
  kilni_base_folder_calls_t system = kilni_base_folder_calls_system();
  int code = system.look(user, handle, out_look);
  if (out_look->kind == KILNI_FILE_REGULAR) out_look->owner++;
  return code;
}

static void test_foreign_owner(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  char path[CACHE_KIT_PATH_BYTES];
  uint8_t bytes[FILE_BYTES];
  (void)plant(&kit, path, bytes);
  kiln_cache_t* cache = cache_kit_create(&kit);
  cache->calls.look = look_foreign;
  kiln_cache_key_t key = cache_kit_key("a");
  kiln_cache_entry_t* entry = NULL;
  cache_kit_ok(kiln_cache_get(cache, &key, &entry));
  assert_null(entry);
  assert_int_equal(cache_kit_stats(cache).foreign, 1);
  assert_non_null(strstr(kit.first_warning, "another user"));
  assert_int_equal(access(path, F_OK), 0);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

// A good entry under the name of another is not that other.
static void test_name_of_another(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  char path[CACHE_KIT_PATH_BYTES], other[CACHE_KIT_PATH_BYTES];
  uint8_t bytes[FILE_BYTES];
  size_t size = plant(&kit, path, bytes);
  cache_kit_entry_path(&kit, "b", other);
  cache_kit_write(other, bytes, size);
  kiln_cache_t* cache = cache_kit_create(&kit);
  kiln_cache_key_t key = cache_kit_key("b");
  kiln_cache_entry_t* entry = NULL;
  cache_kit_ok(kiln_cache_get(cache, &key, &entry));
  assert_null(entry);
  assert_int_equal(cache_kit_stats(cache).corrupt, 1);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

// Two keys of one hash: the file is found, and is not taken for the other.
static void test_collision(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  char path[CACHE_KIT_PATH_BYTES];
  uint8_t bytes[FILE_BYTES];
  (void)plant(&kit, path, bytes);
  kiln_cache_t* cache = cache_kit_create(&kit);
  kiln_cache_key_t key = cache_kit_key("a"), other = cache_kit_key("b");
  kilni_cache_hash_t hash = kilni_cache_key_hash(&key);
  kiln_cache_entry_t* entry = NULL;
  assert_true(kilni_cache_disk_open(cache, false));
  cache_kit_ok(kilni_cache_disk_get(cache, &hash, &other, &entry));
  assert_null(entry);
  assert_int_equal(cache_kit_stats(cache).collisions, 1);
  assert_int_equal(cache_kit_stats(cache).corrupt, 0);
  assert_int_equal(access(path, F_OK), 0);
  cache_kit_ok(kilni_cache_disk_get(cache, &hash, &key, &entry));
  assert_non_null(entry);
  kiln_cache_entry_release(entry);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

// A good entry that took a bad one's place between reading and removing stays.
static void test_only_the_bad_file_is_removed(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  char path[CACHE_KIT_PATH_BYTES], aside[CACHE_KIT_PATH_BYTES];
  char name[KILNI_CACHE_FILE_BYTES];
  uint8_t bytes[FILE_BYTES];
  size_t size = plant(&kit, path, bytes);
  kiln_cache_key_t key = cache_kit_key("a");
  kilni_cache_hash_t hash = kilni_cache_key_hash(&key);
  kilni_cache_file_name(&hash, name);
  kiln_cache_t* cache = cache_kit_create(&kit);
  assert_true(kilni_cache_disk_open(cache, false));
  kilni_cache_read_t read;
  cache_kit_write(path, "bad", 3);
  cache_kit_ok(kilni_cache_disk_read(cache, name, true, false, &read));
  assert_int_equal(read.state, KILN_CACHE_STATE_CORRUPT);
  cache_kit_path(&kit, "aside", aside);
  cache_kit_write(aside, bytes, size);
  assert_int_equal(rename(aside, path), 0);
  assert_false(kilni_cache_disk_remove_bad(cache, name, &read));
  assert_int_equal(access(path, F_OK), 0);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static void test_use_is_marked_hourly(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  char path[CACHE_KIT_PATH_BYTES];
  uint8_t bytes[FILE_BYTES];
  cache_maker_t maker = {.text = "payload"};
  (void)plant(&kit, path, bytes);
  // A use half an hour after the last is not worth a write.
  cache_kit_set_age(path, 1800);
  kiln_cache_t* cache = cache_kit_create(&kit);
  (void)cache_maker_from(&maker, cache, "a");
  assert_true(cache_kit_age(path) >= 1800);
  kiln_cache_release(cache);
  cache_kit_set_age(path, 7200);
  cache = cache_kit_create(&kit);
  (void)cache_maker_from(&maker, cache, "a");
  assert_true(cache_kit_age(path) < 1800);
  // From memory, too; the last mark is moved back by hand.
  cache_kit_set_age(path, 7200);
  atomic_fetch_sub(&cache->memory.newest->marked_s, 7200);
  assert_int_equal(cache_maker_from(&maker, cache, "a"),
                   KILN_CACHE_FROM_MEMORY);
  assert_true(cache_kit_age(path) < 1800);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static int no_unnamed(void* user, int folder, const char* name, uint32_t how) {
  kilni_base_folder_calls_t system = kilni_base_folder_calls_system();
  if (how == KILNI_OPEN_UNNAMED) return -EOPNOTSUPP;
  return system.open(user, folder, name, how);
}

static int no_link(void* user, int file, int folder, const char* name) {
  (void)user, (void)file, (void)folder, (void)name;
  return -ENOENT;  // no /proc
}

static int no_locks(void* user, int file, uint64_t offset, uint32_t what) {
  (void)user, (void)file, (void)offset, (void)what;
  return -ENOLCK;
}

// Where files cannot be without a name, they have a temporary one.
static void test_every_way_of_writing(void** state) {
  (void)state;
  for (int way = 0; way < 4; way++) {
    cache_kit_t kit;
    cache_kit_init(&kit);
    kiln_bytes_view_t none = {NULL, 0};
    kiln_cache_key_t key = cache_kit_key("a");
    for (int round = 0; round < 2; round++) {
      kiln_cache_t* cache = cache_kit_create(&kit);
      if (way == 1) cache->calls.open = no_unnamed;
      if (way == 2) cache->calls.link = no_link;
      if (way == 3) {
        cache->calls.open = no_unnamed;
        cache->calls.lock = no_locks;
      }
      // The second finds the name taken.
      for (int i = 0; i < 2; i++) {
        cache_kit_ok(kiln_cache_put(cache, &key, none,
                                    cache_kit_bytes(i ? "new" : "old"), NULL));
      }
      assert_int_equal(cache_kit_stats(cache).stored, 2);
      assert_int_equal(cache_kit_stats(cache).store_failures, 0);
      kiln_cache_release(cache);
      assert_int_equal(cache_kit_count(&kit, "tmp-"), 0);
      cache = cache_kit_create(&kit);
      cache_maker_t maker = {.text = "new"};
      assert_int_equal(cache_maker_from(&maker, cache, "a"),
                       KILN_CACHE_FROM_DISK);
      kiln_cache_release(cache);
    }
    assert_int_equal(kit.warnings, 0);
    cache_kit_deinit(&kit);
  }
}

static void test_larger_than_the_budget(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  kiln_cache_options_t options = cache_kit_options(&kit);
  kilni_base_env_t env;
  kiln_cache_t* cache = NULL;
  cache_kit_env(&env);
  options.disk_bytes = 100;
  cache_kit_ok(kilni_cache_create(&options, &env, &cache));
  cache_maker_t maker = {.text = "payload"};
  assert_int_equal(cache_maker_from(&maker, cache, "a"), KILN_CACHE_FROM_MAKE);
  assert_int_equal(cache_maker_from(&maker, cache, "a"),
                   KILN_CACHE_FROM_MEMORY);
  assert_int_equal(cache_kit_stats(cache).stored, 0);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_corrupt),
      cmocka_unit_test(test_foreign),
      cmocka_unit_test(test_foreign_owner),
      cmocka_unit_test(test_name_of_another),
      cmocka_unit_test(test_collision),
      cmocka_unit_test(test_only_the_bad_file_is_removed),
      cmocka_unit_test(test_use_is_marked_hourly),
      cmocka_unit_test(test_every_way_of_writing),
      cmocka_unit_test(test_larger_than_the_budget),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
