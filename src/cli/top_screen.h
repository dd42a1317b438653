// SPDX-License-Identifier: Apache-2.0
//
// cli: a terminal that shows one page after the other, and is left as found.
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
  sigset_t signals;      // that are waited for in place of being taken
  sigset_t mask;         // of the thread, as it was
} kilni_cli_screen_t;

// Why a page is no longer waited for.
typedef enum kilni_cli_event_t {
  KILNI_CLI_EVENT_TIME = 0,  // the time is over
  KILNI_CLI_EVENT_SIZE,      // the terminal has another size
  KILNI_CLI_EVENT_QUIT,      // `q`, Ctrl-C
  KILNI_CLI_EVENT_SIGNAL,    // from outside; `*out_signal` says which
} kilni_cli_event_t;

// True where pages can follow each other on standard output: a terminal that
// knows how to be written over.
bool kilni_cli_screen_is_one(FILE* out);

// Signals that would end the command wait from here on. To be called before
// anything starts a thread: a driver's threads inherit the mask, and one that
// took a signal would end the command with the terminal as it is.
void kilni_cli_screen_hold(kilni_cli_screen_t* screen);

// Takes the terminal: its second page, keys one by one, no cursor.
void kilni_cli_screen_open(kilni_cli_screen_t* screen, FILE* out);

// Gives the terminal back.
void kilni_cli_screen_close(kilni_cli_screen_t* screen);

// Lets signals through again, those that came in between first.
void kilni_cli_screen_let_go(kilni_cli_screen_t* screen);

// Writes a page from the top: as many lines as there is space for, each as far
// as there is. False when the terminal is gone.
bool kilni_cli_screen_show(const kilni_cli_screen_t* screen, const char* text);

// Waits, at most `milliseconds`.
kilni_cli_event_t kilni_cli_screen_wait(kilni_cli_screen_t* screen,
                                        int milliseconds, int* out_signal);

#endif  // KILN_SRC_CLI_TOP_SCREEN_H_
