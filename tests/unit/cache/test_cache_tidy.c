// SPDX-License-Identifier: Apache-2.0
//
// cache: walking, verifying, trimming and clearing the folder.
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

enum { ENTRIES = 8 };
static const char* const kNames[ENTRIES] = {"a", "b", "c", "d",
                                            "e", "f", "g", "h"};

static kiln_cache_t* create(cache_kit_t* kit, uint64_t disk_bytes,
                            uint64_t max_age_s) {
  kiln_cache_options_t options = cache_kit_options(kit);
  kilni_base_env_t env;
  kiln_cache_t* cache = NULL;
  cache_kit_env(&env);
  options.disk_bytes = disk_bytes;
  options.max_age_s = max_age_s;
  cache_kit_ok(kilni_cache_create(&options, &env, &cache));
  return cache;
}

// All names, "a" used the longest ago: an hour for each behind it.
static uint64_t plant(cache_kit_t* kit) {
  uint64_t bytes = 0;
  cache_maker_t maker = {.text = "payload"};
  kiln_cache_t* cache = cache_kit_create(kit);
  for (int i = 0; i < ENTRIES; i++) {
    char path[CACHE_KIT_PATH_BYTES];
    struct stat info;
    (void)cache_maker_from(&maker, cache, kNames[i]);
    cache_kit_entry_path(kit, kNames[i], path);
    cache_kit_set_age(path, (ENTRIES - i) * 3600);
    assert_int_equal(stat(path, &info), 0);
    bytes += (uint64_t)info.st_size;
  }
  kiln_cache_release(cache);
  return bytes;
}

static bool is_there(const cache_kit_t* kit, const char* key) {
  char path[CACHE_KIT_PATH_BYTES];
  cache_kit_entry_path(kit, key, path);
  return access(path, F_OK) == 0;
}

// ---- Trim ----

static void test_size(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  uint64_t bytes = plant(&kit);
  kiln_cache_report_t report;
  kiln_cache_t* cache = create(&kit, bytes, 0);
  cache_kit_ok(kiln_cache_trim(cache, &report));
  assert_int_equal(report.entries, ENTRIES);
  assert_int_equal(report.bytes, bytes);
  assert_int_equal(report.removed, 0);
  kiln_cache_release(cache);
  // A little less, and it is brought an eighth below that: the first two go.
  cache = create(&kit, bytes - 16, 0);
  cache_kit_ok(kiln_cache_trim(cache, &report));
  assert_int_equal(report.removed, 2);
  assert_int_equal(report.entries, ENTRIES - 2);
  assert_int_equal(report.freed_bytes, bytes / ENTRIES * 2);
  assert_int_equal(report.bytes + report.freed_bytes, bytes);
  for (int i = 0; i < ENTRIES; i++) {
    assert_int_equal(is_there(&kit, kNames[i]), i >= 2);
  }
  assert_int_equal(cache_kit_stats(cache).disk_evicted, 2);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static void test_use_saves(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  uint64_t bytes = plant(&kit);
  cache_maker_t maker = {.text = "payload"};
  kiln_cache_t* cache = create(&kit, bytes - 16, 0);
  assert_int_equal(cache_maker_from(&maker, cache, "a"), KILN_CACHE_FROM_DISK);
  cache_kit_ok(kiln_cache_trim(cache, NULL));
  assert_true(is_there(&kit, "a"));
  assert_false(is_there(&kit, "b"));
  assert_false(is_there(&kit, "c"));
  assert_true(is_there(&kit, "d"));
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static void test_age(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  (void)plant(&kit);
  kiln_cache_report_t report;
  // "a" to "e" are 8 to 4 hours old.
  kiln_cache_t* cache = create(&kit, 0, 4 * 3600 - 600);
  cache_kit_ok(kiln_cache_trim(cache, &report));
  assert_int_equal(report.removed, 5);
  for (int i = 0; i < ENTRIES; i++) {
    assert_int_equal(is_there(&kit, kNames[i]), i >= 5);
  }
  kiln_cache_release(cache);
  cache = create(&kit, KILN_CACHE_UNLIMITED, KILN_CACHE_UNLIMITED);
  cache_kit_ok(kiln_cache_trim(cache, &report));
  assert_int_equal(report.removed, 0);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static void test_an_open_entry_stays_readable(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  (void)plant(&kit);
  kiln_cache_t* cache = create(&kit, 0, 0);
  kiln_cache_key_t key = cache_kit_key("a");
  kiln_cache_entry_t* entry = NULL;
  cache_kit_ok(kiln_cache_get(cache, &key, &entry));
  cache_kit_ok(kiln_cache_clear(cache, NULL));
  assert_false(is_there(&kit, "a"));
  kiln_cache_release(cache);
  assert_memory_equal(kiln_cache_entry_payload(entry).data, "payload", 7);
  kiln_cache_entry_release(entry);
  cache_kit_deinit(&kit);
}

// ---- Left-over temporary files ----

static int no_locks(void* user, int file, uint64_t offset, uint32_t what) {
  (void)user, (void)file, (void)offset, (void)what;
  return -ENOLCK;
}

static void test_left_over_files(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  (void)plant(&kit);
  char dead[CACHE_KIT_PATH_BYTES], live[CACHE_KIT_PATH_BYTES];
  cache_kit_path(&kit, "tmp-1-2-3", dead);
  cache_kit_path(&kit, "tmp-4-5-6", live);
  cache_kit_write(dead, "x", 1);
  cache_kit_write(live, "x", 1);
  // The live one's writer holds its lock.
  kilni_base_folder_calls_t calls = kilni_base_folder_calls_system();
  int folder = -1;
  assert_int_equal(
      kilni_base_folder_open(&calls, kit.folder, SIZE_MAX, &folder), 0);
  int file = kilni_base_folder_open_file(&calls, folder, "tmp-4-5-6",
                                         KILNI_OPEN_WRITE);
  assert_true(file >= 0);
  assert_int_equal(calls.lock(NULL, file, 0, KILNI_LOCK_TRY), 0);
  kiln_cache_t* cache = create(&kit, 0, 0);
  kiln_cache_report_t report;
  cache_kit_ok(kiln_cache_walk(cache, 0, NULL, NULL, &report));
  assert_int_equal(report.temporaries, 0);
  assert_int_equal(access(dead, F_OK), 0);
  cache_kit_ok(kiln_cache_trim(cache, &report));
  assert_int_equal(report.temporaries, 1);
  assert_int_equal(access(dead, F_OK), -1);
  assert_int_equal(access(live, F_OK), 0);
  calls.close(NULL, file);
  cache_kit_ok(kiln_cache_clear(cache, &report));
  assert_int_equal(report.temporaries, 1);
  assert_int_equal(report.removed, ENTRIES);
  assert_int_equal(access(live, F_OK), -1);
  calls.close(NULL, folder);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static void test_left_over_without_locks(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  (void)plant(&kit);
  char old[CACHE_KIT_PATH_BYTES], young[CACHE_KIT_PATH_BYTES];
  cache_kit_path(&kit, "tmp-1-2-3", old);
  cache_kit_path(&kit, "tmp-4-5-6", young);
  cache_kit_write(old, "x", 1);
  cache_kit_write(young, "x", 1);
  cache_kit_set_age(old, 2 * 3600);
  kiln_cache_t* cache = create(&kit, 0, 0);
  cache->calls.lock = no_locks;
  kiln_cache_report_t report;
  cache_kit_ok(
      kiln_cache_walk(cache, KILN_CACHE_WALK_REPAIR, NULL, NULL, &report));
  assert_int_equal(report.temporaries, 1);
  assert_int_equal(access(old, F_OK), -1);
  assert_int_equal(access(young, F_OK), 0);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

// A temporary file that is tidied away between its making and its lock is
// made again under another name: the entry is stored.
static int steal_first(void* user, int file, uint64_t offset, uint32_t what) {
  static int stolen;
  kilni_base_folder_calls_t system = kilni_base_folder_calls_system();
  const char* folder = user;
  if (offset == 0 && stolen++ == 0) {
    cache_kit_t kit;
    memset(&kit, 0, sizeof(kit));
    snprintf(kit.folder, sizeof(kit.folder), "%.400s", folder);
    kiln_cache_t* other = cache_kit_create(&kit);
    kiln_cache_report_t report;
    cache_kit_ok(kiln_cache_trim(other, &report));
    assert_int_equal(report.temporaries, 1);
    kiln_cache_release(other);
  }
  return system.lock(NULL, file, offset, what);
}

static void test_tidied_away_while_it_is_made(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  kiln_cache_t* cache = cache_kit_create(&kit);
  atomic_store(&cache->needs_names, true);
  cache->calls.lock = steal_first;
  cache->calls.user = kit.folder;
  cache_maker_t maker = {.text = "x"};
  (void)cache_maker_from(&maker, cache, "a");
  assert_int_equal(cache_kit_stats(cache).stored, 1);
  assert_true(is_there(&kit, "a"));
  assert_int_equal(cache_kit_count(&kit, "tmp-"), 0);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

// ---- By itself ----

static void test_by_itself_with_size(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  const uint64_t limit = 100000;
  kiln_cache_t* cache = create(&kit, limit, 0);
  static char text[1001];
  memset(text, 'x', 1000);
  cache_maker_t maker = {.text = text};
  for (int i = 0; i < 400; i++) {
    char key[16];
    snprintf(key, sizeof(key), "%d", i);
    (void)cache_maker_from(&maker, cache, key);
  }
  kiln_cache_report_t report;
  cache_kit_ok(kiln_cache_walk(cache, 0, NULL, NULL, &report));
  assert_true(report.bytes <= limit + limit / 16 + 2000);
  assert_true(report.entries > 50);
  assert_true(cache_kit_stats(cache).disk_evicted > 200);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static void test_by_itself_with_time(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  (void)plant(&kit);
  char locks[CACHE_KIT_PATH_BYTES], dead[CACHE_KIT_PATH_BYTES];
  cache_kit_path(&kit, "locks", locks);
  cache_kit_path(&kit, "tmp-1-2-3", dead);
  cache_kit_write(dead, "x", 1);
  cache_maker_t maker = {.text = "x"};
  for (int i = 0; i < 2; i++) {
    // Five minutes after the last time it is not yet due.
    cache_kit_set_age(locks, i == 0 ? 300 : 900);
    kiln_cache_t* cache = create(&kit, 0, 0);
    (void)cache_maker_from(&maker, cache, i == 0 ? "x" : "y");
    assert_int_equal(access(dead, F_OK), i == 0 ? 0 : -1);
    kiln_cache_release(cache);
  }
  assert_true(cache_kit_age(locks) < 300);
  cache_kit_deinit(&kit);
}

// ---- Walk ----

// What a walk saw. one-thread
typedef struct seen_t {
  int count, good, corrupt, foreign;
  int stop_after;
  char last[KILN_CACHE_NAME_BYTES];
  kiln_cache_t* cache;
} seen_t;

static bool see(void* user, const kiln_cache_item_t* item) {
  seen_t* seen = user;
  assert_true(strcmp(seen->last, item->name) < 0);
  memcpy(seen->last, item->name, sizeof(seen->last));
  seen->count++;
  seen->good += item->state == KILN_CACHE_STATE_GOOD;
  seen->corrupt += item->state == KILN_CACHE_STATE_CORRUPT;
  seen->foreign += item->state == KILN_CACHE_STATE_FOREIGN;
  assert_int_equal(item->why[0] == 0, item->state == KILN_CACHE_STATE_GOOD);
  if (item->state == KILN_CACHE_STATE_GOOD) {
    assert_string_equal(item->kind, "test");
    assert_int_equal(item->version, 1);
    assert_int_equal(item->key_bytes, 1);
    assert_int_equal(item->payload_bytes, 7);
    assert_int_equal(item->metadata_bytes, 8);
    assert_true(item->file_bytes > 100);
    assert_true(item->created_s >= item->used_s);
    // The cache may be used from here.
    kiln_cache_entry_t* entry = NULL;
    cache_kit_ok(kiln_cache_get_named(seen->cache, item->name, &entry));
    if (entry != NULL) {
      assert_string_equal(kiln_cache_entry_name(entry), item->name);
    }
    kiln_cache_entry_release(entry);
  }
  return seen->count != seen->stop_after;
}

static void test_walk(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  uint64_t bytes = plant(&kit);
  char path[CACHE_KIT_PATH_BYTES];
  kiln_cache_report_t report;
  // What is not an entry by its name is nobody's business.
  cache_kit_path(&kit, "notes.txt", path);
  cache_kit_write(path, "x", 1);
  cache_kit_path(&kit, "0123.kiln1", path);
  cache_kit_write(path, "x", 1);
  kiln_cache_t* cache = create(&kit, 0, 0);
  seen_t seen = {.cache = cache};
  cache_kit_ok(kiln_cache_walk(cache, 0, see, &seen, &report));
  assert_int_equal(seen.count, ENTRIES);
  assert_int_equal(seen.good, ENTRIES);
  assert_int_equal(report.entries, ENTRIES);
  assert_int_equal(report.bytes, bytes);
  assert_int_equal(report.bad, 0);
  // Counting opens nothing, and takes no function and no other flag.
  seen_t none = {.cache = cache};
  memset(&report, 0xff, sizeof(report));
  cache_kit_ok(
      kiln_cache_walk(cache, KILN_CACHE_WALK_COUNT, see, &none, &report));
  assert_int_equal(none.count, 0);
  assert_int_equal(report.entries, ENTRIES);
  assert_int_equal(report.bytes, bytes);
  assert_int_equal(report.failures, 0);
  kiln_status_t status = kiln_cache_walk(
      cache, KILN_CACHE_WALK_COUNT | KILN_CACHE_WALK_VERIFY, NULL, NULL, NULL);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  seen = (seen_t){.cache = cache, .stop_after = 3};
  cache_kit_ok(kiln_cache_walk(cache, 0, see, &seen, NULL));
  assert_int_equal(seen.count, 3);
  // Looking is no use.
  cache_kit_entry_path(&kit, "a", path);
  assert_true(cache_kit_age(path) > 7000);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static void test_verify_and_repair(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  (void)plant(&kit);
  char path[CACHE_KIT_PATH_BYTES];
  uint8_t image[4096];
  // A bit inside, a file cut short, one of another version, by content and by
  // name.
  cache_kit_entry_path(&kit, "a", path);
  size_t size = cache_kit_read(path, sizeof(image), image);
  image[size - 20] ^= 1;
  cache_kit_write(path, image, size);
  cache_kit_entry_path(&kit, "b", path);
  cache_kit_write(path, image, size / 2);
  cache_kit_entry_path(&kit, "c", path);
  image[12] = 2;
  cache_kit_write(path, image, size);
  cache_kit_path(&kit, "00000000000000000000000000000000.kiln22", path);
  cache_kit_write(path, "of tomorrow", 11);
  kiln_cache_t* cache = create(&kit, 0, 0);
  kiln_cache_report_t report;
  seen_t seen = {.cache = cache};
  // By the heads alone the flipped bit does not show.
  cache_kit_ok(kiln_cache_walk(cache, 0, see, &seen, &report));
  assert_int_equal(seen.corrupt, 1);
  assert_int_equal(seen.foreign, 2);
  assert_int_equal(report.bad, 3);
  seen = (seen_t){.cache = cache};
  cache_kit_ok(
      kiln_cache_walk(cache, KILN_CACHE_WALK_VERIFY, see, &seen, &report));
  assert_int_equal(seen.corrupt, 2);
  assert_int_equal(report.bad, 4);
  assert_int_equal(report.removed, 0);
  assert_int_equal(report.entries, ENTRIES + 1);
  seen = (seen_t){.cache = cache};
  cache_kit_ok(kiln_cache_walk(cache,
                               KILN_CACHE_WALK_VERIFY | KILN_CACHE_WALK_REPAIR,
                               see, &seen, &report));
  assert_int_equal(report.removed, 2);
  assert_int_equal(report.entries, ENTRIES - 1);
  assert_false(is_there(&kit, "a"));
  assert_false(is_there(&kit, "b"));
  assert_true(is_there(&kit, "c"));
  seen = (seen_t){.cache = cache};
  cache_kit_ok(
      kiln_cache_walk(cache, KILN_CACHE_WALK_VERIFY, see, &seen, &report));
  assert_int_equal(report.bad, 2);
  // Clearing takes other versions' too.
  cache_kit_ok(kiln_cache_clear(cache, &report));
  assert_int_equal(report.entries, 0);
  assert_int_equal(access(path, F_OK), -1);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static void test_get_named(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  (void)plant(&kit);
  kiln_cache_t* cache = create(&kit, 0, 0);
  kiln_cache_entry_t* entry = NULL;
  kiln_cache_key_t key = cache_kit_key("a");
  kilni_cache_hash_t hash = kilni_cache_key_hash(&key);
  char name[KILN_CACHE_NAME_BYTES];
  kilni_cache_hash_text(&hash, name);
  cache_kit_ok(kiln_cache_get_named(cache, name, &entry));
  assert_memory_equal(kiln_cache_entry_key(entry).data, "a", 1);
  kiln_cache_entry_release(entry);
  name[0] = name[0] == '0' ? '1' : '0';
  cache_kit_ok(kiln_cache_get_named(cache, name, &entry));
  assert_null(entry);
  name[31] = 'G';
  cache_kit_fails(kiln_cache_get_named(cache, name, &entry),
                  KILN_STATUS_INVALID_ARGUMENT);
  cache_kit_fails(kiln_cache_get_named(cache, "../../../../etc/passwd", &entry),
                  KILN_STATUS_INVALID_ARGUMENT);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_size),
      cmocka_unit_test(test_use_saves),
      cmocka_unit_test(test_age),
      cmocka_unit_test(test_an_open_entry_stays_readable),
      cmocka_unit_test(test_left_over_files),
      cmocka_unit_test(test_left_over_without_locks),
      cmocka_unit_test(test_tidied_away_while_it_is_made),
      cmocka_unit_test(test_by_itself_with_size),
      cmocka_unit_test(test_by_itself_with_time),
      cmocka_unit_test(test_walk),
      cmocka_unit_test(test_verify_and_repair),
      cmocka_unit_test(test_get_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
