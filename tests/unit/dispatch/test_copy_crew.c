// SPDX-License-Identifier: Apache-2.0
//
// dispatch: threads that copy together: every size and alignment, more copies
// at once than there are places, threads that come and go while others copy,
// and threads that cannot be started.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dispatch/copy_crew.h"
#include "fault_alloc.h"
#include "says.h"

// ---- Threads that cannot be started ----

static atomic_int g_starts_left = INT32_MAX;

// The linker leads the library's calls here.
int __real_pthread_create(pthread_t* out, const pthread_attr_t* attributes,
                          void* (*start)(void*), void* user);
int __wrap_pthread_create(pthread_t* out, const pthread_attr_t* attributes,
                          void* (*start)(void*), void* user);
int __wrap_pthread_create(pthread_t* out, const pthread_attr_t* attributes,
                          void* (*start)(void*), void* user) {
  if (atomic_fetch_sub(&g_starts_left, 1) <= 0) return EAGAIN;
  return __real_pthread_create(out, attributes, start, user);
}

// ---- A crew ----

typedef struct kit_t {
  fault_alloc_t watch;
  kiln_allocator_t allocator;
  kilni_dispatch_crew_t* crew;
} kit_t;

static void open_kit(kit_t* kit, uint32_t threads) {
  memset(kit, 0, sizeof(*kit));
  atomic_store(&g_starts_left, INT32_MAX);
  fault_alloc_init(&kit->watch);
  kit->allocator = fault_alloc_allocator(&kit->watch);
  assert_null(kilni_dispatch_crew_create(kit->allocator, threads, &kit->crew));
  assert_int_equal(kilni_dispatch_crew_running(kit->crew), 0);
}

static void close_kit(kit_t* kit) {
  kilni_dispatch_crew_destroy(kit->crew);
  fault_alloc_assert_clean(&kit->watch);
  fault_alloc_deinit(&kit->watch);
}

static uint8_t byte_at(size_t i) {
  return (uint8_t)((i * 2654435761u) >> 13);
}

// Copies, and whether that and nothing else was written.
static bool copies(kilni_dispatch_crew_t* crew, uint8_t* to,
                   const uint8_t* from, size_t bytes) {
  kilni_dispatch_copy_t copy = {to, from, bytes, 0,
                                bytes % 2 != 0 || bytes >= 1 << 20};
  memset(to - 1, 0xa5, bytes + 2);
  kilni_dispatch_crew_begin(crew, &copy);
  kilni_dispatch_crew_finish(crew, &copy);
  return to[-1] == 0xa5 && to[bytes] == 0xa5 && memcmp(to, from, bytes) == 0;
}

enum { MOST = (1 << 20) + 4096 };

static void test_sizes(void** state) {
  (void)state;
  const size_t kSizes[] = {
      0,     1,     63,    64,    65,         32767,         32768,  65535,
      65536, 65537, 98304, 98305, 262144 + 7, (1 << 20) - 1, 1 << 20};
  const size_t kOffsets[] = {0, 1, 15, 16, 63};
  const uint32_t kThreads[] = {1, 2, 3, 8, 16};
  uint8_t* from = malloc(MOST);
  uint8_t* to = malloc(MOST);
  assert_non_null(from);
  assert_non_null(to);
  for (size_t i = 0; i < MOST; i++) from[i] = byte_at(i);
  for (size_t t = 0; t < sizeof(kThreads) / sizeof(kThreads[0]); t++) {
    kit_t kit;
    open_kit(&kit, kThreads[t]);
    assert_null(kilni_dispatch_crew_start(kit.crew));
    assert_null(kilni_dispatch_crew_start(kit.crew));
    assert_int_equal(kilni_dispatch_crew_running(kit.crew), kThreads[t] - 1);
    for (size_t i = 0; i < sizeof(kSizes) / sizeof(kSizes[0]); i++) {
      size_t a = kOffsets[i % 5];
      size_t b = kOffsets[(i / 5 + t) % 5];
      assert_true(copies(kit.crew, to + 64 + a, from + b, kSizes[i]));
      assert_true(copies(kit.crew, to + 64 + b, from + a, kSizes[i] + 1));
    }
    close_kit(&kit);
  }
  free(from);
  free(to);
}

// More under way than there are places, ended in another order.
static void test_many(void** state) {
  (void)state;
  enum { COPIES = 48, BYTES = (64 << 10) + 17 };
  static uint8_t from[COPIES][BYTES], to[COPIES][BYTES];
  kilni_dispatch_copy_t list[COPIES];
  kit_t kit;
  open_kit(&kit, 4);
  assert_null(kilni_dispatch_crew_start(kit.crew));
  uint32_t without = 0;
  for (uint32_t i = 0; i < COPIES; i++) {
    for (size_t k = 0; k < BYTES; k++) from[i][k] = byte_at(k + i);
    list[i] = (kilni_dispatch_copy_t){to[i], from[i], BYTES, 0, i % 2 != 0};
    kilni_dispatch_crew_begin(kit.crew, &list[i]);
    without += list[i].place == 0;
  }
  assert_int_equal(without, COPIES - 2 * KILNI_CREW_THREADS);
  for (uint32_t i = 0; i < COPIES; i++) {
    kilni_dispatch_crew_finish(kit.crew, &list[(i * 7) % COPIES]);
  }
  assert_memory_equal(from, to, sizeof(from));
  close_kit(&kit);
}

// ---- Several askers, and threads that come and go ----

typedef struct crowd_t {
  kilni_dispatch_crew_t* crew;
  atomic_uint wrong;
  atomic_uint left;
} crowd_t;

static void* ask(void* user) {
  crowd_t* crowd = user;
  enum { BYTES = 200001, ROUNDS = 40 };
  uint8_t* from = malloc(BYTES + 2);
  uint8_t* to = malloc(BYTES + 2);
  for (size_t i = 0; from != NULL && i < BYTES; i++) from[i] = byte_at(i);
  for (int round = 0; round < ROUNDS; round++) {
    if (from == NULL || to == NULL ||
        !copies(crowd->crew, to + 1, from, BYTES - (size_t)round)) {
      atomic_fetch_add(&crowd->wrong, 1);
    }
  }
  free(from);
  free(to);
  atomic_fetch_sub(&crowd->left, 1);
  return NULL;
}

static void test_come_and_go(void** state) {
  (void)state;
  enum { ASKERS = 8 };
  kit_t kit;
  pthread_t threads[ASKERS];
  open_kit(&kit, 4);
  crowd_t crowd = {.crew = kit.crew};
  atomic_store(&crowd.left, ASKERS);
  for (int i = 0; i < ASKERS; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, ask, &crowd), 0);
  }
  // A start and a rest are about as long as a copy.
  while (atomic_load(&crowd.left) > 0) {
    assert_null(kilni_dispatch_crew_start(kit.crew));
    kilni_dispatch_crew_rest(kit.crew);
    assert_int_equal(kilni_dispatch_crew_running(kit.crew), 0);
  }
  for (int i = 0; i < ASKERS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&crowd.wrong), 0);
  close_kit(&kit);
}

static void test_start_fails(void** state) {
  (void)state;
  static uint8_t from[100002], to[100002];
  kit_t kit;
  open_kit(&kit, 8);
  assert_null(kilni_dispatch_crew_start(kit.crew));
  kilni_dispatch_crew_rest(kit.crew);
  if (atomic_load(&g_starts_left) == INT32_MAX) {
    close_kit(&kit);
    print_message("the linker does not lead the library's calls here\n");
    skip();
  }
  for (int left = 0; left < 7; left++) {
    atomic_store(&g_starts_left, left);
    assert_says(kilni_dispatch_crew_start(kit.crew), KILN_STATUS_LIMIT_EXCEEDED,
                "7 copy threads");
    assert_int_equal(kilni_dispatch_crew_running(kit.crew), 0);
    assert_true(copies(kit.crew, to + 1, from, 100000));
  }
  atomic_store(&g_starts_left, INT32_MAX);
  assert_null(kilni_dispatch_crew_start(kit.crew));
  // Who asks is the eighth.
  assert_int_equal(kilni_dispatch_crew_running(kit.crew), 7);
  assert_true(copies(kit.crew, to + 1, from, 100000));
  close_kit(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_many),
      cmocka_unit_test(test_come_and_go),
      cmocka_unit_test(test_start_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
