// SPDX-License-Identifier: Apache-2.0
//
// library: Fourier transforms beside plain C in long doubles.
#include "library_kit.h"

typedef long double wide_t;

static const wide_t kTurn = 6.28318530717958647692528676656L;

// The definition: every sum by itself. Numbers are pairs.
static void slow(const wide_t* x, wide_t* y, uint32_t n, wide_t sign) {
  for (uint32_t k = 0; k < n; k++) {
    wide_t re = 0, im = 0;
    for (uint32_t j = 0; j < n; j++) {
      wide_t angle = sign * kTurn * (wide_t)((uint64_t)j * k % n) / n;
      wide_t c = cosl(angle), s = sinl(angle);
      re += x[2 * j] * c - x[2 * j + 1] * s;
      im += x[2 * j] * s + x[2 * j + 1] * c;
    }
    y[2 * k] = re;
    y[2 * k + 1] = im;
  }
}

// The same in n log n steps: those of even and odd places, and so on; `step`
// is how far numbers of x are from each other, and roots of the whole are
// there.
static void quick(const wide_t* x, wide_t* y, uint32_t n, uint32_t step,
                  const wide_t* roots) {
  if (n == 1) {
    y[0] = x[0];
    y[1] = x[1];
    return;
  }
  uint32_t half = n / 2;
  quick(x, y, half, step * 2, roots);
  quick(x + 2 * (size_t)step, y + 2 * (size_t)half, half, step * 2, roots);
  for (uint32_t k = 0; k < half; k++) {
    const wide_t* root = roots + 2 * (size_t)k * step;
    wide_t* low = y + 2 * (size_t)k;
    wide_t* high = y + 2 * (size_t)(k + half);
    wide_t re = high[0] * root[0] - high[1] * root[1];
    wide_t im = high[0] * root[1] + high[1] * root[0];
    high[0] = low[0] - re;
    high[1] = low[1] - im;
    low[0] += re;
    low[1] += im;
  }
}

// Half of the roots of one, from 1 on.
static wide_t* roots_of(uint32_t n, wide_t sign) {
  wide_t* roots = kit_zeroes(n, sizeof(wide_t));
  for (uint32_t k = 0; k < n / 2; k++) {
    roots[2 * (size_t)k] = cosl(kTurn * k / n);
    roots[2 * (size_t)k + 1] = sign * sinl(kTurn * k / n);
  }
  return roots;
}

// Values of a type, given and made. one-thread
typedef struct numbers_t {
  bool doubles;
  uint64_t count;  // of reals: two a number
  void* x;
  void* y;
} numbers_t;

static double value(const numbers_t* v, const void* data, uint64_t at) {
  return v->doubles ? ((const double*)data)[at]
                    : (double)((const float*)data)[at];
}

static void set(numbers_t* v, uint64_t at, double to) {
  if (v->doubles) {
    ((double*)v->x)[at] = to;
  } else {
    ((float*)v->x)[at] = (float)to;
  }
}

static numbers_t numbers_of(uint64_t count, bool doubles) {
  uint32_t bytes = doubles ? 8 : 4;
  numbers_t v = {doubles, count, kit_zeroes(count, bytes),
                 kit_zeroes(count, bytes)};
  uint64_t seed = count;
  for (uint64_t i = 0; i < count; i++) {
    set(&v, i, (double)(int64_t)kit_next(&seed) * 0x1p-60);
  }
  return v;
}

static void free_numbers(numbers_t* v) {
  free(v->x);
  free(v->y);
}

static kiln_library_plan_t* plan_of(dispatch_kit_t* kit, uint32_t size,
                                    uint64_t count, bool doubles) {
  kiln_library_options_t options = kiln_library_options_default();
  options.type = doubles ? KILN_PROGRAM_TYPE_F64 : 0;
  options.segment = size;
  options.count = count > 0 ? count : 1;
  return kit_plan(kit, "fft", &options);
}

static void transform(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                      numbers_t* v, bool inverse) {
  uint64_t bytes = v->count * (v->doubles ? 8 : 4);
  const kit_argument_t arguments[] = {{v->x, NULL, bytes}, {NULL, v->y, bytes}};
  const kiln_binding_t scalar = kiln_bind_u32(inverse);
  kit_run(kit, plan, arguments, 2, &scalar, 1);
}

// Each number beside what it should be: no further away than 2 log2(n) units
// in the last place of what the root of a mean square of its row is. What is
// left behind the last row stays as it was.
static double check(const numbers_t* v, uint32_t size, bool inverse) {
  uint64_t row = 2 * (uint64_t)size;
  wide_t* x = kit_zeroes(row, sizeof(wide_t));
  wide_t* want = kit_zeroes(row, sizeof(wide_t));
  wide_t* roots = roots_of(size, inverse ? 1 : -1);
  wide_t unit = v->doubles ? 0x1p-53L : 0x1p-24L, worst = 0;
  uint32_t log = 0;
  while (1u << log < size) log++;
  for (uint64_t first = 0; first + row <= v->count; first += row) {
    for (uint64_t i = 0; i < row; i++) x[i] = value(v, v->x, first + i);
    if (size < 100) {
      slow(x, want, size, inverse ? 1 : -1);
    } else {
      quick(x, want, size, 1, roots);
    }
    wide_t square = 0;
    for (uint64_t i = 0; i < row; i++) {
      if (inverse) want[i] /= size;
      square += want[i] * want[i] / (wide_t)size;
    }
    wide_t rms = sqrtl(square), most = 2 * unit * log * rms;
    for (uint64_t i = 0; i < row; i++) {
      wide_t away = fabsl((wide_t)value(v, v->y, first + i) - want[i]);
      if (away > worst * unit * rms) worst = away / (unit * rms);
      if (away <= most) continue;
      fail_msg("%s of %u: number %llu is %.17g, should be %.17g",
               inverse ? "inverse" : "transform", size,
               (unsigned long long)(first + i), value(v, v->y, first + i),
               (double)want[i]);
    }
  }
  uint32_t bytes = v->doubles ? 8 : 4;
  const uint8_t* left = v->y;
  for (uint64_t i = v->count / row * row * bytes; i < v->count * bytes; i++) {
    assert_int_equal(left[i], 0xa5);
  }
  free(x);
  free(want);
  free(roots);
  return (double)worst;
}

static void both_ways(dispatch_kit_t* kit, uint32_t size, uint64_t count,
                      bool doubles) {
  numbers_t v = numbers_of(count, doubles);
  kiln_library_plan_t* plan = plan_of(kit, size, count, doubles);
  transform(kit, plan, &v, false);
  double worst = check(&v, size, false);
  transform(kit, plan, &v, true);
  double back = check(&v, size, true);
  if (getenv("KILN_TEST_TELL") != NULL) {
    printf("%s of %u: %.2f, inverse %.2f units\n", doubles ? "f64" : "f32",
           size, worst, back);
  }
  kiln_library_plan_release(plan);
  free_numbers(&v);
}

// Rows of every size that is one launch, a few more that are two, and one
// number that belongs to no row.
static void test_sizes(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t log = 0; log <= 16; log++) {
    uint32_t size = 1u << log, rows = log < 6 ? 300 : log < 12 ? 5 : 2;
    both_ways(&kit, size, 2 * (uint64_t)size * rows + 1, false);
    if (log % 2 == 0 || log == 11) {
      both_ways(&kit, size, 2 * (uint64_t)size * rows + 1, true);
    }
  }
  // Columns of every length, and so of every number side by side.
  for (uint32_t log = 17; log <= (KIT_LESS > 1 ? 17 : 21); log++) {
    both_ways(&kit, 1u << log, UINT64_C(2) << log, log % 2 == 0 && log < 20);
  }
  if (KIT_LESS == 1) both_ways(&kit, 1u << 19, UINT64_C(2) << 19, true);
  dispatch_kit_close(&kit);
}

// The longest rows, of which there is none here: their launches fit what they
// are bound to, and write nothing.
static void test_longest(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t log = 20; log <= 24; log++) {
    bool doubles = log < 23;
    numbers_t v = numbers_of(1000, doubles);
    kiln_library_plan_t* plan = plan_of(&kit, 1u << log, v.count, doubles);
    transform(&kit, plan, &v, false);
    const uint8_t* left = v.y;
    for (uint64_t i = 0; i < v.count * 4; i++) {
      assert_int_equal(left[i], 0xa5);
    }
    kiln_library_plan_release(plan);
    free_numbers(&v);
  }
  dispatch_kit_close(&kit);
}

// Any number of reals, of which only whole rows are transformed.
static void test_counts(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t s = 0; s < SIZES; s++) {
    both_ways(&kit, 1, kSizes[s], false);
    both_ways(&kit, 32, kSizes[s], s % 2 == 0);
    both_ways(&kit, 512, kSizes[s], s % 2 != 0);
  }
  both_ways(&kit, 8192, kSizes[SIZES - 1], false);
  dispatch_kit_close(&kit);
}

// What is no number stays in its row; of what is tiny nothing is lost.
static void test_awkward(void** state) {
  (void)state;
  enum { SIZE = 64, ROW = 2 * SIZE, ROWS = 6 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  numbers_t v = numbers_of(ROW * ROWS, false);
  float* x = v.x;
  const float* y = v.y;
  x[ROW + 7] = NAN;
  x[2 * ROW + 30] = INFINITY;
  for (int i = 0; i < ROW; i++) x[3 * ROW + i] = -0.0f;
  // Sums and differences of subnormals are exact.
  for (int i = 0; i < ROW; i++) x[4 * ROW + i] = 0;
  x[4 * ROW] = 0x1p-149f;
  x[4 * ROW + SIZE] = -0x1p-140f;
  for (int i = 0; i < ROW; i++) x[5 * ROW + i] = i % 2 == 0 ? 0x1p120f : 0;
  kiln_library_plan_t* plan = plan_of(&kit, SIZE, v.count, false);
  transform(&kit, plan, &v, false);
  numbers_t first = {false, ROW, v.x, v.y};
  check(&first, SIZE, false);
  for (int i = 0; i < ROW; i++) {
    assert_true(isnan(y[ROW + i]));
    assert_false(isfinite(y[2 * ROW + i]));
    assert_true(y[3 * ROW + i] == 0);
    float odd = i / 2 % 2 == 0 ? -0x1p-140f : 0x1p-140f;
    assert_true(y[4 * ROW + i] == (i % 2 == 0 ? 0x1p-149f + odd : 0));
    assert_true(y[5 * ROW + i] == (i == 0 ? 0x1p126f : 0));
  }
  kiln_library_plan_release(plan);
  free_numbers(&v);
  dispatch_kit_close(&kit);
}

// Twice in a row: what the plan has between two launches is nothing to the
// next run. And sizes that there are none of.
static void test_plans(void** state) {
  (void)state;
  enum { SIZE = 16384 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  numbers_t v = numbers_of(2 * SIZE * 2, false);
  kiln_library_plan_t* plan = plan_of(&kit, SIZE, v.count, false);
  kiln_library_plan_info_t info;
  kiln_library_plan_info(plan, &info);
  assert_int_equal(info.launches, 2);
  assert_int_equal(info.parameter_count, 3);
  transform(&kit, plan, &v, false);
  float* again = kit_zeroes(v.count, 4);
  memcpy(again, v.y, (size_t)v.count * 4);
  numbers_t less = numbers_of(2 * SIZE, false);
  transform(&kit, plan, &less, true);
  transform(&kit, plan, &v, false);
  assert_memory_equal(again, v.y, (size_t)v.count * 4);
  free(again);
  free_numbers(&less);
  free_numbers(&v);
  kiln_library_plan_release(plan);
  static const struct {
    uint32_t type;
    uint64_t segment;
    kiln_status_code_t code;
    const char* words;
  } kRefused[] = {
      {0, 33, KILN_STATUS_INVALID_ARGUMENT, "power of two"},
      {0, UINT64_C(1) << 25, KILN_STATUS_INVALID_ARGUMENT, "2^24"},
      {KILN_PROGRAM_TYPE_F64, 1 << 23, KILN_STATUS_INVALID_ARGUMENT, "2^22"},
      {KILN_PROGRAM_TYPE_F16, 32, KILN_STATUS_UNSUPPORTED, "f32 and f64"},
  };
  for (uint32_t i = 0; i < sizeof(kRefused) / sizeof(kRefused[0]); i++) {
    kiln_library_options_t options = kiln_library_options_default();
    options.type = kRefused[i].type;
    options.segment = kRefused[i].segment;
    options.count = 100;
    kiln_status_t status =
        kiln_library_plan_create(kit.dispatcher, "fft", &options, &plan);
    assert_null(plan);
    assert_says(status, kRefused[i].code, kRefused[i].words);
  }
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes),  cmocka_unit_test(test_longest),
      cmocka_unit_test(test_counts), cmocka_unit_test(test_awkward),
      cmocka_unit_test(test_plans),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
