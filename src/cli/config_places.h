// SPDX-License-Identifier: Apache-2.0
//
// cli: the places that a user names for a toolkit, held against where it was
// found.
#ifndef KILN_SRC_CLI_CONFIG_PLACES_H_
#define KILN_SRC_CLI_CONFIG_PLACES_H_

#include "cli/config_plan.h"

// For a plan that has found its pieces: false with NOT_FOUND if all of them are
// from places that come after one that was named (--root, --site, --python) or
// after CUDA_PATH or CUDA_HOME where that names nothing. A variable that names
// a folder without the pieces is a note.
bool kilni_cli_config_places_check(const kilni_cli_config_t* config);

// For a plan that has not: says so of a variable that names nothing.
void kilni_cli_config_places_explain(const kilni_cli_config_t* config);

#endif  // KILN_SRC_CLI_CONFIG_PLACES_H_
