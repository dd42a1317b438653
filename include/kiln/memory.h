// SPDX-License-Identifier: Apache-2.0
//
// device: buffers: owned memory, and transfers.
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

// Kinds of memory.
enum {
  KILN_MEMORY_DEVICE = 0,   // the device's own
  KILN_MEMORY_PINNED = 1,   // page-locked host memory that the device can use
  KILN_MEMORY_MANAGED = 2,  // migrates between host and device
};

// Memory that a device can use. thread-safe
//
// Reference-counted. Retains its device, and its stream and its pool if it has
// one.
typedef struct kiln_buffer_t kiln_buffer_t;

// The source of stream-ordered buffers (kiln/pool.h). thread-safe
//
// Reference-counted. Retains its device.
typedef struct kiln_pool_t kiln_pool_t;

// How a buffer is allocated. thread-compatible
typedef struct kiln_buffer_options_t {
  uint32_t struct_size;  // sizeof(kiln_buffer_options_t)

  // KILN_MEMORY_*. Memory of the host is never ordered by `stream` unless it is
  // taken from `pool`. Default: device memory, or that of the pool.
  uint32_t kind;

  // Allocate and free in the order of this stream, if the device has memory
  // pools: no waiting, and the last release frees after the work then on the
  // stream. Work on other streams must have been ordered before it. NULL:
  // usable at once on every stream, and the last release waits for the device's
  // work.
  kiln_stream_t* stream;

  // Take it from this pool, in the order of `stream`, which must be given.
  // NULL: the device's own pool.
  kiln_pool_t* pool;
} kiln_buffer_options_t;

// All defaults. Since 0.1.
static inline kiln_buffer_options_t kiln_buffer_options_default(void) {
  kiln_buffer_options_t options = {(uint32_t)sizeof(options), 0, NULL, NULL};
  return options;
}

// Allocates `size_bytes` of memory, aligned to at least 256 bytes; its content
// is undefined. 0 bytes is a buffer without an address. `options` may be NULL.
//
//   DEVICE_OUT_OF_MEMORY  with the requested and free bytes
//   INVALID_ARGUMENT      a stream or a pool of another device, a kind that is
//                         invalid or not the pool's, a pool without a stream
//   INVALID_STATE         the stream is being captured; an imported pool
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_buffer`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_buffer_create(
    kiln_device_t* device, uint64_t size_bytes,
    const kiln_buffer_options_t* options, kiln_buffer_t** out_buffer);

// Wraps foreign memory: `size_bytes` from the device address `address`, which
// are never freed. `owner` may be NULL (kiln_owner_t). The driver reports their
// kind and host address.
//
// Page-locked memory of the host program is identified by its own address.
// Memory that the driver does not know cannot be wrapped: kiln_buffer_write and
// kiln_buffer_read take it as it is.
//
//   INVALID_ARGUMENT  no address or no bytes; memory that the driver does not
//                     know; device memory of another device
//   OUT_OF_RANGE      the last byte is of no memory, or of another kind of it;
//                     that one allocation ends in between is not seen
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_buffer`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_buffer_adopt(kiln_device_t* device, uint64_t address, uint64_t size_bytes,
                  const kiln_owner_t* owner, kiln_buffer_t** out_buffer);

// A buffer for another process. thread-compatible
//
// Bytes that may be sent to it in any manner, on the same machine.
typedef struct kiln_buffer_export_t {
  uint8_t bytes[64];
  uint64_t size;      // of the buffer
  uint32_t of_pool;   // 1: of a pool, which must be imported first
  uint32_t reserved;  // 0
} kiln_buffer_export_t;

// Exports the buffer to another process: one of a pool that was made with
// `interprocess`, or device memory that was made without a stream. The buffer
// must live as long as any imported buffer is in use.
//
//   INVALID_STATE  any other buffer: ordered by a stream and of the device's
//                  own pool, of the host, foreign, imported, or of 0 bytes
//   UNSUPPORTED    a driver that shares no memory, as the software device
//   DEVICE_LOST, DRIVER_ERROR
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_buffer_export(kiln_buffer_t* buffer, kiln_buffer_export_t* out_export);

// Opens a buffer of another process, on the same GPU, which must be trusted:
// its size is not verified. For a buffer of a pool the options name that pool,
// imported, and the stream in whose order the last release frees it; the buffer
// retains both, and importing the buffer again while it is alive returns the
// same object, with its stream. Any other takes no options: the last release
// waits for the device's work. Must not be used after the other process has
// released its own.
//
//   INVALID_ARGUMENT  a missing pool or stream where one is required, one where
//   it
//                     is not allowed, or of another device; a pool that is not
//                     imported; no bytes
//   UNSUPPORTED       a driver that shares no memory, as the software device
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_buffer`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_buffer_import(
    kiln_device_t* device, const kiln_buffer_export_t* exported,
    const kiln_buffer_options_t* options, kiln_buffer_t** out_buffer);

// Adds or releases a reference. NULL is accepted. The last release may be made
// on any thread, whatever context is current there: stream-ordered memory is
// freed in the order of its stream. If that stream is being captured by then,
// the release waits for the device's work instead, so that no free becomes part
// of a graph; and so does a release on another thread than the one that made
// the buffer, or gave it its stream, where that is the per-thread default
// stream: there it would be another stream. Since 0.1.
KILN_API void kiln_buffer_retain(kiln_buffer_t* buffer);
KILN_API void kiln_buffer_release(kiln_buffer_t* buffer);

// Its size in bytes, as requested. Since 0.1.
KILN_API uint64_t kiln_buffer_size(const kiln_buffer_t* buffer);

// The device address; 0 for a buffer of 0 bytes. Since 0.1.
KILN_API uint64_t kiln_buffer_address(const kiln_buffer_t* buffer);

// The device it was made on. Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_buffer_device(const kiln_buffer_t* buffer);

// The kind of its memory: KILN_MEMORY_*. Since 0.1.
KILN_API uint32_t kiln_buffer_kind(const kiln_buffer_t* buffer);

// The host address of pinned or managed memory; NULL for device memory and for
// 0 bytes. The host must not access it while work that uses it is running.
// Borrowed. Since 0.1.
KILN_API void* kiln_buffer_host(const kiln_buffer_t* buffer);

// From now on the last release frees in the order of `stream`: for a buffer
// whose work has moved to another stream. Work on the stream it had must have
// been ordered before that release.
//
//   INVALID_STATE     memory that is not stream-ordered, or foreign, or of a
//                     transient store
//   INVALID_ARGUMENT  a stream of another device
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_buffer_set_stream(kiln_buffer_t* buffer, kiln_stream_t* stream);

// Copies `bytes` bytes from host memory at `data` to the buffer from `offset`
// on.
//
//   OUT_OF_RANGE  [offset, offset + bytes) is not inside the buffer
//   DEVICE_LOST, DRIVER_ERROR
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_buffer_write(kiln_buffer_t* buffer,
                                                       uint64_t offset,
                                                       size_t bytes,
                                                       const void* data);

// Copies `bytes` bytes of the buffer from `offset` on to host memory at
// `out_data`. Statuses as write. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_buffer_read(kiln_buffer_t* buffer,
                                                      uint64_t offset,
                                                      size_t bytes,
                                                      void* out_data);

// Fills `bytes` bytes of the buffer from `offset` on with the low `value_bytes`
// (1, 2 or 4) bytes of `value`, again and again. `offset` and `bytes` must be
// multiples of `value_bytes`, else INVALID_ARGUMENT. Other statuses as write.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_buffer_fill(kiln_buffer_t* buffer,
                                                      uint64_t offset,
                                                      uint64_t bytes,
                                                      uint32_t value,
                                                      uint32_t value_bytes);

// Copies `bytes` bytes from one buffer to another, of one device or of two of
// one driver, which need no access to each other; the ranges must not overlap
// (INVALID_ARGUMENT, also of two buffers over the same memory of one device).
// Other statuses as write. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_buffer_copy(kiln_buffer_t* target,
                                                      uint64_t target_offset,
                                                      kiln_buffer_t* source,
                                                      uint64_t source_offset,
                                                      uint64_t bytes);

// The same four in the order of `stream`. Host memory must stay as it is, and
// both buffers alive, until the stream has passed the operation. A stream that
// is being captured takes them into the graph. INVALID_ARGUMENT for a stream of
// another device; a copy between two devices may be on a stream of either.
// Other statuses as of the synchronous form; faults of an earlier kernel are
// reported by the call that waits for the stream. Since 0.1.
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

// ---- Batches of copies ----

// One copy of a batch. thread-compatible
typedef struct kiln_copy_t {
  kiln_buffer_t* target;
  uint64_t target_offset;
  kiln_buffer_t* source;
  uint64_t source_offset;
  uint64_t bytes;  // 0: nothing is copied
} kiln_copy_t;

// When the copies of a batch may read.
enum {
  KILN_COPY_IN_ORDER = 0,     // after the work on the stream
  KILN_COPY_DURING_CALL = 1,  // at once, and all of it before the call returns
  KILN_COPY_ANY_TIME = 2,     // at once, or after the call
};

// How a batch is made. thread-compatible
typedef struct kiln_copy_options_t {
  uint32_t struct_size;  // sizeof(kiln_copy_options_t)

  // KILN_COPY_*: when the sources may be read. Targets are always written in
  // the order of the stream. Default: in stream order too.
  uint32_t source_order;
} kiln_copy_options_t;

// All defaults. Since 0.1.
static inline kiln_copy_options_t kiln_copy_options_default(void) {
  kiln_copy_options_t options = {(uint32_t)sizeof(options), 0};
  return options;
}

// Makes `count` copies in the order of `stream`, each as kiln_buffer_copy_async
// and in any order among themselves: no source or target may overlap another's
// target. One call of the driver if supported (CUDA 13.0), else, and on streams
// of a part (kiln/green.h), one for each copy, of which some may be made when a
// later one fails; KILN_COPY_ANY_TIME is then in order, and
// KILN_COPY_DURING_CALL waits for the stream. Drivers of CUDA 12.8 and 12.9
// have the call in a form that 13.0 removed (one argument more); with them too
// it is one call for each copy. `options` may be NULL.
//
//   INVALID_STATE     the stream is being captured: a graph cannot contain
//   batches INVALID_ARGUMENT  the legacy default stream, which drivers refuse
//   for a
//                     batch; what kiln_buffer_copy_async refuses
//   OUT_OF_RANGE, DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_copy_batch(kiln_stream_t* stream, const kiln_copy_t* copies,
                uint32_t count, const kiln_copy_options_t* options);

KILN_EXTERN_C_END

#endif  // KILN_MEMORY_H_
