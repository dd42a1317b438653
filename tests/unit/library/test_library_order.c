// SPDX-License-Identifier: Apache-2.0
//
// library: merge sorts by any order, beside the C library's qsort.
#include "library_kit.h"

#include "says.h"

// A key with the place where it stood: what a stable sort must give.
typedef struct item_t {
  int64_t key;
  uint32_t place;
} item_t;

typedef int (*compare_t)(int64_t a, int64_t b);

static int rising(int64_t a, int64_t b) {
  return (a > b) - (a < b);
}

static int falling(int64_t a, int64_t b) {
  return rising(b, a);
}

static int last_digit(int64_t a, int64_t b) {
  return rising(a % 10, b % 10);
}

static int even_first(int64_t a, int64_t b) {
  if ((a & 1) != (b & 1)) return rising(a & 1, b & 1);
  return (a & 1) != 0 ? falling(a, b) : rising(a, b);
}

static int near_nought(int64_t a, int64_t b) {
  return rising(a < 0 ? -a : a, b < 0 ? -b : b);
}

// Everybody is like everybody: nothing moves.
static int no_order(int64_t a, int64_t b) {
  (void)a;
  (void)b;
  return 0;
}

typedef struct kind_t {
  uint32_t type;
  uint32_t bytes;
  uint32_t value_type;
  uint32_t value_bytes;
  bool descending;
  const char* order;
  compare_t compare;
} kind_t;

static const kind_t kKinds[] = {
    {KILN_PROGRAM_TYPE_U32, 4, 0, 0, false, NULL, rising},
    {KILN_PROGRAM_TYPE_U32, 4, KILN_PROGRAM_TYPE_U32, 4, false,
     "  return a % 10 < b % 10;", last_digit},
    {KILN_PROGRAM_TYPE_F32, 4, KILN_PROGRAM_TYPE_U32, 4, true, NULL, falling},
    {KILN_PROGRAM_TYPE_I64, 8, KILN_PROGRAM_TYPE_U64, 8, false,
     "  // Not by sign: }\n  return abs(a) < abs(b);", near_nought},
    {KILN_PROGRAM_TYPE_U8, 1, KILN_PROGRAM_TYPE_F64, 8, false, NULL, rising},
    {KILN_PROGRAM_TYPE_U16, 2, KILN_PROGRAM_TYPE_U32, 4, false,
     "  if a & 1 != b & 1 {\n    return a & 1 < b & 1;\n  }\n"
     "  return select(a & 1 == 1, a > b, a < b);",
     even_first},
    {KILN_PROGRAM_TYPE_I32, 4, KILN_PROGRAM_TYPE_U8, 1, false,
     "  return false;", no_order},
};
enum { KINDS = sizeof(kKinds) / sizeof(kKinds[0]) };

static const kind_t* g_kind;

static int compare(const void* a, const void* b) {
  const item_t* x = a;
  const item_t* y = b;
  int order = g_kind->compare(x->key, y->key);
  if (order != 0) return order;
  return (x->place > y->place) - (x->place < y->place);
}

// Whole numbers that the type has: few different ones, or many.
static int64_t key_at(uint64_t* seed, uint32_t form) {
  uint64_t bits = kit_next(seed);
  if (form == 0) return (int64_t)(bits % 5);
  if (g_kind->type == KILN_PROGRAM_TYPE_U8) return (int64_t)(bits % 256);
  if (g_kind->type == KILN_PROGRAM_TYPE_U16) return (int64_t)(bits % 65536);
  if (g_kind->type == KILN_PROGRAM_TYPE_U32) return (int64_t)(bits >> 32);
  return (int64_t)(bits % (1 << 24)) - (1 << 23);
}

static void put_key(void* data, uint32_t i, int64_t key) {
  float f = (float)key;
  const void* from =
      g_kind->type == KILN_PROGRAM_TYPE_F32 ? (const void*)&f : &key;
  memcpy((char*)data + (size_t)i * g_kind->bytes, from, g_kind->bytes);
}

// `out` holds keys and values, or keys only.
static void run_sort(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                     uint32_t count, const void* keys, const void* values,
                     void* sorted, void* moved) {
  uint64_t size = (uint64_t)count * g_kind->bytes;
  uint64_t value_size = (uint64_t)count * g_kind->value_bytes;
  const kit_argument_t pairs[] = {{keys, NULL, size},
                                  {values, NULL, value_size},
                                  {NULL, sorted, size},
                                  {NULL, moved, value_size}};
  const kit_argument_t alone[] = {pairs[0], pairs[2]};
  bool has_values = g_kind->value_type != 0;
  kit_run(kit, plan, has_values ? pairs : alone, has_values ? 4 : 2, NULL, 0);
}

static void check(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                  uint32_t count, uint32_t form) {
  uint32_t value_bytes = g_kind->value_bytes;
  item_t* items = kit_zeroes(count, sizeof(item_t));
  uint8_t* keys = kit_zeroes(count, g_kind->bytes);
  uint8_t* sorted = kit_zeroes(count, g_kind->bytes);
  uint8_t* want = kit_zeroes(count, g_kind->bytes);
  uint8_t* values = kit_zeroes(count, 8);
  uint8_t* moved = kit_zeroes(count, 8);
  uint64_t seed = count + form;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t value = i;
    items[i] = (item_t){key_at(&seed, form), i};
    put_key(keys, i, items[i].key);
    memcpy(values + (size_t)i * value_bytes, &value, value_bytes);
  }
  qsort(items, count, sizeof(item_t), compare);
  run_sort(kit, plan, count, keys, values, sorted, moved);
  for (uint32_t i = 0; i < count; i++) {
    put_key(want, i, items[i].key);
    uint64_t value = items[i].place;
    if (memcmp(sorted + (size_t)i * g_kind->bytes,
               want + (size_t)i * g_kind->bytes, g_kind->bytes) != 0 ||
        memcmp(moved + (size_t)i * value_bytes, &value, value_bytes) != 0) {
      fail_msg("%u keys of %s, kind %u: place %u", count,
               kiln_program_type_name(g_kind->type),
               (unsigned)(g_kind - kKinds), i);
    }
  }
  free(items);
  free(keys);
  free(sorted);
  free(want);
  free(values);
  free(moved);
}

static kiln_library_plan_t* plan_of(dispatch_kit_t* kit, uint32_t count) {
  kiln_library_options_t options = kiln_library_options_default();
  options.type = g_kind->type;
  options.value_type = g_kind->value_type;
  options.descending = g_kind->descending ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
  options.order = g_kind->order;
  options.count = count;
  return kit_plan(kit, "merge_sort", &options);
}

// Behind the sizes: around tiles of 2,816 and runs of two and three.
static void test_sort(void** state) {
  (void)state;
  static const uint32_t kMore[] = {10, 11, 12, 2815, 2816, 2817, 5633, 8449};
  enum { MORE = sizeof(kMore) / sizeof(kMore[0]) };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t k = 0; k < KINDS; k++) {
    g_kind = &kKinds[k];
    kiln_library_plan_t* plan = plan_of(&kit, kSizes[SIZES - 1]);
    for (uint32_t s = 0; s < SIZES + MORE; s++) {
      uint32_t count = s < SIZES ? kSizes[s] : kMore[s - SIZES];
      check(&kit, plan, count, s % 2);
      check(&kit, plan, count, 1 - s % 2);
    }
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

// Plans of as many passes as there are, from none on: the result is where it
// should be behind an even number of them and an odd one.
static void test_passes(void** state) {
  (void)state;
  static const uint32_t kCounts[] = {1, 2816, 2817, 5632, 5633, 20000, 60000};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t i = 0; i < 7; i++) {
    g_kind = &kKinds[i % 2];
    kiln_library_plan_t* plan = plan_of(&kit, kCounts[i]);
    check(&kit, plan, kCounts[i], 1);
    check(&kit, plan, 1, 1);
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

// NaNs stand behind all numbers, whichever way round, as they stood.
static void test_nans(void** state) {
  (void)state;
  enum { COUNT = 9000 };
  static const kind_t kFloats = {
      KILN_PROGRAM_TYPE_F32, 4, KILN_PROGRAM_TYPE_U32, 4, true, NULL, falling};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  g_kind = &kFloats;
  kiln_library_plan_t* plan = plan_of(&kit, COUNT);
  float* keys = kit_zeroes(COUNT, 4);
  float* sorted = kit_zeroes(COUNT, 4);
  uint32_t* places = kit_zeroes(COUNT, 4);
  uint32_t* moved = kit_zeroes(COUNT, 4);
  uint8_t* seen = kit_zeroes(COUNT, 1);
  uint32_t nans = 0;
  for (uint32_t i = 0; i < COUNT; i++) {
    bool is_nan = i % 7 == 0;
    keys[i] = is_nan ? NAN : (float)((i * 2654435761u) >> 8);
    places[i] = i;
    nans += is_nan;
  }
  run_sort(&kit, plan, COUNT, keys, places, sorted, moved);
  for (uint32_t i = 0; i < COUNT; i++) {
    bool is_nan = i >= COUNT - nans;
    assert_in_range(moved[i], 0, COUNT - 1);
    assert_int_equal(seen[moved[i]]++, 0);
    assert_true((isnan(sorted[i]) != 0) == is_nan);
    if (is_nan) {
      assert_int_equal(moved[i], (i - (COUNT - nans)) * 7);
    } else {
      assert_true(sorted[i] == keys[moved[i]]);
      assert_true(i == 0 || sorted[i - 1] >= sorted[i]);
    }
  }
  kiln_library_plan_release(plan);
  free(keys);
  free(sorted);
  free(places);
  free(moved);
  free(seen);
  dispatch_kit_close(&kit);
}

static void refuse(dispatch_kit_t* kit, const char* name,
                   const kiln_library_options_t* options,
                   kiln_status_code_t code, const char* words) {
  kiln_library_plan_t* plan = NULL;
  kiln_status_t status =
      kiln_library_plan_create(kit->dispatcher, name, options, &plan);
  assert_null(plan);
  assert_says(status, code, words);
}

static void test_refusals(void** state) {
  (void)state;
  static const char* const kBroken[] = {
      "return a < b; }", "}", "{ return a < b;",
      "return true; }\nfn other(a: T) -> bool { return true;"};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_options_t options = kiln_library_options_default();
  options.count = 100;
  for (uint32_t i = 0; i < 4; i++) {
    options.order = kBroken[i];
    refuse(&kit, "merge_sort", &options, KILN_STATUS_INVALID_ARGUMENT,
           "options.order");
  }
  // What is no program is told as such, with the name of the text.
  options.order = "  return a + b;";
  refuse(&kit, "merge_sort", &options, KILN_STATUS_COMPILE_FAILED,
         "merge_sort");
  options.order = "  return c < b;";
  refuse(&kit, "merge_sort", &options, KILN_STATUS_COMPILE_FAILED,
         "merge_sort");
  options.order = "  return a < b;";
  options.descending = KILN_SWITCH_ON;
  refuse(&kit, "merge_sort", &options, KILN_STATUS_INVALID_ARGUMENT,
         "descending");
  options.descending = 0;
  refuse(&kit, "scan", &options, KILN_STATUS_INVALID_ARGUMENT, "order");
  options.order = NULL;
  options.type = KILN_PROGRAM_TYPE_BOOL;
  refuse(&kit, "merge_sort", &options, KILN_STATUS_UNSUPPORTED, "bool");
  options.type = 0;
  options.count = UINT64_C(1) << 31;
  refuse(&kit, "merge_sort", &options, KILN_STATUS_INVALID_ARGUMENT, "2^31");
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sort),
      cmocka_unit_test(test_passes),
      cmocka_unit_test(test_nans),
      cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
