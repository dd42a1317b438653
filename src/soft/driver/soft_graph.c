// SPDX-License-Identifier: Apache-2.0
//
// soft: graphs and their nodes as objects, and the rows that make, copy, list
// and end them.
#include "soft/driver/soft_graph.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "table/cuda_table.h"

// ---- Dependencies ----

static kiln_cu_result_t graph_append(kilni_soft_driver_t* driver,
                                     kilni_soft_dependencies_t* in,
                                     kilni_soft_node_t* from,
                                     const kiln_cu_graph_edge_t* data) {
  void* list = in->list;
  kiln_status_t status =
      kilni_base_grow(driver->host.allocator, in->count + 1, sizeof(*in->list),
                      &in->capacity, &list);
  in->list = list;
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  kilni_soft_dependency_t* one = &in->list[in->count++];
  memset(one, 0, sizeof(*one));
  one->from = from;
  if (data != NULL) one->data = *data;
  return KILN_CU_SUCCESS;
}

kiln_cu_result_t kilni_soft_dependencies_add(kilni_soft_driver_t* driver,
                                             kilni_soft_dependencies_t* in,
                                             kilni_soft_node_t* from,
                                             const kiln_cu_graph_edge_t* data) {
  for (size_t i = 0; i < in->count; i++) {
    if (in->list[i].from == from) return KILN_CU_SUCCESS;
  }
  return graph_append(driver, in, from, data);
}

kiln_cu_result_t kilni_soft_dependencies_copy(
    kilni_soft_driver_t* driver, const kilni_soft_dependencies_t* in,
    kilni_soft_dependencies_t* out_in) {
  memset(out_in, 0, sizeof(*out_in));
  if (in->count == 0) return KILN_CU_SUCCESS;
  void* list = NULL;
  kiln_status_t status =
      kilni_base_grow(driver->host.allocator, in->count, sizeof(*in->list),
                      &out_in->capacity, &list);
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  out_in->list = list;
  out_in->count = in->count;
  memcpy(out_in->list, in->list, in->count * sizeof(*in->list));
  return KILN_CU_SUCCESS;
}

void kilni_soft_dependencies_free(kilni_soft_driver_t* driver,
                                  kilni_soft_dependencies_t* in) {
  kilni_base_free_array(driver->host.allocator, in->list, in->capacity,
                        sizeof(*in->list));
  memset(in, 0, sizeof(*in));
}

// What an edge may be: the ports of a kernel, and nothing else yet.
static bool graph_is_edge(const kiln_cu_graph_edge_t* edge,
                          const kilni_soft_node_t* from) {
  static const unsigned char kNone[sizeof(edge->reserved)];
  bool kernel = from->type == KILN_CU_GRAPH_NODE_TYPE_KERNEL;
  bool plain = edge->from_port == 0 && edge->type == 0;
  bool known = edge->from_port <= KILN_CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER &&
               edge->type <= KILN_CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  return (plain || (kernel && known)) && edge->to_port == 0 &&
         memcmp(edge->reserved, kNone, sizeof(kNone)) == 0;
}

// A node's state while a list is read, which names each only once.
enum { LISTED = 3 };

kiln_cu_result_t kilni_soft_dependencies_read(
    kilni_soft_driver_t* driver, const kilni_soft_graph_t* graph,
    const kiln_cu_graph_node_t* nodes, const kiln_cu_graph_edge_t* edges,
    size_t count, kilni_soft_dependencies_t* out_in) {
  memset(out_in, 0, sizeof(*out_in));
  if (count == 0) return KILN_CU_SUCCESS;
  if (nodes == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  kiln_cu_result_t result = KILN_CU_SUCCESS;
  for (size_t i = 0; i < count && result == KILN_CU_SUCCESS; i++) {
    kilni_soft_node_t* from = kilni_soft_node_find(driver, nodes[i]);
    const kiln_cu_graph_edge_t* edge = edges != NULL ? &edges[i] : NULL;
    if (from == NULL || from->graph != graph ||
        (edge != NULL && !graph_is_edge(edge, from))) {
      result = KILN_CU_ERROR_INVALID_VALUE;
      break;
    }
    if (from->state == LISTED) {
      result = KILN_CU_ERROR_INVALID_VALUE;
      break;
    }
    result = graph_append(driver, out_in, from, edge);
    if (result == KILN_CU_SUCCESS) from->state = LISTED;
  }
  for (size_t i = 0; i < out_in->count; i++) out_in->list[i].from->state = 0;
  if (result != KILN_CU_SUCCESS) kilni_soft_dependencies_free(driver, out_in);
  return result;
}

// ---- Nodes ----

kilni_soft_node_t* kilni_soft_node_find(const kilni_soft_driver_t* driver,
                                        kiln_cu_graph_node_t node) {
  return kilni_soft_handle_get(&driver->handles, KILNI_SOFT_KIND_NODE,
                               (uintptr_t)node);
}

kilni_soft_node_t* kilni_soft_graph_node(const kilni_soft_graph_t* graph,
                                         uint64_t number) {
  size_t low = 0;
  size_t high = graph->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (graph->nodes[middle]->number < number) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == graph->count || graph->nodes[low]->number != number) return NULL;
  return graph->nodes[low];
}

// The graphs inside a node know it.
static void graph_adopt(kilni_soft_node_t* node) {
  if (node->type == KILN_CU_GRAPH_NODE_TYPE_GRAPH) {
    node->as.child->of = node;
  } else if (node->type == KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL) {
    for (uint32_t i = 0; i < node->as.condition.count; i++) {
      node->as.condition.bodies[i]->of = node;
      node->as.condition.bodies[i]->is_body = true;
    }
  }
}

static void free_node(kilni_soft_driver_t* driver, kilni_soft_node_t* node) {
  kilni_soft_doing_free(driver, node->type, &node->as);
  kilni_soft_dependencies_free(driver, &node->in);
  kilni_base_strfree(driver->host.allocator, node->label);
  if (node->handle != 0) {
    kilni_soft_handle_remove(&driver->handles, node->handle);
  }
  kilni_base_free(driver->host.allocator, node, sizeof(*node));
}

kiln_cu_result_t kilni_soft_node_new(kilni_soft_driver_t* driver,
                                     kilni_soft_graph_t* graph, uint32_t type,
                                     const kilni_soft_dependencies_t* in,
                                     bool handles,
                                     const kilni_soft_doing_t* doing,
                                     kilni_soft_node_t** out_node) {
  *out_node = NULL;
  void* nodes = graph->nodes;
  kiln_status_t status =
      kilni_base_grow(driver->host.allocator, graph->count + 1,
                      sizeof(kilni_soft_node_t*), &graph->capacity, &nodes);
  graph->nodes = nodes;
  kilni_soft_node_t* node = NULL;
  if (kiln_status_is_ok(status)) {
    status =
        kilni_base_alloc(driver->host.allocator, sizeof(*node), (void**)&node);
  }
  if (kiln_status_is_ok(status) && handles) {
    status = kilni_soft_handle_add(&driver->handles, KILNI_SOFT_KIND_NODE, node,
                                   &node->handle);
  }
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(driver->host.allocator, node, sizeof(*node));
    return kilni_soft_result(status);
  }
  node->graph = graph;
  node->number = ++graph->next_number;
  node->type = type;
  if (in != NULL) node->in = *in;
  if (doing != NULL) node->as = *doing;
  graph->nodes[graph->count++] = node;
  graph_adopt(node);
  *out_node = node;
  return KILN_CU_SUCCESS;
}

static void forget_edges(kilni_soft_graph_t* graph,
                         const kilni_soft_node_t* node) {
  for (size_t i = 0; i < graph->count; i++) {
    kilni_soft_dependencies_t* in = &graph->nodes[i]->in;
    for (size_t k = 0; k < in->count; k++) {
      if (in->list[k].from != node) continue;
      memmove(&in->list[k], &in->list[k + 1],
              (in->count - k - 1) * sizeof(*in->list));
      in->count--;
      break;
    }
  }
}

// Takes it out of its graph, with the edges, and frees it.
static void end_node(kilni_soft_driver_t* driver, kilni_soft_node_t* node) {
  kilni_soft_graph_t* graph = node->graph;
  kilni_soft_capture_lose(driver, node);
  forget_edges(graph, node);
  for (size_t i = 0; i < graph->count; i++) {
    if (graph->nodes[i] != node) continue;
    memmove(&graph->nodes[i], &graph->nodes[i + 1],
            (graph->count - i - 1) * sizeof(kilni_soft_node_t*));
    graph->count--;
    break;
  }
  free_node(driver, node);
}

// ---- Graphs ----

kiln_cu_result_t kilni_soft_graph_new(kilni_soft_driver_t* driver,
                                      kilni_soft_graph_t** out_graph) {
  kilni_soft_graph_t* graph = NULL;
  kiln_status_t status =
      kilni_base_alloc(driver->host.allocator, sizeof(*graph), (void**)&graph);
  *out_graph = graph;
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  graph->serial = ++driver->serials;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t add_handle(kilni_soft_driver_t* driver,
                                   kilni_soft_graph_t* graph) {
  return kilni_soft_result(kilni_soft_handle_add(
      &driver->handles, KILNI_SOFT_KIND_GRAPH, graph, &graph->handle));
}

kiln_cu_result_t kilni_soft_graph_publish(kilni_soft_driver_t* driver,
                                          kilni_soft_graph_t* graph) {
  kiln_cu_result_t result = KILN_CU_SUCCESS;
  if (graph->handle == 0) result = add_handle(driver, graph);
  if (result != KILN_CU_SUCCESS) return result;
  graph->next = driver->graphs;
  driver->graphs = graph;
  return KILN_CU_SUCCESS;
}

kilni_soft_graph_t* kilni_soft_graph_find(const kilni_soft_driver_t* driver,
                                          kiln_cu_graph_t graph) {
  return kilni_soft_handle_get(&driver->handles, KILNI_SOFT_KIND_GRAPH,
                               (uintptr_t)graph);
}

kilni_soft_graph_t* kilni_soft_graph_top(kilni_soft_graph_t* graph) {
  while (graph->of != NULL) graph = graph->of->graph;
  return graph;
}

void kilni_soft_graph_free(kilni_soft_driver_t* driver,
                           kilni_soft_graph_t* graph) {
  kilni_soft_graph_t** link = &driver->graphs;
  while (*link != NULL && *link != graph) link = &(*link)->next;
  if (*link != NULL) *link = graph->next;
  if (graph->capture != NULL && !graph->capture->is_own) {
    // A graph that a capture adds to is destroyed: there is nothing to end.
    (void)kilni_soft_capture_break(driver, graph->capture, "cuGraphDestroy",
                                   KILN_CU_ERROR_STREAM_CAPTURE_INVALIDATED);
    graph->capture->graph = NULL;
  }
  for (size_t i = graph->count; i-- > 0;) {
    kilni_soft_capture_lose(driver, graph->nodes[i]);
    free_node(driver, graph->nodes[i]);
  }
  kilni_base_free_array(driver->host.allocator, graph->nodes, graph->capacity,
                        sizeof(kilni_soft_node_t*));
  kilni_base_free_array(driver->host.allocator, graph->order,
                        graph->order_count, sizeof(kilni_soft_node_t*));
  kilni_soft_holdings_free(driver, graph);
  kilni_soft_values_free(driver, graph);
  if (graph->handle != 0) {
    kilni_soft_handle_remove(&driver->handles, graph->handle);
  }
  kilni_base_free(driver->host.allocator, graph, sizeof(*graph));
}

static kiln_cu_result_t copy_node(kilni_soft_driver_t* driver,
                                  const kilni_soft_node_t* node, bool handles,
                                  kilni_soft_graph_t* copy) {
  kilni_soft_doing_t doing;
  memset(&doing, 0, sizeof(doing));
  kiln_cu_result_t result =
      kilni_soft_doing_copy(driver, node->type, &node->as, handles, &doing);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_node_t* made = NULL;
  result = kilni_soft_node_new(driver, copy, node->type, NULL, handles, &doing,
                               &made);
  if (result != KILN_CU_SUCCESS) {
    kilni_soft_doing_free(driver, node->type, &doing);
    return result;
  }
  made->number = node->number;
  made->disabled = node->disabled;
  made->call = node->call;
  if (node->label == NULL) return KILN_CU_SUCCESS;
  return kilni_soft_result(kilni_base_strdup(
      driver->host.allocator, kilni_base_sv(node->label), &made->label));
}

// The edges, when all nodes are there.
static kiln_cu_result_t copy_edges(kilni_soft_driver_t* driver,
                                   const kilni_soft_graph_t* graph,
                                   kilni_soft_graph_t* copy) {
  for (size_t i = 0; i < graph->count; i++) {
    const kilni_soft_dependencies_t* in = &graph->nodes[i]->in;
    kilni_soft_dependencies_t* to = &copy->nodes[i]->in;
    kiln_cu_result_t result = kilni_soft_dependencies_copy(driver, in, to);
    if (result != KILN_CU_SUCCESS) return result;
    for (size_t k = 0; k < to->count; k++) {
      to->list[k].from = kilni_soft_graph_node(copy, in->list[k].from->number);
    }
  }
  return KILN_CU_SUCCESS;
}

kiln_cu_result_t kilni_soft_graph_copy(kilni_soft_driver_t* driver,
                                       const kilni_soft_graph_t* graph,
                                       bool handles,
                                       kilni_soft_graph_t** out_copy) {
  kilni_soft_graph_t* copy = NULL;
  *out_copy = NULL;
  kiln_cu_result_t result = kilni_soft_graph_new(driver, &copy);
  if (result != KILN_CU_SUCCESS) return result;
  copy->origin = graph->serial;
  copy->is_body = graph->is_body;
  if (handles) result = add_handle(driver, copy);
  for (size_t i = 0; i < graph->count && result == KILN_CU_SUCCESS; i++) {
    result = copy_node(driver, graph->nodes[i], handles, copy);
  }
  copy->next_number = graph->next_number;
  if (result == KILN_CU_SUCCESS) result = copy_edges(driver, graph, copy);
  for (size_t i = 0; i < graph->holding_count && result == KILN_CU_SUCCESS;
       i++) {
    result = kilni_soft_holding_add(driver, copy, graph->holdings[i].object,
                                    graph->holdings[i].count);
  }
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_values_copy(driver, graph, copy);
  }
  if (result == KILN_CU_SUCCESS) {
    *out_copy = copy;
  } else {
    kilni_soft_graph_free(driver, copy);
  }
  return result;
}

void kilni_soft_graphs_clear(kilni_soft_driver_t* driver) {
  while (driver->captures != NULL) {
    kilni_soft_capture_t* capture = driver->captures;
    driver->captures = capture->next;
    if (capture->is_own && capture->graph != NULL) {
      kilni_soft_graph_free(driver, capture->graph);
    }
    kilni_base_free(driver->host.allocator, capture, sizeof(*capture));
  }
  while (driver->execs != NULL) {
    kilni_soft_exec_t* exec = driver->execs;
    exec->refs = 1;
    kilni_soft_exec_release(driver, exec);
  }
  while (driver->graphs != NULL) kilni_soft_graph_free(driver, driver->graphs);
  // What the program still refers to is not ended: its destructor is not
  // called, as at the end of a process.
  while (driver->objects != NULL) {
    kilni_soft_object_t* object = driver->objects;
    driver->objects = object->next;
    kilni_soft_handle_remove(&driver->handles, object->handle);
    kilni_base_free(driver->host.allocator, object, sizeof(*object));
  }
}

// ---- Rows ----

// Enters a row about a graph.
static kiln_cu_result_t enter_graph(kiln_cu_graph_t graph, bool good,
                                    kilni_soft_driver_t** out_driver,
                                    kilni_soft_graph_t** out_graph) {
  kiln_cu_result_t result =
      kilni_soft_enter(KILNI_SOFT_NEEDS_START, out_driver);
  if (result != KILN_CU_SUCCESS) return result;
  *out_graph = kilni_soft_graph_find(*out_driver, graph);
  if (good && *out_graph != NULL) return KILN_CU_SUCCESS;
  return kilni_soft_leave(*out_driver, KILN_CU_ERROR_INVALID_VALUE);
}

static kiln_cu_result_t enter_node(kiln_cu_graph_node_t node, bool good,
                                   kilni_soft_driver_t** out_driver,
                                   kilni_soft_node_t** out_node) {
  kiln_cu_result_t result =
      kilni_soft_enter(KILNI_SOFT_NEEDS_START, out_driver);
  if (result != KILN_CU_SUCCESS) return result;
  *out_node = kilni_soft_node_find(*out_driver, node);
  if (good && *out_node != NULL) return KILN_CU_SUCCESS;
  return kilni_soft_leave(*out_driver, KILN_CU_ERROR_INVALID_VALUE);
}

static kiln_cu_result_t graph_row_create(kiln_cu_graph_t* graph,
                                         unsigned int flags) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (graph == NULL || flags != 0) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  kilni_soft_graph_t* made = NULL;
  result = kilni_soft_graph_new(driver, &made);
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_graph_publish(driver, made);
    if (result != KILN_CU_SUCCESS) kilni_soft_graph_free(driver, made);
  }
  if (result == KILN_CU_SUCCESS) {
    *graph = (kiln_cu_graph_t)(uintptr_t)made->handle;
  }
  return kilni_soft_leave(driver, result);
}

// A child's and a body's end with their node; what is captured is the
// capture's.
static kiln_cu_result_t graph_row_destroy(kiln_cu_graph_t graph) {
  kilni_soft_driver_t* driver;
  kilni_soft_graph_t* found;
  kiln_cu_result_t result = enter_graph(graph, true, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  if (found->of != NULL || found->capture != NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  kilni_soft_graph_free(driver, found);
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static bool graph_has_store(const kilni_soft_graph_t* graph) {
  for (size_t i = 0; i < graph->count; i++) {
    if (graph->nodes[i]->type == KILN_CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
        graph->nodes[i]->type == KILN_CU_GRAPH_NODE_TYPE_MEM_FREE) {
      return true;
    }
  }
  return false;
}

static kiln_cu_result_t row_clone(kiln_cu_graph_t* clone,
                                  kiln_cu_graph_t graph) {
  kilni_soft_driver_t* driver;
  kilni_soft_graph_t* found;
  kiln_cu_result_t result = enter_graph(graph, clone != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  if (graph_has_store(found) || kilni_soft_graph_chooses(found)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_NOT_SUPPORTED);
  }
  kilni_soft_graph_t* copy = NULL;
  result = kilni_soft_graph_copy(driver, found, true, &copy);
  if (result == KILN_CU_SUCCESS) {
    copy->is_body = false;
    result = kilni_soft_graph_publish(driver, copy);
    if (result != KILN_CU_SUCCESS) kilni_soft_graph_free(driver, copy);
  }
  if (result == KILN_CU_SUCCESS) {
    *clone = (kiln_cu_graph_t)(uintptr_t)copy->handle;
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_find(kiln_cu_graph_node_t* node,
                                 kiln_cu_graph_node_t original,
                                 kiln_cu_graph_t clone) {
  kilni_soft_driver_t* driver;
  kilni_soft_graph_t* graph;
  kiln_cu_result_t result = enter_graph(clone, node != NULL, &driver, &graph);
  if (result != KILN_CU_SUCCESS) return result;
  const kilni_soft_node_t* from = kilni_soft_node_find(driver, original);
  const kilni_soft_node_t* found = NULL;
  if (from != NULL && graph->origin == from->graph->serial) {
    found = kilni_soft_graph_node(graph, from->number);
  }
  if (found == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  *node = (kiln_cu_graph_node_t)(uintptr_t)found->handle;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

// Gives the nodes of a graph, or its roots: as many as there is space for,
// followed by NULL.
static kiln_cu_result_t list_nodes(kiln_cu_graph_t graph, bool roots,
                                   kiln_cu_graph_node_t* nodes, size_t* count) {
  kilni_soft_driver_t* driver;
  kilni_soft_graph_t* found;
  kiln_cu_result_t result = enter_graph(graph, count != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  size_t all = 0;
  for (size_t i = 0; i < found->count; i++) {
    if (roots && found->nodes[i]->in.count > 0) continue;
    if (nodes != NULL && all < *count) {
      nodes[all] = (kiln_cu_graph_node_t)(uintptr_t)found->nodes[i]->handle;
    }
    if (nodes == NULL || all < *count) all++;
  }
  for (size_t i = all; nodes != NULL && i < *count; i++) nodes[i] = NULL;
  *count = all;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t row_nodes(kiln_cu_graph_t graph,
                                  kiln_cu_graph_node_t* nodes, size_t* count) {
  return list_nodes(graph, false, nodes, count);
}

static kiln_cu_result_t row_roots(kiln_cu_graph_t graph,
                                  kiln_cu_graph_node_t* nodes, size_t* count) {
  return list_nodes(graph, true, nodes, count);
}

static kiln_cu_result_t row_destroy_node(kiln_cu_graph_node_t node) {
  kilni_soft_driver_t* driver;
  kilni_soft_node_t* found;
  kiln_cu_result_t result = enter_node(node, true, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  if (graph_has_store(found->graph)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_NOT_SUPPORTED);
  }
  end_node(driver, found);
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t row_type(kiln_cu_graph_node_t node,
                                 kiln_cu_graph_node_type_t* type) {
  kilni_soft_driver_t* driver;
  kilni_soft_node_t* found;
  kiln_cu_result_t result = enter_node(node, type != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  *type = found->type;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

void kilni_soft_fill_graph(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuGraphCreate, graph_row_create);
  KILNI_CUDA_SET(table, cuGraphDestroy, graph_row_destroy);
  KILNI_CUDA_SET(table, cuGraphClone, row_clone);
  KILNI_CUDA_SET(table, cuGraphNodeFindInClone, row_find);
  KILNI_CUDA_SET(table, cuGraphGetNodes, row_nodes);
  KILNI_CUDA_SET(table, cuGraphGetRootNodes, row_roots);
  KILNI_CUDA_SET(table, cuGraphDestroyNode, row_destroy_node);
  KILNI_CUDA_SET(table, cuGraphNodeGetType, row_type);
}
