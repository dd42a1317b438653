// SPDX-License-Identifier: Apache-2.0
//
// soft: rows about the edges of graphs.
//
// The older rows know edges without ports and types: where one has some they
// answer LOSSY_QUERY, as a driver does.
#include <string.h>

#include "soft/driver/soft_graph.h"
#include "table/cuda_table.h"

static kiln_cu_graph_node_t graph_edge_handle_of(
    const kilni_soft_node_t* node) {
  return (kiln_cu_graph_node_t)(uintptr_t)node->handle;
}

static bool graph_edge_is_plain(const kiln_cu_graph_edge_t* data) {
  return data->from_port == 0 && data->to_port == 0 && data->type == 0;
}

// The space of a caller for edges, and what has been put there.
typedef struct space_t {
  kiln_cu_graph_node_t* from;
  kiln_cu_graph_node_t* to;
  kiln_cu_graph_edge_t* data;
  size_t space;
  size_t count;
  bool counts;  // only the number is requested
  bool lossy;   // an edge has data that this row cannot return
} space_t;

static void graph_edge_put(space_t* space, const kilni_soft_node_t* from,
                           const kilni_soft_node_t* to,
                           const kiln_cu_graph_edge_t* data) {
  if (!space->counts && space->count >= space->space) return;
  if (!graph_edge_is_plain(data) && space->data == NULL && !space->counts) {
    space->lossy = true;
  }
  if (space->from != NULL) {
    space->from[space->count] = graph_edge_handle_of(from);
  }
  if (space->to != NULL) space->to[space->count] = graph_edge_handle_of(to);
  if (space->data != NULL) space->data[space->count] = *data;
  space->count++;
}

static kiln_cu_result_t graph_edge_give(kilni_soft_driver_t* driver,
                                        const space_t* space, size_t* count) {
  for (size_t i = space->count; !space->counts && i < space->space; i++) {
    if (space->from != NULL) space->from[i] = NULL;
    if (space->to != NULL) space->to[i] = NULL;
  }
  *count = space->count;
  return kilni_soft_leave(
      driver, space->lossy ? KILN_CU_ERROR_LOSSY_QUERY : KILN_CU_SUCCESS);
}

static kiln_cu_result_t row_edges_v2(kiln_cu_graph_t graph,
                                     kiln_cu_graph_node_t* from,
                                     kiln_cu_graph_node_t* to,
                                     kiln_cu_graph_edge_t* edges,
                                     size_t* count) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  const kilni_soft_graph_t* found = kilni_soft_graph_find(driver, graph);
  if (found == NULL || count == NULL || (from == NULL) != (to == NULL) ||
      (from == NULL && edges != NULL)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  space_t space = {.from = from,
                   .to = to,
                   .data = edges,
                   .space = *count,
                   .counts = from == NULL};
  for (size_t i = 0; i < found->count; i++) {
    const kilni_soft_node_t* node = found->nodes[i];
    for (size_t k = 0; k < node->in.count; k++) {
      graph_edge_put(&space, node->in.list[k].from, node,
                     &node->in.list[k].data);
    }
  }
  return graph_edge_give(driver, &space, count);
}

static kiln_cu_result_t row_edges(kiln_cu_graph_t graph,
                                  kiln_cu_graph_node_t* from,
                                  kiln_cu_graph_node_t* to, size_t* count) {
  return row_edges_v2(graph, from, to, NULL, count);
}

static kiln_cu_result_t neighbours(kiln_cu_graph_node_t node, bool behind,
                                   kiln_cu_graph_node_t* nodes,
                                   kiln_cu_graph_edge_t* edges, size_t* count) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  const kilni_soft_node_t* found = kilni_soft_node_find(driver, node);
  if (found == NULL || count == NULL || (nodes == NULL && edges != NULL)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  space_t space = {.data = edges, .space = *count, .counts = nodes == NULL};
  if (behind) {
    space.to = nodes;
  } else {
    space.from = nodes;
  }
  for (size_t k = 0; !behind && k < found->in.count; k++) {
    graph_edge_put(&space, found->in.list[k].from, found,
                   &found->in.list[k].data);
  }
  for (size_t i = 0; behind && i < found->graph->count; i++) {
    const kilni_soft_node_t* other = found->graph->nodes[i];
    for (size_t k = 0; k < other->in.count; k++) {
      if (other->in.list[k].from != found) continue;
      graph_edge_put(&space, found, other, &other->in.list[k].data);
    }
  }
  return graph_edge_give(driver, &space, count);
}

static kiln_cu_result_t row_before(kiln_cu_graph_node_t node,
                                   kiln_cu_graph_node_t* nodes, size_t* count) {
  return neighbours(node, false, nodes, NULL, count);
}

static kiln_cu_result_t row_before_v2(kiln_cu_graph_node_t node,
                                      kiln_cu_graph_node_t* nodes,
                                      kiln_cu_graph_edge_t* edges,
                                      size_t* count) {
  return neighbours(node, false, nodes, edges, count);
}

static kiln_cu_result_t row_behind(kiln_cu_graph_node_t node,
                                   kiln_cu_graph_node_t* nodes, size_t* count) {
  return neighbours(node, true, nodes, NULL, count);
}

static kiln_cu_result_t row_behind_v2(kiln_cu_graph_node_t node,
                                      kiln_cu_graph_node_t* nodes,
                                      kiln_cu_graph_edge_t* edges,
                                      size_t* count) {
  return neighbours(node, true, nodes, edges, count);
}

// ---- Changes ----

static kilni_soft_dependency_t* find_edge(kilni_soft_node_t* to,
                                          const kilni_soft_node_t* from) {
  for (size_t i = 0; i < to->in.count; i++) {
    if (to->in.list[i].from == from) return &to->in.list[i];
  }
  return NULL;
}

static bool same_edge(const kiln_cu_graph_edge_t* a,
                      const kiln_cu_graph_edge_t* b) {
  return a->from_port == b->from_port && a->to_port == b->to_port &&
         a->type == b->type;
}

// One edge more or less. An edge that is there is not added again, one that is
// not there is not taken away.
static kiln_cu_result_t graph_edge_change(kilni_soft_driver_t* driver, bool add,
                                          kilni_soft_node_t* from,
                                          kilni_soft_node_t* to,
                                          const kiln_cu_graph_edge_t* data) {
  static const kiln_cu_graph_edge_t kPlain;
  kilni_soft_dependency_t* edge = find_edge(to, from);
  if (add) {
    if (edge != NULL) return KILN_CU_ERROR_INVALID_VALUE;
    return kilni_soft_dependencies_add(driver, &to->in, from, data);
  }
  if (edge == NULL || !same_edge(&edge->data, data != NULL ? data : &kPlain)) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  size_t at = (size_t)(edge - to->in.list);
  memmove(edge, edge + 1, (to->in.count - at - 1) * sizeof(*edge));
  to->in.count--;
  return KILN_CU_SUCCESS;
}

static bool graph_edge_has_store(const kilni_soft_graph_t* graph) {
  for (size_t i = 0; i < graph->count; i++) {
    if (graph->nodes[i]->type == KILN_CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
        graph->nodes[i]->type == KILN_CU_GRAPH_NODE_TYPE_MEM_FREE) {
      return true;
    }
  }
  return false;
}

// All, or none: what was done before the one that is refused is undone.
static kiln_cu_result_t change_all(kiln_cu_graph_t graph, bool add,
                                   const kiln_cu_graph_node_t* from,
                                   const kiln_cu_graph_node_t* to,
                                   const kiln_cu_graph_edge_t* edges,
                                   size_t count) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  const kilni_soft_graph_t* found = kilni_soft_graph_find(driver, graph);
  if (found == NULL || (count > 0 && (from == NULL || to == NULL))) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  if (!add && graph_edge_has_store(found)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_NOT_SUPPORTED);
  }
  size_t done = 0;
  for (; done < count && result == KILN_CU_SUCCESS; done++) {
    const kiln_cu_graph_edge_t* data = edges != NULL ? &edges[done] : NULL;
    kilni_soft_dependencies_t one;
    result =
        kilni_soft_dependencies_read(driver, found, &from[done], data, 1, &one);
    if (result != KILN_CU_SUCCESS) break;
    kilni_soft_node_t* start = one.list[0].from;
    kilni_soft_dependencies_free(driver, &one);
    kilni_soft_node_t* end = kilni_soft_node_find(driver, to[done]);
    if (end == NULL || end->graph != found || end == start) {
      result = KILN_CU_ERROR_INVALID_VALUE;
      break;
    }
    result = graph_edge_change(driver, add, start, end, data);
    if (result != KILN_CU_SUCCESS) break;
  }
  for (size_t i = done; result != KILN_CU_SUCCESS && i-- > 0;) {
    // It fits where it was a moment ago.
    (void)graph_edge_change(driver, !add, kilni_soft_node_find(driver, from[i]),
                            kilni_soft_node_find(driver, to[i]),
                            edges != NULL ? &edges[i] : NULL);
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t graph_edge_row_add(kiln_cu_graph_t graph,
                                           const kiln_cu_graph_node_t* from,
                                           const kiln_cu_graph_node_t* to,
                                           size_t count) {
  return change_all(graph, true, from, to, NULL, count);
}

static kiln_cu_result_t row_add_v2(kiln_cu_graph_t graph,
                                   const kiln_cu_graph_node_t* from,
                                   const kiln_cu_graph_node_t* to,
                                   const kiln_cu_graph_edge_t* edges,
                                   size_t count) {
  return change_all(graph, true, from, to, edges, count);
}

static kiln_cu_result_t row_remove(kiln_cu_graph_t graph,
                                   const kiln_cu_graph_node_t* from,
                                   const kiln_cu_graph_node_t* to,
                                   size_t count) {
  return change_all(graph, false, from, to, NULL, count);
}

static kiln_cu_result_t row_remove_v2(kiln_cu_graph_t graph,
                                      const kiln_cu_graph_node_t* from,
                                      const kiln_cu_graph_node_t* to,
                                      const kiln_cu_graph_edge_t* edges,
                                      size_t count) {
  return change_all(graph, false, from, to, edges, count);
}

void kilni_soft_fill_graph_edge(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuGraphGetEdges, row_edges);
  KILNI_CUDA_SET(table, cuGraphGetEdges_v2, row_edges_v2);
  KILNI_CUDA_SET(table, cuGraphNodeGetDependencies, row_before);
  KILNI_CUDA_SET(table, cuGraphNodeGetDependencies_v2, row_before_v2);
  KILNI_CUDA_SET(table, cuGraphNodeGetDependentNodes, row_behind);
  KILNI_CUDA_SET(table, cuGraphNodeGetDependentNodes_v2, row_behind_v2);
  KILNI_CUDA_SET(table, cuGraphAddDependencies, graph_edge_row_add);
  KILNI_CUDA_SET(table, cuGraphAddDependencies_v2, row_add_v2);
  KILNI_CUDA_SET(table, cuGraphRemoveDependencies, row_remove);
  KILNI_CUDA_SET(table, cuGraphRemoveDependencies_v2, row_remove_v2);
}
