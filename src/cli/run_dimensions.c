// SPDX-License-Identifier: Apache-2.0
//
// cli: in how many dimensions a kernel counts. Pure.
//
// Only words count here, and the braces about them; what reads PTX whole is the
// room image.
#include "cli/run_dimensions.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

typedef struct scan_t {
  const char* at;
  const char* end;
  const char* word;
  size_t size;  // of the word; a sign by itself is a word of one
} scan_t;

static bool is_word(char c) {
  return isalnum((unsigned char)c) || (c != 0 && strchr("%._$", c) != NULL);
}

static bool follows(const scan_t* s, const char* text) {
  size_t size = strlen(text);
  return (size_t)(s->end - s->at) >= size && memcmp(s->at, text, size) == 0;
}

// To where `text` has ended, or to the end of all.
static void skip_past(scan_t* s, const char* text) {
  while (s->at < s->end && !follows(s, text)) s->at++;
  if (s->at < s->end) s->at += strlen(text);
}

// The next word that is no comment and no string; false at the end.
static bool next(scan_t* s) {
  while (s->at < s->end) {
    if (follows(s, "//")) {
      skip_past(s, "\n");
    } else if (follows(s, "/*")) {
      s->at += 2;
      skip_past(s, "*/");
    } else if (*s->at == '"') {
      s->at++;
      skip_past(s, "\"");
    } else if (isspace((unsigned char)*s->at)) {
      s->at++;
    } else {
      s->word = s->at;
      do {
        s->at++;
      } while (is_word(*s->word) && s->at < s->end && is_word(*s->at));
      s->size = (size_t)(s->at - s->word);
      return true;
    }
  }
  return false;
}

static bool is(const scan_t* s, const char* text) {
  return s->size == strlen(text) && memcmp(s->word, text, s->size) == 0;
}

static uint32_t dimension(const scan_t* s) {
  if (is(s, "%tid.z") || is(s, "%ctaid.z")) return 3;
  if (is(s, "%tid.y") || is(s, "%ctaid.y")) return 2;
  return 1;
}

uint32_t kilni_cli_dimensions_of(kiln_bytes_view_t text, const char* entry) {
  scan_t s = {(const char*)text.data, (const char*)text.data + text.size, NULL,
              0};
  uint32_t found = 1;
  uint32_t depth = 0;
  bool counts = true;  // what is being read belongs to the kernel
  while (next(&s)) {
    if (is(&s, "{")) {
      depth++;
    } else if (is(&s, "}")) {
      if (depth != 0) depth--;
    } else if (depth == 0 && is(&s, ".func")) {
      counts = true;
    } else if (depth == 0 && is(&s, ".entry")) {
      counts = next(&s) && is(&s, entry);
    } else if (counts && dimension(&s) > found) {
      found = dimension(&s);
    }
  }
  return found;
}
