// SPDX-License-Identifier: Apache-2.0
//
// cli: lock files: a recorded plan, to compare later ones with.
#ifndef KILN_SRC_CLI_CONFIG_LOCK_H_
#define KILN_SRC_CLI_CONFIG_LOCK_H_

#include <jansson.h>

#include "cli/config_plan.h"

// Whether `path` may be written: it is neither a file that the plan has found
// so far nor the one of --verify-lock. Writing checks again.
bool kilni_cli_config_lock_check(const kilni_cli_config_t* config,
                                 const char* path);

// Writes the plan to `path`, whole or not at all.
bool kilni_cli_config_lock_write(const kilni_cli_config_t* config,
                                 const char* path);

// Reads a lock file; the caller owns `*out_lock`. NOT_FOUND, IO_ERROR, and as
// kilni_cli_config_lock_parse.
bool kilni_cli_config_lock_read(const char* path, json_t** out_lock,
                                kilni_cli_error_t* error);

// What has changed: [{"item","what","locked","now"}]. The caller owns it; NULL
// on failure.
json_t* kilni_cli_config_lock_compare(const kilni_cli_config_t* config,
                                      const json_t* lock);

// Which variables have changed since: [{"name","locked","now"}]. That is not a
// difference by itself, but may be the reason for one. The caller owns it; NULL
// on failure.
json_t* kilni_cli_config_lock_environment(const kilni_cli_config_t* config,
                                          const json_t* lock);

#endif  // KILN_SRC_CLI_CONFIG_LOCK_H_
