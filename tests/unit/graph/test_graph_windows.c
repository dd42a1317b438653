// SPDX-License-Identifier: Apache-2.0
//
// graph: what fails half-way: each window in which something is made and not
// yet anybody's. Afterwards the stream can be captured again, nothing is left,
// and nothing is ended twice.
#include "graph_kit.h"

static graph_kit_t kit;
static kiln_cuda_table_t below;
static kiln_graph_builder_t* builder;

static void nothing(void* user) {
  (void)user;
}

// What fails next, and what was asked. one-thread
typedef struct plan_t {
  bool info;         // cuStreamGetCaptureInfo, either way
  bool order;        // cuStreamUpdateCaptureDependencies
  bool end;          // cuStreamEndCapture ends, and says it was invalidated
  uint32_t wait;     // the so manieth cuStreamWaitEvent from now on
  bool instantiate;  // says OK and gives a reason
  uint32_t removed;  // nodes
  uint32_t execs_destroyed;
  bool null_status;  // a place that must be there was not
  bool tail;         // the stream has a last node
  bool invalidated;  // what cuStreamIsCapturing answers
} plan_t;

static plan_t plan;

static kiln_cu_result_t info(kiln_cu_stream_t stream,
                             kiln_cu_capture_status_t* status, uint64_t* id,
                             kiln_cu_graph_t* graph,
                             const kiln_cu_graph_node_t** nodes,
                             size_t* count) {
  if (status == NULL) plan.null_status = true;
  if (plan.info) return KILN_CU_ERROR_UNKNOWN;
  return below.cuStreamGetCaptureInfo(stream, status, id, graph, nodes, count);
}

static kiln_cu_result_t info_3(kiln_cu_stream_t stream,
                               kiln_cu_capture_status_t* status, uint64_t* id,
                               kiln_cu_graph_t* graph,
                               const kiln_cu_graph_node_t** nodes,
                               const kiln_cu_graph_edge_t** edges,
                               size_t* count) {
  static const kiln_cu_graph_node_t last = (kiln_cu_graph_node_t)0x7770;
  if (status == NULL) plan.null_status = true;
  if (plan.info) return KILN_CU_ERROR_UNKNOWN;
  kiln_cu_result_t result = below.cuStreamGetCaptureInfo_v3(
      stream, status, id, graph, nodes, edges, count);
  if (plan.tail && count != NULL) {
    *nodes = &last;
    *count = 1;
  }
  return result;
}

static kiln_cu_result_t is_capturing(kiln_cu_stream_t stream,
                                     kiln_cu_capture_status_t* status) {
  kiln_cu_result_t result = below.cuStreamIsCapturing(stream, status);
  if (plan.invalidated) *status = KILN_CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  return result;
}

static kiln_cu_result_t order(kiln_cu_stream_t stream,
                              kiln_cu_graph_node_t* nodes, size_t count,
                              unsigned int flags) {
  if (plan.order) return KILN_CU_ERROR_UNKNOWN;
  return below.cuStreamUpdateCaptureDependencies(stream, nodes, count, flags);
}

static kiln_cu_result_t end(kiln_cu_stream_t stream, kiln_cu_graph_t* graph) {
  if (graph == NULL) {
    plan.null_status = true;
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  kiln_cu_result_t result = below.cuStreamEndCapture(stream, graph);
  if (!plan.end || result != KILN_CU_SUCCESS) return result;
  (void)below.cuGraphDestroy(*graph);
  *graph = NULL;
  return KILN_CU_ERROR_STREAM_CAPTURE_INVALIDATED;
}

static kiln_cu_result_t wait(kiln_cu_stream_t stream, kiln_cu_event_t event,
                             unsigned int flags) {
  if (plan.wait > 0 && --plan.wait == 0) return KILN_CU_ERROR_UNKNOWN;
  return below.cuStreamWaitEvent(stream, event, flags);
}

static kiln_cu_result_t remove_node(kiln_cu_graph_node_t node) {
  plan.removed++;
  return below.cuGraphDestroyNode(node);
}

static kiln_cu_result_t instantiate(kiln_cu_graph_exec_t* exec,
                                    kiln_cu_graph_t graph,
                                    kiln_cu_graph_instantiate_t* params) {
  if (!plan.instantiate) {
    return below.cuGraphInstantiateWithParams(exec, graph, params);
  }
  *exec = (kiln_cu_graph_exec_t)0x6660;
  params->result = KILN_CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t destroy_exec(kiln_cu_graph_exec_t exec) {
  plan.execs_destroyed++;
  return below.cuGraphExecDestroy(exec);
}

static kiln_cu_result_t add_node(kiln_cu_graph_node_t* node,
                                 kiln_cu_graph_t graph,
                                 const kiln_cu_graph_node_t* after,
                                 const kiln_cu_graph_edge_t* edges,
                                 size_t count,
                                 kiln_cu_graph_node_params_t* params) {
  static kiln_cu_graph_t bodies[2] = {(kiln_cu_graph_t)0x5550,
                                      (kiln_cu_graph_t)0x5560};
  if (params->type != KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    return below.cuGraphAddNode(node, graph, after, edges, count, params);
  }
  *node = (kiln_cu_graph_node_t)0x4440;
  params->of.conditional.graphs = bodies;
  return KILN_CU_SUCCESS;
}

static void tweak(kiln_cuda_table_t* table) {
  below = *table;
  KILNI_CUDA_SET(table, cuStreamGetCaptureInfo, info);
  KILNI_CUDA_SET(table, cuStreamGetCaptureInfo_v3, info_3);
  KILNI_CUDA_SET(table, cuStreamIsCapturing, is_capturing);
  KILNI_CUDA_SET(table, cuStreamUpdateCaptureDependencies, order);
  KILNI_CUDA_SET(table, cuStreamEndCapture, end);
  KILNI_CUDA_SET(table, cuStreamWaitEvent, wait);
  KILNI_CUDA_SET(table, cuGraphDestroyNode, remove_node);
  KILNI_CUDA_SET(table, cuGraphInstantiateWithParams, instantiate);
  KILNI_CUDA_SET(table, cuGraphExecDestroy, destroy_exec);
  KILNI_CUDA_SET(table, cuGraphAddNode, add_node);
}

static int setup(void** state) {
  (void)state;
  memset(&plan, 0, sizeof(plan));
  graph_kit_open_with(&kit, false, tweak);
  assert_null(kiln_graph_builder_create(kit.device, NULL, &builder));
  return 0;
}

static int teardown(void** state) {
  (void)state;
  bool null_status = plan.null_status;
  memset(&plan, 0, sizeof(plan));
  kiln_graph_builder_release(builder);
  // The stream is usable afterwards.
  kiln_graph_builder_t* next = NULL;
  assert_null(kiln_graph_builder_create(kit.device, NULL, &next));
  assert_null(kiln_graph_builder_begin(next, 0));
  assert_null(kiln_graph_builder_end(next));
  kiln_graph_builder_release(next);
  graph_kit_close(&kit);
  assert_false(null_status);
  return 0;
}

static void failed(kiln_status_t status, const char* text) {
  char said[2048];
  assert_false(kiln_status_is_ok(status));
  kiln_status_format(status, sizeof(said), said, NULL);
  if (strstr(said, text) == NULL) fail_msg("no \"%s\" in: %s", text, said);
  kiln_status_free(status);
}

static void begin(void) {
  assert_null(kiln_graph_builder_begin(builder, 0));
}

static void must_be(uint32_t state) {
  assert_int_equal(kiln_graph_builder_state(builder), state);
}

// ---- Begin and end ----

static void test_begun_and_nothing_known(void** state) {
  (void)state;
  plan.info = true;
  failed(kiln_graph_builder_begin(builder, 0), "beginning a capture");
  must_be(KILN_GRAPH_BUILDER_NOT_STARTED);
  plan.info = false;
  begin();
  assert_null(kiln_graph_builder_end(builder));
  must_be(KILN_GRAPH_BUILDER_ENDED);
}

static void test_places_are_always_given(void** state) {
  (void)state;
  begin();
  assert_null(kiln_graph_builder_end(builder));
  assert_false(plan.null_status);
}

static void test_an_invalidated_end_destroys_nothing(void** state) {
  (void)state;
  begin();
  plan.end = true;
  failed(kiln_graph_builder_end(builder), "discarded its graph");
  must_be(KILN_GRAPH_BUILDER_INVALIDATED);
  kiln_graph_builder_release(builder);
  builder = NULL;
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 0);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_GRAPH), 0);
}

// As where another thread than the first one ends.
static void test_an_end_that_is_refused(void** state) {
  (void)state;
  begin();
  kilni_table_cuda_fault_arm(&kit.table, 1, KILNI_FAULT_ONCE,
                             KILN_CU_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  failed(kiln_graph_builder_end(builder), "the capture goes on");
  (void)kilni_table_cuda_fault_disarm(&kit.table);
  must_be(KILN_GRAPH_BUILDER_CAPTURING);
  assert_null(kiln_graph_builder_end(builder));
}

static void test_a_close_throws_away(void** state) {
  (void)state;
  begin();
  assert_null(kiln_graph_builder_close(builder));
  must_be(KILN_GRAPH_BUILDER_CLOSED);
  assert_null(kiln_graph_builder_close(builder));
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_GRAPH), 0);
}

static void test_a_close_that_fails(void** state) {
  (void)state;
  begin();
  kilni_table_cuda_fault_arm(&kit.table, 1, KILNI_FAULT_FROM,
                             KILN_CU_ERROR_UNKNOWN);
  kiln_status_t status = kiln_graph_builder_close(builder);
  (void)kilni_table_cuda_fault_disarm(&kit.table);
  // Closed all the same, and told behind that.
  must_be(KILN_GRAPH_BUILDER_CLOSED);
  failed(status, "closing a graph builder");
}

static kilni_device_pool_counts_t pooled_streams(void) {
  return kilni_device_pools_counts(kit.device, KILNI_POOL_STREAMS);
}

// A capture that its driver goes on with has its forks' streams too: nobody
// gets one of them again.
static void test_a_close_that_is_refused(void** state) {
  (void)state;
  kiln_graph_builder_t* forks[2];
  begin();
  assert_null(kiln_graph_builder_split(builder, 3, forks));
  kilni_table_cuda_fault_arm(&kit.table, 1, KILNI_FAULT_ONCE,
                             KILN_CU_ERROR_INVALID_VALUE);
  kiln_status_t status = kiln_graph_builder_close(builder);
  (void)kilni_table_cuda_fault_disarm(&kit.table);
  failed(status, "closing a graph builder");
  must_be(KILN_GRAPH_BUILDER_CLOSED);
  for (int i = 0; i < 2; i++) kiln_graph_builder_release(forks[i]);
  assert_int_equal(pooled_streams().in_use, 0);
  assert_int_equal(pooled_streams().kept, 0);
}

// On another thread than began it the capture goes on, and can be closed later.
static void test_a_close_on_a_wrong_thread(void** state) {
  (void)state;
  begin();
  kilni_table_cuda_fault_arm(&kit.table, 1, KILNI_FAULT_ONCE,
                             KILN_CU_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  kiln_status_t status = kiln_graph_builder_close(builder);
  (void)kilni_table_cuda_fault_disarm(&kit.table);
  failed(status, "the capture goes on");
  must_be(KILN_GRAPH_BUILDER_CAPTURING);
  assert_null(kiln_graph_builder_close(builder));
  must_be(KILN_GRAPH_BUILDER_CLOSED);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_GRAPH), 0);
}

// A body that was invalidated is not ended, so that its forks stay captured.
static void test_an_invalidated_body_with_a_fork(void** state) {
  (void)state;
  kiln_graph_builder_t* fork = NULL;
  kiln_graph_builder_t* body = NULL;
  kiln_graph_conditional_t choice = {{0, NULL}, KILN_GRAPH_WHILE, 1};
  begin();
  assert_null(
      kiln_graph_builder_add_condition(builder, NULL, &choice.condition));
  assert_null(kiln_graph_builder_add_conditional(builder, &choice, &body));
  assert_null(kiln_graph_builder_begin(body, 0));
  assert_null(kiln_graph_builder_split(body, 2, &fork));
  plan.invalidated = true;
  failed(kiln_graph_builder_end(body), "it is not ended");
  plan.invalidated = false;
  kiln_graph_builder_release(fork);
  kiln_graph_builder_release(body);
  assert_null(kiln_graph_builder_end(builder));
  kiln_graph_builder_release(builder);
  builder = NULL;
  assert_int_equal(pooled_streams().in_use, 0);
  assert_int_equal(pooled_streams().kept, 1);
  kit.abandoned = 2;
}

static void test_released_while_capturing(void** state) {
  (void)state;
  begin();
  kiln_graph_builder_release(builder);
  builder = NULL;
  assert_int_equal(pooled_streams().in_use, 0);
  assert_int_equal(pooled_streams().kept, 1);
}

static void test_half_a_builder(void** state) {
  (void)state;
  kiln_graph_builder_t* other = NULL;
  kilni_table_cuda_fault_arm(&kit.table, 1, KILNI_FAULT_ONCE,
                             KILN_CU_ERROR_OUT_OF_MEMORY);
  kiln_status_t status = kiln_graph_builder_create(kit.device, NULL, &other);
  (void)kilni_table_cuda_fault_disarm(&kit.table);
  assert_false(kiln_status_is_ok(status));
  kiln_status_free(status);
  assert_null(other);
}

// ---- Split and join ----

static void test_half_a_split(void** state) {
  (void)state;
  kiln_graph_builder_t* forks[3] = {NULL, NULL, NULL};
  begin();
  plan.wait = 3;
  failed(kiln_graph_builder_split(builder, 4, forks), "splitting");
  for (int i = 0; i < 3; i++) assert_null(forks[i]);
  must_be(KILN_GRAPH_BUILDER_CAPTURING);
  // What was made was joined again: the capture is not spoiled.
  kiln_status_t status = kiln_graph_builder_end(builder);
  assert_null(status);
}

static void test_a_join_that_fails(void** state) {
  (void)state;
  kiln_graph_builder_t* forks[2];
  begin();
  assert_null(kiln_graph_builder_split(builder, 3, forks));
  kiln_graph_builder_t* all[] = {builder, forks[0], forks[1]};
  plan.wait = 1;
  failed(kiln_graph_builder_join(all, 3, NULL), "joining");
  for (int i = 0; i < 2; i++) {
    assert_int_equal(kiln_graph_builder_state(forks[i]),
                     KILN_GRAPH_BUILDER_CLOSED);
    kiln_graph_builder_release(forks[i]);
  }
  plan.end = true;
  failed(kiln_graph_builder_end(builder), "1 forked builder was not joined");
}

static void test_a_fork_that_was_left(void** state) {
  (void)state;
  kiln_graph_builder_t* forks[2];
  begin();
  assert_null(kiln_graph_builder_split(builder, 3, forks));
  assert_null(kiln_graph_builder_close(forks[0]));
  kiln_graph_builder_release(forks[1]);
  plan.end = true;
  failed(kiln_graph_builder_end(builder), "2 forked builders were not joined");
  kiln_graph_builder_release(forks[0]);
}

// ---- Nodes that builders add ----

static void test_a_call_whose_node_is_not_found(void** state) {
  (void)state;
  int32_t data = 1;
  kiln_graph_host_t host = {nothing, &data, sizeof(data),
                            graph_kit_owner(&kit.told)};
  begin();
  plan.info = true;
  assert_null(kiln_graph_builder_call_host(builder, &host));
  plan.info = false;
  assert_null(kiln_graph_builder_end(builder));
  // Kept, without a node, as long as the graph.
  assert_int_equal(kit.told, 0);
  kiln_graph_builder_release(builder);
  builder = NULL;
  assert_int_equal(kit.told, 1);
}

static void test_a_call_that_is_refused(void** state) {
  (void)state;
  kiln_graph_host_t host = {nothing, NULL, 0, graph_kit_owner(&kit.told)};
  begin();
  kilni_table_cuda_fault_arm(&kit.table, 1, KILNI_FAULT_ONCE,
                             KILN_CU_ERROR_INVALID_VALUE);
  failed(kiln_graph_builder_call_host(builder, &host),
         "capturing a host function");
  assert_string_equal(kilni_table_cuda_fault_hit(&kit.table),
                      "cuLaunchHostFunc");
  (void)kilni_table_cuda_fault_disarm(&kit.table);
  assert_int_equal(kit.told, 0);
}

static void test_data_goes_with_a_thrown_away_capture(void** state) {
  (void)state;
  kiln_graph_host_t host = {nothing, NULL, 0, graph_kit_owner(&kit.told)};
  begin();
  plan.tail = true;
  assert_null(kiln_graph_builder_call_host(builder, &host));
  plan.tail = false;
  plan.end = true;
  failed(kiln_graph_builder_end(builder), "discarded");
  assert_int_equal(kit.told, 1);
}

static void test_an_embedded_graph_in_no_order(void** state) {
  (void)state;
  kiln_graph_t* child = NULL;
  assert_null(kiln_graph_create(kit.device, &child));
  begin();
  plan.order = true;
  failed(kiln_graph_builder_embed(builder, child), "capturing a graph");
  assert_int_equal(plan.removed, 1);
  plan.order = false;
  assert_null(kiln_graph_builder_embed(builder, child));
  assert_int_equal(plan.removed, 1);
  kiln_graph_release(child);
}

static void test_a_choice_in_no_order(void** state) {
  (void)state;
  kiln_graph_builder_t* bodies[2];
  kiln_graph_conditional_t choice = {{0, NULL}, KILN_GRAPH_IF, 2};
  begin();
  assert_null(
      kiln_graph_builder_add_condition(builder, NULL, &choice.condition));
  plan.order = true;
  failed(kiln_graph_builder_add_conditional(builder, &choice, bodies),
         "capturing a conditional node");
  assert_null(bodies[0]);
  assert_null(bodies[1]);
  assert_int_equal(plan.removed, 1);
}

// The body of a choice made on a fork keeps the graph that it is in.
static void test_a_choice_on_a_fork(void** state) {
  (void)state;
  kiln_graph_builder_t* fork = NULL;
  kiln_graph_builder_t* body = NULL;
  kiln_graph_conditional_t choice = {{0, NULL}, KILN_GRAPH_WHILE, 1};
  begin();
  assert_null(kiln_graph_builder_split(builder, 2, &fork));
  assert_null(
      kiln_graph_builder_add_condition(builder, NULL, &choice.condition));
  plan.tail = true;
  // The null provider does not say that a fork is captured: the primary adds.
  assert_null(kiln_graph_builder_add_conditional(builder, &choice, &body));
  plan.tail = false;
  kiln_graph_t* graph = NULL;
  assert_null(kiln_graph_builder_graph(body, &graph));
  kiln_graph_builder_release(fork);
  kiln_graph_builder_release(builder);
  builder = NULL;
  kiln_graph_work_t work = kiln_graph_work_empty();
  failed(kiln_graph_add(graph, NULL, 0, &work, NULL), "was removed");
  kiln_graph_release(graph);
  kiln_graph_builder_release(body);
}

// ---- Executables ----

static void test_a_reason_beside_an_executable(void** state) {
  (void)state;
  kiln_graph_exec_t* exec = NULL;
  begin();
  assert_null(kiln_graph_builder_end(builder));
  plan.instantiate = true;
  failed(kiln_graph_builder_exec(builder, NULL, &exec), "in a cycle");
  assert_null(exec);
  assert_int_equal(plan.execs_destroyed, 0);
  plan.instantiate = false;
  assert_null(kiln_graph_builder_exec(builder, NULL, &exec));
  // Independent of what it was made of.
  kiln_graph_builder_release(builder);
  builder = NULL;
  assert_null(kiln_graph_exec_launch(exec, kit.stream));
  kiln_graph_exec_release(exec);
  assert_int_equal(plan.execs_destroyed, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
      T(test_begun_and_nothing_known),
      T(test_places_are_always_given),
      T(test_an_invalidated_end_destroys_nothing),
      T(test_an_end_that_is_refused),
      T(test_a_close_throws_away),
      T(test_a_close_that_fails),
      T(test_a_close_that_is_refused),
      T(test_a_close_on_a_wrong_thread),
      T(test_an_invalidated_body_with_a_fork),
      T(test_released_while_capturing),
      T(test_half_a_builder),
      T(test_half_a_split),
      T(test_a_join_that_fails),
      T(test_a_fork_that_was_left),
      T(test_a_call_whose_node_is_not_found),
      T(test_a_call_that_is_refused),
      T(test_data_goes_with_a_thrown_away_capture),
      T(test_an_embedded_graph_in_no_order),
      T(test_a_choice_in_no_order),
      T(test_a_choice_on_a_fork),
      T(test_a_reason_beside_an_executable),
#undef T
  };
  return cmocka_run_group_tests_name("graph_windows", tests, NULL, NULL);
}
