// SPDX-License-Identifier: Apache-2.0
//
// cli: what the actions of `kiln cache` share.
#ifndef KILN_SRC_CLI_CACHE_RUN_H_
#define KILN_SRC_CLI_CACHE_RUN_H_

#include "cli/cli_cache.h"
#include "kiln/cache.h"

// One call. one-thread
typedef struct kilni_cli_cache_run_t {
  const kilni_cli_call_t* call;
  kilni_cli_error_t* error;
  kilni_cli_cache_t where;
  kiln_cache_t* cache;  // NULL: `warm` makes a runtime of its own
} kilni_cli_cache_run_t;

// The log of a cache and of a runtime: its warnings on standard error.
kiln_log_sink_t kilni_cli_cache_log(void);

// The text output (cache_show.c).
bool kilni_cli_cache_stats(kilni_cli_cache_run_t* run);
bool kilni_cli_cache_list(kilni_cli_cache_run_t* run);
bool kilni_cli_cache_verify(kilni_cli_cache_run_t* run);

// Fills it (cache_warm.c).
bool kilni_cli_cache_warm(kilni_cli_cache_run_t* run);

#endif  // KILN_SRC_CLI_CACHE_RUN_H_
