// SPDX-License-Identifier: Apache-2.0
//
// graph: why a driver refuses what memory and conditional nodes in graphs
// cannot do. It returns one result for all of it; the nodes show which rule was
// broken.
#include <stdio.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "device/device_scope.h"
#include "graph/graph_inside.h"
#include "kiln/graph.h"

static bool is_result(kiln_status_t status, int64_t number) {
  kiln_status_native_t native;
  return kiln_status_native(status, &native) && native.number == number;
}

// `better` in the place of `status`, with the driver's own result.
static kiln_status_t instead(kiln_status_t status, kiln_status_t better) {
  kiln_status_native_t native;
  if (kiln_status_native(status, &native)) {
    better = kilni_base_status_with_native(better, native.domain, native.number,
                                           native.name);
  }
  kiln_status_free(status);
  return better;
}

// INVALID_ARGUMENT in the place of `status`: a node that is there has already
// what is given to another one. The message is `what`, its name, `how`.
static kiln_status_t has_it(kiln_status_t status, const kiln_graph_node_t* node,
                            const char* what, const char* how,
                            const char* fix) {
  char text[KILNI_NODE_TEXT];
  kiln_status_t better = KILNI_FAIL(INVALID_ARGUMENT, "%s node \"%s\"%s", what,
                                    kilni_graph_node_says(node, text), how);
  return instead(status, kilni_base_status_with_fix(better, "%s", fix));
}

// The first node of one of two kinds; NULL if there is none.
static kiln_graph_node_t* why_first_of(kiln_graph_t* graph, uint32_t kind,
                                       uint32_t other) {
  kiln_status_free(kilni_graph_meet_all(graph));
  for (uint32_t i = 0; i < graph->node_count; i++) {
    kiln_graph_node_t* node = kilni_graph_node_at(graph, i);
    if (node->handle == NULL) continue;
    if (node->kind == kind || node->kind == other) return node;
  }
  return NULL;
}

kiln_status_t kilni_graph_why_no_copy(kiln_graph_t* graph, const char* what,
                                      const char* fix, kiln_status_t status) {
  if (!is_result(status, KILN_CU_ERROR_NOT_SUPPORTED)) return status;
  kiln_graph_node_t* node =
      why_first_of(graph, KILN_GRAPH_ALLOCATE, KILN_GRAPH_FREE);
  if (node == NULL) {
    node = why_first_of(graph, KILN_GRAPH_CONDITIONAL, KILN_GRAPH_CONDITIONAL);
  }
  if (node == NULL) return status;
  char text[KILNI_NODE_TEXT];
  return instead(status, kilni_base_status_with_fix(
                             KILNI_FAIL(UNSUPPORTED,
                                        "%s that has an ALLOCATE, FREE or "
                                        "conditional node: the %s node \"%s\"",
                                        what, kilni_graph_kind_name(node->kind),
                                        kilni_graph_node_says(node, text)),
                             "%s", fix));
}

// ---- Conditions ----

// The node of the graph that uses this condition; NULL: none does.
static const kiln_graph_node_t* why_user_of(const kiln_graph_t* graph,
                                            uint64_t condition) {
  for (uint32_t i = 0; i < graph->node_count; i++) {
    const kiln_graph_node_t* node = kilni_graph_node_at(graph, i);
    if (node->handle == NULL || node->kind != KILN_GRAPH_CONDITIONAL) continue;
    if (node->more != NULL && node->more->asks == condition) return node;
  }
  return NULL;
}

// The same of all that is inside of the outermost graph.
static const kiln_graph_node_t* user_in_all(const kiln_graph_t* graph,
                                            uint64_t condition) {
  const kiln_graph_node_t* node = why_user_of(graph->root, condition);
  for (const kiln_graph_t* view = graph->root->views;
       view != NULL && node == NULL; view = view->next_view) {
    node = why_user_of(view, condition);
  }
  return node;
}

static const char kOneEach[] =
    "make a condition for each of them with kiln_graph_add_condition, and have "
    "the kernel that decides set both";

kiln_status_t kilni_graph_why_no_choice(const kiln_graph_t* graph,
                                        uint64_t condition,
                                        kiln_status_t status) {
  if (!is_result(status, KILN_CU_ERROR_INVALID_VALUE)) return status;
  const kiln_graph_node_t* node = user_in_all(graph, condition);
  if (node != NULL) {
    return has_it(status, node, "the condition is that of the conditional",
                  " already", kOneEach);
  }
  return instead(
      status, kilni_base_status_with_fix(
                  KILNI_FAIL(INVALID_ARGUMENT,
                             "0x%llx is not the handle of a condition of this "
                             "graph",
                             (unsigned long long)condition),
                  "pass the condition that kiln_graph_add_condition returned "
                  "for this graph"));
}

// ---- Edges ----

// Whether `to` waits for `from`; false too where the driver does not report it.
static bool why_is_edge(kiln_graph_t* graph, const kiln_graph_edge_t* edge) {
  kiln_allocator_t allocator = graph->device->host->allocator;
  uint32_t count = 0;
  void* block = NULL;
  bool found = false;
  kiln_status_t status = kiln_graph_node_before(edge->to, 0, NULL, &count);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_alloc_array(allocator, count, sizeof(edge->to), &block);
  }
  kiln_graph_node_t** nodes = block;
  uint32_t space = count;
  if (kiln_status_is_ok(status)) {
    status = kiln_graph_node_before(edge->to, space, nodes, &count);
  }
  for (uint32_t i = 0; kiln_status_is_ok(status) && i < count && i < space;
       i++) {
    found = found || nodes[i] == edge->from;
  }
  kilni_base_free_array(allocator, block, space, sizeof(edge->to));
  kiln_status_free(status);
  return found;
}

// How often an edge occurs in the list before it.
static bool stands_before(const kiln_graph_edge_t* edges, uint32_t index) {
  for (uint32_t i = 0; i < index; i++) {
    if (edges[i].from == edges[index].from && edges[i].to == edges[index].to) {
      return true;
    }
  }
  return false;
}

static kiln_status_t wrong_edge(const kiln_graph_edge_t* edge, uint32_t index,
                                bool add) {
  char from[KILNI_NODE_TEXT];
  char to[KILNI_NODE_TEXT];
  kilni_graph_node_says(edge->from, from);
  kilni_graph_node_says(edge->to, to);
  if (add) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "edge %u: \"%s\" already waits for \"%s\"",
                   (unsigned)index, to, from),
        "leave it out: two nodes have at most one such edge");
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(
          INVALID_ARGUMENT,
          "edge %u: \"%s\" does not wait for \"%s\" through such an edge",
          (unsigned)index, to, from),
      "remove an edge that kiln_graph_edges lists, with its ports and its "
      "type");
}

kiln_status_t kilni_graph_why_no_edge(kiln_graph_t* graph,
                                      const kiln_graph_edge_t* edges,
                                      uint32_t count, bool add,
                                      kiln_status_t status) {
  if (!add) {
    status = kilni_graph_why_no_copy(
        graph, "edges cannot be removed from a graph",
        "build the graph again, with the edges that it needs", status);
  }
  if (!is_result(status, KILN_CU_ERROR_INVALID_VALUE)) return status;
  for (uint32_t i = 0; i < count; i++) {
    if (stands_before(edges, i) || why_is_edge(graph, &edges[i]) == add) {
      return instead(status, wrong_edge(&edges[i], i, add));
    }
  }
  return status;
}

kiln_status_t kilni_graph_why_no_after(kiln_graph_node_t* const* after,
                                       size_t count, kiln_status_t status) {
  if (!is_result(status, KILN_CU_ERROR_INVALID_VALUE)) return status;
  char text[KILNI_NODE_TEXT];
  for (size_t i = 1; i < count; i++) {
    for (size_t k = 0; k < i; k++) {
      if (after[i] != after[k]) continue;
      return instead(
          status,
          kilni_base_status_with_fix(
              KILNI_FAIL(
                  INVALID_ARGUMENT,
                  "`after[%zu]`, the %s node \"%s\", is also `after[%zu]`", i,
                  kilni_graph_kind_name(after[i]->kind),
                  kilni_graph_node_says(after[i], text), k),
              "give each node once"));
    }
  }
  return status;
}

// ---- Executables and launches ----

kiln_status_t kilni_graph_why_no_exec(kiln_graph_t* graph,
                                      kiln_status_t status) {
  return kilni_graph_why_no_copy(
      graph, "a second executable of a graph",
      "release the first one (kiln_graph_exec_release), or build the graph a "
      "second time",
      status);
}

kiln_status_t kilni_graph_why_no_launch(const kiln_graph_exec_t* exec,
                                        kiln_status_t status) {
  if (!exec->allocates || !is_result(status, KILN_CU_ERROR_INVALID_VALUE)) {
    return status;
  }
  return instead(status,
                 kilni_base_status_with_fix(
                     KILNI_FAIL(INVALID_ARGUMENT,
                                "memory that an earlier launch of the graph "
                                "allocated has not been freed"),
                     "free it before the next launch, by a FREE node in this "
                     "graph or in another one that is launched in between, or "
                     "make the executable with `free_on_launch`"));
}

// The conditional node that a graph is inside of, at any depth; NULL: none.
static const kiln_graph_node_t* chooser_of(const kiln_graph_t* graph) {
  const kiln_graph_node_t* node = kiln_graph_inside(graph);
  while (node != NULL && node->kind != KILN_GRAPH_CONDITIONAL) {
    node = kiln_graph_inside(node->graph);
  }
  return node;
}

kiln_status_t kilni_graph_why_no_body(kiln_graph_t* graph, uint32_t kind,
                                      kiln_status_t status) {
  const kiln_graph_node_t* node = chooser_of(graph);
  if (node == NULL || (!is_result(status, KILN_CU_ERROR_INVALID_VALUE) &&
                       !is_result(status, KILN_CU_ERROR_NOT_SUPPORTED))) {
    return status;
  }
  char text[KILNI_NODE_TEXT];
  return instead(
      status,
      kilni_base_status_with_fix(
          KILNI_FAIL(UNSUPPORTED,
                     "a body of the conditional node \"%s\" has no %s nodes",
                     kilni_graph_node_says(node, text),
                     kilni_graph_kind_name(kind)),
          "add it to the graph that contains the conditional node, before that "
          "node or after it"));
}

// The node of the graph that frees an address already.
static kiln_graph_node_t* freed_by(kiln_graph_t* graph, uint64_t address) {
  for (uint32_t i = 0; i < graph->node_count; i++) {
    kiln_graph_node_t* node = kilni_graph_node_at(graph, i);
    if (node->handle == NULL || node->kind != KILN_GRAPH_FREE) continue;
    kiln_cu_deviceptr_t freed = 0;
    kiln_status_t status;
    KILNI_DEVICE_CALL(status, graph->device, cuGraphMemFreeNodeGetParams,
                      node->handle, &freed);
    bool is = kiln_status_is_ok(status) && freed == address;
    kiln_status_free(status);
    if (is) return node;
  }
  return NULL;
}

kiln_status_t kilni_graph_why_no_free(kiln_graph_t* graph, uint64_t address,
                                      kiln_status_t status) {
  if (!is_result(status, KILN_CU_ERROR_INVALID_VALUE)) return status;
  kiln_graph_node_t* node = freed_by(graph, address);
  if (node != NULL) {
    char what[64];
    (void)snprintf(what, sizeof(what), "0x%llx is already freed by the",
                   (unsigned long long)address);
    return has_it(status, node, what, " of this graph",
                  "leave one of the two out");
  }
  return instead(
      status,
      kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_ARGUMENT,
                     "0x%llx is not the address of an ALLOCATE node, or "
                     "another graph frees it",
                     (unsigned long long)address),
          "give kiln_graph_node_address of an ALLOCATE node that is not freed "
          "yet; a buffer is freed by its last release"));
}
