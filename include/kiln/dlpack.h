// SPDX-License-Identifier: Apache-2.0
//
// device: memory passed to other libraries, and taken from them, by DLPack: one
// struct with address, device, type and shape, and a function that the consumer
// calls when it is done.
//
// The types are those of dlpack.h under names of our own, with the same layout:
// a kiln_dlpack_t* is a DLManagedTensorVersioned* of version 1, which Python
// passes in a capsule named "dltensor_versioned", and a kiln_dlpack_legacy_t* a
// DLManagedTensor* of the versions before, in a capsule named "dltensor". The
// two sides must ensure that the bytes are ready, with a stream or an event.
#ifndef KILN_DLPACK_H_
#define KILN_DLPACK_H_

#include "kiln/device.h"
#include "kiln/memory.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// Where memory is: DLDeviceType.
enum {
  KILN_DLPACK_CPU = 1,
  KILN_DLPACK_CUDA = 2,
  KILN_DLPACK_CUDA_HOST = 3,  // page-locked
  KILN_DLPACK_CUDA_MANAGED = 13,
};

// The kind of an element: DLDataTypeCode.
enum {
  KILN_DLPACK_INT = 0,
  KILN_DLPACK_UINT = 1,
  KILN_DLPACK_FLOAT = 2,
  KILN_DLPACK_OPAQUE = 3,
  KILN_DLPACK_BFLOAT = 4,
  KILN_DLPACK_COMPLEX = 5,
  KILN_DLPACK_BOOL = 6,
};

// Bits of `flags`.
#define KILN_DLPACK_READ_ONLY UINT64_C(1)
#define KILN_DLPACK_IS_COPIED UINT64_C(2)

enum { KILN_DLPACK_MAJOR = 1, KILN_DLPACK_MINOR = 0 };

// DLDevice. thread-compatible
typedef struct kiln_dlpack_device_t {
  int32_t type;
  int32_t id;
} kiln_dlpack_device_t;

// DLDataType. thread-compatible
typedef struct kiln_dlpack_type_t {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} kiln_dlpack_type_t;

// DLTensor. thread-compatible
typedef struct kiln_dlpack_tensor_t {
  void* data;
  kiln_dlpack_device_t device;
  int32_t rank;
  kiln_dlpack_type_t type;
  int64_t* shape;
  int64_t* strides;  // in elements; NULL: the last index is the densest
  uint64_t byte_offset;
} kiln_dlpack_tensor_t;

// DLManagedTensorVersioned. thread-compatible
//
// Its owner calls `deleter` once, on any thread, unless it is NULL.
typedef struct kiln_dlpack_t {
  uint32_t major;
  uint32_t minor;
  void* owner;  // of its producer
  void (*deleter)(struct kiln_dlpack_t* self);
  uint64_t flags;
  kiln_dlpack_tensor_t tensor;
} kiln_dlpack_t;

// DLManagedTensor: without a version, and without flags. thread-compatible
//
// Its owner calls `deleter` once, on any thread, unless it is NULL.
typedef struct kiln_dlpack_legacy_t {
  kiln_dlpack_tensor_t tensor;
  void* owner;  // of its producer
  void (*deleter)(struct kiln_dlpack_legacy_t* self);
} kiln_dlpack_legacy_t;

enum { KILN_DLPACK_RANK_MOST = 64 };

// How a buffer is exported. thread-compatible
typedef struct kiln_dlpack_view_t {
  uint32_t struct_size;     // sizeof(kiln_dlpack_view_t)
  uint32_t rank;            // of `shape`, KILN_DLPACK_RANK_MOST at most
  kiln_dlpack_type_t type;  // default: bytes
  uint32_t read_only;       // 1: consumers must not write
  uint64_t offset;          // in bytes, where it begins
  // `rank` numbers, the last index the densest. NULL: one dimension, of the
  // bytes from `offset` on.
  const int64_t* shape;
} kiln_dlpack_view_t;

// All defaults: the whole buffer, as bytes. Since 0.1.
static inline kiln_dlpack_view_t kiln_dlpack_view_default(void) {
  kiln_dlpack_view_t view = {
      (uint32_t)sizeof(view), 0, {KILN_DLPACK_UINT, 8, 1}, 0, 0, NULL};
  return view;
}

// Exports a buffer to another library, which retains it until it calls the
// deleter. `view` may be NULL. Memory of a GPU is KILN_DLPACK_CUDA, _CUDA_HOST
// or _CUDA_MANAGED by its kind. The software device's pinned and managed memory
// is the host's and KILN_DLPACK_CPU; its device memory has addresses without
// meaning outside it.
//
//   UNSUPPORTED       device memory of the software device
//   OUT_OF_RANGE      the view is larger than the buffer
//   INVALID_ARGUMENT  a type that is not a whole number of bytes, a negative or
//                     too long shape
//   OUT_OF_MEMORY
//
// The caller owns `*out_tensor`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_dlpack_export(kiln_buffer_t* buffer, const kiln_dlpack_view_t* view,
                   kiln_dlpack_t** out_tensor);

// Wraps what another library exports, as kiln_buffer_adopt: the bytes; the
// caller reads type and shape before. The deleter is called after the last
// release; on failure the caller still owns the tensor. Kiln does not ask for
// KILN_DLPACK_READ_ONLY: the caller must not write then.
//
//   INCOMPATIBLE      another major version than 1
//   UNSUPPORTED       memory of none of the four kinds; elements that are not
//                     contiguous; no elements
//   INVALID_ARGUMENT  memory of another device, or that the driver does not
//                     know
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_buffer`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_dlpack_import(
    kiln_device_t* device, kiln_dlpack_t* tensor, kiln_buffer_t** out_buffer);

// kiln_dlpack_export for consumers without support for version 1, which has no
// read-only flag.
//
//   UNSUPPORTED  also a view that is read_only
//
// else as kiln_dlpack_export. The caller owns `*out_tensor`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_dlpack_export_legacy(kiln_buffer_t* buffer, const kiln_dlpack_view_t* view,
                          kiln_dlpack_legacy_t** out_tensor);

// kiln_dlpack_import for tensors without a version: never INCOMPATIBLE, else
// the same statuses, and the same ownership. The caller owns `*out_buffer`.
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_dlpack_import_legacy(kiln_device_t* device, kiln_dlpack_legacy_t* tensor,
                          kiln_buffer_t** out_buffer);

KILN_EXTERN_C_END

#endif  // KILN_DLPACK_H_
