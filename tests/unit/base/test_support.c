// SPDX-License-Identifier: Apache-2.0
//
// base: tests of the fault hook: what it must see, it sees.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "fault_run.h"

typedef struct watched_t {
  fault_alloc_t watch;
  kiln_allocator_t allocator;
} watched_t;

static int setup(void** state) {
  static watched_t watched;
  fault_alloc_init(&watched.watch);
  watched.allocator = fault_alloc_allocator(&watched.watch);
  *state = &watched;
  return 0;
}

static int teardown(void** state) {
  fault_alloc_deinit(&((watched_t*)*state)->watch);
  return 0;
}

static void* give(watched_t* watched, size_t size, size_t align) {
  return watched->allocator.fn(NULL, 0, size, align, watched->allocator.user);
}

static void end(watched_t* watched, void* ptr, size_t size, size_t align) {
  watched->allocator.fn(ptr, size, 0, align, watched->allocator.user);
}

static void clean_use_is_clean(void** state) {
  watched_t* watched = *state;
  char* ptr = give(watched, 10, 16);
  assert_non_null(ptr);
  memset(ptr, 3, 10);
  char* moved = watched->allocator.fn(ptr, 10, 1000, 16, &watched->watch);
  assert_ptr_not_equal(moved, ptr);
  for (int i = 0; i < 10; i++) assert_int_equal(moved[i], 3);
  end(watched, moved, 1000, 16);
  assert_null(fault_alloc_problem(&watched->watch));
}

static void a_leak_is_seen(void** state) {
  watched_t* watched = *state;
  give(watched, 24, 16);
  assert_string_equal(fault_alloc_problem(&watched->watch),
                      "1 blocks with 24 bytes are not freed");
}

static void a_double_free_is_seen(void** state) {
  watched_t* watched = *state;
  void* ptr = give(watched, 24, 16);
  end(watched, ptr, 24, 16);
  end(watched, ptr, 24, 16);
  assert_non_null(strstr(fault_alloc_problem(&watched->watch), "not live"));
}

static void a_wrong_size_is_seen(void** state) {
  watched_t* watched = *state;
  end(watched, give(watched, 24, 16), 25, 16);
  assert_string_equal(fault_alloc_problem(&watched->watch),
                      "a block of 24 bytes is given back as 25 bytes");
}

static void a_wrong_alignment_is_seen(void** state) {
  watched_t* watched = *state;
  end(watched, give(watched, 24, 16), 24, 64);
  assert_non_null(strstr(fault_alloc_problem(&watched->watch), "aligned to"));
}

static void it_fails_the_nth_once_or_from_on(void** state) {
  watched_t* watched = *state;
  for (int from_on = 0; from_on < 2; from_on++) {
    fault_alloc_arm(&watched->watch, 2, from_on != 0);
    void* first = give(watched, 8, 16);
    void* second = give(watched, 8, 16);
    void* third = give(watched, 8, 16);
    assert_int_equal(fault_alloc_disarm(&watched->watch), 3);
    assert_non_null(first);
    assert_null(second);
    assert_int_equal(third == NULL, from_on);
    end(watched, first, 8, 16);
    if (third != NULL) end(watched, third, 8, 16);
  }
  assert_null(fault_alloc_problem(&watched->watch));
}

static void* other_thread(void* user) {
  watched_t* watched = user;
  void* ptr = give(watched, 8, 16);
  if (ptr != NULL) end(watched, ptr, 8, 16);
  return ptr;
}

static void other_threads_do_not_count(void** state) {
  watched_t* watched = *state;
  pthread_t thread;
  void* got = NULL;
  fault_alloc_arm(&watched->watch, 1, true);
  assert_int_equal(pthread_create(&thread, NULL, other_thread, watched), 0);
  pthread_join(thread, &got);
  assert_int_equal(fault_alloc_disarm(&watched->watch), 0);
  assert_non_null(got);
}

// How a body may break the rules.
typedef enum sin_t { SIN_NONE, SIN_SWALLOW, SIN_LEAK, SIN_ALWAYS_FAIL } sin_t;

static kiln_status_t sinful_body(kiln_allocator_t allocator, void* user) {
  sin_t sin = *(sin_t*)user;
  void* first;
  void* second;
  kiln_status_t status = kilni_base_alloc(allocator, 10, &first);
  if (!kiln_status_is_ok(status)) return status;
  status = kilni_base_alloc(allocator, 20, &second);
  if (!kiln_status_is_ok(status)) {
    if (sin != SIN_LEAK) kilni_base_free(allocator, first, 10);
    return sin == SIN_SWALLOW ? kiln_ok() : status;
  }
  kilni_base_free(allocator, first, 10);
  kilni_base_free(allocator, second, 20);
  return sin == SIN_ALWAYS_FAIL ? KILNI_FAIL(INTERNAL, "by design") : kiln_ok();
}

typedef struct bound_t {
  watched_t* watched;
  sin_t sin;
} bound_t;

static kiln_status_t bound_body(void* user) {
  bound_t* bound = user;
  return sinful_body(bound->watched->allocator, &bound->sin);
}

static const char* verdict(watched_t* watched, sin_t sin, uint32_t flags) {
  static char text[1024];
  uint64_t count;
  bound_t bound = {watched, sin};
  fault_points_t points = fault_alloc_points(&watched->watch);
  return fault_run_problem(&points, bound_body, &bound, flags, text,
                           sizeof(text), &count);
}

static void the_runner_sees_each_sin(void** state) {
  watched_t* watched = *state;
  assert_null(verdict(watched, SIN_NONE, 0));
  assert_string_equal(verdict(watched, SIN_SWALLOW, 0),
                      "allocation 2 failed, and the body says OK");
  assert_null(verdict(watched, SIN_SWALLOW, FAULT_RUN_MAY_PASS));
  assert_non_null(strstr(verdict(watched, SIN_ALWAYS_FAIL, 0), "by design"));
  assert_string_equal(
      verdict(watched, SIN_LEAK, 0),
      "after allocation 2 failed: 1 blocks with 10 bytes are not freed");
}

typedef struct spread_t {
  uint64_t nth;
  uint64_t met;
  uint64_t total;
  uint64_t runs;
  uint64_t last;
} spread_t;

static void spread_arm(void* user, uint64_t nth, bool from_on) {
  (void)from_on;
  spread_t* spread = user;
  spread->nth = nth;
  spread->met = 0;
}

static uint64_t spread_disarm(void* user) {
  return ((spread_t*)user)->met;
}

static kiln_status_t spread_body(void* user) {
  spread_t* spread = user;
  spread->runs++;
  for (uint64_t i = 1; i <= spread->total; i++) {
    spread->met++;
    if (i == spread->nth) {
      spread->last = i;
      return kilni_base_status_bare(KILN_STATUS_INTERNAL);
    }
  }
  return kiln_ok();
}

static void a_long_body_is_spread_over_its_points(void** state) {
  (void)state;
  const char* all = getenv("KILN_FAULT_ALL");
  bool every = all != NULL && strcmp(all, "1") == 0;
  spread_t spread = {.total = 1000};
  fault_points_t points = {"step", spread_arm, spread_disarm, NULL, &spread};
  assert_int_equal(fault_run(&points, spread_body, &spread, 0), 1000);
  assert_int_equal(spread.last, 1000);
  assert_int_equal(spread.runs,
                   every ? 1 + 2 * 1001 : 1 + 2 * FAULT_RUN_POINTS);
}

int main(void) {
#define WATCHED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
  const struct CMUnitTest tests[] = {
      WATCHED(clean_use_is_clean),
      WATCHED(a_leak_is_seen),
      WATCHED(a_double_free_is_seen),
      WATCHED(a_wrong_size_is_seen),
      WATCHED(a_wrong_alignment_is_seen),
      WATCHED(it_fails_the_nth_once_or_from_on),
      WATCHED(other_threads_do_not_count),
      WATCHED(the_runner_sees_each_sin),
      cmocka_unit_test(a_long_body_is_spread_over_its_points),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
