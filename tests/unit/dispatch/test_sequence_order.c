// SPDX-License-Identifier: Apache-2.0
//
// dispatch: which units wait for which: by hand, and random ones beside what
// follows from every pair of accesses.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dispatch/sequence_order.h"
#include "fault_alloc.h"

enum { UNITS = 60, ACCESSES = 3 };

// One that touches [begin, begin + bytes).
static void add(kilni_dispatch_order_t* order, uint64_t begin, uint64_t bytes,
                bool writes) {
  kilni_dispatch_access_t access = {begin, bytes, writes};
  assert_null(kilni_dispatch_order_add(order, &access, 1));
}

static void waits(const kilni_dispatch_order_t* order, uint32_t count,
                  uint32_t first) {
  assert_int_equal(order->after_count, count);
  if (count > 0) assert_int_equal(order->after[0], first);
}

static void test_by_hand(void** state) {
  (void)state;
  kilni_dispatch_order_t order;
  kilni_dispatch_order_init(&order, kiln_allocator_libc());
  add(&order, 0, 100, true);  // 0
  waits(&order, 0, 0);
  add(&order, 0, 50, false);  // 1
  waits(&order, 1, 0);
  add(&order, 50, 50, false);  // 2, beside 1
  waits(&order, 1, 0);
  add(&order, 100, 50, true);  // 3, of nobody's
  waits(&order, 0, 0);
  add(&order, 40, 20, true);  // 4: both readers, and 0 through them
  waits(&order, 2, 1);
  add(&order, 0, 0, true);  // 5: nothing
  waits(&order, 0, 0);
  kilni_dispatch_access_t all = kilni_dispatch_access_all();
  assert_null(kilni_dispatch_order_add(&order, &all, 1));  // 6
  waits(&order, 2, 3);
  add(&order, 7, 1, false);  // 7
  waits(&order, 1, 6);
  kilni_dispatch_order_deinit(&order);
}

// Random units on few bytes: whoever has to wait does, through others or not;
// and nobody waits for who is waited for by another one of the same list.
static void test_random(void** state) {
  (void)state;
  uint64_t seed = 12345;
  for (int run = 0; run < 200; run++) {
    static kilni_dispatch_access_t units[UNITS][ACCESSES];
    static bool reach[UNITS][UNITS];
    kilni_dispatch_order_t order;
    memset(reach, 0, sizeof(reach));
    kilni_dispatch_order_init(&order, kiln_allocator_libc());
    for (uint32_t i = 0; i < UNITS; i++) {
      for (int k = 0; k < ACCESSES; k++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        units[i][k].address = (seed >> 33) % 64;
        units[i][k].bytes = (seed >> 40) % 12;
        units[i][k].writes = (seed >> 50) % 3 == 0;
      }
      assert_null(kilni_dispatch_order_add(&order, units[i], ACCESSES));
      for (uint32_t j = 0; j < order.after_count; j++) {
        uint32_t before = order.after[j];
        assert_true(before < i);
        for (uint32_t k = 0; k < order.after_count; k++) {
          assert_false(reach[order.after[k]][before]);
        }
      }
      for (uint32_t j = 0; j < order.after_count; j++) {
        uint32_t before = order.after[j];
        reach[i][before] = true;
        for (uint32_t k = 0; k < before; k++) {
          reach[i][k] = reach[i][k] || reach[before][k];
        }
      }
      for (uint32_t j = 0; j < i; j++) {
        for (int a = 0; a < ACCESSES * ACCESSES; a++) {
          const kilni_dispatch_access_t* x = &units[i][a / ACCESSES];
          const kilni_dispatch_access_t* y = &units[j][a % ACCESSES];
          if ((x->writes || y->writes) && x->bytes > 0 && y->bytes > 0 &&
              x->address < y->address + y->bytes &&
              y->address < x->address + x->bytes) {
            assert_true(reach[i][j]);
          }
        }
      }
    }
    kilni_dispatch_order_deinit(&order);
  }
}

static void test_full(void** state) {
  (void)state;
  kilni_dispatch_order_t order;
  kilni_dispatch_order_init(&order, kiln_allocator_libc());
  for (uint64_t i = 0; i <= KILNI_ORDER_ENTRIES; i++) {
    assert_false(kilni_dispatch_order_is_full(&order));
    add(&order, i * 8, 8, true);
    waits(&order, 0, 0);
  }
  assert_true(kilni_dispatch_order_is_full(&order));
  kilni_dispatch_access_t all = kilni_dispatch_access_all();
  assert_null(kilni_dispatch_order_add(&order, &all, 1));
  waits(&order, KILNI_ORDER_ENTRIES + 1, 0);
  assert_false(kilni_dispatch_order_is_full(&order));
  kilni_dispatch_order_deinit(&order);
}

static void test_memory_fails(void** state) {
  (void)state;
  fault_alloc_t watch;
  fault_alloc_init(&watch);
  kilni_dispatch_order_t order;
  kilni_dispatch_order_init(&order, fault_alloc_allocator(&watch));
  for (uint32_t i = 0; i < 40; i++) {
    kilni_dispatch_access_t access = {0, 8, false};
    fault_alloc_arm(&watch, 1 + i % 2, false);
    kiln_status_t status = kilni_dispatch_order_add(&order, &access, 1);
    (void)fault_alloc_disarm(&watch);
    if (!kiln_status_is_ok(status)) {
      assert_int_equal(kiln_status_code(status), KILN_STATUS_OUT_OF_MEMORY);
      assert_null(kilni_dispatch_order_add(&order, &access, 1));
    }
    assert_int_equal(order.unit_count, i + 1);
  }
  kilni_dispatch_order_deinit(&order);
  fault_alloc_assert_clean(&watch);
  fault_alloc_deinit(&watch);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_by_hand),
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_full),
      cmocka_unit_test(test_memory_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
