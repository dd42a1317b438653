// SPDX-License-Identifier: Apache-2.0
//
// compile: what a source includes, or may include.
#include "compile/compile_scan.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "base/str.h"

// Raw strings without an end in one text, each of which is looked for to the
// end of the text.
enum { MAX_ENDLESS = 64 };

// A place in a text without continued lines. one-thread
typedef struct scan_t {
  const char* at;
  const char* end;
  const char* begin;
  kiln_string_view_t text;  // with its continued lines
  // How far lines are counted: of the text, of the copy, and how many.
  size_t counted;
  size_t joined;
  uint32_t lines;
  kilni_compile_scan_fn_t fn;
  void* user;
  uint32_t endless;
  // The #define that contains the place, with the names of its arguments; no
  // data: none.
  kiln_string_view_t macro;
  kiln_string_view_t params;
  bool asking;  // in what a __has_include asks for
  bool pastes;  // which was reported
  bool ended;
} scan_t;

bool kilni_compile_scan_is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '$' || ((unsigned char)c & 0x80) != 0;
}

static const char kAsks[] = "__has_include";
static const char* const kNames[] = {"__DATE__", "__TIME__", "__TIMESTAMP__",
                                     kAsks};
enum { NAMES = sizeof(kNames) / sizeof(kNames[0]), TIMES = NAMES - 1 };

bool kilni_compile_scan_is_time(kiln_string_view_t word) {
  for (size_t i = 0; i < TIMES; i++) {
    if (kilni_base_sv_equal_cstr(word, kNames[i])) return true;
  }
  return false;
}

static bool is_asks(kiln_string_view_t word, bool* out_next) {
  *out_next = kilni_base_sv_equal_cstr(word, "__has_include_next");
  return *out_next || kilni_base_sv_equal_cstr(word, kAsks);
}

// ---- Names that are put together ----

// One letter is not a token of it: small letters are common names.
static bool is_piece_of_asks(kiln_string_view_t word, size_t at) {
  return (word.size > 1 || kAsks[at] == '_') &&
         at + word.size <= sizeof(kAsks) - 1 &&
         memcmp(kAsks + at, word.data, word.size) == 0;
}

// Nearly every word is none by its first letters.
static bool is_piece(kiln_string_view_t word) {
  if (word.size > 1 && word.size < sizeof(kAsks) - 1 &&
      memchr("_hasinclude", word.data[0], 11) != NULL) {
    for (size_t b = 0; b < sizeof(kAsks) - 1; b++) {
      if (is_piece_of_asks(word, b)) return true;
    }
  }
  if (word.size == 0 || word.size > 12 ||
      memchr("_DATEIMSP", word.data[0], 9) == NULL) {
    return false;
  }
  if (word.size > 2 && word.data[0] == '_' && word.data[1] == '_' &&
      word.data[2] != 'D' && word.data[2] != 'T') {
    return false;
  }
  for (size_t i = 0; i < TIMES; i++) {
    size_t size = strlen(kNames[i]);
    for (size_t b = 0; b + word.size <= size && word.size < size; b++) {
      if (memcmp(kNames[i] + b, word.data, word.size) == 0) return true;
    }
  }
  return false;
}

// Whether it is a common token: it has one letter or none.
static bool is_weak(kiln_string_view_t word) {
  size_t letters = 0;
  for (size_t i = 0; i < word.size; i++) letters += word.data[i] != '_';
  return letters < 2;
}

// Such as "has" and "include": a word of any text.
static bool is_common(kiln_string_view_t word) {
  return memchr(word.data, '_', word.size) == NULL;
}

void kilni_compile_scan_add_piece(kilni_compile_scan_pieces_t* strong,
                                  kilni_compile_scan_pieces_t* weak,
                                  kiln_string_view_t word) {
  for (size_t i = 0; i < NAMES; i++) {
    bool common = is_weak(word) || (i == TIMES && is_common(word));
    kilni_compile_scan_pieces_t* set = weak != NULL && common ? weak : strong;
    size_t size = strlen(kNames[i]);
    for (size_t b = 0; word.size != 0 && b + word.size <= size; b++) {
      if (i == TIMES && !is_piece_of_asks(word, b)) continue;
      if (memcmp(kNames[i] + b, word.data, word.size) != 0) continue;
      set->at[i][b] |= (uint16_t)(1u << (b + word.size - 1));
    }
  }
}

const char* kilni_compile_scan_whole(const kilni_compile_scan_pieces_t* strong,
                                     const kilni_compile_scan_pieces_t* weak) {
  for (size_t i = 0; i < NAMES; i++) {
    size_t size = strlen(kNames[i]);
    bool reached[17] = {true};  // the characters before have been made
    for (size_t b = 0; b < size; b++) {
      uint32_t ends = strong->at[i][b] | weak->at[i][b];
      for (size_t j = b; reached[b] && j < size; j++) {
        if ((ends >> j & 1) != 0) reached[j + 1] = true;
      }
    }
    if (reached[size]) return kNames[i];
  }
  return NULL;
}

// ---- Places ----

static bool scan_is_digit(char c) {
  return c >= '0' && c <= '9';
}

// A backslash that continues a line: how many bytes come after it; else 0.
static size_t continued_at(kiln_string_view_t text, size_t at) {
  if (text.data[at] != '\\' || at + 1 == text.size) return 0;
  size_t more = text.data[at + 1] == '\r' ? 2 : 1;
  return at + more < text.size && text.data[at + more] == '\n' ? more : 0;
}

static char scan_peek(const scan_t* scan, size_t ahead) {
  return (size_t)(scan->end - scan->at) > ahead ? scan->at[ahead] : '\n';
}

static bool at_end(const scan_t* scan) {
  return scan->at == scan->end || scan->ended;
}

static void scan_skip_line(scan_t* scan) {
  const char* end = memchr(scan->at, '\n', (size_t)(scan->end - scan->at));
  scan->at = end != NULL ? end : scan->end;
}

// A comment that begins here: true, and the cursor moves past it.
static bool skip_comment(scan_t* scan) {
  if (at_end(scan) || *scan->at != '/') return false;
  if (scan_peek(scan, 1) == '/') {
    scan_skip_line(scan);
    return true;
  }
  if (scan_peek(scan, 1) != '*') return false;
  for (scan->at += 2; scan->at != scan->end; scan->at++) {
    if (*scan->at == '*' && scan_peek(scan, 1) == '/') {
      scan->at += 2;
      return true;
    }
  }
  return true;
}

// Blanks and comments inside a line.
static void scan_skip_blanks(scan_t* scan) {
  while (!at_end(scan)) {
    char c = *scan->at;
    if (c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f') {
      scan->at++;
    } else if (!skip_comment(scan)) {
      return;
    }
  }
}

static kiln_string_view_t scan_read_word(scan_t* scan) {
  const char* begin = scan->at;
  while (scan->at != scan->end &&
         (kilni_compile_scan_is_word(*scan->at) || scan_is_digit(*scan->at))) {
    scan->at++;
  }
  return kilni_base_sv_make(begin, (size_t)(scan->at - begin));
}

// A string or character: to its end, or that of its line.
static void skip_literal(scan_t* scan) {
  char mark = *scan->at++;
  while (scan->at != scan->end && *scan->at != '\n') {
    char c = *scan->at++;
    if (c == mark) return;
    if (c == '\\' && scan->at != scan->end && *scan->at != '\n') scan->at++;
  }
}

// R"mark( ... )mark". One without an end is taken for an ordinary one, so that
// it does not hide the rest of the text.
static void skip_raw(scan_t* scan) {
  const char* mark = scan->at + 1;
  size_t length = 0;
  while (length <= 16 && mark + length < scan->end && mark[length] != '(' &&
         mark[length] != '\n') {
    length++;
  }
  if (length > 16 || mark + length >= scan->end || mark[length] != '(') {
    skip_literal(scan);
    return;
  }
  for (const char* at = mark + length; scan->end - at > (ptrdiff_t)length + 1;
       at++) {
    if (*at == ')' && memcmp(at + 1, mark, length) == 0 &&
        at[length + 1] == '"') {
      scan->at = at + length + 2;
      return;
    }
  }
  if (++scan->endless > MAX_ENDLESS) scan->ended = true;
  skip_literal(scan);
}

static void skip_number(scan_t* scan) {
  while (scan->at != scan->end) {
    char c = *scan->at;
    bool separator =
        c == '\'' && (scan_is_digit(scan_peek(scan, 1)) ||
                      kilni_compile_scan_is_word(scan_peek(scan, 1)));
    if (!scan_is_digit(c) && !kilni_compile_scan_is_word(c) && c != '.' &&
        !separator) {
      return;
    }
    scan->at++;
  }
}

static void scan_report(scan_t* scan, const kilni_compile_scan_found_t* found) {
  if (!scan->ended && !scan->fn(scan->user, found)) scan->ended = true;
}

static void take_asked(scan_t* scan, kiln_string_view_t word);

static void report_word(scan_t* scan, kiln_string_view_t word) {
  kilni_compile_scan_found_t found = {.kind = KILNI_SCAN_WORD, .name = word};
  bool next = false;
  if (is_asks(word, &next)) {
    take_asked(scan, word);
    return;
  }
  if (kilni_compile_scan_is_time(word)) found.kind = KILNI_SCAN_TIME;
  scan_report(scan, &found);
  if (found.kind == KILNI_SCAN_TIME || !is_piece(word)) return;
  found.kind = KILNI_SCAN_PIECE;
  scan_report(scan, &found);
}

// What is not a word, number or literal.
static void skip_mark(scan_t* scan) {
  bool pastes = (*scan->at == '#' && scan_peek(scan, 1) == '#') ||
                (*scan->at == '%' && scan_peek(scan, 1) == ':' &&
                 scan_peek(scan, 2) == '%' && scan_peek(scan, 3) == ':');
  scan->at++;
  if (!pastes || scan->pastes) return;
  kilni_compile_scan_found_t found = {.kind = KILNI_SCAN_PASTE};
  found.name = kilni_base_sv("##");
  scan->pastes = true;
  scan_report(scan, &found);
}

// ---- Plain text ----

static bool scan_is_plain(char c) {
  return kilni_compile_scan_is_word(c) || scan_is_digit(c) ||
         strchr("./<>+-", c) != NULL;
}

bool kilni_compile_scan_is_plain(kiln_string_view_t text) {
  if (text.data == NULL || memchr(text.data, 0, text.size) != NULL) {
    return false;
  }
  if (text.size >= 2 && text.data[0] == '"') {
    return text.data[text.size - 1] == '"' &&
           memchr(text.data + 1, '"', text.size - 2) == NULL &&
           memchr(text.data, '\n', text.size) == NULL;
  }
  for (size_t i = 0; i < text.size; i++) {
    if (!scan_is_plain(text.data[i])) return false;
  }
  return true;
}

// The rest of a line, or up to `close`, without blanks and comments at its end.
// Without data where it is not plain.
static kiln_string_view_t scan_take_value(scan_t* scan, char close) {
  scan_skip_blanks(scan);
  const char* begin = scan->at;
  const char* end = begin;
  while (!at_end(scan) && *scan->at != '\n' && *scan->at != close) {
    const char* before = scan->at;
    scan_skip_blanks(scan);
    if (scan->at != before) continue;
    if (*scan->at == '"') {
      skip_literal(scan);
    } else if (kilni_compile_scan_is_word(*scan->at)) {
      report_word(scan, scan_read_word(scan));
    } else {
      skip_mark(scan);
    }
    end = scan->at;
  }
  // A blank or a comment inside is not plain either.
  kiln_string_view_t value = kilni_base_sv_make(begin, (size_t)(end - begin));
  if (!kilni_compile_scan_is_plain(value)) value.data = NULL;
  return value;
}

// The line of the text, counted from 1, that a place in the copy comes from;
// never asked for one further ahead than before.
static uint32_t line_at(scan_t* scan, const char* at) {
  size_t place = (size_t)(at - scan->begin);
  while (scan->counted < scan->text.size && scan->joined < place) {
    size_t more = continued_at(scan->text, scan->counted);
    if (more == 0) scan->joined++;
    scan->counted += more;
    if (scan->text.data[scan->counted] == '\n') scan->lines++;
    scan->counted++;
  }
  return scan->lines + 1;
}

static void report_computed(scan_t* scan, bool next, char close) {
  const char* begin = scan->at;
  kilni_compile_scan_found_t found = {.kind = KILNI_SCAN_COMPUTED,
                                      .next = next};
  found.line = line_at(scan, begin);
  found.value = scan_take_value(scan, close);
  found.name = kilni_base_sv_make(begin, (size_t)(scan->at - begin));
  while (found.name.size != 0 &&
         strchr(" \t\r", found.name.data[found.name.size - 1]) != NULL) {
    found.name.size--;
  }
  const char* cut = memchr(begin, '\n', found.name.size);
  if (cut != NULL) found.name.size = (size_t)(cut - begin);
  if (found.name.size != 0) scan_report(scan, &found);
}

// "name" or <name> that begins here; false for anything else.
static bool scan_take_name(scan_t* scan, bool next) {
  if (at_end(scan) || (*scan->at != '"' && *scan->at != '<')) return false;
  char close = *scan->at == '"' ? '"' : '>';
  const char* begin = scan->at + 1;
  const char* at = begin;
  while (at != scan->end && *at != close && *at != '\n') at++;
  if (at == scan->end || *at != close || at == begin) return false;
  // No path has a NUL: it is left to the compiler, and nothing is known of it.
  if (memchr(begin, 0, (size_t)(at - begin)) != NULL) return false;
  scan->at = at + 1;
  kilni_compile_scan_found_t found = {.next = next};
  found.kind = close == '"' ? KILNI_SCAN_QUOTE : KILNI_SCAN_ANGLE;
  found.name = kilni_base_sv_make(begin, (size_t)(at - begin));
  scan_report(scan, &found);
  return true;
}

static void take_include(scan_t* scan, bool next) {
  scan_skip_blanks(scan);
  if (scan_take_name(scan, next) || at_end(scan) || *scan->at == '\n') return;
  report_computed(scan, next, '\n');
}

// The arguments that begin here, without their parentheses.
static kiln_string_view_t params_at(const scan_t* scan) {
  const char* at = scan->at + 1;
  size_t size = 0;
  while (at + size < scan->end && at[size] != ')' && at[size] != '\n') size++;
  return kilni_base_sv_make(at, size);
}

// A macro with arguments is not a part of a header's name.
static void take_define(scan_t* scan) {
  scan_skip_blanks(scan);
  if (at_end(scan) || !kilni_compile_scan_is_word(*scan->at)) return;
  kilni_compile_scan_found_t found = {.kind = KILNI_SCAN_DEFINE};
  found.name = scan_read_word(scan);
  scan->macro = found.name;
  scan->params = kilni_base_sv_make(NULL, 0);
  if (!at_end(scan) && *scan->at == '(') {
    scan->params = params_at(scan);
    return;
  }
  found.value = scan_take_value(scan, '\n');
  scan_report(scan, &found);
}

// ---- What __has_include asks for ----

// How many words the arguments of the macro have, and whether `word` is one.
static size_t params_of(const scan_t* scan, kiln_string_view_t word,
                        bool* out_has) {
  *out_has = false;
  if (scan->params.data == NULL) return 0;
  scan_t names = {.at = scan->params.data,
                  .end = scan->params.data + scan->params.size};
  size_t count = 0;
  while (names.at != names.end) {
    if (!kilni_compile_scan_is_word(*names.at) && !scan_is_digit(*names.at)) {
      names.at++;
      continue;
    }
    if (kilni_base_sv_equal(scan_read_word(&names), word)) *out_has = true;
    count++;
  }
  return count;
}

// <name> that begins here, none of whose words is an argument of the macro.
static bool asks_for_angle(const scan_t* scan) {
  scan_t name = {.at = scan->at, .end = scan->end};
  if (at_end(&name) || *name.at != '<') return false;
  while (!at_end(&name) && *name.at != '\n' && *name.at != '>') {
    if (!kilni_compile_scan_is_word(*name.at)) {
      name.at++;
      continue;
    }
    bool has = false;
    (void)params_of(scan, scan_read_word(&name), &has);
    if (has) return false;
  }
  return !at_end(&name) && *name.at == '>';
}

// True where the macro of one argument queries just that, so that its use names
// the header.
static bool asks_for_argument(scan_t* scan) {
  if (at_end(scan) || !kilni_compile_scan_is_word(*scan->at)) return false;
  bool has = false;
  bool one = params_of(scan, scan_read_word(scan), &has) == 1 && has;
  scan_skip_blanks(scan);
  return one && !at_end(scan) && *scan->at == ')';
}

// __has_include in a #define. A name in quotes is looked up beside the file
// that uses the macro, which may be any file.
static void take_asked_of_macro(scan_t* scan, kiln_string_view_t word,
                                bool next) {
  kilni_compile_scan_found_t found = {.kind = KILNI_SCAN_ASKS, .name = word};
  scan_skip_blanks(scan);
  bool called = !at_end(scan) && *scan->at == '(';
  if (called) {
    scan->at++;
    scan_skip_blanks(scan);
  }
  if (called && asks_for_angle(scan)) {
    report_computed(scan, next, ')');
    return;
  }
  // A macro may also be another name for it.
  bool renames = !called && scan->params.data == NULL &&
                 (at_end(scan) || *scan->at == '\n');
  if (!next && (renames || (called && asks_for_argument(scan)))) {
    found.kind = KILNI_SCAN_ASKER;
    found.name = scan->macro;
  }
  scan_report(scan, &found);
}

// After __has_include, anywhere except in a condition.
static void take_asked(scan_t* scan, kiln_string_view_t word) {
  kilni_compile_scan_found_t found = {.kind = KILNI_SCAN_ASKS, .name = word};
  bool next = false;
  (void)is_asks(word, &next);
  if (scan->asking) {
    scan_report(scan, &found);
    return;
  }
  scan->asking = true;
  if (scan->macro.data != NULL) {
    take_asked_of_macro(scan, word, next);
  } else {
    scan_skip_blanks(scan);
    if (at_end(scan) || *scan->at != '(') {
      scan_report(scan, &found);
    } else {
      scan->at++;
      scan_skip_blanks(scan);
      if (!scan_take_name(scan, next)) report_computed(scan, next, ')');
    }
  }
  scan->asking = false;
}

// defined NAME, defined(NAME): nothing is asked for.
static void skip_defined(scan_t* scan) {
  scan_skip_blanks(scan);
  if (!at_end(scan) && *scan->at == '(') scan->at++;
  scan_skip_blanks(scan);
  if (!at_end(scan) && kilni_compile_scan_is_word(*scan->at)) {
    (void)scan_read_word(scan);
  }
}

// A word of a condition: what __has_include, or a macro for it, queries.
static void take_condition_word(scan_t* scan) {
  kiln_string_view_t word = scan_read_word(scan);
  if (kilni_base_sv_equal_cstr(word, "defined")) {
    skip_defined(scan);
    return;
  }
  bool next = false;
  bool asks = is_asks(word, &next);
  scan_skip_blanks(scan);
  bool called = !at_end(scan) && *scan->at == '(';
  if (called) {
    scan->at++;
    scan_skip_blanks(scan);
    if (scan_take_name(scan, next)) return;
  }
  if (!asks) {
    report_word(scan, word);
  } else if (called) {
    scan->asking = true;
    report_computed(scan, next, ')');
    scan->asking = false;
  } else {
    kilni_compile_scan_found_t found = {.kind = KILNI_SCAN_ASKS, .name = word};
    scan_report(scan, &found);
  }
}

static void scan_take_condition(scan_t* scan) {
  while (!at_end(scan) && *scan->at != '\n') {
    scan_skip_blanks(scan);
    if (at_end(scan) || *scan->at == '\n') return;
    if (scan_is_digit(*scan->at)) {
      skip_number(scan);
    } else if (*scan->at == '\'' || *scan->at == '"') {
      skip_literal(scan);
    } else if (!kilni_compile_scan_is_word(*scan->at)) {
      scan->at++;
    } else {
      take_condition_word(scan);
    }
  }
}

// Directives that ask whether a name is defined, or undefine it.
static bool is_about_a_name(kiln_string_view_t word) {
  static const char* const words[] = {"ifdef", "ifndef", "elifdef", "elifndef",
                                      "undef"};
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
    if (kilni_base_sv_equal_cstr(word, words[i])) return true;
  }
  return false;
}

static void scan_take_directive(scan_t* scan) {
  scan->at += *scan->at == '#' ? 1 : 2;
  scan_skip_blanks(scan);
  if (at_end(scan) || !kilni_compile_scan_is_word(*scan->at)) return;
  kiln_string_view_t word = scan_read_word(scan);
  if (kilni_base_sv_equal_cstr(word, "include") ||
      kilni_base_sv_equal_cstr(word, "import")) {
    take_include(scan, false);
  } else if (kilni_base_sv_equal_cstr(word, "include_next")) {
    take_include(scan, true);
  } else if (kilni_base_sv_equal_cstr(word, "define")) {
    take_define(scan);
  } else if (kilni_base_sv_equal_cstr(word, "if") ||
             kilni_base_sv_equal_cstr(word, "elif")) {
    scan_take_condition(scan);
  } else if (is_about_a_name(word)) {
    skip_defined(scan);
  }
}

static bool is_raw_prefix(kiln_string_view_t word) {
  static const char* const prefixes[] = {"R", "u8R", "uR", "UR", "LR"};
  for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
    if (kilni_base_sv_equal_cstr(word, prefixes[i])) return true;
  }
  return false;
}

static void scan_lines(scan_t* scan) {
  bool fresh = true;  // nothing precedes it on its line
  while (!at_end(scan)) {
    scan_skip_blanks(scan);
    if (at_end(scan)) return;
    char c = *scan->at;
    if (c == '\n') {
      scan->at++;
      scan->macro = kilni_base_sv_make(NULL, 0);
      fresh = true;
      continue;
    }
    if (fresh && (c == '#' || (c == '%' && scan_peek(scan, 1) == ':'))) {
      scan_take_directive(scan);
    } else if (c == '"' || c == '\'') {
      skip_literal(scan);
    } else if (scan_is_digit(c)) {
      skip_number(scan);
    } else if (kilni_compile_scan_is_word(c)) {
      kiln_string_view_t word = scan_read_word(scan);
      report_word(scan, word);
      if (!at_end(scan) && *scan->at == '"' && is_raw_prefix(word)) {
        skip_raw(scan);
      }
    } else {
      skip_mark(scan);
    }
    fresh = false;
  }
}

// A copy without backslashes that continue a line.
static size_t join_lines(kiln_string_view_t text, char* out) {
  size_t size = 0;
  for (size_t i = 0; i < text.size; i++) {
    size_t more = continued_at(text, i);
    if (more == 0) out[size++] = text.data[i];
    i += more;
  }
  return size;
}

// In the raw text: they are replaced before everything else.
static void find_trigraph(scan_t* scan) {
  kiln_string_view_t text = scan->text;
  for (size_t i = 0; i + 2 < text.size; i++) {
    const char* at = memchr(text.data + i, '?', text.size - 2 - i);
    if (at == NULL) return;
    i = (size_t)(at - text.data);
    if (at[1] != '?' || (at[2] != '=' && at[2] != '/' && at[2] != '\'')) {
      continue;
    }
    kilni_compile_scan_found_t found = {.kind = KILNI_SCAN_TRIGRAPH};
    found.name = kilni_base_sv_make(at, 3);
    scan_report(scan, &found);
    return;
  }
}

kiln_status_t kilni_compile_scan_text(kiln_allocator_t allocator,
                                      kiln_string_view_t text,
                                      kilni_compile_scan_fn_t fn, void* user) {
  if (text.size == 0) return kiln_ok();
  void* copy = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_unset(allocator, text.size, &copy));
  size_t size = join_lines(text, copy);
  const char* begin = copy;
  scan_t scan = {.at = begin,
                 .end = begin + size,
                 .begin = begin,
                 .text = text,
                 .fn = fn,
                 .user = user};
  find_trigraph(&scan);
  scan_lines(&scan);
  kilni_base_free(allocator, copy, text.size);
  if (scan.endless <= MAX_ENDLESS) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED,
                 "a text has more than %d unterminated raw strings",
                 (int)MAX_ENDLESS),
      "check that the included files are source text");
}
