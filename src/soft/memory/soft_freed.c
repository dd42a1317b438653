// SPDX-License-Identifier: Apache-2.0
//
// soft: the words for memory that was freed.
#include "soft/memory/soft_freed.h"

#include <inttypes.h>
#include <stdio.h>

void kilni_soft_freed_text(const kilni_soft_freed_t* freed, uint64_t address,
                           char* out_text, size_t capacity) {
  char by[160] = "cuMemFree has freed";
  const char* fix = "free memory behind everything that uses it";
  if (freed->how != KILNI_SOFT_FREE_WAITED) {
    snprintf(by, sizeof(by),
             "cuMemFreeAsync on stream 0x%" PRIx64 ", work %" PRIu64 ", %s",
             freed->stream, freed->work,
             freed->how == KILNI_SOFT_FREE_PENDING
                 ? "frees without waiting for this"
                 : "has freed");
    fix =
        "let the stream of the free wait for who uses the memory "
        "(cuStreamWaitEvent), or free it on the stream that uses it last";
  }
  snprintf(out_text, capacity,
           "  byte %" PRIu64 " of a %" PRIu64 "-byte allocation at 0x%" PRIx64
           ", which %s\n  Fix: %s\n",
           address - freed->address, freed->bytes, freed->address, by, fix);
}
