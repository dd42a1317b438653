// SPDX-License-Identifier: Apache-2.0
//
// tests: calls without sense: NULL for each pointer, work that is none, and
// long sequences of random calls on builders, graphs and executables in
// whatever state they are.
//
// What must hold: a status, never a crash or a leak; outputs are NULL where a
// call failed; each owner is told once.
#define _POSIX_C_SOURCE 200809L  // nanosleep

#include <stdatomic.h>
#include <stdlib.h>

#include "hostile.h"

enum { MANY = 12, CALLS = 400 };

HOSTILE_WORLD()

#define NULLS(call) REFUSED(INVALID_ARGUMENT, call)

static void test_null_for_graphs(void** state) {
  (void)state;
  kiln_graph_work_t work = kiln_graph_work_empty();
  kiln_graph_t *graph = NULL, *out_graph = NULL;
  kiln_graph_node_t *node = NULL, *none[1] = {NULL};
  kiln_graph_condition_t condition;
  uint32_t count = 0;
  WORKS(kiln_graph_create(world.device, &graph));
  WORKS(kiln_graph_add(graph, NULL, 0, &work, &node));
  kiln_graph_edge_t edge = kiln_graph_edge(node, NULL);
  NULLS(kiln_graph_create(NULL, &out_graph));
  NULLS(kiln_graph_create(world.device, NULL));
  NULLS(kiln_graph_clone(NULL, &out_graph));
  NULLS(kiln_graph_clone(graph, NULL));
  NULLS(kiln_graph_add(NULL, NULL, 0, &work, NULL));
  NULLS(kiln_graph_add(graph, NULL, 1, &work, NULL));
  NULLS(kiln_graph_add(graph, NULL, 0, NULL, NULL));
  NULLS(kiln_graph_add(graph, none, 1, &work, NULL));
  NULLS(kiln_graph_add_all(graph, NULL, 1, NULL));
  WORKS(kiln_graph_add_all(graph, NULL, 0, &count));
  NULLS(kiln_graph_add_condition(graph, NULL, NULL));
  NULLS(kiln_graph_add_condition(NULL, NULL, &condition));
  NULLS(kiln_graph_connect(graph, NULL, 1));
  WORKS(kiln_graph_connect(graph, NULL, 0));
  NULLS(kiln_graph_connect(NULL, &edge, 1));
  NULLS(kiln_graph_connect(graph, &edge, 1));
  edge = kiln_graph_edge(node, node);
  NULLS(kiln_graph_connect(graph, &edge, 1));
  NULLS(kiln_graph_disconnect(graph, &edge, 1));
  NULLS(kiln_graph_nodes(graph, 1, NULL, &count));
  NULLS(kiln_graph_nodes(graph, 0, NULL, NULL));
  NULLS(kiln_graph_edges(graph, 1, NULL, &count));
  NULLS(kiln_graph_find(graph, NULL, &node));
  NULLS(kiln_graph_find(graph, "", NULL));
  REFUSED(NOT_FOUND, kiln_graph_find(graph, "zz", &node));
  assert_null(node);
  kiln_graph_release(graph);
}

static void test_null_for_nodes_and_executables(void** state) {
  (void)state;
  kiln_graph_work_t work = kiln_graph_work_empty();
  kiln_graph_t *graph = NULL, *out_graph = NULL;
  kiln_graph_node_t* node = NULL;
  kiln_graph_exec_t *exec = NULL, *out_exec = NULL;
  uint32_t count = 0;
  bool is_on = false;
  char name[300];
  memset(name, 'a', sizeof(name) - 1);
  name[sizeof(name) - 1] = 0;
  WORKS(kiln_graph_create(world.device, &graph));
  WORKS(kiln_graph_add(graph, NULL, 0, &work, &node));
  WORKS(kiln_graph_exec_create(graph, NULL, &exec));
  NULLS(kiln_graph_node_set_name(NULL, "a"));
  REFUSED(LIMIT_EXCEEDED, kiln_graph_node_set_name(node, name));
  NULLS(kiln_graph_node_inner(node, 0, &out_graph));
  NULLS(kiln_graph_node_inner(NULL, 0, &out_graph));
  NULLS(kiln_graph_node_before(NULL, 0, NULL, &count));
  NULLS(kiln_graph_node_describe(node, NULL));
  NULLS(kiln_graph_node_set(node, NULL));
  NULLS(kiln_graph_node_remove(NULL));
  NULLS(kiln_graph_exec_create(NULL, NULL, &out_exec));
  NULLS(kiln_graph_exec_create(graph, NULL, NULL));
  NULLS(kiln_graph_exec_launch(NULL, world.stream));
  NULLS(kiln_graph_exec_launch(exec, NULL));
  NULLS(kiln_graph_exec_upload(exec, NULL));
  NULLS(kiln_graph_exec_set(exec, NULL, &work));
  NULLS(kiln_graph_exec_set(exec, node, NULL));
  NULLS(kiln_graph_exec_enable(exec, node, true));
  NULLS(kiln_graph_exec_enable(exec, NULL, true));
  NULLS(kiln_graph_exec_is_enabled(exec, node, &is_on));
  NULLS(kiln_graph_memory_describe(world.device, NULL));
  kiln_graph_release(NULL);
  kiln_graph_exec_release(NULL);
  kiln_graph_builder_release(NULL);
  kiln_graph_exec_release(exec);
  kiln_graph_release(graph);
}

static void test_null_for_builders(void** state) {
  (void)state;
  kiln_graph_builder_t *builder = NULL, *out = NULL;
  WORKS(kiln_graph_builder_create(world.device, NULL, &builder));
  NULLS(kiln_graph_builder_begin(NULL, 0));
  NULLS(kiln_graph_builder_end(NULL));
  NULLS(kiln_graph_builder_close(NULL));
  NULLS(kiln_graph_builder_graph(builder, NULL));
  NULLS(kiln_graph_builder_exec(builder, NULL, NULL));
  NULLS(kiln_graph_builder_split(builder, 2, NULL));
  NULLS(kiln_graph_builder_join(NULL, 2, NULL));
  NULLS(kiln_graph_builder_add_condition(builder, NULL, NULL));
  NULLS(kiln_graph_builder_add_conditional(builder, NULL, &out));
  NULLS(kiln_graph_builder_embed(builder, NULL));
  NULLS(kiln_graph_builder_call_host(builder, NULL));
  assert_null(out);
  kiln_graph_builder_release(builder);
}

static void test_work_that_is_none(void** state) {
  (void)state;
  kiln_graph_t* graph = NULL;
  kiln_launch_t* bare = NULL;  // its arguments were never given
  kiln_graph_memory_op_t ops[1] = {{world.buffer, 0, 7, 0, 2}};
  WORKS(kiln_graph_create(world.device, &graph));
  WORKS(kiln_launch_create(world.add, NULL, &bare));
  kiln_graph_work_t other_kind = kiln_graph_work_empty();
  kiln_graph_work_t reserved = kiln_graph_work_empty();
  other_kind.kind = 77;
  reserved.reserved = 9;
  const kiln_graph_work_t rows[] = {
      other_kind,
      reserved,
      kiln_graph_work_launch(NULL),
      kiln_graph_work_child(NULL),
      kiln_graph_work_child(graph),
      kiln_graph_work_fill(world.buffer, 0, 1, 1, 3),
      kiln_graph_work_fill(world.buffer, 2, 1, 1, 4),
      kiln_graph_work_record(NULL),
      kiln_graph_work_memory_ops(ops, 1),
      kiln_graph_work_memory_ops(ops, 257),
      kiln_graph_work_fill(world.buffer, 0, UINT64_MAX / 2, 1, 4),
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    kiln_graph_node_t* node = NULL;
    REFUSED(INVALID_ARGUMENT, kiln_graph_add(graph, NULL, 0, &rows[i], &node));
    assert_null(node);
  }
  kiln_graph_work_t work =
      kiln_graph_work_move(kiln_graph_place_buffer(world.buffer, 4000),
                           kiln_graph_place_buffer(world.buffer, 0), 200);
  REFUSED(OUT_OF_RANGE, kiln_graph_add(graph, NULL, 0, &work, NULL));
  work = kiln_graph_work_launch(bare);
  REFUSED(INVALID_STATE, kiln_graph_add(graph, NULL, 0, &work, NULL));
  uint32_t count = 0;
  WORKS(kiln_graph_nodes(graph, 0, NULL, &count));
  assert_int_equal(count, 0);
  kiln_launch_release(bare);
  kiln_graph_release(graph);
}

// ---- Random calls ----

// What there is at the moment. one-thread
typedef struct pile_t {
  uint64_t seed;
  kiln_graph_builder_t* builders[MANY];
  kiln_graph_t* graphs[MANY];
  kiln_graph_exec_t* execs[MANY];
  kiln_stream_t* streams[4];
  kiln_launch_t* launches[2];
  kiln_event_t* event;
  int given;
} pile_t;

static atomic_int told;

static void tell(void* user) {
  (void)user;
  atomic_fetch_add(&told, 1);
}

static void nothing(void* user) {
  (void)user;
}

static uint32_t below(pile_t* pile, uint32_t limit) {
  pile->seed = pile->seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(pile->seed >> 33) % limit;
}

static bool took(kiln_status_t status) {
  kiln_status_code_t code = kiln_status_code(status);
  assert_int_not_equal(code, KILN_STATUS_INTERNAL);
  assert_int_not_equal(code, KILN_STATUS_DEVICE_LOST);
  kiln_status_free(status);
  return code == KILN_STATUS_OK;
}

static void keep_builder(pile_t* pile, kiln_graph_builder_t* builder) {
  if (builder == NULL) return;
  uint32_t at = below(pile, MANY);
  kiln_graph_builder_release(pile->builders[at]);
  pile->builders[at] = builder;
}

static void keep_graph(pile_t* pile, kiln_graph_t* graph) {
  if (graph == NULL) return;
  uint32_t at = below(pile, MANY);
  kiln_graph_release(pile->graphs[at]);
  pile->graphs[at] = graph;
}

static void keep_exec(pile_t* pile, kiln_graph_exec_t* exec) {
  if (exec == NULL) return;
  uint32_t at = below(pile, MANY);
  kiln_graph_exec_release(pile->execs[at]);
  pile->execs[at] = exec;
}

static kiln_graph_node_t* any_node(pile_t* pile, kiln_graph_t* graph) {
  kiln_graph_node_t* nodes[64];
  uint32_t count = 0;
  if (!took(kiln_graph_nodes(graph, 64, nodes, &count)) || count == 0) {
    return NULL;
  }
  return nodes[below(pile, count < 64 ? count : 64)];
}

static kiln_graph_work_t any_work(pile_t* pile) {
  kiln_graph_work_t host = kiln_graph_work_host(nothing, NULL);
  kiln_graph_t* child = pile->graphs[below(pile, MANY)];
  host.as.host.owner.release = tell;
  switch (below(pile, 8)) {
    case 0:
      return kiln_graph_work_launch(pile->launches[below(pile, 2)]);
    case 1:
      return kiln_graph_work_fill(world.buffer, 4 * below(pile, 4),
                                  below(pile, 64), below(pile, 9), 4);
    case 2:
      return host;
    case 3:
      return kiln_graph_work_record(pile->event);
    case 4:
      return kiln_graph_work_wait(pile->event);
    case 5:
      return kiln_graph_work_move(kiln_graph_place_buffer(world.buffer, 0),
                                  kiln_graph_place_buffer(world.buffer, 2048),
                                  below(pile, 128));
    case 6:
      if (child != NULL) return kiln_graph_work_child(child);
      return kiln_graph_work_empty();
    default:
      return kiln_graph_work_empty();
  }
}

static void count_owner(pile_t* pile, const kiln_graph_work_t* work,
                        bool is_taken) {
  if (is_taken && work->kind == KILN_GRAPH_HOST) pile->given++;
}

static void new_builder(pile_t* pile) {
  kiln_graph_builder_options_t options = kiln_graph_builder_options_default();
  kiln_graph_builder_t* builder = NULL;
  if (below(pile, 2) > 0) options.stream = pile->streams[below(pile, 4)];
  (void)took(kiln_graph_builder_create(world.device, &options, &builder));
  keep_builder(pile, builder);
}

static void add_choice(pile_t* pile, kiln_graph_builder_t* builder) {
  kiln_graph_builder_t* bodies[4] = {NULL};
  kiln_graph_conditional_t choice;
  uint32_t first = below(pile, 3);
  choice.kind = below(pile, 2) * KILN_GRAPH_SWITCH;  // no endless loop
  choice.bodies = 1 + below(pile, 3);
  if (!took(kiln_graph_builder_add_condition(builder, &first,
                                             &choice.condition))) {
    return;
  }
  bool is_taken =
      took(kiln_graph_builder_add_conditional(builder, &choice, bodies));
  for (int i = 0; i < 4; i++) {
    assert_true(is_taken || bodies[i] == NULL);
    keep_builder(pile, bodies[i]);
  }
}

static void call_builder(pile_t* pile, kiln_graph_builder_t* builder) {
  kiln_graph_builder_t* some[4] = {NULL};
  kiln_graph_t* graph = pile->graphs[below(pile, MANY)];
  kiln_graph_t* out_graph = NULL;
  kiln_graph_exec_t* out_exec = NULL;
  kiln_stream_t* stream = NULL;
  kiln_graph_host_t call = {nothing, NULL, 0, {tell, NULL}};
  switch (below(pile, 12)) {
    case 0:
    case 1:
      (void)took(kiln_graph_builder_begin(builder, below(pile, 3)));
      break;
    case 2:
      (void)took(kiln_graph_builder_end(builder));
      break;
    case 3:
      if (below(pile, 3) == 0) (void)took(kiln_graph_builder_close(builder));
      break;
    case 4:
      (void)took(kiln_graph_builder_split(builder, 2 + below(pile, 2), some));
      for (int i = 0; i < 3; i++) keep_builder(pile, some[i]);
      break;
    case 5:
      for (int i = 0; i < 4; i++) some[i] = pile->builders[below(pile, MANY)];
      (void)took(kiln_graph_builder_join(some, 2 + below(pile, 3), NULL));
      break;
    case 6:
      add_choice(pile, builder);
      break;
    case 7:
      if (graph != NULL) (void)took(kiln_graph_builder_embed(builder, graph));
      break;
    case 8:
      if (took(kiln_graph_builder_call_host(builder, &call))) pile->given++;
      break;
    case 9:
      if (took(kiln_graph_builder_stream(builder, &stream))) {
        (void)took(hostile_run(world.add, stream, world.buffer, 1));
      }
      break;
    case 10:
      (void)took(kiln_graph_builder_graph(builder, &out_graph));
      keep_graph(pile, out_graph);
      break;
    default:
      (void)took(kiln_graph_builder_exec(builder, NULL, &out_exec));
      keep_exec(pile, out_exec);
      break;
  }
}

static void call_graph(pile_t* pile, kiln_graph_t* graph) {
  kiln_graph_exec_t* exec = pile->execs[below(pile, MANY)];
  kiln_graph_node_t* node = any_node(pile, graph);
  kiln_graph_node_t* other = any_node(pile, graph);
  kiln_graph_work_t work = any_work(pile);
  kiln_graph_edge_t edge = kiln_graph_edge(node, other);
  kiln_graph_t* out_graph = NULL;
  kiln_graph_exec_t* out_exec = NULL;
  switch (below(pile, 9)) {
    case 0:
    case 1:
      count_owner(
          pile, &work,
          took(kiln_graph_add(graph, &node, node != NULL, &work, NULL)));
      break;
    case 2:
      if (node != NULL) (void)took(kiln_graph_node_remove(node));
      break;
    case 3:
      if (node == NULL) break;
      count_owner(pile, &work, took(kiln_graph_node_set(node, &work)));
      break;
    case 4:
      if (node == NULL) break;
      (void)took(kiln_graph_node_inner(node, below(pile, 2), &out_graph));
      keep_graph(pile, out_graph);
      break;
    case 5:
      (void)took(kiln_graph_exec_create(graph, NULL, &out_exec));
      keep_exec(pile, out_exec);
      break;
    case 6:
      (void)took(kiln_graph_clone(graph, &out_graph));
      keep_graph(pile, out_graph);
      break;
    case 7:
      if (node == NULL || other == NULL) break;
      (void)took(below(pile, 3) > 0 ? kiln_graph_connect(graph, &edge, 1)
                                    : kiln_graph_disconnect(graph, &edge, 1));
      break;
    default:
      if (exec == NULL) break;
      if (below(pile, 2) > 0) {
        (void)took(kiln_graph_exec_update(exec, graph, NULL));
      }
      if (node != NULL) {
        count_owner(pile, &work, took(kiln_graph_exec_set(exec, node, &work)));
      }
      break;
  }
}

static void drop_one(pile_t* pile) {
  uint32_t at = below(pile, MANY);
  switch (below(pile, 4)) {
    case 0:
      kiln_graph_builder_release(pile->builders[at]);
      pile->builders[at] = NULL;
      break;
    case 1:
      kiln_graph_release(pile->graphs[at]);
      pile->graphs[at] = NULL;
      break;
    case 2:
      kiln_graph_exec_release(pile->execs[at]);
      pile->execs[at] = NULL;
      break;
    default:
      (void)took(kiln_stream_synchronize(pile->streams[at % 4]));
      break;
  }
}

static void call_something(pile_t* pile) {
  uint32_t at = below(pile, MANY);
  kiln_graph_t* graph = NULL;
  switch (below(pile, 8)) {
    case 0:
      new_builder(pile);
      break;
    case 1:
      (void)took(kiln_graph_create(world.device, &graph));
      keep_graph(pile, graph);
      break;
    case 2:
      if (pile->execs[at] != NULL) {
        (void)took(
            kiln_graph_exec_launch(pile->execs[at], pile->streams[at % 4]));
      }
      break;
    case 3:
      drop_one(pile);
      break;
    case 4:
      if (pile->graphs[at] != NULL) call_graph(pile, pile->graphs[at]);
      break;
    default:
      if (pile->builders[at] != NULL) call_builder(pile, pile->builders[at]);
      break;
  }
}

static void end_pile(pile_t* pile) {
  for (int i = 0; i < MANY; i++) {
    kiln_graph_builder_release(pile->builders[i]);
    kiln_graph_release(pile->graphs[i]);
    kiln_graph_exec_release(pile->execs[i]);
  }
  for (int i = 0; i < 4; i++) {
    WORKS(kiln_stream_synchronize(pile->streams[i]));
    kiln_stream_release(pile->streams[i]);
  }
  kiln_launch_release(pile->launches[0]);
  kiln_launch_release(pile->launches[1]);
  kiln_event_release(pile->event);
}

// So many seeds are tried; KILN_TEST_SEED moves on to others.
static void test_random_calls(void** state) {
  (void)state;
  const char* given_seed = getenv("KILN_TEST_SEED");
  const char* given_count = getenv("KILN_TEST_CALLS");
  uint64_t base = given_seed == NULL ? 0 : strtoull(given_seed, NULL, 10);
  int seeds = given_count == NULL ? 20 : atoi(given_count);
  for (int i = 0; i < seeds; i++) {
    pile_t pile = {0};
    pile.seed = (base * 1000 + (uint64_t)i + 1) * 7919;
    atomic_store(&told, 0);
    for (int k = 0; k < 4; k++) {
      WORKS(kiln_stream_create(world.device, NULL, &pile.streams[k]));
    }
    pile.launches[0] = hostile_launch(world.add, world.buffer, 1);
    pile.launches[1] = hostile_launch(world.mul, world.buffer, 2);
    WORKS(kiln_event_create(world.device, NULL, &pile.event));
    for (int k = 0; k < CALLS; k++) call_something(&pile);
    end_pile(&pile);
    for (int k = 0; k < 2000 && atomic_load(&told) < pile.given; k++) {
      hostile_nap(2000);
    }
    assert_int_equal(atomic_load(&told), pile.given);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
      CASE(test_null_for_graphs),   CASE(test_null_for_nodes_and_executables),
      CASE(test_null_for_builders), CASE(test_work_that_is_none),
      CASE(test_random_calls),
#undef CASE
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
