// SPDX-License-Identifier: Apache-2.0
//
// graph: nodes: where they are stored, their handles, what they are.
//
// A node made here gets its object at once, from memory for many. A node from a
// capture, a clone or a host program's own calls gets one on first use
// (kilni_graph_meet_all). The map from handles to objects is built then.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "base/str.h"
#include "device/device_scope.h"
#include "graph/graph_inside.h"
#include "kiln/graph.h"

_Static_assert(KILNI_GRAPH_CHUNK_NODES * sizeof(kiln_graph_node_t) <=
                   KILNI_SPARE_BYTES,
               "nodes come from the device's spare blocks");

static kiln_allocator_t nodes_allocator_of(const kiln_graph_t* graph) {
  return graph->device->host->allocator;
}

// ---- Where they are stored ----

kiln_status_t kilni_graph_node_reserve(kiln_graph_t* graph) {
  if (graph->free_node != graph->free_end) return kiln_ok();
  void* chunks = graph->chunks;
  kiln_status_t status =
      kilni_base_grow(nodes_allocator_of(graph), graph->chunk_count + 1,
                      sizeof(*graph->chunks), &graph->chunk_space, &chunks);
  graph->chunks = chunks;
  KILNI_RETURN_IF_ERROR(status);
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_device_spare_take(graph->device, &block));
  graph->chunks[graph->chunk_count++] = block;
  graph->free_node = block;
  graph->free_end = graph->free_node + KILNI_GRAPH_CHUNK_NODES;
  return kiln_ok();
}

kiln_graph_node_t* kilni_graph_node_at(const kiln_graph_t* graph,
                                       uint32_t index) {
  return &graph->chunks[index / KILNI_GRAPH_CHUNK_NODES]
                       [index % KILNI_GRAPH_CHUNK_NODES];
}

kiln_graph_node_t* kilni_graph_node_take(kiln_graph_t* graph,
                                         kiln_cu_graph_node_t handle,
                                         uint32_t kind) {
  kiln_graph_node_t* node = graph->free_node++;
  node->graph = graph;
  node->handle = handle;
  node->bundle = NULL;
  node->more = NULL;
  node->kind = kind;
  node->index = graph->node_count++;
  graph->live_count++;
  return node;
}

kiln_status_t kilni_graph_more_make(kiln_graph_t* graph,
                                    kilni_graph_node_more_t** out_more) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(
      nodes_allocator_of(graph), sizeof(kilni_graph_node_more_t), &block));
  *out_more = block;
  (*out_more)->next = graph->mores;
  graph->mores = *out_more;
  return kiln_ok();
}

static kiln_status_t need_more(kiln_graph_node_t* node) {
  if (node->more != NULL) return kiln_ok();
  return kilni_graph_more_make(node->graph, &node->more);
}

static size_t nodes_say_one(const kiln_graph_node_t* node, size_t space,
                            char* out) {
  if (node->more != NULL && node->more->name != NULL) {
    return kilni_base_show(node->more->name, space, out);
  }
  int size = snprintf(out, space, "%u", (unsigned)node->index);
  return (size_t)size < space ? (size_t)size : space - 1;
}

// The node that `graph` is inside of, and which of its bodies it is.
static size_t say_around(const kiln_graph_t* graph, size_t space, char* out) {
  const kiln_graph_node_t* node = graph->inside;
  const kilni_graph_node_more_t* more = node->more;
  size_t used = nodes_say_one(node, space, out);
  int size = 0;
  if (more != NULL && more->inner_count > 1) {
    uint32_t index = 0;
    while (index < more->inner_count && more->inner[index] != graph) index++;
    size = snprintf(out + used, space - used, "[%u]/", (unsigned)index);
  } else {
    size = snprintf(out + used, space - used, "/");
  }
  used += (size_t)size;
  return used < space ? used : space - 1;
}

const char* kilni_graph_node_says(const kiln_graph_node_t* node,
                                  char buffer[KILNI_NODE_TEXT]) {
  enum { MOST_DEPTH = 8 };
  const kiln_graph_t* around[MOST_DEPTH];
  size_t depth = 0;
  size_t used = 0;
  const kiln_graph_t* graph = node->graph;
  for (; graph->inside != NULL && depth < MOST_DEPTH;
       graph = graph->inside->graph) {
    around[depth++] = graph;
  }
  while (depth-- > 0) {
    used += say_around(around[depth], KILNI_NODE_TEXT - used, buffer + used);
  }
  (void)nodes_say_one(node, KILNI_NODE_TEXT - used, buffer + used);
  return buffer;
}

kiln_status_t kilni_graph_node_check(const kiln_graph_node_t* node) {
  if (node->handle != NULL) return kilni_graph_check(node->graph);
  char text[KILNI_NODE_TEXT];
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE, "the %s node \"%s\" was removed from its graph",
                 kilni_graph_kind_name(node->kind),
                 kilni_graph_node_says(node, text)),
      "use nodes that are in the graph (kiln_graph_node_is_valid)");
}

void kilni_graph_node_forget(kiln_graph_node_t* node) {
  node->handle = NULL;
  node->graph->live_count--;
  kilni_graph_node_more_t* more = node->more;
  for (uint32_t i = 0; more != NULL && i < more->inner_count; i++) {
    if (more->inner[i] != NULL) kilni_graph_forget(more->inner[i]);
  }
  kilni_graph_bundle_t* bundle = node->bundle;
  node->bundle = NULL;
  // The driver has let go of it all where the whole graph is gone.
  if (node->graph->root->refuses != KILNI_GRAPH_GONE) {
    kilni_graph_owners_drop(node->graph, bundle);
  }
}

// ---- From handle to node ----

static size_t nodes_place_of(const kiln_graph_t* graph,
                             kiln_cu_graph_node_t handle) {
  uint64_t mixed = ((uintptr_t)handle >> 4) * UINT64_C(0x9e3779b97f4a7c15);
  return (size_t)(mixed >> 32) & (graph->hash_space - 1);
}

static void nodes_enter(kiln_graph_t* graph, const kiln_graph_node_t* node) {
  size_t at = nodes_place_of(graph, node->handle);
  while (graph->hash[at] != 0) at = (at + 1) & (graph->hash_space - 1);
  graph->hash[at] = node->index + 1;
}

static kiln_status_t need_hash(kiln_graph_t* graph, size_t nodes) {
  if (graph->hash_space / 2 < nodes) {
    size_t space = 64;
    while (space / 2 < nodes) space *= 2;
    void* block = NULL;
    KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
        nodes_allocator_of(graph), space, sizeof(*graph->hash), &block));
    kilni_base_free_array(nodes_allocator_of(graph), graph->hash,
                          graph->hash_space, sizeof(*graph->hash));
    graph->hash = block;
    graph->hash_space = space;
    graph->hashed = 0;
  }
  for (; graph->hashed < graph->node_count; graph->hashed++) {
    const kiln_graph_node_t* node = kilni_graph_node_at(graph, graph->hashed);
    if (node->handle != NULL) nodes_enter(graph, node);
  }
  return kiln_ok();
}

static kiln_graph_node_t* nodes_find(const kiln_graph_t* graph,
                                     kiln_cu_graph_node_t handle) {
  size_t at = nodes_place_of(graph, handle);
  while (graph->hash[at] != 0) {
    kiln_graph_node_t* node = kilni_graph_node_at(graph, graph->hash[at] - 1);
    if (node->handle == handle) return node;
    at = (at + 1) & (graph->hash_space - 1);
  }
  return NULL;
}

kiln_status_t kilni_graph_lookup(kiln_graph_t* graph,
                                 kiln_cu_graph_node_t handle,
                                 kiln_graph_node_t** out_node) {
  *out_node = NULL;
  if (handle == NULL) return kiln_ok();
  KILNI_RETURN_IF_ERROR(need_hash(graph, graph->node_count + 1));
  *out_node = nodes_find(graph, handle);
  return kiln_ok();
}

static kiln_status_t nodes_meet(kiln_graph_t* graph,
                                kiln_cu_graph_node_t handle) {
  KILNI_RETURN_IF_ERROR(kilni_graph_node_reserve(graph));
  kiln_cu_graph_node_type_t type = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, graph->device, cuGraphNodeGetType, handle, &type);
  KILNI_RETURN_IF_ERROR(status);
  nodes_enter(graph, kilni_graph_node_take(graph, handle, type));
  graph->hashed = graph->node_count;
  return kiln_ok();
}

// What is there is met; what a host program has removed by its handle is
// forgotten here too. `seen` has a place for each of the `known` nodes.
static kiln_status_t nodes_compare(kiln_graph_t* graph,
                                   const kiln_cu_graph_node_t* handles,
                                   size_t count, uint32_t known, bool* seen) {
  KILNI_RETURN_IF_ERROR(need_hash(graph, graph->node_count + count));
  for (size_t i = 0; i < count; i++) {
    const kiln_graph_node_t* node = nodes_find(graph, handles[i]);
    if (node != NULL) {
      if (node->index < known) seen[node->index] = true;
    } else {
      KILNI_RETURN_IF_ERROR(nodes_meet(graph, handles[i]));
    }
  }
  for (uint32_t i = 0; i < known && graph->given; i++) {
    kiln_graph_node_t* node = kilni_graph_node_at(graph, i);
    if (node->handle != NULL && !seen[i]) kilni_graph_node_forget(node);
  }
  return kiln_ok();
}

kiln_status_t kilni_graph_meet_all(kiln_graph_t* graph) {
  size_t count = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, graph->device, cuGraphGetNodes, graph->handle, NULL,
                    &count);
  KILNI_RETURN_IF_ERROR(status);
  // Code that has the handle may have removed as many as were added.
  if (count == graph->live_count && !graph->given) return kiln_ok();
  kiln_allocator_t allocator = nodes_allocator_of(graph);
  size_t space = count;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, space, sizeof(kiln_cu_graph_node_t), &block));
  kiln_cu_graph_node_t* handles = block;
  KILNI_DEVICE_CALL(status, graph->device, cuGraphGetNodes, graph->handle,
                    handles, &count);
  uint32_t known = graph->node_count;
  void* seen = NULL;
  if (kiln_status_is_ok(status)) {
    status = kilni_base_alloc_array(allocator, known, sizeof(bool), &seen);
  }
  if (kiln_status_is_ok(status)) {
    status = nodes_compare(graph, handles, count, known, seen);
  }
  kilni_base_free_array(allocator, seen, known, sizeof(bool));
  kilni_base_free_array(allocator, handles, space,
                        sizeof(kiln_cu_graph_node_t));
  return status;
}

kiln_status_t kiln_graph_nodes(kiln_graph_t* graph, uint32_t capacity,
                               kiln_graph_node_t** out_nodes,
                               uint32_t* out_count) {
  KILNI_CHECK_ARGUMENT(out_count != NULL, "out_count");
  *out_count = 0;
  KILNI_CHECK_ARGUMENT(graph != NULL, "graph");
  KILNI_CHECK_ARGUMENT(out_nodes != NULL || capacity == 0, "out_nodes");
  KILNI_RETURN_IF_ERROR(kilni_graph_check(graph));
  KILNI_RETURN_IF_ERROR(kilni_graph_meet_all(graph));
  for (uint32_t i = 0; i < graph->node_count; i++) {
    kiln_graph_node_t* node = kilni_graph_node_at(graph, i);
    if (node->handle == NULL) continue;
    if (*out_count < capacity) out_nodes[*out_count] = node;
    ++*out_count;
  }
  return kiln_ok();
}

// ---- What they are ----

bool kiln_graph_node_is_valid(const kiln_graph_node_t* node) {
  return node != NULL && node->handle != NULL;
}

kiln_graph_t* kiln_graph_node_graph(const kiln_graph_node_t* node) {
  return node->graph;
}

void* kiln_graph_node_handle(const kiln_graph_node_t* node) {
  return node->handle;
}

uint32_t kiln_graph_node_kind(const kiln_graph_node_t* node) {
  return node->kind;
}

uint64_t kiln_graph_node_address(const kiln_graph_node_t* node) {
  return node->more == NULL ? 0 : node->more->address;
}

const char* kiln_graph_node_name(const kiln_graph_node_t* node) {
  if (node->more == NULL || node->more->name == NULL) return "";
  return node->more->name;
}

kiln_status_t kiln_graph_node_set_name(kiln_graph_node_t* node,
                                       const char* name) {
  KILNI_CHECK_ARGUMENT(node != NULL, "node");
  KILNI_RETURN_IF_ERROR(kilni_graph_node_check(node));
  kiln_string_view_t text = kilni_base_sv(name == NULL ? "" : name);
  if (text.size > KILNI_GRAPH_NAME_BYTES) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "a node's name of %zu bytes", text.size),
        "give it at most %d bytes", KILNI_GRAPH_NAME_BYTES);
  }
  if (text.size == 0 && node->more == NULL) return kiln_ok();
  KILNI_RETURN_IF_ERROR(need_more(node));
  char* copy = NULL;
  if (text.size > 0) {
    KILNI_RETURN_IF_ERROR(
        kilni_base_strdup(nodes_allocator_of(node->graph), text, &copy));
  }
  kilni_base_strfree(nodes_allocator_of(node->graph), node->more->name);
  node->more->name = copy;
  const kiln_device_t* device = node->graph->device;
  if (device->name_node != NULL) {
    (void)device->name_node(node->handle, copy != NULL ? copy : "");
  }
  return kiln_ok();
}

kiln_status_t kiln_graph_find(kiln_graph_t* graph, const char* name,
                              kiln_graph_node_t** out_node) {
  KILNI_CHECK_ARGUMENT(out_node != NULL, "out_node");
  *out_node = NULL;
  KILNI_CHECK_ARGUMENT(graph != NULL, "graph");
  KILNI_CHECK_ARGUMENT(name != NULL, "name");
  KILNI_RETURN_IF_ERROR(kilni_graph_check(graph));
  for (uint32_t i = 0; i < graph->node_count; i++) {
    kiln_graph_node_t* node = kilni_graph_node_at(graph, i);
    if (node->handle == NULL || name[0] == 0) continue;
    if (strcmp(kiln_graph_node_name(node), name) != 0) continue;
    *out_node = node;
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(NOT_FOUND, "the graph has no node \"%s\"", name),
      "give nodes their names with kiln_graph_node_set_name");
}

// ---- What is inside ----

uint32_t kiln_graph_node_inner_count(const kiln_graph_node_t* node) {
  if (node->kind == KILN_GRAPH_CHILD) return 1;
  return node->more == NULL ? 0 : node->more->inner_count;
}

static kiln_status_t no_inner(const kiln_graph_node_t* node, uint32_t index) {
  char text[KILNI_NODE_TEXT];
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "the %s node \"%s\" has no known inner graph %u",
                 kilni_graph_kind_name(node->kind),
                 kilni_graph_node_says(node, text), (unsigned)index),
      "ask child nodes, and conditional nodes that kiln_graph_add or a builder "
      "gave, for the graphs that kiln_graph_node_inner_count counts");
}

static kiln_status_t meet_child(kiln_graph_node_t* node) {
  KILNI_RETURN_IF_ERROR(need_more(node));
  kilni_graph_node_more_t* more = node->more;
  if (more->inner != NULL) return kiln_ok();
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      nodes_allocator_of(node->graph), 1, sizeof(kiln_graph_t*), &block));
  more->inner = block;
  more->inner_count = 1;
  return kiln_ok();
}

static kiln_status_t inner_handle(kiln_graph_node_t* node, uint32_t index,
                                  kiln_cu_graph_t* out_handle) {
  kiln_status_t status;
  if (node->kind != KILN_GRAPH_CHILD) {
    *out_handle = node->more->inner_handles[index];
    return kiln_ok();
  }
  KILNI_DEVICE_CALL(status, node->graph->device, cuGraphChildGraphNodeGetGraph,
                    node->handle, out_handle);
  return status;
}

kiln_status_t kiln_graph_node_inner(kiln_graph_node_t* node, uint32_t index,
                                    kiln_graph_t** out_graph) {
  KILNI_CHECK_ARGUMENT(out_graph != NULL, "out_graph");
  *out_graph = NULL;
  KILNI_CHECK_ARGUMENT(node != NULL, "node");
  KILNI_RETURN_IF_ERROR(kilni_graph_node_check(node));
  if (index >= kiln_graph_node_inner_count(node)) return no_inner(node, index);
  if (node->kind == KILN_GRAPH_CHILD) KILNI_RETURN_IF_ERROR(meet_child(node));
  kiln_graph_t** place = &node->more->inner[index];
  if (*place == NULL) {
    kiln_cu_graph_t handle = NULL;
    KILNI_RETURN_IF_ERROR(inner_handle(node, index, &handle));
    KILNI_RETURN_IF_ERROR(kilni_graph_make_view(node, handle, place));
  }
  kiln_graph_retain(*place);
  *out_graph = *place;
  return kiln_ok();
}

// ---- What they do ----

// Queried once for each node; left unset where the driver does not report it.
static kiln_status_t name_kernel(kiln_graph_node_t* node,
                                 kiln_cu_function_t function,
                                 const char** out_name) {
  kiln_device_t* device = node->graph->device;
  KILNI_RETURN_IF_ERROR(need_more(node));
  if (node->more->kernel == NULL) {
    const char* name = NULL;
    if (function == NULL ||
        !kilni_table_cuda_has(device->table, KILNI_CUDA_ROW_cuFuncGetName)) {
      return kiln_ok();
    }
    kiln_status_t status;
    KILNI_DEVICE_CALL(status, device, cuFuncGetName, &name, function);
    KILNI_RETURN_IF_ERROR(status);
    KILNI_RETURN_IF_ERROR(kilni_base_strdup(
        nodes_allocator_of(node->graph),
        kilni_base_sv(name == NULL ? "" : name), &node->more->kernel));
  }
  *out_name = node->more->kernel;
  return kiln_ok();
}

static kiln_status_t describe_kernel(kiln_graph_node_t* node,
                                     kiln_graph_node_info_t* info) {
  kiln_cu_kernel_node_t kernel = {0};
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, node->graph->device, cuGraphKernelNodeGetParams,
                    node->handle, &kernel);
  KILNI_RETURN_IF_ERROR(status);
  const uint32_t grid[] = {kernel.grid_x, kernel.grid_y, kernel.grid_z};
  const uint32_t block[] = {kernel.block_x, kernel.block_y, kernel.block_z};
  memcpy(info->grid, grid, sizeof(grid));
  memcpy(info->block, block, sizeof(block));
  info->shared_bytes = kernel.shared_bytes;
  return name_kernel(node, kernel.function, &info->kernel);
}

static kiln_status_t describe_copy(kiln_graph_node_t* node,
                                   kiln_graph_node_info_t* info) {
  kiln_cu_copy_3d_t copy;
  memset(&copy, 0, sizeof(copy));
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, node->graph->device, cuGraphMemcpyNodeGetParams,
                    node->handle, &copy);
  info->to = copy.to.type == KILN_CU_MEMORYTYPE_HOST
                 ? (uint64_t)(uintptr_t)copy.to.host
                 : copy.to.device;
  info->from = copy.from.type == KILN_CU_MEMORYTYPE_HOST
                   ? (uint64_t)(uintptr_t)copy.from.host
                   : copy.from.device;
  info->bytes = copy.width_bytes;
  info->rows = copy.height;
  info->slices = copy.depth;
  return status;
}

static kiln_status_t describe_fill(kiln_graph_node_t* node,
                                   kiln_graph_node_info_t* info) {
  kiln_cu_memset_node_t fill = {0};
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, node->graph->device, cuGraphMemsetNodeGetParams,
                    node->handle, &fill);
  info->to = fill.to;
  info->value = fill.value;
  info->value_bytes = fill.element_bytes;
  info->bytes = (uint64_t)fill.width * fill.element_bytes;
  info->rows = fill.height;
  return status;
}

static kiln_status_t describe_memory(kiln_graph_node_t* node,
                                     kiln_graph_node_info_t* info) {
  kiln_status_t status;
  if (node->kind == KILN_GRAPH_FREE) {
    kiln_cu_deviceptr_t address = 0;
    KILNI_DEVICE_CALL(status, node->graph->device, cuGraphMemFreeNodeGetParams,
                      node->handle, &address);
    info->from = address;
    return status;
  }
  kiln_cu_alloc_node_t allocation;
  memset(&allocation, 0, sizeof(allocation));
  KILNI_DEVICE_CALL(status, node->graph->device, cuGraphMemAllocNodeGetParams,
                    node->handle, &allocation);
  info->to = allocation.address;
  info->bytes = allocation.bytes;
  return status;
}

kiln_status_t kiln_graph_node_describe(kiln_graph_node_t* node,
                                       kiln_graph_node_info_t* out_info) {
  KILNI_CHECK_ARGUMENT(out_info != NULL, "out_info");
  memset(out_info, 0, sizeof(*out_info));
  out_info->kernel = "";
  KILNI_CHECK_ARGUMENT(node != NULL, "node");
  KILNI_RETURN_IF_ERROR(kilni_graph_node_check(node));
  out_info->kind = node->kind;
  out_info->inner_count = kiln_graph_node_inner_count(node);
  switch (node->kind) {
    case KILN_GRAPH_KERNEL:
      return describe_kernel(node, out_info);
    case KILN_GRAPH_COPY:
      return describe_copy(node, out_info);
    case KILN_GRAPH_FILL:
      return describe_fill(node, out_info);
    case KILN_GRAPH_ALLOCATE:
    case KILN_GRAPH_FREE:
      return describe_memory(node, out_info);
    case KILN_GRAPH_CONDITIONAL:
      if (node->more != NULL) out_info->condition = node->more->condition;
      return kiln_ok();
    default:
      return kiln_ok();
  }
}
