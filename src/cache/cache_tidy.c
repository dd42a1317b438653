// SPDX-License-Identifier: Apache-2.0
//
// cache: keeping the folder within its limits.
#include "cache/cache_inside.h"

void kilni_cache_tidy_after(kiln_cache_t* cache, uint64_t bytes) {
  atomic_fetch_add(&cache->stored_since_tidy, bytes);
}

kiln_status_t kiln_cache_trim(kiln_cache_t* cache,
                              kiln_cache_report_t* out_report) {
  (void)cache;
  if (out_report != NULL) *out_report = (kiln_cache_report_t){0};
  return NULL;
}

kiln_status_t kiln_cache_clear(kiln_cache_t* cache,
                               kiln_cache_report_t* out_report) {
  (void)cache;
  if (out_report != NULL) *out_report = (kiln_cache_report_t){0};
  return NULL;
}
