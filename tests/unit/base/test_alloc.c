// SPDX-License-Identifier: Apache-2.0
//
// base: tests of allocation inside the library.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "fault_run.h"

static void is_out_of_memory(kiln_status_t status) {
  // Bare: the word is the code, no payload behind it.
  assert_int_equal((uintptr_t)status, KILN_STATUS_OUT_OF_MEMORY);
}

static kiln_status_t blocks_body(kiln_allocator_t allocator, void* user) {
  (void)user;
  void* zero = &zero;
  void* block = &block;
  void* page = &page;
  void* array = &array;
  kiln_status_t status = kilni_base_alloc(allocator, 0, &zero);
  assert_int_equal(kiln_status_is_ok(status), zero != NULL);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_alloc(allocator, 100, &block);
    assert_int_equal(kiln_status_is_ok(status), block != NULL);
    if (kiln_status_is_ok(status)) {
      // It is there: that was asserted above.
      // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
      for (int i = 0; i < 100; i++) assert_int_equal(((char*)block)[i], 0);
      status = kilni_base_alloc_aligned(allocator, 10, 4096, &page);
      assert_int_equal(kiln_status_is_ok(status), page != NULL);
      if (kiln_status_is_ok(status)) {
        assert_int_equal((uintptr_t)page % 4096, 0);
        status = kilni_base_alloc_array(allocator, 3, 7, &array);
        assert_int_equal(kiln_status_is_ok(status), array != NULL);
        kilni_base_free_array(allocator, array, 3, 7);
        kilni_base_free_aligned(allocator, page, 10, 4096);
      }
      kilni_base_free(allocator, block, 100);
    }
    kilni_base_free(allocator, zero, 0);
  }
  return status;
}

static void blocks_are_zero_aligned_and_freed(void** state) {
  (void)state;
  assert_int_equal(fault_run_allocations(blocks_body, NULL, 0), 4);
}

static void products_that_overflow_are_out_of_memory(void** state) {
  (void)state;
  void* block = &block;
  kiln_allocator_t libc = kiln_allocator_libc();
  is_out_of_memory(kilni_base_alloc_array(libc, SIZE_MAX / 2, 3, &block));
  assert_null(block);
  size_t capacity = 0;
  void* items = NULL;
  is_out_of_memory(kilni_base_grow(libc, SIZE_MAX / 2, 4, &capacity, &items));
  is_out_of_memory(kilni_base_grow(libc, SIZE_MAX, 1, &capacity, &items));
  assert_null(items);
  assert_int_equal(capacity, 0);
}

static kiln_status_t grow_body(kiln_allocator_t allocator, void* user) {
  (void)user;
  uint32_t* items = NULL;
  size_t capacity = 0;
  size_t count = 0;
  kiln_status_t status = kiln_ok();
  while (count < 100) {
    void* grown = items;
    size_t before = capacity;
    status = kilni_base_grow(allocator, count + 1, sizeof(*items), &capacity,
                             &grown);
    if (!kiln_status_is_ok(status)) {
      assert_ptr_equal(grown, items);
      assert_int_equal(capacity, before);
      break;
    }
    items = grown;
    for (size_t i = before; i < capacity; i++) assert_int_equal(items[i], 0);
    items[count] = (uint32_t)count;
    count++;
  }
  for (size_t i = 0; i < count; i++) assert_int_equal(items[i], i);
  kilni_base_free_array(allocator, items, capacity, sizeof(*items));
  return status;
}

static void growth_keeps_what_was_there(void** state) {
  (void)state;
  // 8, 16, 32, 64, 128
  assert_int_equal(fault_run_allocations(grow_body, NULL, 0), 5);
}

static void libc_allocator_serves_all_alignments(void** state) {
  (void)state;
  kiln_allocator_t libc = kiln_allocator_libc();
  for (size_t align = 1; align <= 4096; align *= 2) {
    char* block = libc.fn(NULL, 0, 100, align, libc.user);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % align, 0);
    memset(block, 7, 100);
    block = libc.fn(block, 100, 10000, align, libc.user);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % align, 0);
    for (int i = 0; i < 100; i++) assert_int_equal(block[i], 7);
    block = libc.fn(block, 10000, 50, align, libc.user);
    assert_non_null(block);
    for (int i = 0; i < 50; i++) assert_int_equal(block[i], 7);
    assert_null(libc.fn(block, 50, 0, align, libc.user));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_are_zero_aligned_and_freed),
      cmocka_unit_test(products_that_overflow_are_out_of_memory),
      cmocka_unit_test(growth_keeps_what_was_there),
      cmocka_unit_test(libc_allocator_serves_all_alignments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
