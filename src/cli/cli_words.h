// SPDX-License-Identifier: Apache-2.0
//
// cli: a list of words.
#ifndef KILN_SRC_CLI_CLI_WORDS_H_
#define KILN_SRC_CLI_CLI_WORDS_H_

#include "cli/cli_buffer.h"

// Words, one after the other. one-thread
//
// Zero is the empty list.
typedef struct kilni_cli_words_t {
  kilni_cli_buffer_t text;  // each ends with a NUL
  size_t count;
} kilni_cli_words_t;

void kilni_cli_words_deinit(kilni_cli_words_t* words);

// Adds a word; with `once`, only if the list does not have it.
bool kilni_cli_words_add(kilni_cli_words_t* words, const char* word,
                         kilni_cli_error_t* error);
bool kilni_cli_words_add_once(kilni_cli_words_t* words, const char* word,
                              kilni_cli_error_t* error);

// The word after `word`, the first one for NULL; NULL at the end. Borrowed
// until a word is added.
const char* kilni_cli_words_next(const kilni_cli_words_t* words,
                                 const char* word);

#endif  // KILN_SRC_CLI_CLI_WORDS_H_
