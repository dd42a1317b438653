// SPDX-License-Identifier: Apache-2.0
//
// bench: what it takes to find pieces and read their versions on this machine
// as it is: in this process, and by the command as a process of its own.
//
//   bench_toolkit [NAME]
//
// NAME is a library, by default nvrtc. The baselines are the limits that Kiln
// sets itself. "line known" is what `kiln find` needs to print a line; for
// "release known" the RECORD of who installed it is read as well.
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_check.h"
#include "bench_report.h"
#include "kiln/toolkit.h"

enum { RUNS = 201, CATALOG_RUNS = 21 };

static const double kLimitFind = 50;  // microseconds
static const double kLimitCatalog = 5000;
static const double kLimitProcess = 1200;

static double microseconds(uint64_t start) {
  return (double)(bench_time_ns() - start) / 1000.0;
}

static kiln_toolkit_t* create(uint32_t verify) {
  kiln_toolkit_options_t options = kiln_toolkit_options_default();
  kiln_toolkit_t* toolkit = NULL;
  options.mode = KILN_COMPAT_MODE_OFF;
  options.verify = verify;
  bench_expect(kiln_toolkit_create(&options, &toolkit));
  return toolkit;
}

static void resolve(kiln_toolkit_t* toolkit, uint32_t kind, const char* name) {
  kiln_toolkit_item_t* item = NULL;
  bench_expect(kiln_toolkit_resolve(toolkit, kind, name, &item));
  kiln_toolkit_item_release(item);
}

static void resolve_all(kiln_toolkit_t* toolkit) {
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    const kiln_locate_entry_t* entry = kiln_locate_entry(i);
    resolve(toolkit, kiln_locate_entry_kind(entry),
            kiln_locate_entry_name(entry));
  }
}

// The median and, behind it, the least.
static void report_both(bench_report_t* report, const char* what,
                        double* values, int count, double limit) {
  char text[BENCH_NAME_BYTES];
  snprintf(text, sizeof(text), "%s", what);
  bench_report_less(report, text, "us", bench_median(values, count),
                    limit > 0 ? "limit" : NULL, limit);
  snprintf(text, sizeof(text), "%s, least", what);
  bench_report_less(report, text, "us", values[0], limit > 0 ? "limit" : NULL,
                    limit);
}

static void bench_inside(bench_report_t* report, const char* name) {
  double first[RUNS], again[RUNS], all[CATALOG_RUNS];
  for (uint32_t verify = KILN_SWITCH_DEFAULT; verify <= KILN_SWITCH_OFF;
       verify++) {
    bool is_least = verify == KILN_SWITCH_OFF;
    for (int i = 0; i < RUNS; i++) {
      uint64_t start = bench_time_ns();
      kiln_toolkit_t* toolkit = create(verify);
      resolve(toolkit, KILN_LOCATE_KIND_LIB, name);
      first[i] = microseconds(start);
      start = bench_time_ns();
      resolve(toolkit, KILN_LOCATE_KIND_LIB, name);
      again[i] = microseconds(start);
      kiln_toolkit_release(toolkit);
    }
    for (int i = 0; i < CATALOG_RUNS; i++) {
      uint64_t start = bench_time_ns();
      kiln_toolkit_t* toolkit = create(verify);
      resolve_all(toolkit);
      kiln_toolkit_release(toolkit);
      all[i] = microseconds(start);
    }
    report_both(report,
                is_least ? "inside: new context, found, line known"
                         : "inside: new context, found, release known",
                first, RUNS, kLimitFind);
    if (!is_least) {
      report_both(report, "inside: the same again", again, RUNS, 0);
    }
    report_both(report,
                is_least ? "inside: whole catalog, lines known"
                         : "inside: whole catalog, releases known",
                all, CATALOG_RUNS, kLimitCatalog);
  }
}

#if defined(BENCH_KILN)
extern char** environ;

static double run(char* const* argv) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  uint64_t start = bench_time_ns();
  pid_t child = 0;
  int status = 0;
  if (posix_spawn(&child, argv[0], &actions, NULL, argv, environ) != 0) {
    exit(1);
  }
  (void)waitpid(child, &status, 0);
  double time = microseconds(start);
  posix_spawn_file_actions_destroy(&actions);
  return time;
}

static void bench_command(bench_report_t* report, const char* name) {
  char kiln[] = BENCH_KILN, find[] = "find", lib[] = "lib", all[] = "--all",
       nothing[] = "/bin/true", piece[64];
  snprintf(piece, sizeof(piece), "%s", name);
  char* one_argv[] = {kiln, find, lib, piece, NULL};
  char* all_argv[] = {kiln, find, all, NULL};
  char* least_argv[] = {nothing, NULL};
  double one[RUNS], every[RUNS], least[RUNS];
  for (int i = 0; i < RUNS; i++) {
    least[i] = run(least_argv);
    one[i] = run(one_argv);
    every[i] = run(all_argv);
  }
  report_both(report, "process: /bin/true", least, RUNS, 0);
  report_both(report, "process: kiln find lib", one, RUNS, kLimitProcess);
  report_both(report, "process: kiln find --all", every, RUNS, kLimitCatalog);
}
#endif

int main(int argc, char** argv) {
  static bench_report_t report;
  const char* name = argc > 1 ? argv[1] : "nvrtc";
  report.device = "none";
  bench_inside(&report, name);
#if defined(BENCH_KILN)
  bench_command(&report, name);
#endif
  bench_report_print(&report);
  return 0;
}
