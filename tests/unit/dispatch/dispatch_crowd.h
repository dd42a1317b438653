// SPDX-License-Identifier: Apache-2.0
//
// dispatch: many threads at one thing: each begins when all are there, and what
// goes wrong is counted, since only the main thread may assert.
#ifndef KILN_TESTS_UNIT_DISPATCH_DISPATCH_CROWD_H_
#define KILN_TESTS_UNIT_DISPATCH_DISPATCH_CROWD_H_

#include <pthread.h>
#include <stdatomic.h>

#include "dispatch_kit.h"

// One thread of them. one-thread
typedef struct worker_t {
  void* shared;
  uint32_t number;
  pthread_barrier_t* start;
  void (*work)(void* shared, uint32_t number);
  pthread_t thread;
} worker_t;

// Inside of a thread, where `crowd` is what is shared and has `wrong`.
#define NEED(condition)                                   \
  do {                                                    \
    if (!(condition)) atomic_fetch_add(&crowd->wrong, 1); \
  } while (0)
#define OKAY(call)                    \
  do {                                \
    kiln_status_t status_ = (call);   \
    NEED(kiln_status_is_ok(status_)); \
    kiln_status_free(status_);        \
  } while (0)

static inline void* worker_main(void* user) {
  worker_t* worker = user;
  pthread_barrier_wait(worker->start);
  worker->work(worker->shared, worker->number);
  return NULL;
}

// `count` threads do `work`, numbered from 0, and it is waited for all of them.
static inline void crowd_run(void* shared, uint32_t count,
                             void (*work)(void* shared, uint32_t number)) {
  enum { MOST = 64 };
  worker_t workers[MOST];
  pthread_barrier_t start;
  assert_true(count <= MOST);
  assert_int_equal(pthread_barrier_init(&start, NULL, count), 0);
  for (uint32_t i = 0; i < count; i++) {
    worker_t worker = {shared, i, &start, work, 0};
    workers[i] = worker;
    assert_int_equal(
        pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]), 0);
  }
  for (uint32_t i = 0; i < count; i++) pthread_join(workers[i].thread, NULL);
  pthread_barrier_destroy(&start);
}

#endif  // KILN_TESTS_UNIT_DISPATCH_DISPATCH_CROWD_H_
