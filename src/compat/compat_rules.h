// SPDX-License-Identifier: Apache-2.0
//
// compat: the rules, between a request that has become a set and its report.
//
// Private to the module: its files share it.
#ifndef KILN_SRC_COMPAT_COMPAT_RULES_H_
#define KILN_SRC_COMPAT_COMPAT_RULES_H_

#include "base/str.h"
#include "kiln/allocator.h"
#include "kiln/compat.h"
#include "kiln/status.h"

// A request as a set: sorted, without repetitions, texts never NULL where a
// rule reads them. one-thread
typedef struct kilni_compat_check_t {
  kiln_allocator_t allocator;
  const kiln_compat_fact_t* facts;
  const kiln_compat_use_t* uses;
  uint32_t fact_count;
  uint32_t use_count;
  kiln_compat_driver_t driver;
  const char* constraint;  // NULL: none
  bool forward_compat;
  uint32_t subject;  // an index of `facts`; UINT32_MAX: all
  kiln_compat_report_t* report;
} kilni_compat_check_t;

// Whether a finding about these two is asked for; `b` may be NULL.
bool kilni_compat_check_asks(const kilni_compat_check_t* check,
                             const kiln_compat_fact_t* a,
                             const kiln_compat_fact_t* b);

// The rules about one component, about two, and about uses. Each adds what it
// finds to the report.
kiln_status_t kilni_compat_rules_piece(kilni_compat_check_t* check,
                                       const kiln_compat_fact_t* fact);
kiln_status_t kilni_compat_rules_pair(kilni_compat_check_t* check,
                                      const kiln_compat_fact_t* a,
                                      const kiln_compat_fact_t* b);
kiln_status_t kilni_compat_rules_needs(kilni_compat_check_t* check,
                                       const kiln_compat_fact_t* fact);
kiln_status_t kilni_compat_rules_uses(kilni_compat_check_t* check);

// The driver against one component, and once for all components where it is
// unknown.
kiln_status_t kilni_compat_rules_driver(kilni_compat_check_t* check,
                                        const kiln_compat_fact_t* fact);
kiln_status_t kilni_compat_rules_driver_unknown(kilni_compat_check_t* check);

// ---- What the files of the rules share ----

// Whether the driver runs what a toolkit of `line` makes.
enum {
  KILNI_DRIVER_RUNS = 1,       // it is as new, or its branch is new enough
  KILNI_DRIVER_OLDER_MAJOR,    // an older major
  KILNI_DRIVER_OLDER_BRANCH,   // the same major, a branch that is too old
  KILNI_DRIVER_NO_BRANCH,      // the same major, and the branch is unknown
  KILNI_DRIVER_NO_MINOR_RULE,  // the same major, one without the minor rule
};
uint32_t kilni_compat_driver_runs(const kiln_compat_driver_t* driver,
                                  uint32_t line);

// The minimum branch of the display driver for a major; 0: none is published.
uint32_t kilni_compat_driver_least_branch(uint32_t major);

bool kilni_compat_fact_is(const kiln_compat_fact_t* fact, uint32_t kind,
                          const char* name);

// "13.0", or "an unknown line".
typedef struct kilni_compat_line_text_t {
  char text[24];
} kilni_compat_line_text_t;
kilni_compat_line_text_t kilni_compat_line_text(uint32_t line);

// Adds `lib:nvrtc of CUDA 13.0 ("/path"; by symbol ...)`.
void kilni_compat_fact_describe(kilni_base_str_t* str,
                                const kiln_compat_fact_t* fact);
// Adds `the driver of CUDA 13.0 (release 580.65.06; ...)`.
void kilni_compat_driver_describe(kilni_base_str_t* str,
                                  const kiln_compat_driver_t* driver);
// Adds the command that installs the component of a release from wheels.
void kilni_compat_fact_install(kilni_base_str_t* str,
                               const kiln_compat_fact_t* fact, uint32_t line);

#endif  // KILN_SRC_COMPAT_COMPAT_RULES_H_
