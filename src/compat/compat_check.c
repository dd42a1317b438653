// SPDX-License-Identifier: Apache-2.0
//
// compat: a request becomes a report.
#include <string.h>

#include "base/status_make.h"
#include "compat/compat.h"

#define NOT_YET KILNI_FAIL(UNSUPPORTED, "not in this build")

kiln_compat_conclusion_t kiln_compat_line_conclude(
    const kiln_compat_evidence_t* e, uint32_t n) {
  (void)e;
  (void)n;
  kiln_compat_conclusion_t c = {0, 0, 0, UINT32_MAX, UINT32_MAX, false};
  return c;
}
kiln_compat_evidence_t kiln_compat_evidence_of_wheel(const char* n,
                                                     const char* v) {
  (void)n;
  (void)v;
  kiln_compat_evidence_t e = {KILN_COMPAT_SOURCE_WHEEL, 0, NULL};
  return e;
}
kiln_compat_evidence_t kiln_compat_evidence_of_pin(const char* t, const char* r,
                                                   const char* n,
                                                   const char* v) {
  (void)t;
  (void)r;
  (void)n;
  (void)v;
  kiln_compat_evidence_t e = {KILN_COMPAT_SOURCE_RANGE_PIN, 0, NULL};
  return e;
}
kiln_status_t kiln_compat_check(const kiln_compat_request_t* r,
                                kiln_compat_report_t** o) {
  (void)r;
  *o = NULL;
  return NOT_YET;
}
void kiln_compat_report_retain(kiln_compat_report_t* r) {
  (void)r;
}
void kiln_compat_report_release(kiln_compat_report_t* r) {
  (void)r;
}
uint32_t kiln_compat_report_verdict(const kiln_compat_report_t* r) {
  (void)r;
  return KILN_COMPAT_VERDICT_UNKNOWN;
}
uint32_t kiln_compat_report_verdict_of_use(const kiln_compat_report_t* r,
                                           uint32_t u) {
  (void)r;
  (void)u;
  return KILN_COMPAT_VERDICT_UNKNOWN;
}
uint32_t kiln_compat_report_finding_count(const kiln_compat_report_t* r) {
  (void)r;
  return 0;
}
const kiln_compat_finding_t* kiln_compat_report_finding(
    const kiln_compat_report_t* r, uint32_t i) {
  (void)r;
  (void)i;
  return NULL;
}
const kiln_compat_finding_t* kiln_compat_report_refusal(
    const kiln_compat_report_t* r, uint32_t m) {
  (void)r;
  (void)m;
  return NULL;
}
kiln_status_t kiln_compat_report_status(const kiln_compat_report_t* r,
                                        uint32_t m) {
  (void)r;
  (void)m;
  return NULL;
}
void kiln_compat_report_format(const kiln_compat_report_t* r, size_t c, char* b,
                               size_t* o) {
  (void)r;
  (void)c;
  (void)b;
  if (o) *o = 0;
}
