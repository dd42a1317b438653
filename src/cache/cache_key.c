// SPDX-License-Identifier: Apache-2.0
//
// cache: building keys from named fields, and checking keys.
//
// A field is its type (one byte), the length of its name (4 bytes, little end
// first), the name, the length of its value (8 bytes), the value. A list's
// value is the count of its texts and each with its length. So the bytes have
// exactly one reading.
#include <string.h>

#include "base/options.h"
#include "base/status_make.h"
#include "base/str.h"
#include "cache/cache.h"
#include "cache/cache_inside.h"
#include "kiln/cache.h"

enum {
  FIELD_TEXT = 't',
  FIELD_BYTES = 'b',
  FIELD_U64 = 'u',
  FIELD_TEXTS = 'l'
};

void kilni_cache_key_init(kilni_cache_key_builder_t* builder,
                          kiln_allocator_t allocator) {
  kilni_base_str_init(&builder->bytes, allocator,
                      (size_t)KILN_CACHE_MAX_KEY_BYTES);
}

void kilni_cache_key_deinit(kilni_cache_key_builder_t* builder) {
  kilni_base_str_deinit(&builder->bytes);
}

static void add_raw(kilni_cache_key_builder_t* builder, const void* data,
                    size_t size) {
  kilni_base_str_add(&builder->bytes, kilni_base_sv_make(data, size));
}

static void key_add_number(kilni_cache_key_builder_t* builder, uint64_t value,
                           size_t width) {
  uint8_t bytes[8];
  for (size_t i = 0; i < width; i++) bytes[i] = (uint8_t)(value >> (8 * i));
  add_raw(builder, bytes, width);
}

static void key_add_head(kilni_cache_key_builder_t* builder, char type,
                         const char* name, uint64_t size) {
  size_t length = strlen(name);
  add_raw(builder, &type, 1);
  key_add_number(builder, length, 4);
  add_raw(builder, name, length);
  key_add_number(builder, size, 8);
}

void kilni_cache_key_add_text(kilni_cache_key_builder_t* builder,
                              const char* name, kiln_string_view_t text) {
  key_add_head(builder, FIELD_TEXT, name, text.size);
  add_raw(builder, text.data, text.size);
}

void kilni_cache_key_add_bytes(kilni_cache_key_builder_t* builder,
                               const char* name, kiln_bytes_view_t bytes) {
  key_add_head(builder, FIELD_BYTES, name, bytes.size);
  add_raw(builder, bytes.data, bytes.size);
}

void kilni_cache_key_add_u64(kilni_cache_key_builder_t* builder,
                             const char* name, uint64_t value) {
  key_add_head(builder, FIELD_U64, name, 8);
  key_add_number(builder, value, 8);
}

void kilni_cache_key_add_texts(kilni_cache_key_builder_t* builder,
                               const char* name, const char* const* texts,
                               size_t count) {
  uint64_t size = 8;
  for (size_t i = 0; i < count; i++) size += 8 + (uint64_t)strlen(texts[i]);
  key_add_head(builder, FIELD_TEXTS, name, size);
  key_add_number(builder, count, 8);
  for (size_t i = 0; i < count; i++) {
    size_t length = strlen(texts[i]);
    key_add_number(builder, length, 8);
    add_raw(builder, texts[i], length);
  }
}

kiln_status_t kilni_cache_key_status(const kilni_cache_key_builder_t* builder) {
  return kilni_base_str_status(&builder->bytes);
}

kiln_bytes_view_t kilni_cache_key_view(
    const kilni_cache_key_builder_t* builder) {
  kiln_bytes_view_t view = {(const uint8_t*)builder->bytes.data,
                            builder->bytes.size};
  return view;
}

// ---- Reading one back ----

static uint64_t key_take_number(kiln_bytes_view_t* rest, size_t width) {
  uint64_t value = 0;
  for (size_t i = 0; i < width; i++) {
    value |= (uint64_t)rest->data[i] << (8 * i);
  }
  rest->data += width;
  rest->size -= width;
  return value;
}

bool kilni_cache_key_next(kilni_cache_key_reader_t* reader,
                          kilni_cache_key_field_t* out_field) {
  kiln_bytes_view_t rest = reader->rest;
  reader->rest.size = 0;  // an invalid field is the end
  memset(out_field, 0, sizeof(*out_field));
  if (rest.size < 5) return false;
  uint8_t type = (uint8_t)key_take_number(&rest, 1);
  uint64_t name_size = key_take_number(&rest, 4);
  if (rest.size < 8 || name_size > rest.size - 8) return false;
  out_field->name =
      kilni_base_sv_make((const char*)rest.data, (size_t)name_size);
  rest.data += name_size;
  rest.size -= (size_t)name_size;
  uint64_t size = key_take_number(&rest, 8);
  if (size > rest.size) return false;
  out_field->value = (kiln_bytes_view_t){rest.data, (size_t)size};
  if (type == FIELD_U64) {
    if (size != 8) return false;
    kiln_bytes_view_t number = out_field->value;
    out_field->number = key_take_number(&number, 8);
  }
  reader->rest.data = rest.data + size;
  reader->rest.size = rest.size - (size_t)size;
  return true;
}

// ---- Keys from callers ----

bool kilni_cache_kind_is_good(const char* text) {
  size_t length = 0;
  for (; text[length] != 0; length++) {
    char c = text[length];
    bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
                c == '-';
    if (!good || length + 1 == KILN_CACHE_KIND_BYTES) return false;
  }
  return length > 0;
}

kiln_status_t kilni_cache_check_key(const kiln_cache_key_t* key) {
  KILNI_CHECK_ARGUMENT(key != NULL, "key");
  KILNI_CHECK_RESERVED(key->reserved, kiln_cache_key_t);
  KILNI_CHECK_ARGUMENT(key->bytes.size == 0 || key->bytes.data != NULL, "key");
  if (key->kind == NULL || !kilni_cache_kind_is_good(key->kind)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "the kind of a cache key is not a word"),
        "set it to 1 to %d bytes of a-z, 0-9, - and _",
        (int)KILN_CACHE_KIND_BYTES - 1);
  }
  return kiln_ok();
}
