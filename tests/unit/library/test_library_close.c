// SPDX-License-Identifier: Apache-2.0
//
// library: what is kept of a list, and runs of equal elements, beside plain C.
#include "library_kit.h"

// Which elements are kept. one-thread
typedef enum pick_t { PICK_NONE, PICK_ALL, PICK_SOME, PICK_FEW } pick_t;

static uint8_t picks(pick_t pick, uint64_t bits) {
  switch (pick) {
    case PICK_NONE:
      return 0;
    case PICK_ALL:
      return 1;
    case PICK_SOME:
      return (uint8_t)(bits & 6);
    default:
      return bits % 100 == 0 ? 255 : 0;
  }
}

static void compact(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                    uint32_t count, uint32_t bytes, pick_t pick) {
  uint8_t* x = kit_zeroes(count, bytes);
  uint8_t* keep = kit_zeroes(count, 1);
  uint8_t* want = kit_zeroes(count, bytes);
  uint8_t* have = kit_zeroes(count, bytes);
  uint64_t seed = count + pick;
  uint32_t kept = 0, told = 1;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t bits = kit_next(&seed);
    memcpy(x + (size_t)i * bytes, &bits, bytes);
    keep[i] = picks(pick, bits >> 32);
    if (keep[i] == 0) continue;
    memcpy(want + (size_t)kept++ * bytes, &bits, bytes);
  }
  const kit_argument_t arguments[] = {{x, NULL, (uint64_t)count * bytes},
                                      {keep, NULL, count},
                                      {NULL, have, (uint64_t)count * bytes},
                                      {NULL, &told, 4}};
  kit_run(kit, plan, arguments, 4, NULL, 0);
  assert_int_equal(told, kept);
  if (memcmp(have, want, (size_t)kept * bytes) != 0) {
    fail_msg("%u elements of %u bytes, %u of them kept", count, bytes, kept);
  }
  free(x);
  free(keep);
  free(want);
  free(have);
}

static void test_compact(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  static const uint32_t kTypes[] = {KILN_PROGRAM_TYPE_U32, KILN_PROGRAM_TYPE_U8,
                                    KILN_PROGRAM_TYPE_I64};
  static const uint32_t kBytes[] = {4, 1, 8};
  for (uint32_t t = 0; t < 3; t++) {
    kiln_library_options_t options = kiln_library_options_default();
    options.type = kTypes[t];
    options.count = kSizes[SIZES - 1];
    kiln_library_plan_t* plan = kit_plan(&kit, "compact", &options);
    for (uint32_t s = 0; s < SIZES; s++) {
      compact(&kit, plan, kSizes[SIZES - 1 - s], kBytes[t], PICK_SOME);
      compact(&kit, plan, kSizes[s], kBytes[t], (pick_t)(s % 4));
    }
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

static void unique(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                   uint32_t count, uint32_t longest) {
  uint32_t* x = kit_zeroes(count, 4);
  uint32_t* values = kit_zeroes(count, 4);
  uint32_t* starts = kit_zeroes(count, 4);
  uint32_t* want = kit_zeroes(count, 4);
  uint64_t seed = count;
  uint32_t runs = 0, told = 1;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t bits = kit_next(&seed);
    x[i] = i > 0 && bits % longest != 0 ? x[i - 1] : (uint32_t)(bits >> 60);
    if (i == 0 || x[i] != x[i - 1]) want[runs++] = i;
  }
  const kit_argument_t arguments[] = {{x, NULL, count * UINT64_C(4)},
                                      {NULL, values, count * UINT64_C(4)},
                                      {NULL, starts, count * UINT64_C(4)},
                                      {NULL, &told, 4}};
  kit_run(kit, plan, arguments, 4, NULL, 0);
  assert_int_equal(told, runs);
  for (uint32_t k = 0; k < runs; k++) {
    assert_int_equal(starts[k], want[k]);
    assert_int_equal(values[k], x[want[k]]);
  }
  free(x);
  free(values);
  free(starts);
  free(want);
}

static void test_unique(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_options_t options = kiln_library_options_default();
  options.count = kSizes[SIZES - 1];
  kiln_library_plan_t* plan = kit_plan(&kit, "unique", &options);
  for (uint32_t s = 0; s < SIZES; s++) {
    unique(&kit, plan, kSizes[s], 1);
    unique(&kit, plan, kSizes[s], 7);
    unique(&kit, plan, kSizes[SIZES - 1 - s], 100000);
  }
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// ---- Their lengths ----

// Of 8 bytes, of which some differ in the upper half only.
static void runs(dispatch_kit_t* kit, kiln_library_plan_t* plan, uint32_t count,
                 uint32_t longest) {
  uint64_t* x = kit_zeroes(count, 8);
  uint64_t* values = kit_zeroes(count, 8);
  uint32_t* lengths = kit_zeroes(count, 4);
  uint32_t* want = kit_zeroes(count, 4);
  uint64_t seed = count;
  uint32_t found = 0, told = 1;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t bits = kit_next(&seed);
    x[i] = i > 0 && bits % longest != 0 ? x[i - 1] : bits >> 60 << 32;
    if (i == 0 || x[i] != x[i - 1]) found++;
    want[found - 1]++;
  }
  const kit_argument_t arguments[] = {{x, NULL, count * UINT64_C(8)},
                                      {NULL, values, count * UINT64_C(8)},
                                      {NULL, lengths, count * UINT64_C(4)},
                                      {NULL, &told, 4}};
  kit_run(kit, plan, arguments, 4, NULL, 0);
  assert_int_equal(told, found);
  assert_memory_equal(lengths, want, found * sizeof(uint32_t));
  for (uint32_t k = 0, at = 0; k < found; at += want[k++]) {
    assert_true(values[k] == x[at]);
  }
  free(x);
  free(values);
  free(lengths);
  free(want);
}

static void test_runs(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_options_t options = kiln_library_options_default();
  options.type = KILN_PROGRAM_TYPE_U64;
  options.count = kSizes[SIZES - 1];
  kiln_library_plan_t* plan = kit_plan(&kit, "runs", &options);
  for (uint32_t s = 0; s < SIZES; s++) {
    runs(&kit, plan, kSizes[s], 1);
    runs(&kit, plan, kSizes[SIZES - 1 - s], 9);
    runs(&kit, plan, kSizes[s], 100000);
  }
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_compact),
      cmocka_unit_test(test_unique),
      cmocka_unit_test(test_runs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
