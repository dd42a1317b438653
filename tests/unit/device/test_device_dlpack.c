// SPDX-License-Identifier: Apache-2.0
//
// device: memory as DLPack has it: the layout, what is told of each kind of
// memory, whose deleter is called and how often, what is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device_world.h"
#include "says.h"

enum { BYTES = 4096 };

// As every library of DLPack's version 1 on a host of 64 bits has it.
#define AT(type, field, offset) \
  _Static_assert(offsetof(type, field) == (offset), #type "." #field)
AT(kiln_dlpack_tensor_t, data, 0);
AT(kiln_dlpack_tensor_t, device, 8);
AT(kiln_dlpack_tensor_t, rank, 16);
AT(kiln_dlpack_tensor_t, type, 20);
AT(kiln_dlpack_tensor_t, shape, 24);
AT(kiln_dlpack_tensor_t, strides, 32);
AT(kiln_dlpack_tensor_t, byte_offset, 40);
AT(kiln_dlpack_t, major, 0);
AT(kiln_dlpack_t, owner, 8);
AT(kiln_dlpack_t, deleter, 16);
AT(kiln_dlpack_t, flags, 24);
AT(kiln_dlpack_t, tensor, 32);
AT(kiln_dlpack_legacy_t, owner, 48);
AT(kiln_dlpack_legacy_t, deleter, 56);
_Static_assert(sizeof(kiln_dlpack_legacy_t) == 64, "kiln_dlpack_legacy_t");
_Static_assert(sizeof(kiln_dlpack_type_t) == 4, "kiln_dlpack_type_t");
_Static_assert(sizeof(kiln_dlpack_device_t) == 8, "kiln_dlpack_device_t");
_Static_assert(sizeof(kiln_dlpack_t) == 80, "kiln_dlpack_t");

static int set_up(void** state) {
  static device_world_t world;
  memset(&world, 0, sizeof(world));
  device_world_begin(&world);
  *state = &world;
  return 0;
}

static int tear_down(void** state) {
  device_world_close(*state);
  device_world_end(*state);
  return 0;
}

static kiln_buffer_t* make(device_world_t* world, uint32_t kind) {
  kiln_buffer_options_t options = kiln_buffer_options_default();
  options.kind = kind;
  kiln_buffer_t* buffer = NULL;
  assert_null(kiln_buffer_create(world->device, BYTES, &options, &buffer));
  return buffer;
}

// ---- Showing ----

static void test_kinds(void** state) {
  device_world_t* world = *state;
  device_world_open(world, "cuda:0");
  static const int32_t types[] = {KILN_DLPACK_CUDA, KILN_DLPACK_CUDA_HOST,
                                  KILN_DLPACK_CUDA_MANAGED};
  for (uint32_t kind = 0; kind < 3; kind++) {
    kiln_buffer_t* buffer = make(world, kind);
    kiln_dlpack_t* tensor = NULL;
    assert_null(kiln_dlpack_export(buffer, NULL, &tensor));
    assert_int_equal(tensor->tensor.device.type, types[kind]);
    assert_int_equal(tensor->tensor.device.id, 0);
    assert_int_equal((uintptr_t)tensor->tensor.data,
                     kiln_buffer_address(buffer));
    assert_int_equal(tensor->major, 1);
    assert_int_equal(tensor->flags, 0);
    assert_int_equal(tensor->tensor.rank, 1);
    assert_int_equal(tensor->tensor.shape[0], BYTES);
    assert_int_equal(tensor->tensor.type.code, KILN_DLPACK_UINT);
    // The tensor keeps the buffer.
    kiln_buffer_release(buffer);
    tensor->deleter(tensor);
  }
}

static void test_views(void** state) {
  device_world_t* world = *state;
  device_world_open(world, "cuda:0");
  kiln_buffer_t* buffer = make(world, KILN_MEMORY_DEVICE);
  kiln_dlpack_t* tensor = NULL;
  const int64_t shape[] = {2, 3, 4};
  kiln_dlpack_view_t view = kiln_dlpack_view_default();
  view.type = (kiln_dlpack_type_t){KILN_DLPACK_FLOAT, 32, 1};
  view.rank = 3;
  view.shape = shape;
  view.offset = 256;
  view.read_only = 1;
  assert_null(kiln_dlpack_export(buffer, &view, &tensor));
  const int64_t strides[] = {12, 4, 1};
  assert_memory_equal(tensor->tensor.shape, shape, sizeof(shape));
  assert_memory_equal(tensor->tensor.strides, strides, sizeof(strides));
  assert_int_equal((uintptr_t)tensor->tensor.data,
                   kiln_buffer_address(buffer) + 256);
  assert_int_equal(tensor->tensor.byte_offset, 0);
  assert_int_equal(tensor->flags, KILN_DLPACK_READ_ONLY);
  tensor->deleter(tensor);
  // Without a shape, what lies behind the offset.
  view.rank = 0;
  view.shape = NULL;
  assert_null(kiln_dlpack_export(buffer, &view, &tensor));
  assert_int_equal(tensor->tensor.shape[0], (BYTES - 256) / 4);
  tensor->deleter(tensor);
  const int64_t large[] = {BYTES, 2};
  view.shape = large;
  view.rank = 2;
  assert_says(kiln_dlpack_export(buffer, &view, &tensor),
              KILN_STATUS_OUT_OF_RANGE, "a view");
  assert_null(tensor);
  const int64_t endless[] = {INT64_MAX, INT64_MAX};
  const int64_t negative[] = {-1, 2};
  const int64_t empty[] = {0, INT64_MAX, INT64_MAX};
  const int64_t* const bad[] = {endless, negative};
  for (size_t i = 0; i < 2; i++) {
    view.shape = bad[i];
    kiln_status_t status = kiln_dlpack_export(buffer, &view, &tensor);
    assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
    kiln_status_free(status);
  }
  // What is wrong is named, and so is what may be said.
  const kiln_status_code_t bad_one = KILN_STATUS_INVALID_ARGUMENT;
  view.shape = negative;
  assert_says(kiln_dlpack_export(buffer, &view, &tensor), bad_one,
              "a view of -1 elements in dimension 0");
  view.shape = endless;
  assert_says(kiln_dlpack_export(buffer, &view, &tensor), bad_one,
              "more bytes than can be counted");
  view.type.bits = 4;
  assert_says(kiln_dlpack_export(buffer, &view, &tensor), bad_one,
              "elements of 4 bits");
  view.type.bits = 32;
  view.shape = empty;
  view.rank = 3;
  assert_null(kiln_dlpack_export(buffer, &view, &tensor));
  tensor->deleter(tensor);
  kiln_buffer_release(buffer);
}

static void test_the_software_device(void** state) {
  device_world_t* world = *state;
  device_world_open(world, "soft");
  kiln_buffer_t* device = make(world, KILN_MEMORY_DEVICE);
  kiln_buffer_t* pinned = make(world, KILN_MEMORY_PINNED);
  kiln_dlpack_t* tensor = NULL;
  assert_says(kiln_dlpack_export(device, NULL, &tensor),
              KILN_STATUS_UNSUPPORTED, "no other library can use");
  assert_null(kiln_dlpack_export(pinned, NULL, &tensor));
  assert_int_equal(tensor->tensor.device.type, KILN_DLPACK_CPU);
  assert_ptr_equal(tensor->tensor.data, kiln_buffer_host(pinned));
  // It goes there and back, and is the same memory.
  kiln_buffer_t* back = NULL;
  assert_null(kiln_dlpack_import(world->device, tensor, &back));
  kiln_buffer_release(pinned);
  assert_int_equal(kiln_buffer_size(back), BYTES);
  assert_null(kiln_buffer_fill(back, 0, BYTES, 9, 1));
  assert_null(kiln_buffer_copy(device, 0, back, 0, BYTES));
  uint8_t byte = 0;
  assert_null(kiln_buffer_read(device, 100, 1, &byte));
  assert_int_equal(byte, 9);
  kiln_buffer_release(back);
  kiln_buffer_release(device);
}

static void test_without_a_version(void** state) {
  device_world_t* world = *state;
  device_world_open(world, "soft");
  kiln_buffer_t* pinned = make(world, KILN_MEMORY_PINNED);
  kiln_dlpack_legacy_t* tensor = NULL;
  kiln_dlpack_view_t view = kiln_dlpack_view_default();
  view.type = (kiln_dlpack_type_t){KILN_DLPACK_FLOAT, 64, 1};
  view.offset = 1024;
  assert_null(kiln_dlpack_export_legacy(pinned, &view, &tensor));
  assert_int_equal(tensor->tensor.device.type, KILN_DLPACK_CPU);
  assert_int_equal(tensor->tensor.rank, 1);
  assert_int_equal(tensor->tensor.shape[0], (BYTES - 1024) / 8);
  assert_ptr_equal(tensor->tensor.data,
                   (uint8_t*)kiln_buffer_host(pinned) + 1024);
  // It goes there and back, and keeps the buffer meanwhile.
  kiln_buffer_t* back = NULL;
  assert_null(kiln_dlpack_import_legacy(world->device, tensor, &back));
  assert_int_equal(kiln_buffer_address(back),
                   kiln_buffer_address(pinned) + 1024);
  kiln_buffer_release(pinned);
  assert_int_equal(kiln_buffer_size(back), BYTES - 1024);
  assert_null(kiln_buffer_fill(back, 0, BYTES - 1024, 3, 1));
  kiln_buffer_release(back);
  // Nobody could be told.
  pinned = make(world, KILN_MEMORY_PINNED);
  view.read_only = 1;
  assert_says(kiln_dlpack_export_legacy(pinned, &view, &tensor),
              KILN_STATUS_UNSUPPORTED, "must not be written");
  assert_null(tensor);
  kiln_buffer_release(pinned);
}

// ---- Taking ----

static void count(kiln_dlpack_t* self) {
  ++*(int*)self->owner;
}

static void count_legacy(kiln_dlpack_legacy_t* self) {
  ++*(int*)self->owner;
}

static void test_the_deleter_without_a_version(void** state) {
  device_world_t* world = *state;
  device_world_open(world, "soft");
  kiln_buffer_t* pinned = make(world, KILN_MEMORY_PINNED);
  int64_t shape[2] = {8, 16};
  int deleted = 0;
  kiln_dlpack_legacy_t tensor = {.owner = &deleted,
                                 .deleter = count_legacy,
                                 .tensor = {.data = kiln_buffer_host(pinned),
                                            .device = {KILN_DLPACK_CPU, 0},
                                            .rank = 2,
                                            .type = {KILN_DLPACK_INT, 16, 2},
                                            .shape = shape,
                                            .byte_offset = 64}};
  kiln_buffer_t* taken = NULL;
  assert_null(kiln_dlpack_import_legacy(world->device, &tensor, &taken));
  assert_int_equal(kiln_buffer_size(taken), 8 * 16 * 4);
  assert_int_equal(deleted, 0);
  kiln_buffer_release(taken);
  assert_int_equal(deleted, 1);
  tensor.tensor.device.type = 10;
  assert_says(kiln_dlpack_import_legacy(world->device, &tensor, &taken),
              KILN_STATUS_UNSUPPORTED, "kind 10");
  assert_null(taken);
  assert_int_equal(deleted, 1);
  kiln_buffer_release(pinned);
}

static void test_the_deleter(void** state) {
  device_world_t* world = *state;
  device_world_open(world, "soft");
  kiln_buffer_t* pinned = make(world, KILN_MEMORY_PINNED);
  int64_t shape[2] = {8, 16};
  int deleted = 0;
  kiln_dlpack_t tensor = {.major = 1,
                          .owner = &deleted,
                          .deleter = count,
                          .tensor = {.data = kiln_buffer_host(pinned),
                                     .device = {KILN_DLPACK_CUDA_HOST, 0},
                                     .rank = 2,
                                     .type = {KILN_DLPACK_FLOAT, 64, 1},
                                     .shape = shape,
                                     .byte_offset = 64}};
  kiln_buffer_t* taken = NULL;
  assert_null(kiln_dlpack_import(world->device, &tensor, &taken));
  assert_int_equal(kiln_buffer_size(taken), 8 * 16 * 8);
  assert_int_equal(kiln_buffer_address(taken),
                   kiln_buffer_address(pinned) + 64);
  kiln_buffer_retain(taken);
  kiln_buffer_release(taken);
  assert_int_equal(deleted, 0);
  kiln_buffer_release(taken);
  assert_int_equal(deleted, 1);
  // Compact strides are as good as none; and nobody to be told is no error.
  int64_t strides[2] = {16, 1};
  tensor.tensor.strides = strides;
  tensor.deleter = NULL;
  assert_null(kiln_dlpack_import(world->device, &tensor, &taken));
  kiln_buffer_release(taken);
  kiln_buffer_release(pinned);
}

static void refused(device_world_t* world, kiln_dlpack_t* tensor,
                    kiln_status_code_t code, const char* word) {
  kiln_buffer_t* taken = NULL;
  assert_says(kiln_dlpack_import(world->device, tensor, &taken), code, word);
  assert_null(taken);
}

static void test_what_is_refused(void** state) {
  device_world_t* world = *state;
  device_world_open(world, "cuda:0");
  int64_t shape[2] = {8, 16};
  int64_t strides[2] = {32, 1};
  int deleted = 0;
  kiln_dlpack_t good = {.major = 1,
                        .owner = &deleted,
                        .deleter = count,
                        .tensor = {.data = shape,
                                   .device = {KILN_DLPACK_CUDA, 0},
                                   .rank = 2,
                                   .type = {KILN_DLPACK_INT, 32, 1},
                                   .shape = shape}};
  kiln_dlpack_t tensor = good;
  tensor.major = 2;
  refused(world, &tensor, KILN_STATUS_INCOMPATIBLE, "DLPack 2.0");
  tensor = good;
  tensor.tensor.device.id = 1;
  refused(world, &tensor, KILN_STATUS_INVALID_ARGUMENT, "of device 1");
  tensor = good;
  tensor.tensor.device.type = 10;
  refused(world, &tensor, KILN_STATUS_UNSUPPORTED, "kind 10");
  tensor = good;
  tensor.tensor.strides = strides;
  refused(world, &tensor, KILN_STATUS_UNSUPPORTED, "contiguous");
  tensor = good;
  tensor.tensor.type.bits = 4;
  tensor.tensor.type.lanes = 1;
  refused(world, &tensor, KILN_STATUS_UNSUPPORTED, "contiguous");
  shape[0] = 0;
  tensor = good;
  refused(world, &tensor, KILN_STATUS_UNSUPPORTED, "contiguous");
  // It stays the caller's.
  assert_int_equal(deleted, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(test_kinds),
      CASE(test_views),
      CASE(test_the_software_device),
      CASE(test_without_a_version),
      CASE(test_the_deleter),
      CASE(test_the_deleter_without_a_version),
      CASE(test_what_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
