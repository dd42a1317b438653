// SPDX-License-Identifier: Apache-2.0
//
// program: fast math keeps to its budget: what is lowered under `max_ulp` is
// run on the software device, whose approximations are a GPU's to the bit.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// After the above, which it needs.
#include <cmocka.h>

#include "evaluator_values.h"
#include "math_points.h"
#include "program/ir/program_object.h"
#include "program/math/program_math.h"
#include "program_generate.h"
#include "program_kit.h"
#include "program_machine.h"

// A sanitizer makes each run many times slower.
#if defined(KILNI_SANITIZED)
enum { COUNT = 2000 };
#else
enum { COUNT = 20000 };
#endif

static long double by_reciprocal(long double x, long double y) {
  (void)y;
  return 1.0L / x;
}
static long double by_inverse(long double x, long double y) {
  (void)y;
  return 1.0L / sqrtl(x);
}
static long double by_sqrt(long double x, long double y) {
  (void)y;
  return sqrtl(x);
}
static long double by_exp2(long double x, long double y) {
  (void)y;
  return exp2l(x);
}
static long double by_exp(long double x, long double y) {
  (void)y;
  return expl(x);
}
static long double by_tanh(long double x, long double y) {
  (void)y;
  return tanhl(x);
}
static long double by_division(long double x, long double y) {
  return x / y;
}

// An operator with a bound in ULP, the least budget that buys it, and how it
// is written.
static const struct {
  const char* text;
  const char* instruction;
  uint32_t ulp;
  long double (*exact)(long double x, long double y);
} CASES[] = {
    {"reciprocal(x[i])", "rcp.approx.f32", 1, by_reciprocal},
    {"inverse_sqrt(x[i])", "rsqrt.approx.f32", 3, by_inverse},
    {"sqrt(x[i])", "sqrt.approx.f32", 2, by_sqrt},
    {"exp2(x[i])", "ex2.approx.f32", 3, by_exp2},
    {"exp(x[i])", "ex2.approx.f32", 67, by_exp},
    {"tanh(x[i])", "tanh.approx.f32", 8192, by_tanh},
    {"x[i] / y[i]", "div.full.f32", 2, by_division},
};

enum { CASE_COUNT = sizeof CASES / sizeof *CASES };

static kiln_program_t* program_of(uint32_t at) {
  char text[256];
  snprintf(text, sizeof text,
           "program p(x: in f32[], y: in f32[], o: out f32[length(x)])\n"
           "  work length(x) { let i = global_id.x; o[i] = %s; }\n",
           CASES[at].text);
  return kit_parse(text);
}

static float xs[COUNT], ys[COUNT], outs[COUNT];

static void fill(void) {
  uint64_t seed = 9;
  for (uint32_t i = 0; i < (uint32_t)COUNT; i++) {
    uint32_t x = (uint32_t)math_sample(KILN_PROGRAM_TYPE_F32, &seed);
    uint32_t y = (uint32_t)math_sample(KILN_PROGRAM_TYPE_F32, &seed);
    // A quarter with quotients near one.
    if (i % 4U == 0U) y = x ^ (y & 0xfffffU);
    memcpy(&xs[i], &x, sizeof x);
    memcpy(&ys[i], &y, sizeof y);
  }
}

static bool buys(const kiln_program_t* program, uint32_t at, uint32_t ulp) {
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  kiln_program_code_t* code = NULL;
  options.max_ulp = ulp;
  assert_true(kiln_status_is_ok(kiln_program_lower(program, &options, &code)));
  const bool is =
      machine_count(kiln_program_code_text(code).data, CASES[at].instruction);
  kiln_program_code_release(code);
  return is;
}

static void each_keeps_to_its_budget(void** state) {
  (void)state;
  fill();
  for (uint32_t at = 0; at < (uint32_t)CASE_COUNT; at++) {
    kiln_program_t* program = program_of(at);
    assert_false(buys(program, at, CASES[at].ulp - 1U));
    assert_true(buys(program, at, CASES[at].ulp));
    kiln_program_lower_options_t options = kiln_program_lower_options_default();
    options.sm = 75;
    options.max_ulp = CASES[at].ulp;
    program_world_t world = {.step_limit = 0};
    void* const data[] = {xs, ys, outs};
    for (uint32_t b = 0; b < 3U; b++) {
      world.buffers[b + 1U].data = data[b];
      world.buffers[b + 1U].count = COUNT;
    }
    world.work[0] = COUNT;
    world.work[1] = world.work[2] = 1;
    world.block[0] = 256;
    world.block[1] = world.block[2] = 1;
    machine_run(kilni_program_ir(program), &options, &world);
    double worst = 0.0;
    for (uint32_t i = 0; i < (uint32_t)COUNT; i++) {
      const double error = math_distance(CASES[at].exact(xs[i], ys[i]),
                                         KILN_PROGRAM_TYPE_F32, outs[i]);
      if (error > worst) worst = error;
      if (error > (double)CASES[at].ulp) {
        fail_msg("%s of %a, %a: %a is %g ULP off", CASES[at].text,
                 (double)xs[i], (double)ys[i], (double)outs[i], error);
      }
    }
    print_message("%s: %.3f of %u ULP\n", CASES[at].instruction, worst,
                  CASES[at].ulp);
    assert_true(worst > 0.4);
    kiln_program_release(program);
  }
}

// A case for each approximation that a finite budget buys.
static void each_finite_budget_has_a_case(void** state) {
  (void)state;
  uint32_t found = 0;
  for (uint32_t op = 0; op < 256U; op++) {
    const uint8_t f32 = KILN_PROGRAM_TYPE_F32;
    found += kilni_program_math_fast_unary(op, f32, UINT32_MAX - 1U) !=
             KILNI_MATH_FAST_NONE;
    found += kilni_program_math_fast_binary(op, f32, UINT32_MAX - 1U) !=
             KILNI_MATH_FAST_NONE;
  }
  assert_int_equal(found, CASE_COUNT);
}

// ---- Matrices ----

enum { TILES = 64, A_COUNT = 256, B_COUNT = 128, MATRIX_ULP = 32 };

static kiln_program_t* products_of(const char* type) {
  char text[1024];
  snprintf(text, sizeof text,
           "program p(x: in %s[], y: in %s[], o: out f32[])\n"
           "  work %d block 64\n"
           "{\n"
           "  private d: f32[4]; private a: %s[8]; private b: %s[4];\n"
           "  let tile = global_id.x / 32;\n"
           "  let g = lane / 4;\n"
           "  let t = lane %% 4 * 2;\n"
           "  for e in 0..8 unroll {\n"
           "    a[e] = x[tile * 256 + (g + e / 2 %% 2 * 8) * 16 + t + e %% 2\n"
           "      + e / 4 * 8];\n"
           "  }\n"
           "  for e in 0..4 unroll {\n"
           "    b[e] = y[tile * 128 + (t + e %% 2 + e / 2 * 8) * 8 + g];\n"
           "    d[e] = o[tile * 128 + (g + e / 2 * 8) * 8 + t + e %% 2];\n"
           "  }\n"
           "  matrix_multiply_accumulate(d, a, b);\n"
           "  for e in 0..4 unroll {\n"
           "    o[tile * 128 + (g + e / 2 * 8) * 8 + t + e %% 2] = d[e];\n"
           "  }\n"
           "}\n",
           type, type, TILES * 32, type, type);
  return kit_parse(text);
}

// A number of no extreme size, as f16 or bf16 has it, and as it is.
static uint16_t small_of(uint8_t type, uint64_t* seed, double* out) {
  const uint64_t bits = program_random(seed);
  const uint32_t sign = (uint32_t)bits & 0x8000U;
  const uint32_t exponent = 4U + (uint32_t)(bits >> 20U) % 20U;
  uint32_t half = sign | exponent << 10U | (uint32_t)(bits >> 32U) % 1024U;
  if (type == KILN_PROGRAM_TYPE_BF16) {
    half = sign | (exponent + 112U) << 7U | (uint32_t)(bits >> 32U) % 128U;
  }
  const uint64_t wide = program_cast(type, KILN_PROGRAM_TYPE_F32, half);
  const uint32_t low = (uint32_t)wide;
  float value;
  memcpy(&value, &low, sizeof value);
  *out = value;
  return (uint16_t)half;
}

static uint16_t lefts[TILES * A_COUNT], rights[TILES * B_COUNT];
static double left_of[TILES * A_COUNT], right_of[TILES * B_COUNT];
static float sums[TILES * B_COUNT], firsts[TILES * B_COUNT];

static void fill_matrices(uint8_t type) {
  uint64_t seed = 5;
  for (uint32_t i = 0; i < (uint32_t)(TILES * A_COUNT); i++) {
    lefts[i] = small_of(type, &seed, &left_of[i]);
  }
  for (uint32_t i = 0; i < (uint32_t)(TILES * B_COUNT); i++) {
    rights[i] = small_of(type, &seed, &right_of[i]);
    double first;
    (void)small_of(type, &seed, &first);
    sums[i] = firsts[i] = (float)first;
  }
}

// How far a sum is from what it should be, in ULP of the sum of the absolute
// values.
static double error_of(uint32_t at) {
  const uint32_t tile = at / B_COUNT;
  const double* a = &left_of[tile * A_COUNT + at % B_COUNT / 8U * 16U];
  const double* b = &right_of[tile * B_COUNT + at % 8U];
  long double exact = firsts[at], all = fabsl(exact);
  for (uint32_t k = 0; k < 16U; k++) {
    exact += (long double)a[k] * b[(size_t)k * 8U];
    all += fabsl((long double)a[k] * b[(size_t)k * 8U]);
  }
  int exponent;
  (void)frexpl(all, &exponent);
  return (double)(fabsl(exact - sums[at]) / ldexpl(1.0L, exponent - 24));
}

static double worst_of(const kiln_program_t* program, uint8_t type,
                       uint32_t max_ulp, uint32_t without) {
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  options.sm = 80;
  options.max_ulp = max_ulp;
  options.without = without;
  fill_matrices(type);
  program_world_t world = {.step_limit = 0};
  void* const data[] = {lefts, rights, sums};
  const uint64_t counts[] = {TILES * A_COUNT, TILES * B_COUNT, TILES * B_COUNT};
  for (uint32_t b = 0; b < 3U; b++) {
    world.buffers[b + 1U].data = data[b];
    world.buffers[b + 1U].count = counts[b];
  }
  world.work[0] = TILES * 32;
  world.work[1] = world.work[2] = 1;
  world.block[0] = 64;
  world.block[1] = world.block[2] = 1;
  machine_run(kilni_program_ir(program), &options, &world);
  double worst = 0.0;
  for (uint32_t i = 0; i < (uint32_t)(TILES * B_COUNT); i++) {
    const double error = error_of(i);
    if (error > worst) worst = error;
  }
  return worst;
}

static uint32_t products_in(const kiln_program_t* program, uint32_t sm,
                            uint32_t max_ulp) {
  kiln_program_lower_options_t options = kiln_program_lower_options_default();
  kiln_program_code_t* code = NULL;
  options.sm = sm;
  options.max_ulp = max_ulp;
  assert_true(kiln_status_is_ok(kiln_program_lower(program, &options, &code)));
  const uint32_t count =
      machine_count(kiln_program_code_text(code).data, "mma.sync");
  kiln_program_code_release(code);
  return count;
}

// Strict sums have errors of their own, and an instruction's are no larger
// than what it is allowed.
static void matrices_keep_to_their_budget(void** state) {
  (void)state;
  static const char* const types[] = {"f16", "bf16"};
  for (uint32_t i = 0; i < 2U; i++) {
    const uint8_t type =
        i == 0U ? KILN_PROGRAM_TYPE_F16 : KILN_PROGRAM_TYPE_BF16;
    kiln_program_t* program = products_of(types[i]);
    assert_int_equal(products_in(program, 90, MATRIX_ULP - 1), 0);
    assert_int_equal(products_in(program, 75, UINT32_MAX), 0);
    assert_int_equal(products_in(program, 80, MATRIX_ULP), 1);
    const double strict = worst_of(program, type, 0, 0);
    const double fast = worst_of(program, type, MATRIX_ULP, 0);
    print_message("%s: %.3f strict, %.3f of %u ULP by mma\n", types[i], strict,
                  fast, MATRIX_ULP);
    assert_true(strict > 0.1 && strict <= 17.0);
    assert_true(fast > 0.1 && fast <= (double)MATRIX_ULP);
    for (uint32_t pass = 1; pass <= (uint32_t)MACHINE_LAST_PASS; pass *= 2U) {
      assert_true(worst_of(program, type, MATRIX_ULP, pass) <= MATRIX_ULP);
    }
    kiln_program_release(program);
  }
}

// mma wants all 32 lanes: not in a block whose last subgroup is a part of one.
static void parts_of_subgroups_do_without(void** state) {
  (void)state;
  char text[256];
  static const uint32_t blocks[] = {64, 48};
  for (uint32_t i = 0; i < 2U; i++) {
    snprintf(text, sizeof text,
             "program p(o: out f32[]) work length(o) block %u\n"
             "{ private d: f32[4]; private a: f16[8]; private b: f16[4];\n"
             "  matrix_multiply_accumulate(d, a, b);\n"
             "  o[global_id.x] = d[0]; }\n",
             blocks[i]);
    kiln_program_t* program = kit_parse(text);
    assert_int_equal(products_in(program, 90, MATRIX_ULP), i == 0U);
    kiln_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_finite_budget_has_a_case),
      cmocka_unit_test(each_keeps_to_its_budget),
      cmocka_unit_test(matrices_keep_to_their_budget),
      cmocka_unit_test(parts_of_subgroups_do_without),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
