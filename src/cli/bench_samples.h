// SPDX-License-Identifier: Apache-2.0
//
// cli: statistics of repeated measurements. Pure: numbers in, numbers out.
#ifndef KILN_SRC_CLI_BENCH_SAMPLES_H_
#define KILN_SRC_CLI_BENCH_SAMPLES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KILNI_CLI_BENCH_MAX_SAMPLES 1000

// Measurements in the order in which they were made. one-thread
typedef struct kilni_cli_samples_t {
  double values[KILNI_CLI_BENCH_MAX_SAMPLES];
  size_t count;
} kilni_cli_samples_t;

// Their statistics. thread-compatible
typedef struct kilni_cli_summary_t {
  double median;
  double least;
  double most;
  double low;   // a twentieth is below
  double high;  // a twentieth is above
  // The 95% confidence interval of the median.
  double median_low;
  double median_high;
} kilni_cli_summary_t;

// All zero without samples.
void kilni_cli_samples_sum(const kilni_cli_samples_t* samples,
                           kilni_cli_summary_t* out_summary);

// The median is known to `share` of itself, and there are ten samples or more.
bool kilni_cli_samples_steady(const kilni_cli_samples_t* samples, double share);

// The median of a / b, pair by pair; 0 without pairs.
double kilni_cli_samples_ratio(const kilni_cli_samples_t* a,
                               const kilni_cli_samples_t* b);

#endif  // KILN_SRC_CLI_BENCH_SAMPLES_H_
