// SPDX-License-Identifier: Apache-2.0
//
// library: sparse matrices times vectors, beside plain C.
#include "library_kit.h"

#include "csr_graph.h"
#include "says.h"

typedef struct kind_t {
  uint32_t type;
  uint32_t bytes;
  uint32_t sum_bytes;
} kind_t;

static const kind_t kKinds[] = {
    {KILN_PROGRAM_TYPE_F32, 4, 4},
    {KILN_PROGRAM_TYPE_F64, 8, 8},
    {KILN_PROGRAM_TYPE_F16, 2, 4},
    {KILN_PROGRAM_TYPE_BF16, 2, 4},
};
enum { KINDS = sizeof(kKinds) / sizeof(kKinds[0]) };

// Whole numbers up to 128, and what is infinite or none.
static uint16_t half_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  uint32_t sign = bits >> 16 & 0x8000;
  uint32_t exponent = bits >> 23 & 255;
  uint32_t top = bits >> 13 & 0x3ff;
  if (exponent == 0) return (uint16_t)sign;
  if (exponent == 255) return (uint16_t)(sign | 0x7c00 | top);
  return (uint16_t)(sign | (exponent - 112) << 10 | top);
}

static void put(const kind_t* kind, void* data, uint64_t i, double value) {
  float f = (float)value;
  uint16_t half = half_of(f);
  uint32_t bits;
  memcpy(&bits, &f, 4);
  uint16_t top = (uint16_t)(bits >> 16);
  const void* from = kind->type == KILN_PROGRAM_TYPE_F64   ? (void*)&value
                     : kind->type == KILN_PROGRAM_TYPE_F32 ? (void*)&f
                     : kind->type == KILN_PROGRAM_TYPE_F16 ? (void*)&half
                                                           : (void*)&top;
  memcpy((char*)data + i * kind->bytes, from, kind->bytes);
}

static double sum_at(const kind_t* kind, const void* data, uint64_t i) {
  float f;
  double d;
  if (kind->sum_bytes == 8) {
    memcpy(&d, (const char*)data + i * 8, 8);
    return d;
  }
  memcpy(&f, (const char*)data + i * 4, 4);
  return (double)f;
}

// A matrix, and a vector with as many elements as it has columns. Where
// `wholes` is said sums are exact; else they are as near as adding in any order
// brings them. one-thread
typedef struct matrix_t {
  csr_graph_t csr;
  uint32_t width;
  double* values;
  double* x;
  bool wholes;
} matrix_t;

static void fill(matrix_t* m, uint64_t seed) {
  m->values = kit_zeroes(m->csr.edges, sizeof(double));
  m->x = kit_zeroes(m->width, sizeof(double));
  for (uint32_t i = 0; i < m->csr.edges; i++) {
    double whole = (double)(kit_next(&seed) % 9) - 4;
    double any = (double)(float)((double)kit_next(&seed) * 0x1p-64);
    m->values[i] = m->wholes ? whole : any;
  }
  for (uint32_t i = 0; i < m->width; i++) {
    m->x[i] = (double)(kit_next(&seed) % 17) - 8;
  }
}

static void drop(matrix_t* m) {
  csr_free(&m->csr);
  free(m->values);
  free(m->x);
}

static void judge(const kind_t* kind, const matrix_t* m, const void* y,
                  const char* what) {
  for (uint32_t r = 0; r < m->csr.count; r++) {
    double want = 0, all = 0;
    for (uint32_t e = m->csr.starts[r]; e < m->csr.starts[r + 1]; e++) {
      uint32_t column = m->csr.columns[e];
      double x = column < m->width ? m->x[column] : 0;
      want += m->values[e] * x;
      all += fabs(m->values[e] * x);
    }
    double have = sum_at(kind, y, r);
    double most = m->wholes ? 0 : all * 1e-6;
    if (isnan(want) ? isnan(have) : have == want || fabs(have - want) <= most) {
      continue;
    }
    fail_msg("%s, %u rows and %u numbers of %s: row %u is %g, should be %g",
             what, m->csr.count, m->csr.edges,
             kiln_program_type_name(kind->type), r, have, want);
  }
}

static void multiply(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                     const kind_t* kind, const matrix_t* m, const char* what) {
  uint64_t rows = m->csr.count;
  void* values = kit_zeroes(m->csr.edges, kind->bytes);
  void* x = kit_zeroes(m->width, kind->bytes);
  void* y = kit_zeroes(rows, kind->sum_bytes);
  for (uint32_t i = 0; i < m->csr.edges; i++) {
    put(kind, values, i, m->values[i]);
  }
  for (uint32_t i = 0; i < m->width; i++) put(kind, x, i, m->x[i]);
  const kit_argument_t arguments[] = {
      {m->csr.starts, NULL, (rows + 1) * 4},
      {m->csr.columns, NULL, (uint64_t)m->csr.edges * 4},
      {values, NULL, (uint64_t)m->csr.edges * kind->bytes},
      {x, NULL, (uint64_t)m->width * kind->bytes},
      {NULL, y, rows * kind->sum_bytes}};
  kit_run(kit, plan, arguments, 5, NULL, 0);
  judge(kind, m, y, what);
  free(values);
  free(x);
  free(y);
}

static kiln_library_plan_t* plan_of(dispatch_kit_t* kit, const kind_t* kind,
                                    uint64_t count) {
  kiln_library_options_t options = kiln_library_options_default();
  options.type = kind->type;
  options.count = count;
  return kit_plan(kit, "spmv", &options);
}

// Matrices of graphs: rows of one number, of few, and of very different ones.
static void test_graphs(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t k = 0; k < KINDS; k++) {
    kiln_library_plan_t* plan =
        plan_of(&kit, &kKinds[k], 20 * kSizes[SIZES - 1]);
    for (uint32_t s = 0; s < SIZES * CSR_FORMS; s++) {
      // The largest size of one form for each type is enough.
      if (s / CSR_FORMS == SIZES - 1 && s % CSR_FORMS != (k + 2) % CSR_FORMS) {
        continue;
      }
      matrix_t m;
      csr_make(&m.csr, s % CSR_FORMS, kSizes[s / CSR_FORMS], s % 2 == 0);
      m.width = m.csr.count;
      m.wholes = true;
      fill(&m, s);
      multiply(&kit, plan, &kKinds[k], &m, kCsrForms[s % CSR_FORMS]);
      drop(&m);
    }
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

// `numbers` in `rows` rows: all in the last one, in the first, in the middle
// one, or as far as they go one in each, the rest without any.
static void make_odd(matrix_t* m, uint32_t rows, uint32_t numbers,
                     uint32_t form) {
  m->csr.count = rows;
  m->csr.edges = rows == 0 ? 0 : numbers;
  m->csr.starts = kit_zeroes(rows + 1, 4);
  m->csr.columns = kit_zeroes(m->csr.edges, 4);
  m->width = 300;
  m->wholes = true;
  uint32_t full = form == 0 ? rows - 1 : form == 1 ? 0 : rows / 2;
  for (uint32_t r = 0; r < rows; r++) {
    uint32_t here = form == 3 ? r + 1 : r < full ? 0 : numbers;
    m->csr.starts[r + 1] = here < m->csr.edges ? here : m->csr.edges;
  }
  if (rows != 0) m->csr.starts[rows] = m->csr.edges;
  uint64_t seed = numbers;
  for (uint32_t i = 0; i < m->csr.edges; i++) {
    m->csr.columns[i] = (uint32_t)(kit_next(&seed) % m->width);
  }
  fill(m, rows);
}

// Around the sizes of tiles: 1,792 of rows and numbers together.
static void test_odd(void** state) {
  (void)state;
  static const uint32_t kNumbers[] = {0,    1,    7,    1023, 1790, 1791,
                                      1792, 1793, 3583, 3584, 40000};
  static const uint32_t kRows[] = {0, 1, 2, 33, 1791, 1792, 5000};
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = plan_of(&kit, &kKinds[0], 50000);
  for (uint32_t i = 0; i < 11 * 7 * 4; i++) {
    matrix_t m;
    make_odd(&m, kRows[i / 11 % 7], kNumbers[i % 11], i / 77);
    multiply(&kit, plan, &kKinds[0], &m, "odd");
    drop(&m);
  }
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// Starts of any numbers: no access outside, and it comes to an end.
static void test_broken(void** state) {
  (void)state;
  enum { ROWS = 6000, NUMBERS = 9000 };
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = plan_of(&kit, &kKinds[0], ROWS + NUMBERS);
  uint32_t* starts = kit_zeroes(ROWS + 1, 4);
  uint32_t* columns = kit_zeroes(NUMBERS, 4);
  float* values = kit_zeroes(NUMBERS, 4);
  float* y = kit_zeroes(ROWS, 4);
  uint64_t seed = 21;
  for (uint32_t round = 0; round < 20; round++) {
    for (uint32_t i = 0; i <= ROWS; i++) {
      uint64_t bits = kit_next(&seed);
      starts[i] =
          (uint32_t)(bits % (round + 2) == 0 ? bits >> 32 : bits % NUMBERS);
    }
    for (uint32_t i = 0; i < NUMBERS; i++) {
      columns[i] = (uint32_t)kit_next(&seed);
    }
    const kit_argument_t arguments[] = {{starts, NULL, (ROWS + 1) * 4},
                                        {columns, NULL, NUMBERS * 4},
                                        {values, NULL, NUMBERS * 4},
                                        {values, NULL, 400},
                                        {NULL, y, ROWS * 4}};
    kit_run(&kit, plan, arguments, 5, NULL, 0);
  }
  free(starts);
  free(columns);
  free(values);
  free(y);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

// Sums that are rounded are near, and have the same bits whatever the order in
// which the device does its work.
static void test_rounded(void** state) {
  (void)state;
  enum { ROWS = 3000 };
  float first[ROWS], again[ROWS];
  for (uint32_t k = 0; k < 3; k++) {
    dispatch_kit_t kit;
    dispatch_kit_open_by(&kit, NULL, NULL, k * 11);
    kiln_library_plan_t* plan = plan_of(&kit, &kKinds[0], 100000);
    matrix_t m;
    csr_make(&m.csr, CSR_RMAT, ROWS, true);
    m.width = ROWS;
    m.wholes = false;
    fill(&m, 5);
    float* values = kit_zeroes(m.csr.edges, 4);
    float* x = kit_zeroes(ROWS, 4);
    for (uint32_t i = 0; i < m.csr.edges; i++) values[i] = (float)m.values[i];
    for (uint32_t i = 0; i < ROWS; i++) x[i] = (float)m.x[i];
    const kit_argument_t arguments[] = {
        {m.csr.starts, NULL, (ROWS + 1) * 4},
        {m.csr.columns, NULL, m.csr.edges * UINT64_C(4)},
        {values, NULL, m.csr.edges * UINT64_C(4)},
        {x, NULL, ROWS * 4},
        {NULL, k == 0 ? first : again, ROWS * 4}};
    kit_run(&kit, plan, arguments, 5, NULL, 0);
    judge(&kKinds[0], &m, k == 0 ? first : again, "rounded");
    if (k > 0) assert_memory_equal(first, again, sizeof(first));
    free(values);
    free(x);
    drop(&m);
    kiln_library_plan_release(plan);
    dispatch_kit_close(&kit);
  }
}

// The least numbers that a type has, or, of f16, that are not below its normal
// ones: their sums are exact.
static void multiply_least(dispatch_kit_t* kit, kiln_library_plan_t* plan,
                           uint32_t kind) {
  static const double kLeast[KINDS] = {0x1p-149, 0x1p-1074, 0x1p-14, 0x1p-133};
  matrix_t m;
  csr_make(&m.csr, CSR_GRID, 4000, true);
  m.width = 4000;
  m.wholes = true;
  fill(&m, 10);
  for (uint32_t e = 0; e < m.csr.edges; e++) m.values[e] *= kLeast[kind];
  multiply(kit, plan, &kKinds[kind], &m, "least");
  drop(&m);
}

// What is infinite or no number stays in its rows; a column beyond x is a 0.
static void test_awkward(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t k = 0; k < KINDS; k++) {
    kiln_library_plan_t* plan = plan_of(&kit, &kKinds[k], 100000);
    matrix_t m;
    csr_make(&m.csr, CSR_RMAT, 4000, false);
    m.width = 4000;
    m.wholes = true;
    fill(&m, 9);
    for (uint32_t e = 0; e < m.csr.edges; e += 611) {
      m.values[e] = e % 3 == 0 ? NAN : e % 2 == 0 ? INFINITY : -0.0;
    }
    for (uint32_t e = 5; e < m.csr.edges; e += 1013) {
      m.csr.columns[e] = UINT32_MAX - e;
    }
    multiply(&kit, plan, &kKinds[k], &m, "awkward");
    drop(&m);
    multiply_least(&kit, plan, k);
    kiln_library_plan_release(plan);
  }
  dispatch_kit_close(&kit);
}

static void test_refused(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_plan_t* plan = NULL;
  kiln_library_options_t options = kiln_library_options_default();
  options.count = 100;
  options.type = KILN_PROGRAM_TYPE_I32;
  kiln_status_t status =
      kiln_library_plan_create(kit.dispatcher, "spmv", &options, &plan);
  assert_says(status, KILN_STATUS_UNSUPPORTED, "bf16");
  // More numbers than it was planned for.
  plan = plan_of(&kit, &kKinds[0], 100);
  kiln_resident_t memory = dispatch_kit_resident(&kit, 40000, NULL);
  kiln_binding_t whole = kiln_bind_resident(memory);
  kiln_binding_t bindings[] = {kiln_bind_resident_range(memory, 0, 8), whole,
                               whole, whole, whole};
  status = kiln_library_plan_run(plan, NULL, bindings, 5);
  assert_says(status, KILN_STATUS_INVALID_ARGUMENT, "at most 100");
  assert_null(kiln_resident_free(kit.dispatcher, memory));
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_graphs),  cmocka_unit_test(test_odd),
      cmocka_unit_test(test_broken),  cmocka_unit_test(test_rounded),
      cmocka_unit_test(test_awkward), cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
