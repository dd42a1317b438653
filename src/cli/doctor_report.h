// SPDX-License-Identifier: Apache-2.0
//
// cli: the facts as `kiln doctor` shows them.
#ifndef KILN_SRC_CLI_DOCTOR_REPORT_H_
#define KILN_SRC_CLI_DOCTOR_REPORT_H_

#include <jansson.h>
#include <stdio.h>

#include "kiln/probe.h"
#include "kiln/watch.h"

// How many of the facts are shown. thread-compatible
typedef struct kilni_cli_doctor_view_t {
  bool all;                   // every component in the catalog, found or not
  bool trail;                 // for each, every path that was rejected
  const kiln_watch_t* watch;  // NULL: no current values
} kilni_cli_doctor_view_t;

// All facts.
json_t* kilni_cli_doctor_json(const kiln_probe_t* probe,
                              kilni_cli_doctor_view_t view);

// The facts as text.
void kilni_cli_doctor_print(FILE* out, const kiln_probe_t* probe,
                            kilni_cli_doctor_view_t view);

// Temperature, power and clocks of the GPUs that NVML sees, in lines that start
// `indent` to the right, and as a list.
void kilni_cli_now_print(FILE* out, const kiln_watch_t* watch, int indent);
json_t* kilni_cli_now_json(const kiln_watch_t* watch);

// The verdict of the findings about one use: KILN_COMPAT_VERDICT_*. Findings
// about the components as such have the use ANY and do not affect other uses.
uint32_t kilni_cli_doctor_verdict(const kiln_compat_report_t* report,
                                  uint32_t use);

// Writes `text` with the user's folder as ~ and the user's name in any other
// path as USER. `home` may be NULL or "": then nothing is shortened.
void kilni_cli_shorten(FILE* out, const char* text, size_t size,
                       const char* home);

#endif  // KILN_SRC_CLI_DOCTOR_REPORT_H_
