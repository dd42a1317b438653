// SPDX-License-Identifier: Apache-2.0
//
// device: access of one device to another's memory.
//
// A kernel can use memory of another device only with access to it, which is
// granted in one direction at a time: to memory of kiln_buffer_create without a
// stream by a kiln_peer_t, to that of a pool by kiln_pool_allow. Copies
// (kiln_buffer_copy) and waiting for events need no access.
#ifndef KILN_PEER_H_
#define KILN_PEER_H_

#include "kiln/device.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// The link from one device to another. thread-compatible
typedef struct kiln_peer_info_t {
  uint32_t access;        // 1: access can be granted
  uint32_t atomics;       // 1: every atomic operation works
  uint32_t some_atomics;  // 1: some do (reported by drivers of CUDA 13.0)
  uint32_t arrays;        // 1: textures and surfaces of its arrays work
  int32_t rank;           // of the link, as the driver counts: 0 is the fastest
  uint32_t reserved;      // 0
} kiln_peer_info_t;

// Queries what kernels of `device` could do with memory of `other`. Grants no
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

// Grants kernels of `device` access to memory of `other` that is not of a pool,
// existing and future, until the last kiln_peer_t of this pair of devices of
// one runtime is released.
//
// Access belongs to the context, which the whole process shares. Access enabled
// by other code is used as it is, and never revoked. Code that relies on access
// enabled by Kiln without a kiln_peer_t loses it with Kiln's last one.
//
//   INVALID_ARGUMENT  one device, or two of different drivers
//   UNSUPPORTED       the devices cannot access each other
//   LIMIT_EXCEEDED    too many devices have access already
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_peer`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_peer_create(kiln_device_t* device,
                                                      kiln_device_t* other,
                                                      kiln_peer_t** out_peer);

// Adds or releases a reference. NULL is accepted. The last release may revoke
// access: no kernel that uses it may run then. Since 0.1.
KILN_API void kiln_peer_retain(kiln_peer_t* peer);
KILN_API void kiln_peer_release(kiln_peer_t* peer);

// The device whose kernels have access, and the device whose memory they
// access. Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_peer_device(const kiln_peer_t* peer);
KILN_API kiln_device_t* kiln_peer_other(const kiln_peer_t* peer);

KILN_EXTERN_C_END

#endif  // KILN_PEER_H_
