// SPDX-License-Identifier: Apache-2.0
//
// graph: builders that are ended, closed and released on another thread than
// the one that began them, on the software device. What is put on a stream
// afterwards has run when the stream was waited for, or was refused.
#include "base/thread.h"
#include "graph_kit.h"

static graph_kit_t kit;
static kiln_cu_stream_t foreign;

enum { CALLERS = 0, OWN = 1, FOREIGN = 2, PER_THREAD = 3, STREAMS = 4 };

// A builder, and what another thread did with it. one-thread
typedef struct visit_t {
  kiln_graph_builder_t* builder;
  kiln_stream_t* stream;
  kiln_status_t status;
  uint32_t mode;
} visit_t;

static int setup(void** state) {
  (void)state;
  graph_kit_open(&kit, true);
  assert_int_equal(kit.table.cuCtxSetCurrent(kit.device->context), 0);
  assert_int_equal(
      kit.table.cuStreamCreate(&foreign, KILN_CU_STREAM_NON_BLOCKING), 0);
  return 0;
}

static int teardown(void** state) {
  (void)state;
  assert_int_equal(kit.table.cuStreamDestroy(foreign), 0);
  assert_int_equal(kit.table.cuCtxSetCurrent(NULL), 0);
  graph_kit_close(&kit);
  return 0;
}

static void elsewhere(kilni_base_thread_fn_t fn, visit_t* visit) {
  kilni_base_thread_t thread;
  assert_null(kilni_base_thread_start(&thread, "elsewhere", fn, visit));
  kilni_base_thread_join(&thread);
}

static void end_there(void* user) {
  visit_t* visit = user;
  visit->status = kiln_graph_builder_end(visit->builder);
}

static void close_there(void* user) {
  visit_t* visit = user;
  visit->status = kiln_graph_builder_close(visit->builder);
}

static void release_there(void* user) {
  visit_t* visit = user;
  kiln_graph_builder_release(visit->builder);
}

static void launch_there(void* user) {
  visit_t* visit = user;
  visit->status = kiln_launch_run(kit.launch, visit->stream);
  if (kiln_status_is_ok(visit->status)) {
    visit->status = kiln_stream_synchronize(visit->stream);
  }
}

static void begin_there(void* user) {
  visit_t* visit = user;
  visit->status = kiln_graph_builder_begin(visit->builder, visit->mode);
}

// ---- What is asked ----

static void begin_on(visit_t* visit, uint32_t which, uint32_t mode) {
  kiln_graph_builder_options_t options = kiln_graph_builder_options_default();
  memset(visit, 0, sizeof(*visit));
  visit->mode = mode;
  if (which == PER_THREAD) {
    assert_null(kiln_stream_default(kit.device, KILN_STREAM_PER_THREAD,
                                    &visit->stream));
  } else if (which == FOREIGN) {
    assert_null(kiln_stream_adopt(kit.device, foreign, NULL, &visit->stream));
  } else if (which == CALLERS) {
    assert_null(kiln_stream_create(kit.device, NULL, &visit->stream));
  }
  options.stream = visit->stream;
  assert_null(kiln_graph_builder_create(kit.device, &options, &visit->builder));
  if (which == OWN) {
    assert_null(kiln_graph_builder_stream(visit->builder, &visit->stream));
    kiln_stream_retain(visit->stream);
  }
  assert_null(kiln_graph_builder_begin(visit->builder, mode));
  assert_null(kiln_launch_run(kit.launch, visit->stream));
}

static uint32_t value(void) {
  uint32_t is = 0;
  // The default stream would have to wait for a per-thread one.
  assert_null(
      kiln_buffer_read_async(kit.buffer, kit.stream, 0, sizeof(is), &is));
  assert_null(kiln_stream_synchronize(kit.stream));
  return is;
}

// A launch runs, as often as it is taken.
static void must_run(kiln_stream_t* stream) {
  uint32_t before = value();
  assert_null(kiln_launch_run(kit.launch, stream));
  assert_null(kiln_stream_synchronize(stream));
  assert_int_equal(value(), before + 1);
}

static void must_refuse(kiln_status_t status, const char* text) {
  assert_says(status, KILN_STATUS_INVALID_STATE, text);
}

static bool keeps_to_threads(uint32_t which, uint32_t mode) {
  return mode != KILN_GRAPH_CAPTURE_RELAXED || which == PER_THREAD;
}

static void each(void (*test)(uint32_t which, uint32_t mode)) {
  for (uint32_t which = 0; which < STREAMS; which++) {
    for (uint32_t mode = 0; mode < 3; mode++) test(which, mode);
  }
}

// ---- End and close ----

static void finish(visit_t* visit, uint32_t which) {
  if (which != OWN) must_run(visit->stream);
  kiln_graph_builder_release(visit->builder);
  if (which != OWN) must_run(visit->stream);
  kiln_stream_release(visit->stream);
}

static void end_case(uint32_t which, uint32_t mode) {
  visit_t visit;
  begin_on(&visit, which, mode);
  elsewhere(end_there, &visit);
  if (keeps_to_threads(which, mode)) {
    must_refuse(visit.status, "thread");
    assert_int_equal(kiln_graph_builder_state(visit.builder),
                     KILN_GRAPH_BUILDER_CAPTURING);
    visit.status = kiln_graph_builder_end(visit.builder);
  }
  assert_null(visit.status);
  assert_int_equal(kiln_graph_builder_state(visit.builder),
                   KILN_GRAPH_BUILDER_ENDED);
  finish(&visit, which);
}

static void test_an_end_elsewhere(void** state) {
  (void)state;
  each(end_case);
}

static void close_case(uint32_t which, uint32_t mode) {
  visit_t visit;
  begin_on(&visit, which, mode);
  elsewhere(close_there, &visit);
  if (keeps_to_threads(which, mode)) {
    must_refuse(visit.status, "thread");
    assert_int_equal(kiln_graph_builder_state(visit.builder),
                     KILN_GRAPH_BUILDER_CAPTURING);
    visit.status = kiln_graph_builder_close(visit.builder);
  }
  assert_null(visit.status);
  assert_int_equal(kiln_graph_builder_state(visit.builder),
                   KILN_GRAPH_BUILDER_CLOSED);
  finish(&visit, which);
}

static void test_a_close_elsewhere(void** state) {
  (void)state;
  each(close_case);
}

// What was refused by a close can still be a graph.
static void test_a_close_elsewhere_and_an_end(void** state) {
  (void)state;
  visit_t visit;
  kiln_graph_exec_t* exec = NULL;
  begin_on(&visit, CALLERS, KILN_GRAPH_CAPTURE_THREAD_LOCAL);
  elsewhere(close_there, &visit);
  must_refuse(visit.status, "thread");
  assert_null(kiln_graph_builder_end(visit.builder));
  assert_null(kiln_graph_builder_exec(visit.builder, NULL, &exec));
  uint32_t before = value();
  assert_null(kiln_graph_exec_launch(exec, visit.stream));
  assert_null(kiln_stream_synchronize(visit.stream));
  assert_int_equal(value(), before + 1);
  kiln_graph_exec_release(exec);
  finish(&visit, CALLERS);
}

// ---- The last release ----

static void release_case(uint32_t which, uint32_t mode) {
  visit_t visit;
  begin_on(&visit, which, mode);
  uint32_t before = value();
  elsewhere(release_there, &visit);
  // Nobody but this thread may go on; its first use of the stream ends it.
  elsewhere(launch_there, &visit);
  bool runs = which == PER_THREAD ||
              (which != OWN && mode == KILN_GRAPH_CAPTURE_RELAXED);
  if (runs) {
    assert_null(visit.status);
  } else if (keeps_to_threads(which, mode)) {
    must_refuse(visit.status, "not on the thread that began the capture");
  } else {
    must_refuse(visit.status, "takes no work");
  }
  assert_int_equal(value(), before + runs);
  if (which == OWN) {
    must_refuse(kiln_launch_run(kit.launch, visit.stream), "takes no work");
  } else {
    must_run(visit.stream);
    elsewhere(launch_there, &visit);
    assert_null(visit.status);
  }
  kiln_stream_release(visit.stream);
}

static void test_a_release_elsewhere(void** state) {
  (void)state;
  each(release_case);
}

// Each way of using the stream ends it.
static void test_every_use_ends_it(void** state) {
  (void)state;
  for (int use = 0; use < 6; use++) {
    visit_t visit;
    bool ready = false;
    kiln_event_t* event = NULL;
    kiln_graph_builder_t* next = NULL;
    kiln_graph_builder_options_t options = kiln_graph_builder_options_default();
    begin_on(&visit, CALLERS, KILN_GRAPH_CAPTURE_GLOBAL);
    elsewhere(release_there, &visit);
    if (use == 0) assert_null(kiln_stream_query(visit.stream, &ready));
    if (use == 1) assert_null(kiln_stream_synchronize(visit.stream));
    if (use == 2) {
      assert_null(kiln_event_create(kit.device, NULL, &event));
      assert_null(kiln_event_record(event, visit.stream));
      kiln_event_release(event);
    }
    if (use == 3) {
      options.stream = visit.stream;
      assert_null(kiln_graph_builder_create(kit.device, &options, &next));
      assert_null(kiln_graph_builder_begin(next, 0));
      assert_null(kiln_graph_builder_end(next));
      kiln_graph_builder_release(next);
    }
    if (use == 4) {
      assert_null(kiln_stream_wait_stream(visit.stream, kit.stream));
    }
    if (use == 5) {
      kiln_buffer_t* buffer = NULL;
      kiln_buffer_options_t made = kiln_buffer_options_default();
      made.stream = visit.stream;
      assert_null(kiln_buffer_create(kit.device, 64, &made, &buffer));
      kiln_buffer_release(buffer);
    }
    must_run(visit.stream);
    kiln_stream_release(visit.stream);
  }
}

// Its forks' streams are captured with it, and free with it.
static void test_a_release_elsewhere_with_forks(void** state) {
  (void)state;
  visit_t visit;
  kiln_graph_builder_t* forks[2];
  kiln_stream_t* forked = NULL;
  begin_on(&visit, CALLERS, KILN_GRAPH_CAPTURE_THREAD_LOCAL);
  assert_null(kiln_graph_builder_split(visit.builder, 3, forks));
  assert_null(kiln_graph_builder_stream(forks[0], &forked));
  kiln_stream_retain(forked);
  elsewhere(release_there, &visit);
  assert_int_equal(kiln_graph_builder_state(forks[0]),
                   KILN_GRAPH_BUILDER_INVALIDATED);
  must_refuse(kiln_launch_run(kit.launch, forked), "takes no work");
  for (int i = 0; i < 2; i++) kiln_graph_builder_release(forks[i]);
  must_refuse(kiln_launch_run(kit.launch, forked), "takes no work");
  kiln_stream_release(forked);
  assert_int_equal(
      kilni_device_pools_counts(kit.device, KILNI_POOL_STREAMS).kept, 0);
  must_run(visit.stream);
  assert_int_equal(
      kilni_device_pools_counts(kit.device, KILNI_POOL_STREAMS).kept, 2);
  kiln_stream_release(visit.stream);
}

// Where the stream goes first, so do its forks' streams.
static void test_a_stream_that_goes_first(void** state) {
  (void)state;
  visit_t visit;
  kiln_graph_builder_t* fork = NULL;
  begin_on(&visit, OWN, KILN_GRAPH_CAPTURE_THREAD_LOCAL);
  assert_null(kiln_graph_builder_split(visit.builder, 2, &fork));
  kiln_stream_release(visit.stream);
  elsewhere(release_there, &visit);
  kiln_graph_builder_release(fork);
  assert_int_equal(
      kilni_device_pools_counts(kit.device, KILNI_POOL_STREAMS).kept, 0);
  assert_int_equal(
      kilni_device_pools_counts(kit.device, KILNI_POOL_STREAMS).in_use, 0);
  must_run(kit.stream);
}

// A stream of which the last release is on the right thread is ended there.
static void test_a_body_released_elsewhere(void** state) {
  (void)state;
  visit_t visit;
  visit_t body;
  kiln_graph_conditional_t choice = {{0, NULL}, KILN_GRAPH_IF, 1};
  begin_on(&visit, CALLERS, KILN_GRAPH_CAPTURE_RELAXED);
  memset(&body, 0, sizeof(body));
  assert_null(
      kiln_graph_builder_add_condition(visit.builder, NULL, &choice.condition));
  assert_null(kiln_graph_builder_add_conditional(visit.builder, &choice,
                                                 &body.builder));
  assert_null(
      kiln_graph_builder_begin(body.builder, KILN_GRAPH_CAPTURE_THREAD_LOCAL));
  assert_null(kiln_graph_builder_stream(body.builder, &body.stream));
  kiln_stream_retain(body.stream);
  elsewhere(close_there, &body);
  must_refuse(body.status, "thread");
  elsewhere(release_there, &body);
  must_refuse(kiln_launch_run(kit.launch, visit.stream), "conditional body");
  must_refuse(kiln_graph_builder_end(visit.builder), "conditional body");
  must_refuse(kiln_launch_run(kit.launch, body.stream), "takes no work");
  assert_null(kiln_launch_run(kit.launch, visit.stream));
  kiln_stream_release(body.stream);
  assert_null(kiln_graph_builder_end(visit.builder));
  finish(&visit, CALLERS);
}

// The thread has ended, so that nobody can end the capture: the stream refuses
// for ever, and goes with its last release.
static void test_a_thread_that_has_ended(void** state) {
  (void)state;
  visit_t visit;
  memset(&visit, 0, sizeof(visit));
  visit.mode = KILN_GRAPH_CAPTURE_THREAD_LOCAL;
  kiln_graph_builder_options_t options = kiln_graph_builder_options_default();
  assert_null(kiln_stream_create(kit.device, NULL, &visit.stream));
  options.stream = visit.stream;
  assert_null(kiln_graph_builder_create(kit.device, &options, &visit.builder));
  elsewhere(begin_there, &visit);
  assert_null(visit.status);
  must_refuse(kiln_graph_builder_close(visit.builder), "thread");
  kiln_graph_builder_release(visit.builder);
  for (int i = 0; i < 2; i++) {
    must_refuse(kiln_launch_run(kit.launch, visit.stream),
                "not on the thread that began the capture");
  }
  kiln_stream_release(visit.stream);
  must_run(kit.stream);
}

// ---- At the same time ----

// A launch is taken by the capture, refused, or runs; which, is told.
static void test_a_release_while_others_launch(void** state) {
  (void)state;
  for (int round = 0; round < 20; round++) {
    visit_t visit;
    kilni_base_thread_t thread;
    begin_on(&visit, CALLERS, KILN_GRAPH_CAPTURE_THREAD_LOCAL);
    assert_null(
        kilni_base_thread_start(&thread, "elsewhere", release_there, &visit));
    for (int i = 0; i < 50; i++) {
      kiln_status_free(kiln_launch_run(kit.launch, visit.stream));
    }
    kilni_base_thread_join(&thread);
    must_run(visit.stream);
    kiln_stream_release(visit.stream);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
      T(test_an_end_elsewhere),
      T(test_a_close_elsewhere),
      T(test_a_close_elsewhere_and_an_end),
      T(test_a_release_elsewhere),
      T(test_every_use_ends_it),
      T(test_a_release_elsewhere_with_forks),
      T(test_a_stream_that_goes_first),
      T(test_a_body_released_elsewhere),
      T(test_a_thread_that_has_ended),
      T(test_a_release_while_others_launch),
#undef T
  };
  return cmocka_run_group_tests_name("graph_threads", tests, NULL, NULL);
}
