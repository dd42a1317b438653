// SPDX-License-Identifier: Apache-2.0
//
// cache: hashes. The only file that includes xxHash, inline from its header.
#define XXH_INLINE_ALL
#define XXH_NO_STDLIB
#include <xxhash.h>

#include <string.h>

#include "cache/cache.h"
#include "cache/cache_inside.h"
#include "kiln/cache.h"

static kilni_cache_hash_t canonical(XXH128_hash_t value) {
  XXH128_canonical_t text;
  kilni_cache_hash_t hash;
  XXH128_canonicalFromHash(&text, value);
  memcpy(hash.bytes, text.digest, sizeof(hash.bytes));
  return hash;
}

kilni_cache_hash_t kilni_cache_hash(const void* data, size_t size) {
  return canonical(XXH3_128bits(data, size));
}

kilni_cache_hash_t kilni_cache_key_hash(const kiln_cache_key_t* key) {
  // Kind and version go in front, in a fixed size, and are hashed with the
  // hash of the bytes, so that these need not be copied.
  uint8_t parts[KILN_CACHE_KIND_BYTES + 4 + 16];
  memset(parts, 0, sizeof(parts));
  memcpy(parts, key->kind, strlen(key->kind));
  for (int i = 0; i < 4; i++) {
    parts[KILN_CACHE_KIND_BYTES + i] = (uint8_t)(key->version >> (8 * i));
  }
  kilni_cache_hash_t bytes = kilni_cache_hash(key->bytes.data, key->bytes.size);
  memcpy(parts + KILN_CACHE_KIND_BYTES + 4, bytes.bytes, sizeof(bytes.bytes));
  return kilni_cache_hash(parts, sizeof(parts));
}

void kilni_cache_hash_text(const kilni_cache_hash_t* hash,
                           char out_text[KILN_CACHE_NAME_BYTES]) {
  static const char kDigits[] = "0123456789abcdef";
  for (size_t i = 0; i < sizeof(hash->bytes); i++) {
    out_text[2 * i] = kDigits[hash->bytes[i] >> 4];
    out_text[2 * i + 1] = kDigits[hash->bytes[i] & 15];
  }
  out_text[KILN_CACHE_NAME_BYTES - 1] = 0;
}

void kilni_cache_digest(kiln_bytes_view_t bytes,
                        char out_text[KILN_CACHE_NAME_BYTES]) {
  kilni_cache_hash_t hash = kilni_cache_hash(bytes.data, bytes.size);
  kilni_cache_hash_text(&hash, out_text);
}
