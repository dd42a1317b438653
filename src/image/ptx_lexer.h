// SPDX-License-Identifier: Apache-2.0
//
// image: PTX text to tokens. Bounded, never recursive, no allocation.
#ifndef KILN_SRC_IMAGE_PTX_LEXER_H_
#define KILN_SRC_IMAGE_PTX_LEXER_H_

#include "image/ptx.h"

typedef enum kilni_image_ptx_token_kind_t {
  KILNI_PTX_TOKEN_END = 0,
  KILNI_PTX_TOKEN_BAD,  // `problem` gives the reason
  KILNI_PTX_TOKEN_IDENTIFIER,
  KILNI_PTX_TOKEN_DOT_WORD,    // text without the dot
  KILNI_PTX_TOKEN_STRING,      // text without the quotes
  KILNI_PTX_TOKEN_NUMBER,      // `immediate` and `value`
  KILNI_PTX_TOKEN_PUNCTUATION  // `punctuation`
} kilni_image_ptx_token_kind_t;

// Two-character punctuation; single characters are themselves.
enum {
  KILNI_PTX_PUNCT_SHL = 256,
  KILNI_PTX_PUNCT_SHR,
  KILNI_PTX_PUNCT_LE,
  KILNI_PTX_PUNCT_GE,
  KILNI_PTX_PUNCT_EQ,
  KILNI_PTX_PUNCT_NE,
  KILNI_PTX_PUNCT_AND,
  KILNI_PTX_PUNCT_OR
};

// One token; its text is borrowed from the input. thread-compatible
typedef struct kilni_image_ptx_token_t {
  uint32_t kind;
  uint32_t punctuation;
  kiln_string_view_t text;
  uint64_t value;
  uint32_t immediate;  // kilni_image_ptx_immediate_t
  uint32_t line;
  uint32_t column;
  uint32_t reserved;
  const char* start;  // where the token begins in the input
  const char* problem;
} kilni_image_ptx_token_t;

// A place in a text. one-thread
typedef struct kilni_image_ptx_lexer_t {
  const char* begin;
  const char* cursor;
  const char* end;
  const char* line_start;
  uint32_t line;
  uint32_t reserved;
  uint64_t identifier_limit;
  uint64_t string_limit;
} kilni_image_ptx_lexer_t;

void kilni_image_ptx_lexer_init(kilni_image_ptx_lexer_t* lexer,
                                kiln_bytes_view_t text,
                                const kilni_image_ptx_limits_t* limits);

// The next token in general position: ".5" is a number.
void kilni_image_ptx_lexer_next(kilni_image_ptx_lexer_t* lexer,
                                kilni_image_ptx_token_t* token);

// The next token after a mnemonic: ".1d" is a modifier.
void kilni_image_ptx_lexer_next_modifier(kilni_image_ptx_lexer_t* lexer,
                                         kilni_image_ptx_token_t* token);

// Skips `{ ... }` with everything in it, the cursor being after the first
// brace. False if it never ends.
bool kilni_image_ptx_lexer_skip_braces(kilni_image_ptx_lexer_t* lexer);

#endif  // KILN_SRC_IMAGE_PTX_LEXER_H_
