// SPDX-License-Identifier: Apache-2.0
//
// device: arrays, textures and surfaces over the null provider: what the
// driver is told of them, what is refused before it is asked, and that all
// ends in every order. What a GPU reads and writes is asked of one:
// live_textures.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "device/device_inside.h"
#include "table/cuda_table.h"
#include "device_world.h"
#include "says.h"

// What the driver was told last, and the order of ends. one-thread
static struct {
  kiln_cuda_table_t under;
  kiln_cu_array_desc_t array;
  unsigned int levels;
  kiln_cu_copy_3d_t copy;
  kiln_cu_texels_t texels;
  kiln_cu_sampler_t sampler;
  char order[32];
} seen;

static void note(char letter) {
  size_t length = strlen(seen.order);
  if (length + 1 < sizeof(seen.order)) seen.order[length] = letter;
}

static kiln_cu_result_t seen_array(kiln_cu_array_t* array,
                                   const kiln_cu_array_desc_t* desc) {
  seen.array = *desc;
  return seen.under.cuArray3DCreate(array, desc);
}

static kiln_cu_result_t seen_mipmap(kiln_cu_mipmapped_array_t* mipmapped,
                                    const kiln_cu_array_desc_t* desc,
                                    unsigned int levels) {
  seen.array = *desc;
  seen.levels = levels;
  return seen.under.cuMipmappedArrayCreate(mipmapped, desc, levels);
}

static kiln_cu_result_t seen_end_mipmap(kiln_cu_mipmapped_array_t mipmapped) {
  note('M');
  return seen.under.cuMipmappedArrayDestroy(mipmapped);
}

static kiln_cu_result_t seen_copy(const kiln_cu_copy_3d_t* copy,
                                  kiln_cu_stream_t stream) {
  seen.copy = *copy;
  return seen.under.cuMemcpy3DAsync(copy, stream);
}

static kiln_cu_result_t seen_texture(kiln_cu_texture_t* texture,
                                     const kiln_cu_texels_t* texels,
                                     const kiln_cu_sampler_t* sampler,
                                     const kiln_cu_texel_view_t* view) {
  seen.texels = *texels;
  seen.sampler = *sampler;
  assert_null(view);
  return seen.under.cuTexObjectCreate(texture, texels, sampler, view);
}

static kiln_cu_result_t seen_wait(void) {
  note('w');
  return seen.under.cuCtxSynchronize();
}

static kiln_cu_result_t seen_end_texture(kiln_cu_texture_t texture) {
  note('T');
  return seen.under.cuTexObjectDestroy(texture);
}

static kiln_cu_result_t seen_end_surface(kiln_cu_surface_t surface) {
  note('S');
  return seen.under.cuSurfObjectDestroy(surface);
}

static kiln_cu_result_t seen_end_array(kiln_cu_array_t array) {
  note('A');
  return seen.under.cuArrayDestroy(array);
}

typedef device_world_t world_t;

static int setup(void** state) {
  static world_t world;
  device_world_begin(&world);
  memset(&seen, 0, sizeof(seen));
  seen.under = world.table;
  KILNI_CUDA_SET(&world.table, cuArray3DCreate, seen_array);
  KILNI_CUDA_SET(&world.table, cuMipmappedArrayCreate, seen_mipmap);
  KILNI_CUDA_SET(&world.table, cuMipmappedArrayDestroy, seen_end_mipmap);
  KILNI_CUDA_SET(&world.table, cuMemcpy3DAsync, seen_copy);
  KILNI_CUDA_SET(&world.table, cuTexObjectCreate, seen_texture);
  KILNI_CUDA_SET(&world.table, cuCtxSynchronize, seen_wait);
  KILNI_CUDA_SET(&world.table, cuTexObjectDestroy, seen_end_texture);
  KILNI_CUDA_SET(&world.table, cuSurfObjectDestroy, seen_end_surface);
  KILNI_CUDA_SET(&world.table, cuArrayDestroy, seen_end_array);
  *state = &world;
  return 0;
}

static int teardown(void** state) {
  device_world_end(*state);
  return 0;
}

static void assert_refused(kiln_status_t status) {
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
}

static kiln_array_options_t sides(uint64_t width, uint64_t height,
                                  uint64_t depth) {
  kiln_array_options_t options = kiln_array_options_default();
  options.width = width;
  options.height = height;
  options.depth = depth;
  return options;
}

static void test_arrays(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_array_t* array = NULL;
  kiln_array_options_t options = sides(100, 0, 0);
  assert_null(kiln_array_create(world->device, &options, &array));
  assert_int_equal(seen.array.format, KILN_CU_AD_FORMAT_FLOAT);
  assert_int_equal(seen.array.channels, 1);
  assert_int_equal(seen.array.flags, 0);
  assert_true(kiln_array_size(array) == 400);
  assert_ptr_equal(kiln_array_device(array), world->device);
  assert_non_null(kiln_array_handle(array));
  kiln_array_release(array);
  options = sides(10, 20, 30);
  options.format = KILN_TEXEL_U16;
  options.channels = 4;
  options.surface = KILN_SWITCH_ON;
  assert_null(kiln_array_create(world->device, &options, &array));
  assert_int_equal(seen.array.format, KILN_CU_AD_FORMAT_UNSIGNED_INT16);
  assert_int_equal(seen.array.flags, KILN_CUDA_ARRAY3D_SURFACE_LDST);
  assert_true(seen.array.width == 10 && seen.array.height == 20 &&
              seen.array.depth == 30 && seen.array.channels == 4);
  assert_true(kiln_array_size(array) == 10 * 20 * 30 * 8);
  kiln_array_release(array);
  assert_string_equal(seen.order, "wAwA");
  device_world_close(world);
}

static void refuse_array(world_t* world, kiln_array_options_t options,
                         const char* what) {
  kiln_array_t* array = (kiln_array_t*)world;
  assert_says(kiln_array_create(world->device, &options, &array),
              KILN_STATUS_LIMIT_EXCEEDED, what);
  assert_null(array);
}

static void test_limits_of_arrays(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_array_t* array = NULL;
  refuse_array(world, sides(131073, 0, 0), "a width of 131073");
  refuse_array(world, sides(1, 65537, 0), "a height of 65537");
  refuse_array(world, sides(16385, 1, 1), "a width of 16385");
  refuse_array(world, sides(8193, 1, 16385), "a depth of 16385");
  kiln_array_options_t options = sides(40000, 0, 0);
  options.surface = KILN_SWITCH_ON;
  refuse_array(world, options, "takes 32768");
  // The other shape of three dimensions.
  options = sides(8192, 1, 32768);
  assert_null(kiln_array_create(world->device, &options, &array));
  kiln_array_release(array);
  options = sides(0, 0, 0);
  assert_refused(kiln_array_create(world->device, &options, &array));
  options = sides(1, 0, 1);
  assert_refused(kiln_array_create(world->device, &options, &array));
  options = sides(1, 0, 0);
  options.channels = 3;
  assert_refused(kiln_array_create(world->device, &options, &array));
  options.channels = 1;
  options.format = 9;
  assert_refused(kiln_array_create(world->device, &options, &array));
  device_world_close(world);
}

// What an array of a shape is made with, and the first of each side that is
// too much of it.
static void test_layers_and_cubes(void** state) {
  static const struct {
    uint64_t sides[3];
    uint32_t layered;
    uint32_t cube;
    uint32_t gather;
    unsigned int flags;
    uint64_t most[3];
    uint64_t most_of_surface[3];
  } shapes[] = {
      {{8, 0, 5}, 1, 0, 0, 1, {32768, 0, 2048}, {32600, 0, 1048}},
      {{8, 4, 5}, 1, 0, 0, 1, {32768, 16384, 2048}, {32500, 16284, 1040}},
      {{8, 8, 6}, 0, 1, 0, 4, {32740, 32740, 0}, {32400, 32400, 0}},
      {{8, 8, 12}, 1, 1, 0, 5, {32730, 32730, 2046}, {32300, 32300, 1038}},
      {{8, 4, 0}, 0, 0, 1, 8, {32760, 32750, 0}, {131072, 65536, 0}},
  };
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
    kiln_array_options_t options =
        sides(shapes[i].sides[0], shapes[i].sides[1], shapes[i].sides[2]);
    kiln_array_t* array = NULL;
    if (shapes[i].layered) options.layered = KILN_SWITCH_ON;
    if (shapes[i].cube) options.cube = KILN_SWITCH_ON;
    if (shapes[i].gather) options.gather = KILN_SWITCH_ON;
    assert_null(kiln_array_create(world->device, &options, &array));
    assert_int_equal(seen.array.flags, shapes[i].flags);
    const uint64_t texels = options.width *
                            (options.height > 0 ? options.height : 1) *
                            (options.depth > 0 ? options.depth : 1);
    assert_true(kiln_array_size(array) == 4 * texels);
    kiln_array_release(array);
    for (uint32_t surface = 0; surface < 2; surface++) {
      for (int side = 0; side < 3; side++) {
        const uint64_t texture = shapes[i].most[side];
        uint64_t most = texture;
        if (surface && shapes[i].most_of_surface[side] < most) {
          most = shapes[i].most_of_surface[side];
        }
        if (most == 0) continue;
        char what[64];
        kiln_array_options_t longer = options;
        if (surface) longer.surface = KILN_SWITCH_ON;
        uint64_t* const all[] = {&longer.width, &longer.height, &longer.depth};
        *all[side] = most + (options.cube && side == 2 ? 6 : 1);
        if (options.cube && side < 2) longer.width = longer.height = most + 1;
        snprintf(what, sizeof(what), "takes %llu", (unsigned long long)most);
        refuse_array(world, longer, what);
      }
    }
  }
  kiln_array_options_t options = sides(8, 4, 2049);
  options.layered = KILN_SWITCH_ON;
  refuse_array(world, options, "a number of layers of 2049");
  device_world_close(world);
}

static void test_shapes_that_are_none(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_array_t* array = (kiln_array_t*)world;
  kiln_array_options_t options = sides(8, 4, 6);
  options.cube = KILN_SWITCH_ON;
  assert_says(kiln_array_create(world->device, &options, &array),
              KILN_STATUS_INVALID_ARGUMENT, "6 faces of 8 by 4");
  assert_null(array);
  options = sides(8, 8, 12);
  options.cube = KILN_SWITCH_ON;
  assert_says(kiln_array_create(world->device, &options, &array),
              KILN_STATUS_INVALID_ARGUMENT, "12 faces");
  options.layered = KILN_SWITCH_ON;
  options.depth = 13;
  assert_says(kiln_array_create(world->device, &options, &array),
              KILN_STATUS_INVALID_ARGUMENT, "6 for each cube");
  options = sides(8, 8, 0);
  options.layered = KILN_SWITCH_ON;
  assert_refused(kiln_array_create(world->device, &options, &array));
  options = sides(8, 8, 8);
  options.gather = KILN_SWITCH_ON;
  assert_refused(kiln_array_create(world->device, &options, &array));
  options = sides(8, 8, 0);
  options.reserved = 1;
  assert_refused(kiln_array_create(world->device, &options, &array));
  device_world_close(world);
}

// ---- Mipmaps ----

static void test_mipmaps(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_mipmap_t* mipmap = NULL;
  kiln_array_t* level = NULL;
  kiln_surface_t* surface = NULL;
  float data[8] = {0};
  kiln_array_options_t options = sides(16, 4, 0);
  options.surface = KILN_SWITCH_ON;
  assert_null(kiln_mipmap_create(world->device, &options, 0, &mipmap));
  assert_int_equal(seen.levels, 5);
  assert_int_equal(kiln_mipmap_level_count(mipmap), 5);
  assert_ptr_equal(kiln_mipmap_device(mipmap), world->device);
  assert_non_null(kiln_mipmap_handle(mipmap));
  assert_int_equal(seen.array.flags, KILN_CUDA_ARRAY3D_SURFACE_LDST);
  // A level is an array, and keeps the whole.
  assert_null(kiln_mipmap_level(mipmap, 1, &level));
  assert_true(kiln_array_size(level) == 8 * 2 * 4);
  kiln_array_release(level);
  assert_null(kiln_mipmap_level(mipmap, 3, &level));
  assert_true(kiln_array_size(level) == 8);
  assert_ptr_equal(kiln_array_handle(level),
                   (char*)kiln_mipmap_handle(mipmap) + 4);
  assert_null(kiln_array_write_async(level, world->stream, 8, data));
  assert_true(seen.copy.width_bytes == 8 && seen.copy.height == 1);
  assert_null(kiln_surface_create(level, &surface));
  kiln_mipmap_release(mipmap);
  kiln_array_release(level);
  assert_string_equal(seen.order, "");
  kiln_surface_release(surface);
  assert_string_equal(seen.order, "wSwM");
  // Depth is halved, layers are not.
  options = sides(4, 4, 8);
  assert_null(kiln_mipmap_create(world->device, &options, 4, &mipmap));
  assert_null(kiln_mipmap_level(mipmap, 2, &level));
  assert_true(kiln_array_size(level) == 1 * 1 * 2 * 4);
  kiln_array_release(level);
  level = (kiln_array_t*)world;
  assert_says(kiln_mipmap_level(mipmap, 4, &level), KILN_STATUS_OUT_OF_RANGE,
              "level 4 of a mipmap of 4");
  assert_null(level);
  kiln_mipmap_release(mipmap);
  options.layered = KILN_SWITCH_ON;
  assert_null(kiln_mipmap_create(world->device, &options, 0, &mipmap));
  assert_int_equal(kiln_mipmap_level_count(mipmap), 3);
  assert_null(kiln_mipmap_level(mipmap, 2, &level));
  assert_true(kiln_array_size(level) == 8 * 4);
  kiln_array_release(level);
  kiln_mipmap_release(mipmap);
  device_world_close(world);
}

static void test_limits_of_mipmaps(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_mipmap_t* mipmap = (kiln_mipmap_t*)world;
  kiln_array_options_t options = sides(16, 4, 0);
  assert_says(kiln_mipmap_create(world->device, &options, 6, &mipmap),
              KILN_STATUS_LIMIT_EXCEEDED, "reaches one texel after 5");
  assert_null(mipmap);
  options = sides(32721, 0, 0);
  assert_says(kiln_mipmap_create(world->device, &options, 1, &mipmap),
              KILN_STATUS_LIMIT_EXCEEDED, "takes 32720");
  options = sides(1, 32701, 0);
  assert_says(kiln_mipmap_create(world->device, &options, 1, &mipmap),
              KILN_STATUS_LIMIT_EXCEEDED, "takes 32700");
  device_world_close(world);
}

static void test_textures_over_mipmaps(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_mipmap_t* mipmap = NULL;
  kiln_texture_t* texture = (kiln_texture_t*)world;
  kiln_array_options_t options = sides(16, 16, 6);
  kiln_texture_options_t how = kiln_texture_options_default();
  options.cube = KILN_SWITCH_ON;
  assert_null(kiln_mipmap_create(world->device, &options, 0, &mipmap));
  assert_says(kiln_texture_create_mipmap(mipmap, NULL, &texture),
              KILN_STATUS_INVALID_ARGUMENT, "not normalized");
  assert_null(texture);
  how.normalized = KILN_SWITCH_ON;
  how.level_linear = KILN_SWITCH_ON;
  how.level_bias = -0.5f;
  how.level_least = 1;
  how.anisotropy = 16;
  how.exact = KILN_SWITCH_ON;
  how.seamless = KILN_SWITCH_ON;
  assert_null(kiln_texture_create_mipmap(mipmap, &how, &texture));
  assert_int_equal(seen.texels.type, KILN_CU_RESOURCE_TYPE_MIPMAPPED_ARRAY);
  assert_ptr_equal(seen.texels.of.mipmapped, kiln_mipmap_handle(mipmap));
  assert_int_equal(seen.sampler.flags, 0x62);
  assert_int_equal(seen.sampler.level_filter, KILN_CU_TR_FILTER_MODE_LINEAR);
  assert_int_equal(seen.sampler.anisotropy, 16);
  assert_true(seen.sampler.level_bias == -0.5f &&
              seen.sampler.level_least == 1 && seen.sampler.level_most == 4);
  kiln_mipmap_release(mipmap);
  assert_string_equal(seen.order, "");
  kiln_texture_release(texture);
  assert_string_equal(seen.order, "wTwM");
  device_world_close(world);
}

// What is said of levels and cubes where there are none.
static void test_sampler_limits(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_mipmap_t* mipmap = NULL;
  kiln_array_t* array = NULL;
  kiln_texture_t* texture = NULL;
  kiln_array_options_t options = sides(16, 16, 0);
  kiln_texture_options_t how = kiln_texture_options_default();
  assert_null(kiln_array_create(world->device, &options, &array));
  how.level_bias = 1;
  assert_says(kiln_texture_create(array, &how, &texture),
              KILN_STATUS_INVALID_ARGUMENT, "not over a mipmap");
  how = kiln_texture_options_default();
  how.seamless = KILN_SWITCH_ON;
  assert_refused(kiln_texture_create(array, &how, &texture));
  how.seamless = KILN_SWITCH_OFF;
  how.anisotropy = 17;
  assert_refused(kiln_texture_create(array, &how, &texture));
  kiln_array_release(array);
  options.format = KILN_TEXEL_I16;
  assert_null(kiln_mipmap_create(world->device, &options, 0, &mipmap));
  how = kiln_texture_options_default();
  how.normalized = KILN_SWITCH_ON;
  how.level_linear = KILN_SWITCH_ON;
  assert_says(kiln_texture_create_mipmap(mipmap, &how, &texture),
              KILN_STATUS_INVALID_ARGUMENT, "linear filter");
  how.level_linear = KILN_SWITCH_OFF;
  how.level_least = 3;
  how.level_most = 2;
  assert_refused(kiln_texture_create_mipmap(mipmap, &how, &texture));
  how.level_least = 0;
  how.level_most = -1;
  assert_refused(kiln_texture_create_mipmap(mipmap, &how, &texture));
  how.level_most = 2;
  assert_null(kiln_texture_create_mipmap(mipmap, &how, &texture));
  assert_true(seen.sampler.level_most == 2);
  kiln_texture_release(texture);
  kiln_mipmap_release(mipmap);
  device_world_close(world);
}

static void count_told(void* user) {
  ++*(int*)user;
}

// What a host program made is used as it is, and ended by nobody here.
static void test_foreign_arrays(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  int told = 0;
  const kiln_owner_t owner = {count_told, &told};
  kiln_array_t* array = NULL;
  kiln_array_t* again = NULL;
  kiln_array_t* made = NULL;
  kiln_surface_t* surface = NULL;
  void* handle = world;
  // The null provider says the same of all: 8 by 4 floats, for surfaces too.
  assert_null(kiln_array_adopt(world->device, handle, NULL, &array));
  assert_true(kiln_array_size(array) == 128);
  assert_ptr_equal(kiln_array_handle(array), handle);
  assert_null(kiln_array_adopt(world->device, handle, NULL, &again));
  assert_ptr_equal(again, array);
  kiln_array_release(again);
  // Another owner is another object.
  assert_null(kiln_array_adopt(world->device, handle, &owner, &again));
  assert_ptr_not_equal(again, array);
  assert_null(kiln_surface_create(again, &surface));
  kiln_array_release(again);
  kiln_array_release(array);
  assert_int_equal(told, 0);
  kiln_surface_release(surface);
  assert_int_equal(told, 1);
  assert_null(strchr(seen.order, 'A'));
  // One of ours is found.
  kiln_array_options_t options = sides(8, 4, 0);
  assert_null(kiln_array_create(world->device, &options, &made));
  assert_null(
      kiln_array_adopt(world->device, kiln_array_handle(made), &owner, &again));
  assert_ptr_equal(again, made);
  assert_int_equal(told, 2);
  kiln_array_release(again);
  kiln_array_release(made);
  device_world_close(world);
}

// Also one that is known: nothing of a lost device is of use.
static void test_adopting_on_a_lost_device(void** state) {
  world_t* world = *state;
  device_world_open(world, "cuda:0");
  kiln_array_t* array = NULL;
  kiln_array_t* again = NULL;
  assert_null(kiln_array_adopt(world->device, world, NULL, &array));
  kilni_device_mark_lost(world->device);
  assert_says(kiln_array_adopt(world->device, world, NULL, &again),
              KILN_STATUS_DEVICE_LOST, "is lost");
  assert_null(again);
  kiln_array_release(array);
  device_world_close(world);
  kilni_table_cuda_null_reset();
}

static void test_copies(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_array_t* array = NULL;
  kiln_buffer_t* buffer = NULL;
  kiln_array_options_t options = sides(8, 4, 0);
  float data[32] = {0};
  assert_null(kiln_array_create(world->device, &options, &array));
  assert_null(kiln_buffer_create(world->device, 256, NULL, &buffer));
  assert_null(kiln_array_write_async(array, world->stream, sizeof(data), data));
  assert_int_equal(seen.copy.from.type, KILN_CU_MEMORYTYPE_HOST);
  assert_ptr_equal(seen.copy.from.host, data);
  assert_true(seen.copy.from.row_bytes == 32 && seen.copy.from.rows == 4);
  assert_ptr_equal(seen.copy.to.array, kiln_array_handle(array));
  assert_true(seen.copy.width_bytes == 32 && seen.copy.height == 4 &&
              seen.copy.depth == 1);
  assert_null(kiln_array_read_async(array, world->stream, sizeof(data), data));
  assert_int_equal(seen.copy.from.type, KILN_CU_MEMORYTYPE_ARRAY);
  assert_ptr_equal(seen.copy.to.host, data);
  assert_null(kiln_array_copy_from_async(array, world->stream, buffer, 128));
  assert_int_equal(seen.copy.from.type, KILN_CU_MEMORYTYPE_DEVICE);
  assert_true(seen.copy.from.device == kiln_buffer_address(buffer) + 128);
  assert_null(kiln_array_copy_to_async(array, world->stream, buffer, 0));
  assert_true(seen.copy.to.device == kiln_buffer_address(buffer));
  assert_says(kiln_array_write_async(array, world->stream, 127, data),
              KILN_STATUS_OUT_OF_RANGE, "127 bytes");
  assert_says(kiln_array_copy_to_async(array, world->stream, buffer, 129),
              KILN_STATUS_OUT_OF_RANGE, "from 129 on");
  kiln_buffer_release(buffer);
  kiln_array_release(array);
  device_world_close(world);
}

static void test_samplers(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_array_t* array = NULL;
  kiln_texture_t* texture = NULL;
  kiln_array_options_t options = sides(8, 4, 0);
  kiln_texture_options_t how = kiln_texture_options_default();
  options.format = KILN_TEXEL_U8;
  assert_null(kiln_array_create(world->device, &options, &array));
  assert_null(kiln_texture_create(array, NULL, &texture));
  assert_true(kiln_texture_handle(texture) != 0);
  assert_int_equal(seen.sampler.flags, KILN_CU_TRSF_READ_AS_INTEGER);
  assert_int_equal(seen.sampler.address[0], KILN_CU_TR_ADDRESS_MODE_CLAMP);
  assert_int_equal(seen.texels.type, KILN_CU_RESOURCE_TYPE_ARRAY);
  assert_ptr_equal(seen.texels.of.array, kiln_array_handle(array));
  kiln_texture_release(texture);
  how.address[0] = KILN_TEXTURE_MIRROR;
  texture = (kiln_texture_t*)world;
  assert_says(kiln_texture_create(array, &how, &texture),
              KILN_STATUS_INVALID_ARGUMENT, "not normalized");
  assert_null(texture);
  how.normalized = KILN_SWITCH_ON;
  how.address[1] = KILN_TEXTURE_BORDER;
  how.linear = KILN_SWITCH_ON;
  assert_says(kiln_texture_create(array, &how, &texture),
              KILN_STATUS_INVALID_ARGUMENT, "linear filter");
  how.as_float = KILN_SWITCH_ON;
  how.border[3] = 0.5f;
  assert_null(kiln_texture_create(array, &how, &texture));
  assert_int_equal(seen.sampler.flags, KILN_CU_TRSF_NORMALIZED_COORDINATES);
  assert_int_equal(seen.sampler.address[0], KILN_CU_TR_ADDRESS_MODE_MIRROR);
  assert_int_equal(seen.sampler.address[1], KILN_CU_TR_ADDRESS_MODE_BORDER);
  assert_int_equal(seen.sampler.filter, KILN_CU_TR_FILTER_MODE_LINEAR);
  assert_true(seen.sampler.border[3] == 0.5f);
  kiln_texture_release(texture);
  how.address[2] = 4;
  assert_refused(kiln_texture_create(array, &how, &texture));
  kiln_array_release(array);
  // Floats are floats whatever is said of integers, and have no sRGB.
  options.format = KILN_TEXEL_F32;
  assert_null(kiln_array_create(world->device, &options, &array));
  assert_null(kiln_texture_create(array, NULL, &texture));
  assert_int_equal(seen.sampler.flags, 0);
  kiln_texture_release(texture);
  how = kiln_texture_options_default();
  how.srgb = KILN_SWITCH_ON;
  assert_refused(kiln_texture_create(array, &how, &texture));
  kiln_array_release(array);
  device_world_close(world);
}

static void test_over_buffers(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_buffer_t* buffer = NULL;
  kiln_texture_t* texture = NULL;
  kiln_texels_t texels = kiln_texels_default();
  assert_null(kiln_buffer_create(world->device, 4096, NULL, &buffer));
  texels.width = 896;
  texels.offset = 512;
  assert_null(kiln_texture_create_buffer(buffer, &texels, NULL, &texture));
  assert_int_equal(seen.texels.type, KILN_CU_RESOURCE_TYPE_LINEAR);
  assert_true(seen.texels.of.linear.address ==
              kiln_buffer_address(buffer) + 512);
  assert_true(seen.texels.of.linear.bytes == 3584);
  kiln_texture_release(texture);
  texels.width = 897;
  assert_says(kiln_texture_create_buffer(buffer, &texels, NULL, &texture),
              KILN_STATUS_OUT_OF_RANGE, "3588 bytes from 512 on");
  texels.offset = 4;
  assert_says(kiln_texture_create_buffer(buffer, &texels, NULL, &texture),
              KILN_STATUS_INVALID_ARGUMENT, "multiples of 512");
  texels.width = 268435457;
  assert_says(kiln_texture_create_buffer(buffer, &texels, NULL, &texture),
              KILN_STATUS_LIMIT_EXCEEDED, "takes 268435456");
  texels = kiln_texels_default();
  texels.width = 8;
  texels.height = 128;
  texels.row_bytes = 32;
  assert_null(kiln_texture_create_buffer(buffer, &texels, NULL, &texture));
  assert_int_equal(seen.texels.type, KILN_CU_RESOURCE_TYPE_PITCH2D);
  assert_true(seen.texels.of.pitched.width == 8 &&
              seen.texels.of.pitched.height == 128 &&
              seen.texels.of.pitched.row_bytes == 32);
  // It keeps the buffer.
  kiln_buffer_release(buffer);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_MEMORY), 1);
  kiln_texture_release(texture);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_MEMORY), 0);
  assert_null(kiln_buffer_create(world->device, 4096, NULL, &buffer));
  texels.height = 129;
  assert_says(kiln_texture_create_buffer(buffer, &texels, NULL, &texture),
              KILN_STATUS_OUT_OF_RANGE, "in a buffer of 4096");
  texels.height = 2;
  texels.row_bytes = 48;
  assert_says(kiln_texture_create_buffer(buffer, &texels, NULL, &texture),
              KILN_STATUS_INVALID_ARGUMENT, "multiples of 32");
  texels.height = 65001;
  assert_says(kiln_texture_create_buffer(buffer, &texels, NULL, &texture),
              KILN_STATUS_LIMIT_EXCEEDED, "a height of 65001");
  kiln_buffer_release(buffer);
  device_world_close(world);
}

static void test_surfaces_and_ends(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "cuda:0");
  kiln_array_t* array = NULL;
  kiln_texture_t* texture = NULL;
  kiln_surface_t* surface = (kiln_surface_t*)world;
  kiln_array_options_t options = sides(8, 4, 0);
  assert_null(kiln_array_create(world->device, &options, &array));
  assert_says(kiln_surface_create(array, &surface),
              KILN_STATUS_INVALID_ARGUMENT, "made without");
  assert_null(surface);
  kiln_array_release(array);
  options.surface = KILN_SWITCH_ON;
  assert_null(kiln_array_create(world->device, &options, &array));
  assert_null(kiln_surface_create(array, &surface));
  assert_null(kiln_texture_create(array, NULL, &texture));
  assert_true(kiln_surface_handle(surface) != 0);
  memset(seen.order, 0, sizeof(seen.order));
  // Everything before what it is made over.
  device_world_close(world);
  kiln_array_release(array);
  assert_string_equal(seen.order, "");
  kiln_surface_retain(surface);
  kiln_surface_release(surface);
  kiln_texture_retain(texture);
  kiln_texture_release(texture);
  assert_string_equal(seen.order, "");
  kiln_surface_release(surface);
  assert_string_equal(seen.order, "wS");
  kiln_texture_release(texture);
  assert_string_equal(seen.order, "wSwTwA");
}

static void test_the_software_device_has_none(void** state) {
  world_t* world = *state;
  device_world_open_stream(world, "soft");
  kiln_array_t* array = NULL;
  kiln_texture_t* texture = NULL;
  kiln_buffer_t* buffer = NULL;
  kiln_array_options_t options = sides(8, 4, 0);
  kiln_texels_t texels = kiln_texels_default();
  texels.width = 8;
  assert_says(kiln_array_create(world->device, &options, &array),
              KILN_STATUS_UNSUPPORTED, "arrays");
  assert_null(kiln_buffer_create(world->device, 4096, NULL, &buffer));
  assert_says(kiln_texture_create_buffer(buffer, &texels, NULL, &texture),
              KILN_STATUS_UNSUPPORTED, "textures");
  kiln_buffer_release(buffer);
  device_world_close(world);
}

// ---- Faults ----

static kiln_status_t sweep_textures(kiln_device_t* device) {
  kiln_array_options_t options = sides(8, 4, 2);
  kiln_texels_t texels = kiln_texels_default();
  float data[64] = {0};
  kiln_array_t* array = (kiln_array_t*)device;
  kiln_buffer_t* buffer = NULL;
  kiln_stream_t* stream = NULL;
  kiln_texture_t* texture = NULL;
  kiln_texture_t* other = NULL;
  kiln_surface_t* surface = NULL;
  options.surface = KILN_SWITCH_ON;
  texels.width = 8;
  texels.height = 4;
  texels.row_bytes = 32;
  kiln_status_t status = kiln_array_create(device, &options, &array);
  assert_true((status == NULL) == (array != NULL));
  if (status == NULL) status = kiln_stream_create(device, NULL, &stream);
  if (status == NULL) {
    status = kiln_array_write_async(array, stream, sizeof(data), data);
  }
  if (status == NULL) {
    status = kiln_texture_create(array, NULL, &texture);
    assert_true((status == NULL) == (texture != NULL));
  }
  if (status == NULL) {
    status = kiln_surface_create(array, &surface);
    assert_true((status == NULL) == (surface != NULL));
  }
  if (status == NULL) status = kiln_buffer_create(device, 128, NULL, &buffer);
  if (status == NULL) {
    status = kiln_texture_create_buffer(buffer, &texels, NULL, &other);
    assert_true((status == NULL) == (other != NULL));
  }
  kiln_array_release(array);
  kiln_texture_release(texture);
  kiln_buffer_release(buffer);
  kiln_texture_release(other);
  kiln_surface_release(surface);
  kiln_stream_release(stream);
  return status;
}

static void test_every_call_fails(void** state) {
  (void)state;
  device_sweep_calls(sweep_textures, KILN_CU_ERROR_INVALID_VALUE, 60);
}

static void test_every_allocation_fails(void** state) {
  (void)state;
  device_sweep_allocations(sweep_textures, 8);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_arrays),
      TEST(test_limits_of_arrays),
      TEST(test_layers_and_cubes),
      TEST(test_shapes_that_are_none),
      TEST(test_mipmaps),
      TEST(test_limits_of_mipmaps),
      TEST(test_textures_over_mipmaps),
      TEST(test_sampler_limits),
      TEST(test_foreign_arrays),
      TEST(test_adopting_on_a_lost_device),
      TEST(test_copies),
      TEST(test_samplers),
      TEST(test_over_buffers),
      TEST(test_surfaces_and_ends),
      TEST(test_the_software_device_has_none),
      cmocka_unit_test(test_every_call_fails),
      cmocka_unit_test(test_every_allocation_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
