// SPDX-License-Identifier: Apache-2.0
//
// library: products of matrices of every type of floats, beside plain C: the
// same bits, or near enough where a budget is given.
#include "library_typed.h"

// m, n, k.
static const uint32_t kShapes[][3] = {
    {0, 3, 4},      {3, 0, 4},     {3, 4, 0},    {1, 1, 1},    {2, 3, 1},
    {1, 100003, 3}, {1023, 1, 9},  {1, 1, 1025}, {31, 32, 33}, {127, 129, 17},
    {130, 128, 8},  {33, 257, 40}, {1024, 3, 2}, {2, 1024, 5}};
enum { SHAPES = sizeof(kShapes) / sizeof(kShapes[0]) };

// Bits of an element, as the program's text has it.
static uint64_t element(uint32_t type, const void* a, const void* b,
                        const uint32_t shape[3], uint32_t i, uint32_t j) {
  uint32_t n = shape[1], k = shape[2];
  typed_sum_t chain = {0, 0};
  for (uint32_t p = 0; p < k; p++) {
    typed_add(&chain, typed_get(type, a, (uint64_t)i * k + p),
              typed_get(type, b, (uint64_t)p * n + j));
  }
  return typed_sum_bits(type, &chain);
}

// Whether an element is as near to the exact one as steps of 16 products, each
// within 32 ULP of the sum of the absolute values, and one rounding to the type
// may be. Nothing is said where that sum is beyond f32.
static bool is_near(uint32_t type, const void* a, const void* b,
                    const uint32_t shape[3], uint32_t i, uint32_t j,
                    double have) {
  uint32_t n = shape[1], k = shape[2];
  double exact = 0, all = 0;
  for (uint32_t p = 0; p < k; p++) {
    double x = typed_get(type, a, (uint64_t)i * k + p);
    double y = typed_get(type, b, (uint64_t)p * n + j);
    exact += x * y;
    all += fabs(x * y);
  }
  if (isnan(exact)) return isnan(have);
  if (isinf(exact)) return have == exact;
  if (all > 0x1p127) return true;
  double least = type == KILN_PROGRAM_TYPE_F16 ? 0x1p-25 : 0x1p-134;
  double unit = type == KILN_PROGRAM_TYPE_F16 ? 0x1p-11 : 0x1p-8;
  double sums = (k / 16 + 2) * 32 * 0x1p-23 * all;
  double most = (fabs(exact) + sums) * unit + sums + least;
  if (isinf(have)) return fabs(exact) + most >= 65504;
  return fabs(have - exact) <= most;
}

static void expect(uint32_t type, const void* a, const void* b, const void* c,
                   const uint32_t shape[3], bool strict) {
  uint32_t m = shape[0], n = shape[1], k = shape[2];
  for (uint32_t i = 0; i < m; i++) {
    for (uint32_t j = 0; j < n; j++) {
      uint64_t at = (uint64_t)i * n + j;
      char where[96];
      snprintf(where, sizeof(where), "%u x %u x %u: c[%u, %u]", m, n, k, i, j);
      if (strict) {
        typed_expect(type, c, at, element(type, a, b, shape, i, j), where);
      } else if (!is_near(type, a, b, shape, i, j, typed_get(type, c, at))) {
        fail_msg("%s: %s is %g", kiln_program_type_name(type), where,
                 typed_get(type, c, at));
      }
    }
  }
}

static void product(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                    uint32_t type, const uint32_t shape[3], bool awkward,
                    bool strict) {
  uint32_t m = shape[0], n = shape[1], k = shape[2];
  uint64_t bytes = program_type_bytes((uint8_t)type);
  void* a = typed_numbers(type, (uint64_t)m * k, m + n, awkward);
  void* b = typed_numbers(type, (uint64_t)k * n, n + k, awkward);
  void* c = kit_zeroes((uint64_t)m * n, (size_t)bytes);
  const kit_argument_t arguments[] = {{a, NULL, (uint64_t)m * k * bytes},
                                      {b, NULL, (uint64_t)k * n * bytes},
                                      {NULL, c, (uint64_t)m * n * bytes}};
  const kiln_binding_t scalars[] = {kiln_bind_u32(m), kiln_bind_u32(n),
                                    kiln_bind_u32(k)};
  kit_run(kit, plan, arguments, 3, scalars, 3);
  expect(type, a, b, c, shape, strict);
  free(a);
  free(b);
  free(c);
}

static void multiply_all(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                         uint32_t type) {
  for (uint32_t s = 0; s < SHAPES; s++) {
    product(kit, plan, type, kShapes[s], s % 2 == 1, true);
  }
}

// ---- With a budget ----

// Rows of whole runs of 8 numbers, and tiles that are not full.
static const uint32_t kRuns[][3] = {
    {128, 128, 32}, {1, 8, 8},     {130, 136, 72}, {64, 264, 520},
    {129, 8, 40},   {257, 128, 0}, {8, 1000, 16},  {200, 16, 1000}};
enum { RUNS = sizeof(kRuns) / sizeof(kRuns[0]) };

static void test_halves_with_a_budget(void** state) {
  (void)state;
  static const uint32_t kTypes[] = {KILN_PROGRAM_TYPE_F16,
                                    KILN_PROGRAM_TYPE_BF16};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t t = 0; t < 2; t++) {
    // 31: not enough for another text, and strict.
    for (uint32_t ulp = 31; ulp <= 32; ulp++) {
      kiln_library_options_t options = kiln_library_options_default();
      options.type = kTypes[t];
      options.max_ulp = ulp;
      kiln_library_plan_t* plan = kit_plan(&kit, "matmul", &options);
      for (uint32_t s = 0; s < SHAPES; s++) {
        product(&kit, plan, kTypes[t], kShapes[s], s % 2 == 1, ulp == 31);
      }
      for (uint32_t s = 0; s < RUNS; s++) {
        product(&kit, plan, kTypes[t], kRuns[s], s % 3 == 1, ulp == 31);
      }
      kiln_library_plan_release(plan);
    }
  }
  dispatch_kit_close(&kit);
}

static void test_types(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  typed_each(&kit, "matmul", multiply_all);
  kiln_library_options_t options = kiln_library_options_default();
  options.type = KILN_PROGRAM_TYPE_U32;
  kiln_library_plan_t* plan = NULL;
  kiln_status_t status =
      kiln_library_plan_create(kit.dispatcher, "matmul", &options, &plan);
  assert_says(status, KILN_STATUS_UNSUPPORTED, "u32");
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_halves_with_a_budget),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
