// SPDX-License-Identifier: Apache-2.0
//
// device: buffers: device memory that is owned, and moved to and from.
//
// Every offset and size is checked against the buffer: OUT_OF_RANGE names
// them. A size of 0 does nothing and is OK.
//
// The synchronous forms return when the bytes have arrived, but wait for no
// stream: synchronise the stream whose work made or uses the bytes first, or
// use the `_async` form on that stream.
#ifndef KILN_MEMORY_H_
#define KILN_MEMORY_H_

#include "kiln/device.h"
#include "kiln/status.h"
#include "kiln/stream.h"

KILN_EXTERN_C_BEGIN

// Device memory. thread-safe
//
// Reference-counted. Retains its device, and its stream if it has one.
typedef struct kiln_buffer_t kiln_buffer_t;

// How a buffer is allocated. thread-compatible
typedef struct kiln_buffer_options_t {
  uint32_t struct_size;  // sizeof(kiln_buffer_options_t)
  uint32_t reserved;     // 0

  // Allocate and free in the order of this stream, where the device has memory
  // pools: no waiting, and the last release frees behind the work that the
  // stream then holds. Work on other streams must have been ordered before it.
  // NULL: usable at once on every stream, and the last release waits for the
  // device's work.
  kiln_stream_t* stream;
} kiln_buffer_options_t;

// All defaults. Since 0.1.
static inline kiln_buffer_options_t kiln_buffer_options_default(void) {
  kiln_buffer_options_t options = {(uint32_t)sizeof(options), 0, NULL};
  return options;
}

// Allocates `size_bytes` of device memory, aligned to at least 256 bytes; its
// content is undefined. 0 bytes is a buffer without an address. `options` may
// be NULL.
//
//   DEVICE_OUT_OF_MEMORY  with the bytes wanted and free
//   INVALID_ARGUMENT      a stream of another device
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_buffer`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_buffer_create(
    kiln_device_t* device, uint64_t size_bytes,
    const kiln_buffer_options_t* options, kiln_buffer_t** out_buffer);

// One reference more, one less. NULL is accepted. Since 0.1.
KILN_API void kiln_buffer_retain(kiln_buffer_t* buffer);
KILN_API void kiln_buffer_release(kiln_buffer_t* buffer);

// Since 0.1.
KILN_API uint64_t kiln_buffer_size(const kiln_buffer_t* buffer);

// The device address; 0 for a buffer of 0 bytes. Since 0.1.
KILN_API uint64_t kiln_buffer_address(const kiln_buffer_t* buffer);

// Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_buffer_device(const kiln_buffer_t* buffer);

// Host to device: `bytes` from `data` to `offset`. Since 0.1.
//
//   OUT_OF_RANGE  [offset, offset + bytes) is not inside the buffer
//   DEVICE_LOST, DRIVER_ERROR
KILN_API KILN_MUST_USE kiln_status_t kiln_buffer_write(kiln_buffer_t* buffer,
                                                       uint64_t offset,
                                                       size_t bytes,
                                                       const void* data);

// Device to host: `bytes` from `offset` to `out_data`. Statuses as write.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_buffer_read(kiln_buffer_t* buffer,
                                                      uint64_t offset,
                                                      size_t bytes,
                                                      void* out_data);

// Repeats the low `value_bytes` (1, 2 or 4) bytes of `value`. `offset` and
// `bytes` must be multiples of `value_bytes`, else INVALID_ARGUMENT. Other
// statuses as write. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_buffer_fill(kiln_buffer_t* buffer,
                                                      uint64_t offset,
                                                      uint64_t bytes,
                                                      uint32_t value,
                                                      uint32_t value_bytes);

// Device to device, on one device; the ranges must not overlap
// (INVALID_ARGUMENT). Other statuses as write. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_buffer_copy(kiln_buffer_t* target,
                                                      uint64_t target_offset,
                                                      kiln_buffer_t* source,
                                                      uint64_t source_offset,
                                                      uint64_t bytes);

// The same in the order of `stream`. Host memory must stay as it is, and both
// buffers alive, until the stream has passed the operation. INVALID_ARGUMENT
// for a stream of another device. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_buffer_write_async(kiln_buffer_t* buffer, kiln_stream_t* stream,
                        uint64_t offset, size_t bytes, const void* data);
KILN_API KILN_MUST_USE kiln_status_t
kiln_buffer_read_async(kiln_buffer_t* buffer, kiln_stream_t* stream,
                       uint64_t offset, size_t bytes, void* out_data);
KILN_API KILN_MUST_USE kiln_status_t kiln_buffer_fill_async(
    kiln_buffer_t* buffer, kiln_stream_t* stream, uint64_t offset,
    uint64_t bytes, uint32_t value, uint32_t value_bytes);
KILN_API KILN_MUST_USE kiln_status_t kiln_buffer_copy_async(
    kiln_buffer_t* target, kiln_stream_t* stream, uint64_t target_offset,
    kiln_buffer_t* source, uint64_t source_offset, uint64_t bytes);

KILN_EXTERN_C_END

#endif  // KILN_MEMORY_H_
