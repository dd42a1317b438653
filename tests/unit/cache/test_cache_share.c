// SPDX-License-Identifier: Apache-2.0
//
// cache: one maker of a key at a time, across threads and processes.
#define _GNU_SOURCE  // usleep, MAP_ANONYMOUS
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache_kit.h"
#include "base/env.h"
#include "cache/cache.h"
#include "kiln/cache.h"

enum { THREADS = 8, ROUNDS = 200, LONG_MS = 60000 };

// ---- Threads ----

// A maker that stays inside until it is told to end. thread-safe
typedef struct gate_t {
  cache_maker_t maker;
  atomic_int inside;
  atomic_bool open;
} gate_t;

static kiln_status_t make_at_gate(void* user, kiln_cache_output_t* out) {
  gate_t* gate = user;
  atomic_fetch_add(&gate->inside, 1);
  while (!atomic_load(&gate->open)) (void)usleep(100);
  return cache_maker_make(&gate->maker, out);
}

// One thread's call. one-thread
typedef struct caller_t {
  kiln_cache_t* cache;
  gate_t* gate;
  const char* key;
  uint32_t wait_ms;
  uint32_t from;
  kiln_status_code_t code;
  kilni_base_thread_t thread;
} caller_t;

static void call(void* user) {
  caller_t* caller = user;
  kiln_cache_request_t request =
      cache_maker_request(&caller->gate->maker, caller->key);
  kiln_cache_entry_t* entry = NULL;
  request.make = make_at_gate;
  request.user = caller->gate;
  request.lock_wait_ms = caller->wait_ms;
  kiln_status_t status =
      kiln_cache_get_or_make(caller->cache, &request, &entry, &caller->from);
  caller->code = kiln_status_code(status);
  kiln_status_free(status);
  if (caller->code == KILN_STATUS_OK && kiln_cache_entry_payload(entry).size !=
                                            strlen(caller->gate->maker.text)) {
    caller->code = KILN_STATUS_INTERNAL;
  }
  kiln_cache_entry_release(entry);
}

static void start(caller_t* caller, kiln_cache_t* cache, gate_t* gate,
                  const char* key, uint32_t wait_ms) {
  memset(caller, 0, sizeof(*caller));
  caller->cache = cache;
  caller->gate = gate;
  caller->key = key;
  caller->wait_ms = wait_ms;
  cache_kit_ok(
      kilni_base_thread_start(&caller->thread, "caller", call, caller));
}

static void wait_for(atomic_uint_fast64_t* counter, uint64_t value) {
  while (atomic_load(counter) < value) (void)usleep(100);
}

static kiln_cache_t* create(cache_kit_t* kit, bool disk) {
  kiln_cache_options_t options = cache_kit_options(kit);
  kilni_base_env_t env;
  kiln_cache_t* cache = NULL;
  cache_kit_env(&env);
  options.disk = disk ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
  cache_kit_ok(kilni_cache_create(&options, &env, &cache));
  return cache;
}

static void test_threads_share_one_make(void** state) {
  (void)state;
  for (int disk = 0; disk < 2; disk++) {
    cache_kit_t kit;
    cache_kit_init(&kit);
    kiln_cache_t* cache = create(&kit, disk == 1);
    gate_t gate = {.maker = {.text = "payload"}};
    caller_t callers[THREADS];
    for (int i = 0; i < THREADS; i++) {
      start(&callers[i], cache, &gate, "a", LONG_MS);
    }
    wait_for(&cache->counts.lock_waits, THREADS - 1);
    atomic_store(&gate.open, true);
    int made = 0;
    for (int i = 0; i < THREADS; i++) {
      kilni_base_thread_join(&callers[i].thread);
      assert_int_equal(callers[i].code, KILN_STATUS_OK);
      made += callers[i].from == KILN_CACHE_FROM_MAKE;
      assert_true(callers[i].from == KILN_CACHE_FROM_MAKE ||
                  callers[i].from == KILN_CACHE_FROM_OTHER);
    }
    assert_int_equal(made, 1);
    assert_int_equal(gate.maker.calls, 1);
    assert_int_equal(cache_kit_stats(cache).shared, THREADS - 1);
    kiln_cache_release(cache);
    cache_kit_deinit(&kit);
  }
}

// Makers that are quick, so that callers come before, during and after.
static void test_never_twice(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  kiln_cache_t* cache = create(&kit, false);
  for (int round = 0; round < ROUNDS; round++) {
    gate_t gate = {.maker = {.text = "payload"}, .open = true};
    caller_t callers[THREADS];
    char key[16];
    snprintf(key, sizeof(key), "%d", round);
    for (int i = 0; i < THREADS; i++) {
      start(&callers[i], cache, &gate, key, LONG_MS);
    }
    for (int i = 0; i < THREADS; i++) {
      kilni_base_thread_join(&callers[i].thread);
      assert_int_equal(callers[i].code, KILN_STATUS_OK);
    }
    assert_int_equal(gate.maker.calls, 1);
  }
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static void test_other_keys_do_not_wait(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  kiln_cache_t* cache = create(&kit, true);
  gate_t gate = {.maker = {.text = "payload"}};
  caller_t a, b;
  start(&a, cache, &gate, "a", LONG_MS);
  start(&b, cache, &gate, "b", LONG_MS);
  while (atomic_load(&gate.inside) < 2) (void)usleep(100);
  atomic_store(&gate.open, true);
  kilni_base_thread_join(&a.thread);
  kilni_base_thread_join(&b.thread);
  assert_int_equal(a.from, KILN_CACHE_FROM_MAKE);
  assert_int_equal(b.from, KILN_CACHE_FROM_MAKE);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

static void test_the_wait_ends(void** state) {
  (void)state;
  for (int disk = 0; disk < 2; disk++) {
    cache_kit_t kit;
    cache_kit_init(&kit);
    kiln_cache_t* cache = create(&kit, disk == 1);
    gate_t gate = {.maker = {.text = "payload"}};
    gate_t own = {.maker = {.text = "payload"}, .open = true};
    caller_t slow, patient, hasty;
    start(&slow, cache, &gate, "a", LONG_MS);
    while (atomic_load(&gate.inside) == 0) (void)usleep(100);
    start(&patient, cache, &own, "a", 50);
    start(&hasty, cache, &own, "a", KILN_CACHE_NO_WAIT);
    kilni_base_thread_join(&hasty.thread);
    kilni_base_thread_join(&patient.thread);
    // Both are back although the first maker is still at it.
    assert_int_equal(patient.code, KILN_STATUS_OK);
    assert_int_equal(hasty.code, KILN_STATUS_OK);
    assert_int_equal(hasty.from == KILN_CACHE_FROM_MAKE ||
                         hasty.from == KILN_CACHE_FROM_MEMORY,
                     1);
    assert_true(atomic_load(&own.inside) >= 1);
    atomic_store(&gate.open, true);
    kilni_base_thread_join(&slow.thread);
    assert_int_equal(slow.code, KILN_STATUS_OK);
    kiln_cache_release(cache);
    cache_kit_deinit(&kit);
  }
}

// Says yes from the third time on.
static bool give_up(void* user) {
  atomic_int* asked = user;
  return atomic_fetch_add(asked, 1) >= 2;
}

static kiln_status_t make_nothing(void* user, kiln_cache_output_t* out) {
  (void)user;
  (void)out;
  fail_msg("somebody else makes it");
  return kiln_ok();
}

// Behind a thread of its own cache, and behind another's lock on the disk.
static void test_who_gives_up_waits_no_longer(void** state) {
  (void)state;
  for (int other = 0; other < 2; other++) {
    cache_kit_t kit;
    cache_kit_init(&kit);
    kiln_cache_t* one = create(&kit, true);
    kiln_cache_t* two = create(&kit, true);
    gate_t gate = {.maker = {.text = "payload"}};
    caller_t slow;
    start(&slow, one, &gate, "a", LONG_MS);
    while (atomic_load(&gate.inside) == 0) (void)usleep(100);
    atomic_int asked = 0;
    kiln_cache_request_t request = cache_maker_request(&gate.maker, "a");
    request.make = make_nothing;
    request.cancelled = give_up;
    request.user = &asked;
    request.lock_wait_ms = LONG_MS;
    kiln_cache_entry_t* entry = NULL;
    kiln_status_t status =
        kiln_cache_get_or_make(other == 1 ? two : one, &request, &entry, NULL);
    cache_kit_fails(status, KILN_STATUS_CANCELLED);
    assert_null(entry);
    assert_int_equal(atomic_load(&asked), 3);
    atomic_store(&gate.open, true);
    kilni_base_thread_join(&slow.thread);
    assert_int_equal(slow.from, KILN_CACHE_FROM_MAKE);
    // And who asks again gets it.
    assert_int_equal(cache_maker_from(&gate.maker, two, "a"),
                     KILN_CACHE_FROM_DISK);
    kiln_cache_release(one);
    kiln_cache_release(two);
    cache_kit_deinit(&kit);
  }
}

static void test_the_next_tries_after_a_failure(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  kiln_cache_t* cache = create(&kit, false);
  gate_t bad = {.maker = {.text = "x", .fails = KILN_STATUS_COMPILE_FAILED}};
  gate_t good = {.maker = {.text = "payload"}, .open = true};
  caller_t first, others[THREADS];
  start(&first, cache, &bad, "a", LONG_MS);
  while (atomic_load(&bad.inside) == 0) (void)usleep(100);
  for (int i = 0; i < THREADS; i++) {
    start(&others[i], cache, &good, "a", LONG_MS);
  }
  wait_for(&cache->counts.lock_waits, THREADS);
  atomic_store(&bad.open, true);
  kilni_base_thread_join(&first.thread);
  assert_int_equal(first.code, KILN_STATUS_COMPILE_FAILED);
  for (int i = 0; i < THREADS; i++) {
    kilni_base_thread_join(&others[i].thread);
    assert_int_equal(others[i].code, KILN_STATUS_OK);
  }
  assert_int_equal(good.maker.calls, 1);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

// What is for its caller only is made by each, and nobody waits in a row.
static void test_what_is_not_shared(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  kiln_cache_t* cache = create(&kit, false);
  gate_t gate = {.maker = {.text = "x", .store = KILN_SWITCH_OFF}};
  caller_t callers[THREADS];
  for (int i = 0; i < THREADS; i++) {
    start(&callers[i], cache, &gate, "a", LONG_MS);
  }
  wait_for(&cache->counts.lock_waits, THREADS - 1);
  atomic_store(&gate.open, true);
  for (int i = 0; i < THREADS; i++) {
    kilni_base_thread_join(&callers[i].thread);
    assert_int_equal(callers[i].from, KILN_CACHE_FROM_MAKE);
  }
  assert_int_equal(gate.maker.calls, THREADS);
  kiln_cache_release(cache);
  cache_kit_deinit(&kit);
}

// Two libraries in one process each have a cache of their own on one folder.
static void test_caches_of_one_process(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  kiln_cache_t* one = create(&kit, true);
  kiln_cache_t* two = create(&kit, true);
  gate_t gate = {.maker = {.text = "payload"}};
  caller_t first, second;
  start(&first, one, &gate, "a", LONG_MS);
  while (atomic_load(&gate.inside) == 0) (void)usleep(100);
  start(&second, two, &gate, "a", LONG_MS);
  wait_for(&two->counts.lock_waits, 1);
  atomic_store(&gate.open, true);
  kilni_base_thread_join(&first.thread);
  kilni_base_thread_join(&second.thread);
  assert_int_equal(first.from, KILN_CACHE_FROM_MAKE);
  assert_int_equal(second.from, KILN_CACHE_FROM_DISK);
  assert_int_equal(gate.maker.calls, 1);
  kiln_cache_release(one);
  kiln_cache_release(two);
  cache_kit_deinit(&kit);
}

// A make that came to nothing has given its lock back, though its cache lives.
static void test_the_lock_is_given_back(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  kiln_cache_t* one = create(&kit, true);
  kiln_cache_t* two = create(&kit, true);
  cache_maker_t bad = {.text = "x", .fails = KILN_STATUS_COMPILE_FAILED};
  cache_maker_t unkept = {.text = "x", .store = KILN_SWITCH_OFF};
  kiln_cache_request_t request = cache_maker_request(&bad, "a");
  kiln_cache_entry_t* entry = NULL;
  cache_kit_fails(kiln_cache_get_or_make(one, &request, &entry, NULL),
                  KILN_STATUS_COMPILE_FAILED);
  for (int i = 0; i < 2; i++) {
    kiln_cache_t* cache = i == 0 ? two : one;
    assert_int_equal(cache_maker_from(&unkept, cache, "a"),
                     KILN_CACHE_FROM_MAKE);
    assert_int_equal(cache_kit_stats(cache).lock_waits, 0);
  }
  kiln_cache_release(one);
  kiln_cache_release(two);
  cache_kit_deinit(&kit);
}

// ---- A make that uses the cache ----

typedef struct nested_t {
  kiln_cache_t* cache;
  cache_maker_t maker;
  const char* inner;
  uint32_t inner_from;
} nested_t;

static kiln_status_t make_nested(void* user, kiln_cache_output_t* out) {
  nested_t* nested = user;
  nested->inner_from =
      cache_maker_from(&nested->maker, nested->cache, nested->inner);
  return cache_maker_make(&nested->maker, out);
}

static void test_make_may_use_the_cache(void** state) {
  (void)state;
  static const char* const inner[] = {"b", "a"};
  for (int i = 0; i < 2; i++) {
    cache_kit_t kit;
    cache_kit_init(&kit);
    kiln_cache_t* cache = create(&kit, true);
    nested_t nested = {cache, {.text = "payload"}, inner[i], 0};
    kiln_cache_request_t request = cache_maker_request(&nested.maker, "a");
    kiln_cache_entry_t* entry = NULL;
    uint32_t from = 0;
    request.make = make_nested;
    request.user = &nested;
    uint64_t start_ns = kilni_base_time_ns();
    cache_kit_ok(kiln_cache_get_or_make(cache, &request, &entry, &from));
    // For its own key, too, and without a wait for itself.
    assert_true(kilni_base_time_ns() - start_ns < UINT64_C(20000000000));
    assert_int_equal(nested.inner_from, KILN_CACHE_FROM_MAKE);
    assert_int_equal(from, KILN_CACHE_FROM_MAKE);
    kiln_cache_entry_release(entry);
    kiln_cache_release(cache);
    cache_kit_deinit(&kit);
  }
}

// ---- Processes ----

// What a child and its parent share. thread-safe
typedef struct shared_t {
  atomic_int inside;
  atomic_bool open;
  atomic_int calls;
} shared_t;

static shared_t* share(void) {
  void* at = mmap(NULL, sizeof(shared_t), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(at != MAP_FAILED);
  return at;
}

static kiln_status_t make_shared(void* user, kiln_cache_output_t* out) {
  shared_t* shared = user;
  atomic_fetch_add(&shared->inside, 1);
  while (!atomic_load(&shared->open)) (void)usleep(100);
  atomic_fetch_add(&shared->calls, 1);
  out->payload = cache_kit_bytes("payload");
  return kiln_ok();
}

static uint32_t get_shared(cache_kit_t* kit, shared_t* shared, uint32_t wait_ms,
                           kiln_cache_stats_t* out_stats,
                           int (*lock)(void*, int, uint64_t, uint32_t)) {
  kiln_cache_t* cache = create(kit, true);
  kiln_cache_request_t request = kiln_cache_request_default();
  kiln_cache_entry_t* entry = NULL;
  uint32_t from = 0;
  if (lock != NULL) cache->calls.lock = lock;
  request.key = cache_kit_key("a");
  request.make = make_shared;
  request.user = shared;
  request.lock_wait_ms = wait_ms;
  kiln_status_t status = kiln_cache_get_or_make(cache, &request, &entry, &from);
  if (!kiln_status_is_ok(status) || kiln_cache_entry_payload(entry).size != 7) {
    from = 99;
  }
  kiln_status_free(status);
  if (out_stats != NULL) *out_stats = cache_kit_stats(cache);
  kiln_cache_entry_release(entry);
  kiln_cache_release(cache);
  return from;
}

static pid_t start_child(cache_kit_t* kit, shared_t* shared,
                         int (*lock)(void*, int, uint64_t, uint32_t)) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit((int)get_shared(kit, shared, LONG_MS, NULL, lock));
  return child;
}

static int end_of(pid_t child) {
  int code = -1;
  assert_int_equal(waitpid(child, &code, 0), child);
  return WIFEXITED(code) ? WEXITSTATUS(code) : -WTERMSIG(code);
}

static void test_processes_share_one_make(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  shared_t* shared = share();
  pid_t children[4];
  for (int i = 0; i < 4; i++) children[i] = start_child(&kit, shared, NULL);
  while (atomic_load(&shared->inside) == 0) (void)usleep(100);
  (void)usleep(20000);  // the others come to wait, or come later: both hold
  assert_int_equal(atomic_load(&shared->inside), 1);
  atomic_store(&shared->open, true);
  int made = 0;
  for (int i = 0; i < 4; i++) {
    int from = end_of(children[i]);
    made += from == KILN_CACHE_FROM_MAKE;
    assert_true(from == KILN_CACHE_FROM_MAKE || from == KILN_CACHE_FROM_DISK);
  }
  assert_int_equal(made, 1);
  assert_int_equal(atomic_load(&shared->calls), 1);
  (void)munmap(shared, sizeof(*shared));
  cache_kit_deinit(&kit);
}

static void test_a_maker_that_is_killed_is_not_waited_for(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  shared_t* shared = share();
  pid_t first = start_child(&kit, shared, NULL);
  while (atomic_load(&shared->inside) == 0) (void)usleep(100);
  pid_t second = start_child(&kit, shared, NULL);
  assert_int_equal(kill(first, SIGKILL), 0);
  assert_int_equal(end_of(first), -SIGKILL);
  uint64_t start_ns = kilni_base_time_ns();
  while (atomic_load(&shared->inside) < 2) (void)usleep(100);
  // Long before the minute that it would wait for a living one.
  assert_true(kilni_base_time_ns() - start_ns < UINT64_C(20000000000));
  atomic_store(&shared->open, true);
  assert_int_equal(end_of(second), KILN_CACHE_FROM_MAKE);
  assert_int_equal(atomic_load(&shared->calls), 1);
  (void)munmap(shared, sizeof(*shared));
  cache_kit_deinit(&kit);
}

static void test_a_process_that_takes_too_long(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  shared_t* slow = share();
  shared_t* own = share();
  pid_t child = start_child(&kit, slow, NULL);
  while (atomic_load(&slow->inside) == 0) (void)usleep(100);
  atomic_store(&own->open, true);
  kiln_cache_stats_t stats;
  assert_int_equal(get_shared(&kit, own, 30, &stats, NULL),
                   KILN_CACHE_FROM_MAKE);
  assert_int_equal(stats.lock_waits, 1);
  assert_int_equal(stats.lock_timeouts, 1);
  assert_int_equal(atomic_load(&own->calls), 1);
  atomic_store(&slow->open, true);
  assert_int_equal(end_of(child), KILN_CACHE_FROM_MAKE);
  (void)munmap(slow, sizeof(*slow));
  (void)munmap(own, sizeof(*own));
  cache_kit_deinit(&kit);
}

// ---- File systems without locks ----

static int lock_error;
static int failing_lock(void* user, int file, uint64_t offset, uint32_t what) {
  (void)user, (void)file, (void)offset, (void)what;
  return -lock_error;
}

// Work is done twice, but nobody waits and what comes out is right.
static void test_without_locks(void** state) {
  (void)state;
  static const int errors[] = {ENOLCK, EOPNOTSUPP, ENOSYS, EINVAL, EIO};
  for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
    cache_kit_t kit;
    cache_kit_init(&kit);
    lock_error = errors[i];
    shared_t* shared = share();
    pid_t child = start_child(&kit, shared, failing_lock);
    pid_t other = start_child(&kit, shared, failing_lock);
    while (atomic_load(&shared->inside) < 2) (void)usleep(100);
    atomic_store(&shared->open, true);
    assert_int_equal(end_of(child), KILN_CACHE_FROM_MAKE);
    assert_int_equal(end_of(other), KILN_CACHE_FROM_MAKE);
    assert_int_equal(atomic_load(&shared->calls), 2);
    kiln_cache_stats_t stats;
    assert_int_equal(get_shared(&kit, shared, LONG_MS, &stats, failing_lock),
                     KILN_CACHE_FROM_DISK);
    assert_int_equal(stats.corrupt, 0);
    assert_int_equal(cache_kit_count(&kit, "tmp-"), 0);
    (void)munmap(shared, sizeof(*shared));
    cache_kit_deinit(&kit);
  }
}

// A lock that is interrupted again and again is tried again.
static int interrupted_lock(void* user, int file, uint64_t offset,
                            uint32_t what) {
  static int calls;
  kilni_base_folder_calls_t system = kilni_base_folder_calls_system();
  if (++calls % 3 != 0) return -EINTR;
  return system.lock(user, file, offset, what);
}

static void test_interrupted_locks(void** state) {
  (void)state;
  cache_kit_t kit;
  cache_kit_init(&kit);
  shared_t* shared = share();
  atomic_store(&shared->open, true);
  kiln_cache_stats_t stats;
  assert_int_equal(get_shared(&kit, shared, LONG_MS, &stats, interrupted_lock),
                   KILN_CACHE_FROM_MAKE);
  assert_int_equal(stats.lock_absent, 0);
  (void)munmap(shared, sizeof(*shared));
  cache_kit_deinit(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_threads_share_one_make),
      cmocka_unit_test(test_who_gives_up_waits_no_longer),
      cmocka_unit_test(test_never_twice),
      cmocka_unit_test(test_other_keys_do_not_wait),
      cmocka_unit_test(test_the_wait_ends),
      cmocka_unit_test(test_the_next_tries_after_a_failure),
      cmocka_unit_test(test_what_is_not_shared),
      cmocka_unit_test(test_caches_of_one_process),
      cmocka_unit_test(test_the_lock_is_given_back),
      cmocka_unit_test(test_make_may_use_the_cache),
      cmocka_unit_test(test_processes_share_one_make),
      cmocka_unit_test(test_a_maker_that_is_killed_is_not_waited_for),
      cmocka_unit_test(test_a_process_that_takes_too_long),
      cmocka_unit_test(test_without_locks),
      cmocka_unit_test(test_interrupted_locks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
