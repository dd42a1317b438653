// SPDX-License-Identifier: Apache-2.0
//
// soft: captures of streams as graphs.
//
// A captured stream executes nothing: its calls become nodes, and the stream is
// a place in the graph, the nodes that the next one waits for. An event that it
// records remembers that place; a stream that waits for the event joins the
// capture there. A forbidden call invalidates the capture, which then gives no
// graph; the log names the call.
#include "soft/driver/soft_graph.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "table/cuda_table.h"

static bool is_blocking(const kilni_soft_stream_t* stream) {
  return (stream->flags & KILN_CU_STREAM_NON_BLOCKING) == 0;
}

// ---- Streams in a capture ----

static void free_captured(kilni_soft_driver_t* driver,
                          kilni_soft_captured_t* captured) {
  if (captured == NULL) return;
  kiln_allocator_t allocator = driver->host.allocator;
  kilni_soft_dependencies_free(driver, &captured->at);
  kilni_base_free_array(allocator, captured->nodes, captured->told,
                        sizeof(*captured->nodes));
  kilni_base_free_array(allocator, captured->edges, captured->told,
                        sizeof(*captured->edges));
  kilni_base_free(allocator, captured, sizeof(*captured));
}

static kiln_cu_result_t new_captured(kilni_soft_driver_t* driver,
                                     kilni_soft_capture_t* capture,
                                     const kilni_soft_dependencies_t* at,
                                     const char* forked_by,
                                     kilni_soft_captured_t** out_captured) {
  kilni_soft_captured_t* captured = NULL;
  *out_captured = NULL;
  kiln_status_t status = kilni_base_alloc(driver->host.allocator,
                                          sizeof(*captured), (void**)&captured);
  kiln_cu_result_t result = kilni_soft_result(status);
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_dependencies_copy(driver, at, &captured->at);
  }
  if (result != KILN_CU_SUCCESS) {
    kilni_base_free(driver->host.allocator, captured, sizeof(*captured));
    return result;
  }
  captured->capture = capture;
  captured->forked_by = forked_by;
  *out_captured = captured;
  return KILN_CU_SUCCESS;
}

void kilni_soft_capture_forget(kilni_soft_driver_t* driver,
                               kilni_soft_event_t* event) {
  free_captured(driver, event->captured);
  event->captured = NULL;
}

// The streams and events of all devices, one after the other.
static kilni_soft_stream_t* next_stream(kilni_soft_driver_t* driver,
                                        kilni_soft_stream_t* stream) {
  uint32_t device = 0;
  if (stream != NULL) {
    if (stream->next != NULL) return stream->next;
    device = stream->context->device + 1;
  }
  for (; device < driver->device_count; device++) {
    if (driver->contexts[device].streams != NULL) {
      return driver->contexts[device].streams;
    }
  }
  return NULL;
}

static kilni_soft_event_t* next_event(kilni_soft_driver_t* driver,
                                      kilni_soft_event_t* event) {
  uint32_t device = 0;
  if (event != NULL) {
    if (event->next != NULL) return event->next;
    device = event->context->device + 1;
  }
  for (; device < driver->device_count; device++) {
    if (driver->contexts[device].events != NULL) {
      return driver->contexts[device].events;
    }
  }
  return NULL;
}

static bool capture_is_legacy(const kilni_soft_stream_t* stream) {
  return stream == &stream->context->legacy;
}

static void lose_from(kilni_soft_dependencies_t* at,
                      const kilni_soft_node_t* node) {
  for (size_t i = at->count; i-- > 0;) {
    if (at->list[i].from == node) at->list[i] = at->list[--at->count];
  }
}

void kilni_soft_capture_lose(kilni_soft_driver_t* driver,
                             const kilni_soft_node_t* node) {
  if (driver->captures == NULL || node->handle == 0) return;
  for (kilni_soft_stream_t* stream = next_stream(driver, NULL); stream != NULL;
       stream = next_stream(driver, stream)) {
    if (stream->captured != NULL) lose_from(&stream->captured->at, node);
  }
  for (kilni_soft_event_t* event = next_event(driver, NULL); event != NULL;
       event = next_event(driver, event)) {
    if (event->captured != NULL) lose_from(&event->captured->at, node);
  }
  for (kilni_soft_capture_t* capture = driver->captures; capture != NULL;
       capture = capture->next) {
    lose_from(&capture->orphans, node);
  }
}

// ---- What captures forbid ----

kiln_cu_result_t kilni_soft_capture_break(kilni_soft_driver_t* driver,
                                          kilni_soft_capture_t* capture,
                                          const char* call,
                                          kiln_cu_result_t result) {
  if (!capture->invalid) {
    const char* name = kilni_table_cuda_result_name(result);
    kilni_soft_tell(
        driver,
        "capture %" PRIu64 " (of stream 0x%" PRIx64 ") was broken by %s: %s",
        capture->id, capture->origin != NULL ? capture->origin->handle : 0,
        call, name != NULL ? name : "an error");
    capture->broken_by = call;
  }
  capture->invalid = true;
  return result;
}

kiln_cu_result_t kilni_soft_capture_unsafe(kilni_soft_driver_t* driver,
                                           const char* call) {
  kiln_cu_capture_mode_t mode = kilni_soft_capture_mode();
  uint64_t thread = kilni_soft_thread_number();
  kiln_cu_result_t result = KILN_CU_SUCCESS;
  if (mode == KILN_CU_STREAM_CAPTURE_MODE_RELAXED) return result;
  for (kilni_soft_capture_t* capture = driver->captures; capture != NULL;
       capture = capture->next) {
    bool own = capture->thread == thread &&
               capture->mode != KILN_CU_STREAM_CAPTURE_MODE_RELAXED;
    bool all = capture->mode == KILN_CU_STREAM_CAPTURE_MODE_GLOBAL &&
               mode == KILN_CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!own && !all) continue;
    result = kilni_soft_capture_break(driver, capture, call,
                                      KILN_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return result;
}

// The legacy stream waits for every captured stream that is blocking.
static kiln_cu_result_t check_legacy(kilni_soft_driver_t* driver,
                                     const kilni_soft_stream_t* legacy,
                                     const char* call) {
  kiln_cu_result_t result = KILN_CU_SUCCESS;
  for (kilni_soft_stream_t* stream = legacy->context->streams;
       stream != NULL && driver->captures != NULL; stream = stream->next) {
    if (stream->captured == NULL || !is_blocking(stream)) continue;
    result = KILN_CU_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (call == NULL) continue;
    (void)kilni_soft_capture_break(driver, stream->captured->capture, call,
                                   result);
  }
  return result;
}

kiln_cu_result_t kilni_soft_capture_enter(
    kilni_soft_driver_t* driver, kilni_soft_stream_t* stream, const char* call,
    kilni_soft_captured_t** out_captured) {
  *out_captured = NULL;
  if (capture_is_legacy(stream)) return check_legacy(driver, stream, call);
  if (stream->captured == NULL) return KILN_CU_SUCCESS;
  kilni_soft_capture_t* capture = stream->captured->capture;
  if (capture->invalid) return KILN_CU_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (capture->thread != kilni_soft_thread_number() && !capture->told) {
    capture->told = true;
    kilni_soft_tell(driver,
                    "%s on stream 0x%" PRIx64
                    "is not executed but becomes part of capture %" PRIu64
                    ", which another thread began",
                    call, stream->handle, capture->id);
  }
  *out_captured = stream->captured;
  return KILN_CU_SUCCESS;
}

kiln_cu_result_t kilni_soft_capture_refuse(kilni_soft_driver_t* driver,
                                           kilni_soft_stream_t* stream,
                                           const char* call) {
  kilni_soft_captured_t* captured;
  kiln_cu_result_t result =
      kilni_soft_capture_enter(driver, stream, call, &captured);
  if (result != KILN_CU_SUCCESS || captured == NULL) return result;
  return kilni_soft_capture_break(driver, captured->capture, call,
                                  KILN_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

kiln_cu_result_t kilni_soft_capture_asked(kilni_soft_driver_t* driver,
                                          kilni_soft_stream_t* stream,
                                          const char* call) {
  kiln_cu_result_t result = kilni_soft_capture_refuse(driver, stream, call);
  return result == KILN_CU_SUCCESS ? kilni_soft_capture_unsafe(driver, call)
                                   : result;
}

kiln_cu_result_t kilni_soft_capture_event(kilni_soft_driver_t* driver,
                                          kilni_soft_event_t* event,
                                          const char* call) {
  if (event->captured == NULL) return kilni_soft_capture_unsafe(driver, call);
  if (event->captured->capture != NULL) {
    (void)kilni_soft_capture_break(driver, event->captured->capture, call,
                                   KILN_CU_ERROR_CAPTURED_EVENT);
  }
  return KILN_CU_ERROR_CAPTURED_EVENT;
}

// ---- Nodes ----

// A kernel that may start before the preceding one has ended.
static bool starts_early(const kilni_soft_node_t* node) {
  const kiln_cu_launch_attribute_t* early = kilni_soft_kernel_attribute(
      &node->as.kernel,
      KILN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  return early != NULL && early->value.programmatic_serialization != 0;
}

kiln_cu_result_t kilni_soft_capture_add(kilni_soft_driver_t* driver,
                                        kilni_soft_captured_t* captured,
                                        const char* call, uint32_t type,
                                        kilni_soft_doing_t* doing,
                                        kilni_soft_node_t** out_node) {
  static const kiln_cu_graph_edge_t kEarly = {
      .from_port = KILN_CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
      .type = KILN_CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
  kilni_soft_node_t* node = NULL;
  kilni_soft_dependencies_t in;
  kilni_soft_dependencies_t at = {NULL, 0, 0};
  kiln_cu_result_t result =
      kilni_soft_dependencies_copy(driver, &captured->at, &in);
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_node_new(driver, captured->capture->graph, type, &in,
                                 true, doing, &node);
    if (result != KILN_CU_SUCCESS) kilni_soft_dependencies_free(driver, &in);
  }
  if (result != KILN_CU_SUCCESS) {
    kilni_soft_doing_free(driver, type, doing);
    return kilni_soft_capture_break(driver, captured->capture, call, result);
  }
  node->call = call;
  for (size_t i = 0; type == KILN_CU_GRAPH_NODE_TYPE_KERNEL &&
                     starts_early(node) && i < node->in.count;
       i++) {
    if (node->in.list[i].from->type == KILN_CU_GRAPH_NODE_TYPE_KERNEL) {
      node->in.list[i].data = kEarly;
    }
  }
  result = kilni_soft_dependencies_add(driver, &at, node, NULL);
  if (result != KILN_CU_SUCCESS) {
    return kilni_soft_capture_break(driver, captured->capture, call, result);
  }
  kilni_soft_dependencies_free(driver, &captured->at);
  captured->at = at;
  if (out_node != NULL) *out_node = node;
  return KILN_CU_SUCCESS;
}

kiln_cu_result_t kilni_soft_capture_alloc(kilni_soft_driver_t* driver,
                                          kilni_soft_captured_t* captured,
                                          const char* call, uint32_t device,
                                          uint64_t bytes,
                                          kiln_cu_deviceptr_t* out_address) {
  kiln_cu_graph_node_params_t params;
  memset(&params, 0, sizeof(params));
  params.type = KILN_CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  params.of.alloc.pool.allocation = KILN_CU_MEM_ALLOCATION_TYPE_PINNED;
  params.of.alloc.pool.location.type = KILN_CU_MEM_LOCATION_TYPE_DEVICE;
  params.of.alloc.pool.location.id = (int)device;
  params.of.alloc.bytes = (size_t)bytes;
  kilni_soft_doing_t doing;
  kiln_cu_result_t result =
      kilni_soft_doing_read(driver, captured->capture->graph, &params, &doing);
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_capture_add(driver, captured, call, params.type, &doing,
                                    NULL);
  }
  if (result == KILN_CU_SUCCESS) *out_address = params.of.alloc.address;
  return result;
}

kiln_cu_result_t kilni_soft_capture_free(kilni_soft_driver_t* driver,
                                         kilni_soft_captured_t* captured,
                                         const char* call, uint64_t address) {
  kiln_cu_graph_node_params_t params;
  memset(&params, 0, sizeof(params));
  params.type = KILN_CU_GRAPH_NODE_TYPE_MEM_FREE;
  params.of.free = address;
  kilni_soft_doing_t doing;
  kiln_cu_result_t result =
      kilni_soft_doing_read(driver, captured->capture->graph, &params, &doing);
  if (result != KILN_CU_SUCCESS) return result;
  return kilni_soft_capture_add(driver, captured, call, params.type, &doing,
                                NULL);
}

// ---- Events ----

kiln_cu_result_t kilni_soft_capture_record(kilni_soft_driver_t* driver,
                                           kilni_soft_captured_t* captured,
                                           kilni_soft_event_t* event) {
  kilni_soft_captured_t* place = NULL;
  kiln_cu_result_t result =
      new_captured(driver, captured->capture, &captured->at, NULL, &place);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_capture_forget(driver, event);
  event->captured = place;
  return KILN_CU_SUCCESS;
}

// The event is of a capture that goes on; so is the stream, or will be.
static kiln_cu_result_t capture_join(kilni_soft_driver_t* driver,
                                     kilni_soft_stream_t* stream,
                                     const kilni_soft_captured_t* place) {
  static const char kCall[] = "cuStreamWaitEvent";
  kilni_soft_capture_t* capture = place->capture;
  if (capture->invalid) return KILN_CU_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (capture_is_legacy(stream)) {
    return kilni_soft_capture_break(driver, capture, kCall,
                                    KILN_CU_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
  if (stream->captured == NULL) {
    return new_captured(driver, capture, &place->at, kCall, &stream->captured);
  }
  if (stream->captured->capture != capture) {
    (void)kilni_soft_capture_break(driver, stream->captured->capture, kCall,
                                   KILN_CU_ERROR_STREAM_CAPTURE_MERGE);
    return kilni_soft_capture_break(driver, capture, kCall,
                                    KILN_CU_ERROR_STREAM_CAPTURE_MERGE);
  }
  kiln_cu_result_t result = KILN_CU_SUCCESS;
  for (size_t i = 0; i < place->at.count && result == KILN_CU_SUCCESS; i++) {
    result = kilni_soft_dependencies_add(driver, &stream->captured->at,
                                         place->at.list[i].from,
                                         &place->at.list[i].data);
  }
  return result;
}

kiln_cu_result_t kilni_soft_capture_wait(kilni_soft_driver_t* driver,
                                         kilni_soft_stream_t* stream,
                                         const kilni_soft_event_t* event,
                                         bool* out_done) {
  static const char kCall[] = "cuStreamWaitEvent";
  kilni_soft_captured_t* captured;
  *out_done = true;
  if (event->captured != NULL && event->captured->capture != NULL) {
    return capture_join(driver, stream, event->captured);
  }
  kiln_cu_result_t result =
      kilni_soft_capture_enter(driver, stream, kCall, &captured);
  if (result != KILN_CU_SUCCESS) return result;
  if (captured != NULL) {
    if (event->captured == NULL && event->recorded == NULL) return result;
    return kilni_soft_capture_break(driver, captured->capture, kCall,
                                    KILN_CU_ERROR_STREAM_CAPTURE_ISOLATION);
  }
  if (event->captured != NULL) return KILN_CU_ERROR_CAPTURED_EVENT;
  *out_done = false;
  return KILN_CU_SUCCESS;
}

// ---- Begin ----

static kiln_cu_result_t capture_start(kilni_soft_driver_t* driver,
                                      kilni_soft_stream_t* stream,
                                      kilni_soft_graph_t* graph,
                                      const kilni_soft_dependencies_t* at,
                                      kiln_cu_capture_mode_t mode) {
  kilni_soft_capture_t* capture = NULL;
  kiln_status_t status = kilni_base_alloc(driver->host.allocator,
                                          sizeof(*capture), (void**)&capture);
  kiln_cu_result_t result = kilni_soft_result(status);
  if (result != KILN_CU_SUCCESS) return result;
  capture->graph = graph;
  capture->is_own = graph == NULL;
  if (graph == NULL) {
    result = kilni_soft_graph_new(driver, &capture->graph);
    if (result == KILN_CU_SUCCESS) {
      result = kilni_soft_result(
          kilni_soft_handle_add(&driver->handles, KILNI_SOFT_KIND_GRAPH,
                                capture->graph, &capture->graph->handle));
    }
  }
  if (result == KILN_CU_SUCCESS) {
    result = new_captured(driver, capture, at, NULL, &stream->captured);
  }
  if (result != KILN_CU_SUCCESS) {
    if (capture->is_own && capture->graph != NULL) {
      kilni_soft_graph_free(driver, capture->graph);
    }
    kilni_base_free(driver->host.allocator, capture, sizeof(*capture));
    return result;
  }
  capture->id = ++driver->capture_ids;
  capture->mode = mode;
  capture->thread = kilni_soft_thread_number();
  capture->origin = stream;
  capture->graph->capture = capture;
  capture->next = driver->captures;
  driver->captures = capture;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t check_begin(const kilni_soft_stream_t* stream,
                                    kiln_cu_capture_mode_t mode) {
  if (mode > KILN_CU_STREAM_CAPTURE_MODE_RELAXED) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  if (capture_is_legacy(stream)) {
    return KILN_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return stream->captured == NULL ? KILN_CU_SUCCESS
                                  : KILN_CU_ERROR_ILLEGAL_STATE;
}

static kiln_cu_result_t row_begin(kiln_cu_stream_t stream,
                                  kiln_cu_capture_mode_t mode) {
  static const kilni_soft_dependencies_t kNone;
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* found;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, false, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  result = check_begin(found, mode);
  if (result == KILN_CU_SUCCESS) {
    result = capture_start(driver, found, NULL, &kNone, mode);
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_begin_to(kiln_cu_stream_t stream,
                                     kiln_cu_graph_t graph,
                                     const kiln_cu_graph_node_t* dependencies,
                                     const kiln_cu_graph_edge_t* edges,
                                     size_t count,
                                     kiln_cu_capture_mode_t mode) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* found;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, false, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_graph_t* into = kilni_soft_graph_find(driver, graph);
  kilni_soft_dependencies_t at;
  result = check_begin(found, mode);
  if (result == KILN_CU_SUCCESS && (into == NULL || into->capture != NULL)) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  }
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_dependencies_read(driver, into, dependencies, edges,
                                          count, &at);
  }
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  result = capture_start(driver, found, into, &at, mode);
  kilni_soft_dependencies_free(driver, &at);
  return kilni_soft_leave(driver, result);
}

// ---- End ----

// Everything before the origin's place is marked; what is not was not joined.
static void mark_before(kilni_soft_node_t* node) {
  node->back = NULL;
  node->state = 1;
  while (node != NULL) {
    kilni_soft_node_t* list = node->back;
    for (size_t i = 0; i < node->in.count; i++) {
      kilni_soft_node_t* from = node->in.list[i].from;
      if (from->state == 1) continue;
      from->state = 1;
      from->back = list;
      list = from;
    }
    node = list;
  }
}

static bool is_joined(kilni_soft_driver_t* driver,
                      const kilni_soft_dependencies_t* at,
                      const kilni_soft_captured_t* stream, uint64_t handle) {
  for (size_t i = 0; i < at->count; i++) {
    const kilni_soft_node_t* node = at->list[i].from;
    if (node->state == 1) continue;
    kilni_soft_tell(driver,
                    "a capture ends without its fork on stream 0x%" PRIx64
                    ", made by %s: nothing waits for what %s did there",
                    handle,
                    stream != NULL && stream->forked_by != NULL
                        ? stream->forked_by
                        : "a stream that ended",
                    node->call != NULL ? node->call : "a node added by hand");
    return false;
  }
  return true;
}

static bool all_joined(kilni_soft_driver_t* driver,
                       const kilni_soft_capture_t* capture) {
  const kilni_soft_dependencies_t* end = &capture->origin->captured->at;
  for (size_t i = 0; i < capture->graph->count; i++) {
    capture->graph->nodes[i]->state = 0;
  }
  for (size_t i = 0; i < end->count; i++) mark_before(end->list[i].from);
  bool joined = is_joined(driver, &capture->orphans, NULL, 0);
  for (kilni_soft_stream_t* stream = next_stream(driver, NULL); stream != NULL;
       stream = next_stream(driver, stream)) {
    if (stream->captured == NULL || stream->captured->capture != capture) {
      continue;
    }
    joined = is_joined(driver, &stream->captured->at, stream->captured,
                       stream->handle) &&
             joined;
  }
  return joined;
}

// Lets go of the streams and the events; `*out_graph` is the graph, if it is to
// be kept.
static void end_capture(kilni_soft_driver_t* driver,
                        kilni_soft_capture_t* capture, bool keep,
                        kilni_soft_graph_t** out_graph) {
  for (kilni_soft_stream_t* stream = next_stream(driver, NULL); stream != NULL;
       stream = next_stream(driver, stream)) {
    if (stream->captured == NULL || stream->captured->capture != capture) {
      continue;
    }
    free_captured(driver, stream->captured);
    stream->captured = NULL;
  }
  for (kilni_soft_event_t* event = next_event(driver, NULL); event != NULL;
       event = next_event(driver, event)) {
    if (event->captured == NULL || event->captured->capture != capture) {
      continue;
    }
    event->captured->capture = NULL;
    kilni_soft_dependencies_free(driver, &event->captured->at);
  }
  kilni_soft_capture_t** link = &driver->captures;
  while (*link != capture) link = &(*link)->next;
  *link = capture->next;
  if (capture->graph != NULL) capture->graph->capture = NULL;
  *out_graph = keep ? capture->graph : NULL;
  if (!keep && capture->is_own) kilni_soft_graph_free(driver, capture->graph);
  kilni_soft_dependencies_free(driver, &capture->orphans);
  kilni_base_free(driver->host.allocator, capture, sizeof(*capture));
}

static kiln_cu_result_t row_end(kiln_cu_stream_t stream,
                                kiln_cu_graph_t* graph) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* found;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, false, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  if (graph == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  *graph = NULL;
  if (found->captured == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_ILLEGAL_STATE);
  }
  kilni_soft_capture_t* capture = found->captured->capture;
  if (capture->origin != found) {
    return kilni_soft_leave(
        driver,
        kilni_soft_capture_break(driver, capture, "cuStreamEndCapture",
                                 KILN_CU_ERROR_STREAM_CAPTURE_UNMATCHED));
  }
  if (capture->mode != KILN_CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != kilni_soft_thread_number()) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  }
  if (capture->invalid) {
    result = KILN_CU_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!all_joined(driver, capture)) {
    result = KILN_CU_ERROR_STREAM_CAPTURE_UNJOINED;
  } else if (capture->is_own) {
    result = kilni_soft_graph_publish(driver, capture->graph);
  }
  kilni_soft_graph_t* made = NULL;
  end_capture(driver, capture, result == KILN_CU_SUCCESS, &made);
  if (made != NULL) *graph = (kiln_cu_graph_t)(uintptr_t)made->handle;
  return kilni_soft_leave(driver, result);
}

void kilni_soft_capture_leave(kilni_soft_driver_t* driver,
                              kilni_soft_stream_t* stream) {
  kilni_soft_captured_t* captured = stream->captured;
  kilni_soft_graph_t* none = NULL;
  if (captured == NULL) return;
  kilni_soft_capture_t* capture = captured->capture;
  if (capture->origin == stream) {
    end_capture(driver, capture, false, &none);
    return;
  }
  // Its work has still to be joined.
  for (size_t i = 0; i < captured->at.count; i++) {
    if (kilni_soft_dependencies_add(driver, &capture->orphans,
                                    captured->at.list[i].from,
                                    NULL) != KILN_CU_SUCCESS) {
      capture->invalid = true;
    }
  }
  free_captured(driver, captured);
  stream->captured = NULL;
}

// ---- Asking ----

static kiln_cu_capture_status_t status_of(const kilni_soft_stream_t* stream) {
  if (stream->captured == NULL) return KILN_CU_STREAM_CAPTURE_STATUS_NONE;
  return stream->captured->capture->invalid
             ? KILN_CU_STREAM_CAPTURE_STATUS_INVALIDATED
             : KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static kiln_cu_result_t row_is_capturing(kiln_cu_stream_t stream,
                                         kiln_cu_capture_status_t* status) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* found;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, false, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  if (status == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  if (capture_is_legacy(found)) result = check_legacy(driver, found, NULL);
  if (result == KILN_CU_SUCCESS) *status = status_of(found);
  return kilni_soft_leave(driver, result);
}

// Handles of the place of a captured stream, which are its own.
static kiln_cu_result_t tell_place(kilni_soft_driver_t* driver,
                                   kilni_soft_captured_t* captured) {
  size_t count = captured->at.count;
  kiln_allocator_t allocator = driver->host.allocator;
  if (count > captured->told) {
    kiln_cu_graph_node_t* nodes = NULL;
    kiln_cu_graph_edge_t* edges = NULL;
    kiln_status_t status = kilni_base_alloc_array(
        allocator, count, sizeof(*nodes), (void**)&nodes);
    if (kiln_status_is_ok(status)) {
      status = kilni_base_alloc_array(allocator, count, sizeof(*edges),
                                      (void**)&edges);
      if (!kiln_status_is_ok(status)) {
        kilni_base_free_array(allocator, nodes, count, sizeof(*nodes));
      }
    }
    if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
    kilni_base_free_array(allocator, captured->nodes, captured->told,
                          sizeof(*nodes));
    kilni_base_free_array(allocator, captured->edges, captured->told,
                          sizeof(*edges));
    captured->nodes = nodes;
    captured->edges = edges;
    captured->told = count;
  }
  for (size_t i = 0; i < count; i++) {
    captured->nodes[i] =
        (kiln_cu_graph_node_t)(uintptr_t)captured->at.list[i].from->handle;
    captured->edges[i] = captured->at.list[i].data;
  }
  return KILN_CU_SUCCESS;
}

static bool capture_has_kinds(const kilni_soft_dependencies_t* at) {
  for (size_t i = 0; i < at->count; i++) {
    const kiln_cu_graph_edge_t* data = &at->list[i].data;
    if (data->from_port != 0 || data->to_port != 0 || data->type != 0) {
      return true;
    }
  }
  return false;
}

static kiln_cu_result_t row_info_v3(kiln_cu_stream_t stream,
                                    kiln_cu_capture_status_t* status,
                                    uint64_t* id, kiln_cu_graph_t* graph,
                                    const kiln_cu_graph_node_t** dependencies,
                                    const kiln_cu_graph_edge_t** edges,
                                    size_t* count) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* found;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, false, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  if (status == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  if (capture_is_legacy(found)) result = check_legacy(driver, found, NULL);
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  *status = status_of(found);
  kilni_soft_captured_t* captured = found->captured;
  if (*status != KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    return kilni_soft_leave(driver, KILN_CU_SUCCESS);
  }
  if (dependencies != NULL && edges == NULL &&
      capture_has_kinds(&captured->at)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_LOSSY_QUERY);
  }
  result = tell_place(driver, captured);
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  if (id != NULL) *id = captured->capture->id;
  if (graph != NULL) {
    *graph = (kiln_cu_graph_t)(uintptr_t)captured->capture->graph->handle;
  }
  if (dependencies != NULL) *dependencies = captured->nodes;
  if (edges != NULL) *edges = captured->edges;
  if (count != NULL) *count = captured->at.count;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t capture_row_info(
    kiln_cu_stream_t stream, kiln_cu_capture_status_t* status, uint64_t* id,
    kiln_cu_graph_t* graph, const kiln_cu_graph_node_t** dependencies,
    size_t* count) {
  return row_info_v3(stream, status, id, graph, dependencies, NULL, count);
}

static kiln_cu_result_t row_update_v2(kiln_cu_stream_t stream,
                                      kiln_cu_graph_node_t* dependencies,
                                      const kiln_cu_graph_edge_t* edges,
                                      size_t count, unsigned int flags) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* found;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, false, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_captured_t* captured = found->captured;
  kilni_soft_dependencies_t at;
  if (captured == NULL) {
    result = KILN_CU_ERROR_ILLEGAL_STATE;
  } else if (captured->capture->invalid) {
    result = KILN_CU_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (flags > KILN_CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  } else {
    result = kilni_soft_dependencies_read(driver, captured->capture->graph,
                                          dependencies, edges, count, &at);
  }
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  if (flags == KILN_CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
    kilni_soft_dependencies_free(driver, &captured->at);
    captured->at = at;
    return kilni_soft_leave(driver, KILN_CU_SUCCESS);
  }
  for (size_t i = 0; i < at.count && result == KILN_CU_SUCCESS; i++) {
    result = kilni_soft_dependencies_add(driver, &captured->at, at.list[i].from,
                                         &at.list[i].data);
  }
  kilni_soft_dependencies_free(driver, &at);
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t capture_row_update(kiln_cu_stream_t stream,
                                           kiln_cu_graph_node_t* dependencies,
                                           size_t count, unsigned int flags) {
  return row_update_v2(stream, dependencies, NULL, count, flags);
}

void kilni_soft_fill_capture(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuStreamBeginCapture, row_begin);
  KILNI_CUDA_SET(table, cuStreamBeginCaptureToGraph, row_begin_to);
  KILNI_CUDA_SET(table, cuStreamEndCapture, row_end);
  KILNI_CUDA_SET(table, cuStreamIsCapturing, row_is_capturing);
  KILNI_CUDA_SET(table, cuStreamGetCaptureInfo, capture_row_info);
  KILNI_CUDA_SET(table, cuStreamGetCaptureInfo_v3, row_info_v3);
  KILNI_CUDA_SET(table, cuStreamUpdateCaptureDependencies, capture_row_update);
  KILNI_CUDA_SET(table, cuStreamUpdateCaptureDependencies_v2, row_update_v2);
}
