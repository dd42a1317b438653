// SPDX-License-Identifier: Apache-2.0
//
// cli: which kernel of a file a user means. Pure.
#ifndef KILN_SRC_CLI_RUN_ENTRY_H_
#define KILN_SRC_CLI_RUN_ENTRY_H_

#include "cli/cli_error.h"

// Of `count` kernel names, the index of the one that `entry` means. It is the
// first of these that one kernel alone fits:
//
//   the name in the code           _ZN2ns2tkIfEEvPT_
//   the name in C++, with the      ns::tk<float>(float*)
//   parameters
//   without them                   ns::tk<float>
//   without namespaces, or without tk<float>, ns::tk, tk
//   the arguments of a template
//
// Blanks do not count, nor letters after a number (4u). `entry` NULL is
// the only kernel. NOT_FOUND or INVALID_ARGUMENT list the names as C++ writes
// them, to be written as `where` says ("--entry NAME").
bool kilni_cli_entry_find(const char* const* names, uint32_t count,
                          const char* entry, const char* file,
                          const char* where, uint32_t* out_index,
                          kilni_cli_error_t* error);

enum { KILNI_CLI_ENTRY_SHOWN = 256 };

// A kernel's name in a message: the C++ name without parameters if it can be
// demangled, else the name in the code. Either `name` or `out`.
const char* kilni_cli_entry_shown(const char* name,
                                  char out[KILNI_CLI_ENTRY_SHOWN]);

#endif  // KILN_SRC_CLI_RUN_ENTRY_H_
