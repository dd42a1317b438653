// SPDX-License-Identifier: Apache-2.0
//
// device: arrays, and the textures and surfaces through which kernels use them.
//
// What may be said of them is checked here against the device's attributes, so
// that an error names the side, its length and the device's; a driver says
// INVALID_VALUE to all of it. A destroy does not wait for kernels that still
// use a texture, so that is waited for first.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "device/device_inside.h"

struct kiln_array_t {
  kiln_device_t* device;
  atomic_uint references;
  bool with_surface;
  uint32_t texel_bytes;
  kiln_cu_array_desc_t desc;
  kiln_cu_array_t handle;
};

struct kiln_texture_t {
  kiln_device_t* device;
  atomic_uint references;
  kiln_array_t* array;    // or
  kiln_buffer_t* buffer;  // that it is over
  kiln_cu_texture_t handle;
};

struct kiln_surface_t {
  kiln_array_t* array;
  atomic_uint references;
  kiln_cu_surface_t handle;
};

// ---- Formats ----

// A format: the driver's number, bytes of a channel. thread-safe
typedef struct texel_t {
  unsigned int format;
  uint32_t bytes;
} texel_t;

static const texel_t kTexels[] = {
    {0, 0},
    {KILN_CU_AD_FORMAT_UNSIGNED_INT8, 1},
    {KILN_CU_AD_FORMAT_UNSIGNED_INT16, 2},
    {KILN_CU_AD_FORMAT_UNSIGNED_INT32, 4},
    {KILN_CU_AD_FORMAT_SIGNED_INT8, 1},
    {KILN_CU_AD_FORMAT_SIGNED_INT16, 2},
    {KILN_CU_AD_FORMAT_SIGNED_INT32, 4},
    {KILN_CU_AD_FORMAT_HALF, 2},
    {KILN_CU_AD_FORMAT_FLOAT, 4},
};

// Replaces defaults; the size of a texel in bytes.
static kiln_status_t read_format(uint32_t* format, uint32_t* channels,
                                 uint32_t* out_bytes) {
  KILNI_CHECK_ARGUMENT(*format <= KILN_TEXEL_F32, "format");
  if (*format == 0) *format = KILN_TEXEL_F32;
  if (*channels == 0) *channels = 1;
  KILNI_CHECK_ARGUMENT(*channels == 1 || *channels == 2 || *channels == 4,
                       "channels");
  *out_bytes = kTexels[*format].bytes * *channels;
  *format = kTexels[*format].format;
  return NULL;
}

static bool is_float(unsigned int format) {
  return format == KILN_CU_AD_FORMAT_HALF || format == KILN_CU_AD_FORMAT_FLOAT;
}

static bool is_wide(unsigned int format) {
  return format == KILN_CU_AD_FORMAT_UNSIGNED_INT32 ||
         format == KILN_CU_AD_FORMAT_SIGNED_INT32;
}

// ---- The device's limits ----

static kiln_status_t ask(kiln_device_t* device, kiln_cu_device_attribute_t id,
                         uint64_t* out_value) {
  int value = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuDeviceGetAttribute, &value, id,
                    device->handle);
  *out_value = value > 0 ? (uint64_t)value : 0;
  return status;
}

static kiln_status_t check_limit(kiln_device_t* device, uint64_t value,
                                 kiln_cu_device_attribute_t id,
                                 const char* what) {
  uint64_t most = 0;
  KILNI_RETURN_IF_ERROR(ask(device, id, &most));
  if (value <= most) return NULL;
  return kilni_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED, "%s of %llu; \"%s\" takes %llu", what,
                 (unsigned long long)value, device->name,
                 (unsigned long long)most),
      "use several smaller ones, or a buffer");
}

static kiln_status_t check_aligned(kiln_device_t* device, uint64_t value,
                                   kiln_cu_device_attribute_t id,
                                   const char* what) {
  uint64_t step = 0;
  KILNI_RETURN_IF_ERROR(ask(device, id, &step));
  if (step == 0 || value % step == 0) return NULL;
  return kilni_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "%s of 0x%llx for a texture; \"%s\" wants multiples of %llu",
                 what, (unsigned long long)value, device->name,
                 (unsigned long long)step),
      "align it, or copy the texels into an array");
}

// The limits of arrays by their number of dimensions, for textures and for
// surfaces.
#define ID(name) KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_##name
static const kiln_cu_device_attribute_t kLimits[2][3][3] = {
    {{ID(TEXTURE1D_WIDTH), 0, 0},
     {ID(TEXTURE2D_WIDTH), ID(TEXTURE2D_HEIGHT), 0},
     {ID(TEXTURE3D_WIDTH), ID(TEXTURE3D_HEIGHT), ID(TEXTURE3D_DEPTH)}},
    {{ID(SURFACE1D_WIDTH), 0, 0},
     {ID(SURFACE2D_WIDTH), ID(SURFACE2D_HEIGHT), 0},
     {ID(SURFACE3D_WIDTH), ID(SURFACE3D_HEIGHT), ID(SURFACE3D_DEPTH)}},
};

// A second shape of three dimensions that a device takes.
static kiln_status_t is_alternate(kiln_device_t* device,
                                  const uint64_t sides[3], bool* out_fits) {
  static const kiln_cu_device_attribute_t ids[] = {
      ID(TEXTURE3D_WIDTH_ALTERNATE), ID(TEXTURE3D_HEIGHT_ALTERNATE),
      ID(TEXTURE3D_DEPTH_ALTERNATE)};
  *out_fits = true;
  for (int i = 0; i < 3; i++) {
    uint64_t most = 0;
    KILNI_RETURN_IF_ERROR(ask(device, ids[i], &most));
    if (sides[i] > most) *out_fits = false;
  }
  return NULL;
}

static kiln_status_t check_sides(kiln_device_t* device,
                                 const kiln_array_options_t* given) {
  static const char* const names[] = {"an array with a width",
                                      "an array with a height",
                                      "an array with a depth"};
  const uint64_t sides[3] = {given->width, given->height, given->depth};
  const int dimensions = given->depth > 0 ? 3 : given->height > 0 ? 2 : 1;
  bool fits = false;
  if (dimensions == 3) {
    KILNI_RETURN_IF_ERROR(is_alternate(device, sides, &fits));
  }
  for (int kind = 0; kind < 2; kind++) {
    if (kind == 0 ? fits : given->surface != KILN_SWITCH_ON) continue;
    for (int i = 0; i < dimensions; i++) {
      KILNI_RETURN_IF_ERROR(check_limit(
          device, sides[i], kLimits[kind][dimensions - 1][i], names[i]));
    }
  }
  return NULL;
}
#undef ID

// ---- Arrays ----

void kiln_array_retain(kiln_array_t* array) {
  if (array == NULL) return;
  atomic_fetch_add_explicit(&array->references, 1, memory_order_relaxed);
}

void kiln_array_release(kiln_array_t* array) {
  if (array == NULL || kilni_device_is_forked(array->device)) return;
  if (atomic_fetch_sub_explicit(&array->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kiln_device_t* device = array->device;
  if (array->handle != NULL) {
    kilni_device_wait_end(device);
    KILNI_DEVICE_END(device, cuArrayDestroy, array->handle);
  }
  kilni_free(device->host->allocator, array, sizeof(*array));
  kiln_device_release(device);
}

static kiln_status_t read_options(kiln_device_t* device,
                                  const kiln_array_options_t* options,
                                  kiln_array_options_t* given,
                                  uint32_t* out_texel_bytes) {
  KILNI_RETURN_IF_ERROR(kilni_options_read(options, "kiln_array_options_t",
                                           sizeof(*given), given));
  KILNI_RETURN_IF_ERROR(
      read_format(&given->format, &given->channels, out_texel_bytes));
  KILNI_CHECK_ARGUMENT(given->surface <= KILN_SWITCH_ON, "options.surface");
  KILNI_CHECK_ARGUMENT(given->width > 0, "options.width");
  KILNI_CHECK_ARGUMENT(given->depth == 0 || given->height > 0,
                       "options.height");
  KILNI_RETURN_IF_ERROR(kilni_host_check_fork(device->host));
  KILNI_RETURN_IF_ERROR(
      kilni_cuda_need(device->table, KILNI_CUDA_ROW_cuArray3DCreate));
  return check_sides(device, given);
}

kiln_status_t kiln_array_create(kiln_device_t* device,
                                const kiln_array_options_t* options,
                                kiln_array_t** out_array) {
  KILNI_CHECK_ARGUMENT(out_array != NULL, "out_array");
  *out_array = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(options != NULL, "options");
  kiln_array_options_t given;
  uint32_t texel_bytes = 0;
  KILNI_RETURN_IF_ERROR(read_options(device, options, &given, &texel_bytes));
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_alloc(device->host->allocator, sizeof(kiln_array_t), &block));
  kiln_array_t* array = block;
  array->device = device;
  kiln_device_retain(device);
  atomic_init(&array->references, 1);
  array->with_surface = given.surface == KILN_SWITCH_ON;
  array->texel_bytes = texel_bytes;
  array->desc.width = (size_t)given.width;
  array->desc.height = (size_t)given.height;
  array->desc.depth = (size_t)given.depth;
  array->desc.format = given.format;
  array->desc.channels = given.channels;
  array->desc.flags = array->with_surface ? KILN_CUDA_ARRAY3D_SURFACE_LDST : 0;
  kiln_status_t status;
  KILNI_DEVICE_CREATE(status, device, &array->handle, cuArray3DCreate,
                      &array->desc);
  if (!kiln_status_is_ok(status)) {
    kiln_array_release(array);
    return KILNI_ANNOTATE(status, "making an array of %llu texels in a row",
                          (unsigned long long)given.width);
  }
  *out_array = array;
  return NULL;
}

kiln_device_t* kiln_array_device(const kiln_array_t* array) {
  return array->device;
}

void* kiln_array_handle(const kiln_array_t* array) {
  return array->handle;
}

static size_t rows_of(const kiln_array_t* array) {
  return array->desc.height > 0 ? array->desc.height : 1;
}

static size_t slices_of(const kiln_array_t* array) {
  return array->desc.depth > 0 ? array->desc.depth : 1;
}

// Every side is below 2^31, and the product was device memory.
uint64_t kiln_array_size(const kiln_array_t* array) {
  return (uint64_t)array->desc.width * array->texel_bytes * rows_of(array) *
         slices_of(array);
}

// ---- Copies ----

static kiln_cu_copy_side_t array_side(const kiln_array_t* array) {
  kiln_cu_copy_side_t side;
  memset(&side, 0, sizeof(side));
  side.type = KILN_CU_MEMORYTYPE_ARRAY;
  side.array = array->handle;
  return side;
}

// Rows and slices without gaps.
static kiln_cu_copy_side_t packed_side(const kiln_array_t* array,
                                       const void* host,
                                       kiln_cu_deviceptr_t address) {
  kiln_cu_copy_side_t side;
  memset(&side, 0, sizeof(side));
  side.type =
      host != NULL ? KILN_CU_MEMORYTYPE_HOST : KILN_CU_MEMORYTYPE_DEVICE;
  side.host = host;
  side.device = address;
  side.row_bytes = array->desc.width * array->texel_bytes;
  side.rows = rows_of(array);
  return side;
}

static kiln_status_t copy(kiln_array_t* array, kiln_stream_t* stream,
                          kiln_cu_copy_side_t from, kiln_cu_copy_side_t to) {
  kiln_cu_copy_3d_t box;
  memset(&box, 0, sizeof(box));
  box.from = from;
  box.to = to;
  box.width_bytes = array->desc.width * array->texel_bytes;
  box.height = rows_of(array);
  box.depth = slices_of(array);
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuMemcpy3DAsync, &box, stream->handle);
  return status;
}

static kiln_status_t check_stream(const kiln_array_t* array,
                                  const kiln_stream_t* stream) {
  KILNI_CHECK_ARGUMENT(array != NULL, "array");
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  return kilni_device_check_memory(array->device, stream->device, "the stream");
}

static kiln_status_t check_host(const kiln_array_t* array,
                                const kiln_stream_t* stream, uint64_t bytes,
                                const void* data) {
  KILNI_RETURN_IF_ERROR(check_stream(array, stream));
  KILNI_CHECK_ARGUMENT(data != NULL, "data");
  if (bytes == kiln_array_size(array)) return NULL;
  return kilni_status_with_fix(
      KILNI_FAIL(OUT_OF_RANGE, "%llu bytes for an array of %llu",
                 (unsigned long long)bytes,
                 (unsigned long long)kiln_array_size(array)),
      "pass kiln_array_size bytes");
}

static kiln_status_t check_buffer(const kiln_array_t* array,
                                  const kiln_stream_t* stream,
                                  const kiln_buffer_t* buffer,
                                  uint64_t offset) {
  KILNI_RETURN_IF_ERROR(check_stream(array, stream));
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_memory(array->device, buffer->device, "the buffer"));
  if (offset <= buffer->size &&
      kiln_array_size(array) <= buffer->size - offset) {
    return NULL;
  }
  return kilni_status_with_fix(
      KILNI_FAIL(OUT_OF_RANGE, "%llu bytes from %llu on in a buffer of %llu",
                 (unsigned long long)kiln_array_size(array),
                 (unsigned long long)offset, (unsigned long long)buffer->size),
      "use a buffer with room for kiln_array_size bytes behind the offset");
}

kiln_status_t kiln_array_write_async(kiln_array_t* array, kiln_stream_t* stream,
                                     uint64_t bytes, const void* data) {
  KILNI_RETURN_IF_ERROR(check_host(array, stream, bytes, data));
  return copy(array, stream, packed_side(array, data, 0), array_side(array));
}

kiln_status_t kiln_array_read_async(kiln_array_t* array, kiln_stream_t* stream,
                                    uint64_t bytes, void* data) {
  KILNI_RETURN_IF_ERROR(check_host(array, stream, bytes, data));
  return copy(array, stream, array_side(array), packed_side(array, data, 0));
}

kiln_status_t kiln_array_copy_from_async(kiln_array_t* array,
                                         kiln_stream_t* stream,
                                         const kiln_buffer_t* buffer,
                                         uint64_t offset) {
  KILNI_RETURN_IF_ERROR(check_buffer(array, stream, buffer, offset));
  return copy(array, stream, packed_side(array, NULL, buffer->address + offset),
              array_side(array));
}

kiln_status_t kiln_array_copy_to_async(kiln_array_t* array,
                                       kiln_stream_t* stream,
                                       kiln_buffer_t* buffer, uint64_t offset) {
  KILNI_RETURN_IF_ERROR(check_buffer(array, stream, buffer, offset));
  return copy(array, stream, array_side(array),
              packed_side(array, NULL, buffer->address + offset));
}

// ---- Textures ----

static kiln_status_t check_sampler(const kiln_texture_options_t* given,
                                   unsigned int format) {
  KILNI_CHECK_ARGUMENT(given->linear <= KILN_SWITCH_ON, "options.linear");
  KILNI_CHECK_ARGUMENT(given->normalized <= KILN_SWITCH_ON,
                       "options.normalized");
  KILNI_CHECK_ARGUMENT(given->as_float <= KILN_SWITCH_ON, "options.as_float");
  KILNI_CHECK_ARGUMENT(given->srgb <= KILN_SWITCH_ON, "options.srgb");
  for (int i = 0; i < 3; i++) {
    uint32_t mode = given->address[i];
    KILNI_CHECK_ARGUMENT(mode <= KILN_TEXTURE_BORDER, "options.address");
    bool turns = mode == KILN_TEXTURE_WRAP || mode == KILN_TEXTURE_MIRROR;
    if (turns && given->normalized != KILN_SWITCH_ON) {
      return kilni_status_with_fix(
          KILNI_FAIL(INVALID_ARGUMENT,
                     "a texture that wraps or mirrors in dimension %d, with "
                     "coordinates that are not normalized",
                     i),
          "set `normalized` in kiln_texture_options_t, or clamp");
    }
  }
  KILNI_CHECK_ARGUMENT(given->srgb != KILN_SWITCH_ON ||
                           format == KILN_CU_AD_FORMAT_UNSIGNED_INT8,
                       "options.srgb");
  if (given->linear != KILN_SWITCH_ON || is_float(format) ||
      given->srgb == KILN_SWITCH_ON ||
      (given->as_float == KILN_SWITCH_ON && !is_wide(format))) {
    return NULL;
  }
  return kilni_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "a linear filter over integers that are read as they are"),
      "set `as_float` in kiln_texture_options_t for 8 and 16 bits, or leave "
      "`linear` off");
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
                                    unsigned int format) {
  kiln_cu_sampler_t sampler;
  memset(&sampler, 0, sizeof(sampler));
  for (int i = 0; i < 3; i++) sampler.address[i] = mode_of(given->address[i]);
  sampler.filter = given->linear == KILN_SWITCH_ON
                       ? KILN_CU_TR_FILTER_MODE_LINEAR
                       : KILN_CU_TR_FILTER_MODE_POINT;
  if (!is_float(format) && given->as_float != KILN_SWITCH_ON &&
      given->srgb != KILN_SWITCH_ON) {
    sampler.flags |= KILN_CU_TRSF_READ_AS_INTEGER;
  }
  if (given->normalized == KILN_SWITCH_ON) {
    sampler.flags |= KILN_CU_TRSF_NORMALIZED_COORDINATES;
  }
  if (given->srgb == KILN_SWITCH_ON) sampler.flags |= KILN_CU_TRSF_SRGB;
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
  kiln_buffer_t* buffer = texture->buffer;
  if (texture->handle != 0) {
    kilni_device_wait_end(device);
    KILNI_DEVICE_END(device, cuTexObjectDestroy, texture->handle);
  }
  kilni_free(device->host->allocator, texture, sizeof(*texture));
  kiln_array_release(array);
  kiln_buffer_release(buffer);
  kiln_device_release(device);
}

static kiln_status_t make_texture(kiln_device_t* device,
                                  const kiln_cu_texels_t* texels,
                                  const kiln_texture_options_t* given,
                                  unsigned int format,
                                  kiln_texture_t** out_texture) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_alloc(device->host->allocator, sizeof(kiln_texture_t), &block));
  kiln_texture_t* texture = block;
  texture->device = device;
  kiln_device_retain(device);
  atomic_init(&texture->references, 1);
  const kiln_cu_sampler_t sampler = sampler_of(given, format);
  kiln_status_t status;
  KILNI_DEVICE_CREATE(status, device, &texture->handle, cuTexObjectCreate,
                      texels, &sampler, NULL);
  if (!kiln_status_is_ok(status)) {
    kiln_texture_release(texture);
    return status;
  }
  *out_texture = texture;
  return NULL;
}

kiln_status_t kiln_texture_create(kiln_array_t* array,
                                  const kiln_texture_options_t* options,
                                  kiln_texture_t** out_texture) {
  KILNI_CHECK_ARGUMENT(out_texture != NULL, "out_texture");
  *out_texture = NULL;
  KILNI_CHECK_ARGUMENT(array != NULL, "array");
  kiln_texture_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_options_read(options, "kiln_texture_options_t",
                                           sizeof(given), &given));
  KILNI_RETURN_IF_ERROR(check_sampler(&given, array->desc.format));
  kiln_cu_texels_t texels;
  memset(&texels, 0, sizeof(texels));
  texels.type = KILN_CU_RESOURCE_TYPE_ARRAY;
  texels.of.array = array->handle;
  KILNI_RETURN_IF_ERROR(make_texture(array->device, &texels, &given,
                                     array->desc.format, out_texture));
  (*out_texture)->array = array;
  kiln_array_retain(array);
  return NULL;
}

// ---- Textures over buffers ----

static kiln_status_t check_room(const kiln_buffer_t* buffer,
                                const kiln_texels_t* given,
                                uint32_t texel_bytes) {
  uint64_t room =
      given->offset <= buffer->size ? buffer->size - given->offset : 0;
  // Every factor is below 2^31 by the device's limits.
  uint64_t row = given->width * texel_bytes;
  uint64_t need =
      given->height > 0 ? (given->height - 1) * given->row_bytes + row : row;
  if (need <= room) return NULL;
  return kilni_status_with_fix(
      KILNI_FAIL(OUT_OF_RANGE,
                 "texels of %llu bytes from %llu on in a buffer of %llu",
                 (unsigned long long)need, (unsigned long long)given->offset,
                 (unsigned long long)buffer->size),
      "use a larger buffer, or fewer texels");
}

static kiln_status_t check_linear(kiln_device_t* device,
                                  const kiln_texels_t* given) {
  KILNI_CHECK_ARGUMENT(given->row_bytes == 0, "texels.row_bytes");
  return check_limit(device, given->width,
                     KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH,
                     "a texture over a buffer with a width");
}

static kiln_status_t check_pitched(kiln_device_t* device,
                                   const kiln_texels_t* given,
                                   uint32_t texel_bytes) {
  KILNI_RETURN_IF_ERROR(
      check_limit(device, given->width,
                  KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH,
                  "a texture over a buffer with a width"));
  KILNI_RETURN_IF_ERROR(
      check_limit(device, given->height,
                  KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT,
                  "a texture over a buffer with a height"));
  KILNI_RETURN_IF_ERROR(
      check_limit(device, given->row_bytes,
                  KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH,
                  "a texture over a buffer with a row in bytes"));
  KILNI_CHECK_ARGUMENT(given->row_bytes >= given->width * texel_bytes,
                       "texels.row_bytes");
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
  KILNI_RETURN_IF_ERROR(check_room(buffer, given, texel_bytes));
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
  KILNI_RETURN_IF_ERROR(
      kilni_options_read(texels, "kiln_texels_t", sizeof(given), &given));
  KILNI_RETURN_IF_ERROR(kilni_options_read(options, "kiln_texture_options_t",
                                           sizeof(read), &read));
  KILNI_RETURN_IF_ERROR(
      read_format(&given.format, &given.channels, &texel_bytes));
  KILNI_RETURN_IF_ERROR(check_sampler(&read, given.format));
  KILNI_RETURN_IF_ERROR(kilni_host_check_fork(device->host));
  KILNI_RETURN_IF_ERROR(
      kilni_cuda_need(device->table, KILNI_CUDA_ROW_cuTexObjectCreate));
  KILNI_RETURN_IF_ERROR(check_texels(buffer, &given, texel_bytes));
  const kiln_cu_texels_t there = texels_of(buffer, &given, texel_bytes);
  KILNI_RETURN_IF_ERROR(
      make_texture(device, &there, &read, given.format, out_texture));
  (*out_texture)->buffer = buffer;
  kiln_buffer_retain(buffer);
  return NULL;
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
  kilni_free(device->host->allocator, surface, sizeof(*surface));
  kiln_array_release(array);
}

kiln_status_t kiln_surface_create(kiln_array_t* array,
                                  kiln_surface_t** out_surface) {
  KILNI_CHECK_ARGUMENT(out_surface != NULL, "out_surface");
  *out_surface = NULL;
  KILNI_CHECK_ARGUMENT(array != NULL, "array");
  if (!array->with_surface) {
    return kilni_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "a surface over an array that was made without"),
        "set `surface` in kiln_array_options_t");
  }
  kiln_device_t* device = array->device;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_alloc(device->host->allocator, sizeof(kiln_surface_t), &block));
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
  return NULL;
}

uint64_t kiln_surface_handle(const kiln_surface_t* surface) {
  return surface->handle;
}
