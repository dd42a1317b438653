// SPDX-License-Identifier: Apache-2.0
//
// base: the error value.
//
// A payload is one block that grows as lines are added: a header followed by
// lines. A line is one byte for its kind and a NUL-terminated string. Lines are
// addressed by offset, so that growth needs no fix-up and freeing is one call.
// Annotations are found by walking all lines.
#include "kiln/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/status_make.h"

// The functions themselves, not their declarations for an analyzer.
#undef kilni_base_status_bare
#undef kilni_base_status_make
#undef kilni_base_status_with_fix
#undef kilni_base_status_with_native
#undef kilni_base_status_annotate

enum {
  CODE_BITS = 5,
  CODE_MASK = (1 << CODE_BITS) - 1,
  PAYLOAD_ALIGN = 1 << CODE_BITS,  // leaves the low bits to the code
  LINE_MAX_BYTES = 1024,           // a longer line is cut
  PAYLOAD_MAX_BYTES = 1 << 20      // beyond it, lines are dropped
};

_Static_assert(KILN_STATUS_CODE_COUNT <= CODE_MASK + 1,
               "every code fits into the low bits");

enum { KIND_TEXT = 't', KIND_ANNOTATION = 'a' };

struct kiln_status_payload_t {
  kiln_allocator_t allocator;
  uint32_t capacity;  // bytes of the whole block
  uint32_t used;      // bytes in use
  uint32_t message;   // offsets of strings in the block; 0 is absent
  uint32_t fix;
  uint32_t domain;
  uint32_t native_name;
  int64_t native_number;
  const char* module;
  const char* file;
  int line;
};

static struct kiln_status_payload_t* payload_of(kiln_status_t status) {
  return (struct kiln_status_payload_t*)((uintptr_t)status &
                                         ~(uintptr_t)CODE_MASK);
}

static kiln_status_t status_from(struct kiln_status_payload_t* payload,
                                 kiln_status_code_t code) {
  return (kiln_status_t)((uintptr_t)payload | (uintptr_t)code);
}

kiln_status_t kilni_base_status_bare(kiln_status_code_t code) {
  return status_from(NULL, code);
}

kiln_status_code_t kiln_status_code(kiln_status_t status) {
  return (kiln_status_code_t)((uintptr_t)status & CODE_MASK);
}

typedef struct code_row_t {
  const char* name;
  const char* text;
  int exit_code;
} code_row_t;

#define CODE_ROW(name, value, text, exit_code) \
  [value] = {#name, text, exit_code},
static const code_row_t kCodes[] = {KILN_STATUS_CODES(CODE_ROW)};
#undef CODE_ROW

static const code_row_t* code_row(kiln_status_code_t code) {
  static const code_row_t unknown = {"UNKNOWN", "unknown error", 1};
  size_t index = (size_t)code;
  return index < sizeof(kCodes) / sizeof(kCodes[0]) ? &kCodes[index] : &unknown;
}

const char* kiln_status_code_name(kiln_status_code_t code) {
  return code_row(code)->name;
}

const char* kiln_status_code_text(kiln_status_code_t code) {
  return code_row(code)->text;
}

int kiln_status_code_exit(kiln_status_code_t code) {
  return code_row(code)->exit_code;
}

// Makes space for `size` more bytes. The block may move. False without memory.
static bool payload_reserve(struct kiln_status_payload_t** payload,
                            size_t size) {
  struct kiln_status_payload_t* old = *payload;
  if (old->used + size > PAYLOAD_MAX_BYTES) return false;
  if (old->capacity - old->used >= size) return true;
  size_t capacity = (size_t)old->capacity * 2;
  while (capacity - old->used < size) capacity *= 2;
  kiln_allocator_t allocator = old->allocator;
  void* block =
      allocator.fn(old, old->capacity, capacity, PAYLOAD_ALIGN, allocator.user);
  if (block == NULL) return false;
  *payload = block;
  (*payload)->capacity = (uint32_t)capacity;
  return true;
}

// Appends a line and returns the offset of its string; 0 without memory.
static uint32_t payload_append(struct kiln_status_payload_t** payload,
                               char kind, const char* format, va_list args) {
  char line[LINE_MAX_BYTES];
  int length = vsnprintf(line, sizeof(line), format, args);
  if (length < 0) return 0;
  size_t size =
      (size_t)length < sizeof(line) ? (size_t)length + 1 : sizeof(line);
  if (!payload_reserve(payload, 1 + size)) return 0;
  uint32_t offset = (*payload)->used + 1;
  char* to = (char*)*payload + offset;
  to[-1] = kind;
  memcpy(to, line, size);
  (*payload)->used += (uint32_t)(1 + size);
  return offset;
}

static uint32_t payload_appendf(struct kiln_status_payload_t** payload,
                                char kind, const char* format, ...) {
  va_list args;
  va_start(args, format);
  uint32_t offset = payload_append(payload, kind, format, args);
  va_end(args);
  return offset;
}

static const char* payload_string(const struct kiln_status_payload_t* payload,
                                  uint32_t offset) {
  return offset ? (const char*)payload + offset : NULL;
}

kiln_status_t kilni_base_status_make_with(kiln_allocator_t allocator,
                                          kiln_status_code_t code,
                                          const char* module, const char* file,
                                          int line, const char* format,
                                          va_list args) {
  const size_t capacity = sizeof(struct kiln_status_payload_t) + 256;
  struct kiln_status_payload_t* payload =
      allocator.fn(NULL, 0, capacity, PAYLOAD_ALIGN, allocator.user);
  if (payload == NULL) return kilni_base_status_bare(code);
  memset(payload, 0, sizeof(*payload));
  payload->allocator = allocator;
  payload->capacity = (uint32_t)capacity;
  payload->used = sizeof(*payload);
  payload->module = module;
  payload->file = file;
  payload->line = line;
  uint32_t message = payload_append(&payload, KIND_TEXT, format, args);
  payload->message = message;
  return status_from(payload, code);
}

kiln_status_t kilni_base_status_make(kiln_status_code_t code,
                                     const char* module, const char* file,
                                     int line, const char* format, ...) {
  va_list args;
  va_start(args, format);
  kiln_status_t status = kilni_base_status_make_with(
      kiln_allocator_libc(), code, module, file, line, format, args);
  va_end(args);
  return status;
}

kiln_status_t kilni_base_status_annotate(kiln_status_t status,
                                         const char* module, const char* format,
                                         ...) {
  struct kiln_status_payload_t* payload = payload_of(status);
  if (payload == NULL) return status;
  char text[LINE_MAX_BYTES];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  if (length >= 0) {
    payload_appendf(&payload, KIND_ANNOTATION, "%s: %s", module, text);
  }
  return status_from(payload, kiln_status_code(status));
}

kiln_status_t kilni_base_status_with_fix(kiln_status_t status,
                                         const char* format, ...) {
  struct kiln_status_payload_t* payload = payload_of(status);
  if (payload == NULL) return status;
  va_list args;
  va_start(args, format);
  uint32_t offset = payload_append(&payload, KIND_TEXT, format, args);
  va_end(args);
  if (offset != 0) payload->fix = offset;
  return status_from(payload, kiln_status_code(status));
}

kiln_status_t kilni_base_status_with_native(kiln_status_t status,
                                            const char* domain, int64_t number,
                                            const char* name) {
  struct kiln_status_payload_t* payload = payload_of(status);
  if (payload == NULL) return status;
  uint32_t domain_offset = payload_appendf(&payload, KIND_TEXT, "%s", domain);
  uint32_t name_offset =
      payload_appendf(&payload, KIND_TEXT, "%s", name ? name : "(no name)");
  if (domain_offset != 0 && name_offset != 0) {
    payload->domain = domain_offset;
    payload->native_name = name_offset;
    payload->native_number = number;
  }
  return status_from(payload, kiln_status_code(status));
}

kiln_status_t kilni_base_status_join(kiln_status_t first,
                                     kiln_status_t second) {
  if (kiln_status_is_ok(first)) return second;
  if (kiln_status_is_ok(second)) return first;
  first = KILNI_ANNOTATE(first, "and then: %s", kiln_status_message(second));
  kiln_status_free(second);
  return first;
}

const char* kiln_status_message(kiln_status_t status) {
  const struct kiln_status_payload_t* payload = payload_of(status);
  const char* message =
      payload ? payload_string(payload, payload->message) : NULL;
  return message ? message : kiln_status_code_text(kiln_status_code(status));
}

const char* kiln_status_fix(kiln_status_t status) {
  const struct kiln_status_payload_t* payload = payload_of(status);
  return payload ? payload_string(payload, payload->fix) : NULL;
}

const char* kiln_status_origin(kiln_status_t status) {
  const struct kiln_status_payload_t* payload = payload_of(status);
  return payload ? payload->module : NULL;
}

const char* kiln_status_source(kiln_status_t status, int* out_line) {
  const struct kiln_status_payload_t* payload = payload_of(status);
  if (out_line != NULL) *out_line = payload ? payload->line : 0;
  return payload ? payload->file : NULL;
}

bool kiln_status_native(kiln_status_t status,
                        kiln_status_native_t* out_native) {
  memset(out_native, 0, sizeof(*out_native));
  const struct kiln_status_payload_t* payload = payload_of(status);
  if (payload == NULL || payload->domain == 0) return false;
  out_native->domain = payload_string(payload, payload->domain);
  out_native->number = payload->native_number;
  out_native->name = payload_string(payload, payload->native_name);
  return true;
}

// A bounded writer that goes on counting when it is full.
typedef struct text_t {
  char* buffer;
  size_t capacity;
  size_t length;
} text_t;

static void text_add(text_t* text, const char* format, ...) {
  size_t space =
      text->length < text->capacity ? text->capacity - text->length : 0;
  va_list args;
  va_start(args, format);
  int length = vsnprintf(space ? text->buffer + text->length : NULL, space,
                         format, args);
  va_end(args);
  if (length > 0) text->length += (size_t)length;
}

static void format_annotations(text_t* text,
                               const struct kiln_status_payload_t* payload) {
  const char* at = (const char*)payload + sizeof(*payload);
  const char* end = (const char*)payload + payload->used;
  while (at < end) {
    const char* line = at + 1;
    if (*at == KIND_ANNOTATION) text_add(text, "\n  %s", line);
    at = line + strlen(line) + 1;
  }
}

void kiln_status_format(kiln_status_t status, size_t capacity, char* buffer,
                        size_t* out_length) {
  text_t text = {buffer, capacity, 0};
  const struct kiln_status_payload_t* payload = payload_of(status);
  if (capacity > 0) buffer[0] = 0;
  if (payload != NULL) text_add(&text, "%s: ", payload->module);
  text_add(&text, "%s", kiln_status_message(status));
  if (payload != NULL) {
    format_annotations(&text, payload);
    if (payload->domain != 0) {
      text_add(&text, "\n  %s %lld %s",
               payload_string(payload, payload->domain),
               (long long)payload->native_number,
               payload_string(payload, payload->native_name));
    }
    if (payload->fix != 0) {
      text_add(&text, "\nFix: %s", payload_string(payload, payload->fix));
    }
  }
  if (out_length != NULL) *out_length = text.length;
}

kiln_status_t kiln_status_clone(kiln_status_t status) {
  const struct kiln_status_payload_t* payload = payload_of(status);
  if (payload == NULL) return status;
  kiln_allocator_t libc = kiln_allocator_libc();
  struct kiln_status_payload_t* copy =
      libc.fn(NULL, 0, payload->capacity, PAYLOAD_ALIGN, libc.user);
  if (copy == NULL) return kilni_base_status_bare(kiln_status_code(status));
  memcpy(copy, payload, payload->used);
  copy->allocator = libc;
  return status_from(copy, kiln_status_code(status));
}

void kiln_status_free(kiln_status_t status) {
  struct kiln_status_payload_t* payload = payload_of(status);
  if (payload == NULL) return;
  kiln_allocator_t allocator = payload->allocator;
  allocator.fn(payload, payload->capacity, 0, PAYLOAD_ALIGN, allocator.user);
}
