// SPDX-License-Identifier: Apache-2.0
//
// fault: the cache with every allocation and every call on a file failing in
// turn: it gives what was made, or a lack of memory; never something else,
// never an error because of a file; and leaves no bad entry.
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

#include <cmocka.h>

#include "base/env.h"
#include "cache/cache.h"
#include "cache/cache_inside.h"
#include "kiln/cache.h"
#include "kiln/log.h"
#include "fault_folder.h"

enum { PATH_BYTES = 256, TEXT_BYTES = 3000 };

// What a run goes over. one-thread
typedef struct path_t {
  kiln_allocator_t allocator;
  fault_folder_t* files;  // NULL: the system's calls
  bool named;             // temporary names, not files without one
  char top[PATH_BYTES];
  char folder[PATH_BYTES];
  int warnings;
} path_t;

static char kText[TEXT_BYTES];

// ---- A folder for each run ----

static int remove_one(const char* path, const struct stat* info, int kind,
                      struct FTW* place) {
  (void)info, (void)kind, (void)place;
  return remove(path);
}

static void begin(path_t* path) {
  snprintf(path->top, sizeof(path->top), "/tmp/kiln-cache-fault-XXXXXX");
  assert_non_null(mkdtemp(path->top));
  snprintf(path->folder, sizeof(path->folder), "%.200s/a/b", path->top);
  path->warnings = 0;
}

static void on_log(kiln_log_level_t level, const char* space, const char* line,
                   void* user) {
  path_t* path = user;
  (void)space, (void)line;
  if (level == KILN_LOG_WARNING) path->warnings++;
}

static kiln_status_t create(path_t* path, kiln_cache_t** out_cache) {
  kiln_log_sink_t sink = {on_log, path, 0, 0};
  kiln_cache_options_t options = kiln_cache_options_default();
  kilni_base_env_t env;
  memset(&env, 0, sizeof(env));
  env.allocator = kiln_allocator_libc();
  options.directory = path->folder;
  options.disk = KILN_SWITCH_ON;
  options.allocator = &path->allocator;
  options.log = &sink;
  // Nobody is waited for: a lock that is reported as taken is nobody's.
  options.lock_wait_ms = KILN_CACHE_NO_WAIT;
  kiln_status_t status = kilni_cache_create(&options, &env, out_cache);
  assert_int_equal(*out_cache == NULL, !kiln_status_is_ok(status));
  if (!kiln_status_is_ok(status)) return status;
  // It is there: that was asserted above.
  // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
  if (path->files != NULL) (*out_cache)->calls = path->files->calls;
  atomic_store(&(*out_cache)->needs_names, path->named);
  return kiln_ok();
}

// ---- The body ----

static kiln_cache_key_t key_of(const char* text) {
  kiln_cache_key_t key = {"test", 1, 0, {(const uint8_t*)text, strlen(text)}};
  return key;
}

static kiln_status_t make(void* user, kiln_cache_output_t* out) {
  ++*(int*)user;
  out->payload.data = (const uint8_t*)kText;
  out->payload.size = sizeof(kText);
  return kiln_ok();
}

static void check_entry(const kiln_cache_entry_t* entry) {
  kiln_bytes_view_t payload = kiln_cache_entry_payload(entry);
  assert_int_equal(payload.size, sizeof(kText));
  assert_memory_equal(payload.data, kText, sizeof(kText));
}

static kiln_status_t get_or_make(kiln_cache_t* cache, const char* key) {
  kiln_cache_request_t request = kiln_cache_request_default();
  kiln_cache_entry_t* entry = NULL;
  int calls = 0;
  uint32_t from = 0;
  request.key = key_of(key);
  request.make = make;
  request.user = &calls;
  kiln_status_t status = kiln_cache_get_or_make(cache, &request, &entry, &from);
  assert_int_equal(entry == NULL, !kiln_status_is_ok(status));
  assert_int_equal(from == KILN_CACHE_FROM_NOWHERE, entry == NULL);
  if (entry != NULL) check_entry(entry);
  kiln_cache_entry_release(entry);
  return status;
}

static kiln_status_t get(kiln_cache_t* cache, const char* text) {
  kiln_cache_key_t key = key_of(text);
  kiln_cache_entry_t* entry = NULL;
  kiln_status_t status = kiln_cache_get(cache, &key, &entry);
  if (!kiln_status_is_ok(status)) assert_null(entry);
  if (entry != NULL) check_entry(entry);
  kiln_cache_entry_release(entry);
  return status;
}

static kiln_status_t put(kiln_cache_t* cache, const char* text) {
  kiln_cache_key_t key = key_of(text);
  kiln_bytes_view_t none = {NULL, 0};
  kiln_bytes_view_t payload = {(const uint8_t*)kText, sizeof(kText)};
  kiln_cache_entry_t* entry = NULL;
  kiln_status_t status = kiln_cache_put(cache, &key, none, payload, &entry);
  assert_int_equal(entry == NULL, !kiln_status_is_ok(status));
  kiln_cache_entry_release(entry);
  return status;
}

// A walk or a trim says what keeps it from its work; with a cure.
static kiln_status_t may_say(kiln_status_t status) {
  kiln_status_code_t code = kiln_status_code(status);
  if (code == KILN_STATUS_IO_ERROR || code == KILN_STATUS_PERMISSION_DENIED) {
    assert_non_null(kiln_status_fix(status));
    kiln_status_free(status);
    return kiln_ok();
  }
  return status;
}

static kiln_status_t use(kiln_cache_t* cache, int round) {
  kiln_status_t status = get_or_make(cache, "a");
  if (kiln_status_is_ok(status)) status = get(cache, "a");
  if (kiln_status_is_ok(status)) status = put(cache, "a");
  if (kiln_status_is_ok(status)) status = get(cache, "b");
  if (kiln_status_is_ok(status)) status = get_or_make(cache, "b");
  if (!kiln_status_is_ok(status) || round == 0) return status;
  kiln_cache_key_t key = key_of("b");
  status = kiln_cache_remove(cache, &key);
  if (kiln_status_is_ok(status)) {
    status = may_say(
        kiln_cache_walk(cache, KILN_CACHE_WALK_VERIFY | KILN_CACHE_WALK_REPAIR,
                        NULL, NULL, NULL));
  }
  if (kiln_status_is_ok(status)) status = may_say(kiln_cache_trim(cache, NULL));
  return status;
}

// What is left is whole, and what is left over goes with the next clean-up.
static void check_folder(const path_t* path) {
  path_t plain = *path;
  plain.files = NULL;
  plain.allocator = kiln_allocator_libc();
  kiln_cache_t* cache = NULL;
  kiln_cache_report_t report;
  assert_null(create(&plain, &cache));
  assert_null(kiln_cache_trim(cache, &report));
  assert_null(
      kiln_cache_walk(cache, KILN_CACHE_WALK_VERIFY, NULL, NULL, &report));
  assert_int_equal(report.bad, 0);
  assert_null(kiln_cache_trim(cache, &report));
  assert_int_equal(report.temporaries, 0);
  kiln_cache_release(cache);
}

static kiln_status_t run_path(path_t* path) {
  kiln_status_t status = kiln_ok();
  begin(path);
  for (int round = 0; round < 2 && kiln_status_is_ok(status); round++) {
    kiln_cache_t* cache = NULL;
    path->warnings = 0;
    status = create(path, &cache);
    if (kiln_status_is_ok(status)) status = use(cache, round);
    kiln_cache_release(cache);
    // One of the disk and one of an entry at the most.
    assert_true(path->warnings <= 2);
  }
  check_folder(path);
  assert_int_equal(nftw(path->top, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
  return status;
}

// ---- Allocations ----

static kiln_status_t allocation_body(kiln_allocator_t allocator, void* user) {
  path_t* path = user;
  path->allocator = allocator;
  return run_path(path);
}

// The cache goes on without its table and without saying what is wrong.
static void test_allocations(void** state) {
  (void)state;
  path_t path;
  memset(&path, 0, sizeof(path));
  uint64_t count =
      fault_run_allocations(allocation_body, &path, FAULT_RUN_MAY_PASS);
  print_message("%llu allocations\n", (unsigned long long)count);
  assert_true(count > 20);
}

// ---- Calls on files ----

static kiln_status_t file_body(void* user) {
  kiln_status_t status = fault_run_watched(allocation_body, user);
  // No file is a reason to fail.
  if (!kiln_status_is_ok(status)) {
    fail_msg("%s", kiln_status_message(status));
  }
  return status;
}

static void sweep(int error) {
  for (int named = 0; named < 2; named++) {
    static fault_folder_t files;
    path_t path;
    memset(&path, 0, sizeof(path));
    fault_folder_init(&files, error);
    path.files = &files;
    path.named = named == 1;
    fault_points_t points = fault_folder_points(&files);
    uint64_t count = fault_run(&points, file_body, &path, FAULT_RUN_MAY_PASS);
    print_message("%llu calls on files\n", (unsigned long long)count);
    assert_true(count > 60);
  }
}

static void test_full(void** state) {
  (void)state;
  sweep(ENOSPC);
}

static void test_quota(void** state) {
  (void)state;
  sweep(EDQUOT);
}

static void test_broken(void** state) {
  (void)state;
  sweep(EIO);
}

static void test_refused(void** state) {
  (void)state;
  sweep(EACCES);
}

static void test_gone(void** state) {
  (void)state;
  sweep(ENOENT);
}

static void test_not_there(void** state) {
  (void)state;
  sweep(EOPNOTSUPP);
}

static void test_taken(void** state) {
  (void)state;
  sweep(EAGAIN);
}

static void test_interrupted(void** state) {
  (void)state;
  sweep(EINTR);
}

static void test_half(void** state) {
  (void)state;
  sweep(FAULT_FOLDER_HALF);
}

int main(void) {
  for (size_t i = 0; i < sizeof(kText); i++) kText[i] = (char)(i * 7 + i / 256);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_allocations), cmocka_unit_test(test_full),
      cmocka_unit_test(test_quota),       cmocka_unit_test(test_broken),
      cmocka_unit_test(test_refused),     cmocka_unit_test(test_gone),
      cmocka_unit_test(test_not_there),   cmocka_unit_test(test_taken),
      cmocka_unit_test(test_interrupted), cmocka_unit_test(test_half),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
