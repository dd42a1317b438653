// SPDX-License-Identifier: Apache-2.0
//
// bench: what a benchmark takes for granted: it ends the program where that is
// not so. And an allocator that counts.
#include "bench_check.h"

#include <stdio.h>
#include <stdlib.h>

// The function itself, and not what an analyzer is told of it.
#undef bench_need

void bench_need(bool good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

void bench_expect(kiln_status_t status) {
  if (kiln_status_is_ok(status)) return;
  char text[2048];
  kiln_status_format(status, sizeof(text), text, NULL);
  kiln_status_free(status);
  bench_need(false, text);
}

static void* counted(void* ptr, size_t old_size, size_t new_size, size_t align,
                     void* user) {
  uint64_t* calls = user;
  kiln_allocator_t libc = kiln_allocator_libc();
  ++*calls;
  return libc.fn(ptr, old_size, new_size, align, libc.user);
}

kiln_allocator_t bench_counting_allocator(uint64_t* calls) {
  kiln_allocator_t allocator = kiln_allocator_libc();
  allocator.fn = counted;
  allocator.user = calls;
  return allocator;
}
