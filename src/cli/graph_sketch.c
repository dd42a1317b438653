// SPDX-License-Identifier: Apache-2.0
//
// cli: graph files: tokens, names, errors.
#include "cli/graph_sketch.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graph_sketch_inside.h"

// The functions themselves, not their declarations for an analyzer.
#undef kilni_cli_sketch_fail
#undef kilni_cli_sketcher_fail_at
#undef kilni_cli_sketcher_unexpected

enum {
  SHOWN_BYTES = 160,  // of a line, in an error
  WORD_BYTES = 40,    // of a word, in an error
};

// ---- Errors ----

static bool starts_character(char c) {
  return ((unsigned char)c & 0xc0) != 0x80;
}

// The line under an error, cut around the column, and the caret under that.
static void show_line(const kilni_cli_sketch_t* sketch, uint32_t line,
                      uint32_t column, kilni_cli_error_t* error) {
  const char* at = sketch->text;
  const char* end = sketch->text + sketch->size;
  for (uint32_t i = 1; i < line && at < end; at++) {
    if (*at == '\n') i++;
  }
  const char* stop = at;
  while (stop < end && *stop != '\n' && *stop != '\r') stop++;
  const char* spot = at;
  for (uint32_t i = 1; spot < stop; spot++) {
    if (starts_character(*spot) && i++ == column) break;
  }
  while (at < spot && (spot - at > SHOWN_BYTES / 2 || !starts_character(*at))) {
    at++;
  }
  char text[2 * SHOWN_BYTES + 16];
  size_t size = 0;
  memcpy(text, "  ", 2);
  size = 2;
  for (const char* c = at; c < stop && c - at < SHOWN_BYTES; c++) {
    // One column each, for the caret's sake.
    text[size++] = (unsigned char)*c < ' ' ? '?' : *c;
  }
  memcpy(text + size, "\n  ", 3);
  size += 3;
  for (const char* c = at; c < spot; c++) {
    if (!starts_character(*c)) continue;
    text[size++] = ' ';
  }
  text[size++] = '^';
  text[size] = 0;
  kilni_cli_copy_text(error->trail, sizeof(error->trail), text);
}

static void point(const kilni_cli_sketch_t* sketch, uint32_t line,
                  uint32_t column, kilni_cli_error_t* error) {
  kilni_cli_error_prefix(error, "%s:%" PRIu32 ":%" PRIu32, sketch->file, line,
                         column);
  show_line(sketch, line, column, error);
}

static bool fail_here(const kilni_cli_sketch_t* sketch, uint32_t line,
                      uint32_t column, kiln_status_code_t code, const char* fix,
                      kilni_cli_error_t* error, const char* format,
                      va_list args) {
  char text[512];
  (void)vsnprintf(text, sizeof(text), format, args);
  (void)kilni_cli_fail(error, code, fix, "%s", text);
  point(sketch, line, column, error);
  return false;
}

bool kilni_cli_sketch_fail(const kilni_cli_sketch_t* sketch, uint32_t line,
                           uint32_t column, kiln_status_code_t code,
                           const char* fix, kilni_cli_error_t* error,
                           const char* format, ...) {
  va_list args;
  va_start(args, format);
  (void)fail_here(sketch, line, column, code, fix, error, format, args);
  va_end(args);
  return false;
}

void kilni_cli_sketch_point(const kilni_cli_sketch_t* sketch,
                            const kilni_cli_name_t* name,
                            kilni_cli_error_t* error) {
  // A device's report of a fault is worth more than the line.
  char trail[sizeof(error->trail)];
  memcpy(trail, error->trail, sizeof(trail));
  point(sketch, name->line, name->column, error);
  if (trail[0] != 0) memcpy(error->trail, trail, sizeof(trail));
}

bool kilni_cli_sketcher_fail_at(kilni_cli_sketcher_t* s,
                                const kilni_cli_name_t* name, const char* fix,
                                const char* format, ...) {
  va_list args;
  va_start(args, format);
  (void)fail_here(s->sketch, name->line, name->column, KILN_STATUS_BAD_DATA,
                  fix, s->error, format, args);
  va_end(args);
  return false;
}

bool kilni_cli_sketcher_unexpected(kilni_cli_sketcher_t* s, const char* what) {
  const kilni_cli_token_t* t = &s->token;
  char found[WORD_BYTES + 16];
  int size = t->size < WORD_BYTES ? (int)t->size : WORD_BYTES;
  if (t->kind == KILNI_CLI_TOKEN_END) {
    memcpy(found, "the end", 8);
  } else if (t->kind == KILNI_CLI_TOKEN_LINE) {
    memcpy(found, "the end of the line", 20);
  } else {
    (void)snprintf(found, sizeof(found), "`%.*s`", size, t->at);
  }
  char fix[256];
  (void)snprintf(fix, sizeof(fix), "write %s", s->usage);
  return kilni_cli_sketch_fail(s->sketch, t->line, t->column,
                               KILN_STATUS_BAD_DATA, fix, s->error,
                               "expected %s, not %s", what, found);
}

// ---- Tokens ----

static bool graph_sketch_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool graph_sketch_is_digit(char c) {
  return c >= '0' && c <= '9';
}

static char graph_sketch_peek(const kilni_cli_sketcher_t* s, size_t ahead) {
  return (size_t)(s->end - s->at) > ahead ? s->at[ahead] : 0;
}

static bool bad_byte(kilni_cli_sketcher_t* s, const char* what) {
  return kilni_cli_sketch_fail(s->sketch, s->token.line, s->token.column,
                               KILN_STATUS_BAD_DATA,
                               "names are letters, digits and underscores; "
                               "write anything else in double quotes",
                               s->error, "%s", what);
}

static bool scan_string(kilni_cli_sketcher_t* s) {
  s->at++;
  while (s->at < s->end && *s->at != '"' && *s->at != '\n' && *s->at != 0) {
    if (*s->at == '\\' &&
        (graph_sketch_peek(s, 1) == '"' || graph_sketch_peek(s, 1) == '\\')) {
      s->at++;
    }
    s->at++;
  }
  if (graph_sketch_peek(s, 0) != '"') {
    return kilni_cli_sketch_fail(
        s->sketch, s->token.line, s->token.column, KILN_STATUS_BAD_DATA,
        "close it on its line; write \\\" and \\\\ for the two characters",
        s->error, "the text in quotes does not end");
  }
  s->at++;
  s->token.kind = KILNI_CLI_TOKEN_STRING;
  return true;
}

static void graph_sketch_scan_number(kilni_cli_sketcher_t* s) {
  s->at++;
  while (s->at < s->end) {
    char c = *s->at;
    char last = s->at[-1];
    bool is_exponent = (c == '+' || c == '-') && (last == 'e' || last == 'E') &&
                       graph_sketch_is_digit(graph_sketch_peek(s, 1));
    bool is_point = c == '.' && graph_sketch_peek(s, 1) != '.';
    if (!graph_sketch_is_letter(c) && !graph_sketch_is_digit(c) && !is_point &&
        !is_exponent) {
      break;
    }
    s->at++;
  }
  s->token.kind = KILNI_CLI_TOKEN_NUMBER;
}

static void graph_sketch_begin_line(kilni_cli_sketcher_t* s) {
  s->line++;
  s->counted = s->at;
  s->column = 1;
}

// Whether the line that ends here continues: the next one begins with a word
// that does not begin a statement.
static bool graph_sketch_goes_on(kilni_cli_sketcher_t* s) {
  static const char* const WORDS[] = {"grid", "block", "shared", "cooperative",
                                      "in",   "out",   "else"};
  if (s->at < s->looked) return s->looked_on;  // another empty line
  const char* at = s->at;
  while (at < s->end && strchr(" \t\r\n#", *at) != NULL && *at != 0) {
    if (*at == '#') {
      while (at < s->end && *at != '\n') at++;
    } else {
      at++;
    }
  }
  size_t size = 0;
  while ((size_t)(s->end - at) > size && (graph_sketch_is_letter(at[size]) ||
                                          graph_sketch_is_digit(at[size]))) {
    size++;
  }
  s->looked = at;
  s->looked_on = false;
  for (size_t i = 0; i < sizeof(WORDS) / sizeof(WORDS[0]); i++) {
    if (strlen(WORDS[i]) == size && memcmp(WORDS[i], at, size) == 0) {
      s->looked_on = true;
    }
  }
  return s->looked_on;
}

static void graph_sketch_skip_blank(kilni_cli_sketcher_t* s) {
  while (s->at < s->end) {
    char c = *s->at;
    if (c == '#') {
      while (s->at < s->end && *s->at != '\n') s->at++;
    } else if (c == '\n' && (s->nesting > 0 || graph_sketch_goes_on(s))) {
      s->at++;
      graph_sketch_begin_line(s);
    } else if (c == ' ' || c == '\t' || c == '\r') {
      s->at++;
    } else {
      break;
    }
  }
}

static uint32_t graph_sketch_column_of(kilni_cli_sketcher_t* s) {
  for (; s->counted < s->at; s->counted++) {
    if (starts_character(*s->counted)) s->column++;
  }
  return s->column;
}

static bool scan_sign(kilni_cli_sketcher_t* s) {
  char c = *s->at;
  char next = graph_sketch_peek(s, 1);
  if (c == '-' && next == '>') {
    s->token.kind = KILNI_CLI_TOKEN_ARROW;
    s->at += 2;
  } else if (c == '<' && next == '-') {
    s->token.kind = KILNI_CLI_TOKEN_INTO;
    s->at += 2;
  } else if (c == '.' && next == '.') {
    s->token.kind = KILNI_CLI_TOKEN_DOTS;
    s->at += 2;
  } else if (c == '-' &&
             (graph_sketch_is_digit(next) || graph_sketch_is_letter(next))) {
    graph_sketch_scan_number(s);
  } else if (c != 0 && strchr("=:,()[]{}.", c) != NULL) {
    s->token.kind = KILNI_CLI_TOKEN_SIGN;
    s->at++;
  } else {
    return bad_byte(s, "an unexpected character");
  }
  return true;
}

static bool graph_sketch_scan(kilni_cli_sketcher_t* s) {
  graph_sketch_skip_blank(s);
  s->token.at = s->at;
  s->token.line = s->line;
  s->token.column = graph_sketch_column_of(s);
  s->token.kind = KILNI_CLI_TOKEN_END;
  s->token.size = 0;
  if (s->at >= s->end) return true;
  char c = *s->at;
  if (c == '\n') {
    s->token.kind = KILNI_CLI_TOKEN_LINE;
    s->at++;
    graph_sketch_begin_line(s);
  } else if (graph_sketch_is_letter(c)) {
    while (graph_sketch_is_letter(graph_sketch_peek(s, 0)) ||
           graph_sketch_is_digit(graph_sketch_peek(s, 0))) {
      s->at++;
    }
    s->token.kind = KILNI_CLI_TOKEN_NAME;
  } else if (graph_sketch_is_digit(c)) {
    graph_sketch_scan_number(s);
  } else if (c == '"') {
    if (!scan_string(s)) return false;
  } else if (!scan_sign(s)) {
    return false;
  }
  s->token.size = (size_t)(s->at - s->token.at);
  return true;
}

// Lines do not end inside parentheses and brackets, nor after an incomplete
// construct.
bool kilni_cli_sketcher_next(kilni_cli_sketcher_t* s) {
  const kilni_cli_token_t* t = &s->token;
  bool wants_more =
      t->kind == KILNI_CLI_TOKEN_ARROW || t->kind == KILNI_CLI_TOKEN_INTO ||
      kilni_cli_sketcher_sees(s, ',') || kilni_cli_sketcher_sees(s, '=');
  if (kilni_cli_sketcher_sees(s, '(') || kilni_cli_sketcher_sees(s, '[')) {
    s->nesting++;
  }
  if (s->nesting > 0 &&
      (kilni_cli_sketcher_sees(s, ')') || kilni_cli_sketcher_sees(s, ']'))) {
    s->nesting--;
  }
  if (wants_more) s->nesting++;
  bool ok = graph_sketch_scan(s);
  if (wants_more) s->nesting--;
  return ok;
}

bool kilni_cli_sketcher_sees(const kilni_cli_sketcher_t* s, char sign) {
  return s->token.kind == KILNI_CLI_TOKEN_SIGN && *s->token.at == sign;
}

bool kilni_cli_sketcher_sees_word(const kilni_cli_sketcher_t* s,
                                  const char* word) {
  return s->token.kind == KILNI_CLI_TOKEN_NAME &&
         s->token.size == strlen(word) &&
         memcmp(s->token.at, word, s->token.size) == 0;
}

bool kilni_cli_sketcher_expect(kilni_cli_sketcher_t* s, char sign) {
  if (kilni_cli_sketcher_sees(s, sign)) return kilni_cli_sketcher_next(s);
  char what[8];
  (void)snprintf(what, sizeof(what), "`%c`", sign);
  return kilni_cli_sketcher_unexpected(s, what);
}

bool kilni_cli_sketcher_expect_kind(kilni_cli_sketcher_t* s,
                                    kilni_cli_token_kind_t kind,
                                    const char* what) {
  if (s->token.kind == kind) return kilni_cli_sketcher_next(s);
  return kilni_cli_sketcher_unexpected(s, what);
}

// ---- Words with a meaning ----

static bool graph_sketch_is_reserved(const kilni_cli_token_t* t) {
  static const char* const WORDS[] = {
      "code",  "buffer",     "condition", "graph",  "kernel", "copy",
      "fill",  "empty",      "allocate",  "free",   "child",  "if",
      "else",  "while",      "switch",    "len",    "in",     "out",
      "grid",  "block",      "shared",    "true",   "false",  "program",
      "host",  "record",     "wait",      "repeat", "scalar", "sequence",
      "event", "cooperative"};
  for (size_t i = 0; i < sizeof(WORDS) / sizeof(WORDS[0]); i++) {
    if (strlen(WORDS[i]) == t->size && memcmp(WORDS[i], t->at, t->size) == 0) {
      return true;
    }
  }
  return false;
}

bool kilni_cli_sketcher_word(kilni_cli_sketcher_t* s, kilni_cli_name_t* out) {
  char* text = s->sketch->names + s->names_used;
  memcpy(text, s->token.at, s->token.size);
  text[s->token.size] = 0;
  s->names_used += s->token.size + 1;
  out->text = text;
  out->line = s->token.line;
  out->column = s->token.column;
  return kilni_cli_sketcher_next(s);
}

bool kilni_cli_sketcher_name(kilni_cli_sketcher_t* s, const char* what,
                             kilni_cli_name_t* out) {
  const kilni_cli_token_t* t = &s->token;
  if (t->kind != KILNI_CLI_TOKEN_NAME) {
    return kilni_cli_sketcher_unexpected(s, what);
  }
  if (graph_sketch_is_reserved(t)) {
    return kilni_cli_sketch_fail(s->sketch, t->line, t->column,
                                 KILN_STATUS_BAD_DATA, "take another name",
                                 s->error, "`%.*s` is a reserved word",
                                 (int)t->size, t->at);
  }
  if (t->size > KILNI_CLI_GRAPH_MAX_NAME) {
    return kilni_cli_sketch_fail(
        s->sketch, t->line, t->column, KILN_STATUS_LIMIT_EXCEEDED,
        "take a shorter name", s->error, "a name of more than %d characters",
        KILNI_CLI_GRAPH_MAX_NAME);
  }
  return kilni_cli_sketcher_word(s, out);
}

bool kilni_cli_sketcher_string(kilni_cli_sketcher_t* s, const char* what,
                               kilni_cli_name_t* out) {
  const kilni_cli_token_t* t = &s->token;
  if (t->kind != KILNI_CLI_TOKEN_STRING) {
    return kilni_cli_sketcher_unexpected(s, what);
  }
  if (t->size == 2) return kilni_cli_sketcher_unexpected(s, what);
  char* text = s->sketch->names + s->names_used;
  size_t size = 0;
  for (size_t i = 1; i + 1 < t->size; i++) {
    if (t->at[i] == '\\' && (t->at[i + 1] == '"' || t->at[i + 1] == '\\')) i++;
    text[size++] = t->at[i];
  }
  text[size] = 0;
  s->names_used += size + 1;
  out->text = text;
  out->line = t->line;
  out->column = t->column;
  return kilni_cli_sketcher_next(s);
}

bool kilni_cli_sketcher_number(kilni_cli_sketcher_t* s, const char* what,
                               uint64_t least, uint64_t most, uint64_t* out) {
  const kilni_cli_token_t* t = &s->token;
  if (t->kind != KILNI_CLI_TOKEN_NUMBER) {
    return kilni_cli_sketcher_unexpected(s, what);
  }
  if (!kilni_cli_u64_parse(t->at, t->size, out) || *out < least ||
      *out > most) {
    return kilni_cli_sketch_fail(
        s->sketch, t->line, t->column, KILN_STATUS_BAD_DATA,
        "write a whole number in that range", s->error,
        "`%.*s` is not a number from %" PRIu64 " to %" PRIu64,
        t->size < WORD_BYTES ? (int)t->size : WORD_BYTES, t->at, least, most);
  }
  return kilni_cli_sketcher_next(s);
}

// ---- Arrays and names ----

bool kilni_cli_sketcher_grow(kilni_cli_sketcher_t* s, void** array,
                             uint32_t count, uint32_t most, size_t size,
                             const char* what) {
  if (count >= most) {
    return kilni_cli_sketch_fail(
        s->sketch, s->token.line, s->token.column, KILN_STATUS_LIMIT_EXCEEDED,
        "make several graphs of it", s->error,
        "more than %" PRIu32 " %s in one file", most, what);
  }
  if (count != 0 && (count < 8 || (count & (count - 1)) != 0)) return true;
  void* larger = realloc(*array, (count < 8 ? 8 : 2 * (size_t)count) * size);
  if (larger == NULL) {
    return kilni_cli_fail(s->error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "no memory to read \"%s\"", s->sketch->file);
  }
  *array = larger;
  return true;
}

// The slot of a name, or the free one where it would be.
static kilni_cli_symbol_t* graph_sketch_slot_of(const kilni_cli_sketcher_t* s,
                                                const char* text,
                                                uint32_t scope) {
  uint64_t hash = 1469598103934665603u ^ scope;
  for (const char* c = text; *c != 0; c++) {
    hash = (hash ^ (unsigned char)*c) * 1099511628211u;
  }
  size_t at = (size_t)(hash ^ hash >> 29) & (s->symbol_space - 1);
  while (s->symbols[at].text != NULL &&
         (s->symbols[at].scope != scope ||
          strcmp(s->symbols[at].text, text) != 0)) {
    at = (at + 1) & (s->symbol_space - 1);
  }
  return &s->symbols[at];
}

static const kilni_cli_symbol_t* find_in(const kilni_cli_sketcher_t* s,
                                         const char* text, uint32_t scope) {
  const kilni_cli_symbol_t* symbol = graph_sketch_slot_of(s, text, scope);
  return symbol->text == NULL ? NULL : symbol;
}

const kilni_cli_symbol_t* kilni_cli_sketcher_find(const kilni_cli_sketcher_t* s,
                                                  const char* text,
                                                  uint32_t scope) {
  uint32_t at = scope;
  for (; at != KILNI_CLI_GRAPH_NONE; at = s->sketch->scopes[at].parent) {
    const kilni_cli_symbol_t* symbol = find_in(s, text, at);
    if (symbol != NULL) return symbol;
  }
  const kilni_cli_symbol_t* symbol = find_in(s, text, 0);
  return symbol != NULL && symbol->kind <= KILNI_CLI_SYMBOL_GRAPH ? symbol
                                                                  : NULL;
}

bool kilni_cli_sketcher_is_new(kilni_cli_sketcher_t* s,
                               const kilni_cli_name_t* name, uint32_t scope) {
  const kilni_cli_symbol_t* symbol =
      kilni_cli_sketcher_find(s, name->text, scope);
  if (symbol == NULL) return true;
  return kilni_cli_sketcher_fail_at(
      s, name, "choose another name; names are unique within their scope",
      "the name \"%s\" is taken in line %" PRIu32, name->text, symbol->line);
}

static bool graph_sketch_make_space(kilni_cli_sketcher_t* s) {
  if (2 * s->symbol_count < s->symbol_space) return true;
  size_t old_space = s->symbol_space;
  kilni_cli_symbol_t* old = s->symbols;
  kilni_cli_symbol_t* larger = calloc(old_space * 2, sizeof(*larger));
  if (larger == NULL) {
    return kilni_cli_fail(s->error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "no memory to read \"%s\"", s->sketch->file);
  }
  s->symbols = larger;
  s->symbol_space = old_space * 2;
  for (size_t i = 0; i < old_space; i++) {
    if (old[i].text != NULL) {
      *graph_sketch_slot_of(s, old[i].text, old[i].scope) = old[i];
    }
  }
  free(old);
  return true;
}

bool kilni_cli_sketcher_declare(kilni_cli_sketcher_t* s,
                                const kilni_cli_name_t* name, uint32_t scope,
                                kilni_cli_symbol_kind_t kind, uint32_t index) {
  if (!kilni_cli_sketcher_is_new(s, name, scope) ||
      !graph_sketch_make_space(s)) {
    return false;
  }
  kilni_cli_symbol_t* symbol = graph_sketch_slot_of(s, name->text, scope);
  symbol->text = name->text;
  symbol->scope = scope;
  symbol->kind = kind;
  symbol->index = index;
  symbol->line = name->line;
  s->symbol_count++;
  return true;
}

bool kilni_cli_sketcher_resolve(kilni_cli_sketcher_t* s,
                                const kilni_cli_name_t* name, uint32_t scope,
                                kilni_cli_symbol_kind_t kind,
                                uint32_t* out_index) {
  static const char* const WHAT[] = {"a code file", "a buffer",    "an event",
                                     "a graph",     "a condition", "a node"};
  static const char* const FIX[] = {
      "declare it above: code NAME = \"FILE\"",
      "declare it above: buffer NAME : TYPE[N]",
      "declare it above: event NAME",
      "declare it above: graph NAME { ... }",
      ("declare it above, in the braces of its node or around them: "
       "condition NAME = 1"),
      "declare it above, in the same braces"};
  const kilni_cli_symbol_t* symbol =
      kilni_cli_sketcher_find(s, name->text, scope);
  if (symbol == NULL) {
    return kilni_cli_sketcher_fail_at(s, name, FIX[kind],
                                      "there is no %s \"%s\"",
                                      strchr(WHAT[kind], ' ') + 1, name->text);
  }
  if (symbol->kind != kind) {
    return kilni_cli_sketcher_fail_at(
        s, name, FIX[kind], "\"%s\" of line %" PRIu32 " is %s, not %s",
        name->text, symbol->line, WHAT[symbol->kind], WHAT[kind]);
  }
  *out_index = symbol->index;
  return true;
}

// ---- Edges, all together ----

static bool check_doubles(kilni_cli_sketcher_t* s) {
  const kilni_cli_sketch_t* k = s->sketch;
  size_t space = 16;
  while (space < 2 * (size_t)k->edge_count) space *= 2;
  uint32_t* seen = calloc(space, sizeof(*seen));
  if (seen == NULL) {
    return kilni_cli_fail(s->error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "no memory to read \"%s\"", k->file);
  }
  bool ok = true;
  for (uint32_t i = 0; ok && i < k->edge_count; i++) {
    const kilni_cli_graph_edge_t* e = &k->edges[i];
    uint64_t hash =
        (e->from * 0x9e3779b97f4a7c15u) ^ (e->to * 0xff51afd7ed558ccdu);
    size_t at = (size_t)(hash ^ hash >> 32) & (space - 1);
    for (; ok && seen[at] != 0; at = (at + 1) & (space - 1)) {
      const kilni_cli_graph_edge_t* other = &k->edges[seen[at] - 1];
      if (other->from != e->from || other->to != e->to) continue;
      ok = kilni_cli_sketcher_fail_at(
          s, &e->at, "draw each edge once",
          "the edge from \"%s\" to \"%s\" was already drawn in line %" PRIu32,
          k->nodes[e->from].name.text, k->nodes[e->to].name.text,
          other->at.line);
    }
    if (ok) seen[at] = i + 1;
  }
  free(seen);
  return ok;
}

// Of the edges between nodes that never become ready, one that closes a cycle.
// `waits` is nonzero for exactly these nodes.
static bool fail_circle(kilni_cli_sketcher_t* s, const uint32_t* waits) {
  const kilni_cli_sketch_t* k = s->sketch;
  uint32_t node = 0;
  while (waits[node] == 0) node++;
  const kilni_cli_graph_edge_t* found = NULL;
  // Walking back from any of them, one step per node, ends on a cycle.
  for (uint32_t step = 0; step <= k->node_count; step++) {
    for (uint32_t i = 0; i < k->edge_count; i++) {
      if (k->edges[i].to == node && waits[k->edges[i].from] != 0) {
        found = &k->edges[i];
        break;
      }
    }
    // `waits` guarantees that there is such an edge.
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
    node = found->from;
  }
  return kilni_cli_sketcher_fail_at(
      s, &found->at, "remove one of its edges; a `while` node repeats work",
      "the edge from \"%s\" to \"%s\" closes a cycle: neither could start",
      k->nodes[found->from].name.text, k->nodes[found->to].name.text);
}

static bool check_circles(kilni_cli_sketcher_t* s) {
  const kilni_cli_sketch_t* k = s->sketch;
  if (k->edge_count == 0) return true;
  // Edges by where they begin: first[n] to first[n + 1] of `list`.
  size_t words = 3 * (size_t)k->node_count + 1 + k->edge_count;
  uint32_t* waits = calloc(words, sizeof(*waits));
  if (waits == NULL) {
    return kilni_cli_fail(s->error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "no memory to read \"%s\"", k->file);
  }
  uint32_t* queue = waits + k->node_count;
  uint32_t* first = queue + k->node_count;
  uint32_t* list = first + k->node_count + 1;
  for (uint32_t i = 0; i < k->edge_count; i++) {
    waits[k->edges[i].to]++;
    first[k->edges[i].from + 1]++;
  }
  for (uint32_t i = 0; i < k->node_count; i++) first[i + 1] += first[i];
  for (uint32_t i = k->edge_count; i-- > 0;) {
    list[--first[k->edges[i].from + 1]] = i;
  }
  // The counting has moved each start one place on.
  uint32_t done = 0;
  uint32_t ready = 0;
  for (uint32_t i = 0; i < k->node_count; i++) {
    if (waits[i] == 0) queue[ready++] = i;
  }
  while (done < ready) {
    uint32_t node = queue[done++];
    uint32_t stop = node + 1 < k->node_count ? first[node + 2] : k->edge_count;
    for (uint32_t i = first[node + 1]; i < stop; i++) {
      if (--waits[k->edges[list[i]].to] == 0) {
        queue[ready++] = k->edges[list[i]].to;
      }
    }
  }
  bool ok = ready == k->node_count || fail_circle(s, waits);
  free(waits);
  return ok;
}

static bool check_conditions(kilni_cli_sketcher_t* s) {
  const kilni_cli_sketch_t* k = s->sketch;
  for (uint32_t i = 0; i < k->condition_count; i++) {
    if (k->conditions[i].user == KILNI_CLI_GRAPH_NONE) {
      return kilni_cli_sketcher_fail_at(
          s, &k->conditions[i].name,
          "declare it in the braces of the one node that uses it",
          "no node in these braces uses the condition \"%s\"",
          k->conditions[i].name.text);
    }
  }
  return true;
}

// ---- Lifetime of memory ----

// The edges of all nodes, by where one walks from. one-thread
typedef struct walk_t {
  const kilni_cli_sketch_t* sketch;
  bool back;        // against the edges
  uint32_t* first;  // of each node, in `list`; one more than there are
  uint32_t* list;   // nodes
  uint32_t* stack;
  uint32_t* met;  // 0: not
} walk_t;

static bool walk_init(kilni_cli_sketcher_t* s, walk_t* walk, bool back) {
  const kilni_cli_sketch_t* k = s->sketch;
  size_t nodes = (size_t)k->node_count + 1;
  uint32_t* words = calloc(3 * nodes + k->edge_count, sizeof(*words));
  *walk = (walk_t){.sketch = k, .back = back, .first = words};
  if (words == NULL) {
    return kilni_cli_fail(s->error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "no memory to read \"%s\"", k->file);
  }
  walk->stack = words + nodes;
  walk->met = walk->stack + nodes;
  walk->list = walk->met + nodes;
  for (uint32_t i = 0; i < k->edge_count; i++) {
    walk->first[back ? k->edges[i].to : k->edges[i].from]++;
  }
  for (uint32_t i = 1; i < nodes; i++) walk->first[i] += walk->first[i - 1];
  for (uint32_t i = k->edge_count; i-- > 0;) {
    const kilni_cli_graph_edge_t* edge = &k->edges[i];
    uint32_t at = --walk->first[back ? edge->to : edge->from];
    walk->list[at] = back ? edge->from : edge->to;
  }
  return true;
}

// Marks every node that is met from `node`, but not itself.
static void walk_from(walk_t* walk, uint32_t node) {
  uint32_t count = 1;
  memset(walk->met, 0, walk->sketch->node_count * sizeof(*walk->met));
  walk->stack[0] = node;
  while (count > 0) {
    uint32_t at = walk->stack[--count];
    for (uint32_t i = walk->first[at]; i < walk->first[at + 1]; i++) {
      uint32_t next = walk->list[i];
      if (walk->met[next] != 0) continue;
      walk->met[next] = 1;
      walk->stack[count++] = next;
    }
  }
}

// The outermost node that contains `node`, or is it.
static uint32_t outermost(const kilni_cli_sketch_t* k, uint32_t node) {
  while (k->nodes[node].scope != 0) {
    uint32_t scope = KILNI_CLI_GRAPH_NONE;
    uint32_t around = k->node_count;
    while (scope != k->nodes[node].scope && around-- > 0) {
      uint32_t bodies = k->nodes[around].body_count;
      scope = bodies > 0 ? k->nodes[around].body : KILNI_CLI_GRAPH_NONE;
      while (bodies-- > 1 && scope != k->nodes[node].scope) {
        scope = k->scopes[scope].next;
      }
    }
    node = around;
  }
  return node;
}

// The kernel that has `argument`.
static uint32_t graph_sketch_user_of(const kilni_cli_sketch_t* k,
                                     uint32_t argument) {
  uint32_t node = 0;
  while (argument - k->nodes[node].argument >= k->nodes[node].argument_count) {
    node++;
  }
  return node;
}

// Reports how the graph orders `user`, inside `outer`, and the node `other`
// that allocates or frees the memory, and how it must order them.
static bool fail_order(kilni_cli_sketcher_t* s, const walk_t* walk,
                       const kilni_cli_name_t* at, uint32_t user,
                       uint32_t other) {
  const kilni_cli_sketch_t* k = s->sketch;
  uint32_t outer = outermost(k, user);
  bool frees = k->nodes[other].kind == KILNI_CLI_GRAPH_FREE;
  const char* from = k->nodes[frees ? outer : other].name.text;
  const char* to = k->nodes[frees ? other : outer].name.text;
  char fix[4 * KILNI_CLI_GRAPH_MAX_NAME + 80];
  walk_t ahead;
  if (!walk_init(s, &ahead, !walk->back)) return false;
  walk_from(&ahead, other);
  bool turned = ahead.met[outer] != 0;
  free(ahead.first);
  if (turned) {
    (void)snprintf(fix, sizeof(fix),
                   "remove the edges by which \"%s\" comes before \"%s\", and "
                   "draw %s -> %s",
                   to, from, from, to);
  } else {
    (void)snprintf(fix, sizeof(fix), "draw an edge: %s -> %s", from, to);
  }
  if (frees) {
    return kilni_cli_sketcher_fail_at(
        s, at, fix, "the kernel \"%s\" uses \"%s\" %s \"%s\" frees it",
        k->nodes[user].name.text, at->text,
        turned ? "after" : "and need not have ended when",
        k->nodes[other].name.text);
  }
  return kilni_cli_sketcher_fail_at(
      s, at, fix, "the kernel \"%s\" uses \"%s\", which %s allocated %s it",
      k->nodes[user].name.text, at->text, turned ? "is" : "need not be",
      turned ? "after" : "before");
}

// That walk visits every kernel that takes the memory of `allocation`.
static bool check_users(kilni_cli_sketcher_t* s, walk_t* walk,
                        uint32_t allocation, uint32_t from) {
  const kilni_cli_sketch_t* k = s->sketch;
  walk_from(walk, from);
  for (uint32_t i = 0; i < k->argument_count; i++) {
    const kilni_cli_graph_argument_t* argument = &k->arguments[i];
    if (argument->kind != KILNI_CLI_ARGUMENT_MEMORY ||
        argument->index != allocation) {
      continue;
    }
    uint32_t user = graph_sketch_user_of(k, i);
    if (walk->met[outermost(k, user)] == 0) {
      return fail_order(s, walk, &argument->name, user, from);
    }
  }
  return true;
}

// The memory of an allocation exists from its `allocate` to its `free`, by
// edges.
static bool graph_sketch_check_memory(kilni_cli_sketcher_t* s) {
  const kilni_cli_sketch_t* k = s->sketch;
  walk_t on;
  walk_t back;
  bool any = false;
  for (uint32_t i = 0; i < k->argument_count; i++) {
    any = any || k->arguments[i].kind == KILNI_CLI_ARGUMENT_MEMORY;
  }
  if (!any) return true;
  if (!walk_init(s, &on, false)) return false;
  bool ok = walk_init(s, &back, true);
  for (uint32_t i = 0; ok && i < k->node_count; i++) {
    const kilni_cli_graph_node_t* node = &k->nodes[i];
    if (node->kind == KILNI_CLI_GRAPH_ALLOCATE) {
      ok = check_users(s, &on, i, i);
    } else if (node->kind == KILNI_CLI_GRAPH_FREE) {
      ok = check_users(s, &back, node->other, i);
    }
  }
  free(on.first);
  free(back.first);
  return ok;
}

// ---- The whole ----

static bool graph_sketch_start(kilni_cli_sketcher_t* s) {
  kilni_cli_sketch_t* k = s->sketch;
  if (k->size > KILNI_CLI_GRAPH_MAX_BYTES) {
    return kilni_cli_fail(
        s->error, KILN_STATUS_LIMIT_EXCEEDED, "make several graphs of it",
        "\"%s\" has more than %zu bytes", k->file, KILNI_CLI_GRAPH_MAX_BYTES);
  }
  // Each byte goes into one name at most, and each name has a NUL.
  k->names = malloc(2 * k->size + 16);
  s->symbol_space = 256;
  s->symbols = calloc(s->symbol_space, sizeof(*s->symbols));
  if (k->names == NULL || s->symbols == NULL) {
    return kilni_cli_fail(s->error, KILN_STATUS_OUT_OF_MEMORY, NULL,
                          "no memory to read \"%s\"", k->file);
  }
  if (!kilni_cli_sketcher_grow(s, (void**)&k->scopes, 0, 1, sizeof(*k->scopes),
                               "graphs")) {
    return false;
  }
  memset(&k->scopes[0], 0, sizeof(k->scopes[0]));
  k->scopes[0].name.text = "";
  k->scopes[0].parent = KILNI_CLI_GRAPH_NONE;
  k->scopes[0].next = KILNI_CLI_GRAPH_NONE;
  k->scope_count = 1;
  return graph_sketch_scan(s);
}

bool kilni_cli_sketch_init(kilni_cli_sketch_t* out, const char* file,
                           const char* text, size_t size,
                           kilni_cli_error_t* error) {
  memset(out, 0, sizeof(*out));
  out->file = file;
  out->text = text;
  out->size = size;
  kilni_cli_sketcher_t s;
  memset(&s, 0, sizeof(s));
  s.sketch = out;
  s.error = error;
  s.at = text;
  s.looked = text;
  s.end = text + size;
  graph_sketch_begin_line(&s);
  s.usage = "a statement";
  bool ok = graph_sketch_start(&s) && kilni_cli_sketcher_block(&s, 0, 0) &&
            check_doubles(&s) && check_circles(&s) && check_conditions(&s) &&
            graph_sketch_check_memory(&s);
  free(s.symbols);
  free(s.list);
  return ok;
}

void kilni_cli_sketch_deinit(kilni_cli_sketch_t* sketch) {
  free(sketch->codes);
  free(sketch->buffers);
  free(sketch->conditions);
  free(sketch->events);
  free(sketch->nodes);
  free(sketch->edges);
  free(sketch->arguments);
  free(sketch->scopes);
  free(sketch->names);
  memset(sketch, 0, sizeof(*sketch));
}

const char* kilni_cli_graph_kind_word(kilni_cli_graph_kind_t kind) {
  static const char* const WORDS[KILNI_CLI_GRAPH_KINDS] = {
      "kernel", "copy",   "fill", "empty", "allocate", "free",   "child",
      "host",   "record", "wait", "if",    "while",    "switch", "repeat"};
  return WORDS[kind];
}
