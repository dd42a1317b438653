// SPDX-License-Identifier: Apache-2.0
//
// bench: one way against another, slice by slice.
#include "bench_pair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "bench_report.h"
#include "bench_turns.h"

enum { WARM_ROUNDS = 3, LOOK_EVERY = 20, SLICES = 64 };

static double g_spent[2][BENCH_PAIR_MOST];
static double g_ratio[BENCH_PAIR_MOST];
static double g_sorted[BENCH_PAIR_MOST];

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

// `first`: who begins, and behind that who is first in each slice.
static void measure_once(const bench_pair_t* pair, const bool* first, bool flip,
                         uint64_t sum[2]) {
  // There is at least one slice, and one more.
  // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
  int who = first[0] ^ flip;
  pair->begin(pair->user, who);
  pair->begin(pair->user, !who);
  for (int slice = 0; slice < pair->slices; slice++) {
    int now = first[slice + 1] ^ flip;
    sum[now] += take(pair, now, slice);
    sum[!now] += take(pair, !now, slice);
  }
  pair->end(pair->user, who);
  pair->end(pair->user, !who);
}

static void measure_round(const bench_pair_t* pair, double spent[2]) {
  bool first[SLICES + 1];
  uint64_t sum[2] = {0, 0};
  for (int i = 0; i <= pair->slices; i++) first[i] = draw() != 0;
  measure_once(pair, first, false, sum);
  measure_once(pair, first, true, sum);
  for (int who = 0; who < 2; who++) spent[who] = (double)sum[who] / 2;
}

// What is outside of the middle half counts as its ends.
static void judge(bench_pair_t* pair, int rounds) {
  memcpy(g_sorted, g_ratio, (size_t)rounds * sizeof(double));
  pair->ratio = bench_turns_middle(g_sorted, rounds);
  int cut = rounds / 4;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < rounds; i++) {
    int at = i < cut ? cut : i >= rounds - cut ? rounds - cut - 1 : i;
    sum += g_sorted[at];
    squares += g_sorted[at] * g_sorted[at];
  }
  double mean = sum / rounds;
  double variance = (squares - sum * mean) / (rounds - 1);
  double half = 1.0 - 2.0 * cut / rounds;
  pair->rounds = rounds;
  pair->ratio_error = sqrt(variance > 0 ? variance / rounds : 0) / half;
}

static void measure_rounds(bench_pair_t* pair) {
  uint64_t began = bench_time_ns();
  double spent[2];
  for (int round = 0; round < BENCH_PAIR_MOST; round++) {
    measure_round(pair, spent);
    g_spent[0][round] = spent[0];
    g_spent[1][round] = spent[1];
    g_ratio[round] = spent[0] / (spent[1] > 0 ? spent[1] : 1);
    if (round + 1 < BENCH_PAIR_LEAST || (round + 1) % LOOK_EVERY != 0) continue;
    judge(pair, round + 1);
    if (pair->ratio_error <= pair->error * pair->ratio ||
        (double)(bench_time_ns() - began) * 1e-9 > pair->seconds) {
      break;
    }
  }
}

void bench_pair_measure(bench_pair_t* pair) {
  double spent[2];
  bench_need(pair->slices >= 1 && pair->slices <= SLICES,
             "more slices than there is space for");
  for (int i = 0; i < WARM_ROUNDS; i++) measure_round(pair, spent);
  measure_rounds(pair);
  for (int who = 0; who < 2; who++) {
    qsort(g_spent[who], (size_t)pair->rounds, sizeof(double), by_value);
    pair->best[who] = g_spent[who][0];
    pair->median[who] = g_spent[who][pair->rounds / 2];
  }
}
