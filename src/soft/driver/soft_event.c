// SPDX-License-Identifier: Apache-2.0
//
// soft: rows about events. An event is a reference to the place in a stream's
// order where it was last recorded; its time is when that place was reached.
#include "base/alloc.h"
#include "soft/driver/soft_driver.h"
#include "soft/driver/soft_graph.h"
#include "table/cuda_table.h"

static const kilni_soft_work_t kMark = {.kind = KILNI_SOFT_TASK_MARK};
static const double kNsPerMs = 1e6;

static kilni_soft_event_t* find_event(const kilni_soft_driver_t* driver,
                                      kiln_cu_event_t event) {
  return kilni_soft_handle_get(&driver->handles, KILNI_SOFT_KIND_EVENT,
                               (uintptr_t)event);
}

// Enters a row that is about one event.
static kiln_cu_result_t enter_event(kiln_cu_event_t event,
                                    kilni_soft_driver_t** out_driver,
                                    kilni_soft_event_t** out_event) {
  void* found;
  kiln_cu_result_t result =
      kilni_soft_enter_object(KILNI_SOFT_NEEDS_START, KILNI_SOFT_KIND_EVENT,
                              event, true, out_driver, &found);
  *out_event = found;
  return result;
}

void kilni_soft_event_dispose(kilni_soft_driver_t* driver,
                              kilni_soft_event_t* event) {
  kilni_soft_event_t** link = &event->context->events;
  while (*link != event) link = &(*link)->next;
  *link = event->next;
  kilni_soft_capture_forget(driver, event);
  kilni_soft_handle_remove(&driver->handles, event->handle);
  kilni_soft_task_release(driver, event->recorded);
  kilni_base_free(driver->host.allocator, event, sizeof(*event));
}

static kiln_cu_result_t soft_event_make_event(kilni_soft_driver_t* driver,
                                              unsigned int flags,
                                              kiln_cu_event_t* out_event) {
  kilni_soft_context_t* context = kilni_soft_current(driver);
  kilni_soft_event_t* event;
  kiln_status_t status =
      kilni_base_alloc(driver->host.allocator, sizeof(*event), (void**)&event);
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  status = kilni_soft_handle_add(&driver->handles, KILNI_SOFT_KIND_EVENT, event,
                                 &event->handle);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(driver->host.allocator, event, sizeof(*event));
    return kilni_soft_result(status);
  }
  event->flags = flags;
  event->context = context;
  event->next = context->events;
  context->events = event;
  *out_event = (kiln_cu_event_t)(uintptr_t)event->handle;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t event_row_create(kiln_cu_event_t* event,
                                         unsigned int flags) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  const unsigned int known = KILN_CU_EVENT_BLOCKING_SYNC |
                             KILN_CU_EVENT_DISABLE_TIMING |
                             KILN_CU_EVENT_INTERPROCESS;
  bool shared = (flags & KILN_CU_EVENT_INTERPROCESS) != 0;
  bool timed = (flags & KILN_CU_EVENT_DISABLE_TIMING) == 0;
  if (event == NULL || (flags & ~known) != 0 || (shared && timed)) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  } else if (shared) {
    result = KILN_CU_ERROR_NOT_SUPPORTED;
  } else {
    result = soft_event_make_event(driver, flags, event);
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t event_row_destroy(kiln_cu_event_t event) {
  kilni_soft_driver_t* driver;
  kilni_soft_event_t* found;
  kiln_cu_result_t result = enter_event(event, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  const kilni_soft_context_t* context = found->context;
  kilni_soft_event_dispose(driver, found);
  return kilni_soft_leave(driver, kilni_soft_sticky(context));
}

static kiln_cu_result_t event_row_record(kiln_cu_event_t event,
                                         kiln_cu_stream_t stream) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* where;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, true, &driver, &where);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_event_t* found = find_event(driver, event);
  if (found == NULL || found->context != where->context) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_HANDLE);
  }
  kilni_soft_task_t* task;
  kilni_soft_captured_t* captured;
  result = kilni_soft_capture_enter(driver, where, "cuEventRecord", &captured);
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  if (captured != NULL) {
    return kilni_soft_leave(driver,
                            kilni_soft_capture_record(driver, captured, found));
  }
  result = kilni_soft_queue_issue(driver, where, &kMark, NULL, &task);
  if (result == KILN_CU_SUCCESS) {
    kilni_soft_capture_forget(driver, found);
    kilni_soft_task_release(driver, found->recorded);
    found->recorded = task;
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t event_row_query(kiln_cu_event_t event) {
  kilni_soft_driver_t* driver;
  kilni_soft_event_t* found;
  kiln_cu_result_t result = enter_event(event, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_event(driver, found, "cuEventQuery");
  if (result == KILN_CU_SUCCESS) result = kilni_soft_sticky(found->context);
  if (result == KILN_CU_SUCCESS &&
      !kilni_soft_queue_poll(driver, found->recorded)) {
    result = KILN_CU_ERROR_NOT_READY;
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t event_row_synchronize(kiln_cu_event_t event) {
  kilni_soft_driver_t* driver;
  kilni_soft_event_t* found;
  kiln_cu_result_t result = enter_event(event, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  const kilni_soft_context_t* context = found->context;
  result = kilni_soft_capture_event(driver, found, "cuEventSynchronize");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  kilni_soft_queue_wait(driver, found->recorded);
  kilni_soft_pools_settle(driver);
  return kilni_soft_leave(driver, kilni_soft_sticky(context));
}

static kiln_cu_result_t row_elapsed(float* milliseconds, kiln_cu_event_t start,
                                    kiln_cu_event_t end) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  const kilni_soft_event_t* from = find_event(driver, start);
  const kilni_soft_event_t* to = find_event(driver, end);
  if (milliseconds == NULL) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  } else if (from == NULL || to == NULL || from->recorded == NULL ||
             to->recorded == NULL || from->context != to->context ||
             ((from->flags | to->flags) & KILN_CU_EVENT_DISABLE_TIMING) != 0) {
    result = KILN_CU_ERROR_INVALID_HANDLE;
  } else if (kilni_soft_sticky(from->context) != KILN_CU_SUCCESS) {
    result = kilni_soft_sticky(from->context);
  } else {
    bool first = kilni_soft_queue_poll(driver, from->recorded);
    bool second = kilni_soft_queue_poll(driver, to->recorded);
    if (!first || !second) {
      result = KILN_CU_ERROR_NOT_READY;
    } else {
      double ns =
          (double)(int64_t)(to->recorded->done_ns - from->recorded->done_ns);
      *milliseconds = (float)(ns / kNsPerMs);
    }
  }
  return kilni_soft_leave(driver, result);
}

void kilni_soft_fill_event(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuEventCreate, event_row_create);
  KILNI_CUDA_SET(table, cuEventDestroy, event_row_destroy);
  KILNI_CUDA_SET(table, cuEventRecord, event_row_record);
  KILNI_CUDA_SET(table, cuEventQuery, event_row_query);
  KILNI_CUDA_SET(table, cuEventSynchronize, event_row_synchronize);
  KILNI_CUDA_SET(table, cuEventElapsedTime, row_elapsed);
}
