// SPDX-License-Identifier: Apache-2.0
//
// device: events.
#include "base/alloc.h"
#include "base/options.h"
#include "device/device_inside.h"

kiln_status_t kiln_event_create(kiln_device_t* device,
                                const kiln_event_options_t* options,
                                kiln_event_t** out_event) {
  KILNI_CHECK_ARGUMENT(out_event != NULL, "out_event");
  *out_event = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  kiln_event_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_options_read(options, "kiln_event_options_t",
                                           sizeof(given), &given));
  KILNI_CHECK_ARGUMENT(given.timing <= KILN_SWITCH_ON, "options.timing");
  KILNI_RETURN_IF_ERROR(kilni_host_check_fork(device->host));
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_alloc(device->host->allocator, sizeof(kiln_event_t), &block));
  kiln_event_t* event = block;
  event->device = device;
  kiln_device_retain(device);
  atomic_init(&event->references, 1);
  atomic_init(&event->recorded, false);
  event->timing = given.timing == KILN_SWITCH_ON;
  kiln_status_t status;
  KILNI_DEVICE_CREATE(
      status, device, &event->handle, cuEventCreate,
      event->timing ? KILN_CU_EVENT_DEFAULT : KILN_CU_EVENT_DISABLE_TIMING);
  if (!kiln_status_is_ok(status)) {
    kiln_event_release(event);
    return status;
  }
  *out_event = event;
  return NULL;
}

void kiln_event_retain(kiln_event_t* event) {
  if (event == NULL) return;
  atomic_fetch_add_explicit(&event->references, 1, memory_order_relaxed);
}

void kiln_event_release(kiln_event_t* event) {
  if (event == NULL || kilni_device_is_forked(event->device)) return;
  if (atomic_fetch_sub_explicit(&event->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kiln_device_t* device = event->device;
  if (event->handle != NULL) {
    KILNI_DEVICE_END(device, cuEventDestroy, event->handle);
  }
  kilni_free(device->host->allocator, event, sizeof(*event));
  kiln_device_release(device);
}

kiln_device_t* kiln_event_device(const kiln_event_t* event) {
  return event->device;
}

kiln_status_t kiln_event_record(kiln_event_t* event, kiln_stream_t* stream) {
  KILNI_CHECK_ARGUMENT(event != NULL, "event");
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_same(event->device, stream->device, "the stream"));
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuEventRecord, event->handle,
                    stream->handle);
  if (kiln_status_is_ok(status)) atomic_store(&event->recorded, true);
  return status;
}

kiln_status_t kiln_event_query(kiln_event_t* event, bool* out_ready) {
  KILNI_CHECK_ARGUMENT(out_ready != NULL, "out_ready");
  *out_ready = false;
  KILNI_CHECK_ARGUMENT(event != NULL, "event");
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, event->device, cuEventQuery, event->handle);
  if (kiln_status_code(status) == KILN_STATUS_NOT_READY) return NULL;
  *out_ready = kiln_status_is_ok(status);
  return status;
}

kiln_status_t kiln_event_synchronize(kiln_event_t* event) {
  KILNI_CHECK_ARGUMENT(event != NULL, "event");
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, event->device, cuEventSynchronize, event->handle);
  return status;
}

static kiln_status_t check_timed(const kiln_event_t* event, const char* name) {
  if (!event->timing) {
    return kilni_status_with_fix(
        KILNI_FAIL(INVALID_STATE, "the event `%s` was made without timing",
                   name),
        "set `timing` in kiln_event_options_t to KILN_SWITCH_ON");
  }
  if (!atomic_load(&event->recorded)) {
    return kilni_status_with_fix(
        KILNI_FAIL(INVALID_STATE, "the event `%s` was never recorded", name),
        "record both events on a stream first");
  }
  return NULL;
}

kiln_status_t kiln_event_elapsed(kiln_event_t* start, kiln_event_t* end,
                                 uint64_t* out_elapsed_ns) {
  KILNI_CHECK_ARGUMENT(out_elapsed_ns != NULL, "out_elapsed_ns");
  *out_elapsed_ns = 0;
  KILNI_CHECK_ARGUMENT(start != NULL, "start");
  KILNI_CHECK_ARGUMENT(end != NULL, "end");
  KILNI_RETURN_IF_ERROR(check_timed(start, "start"));
  KILNI_RETURN_IF_ERROR(check_timed(end, "end"));
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_same(start->device, end->device, "`end`"));
  float milliseconds = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, start->device, cuEventElapsedTime, &milliseconds,
                    start->handle, end->handle);
  if (kiln_status_is_ok(status) && milliseconds > 0) {
    *out_elapsed_ns = (uint64_t)((double)milliseconds * 1e6);
  }
  return status;
}
