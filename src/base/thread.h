// SPDX-License-Identifier: Apache-2.0
//
// base: threads, locks, condition variables, a monotonic clock.
//
// A thin skin over the system's own, so that modules name no system header.
// Atomics are C11's <stdatomic.h> everywhere.
#ifndef KILN_SRC_BASE_THREAD_H_
#define KILN_SRC_BASE_THREAD_H_

#include <pthread.h>

#include "kiln/allocator.h"
#include "kiln/status.h"

// A lock. thread-safe
typedef struct kilni_base_mutex_t {
  pthread_mutex_t handle;
} kilni_base_mutex_t;

// A condition variable on the monotonic clock. thread-safe
typedef struct kilni_base_cond_t {
  pthread_cond_t handle;
} kilni_base_cond_t;

// A running thread. one-thread
typedef struct kilni_base_thread_t {
  pthread_t handle;
  bool started;
} kilni_base_thread_t;

kiln_status_t kilni_base_mutex_init(kilni_base_mutex_t* mutex);
void kilni_base_mutex_deinit(kilni_base_mutex_t* mutex);
void kilni_base_mutex_lock(kilni_base_mutex_t* mutex);
void kilni_base_mutex_unlock(kilni_base_mutex_t* mutex);

kiln_status_t kilni_base_cond_init(kilni_base_cond_t* cond);
void kilni_base_cond_deinit(kilni_base_cond_t* cond);
void kilni_base_cond_wait(kilni_base_cond_t* cond, kilni_base_mutex_t* mutex);
// False once `deadline_ns` of kilni_base_time_ns has passed.
bool kilni_base_cond_wait_until(kilni_base_cond_t* cond,
                                kilni_base_mutex_t* mutex,
                                uint64_t deadline_ns);
void kilni_base_cond_signal(kilni_base_cond_t* cond);
void kilni_base_cond_broadcast(kilni_base_cond_t* cond);

typedef void (*kilni_base_thread_fn_t)(void* user);
// Starts `fn(user)` with all signals blocked. `name` is cut to 15 bytes.
kiln_status_t kilni_base_thread_start(kilni_base_thread_t* thread,
                                      const char* name,
                                      kilni_base_thread_fn_t fn, void* user);
// Waits for its end. Not started is accepted.
void kilni_base_thread_join(kilni_base_thread_t* thread);
// Lets it run on by itself; its end frees its resources.
void kilni_base_thread_detach(kilni_base_thread_t* thread);
bool kilni_base_thread_is_current(const kilni_base_thread_t* thread);
// Lets another thread have the core, if one waits for it.
void kilni_base_thread_yield(void);

// cores_posix.c: cores this process may use, at least 1: its affinity, and the
// quotas of its control groups, rounded up.
uint32_t kilni_base_core_count(void);
// The quotas alone, read from /proc and the files that it names under `prefix`
// ("" for the system's own); 0 if there is none.
uint32_t kilni_base_core_quota(const char* prefix);
// The memory that this process can still get, in bytes: what the machine and
// its control groups have left. UINT64_MAX where it is unknown.
uint64_t kilni_base_memory_left(const char* prefix);
uint64_t kilni_base_time_ns(void);      // monotonic
uint64_t kilni_base_date_ns(void);      // since 1970; may jump
uint64_t kilni_base_process_id(void);   // for fork checks
uint64_t kilni_base_thread_self(void);  // one number for each living thread
// The system's number of the thread, which is not given again soon after it has
// ended. A system call.
uint64_t kilni_base_thread_number(void);

#endif  // KILN_SRC_BASE_THREAD_H_
