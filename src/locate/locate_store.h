// SPDX-License-Identifier: Apache-2.0
//
// locate: memory that is freed as a whole.
#ifndef KILN_SRC_LOCATE_LOCATE_STORE_H_
#define KILN_SRC_LOCATE_LOCATE_STORE_H_

#include "kiln/allocator.h"
#include "kiln/api.h"
#include "kiln/status.h"

// Cut up from the front, block by block. one-thread
typedef struct kilni_locate_store_t {
  kiln_allocator_t allocator;
  struct kilni_locate_store_block_t* blocks;
} kilni_locate_store_t;

// Zeroed, aligned, and there as long as the store.
kiln_status_t kilni_locate_store_alloc(kilni_locate_store_t* store, size_t size,
                                       void** out_ptr);
// A copy that ends with a NUL.
kiln_status_t kilni_locate_store_text(kilni_locate_store_t* store,
                                      kiln_string_view_t text,
                                      const char** out_text);
void kilni_locate_store_deinit(kilni_locate_store_t* store);

#endif  // KILN_SRC_LOCATE_LOCATE_STORE_H_
