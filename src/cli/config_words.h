// SPDX-License-Identifier: Apache-2.0
//
// cli: folders and flags of a plan.
#ifndef KILN_SRC_CLI_CONFIG_WORDS_H_
#define KILN_SRC_CLI_CONFIG_WORDS_H_

#include "cli/config_plan.h"

// Fills the lists of a plan from its components.
bool kilni_cli_config_words_fill(kilni_cli_config_t* config);

// The folder of a component: for headers the one for -I, else that of the file.
// False if the name does not fit.
bool kilni_cli_config_folder(const kilni_cli_config_piece_t* piece, char* out,
                             size_t capacity);

#endif  // KILN_SRC_CLI_CONFIG_WORDS_H_
