// SPDX-License-Identifier: Apache-2.0
//
// cli: the progress line.
#ifndef KILN_SRC_CLI_CLI_PROGRESS_H_
#define KILN_SRC_CLI_CLI_PROGRESS_H_

#include <pthread.h>

#include "kiln/api.h"

// A line on standard error, if that is a terminal, after half a second.
// one-thread
typedef struct kilni_cli_progress_t {
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t wake;
  bool running;
  bool stop;
  char what[160];
} kilni_cli_progress_t;

// Starts the line "`what` ... 1.5 s". Never fails: without a terminal or a
// thread there is no line.
void kilni_cli_progress_start(kilni_cli_progress_t* progress,
                              const char* format, ...) KILN_PRINTF(2, 3);
// Removes the line.
void kilni_cli_progress_stop(kilni_cli_progress_t* progress);

#endif  // KILN_SRC_CLI_CLI_PROGRESS_H_
