// SPDX-License-Identifier: Apache-2.0
//
// soft: executables of graphs: made, uploaded, switched in part, launched and
// ended.
#include <string.h>

#include "base/alloc.h"
#include "soft/driver/soft_graph.h"
#include "table/cuda_table.h"

static const kilni_soft_work_t kMark = {.kind = KILNI_SOFT_TASK_MARK};

// ---- Sorting ----

// Follows the edges from `node` back to what has none, and puts everything met
// into the order; false if that comes round to itself.
static bool graph_exec_follow(kilni_soft_graph_t* graph,
                              kilni_soft_node_t* node,
                              kilni_soft_node_t** out_node) {
  node->state = 1;
  node->back = NULL;
  while (node != NULL) {
    if (node->at == node->in.count) {
      node->state = 2;
      graph->order[graph->order_count++] = node;
      node = node->back;
      continue;
    }
    kilni_soft_node_t* from = node->in.list[node->at++].from;
    from->has_next = true;
    if (from->state == 1) {
      *out_node = from;
      return false;
    }
    if (from->state == 2) continue;
    from->state = 1;
    from->back = node;
    node = from;
  }
  return true;
}

static kiln_cu_result_t sort_one(kilni_soft_driver_t* driver,
                                 kilni_soft_graph_t* graph,
                                 kilni_soft_node_t** out_node) {
  kilni_base_free_array(driver->host.allocator, graph->order,
                        graph->order_count, sizeof(kilni_soft_node_t*));
  graph->order = NULL;
  graph->order_count = 0;
  kiln_status_t status =
      kilni_base_alloc_array(driver->host.allocator, graph->count,
                             sizeof(kilni_soft_node_t*), (void**)&graph->order);
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  for (size_t i = 0; i < graph->count; i++) {
    graph->nodes[i]->at = 0;
    graph->nodes[i]->state = 0;
    graph->nodes[i]->has_next = false;
  }
  for (size_t i = 0; i < graph->count; i++) {
    if (graph->nodes[i]->state != 0) continue;
    if (graph_exec_follow(graph, graph->nodes[i], out_node)) continue;
    // It is freed by what it was allocated with.
    graph->order_count = graph->count;
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  return KILN_CU_SUCCESS;
}

kiln_cu_result_t kilni_soft_graph_sort(kilni_soft_driver_t* driver,
                                       kilni_soft_graph_t* graph,
                                       kilni_soft_node_t** out_node) {
  kiln_cu_result_t result = sort_one(driver, graph, out_node);
  for (size_t i = 0; i < graph->count && result == KILN_CU_SUCCESS; i++) {
    kilni_soft_node_t* node = graph->nodes[i];
    if (node->type == KILN_CU_GRAPH_NODE_TYPE_GRAPH) {
      result = kilni_soft_graph_sort(driver, node->as.child, out_node);
    } else if (node->type == KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL) {
      for (uint32_t k = 0;
           k < node->as.condition.count && result == KILN_CU_SUCCESS; k++) {
        result = kilni_soft_graph_sort(driver, node->as.condition.bodies[k],
                                       out_node);
      }
    }
  }
  return result;
}

// ---- Objects ----

kilni_soft_exec_t* kilni_soft_exec_find(const kilni_soft_driver_t* driver,
                                        kiln_cu_graph_exec_t exec) {
  return kilni_soft_handle_get(&driver->handles, KILNI_SOFT_KIND_EXEC,
                               (uintptr_t)exec);
}

void kilni_soft_exec_release(kilni_soft_driver_t* driver,
                             kilni_soft_exec_t* exec) {
  if (--exec->refs != 0) return;
  kilni_soft_exec_t** link = &driver->execs;
  while (*link != exec) link = &(*link)->next;
  *link = exec->next;
  if (exec->handle != 0) {
    kilni_soft_handle_remove(&driver->handles, exec->handle);
  }
  kilni_soft_task_release(driver, exec->last);
  if (exec->graph != NULL) kilni_soft_graph_free(driver, exec->graph);
  kilni_base_free(driver->host.allocator, exec, sizeof(*exec));
}

// The copy of the graph with this serial number inside another.
static kilni_soft_graph_t* find_copy(kilni_soft_graph_t* graph,
                                     uint64_t serial) {
  if (graph->origin == serial) return graph;
  for (size_t i = 0; i < graph->count; i++) {
    kilni_soft_node_t* node = graph->nodes[i];
    kilni_soft_graph_t* found = NULL;
    if (node->type == KILN_CU_GRAPH_NODE_TYPE_GRAPH) {
      found = find_copy(node->as.child, serial);
    } else if (node->type == KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL) {
      for (uint32_t k = 0; k < node->as.condition.count && found == NULL; k++) {
        found = find_copy(node->as.condition.bodies[k], serial);
      }
    }
    if (found != NULL) return found;
  }
  return NULL;
}

kilni_soft_node_t* kilni_soft_exec_node(kilni_soft_exec_t* exec,
                                        const kilni_soft_node_t* node) {
  kilni_soft_graph_t* graph = find_copy(exec->graph, node->graph->serial);
  return graph != NULL ? kilni_soft_graph_node(graph, node->number) : NULL;
}

// ---- Making ----

// What the bodies of conditional nodes may not have in them.
static bool may_be_body(const kilni_soft_graph_t* graph) {
  for (size_t i = 0; i < graph->count; i++) {
    switch (graph->nodes[i]->type) {
      case KILN_CU_GRAPH_NODE_TYPE_KERNEL:
      case KILN_CU_GRAPH_NODE_TYPE_MEMCPY:
      case KILN_CU_GRAPH_NODE_TYPE_MEMSET:
      case KILN_CU_GRAPH_NODE_TYPE_EMPTY:
      case KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL:
        break;
      case KILN_CU_GRAPH_NODE_TYPE_GRAPH:
        if (!may_be_body(graph->nodes[i]->as.child)) return false;
        break;
      default:
        return false;
    }
  }
  return true;
}

static bool bodies_are_good(const kilni_soft_graph_t* graph) {
  for (size_t i = 0; i < graph->count; i++) {
    const kilni_soft_node_t* node = graph->nodes[i];
    if (node->type == KILN_CU_GRAPH_NODE_TYPE_GRAPH &&
        !bodies_are_good(node->as.child)) {
      return false;
    }
    if (node->type != KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL) continue;
    for (uint32_t k = 0; k < node->as.condition.count; k++) {
      const kilni_soft_graph_t* body = node->as.condition.bodies[k];
      if (!may_be_body(body) || !bodies_are_good(body)) return false;
    }
  }
  return true;
}

static bool allocates(const kilni_soft_graph_t* graph) {
  for (size_t i = 0; i < graph->count; i++) {
    const kilni_soft_node_t* node = graph->nodes[i];
    if (node->type == KILN_CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
        node->type == KILN_CU_GRAPH_NODE_TYPE_MEM_FREE ||
        (node->type == KILN_CU_GRAPH_NODE_TYPE_GRAPH &&
         allocates(node->as.child))) {
      return true;
    }
  }
  return false;
}

// Whether all kernels of the bodies, at any depth, are of one context; `seen`
// is that of the first.
static bool is_of_one_context(const kilni_soft_driver_t* driver,
                              const kilni_soft_graph_t* body,
                              const kilni_soft_context_t** seen) {
  for (size_t i = 0; i < body->count; i++) {
    const kilni_soft_node_t* node = body->nodes[i];
    if (node->type == KILN_CU_GRAPH_NODE_TYPE_GRAPH &&
        !is_of_one_context(driver, node->as.child, seen)) {
      return false;
    }
    if (node->type == KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL) {
      for (uint32_t k = 0; k < node->as.condition.count; k++) {
        const kilni_soft_graph_t* inner = node->as.condition.bodies[k];
        if (!is_of_one_context(driver, inner, seen)) return false;
      }
    }
    if (node->type != KILN_CU_GRAPH_NODE_TYPE_KERNEL) continue;
    const kilni_soft_kernel_t* kernel = kilni_soft_handle_get(
        &driver->handles, KILNI_SOFT_KIND_FUNCTION, node->as.kernel.function);
    if (kernel == NULL) continue;
    if (*seen == NULL) *seen = kernel->module->context;
    if (*seen != kernel->module->context) return false;
  }
  return true;
}

static bool contexts_are_good(const kilni_soft_driver_t* driver,
                              const kilni_soft_graph_t* graph) {
  for (size_t i = 0; i < graph->count; i++) {
    const kilni_soft_node_t* node = graph->nodes[i];
    if (node->type != KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL) continue;
    for (uint32_t k = 0; k < node->as.condition.count; k++) {
      const kilni_soft_context_t* seen = NULL;
      const kilni_soft_graph_t* body = node->as.condition.bodies[k];
      if (!is_of_one_context(driver, body, &seen)) return false;
    }
  }
  return true;
}

bool kilni_soft_graph_chooses(const kilni_soft_graph_t* graph) {
  for (size_t i = 0; i < graph->count; i++) {
    const kilni_soft_node_t* node = graph->nodes[i];
    if (node->type == KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL ||
        (node->type == KILN_CU_GRAPH_NODE_TYPE_GRAPH &&
         kilni_soft_graph_chooses(node->as.child))) {
      return true;
    }
  }
  return false;
}

bool kilni_soft_graph_asks(const kilni_soft_graph_t* graph,
                           const kilni_soft_value_t* value) {
  for (size_t i = 0; i < graph->count; i++) {
    const kilni_soft_node_t* node = graph->nodes[i];
    if (node->type != KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL) continue;
    if (node->as.condition.handle == value->address) return true;
    for (uint32_t k = 0; k < node->as.condition.count; k++) {
      if (kilni_soft_graph_asks(node->as.condition.bodies[k], value)) {
        return true;
      }
    }
  }
  return false;
}

// Whether this graph may have one executable more, and why not. One that
// allocates, or chooses, may have one at a time.
static kiln_cu_result_t check_graph(const kilni_soft_driver_t* driver,
                                    const kilni_soft_graph_t* graph,
                                    kiln_cu_graph_instantiate_t* params) {
  params->result = KILN_CUDA_GRAPH_INSTANTIATE_ERROR;
  for (size_t i = 0; i < graph->value_count; i++) {
    if (kilni_soft_graph_asks(graph, graph->values[i])) continue;
    params->result = KILN_CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  if (!bodies_are_good(graph) || !contexts_are_good(driver, graph)) {
    return KILN_CU_ERROR_NOT_SUPPORTED;
  }
  bool one = allocates(graph) || kilni_soft_graph_chooses(graph);
  for (const kilni_soft_exec_t* exec = driver->execs; exec != NULL && one;
       exec = exec->next) {
    if (exec->handle != 0 && exec->graph->origin == graph->serial) {
      return KILN_CU_ERROR_NOT_SUPPORTED;
    }
  }
  return KILN_CU_SUCCESS;
}

// The caller's node for the copy's node that prevents the update.
static kiln_cu_graph_node_t original(const kilni_soft_graph_t* graph,
                                     const kilni_soft_node_t* node) {
  if (node == NULL) return NULL;
  const kilni_soft_node_t* found = NULL;
  if (node->graph->origin == graph->serial) {
    found = kilni_soft_graph_node(graph, node->number);
  }
  return found != NULL ? (kiln_cu_graph_node_t)(uintptr_t)found->handle : NULL;
}

static kiln_cu_result_t graph_exec_make_exec(
    kilni_soft_driver_t* driver, const kilni_soft_graph_t* graph,
    kiln_cu_graph_instantiate_t* params, kilni_soft_exec_t** out_exec) {
  *out_exec = NULL;
  kiln_cu_result_t result = check_graph(driver, graph, params);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_exec_t* exec = NULL;
  kiln_status_t status =
      kilni_base_alloc(driver->host.allocator, sizeof(*exec), (void**)&exec);
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  exec->refs = 1;
  exec->flags = params->flags;
  exec->serial = ++driver->serials;
  exec->has_store = allocates(graph);
  exec->next = driver->execs;
  driver->execs = exec;
  result = kilni_soft_graph_copy(driver, graph, false, &exec->graph);
  kilni_soft_node_t* node = NULL;
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_graph_sort(driver, exec->graph, &node);
    if (result == KILN_CU_ERROR_INVALID_VALUE) {
      params->result = KILN_CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
      params->node = original(graph, node);
    }
  }
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_result(kilni_soft_handle_add(
        &driver->handles, KILNI_SOFT_KIND_EXEC, exec, &exec->handle));
  }
  if (result != KILN_CU_SUCCESS) {
    kilni_soft_exec_release(driver, exec);
    return result;
  }
  params->result = KILN_CUDA_GRAPH_INSTANTIATE_SUCCESS;
  *out_exec = exec;
  return KILN_CU_SUCCESS;
}

// An upload is a place in the order of its stream and of the launches so far:
// there is nowhere to go.
static kiln_cu_result_t graph_exec_upload(kilni_soft_driver_t* driver,
                                          const kilni_soft_exec_t* exec,
                                          kiln_cu_stream_t stream) {
  kilni_soft_stream_t* found = NULL;
  kilni_soft_captured_t* captured;
  kiln_cu_result_t result = kilni_soft_stream_resolve(driver, stream, &found);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_enter(driver, found, "cuGraphUpload", &captured);
  if (result != KILN_CU_SUCCESS) return result;
  if (captured != NULL) {
    return kilni_soft_capture_break(driver, captured->capture, "cuGraphUpload",
                                    KILN_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return kilni_soft_queue_issue(driver, found, &kMark, exec->last, NULL);
}

static kiln_cu_result_t row_instantiate(kiln_cu_graph_exec_t* exec,
                                        kiln_cu_graph_t graph,
                                        kiln_cu_graph_instantiate_t* params) {
  kilni_soft_driver_t* driver;
  if (params == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_CURRENT, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_queue_space(driver);
  const kilni_soft_graph_t* found = kilni_soft_graph_find(driver, graph);
  const uint64_t known = KILN_CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                         KILN_CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                         KILN_CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |
                         KILN_CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  params->node = NULL;
  params->result = KILN_CUDA_GRAPH_INSTANTIATE_ERROR;
  if (exec == NULL || found == NULL || (params->flags & ~known) != 0) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  if ((params->flags & KILN_CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_NOT_SUPPORTED);
  }
  kilni_soft_exec_t* made = NULL;
  result = graph_exec_make_exec(driver, found, params, &made);
  if (result == KILN_CU_SUCCESS &&
      (params->flags & KILN_CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) {
    result = graph_exec_upload(driver, made, params->upload);
    if (result != KILN_CU_SUCCESS) {
      params->result = KILN_CUDA_GRAPH_INSTANTIATE_ERROR;
      kilni_soft_exec_release(driver, made);
    }
  }
  if (result == KILN_CU_SUCCESS) {
    *exec = (kiln_cu_graph_exec_t)(uintptr_t)made->handle;
  }
  return kilni_soft_leave(driver, result);
}

// ---- Other rows ----

static kiln_cu_result_t enter_exec(kiln_cu_graph_exec_t exec, bool good,
                                   kilni_soft_driver_t** out_driver,
                                   kilni_soft_exec_t** out_exec) {
  kiln_cu_result_t result =
      kilni_soft_enter(KILNI_SOFT_NEEDS_START, out_driver);
  if (result != KILN_CU_SUCCESS) return result;
  *out_exec = kilni_soft_exec_find(*out_driver, exec);
  if (good && *out_exec != NULL) return KILN_CU_SUCCESS;
  return kilni_soft_leave(*out_driver, KILN_CU_ERROR_INVALID_VALUE);
}

static kiln_cu_result_t graph_exec_row_destroy(kiln_cu_graph_exec_t exec) {
  kilni_soft_driver_t* driver;
  kilni_soft_exec_t* found;
  kiln_cu_result_t result = enter_exec(exec, true, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  // What runs of it goes on.
  kilni_soft_handle_remove(&driver->handles, found->handle);
  found->handle = 0;
  kilni_soft_exec_release(driver, found);
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t row_flags(kiln_cu_graph_exec_t exec, uint64_t* flags) {
  kilni_soft_driver_t* driver;
  kilni_soft_exec_t* found;
  kiln_cu_result_t result = enter_exec(exec, flags != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  // What is done with it, not how it was made: as driver 580 has it.
  *flags =
      found->flags & (KILN_CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                      KILN_CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t row_upload(kiln_cu_graph_exec_t exec,
                                   kiln_cu_stream_t stream) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_queue_space(driver);
  const kilni_soft_exec_t* found = kilni_soft_exec_find(driver, exec);
  result = found != NULL ? graph_exec_upload(driver, found, stream)
                         : KILN_CU_ERROR_INVALID_VALUE;
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t graph_exec_row_launch(kiln_cu_graph_exec_t exec,
                                              kiln_cu_stream_t stream) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* where;
  kilni_soft_captured_t* captured;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, true, &driver, &where);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_exec_t* found = kilni_soft_exec_find(driver, exec);
  if (found == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  result = kilni_soft_capture_enter(driver, where, "cuGraphLaunch", &captured);
  if (result == KILN_CU_SUCCESS && captured != NULL) {
    // As driver 580 has it.
    result =
        kilni_soft_capture_break(driver, captured->capture, "cuGraphLaunch",
                                 KILN_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  } else if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_exec_launch(driver, found, where);
  }
  return kilni_soft_leave(driver, result);
}

// The executable's own of a node, if it may be switched off.
static kilni_soft_node_t* switched(kilni_soft_driver_t* driver,
                                   kilni_soft_exec_t* exec,
                                   kiln_cu_graph_node_t node) {
  const kilni_soft_node_t* named = kilni_soft_node_find(driver, node);
  kilni_soft_node_t* found =
      named != NULL ? kilni_soft_exec_node(exec, named) : NULL;
  bool may = found != NULL && found->type <= KILN_CU_GRAPH_NODE_TYPE_MEMSET;
  return may ? found : NULL;
}

static kiln_cu_result_t row_set_enabled(kiln_cu_graph_exec_t exec,
                                        kiln_cu_graph_node_t node,
                                        unsigned int enabled) {
  kilni_soft_driver_t* driver;
  kilni_soft_exec_t* found;
  kiln_cu_result_t result = enter_exec(exec, true, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_node_t* own = switched(driver, found, node);
  if (own == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  own->disabled = enabled == 0;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t row_get_enabled(kiln_cu_graph_exec_t exec,
                                        kiln_cu_graph_node_t node,
                                        unsigned int* enabled) {
  kilni_soft_driver_t* driver;
  kilni_soft_exec_t* found;
  kiln_cu_result_t result = enter_exec(exec, enabled != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  const kilni_soft_node_t* own = switched(driver, found, node);
  if (own == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  *enabled = !own->disabled;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

void kilni_soft_fill_graph_exec(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuGraphInstantiateWithParams, row_instantiate);
  KILNI_CUDA_SET(table, cuGraphExecDestroy, graph_exec_row_destroy);
  KILNI_CUDA_SET(table, cuGraphExecGetFlags, row_flags);
  KILNI_CUDA_SET(table, cuGraphUpload, row_upload);
  KILNI_CUDA_SET(table, cuGraphLaunch, graph_exec_row_launch);
  KILNI_CUDA_SET(table, cuGraphNodeSetEnabled, row_set_enabled);
  KILNI_CUDA_SET(table, cuGraphNodeGetEnabled, row_get_enabled);
}
