// SPDX-License-Identifier: Apache-2.0
//
// dispatch: bytes of resident buffers, to the host and from it.
#include "base/status_make.h"
#include "device/device_scope.h"
#include "dispatch/dispatch_inside.h"

static kiln_status_t resident_copy_begin(kiln_dispatcher_t* dispatcher,
                                         kiln_stream_t* stream,
                                         kiln_stream_t** out_stream) {
  KILNI_CHECK_ARGUMENT(dispatcher != NULL, "dispatcher");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(dispatcher->device->host));
  if (kilni_device_is_lost(dispatcher->device)) {
    return kilni_device_lost_status(dispatcher->device);
  }
  return kilni_dispatch_stream(dispatcher, stream, out_stream);
}

static kiln_status_t resident_copy_check_range(kiln_dispatcher_t* dispatcher,
                                               kiln_resident_t resident,
                                               uint64_t offset,
                                               uint64_t bytes) {
  kilni_dispatch_resident_view_t view = {0, 0};
  KILNI_RETURN_IF_ERROR(
      kilni_dispatch_resident_look(dispatcher, resident, &view));
  if (offset <= view.bytes && bytes <= view.bytes - offset) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(OUT_OF_RANGE,
                 "%llu bytes at %llu of a resident buffer of %llu",
                 (unsigned long long)bytes, (unsigned long long)offset,
                 (unsigned long long)view.bytes),
      "copy inside the buffer");
}

static kiln_status_t check_data(const void* data, uint64_t bytes) {
  KILNI_CHECK_ARGUMENT(data != NULL || bytes == 0, "data");
  return kiln_ok();
}

// ---- Up ----

static kiln_status_t resident_copy_upload(kiln_dispatcher_t* dispatcher,
                                          kiln_stream_t* stream,
                                          const kiln_resident_upload_t* one) {
  kiln_buffer_t* buffer = NULL;
  if (one->bytes == 0) return kiln_ok();
  KILNI_RETURN_IF_ERROR(
      kilni_dispatch_resident_get(dispatcher, one->resident, &buffer));
  kiln_status_t status = kilni_dispatch_staging_upload(
      dispatcher->staging, stream, buffer, one->offset, one->bytes, one->data);
  return kilni_dispatch_resident_put(dispatcher, one->resident, buffer, stream,
                                     status);
}

kiln_status_t kiln_resident_upload(kiln_dispatcher_t* dispatcher,
                                   kiln_stream_t* stream,
                                   kiln_resident_t resident, uint64_t offset,
                                   uint64_t bytes, const void* data) {
  kiln_resident_upload_t one = {resident, offset, bytes, data};
  KILNI_RETURN_IF_ERROR(resident_copy_begin(dispatcher, stream, &stream));
  KILNI_RETURN_IF_ERROR(
      resident_copy_check_range(dispatcher, resident, offset, bytes));
  KILNI_RETURN_IF_ERROR(check_data(data, bytes));
  return resident_copy_upload(dispatcher, stream, &one);
}

// Two that are one: contiguous on both sides.
static bool joins_up(const kiln_resident_upload_t* a,
                     const kiln_resident_upload_t* b) {
  return a->data != NULL && a->resident.id == b->resident.id &&
         a->offset + a->bytes == b->offset &&
         (const char*)a->data + a->bytes == (const char*)b->data;
}

kiln_status_t kiln_resident_upload_many(kiln_dispatcher_t* dispatcher,
                                        kiln_stream_t* stream,
                                        const kiln_resident_upload_t* uploads,
                                        uint32_t count) {
  KILNI_RETURN_IF_ERROR(resident_copy_begin(dispatcher, stream, &stream));
  KILNI_CHECK_ARGUMENT(uploads != NULL || count == 0, "uploads");
  for (uint32_t i = 0; i < count; i++) {
    const kiln_resident_upload_t* one = &uploads[i];
    kiln_status_t status = resident_copy_check_range(dispatcher, one->resident,
                                                     one->offset, one->bytes);
    if (kiln_status_is_ok(status)) status = check_data(one->data, one->bytes);
    if (!kiln_status_is_ok(status)) {
      return KILNI_ANNOTATE(status, "upload number %u", (unsigned)i);
    }
  }
  for (uint32_t i = 0; i < count;) {
    kiln_resident_upload_t one = uploads[i];
    while (++i < count && joins_up(&one, &uploads[i])) {
      one.bytes += uploads[i].bytes;
    }
    KILNI_RETURN_IF_ERROR(resident_copy_upload(dispatcher, stream, &one));
  }
  return kiln_ok();
}

// ---- Down ----

static kiln_status_t download(kiln_dispatcher_t* dispatcher,
                              kiln_stream_t* stream, bool waits,
                              const kiln_resident_download_t* one) {
  kiln_buffer_t* buffer = NULL;
  if (one->bytes == 0) return kiln_ok();
  KILNI_RETURN_IF_ERROR(
      kilni_dispatch_resident_get(dispatcher, one->resident, &buffer));
  kiln_status_t status = kilni_dispatch_staging_download(
      dispatcher->staging, stream, buffer, one->offset, one->bytes,
      one->out_data, waits);
  return kilni_dispatch_resident_put(dispatcher, one->resident, buffer, stream,
                                     status);
}

static bool joins_down(const kiln_resident_download_t* a,
                       const kiln_resident_download_t* b) {
  return a->out_data != NULL && a->resident.id == b->resident.id &&
         a->offset + a->bytes == b->offset &&
         (char*)a->out_data + a->bytes == (char*)b->out_data;
}

static kiln_status_t download_all(kiln_dispatcher_t* dispatcher,
                                  kiln_stream_t* stream, bool waits,
                                  const kiln_resident_download_t* downloads,
                                  uint32_t count) {
  for (uint32_t i = 0; i < count;) {
    kiln_resident_download_t one = downloads[i];
    while (++i < count && joins_down(&one, &downloads[i])) {
      one.bytes += downloads[i].bytes;
    }
    KILNI_RETURN_IF_ERROR(download(dispatcher, stream, waits, &one));
  }
  return kiln_ok();
}

kiln_status_t kiln_resident_download(kiln_dispatcher_t* dispatcher,
                                     kiln_stream_t* stream,
                                     kiln_resident_t resident, uint64_t offset,
                                     uint64_t bytes, void* out_data) {
  kiln_resident_download_t one = {resident, offset, bytes, out_data};
  return kiln_resident_download_many(dispatcher, stream, &one, 1, NULL);
}

static kiln_status_t check_downloads(kiln_dispatcher_t* dispatcher,
                                     const kiln_resident_download_t* downloads,
                                     uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const kiln_resident_download_t* one = &downloads[i];
    kiln_status_t status = resident_copy_check_range(dispatcher, one->resident,
                                                     one->offset, one->bytes);
    if (kiln_status_is_ok(status)) {
      status = check_data(one->out_data, one->bytes);
    }
    if (!kiln_status_is_ok(status)) {
      return count == 1
                 ? status
                 : KILNI_ANNOTATE(status, "download number %u", (unsigned)i);
    }
  }
  return kiln_ok();
}

kiln_status_t kiln_resident_download_many(
    kiln_dispatcher_t* dispatcher, kiln_stream_t* stream,
    const kiln_resident_download_t* downloads, uint32_t count,
    kiln_pending_t** out_pending) {
  if (out_pending != NULL) *out_pending = NULL;
  KILNI_RETURN_IF_ERROR(resident_copy_begin(dispatcher, stream, &stream));
  KILNI_CHECK_ARGUMENT(downloads != NULL || count == 0, "downloads");
  KILNI_RETURN_IF_ERROR(check_downloads(dispatcher, downloads, count));
  kiln_pending_t* pending = NULL;
  if (out_pending != NULL) {
    KILNI_RETURN_IF_ERROR(
        kilni_dispatch_pending_create(dispatcher, "download", false, &pending));
  }
  kiln_status_t status =
      download_all(dispatcher, stream, pending == NULL, downloads, count);
  if (pending == NULL) {
    return kilni_base_status_join(status, kiln_stream_synchronize(stream));
  }
  status = kilni_base_status_join(
      status, kilni_dispatch_pending_finish(pending, stream));
  if (!kiln_status_is_ok(status)) {
    kiln_pending_release(pending);
    // Some of the caller's memory may be written later: wait for that here.
    return kilni_base_status_join(status, kiln_stream_synchronize(stream));
  }
  *out_pending = pending;
  return kiln_ok();
}

// ---- Fills ----

kiln_status_t kiln_resident_fill(kiln_dispatcher_t* dispatcher,
                                 kiln_stream_t* stream,
                                 kiln_resident_t resident,
                                 kiln_resident_range_t range, uint32_t value,
                                 uint32_t value_bytes) {
  KILNI_RETURN_IF_ERROR(resident_copy_begin(dispatcher, stream, &stream));
  kilni_dispatch_resident_view_t view = {0, 0};
  KILNI_RETURN_IF_ERROR(
      kilni_dispatch_resident_look(dispatcher, resident, &view));
  KILNI_RETURN_IF_ERROR(resident_copy_check_range(dispatcher, resident,
                                                  range.offset, range.bytes));
  if (range.bytes == 0) range.bytes = view.bytes - range.offset;
  kiln_buffer_t* buffer = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_dispatch_resident_get(dispatcher, resident, &buffer));
  if (buffer == NULL) return kiln_ok();
  kiln_status_t status = kiln_buffer_fill_async(
      buffer, stream, range.offset, range.bytes, value, value_bytes);
  return kilni_dispatch_resident_put(dispatcher, resident, buffer, stream,
                                     status);
}

// ---- Pinning ----

// Drivers report with a result that memory is already locked, or was not
// locked.
enum { ALREADY_REGISTERED = 712, NOT_REGISTERED = 713 };

static kiln_status_t resident_copy_explain(kiln_status_t status,
                                           const void* data) {
  kiln_status_native_t native;
  if (!kiln_status_native(status, &native)) return status;
  if (native.number != ALREADY_REGISTERED && native.number != NOT_REGISTERED) {
    return status;
  }
  kiln_status_t said =
      native.number == ALREADY_REGISTERED
          ? kilni_base_status_with_fix(
                KILNI_FAIL(ALREADY_EXISTS, "the memory at %p is pinned", data),
                "pin each range once")
          : kilni_base_status_with_fix(
                KILNI_FAIL(NOT_FOUND, "the memory at %p is not pinned", data),
                "unpin the address that was pinned");
  said = kilni_base_status_with_native(said, native.domain, native.number,
                                       native.name);
  kiln_status_free(status);
  return said;
}

kiln_status_t kiln_resident_pin(kiln_dispatcher_t* dispatcher, void* data,
                                uint64_t bytes) {
  KILNI_CHECK_ARGUMENT(dispatcher != NULL, "dispatcher");
  KILNI_CHECK_ARGUMENT(data != NULL, "data");
  KILNI_CHECK_ARGUMENT(bytes > 0 && bytes <= SIZE_MAX, "bytes");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(dispatcher->device->host));
  kiln_device_t* device = dispatcher->device;
  kilni_device_scope_t scope;
  KILNI_RETURN_IF_ERROR(
      kilni_device_scope_begin(&scope, device, KILNI_WAY_cuMemHostRegister));
  kiln_status_t status = KILNI_DEVICE_CHECK(
      device, device->table->cuMemHostRegister(data, (size_t)bytes, 0),
      "cuMemHostRegister");
  bool made = kiln_status_is_ok(status);
  status = kilni_device_scope_leave_made(&scope, status, "cuMemHostRegister");
  if (made && !kiln_status_is_ok(status)) {
    KILNI_DEVICE_END(device, cuMemHostUnregister, data);
  }
  return resident_copy_explain(status, data);
}

kiln_status_t kiln_resident_unpin(kiln_dispatcher_t* dispatcher, void* data) {
  KILNI_CHECK_ARGUMENT(dispatcher != NULL, "dispatcher");
  KILNI_CHECK_ARGUMENT(data != NULL, "data");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(dispatcher->device->host));
  kiln_device_t* device = dispatcher->device;
  kilni_device_scope_t scope;
  if (!kilni_device_scope_begin_end(&scope, device,
                                    KILNI_WAY_cuMemHostUnregister)) {
    return kilni_device_lost_status(device);
  }
  kiln_cu_result_t result = device->table->cuMemHostUnregister(data);
  kilni_device_scope_leave_end(&scope, KILN_CU_SUCCESS, "cuMemHostUnregister");
  return resident_copy_explain(
      KILNI_DEVICE_CHECK(device, result, "cuMemHostUnregister"), data);
}
