// SPDX-License-Identifier: Apache-2.0
//
// cli: the progress line.
#define _POSIX_C_SOURCE 200809L
#include "cli/cli_progress.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli_error.h"
#include "cli/cli_leave.h"

#define FIRST_NS  500000000
#define REPEAT_NS 200000000

static void add_ns(struct timespec* t, long ns) {
  t->tv_nsec += ns;
  while (t->tv_nsec >= 1000000000) {
    t->tv_nsec -= 1000000000;
    t->tv_sec++;
  }
}

static void* progress_show(void* user) {
  kilni_cli_progress_t* p = user;
  struct timespec start, due;
  (void)clock_gettime(CLOCK_MONOTONIC, &start);
  due = start;
  add_ns(&due, FIRST_NS);
  bool shown = false;
  (void)pthread_mutex_lock(&p->mutex);
  while (!p->stop) {
    int rc = pthread_cond_timedwait(&p->wake, &p->mutex, &due);
    if (rc != ETIMEDOUT) continue;
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    double s = (double)(now.tv_sec - start.tv_sec) +
               (double)(now.tv_nsec - start.tv_nsec) * 1e-9;
    kilni_cli_leave_line(true);
    (void)fprintf(stderr, "\r%s ... %.1f s", p->what, s);
    (void)fflush(stderr);
    shown = true;
    due = now;
    add_ns(&due, REPEAT_NS);
  }
  (void)pthread_mutex_unlock(&p->mutex);
  if (shown) {
    (void)fprintf(stderr, "\r\033[K");
    (void)fflush(stderr);
    kilni_cli_leave_line(false);
  }
  return NULL;
}

void kilni_cli_progress_start(kilni_cli_progress_t* p, const char* format,
                              ...) {
  memset(p, 0, sizeof(*p));
  if (isatty(STDERR_FILENO) == 0) return;
  char text[sizeof(p->what)];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  kilni_cli_copy_text(p->what, sizeof(p->what), text);
  pthread_condattr_t attr;
  if (pthread_condattr_init(&attr) != 0) return;
  (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  bool made = pthread_cond_init(&p->wake, &attr) == 0;
  (void)pthread_condattr_destroy(&attr);
  if (!made) return;
  if (pthread_mutex_init(&p->mutex, NULL) == 0) {
    p->running = pthread_create(&p->thread, NULL, progress_show, p) == 0;
    if (p->running) return;
    (void)pthread_mutex_destroy(&p->mutex);
  }
  (void)pthread_cond_destroy(&p->wake);
}

void kilni_cli_progress_stop(kilni_cli_progress_t* p) {
  if (!p->running) return;
  (void)pthread_mutex_lock(&p->mutex);
  p->stop = true;
  (void)pthread_cond_signal(&p->wake);
  (void)pthread_mutex_unlock(&p->mutex);
  (void)pthread_join(p->thread, NULL);
  (void)pthread_mutex_destroy(&p->mutex);
  (void)pthread_cond_destroy(&p->wake);
  p->running = false;
}
