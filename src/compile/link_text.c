// SPDX-License-Identifier: Apache-2.0
//
// compile: what an input says of itself, and what a log says first.
#include <string.h>

#include "compile/link_text.h"

static bool is_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// Where a text goes on behind blanks and comments.
static size_t behind_comments(const char* text, size_t size) {
  size_t at = 0;
  while (at < size) {
    bool pair = text[at] == '/' && at + 1 < size;
    if (is_blank(text[at])) {
      at++;
    } else if (pair && text[at + 1] == '/') {
      while (at < size && text[at] != '\n') at++;
    } else if (pair && text[at + 1] == '*') {
      at += 2;
      while (at + 1 < size && !(text[at] == '*' && text[at + 1] == '/')) at++;
      at = at + 2 < size ? at + 2 : size;
    } else {
      return at;
    }
  }
  return size;
}

// A number of at most three digits; false if there is none.
static bool read_number(const char* text, size_t size, size_t* inout_at,
                        uint32_t* out_number) {
  size_t at = *inout_at;
  uint32_t number = 0;
  while (at < size && at < *inout_at + 3 && text[at] >= '0' &&
         text[at] <= '9') {
    number = number * 10 + (uint32_t)(text[at++] - '0');
  }
  bool any = at != *inout_at;
  *inout_at = at;
  *out_number = number;
  return any;
}

uint32_t kilni_link_ptx_isa(kiln_bytes_view_t bytes) {
  static const char word[] = ".version";
  const char* text = (const char*)bytes.data;
  if (text == NULL) return 0;
  size_t at = behind_comments(text, bytes.size);
  size_t length = sizeof(word) - 1;
  if (bytes.size - at <= length || memcmp(text + at, word, length) != 0 ||
      !is_blank(text[at + length])) {
    return 0;
  }
  at += length;
  while (at < bytes.size && is_blank(text[at])) at++;
  uint32_t major = 0;
  uint32_t minor = 0;
  if (!read_number(text, bytes.size, &at, &major) || at == bytes.size ||
      text[at++] != '.' || !read_number(text, bytes.size, &at, &minor) ||
      minor > 9) {
    return 0;
  }
  return major * 10 + minor;
}

// "error", "ERROR", "Error" or "fatal" as a word of its own.
static bool says_error(kiln_string_view_t line) {
  static const char* const kWords[] = {"error", "ERROR", "Error", "fatal"};
  for (size_t i = 0; i + 5 <= line.size; i++) {
    char before = i == 0 ? ' ' : line.data[i - 1];
    bool inside = (before >= 'a' && before <= 'z') ||
                  (before >= 'A' && before <= 'Z') || before == '_';
    for (size_t k = 0; k < 4 && !inside; k++) {
      if (memcmp(line.data + i, kWords[k], 5) == 0) return true;
    }
  }
  return false;
}

static kiln_string_view_t trim(kiln_string_view_t line) {
  while (line.size > 0 && is_blank(line.data[0])) {
    line.data++;
    line.size--;
  }
  while (line.size > 0 && is_blank(line.data[line.size - 1])) line.size--;
  return line;
}

// What stands behind "error   : ", which repeats what the status says.
static kiln_string_view_t behind_label(kiln_string_view_t line) {
  size_t at = 5;
  if (line.size < 6 || memcmp(line.data, "error", 5) != 0) return line;
  while (at < line.size && line.data[at] == ' ') at++;
  if (at == line.size || line.data[at] != ':') return line;
  return trim(kilni_sv_make(line.data + at + 1, line.size - at - 1));
}

kiln_string_view_t kilni_link_first_error(const char* log) {
  kiln_string_view_t rest = kilni_sv(log);
  kiln_string_view_t line;
  kiln_string_view_t first = {NULL, 0};
  while (kilni_sv_split(&rest, '\n', &line)) {
    line = trim(line);
    if (line.size == 0) continue;
    if (first.size == 0) first = line;
    if (says_error(line)) return behind_label(line);
  }
  return first;
}
