// SPDX-License-Identifier: Apache-2.0
//
// library: convolutions of every type and shape, beside plain C: the same bits.
#include "library_typed.h"

// What a filter is divided into.
enum { PART = 15 };

// One-thread.
typedef struct shape_t {
  uint32_t pictures;
  uint32_t w, h;
  uint32_t channels, outs;
  uint32_t fw, fh;
} shape_t;

// The elements of x and of the filters that meet at (i, j); 0 outside.
static double outside(uint32_t type, const shape_t* s, const void* x,
                      uint64_t plane, uint32_t row, uint32_t column) {
  if (row >= s->h || column >= s->w) return 0;
  return typed_get(type, x, (plane * s->h + row) * s->w + column);
}

// Bits of an element, as the program's text has it. `at`: picture, channel of
// y, row, column.
static uint64_t element(uint32_t type, const shape_t* s, const void* x,
                        const void* filters, const uint32_t at[4]) {
  typed_sum_t chain = {0, 0};
  uint32_t across = (s->fw + PART - 1) / PART;
  uint32_t parts = (s->fh + PART - 1) / PART * across;
  for (uint32_t k = 0; k < parts * s->channels; k++) {
    uint32_t c = k % s->channels, part = k / s->channels;
    uint64_t plane = (uint64_t)at[0] * s->channels + c;
    uint64_t filter = ((uint64_t)at[1] * s->channels + c) * s->fw * s->fh;
    uint32_t up = part / across * PART, aside = part % across * PART;
    for (uint32_t i = up; i < s->fh && i < up + PART; i++) {
      for (uint32_t j = aside; j < s->fw && j < aside + PART; j++) {
        double a = outside(type, s, x, plane, at[2] + i - s->fh / 2,
                           at[3] + j - s->fw / 2);
        double b = typed_get(type, filters, filter + i * s->fw + j);
        typed_add(&chain, a, b);
      }
    }
  }
  return typed_sum_bits(type, &chain);
}

static void check(uint32_t type, const shape_t* s, const void* x,
                  const void* filters, const void* y) {
  uint64_t count = (uint64_t)s->pictures * s->outs * s->h * s->w;
  for (uint64_t e = 0; e < count; e++) {
    const uint32_t at[] = {(uint32_t)(e / s->w / s->h / s->outs),
                           (uint32_t)(e / s->w / s->h % s->outs),
                           (uint32_t)(e / s->w % s->h), (uint32_t)(e % s->w)};
    char where[160];
    snprintf(where, sizeof(where), "%u x %u, filters %u x %u: [%u, %u, %u, %u]",
             s->w, s->h, s->fw, s->fh, at[0], at[1], at[2], at[3]);
    typed_expect(type, y, e, element(type, s, x, filters, at), where);
  }
}

static void convolve(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                     uint32_t type, const shape_t* s, bool awkward) {
  uint64_t bytes = program_type_bytes((uint8_t)type);
  uint64_t size = (uint64_t)s->w * s->h * s->pictures;
  uint64_t of_filters = (uint64_t)s->outs * s->channels * s->fw * s->fh;
  void* x = typed_numbers(type, size * s->channels, s->w, awkward);
  void* filters = typed_numbers(type, of_filters, s->h, awkward);
  void* y = kit_zeroes(size * s->outs, (size_t)bytes);
  const kit_argument_t arguments[] = {{x, NULL, size * s->channels * bytes},
                                      {filters, NULL, of_filters * bytes},
                                      {NULL, y, size * s->outs * bytes}};
  const kiln_binding_t scalars[] = {
      kiln_bind_u32(s->w),    kiln_bind_u32(s->h),  kiln_bind_u32(s->channels),
      kiln_bind_u32(s->outs), kiln_bind_u32(s->fw), kiln_bind_u32(s->fh)};
  kit_run(kit, plan, arguments, 3, scalars, 6);
  check(type, s, x, filters, y);
  free(x);
  free(filters);
  free(y);
}

static const shape_t kShapes[] = {
    {0, 5, 5, 1, 1, 3, 3},     {1, 1, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, 15, 15},   {2, 31, 33, 2, 3, 3, 3},
    {1, 32, 32, 3, 8, 5, 5},   {1, 33, 31, 1, 9, 3, 1},
    {2, 5, 40, 3, 17, 2, 4},   {1, 64, 70, 4, 1, 7, 6},
    {1, 1025, 3, 1, 2, 1, 3},  {1, 1024, 2, 1, 2, 3, 3},
    {1, 3, 1023, 1, 1, 3, 2},  {1, 100003 / KIT_LESS, 1, 1, 1, 3, 1},
    {3, 20, 20, 2, 2, 15, 14}, {1, 40, 33, 2, 3, 17, 31},
    {1, 5, 5, 1, 1, 0, 3},     {2, 36, 66, 3, 20, 3, 3},
    {1, 67, 35, 5, 25, 3, 3},  {1, 34, 4, 2, 16, 4, 5},
    {1, 31, 5, 2, 5, 16, 9},
};
enum { SHAPES = sizeof(kShapes) / sizeof(kShapes[0]) };

static void convolve_all(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                         uint32_t type) {
  for (uint32_t s = 0; s < SHAPES; s++) {
    convolve(kit, plan, type, &kShapes[s], s % 2 == 1);
  }
}

static void test_types(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  typed_each(&kit, "convolution", convolve_all);
  dispatch_kit_close(&kit);
}

// A picture as files have them, through a filter that moves it by a pixel.
static void test_moved(void** state) {
  (void)state;
  enum { W = 50, H = 40 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "convolution", NULL);
  float x[W * H], y[W * H];
  const float filter[] = {0, 0, 0, 1, 0, 0, 0, 0, 0};
  for (int i = 0; i < W * H; i++) x[i] = (float)(i * 7 % 256);
  const kit_argument_t arguments[] = {{x, NULL, sizeof(x)},
                                      {filter, NULL, sizeof(filter)},
                                      {NULL, y, sizeof(y)}};
  const kiln_binding_t scalars[] = {kiln_bind_u32(W), kiln_bind_u32(H),
                                    kiln_bind_u32(1), kiln_bind_u32(1),
                                    kiln_bind_u32(3), kiln_bind_u32(3)};
  kit_run(&kit, plan, arguments, 3, scalars, 6);
  for (int i = 0; i < W * H; i++) {
    assert_true(y[i] == (i % W == 0 ? 0 : x[i - 1]));
  }
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_types),
                                     cmocka_unit_test(test_moved)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
