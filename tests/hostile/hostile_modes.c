// SPDX-License-Identifier: Apache-2.0
//
// tests: what the library's other calls do while a stream is captured, in each
// mode of capture.
//
// What must hold, by kiln/capture.h: none of them breaks it, but those that
// wait for a captured stream or ask it, or an event recorded there: these are
// refused and break it in any mode. Found in 0.1.0: no page said so.
#define _POSIX_C_SOURCE 200809L  // nanosleep

#include "hostile.h"

HOSTILE_WORLD()

static bool is_building(kiln_graph_builder_t* builder) {
  bool building = false;
  kiln_status_t status = kiln_graph_builder_is_building(builder, &building);
  bool is_ok = kiln_status_is_ok(status);
  kiln_status_free(status);
  return is_ok && building;
}

static void use_memory(void) {
  kiln_buffer_t* buffer = NULL;
  kiln_buffer_options_t pinned = kiln_buffer_options_default();
  uint32_t word = 1;
  uint64_t free_bytes = 0;
  pinned.kind = KILN_MEMORY_PINNED;
  WORKS(kiln_buffer_create(world.device, 100, NULL, &buffer));
  kiln_buffer_release(buffer);
  WORKS(kiln_buffer_create(world.device, 100, &pinned, &buffer));
  kiln_buffer_release(buffer);
  WORKS(kiln_buffer_write(world.buffer, 0, sizeof(word), &word));
  WORKS(kiln_buffer_read(world.buffer, 0, sizeof(word), &word));
  WORKS(kiln_device_query_free(world.device, &free_bytes));
}

static void use_other_streams(void) {
  kiln_stream_t* stream = NULL;
  kiln_graph_t* graph = NULL;
  kiln_graph_exec_t* exec = NULL;
  kiln_module_t* module = NULL;
  kiln_bytes_view_t ptx = {(const uint8_t*)kHostilePtx,
                           sizeof(kHostilePtx) - 1};
  WORKS(kiln_module_load(world.device, ptx, NULL, NULL, &module));
  kiln_module_release(module);
  WORKS(kiln_stream_create(world.device, NULL, &stream));
  WORKS(hostile_run(world.add, stream, world.buffer, 0));
  WORKS(kiln_stream_synchronize(stream));
  WORKS(kiln_graph_create(world.device, &graph));
  kiln_graph_work_t fill = kiln_graph_work_fill(world.buffer, 0, 1, 1, 4);
  WORKS(kiln_graph_add(graph, NULL, 0, &fill, NULL));
  WORKS(kiln_graph_exec_create(graph, NULL, &exec));
  WORKS(kiln_graph_exec_launch(exec, stream));
  WORKS(kiln_stream_synchronize(stream));
  kiln_graph_exec_release(exec);
  kiln_graph_release(graph);
  kiln_stream_release(stream);
}

static void test_what_leaves_it_whole(void** state) {
  (void)state;
  for (uint32_t mode = 0; mode < 3; mode++) {
    kiln_graph_builder_t* builder = hostile_begin(&world, world.stream, mode);
    WORKS(hostile_run(world.add, world.stream, world.buffer, 1));
    use_memory();
    use_other_streams();
    assert_true(is_building(builder));
    WORKS(hostile_run(world.add, world.stream, world.buffer, 2));
    WORKS(kiln_graph_builder_end(builder));
    hostile_expect(&world, builder, 3);
    kiln_graph_builder_release(builder);
  }
}

// ---- What breaks it ----

typedef struct broken_t {
  kiln_stream_t* stream;
  kiln_event_t* event;  // recorded on it
  kiln_graph_exec_t* exec;
} broken_t;

static kiln_status_t wait_stream(const broken_t* at) {
  return kiln_stream_synchronize(at->stream);
}

static kiln_status_t ask_stream(const broken_t* at) {
  bool is_done = false;
  return kiln_stream_query(at->stream, &is_done);
}

static kiln_status_t wait_event(const broken_t* at) {
  return kiln_event_synchronize(at->event);
}

static kiln_status_t ask_event(const broken_t* at) {
  bool is_done = false;
  return kiln_event_query(at->event, &is_done);
}

static kiln_status_t launch_graph(const broken_t* at) {
  return kiln_graph_exec_launch(at->exec, at->stream);
}

// Refused, the end says so, and then the stream works as ever.
static void breaks(kiln_status_t (*call)(const broken_t*), uint32_t mode) {
  broken_t at = {world.stream, NULL, NULL};
  kiln_graph_t* graph = NULL;
  WORKS(kiln_event_create(world.device, NULL, &at.event));
  WORKS(kiln_graph_create(world.device, &graph));
  kiln_graph_work_t fill = kiln_graph_work_fill(world.buffer, 0, 1, 0, 4);
  WORKS(kiln_graph_add(graph, NULL, 0, &fill, NULL));
  WORKS(kiln_graph_exec_create(graph, NULL, &at.exec));
  kiln_graph_builder_t* builder = hostile_begin(&world, at.stream, mode);
  WORKS(hostile_run(world.add, at.stream, world.buffer, 1));
  WORKS(kiln_event_record(at.event, at.stream));
  REFUSED(INVALID_STATE, call(&at));
  assert_false(is_building(builder));
  REFUSED(INVALID_STATE, kiln_graph_builder_end(builder));
  assert_int_equal(kiln_graph_builder_state(builder),
                   KILN_GRAPH_BUILDER_INVALIDATED);
  WORKS(hostile_run(world.add, at.stream, world.buffer, 1));
  WORKS(kiln_stream_synchronize(at.stream));
  kiln_graph_builder_release(builder);
  kiln_event_release(at.event);
  kiln_graph_exec_release(at.exec);
  kiln_graph_release(graph);
}

static void test_what_breaks_it(void** state) {
  (void)state;
  for (uint32_t mode = 0; mode < 3; mode++) {
    breaks(wait_stream, mode);
    breaks(ask_stream, mode);
    breaks(wait_event, mode);
    breaks(ask_event, mode);
    breaks(launch_graph, mode);
  }
}

// A stream that waits for a captured event is captured with it, and is to be
// joined.
static void test_a_stream_that_is_drawn_in(void** state) {
  (void)state;
  kiln_event_t* event = NULL;
  kiln_stream_t* other = NULL;
  WORKS(kiln_event_create(world.device, NULL, &event));
  WORKS(kiln_stream_create(world.device, NULL, &other));
  kiln_graph_builder_t* builder = hostile_begin(&world, world.stream, 0);
  WORKS(kiln_event_record(event, world.stream));
  WORKS(kiln_stream_wait_event(other, event));
  WORKS(hostile_run(world.add, other, world.buffer, 1));
  REFUSED(INVALID_STATE, kiln_graph_builder_end(builder));  // not joined
  WORKS(hostile_run(world.add, other, world.buffer, 1));
  WORKS(kiln_stream_synchronize(other));
  kiln_graph_builder_release(builder);
  kiln_stream_release(other);
  kiln_event_release(event);
}

// ---- What a builder takes at all ----

static void test_modes_and_streams(void** state) {
  (void)state;
  kiln_graph_builder_t* builder = NULL;
  kiln_stream_t* stream = NULL;
  kiln_graph_builder_options_t options = kiln_graph_builder_options_default();
  REFUSED(INVALID_ARGUMENT, kiln_graph_builder_create(NULL, NULL, &builder));
  assert_null(builder);
  WORKS(kiln_graph_builder_create(world.device, NULL, &builder));
  REFUSED(INVALID_ARGUMENT, kiln_graph_builder_begin(builder, 3));
  assert_int_equal(kiln_graph_builder_state(builder),
                   KILN_GRAPH_BUILDER_NOT_STARTED);
  WORKS(kiln_graph_builder_begin(builder, 1));
  kiln_graph_builder_release(builder);
  builder = NULL;
  WORKS(kiln_stream_default(world.device, KILN_STREAM_LEGACY, &stream));
  options.stream = stream;
  REFUSED(INVALID_ARGUMENT,
          kiln_graph_builder_create(world.device, &options, &builder));
  assert_null(builder);
  kiln_stream_release(stream);
}

// Memory that lives in a stream's order is neither made nor given back by a
// capture: refused, or kept until the capture has ended.
static void test_memory_in_the_streams_order(void** state) {
  (void)state;
  kiln_buffer_options_t ordered = kiln_buffer_options_default();
  kiln_buffer_t* buffer = NULL;
  kiln_graph_t* graph = NULL;
  uint32_t count = 0;
  ordered.stream = world.stream;
  kiln_graph_builder_t* builder = hostile_begin(&world, world.stream, 0);
  REFUSED(INVALID_STATE,
          kiln_buffer_create(world.device, 4096, &ordered, &buffer));
  assert_null(buffer);
  assert_true(is_building(builder));
  WORKS(kiln_graph_builder_close(builder));
  kiln_graph_builder_release(builder);
  WORKS(kiln_buffer_create(world.device, 4096, &ordered, &buffer));
  builder = hostile_begin(&world, world.stream, 0);
  WORKS(hostile_run(world.add, world.stream, buffer, 1));
  kiln_buffer_release(buffer);
  assert_true(is_building(builder));
  WORKS(kiln_graph_builder_end(builder));
  WORKS(kiln_graph_builder_graph(builder, &graph));
  WORKS(kiln_graph_nodes(graph, 0, NULL, &count));
  assert_int_equal(count, 1);
  kiln_graph_release(graph);
  kiln_graph_builder_release(builder);
  WORKS(kiln_stream_synchronize(world.stream));
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
      CASE(test_what_leaves_it_whole),        CASE(test_what_breaks_it),
      CASE(test_a_stream_that_is_drawn_in),   CASE(test_modes_and_streams),
      CASE(test_memory_in_the_streams_order),
#undef CASE
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
