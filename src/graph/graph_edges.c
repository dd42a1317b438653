// SPDX-License-Identifier: Apache-2.0
//
// graph: edges: added, taken away, listed.
//
// A driver of CUDA 12.3 knows edges that are not plain; an older one has plain
// edges only, which the old query returns.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "device/device_scope.h"
#include "graph/graph_inside.h"
#include "kiln/graph.h"

static kiln_allocator_t edges_allocator_of(const kiln_graph_t* graph) {
  return graph->device->host->allocator;
}

static bool edges_has_kinds(const kiln_graph_t* graph) {
  return kilni_table_cuda_has(graph->device->table,
                              KILNI_CUDA_ROW_cuGraphGetEdges_v2);
}

// Lists of both ends, for the driver. one-thread
typedef struct ends_t {
  size_t space;
  kiln_cu_graph_node_t* from;
  kiln_cu_graph_node_t* to;
  kiln_cu_graph_edge_t* edges;
} ends_t;

static void ends_deinit(ends_t* ends, const kiln_graph_t* graph) {
  kiln_allocator_t allocator = edges_allocator_of(graph);
  kilni_base_free_array(allocator, ends->from, ends->space,
                        sizeof(ends->from[0]));
  kilni_base_free_array(allocator, ends->to, ends->space, sizeof(ends->to[0]));
  kilni_base_free_array(allocator, ends->edges, ends->space,
                        sizeof(ends->edges[0]));
}

static kiln_status_t ends_init(ends_t* ends, const kiln_graph_t* graph,
                               size_t space) {
  kiln_allocator_t allocator = edges_allocator_of(graph);
  void* block = NULL;
  memset(ends, 0, sizeof(*ends));
  ends->space = space;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(allocator, space, sizeof(ends->from[0]), &block));
  ends->from = block;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(allocator, space, sizeof(ends->to[0]), &block));
  ends->to = block;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(allocator, space, sizeof(ends->edges[0]), &block));
  ends->edges = block;
  return kiln_ok();
}

// ---- Added and taken away ----

static kiln_status_t check_node(const kiln_graph_t* graph,
                                const kiln_graph_node_t* node, uint32_t index,
                                const char* end) {
  if (node != NULL && node->graph == graph) return kilni_graph_node_check(node);
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "edge %u: `%s` is %s", (unsigned)index, end,
                 node == NULL ? "NULL" : "a node of another graph"),
      "connect nodes of one graph");
}

static kiln_status_t take_edge(const kiln_graph_t* graph,
                               const kiln_graph_edge_t* edge, uint32_t index,
                               ends_t* ends, bool* inout_plain) {
  KILNI_CHECK_RESERVED(edge->reserved, kiln_graph_edge_t);
  KILNI_RETURN_IF_ERROR(check_node(graph, edge->from, index, "from"));
  KILNI_RETURN_IF_ERROR(check_node(graph, edge->to, index, "to"));
  if (edge->from == edge->to) {
    char text[KILNI_NODE_TEXT];
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "edge %u: the node \"%s\" would wait for itself",
                   (unsigned)index, kilni_graph_node_says(edge->to, text)),
        "connect two nodes");
  }
  if (edge->from_port > KILN_GRAPH_PORT_START || edge->to_port != 0 ||
      edge->type > KILN_GRAPH_EDGE_PROGRAMMATIC) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "edge %u: from port %u to port %u of type %u",
                   (unsigned)index, (unsigned)edge->from_port,
                   (unsigned)edge->to_port, (unsigned)edge->type),
        "use KILN_GRAPH_PORT_..., 0 and KILN_GRAPH_EDGE_...");
  }
  ends->from[index] = edge->from->handle;
  ends->to[index] = edge->to->handle;
  ends->edges[index].from_port = (unsigned char)edge->from_port;
  ends->edges[index].type = (unsigned char)edge->type;
  if (edge->from_port != 0 || edge->type != 0) *inout_plain = false;
  return kiln_ok();
}

static kiln_status_t edges_call(kiln_graph_t* graph, const ends_t* ends,
                                bool plain, bool add) {
  kiln_device_t* device = graph->device;
  const kiln_cuda_table_t* table = device->table;
  kiln_status_t s;
  if (!plain) {
    KILNI_RETURN_IF_ERROR(
        kilni_table_cuda_need(table, KILNI_CUDA_ROW_cuGraphAddDependencies_v2));
  }
  if (plain && add) {
    KILNI_DEVICE_CALL(s, device, cuGraphAddDependencies, graph->handle,
                      ends->from, ends->to, ends->space);
  } else if (plain) {
    KILNI_DEVICE_CALL(s, device, cuGraphRemoveDependencies, graph->handle,
                      ends->from, ends->to, ends->space);
  } else if (add) {
    KILNI_DEVICE_CALL(s, device, cuGraphAddDependencies_v2, graph->handle,
                      ends->from, ends->to, ends->edges, ends->space);
  } else {
    KILNI_DEVICE_CALL(s, device, cuGraphRemoveDependencies_v2, graph->handle,
                      ends->from, ends->to, ends->edges, ends->space);
  }
  return s;
}

static kiln_status_t edges_change(kiln_graph_t* graph,
                                  const kiln_graph_edge_t* edges,
                                  uint32_t count, bool add) {
  KILNI_CHECK_ARGUMENT(graph != NULL, "graph");
  KILNI_CHECK_ARGUMENT(edges != NULL || count == 0, "edges");
  KILNI_RETURN_IF_ERROR(kilni_graph_check(graph));
  if (count == 0) return kiln_ok();
  ends_t ends;
  bool plain = true;
  kiln_status_t status = ends_init(&ends, graph, count);
  for (uint32_t i = 0; i < count && kiln_status_is_ok(status); i++) {
    status = take_edge(graph, &edges[i], i, &ends, &plain);
  }
  if (kiln_status_is_ok(status)) {
    status = kilni_graph_why_no_edge(graph, edges, count, add,
                                     edges_call(graph, &ends, plain, add));
  }
  ends_deinit(&ends, graph);
  return KILNI_ANNOTATE(status, "%s %u edge%s", add ? "adding" : "taking away",
                        (unsigned)count, count == 1 ? "" : "s");
}

kiln_status_t kiln_graph_connect(kiln_graph_t* graph,
                                 const kiln_graph_edge_t* edges,
                                 uint32_t edge_count) {
  return edges_change(graph, edges, edge_count, true);
}

kiln_status_t kiln_graph_disconnect(kiln_graph_t* graph,
                                    const kiln_graph_edge_t* edges,
                                    uint32_t edge_count) {
  return edges_change(graph, edges, edge_count, false);
}

// ---- Listed ----

static kiln_status_t ask_edges(kiln_graph_t* graph, ends_t* ends,
                               size_t* inout_count) {
  kiln_status_t status;
  kiln_device_t* device = graph->device;
  if (edges_has_kinds(graph)) {
    KILNI_DEVICE_CALL(status, device, cuGraphGetEdges_v2, graph->handle,
                      ends->from, ends->to, ends->edges, inout_count);
  } else {
    KILNI_DEVICE_CALL(status, device, cuGraphGetEdges, graph->handle,
                      ends->from, ends->to, inout_count);
  }
  return status;
}

static kiln_status_t read_edge(kiln_graph_t* graph, const ends_t* ends,
                               size_t index, kiln_graph_edge_t* out_edge) {
  memset(out_edge, 0, sizeof(*out_edge));
  KILNI_RETURN_IF_ERROR(
      kilni_graph_lookup(graph, ends->from[index], &out_edge->from));
  KILNI_RETURN_IF_ERROR(
      kilni_graph_lookup(graph, ends->to[index], &out_edge->to));
  out_edge->from_port = ends->edges[index].from_port;
  out_edge->to_port = ends->edges[index].to_port;
  out_edge->type = ends->edges[index].type;
  return kiln_ok();
}

kiln_status_t kiln_graph_edges(kiln_graph_t* graph, uint32_t capacity,
                               kiln_graph_edge_t* out_edges,
                               uint32_t* out_count) {
  KILNI_CHECK_ARGUMENT(out_count != NULL, "out_count");
  *out_count = 0;
  KILNI_CHECK_ARGUMENT(graph != NULL, "graph");
  KILNI_CHECK_ARGUMENT(out_edges != NULL || capacity == 0, "out_edges");
  KILNI_RETURN_IF_ERROR(kilni_graph_check(graph));
  ends_t ends;
  memset(&ends, 0, sizeof(ends));
  size_t count = 0;
  KILNI_RETURN_IF_ERROR(ask_edges(graph, &ends, &count));
  if (capacity == 0 || count == 0) {
    *out_count = (uint32_t)count;
    return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(kilni_graph_meet_all(graph));
  kiln_status_t status = ends_init(&ends, graph, count);
  if (kiln_status_is_ok(status)) status = ask_edges(graph, &ends, &count);
  for (size_t i = 0; i < count && i < capacity && kiln_status_is_ok(status);
       i++) {
    status = read_edge(graph, &ends, i, &out_edges[i]);
  }
  ends_deinit(&ends, graph);
  if (kiln_status_is_ok(status)) *out_count = (uint32_t)count;
  return status;
}

static kiln_status_t ask_beside(const kiln_graph_node_t* node, bool before,
                                ends_t* ends, size_t* inout_count) {
  kiln_device_t* device = node->graph->device;
  kiln_status_t s;
  bool kinds = edges_has_kinds(node->graph);
  if (kinds && before) {
    KILNI_DEVICE_CALL(s, device, cuGraphNodeGetDependencies_v2, node->handle,
                      ends->from, ends->edges, inout_count);
  } else if (kinds) {
    KILNI_DEVICE_CALL(s, device, cuGraphNodeGetDependentNodes_v2, node->handle,
                      ends->from, ends->edges, inout_count);
  } else if (before) {
    KILNI_DEVICE_CALL(s, device, cuGraphNodeGetDependencies, node->handle,
                      ends->from, inout_count);
  } else {
    KILNI_DEVICE_CALL(s, device, cuGraphNodeGetDependentNodes, node->handle,
                      ends->from, inout_count);
  }
  return s;
}

static kiln_status_t beside(kiln_graph_node_t* node, bool before,
                            uint32_t capacity, kiln_graph_node_t** out_nodes,
                            uint32_t* out_count) {
  KILNI_CHECK_ARGUMENT(out_count != NULL, "out_count");
  *out_count = 0;
  KILNI_CHECK_ARGUMENT(node != NULL, "node");
  KILNI_CHECK_ARGUMENT(out_nodes != NULL || capacity == 0, "out_nodes");
  KILNI_RETURN_IF_ERROR(kilni_graph_node_check(node));
  ends_t ends;
  memset(&ends, 0, sizeof(ends));
  size_t count = 0;
  KILNI_RETURN_IF_ERROR(ask_beside(node, before, &ends, &count));
  if (capacity == 0 || count == 0) {
    *out_count = (uint32_t)count;
    return kiln_ok();
  }
  kiln_graph_t* graph = node->graph;
  KILNI_RETURN_IF_ERROR(kilni_graph_meet_all(graph));
  kiln_status_t status = ends_init(&ends, graph, count);
  if (kiln_status_is_ok(status)) {
    status = ask_beside(node, before, &ends, &count);
  }
  for (size_t i = 0; i < count && i < capacity && kiln_status_is_ok(status);
       i++) {
    status = kilni_graph_lookup(graph, ends.from[i], &out_nodes[i]);
  }
  ends_deinit(&ends, graph);
  if (kiln_status_is_ok(status)) *out_count = (uint32_t)count;
  return status;
}

kiln_status_t kiln_graph_node_before(kiln_graph_node_t* node, uint32_t capacity,
                                     kiln_graph_node_t** out_nodes,
                                     uint32_t* out_count) {
  return beside(node, true, capacity, out_nodes, out_count);
}

kiln_status_t kiln_graph_node_after(kiln_graph_node_t* node, uint32_t capacity,
                                    kiln_graph_node_t** out_nodes,
                                    uint32_t* out_count) {
  return beside(node, false, capacity, out_nodes, out_count);
}
