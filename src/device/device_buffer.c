// SPDX-License-Identifier: Apache-2.0
//
// device: copies and fills on buffers.
#include "base/status_make.h"
#include "device/device_scope.h"

// ---- Checks ----

static kiln_status_t buffer_check_range(const kiln_buffer_t* buffer,
                                        uint64_t offset, uint64_t bytes,
                                        const char* what) {
  if (offset <= buffer->size && bytes <= buffer->size - offset) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(OUT_OF_RANGE,
                 "%s of %llu bytes at offset %llu in a buffer of %llu bytes",
                 what, (unsigned long long)bytes, (unsigned long long)offset,
                 (unsigned long long)buffer->size),
      "offset and size together must not exceed the buffer's size");
}

// For every operation: the range, and the stream's device where there is one.
kiln_status_t kilni_device_buffer_check(const kiln_buffer_t* buffer,
                                        const kiln_stream_t* stream,
                                        uint64_t offset, uint64_t bytes,
                                        const char* what) {
  if (stream != NULL) {
    KILNI_RETURN_IF_ERROR(kilni_device_check_memory(
        buffer->device, stream->device, "the stream"));
  }
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(buffer->device->host));
  return buffer_check_range(buffer, offset, bytes, what);
}

// What the driver calls synchronous is so only towards the default stream: a
// fill, a copy on the device and the last part of a copy from pageable memory
// may still run when it returns, and our streams do not wait for them.
static kiln_status_t buffer_settle(kiln_device_t* device,
                                   kiln_status_t status) {
  if (!kiln_status_is_ok(status)) return status;
  kilni_device_scope_t scope;
  KILNI_RETURN_IF_ERROR(kilni_device_scope_enter(
      &scope, device, KILNI_CUDA_ROW_cuCtxSynchronize));
  return kilni_device_scope_leave(
      &scope,
      KILNI_DEVICE_CHECK(device, device->table->cuStreamSynchronize(NULL),
                         "cuStreamSynchronize"));
}

// ---- Host to device and back ----

kiln_status_t kiln_buffer_write(kiln_buffer_t* buffer, uint64_t offset,
                                size_t bytes, const void* data) {
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_CHECK_ARGUMENT(data != NULL || bytes == 0, "data");
  KILNI_RETURN_IF_ERROR(
      kilni_device_buffer_check(buffer, NULL, offset, bytes, "a write"));
  if (bytes == 0) return kiln_ok();
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, buffer->device, cuMemcpyHtoD,
                    buffer->address + offset, data, bytes);
  return buffer_settle(buffer->device, status);
}

kiln_status_t kiln_buffer_read(kiln_buffer_t* buffer, uint64_t offset,
                               size_t bytes, void* out_data) {
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_CHECK_ARGUMENT(out_data != NULL || bytes == 0, "out_data");
  KILNI_RETURN_IF_ERROR(
      kilni_device_buffer_check(buffer, NULL, offset, bytes, "a read"));
  if (bytes == 0) return kiln_ok();
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, buffer->device, cuMemcpyDtoH, out_data,
                    buffer->address + offset, bytes);
  return status;
}

kiln_status_t kiln_buffer_write_async(kiln_buffer_t* buffer,
                                      kiln_stream_t* stream, uint64_t offset,
                                      size_t bytes, const void* data) {
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_CHECK_ARGUMENT(data != NULL || bytes == 0, "data");
  KILNI_RETURN_IF_ERROR(
      kilni_device_buffer_check(buffer, stream, offset, bytes, "a write"));
  if (bytes == 0) return kiln_ok();
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuMemcpyHtoDAsync, buffer->address + offset,
                    data, bytes, stream->handle);
  return status;
}

kiln_status_t kiln_buffer_read_async(kiln_buffer_t* buffer,
                                     kiln_stream_t* stream, uint64_t offset,
                                     size_t bytes, void* out_data) {
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_CHECK_ARGUMENT(out_data != NULL || bytes == 0, "out_data");
  KILNI_RETURN_IF_ERROR(
      kilni_device_buffer_check(buffer, stream, offset, bytes, "a read"));
  if (bytes == 0) return kiln_ok();
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuMemcpyDtoHAsync, out_data,
                    buffer->address + offset, bytes, stream->handle);
  return status;
}

// ---- Fills ----

static kiln_status_t buffer_check_fill(const kiln_buffer_t* buffer,
                                       const kiln_stream_t* stream,
                                       uint64_t offset, uint64_t bytes,
                                       uint32_t value_bytes) {
  if (value_bytes != 1 && value_bytes != 2 && value_bytes != 4) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "a fill with values of %u bytes",
                   (unsigned)value_bytes),
        "use values of 1, 2 or 4 bytes");
  }
  if (offset % value_bytes != 0 || bytes % value_bytes != 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "a fill of %llu bytes at offset %llu with values of %u",
                   (unsigned long long)bytes, (unsigned long long)offset,
                   (unsigned)value_bytes),
        "offset and size must be multiples of the value's size");
  }
  return kilni_device_buffer_check(buffer, stream, offset, bytes, "a fill");
}

kiln_status_t kiln_buffer_fill(kiln_buffer_t* buffer, uint64_t offset,
                               uint64_t bytes, uint32_t value,
                               uint32_t value_bytes) {
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_RETURN_IF_ERROR(
      buffer_check_fill(buffer, NULL, offset, bytes, value_bytes));
  if (bytes == 0) return kiln_ok();
  kiln_status_t status;
  kiln_cu_deviceptr_t to = buffer->address + offset;
  if (value_bytes == 1) {
    KILNI_DEVICE_CALL(status, buffer->device, cuMemsetD8, to,
                      (unsigned char)value, bytes);
  } else if (value_bytes == 2) {
    KILNI_DEVICE_CALL(status, buffer->device, cuMemsetD16, to,
                      (unsigned short)value, bytes / 2);
  } else {
    KILNI_DEVICE_CALL(status, buffer->device, cuMemsetD32, to, value,
                      bytes / 4);
  }
  return buffer_settle(buffer->device, status);
}

kiln_status_t kiln_buffer_fill_async(kiln_buffer_t* buffer,
                                     kiln_stream_t* stream, uint64_t offset,
                                     uint64_t bytes, uint32_t value,
                                     uint32_t value_bytes) {
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_RETURN_IF_ERROR(
      buffer_check_fill(buffer, stream, offset, bytes, value_bytes));
  if (bytes == 0) return kiln_ok();
  kiln_status_t status;
  kiln_cu_deviceptr_t to = buffer->address + offset;
  if (value_bytes == 1) {
    KILNI_STREAM_CALL(status, stream, cuMemsetD8Async, to, (unsigned char)value,
                      bytes, stream->handle);
  } else if (value_bytes == 2) {
    KILNI_STREAM_CALL(status, stream, cuMemsetD16Async, to,
                      (unsigned short)value, bytes / 2, stream->handle);
  } else {
    KILNI_STREAM_CALL(status, stream, cuMemsetD32Async, to, value, bytes / 4,
                      stream->handle);
  }
  return status;
}

// ---- Buffer to buffer ----

// Two devices: a copy between them may be on a stream of either.
static bool is_across(const kiln_buffer_t* target,
                      const kiln_buffer_t* source) {
  return target->device->whole->context != source->device->whole->context;
}

static kiln_status_t check_across(const kiln_buffer_t* target,
                                  const kiln_buffer_t* source,
                                  const kiln_stream_t* stream) {
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_driver(target->device, source->device, "the source"));
  KILNI_RETURN_IF_ERROR(kilni_device_check_not_lost(source->device));
  KILNI_RETURN_IF_ERROR(kilni_device_check_not_lost(target->device));
  if (stream == NULL || stream->device->whole == source->device->whole) {
    return kiln_ok();
  }
  kiln_status_t status =
      kilni_device_check_memory(source->device, stream->device, "the stream");
  if (kiln_status_is_ok(status)) return kiln_ok();
  kiln_status_free(status);
  return kilni_device_check_memory(target->device, stream->device,
                                   "the stream");
}

// Two objects may be over the same memory, so that addresses are compared.
static kiln_status_t buffer_check_apart(const kiln_buffer_t* target,
                                        uint64_t target_offset,
                                        const kiln_buffer_t* source,
                                        uint64_t source_offset,
                                        uint64_t bytes) {
  uint64_t to = target->address + target_offset;
  uint64_t from = source->address + source_offset;
  if ((to > from ? to - from : from - to) >= bytes) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(
          INVALID_ARGUMENT,
          "a copy of %llu bytes from offset %llu to %llu of %s overlaps "
          "itself",
          (unsigned long long)bytes, (unsigned long long)source_offset,
          (unsigned long long)target_offset,
          target == source ? "one buffer" : "two buffers over the same memory"),
      "copy through another buffer");
}

kiln_status_t kilni_device_buffer_check_copy(const kiln_buffer_t* target,
                                             const kiln_stream_t* stream,
                                             uint64_t target_offset,
                                             const kiln_buffer_t* source,
                                             uint64_t source_offset,
                                             uint64_t bytes) {
  bool across = is_across(target, source);
  if (across) KILNI_RETURN_IF_ERROR(check_across(target, source, stream));
  KILNI_RETURN_IF_ERROR(
      kilni_device_buffer_check(target, across ? NULL : stream, target_offset,
                                bytes, "a copy to the range"));
  if (!across) {
    KILNI_RETURN_IF_ERROR(kilni_device_check_memory(
        target->device, source->device, "the source"));
  }
  KILNI_RETURN_IF_ERROR(buffer_check_range(source, source_offset, bytes,
                                           "a copy from the range"));
  // Addresses of two contexts cannot be compared, as their memory cannot.
  if (across || bytes == 0) return kiln_ok();
  return buffer_check_apart(target, target_offset, source, source_offset,
                            bytes);
}

kiln_status_t kiln_buffer_copy(kiln_buffer_t* target, uint64_t target_offset,
                               kiln_buffer_t* source, uint64_t source_offset,
                               uint64_t bytes) {
  KILNI_CHECK_ARGUMENT(target != NULL, "target");
  KILNI_CHECK_ARGUMENT(source != NULL, "source");
  KILNI_RETURN_IF_ERROR(kilni_device_buffer_check_copy(
      target, NULL, target_offset, source, source_offset, bytes));
  if (bytes == 0) return kiln_ok();
  kiln_status_t status;
  if (is_across(target, source)) {
    KILNI_ACROSS_CALL(
        status, target->device, source->device, KILNI_WAY_cuMemcpyPeer,
        cuMemcpyPeer, target->address + target_offset,
        target->device->whole->context, source->address + source_offset,
        source->device->whole->context, bytes);
  } else {
    KILNI_DEVICE_CALL(status, target->device, cuMemcpyDtoD,
                      target->address + target_offset,
                      source->address + source_offset, bytes);
  }
  return buffer_settle(target->device, status);
}

kiln_status_t kiln_buffer_copy_async(kiln_buffer_t* target,
                                     kiln_stream_t* stream,
                                     uint64_t target_offset,
                                     kiln_buffer_t* source,
                                     uint64_t source_offset, uint64_t bytes) {
  KILNI_CHECK_ARGUMENT(target != NULL, "target");
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_CHECK_ARGUMENT(source != NULL, "source");
  KILNI_RETURN_IF_ERROR(kilni_device_buffer_check_copy(
      target, stream, target_offset, source, source_offset, bytes));
  if (bytes == 0) return kiln_ok();
  kiln_status_t status;
  if (is_across(target, source)) {
    const kiln_device_t* own = stream->device->whole;
    kiln_device_t* other = own->context == target->device->whole->context
                               ? source->device
                               : target->device;
    KILNI_ACROSS_CALL(
        status, stream->device, other,
        KILNI_WAY_cuMemcpyPeerAsync | kilni_device_stream_way(stream),
        cuMemcpyPeerAsync, target->address + target_offset,
        target->device->whole->context, source->address + source_offset,
        source->device->whole->context, bytes, stream->handle);
  } else {
    KILNI_STREAM_CALL(status, stream, cuMemcpyDtoDAsync,
                      target->address + target_offset,
                      source->address + source_offset, bytes, stream->handle);
  }
  return status;
}
