// SPDX-License-Identifier: Apache-2.0
//
// base: writing to the log sink from inside the library.
#include <stdarg.h>
#include <stdio.h>

#include "base/log_line.h"

enum { LOG_LINE_MAX_BYTES = 2048 };

bool kilni_base_log_wants(const kiln_log_sink_t* sink, kiln_log_level_t level) {
  if (sink == NULL || sink->fn == NULL) return false;
  uint32_t max = sink->max_level ? sink->max_level : KILN_LOG_WARNING;
  return (uint32_t)level <= max;
}

void kilni_base_log_line(const kiln_log_sink_t* sink, kiln_log_level_t level,
                         const char* module, const char* format, ...) {
  if (!kilni_base_log_wants(sink, level)) return;
  char line[LOG_LINE_MAX_BYTES];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(line, sizeof(line), format, args);
  va_end(args);
  if (length < 0) return;
  sink->fn(level, module, line, sink->user);
}
