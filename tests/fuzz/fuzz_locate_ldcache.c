// SPDX-License-Identifier: Apache-2.0
//
// locate: fuzz target: ld.so.cache. The first bytes up to a NUL are the name
// that is looked for; the rest is the cache. What is found lies inside it.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "locate/locate_ldcache.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const uint8_t* end = size > 0 ? memchr(data, 0, size) : NULL;
  if (end == NULL) return 0;
  const char* name = (const char*)data;
  size_t rest = size - (size_t)(end + 1 - data);
  // A block of exactly that size, so that a step outside is seen.
  uint8_t* bytes = malloc(rest + (rest == 0));
  if (rest > 0) memcpy(bytes, end + 1, rest);
  kilni_locate_ldcache_t cache;
  const char* why = NULL;
  if (kilni_locate_ldcache_open(bytes, rest, &cache, &why)) {
    for (uint32_t level = 0; level <= 4; level++) {
      kiln_string_view_t path =
          kilni_locate_ldcache_find(&cache, name, KILNI_LDCACHE_X86_64, level);
      if (path.size == 0) continue;
      const uint8_t* at = (const uint8_t*)path.data;
      if (at < bytes || at + path.size >= bytes + rest || at[path.size] != 0) {
        abort();
      }
    }
  } else if (why == NULL) {
    abort();
  }
  free(bytes);
  return 0;
}
