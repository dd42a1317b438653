// SPDX-License-Identifier: Apache-2.0
//
// soft: a launch of an executable as tasks of the queue.
//
// Each node is a task that waits for those its edges come from; an inner graph
// is its nodes between two marks. So whatever the edges leave unspecified is
// the queue's choice, and the seed's. Before all of it comes a gate, which
// waits for the stream, for the previous launch of the same executable and for
// others with the same values; after it comes an end, with which the stream
// goes on.
//
// A conditional node is a task that decides when its turn comes, and puts the
// nodes of a body between itself and its end. So do the turns of a loop.
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "soft/driver/soft_graph.h"
#include "table/cuda_abi.h"

// Slots of a conditional node's end: the node, and the tasks that it appended.
enum { END_SLOTS = 3 };

// An event that a node records.
typedef struct recorded_t {
  kilni_soft_event_t* event;
  kilni_soft_task_t* task;
} recorded_t;

// The tasks of a launch before they are committed.
typedef struct plan_t {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* stream;
  kilni_soft_flight_t* flight;
  kilni_soft_task_t** tasks;
  size_t count;
  size_t capacity;
  recorded_t* records;
  size_t record_count;
  size_t record_capacity;
} plan_t;

static void free_plan(plan_t* plan, bool drop) {
  kiln_allocator_t allocator = plan->driver->host.allocator;
  for (size_t i = 0; drop && i < plan->count; i++) {
    kilni_soft_task_drop(plan->driver, plan->tasks[i]);
  }
  kilni_base_free_array(allocator, plan->tasks, plan->capacity,
                        sizeof(kilni_soft_task_t*));
  kilni_base_free_array(allocator, plan->records, plan->record_capacity,
                        sizeof(*plan->records));
}

// One task more. What `work` owns is the plan's, also when it fails.
static kiln_cu_result_t add_task(plan_t* plan, const kilni_soft_work_t* work,
                                 size_t space, kilni_soft_task_t** out_task) {
  kilni_soft_driver_t* driver = plan->driver;
  kilni_soft_task_t* task = NULL;
  *out_task = NULL;
  void* tasks = plan->tasks;
  kiln_status_t status =
      kilni_base_grow(driver->host.allocator, plan->count + 1,
                      sizeof(kilni_soft_task_t*), &plan->capacity, &tasks);
  plan->tasks = tasks;
  kiln_cu_result_t result = kilni_soft_result(status);
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_task_new(driver, plan->stream, work, space, &task);
  }
  if (result != KILN_CU_SUCCESS) {
    if (work->kind == KILNI_SOFT_TASK_KERNEL) {
      kilni_soft_grid_destroy(work->as.grid);
    } else if (work->kind == KILNI_SOFT_TASK_VALUES) {
      kilni_base_free_array(driver->host.allocator, work->as.values.list,
                            work->as.values.count,
                            sizeof(*work->as.values.list));
    } else if (work->kind == KILNI_SOFT_TASK_FLIGHT) {
      kilni_soft_flight_end(driver, work->as.flight);
    }
    return result;
  }
  plan->tasks[plan->count++] = task;
  *out_task = task;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t add_mark(plan_t* plan, size_t space,
                                 kilni_soft_task_t** out_task) {
  const kilni_soft_work_t mark = {.kind = KILNI_SOFT_TASK_MARK};
  return add_task(plan, &mark, space, out_task);
}

static size_t count_leaves(const kilni_soft_graph_t* graph) {
  size_t count = 0;
  for (size_t i = 0; i < graph->order_count; i++) {
    count += !graph->order[i]->has_next;
  }
  return count;
}

// `task` waits for all that nothing of the graph waits for.
static void after_leaves(const kilni_soft_graph_t* graph,
                         kilni_soft_task_t* task) {
  for (size_t i = 0; i < graph->order_count; i++) {
    if (!graph->order[i]->has_next) {
      kilni_soft_task_after(task, graph->order[i]->tail);
    }
  }
}

// ---- Nodes ----

static kiln_cu_result_t plan_graph(plan_t* plan,
                                   const kilni_soft_graph_t* graph,
                                   kilni_soft_task_t* gate);

static kiln_cu_result_t plan_child(plan_t* plan, kilni_soft_node_t* node) {
  const kilni_soft_graph_t* child = node->as.child;
  kiln_cu_result_t result = add_mark(plan, node->in.count + 1, &node->head);
  if (result == KILN_CU_SUCCESS) result = plan_graph(plan, child, node->head);
  if (result == KILN_CU_SUCCESS) {
    result = add_mark(plan, count_leaves(child) + 1, &node->tail);
  }
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_task_after(node->tail, node->head);
  after_leaves(child, node->tail);
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t plan_condition(plan_t* plan, kilni_soft_node_t* node) {
  const kilni_soft_work_t work = {
      .kind = KILNI_SOFT_TASK_CONDITION,
      .as.condition = {.flight = plan->flight, .node = node}};
  kiln_cu_result_t result =
      add_task(plan, &work, node->in.count + 1, &node->head);
  if (result == KILN_CU_SUCCESS) {
    node->head->node = node;
    result = add_mark(plan, END_SLOTS, &node->tail);
  }
  if (result != KILN_CU_SUCCESS) return result;
  node->head->work.as.condition.end = node->tail;
  kilni_soft_task_after(node->tail, node->head);
  return KILN_CU_SUCCESS;
}

// Where an event was recorded last, this launch included.
static kilni_soft_task_t* last_record(const plan_t* plan,
                                      const kilni_soft_event_t* event) {
  for (size_t i = plan->record_count; i-- > 0;) {
    if (plan->records[i].event == event) return plan->records[i].task;
  }
  return event->recorded;
}

static kiln_cu_result_t plan_event(plan_t* plan, kilni_soft_node_t* node) {
  kilni_soft_driver_t* driver = plan->driver;
  kilni_soft_event_t* event = kilni_soft_handle_get(
      &driver->handles, KILNI_SOFT_KIND_EVENT, node->as.event);
  if (event == NULL) return KILN_CU_ERROR_INVALID_HANDLE;
  kiln_cu_result_t result = add_mark(plan, node->in.count + 2, &node->head);
  node->tail = node->head;
  if (result != KILN_CU_SUCCESS) return result;
  if (node->type == KILN_CU_GRAPH_NODE_TYPE_WAIT_EVENT) {
    kilni_soft_task_after(node->head, last_record(plan, event));
    return KILN_CU_SUCCESS;
  }
  void* records = plan->records;
  kiln_status_t status =
      kilni_base_grow(driver->host.allocator, plan->record_count + 1,
                      sizeof(*plan->records), &plan->record_capacity, &records);
  plan->records = records;
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  plan->records[plan->record_count++] = (recorded_t){event, node->head};
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t plan_node(plan_t* plan, kilni_soft_node_t* node) {
  kilni_soft_driver_t* driver = plan->driver;
  switch (node->type) {
    case KILN_CU_GRAPH_NODE_TYPE_GRAPH:
      return plan_child(plan, node);
    case KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return plan_condition(plan, node);
    case KILN_CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case KILN_CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return plan_event(plan, node);
    default:
      break;
  }
  kilni_soft_work_t work;
  kiln_cu_result_t result =
      kilni_soft_doing_work(driver, plan->stream, node,
                            driver->queue.tickets + plan->count + 1, &work);
  if (result != KILN_CU_SUCCESS) return result;
  result = add_task(plan, &work, node->in.count + 1, &node->head);
  node->tail = node->head;
  if (result == KILN_CU_SUCCESS) node->head->node = node;
  return result;
}

static kiln_cu_result_t plan_graph(plan_t* plan,
                                   const kilni_soft_graph_t* graph,
                                   kilni_soft_task_t* gate) {
  for (size_t i = 0; i < graph->order_count; i++) {
    kilni_soft_node_t* node = graph->order[i];
    kiln_cu_result_t result = plan_node(plan, node);
    if (result != KILN_CU_SUCCESS) return result;
    for (size_t k = 0; k < node->in.count; k++) {
      kilni_soft_task_after(node->head, node->in.list[k].from->tail);
    }
    if (node->in.count == 0) kilni_soft_task_after(node->head, gate);
  }
  return KILN_CU_SUCCESS;
}

// ---- Memory of allocation nodes ----

// Whether what the graph allocates is free, or is to be freed by the launch.
static bool stores_are_free(const kilni_soft_graph_t* graph) {
  for (size_t i = 0; i < graph->count; i++) {
    const kilni_soft_node_t* node = graph->nodes[i];
    if (node->type == KILN_CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
        (node->as.alloc.store->used || node->as.alloc.store->address == 0)) {
      return false;
    }
    if (node->type == KILN_CU_GRAPH_NODE_TYPE_GRAPH &&
        !stores_are_free(node->as.child)) {
      return false;
    }
  }
  return true;
}

static void set_stores(kilni_soft_driver_t* driver,
                       const kilni_soft_graph_t* graph, uint32_t type,
                       bool used) {
  for (size_t i = 0; i < graph->count; i++) {
    const kilni_soft_node_t* node = graph->nodes[i];
    if (node->type == KILN_CU_GRAPH_NODE_TYPE_GRAPH) {
      set_stores(driver, node->as.child, type, used);
    } else if (node->type == type) {
      kilni_soft_store_use(driver,
                           type == KILN_CU_GRAPH_NODE_TYPE_MEM_ALLOC
                               ? node->as.alloc.store
                               : node->as.release.store,
                           used);
    }
  }
}

// ---- Launches ----

void kilni_soft_flight_end(kilni_soft_driver_t* driver,
                           kilni_soft_flight_t* flight) {
  kilni_soft_exec_release(driver, flight->exec);
  kilni_base_free(driver->host.allocator, flight, sizeof(*flight));
}

// The values that are reset by each launch; `*inout_gate` comes after them.
static kiln_cu_result_t plan_values(plan_t* plan,
                                    const kilni_soft_graph_t* graph,
                                    kilni_soft_task_t** inout_gate) {
  kilni_soft_task_t* gate = *inout_gate;
  kilni_soft_task_t* behind = NULL;
  if (graph->value_count == 0) return KILN_CU_SUCCESS;
  size_t first = plan->count;
  for (size_t i = 0; i < graph->value_count; i++) {
    const kilni_soft_value_t* value = graph->values[i];
    if (value->address == 0) return KILN_CU_ERROR_INVALID_VALUE;
    if (!value->assign) continue;
    const kilni_soft_work_t fill = {
        .kind = KILNI_SOFT_TASK_FILL,
        .as.fill = {.address = value->address,
                    .count = 1,
                    .value = value->initial,
                    .width = sizeof(value->initial)}};
    kilni_soft_task_t* task = NULL;
    kiln_cu_result_t result = add_task(plan, &fill, 1, &task);
    if (result != KILN_CU_SUCCESS) return result;
    kilni_soft_task_after(task, gate);
  }
  size_t fills = plan->count - first;
  kiln_cu_result_t result = add_mark(plan, fills + 1, &behind);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_task_after(behind, gate);
  for (size_t i = 0; i < fills; i++) {
    kilni_soft_task_after(behind, plan->tasks[first + i]);
  }
  *inout_gate = behind;
  return KILN_CU_SUCCESS;
}

// Makes all tasks; `*out_gate` is the first and `*out_end` the last of them.
static kiln_cu_result_t plan_launch(plan_t* plan, kilni_soft_exec_t* exec,
                                    kilni_soft_task_t** out_gate,
                                    kilni_soft_task_t** out_end) {
  const kilni_soft_graph_t* graph = exec->graph;
  kiln_cu_result_t result = add_mark(plan, graph->value_count + 2, out_gate);
  kilni_soft_task_t* gate = *out_gate;
  if (result == KILN_CU_SUCCESS) result = plan_values(plan, graph, &gate);
  if (result == KILN_CU_SUCCESS) result = plan_graph(plan, graph, gate);
  if (result != KILN_CU_SUCCESS) {
    kilni_soft_flight_end(plan->driver, plan->flight);
    return result;
  }
  const kilni_soft_work_t work = {.kind = KILNI_SOFT_TASK_FLIGHT,
                                  .as.flight = plan->flight};
  result = add_task(plan, &work, count_leaves(graph) + 1, out_end);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_task_after(*out_end, gate);
  after_leaves(graph, *out_end);
  return KILN_CU_SUCCESS;
}

static void set_last(kilni_soft_driver_t* driver, kilni_soft_task_t** last,
                     kilni_soft_task_t* end) {
  kilni_soft_task_retain(end);
  kilni_soft_task_release(driver, *last);
  *last = end;
}

// Everything is there: nothing fails from here on.
static void commit_launch(plan_t* plan, kilni_soft_exec_t* exec,
                          kilni_soft_task_t* gate, kilni_soft_task_t* end,
                          kilni_soft_task_t* begin) {
  kilni_soft_driver_t* driver = plan->driver;
  const kilni_soft_graph_t* graph = exec->graph;
  kilni_soft_task_after(gate, begin);
  kilni_soft_task_after(gate, exec->last);
  for (size_t i = 0; i < graph->value_count; i++) {
    kilni_soft_task_after(gate, graph->values[i]->last);
  }
  for (size_t i = 0; i < plan->record_count; i++) {
    kilni_soft_capture_forget(driver, plan->records[i].event);
    set_last(driver, &plan->records[i].event->recorded, plan->records[i].task);
  }
  for (size_t i = 0; i < graph->value_count; i++) {
    set_last(driver, &graph->values[i]->last, end);
  }
  // What was the last may only live through this.
  kilni_soft_task_t* before = exec->last;
  kilni_soft_task_retain(end);
  exec->last = end;
  set_stores(driver, graph, KILN_CU_GRAPH_NODE_TYPE_MEM_ALLOC, true);
  set_stores(driver, graph, KILN_CU_GRAPH_NODE_TYPE_MEM_FREE, false);
  kilni_soft_queue_commit(driver, plan->tasks, plan->count, true);
  kilni_soft_task_release(driver, before);
}

kiln_cu_result_t kilni_soft_exec_launch(kilni_soft_driver_t* driver,
                                        kilni_soft_exec_t* exec,
                                        kilni_soft_stream_t* stream) {
  const kilni_soft_work_t mark = {.kind = KILNI_SOFT_TASK_MARK};
  bool frees =
      (exec->flags & KILN_CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  if (exec->has_store && !frees && !stores_are_free(exec->graph)) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  plan_t plan = {.driver = driver, .stream = stream};
  kiln_status_t status = kilni_base_alloc(
      driver->host.allocator, sizeof(*plan.flight), (void**)&plan.flight);
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  plan.flight->exec = exec;
  exec->refs++;
  kilni_soft_task_t* gate = NULL;
  kilni_soft_task_t* end = NULL;
  kilni_soft_task_t* begin = NULL;
  kiln_cu_result_t result = plan_launch(&plan, exec, &gate, &end);
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_queue_reserve(driver, plan.count + 1);
  }
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_queue_issue(driver, stream, &mark, NULL, &begin);
  }
  if (result == KILN_CU_SUCCESS) {
    commit_launch(&plan, exec, gate, end, begin);
    kilni_soft_task_release(driver, begin);
  }
  free_plan(&plan, result != KILN_CU_SUCCESS);
  return result;
}

// ---- Conditional nodes ----

// The body that a value asks for; NULL: none.
static const kilni_soft_graph_t* graph_launch_choose(
    const kilni_soft_node_t* node, uint32_t value) {
  uint32_t count = node->as.condition.count;
  uint32_t chosen = value;
  if (node->as.condition.type == KILN_CU_GRAPH_COND_TYPE_IF) {
    chosen = value != 0 ? 0 : 1;
  } else if (node->as.condition.type == KILN_CU_GRAPH_COND_TYPE_WHILE) {
    chosen = value != 0 ? 0 : 1;
  }
  return chosen < count ? node->as.condition.bodies[chosen] : NULL;
}

// The body's nodes, followed by a mark, or the next iteration of a loop.
static kiln_cu_result_t plan_body(plan_t* plan, const kilni_soft_work_t* work,
                                  const kilni_soft_graph_t* body,
                                  kilni_soft_task_t** out_last) {
  const kilni_soft_node_t* node = work->as.condition.node;
  kiln_cu_result_t result = plan_graph(plan, body, NULL);
  if (result != KILN_CU_SUCCESS) return result;
  size_t space = count_leaves(body);
  if (node->as.condition.type == KILN_CU_GRAPH_COND_TYPE_WHILE) {
    kilni_soft_work_t again = *work;
    again.as.condition.turns++;
    result = add_task(plan, &again, space, out_last);
  } else {
    result = add_mark(plan, space, out_last);
  }
  if (result == KILN_CU_SUCCESS) after_leaves(body, *out_last);
  return result;
}

static bool has_kernel(const kilni_soft_graph_t* graph) {
  for (size_t i = 0; i < graph->count; i++) {
    const kilni_soft_node_t* node = graph->nodes[i];
    if (node->type == KILN_CU_GRAPH_NODE_TYPE_KERNEL && !node->disabled) {
      return true;
    }
    if (node->type == KILN_CU_GRAPH_NODE_TYPE_GRAPH &&
        has_kernel(node->as.child)) {
      return true;
    }
    if (node->type != KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL) continue;
    for (uint32_t k = 0; k < node->as.condition.count; k++) {
      if (has_kernel(node->as.condition.bodies[k])) return true;
    }
  }
  return false;
}

// The value that a conditional node asks for; false: it is gone. A kernel
// beside may be setting it.
static bool graph_launch_read_value(const kilni_soft_driver_t* driver,
                                    const kilni_soft_node_t* node,
                                    uint32_t* out_value) {
  void* cell = kilni_soft_memory_host(driver->memory, node->as.condition.handle,
                                      sizeof(*out_value));
  if (cell == NULL) return false;
  *out_value = atomic_load((_Atomic uint32_t*)cell);
  return true;
}

bool kilni_soft_condition_idles(const kilni_soft_driver_t* driver,
                                const kilni_soft_task_t* task) {
  const kilni_soft_node_t* node = task->work.as.condition.node;
  uint32_t value = 0;
  return node->as.condition.type == KILN_CU_GRAPH_COND_TYPE_WHILE &&
         graph_launch_read_value(driver, node, &value) && value != 0 &&
         !has_kernel(node->as.condition.bodies[0]);
}

kiln_cu_result_t kilni_soft_condition_run(kilni_soft_driver_t* driver,
                                          kilni_soft_task_t* task,
                                          kiln_fault_t* out_fault) {
  const kilni_soft_node_t* node = task->work.as.condition.node;
  kilni_soft_task_t* end = task->work.as.condition.end;
  uint32_t value = 0;
  kiln_cu_result_t result = KILN_CU_ERROR_ILLEGAL_ADDRESS;
  kilni_soft_fault_of_work(
      out_fault, task,
      "a conditional node of a graph reads a value that no longer exists");
  if (!graph_launch_read_value(driver, node, &value)) return result;
  const kilni_soft_graph_t* body = graph_launch_choose(node, value);
  if (body == NULL) return KILN_CU_SUCCESS;
  // Only kernels of its graph set a value, and none is there that could run.
  if (kilni_soft_condition_idles(driver, task) &&
      kilni_soft_queue_is_alone(driver)) {
    kilni_soft_fault_of_work(
        out_fault, task,
        "a loop of a graph never ends: its value is %u after %u iterations, "
        "and it has no kernel that would set it",
        (unsigned)value, (unsigned)task->work.as.condition.turns);
    out_fault->kind = KILN_FAULT_GRAPH_LOOP;
    return KILN_CU_ERROR_LAUNCH_TIMEOUT;
  }
  kilni_soft_fault_of_work(out_fault, task,
                           "the body of a conditional node of a graph could "
                           "not be started");
  plan_t plan = {.driver = driver,
                 .stream = task->stream,
                 .flight = task->work.as.condition.flight};
  kilni_soft_task_t* last = NULL;
  result = plan_body(&plan, &task->work, body, &last);
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_queue_reserve(driver, plan.count);
  }
  if (result == KILN_CU_SUCCESS) {
    size_t slot = 1 + task->work.as.condition.turns % (END_SLOTS - 1);
    kilni_soft_task_after_too(end, slot, last);
    for (size_t i = 0; end->wanted && i < plan.count; i++) {
      kilni_soft_task_want(driver, plan.tasks[i]);
    }
    for (size_t i = 0; i < plan.count; i++) plan.tasks[i]->owner = task->owner;
    kilni_soft_queue_commit(driver, plan.tasks, plan.count, false);
  }
  free_plan(&plan, result != KILN_CU_SUCCESS);
  // What is lost with half of a graph is the device: as a plain lack of memory
  // the result would stay with every later call.
  if (result == KILN_CU_ERROR_OUT_OF_MEMORY) {
    kilni_soft_fault_of_work(
        out_fault, task,
        "the host has no memory for the body of a conditional node");
    out_fault->kind = KILN_FAULT_HOST_MEMORY;
    return KILN_CU_ERROR_LAUNCH_FAILED;
  }
  return result;
}
