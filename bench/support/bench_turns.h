// SPDX-License-Identifier: Apache-2.0
//
// bench: ways to do the same, in turns, against the first of them.
//
// Each way is measured in rounds of the first one, it, it, and the first one
// again, so that what gets slower or faster meanwhile does so for both; the
// ratio of a round is that of the two sums. What stands for all rounds is the
// mean of the middle half of the ratios: a round that something else disturbed
// is among neither, and of the others each counts.
#ifndef KILN_BENCH_SUPPORT_BENCH_TURNS_H_
#define KILN_BENCH_SUPPORT_BENCH_TURNS_H_

#include <stdbool.h>

#include "bench_report.h"

enum { BENCH_TURNS_WAYS = 16, BENCH_TURNS_ROUNDS = 2048 };

// Does the thing `count` times.
typedef void (*bench_turn_fn_t)(void* job, int count);

// One way. thread-compatible
typedef struct bench_way_t {
  const char* name;
  bench_turn_fn_t run;
  bool absent;  // there is none here
} bench_way_t;

// What is measured, and what came out. one-thread
typedef struct bench_turns_t {
  const bench_way_t* ways;
  int way_count;
  int rounds;
  int runs;  // of a turn
  void* job;
  void (*wait)(void* job);  // between turns, outside of their time
  // For each way: nanoseconds of one, and times the first way.
  double best[BENCH_TURNS_WAYS];
  double median[BENCH_TURNS_WAYS];
  double ratio[BENCH_TURNS_WAYS];
} bench_turns_t;

void bench_turns_measure(bench_turns_t* turns);
// The mean of the middle half of the values, which are sorted.
double bench_turns_middle(double* values, int count);
// A row for each way, and a line on standard error.
void bench_turns_report(const bench_turns_t* turns, bench_report_t* report);
// Says whether a bar holds, and returns it.
bool bench_turns_judge(const char* what, double value, double most);

#endif  // KILN_BENCH_SUPPORT_BENCH_TURNS_H_
