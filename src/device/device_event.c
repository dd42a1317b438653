// SPDX-License-Identifier: Apache-2.0
//
// device: events: those it makes, other people's, and those of other processes.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "device/device_scope.h"

_Static_assert(sizeof(kiln_event_export_t) ==
                   sizeof(kiln_cu_ipc_event_handle_t),
               "one is copied to the other");

static kilni_base_registry_key_t event_key_of(kiln_cu_event_t handle) {
  kilni_base_registry_key_t key = {(uint64_t)(uintptr_t)handle,
                                   KILNI_REGISTERED_EVENT, 0};
  return key;
}

// An object without a handle, of which nothing is known.
static kiln_status_t event_make(kiln_device_t* device,
                                kiln_event_t** out_event) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(device->host->allocator, sizeof(kiln_event_t), &block));
  kiln_event_t* event = block;
  event->device = device;
  kiln_device_retain(device);
  atomic_init(&event->references, 1);
  atomic_init(&event->recorded, false);
  *out_event = event;
  return kiln_ok();
}

// A handle that the driver has made for us is given out, or ended again.
static kiln_status_t event_finish(kiln_event_t* event, kiln_status_t status,
                                  kiln_event_t** out_event) {
  if (!kiln_status_is_ok(status)) {
    kiln_event_release(event);
    return status;
  }
  kilni_base_registry_put(&event->device->registry, &event->entry,
                          event_key_of(event->handle), event,
                          &event->references);
  *out_event = event;
  return kiln_ok();
}

// ---- Made here ----

static kiln_status_t event_read_options(const kiln_device_t* device,
                                        const kiln_event_options_t* options,
                                        kiln_event_options_t* given) {
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(options, "kiln_event_options_t",
                                                sizeof(*given), given));
  KILNI_CHECK_ARGUMENT(given->timing <= KILN_SWITCH_ON, "options.timing");
  KILNI_CHECK_ARGUMENT(given->blocking <= KILN_SWITCH_ON, "options.blocking");
  KILNI_CHECK_ARGUMENT(given->interprocess <= KILN_SWITCH_ON,
                       "options.interprocess");
  if (given->interprocess != KILN_SWITCH_ON) return kiln_ok();
  if (given->timing == KILN_SWITCH_ON) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(
            INVALID_ARGUMENT,
            "an event that other processes may open cannot record times"),
        "set `timing` in kiln_event_options_t to KILN_SWITCH_OFF, and measure "
        "time with another event");
  }
  return kilni_table_cuda_need(device->table,
                               KILNI_CUDA_ROW_cuIpcGetEventHandle);
}

// DEFAULT, of an option, is off.
static uint32_t settled(uint32_t option) {
  return option == KILN_SWITCH_ON ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
}

static unsigned int flags_of(const kiln_event_t* event) {
  unsigned int flags = 0;
  if (event->timing == KILN_SWITCH_OFF) flags |= KILN_CU_EVENT_DISABLE_TIMING;
  if (event->blocking == KILN_SWITCH_ON) flags |= KILN_CU_EVENT_BLOCKING_SYNC;
  if (event->interprocess == KILN_SWITCH_ON) {
    flags |= KILN_CU_EVENT_INTERPROCESS;
  }
  return flags;
}

kiln_status_t kiln_event_create(kiln_device_t* device,
                                const kiln_event_options_t* options,
                                kiln_event_t** out_event) {
  KILNI_CHECK_ARGUMENT(out_event != NULL, "out_event");
  *out_event = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  kiln_event_options_t given;
  KILNI_RETURN_IF_ERROR(event_read_options(device, options, &given));
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  kiln_event_t* event = NULL;
  KILNI_RETURN_IF_ERROR(event_make(device, &event));
  event->timing = settled(given.timing);
  event->blocking = settled(given.blocking);
  event->interprocess = settled(given.interprocess);
  kiln_status_t status;
  KILNI_DEVICE_CREATE(status, device, &event->handle, cuEventCreate,
                      flags_of(event));
  return event_finish(event, status, out_event);
}

// ---- Other people's ----

kiln_status_t kiln_event_adopt(kiln_device_t* device, void* handle,
                               const kiln_owner_t* owner,
                               kiln_event_t** out_event) {
  KILNI_CHECK_ARGUMENT(out_event != NULL, "out_event");
  *out_event = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(handle != NULL, "handle");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  bool owned = owner != NULL && owner->release != NULL;
  kilni_base_registry_t* registry = &device->registry;
  kiln_event_t* known =
      kilni_base_registry_find(registry, event_key_of(handle));
  if (known != NULL && (!owned || !known->foreign)) {
    *out_event = known;
    if (owned) kilni_device_owner_release(*owner);
    return kiln_ok();
  }
  // Other code keeps that object's handle alive, for an unknown time.
  kiln_event_release(known);
  kiln_event_t* event = NULL;
  KILNI_RETURN_IF_ERROR(event_make(device, &event));
  event->foreign = true;
  event->handle = handle;
  *out_event = event;
  if (owned) {
    event->owner = *owner;
    return kiln_ok();
  }
  known = kilni_base_registry_add(registry, &event->entry, event_key_of(handle),
                                  event, &event->references);
  if (known == NULL) return kiln_ok();
  kiln_event_release(event);
  *out_event = known;
  return kiln_ok();
}

// ---- Other processes' ----

kiln_status_t kiln_event_export(kiln_event_t* event,
                                kiln_event_export_t* out_export) {
  KILNI_CHECK_ARGUMENT(out_export != NULL, "out_export");
  memset(out_export, 0, sizeof(*out_export));
  KILNI_CHECK_ARGUMENT(event != NULL, "event");
  if (event->interprocess == KILN_SWITCH_OFF) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE,
                   "the event was not made for other processes to open"),
        "set `interprocess` in kiln_event_options_t to KILN_SWITCH_ON");
  }
  KILNI_RETURN_IF_ERROR(kilni_table_cuda_need(
      event->device->table, KILNI_CUDA_ROW_cuIpcGetEventHandle));
  kiln_cu_ipc_event_handle_t handle = {{0}};
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, event->device, cuIpcGetEventHandle, &handle,
                    event->handle);
  if (kiln_status_is_ok(status)) {
    memcpy(out_export, &handle, sizeof(*out_export));
  }
  return status;
}

kiln_status_t kiln_event_import(kiln_device_t* device,
                                const kiln_event_export_t* exported,
                                kiln_event_t** out_event) {
  KILNI_CHECK_ARGUMENT(out_event != NULL, "out_event");
  *out_event = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(exported != NULL, "exported");
  KILNI_RETURN_IF_ERROR(kilni_table_cuda_need(
      device->table, KILNI_CUDA_ROW_cuIpcOpenEventHandle));
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  kiln_event_t* event = NULL;
  KILNI_RETURN_IF_ERROR(event_make(device, &event));
  event->timing = KILN_SWITCH_OFF;
  event->interprocess = KILN_SWITCH_ON;
  kiln_cu_ipc_event_handle_t handle;
  memcpy(&handle, exported, sizeof(handle));
  kiln_status_t status;
  KILNI_DEVICE_CREATE(status, device, &event->handle, cuIpcOpenEventHandle,
                      handle);
  return event_finish(event, status, out_event);
}

// ---- Life ----

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
  kilni_base_registry_remove(&device->registry, &event->entry);
  if (!event->foreign && event->handle != NULL) {
    KILNI_DEVICE_END(device, cuEventDestroy, event->handle);
  }
  kiln_owner_t owner = event->owner;
  kilni_base_free(device->host->allocator, event, sizeof(*event));
  kilni_device_owner_release(owner);
  kiln_device_release(device);
}

void* kiln_event_handle(const kiln_event_t* event) {
  return event->handle;
}

uint32_t kiln_event_timing(const kiln_event_t* event) {
  return event->timing;
}

uint32_t kiln_event_blocking(const kiln_event_t* event) {
  return event->blocking;
}

uint32_t kiln_event_interprocess(const kiln_event_t* event) {
  return event->interprocess;
}

kiln_device_t* kiln_event_device(const kiln_event_t* event) {
  return event->device;
}

// ---- Use ----

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
  if (kiln_status_code(status) == KILN_STATUS_NOT_READY) return kiln_ok();
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
  if (event->timing == KILN_SWITCH_DEFAULT) return kiln_ok();
  if (event->timing == KILN_SWITCH_OFF) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE, "the event `%s` was made without timing",
                   name),
        "set `timing` in kiln_event_options_t to KILN_SWITCH_ON");
  }
  if (!atomic_load(&event->recorded)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE, "the event `%s` was never recorded", name),
        "record both events on a stream first");
  }
  return kiln_ok();
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
