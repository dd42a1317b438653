// SPDX-License-Identifier: Apache-2.0
//
// locate: memory that is freed as a whole.
#include "locate/locate_store.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"

// A block of memory that is divided from its start.
typedef struct kilni_locate_store_block_t {
  struct kilni_locate_store_block_t* next;
  size_t size;
  size_t used;
} kilni_locate_store_block_t;

enum {
  // The block's own head, rounded up so that what follows is aligned.
  HEAD = (sizeof(kilni_locate_store_block_t) + KILNI_ALLOC_ALIGN - 1) /
         KILNI_ALLOC_ALIGN * KILNI_ALLOC_ALIGN,
  BLOCK_BYTES = 16 << 10
};

kiln_status_t kilni_locate_store_alloc(kilni_locate_store_t* store, size_t size,
                                       void** out_ptr) {
  *out_ptr = NULL;
  if (size > SIZE_MAX / 2) {
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  size = (size + KILNI_ALLOC_ALIGN - 1) & ~(size_t)(KILNI_ALLOC_ALIGN - 1);
  kilni_locate_store_block_t* block = store->blocks;
  if (block == NULL || block->size - block->used < size) {
    size_t bytes = HEAD + size;
    if (bytes < BLOCK_BYTES) bytes = BLOCK_BYTES;
    void* memory;
    KILNI_RETURN_IF_ERROR(
        kilni_base_alloc_unset(store->allocator, bytes, &memory));
    block = memory;
    block->size = bytes;
    block->used = HEAD;
    block->next = store->blocks;
    store->blocks = block;
  }
  *out_ptr = (char*)block + block->used;
  memset(*out_ptr, 0, size);
  block->used += size;
  return kiln_ok();
}

void kilni_locate_store_deinit(kilni_locate_store_t* store) {
  while (store->blocks != NULL) {
    kilni_locate_store_block_t* block = store->blocks;
    store->blocks = block->next;
    kilni_base_free(store->allocator, block, block->size);
  }
}

kiln_status_t kilni_locate_store_text(kilni_locate_store_t* store,
                                      kiln_string_view_t text,
                                      const char** out_text) {
  *out_text = NULL;
  void* memory;
  KILNI_RETURN_IF_ERROR(
      kilni_locate_store_alloc(store, text.size + 1, &memory));
  if (text.size > 0) memcpy(memory, text.data, text.size);
  *out_text = memory;
  return kiln_ok();
}
