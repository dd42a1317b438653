// SPDX-License-Identifier: Apache-2.0
//
// cli: variables of the environment that are misspelt. Pure.
#ifndef KILN_SRC_CLI_CLI_VARIABLES_H_
#define KILN_SRC_CLI_CLI_VARIABLES_H_

#include <stdbool.h>

enum { KILNI_CLI_VARIABLE_BYTES = 64 };

// The variable of Kiln's that `name` looks like, and is not; NULL for one of
// Kiln's own and for any other. Of a family it is the part that all share, if
// no member is near. `out` is space for it.
const char* kilni_cli_variable_meant(const char* name,
                                     char out[KILNI_CLI_VARIABLE_BYTES]);

// Whether it begins as Kiln's do, and nothing of Kiln's reads it.
bool kilni_cli_variable_is_nobodys(const char* name);

#endif  // KILN_SRC_CLI_CLI_VARIABLES_H_
