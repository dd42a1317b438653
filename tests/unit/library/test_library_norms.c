// SPDX-License-Identifier: Apache-2.0
//
// library: softmax and layer norm on rows of every width and type, with what is
// awkward in them, beside doubles; and bodies that are awkward.
#include "library_values.h"

static const uint32_t kFloats[] = {KILN_PROGRAM_TYPE_F32, KILN_PROGRAM_TYPE_F16,
                                   KILN_PROGRAM_TYPE_BF16};

// Rows, and something behind the last whole one. one-thread
typedef struct rows_t {
  uint32_t type;
  uint32_t width;
  uint32_t rows;
  uint64_t count;
  bool normalizes;
  double epsilon;
  void* x;
  void* y;
  void* scale;
  void* shift;
} rows_t;

static rows_t rows_of(uint32_t type, uint32_t width, uint32_t rows,
                      bool normalizes) {
  uint64_t count = (uint64_t)width * rows + (width > 1 ? width - 1 : 0);
  rows_t r = {type,
              width,
              rows,
              count,
              normalizes,
              1e-3,
              typed_numbers(type, count, width, false),
              kit_zeroes(count, 4),
              typed_numbers(type, width, 5, false),
              typed_numbers(type, width, 6, false)};
  for (uint64_t i = 0; i < count; i++) {
    typed_set(type, r.x, i, 8 * typed_get(type, r.x, i));
  }
  return r;
}

static void free_rows(rows_t* r) {
  free(r->x);
  free(r->y);
  free(r->scale);
  free(r->shift);
}

static void run_rows(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                     rows_t* r) {
  uint64_t bytes = program_type_bytes((uint8_t)r->type);
  const kit_argument_t x = {r->x, NULL, r->count * bytes};
  const kit_argument_t y = {NULL, r->y, r->count * bytes};
  const kit_argument_t norm[] = {x,
                                 {r->scale, NULL, r->width * bytes},
                                 {r->shift, NULL, r->width * bytes},
                                 y};
  const kit_argument_t shares[] = {x, y};
  const kiln_binding_t scalars[] = {kiln_bind_u32(r->width),
                                    kiln_bind_f32((float)r->epsilon)};
  if (r->normalizes) {
    kit_run(kit, plan, norm, 4, scalars, 2);
  } else {
    kit_run(kit, plan, shares, 2, scalars, 1);
  }
}

// What a row should be, in doubles.
static void want_of(const rows_t* r, uint32_t row, double* want) {
  uint64_t first = (uint64_t)row * r->width;
  double top = -(double)INFINITY, sum = 0, squares = 0, mean = 0;
  for (uint32_t j = 0; j < r->width; j++) {
    want[j] = typed_get(r->type, r->x, first + j);
    top = fmax(top, want[j]);
    mean += want[j] / r->width;
  }
  for (uint32_t j = 0; j < r->width; j++) {
    sum += exp(want[j] - top);
    squares += (want[j] - mean) * (want[j] - mean) / r->width;
  }
  for (uint32_t j = 0; j < r->width; j++) {
    if (r->normalizes) {
      want[j] = (want[j] - mean) / sqrt(squares + r->epsilon) *
                    typed_get(r->type, r->scale, j) +
                typed_get(r->type, r->shift, j);
    } else {
      want[j] = exp(want[j] - top) / sum;
    }
  }
}

// Nobody writes behind the last whole row.
static void check_rest(const rows_t* r) {
  uint64_t bytes = program_type_bytes((uint8_t)r->type);
  uint64_t from = (uint64_t)r->rows * r->width * bytes;
  for (uint64_t i = from; i < r->count * bytes; i++) {
    assert_int_equal(((const uint8_t*)r->y)[i], 0xa5);
  }
}

static void check_row(const rows_t* r, uint32_t row, double* want) {
  want_of(r, row, want);
  for (uint32_t j = 0; j < r->width; j++) {
    double have = typed_get(r->type, r->y, (uint64_t)row * r->width + j);
    // Of shares the last bits are their own; of the others those of numbers
    // near 1, of which scale and shift make more.
    double most = r->normalizes ? 2e-5 : 4e-6 * want[j] + 0x1p-26;
    most += typed_half_unit(r->type) * fabs(want[j]);
    if (r->type == KILN_PROGRAM_TYPE_F16) most += 0x1p-25;
    if (fabs(have - want[j]) <= most) continue;
    fail_msg("%s of %s, rows of %u: [%u, %u] is %.9g, should be %.9g",
             r->normalizes ? "normalize" : "softmax",
             kiln_program_type_name(r->type), r->width, row, j, have, want[j]);
  }
}

static kiln_library_plan_t* plan_of(dispatch_kit_t* kit, bool normalizes,
                                    uint32_t type) {
  kiln_library_options_t options = kiln_library_options_default();
  options.type = type;
  return kit_plan(kit, normalizes ? "normalize" : "softmax", &options);
}

static void test_widths(void** state) {
  (void)state;
  static const uint32_t kWidths[] = {
      1,    2,    4,    31,   32,   33,   100,  1023, 1024,
      1025, 1028, 2052, 4096, 4100, 8192, 8196, 9001, 100003 / KIT_LESS};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t k = 0; k < 6; k++) {
    uint32_t type = kFloats[k / 2];
    kiln_library_plan_t* plan = plan_of(&kit, k % 2 == 1, type);
    for (uint32_t w = 0; w < sizeof(kWidths) / sizeof(kWidths[0]); w++) {
      uint32_t width = kWidths[w];
      rows_t r = rows_of(type, width, width < 200 ? 33 : 3, k % 2 == 1);
      double* want = kit_zeroes(width, sizeof(double));
      run_rows(&kit, plan, &r);
      for (uint32_t row = 0; row < r.rows; row++) check_row(&r, row, want);
      check_rest(&r);
      free(want);
      free_rows(&r);
    }
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

// No row, less than a row, rows without elements: nothing is written.
static void test_nothing(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t k = 0; k < 6; k++) {
    kiln_library_plan_t* plan = plan_of(&kit, k % 2 == 1, kFloats[k / 2]);
    for (uint32_t width = 0; width < 40; width += 13) {
      rows_t r = rows_of(kFloats[k / 2], width, 0, k % 2 == 1);
      run_rows(&kit, plan, &r);
      check_rest(&r);
      r.count = 0;
      run_rows(&kit, plan, &r);
      free_rows(&r);
    }
    // A width of 0 of something.
    rows_t r = rows_of(kFloats[k / 2], 33, 1, k % 2 == 1);
    r.width = r.rows = 0;
    run_rows(&kit, plan, &r);
    check_rest(&r);
    free_rows(&r);
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

static double get(const rows_t* r, uint32_t row, uint32_t j) {
  return typed_get(r->type, r->y, (uint64_t)row * r->width + j);
}

static void put(rows_t* r, uint32_t row, uint32_t j, double value) {
  typed_set(r->type, r->x, (uint64_t)row * r->width + j, value);
}

static void put_all(rows_t* r, uint32_t row, double value) {
  for (uint32_t j = 0; j < r->width; j++) put(r, row, j, value);
}

// What is no number or infinite stays in its row, whichever way rows of that
// width go; a row of equal elements is one of equal shares, or the shift.
static void awkward(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                    uint32_t type, uint32_t width, bool normalizes) {
  enum { PLAIN, NOT, UP, DOWN, ALL_DOWN, EQUAL, ZERO, LARGE, TINY, ROWS };
  rows_t r = rows_of(type, width, ROWS, normalizes);
  double* want = kit_zeroes(width, sizeof(double));
  double large = type == KILN_PROGRAM_TYPE_F16 ? 60000 : 1e18;
  put(&r, NOT, width / 2, (double)NAN);
  put(&r, UP, width - 1, (double)INFINITY);
  put(&r, DOWN, 0, -(double)INFINITY);
  put_all(&r, ALL_DOWN, -(double)INFINITY);
  put_all(&r, EQUAL, 1.5);
  put_all(&r, ZERO, -0.0);
  put_all(&r, LARGE, large);
  put(&r, LARGE, 1, -large);
  // Below the least normal number of f16 and of f32.
  double tiny = type == KILN_PROGRAM_TYPE_F16 ? 0x1p-20 : 0x1p-130;
  put_all(&r, TINY, tiny);
  put(&r, TINY, 2, -tiny);
  run_rows(kit, plan, &r);
  check_rest(&r);
  check_row(&r, PLAIN, want);
  check_row(&r, EQUAL, want);
  check_row(&r, ZERO, want);
  check_row(&r, TINY, want);
  check_row(&r, LARGE, want);
  for (uint32_t j = 0; j < width; j++) {
    assert_true(isnan(get(&r, NOT, j)));
    assert_true(isnan(get(&r, UP, j)));
    assert_true(isnan(get(&r, ALL_DOWN, j)));
    if (normalizes) assert_true(isnan(get(&r, DOWN, j)));
  }
  // One that is nothing has no share, and takes none from the others.
  if (!normalizes) {
    assert_true(get(&r, DOWN, 0) == 0);
    check_row(&r, DOWN, want);
  }
  free(want);
  free_rows(&r);
}

static void test_awkward(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t k = 0; k < 6; k++) {
    kiln_library_plan_t* plan = plan_of(&kit, k % 2 == 1, kFloats[k / 2]);
    static const uint32_t kWidths[] = {3, 32, 33, 1024, 1027, 4096, 8192, 8200};
    for (uint32_t w = 0; w < 8; w++) {
      awkward(&kit, plan, kFloats[k / 2], kWidths[w], k % 2 == 1);
    }
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

// ---- Bodies ----

// Each pull in doubles, and how large its parts are together.
static void pull_of(const float* bodies, uint32_t n, uint32_t i,
                    double softening, double pull[3], double* size) {
  pull[0] = pull[1] = pull[2] = *size = 0;
  for (uint32_t j = 0; j < n; j++) {
    double d[3], square = softening * softening;
    for (uint32_t c = 0; c < 3; c++) {
      d[c] = (double)bodies[4 * j + c] - (double)bodies[4 * i + c];
      square += d[c] * d[c];
    }
    double factor = (double)bodies[4 * j + 3] / (square * sqrt(square));
    for (uint32_t c = 0; c < 3; c++) {
      pull[c] += factor * d[c];
      *size += fabs(factor * d[c]);
    }
  }
}

// The pulls on one body in so many.
static void check_pulls(const float* x, const float* y, uint32_t n,
                        double softening, uint32_t one_in) {
  for (uint32_t i = 0; i < n; i += one_in) {
    double pull[3], size;
    pull_of(x, n, i, softening, pull, &size);
    for (uint32_t c = 0; c < 3; c++) {
      if (fabs((double)y[3 * i + c] - pull[c]) <= size * 2e-6) continue;
      fail_msg("%u bodies: pull %u on %u is %g, should be %g", n, c, i,
               (double)y[3 * i + c], pull[c]);
    }
  }
}

static void bodies(dispatch_kit_t* kit, kiln_library_plan_t* plan, uint32_t n,
                   uint32_t one_in) {
  float* x = typed_numbers(KILN_PROGRAM_TYPE_F32, n * UINT64_C(4), n, false);
  float* y = kit_zeroes(n * UINT64_C(3), 4);
  // Pairs at one place, and some without mass.
  for (uint32_t i = 1; i < n; i++) {
    if (i % 3 == 0) memcpy(x + 4 * (size_t)i, x + 4 * (size_t)i - 4, 12);
    if (i % 5 == 0) x[4 * (size_t)i + 3] = 0;
  }
  const kit_argument_t arguments[] = {{x, NULL, n * UINT64_C(16)},
                                      {NULL, y, n * UINT64_C(12)}};
  const kiln_binding_t scalar = kiln_bind_f32(0.05f);
  kit_run(kit, plan, arguments, 2, &scalar, 1);
  check_pulls(x, y, n, 0.05, one_in);
  free(x);
  free(y);
}

// 100,003 bodies are 10^10 pairs, minutes of the software device: less is
// enough for it.
static void test_bodies(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "nbody", NULL);
  for (uint32_t s = 0; s + 1 < SIZES; s++) bodies(&kit, plan, kSizes[s], 3);
  bodies(&kit, plan, 10007 / KIT_LESS, 997);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// The sun and its four large planets, in astronomical units and masses of the
// sun: each planet is pulled by the sun as by nearly nothing else, and the sun
// towards Jupiter.
static void test_planets(void** state) {
  (void)state;
  enum { BODIES = 5 };
  static const float kBodies[BODIES][4] = {
      {0, 0, 0, 1},
      {4.84143144f, -1.16032004f, -0.103622044f, 9.54791938e-4f},
      {8.34336672f, 4.12479856f, -0.403523417f, 2.85885981e-4f},
      {12.8943696f, -15.1111514f, -0.223307579f, 4.36624404e-5f},
      {15.3796971f, -25.9193146f, 0.179258773f, 5.15138902e-5f}};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "nbody", NULL);
  float y[3 * BODIES];
  const kit_argument_t arguments[] = {{kBodies, NULL, sizeof(kBodies)},
                                      {NULL, y, sizeof(y)}};
  const kiln_binding_t scalar = kiln_bind_f32(1e-3f);
  kit_run(&kit, plan, arguments, 2, &scalar, 1);
  check_pulls(&kBodies[0][0], y, BODIES, (double)1e-3f, 1);
  for (uint32_t i = 1; i < BODIES; i++) {
    double square = 0, inwards = 0;
    for (uint32_t c = 0; c < 3; c++) {
      square += (double)kBodies[i][c] * (double)kBodies[i][c];
      inwards -= (double)kBodies[i][c] * (double)y[3 * i + c];
    }
    assert_true(fabs(inwards * sqrt(square) - 1) < 5e-3);
  }
  assert_true(y[0] > 0 && y[1] < 0);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// What is far away or no number, and what has no mass at its place.
static void test_bodies_awkward(void** state) {
  (void)state;
  enum { N = 300 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "nbody", NULL);
  float x[4 * N] = {0}, y[3 * N];
  const kit_argument_t arguments[] = {{x, NULL, sizeof(x)},
                                      {NULL, y, sizeof(y)}};
  const kiln_binding_t scalar = kiln_bind_f32(1e-3f);
  // All at one place: nobody pulls.
  for (uint32_t i = 0; i < N; i++) x[4 * i + 3] = 2;
  kit_run(&kit, plan, arguments, 2, &scalar, 1);
  for (uint32_t i = 0; i < 3 * N; i++) assert_true(y[i] == 0);
  // One so far away that squares overflow: it pulls nobody.
  x[4 * 7] = 1e30f;
  kit_run(&kit, plan, arguments, 2, &scalar, 1);
  for (uint32_t i = 0; i < 3 * N; i++) assert_true(y[i] == 0);
  // One whose mass is no number spoils all, its own pull as well.
  x[4 * 7] = 1;
  x[4 * 7 + 3] = NAN;
  kit_run(&kit, plan, arguments, 2, &scalar, 1);
  for (uint32_t i = 0; i < 3 * N; i++) assert_true(isnan(y[i]));
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_widths),  cmocka_unit_test(test_nothing),
      cmocka_unit_test(test_awkward), cmocka_unit_test(test_bodies),
      cmocka_unit_test(test_planets), cmocka_unit_test(test_bodies_awkward),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
