// SPDX-License-Identifier: Apache-2.0
//
// base: strings. Views borrow; a builder owns and grows.
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"

kiln_string_view_t kilni_base_sv(const char* text) {
  return (kiln_string_view_t){text, text ? strlen(text) : 0};
}

kiln_string_view_t kilni_base_sv_make(const char* data, size_t size) {
  return (kiln_string_view_t){data, size};
}

bool kilni_base_sv_equal(kiln_string_view_t a, kiln_string_view_t b) {
  if (a.size != b.size) return false;
  return a.size == 0 || memcmp(a.data, b.data, a.size) == 0;
}

bool kilni_base_sv_equal_cstr(kiln_string_view_t a, const char* b) {
  size_t size = strlen(b);
  return a.size == size && (size == 0 || memcmp(a.data, b, size) == 0);
}

bool kilni_base_sv_starts_with(kiln_string_view_t text, const char* prefix) {
  size_t size = strlen(prefix);
  if (text.size < size) return false;
  return size == 0 || memcmp(text.data, prefix, size) == 0;
}

bool kilni_base_sv_ends_with(kiln_string_view_t text, const char* suffix) {
  size_t size = strlen(suffix);
  if (text.size < size) return false;
  return size == 0 || memcmp(text.data + text.size - size, suffix, size) == 0;
}

bool kilni_base_sv_split(kiln_string_view_t* inout, char separator,
                         kiln_string_view_t* out_part) {
  *out_part = kilni_base_sv_make(NULL, 0);
  if (inout->size == 0) return false;
  const char* end = memchr(inout->data, separator, inout->size);
  if (end == NULL) {
    *out_part = *inout;
    *inout = kilni_base_sv_make(NULL, 0);
    return true;
  }
  size_t size = (size_t)(end - inout->data);
  *out_part = kilni_base_sv_make(inout->data, size);
  *inout = kilni_base_sv_make(end + 1, inout->size - size - 1);
  return true;
}

static int str_digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool kilni_base_sv_to_u64(kiln_string_view_t text, uint64_t* out_value) {
  *out_value = 0;
  uint64_t base = 10;
  if (kilni_base_sv_starts_with(text, "0x") ||
      kilni_base_sv_starts_with(text, "0X")) {
    base = 16;
    text = kilni_base_sv_make(text.data + 2, text.size - 2);
  }
  if (text.size == 0) return false;
  uint64_t value = 0;
  for (size_t i = 0; i < text.size; i++) {
    int digit = str_digit_of(text.data[i]);
    if (digit < 0 || (uint64_t)digit >= base) return false;
    if (value > (UINT64_MAX - (uint64_t)digit) / base) return false;
    value = value * base + (uint64_t)digit;
  }
  *out_value = value;
  return true;
}

void kilni_base_str_init(kilni_base_str_t* str, kiln_allocator_t allocator,
                         size_t limit) {
  memset(str, 0, sizeof(*str));
  str->allocator = allocator;
  str->limit = limit;
  str->failed = KILN_STATUS_OK;
}

void kilni_base_str_deinit(kilni_base_str_t* str) {
  kilni_base_free(str->allocator, str->data, str->capacity);
  kilni_base_str_init(str, str->allocator, str->limit);
}

// Most texts are longer than this: less at first would be moved at once.
enum { FIRST_BYTES = 64 };

// Makes space for `size` more bytes and a NUL.
static bool str_reserve(kilni_base_str_t* str, size_t size) {
  if (str->failed != KILN_STATUS_OK) return false;
  if (size > str->limit || str->size > str->limit - size) {
    str->failed = KILN_STATUS_LIMIT_EXCEEDED;
    return false;
  }
  if (str->size + size == SIZE_MAX) {
    str->failed = KILN_STATUS_OUT_OF_MEMORY;
    return false;
  }
  void* data = str->data;
  size_t wanted = str->size + size + 1;
  if (wanted < FIRST_BYTES) wanted = FIRST_BYTES;
  kiln_status_t status =
      kilni_base_grow(str->allocator, wanted, 1, &str->capacity, &data);
  str->failed = kiln_status_code(status);
  str->data = data;
  return kiln_status_is_ok(status);
}

void kilni_base_str_add(kilni_base_str_t* str, kiln_string_view_t text) {
  if (text.size == 0 || !str_reserve(str, text.size)) return;
  memcpy(str->data + str->size, text.data, text.size);
  str->size += text.size;
  str->data[str->size] = 0;
}

void kilni_base_str_add_cstr(kilni_base_str_t* str, const char* text) {
  kilni_base_str_add(str, kilni_base_sv(text));
}

void kilni_base_str_add_char(kilni_base_str_t* str, char c) {
  kilni_base_str_add(str, kilni_base_sv_make(&c, 1));
}

void kilni_base_str_addv(kilni_base_str_t* str, const char* format,
                         va_list args) {
  // Into what is free already; a second time only where that is too little.
  if (str->data == NULL) (void)str_reserve(str, 0);
  size_t space = str->data != NULL ? str->capacity - str->size : 0;
  va_list again;
  va_copy(again, args);
  int length =
      vsnprintf(space > 0 ? str->data + str->size : NULL, space, format, again);
  va_end(again);
  size_t size = length > 0 ? (size_t)length : 0;
  bool fits = size < space && str->failed == KILN_STATUS_OK &&
              size <= str->limit && str->size <= str->limit - size;
  if (fits) {
    str->size += size;
    return;
  }
  if (space > 0) str->data[str->size] = 0;
  if (length < 0) {
    if (str->failed == KILN_STATUS_OK) str->failed = KILN_STATUS_INTERNAL;
    return;
  }
  if (size == 0 || !str_reserve(str, size)) return;
  vsnprintf(str->data + str->size, size + 1, format, args);
  str->size += size;
}

void kilni_base_str_addf(kilni_base_str_t* str, const char* format, ...) {
  va_list args;
  va_start(args, format);
  kilni_base_str_addv(str, format, args);
  va_end(args);
}

kiln_status_t kilni_base_str_status(const kilni_base_str_t* str) {
  if (str->failed == KILN_STATUS_LIMIT_EXCEEDED) {
    return KILNI_FAIL(LIMIT_EXCEEDED, "a text exceeded its limit of %zu bytes",
                      str->limit);
  }
  return kilni_base_status_bare(str->failed);
}

const char* kilni_base_str_cstr(const kilni_base_str_t* str) {
  return str->data ? str->data : "";
}

kiln_status_t kilni_base_str_take(kilni_base_str_t* str, char** out_text) {
  *out_text = NULL;
  kiln_status_t status = kilni_base_str_status(str);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_strdup(
        str->allocator, kilni_base_sv_make(str->data, str->size), out_text);
  }
  kilni_base_str_deinit(str);
  return status;
}

kiln_status_t kilni_base_strdup(kiln_allocator_t allocator,
                                kiln_string_view_t text, char** out_text) {
  *out_text = NULL;
  if (text.size == SIZE_MAX) {
    return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  }
  void* block;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(allocator, text.size + 1, &block));
  if (text.size > 0) memcpy(block, text.data, text.size);
  *out_text = block;
  return kiln_ok();
}

void kilni_base_strfree(kiln_allocator_t allocator, char* text) {
  if (text != NULL) kilni_base_free(allocator, text, strlen(text) + 1);
}

// ---- Names in messages ----

// How many bytes a sequence of UTF-8 that begins so has; 1 for any other byte.
static size_t sequence(const unsigned char* s) {
  size_t size = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 1;
  for (size_t i = 1; i < size; i++) {
    if ((s[i] & 0xc0) != 0x80) return 1;
  }
  return size;
}

// What moves a terminal's cursor, ends a line, or reorders text: of 2 and 3
// bytes, as UTF-8 has it.
static bool str_is_control(uint32_t c) {
  return (c >= 0x80 && c < 0xa0) || c == 0x61c ||
         (c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069);
}

static void show_one(const unsigned char* s, size_t size, char out[8]) {
  uint32_t c = s[0];
  if (size == 2) c = (uint32_t)(s[0] & 0x1f) << 6 | (s[1] & 0x3f);
  if (size == 3) {
    c = (uint32_t)(s[0] & 0x0f) << 12 | (uint32_t)(s[1] & 0x3f) << 6 |
        (s[2] & 0x3f);
  }
  if (size == 1 && (c < 0x20 || c >= 0x7f)) {
    (void)snprintf(out, 8, "\\x%02x", (unsigned)c);
  } else if (size > 1 && size < 4 && str_is_control(c)) {
    (void)snprintf(out, 8, "\\u%04x", (unsigned)(c & 0xffff));
  } else {
    memcpy(out, s, size);
    out[size] = 0;
  }
}

size_t kilni_base_show(const char* text, size_t capacity, char* out) {
  const unsigned char* s = (const unsigned char*)text;
  size_t used = 0;
  while (*s != 0) {
    char shown[8];
    size_t size = sequence(s);
    show_one(s, size, shown);
    size_t width = strlen(shown);
    if (used + width + 1 > capacity) break;
    memcpy(out + used, shown, width);
    used += width;
    s += size;
  }
  if (capacity > 0) out[used] = 0;
  return used;
}
