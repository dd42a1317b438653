// SPDX-License-Identifier: Apache-2.0
//
// soft: the words for memory that was freed.
#include "soft/memory/soft_freed.h"

#include <inttypes.h>
#include <stdio.h>

void kilni_soft_freed_text(const kilni_soft_freed_t* freed, char* out_text,
                           size_t capacity) {
  if (freed->how == KILNI_SOFT_FREE_WAITED) {
    snprintf(out_text, capacity, "cuMemFree has freed it");
    return;
  }
  snprintf(out_text, capacity,
           "cuMemFreeAsync on stream 0x%" PRIx64 ", work %" PRIu64 ", %s",
           freed->stream, freed->work,
           freed->how == KILNI_SOFT_FREE_PENDING
               ? "frees it without waiting for this"
               : "has freed it");
}
