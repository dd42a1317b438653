// SPDX-License-Identifier: Apache-2.0
//
// cli: a step that may take too long, on a thread of its own.
#define _POSIX_C_SOURCE 200809L
#include "cli/cli_limit.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

// A running step. On the heap, because it may outlive the call that waits for
// it. thread-safe
typedef struct step_t {
  pthread_mutex_t mutex;
  pthread_cond_t done_cond;
  bool done;
  void (*work)(void* user);
  void* user;
} step_t;

static void* do_step(void* user) {
  step_t* step = user;
  step->work(step->user);
  (void)pthread_mutex_lock(&step->mutex);
  step->done = true;
  (void)pthread_cond_signal(&step->done_cond);
  (void)pthread_mutex_unlock(&step->mutex);
  return NULL;
}

static step_t* limit_make_step(void (*work)(void* user), void* user) {
  step_t* step = calloc(1, sizeof(*step));
  pthread_condattr_t attr;
  if (step == NULL || pthread_condattr_init(&attr) != 0) {
    free(step);
    return NULL;
  }
  step->work = work;
  step->user = user;
  (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  bool made = pthread_cond_init(&step->done_cond, &attr) == 0;
  (void)pthread_condattr_destroy(&attr);
  if (made && pthread_mutex_init(&step->mutex, NULL) == 0) return step;
  if (made) (void)pthread_cond_destroy(&step->done_cond);
  free(step);
  return NULL;
}

static void free_step(step_t* step) {
  (void)pthread_mutex_destroy(&step->mutex);
  (void)pthread_cond_destroy(&step->done_cond);
  free(step);
}

static bool wait_for_step(step_t* step, uint64_t limit_ns) {
  struct timespec due;
  (void)clock_gettime(CLOCK_MONOTONIC, &due);
  uint64_t ns = (uint64_t)due.tv_nsec + limit_ns % 1000000000u;
  due.tv_sec += (time_t)(limit_ns / 1000000000u + ns / 1000000000u);
  due.tv_nsec = (long)(ns % 1000000000u);
  (void)pthread_mutex_lock(&step->mutex);
  int rc = 0;
  while (!step->done && rc != ETIMEDOUT) {
    rc = pthread_cond_timedwait(&step->done_cond, &step->mutex, &due);
  }
  bool done = step->done;
  (void)pthread_mutex_unlock(&step->mutex);
  return done;
}

bool kilni_cli_limit_run(uint64_t limit_ns, void (*work)(void* user),
                         void* user) {
  step_t* step = limit_ns == 0 ? NULL : limit_make_step(work, user);
  pthread_t thread;
  if (step == NULL || pthread_create(&thread, NULL, do_step, step) != 0) {
    if (step != NULL) free_step(step);
    work(user);
    return true;
  }
  if (!wait_for_step(step, limit_ns)) {
    (void)pthread_detach(thread);
    return false;
  }
  (void)pthread_join(thread, NULL);
  free_step(step);
  return true;
}
