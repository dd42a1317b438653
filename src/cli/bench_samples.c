// SPDX-License-Identifier: Apache-2.0
//
// cli: statistics of repeated measurements.
#include "cli/bench_samples.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_SAMPLES = 10 };

static int bench_samples_compare(const void* a, const void* b) {
  double x = *(const double*)a;
  double y = *(const double*)b;
  return (x > y) - (x < y);
}

// The integer square root of `value`, rounded down.
static size_t root(size_t value) {
  size_t r = 0;
  while ((r + 1) * (r + 1) <= value) r++;
  return r;
}

static double middle(const double* sorted, size_t count) {
  return count % 2 != 0 ? sorted[count / 2]
                        : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

void kilni_cli_samples_sum(const kilni_cli_samples_t* samples,
                           kilni_cli_summary_t* out_summary) {
  double sorted[KILNI_CLI_BENCH_MAX_SAMPLES];
  size_t n = samples->count;
  memset(out_summary, 0, sizeof(*out_summary));
  if (n == 0) return;
  memcpy(sorted, samples->values, n * sizeof(sorted[0]));
  qsort(sorted, n, sizeof(sorted[0]), bench_samples_compare);
  out_summary->median = middle(sorted, n);
  out_summary->least = sorted[0];
  out_summary->most = sorted[n - 1];
  out_summary->low = sorted[n / 20];
  out_summary->high = sorted[n - 1 - n / 20];
  // Ranks n/2 -+ 0.98 sqrt(n): the number of samples below the true median is
  // binomial.
  size_t reach = root(n) + 1;
  size_t below = n / 2 > reach ? n / 2 - reach : 0;
  size_t above = n / 2 + reach < n ? n / 2 + reach : n - 1;
  out_summary->median_low = sorted[below];
  out_summary->median_high = sorted[above];
}

bool kilni_cli_samples_steady(const kilni_cli_samples_t* samples,
                              double share) {
  kilni_cli_summary_t s;
  if (samples->count < LEAST_SAMPLES) return false;
  kilni_cli_samples_sum(samples, &s);
  return s.median_high - s.median <= share * s.median &&
         s.median - s.median_low <= share * s.median;
}

double kilni_cli_samples_ratio(const kilni_cli_samples_t* a,
                               const kilni_cli_samples_t* b) {
  kilni_cli_samples_t ratios;
  kilni_cli_summary_t s;
  size_t n = a->count < b->count ? a->count : b->count;
  ratios.count = 0;
  for (size_t i = 0; i < n; i++) {
    if (b->values[i] > 0) {
      ratios.values[ratios.count++] = a->values[i] / b->values[i];
    }
  }
  kilni_cli_samples_sum(&ratios, &s);
  return s.median;
}
