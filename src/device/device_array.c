// SPDX-License-Identifier: Apache-2.0
//
// device: arrays and mipmaps, and copies of whole arrays.
//
// Their options are checked here against the device's attributes, so that an
// error names the side, its length and the device's; a driver returns
// INVALID_VALUE for all of it. A destroy does not wait for kernels that still
// use what is destroyed, so that is waited for first.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "device/device_scope.h"
#include "device/texture_inside.h"

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

kiln_status_t kilni_device_texel_read(uint32_t* format, uint32_t* channels,
                                      uint32_t* out_bytes) {
  KILNI_CHECK_ARGUMENT(*format <= KILN_TEXEL_F32, "format");
  if (*format == 0) *format = KILN_TEXEL_F32;
  if (*channels == 0) *channels = 1;
  KILNI_CHECK_ARGUMENT(*channels == 1 || *channels == 2 || *channels == 4,
                       "channels");
  *out_bytes = kTexels[*format].bytes * *channels;
  *format = kTexels[*format].format;
  return kiln_ok();
}

// ---- The device's limits ----

kiln_status_t kilni_device_texture_ask(kiln_device_t* device,
                                       kiln_cu_device_attribute_t id,
                                       uint64_t* out_value) {
  int value = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuDeviceGetAttribute, &value, id,
                    device->handle);
  *out_value = value > 0 ? (uint64_t)value : 0;
  return status;
}

kiln_status_t kilni_device_texture_limit(kiln_device_t* device, uint64_t value,
                                         kiln_cu_device_attribute_t id,
                                         const char* what) {
  uint64_t most = 0;
  KILNI_RETURN_IF_ERROR(kilni_device_texture_ask(device, id, &most));
  if (value <= most) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED, "%s of %llu; \"%s\" takes %llu", what,
                 (unsigned long long)value, device->name,
                 (unsigned long long)most),
      "use several smaller ones, or a buffer");
}

// What an array is, by which its limits differ.
typedef enum shape_t {
  LINE,
  PLANE,
  VOLUME,
  LINES,   // layers of
  PLANES,  //
  CUBE,
  CUBES,
  SHAPES,
} shape_t;

static shape_t array_shape_of(const kiln_array_options_t* given) {
  const bool layered = given->layered == KILN_SWITCH_ON;
  if (given->cube == KILN_SWITCH_ON) return layered ? CUBES : CUBE;
  if (layered) return given->height > 0 ? PLANES : LINES;
  return given->depth > 0 ? VOLUME : given->height > 0 ? PLANE : LINE;
}

// Of textures and of surfaces; 0: no limit of its own.
#define ID(name)       KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_##name
#define CUBE_IDS(kind) {ID(kind##CUBEMAP_WIDTH), ID(kind##CUBEMAP_WIDTH), 0}
#define CUBES_IDS(kind)                                              \
  {ID(kind##CUBEMAP_LAYERED_WIDTH), ID(kind##CUBEMAP_LAYERED_WIDTH), \
   ID(kind##CUBEMAP_LAYERED_LAYERS)}
#define IDS(kind)                                                    \
  {                                                                  \
      {ID(kind##1D_WIDTH), 0, 0},                                    \
      {ID(kind##2D_WIDTH), ID(kind##2D_HEIGHT), 0},                  \
      {ID(kind##3D_WIDTH), ID(kind##3D_HEIGHT), ID(kind##3D_DEPTH)}, \
      {ID(kind##1D_LAYERED_WIDTH), 0, ID(kind##1D_LAYERED_LAYERS)},  \
      {ID(kind##2D_LAYERED_WIDTH), ID(kind##2D_LAYERED_HEIGHT),      \
       ID(kind##2D_LAYERED_LAYERS)},                                 \
      CUBE_IDS(kind),                                                \
      CUBES_IDS(kind),                                               \
  }
static const kiln_cu_device_attribute_t kLimits[2][SHAPES][3] = {IDS(TEXTURE),
                                                                 IDS(SURFACE)};
static const kiln_cu_device_attribute_t kGather[3] = {
    ID(TEXTURE2D_GATHER_WIDTH), ID(TEXTURE2D_GATHER_HEIGHT), 0};
static const kiln_cu_device_attribute_t kMipmapped[2][3] = {
    {ID(TEXTURE1D_MIPMAPPED_WIDTH), 0, 0},
    {ID(TEXTURE2D_MIPMAPPED_WIDTH), ID(TEXTURE2D_MIPMAPPED_HEIGHT), 0}};

// A second shape of three dimensions that a device takes.
static kiln_status_t is_alternate(kiln_device_t* device,
                                  const uint64_t sides[3], bool* out_fits) {
  static const kiln_cu_device_attribute_t ids[] = {
      ID(TEXTURE3D_WIDTH_ALTERNATE), ID(TEXTURE3D_HEIGHT_ALTERNATE),
      ID(TEXTURE3D_DEPTH_ALTERNATE)};
  *out_fits = true;
  for (int i = 0; i < 3; i++) {
    uint64_t most = 0;
    KILNI_RETURN_IF_ERROR(kilni_device_texture_ask(device, ids[i], &most));
    if (sides[i] > most) *out_fits = false;
  }
  return kiln_ok();
}

static kiln_status_t check_ids(kiln_device_t* device, const uint64_t sides[3],
                               const kiln_cu_device_attribute_t ids[3],
                               bool layered) {
  const char* const names[] = {
      "an array with a width", "an array with a height",
      layered ? "an array with a number of layers" : "an array with a depth"};
  for (int i = 0; i < 3; i++) {
    if (ids[i] == 0) continue;
    KILNI_RETURN_IF_ERROR(
        kilni_device_texture_limit(device, sides[i], ids[i], names[i]));
  }
  return kiln_ok();
}

static kiln_status_t check_sides(kiln_device_t* device,
                                 const kiln_array_options_t* given,
                                 bool mipmapped) {
  const uint64_t sides[3] = {given->width, given->height, given->depth};
  const shape_t shape = array_shape_of(given);
  const bool layered = given->layered == KILN_SWITCH_ON;
  const kiln_cu_device_attribute_t* ids = kLimits[0][shape];
  bool fits = false;
  if (mipmapped && shape <= PLANE) ids = kMipmapped[shape];
  if (given->gather == KILN_SWITCH_ON) ids = kGather;
  if (shape == VOLUME) {
    KILNI_RETURN_IF_ERROR(is_alternate(device, sides, &fits));
  }
  if (!fits) KILNI_RETURN_IF_ERROR(check_ids(device, sides, ids, layered));
  if (given->surface != KILN_SWITCH_ON) return kiln_ok();
  return check_ids(device, sides, kLimits[1][shape], layered);
}
#undef IDS
#undef CUBES_IDS
#undef CUBE_IDS
#undef ID

// ---- The options of an array ----

static kiln_status_t check_cube(const kiln_array_options_t* given) {
  const bool layered = given->layered == KILN_SWITCH_ON;
  if (given->width == given->height &&
      (layered ? given->depth > 0 && given->depth % 6 == 0
               : given->depth == 6)) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(
          INVALID_ARGUMENT, "a cube of %llu faces of %llu by %llu texels",
          (unsigned long long)given->depth, (unsigned long long)given->width,
          (unsigned long long)given->height),
      "make it as high as it is wide with a `depth` of %s in "
      "kiln_array_options_t",
      layered ? "6 for each cube" : "6");
}

static kiln_status_t array_check_shape(const kiln_array_options_t* given) {
  KILNI_CHECK_ARGUMENT(given->surface <= KILN_SWITCH_ON, "options.surface");
  KILNI_CHECK_ARGUMENT(given->layered <= KILN_SWITCH_ON, "options.layered");
  KILNI_CHECK_ARGUMENT(given->cube <= KILN_SWITCH_ON, "options.cube");
  KILNI_CHECK_ARGUMENT(given->gather <= KILN_SWITCH_ON, "options.gather");
  KILNI_CHECK_ARGUMENT(given->width > 0, "options.width");
  const bool layered = given->layered == KILN_SWITCH_ON;
  KILNI_CHECK_ARGUMENT_SAYS(!layered || given->depth > 0, "options.depth",
                            "is 0, of a layered array",
                            "set it to the number of layers");
  if (given->cube == KILN_SWITCH_ON) {
    KILNI_RETURN_IF_ERROR(check_cube(given));
  } else {
    KILNI_CHECK_ARGUMENT_SAYS(
        given->depth == 0 || given->height > 0 || layered, "options.height",
        "is 0, of an array with a depth", "set it, or leave `depth` 0");
  }
  KILNI_CHECK_ARGUMENT_SAYS(
      given->gather != KILN_SWITCH_ON || array_shape_of(given) == PLANE,
      "options.gather", "is on, of an array that is not two-dimensional",
      "leave it off, or set `width` and `height` only");
  return kiln_ok();
}

static kiln_status_t array_read_options(kiln_device_t* device,
                                        const kiln_array_options_t* options,
                                        bool mipmapped,
                                        kiln_array_options_t* given,
                                        uint32_t* out_texel_bytes) {
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(options != NULL, "options");
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_array_options_t, given));
  KILNI_RETURN_IF_ERROR(kilni_device_texel_read(
      &given->format, &given->channels, out_texel_bytes));
  KILNI_RETURN_IF_ERROR(array_check_shape(given));
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  KILNI_RETURN_IF_ERROR(kilni_table_cuda_need(
      device->table, mipmapped ? KILNI_CUDA_ROW_cuMipmappedArrayCreate
                               : KILNI_CUDA_ROW_cuArray3DCreate));
  return check_sides(device, given, mipmapped);
}

static kiln_cu_array_desc_t desc_of(const kiln_array_options_t* given) {
  kiln_cu_array_desc_t desc;
  memset(&desc, 0, sizeof(desc));
  desc.width = (size_t)given->width;
  desc.height = (size_t)given->height;
  desc.depth = (size_t)given->depth;
  desc.format = given->format;
  desc.channels = given->channels;
  if (given->surface == KILN_SWITCH_ON) {
    desc.flags |= KILN_CUDA_ARRAY3D_SURFACE_LDST;
  }
  if (given->layered == KILN_SWITCH_ON) {
    desc.flags |= KILN_CUDA_ARRAY3D_LAYERED;
  }
  if (given->cube == KILN_SWITCH_ON) desc.flags |= KILN_CUDA_ARRAY3D_CUBEMAP;
  if (given->gather == KILN_SWITCH_ON) {
    desc.flags |= KILN_CUDA_ARRAY3D_TEXTURE_GATHER;
  }
  return desc;
}

// ---- Arrays ----

static kilni_base_registry_key_t array_key_of(kiln_cu_array_t handle) {
  return (kilni_base_registry_key_t){(uint64_t)(uintptr_t)handle,
                                     KILNI_REGISTERED_ARRAY, 0};
}

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
  kiln_mipmap_t* mipmap = array->mipmap;
  kiln_owner_t owner = array->owner;
  kilni_base_registry_remove(&device->registry, &array->entry);
  if (array->handle != NULL && mipmap == NULL && !array->foreign) {
    kilni_device_wait_end(device);
    KILNI_DEVICE_END(device, cuArrayDestroy, array->handle);
  }
  kilni_base_free(device->host->allocator, array, sizeof(*array));
  kilni_device_owner_release(owner);
  kiln_mipmap_release(mipmap);
  kiln_device_release(device);
}

static kiln_status_t new_array(kiln_device_t* device,
                               const kiln_cu_array_desc_t* desc,
                               uint32_t texel_bytes, kiln_array_t** out_array) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(device->host->allocator, sizeof(kiln_array_t), &block));
  kiln_array_t* array = block;
  array->device = device;
  kiln_device_retain(device);
  atomic_init(&array->references, 1);
  array->with_surface = (desc->flags & KILN_CUDA_ARRAY3D_SURFACE_LDST) != 0;
  array->texel_bytes = texel_bytes;
  array->desc = *desc;
  *out_array = array;
  return kiln_ok();
}

kiln_status_t kiln_array_create(kiln_device_t* device,
                                const kiln_array_options_t* options,
                                kiln_array_t** out_array) {
  KILNI_CHECK_ARGUMENT(out_array != NULL, "out_array");
  *out_array = NULL;
  kiln_array_options_t given;
  uint32_t texel_bytes = 0;
  KILNI_RETURN_IF_ERROR(
      array_read_options(device, options, false, &given, &texel_bytes));
  const kiln_cu_array_desc_t desc = desc_of(&given);
  kiln_array_t* array = NULL;
  KILNI_RETURN_IF_ERROR(new_array(device, &desc, texel_bytes, &array));
  kiln_status_t status;
  KILNI_DEVICE_CREATE(status, device, &array->handle, cuArray3DCreate,
                      &array->desc);
  if (!kiln_status_is_ok(status)) {
    kiln_array_release(array);
    return KILNI_ANNOTATE(status, "making an array of %llu texels in a row",
                          (unsigned long long)given.width);
  }
  kilni_base_registry_put(&device->registry, &array->entry,
                          array_key_of(array->handle), array,
                          &array->references);
  *out_array = array;
  return kiln_ok();
}

// ---- Foreign arrays ----

// What the driver reports of one, in our terms.
static kiln_status_t ask_desc(kiln_device_t* device, kiln_cu_array_t handle,
                              kiln_cu_array_desc_t* out_desc,
                              uint32_t* out_texel_bytes) {
  kiln_status_t status;
  memset(out_desc, 0, sizeof(*out_desc));
  KILNI_DEVICE_CALL(status, device, cuArray3DGetDescriptor, out_desc, handle);
  KILNI_RETURN_IF_ERROR(status);
  for (uint32_t i = 1; i < sizeof(kTexels) / sizeof(kTexels[0]); i++) {
    if (kTexels[i].format != out_desc->format) continue;
    *out_texel_bytes = kTexels[i].bytes * out_desc->channels;
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED, "an array of texels of the driver's format 0x%x",
                 out_desc->format),
      "adopt arrays of integers and floats: KILN_TEXEL_*");
}

kiln_status_t kiln_array_adopt(kiln_device_t* device, void* handle,
                               const kiln_owner_t* owner,
                               kiln_array_t** out_array) {
  KILNI_CHECK_ARGUMENT(out_array != NULL, "out_array");
  *out_array = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(handle != NULL, "handle");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  KILNI_RETURN_IF_ERROR(kilni_table_cuda_need(
      device->table, KILNI_CUDA_ROW_cuArray3DGetDescriptor));
  KILNI_RETURN_IF_ERROR(kilni_device_check_not_lost(device));
  const bool owned = owner != NULL && owner->release != NULL;
  kilni_base_registry_t* registry = &device->registry;
  kiln_array_t* known =
      kilni_base_registry_find(registry, array_key_of(handle));
  if (known != NULL && (!owned || !known->foreign)) {
    if (owned) kilni_device_owner_release(*owner);
    *out_array = known;
    return kiln_ok();
  }
  // Other code keeps that object's handle alive, for an unknown time.
  kiln_array_release(known);
  kiln_cu_array_desc_t desc;
  uint32_t texel_bytes = 0;
  KILNI_RETURN_IF_ERROR(ask_desc(device, handle, &desc, &texel_bytes));
  kiln_array_t* array = NULL;
  KILNI_RETURN_IF_ERROR(new_array(device, &desc, texel_bytes, &array));
  array->foreign = true;
  array->handle = handle;
  *out_array = array;
  if (owned) {
    array->owner = *owner;
    return kiln_ok();
  }
  known = kilni_base_registry_add(registry, &array->entry, array_key_of(handle),
                                  array, &array->references);
  if (known == NULL) return kiln_ok();
  kiln_array_release(array);
  *out_array = known;
  return kiln_ok();
}

kiln_device_t* kiln_array_device(const kiln_array_t* array) {
  return array->device;
}

void* kiln_array_handle(const kiln_array_t* array) {
  return array->handle;
}

// ---- Mipmaps ----

void kiln_mipmap_retain(kiln_mipmap_t* mipmap) {
  if (mipmap == NULL) return;
  atomic_fetch_add_explicit(&mipmap->references, 1, memory_order_relaxed);
}

void kiln_mipmap_release(kiln_mipmap_t* mipmap) {
  if (mipmap == NULL || kilni_device_is_forked(mipmap->device)) return;
  if (atomic_fetch_sub_explicit(&mipmap->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kiln_device_t* device = mipmap->device;
  if (mipmap->handle != NULL) {
    kilni_device_wait_end(device);
    KILNI_DEVICE_END(device, cuMipmappedArrayDestroy, mipmap->handle);
  }
  kilni_base_free(device->host->allocator, mipmap, sizeof(*mipmap));
  kiln_device_release(device);
}

// Down to one texel; layers stay.
static uint32_t most_levels(const kiln_array_options_t* given) {
  uint64_t side = given->width > given->height ? given->width : given->height;
  if (array_shape_of(given) == VOLUME && given->depth > side) {
    side = given->depth;
  }
  uint32_t levels = 0;
  for (; side > 0; side /= 2) levels++;
  return levels;
}

static kiln_status_t check_levels(const kiln_array_options_t* given,
                                  uint32_t* levels) {
  const uint32_t most = most_levels(given);
  if (*levels == 0) *levels = most;
  if (*levels <= most) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED,
                 "%u levels of a mipmap that reaches one texel after %u",
                 (unsigned)*levels, (unsigned)most),
      "ask for at most %u levels, or for 0, which means all", (unsigned)most);
}

kiln_status_t kiln_mipmap_create(kiln_device_t* device,
                                 const kiln_array_options_t* options,
                                 uint32_t levels, kiln_mipmap_t** out_mipmap) {
  KILNI_CHECK_ARGUMENT(out_mipmap != NULL, "out_mipmap");
  *out_mipmap = NULL;
  kiln_array_options_t given;
  uint32_t texel_bytes = 0;
  KILNI_RETURN_IF_ERROR(
      array_read_options(device, options, true, &given, &texel_bytes));
  KILNI_RETURN_IF_ERROR(check_levels(&given, &levels));
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(device->host->allocator, sizeof(kiln_mipmap_t), &block));
  kiln_mipmap_t* mipmap = block;
  mipmap->device = device;
  kiln_device_retain(device);
  atomic_init(&mipmap->references, 1);
  mipmap->with_surface = given.surface == KILN_SWITCH_ON;
  mipmap->texel_bytes = texel_bytes;
  mipmap->levels = levels;
  mipmap->desc = desc_of(&given);
  kiln_status_t status;
  KILNI_DEVICE_CREATE(status, device, &mipmap->handle, cuMipmappedArrayCreate,
                      &mipmap->desc, levels);
  if (!kiln_status_is_ok(status)) {
    kiln_mipmap_release(mipmap);
    return KILNI_ANNOTATE(status, "making a mipmap of %u levels",
                          (unsigned)levels);
  }
  *out_mipmap = mipmap;
  return kiln_ok();
}

kiln_device_t* kiln_mipmap_device(const kiln_mipmap_t* mipmap) {
  return mipmap->device;
}

void* kiln_mipmap_handle(const kiln_mipmap_t* mipmap) {
  return mipmap->handle;
}

uint32_t kiln_mipmap_level_count(const kiln_mipmap_t* mipmap) {
  return mipmap->levels;
}

static size_t halved(size_t side, uint32_t level) {
  if (side == 0) return 0;
  return side >> level > 0 ? side >> level : 1;
}

kiln_status_t kiln_mipmap_level(kiln_mipmap_t* mipmap, uint32_t level,
                                kiln_array_t** out_array) {
  KILNI_CHECK_ARGUMENT(out_array != NULL, "out_array");
  *out_array = NULL;
  KILNI_CHECK_ARGUMENT(mipmap != NULL, "mipmap");
  if (level >= mipmap->levels) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(OUT_OF_RANGE, "level %u of a mipmap of %u", (unsigned)level,
                   (unsigned)mipmap->levels),
        "ask kiln_mipmap_level_count; the first level is 0");
  }
  kiln_device_t* device = mipmap->device;
  kiln_cu_array_desc_t desc = mipmap->desc;
  const unsigned int layers =
      KILN_CUDA_ARRAY3D_LAYERED | KILN_CUDA_ARRAY3D_CUBEMAP;
  desc.width = halved(desc.width, level);
  desc.height = halved(desc.height, level);
  if ((desc.flags & layers) == 0) desc.depth = halved(desc.depth, level);
  kiln_array_t* array = NULL;
  KILNI_RETURN_IF_ERROR(new_array(device, &desc, mipmap->texel_bytes, &array));
  array->mipmap = mipmap;
  kiln_mipmap_retain(mipmap);
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuMipmappedArrayGetLevel, &array->handle,
                    mipmap->handle, level);
  if (!kiln_status_is_ok(status)) {
    kiln_array_release(array);
    return status;
  }
  *out_array = array;
  return kiln_ok();
}

// ---- Sizes ----

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

static kiln_status_t array_copy(kiln_array_t* array, kiln_stream_t* stream,
                                kiln_cu_copy_side_t from,
                                kiln_cu_copy_side_t to) {
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

static kiln_status_t array_check_stream(const kiln_array_t* array,
                                        const kiln_stream_t* stream) {
  KILNI_CHECK_ARGUMENT(array != NULL, "array");
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  return kilni_device_check_memory(array->device, stream->device, "the stream");
}

static kiln_status_t array_check_host(const kiln_array_t* array,
                                      const kiln_stream_t* stream,
                                      uint64_t bytes, const void* data) {
  KILNI_RETURN_IF_ERROR(array_check_stream(array, stream));
  KILNI_CHECK_ARGUMENT(data != NULL, "data");
  if (bytes == kiln_array_size(array)) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(OUT_OF_RANGE, "%llu bytes for an array of %llu",
                 (unsigned long long)bytes,
                 (unsigned long long)kiln_array_size(array)),
      "pass kiln_array_size bytes");
}

static kiln_status_t array_check_buffer(const kiln_array_t* array,
                                        const kiln_stream_t* stream,
                                        const kiln_buffer_t* buffer,
                                        uint64_t offset) {
  KILNI_RETURN_IF_ERROR(array_check_stream(array, stream));
  KILNI_CHECK_ARGUMENT(buffer != NULL, "buffer");
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_memory(array->device, buffer->device, "the buffer"));
  if (offset <= buffer->size &&
      kiln_array_size(array) <= buffer->size - offset) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(OUT_OF_RANGE, "%llu bytes from %llu on in a buffer of %llu",
                 (unsigned long long)kiln_array_size(array),
                 (unsigned long long)offset, (unsigned long long)buffer->size),
      "use a buffer with kiln_array_size bytes after the offset");
}

kiln_status_t kiln_array_write_async(kiln_array_t* array, kiln_stream_t* stream,
                                     uint64_t bytes, const void* data) {
  KILNI_RETURN_IF_ERROR(array_check_host(array, stream, bytes, data));
  return array_copy(array, stream, packed_side(array, data, 0),
                    array_side(array));
}

kiln_status_t kiln_array_read_async(kiln_array_t* array, kiln_stream_t* stream,
                                    uint64_t bytes, void* data) {
  KILNI_RETURN_IF_ERROR(array_check_host(array, stream, bytes, data));
  return array_copy(array, stream, array_side(array),
                    packed_side(array, data, 0));
}

kiln_status_t kiln_array_copy_from_async(kiln_array_t* array,
                                         kiln_stream_t* stream,
                                         const kiln_buffer_t* buffer,
                                         uint64_t offset) {
  KILNI_RETURN_IF_ERROR(array_check_buffer(array, stream, buffer, offset));
  return array_copy(array, stream,
                    packed_side(array, NULL, buffer->address + offset),
                    array_side(array));
}

kiln_status_t kiln_array_copy_to_async(kiln_array_t* array,
                                       kiln_stream_t* stream,
                                       kiln_buffer_t* buffer, uint64_t offset) {
  KILNI_RETURN_IF_ERROR(array_check_buffer(array, stream, buffer, offset));
  return array_copy(array, stream, array_side(array),
                    packed_side(array, NULL, buffer->address + offset));
}
