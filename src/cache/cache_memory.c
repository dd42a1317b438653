// SPDX-License-Identifier: Apache-2.0
//
// cache: entries in memory, the least recently used evicted first.
#include <string.h>

#include "base/alloc.h"
#include "cache/cache_inside.h"
#include "kiln/cache.h"

enum { FIRST_BUCKETS = 64, LOAD = 2 };

static size_t memory_bucket_of(const kilni_cache_memory_t* memory,
                               const kilni_cache_hash_t* hash) {
  uint64_t low;
  memcpy(&low, hash->bytes, sizeof(low));
  return (size_t)low & (memory->bucket_count - 1);
}

// ---- The order of use ----

static void unlink_use(kilni_cache_memory_t* memory,
                       kiln_cache_entry_t* entry) {
  if (entry->newer != NULL) {
    entry->newer->older = entry->older;
  } else {
    memory->newest = entry->older;
  }
  if (entry->older != NULL) {
    entry->older->newer = entry->newer;
  } else {
    memory->oldest = entry->newer;
  }
  entry->newer = NULL;
  entry->older = NULL;
}

static void link_newest(kilni_cache_memory_t* memory,
                        kiln_cache_entry_t* entry) {
  entry->older = memory->newest;
  entry->newer = NULL;
  if (memory->newest != NULL) memory->newest->newer = entry;
  memory->newest = entry;
  if (memory->oldest == NULL) memory->oldest = entry;
}

// ---- The table ----

static kiln_cache_entry_t** memory_place_of(kilni_cache_memory_t* memory,
                                            const kilni_cache_hash_t* hash,
                                            const kiln_cache_key_t* key) {
  if (memory->bucket_count == 0) return NULL;
  kiln_cache_entry_t** at = &memory->buckets[memory_bucket_of(memory, hash)];
  while (*at != NULL && !kilni_cache_entry_has_key(*at, hash, key)) {
    at = &(*at)->chain;
  }
  return *at == NULL ? NULL : at;
}

// Without memory for a larger table the old one goes on, only slower.
static void memory_grow(kilni_cache_memory_t* memory) {
  if (memory->count < LOAD * memory->bucket_count) return;
  size_t count =
      memory->bucket_count ? memory->bucket_count * 4 : (size_t)FIRST_BUCKETS;
  void* block;
  kiln_status_t status = kilni_base_alloc_array(
      memory->allocator, count, sizeof(kiln_cache_entry_t*), &block);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return;
  }
  kiln_cache_entry_t** old = memory->buckets;
  size_t old_count = memory->bucket_count;
  memory->buckets = block;
  memory->bucket_count = count;
  for (size_t i = 0; i < old_count; i++) {
    while (old[i] != NULL) {
      kiln_cache_entry_t* entry = old[i];
      old[i] = entry->chain;
      size_t bucket = memory_bucket_of(memory, &entry->hash);
      entry->chain = memory->buckets[bucket];
      memory->buckets[bucket] = entry;
    }
  }
  kilni_base_free_array(memory->allocator, old, old_count, sizeof(*old));
}

// Out of the table and the order of use.
static kiln_cache_entry_t* memory_take_at(kilni_cache_memory_t* memory,
                                          kiln_cache_entry_t** at) {
  kiln_cache_entry_t* entry = *at;
  *at = entry->chain;
  entry->chain = NULL;
  unlink_use(memory, entry);
  memory->count--;
  memory->used_bytes -= entry->layout.total;
  return entry;
}

static kiln_cache_entry_t* take_oldest(kilni_cache_memory_t* memory) {
  kiln_cache_entry_t* oldest = memory->oldest;
  kiln_cache_entry_t** at =
      &memory->buckets[memory_bucket_of(memory, &oldest->hash)];
  while (*at != oldest) at = &(*at)->chain;
  return memory_take_at(memory, at);
}

// ---- What the cache calls ----

kiln_cache_entry_t* kilni_cache_memory_get(kilni_cache_memory_t* memory,
                                           const kilni_cache_hash_t* hash,
                                           const kiln_cache_key_t* key) {
  kiln_cache_entry_t** at = memory_place_of(memory, hash, key);
  if (at == NULL) return NULL;
  kiln_cache_entry_t* entry = *at;
  unlink_use(memory, entry);
  link_newest(memory, entry);
  kiln_cache_entry_retain(entry);
  return entry;
}

kiln_cache_entry_t* kilni_cache_memory_take(kilni_cache_memory_t* memory,
                                            const kilni_cache_hash_t* hash,
                                            const kiln_cache_key_t* key) {
  kiln_cache_entry_t** at = memory_place_of(memory, hash, key);
  return at == NULL ? NULL : memory_take_at(memory, at);
}

kiln_cache_entry_t* kilni_cache_memory_put(kilni_cache_memory_t* memory,
                                           kiln_cache_entry_t* entry) {
  if (entry->layout.total > memory->limit_bytes) return NULL;
  const kilni_cache_layout_t* layout = &entry->layout;
  kiln_cache_key_t key = {layout->kind,
                          layout->version,
                          0,
                          {entry->image + layout->key_at, layout->key_bytes}};
  kiln_cache_entry_t* gone =
      kilni_cache_memory_take(memory, &entry->hash, &key);
  while (memory->count > 0 &&
         memory->used_bytes + layout->total > memory->limit_bytes) {
    kiln_cache_entry_t* oldest = take_oldest(memory);
    memory->evicted++;
    oldest->chain = gone;
    gone = oldest;
  }
  memory_grow(memory);
  if (memory->bucket_count == 0) return gone;
  kiln_cache_entry_retain(entry);
  kiln_cache_entry_t** at =
      &memory->buckets[memory_bucket_of(memory, &entry->hash)];
  entry->chain = *at;
  *at = entry;
  link_newest(memory, entry);
  memory->count++;
  memory->used_bytes += layout->total;
  return gone;
}

kiln_cache_entry_t* kilni_cache_memory_take_all(kilni_cache_memory_t* memory) {
  kiln_cache_entry_t* gone = NULL;
  while (memory->oldest != NULL) {
    kiln_cache_entry_t* oldest = take_oldest(memory);
    oldest->chain = gone;
    gone = oldest;
  }
  return gone;
}

void kilni_cache_release_list(kiln_cache_entry_t* list) {
  while (list != NULL) {
    kiln_cache_entry_t* entry = list;
    list = entry->chain;
    entry->chain = NULL;
    kiln_cache_entry_release(entry);
  }
}

void kilni_cache_memory_deinit(kilni_cache_memory_t* memory) {
  kilni_cache_release_list(kilni_cache_memory_take_all(memory));
  kilni_base_free_array(memory->allocator, memory->buckets,
                        memory->bucket_count, sizeof(*memory->buckets));
  memory->buckets = NULL;
  memory->bucket_count = 0;
}
