// SPDX-License-Identifier: Apache-2.0
//
// bench: what it takes to find pieces and read their versions on this machine
// as it is: in this process, and by the command as a process of its own.
//
//   bench_toolkit [NAME]
//
// NAME is a library, by default nvrtc. The baselines are the limits that Kiln
// sets itself.
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_report.h"
#include "kiln/toolkit.h"

enum { RUNS = 201, CATALOG_RUNS = 21 };

static const double kLimitFind = 50;  // microseconds
static const double kLimitCatalog = 5000;
static const double kLimitProcess = 1200;

static int compare(const void* a, const void* b) {
  double x = *(const double*)a;
  double y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof(*values), compare);
  return values[count / 2];
}

static double microseconds(uint64_t start) {
  return (double)(bench_time_ns() - start) / 1000.0;
}

static void expect(kiln_status_t status) {
  if (kiln_status_is_ok(status)) return;
  fprintf(stderr, "%s\n", kiln_status_message(status));
  exit(1);
}

static kiln_toolkit_t* create(uint32_t mode) {
  kiln_toolkit_options_t options = kiln_toolkit_options_default();
  kiln_toolkit_t* toolkit = NULL;
  options.mode = mode;
  expect(kiln_toolkit_create(&options, &toolkit));
  return toolkit;
}

static void resolve(kiln_toolkit_t* toolkit, uint32_t kind, const char* name) {
  kiln_toolkit_item_t* item = NULL;
  expect(kiln_toolkit_resolve(toolkit, kind, name, &item));
  kiln_toolkit_item_release(item);
}

static void bench_inside(bench_report_t* report, const char* name) {
  double first[RUNS];
  double again[RUNS];
  double all[CATALOG_RUNS];
  for (int i = 0; i < RUNS; i++) {
    uint64_t start = bench_time_ns();
    kiln_toolkit_t* toolkit = create(KILN_COMPAT_MODE_OFF);
    resolve(toolkit, KILN_LOCATE_KIND_LIB, name);
    first[i] = microseconds(start);
    start = bench_time_ns();
    resolve(toolkit, KILN_LOCATE_KIND_LIB, name);
    again[i] = microseconds(start);
    kiln_toolkit_release(toolkit);
  }
  for (int i = 0; i < CATALOG_RUNS; i++) {
    uint64_t start = bench_time_ns();
    kiln_toolkit_t* toolkit = create(KILN_COMPAT_MODE_OFF);
    for (uint32_t j = 0; j < kiln_locate_entry_count(); j++) {
      const kiln_locate_entry_t* entry = kiln_locate_entry(j);
      resolve(toolkit, kiln_locate_entry_kind(entry),
              kiln_locate_entry_name(entry));
    }
    kiln_toolkit_release(toolkit);
    all[i] = microseconds(start);
  }
  bench_report_less(report, "inside: a new context, found and versioned", "us",
                    median(first, RUNS), NULL, 0);
  bench_report_less(report, "inside: the same again", "us", median(again, RUNS),
                    "limit", kLimitFind);
  bench_report_less(report, "inside: the whole catalog, versioned", "us",
                    median(all, CATALOG_RUNS), "limit", kLimitCatalog);
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
  bench_report_less(report, "process: /bin/true", "us", median(least, RUNS),
                    NULL, 0);
  bench_report_less(report, "process: kiln find lib", "us", median(one, RUNS),
                    "limit", kLimitProcess);
  bench_report_less(report, "process: kiln find --all", "us",
                    median(every, RUNS), "limit", kLimitCatalog);
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
