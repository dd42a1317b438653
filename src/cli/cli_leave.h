// SPDX-License-Identifier: Apache-2.0
//
// cli: cleanup when a signal ends the command.
//
// Partly written files are removed, and the progress line is cleared; then the
// signal takes its default action. A signal that was ignored at the start
// (nohup) stays ignored. `kiln top`, which restores a terminal, has its own
// handling.
#ifndef KILN_SRC_CLI_CLI_LEAVE_H_
#define KILN_SRC_CLI_CLI_LEAVE_H_

#include <stdbool.h>

// A file to remove. Its fields belong to the handler. one-thread
typedef struct kilni_cli_leaving_t {
  struct kilni_cli_leaving_t* next;
  const char* path;
} kilni_cli_leaving_t;

// From here on, until it is forgotten, a signal removes the file `path`. Both
// must live that long.
void kilni_cli_leave_add(kilni_cli_leaving_t* file, const char* path);
void kilni_cli_leave_forget(kilni_cli_leaving_t* file);

// While blocked, a signal is deferred: for steps that must not be interrupted.
// Keep it short.
void kilni_cli_leave_hold(void);
void kilni_cli_leave_let(void);

// Whether standard error ends in an incomplete line.
void kilni_cli_leave_line(bool is_open);

#endif  // KILN_SRC_CLI_CLI_LEAVE_H_
