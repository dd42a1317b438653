// SPDX-License-Identifier: Apache-2.0
//
// tests: graphs of very many nodes: no call may cost more than in proportion to
// their number.
//
// Found in 0.1.0: a node after 20,000 others took 136 ms, as each was compared
// with all others. Times are compared with each other, a long graph's with a
// short one's, so that a slow machine changes nothing.
#define _POSIX_C_SOURCE 200809L  // clock_gettime

#include <stdlib.h>

#include "hostile.h"

enum { SHORT = 1000, LONG = 32000, SOME = 500 };

HOSTILE_WORLD()

static double cpu_seconds(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// A chain; its nodes are the caller's to free.
static kiln_graph_t* chain(uint32_t count, kiln_graph_node_t*** out_nodes) {
  kiln_graph_t* graph = NULL;
  kiln_graph_node_t** nodes = calloc(count, sizeof(*nodes));
  kiln_graph_work_t work = kiln_graph_work_empty();
  assert_non_null(nodes);
  WORKS(kiln_graph_create(world.device, &graph));
  for (uint32_t i = 0; i < count; i++) {
    WORKS(kiln_graph_add(graph, i > 0 ? &nodes[i - 1] : NULL, i > 0, &work,
                         &nodes[i]));
  }
  *out_nodes = nodes;
  return graph;
}

// Seconds that the removal of SOME nodes takes, of a chain so long.
static double seconds_to_remove(uint32_t count) {
  kiln_graph_node_t** nodes = NULL;
  kiln_graph_t* graph = chain(count, &nodes);
  uint32_t left = 0;
  double begun = cpu_seconds();
  for (uint32_t i = 0; i < SOME; i++) WORKS(kiln_graph_node_remove(nodes[i]));
  double took = cpu_seconds() - begun;
  WORKS(kiln_graph_nodes(graph, 0, NULL, &left));
  assert_int_equal(left, count - SOME);
  kiln_graph_release(graph);
  free(nodes);
  return took;
}

static void test_removal(void** state) {
  (void)state;
  double of_short = seconds_to_remove(SHORT);
  double of_long = seconds_to_remove(LONG);
  print_message("%d removals: %.2f ms of %d nodes, %.2f ms of %d\n", SOME,
                of_short * 1e3, SHORT, of_long * 1e3, LONG);
  assert_true(of_long < 10.0 * LONG / SHORT * of_short + 0.05);
}

// Seconds that a node takes that waits for so many.
static double seconds_to_wait_for(uint32_t count) {
  kiln_graph_t* graph = NULL;
  kiln_graph_node_t *root = NULL, *last = NULL;
  kiln_graph_node_t** nodes = calloc(count, sizeof(*nodes));
  kiln_graph_work_t work = kiln_graph_work_empty();
  uint32_t found = 0;
  assert_non_null(nodes);
  WORKS(kiln_graph_create(world.device, &graph));
  WORKS(kiln_graph_add(graph, NULL, 0, &work, &root));
  for (uint32_t i = 0; i < count; i++) {
    WORKS(kiln_graph_add(graph, &root, 1, &work, &nodes[i]));
  }
  double begun = cpu_seconds();
  WORKS(kiln_graph_add(graph, nodes, count, &work, &last));
  double took = cpu_seconds() - begun;
  WORKS(kiln_graph_node_after(root, 0, NULL, &found));
  assert_int_equal(found, count);
  kiln_graph_release(graph);
  free(nodes);
  return took;
}

static void test_a_node_after_many(void** state) {
  (void)state;
  double of_few = seconds_to_wait_for(SHORT);
  double of_many = seconds_to_wait_for(20 * SHORT);
  print_message("a node after %d others: %.2f ms, after %d: %.2f ms\n", SHORT,
                of_few * 1e3, 20 * SHORT, of_many * 1e3);
  assert_true(of_many < 80 * of_few + 0.02);
}

// It runs, is listed and copied, whatever its length.
static void test_a_long_one_runs(void** state) {
  (void)state;
  kiln_graph_node_t** nodes = NULL;
  kiln_graph_t* graph = chain(LONG, &nodes);
  kiln_graph_t* clone = NULL;
  kiln_graph_exec_t* exec = NULL;
  uint32_t count = 0;
  WORKS(kiln_graph_exec_create(graph, NULL, &exec));
  WORKS(kiln_graph_exec_launch(exec, world.stream));
  WORKS(kiln_stream_synchronize(world.stream));
  WORKS(kiln_graph_clone(graph, &clone));
  WORKS(kiln_graph_edges(clone, 0, NULL, &count));
  assert_int_equal(count, LONG - 1);
  kiln_graph_release(clone);
  kiln_graph_exec_release(exec);
  kiln_graph_release(graph);
  free(nodes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
      CASE(test_removal),
      CASE(test_a_node_after_many),
      CASE(test_a_long_one_runs),
#undef CASE
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
