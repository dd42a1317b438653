// SPDX-License-Identifier: Apache-2.0
//
// soft: a PTX text as the statements at its top level, for the linker.
#include "base/str.h"
#include "kiln/api.h"
#include "soft/driver/soft_statement.h"

#include <string.h>

// ---- Words ----

static bool statement_is_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool statement_is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool statement_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool starts_name(char c) {
  return statement_is_letter(c) || c == '_' || c == '$' || c == '%';
}

static bool statement_goes_on(char c) {
  return statement_is_letter(c) || statement_is_digit(c) || c == '_' ||
         c == '$';
}

// After blanks and comments.
static size_t statement_skip(kiln_string_view_t text) {
  size_t at = 0;
  while (at < text.size) {
    if (statement_is_blank(text.data[at])) {
      at++;
    } else if (at + 1 < text.size && text.data[at] == '/' &&
               text.data[at + 1] == '/') {
      while (at < text.size && text.data[at] != '\n') at++;
    } else if (at + 1 < text.size && text.data[at] == '/' &&
               text.data[at + 1] == '*') {
      at += 2;
      while (at + 1 < text.size &&
             !(text.data[at] == '*' && text.data[at + 1] == '/')) {
        at++;
      }
      at = at + 2 < text.size ? at + 2 : text.size;
    } else {
      break;
    }
  }
  return at;
}

static size_t string_size(kiln_string_view_t text) {
  size_t at = 1;
  while (at < text.size && text.data[at] != '"') {
    at += text.data[at] == '\\' && at + 1 < text.size ? 2 : 1;
  }
  return at < text.size ? at + 1 : text.size;
}

// `.shared::cta` is one word.
static size_t dot_size(kiln_string_view_t text) {
  size_t at = 1;
  while (at < text.size) {
    if (statement_goes_on(text.data[at])) {
      at++;
    } else if (at + 2 < text.size && text.data[at] == ':' &&
               text.data[at + 1] == ':' &&
               statement_goes_on(text.data[at + 2])) {
      at += 2;
    } else {
      break;
    }
  }
  return at;
}

kilni_soft_word_t kilni_soft_word_next(kiln_string_view_t* inout_rest) {
  kiln_string_view_t rest = *inout_rest;
  size_t skipped = statement_skip(rest);
  rest = kilni_base_sv_make(rest.data + skipped, rest.size - skipped);
  kilni_soft_word_t word = {KILNI_SOFT_WORD_END, 0, {rest.data, 0}};
  size_t size = 0;
  if (rest.size > 0) {
    char c = rest.data[0];
    size = 1;
    if (starts_name(c)) {
      word.kind = KILNI_SOFT_WORD_NAME;
      while (size < rest.size && statement_goes_on(rest.data[size])) size++;
    } else if (c == '.') {
      word.kind = KILNI_SOFT_WORD_DOT;
      size = dot_size(rest);
    } else if (statement_is_digit(c)) {
      word.kind = KILNI_SOFT_WORD_NUMBER;
      while (size < rest.size &&
             (statement_goes_on(rest.data[size]) || rest.data[size] == '.')) {
        size++;
      }
    } else if (c == '"') {
      word.kind = KILNI_SOFT_WORD_STRING;
      size = string_size(rest);
    } else {
      word.kind = KILNI_SOFT_WORD_MARK;
    }
  }
  word.text.size = size;
  *inout_rest = kilni_base_sv_make(rest.data + size, rest.size - size);
  return word;
}

static bool word_is(const kilni_soft_word_t* word, char mark) {
  return word->kind == KILNI_SOFT_WORD_MARK && word->text.data[0] == mark;
}

// ---- Statements ----

static bool statement_is_one_of(kiln_string_view_t word,
                                const char* const* words) {
  for (; *words != NULL; words++) {
    if (kilni_base_sv_equal_cstr(word, *words)) return true;
  }
  return false;
}

static kilni_soft_statement_kind_t statement_kind_of(kiln_string_view_t first) {
  static const char* const kHead[] = {".version", ".target", ".address_size",
                                      NULL};
  static const char* const kPlain[] = {".pragma", ".alias", NULL};
  if (statement_is_one_of(first, kHead)) return KILNI_SOFT_STATEMENT_HEAD;
  if (statement_is_one_of(first, kPlain)) return KILNI_SOFT_STATEMENT_OTHER;
  if (kilni_base_sv_equal_cstr(first, ".file")) {
    return KILNI_SOFT_STATEMENT_FILE;
  }
  if (kilni_base_sv_equal_cstr(first, ".section")) {
    return KILNI_SOFT_STATEMENT_SECTION;
  }
  return KILNI_SOFT_STATEMENT_VARIABLE;  // or a function: seen later
}

// The meaning of one word of a declaration.
static void note_word(kilni_soft_statement_t* statement,
                      const kilni_soft_word_t* word) {
  static const char* const kLinkage[] = {".extern", ".visible", ".weak",
                                         ".common", NULL};
  if (word->kind == KILNI_SOFT_WORD_NAME) {
    if (statement->name.size == 0) statement->name = word->text;
  } else if (word->kind == KILNI_SOFT_WORD_DOT) {
    if (statement_is_one_of(word->text, kLinkage)) {
      statement->linkage = word->text;
    } else if (kilni_base_sv_equal_cstr(word->text, ".entry") ||
               kilni_base_sv_equal_cstr(word->text, ".func")) {
      statement->kind = KILNI_SOFT_STATEMENT_FUNCTION;
      statement->is_entry = kilni_base_sv_equal_cstr(word->text, ".entry");
    } else if (kilni_base_sv_starts_with(word->text, ".shared")) {
      statement->is_shared = true;
    }
  }
}

static bool opens(const kilni_soft_word_t* word) {
  return word_is(word, '(') || word_is(word, '[') || word_is(word, '{');
}

static bool closes(const kilni_soft_word_t* word) {
  return word_is(word, ')') || word_is(word, ']') || word_is(word, '}');
}

// A declaration, or anything else that ends with `;` or with its braces.
static void take_declaration(kiln_string_view_t* rest,
                             kilni_soft_statement_t* statement) {
  size_t depth = 0;
  while (true) {
    kilni_soft_word_t word = kilni_soft_word_next(rest);
    if (word.kind == KILNI_SOFT_WORD_END) return;
    bool brace = word_is(&word, '{');
    bool body =
        brace && statement->kind != KILNI_SOFT_STATEMENT_VARIABLE && depth == 0;
    bool end = word_is(&word, ';') && depth == 0;
    if (statement->head_end == NULL && depth == 0 &&
        (body || end || word_is(&word, '='))) {
      statement->head_end = word.text.data;
      statement->has_body = body;
    }
    if (end) return;
    if (depth == 0 && statement->head_end == NULL) note_word(statement, &word);
    if (depth == 0 && word_is(&word, ',') &&
        statement->kind == KILNI_SOFT_STATEMENT_VARIABLE) {
      statement->has_several = true;
    }
    if (opens(&word)) depth++;
    if (closes(&word) && depth > 0) depth--;
    if (depth == 0 && word_is(&word, '}') &&
        statement->kind != KILNI_SOFT_STATEMENT_VARIABLE) {
      return;
    }
  }
}

// A directive that has no end of its own: words as long as commas join them,
// and of .file a number and a name before.
static void statement_take_directive(kiln_string_view_t* rest,
                                     kilni_soft_statement_t* statement) {
  statement->second = kilni_soft_word_next(rest).text;
  if (statement->kind == KILNI_SOFT_STATEMENT_FILE) kilni_soft_word_next(rest);
  while (true) {
    kiln_string_view_t ahead = *rest;
    kilni_soft_word_t word = kilni_soft_word_next(&ahead);
    if (!word_is(&word, ',')) return;
    kilni_soft_word_next(&ahead);
    *rest = ahead;
  }
}

bool kilni_soft_statement_next(kiln_string_view_t* inout_rest,
                               kilni_soft_statement_t* out_statement) {
  memset(out_statement, 0, sizeof(*out_statement));
  kilni_soft_word_t first;
  kiln_string_view_t before;
  do {
    before = *inout_rest;
    first = kilni_soft_word_next(inout_rest);
  } while (word_is(&first, ';'));
  if (first.kind == KILNI_SOFT_WORD_END) return false;
  out_statement->kind = statement_kind_of(first.text);
  out_statement->first = first.text;
  switch (out_statement->kind) {
    case KILNI_SOFT_STATEMENT_HEAD:
    case KILNI_SOFT_STATEMENT_FILE:
      statement_take_directive(inout_rest, out_statement);
      break;
    default:
      *inout_rest = before;
      take_declaration(inout_rest, out_statement);
      break;
  }
  out_statement->text = kilni_base_sv_make(
      first.text.data, (size_t)(inout_rest->data - first.text.data));
  return true;
}
