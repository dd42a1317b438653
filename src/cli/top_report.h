// SPDX-License-Identifier: Apache-2.0
//
// cli: what `kiln top` shows, as text and as JSON.
#ifndef KILN_SRC_CLI_TOP_REPORT_H_
#define KILN_SRC_CLI_TOP_REPORT_H_

#include <jansson.h>
#include <stdio.h>

#include "kiln/device.h"
#include "kiln/watch.h"

// What is shown. thread-compatible
typedef struct kilni_cli_top_view_t {
  kiln_watch_t* watch;
  kiln_device_t* soft;  // the software device; NULL where it does not start
  const char* stamp;    // the time of day
} kilni_cli_top_view_t;

// Lines of at most any width, without escapes.
void kilni_cli_top_print(FILE* out, const kilni_cli_top_view_t* view);

// One object; NULL without memory.
json_t* kilni_cli_top_json(const kilni_cli_top_view_t* view);

#endif  // KILN_SRC_CLI_TOP_REPORT_H_
