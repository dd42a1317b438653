// SPDX-License-Identifier: Apache-2.0
//
// cli: the fact sheet as `kiln doctor` shows it.
#ifndef KILN_SRC_CLI_DOCTOR_REPORT_H_
#define KILN_SRC_CLI_DOCTOR_REPORT_H_

#include <jansson.h>
#include <stdio.h>

#include "kiln/probe.h"
#include "kiln/watch.h"

// How much of the sheet is shown. thread-compatible
typedef struct kilni_cli_doctor_view_t {
  bool all;    // every piece of the catalog, also what was not found
  bool trail;  // of each, every path that was looked at in vain
  const kiln_watch_t* watch;  // NULL: nothing is said of the moment
} kilni_cli_doctor_view_t;

// The whole sheet.
json_t* kilni_cli_doctor_json(const kiln_probe_t* probe,
                              kilni_cli_doctor_view_t view);

// The sheet for people.
void kilni_cli_doctor_print(FILE* out, const kiln_probe_t* probe,
                            kilni_cli_doctor_view_t view);

// Temperature, power and clocks of the GPUs that NVML sees, in lines that start
// `indent` to the right, and as a list.
void kilni_cli_now_print(FILE* out, const kiln_watch_t* watch, int indent);
json_t* kilni_cli_now_json(const kiln_watch_t* watch);

// What the findings about a use alone say: KILN_COMPAT_VERDICT_*. Those about
// the pieces as such have the use ANY and break no other by themselves.
uint32_t kilni_cli_doctor_verdict(const kiln_compat_report_t* report,
                                  uint32_t use);

// Writes `text` with the user's folder as ~ and the user's name in any other
// path as USER. `home` may be NULL or "": then nothing is private.
void kilni_cli_shorten(FILE* out, const char* text, size_t size,
                       const char* home);

#endif  // KILN_SRC_CLI_DOCTOR_REPORT_H_
