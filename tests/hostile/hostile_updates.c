// SPDX-License-Identifier: Apache-2.0
//
// tests: executables changed by graphs of closed builders, of other shapes, of
// other devices, and by what is no graph any more.
//
// What must hold: a refused change leaves the executable as it was, and what is
// gone says INVALID_STATE. In 0.1.0 options of four bytes to just short of a
// pointer were read beyond what they said they had.
#define _POSIX_C_SOURCE 200809L  // nanosleep

#include "hostile.h"

HOSTILE_WORLD()

static kiln_graph_builder_t* captured(kiln_kernel_t* kernel, uint32_t operand,
                                      int count) {
  kiln_graph_builder_t* builder = hostile_begin(&world, NULL, 0);
  for (int i = 0; i < count; i++) {
    hostile_capture(builder, kernel, world.buffer, operand);
  }
  WORKS(kiln_graph_builder_end(builder));
  return builder;
}

static kiln_graph_t* graph_of(kiln_graph_builder_t* builder) {
  kiln_graph_t* graph = NULL;
  WORKS(kiln_graph_builder_graph(builder, &graph));
  kiln_graph_builder_release(builder);
  return graph;
}

static void test_whole_updates(void** state) {
  (void)state;
  kiln_graph_t* ones = graph_of(captured(world.add, 1, 2));
  kiln_graph_t* longer = graph_of(captured(world.add, 5, 3));
  kiln_graph_t* unused = NULL;
  kiln_graph_exec_t* exec = NULL;
  WORKS(kiln_graph_exec_create(ones, NULL, &exec));
  // The graph of a closed builder is still a source.
  kiln_graph_builder_t* builder = captured(world.add, 5, 2);
  kiln_graph_t* fives = NULL;
  WORKS(kiln_graph_builder_graph(builder, &fives));
  WORKS(kiln_graph_builder_close(builder));
  REFUSED(INVALID_STATE, kiln_graph_builder_graph(builder, &unused));
  kiln_graph_builder_release(builder);
  kiln_graph_update_t update = {9, 9, NULL, NULL};
  WORKS(kiln_graph_exec_update(exec, fives, &update));
  assert_int_equal(update.reason, KILN_GRAPH_UPDATE_DONE);
  assert_int_equal(hostile_result(&world, exec), 10);
  REFUSED(INVALID_ARGUMENT, kiln_graph_exec_update(exec, longer, &update));
  assert_int_equal(update.reason, KILN_GRAPH_UPDATE_TOPOLOGY);
  REFUSED(INVALID_ARGUMENT, kiln_graph_exec_update(exec, NULL, &update));
  REFUSED(INVALID_ARGUMENT, kiln_graph_exec_update(NULL, fives, &update));
  assert_int_equal(hostile_result(&world, exec), 10);
  kiln_graph_release(ones);
  kiln_graph_release(longer);
  kiln_graph_release(fives);
  assert_int_equal(hostile_result(&world, exec), 10);
  kiln_graph_exec_release(exec);
}

// Nodes come in the order of the capture, and one of them changes alone.
static void test_a_node_of_a_capture(void** state) {
  (void)state;
  kiln_graph_builder_t* builder = hostile_begin(&world, NULL, 0);
  hostile_capture(builder, world.add, world.buffer, 1);
  hostile_capture(builder, world.mul, world.buffer, 3);
  hostile_capture(builder, world.add, world.buffer, 5);
  WORKS(kiln_graph_builder_end(builder));
  kiln_graph_t* graph = graph_of(builder);
  kiln_graph_exec_t* exec = NULL;
  kiln_graph_node_t* nodes[4];
  uint32_t count = 0;
  WORKS(kiln_graph_exec_create(graph, NULL, &exec));
  WORKS(kiln_graph_nodes(graph, 4, nodes, &count));
  assert_int_equal(count, 3);
  kiln_launch_t* launch = hostile_launch(world.add, world.buffer, 100);
  kiln_graph_work_t work = kiln_graph_work_launch(launch);
  WORKS(kiln_graph_exec_set(exec, nodes[2], &work));
  kiln_launch_release(launch);
  assert_int_equal(hostile_result(&world, exec), 103);
  kiln_graph_exec_release(exec);
  kiln_graph_release(graph);
}

// A graph under capture is no source of anything.
static void test_a_graph_under_capture(void** state) {
  (void)state;
  kiln_graph_t* ones = graph_of(captured(world.add, 1, 1));
  kiln_graph_exec_t* exec = NULL;
  WORKS(kiln_graph_exec_create(ones, NULL, &exec));
  kiln_graph_builder_t* builder = hostile_begin(&world, NULL, 0);
  uint32_t first = 1;
  kiln_graph_condition_t condition;
  WORKS(kiln_graph_builder_add_condition(builder, &first, &condition));
  kiln_graph_t* under = (kiln_graph_t*)(uintptr_t)condition.graph;
  kiln_graph_exec_t* other = NULL;
  REFUSED(INVALID_STATE, kiln_graph_exec_update(exec, under, NULL));
  REFUSED(INVALID_STATE, kiln_graph_exec_create(under, NULL, &other));
  assert_null(other);
  kiln_graph_builder_release(builder);
  assert_int_equal(hostile_result(&world, exec), 1);
  kiln_graph_exec_release(exec);
  kiln_graph_release(ones);
}

// A view, and what is left of it when its node is removed.
static void test_a_view_of_what_is_gone(void** state) {
  (void)state;
  kiln_graph_t* child = graph_of(captured(world.add, 1, 1));
  kiln_graph_t *parent = NULL, *view = NULL, *again = NULL;
  kiln_graph_exec_t* exec = NULL;
  kiln_graph_node_t* node = NULL;
  uint32_t count = 0;
  WORKS(kiln_graph_create(world.device, &parent));
  kiln_graph_work_t work = kiln_graph_work_child(child);
  WORKS(kiln_graph_add(parent, NULL, 0, &work, &node));
  WORKS(kiln_graph_node_inner(node, 0, &view));
  REFUSED(INVALID_ARGUMENT, kiln_graph_exec_create(view, NULL, &exec));
  WORKS(kiln_graph_node_remove(node));
  REFUSED(INVALID_STATE, kiln_graph_nodes(view, 0, NULL, &count));
  REFUSED(INVALID_STATE, kiln_graph_exec_create(view, NULL, &exec));
  assert_null(kiln_graph_handle(view));
  assert_false(kiln_graph_node_is_valid(node));
  REFUSED(INVALID_STATE, kiln_graph_node_remove(node));
  REFUSED(INVALID_STATE, kiln_graph_node_set(node, &work));
  REFUSED(INVALID_STATE, kiln_graph_node_inner(node, 0, &again));
  REFUSED(INVALID_STATE, kiln_graph_node_set_name(node, "x"));
  kiln_graph_release(view);
  kiln_graph_release(parent);
  kiln_graph_release(child);
}

static void test_another_device(void** state) {
  (void)state;
  hostile_t other;
  hostile_open(&other);
  kiln_graph_t *ours = NULL, *theirs = NULL;
  kiln_graph_exec_t* exec = NULL;
  WORKS(kiln_graph_create(world.device, &ours));
  WORKS(kiln_graph_create(other.device, &theirs));
  kiln_graph_work_t fill = kiln_graph_work_fill(world.buffer, 0, 1, 1, 4);
  REFUSED(INVALID_ARGUMENT, kiln_graph_add(theirs, NULL, 0, &fill, NULL));
  WORKS(kiln_graph_add(ours, NULL, 0, &fill, NULL));
  WORKS(kiln_graph_exec_create(ours, NULL, &exec));
  REFUSED(INVALID_ARGUMENT, kiln_graph_exec_update(exec, theirs, NULL));
  REFUSED(INVALID_ARGUMENT, kiln_graph_exec_launch(exec, other.stream));
  REFUSED(INVALID_ARGUMENT, kiln_graph_exec_upload(exec, other.stream));
  WORKS(kiln_graph_exec_launch(exec, world.stream));
  kiln_graph_exec_release(exec);
  kiln_graph_release(ours);
  kiln_graph_release(theirs);
  hostile_close(&other);
}

// ---- Options ----

static void test_options_of_an_executable(void** state) {
  (void)state;
  kiln_graph_t* graph = graph_of(captured(world.add, 1, 1));
  kiln_graph_exec_t* exec = NULL;
  kiln_graph_exec_options_t options = kiln_graph_exec_options_default();
  static const uint32_t sizes[] = {0, 1, 3, 5};
  for (int i = 0; i < 4; i++) {
    options.struct_size = sizes[i];
    REFUSED(INVALID_ARGUMENT, kiln_graph_exec_create(graph, &options, &exec));
    assert_null(exec);
  }
  options = kiln_graph_exec_options_default();
  options.free_on_launch = 7;
  REFUSED(INVALID_ARGUMENT, kiln_graph_exec_create(graph, &options, &exec));
  struct {
    kiln_graph_exec_options_t options;
    uint64_t tail;
  } larger = {kiln_graph_exec_options_default(), 0};
  larger.options.struct_size = sizeof(larger);
  WORKS(kiln_graph_exec_create(graph, &larger.options, &exec));
  kiln_graph_exec_release(exec);
  exec = NULL;
  larger.tail = 1;
  REFUSED(INCOMPATIBLE, kiln_graph_exec_create(graph, &larger.options, &exec));
  assert_null(exec);
  kiln_graph_release(graph);
}

// Options that end within a pointer: refused, not read to the half.
static void test_options_that_are_cut(void** state) {
  (void)state;
  kiln_graph_builder_options_t options = kiln_graph_builder_options_default();
  kiln_graph_builder_t* builder = NULL;
  options.stream = world.stream;
  for (uint32_t size = 0; size < sizeof(options); size++) {
    options.struct_size = size;
    REFUSED(INVALID_ARGUMENT,
            kiln_graph_builder_create(world.device, &options, &builder));
    assert_null(builder);
  }
  kiln_stream_options_t stream_options = kiln_stream_options_default();
  kiln_stream_t* stream = NULL;
  for (uint32_t size = 0; size < 4; size++) {
    stream_options.struct_size = size;
    REFUSED(INVALID_ARGUMENT,
            kiln_stream_create(world.device, &stream_options, &stream));
    assert_null(stream);
  }
  kiln_launch_config_t shape = kiln_launch_config_default();
  kiln_launch_t* launch = NULL;
  shape.struct_size = 0;
  REFUSED(INVALID_ARGUMENT, kiln_launch_create(world.add, &shape, &launch));
  struct {
    kiln_launch_config_t shape;
    uint64_t tail;
  } larger = {kiln_launch_config_default(), 1};
  larger.shape.struct_size = sizeof(larger);
  REFUSED(INCOMPATIBLE, kiln_launch_create(world.add, &larger.shape, &launch));
  assert_null(launch);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
      CASE(test_whole_updates),         CASE(test_a_node_of_a_capture),
      CASE(test_a_graph_under_capture), CASE(test_a_view_of_what_is_gone),
      CASE(test_another_device),        CASE(test_options_of_an_executable),
      CASE(test_options_that_are_cut),
#undef CASE
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
