// SPDX-License-Identifier: Apache-2.0
//
// dispatch: resident buffers: device memory that stays between dispatches.
//
// A resident buffer is a number in its dispatcher's table. A number that was
// freed is never given again, so a stale one is reported as an error, and so is
// one of another dispatcher.
//
// Host memory of any kind may be copied. Pageable memory goes through pinned
// memory of the dispatcher, chunk by chunk, with eight `copy_threads` near the
// speed of pinned memory: an upload returns when its source may be changed
// again, a download's target is valid when its pending is done. One of more
// bytes than the dispatcher has pinned memory (`staging_bytes`) waits for the
// device until what is left fits. Pinned memory (kiln_resident_pin,
// kiln/memory.h) is copied by the device itself, and must be left alone until
// then.
//
// A stream of NULL is the dispatcher's own first one (kiln/dispatch.h).
#ifndef KILN_RESIDENT_H_
#define KILN_RESIDENT_H_

#include "kiln/api.h"
#include "kiln/dispatch.h"
#include "kiln/memory.h"
#include "kiln/status.h"
#include "kiln/stream.h"

KILN_EXTERN_C_BEGIN

// The name of a resident buffer; 0 is none. thread-compatible
//
// A value that can be copied, compared and stored freely. It owns nothing.
typedef struct kiln_resident_t {
  uint64_t id;
} kiln_resident_t;

// Bytes of a resident buffer. thread-compatible
typedef struct kiln_resident_range_t {
  uint64_t offset;
  uint64_t bytes;
} kiln_resident_range_t;

// Allocates `bytes` of device memory, aligned to at least 256; its content is
// undefined. It may be used on every stream at once. 0 bytes is a buffer
// without an address.
//
//   DEVICE_OUT_OF_MEMORY  with the requested and the available bytes: of the
//                         budget, or of the device
//   LIMIT_EXCEEDED        more than 1,048,576 resident buffers
//   INVALID_ARGUMENT, DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// Free it with kiln_resident_free. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_resident_allocate(kiln_dispatcher_t* dispatcher, uint64_t bytes,
                       kiln_resident_t* out_resident);

// Invalidates the name at once and frees the memory after all work that uses it
// by now: on own streams, and on every stream that this dispatcher has put work
// on. Waits for nothing. Work that a host program launches with the address
// itself must have been ordered before it, on one of those streams. A prepared
// dispatch that uses it cannot run any more.
//
//   INVALID_ARGUMENT  no name of this dispatcher, or freed before
//   DRIVER_ERROR, DEVICE_LOST: the name has ended all the same
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_resident_free(kiln_dispatcher_t* dispatcher, kiln_resident_t resident);

// Its bytes, and its device address, which is valid until it is freed. 0 for a
// buffer of 0 bytes. INVALID_ARGUMENT as of kiln_resident_free. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_resident_size(kiln_dispatcher_t* dispatcher, kiln_resident_t resident,
                   uint64_t* out_bytes);
KILN_API KILN_MUST_USE kiln_status_t
kiln_resident_address(kiln_dispatcher_t* dispatcher, kiln_resident_t resident,
                      uint64_t* out_address);

// Host to device: `bytes` from `data` to `offset`, after the work on `stream`.
// Pageable memory may be changed when the call returns; pinned memory when the
// stream has passed.
//
//   INVALID_ARGUMENT  the name, a stream of another device
//   OUT_OF_RANGE      [offset, offset + bytes) is not inside the buffer
//   INVALID_STATE     the stream is being captured, and the memory is pageable
//   DEVICE_OUT_OF_MEMORY (pinned memory), DEVICE_LOST, DRIVER_ERROR,
//   OUT_OF_MEMORY
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_resident_upload(kiln_dispatcher_t* dispatcher, kiln_stream_t* stream,
                     kiln_resident_t resident, uint64_t offset, uint64_t bytes,
                     const void* data);

// One upload of several. thread-compatible
typedef struct kiln_resident_upload_t {
  kiln_resident_t resident;
  uint64_t offset;
  uint64_t bytes;
  const void* data;
} kiln_resident_upload_t;

// Makes `count` uploads in order: where two overlap, the later one wins. All
// are checked before the first is made. Adjacent ones of one buffer become one
// copy. Statuses as upload; the message names the number. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_resident_upload_many(
    kiln_dispatcher_t* dispatcher, kiln_stream_t* stream,
    const kiln_resident_upload_t* uploads, uint32_t count);

// Device to host: `bytes` from `offset` to `out_data`, after the work on
// `stream`; returns when they are there. Statuses as upload. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_resident_download(
    kiln_dispatcher_t* dispatcher, kiln_stream_t* stream,
    kiln_resident_t resident, uint64_t offset, uint64_t bytes, void* out_data);

// One download of several. thread-compatible
typedef struct kiln_resident_download_t {
  kiln_resident_t resident;
  uint64_t offset;
  uint64_t bytes;
  void* out_data;
} kiln_resident_download_t;

// Makes `count` downloads, and returns before they are done: what they write is
// valid, and may be touched, when `*out_pending` is done. `out_pending` may be
// NULL: then it waits. All are checked before the first is made, and adjacent
// ranges of one buffer are fetched together. Statuses as upload; the message
// names the number. The caller owns `*out_pending`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_resident_download_many(
    kiln_dispatcher_t* dispatcher, kiln_stream_t* stream,
    const kiln_resident_download_t* downloads, uint32_t count,
    kiln_pending_t** out_pending);

// Repeats the low `value_bytes` (1, 2 or 4) bytes of `value` in the range,
// whose ends are multiples of that (INVALID_ARGUMENT); `bytes` 0 is all from
// `offset` on. Other statuses as upload. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_resident_fill(kiln_dispatcher_t* dispatcher, kiln_stream_t* stream,
                   kiln_resident_t resident, kiln_resident_range_t range,
                   uint32_t value, uint32_t value_bytes);

// Pins host memory, in whole pages, so that the device copies it itself; and
// unpins it, by the same address, when no copy uses it any more. Pinned memory
// must be unpinned before it is freed, and before the dispatcher is released.
//
//   ALREADY_EXISTS  it is pinned; NOT_FOUND: it is not
//   INVALID_ARGUMENT, DEVICE_LOST, DEVICE_OUT_OF_MEMORY (the system locks no
//   more), DRIVER_ERROR, OUT_OF_MEMORY
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_resident_pin(kiln_dispatcher_t* dispatcher, void* data, uint64_t bytes);
KILN_API KILN_MUST_USE kiln_status_t
kiln_resident_unpin(kiln_dispatcher_t* dispatcher, void* data);

KILN_EXTERN_C_END

#endif  // KILN_RESIDENT_H_
