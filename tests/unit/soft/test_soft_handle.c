// SPDX-License-Identifier: Apache-2.0
//
// soft: handles that can be checked.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/status_make.h"
#include "soft/driver/soft_handle.h"

static uint64_t add(kilni_soft_handles_t* handles, kilni_soft_kind_t kind,
                    void* object) {
  uint64_t handle;
  assert_true(
      kiln_status_is_ok(kilni_soft_handle_add(handles, kind, object, &handle)));
  assert_int_not_equal(handle, 0);
  return handle;
}

static void test_life(void** state) {
  (void)state;
  int a;
  int b;
  kilni_soft_handles_t handles;
  kilni_soft_handles_init(&handles, kiln_allocator_libc(), 1);
  uint64_t first = add(&handles, KILNI_SOFT_KIND_STREAM, &a);
  uint64_t second = add(&handles, KILNI_SOFT_KIND_EVENT, &b);
  assert_ptr_equal(
      kilni_soft_handle_get(&handles, KILNI_SOFT_KIND_STREAM, first), &a);
  assert_ptr_equal(
      kilni_soft_handle_get(&handles, KILNI_SOFT_KIND_EVENT, second), &b);
  assert_null(kilni_soft_handle_get(&handles, KILNI_SOFT_KIND_EVENT, first));
  kilni_soft_handle_remove(&handles, first);
  assert_null(kilni_soft_handle_get(&handles, KILNI_SOFT_KIND_STREAM, first));
  kilni_soft_handle_remove(&handles, first);  // a second time does nothing
  uint64_t third = add(&handles, KILNI_SOFT_KIND_STREAM, &b);
  assert_int_not_equal(third, first);  // the slot again, another generation
  assert_null(kilni_soft_handle_get(&handles, KILNI_SOFT_KIND_STREAM, first));
  const uint64_t strange[] = {
      0, 1, 2, UINT64_MAX, third | 1ull << 63, third ^ 1ull << 30};
  for (size_t i = 0; i < sizeof(strange) / sizeof(*strange); i++) {
    assert_null(
        kilni_soft_handle_get(&handles, KILNI_SOFT_KIND_STREAM, strange[i]));
  }
  kilni_soft_handles_deinit(&handles);
}

static void test_many(void** state) {
  (void)state;
  kilni_soft_handles_t handles;
  kilni_soft_handles_init(&handles, kiln_allocator_libc(), 2);
  static int objects[1000];
  static uint64_t values[1000];
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 1000; i++) {
      values[i] = add(&handles, KILNI_SOFT_KIND_EVENT, &objects[i]);
    }
    for (int i = 0; i < 1000; i++) {
      assert_ptr_equal(
          kilni_soft_handle_get(&handles, KILNI_SOFT_KIND_EVENT, values[i]),
          &objects[i]);
      kilni_soft_handle_remove(&handles, values[i]);
    }
  }
  assert_int_equal(handles.count, 1000);
  kilni_soft_handles_deinit(&handles);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_life),
      cmocka_unit_test(test_many),
  };
  return cmocka_run_group_tests_name("soft_handle", tests, NULL, NULL);
}
