// SPDX-License-Identifier: Apache-2.0
//
// bench: what it takes to find things, in this process and as a process of
// its own, over a made-up virtual environment with CUDA 13 wheels.
//
//   bench_find [--here]
//
// --here searches this machine as it is, with its own environment. The
// baselines are the limits that Kiln sets itself.
#define _XOPEN_SOURCE 700
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_report.h"
#include "kiln/locate.h"

enum { RUNS = 201, PROCESS_RUNS = 101, PATH_BYTES = 512 };

static const double kLimitFind = 50;  // microseconds
static const double kLimitCatalog = 5000;
static const double kLimitProcess = 1200;

static const char* const kFiles[] = {
    "nvidia/cu13/lib/libnvrtc.so.13",
    "nvidia/cu13/lib/libnvJitLink.so.13",
    "nvidia/cu13/lib/libcudart.so.13",
    "nvidia/cu13/lib/libcudadevrt.a",
    "nvidia/cu13/lib/libnvvm.so.4",
    "nvidia/cu13/include/nvrtc.h",
    "nvidia/cu13/include/cuda_runtime.h",
    "nvidia/cu13/include/cccl/cuda/std/version",
    "nvidia/cu13/nvvm/libdevice/libdevice.10.bc",
    "nvidia/cu13/bin/ptxas"};

// ---- The tree ----

static void put(const char* root, const char* name, const char* text) {
  char path[PATH_BYTES];
  snprintf(path, sizeof(path), "%s/%s", root, name);
  for (char* at = path + strlen(root) + 1; *at != 0; at++) {
    if (*at != '/') continue;
    *at = 0;
    mkdir(path, 0755);
    *at = '/';
  }
  FILE* file = fopen(path, "w");
  if (file == NULL) exit(1);
  fputs(text, file);
  fclose(file);
}

static void make_tree(const char* root) {
  put(root, "pyvenv.cfg", "home = /usr/bin\nversion = 3.11.7\n");
  for (size_t i = 0; i < sizeof(kFiles) / sizeof(kFiles[0]); i++) {
    char name[PATH_BYTES];
    snprintf(name, sizeof(name), "lib/python3.11/site-packages/%s", kFiles[i]);
    put(root, name, "");
  }
}

// ---- In this process ----

static kiln_locate_t* create(void) {
  kiln_locate_t* locate = NULL;
  kiln_status_t status = kiln_locate_create(NULL, &locate);
  if (!kiln_status_is_ok(status)) exit(1);
  return locate;
}

static bool find(kiln_locate_t* locate, uint32_t kind, const char* name) {
  kiln_locate_item_t* item = NULL;
  kiln_status_t status = kiln_locate_find(locate, kind, name, &item);
  if (!kiln_status_is_ok(status)) exit(1);
  bool found = kiln_locate_item_found(item);
  kiln_locate_item_release(item);
  return found;
}

static uint32_t find_catalog(kiln_locate_t* locate) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < kiln_locate_entry_count(); i++) {
    const kiln_locate_entry_t* entry = kiln_locate_entry(i);
    found += find(locate, kiln_locate_entry_kind(entry),
                  kiln_locate_entry_name(entry))
                 ? 1
                 : 0;
  }
  return found;
}

static double microseconds(uint64_t since) {
  return (double)(bench_time_ns() - since) / 1000.0;
}

static void bench_inside(bench_report_t* report) {
  double first[RUNS], again[RUNS], catalog[RUNS];
  for (int i = 0; i < RUNS; i++) {
    uint64_t start = bench_time_ns();
    kiln_locate_t* locate = create();
    find(locate, KILN_LOCATE_KIND_LIB, "nvrtc");
    first[i] = microseconds(start);
    start = bench_time_ns();
    find(locate, KILN_LOCATE_KIND_LIB, "nvrtc");
    again[i] = microseconds(start);
    kiln_locate_refresh(locate);
    start = bench_time_ns();
    find_catalog(locate);
    catalog[i] = microseconds(start);
    kiln_locate_release(locate);
  }
  bench_report_less(report, "find nvrtc, new context", "us",
                    bench_median(first, RUNS), "limit", kLimitFind);
  bench_report_less(report, "find nvrtc, again", "us",
                    bench_median(again, RUNS), "new context",
                    bench_median(first, RUNS));
  bench_report_less(report, "find the whole catalog", "us",
                    bench_median(catalog, RUNS), "limit", kLimitCatalog);
}

// ---- As a process ----

extern char** environ;

static double run(const char* program, const char* what) {
  char self[PATH_BYTES];
  char word[16];
  snprintf(self, sizeof(self), "%s", program);
  snprintf(word, sizeof(word), "%s", what);
  char* arguments[] = {self, word, NULL};
  pid_t child;
  uint64_t start = bench_time_ns();
  if (posix_spawn(&child, self, NULL, NULL, arguments, environ) != 0) exit(1);
  int state = 0;
  if (waitpid(child, &state, 0) != child || state != 0) exit(1);
  return microseconds(start);
}

static void bench_process(bench_report_t* report, const char* program) {
  double nothing[PROCESS_RUNS], one[PROCESS_RUNS], all[PROCESS_RUNS];
  for (int i = 0; i < PROCESS_RUNS; i++) {
    nothing[i] = run(program, "--nothing");
    one[i] = run(program, "--one");
    all[i] = run(program, "--all");
  }
  double least = bench_median(nothing, PROCESS_RUNS);
  bench_report_less(report, "process: nothing", "us", least, NULL, 0);
  bench_report_less(report, "process: find nvrtc", "us",
                    bench_median(one, PROCESS_RUNS), "limit", kLimitProcess);
  bench_report_less(report, "process: find the whole catalog", "us",
                    bench_median(all, PROCESS_RUNS), "limit", kLimitCatalog);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "--nothing") == 0) return 0;
  if (strcmp(what, "--one") == 0 || strcmp(what, "--all") == 0) {
    kiln_locate_t* locate = create();
    if (what[2] == 'o') find(locate, KILN_LOCATE_KIND_LIB, "nvrtc");
    if (what[2] == 'a') find_catalog(locate);
    kiln_locate_release(locate);
    return 0;
  }
  static bench_report_t report;
  report.device = "none";
  char root[] = "/tmp/kiln-bench-XXXXXX";
  bool here = strcmp(what, "--here") == 0;
  if (!here) {
    if (mkdtemp(root) == NULL) return 1;
    make_tree(root);
    setenv("VIRTUAL_ENV", root, 1);
    unsetenv("PYTHONPATH");
    unsetenv("LD_LIBRARY_PATH");
  }
  char program[PATH_BYTES];
  ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
  if (size <= 0) return 1;
  program[size] = 0;
  bench_inside(&report);
  bench_process(&report, program);
  bench_report_print(&report);
  if (!here) {
    char command[PATH_BYTES];
    snprintf(command, sizeof(command), "rm -r %s", root);
    return system(command) != 0;
  }
  return 0;
}
