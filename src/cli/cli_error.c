// SPDX-License-Identifier: Apache-2.0
//
// cli: one error of the command.
#include "cli/cli_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// The functions themselves, not their declarations for an analyzer.
#undef kilni_cli_fail
#undef kilni_cli_tell

// The length of the UTF-8 sequence at `s`, 0 if it is invalid.
static size_t error_utf8_length(const unsigned char* s) {
  size_t n = s[0] < 0x80                   ? 1
             : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
             : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
             : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                           : 0;
  for (size_t i = 1; i < n; i++) {
    if ((s[i] & 0xc0) != 0x80) return 0;
  }
  if (n == 3 && s[0] == 0xe0 && s[1] < 0xa0) return 0;
  if (n == 3 && s[0] == 0xed && s[1] > 0x9f) return 0;  // surrogates
  if (n == 4 && s[0] == 0xf0 && s[1] < 0x90) return 0;
  if (n == 4 && s[0] == 0xf4 && s[1] > 0x8f) return 0;
  return n;
}

// The code point of the sequence of `n` bytes at `s`.
static uint32_t code_point(const unsigned char* s, size_t n) {
  uint32_t value = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));
  for (size_t i = 1; i < n; i++) value = value << 6 | (s[i] & 0x3f);
  return value;
}

// What moves a terminal's cursor, changes its state, or makes it show text out
// of order: C0, DEL, C1, the ends of lines and paragraphs of Unicode, marks,
// overrides and isolates of direction.
static bool error_is_control(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c ||
         (c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069);
}

size_t kilni_cli_show_character(const char* text, char out[8]) {
  const unsigned char* s = (const unsigned char*)text;
  if (*s >= 0x20 && *s < 0x7f) {  // as nearly all are
    out[0] = text[0];
    out[1] = 0;
    return 1;
  }
  size_t n = error_utf8_length(s);
  uint32_t c = n == 0 ? 0 : code_point(s, n);
  if (*s == '\t') {
    memcpy(out, "\\t", 3);
  } else if (n == 0 || (n == 1 && error_is_control(c))) {
    (void)snprintf(out, 8, "\\x%02x", *s);
  } else if (error_is_control(c)) {
    (void)snprintf(out, 8, "\\u%04x", (unsigned)(c & 0xffff));
  } else {
    memcpy(out, s, n);
    out[n] = 0;
  }
  return n == 0 ? 1 : n;
}

void kilni_cli_copy_text(char* out, size_t capacity, const char* text) {
  size_t used = 0;
  while (*text != 0) {
    char shown[8] = "\n";
    size_t size = *text == '\n' ? 1 : kilni_cli_show_character(text, shown);
    size_t width = strlen(shown);
    if (used + width + 1 > capacity) break;
    memcpy(out + used, shown, width);
    used += width;
    text += size;
  }
  out[used] = 0;
}

bool kilni_cli_fail(kilni_cli_error_t* error, kiln_status_code_t code,
                    const char* fix, const char* format, ...) {
  char text[sizeof(error->message)];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  memset(error, 0, sizeof(*error));
  error->code = code;
  kilni_cli_copy_text(error->message, sizeof(error->message), text);
  if (fix != NULL) kilni_cli_copy_text(error->fix, sizeof(error->fix), fix);
  return false;
}

bool kilni_cli_tell(kilni_cli_error_t* error, kiln_status_code_t code) {
  memset(error, 0, sizeof(*error));
  error->code = code;
  error->is_told = true;
  return false;
}

void kilni_cli_error_fix(kilni_cli_error_t* error, const char* format, ...) {
  char text[sizeof(error->fix)];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  kilni_cli_copy_text(error->fix, sizeof(error->fix), text);
}

void kilni_cli_error_name_arch(kilni_cli_error_t* error) {
  if (strstr(error->fix, "`arch`") == NULL) return;
  kilni_cli_error_fix(error,
                      "add --arch with that of the GPU, which `kiln doctor` "
                      "shows, such as --arch sm_90");
}

void kilni_cli_error_prefix(kilni_cli_error_t* error, const char* format, ...) {
  char text[sizeof(error->message)];
  char prefix[512];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(prefix, sizeof(prefix), format, args);
  va_end(args);
  (void)snprintf(text, sizeof(text), "%s: %.480s", prefix, error->message);
  kilni_cli_copy_text(error->message, sizeof(error->message), text);
}

// What kiln_status_format writes is the message, the annotations, the native
// part and the fix; the parts with a field of their own are cut off.
static void error_keep_trail(kilni_cli_error_t* error, kiln_status_t status) {
  char text[sizeof(error->trail)];
  kiln_status_format(status, sizeof(text), text, NULL);
  // A name in the message may contain a newline.
  const char* message = kiln_status_message(status);
  char* said = strstr(text, message);
  char* line = strchr(said != NULL ? said + strlen(message) : text, '\n');
  if (line == NULL) return;
  char* fix = strstr(line, "\nFix: ");
  if (fix == NULL) fix = strstr(line, "\n  Fix: ");
  if (fix != NULL) *fix = 0;
  if (*line == 0) return;
  kilni_cli_copy_text(error->trail, sizeof(error->trail), line + 1);
}

// "FILE: line 3, column 7: TEXT" becomes "FILE:3:7: TEXT", the form that
// compilers write and editors read.
static void shorten_place(char* message) {
  static const char kLine[] = ": line ", kColumn[] = ", column ";
  static const char kDigits[] = "0123456789";
  char* line = strstr(message, kLine);
  if (line == NULL) return;
  char* number = line + sizeof(kLine) - 1;
  size_t digits = strspn(number, kDigits);
  char* between = number + digits;
  if (digits == 0 || strncmp(between, kColumn, sizeof(kColumn) - 1) != 0) {
    return;
  }
  char* column = between + sizeof(kColumn) - 1;
  size_t more = strspn(column, kDigits);
  if (more == 0 || column[more] != ':') return;
  line[0] = ':';
  memmove(line + 1, number, digits);
  line[1 + digits] = ':';
  memmove(line + 2 + digits, column, strlen(column) + 1);
}

bool kilni_cli_check(kilni_cli_error_t* error, kiln_status_t status) {
  if (kiln_status_is_ok(status)) return true;
  memset(error, 0, sizeof(*error));
  error->code = kiln_status_code(status);
  kilni_cli_copy_text(error->message, sizeof(error->message),
                      kiln_status_message(status));
  shorten_place(error->message);
  const char* fix = kiln_status_fix(status);
  if (fix != NULL) kilni_cli_copy_text(error->fix, sizeof(error->fix), fix);
  kiln_status_native_t native;
  if (kiln_status_native(status, &native)) {
    kilni_cli_copy_text(error->native_domain, sizeof(error->native_domain),
                        native.domain);
    kilni_cli_copy_text(error->native_name, sizeof(error->native_name),
                        native.name);
    error->native_number = native.number;
  }
  error_keep_trail(error, status);
  kiln_status_free(status);
  return false;
}

bool kilni_cli_check_launch(kilni_cli_error_t* error, kiln_status_t status) {
  if (kilni_cli_check(error, status)) return true;
  if (error->code == KILN_STATUS_OUT_OF_RANGE ||
      error->code == KILN_STATUS_LIMIT_EXCEEDED) {
    error->code = KILN_STATUS_INVALID_ARGUMENT;
  }
  return false;
}
