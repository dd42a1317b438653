// SPDX-License-Identifier: Apache-2.0
//
// soft: changes of executables: all nodes by another graph, or one by itself.
//
// Nodes of two graphs are the same if they were made at the same place in their
// graph's life: so a graph that is made again by the same calls fits. What does
// not fit is refused with the node and the reason, and nothing has changed.
#include <string.h>

#include "soft/driver/soft_graph.h"
#include "table/cuda_table.h"

// ---- Do two graphs fit? ----

static kiln_cu_graph_node_t graph_update_handle_of(
    const kilni_soft_node_t* node) {
  return (kiln_cu_graph_node_t)(uintptr_t)node->handle;
}

static bool graph_update_refuse(kiln_cu_graph_update_t* outcome,
                                kiln_cu_graph_update_result_t result,
                                const kilni_soft_node_t* node,
                                const kilni_soft_node_t* from) {
  outcome->result = result;
  outcome->node = node != NULL ? graph_update_handle_of(node) : NULL;
  outcome->from = from != NULL ? graph_update_handle_of(from) : NULL;
  return false;
}

static size_t graph_update_place_of(const kilni_soft_graph_t* graph,
                                    const kilni_soft_node_t* node) {
  size_t low = 0;
  size_t high = graph->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (graph->nodes[middle]->number < node->number) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static bool has_edge(const kilni_soft_node_t* node,
                     const kilni_soft_node_t* from,
                     const kiln_cu_graph_edge_t* data) {
  for (size_t i = 0; i < node->in.count; i++) {
    if (node->in.list[i].from != from) continue;
    return memcmp(&node->in.list[i].data, data, sizeof(*data)) == 0;
  }
  return false;
}

static const kilni_soft_context_t* graph_update_context_of(
    const kilni_soft_driver_t* driver, const kilni_soft_kernel_node_t* kernel) {
  const kilni_soft_kernel_t* found = kilni_soft_handle_get(
      &driver->handles, KILNI_SOFT_KIND_FUNCTION, kernel->function);
  return found != NULL ? found->module->context : NULL;
}

static bool graph_update_fits(const kilni_soft_driver_t* driver,
                              const kilni_soft_graph_t* graph,
                              const kilni_soft_graph_t* fresh,
                              kiln_cu_graph_update_t* outcome);

// Whether the one node may do what the other does.
static bool node_fits(const kilni_soft_driver_t* driver,
                      const kilni_soft_node_t* node,
                      const kilni_soft_node_t* fresh,
                      kiln_cu_graph_update_t* outcome) {
  const kilni_soft_doing_t* was = &node->as;
  const kilni_soft_doing_t* is = &fresh->as;
  switch (node->type) {
    case KILN_CU_GRAPH_NODE_TYPE_KERNEL:
      if (graph_update_context_of(driver, &was->kernel) ==
          graph_update_context_of(driver, &is->kernel)) {
        return true;
      }
      return graph_update_refuse(
          outcome, KILN_CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE,
          fresh, NULL);
    case KILN_CU_GRAPH_NODE_TYPE_GRAPH:
      return graph_update_fits(driver, was->child, is->child, outcome);
    case KILN_CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      if (was->alloc.store == is->alloc.store) return true;
      return graph_update_refuse(
          outcome, KILN_CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, fresh, NULL);
    case KILN_CU_GRAPH_NODE_TYPE_MEM_FREE:
      if (was->release.store == is->release.store) return true;
      return graph_update_refuse(
          outcome, KILN_CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, fresh, NULL);
    case KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL:
      if (was->condition.type != is->condition.type ||
          was->condition.count != is->condition.count ||
          was->condition.handle != is->condition.handle) {
        return graph_update_refuse(
            outcome, KILN_CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, fresh,
            NULL);
      }
      for (uint32_t i = 0; i < was->condition.count; i++) {
        if (!graph_update_fits(driver, was->condition.bodies[i],
                               is->condition.bodies[i], outcome)) {
          return false;
        }
      }
      return true;
    default:
      return true;
  }
}

static bool graph_update_fits(const kilni_soft_driver_t* driver,
                              const kilni_soft_graph_t* graph,
                              const kilni_soft_graph_t* fresh,
                              kiln_cu_graph_update_t* outcome) {
  const kiln_cu_graph_update_result_t kTopology =
      KILN_CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  for (size_t i = 0; i < graph->count && i < fresh->count; i++) {
    const kilni_soft_node_t* node = graph->nodes[i];
    const kilni_soft_node_t* other = fresh->nodes[i];
    if (node->type != other->type && graph->count == fresh->count) {
      return graph_update_refuse(
          outcome, KILN_CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, other,
          NULL);
    }
  }
  if (graph->count != fresh->count) {
    return graph_update_refuse(outcome, kTopology, NULL, NULL);
  }
  for (size_t i = 0; i < graph->count; i++) {
    const kilni_soft_node_t* node = graph->nodes[i];
    const kilni_soft_node_t* other = fresh->nodes[i];
    for (size_t k = 0; k < other->in.count; k++) {
      const kilni_soft_node_t* from = other->in.list[k].from;
      if (!has_edge(node, graph->nodes[graph_update_place_of(fresh, from)],
                    &other->in.list[k].data)) {
        return graph_update_refuse(outcome, kTopology, other, from);
      }
    }
    if (node->in.count != other->in.count) {
      return graph_update_refuse(outcome, kTopology, other, NULL);
    }
    if (!node_fits(driver, node, other, outcome)) return false;
  }
  return true;
}

// ---- All of it ----

// The copy takes the place of a graph that it fits: it is known by the same
// numbers, and what was switched off stays so.
static void graph_update_take_place(const kilni_soft_graph_t* graph,
                                    kilni_soft_graph_t* copy) {
  copy->origin = graph->origin;
  copy->next_number = graph->next_number;
  for (size_t i = 0; i < graph->count; i++) {
    const kilni_soft_node_t* from = graph->nodes[i];
    kilni_soft_node_t* to = copy->nodes[i];
    to->number = from->number;
    to->disabled = from->disabled;
    if (from->type == KILN_CU_GRAPH_NODE_TYPE_GRAPH) {
      graph_update_take_place(from->as.child, to->as.child);
    } else if (from->type == KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL) {
      for (uint32_t k = 0; k < from->as.condition.count; k++) {
        graph_update_take_place(from->as.condition.bodies[k],
                                to->as.condition.bodies[k]);
      }
    }
  }
}

static bool chooses(const kilni_soft_graph_t* graph) {
  for (size_t i = 0; i < graph->count; i++) {
    const kilni_soft_node_t* node = graph->nodes[i];
    if (node->type == KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL ||
        (node->type == KILN_CU_GRAPH_NODE_TYPE_GRAPH &&
         chooses(node->as.child))) {
      return true;
    }
  }
  return false;
}

// Bodies are looked up while a launch runs: so it must have ended. False if the
// executable is gone by then.
static bool graph_update_settle(kilni_soft_driver_t* driver,
                                kilni_soft_exec_t* exec) {
  if (exec->last == NULL || exec->last->done || !chooses(exec->graph)) {
    return true;
  }
  exec->refs++;
  kilni_soft_queue_wait(driver, exec->last);
  bool lives = exec->handle != 0;
  kilni_soft_exec_release(driver, exec);
  return lives;
}

static kiln_cu_result_t update(kilni_soft_driver_t* driver,
                               kilni_soft_exec_t* exec,
                               const kilni_soft_graph_t* graph,
                               kiln_cu_graph_update_t* outcome) {
  kilni_soft_graph_t* copy = NULL;
  kilni_soft_node_t* node = NULL;
  outcome->result = KILN_CU_GRAPH_EXEC_UPDATE_ERROR;
  if (!graph_update_fits(driver, exec->graph, graph, outcome)) {
    return KILN_CU_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  kiln_cu_result_t result = kilni_soft_graph_copy(driver, graph, false, &copy);
  if (result != KILN_CU_SUCCESS) return result;
  graph_update_take_place(exec->graph, copy);
  result = kilni_soft_graph_sort(driver, copy, &node);
  if (result != KILN_CU_SUCCESS) {
    kilni_soft_graph_free(driver, copy);
    return result;
  }
  kilni_soft_graph_free(driver, exec->graph);
  exec->graph = copy;
  outcome->result = KILN_CU_GRAPH_EXEC_UPDATE_SUCCESS;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t graph_update_row_update(
    kiln_cu_graph_exec_t exec, kiln_cu_graph_t graph,
    kiln_cu_graph_update_t* outcome) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_exec_t* found = kilni_soft_exec_find(driver, exec);
  if (outcome == NULL || found == NULL || !graph_update_settle(driver, found)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  memset(outcome, 0, sizeof(*outcome));
  const kilni_soft_graph_t* fresh = kilni_soft_graph_find(driver, graph);
  result = fresh != NULL ? update(driver, found, fresh, outcome)
                         : KILN_CU_ERROR_INVALID_VALUE;
  return kilni_soft_leave(driver, result);
}

// ---- One node ----

static bool is_line(const kiln_cu_copy_3d_t* copy) {
  return copy->height == 1 && copy->depth == 1;
}

// What a driver does not change in an executable.
static kiln_cu_result_t graph_update_check_change(
    const kilni_soft_driver_t* driver, const kilni_soft_node_t* node,
    const kilni_soft_doing_t* doing) {
  bool good = true;
  if (node->type == KILN_CU_GRAPH_NODE_TYPE_KERNEL) {
    good = graph_update_context_of(driver, &node->as.kernel) ==
           graph_update_context_of(driver, &doing->kernel);
  } else if (node->type == KILN_CU_GRAPH_NODE_TYPE_MEMCPY) {
    good = is_line(&node->as.copy.copy) && is_line(&doing->copy.copy);
  } else if (node->type == KILN_CU_GRAPH_NODE_TYPE_MEMSET) {
    good = node->as.fill.fill.height == 1 && doing->fill.fill.height == 1;
  }
  return good ? KILN_CU_SUCCESS : KILN_CU_ERROR_INVALID_VALUE;
}

static kiln_cu_result_t set_child(kilni_soft_driver_t* driver,
                                  kilni_soft_node_t* node,
                                  kiln_cu_graph_t child) {
  kiln_cu_graph_update_t outcome;
  kilni_soft_node_t* cycle = NULL;
  kilni_soft_doing_t doing;
  const kilni_soft_graph_t* fresh = kilni_soft_graph_find(driver, child);
  if (fresh == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  if (!graph_update_fits(driver, node->as.child, fresh, &outcome)) {
    return KILN_CU_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  memset(&doing, 0, sizeof(doing));
  kiln_cu_result_t result =
      kilni_soft_graph_copy(driver, fresh, false, &doing.child);
  if (result != KILN_CU_SUCCESS) return result;
  graph_update_take_place(node->as.child, doing.child);
  result = kilni_soft_graph_sort(driver, doing.child, &cycle);
  if (result != KILN_CU_SUCCESS) {
    kilni_soft_graph_free(driver, doing.child);
    return result;
  }
  kilni_soft_doing_replace(driver, node, &doing);
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t graph_update_set_node(
    kilni_soft_driver_t* driver, kilni_soft_node_t* node,
    kiln_cu_graph_node_params_t* params) {
  kilni_soft_doing_t doing;
  switch (node->type) {
    case KILN_CU_GRAPH_NODE_TYPE_GRAPH:
      return set_child(driver, node, params->of.child.graph);
    case KILN_CU_GRAPH_NODE_TYPE_KERNEL:
    case KILN_CU_GRAPH_NODE_TYPE_MEMCPY:
    case KILN_CU_GRAPH_NODE_TYPE_MEMSET:
    case KILN_CU_GRAPH_NODE_TYPE_HOST:
    case KILN_CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case KILN_CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case KILN_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      break;
    default:
      return KILN_CU_ERROR_INVALID_VALUE;
  }
  kiln_cu_result_t result =
      kilni_soft_doing_read(driver, node->graph, params, &doing);
  if (result != KILN_CU_SUCCESS) return result;
  result = graph_update_check_change(driver, node, &doing);
  if (result == KILN_CU_SUCCESS) {
    kilni_soft_doing_replace(driver, node, &doing);
  } else {
    kilni_soft_doing_free(driver, node->type, &doing);
  }
  return result;
}

static kiln_cu_result_t graph_update_row_set(
    kiln_cu_graph_exec_t exec, kiln_cu_graph_node_t node,
    kiln_cu_graph_node_params_t* params) {
  kilni_soft_driver_t* driver;
  if (params == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_exec_t* found = kilni_soft_exec_find(driver, exec);
  const kilni_soft_node_t* named = kilni_soft_node_find(driver, node);
  kilni_soft_node_t* own = NULL;
  if (found != NULL && named != NULL && graph_update_settle(driver, found)) {
    // Waiting lets others go on: what was named is asked for again.
    named = kilni_soft_node_find(driver, node);
    if (named != NULL) own = kilni_soft_exec_node(found, named);
  }
  result = own != NULL && own->type == params->type
               ? graph_update_set_node(driver, own, params)
               : KILN_CU_ERROR_INVALID_VALUE;
  return kilni_soft_leave(driver, result);
}

static kiln_cu_graph_node_params_t graph_update_of_type(uint32_t type) {
  kiln_cu_graph_node_params_t params;
  memset(&params, 0, sizeof(params));
  params.type = type;
  return params;
}

static kiln_cu_result_t row_kernel(kiln_cu_graph_exec_t exec,
                                   kiln_cu_graph_node_t node,
                                   const kiln_cu_kernel_node_t* kernel) {
  kiln_cu_graph_node_params_t params =
      graph_update_of_type(KILN_CU_GRAPH_NODE_TYPE_KERNEL);
  if (kernel == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  kiln_cu_result_t result = kilni_soft_need_current();
  if (result != KILN_CU_SUCCESS) return result;
  params.of.kernel = *kernel;
  return graph_update_row_set(exec, node, &params);
}

static kiln_cu_result_t row_memcpy(kiln_cu_graph_exec_t exec,
                                   kiln_cu_graph_node_t node,
                                   const kiln_cu_copy_3d_t* copy,
                                   kiln_cu_context_t context) {
  kiln_cu_graph_node_params_t params =
      graph_update_of_type(KILN_CU_GRAPH_NODE_TYPE_MEMCPY);
  if (copy == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  params.of.memcpy.copy = *copy;
  params.of.memcpy.context = context;
  return graph_update_row_set(exec, node, &params);
}

static kiln_cu_result_t row_memset(kiln_cu_graph_exec_t exec,
                                   kiln_cu_graph_node_t node,
                                   const kiln_cu_memset_node_t* fill,
                                   kiln_cu_context_t context) {
  kiln_cu_graph_node_params_t params =
      graph_update_of_type(KILN_CU_GRAPH_NODE_TYPE_MEMSET);
  if (fill == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  params.of.memset.fill = *fill;
  params.of.memset.context = context;
  return graph_update_row_set(exec, node, &params);
}

static kiln_cu_result_t row_host(kiln_cu_graph_exec_t exec,
                                 kiln_cu_graph_node_t node,
                                 const kiln_cu_host_node_t* host) {
  kiln_cu_graph_node_params_t params =
      graph_update_of_type(KILN_CU_GRAPH_NODE_TYPE_HOST);
  if (host == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  params.of.host = *host;
  return graph_update_row_set(exec, node, &params);
}

static kiln_cu_result_t row_child(kiln_cu_graph_exec_t exec,
                                  kiln_cu_graph_node_t node,
                                  kiln_cu_graph_t child) {
  kiln_cu_graph_node_params_t params =
      graph_update_of_type(KILN_CU_GRAPH_NODE_TYPE_GRAPH);
  params.of.child.graph = child;
  return graph_update_row_set(exec, node, &params);
}

static kiln_cu_result_t graph_update_row_record(kiln_cu_graph_exec_t exec,
                                                kiln_cu_graph_node_t node,
                                                kiln_cu_event_t event) {
  kiln_cu_graph_node_params_t params =
      graph_update_of_type(KILN_CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  params.of.event = event;
  return graph_update_row_set(exec, node, &params);
}

static kiln_cu_result_t row_wait(kiln_cu_graph_exec_t exec,
                                 kiln_cu_graph_node_t node,
                                 kiln_cu_event_t event) {
  kiln_cu_graph_node_params_t params =
      graph_update_of_type(KILN_CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  params.of.event = event;
  return graph_update_row_set(exec, node, &params);
}

static kiln_cu_result_t row_values(kiln_cu_graph_exec_t exec,
                                   kiln_cu_graph_node_t node,
                                   const kiln_cu_mem_op_node_t* values) {
  kiln_cu_graph_node_params_t params =
      graph_update_of_type(KILN_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  if (values == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  params.of.operations = *values;
  return graph_update_row_set(exec, node, &params);
}

void kilni_soft_fill_graph_update(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuGraphExecUpdate, graph_update_row_update);
  KILNI_CUDA_SET(table, cuGraphExecNodeSetParams, graph_update_row_set);
  KILNI_CUDA_SET(table, cuGraphExecKernelNodeSetParams, row_kernel);
  KILNI_CUDA_SET(table, cuGraphExecMemcpyNodeSetParams, row_memcpy);
  KILNI_CUDA_SET(table, cuGraphExecMemsetNodeSetParams, row_memset);
  KILNI_CUDA_SET(table, cuGraphExecHostNodeSetParams, row_host);
  KILNI_CUDA_SET(table, cuGraphExecChildGraphNodeSetParams, row_child);
  KILNI_CUDA_SET(table, cuGraphExecEventRecordNodeSetEvent,
                 graph_update_row_record);
  KILNI_CUDA_SET(table, cuGraphExecEventWaitNodeSetEvent, row_wait);
  KILNI_CUDA_SET(table, cuGraphExecBatchMemOpNodeSetParams, row_values);
}
