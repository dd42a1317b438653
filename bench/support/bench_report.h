// SPDX-License-Identifier: Apache-2.0
//
// bench: what every benchmark prints: a table for people on standard error, and
// the JSON of `kiln bench` on standard output.
#ifndef KILN_BENCH_SUPPORT_BENCH_REPORT_H_
#define KILN_BENCH_SUPPORT_BENCH_REPORT_H_

#include <stdint.h>

enum { BENCH_MAX_ROWS = 512, BENCH_NAME_BYTES = 96 };

// One result. thread-compatible
//
// `ratio` above 1 is better than the baseline. `median` and `gflops` are what a
// benchmark may set behind bench_report_more and _less: the median of the runs
// of which `value` is the best one, and the floating-point operations of that
// one, in 1e9 a second; 0: not said.
typedef struct bench_row_t {
  char name[BENCH_NAME_BYTES];
  char baseline[BENCH_NAME_BYTES];
  const char* unit;
  double value;
  double baseline_value;
  double ratio;
  double median;
  double gflops;
} bench_row_t;

// All results of a run. one-thread
typedef struct bench_report_t {
  const char* device;
  int count;
  bench_row_t rows[BENCH_MAX_ROWS];
} bench_report_t;

// Adds a row in which more is better; `baseline` may be NULL.
void bench_report_more(bench_report_t* report, const char* name,
                       const char* unit, double value, const char* baseline,
                       double baseline_value);
// Adds a row in which less is better.
void bench_report_less(bench_report_t* report, const char* name,
                       const char* unit, double value, const char* baseline,
                       double baseline_value);
void bench_report_print(const bench_report_t* report);

// Monotonic nanoseconds.
uint64_t bench_time_ns(void);

// The one in the middle; sorts them, the least first.
double bench_median(double* values, int count);

#endif  // KILN_BENCH_SUPPORT_BENCH_REPORT_H_
