// SPDX-License-Identifier: Apache-2.0
//
// program: tokens of the text form. No allocation, no recursion.
#ifndef KILN_SRC_PROGRAM_TEXT_PROGRAM_LEXER_H_
#define KILN_SRC_PROGRAM_TEXT_PROGRAM_LEXER_H_

#include "kiln/api.h"

typedef enum kilni_program_token_kind_t {
  KILNI_TOKEN_END,
  KILNI_TOKEN_NAME,
  KILNI_TOKEN_NUMBER,
  KILNI_TOKEN_SIGN,
  KILNI_TOKEN_BAD,  // no token; `bad` says why
} kilni_program_token_kind_t;

// A sign of up to three characters as one number, for switch and tables.
#define KILNI_SIGN1(a)       ((uint32_t)(a))
#define KILNI_SIGN2(a, b)    ((uint32_t)(a) | (uint32_t)(b) << 8)
#define KILNI_SIGN3(a, b, c) (KILNI_SIGN2(a, b) | (uint32_t)(c) << 16)

typedef struct kilni_program_token_t {
  kilni_program_token_kind_t kind;
  kiln_string_view_t text;  // of a number without its suffix
  uint32_t at;              // offset of its first byte
  uint32_t line;
  uint32_t sign;    // KILNI_SIGN*
  uint8_t suffix;   // of a number: KILN_PROGRAM_TYPE_*, 0 without
  bool is_float;    // of a number: it has a point or an exponent
  const char* bad;  // static
  const char* fix;  // what to write in its place; static, or NULL
} kilni_program_token_t;

typedef struct kilni_program_lexer_t {
  kiln_string_view_t text;
  uint32_t at;
  uint32_t line;
} kilni_program_lexer_t;

// `text` has at most UINT32_MAX - 1 bytes.
void kilni_program_lexer_init(kilni_program_lexer_t* lexer,
                              kiln_string_view_t text);

// The next token; END again and again behind the last.
void kilni_program_lexer_next(kilni_program_lexer_t* lexer,
                              kilni_program_token_t* out_token);

// Line and column of an offset, both from 1, and the whole line.
kiln_string_view_t kilni_program_lexer_place(kiln_string_view_t text,
                                             uint32_t at, uint32_t* out_line,
                                             uint32_t* out_column);

#endif  // KILN_SRC_PROGRAM_TEXT_PROGRAM_LEXER_H_
