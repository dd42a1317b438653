// SPDX-License-Identifier: Apache-2.0
//
// library: attention of every type and shape, beside the formula in doubles.
#include "library_typed.h"

// One-thread.
typedef struct shape_t {
  uint32_t heads;
  uint32_t queries;
  uint32_t keys;
  uint32_t width;
  uint32_t type;
  bool causal;
} shape_t;

// What a run is given, as it is rounded to the type, and what it made.
// one-thread
typedef struct case_t {
  shape_t shape;
  void* q;
  void* k;
  void* v;
  void* y;
} case_t;

static uint64_t rows_of(const shape_t* s, uint32_t rows) {
  return (uint64_t)s->heads * rows * s->width;
}

// Scores of some size, so that weights differ.
static case_t make_case(const shape_t* s) {
  uint64_t ours = rows_of(s, s->queries), theirs = rows_of(s, s->keys);
  case_t c = {*s, typed_numbers(s->type, ours, 1, false),
              typed_numbers(s->type, theirs, 2, false),
              typed_numbers(s->type, theirs, 3, false),
              kit_zeroes(ours, program_type_bytes((uint8_t)s->type))};
  for (uint64_t i = 0; i < ours; i++) {
    typed_set(s->type, c.q, i, 4 * typed_get(s->type, c.q, i));
  }
  return c;
}

static void free_case(case_t* c) {
  free(c->q);
  free(c->k);
  free(c->v);
  free(c->y);
}

static kiln_library_plan_t* plan_of(dispatch_kit_t* kit, const shape_t* s,
                                    uint32_t max_ulp) {
  kiln_library_options_t options = kiln_library_options_default();
  options.type = s->type;
  options.segment = s->width;
  options.max_ulp = max_ulp;
  return kit_plan(kit, "attention", &options);
}

static void attend(dispatch_kit_t* kit, kiln_library_plan_t* plan, case_t* c) {
  const shape_t* s = &c->shape;
  uint64_t bytes = program_type_bytes((uint8_t)s->type);
  uint64_t ours = rows_of(s, s->queries) * bytes;
  uint64_t theirs = rows_of(s, s->keys) * bytes;
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
static double weigh(const case_t* c, uint32_t head, uint32_t query,
                    uint32_t count, double* weights) {
  const shape_t* s = &c->shape;
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

static uint32_t seen(const shape_t* s, uint32_t query) {
  if (!s->causal) return s->keys;
  uint64_t upto = (uint64_t)query + 1 + s->keys;
  return upto > s->queries ? (uint32_t)(upto - s->queries) : 0;
}

// No further away than half a unit in the last place of its type, and `most`
// of f32 of the average of the values' sizes.
static void check_row(const case_t* c, uint32_t head, uint32_t query,
                      double* weights, double most, double* worst) {
  const shape_t* s = &c->shape;
  uint32_t count = seen(s, query);
  double total = weigh(c, head, query, count, weights);
  double half = s->type == KILN_PROGRAM_TYPE_F16    ? 0x1p-11
                : s->type == KILN_PROGRAM_TYPE_BF16 ? 0x1p-8
                                                    : 0;
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

static void whole_case(dispatch_kit_t* kit, const shape_t* shape,
                       uint32_t max_ulp, double most) {
  case_t c = make_case(shape);
  kiln_library_plan_t* plan = plan_of(kit, shape, max_ulp);
  attend(kit, plan, &c);
  double* weights = kit_zeroes(shape->keys, sizeof(double));
  double worst = 0;
  for (uint32_t h = 0; h < shape->heads; h++) {
    for (uint32_t i = 0; i < shape->queries; i++) {
      check_row(&c, h, i, weights, most, &worst);
    }
  }
  if (getenv("KILN_TEST_TELL") != NULL) {
    printf("%s %u x %u of %u: %.1f units\n",
           kiln_program_type_name(shape->type), shape->queries, shape->keys,
           shape->width, worst);
  }
  free(weights);
  kiln_library_plan_release(plan);
  free_case(&c);
}

static void test_shapes(void** state) {
  (void)state;
  enum { F32 = KILN_PROGRAM_TYPE_F32, F16 = KILN_PROGRAM_TYPE_F16 };
  enum { BF16 = KILN_PROGRAM_TYPE_BF16 };
  static const shape_t kShapes[] = {
      {1, 0, 5, 64, F32, false},    {2, 5, 0, 64, F32, false},
      {1, 1, 1, 1, F32, false},     {3, 1, 2, 31, F32, true},
      {2, 31, 33, 32, F32, false},  {2, 33, 31, 33, F32, true},
      {1, 32, 32, 64, F32, true},   {2, 65, 64, 64, F16, true},
      {2, 64, 65, 128, F32, false}, {1, 70, 130, 100, BF16, true},
      {1, 1, 1023, 64, F32, true},  {1, 1025, 1, 16, F32, false},
      {1, 90, 1024, 8, F16, true},  {1, 3, 100003 / KIT_LESS, 4, F32, false},
      {5, 130, 40, 128, F16, true}, {1, 200, 200, 64, BF16, false},
  };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t i = 0; i < sizeof(kShapes) / sizeof(kShapes[0]); i++) {
    whole_case(&kit, &kShapes[i], 0, 40);
  }
  static const shape_t kFast = {2, 70, 90, 64, F32, true};
  whole_case(&kit, &kFast, 67, 1000);
  dispatch_kit_close(&kit);
}

// What a query does not see is nothing to it, whatever it is; what it sees and
// is no number is.
static void test_awkward(void** state) {
  (void)state;
  static const shape_t kShape = {1, 80, 80, 64, KILN_PROGRAM_TYPE_F32, true};
  enum { W = 64 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = plan_of(&kit, &kShape, 0);
  case_t c = make_case(&kShape);
  float* q = c.q;
  float* k = c.k;
  float* v = c.v;
  const float* y = c.y;
  q[5 * W] = NAN;            // query 5 alone
  k[70 * W] = NAN;           // queries from 70 on
  v[60 * W + 3] = INFINITY;  // column 3 of queries from 60 on
  v[61 * W + 4] = NAN;
  q[7 * W] = 0x1p-149f;
  for (int d = 0; d < W; d++) q[9 * W + d] = -0.0f;
  attend(&kit, plan, &c);
  double weights[80], worst = 0;
  for (uint32_t i = 0; i < 80; i++) {
    for (uint32_t d = 0; d < W; d++) {
      bool spoiled =
          i == 5 || i >= 70 || (d == 3 && i >= 60) || (d == 4 && i >= 61);
      assert_int_equal(!isfinite(y[i * W + d]), spoiled);
    }
    if (i < 60 && i != 5) check_row(&c, 0, i, weights, 40, &worst);
  }
  // A score of -infinity is a weight of 0, also where nothing else came yet.
  memset(c.v, 0, 80 * W * sizeof(float));
  for (int d = 0; d < W; d++) v[79 * W + d] = 2;
  for (int j = 0; j < 80 * W; j++) q[j] = k[j] = 1;
  for (int j = 0; j < 79; j++) k[j * W] = -INFINITY;
  attend(&kit, plan, &c);
  for (int d = 0; d < W; d++) {
    assert_true(y[79 * W + d] == 2);
    assert_true(isnan(y[d]));  // nothing but -infinity
  }
  free_case(&c);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

static void test_refusals(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_options_t options = kiln_library_options_default();
  kiln_library_plan_t* plan = NULL;
  options.segment = 129;
  kiln_status_t status =
      kiln_library_plan_create(kit.dispatcher, "attention", &options, &plan);
  assert_says(status, KILN_STATUS_INVALID_ARGUMENT, "128");
  options.segment = 128;
  options.type = KILN_PROGRAM_TYPE_F64;
  status =
      kiln_library_plan_create(kit.dispatcher, "attention", &options, &plan);
  assert_says(status, KILN_STATUS_UNSUPPORTED, "f64");
  assert_null(plan);
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shapes),
      cmocka_unit_test(test_awkward),
      cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
