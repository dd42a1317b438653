// SPDX-License-Identifier: Apache-2.0
//
// cli: a list of words.
#include "cli/cli_words.h"

#include <string.h>

void kilni_cli_words_deinit(kilni_cli_words_t* words) {
  kilni_cli_buffer_deinit(&words->text);
  words->count = 0;
}

bool kilni_cli_words_add(kilni_cli_words_t* words, const char* word,
                         kilni_cli_error_t* error) {
  if (!kilni_cli_buffer_add(&words->text, word, strlen(word) + 1, error)) {
    return false;
  }
  words->count++;
  return true;
}

bool kilni_cli_words_add_once(kilni_cli_words_t* words, const char* word,
                              kilni_cli_error_t* error) {
  const char* at = NULL;
  while ((at = kilni_cli_words_next(words, at)) != NULL) {
    if (strcmp(at, word) == 0) return true;
  }
  return kilni_cli_words_add(words, word, error);
}

const char* kilni_cli_words_next(const kilni_cli_words_t* words,
                                 const char* word) {
  const char* first = (const char*)words->text.data;
  if (words->count == 0) return NULL;
  if (word == NULL) return first;
  word += strlen(word) + 1;
  return word < first + words->text.size ? word : NULL;
}
