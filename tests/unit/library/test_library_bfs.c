// SPDX-License-Identifier: Apache-2.0
//
// library: breadth-first searches beside a queue in plain C, and how rounds of
// a plan end.
#include "library_kit.h"

#include "csr_graph.h"
#include "says.h"

enum { SOURCES = 3000 };

// `mended` is what plain C is given, which trusts its edges.
static void search_as(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                      const csr_graph_t* graph, const csr_graph_t* mended,
                      const uint32_t* sources, uint32_t source_count,
                      const char* what) {
  uint64_t bytes = (uint64_t)graph->count * 4;
  uint32_t* want = kit_zeroes(graph->count, 4);
  uint32_t* have = kit_zeroes(graph->count, 4);
  uint32_t* queue = kit_zeroes(graph->count, 4);
  csr_levels(mended, sources, source_count, want, queue);
  const kit_argument_t arguments[] = {
      {graph->starts, NULL, bytes + 4},
      {graph->columns, NULL, (uint64_t)graph->edges * 4},
      {sources, NULL, (uint64_t)source_count * 4},
      {NULL, have, bytes}};
  kit_run(kit, plan, arguments, 4, NULL, 0);
  for (uint32_t v = 0; v < graph->count; v++) {
    if (have[v] == want[v]) continue;
    fail_msg("%s of %u: vertex %u has level %d, should have %d", what,
             graph->count, v, (int)have[v], (int)want[v]);
  }
  free(want);
  free(have);
  free(queue);
}

static void search(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                   const csr_graph_t* graph, const uint32_t* sources,
                   uint32_t source_count, const char* what) {
  search_as(kit, plan, graph, graph, sources, source_count, what);
}

// Ways of edges: one way, both ways, and both ways with the plan told so.
static void search_sizes(dispatch_kit_t* kit, uint32_t form, uint32_t way) {
  kiln_library_options_t options = kiln_library_options_default();
  options.count = kSizes[SIZES - 1] + 1;
  options.symmetric = way == 2 ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
  kiln_library_plan_t* plan = kit_plan(kit, "bfs", &options);
  for (uint32_t s = 0; s < SIZES; s++) {
    csr_graph_t graph;
    uint32_t sources[SOURCES];
    csr_make(&graph, form, kSizes[s], way > 0);
    uint64_t seed = s;
    // No vertex, a twin, and many.
    for (uint32_t i = 0; i < SOURCES; i++) {
      sources[i] = (uint32_t)(csr_next(&seed) % (graph.count + UINT64_C(1)));
    }
    sources[69] = UINT32_MAX;
    sources[3] = sources[2];
    uint32_t many = kSizes[s] < 10000 ? 70 : SOURCES;
    search(kit, plan, &graph, sources, many, kCsrForms[form]);
    // One way of a long chain is enough: its rounds are as many as its levels.
    if (form != CSR_CHAIN || kSizes[s] < 100 ||
        (kSizes[s] == 1025 && way == 1)) {
      sources[0] = graph.count / 3;
      search(kit, plan, &graph, sources, 1, kCsrForms[form]);
    }
    search(kit, plan, &graph, sources, 0, kCsrForms[form]);
    csr_free(&graph);
  }
  kiln_library_plan_release(plan);
}

static void test_searches(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t form = 0; form < CSR_FORMS; form++) {
    for (uint32_t way = 0; way < 3; way++) search_sizes(&kit, form, way);
  }
  dispatch_kit_close(&kit);
}

// Whatever the order in which the device does its work.
static void test_orders(void** state) {
  (void)state;
  enum { COUNT = 3000 };
  for (uint64_t seed = 1; seed < 7; seed++) {
    dispatch_kit_t kit;
    dispatch_kit_open_by(&kit, NULL, seed % 2 == 0 ? "latest" : NULL, seed);
    csr_graph_t graph;
    csr_make(&graph, 1 + seed % 2, COUNT, true);
    kiln_library_options_t options = kiln_library_options_default();
    options.count = COUNT + 1;
    options.symmetric = seed % 3 == 0 ? KILN_SWITCH_OFF : KILN_SWITCH_ON;
    kiln_library_plan_t* plan = kit_plan(&kit, "bfs", &options);
    const uint32_t sources[] = {(uint32_t)seed, 2000};
    search(&kit, plan, &graph, sources, 1, "seeded");
    search(&kit, plan, &graph, sources, 2, "seeded");
    kiln_library_plan_release(plan);
    csr_free(&graph);
    dispatch_kit_close(&kit);
  }
}

// Edges that lead nowhere and starts that fall do no harm.
static void test_spoilt(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_options_t options = kiln_library_options_default();
  options.count = 5001;
  kiln_library_plan_t* plan = kit_plan(&kit, "bfs", &options);
  for (uint32_t form = 0; form < CSR_FORMS; form++) {
    csr_graph_t graph, mended;
    csr_make(&graph, form, form == CSR_CHAIN ? 400 : 5000, true);
    csr_spoil(&graph);
    csr_mend(&graph, &mended);
    const uint32_t sources[] = {60, 333};
    search_as(&kit, plan, &graph, &mended, sources, 1, "spoilt");
    search_as(&kit, plan, &graph, &mended, sources, 2, "spoilt");
    csr_free(&graph);
    csr_free(&mended);
  }
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// A star: all edges are those of one vertex. And vertices without edges.
static void test_hub(void** state) {
  (void)state;
  enum { LEAVES = 5000 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  csr_graph_t graph = {LEAVES + 10, 2 * LEAVES, NULL, NULL};
  graph.starts = kit_zeroes(graph.count + 1, 4);
  graph.columns = kit_zeroes(graph.edges, 4);
  for (uint32_t i = 0; i < LEAVES; i++) {
    graph.columns[i] = i + 1;
    graph.columns[LEAVES + i] = 0;
  }
  for (uint32_t v = 1; v <= graph.count; v++) {
    uint32_t end = LEAVES + v - 1;
    graph.starts[v] = end < graph.edges ? end : graph.edges;
  }
  for (uint32_t way = 0; way < 2; way++) {
    kiln_library_options_t options = kiln_library_options_default();
    options.count = graph.count + 1;
    options.symmetric = way == 0 ? KILN_SWITCH_OFF : KILN_SWITCH_ON;
    kiln_library_plan_t* plan = kit_plan(&kit, "bfs", &options);
    static const uint32_t kFrom[] = {0, 7, LEAVES + 3};
    for (uint32_t i = 0; i < 3; i++) {
      search(&kit, plan, &graph, &kFrom[i], 1, "star");
    }
    kiln_library_plan_release(plan);
  }
  csr_free(&graph);
  dispatch_kit_close(&kit);
}

// ---- Rounds ----

// A chain of vertices in memory of the device. one-thread
typedef struct chain_t {
  dispatch_kit_t kit;
  csr_graph_t graph;
  kiln_resident_t residents[4];
  kiln_binding_t bindings[4];
} chain_t;

static void open_chain(chain_t* chain, uint32_t count) {
  dispatch_kit_open(&chain->kit);
  csr_make(&chain->graph, CSR_CHAIN, count, false);
  uint32_t source = 0;
  const void* data[] = {chain->graph.starts, chain->graph.columns, &source,
                        NULL};
  const uint64_t bytes[] = {(count + 1) * UINT64_C(4),
                            chain->graph.edges * UINT64_C(4), 4,
                            count * UINT64_C(4)};
  for (uint32_t i = 0; i < 4; i++) {
    chain->residents[i] = dispatch_kit_resident(&chain->kit, bytes[i], data[i]);
    chain->bindings[i] = kiln_bind_resident(chain->residents[i]);
  }
}

static void close_chain(chain_t* chain) {
  for (uint32_t i = 0; i < 4; i++) {
    assert_null(kiln_resident_free(chain->kit.dispatcher, chain->residents[i]));
  }
  csr_free(&chain->graph);
  dispatch_kit_close(&chain->kit);
}

static kiln_library_plan_t* chain_plan(chain_t* chain, uint32_t rounds) {
  kiln_library_options_t options = kiln_library_options_default();
  options.count = chain->graph.count + 1;
  options.rounds = rounds;
  return kit_plan(&chain->kit, "bfs", &options);
}

static kiln_status_t begin_and_wait(kiln_library_plan_t* plan,
                                    const kiln_binding_t* bindings) {
  kiln_pending_t* pending = NULL;
  assert_null(kiln_library_plan_begin(plan, NULL, bindings, 4, &pending));
  assert_non_null(pending);
  kiln_status_t status = kiln_pending_wait(pending, KILN_PENDING_FOREVER);
  kiln_pending_release(pending);
  return status;
}

// As many rounds as the last vertex needs are enough, one less is told, and
// what those rounds have found is there.
static void test_limit(void** state) {
  (void)state;
  enum { COUNT = 100 };
  chain_t chain;
  open_chain(&chain, COUNT);
  uint32_t levels[COUNT], want[COUNT], queue[COUNT], source = 0, rounds = 1;
  csr_levels(&chain.graph, &source, 1, want, queue);
  kiln_library_plan_t* plan = chain_plan(&chain, 0);
  assert_null(kiln_library_plan_rounds(plan, &rounds));
  assert_int_equal(rounds, 0);
  assert_null(begin_and_wait(plan, chain.bindings));
  assert_null(kiln_library_plan_rounds(plan, &rounds));
  // The last vertex has no edges, so nobody asks it.
  assert_int_equal(rounds, COUNT - 1);
  kiln_library_plan_release(plan);
  plan = chain_plan(&chain, COUNT - 1);
  assert_null(begin_and_wait(plan, chain.bindings));
  kiln_library_plan_release(plan);
  plan = chain_plan(&chain, 40);
  kiln_status_t status = begin_and_wait(plan, chain.bindings);
  assert_says(status, KILN_STATUS_NOT_CONVERGED, "bfs");
  assert_null(kiln_library_plan_rounds(plan, &rounds));
  assert_int_equal(rounds, 40);
  dispatch_kit_fetch(&chain.kit, chain.residents[3], sizeof(levels), levels);
  for (uint32_t v = 0; v < COUNT; v++) {
    assert_int_equal(levels[v], want[v] <= 40 ? want[v] : CSR_UNREACHED);
  }
  // A run that is not asked goes as far.
  assert_null(kiln_library_plan_run(plan, NULL, chain.bindings, 4));
  kiln_library_plan_release(plan);
  close_chain(&chain);
}

// On the buffers of the run before nothing is made; other sources in the same
// buffer are no other buffers.
static void test_again(void** state) {
  (void)state;
  enum { COUNT = 50 };
  chain_t chain;
  open_chain(&chain, COUNT);
  kiln_library_plan_t* plan = chain_plan(&chain, 0);
  assert_null(kiln_library_plan_run(plan, NULL, chain.bindings, 4));
  assert_null(kiln_library_plan_run(plan, NULL, chain.bindings, 4));
  assert_null(kiln_dispatcher_synchronize(chain.kit.dispatcher));
  uint64_t before = chain.kit.watch.total_blocks;
  assert_null(kiln_library_plan_run(plan, NULL, chain.bindings, 4));
  assert_int_equal(chain.kit.watch.total_blocks, before);
  uint32_t levels[COUNT], want[COUNT], queue[COUNT], source = 9;
  assert_null(kiln_resident_upload(chain.kit.dispatcher, NULL,
                                   chain.residents[2], 0, 4, &source));
  assert_null(kiln_library_plan_run(plan, NULL, chain.bindings, 4));
  csr_levels(&chain.graph, &source, 1, want, queue);
  dispatch_kit_fetch(&chain.kit, chain.residents[3], sizeof(levels), levels);
  assert_memory_equal(levels, want, sizeof(want));
  // Other buffers, and then the first ones again.
  kiln_resident_t other =
      dispatch_kit_resident(&chain.kit, sizeof(levels), NULL);
  chain.bindings[3] = kiln_bind_resident(other);
  assert_null(kiln_library_plan_run(plan, NULL, chain.bindings, 4));
  dispatch_kit_fetch(&chain.kit, other, sizeof(levels), levels);
  assert_memory_equal(levels, want, sizeof(want));
  assert_null(kiln_resident_free(chain.kit.dispatcher, other));
  // What was freed is refused, and is no harm to the next run.
  assert_non_null(plan);
  kiln_status_t status = kiln_library_plan_run(plan, NULL, chain.bindings, 4);
  assert_non_null(status);
  kiln_status_free(status);
  chain.bindings[3] = kiln_bind_resident(chain.residents[3]);
  assert_null(kiln_library_plan_run(plan, NULL, chain.bindings, 4));
  kiln_library_plan_release(plan);
  close_chain(&chain);
}

// An argument that is out of its range.
static void assert_refused(kiln_status_t status, const char* what) {
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  assert_non_null(strstr(kiln_status_message(status), what));
  kiln_status_free(status);
}

// A pending of an entry without rounds, and what is refused.
static void test_begin(void** state) {
  (void)state;
  chain_t chain;
  open_chain(&chain, 20);
  kiln_library_options_t options = kiln_library_options_default();
  options.count = 20;
  kiln_library_plan_t* plan = kit_plan(&chain.kit, "scan", &options);
  kiln_binding_t bindings[] = {
      kiln_bind_resident_range(chain.residents[0], 0, 80),
      kiln_bind_resident(chain.residents[3])};
  kiln_pending_t* pending = NULL;
  assert_null(kiln_library_plan_begin(plan, NULL, bindings, 2, &pending));
  assert_null(kiln_pending_wait(pending, KILN_PENDING_FOREVER));
  kiln_pending_release(pending);
  uint32_t rounds = 1;
  assert_null(kiln_library_plan_rounds(plan, &rounds));
  assert_int_equal(rounds, 0);
  kiln_status_t status =
      kiln_library_plan_begin(plan, NULL, bindings, 1, &pending);
  assert_says(status, KILN_STATUS_INVALID_ARGUMENT, "2 bindings");
  assert_null(pending);
  status = kiln_library_plan_begin(plan, NULL, bindings, 2, NULL);
  assert_refused(status, "out_pending");
  status = kiln_library_plan_rounds(NULL, &rounds);
  assert_refused(status, "plan");
  status = kiln_library_plan_rounds(plan, NULL);
  assert_refused(status, "out_rounds");
  kiln_library_plan_release(plan);
  plan = NULL;
  options.rounds = 3;
  status =
      kiln_library_plan_create(chain.kit.dispatcher, "scan", &options, &plan);
  assert_says(status, KILN_STATUS_INVALID_ARGUMENT, "rounds");
  options.rounds = 0;
  options.symmetric = KILN_SWITCH_ON;
  status =
      kiln_library_plan_create(chain.kit.dispatcher, "scan", &options, &plan);
  assert_says(status, KILN_STATUS_INVALID_ARGUMENT, "symmetric");
  options.symmetric = 7;
  status =
      kiln_library_plan_create(chain.kit.dispatcher, "bfs", &options, &plan);
  assert_refused(status, "symmetric");
  close_chain(&chain);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_searches), cmocka_unit_test(test_orders),
      cmocka_unit_test(test_spoilt),   cmocka_unit_test(test_hub),
      cmocka_unit_test(test_limit),    cmocka_unit_test(test_again),
      cmocka_unit_test(test_begin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
