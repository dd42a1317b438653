// SPDX-License-Identifier: Apache-2.0
//
// cli: how results, notes and errors leave the command.
#ifndef KILN_SRC_CLI_CLI_REPORT_H_
#define KILN_SRC_CLI_CLI_REPORT_H_

#include <jansson.h>
#include <stdio.h>

#include "cli/cli_error.h"

// A line on standard error: "kiln: ...".
void kilni_cli_note(const char* format, ...) KILN_PRINTF(1, 2);

// Writes `object`, which is released, as one JSON text with a newline. False
// with OUT_OF_MEMORY (also for `object` NULL) or IO_ERROR.
bool kilni_cli_json_write(FILE* out, json_t* object, kilni_cli_error_t* error);

// Writes an error: as text on standard error, or with `json` as the object
// {"error": ...} on `out`. Returns the exit code.
int kilni_cli_error_report(FILE* out, bool json,
                           const kilni_cli_error_t* error);

// Flushes results: IO_ERROR if they did not all get out.
bool kilni_cli_results_flush(FILE* out, kilni_cli_error_t* error);

// While a device works nobody may write among the results: standard output is
// standard error until it is shown again. The answer of hide is what show
// wants, -1 where there is no standard output.
int kilni_cli_results_hide(void);
void kilni_cli_results_show(int hidden);

#endif  // KILN_SRC_CLI_CLI_REPORT_H_
