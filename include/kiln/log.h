// SPDX-License-Identifier: Apache-2.0
//
// base: the log sink.
//
// The library returns its errors and never logs them. It logs what it did
// (which library it selected, calls seen by a trace wrapper), and only into a
// sink that the host program provides. Without one it is silent.
#ifndef KILN_LOG_H_
#define KILN_LOG_H_

#include "kiln/api.h"

KILN_EXTERN_C_BEGIN

// The level of a log line. thread-compatible
typedef enum kiln_log_level_t {
  KILN_LOG_WARNING = 1,
  KILN_LOG_INFO = 2,
  KILN_LOG_DEBUG = 3,
  KILN_LOG_TRACE = 4,
} kiln_log_level_t;

// Receives one line. `module` is the module that logs ("device"), `line` is
// NUL-terminated without a newline and lives until the function returns. Called
// from any thread, also from Kiln's own; must not call back into Kiln.
typedef void (*kiln_log_fn_t)(kiln_log_level_t level, const char* module,
                              const char* line, void* user);

// A sink, passed by value; `fn` NULL: no log. thread-safe
typedef struct kiln_log_sink_t {
  kiln_log_fn_t fn;
  void* user;
  uint32_t max_level;  // the most verbose kiln_log_level_t; 0 is WARNING
  uint32_t reserved;   // 0
} kiln_log_sink_t;

KILN_EXTERN_C_END

#endif  // KILN_LOG_H_
