// SPDX-License-Identifier: Apache-2.0
//
// library: histograms of every type and number of bins, beside plain C.
#include "library_kit.h"

// What values are: any, one of few, or always the same one.
typedef enum values_t { ANY, FEW, ONE, VALUES } values_t;

// One element in nine has no bin, where the type has such values.
static uint32_t pick(uint64_t bits, uint32_t bytes, uint32_t bins,
                     values_t how) {
  uint32_t most = bytes == 1 ? 255 : bytes == 2 ? 65535 : UINT32_MAX;
  if (how == ONE) return bins - 1;
  if (how == FEW) return (uint32_t)(bits % 3) * (bins / 3);
  if (bits >> 32 & 15) return (uint32_t)(bits % bins);
  return (uint32_t)bits & most;
}

static void histogram(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                      uint32_t bytes, uint32_t bins, uint32_t count,
                      values_t how) {
  uint8_t* x = kit_zeroes(count, bytes);
  uint32_t* want = kit_zeroes(bins, 4);
  uint32_t* have = kit_zeroes(bins, 4);
  uint64_t seed = count + bins;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t value = pick(kit_next(&seed), bytes, bins, how);
    memcpy(x + (size_t)i * bytes, &value, bytes);
    if (value < bins) want[value]++;
  }
  const kit_argument_t arguments[] = {{x, NULL, (uint64_t)count * bytes},
                                      {NULL, have, bins * UINT64_C(4)}};
  kit_run(kit, plan, arguments, 2, NULL, 0);
  for (uint32_t v = 0; v < bins; v++) {
    if (have[v] == want[v]) continue;
    fail_msg("%u elements of %u bytes, %u bins: %u are %u, should be %u", count,
             bytes, bins, v, have[v], want[v]);
  }
  free(x);
  free(want);
  free(have);
}

// Each by one plan for all sizes, the last of which is more than a block's
// part of it.
static void test_histogram(void** state) {
  (void)state;
  static const struct {
    uint32_t type, bytes, bins;
  } kKinds[] = {
      {0, 1, 256},
      {KILN_PROGRAM_TYPE_U8, 1, 1},
      {KILN_PROGRAM_TYPE_U8, 1, 100},
      {KILN_PROGRAM_TYPE_U16, 2, 256},
      {KILN_PROGRAM_TYPE_U32, 4, 31},
      {KILN_PROGRAM_TYPE_U16, 2, 257},
      {KILN_PROGRAM_TYPE_U32, 4, 4096},
      {KILN_PROGRAM_TYPE_U32, 4, 12288},
  };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t k = 0; k < sizeof(kKinds) / sizeof(kKinds[0]); k++) {
    kiln_library_options_t options = kiln_library_options_default();
    options.type = kKinds[k].type;
    options.bins = kKinds[k].bins;
    kiln_library_plan_t* plan = kit_plan(&kit, "histogram", &options);
    for (uint32_t s = 0; s < SIZES; s++) {
      for (int how = 0; how < VALUES; how++) {
        histogram(&kit, plan, kKinds[k].bytes, kKinds[k].bins, kSizes[s],
                  (values_t)how);
      }
    }
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

// More than all blocks take at once, so that each goes on.
static void test_rounds(void** state) {
  (void)state;
  enum { CHUNK = 512 * 64, BLOCKS = 528 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "histogram", NULL);
  uint32_t count = KIT_LESS > 1 ? 2 * CHUNK + 5 : BLOCKS * CHUNK + 5;
  histogram(&kit, plan, 1, 256, count, ONE);
  histogram(&kit, plan, 1, 256, 2 * CHUNK, ANY);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// Where the bytes begin at no multiple of anything.
static void test_places(void** state) {
  (void)state;
  enum { N = 50000 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "histogram", NULL);
  uint8_t* x = kit_zeroes(N, 1);
  uint64_t seed = 3;
  for (uint32_t i = 0; i < N; i++) x[i] = (uint8_t)kit_next(&seed);
  kiln_resident_t text = dispatch_kit_resident(&kit, N, x);
  kiln_resident_t counts = dispatch_kit_resident(&kit, 1024, NULL);
  for (uint32_t first = 0; first < 18; first++) {
    uint32_t want[256] = {0}, have[256];
    for (uint32_t i = first; i < N; i++) want[x[i]]++;
    const kiln_binding_t bindings[] = {
        kiln_bind_resident_range(text, first, N - first),
        kiln_bind_resident(counts)};
    assert_null(kiln_library_plan_run(plan, NULL, bindings, 2));
    dispatch_kit_fetch(&kit, counts, 1024, have);
    assert_memory_equal(have, want, sizeof(want));
  }
  assert_null(kiln_resident_free(kit.dispatcher, text));
  assert_null(kiln_resident_free(kit.dispatcher, counts));
  free(x);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_histogram),
      cmocka_unit_test(test_rounds),
      cmocka_unit_test(test_places),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
