// SPDX-License-Identifier: Apache-2.0
//
// cli: private paths in a report that will be shown to others.
//
// Works on the finished text, so that no part of a report is missed.
#include <string.h>

#include "cli/doctor_report.h"

static bool is_path_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' ||
         (unsigned char)c >= 0x80;
}

// True if `word` is at `at` and ends a path component.
static bool stands_at(const char* text, size_t size, size_t at,
                      const char* word, size_t length) {
  return length <= size - at && memcmp(text + at, word, length) == 0 &&
         (at + length == size || !is_path_byte(text[at + length]));
}

void kilni_cli_shorten(FILE* out, const char* text, size_t size,
                       const char* home) {
  if (home == NULL) home = "";
  size_t length = strlen(home);
  while (length > 0 && home[length - 1] == '/') length--;
  const char* name = home + length;
  while (name > home && name[-1] != '/') name--;
  size_t name_length = length - (size_t)(name - home);
  // Common names identify no one.
  bool is_name = length > 0 && name_length > 1 &&
                 !(name_length == 4 && memcmp(name, "root", 4) == 0);
  for (size_t at = 0; at < size;) {
    bool begins =
        at == 0 || !(is_path_byte(text[at - 1]) || text[at - 1] == '/');
    if (length > 1 && begins && stands_at(text, size, at, home, length)) {
      (void)fputc('~', out);
      at += length;
    } else if (is_name && at > 0 && text[at - 1] == '/' &&
               stands_at(text, size, at, name, name_length)) {
      (void)fputs("USER", out);
      at += name_length;
    } else {
      (void)fputc(text[at++], out);
    }
  }
}
