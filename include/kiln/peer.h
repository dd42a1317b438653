// SPDX-License-Identifier: Apache-2.0
//
// device: what one device may do with another's memory.
//
// A kernel reaches memory of another device only with access to it, which is
// given in one direction at a time: to memory of kiln_buffer_create without a
// stream by a kiln_peer_t, to that of a pool by kiln_pool_allow. Copies
// (kiln_buffer_copy) and waiting for events need no access.
#ifndef KILN_PEER_H_
#define KILN_PEER_H_

#include "kiln/device.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// The way from one device to another. thread-compatible
typedef struct kiln_peer_info_t {
  uint32_t access;        // 1: access can be given
  uint32_t atomics;       // 1: every atomic operation works
  uint32_t some_atomics;  // 1: some do (a driver of CUDA 13.0 tells)
  uint32_t arrays;        // 1: textures and surfaces of its arrays work
  int32_t rank;           // of the link, as the driver counts: 0 is the fastest
  uint32_t reserved;      // 0
} kiln_peer_info_t;

// Asks what kernels of `device` could do with memory of `other`. Gives nobody
// access.
//
//   INVALID_ARGUMENT  one device, or two of different drivers
//   DEVICE_LOST, DRIVER_ERROR
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_peer_query(
    kiln_device_t* device, kiln_device_t* other, kiln_peer_info_t* out_info);

// Access of kernels of one device to memory of another. thread-safe
//
// Reference-counted. Retains both devices.
typedef struct kiln_peer_t kiln_peer_t;

// Gives kernels of `device` access to memory of `other` that is not of a pool,
// what is there and what will be, until the last kiln_peer_t of this pair is
// released that devices of one runtime have.
//
// Access belongs to the context, which is everybody's in the process. What
// somebody else has enabled is used as it is, and never taken back. Who uses
// what Kiln enabled, and has not a kiln_peer_t, loses it with Kiln's last.
//
//   INVALID_ARGUMENT  one device, or two of different drivers
//   UNSUPPORTED       the devices do not reach each other
//   LIMIT_EXCEEDED    too many devices have access already
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_peer`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_peer_create(kiln_device_t* device,
                                                      kiln_device_t* other,
                                                      kiln_peer_t** out_peer);

// One reference more, one less. NULL is accepted. The last release may take
// access back: no kernel that uses it may run then. Since 0.1.
KILN_API void kiln_peer_retain(kiln_peer_t* peer);
KILN_API void kiln_peer_release(kiln_peer_t* peer);

// Whose kernels have access, and to whose memory. Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_peer_device(const kiln_peer_t* peer);
KILN_API kiln_device_t* kiln_peer_other(const kiln_peer_t* peer);

KILN_EXTERN_C_END

#endif  // KILN_PEER_H_
