// SPDX-License-Identifier: Apache-2.0
//
// cli: the library's log, as far as a user of the command wants it.
#include "cli/cli_log.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli_report.h"

kiln_log_level_t kilni_cli_log_level(void) {
  // The library validates the value.
  const char* value = getenv("KILN_TRACE");
  bool traces =
      value != NULL && (strcmp(value, "on") == 0 || strcmp(value, "1") == 0);
  return traces ? KILN_LOG_TRACE : KILN_LOG_WARNING;
}

bool kilni_cli_log_trace(kiln_log_level_t level, const char* line) {
  if (level != KILN_LOG_TRACE) return false;
  kilni_cli_note("trace: %s", line);
  return true;
}
