// SPDX-License-Identifier: Apache-2.0
//
// base: allocation inside the library.
//
// Every size that is a product goes through the checked forms. All memory is
// freed with the size it was allocated with.
#ifndef KILN_SRC_BASE_ALLOC_H_
#define KILN_SRC_BASE_ALLOC_H_

#include "kiln/allocator.h"
#include "kiln/status.h"

// The alignment of every block but those that ask for another.
enum { KILNI_ALLOC_ALIGN = 16 };

// `size` bytes of zeroes, never NULL on OK (a size of 0 gives 1 byte).
// OUT_OF_MEMORY (bare) otherwise, with `*out_ptr` NULL.
kiln_status_t kilni_base_alloc(kiln_allocator_t allocator, size_t size,
                               void** out_ptr);

// The same, but with any bytes in it: for what is filled at once.
kiln_status_t kilni_base_alloc_unset(kiln_allocator_t allocator, size_t size,
                                     void** out_ptr);

// As kilni_base_alloc, for `count` elements of `size` bytes; overflow is
// OUT_OF_MEMORY.
kiln_status_t kilni_base_alloc_array(kiln_allocator_t allocator, size_t count,
                                     size_t size, void** out_ptr);

// The same aligned to `align`, a power of two up to 4096.
kiln_status_t kilni_base_alloc_aligned(kiln_allocator_t allocator, size_t size,
                                       size_t align, void** out_ptr);
void kilni_base_free_aligned(kiln_allocator_t allocator, void* ptr, size_t size,
                             size_t align);

// Frees what kilni_base_alloc gave. NULL is accepted.
void kilni_base_free(kiln_allocator_t allocator, void* ptr, size_t size);
void kilni_base_free_array(kiln_allocator_t allocator, void* ptr, size_t count,
                           size_t size);

// Grows `*inout_ptr`, an array of `*inout_capacity` elements of `size` bytes,
// to at least `wanted` elements. New bytes are zero. On failure nothing
// changes. Starts from NULL and 0.
kiln_status_t kilni_base_grow(kiln_allocator_t allocator, size_t wanted,
                              size_t size, size_t* inout_capacity,
                              void** inout_ptr);

#endif  // KILN_SRC_BASE_ALLOC_H_
