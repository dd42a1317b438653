// SPDX-License-Identifier: Apache-2.0
//
// image: PTX text to tokens.
#include "image/ptx_lexer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  FLOAT_TEXT = 512,        // characters of one decimal number
  EXPONENT_LIMIT = 100000  // far outside any double
};

// What identifiers go on with, a bit for each of the first 128 characters:
// letters, digits, '_' and '$'.
static const uint64_t kFollows[2] = {
    UINT64_C(1) << '$' | UINT64_C(0x3ff) << '0',
    UINT64_C(0x3ffffff) << ('A' - 64) | UINT64_C(1) << ('_' - 64) |
        UINT64_C(0x3ffffff) << ('a' - 64)};

static bool ptx_lexer_is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool ptx_lexer_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_follow(char c) {
  unsigned char at = (unsigned char)c;
  return at < 128 && (kFollows[at / 64] >> (at % 64) & 1) != 0;
}

static int hex_value(char c) {
  if (ptx_lexer_is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The character `ahead` of the cursor; NUL past the end.
static char ptx_lexer_peek(const kilni_image_ptx_lexer_t* lexer, size_t ahead) {
  size_t left = (size_t)(lexer->end - lexer->cursor);
  return ahead < left ? lexer->cursor[ahead] : '\0';
}

void kilni_image_ptx_lexer_init(kilni_image_ptx_lexer_t* lexer,
                                kiln_bytes_view_t text,
                                const kilni_image_ptx_limits_t* limits) {
  memset(lexer, 0, sizeof(*lexer));
  size_t size = text.size;
  // NVRTC counts a terminating NUL into its size.
  if (size > 0 && text.data[size - 1] == 0) size--;
  lexer->begin = size > 0 ? (const char*)text.data : "";
  lexer->cursor = lexer->begin;
  lexer->end = lexer->begin + size;
  lexer->line_start = lexer->begin;
  lexer->line = 1;
  lexer->identifier_limit = limits->identifier_bytes;
  lexer->string_limit = limits->string_bytes;
}

// Passes over what an identifier goes on with.
static void ptx_lexer_skip_follows(kilni_image_ptx_lexer_t* lexer) {
  const char* at = lexer->cursor;
  while (at != lexer->end) {
    unsigned char c = (unsigned char)*at;
    if (c >= 128 || (kFollows[c / 64] >> (c % 64) & 1) == 0) break;
    at++;
  }
  lexer->cursor = at;
}

static void new_line(kilni_image_ptx_lexer_t* lexer) {
  lexer->line++;
  lexer->line_start = lexer->cursor;
}

static void start_token(const kilni_image_ptx_lexer_t* lexer,
                        kilni_image_ptx_token_t* token) {
  memset(token, 0, sizeof(*token));
  token->start = lexer->cursor;
  token->line = lexer->line;
  token->column = (uint32_t)(lexer->cursor - lexer->line_start) + 1;
}

static void ptx_lexer_set_bad(kilni_image_ptx_token_t* token,
                              const char* problem) {
  token->kind = KILNI_PTX_TOKEN_BAD;
  token->problem = problem;
}

// False at a comment without an end, which `token` then points at.
static bool ptx_lexer_skip_space(kilni_image_ptx_lexer_t* lexer,
                                 kilni_image_ptx_token_t* token) {
  while (lexer->cursor != lexer->end) {
    char c = *lexer->cursor;
    if (c == '\n') {
      lexer->cursor++;
      new_line(lexer);
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      lexer->cursor++;
    } else if (c == '/' && ptx_lexer_peek(lexer, 1) == '/') {
      while (lexer->cursor != lexer->end && *lexer->cursor != '\n') {
        lexer->cursor++;
      }
    } else if (c == '/' && ptx_lexer_peek(lexer, 1) == '*') {
      start_token(lexer, token);
      lexer->cursor += 2;
      while (!(ptx_lexer_peek(lexer, 0) == '*' &&
               ptx_lexer_peek(lexer, 1) == '/')) {
        if (lexer->cursor == lexer->end) return false;
        if (*lexer->cursor++ == '\n') new_line(lexer);
      }
      lexer->cursor += 2;
    } else {
      return true;
    }
  }
  return true;
}

static void ptx_lexer_take_text(kilni_image_ptx_lexer_t* lexer,
                                kilni_image_ptx_token_t* token,
                                const char* first, uint32_t kind) {
  token->kind = kind;
  token->text.data = first;
  token->text.size = (size_t)(lexer->cursor - first);
  if (token->text.size > lexer->identifier_limit) {
    ptx_lexer_set_bad(token,
                      "an identifier longer than the limit identifier_bytes");
  }
}

static void lex_identifier(kilni_image_ptx_lexer_t* lexer,
                           kilni_image_ptx_token_t* token) {
  const char* first = lexer->cursor++;
  ptx_lexer_skip_follows(lexer);
  ptx_lexer_take_text(lexer, token, first, KILNI_PTX_TOKEN_IDENTIFIER);
}

// The cursor is on the dot and a word follows.
static void lex_dot_word(kilni_image_ptx_lexer_t* lexer,
                         kilni_image_ptx_token_t* token) {
  const char* first = ++lexer->cursor;
  for (;;) {
    ptx_lexer_skip_follows(lexer);
    if (ptx_lexer_peek(lexer, 0) != ':' || ptx_lexer_peek(lexer, 1) != ':' ||
        !is_follow(ptx_lexer_peek(lexer, 2))) {
      break;
    }
    lexer->cursor += 2;
  }
  ptx_lexer_take_text(lexer, token, first, KILNI_PTX_TOKEN_DOT_WORD);
}

static void lex_string(kilni_image_ptx_lexer_t* lexer,
                       kilni_image_ptx_token_t* token) {
  const char* first = ++lexer->cursor;
  while (lexer->cursor != lexer->end && *lexer->cursor != '"') {
    if (*lexer->cursor == '\n') break;
    if (*lexer->cursor == '\\' && ptx_lexer_peek(lexer, 1) != '\n' &&
        lexer->cursor + 1 != lexer->end) {
      lexer->cursor++;
    }
    lexer->cursor++;
  }
  if (ptx_lexer_peek(lexer, 0) != '"') {
    ptx_lexer_set_bad(token, "a string that never ends");
    return;
  }
  token->kind = KILNI_PTX_TOKEN_STRING;
  token->text.data = first;
  token->text.size = (size_t)(lexer->cursor - first);
  if (token->text.size > lexer->string_limit) {
    ptx_lexer_set_bad(token, "a string longer than the limit string_bytes");
  }
  lexer->cursor++;
}

// 0fXXXXXXXX and 0dXXXXXXXXXXXXXXXX.
static void lex_bits_float(kilni_image_ptx_lexer_t* lexer,
                           kilni_image_ptx_token_t* token, unsigned digits,
                           uint32_t immediate) {
  lexer->cursor += 2;
  uint64_t value = 0;
  for (unsigned i = 0; i < digits; i++) {
    int digit = hex_value(ptx_lexer_peek(lexer, 0));
    if (digit < 0) {
      ptx_lexer_set_bad(token, digits == 8
                                   ? "0f needs exactly 8 hexadecimal digits"
                                   : "0d needs exactly 16 hexadecimal digits");
      return;
    }
    value = value << 4 | (uint64_t)digit;
    lexer->cursor++;
  }
  if (is_follow(ptx_lexer_peek(lexer, 0))) {
    ptx_lexer_set_bad(token, digits == 8
                                 ? "0f needs exactly 8 hexadecimal digits"
                                 : "0d needs exactly 16 hexadecimal digits");
    return;
  }
  token->value = value;
  token->immediate = immediate;
}

static void lex_integer(kilni_image_ptx_lexer_t* lexer,
                        kilni_image_ptx_token_t* token) {
  unsigned base = 10;
  if (ptx_lexer_peek(lexer, 0) == '0') {
    char c = ptx_lexer_peek(lexer, 1);
    if (c == 'x' || c == 'X') base = 16;
    if (c == 'b' || c == 'B') base = 2;
    if (ptx_lexer_is_digit(c)) base = 8;
    if (base == 16 || base == 2) lexer->cursor += 2;
  }
  uint64_t value = 0;
  unsigned digits = 0;
  for (;; digits++) {
    int digit = hex_value(ptx_lexer_peek(lexer, 0));
    if (digit < 0 || (unsigned)digit >= base) break;
    if (value > (UINT64_MAX - (unsigned)digit) / base) {
      ptx_lexer_set_bad(token, "an integer that does not fit 64 bits");
      return;
    }
    value = value * base + (unsigned)digit;
    lexer->cursor++;
  }
  bool is_unsigned = value > (uint64_t)INT64_MAX;
  if (digits > 0 && ptx_lexer_peek(lexer, 0) == 'U') {
    is_unsigned = true;
    lexer->cursor++;
  }
  if (digits == 0 || is_follow(ptx_lexer_peek(lexer, 0))) {
    ptx_lexer_set_bad(token, "a malformed number");
    return;
  }
  token->value = value;
  token->immediate =
      is_unsigned ? KILNI_PTX_IMMEDIATE_U64 : KILNI_PTX_IMMEDIATE_S64;
}

// Digits are passed to strtod without their point, whose spelling depends on
// the program's locale.
static void lex_decimal_float(kilni_image_ptx_lexer_t* lexer,
                              kilni_image_ptx_token_t* token) {
  char text[FLOAT_TEXT + 16];
  size_t size = 0;
  long scale = 0;
  bool point = false;
  unsigned digits = 0;
  for (;; lexer->cursor++) {
    char c = ptx_lexer_peek(lexer, 0);
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (!ptx_lexer_is_digit(c)) break;
    digits++;
    if (size == FLOAT_TEXT) {
      ptx_lexer_set_bad(token, "a number of more than 512 digits");
      return;
    }
    text[size++] = c;
    if (point) scale--;
  }
  if (ptx_lexer_peek(lexer, 0) == 'e' || ptx_lexer_peek(lexer, 0) == 'E') {
    lexer->cursor++;
    bool negative = ptx_lexer_peek(lexer, 0) == '-';
    if (negative || ptx_lexer_peek(lexer, 0) == '+') lexer->cursor++;
    if (!ptx_lexer_is_digit(ptx_lexer_peek(lexer, 0))) digits = 0;
    long exponent = 0;
    for (; ptx_lexer_is_digit(ptx_lexer_peek(lexer, 0)); lexer->cursor++) {
      exponent = exponent * 10 + (*lexer->cursor - '0');
      if (exponent > EXPONENT_LIMIT) exponent = EXPONENT_LIMIT;
    }
    scale += negative ? -exponent : exponent;
  }
  if (digits == 0 || is_follow(ptx_lexer_peek(lexer, 0))) {
    ptx_lexer_set_bad(token, "a malformed number");
    return;
  }
  text[size++] = 'e';
  if (scale < 0) text[size++] = '-';
  unsigned long left = (unsigned long)(scale < 0 ? -scale : scale);
  for (unsigned long unit = 1000000; unit > 0; unit /= 10) {
    text[size++] = (char)('0' + left / unit % 10);
  }
  text[size] = '\0';
  double number = strtod(text, NULL);
  if (isinf(number)) {
    ptx_lexer_set_bad(token, "a number too large for a double");
    return;
  }
  memcpy(&token->value, &number, sizeof(number));
  token->immediate = KILNI_PTX_IMMEDIATE_F64;
}

static bool looks_like_float(const kilni_image_ptx_lexer_t* lexer) {
  size_t i = 0;
  while (ptx_lexer_is_digit(ptx_lexer_peek(lexer, i))) i++;
  char c = ptx_lexer_peek(lexer, i);
  if (c == '.') return true;
  return (c == 'e' || c == 'E') && i > 0;
}

static void lex_number(kilni_image_ptx_lexer_t* lexer,
                       kilni_image_ptx_token_t* token) {
  token->kind = KILNI_PTX_TOKEN_NUMBER;
  const char* first = lexer->cursor;
  char second = ptx_lexer_peek(lexer, 1);
  if (ptx_lexer_peek(lexer, 0) == '0' && (second == 'f' || second == 'F')) {
    lex_bits_float(lexer, token, 8, KILNI_PTX_IMMEDIATE_F32);
  } else if (ptx_lexer_peek(lexer, 0) == '0' &&
             (second == 'd' || second == 'D')) {
    lex_bits_float(lexer, token, 16, KILNI_PTX_IMMEDIATE_F64);
  } else if (looks_like_float(lexer)) {
    lex_decimal_float(lexer, token);
  } else {
    lex_integer(lexer, token);
  }
  token->text.data = first;
  token->text.size = (size_t)(lexer->cursor - first);
}

static void lex_punctuation(kilni_image_ptx_lexer_t* lexer,
                            kilni_image_ptx_token_t* token) {
  static const struct {
    char first;
    char second;
    uint32_t code;
  } kPairs[] = {
      {'<', '<', KILNI_PTX_PUNCT_SHL}, {'>', '>', KILNI_PTX_PUNCT_SHR},
      {'<', '=', KILNI_PTX_PUNCT_LE},  {'>', '=', KILNI_PTX_PUNCT_GE},
      {'=', '=', KILNI_PTX_PUNCT_EQ},  {'!', '=', KILNI_PTX_PUNCT_NE},
      {'&', '&', KILNI_PTX_PUNCT_AND}, {'|', '|', KILNI_PTX_PUNCT_OR},
  };
  char c = *lexer->cursor;
  token->kind = KILNI_PTX_TOKEN_PUNCTUATION;
  token->punctuation = (unsigned char)c;
  token->text.data = lexer->cursor;
  token->text.size = 1;
  char d = ptx_lexer_peek(lexer, 1);
  for (size_t i = 0; i < sizeof(kPairs) / sizeof(kPairs[0]); i++) {
    if (c == kPairs[i].first && d == kPairs[i].second) {
      token->punctuation = kPairs[i].code;
      token->text.size = 2;
    }
  }
  if (c == '\0' || strchr("{}[]()<>,;:=+-*/%&|^~!?@.", c) == NULL) {
    ptx_lexer_set_bad(token, "a character that PTX does not allow");
  }
  lexer->cursor += token->text.size;
}

static void lex_any(kilni_image_ptx_lexer_t* lexer,
                    kilni_image_ptx_token_t* token, bool modifier) {
  if (!ptx_lexer_skip_space(lexer, token)) {
    ptx_lexer_set_bad(token, "a comment that never ends");
    return;
  }
  start_token(lexer, token);
  if (lexer->cursor == lexer->end) return;  // END
  char c = *lexer->cursor;
  char d = ptx_lexer_peek(lexer, 1);
  if (ptx_lexer_is_letter(c)) {
    lex_identifier(lexer, token);
  } else if (c == '_' || ((c == '$' || c == '%') && is_follow(d))) {
    lex_identifier(lexer, token);
  } else if (c == '.' &&
             (modifier ? is_follow(d) : ptx_lexer_is_letter(d) || d == '_')) {
    lex_dot_word(lexer, token);
  } else if (ptx_lexer_is_digit(c) || (c == '.' && ptx_lexer_is_digit(d))) {
    lex_number(lexer, token);
  } else if (c == '"') {
    lex_string(lexer, token);
  } else {
    lex_punctuation(lexer, token);
  }
}

void kilni_image_ptx_lexer_next(kilni_image_ptx_lexer_t* lexer,
                                kilni_image_ptx_token_t* token) {
  lex_any(lexer, token, false);
}

void kilni_image_ptx_lexer_next_modifier(kilni_image_ptx_lexer_t* lexer,
                                         kilni_image_ptx_token_t* token) {
  lex_any(lexer, token, true);
}

bool kilni_image_ptx_lexer_skip_braces(kilni_image_ptx_lexer_t* lexer) {
  size_t depth = 1;
  kilni_image_ptx_token_t token;
  while (depth > 0) {
    // Debug sections contain bytes and labels only; a bad token inside is not
    // checked, but it must end and the cursor must move.
    const char* before = lexer->cursor;
    kilni_image_ptx_lexer_next(lexer, &token);
    if (token.kind == KILNI_PTX_TOKEN_END) return false;
    if (lexer->cursor == before) return false;
    if (token.kind != KILNI_PTX_TOKEN_PUNCTUATION) continue;
    if (token.punctuation == '{') depth++;
    if (token.punctuation == '}') depth--;
  }
  return true;
}
