// SPDX-License-Identifier: Apache-2.0
//
// base: tests of ranges of the host's address space.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

#include "base/vm.h"

static void a_range_is_reserved_committed_and_discarded(void** state) {
  (void)state;
  size_t page = kilni_base_vm_page_bytes();
  assert_true(page > 0 && (page & (page - 1)) == 0);
  void* base = NULL;
  // Far more addresses than any machine has memory.
  size_t bytes = (size_t)1 << 42;
  kiln_status_t status = kilni_base_vm_reserve(bytes, &base);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY) {
    print_message("skipped: this process may not reserve 4 TiB\n");
    skip();
  }
  assert_null(status);
  assert_int_equal((uintptr_t)base % page, 0);
  unsigned char* at = (unsigned char*)base + bytes / 2;
  assert_null(kilni_base_vm_commit(at, 2 * page));
  assert_int_equal(at[0], 0);
  assert_int_equal(at[2 * page - 1], 0);
  at[0] = 7;
  at[page] = 8;
  kilni_base_vm_discard(at, page);
  assert_int_equal(at[0], 0);
  assert_int_equal(at[page], 8);
  kilni_base_vm_release(base, bytes);
}

static void a_range_that_cannot_be_is_out_of_memory(void** state) {
  (void)state;
  void* base = &base;
  kiln_status_t status = kilni_base_vm_reserve(
      SIZE_MAX / 2 + 1 - kilni_base_vm_page_bytes(), &base);
  assert_int_equal((uintptr_t)status, KILN_STATUS_OUT_OF_MEMORY);
  assert_null(base);
  kilni_base_vm_release(NULL, 0);
}

// One memory at two places, which keeps its content at none.
static void memory_is_shared_by_places(void** state) {
  (void)state;
  size_t page = kilni_base_vm_page_bytes();
  void* base = NULL;
  int share = -1;
  assert_null(kilni_base_vm_reserve(4 * page, &base));
  unsigned char* at = base;
  assert_null(kilni_base_vm_share_create(page, &share));
  assert_null(kilni_base_vm_share_map(share, at, page));
  assert_null(kilni_base_vm_share_map(share, at + 2 * page, page));
  assert_int_equal(at[5], 0);
  at[5] = 9;
  assert_int_equal(at[2 * page + 5], 9);
  kilni_base_vm_share_unmap(at, page);
  assert_int_equal(at[5], 0);
  kilni_base_vm_share_unmap(at + 2 * page, page);
  assert_null(kilni_base_vm_share_map(share, at + page, page));
  assert_int_equal(at[page + 5], 9);
  kilni_base_vm_share_close(share);
  assert_int_equal(at[page + 5], 9);
  kilni_base_vm_share_close(-1);
  kilni_base_vm_release(base, 4 * page);
}

// Children of children too.
static void a_child_finds_no_mark(void** state) {
  (void)state;
  const volatile uint64_t* mark = kilni_base_vm_fork_mark();
  if (mark == NULL) {
    print_message("skipped: the system clears no memory in children\n");
    skip();
    return;
  }
  assert_true(*mark != 0);
  pid_t child = fork();
  if (child == 0) {
    pid_t second = fork();
    if (second == 0) _exit(*mark == 0 ? 0 : 1);
    int inner = 1;
    if (waitpid(second, &inner, 0) != second) inner = 1;
    _exit(*mark == 0 && inner == 0 ? 0 : 1);
  }
  int outcome = 1;
  assert_int_equal(waitpid(child, &outcome, 0), child);
  assert_int_equal(outcome, 0);
  assert_true(*mark != 0);
  kilni_base_vm_fork_unmark(mark);
  kilni_base_vm_fork_unmark(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_range_is_reserved_committed_and_discarded),
      cmocka_unit_test(a_range_that_cannot_be_is_out_of_memory),
      cmocka_unit_test(memory_is_shared_by_places),
      cmocka_unit_test(a_child_finds_no_mark),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
