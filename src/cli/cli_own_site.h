// SPDX-License-Identifier: Apache-2.0
//
// cli: the Python environment that the command was installed into.
#ifndef KILN_SRC_CLI_CLI_OWN_SITE_H_
#define KILN_SRC_CLI_CLI_OWN_SITE_H_

#include <stdbool.h>
#include <stddef.h>

// Writes the site-packages folder that the program at `program`
// (PREFIX/bin/kiln) was installed into as a wheel, if NVIDIA's wheels are there
// too. False where it was not, or they are not.
bool kilni_cli_own_site_of(const char* program, char* out, size_t capacity);

// The same for this program.
bool kilni_cli_own_site(char* out, size_t capacity);

#endif  // KILN_SRC_CLI_CLI_OWN_SITE_H_
