// SPDX-License-Identifier: Apache-2.0
//
// bench: one way against another, slice by slice.
//
// A round does the whole of both once. It is cut into slices of some
// microseconds, and slice for slice both take their turn, by lot which of them
// first: what disturbs the host for longer than that disturbs both. The ratio
// of a round is that of the two sums, and what stands for all rounds is the
// mean of the middle half of the ratios (bench_turns_middle), with the
// quartiles beside it: how far apart the rounds are is how much the figure is
// worth.
#ifndef KILN_BENCH_SUPPORT_BENCH_PAIR_H_
#define KILN_BENCH_SUPPORT_BENCH_PAIR_H_

#include <stdint.h>

enum { BENCH_PAIR_ROUNDS = 512 };

// What is measured, and what came out. one-thread
typedef struct bench_pair_t {
  // `who` is 0 or 1. Only `slice` is timed. `settle` may be NULL.
  void (*begin)(void* user, int who);
  void (*slice)(void* user, int who, int slice);
  void (*settle)(void* user, int who);  // behind each slice
  void (*end)(void* user, int who);
  void* user;
  int rounds;
  int slices;
  // In nanoseconds of a round.
  double best[2];
  double median[2];
  // 0 in times 1: the middle mean of the rounds, and where their half lies.
  double ratio;
  double low;
  double high;
} bench_pair_t;

void bench_pair_measure(bench_pair_t* pair);

#endif  // KILN_BENCH_SUPPORT_BENCH_PAIR_H_
