// SPDX-License-Identifier: Apache-2.0
//
// base: allocation inside the library.
#include "base/alloc.h"

#include <string.h>

#include "base/status_make.h"

enum { FIRST_CAPACITY = 8 };

static bool alloc_multiply(size_t a, size_t b, size_t* out) {
  if (b != 0 && a > SIZE_MAX / b) return false;
  *out = a * b;
  return true;
}

kiln_status_t kilni_base_alloc_unset(kiln_allocator_t allocator, size_t size,
                                     void** out_ptr) {
  if (size == 0) size = 1;
  *out_ptr = allocator.fn(NULL, 0, size, KILNI_ALLOC_ALIGN, allocator.user);
  if (*out_ptr == NULL) {
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  return kiln_ok();
}

kiln_status_t kilni_base_alloc_aligned(kiln_allocator_t allocator, size_t size,
                                       size_t align, void** out_ptr) {
  if (size == 0) size = 1;
  *out_ptr = allocator.fn(NULL, 0, size, align, allocator.user);
  if (*out_ptr == NULL) {
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  memset(*out_ptr, 0, size);
  return kiln_ok();
}

void kilni_base_free_aligned(kiln_allocator_t allocator, void* ptr, size_t size,
                             size_t align) {
  if (ptr == NULL) return;
  allocator.fn(ptr, size ? size : 1, 0, align, allocator.user);
}

kiln_status_t kilni_base_alloc(kiln_allocator_t allocator, size_t size,
                               void** out_ptr) {
  if (size == 0) size = 1;
  *out_ptr = allocator.fn(NULL, 0, size, KILNI_ALLOC_ALIGN, allocator.user);
  if (*out_ptr == NULL) {
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  memset(*out_ptr, 0, size);
  return kiln_ok();
}

kiln_status_t kilni_base_alloc_array(kiln_allocator_t allocator, size_t count,
                                     size_t size, void** out_ptr) {
  size_t bytes;
  *out_ptr = NULL;
  if (!alloc_multiply(count, size, &bytes)) {
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  return kilni_base_alloc(allocator, bytes, out_ptr);
}

void kilni_base_free(kiln_allocator_t allocator, void* ptr, size_t size) {
  if (ptr == NULL) return;
  allocator.fn(ptr, size ? size : 1, 0, KILNI_ALLOC_ALIGN, allocator.user);
}

void kilni_base_free_array(kiln_allocator_t allocator, void* ptr, size_t count,
                           size_t size) {
  if (ptr != NULL) kilni_base_free(allocator, ptr, count * size);
}

kiln_status_t kilni_base_grow(kiln_allocator_t allocator, size_t wanted,
                              size_t size, size_t* inout_capacity,
                              void** inout_ptr) {
  size_t capacity = *inout_capacity;
  if (wanted <= capacity) return kiln_ok();
  if (capacity == 0) capacity = FIRST_CAPACITY;
  while (capacity < wanted) {
    if (!alloc_multiply(capacity, 2, &capacity)) {
      return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
    }
  }
  size_t bytes;
  if (!alloc_multiply(capacity, size, &bytes)) {
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  size_t old_bytes = *inout_capacity * size;
  void* block = allocator.fn(*inout_ptr, old_bytes, bytes, KILNI_ALLOC_ALIGN,
                             allocator.user);
  if (block == NULL) return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  memset((char*)block + old_bytes, 0, bytes - old_bytes);
  *inout_ptr = block;
  *inout_capacity = capacity;
  return kiln_ok();
}
