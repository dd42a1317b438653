// SPDX-License-Identifier: Apache-2.0
//
// library: runs of attention, beside the formula in doubles.
#ifndef KILN_TESTS_UNIT_LIBRARY_LIBRARY_ATTEND_H_
#define KILN_TESTS_UNIT_LIBRARY_LIBRARY_ATTEND_H_

#include "library_typed.h"

// One-thread.
typedef struct attend_shape_t {
  uint32_t heads;
  uint32_t queries;
  uint32_t keys;
  uint32_t width;
  uint32_t type;
  bool causal;
} attend_shape_t;

// What a run is given, as it is rounded to the type, and what it made.
// one-thread
typedef struct attend_case_t {
  attend_shape_t shape;
  void* q;
  void* k;
  void* v;
  void* y;
} attend_case_t;

static inline uint64_t attend_rows(const attend_shape_t* s, uint32_t rows) {
  return (uint64_t)s->heads * rows * s->width;
}

static inline void attend_free(attend_case_t* c) {
  free(c->q);
  free(c->k);
  free(c->v);
  free(c->y);
}

static inline kiln_library_plan_t* attend_plan(dispatch_kit_t* kit,
                                               const attend_shape_t* s,
                                               uint32_t max_ulp) {
  kiln_library_options_t options = kiln_library_options_default();
  options.type = s->type;
  options.segment = s->width;
  options.max_ulp = max_ulp;
  return kit_plan(kit, "attention", &options);
}

static inline void attend_run(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                              attend_case_t* c) {
  const attend_shape_t* s = &c->shape;
  uint64_t bytes = program_type_bytes((uint8_t)s->type);
  uint64_t ours = attend_rows(s, s->queries) * bytes;
  uint64_t theirs = attend_rows(s, s->keys) * bytes;
  const kit_argument_t arguments[] = {{c->q, NULL, ours},
                                      {c->k, NULL, theirs},
                                      {c->v, NULL, theirs},
                                      {NULL, c->y, ours}};
  const kiln_binding_t scalars[] = {kiln_bind_u32(s->queries),
                                    kiln_bind_u32(s->keys),
                                    kiln_bind_u32(s->causal)};
  kit_run(kit, plan, arguments, 4, scalars, 3);
}

// The weights of one query, not yet divided by their sum, which is returned.
static inline double attend_weigh(const attend_case_t* c, uint32_t head,
                                  uint32_t query, uint32_t count,
                                  double* weights) {
  const attend_shape_t* s = &c->shape;
  double top = -(double)INFINITY, total = 0;
  for (uint32_t j = 0; j < count; j++) {
    double dot = 0;
    for (uint32_t d = 0; d < s->width; d++) {
      uint64_t a = ((uint64_t)head * s->queries + query) * s->width + d;
      uint64_t b = ((uint64_t)head * s->keys + j) * s->width + d;
      dot += typed_get(s->type, c->q, a) * typed_get(s->type, c->k, b);
    }
    weights[j] = dot / sqrt((double)s->width);
    top = fmax(top, weights[j]);
  }
  for (uint32_t j = 0; j < count; j++) {
    weights[j] = exp(weights[j] - top);
    total += weights[j];
  }
  return total;
}

static inline uint32_t attend_seen(const attend_shape_t* s, uint32_t query) {
  if (!s->causal) return s->keys;
  uint64_t upto = (uint64_t)query + 1 + s->keys;
  return upto > s->queries ? (uint32_t)(upto - s->queries) : 0;
}

// No further away than half a unit in the last place of its type, and `most`
// of f32 of the average of the values' sizes.
static inline void attend_check(const attend_case_t* c, uint32_t head,
                                uint32_t query, double* weights, double most,
                                double* worst) {
  const attend_shape_t* s = &c->shape;
  uint32_t count = attend_seen(s, query);
  double total = attend_weigh(c, head, query, count, weights);
  double half = typed_half_unit(s->type);
  for (uint32_t d = 0; d < s->width; d++) {
    double want = 0, size = 0;
    for (uint32_t j = 0; j < count; j++) {
      uint64_t b = ((uint64_t)head * s->keys + j) * s->width + d;
      want += weights[j] / total * typed_get(s->type, c->v, b);
      size += weights[j] / total * fabs(typed_get(s->type, c->v, b));
    }
    uint64_t at = ((uint64_t)head * s->queries + query) * s->width + d;
    double have = typed_get(s->type, c->y, at);
    double away = fabs(have - want) - half * fabs(want);
    if (away > *worst * size * 0x1p-24) *worst = away / (size * 0x1p-24);
    if (away <= most * size * 0x1p-24 + 0x1p-25 * half) continue;
    fail_msg(
        "%s, %u queries, %u keys of %u%s: [%u, %u, %u] is %.9g, "
        "should be %.9g",
        kiln_program_type_name(s->type), s->queries, s->keys, s->width,
        s->causal ? ", causal" : "", head, query, d, have, want);
  }
}

// All rows of what a run made; how far away the worst of them is, in units of
// f32.
static inline double attend_expect(const attend_case_t* c, double most) {
  double* weights = kit_zeroes(c->shape.keys, sizeof(double));
  double worst = 0;
  for (uint32_t h = 0; h < c->shape.heads; h++) {
    for (uint32_t i = 0; i < c->shape.queries; i++) {
      attend_check(c, h, i, weights, most, &worst);
    }
  }
  free(weights);
  return worst;
}

#endif  // KILN_TESTS_UNIT_LIBRARY_LIBRARY_ATTEND_H_
