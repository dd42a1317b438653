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

#include "math_points.h"
#include "program/ir/program_object.h"
#include "program/math/program_math.h"
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
    found +=
        kilni_math_fast_unary(op, f32, UINT32_MAX - 1U) != KILNI_MATH_FAST_NONE;
    found += kilni_math_fast_binary(op, f32, UINT32_MAX - 1U) !=
             KILNI_MATH_FAST_NONE;
  }
  assert_int_equal(found, CASE_COUNT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_finite_budget_has_a_case),
      cmocka_unit_test(each_keeps_to_its_budget),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
