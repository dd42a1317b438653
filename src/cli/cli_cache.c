// SPDX-License-Identifier: Apache-2.0
//
// cli: which cache a command uses, and what it reports about it.
#define _POSIX_C_SOURCE 200809L
#include "cli/cli_cache.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { FOLDER_BYTES = 4096 };

// The library takes only absolute paths, as it must not query the working
// directory.
static bool make_absolute(kilni_cli_cache_t* cache, const char* given,
                          kilni_cli_error_t* error) {
  char here[FOLDER_BYTES];
  if (given[0] != '/') {
    if (getcwd(here, sizeof(here)) == NULL) {
      return kilni_cli_fail(
          error, KILN_STATUS_IO_ERROR, "name the folder by its absolute path",
          "the path of the working directory is unknown: %s", strerror(errno));
    }
    if (!kilni_cli_buffer_add(&cache->folder, here, strlen(here), error) ||
        !kilni_cli_buffer_add(&cache->folder, "/", 1, error)) {
      return false;
    }
  }
  return kilni_cli_buffer_add(&cache->folder, given, strlen(given) + 1, error);
}

bool kilni_cli_cache_read(kilni_cli_cache_t* out, const kilni_cli_call_t* call,
                          kilni_cli_error_t* error) {
  memset(out, 0, sizeof(*out));
  out->options = kiln_cache_options_default();
  out->off = kilni_cli_option_value(call, "no-cache") != NULL;
  const char* folder = kilni_cli_option_value(call, "cache-dir");
  if (folder == NULL) return true;
  if (folder[0] == 0) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, "name a folder",
                          "--cache-dir is empty");
  }
  if (!make_absolute(out, folder, error)) return false;
  out->options.directory = (const char*)out->folder.data;
  out->options.disk = KILN_SWITCH_ON;
  return true;
}

void kilni_cli_cache_deinit(kilni_cli_cache_t* cache) {
  kilni_cli_buffer_deinit(&cache->folder);
}

const char* kilni_cli_cache_word(uint32_t state) {
  static const char* const WORDS[] = {"none", "hit", "miss", "uncacheable"};
  return WORDS[state & 3];
}

bool kilni_cli_log_matters(kiln_log_level_t level, const char* space) {
  return level == KILN_LOG_WARNING &&
         (strcmp(space, "toolkit") == 0 || strcmp(space, "cache") == 0);
}
