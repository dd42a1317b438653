// SPDX-License-Identifier: Apache-2.0
//
// device: arrays, textures and surfaces.
//
// An array is device memory of one to three dimensions, in layers or as the
// faces of cubes, with a texel layout chosen by the device; it has no address.
// A mipmap has several such arrays, each half as long as the one before.
// Kernels read it through a texture, which filters, and what is outside of
// which is defined; they read and write it through a surface. A texture may
// also be made over a mipmap, which it reads at levels of detail, or over a
// buffer.
//
// Both are numbers to a kernel: pass kiln_texture_handle or
// kiln_surface_handle by kiln_arg_u64, and keep the object until the kernel is
// done. The software device has none of this.
#ifndef KILN_TEXTURE_H_
#define KILN_TEXTURE_H_

#include "kiln/device.h"
#include "kiln/memory.h"
#include "kiln/status.h"
#include "kiln/stream.h"

KILN_EXTERN_C_BEGIN

// What a channel of a texel is.
enum {
  KILN_TEXEL_U8 = 1,
  KILN_TEXEL_U16 = 2,
  KILN_TEXEL_U32 = 3,
  KILN_TEXEL_I8 = 4,
  KILN_TEXEL_I16 = 5,
  KILN_TEXEL_I32 = 6,
  KILN_TEXEL_F16 = 7,
  KILN_TEXEL_F32 = 8,
};

// An array, or a level of a mipmap. thread-safe
//
// Reference-counted. Retains its device. The last release waits for the
// device's work and destroys it; a level retains its mipmap instead, which ends
// it.
typedef struct kiln_array_t kiln_array_t;

// What an array is made of. thread-compatible
typedef struct kiln_array_options_t {
  uint32_t struct_size;  // sizeof(kiln_array_options_t)
  uint32_t format;       // KILN_TEXEL_*. Default: KILN_TEXEL_F32
  uint32_t channels;     // 1, 2 or 4. Default: 1
  uint32_t surface;      // KILN_SWITCH_*: surfaces may be made. Default: off
  uint64_t width;        // texels, at least 1
  uint64_t height;       // 0: an array of one dimension
  uint64_t depth;        // 0: of two; only with a height. Layers or faces
  uint32_t layered;      // KILN_SWITCH_*: `depth` counts layers. Default: off
  // KILN_SWITCH_*: the depth's six layers are the faces of a cube, as high as
  // they are wide; with `layered`, of several cubes. Default: off
  uint32_t cube;
  uint32_t gather;  // KILN_SWITCH_*: for tld4; of two dimensions. Default: off
  uint32_t reserved;
} kiln_array_options_t;

// All defaults; a width is needed. Since 0.1.
static inline kiln_array_options_t kiln_array_options_default(void) {
  kiln_array_options_t options = {
      (uint32_t)sizeof(options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  return options;
}

// Makes an array; its content is undefined.
//
//   INVALID_ARGUMENT      a width of 0, a depth without a height, channels, a
//                         invalid cube, `gather` of other dimensions
//   LIMIT_EXCEEDED        a side longer, or more layers than the device takes:
//                         which, and the device's
//   UNSUPPORTED           a device without arrays
//   DEVICE_OUT_OF_MEMORY, DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_array`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_array_create(kiln_device_t* device, const kiln_array_options_t* options,
                  kiln_array_t** out_array);

// Wraps a foreign array (CUarray) of the device's context, which is used as it
// is and never destroyed. `owner` may be NULL (kiln_owner_t). The handle of an
// array that was made here returns that array, retained, and the owner is
// released at once. Without an owner, so does that of an array that was adopted
// without one; with an owner it is an object of its own.
//
//   UNSUPPORTED  texels of other formats than KILN_TEXEL_*; a device without
//                arrays
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_array`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_array_adopt(kiln_device_t* device,
                                                      void* handle,
                                                      const kiln_owner_t* owner,
                                                      kiln_array_t** out_array);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_array_retain(kiln_array_t* array);
KILN_API void kiln_array_release(kiln_array_t* array);

// The device it was made on. Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_array_device(const kiln_array_t* array);

// The driver's handle (CUarray). Valid as long as the array lives. Borrowed.
// Since 0.1.
KILN_API void* kiln_array_handle(const kiln_array_t* array);

// Bytes of all texels, with packed rows. Since 0.1.
KILN_API uint64_t kiln_array_size(const kiln_array_t* array);

// Copies the whole array from or to host memory or a buffer from `offset` on,
// rows and slices packed, in the order of `stream`. `data` stays as it is until
// the stream has passed; `bytes` must be kiln_array_size.
//
//   OUT_OF_RANGE      another number of bytes, a buffer that is too short
//   INVALID_ARGUMENT  a stream or buffer of another device
//   DEVICE_LOST, DRIVER_ERROR
//
// Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_array_write_async(kiln_array_t* array, kiln_stream_t* stream,
                       uint64_t bytes, const void* data);
KILN_API KILN_MUST_USE kiln_status_t kiln_array_read_async(
    kiln_array_t* array, kiln_stream_t* stream, uint64_t bytes, void* data);
KILN_API KILN_MUST_USE kiln_status_t
kiln_array_copy_from_async(kiln_array_t* array, kiln_stream_t* stream,
                           const kiln_buffer_t* buffer, uint64_t offset);
KILN_API KILN_MUST_USE kiln_status_t
kiln_array_copy_to_async(kiln_array_t* array, kiln_stream_t* stream,
                         kiln_buffer_t* buffer, uint64_t offset);

// ---- Mipmaps ----

// Arrays of one format, each half as long as the one before. thread-safe
//
// Reference-counted. Retains its device. The last release waits for the
// device's work and destroys it with its levels.
typedef struct kiln_mipmap_t kiln_mipmap_t;

// Makes a mipmap whose level 0 is what `options` say, of `levels` levels; 0: of
// as many as lead down to one texel. What is in them is undefined.
//
//   LIMIT_EXCEEDED  more levels than lead down to one texel, or a side longer
//                   than the device takes of a mipmap: another limit than that
//                   of arrays
//   and the other statuses of kiln_array_create
//
// The caller owns `*out_mipmap`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_mipmap_create(kiln_device_t* device, const kiln_array_options_t* options,
                   uint32_t levels, kiln_mipmap_t** out_mipmap);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_mipmap_retain(kiln_mipmap_t* mipmap);
KILN_API void kiln_mipmap_release(kiln_mipmap_t* mipmap);

// The device it was made on. Borrowed. Since 0.1.
KILN_API kiln_device_t* kiln_mipmap_device(const kiln_mipmap_t* mipmap);

// The driver's handle (CUmipmappedArray). Valid as long as the mipmap lives.
// Borrowed. Since 0.1.
KILN_API void* kiln_mipmap_handle(const kiln_mipmap_t* mipmap);

// How many levels it has: at least 1. Since 0.1.
KILN_API uint32_t kiln_mipmap_level_count(const kiln_mipmap_t* mipmap);

// A level as an array, which is copied, and written through surfaces, like any
// other; it retains the mipmap. OUT_OF_RANGE for a level that does not exist,
// DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY. The caller owns `*out_array`. Since
// 0.1.
KILN_API KILN_MUST_USE kiln_status_t kiln_mipmap_level(
    kiln_mipmap_t* mipmap, uint32_t level, kiln_array_t** out_array);

// ---- Textures ----

// What is read outside of the texels, for each dimension.
enum {
  KILN_TEXTURE_CLAMP = 0,   // the nearest
  KILN_TEXTURE_WRAP = 1,    // from the other end; normalized coordinates only
  KILN_TEXTURE_MIRROR = 2,  // back again; normalized coordinates only
  KILN_TEXTURE_BORDER = 3,  // `border`
};

// A texture. thread-safe
//
// Reference-counted. Retains its array, mipmap or buffer. The last release
// waits for the device's work and destroys it.
typedef struct kiln_texture_t kiln_texture_t;

// How a texture is read. thread-compatible
typedef struct kiln_texture_options_t {
  uint32_t struct_size;  // sizeof(kiln_texture_options_t)
  uint32_t address[3];   // KILN_TEXTURE_*
  uint32_t linear;       // KILN_SWITCH_*: between texels. Default: the nearest
  uint32_t normalized;   // KILN_SWITCH_*: coordinates from 0 to 1. Default: off
  // KILN_SWITCH_*: integers of 8 and 16 bits are read as floats from 0 or -1
  // to 1. Default: off, as they are.
  uint32_t as_float;
  uint32_t srgb;  // KILN_SWITCH_*: 8 bits as floats by the sRGB curve
  float border[4];
  // KILN_SWITCH_*: between levels of a mipmap. Default: the nearest
  uint32_t level_linear;
  float level_bias;     // added to the requested level
  float level_least;    // the first that is read
  float level_most;     // the last; 0: all
  uint32_t anisotropy;  // samples along a slope, 1 to 16. Default: the driver's
  uint32_t exact;       // KILN_SWITCH_*: no shortcuts between levels
  uint32_t seamless;    // KILN_SWITCH_*: across the edges of a cube's faces
  uint32_t reserved;
} kiln_texture_options_t;

// All defaults. Since 0.1.
static inline kiln_texture_options_t kiln_texture_options_default(void) {
  kiln_texture_options_t options = {(uint32_t)sizeof(options),
                                    {0, 0, 0},
                                    0,
                                    0,
                                    0,
                                    0,
                                    {0, 0, 0, 0},
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0};
  return options;
}

// Texels in a buffer. thread-compatible
typedef struct kiln_texels_t {
  uint32_t struct_size;  // sizeof(kiln_texels_t)
  uint32_t format;       // KILN_TEXEL_*. Default: KILN_TEXEL_F32
  uint32_t channels;     // 1, 2 or 4. Default: 1
  uint32_t reserved;
  uint64_t offset;     // bytes; with the buffer's address a multiple of the
                       // device's texture alignment
  uint64_t width;      // texels
  uint64_t height;     // rows. Default 0: one dimension, without filter
  uint64_t row_bytes;  // from row to row, a multiple of the device's pitch
                       // alignment; with a height only
} kiln_texels_t;

// All defaults; a width is needed. Since 0.1.
static inline kiln_texels_t kiln_texels_default(void) {
  kiln_texels_t texels = {(uint32_t)sizeof(texels), 0, 0, 0, 0, 0, 0, 0};
  return texels;
}

// Makes a texture over an array, a mipmap or a buffer. `options` may be NULL,
// but for a mipmap, whose coordinates must be `normalized`.
//
//   INVALID_ARGUMENT  KILN_TEXTURE_WRAP or _MIRROR without `normalized`,
//                     `linear` where integers are read as they are, `level_...`
//                     over no mipmap, `seamless` over no cube, `srgb` of other
//                     texels than KILN_TEXEL_U8; an address or pitch that is
//                     not aligned
//   LIMIT_EXCEEDED    more texels, rows or bytes of a row than a device takes
//   OUT_OF_RANGE      texels beyond the end of the buffer
//   UNSUPPORTED       a device without textures
//   DEVICE_LOST, DRIVER_ERROR, OUT_OF_MEMORY
//
// The caller owns `*out_texture`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_texture_create(kiln_array_t* array, const kiln_texture_options_t* options,
                    kiln_texture_t** out_texture);
KILN_API KILN_MUST_USE kiln_status_t kiln_texture_create_mipmap(
    kiln_mipmap_t* mipmap, const kiln_texture_options_t* options,
    kiln_texture_t** out_texture);
KILN_API KILN_MUST_USE kiln_status_t kiln_texture_create_buffer(
    kiln_buffer_t* buffer, const kiln_texels_t* texels,
    const kiln_texture_options_t* options, kiln_texture_t** out_texture);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_texture_retain(kiln_texture_t* texture);
KILN_API void kiln_texture_release(kiln_texture_t* texture);

// What a kernel takes as a `.u64` value (CUtexObject). Valid as long as the
// texture lives. Since 0.1.
KILN_API uint64_t kiln_texture_handle(const kiln_texture_t* texture);

// ---- Surfaces ----

// A surface. thread-safe
//
// Reference-counted. Retains its array. The last release waits for the device's
// work and destroys it.
typedef struct kiln_surface_t kiln_surface_t;

// Makes a surface over an array that was made with `surface`: INVALID_ARGUMENT
// over another. UNSUPPORTED (a device without surfaces), DEVICE_LOST,
// DRIVER_ERROR, OUT_OF_MEMORY. The caller owns `*out_surface`. Since 0.1.
KILN_API KILN_MUST_USE kiln_status_t
kiln_surface_create(kiln_array_t* array, kiln_surface_t** out_surface);

// Adds or releases a reference. NULL is accepted. Since 0.1.
KILN_API void kiln_surface_retain(kiln_surface_t* surface);
KILN_API void kiln_surface_release(kiln_surface_t* surface);

// What a kernel takes as a `.u64` value (CUsurfObject). Valid as long as the
// surface lives. Since 0.1.
KILN_API uint64_t kiln_surface_handle(const kiln_surface_t* surface);

KILN_EXTERN_C_END

#endif  // KILN_TEXTURE_H_
