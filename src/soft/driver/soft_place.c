// SPDX-License-Identifier: Apache-2.0
//
// soft: where work was that a time limit ends: in a loop of a graph, or in a
// wait for a value. A kernel's own end reports that (soft_queue.c).
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "soft/driver/soft_driver.h"
#include "soft/driver/soft_graph.h"

// The loop that has turned most often of those that `task` is in, or is.
static const kilni_soft_task_t* place_deeper(const kilni_soft_task_t* loop,
                                             const kilni_soft_task_t* task) {
  if (task->work.kind != KILNI_SOFT_TASK_CONDITION) return loop;
  uint32_t turns = task->work.as.condition.turns;
  if (turns == 0 || (loop != NULL && loop->work.as.condition.turns >= turns)) {
    return loop;
  }
  return task;
}

// A loop's next turn waits for the nodes of this one.
static const kilni_soft_task_t* find_loop(kilni_soft_driver_t* driver,
                                          kilni_soft_task_t* task,
                                          const kilni_soft_task_t* loop) {
  uint64_t walk = ++driver->queue.walks;
  task->walk = walk;
  task->walk_next = NULL;
  while (task != NULL) {
    loop = place_deeper(loop, task);
    kilni_soft_task_t* list = task->walk_next;
    for (kilni_soft_edge_t* edge = task->waiters; edge != NULL;
         edge = edge->next) {
      kilni_soft_task_t* owner = edge->owner;
      if (owner->walk == walk) continue;
      owner->walk = walk;
      owner->walk_next = list;
      list = owner;
    }
    task = list;
  }
  return loop;
}

static void tell_loop(const kilni_soft_task_t* task, kiln_fault_t* out_place) {
  out_place->kind = KILN_FAULT_TIME_LIMIT;
  out_place->cause = KILN_FAULT_CAUSE_LOOP;
  kilni_soft_fault_name_of(out_place, task->work.as.condition.node);
  (void)snprintf(out_place->detail, sizeof(out_place->detail),
                 "in turn %" PRIu32 " of the loop",
                 task->work.as.condition.turns);
}

static void tell_wait(kilni_soft_driver_t* driver,
                      const kilni_soft_task_t* task, kiln_fault_t* out_place) {
  static const char* const kWays[] = {"to reach", "to be", "to have a bit of",
                                      "to lack a bit beside"};
  const kilni_soft_work_t* work = &task->work;
  const kiln_cu_mem_op_t* op = &work->as.values.list[work->as.values.at];
  bool wide = op->operation == KILN_CU_STREAM_MEM_OP_WAIT_VALUE_64;
  uint64_t wanted = wide ? op->value.value : (uint32_t)op->value.value;
  uint64_t is = 0;
  void* at =
      kilni_soft_memory_host(driver->memory, op->value.address, wide ? 8 : 4);
  if (at != NULL && wide) {
    is = __atomic_load_n((uint64_t*)at, __ATOMIC_RELAXED);
  } else if (at != NULL) {
    is = __atomic_load_n((uint32_t*)at, __ATOMIC_RELAXED);
  }
  out_place->kind = KILN_FAULT_TIME_LIMIT;
  out_place->cause = KILN_FAULT_CAUSE_WAIT;
  out_place->address = op->value.address;
  out_place->bytes = wide ? 8 : 4;
  kilni_soft_fault_name_node(out_place, task);
  (void)snprintf(out_place->detail, sizeof(out_place->detail),
                 "it waits for the %d-byte value there %s %" PRIu64
                 "; it is %" PRIu64,
                 wide ? 8 : 4, kWays[op->value.flags & 3], wanted, is);
}

void kilni_soft_place_find(kilni_soft_driver_t* driver,
                           const kilni_soft_context_t* context, uint64_t owner,
                           kilni_soft_place_t* out_place) {
  const kilni_soft_queue_t* queue = &driver->queue;
  kilni_soft_task_t* const lists[] = {queue->running, queue->between,
                                      queue->watching};
  const kilni_soft_task_t* loop = NULL;
  const kilni_soft_task_t* wait = NULL;
  for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
    for (kilni_soft_task_t* task = lists[i]; task != NULL; task = task->next) {
      if (task->stream->context != context || task->owner != owner) continue;
      if (task->work.kind == KILNI_SOFT_TASK_VALUES) wait = task;
      loop = find_loop(driver, task, loop);
    }
  }
  for (size_t i = 0; i < queue->ready_count; i++) {
    kilni_soft_task_t* task = queue->ready[i];
    if (task->stream->context != context || task->owner != owner) continue;
    loop = find_loop(driver, task, loop);
  }
  out_place->turns = 0;
  out_place->at = kiln_fault_default();
  if (wait != NULL) {
    tell_wait(driver, wait, &out_place->at);
  } else if (loop != NULL) {
    out_place->turns = loop->work.as.condition.turns;
    tell_loop(loop, &out_place->at);
  }
}

void kilni_soft_place_take(const kilni_soft_place_t* place,
                           kiln_fault_t* inout_fault) {
  if (place->at.kind == KILN_FAULT_NONE) return;
  if (inout_fault->kind == KILN_FAULT_NONE) {
    *inout_fault = place->at;
    return;
  }
  // A kernel was running. In the first turn it may be what never ends; a loop
  // that has turned does, and the kernel is where it was.
  if (place->at.cause != KILN_FAULT_CAUSE_LOOP || place->turns < 2) return;
  inout_fault->cause = KILN_FAULT_CAUSE_LOOP;
  (void)snprintf(inout_fault->detail, sizeof(inout_fault->detail),
                 "in turn %" PRIu32 " of the loop, in its node \"%s\"",
                 place->turns, inout_fault->node);
  memcpy(inout_fault->node, place->at.node, sizeof(inout_fault->node));
}
