// SPDX-License-Identifier: Apache-2.0
//
// library: elements joined into one value, all of them or by segments, beside
// plain C.
#include "library_kit.h"

// Doubles stand for the values of every type here: whole numbers, whose sums
// are exact.
typedef struct kind_t {
  uint32_t type;
  uint32_t bytes;
  uint32_t operation;
} kind_t;

static const kind_t kKinds[] = {
    {KILN_PROGRAM_TYPE_F32, 4, KILN_LIBRARY_ADD},
    {KILN_PROGRAM_TYPE_F64, 8, KILN_LIBRARY_MIN},
    {KILN_PROGRAM_TYPE_I32, 4, KILN_LIBRARY_MAX},
    {KILN_PROGRAM_TYPE_I64, 8, KILN_LIBRARY_ADD},
    {KILN_PROGRAM_TYPE_I16, 2, KILN_LIBRARY_MIN},
};
enum { KINDS = sizeof(kKinds) / sizeof(kKinds[0]) };

static void put(const kind_t* kind, void* data, uint64_t i, double value) {
  float f = (float)value;
  int64_t integer = (int64_t)value;
  const void* from = kind->type == KILN_PROGRAM_TYPE_F32   ? (void*)&f
                     : kind->type == KILN_PROGRAM_TYPE_F64 ? (void*)&value
                                                           : (void*)&integer;
  memcpy((char*)data + i * kind->bytes, from, kind->bytes);
}

static double join(const kind_t* kind, double a, double b) {
  if (kind->operation == KILN_LIBRARY_MIN) return b < a ? b : a;
  if (kind->operation == KILN_LIBRARY_MAX) return b > a ? b : a;
  return a + b;
}

// Numbers that are all above 0, or all below, so that a 0 that is none of them
// would be seen.
static double value_at(const kind_t* kind, uint64_t* seed) {
  double value = 1 + (double)(kit_next(seed) % 97);
  return kind->operation == KILN_LIBRARY_MAX ? -value : value;
}

static void fold(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                 const kind_t* kind, uint32_t count) {
  void* x = kit_zeroes(count, kind->bytes);
  uint64_t seed = count, have = 0, want = 0;
  double sum = 0;
  for (uint32_t i = 0; i < count; i++) {
    double value = value_at(kind, &seed);
    put(kind, x, i, value);
    sum = i == 0 ? value : join(kind, sum, value);
  }
  put(kind, &want, 0, sum);
  const kit_argument_t arguments[] = {{x, NULL, (uint64_t)count * kind->bytes},
                                      {NULL, &have, kind->bytes}};
  kit_run(kit, plan, arguments, 2, NULL, 0);
  if (have != want) {
    fail_msg("%u of %s, operation %u: %llx, should be %llx", count,
             kiln_program_type_name(kind->type), kind->operation,
             (unsigned long long)have, (unsigned long long)want);
  }
  free(x);
}

static void test_fold(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t k = 0; k < KINDS; k++) {
    kiln_library_options_t options = kiln_library_options_default();
    options.type = kKinds[k].type;
    options.operation = kKinds[k].operation;
    options.count = kSizes[SIZES - 1];
    kiln_library_plan_t* plan = kit_plan(&kit, "fold", &options);
    for (uint32_t s = 0; s < SIZES; s++) {
      fold(&kit, plan, &kKinds[k], kSizes[s]);
      fold(&kit, plan, &kKinds[k], kSizes[SIZES - 1 - s]);
    }
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

// A sum that is rounded has the same bits in every run.
static void test_fold_order(void** state) {
  (void)state;
  enum { COUNT = 50000 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_options_t options = kiln_library_options_default();
  options.count = COUNT;
  kiln_library_plan_t* plan = kit_plan(&kit, "fold", &options);
  float* x = kit_zeroes(COUNT, sizeof(float));
  float first = 0, again = 0;
  double sum = 0;
  uint64_t seed = 8;
  for (uint32_t i = 0; i < COUNT; i++) {
    x[i] = (float)kit_next(&seed) * 0x1p-64f;
    sum += (double)x[i];
  }
  kit_argument_t arguments[] = {{x, NULL, COUNT * 4}, {NULL, &first, 4}};
  kit_run(&kit, plan, arguments, 2, NULL, 0);
  assert_true(fabs((double)first - sum) < 2e-6 * sum);
  arguments[1].out = &again;
  for (int i = 0; i < 3; i++) {
    kit_run(&kit, plan, arguments, 2, NULL, 0);
    assert_memory_equal(&again, &first, sizeof(first));
  }
  kiln_library_plan_release(plan);
  free(x);
  dispatch_kit_close(&kit);
}

// Segments of many lengths, empty ones among them, and starts that go back.
static void segments(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                     const kind_t* kind, uint32_t count, uint32_t longest) {
  enum { MOST = 3000 };
  void* x = kit_zeroes(count, kind->bytes);
  double* values = kit_zeroes(count, sizeof(double));
  uint32_t* starts = kit_zeroes(MOST + 1, 4);
  void* want = kit_zeroes(MOST, kind->bytes);
  void* have = kit_zeroes(MOST, kind->bytes);
  uint64_t seed = count + longest;
  for (uint32_t i = 0; i < count; i++) {
    values[i] = value_at(kind, &seed);
    put(kind, x, i, values[i]);
  }
  uint32_t n = 0;
  while (n < MOST && starts[n] < count) {
    uint64_t bits = kit_next(&seed);
    uint32_t size = (uint32_t)(bits % 5 == 0 ? 0 : bits >> 32) % (longest + 1);
    starts[n + 1] = starts[n] + size < count ? starts[n] + size : count;
    double sum = 0;
    for (uint32_t i = starts[n]; i < starts[n + 1]; i++) {
      sum = i == starts[n] ? values[i] : join(kind, sum, values[i]);
    }
    put(kind, want, n++, sum);
  }
  const kit_argument_t arguments[] = {{x, NULL, (uint64_t)count * kind->bytes},
                                      {starts, NULL, (n + 1) * UINT64_C(4)},
                                      {NULL, have, (uint64_t)n * kind->bytes}};
  kit_run(kit, plan, arguments, 3, NULL, 0);
  if (memcmp(have, want, (size_t)n * kind->bytes) != 0) {
    fail_msg("%u of %s, at most %u a segment", count,
             kiln_program_type_name(kind->type), longest);
  }
  free(x);
  free(values);
  free(starts);
  free(want);
  free(have);
}

static void test_segments(void** state) {
  (void)state;
  static const uint32_t kLongest[] = {1, 8, 40, 70, 128, 1000, 20000};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t k = 0; k < 7; k++) {
    const kind_t* kind = &kKinds[k % KINDS];
    kiln_library_options_t options = kiln_library_options_default();
    options.type = kind->type;
    options.operation = kind->operation;
    options.segment = kLongest[k];
    kiln_library_plan_t* plan = kit_plan(&kit, "segments", &options);
    for (uint32_t s = 0; s < SIZES; s++) {
      segments(&kit, plan, kind, kSizes[s], kLongest[k]);
      segments(&kit, plan, kind, kSizes[s], kLongest[(k + 3) % 7]);
    }
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fold),
      cmocka_unit_test(test_fold_order),
      cmocka_unit_test(test_segments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
