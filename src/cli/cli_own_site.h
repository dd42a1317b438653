// SPDX-License-Identifier: Apache-2.0
//
// cli: the Python environment that the command was installed into.
#ifndef KILN_SRC_CLI_CLI_OWN_SITE_H_
#define KILN_SRC_CLI_CLI_OWN_SITE_H_

#include <stdbool.h>
#include <stddef.h>

// The same for this program.
bool kilni_cli_own_site(char* out, size_t capacity);

#endif  // KILN_SRC_CLI_CLI_OWN_SITE_H_
