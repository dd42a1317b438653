// SPDX-License-Identifier: Apache-2.0
//
// cli: what `kiln run --stats` reports besides the time: what the kernel did on
// the software device, by kind.
#ifndef KILN_SRC_CLI_RUN_STATS_H_
#define KILN_SRC_CLI_RUN_STATS_H_

#include <jansson.h>

#include "kiln/soft.h"

// The value of the key "stats"; NULL without memory.
json_t* kilni_cli_stats_json(const kiln_soft_profile_t* profile);
// The same as lines on standard error.
void kilni_cli_stats_note(const kiln_soft_profile_t* profile);

#endif  // KILN_SRC_CLI_RUN_STATS_H_
