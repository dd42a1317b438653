// SPDX-License-Identifier: Apache-2.0
//
// device: virtual memory: what is there stays where it is when it grows, what
// fails changes nothing, and all ends in the right order. Over the null
// provider, which knows every handle, and the software device.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device_world.h"
#include "says.h"

#define MIB (1ull << 20)

// The order of calls, as letters. one-thread
static struct {
  kiln_cuda_table_t under;
  char order[64];
  uint32_t fail_access;
  kiln_cu_deviceptr_t reserved;
  size_t reserved_bytes;
  kiln_cu_deviceptr_t freed;
  size_t freed_bytes;
} seen;

static void note(char letter) {
  size_t length = strlen(seen.order);
  if (length + 1 < sizeof(seen.order)) seen.order[length] = letter;
}

static kiln_cu_result_t seen_reserve(kiln_cu_deviceptr_t* address, size_t bytes,
                                     size_t align, kiln_cu_deviceptr_t hint,
                                     unsigned long long flags) {
  kiln_cu_result_t result =
      seen.under.cuMemAddressReserve(address, bytes, align, hint, flags);
  seen.reserved = *address;
  seen.reserved_bytes = bytes;
  return result;
}

static kiln_cu_result_t seen_free(kiln_cu_deviceptr_t address, size_t bytes) {
  note('F');
  seen.freed = address;
  seen.freed_bytes = bytes;
  return seen.under.cuMemAddressFree(address, bytes);
}

static kiln_cu_result_t seen_unmap(kiln_cu_deviceptr_t address, size_t bytes) {
  note('U');
  return seen.under.cuMemUnmap(address, bytes);
}

static kiln_cu_result_t seen_synchronize(void) {
  note('S');
  return seen.under.cuCtxSynchronize();
}

static kiln_cu_result_t seen_access(kiln_cu_deviceptr_t address, size_t bytes,
                                    const kiln_cu_mem_access_desc_t* list,
                                    size_t count) {
  if (seen.fail_access != 0 && --seen.fail_access == 0) {
    return KILN_CU_ERROR_OUT_OF_MEMORY;
  }
  return seen.under.cuMemSetAccess(address, bytes, list, count);
}

typedef device_world_t world_t;

static int setup(void** state) {
  static world_t world;
  device_world_begin(&world);
  memset(&seen, 0, sizeof(seen));
  seen.under = world.table;
  KILNI_CUDA_SET(&world.table, cuMemAddressReserve, seen_reserve);
  KILNI_CUDA_SET(&world.table, cuMemAddressFree, seen_free);
  KILNI_CUDA_SET(&world.table, cuMemUnmap, seen_unmap);
  KILNI_CUDA_SET(&world.table, cuMemSetAccess, seen_access);
  KILNI_CUDA_SET(&world.table, cuCtxSynchronize, seen_synchronize);
  *state = &world;
  return 0;
}

static int teardown(void** state) {
  device_world_end(*state);
  return 0;
}

// What was there keeps its address and its content; an old buffer stays good.
static void test_grows_in_place(void** state) {
  world_t* world = *state;
  device_world_open(world, "soft");
  kiln_virtual_options_t options = kiln_virtual_options_default();
  kiln_virtual_t* memory = NULL;
  kiln_buffer_t* old = NULL;
  kiln_buffer_t* whole = NULL;
  uint64_t before = 0;
  uint64_t after = 0;
  options.reserve_bytes = 16 * MIB;
  assert_null(kiln_device_query_free(world->device, &before));
  assert_null(kiln_virtual_create(world->device, 1, &options, &memory));
  assert_true(kiln_virtual_size(memory) == 2 * MIB);
  assert_true(kiln_virtual_reserved(memory) == 16 * MIB);
  assert_ptr_equal(kiln_virtual_device(memory), world->device);
  uint64_t address = kiln_virtual_address(memory);
  assert_null(kiln_virtual_buffer(memory, &old));
  assert_null(kiln_buffer_fill(old, 0, 2 * MIB, 0xa5a5a5a5u, 4));
  assert_null(kiln_virtual_grow(memory, 2 * MIB + 1));
  assert_null(kiln_virtual_grow(memory, 100));  // there already
  assert_true(kiln_virtual_size(memory) == 4 * MIB);
  assert_true(kiln_virtual_address(memory) == address);
  assert_null(kiln_virtual_grow(memory, 16 * MIB));
  assert_null(kiln_device_query_free(world->device, &after));
  assert_true(before - after == 16 * MIB);
  assert_null(kiln_virtual_buffer(memory, &whole));
  assert_true(kiln_buffer_size(whole) == 16 * MIB);
  uint32_t words[2] = {1, 2};
  uint32_t back[4] = {0};
  // Over the border of two pieces.
  assert_null(kiln_buffer_write(whole, 2 * MIB, sizeof(words), words));
  assert_null(kiln_buffer_read(whole, 2 * MIB - 8, sizeof(back), back));
  assert_true(back[0] == 0xa5a5a5a5u && back[1] == 0xa5a5a5a5u);
  assert_true(back[2] == 1 && back[3] == 2);
  assert_null(kiln_buffer_fill(whole, MIB, 14 * MIB, 7, 1));
  assert_null(kiln_buffer_read(old, MIB, 4, back));
  assert_int_equal(back[0], 0x07070707);
  assert_says(kiln_virtual_grow(memory, 16 * MIB + 1), KILN_STATUS_OUT_OF_RANGE,
              "reserve_bytes");
  // Buffers keep it alive.
  kiln_virtual_release(memory);
  assert_null(kiln_buffer_read(old, MIB, 4, back));
  kiln_buffer_release(whole);
  kiln_buffer_release(old);
  assert_null(kiln_device_query_free(world->device, &after));
  assert_true(before == after);
  device_world_close(world);
}

static void test_a_failure_changes_nothing(void** state) {
  world_t* world = *state;
  device_world_open(world, "cuda:0");
  kiln_virtual_t* memory = NULL;
  assert_null(kiln_virtual_create(world->device, MIB, NULL, &memory));
  uint64_t size = kiln_virtual_size(memory);
  uint64_t live = kilni_table_cuda_null_live(KILNI_HANDLE_NONE);
  seen.fail_access = 1;
  assert_says(kiln_virtual_grow(memory, 8 * MIB),
              KILN_STATUS_DEVICE_OUT_OF_MEMORY, "growing virtual memory");
  assert_true(kiln_virtual_size(memory) == size);
  assert_true(kilni_table_cuda_null_live(KILNI_HANDLE_NONE) == live);
  assert_null(kiln_virtual_grow(memory, 8 * MIB));
  assert_true(kiln_virtual_size(memory) == 8 * MIB);
  kiln_virtual_release(memory);
  device_world_close(world);
}

// The device's work first, then every mapping, then the exact pair.
static void test_ends_in_order(void** state) {
  world_t* world = *state;
  device_world_open(world, "cuda:0");
  kiln_virtual_t* memory = NULL;
  assert_null(kiln_virtual_create(world->device, MIB, NULL, &memory));
  assert_null(kiln_virtual_grow(memory, 4 * MIB));
  assert_null(kiln_virtual_grow(memory, 6 * MIB));
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_PHYSICAL), 0);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_MAPPING), 3);
  memset(seen.order, 0, sizeof(seen.order));
  kiln_virtual_release(memory);
  assert_string_equal(seen.order, "SUUUF");
  assert_true(seen.freed == seen.reserved);
  assert_true(seen.freed_bytes == seen.reserved_bytes);
  device_world_close(world);
}

static void test_limits(void** state) {
  world_t* world = *state;
  device_world_open(world, "cuda:0");
  kiln_virtual_options_t options = kiln_virtual_options_default();
  kiln_virtual_t* memory = NULL;
  options.reserve_bytes = MIB;
  kiln_status_t status =
      kiln_virtual_create(world->device, 2 * MIB, &options, &memory);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  assert_null(memory);
  assert_null(kiln_virtual_create(world->device, 0, NULL, &memory));
  assert_true(kiln_virtual_size(memory) == 0);
  // A buffer of 0 bytes has no address, whatever is reserved.
  kiln_buffer_t* none = NULL;
  assert_null(kiln_virtual_buffer(memory, &none));
  assert_true(kiln_buffer_size(none) == 0);
  assert_true(kiln_buffer_address(none) == 0);
  kiln_buffer_release(none);
  for (uint64_t i = 1; i <= 256; i++) {
    assert_null(kiln_virtual_grow(memory, i * 2 * MIB));
  }
  assert_says(kiln_virtual_grow(memory, 257 * 2 * MIB),
              KILN_STATUS_LIMIT_EXCEEDED, "256 times");
  kiln_virtual_release(memory);
  device_world_close(world);
}

// ---- Faults ----

static kiln_status_t sweep(kiln_device_t* device) {
  kiln_virtual_t* memory = NULL;
  kiln_buffer_t* buffer = NULL;
  kiln_status_t status = kiln_virtual_create(device, MIB, NULL, &memory);
  assert_true((status == NULL) == (memory != NULL));
  if (status == NULL) {
    status = kiln_virtual_grow(memory, 8 * MIB);
    assert_true(kiln_virtual_size(memory) == (status == NULL ? 8 : 2) * MIB);
  }
  if (status == NULL) {
    status = kiln_virtual_buffer(memory, &buffer);
    assert_true((status == NULL) == (buffer != NULL));
  }
  kiln_virtual_release(memory);
  kiln_buffer_release(buffer);
  return status;
}

static void test_every_call_fails(void** state) {
  (void)state;
  device_sweep_calls(sweep, KILN_CU_ERROR_INVALID_VALUE, 40);
}

static void test_every_allocation_fails(void** state) {
  (void)state;
  device_sweep_allocations(sweep, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_grows_in_place),
      TEST(test_a_failure_changes_nothing),
      TEST(test_ends_in_order),
      TEST(test_limits),
      cmocka_unit_test(test_every_call_fails),
      cmocka_unit_test(test_every_allocation_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
