// SPDX-License-Identifier: Apache-2.0
//
// base: tests of threads, locks and the clock.
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>

#include "base/thread.h"

enum { WORKERS = 4, ROUNDS = 10000 };

typedef struct shared_t {
  kilni_base_mutex_t mutex;
  kilni_base_cond_t cond;
  uint64_t count;
  bool go;
} shared_t;

static void shared_init(shared_t* shared) {
  memset(shared, 0, sizeof(*shared));
  assert_null(kilni_base_mutex_init(&shared->mutex));
  assert_null(kilni_base_cond_init(&shared->cond));
}

static void shared_deinit(shared_t* shared) {
  kilni_base_cond_deinit(&shared->cond);
  kilni_base_mutex_deinit(&shared->mutex);
}

static void count_under_lock(void* user) {
  shared_t* shared = user;
  for (int i = 0; i < ROUNDS; i++) {
    kilni_base_mutex_lock(&shared->mutex);
    shared->count++;
    kilni_base_mutex_unlock(&shared->mutex);
  }
}

static void a_lock_keeps_others_out(void** state) {
  (void)state;
  shared_t shared;
  shared_init(&shared);
  kilni_base_thread_t threads[WORKERS];
  for (int i = 0; i < WORKERS; i++) {
    assert_null(kilni_base_thread_start(
        &threads[i], "a name that is far too long", count_under_lock, &shared));
  }
  for (int i = 0; i < WORKERS; i++) kilni_base_thread_join(&threads[i]);
  assert_int_equal(shared.count, WORKERS * ROUNDS);
  shared_deinit(&shared);
}

static void wait_for_go(void* user) {
  shared_t* shared = user;
  kilni_base_mutex_lock(&shared->mutex);
  while (!shared->go) kilni_base_cond_wait(&shared->cond, &shared->mutex);
  shared->count++;
  kilni_base_cond_signal(&shared->cond);
  kilni_base_mutex_unlock(&shared->mutex);
}

static void a_condition_wakes_all_who_wait(void** state) {
  (void)state;
  shared_t shared;
  shared_init(&shared);
  kilni_base_thread_t threads[WORKERS];
  for (int i = 0; i < WORKERS; i++) {
    assert_null(
        kilni_base_thread_start(&threads[i], "waiter", wait_for_go, &shared));
  }
  kilni_base_mutex_lock(&shared.mutex);
  shared.go = true;
  kilni_base_cond_broadcast(&shared.cond);
  while (shared.count < WORKERS) {
    kilni_base_cond_wait(&shared.cond, &shared.mutex);
  }
  kilni_base_mutex_unlock(&shared.mutex);
  for (int i = 0; i < WORKERS; i++) kilni_base_thread_join(&threads[i]);
  shared_deinit(&shared);
}

static void a_wait_ends_at_its_deadline(void** state) {
  (void)state;
  shared_t shared;
  shared_init(&shared);
  kilni_base_mutex_lock(&shared.mutex);
  uint64_t deadline = kilni_base_time_ns() + 2000000;
  while (kilni_base_cond_wait_until(&shared.cond, &shared.mutex, deadline)) {
    continue;
  }
  assert_true(kilni_base_time_ns() >= deadline);
  assert_false(kilni_base_cond_wait_until(&shared.cond, &shared.mutex, 0));
  kilni_base_mutex_unlock(&shared.mutex);
  shared_deinit(&shared);
}

typedef struct self_t {
  kilni_base_thread_t thread;
  shared_t shared;
  bool current;
  bool blocks_all;
} self_t;

static void look_at_self(void* user) {
  self_t* self = user;
  // The starter writes `thread` while we run, so wait until it says go.
  kilni_base_mutex_lock(&self->shared.mutex);
  while (!self->shared.go) {
    kilni_base_cond_wait(&self->shared.cond, &self->shared.mutex);
  }
  self->current = kilni_base_thread_is_current(&self->thread);
  kilni_base_mutex_unlock(&self->shared.mutex);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  self->blocks_all = sigismember(&mask, SIGINT) == 1 &&
                     sigismember(&mask, SIGTERM) == 1 &&
                     sigismember(&mask, SIGCHLD) == 1;
}

static void a_thread_knows_itself_and_takes_no_signals(void** state) {
  (void)state;
  self_t self;
  memset(&self, 0, sizeof(self));
  shared_init(&self.shared);
  assert_null(
      kilni_base_thread_start(&self.thread, "self", look_at_self, &self));
  assert_false(kilni_base_thread_is_current(&self.thread));
  kilni_base_mutex_lock(&self.shared.mutex);
  self.shared.go = true;
  kilni_base_cond_broadcast(&self.shared.cond);
  kilni_base_mutex_unlock(&self.shared.mutex);
  kilni_base_thread_join(&self.thread);
  assert_true(self.current);
  assert_true(self.blocks_all);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  assert_int_equal(sigismember(&mask, SIGINT), 0);
  shared_deinit(&self.shared);
}

static void arrive(void* user) {
  shared_t* shared = user;
  kilni_base_mutex_lock(&shared->mutex);
  shared->go = true;
  kilni_base_cond_signal(&shared->cond);
  kilni_base_mutex_unlock(&shared->mutex);
}

static void a_detached_thread_runs_on(void** state) {
  (void)state;
  // Static: the thread may still be leaving the lock when we return.
  static shared_t shared;
  shared_init(&shared);
  kilni_base_thread_t thread;
  assert_null(kilni_base_thread_start(&thread, "free", arrive, &shared));
  kilni_base_thread_detach(&thread);
  assert_false(thread.started);
  kilni_base_thread_join(&thread);
  kilni_base_mutex_lock(&shared.mutex);
  while (!shared.go) kilni_base_cond_wait(&shared.cond, &shared.mutex);
  kilni_base_mutex_unlock(&shared.mutex);
}

static void the_machine_has_cores_and_time_goes_on(void** state) {
  (void)state;
  assert_true(kilni_base_core_count() >= 1);
  uint64_t first = kilni_base_time_ns();
  assert_true(kilni_base_time_ns() >= first);
  assert_true(kilni_base_process_id() != 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_lock_keeps_others_out),
      cmocka_unit_test(a_condition_wakes_all_who_wait),
      cmocka_unit_test(a_wait_ends_at_its_deadline),
      cmocka_unit_test(a_thread_knows_itself_and_takes_no_signals),
      cmocka_unit_test(a_detached_thread_runs_on),
      cmocka_unit_test(the_machine_has_cores_and_time_goes_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
