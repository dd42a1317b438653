// SPDX-License-Identifier: Apache-2.0
//
// truth: are two answers the same, and how far apart are two approximations?
#include "truth_check.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SHOWN = 12 };

static uint64_t answer_at(const truth_entry_t* entry, const uint8_t* answers,
                          size_t at) {
  const uint32_t width = truth_kind_bytes(entry->result);
  uint64_t value = 0;
  memcpy(&value, answers + at * width, width);
  return value;
}

// The number that bits of f32 or f64 stand for; of halves, of f32's kind.
static double number_of(truth_kind_t kind, uint64_t bits) {
  if (kind == TRUTH_F64) {
    double d;
    memcpy(&d, &bits, 8);
    return d;
  }
  uint32_t word = (uint32_t)bits;
  if (kind == TRUTH_BF16) word <<= 16;
  if (kind == TRUTH_F16) {
    const double m = (double)(word & 0x3ff);
    const uint32_t e = word >> 10 & 31;
    const double value = e == 31  ? (m > 0 ? (double)NAN : (double)INFINITY)
                         : e == 0 ? ldexp(m, -24)
                                  : ldexp(m + 1024, (int)e - 25);
    return word >> 15 ? -value : value;
  }
  float f;
  memcpy(&f, &word, 4);
  return (double)f;
}

// A line of numbers in the order of the floats.
static int64_t rank_of(truth_kind_t kind, uint64_t bits) {
  const uint32_t width = truth_kind_bytes(kind) * 8;
  const uint64_t sign = (uint64_t)1 << (width - 1);
  const int64_t size = (int64_t)(bits & (sign - 1));
  return bits & sign ? -size : size;
}

static void count_distance(const truth_entry_t* entry, uint64_t a, uint64_t b,
                           truth_finding_t* finding) {
  const double x = number_of(entry->result, a);
  const double y = number_of(entry->result, b);
  if (isnan(x) && isnan(y)) {
    finding->apart[a == b ? 0 : TRUTH_BUCKETS - 1]++;
    return;
  }
  if (isnan(x) || isnan(y)) {
    finding->apart[TRUTH_BUCKETS - 1]++;
    return;
  }
  const int64_t d = rank_of(entry->result, a) - rank_of(entry->result, b);
  const uint64_t far = (uint64_t)(d < 0 ? -d : d);
  static const uint64_t ends[] = {0, 1, 2, 4, 8, 16, 256};
  uint32_t bucket = 0;
  while (bucket < TRUTH_BUCKETS - 1 && far > ends[bucket]) bucket++;
  finding->apart[bucket]++;
  if (far > finding->greatest) finding->greatest = far;
}

static void show(const truth_entry_t* entry, const truth_plan_t* plan,
                 uint32_t position, uint32_t which, uint64_t truth,
                 uint64_t answer, FILE* out) {
  const int digits = (int)truth_kind_bytes(entry->result) * 2;
  (void)fprintf(out, "  %s", entry->name);
  for (uint32_t i = 0; i < TRUTH_SOURCES && entry->sources[i]; i++) {
    (void)fprintf(out, " %0*" PRIx64,
                  (int)truth_kind_bytes(entry->sources[i]) * 2,
                  truth_source(entry, plan, i, position));
  }
  (void)fprintf(out, " (answer %u): GPU %0*" PRIx64 ", device %0*" PRIx64 "\n",
                which, digits, truth, digits, answer);
}

void truth_compare(const truth_entry_t* entry, const truth_plan_t* plan,
                   uint32_t position, uint32_t count, const uint8_t* truth,
                   const uint8_t* answers, FILE* out,
                   truth_finding_t* inout_finding) {
  truth_finding_t* f = inout_finding;
  const size_t bytes =
      (size_t)count * entry->outs * truth_kind_bytes(entry->result);
  f->compared += (uint64_t)count * entry->outs;
  if (memcmp(truth, answers, bytes) == 0) {
    f->apart[0] += (uint64_t)count * entry->outs;
    return;
  }
  for (uint32_t i = 0; i < count * entry->outs; i++) {
    const uint64_t a = answer_at(entry, truth, i);
    const uint64_t b = answer_at(entry, answers, i);
    count_distance(entry, a, b, f);
    if (a == b) continue;
    const uint32_t at = position + i / entry->outs;
    if (f->different++ < SHOWN && out != NULL) {
      show(entry, plan, at, i % entry->outs, a, b, out);
    }
  }
}
