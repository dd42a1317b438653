// SPDX-License-Identifier: Apache-2.0
//
// device: buffers, and the copies and fills on them.
#include "base/alloc.h"
#include "base/options.h"
#include "device/device_inside.h"

// ---- Making and ending ----

// Adds what the device has to an error of its memory.
static kiln_status_t explain(kiln_device_t* device, uint64_t size,
                             kiln_status_t status) {
  if (kiln_status_code(status) != KILN_STATUS_DEVICE_OUT_OF_MEMORY) {
    return status;
  }
  uint64_t available = 0;
  kiln_status_t asked = kiln_device_query_free(device, &available);
  if (!kiln_status_is_ok(asked)) {
    kiln_status_free(asked);
    return KILNI_ANNOTATE(status, "a buffer of %llu bytes on \"%s\"",
                          (unsigned long long)size, device->name);
  }
  return KILNI_ANNOTATE(
      status, "a buffer of %llu bytes on \"%s\", which has %llu free",
      (unsigned long long)size, device->name, (unsigned long long)available);
}

static kiln_status_t allocate(kiln_buffer_t* buffer, kiln_stream_t* stream) {
  kiln_device_t* device = buffer->device;
  kiln_status_t status;
  if (stream != NULL && device->info.memory_pools) {
    buffer->stream = stream;
    kiln_stream_retain(stream);
    KILNI_STREAM_CREATE(status, stream, &buffer->address, cuMemAllocAsync,
                        buffer->size, stream->handle);
  } else {
    KILNI_DEVICE_CREATE(status, device, &buffer->address, cuMemAlloc,
                        buffer->size);
  }
  return status;
}

kiln_status_t kiln_buffer_create(kiln_device_t* device, uint64_t size_bytes,
                                 const kiln_buffer_options_t* options,
                                 kiln_buffer_t** out_buffer) {
  KILNI_CHECK_ARGUMENT(out_buffer != NULL, "out_buffer");
  *out_buffer = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  kiln_buffer_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_options_read(options, "kiln_buffer_options_t",
                                           sizeof(given), &given));
  if (given.stream != NULL) {
    KILNI_RETURN_IF_ERROR(kilni_device_check_same(device, given.stream->device,
                                                  "`options.stream`"));
  }
  KILNI_RETURN_IF_ERROR(kilni_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_alloc(device->host->allocator, sizeof(kiln_buffer_t), &block));
  kiln_buffer_t* buffer = block;
  buffer->device = device;
  kiln_device_retain(device);
  atomic_init(&buffer->references, 1);
  buffer->size = size_bytes;
  kiln_status_t status = NULL;
  if (size_bytes > 0) status = allocate(buffer, given.stream);
  if (!kiln_status_is_ok(status)) {
    status = explain(device, size_bytes, status);
    kiln_buffer_release(buffer);
    return status;
  }
  *out_buffer = buffer;
  return NULL;
}

void kiln_buffer_retain(kiln_buffer_t* buffer) {
  if (buffer == NULL) return;
  atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
}

void kiln_buffer_release(kiln_buffer_t* buffer) {
  if (buffer == NULL || kilni_device_is_forked(buffer->device)) return;
  if (atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kiln_device_t* device = buffer->device;
  if (buffer->address != 0 && buffer->stream != NULL) {
    KILNI_STREAM_END(buffer->stream, cuMemFreeAsync, buffer->address,
                     buffer->stream->handle);
  } else if (buffer->address != 0) {
    KILNI_DEVICE_END(device, cuMemFree, buffer->address);
  }
  kiln_stream_release(buffer->stream);
  kilni_free(device->host->allocator, buffer, sizeof(*buffer));
  kiln_device_release(device);
}

uint64_t kiln_buffer_size(const kiln_buffer_t* buffer) {
  return buffer->size;
}

uint64_t kiln_buffer_address(const kiln_buffer_t* buffer) {
  return buffer->address;
}

kiln_device_t* kiln_buffer_device(const kiln_buffer_t* buffer) {
  return buffer->device;
}

// ---- Checks ----

static kiln_status_t check_range(const kiln_buffer_t* buffer, uint64_t offset,
                                 uint64_t bytes, const char* what) {
  if (offset <= buffer->size && bytes <= buffer->size - offset) return NULL;
  return kilni_status_with_fix(
      KILNI_FAIL(OUT_OF_RANGE,
                 "%s of %llu bytes at offset %llu in a buffer of %llu bytes",
                 what, (unsigned long long)bytes, (unsigned long long)offset,
                 (unsigned long long)buffer->size),
      "offset and size together must not exceed the buffer's size");
}

// For every operation: the range, and the stream's device where there is one.
static kiln_status_t check(const kiln_buffer_t* buffer,
                           const kiln_stream_t* stream, uint64_t offset,
                           uint64_t bytes, const char* what) {
  if (stream != NULL) {
    KILNI_RETURN_IF_ERROR(
        kilni_device_check_same(buffer->device, stream->device, "the stream"));
  }
  KILNI_RETURN_IF_ERROR(kilni_host_check_fork(buffer->device->host));
  return check_range(buffer, offset, bytes, what);
}

// What the driver calls synchronous is so only towards the default stream: a
// fill, a copy on the device and the last part of a copy from pageable memory
// may still run when it returns, and our streams do not wait for them.
static kiln_status_t settle(kiln_device_t* device, kiln_status_t status) {
  if (!kiln_status_is_ok(status)) return status;
  kilni_scope_t scope;
  KILNI_RETURN_IF_ERROR(
      kilni_scope_enter(&scope, device, KILNI_CUDA_ROW_cuCtxSynchronize));
  return kilni_scope_leave(
      &scope,
      KILNI_DEVICE_CHECK(device, device->table->cuStreamSynchronize(NULL),
                         "cuStreamSynchronize"));
}

// ---- Host to device and back ----

kiln_status_t kiln_buffer_write(kiln_buffer_t* buffer, uint64_t offset,
                                size_t bytes, const void* data) {
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_CHECK_ARGUMENT(data != NULL || bytes == 0, "data");
  KILNI_RETURN_IF_ERROR(check(buffer, NULL, offset, bytes, "a write"));
  if (bytes == 0) return NULL;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, buffer->device, cuMemcpyHtoD,
                    buffer->address + offset, data, bytes);
  return settle(buffer->device, status);
}

kiln_status_t kiln_buffer_read(kiln_buffer_t* buffer, uint64_t offset,
                               size_t bytes, void* out_data) {
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_CHECK_ARGUMENT(out_data != NULL || bytes == 0, "out_data");
  KILNI_RETURN_IF_ERROR(check(buffer, NULL, offset, bytes, "a read"));
  if (bytes == 0) return NULL;
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
  KILNI_RETURN_IF_ERROR(check(buffer, stream, offset, bytes, "a write"));
  if (bytes == 0) return NULL;
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
  KILNI_RETURN_IF_ERROR(check(buffer, stream, offset, bytes, "a read"));
  if (bytes == 0) return NULL;
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuMemcpyDtoHAsync, out_data,
                    buffer->address + offset, bytes, stream->handle);
  return status;
}

// ---- Fills ----

static kiln_status_t check_fill(const kiln_buffer_t* buffer,
                                const kiln_stream_t* stream, uint64_t offset,
                                uint64_t bytes, uint32_t value_bytes) {
  if (value_bytes != 1 && value_bytes != 2 && value_bytes != 4) {
    return kilni_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "a fill with values of %u bytes",
                   (unsigned)value_bytes),
        "values of 1, 2 and 4 bytes can be repeated");
  }
  if (offset % value_bytes != 0 || bytes % value_bytes != 0) {
    return kilni_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "a fill of %llu bytes at offset %llu with values of %u",
                   (unsigned long long)bytes, (unsigned long long)offset,
                   (unsigned)value_bytes),
        "offset and size must be multiples of the value's size");
  }
  return check(buffer, stream, offset, bytes, "a fill");
}

kiln_status_t kiln_buffer_fill(kiln_buffer_t* buffer, uint64_t offset,
                               uint64_t bytes, uint32_t value,
                               uint32_t value_bytes) {
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_RETURN_IF_ERROR(check_fill(buffer, NULL, offset, bytes, value_bytes));
  if (bytes == 0) return NULL;
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
  return settle(buffer->device, status);
}

kiln_status_t kiln_buffer_fill_async(kiln_buffer_t* buffer,
                                     kiln_stream_t* stream, uint64_t offset,
                                     uint64_t bytes, uint32_t value,
                                     uint32_t value_bytes) {
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_RETURN_IF_ERROR(check_fill(buffer, stream, offset, bytes, value_bytes));
  if (bytes == 0) return NULL;
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

// ---- Device to device ----

static kiln_status_t check_copy(const kiln_buffer_t* target,
                                const kiln_stream_t* stream,
                                uint64_t target_offset,
                                const kiln_buffer_t* source,
                                uint64_t source_offset, uint64_t bytes) {
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_same(target->device, source->device, "the source"));
  KILNI_RETURN_IF_ERROR(
      check(target, stream, target_offset, bytes, "a copy to the range"));
  KILNI_RETURN_IF_ERROR(
      check_range(source, source_offset, bytes, "a copy from the range"));
  uint64_t distance = target_offset > source_offset
                          ? target_offset - source_offset
                          : source_offset - target_offset;
  if (target == source && distance < bytes) {
    return kilni_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "a copy of %llu bytes from offset %llu to %llu of one "
                   "buffer overlaps itself",
                   (unsigned long long)bytes, (unsigned long long)source_offset,
                   (unsigned long long)target_offset),
        "copy through another buffer");
  }
  return NULL;
}

kiln_status_t kiln_buffer_copy(kiln_buffer_t* target, uint64_t target_offset,
                               kiln_buffer_t* source, uint64_t source_offset,
                               uint64_t bytes) {
  KILNI_CHECK_ARGUMENT(target != NULL, "target");
  KILNI_CHECK_ARGUMENT(source != NULL, "source");
  KILNI_RETURN_IF_ERROR(
      check_copy(target, NULL, target_offset, source, source_offset, bytes));
  if (bytes == 0) return NULL;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, target->device, cuMemcpyDtoD,
                    target->address + target_offset,
                    source->address + source_offset, bytes);
  return settle(target->device, status);
}

kiln_status_t kiln_buffer_copy_async(kiln_buffer_t* target,
                                     kiln_stream_t* stream,
                                     uint64_t target_offset,
                                     kiln_buffer_t* source,
                                     uint64_t source_offset, uint64_t bytes) {
  KILNI_CHECK_ARGUMENT(target != NULL, "target");
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_CHECK_ARGUMENT(source != NULL, "source");
  KILNI_RETURN_IF_ERROR(
      check_copy(target, stream, target_offset, source, source_offset, bytes));
  if (bytes == 0) return NULL;
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuMemcpyDtoDAsync,
                    target->address + target_offset,
                    source->address + source_offset, bytes, stream->handle);
  return status;
}
