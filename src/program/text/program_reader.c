// SPDX-License-Identifier: Apache-2.0
//
// program: reading text: tokens, errors, places.
#include "program/ir/program_report.h"
#include "program/text/program_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "program/ir/program_rules.h"

enum { MESSAGE_BYTES = 400 };

// ---- Errors ----

void kilni_program_reader_error(kilni_program_reader_t* reader, uint32_t at,
                                uint32_t rule, const char* fix,
                                const char* format, ...) {
  if (reader->panic || reader->stopped) return;
  char message[MESSAGE_BYTES];
  int used = 0;
  if (rule != 0) {
    used = snprintf(message, sizeof(message),
                    "%s: ", kilni_program_rule_message(rule));
  }
  va_list args;
  va_start(args, format);
  used +=
      vsnprintf(message + used, sizeof(message) - (size_t)used, format, args);
  va_end(args);
  if (reader->in_define != NULL && used < MESSAGE_BYTES) {
    snprintf(message + used, sizeof(message) - (size_t)used,
             " (in the define of \"%.64s\")", reader->in_define);
  }
  kiln_program_problem_t problem = {
      rule, 0, 0, 0, message, fix != NULL ? fix : kilni_program_rule_fix(rule),
      NULL};
  kiln_string_view_t source = kilni_program_lexer_place(
      reader->text, at, &problem.line, &problem.column);
  kilni_program_report_add(reader->report, &problem, source);
  if (kilni_program_report_is_full(reader->report)) reader->stopped = true;
}

void kilni_program_reader_note(kilni_program_reader_t* reader, uint32_t at,
                               uint32_t rule, const char* detail) {
  if (reader->stopped) return;
  char message[MESSAGE_BYTES];
  snprintf(message, sizeof(message), "%s: %s", kilni_program_rule_message(rule),
           detail);
  kiln_program_problem_t problem = {
      rule, 1, 0, 0, message, kilni_program_rule_fix(rule), NULL};
  kiln_string_view_t source = kilni_program_lexer_place(
      reader->text, at, &problem.line, &problem.column);
  kilni_program_report_add(reader->report, &problem, source);
}

static void reader_describe(const kilni_program_token_t* token, char text[80]) {
  if (token->kind == KILNI_TOKEN_END) {
    snprintf(text, 80, "the end of the text");
  } else if (token->kind == KILNI_TOKEN_BAD) {
    snprintf(text, 80, "%s", token->bad);
  } else {
    int size = token->text.size > 40 ? 40 : (int)token->text.size;
    snprintf(text, 80, "\"%.*s\"", size, token->text.data);
  }
}

void kilni_program_reader_expected(kilni_program_reader_t* reader,
                                   const char* what, const char* fix) {
  char found[80];
  reader_describe(&reader->token, found);
  if (reader->token.fix != NULL) fix = reader->token.fix;
  kilni_program_reader_error(reader, reader->token.at, 0, fix,
                             "expected %s, found %s", what, found);
  reader->panic = true;
}

// ---- Tokens ----

void kilni_program_reader_next(kilni_program_reader_t* reader) {
  reader->end = reader->token.at + (uint32_t)reader->token.text.size;
  kilni_program_lexer_next(&reader->lexer, &reader->token);
}

bool kilni_program_reader_is_sign(const kilni_program_reader_t* reader,
                                  uint32_t sign) {
  return reader->token.kind == KILNI_TOKEN_SIGN && reader->token.sign == sign;
}

bool kilni_program_reader_is_behind(const kilni_program_reader_t* reader,
                                    const char* signs) {
  size_t size = strlen(signs), at = reader->token.at;
  return at >= size && memcmp(reader->text.data + at - size, signs, size) == 0;
}

bool kilni_program_reader_is_word(const kilni_program_reader_t* reader,
                                  const char* word) {
  return reader->token.kind == KILNI_TOKEN_NAME &&
         kilni_base_sv_equal_cstr(reader->token.text, word);
}

bool kilni_program_reader_take_sign(kilni_program_reader_t* reader,
                                    uint32_t sign) {
  if (reader->panic || !kilni_program_reader_is_sign(reader, sign)) {
    return false;
  }
  kilni_program_reader_next(reader);
  return true;
}

bool kilni_program_reader_take_word(kilni_program_reader_t* reader,
                                    const char* word) {
  if (reader->panic || !kilni_program_reader_is_word(reader, word)) {
    return false;
  }
  kilni_program_reader_next(reader);
  return true;
}

// Of the end of the last token.
static uint32_t reader_line_of(const kilni_program_reader_t* reader) {
  uint32_t line, column;
  kilni_program_lexer_place(reader->text, reader->end, &line, &column);
  return line;
}

bool kilni_program_reader_need_sign(kilni_program_reader_t* reader,
                                    uint32_t sign) {
  if (kilni_program_reader_take_sign(reader, sign)) return true;
  // Where a statement that was not understood ends is not known.
  if (sign == ';' &&
      kilni_program_report_errors(reader->report) != reader->told) {
    reader->panic = true;
    return false;
  }
  char what[8] = {'"', 0, 0, 0, 0, 0, 0, 0};
  int used = 1;
  for (uint32_t rest = sign; rest != 0; rest >>= 8) {
    what[used++] = (char)(rest & 0xff);
  }
  what[used] = '"';
  const bool ends = sign == ';' &&
                    reader->token.line != reader_line_of(reader) &&
                    reader->token.kind != KILNI_TOKEN_BAD;
  const char* fix = ends ? NULL : kilni_program_hint_sign(reader, sign);
  if (ends && !reader->panic) {
    kilni_program_reader_error(reader, reader->end, 0, "put it here",
                               "expected %s at the end of the statement", what);
    reader->panic = true;
    return false;
  }
  if (fix == NULL) fix = "put it here, or correct what is before";
  kilni_program_reader_expected(reader, what, fix);
  // A value is no statement: "x if c else y".
  if (sign == ';' && kilni_program_reader_is_word(reader, "if")) {
    kilni_program_reader_next(reader);
  }
  return false;
}

static const char* what_word(uint32_t kind) {
  switch (kind) {
    case KILNI_SYMBOL_KEYWORD:
      return "a keyword";
    case KILNI_SYMBOL_TYPE_WORD:
      return "a type";
    case KILNI_SYMBOL_ID:
      return "a thread's id";
    case KILNI_SYMBOL_BOOL:
    case KILNI_SYMBOL_INFINITY:
    case KILNI_SYMBOL_NAN:
      return "a constant";
    default:
      return "an operator";
  }
}

bool kilni_program_reader_need_new_name(kilni_program_reader_t* reader,
                                        const char* of_what,
                                        kiln_string_view_t* out_name) {
  *out_name = (kiln_string_view_t){NULL, 0};
  if (reader->panic) return false;
  if (reader->token.kind != KILNI_TOKEN_NAME) {
    char what[80];
    snprintf(what, sizeof(what), "a name for %s", of_what);
    reader->token.fix = NULL;
    kilni_program_reader_expected(reader, what,
                                  kilni_program_rule_fix(KILNI_RULE_NAME_FORM));
    return false;
  }
  kiln_string_view_t name = reader->token.text;
  uint32_t at = reader->token.at;
  kilni_program_reader_next(reader);
  const kilni_program_symbol_t* old = kilni_program_symbols_find(reader, name);
  if (name.size > KILNI_TEXT_MAX_NAME) {
    kilni_program_reader_error(reader, at, KILNI_RULE_NAME_FORM, NULL,
                               "%zu characters", name.size);
    return false;
  }
  if (old != NULL && kilni_program_symbol_is_word(old->kind)) {
    kilni_program_reader_error(
        reader, at, KILNI_RULE_NAME_FORM, "choose another name",
        "\"%.*s\" is %s of the language", KILNI_SV(name), what_word(old->kind));
    return false;
  }
  if (old != NULL) {
    kilni_program_reader_error(reader, at, KILNI_RULE_NAME_TAKEN, NULL,
                               "\"%.*s\"", KILNI_SV(name));
    return false;
  }
  *out_name = name;
  return true;
}

static bool reader_deeper(kilni_program_reader_t* reader, uint32_t* level,
                          uint32_t most) {
  if (reader->panic || reader->stopped) return false;
  if (*level == most) {
    kilni_program_reader_error(reader, reader->token.at, KILNI_RULE_DEPTH, NULL,
                               "more than %u levels", most);
    reader->panic = true;
    return false;
  }
  ++*level;
  return true;
}

bool kilni_program_reader_nest(kilni_program_reader_t* reader) {
  return reader_deeper(reader, &reader->nesting, KILNI_TEXT_MAX_NESTING);
}

bool kilni_program_reader_enter(kilni_program_reader_t* reader) {
  return reader_deeper(reader, &reader->depth, KILNI_TEXT_MAX_DEPTH);
}

// True at a word that begins a statement or a declaration.
static bool at_beginning(const kilni_program_reader_t* reader) {
  if (reader->token.kind != KILNI_TOKEN_NAME) return false;
  const kilni_program_symbol_t* symbol =
      kilni_program_symbols_find(reader, reader->token.text);
  return symbol != NULL && symbol->kind == KILNI_SYMBOL_KEYWORD &&
         symbol->index != KILNI_KEYWORD_ELSE;
}

void kilni_program_reader_begin(kilni_program_reader_t* reader) {
  reader->told = kilni_program_report_errors(reader->report);
}

void kilni_program_reader_recover(kilni_program_reader_t* reader) {
  if (!reader->panic) return;
  reader->panic = false;
  // Braces that are opened on the way are closed on the way.
  uint32_t open = 0;
  while (reader->token.kind != KILNI_TOKEN_END) {
    if (kilni_program_reader_is_sign(reader, '{')) open++;
    if (kilni_program_reader_is_sign(reader, '}')) {
      if (open == 0) return;
      if (--open == 0) {
        kilni_program_reader_next(reader);
        if (kilni_program_reader_is_word(reader, "else")) continue;
        // Of braces in the place of a value.
        if (kilni_program_reader_is_sign(reader, ';')) {
          kilni_program_reader_next(reader);
        }
        return;
      }
    }
    if (open == 0 && kilni_program_reader_is_sign(reader, ';')) {
      kilni_program_reader_next(reader);
      return;
    }
    if (open == 0 && at_beginning(reader)) return;
    kilni_program_reader_next(reader);
  }
}

// ---- Places ----

void kilni_program_reader_place(kilni_program_reader_t* reader, uint32_t kind,
                                uint32_t index, uint32_t at) {
  kilni_program_places_t* places = &reader->places[kind];
  if (index >= places->capacity) {
    void* items = places->items;
    kiln_status_t status =
        kilni_base_grow(reader->allocator, (size_t)index + 1, sizeof(uint32_t),
                        &places->capacity, &items);
    places->items = items;
    if (!kiln_status_is_ok(status)) {
      kiln_status_free(status);
      reader->ir->failed = KILN_STATUS_OUT_OF_MEMORY;
      reader->stopped = true;
      return;
    }
  }
  places->items[index] = at;
}

uint32_t kilni_program_reader_placed(const kilni_program_reader_t* reader,
                                     uint32_t kind, uint32_t index) {
  const kilni_program_places_t* places = &reader->places[kind];
  return index < places->capacity ? places->items[index] : 0;
}
