// SPDX-License-Identifier: Apache-2.0
//
// compat: the driver against a component of the toolkit.
//
// Backward: a newer driver runs what an older toolkit makes. Minor-version: a
// driver of the same major runs it too from a published branch on. Forward: the
// user vouches for it (a cuda-compat package), which waives this rule only.
#include "base/str.h"
#include "compat/compat_report.h"
#include "compat/compat_rules.h"
#include "kiln/compat.h"
#include "kiln/status.h"

// From which branch of the display driver on every toolkit of a major runs.
static const struct {
  uint32_t major;
  uint32_t branch;
} kLeastBranches[] = {{11, 450}, {12, 525}, {13, 580}};

uint32_t kilni_compat_driver_least_branch(uint32_t major) {
  size_t count = sizeof(kLeastBranches) / sizeof(kLeastBranches[0]);
  for (size_t i = 0; i < count; i++) {
    if (kLeastBranches[i].major == major) return kLeastBranches[i].branch;
  }
  return 0;
}

uint32_t kilni_compat_driver_runs(const kiln_compat_driver_t* driver,
                                  uint32_t line) {
  if (driver->line >= line) return KILNI_DRIVER_RUNS;
  uint32_t major = kiln_compat_line_major(line);
  if (kiln_compat_line_major(driver->line) != major) {
    return KILNI_DRIVER_OLDER_MAJOR;
  }
  uint32_t least = kilni_compat_driver_least_branch(major);
  if (least == 0) return KILNI_DRIVER_NO_MINOR_RULE;
  if (driver->branch == 0) return KILNI_DRIVER_NO_BRANCH;
  return driver->branch >= least ? KILNI_DRIVER_RUNS
                                 : KILNI_DRIVER_OLDER_BRANCH;
}

static void driver_explain(kilni_base_str_t* message,
                           const kilni_compat_check_t* check,
                           const kiln_compat_fact_t* fact, uint32_t runs) {
  uint32_t major = kiln_compat_line_major(fact->line);
  unsigned least = (unsigned)kilni_compat_driver_least_branch(major);
  kilni_compat_driver_describe(message, &check->driver);
  switch (runs) {
    case KILNI_DRIVER_OLDER_MAJOR:
      kilni_base_str_addf(message, " is of an older major than ");
      kilni_compat_fact_describe(message, fact);
      kilni_base_str_add_cstr(message, ", which needs driver major >= its own");
      return;
    case KILNI_DRIVER_OLDER_BRANCH:
      kilni_base_str_addf(message, " is older than ");
      kilni_compat_fact_describe(message, fact);
      kilni_base_str_addf(message,
                          ", and its branch %u is below %u, the first that "
                          "runs every CUDA %u.x",
                          (unsigned)check->driver.branch, least,
                          (unsigned)major);
      return;
    case KILNI_DRIVER_NO_BRANCH:
      kilni_base_str_addf(message, " is older than ");
      kilni_compat_fact_describe(message, fact);
      kilni_base_str_addf(message,
                          ", and it is unknown whether its branch is at least "
                          "%u, the first that runs every CUDA %u.x",
                          least, (unsigned)major);
      return;
    default:
      kilni_base_str_addf(message, " is older than ");
      kilni_compat_fact_describe(message, fact);
      kilni_base_str_addf(
          message,
          ", and CUDA %u.x has no compatibility between minor versions",
          (unsigned)major);
  }
}

static void driver_advise(kilni_base_str_t* fix,
                          const kilni_compat_check_t* check,
                          const kiln_compat_fact_t* fact, uint32_t runs) {
  uint32_t least =
      kilni_compat_driver_least_branch(kiln_compat_line_major(fact->line));
  if (runs == KILNI_DRIVER_NO_BRANCH) {
    kilni_base_str_addf(
        fix,
        "give the driver's release, as `nvidia-smi "
        "--query-gpu=driver_version --format=csv,noheader` prints "
        "it: `--driver %u.%u,RELEASE`; ",
        (unsigned)kiln_compat_line_major(check->driver.line),
        (unsigned)kiln_compat_line_minor(check->driver.line));
  } else if (least != 0) {
    kilni_base_str_addf(fix, "install display driver %u or newer, or ",
                        (unsigned)least);
  } else {
    kilni_base_str_addf(fix, "install a driver of %s or newer, or ",
                        kilni_compat_line_text(fact->line).text);
  }
  if (runs != KILNI_DRIVER_NO_BRANCH) {
    kilni_base_str_addf(fix, "use a toolkit of %s or older: ",
                        kilni_compat_line_text(check->driver.line).text);
    kilni_compat_fact_install(fix, fact, check->driver.line);
    kilni_base_str_add_cstr(fix, "; ");
  }
  kilni_base_str_add_cstr(
      fix,
      "where a cuda-compat package lets an older driver run it, "
      "`--forward-compat`, KILN_COMPAT=strict,forward_compat or "
      "CUDA_PATHFINDER_DRIVER_COMPATIBILITY=assume_forward_compatibility "
      "waives this rule only");
}

kiln_status_t kilni_compat_rules_driver(kilni_compat_check_t* check,
                                        const kiln_compat_fact_t* fact) {
  if (check->forward_compat || fact->class_id != KILN_COMPAT_CLASS_CTK ||
      fact->line == 0 || check->driver.state != KILN_COMPAT_DRIVER_KNOWN ||
      !kilni_compat_check_asks(check, fact, NULL)) {
    return kiln_ok();
  }
  uint32_t runs = kilni_compat_driver_runs(&check->driver, fact->line);
  if (runs == KILNI_DRIVER_RUNS) return kiln_ok();
  kilni_compat_finding_t finding;
  kilni_compat_finding_init(
      &finding, check->allocator, KILN_COMPAT_RULE_DRIVER, KILN_COMPAT_USE_ANY,
      runs == KILNI_DRIVER_NO_BRANCH ? KILN_COMPAT_VERDICT_UNKNOWN
                                     : KILN_COMPAT_VERDICT_INCOMPATIBLE,
      true);
  finding.parties[0] = fact;
  finding.names_driver = true;
  driver_explain(&finding.message, check, fact, runs);
  driver_advise(&finding.fix, check, fact, runs);
  return kilni_compat_report_add(check->report, &finding, &check->driver);
}

kiln_status_t kilni_compat_rules_driver_unknown(kilni_compat_check_t* check) {
  if (check->forward_compat ||
      check->driver.state != KILN_COMPAT_DRIVER_UNKNOWN) {
    return kiln_ok();
  }
  const kiln_compat_fact_t* first = NULL;
  for (uint32_t i = 0; i < check->fact_count && first == NULL; i++) {
    const kiln_compat_fact_t* fact = &check->facts[i];
    if (fact->class_id == KILN_COMPAT_CLASS_CTK &&
        kilni_compat_check_asks(check, fact, NULL)) {
      first = fact;
    }
  }
  if (first == NULL) return kiln_ok();
  kilni_compat_finding_t finding;
  kilni_compat_finding_init(&finding, check->allocator, KILN_COMPAT_RULE_DRIVER,
                            KILN_COMPAT_USE_ANY, KILN_COMPAT_VERDICT_UNKNOWN,
                            true);
  finding.names_driver = true;
  kilni_base_str_add_cstr(&finding.message,
                          "the driver's CUDA version is unknown, and so it is "
                          "unknown whether it runs ");
  kilni_compat_fact_describe(&finding.message, first);
  kilni_base_str_add_cstr(
      &finding.fix,
      "name the driver, `--driver 13.0,580.65.06`, or state that there is "
      "none, `--driver none`; `kiln doctor` shows why it cannot be queried");
  return kilni_compat_report_add(check->report, &finding, &check->driver);
}
