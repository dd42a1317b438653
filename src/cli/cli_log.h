// SPDX-License-Identifier: Apache-2.0
//
// cli: the library's log, as far as a user of the command wants it.
#ifndef KILN_SRC_CLI_CLI_LOG_H_
#define KILN_SRC_CLI_CLI_LOG_H_

#include <stdbool.h>

#include "kiln/log.h"

// The minimum level of a sink: warnings, or with KILN_TRACE=on everything,
// since calls are logged at the lowest level.
kiln_log_level_t kilni_cli_log_level(void);

// Writes a line of the trace to standard error; false for any other line.
bool kilni_cli_log_trace(kiln_log_level_t level, const char* line);

#endif  // KILN_SRC_CLI_CLI_LOG_H_
