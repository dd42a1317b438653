// SPDX-License-Identifier: Apache-2.0
//
// device: tensor maps over the null provider: what the driver is told, and
// that each field is checked before it is asked.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device_world.h"
#include "says.h"

// What the driver was told last. one-thread
static struct {
  uint32_t calls;
  uint32_t type;
  uint32_t rank;
  void* address;
  uint64_t size;
  uint64_t stride;
  uint32_t box;
  uint32_t step;
  uint32_t words[4];
  int corners[4];
  uint32_t channels;
  uint32_t pixels;
  uint32_t mode;
  kiln_cu_result_t result;
  int compute;  // major
} seen;
static kiln_cuda_table_t under;

static kiln_cu_result_t seen_encode(
    kiln_cu_tensor_map_t* map, unsigned int type, uint32_t rank, void* address,
    const uint64_t* sizes, const uint64_t* strides, const uint32_t* box,
    const uint32_t* steps, unsigned int interleave, unsigned int swizzle,
    unsigned int promotion, unsigned int fill) {
  assert_int_equal((uintptr_t)map % 64, 0);
  seen.calls++;
  seen.type = type;
  seen.rank = rank;
  seen.address = address;
  seen.size = sizes[1];
  seen.stride = strides[0];
  seen.box = box[1];
  seen.step = steps[1];
  seen.words[0] = interleave;
  seen.words[1] = swizzle;
  seen.words[2] = promotion;
  seen.words[3] = fill;
  memset(map, 0x5a, sizeof(*map));
  return seen.result;
}

static kiln_cu_result_t seen_columns(
    kiln_cu_tensor_map_t* map, unsigned int type, uint32_t rank, void* address,
    const uint64_t* sizes, const uint64_t* strides, const int* lower,
    const int* upper, uint32_t channels, uint32_t pixels, const uint32_t* steps,
    unsigned int interleave, unsigned int swizzle, unsigned int promotion,
    unsigned int fill) {
  seen.corners[0] = lower[0];
  seen.corners[1] = lower[1];
  seen.corners[2] = upper[0];
  seen.corners[3] = upper[1];
  seen.channels = channels;
  seen.pixels = pixels;
  return seen_encode(map, type, rank, address, sizes, strides, steps, steps,
                     interleave, swizzle, promotion, fill);
}

static kiln_cu_result_t seen_wide(
    kiln_cu_tensor_map_t* map, unsigned int type, uint32_t rank, void* address,
    const uint64_t* sizes, const uint64_t* strides, int lower, int upper,
    uint32_t channels, uint32_t pixels, const uint32_t* steps,
    unsigned int interleave, unsigned int mode, unsigned int swizzle,
    unsigned int promotion, unsigned int fill) {
  const int lowers[2] = {lower, 0};
  const int uppers[2] = {upper, 0};
  seen.mode = mode;
  return seen_columns(map, type, rank, address, sizes, strides, lowers, uppers,
                      channels, pixels, steps, interleave, swizzle, promotion,
                      fill);
}

static kiln_cu_result_t see_attribute(int* value,
                                      kiln_cu_device_attribute_t attribute,
                                      kiln_cu_device_t device) {
  kiln_cu_result_t result =
      under.cuDeviceGetAttribute(value, attribute, device);
  if (attribute == KILN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
    *value = seen.compute;
  }
  return result;
}

typedef device_world_t world_t;

static int setup(void** state) {
  static world_t world;
  device_world_begin(&world);
  memset(&seen, 0, sizeof(seen));
  seen.compute = 10;
  under = world.table;
  KILNI_CUDA_SET(&world.table, cuTensorMapEncodeTiled, seen_encode);
  KILNI_CUDA_SET(&world.table, cuTensorMapEncodeIm2col, seen_columns);
  KILNI_CUDA_SET(&world.table, cuTensorMapEncodeIm2colWide, seen_wide);
  KILNI_CUDA_SET(&world.table, cuDeviceGetAttribute, see_attribute);
  device_world_open(&world, "cuda:0");
  *state = &world;
  return 0;
}

static int teardown(void** state) {
  device_world_close(*state);
  device_world_end(*state);
  return 0;
}

// 64 rows of 256 floats, in boxes of 8 by 4.
static kiln_tensor_options_t plane(void) {
  kiln_tensor_options_t options = kiln_tensor_options_default();
  options.type = KILN_TENSOR_F32;
  options.rank = 2;
  options.address = 0x10000;
  options.sizes[0] = 256;
  options.sizes[1] = 64;
  options.strides[0] = 1024;
  options.box[0] = 8;
  options.box[1] = 4;
  return options;
}

static void test_what_is_told(void** state) {
  world_t* world = *state;
  kiln_tensor_options_t options = plane();
  kiln_tensor_map_t map;
  options.swizzle = KILN_TENSOR_SWIZZLE_32;
  options.fetch_bytes = 256;
  options.nan_fill = KILN_SWITCH_ON;
  options.steps[1] = 2;
  assert_null(kiln_tensor_map_encode(world->device, &options, &map));
  assert_true(map.words[0] == UINT64_C(0x5a5a5a5a5a5a5a5a));
  assert_true(map.words[15] == map.words[0]);
  assert_int_equal(seen.type, 7);
  assert_int_equal(seen.rank, 2);
  assert_true((uintptr_t)seen.address == 0x10000);
  assert_true(seen.size == 64 && seen.stride == 1024);
  assert_true(seen.box == 4 && seen.step == 2);
  assert_true(seen.words[0] == 0 && seen.words[1] == 1 && seen.words[2] == 3 &&
              seen.words[3] == 1);
  options = plane();
  options.fetch_bytes = 128;
  assert_null(kiln_tensor_map_encode(world->device, &options, &map));
  assert_true(seen.words[2] == 2 && seen.step == 1 && seen.words[3] == 0);
  // What a driver refuses leaves nothing behind.
  seen.result = KILN_CU_ERROR_INVALID_VALUE;
  kiln_status_t status = kiln_tensor_map_encode(world->device, &options, &map);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  assert_true(map.words[0] == 0 && map.words[15] == 0);
}

static void refuse(world_t* world, kiln_tensor_options_t options) {
  kiln_tensor_map_t map;
  kiln_status_t status = kiln_tensor_map_encode(world->device, &options, &map);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  assert_int_equal(seen.calls, 0);
}

#define REFUSE(change)                     \
  do {                                     \
    kiln_tensor_options_t given = plane(); \
    given.change;                          \
    refuse(world, given);                  \
  } while (0)

static void test_what_is_refused(void** state) {
  world_t* world = *state;
  REFUSE(type = 0);
  REFUSE(type = 17);
  REFUSE(rank = 0);
  REFUSE(rank = 6);
  REFUSE(interleave = 16);  // of two dimensions
  REFUSE(interleave = 8);
  REFUSE(swizzle = 7);
  REFUSE(fetch_bytes = 32);
  REFUSE(nan_fill = 3);
  REFUSE(reserved = 1);
  REFUSE(address = 0x10008);
  REFUSE(address = 0);
  REFUSE(sizes[1] = 0);
  REFUSE(sizes[0] = (UINT64_C(1) << 32) + 1);
  REFUSE(strides[0] = 1032);
  REFUSE(strides[0] = 0);
  REFUSE(strides[0] = UINT64_C(1) << 40);
  REFUSE(box[1] = 0);
  REFUSE(box[1] = 257);
  REFUSE(box[0] = 6);  // 24 bytes
  REFUSE(steps[1] = 9);
  kiln_tensor_options_t options = plane();
  options.swizzle = KILN_TENSOR_SWIZZLE_32;
  options.box[0] = 12;  // 48 bytes
  refuse(world, options);
  options = plane();
  options.type = KILN_TENSOR_U32;
  options.nan_fill = KILN_SWITCH_ON;
  refuse(world, options);
  kiln_tensor_map_t map;
  options = plane();
  options.box[1] = 300;
  assert_says(kiln_tensor_map_encode(world->device, &options, &map),
              KILN_STATUS_INVALID_ARGUMENT, "box[1] of a tensor map is 300");
}

// ---- Packed types ----

static void test_packed(void** state) {
  world_t* world = *state;
  kiln_tensor_map_t map;
  kiln_tensor_options_t options = plane();
  options.type = KILN_TENSOR_U4_IN_16;
  options.box[0] = 128;
  options.swizzle = KILN_TENSOR_SWIZZLE_128_BY_32;
  assert_null(kiln_tensor_map_encode(world->device, &options, &map));
  assert_int_equal(seen.type, 14);
  assert_int_equal(seen.words[1], 4);
  options.swizzle = KILN_TENSOR_SWIZZLE_128_BY_64;
  options.type = KILN_TENSOR_U6_IN_16;
  assert_null(kiln_tensor_map_encode(world->device, &options, &map));
  assert_int_equal(seen.type, 15);
  options.type = KILN_TENSOR_U4;
  options.swizzle = KILN_TENSOR_SWIZZLE_64;
  assert_null(kiln_tensor_map_encode(world->device, &options, &map));
  seen.calls = 0;
  kiln_tensor_options_t bad = options;
  bad.box[0] = 136;  // 68 bytes
  refuse(world, bad);
  bad = options;
  bad.sizes[0] = 255;
  refuse(world, bad);
  options.type = KILN_TENSOR_U4_IN_16;
  refuse(world, options);  // that swizzle
  options.swizzle = KILN_TENSOR_SWIZZLE_128_BY_64;
  refuse(world, options);  // and that
  options.swizzle = KILN_TENSOR_SWIZZLE_NONE;
  bad = options;
  bad.address = 0x10010;
  refuse(world, bad);
  bad = options;
  bad.strides[0] = 1040;
  refuse(world, bad);
  bad = options;
  bad.sizes[0] = 320;
  refuse(world, bad);
  bad = options;
  bad.box[0] = 64;
  refuse(world, bad);
  bad = options;
  bad.nan_fill = KILN_SWITCH_ON;
  refuse(world, bad);
}

static void test_older_devices(void** state) {
  world_t* world = *state;
  kiln_device_t* hopper = NULL;
  kiln_tensor_map_t map;
  kiln_tensor_options_t options = plane();
  kiln_device_release(world->device);
  seen.compute = 9;
  assert_null(kiln_runtime_open_device(world->runtime, "cuda:0", &hopper));
  world->device = hopper;
  assert_null(kiln_tensor_map_encode(hopper, &options, &map));
  options.swizzle = KILN_TENSOR_SWIZZLE_128_BY_64;
  assert_says(kiln_tensor_map_encode(hopper, &options, &map),
              KILN_STATUS_UNSUPPORTED, "is of compute capability 9.0");
  options.swizzle = 0;
  options.type = KILN_TENSOR_U4;
  options.box[0] = 32;
  assert_says(kiln_tensor_map_encode(hopper, &options, &map),
              KILN_STATUS_UNSUPPORTED, "is of compute capability 9.0");
}

// ---- Columns ----

// Two pictures of 6 by 4 pixels of 8 floats.
static kiln_tensor_options_t pictures(void) {
  kiln_tensor_options_t options = kiln_tensor_options_default();
  options.type = KILN_TENSOR_F32;
  options.rank = 4;
  options.address = 0x10000;
  options.sizes[0] = 8;
  options.sizes[1] = 6;
  options.sizes[2] = 4;
  options.sizes[3] = 2;
  options.strides[0] = 32;
  options.strides[1] = 192;
  options.strides[2] = 768;
  return options;
}

static kiln_tensor_columns_t columns(void) {
  kiln_tensor_columns_t along = kiln_tensor_columns_default();
  along.channels = 8;
  along.pixels = 16;
  along.lower[0] = -1;
  along.upper[1] = -2;
  return along;
}

static void test_columns(void** state) {
  world_t* world = *state;
  kiln_tensor_map_t map;
  kiln_tensor_options_t options = pictures();
  kiln_tensor_columns_t along = columns();
  options.swizzle = KILN_TENSOR_SWIZZLE_32;
  assert_null(
      kiln_tensor_map_encode_columns(world->device, &options, &along, &map));
  assert_true(map.words[0] == UINT64_C(0x5a5a5a5a5a5a5a5a));
  assert_int_equal(seen.rank, 4);
  assert_int_equal(seen.corners[0], -1);
  assert_int_equal(seen.corners[1], 0);
  assert_int_equal(seen.corners[2], 0);
  assert_int_equal(seen.corners[3], -2);
  assert_int_equal(seen.channels, 8);
  assert_int_equal(seen.pixels, 16);
  assert_int_equal(seen.step, 1);
  assert_int_equal(seen.words[1], 1);
  along.mode = KILN_TENSOR_COLUMNS_WIDE_128;
  along.pixels = 0;
  along.upper[0] = 300;
  options.swizzle = KILN_TENSOR_SWIZZLE_64;
  assert_null(
      kiln_tensor_map_encode_columns(world->device, &options, &along, &map));
  assert_int_equal(seen.mode, 1);
  assert_int_equal(seen.corners[2], 300);
  // What a driver refuses leaves nothing behind.
  seen.result = KILN_CU_ERROR_INVALID_VALUE;
  kiln_status_t status =
      kiln_tensor_map_encode_columns(world->device, &options, &along, &map);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  assert_true(map.words[0] == 0);
}

#define REFUSE_COLUMNS(change, word)                                           \
  do {                                                                         \
    kiln_tensor_options_t options = pictures();                                \
    kiln_tensor_columns_t along = columns();                                   \
    kiln_tensor_map_t map;                                                     \
    change;                                                                    \
    kiln_status_t status =                                                     \
        kiln_tensor_map_encode_columns(world->device, &options, &along, &map); \
    assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);  \
    assert_non_null(strstr(kiln_status_message(status), word));                \
    kiln_status_free(status);                                                  \
    assert_int_equal(seen.calls, 0);                                           \
  } while (0)

static void test_columns_refused(void** state) {
  world_t* world = *state;
  REFUSE_COLUMNS(options.rank = 2, "rank");
  REFUSE_COLUMNS(along.mode = 3, "mode");
  REFUSE_COLUMNS(along.channels = 0, "channels[0] of a tensor map is 0");
  REFUSE_COLUMNS(along.channels = 257, "channels[0] of a tensor map is 257");
  REFUSE_COLUMNS(along.pixels = 0, "pixels");
  REFUSE_COLUMNS(along.pixels = 1025, "pixels");
  REFUSE_COLUMNS(along.lower[1] = 128, "lower[1] of a tensor map is 128");
  REFUSE_COLUMNS(along.upper[0] = -129, "upper[0] of a tensor map is -129");
  REFUSE_COLUMNS(along.upper[1] = -4, "upper[1] of a tensor map is -4");
  REFUSE_COLUMNS(options.rank = 5; options.sizes[4] = 1;
                 options.strides[3] = 1536;
                 along.lower[2] = 16, "lower[2] of a tensor map is 16");
  REFUSE_COLUMNS(options.rank = 3; along.lower[0] = 32768, "lower[0]");
  REFUSE_COLUMNS(options.swizzle = KILN_TENSOR_SWIZZLE_32;
                 along.channels = 9, "channels");
  REFUSE_COLUMNS(along.mode = KILN_TENSOR_COLUMNS_WIDE, "swizzle");
}

static void test_the_software_device_has_none(void** state) {
  world_t* world = *state;
  kiln_device_t* soft = NULL;
  kiln_tensor_map_t map;
  kiln_tensor_options_t options = plane();
  assert_null(kiln_runtime_open_device(world->runtime, "soft", &soft));
  assert_says(kiln_tensor_map_encode(soft, &options, &map),
              KILN_STATUS_UNSUPPORTED, "tensor maps");
  kiln_device_release(soft);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_what_is_told),
      TEST(test_what_is_refused),
      TEST(test_packed),
      TEST(test_older_devices),
      TEST(test_columns),
      TEST(test_columns_refused),
      TEST(test_the_software_device_has_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
