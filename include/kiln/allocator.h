// SPDX-License-Identifier: Apache-2.0
//
// base: the allocator hook.
//
// One function serves allocation, growth and release, so that counting,
// limiting or failing allocations takes one hook.
#ifndef KILN_ALLOCATOR_H_
#define KILN_ALLOCATOR_H_

#include "kiln/api.h"

KILN_EXTERN_C_BEGIN

// Allocates, grows, shrinks or frees.
//
//   `ptr` NULL          allocate `new_size` bytes (never 0)
//   `new_size` 0        free `ptr`, whose size was `old_size`; returns NULL
//   otherwise           resize; on failure returns NULL and leaves `ptr` valid
//
// `align` is a power of two up to 4096 and the same in every call for a block.
// Must be safe to call from any thread and must not call back into Kiln.
typedef void* (*kiln_allocator_fn_t)(void* ptr, size_t old_size,
                                     size_t new_size, size_t align, void* user);

// An allocator, passed by value. thread-safe
typedef struct kiln_allocator_t {
  kiln_allocator_fn_t fn;
  void* user;
} kiln_allocator_t;

// The allocator of the C library. Since 0.1.
KILN_API kiln_allocator_t kiln_allocator_libc(void);

KILN_EXTERN_C_END

#endif  // KILN_ALLOCATOR_H_
