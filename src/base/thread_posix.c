// SPDX-License-Identifier: Apache-2.0
//
// base: threads, locks, condition variables, a monotonic clock.
#define _GNU_SOURCE  // pthread_setname_np
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/status_make.h"

enum { NAME_MAX_BYTES = 16 };
static const uint64_t kNsPerSecond = 1000000000u;

static kiln_status_t system_error(int error, const char* what) {
  if (error == 0) return kiln_ok();
  if (error == ENOMEM) return kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
  if (error == EAGAIN) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "the system lacks the resources for %s",
                   what),
        "raise the limit on threads (ulimit -u) or use fewer");
  }
  return KILNI_FAIL(INTERNAL, "the system refused %s with error %d", what,
                    error);
}

kiln_status_t kilni_base_mutex_init(kilni_base_mutex_t* mutex) {
  return system_error(pthread_mutex_init(&mutex->handle, NULL), "a lock");
}

void kilni_base_mutex_deinit(kilni_base_mutex_t* mutex) {
  pthread_mutex_destroy(&mutex->handle);
}

void kilni_base_mutex_lock(kilni_base_mutex_t* mutex) {
  pthread_mutex_lock(&mutex->handle);
}

void kilni_base_mutex_unlock(kilni_base_mutex_t* mutex) {
  pthread_mutex_unlock(&mutex->handle);
}

kiln_status_t kilni_base_cond_init(kilni_base_cond_t* cond) {
  pthread_condattr_t attributes;
  int error = pthread_condattr_init(&attributes);
  if (error == 0) {
    error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (error == 0) error = pthread_cond_init(&cond->handle, &attributes);
    pthread_condattr_destroy(&attributes);
  }
  return system_error(error, "a condition variable");
}

void kilni_base_cond_deinit(kilni_base_cond_t* cond) {
  pthread_cond_destroy(&cond->handle);
}

void kilni_base_cond_wait(kilni_base_cond_t* cond, kilni_base_mutex_t* mutex) {
  pthread_cond_wait(&cond->handle, &mutex->handle);
}

bool kilni_base_cond_wait_until(kilni_base_cond_t* cond,
                                kilni_base_mutex_t* mutex,
                                uint64_t deadline_ns) {
  struct timespec at;
  at.tv_sec = (time_t)(deadline_ns / kNsPerSecond);
  at.tv_nsec = (long)(deadline_ns % kNsPerSecond);
  return pthread_cond_timedwait(&cond->handle, &mutex->handle, &at) !=
         ETIMEDOUT;
}

void kilni_base_cond_signal(kilni_base_cond_t* cond) {
  pthread_cond_signal(&cond->handle);
}

void kilni_base_cond_broadcast(kilni_base_cond_t* cond) {
  pthread_cond_broadcast(&cond->handle);
}

// What a new thread copies from its starter's stack before the starter goes
// on, so that a start allocates nothing of ours.
typedef struct handover_t {
  char name[NAME_MAX_BYTES];
  kilni_base_thread_fn_t fn;
  void* user;
  sem_t copied;
} handover_t;

static void* thread_posix_thread_main(void* argument) {
  handover_t* handover = argument;
  kilni_base_thread_fn_t fn = handover->fn;
  void* user = handover->user;
  pthread_setname_np(pthread_self(), handover->name);
  sem_post(&handover->copied);
  fn(user);
  return NULL;
}

kiln_status_t kilni_base_thread_start(kilni_base_thread_t* thread,
                                      const char* name,
                                      kilni_base_thread_fn_t fn, void* user) {
  memset(thread, 0, sizeof(*thread));
  handover_t handover = {.fn = fn, .user = user};
  size_t length = strlen(name);
  if (length > NAME_MAX_BYTES - 1) length = NAME_MAX_BYTES - 1;
  memcpy(handover.name, name, length);
  if (sem_init(&handover.copied, 0, 0) != 0) {
    return system_error(errno, "a semaphore");
  }
  // The new thread inherits the mask, and so never takes the host program's
  // signals.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&thread->handle, NULL, thread_posix_thread_main,
                             &handover);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error == 0) {
    while (sem_wait(&handover.copied) != 0 && errno == EINTR) continue;
    thread->started = true;
  }
  sem_destroy(&handover.copied);
  return system_error(error, "a thread");
}

void kilni_base_thread_join(kilni_base_thread_t* thread) {
  if (!thread->started) return;
  pthread_join(thread->handle, NULL);
  thread->started = false;
}

void kilni_base_thread_detach(kilni_base_thread_t* thread) {
  if (!thread->started) return;
  pthread_detach(thread->handle);
  thread->started = false;
}

bool kilni_base_thread_is_current(const kilni_base_thread_t* thread) {
  return thread->started && pthread_equal(thread->handle, pthread_self());
}

void kilni_base_thread_yield(void) {
  sched_yield();
}

uint64_t kilni_base_time_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * kNsPerSecond + (uint64_t)now.tv_nsec;
}

uint64_t kilni_base_date_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * kNsPerSecond + (uint64_t)now.tv_nsec;
}

uint64_t kilni_base_thread_self(void) {
  return (uint64_t)pthread_self();
}

uint64_t kilni_base_thread_number(void) {
  return (uint64_t)syscall(SYS_gettid);
}

uint64_t kilni_base_process_id(void) {
  return (uint64_t)getpid();
}
