// SPDX-License-Identifier: Apache-2.0
//
// contract: graphs that are made by hand: nodes, edges, executables, launches.
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "table/cuda_table.h"
#include "contract.h"

// What most cases need. one-thread
typedef struct bench_t {
  kiln_cu_module_t module;
  kiln_cu_stream_t stream;
  kiln_cu_deviceptr_t words;  // 64 of them, zero
  kiln_cu_graph_t graph;
} bench_t;

static void set_up(contract_t* t, bench_t* b) {
  memset(b, 0, sizeof(*b));
  b->module = contract_load(t);
  OK(t->cu->cuStreamCreate(&b->stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(t->cu->cuMemAlloc(&b->words, 256));
  OK(t->cu->cuMemsetD8(b->words, 0, 256));
  OK(t->cu->cuCtxSynchronize());
  OK(t->cu->cuGraphCreate(&b->graph, 0));
  CHECK(b->graph != NULL);
}

static void tear_down(contract_t* t, bench_t* b) {
  if (b->graph != NULL) OK(t->cu->cuGraphDestroy(b->graph));
  OK(t->cu->cuStreamDestroy(b->stream));
  OK(t->cu->cuMemFree(b->words));
  OK(t->cu->cuModuleUnload(b->module));
}

static uint32_t word(contract_t* t, const bench_t* b, unsigned index) {
  uint32_t value = 0;
  OK(t->cu->cuMemcpyDtoH(&value, b->words + 4 * index, sizeof(value)));
  return value;
}

// A node that does `words[index] = words[index] * 3 + value`.
static kiln_cu_graph_node_t step(contract_t* t, bench_t* b,
                                 kiln_cu_graph_t graph, unsigned index,
                                 uint32_t value,
                                 const kiln_cu_graph_node_t* after,
                                 size_t count) {
  kiln_cu_deviceptr_t at = b->words + 4 * index;
  void* arguments[] = {&at, &value};
  const kiln_cu_kernel_node_t params = {
      .function = contract_function(t, b->module, "step"),
      .grid_x = 1,
      .grid_y = 1,
      .grid_z = 1,
      .block_x = 1,
      .block_y = 1,
      .block_z = 1,
      .params = arguments};
  kiln_cu_graph_node_t node = NULL;
  OK(t->cu->cuGraphAddKernelNode(&node, graph, after, count, &params));
  CHECK(node != NULL);
  return node;
}

static kiln_cu_graph_exec_t instantiate(contract_t* t, kiln_cu_graph_t graph) {
  kiln_cu_graph_instantiate_t params = {0, NULL, NULL, 0};
  kiln_cu_graph_exec_t exec = NULL;
  OK(t->cu->cuGraphInstantiateWithParams(&exec, graph, &params));
  CHECK(exec != NULL && params.result == KILN_CUDA_GRAPH_INSTANTIATE_SUCCESS);
  return exec;
}

static void launch(contract_t* t, const bench_t* b, kiln_cu_graph_exec_t exec) {
  OK(t->cu->cuGraphLaunch(exec, b->stream));
  OK(t->cu->cuStreamSynchronize(b->stream));
}

static void run_once(contract_t* t, const bench_t* b) {
  kiln_cu_graph_exec_t exec = instantiate(t, b->graph);
  launch(t, b, exec);
  OK(t->cu->cuGraphExecDestroy(exec));
}

// ---- Nodes and edges ----

static void graph_life(contract_t* t) {
  kiln_cu_graph_t graph = NULL;
  kiln_cu_graph_t clone = NULL;
  kiln_cu_graph_exec_t exec = NULL;
  kiln_cu_graph_node_t node = NULL;
  size_t count = 9;
  OK(t->cu->cuGraphCreate(&graph, 0));
  CHECK(graph != NULL);
  OK(t->cu->cuGraphGetNodes(graph, NULL, &count));
  CHECK(count == 0);
  OK(t->cu->cuGraphAddEmptyNode(&node, graph, NULL, 0));
  CHECK(node != NULL);
  OK(t->cu->cuGraphClone(&clone, graph));
  CHECK(clone != NULL && clone != graph);
  exec = instantiate(t, graph);
  OK(t->cu->cuGraphDestroy(graph));
  OK(t->cu->cuGraphExecDestroy(exec));
  OK(t->cu->cuGraphDestroy(clone));
  IS(INVALID_VALUE, t->cu->cuGraphCreate(NULL, 0));
  IS(INVALID_VALUE, t->cu->cuGraphCreate(&graph, 1));
}

static void graph_traversal(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_node_t nodes[4];
  nodes[0] = step(t, &b, b.graph, 0, 1, NULL, 0);
  nodes[1] = step(t, &b, b.graph, 0, 2, nodes, 1);
  nodes[2] = step(t, &b, b.graph, 1, 3, nodes, 1);
  nodes[3] = step(t, &b, b.graph, 0, 4, nodes + 1, 2);
  kiln_cu_graph_node_t seen[6];
  kiln_cu_graph_node_t from[6];
  kiln_cu_graph_node_t to[6];
  size_t count = 0;
  OK(t->cu->cuGraphGetNodes(b.graph, NULL, &count));
  CHECK(count == 4);
  count = 6;
  OK(t->cu->cuGraphGetNodes(b.graph, seen, &count));
  CHECK(count == 4 && seen[4] == NULL && seen[5] == NULL);
  count = 6;
  OK(t->cu->cuGraphGetRootNodes(b.graph, seen, &count));
  CHECK(count == 1 && seen[0] == nodes[0]);
  OK(t->cu->cuGraphGetEdges(b.graph, NULL, NULL, &count));
  CHECK(count == 4);
  OK(t->cu->cuGraphGetEdges(b.graph, from, to, &count));
  CHECK(count == 4);
  for (size_t i = 0; i < count; i++) CHECK(from[i] != NULL && to[i] != NULL);
  OK(t->cu->cuGraphNodeGetDependencies(nodes[3], NULL, &count));
  CHECK(count == 2);
  OK(t->cu->cuGraphNodeGetDependencies(nodes[3], seen, &count));
  CHECK((seen[0] == nodes[1] && seen[1] == nodes[2]) ||
        (seen[0] == nodes[2] && seen[1] == nodes[1]));
  OK(t->cu->cuGraphNodeGetDependentNodes(nodes[0], NULL, &count));
  CHECK(count == 2);
  kiln_cu_graph_node_type_t type = 99;
  OK(t->cu->cuGraphNodeGetType(nodes[0], &type));
  CHECK(type == KILN_CU_GRAPH_NODE_TYPE_KERNEL);
  run_once(t, &b);
  CHECK(word(t, &b, 0) == (1 * 3 + 2) * 3 + 4 && word(t, &b, 1) == 3);
  tear_down(t, &b);
}

static void graph_edges(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_node_t nodes[3];
  size_t count = 0;
  for (uint32_t i = 0; i < 3; i++) {
    nodes[i] = step(t, &b, b.graph, 0, i + 1, NULL, 0);
  }
  OK(t->cu->cuGraphAddDependencies(b.graph, &nodes[2], &nodes[0], 1));
  OK(t->cu->cuGraphAddDependencies(b.graph, &nodes[0], &nodes[1], 1));
  IS(INVALID_VALUE,
     t->cu->cuGraphAddDependencies(b.graph, &nodes[0], &nodes[1], 1));
  run_once(t, &b);  // 3, 1, 2
  CHECK(word(t, &b, 0) == (3 * 3 + 1) * 3 + 2);
  OK(t->cu->cuGraphRemoveDependencies(b.graph, &nodes[2], &nodes[0], 1));
  OK(t->cu->cuGraphAddDependencies(b.graph, &nodes[1], &nodes[2], 1));
  OK(t->cu->cuMemsetD8(b.words, 0, 256));
  OK(t->cu->cuCtxSynchronize());
  run_once(t, &b);  // 1, 2, 3
  CHECK(word(t, &b, 0) == (1 * 3 + 2) * 3 + 3);
  OK(t->cu->cuGraphDestroyNode(nodes[1]));
  OK(t->cu->cuGraphGetNodes(b.graph, NULL, &count));
  CHECK(count == 2);
  OK(t->cu->cuGraphGetEdges(b.graph, NULL, NULL, &count));
  CHECK(count == 0);
  tear_down(t, &b);
}

static void graph_cycle(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_node_t nodes[2];
  nodes[0] = step(t, &b, b.graph, 0, 1, NULL, 0);
  nodes[1] = step(t, &b, b.graph, 0, 2, nodes, 1);
  OK(t->cu->cuGraphAddDependencies(b.graph, &nodes[1], &nodes[0], 1));
  kiln_cu_graph_instantiate_t params = {0, NULL, NULL, 0};
  kiln_cu_graph_exec_t exec = NULL;
  const kiln_cu_result_t result =
      t->cu->cuGraphInstantiateWithParams(&exec, b.graph, &params);
  CHECK(result != KILN_CU_SUCCESS ||
        params.result == KILN_CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  OK(t->cu->cuGraphRemoveDependencies(b.graph, &nodes[1], &nodes[0], 1));
  run_once(t, &b);
  CHECK(word(t, &b, 0) == 5);
  tear_down(t, &b);
}

static void graph_edge_kinds(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_node_t nodes[2];
  nodes[0] = step(t, &b, b.graph, 0, 1, NULL, 0);
  nodes[1] = step(t, &b, b.graph, 0, 2, NULL, 0);
  const kiln_cu_graph_edge_t early = {
      .from_port = KILN_CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER,
      .type = KILN_CU_GRAPH_DEPENDENCY_TYPE_DEFAULT};
  kiln_cu_graph_edge_t seen;
  kiln_cu_graph_node_t from = NULL;
  kiln_cu_graph_node_t to = NULL;
  size_t count = 1;
  OK(t->cu->cuGraphAddDependencies_v2(b.graph, nodes, nodes + 1, &early, 1));
  OK(t->cu->cuGraphGetEdges_v2(b.graph, &from, &to, &seen, &count));
  CHECK(count == 1 && from == nodes[0] && to == nodes[1]);
  CHECK(seen.from_port == early.from_port && seen.type == early.type);
  count = 1;
  IS(LOSSY_QUERY, t->cu->cuGraphGetEdges(b.graph, &from, &to, &count));
  count = 1;
  OK(t->cu->cuGraphNodeGetDependencies_v2(nodes[1], &from, &seen, &count));
  CHECK(count == 1 && from == nodes[0] && seen.from_port == early.from_port);
  count = 1;
  OK(t->cu->cuGraphNodeGetDependentNodes_v2(nodes[0], &to, &seen, &count));
  CHECK(count == 1 && to == nodes[1] && seen.from_port == early.from_port);
  OK(t->cu->cuGraphRemoveDependencies_v2(b.graph, nodes, nodes + 1, &early, 1));
  tear_down(t, &b);
}

static void graph_clone(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_node_t first = step(t, &b, b.graph, 0, 1, NULL, 0);
  kiln_cu_graph_node_t second = step(t, &b, b.graph, 0, 2, &first, 1);
  kiln_cu_graph_node_t found = NULL;
  kiln_cu_graph_node_t extra = NULL;
  kiln_cu_graph_t clone = NULL;
  size_t count = 0;
  OK(t->cu->cuGraphClone(&clone, b.graph));
  OK(t->cu->cuGraphNodeFindInClone(&found, second, clone));
  CHECK(found != NULL && found != second);
  extra = step(t, &b, b.graph, 0, 7, &second, 1);
  IS(INVALID_VALUE, t->cu->cuGraphNodeFindInClone(&found, extra, clone));
  OK(t->cu->cuGraphGetNodes(clone, NULL, &count));
  CHECK(count == 2);
  kiln_cu_graph_exec_t exec = instantiate(t, clone);
  OK(t->cu->cuGraphDestroy(clone));
  launch(t, &b, exec);
  OK(t->cu->cuGraphExecDestroy(exec));
  CHECK(word(t, &b, 0) == 5);
  tear_down(t, &b);
}

// ---- What nodes do ----

static void count_call(void* user) {
  atomic_fetch_add((atomic_uint*)user, 1);
}

static void graph_memory_nodes(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  const kiln_cu_memset_node_t fill = {.to = b.words,
                                      .row_bytes = 64,
                                      .value = 0x01020304,
                                      .element_bytes = 4,
                                      .width = 4,
                                      .height = 3};
  kiln_cu_copy_3d_t copy;
  memset(&copy, 0, sizeof(copy));
  uint32_t host[4] = {0, 0, 0, 0};
  copy.from.type = KILN_CU_MEMORYTYPE_DEVICE;
  copy.from.device = b.words;
  copy.from.row_bytes = 64;
  copy.to.type = KILN_CU_MEMORYTYPE_HOST;
  copy.to.host = host;
  copy.to.row_bytes = 8;
  copy.width_bytes = 8;
  copy.height = 2;
  copy.depth = 1;
  kiln_cu_graph_node_t nodes[3];
  atomic_uint calls = 0;
  const kiln_cu_host_node_t call = {count_call, &calls};
  OK(t->cu->cuGraphAddMemsetNode(&nodes[0], b.graph, NULL, 0, &fill,
                                 t->context));
  OK(t->cu->cuGraphAddMemcpyNode(&nodes[1], b.graph, nodes, 1, &copy,
                                 t->context));
  OK(t->cu->cuGraphAddHostNode(&nodes[2], b.graph, nodes + 1, 1, &call));
  kiln_cu_memset_node_t fill_seen;
  kiln_cu_copy_3d_t copy_seen;
  kiln_cu_host_node_t call_seen;
  OK(t->cu->cuGraphMemsetNodeGetParams(nodes[0], &fill_seen));
  CHECK(fill_seen.to == fill.to && fill_seen.width == 4);
  OK(t->cu->cuGraphMemcpyNodeGetParams(nodes[1], &copy_seen));
  CHECK(copy_seen.to.host == host && copy_seen.height == 2);
  OK(t->cu->cuGraphHostNodeGetParams(nodes[2], &call_seen));
  CHECK(call_seen.fn == count_call && call_seen.user == &calls);
  run_once(t, &b);
  for (int i = 0; i < 4; i++) CHECK(host[i] == 0x01020304);
  CHECK(word(t, &b, 3) == 0x01020304 && word(t, &b, 4) == 0);
  CHECK(word(t, &b, 35) == 0x01020304 && word(t, &b, 48) == 0);
  CHECK(atomic_load(&calls) == 1);
  kiln_cu_memset_node_t other = fill;
  other.value = 7;
  other.height = 1;
  OK(t->cu->cuGraphMemsetNodeSetParams(nodes[0], &other));
  run_once(t, &b);
  CHECK(host[0] == 7 && host[2] == 0x01020304 && atomic_load(&calls) == 2);
  tear_down(t, &b);
}

static void graph_kernel_params(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_node_t node = step(t, &b, b.graph, 2, 9, NULL, 0);
  kiln_cu_kernel_node_t seen;
  OK(t->cu->cuGraphKernelNodeGetParams(node, &seen));
  CHECK(seen.grid_x == 1 && seen.block_x == 1 && seen.params != NULL);
  CHECK(*(uint32_t*)seen.params[1] == 9);
  uint32_t value = 11;
  kiln_cu_deviceptr_t at = b.words + 12;
  void* arguments[] = {&at, &value};
  kiln_cu_kernel_node_t changed = seen;
  changed.params = arguments;
  OK(t->cu->cuGraphKernelNodeSetParams(node, &changed));
  run_once(t, &b);
  CHECK(word(t, &b, 2) == 0 && word(t, &b, 3) == 11);
  kiln_cu_launch_attribute_value_t attribute;
  memset(&attribute, 0, sizeof(attribute));
  attribute.priority = 0;
  OK(t->cu->cuGraphKernelNodeSetAttribute(
      node, KILN_CU_LAUNCH_ATTRIBUTE_PRIORITY, &attribute));
  attribute.priority = 5;
  OK(t->cu->cuGraphKernelNodeGetAttribute(
      node, KILN_CU_LAUNCH_ATTRIBUTE_PRIORITY, &attribute));
  CHECK(attribute.priority == 0);
  tear_down(t, &b);
}

static void graph_child(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_t child = NULL;
  OK(t->cu->cuGraphCreate(&child, 0));
  kiln_cu_graph_node_t inner = step(t, &b, child, 0, 2, NULL, 0);
  (void)step(t, &b, child, 0, 3, &inner, 1);
  kiln_cu_graph_node_t nodes[3];
  nodes[0] = step(t, &b, b.graph, 0, 1, NULL, 0);
  OK(t->cu->cuGraphAddChildGraphNode(&nodes[1], b.graph, nodes, 1, child));
  OK(t->cu->cuGraphDestroy(child));
  nodes[2] = step(t, &b, b.graph, 0, 4, nodes + 1, 1);
  kiln_cu_graph_t seen = NULL;
  size_t count = 0;
  OK(t->cu->cuGraphChildGraphNodeGetGraph(nodes[1], &seen));
  OK(t->cu->cuGraphGetNodes(seen, NULL, &count));
  CHECK(count == 2);
  run_once(t, &b);
  CHECK(word(t, &b, 0) == ((1 * 3 + 2) * 3 + 3) * 3 + 4);
  tear_down(t, &b);
}

static void graph_events(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_event_t event = NULL;
  kiln_cu_event_t other = NULL;
  kiln_cu_stream_t aside = NULL;
  OK(t->cu->cuEventCreate(&event, KILN_CU_EVENT_DISABLE_TIMING));
  OK(t->cu->cuEventCreate(&other, KILN_CU_EVENT_DISABLE_TIMING));
  OK(t->cu->cuStreamCreate(&aside, KILN_CU_STREAM_NON_BLOCKING));
  kiln_cu_graph_node_t nodes[4];
  kiln_cu_event_t seen = NULL;
  OK(t->cu->cuGraphAddEventWaitNode(&nodes[0], b.graph, NULL, 0, other));
  nodes[1] = step(t, &b, b.graph, 0, 2, nodes, 1);
  OK(t->cu->cuGraphAddEventRecordNode(&nodes[2], b.graph, nodes + 1, 1, event));
  OK(t->cu->cuGraphEventRecordNodeGetEvent(nodes[2], &seen));
  CHECK(seen == event);
  OK(t->cu->cuGraphEventWaitNodeGetEvent(nodes[0], &seen));
  CHECK(seen == other);
  kiln_cu_graph_exec_t exec = instantiate(t, b.graph);
  contract_slow_put(t, b.module, aside, b.words, 1);
  OK(t->cu->cuEventRecord(other, aside));
  OK(t->cu->cuGraphLaunch(exec, b.stream));  // waits for 1, makes 5
  OK(t->cu->cuStreamWaitEvent(aside, event, 0));
  kiln_cu_deviceptr_t to = b.words + 4;
  void* move[] = {&to, &b.words};
  OK(contract_one(t, b.module, "move", aside, move));
  OK(t->cu->cuStreamSynchronize(aside));
  CHECK(word(t, &b, 1) == 5);
  OK(t->cu->cuStreamSynchronize(b.stream));
  OK(t->cu->cuGraphExecDestroy(exec));
  OK(t->cu->cuStreamDestroy(aside));
  OK(t->cu->cuEventDestroy(event));
  OK(t->cu->cuEventDestroy(other));
  tear_down(t, &b);
}

// ---- Executables ----

static void graph_launches_in_turn(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_stream_t aside = NULL;
  uint32_t wanted = 0;
  OK(t->cu->cuStreamCreate(&aside, KILN_CU_STREAM_NON_BLOCKING));
  kiln_cu_graph_node_t last = step(t, &b, b.graph, 0, 1, NULL, 0);
  for (uint32_t i = 2; i < 6; i++) {
    last = step(t, &b, b.graph, 0, i, &last, 1);
  }
  kiln_cu_graph_exec_t exec = instantiate(t, b.graph);
  // One executable is never in flight twice, whatever the streams.
  for (int i = 0; i < 4; i++) {
    OK(t->cu->cuGraphLaunch(exec, i % 2 == 0 ? b.stream : aside));
    for (uint32_t k = 1; k < 6; k++) wanted = wanted * 3 + k;
  }
  OK(t->cu->cuGraphExecDestroy(exec));  // what runs goes on
  OK(t->cu->cuCtxSynchronize());
  CHECK(word(t, &b, 0) == wanted);
  OK(t->cu->cuStreamDestroy(aside));
  tear_down(t, &b);
}

static void graph_flags(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  (void)step(t, &b, b.graph, 0, 1, NULL, 0);
  kiln_cu_graph_instantiate_t params = {
      KILN_CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
          KILN_CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY,
      b.stream, NULL, 9};
  kiln_cu_graph_exec_t exec = NULL;
  uint64_t flags = 0;
  OK(t->cu->cuGraphInstantiateWithParams(&exec, b.graph, &params));
  CHECK(params.result == KILN_CUDA_GRAPH_INSTANTIATE_SUCCESS);
  OK(t->cu->cuGraphExecGetFlags(exec, &flags));
  // Driver 580 does not give the flag about priorities back either.
  CHECK((flags & KILN_CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) == 0);
  OK(t->cu->cuGraphUpload(exec, b.stream));
  launch(t, &b, exec);
  CHECK(word(t, &b, 0) == 1);
  OK(t->cu->cuGraphExecDestroy(exec));
  params.flags = 0x80;
  exec = NULL;
  IS(INVALID_VALUE,
     t->cu->cuGraphInstantiateWithParams(&exec, b.graph, &params));
  tear_down(t, &b);
}

static void graph_enabled(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_node_t nodes[3];
  unsigned int enabled = 9;
  nodes[0] = step(t, &b, b.graph, 0, 1, NULL, 0);
  nodes[1] = step(t, &b, b.graph, 0, 2, nodes, 1);
  OK(t->cu->cuGraphAddEmptyNode(&nodes[2], b.graph, nodes + 1, 1));
  kiln_cu_graph_exec_t exec = instantiate(t, b.graph);
  OK(t->cu->cuGraphNodeGetEnabled(exec, nodes[0], &enabled));
  CHECK(enabled == 1);
  OK(t->cu->cuGraphNodeSetEnabled(exec, nodes[0], 0));
  OK(t->cu->cuGraphNodeGetEnabled(exec, nodes[0], &enabled));
  CHECK(enabled == 0);
  launch(t, &b, exec);
  CHECK(word(t, &b, 0) == 2);
  OK(t->cu->cuGraphNodeSetEnabled(exec, nodes[0], 1));
  launch(t, &b, exec);
  CHECK(word(t, &b, 0) == (2 * 3 + 1) * 3 + 2);
  IS(INVALID_VALUE, t->cu->cuGraphNodeSetEnabled(exec, nodes[2], 0));
  OK(t->cu->cuGraphExecDestroy(exec));
  tear_down(t, &b);
}

// ---- User objects ----

// How many were ended. A driver may do that on a thread of its own, a little
// later. thread-safe
typedef struct ended_t {
  kilni_base_mutex_t lock;
  kilni_base_cond_t changed;
  uint32_t count;
} ended_t;

static void count_end(void* user) {
  ended_t* ended = user;
  kilni_base_mutex_lock(&ended->lock);
  ended->count++;
  kilni_base_cond_broadcast(&ended->changed);
  kilni_base_mutex_unlock(&ended->lock);
}

static uint32_t ends_so_far(ended_t* ended) {
  kilni_base_mutex_lock(&ended->lock);
  uint32_t count = ended->count;
  kilni_base_mutex_unlock(&ended->lock);
  return count;
}

static bool wait_for_end(ended_t* ended, uint32_t count) {
  uint64_t deadline = kilni_base_time_ns() + UINT64_C(20000000000);
  bool in_time = true;
  kilni_base_mutex_lock(&ended->lock);
  while (ended->count < count && in_time) {
    in_time =
        kilni_base_cond_wait_until(&ended->changed, &ended->lock, deadline);
  }
  bool good = ended->count == count;
  kilni_base_mutex_unlock(&ended->lock);
  return good;
}

static void graph_user_objects(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  ended_t ended = {.count = 0};
  CHECK(kiln_status_is_ok(kilni_base_mutex_init(&ended.lock)));
  CHECK(kiln_status_is_ok(kilni_base_cond_init(&ended.changed)));
  kiln_cu_user_object_t object = NULL;
  OK(t->cu->cuUserObjectCreate(&object, &ended, count_end, 1,
                               KILN_CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  CHECK(object != NULL);
  OK(t->cu->cuUserObjectRetain(object, 2));
  OK(t->cu->cuUserObjectRelease(object, 2));
  (void)step(t, &b, b.graph, 0, 1, NULL, 0);
  OK(t->cu->cuGraphRetainUserObject(b.graph, object, 1,
                                    KILN_CU_GRAPH_USER_OBJECT_MOVE));
  kiln_cu_graph_exec_t exec = instantiate(t, b.graph);
  OK(t->cu->cuGraphDestroy(b.graph));
  b.graph = NULL;
  launch(t, &b, exec);
  CHECK(ends_so_far(&ended) == 0);
  OK(t->cu->cuGraphExecDestroy(exec));
  CHECK(wait_for_end(&ended, 1));
  OK(t->cu->cuUserObjectCreate(&object, &ended, count_end, 1,
                               KILN_CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  OK(t->cu->cuGraphCreate(&b.graph, 0));
  OK(t->cu->cuGraphRetainUserObject(b.graph, object, 1, 0));
  OK(t->cu->cuUserObjectRelease(object, 1));
  CHECK(ends_so_far(&ended) == 1);
  OK(t->cu->cuGraphReleaseUserObject(b.graph, object, 1));
  CHECK(wait_for_end(&ended, 2));
  IS(INVALID_VALUE,
     t->cu->cuUserObjectCreate(&object, &ended, count_end, 1, 0));
  kilni_base_cond_deinit(&ended.changed);
  kilni_base_mutex_deinit(&ended.lock);
  tear_down(t, &b);
}

// ---- Conditional nodes ----

// count_down(handle, p): *p -= 1, and the value is what is left.
// choose(handle, p): the value is *p.
static const char condition_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 handle,\n"
    "  .param .b32 value);\n"
    ".visible .entry count_down(.param .u64 handle, .param .u64 p) {\n"
    "  .reg .b32 %r<2>;\n  .reg .b64 %d<3>;\n"
    "  ld.param.u64 %d1, [handle];\n  ld.param.u64 %d2, [p];\n"
    "  ld.volatile.global.u32 %r1, [%d2];\n  sub.u32 %r1, %r1, 1;\n"
    "  st.volatile.global.u32 [%d2], %r1;\n"
    "  {\n  .param .b64 a0;\n  .param .b32 a1;\n"
    "  st.param.b64 [a0], %d1;\n  st.param.b32 [a1], %r1;\n"
    "  call.uni cudaGraphSetConditional, (a0, a1);\n  }\n  ret;\n}\n"
    ".visible .entry choose(.param .u64 handle, .param .u64 p) {\n"
    "  .reg .b32 %r<2>;\n  .reg .b64 %d<3>;\n"
    "  ld.param.u64 %d1, [handle];\n  ld.param.u64 %d2, [p];\n"
    "  ld.volatile.global.u32 %r1, [%d2];\n"
    "  {\n  .param .b64 a0;\n  .param .b32 a1;\n"
    "  st.param.b64 [a0], %d1;\n  st.param.b32 [a1], %r1;\n"
    "  call.uni cudaGraphSetConditional, (a0, a1);\n  }\n  ret;\n}\n";

// A node that runs a kernel of `condition_ptx` on words[index].
static kiln_cu_graph_node_t ask(contract_t* t, const bench_t* b,
                                kiln_cu_module_t module, const char* name,
                                kiln_cu_graph_t graph, uint64_t handle,
                                unsigned index,
                                const kiln_cu_graph_node_t* after,
                                size_t count) {
  kiln_cu_deviceptr_t at = b->words + 4 * index;
  void* arguments[] = {&handle, &at};
  const kiln_cu_kernel_node_t params = {
      .function = contract_function(t, module, name),
      .grid_x = 1,
      .grid_y = 1,
      .grid_z = 1,
      .block_x = 1,
      .block_y = 1,
      .block_z = 1,
      .params = arguments};
  kiln_cu_graph_node_t node = NULL;
  OK(t->cu->cuGraphAddKernelNode(&node, graph, after, count, &params));
  return node;
}

// A conditional node behind `after`, and its bodies.
static kiln_cu_graph_node_t conditional(contract_t* t, kiln_cu_graph_t graph,
                                        uint64_t handle, unsigned type,
                                        unsigned count,
                                        const kiln_cu_graph_node_t* after,
                                        kiln_cu_graph_t* bodies) {
  kiln_cu_graph_node_params_t params;
  kiln_cu_graph_node_t node = NULL;
  memset(&params, 0, sizeof(params));
  params.type = KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.of.conditional.handle = handle;
  params.of.conditional.type = type;
  params.of.conditional.count = count;
  params.of.conditional.context = t->context;
  OK(t->cu->cuGraphAddNode(&node, graph, after, NULL, after != NULL ? 1 : 0,
                           &params));
  CHECK(node != NULL && params.of.conditional.graphs != NULL);
  for (unsigned i = 0; i < count; i++) {
    bodies[i] = params.of.conditional.graphs[i];
    CHECK(bodies[i] != NULL);
  }
  return node;
}

static void graph_if(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_module_t module = NULL;
  kiln_cu_graph_condition_t handle = 0;
  kiln_cu_graph_t bodies[2];
  OK(t->cu->cuModuleLoadData(&module, condition_ptx));
  OK(t->cu->cuGraphConditionalHandleCreate(&handle, b.graph, t->context, 0, 0));
  kiln_cu_graph_node_t first =
      ask(t, &b, module, "choose", b.graph, handle, 0, NULL, 0);
  kiln_cu_graph_node_t node = conditional(
      t, b.graph, handle, KILN_CU_GRAPH_COND_TYPE_IF, 2, &first, bodies);
  (void)step(t, &b, bodies[0], 1, 1, NULL, 0);
  (void)step(t, &b, bodies[1], 2, 1, NULL, 0);
  (void)step(t, &b, b.graph, 3, 1, &node, 1);
  kiln_cu_graph_exec_t exec = instantiate(t, b.graph);
  launch(t, &b, exec);
  CHECK(word(t, &b, 1) == 0 && word(t, &b, 2) == 1 && word(t, &b, 3) == 1);
  OK(t->cu->cuMemsetD32(b.words, 1, 1));
  OK(t->cu->cuCtxSynchronize());
  launch(t, &b, exec);
  CHECK(word(t, &b, 1) == 1 && word(t, &b, 2) == 1 && word(t, &b, 3) == 4);
  OK(t->cu->cuGraphExecDestroy(exec));
  OK(t->cu->cuModuleUnload(module));
  tear_down(t, &b);
}

static void graph_while(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_module_t module = NULL;
  kiln_cu_graph_condition_t handle = 0;
  kiln_cu_graph_t body = NULL;
  OK(t->cu->cuModuleLoadData(&module, condition_ptx));
  OK(t->cu->cuGraphConditionalHandleCreate(&handle, b.graph, t->context, 1,
                                           KILN_CU_GRAPH_COND_ASSIGN_DEFAULT));
  kiln_cu_graph_node_t node = conditional(
      t, b.graph, handle, KILN_CU_GRAPH_COND_TYPE_WHILE, 1, NULL, &body);
  kiln_cu_graph_node_t inner = step(t, &b, body, 1, 1, NULL, 0);
  (void)ask(t, &b, module, "count_down", body, handle, 0, &inner, 1);
  (void)step(t, &b, b.graph, 2, 1, &node, 1);
  kiln_cu_graph_exec_t exec = instantiate(t, b.graph);
  uint32_t wanted = 0;
  for (uint32_t turns = 1; turns < 12; turns += 5) {
    OK(t->cu->cuMemsetD32(b.words, turns, 1));
    OK(t->cu->cuCtxSynchronize());
    launch(t, &b, exec);
    for (uint32_t i = 0; i < turns; i++) wanted = wanted * 3 + 1;
    CHECK(word(t, &b, 0) == 0 && word(t, &b, 1) == wanted);
  }
  CHECK(word(t, &b, 2) == (1 * 3 + 1) * 3 + 1);
  OK(t->cu->cuGraphExecDestroy(exec));
  OK(t->cu->cuModuleUnload(module));
  tear_down(t, &b);
}

static void graph_switch(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_module_t module = NULL;
  kiln_cu_graph_condition_t handle = 0;
  kiln_cu_graph_t bodies[3];
  OK(t->cu->cuModuleLoadData(&module, condition_ptx));
  OK(t->cu->cuGraphConditionalHandleCreate(&handle, b.graph, t->context, 0, 0));
  kiln_cu_graph_node_t first =
      ask(t, &b, module, "choose", b.graph, handle, 0, NULL, 0);
  (void)conditional(t, b.graph, handle, KILN_CU_GRAPH_COND_TYPE_SWITCH, 3,
                    &first, bodies);
  for (unsigned i = 0; i < 3; i++) {
    (void)step(t, &b, bodies[i], i + 1, 1, NULL, 0);
  }
  kiln_cu_graph_exec_t exec = instantiate(t, b.graph);
  for (uint32_t value = 0; value < 4; value++) {
    OK(t->cu->cuMemsetD8(b.words, 0, 256));
    OK(t->cu->cuMemsetD32(b.words, value, 1));
    OK(t->cu->cuCtxSynchronize());
    launch(t, &b, exec);
    for (uint32_t i = 0; i < 3; i++) {
      CHECK(word(t, &b, i + 1) == (i == value ? 1u : 0u));
    }
  }
  OK(t->cu->cuGraphExecDestroy(exec));
  OK(t->cu->cuModuleUnload(module));
  tear_down(t, &b);
}

// A loop in a loop: the inner one starts with its default each time.
static void graph_nested(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_module_t module = NULL;
  kiln_cu_graph_condition_t outer = 0;
  kiln_cu_graph_condition_t inner = 0;
  kiln_cu_graph_t outer_body = NULL;
  kiln_cu_graph_t inner_body = NULL;
  OK(t->cu->cuModuleLoadData(&module, condition_ptx));
  OK(t->cu->cuGraphConditionalHandleCreate(&outer, b.graph, t->context, 1,
                                           KILN_CU_GRAPH_COND_ASSIGN_DEFAULT));
  OK(t->cu->cuGraphConditionalHandleCreate(&inner, b.graph, t->context, 0, 0));
  (void)conditional(t, b.graph, outer, KILN_CU_GRAPH_COND_TYPE_WHILE, 1, NULL,
                    &outer_body);
  kiln_cu_graph_node_t first =
      ask(t, &b, module, "choose", outer_body, inner, 0, NULL, 0);
  kiln_cu_graph_node_t node = conditional(
      t, outer_body, inner, KILN_CU_GRAPH_COND_TYPE_IF, 1, &first, &inner_body);
  (void)step(t, &b, inner_body, 1, 1, NULL, 0);
  (void)ask(t, &b, module, "count_down", outer_body, outer, 0, &node, 1);
  kiln_cu_graph_exec_t exec = instantiate(t, b.graph);
  OK(t->cu->cuMemsetD32(b.words, 3, 1));
  OK(t->cu->cuCtxSynchronize());
  launch(t, &b, exec);
  CHECK(word(t, &b, 0) == 0 && word(t, &b, 1) == (1 * 3 + 1) * 3 + 1);
  OK(t->cu->cuGraphExecDestroy(exec));
  OK(t->cu->cuModuleUnload(module));
  tear_down(t, &b);
}

// What cuda.h says of graphs with conditional nodes: one executable at a time,
// no clone, and no place in another graph.
static void graph_condition_limits(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_module_t module = NULL;
  kiln_cu_graph_condition_t handle = 0;
  kiln_cu_graph_t bodies[2];
  OK(t->cu->cuModuleLoadData(&module, condition_ptx));
  OK(t->cu->cuGraphConditionalHandleCreate(&handle, b.graph, t->context, 1,
                                           KILN_CU_GRAPH_COND_ASSIGN_DEFAULT));
  (void)conditional(t, b.graph, handle, KILN_CU_GRAPH_COND_TYPE_IF, 1, NULL,
                    bodies);
  (void)step(t, &b, bodies[0], 1, 1, NULL, 0);
  kiln_cu_graph_exec_t exec = instantiate(t, b.graph);
  kiln_cu_graph_instantiate_t params = {0, NULL, NULL, 0};
  kiln_cu_graph_exec_t second = NULL;
  CHECK(t->cu->cuGraphInstantiateWithParams(&second, b.graph, &params) !=
        KILN_CU_SUCCESS);
  kiln_cu_graph_t clone = NULL;
  CHECK(t->cu->cuGraphClone(&clone, b.graph) != KILN_CU_SUCCESS);
  kiln_cu_graph_t other = NULL;
  kiln_cu_graph_node_t child = NULL;
  OK(t->cu->cuGraphCreate(&other, 0));
  CHECK(t->cu->cuGraphAddChildGraphNode(&child, other, NULL, 0, b.graph) !=
        KILN_CU_SUCCESS);
  OK(t->cu->cuGraphDestroy(other));
  // The first one still works, and behind its end there may be another.
  launch(t, &b, exec);
  CHECK(word(t, &b, 1) == 1);
  OK(t->cu->cuGraphExecDestroy(exec));
  exec = instantiate(t, b.graph);
  launch(t, &b, exec);
  CHECK(word(t, &b, 1) == 4);
  OK(t->cu->cuGraphExecDestroy(exec));
  OK(t->cu->cuModuleUnload(module));
  tear_down(t, &b);
}

static void graph_unused_condition(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_condition_t handle = 0;
  OK(t->cu->cuGraphConditionalHandleCreate(&handle, b.graph, t->context, 0, 0));
  kiln_cu_graph_instantiate_t params = {0, NULL, NULL, 0};
  kiln_cu_graph_exec_t exec = NULL;
  const kiln_cu_result_t result =
      t->cu->cuGraphInstantiateWithParams(&exec, b.graph, &params);
  CHECK(result != KILN_CU_SUCCESS || params.result != 0);
  CHECK(params.result == KILN_CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
  tear_down(t, &b);
}

// An IF with this condition in `graph`; what the driver says of it.
static kiln_cu_result_t add_if(contract_t* t, kiln_cu_graph_t graph,
                               kiln_cu_graph_condition_t handle,
                               kiln_cu_graph_node_t* out_node) {
  kiln_cu_graph_node_params_t params;
  memset(&params, 0, sizeof(params));
  params.type = KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.of.conditional.handle = handle;
  params.of.conditional.type = KILN_CU_GRAPH_COND_TYPE_IF;
  params.of.conditional.count = 1;
  params.of.conditional.context = t->context;
  return t->cu->cuGraphAddNode(out_node, graph, NULL, NULL, 0, &params);
}

// A condition is of one node at a time. `nested`: the second is in the first
// one's body.
static void share_condition(contract_t* t, bool nested) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_condition_t handle = 0;
  kiln_cu_graph_t body = NULL;
  kiln_cu_graph_node_t node = NULL;
  OK(t->cu->cuGraphConditionalHandleCreate(&handle, b.graph, t->context, 1,
                                           KILN_CU_GRAPH_COND_ASSIGN_DEFAULT));
  (void)conditional(t, b.graph, handle, KILN_CU_GRAPH_COND_TYPE_IF, 1, NULL,
                    &body);
  (void)step(t, &b, body, 1, 1, NULL, 0);
  CHECK(add_if(t, nested ? body : b.graph, handle, &node) ==
        KILN_CU_ERROR_INVALID_VALUE);
  kiln_cu_graph_exec_t exec = NULL;
  kiln_cu_graph_instantiate_t params = {0, NULL, NULL, 0};
  OK(t->cu->cuGraphInstantiateWithParams(&exec, b.graph, &params));
  OK(t->cu->cuGraphExecDestroy(exec));
  tear_down(t, &b);
}

// Of a node that is gone it is nobody's again, and may be another one's.
static void graph_condition_again(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_condition_t handle = 0;
  kiln_cu_graph_node_t node = NULL;
  OK(t->cu->cuGraphConditionalHandleCreate(&handle, b.graph, t->context, 1, 1));
  OK(add_if(t, b.graph, handle, &node));
  OK(t->cu->cuGraphDestroyNode(node));
  kiln_cu_graph_instantiate_t params = {0, NULL, NULL, 0};
  kiln_cu_graph_exec_t exec = NULL;
  CHECK(t->cu->cuGraphInstantiateWithParams(&exec, b.graph, &params) ==
        KILN_CU_ERROR_INVALID_VALUE);
  CHECK(params.result == KILN_CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
  OK(add_if(t, b.graph, handle, &node));
  OK(t->cu->cuGraphInstantiateWithParams(&exec, b.graph, &params));
  OK(t->cu->cuGraphExecDestroy(exec));
  tear_down(t, &b);
}

static void graph_shared_condition(contract_t* t) {
  share_condition(t, false);
}

static void graph_shared_condition_nested(contract_t* t) {
  share_condition(t, true);
}

// ---- Changes of executables ----

static kiln_cu_kernel_node_t step_params(contract_t* t, const bench_t* b,
                                         void** arguments) {
  const kiln_cu_kernel_node_t params = {
      .function = contract_function(t, b->module, "step"),
      .grid_x = 1,
      .grid_y = 1,
      .grid_z = 1,
      .block_x = 1,
      .block_y = 1,
      .block_z = 1,
      .params = arguments};
  return params;
}

static void graph_exec_nodes(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  atomic_uint calls = 0;
  atomic_uint others = 0;
  const kiln_cu_memset_node_t fill = {.to = b.words + 128,
                                      .value = 3,
                                      .element_bytes = 4,
                                      .width = 2,
                                      .height = 1};
  kiln_cu_copy_3d_t copy;
  memset(&copy, 0, sizeof(copy));
  copy.from.type = KILN_CU_MEMORYTYPE_DEVICE;
  copy.from.device = b.words + 128;
  copy.to.type = KILN_CU_MEMORYTYPE_DEVICE;
  copy.to.device = b.words + 192;
  copy.width_bytes = 8;
  copy.height = 1;
  copy.depth = 1;
  const kiln_cu_host_node_t call = {count_call, &calls};
  const kiln_cu_host_node_t other_call = {count_call, &others};
  kiln_cu_graph_node_t nodes[4];
  nodes[0] = step(t, &b, b.graph, 0, 1, NULL, 0);
  OK(t->cu->cuGraphAddMemsetNode(&nodes[1], b.graph, nodes, 1, &fill,
                                 t->context));
  OK(t->cu->cuGraphAddMemcpyNode(&nodes[2], b.graph, nodes + 1, 1, &copy,
                                 t->context));
  OK(t->cu->cuGraphAddHostNode(&nodes[3], b.graph, nodes + 2, 1, &call));
  kiln_cu_graph_exec_t exec = instantiate(t, b.graph);
  launch(t, &b, exec);
  CHECK(word(t, &b, 0) == 1 && word(t, &b, 49) == 3);
  kiln_cu_deviceptr_t at = b.words + 4;
  uint32_t value = 8;
  void* arguments[] = {&at, &value};
  const kiln_cu_kernel_node_t kernel = step_params(t, &b, arguments);
  kiln_cu_memset_node_t fill_now = fill;
  kiln_cu_copy_3d_t copy_now = copy;
  fill_now.value = 4;
  copy_now.to.device = b.words + 224;
  OK(t->cu->cuGraphExecKernelNodeSetParams(exec, nodes[0], &kernel));
  OK(t->cu->cuGraphExecMemsetNodeSetParams(exec, nodes[1], &fill_now,
                                           t->context));
  OK(t->cu->cuGraphExecMemcpyNodeSetParams(exec, nodes[2], &copy_now,
                                           t->context));
  OK(t->cu->cuGraphExecHostNodeSetParams(exec, nodes[3], &other_call));
  launch(t, &b, exec);
  CHECK(word(t, &b, 0) == 1 && word(t, &b, 1) == 8);
  CHECK(word(t, &b, 49) == 3 && word(t, &b, 56) == 4);
  CHECK(atomic_load(&calls) == 1 && atomic_load(&others) == 1);
  OK(t->cu->cuGraphExecDestroy(exec));
  run_once(t, &b);  // the definition is as it was
  CHECK(word(t, &b, 0) == 4 && word(t, &b, 1) == 8);
  tear_down(t, &b);
}

static void graph_update(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_t fresh = NULL;
  kiln_cu_graph_update_t outcome;
  kiln_cu_graph_node_t first = step(t, &b, b.graph, 0, 1, NULL, 0);
  (void)step(t, &b, b.graph, 0, 2, &first, 1);
  kiln_cu_graph_exec_t exec = instantiate(t, b.graph);
  OK(t->cu->cuGraphCreate(&fresh, 0));
  kiln_cu_graph_node_t other = step(t, &b, fresh, 1, 5, NULL, 0);
  kiln_cu_graph_node_t last = step(t, &b, fresh, 1, 7, &other, 1);
  memset(&outcome, 0xff, sizeof(outcome));
  OK(t->cu->cuGraphExecUpdate(exec, fresh, &outcome));
  CHECK(outcome.result == KILN_CU_GRAPH_EXEC_UPDATE_SUCCESS);
  launch(t, &b, exec);
  CHECK(word(t, &b, 0) == 0 && word(t, &b, 1) == 5 * 3 + 7);
  // Another shape is refused, and changes nothing.
  (void)step(t, &b, fresh, 2, 1, &last, 1);
  IS(GRAPH_EXEC_UPDATE_FAILURE,
     t->cu->cuGraphExecUpdate(exec, fresh, &outcome));
  CHECK(outcome.result == KILN_CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  launch(t, &b, exec);
  CHECK(word(t, &b, 1) == ((5 * 3 + 7) * 3 + 5) * 3 + 7);
  CHECK(word(t, &b, 2) == 0);
  OK(t->cu->cuGraphDestroy(fresh));
  OK(t->cu->cuGraphExecDestroy(exec));
  tear_down(t, &b);
}

static void graph_update_kinds(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_t fresh = NULL;
  kiln_cu_graph_update_t outcome;
  kiln_cu_graph_node_t node = step(t, &b, b.graph, 0, 1, NULL, 0);
  kiln_cu_graph_exec_t exec = instantiate(t, b.graph);
  OK(t->cu->cuGraphCreate(&fresh, 0));
  OK(t->cu->cuGraphAddEmptyNode(&node, fresh, NULL, 0));
  memset(&outcome, 0, sizeof(outcome));
  IS(GRAPH_EXEC_UPDATE_FAILURE,
     t->cu->cuGraphExecUpdate(exec, fresh, &outcome));
  CHECK(outcome.result == KILN_CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  CHECK(outcome.node == node);
  launch(t, &b, exec);
  CHECK(word(t, &b, 0) == 1);
  OK(t->cu->cuGraphDestroy(fresh));
  OK(t->cu->cuGraphExecDestroy(exec));
  tear_down(t, &b);
}

// ---- Memory ----

static kiln_cu_alloc_node_t alloc_params(const contract_t* t, size_t bytes) {
  kiln_cu_alloc_node_t params;
  memset(&params, 0, sizeof(params));
  params.pool.allocation = KILN_CU_MEM_ALLOCATION_TYPE_PINNED;
  params.pool.location.type = KILN_CU_MEM_LOCATION_TYPE_DEVICE;
  params.pool.location.id = t->device;
  params.bytes = bytes;
  return params;
}

static kiln_cu_graph_node_t put_at(contract_t* t, bench_t* b,
                                   kiln_cu_deviceptr_t at, uint32_t value,
                                   const kiln_cu_graph_node_t* after) {
  void* arguments[] = {&at, &value};
  kiln_cu_kernel_node_t params = step_params(t, b, arguments);
  params.function = contract_function(t, b->module, "put");
  kiln_cu_graph_node_t node = NULL;
  OK(t->cu->cuGraphAddKernelNode(&node, b->graph, after, 1, &params));
  return node;
}

static kiln_cu_graph_node_t move_to(contract_t* t, bench_t* b,
                                    kiln_cu_deviceptr_t to,
                                    kiln_cu_deviceptr_t from,
                                    const kiln_cu_graph_node_t* after) {
  void* arguments[] = {&to, &from};
  kiln_cu_kernel_node_t params = step_params(t, b, arguments);
  params.function = contract_function(t, b->module, "move");
  kiln_cu_graph_node_t node = NULL;
  OK(t->cu->cuGraphAddKernelNode(&node, b->graph, after, 1, &params));
  return node;
}

static void graph_allocates(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_alloc_node_t params = alloc_params(t, 4096);
  kiln_cu_graph_node_t alloc = NULL;
  kiln_cu_graph_node_t release = NULL;
  kiln_cu_deviceptr_t seen = 0;
  OK(t->cu->cuGraphAddMemAllocNode(&alloc, b.graph, NULL, 0, &params));
  CHECK(params.address != 0);
  kiln_cu_graph_node_t put = put_at(t, &b, params.address, 6, &alloc);
  kiln_cu_graph_node_t move = move_to(t, &b, b.words, params.address, &put);
  OK(t->cu->cuGraphAddMemFreeNode(&release, b.graph, &move, 1, params.address));
  OK(t->cu->cuGraphMemFreeNodeGetParams(release, &seen));
  CHECK(seen == params.address);
  kiln_cu_graph_exec_t exec = instantiate(t, b.graph);
  for (int i = 0; i < 2; i++) {  // freed each time, so it may run again
    launch(t, &b, exec);
    CHECK(word(t, &b, 0) == 6);
    OK(t->cu->cuMemsetD8(b.words, 0, 4));
    OK(t->cu->cuCtxSynchronize());
  }
  OK(t->cu->cuGraphExecDestroy(exec));
  OK(t->cu->cuDeviceGraphMemTrim(t->device));
  tear_down(t, &b);
}

static void graph_keeps_memory(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_alloc_node_t params = alloc_params(t, 4096);
  kiln_cu_graph_node_t alloc = NULL;
  uint64_t used = 0;
  uint32_t value = 0;
  OK(t->cu->cuGraphAddMemAllocNode(&alloc, b.graph, NULL, 0, &params));
  (void)put_at(t, &b, params.address, 6, &alloc);
  kiln_cu_graph_exec_t exec = instantiate(t, b.graph);
  launch(t, &b, exec);
  OK(t->cu->cuDeviceGetGraphMemAttribute(
      t->device, KILN_CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
  CHECK(used >= 4096);
  OK(t->cu->cuMemcpyDtoH(&value, params.address, 4));
  CHECK(value == 6);
  // It has to be freed before it is allocated again.
  IS(INVALID_VALUE, t->cu->cuGraphLaunch(exec, b.stream));
  OK(t->cu->cuMemFreeAsync(params.address, b.stream));
  launch(t, &b, exec);
  OK(t->cu->cuMemFree(params.address));
  OK(t->cu->cuGraphExecDestroy(exec));
  kiln_cu_graph_instantiate_t again = {
      KILN_CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, NULL, NULL, 0};
  OK(t->cu->cuGraphInstantiateWithParams(&exec, b.graph, &again));
  launch(t, &b, exec);
  launch(t, &b, exec);
  OK(t->cu->cuMemFree(params.address));
  OK(t->cu->cuGraphExecDestroy(exec));
  tear_down(t, &b);
}

// ---- Values ----

static void stream_values(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_stream_t other = NULL;
  OK(t->cu->cuStreamCreate(&other, KILN_CU_STREAM_NON_BLOCKING));
  OK(t->cu->cuStreamWaitValue32(other, b.words, 5,
                                KILN_CU_STREAM_WAIT_VALUE_GEQ));
  OK(t->cu->cuStreamWriteValue32(other, b.words + 4, 9, 0));
  IS(NOT_READY, t->cu->cuStreamQuery(other));
  OK(t->cu->cuStreamWriteValue32(b.stream, b.words, 4, 0));
  OK(t->cu->cuStreamSynchronize(b.stream));
  IS(NOT_READY, t->cu->cuStreamQuery(other));
  OK(t->cu->cuStreamWriteValue32(b.stream, b.words, 6, 0));
  OK(t->cu->cuStreamSynchronize(other));
  CHECK(word(t, &b, 1) == 9);
  kiln_cu_mem_op_t list[2];
  memset(list, 0, sizeof(list));
  list[0].value.operation = KILN_CU_STREAM_MEM_OP_WRITE_VALUE_64;
  list[0].value.address = b.words + 8;
  list[0].value.value = UINT64_C(0x100000002);
  list[1].value.operation = KILN_CU_STREAM_MEM_OP_WAIT_VALUE_64;
  list[1].value.address = b.words + 8;
  list[1].value.value = UINT64_C(0x100000002);
  list[1].value.flags = KILN_CU_STREAM_WAIT_VALUE_EQ;
  OK(t->cu->cuStreamBatchMemOp(b.stream, 2, list, 0));
  OK(t->cu->cuStreamSynchronize(b.stream));
  CHECK(word(t, &b, 2) == 2 && word(t, &b, 3) == 1);
  kiln_cu_mem_op_node_t params = {t->context, 1, list, 0};
  kiln_cu_graph_node_t node = NULL;
  list[0].value.value = 7;
  OK(t->cu->cuGraphAddBatchMemOpNode(&node, b.graph, NULL, 0, &params));
  run_once(t, &b);
  CHECK(word(t, &b, 2) == 7 && word(t, &b, 3) == 0);
  OK(t->cu->cuStreamDestroy(other));
  tear_down(t, &b);
}

static void graph_picture(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  static const char path[] = "contract_graph.dot";
  char text[64] = {0};
  (void)step(t, &b, b.graph, 0, 1, NULL, 0);
  OK(t->cu->cuGraphDebugDotPrint(b.graph, path,
                                 KILN_CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
  FILE* file = fopen(path, "rb");
  CHECK(file != NULL);
  const size_t size = fread(text, 1, sizeof(text) - 1, file);
  fclose(file);
  remove(path);
  CHECK(size > 8 && strncmp(text, "digraph", 7) == 0);
  tear_down(t, &b);
}

static const contract_case_t cases[] = {
    {"graph_life", graph_life, CONTRACT_PLAIN},
    {"graph_traversal", graph_traversal, CONTRACT_PLAIN},
    {"graph_edges", graph_edges, CONTRACT_PLAIN},
    {"graph_cycle", graph_cycle, CONTRACT_PLAIN},
    {"graph_edge_kinds", graph_edge_kinds, CONTRACT_PLAIN},
    {"graph_clone", graph_clone, CONTRACT_PLAIN},
    {"graph_memory_nodes", graph_memory_nodes, CONTRACT_PLAIN},
    {"graph_kernel_params", graph_kernel_params, CONTRACT_PLAIN},
    {"graph_child", graph_child, CONTRACT_PLAIN},
    {"graph_events", graph_events, CONTRACT_PLAIN},
    {"graph_launches_in_turn", graph_launches_in_turn, CONTRACT_PLAIN},
    {"graph_flags", graph_flags, CONTRACT_PLAIN},
    {"graph_enabled", graph_enabled, CONTRACT_PLAIN},
    {"graph_user_objects", graph_user_objects, CONTRACT_PLAIN},
    {"graph_exec_nodes", graph_exec_nodes, CONTRACT_PLAIN},
    {"graph_update", graph_update, CONTRACT_PLAIN},
    {"graph_update_kinds", graph_update_kinds, CONTRACT_PLAIN},
    {"graph_allocates", graph_allocates, CONTRACT_PLAIN},
    {"graph_keeps_memory", graph_keeps_memory, CONTRACT_PLAIN},
    {"stream_values", stream_values, CONTRACT_PLAIN},
    {"graph_picture", graph_picture, CONTRACT_PLAIN},
    {"graph_if", graph_if, CONTRACT_PLAIN},
    {"graph_while", graph_while, CONTRACT_PLAIN},
    {"graph_switch", graph_switch, CONTRACT_PLAIN},
    {"graph_nested", graph_nested, CONTRACT_PLAIN},
    {"graph_unused_condition", graph_unused_condition, CONTRACT_PLAIN},
    {"graph_condition_limits", graph_condition_limits, CONTRACT_PLAIN},
    {"graph_shared_condition", graph_shared_condition, CONTRACT_PLAIN},
    {"graph_shared_nested", graph_shared_condition_nested, CONTRACT_PLAIN},
    {"graph_condition_again", graph_condition_again, CONTRACT_PLAIN},
};
CONTRACT_GROUP(contract_graph, cases);
