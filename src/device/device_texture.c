// SPDX-License-Identifier: Apache-2.0
//
// device: textures and surfaces, through which kernels use arrays.
//
// Their options are checked here against the device's attributes; a driver
// returns INVALID_VALUE for every error. A destroy does not wait for kernels
// that still use a texture, so that is waited for first.
#include <float.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "device/device_scope.h"
#include "device/texture_inside.h"

enum { MOST_ANISOTROPY = 16 };

struct kiln_texture_t {
  kiln_device_t* device;
  atomic_uint references;
  kiln_array_t* array;  // or
  kiln_mipmap_t* mipmap;
  kiln_buffer_t* buffer;  // that it is over
  kiln_cu_texture_t handle;
};

struct kiln_surface_t {
  kiln_array_t* array;
  atomic_uint references;
  kiln_cu_surface_t handle;
};

// What a texture is over, for the checks. one-thread
typedef struct under_t {
  unsigned int format;
  unsigned int flags;  // of the array; 0 over a buffer
  uint32_t levels;     // of a mipmap, or 0
} under_t;

static bool texture_is_float(unsigned int format) {
  return format == KILN_CU_AD_FORMAT_HALF || format == KILN_CU_AD_FORMAT_FLOAT;
}

static bool texture_is_wide(unsigned int format) {
  return format == KILN_CU_AD_FORMAT_UNSIGNED_INT32 ||
         format == KILN_CU_AD_FORMAT_SIGNED_INT32;
}

static kiln_status_t check_aligned(kiln_device_t* device, uint64_t value,
                                   kiln_cu_device_attribute_t id,
                                   const char* what) {
  uint64_t step = 0;
  KILNI_RETURN_IF_ERROR(kilni_device_texture_ask(device, id, &step));
  if (step == 0 || value % step == 0) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(
          INVALID_ARGUMENT,
          "%s of 0x%llx for a texture; \"%s\" requires multiples of %llu", what,
          (unsigned long long)value, device->name, (unsigned long long)step),
      "align it, or copy the texels into an array");
}

// ---- Textures ----

static kiln_status_t texture_check_switches(
    const kiln_texture_options_t* given) {
  KILNI_CHECK_ARGUMENT(given->linear <= KILN_SWITCH_ON, "options.linear");
  KILNI_CHECK_ARGUMENT(given->normalized <= KILN_SWITCH_ON,
                       "options.normalized");
  KILNI_CHECK_ARGUMENT(given->as_float <= KILN_SWITCH_ON, "options.as_float");
  KILNI_CHECK_ARGUMENT(given->srgb <= KILN_SWITCH_ON, "options.srgb");
  KILNI_CHECK_ARGUMENT(given->level_linear <= KILN_SWITCH_ON,
                       "options.level_linear");
  KILNI_CHECK_ARGUMENT(given->exact <= KILN_SWITCH_ON, "options.exact");
  KILNI_CHECK_ARGUMENT(given->seamless <= KILN_SWITCH_ON, "options.seamless");
  KILNI_CHECK_ARGUMENT_SAYS(given->anisotropy <= MOST_ANISOTROPY,
                            "options.anisotropy", "is above 16",
                            "set it to 0 to 16");
  return kiln_ok();
}

// Only a mipmap has levels, and its coordinates are normalized.
static kiln_status_t check_level_options(const kiln_texture_options_t* given,
                                         const under_t* under) {
  const float most = given->level_most == 0 ? FLT_MAX : given->level_most;
  // NaN is none of these.
  KILNI_CHECK_ARGUMENT_SAYS(
      given->level_least >= 0 && given->level_least <= most,
      "options.level_least", "is below 0 or above `level_most`",
      "set it to 0 or more, and to at most `level_most`");
  KILNI_CHECK_ARGUMENT(given->level_most >= 0, "options.level_most");
  KILNI_CHECK_ARGUMENT_SAYS(given->level_bias - given->level_bias == 0,
                            "options.level_bias", "is infinite or NaN",
                            "set it to a number");
  if (under->levels > 0) {
    if (given->normalized == KILN_SWITCH_ON) return kiln_ok();
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "a texture over a mipmap, with coordinates that are not "
                   "normalized"),
        "set `normalized` in kiln_texture_options_t");
  }
  if (given->level_linear != KILN_SWITCH_ON && given->level_bias == 0 &&
      given->level_least == 0 && given->level_most == 0) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "levels of detail for a texture that is not over a mipmap"),
      "leave the fields `level_...` of kiln_texture_options_t at their "
      "defaults, or use kiln_texture_create_mipmap");
}

static kiln_status_t check_filter(const kiln_texture_options_t* given,
                                  unsigned int format) {
  if ((given->linear != KILN_SWITCH_ON &&
       given->level_linear != KILN_SWITCH_ON) ||
      texture_is_float(format) || given->srgb == KILN_SWITCH_ON ||
      (given->as_float == KILN_SWITCH_ON && !texture_is_wide(format))) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "a linear filter over integers that are read as they are"),
      "set `as_float` in kiln_texture_options_t for 8 and 16 bits, or leave "
      "`linear` and `level_linear` off");
}

static kiln_status_t check_sampler(const kiln_texture_options_t* given,
                                   const under_t* under) {
  KILNI_RETURN_IF_ERROR(texture_check_switches(given));
  for (int i = 0; i < 3; i++) {
    uint32_t mode = given->address[i];
    KILNI_CHECK_ARGUMENT(mode <= KILN_TEXTURE_BORDER, "options.address");
    bool turns = mode == KILN_TEXTURE_WRAP || mode == KILN_TEXTURE_MIRROR;
    if (turns && given->normalized != KILN_SWITCH_ON) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_ARGUMENT,
                     "a texture that wraps or mirrors in dimension %d, with "
                     "coordinates that are not normalized",
                     i),
          "set `normalized` in kiln_texture_options_t, or clamp");
    }
  }
  KILNI_CHECK_ARGUMENT_SAYS(
      given->srgb != KILN_SWITCH_ON ||
          under->format == KILN_CU_AD_FORMAT_UNSIGNED_INT8,
      "options.srgb", "is on, of texels that are not unsigned 8-bit integers",
      "leave it off, or use texels of KILN_TEXEL_U8");
  KILNI_CHECK_ARGUMENT_SAYS(given->seamless != KILN_SWITCH_ON ||
                                (under->flags & KILN_CUDA_ARRAY3D_CUBEMAP) != 0,
                            "options.seamless",
                            "is on, of an array that is not a cube",
                            "leave it off, or make the array with `cube`");
  KILNI_RETURN_IF_ERROR(check_level_options(given, under));
  return check_filter(given, under->format);
}

static unsigned int mode_of(uint32_t address) {
  switch (address) {
    case KILN_TEXTURE_WRAP:
      return KILN_CU_TR_ADDRESS_MODE_WRAP;
    case KILN_TEXTURE_MIRROR:
      return KILN_CU_TR_ADDRESS_MODE_MIRROR;
    case KILN_TEXTURE_BORDER:
      return KILN_CU_TR_ADDRESS_MODE_BORDER;
    default:
      return KILN_CU_TR_ADDRESS_MODE_CLAMP;
  }
}

static kiln_cu_sampler_t sampler_of(const kiln_texture_options_t* given,
                                    const under_t* under) {
  const unsigned int format = under->format;
  kiln_cu_sampler_t sampler;
  memset(&sampler, 0, sizeof(sampler));
  for (int i = 0; i < 3; i++) sampler.address[i] = mode_of(given->address[i]);
  sampler.filter = given->linear == KILN_SWITCH_ON
                       ? KILN_CU_TR_FILTER_MODE_LINEAR
                       : KILN_CU_TR_FILTER_MODE_POINT;
  if (!texture_is_float(format) && given->as_float != KILN_SWITCH_ON &&
      given->srgb != KILN_SWITCH_ON) {
    sampler.flags |= KILN_CU_TRSF_READ_AS_INTEGER;
  }
  if (given->normalized == KILN_SWITCH_ON) {
    sampler.flags |= KILN_CU_TRSF_NORMALIZED_COORDINATES;
  }
  if (given->srgb == KILN_SWITCH_ON) sampler.flags |= KILN_CU_TRSF_SRGB;
  if (given->exact == KILN_SWITCH_ON) {
    sampler.flags |= KILN_CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
  }
  if (given->seamless == KILN_SWITCH_ON) {
    sampler.flags |= KILN_CU_TRSF_SEAMLESS_CUBEMAP;
  }
  sampler.anisotropy = given->anisotropy;
  sampler.level_filter = given->level_linear == KILN_SWITCH_ON
                             ? KILN_CU_TR_FILTER_MODE_LINEAR
                             : KILN_CU_TR_FILTER_MODE_POINT;
  sampler.level_bias = given->level_bias;
  sampler.level_least = given->level_least;
  sampler.level_most = given->level_most;
  if (given->level_most == 0 && under->levels > 0) {
    sampler.level_most = (float)(under->levels - 1);
  }
  memcpy(sampler.border, given->border, sizeof(sampler.border));
  return sampler;
}

void kiln_texture_retain(kiln_texture_t* texture) {
  if (texture == NULL) return;
  atomic_fetch_add_explicit(&texture->references, 1, memory_order_relaxed);
}

void kiln_texture_release(kiln_texture_t* texture) {
  if (texture == NULL || kilni_device_is_forked(texture->device)) return;
  if (atomic_fetch_sub_explicit(&texture->references, 1,
                                memory_order_acq_rel) != 1) {
    return;
  }
  kiln_device_t* device = texture->device;
  kiln_array_t* array = texture->array;
  kiln_mipmap_t* mipmap = texture->mipmap;
  kiln_buffer_t* buffer = texture->buffer;
  if (texture->handle != 0) {
    kilni_device_wait_end(device);
    KILNI_DEVICE_END(device, cuTexObjectDestroy, texture->handle);
  }
  kilni_base_free(device->host->allocator, texture, sizeof(*texture));
  kiln_array_release(array);
  kiln_mipmap_release(mipmap);
  kiln_buffer_release(buffer);
  kiln_device_release(device);
}

static kiln_status_t make_texture(kiln_device_t* device,
                                  const kiln_cu_texels_t* texels,
                                  const kiln_texture_options_t* given,
                                  const under_t* under,
                                  kiln_texture_t** out_texture) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(device->host->allocator,
                                         sizeof(kiln_texture_t), &block));
  kiln_texture_t* texture = block;
  texture->device = device;
  kiln_device_retain(device);
  atomic_init(&texture->references, 1);
  const kiln_cu_sampler_t sampler = sampler_of(given, under);
  kiln_status_t status;
  KILNI_DEVICE_CREATE(status, device, &texture->handle, cuTexObjectCreate,
                      texels, &sampler, NULL);
  if (!kiln_status_is_ok(status)) {
    kiln_texture_release(texture);
    return status;
  }
  *out_texture = texture;
  return kiln_ok();
}

kiln_status_t kiln_texture_create(kiln_array_t* array,
                                  const kiln_texture_options_t* options,
                                  kiln_texture_t** out_texture) {
  KILNI_CHECK_ARGUMENT(out_texture != NULL, "out_texture");
  *out_texture = NULL;
  KILNI_CHECK_ARGUMENT(array != NULL, "array");
  kiln_texture_options_t given;
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_texture_options_t, &given));
  const under_t under = {array->desc.format, array->desc.flags, 0};
  KILNI_RETURN_IF_ERROR(check_sampler(&given, &under));
  kiln_cu_texels_t texels;
  memset(&texels, 0, sizeof(texels));
  texels.type = KILN_CU_RESOURCE_TYPE_ARRAY;
  texels.of.array = array->handle;
  KILNI_RETURN_IF_ERROR(
      make_texture(array->device, &texels, &given, &under, out_texture));
  (*out_texture)->array = array;
  kiln_array_retain(array);
  return kiln_ok();
}

kiln_status_t kiln_texture_create_mipmap(kiln_mipmap_t* mipmap,
                                         const kiln_texture_options_t* options,
                                         kiln_texture_t** out_texture) {
  KILNI_CHECK_ARGUMENT(out_texture != NULL, "out_texture");
  *out_texture = NULL;
  KILNI_CHECK_ARGUMENT(mipmap != NULL, "mipmap");
  kiln_texture_options_t given;
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_texture_options_t, &given));
  const under_t under = {mipmap->desc.format, mipmap->desc.flags,
                         mipmap->levels};
  KILNI_RETURN_IF_ERROR(check_sampler(&given, &under));
  kiln_cu_texels_t texels;
  memset(&texels, 0, sizeof(texels));
  texels.type = KILN_CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  texels.of.mipmapped = mipmap->handle;
  KILNI_RETURN_IF_ERROR(
      make_texture(mipmap->device, &texels, &given, &under, out_texture));
  (*out_texture)->mipmap = mipmap;
  kiln_mipmap_retain(mipmap);
  return kiln_ok();
}

// ---- Textures over buffers ----

static kiln_status_t texture_check_space(const kiln_buffer_t* buffer,
                                         const kiln_texels_t* given,
                                         uint32_t texel_bytes) {
  uint64_t space =
      given->offset <= buffer->size ? buffer->size - given->offset : 0;
  // Every factor is below 2^31 by the device's limits.
  uint64_t row = given->width * texel_bytes;
  uint64_t need =
      given->height > 0 ? (given->height - 1) * given->row_bytes + row : row;
  if (need <= space) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(OUT_OF_RANGE,
                 "texels of %llu bytes from %llu on in a buffer of %llu",
                 (unsigned long long)need, (unsigned long long)given->offset,
                 (unsigned long long)buffer->size),
      "use a larger buffer, or fewer texels");
}

static kiln_status_t check_linear(kiln_device_t* device,
                                  const kiln_texels_t* given) {
  KILNI_CHECK_ARGUMENT(given->row_bytes == 0, "texels.row_bytes");
  return kilni_device_texture_limit(
      device, given->width,
      KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH,
      "a texture over a buffer with a width");
}

static kiln_status_t check_pitched(kiln_device_t* device,
                                   const kiln_texels_t* given,
                                   uint32_t texel_bytes) {
  KILNI_RETURN_IF_ERROR(kilni_device_texture_limit(
      device, given->width,
      KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH,
      "a texture over a buffer with a width"));
  KILNI_RETURN_IF_ERROR(kilni_device_texture_limit(
      device, given->height,
      KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT,
      "a texture over a buffer with a height"));
  KILNI_RETURN_IF_ERROR(kilni_device_texture_limit(
      device, given->row_bytes,
      KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH,
      "a texture over a buffer with a row in bytes"));
  KILNI_CHECK_ARGUMENT_SAYS(given->row_bytes >= given->width * texel_bytes,
                            "texels.row_bytes",
                            "is less than the size of a row of texels",
                            "set it to the bytes from one row to the next");
  return check_aligned(device, given->row_bytes,
                       KILN_CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT,
                       "a row");
}

static kiln_status_t check_texels(const kiln_buffer_t* buffer,
                                  const kiln_texels_t* given,
                                  uint32_t texel_bytes) {
  kiln_device_t* device = buffer->device;
  KILNI_CHECK_ARGUMENT(given->width > 0, "texels.width");
  KILNI_RETURN_IF_ERROR(given->height > 0
                            ? check_pitched(device, given, texel_bytes)
                            : check_linear(device, given));
  KILNI_RETURN_IF_ERROR(texture_check_space(buffer, given, texel_bytes));
  return check_aligned(device, buffer->address + given->offset,
                       KILN_CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT,
                       "an address");
}

static kiln_cu_texels_t texels_of(const kiln_buffer_t* buffer,
                                  const kiln_texels_t* given,
                                  uint32_t texel_bytes) {
  kiln_cu_texels_t texels;
  memset(&texels, 0, sizeof(texels));
  if (given->height > 0) {
    texels.type = KILN_CU_RESOURCE_TYPE_PITCH2D;
    texels.of.pitched.address = buffer->address + given->offset;
    texels.of.pitched.format = given->format;
    texels.of.pitched.channels = given->channels;
    texels.of.pitched.width = (size_t)given->width;
    texels.of.pitched.height = (size_t)given->height;
    texels.of.pitched.row_bytes = (size_t)given->row_bytes;
  } else {
    texels.type = KILN_CU_RESOURCE_TYPE_LINEAR;
    texels.of.linear.address = buffer->address + given->offset;
    texels.of.linear.format = given->format;
    texels.of.linear.channels = given->channels;
    texels.of.linear.bytes = (size_t)(given->width * texel_bytes);
  }
  return texels;
}

kiln_status_t kiln_texture_create_buffer(kiln_buffer_t* buffer,
                                         const kiln_texels_t* texels,
                                         const kiln_texture_options_t* options,
                                         kiln_texture_t** out_texture) {
  KILNI_CHECK_ARGUMENT(out_texture != NULL, "out_texture");
  *out_texture = NULL;
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_CHECK_ARGUMENT(texels != NULL, "texels");
  kiln_device_t* device = buffer->device;
  kiln_texels_t given;
  kiln_texture_options_t read;
  uint32_t texel_bytes = 0;
  KILNI_RETURN_IF_ERROR(KILNI_OPTIONS_READ(texels, kiln_texels_t, &given));
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_texture_options_t, &read));
  KILNI_RETURN_IF_ERROR(
      kilni_device_texel_read(&given.format, &given.channels, &texel_bytes));
  const under_t under = {given.format, 0, 0};
  KILNI_RETURN_IF_ERROR(check_sampler(&read, &under));
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  KILNI_RETURN_IF_ERROR(
      kilni_table_cuda_need(device->table, KILNI_CUDA_ROW_cuTexObjectCreate));
  KILNI_RETURN_IF_ERROR(check_texels(buffer, &given, texel_bytes));
  const kiln_cu_texels_t there = texels_of(buffer, &given, texel_bytes);
  KILNI_RETURN_IF_ERROR(
      make_texture(device, &there, &read, &under, out_texture));
  (*out_texture)->buffer = buffer;
  kiln_buffer_retain(buffer);
  return kiln_ok();
}

uint64_t kiln_texture_handle(const kiln_texture_t* texture) {
  return texture->handle;
}

// ---- Surfaces ----

void kiln_surface_retain(kiln_surface_t* surface) {
  if (surface == NULL) return;
  atomic_fetch_add_explicit(&surface->references, 1, memory_order_relaxed);
}

void kiln_surface_release(kiln_surface_t* surface) {
  if (surface == NULL || kilni_device_is_forked(surface->array->device)) return;
  if (atomic_fetch_sub_explicit(&surface->references, 1,
                                memory_order_acq_rel) != 1) {
    return;
  }
  kiln_array_t* array = surface->array;
  kiln_device_t* device = array->device;
  if (surface->handle != 0) {
    kilni_device_wait_end(device);
    KILNI_DEVICE_END(device, cuSurfObjectDestroy, surface->handle);
  }
  kilni_base_free(device->host->allocator, surface, sizeof(*surface));
  kiln_array_release(array);
}

kiln_status_t kiln_surface_create(kiln_array_t* array,
                                  kiln_surface_t** out_surface) {
  KILNI_CHECK_ARGUMENT(out_surface != NULL, "out_surface");
  *out_surface = NULL;
  KILNI_CHECK_ARGUMENT(array != NULL, "array");
  if (!array->with_surface) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "a surface over an array that was made without `surface`"),
        "set `surface` in kiln_array_options_t");
  }
  kiln_device_t* device = array->device;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(device->host->allocator,
                                         sizeof(kiln_surface_t), &block));
  kiln_surface_t* surface = block;
  surface->array = array;
  kiln_array_retain(array);
  atomic_init(&surface->references, 1);
  kiln_cu_texels_t texels;
  memset(&texels, 0, sizeof(texels));
  texels.type = KILN_CU_RESOURCE_TYPE_ARRAY;
  texels.of.array = array->handle;
  kiln_status_t status;
  KILNI_DEVICE_CREATE(status, device, &surface->handle, cuSurfObjectCreate,
                      &texels);
  if (!kiln_status_is_ok(status)) {
    kiln_surface_release(surface);
    return status;
  }
  *out_surface = surface;
  return kiln_ok();
}

uint64_t kiln_surface_handle(const kiln_surface_t* surface) {
  return surface->handle;
}
