// SPDX-License-Identifier: Apache-2.0
//
// graph: what shares the objects that a graph retains, and for how long.
//
// A hold is a list of segments with a reference to each: what a clone, an
// executable or a node with an inner graph shares with the graph it came from.
// That of an executable must outlive it while launches run. Launches cost
// nothing for it: when the executable ends, an event is recorded where it was
// launched and something still runs, and a stream of the device's own waits for
// those and then calls back. Where that is impossible, because a stream is
// being captured or is unknown to Kiln, an upload replaces the events: the
// driver orders it after all launches of the executable.
//
// Only what a driver copies without us needs a user object of the driver's: a
// graph whose handle was given out, and an executable that kernels launch. The
// driver calls back on a thread that may not call CUDA: device_late.c.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "device/device_scope.h"
#include "graph/graph_inside.h"
#include "kiln/graph.h"

static kiln_allocator_t hold_allocator_of(const kilni_graph_hold_t* hold) {
  return hold->device->host->allocator;
}

// ---- Made and ended ----

static kiln_status_t hold_make(kiln_graph_t* root, uint32_t count,
                               kilni_graph_hold_t** out_hold) {
  *out_hold = NULL;
  kiln_device_t* device = root->device;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(
      device->host->allocator,
      sizeof(kilni_graph_hold_t) + count * sizeof(kilni_graph_segment_t*),
      &block));
  kilni_graph_hold_t* hold = block;
  hold->device = device;
  hold->thread = root->late;
  hold->space = count;
  atomic_init(&hold->references, 1);
  atomic_init(&hold->late.claimed, false);
  kiln_device_retain(device);
  *out_hold = hold;
  return kiln_ok();
}

static void hold_end(kilni_graph_hold_t* hold) {
  kiln_device_t* device = hold->device;
  if (hold->late.let_go != NULL) {
    kilni_device_late_leave(hold->thread, &hold->late);
  }
  for (uint32_t i = 0; i < hold->count; i++) {
    kilni_graph_segment_release(hold->segments[i]);
  }
  kilni_graph_segment_release(hold->own);
  if (hold->waits != NULL) kilni_device_stream_recycle(device, hold->waits);
  kilni_base_free(hold_allocator_of(hold), hold,
                  sizeof(*hold) + hold->space * sizeof(kilni_graph_segment_t*));
  kiln_device_release(device);
}

void kilni_graph_hold_retain(kilni_graph_hold_t* hold) {
  atomic_fetch_add_explicit(&hold->references, 1, memory_order_relaxed);
}

void kilni_graph_hold_release(kilni_graph_hold_t* hold) {
  if (hold == NULL) return;
  if (atomic_fetch_sub_explicit(&hold->references, 1, memory_order_acq_rel) ==
      1) {
    hold_end(hold);
  }
}

static void hold_let_go(kilni_device_late_entry_t* entry) {
  kilni_graph_hold_release((kilni_graph_hold_t*)entry);
}

// On a thread of the driver's, which may not call it.
static void nobody_needs(void* user) {
  kilni_graph_hold_t* hold = user;
  kilni_device_late_push(hold->thread, &hold->late);
}

// From here on `nobody_needs` will be called, and releases it.
static void await(kilni_graph_hold_t* hold) {
  hold->late.let_go = hold_let_go;
  kilni_device_late_enter(hold->thread, &hold->late);
}

// ---- What it retains ----

static void hold_put(kilni_graph_hold_t* hold, kilni_graph_segment_t* segment) {
  kilni_graph_segment_retain(segment);
  hold->segments[hold->count++] = segment;
}

// `all`: the open one too where it has nothing yet.
static kiln_status_t hold_take(kiln_graph_t* root, bool all,
                               kilni_graph_hold_t** out_hold) {
  bool open = root->open != NULL && (all || root->open->live > 0);
  uint32_t count = open ? 1 : 0;
  for (kilni_graph_segment_t* s = root->sealed; s != NULL; s = s->next) count++;
  if (root->source != NULL) count += root->source->count;
  KILNI_RETURN_IF_ERROR(hold_make(root, count, out_hold));
  kilni_graph_hold_t* hold = *out_hold;
  if (open) hold_put(hold, root->open);
  for (kilni_graph_segment_t* s = root->sealed; s != NULL; s = s->next) {
    hold_put(hold, s);
  }
  for (uint32_t i = 0; root->source != NULL && i < root->source->count; i++) {
    hold_put(hold, root->source->segments[i]);
  }
  return kiln_ok();
}

kiln_status_t kilni_graph_hold_make(kiln_graph_t* root,
                                    kilni_graph_hold_t** out_hold) {
  return hold_take(root, false, out_hold);
}

// ---- On a driver's graph ----

// After a failure: the driver has the object, and may call back at once.
static void undo_object(kilni_graph_hold_t* hold,
                        kiln_cu_user_object_t object) {
  kiln_device_t* device = hold->device;
  if (kilni_device_is_lost(device)) return;  // known, and so not forgotten
  kilni_device_late_t* late = hold->thread;
  kiln_device_retain(device);
  kilni_device_late_begin(late);
  KILNI_DEVICE_END(device, cuUserObjectRelease, object, 1);
  kilni_device_late_end(late);
  kiln_device_release(device);
}

// Its reference passes to the driver, also where that fails halfway.
static kiln_status_t hang(kilni_graph_hold_t* hold, kiln_cu_graph_t graph) {
  kiln_device_t* device = hold->device;
  kiln_cu_user_object_t object = NULL;
  kiln_status_t status;
  await(hold);
  KILNI_DEVICE_CREATE(status, device, &object, cuUserObjectCreate, hold,
                      nobody_needs, 1, KILN_CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  if (object == NULL) {
    kilni_graph_hold_release(hold);
    return status;
  }
  hold->object = object;
  if (kiln_status_is_ok(status)) {
    KILNI_DEVICE_CALL(status, device, cuGraphRetainUserObject, graph, object, 1,
                      KILN_CU_GRAPH_USER_OBJECT_MOVE);
  }
  if (!kiln_status_is_ok(status)) undo_object(hold, object);
  return status;
}

kiln_status_t kilni_graph_hold_hang(kilni_graph_hold_t* hold,
                                    kiln_cu_graph_t graph) {
  return hang(hold, graph);
}

// What a driver refuses is kept too long and no more.
void kilni_graph_hold_unhang(kilni_graph_hold_t* hold, kiln_cu_graph_t graph) {
  kiln_device_t* device = hold->device;
  if (kilni_device_is_lost(device)) return;
  kilni_device_late_t* late = hold->thread;
  kiln_status_t status;
  kilni_device_late_begin(late);
  KILNI_DEVICE_CALL(status, device, cuGraphReleaseUserObject, graph,
                    hold->object, 1);
  kilni_device_late_end(late);
  kiln_status_free(status);
}

// Records that its handle was given out: callers that only ask for the handle
// have a const graph.
static kiln_graph_t* own_object(const kiln_graph_t* graph) {
  kiln_graph_t* root = graph->root;
  if (graph == root) return root;
  kiln_graph_t* view = root->views;
  while (view != graph) view = view->next_view;
  return view;
}

bool kilni_graph_hold_guard(const kiln_graph_t* graph) {
  kiln_graph_t* root = graph->root;
  if (graph->given || graph->handle == NULL ||
      kilni_device_is_lost(graph->device)) {
    return true;
  }
  kilni_graph_hold_t* hold = NULL;
  kiln_status_t status = hold_take(root, true, &hold);
  if (kiln_status_is_ok(status) && hold->count == 0) {
    kilni_graph_hold_release(hold);
  } else if (kiln_status_is_ok(status)) {
    status = hang(hold, graph->handle);
  }
  bool good = kiln_status_is_ok(status);
  kiln_status_free(status);
  if (!good) return false;
  own_object(graph)->given = true;
  root->any_given = true;
  return true;
}

static kiln_status_t guard_segment(kiln_graph_t* graph,
                                   kilni_graph_segment_t* segment) {
  if (!graph->given || graph->handle == NULL) return kiln_ok();
  kilni_graph_hold_t* hold = NULL;
  KILNI_RETURN_IF_ERROR(hold_make(graph->root, 1, &hold));
  hold_put(hold, segment);
  return hang(hold, graph->handle);
}

kiln_status_t kilni_graph_hold_guard_segment(kiln_graph_t* root,
                                             kilni_graph_segment_t* segment) {
  KILNI_RETURN_IF_ERROR(guard_segment(root, segment));
  for (kiln_graph_t* view = root->views; view != NULL; view = view->next_view) {
    KILNI_RETURN_IF_ERROR(guard_segment(view, segment));
  }
  return kiln_ok();
}

// ---- After launches ----

static kiln_status_t hold_record(kiln_stream_t* stream,
                                 kiln_cu_event_t* out_event) {
  kiln_device_t* device = stream->device;
  KILNI_RETURN_IF_ERROR(kilni_device_event_acquire(device, false, out_event));
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuEventRecord, *out_event, stream->handle);
  if (kiln_status_is_ok(status)) return kiln_ok();
  kilni_device_event_recycle(device, false, *out_event);
  *out_event = NULL;
  return status;
}

// An event after all work on the stream, or none where all of it is done.
// False: neither was possible.
static bool mark_stream(kiln_stream_t* stream, kiln_cu_event_t* out_event) {
  kiln_cu_capture_status_t capturing = KILN_CU_STREAM_CAPTURE_STATUS_NONE;
  kiln_status_t status;
  *out_event = NULL;
  KILNI_STREAM_CALL(status, stream, cuStreamIsCapturing, stream->handle,
                    &capturing);
  bool good = kiln_status_is_ok(status) &&
              capturing == KILN_CU_STREAM_CAPTURE_STATUS_NONE;
  kiln_status_free(status);
  if (!good) return false;
  KILNI_STREAM_CALL(status, stream, cuStreamQuery, stream->handle);
  if (kiln_status_code(status) == KILN_STATUS_NOT_READY) {
    kiln_status_free(status);
    status = hold_record(stream, out_event);
  }
  good = kiln_status_is_ok(status);
  kiln_status_free(status);
  return good;
}

// An upload on a stream of our own: the driver orders it after every launch.
static bool mark_by_upload(kilni_graph_hold_t* hold,
                           const kiln_graph_exec_t* exec) {
  kiln_status_t status =
      kilni_device_stream_acquire(hold->device, &hold->waits);
  if (kiln_status_is_ok(status)) {
    KILNI_DEVICE_CALL(status, hold->device, cuGraphUpload, exec->handle,
                      hold->waits);
  }
  bool good = kiln_status_is_ok(status);
  kiln_status_free(status);
  return good;
}

void kilni_graph_hold_mark(kilni_graph_hold_t* hold,
                           const kiln_graph_exec_t* exec,
                           kilni_graph_marks_t* out_marks) {
  memset(out_marks, 0, sizeof(*out_marks));
  out_marks->certain = true;
  if (hold->object != NULL || kilni_device_is_lost(hold->device)) return;
  bool by_upload = hold->elsewhere;
  for (int i = 0; i < KILNI_GRAPH_STREAMS && !by_upload; i++) {
    if (exec->streams[i] == NULL) break;
    kiln_cu_event_t event = NULL;
    by_upload = !mark_stream(exec->streams[i], &event);
    if (event == NULL) continue;
    out_marks->devices[out_marks->count] = exec->streams[i]->device;
    out_marks->events[out_marks->count++] = event;
  }
  if (by_upload) out_marks->certain = mark_by_upload(hold, exec);
}

// The stream that waits, made when something has to be waited for.
static kiln_status_t hold_wait_for(kilni_graph_hold_t* hold,
                                   const kilni_graph_marks_t* marks) {
  for (uint32_t i = 0; i < marks->count; i++) {
    if (hold->waits == NULL) {
      KILNI_RETURN_IF_ERROR(
          kilni_device_stream_acquire(hold->device, &hold->waits));
    }
    kiln_status_t status;
    KILNI_DEVICE_CALL(status, hold->device, cuStreamWaitEvent, hold->waits,
                      marks->events[i], 0);
    KILNI_RETURN_IF_ERROR(status);
  }
  return kiln_ok();
}

// OK: the driver will call back, and may have done so: another thread then ends
// the hold while this one is inside the call. The executable keeps the device.
static kiln_status_t call_back(kilni_graph_hold_t* hold) {
  kiln_device_t* device = hold->device;
  kiln_cu_stream_t waits = hold->waits;
  kiln_status_t status;
  await(hold);
  KILNI_DEVICE_CALL(status, device, cuLaunchHostFunc, waits, nobody_needs,
                    hold);
  return status;
}

void kilni_graph_hold_end_behind(kilni_graph_hold_t* hold,
                                 kilni_graph_marks_t* marks) {
  kiln_device_t* device = hold->device;
  if (hold->object != NULL) {
    // The driver calls back; a lost one does not, and the thread then does it.
    return;
  }
  kiln_status_t status = marks->certain ? hold_wait_for(hold, marks) : NULL;
  for (uint32_t i = 0; i < marks->count; i++) {
    kilni_device_event_recycle(marks->devices[i], false, marks->events[i]);
  }
  bool certain = marks->certain && kiln_status_is_ok(status);
  kiln_status_free(status);
  if (certain && hold->waits != NULL && !kilni_device_is_lost(device)) {
    status = call_back(hold);
    certain = kiln_status_is_ok(status);
    kiln_status_free(status);
    if (certain) return;
  }
  // Nothing could be ordered after the launches: wait here, for everything.
  if (!certain) kilni_device_wait_end(device);
  kilni_graph_hold_release(hold);
}
