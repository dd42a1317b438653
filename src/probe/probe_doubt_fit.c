// SPDX-License-Identifier: Apache-2.0
//
// probe: components that are incompatible with each other or the driver, as
// compat judges.
//
// One problem for each rule and use, with the first components that break it:
// `kiln check` reports the rest. What cannot be decided is not a problem here,
// unless the sources of a release contradict each other.
#include <stdio.h>
#include <string.h>

#include "base/status_make.h"
#include "probe/probe_sheet.h"

enum { MAX_GROUPS = 64 };

// Stable words for the rules.
static const struct {
  uint32_t rule;
  const char* id;
} kIds[] = {
    {KILN_COMPAT_RULE_EVIDENCE, "evidence-contradicts"},
    {KILN_COMPAT_RULE_COMPONENT, "mixed-component"},
    {KILN_COMPAT_RULE_COMPANION, "mixed-companions"},
    {KILN_COMPAT_RULE_HEADER_COMPILER, "mixed-headers"},
    {KILN_COMPAT_RULE_NEEDED_SYMBOL, "needed-symbol-missing"},
    {KILN_COMPAT_RULE_LINKER_RANGE, "linker-too-old"},
    {KILN_COMPAT_RULE_NVVM_IR, "mixed-nvvm"},
    {KILN_COMPAT_RULE_PTX_DRIVER, "ptx-newer-than-driver"},
    {KILN_COMPAT_RULE_CUBIN_DRIVER, "cubin-newer-than-driver"},
    {KILN_COMPAT_RULE_DRIVER, "driver-too-old"},
};

static const char* id_of(uint32_t rule) {
  for (size_t i = 0; i < sizeof(kIds) / sizeof(kIds[0]); i++) {
    if (kIds[i].rule == rule) return kIds[i].id;
  }
  return NULL;
}

// Findings of one rule about one use. thread-compatible
typedef struct group_t {
  const kiln_compat_finding_t* first;
  uint32_t count;
} group_t;

static size_t group_findings(const kiln_compat_report_t* report,
                             group_t groups[MAX_GROUPS]) {
  size_t count = 0;
  uint32_t findings = kiln_compat_report_finding_count(report);
  for (uint32_t i = 0; i < findings; i++) {
    const kiln_compat_finding_t* one = kiln_compat_report_finding(report, i);
    bool contradicts = one->rule == KILN_COMPAT_RULE_EVIDENCE;
    if (one->verdict != KILN_COMPAT_VERDICT_INCOMPATIBLE && !contradicts) {
      continue;
    }
    if (id_of(one->rule) == NULL) continue;
    size_t at = 0;
    while (at < count && (groups[at].first->rule != one->rule ||
                          groups[at].first->use != one->use)) {
      at++;
    }
    if (at == MAX_GROUPS) break;
    if (at == count) {
      groups[at].first = one;
      groups[at].count = 0;
      count++;
    }
    groups[at].count++;
  }
  return count;
}

kiln_status_t kilni_probe_doubt_fit(kiln_probe_t* probe) {
  if (probe->report == NULL) return kiln_ok();
  group_t groups[MAX_GROUPS];
  size_t count = group_findings(probe->report, groups);
  for (size_t i = 0; i < count; i++) {
    const kiln_compat_finding_t* one = groups[i].first;
    char more[64] = "";
    char only[64] = "";
    if (groups[i].count > 1) {
      snprintf(more, sizeof(more), " (and %u more like it)",
               (unsigned)groups[i].count - 1);
    }
    // An undeclared use may not exist.
    if (!one->counts && one->use != KILN_COMPAT_USE_ANY) {
      snprintf(only, sizeof(only),
               "only for %s: ", kiln_compat_use_word(one->use));
    }
    KILNI_RETURN_IF_ERROR(kilni_probe_add_problem(
        probe, id_of(one->rule),
        one->counts ? KILN_PROBE_SEVERITY_WARNING : KILN_PROBE_SEVERITY_NOTE,
        one->fix, "%s%s%s", only, one->message, more));
  }
  return kiln_ok();
}
