// SPDX-License-Identifier: Apache-2.0
//
// base: tests of sorting in place.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/sort.h"

enum { MOST = 300 };

// Larger than one piece that is swapped at a time. one-thread
typedef struct item_t {
  uint32_t key;
  uint8_t rest[125];
  uint8_t last;
} item_t;

static bool item_before(const void* a, const void* b) {
  return ((const item_t*)a)->key < ((const item_t*)b)->key;
}

static bool byte_before(const void* a, const void* b) {
  return *(const uint8_t*)a > *(const uint8_t*)b;
}

// Every count up to 300, keys that come again and all orders of a seed: sorted,
// and each item whole.
static void test_sorted(void** state) {
  (void)state;
  static item_t items[MOST];
  uint32_t seed = 1;
  for (size_t count = 0; count <= MOST; count++) {
    uint32_t sums[8] = {0};
    for (size_t i = 0; i < count; i++) {
      seed = seed * 1664525 + 1013904223;
      items[i].key = count % 3 == 0   ? (uint32_t)i
                     : count % 3 == 1 ? (uint32_t)(count - i)
                                      : (seed >> 16) % 8;
      memset(items[i].rest, (int)(items[i].key & 0xff), sizeof(items[i].rest));
      items[i].last = (uint8_t)items[i].key;
      sums[items[i].key % 8]++;
    }
    kilni_base_sort(items, count, sizeof(items[0]), item_before);
    for (size_t i = 0; i < count; i++) {
      assert_true(i == 0 || items[i - 1].key <= items[i].key);
      assert_int_equal(items[i].rest[0], items[i].key & 0xff);
      assert_int_equal(items[i].rest[124], items[i].key & 0xff);
      assert_int_equal(items[i].last, items[i].key & 0xff);
      sums[items[i].key % 8]--;
    }
    for (int k = 0; k < 8; k++) assert_int_equal(sums[k], 0);
  }
}

static void test_as_it_is_told(void** state) {
  (void)state;
  uint8_t bytes[] = {3, 200, 0, 255, 3, 17};
  const uint8_t sorted[] = {255, 200, 17, 3, 3, 0};
  kilni_base_sort(bytes, sizeof(bytes), 1, byte_before);
  assert_memory_equal(bytes, sorted, sizeof(bytes));
  kilni_base_sort(NULL, 0, 8, byte_before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sorted),
      cmocka_unit_test(test_as_it_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
