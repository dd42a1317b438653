// SPDX-License-Identifier: Apache-2.0
//
// compile: the first error of a log.
#include <string.h>

#include "base/str.h"
#include "compile/link_text.h"
#include "kiln/api.h"

static bool link_text_is_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
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

static kiln_string_view_t link_text_trim(kiln_string_view_t line) {
  while (line.size > 0 && link_text_is_blank(line.data[0])) {
    line.data++;
    line.size--;
  }
  while (line.size > 0 && link_text_is_blank(line.data[line.size - 1])) {
    line.size--;
  }
  return line;
}

// What follows "error   : ", which repeats the status.
static kiln_string_view_t after_label(kiln_string_view_t line) {
  size_t at = 5;
  if (line.size < 6 || memcmp(line.data, "error", 5) != 0) return line;
  while (at < line.size && line.data[at] == ' ') at++;
  if (at == line.size || line.data[at] != ':') return line;
  return link_text_trim(
      kilni_base_sv_make(line.data + at + 1, line.size - at - 1));
}

kiln_string_view_t kilni_compile_link_first_error(const char* log) {
  kiln_string_view_t rest = kilni_base_sv(log);
  kiln_string_view_t line;
  kiln_string_view_t first = {NULL, 0};
  while (kilni_base_sv_split(&rest, '\n', &line)) {
    line = link_text_trim(line);
    if (line.size == 0) continue;
    if (first.size == 0) first = line;
    if (says_error(line)) return after_label(line);
  }
  return first;
}

// "error   : ..." or "nvlink error   : ...": a line that is an error itself,
// and does not only mention errors ("0 errors").
static bool reports_error(kiln_string_view_t line) {
  static const char* const kHeads[] = {"error",        "fatal",
                                       "nvlink error", "nvlink fatal",
                                       "ptxas error",  "ptxas fatal"};
  for (size_t i = 0; i < sizeof(kHeads) / sizeof(kHeads[0]); i++) {
    size_t at = strlen(kHeads[i]);
    if (!kilni_base_sv_starts_with(line, kHeads[i])) continue;
    while (at < line.size && line.data[at] == ' ') at++;
    if (at < line.size && line.data[at] == ':') return true;
  }
  return false;
}

kiln_string_view_t kilni_compile_link_reported_error(const char* log) {
  kiln_string_view_t rest = kilni_base_sv(log);
  kiln_string_view_t line;
  kiln_string_view_t none = {NULL, 0};
  while (kilni_base_sv_split(&rest, '\n', &line)) {
    line = link_text_trim(line);
    if (reports_error(line)) return line;
  }
  return none;
}

static bool says(kiln_string_view_t line, const char* words) {
  size_t size = strlen(words);
  for (size_t i = 0; i + size <= line.size; i++) {
    if (memcmp(line.data + i, words, size) == 0) return true;
  }
  return false;
}

const char* kilni_compile_link_fix_of(kiln_string_view_t line) {
  if (says(line, "ndefined reference") || says(line, "nresolved extern") ||
      says(line, "ndefined symbol")) {
    return "add the input that defines it: the object, archive, PTX or LTO-IR "
           "it is compiled into";
  }
  if (says(line, "Multiple definition") || says(line, "multiply defined")) {
    return "define it in one input only, and declare it `extern` in the "
           "others; or make it `static` or `inline`";
  }
  if (says(line, "uses too much shared data")) {
    return "declare the array `extern __shared__` and give its size to the "
           "launch, which may take more than the 48 KiB of static arrays";
  }
  return NULL;
}
