// SPDX-License-Identifier: Apache-2.0
//
// graph: nodes are added, given other work, and removed.
//
// What can fail without the driver fails first: space for the node's object,
// lists, the owners' place. Then comes the driver's call, after which nothing
// fails any more. A kernel on the usual path is that call and a few stores.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "base/str.h"
#include "device/device_scope.h"
#include "graph/graph_inside.h"
#include "kiln/graph.h"

enum { TWO_BODIES_SINCE = 12080 };

// A node being added. one-thread
typedef struct adding_t {
  kiln_graph_t* graph;
  const kiln_graph_work_t* work;
  const kiln_cu_graph_node_t* after;
  size_t count;
  kiln_graph_node_t** out_node;
} adding_t;

static kiln_graph_node_t* added(const adding_t* a, kiln_cu_graph_node_t handle,
                                kilni_graph_bundle_t* bundle) {
  kiln_graph_node_t* node =
      kilni_graph_node_take(a->graph, handle, a->work->kind);
  node->bundle = bundle;
  if (a->out_node != NULL) *a->out_node = node;
  return node;
}

// After a failure: the node must not stay.
static kiln_status_t add_take_back(kiln_graph_t* graph,
                                   kiln_cu_graph_node_t handle,
                                   kiln_status_t status) {
  kiln_status_t undone;
  KILNI_GRAPH_CALL(undone, graph, cuGraphDestroyNode, handle);
  if (kiln_status_is_ok(undone)) return status;
  return KILNI_ANNOTATE(kilni_base_status_join(status, undone),
                        "the node that was added stays in the graph");
}

// ---- Kernels ----

static kiln_status_t set_attributes(kiln_graph_t* graph,
                                    kiln_cu_graph_node_t handle,
                                    const kilni_device_launch_how_t* how) {
  for (uint32_t i = 0; i < how->count; i++) {
    kiln_status_t status;
    KILNI_DEVICE_CALL(status, graph->device, cuGraphKernelNodeSetAttribute,
                      handle, how->list[i].id, &how->list[i].value);
    KILNI_RETURN_IF_ERROR(status);
  }
  return kiln_ok();
}

static kiln_status_t keep_attributes(kiln_graph_t* graph,
                                     const kilni_device_launch_how_t* how,
                                     kilni_graph_node_more_t** out_more) {
  *out_more = NULL;
  if (how->count == 0) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_graph_more_make(graph, out_more));
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_unset(graph->device->host->allocator,
                                               sizeof(*how), &block));
  memcpy(block, how, sizeof(*how));
  (*out_more)->how = block;
  return kiln_ok();
}

static kiln_status_t graph_add_add_kernel(const adding_t* a) {
  kiln_launch_t* launch = a->work->as.launch;
  if (launch == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "a kernel node without a launch"),
        "prepare one with kiln_launch_create");
  }
  kiln_graph_t* graph = a->graph;
  kiln_cu_kernel_node_t kernel;
  KILNI_RETURN_IF_ERROR(kilni_graph_work_kernel(graph, launch, &kernel));
  kilni_graph_node_more_t* more = NULL;
  if (launch->how.count > 0) {
    KILNI_RETURN_IF_ERROR(keep_attributes(graph, &launch->how, &more));
  }
  kilni_graph_wanted_t wanted;
  memset(&wanted, 0, sizeof(wanted));
  wanted.launch = launch;
  kilni_graph_bundle_t* bundle = NULL;
  KILNI_RETURN_IF_ERROR(kilni_graph_owners_prepare(graph, &wanted, &bundle));
  kiln_cu_graph_node_t handle = NULL;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, graph->device, cuGraphAddKernelNode, &handle,
                    graph->handle, a->after, a->count, &kernel);
  if (kiln_status_is_ok(status) && more != NULL) {
    status = set_attributes(graph, handle, &launch->how);
    if (!kiln_status_is_ok(status)) {
      status = add_take_back(graph, handle, status);
    }
  }
  if (!kiln_status_is_ok(status)) {
    kilni_graph_owners_cancel(bundle);
    return KILNI_ANNOTATE(status, "adding a node for kernel \"%s\"",
                          launch->kernel->name);
  }
  kilni_graph_owners_commit(graph, bundle, &wanted);
  added(a, handle, bundle)->more = more;
  return kiln_ok();
}

// ---- Conditional nodes ----

static kiln_status_t check_choice(const kiln_graph_t* graph,
                                  const kiln_graph_conditional_t* given) {
  KILNI_RETURN_IF_ERROR(kilni_table_cuda_need(graph->device->table,
                                              KILNI_CUDA_ROW_cuGraphAddNode));
  bool fits = given->kind == KILN_GRAPH_SWITCH
                  ? given->bodies >= 1 && given->bodies <= KILNI_GRAPH_BODIES
                  : given->kind <= KILN_GRAPH_WHILE && given->bodies >= 1 &&
                        given->bodies <= (given->kind == KILN_GRAPH_IF ? 2 : 1);
  if (!fits) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "a conditional node of kind %u with %u bodies",
                   (unsigned)given->kind, (unsigned)given->bodies),
        "give an IF 1 or 2 bodies, a WHILE 1, and a SWITCH 1 to %d",
        KILNI_GRAPH_BODIES);
  }
  if (given->condition.graph != graph) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "the condition is of another graph than its node"),
        "make it with kiln_graph_add_condition of the same graph");
  }
  uint32_t version = graph->device->info.driver_version;
  if (version >= TWO_BODIES_SINCE ||
      (given->kind != KILN_GRAPH_SWITCH && given->bodies == 1)) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED,
                 "an IF with two bodies and a SWITCH need a driver for CUDA "
                 "12.8, and that of \"%s\" is for %u.%u",
                 graph->device->name, (unsigned)(version / 1000),
                 (unsigned)(version % 1000 / 10)),
      "install a newer NVIDIA driver, or use IF nodes of one body");
}

static kiln_status_t add_make_bodies(kiln_graph_t* graph,
                                     const kiln_graph_conditional_t* given,
                                     kilni_graph_node_more_t** out_more) {
  kiln_allocator_t allocator = graph->device->host->allocator;
  KILNI_RETURN_IF_ERROR(kilni_graph_more_make(graph, out_more));
  kilni_graph_node_more_t* more = *out_more;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(allocator, given->bodies,
                                               sizeof(kiln_graph_t*), &block));
  more->inner = block;
  more->inner_count = given->bodies;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, given->bodies, sizeof(kiln_cu_graph_t), &block));
  more->inner_handles = block;
  more->condition = given->kind;
  more->asks = given->condition.handle;
  return kiln_ok();
}

kiln_status_t kilni_graph_add_choice(kiln_graph_t* graph,
                                     const kiln_cu_graph_node_t* after,
                                     const kiln_cu_graph_edge_t* edges,
                                     size_t after_count,
                                     const kiln_graph_conditional_t* given,
                                     kiln_graph_node_t** out_node) {
  KILNI_RETURN_IF_ERROR(check_choice(graph, given));
  KILNI_RETURN_IF_ERROR(kilni_graph_node_reserve(graph));
  kilni_graph_node_more_t* more = NULL;
  KILNI_RETURN_IF_ERROR(add_make_bodies(graph, given, &more));
  kiln_cu_graph_node_params_t params;
  memset(&params, 0, sizeof(params));
  params.type = KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.of.conditional.handle = given->condition.handle;
  params.of.conditional.type = given->kind;
  params.of.conditional.count = given->bodies;
  params.of.conditional.context = graph->device->context;
  kiln_cu_graph_node_t handle = NULL;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, graph->device, cuGraphAddNode, &handle,
                    graph->handle, after, edges, after_count, &params);
  if (!kiln_status_is_ok(status)) {
    status = kilni_graph_why_no_choice(graph, given->condition.handle, status);
    return KILNI_ANNOTATE(status, "adding a conditional node");
  }
  for (uint32_t i = 0; i < given->bodies; i++) {
    // A null provider has none.
    more->inner_handles[i] = params.of.conditional.graphs == NULL
                                 ? NULL
                                 : params.of.conditional.graphs[i];
  }
  *out_node = kilni_graph_node_take(graph, handle, KILN_GRAPH_CONDITIONAL);
  (*out_node)->more = more;
  return kiln_ok();
}

kiln_status_t kiln_graph_add_condition(kiln_graph_t* graph,
                                       const uint32_t* first,
                                       kiln_graph_condition_t* out_condition) {
  KILNI_CHECK_ARGUMENT(out_condition != NULL, "out_condition");
  memset(out_condition, 0, sizeof(*out_condition));
  KILNI_CHECK_ARGUMENT(graph != NULL, "graph");
  KILNI_RETURN_IF_ERROR(kilni_graph_check(graph));
  KILNI_RETURN_IF_ERROR(kilni_table_cuda_need(
      graph->device->table, KILNI_CUDA_ROW_cuGraphConditionalHandleCreate));
  kiln_cu_graph_condition_t handle = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, graph->device, cuGraphConditionalHandleCreate,
                    &handle, graph->handle, graph->device->context,
                    first == NULL ? 0 : *first,
                    first == NULL ? 0 : KILN_CU_GRAPH_COND_ASSIGN_DEFAULT);
  KILNI_RETURN_IF_ERROR(status);
  out_condition->handle = handle;
  out_condition->graph = graph;
  return kiln_ok();
}

// ---- All others ----

static kiln_status_t call_add(const adding_t* a, kilni_graph_work_t* work,
                              kiln_cu_graph_node_t* out) {
  kiln_device_t* device = a->graph->device;
  kiln_cu_graph_t graph = a->graph->handle;
  kiln_cu_context_t context = device->context;
  kiln_status_t s;
#define ADD(row, ...) \
  KILNI_DEVICE_CALL(s, device, row, out, graph, a->after, a->count, __VA_ARGS__)
  switch (a->work->kind) {
    case KILN_GRAPH_COPY:
      ADD(cuGraphAddMemcpyNode, &work->to.copy, context);
      break;
    case KILN_GRAPH_FILL:
      ADD(cuGraphAddMemsetNode, &work->to.fill, context);
      break;
    case KILN_GRAPH_HOST:
      ADD(cuGraphAddHostNode, &work->to.host);
      break;
    case KILN_GRAPH_CHILD:
      ADD(cuGraphAddChildGraphNode, work->to.child);
      break;
    case KILN_GRAPH_EMPTY:
      KILNI_DEVICE_CALL(s, device, cuGraphAddEmptyNode, out, graph, a->after,
                        a->count);
      break;
    case KILN_GRAPH_WAIT:
      ADD(cuGraphAddEventWaitNode, work->to.event);
      break;
    case KILN_GRAPH_RECORD:
      ADD(cuGraphAddEventRecordNode, work->to.event);
      break;
    case KILN_GRAPH_SIGNAL_SEMAPHORES:
      ADD(cuGraphAddExternalSemaphoresSignalNode, &work->to.signal);
      break;
    case KILN_GRAPH_WAIT_SEMAPHORES:
      ADD(cuGraphAddExternalSemaphoresWaitNode, &work->to.wait);
      break;
    case KILN_GRAPH_ALLOCATE:
      ADD(cuGraphAddMemAllocNode, &work->to.allocation);
      break;
    case KILN_GRAPH_FREE:
      ADD(cuGraphAddMemFreeNode, work->to.address);
      break;
    default:
      ADD(cuGraphAddBatchMemOpNode, &work->to.ops);
      break;
  }
#undef ADD
  return s;
}

// The rows that a provider may lack though every driver has them.
static kiln_status_t need_row(const kiln_graph_t* graph, uint32_t kind) {
  const kiln_cuda_table_t* table = graph->device->table;
  switch (kind) {
    case KILN_GRAPH_SIGNAL_SEMAPHORES:
    case KILN_GRAPH_WAIT_SEMAPHORES:
      return kilni_table_cuda_need(
          table, KILNI_CUDA_ROW_cuGraphAddExternalSemaphoresSignalNode);
    case KILN_GRAPH_ALLOCATE:
    case KILN_GRAPH_FREE:
      return kilni_table_cuda_need(table,
                                   KILNI_CUDA_ROW_cuGraphAddMemAllocNode);
    case KILN_GRAPH_MEMORY_OPS:
      return kilni_table_cuda_need(table,
                                   KILNI_CUDA_ROW_cuGraphAddBatchMemOpNode);
    default:
      return kiln_ok();
  }
}

static kiln_status_t add_why_not(const adding_t* a, kiln_status_t status) {
  if (a->work->kind == KILN_GRAPH_CHILD) {
    return kilni_graph_why_no_copy(a->work->as.child, "no graph has a child",
                                   "add the nodes of the child to this graph",
                                   status);
  }
  bool frees = a->work->kind == KILN_GRAPH_FREE;
  if (!frees && a->work->kind != KILN_GRAPH_ALLOCATE) return status;
  status = kilni_graph_why_no_body(a->graph, a->work->kind, status);
  if (!frees || kiln_status_code(status) == KILN_STATUS_UNSUPPORTED) {
    return status;
  }
  return kilni_graph_why_no_free(a->graph, a->work->as.address, status);
}

static kiln_status_t add_prepared(const adding_t* a, kilni_graph_work_t* work) {
  kilni_graph_node_more_t* more = NULL;
  if (a->work->kind == KILN_GRAPH_ALLOCATE) {
    KILNI_RETURN_IF_ERROR(kilni_graph_more_make(a->graph, &more));
  }
  kilni_graph_bundle_t* bundle = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_graph_owners_prepare(a->graph, &work->wanted, &bundle));
  kilni_graph_work_use_copy(work, bundle);
  kiln_cu_graph_node_t handle = NULL;
  kiln_status_t status = call_add(a, work, &handle);
  if (!kiln_status_is_ok(status)) {
    kilni_graph_owners_cancel(bundle);
    return KILNI_ANNOTATE(add_why_not(a, status), "adding %s %s node",
                          kilni_graph_kind_article(a->work->kind),
                          kilni_graph_kind_name(a->work->kind));
  }
  kilni_graph_owners_commit(a->graph, bundle, &work->wanted);
  kilni_graph_work_taken(work);
  kiln_graph_node_t* node = added(a, handle, bundle);
  if (more != NULL) {
    more->address = work->to.allocation.address;
    a->graph->root->allocates = true;
  }
  node->more = more;
  return kiln_ok();
}

static kiln_status_t graph_add_add_made(const adding_t* a,
                                        kilni_graph_work_t* work) {
  kilni_graph_hold_t* hold = NULL;
  KILNI_RETURN_IF_ERROR(kilni_graph_work_want_child(work, &hold));
  kiln_status_t status = add_prepared(a, work);
  kilni_graph_hold_release(hold);  // the node's bundle has it
  return status;
}

static kiln_status_t graph_add_add_any(const adding_t* a) {
  KILNI_CHECK_RESERVED(a->work->reserved, kiln_graph_work_t);
  KILNI_RETURN_IF_ERROR(kilni_graph_node_reserve(a->graph));
  if (a->work->kind == KILN_GRAPH_KERNEL) return graph_add_add_kernel(a);
  if (a->work->kind == KILN_GRAPH_CONDITIONAL) {
    kiln_graph_node_t* node = NULL;
    kiln_status_t status = kilni_graph_add_choice(
        a->graph, a->after, NULL, a->count, &a->work->as.conditional, &node);
    if (a->out_node != NULL) *a->out_node = node;
    return status;
  }
  KILNI_RETURN_IF_ERROR(need_row(a->graph, a->work->kind));
  kilni_graph_work_t work;
  kiln_status_t status = kilni_graph_work_init(&work, a->graph, a->work);
  if (kiln_status_is_ok(status)) status = graph_add_add_made(a, &work);
  kilni_graph_work_deinit(&work, a->graph);
  return status;
}

// ---- What a node waits for ----

static kiln_status_t not_of_graph(const kiln_graph_node_t* node,
                                  uint32_t index) {
  if (node == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "`after[%u]` is NULL", (unsigned)index),
        "give nodes of the same graph");
  }
  char text[KILNI_NODE_TEXT];
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "`after[%u]`, the %s node \"%s\", is of another graph",
                 (unsigned)index, kilni_graph_kind_name(node->kind),
                 kilni_graph_node_says(node, text)),
      "give nodes of the same graph");
}

static kiln_status_t take_after(const kiln_graph_t* graph,
                                kiln_graph_node_t* const* after, uint32_t count,
                                kiln_cu_graph_node_t* handles) {
  for (uint32_t i = 0; i < count; i++) {
    const kiln_graph_node_t* node = after[i];
    if (node == NULL || node->graph != graph) return not_of_graph(node, i);
    if (node->handle == NULL) return kilni_graph_node_check(node);
    handles[i] = node->handle;
  }
  return kiln_ok();
}

static kiln_status_t add_after_many(adding_t* a,
                                    kiln_graph_node_t* const* after) {
  kiln_allocator_t allocator = a->graph->device->host->allocator;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, a->count, sizeof(kiln_cu_graph_node_t), &block));
  kiln_status_t status = take_after(a->graph, after, (uint32_t)a->count, block);
  a->after = block;
  if (kiln_status_is_ok(status)) {
    status = kilni_graph_why_no_after(after, a->count, graph_add_add_any(a));
  }
  kilni_base_free_array(allocator, block, a->count,
                        sizeof(kiln_cu_graph_node_t));
  return status;
}

// A kernel without attributes, of a launch that the graph has already, which
// was checked then.
static inline bool has_launch(const kiln_graph_t* graph,
                              const kiln_launch_t* launch) {
  const kiln_graph_t* root = graph->root;
  return root->last != NULL && launch->number == root->last_number &&
         launch->version == root->last_version && launch->attributes == 0 &&
         graph->refuses == KILNI_GRAPH_OPEN;
}

_Static_assert(KILNI_WAY_cuGraphAddKernelNode == (int)KILNI_WAY_CURRENT,
               "the short path changes neither context nor mode");

// The short path: true if the node was added. Checks here whatever may differ
// between nodes of such a launch.
static inline bool add_shortly(kiln_graph_t* graph,
                               kiln_graph_node_t* const* after,
                               uint32_t after_count,
                               const kiln_launch_t* launch,
                               kiln_graph_node_t** out_node) {
  kiln_graph_node_t* node = graph->free_node;
  if (after_count > 1 || node == graph->free_end) return false;
  kiln_cu_graph_node_t before = NULL;
  if (after_count == 1) {
    if (after[0] == NULL || after[0]->graph != graph) return false;
    before = after[0]->handle;
    if (before == NULL) return false;
  }
  if (graph->add_kernel(&node->handle, graph->handle, &before, after_count,
                        &launch->node) != KILN_CU_SUCCESS) {
    return false;  // again on the long path, which reports what is wrong
  }
  kilni_graph_bundle_t* bundle = graph->root->last;
  bundle->uses++;
  graph->free_node++;
  node->graph = graph;
  node->bundle = bundle;
  node->more = NULL;
  node->index = graph->node_count++;
  node->kind = KILN_GRAPH_KERNEL;
  graph->live_count++;
  if (out_node != NULL) *out_node = node;
  return true;
}

static kiln_status_t graph_add_add(adding_t* a,
                                   kiln_graph_node_t* const* after) {
  if (a->graph->refuses != KILNI_GRAPH_OPEN) {
    return kilni_graph_refused(a->graph);
  }
  if (a->count > KILNI_GRAPH_FEW) return add_after_many(a, after);
  kiln_cu_graph_node_t few[KILNI_GRAPH_FEW];
  KILNI_RETURN_IF_ERROR(take_after(a->graph, after, (uint32_t)a->count, few));
  a->after = few;
  return kilni_graph_why_no_after(after, a->count, graph_add_add_any(a));
}

// `out_node` may be one of `after`, so it is written last.
static __attribute__((noinline)) kiln_status_t add_anyhow(
    kiln_graph_t* graph, kiln_graph_node_t* const* after, uint32_t after_count,
    const kiln_graph_work_t* work, kiln_graph_node_t** out_node) {
  if (graph == NULL || work == NULL || (after == NULL && after_count > 0)) {
    if (out_node != NULL) *out_node = NULL;
    KILNI_CHECK_ARGUMENT(graph != NULL, "graph");
    KILNI_CHECK_ARGUMENT(work != NULL, "work");
    KILNI_CHECK_ARGUMENT(after != NULL || after_count == 0, "after");
  }
  adding_t adding = {graph, work, NULL, after_count, out_node};
  kiln_status_t status = graph_add_add(&adding, after);
  if (!kiln_status_is_ok(status) && out_node != NULL) *out_node = NULL;
  return status;
}

kiln_status_t kiln_graph_add(kiln_graph_t* graph,
                             kiln_graph_node_t* const* after,
                             uint32_t after_count,
                             const kiln_graph_work_t* work,
                             kiln_graph_node_t** out_node) {
  if (graph != NULL && work != NULL && kilni_graph_work_is_launch(work) &&
      (after != NULL || after_count == 0) &&
      has_launch(graph, work->as.launch) &&
      kilni_graph_is_current(&graph->current) &&
      add_shortly(graph, after, after_count, work->as.launch, out_node)) {
    return kiln_ok();
  }
  return add_anyhow(graph, after, after_count, work, out_node);
}

// ---- Many nodes ----

static __attribute__((noinline)) kiln_status_t
add_one_anyhow(kiln_graph_t* graph, const kiln_graph_addition_t* a) {
  KILNI_CHECK_RESERVED(a->reserved, kiln_graph_addition_t);
  return add_anyhow(graph, a->after, a->after_count, a->work, a->out_node);
}

// `*inout_known` is work whose launch the graph has, usually that of the
// preceding addition; NULL: none.
static inline bool add_one_shortly(kiln_graph_t* graph,
                                   const kiln_graph_addition_t* a,
                                   const kiln_graph_work_t** inout_known) {
  const kiln_graph_work_t* work = a->work;
  if (work == NULL || a->reserved != 0 ||
      (a->after == NULL && a->after_count > 0)) {
    return false;
  }
  if (work != *inout_known) {
    if (!kilni_graph_work_is_launch(work) ||
        !has_launch(graph, work->as.launch)) {
      return false;
    }
    *inout_known = work;
  }
  return add_shortly(graph, a->after, a->after_count, work->as.launch,
                     a->out_node);
}

// A node may wait for what is added here, so nothing is written ahead of it.
static kiln_status_t add_each(kiln_graph_t* graph,
                              const kiln_graph_addition_t* additions,
                              uint32_t count, uint32_t* out_added) {
  const kiln_graph_work_t* known = NULL;
  for (uint32_t i = 0; i < count; i++) {
    if (!add_one_shortly(graph, &additions[i], &known)) {
      kiln_status_t status = add_one_anyhow(graph, &additions[i]);
      known = NULL;
      if (!kiln_status_is_ok(status)) {
        return KILNI_ANNOTATE(status, "addition %u of %u", (unsigned)i,
                              (unsigned)count);
      }
    }
    *out_added = i + 1;
  }
  return kiln_ok();
}

static kiln_status_t graph_add_add_all(kiln_graph_t* graph,
                                       const kiln_graph_addition_t* additions,
                                       uint32_t count, uint32_t* out_added) {
  KILNI_CHECK_ARGUMENT(graph != NULL, "graph");
  if (count == 0) return kiln_ok();
  kilni_device_scope_t scope;
  KILNI_RETURN_IF_ERROR(kilni_device_scope_begin(
      &scope, graph->device, KILNI_WAY_cuGraphAddKernelNode));
  return kilni_device_scope_leave(&scope,
                                  add_each(graph, additions, count, out_added));
}

kiln_status_t kiln_graph_add_all(kiln_graph_t* graph,
                                 const kiln_graph_addition_t* additions,
                                 uint32_t count, uint32_t* out_added) {
  uint32_t added_count = 0;
  if (out_added != NULL) *out_added = 0;
  KILNI_CHECK_ARGUMENT(additions != NULL || count == 0, "additions");
  kiln_status_t status =
      graph_add_add_all(graph, additions, count, &added_count);
  for (uint32_t i = added_count; i < count; i++) {
    if (additions[i].out_node != NULL) *additions[i].out_node = NULL;
  }
  if (out_added != NULL) *out_added = added_count;
  return status;
}

// ---- Other work ----

static kiln_status_t call_set_child(const kiln_graph_node_t* node,
                                    const kilni_graph_work_t* work) {
  const kiln_cuda_table_t* table = node->graph->device->table;
  KILNI_RETURN_IF_ERROR(
      kilni_table_cuda_need(table, KILNI_CUDA_ROW_cuGraphNodeSetParams));
  kiln_cu_graph_node_params_t params;
  memset(&params, 0, sizeof(params));
  params.type = KILN_CU_GRAPH_NODE_TYPE_GRAPH;
  params.of.child.graph = work->to.child;
  kiln_status_t status;
  KILNI_GRAPH_CALL(status, node->graph, cuGraphNodeSetParams, node->handle,
                   &params);
  return status;
}

static kiln_status_t add_call_set(const kiln_graph_node_t* node,
                                  const kilni_graph_work_t* work) {
  kiln_device_t* device = node->graph->device;
  kiln_status_t s;
#define SET(row, what) KILNI_DEVICE_CALL(s, device, row, node->handle, what)
  switch (node->kind) {
    case KILN_GRAPH_KERNEL:
      SET(cuGraphKernelNodeSetParams, &work->to.kernel);
      break;
    case KILN_GRAPH_COPY:
      SET(cuGraphMemcpyNodeSetParams, &work->to.copy);
      break;
    case KILN_GRAPH_FILL:
      SET(cuGraphMemsetNodeSetParams, &work->to.fill);
      break;
    case KILN_GRAPH_HOST:
      SET(cuGraphHostNodeSetParams, &work->to.host);
      break;
    case KILN_GRAPH_CHILD:
      return call_set_child(node, work);
    case KILN_GRAPH_WAIT:
      SET(cuGraphEventWaitNodeSetEvent, work->to.event);
      break;
    case KILN_GRAPH_RECORD:
      SET(cuGraphEventRecordNodeSetEvent, work->to.event);
      break;
    case KILN_GRAPH_SIGNAL_SEMAPHORES:
      SET(cuGraphExternalSemaphoresSignalNodeSetParams, &work->to.signal);
      break;
    case KILN_GRAPH_WAIT_SEMAPHORES:
      SET(cuGraphExternalSemaphoresWaitNodeSetParams, &work->to.wait);
      break;
    case KILN_GRAPH_MEMORY_OPS:
      SET(cuGraphBatchMemOpNodeSetParams, &work->to.ops);
      break;
    default:
      return kilni_graph_work_wrong_kind(node, node->kind);
  }
#undef SET
  return s;
}

// The kernel, or the graphs inside of a child, are other ones now.
static void forget_told(kiln_graph_node_t* node) {
  kilni_graph_node_more_t* more = node->more;
  if (node->kind == KILN_GRAPH_KERNEL && more != NULL) {
    kilni_base_strfree(node->graph->device->host->allocator, more->kernel);
    more->kernel = NULL;
  }
  if (node->kind != KILN_GRAPH_CHILD || more == NULL || more->inner == NULL) {
    return;
  }
  if (more->inner[0] != NULL) kilni_graph_forget(more->inner[0]);
  more->inner[0] = NULL;
}

static kiln_status_t add_set_prepared(kiln_graph_node_t* node,
                                      kilni_graph_work_t* work) {
  kilni_graph_bundle_t* bundle = NULL;
  kilni_graph_hold_t* hold = NULL;
  KILNI_RETURN_IF_ERROR(kilni_graph_work_want_child(work, &hold));
  kiln_status_t prepared =
      kilni_graph_owners_prepare(node->graph, &work->wanted, &bundle);
  kilni_graph_hold_release(hold);  // the bundle has it
  KILNI_RETURN_IF_ERROR(prepared);
  kilni_graph_work_use_copy(work, bundle);
  kiln_status_t status = add_call_set(node, work);
  if (!kiln_status_is_ok(status)) {
    kilni_graph_owners_cancel(bundle);
    char text[KILNI_NODE_TEXT];
    return KILNI_ANNOTATE(status, "changing the %s node \"%s\"",
                          kilni_graph_kind_name(node->kind),
                          kilni_graph_node_says(node, text));
  }
  kilni_graph_owners_commit(node->graph, bundle, &work->wanted);
  kilni_graph_work_taken(work);
  kilni_graph_bundle_t* before = node->bundle;
  node->bundle = bundle;
  forget_told(node);
  kilni_graph_owners_drop(node->graph, before);
  return kiln_ok();
}

kiln_status_t kiln_graph_node_set(kiln_graph_node_t* node,
                                  const kiln_graph_work_t* work) {
  KILNI_CHECK_ARGUMENT(node != NULL, "node");
  KILNI_CHECK_ARGUMENT(work != NULL, "work");
  KILNI_RETURN_IF_ERROR(kilni_graph_node_check(node));
  if (work->kind != node->kind || node->kind == KILN_GRAPH_EMPTY ||
      node->kind == KILN_GRAPH_ALLOCATE || node->kind == KILN_GRAPH_FREE ||
      node->kind >= KILN_GRAPH_CONDITIONAL) {
    return kilni_graph_work_wrong_kind(node, work->kind);
  }
  kilni_graph_work_t made;
  kiln_status_t status = kilni_graph_work_init(&made, node->graph, work);
  if (kiln_status_is_ok(status) && node->kind == KILN_GRAPH_KERNEL) {
    status = kilni_graph_work_same_how(node, work->as.launch);
  }
  if (kiln_status_is_ok(status)) status = add_set_prepared(node, &made);
  kilni_graph_work_deinit(&made, node->graph);
  return status;
}

// ---- Removing ----

kiln_status_t kiln_graph_node_remove(kiln_graph_node_t* node) {
  KILNI_CHECK_ARGUMENT(node != NULL, "node");
  KILNI_RETURN_IF_ERROR(kilni_graph_node_check(node));
  kiln_status_t status;
  KILNI_GRAPH_CALL(status, node->graph, cuGraphDestroyNode, node->handle);
  if (kiln_status_is_ok(status)) {
    kilni_graph_node_forget(node);
    return kiln_ok();
  }
  char text[KILNI_NODE_TEXT];
  return KILNI_ANNOTATE(status, "removing the %s node \"%s\"",
                        kilni_graph_kind_name(node->kind),
                        kilni_graph_node_says(node, text));
}
