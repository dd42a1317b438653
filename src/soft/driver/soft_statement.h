// SPDX-License-Identifier: Apache-2.0
//
// soft: a PTX text as the statements at its top level, for the linker.
//
// Not the reader of PTX, which is image/: a text comes here after that one has
// taken it, and all that is wanted is where each statement begins and ends.
#ifndef KILN_SRC_SOFT_DRIVER_SOFT_STATEMENT_H_
#define KILN_SRC_SOFT_DRIVER_SOFT_STATEMENT_H_

#include "kiln/api.h"

typedef enum kilni_soft_word_kind_t {
  KILNI_SOFT_WORD_END = 0,
  KILNI_SOFT_WORD_NAME,
  KILNI_SOFT_WORD_DOT,  // with its dot
  KILNI_SOFT_WORD_STRING,
  KILNI_SOFT_WORD_NUMBER,
  KILNI_SOFT_WORD_MARK,  // one character
} kilni_soft_word_kind_t;

// A word of PTX. thread-compatible
typedef struct kilni_soft_word_t {
  kilni_soft_word_kind_t kind;
  uint32_t reserved;
  kiln_string_view_t text;
} kilni_soft_word_t;

// The next word of `*inout_rest`, which moves past it. Comments and blanks
// before it are skipped.
kilni_soft_word_t kilni_soft_word_next(kiln_string_view_t* inout_rest);

typedef enum kilni_soft_statement_kind_t {
  KILNI_SOFT_STATEMENT_HEAD = 0,  // .version, .target, .address_size
  KILNI_SOFT_STATEMENT_FILE,
  KILNI_SOFT_STATEMENT_SECTION,
  KILNI_SOFT_STATEMENT_FUNCTION,
  KILNI_SOFT_STATEMENT_VARIABLE,
  KILNI_SOFT_STATEMENT_OTHER,
} kilni_soft_statement_kind_t;

// One statement; all of it borrows from the text. thread-compatible
typedef struct kilni_soft_statement_t {
  kilni_soft_statement_kind_t kind;
  bool has_body;  // a function that is defined here
  bool is_entry;
  bool is_shared;
  bool has_several;            // variables of one statement
  kiln_string_view_t text;     //
  kiln_string_view_t first;    // its first word
  kiln_string_view_t second;   // the following word
  kiln_string_view_t name;     // of what it declares
  kiln_string_view_t linkage;  // ".extern" and its like; empty: none
  const char* head_end;        // before `{`, `=` or `;`
} kilni_soft_statement_t;

// The next statement; false at the end of the text.
bool kilni_soft_statement_next(kiln_string_view_t* inout_rest,
                               kilni_soft_statement_t* out_statement);

#endif  // KILN_SRC_SOFT_DRIVER_SOFT_STATEMENT_H_
