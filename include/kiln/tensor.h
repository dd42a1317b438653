// SPDX-License-Identifier: Apache-2.0
//
// device: tensor maps: what the copies of boxes of a tensor (cp.async.bulk.
// tensor) know about its memory. Compute capability 9.0 and later.
//
// A map is a value: 128 bytes, which contain the tensor's address and are
// passed to a kernel as they are, by kiln_arg_bytes. It retains nothing; the
// memory must stay valid while kernels use the map.
//
// What no map can refuse, since the kernel gives the coordinates: a box or a
// column begins at a multiple of 16 bytes of memory, so with elements of 4
// bytes at a multiple of 4. As address and strides are such multiples (the
// driver API, cuTensorMapEncodeTiled), this is about the innermost coordinate
// alone, which may be negative. The PTX ISA documents this for packed types
// only ("Restrictions on Tensor Copy instructions"); for every other type
// tested, a device of compute capability 9.0 ends the kernel that breaks it
// with CUDA_ERROR_ILLEGAL_INSTRUCTION and is lost to the process: DEVICE_LOST.
#ifndef KILN_TENSOR_H_
#define KILN_TENSOR_H_

#include "kiln/device.h"
#include "kiln/status.h"

KILN_EXTERN_C_BEGIN

// What an element is: the driver's numbers and one.
enum {
  KILN_TENSOR_U8 = 1,
  KILN_TENSOR_U16 = 2,
  KILN_TENSOR_U32 = 3,
  KILN_TENSOR_I32 = 4,
  KILN_TENSOR_U64 = 5,
  KILN_TENSOR_I64 = 6,
  KILN_TENSOR_F16 = 7,
  KILN_TENSOR_F32 = 8,
  KILN_TENSOR_F64 = 9,
  KILN_TENSOR_BF16 = 10,
  KILN_TENSOR_F32_FTZ = 11,
  KILN_TENSOR_TF32 = 12,
  KILN_TENSOR_TF32_FTZ = 13,
  // Sixteen packed numbers at a time: CUDA 12.8, compute capability 10.0.
  // Sizes and boxes count the numbers.
  KILN_TENSOR_U4 = 14,        // 8 bytes, in shared memory too
  KILN_TENSOR_U4_IN_16 = 15,  // 8 bytes, 16 in shared memory
  KILN_TENSOR_U6_IN_16 = 16,  // 12 bytes, 16 in shared memory
};

// How the chunks of 16 bytes of a row are mixed in shared memory.
enum {
  KILN_TENSOR_SWIZZLE_NONE = 0,
  KILN_TENSOR_SWIZZLE_32 = 1,  // within 32 bytes, which is the widest row then
  KILN_TENSOR_SWIZZLE_64 = 2,
  KILN_TENSOR_SWIZZLE_128 = 3,
  // Other chunks within 128 bytes: CUDA 12.8, compute capability 10.0.
  KILN_TENSOR_SWIZZLE_128_BY_32 = 4,
  KILN_TENSOR_SWIZZLE_128_BY_32_FLIPPED = 5,  // 8 bytes, in every other row
  KILN_TENSOR_SWIZZLE_128_BY_64 = 6,
};

// A tensor map: 128 bytes. thread-compatible
//
// In memory that a kernel reads it from, a parameter among that, it is aligned
// to 128 bytes; here it may be anywhere.
typedef struct kiln_tensor_map_t {
  uint64_t words[16];
} kiln_tensor_map_t;

// What a map is of. thread-compatible
typedef struct kiln_tensor_options_t {
  uint32_t struct_size;  // sizeof(kiln_tensor_options_t)
  uint32_t type;         // KILN_TENSOR_*
  uint32_t rank;         // dimensions, 1 to 5; the first is the innermost
  uint32_t interleave;   // 0, or chunks of 16 or of 32 bytes; rank 3 at least
  uint32_t swizzle;      // KILN_TENSOR_SWIZZLE_*
  uint32_t fetch_bytes;  // of the second-level cache: 0, 64, 128 or 256
  uint32_t nan_fill;     // KILN_SWITCH_*: NaN beyond the edges. Default: zeros
  uint32_t reserved;
  uint64_t address;   // a multiple of 16; of 32 with interleave 32
  uint64_t sizes[5];  // elements, 1 to 2^32
  uint64_t
      strides[4];     // bytes from one to the next of dimension 1 and on,
                      // below 2^40, multiples of 16 (of 32 with interleave 32)
  uint32_t box[5];    // elements of a copy, 1 to 256
  uint32_t steps[5];  // every n-th element, 1 to 8. Default: 1
} kiln_tensor_options_t;

// All defaults; type, rank, address, sizes, strides and box are needed.
// Since 0.1.
static inline kiln_tensor_options_t kiln_tensor_options_default(void) {
  kiln_tensor_options_t options = {(uint32_t)sizeof(options),
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   0,
                                   {0, 0, 0, 0, 0},
                                   {0, 0, 0, 0},
                                   {0, 0, 0, 0, 0},
                                   {0, 0, 0, 0, 0}};
  return options;
}

// Makes a map for boxes of a tensor. `*out_map` is zero on failure.
//
//   INVALID_ARGUMENT  which field, its value and what it may be
//   UNSUPPORTED       a device without tensor maps, or without that type or
//                     swizzle
//   DEVICE_LOST, DRIVER_ERROR
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_tensor_map_encode(
    kiln_device_t* device, const kiln_tensor_options_t* options,
    kiln_tensor_map_t* out_map);

// How pixels are taken along their columns.
enum {
  KILN_TENSOR_COLUMNS = 0,           // along all dimensions
  KILN_TENSOR_COLUMNS_WIDE = 1,      // along the width alone, or 128 of it:
  KILN_TENSOR_COLUMNS_WIDE_128 = 2,  // CUDA 12.8, compute capability 10.0
};

// Which pixels of pictures a map is of: im2col. thread-compatible
//
// The tensor is channels, width, then height and depth where its rank has them,
// and number: dimension 0 is the innermost. A copy takes `pixels` consecutive
// pixels, within a box whose first corner is `lower` off the first pixel and
// whose last is `upper` off the last one.
typedef struct kiln_tensor_columns_t {
  uint32_t struct_size;  // sizeof(kiln_tensor_columns_t)
  uint32_t mode;         // KILN_TENSOR_COLUMNS_*
  uint32_t channels;     // of a pixel, 1 to 256
  uint32_t pixels;       // of a copy, 1 to 1024; not of _WIDE_128
  // Of width, height and depth. With rank 3 -32768 to 32767, with 4 -128 to
  // 127, with 5 -16 to 15; with a wide mode only the width, -32768 to 32767.
  int32_t lower[3];
  int32_t upper[3];
} kiln_tensor_columns_t;

// All defaults; channels and pixels are needed. Since 0.1.
static inline kiln_tensor_columns_t kiln_tensor_columns_default(void) {
  kiln_tensor_columns_t columns = {
      (uint32_t)sizeof(columns), 0, 0, 0, {0, 0, 0}, {0, 0, 0}};
  return columns;
}

// The same for pixels of pictures: a rank of 3 to 5, and no `box`, which is
// ignored.
//
//   INVALID_ARGUMENT  which field, its value and what it may be
//   UNSUPPORTED       a device without tensor maps, or without that mode, type
//                     or swizzle; a driver before CUDA 12.8 for those
//   DEVICE_LOST, DRIVER_ERROR
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_tensor_map_encode_columns(
    kiln_device_t* device, const kiln_tensor_options_t* options,
    const kiln_tensor_columns_t* columns, kiln_tensor_map_t* out_map);

KILN_EXTERN_C_END

#endif  // KILN_TENSOR_H_
