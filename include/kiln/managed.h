// SPDX-License-Identifier: Apache-2.0
//
// device: where managed memory is wanted.
//
// Buffers of KILN_MEMORY_MANAGED go to whoever uses them, a page at a time.
// What is said here saves that: it changes no result, but for discarding, and
// needs a driver of CUDA 12.2. The software device's managed memory stays where
// it is; it checks and remembers.
#ifndef KILN_MANAGED_H_
#define KILN_MANAGED_H_

#include "kiln/device.h"
#include "kiln/memory.h"
#include "kiln/status.h"
#include "kiln/stream.h"

KILN_EXTERN_C_BEGIN

// Moves [offset, offset + bytes) to a device, or with `to` NULL to the host, in
// the order of `stream`. Both must live until the stream has passed it.
//
//   INVALID_ARGUMENT  memory that is not managed; a stream of another device;
//                     a device that cannot have it while the host uses it
//   UNSUPPORTED       a driver before CUDA 12.2
//   OUT_OF_RANGE, DEVICE_LOST, DRIVER_ERROR
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_managed_prefetch(kiln_buffer_t* buffer, kiln_stream_t* stream,
                      uint64_t offset, uint64_t bytes, kiln_device_t* to);

// The bytes are not needed any more: nobody may read them before they are
// written again, and whoever gets the pages does not have to copy them. Needs a
// driver of CUDA 13.0, else UNSUPPORTED. Other statuses as prefetch. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_managed_discard(kiln_buffer_t* buffer,
                                                          kiln_stream_t* stream,
                                                          uint64_t offset,
                                                          uint64_t bytes);

// The same, and the pages go to `to`, a device, or with NULL the host. Statuses
// as discard. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_managed_discard_prefetch(
    kiln_buffer_t* buffer, kiln_stream_t* stream, uint64_t offset,
    uint64_t bytes, kiln_device_t* to);

// What may be said of managed memory.
enum {
  KILN_ADVICE_READ_MOSTLY = 1,  // each reader may have a copy; of no place
  KILN_ADVICE_PREFERRED = 2,    // where it should stay
  KILN_ADVICE_USED_BY = 3,      // who will use it, wherever it is
};

// Says it (`on`), or takes it back. `place` is the device that is meant, NULL
// the host. Statuses as prefetch, and INVALID_ARGUMENT for an unknown advice.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_managed_advise(kiln_buffer_t* buffer, uint64_t offset, uint64_t bytes,
                    uint32_t advice, bool on, kiln_device_t* place);

// Places that are no device.
enum { KILN_MANAGED_HOST = -1, KILN_MANAGED_NOWHERE = -2 };

// What was said. thread-compatible
typedef struct kiln_managed_info_t {
  uint32_t read_mostly;  // 1: of all of it
  // A device's number, KILN_MANAGED_HOST, or KILN_MANAGED_NOWHERE where nothing
  // was said or not the same of all of it.
  int32_t preferred;
  int32_t prefetched;  // where the last prefetch went
  uint32_t reserved;   // 0
} kiln_managed_info_t;

// Asks what was said of [offset, offset + bytes), of which there must be one at
// least. Statuses as prefetch. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_managed_query(kiln_buffer_t* buffer, uint64_t offset, uint64_t bytes,
                   kiln_managed_info_t* out_info);

KILN_EXTERN_C_END

#endif  // KILN_MANAGED_H_
