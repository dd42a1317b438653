// SPDX-License-Identifier: Apache-2.0
//
// test: a failing program made small.
//
// Works on the text alone, and asks after each step whether it still fails: a
// text that is no valid program any more does not. Steps are tried from the
// large to the small until none helps.
#include <stdlib.h>
#include <string.h>

#include "program_generate.h"
#include "program_runner.h"

typedef struct shrink_t {
  char* text;
  char* trial;
  program_fails_t fails;
  void* user;
} shrink_t;

// Takes over `trial` if it still fails.
static bool keep(shrink_t* s) {
  if (strcmp(s->trial, s->text) == 0 || !s->fails(s->user, s->trial)) {
    return false;
  }
  strcpy(s->text, s->trial);
  return true;
}

// The text with `put` in the place of [from, to).
static bool replace(shrink_t* s, size_t from, size_t to, const char* put) {
  const size_t size = strlen(put), tail = strlen(s->text + to);
  if (from + size + tail + 1U > PROGRAM_TEXT_BYTES) return false;
  memcpy(s->trial, s->text, from);
  memcpy(s->trial + from, put, size);
  memcpy(s->trial + from + size, s->text + to, tail + 1U);
  return keep(s);
}

static size_t line_end(const char* text, size_t at) {
  while (text[at] != '\0' && text[at] != '\n') at++;
  return text[at] == '\n' ? at + 1U : at;
}

// Behind the closing sign of the opening one at `at`; 0 if there is none.
static size_t closing(const char* text, size_t at) {
  const char open = text[at];
  const char close = open == '{' ? '}' : open == '(' ? ')' : ']';
  int depth = 0;
  for (; text[at] != '\0'; at++) {
    if (text[at] == open) depth++;
    if (text[at] == close && --depth == 0) return at + 1U;
  }
  return 0;
}

// Whether a part of the text keeps threads apart: without it, or without the
// shape of the work, what differs may be a race. The barriers of a subgroup
// stand on one line with what they keep apart, and go with it.
static bool is_order(const char* text, size_t size) {
  static const char* const words[] = {" barrier;",  "grid_barrier;",
                                      "async_wait", "work (",
                                      "block (",    "let gi"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    const char* at = strstr(text, words[i]);
    if (at != NULL && (size_t)(at - text) < size) return true;
  }
  return false;
}

// Drops runs of `count` lines.
static bool drop_lines(shrink_t* s, size_t count) {
  bool any = false;
  size_t at = 0;
  while (s->text[at] != '\0') {
    size_t end = at;
    for (size_t i = 0; i < count; i++) end = line_end(s->text, end);
    if (!is_order(s->text + at, end - at) && replace(s, at, end, "")) {
      any = true;
    } else {
      at = line_end(s->text, at);
    }
  }
  return any;
}

// Drops a statement with a body, or puts its body in its place.
static bool drop_bodies(shrink_t* s) {
  bool any = false;
  size_t at = 0;
  while (s->text[at] != '\0') {
    const size_t line = at;
    const size_t end = line_end(s->text, at);
    size_t brace = line;
    while (brace < end && s->text[brace] != '{') brace++;
    if (brace < end) {
      const size_t close = closing(s->text, brace);
      const size_t after = close != 0U ? line_end(s->text, close) : 0U;
      if (close != 0U && replace(s, line, after, "")) {
        any = true;
        continue;
      }
      if (close != 0U) {
        memcpy(s->trial, s->text, line);
        memcpy(s->trial + line, s->text + brace + 1U, close - brace - 2U);
        strcpy(s->trial + line + (close - brace - 2U), s->text + close);
        if (keep(s)) {
          any = true;
          continue;
        }
        // An else goes.
        const char* other = strstr(s->text + close, " else {");
        if (other == s->text + close) {
          const size_t last = closing(s->text, close + 6U);
          if (last != 0U && replace(s, close, last, "")) any = true;
        }
      }
    }
    at = end;
  }
  return any;
}

// Puts something simple in the place of what stands in parentheses or is a
// call.
static bool simplify(shrink_t* s) {
  static const char* const simple[] = {
      "0u32",   "0i32",   "0u8",    "0i8",     "0u16", "0i16",  "0u64", "0i64",
      "0.0f32", "0.0f64", "0.0f16", "0.0bf16", "true", "false", "1u32"};
  bool any = false;
  for (size_t at = 0; s->text[at] != '\0'; at++) {
    // An index stays what it is: it says whose element that is.
    if (s->text[at] == '[') {
      const size_t behind = closing(s->text, at);
      if (behind != 0U) at = behind - 1U;
    }
    if (strncmp(s->text + at, "work (", 6) == 0 ||
        strncmp(s->text + at, "block (", 7) == 0 ||
        strncmp(s->text + at, "let gi", 6) == 0 ||
        strncmp(s->text + at, "async_copy", 10) == 0) {
      at = line_end(s->text, at) - 1U;
    }
    if (s->text[at] != '(') continue;
    size_t word = at;
    while (word > 0U &&
           (s->text[word - 1U] == '_' ||
            (s->text[word - 1U] >= 'a' && s->text[word - 1U] <= 'z') ||
            (s->text[word - 1U] >= '0' && s->text[word - 1U] <= '9'))) {
      word--;
    }
    const size_t end = closing(s->text, at);
    if (end == 0U) continue;
    bool done = false;
    for (size_t i = 0; i < sizeof simple / sizeof *simple && !done; i++) {
      done = replace(s, word, end, simple[i]);
    }
    if (!done && end - at < 4000U) {
      // Each operand by itself.
      size_t from = at + 1U;
      int depth = 0;
      for (size_t k = at + 1U; k < end && !done; k++) {
        const char sign = s->text[k];
        const bool ends =
            k == end - 1U || (depth == 0 && (sign == ',' || sign == ' '));
        if (ends && k > from) {
          char part[4096];
          memcpy(part, s->text + from, k - from);
          part[k - from] = '\0';
          done = replace(s, word, end, part);
        }
        if (ends) from = k + 1U;
        if (sign == '(' || sign == '[') depth++;
        if (sign == ')' || sign == ']') depth--;
      }
    }
    any |= done;
    if (done) at = word > 0U ? word - 1U : 0U;
  }
  return any;
}

void program_shrink(char* text, program_fails_t fails, void* user) {
  shrink_t s = {text, malloc(PROGRAM_TEXT_BYTES), fails, user};
  if (s.trial == NULL) return;
  for (uint32_t round = 0; round < 8U; round++) {
    bool any = drop_bodies(&s);
    for (size_t count = 16; count != 0U; count /= 2U) {
      any |= drop_lines(&s, count);
    }
    any |= simplify(&s);
    if (!any) break;
  }
  free(s.trial);
}
