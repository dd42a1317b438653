// SPDX-License-Identifier: Apache-2.0
//
// graph: what memory and choices in graphs cannot do is refused with the
// reason, and what the Fix says works: on the software device.
#include "graph_kit.h"

static graph_kit_t kit;
static kiln_graph_t* graph;
static kiln_graph_node_t* allocation;
static uint64_t address;

static kiln_graph_node_t* add(kiln_graph_t* to, kiln_graph_work_t work,
                              const char* name) {
  kiln_graph_node_t* node = graph_kit_add(to, NULL, work);
  assert_null(kiln_graph_node_set_name(node, name));
  return node;
}

// A graph with one node, which allocates.
static int setup(void** state) {
  (void)state;
  graph_kit_open(&kit, true);
  assert_null(kiln_graph_create(kit.device, &graph));
  allocation = add(graph, kiln_graph_work_allocate(4096), "take");
  address = kiln_graph_node_address(allocation);
  return 0;
}

static int teardown(void** state) {
  (void)state;
  kiln_graph_release(graph);
  graph_kit_close(&kit);
  return 0;
}

static kiln_graph_exec_t* make_exec(kiln_graph_t* of) {
  kiln_graph_exec_t* exec = NULL;
  assert_null(kiln_graph_exec_create(of, NULL, &exec));
  return exec;
}

static void launch(kiln_graph_exec_t* exec) {
  assert_null(kiln_graph_exec_launch(exec, kit.stream));
  assert_null(kiln_stream_synchronize(kit.stream));
}

static void test_a_second_executable(void** state) {
  (void)state;
  kiln_graph_exec_t* first = make_exec(graph);
  kiln_graph_exec_t* second = NULL;
  assert_says(kiln_graph_exec_create(graph, NULL, &second),
              KILN_STATUS_UNSUPPORTED, "second executable");
  assert_null(second);
  kiln_graph_exec_release(first);
  kiln_graph_exec_release(make_exec(graph));
}

// Short and long way, and ways out of it.
static void test_memory_that_is_not_freed(void** state) {
  (void)state;
  kiln_graph_exec_t* exec = make_exec(graph);
  kiln_graph_t* frees = NULL;
  launch(exec);
  for (int i = 0; i < 2; i++) {
    assert_says(kiln_graph_exec_launch(exec, kit.stream),
                KILN_STATUS_INVALID_ARGUMENT, "has not been freed");
  }
  assert_null(kiln_graph_create(kit.device, &frees));
  add(frees, kiln_graph_work_free(address), "give");
  kiln_graph_exec_t* give = make_exec(frees);
  launch(give);
  launch(exec);
  launch(give);
  kiln_graph_exec_release(give);
  kiln_graph_release(frees);
  kiln_graph_exec_release(exec);
  kiln_graph_exec_options_t options = kiln_graph_exec_options_default();
  options.free_on_launch = KILN_SWITCH_ON;
  assert_null(kiln_graph_exec_create(graph, &options, &exec));
  launch(exec);
  launch(exec);
  kiln_graph_exec_release(exec);
}

static void test_memory_that_the_graph_frees(void** state) {
  (void)state;
  kiln_graph_work_t work = kiln_graph_work_free(address);
  assert_null(kiln_graph_add(graph, &allocation, 1, &work, NULL));
  kiln_graph_exec_t* exec = make_exec(graph);
  launch(exec);
  launch(exec);
  kiln_graph_exec_release(exec);
}

static void test_what_is_freed_twice(void** state) {
  (void)state;
  kiln_graph_work_t work = kiln_graph_work_free(address);
  add(graph, work, "give");
  assert_says(kiln_graph_add(graph, NULL, 0, &work, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "by the node \"give\"");
  work = kiln_graph_work_free(kiln_buffer_address(kit.buffer));
  assert_says(kiln_graph_add(graph, NULL, 0, &work, NULL),
              KILN_STATUS_INVALID_ARGUMENT, "not the address of an ALLOCATE");
  kiln_graph_exec_release(make_exec(graph));
}

static void test_what_cannot_be_copied(void** state) {
  (void)state;
  kiln_graph_t* outer = NULL;
  kiln_graph_t* clone = NULL;
  kiln_graph_builder_t* builder = NULL;
  kiln_graph_work_t work = kiln_graph_work_child(graph);
  assert_null(kiln_graph_create(kit.device, &outer));
  assert_says(kiln_graph_add(outer, NULL, 0, &work, NULL),
              KILN_STATUS_UNSUPPORTED, "\"take\"");
  assert_says(kiln_graph_clone(graph, &clone), KILN_STATUS_UNSUPPORTED,
              "\"take\"");
  assert_null(clone);
  assert_null(kiln_graph_builder_create(kit.device, NULL, &builder));
  assert_null(kiln_graph_builder_begin(builder, 0));
  assert_says(kiln_graph_builder_embed(builder, graph), KILN_STATUS_UNSUPPORTED,
              "\"take\"");
  assert_null(kiln_graph_builder_end(builder));
  kiln_graph_builder_release(builder);
  kiln_graph_exec_release(make_exec(outer));
  kiln_graph_release(outer);
}

static void test_a_child_that_chooses(void** state) {
  (void)state;
  kiln_graph_t* chooses = NULL;
  kiln_graph_t* outer = NULL;
  kiln_graph_condition_t condition = {0, NULL};
  assert_null(kiln_graph_create(kit.device, &chooses));
  assert_null(kiln_graph_create(kit.device, &outer));
  assert_null(kiln_graph_add_condition(chooses, NULL, &condition));
  kiln_graph_work_t work;
  memset(&work, 0, sizeof(work));
  work.kind = KILN_GRAPH_CONDITIONAL;
  work.as.conditional.condition = condition;
  work.as.conditional.kind = KILN_GRAPH_IF;
  work.as.conditional.bodies = 1;
  add(chooses, work, "choose");
  work = kiln_graph_work_child(chooses);
  assert_says(kiln_graph_add(outer, NULL, 0, &work, NULL),
              KILN_STATUS_UNSUPPORTED, "\"choose\"");
  kiln_graph_release(outer);
  kiln_graph_release(chooses);
}

static kiln_graph_work_t choice(kiln_graph_condition_t condition) {
  return kiln_graph_work_conditional(condition, KILN_GRAPH_IF, 1);
}

static void test_a_condition_of_two_nodes(void** state) {
  (void)state;
  kiln_graph_t* chooses = NULL;
  kiln_graph_t* body = NULL;
  kiln_graph_condition_t condition = {0, NULL};
  kiln_graph_condition_t other = {0, NULL};
  assert_null(kiln_graph_create(kit.device, &chooses));
  assert_null(kiln_graph_add_condition(chooses, NULL, &condition));
  assert_null(kiln_graph_add_condition(chooses, NULL, &other));
  add(chooses, choice(other), "alone");
  kiln_graph_node_t* first = add(chooses, choice(condition), "first");
  kiln_graph_work_t work = choice(condition);
  assert_says(kiln_graph_add(chooses, NULL, 0, &work, NULL),
              KILN_STATUS_INVALID_ARGUMENT,
              "that of the conditional node \"first\" already");
  // In a body as well, whose own it is not.
  assert_null(kiln_graph_node_inner(first, 0, &body));
  work = choice((kiln_graph_condition_t){condition.handle, body});
  assert_says(kiln_graph_add(body, NULL, 0, &work, NULL),
              KILN_STATUS_INVALID_ARGUMENT,
              "that of the conditional node \"first\" already");
  // What the Fix says.
  assert_null(kiln_graph_add_condition(body, NULL, &condition));
  add(body, choice(condition), "second");
  kiln_graph_release(body);
  kiln_graph_exec_release(make_exec(chooses));
  kiln_graph_release(chooses);
}

// What a body of a conditional node cannot have is refused by the node's name;
// beside that node it can be.
static void test_what_a_body_has_not(void** state) {
  (void)state;
  kiln_graph_t* chooses = NULL;
  kiln_graph_t* body = NULL;
  kiln_graph_condition_t condition = {0, NULL};
  assert_null(kiln_graph_create(kit.device, &chooses));
  assert_null(kiln_graph_add_condition(chooses, NULL, &condition));
  kiln_graph_node_t* node = add(chooses, choice(condition), "choose");
  assert_null(kiln_graph_node_inner(node, 0, &body));
  kiln_graph_work_t work = kiln_graph_work_allocate(4096);
  assert_says(
      kiln_graph_add(body, NULL, 0, &work, NULL), KILN_STATUS_UNSUPPORTED,
      "a body of the conditional node \"choose\" has no allocate nodes");
  kiln_graph_node_t* beside = add(chooses, work, "beside");
  work = kiln_graph_work_free(kiln_graph_node_address(beside));
  assert_says(kiln_graph_add(body, NULL, 0, &work, NULL),
              KILN_STATUS_UNSUPPORTED, "has no free nodes");
  kiln_graph_release(body);
  kiln_graph_exec_release(make_exec(chooses));
  kiln_graph_release(chooses);
}

static void test_a_condition_of_nobody(void** state) {
  (void)state;
  kiln_graph_work_t work = choice((kiln_graph_condition_t){0x1234, graph});
  assert_says(kiln_graph_add(graph, NULL, 0, &work, NULL),
              KILN_STATUS_INVALID_ARGUMENT,
              "0x1234 is not the handle of a condition of this graph");
}

static void test_edges_that_are_refused(void** state) {
  (void)state;
  kiln_graph_t* plain = NULL;
  assert_null(kiln_graph_create(kit.device, &plain));
  kiln_graph_node_t* a = add(plain, kiln_graph_work_empty(), "a");
  kiln_graph_node_t* b = add(plain, kiln_graph_work_empty(), "b");
  kiln_graph_node_t* c = add(plain, kiln_graph_work_empty(), "c");
  kiln_graph_edge_t edges[] = {kiln_graph_edge(a, b), kiln_graph_edge(b, c),
                               kiln_graph_edge(a, b)};
  const kiln_status_code_t bad = KILN_STATUS_INVALID_ARGUMENT;
  assert_says(kiln_graph_connect(plain, edges, 3), bad,
              "edge 2: \"b\" already waits for \"a\"");
  assert_null(kiln_graph_connect(plain, edges, 1));
  assert_says(kiln_graph_connect(plain, edges, 2), bad,
              "edge 0: \"b\" already waits for \"a\"");
  assert_says(kiln_graph_disconnect(plain, edges, 2), bad,
              "edge 1: \"c\" does not wait for \"b\"");
  assert_null(kiln_graph_disconnect(plain, edges, 1));
  kiln_graph_node_t* twice[] = {a, b, a};
  kiln_graph_work_t work = kiln_graph_work_empty();
  assert_says(kiln_graph_add(plain, twice, 3, &work, NULL), bad,
              "`after[2]`, the empty node \"a\", is also `after[0]`");
  work = kiln_graph_work_launch(kit.launch);
  assert_says(kiln_graph_add(plain, twice, 3, &work, NULL), bad,
              "is also `after[0]`");
  kiln_graph_release(plain);
  // Of memory a driver takes no edge away.
  kiln_graph_work_t give = kiln_graph_work_free(address);
  kiln_graph_node_t* freed = NULL;
  assert_null(kiln_graph_add(graph, &allocation, 1, &give, &freed));
  edges[0] = kiln_graph_edge(allocation, freed);
  assert_says(kiln_graph_disconnect(graph, edges, 1), KILN_STATUS_UNSUPPORTED,
              "\"take\"");
}

static void test_a_stream_that_is_captured(void** state) {
  (void)state;
  kiln_graph_builder_options_t options = kiln_graph_builder_options_default();
  options.stream = kit.stream;
  kiln_graph_builder_t* builders[2] = {NULL, NULL};
  for (int i = 0; i < 2; i++) {
    assert_null(kiln_graph_builder_create(kit.device, &options, &builders[i]));
  }
  assert_null(kiln_graph_builder_begin(builders[0], 0));
  assert_says(kiln_graph_builder_begin(builders[1], 0),
              KILN_STATUS_INVALID_STATE,
              "the stream is being captured already");
  assert_null(kiln_graph_builder_end(builders[0]));
  assert_null(kiln_graph_builder_begin(builders[1], 0));
  assert_null(kiln_graph_builder_end(builders[1]));
  for (int i = 0; i < 2; i++) kiln_graph_builder_release(builders[i]);
}

static void test_names_of_nodes_inside(void** state) {
  (void)state;
  kiln_graph_t* chooses = NULL;
  kiln_graph_t* body = NULL;
  kiln_graph_condition_t condition = {0, NULL};
  assert_null(kiln_graph_create(kit.device, &chooses));
  assert_null(kiln_graph_add_condition(chooses, NULL, &condition));
  kiln_graph_node_t* either =
      add(chooses, kiln_graph_work_conditional(condition, KILN_GRAPH_IF, 2),
          "ei\nther");
  assert_null(kiln_graph_node_inner(either, 1, &body));
  kiln_graph_node_t* step = add(body, kiln_graph_work_empty(), "st\x1b[2Jep");
  kiln_graph_edge_t edge = kiln_graph_edge(step, step);
  assert_says(kiln_graph_connect(body, &edge, 1), KILN_STATUS_INVALID_ARGUMENT,
              "\"ei\\x0ather[1]/st\\x1b[2Jep\"");
  kiln_graph_release(body);
  kiln_graph_release(chooses);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
      T(test_a_second_executable),         T(test_memory_that_is_not_freed),
      T(test_memory_that_the_graph_frees), T(test_what_is_freed_twice),
      T(test_what_cannot_be_copied),       T(test_a_child_that_chooses),
      T(test_a_condition_of_two_nodes),    T(test_a_condition_of_nobody),
      T(test_edges_that_are_refused),      T(test_a_stream_that_is_captured),
      T(test_names_of_nodes_inside),       T(test_what_a_body_has_not),
#undef T
  };
  return cmocka_run_group_tests_name("graph_why", tests, NULL, NULL);
}
