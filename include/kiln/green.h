// SPDX-License-Identifier: Apache-2.0
//
// device: parts of a device: some of its multiprocessors as a device.
//
// What CUDA calls a green context. A part is a kiln_device_t like any other:
// streams made on it run on its multiprocessors and on no others, so that long
// work on one part does not keep another from starting. The parts of one split
// have no multiprocessor in common.
//
// Parts share the memory and the code of the device that was split: a buffer
// or a kernel made on that, or on another part of it, is used on a stream of
// a part as it is. Events are recorded on streams of the device they were made
// on, and waited for anywhere.
//
// A driver lets the context of a part be current for one thread at a time.
// Launches, copies, fills and records on streams made on the part, and making
// such a stream (drivers from 12.5), need no current context and may come from
// any thread; all other use of a part, including its own default streams and
// releases, is limited to one thread at a time; the caller ensures this.
#ifndef KILN_GREEN_H_
#define KILN_GREEN_H_

#include "kiln/device.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// How a device is split. thread-compatible
typedef struct kiln_split_options_t {
  uint32_t struct_size;  // sizeof(kiln_split_options_t)

  // Multiprocessors of each part, at least: a device rounds up. Default: the
  // minimum size of a part.
  uint32_t multiprocessors;

  // KILN_SWITCH_*: assign multiprocessors individually, without grouping. Parts
  // may then be smaller, and have no large clusters. Default: off.
  uint32_t single;

  // KILN_SWITCH_*: parts that allow the largest clusters (compute capability
  // 9.0 and later). Not together with `single`. Default: off.
  uint32_t large_clusters;
} kiln_split_options_t;

// All defaults. Since 0.1.
static inline kiln_split_options_t kiln_split_options_default(void) {
  kiln_split_options_t options = {(uint32_t)sizeof(options), 0, 0, 0};
  return options;
}

// What a device can be split into. thread-compatible
//
// Only the library makes one; fields may be appended in later versions.
typedef struct kiln_split_t {
  uint32_t parts;            // at most
  uint32_t multiprocessors;  // of each of them
  uint32_t rest;             // left over, if all parts are taken
  uint32_t all;              // of the device
} kiln_split_t;

// Queries the result of a split without making it. `options` may be NULL. The
// device may be a part.
//
//   UNSUPPORTED       a driver before CUDA 12.4, or a device without parts
//   INVALID_ARGUMENT  `single` together with `large_clusters`
//   OUT_OF_RANGE      more multiprocessors than the device has
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_device_query_split(
    kiln_device_t* device, const kiln_split_options_t* options,
    kiln_split_t* out_split);

// Splits off `part_count` parts (1 to 256), as `out_parts[0]` and on; the
// remaining multiprocessors are `*out_rest`, NULL if there are none. `out_rest`
// and `options` may be NULL. The device may be a part. It remains usable as
// before: only its parts are restricted to their multiprocessors.
//
// The name of a part is the device's and its number, "cuda:0/2", or
// "cuda:0/rest", and kiln_device_info has its number of multiprocessors. It
// retains the device. Its last release destroys its context; if that is current
// for the releasing thread it is kept, which is logged. A part whose kernel has
// faulted is lost together with the device and all its parts.
//
// Streams of a part are never ordered with the default stream:
// `with_default_stream` is INVALID_ARGUMENT there.
//
//   OUT_OF_RANGE   more parts than kiln_device_query_split reports
//   and the statuses of that
//
// Makes all or none. The caller owns the parts. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_device_split(
    kiln_device_t* device, const kiln_split_options_t* options,
    uint32_t part_count, kiln_device_t** out_parts, kiln_device_t** out_rest);

// The device that was split; NULL for one that is not a part. Borrowed. Since
// 0.1.
KILN_API kiln_device_t* kiln_device_parent(const kiln_device_t* device);

KILN_EXTERN_C_END

#endif  // KILN_GREEN_H_
