// SPDX-License-Identifier: Apache-2.0
//
// base: sorting in place.
#ifndef KILN_SRC_BASE_SORT_H_
#define KILN_SRC_BASE_SORT_H_

#include <stdbool.h>
#include <stddef.h>

// Whether `a` comes before `b`; not for two that are equal.
typedef bool (*kilni_base_before_fn_t)(const void* a, const void* b);

// Sorts `count` items of `size` bytes, those that are equal in any order. It
// allocates nothing, as qsort may, and takes n log n steps at worst.
void kilni_base_sort(void* items, size_t count, size_t size,
                     kilni_base_before_fn_t before);

#endif  // KILN_SRC_BASE_SORT_H_
