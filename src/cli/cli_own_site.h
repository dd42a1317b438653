// SPDX-License-Identifier: Apache-2.0
//
// cli: the Python environment that the command was installed into.
#ifndef KILN_SRC_CLI_CLI_OWN_SITE_H_
#define KILN_SRC_CLI_CLI_OWN_SITE_H_

#include <stdbool.h>
#include <stddef.h>

// Writes the site-packages folder with the wheels meant for this program: the
// one that it was installed into as a wheel, if that contains NVIDIA's wheels
// too or is that of an isolated build (`*out_isolated`), which sees no other.
// False if there is none.
bool kilni_cli_own_site(char* out, size_t capacity, bool* out_isolated);

#endif  // KILN_SRC_CLI_CLI_OWN_SITE_H_
