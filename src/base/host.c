// SPDX-License-Identifier: Apache-2.0
//
// base: what travels down from the runtime into every module.
#include "base/host.h"

#include "base/status_make.h"
#include "base/thread.h"

bool kilni_base_host_is_forked(const kiln_host_t* host) {
  if (host->fork_mark != NULL) return *host->fork_mark == 0;
  return kilni_base_process_id() != host->process_id;
}

kiln_status_t kilni_base_host_check_fork(const kiln_host_t* host) {
  if (!kilni_base_host_is_forked(host)) return kiln_ok();
  uint64_t here = kilni_base_process_id();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "the runtime was made in process %llu and is used in its "
                 "forked child %llu",
                 (unsigned long long)host->process_id,
                 (unsigned long long)here),
      "create a runtime in the child, or start the child with exec");
}
