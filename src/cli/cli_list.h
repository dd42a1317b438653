// SPDX-License-Identifier: Apache-2.0
//
// cli: a text that may be a list of numbers, analysed to suggest how to convert
// it to raw bytes. Pure.
#ifndef KILN_SRC_CLI_CLI_LIST_H_
#define KILN_SRC_CLI_CLI_LIST_H_

#include "cli/cli_array.h"

// The contents of a text. thread-safe
typedef struct kilni_cli_list_t {
  // Nothing but numbers, which blanks, lines and one kind of separator keep
  // apart: no empty cells, no words, no commas that may belong to a number.
  bool is_plain;
  bool has_head;      // the first line has no number
  bool is_whole;      // none has a point or an exponent
  uint64_t greatest;  // of those that are whole and not negative
  uint64_t least;     // the same of negative ones, without the sign
} kilni_cli_list_t;

void kilni_cli_list_look(const uint8_t* text, size_t size,
                         kilni_cli_list_t* out);

// Whether every number of a plain list fits the type.
bool kilni_cli_list_fits(const kilni_cli_list_t* list, kilni_cli_type_t type);

#endif  // KILN_SRC_CLI_CLI_LIST_H_
