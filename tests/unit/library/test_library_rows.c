// SPDX-License-Identifier: Apache-2.0
//
// library: what is done to each row, beside doubles; transposes of other types;
// and random words.
#include "library_kit.h"

// Rows of each width: few elements in all, and some rows.
static const uint32_t kWidths[] = {1,    2,    31,   32,   33,
                                   1000, 1023, 1024, 1025, 2048,
                                   2049, 4096, 4097, 8192, 9001};
enum { WIDTHS = sizeof(kWidths) / sizeof(kWidths[0]) };

static void near(const char* what, uint32_t width, uint64_t at, float have,
                 double want, double most) {
  if (fabs((double)have - want) <= most) return;
  fail_msg("%s of %u: element %llu is %.9g, should be %.9g", what, width,
           (unsigned long long)at, (double)have, want);
}

static void softmax(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                    uint32_t width, uint32_t rows) {
  uint64_t count = (uint64_t)width * rows, seed = width;
  float* x = kit_zeroes(count, 4);
  float* y = kit_zeroes(count, 4);
  for (uint64_t i = 0; i < count; i++) {
    x[i] = (float)(int32_t)kit_next(&seed) * 0x1p-27f;
    // One that would overflow, and one that is nothing.
    if (i % 700 == 3) x[i] = 500;
    if (i % 900 == 5 && width > 31) x[i] = -INFINITY;
  }
  const kit_argument_t arguments[] = {{x, NULL, count * 4},
                                      {NULL, y, count * 4}};
  const kiln_binding_t scalar = kiln_bind_u32(width);
  kit_run(kit, plan, arguments, 2, &scalar, 1);
  for (uint32_t r = 0; r < rows; r++) {
    const float* row = x + (uint64_t)r * width;
    double top = -INFINITY, sum = 0;
    for (uint32_t j = 0; j < width; j++) top = fmax(top, (double)row[j]);
    for (uint32_t j = 0; j < width; j++) sum += exp((double)row[j] - top);
    for (uint32_t j = 0; j < width; j++) {
      double want = exp((double)row[j] - top) / sum;
      near("softmax", width, (uint64_t)r * width + j,
           y[(uint64_t)r * width + j], want, 4e-6 * want + 1e-37);
    }
  }
  free(x);
  free(y);
}

static void test_softmax(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "softmax", NULL);
  for (uint32_t w = 0; w < WIDTHS; w++) {
    softmax(&kit, plan, kWidths[w], kWidths[w] < 100 ? 19 : 2);
  }
  softmax(&kit, plan, 1, 0);
  // A NaN spoils its row and no other.
  float x[] = {1, NAN, 2, 3, 4, 5}, y[6];
  const kit_argument_t arguments[] = {{x, NULL, sizeof(x)},
                                      {NULL, y, sizeof(y)}};
  const kiln_binding_t scalar = kiln_bind_u32(3);
  kit_run(&kit, plan, arguments, 2, &scalar, 1);
  for (int i = 0; i < 3; i++) assert_true(isnan(y[i]));
  for (int i = 3; i < 6; i++) assert_true(y[i] > 0 && y[i] < 1);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// The text's own exponential, of every STEPth number from -0 to where it is 0:
// what its page says it is wrong by.
static void test_softmax_exp(void** state) {
  (void)state;
  enum { NUMBERS = 0x42d40000, STEP = 31 * KIT_LESS };
  enum { COUNT = NUMBERS / STEP };
  const uint32_t first = 0x80000000;
  kiln_library_entry_t entry;
  assert_true(kiln_library_find("softmax", &entry));
  const char* from = strstr(entry.text.data, "fn exp_of(");
  assert_non_null(from);
  const char* end = strstr(from, "\n}\n");
  assert_non_null(end);
  char text[4096];
  snprintf(
      text, sizeof(text),
      "%.*s\n}\nprogram try(y: out f32[%u]) work %u {\n"
      "  y[global_id.x] = exp_of(bitcast_f32(%uu32 + global_id.x * %u));\n}\n",
      (int)(end - from), from, (unsigned)COUNT, (unsigned)COUNT, first,
      (unsigned)STEP);
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_pipeline_t* pipeline = dispatch_kit_pipeline(&kit, text, NULL);
  kiln_resident_t there =
      dispatch_kit_resident(&kit, COUNT * UINT64_C(4), NULL);
  const kiln_binding_t binding = kiln_bind_resident(there);
  assert_null(kiln_pipeline_dispatch(pipeline, NULL, &binding, 1, NULL, NULL));
  float* y = kit_zeroes(COUNT, 4);
  dispatch_kit_fetch(&kit, there, COUNT * UINT64_C(4), y);
  double worst = 0;
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t bits = first + i * STEP;
    float x;
    memcpy(&x, &bits, 4);
    int power = 0;
    double want = exp((double)x);
    frexp(want, &power);
    double unit = ldexp(1, power - 24 < -149 ? -149 : power - 24);
    worst = fmax(worst, fabs((double)y[i] - want) / unit);
  }
  if (worst > 0.94) fail_msg("%.4f ULP", worst);
  free(y);
  assert_null(kiln_resident_free(kit.dispatcher, there));
  kiln_pipeline_release(pipeline);
  dispatch_kit_close(&kit);
}

// f16, of which each number is a multiple of 2^-10 here: a row of equal ones,
// and one of two values.
static void test_softmax_f16(void** state) {
  (void)state;
  enum { WIDTH = 64 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_options_t options = kiln_library_options_default();
  options.type = KILN_PROGRAM_TYPE_F16;
  kiln_library_plan_t* plan = kit_plan(&kit, "softmax", &options);
  uint16_t x[2 * WIDTH] = {0}, y[2 * WIDTH];
  // -infinity in every second place of the second row.
  for (uint32_t j = 1; j < WIDTH; j += 2) x[WIDTH + j] = 0xfc00;
  const kit_argument_t arguments[] = {{x, NULL, sizeof(x)},
                                      {NULL, y, sizeof(y)}};
  const kiln_binding_t scalar = kiln_bind_u32(WIDTH);
  kit_run(&kit, plan, arguments, 2, &scalar, 1);
  for (uint32_t j = 0; j < WIDTH; j++) {
    assert_int_equal(y[j], 0x2400);  // 2^-6
    assert_int_equal(y[WIDTH + j], j % 2 == 0 ? 0x2800 : 0);
  }
  kiln_library_plan_release(plan);
  options.type = KILN_PROGRAM_TYPE_U32;
  kiln_status_t status =
      kiln_library_plan_create(kit.dispatcher, "softmax", &options, &plan);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_UNSUPPORTED);
  kiln_status_free(status);
  dispatch_kit_close(&kit);
}

// Far from 0, so that squares would lose the variance.
static void normalize(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                      uint32_t width, uint32_t rows) {
  uint64_t count = (uint64_t)width * rows, seed = width;
  float* x = kit_zeroes(count, 4);
  float* y = kit_zeroes(count, 4);
  float* scale = kit_zeroes(width, 4);
  float* shift = kit_zeroes(width, 4);
  for (uint64_t i = 0; i < count; i++) {
    x[i] = 1000 + (float)(int32_t)kit_next(&seed) * 0x1p-31f;
  }
  for (uint32_t j = 0; j < width; j++) {
    scale[j] = 1 + (float)(j % 5);
    shift[j] = (float)(j % 3);
  }
  const kit_argument_t arguments[] = {{x, NULL, count * 4},
                                      {scale, NULL, width * UINT64_C(4)},
                                      {shift, NULL, width * UINT64_C(4)},
                                      {NULL, y, count * 4}};
  const kiln_binding_t scalars[] = {kiln_bind_u32(width), kiln_bind_f32(1e-3f)};
  kit_run(kit, plan, arguments, 4, scalars, 2);
  for (uint32_t r = 0; r < rows; r++) {
    const float* row = x + (uint64_t)r * width;
    double mean = 0, variance = 0;
    for (uint32_t j = 0; j < width; j++) mean += (double)row[j] / width;
    for (uint32_t j = 0; j < width; j++) {
      double away = (double)row[j] - mean;
      variance += away * away / width;
    }
    double factor = 1 / sqrt(variance + 1e-3);
    for (uint32_t j = 0; j < width; j++) {
      double want = ((double)row[j] - mean) * factor * (double)scale[j] +
                    (double)shift[j];
      // The mean is rounded to a float near 1000.
      near("normalize", width, (uint64_t)r * width + j,
           y[(uint64_t)r * width + j], want, 6e-3);
    }
  }
  free(x);
  free(y);
  free(scale);
  free(shift);
}

static void test_normalize(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "normalize", NULL);
  for (uint32_t w = 0; w < WIDTHS; w++) {
    normalize(&kit, plan, kWidths[w], kWidths[w] < 100 ? 19 : 2);
  }
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// ---- Random words ----

static void philox(uint64_t counter, uint64_t seed, uint32_t out[4]) {
  uint32_t x[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
  uint32_t k[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  for (int r = 0; r < 10; r++) {
    uint64_t a = UINT64_C(0xd2511f53) * x[0], c = UINT64_C(0xcd9e8d57) * x[2];
    const uint32_t next[4] = {(uint32_t)(c >> 32) ^ x[1] ^ k[0], (uint32_t)c,
                              (uint32_t)(a >> 32) ^ x[3] ^ k[1], (uint32_t)a};
    memcpy(x, next, sizeof(next));
    k[0] += UINT32_C(0x9e3779b9);
    k[1] += UINT32_C(0xbb67ae85);
  }
  memcpy(out, x, sizeof(x));
}

static void test_philox(void** state) {
  (void)state;
  // The first known answer of the authors' own list.
  static const uint32_t kKnown[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
                                    0x9b00dbd8};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = kit_plan(&kit, "philox", NULL);
  for (uint32_t s = 0; s < SIZES; s++) {
    uint32_t count = kSizes[s];
    uint64_t seed = s == 1 ? 0 : UINT64_C(0x123456789abcdef0) * s;
    // Counters whose upper half changes, and one that begins again at 0.
    uint64_t start = s == 1 ? 0 : UINT64_C(0xffffffff) - s;
    if (s == 5) start = UINT64_MAX - 100;
    uint32_t* y = kit_zeroes(count, 4);
    const kit_argument_t argument = {NULL, y, count * UINT64_C(4)};
    const kiln_binding_t scalars[] = {kiln_bind_u32(count), kiln_bind_u64(seed),
                                      kiln_bind_u64(start)};
    kit_run(&kit, plan, &argument, 1, scalars, 3);
    for (uint32_t i = 0; i < count; i++) {
      uint32_t four[4];
      philox(start + i / 4, seed, four);
      assert_int_equal(y[i], four[i % 4]);
      if (s == 1) assert_int_equal(y[i], kKnown[i]);
    }
    free(y);
  }
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// ---- Types ----

static void test_types(void** state) {
  (void)state;
  static const uint32_t kTypes[] = {KILN_PROGRAM_TYPE_U8, KILN_PROGRAM_TYPE_U16,
                                    KILN_PROGRAM_TYPE_U32,
                                    KILN_PROGRAM_TYPE_U64};
  enum { W = 133, H = 70, N = W * H };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t t = 0; t < 4; t++) {
    uint32_t bytes = 1u << t;
    kiln_library_options_t options = kiln_library_options_default();
    options.type = kTypes[t];
    kiln_library_plan_t* plan = kit_plan(&kit, "transpose", &options);
    uint8_t* x = kit_zeroes(N, bytes);
    uint8_t* y = kit_zeroes(N, bytes);
    uint64_t seed = t, total = 0, sums[3] = {0};
    for (uint32_t i = 0; i < N; i++) {
      uint64_t bits = kit_next(&seed);
      memcpy(x + (size_t)i * bytes, &bits, bytes);
      total += bytes == 8 ? bits : bits & ((UINT64_C(1) << 8 * bytes) - 1);
    }
    const kit_argument_t arguments[] = {{x, NULL, (uint64_t)N * bytes},
                                        {NULL, y, (uint64_t)N * bytes}};
    const kiln_binding_t scalars[] = {kiln_bind_u32(W), kiln_bind_u32(H)};
    kit_run(&kit, plan, arguments, 2, scalars, 2);
    for (uint32_t i = 0; i < N; i++) {
      uint32_t from = i % H * W + i / H;
      assert_memory_equal(y + (size_t)i * bytes, x + (size_t)from * bytes,
                          bytes);
    }
    kiln_library_plan_release(plan);
    // Sums that wrap.
    plan = kit_plan(&kit, "reduce", &options);
    const kit_argument_t of_sums[] = {{x, NULL, (uint64_t)N * bytes},
                                      {NULL, sums, UINT64_C(3) * bytes}};
    kit_run(&kit, plan, of_sums, 2, NULL, 0);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 3; i++) {
      uint64_t one = 0;
      memcpy(&one, (uint8_t*)sums + (size_t)i * bytes, bytes);
      sum += one;
    }
    assert_memory_equal(&sum, &total, bytes);
    kiln_library_plan_release(plan);
    free(x);
    free(y);
  }
  dispatch_kit_close(&kit);
}

// ---- From anywhere to anywhere ----

static void test_moves(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_options_t options = kiln_library_options_default();
  options.type = KILN_PROGRAM_TYPE_U16;
  kiln_library_plan_t* gather = kit_plan(&kit, "gather", &options);
  kiln_library_plan_t* scatter = kit_plan(&kit, "scatter", &options);
  for (uint32_t s = 0; s < SIZES; s++) {
    uint32_t n = kSizes[s];
    uint16_t* x = kit_zeroes(n, 2);
    uint16_t* y = kit_zeroes(n, 2);
    uint16_t* z = kit_zeroes(n, 2);
    uint32_t* places = kit_zeroes(n, 4);
    uint64_t seed = n;
    for (uint32_t i = 0; i < n; i++) {
      x[i] = (uint16_t)(kit_next(&seed) | 1);
      // Each place once, but for one in nine, which is none.
      places[i] = i % 9 == 4 ? UINT32_MAX - i : n - 1 - i;
    }
    kit_argument_t arguments[] = {{x, NULL, n * UINT64_C(2)},
                                  {places, NULL, n * UINT64_C(4)},
                                  {NULL, y, n * UINT64_C(2)}};
    kit_run(&kit, gather, arguments, 3, NULL, 0);
    arguments[2] = (kit_argument_t){z, z, n * UINT64_C(2)};
    kit_run(&kit, scatter, arguments, 3, NULL, 0);
    for (uint32_t i = 0; i < n; i++) {
      assert_int_equal(y[i], i % 9 == 4 ? 0 : x[n - 1 - i]);
      assert_int_equal(z[n - 1 - i], i % 9 == 4 ? 0 : x[i]);
    }
    free(x);
    free(y);
    free(z);
    free(places);
  }
  kiln_library_plan_release(gather);
  kiln_library_plan_release(scatter);
  dispatch_kit_close(&kit);
}

// ---- Bodies ----

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_softmax),     cmocka_unit_test(test_softmax_exp),
      cmocka_unit_test(test_softmax_f16), cmocka_unit_test(test_normalize),
      cmocka_unit_test(test_philox),      cmocka_unit_test(test_types),
      cmocka_unit_test(test_moves),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
