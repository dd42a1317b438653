// SPDX-License-Identifier: Apache-2.0
//
// graph: builders: captures begun, ended, thrown away.
//
// A builder is capturing from the moment the driver's begin has worked, so that
// whatever fails afterwards, the capture is ended. Forks share the capture of
// the builder that they were split from; their streams belong to it until it
// ends, because a stream that was captured into a graph is free only then.
//
// A driver may crash where the capture of a conditional body is ended that was
// invalidated. So a body is asked first, and such a one is left alone with its
// stream, which is never used again.
#include <string.h>

#include "base/alloc.h"
#include "base/log_line.h"
#include "base/options.h"
#include "base/status_make.h"
#include "base/thread.h"
#include "device/device_scope.h"
#include "graph/graph_inside.h"
#include "kiln/capture.h"
#include "kiln/graph.h"

// ---- What builders share ----

void kilni_graph_capture_retain(kilni_graph_capture_t* capture) {
  atomic_fetch_add_explicit(&capture->references, 1, memory_order_relaxed);
}

static void free_streams(kilni_graph_capture_t* capture) {
  for (size_t i = 0; i < capture->stream_count; i++) {
    kilni_device_stream_clear_bodies(capture->streams[i]);
    kilni_device_stream_set_idle(capture->streams[i], true);
    kiln_stream_release(capture->streams[i]);
  }
  capture->stream_count = 0;
}

static void capture_release(kilni_graph_capture_t* capture) {
  if (capture == NULL) return;
  if (atomic_fetch_sub_explicit(&capture->references, 1,
                                memory_order_acq_rel) != 1) {
    return;
  }
  kiln_device_t* device = capture->device;
  free_streams(capture);
  capture_release(capture->outer);
  kiln_stream_release(capture->outer_stream);
  kiln_graph_release(capture->graph);
  kilni_base_free_array(device->host->allocator, capture->streams,
                        capture->stream_space, sizeof(*capture->streams));
  kilni_base_free(device->host->allocator, capture, sizeof(*capture));
  kiln_device_release(device);
}

static kiln_status_t make_capture(kiln_device_t* device, kiln_graph_t* graph,
                                  kilni_graph_capture_t** out_capture) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(
      device->host->allocator, sizeof(kilni_graph_capture_t), &block));
  kilni_graph_capture_t* capture = block;
  atomic_init(&capture->references, 1);
  capture->device = device;
  kiln_device_retain(device);
  capture->graph = graph;
  kiln_graph_retain(graph);
  atomic_init(&capture->bodies, 0);
  capture->thread = kilni_base_thread_number();
  *out_capture = capture;
  return kiln_ok();
}

// ---- Bodies inside of a capture ----

static void enter_body(kilni_graph_capture_t* capture,
                       const kiln_graph_builder_t* body) {
  capture->body = true;
  capture->in_body = true;
  capture->outer = body->outer;
  kilni_graph_capture_retain(capture->outer);
  capture->outer_stream = body->outer_stream;
  kiln_stream_retain(capture->outer_stream);
  atomic_fetch_add(&capture->outer->bodies, 1);
  // A body may also be filled when the capture around it is over.
  if (capture->outer->active) {
    kilni_device_stream_add_body(capture->outer_stream);
  }
}

// It is captured no more. Where the capture around it is over, its streams have
// forgotten all bodies.
static void leave_body(kilni_graph_capture_t* capture) {
  if (!capture->in_body) return;
  capture->in_body = false;
  atomic_fetch_sub(&capture->outer->bodies, 1);
  if (capture->outer->active) {
    kilni_device_stream_drop_body(capture->outer_stream);
  }
}

// ---- Builders ----

kiln_status_t kilni_graph_builder_make(kiln_device_t* device, uint32_t kind,
                                       kiln_stream_t* stream,
                                       kiln_graph_builder_t** out_builder) {
  *out_builder = NULL;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(device->host->allocator,
                                         sizeof(kiln_graph_builder_t), &block));
  kiln_graph_builder_t* builder = block;
  builder->device = device;
  builder->kind = kind;
  atomic_init(&builder->references, 1);
  kiln_device_retain(device);
  kiln_status_t status = kiln_ok();
  if (stream != NULL) {
    kiln_stream_retain(stream);
    builder->stream = stream;
  } else {
    status = kilni_device_stream_make_captured(device, &builder->stream);
  }
  if (!kiln_status_is_ok(status)) {
    kiln_graph_builder_release(builder);
    return status;
  }
  *out_builder = builder;
  return kiln_ok();
}

kiln_status_t kiln_graph_builder_create(
    kiln_device_t* device, const kiln_graph_builder_options_t* options,
    kiln_graph_builder_t** out_builder) {
  KILNI_CHECK_ARGUMENT(out_builder != NULL, "out_builder");
  *out_builder = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  kiln_graph_builder_options_t given;
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_graph_builder_options_t, &given));
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  if (given.stream != NULL) {
    KILNI_RETURN_IF_ERROR(
        kilni_device_check_same(device, given.stream->device, "the stream"));
    if (given.stream->kind == KILN_STREAM_LEGACY) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_ARGUMENT,
                     "the legacy default stream cannot be captured"),
          "give another stream, or none");
    }
  }
  return kilni_graph_builder_make(device, KILN_GRAPH_BUILDER_PRIMARY,
                                  given.stream, out_builder);
}

void kiln_graph_builder_retain(kiln_graph_builder_t* builder) {
  if (builder == NULL) return;
  atomic_fetch_add_explicit(&builder->references, 1, memory_order_relaxed);
}

static void leave_to_stream(kiln_graph_builder_t* builder);

void kiln_graph_builder_release(kiln_graph_builder_t* builder) {
  if (builder == NULL || kilni_device_is_forked(builder->device)) return;
  if (atomic_fetch_sub_explicit(&builder->references, 1,
                                memory_order_acq_rel) != 1) {
    return;
  }
  kiln_device_t* device = builder->device;
  kiln_status_t status = kiln_graph_builder_close(builder);
  if (builder->state != KILN_GRAPH_BUILDER_CLOSED) leave_to_stream(builder);
  if (!kiln_status_is_ok(status)) {
    KILNI_LOG(&device->host->log, WARNING,
              "a graph builder that was released: %s",
              kiln_status_message(status));
    kiln_status_free(status);
  }
  kilni_base_free(device->host->allocator, builder, sizeof(*builder));
  kiln_device_release(device);
}

uint32_t kiln_graph_builder_kind(const kiln_graph_builder_t* builder) {
  return builder->kind;
}

// A forked one is as the capture that it is a part of.
uint32_t kiln_graph_builder_state(const kiln_graph_builder_t* builder) {
  const kilni_graph_capture_t* capture = builder->capture;
  if (builder->kind == KILN_GRAPH_BUILDER_FORKED &&
      builder->state == KILN_GRAPH_BUILDER_CAPTURING && capture != NULL &&
      !capture->active) {
    return capture->over;
  }
  return builder->state;
}

bool kiln_graph_builder_must_join(const kiln_graph_builder_t* builder) {
  return builder->kind == KILN_GRAPH_BUILDER_FORKED;
}

kiln_device_t* kiln_graph_builder_device(const kiln_graph_builder_t* builder) {
  return builder->device;
}

// ---- States ----

// OK if it is not closed.
static kiln_status_t capture_check_open(const kiln_graph_builder_t* builder) {
  if (builder->state != KILN_GRAPH_BUILDER_CLOSED) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE, "the graph builder is closed"),
      "use it before kiln_graph_builder_close or _join, or make another one");
}

static const char* state_text(uint32_t state) {
  switch (state) {
    case KILN_GRAPH_BUILDER_NOT_STARTED:
      return "has not begun";
    case KILN_GRAPH_BUILDER_CAPTURING:
      return "is capturing";
    case KILN_GRAPH_BUILDER_ENDED:
      return "has ended";
    case KILN_GRAPH_BUILDER_INVALIDATED:
      return "was invalidated, and the driver has discarded its graph";
    default:
      return "is closed";
  }
}

static const char* state_fix(uint32_t state) {
  switch (state) {
    case KILN_GRAPH_BUILDER_NOT_STARTED:
      return "begin it first (kiln_graph_builder_begin)";
    case KILN_GRAPH_BUILDER_CAPTURING:
      return "end it first (kiln_graph_builder_end)";
    default:
      return "make another builder (kiln_graph_builder_create)";
  }
}

static kiln_status_t wrong_state(const kiln_graph_builder_t* builder,
                                 const char* doing) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE, "%s: the graph builder %s", doing,
                 state_text(builder->state)),
      "%s", state_fix(builder->state));
}

kiln_status_t kilni_graph_builder_check_capturing(
    const kiln_graph_builder_t* builder, const char* doing) {
  KILNI_RETURN_IF_ERROR(capture_check_open(builder));
  if (builder->state != KILN_GRAPH_BUILDER_CAPTURING) {
    return wrong_state(builder, doing);
  }
  if (builder->capture->active) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "%s: the capture that the builder was forked from has ended",
                 doing),
      "join forked builders before the primary one ends");
}

static kiln_status_t check_inside(bool captured, const char* doing) {
  if (!captured) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "%s: a conditional body of the graph builder is captured now",
                 doing),
      "end the body's builder first (kiln_graph_builder_end), or close it");
}

kiln_status_t kilni_graph_builder_check_free(
    const kiln_graph_builder_t* builder, const char* doing) {
  KILNI_RETURN_IF_ERROR(kilni_graph_builder_check_capturing(builder, doing));
  uint32_t way =
      atomic_load_explicit(&builder->stream->way, memory_order_relaxed);
  return check_inside((way & KILNI_WAY_BODY) != 0, doing);
}

kiln_status_t kiln_graph_builder_stream(const kiln_graph_builder_t* builder,
                                        kiln_stream_t** out_stream) {
  KILNI_CHECK_ARGUMENT(out_stream != NULL, "out_stream");
  *out_stream = NULL;
  KILNI_CHECK_ARGUMENT(builder != NULL, "builder");
  KILNI_RETURN_IF_ERROR(capture_check_open(builder));
  *out_stream = builder->stream;
  return kiln_ok();
}

static kiln_status_t capture_ask(const kiln_graph_builder_t* builder,
                                 kiln_cu_capture_status_t* out_status) {
  *out_status = KILN_CU_STREAM_CAPTURE_STATUS_NONE;
  kiln_status_t status;
  KILNI_CAPTURE_CALL(status, builder->stream, cuStreamIsCapturing,
                     builder->stream->handle, out_status);
  return status;
}

kiln_status_t kiln_graph_builder_is_building(kiln_graph_builder_t* builder,
                                             bool* out_building) {
  KILNI_CHECK_ARGUMENT(out_building != NULL, "out_building");
  *out_building = false;
  KILNI_CHECK_ARGUMENT(builder != NULL, "builder");
  KILNI_RETURN_IF_ERROR(capture_check_open(builder));
  if (builder->state != KILN_GRAPH_BUILDER_CAPTURING ||
      !builder->capture->active) {
    return kiln_ok();
  }
  kiln_cu_capture_status_t capturing;
  KILNI_RETURN_IF_ERROR(capture_ask(builder, &capturing));
  if (capturing == KILN_CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE, "the capture was invalidated"),
        "end the builder, or close it, and capture again");
  }
  *out_building = capturing == KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return kiln_ok();
}

// ---- Begin ----

static const kiln_cu_capture_mode_t kModes[] = {
    KILN_CU_STREAM_CAPTURE_MODE_RELAXED,
    KILN_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    KILN_CU_STREAM_CAPTURE_MODE_GLOBAL,
};

static kiln_status_t end_and_destroy(const kilni_graph_capture_t* capture,
                                     kiln_stream_t* stream) {
  kiln_cu_graph_t graph = NULL;
  kilni_device_late_t* late = capture->graph->late;
  kiln_status_t status;
  kilni_device_late_begin(late);
  KILNI_CAPTURE_CALL(status, stream, cuStreamEndCapture, stream->handle,
                     &graph);
  if (graph != NULL && !capture->body) {
    KILNI_DEVICE_END(capture->device, cuGraphDestroy, graph);
  }
  kilni_device_late_end(late);
  return status;
}

// The capture stays with the driver, or may: its streams are never used again,
// neither the builder's nor those of its forks. `untouched`: they are not even
// destroyed.
static void give_up_stream(const kilni_graph_capture_t* capture,
                           kiln_stream_t* stream, bool untouched) {
  stream->spoiled = true;
  stream->abandoned |= untouched;
  for (size_t i = 0; i < capture->stream_count; i++) {
    capture->streams[i]->spoiled = true;
    capture->streams[i]->abandoned |= untouched;
  }
}

static void give_up_streams(const kiln_graph_builder_t* builder,
                            bool untouched) {
  give_up_stream(builder->capture, builder->stream, untouched);
}

// The driver lets only the thread end it that began it.
static bool is_wrong_thread(kiln_status_t status) {
  kiln_status_native_t native;
  return kiln_status_native(status, &native) &&
         native.number == KILN_CU_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

// The default stream of each thread is another stream, so a driver would look
// at the wrong one.
static kiln_status_t check_thread(const kiln_graph_builder_t* builder) {
  if (builder->stream->kind != KILN_STREAM_PER_THREAD ||
      builder->capture->thread == kilni_base_thread_number()) {
    return kiln_ok();
  }
  return kilni_base_status_with_native(
      kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_STATE,
                     "the capture is of the default stream of another thread"),
          "end or close it on the thread that began it"),
      "cuda", KILN_CU_ERROR_STREAM_CAPTURE_WRONG_THREAD,
      "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD");
}

// The driver ends the capture and throws its graph away. OK too where it had
// done so before; a stream that stays captured is used no more.
static kiln_status_t capture_discard(kiln_graph_builder_t* builder) {
  KILNI_RETURN_IF_ERROR(check_thread(builder));
  kiln_status_t status = end_and_destroy(builder->capture, builder->stream);
  if (kiln_status_is_ok(status) || is_wrong_thread(status) ||
      kilni_device_is_lost(builder->device)) {
    return status;
  }
  kiln_cu_capture_status_t capturing;
  kiln_status_t asked = capture_ask(builder, &capturing);
  bool is_free = kiln_status_is_ok(asked) &&
                 capturing == KILN_CU_STREAM_CAPTURE_STATUS_NONE;
  kiln_status_free(asked);
  if (is_free) {
    kiln_status_free(status);
    return kiln_ok();
  }
  give_up_streams(builder, false);
  return status;
}

static kiln_status_t ask_graph(kiln_graph_builder_t* builder,
                               kiln_cu_graph_t* out_graph) {
  // A driver refuses to be asked without a place for the status.
  kiln_cu_capture_status_t capturing = KILN_CU_STREAM_CAPTURE_STATUS_NONE;
  uint64_t id = 0;
  kiln_status_t status;
  KILNI_CAPTURE_CALL(status, builder->stream, cuStreamGetCaptureInfo,
                     builder->stream->handle, &capturing, &id, out_graph, NULL,
                     NULL);
  KILNI_RETURN_IF_ERROR(status);
  if (capturing == KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE && *out_graph != NULL) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE, "the capture was invalidated that just began"),
      "look for calls on other threads that a capture in this mode does not "
      "allow, or use KILN_GRAPH_CAPTURE_RELAXED");
}

// What begin has made when it fails: the builder is as it was, or, where even
// the end fails, its capture is lost with its stream.
static kiln_status_t undo_begin(kiln_graph_builder_t* builder,
                                kiln_status_t status) {
  kiln_status_t ended = capture_discard(builder);
  builder->capture->active = false;
  kilni_graph_capture_t* capture = builder->capture;
  builder->capture = NULL;
  kilni_device_stream_set_idle(builder->stream, true);
  builder->state = KILN_GRAPH_BUILDER_NOT_STARTED;
  if (!kiln_status_is_ok(ended)) {
    builder->state = KILN_GRAPH_BUILDER_INVALIDATED;
  }
  capture_release(capture);
  return kilni_base_status_join(status, ended);
}

// A capture does not begin: another one is active on the stream.
static kiln_status_t why_no_begin(const kiln_graph_builder_t* builder,
                                  kiln_status_t status) {
  kiln_cu_capture_status_t capturing = KILN_CU_STREAM_CAPTURE_STATUS_NONE;
  kiln_status_native_t native;
  if (!kiln_status_native(status, &native)) return status;
  kiln_status_t asked = capture_ask(builder, &capturing);
  bool is_captured = kiln_status_is_ok(asked) &&
                     capturing != KILN_CU_STREAM_CAPTURE_STATUS_NONE;
  kiln_status_free(asked);
  if (!is_captured) return status;
  kiln_status_t why = kilni_base_status_with_native(
      kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_STATE, "the stream is being captured already"),
          "end that capture first (kiln_graph_builder_end), or give this "
          "builder another stream, or none"),
      "cuda", native.number, native.name);
  kiln_status_free(status);  // which `native` points into
  return why;
}

static kiln_status_t capture_begin_primary(kiln_graph_builder_t* builder,
                                           kiln_cu_capture_mode_t mode) {
  kiln_stream_t* stream = builder->stream;
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuStreamBeginCapture, stream->handle, mode);
  if (!kiln_status_is_ok(status)) return why_no_begin(builder, status);
  builder->state = KILN_GRAPH_BUILDER_CAPTURING;
  builder->capture->active = true;
  kiln_cu_graph_t handle = NULL;
  status = ask_graph(builder, &handle);
  if (!kiln_status_is_ok(status)) return undo_begin(builder, status);
  builder->graph->handle = handle;
  builder->graph->refuses = KILNI_GRAPH_CAPTURING;
  return kiln_ok();
}

static kiln_status_t begin_body(kiln_graph_builder_t* builder,
                                kiln_cu_capture_mode_t mode) {
  kiln_stream_t* stream = builder->stream;
  KILNI_RETURN_IF_ERROR(kilni_graph_check(builder->graph));
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuStreamBeginCaptureToGraph, stream->handle,
                    builder->graph->handle, NULL, NULL, 0, mode);
  KILNI_RETURN_IF_ERROR(status);
  builder->state = KILN_GRAPH_BUILDER_CAPTURING;
  builder->capture->active = true;
  enter_body(builder->capture, builder);
  builder->graph->refuses = KILNI_GRAPH_CAPTURING;
  return kiln_ok();
}

kiln_status_t kiln_graph_builder_begin(kiln_graph_builder_t* builder,
                                       uint32_t mode) {
  KILNI_CHECK_ARGUMENT(builder != NULL, "builder");
  KILNI_CHECK_ARGUMENT(mode <= KILN_GRAPH_CAPTURE_GLOBAL, "mode");
  KILNI_RETURN_IF_ERROR(capture_check_open(builder));
  if (builder->state != KILN_GRAPH_BUILDER_NOT_STARTED) {
    return wrong_state(builder, "a capture cannot begin twice");
  }
  bool body = builder->kind == KILN_GRAPH_BUILDER_BODY;
  kiln_graph_t* made = NULL;
  if (!body) KILNI_RETURN_IF_ERROR(kilni_graph_make(builder->device, &made));
  kiln_graph_t* graph = body ? builder->graph : made;
  kiln_status_t status =
      make_capture(builder->device, graph, &builder->capture);
  if (kiln_status_is_ok(status)) {
    if (!body) builder->graph = made;
    kilni_device_stream_set_idle(builder->stream, false);
    status = body ? begin_body(builder, kModes[mode])
                  : capture_begin_primary(builder, kModes[mode]);
    if (kiln_status_is_ok(status)) return kiln_ok();
  }
  kilni_device_stream_set_idle(builder->stream, true);
  capture_release(builder->capture);
  builder->capture = NULL;
  if (!body) {
    builder->graph = NULL;
    kiln_graph_release(made);
  }
  return KILNI_ANNOTATE(status, "beginning a capture");
}

// ---- End ----

// The driver's capture is over, whatever became of it.
static void leave_capture(kiln_graph_builder_t* builder) {
  kilni_graph_capture_t* capture = builder->capture;
  capture->active = false;
  capture->over = builder->state;
  builder->capture = NULL;
  leave_body(capture);
  kilni_device_stream_clear_bodies(builder->stream);
  kilni_device_stream_set_idle(builder->stream, true);
  free_streams(capture);
  capture_release(capture);
}

static void invalidate(kiln_graph_builder_t* builder) {
  builder->state = KILN_GRAPH_BUILDER_INVALIDATED;
  kiln_graph_t* graph = builder->graph;
  builder->graph = NULL;
  kilni_graph_forget(graph);
  leave_capture(builder);
  kiln_graph_release(graph);
}

static kiln_status_t unjoined(uint32_t forks, kiln_status_t status) {
  if (forks == 0) return status;
  return KILNI_ANNOTATE(status,
                        "%u forked builder%s not joined (kiln_graph_builder_"
                        "split made them)",
                        (unsigned)forks, forks == 1 ? " was" : "s were");
}

static kiln_status_t thrown_away(kiln_status_t status, uint32_t forks) {
  kiln_status_native_t native;
  bool has_native = kiln_status_native(status, &native);
  if (kiln_status_code(status) == KILN_STATUS_DEVICE_LOST || !has_native) {
    return unjoined(forks, status);
  }
  kiln_status_t said = kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "the capture was invalidated, and the driver has discarded "
                 "its graph"),
      "%s",
      forks > 0 ? "join every forked builder (kiln_graph_builder_join) before "
                  "the end"
                : "look for the first call on a captured stream that failed, "
                  "and capture again with a new builder");
  said = kilni_base_status_with_native(said, native.domain, native.number,
                                       native.name);
  kiln_status_free(status);
  return unjoined(forks, said);
}

// After an end that failed: true if the driver goes on capturing, as it does
// where another thread than the first one ends.
static bool capture_goes_on(const kiln_graph_builder_t* builder) {
  if (kilni_device_is_lost(builder->device)) return false;
  kiln_cu_capture_status_t capturing;
  kiln_status_t asked = capture_ask(builder, &capturing);
  bool active = kiln_status_is_ok(asked) &&
                capturing == KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (!kiln_status_is_ok(asked)) give_up_streams(builder, false);
  kiln_status_free(asked);
  return active;
}

static kiln_status_t end_on_stream(const kiln_graph_builder_t* builder,
                                   kiln_cu_graph_t* out_graph) {
  kiln_stream_t* stream = builder->stream;
  kilni_device_late_t* late = builder->graph->late;
  kiln_status_t status;
  *out_graph = NULL;
  kilni_device_late_begin(late);
  KILNI_CAPTURE_CALL(status, stream, cuStreamEndCapture, stream->handle,
                     out_graph);
  kilni_device_late_end(late);
  return status;
}

static kiln_status_t end_primary(kiln_graph_builder_t* builder) {
  KILNI_RETURN_IF_ERROR(check_thread(builder));
  uint32_t forks = builder->capture->forks;
  kiln_cu_graph_t graph = NULL;
  kiln_status_t status = end_on_stream(builder, &graph);
  if (graph == NULL) {
    if (capture_goes_on(builder)) {
      return KILNI_ANNOTATE(status, "the capture goes on: it was not ended");
    }
    invalidate(builder);
    return thrown_away(status, forks);
  }
  builder->graph->handle = graph;
  builder->graph->refuses = KILNI_GRAPH_OPEN;
  builder->state = KILN_GRAPH_BUILDER_ENDED;
  leave_capture(builder);
  return status;
}

static kiln_status_t lost_body(kiln_graph_builder_t* builder) {
  give_up_streams(builder, true);
  invalidate(builder);
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "the capture of a conditional body was invalidated; it is not "
                 "ended, because that crashes drivers"),
      "look for the first call on a captured stream that failed, and capture "
      "the whole graph again");
}

static kiln_status_t end_body(kiln_graph_builder_t* builder) {
  kiln_cu_capture_status_t capturing;
  KILNI_RETURN_IF_ERROR(capture_ask(builder, &capturing));
  if (capturing != KILN_CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    return lost_body(builder);
  }
  uint32_t forks = builder->capture->forks;
  kiln_cu_graph_t graph = NULL;
  kiln_status_t status = end_on_stream(builder, &graph);
  if (!kiln_status_is_ok(status) && graph == NULL) {
    if (capture_goes_on(builder)) {
      return KILNI_ANNOTATE(status, "the capture goes on: it was not ended");
    }
    give_up_streams(builder, false);
    invalidate(builder);
    return thrown_away(status, forks);
  }
  if (builder->graph->refuses == KILNI_GRAPH_CAPTURING) {
    builder->graph->refuses = KILNI_GRAPH_OPEN;
  }
  builder->state = KILN_GRAPH_BUILDER_ENDED;
  leave_capture(builder);
  return status;
}

kiln_status_t kiln_graph_builder_end(kiln_graph_builder_t* builder) {
  KILNI_CHECK_ARGUMENT(builder != NULL, "builder");
  KILNI_RETURN_IF_ERROR(capture_check_open(builder));
  if (builder->kind == KILN_GRAPH_BUILDER_FORKED) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE,
                   "a forked graph builder does not end: it is joined"),
        "join it with kiln_graph_builder_join");
  }
  if (builder->state != KILN_GRAPH_BUILDER_CAPTURING) {
    return wrong_state(builder, "a capture cannot end");
  }
  KILNI_RETURN_IF_ERROR(check_inside(atomic_load(&builder->capture->bodies) > 0,
                                     "a capture cannot end"));
  return builder->kind == KILN_GRAPH_BUILDER_BODY ? end_body(builder)
                                                  : end_primary(builder);
}

// ---- Close ----

static kiln_status_t close_capturing(kiln_graph_builder_t* builder) {
  if (builder->kind == KILN_GRAPH_BUILDER_FORKED) {
    // Its work stays unjoined: the primary's end will report that.
    capture_release(builder->capture);
    builder->capture = NULL;
    return kiln_ok();
  }
  if (builder->kind == KILN_GRAPH_BUILDER_BODY) {
    kiln_status_t status = end_body(builder);
    if (builder->state == KILN_GRAPH_BUILDER_CAPTURING) {
      if (is_wrong_thread(status)) return status;
      give_up_streams(builder, false);
      invalidate(builder);
    }
    // What it left in the body stays there; an invalidated one needs no word.
    if (kiln_status_code(status) == KILN_STATUS_INVALID_STATE) {
      kiln_status_free(status);
      status = kiln_ok();
    }
    return status;
  }
  kiln_status_t status = capture_discard(builder);
  if (is_wrong_thread(status)) {
    return KILNI_ANNOTATE(status, "the capture goes on: it was not ended");
  }
  invalidate(builder);
  return status;
}

static void close_rest(kiln_graph_builder_t* builder) {
  builder->state = KILN_GRAPH_BUILDER_CLOSED;
  capture_release(builder->capture);
  builder->capture = NULL;
  kiln_graph_release(builder->graph);
  builder->graph = NULL;
  capture_release(builder->outer);
  builder->outer = NULL;
  kiln_stream_release(builder->outer_stream);
  builder->outer_stream = NULL;
  kiln_stream_release(builder->stream);
  builder->stream = NULL;
}

kiln_status_t kiln_graph_builder_close(kiln_graph_builder_t* builder) {
  KILNI_CHECK_ARGUMENT(builder != NULL, "builder");
  if (builder->state == KILN_GRAPH_BUILDER_CLOSED) return kiln_ok();
  kiln_status_t status = kiln_ok();
  if (builder->state == KILN_GRAPH_BUILDER_CAPTURING) {
    status = close_capturing(builder);
    bool goes_on = builder->state == KILN_GRAPH_BUILDER_CAPTURING &&
                   builder->kind != KILN_GRAPH_BUILDER_FORKED;
    if (goes_on) return KILNI_ANNOTATE(status, "closing a graph builder");
  }
  close_rest(builder);
  return KILNI_ANNOTATE(status, "closing a graph builder");
}

// ---- Left to its stream ----

static void left_is_over(kilni_graph_capture_t* capture) {
  leave_body(capture);
  free_streams(capture);
  capture_release(capture);
}

static bool end_left(kilni_device_left_t* left, kiln_stream_t* stream) {
  kilni_graph_capture_t* capture = (kilni_graph_capture_t*)left;
  kiln_cu_capture_status_t capturing = KILN_CU_STREAM_CAPTURE_STATUS_NONE;
  kiln_status_t status;
  KILNI_CAPTURE_CALL(status, stream, cuStreamIsCapturing, stream->handle,
                     &capturing);
  bool asked = kiln_status_is_ok(status);
  kiln_status_free(status);
  if (asked && capture->body &&
      capturing == KILN_CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
    give_up_stream(capture, stream, true);
    return false;
  }
  if (asked && capturing != KILN_CU_STREAM_CAPTURE_STATUS_NONE) {
    kiln_status_free(end_and_destroy(capture, stream));
    KILNI_CAPTURE_CALL(status, stream, cuStreamIsCapturing, stream->handle,
                       &capturing);
    asked = kiln_status_is_ok(status);
    kiln_status_free(status);
  }
  // A lost device has no captures.
  if (!kilni_device_is_lost(stream->device) &&
      (!asked || capturing != KILN_CU_STREAM_CAPTURE_STATUS_NONE)) {
    return false;
  }
  left_is_over(capture);
  return true;
}

static void drop_left(kilni_device_left_t* left) {
  kilni_graph_capture_t* capture = (kilni_graph_capture_t*)left;
  for (size_t i = 0; i < capture->stream_count; i++) {
    capture->streams[i]->spoiled = true;
  }
  left_is_over(capture);
}

// The last release, on another thread than the one that may end the capture.
static void leave_to_stream(kiln_graph_builder_t* builder) {
  kilni_graph_capture_t* capture = builder->capture;
  builder->capture = NULL;
  capture->active = false;
  capture->over = KILN_GRAPH_BUILDER_INVALIDATED;
  kilni_graph_forget(builder->graph);
  kilni_device_stream_clear_bodies(builder->stream);
  kilni_device_stream_set_idle(builder->stream, true);
  for (size_t i = 0; i < capture->stream_count; i++) {
    kilni_device_stream_clear_bodies(capture->streams[i]);
    kilni_device_stream_set_idle(capture->streams[i], true);
  }
  capture->left.thread = capture->thread;
  capture->left.end = end_left;
  capture->left.drop = drop_left;
  kilni_device_stream_leave(builder->stream, &capture->left);
  close_rest(builder);
}

// ---- What came of it ----

static kiln_status_t no_graph_of_fork(void) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "a forked graph builder has no graph of its own"),
      "take that of the builder that it was split from");
}

kiln_status_t kiln_graph_builder_graph(kiln_graph_builder_t* builder,
                                       kiln_graph_t** out_graph) {
  KILNI_CHECK_ARGUMENT(out_graph != NULL, "out_graph");
  *out_graph = NULL;
  KILNI_CHECK_ARGUMENT(builder != NULL, "builder");
  KILNI_RETURN_IF_ERROR(capture_check_open(builder));
  if (builder->kind == KILN_GRAPH_BUILDER_FORKED) return no_graph_of_fork();
  bool unbegun_body = builder->kind == KILN_GRAPH_BUILDER_BODY &&
                      builder->state == KILN_GRAPH_BUILDER_NOT_STARTED;
  if (builder->state != KILN_GRAPH_BUILDER_ENDED && !unbegun_body) {
    return wrong_state(builder, "the builder has no graph");
  }
  KILNI_RETURN_IF_ERROR(kilni_graph_check(builder->graph));
  kiln_graph_retain(builder->graph);
  *out_graph = builder->graph;
  return kiln_ok();
}

kiln_status_t kiln_graph_builder_exec(kiln_graph_builder_t* builder,
                                      const kiln_graph_exec_options_t* options,
                                      kiln_graph_exec_t** out_exec) {
  KILNI_CHECK_ARGUMENT(out_exec != NULL, "out_exec");
  *out_exec = NULL;
  KILNI_CHECK_ARGUMENT(builder != NULL, "builder");
  KILNI_RETURN_IF_ERROR(capture_check_open(builder));
  if (builder->kind == KILN_GRAPH_BUILDER_FORKED) return no_graph_of_fork();
  if (builder->state != KILN_GRAPH_BUILDER_ENDED) {
    return wrong_state(builder, "the builder has no graph to run");
  }
  if (builder->kind == KILN_GRAPH_BUILDER_BODY) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE,
                   "the body of a conditional node runs as a part of its "
                   "graph"),
        "make an executable of the builder around it");
  }
  return kiln_graph_exec_create(builder->graph, options, out_exec);
}
