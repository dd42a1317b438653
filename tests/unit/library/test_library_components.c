// SPDX-License-Identifier: Apache-2.0
//
// library: connected components beside trees in plain C.
#include "library_kit.h"

#include "csr_graph.h"
#include "says.h"

// `mended` is what plain C is given, which trusts its edges.
static void label_as(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                     const csr_graph_t* graph, const csr_graph_t* mended,
                     const char* what) {
  uint64_t bytes = (uint64_t)graph->count * 4;
  uint32_t* want = kit_zeroes(graph->count, 4);
  uint32_t* have = kit_zeroes(graph->count, 4);
  uint32_t count = csr_components(mended, want), told = UINT32_MAX;
  const kit_argument_t arguments[] = {
      {graph->starts, NULL, bytes + 4},
      {graph->columns, NULL, (uint64_t)graph->edges * 4},
      {NULL, have, bytes},
      {NULL, &told, 4}};
  kit_run(kit, plan, arguments, 4, NULL, 0);
  for (uint32_t v = 0; v < graph->count; v++) {
    if (have[v] == want[v]) continue;
    fail_msg("%s of %u: vertex %u is of %u, should be of %u", what,
             graph->count, v, have[v], want[v]);
  }
  assert_int_equal(told, count);
  free(want);
  free(have);
}

static void label(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                  const csr_graph_t* graph, const char* what) {
  label_as(kit, plan, graph, graph, what);
}

static kiln_library_plan_t* plan_of(dispatch_kit_t* kit, uint64_t count,
                                    bool symmetric) {
  kiln_library_options_t options = kiln_library_options_default();
  options.count = count;
  options.symmetric = symmetric ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
  return kit_plan(kit, "components", &options);
}

// Ways of edges: one way, both ways, and both ways with the plan told so.
static void test_forms(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t way = 0; way < 3; way++) {
    kiln_library_plan_t* plan = plan_of(&kit, kSizes[SIZES - 1] + 1, way == 2);
    for (uint32_t s = 0; s < SIZES * CSR_FORMS; s++) {
      csr_graph_t graph;
      csr_make(&graph, s % CSR_FORMS, kSizes[s / CSR_FORMS], way > 0);
      label(&kit, plan, &graph, kCsrForms[s % CSR_FORMS]);
      csr_free(&graph);
    }
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

// Edges that lead nowhere and starts that fall do no harm.
static void test_spoilt(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = plan_of(&kit, 5001, false);
  for (uint32_t s = 0; s < 2 * CSR_FORMS; s++) {
    csr_graph_t graph, mended;
    csr_make(&graph, s / 2, 5000, s % 2 == 1);
    csr_spoil(&graph);
    csr_mend(&graph, &mended);
    label_as(&kit, plan, &graph, &mended, "spoilt");
    csr_free(&graph);
    csr_free(&mended);
  }
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// Rings of vertices that are far from each other, `rings` of them, each edge
// both ways; what is left over stands alone.
static void make_rings(csr_graph_t* graph, uint32_t count, uint32_t rings) {
  uint32_t size = count / rings;
  graph->count = count + 5;
  graph->edges = size < 2 ? 0 : 2 * size * rings;
  graph->starts = kit_zeroes(graph->count + 1, 4);
  graph->columns = kit_zeroes(graph->edges, 4);
  uint32_t e = 0;
  for (uint32_t v = 0; v < graph->count; v++) {
    uint32_t ring = v % rings, at = v / rings;
    if (size > 1 && at < size && v < size * rings) {
      graph->columns[e++] = (at + 1) % size * rings + ring;
      graph->columns[e++] = (at + size - 1) % size * rings + ring;
    }
    graph->starts[v + 1] = e;
  }
}

static void test_rings(void** state) {
  (void)state;
  static const uint32_t kRings[] = {1, 2, 7, 100, 999, 2000};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t way = 0; way < 2; way++) {
    kiln_library_plan_t* plan = plan_of(&kit, 5000, way == 1);
    for (uint32_t i = 0; i < 6; i++) {
      csr_graph_t graph;
      make_rings(&graph, 4000, kRings[i]);
      label(&kit, plan, &graph, "rings");
      csr_free(&graph);
    }
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

// Whatever the order in which the device does its work.
static void test_orders(void** state) {
  (void)state;
  enum { COUNT = 5000 };
  for (uint64_t seed = 1; seed < 9; seed++) {
    dispatch_kit_t kit;
    dispatch_kit_open_by(&kit, NULL, seed % 2 == 0 ? "latest" : NULL, seed);
    kiln_library_plan_t* plan = plan_of(&kit, COUNT + 1, seed % 3 == 0);
    for (uint32_t form = 0; form < CSR_FORMS; form++) {
      csr_graph_t graph;
      csr_make(&graph, form, COUNT, true);
      label(&kit, plan, &graph, "seeded");
      csr_free(&graph);
    }
    kiln_library_plan_release(plan);
    dispatch_kit_close(&kit);
  }
}

// One round makes of a graph what it can, and says that it was not the last.
static void test_limit(void** state) {
  (void)state;
  enum { COUNT = 3000 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  csr_graph_t graph;
  csr_make(&graph, CSR_RMAT, COUNT, false);
  kiln_resident_t residents[] = {
      dispatch_kit_resident(&kit, (COUNT + 1) * 4, graph.starts),
      dispatch_kit_resident(&kit, graph.edges * UINT64_C(4), graph.columns),
      dispatch_kit_resident(&kit, COUNT * 4, NULL),
      dispatch_kit_resident(&kit, 4, NULL)};
  kiln_binding_t bindings[4];
  for (uint32_t i = 0; i < 4; i++) {
    bindings[i] = kiln_bind_resident(residents[i]);
  }
  for (uint32_t limit = 0; limit < 2; limit++) {
    kiln_library_options_t options = kiln_library_options_default();
    options.count = COUNT + 1;
    options.rounds = limit;
    kiln_library_plan_t* plan = kit_plan(&kit, "components", &options);
    kiln_pending_t* pending = NULL;
    assert_null(kiln_library_plan_begin(plan, NULL, bindings, 4, &pending));
    kiln_status_t status = kiln_pending_wait(pending, KILN_PENDING_FOREVER);
    kiln_pending_release(pending);
    uint32_t rounds = 0;
    assert_null(kiln_library_plan_rounds(plan, &rounds));
    if (limit == 0) {
      assert_null(status);
      // One to make trees one, one to see that there are none left.
      assert_in_range(rounds, 2, 4);
    } else {
      assert_says(status, KILN_STATUS_NOT_CONVERGED, "components");
      assert_int_equal(rounds, 1);
    }
    kiln_library_plan_release(plan);
  }
  for (uint32_t i = 0; i < 4; i++) {
    assert_null(kiln_resident_free(kit.dispatcher, residents[i]));
  }
  csr_free(&graph);
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_forms), cmocka_unit_test(test_spoilt),
      cmocka_unit_test(test_rings), cmocka_unit_test(test_orders),
      cmocka_unit_test(test_limit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
