// SPDX-License-Identifier: Apache-2.0
//
// cli: which cache a command uses, and what it reports about it.
#ifndef KILN_SRC_CLI_CLI_CACHE_H_
#define KILN_SRC_CLI_CLI_CACHE_H_

#include "cli/cli_buffer.h"
#include "cli/cli_command.h"
#include "kiln/cache.h"
#include "kiln/log.h"

// Rows of a command's table.
#define KILNI_CLI_CACHE_OPTIONS                                          \
  {"cache-dir", "DIR",                                                   \
   "The folder of the cache. Default: KILN_CACHE_DIR, else kiln in "     \
   "XDG_CACHE_HOME, else .cache/kiln in HOME.",                          \
   false, "file"},                                                       \
  {                                                                      \
    "no-cache", NULL, "Neither read the cache nor fill it.", false, NULL \
  }

// The folder that a call names. one-thread
typedef struct kilni_cli_cache_t {
  kiln_cache_options_t options;  // of kiln_runtime_create
  kilni_cli_buffer_t folder;     // that they point to
  bool off;                      // --no-cache
} kilni_cli_cache_t;

// Reads --cache-dir and --no-cache. Ended by deinit, also after a failure.
bool kilni_cli_cache_read(kilni_cli_cache_t* out, const kilni_cli_call_t* call,
                          kilni_cli_error_t* error);
void kilni_cli_cache_deinit(kilni_cli_cache_t* cache);

// "none", "hit", "miss", "uncacheable": of KILN_COMPILE_CACHE_* and of
// KILN_LINK_CACHE_*, which have the same values.
const char* kilni_cli_cache_word(uint32_t state);

// Whether a user of the command should see a line of the library's log:
// incompatible components of a toolkit, problems with the cache.
bool kilni_cli_log_matters(kiln_log_level_t level, const char* space);

#endif  // KILN_SRC_CLI_CLI_CACHE_H_
