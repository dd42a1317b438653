// SPDX-License-Identifier: Apache-2.0
//
// soft: the faults of the devices' contexts: as records, in the log, for the
// caller.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log_line.h"
#include "base/str.h"
#include "soft/driver/soft_driver.h"
#include "soft/driver/soft_global.h"
#include "soft/driver/soft_graph.h"
#include "soft/soft.h"

enum { LOG_BYTES = 3072 };

// Nodes are counted from 0 in the order they were made.
static void faults_add_node(kiln_fault_t* fault, const kilni_soft_node_t* node,
                            const char* behind) {
  size_t used = strlen(fault->node);
  char* at = fault->node + used;
  size_t space = sizeof(fault->node) - used;
  if (node->label != NULL) {
    (void)snprintf(at, space, "%s%s", node->label, behind);
  } else {
    (void)snprintf(at, space, "%" PRIu64 "%s", node->number - 1, behind);
  }
}

// Which of several bodies of a node a graph is: "[1]/".
static void add_inside(kiln_fault_t* fault, const kilni_soft_node_t* node,
                       const kilni_soft_graph_t* graph) {
  uint32_t index = 0;
  char text[32] = "/";
  if (graph->is_body && node->as.condition.count > 1) {
    while (node->as.condition.bodies[index] != graph) index++;
    (void)snprintf(text, sizeof(text), "[%" PRIu32 "]/", index);
  }
  faults_add_node(fault, node, text);
}

void kilni_soft_fault_name_of(kiln_fault_t* fault,
                              const kilni_soft_node_t* node) {
  enum { MOST_DEPTH = 8 };
  const kilni_soft_graph_t* inside[MOST_DEPTH];
  size_t depth = 0;
  const kilni_soft_graph_t* graph = node->graph;
  for (; graph->of != NULL && depth < MOST_DEPTH; graph = graph->of->graph) {
    inside[depth++] = graph;
  }
  fault->node[0] = 0;
  while (depth-- > 0) add_inside(fault, inside[depth]->of, inside[depth]);
  faults_add_node(fault, node, "");
}

void kilni_soft_fault_name_node(kiln_fault_t* fault,
                                const kilni_soft_task_t* task) {
  if (task->node != NULL) kilni_soft_fault_name_of(fault, task->node);
}

void kilni_soft_fault_of_work(kiln_fault_t* out_fault,
                              const kilni_soft_task_t* task, const char* format,
                              ...) {
  va_list args;
  *out_fault = kiln_fault_default();
  out_fault->kind = KILN_FAULT_WORK;
  va_start(args, format);
  (void)vsnprintf(out_fault->detail, sizeof(out_fault->detail), format, args);
  va_end(args);
  kilni_soft_fault_name_node(out_fault, task);
}

void kilni_soft_fault_log(const kiln_log_sink_t* log,
                          const kiln_fault_t* fault) {
  char message[512];
  char notes[LOG_BYTES];
  char fix[512];
  kiln_fault_message(fault, sizeof(message), message, NULL);
  kiln_fault_notes(fault, sizeof(notes), notes, NULL);
  kiln_fault_fix(fault, sizeof(fix), fix, NULL);
  KILNI_LOG(log, WARNING, "%s%s%s\nFix: %s", message, notes[0] != 0 ? "\n" : "",
            notes, fix);
}

void kilni_soft_fault_of(uint32_t device, kiln_fault_t* out_fault) {
  *out_fault = kiln_fault_default();
  if (kilni_soft_global_is_forked()) return;
  kilni_soft_global_lock();
  kilni_soft_driver_t* driver = kilni_soft_global_driver();
  if (driver != NULL && device < driver->device_count) {
    kilni_base_mutex_lock(&driver->lock);
    if (driver->faults[device].kind != KILN_FAULT_NONE) {
      *out_fault = driver->faults[device];
    }
    kilni_base_mutex_unlock(&driver->lock);
  }
  kilni_soft_global_unlock();
}

// Locked.
static bool faults_name_node(kilni_soft_driver_t* driver, void* handle,
                             const char* name) {
  kilni_soft_node_t* node = kilni_soft_node_find(driver, handle);
  char* label = NULL;
  if (node == NULL) return false;
  if (name[0] != 0) {
    kiln_status_t status =
        kilni_base_strdup(driver->host.allocator, kilni_base_sv(name), &label);
    if (!kiln_status_is_ok(status)) {
      kiln_status_free(status);
      return false;
    }
  }
  kilni_base_strfree(driver->host.allocator, node->label);
  node->label = label;
  return true;
}

bool kilni_soft_name_node(void* node, const char* name) {
  bool named = false;
  if (kilni_soft_global_is_forked()) return false;
  kilni_soft_global_lock();
  kilni_soft_driver_t* driver = kilni_soft_global_driver();
  if (driver != NULL) {
    kilni_base_mutex_lock(&driver->lock);
    named = faults_name_node(driver, node, name);
    kilni_base_mutex_unlock(&driver->lock);
  }
  kilni_soft_global_unlock();
  return named;
}
