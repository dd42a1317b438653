// SPDX-License-Identifier: Apache-2.0
//
// device: virtual memory: device memory that grows without moving.
//
// A range of device addresses is reserved once and costs nothing; memory is
// mapped at its beginning, and more after that, on demand. Existing addresses
// never change.
#ifndef KILN_VIRTUAL_H_
#define KILN_VIRTUAL_H_

#include "kiln/device.h"
#include "kiln/memory.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// Device memory that grows. thread-compatible
//
// Growing is limited to one thread at a time, which the caller ensures; retain,
// release, and buffers made of it may be used by any. Reference-counted.
// Retains its device. The last release waits for the device's work, then unmaps
// the memory and releases the addresses.
typedef struct kiln_virtual_t kiln_virtual_t;

// How virtual memory is made. thread-compatible
typedef struct kiln_virtual_options_t {
  uint32_t struct_size;  // sizeof(kiln_virtual_options_t)

  // KILN_SWITCH_*: the device may write to it. Default: on.
  uint32_t writable;

  // Addresses to reserve: how far it can ever grow. Rounded up to whole pages.
  // Default: the device's memory, or the first size if that is more.
  uint64_t reserve_bytes;
} kiln_virtual_options_t;

// All defaults. Since 0.1.
static inline kiln_virtual_options_t kiln_virtual_options_default(void) {
  kiln_virtual_options_t options = {(uint32_t)sizeof(options), 0, 0};
  return options;
}

// Reserves addresses and maps at least `size_bytes` of memory to them (0: none
// yet); its content is undefined. `options` may be NULL.
//
//   UNSUPPORTED           the device has no virtual memory
//   DEVICE_OUT_OF_MEMORY  too little memory or addresses
//   INVALID_ARGUMENT      `reserve_bytes` below `size_bytes`
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_virtual`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_virtual_create(
    kiln_device_t* device, uint64_t size_bytes,
    const kiln_virtual_options_t* options, kiln_virtual_t** out_virtual);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_virtual_retain(kiln_virtual_t* memory);
KILN_API void kiln_virtual_release(kiln_virtual_t* memory);

// Grows to at least `size_bytes`; a smaller size changes nothing. Existing
// memory stays where it is, with its content, and may be in use meanwhile; on
// failure nothing has changed.
//
//   OUT_OF_RANGE          more than was reserved
//   LIMIT_EXCEEDED        grown 256 times already
//   DEVICE_OUT_OF_MEMORY, DEVICE_LOST, DRIVER_ERROR
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_virtual_grow(kiln_virtual_t* memory,
                                                       uint64_t size_bytes);

// The device it was made on. Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_virtual_device(const kiln_virtual_t* memory);

// The first device address. Never changes. Since 0.1.
KILN_API uint64_t kiln_virtual_address(const kiln_virtual_t* memory);

// Bytes with mapped memory, and bytes reserved: whole pages. Since 0.1.
KILN_API uint64_t kiln_virtual_size(const kiln_virtual_t* memory);
KILN_API uint64_t kiln_virtual_reserved(const kiln_virtual_t* memory);

// A buffer over the current memory, for copies, fills and kernels. It retains
// `memory`; it does not grow with it, and stays valid when that grows.
// DEVICE_LOST, OUT_OF_MEMORY. The caller owns `*out_buffer`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_virtual_buffer(kiln_virtual_t* memory, kiln_buffer_t** out_buffer);

KILN_EXTERN_C_END

#endif  // KILN_VIRTUAL_H_
