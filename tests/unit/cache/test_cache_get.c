// SPDX-License-Identifier: Apache-2.0
//
// cache: get, put, remove, get or make, in memory and on disk, by one thread.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache_kit.h"
#include "kiln/cache.h"

static void test_memory_then_disk(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  cache_maker_t maker = {.text = "payload"};
  kiln_cache_t* cache = cache_kit_create(&kit);
  assert_int_equal(cache_maker_from(&maker, cache, "a"), KILN_CACHE_FROM_MAKE);
  assert_int_equal(cache_maker_from(&maker, cache, "a"),
                   KILN_CACHE_FROM_MEMORY);
  kiln_cache_release(cache);
  cache = cache_kit_create(&kit);
  assert_int_equal(cache_maker_from(&maker, cache, "a"), KILN_CACHE_FROM_DISK);
  assert_int_equal(cache_maker_from(&maker, cache, "a"),
                   KILN_CACHE_FROM_MEMORY);
  assert_int_equal(cache_maker_from(&maker, cache, "b"), KILN_CACHE_FROM_MAKE);
  assert_int_equal(maker.calls, 2);
  kiln_cache_stats_t stats = cache_kit_stats(cache);
  assert_int_equal(stats.disk_hits, 1);
  assert_int_equal(stats.memory_hits, 1);
  assert_int_equal(stats.misses, 1);
  assert_int_equal(stats.made, 1);
  assert_int_equal(stats.stored, 1);
  assert_int_equal(stats.memory_entries, 2);
  assert_int_equal(kit.warnings, 0);
  assert_int_equal(cache_kit_count(&kit, "tmp-"), 0);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static void test_all_of_an_entry(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  kiln_cache_key_t key = {"cubin", 7, 0, cache_kit_bytes("what it is made of")};
  for (int i = 0; i < 2; i++) {
    kiln_cache_t* cache = cache_kit_create(&kit);
    kiln_cache_entry_t* entry = NULL;
    if (i == 0) {
      cache_kit_ok(kiln_cache_put(cache, &key, cache_kit_bytes("beside"),
                                  cache_kit_bytes("code"), &entry));
    } else {
      cache_kit_ok(kiln_cache_get(cache, &key, &entry));
    }
    assert_non_null(entry);
    // An entry outlives its cache, and its file.
    kiln_cache_release(cache);
    if (i == 1) {
      char path[CACHE_KIT_PATH_BYTES], file[64];
      snprintf(file, sizeof(file), "%s.kiln1", kiln_cache_entry_name(entry));
      cache_kit_path(&kit, file, path);
      assert_int_equal(unlink(path), 0);
    }
    kiln_bytes_view_t payload = kiln_cache_entry_payload(entry);
    assert_int_equal(payload.size, 4);
    assert_memory_equal(payload.data, "code", 4);
    assert_int_equal((uintptr_t)payload.data % 64, 0);
    assert_memory_equal(kiln_cache_entry_metadata(entry).data, "beside", 6);
    assert_int_equal(kiln_cache_entry_key(entry).size, key.bytes.size);
    assert_memory_equal(kiln_cache_entry_key(entry).data, key.bytes.data,
                        key.bytes.size);
    assert_string_equal(kiln_cache_entry_kind(entry), "cubin");
    assert_int_equal(kiln_cache_entry_version(entry), 7);
    assert_int_equal(strlen(kiln_cache_entry_name(entry)), 32);
    assert_true(kiln_cache_entry_created(entry) > 1500000000);
    kiln_cache_entry_release(entry);
  }
  cache_kit_deinit(&kit);
}

static void test_empty_parts(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  kiln_bytes_view_t none = {NULL, 0};
  kiln_cache_key_t key = {"x", 0, 0, {NULL, 0}};
  for (int i = 0; i < 2; i++) {
    kiln_cache_t* cache = cache_kit_create(&kit);
    kiln_cache_entry_t* entry = NULL;
    if (i == 0) {
      cache_kit_ok(kiln_cache_put(cache, &key, none, none, NULL));
    }
    cache_kit_ok(kiln_cache_get(cache, &key, &entry));
    assert_non_null(entry);
    assert_int_equal(kiln_cache_entry_payload(entry).size, 0);
    kiln_cache_entry_release(entry);
    kiln_cache_release(cache);
  }
  cache_kit_deinit(&kit);
}

static void test_put_replaces_and_remove_removes(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  kiln_cache_key_t key = cache_kit_key("a");
  kiln_bytes_view_t none = {NULL, 0};
  kiln_cache_t* cache = cache_kit_create(&kit);
  kiln_cache_entry_t *old = NULL, *entry = NULL;
  cache_kit_ok(kiln_cache_put(cache, &key, none, cache_kit_bytes("old"), &old));
  cache_kit_ok(kiln_cache_put(cache, &key, none, cache_kit_bytes("new"), NULL));
  kiln_cache_t* other = cache_kit_create(&kit);
  cache_kit_ok(kiln_cache_get(other, &key, &entry));
  assert_memory_equal(kiln_cache_entry_payload(entry).data, "new", 3);
  kiln_cache_entry_release(entry);
  cache_kit_ok(kiln_cache_get(cache, &key, &entry));
  assert_memory_equal(kiln_cache_entry_payload(entry).data, "new", 3);
  kiln_cache_entry_release(entry);
  assert_memory_equal(kiln_cache_entry_payload(old).data, "old", 3);
  kiln_cache_entry_release(old);
  assert_int_equal(cache_kit_count(&kit, "tmp-"), 0);
  cache_kit_ok(kiln_cache_remove(cache, &key));
  cache_kit_ok(kiln_cache_remove(cache, &key));
  cache_kit_ok(kiln_cache_get(cache, &key, &entry));
  assert_null(entry);
  kiln_cache_release(other);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static bool holds(void* user, const kiln_cache_entry_t* entry) {
  cache_maker_t* maker = user;
  kiln_bytes_view_t payload = kiln_cache_entry_payload(entry);
  return payload.size == strlen(maker->text) &&
         memcmp(payload.data, maker->text, payload.size) == 0;
}

static void test_what_does_not_hold_is_made_anew(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  cache_maker_t maker = {.text = "first"};
  kiln_cache_t* cache = cache_kit_create(&kit);
  for (int i = 0; i < 4; i++) {
    // 0: made; 1: holds; 2: does not, in memory and on disk; 3: holds
    maker.text = i < 2 ? "first" : "second";
    kiln_cache_request_t request = cache_maker_request(&maker, "a");
    kiln_cache_entry_t* entry = NULL;
    uint32_t from = 0;
    request.check = holds;
    cache_kit_ok(kiln_cache_get_or_make(cache, &request, &entry, &from));
    assert_int_equal(
        from, i % 2 == 0 ? KILN_CACHE_FROM_MAKE : KILN_CACHE_FROM_MEMORY);
    assert_true(holds(&maker, entry));
    kiln_cache_entry_release(entry);
  }
  assert_int_equal(maker.calls, 2);
  assert_true(cache_kit_stats(cache).stale >= 1);
  kiln_cache_release(cache);
  cache = cache_kit_create(&kit);
  assert_int_equal(cache_maker_from(&maker, cache, "a"), KILN_CACHE_FROM_DISK);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static void test_for_this_caller_only(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  cache_maker_t maker = {.text = "secret", .store = KILN_SWITCH_OFF};
  kiln_cache_t* cache = cache_kit_create(&kit);
  assert_int_equal(cache_maker_from(&maker, cache, "a"), KILN_CACHE_FROM_MAKE);
  assert_int_equal(cache_maker_from(&maker, cache, "a"), KILN_CACHE_FROM_MAKE);
  assert_int_equal(maker.calls, 2);
  assert_int_equal(cache_kit_stats(cache).memory_entries, 0);
  assert_int_equal(cache_kit_stats(cache).stored, 0);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static void test_a_failure_is_not_kept(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  cache_maker_t maker = {.text = "x", .fails = KILN_STATUS_COMPILE_FAILED};
  kiln_cache_t* cache = cache_kit_create(&kit);
  kiln_cache_request_t request = cache_maker_request(&maker, "a");
  kiln_cache_entry_t* entry = (kiln_cache_entry_t*)&kit;
  uint32_t from = 9;
  cache_kit_fails(kiln_cache_get_or_make(cache, &request, &entry, &from),
                  KILN_STATUS_COMPILE_FAILED);
  assert_null(entry);
  assert_int_equal(from, KILN_CACHE_FROM_NOWHERE);
  maker.fails = KILN_STATUS_OK;
  assert_int_equal(cache_maker_from(&maker, cache, "a"), KILN_CACHE_FROM_MAKE);
  assert_int_equal(cache_kit_stats(cache).make_failures, 1);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static kiln_status_t make_nonsense(void* user, kiln_cache_output_t* out) {
  (void)user;
  out->payload.size = 5;
  return kiln_ok();
}

static void test_arguments(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  cache_maker_t maker = {.text = "x"};
  kiln_cache_t* cache = cache_kit_create(&kit);
  kiln_cache_key_t key = cache_kit_key("a");
  kiln_cache_request_t request = cache_maker_request(&maker, "a");
  kiln_cache_entry_t* entry = NULL;
  kiln_bytes_view_t bad = {NULL, 3}, none = {NULL, 0};
  const kiln_status_code_t invalid = KILN_STATUS_INVALID_ARGUMENT;
  cache_kit_fails(kiln_cache_get(NULL, &key, &entry), invalid);
  cache_kit_fails(kiln_cache_get(cache, NULL, &entry), invalid);
  cache_kit_fails(kiln_cache_get(cache, &key, NULL), invalid);
  cache_kit_fails(kiln_cache_put(cache, &key, bad, none, NULL), invalid);
  cache_kit_fails(kiln_cache_put(cache, &key, none, bad, NULL), invalid);
  cache_kit_fails(kiln_cache_remove(cache, NULL), invalid);
  cache_kit_fails(kiln_cache_get_or_make(cache, NULL, &entry, NULL), invalid);
  request.make = NULL;
  cache_kit_fails(kiln_cache_get_or_make(cache, &request, &entry, NULL),
                  invalid);
  request.make = make_nonsense;
  cache_kit_fails(kiln_cache_get_or_make(cache, &request, &entry, NULL),
                  invalid);
  request.struct_size = 0;
  cache_kit_fails(kiln_cache_get_or_make(cache, &request, &entry, NULL),
                  invalid);
  cache_kit_fails(kiln_cache_get_named(cache, "not the name", &entry), invalid);
  cache_kit_fails(kiln_cache_walk(cache, 64, NULL, NULL, NULL), invalid);
  kiln_cache_release(NULL);
  kiln_cache_retain(NULL);
  kiln_cache_entry_release(NULL);
  assert_int_equal(kiln_cache_entry_payload(NULL).size, 0);
  assert_string_equal(kiln_cache_entry_name(NULL), "");
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

// Exits with 0 if every call is refused.
static void use_in_child(kiln_cache_t* cache, kiln_cache_entry_t* entry) {
  kiln_cache_key_t key = cache_kit_key("a");
  cache_maker_t maker = {.text = "x"};
  kiln_cache_request_t request = cache_maker_request(&maker, "a");
  kiln_cache_entry_t* out = NULL;
  kiln_bytes_view_t none = {NULL, 0};
  kiln_cache_stats_t stats;
  kiln_status_t refused[] = {
      kiln_cache_get(cache, &key, &out),
      kiln_cache_put(cache, &key, none, none, &out),
      kiln_cache_remove(cache, &key),
      kiln_cache_get_or_make(cache, &request, &out, NULL),
      kiln_cache_walk(cache, 0, NULL, NULL, NULL),
      kiln_cache_get_named(cache, "00000000000000000000000000000000", &out),
      kiln_cache_trim(cache, NULL),
      kiln_cache_clear(cache, NULL),
  };
  int wrong = 0;
  for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
    if (kiln_status_code(refused[i]) != KILN_STATUS_INVALID_STATE ||
        kiln_status_fix(refused[i]) == NULL) {
      wrong++;
    }
    kiln_status_free(refused[i]);
  }
  kiln_cache_stats(cache, &stats);
  if (out != NULL || maker.calls != 0 || stats.stored != 0) wrong++;
  kiln_cache_entry_release(entry);
  kiln_cache_release(cache);
  // What the parent made is readable all the same.
  if (kiln_cache_entry_payload(entry).size != 7) wrong++;
  _exit(wrong);
}

static void test_after_fork(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  kiln_cache_t* cache = cache_kit_create(&kit);
  kiln_cache_key_t key = cache_kit_key("a");
  kiln_bytes_view_t none = {NULL, 0};
  kiln_cache_entry_t* entry = NULL;
  cache_kit_ok(
      kiln_cache_put(cache, &key, none, cache_kit_bytes("payload"), &entry));
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) use_in_child(cache, entry);
  int code = -1;
  assert_int_equal(waitpid(child, &code, 0), child);
  assert_true(WIFEXITED(code));
  assert_int_equal(WEXITSTATUS(code), 0);
  kiln_cache_entry_release(entry);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_memory_then_disk),
      cmocka_unit_test(test_all_of_an_entry),
      cmocka_unit_test(test_empty_parts),
      cmocka_unit_test(test_put_replaces_and_remove_removes),
      cmocka_unit_test(test_what_does_not_hold_is_made_anew),
      cmocka_unit_test(test_for_this_caller_only),
      cmocka_unit_test(test_a_failure_is_not_kept),
      cmocka_unit_test(test_arguments),
      cmocka_unit_test(test_after_fork),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
