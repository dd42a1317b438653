// SPDX-License-Identifier: Apache-2.0
//
// cache: the memory layer: a budget, the least used first to go.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cache_kit.h"
#include "base/env.h"
#include "cache/cache.h"
#include "kiln/cache.h"

enum { ENTRIES = 4, PAYLOAD = 4096, MANY = 2000 };

static kiln_cache_t* create_memory(uint64_t bytes, uint32_t memory) {
  kiln_cache_options_t options = kiln_cache_options_default();
  kilni_base_env_t env;
  kiln_cache_t* cache = NULL;
  cache_kit_env(&env);
  options.disk = KILN_SWITCH_OFF;
  options.memory = memory;
  options.memory_bytes = bytes;
  cache_kit_ok(kilni_cache_create(&options, &env, &cache));
  return cache;
}

static kiln_cache_entry_t* put(kiln_cache_t* cache, const char* name,
                               size_t size) {
  static const uint8_t zeroes[1 << 20];
  kiln_cache_key_t key = cache_kit_key(name);
  kiln_bytes_view_t none = {NULL, 0}, payload = {zeroes, size};
  kiln_cache_entry_t* entry = NULL;
  cache_kit_ok(kiln_cache_put(cache, &key, none, payload, &entry));
  return entry;
}

static bool has(kiln_cache_t* cache, const char* name) {
  kiln_cache_key_t key = cache_kit_key(name);
  kiln_cache_entry_t* entry = NULL;
  cache_kit_ok(kiln_cache_get(cache, &key, &entry));
  kiln_cache_entry_release(entry);
  return entry != NULL;
}

static void test_least_used_goes_first(void** state) {
  (void)state;
  static const char* const names[ENTRIES + 1] = {"a", "b", "c", "d", "e"};
  // Space for four and a bit.
  kiln_cache_t* cache =
      create_memory(ENTRIES * (PAYLOAD + 512), KILN_SWITCH_DEFAULT);
  for (int i = 0; i < ENTRIES; i++) {
    kiln_cache_entry_release(put(cache, names[i], PAYLOAD));
  }
  assert_true(has(cache, "a"));
  kiln_cache_entry_release(put(cache, "e", PAYLOAD));
  assert_false(has(cache, "b"));
  assert_true(has(cache, "a"));
  assert_true(has(cache, "c"));
  assert_true(has(cache, "d"));
  assert_true(has(cache, "e"));
  kiln_cache_stats_t stats = cache_kit_stats(cache);
  assert_int_equal(stats.memory_evicted, 1);
  assert_int_equal(stats.memory_entries, ENTRIES);
  assert_true(stats.memory_used_bytes <= stats.memory_limit_bytes);
  kiln_cache_release(cache);
}

static void test_what_is_held_stays_readable(void** state) {
  (void)state;
  kiln_cache_t* cache = create_memory(2 * PAYLOAD, KILN_SWITCH_DEFAULT);
  kiln_cache_entry_t* entry = put(cache, "a", PAYLOAD);
  kiln_cache_entry_release(put(cache, "b", PAYLOAD));
  assert_false(has(cache, "a"));
  assert_int_equal(kiln_cache_entry_payload(entry).size, PAYLOAD);
  cache_kit_ok(kiln_cache_clear(cache, NULL));
  kiln_cache_release(cache);
  kiln_cache_entry_retain(entry);
  kiln_cache_entry_release(entry);
  assert_int_equal(kiln_cache_entry_payload(entry).data[PAYLOAD - 1], 0);
  kiln_cache_entry_release(entry);
}

static void test_too_large_is_not_kept(void** state) {
  (void)state;
  kiln_cache_t* cache = create_memory(PAYLOAD, KILN_SWITCH_DEFAULT);
  kiln_cache_entry_release(put(cache, "small", 16));
  kiln_cache_entry_release(put(cache, "large", PAYLOAD));
  assert_false(has(cache, "large"));
  assert_true(has(cache, "small"));
  kiln_cache_release(cache);
}

static void test_off_keeps_nothing(void** state) {
  (void)state;
  kiln_cache_t* cache = create_memory(0, KILN_SWITCH_OFF);
  kiln_cache_entry_release(put(cache, "a", 16));
  assert_false(has(cache, "a"));
  cache_maker_t maker = {.text = "x"};
  assert_int_equal(cache_maker_from(&maker, cache, "a"), KILN_CACHE_FROM_MAKE);
  assert_int_equal(cache_maker_from(&maker, cache, "a"), KILN_CACHE_FROM_MAKE);
  assert_string_equal(kiln_cache_directory(cache), "");
  assert_string_equal(kiln_cache_disk_problem(cache), "");
  kiln_cache_release(cache);
}

static void test_many(void** state) {
  (void)state;
  kiln_cache_t* cache = create_memory(0, KILN_SWITCH_ON);
  char name[32];
  for (int i = 0; i < MANY; i++) {
    snprintf(name, sizeof(name), "%d", i);
    kiln_cache_entry_release(put(cache, name, (size_t)i % 100));
  }
  for (int i = 0; i < MANY; i++) {
    snprintf(name, sizeof(name), "%d", i);
    assert_true(has(cache, name));
  }
  assert_int_equal(cache_kit_stats(cache).memory_entries, MANY);
  for (int i = 0; i < MANY; i += 2) {
    snprintf(name, sizeof(name), "%d", i);
    kiln_cache_key_t key = cache_kit_key(name);
    cache_kit_ok(kiln_cache_remove(cache, &key));
    assert_false(has(cache, name));
  }
  assert_int_equal(cache_kit_stats(cache).memory_entries, MANY / 2);
  cache_kit_ok(kiln_cache_clear(cache, NULL));
  assert_int_equal(cache_kit_stats(cache).memory_entries, 0);
  assert_int_equal(cache_kit_stats(cache).memory_used_bytes, 0);
  kiln_cache_release(cache);
}

// A hash only finds: one that two keys share gives neither the other's entry.
static void test_full_key_is_compared(void** state) {
  (void)state;
  kiln_cache_t* cache = create_memory(0, KILN_SWITCH_ON);
  kiln_cache_entry_t* entry = put(cache, "a", 16);
  kiln_cache_key_t others[4];
  for (int i = 0; i < 4; i++) others[i] = cache_kit_key("a");
  others[1].kind = "tesT";
  others[2].version = 9;
  others[3].bytes = cache_kit_bytes("b");
  for (int i = 0; i < 4; i++) {
    kiln_cache_entry_t* found =
        kilni_cache_memory_get(&cache->memory, &entry->hash, &others[i]);
    assert_ptr_equal(found, i == 0 ? entry : NULL);
    kiln_cache_entry_release(found);
  }
  kiln_cache_entry_release(entry);
  kiln_cache_release(cache);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_least_used_goes_first),
      cmocka_unit_test(test_what_is_held_stays_readable),
      cmocka_unit_test(test_too_large_is_not_kept),
      cmocka_unit_test(test_off_keeps_nothing),
      cmocka_unit_test(test_many),
      cmocka_unit_test(test_full_key_is_compared),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
