// SPDX-License-Identifier: Apache-2.0
//
// graph: executables: made, launched, updated.
//
// An executable retains what its graph retained when it was made, and has an
// owner of its own for what its nodes are given later. A whole update adds
// another hold. The driver knows of none of these: an executable with user
// objects pays for them at each launch. Only one that is launched from the
// device has one, since Kiln does not see those launches.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "device/device_scope.h"
#include "graph/graph_inside.h"
#include "kiln/graph.h"

static kiln_status_t exec_check_source(const kiln_graph_t* graph) {
  KILNI_RETURN_IF_ERROR(kilni_graph_check(graph));
  if (graph->inside == NULL) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "a graph inside a node runs as a part of that node"),
      "use the graph around it, or a clone (kiln_graph_clone)");
}

// What an executable retains. Where kernels launch it, the driver gets it from
// the graph, to which it is attached for this one call.
static kiln_status_t begin_hold(kiln_graph_t* graph, bool device_launch,
                                kilni_graph_hold_t** out_hold) {
  KILNI_RETURN_IF_ERROR(kilni_graph_hold_make(graph, out_hold));
  if (!device_launch) return kiln_ok();
  return kilni_graph_hold_hang(*out_hold, graph->handle);
}

// After the call it stays with the executable, and ends if there is none.
static void end_hold(kiln_graph_t* graph, kilni_graph_hold_t* hold, bool used) {
  if (hold->object != NULL) {
    kilni_graph_hold_unhang(hold, graph->handle);
  } else if (!used) {
    kilni_graph_hold_release(hold);
  }
}

// ---- Making ----

static kiln_status_t exec_read_options(const kiln_graph_t* graph,
                                       const kiln_graph_exec_options_t* options,
                                       kiln_graph_exec_options_t* given,
                                       kiln_cu_graph_instantiate_t* params) {
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(
      options, "kiln_graph_exec_options_t", sizeof(*given), given));
  KILNI_CHECK_ARGUMENT(given->free_on_launch <= KILN_SWITCH_ON,
                       "options.free_on_launch");
  KILNI_CHECK_ARGUMENT(given->device_launch <= KILN_SWITCH_ON,
                       "options.device_launch");
  KILNI_CHECK_ARGUMENT(given->use_priority <= KILN_SWITCH_ON,
                       "options.use_priority");
  memset(params, 0, sizeof(*params));
  if (given->free_on_launch == KILN_SWITCH_ON) {
    params->flags |= KILN_CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
  }
  if (given->device_launch == KILN_SWITCH_ON) {
    params->flags |= KILN_CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
  }
  if (given->use_priority == KILN_SWITCH_ON) {
    params->flags |= KILN_CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  }
  if (given->device_launch == KILN_SWITCH_ON &&
      given->free_on_launch == KILN_SWITCH_ON) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "`device_launch` and `free_on_launch` exclude each other"),
        "leave one of them out");
  }
  if (given->upload == NULL) return kiln_ok();
  params->flags |= KILN_CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
  params->upload = given->upload->handle;
  return kilni_device_check_memory(graph->device, given->upload->device,
                                   "`upload`");
}

static const char* exec_why_not(kiln_cu_graph_instantiate_result_t result) {
  switch (result) {
    case KILN_CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE:
      return "its nodes wait for each other in a cycle, or it is malformed";
    case KILN_CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED:
      return "a node does what a graph that is launched from the device cannot "
             "do";
    case KILN_CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED:
      return "its nodes are of several contexts, and it is to be launched from "
             "the device";
    case KILN_CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED:
      return "a condition of it belongs to no conditional node";
    default:
      return NULL;
  }
}

// The reason that the driver gives beside its result.
static kiln_status_t exec_explain(kiln_graph_t* graph,
                                  const kiln_cu_graph_instantiate_t* params,
                                  kiln_status_t status) {
  const char* why = exec_why_not(params->result);
  kiln_status_native_t native = {0};
  bool told = kiln_status_native(status, &native);
  if (why == NULL && told && native.number == KILN_CU_ERROR_NOT_SUPPORTED &&
      (params->flags & KILN_CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
    kiln_status_t none = kilni_base_status_with_fix(
        kilni_base_status_with_native(
            KILNI_FAIL(UNSUPPORTED, "no kernel of \"%s\" can launch a graph",
                       graph->device->name),
            native.domain, native.number, native.name),
        "leave out `device_launch`, and launch it from the host");
    kiln_status_free(status);
    return none;
  }
  if (why == NULL && kiln_status_is_ok(status)) {
    why = "the driver gives no reason";
  }
  if (why == NULL) {
    return KILNI_ANNOTATE(kilni_graph_why_no_exec(graph, status),
                          "making an executable of a graph");
  }
  kiln_status_t said = kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "the graph cannot be instantiated: %s", why),
      "change what the message names, and try again");
  if (told) {
    said = kilni_base_status_with_native(said, native.domain, native.number,
                                         native.name);
  }
  kiln_status_free(status);
  kiln_graph_node_t* node = NULL;
  char text[KILNI_NODE_TEXT];
  kiln_status_free(kilni_graph_meet_all(graph));
  kiln_status_free(kilni_graph_lookup(graph, params->node, &node));
  if (node == NULL) return said;
  return KILNI_ANNOTATE(said, "at the %s node \"%s\"",
                        kilni_graph_kind_name(node->kind),
                        kilni_graph_node_says(node, text));
}

static kiln_status_t instantiate(kiln_graph_exec_t* exec, kiln_graph_t* graph,
                                 const kiln_graph_exec_options_t* given,
                                 kiln_cu_graph_instantiate_t* params) {
  uint32_t way = KILNI_WAY_cuGraphInstantiateWithParams;
  if (given->upload != NULL) way |= kilni_device_stream_way(given->upload);
  kiln_cu_graph_exec_t handle = NULL;
  kiln_status_t status;
  KILNI_WAY_CREATE(status, graph->device, way, &handle,
                   cuGraphInstantiateWithParams, graph->handle, params);
  // A handle that came with a reason is none.
  if (params->result == KILN_CUDA_GRAPH_INSTANTIATE_SUCCESS) {
    exec->handle = handle;
    if (kiln_status_is_ok(status)) return kiln_ok();
  }
  return exec_explain(graph, params, status);
}

static kiln_status_t exec_make(kiln_graph_t* graph,
                               const kiln_graph_exec_options_t* given,
                               kiln_cu_graph_instantiate_t* params,
                               kiln_graph_exec_t* exec) {
  exec->device_launch = given->device_launch == KILN_SWITCH_ON;
  exec->allocates = graph->root->allocates;
  kilni_graph_hold_t* hold = NULL;
  KILNI_RETURN_IF_ERROR(begin_hold(graph, exec->device_launch, &hold));
  kiln_status_t status = instantiate(exec, graph, given, params);
  bool used = exec->handle != NULL;
  if (used) {
    exec->hold = hold;
    kilni_graph_owners_seal(graph);
  }
  end_hold(graph, hold, used);
  return status;
}

kiln_status_t kiln_graph_exec_create(kiln_graph_t* graph,
                                     const kiln_graph_exec_options_t* options,
                                     kiln_graph_exec_t** out_exec) {
  KILNI_CHECK_ARGUMENT(out_exec != NULL, "out_exec");
  *out_exec = NULL;
  KILNI_CHECK_ARGUMENT(graph != NULL, "graph");
  KILNI_RETURN_IF_ERROR(exec_check_source(graph));
  kiln_graph_exec_options_t given;
  kiln_cu_graph_instantiate_t params;
  KILNI_RETURN_IF_ERROR(exec_read_options(graph, options, &given, &params));
  kiln_device_t* device = graph->device;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(device->host->allocator,
                                         sizeof(kiln_graph_exec_t), &block));
  kiln_graph_exec_t* exec = block;
  exec->device = device;
  exec->late = graph->late;
  exec->current = graph->current;
  exec->launch = device->table->cuGraphLaunch;
  exec->set_kernel = device->table->cuGraphExecKernelNodeSetParams;
  atomic_init(&exec->references, 1);
  kiln_device_retain(device);
  kilni_device_late_add_user(exec->late);
  kiln_status_t status = exec_make(graph, &given, &params, exec);
  if (!kiln_status_is_ok(status)) {
    kiln_graph_exec_release(exec);
    return status;
  }
  *out_exec = exec;
  return kiln_ok();
}

// ---- Life ----

void kiln_graph_exec_retain(kiln_graph_exec_t* exec) {
  if (exec == NULL) return;
  atomic_fetch_add_explicit(&exec->references, 1, memory_order_relaxed);
}

void kiln_graph_exec_release(kiln_graph_exec_t* exec) {
  if (exec == NULL || kilni_device_is_forked(exec->device)) return;
  if (atomic_fetch_sub_explicit(&exec->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kiln_device_t* device = exec->device;
  kilni_device_late_t* late = exec->late;
  if (exec->handle != NULL) {
    kilni_graph_marks_t marks;
    kilni_device_late_begin(late);
    kilni_graph_hold_mark(exec->hold, exec, &marks);
    KILNI_DEVICE_END(device, cuGraphExecDestroy, exec->handle);
    kilni_graph_hold_end_behind(exec->hold, &marks);
    kilni_device_late_end(late);
  }
  for (int i = 0; i < KILNI_GRAPH_STREAMS; i++) {
    kiln_stream_release(exec->streams[i]);
  }
  kilni_base_free(device->host->allocator, exec, sizeof(*exec));
  kilni_device_late_drop_user(late, kilni_device_is_lost(device));
  kiln_device_release(device);
}

kiln_device_t* kiln_graph_exec_device(const kiln_graph_exec_t* exec) {
  return exec->device;
}

void* kiln_graph_exec_handle(const kiln_graph_exec_t* exec) {
  exec->hold->elsewhere = true;
  return exec->handle;
}

// ---- Running ----

static kiln_status_t exec_check_stream(const kiln_graph_exec_t* exec,
                                       const kiln_stream_t* stream) {
  if (stream->device == exec->device) return kiln_ok();
  return kilni_device_check_memory(exec->device, stream->device, "the stream");
}

// Remembers a stream, ahead of the others. Launches of one executable run one
// after the other, but one that is captured does not run at all; so where there
// are more streams than places, the order must come from elsewhere.
static __attribute__((noinline)) void note_stream(kiln_graph_exec_t* exec,
                                                  kiln_stream_t* stream) {
  bool foreign =
      stream->kind == KILN_STREAM_FOREIGN && stream->owner.release == NULL;
  if (stream->kind == KILN_STREAM_CAPTURED) return;  // a builder's
  if (foreign || stream->kind == KILN_STREAM_PER_THREAD) {
    // The lifetime of the one is unknown, as is the other's identity elsewhere.
    exec->hold->elsewhere = true;
    return;
  }
  int at = 0;
  while (at < KILNI_GRAPH_STREAMS - 1 && exec->streams[at] != stream &&
         exec->streams[at] != NULL) {
    at++;
  }
  kiln_stream_t* before = exec->streams[at];
  for (; at > 0; at--) exec->streams[at] = exec->streams[at - 1];
  exec->streams[0] = stream;
  if (before == stream) return;
  kiln_stream_retain(stream);
  if (before != NULL) exec->hold->elsewhere = true;
  kiln_stream_release(before);
}

static kiln_status_t launch_failed(const kiln_graph_exec_t* exec,
                                   kiln_status_t status) {
  return kiln_status_is_ok(status)
             ? NULL
             : KILNI_ANNOTATE(kilni_graph_why_no_launch(exec, status),
                              "launching a graph");
}

static __attribute__((noinline)) kiln_status_t
launch_anyhow(kiln_graph_exec_t* exec, kiln_stream_t* stream) {
  KILNI_CHECK_ARGUMENT(exec != NULL, "exec");
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_RETURN_IF_ERROR(exec_check_stream(exec, stream));
  if (stream != exec->streams[0]) note_stream(exec, stream);
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuGraphLaunch, exec->handle,
                    stream->handle);
  return launch_failed(exec, status);
}

// The short path: launched again where it was launched last, which was checked
// then.
kiln_status_t kiln_graph_exec_launch(kiln_graph_exec_t* exec,
                                     kiln_stream_t* stream) {
  if (exec == NULL || stream == NULL || stream != exec->streams[0] ||
      atomic_load_explicit(&stream->way, memory_order_relaxed) != 0 ||
      !kilni_device_is_alive(&exec->current.alive)) {
    return launch_anyhow(exec, stream);
  }
  kiln_cu_result_t result = exec->launch(exec->handle, stream->handle);
  if (result == KILN_CU_SUCCESS) return kiln_ok();
  return launch_failed(
      exec, KILNI_DEVICE_CHECK(exec->device, result, "cuGraphLaunch"));
}

kiln_status_t kiln_graph_exec_upload(kiln_graph_exec_t* exec,
                                     kiln_stream_t* stream) {
  KILNI_CHECK_ARGUMENT(exec != NULL, "exec");
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_RETURN_IF_ERROR(exec_check_stream(exec, stream));
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuGraphUpload, exec->handle,
                    stream->handle);
  return KILNI_ANNOTATE(status, "putting a graph on its device");
}

// ---- Updated as a whole ----

static const char* reason_text(uint32_t reason) {
  static const char* const kTexts[] = {
      "nothing",
      "the driver gives no reason",
      "it has other nodes or edges",
      "a node is of another kind",
      "a node has a different kernel",
      "a property of a node that must not change has changed",
      "nodes of this kind cannot be changed",
      "a kernel cannot be replaced by that one",
      "attributes that must not change have changed",
  };
  return kTexts[reason < sizeof(kTexts) / sizeof(kTexts[0]) ? reason : 1];
}

static kiln_status_t exec_refused(kiln_graph_t* graph,
                                  const kiln_cu_graph_update_t* outcome,
                                  kiln_status_t status,
                                  kiln_graph_update_t* out_update) {
  kiln_status_native_t native;
  kiln_status_t said = kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "the executable cannot be updated from this graph: %s",
                 reason_text(outcome->result)),
      "give a graph of the same nodes and edges, made in the same order, or "
      "make a new executable");
  if (kiln_status_native(status, &native)) {
    said = kilni_base_status_with_native(said, native.domain, native.number,
                                         native.name);
  }
  kiln_status_free(status);
  out_update->reason = outcome->result;
  kiln_status_free(kilni_graph_meet_all(graph));
  kiln_status_free(kilni_graph_lookup(graph, outcome->node, &out_update->node));
  kiln_status_free(kilni_graph_lookup(graph, outcome->from, &out_update->from));
  if (out_update->node == NULL) return said;
  char text[KILNI_NODE_TEXT];
  return KILNI_ANNOTATE(said, "at the %s node \"%s\"",
                        kilni_graph_kind_name(out_update->node->kind),
                        kilni_graph_node_says(out_update->node, text));
}

// What it retained is released after the launches that may use it.
static void change_hold(kiln_graph_exec_t* exec, kilni_graph_hold_t* hold) {
  kilni_graph_hold_t* before = exec->hold;
  kilni_graph_marks_t marks;
  hold->elsewhere = before->elsewhere;
  exec->hold = hold;
  kilni_device_late_begin(exec->late);
  kilni_graph_hold_mark(before, exec, &marks);
  kilni_graph_hold_end_behind(before, &marks);
  kilni_device_late_end(exec->late);
  exec->has_last = false;
}

kiln_status_t kiln_graph_exec_update(kiln_graph_exec_t* exec,
                                     kiln_graph_t* graph,
                                     kiln_graph_update_t* out_update) {
  kiln_graph_update_t ignored;
  if (out_update == NULL) out_update = &ignored;
  memset(out_update, 0, sizeof(*out_update));
  KILNI_CHECK_ARGUMENT(exec != NULL, "exec");
  KILNI_CHECK_ARGUMENT(graph != NULL, "graph");
  KILNI_RETURN_IF_ERROR(exec_check_source(graph));
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_driver(exec->device, graph->device, "the graph"));
  KILNI_RETURN_IF_ERROR(kilni_table_cuda_need(
      exec->device->table, KILNI_CUDA_ROW_cuGraphExecUpdate));
  kilni_graph_hold_t* hold = NULL;
  KILNI_RETURN_IF_ERROR(begin_hold(graph, exec->device_launch, &hold));
  kiln_cu_graph_update_t outcome = {0};
  kiln_status_t status;
  KILNI_GRAPH_CALL(status, graph, cuGraphExecUpdate, exec->handle,
                   graph->handle, &outcome);
  if (!kiln_status_is_ok(status)) {
    end_hold(graph, hold, false);
    // Where memory is short the graphs may well fit each other.
    bool told = outcome.result != KILN_CU_GRAPH_EXEC_UPDATE_SUCCESS &&
                kiln_status_code(status) != KILN_STATUS_DEVICE_OUT_OF_MEMORY &&
                !kilni_device_is_lost(exec->device);
    if (told) return exec_refused(graph, &outcome, status, out_update);
    return KILNI_ANNOTATE(status, "updating the executable of a graph");
  }
  kilni_graph_owners_seal(graph);
  end_hold(graph, hold, true);
  change_hold(exec, hold);
  return kiln_ok();
}

// ---- Node by node ----

static kiln_status_t exec_call_set(const kiln_graph_exec_t* exec,
                                   const kiln_graph_node_t* node,
                                   const kilni_graph_work_t* work) {
  kiln_device_t* device = exec->device;
  kiln_status_t s;
#define SET(row, ...) \
  KILNI_DEVICE_CALL(s, device, row, exec->handle, node->handle, __VA_ARGS__)
  switch (node->kind) {
    case KILN_GRAPH_KERNEL:
      SET(cuGraphExecKernelNodeSetParams, &work->to.kernel);
      break;
    case KILN_GRAPH_COPY:
      SET(cuGraphExecMemcpyNodeSetParams, &work->to.copy, device->context);
      break;
    case KILN_GRAPH_FILL:
      SET(cuGraphExecMemsetNodeSetParams, &work->to.fill, device->context);
      break;
    case KILN_GRAPH_HOST:
      SET(cuGraphExecHostNodeSetParams, &work->to.host);
      break;
    case KILN_GRAPH_CHILD:
      SET(cuGraphExecChildGraphNodeSetParams, work->to.child);
      break;
    case KILN_GRAPH_WAIT:
      SET(cuGraphExecEventWaitNodeSetEvent, work->to.event);
      break;
    case KILN_GRAPH_RECORD:
      SET(cuGraphExecEventRecordNodeSetEvent, work->to.event);
      break;
    case KILN_GRAPH_SIGNAL_SEMAPHORES:
      SET(cuGraphExecExternalSemaphoresSignalNodeSetParams, &work->to.signal);
      break;
    case KILN_GRAPH_WAIT_SEMAPHORES:
      SET(cuGraphExecExternalSemaphoresWaitNodeSetParams, &work->to.wait);
      break;
    default:
      SET(cuGraphExecBatchMemOpNodeSetParams, &work->to.ops);
      break;
  }
#undef SET
  return s;
}

static kiln_status_t check_dimensions(const kiln_graph_node_t* node,
                                      const kiln_graph_work_t* work) {
  bool flat = true;
  if (node->kind == KILN_GRAPH_COPY) {
    const kiln_graph_copy_t* copy = &work->as.copy;
    flat = copy->rows <= 1 && copy->slices <= 1 && copy->to.array == NULL &&
           copy->from.array == NULL;
  } else if (node->kind == KILN_GRAPH_FILL) {
    flat = work->as.fill.rows <= 1;
  }
  if (flat) return kiln_ok();
  char text[KILNI_NODE_TEXT];
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "the %s node \"%s\" of an executable accepts one-dimensional "
                 "work only",
                 kilni_graph_kind_name(node->kind),
                 kilni_graph_node_says(node, text)),
      "change the node in its graph (kiln_graph_node_set) and update the "
      "executable as a whole");
}

// A provider may lack what every driver has.
static kiln_status_t need_set(const kiln_graph_exec_t* exec, uint32_t kind) {
#define ROW(name) KILNI_CUDA_ROW_cuGraphExec##name
  static const kilni_cuda_row_id_t kNeeded[KILN_GRAPH_CONDITIONAL] = {
      [KILN_GRAPH_KERNEL] = ROW(KernelNodeSetParams),
      [KILN_GRAPH_COPY] = ROW(MemcpyNodeSetParams),
      [KILN_GRAPH_FILL] = ROW(MemsetNodeSetParams),
      [KILN_GRAPH_HOST] = ROW(HostNodeSetParams),
      [KILN_GRAPH_CHILD] = ROW(ChildGraphNodeSetParams),
      [KILN_GRAPH_WAIT] = ROW(EventWaitNodeSetEvent),
      [KILN_GRAPH_RECORD] = ROW(EventRecordNodeSetEvent),
      [KILN_GRAPH_SIGNAL_SEMAPHORES] =
          ROW(ExternalSemaphoresSignalNodeSetParams),
      [KILN_GRAPH_WAIT_SEMAPHORES] = ROW(ExternalSemaphoresWaitNodeSetParams),
      [KILN_GRAPH_MEMORY_OPS] = ROW(BatchMemOpNodeSetParams),
  };
#undef ROW
  return kilni_table_cuda_need(exec->device->table, kNeeded[kind]);
}

static kiln_status_t check_set(const kiln_graph_exec_t* exec,
                               const kiln_graph_node_t* node,
                               const kiln_graph_work_t* work) {
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_driver(exec->device, node->graph->device, "the node"));
  if (work->kind != node->kind || node->kind == KILN_GRAPH_EMPTY ||
      node->kind == KILN_GRAPH_ALLOCATE || node->kind == KILN_GRAPH_FREE ||
      node->kind >= KILN_GRAPH_CONDITIONAL) {
    return kilni_graph_work_wrong_kind(node, work->kind);
  }
  KILNI_RETURN_IF_ERROR(need_set(exec, node->kind));
  return check_dimensions(node, work);
}

static kiln_status_t exec_set_prepared(kiln_graph_exec_t* exec,
                                       kiln_graph_node_t* node,
                                       kilni_graph_work_t* work) {
  kilni_graph_bundle_t* bundle = NULL;
  kilni_graph_hold_t* hold = exec->hold;
  kilni_graph_hold_t* child = NULL;
  if (hold->own == NULL) {
    KILNI_RETURN_IF_ERROR(kilni_graph_segment_make(exec->device, &hold->own));
  }
  KILNI_RETURN_IF_ERROR(kilni_graph_work_want_child(work, &child));
  kiln_status_t prepared =
      kilni_graph_keeper_prepare(hold->own, &work->wanted, &bundle);
  kilni_graph_hold_release(child);  // the bundle has it
  KILNI_RETURN_IF_ERROR(prepared);
  kilni_graph_work_use_copy(work, bundle);
  kiln_status_t status = exec_call_set(exec, node, work);
  if (!kiln_status_is_ok(status)) {
    kilni_graph_owners_cancel(bundle);
    char text[KILNI_NODE_TEXT];
    return KILNI_ANNOTATE(
        status, "changing the %s node \"%s\" of an executable",
        kilni_graph_kind_name(node->kind), kilni_graph_node_says(node, text));
  }
  kilni_graph_keeper_commit(hold->own, bundle, &work->wanted);
  kilni_graph_work_taken(work);
  const kiln_launch_t* launch = work->wanted.launch;
  if (launch == NULL) return kiln_ok();
  exec->has_last = true;
  exec->last_number = launch->number;
  exec->last_version = launch->version;
  return kiln_ok();
}

// A kernel without attributes, and with objects that the executable has.
static inline bool is_last(const kiln_graph_exec_t* exec,
                           const kiln_launch_t* launch) {
  return exec->has_last && launch->number == exec->last_number &&
         launch->version == exec->last_version && launch->attributes == 0;
}

static inline bool takes_calls(const kiln_graph_exec_t* exec,
                               const kiln_graph_t* graph) {
  return graph->refuses == KILNI_GRAPH_OPEN && graph->device == exec->device;
}

static inline bool call_shortly(const kiln_graph_exec_t* exec,
                                const kiln_graph_node_t* node,
                                const kiln_launch_t* launch) {
  return node->handle != NULL && node->kind == KILN_GRAPH_KERNEL &&
         node->more == NULL &&
         exec->set_kernel(exec->handle, node->handle, &launch->node) ==
             KILN_CU_SUCCESS;
}

_Static_assert(KILNI_WAY_cuGraphExecKernelNodeSetParams ==
                   (int)KILNI_WAY_CURRENT,
               "the short path changes neither context nor mode");

// The short path: true if the node was given a launch with objects that the
// executable has.
static inline bool set_shortly(const kiln_graph_exec_t* exec,
                               const kiln_graph_node_t* node,
                               const kiln_launch_t* launch) {
  const kiln_graph_t* graph = node->graph;
  if (!is_last(exec, launch) || !takes_calls(exec, graph) ||
      !kilni_graph_is_current(&exec->current)) {
    return false;
  }
  return call_shortly(exec, node, launch);
}

static __attribute__((noinline)) kiln_status_t
exec_set_anyhow(kiln_graph_exec_t* exec, kiln_graph_node_t* node,
                const kiln_graph_work_t* work) {
  KILNI_RETURN_IF_ERROR(kilni_graph_node_check(node));
  KILNI_RETURN_IF_ERROR(check_set(exec, node, work));
  kilni_graph_work_t made;
  kiln_status_t status = kilni_graph_work_init(&made, node->graph, work);
  if (kiln_status_is_ok(status) && node->kind == KILN_GRAPH_KERNEL) {
    status = kilni_graph_work_same_how(node, work->as.launch);
  }
  if (kiln_status_is_ok(status)) status = exec_set_prepared(exec, node, &made);
  kilni_graph_work_deinit(&made, node->graph);
  return status;
}

kiln_status_t kiln_graph_exec_set(kiln_graph_exec_t* exec,
                                  kiln_graph_node_t* node,
                                  const kiln_graph_work_t* work) {
  KILNI_CHECK_ARGUMENT(exec != NULL, "exec");
  KILNI_CHECK_ARGUMENT(node != NULL, "node");
  KILNI_CHECK_ARGUMENT(work != NULL, "work");
  if (kilni_graph_work_is_launch(work) &&
      set_shortly(exec, node, work->as.launch)) {
    return kiln_ok();
  }
  return exec_set_anyhow(exec, node, work);
}

// ---- Many nodes ----

static kiln_status_t exec_give_arguments(const kiln_graph_change_t* c) {
  KILNI_CHECK_ARGUMENT(c->arguments != NULL, "arguments");
  if (c->work->kind != KILN_GRAPH_KERNEL || c->work->as.launch == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(
            INVALID_ARGUMENT, "arguments for a %s node%s",
            kilni_graph_kind_name(c->work->kind),
            c->work->kind == KILN_GRAPH_KERNEL ? " without a launch" : ""),
        "give arguments with a launch only");
  }
  for (uint32_t i = 0; i < c->argument_count; i++) {
    KILNI_RETURN_IF_ERROR(kiln_launch_set(
        c->work->as.launch, c->first_argument + i, c->arguments[i]));
  }
  return kiln_ok();
}

static __attribute__((noinline)) kiln_status_t
change_anyhow(kiln_graph_exec_t* exec, const kiln_graph_change_t* c) {
  KILNI_CHECK_ARGUMENT(c->node != NULL, "node");
  KILNI_CHECK_ARGUMENT(c->work != NULL, "work");
  if (c->argument_count > 0) KILNI_RETURN_IF_ERROR(exec_give_arguments(c));
  return exec_set_anyhow(exec, c->node, c->work);
}

// What was found out about the changes in front: of one launch, and nodes of
// one graph, mostly all. one-thread
typedef struct known_t {
  const kiln_graph_work_t* work;
  kiln_launch_t* launch;  // of `work`; the executable has its objects
  const kiln_graph_t* graph;
} known_t;

// True if such nodes may take the short path with this work.
static bool get_to_know(const kiln_graph_exec_t* exec,
                        const kiln_graph_change_t* c, known_t* known) {
  if (c->node == NULL || c->work == NULL ||
      !kilni_graph_work_is_launch(c->work)) {
    return false;
  }
  kiln_launch_t* launch = c->work->as.launch;
  const kiln_graph_t* graph = c->node->graph;
  if (!is_last(exec, launch) || !takes_calls(exec, graph)) return false;
  known->work = c->work;
  known->launch = launch;
  known->graph = graph;
  return true;
}

// The short path; where it fails halfway, the long one gives the arguments
// again. Numbers and addresses do not change what is known: a launch has no
// other objects for them.
static inline bool change_shortly(const kiln_graph_exec_t* exec,
                                  const kiln_graph_change_t* c,
                                  known_t* known) {
  if ((c->work != known->work || c->node == NULL ||
       c->node->graph != known->graph) &&
      !get_to_know(exec, c, known)) {
    return false;
  }
  kiln_launch_t* launch = known->launch;
  uint32_t count = c->argument_count;
  if (count > 0 && c->arguments == NULL) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (!kilni_device_launch_set_shortly(launch, c->first_argument + i,
                                         &c->arguments[i])) {
      return false;
    }
  }
  return call_shortly(exec, c->node, launch);
}

static kiln_status_t change_each(kiln_graph_exec_t* exec,
                                 const kiln_graph_change_t* changes,
                                 uint32_t count, uint32_t* out_changed) {
  known_t known = {NULL, NULL, NULL};
  for (uint32_t i = 0; i < count; i++) {
    if (!change_shortly(exec, &changes[i], &known)) {
      kiln_status_t status = change_anyhow(exec, &changes[i]);
      memset(&known, 0, sizeof(known));
      if (!kiln_status_is_ok(status)) {
        *out_changed = i;
        return KILNI_ANNOTATE(status, "change %u of %u", (unsigned)i,
                              (unsigned)count);
      }
    }
  }
  *out_changed = count;
  return kiln_ok();
}

kiln_status_t kiln_graph_exec_set_all(kiln_graph_exec_t* exec,
                                      const kiln_graph_change_t* changes,
                                      uint32_t count, uint32_t* out_changed) {
  uint32_t ignored;
  if (out_changed == NULL) out_changed = &ignored;
  *out_changed = 0;
  KILNI_CHECK_ARGUMENT(exec != NULL, "exec");
  KILNI_CHECK_ARGUMENT(changes != NULL || count == 0, "changes");
  if (count == 0) return kiln_ok();
  kilni_device_scope_t scope;
  KILNI_RETURN_IF_ERROR(kilni_device_scope_begin(
      &scope, exec->device, KILNI_WAY_cuGraphExecKernelNodeSetParams));
  return kilni_device_scope_leave(
      &scope, change_each(exec, changes, count, out_changed));
}

// ---- On and off ----

static kiln_status_t exec_check_switch(const kiln_graph_exec_t* exec,
                                       const kiln_graph_node_t* node) {
  KILNI_RETURN_IF_ERROR(kilni_graph_node_check(node));
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_driver(exec->device, node->graph->device, "the node"));
  if (node->kind <= KILN_GRAPH_FILL) return kiln_ok();
  char text[KILNI_NODE_TEXT];
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "the %s node \"%s\" cannot be switched off",
                 kilni_graph_kind_name(node->kind),
                 kilni_graph_node_says(node, text)),
      "switch kernel, copy and fill nodes");
}

kiln_status_t kiln_graph_exec_enable(kiln_graph_exec_t* exec,
                                     kiln_graph_node_t* node, bool enabled) {
  KILNI_CHECK_ARGUMENT(exec != NULL, "exec");
  KILNI_CHECK_ARGUMENT(node != NULL, "node");
  KILNI_RETURN_IF_ERROR(exec_check_switch(exec, node));
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, exec->device, cuGraphNodeSetEnabled, exec->handle,
                    node->handle, enabled ? 1 : 0);
  return status;
}

kiln_status_t kiln_graph_exec_is_enabled(kiln_graph_exec_t* exec,
                                         kiln_graph_node_t* node,
                                         bool* out_enabled) {
  KILNI_CHECK_ARGUMENT(out_enabled != NULL, "out_enabled");
  *out_enabled = false;
  KILNI_CHECK_ARGUMENT(exec != NULL, "exec");
  KILNI_CHECK_ARGUMENT(node != NULL, "node");
  KILNI_RETURN_IF_ERROR(exec_check_switch(exec, node));
  unsigned int enabled = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, exec->device, cuGraphNodeGetEnabled, exec->handle,
                    node->handle, &enabled);
  *out_enabled = kiln_status_is_ok(status) && enabled != 0;
  return status;
}
