// SPDX-License-Identifier: Apache-2.0
//
// graph: nodes that a builder itself adds to the capture: host functions with
// retained data, graphs as nodes, conditional nodes.
//
// A node that no stream makes is added after the last node that the stream has
// captured, and then becomes the last itself. If that second step fails, the
// node is removed again, so that every node in the graph is ordered.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "device/device_scope.h"
#include "graph/graph_inside.h"
#include "kiln/capture.h"
#include "kiln/graph.h"

// What a stream has captured last. one-thread
typedef struct tail_t {
  const kiln_cu_graph_node_t* nodes;  // the driver's, until its next call
  const kiln_cu_graph_edge_t* edges;  // NULL: all plain
  size_t count;
  kiln_cu_graph_node_t* own_nodes;
  kiln_cu_graph_edge_t* own_edges;
} tail_t;

static void tail_deinit(tail_t* tail, const kiln_graph_builder_t* builder) {
  kiln_allocator_t allocator = builder->device->host->allocator;
  kilni_base_free_array(allocator, tail->own_nodes, tail->count,
                        sizeof(*tail->own_nodes));
  kilni_base_free_array(allocator, tail->own_edges, tail->count,
                        sizeof(*tail->own_edges));
}

static kiln_status_t ask_tail(const kiln_graph_builder_t* builder,
                              tail_t* tail) {
  kiln_stream_t* stream = builder->stream;
  kiln_cu_capture_status_t capturing = KILN_CU_STREAM_CAPTURE_STATUS_NONE;
  uint64_t id = 0;
  kiln_cu_graph_t graph = NULL;
  kiln_status_t status;
  memset(tail, 0, sizeof(*tail));
  if (kilni_table_cuda_has(builder->device->table,
                           KILNI_CUDA_ROW_cuStreamGetCaptureInfo_v3)) {
    KILNI_CAPTURE_CALL(status, stream, cuStreamGetCaptureInfo_v3,
                       stream->handle, &capturing, &id, &graph, &tail->nodes,
                       &tail->edges, &tail->count);
  } else {
    KILNI_CAPTURE_CALL(status, stream, cuStreamGetCaptureInfo, stream->handle,
                       &capturing, &id, &graph, &tail->nodes, &tail->count);
  }
  KILNI_RETURN_IF_ERROR(status);
  if (capturing == KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE, "the capture was invalidated"),
      "end the builder, or close it, and capture again");
}

// A copy that later calls leave alone.
static kiln_status_t take_tail(const kiln_graph_builder_t* builder,
                               tail_t* tail) {
  kiln_allocator_t allocator = builder->device->host->allocator;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(ask_tail(builder, tail));
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, tail->count, sizeof(*tail->own_nodes), &block));
  tail->own_nodes = block;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, tail->count, sizeof(*tail->own_edges), &block));
  tail->own_edges = block;
  bool plain = true;
  for (size_t i = 0; i < tail->count; i++) {
    tail->own_nodes[i] = tail->nodes[i];
    if (tail->edges == NULL) continue;
    tail->own_edges[i] = tail->edges[i];
    if (tail->edges[i].type != 0 || tail->edges[i].from_port != 0) {
      plain = false;
    }
  }
  tail->nodes = tail->own_nodes;
  tail->edges = plain ? NULL : tail->own_edges;
  return kiln_ok();
}

static kiln_status_t set_tail(const kiln_graph_builder_t* builder,
                              kiln_cu_graph_node_t handle) {
  kiln_stream_t* stream = builder->stream;
  kiln_status_t status;
  KILNI_CAPTURE_CALL(status, stream, cuStreamUpdateCaptureDependencies,
                     stream->handle, &handle, 1,
                     KILN_CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  return status;
}

// After a failure: the node must not stay.
static kiln_status_t capture_nodes_take_back(kiln_graph_node_t* node,
                                             kiln_status_t status) {
  kiln_status_t removed;
  KILNI_GRAPH_CALL(removed, node->graph, cuGraphDestroyNode, node->handle);
  if (kiln_status_is_ok(removed)) {
    kilni_graph_node_forget(node);
    return status;
  }
  return KILNI_ANNOTATE(kilni_base_status_join(status, removed),
                        "the node stays in the graph, without edges");
}

// The node takes its place as the last, or goes again.
static kiln_status_t put_in_order(const kiln_graph_builder_t* builder,
                                  kiln_graph_node_t* node) {
  kiln_status_t status = set_tail(builder, node->handle);
  return kiln_status_is_ok(status) ? kiln_ok()
                                   : capture_nodes_take_back(node, status);
}

// ---- Conditions ----

// While the graph is captured, only a builder may change it.
static kiln_status_t add_condition(kiln_graph_builder_t* builder,
                                   const uint32_t* first,
                                   kiln_graph_condition_t* out_condition) {
  kiln_graph_t* graph = builder->capture->graph;
  uint32_t refuses = graph->refuses;
  graph->refuses = KILNI_GRAPH_OPEN;
  kiln_status_t status = kiln_graph_add_condition(graph, first, out_condition);
  graph->refuses = refuses;
  return status;
}

kiln_status_t kiln_graph_builder_add_condition(
    kiln_graph_builder_t* builder, const uint32_t* first,
    kiln_graph_condition_t* out_condition) {
  KILNI_CHECK_ARGUMENT(out_condition != NULL, "out_condition");
  memset(out_condition, 0, sizeof(*out_condition));
  KILNI_CHECK_ARGUMENT(builder != NULL, "builder");
  KILNI_RETURN_IF_ERROR(
      kilni_graph_builder_check_capturing(builder, "no condition can be made"));
  return add_condition(builder, first, out_condition);
}

// ---- Choices ----

static void release_bodies(kiln_graph_builder_t** bodies, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    kiln_graph_builder_release(bodies[i]);
    bodies[i] = NULL;
  }
}

static kiln_status_t capture_nodes_make_bodies(kiln_graph_builder_t* builder,
                                               uint32_t count,
                                               kiln_graph_builder_t** bodies) {
  for (uint32_t i = 0; i < count; i++) {
    kiln_status_t status = kilni_graph_builder_make(
        builder->device, KILN_GRAPH_BUILDER_BODY, NULL, &bodies[i]);
    if (kiln_status_is_ok(status)) continue;
    release_bodies(bodies, i);
    return status;
  }
  return kiln_ok();
}

// Each body's builder gets its graph.
static kiln_status_t give_graphs(const kiln_graph_builder_t* builder,
                                 kiln_graph_node_t* node,
                                 kiln_graph_builder_t** bodies) {
  kilni_graph_node_more_t* more = node->more;
  for (uint32_t i = 0; i < more->inner_count; i++) {
    KILNI_RETURN_IF_ERROR(
        kilni_graph_make_view(node, more->inner_handles[i], &more->inner[i]));
    bodies[i]->graph = more->inner[i];
    kiln_graph_retain(bodies[i]->graph);
    bodies[i]->outer = builder->capture;
    kilni_graph_capture_retain(bodies[i]->outer);
    bodies[i]->outer_stream = builder->stream;
    kiln_stream_retain(bodies[i]->outer_stream);
  }
  return kiln_ok();
}

static kiln_status_t add_choice(kiln_graph_builder_t* builder,
                                const kiln_graph_conditional_t* given,
                                tail_t* tail, kiln_graph_builder_t** bodies) {
  kiln_graph_t* graph = builder->capture->graph;
  KILNI_RETURN_IF_ERROR(take_tail(builder, tail));
  kiln_graph_node_t* node = NULL;
  KILNI_RETURN_IF_ERROR(kilni_graph_add_choice(graph, tail->nodes, tail->edges,
                                               tail->count, given, &node));
  kiln_status_t status = give_graphs(builder, node, bodies);
  return kiln_status_is_ok(status) ? put_in_order(builder, node)
                                   : capture_nodes_take_back(node, status);
}

kiln_status_t kiln_graph_builder_add_conditional(
    kiln_graph_builder_t* builder, const kiln_graph_conditional_t* conditional,
    kiln_graph_builder_t** out_bodies) {
  KILNI_CHECK_ARGUMENT(out_bodies != NULL, "out_bodies");
  KILNI_CHECK_ARGUMENT(builder != NULL, "builder");
  KILNI_CHECK_ARGUMENT(conditional != NULL, "conditional");
  uint32_t count = conditional->bodies;
  KILNI_CHECK_ARGUMENT_SAYS(
      count >= 1 && count <= KILNI_GRAPH_BODIES, "conditional.bodies",
      "is 0, or over the limit of 1024", "set it to 1 to 1024");
  for (uint32_t i = 0; i < count; i++) out_bodies[i] = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_graph_builder_check_free(builder, "no choice can be captured"));
  KILNI_RETURN_IF_ERROR(kilni_table_cuda_need(
      builder->device->table, KILNI_CUDA_ROW_cuStreamBeginCaptureToGraph));
  KILNI_RETURN_IF_ERROR(capture_nodes_make_bodies(builder, count, out_bodies));
  tail_t tail;
  memset(&tail, 0, sizeof(tail));
  kiln_status_t status = add_choice(builder, conditional, &tail, out_bodies);
  tail_deinit(&tail, builder);
  if (kiln_status_is_ok(status)) return kiln_ok();
  release_bodies(out_bodies, count);
  return KILNI_ANNOTATE(status, "capturing a conditional node");
}

// ---- Graphs as nodes ----

static kiln_status_t call_embed(const kiln_graph_t* graph, const tail_t* tail,
                                kiln_graph_t* child,
                                kiln_cu_graph_node_t* out_handle) {
  kiln_status_t status;
  if (tail->edges == NULL) {
    KILNI_DEVICE_CALL(status, graph->device, cuGraphAddChildGraphNode,
                      out_handle, graph->handle, tail->nodes, tail->count,
                      child->handle);
    return status;
  }
  kiln_cu_graph_node_params_t params;
  memset(&params, 0, sizeof(params));
  params.type = KILN_CU_GRAPH_NODE_TYPE_GRAPH;
  params.of.child.graph = child->handle;
  KILNI_DEVICE_CALL(status, graph->device, cuGraphAddNode, out_handle,
                    graph->handle, tail->nodes, tail->edges, tail->count,
                    &params);
  return status;
}

// A place for what the child keeps, which the node shares from now on.
static kiln_status_t prepare_embed(kiln_graph_t* graph, kiln_graph_t* child,
                                   kilni_graph_wanted_t* wanted,
                                   kilni_graph_bundle_t** out_bundle) {
  KILNI_RETURN_IF_ERROR(kilni_graph_node_reserve(graph));
  kilni_graph_hold_t* hold = NULL;
  KILNI_RETURN_IF_ERROR(kilni_graph_hold_make(child->root, &hold));
  memset(wanted, 0, sizeof(*wanted));
  wanted->count = hold->count > 0 ? 1 : 0;
  wanted->items[0].object = hold;
  wanted->items[0].kind = KILNI_OWNED_HOLD;
  kiln_status_t status = kilni_graph_owners_prepare(graph, wanted, out_bundle);
  kilni_graph_hold_release(hold);  // the bundle has it
  return status;
}

static kiln_status_t embed(kiln_graph_builder_t* builder, kiln_graph_t* child,
                           tail_t* tail) {
  kiln_graph_t* graph = builder->capture->graph;
  KILNI_RETURN_IF_ERROR(take_tail(builder, tail));
  kilni_graph_wanted_t wanted;
  kilni_graph_bundle_t* bundle = NULL;
  KILNI_RETURN_IF_ERROR(prepare_embed(graph, child, &wanted, &bundle));
  kiln_cu_graph_node_t handle = NULL;
  kiln_status_t status = call_embed(graph, tail, child, &handle);
  if (!kiln_status_is_ok(status)) {
    kilni_graph_owners_cancel(bundle);
    return status;
  }
  kilni_graph_owners_commit(graph, bundle, &wanted);
  kiln_graph_node_t* node =
      kilni_graph_node_take(graph, handle, KILN_GRAPH_CHILD);
  node->bundle = bundle;
  // From here on the node shares what the child keeps.
  kilni_graph_owners_seal(child);
  return put_in_order(builder, node);
}

kiln_status_t kiln_graph_builder_embed(kiln_graph_builder_t* builder,
                                       kiln_graph_t* child) {
  KILNI_CHECK_ARGUMENT(builder != NULL, "builder");
  KILNI_CHECK_ARGUMENT(child != NULL, "child");
  KILNI_RETURN_IF_ERROR(
      kilni_graph_builder_check_free(builder, "no graph can be captured"));
  KILNI_RETURN_IF_ERROR(kilni_graph_check(child));
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_driver(builder->device, child->device, "the child"));
  if (child->root == builder->capture->graph->root) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "a graph cannot be a node of itself"),
        "clone it first (kiln_graph_clone)");
  }
  tail_t tail;
  memset(&tail, 0, sizeof(tail));
  kiln_status_t status = kilni_graph_why_no_copy(
      child, "no graph has a child",
      "capture what the child does, or add its nodes to this graph by hand "
      "when it is captured",
      embed(builder, child, &tail));
  tail_deinit(&tail, builder);
  return KILNI_ANNOTATE(status, "capturing a graph as a node");
}

// ---- Host functions ----

// The node that the call became, so that its data is released with it. Where
// the node is unknown, the data stays as long as the graph.
static void find_node(kiln_graph_builder_t* builder,
                      kilni_graph_bundle_t* bundle) {
  kiln_graph_t* graph = builder->capture->graph;
  tail_t tail;
  kiln_status_t status = ask_tail(builder, &tail);
  if (kiln_status_is_ok(status) && tail.count == 1) {
    kiln_cu_graph_node_t handle = tail.nodes[0];
    status = kilni_graph_node_reserve(graph);
    if (kiln_status_is_ok(status)) {
      kiln_graph_node_t* node =
          kilni_graph_node_take(graph, handle, KILN_GRAPH_HOST);
      node->bundle = bundle;
    }
  }
  kiln_status_free(status);
}

static kiln_status_t call_host(kiln_graph_builder_t* builder,
                               kilni_graph_work_t* work) {
  kilni_graph_bundle_t* bundle = NULL;
  KILNI_RETURN_IF_ERROR(kilni_graph_owners_prepare(builder->capture->graph,
                                                   &work->wanted, &bundle));
  kilni_graph_work_use_copy(work, bundle);
  kiln_stream_t* stream = builder->stream;
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuLaunchHostFunc, stream->handle,
                    work->to.host.fn, work->to.host.user);
  if (!kiln_status_is_ok(status)) {
    kilni_graph_owners_cancel(bundle);
    return status;
  }
  kilni_graph_owners_commit(builder->capture->graph, bundle, &work->wanted);
  if (bundle != NULL) find_node(builder, bundle);
  return kiln_ok();
}

kiln_status_t kiln_graph_builder_call_host(kiln_graph_builder_t* builder,
                                           const kiln_graph_host_t* host) {
  KILNI_CHECK_ARGUMENT(builder != NULL, "builder");
  KILNI_CHECK_ARGUMENT(host != NULL, "host");
  KILNI_RETURN_IF_ERROR(kilni_graph_builder_check_free(
      builder, "no host function can be captured"));
  kiln_graph_work_t given;
  given.kind = KILN_GRAPH_HOST;
  given.reserved = 0;
  given.as.host = *host;
  kilni_graph_work_t work;
  kiln_status_t status =
      kilni_graph_work_init(&work, builder->capture->graph, &given);
  if (kiln_status_is_ok(status)) status = call_host(builder, &work);
  kilni_graph_work_deinit(&work, builder->capture->graph);
  return KILNI_ANNOTATE(status, "capturing a host function");
}
