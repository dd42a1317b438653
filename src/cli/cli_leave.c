// SPDX-License-Identifier: Apache-2.0
//
// cli: cleanup when a signal ends the command.
#define _XOPEN_SOURCE 700
#include "cli/cli_leave.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

// Global, since a handler has no other access. Any thread may run it: the
// device's workers receive signals as well.
static _Atomic(kilni_cli_leaving_t*) files;
static atomic_bool is_held, has_line, is_ready;
static atomic_int caught;

// Calls only async-signal-safe functions.
static void cli_leave_leave(int number) {
  for (kilni_cli_leaving_t* at = atomic_load(&files); at != NULL;
       at = at->next) {
    (void)unlink(at->path);
  }
  if (atomic_load(&has_line) && write(STDERR_FILENO, "\n", 1) < 0) {
    atomic_store(&has_line, false);
  }
  (void)signal(number, SIG_DFL);
  (void)raise(number);
}

static void on_signal(int number) {
  if (atomic_load(&is_held)) {
    atomic_store(&caught, number);
  } else {
    cli_leave_leave(number);
  }
}

static void leave_make_ready(void) {
  static const int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  if (atomic_exchange(&is_ready, true)) return;
  for (size_t i = 0; i < sizeof(kSignals) / sizeof(kSignals[0]); i++) {
    struct sigaction action;
    if (sigaction(kSignals[i], NULL, &action) != 0 ||
        action.sa_handler != SIG_DFL) {
      continue;
    }
    action.sa_handler = on_signal;
    // A waiting call is restarted, and raise() takes effect within the handler.
    action.sa_flags = SA_RESTART | SA_NODEFER;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(kSignals[i], &action, NULL);
  }
}

void kilni_cli_leave_add(kilni_cli_leaving_t* file, const char* path) {
  leave_make_ready();
  file->path = path;
  file->next = atomic_load(&files);
  atomic_store(&files, file);
}

void kilni_cli_leave_forget(kilni_cli_leaving_t* file) {
  kilni_cli_leaving_t* at = atomic_load(&files);
  if (at == file) {
    atomic_store(&files, file->next);
    return;
  }
  while (at != NULL && at->next != file) at = at->next;
  if (at != NULL) at->next = file->next;
}

void kilni_cli_leave_hold(void) {
  leave_make_ready();
  atomic_store(&is_held, true);
}

void kilni_cli_leave_let(void) {
  atomic_store(&is_held, false);
  int number = atomic_exchange(&caught, 0);
  if (number != 0) cli_leave_leave(number);
}

void kilni_cli_leave_line(bool is_open) {
  if (is_open) leave_make_ready();
  atomic_store(&has_line, is_open);
}
