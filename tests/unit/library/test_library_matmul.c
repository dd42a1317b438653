// SPDX-License-Identifier: Apache-2.0
//
// library: products of matrices of every type of floats, beside plain C: the
// same bits.
#include "library_typed.h"

// m, n, k.
static const uint32_t kShapes[][3] = {
    {0, 3, 4},    {3, 0, 4},      {3, 4, 0},     {1, 1, 1},
    {2, 3, 1},    {1, 100003, 3}, {1023, 1, 9},  {1, 1, 1025},
    {31, 32, 33}, {127, 129, 17}, {130, 128, 8}, {33, 257, 40}};
enum { SHAPES = sizeof(kShapes) / sizeof(kShapes[0]) };

// Bits of an element, as the program's text has it.
static uint64_t element(uint32_t type, const void* a, const void* b,
                        const uint32_t shape[3], uint32_t i, uint32_t j) {
  uint32_t n = shape[1], k = shape[2];
  uint64_t bits = 0;
  if (type == KILN_PROGRAM_TYPE_F64) {
    double sum = 0;
    for (uint32_t p = 0; p < k; p++) {
      sum = fma(typed_get(type, a, (uint64_t)i * k + p),
                typed_get(type, b, (uint64_t)p * n + j), sum);
    }
    memcpy(&bits, &sum, sizeof(sum));
    return bits;
  }
  float sum = 0;
  for (uint32_t p = 0; p < k; p++) {
    sum = fmaf((float)typed_get(type, a, (uint64_t)i * k + p),
               (float)typed_get(type, b, (uint64_t)p * n + j), sum);
  }
  memcpy(&bits, &sum, sizeof(sum));
  return program_cast(KILN_PROGRAM_TYPE_F32, (uint8_t)type, bits);
}

static void product(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                    uint32_t type, const uint32_t shape[3], bool awkward) {
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
  for (uint32_t i = 0; i < m; i++) {
    for (uint32_t j = 0; j < n; j++) {
      uint64_t want = element(type, a, b, shape, i, j);
      uint64_t have = typed_bits(type, c, (uint64_t)i * n + j);
      if (program_same((uint8_t)type, have, want)) continue;
      fail_msg("%s, %u x %u x %u: c[%u, %u] is %llx, should be %llx",
               kiln_program_type_name(type), m, n, k, i, j,
               (unsigned long long)have, (unsigned long long)want);
    }
  }
  free(a);
  free(b);
  free(c);
}

static void test_types(void** state) {
  (void)state;
  static const uint32_t kTypes[] = {
      0, KILN_PROGRAM_TYPE_F16, KILN_PROGRAM_TYPE_BF16, KILN_PROGRAM_TYPE_F64};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t t = 0; t < 4; t++) {
    kiln_library_options_t options = kiln_library_options_default();
    options.type = kTypes[t];
    kiln_library_plan_t* plan = kit_plan(&kit, "matmul", &options);
    uint32_t type = t == 0 ? KILN_PROGRAM_TYPE_F32 : kTypes[t];
    for (uint32_t s = 0; s < SHAPES; s++) {
      product(&kit, plan, type, kShapes[s], s % 2 == 1);
    }
    kiln_library_plan_release(plan);
  }
  kiln_library_options_t options = kiln_library_options_default();
  options.type = KILN_PROGRAM_TYPE_U32;
  kiln_library_plan_t* plan = NULL;
  kiln_status_t status =
      kiln_library_plan_create(kit.dispatcher, "matmul", &options, &plan);
  assert_says(status, KILN_STATUS_UNSUPPORTED, "u32");
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_types)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
