// SPDX-License-Identifier: Apache-2.0
//
// base: the allocator of the C library. The only file that may name malloc.
#include <stdlib.h>
#include <string.h>

#include "kiln/allocator.h"

static void* alloc_libc_aligned(size_t size, size_t align) {
  size_t rounded = (size + align - 1) & ~(align - 1);
  return rounded < size ? NULL : aligned_alloc(align, rounded);
}

static void* libc_fn(void* ptr, size_t old_size, size_t new_size, size_t align,
                     void* user) {
  (void)user;
  if (new_size == 0) {
    free(ptr);
    return NULL;
  }
  if (align <= _Alignof(max_align_t)) {
    return ptr == NULL ? malloc(new_size) : realloc(ptr, new_size);
  }
  void* block = alloc_libc_aligned(new_size, align);
  if (block == NULL || ptr == NULL) return block;
  memcpy(block, ptr, old_size < new_size ? old_size : new_size);
  free(ptr);
  return block;
}

kiln_allocator_t kiln_allocator_libc(void) {
  return (kiln_allocator_t){libc_fn, NULL};
}
