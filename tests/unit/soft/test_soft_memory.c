// SPDX-License-Identifier: Apache-2.0
//
// soft: the software device's memory table.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/cpu_features.h"
#include "base/alloc.h"
#include "base/status_make.h"
#include "base/thread.h"
#include "fault_alloc.h"
#include "soft/memory/soft_memory.h"
#include "soft/memory/soft_wide.h"

static kiln_host_t host_make(fault_alloc_t* watch) {
  fault_alloc_init(watch);
  return (kiln_host_t){.allocator = fault_alloc_allocator(watch),
                       .worker_count = 1,
                       .process_id = kilni_base_process_id()};
}

typedef struct fixture_t {
  fault_alloc_t watch;
  kiln_host_t host;
  kilni_soft_memory_t* memory;
} fixture_t;

static void open_memory(fixture_t* f, bool exact) {
  memset(f, 0, sizeof(*f));
  f->host = host_make(&f->watch);
  assert_true(
      kiln_status_is_ok(kilni_soft_memory_create(&f->host, exact, &f->memory)));
}

static void close_memory(fixture_t* f) {
  kilni_soft_memory_destroy(f->memory);
  fault_alloc_assert_clean(&f->watch);
  fault_alloc_deinit(&f->watch);
}

static uint64_t must_alloc(fixture_t* f, uint64_t bytes,
                           kilni_soft_alloc_kind_t kind) {
  uint64_t address;
  assert_true(kiln_status_is_ok(
      kilni_soft_memory_alloc(f->memory, bytes, kind, &address)));
  assert_int_not_equal(address, 0);
  return address;
}

static void must_free(fixture_t* f, uint64_t address,
                      kilni_soft_alloc_kind_t kind) {
  assert_true(
      kiln_status_is_ok(kilni_soft_memory_free(f->memory, address, kind)));
}

static void expect_code(kiln_status_t status, kiln_status_code_t code) {
  assert_int_equal(kiln_status_code(status), code);
  kiln_status_free(status);
}

static void test_addresses(void** state) {
  (void)state;
  fixture_t f;
  open_memory(&f, true);
  uint64_t a = must_alloc(&f, 100, KILNI_SOFT_ALLOC_DEVICE);
  uint64_t b = must_alloc(&f, 1, KILNI_SOFT_ALLOC_MODULE);
  assert_int_equal(a, KILNI_SOFT_GLOBAL_BASE);
  assert_int_equal(b % KILNI_SOFT_ALLOC_ALIGN, 0);
  assert_true(b >= a + 512);
  assert_int_equal(kilni_soft_memory_used(f.memory), 1024);
  kilni_soft_range_t range;
  assert_true(kilni_soft_memory_find(f.memory, a + 99, &range));
  assert_int_equal(range.lo, a);
  assert_int_equal(range.hi, a + 100);
  assert_int_equal(range.writable, 1);
  assert_false(kilni_soft_memory_find(f.memory, a + 100, &range));
  assert_false(kilni_soft_memory_find(f.memory, 0, &range));
  assert_false(kilni_soft_memory_find(f.memory, UINT64_MAX, &range));
  kilni_soft_alloc_t near;
  assert_true(kilni_soft_memory_nearest(f.memory, a + 116, &near));
  assert_int_equal(near.address, a);
  assert_true(kilni_soft_memory_nearest(f.memory, a - 1, &near));
  assert_int_equal(near.address, a);
  close_memory(&f);
}

static void test_fresh_is_not_zero(void** state) {
  (void)state;
  fixture_t f;
  open_memory(&f, true);
  uint64_t a = must_alloc(&f, 4096, KILNI_SOFT_ALLOC_DEVICE);
  uint8_t* bytes = kilni_soft_memory_host(f.memory, a, 4096);
  assert_non_null(bytes);
  for (size_t i = 0; i < 4096; i++) assert_int_not_equal(bytes[i], 0);
  assert_null(kilni_soft_memory_host(f.memory, a, 4097));
  assert_null(kilni_soft_memory_host(f.memory, a + 1, 4096));
  assert_non_null(kilni_soft_memory_host(f.memory, a + 4095, 1));
  assert_null(kilni_soft_memory_host(f.memory, a + 8, UINT64_MAX));
  close_memory(&f);
}

static void test_free_is_unreachable_and_late_reused(void** state) {
  (void)state;
  fixture_t f;
  open_memory(&f, true);
  uint64_t a = must_alloc(&f, 4096, KILNI_SOFT_ALLOC_DEVICE);
  uint32_t before = kilni_soft_memory_generation(f.memory);
  expect_code(kilni_soft_memory_free(f.memory, a + 1, KILNI_SOFT_ALLOC_DEVICE),
              KILN_STATUS_NOT_FOUND);
  expect_code(kilni_soft_memory_free(f.memory, a, KILNI_SOFT_ALLOC_ASYNC),
              KILN_STATUS_NOT_FOUND);
  assert_int_equal(kilni_soft_memory_generation(f.memory), before);
  must_free(&f, a, KILNI_SOFT_ALLOC_DEVICE);
  assert_int_not_equal(kilni_soft_memory_generation(f.memory), before);
  kilni_soft_range_t range;
  assert_false(kilni_soft_memory_find(f.memory, a, &range));
  expect_code(kilni_soft_memory_free(f.memory, a, KILNI_SOFT_ALLOC_DEVICE),
              KILN_STATUS_NOT_FOUND);
  uint64_t last = a;
  for (int i = 0; i < 100; i++) {
    uint64_t b = must_alloc(&f, 4096, KILNI_SOFT_ALLOC_DEVICE);
    assert_true(b > last);
    last = b;
    must_free(&f, b, KILNI_SOFT_ALLOC_DEVICE);
  }
  assert_int_equal(kilni_soft_memory_used(f.memory), 0);
  close_memory(&f);
}

// Goes round the whole window: addresses come back, live ones never.
static void test_window_wraps(void** state) {
  (void)state;
  fixture_t f;
  open_memory(&f, true);
  uint64_t keep = must_alloc(&f, 600, KILNI_SOFT_ALLOC_DEVICE);
  uint64_t big = 1ull << 30;
  bool wrapped = false;
  uint64_t last = keep;
  for (int i = 0; i < 80 && !wrapped; i++) {
    uint64_t b = must_alloc(&f, big, KILNI_SOFT_ALLOC_DEVICE);
    assert_true(b >= keep + 600 || b + big <= keep);
    wrapped = b < last;
    last = b;
    must_free(&f, b, KILNI_SOFT_ALLOC_DEVICE);
  }
  assert_true(wrapped);
  assert_non_null(kilni_soft_memory_host(f.memory, keep, 600));
  close_memory(&f);
}

static void test_out_of_memory(void** state) {
  (void)state;
  fixture_t f;
  open_memory(&f, true);
  uint64_t address = 1;
  kiln_status_t status = kilni_soft_memory_alloc(
      f.memory, KILNI_SOFT_TOTAL_BYTES + 1, KILNI_SOFT_ALLOC_DEVICE, &address);
  assert_int_equal(address, 0);
  assert_non_null(strstr(kiln_status_message(status), "17179869185"));
  assert_non_null(kiln_status_fix(status));
  expect_code(status, KILN_STATUS_DEVICE_OUT_OF_MEMORY);
  expect_code(kilni_soft_memory_alloc(f.memory, UINT64_MAX,
                                      KILNI_SOFT_ALLOC_DEVICE, &address),
              KILN_STATUS_DEVICE_OUT_OF_MEMORY);
  expect_code(kilni_soft_memory_alloc(f.memory, UINT64_MAX,
                                      KILNI_SOFT_ALLOC_HOST, &address),
              KILN_STATUS_OUT_OF_MEMORY);
  expect_code(
      kilni_soft_memory_alloc(f.memory, 0, KILNI_SOFT_ALLOC_DEVICE, &address),
      KILN_STATUS_INVALID_ARGUMENT);
  close_memory(&f);
}

static void test_page_check(void** state) {
  (void)state;
  fixture_t f;
  open_memory(&f, false);
  uint64_t a = must_alloc(&f, 100, KILNI_SOFT_ALLOC_DEVICE);
  uint64_t c = must_alloc(&f, 100, KILNI_SOFT_ALLOC_CONSTANT);
  kilni_soft_range_t range;
  assert_true(kilni_soft_memory_find(f.memory, a + 5000, &range));
  assert_int_equal(range.lo, a);
  assert_int_equal(range.hi, a + KILNI_SOFT_PAGE_BYTES);
  assert_false(
      kilni_soft_memory_find(f.memory, a + KILNI_SOFT_PAGE_BYTES, &range));
  assert_true(kilni_soft_memory_find(f.memory, c, &range));
  assert_int_equal(range.writable, 0);
  must_free(&f, a, KILNI_SOFT_ALLOC_DEVICE);
  assert_true(kilni_soft_memory_find(f.memory, a, &range));
  must_free(&f, c, KILNI_SOFT_ALLOC_CONSTANT);
  assert_false(kilni_soft_memory_find(f.memory, a, &range));
  close_memory(&f);
}

static void test_host_memory(void** state) {
  (void)state;
  fixture_t f;
  open_memory(&f, true);
  uint64_t pinned = must_alloc(&f, 5000, KILNI_SOFT_ALLOC_HOST);
  memset((void*)(uintptr_t)pinned, 7, 5000);
  assert_ptr_equal(kilni_soft_memory_host(f.memory, pinned, 5000),
                   (void*)(uintptr_t)pinned);
  assert_int_equal(kilni_soft_memory_used(f.memory), 0);
  static uint8_t mine[300];
  assert_true(kiln_status_is_ok(kilni_soft_memory_register(
      f.memory, mine, sizeof(mine), KILNI_SOFT_ALLOC_REGISTERED, 3)));
  expect_code(kilni_soft_memory_register(f.memory, mine + 100, 10,
                                         KILNI_SOFT_ALLOC_REGISTERED, 0),
              KILN_STATUS_ALREADY_EXISTS);
  expect_code(kilni_soft_memory_register(
                  f.memory, (void*)(uintptr_t)KILNI_SOFT_GLOBAL_BASE, 10,
                  KILNI_SOFT_ALLOC_REGISTERED, 0),
              KILN_STATUS_ALREADY_EXISTS);
  expect_code(kilni_soft_memory_register(f.memory, NULL, 10,
                                         KILNI_SOFT_ALLOC_REGISTERED, 0),
              KILN_STATUS_INVALID_ARGUMENT);
  kilni_soft_alloc_t alloc;
  uint64_t address = (uint64_t)(uintptr_t)mine;
  assert_true(kilni_soft_memory_query(f.memory, address + 299, &alloc));
  assert_int_equal(alloc.address, address);
  assert_int_equal(alloc.flags, 3);
  assert_int_equal(alloc.kind, KILNI_SOFT_ALLOC_REGISTERED);
  assert_false(kilni_soft_memory_query(f.memory, address + 300, &alloc));
  must_free(&f, address, KILNI_SOFT_ALLOC_REGISTERED);
  assert_false(kilni_soft_memory_query(f.memory, address, &alloc));
  must_free(&f, pinned, KILNI_SOFT_ALLOC_HOST);
  must_alloc(&f, 5000, KILNI_SOFT_ALLOC_HOST);  // freed by destroy
  close_memory(&f);
}

// Fails each allocation of the host in turn.
static void test_allocation_faults(void** state) {
  (void)state;
  uint64_t fail_at = 1;
  for (;; fail_at++) {
    static fault_alloc_t watch;
    kiln_host_t host = host_make(&watch);
    fault_alloc_arm(&watch, fail_at, false);
    kilni_soft_memory_t* memory;
    kiln_status_t status = kilni_soft_memory_create(&host, true, &memory);
    bool failed = !kiln_status_is_ok(status);
    if (failed) {
      assert_null(memory);
      expect_code(status, KILN_STATUS_OUT_OF_MEMORY);
    }
    for (int i = 0; i < 20 && !failed; i++) {
      uint64_t address;
      status = kilni_soft_memory_alloc(memory, 64, KILNI_SOFT_ALLOC_DEVICE,
                                       &address);
      if (!kiln_status_is_ok(status)) {
        failed = true;
        assert_int_equal(address, 0);
        expect_code(status, KILN_STATUS_OUT_OF_MEMORY);
      }
    }
    fault_alloc_disarm(&watch);
    kilni_soft_memory_destroy(memory);
    fault_alloc_assert_clean(&watch);
    fault_alloc_deinit(&watch);
    if (!failed) break;
  }
  assert_true(fail_at > 3);
}

typedef struct race_t {
  kilni_soft_memory_t* memory;
  int failures;
} race_t;

static void race_thread(void* user) {
  race_t* race = user;
  for (int i = 0; i < 500; i++) {
    uint64_t address;
    kiln_status_t status = kilni_soft_memory_alloc(
        race->memory, 64 + (uint64_t)i, KILNI_SOFT_ALLOC_DEVICE, &address);
    uint8_t* bytes = kilni_soft_memory_host(race->memory, address, 64);
    kilni_soft_range_t range;
    if (!kiln_status_is_ok(status) || bytes == NULL ||
        !kilni_soft_memory_find(race->memory, address, &range)) {
      race->failures++;
      continue;
    }
    memset(bytes, i, 64);
    status =
        kilni_soft_memory_free(race->memory, address, KILNI_SOFT_ALLOC_DEVICE);
    if (!kiln_status_is_ok(status)) race->failures++;
  }
}

static void test_threads(void** state) {
  (void)state;
  fixture_t f;
  open_memory(&f, true);
  race_t races[3] = {{f.memory, 0}, {f.memory, 0}, {f.memory, 0}};
  kilni_base_thread_t threads[3];
  for (int i = 0; i < 3; i++) {
    assert_true(kiln_status_is_ok(
        kilni_base_thread_start(&threads[i], "race", race_thread, &races[i])));
  }
  for (int i = 0; i < 3; i++) {
    kilni_base_thread_join(&threads[i]);
    assert_int_equal(races[i].failures, 0);
  }
  assert_int_equal(kilni_soft_memory_used(f.memory), 0);
  close_memory(&f);
}

// What a device has is what the host can give, and what is promised is not
// promised again: large allocations that nobody has touched count.
static void test_the_host_sets_the_limit(void** state) {
  (void)state;
  fixture_t f;
  uint64_t left = kilni_base_memory_left("");
  open_memory(&f, true);
  uint64_t total = kilni_soft_memory_total(f.memory);
  assert_true(total <= KILNI_SOFT_TOTAL_BYTES);
  assert_true(total <= left / 2 + (1ull << 30));
  assert_true(kilni_soft_memory_available(f.memory) <= total);
  uint64_t address = 0;
  expect_code(kilni_soft_memory_alloc(f.memory, total + 1,
                                      KILNI_SOFT_ALLOC_DEVICE, &address),
              KILN_STATUS_DEVICE_OUT_OF_MEMORY);
  uint64_t most = kilni_soft_memory_available(f.memory);
  uint64_t large = most / 2;
  (void)must_alloc(&f, large, KILNI_SOFT_ALLOC_DEVICE);
  assert_true(kilni_soft_memory_available(f.memory) <=
              most - large + KILNI_SOFT_PAGE_BYTES);
  kiln_status_t status = kilni_soft_memory_alloc(
      f.memory, most, KILNI_SOFT_ALLOC_DEVICE, &address);
  assert_null(strstr(kiln_status_fix(status), "nvidia-smi"));
  expect_code(status, KILN_STATUS_DEVICE_OUT_OF_MEMORY);
  close_memory(&f);
}

// One move where the CPU's maker promises it, a lock anywhere else; both hold
// the same value.
static void test_wide_ways(void** state) {
  (void)state;
  assert_int_equal(kilni_soft_wide_way(0), KILNI_SOFT_WIDE_LOCK);
  assert_int_equal(kilni_soft_wide_way(KILNI_CPU_V2 | KILNI_CPU_INTEL),
                   KILNI_SOFT_WIDE_LOCK);
  assert_int_equal(kilni_soft_wide_way(KILNI_CPU_V2 | KILNI_CPU_WHOLE16),
                   KILNI_SOFT_WIDE_VECTOR);
  assert_string_equal(kilni_soft_wide_name(KILNI_SOFT_WIDE_LOCK), "lock");
  static atomic_uint locks[KILNI_SOFT_WIDE_LOCKS];
  for (int way = 0; way < 2; way++) {
    _Alignas(16) uint64_t place[2] = {1, 2};
    uint64_t value[2] = {3, 4};
    uint64_t old[2] = {1, 1};
    atomic_uint* held = way ? locks : NULL;
    assert_false(kilni_soft_wide_swap(held, place, old, value));
    assert_true(old[0] == 1 && old[1] == 2);
    assert_true(kilni_soft_wide_swap(held, place, old, value));
    kilni_soft_wide_load(held, place, old);
    assert_true(old[0] == 3 && old[1] == 4);
    kilni_soft_wide_store(held, place, (uint64_t[]){5, 6});
    assert_true(place[0] == 5 && place[1] == 6);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_addresses),
      cmocka_unit_test(test_fresh_is_not_zero),
      cmocka_unit_test(test_free_is_unreachable_and_late_reused),
      cmocka_unit_test(test_window_wraps),
      cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_page_check),
      cmocka_unit_test(test_host_memory),
      cmocka_unit_test(test_allocation_faults),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_wide_ways),
      cmocka_unit_test(test_the_host_sets_the_limit),
  };
  return cmocka_run_group_tests_name("soft_memory", tests, NULL, NULL);
}
