// SPDX-License-Identifier: Apache-2.0
//
// bench: ways to do the same, in turns, against the first of them.
#include "bench_turns.h"

#include <stdio.h>

#include "bench_check.h"

double bench_turns_middle(double* values, int count) {
  double sum = 0;
  (void)bench_median(values, count);
  int from = count / 4;
  int to = count - from;
  for (int i = from; i < to; i++) sum += values[i];
  return sum / (to - from);
}

static double take(const bench_turns_t* turns, int way) {
  uint64_t start = bench_time_ns();
  turns->ways[way].run(turns->job, turns->runs);
  double spent = (double)(bench_time_ns() - start) / turns->runs;
  if (turns->wait != NULL) turns->wait(turns->job);
  return spent;
}

static double g_spent[BENCH_TURNS_WAYS][BENCH_TURNS_ROUNDS];
static double g_ratio[BENCH_TURNS_WAYS][BENCH_TURNS_ROUNDS];

void bench_turns_measure(bench_turns_t* turns) {
  bench_need(turns->way_count <= BENCH_TURNS_WAYS &&
                 turns->rounds <= BENCH_TURNS_ROUNDS,
             "more ways or rounds than there is space for");
  int count = turns->way_count;
  for (int way = 0; way < count; way++) {
    if (!turns->ways[way].absent) (void)take(turns, way);
  }
  for (int round = 0; round < turns->rounds; round++) {
    for (int k = 0; k < count; k++) {
      int way = (k + round) % count;
      if (turns->ways[way].absent) continue;
      double first = take(turns, 0);
      double one = take(turns, way);
      double two = take(turns, way);
      double last = take(turns, 0);
      g_spent[way][round] = one < two ? one : two;
      g_ratio[way][round] = (one + two) / (first + last);
    }
  }
  for (int way = 0; way < count; way++) {
    if (turns->ways[way].absent) continue;
    turns->median[way] = bench_median(g_spent[way], turns->rounds);
    turns->best[way] = g_spent[way][0];
    turns->ratio[way] = bench_turns_middle(g_ratio[way], turns->rounds);
  }
}

void bench_turns_report(const bench_turns_t* turns, bench_report_t* report) {
  const char* first = turns->ways[0].name;
  for (int way = 0; way < turns->way_count; way++) {
    const char* name = turns->ways[way].name;
    if (turns->ways[way].absent) continue;
    bench_report_less(report, name, "ns", turns->median[way],
                      way == 0 ? NULL : first, turns->median[0]);
    fprintf(stderr,
            "%-40s best %.1f ns, middle mean of the rounds' ratios %.4f\n",
            name, turns->best[way], turns->ratio[way]);
  }
}

bool bench_turns_judge(const char* what, double value, double most) {
  bool holds = value <= most;
  fprintf(stderr, "bar: %s at most %g: %.4g %s\n", what, most, value,
          holds ? "holds" : "DOES NOT HOLD");
  return holds;
}
