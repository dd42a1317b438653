// SPDX-License-Identifier: Apache-2.0
//
// tests: conditional bodies whose parents end first, in each other, filled by
// hand, and used in ways that have no meaning.
//
// Found in 0.1.0: the parent of a body that was being captured took work, and
// ended, without a word; two executables and clones of a graph that chooses
// were OK on the software device, which drivers refuse.
#define _POSIX_C_SOURCE 200809L  // nanosleep

#include "hostile.h"

HOSTILE_WORLD()

static void fill_by_hand(kiln_graph_t* body, kiln_graph_node_t* after,
                         uint32_t operand) {
  kiln_launch_t* launch = hostile_launch(world.add, world.buffer, operand);
  kiln_graph_work_t work = kiln_graph_work_launch(launch);
  WORKS(kiln_graph_add(body, &after, after == NULL ? 0 : 1, &work, NULL));
  kiln_launch_release(launch);
}

static void capture_body(kiln_graph_builder_t* body, uint32_t operand) {
  WORKS(kiln_graph_builder_begin(body, 0));
  hostile_capture(body, world.add, world.buffer, operand);
  WORKS(kiln_graph_builder_end(body));
}

// A capture of add(1), then of a fork with an IF whose body is still empty.
static void begin_with_body(kiln_graph_builder_t* pair[2],
                            kiln_graph_builder_t** out_body) {
  pair[0] = hostile_begin(&world, NULL, 0);
  hostile_capture(pair[0], world.add, world.buffer, 1);
  WORKS(kiln_graph_builder_split(pair[0], 2, &pair[1]));
  hostile_choose(pair[1], KILN_GRAPH_IF, 1, 1, out_body);
}

static void end_pair(kiln_graph_builder_t* pair[2]) {
  WORKS(kiln_graph_builder_join(pair, 2, NULL));
  WORKS(kiln_graph_builder_end(pair[0]));
}

static void release_pair(kiln_graph_builder_t* pair[2],
                         kiln_graph_builder_t* body) {
  kiln_graph_builder_release(pair[0]);
  kiln_graph_builder_release(pair[1]);
  kiln_graph_builder_release(body);
}

// The fork that the body hangs on is closed by the join before it is captured.
static void test_a_body_after_its_fork(void** state) {
  (void)state;
  kiln_graph_builder_t *pair[2], *body;
  begin_with_body(pair, &body);
  WORKS(kiln_graph_builder_join(pair, 2, NULL));
  capture_body(body, 10);
  WORKS(kiln_graph_builder_end(pair[0]));
  hostile_expect(&world, pair[0], 11);
  release_pair(pair, body);
}

static void test_a_body_after_the_whole(void** state) {
  (void)state;
  kiln_graph_builder_t *pair[2], *body;
  begin_with_body(pair, &body);
  end_pair(pair);
  capture_body(body, 10);
  hostile_expect(&world, pair[0], 11);
  release_pair(pair, body);
}

static void test_a_body_by_hand(void** state) {
  (void)state;
  kiln_graph_builder_t *pair[2], *body;
  kiln_graph_t* graph = NULL;
  begin_with_body(pair, &body);
  WORKS(kiln_graph_builder_graph(body, &graph));
  end_pair(pair);
  fill_by_hand(graph, NULL, 10);
  hostile_expect(&world, pair[0], 11);
  release_pair(pair, body);
  uint32_t count = 0;
  WORKS(kiln_graph_nodes(graph, 0, NULL, &count));  // it outlives builders
  assert_int_equal(count, 1);
  kiln_graph_release(graph);
}

static void test_captured_and_then_by_hand(void** state) {
  (void)state;
  kiln_graph_builder_t *pair[2], *body;
  kiln_graph_t* graph = NULL;
  begin_with_body(pair, &body);
  capture_body(body, 4);
  WORKS(kiln_graph_builder_graph(body, &graph));
  kiln_graph_node_t* node = NULL;
  uint32_t count = 0;
  WORKS(kiln_graph_nodes(graph, 1, &node, &count));
  assert_int_equal(count, 1);
  fill_by_hand(graph, node, 6);
  end_pair(pair);
  hostile_expect(&world, pair[0], 11);
  kiln_graph_release(graph);
  release_pair(pair, body);
}

// The graph around the body is gone: nothing of it may be touched.
static void test_a_body_of_nothing(void** state) {
  (void)state;
  kiln_graph_builder_t *pair[2], *body;
  kiln_graph_t* graph = NULL;
  begin_with_body(pair, &body);
  kiln_graph_builder_release(pair[0]);
  kiln_graph_builder_release(pair[1]);
  REFUSED(INVALID_STATE, kiln_graph_builder_begin(body, 0));
  REFUSED(INVALID_STATE, kiln_graph_builder_end(body));
  kiln_status_free(kiln_graph_builder_graph(body, &graph));
  if (graph != NULL) {
    uint32_t count = 0;
    REFUSED(INVALID_STATE, kiln_graph_nodes(graph, 0, NULL, &count));
  }
  kiln_graph_release(graph);
  kiln_graph_builder_release(body);
}

// SWITCH of three on a fork; in its last body an IF, whose body splits.
static void test_choices_in_choices(void** state) {
  (void)state;
  kiln_graph_builder_t *pair[2], *bodies[3], *inner[1], *fork[1];
  kiln_graph_builder_t* root = NULL;
  pair[0] = hostile_begin(&world, NULL, 0);
  WORKS(kiln_graph_builder_split(pair[0], 2, &pair[1]));
  hostile_choose(pair[1], KILN_GRAPH_SWITCH, 3, 2, bodies);
  capture_body(bodies[0], 100);
  capture_body(bodies[1], 200);
  WORKS(kiln_graph_builder_begin(bodies[2], 0));
  hostile_capture(bodies[2], world.add, world.buffer, 300);
  hostile_choose(bodies[2], KILN_GRAPH_IF, 1, 1, inner);
  WORKS(kiln_graph_builder_begin(inner[0], 0));
  WORKS(kiln_graph_builder_split(inner[0], 2, fork));
  hostile_capture(fork[0], world.add, world.buffer, 7);
  kiln_graph_builder_t* both[] = {fork[0], inner[0]};
  WORKS(kiln_graph_builder_join(both, 2, &root));
  assert_ptr_equal(root, inner[0]);
  WORKS(kiln_graph_builder_end(inner[0]));
  WORKS(kiln_graph_builder_end(bodies[2]));
  end_pair(pair);
  hostile_expect(&world, pair[0], 307);
  kiln_graph_exec_t* exec = NULL;
  REFUSED(INVALID_STATE, kiln_graph_builder_exec(bodies[0], NULL, &exec));
  assert_null(exec);
  for (int i = 0; i < 3; i++) kiln_graph_builder_release(bodies[i]);
  kiln_graph_builder_release(fork[0]);
  release_pair(pair, inner[0]);
}

// While a body is captured its parent takes no work and does not end.
static void test_the_parent_waits(void** state) {
  (void)state;
  kiln_graph_builder_t* body = NULL;
  kiln_graph_builder_t* primary = hostile_begin(&world, NULL, 0);
  hostile_choose(primary, KILN_GRAPH_IF, 1, 1, &body);
  WORKS(kiln_graph_builder_begin(body, 0));
  hostile_capture(body, world.add, world.buffer, 2);
  REFUSED(INVALID_STATE,
          hostile_run(world.add, hostile_stream_of(primary), world.buffer, 7));
  REFUSED(INVALID_STATE, kiln_graph_builder_end(primary));
  hostile_capture(body, world.add, world.buffer, 3);
  WORKS(kiln_graph_builder_end(body));
  hostile_capture(primary, world.add, world.buffer, 7);
  WORKS(kiln_graph_builder_end(primary));
  hostile_expect(&world, primary, 12);
  kiln_graph_builder_release(body);
  kiln_graph_builder_release(primary);
}

// Conditions of others, used twice and by nobody; kinds and counts that are
// none.
static void test_conditions_without_sense(void** state) {
  (void)state;
  kiln_graph_builder_t* one = hostile_begin(&world, NULL, 0);
  kiln_graph_builder_t* other = hostile_begin(&world, NULL, 0);
  kiln_graph_builder_t* bodies[4] = {NULL};
  kiln_graph_builder_t* kept = NULL;
  uint32_t first = 1;
  kiln_graph_conditional_t choice;
  choice.kind = KILN_GRAPH_IF;
  choice.bodies = 1;
  WORKS(kiln_graph_builder_add_condition(one, &first, &choice.condition));
  REFUSED(INVALID_ARGUMENT,
          kiln_graph_builder_add_conditional(other, &choice, bodies));
  WORKS(kiln_graph_builder_add_conditional(one, &choice, &kept));
  static const uint32_t wrong[][2] = {
      {9, 1}, {KILN_GRAPH_IF, 0}, {KILN_GRAPH_IF, 3}, {KILN_GRAPH_WHILE, 2}};
  WORKS(kiln_graph_builder_add_condition(one, &first, &choice.condition));
  for (int i = 0; i < 4; i++) {
    choice.kind = wrong[i][0];
    choice.bodies = wrong[i][1];
    REFUSED(INVALID_ARGUMENT,
            kiln_graph_builder_add_conditional(one, &choice, bodies));
    assert_null(bodies[0]);
  }
  kiln_graph_condition_t unused;
  WORKS(kiln_graph_builder_add_condition(other, &first, &unused));
  WORKS(kiln_graph_builder_end(other));
  kiln_graph_exec_t* exec = NULL;
  REFUSED(INVALID_ARGUMENT, kiln_graph_builder_exec(other, NULL, &exec));
  assert_null(exec);
  kiln_graph_builder_release(kept);
  kiln_graph_builder_release(one);
  kiln_graph_builder_release(other);
}

// A number that two choices obey: refused somewhere, or obeyed by both.
static void test_a_condition_used_twice(void** state) {
  (void)state;
  kiln_graph_builder_t* builder = hostile_begin(&world, NULL, 0);
  kiln_graph_builder_t* bodies[2] = {NULL};
  kiln_graph_exec_t* exec = NULL;
  uint32_t first = 1;
  kiln_graph_conditional_t choice;
  choice.kind = KILN_GRAPH_IF;
  choice.bodies = 1;
  WORKS(kiln_graph_builder_add_condition(builder, &first, &choice.condition));
  WORKS(kiln_graph_builder_add_conditional(builder, &choice, &bodies[0]));
  capture_body(bodies[0], 3);
  kiln_status_t status =
      kiln_graph_builder_add_conditional(builder, &choice, &bodies[1]);
  if (kiln_status_is_ok(status)) {
    capture_body(bodies[1], 4);
    WORKS(kiln_graph_builder_end(builder));
    status = kiln_graph_builder_exec(builder, NULL, &exec);
  }
  if (kiln_status_is_ok(status)) {
    assert_int_equal(hostile_result(&world, exec), 7);
  }
  kiln_status_free(status);
  kiln_graph_exec_release(exec);
  kiln_graph_builder_release(bodies[0]);
  kiln_graph_builder_release(bodies[1]);
  kiln_graph_builder_release(builder);
}

// ---- By hand ----

static kiln_graph_t* choose_by_hand(uint32_t kind, uint32_t bodies,
                                    uint32_t first) {
  kiln_graph_t* graph = NULL;
  kiln_graph_condition_t condition;
  kiln_graph_node_t* node = NULL;
  WORKS(kiln_graph_create(world.device, &graph));
  WORKS(kiln_graph_add_condition(graph, &first, &condition));
  kiln_graph_work_t work = kiln_graph_work_conditional(condition, kind, bodies);
  WORKS(kiln_graph_add(graph, NULL, 0, &work, &node));
  assert_int_equal(kiln_graph_node_inner_count(node), bodies);
  for (uint32_t i = 0; i < bodies; i++) {
    kiln_graph_t* body = NULL;
    WORKS(kiln_graph_node_inner(node, i, &body));
    assert_ptr_equal(kiln_graph_inside(body), node);
    fill_by_hand(body, NULL, 100 + i);
    kiln_graph_release(body);
  }
  return graph;
}

static void test_every_choice(void** state) {
  (void)state;
  static const uint32_t rows[][4] = {
      // kind, bodies, first, result
      {KILN_GRAPH_IF, 1, 0, 0},        {KILN_GRAPH_IF, 1, 5, 100},
      {KILN_GRAPH_IF, 2, 0, 101},      {KILN_GRAPH_IF, 2, 5, 100},
      {KILN_GRAPH_WHILE, 1, 0, 0},     {KILN_GRAPH_SWITCH, 3, 0, 100},
      {KILN_GRAPH_SWITCH, 3, 2, 102},  {KILN_GRAPH_SWITCH, 3, 3, 0},
      {KILN_GRAPH_SWITCH, 3, 1000, 0},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kiln_graph_t* graph = choose_by_hand(rows[i][0], rows[i][1], rows[i][2]);
    kiln_graph_exec_t* exec = NULL;
    WORKS(kiln_graph_exec_create(graph, NULL, &exec));
    assert_int_equal(hostile_result(&world, exec), rows[i][3]);
    kiln_graph_exec_release(exec);
    kiln_graph_release(graph);
  }
}

// What drivers forbid of a graph that chooses: a second executable beside the
// first, a clone, a place in another graph.
static void test_one_executable(void** state) {
  (void)state;
  kiln_graph_t* graph = choose_by_hand(KILN_GRAPH_IF, 1, 1);
  kiln_graph_exec_t* first = NULL;
  kiln_graph_exec_t* second = NULL;
  kiln_graph_t* clone = NULL;
  kiln_graph_t* around = NULL;
  WORKS(kiln_graph_exec_create(graph, NULL, &first));
  REFUSED(UNSUPPORTED, kiln_graph_exec_create(graph, NULL, &second));
  assert_null(second);
  kiln_status_t status = kiln_graph_clone(graph, &clone);
  assert_false(kiln_status_is_ok(status));
  kiln_status_free(status);
  assert_null(clone);
  WORKS(kiln_graph_create(world.device, &around));
  kiln_graph_work_t child = kiln_graph_work_child(graph);
  REFUSED(UNSUPPORTED, kiln_graph_add(around, NULL, 0, &child, NULL));
  assert_int_equal(hostile_result(&world, first), 100);
  kiln_graph_exec_release(first);
  WORKS(kiln_graph_exec_create(graph, NULL, &second));
  kiln_graph_exec_release(second);
  kiln_graph_release(around);
  kiln_graph_release(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
      CASE(test_a_body_after_its_fork),  CASE(test_a_body_after_the_whole),
      CASE(test_a_body_by_hand),         CASE(test_captured_and_then_by_hand),
      CASE(test_a_body_of_nothing),      CASE(test_choices_in_choices),
      CASE(test_the_parent_waits),       CASE(test_conditions_without_sense),
      CASE(test_a_condition_used_twice), CASE(test_every_choice),
      CASE(test_one_executable),
#undef CASE
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
