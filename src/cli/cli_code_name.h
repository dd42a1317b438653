// SPDX-License-Identifier: Apache-2.0
//
// cli: the format that the name of a code file implies. Pure.
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

// Whether code of `format` may be written under a name: the name must not imply
// another format. `asked`: --output gave the format, so any name that implies
// none will do. NULL is always accepted.
bool kilni_cli_code_name_check(const char* path, uint32_t format, bool asked,
                               kilni_cli_error_t* error);

#endif  // KILN_SRC_CLI_CLI_CODE_NAME_H_
