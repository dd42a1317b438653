// SPDX-License-Identifier: Apache-2.0
//
// graph: graphs: made, cloned, looked into, ended.
//
// A view is a graph inside of a node. It has no life of its own: it belongs to
// the graph around it, and a reference to it is one to that.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "base/str.h"
#include "device/device_scope.h"
#include "graph/graph.h"
#include "graph/graph_inside.h"
#include "kiln/graph.h"

static kiln_allocator_t make_allocator_of(const kiln_graph_t* graph) {
  return graph->device->host->allocator;
}

static kilni_graph_current_t current_of(const kiln_device_t* device) {
  kilni_graph_current_t current = {kilni_device_alive(device), device->context,
                                   device->table->cuCtxGetCurrent};
  return current;
}

kiln_status_t kilni_graph_make(kiln_device_t* device,
                               kiln_graph_t** out_graph) {
  *out_graph = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  kilni_device_late_t* late = NULL;
  KILNI_RETURN_IF_ERROR(kilni_device_late_need(device, &late));
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(device->host->allocator, sizeof(kiln_graph_t), &block));
  kiln_graph_t* graph = block;
  graph->device = device;
  graph->late = late;
  graph->current = current_of(device);
  graph->add_kernel = device->table->cuGraphAddKernelNode;
  graph->root = graph;
  atomic_init(&graph->references, 1);
  kiln_device_retain(device);
  kilni_device_late_add_user(late);
  *out_graph = graph;
  return kiln_ok();
}

kiln_status_t kiln_graph_create(kiln_device_t* device,
                                kiln_graph_t** out_graph) {
  KILNI_CHECK_ARGUMENT(out_graph != NULL, "out_graph");
  *out_graph = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  kiln_graph_t* graph = NULL;
  KILNI_RETURN_IF_ERROR(kilni_graph_make(device, &graph));
  kiln_status_t status;
  KILNI_DEVICE_CREATE(status, device, &graph->handle, cuGraphCreate, 0);
  if (!kiln_status_is_ok(status)) {
    kiln_graph_release(graph);
    return status;
  }
  *out_graph = graph;
  return kiln_ok();
}

// ---- The end ----

static void free_more(const kiln_graph_t* graph,
                      kilni_graph_node_more_t* more) {
  kiln_allocator_t allocator = make_allocator_of(graph);
  kilni_base_strfree(allocator, more->name);
  kilni_base_strfree(allocator, more->kernel);
  kilni_base_free(allocator, more->how, sizeof(*more->how));
  kilni_base_free_array(allocator, more->inner, more->inner_count,
                        sizeof(*more->inner));
  kilni_base_free_array(allocator, more->inner_handles, more->inner_count,
                        sizeof(*more->inner_handles));
  kilni_base_free(allocator, more, sizeof(*more));
}

static void free_graph(kiln_graph_t* graph) {
  kiln_allocator_t allocator = make_allocator_of(graph);
  for (uint32_t i = 0; i < graph->chunk_count; i++) {
    kilni_device_spare_give(graph->device, graph->chunks[i]);
  }
  kilni_base_free_array(allocator, graph->chunks, graph->chunk_space,
                        sizeof(*graph->chunks));
  while (graph->mores != NULL) {
    kilni_graph_node_more_t* more = graph->mores;
    graph->mores = more->next;
    free_more(graph, more);
  }
  kilni_base_free_array(allocator, graph->hash, graph->hash_space,
                        sizeof(*graph->hash));
  kilni_base_free(allocator, graph, sizeof(*graph));
}

static void make_end(kiln_graph_t* graph) {
  kiln_device_t* device = graph->device;
  kilni_device_late_t* late = graph->late;
  if (graph->handle != NULL) {
    kilni_device_late_begin(late);
    KILNI_DEVICE_END(device, cuGraphDestroy, graph->handle);
    kilni_device_late_end(late);
  }
  kilni_graph_owners_end(graph);
  while (graph->views != NULL) {
    kiln_graph_t* view = graph->views;
    graph->views = view->next_view;
    free_graph(view);
  }
  free_graph(graph);
  kilni_device_late_drop_user(late, kilni_device_is_lost(device));
  kiln_device_release(device);
}

void kiln_graph_retain(kiln_graph_t* graph) {
  if (graph == NULL) return;
  atomic_fetch_add_explicit(&graph->root->references, 1, memory_order_relaxed);
}

void kiln_graph_release(kiln_graph_t* graph) {
  if (graph == NULL || kilni_device_is_forked(graph->device)) return;
  kiln_graph_t* root = graph->root;
  if (atomic_fetch_sub_explicit(&root->references, 1, memory_order_acq_rel) ==
      1) {
    make_end(root);
  }
}

void kilni_graph_forget(kiln_graph_t* graph) {
  if (graph->refuses == KILNI_GRAPH_GONE) return;
  graph->refuses = KILNI_GRAPH_GONE;
  graph->handle = NULL;
  for (uint32_t i = 0; i < graph->node_count; i++) {
    kiln_graph_node_t* node = kilni_graph_node_at(graph, i);
    if (node->handle != NULL) kilni_graph_node_forget(node);
  }
  if (graph->root == graph) kilni_graph_owners_end(graph);
}

// ---- What it is ----

kiln_device_t* kiln_graph_device(const kiln_graph_t* graph) {
  return graph->device;
}

void* kiln_graph_handle(const kiln_graph_t* graph) {
  return kilni_graph_hold_guard(graph) ? graph->handle : NULL;
}

kiln_graph_node_t* kiln_graph_inside(const kiln_graph_t* graph) {
  return graph->inside;
}

kilni_graph_counts_t kilni_graph_counts(const kiln_graph_t* graph) {
  const kiln_graph_t* root = graph->root;
  kilni_graph_counts_t counts = {graph->node_count, 0, 0, root->segments_made};
  if (root->open != NULL) counts.live = root->open->live;
  for (kilni_graph_segment_t* s = root->sealed; s != NULL; s = s->next) {
    counts.sealed++;
    counts.live += s->live;
  }
  return counts;
}

kiln_status_t kilni_graph_refused(const kiln_graph_t* graph) {
  if (graph->refuses == KILNI_GRAPH_CAPTURING) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(
            INVALID_STATE,
            "the graph is being captured; only its streams can add to it"),
        "end the capture first (kiln_graph_builder_end)");
  }
  if (graph->inside != NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE, "the node around this graph was removed"),
        "use the graph of a node that still exists (kiln_graph_node_inner)");
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "the capture of this graph was invalidated, and the driver "
                 "has discarded the graph"),
      "capture again with a new builder");
}

kiln_status_t kilni_graph_check(const kiln_graph_t* graph) {
  return graph->refuses == KILNI_GRAPH_OPEN ? kiln_ok()
                                            : kilni_graph_refused(graph);
}

// ---- Views ----

kiln_status_t kilni_graph_make_view(kiln_graph_node_t* node,
                                    kiln_cu_graph_t handle,
                                    kiln_graph_t** out_view) {
  kiln_graph_t* root = node->graph->root;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(make_allocator_of(root), sizeof(kiln_graph_t), &block));
  kiln_graph_t* view = block;
  view->device = root->device;
  view->late = root->late;
  view->current = root->current;
  view->add_kernel = root->add_kernel;
  view->root = root;
  view->inside = node;
  view->handle = handle;
  view->next_view = root->views;
  root->views = view;
  *out_view = view;
  return kiln_ok();
}

// ---- Clones ----

static kiln_status_t make_copy_name(const kiln_graph_node_t* node,
                                    kiln_graph_t* clone) {
  kiln_cu_graph_node_t handle = NULL;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, clone->device, cuGraphNodeFindInClone, &handle,
                    node->handle, clone->handle);
  KILNI_RETURN_IF_ERROR(status);
  kiln_graph_node_t* twin = NULL;
  KILNI_RETURN_IF_ERROR(kilni_graph_lookup(clone, handle, &twin));
  if (twin == NULL) return kiln_ok();
  return kiln_graph_node_set_name(twin, node->more->name);
}

static kiln_status_t copy_names(kiln_graph_t* graph, kiln_graph_t* clone) {
  bool met = false;
  for (uint32_t i = 0; i < graph->node_count; i++) {
    const kiln_graph_node_t* node = kilni_graph_node_at(graph, i);
    if (node->handle == NULL || node->more == NULL ||
        node->more->name == NULL) {
      continue;
    }
    if (!met) KILNI_RETURN_IF_ERROR(kilni_graph_meet_all(clone));
    met = true;
    KILNI_RETURN_IF_ERROR(make_copy_name(node, clone));
  }
  return kiln_ok();
}

kiln_status_t kiln_graph_clone(kiln_graph_t* graph, kiln_graph_t** out_graph) {
  KILNI_CHECK_ARGUMENT(out_graph != NULL, "out_graph");
  *out_graph = NULL;
  KILNI_CHECK_ARGUMENT(graph != NULL, "graph");
  KILNI_RETURN_IF_ERROR(kilni_graph_check(graph));
  kiln_graph_t* clone = NULL;
  KILNI_RETURN_IF_ERROR(kilni_graph_make(graph->device, &clone));
  kiln_status_t status = kilni_graph_hold_make(graph->root, &clone->source);
  if (kiln_status_is_ok(status)) {
    KILNI_DEVICE_CREATE(status, graph->device, &clone->handle, cuGraphClone,
                        graph->handle);
    status = kilni_graph_why_no_copy(graph, "a graph cannot be copied",
                                     "build the graph a second time", status);
  }
  if (clone->handle != NULL) kilni_graph_owners_seal(graph);
  if (kiln_status_is_ok(status)) status = copy_names(graph, clone);
  if (!kiln_status_is_ok(status)) {
    kiln_graph_release(clone);
    return status;
  }
  *out_graph = clone;
  return kiln_ok();
}
