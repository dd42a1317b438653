// SPDX-License-Identifier: Apache-2.0
//
// cli: what is tidied up when a signal ends the command.
//
// Files that are half written go, and the line of progress gets its end; then
// the signal does what it does by default. One that the command was started to
// ignore (nohup) stays ignored. `kiln top`, which gives a terminal back, has
// ways of its own.
#ifndef KILN_SRC_CLI_CLI_LEAVE_H_
#define KILN_SRC_CLI_CLI_LEAVE_H_

#include <stdbool.h>

// A file that goes. Its fields are the handler's. one-thread
typedef struct kilni_cli_leaving_t {
  struct kilni_cli_leaving_t* next;
  const char* path;
} kilni_cli_leaving_t;

// From here on, and until it is forgotten, a signal removes the file `path`.
// Both live as long.
void kilni_cli_leave_add(kilni_cli_leaving_t* file, const char* path);
void kilni_cli_leave_forget(kilni_cli_leaving_t* file);

// While held, a signal waits: for steps that are done as a whole. Not for long.
void kilni_cli_leave_hold(void);
void kilni_cli_leave_let(void);

// Whether a line without its end stands on standard error.
void kilni_cli_leave_line(bool is_open);

#endif  // KILN_SRC_CLI_CLI_LEAVE_H_
