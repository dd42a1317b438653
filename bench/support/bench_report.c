// SPDX-License-Identifier: Apache-2.0
//
// bench: what every benchmark prints.
#define _POSIX_C_SOURCE 200809L
#include "bench_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t bench_time_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a;
  double y = *(const double*)b;
  return (x > y) - (x < y);
}

double bench_median(double* values, int count) {
  qsort(values, (size_t)count, sizeof(*values), by_value);
  return values[count / 2];
}

static void add(bench_report_t* report, const char* name, const char* unit,
                double value, const char* baseline, double baseline_value,
                double ratio) {
  if (report->count == BENCH_MAX_ROWS) return;
  bench_row_t* row = &report->rows[report->count++];
  snprintf(row->name, sizeof(row->name), "%s", name);
  snprintf(row->baseline, sizeof(row->baseline), "%s",
           baseline ? baseline : "");
  row->unit = unit;
  row->value = value;
  row->baseline_value = baseline_value;
  row->ratio = baseline ? ratio : 0;
  row->median = 0;
  row->gflops = 0;
}

void bench_report_more(bench_report_t* report, const char* name,
                       const char* unit, double value, const char* baseline,
                       double baseline_value) {
  add(report, name, unit, value, baseline, baseline_value,
      value / baseline_value);
}

void bench_report_less(bench_report_t* report, const char* name,
                       const char* unit, double value, const char* baseline,
                       double baseline_value) {
  add(report, name, unit, value, baseline, baseline_value,
      baseline_value / value);
}

static void print_json(const bench_report_t* report) {
  printf("{\"device\":\"%s\",\"benches\":[", report->device);
  for (int i = 0; i < report->count; i++) {
    const bench_row_t* row = &report->rows[i];
    printf("%s{\"name\":\"%s\",\"unit\":\"%s\",\"value\":%.6g", i ? "," : "",
           row->name, row->unit, row->value);
    if (row->baseline[0] != 0) {
      printf(",\"baseline\":{\"name\":\"%s\",\"value\":%.6g},\"ratio\":%.4g",
             row->baseline, row->baseline_value, row->ratio);
    }
    if (row->median != 0) printf(",\"median\":%.6g", row->median);
    if (row->gflops != 0) printf(",\"gflops\":%.6g", row->gflops);
    printf("}");
  }
  printf("]}\n");
}

void bench_report_print(const bench_report_t* report) {
  for (int i = 0; i < report->count; i++) {
    const bench_row_t* row = &report->rows[i];
    fprintf(stderr, "%-44s %12.4g %s", row->name, row->value, row->unit);
    if (row->baseline[0] != 0) {
      fprintf(stderr, "   %s %.4g   ratio %.4g", row->baseline,
              row->baseline_value, row->ratio);
    }
    if (row->median != 0) fprintf(stderr, "   median %.4g", row->median);
    if (row->gflops != 0) fprintf(stderr, "   GFLOP/s %.4g", row->gflops);
    fprintf(stderr, "\n");
  }
  print_json(report);
}
