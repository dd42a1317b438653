// SPDX-License-Identifier: Apache-2.0
//
// fuzz: any bytes as a cache entry: a state with its reason, or an entry whose
// parts lie inside it.
//
// Once as they are, and once with the hashes put right, so that what lies
// behind them is reached.
#include <stdlib.h>
#include <string.h>

#include "cache/cache_inside.h"
#include "kiln/cache.h"

enum { MAX_INPUT = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Ends the process as a crash would, which is what a finding is.
static void require(bool condition) {
  if (!condition) __builtin_trap();
}

static void require_inside(const kilni_cache_layout_t* layout, size_t size) {
  require(layout->total == size);
  require(layout->key_at >= KILNI_CACHE_HEAD_BYTES);
  require(layout->key_at + layout->key_bytes <= layout->metadata_at);
  require(layout->metadata_at + layout->metadata_bytes <= layout->payload_at);
  require(layout->payload_at + layout->payload_bytes <= layout->hash_at);
  require(layout->hash_at + sizeof(kilni_cache_hash_t) == size);
  require(layout->payload_at % KILNI_CACHE_PAYLOAD_ALIGN == 0);
  require(kilni_cache_kind_is_good(layout->kind));
}

static uint32_t check(const uint8_t* image, size_t size,
                      kilni_cache_layout_t* layout) {
  const char* why = NULL;
  uint32_t state = kilni_cache_head_read(image, size, size, layout, &why);
  if (state == KILN_CACHE_STATE_GOOD) {
    require_inside(layout, size);
    state = kilni_cache_image_check(image, layout, &why);
  }
  require((state == KILN_CACHE_STATE_GOOD) == (why[0] == 0));
  require(state <= KILN_CACHE_STATE_FOREIGN);
  return state;
}

static void check_mended(uint8_t* image, size_t size) {
  kilni_cache_layout_t layout;
  const char* why;
  if (kilni_cache_head_read(image, size, size, &layout, &why) !=
      KILN_CACHE_STATE_GOOD) {
    return;
  }
  kiln_cache_key_t key = {layout.kind,
                          layout.version,
                          0,
                          {image + layout.key_at, layout.key_bytes}};
  kilni_cache_hash_t hash = kilni_cache_key_hash(&key);
  memcpy(image + 80, &hash, sizeof(hash));
  hash = kilni_cache_hash(image, layout.hash_at);
  memcpy(image + layout.hash_at, &hash, sizeof(hash));
  require(check(image, size, &layout) == KILN_CACHE_STATE_GOOD);
  kiln_cache_entry_t* entry = NULL;
  kiln_status_t status =
      kilni_cache_entry_create(kiln_allocator_libc(), &layout, &entry);
  require(kiln_status_is_ok(status));
  memcpy(entry->image, image, size);
  require(kilni_cache_entry_has_key(entry, &layout.key_hash, &key));
  require(kiln_cache_entry_payload(entry).size == layout.payload_bytes);
  require(kiln_cache_entry_metadata(entry).size == layout.metadata_bytes);
  require(strlen(kiln_cache_entry_name(entry)) == KILN_CACHE_NAME_BYTES - 1);
  kiln_cache_entry_release(entry);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kilni_cache_layout_t layout;
  if (size > MAX_INPUT) return 0;
  // A block of its own size, so that a byte too far is seen.
  uint8_t* image = malloc(size ? size : 1);
  if (image == NULL) return 0;
  memcpy(image, data, size);
  (void)check(image, size, &layout);
  check_mended(image, size);
  free(image);
  return 0;
}
