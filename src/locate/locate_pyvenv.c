// SPDX-License-Identifier: Apache-2.0
//
// locate: reader of pyvenv.cfg, the mark of a Python virtual environment.
#include "locate/locate_pyvenv.h"

#include <string.h>

#include "base/str.h"

enum { VERSION_MAX_DIGITS = 4 };

static bool pyvenv_is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

static kiln_string_view_t pyvenv_trim(kiln_string_view_t text) {
  while (text.size > 0 && pyvenv_is_blank(text.data[0])) {
    text = kilni_base_sv_make(text.data + 1, text.size - 1);
  }
  while (text.size > 0 && pyvenv_is_blank(text.data[text.size - 1])) {
    text.size--;
  }
  return text;
}

static char pyvenv_lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool equals(kiln_string_view_t text, const char* word) {
  if (text.size != strlen(word)) return false;
  for (size_t i = 0; i < text.size; i++) {
    if (pyvenv_lower(text.data[i]) != word[i]) return false;
  }
  return true;
}

static size_t digits_at(kiln_string_view_t text, size_t at) {
  size_t end = at;
  while (end < text.size && text.data[end] >= '0' && text.data[end] <= '9') {
    end++;
  }
  return end - at;
}

// "3.11" of "3.11.7.final.0"; empty if it does not start so.
static kiln_string_view_t major_minor(kiln_string_view_t text) {
  kiln_string_view_t none = {NULL, 0};
  size_t major = digits_at(text, 0);
  if (major == 0 || major > VERSION_MAX_DIGITS || major >= text.size ||
      text.data[major] != '.') {
    return none;
  }
  size_t minor = digits_at(text, major + 1);
  if (minor == 0 || minor > VERSION_MAX_DIGITS) return none;
  return kilni_base_sv_make(text.data, major + 1 + minor);
}

void kilni_locate_pyvenv_parse(kiln_string_view_t text,
                               kilni_locate_pyvenv_t* out_config) {
  memset(out_config, 0, sizeof(*out_config));
  kiln_string_view_t line;
  while (kilni_base_sv_split(&text, '\n', &line)) {
    const char* sign = line.size > 0 ? memchr(line.data, '=', line.size) : NULL;
    if (sign == NULL) continue;
    size_t length = (size_t)(sign - line.data);
    kiln_string_view_t key = pyvenv_trim(kilni_base_sv_make(line.data, length));
    kiln_string_view_t value =
        pyvenv_trim(kilni_base_sv_make(sign + 1, line.size - length - 1));
    if (equals(key, "home")) out_config->home = value;
    if (equals(key, "include-system-site-packages")) {
      out_config->system_sites = equals(value, "true");
    }
    if (equals(key, "version") || equals(key, "version_info")) {
      kiln_string_view_t version = major_minor(value);
      if (version.size > 0) out_config->version = version;
    }
  }
}
