// SPDX-License-Identifier: Apache-2.0
//
// graph: while a conditional body is captured, what captured its node takes no
// work and does not end: on the software device.
#include "graph_kit.h"

static graph_kit_t kit;
static kiln_graph_builder_t* parent;
static kiln_graph_builder_t* body;
static kiln_stream_t* outer;
static kiln_stream_t* inner;

static kiln_graph_builder_t* add_body(kiln_graph_builder_t* builder) {
  uint32_t one = 1;
  kiln_graph_builder_t* made = NULL;
  kiln_graph_conditional_t choice = {{0, NULL}, KILN_GRAPH_IF, 1};
  assert_null(
      kiln_graph_builder_add_condition(builder, &one, &choice.condition));
  assert_null(kiln_graph_builder_add_conditional(builder, &choice, &made));
  return made;
}

static int setup(void** state) {
  (void)state;
  graph_kit_open(&kit, true);
  kiln_graph_builder_options_t options = kiln_graph_builder_options_default();
  assert_null(kiln_stream_create(kit.device, NULL, &outer));
  options.stream = outer;
  assert_null(kiln_graph_builder_create(kit.device, &options, &parent));
  assert_null(kiln_graph_builder_begin(parent, 0));
  body = add_body(parent);
  assert_null(kiln_graph_builder_stream(body, &inner));
  return 0;
}

static int teardown(void** state) {
  (void)state;
  kiln_graph_builder_release(body);
  kiln_graph_builder_release(parent);
  body = NULL;
  parent = NULL;
  kiln_stream_release(outer);
  graph_kit_close(&kit);
  return 0;
}

static void refused(kiln_status_t status) {
  assert_non_null(status);
  assert_non_null(kiln_status_fix(status));
  assert_says(status, KILN_STATUS_INVALID_STATE, "conditional body");
}

static void run(kiln_graph_builder_t* builder, uint32_t expected) {
  uint32_t value = 0;
  kiln_graph_exec_t* exec = NULL;
  assert_null(kiln_buffer_write(kit.buffer, 0, sizeof(value), &value));
  assert_null(kiln_graph_builder_exec(builder, NULL, &exec));
  assert_null(kiln_graph_exec_launch(exec, kit.stream));
  assert_null(kiln_stream_synchronize(kit.stream));
  assert_null(kiln_buffer_read(kit.buffer, 0, sizeof(value), &value));
  assert_int_equal(value, expected);
  kiln_graph_exec_release(exec);
}

static void nothing(void* user) {
  (void)user;
}

// ---- The stream ----

static void refuse_work(kiln_stream_t* stream) {
  kiln_event_t* event = NULL;
  kiln_graph_t* empty = NULL;
  kiln_graph_exec_t* exec = NULL;
  kiln_buffer_t* buffer = NULL;
  kiln_buffer_options_t made = kiln_buffer_options_default();
  kiln_launch_config_t config = kiln_launch_config_default();
  made.stream = stream;
  assert_null(kiln_event_create(kit.device, NULL, &event));
  assert_null(kiln_graph_create(kit.device, &empty));
  assert_null(kiln_graph_exec_create(empty, NULL, &exec));
  refused(kiln_launch_run(kit.launch, stream));
  refused(kiln_kernel_launch(kit.none, stream, &config, NULL, 0));
  refused(kiln_buffer_fill_async(kit.buffer, stream, 0, 4, 0, 4));
  refused(kiln_event_record(event, stream));
  refused(kiln_stream_wait_event(stream, event));
  refused(kiln_stream_wait_stream(stream, kit.stream));
  refused(kiln_stream_wait_stream(kit.stream, stream));
  refused(kiln_stream_call_host(stream, nothing, NULL));
  refused(kiln_graph_exec_launch(exec, stream));
  refused(kiln_stream_synchronize(stream));
  kiln_status_t status = kiln_buffer_create(kit.device, 64, &made, &buffer);
  assert_says(status, KILN_STATUS_INVALID_STATE, "captured");
  kiln_graph_exec_release(exec);
  kiln_graph_release(empty);
  kiln_event_release(event);
}

static void refuse_nodes(kiln_graph_builder_t* builder) {
  kiln_graph_t* child = NULL;
  kiln_graph_builder_t* made = NULL;
  kiln_graph_condition_t condition = {0, NULL};
  kiln_graph_host_t host = {nothing, NULL, 0, {NULL, NULL}};
  assert_null(kiln_graph_create(kit.device, &child));
  refused(kiln_graph_builder_embed(builder, child));
  refused(kiln_graph_builder_call_host(builder, &host));
  refused(kiln_graph_builder_split(builder, 2, &made));
  assert_null(made);
  kiln_graph_conditional_t choice = {condition, KILN_GRAPH_IF, 1};
  refused(kiln_graph_builder_add_conditional(builder, &choice, &made));
  assert_null(made);
  kiln_graph_release(child);
}

static void test_the_parent_waits(void** state) {
  (void)state;
  bool building = false;
  assert_null(kiln_launch_run(kit.launch, outer));
  assert_null(kiln_graph_builder_begin(body, 0));
  refuse_work(outer);
  refuse_nodes(parent);
  refused(kiln_graph_builder_end(parent));
  assert_int_equal(kiln_graph_builder_state(parent),
                   KILN_GRAPH_BUILDER_CAPTURING);
  assert_null(kiln_graph_builder_is_building(parent, &building));
  assert_true(building);
  assert_null(kiln_launch_run(kit.launch, inner));
  assert_null(kiln_graph_builder_end(body));
  assert_null(kiln_launch_run(kit.launch, outer));
  assert_null(kiln_graph_builder_end(parent));
  run(parent, 3);
  assert_null(kiln_launch_run(kit.launch, outer));
  assert_null(kiln_stream_synchronize(outer));
}

// A body that was not begun is nobody's concern, one that is closed no more.
static void test_a_body_that_is_not_captured(void** state) {
  (void)state;
  assert_null(kiln_launch_run(kit.launch, outer));
  assert_null(kiln_graph_builder_begin(body, 0));
  assert_null(kiln_graph_builder_close(body));
  assert_null(kiln_launch_run(kit.launch, outer));
  kiln_graph_builder_t* other = add_body(parent);
  assert_null(kiln_graph_builder_end(parent));
  run(parent, 2);
  kiln_graph_builder_release(other);
}

static void test_two_bodies(void** state) {
  (void)state;
  kiln_graph_builder_t* other = add_body(parent);
  assert_null(kiln_graph_builder_begin(body, 0));
  assert_null(kiln_graph_builder_begin(other, 0));
  // A condition is no node.
  kiln_graph_condition_t condition = {0, NULL};
  assert_null(kiln_graph_builder_add_condition(parent, NULL, &condition));
  assert_null(kiln_graph_builder_end(body));
  refused(kiln_launch_run(kit.launch, outer));
  refused(kiln_graph_builder_end(parent));
  assert_null(kiln_graph_builder_end(other));
  assert_null(kiln_launch_run(kit.launch, outer));
  assert_null(kiln_graph_builder_end(parent));
  kiln_graph_builder_release(other);
}

static void test_a_body_in_a_body(void** state) {
  (void)state;
  assert_null(kiln_graph_builder_begin(body, 0));
  kiln_graph_builder_t* deep = add_body(body);
  assert_null(kiln_graph_builder_begin(deep, 0));
  refuse_work(inner);
  refuse_nodes(body);
  refused(kiln_graph_builder_end(body));
  refused(kiln_launch_run(kit.launch, outer));
  assert_null(kiln_graph_builder_end(deep));
  assert_null(kiln_launch_run(kit.launch, inner));
  refused(kiln_launch_run(kit.launch, outer));
  assert_null(kiln_graph_builder_end(body));
  assert_null(kiln_launch_run(kit.launch, outer));
  assert_null(kiln_graph_builder_end(parent));
  run(parent, 2);
  kiln_graph_builder_release(deep);
}

// ---- Forks ----

static void test_another_branch_goes_on(void** state) {
  (void)state;
  kiln_graph_builder_t* fork = NULL;
  kiln_stream_t* forked = NULL;
  assert_null(kiln_graph_builder_split(parent, 2, &fork));
  assert_null(kiln_graph_builder_stream(fork, &forked));
  assert_null(kiln_graph_builder_begin(body, 0));
  assert_null(kiln_launch_run(kit.launch, forked));
  kiln_graph_builder_t* both[] = {parent, fork};
  refused(kiln_graph_builder_join(both, 2, NULL));
  // Nothing was closed.
  assert_int_equal(kiln_graph_builder_state(fork),
                   KILN_GRAPH_BUILDER_CAPTURING);
  assert_null(kiln_graph_builder_end(body));
  assert_null(kiln_graph_builder_join(both, 2, NULL));
  assert_null(kiln_graph_builder_end(parent));
  run(parent, 1);
  kiln_graph_builder_release(fork);
}

static void test_the_body_of_a_fork(void** state) {
  (void)state;
  kiln_graph_builder_t* fork = NULL;
  kiln_stream_t* forked = NULL;
  assert_null(kiln_graph_builder_split(parent, 2, &fork));
  assert_null(kiln_graph_builder_stream(fork, &forked));
  kiln_graph_builder_t* other = add_body(fork);
  assert_null(kiln_graph_builder_begin(other, 0));
  refuse_work(forked);
  refuse_nodes(fork);
  assert_null(kiln_launch_run(kit.launch, outer));
  kiln_graph_builder_t* both[] = {parent, fork};
  refused(kiln_graph_builder_join(both, 2, NULL));
  refused(kiln_graph_builder_end(parent));
  assert_null(kiln_graph_builder_end(other));
  assert_null(kiln_graph_builder_join(both, 2, NULL));
  assert_null(kiln_graph_builder_end(parent));
  kiln_graph_builder_release(other);
  kiln_graph_builder_release(fork);
}

// ---- The end of a fork ----

static void test_a_fork_after_the_end(void** state) {
  (void)state;
  for (int thrown = 0; thrown < 3; thrown++) {
    kiln_graph_builder_t* made = NULL;
    kiln_graph_builder_t* fork = NULL;
    assert_null(kiln_graph_builder_create(kit.device, NULL, &made));
    assert_null(kiln_graph_builder_begin(made, 0));
    assert_null(kiln_graph_builder_split(made, 2, &fork));
    assert_int_equal(kiln_graph_builder_state(fork),
                     KILN_GRAPH_BUILDER_CAPTURING);
    kiln_stream_t* streams[2];
    assert_null(kiln_graph_builder_stream(made, &streams[0]));
    assert_null(kiln_graph_builder_stream(fork, &streams[1]));
    assert_null(kiln_launch_run(kit.launch, streams[1]));
    if (thrown == 0) {
      // Joined by the stream, and not by the builder.
      assert_null(kiln_stream_wait_stream(streams[0], streams[1]));
      assert_null(kiln_graph_builder_end(made));
    } else if (thrown == 1) {
      kiln_status_t status = kiln_graph_builder_end(made);
      assert_says(status, KILN_STATUS_INVALID_STATE, "discarded");
    } else {
      assert_null(kiln_graph_builder_close(made));
    }
    assert_int_equal(kiln_graph_builder_state(fork),
                     thrown == 0 ? KILN_GRAPH_BUILDER_ENDED
                                 : KILN_GRAPH_BUILDER_INVALIDATED);
    assert_null(kiln_graph_builder_close(fork));
    assert_int_equal(kiln_graph_builder_state(fork), KILN_GRAPH_BUILDER_CLOSED);
    kiln_graph_builder_release(fork);
    kiln_graph_builder_release(made);
  }
  assert_null(kiln_graph_builder_begin(body, 0));
  assert_null(kiln_graph_builder_end(body));
}

// A body may be captured when its parent has ended: the stream is free.
static void test_a_body_after_the_end(void** state) {
  (void)state;
  assert_null(kiln_graph_builder_end(parent));
  assert_null(kiln_graph_builder_begin(body, 0));
  assert_null(kiln_launch_run(kit.launch, outer));
  assert_null(kiln_stream_synchronize(outer));
  assert_null(kiln_launch_run(kit.launch, inner));
  assert_null(kiln_graph_builder_end(body));
  assert_null(kiln_launch_run(kit.launch, outer));
  assert_null(kiln_stream_synchronize(outer));
  run(parent, 1);
}

// A parent that is thrown away takes its bodies along.
static void test_a_parent_that_is_closed(void** state) {
  (void)state;
  assert_null(kiln_graph_builder_begin(body, 0));
  assert_null(kiln_graph_builder_close(parent));
  assert_null(kiln_launch_run(kit.launch, outer));
  assert_null(kiln_stream_synchronize(outer));
  kiln_status_free(kiln_graph_builder_close(body));
  assert_null(kiln_launch_run(kit.launch, outer));
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
      T(test_the_parent_waits),
      T(test_a_body_that_is_not_captured),
      T(test_two_bodies),
      T(test_a_body_in_a_body),
      T(test_another_branch_goes_on),
      T(test_the_body_of_a_fork),
      T(test_a_fork_after_the_end),
      T(test_a_body_after_the_end),
      T(test_a_parent_that_is_closed),
#undef T
  };
  return cmocka_run_group_tests_name("graph_bodies", tests, NULL, NULL);
}
