// SPDX-License-Identifier: Apache-2.0
//
// base: sorting in place: a heap.
#include "base/sort.h"

#include <stdint.h>
#include <string.h>

enum { PIECE_BYTES = 64 };

// What is sorted. one-thread
typedef struct heap_t {
  uint8_t* items;
  size_t size;
  kilni_base_before_fn_t before;
} heap_t;

static void sort_swap(const heap_t* heap, size_t a, size_t b) {
  uint8_t* from = heap->items + a * heap->size;
  uint8_t* to = heap->items + b * heap->size;
  for (size_t left = heap->size; left > 0;) {
    uint8_t piece[PIECE_BYTES];
    size_t bytes = left < PIECE_BYTES ? left : PIECE_BYTES;
    memcpy(piece, from, bytes);
    memcpy(from, to, bytes);
    memcpy(to, piece, bytes);
    from += bytes;
    to += bytes;
    left -= bytes;
  }
}

static bool sort_before(const heap_t* heap, size_t a, size_t b) {
  return heap->before(heap->items + a * heap->size,
                      heap->items + b * heap->size);
}

static void sink(const heap_t* heap, size_t at, size_t count) {
  for (size_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && sort_before(heap, child, child + 1)) child++;
    if (!sort_before(heap, at, child)) return;
    sort_swap(heap, at, child);
  }
}

void kilni_base_sort(void* items, size_t count, size_t size,
                     kilni_base_before_fn_t before_fn) {
  const heap_t heap = {items, size, before_fn};
  for (size_t i = count / 2; i-- > 0;) sink(&heap, i, count);
  for (size_t i = count; i-- > 1;) {
    sort_swap(&heap, 0, i);
    sink(&heap, 0, i);
  }
}
