// SPDX-License-Identifier: Apache-2.0
//
// program: tokens of the text form.
#include "program/text/program_lexer.h"

#include <string.h>

#include "program/ir/program_types.h"
#include "program/text/program_number.h"

void kilni_program_lexer_init(kilni_program_lexer_t* lexer,
                              kiln_string_view_t text) {
  lexer->text = text;
  lexer->at = 0;
  lexer->line = 1;
}

static bool lexer_is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool lexer_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_hex_digit(char c) {
  return lexer_is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// The byte `ahead` of the next one; NUL behind the end.
static char lexer_peek(const kilni_program_lexer_t* lexer, uint32_t ahead) {
  size_t at = (size_t)lexer->at + ahead;
  return at < lexer->text.size ? lexer->text.data[at] : 0;
}

static void lexer_skip_space(kilni_program_lexer_t* lexer) {
  for (;;) {
    char c = lexer_peek(lexer, 0);
    if (c == '\n') {
      lexer->line++;
      lexer->at++;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      lexer->at++;
    } else if (c == '/' && lexer_peek(lexer, 1) == '/') {
      while (lexer->at < lexer->text.size && lexer_peek(lexer, 0) != '\n') {
        lexer->at++;
      }
    } else {
      return;
    }
  }
}

static void skip_exponent(kilni_program_lexer_t* lexer,
                          kilni_program_token_t* token) {
  token->is_float = true;
  lexer->at++;
  if (lexer_peek(lexer, 0) == '+' || lexer_peek(lexer, 0) == '-') lexer->at++;
  while (lexer_is_digit(lexer_peek(lexer, 0))) lexer->at++;
}

// The digits, without a suffix.
static void lexer_scan_number(kilni_program_lexer_t* lexer,
                              kilni_program_token_t* token) {
  bool hex = lexer_peek(lexer, 0) == '0' &&
             (lexer_peek(lexer, 1) == 'x' || lexer_peek(lexer, 1) == 'X');
  bool (*is_mine)(char) = hex ? is_hex_digit : lexer_is_digit;
  if (hex) lexer->at += 2;
  while (is_mine(lexer_peek(lexer, 0))) lexer->at++;
  // Not the point of a range, 0..n.
  if (lexer_peek(lexer, 0) == '.' && is_mine(lexer_peek(lexer, 1))) {
    token->is_float = true;
    lexer->at++;
    while (is_mine(lexer_peek(lexer, 0))) lexer->at++;
  }
  char c = lexer_peek(lexer, 0);
  if (hex ? c == 'p' || c == 'P' : c == 'e' || c == 'E') {
    skip_exponent(lexer, token);
  }
}

static uint8_t suffix_type(kiln_string_view_t text) {
  for (uint8_t type = KILN_PROGRAM_TYPE_BOOL + 1; type < KILNI_TYPE_COUNT;
       type++) {
    const char* name = kilni_program_type_name(type);
    if (strlen(name) == text.size && memcmp(name, text.data, text.size) == 0) {
      return type;
    }
  }
  return KILN_PROGRAM_TYPE_NONE;
}

static void lexer_set_bad(kilni_program_token_t* token, const char* bad,
                          const char* fix) {
  token->kind = KILNI_TOKEN_BAD;
  token->bad = bad;
  token->fix = fix;
}

// What is meant by a suffix of another language.
static const char* fix_of_suffix(kiln_string_view_t suffix) {
  char first = suffix.data[0];
  if (first == '_') return "write the digits together: 1000";
  if (suffix.size == 1 && (first == 'f' || first == 'F')) {
    return "write 2.0 without a suffix, which is an f32";
  }
  return "a suffix is a type: 12u8, 1i64, 2.5f16";
}

static const char* fix_of_character(char c) {
  switch (c) {
    case '"':
    case '\'':
      return "there are numbers only: write the character's, as 65u8";
    case '#':
      return "a comment begins with //";
    case '?':
      return "choose by select(condition, a, b)";
    default:
      return "remove it";
  }
}

static void lexer_read_number(kilni_program_lexer_t* lexer,
                              kilni_program_token_t* token) {
  token->kind = KILNI_TOKEN_NUMBER;
  lexer_scan_number(lexer, token);
  uint32_t end = lexer->at;
  token->text =
      (kiln_string_view_t){lexer->text.data + token->at, end - token->at};
  while (lexer_is_letter(lexer_peek(lexer, 0)) ||
         lexer_is_digit(lexer_peek(lexer, 0))) {
    lexer->at++;
  }
  kiln_string_view_t suffix = {lexer->text.data + end, lexer->at - end};
  if (suffix.size != 0) token->suffix = suffix_type(suffix);
  uint64_t bits;
  if (suffix.size != 0 && token->suffix == KILN_PROGRAM_TYPE_NONE) {
    lexer_set_bad(token, "a number with a suffix that is no type of numbers",
                  fix_of_suffix(suffix));
  } else if (token->text.size > KILNI_NUMBER_MAX_BYTES) {
    lexer_set_bad(token, "a number of more than 128 characters",
                  "write it with fewer digits");
  } else if (kilni_program_number_read(token->text, KILN_PROGRAM_TYPE_F64,
                                       false,
                                       &bits) == KILNI_NUMBER_MALFORMED) {
    lexer_set_bad(token, "a number that breaks off",
                  "write it out: 0x1f, 1e3, 0x1.8p3");
  }
}

// The longest sign that stands here; its length.
static uint32_t sign_at(const kilni_program_lexer_t* lexer,
                        uint32_t* out_sign) {
  static const uint32_t kLong[] = {
      KILNI_SIGN3('<', '<', '='), KILNI_SIGN3('>', '>', '='),
      KILNI_SIGN2('<', '<'),      KILNI_SIGN2('>', '>'),
      KILNI_SIGN2('&', '&'),      KILNI_SIGN2('|', '|'),
      KILNI_SIGN2('=', '='),      KILNI_SIGN2('!', '='),
      KILNI_SIGN2('<', '='),      KILNI_SIGN2('>', '='),
      KILNI_SIGN2('+', '='),      KILNI_SIGN2('-', '='),
      KILNI_SIGN2('*', '='),      KILNI_SIGN2('/', '='),
      KILNI_SIGN2('%', '='),      KILNI_SIGN2('&', '='),
      KILNI_SIGN2('|', '='),      KILNI_SIGN2('^', '='),
      KILNI_SIGN2('.', '.'),      KILNI_SIGN2('-', '>')};
  unsigned char a = (unsigned char)lexer_peek(lexer, 0);
  unsigned char b = (unsigned char)lexer_peek(lexer, 1);
  unsigned char c = (unsigned char)lexer_peek(lexer, 2);
  for (size_t i = 0; i < sizeof(kLong) / sizeof(kLong[0]); i++) {
    bool three = kLong[i] >> 16 != 0;
    *out_sign = kLong[i];
    if (kLong[i] == (three ? KILNI_SIGN3(a, b, c) : KILNI_SIGN2(a, b))) {
      return three ? 3 : 2;
    }
  }
  *out_sign = a;
  return a != 0 && strchr("(){}[],;:.+-*/%&|^!~<>=", a) != NULL ? 1 : 0;
}

void kilni_program_lexer_next(kilni_program_lexer_t* lexer,
                              kilni_program_token_t* out_token) {
  lexer_skip_space(lexer);
  memset(out_token, 0, sizeof(*out_token));
  out_token->at = lexer->at;
  out_token->line = lexer->line;
  const char* start = lexer->text.data + lexer->at;
  char c = lexer_peek(lexer, 0);
  if (lexer->at >= lexer->text.size) {
    out_token->kind = KILNI_TOKEN_END;
    return;
  }
  if (lexer_is_digit(c)) {
    lexer_read_number(lexer, out_token);
    return;
  }
  if (lexer_is_letter(c)) {
    out_token->kind = KILNI_TOKEN_NAME;
    while (lexer_is_letter(lexer_peek(lexer, 0)) ||
           lexer_is_digit(lexer_peek(lexer, 0))) {
      lexer->at++;
    }
  } else {
    uint32_t size = sign_at(lexer, &out_token->sign);
    out_token->kind = KILNI_TOKEN_SIGN;
    if (size == 0) {
      lexer_set_bad(out_token, "a character that the language does not use",
                    fix_of_character(c));
    }
    lexer->at += size == 0 ? 1 : size;
  }
  out_token->text = (kiln_string_view_t){start, lexer->at - out_token->at};
}

kiln_string_view_t kilni_program_lexer_place(kiln_string_view_t text,
                                             uint32_t at, uint32_t* out_line,
                                             uint32_t* out_column) {
  uint32_t line = 1, start = 0;
  for (uint32_t i = 0; i < at && i < text.size; i++) {
    if (text.data[i] == '\n') {
      line++;
      start = i + 1;
    }
  }
  uint32_t end = start;
  while (end < text.size && text.data[end] != '\n' && text.data[end] != '\r') {
    end++;
  }
  *out_line = line;
  *out_column = at - start + 1;
  return (kiln_string_view_t){text.data + start, end - start};
}
