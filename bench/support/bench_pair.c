// SPDX-License-Identifier: Apache-2.0
//
// bench: one way against another, slice by slice.
#include "bench_pair.h"

#include <stdlib.h>

#include "bench_check.h"
#include "bench_report.h"
#include "bench_turns.h"

enum { WARM_ROUNDS = 5 };

static double g_spent[2][BENCH_PAIR_ROUNDS];
static double g_ratio[BENCH_PAIR_ROUNDS];

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a;
  double y = *(const double*)b;
  return (x > y) - (x < y);
}

// The same order in every run.
static int draw(void) {
  static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (int)(state >> 63);
}

static uint64_t take(const bench_pair_t* pair, int who, int slice) {
  uint64_t start = bench_time_ns();
  pair->slice(pair->user, who, slice);
  uint64_t spent = bench_time_ns() - start;
  if (pair->settle != NULL) pair->settle(pair->user, who);
  return spent;
}

static void measure_round(const bench_pair_t* pair, double spent[2]) {
  uint64_t sum[2] = {0, 0};
  int first = draw();
  pair->begin(pair->user, first);
  pair->begin(pair->user, !first);
  for (int slice = 0; slice < pair->slices; slice++) {
    int who = draw();
    sum[who] += take(pair, who, slice);
    sum[!who] += take(pair, !who, slice);
  }
  pair->end(pair->user, first);
  pair->end(pair->user, !first);
  for (int who = 0; who < 2; who++) spent[who] = (double)sum[who];
}

void bench_pair_measure(bench_pair_t* pair) {
  int rounds = pair->rounds;
  double spent[2];
  bench_need(rounds >= 4 && rounds <= BENCH_PAIR_ROUNDS,
             "fewer or more rounds than there is room for");
  for (int i = 0; i < WARM_ROUNDS; i++) measure_round(pair, spent);
  for (int round = 0; round < rounds; round++) {
    measure_round(pair, spent);
    g_spent[0][round] = spent[0];
    g_spent[1][round] = spent[1];
    g_ratio[round] = spent[0] / (spent[1] > 0 ? spent[1] : 1);
  }
  for (int who = 0; who < 2; who++) {
    qsort(g_spent[who], (size_t)rounds, sizeof(double), by_value);
    pair->best[who] = g_spent[who][0];
    pair->median[who] = g_spent[who][rounds / 2];
  }
  pair->ratio = bench_turns_middle(g_ratio, rounds);
  pair->low = g_ratio[rounds / 4];
  pair->high = g_ratio[rounds - 1 - rounds / 4];
}
