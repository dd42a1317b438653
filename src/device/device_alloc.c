// SPDX-License-Identifier: Apache-2.0
//
// device: buffers as objects: where their memory comes from, and how it ends.
//
// What is done on them is in device_buffer.c.
#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "device/device_scope.h"

// ---- Captures ----

kiln_status_t kilni_device_stream_ask_capture(kiln_stream_t* stream,
                                              bool* out_captured) {
  *out_captured = false;
  kiln_cu_capture_status_t captured = KILN_CU_STREAM_CAPTURE_STATUS_NONE;
  kiln_status_t status;
  uint32_t way = kilni_device_stream_way(stream) & ~(uint32_t)KILNI_WAY_BODY;
  KILNI_WAY_CALL(status, stream->device, KILNI_WAY_cuStreamIsCapturing | way,
                 cuStreamIsCapturing, stream->handle, &captured);
  *out_captured = captured != KILN_CU_STREAM_CAPTURE_STATUS_NONE;
  return status;
}

// Does that in a destructor: an unknown state counts as no capture.
static bool is_captured(kiln_stream_t* stream) {
  kiln_cu_capture_status_t captured = KILN_CU_STREAM_CAPTURE_STATUS_NONE;
  kilni_device_scope_t scope;
  uint32_t way =
      KILNI_WAY_cuStreamIsCapturing | kilni_device_stream_way(stream);
  if (!kilni_device_scope_begin_end(&scope, stream->device, way)) return false;
  kiln_cu_result_t result =
      stream->device->table->cuStreamIsCapturing(stream->handle, &captured);
  kilni_device_scope_leave_end(&scope, KILN_CU_SUCCESS, "cuStreamIsCapturing");
  return result == KILN_CU_SUCCESS &&
         captured != KILN_CU_STREAM_CAPTURE_STATUS_NONE;
}

static kiln_status_t refuse_capture(kiln_stream_t* stream) {
  bool captured = false;
  KILNI_RETURN_IF_ERROR(kilni_device_stream_ask_capture(stream, &captured));
  if (!captured) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "a buffer on a stream of \"%s\" that is being captured would "
                 "become a part of the graph",
                 stream->device->name),
      "make the buffer before the capture begins, or on another stream");
}

// ---- Making ----

kiln_status_t kilni_device_buffer_make(kiln_device_t* device, uint64_t size,
                                       kiln_buffer_t** out_buffer) {
  *out_buffer = NULL;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(device->host->allocator, sizeof(kiln_buffer_t), &block));
  kiln_buffer_t* buffer = block;
  buffer->device = device;
  kiln_device_retain(device);
  atomic_init(&buffer->references, 1);
  atomic_init(&buffer->stream, NULL);
  buffer->size = size;
  *out_buffer = buffer;
  return kiln_ok();
}

// Memory that is ordered by nothing.
static kiln_status_t take_plain(kiln_buffer_t* buffer) {
  kiln_status_t status;
  if (buffer->kind == KILN_MEMORY_MANAGED) {
    KILNI_DEVICE_CREATE(status, buffer->device, &buffer->address,
                        cuMemAllocManaged, buffer->size,
                        KILN_CU_MEM_ATTACH_GLOBAL);
  } else {
    KILNI_DEVICE_CREATE(status, buffer->device, &buffer->address, cuMemAlloc,
                        buffer->size);
  }
  if (buffer->address != 0) buffer->end = KILNI_BUFFER_FREE;
  if (buffer->kind == KILN_MEMORY_MANAGED) {
    buffer->host = (void*)(uintptr_t)buffer->address;
  }
  return status;
}

static kiln_status_t alloc_take_host(kiln_buffer_t* buffer) {
  kiln_status_t status;
  KILNI_DEVICE_CREATE(
      status, buffer->device, &buffer->host, cuMemHostAlloc, buffer->size,
      KILN_CU_MEMHOSTALLOC_PORTABLE | KILN_CU_MEMHOSTALLOC_DEVICEMAP);
  if (buffer->host != NULL) buffer->end = KILNI_BUFFER_HOST;
  KILNI_RETURN_IF_ERROR(status);
  KILNI_DEVICE_CALL(status, buffer->device, cuMemHostGetDevicePointer,
                    &buffer->address, buffer->host, 0);
  return status;
}

void kilni_device_buffer_note_thread(kiln_buffer_t* buffer,
                                     const kiln_stream_t* stream) {
  if (stream->kind != KILN_STREAM_PER_THREAD) return;
  atomic_store(&buffer->thread, kilni_base_thread_number());
}

kiln_status_t kilni_device_buffer_take(kiln_buffer_t* buffer,
                                       kiln_stream_t* stream,
                                       kiln_pool_t* pool) {
  if (!buffer->device->info.memory_pools) return take_plain(buffer);
  kiln_stream_retain(stream);
  atomic_store(&buffer->stream, stream);
  kilni_device_buffer_note_thread(buffer, stream);
  kiln_status_t status;
  if (pool != NULL) {
    kiln_pool_retain(pool);
    buffer->pool = pool;
    buffer->kind = pool->kind;
    KILNI_STREAM_CREATE(status, stream, &buffer->address,
                        cuMemAllocFromPoolAsync, buffer->size, pool->handle,
                        stream->handle);
  } else {
    KILNI_STREAM_CREATE(status, stream, &buffer->address, cuMemAllocAsync,
                        buffer->size, stream->handle);
  }
  if (buffer->address != 0) buffer->end = KILNI_BUFFER_ASYNC;
  if (buffer->kind != KILN_MEMORY_DEVICE) {
    buffer->host = (void*)(uintptr_t)buffer->address;
  }
  return status;
}

static kiln_status_t alloc_take(kiln_buffer_t* buffer,
                                const kiln_buffer_options_t* given) {
  if (given->pool != NULL ||
      (given->stream != NULL && given->kind == KILN_MEMORY_DEVICE)) {
    KILNI_RETURN_IF_ERROR(refuse_capture(given->stream));
    return kilni_device_buffer_take(buffer, given->stream, given->pool);
  }
  return given->kind == KILN_MEMORY_PINNED ? alloc_take_host(buffer)
                                           : take_plain(buffer);
}

static kiln_status_t check_pool(const kiln_device_t* device,
                                const kiln_buffer_options_t* given) {
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_memory(device, given->pool->device, "`options.pool`"));
  if (given->pool->imported) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE,
                   "a pool of another process cannot allocate buffers here"),
        "make the buffer in that process, and import it");
  }
  if (given->stream == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "a buffer of a pool without a stream"),
        "set `stream` in kiln_buffer_options_t too");
  }
  if (given->kind == 0 || given->kind == given->pool->kind) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "a buffer of kind %u from a pool of kind %u",
                 (unsigned)given->kind, (unsigned)given->pool->kind),
      "leave `kind` in kiln_buffer_options_t at 0: it is the pool's");
}

static kiln_status_t alloc_check_options(const kiln_device_t* device,
                                         const kiln_buffer_options_t* given) {
  KILNI_CHECK_ARGUMENT(given->kind <= KILN_MEMORY_MANAGED, "options.kind");
  if (given->stream != NULL) {
    KILNI_RETURN_IF_ERROR(kilni_device_check_memory(
        device, given->stream->device, "`options.stream`"));
  }
  return given->pool != NULL ? check_pool(device, given) : kiln_ok();
}

// Adds what the device has to an error of its memory.
static kiln_status_t alloc_explain(const kiln_buffer_t* buffer,
                                   kiln_status_t status) {
  kiln_device_t* device = buffer->device;
  if (kiln_status_code(status) != KILN_STATUS_DEVICE_OUT_OF_MEMORY) {
    return status;
  }
  unsigned long long size = buffer->size;
  if (buffer->kind != KILN_MEMORY_DEVICE) {
    return KILNI_ANNOTATE(
        status, "a %s buffer of %llu bytes for \"%s\"",
        buffer->kind == KILN_MEMORY_PINNED ? "pinned" : "managed", size,
        device->name);
  }
  if (buffer->pool != NULL && buffer->pool->max_bytes != 0) {
    return kilni_base_status_with_fix(
        KILNI_ANNOTATE(status,
                       "a buffer of %llu bytes on \"%s\" from a pool whose "
                       "limit is %llu bytes",
                       size, device->name,
                       (unsigned long long)buffer->pool->max_bytes),
        "release buffers of the pool first, or make it with a larger "
        "`max_bytes`");
  }
  uint64_t available = 0;
  kiln_status_t asked = kiln_device_query_free(device, &available);
  if (!kiln_status_is_ok(asked)) {
    kiln_status_free(asked);
    return KILNI_ANNOTATE(status, "a buffer of %llu bytes on \"%s\"", size,
                          device->name);
  }
  return KILNI_ANNOTATE(
      status, "a buffer of %llu bytes%s on \"%s\", which has %llu free", size,
      buffer->pool != NULL ? " from a pool" : "", device->name,
      (unsigned long long)available);
}

kiln_status_t kiln_buffer_create(kiln_device_t* device, uint64_t size_bytes,
                                 const kiln_buffer_options_t* options,
                                 kiln_buffer_t** out_buffer) {
  KILNI_CHECK_ARGUMENT(out_buffer != NULL, "out_buffer");
  *out_buffer = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  kiln_buffer_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(
      options, "kiln_buffer_options_t", sizeof(given), &given));
  KILNI_RETURN_IF_ERROR(alloc_check_options(device, &given));
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  kiln_buffer_t* buffer = NULL;
  KILNI_RETURN_IF_ERROR(kilni_device_buffer_make(device, size_bytes, &buffer));
  buffer->kind = given.pool != NULL ? given.pool->kind : given.kind;
  kiln_status_t status = kiln_ok();
  if (size_bytes > 0) status = alloc_take(buffer, &given);
  if (!kiln_status_is_ok(status)) {
    status = alloc_explain(buffer, status);
    kiln_buffer_release(buffer);
    return status;
  }
  *out_buffer = buffer;
  return kiln_ok();
}

// ---- Foreign memory ----

// What the driver reports of an address; all zero for one it does not know.
typedef struct pointer_t {
  kiln_cu_memory_type_t type;
  unsigned int managed;
  int ordinal;
  unsigned int reserved;
  void* host;
  kiln_cu_deviceptr_t device;
} pointer_t;

static kiln_status_t alloc_look(kiln_device_t* device, uint64_t address,
                                pointer_t* out_pointer) {
  pointer_t found = {0, 0, 0, 0, NULL, 0};
  *out_pointer = found;
  kiln_cu_pointer_attribute_t names[] = {
      KILN_CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
      KILN_CU_POINTER_ATTRIBUTE_IS_MANAGED,
      KILN_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
      KILN_CU_POINTER_ATTRIBUTE_HOST_POINTER,
      KILN_CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
  };
  void* values[] = {&found.type, &found.managed, &found.ordinal, &found.host,
                    &found.device};
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuPointerGetAttributes,
                    sizeof(names) / sizeof(names[0]), names, values, address);
  if (kiln_status_is_ok(status)) *out_pointer = found;
  return status;
}

static kiln_status_t check_foreign(kiln_device_t* device, uint64_t address,
                                   uint64_t size, pointer_t* out_first) {
  KILNI_RETURN_IF_ERROR(alloc_look(device, address, out_first));
  if (out_first->type == 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "the driver of \"%s\" does not know the memory at 0x%llx",
                   device->name, (unsigned long long)address),
        "page-lock host memory first, or pass it to kiln_buffer_write and "
        "kiln_buffer_read as it is");
  }
  if (out_first->type == KILN_CU_MEMORYTYPE_DEVICE && !out_first->managed &&
      out_first->ordinal != device->handle) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "the memory at 0x%llx belongs to device %d, not to \"%s\"",
                   (unsigned long long)address, out_first->ordinal,
                   device->name),
        "open the device that owns it");
  }
  pointer_t last;
  KILNI_RETURN_IF_ERROR(alloc_look(device, address + size - 1, &last));
  if (last.type == out_first->type && last.managed == out_first->managed) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(OUT_OF_RANGE, "the memory at 0x%llx has fewer than %llu bytes",
                 (unsigned long long)address, (unsigned long long)size),
      "give the size that was allocated");
}

kiln_status_t kiln_buffer_adopt(kiln_device_t* device, uint64_t address,
                                uint64_t size_bytes, const kiln_owner_t* owner,
                                kiln_buffer_t** out_buffer) {
  KILNI_CHECK_ARGUMENT(out_buffer != NULL, "out_buffer");
  *out_buffer = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(address != 0, "address");
  KILNI_CHECK_ARGUMENT_SAYS(
      size_bytes != 0 && size_bytes - 1 <= UINT64_MAX - address, "size_bytes",
      "is 0, or exceeds the last address",
      "pass the number of bytes from that address on");
  pointer_t found;
  KILNI_RETURN_IF_ERROR(check_foreign(device, address, size_bytes, &found));
  kiln_buffer_t* buffer = NULL;
  KILNI_RETURN_IF_ERROR(kilni_device_buffer_make(device, size_bytes, &buffer));
  buffer->address = address;
  if (found.managed || found.type == KILN_CU_MEMORYTYPE_HOST) {
    buffer->kind = found.managed ? KILN_MEMORY_MANAGED : KILN_MEMORY_PINNED;
    buffer->host = found.host != NULL ? found.host : (void*)(uintptr_t)address;
    if (found.device != 0) buffer->address = found.device;
  }
  if (owner != NULL) buffer->owner = *owner;
  *out_buffer = buffer;
  return kiln_ok();
}

// ---- Ending ----

void kiln_buffer_retain(kiln_buffer_t* buffer) {
  if (buffer == NULL) return;
  atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
}

// Whether a free on the stream is ordered after the buffer's work. The
// per-thread default stream of another thread is another stream.
static bool is_ordered(const kiln_buffer_t* buffer, kiln_stream_t* stream) {
  if (buffer->in_graph) return true;
  if (stream->kind == KILN_STREAM_PER_THREAD &&
      atomic_load(&buffer->thread) != kilni_base_thread_number()) {
    return false;
  }
  return !is_captured(stream);
}

static void alloc_end(kiln_buffer_t* buffer, kiln_stream_t* stream) {
  kiln_device_t* device = buffer->device;
  if (buffer->end == KILNI_BUFFER_HOST) {
    KILNI_DEVICE_END(device, cuMemFreeHost, buffer->host);
  } else if (buffer->end == KILNI_BUFFER_ASYNC && is_ordered(buffer, stream)) {
    KILNI_STREAM_END(stream, cuMemFreeAsync, buffer->address, stream->handle);
  } else if (buffer->end == KILNI_BUFFER_OPENED) {
    KILNI_DEVICE_END(device, cuIpcCloseMemHandle, buffer->address);
  } else if (buffer->end != KILNI_BUFFER_NOTHING) {
    KILNI_DEVICE_END(device, cuMemFree, buffer->address);
  }
}

void kilni_device_buffer_end(kiln_buffer_t* buffer) {
  kiln_device_t* device = buffer->device;
  kiln_stream_t* stream = atomic_load(&buffer->stream);
  kiln_pool_t* pool = buffer->pool;
  kiln_owner_t owner = buffer->owner;
  alloc_end(buffer, stream);
  if (buffer->import != NULL) kilni_device_import_left(pool, buffer->import);
  kilni_base_free(device->host->allocator, buffer, sizeof(*buffer));
  kilni_device_owner_release(owner);
  kiln_pool_release(pool);
  kiln_stream_release(stream);
  kiln_device_release(device);
}

void kiln_buffer_release(kiln_buffer_t* buffer) {
  if (buffer == NULL || kilni_device_is_forked(buffer->device)) return;
  if (atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kiln_transient_t* store = buffer->transient;
  if (store != NULL && kilni_device_transient_give(store, buffer)) return;
  kilni_device_buffer_end(buffer);
  if (store != NULL) kilni_device_transient_left(store);
}

kiln_status_t kiln_buffer_set_stream(kiln_buffer_t* buffer,
                                     kiln_stream_t* stream) {
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_memory(buffer->device, stream->device, "the stream"));
  if (buffer->end != KILNI_BUFFER_ASYNC || buffer->transient != NULL ||
      buffer->in_graph) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE,
                   "a buffer of %llu bytes that is not freed in stream order "
                   "cannot be given a stream",
                   (unsigned long long)buffer->size),
        "make the buffer with a stream in kiln_buffer_options_t");
  }
  kiln_stream_retain(stream);
  kilni_device_buffer_note_thread(buffer, stream);
  kiln_stream_release(atomic_exchange(&buffer->stream, stream));
  return kiln_ok();
}

// ---- What it is ----

uint64_t kiln_buffer_size(const kiln_buffer_t* buffer) {
  return buffer->size;
}

uint64_t kiln_buffer_address(const kiln_buffer_t* buffer) {
  return buffer->address;
}

kiln_device_t* kiln_buffer_device(const kiln_buffer_t* buffer) {
  return buffer->device;
}

uint32_t kiln_buffer_kind(const kiln_buffer_t* buffer) {
  return buffer->kind;
}

void* kiln_buffer_host(const kiln_buffer_t* buffer) {
  return buffer->host;
}
