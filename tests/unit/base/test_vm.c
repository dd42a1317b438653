// SPDX-License-Identifier: Apache-2.0
//
// base: tests of ranges of the host's address space.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/vm.h"

static void a_range_is_reserved_committed_and_discarded(void** state) {
  (void)state;
  size_t page = kilni_vm_page_bytes();
  assert_true(page > 0 && (page & (page - 1)) == 0);
  void* base = NULL;
  // Far more addresses than any machine has memory.
  size_t bytes = (size_t)1 << 42;
  kiln_status_t status = kilni_vm_reserve(bytes, &base);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) {
    print_message("skipped: this process may not reserve 4 TiB\n");
    skip();
  }
  assert_null(status);
  assert_int_equal((uintptr_t)base % page, 0);
  unsigned char* at = (unsigned char*)base + bytes / 2;
  assert_null(kilni_vm_commit(at, 2 * page));
  assert_int_equal(at[0], 0);
  assert_int_equal(at[2 * page - 1], 0);
  at[0] = 7;
  at[page] = 8;
  kilni_vm_discard(at, page);
  assert_int_equal(at[0], 0);
  assert_int_equal(at[page], 8);
  kilni_vm_release(base, bytes);
}

static void a_range_that_cannot_be_is_out_of_memory(void** state) {
  (void)state;
  void* base = &base;
  kiln_status_t status =
      kilni_vm_reserve(SIZE_MAX / 2 + 1 - kilni_vm_page_bytes(), &base);
  assert_int_equal((uintptr_t)status, KILN_STATUS_OUT_OF_MEMORY);
  assert_null(base);
  kilni_vm_release(NULL, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_range_is_reserved_committed_and_discarded),
      cmocka_unit_test(a_range_that_cannot_be_is_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
