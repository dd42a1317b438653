// SPDX-License-Identifier: Apache-2.0
//
// soft: rows about streams.
//
// The legacy default stream and the other streams without the non-blocking
// flag wait for each other (soft_queue.c). The per-thread default stream is
// made at a thread's first use and lives until the context ends. Priorities
// are kept and reported; a hint is all they ever are.
#include "base/alloc.h"
#include "soft/driver/soft_driver.h"
#include "soft/driver/soft_graph.h"
#include "table/cuda_table.h"

static const kilni_soft_work_t kMark = {.kind = KILNI_SOFT_TASK_MARK};

static kiln_cu_result_t make_stream(kilni_soft_driver_t* driver,
                                    kilni_soft_context_t* context,
                                    unsigned int flags, int priority,
                                    kilni_soft_stream_t** out_stream) {
  *out_stream = NULL;
  kilni_soft_stream_t* stream;
  kiln_status_t status = kilni_base_alloc(driver->host.allocator,
                                          sizeof(*stream), (void**)&stream);
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  status = kilni_soft_handle_add(&driver->handles, KILNI_SOFT_KIND_STREAM,
                                 stream, &stream->handle);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(driver->host.allocator, stream, sizeof(*stream));
    return kilni_soft_result(status);
  }
  stream->flags = flags;
  stream->priority = priority;
  stream->context = context;
  stream->next = context->streams;
  context->streams = stream;
  *out_stream = stream;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t thread_stream(kilni_soft_driver_t* driver,
                                      kilni_soft_context_t* context,
                                      kilni_soft_stream_t** out_stream) {
  *out_stream =
      kilni_soft_handle_get(&driver->handles, KILNI_SOFT_KIND_STREAM,
                            kilni_soft_thread_stream_get(context->device));
  if (*out_stream != NULL) return KILN_CU_SUCCESS;
  kiln_cu_result_t result = make_stream(driver, context, KILN_CU_STREAM_DEFAULT,
                                        KILNI_SOFT_PRIORITY_LEAST, out_stream);
  if (result == KILN_CU_SUCCESS) {
    kilni_soft_thread_stream_set(context->device, (*out_stream)->handle);
  }
  return result;
}

// As kilni_soft_stream_resolve, but takes a context with a sticky error.
static kiln_cu_result_t soft_stream_find_stream(
    kilni_soft_driver_t* driver, kiln_cu_stream_t handle,
    kilni_soft_stream_t** out_stream) {
  *out_stream = NULL;
  if (handle == NULL || handle == KILN_CU_STREAM_LEGACY ||
      handle == KILN_CU_STREAM_PER_THREAD) {
    kiln_cu_result_t result = kilni_soft_current_check(driver);
    if (result != KILN_CU_SUCCESS) return result;
    kilni_soft_context_t* context = kilni_soft_current(driver);
    if (handle == KILN_CU_STREAM_PER_THREAD) {
      return thread_stream(driver, context, out_stream);
    }
    *out_stream = &context->legacy;
    return KILN_CU_SUCCESS;
  }
  *out_stream = kilni_soft_handle_get(&driver->handles, KILNI_SOFT_KIND_STREAM,
                                      (uintptr_t)handle);
  return *out_stream != NULL ? KILN_CU_SUCCESS : KILN_CU_ERROR_INVALID_HANDLE;
}

kiln_cu_result_t kilni_soft_stream_resolve(kilni_soft_driver_t* driver,
                                           kiln_cu_stream_t handle,
                                           kilni_soft_stream_t** out_stream) {
  kiln_cu_result_t result = soft_stream_find_stream(driver, handle, out_stream);
  return result == KILN_CU_SUCCESS ? kilni_soft_sticky((*out_stream)->context)
                                   : result;
}

void kilni_soft_stream_dispose(kilni_soft_driver_t* driver,
                               kilni_soft_stream_t* stream) {
  kilni_soft_capture_leave(driver, stream);
  kilni_soft_stream_t** link = &stream->context->streams;
  while (*link != stream) link = &(*link)->next;
  *link = stream->next;
  kilni_soft_handle_remove(&driver->handles, stream->handle);
  kilni_base_free(driver->host.allocator, stream, sizeof(*stream));
}

static kiln_cu_result_t row_create_with_priority(kiln_cu_stream_t* stream,
                                                 unsigned int flags,
                                                 int priority) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (stream == NULL || (flags & ~(unsigned)KILN_CU_STREAM_NON_BLOCKING) != 0) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  if (priority > KILNI_SOFT_PRIORITY_LEAST) {
    priority = KILNI_SOFT_PRIORITY_LEAST;
  }
  if (priority < KILNI_SOFT_PRIORITY_GREATEST) {
    priority = KILNI_SOFT_PRIORITY_GREATEST;
  }
  kilni_soft_stream_t* made = NULL;
  result =
      make_stream(driver, kilni_soft_current(driver), flags, priority, &made);
  if (result == KILN_CU_SUCCESS) {
    made->owner = kilni_soft_acts_for();
    *stream = (kiln_cu_stream_t)(uintptr_t)made->handle;
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t stream_row_create(kiln_cu_stream_t* stream,
                                          unsigned int flags) {
  return row_create_with_priority(stream, flags, KILNI_SOFT_PRIORITY_LEAST);
}

static kiln_cu_result_t stream_row_destroy(kiln_cu_stream_t stream) {
  kilni_soft_driver_t* driver;
  void* object;
  kiln_cu_result_t result =
      kilni_soft_enter_object(KILNI_SOFT_NEEDS_START, KILNI_SOFT_KIND_STREAM,
                              stream, true, &driver, &object);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_stream_t* found = object;
  const kilni_soft_context_t* context = found->context;
  kilni_soft_capture_leave(driver, found);
  if (found->pending == 0) {
    kilni_soft_stream_dispose(driver, found);
  } else {
    // Its work goes on; the last task frees it.
    found->destroyed = true;
    kilni_soft_handle_remove(&driver->handles, found->handle);
    found->handle = 0;
  }
  return kilni_soft_leave(driver, kilni_soft_sticky(context));
}

static bool stream_is_legacy(const kilni_soft_stream_t* stream) {
  return stream == &stream->context->legacy;
}

static kiln_cu_result_t stream_row_synchronize(kiln_cu_stream_t stream) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* found;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, true, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  const kilni_soft_context_t* context = found->context;
  result = kilni_soft_capture_asked(driver, found, "cuStreamSynchronize");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  if (stream_is_legacy(found)) {
    // A place in its order comes after the blocking streams too.
    kilni_soft_task_t* mark;
    result = kilni_soft_queue_issue(driver, found, &kMark, NULL, &mark);
    if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
    kilni_soft_queue_wait(driver, mark);
    kilni_soft_task_release(driver, mark);
  } else {
    kilni_soft_queue_wait(driver, found->last);
  }
  kilni_soft_pools_settle(driver);
  return kilni_soft_leave(driver, kilni_soft_sticky(context));
}

static kiln_cu_result_t stream_row_query(kiln_cu_stream_t stream) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* found;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, false, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_asked(driver, found, "cuStreamQuery");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  bool ready = kilni_soft_queue_poll(driver, found->last);
  if (stream_is_legacy(found)) {
    for (kilni_soft_stream_t* other = found->context->streams; other != NULL;
         other = other->next) {
      if ((other->flags & KILN_CU_STREAM_NON_BLOCKING) != 0) continue;
      ready = kilni_soft_queue_poll(driver, other->last) && ready;
    }
  }
  return kilni_soft_leave(driver,
                          ready ? KILN_CU_SUCCESS : KILN_CU_ERROR_NOT_READY);
}

// What a captured stream waits for from outside is a node.
static kiln_cu_result_t wait_outside(kilni_soft_driver_t* driver,
                                     kilni_soft_stream_t* stream,
                                     const kilni_soft_event_t* event) {
  kilni_soft_captured_t* captured;
  kiln_cu_result_t result =
      kilni_soft_capture_enter(driver, stream, "cuStreamWaitEvent", &captured);
  if (result != KILN_CU_SUCCESS) return result;
  if (captured == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  kilni_soft_doing_t doing = {.event = event->handle};
  return kilni_soft_capture_add(driver, captured, "cuStreamWaitEvent",
                                KILN_CU_GRAPH_NODE_TYPE_WAIT_EVENT, &doing,
                                NULL);
}

static kiln_cu_result_t row_wait_event(kiln_cu_stream_t stream,
                                       kiln_cu_event_t event,
                                       unsigned int flags) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* found;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, true, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  const kilni_soft_event_t* what = kilni_soft_handle_get(
      &driver->handles, KILNI_SOFT_KIND_EVENT, (uintptr_t)event);
  bool done = what == NULL;
  if (what == NULL) {
    result = KILN_CU_ERROR_INVALID_HANDLE;
  } else if (flags > KILN_CU_EVENT_WAIT_EXTERNAL) {
    result = KILN_CU_ERROR_INVALID_VALUE;
    done = true;
  } else if (flags == KILN_CU_EVENT_WAIT_EXTERNAL) {
    result = wait_outside(driver, found, what);
    done = true;
  } else {
    result = kilni_soft_capture_wait(driver, found, what, &done);
  }
  if (result == KILN_CU_SUCCESS && !done && what->recorded != NULL &&
      !what->recorded->done) {
    result =
        kilni_soft_queue_issue(driver, found, &kMark, what->recorded, NULL);
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_get_context(kiln_cu_stream_t stream,
                                        kiln_cu_context_t* context) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* found;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, false, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  if (context == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  *context = (kiln_cu_context_t)(uintptr_t)found->context->handle;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t row_get_flags(kiln_cu_stream_t stream,
                                      unsigned int* flags) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* found;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, false, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  if (flags == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  *flags = found->flags;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t row_get_priority(kiln_cu_stream_t stream,
                                         int* priority) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* found;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, false, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  if (priority == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  *priority = found->priority;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t row_host_function(kiln_cu_stream_t stream,
                                          kiln_cu_host_fn_t fn, void* user) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* found;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, true, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  if (fn == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  kilni_soft_work_t work = {.kind = KILNI_SOFT_TASK_HOST,
                            .as.host = {fn, user}};
  kilni_soft_doing_t doing = {.host = {fn, user}};
  kilni_soft_captured_t* captured;
  result =
      kilni_soft_capture_enter(driver, found, "cuLaunchHostFunc", &captured);
  if (result == KILN_CU_SUCCESS && captured != NULL) {
    result = kilni_soft_capture_add(driver, captured, "cuLaunchHostFunc",
                                    KILN_CU_GRAPH_NODE_TYPE_HOST, &doing, NULL);
  } else if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_queue_issue(driver, found, &work, NULL, NULL);
  }
  return kilni_soft_leave(driver, result);
}

// How this thread lives with captures.
static kiln_cu_result_t row_capture_mode(kiln_cu_capture_mode_t* mode) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (mode == NULL || *mode > KILN_CU_STREAM_CAPTURE_MODE_RELAXED) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  *mode = kilni_soft_capture_exchange(*mode);
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

void kilni_soft_fill_stream(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuStreamCreate, stream_row_create);
  KILNI_CUDA_SET(table, cuStreamCreateWithPriority, row_create_with_priority);
  KILNI_CUDA_SET(table, cuStreamDestroy, stream_row_destroy);
  KILNI_CUDA_SET(table, cuStreamSynchronize, stream_row_synchronize);
  KILNI_CUDA_SET(table, cuStreamQuery, stream_row_query);
  KILNI_CUDA_SET(table, cuStreamWaitEvent, row_wait_event);
  KILNI_CUDA_SET(table, cuStreamGetCtx, row_get_context);
  KILNI_CUDA_SET(table, cuStreamGetFlags, row_get_flags);
  KILNI_CUDA_SET(table, cuStreamGetPriority, row_get_priority);
  KILNI_CUDA_SET(table, cuThreadExchangeStreamCaptureMode, row_capture_mode);
  KILNI_CUDA_SET(table, cuLaunchHostFunc, row_host_function);
}
