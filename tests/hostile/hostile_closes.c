// SPDX-License-Identifier: Apache-2.0
//
// tests: captures that are closed, released and ended where nobody expects it;
// the stream must be free after each.
//
// Found in 0.1.0: a close or a last release on another thread than began the
// capture left the driver's capture on the caller's stream for ever. A launch
// on it was OK and never ran.
#define _POSIX_C_SOURCE 200809L  // nanosleep

#include <pthread.h>

#include "hostile.h"

HOSTILE_WORLD(hostile_zero(&world))

// The stream does its work, and is free for another capture.
static void assert_free(uint32_t* inout_value) {
  WORKS(hostile_run(world.add, world.stream, world.buffer, 1));
  WORKS(kiln_stream_synchronize(world.stream));
  assert_int_equal(hostile_value(&world), ++*inout_value);
  kiln_graph_builder_t* next = hostile_begin(&world, world.stream, 0);
  WORKS(hostile_run(world.add, world.stream, world.buffer, 1));
  WORKS(kiln_graph_builder_end(next));
  kiln_graph_builder_release(next);
}

// ---- On one thread ----

static void test_closed_in_every_way(void** state) {
  (void)state;
  uint32_t value = 0;
  for (uint32_t i = 0; i < 48; i++) {
    kiln_graph_builder_t* forks[3] = {NULL};
    kiln_graph_builder_t* builder = hostile_begin(&world, world.stream, i % 3);
    WORKS(hostile_run(world.add, world.stream, world.buffer, 1));
    kiln_graph_builder_options_t options = kiln_graph_builder_options_default();
    options.stream = world.stream;
    kiln_graph_builder_t* second = NULL;
    WORKS(kiln_graph_builder_create(world.device, &options, &second));
    REFUSED(INVALID_STATE, kiln_graph_builder_begin(second, 0));
    if (i & 1) {
      WORKS(kiln_graph_builder_split(builder, 4, forks));
      hostile_capture(forks[1], world.add, world.buffer, 1);
    }
    if (i % 4 < 2) {
      WORKS(kiln_graph_builder_close(builder));
      WORKS(kiln_graph_builder_close(builder));
    } else {
      kiln_graph_builder_release(builder);
      builder = NULL;
    }
    assert_free(&value);
    for (int k = 0; k < 3; k++) kiln_graph_builder_release(forks[k]);
    kiln_graph_builder_release(builder);
    kiln_graph_builder_release(second);
  }
}

// Primary, two bodies, of which one is captured, and its fork: released in
// many orders, while they capture.
static void test_released_in_every_order(void** state) {
  (void)state;
  uint32_t value = 0;
  for (uint32_t order = 0; order < 24; order++) {
    kiln_graph_builder_t* all[4];
    all[0] = hostile_begin(&world, world.stream, 0);
    hostile_choose(all[0], KILN_GRAPH_IF, 2, 1, &all[1]);
    WORKS(kiln_graph_builder_begin(all[1], 0));
    hostile_capture(all[1], world.add, world.buffer, 1);
    WORKS(kiln_graph_builder_split(all[1], 2, &all[3]));
    uint32_t rest = order;
    for (uint32_t left = 4; left > 0; left--) {
      uint32_t at = rest % left;
      rest /= left;
      kiln_graph_builder_release(all[at]);
      all[at] = all[left - 1];
    }
    assert_free(&value);
  }
}

// A fork that is closed with work on it makes the end fail; one without work
// was never there.
static void test_a_fork_that_is_closed(void** state) {
  (void)state;
  for (int has_work = 0; has_work < 2; has_work++) {
    kiln_graph_builder_t* fork[1];
    kiln_graph_builder_t* builder = hostile_begin(&world, NULL, 0);
    WORKS(kiln_graph_builder_split(builder, 2, fork));
    if (has_work) hostile_capture(fork[0], world.add, world.buffer, 1);
    WORKS(kiln_graph_builder_close(fork[0]));
    kiln_status_t status = kiln_graph_builder_end(builder);
    if (has_work) {
      REFUSED(INVALID_STATE, status);
      assert_int_equal(kiln_graph_builder_state(builder),
                       KILN_GRAPH_BUILDER_INVALIDATED);
    } else {
      kiln_status_free(status);
    }
    REFUSED(INVALID_STATE, kiln_graph_builder_begin(builder, 0));
    kiln_graph_builder_release(builder);
    kiln_graph_builder_release(fork[0]);
  }
}

// ---- On another thread ----

typedef struct elsewhere_t {
  kiln_graph_builder_t* builder;
  kiln_status_t status;
  uint32_t mode;
} elsewhere_t;

static void* end_there(void* user) {
  elsewhere_t* job = user;
  job->status = kiln_graph_builder_end(job->builder);
  return NULL;
}

static void* close_there(void* user) {
  elsewhere_t* job = user;
  job->status = kiln_graph_builder_close(job->builder);
  return NULL;
}

static void* release_there(void* user) {
  kiln_graph_builder_release(((elsewhere_t*)user)->builder);
  return NULL;
}

static void* begin_there(void* user) {
  elsewhere_t* job = user;
  job->status = kiln_graph_builder_begin(job->builder, job->mode);
  return NULL;
}

static void run_there(void* (*work)(void*), elsewhere_t* job) {
  pthread_t thread;
  job->status = kiln_ok();
  assert_int_equal(pthread_create(&thread, NULL, work, job), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
}

// Refused there, it goes on here and is ended here.
static void ends_here(void* (*there)(void*), uint32_t* inout_value) {
  for (uint32_t mode = 0; mode < 3; mode++) {
    elsewhere_t job = {hostile_begin(&world, world.stream, mode), NULL, 0};
    WORKS(hostile_run(world.add, world.stream, world.buffer, 1));
    run_there(there, &job);
    if (mode == KILN_GRAPH_CAPTURE_RELAXED) {
      WORKS(job.status);
    } else {
      REFUSED(INVALID_STATE, job.status);
      assert_int_equal(kiln_graph_builder_state(job.builder),
                       KILN_GRAPH_BUILDER_CAPTURING);
      WORKS(there == end_there ? kiln_graph_builder_end(job.builder)
                               : kiln_graph_builder_close(job.builder));
    }
    kiln_graph_builder_release(job.builder);
    assert_free(inout_value);
  }
}

static void test_ended_elsewhere(void** state) {
  (void)state;
  uint32_t value = 0;
  ends_here(end_there, &value);
}

static void test_closed_elsewhere(void** state) {
  (void)state;
  uint32_t value = 0;
  ends_here(close_there, &value);
}

// The last release has no status to say it with: the stream does it.
static void test_released_elsewhere(void** state) {
  (void)state;
  uint32_t value = 0;
  for (uint32_t mode = 0; mode < 3; mode++) {
    elsewhere_t job = {hostile_begin(&world, world.stream, mode), NULL, 0};
    WORKS(hostile_run(world.add, world.stream, world.buffer, 1));
    run_there(release_there, &job);
    assert_free(&value);
    job.builder = hostile_begin(&world, NULL, mode);
    kiln_stream_t* own = hostile_stream_of(job.builder);
    kiln_stream_retain(own);
    WORKS(hostile_run(world.add, own, world.buffer, 1));
    run_there(release_there, &job);
    kiln_status_t status = hostile_run(world.add, own, world.buffer, 1);
    if (!kiln_status_is_ok(status)) {
      REFUSED(INVALID_STATE, status);  // its own, and it captures no more
    } else {
      WORKS(kiln_stream_synchronize(own));
      value++;
    }
    kiln_stream_release(own);
  }
}

// The thread that began it is gone; its builder is still ended by somebody, or
// the refusal is said.
static void test_begun_by_a_thread_that_has_ended(void** state) {
  (void)state;
  kiln_graph_builder_options_t options = kiln_graph_builder_options_default();
  options.stream = world.stream;
  elsewhere_t job = {NULL, NULL, KILN_GRAPH_CAPTURE_RELAXED};
  WORKS(kiln_graph_builder_create(world.device, &options, &job.builder));
  run_there(begin_there, &job);
  WORKS(job.status);
  WORKS(kiln_graph_builder_end(job.builder));
  kiln_graph_builder_release(job.builder);
  uint32_t value = 0;
  assert_free(&value);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_closed_in_every_way, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_released_in_every_order, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_a_fork_that_is_closed, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_ended_elsewhere, setup, teardown),
      cmocka_unit_test_setup_teardown(test_closed_elsewhere, setup, teardown),
      cmocka_unit_test_setup_teardown(test_released_elsewhere, setup, teardown),
      cmocka_unit_test_setup_teardown(test_begun_by_a_thread_that_has_ended,
                                      setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
