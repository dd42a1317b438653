// SPDX-License-Identifier: Apache-2.0
//
// base: writing to the log sink from inside the library.
#ifndef KILN_SRC_BASE_LOG_LINE_H_
#define KILN_SRC_BASE_LOG_LINE_H_

#include "base/status_make.h"
#include "kiln/log.h"

bool kilni_base_log_wants(const kiln_log_sink_t* sink, kiln_log_level_t level);
void kilni_base_log_line(const kiln_log_sink_t* sink, kiln_log_level_t level,
                         const char* module, const char* format, ...)
    KILN_PRINTF(4, 5);

#define KILNI_LOG(sink, level, ...) \
  kilni_base_log_line((sink), KILN_LOG_##level, KILNI_MODULE, __VA_ARGS__)

#endif  // KILN_SRC_BASE_LOG_LINE_H_
