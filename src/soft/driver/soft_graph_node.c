// SPDX-License-Identifier: Apache-2.0
//
// soft: rows that add nodes to graphs, and that read and change what they do.
#include <string.h>

#include "base/alloc.h"
#include "soft/driver/soft_graph.h"
#include "table/cuda_table.h"

// A node that is being added.
typedef struct adding_t {
  kilni_soft_driver_t* driver;
  kilni_soft_graph_t* graph;
  kilni_soft_dependencies_t in;
  kilni_soft_doing_t doing;
} adding_t;

// Enters the row; not locked if it fails.
static kiln_cu_result_t graph_node_begin(
    adding_t* adding, kilni_soft_needs_t needs, kiln_cu_graph_node_t* node,
    kiln_cu_graph_t graph, const kiln_cu_graph_node_t* dependencies,
    const kiln_cu_graph_edge_t* edges, size_t count) {
  memset(adding, 0, sizeof(*adding));
  kiln_cu_result_t result = kilni_soft_enter(needs, &adding->driver);
  if (result != KILN_CU_SUCCESS) return result;
  adding->graph = kilni_soft_graph_find(adding->driver, graph);
  result = KILN_CU_ERROR_INVALID_VALUE;
  if (node != NULL && adding->graph != NULL) {
    result = kilni_soft_dependencies_read(
        adding->driver, adding->graph, dependencies, edges, count, &adding->in);
  }
  if (result == KILN_CU_SUCCESS) return result;
  return kilni_soft_leave(adding->driver, result);
}

// Adds it, if `result` is success, and leaves.
static kiln_cu_result_t graph_node_finish(adding_t* adding, uint32_t type,
                                          kiln_cu_result_t result,
                                          kiln_cu_graph_node_t* node) {
  kilni_soft_node_t* made = NULL;
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_node_new(adding->driver, adding->graph, type,
                                 &adding->in, true, &adding->doing, &made);
    if (result != KILN_CU_SUCCESS) {
      kilni_soft_doing_free(adding->driver, type, &adding->doing);
    }
  }
  if (result == KILN_CU_SUCCESS) {
    *node = (kiln_cu_graph_node_t)(uintptr_t)made->handle;
  } else {
    kilni_soft_dependencies_free(adding->driver, &adding->in);
  }
  return kilni_soft_leave(adding->driver, result);
}

// ---- What may be set of a node ----

static kiln_cu_result_t graph_node_read_host(const kiln_cu_host_node_t* params,
                                             kilni_soft_doing_t* out_doing) {
  if (params == NULL || params->fn == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  out_doing->host = *params;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t graph_node_read_event(const kilni_soft_driver_t* driver,
                                              kiln_cu_event_t event,
                                              kilni_soft_doing_t* out_doing) {
  out_doing->event = (uintptr_t)event;
  return kilni_soft_handle_get(&driver->handles, KILNI_SOFT_KIND_EVENT,
                               (uintptr_t)event) != NULL
             ? KILN_CU_SUCCESS
             : KILN_CU_ERROR_INVALID_VALUE;
}

// A graph that is to be a node of another: nothing of it may allocate, or
// choose.
static bool graph_node_is_plain(const kilni_soft_graph_t* graph) {
  for (size_t i = 0; i < graph->count; i++) {
    const kilni_soft_node_t* node = graph->nodes[i];
    if (node->type == KILN_CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
        node->type == KILN_CU_GRAPH_NODE_TYPE_MEM_FREE ||
        node->type == KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL ||
        (node->type == KILN_CU_GRAPH_NODE_TYPE_GRAPH &&
         !graph_node_is_plain(node->as.child))) {
      return false;
    }
  }
  return true;
}

static kiln_cu_result_t graph_node_read_child(kilni_soft_driver_t* driver,
                                              const kilni_soft_graph_t* into,
                                              kiln_cu_graph_t child,
                                              unsigned int owner,
                                              kilni_soft_doing_t* out_doing) {
  kilni_soft_graph_t* found = kilni_soft_graph_find(driver, child);
  if (found == NULL || owner > KILN_CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  if (owner == KILN_CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) {
    if (!graph_node_is_plain(found)) return KILN_CU_ERROR_NOT_SUPPORTED;
    return kilni_soft_graph_copy(driver, found, true, &out_doing->child);
  }
  if (found->of != NULL || found == into || found->capture != NULL) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  kilni_soft_graph_t** link = &driver->graphs;
  while (*link != found) link = &(*link)->next;
  *link = found->next;
  found->next = NULL;
  out_doing->child = found;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t read_alloc(kilni_soft_driver_t* driver,
                                   const kilni_soft_graph_t* graph,
                                   kiln_cu_alloc_node_t* params,
                                   kilni_soft_doing_t* out_doing) {
  if (params == NULL || params->bytes == 0 || graph->is_body ||
      params->pool.allocation != KILN_CU_MEM_ALLOCATION_TYPE_PINNED ||
      params->pool.location.type != KILN_CU_MEM_LOCATION_TYPE_DEVICE ||
      !kilni_soft_is_device(driver, params->pool.location.id) ||
      (params->access_count > 0 && params->access == NULL)) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  if (params->pool.handle_types != 0) return KILN_CU_ERROR_NOT_SUPPORTED;
  for (size_t i = 0; i < params->access_count; i++) {
    if (params->access[i].location.type != KILN_CU_MEM_LOCATION_TYPE_DEVICE ||
        !kilni_soft_is_device(driver, params->access[i].location.id)) {
      return KILN_CU_ERROR_INVALID_DEVICE;
    }
  }
  kilni_soft_doing_t wanted;
  memset(&wanted, 0, sizeof(wanted));
  wanted.alloc.params = *params;
  kiln_cu_result_t result =
      kilni_soft_store_new(driver, (uint32_t)params->pool.location.id,
                           params->bytes, &wanted.alloc.store);
  if (result != KILN_CU_SUCCESS) return result;
  wanted.alloc.params.address = wanted.alloc.store->address;
  result = kilni_soft_doing_copy(driver, KILN_CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                                 &wanted, true, out_doing);
  kilni_soft_store_release(driver, wanted.alloc.store);
  if (result == KILN_CU_SUCCESS) {
    params->address = out_doing->alloc.params.address;
  }
  return result;
}

static kiln_cu_result_t graph_node_read_free(kilni_soft_driver_t* driver,
                                             const kilni_soft_graph_t* graph,
                                             kiln_cu_deviceptr_t address,
                                             kilni_soft_doing_t* out_doing) {
  kilni_soft_store_t* store = kilni_soft_store_find(driver, address);
  if (store == NULL || graph->is_body) return KILN_CU_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < graph->count; i++) {
    const kilni_soft_node_t* node = graph->nodes[i];
    if (node->type == KILN_CU_GRAPH_NODE_TYPE_MEM_FREE &&
        node->as.release.store == store) {
      return KILN_CU_ERROR_INVALID_VALUE;
    }
  }
  store->refs++;
  out_doing->release.address = address;
  out_doing->release.store = store;
  return KILN_CU_SUCCESS;
}

// A node that chooses, with its empty bodies.
static kiln_cu_result_t read_conditional(kilni_soft_driver_t* driver,
                                         kilni_soft_graph_t* graph,
                                         kiln_cu_conditional_node_t* params,
                                         kilni_soft_doing_t* out_doing) {
  kilni_soft_value_t* value = kilni_soft_value_find(driver, params->handle);
  unsigned int most = params->type == KILN_CU_GRAPH_COND_TYPE_IF      ? 2
                      : params->type == KILN_CU_GRAPH_COND_TYPE_WHILE ? 1
                                                                      : 1024;
  if (value == NULL || value->graph != kilni_soft_graph_top(graph) ||
      params->type > KILN_CU_GRAPH_COND_TYPE_SWITCH || params->count == 0 ||
      params->count > most || kilni_soft_graph_asks(value->graph, value)) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  out_doing->condition.handle = params->handle;
  out_doing->condition.type = params->type;
  out_doing->condition.context = params->context;
  kiln_allocator_t allocator = driver->host.allocator;
  uint32_t count = params->count;
  out_doing->condition.count = count;
  kiln_status_t status =
      kilni_base_alloc_array(allocator, count, sizeof(kilni_soft_graph_t*),
                             (void**)&out_doing->condition.bodies);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_alloc_array(allocator, count, sizeof(kiln_cu_graph_t),
                                    (void**)&out_doing->condition.handles);
  }
  kiln_cu_result_t result = kilni_soft_result(status);
  for (uint32_t i = 0; i < count && result == KILN_CU_SUCCESS; i++) {
    kilni_soft_graph_t* body = NULL;
    result = kilni_soft_graph_new(driver, &body);
    if (result != KILN_CU_SUCCESS) break;
    out_doing->condition.bodies[i] = body;
    result = kilni_soft_result(kilni_soft_handle_add(
        &driver->handles, KILNI_SOFT_KIND_GRAPH, body, &body->handle));
    out_doing->condition.handles[i] = (kiln_cu_graph_t)(uintptr_t)body->handle;
  }
  if (result != KILN_CU_SUCCESS) {
    kilni_soft_doing_free(driver, KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL,
                          out_doing);
    return result;
  }
  params->graphs = out_doing->condition.handles;
  return KILN_CU_SUCCESS;
}

kiln_cu_result_t kilni_soft_doing_read(kilni_soft_driver_t* driver,
                                       kilni_soft_graph_t* graph,
                                       kiln_cu_graph_node_params_t* params,
                                       kilni_soft_doing_t* out_doing) {
  memset(out_doing, 0, sizeof(*out_doing));
  switch (params->type) {
    case KILN_CU_GRAPH_NODE_TYPE_KERNEL:
      return kilni_soft_doing_kernel(driver, &params->of.kernel, out_doing);
    case KILN_CU_GRAPH_NODE_TYPE_MEMCPY:
      return kilni_soft_doing_memcpy(driver, &params->of.memcpy.copy,
                                     params->of.memcpy.context, out_doing);
    case KILN_CU_GRAPH_NODE_TYPE_MEMSET:
      return kilni_soft_doing_memset(driver, &params->of.memset.fill,
                                     params->of.memset.context, out_doing);
    case KILN_CU_GRAPH_NODE_TYPE_HOST:
      return graph_node_read_host(&params->of.host, out_doing);
    case KILN_CU_GRAPH_NODE_TYPE_GRAPH:
      return graph_node_read_child(driver, graph, params->of.child.graph,
                                   params->of.child.ownership, out_doing);
    case KILN_CU_GRAPH_NODE_TYPE_EMPTY:
      return KILN_CU_SUCCESS;
    case KILN_CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case KILN_CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return graph_node_read_event(driver, params->of.event, out_doing);
    case KILN_CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return read_alloc(driver, graph, &params->of.alloc, out_doing);
    case KILN_CU_GRAPH_NODE_TYPE_MEM_FREE:
      return graph_node_read_free(driver, graph, params->of.free, out_doing);
    case KILN_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return kilni_soft_doing_values(driver, &params->of.operations, out_doing);
    case KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return read_conditional(driver, graph, &params->of.conditional,
                              out_doing);
    case KILN_CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case KILN_CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
      return KILN_CU_ERROR_NOT_SUPPORTED;
    default:
      return KILN_CU_ERROR_INVALID_VALUE;
  }
}

// ---- Adding ----

static kiln_cu_result_t graph_node_add_with(
    kilni_soft_needs_t needs, kiln_cu_graph_node_t* node, kiln_cu_graph_t graph,
    const kiln_cu_graph_node_t* dependencies, const kiln_cu_graph_edge_t* edges,
    size_t count, kiln_cu_graph_node_params_t* params) {
  adding_t adding;
  if (params == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  kiln_cu_result_t result =
      graph_node_begin(&adding, needs, node, graph, dependencies, edges, count);
  if (result != KILN_CU_SUCCESS) return result;
  result =
      kilni_soft_doing_read(adding.driver, adding.graph, params, &adding.doing);
  return graph_node_finish(&adding, params->type, result, node);
}

static kiln_cu_result_t graph_node_row_add(
    kiln_cu_graph_node_t* node, kiln_cu_graph_t graph,
    const kiln_cu_graph_node_t* dependencies, const kiln_cu_graph_edge_t* edges,
    size_t count, kiln_cu_graph_node_params_t* params) {
  return graph_node_add_with(KILNI_SOFT_NEEDS_START, node, graph, dependencies,
                             edges, count, params);
}

// The same by the older rows, one of which wants a current context.
static kiln_cu_result_t graph_node_add(kiln_cu_graph_node_t* node,
                                       kiln_cu_graph_t graph,
                                       const kiln_cu_graph_node_t* dependencies,
                                       size_t count, bool good,
                                       kiln_cu_graph_node_params_t* params) {
  if (!good) return KILN_CU_ERROR_INVALID_VALUE;
  const bool wants = params->type == KILN_CU_GRAPH_NODE_TYPE_KERNEL;
  return graph_node_add_with(
      wants ? KILNI_SOFT_NEEDS_CURRENT : KILNI_SOFT_NEEDS_START, node, graph,
      dependencies, NULL, count, params);
}

static kiln_cu_graph_node_params_t graph_node_of_type(uint32_t type) {
  kiln_cu_graph_node_params_t params;
  memset(&params, 0, sizeof(params));
  params.type = type;
  return params;
}

static kiln_cu_result_t row_add_kernel(kiln_cu_graph_node_t* node,
                                       kiln_cu_graph_t graph,
                                       const kiln_cu_graph_node_t* dependencies,
                                       size_t count,
                                       const kiln_cu_kernel_node_t* kernel) {
  kiln_cu_graph_node_params_t params =
      graph_node_of_type(KILN_CU_GRAPH_NODE_TYPE_KERNEL);
  if (kernel != NULL) params.of.kernel = *kernel;
  return graph_node_add(node, graph, dependencies, count, kernel != NULL,
                        &params);
}

static kiln_cu_result_t row_add_memcpy(kiln_cu_graph_node_t* node,
                                       kiln_cu_graph_t graph,
                                       const kiln_cu_graph_node_t* dependencies,
                                       size_t count,
                                       const kiln_cu_copy_3d_t* copy,
                                       kiln_cu_context_t context) {
  kiln_cu_graph_node_params_t params =
      graph_node_of_type(KILN_CU_GRAPH_NODE_TYPE_MEMCPY);
  if (copy != NULL) params.of.memcpy.copy = *copy;
  params.of.memcpy.context = context;
  return graph_node_add(node, graph, dependencies, count, copy != NULL,
                        &params);
}

static kiln_cu_result_t row_add_memset(kiln_cu_graph_node_t* node,
                                       kiln_cu_graph_t graph,
                                       const kiln_cu_graph_node_t* dependencies,
                                       size_t count,
                                       const kiln_cu_memset_node_t* fill,
                                       kiln_cu_context_t context) {
  kiln_cu_graph_node_params_t params =
      graph_node_of_type(KILN_CU_GRAPH_NODE_TYPE_MEMSET);
  if (fill != NULL) params.of.memset.fill = *fill;
  params.of.memset.context = context;
  return graph_node_add(node, graph, dependencies, count, fill != NULL,
                        &params);
}

static kiln_cu_result_t row_add_host(kiln_cu_graph_node_t* node,
                                     kiln_cu_graph_t graph,
                                     const kiln_cu_graph_node_t* dependencies,
                                     size_t count,
                                     const kiln_cu_host_node_t* host) {
  kiln_cu_graph_node_params_t params =
      graph_node_of_type(KILN_CU_GRAPH_NODE_TYPE_HOST);
  if (host != NULL) params.of.host = *host;
  return graph_node_add(node, graph, dependencies, count, host != NULL,
                        &params);
}

static kiln_cu_result_t row_add_child(kiln_cu_graph_node_t* node,
                                      kiln_cu_graph_t graph,
                                      const kiln_cu_graph_node_t* dependencies,
                                      size_t count, kiln_cu_graph_t child) {
  kiln_cu_graph_node_params_t params =
      graph_node_of_type(KILN_CU_GRAPH_NODE_TYPE_GRAPH);
  params.of.child.graph = child;
  return graph_node_add(node, graph, dependencies, count, true, &params);
}

static kiln_cu_result_t row_add_empty(kiln_cu_graph_node_t* node,
                                      kiln_cu_graph_t graph,
                                      const kiln_cu_graph_node_t* dependencies,
                                      size_t count) {
  kiln_cu_graph_node_params_t params =
      graph_node_of_type(KILN_CU_GRAPH_NODE_TYPE_EMPTY);
  return graph_node_add(node, graph, dependencies, count, true, &params);
}

static kiln_cu_result_t row_add_record(kiln_cu_graph_node_t* node,
                                       kiln_cu_graph_t graph,
                                       const kiln_cu_graph_node_t* dependencies,
                                       size_t count, kiln_cu_event_t event) {
  kiln_cu_graph_node_params_t params =
      graph_node_of_type(KILN_CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  params.of.event = event;
  return graph_node_add(node, graph, dependencies, count, true, &params);
}

static kiln_cu_result_t row_add_wait(kiln_cu_graph_node_t* node,
                                     kiln_cu_graph_t graph,
                                     const kiln_cu_graph_node_t* dependencies,
                                     size_t count, kiln_cu_event_t event) {
  kiln_cu_graph_node_params_t params =
      graph_node_of_type(KILN_CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  params.of.event = event;
  return graph_node_add(node, graph, dependencies, count, true, &params);
}

static kiln_cu_result_t row_add_alloc(kiln_cu_graph_node_t* node,
                                      kiln_cu_graph_t graph,
                                      const kiln_cu_graph_node_t* dependencies,
                                      size_t count,
                                      kiln_cu_alloc_node_t* alloc) {
  kiln_cu_graph_node_params_t params =
      graph_node_of_type(KILN_CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  if (alloc != NULL) params.of.alloc = *alloc;
  kiln_cu_result_t result =
      graph_node_add(node, graph, dependencies, count, alloc != NULL, &params);
  if (result == KILN_CU_SUCCESS) alloc->address = params.of.alloc.address;
  return result;
}

static kiln_cu_result_t row_add_free(kiln_cu_graph_node_t* node,
                                     kiln_cu_graph_t graph,
                                     const kiln_cu_graph_node_t* dependencies,
                                     size_t count,
                                     kiln_cu_deviceptr_t address) {
  kiln_cu_graph_node_params_t params =
      graph_node_of_type(KILN_CU_GRAPH_NODE_TYPE_MEM_FREE);
  params.of.free = address;
  return graph_node_add(node, graph, dependencies, count, true, &params);
}

static kiln_cu_result_t row_add_values(kiln_cu_graph_node_t* node,
                                       kiln_cu_graph_t graph,
                                       const kiln_cu_graph_node_t* dependencies,
                                       size_t count,
                                       const kiln_cu_mem_op_node_t* values) {
  kiln_cu_graph_node_params_t params =
      graph_node_of_type(KILN_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  if (values != NULL) params.of.operations = *values;
  return graph_node_add(node, graph, dependencies, count, values != NULL,
                        &params);
}

// ---- Reading and changing ----

// Enters a row about a node of `type`.
static kiln_cu_result_t graph_node_enter(kiln_cu_graph_node_t node,
                                         uint32_t type, bool good,
                                         kilni_soft_driver_t** out_driver,
                                         kilni_soft_node_t** out_node) {
  kiln_cu_result_t result =
      kilni_soft_enter(KILNI_SOFT_NEEDS_START, out_driver);
  if (result != KILN_CU_SUCCESS) return result;
  *out_node = kilni_soft_node_find(*out_driver, node);
  if (good && *out_node != NULL && (*out_node)->type == type) return result;
  return kilni_soft_leave(*out_driver, KILN_CU_ERROR_INVALID_VALUE);
}

void kilni_soft_doing_replace(kilni_soft_driver_t* driver,
                              kilni_soft_node_t* node,
                              kilni_soft_doing_t* doing) {
  if (node->type == KILN_CU_GRAPH_NODE_TYPE_KERNEL) {
    // The attributes are the node's, whatever it launches.
    kilni_soft_kernel_node_t* kernel = &node->as.kernel;
    doing->kernel.attributes = kernel->attributes;
    doing->kernel.attribute_count = kernel->attribute_count;
    kernel->attributes = NULL;
    kernel->attribute_count = 0;
  }
  kilni_soft_doing_free(driver, node->type, &node->as);
  node->as = *doing;
  if (node->type == KILN_CU_GRAPH_NODE_TYPE_GRAPH) node->as.child->of = node;
}

// Whether a node may be given other work of its kind.
static bool is_settable(uint32_t type) {
  return type != KILN_CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
         type != KILN_CU_GRAPH_NODE_TYPE_MEM_FREE &&
         type != KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL &&
         type != KILN_CU_GRAPH_NODE_TYPE_EMPTY;
}

static kiln_cu_result_t graph_node_row_set(
    kiln_cu_graph_node_t node, kiln_cu_graph_node_params_t* params) {
  kilni_soft_driver_t* driver;
  kilni_soft_node_t* found;
  if (params == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  kiln_cu_result_t result = graph_node_enter(
      node, params->type, is_settable(params->type), &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_doing_t doing;
  result = kilni_soft_doing_read(driver, found->graph, params, &doing);
  if (result == KILN_CU_SUCCESS) {
    kilni_soft_doing_replace(driver, found, &doing);
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t graph_node_row_get_kernel(
    kiln_cu_graph_node_t node, kiln_cu_kernel_node_t* params) {
  kilni_soft_driver_t* driver;
  kilni_soft_node_t* found;
  kiln_cu_result_t result = graph_node_enter(
      node, KILN_CU_GRAPH_NODE_TYPE_KERNEL, params != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  const kilni_soft_kernel_node_t* kernel = &found->as.kernel;
  memset(params, 0, sizeof(*params));
  params->function = (kiln_cu_function_t)(uintptr_t)kernel->function;
  params->grid_x = kernel->grid[0];
  params->grid_y = kernel->grid[1];
  params->grid_z = kernel->grid[2];
  params->block_x = kernel->block[0];
  params->block_y = kernel->block[1];
  params->block_z = kernel->block[2];
  params->shared_bytes = kernel->shared_bytes;
  params->params = kernel->params;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t row_set_kernel(kiln_cu_graph_node_t node,
                                       const kiln_cu_kernel_node_t* kernel) {
  kiln_cu_graph_node_params_t params =
      graph_node_of_type(KILN_CU_GRAPH_NODE_TYPE_KERNEL);
  if (kernel == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  kiln_cu_result_t result = kilni_soft_need_current();
  if (result != KILN_CU_SUCCESS) return result;
  params.of.kernel = *kernel;
  return graph_node_row_set(node, &params);
}

static kiln_cu_result_t row_get_memcpy(kiln_cu_graph_node_t node,
                                       kiln_cu_copy_3d_t* params) {
  kilni_soft_driver_t* driver;
  kilni_soft_node_t* found;
  kiln_cu_result_t result = graph_node_enter(
      node, KILN_CU_GRAPH_NODE_TYPE_MEMCPY, params != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  *params = found->as.copy.copy;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

// The older rows change a node in the context that it has.
static kiln_cu_context_t graph_node_context_of(kiln_cu_graph_node_t node,
                                               uint32_t type) {
  kilni_soft_driver_t* driver;
  kilni_soft_node_t* found;
  if (graph_node_enter(node, type, true, &driver, &found) != KILN_CU_SUCCESS) {
    return NULL;
  }
  kiln_cu_context_t context = type == KILN_CU_GRAPH_NODE_TYPE_MEMCPY
                                  ? found->as.copy.context
                                  : found->as.fill.context;
  (void)kilni_soft_leave(driver, KILN_CU_SUCCESS);
  return context;
}

static kiln_cu_result_t row_set_memcpy(kiln_cu_graph_node_t node,
                                       const kiln_cu_copy_3d_t* copy) {
  kiln_cu_graph_node_params_t params =
      graph_node_of_type(KILN_CU_GRAPH_NODE_TYPE_MEMCPY);
  if (copy == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  params.of.memcpy.copy = *copy;
  params.of.memcpy.context = graph_node_context_of(node, params.type);
  return graph_node_row_set(node, &params);
}

static kiln_cu_result_t row_get_memset(kiln_cu_graph_node_t node,
                                       kiln_cu_memset_node_t* params) {
  kilni_soft_driver_t* driver;
  kilni_soft_node_t* found;
  kiln_cu_result_t result = graph_node_enter(
      node, KILN_CU_GRAPH_NODE_TYPE_MEMSET, params != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  *params = found->as.fill.fill;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t row_set_memset(kiln_cu_graph_node_t node,
                                       const kiln_cu_memset_node_t* fill) {
  kiln_cu_graph_node_params_t params =
      graph_node_of_type(KILN_CU_GRAPH_NODE_TYPE_MEMSET);
  if (fill == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  params.of.memset.fill = *fill;
  params.of.memset.context = graph_node_context_of(node, params.type);
  return graph_node_row_set(node, &params);
}

static kiln_cu_result_t row_get_host(kiln_cu_graph_node_t node,
                                     kiln_cu_host_node_t* params) {
  kilni_soft_driver_t* driver;
  kilni_soft_node_t* found;
  kiln_cu_result_t result = graph_node_enter(node, KILN_CU_GRAPH_NODE_TYPE_HOST,
                                             params != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  *params = found->as.host;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t row_set_host(kiln_cu_graph_node_t node,
                                     const kiln_cu_host_node_t* host) {
  kiln_cu_graph_node_params_t params =
      graph_node_of_type(KILN_CU_GRAPH_NODE_TYPE_HOST);
  if (host == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  params.of.host = *host;
  return graph_node_row_set(node, &params);
}

static kiln_cu_result_t row_get_child(kiln_cu_graph_node_t node,
                                      kiln_cu_graph_t* graph) {
  kilni_soft_driver_t* driver;
  kilni_soft_node_t* found;
  kiln_cu_result_t result = graph_node_enter(
      node, KILN_CU_GRAPH_NODE_TYPE_GRAPH, graph != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  *graph = (kiln_cu_graph_t)(uintptr_t)found->as.child->handle;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t get_event(kiln_cu_graph_node_t node, uint32_t type,
                                  kiln_cu_event_t* event) {
  kilni_soft_driver_t* driver;
  kilni_soft_node_t* found;
  kiln_cu_result_t result =
      graph_node_enter(node, type, event != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  *event = (kiln_cu_event_t)(uintptr_t)found->as.event;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t set_event(kiln_cu_graph_node_t node, uint32_t type,
                                  kiln_cu_event_t event) {
  kiln_cu_graph_node_params_t params = graph_node_of_type(type);
  params.of.event = event;
  return graph_node_row_set(node, &params);
}

static kiln_cu_result_t row_get_record(kiln_cu_graph_node_t node,
                                       kiln_cu_event_t* event) {
  return get_event(node, KILN_CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

static kiln_cu_result_t row_set_record(kiln_cu_graph_node_t node,
                                       kiln_cu_event_t event) {
  return set_event(node, KILN_CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

static kiln_cu_result_t row_get_wait(kiln_cu_graph_node_t node,
                                     kiln_cu_event_t* event) {
  return get_event(node, KILN_CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

static kiln_cu_result_t row_set_wait(kiln_cu_graph_node_t node,
                                     kiln_cu_event_t event) {
  return set_event(node, KILN_CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

static kiln_cu_result_t row_get_alloc(kiln_cu_graph_node_t node,
                                      kiln_cu_alloc_node_t* params) {
  kilni_soft_driver_t* driver;
  kilni_soft_node_t* found;
  kiln_cu_result_t result = graph_node_enter(
      node, KILN_CU_GRAPH_NODE_TYPE_MEM_ALLOC, params != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  *params = found->as.alloc.params;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t row_get_free(kiln_cu_graph_node_t node,
                                     kiln_cu_deviceptr_t* address) {
  kilni_soft_driver_t* driver;
  kilni_soft_node_t* found;
  kiln_cu_result_t result = graph_node_enter(
      node, KILN_CU_GRAPH_NODE_TYPE_MEM_FREE, address != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  *address = found->as.release.address;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t row_get_values(kiln_cu_graph_node_t node,
                                       kiln_cu_mem_op_node_t* params) {
  kilni_soft_driver_t* driver;
  kilni_soft_node_t* found;
  kiln_cu_result_t result =
      graph_node_enter(node, KILN_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                       params != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  *params = found->as.values;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t row_set_values(kiln_cu_graph_node_t node,
                                       const kiln_cu_mem_op_node_t* values) {
  kiln_cu_graph_node_params_t params =
      graph_node_of_type(KILN_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  if (values == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  params.of.operations = *values;
  return graph_node_row_set(node, &params);
}

// ---- Attributes of kernels ----

static kiln_cu_result_t graph_node_row_get_attribute(
    kiln_cu_graph_node_t node, kiln_cu_launch_attribute_id_t attribute,
    kiln_cu_launch_attribute_value_t* value) {
  kilni_soft_driver_t* driver;
  kilni_soft_node_t* found;
  kiln_cu_result_t result = graph_node_enter(
      node, KILN_CU_GRAPH_NODE_TYPE_KERNEL, value != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  const kiln_cu_launch_attribute_t* one =
      kilni_soft_kernel_attribute(&found->as.kernel, attribute);
  kiln_cu_launch_attribute_t none = {.id = attribute};
  if (one == NULL &&
      kilni_soft_check_attribute(&none) == KILN_CU_ERROR_NOT_SUPPORTED &&
      attribute != KILN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  *value = one != NULL ? one->value : none.value;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t graph_node_row_set_attribute(
    kiln_cu_graph_node_t node, kiln_cu_launch_attribute_id_t attribute,
    const kiln_cu_launch_attribute_value_t* value) {
  kilni_soft_driver_t* driver;
  kilni_soft_node_t* found;
  kiln_cu_result_t result = graph_node_enter(
      node, KILN_CU_GRAPH_NODE_TYPE_KERNEL, value != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  kiln_cu_launch_attribute_t one = {.id = attribute, .value = *value};
  result = kilni_soft_check_attribute(&one);
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_kernel_set_attribute(driver, &found->as.kernel, &one);
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_copy_attributes(kiln_cu_graph_node_t to,
                                            kiln_cu_graph_node_t from) {
  kilni_soft_driver_t* driver;
  kilni_soft_node_t* target;
  kiln_cu_result_t result = graph_node_enter(to, KILN_CU_GRAPH_NODE_TYPE_KERNEL,
                                             true, &driver, &target);
  if (result != KILN_CU_SUCCESS) return result;
  const kilni_soft_node_t* source = kilni_soft_node_find(driver, from);
  if (source == NULL || source->type != KILN_CU_GRAPH_NODE_TYPE_KERNEL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  for (uint32_t i = 0; result == KILN_CU_SUCCESS && source != target &&
                       i < source->as.kernel.attribute_count;
       i++) {
    result = kilni_soft_kernel_set_attribute(driver, &target->as.kernel,
                                             &source->as.kernel.attributes[i]);
  }
  return kilni_soft_leave(driver, result);
}

void kilni_soft_fill_graph_node(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuGraphAddNode, graph_node_row_add);
  KILNI_CUDA_SET(table, cuGraphNodeSetParams, graph_node_row_set);
  KILNI_CUDA_SET(table, cuGraphAddKernelNode, row_add_kernel);
  KILNI_CUDA_SET(table, cuGraphKernelNodeGetParams, graph_node_row_get_kernel);
  KILNI_CUDA_SET(table, cuGraphKernelNodeSetParams, row_set_kernel);
  KILNI_CUDA_SET(table, cuGraphKernelNodeGetAttribute,
                 graph_node_row_get_attribute);
  KILNI_CUDA_SET(table, cuGraphKernelNodeSetAttribute,
                 graph_node_row_set_attribute);
  KILNI_CUDA_SET(table, cuGraphKernelNodeCopyAttributes, row_copy_attributes);
  KILNI_CUDA_SET(table, cuGraphAddMemcpyNode, row_add_memcpy);
  KILNI_CUDA_SET(table, cuGraphMemcpyNodeGetParams, row_get_memcpy);
  KILNI_CUDA_SET(table, cuGraphMemcpyNodeSetParams, row_set_memcpy);
  KILNI_CUDA_SET(table, cuGraphAddMemsetNode, row_add_memset);
  KILNI_CUDA_SET(table, cuGraphMemsetNodeGetParams, row_get_memset);
  KILNI_CUDA_SET(table, cuGraphMemsetNodeSetParams, row_set_memset);
  KILNI_CUDA_SET(table, cuGraphAddHostNode, row_add_host);
  KILNI_CUDA_SET(table, cuGraphHostNodeGetParams, row_get_host);
  KILNI_CUDA_SET(table, cuGraphHostNodeSetParams, row_set_host);
  KILNI_CUDA_SET(table, cuGraphAddChildGraphNode, row_add_child);
  KILNI_CUDA_SET(table, cuGraphChildGraphNodeGetGraph, row_get_child);
  KILNI_CUDA_SET(table, cuGraphAddEmptyNode, row_add_empty);
  KILNI_CUDA_SET(table, cuGraphAddEventRecordNode, row_add_record);
  KILNI_CUDA_SET(table, cuGraphEventRecordNodeGetEvent, row_get_record);
  KILNI_CUDA_SET(table, cuGraphEventRecordNodeSetEvent, row_set_record);
  KILNI_CUDA_SET(table, cuGraphAddEventWaitNode, row_add_wait);
  KILNI_CUDA_SET(table, cuGraphEventWaitNodeGetEvent, row_get_wait);
  KILNI_CUDA_SET(table, cuGraphEventWaitNodeSetEvent, row_set_wait);
  KILNI_CUDA_SET(table, cuGraphAddMemAllocNode, row_add_alloc);
  KILNI_CUDA_SET(table, cuGraphMemAllocNodeGetParams, row_get_alloc);
  KILNI_CUDA_SET(table, cuGraphAddMemFreeNode, row_add_free);
  KILNI_CUDA_SET(table, cuGraphMemFreeNodeGetParams, row_get_free);
  KILNI_CUDA_SET(table, cuGraphAddBatchMemOpNode, row_add_values);
  KILNI_CUDA_SET(table, cuGraphBatchMemOpNodeGetParams, row_get_values);
  KILNI_CUDA_SET(table, cuGraphBatchMemOpNodeSetParams, row_set_values);
}
