// SPDX-License-Identifier: Apache-2.0
//
// cache: looking at every entry on disk.
#include "cache/cache_inside.h"

kiln_status_t kiln_cache_walk(kiln_cache_t* cache, uint32_t flags,
                              kiln_cache_item_fn_t fn, void* user,
                              kiln_cache_report_t* out_report) {
  (void)cache;
  (void)flags;
  (void)fn;
  (void)user;
  if (out_report != NULL) *out_report = (kiln_cache_report_t){0};
  return NULL;
}

kiln_status_t kiln_cache_open_name(kiln_cache_t* cache, const char* name,
                                   kiln_cache_entry_t** out_entry) {
  (void)cache;
  (void)name;
  *out_entry = NULL;
  return NULL;
}
