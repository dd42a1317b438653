// SPDX-License-Identifier: Apache-2.0
//
// cli: a terminal that shows one page after another, and is restored.
#ifndef KILN_SRC_CLI_TOP_SCREEN_H_
#define KILN_SRC_CLI_TOP_SCREEN_H_

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <termios.h>

// one-thread
typedef struct kilni_cli_screen_t {
  int out;               // descriptor of the terminal
  bool has_keys;         // standard input is a terminal too
  bool changed;          // its settings
  struct termios found;  // as they were
  sigset_t signals;      // waited for instead of delivered
  sigset_t mask;         // of the thread, as it was
} kilni_cli_screen_t;

// Why a page is no longer waited for.
typedef enum kilni_cli_event_t {
  KILNI_CLI_EVENT_TIME = 0,  // the time is over
  KILNI_CLI_EVENT_SIZE,      // the terminal has another size
  KILNI_CLI_EVENT_QUIT,      // `q`, Ctrl-C
  KILNI_CLI_EVENT_SIGNAL,    // from outside; `*out_signal` says which
} kilni_cli_event_t;

// True if standard output is a terminal that can be overwritten.
bool kilni_cli_screen_is_one(FILE* out);

// Blocks signals that would end the command. To be called before any thread
// starts: a driver's threads inherit the mask, and a signal delivered to one of
// them would end the command without restoring the terminal.
void kilni_cli_screen_hold(kilni_cli_screen_t* screen);

// Takes over the terminal: alternate screen, single keys, no cursor.
void kilni_cli_screen_open(kilni_cli_screen_t* screen, FILE* out);

// Restores the terminal.
void kilni_cli_screen_close(kilni_cli_screen_t* screen);

// Unblocks the signals, pending ones first.
void kilni_cli_screen_let_go(kilni_cli_screen_t* screen);

// Writes a page from the top, cut to the size of the terminal. False if the
// terminal is closed.
bool kilni_cli_screen_show(const kilni_cli_screen_t* screen, const char* text);

// Waits, at most `milliseconds`.
kilni_cli_event_t kilni_cli_screen_wait(kilni_cli_screen_t* screen,
                                        int milliseconds, int* out_signal);

#endif  // KILN_SRC_CLI_TOP_SCREEN_H_
