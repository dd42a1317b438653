// SPDX-License-Identifier: Apache-2.0
//
// device: prefetch and advice for managed memory.
//
// Buffers of KILN_MEMORY_MANAGED migrate to their users, a page at a time.
// These calls avoid that: except for discarding they do not change results, and
// need a driver of CUDA 12.2. The software device's managed memory does not
// move; it checks and records the calls.
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

// The bytes are not needed any more: they must not be read before they are
// written again, and migrating the pages does not copy them. Needs a driver of
// CUDA 13.0, else UNSUPPORTED. Other statuses as prefetch. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_managed_discard(kiln_buffer_t* buffer,
                                                          kiln_stream_t* stream,
                                                          uint64_t offset,
                                                          uint64_t bytes);

// The same, and the pages move to `to`, a device, or with NULL the host.
// Statuses as discard. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_managed_discard_prefetch(
    kiln_buffer_t* buffer, kiln_stream_t* stream, uint64_t offset,
    uint64_t bytes, kiln_device_t* to);

// Advice on managed memory.
enum {
  KILN_ADVICE_READ_MOSTLY = 1,  // each reader may have a copy; without a place
  KILN_ADVICE_PREFERRED = 2,    // its preferred place
  KILN_ADVICE_USED_BY = 3,      // its users, wherever it is
};

// Sets an advice (`on`), or removes it. `place` is the device, NULL the host.
// Statuses as prefetch, and INVALID_ARGUMENT for an unknown advice. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_managed_advise(kiln_buffer_t* buffer, uint64_t offset, uint64_t bytes,
                    uint32_t advice, bool on, kiln_device_t* place);

// Places other than devices.
enum { KILN_MANAGED_HOST = -1, KILN_MANAGED_NOWHERE = -2 };

// The advice and prefetches in effect. thread-compatible
typedef struct kiln_managed_info_t {
  uint32_t read_mostly;  // 1: of all of it
  // A device's number, KILN_MANAGED_HOST, or KILN_MANAGED_NOWHERE if nothing is
  // set or the range is not uniform.
  int32_t preferred;
  int32_t prefetched;  // where the last prefetch went
  uint32_t reserved;   // 0
} kiln_managed_info_t;

// Queries the advice for [offset, offset + bytes), which must not be empty.
// Statuses as prefetch. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_managed_query(kiln_buffer_t* buffer, uint64_t offset, uint64_t bytes,
                   kiln_managed_info_t* out_info);

KILN_EXTERN_C_END

#endif  // KILN_MANAGED_H_
