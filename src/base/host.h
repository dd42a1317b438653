// SPDX-License-Identifier: Apache-2.0
//
// base: what travels down from the runtime into every module.
#ifndef KILN_SRC_BASE_HOST_H_
#define KILN_SRC_BASE_HOST_H_

#include "base/env.h"
#include "kiln/allocator.h"
#include "kiln/log.h"

// Owned by the runtime, which outlives everything below it. thread-safe
typedef struct kiln_host_t {
  kiln_allocator_t allocator;
  kiln_log_sink_t log;
  const kilni_base_env_t* env;
  uint32_t worker_count;  // threads a module may start for its own work
  uint32_t reserved;
  uint64_t seed;        // of every order that is free to choose
  uint64_t process_id;  // the process it was made in: a fork is refused
  // A word that a fork makes 0, so that no call has to ask the system for the
  // process; NULL: it is asked. kilni_base_vm_fork_mark.
  const volatile uint64_t* fork_mark;
} kiln_host_t;

// True in a forked child: what the parent made is not the child's to release.
bool kilni_base_host_is_forked(const kiln_host_t* host);

// INVALID_STATE in a forked child.
kiln_status_t kilni_base_host_check_fork(const kiln_host_t* host);

#endif  // KILN_SRC_BASE_HOST_H_
