// SPDX-License-Identifier: Apache-2.0
//
// soft: a graph as a picture for Graphviz, in the DOT language.
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "soft/driver/soft_graph.h"
#include "table/cuda_table.h"

// The text so far. one-thread
typedef struct text_t {
  kiln_allocator_t allocator;
  char* data;
  size_t used;
  size_t capacity;
  bool failed;
} text_t;

static void graph_dot_put(text_t* text, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
static void graph_dot_put(text_t* text, const char* format, ...) {
  char line[512];
  va_list list;
  va_start(list, format);
  int size = vsnprintf(line, sizeof(line), format, list);
  va_end(list);
  if (size < 0 || (size_t)size >= sizeof(line) || text->failed) {
    text->failed = true;
    return;
  }
  void* data = text->data;
  kiln_status_t status =
      kilni_base_grow(text->allocator, text->used + (size_t)size + 1, 1,
                      &text->capacity, &data);
  text->data = data;
  text->failed = !kiln_status_is_ok(status);
  kiln_status_free(status);
  if (text->failed) return;
  memcpy(text->data + text->used, line, (size_t)size);
  text->used += (size_t)size;
}

static const char* const kTypes[] = {
    "KERNEL",    "MEMCPY",     "MEMSET",       "HOST",       "GRAPH",
    "EMPTY",     "WAIT_EVENT", "EVENT_RECORD", "EXT_SIGNAL", "EXT_WAIT",
    "MEM_ALLOC", "MEM_FREE",   "BATCH_MEM",    "CONDITIONAL"};

// What a node does, if `flags` ask for it.
static void put_doing(text_t* text, const kilni_soft_driver_t* driver,
                      const kilni_soft_node_t* node, unsigned int flags) {
  bool all = (flags & KILN_CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE) != 0;
  const kilni_soft_doing_t* doing = &node->as;
  if (node->type == KILN_CU_GRAPH_NODE_TYPE_KERNEL) {
    const kilni_soft_kernel_t* kernel = kilni_soft_handle_get(
        &driver->handles, KILNI_SOFT_KIND_FUNCTION, doing->kernel.function);
    const char* name = kernel != NULL ? kernel->entry->name : "";
    graph_dot_put(text, "\\n%.200s", name);
    if (all ||
        (flags & KILN_CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS) != 0) {
      const uint32_t* grid = doing->kernel.grid;
      const uint32_t* block = doing->kernel.block;
      graph_dot_put(text,
                    "\\n%" PRIu32 ",%" PRIu32 ",%" PRIu32 " x %" PRIu32
                    ",%" PRIu32 ",%" PRIu32 "\\nshared %" PRIu32,
                    grid[0], grid[1], grid[2], block[0], block[1], block[2],
                    doing->kernel.shared_bytes);
    }
  } else if (node->type == KILN_CU_GRAPH_NODE_TYPE_MEMCPY &&
             (all || (flags &
                      KILN_CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS) != 0)) {
    graph_dot_put(text, "\\n%zu x %zu x %zu", doing->copy.copy.width_bytes,
                  doing->copy.copy.height, doing->copy.copy.depth);
  } else if (node->type == KILN_CU_GRAPH_NODE_TYPE_MEMSET &&
             (all || (flags &
                      KILN_CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS) != 0)) {
    graph_dot_put(text, "\\n0x%llx: %zu x %u bytes of 0x%x",
                  doing->fill.fill.to, doing->fill.fill.width,
                  doing->fill.fill.element_bytes, doing->fill.fill.value);
  }
  if (all || (flags & KILN_CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES) != 0) {
    graph_dot_put(text, "\\nnode 0x%" PRIx64, node->handle);
  }
}

static void put_graph(text_t* text, const kilni_soft_driver_t* driver,
                      const kilni_soft_graph_t* graph, unsigned int flags) {
  graph_dot_put(text,
                "subgraph cluster_%" PRIu64 " {\nlabel=\"graph_%" PRIu64 "\"\n",
                graph->serial, graph->serial);
  for (size_t i = 0; i < graph->count; i++) {
    const kilni_soft_node_t* node = graph->nodes[i];
    graph_dot_put(
        text, "\"graph_%" PRIu64 "_node_%" PRIu64 "\"[label=\"%" PRIu64 "\\n%s",
        graph->serial, node->number, node->number, kTypes[node->type]);
    put_doing(text, driver, node, flags);
    graph_dot_put(text, "\"]\n");
    for (size_t k = 0; k < node->in.count; k++) {
      graph_dot_put(text,
                    "\"graph_%" PRIu64 "_node_%" PRIu64 "\" -> \"graph_%" PRIu64
                    "_node_%" PRIu64 "\"\n",
                    graph->serial, node->in.list[k].from->number, graph->serial,
                    node->number);
    }
  }
  graph_dot_put(text, "}\n");
  for (size_t i = 0; i < graph->count; i++) {
    const kilni_soft_node_t* node = graph->nodes[i];
    if (node->type == KILN_CU_GRAPH_NODE_TYPE_GRAPH) {
      put_graph(text, driver, node->as.child, flags);
    }
    for (uint32_t k = 0; node->type == KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL &&
                         k < node->as.condition.count;
         k++) {
      put_graph(text, driver, node->as.condition.bodies[k], flags);
    }
  }
}

static kiln_cu_result_t row_print(kiln_cu_graph_t graph, const char* path,
                                  unsigned int flags) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  const kilni_soft_graph_t* found = kilni_soft_graph_find(driver, graph);
  if (found == NULL || path == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  text_t text = {.allocator = driver->host.allocator};
  graph_dot_put(&text, "digraph dot {\n");
  put_graph(&text, driver, found, flags);
  graph_dot_put(&text, "}\n");
  kiln_allocator_t allocator = driver->host.allocator;
  (void)kilni_soft_leave(driver, result);
  if (text.failed) {
    result = KILN_CU_ERROR_OUT_OF_MEMORY;
  } else {
    kiln_status_t status =
        kilni_base_file_write(allocator, path, text.data, text.used);
    bool full = kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY;
    if (!kiln_status_is_ok(status)) {
      result =
          full ? KILN_CU_ERROR_OUT_OF_MEMORY : KILN_CU_ERROR_OPERATING_SYSTEM;
    }
    kiln_status_free(status);
  }
  kilni_base_free_array(allocator, text.data, text.capacity, 1);
  return result;
}

void kilni_soft_fill_graph_dot(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuGraphDebugDotPrint, row_print);
}
