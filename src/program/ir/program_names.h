// SPDX-License-Identifier: Apache-2.0
//
// program: which words the language has taken.
#ifndef KILN_SRC_PROGRAM_IR_PROGRAM_NAMES_H_
#define KILN_SRC_PROGRAM_IR_PROGRAM_NAMES_H_

#include <stdbool.h>

// Words that begin something. X(NAME, "spelling")
#define KILNI_KEYWORDS(X)                 \
  X(CONST, "const")                       \
  X(TYPE, "type")                         \
  X(FN, "fn")                             \
  X(PROGRAM, "program")                   \
  X(SHARED, "shared")                     \
  X(PRIVATE, "private")                   \
  X(LET, "let")                           \
  X(VAR, "var")                           \
  X(IF, "if")                             \
  X(ELSE, "else")                         \
  X(FOR, "for")                           \
  X(WHILE, "while")                       \
  X(BREAK, "break")                       \
  X(CONTINUE, "continue")                 \
  X(RETURN, "return")                     \
  X(BARRIER, "barrier")                   \
  X(GRID_BARRIER, "grid_barrier")         \
  X(ASYNC_COPY, "async_copy")             \
  X(ASYNC_WAIT, "async_wait")             \
  X(TRAP, "trap")                         \
  X(SUBGROUP_BARRIER, "subgroup_barrier") \
  X(MATRIX, "matrix_multiply_accumulate")

// Words of their own kind.
#define KILNI_OTHER_WORDS(X) \
  X("false")                 \
  X("true")                  \
  X("select")                \
  X("fma")                   \
  X("length")                \
  X("length64")

// Whether the language has that word, which then cannot name anything.
bool kilni_program_name_is_word(const char* name);

// Whether it has the form of a name: letters, digits, _, no digit first, not
// too long.
bool kilni_program_name_is_formed(const char* name);

#endif  // KILN_SRC_PROGRAM_IR_PROGRAM_NAMES_H_
