// SPDX-License-Identifier: Apache-2.0
//
// soft: the text of a kernel's printf.
#include "soft/engine/soft_print.h"

#include <stdio.h>
#include <string.h>

enum { SPEC_BYTES = 48, FIELD_MAX = 2048 };

// The state of one call.
typedef struct printer_t {
  kilni_soft_read_fn_t read;
  void* user;
  uint64_t arguments;  // of the next argument
  int32_t taken;
  char* buffer;
  size_t capacity;
  size_t size;
  uint64_t bad_address;
  bool bad;
  bool unknown;  // met an invalid conversion
  bool as_text;  // print that verbatim
} printer_t;

// One conversion, taken apart.
typedef struct spec_t {
  char flags[8];
  int flag_count;
  int width;      // -1: none
  int precision;  // -1: none
  int longs;      // 0, 1 (l, z, j, t), 2 (ll, q, L), -1 (h), -2 (hh)
  char type;
} spec_t;

static void print_put(printer_t* p, const char* text, size_t size) {
  size_t space = p->capacity - p->size;
  if (size > space) size = space;
  memcpy(p->buffer + p->size, text, size);
  p->size += size;
}

static bool read_at(printer_t* p, uint64_t address, void* out, size_t bytes) {
  if (p->read(address, out, bytes, p->user)) return true;
  p->bad = true;
  p->bad_address = address;
  return false;
}

// Takes the next argument of `bytes` (4 or 8), zero when it cannot be read.
static uint64_t print_take(printer_t* p, size_t bytes) {
  uint64_t value = 0;
  p->arguments = (p->arguments + bytes - 1) & ~(uint64_t)(bytes - 1);
  if (p->bad || !read_at(p, p->arguments, &value, bytes)) return 0;
  p->arguments += bytes;
  p->taken++;
  return value;
}

// Reads a NUL-terminated string, cut to `capacity` - 1 bytes.
static bool read_string(printer_t* p, uint64_t address, char* out,
                        size_t capacity) {
  for (size_t i = 0; i + 1 < capacity; i++) {
    if (!read_at(p, address + i, &out[i], 1)) return false;
    if (out[i] == 0) return true;
  }
  out[capacity - 1] = 0;
  return true;
}

static bool print_is_digit(char c) {
  return c >= '0' && c <= '9';
}

// A number of the format, or the argument of `*`.
static int print_read_number(printer_t* p, const char** text) {
  if (**text == '*') {
    (*text)++;
    return (int)(int32_t)(uint32_t)print_take(p, 4);
  }
  int value = 0;
  for (; print_is_digit(**text); (*text)++) {
    if (value < FIELD_MAX) value = value * 10 + (**text - '0');
  }
  return value;
}

static int clamp_field(int value) {
  return value > FIELD_MAX ? FIELD_MAX : value;
}

// What has the size of a pointer or more is 8 bytes wide on every GPU.
static int read_length(const char** text) {
  int length = 0;
  if (**text != 0 && strchr("zjt", **text) != NULL) {
    (*text)++;
    return 1;
  }
  if (**text == 'q' || **text == 'L') {
    (*text)++;
    return 2;
  }
  while (**text == 'l' && length < 2) {
    length++;
    (*text)++;
  }
  while (length <= 0 && **text == 'h' && length > -2) {
    length--;
    (*text)++;
  }
  return length;
}

static void read_spec(printer_t* p, const char** text, spec_t* spec) {
  memset(spec, 0, sizeof(*spec));
  spec->precision = -1;
  spec->width = -1;
  for (; **text != 0 && strchr("#+-0 '", **text) != NULL; (*text)++) {
    if (**text == '\'') continue;  // groups digits, not in the C locale
    bool seen = memchr(spec->flags, **text, (size_t)spec->flag_count) != NULL;
    if (!seen) spec->flags[spec->flag_count++] = **text;
  }
  if (**text == '*' || print_is_digit(**text)) {
    spec->width = print_read_number(p, text);
    if (spec->width < 0) {
      spec->width = -spec->width;
      if (spec->flag_count < 6) spec->flags[spec->flag_count++] = '-';
    }
    spec->width = clamp_field(spec->width);
  }
  if (**text == '.') {
    (*text)++;
    spec->precision = clamp_field(print_read_number(p, text));
  }
  spec->longs = read_length(text);
  spec->type = **text;
  if (**text != 0) (*text)++;
}

// The format string for the C library: our own letters, so that nothing of
// the kernel's reaches it unread.
static void build_format(const spec_t* spec, const char* length, char type,
                         char out[SPEC_BYTES]) {
  size_t at = 0;
  out[at++] = '%';
  memcpy(out + at, spec->flags, (size_t)spec->flag_count);
  at += (size_t)spec->flag_count;
  if (spec->width >= 0) {
    at += (size_t)snprintf(out + at, SPEC_BYTES - at, "%d", spec->width);
  }
  if (spec->precision >= 0) {
    at += (size_t)snprintf(out + at, SPEC_BYTES - at, ".%d", spec->precision);
  }
  snprintf(out + at, SPEC_BYTES - at, "%s%c", length, type);
}

static void put_field(printer_t* p, const char* field, int length) {
  if (length > 0) print_put(p, field, (size_t)length);
}

static void put_integer(printer_t* p, const spec_t* spec) {
  char format[SPEC_BYTES], field[2 * FIELD_MAX];
  uint64_t raw = print_take(p, spec->longs > 0 ? 8 : 4);
  bool is_signed = spec->type == 'd' || spec->type == 'i';
  build_format(spec, "ll", spec->type, format);
  if (spec->longs == -1) {
    raw = is_signed ? (uint64_t)(int16_t)raw : (uint16_t)raw;
  }
  if (spec->longs == -2) raw = is_signed ? (uint64_t)(int8_t)raw : (uint8_t)raw;
  if (spec->longs == 0) {
    raw = is_signed ? (uint64_t)(int32_t)raw : (uint32_t)raw;
  }
  put_field(p, field, snprintf(field, sizeof(field), format, raw));
}

static void put_double(printer_t* p, const spec_t* spec) {
  char format[SPEC_BYTES], field[2 * FIELD_MAX + 400];
  uint64_t raw = print_take(p, 8);
  double value;
  memcpy(&value, &raw, sizeof(value));
  build_format(spec, "", spec->type, format);
  put_field(p, field, snprintf(field, sizeof(field), format, value));
}

static void put_string(printer_t* p, const spec_t* spec) {
  char format[SPEC_BYTES], text[KILNI_SOFT_PRINT_STRING_BYTES];
  char field[KILNI_SOFT_PRINT_STRING_BYTES + FIELD_MAX];
  uint64_t address = print_take(p, 8);
  if (p->bad) return;
  if (address == 0) {
    bool fits = spec->precision < 0 || spec->precision >= 6;
    snprintf(text, sizeof(text), "%s", fits ? "(null)" : "");
  } else if (!read_string(p, address, text, sizeof(text))) {
    return;
  }
  build_format(spec, "", 's', format);
  put_field(p, field, snprintf(field, sizeof(field), format, text));
}

static void put_pointer(printer_t* p, const spec_t* spec) {
  char format[SPEC_BYTES], field[2 * FIELD_MAX];
  uint64_t raw = print_take(p, 8);
  build_format(spec, "", 'p', format);
  put_field(p, field,
            snprintf(field, sizeof(field), format, (void*)(uintptr_t)raw));
}

static void print_put_char(printer_t* p, const spec_t* spec) {
  char format[SPEC_BYTES], field[2 * FIELD_MAX];
  int value = (int)(unsigned char)print_take(p, 4);
  build_format(spec, "", 'c', format);
  put_field(p, field, snprintf(field, sizeof(field), format, value));
}

// An invalid conversion takes no argument, and all but its size is printed, as
// on a GPU.
static void put_unknown(printer_t* p, const spec_t* spec) {
  char text[SPEC_BYTES];
  build_format(spec, "", spec->type, text);
  print_put(p, text, strlen(text));
  p->unknown = true;
}

static void put_conversion(printer_t* p, const spec_t* spec) {
  if (spec->type == '%') {
    print_put(p, "%", 1);
  } else if (spec->type == 'c') {
    print_put_char(p, spec);
  } else if (spec->type == 's') {
    put_string(p, spec);
  } else if (spec->type == 'p') {
    put_pointer(p, spec);
  } else if (spec->type != 0 && strchr("diouxX", spec->type) != NULL) {
    put_integer(p, spec);
  } else if (spec->type != 0 && strchr("eEfFgGaA", spec->type) != NULL) {
    put_double(p, spec);
  } else {
    put_unknown(p, spec);
  }
}

static void put_format(printer_t* p, const char* text) {
  while (*text != 0 && !p->bad) {
    const char* start = text;
    if (*text++ != '%') {
      print_put(p, start, 1);
      continue;
    }
    spec_t spec;
    read_spec(p, &text, &spec);
    if (p->bad) return;
    if (p->as_text && spec.type != '%') {
      print_put(p, start, (size_t)(text - start));
    } else {
      put_conversion(p, &spec);
    }
  }
}

kilni_soft_print_result_t kilni_soft_print_format(
    kilni_soft_read_fn_t read, void* read_user, uint64_t format,
    uint64_t arguments, char* buffer, size_t capacity,
    kilni_soft_print_t* out_print) {
  printer_t p = {.read = read,
                 .user = read_user,
                 .arguments = arguments,
                 .buffer = buffer,
                 .capacity = capacity};
  char text[KILNI_SOFT_PRINT_FORMAT_BYTES];
  memset(out_print, 0, sizeof(*out_print));
  if (format == 0) {
    out_print->returned = -1;
    return KILNI_SOFT_PRINT_OK;
  }
  if (read_string(&p, format, text, sizeof(text))) {
    put_format(&p, text);
    // A GPU that is given no argument prints the text verbatim.
    if (p.unknown && p.taken == 0) {
      p.as_text = true;
      p.size = 0;
      put_format(&p, text);
    }
  }
  out_print->size = p.size;
  out_print->returned = p.taken;
  out_print->address = p.bad_address;
  return p.bad ? KILNI_SOFT_PRINT_BAD_ADDRESS : KILNI_SOFT_PRINT_OK;
}
