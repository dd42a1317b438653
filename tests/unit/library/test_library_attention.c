// SPDX-License-Identifier: Apache-2.0
//
// library: attention of every type and shape, beside the formula in doubles.
#include "library_attend.h"

// Scores of some size, so that weights differ.
static attend_case_t make_case(const attend_shape_t* s) {
  uint64_t ours = attend_rows(s, s->queries), theirs = attend_rows(s, s->keys);
  attend_case_t c = {*s, typed_numbers(s->type, ours, 1, false),
                     typed_numbers(s->type, theirs, 2, false),
                     typed_numbers(s->type, theirs, 3, false),
                     kit_zeroes(ours, program_type_bytes((uint8_t)s->type))};
  for (uint64_t i = 0; i < ours; i++) {
    typed_set(s->type, c.q, i, 4 * typed_get(s->type, c.q, i));
  }
  return c;
}

static void whole_case(dispatch_kit_t* kit, const attend_shape_t* shape,
                       uint32_t max_ulp, double most) {
  attend_case_t c = make_case(shape);
  kiln_library_plan_t* plan = attend_plan(kit, shape, max_ulp);
  attend_run(kit, plan, &c);
  double worst = attend_expect(&c, most);
  if (getenv("KILN_TEST_TELL") != NULL) {
    printf("%s %u x %u of %u: %.1f units\n",
           kiln_program_type_name(shape->type), shape->queries, shape->keys,
           shape->width, worst);
  }
  kiln_library_plan_release(plan);
  attend_free(&c);
}

static void test_shapes(void** state) {
  (void)state;
  enum { F32 = KILN_PROGRAM_TYPE_F32, F16 = KILN_PROGRAM_TYPE_F16 };
  enum { BF16 = KILN_PROGRAM_TYPE_BF16 };
  static const attend_shape_t kShapes[] = {
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
  static const attend_shape_t kFast = {2, 70, 90, 64, F32, true};
  whole_case(&kit, &kFast, 67, 1000);
  dispatch_kit_close(&kit);
}

// What a query does not see is nothing to it, whatever it is; what it sees and
// is no number is.
static void test_awkward(void** state) {
  (void)state;
  static const attend_shape_t kShape = {1,   80, 80, 64, KILN_PROGRAM_TYPE_F32,
                                        true};
  enum { W = 64 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = attend_plan(&kit, &kShape, 0);
  attend_case_t c = make_case(&kShape);
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
  attend_run(&kit, plan, &c);
  double weights[80], worst = 0;
  for (uint32_t i = 0; i < 80; i++) {
    for (uint32_t d = 0; d < W; d++) {
      bool spoiled =
          i == 5 || i >= 70 || (d == 3 && i >= 60) || (d == 4 && i >= 61);
      assert_int_equal(!isfinite(y[i * W + d]), spoiled);
    }
    if (i < 60 && i != 5) attend_check(&c, 0, i, weights, 40, &worst);
  }
  // A score of -infinity is a weight of 0, also where nothing else came yet.
  memset(c.v, 0, 80 * W * sizeof(float));
  for (int d = 0; d < W; d++) v[79 * W + d] = 2;
  for (int j = 0; j < 80 * W; j++) q[j] = k[j] = 1;
  for (int j = 0; j < 79; j++) k[j * W] = -INFINITY;
  attend_run(&kit, plan, &c);
  for (int d = 0; d < W; d++) {
    assert_true(y[79 * W + d] == 2);
    assert_true(isnan(y[d]));  // nothing but -infinity
  }
  attend_free(&c);
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

// Lengths that contradict the rows are refused, and never read as zeroes.
static void test_lengths(void** state) {
  (void)state;
  enum { W = 64, BYTES = sizeof(float) };
  static const struct {
    uint32_t q, k, v, queries, keys;
    bool fits;
  } kCases[] = {
      {8 * W, 12 * W, 12 * W, 8, 12, true},
      {16 * W, 24 * W, 24 * W, 8, 12, true},  // two heads
      {0, 12 * W, 12 * W, 0, 12, true},
      {8 * W, 0, 0, 8, 0, true},
      {8 * W, 12 * W, 5 * W, 8, 12, false},
      {8 * W, 5 * W, 5 * W, 8, 12, false},
      {8 * W, 12 * 32, 12 * W, 8, 12, false},
      {8 * 50, 12 * W, 12 * W, 8, 12, false},
      {8 * 50, 0, 0, 8, 12, false},
      {16 * W, 12 * W, 12 * W, 8, 12, false},  // one head of keys for two
  };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "attention", NULL);
  kiln_device_t* device = kiln_dispatcher_device(kit.dispatcher);
  kiln_buffer_t* memory = NULL;
  assert_true(kiln_status_is_ok(
      kiln_buffer_create(device, 4 * 32 * W * BYTES, NULL, &memory)));
  uint64_t at = kiln_buffer_address(memory);
  for (uint32_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); i++) {
    const uint64_t quarter = 32 * W * BYTES;
    const kiln_binding_t bindings[] = {
        kiln_bind_pointer(at, kCases[i].q * BYTES),
        kiln_bind_pointer(at + quarter, kCases[i].k * BYTES),
        kiln_bind_pointer(at + 2 * quarter, kCases[i].v * BYTES),
        kiln_bind_pointer(at + 3 * quarter, kCases[i].q * BYTES),
        kiln_bind_u32(kCases[i].queries),
        kiln_bind_u32(kCases[i].keys),
        kiln_bind_u32(0)};
    kiln_pending_t* pending = NULL;
    kiln_status_t status =
        kiln_library_plan_begin(plan, NULL, bindings, 7, &pending);
    if (kCases[i].fits) {
      assert_true(kiln_status_is_ok(status));
      assert_true(
          kiln_status_is_ok(kiln_pending_wait(pending, KILN_PENDING_FOREVER)));
    } else {
      assert_says(status, KILN_STATUS_INVALID_ARGUMENT, "\"v\"");
    }
    kiln_pending_release(pending);
  }
  kiln_buffer_release(memory);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shapes),
      cmocka_unit_test(test_awkward),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_lengths),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
