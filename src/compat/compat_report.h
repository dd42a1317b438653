// SPDX-License-Identifier: Apache-2.0
//
// compat: a report while it is written.
//
// Private to the module: its files share it.
#ifndef KILN_SRC_COMPAT_COMPAT_REPORT_H_
#define KILN_SRC_COMPAT_COMPAT_REPORT_H_

#include "base/str.h"
#include "kiln/compat.h"

enum {
  KILNI_COMPAT_MAX_FINDINGS = 16384,  // more are LIMIT_EXCEEDED
  KILNI_COMPAT_MAX_TEXT = 1 << 16,    // bytes of one sentence
};

// The finding of a rule. thread-compatible
//
// `parties` are at most two facts; `names_driver` makes the driver one more.
typedef struct kilni_compat_finding_t {
  uint32_t rule;
  uint32_t use;
  uint32_t verdict;
  bool counts;
  bool names_driver;
  const kiln_compat_fact_t* parties[2];
  kilni_base_str_t message;
  kilni_base_str_t fix;
} kilni_compat_finding_t;

kiln_status_t kilni_compat_report_create(kiln_allocator_t allocator,
                                         uint32_t mode,
                                         kiln_compat_report_t** out_report);

// Starts a finding, whose two texts are then added to.
void kilni_compat_finding_init(kilni_compat_finding_t* finding,
                               kiln_allocator_t allocator, uint32_t rule,
                               uint32_t use, uint32_t verdict, bool counts);

// Copies the finding into the report and ends it, also on failure. `driver`
// may be NULL where the finding does not name it.
kiln_status_t kilni_compat_report_add(kiln_compat_report_t* report,
                                      kilni_compat_finding_t* finding,
                                      const kiln_compat_driver_t* driver);

// Notes that a pipeline of a use is judged, whatever comes of it.
void kilni_compat_report_judge(kiln_compat_report_t* report, uint32_t use,
                               bool declared);

// Puts the findings into their order. Nothing is added after it.
void kilni_compat_report_finish(kiln_compat_report_t* report);

#endif  // KILN_SRC_COMPAT_COMPAT_REPORT_H_
