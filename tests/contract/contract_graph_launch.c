// SPDX-License-Identifier: Apache-2.0
//
// contract: what of launches becomes a part of graphs: attributes of kernel
// nodes, programmatic edges by hand and by capture, launches of executables
// that are captured, executables for device code, and the memory of graphs in
// numbers.
#include <string.h>

#include "contract.h"
#include "table/cuda_table.h"

// What most cases need. one-thread
typedef struct bench_t {
  kiln_cu_module_t module;
  kiln_cu_stream_t stream;
  kiln_cu_deviceptr_t words;  // 64 of them, zero
  kiln_cu_graph_t graph;
  kiln_cu_function_t step;
} bench_t;

static void set_up(contract_t* t, bench_t* b) {
  memset(b, 0, sizeof(*b));
  b->module = contract_load(t);
  b->step = contract_function(t, b->module, "step");
  OK(t->cu->cuStreamCreate(&b->stream, KILN_CU_STREAM_NON_BLOCKING));
  OK(t->cu->cuMemAlloc(&b->words, 256));
  OK(t->cu->cuMemsetD8(b->words, 0, 256));
  OK(t->cu->cuCtxSynchronize());
  OK(t->cu->cuGraphCreate(&b->graph, 0));
}

static void tear_down(contract_t* t, bench_t* b) {
  OK(t->cu->cuGraphDestroy(b->graph));
  OK(t->cu->cuStreamDestroy(b->stream));
  OK(t->cu->cuMemFree(b->words));
  OK(t->cu->cuModuleUnload(b->module));
}

static uint32_t word(contract_t* t, const bench_t* b, unsigned index) {
  uint32_t value = 0;
  OK(t->cu->cuMemcpyDtoH(&value, b->words + 4 * index, sizeof(value)));
  return value;
}

static int device_has(contract_t* t, kiln_cu_device_attribute_t id) {
  int value = 0;
  OK(t->cu->cuDeviceGetAttribute(&value, id, t->device));
  return value;
}

static bool is_since(contract_t* t, int major) {
  return device_has(t, KILN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >=
         major;
}

static kiln_cu_kernel_node_t kernel_of(kiln_cu_function_t function,
                                       void** arguments) {
  const kiln_cu_kernel_node_t params = {.function = function,
                                        .grid_x = 1,
                                        .grid_y = 1,
                                        .grid_z = 1,
                                        .block_x = 1,
                                        .block_y = 1,
                                        .block_z = 1,
                                        .params = arguments};
  return params;
}

// words[index] = words[index] * 3 + value
static kiln_cu_graph_node_t step(contract_t* t, const bench_t* b,
                                 unsigned index, uint32_t value) {
  kiln_cu_deviceptr_t at = b->words + 4 * index;
  void* arguments[] = {&at, &value};
  const kiln_cu_kernel_node_t params = kernel_of(b->step, arguments);
  kiln_cu_graph_node_t node = NULL;
  OK(t->cu->cuGraphAddKernelNode(&node, b->graph, NULL, 0, &params));
  return node;
}

static void run(contract_t* t, const bench_t* b, kiln_cu_graph_t graph) {
  kiln_cu_graph_instantiate_t params = {0, NULL, NULL, 0};
  kiln_cu_graph_exec_t exec = NULL;
  OK(t->cu->cuGraphInstantiateWithParams(&exec, graph, &params));
  OK(t->cu->cuGraphLaunch(exec, b->stream));
  OK(t->cu->cuStreamSynchronize(b->stream));
  OK(t->cu->cuGraphExecDestroy(exec));
}

// ---- Attributes of kernel nodes ----

static void set_and_get(contract_t* t, kiln_cu_graph_node_t node,
                        kiln_cu_launch_attribute_id_t id,
                        const kiln_cu_launch_attribute_value_t* value,
                        size_t bytes) {
  kiln_cu_launch_attribute_value_t seen;
  memset(&seen, 0, sizeof(seen));
  OK(t->cu->cuGraphKernelNodeSetAttribute(node, id, value));
  OK(t->cu->cuGraphKernelNodeGetAttribute(node, id, &seen));
  CHECK(memcmp(&seen, value, bytes) == 0);
}

static void graph_attributes(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_node_t nodes[3];
  kiln_cu_launch_attribute_value_t value;
  for (unsigned i = 0; i < 3; i++) nodes[i] = step(t, &b, i, 5 + i);
  memset(&value, 0, sizeof(value));
  int least = 0;
  int greatest = 0;
  OK(t->cu->cuCtxGetStreamPriorityRange(&least, &greatest));
  value.priority = greatest;
  set_and_get(t, nodes[0], KILN_CU_LAUNCH_ATTRIBUTE_PRIORITY, &value,
              sizeof(value.priority));
  if (device_has(t, KILN_CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) != 0) {
    memset(&value, 0, sizeof(value));
    value.cooperative = 1;
    set_and_get(t, nodes[1], KILN_CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value,
                sizeof(value.cooperative));
  }
  if (is_since(t, 9)) {
    memset(&value, 0, sizeof(value));
    value.cluster.x = 1;
    value.cluster.y = 1;
    value.cluster.z = 1;
    set_and_get(t, nodes[2], KILN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value,
                sizeof(value.cluster));
  }
  kiln_cu_graph_instantiate_t params = {
      KILN_CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY, NULL, NULL, 0};
  kiln_cu_graph_exec_t exec = NULL;
  OK(t->cu->cuGraphInstantiateWithParams(&exec, b.graph, &params));
  OK(t->cu->cuGraphLaunch(exec, b.stream));
  OK(t->cu->cuStreamSynchronize(b.stream));
  OK(t->cu->cuGraphExecDestroy(exec));
  for (unsigned i = 0; i < 3; i++) CHECK(word(t, &b, i) == 5 + i);
  tear_down(t, &b);
}

// ---- Programmatic edges ----

static const kiln_cu_graph_edge_t kProgrammatic = {
    .from_port = KILN_CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
    .type = KILN_CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};

static bool same_edge(const kiln_cu_graph_edge_t* a,
                      const kiln_cu_graph_edge_t* b) {
  return a->from_port == b->from_port && a->to_port == b->to_port &&
         a->type == b->type;
}

static void graph_programmatic(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  if (!is_since(t, 9)) {
    tear_down(t, &b);
    return;
  }
  // The second does not wait for the first one's memory: words of their own.
  kiln_cu_graph_node_t nodes[2] = {step(t, &b, 0, 5), step(t, &b, 1, 6)};
  kiln_cu_graph_node_t seen = NULL;
  kiln_cu_graph_edge_t edge;
  size_t count = 1;
  OK(t->cu->cuGraphAddDependencies_v2(b.graph, &nodes[0], &nodes[1],
                                      &kProgrammatic, 1));
  OK(t->cu->cuGraphNodeGetDependencies_v2(nodes[1], &seen, &edge, &count));
  CHECK(count == 1 && seen == nodes[0] && same_edge(&edge, &kProgrammatic));
  run(t, &b, b.graph);
  CHECK(word(t, &b, 0) == 5 && word(t, &b, 1) == 6);
  tear_down(t, &b);
}

static void put_step(contract_t* t, const bench_t* b, unsigned index,
                     uint32_t value, bool early) {
  kiln_cu_deviceptr_t at = b->words + 4 * index;
  void* arguments[] = {&at, &value};
  kiln_cu_launch_attribute_t attribute;
  memset(&attribute, 0, sizeof(attribute));
  attribute.id = KILN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmatic_serialization = 1;
  const kiln_cu_launch_config_t config = {
      1, 1, 1, 1, 1, 1, 0, b->stream, early ? &attribute : NULL, early};
  OK(t->cu->cuLaunchKernelEx(&config, b->step, arguments, NULL));
}

static void capture_programmatic(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  if (!is_since(t, 9)) {
    tear_down(t, &b);
    return;
  }
  kiln_cu_capture_status_t status = 0;
  const kiln_cu_graph_node_t* at = NULL;
  const kiln_cu_graph_edge_t* behind = NULL;
  kiln_cu_graph_t graph = NULL;
  kiln_cu_graph_node_t from[2];
  kiln_cu_graph_node_t to[2];
  kiln_cu_graph_edge_t edges[2];
  size_t count = 0;
  OK(t->cu->cuStreamBeginCapture(b.stream,
                                 KILN_CU_STREAM_CAPTURE_MODE_RELAXED));
  put_step(t, &b, 0, 5, false);
  put_step(t, &b, 1, 6, true);
  // What comes next waits for the second as ever.
  OK(t->cu->cuStreamGetCaptureInfo_v3(b.stream, &status, NULL, NULL, &at,
                                      &behind, &count));
  CHECK(status == KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE && count == 1);
  CHECK(behind == NULL || behind[0].type == 0);
  const kiln_cu_graph_node_t second = at[0];
  put_step(t, &b, 1, 7, false);
  OK(t->cu->cuStreamEndCapture(b.stream, &graph));
  count = 2;
  OK(t->cu->cuGraphGetEdges_v2(graph, from, to, edges, &count));
  CHECK(count == 2);
  for (size_t i = 0; i < 2; i++) {
    const kiln_cu_graph_edge_t plain = {0};
    CHECK(same_edge(&edges[i], to[i] == second ? &kProgrammatic : &plain));
  }
  count = 2;
  IS(LOSSY_QUERY, t->cu->cuGraphGetEdges(graph, from, to, &count));
  run(t, &b, graph);
  CHECK(word(t, &b, 0) == 5 && word(t, &b, 1) == 6 * 3 + 7);
  OK(t->cu->cuGraphDestroy(graph));
  tear_down(t, &b);
}

// ---- Launches that are captured ----

static void capture_launch(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_instantiate_t params = {0, NULL, NULL, 0};
  kiln_cu_graph_exec_t exec = NULL;
  kiln_cu_graph_t graph = NULL;
  (void)step(t, &b, 0, 2);
  OK(t->cu->cuGraphInstantiateWithParams(&exec, b.graph, &params));
  OK(t->cu->cuStreamBeginCapture(b.stream,
                                 KILN_CU_STREAM_CAPTURE_MODE_RELAXED));
  put_step(t, &b, 0, 1, false);
  // An executable is no node: graphs are embedded.
  IS(STREAM_CAPTURE_UNSUPPORTED, t->cu->cuGraphLaunch(exec, b.stream));
  IS(STREAM_CAPTURE_INVALIDATED, t->cu->cuStreamEndCapture(b.stream, &graph));
  CHECK(graph == NULL && word(t, &b, 0) == 0);
  OK(t->cu->cuGraphLaunch(exec, b.stream));
  OK(t->cu->cuStreamSynchronize(b.stream));
  CHECK(word(t, &b, 0) == 2);
  OK(t->cu->cuGraphExecDestroy(exec));
  tear_down(t, &b);
}

// ---- Executables for device code ----

static void nothing(void* user) {
  (void)user;
}

static void graph_device_launch(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_instantiate_t params = {
      KILN_CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH, NULL, NULL, 0};
  kiln_cu_graph_exec_t exec = NULL;
  uint64_t flags = 0;
  (void)step(t, &b, 0, 5);
  OK(t->cu->cuGraphInstantiateWithParams(&exec, b.graph, &params));
  CHECK(params.result == KILN_CUDA_GRAPH_INSTANTIATE_SUCCESS);
  OK(t->cu->cuGraphExecGetFlags(exec, &flags));
  CHECK((flags & KILN_CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0);
  // The host may launch it too.
  OK(t->cu->cuGraphUpload(exec, b.stream));
  OK(t->cu->cuGraphLaunch(exec, b.stream));
  OK(t->cu->cuStreamSynchronize(b.stream));
  CHECK(word(t, &b, 0) == 5);
  OK(t->cu->cuGraphExecDestroy(exec));
  // A host function is nothing that device code could run.
  const kiln_cu_host_node_t host = {nothing, NULL};
  kiln_cu_graph_node_t node = NULL;
  OK(t->cu->cuGraphAddHostNode(&node, b.graph, NULL, 0, &host));
  const kiln_cu_result_t result =
      t->cu->cuGraphInstantiateWithParams(&exec, b.graph, &params);
  CHECK(result != KILN_CU_SUCCESS);
  CHECK(params.result ==
        KILN_CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
  tear_down(t, &b);
}

// ---- An invalidated body ----

static void capture_invalid_body(contract_t* t) {
  bench_t b;
  set_up(t, &b);
  kiln_cu_graph_condition_t handle = 0;
  kiln_cu_graph_node_t node = NULL;
  kiln_cu_graph_t graph = NULL;
  kiln_cu_graph_node_params_t params;
  memset(&params, 0, sizeof(params));
  OK(t->cu->cuGraphConditionalHandleCreate(&handle, b.graph, t->context, 1,
                                           KILN_CU_GRAPH_COND_ASSIGN_DEFAULT));
  params.type = KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.of.conditional.handle = handle;
  params.of.conditional.type = KILN_CU_GRAPH_COND_TYPE_IF;
  params.of.conditional.count = 1;
  params.of.conditional.context = t->context;
  OK(t->cu->cuGraphAddNode(&node, b.graph, NULL, NULL, 0, &params));
  OK(t->cu->cuStreamBeginCaptureToGraph(
      b.stream, params.of.conditional.graphs[0], NULL, NULL, 0,
      KILN_CU_STREAM_CAPTURE_MODE_RELAXED));
  put_step(t, &b, 0, 1, false);
  IS(STREAM_CAPTURE_UNSUPPORTED, t->cu->cuStreamSynchronize(b.stream));
  IS(STREAM_CAPTURE_INVALIDATED, t->cu->cuStreamEndCapture(b.stream, &graph));
  CHECK(graph == NULL);
  tear_down(t, &b);
}

// ---- Memory in numbers ----

static uint64_t memory(contract_t* t, kiln_cu_graph_mem_attribute_t attribute) {
  uint64_t value = UINT64_MAX;
  OK(t->cu->cuDeviceGetGraphMemAttribute(t->device, attribute, &value));
  return value;
}

static void graph_memory_numbers(contract_t* t) {
  enum { BYTES = 1 << 20 };
  bench_t b;
  set_up(t, &b);
  kiln_cu_alloc_node_t params;
  kiln_cu_graph_node_t node = NULL;
  kiln_cu_graph_instantiate_t how = {0, NULL, NULL, 0};
  kiln_cu_graph_exec_t exec = NULL;
  uint64_t value = 0;
  memset(&params, 0, sizeof(params));
  params.pool.allocation = KILN_CU_MEM_ALLOCATION_TYPE_PINNED;
  params.pool.location.type = KILN_CU_MEM_LOCATION_TYPE_DEVICE;
  params.pool.location.id = t->device;
  params.bytes = BYTES;
  OK(t->cu->cuDeviceGraphMemTrim(t->device));
  const uint64_t before = memory(t, KILN_CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
  OK(t->cu->cuGraphAddMemAllocNode(&node, b.graph, NULL, 0, &params));
  OK(t->cu->cuGraphInstantiateWithParams(&exec, b.graph, &how));
  OK(t->cu->cuGraphLaunch(exec, b.stream));
  OK(t->cu->cuStreamSynchronize(b.stream));
  CHECK(memory(t, KILN_CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) >= before + BYTES);
  CHECK(memory(t, KILN_CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) >= before + BYTES);
  CHECK(memory(t, KILN_CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) >= BYTES);
  OK(t->cu->cuMemFree(params.address));
  OK(t->cu->cuGraphExecDestroy(exec));
  CHECK(memory(t, KILN_CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) <=
        memory(t, KILN_CU_GRAPH_MEM_ATTR_USED_MEM_HIGH));
  // A peak takes 0 alone, and begins anew.
  const uint64_t peak = memory(t, KILN_CU_GRAPH_MEM_ATTR_USED_MEM_HIGH);
  CHECK(peak >= before + BYTES);
  OK(t->cu->cuDeviceSetGraphMemAttribute(
      t->device, KILN_CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
  CHECK(memory(t, KILN_CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) <= peak);
  IS(INVALID_VALUE,
     t->cu->cuDeviceSetGraphMemAttribute(
         t->device, KILN_CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value));
  OK(t->cu->cuDeviceGraphMemTrim(t->device));
  tear_down(t, &b);
}

static const contract_case_t cases[] = {
    {"graph_attributes", graph_attributes, CONTRACT_PLAIN},
    {"graph_programmatic", graph_programmatic, CONTRACT_PLAIN},
    {"capture_programmatic", capture_programmatic, CONTRACT_PLAIN},
    {"capture_launch", capture_launch, CONTRACT_PLAIN},
    {"graph_device_launch", graph_device_launch, CONTRACT_PLAIN},
    {"capture_invalid_body", capture_invalid_body, CONTRACT_CHILD},
    {"graph_memory_numbers", graph_memory_numbers, CONTRACT_PLAIN},
};
CONTRACT_GROUP(contract_graph_launch, cases);
