// SPDX-License-Identifier: Apache-2.0
//
// cli: misspelt environment variables. Pure.
#ifndef KILN_SRC_CLI_CLI_VARIABLES_H_
#define KILN_SRC_CLI_CLI_VARIABLES_H_

#include <stdbool.h>

enum { KILNI_CLI_VARIABLE_BYTES = 64 };

// The variable of Kiln that `name` resembles; NULL for one of Kiln's own and
// for any other name. For a family, the common prefix if no member is near.
// `out` is space for it.
const char* kilni_cli_variable_meant(const char* name,
                                     char out[KILNI_CLI_VARIABLE_BYTES]);

// Whether it begins like a variable of Kiln, but Kiln does not read it.
bool kilni_cli_variable_is_nobodys(const char* name);

#endif  // KILN_SRC_CLI_CLI_VARIABLES_H_
