// SPDX-License-Identifier: Apache-2.0
//
// cache: entries: verified bytes that are shared and never change.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "cache/cache_inside.h"
#include "kiln/cache.h"

kiln_status_t kilni_cache_entry_create(kiln_allocator_t allocator,
                                       const kilni_cache_layout_t* layout,
                                       kiln_cache_entry_t** out_entry) {
  *out_entry = NULL;
  void* block;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kiln_cache_entry_t), &block));
  kiln_cache_entry_t* entry = block;
  kiln_status_t status = kilni_base_alloc_aligned(
      allocator, layout->total, KILNI_CACHE_PAYLOAD_ALIGN, &block);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(allocator, entry, sizeof(*entry));
    return status;
  }
  entry->image = block;
  atomic_init(&entry->references, 1);
  atomic_init(&entry->marked_s, 0);
  entry->allocator = allocator;
  entry->process_id = kilni_base_process_id();
  entry->layout = *layout;
  entry->hash = layout->key_hash;
  kilni_cache_hash_text(&entry->hash, entry->name);
  *out_entry = entry;
  return kiln_ok();
}

bool kilni_cache_entry_has_key(const kiln_cache_entry_t* entry,
                               const kilni_cache_hash_t* hash,
                               const kiln_cache_key_t* key) {
  const kilni_cache_layout_t* layout = &entry->layout;
  return memcmp(&entry->hash, hash, sizeof(*hash)) == 0 &&
         layout->version == key->version &&
         strcmp(layout->kind, key->kind) == 0 &&
         layout->key_bytes == key->bytes.size &&
         (key->bytes.size == 0 ||
          memcmp(entry->image + layout->key_at, key->bytes.data,
                 key->bytes.size) == 0);
}

void kiln_cache_entry_retain(kiln_cache_entry_t* entry) {
  if (entry == NULL) return;
  atomic_fetch_add_explicit(&entry->references, 1, memory_order_relaxed);
}

void kiln_cache_entry_release(kiln_cache_entry_t* entry) {
  if (entry == NULL || entry->process_id != kilni_base_process_id()) return;
  if (atomic_fetch_sub_explicit(&entry->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kiln_allocator_t allocator = entry->allocator;
  kilni_base_free_aligned(allocator, entry->image, entry->layout.total,
                          KILNI_CACHE_PAYLOAD_ALIGN);
  kilni_base_free(allocator, entry, sizeof(*entry));
}

static kiln_bytes_view_t entry_part(const kiln_cache_entry_t* entry, size_t at,
                                    size_t size) {
  kiln_bytes_view_t view = {entry->image + at, size};
  return view;
}

kiln_bytes_view_t kiln_cache_entry_payload(const kiln_cache_entry_t* entry) {
  kiln_bytes_view_t nothing = {NULL, 0};
  if (entry == NULL) return nothing;
  return entry_part(entry, entry->layout.payload_at,
                    entry->layout.payload_bytes);
}

kiln_bytes_view_t kiln_cache_entry_metadata(const kiln_cache_entry_t* entry) {
  kiln_bytes_view_t nothing = {NULL, 0};
  if (entry == NULL) return nothing;
  return entry_part(entry, entry->layout.metadata_at,
                    entry->layout.metadata_bytes);
}

kiln_bytes_view_t kiln_cache_entry_key(const kiln_cache_entry_t* entry) {
  kiln_bytes_view_t nothing = {NULL, 0};
  if (entry == NULL) return nothing;
  return entry_part(entry, entry->layout.key_at, entry->layout.key_bytes);
}

const char* kiln_cache_entry_kind(const kiln_cache_entry_t* entry) {
  return entry == NULL ? "" : entry->layout.kind;
}

uint32_t kiln_cache_entry_version(const kiln_cache_entry_t* entry) {
  return entry == NULL ? 0 : entry->layout.version;
}

const char* kiln_cache_entry_name(const kiln_cache_entry_t* entry) {
  return entry == NULL ? "" : entry->name;
}

uint64_t kiln_cache_entry_created(const kiln_cache_entry_t* entry) {
  return entry == NULL ? 0 : entry->layout.created_s;
}
