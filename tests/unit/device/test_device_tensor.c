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
  kiln_cu_result_t result;
} seen;

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

typedef device_world_t world_t;

static int setup(void** state) {
  static world_t world;
  device_world_begin(&world);
  memset(&seen, 0, sizeof(seen));
  KILNI_CUDA_SET(&world.table, cuTensorMapEncodeTiled, seen_encode);
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
  REFUSE(type = 14);
  REFUSE(rank = 0);
  REFUSE(rank = 6);
  REFUSE(interleave = 16);  // of two dimensions
  REFUSE(interleave = 8);
  REFUSE(swizzle = 4);
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
      TEST(test_the_software_device_has_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
