// SPDX-License-Identifier: Apache-2.0
//
// library: sorts beside the C library's qsort.
#include "library_kit.h"

// A key with the place where it stood: what a stable sort must give.
typedef struct item_t {
  uint64_t bits;
  uint32_t place;
} item_t;

typedef struct kind_t {
  uint32_t type;
  uint32_t bytes;
  uint32_t value_type;
  bool descending;
} kind_t;

static const kind_t kKinds[] = {
    {KILN_PROGRAM_TYPE_U32, 4, 0, false},
    {KILN_PROGRAM_TYPE_U32, 4, KILN_PROGRAM_TYPE_U32, true},
    {KILN_PROGRAM_TYPE_I32, 4, KILN_PROGRAM_TYPE_U64, false},
    {KILN_PROGRAM_TYPE_F32, 4, KILN_PROGRAM_TYPE_U32, false},
    {KILN_PROGRAM_TYPE_F64, 8, 0, true},
    {KILN_PROGRAM_TYPE_I64, 8, KILN_PROGRAM_TYPE_U32, false},
};
enum { KINDS = sizeof(kKinds) / sizeof(kKinds[0]) };

static const kind_t* g_kind;

// -1, 0 or 1, as C compares values of the type; -0 is below 0.
static int compare_bits(uint64_t a, uint64_t b) {
  if (g_kind->type == KILN_PROGRAM_TYPE_I32) {
    return ((int32_t)a > (int32_t)b) - ((int32_t)a < (int32_t)b);
  }
  if (g_kind->type == KILN_PROGRAM_TYPE_I64) {
    return ((int64_t)a > (int64_t)b) - ((int64_t)a < (int64_t)b);
  }
  if (g_kind->type == KILN_PROGRAM_TYPE_U32) return (a > b) - (a < b);
  double x, y;
  if (g_kind->type == KILN_PROGRAM_TYPE_F32) {
    float f, g;
    memcpy(&f, &a, 4);
    memcpy(&g, &b, 4);
    x = (double)f;
    y = (double)g;
  } else {
    memcpy(&x, &a, 8);
    memcpy(&y, &b, 8);
  }
  if (x != y) return (x > y) - (x < y);
  return (signbit(x) == 0) - (signbit(y) == 0);
}

static int compare(const void* a, const void* b) {
  const item_t* x = a;
  const item_t* y = b;
  int order = compare_bits(x->bits, y->bits);
  if (order != 0) return g_kind->descending ? -order : order;
  return (x->place > y->place) - (x->place < y->place);
}

// Few different ones, many, and the ends of the type; no NaN.
static uint64_t key(uint64_t* seed, uint32_t form) {
  uint64_t bits = kit_next(seed);
  if (form == 0) bits &= 3;
  if (g_kind->type == KILN_PROGRAM_TYPE_F32) {
    float value = (float)(int32_t)bits * (form == 0 ? 1.0f : 0x1p-20f);
    if (bits % 31 == 0) value = bits % 62 == 0 ? INFINITY : -INFINITY;
    if (bits % 29 == 0) value = bits % 58 == 0 ? 0.0f : -0.0f;
    bits = 0;
    memcpy(&bits, &value, 4);
  } else if (g_kind->type == KILN_PROGRAM_TYPE_F64) {
    double value = (double)(int64_t)bits;
    memcpy(&bits, &value, 8);
  } else if (bits % 37 == 0) {
    bits = bits % 74 == 0 ? UINT64_MAX : UINT64_C(0x8000000080000000);
  }
  return g_kind->bytes == 8 ? bits : bits & UINT32_MAX;
}

static void check(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                  uint32_t count, uint32_t form) {
  uint32_t bytes = g_kind->bytes;
  uint32_t value_bytes = g_kind->value_type == KILN_PROGRAM_TYPE_U64   ? 8
                         : g_kind->value_type == KILN_PROGRAM_TYPE_U32 ? 4
                                                                       : 0;
  item_t* items = kit_zeroes(count, sizeof(item_t));
  uint8_t* keys = kit_zeroes(count, bytes);
  uint8_t* sorted = kit_zeroes(count, bytes);
  uint8_t* values = kit_zeroes(count, 8);
  uint8_t* moved = kit_zeroes(count, 8);
  uint64_t seed = count + form;
  for (uint32_t i = 0; i < count; i++) {
    items[i] = (item_t){key(&seed, form), i};
    memcpy(keys + (size_t)i * bytes, &items[i].bits, bytes);
    memcpy(values + (size_t)i * value_bytes, &i, value_bytes == 0 ? 0 : 4);
  }
  qsort(items, count, sizeof(item_t), compare);
  uint64_t size = (uint64_t)count * bytes;
  uint64_t value_size = (uint64_t)count * value_bytes;
  if (value_bytes == 0) {
    const kit_argument_t arguments[] = {{keys, NULL, size},
                                        {NULL, sorted, size}};
    kit_run(kit, plan, arguments, 2, NULL, 0);
  } else {
    const kit_argument_t arguments[] = {{keys, NULL, size},
                                        {values, NULL, value_size},
                                        {NULL, sorted, size},
                                        {NULL, moved, value_size}};
    kit_run(kit, plan, arguments, 4, NULL, 0);
  }
  for (uint32_t i = 0; i < count; i++) {
    bool good = memcmp(sorted + (size_t)i * bytes, &items[i].bits, bytes) == 0;
    if (value_bytes != 0) {
      good = good &&
             memcmp(moved + (size_t)i * value_bytes, &items[i].place, 4) == 0;
    }
    if (!good) {
      fail_msg("%u keys of %s: place %u", count,
               kiln_program_type_name(g_kind->type), i);
    }
  }
  free(items);
  free(keys);
  free(sorted);
  free(values);
  free(moved);
}

static void test_sort(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t k = 0; k < KINDS; k++) {
    g_kind = &kKinds[k];
    kiln_library_options_t options = kiln_library_options_default();
    options.type = g_kind->type;
    options.value_type = g_kind->value_type;
    options.descending = g_kind->descending ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
    options.count = kSizes[SIZES - 1];
    kiln_library_plan_t* plan = kit_plan(&kit, "sort", &options);
    for (uint32_t s = 0; s < SIZES; s++) {
      // The largest size by one kind of each size of keys is enough.
      if (s == SIZES - 1 && k != 1 && k != 4) continue;
      check(&kit, plan, kSizes[s], s % 2);
    }
    check(&kit, plan, 8192 + 904, k % 2);
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

// NaNs stand at the end, and nothing else is lost.
static void test_nans(void** state) {
  (void)state;
  enum { COUNT = 5000 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_options_t options = kiln_library_options_default();
  options.type = KILN_PROGRAM_TYPE_F32;
  options.count = COUNT;
  kiln_library_plan_t* plan = kit_plan(&kit, "sort", &options);
  float* keys = kit_zeroes(COUNT, 4);
  float* sorted = kit_zeroes(COUNT, 4);
  uint32_t nans = 0;
  for (uint32_t i = 0; i < COUNT; i++) {
    keys[i] = i % 7 == 0 ? NAN : (float)((i * 2654435761u) >> 8);
    nans += i % 7 == 0;
  }
  const kit_argument_t arguments[] = {{keys, NULL, COUNT * 4},
                                      {NULL, sorted, COUNT * 4}};
  kit_run(&kit, plan, arguments, 2, NULL, 0);
  for (uint32_t i = 0; i < COUNT; i++) {
    assert_true((isnan(sorted[i]) != 0) == (i >= COUNT - nans));
    if (i > 0 && i < COUNT - nans) assert_true(sorted[i - 1] <= sorted[i]);
  }
  kiln_library_plan_release(plan);
  free(keys);
  free(sorted);
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sort),
      cmocka_unit_test(test_nans),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
