// SPDX-License-Identifier: Apache-2.0
//
// cache: the format of an entry: a pure reader and a pure writer.
//
// Nothing in a file is trusted: it may be cut short, torn by a crash of the
// machine, or something else altogether. A file that passes has the lengths it
// states, and its hash matches. A matching hash shows that nothing was damaged,
// not that it was not forged: the owner and the mode of the folder protect
// against that.
#include <string.h>

#include "base/status_make.h"
#include "cache/cache_inside.h"
#include "kiln/cache.h"

// All numbers in the order of this machine; another's shows in ORDER.
//
//   0 magic, 8 order, 12 format, 16 kind, 32 version, 36 zero, 40 created,
//   48 key bytes, 56 metadata bytes, 64 payload bytes, 72 total,
//   80 hash of the key, 96 zero
enum {
  AT_ORDER = 8,
  AT_FORMAT = 12,
  AT_KIND = 16,
  AT_VERSION = 32,
  AT_ZERO = 36,
  AT_CREATED = 40,
  AT_KEY_BYTES = 48,
  AT_METADATA_BYTES = 56,
  AT_PAYLOAD_BYTES = 64,
  AT_TOTAL = 72,
  AT_KEY_HASH = 80,
  AT_REST = 96,
  PART_ALIGN = 16,
  FORMAT = 1,
};
static const char kMagic[8] = {'K', 'i', 'l', 'n', 'C', 'a', '\r', '\n'};
#define ORDER UINT32_C(0x01020304)

static size_t format_align_up(uint64_t value, size_t align) {
  return (size_t)((value + align - 1) / align * align);
}

// Lengths within their limits: no sum overflows.
static void format_place(kilni_cache_layout_t* layout) {
  layout->key_at = KILNI_CACHE_HEAD_BYTES;
  layout->metadata_at =
      format_align_up(layout->key_at + layout->key_bytes, PART_ALIGN);
  layout->payload_at = format_align_up(
      layout->metadata_at + layout->metadata_bytes, KILNI_CACHE_PAYLOAD_ALIGN);
  layout->hash_at =
      format_align_up(layout->payload_at + layout->payload_bytes, PART_ALIGN);
  layout->total = layout->hash_at + sizeof(kilni_cache_hash_t);
}

static bool within_limits(uint64_t key, uint64_t metadata, uint64_t payload) {
  return key <= KILN_CACHE_MAX_KEY_BYTES &&
         metadata <= KILN_CACHE_MAX_METADATA_BYTES &&
         payload <= KILN_CACHE_MAX_PAYLOAD_BYTES;
}

kiln_status_t kilni_cache_layout_make(const kiln_cache_key_t* key,
                                      kiln_bytes_view_t metadata,
                                      kiln_bytes_view_t payload,
                                      uint64_t created_s,
                                      kilni_cache_layout_t* out_layout) {
  memset(out_layout, 0, sizeof(*out_layout));
  if (!within_limits(key->bytes.size, metadata.size, payload.size)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED,
                   "an entry of kind \"%s\" with a key of %zu, metadata of %zu "
                   "and a payload of %zu bytes is over the cache's limits",
                   key->kind, key->bytes.size, metadata.size, payload.size),
        "store it elsewhere; the limits are KILN_CACHE_MAX_*");
  }
  out_layout->key_bytes = key->bytes.size;
  out_layout->metadata_bytes = metadata.size;
  out_layout->payload_bytes = payload.size;
  out_layout->created_s = created_s;
  out_layout->version = key->version;
  out_layout->key_hash = kilni_cache_key_hash(key);
  memcpy(out_layout->kind, key->kind, strlen(key->kind) + 1);
  format_place(out_layout);
  return kiln_ok();
}

// ---- Writing ----

static void format_put_u32(uint8_t* image, size_t at, uint32_t value) {
  memcpy(image + at, &value, sizeof(value));
}

static void format_put_u64(uint8_t* image, size_t at, uint64_t value) {
  memcpy(image + at, &value, sizeof(value));
}

static void put_bytes(uint8_t* image, size_t at, kiln_bytes_view_t bytes) {
  if (bytes.size > 0) memcpy(image + at, bytes.data, bytes.size);
}

void kilni_cache_image_write(const kilni_cache_layout_t* layout,
                             const kiln_cache_key_t* key,
                             kiln_bytes_view_t metadata,
                             kiln_bytes_view_t payload, uint8_t* image) {
  memcpy(image, kMagic, sizeof(kMagic));
  format_put_u32(image, AT_ORDER, ORDER);
  format_put_u32(image, AT_FORMAT, FORMAT);
  memcpy(image + AT_KIND, layout->kind, sizeof(layout->kind));
  format_put_u32(image, AT_VERSION, layout->version);
  format_put_u64(image, AT_CREATED, layout->created_s);
  format_put_u64(image, AT_KEY_BYTES, layout->key_bytes);
  format_put_u64(image, AT_METADATA_BYTES, layout->metadata_bytes);
  format_put_u64(image, AT_PAYLOAD_BYTES, layout->payload_bytes);
  format_put_u64(image, AT_TOTAL, layout->total);
  memcpy(image + AT_KEY_HASH, &layout->key_hash, sizeof(layout->key_hash));
  put_bytes(image, layout->key_at, key->bytes);
  put_bytes(image, layout->metadata_at, metadata);
  put_bytes(image, layout->payload_at, payload);
  kilni_cache_hash_t hash = kilni_cache_hash(image, layout->hash_at);
  memcpy(image + layout->hash_at, &hash, sizeof(hash));
}

// ---- Reading ----

static uint32_t get_u32(const uint8_t* image, size_t at) {
  uint32_t value;
  memcpy(&value, image + at, sizeof(value));
  return value;
}

static uint64_t get_u64(const uint8_t* image, size_t at) {
  uint64_t value;
  memcpy(&value, image + at, sizeof(value));
  return value;
}

static bool all_zero(const uint8_t* bytes, size_t from, size_t to) {
  for (size_t i = from; i < to; i++) {
    if (bytes[i] != 0) return false;
  }
  return true;
}

static uint32_t format_say(uint32_t state, const char* why,
                           const char** out_why) {
  *out_why = why;
  return state;
}

// Whether it is an entry of ours at all.
static uint32_t read_marks(const uint8_t* head, size_t size,
                           const char** out_why) {
  if (size < KILNI_CACHE_HEAD_BYTES) {
    return format_say(KILN_CACHE_STATE_CORRUPT, "it is cut short", out_why);
  }
  if (memcmp(head, kMagic, sizeof(kMagic)) != 0) {
    return format_say(KILN_CACHE_STATE_CORRUPT,
                      "it does not begin like an entry", out_why);
  }
  if (get_u32(head, AT_ORDER) != ORDER) {
    return format_say(KILN_CACHE_STATE_FOREIGN,
                      "it was written by a machine of another byte order",
                      out_why);
  }
  if (get_u32(head, AT_FORMAT) != FORMAT) {
    return format_say(KILN_CACHE_STATE_FOREIGN,
                      "it has the format of another version of Kiln", out_why);
  }
  return KILN_CACHE_STATE_GOOD;
}

static bool kind_holds(const char* kind) {
  if (memchr(kind, 0, KILN_CACHE_KIND_BYTES) == NULL) return false;
  size_t length = strlen(kind);
  if (!all_zero((const uint8_t*)kind, length, KILN_CACHE_KIND_BYTES)) {
    return false;
  }
  return kilni_cache_kind_is_good(kind);
}

uint32_t kilni_cache_head_read(const uint8_t* head, size_t size,
                               uint64_t file_bytes,
                               kilni_cache_layout_t* out_layout,
                               const char** out_why) {
  *out_why = "";
  memset(out_layout, 0, sizeof(*out_layout));
  uint32_t state = read_marks(head, size, out_why);
  if (state != KILN_CACHE_STATE_GOOD) return state;
  uint64_t key = get_u64(head, AT_KEY_BYTES);
  uint64_t metadata = get_u64(head, AT_METADATA_BYTES);
  uint64_t payload = get_u64(head, AT_PAYLOAD_BYTES);
  if (!within_limits(key, metadata, payload)) {
    return format_say(KILN_CACHE_STATE_CORRUPT, "its lengths exceed the limits",
                      out_why);
  }
  memcpy(out_layout->kind, head + AT_KIND, sizeof(out_layout->kind));
  if (!kind_holds(out_layout->kind)) {
    memset(out_layout->kind, 0, sizeof(out_layout->kind));
    return format_say(KILN_CACHE_STATE_CORRUPT, "its kind is not a word",
                      out_why);
  }
  out_layout->key_bytes = (size_t)key;
  out_layout->metadata_bytes = (size_t)metadata;
  out_layout->payload_bytes = (size_t)payload;
  out_layout->created_s = get_u64(head, AT_CREATED);
  out_layout->version = get_u32(head, AT_VERSION);
  memcpy(&out_layout->key_hash, head + AT_KEY_HASH,
         sizeof(out_layout->key_hash));
  format_place(out_layout);
  if (get_u64(head, AT_TOTAL) != out_layout->total ||
      !all_zero(head, AT_ZERO, AT_CREATED) ||
      !all_zero(head, AT_REST, KILNI_CACHE_HEAD_BYTES)) {
    return format_say(KILN_CACHE_STATE_CORRUPT, "its header contradicts itself",
                      out_why);
  }
  if (file_bytes != out_layout->total) {
    return format_say(KILN_CACHE_STATE_CORRUPT,
                      file_bytes < out_layout->total
                          ? "it is cut short"
                          : "it is longer than its header states",
                      out_why);
  }
  return KILN_CACHE_STATE_GOOD;
}

uint32_t kilni_cache_image_check(const uint8_t* image,
                                 const kilni_cache_layout_t* layout,
                                 const char** out_why) {
  *out_why = "";
  kilni_cache_hash_t hash = kilni_cache_hash(image, layout->hash_at);
  if (memcmp(image + layout->hash_at, &hash, sizeof(hash)) != 0) {
    return format_say(KILN_CACHE_STATE_CORRUPT,
                      "its bytes do not match its hash", out_why);
  }
  kiln_cache_key_t key = {layout->kind,
                          layout->version,
                          0,
                          {image + layout->key_at, layout->key_bytes}};
  hash = kilni_cache_key_hash(&key);
  if (memcmp(&layout->key_hash, &hash, sizeof(hash)) != 0) {
    return format_say(KILN_CACHE_STATE_CORRUPT,
                      "its key does not match its hash", out_why);
  }
  return KILN_CACHE_STATE_GOOD;
}
