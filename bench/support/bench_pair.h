// SPDX-License-Identifier: Apache-2.0
//
// bench: one way against another, slice by slice.
//
// A round does the whole of both twice. The whole is cut into slices of some
// microseconds, and slice for slice both take their turn, by lot which of them
// first; the second time each order is the other one, since what ran last has
// the caches. So what disturbs the host for longer than a slice disturbs both,
// and what an order does it does to both. The ratio of a round is that of the
// two sums, and what stands for all rounds is the mean of the middle half of
// the ratios (bench_turns_middle).
//
// Rounds are run until the standard error of that mean (by the winsorized
// deviation: Tukey and McLaughlin, 1963) is small enough, or the time is up. It
// is told beside the figure, which is worth no more than that.
#ifndef KILN_BENCH_SUPPORT_BENCH_PAIR_H_
#define KILN_BENCH_SUPPORT_BENCH_PAIR_H_

#include <stdint.h>

enum { BENCH_PAIR_LEAST = 40, BENCH_PAIR_MOST = 2000 };  // rounds

// What is measured, and what came out. one-thread
typedef struct bench_pair_t {
  // `who` is 0 or 1. Only `slice` is timed. `settle` may be NULL.
  void (*begin)(void* user, int who);
  void (*slice)(void* user, int who, int slice);
  void (*settle)(void* user, int who);  // behind each slice
  void (*end)(void* user, int who);
  void* user;
  int slices;
  double error;    // that is small enough, of the ratio
  double seconds;  // at most, but for the least number of rounds
  // In nanoseconds of the whole, once.
  double best[2];
  double median[2];
  // 0 in times 1: the middle mean of the rounds, and its standard error.
  int rounds;
  double ratio;
  double ratio_error;
} bench_pair_t;

void bench_pair_measure(bench_pair_t* pair);

#endif  // KILN_BENCH_SUPPORT_BENCH_PAIR_H_
