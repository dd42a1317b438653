// SPDX-License-Identifier: Apache-2.0
//
// cli: compares the places that a user names for a toolkit with where it was
// found.
#ifndef KILN_SRC_CLI_CONFIG_PLACES_H_
#define KILN_SRC_CLI_CONFIG_PLACES_H_

#include "cli/config_plan.h"

// For a plan that has found its components: false with NOT_FOUND if all of them
// are from places after one that was named (--root, --site, --python), or after
// CUDA_PATH or CUDA_HOME if that names a missing folder. A variable that names
// a folder without the components is a note.
bool kilni_cli_config_places_check(const kilni_cli_config_t* config);

// For a plan that has not: reports a variable that names a missing folder.
void kilni_cli_config_places_explain(const kilni_cli_config_t* config);

#endif  // KILN_SRC_CLI_CONFIG_PLACES_H_
