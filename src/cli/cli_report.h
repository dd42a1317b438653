// SPDX-License-Identifier: Apache-2.0
//
// cli: how results, notes and errors leave the command.
#ifndef KILN_SRC_CLI_CLI_REPORT_H_
#define KILN_SRC_CLI_CLI_REPORT_H_

#include <jansson.h>
#include <stdio.h>

#include "cli/cli_error.h"

// Writes a text of several lines from a file or a compiler: characters but
// newlines and tabs are escaped as by kilni_cli_show_character.
void kilni_cli_print_text(FILE* out, const char* text, size_t size);

// A text that goes to `out`, escaped in the same manner, when it is closed.
// one-thread
typedef struct kilni_cli_shown_t {
  FILE* text;  // to be written to
  FILE* out;
  char* data;
  size_t size;
} kilni_cli_shown_t;

// False without memory. Closed by close, also after a failure.
bool kilni_cli_shown_open(kilni_cli_shown_t* shown, FILE* out);
void kilni_cli_shown_close(kilni_cli_shown_t* shown);

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

// While a device works nothing may be written among the results: standard
// output is redirected to standard error until it is shown again. Hide returns
// what show takes, -1 without a standard output.
int kilni_cli_results_hide(void);
void kilni_cli_results_show(int hidden);

#endif  // KILN_SRC_CLI_CLI_REPORT_H_
