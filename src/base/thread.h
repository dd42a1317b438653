// SPDX-License-Identifier: Apache-2.0
//
// base: threads, locks, condition variables, a monotonic clock.
//
// A thin skin over the system's own, so that rooms name no system header.
// Atomics are C11's <stdatomic.h> everywhere.
#ifndef KILN_SRC_BASE_THREAD_H_
#define KILN_SRC_BASE_THREAD_H_

#include <pthread.h>

#include "kiln/allocator.h"
#include "kiln/status.h"

// A lock. thread-safe
typedef struct kilni_mutex_t {
  pthread_mutex_t handle;
} kilni_mutex_t;

// A condition variable on the monotonic clock. thread-safe
typedef struct kilni_cond_t {
  pthread_cond_t handle;
} kilni_cond_t;

// A running thread. one-thread
typedef struct kilni_thread_t {
  pthread_t handle;
  bool started;
} kilni_thread_t;

kiln_status_t kilni_mutex_init(kilni_mutex_t* mutex);
void kilni_mutex_deinit(kilni_mutex_t* mutex);
void kilni_mutex_lock(kilni_mutex_t* mutex);
void kilni_mutex_unlock(kilni_mutex_t* mutex);

kiln_status_t kilni_cond_init(kilni_cond_t* cond);
void kilni_cond_deinit(kilni_cond_t* cond);
void kilni_cond_wait(kilni_cond_t* cond, kilni_mutex_t* mutex);
// False once `deadline_ns` of kilni_time_ns has passed.
bool kilni_cond_wait_until(kilni_cond_t* cond, kilni_mutex_t* mutex,
                           uint64_t deadline_ns);
void kilni_cond_signal(kilni_cond_t* cond);
void kilni_cond_broadcast(kilni_cond_t* cond);

typedef void (*kilni_thread_fn_t)(void* user);
// Starts `fn(user)` with all signals blocked. `name` is cut to 15 bytes.
kiln_status_t kilni_thread_start(kilni_thread_t* thread, const char* name,
                                 kilni_thread_fn_t fn, void* user);
// Waits for its end. Not started is accepted.
void kilni_thread_join(kilni_thread_t* thread);
// Lets it run on by itself; its end frees what it holds.
void kilni_thread_detach(kilni_thread_t* thread);
bool kilni_thread_is_current(const kilni_thread_t* thread);
// Lets another thread have the core, if one waits for it.
void kilni_thread_yield(void);

// cores_posix.c: cores this process may use, at least 1: its affinity, and the
// quotas of its control groups, rounded up.
uint32_t kilni_core_count(void);
// The quotas alone, read from /proc and where that says under `prefix` ("" for
// the system's own); 0 if there is none.
uint32_t kilni_core_quota(const char* prefix);
// The memory that this process can still get, in bytes: what the machine and
// its control groups have left. UINT64_MAX where the system does not say.
uint64_t kilni_memory_left(const char* prefix);
uint64_t kilni_time_ns(void);      // monotonic
uint64_t kilni_date_ns(void);      // since 1970; may jump
uint64_t kilni_process_id(void);   // for fork checks
uint64_t kilni_thread_self(void);  // one number for each living thread
// The system's number of the thread, which is not given again soon after it has
// ended. A system call.
uint64_t kilni_thread_number(void);

#endif  // KILN_SRC_BASE_THREAD_H_
