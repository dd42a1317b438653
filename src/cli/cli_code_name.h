// SPDX-License-Identifier: Apache-2.0
//
// cli: what the name of a code file says is in it. Pure.
#ifndef KILN_SRC_CLI_CLI_CODE_NAME_H_
#define KILN_SRC_CLI_CLI_CODE_NAME_H_

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli_error.h"

// Whether a text ends in a suffix, such as ".ptx", after something else; case
// does not count.
bool kilni_cli_ends_in(const char* text, const char* suffix);

// The KILN_CODE_FORMAT_* that a name ends in: .ptx, .cubin, .ltoir or
// .relocatable; 0: it ends in none of those.
uint32_t kilni_cli_code_name_format(const char* path);

// Whether code of `format` may be written under a name: no name may say that
// something else is in the file. `asked`: --output says what it is, so that a
// name of no code format will do. NULL is any name's.
bool kilni_cli_code_name_check(const char* path, uint32_t format, bool asked,
                               kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_CLI_CODE_NAME_H_
