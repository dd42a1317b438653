// SPDX-License-Identifier: Apache-2.0
//
// soft: device memory that was freed, or is about to be, and by what; for the
// report of later uses.
#ifndef KILN_SRC_SOFT_MEMORY_SOFT_FREED_H_
#define KILN_SRC_SOFT_MEMORY_SOFT_FREED_H_

#include <stddef.h>
#include <stdint.h>

typedef enum kilni_soft_free_how_t {
  KILNI_SOFT_FREE_WAITED = 0,  // cuMemFree, after everything
  KILNI_SOFT_FREE_ORDERED,     // in the order of a stream
  KILNI_SOFT_FREE_PENDING,     // will be, in the order of a stream
} kilni_soft_free_how_t;

// An allocation that was freed. thread-compatible
typedef struct kilni_soft_freed_t {
  uint64_t address;
  uint64_t bytes;
  uint64_t stream;  // its handle; 0: the default stream
  uint64_t work;    // the free's number among everything issued
  kilni_soft_free_how_t how;
  uint32_t kind;  // kilni_soft_alloc_kind_t
} kilni_soft_freed_t;

// The line of a report on what freed it.
void kilni_soft_freed_text(const kilni_soft_freed_t* freed, char* out_text,
                           size_t capacity);

#endif  // KILN_SRC_SOFT_MEMORY_SOFT_FREED_H_
