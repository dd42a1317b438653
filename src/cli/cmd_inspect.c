// SPDX-License-Identifier: Apache-2.0
//
// cli: `kiln inspect`: what is in a code file.
#include "cli/cli_command.h"

extern const kilni_cli_command_t kilni_cli_command_inspect;
