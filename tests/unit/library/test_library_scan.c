// SPDX-License-Identifier: Apache-2.0
//
// library: running sums, whole and of segments, beside plain C.
#include "library_kit.h"

// Of every type that is scanned; floats are whole numbers, whose sums are
// exact, and now and then something that is none.
typedef struct kind_t {
  uint32_t type;
  uint32_t bytes;
  bool exclusive;
} kind_t;

static const kind_t kKinds[] = {
    {KILN_PROGRAM_TYPE_U32, 4, false}, {KILN_PROGRAM_TYPE_U32, 4, true},
    {KILN_PROGRAM_TYPE_I64, 8, false}, {KILN_PROGRAM_TYPE_F32, 4, true},
    {KILN_PROGRAM_TYPE_F64, 8, false},
};

static double number(const kind_t* kind, uint64_t bits) {
  if (kind->type == KILN_PROGRAM_TYPE_F32) return (float)(int8_t)bits;
  return (double)(int16_t)bits;
}

static void fill(const kind_t* kind, void* data, uint64_t count,
                 uint64_t seed) {
  for (uint64_t i = 0; i < count; i++) {
    uint64_t bits = kit_next(&seed);
    double value = number(kind, bits);
    float narrow = (float)value;
    const void* from = kind->type == KILN_PROGRAM_TYPE_F32   ? (void*)&narrow
                       : kind->type == KILN_PROGRAM_TYPE_F64 ? (void*)&value
                                                             : (void*)&bits;
    memcpy((char*)data + i * kind->bytes, from, kind->bytes);
  }
}

#define PLAIN(type_t)                                          \
  do {                                                         \
    const type_t* from = x;                                    \
    type_t* to = y;                                            \
    type_t sum = 0;                                            \
    for (uint64_t i = 0; i < count; i++) {                     \
      to[i] = kind->exclusive ? sum : (type_t)(sum + from[i]); \
      sum = (type_t)(sum + from[i]);                           \
    }                                                          \
  } while (0)

static void plain(const kind_t* kind, const void* x, void* y, uint64_t count) {
  if (kind->type == KILN_PROGRAM_TYPE_U32) PLAIN(uint32_t);
  if (kind->type == KILN_PROGRAM_TYPE_I64) PLAIN(uint64_t);
  if (kind->type == KILN_PROGRAM_TYPE_F32) PLAIN(float);
  if (kind->type == KILN_PROGRAM_TYPE_F64) PLAIN(double);
}

static void check(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                  const kind_t* kind, uint32_t count) {
  uint64_t bytes = (uint64_t)count * kind->bytes;
  void* x = kit_zeroes(bytes, 1);
  void* have = kit_zeroes(bytes, 1);
  void* want = kit_zeroes(bytes, 1);
  fill(kind, x, count, count + kind->type);
  plain(kind, x, want, count);
  const kit_argument_t arguments[] = {{x, NULL, bytes}, {NULL, have, bytes}};
  kit_run(kit, plan, arguments, 2, NULL, 0);
  if (memcmp(have, want, bytes) != 0) {
    fail_msg("%u elements of %s", count, kiln_program_type_name(kind->type));
  }
  free(x);
  free(have);
  free(want);
}

// One plan for all sizes, up and down again: what a run leaves in the plan's
// memory is nothing to the next one.
static void test_sizes(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t k = 0; k < sizeof(kKinds) / sizeof(kKinds[0]); k++) {
    kiln_library_options_t options = kiln_library_options_default();
    options.type = kKinds[k].type;
    options.exclusive = kKinds[k].exclusive ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
    options.count = kSizes[SIZES - 1];
    kiln_library_plan_t* plan = kit_plan(&kit, "scan", &options);
    for (uint32_t s = 0; s < SIZES; s++) {
      check(&kit, plan, &kKinds[k], kSizes[s]);
    }
    for (uint32_t s = SIZES; s-- > 0;) {
      check(&kit, plan, &kKinds[k], kSizes[s]);
    }
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

// Sums of floats that are rounded: the same bits in every run, and near those
// of a sum of doubles.
static void test_order(void** state) {
  (void)state;
  enum { COUNT = 30000 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_options_t options = kiln_library_options_default();
  options.type = KILN_PROGRAM_TYPE_F32;
  options.count = COUNT;
  kiln_library_plan_t* plan = kit_plan(&kit, "scan", &options);
  float* x = kit_zeroes(COUNT, sizeof(float));
  float* first = kit_zeroes(COUNT, sizeof(float));
  float* again = kit_zeroes(COUNT, sizeof(float));
  uint64_t seed = 3;
  for (uint32_t i = 0; i < COUNT; i++) {
    x[i] = (float)kit_next(&seed) * 0x1p-64f;
  }
  kit_argument_t arguments[] = {{x, NULL, COUNT * 4}, {NULL, first, COUNT * 4}};
  kit_run(&kit, plan, arguments, 2, NULL, 0);
  arguments[1].out = again;
  for (int i = 0; i < 3; i++) {
    kit_run(&kit, plan, arguments, 2, NULL, 0);
    assert_memory_equal(again, first, COUNT * sizeof(float));
  }
  double sum = 0;
  for (uint32_t i = 0; i < COUNT; i++) {
    sum += (double)x[i];
    assert_true(fabs((double)first[i] - sum) <= 4e-6 * sum);
  }
  kiln_library_plan_release(plan);
  free(x);
  free(first);
  free(again);
  dispatch_kit_close(&kit);
}

// An infinity and a NaN stay from where they are, and do not come before.
static void test_awkward(void** state) {
  (void)state;
  enum { COUNT = 9000, AT = 5000 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_options_t options = kiln_library_options_default();
  options.type = KILN_PROGRAM_TYPE_F32;
  options.count = COUNT;
  kiln_library_plan_t* plan = kit_plan(&kit, "scan", &options);
  float* x = kit_zeroes(COUNT, sizeof(float));
  float* y = kit_zeroes(COUNT, sizeof(float));
  x[AT] = INFINITY;
  x[AT + 100] = -INFINITY;
  const kit_argument_t arguments[] = {{x, NULL, COUNT * 4},
                                      {NULL, y, COUNT * 4}};
  kit_run(&kit, plan, arguments, 2, NULL, 0);
  for (uint32_t i = 0; i < COUNT; i++) {
    if (i < AT) assert_true(y[i] == 0.0f);
    if (i >= AT && i < AT + 100) assert_true(isinf(y[i]));
    if (i >= AT + 100) assert_true(isnan(y[i]));
  }
  kiln_library_plan_release(plan);
  free(x);
  free(y);
  dispatch_kit_close(&kit);
}

// Where segments begin: nowhere, everywhere, seldom, often, by turns.
static void set_heads(uint8_t* heads, uint32_t count, uint32_t way) {
  uint64_t seed = count + way;
  static const uint32_t kOneIn[] = {0, 1, 5000, 3, 40};
  for (uint32_t i = 0; i < count; i++) {
    uint32_t one_in = kOneIn[way % 5];
    bool is_head = one_in != 0 && kit_next(&seed) % one_in == 0;
    heads[i] = is_head ? (uint8_t)(1 + i % 255) : 0;
  }
}

static void check_segments(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                           const kind_t* kind, uint32_t count, uint32_t way) {
  uint64_t bytes = (uint64_t)count * kind->bytes;
  char* x = kit_zeroes(bytes, 1);
  uint8_t* heads = kit_zeroes(count, 1);
  void* have = kit_zeroes(bytes, 1);
  char* want = kit_zeroes(bytes, 1);
  fill(kind, x, count, count + kind->type);
  set_heads(heads, count, way);
  for (uint32_t from = 0, to = 0; from < count; from = to) {
    for (to = from + 1; to < count && heads[to] == 0;) to++;
    size_t at = (size_t)from * kind->bytes;
    plain(kind, x + at, want + at, to - from);
  }
  const kit_argument_t arguments[] = {
      {x, NULL, bytes}, {heads, NULL, count}, {NULL, have, bytes}};
  kit_run(kit, plan, arguments, 3, NULL, 0);
  if (memcmp(have, want, bytes) != 0) {
    fail_msg("%u elements of %s, heads %u", count,
             kiln_program_type_name(kind->type), way);
  }
  free(x);
  free(heads);
  free(have);
  free(want);
}

static void test_segments(void** state) {
  (void)state;
  enum { LONG = 20000 };  // several tiles
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t k = 0; k < sizeof(kKinds) / sizeof(kKinds[0]); k++) {
    kiln_library_options_t options = kiln_library_options_default();
    options.type = kKinds[k].type;
    options.exclusive = kKinds[k].exclusive ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
    options.count = kSizes[SIZES - 1];
    if (options.count < LONG) options.count = LONG;
    kiln_library_plan_t* plan = kit_plan(&kit, "scan_segments", &options);
    for (uint32_t s = 0; s < SIZES; s++) {
      check_segments(&kit, plan, &kKinds[k], kSizes[s], k + s);
    }
    for (uint32_t way = 0; way < 5; way++) {
      check_segments(&kit, plan, &kKinds[k], LONG, way);
    }
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_segments),
      cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_awkward),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
