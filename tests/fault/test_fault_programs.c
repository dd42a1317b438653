// SPDX-License-Identifier: Apache-2.0
//
// fault: every public function of programs, with each allocation on its path
// failing in turn, once and from then on. The cases are in program_cases.inc;
// a function of the headers that has none fails the test.
//
// At most RUNS_MAX points a case are tried, spread evenly, unless the
// environment sets KILN_FAULT_ALL=1.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fault_alloc.h"
#include "fault_cases.h"
#include "kiln/program.h"
#include "kiln/program_builder.h"
#include "kiln/program_code.h"
#include "program_generate.h"

enum {
  NO_CALLS = 1,  // nothing on its path can fail
  REFUSED = 2,   // it fails also where nothing does
  AGAIN = 4,     // what failed once works the next time
};
enum { MANY = 40 };
#if defined(KILNI_SANITIZED)
enum { POINTS_MAX = 12 };
#else
enum { POINTS_MAX = 48 };
#endif

// What the cases use and make. one-thread
typedef struct scene_t {
  fault_alloc_t watch;
  kiln_allocator_t allocator;
  kiln_program_parse_options_t parse;
  kiln_program_lower_options_t lower;
  kiln_program_t* program;
  kiln_program_t* other;
  kiln_program_report_t* report;
  kiln_program_code_t* code;
  char generated[PROGRAM_TEXT_BYTES];
  char text[PROGRAM_TEXT_BYTES];
  uint8_t canonical[PROGRAM_TEXT_BYTES];
  size_t canonical_size;
  // What is in the builder.
  kiln_program_builder_t* builder;
  uint32_t x;
  uint32_t h;
  uint32_t tile;
  uint32_t f;
  kiln_expr_t i;
  kiln_expr_t v;
  // What a case makes.
  kiln_program_t* new_program;
  kiln_program_report_t* new_report;
  kiln_program_code_t* new_code;
} scene_t;

// Statements of each kind; numbers of each form.
static const char kEverything[] =
    "const TILE = 16u32;\n"
    "type T = f32;\n"
    "fn square(x: f32) -> f32 { return x * x; }\n"
    "fn sum(v: in f32[], n: u32) -> f32 {\n"
    "  private acc: f32[4]; var s = 0.0;\n"
    "  for k in 0..n { s += v[k]; acc[k & 3] = s; }\n"
    "  return s + acc[1];\n"
    "}\n"
    "program everything(a: f32, x: in T[], y: inout f32[length(x)], n: u32,\n"
    "    h: inout u32[n * 2], c: uniform f16[8], r: resident i64[])\n"
    "  work (length(x), (n + 1) / 2) block (TILE, 16)\n"
    "{\n"
    "  shared tile: f32[TILE * TILE];\n"
    "  private acc: u8[8];\n"
    "  private d: f32[4]; private m: f16[8]; private v: f16[4];\n"
    "  let i = global_id.x;\n"
    "  var s = 0.5; var t: f16 = 1.5; var big: i64 = -9223372036854775808;\n"
    "  y[i] = fma(a, x[i], y[i]);\n"
    "  acc[lane] <<= 3;\n"
    "  if i < n { s = -s; } else if i == n { s = s + 1.0; } else { s *= 2; }\n"
    "  for k in 0..n step 2 unroll { if k > 7 { break; } continue; }\n"
    "  while s < inf_f32 && !is_nan(s) { s = s * 2.0 + 1; }\n"
    "  barrier; grid_barrier; subgroup_barrier;\n"
    "  matrix_multiply_accumulate(d, m, v);\n"
    "  async_copy(tile, 0, x, block_id.x * 256, 256) tag 1; async_wait 1;\n"
    "  let old = atomic_add(y[i], 1.0);\n"
    "  atomic_store(h[i], 7, release, system);\n"
    "  let was = atomic_compare_exchange(h[i], 0, 5u32, device);\n"
    "  let votes = ballot(i < n);\n"
    "  let total = scan_add(was);\n"
    "  t = t + f16(sum(x, n)) * 0x1.8p-1 - c[0];\n"
    "  r[i] = select(i % 2 == 0, big, bitcast_i64(2.5f64)) >> 3u8;\n"
    "  h[i] = min(popcount(big), h[0]) | ~i ^ i << 2 & 15 + total + votes;\n"
    "  y[i] = square(sin(a)) - pow(s, old + f32(t)) + tile[lane];\n"
    "  if i > n { trap(3, 0x1f); }\n"
    "}\n";

static const char kDefined[] =
    "const TILE = 16u32;\ntype T = f32;\n"
    "program p(x: inout T[]) work TILE block TILE { x[0] = x[1]; }\n";

// Breaks rules of many kinds.
static const char kRounds[] =
    "program settle(x: inout u32[], changed: inout u32[1])\n"
    "  work length(x)\n"
    "{\n"
    "  let i = global_id.x;\n"
    "  if x[i] == 7 { trap(1, 2u64); }\n"
    "  if x[i] > 0 { x[i] -= 1; changed[0] = 1; }\n"
    "}\n";

static const char kWrong[] =
    "fn f(x: u32) -> u32 { return f(x); }\n"
    "program p(x: in f32[], x: u32, y: out f32[]) work length(z) block 5000 {\n"
    "  let i = 1u32; i = 2u32; x[0] = 1.0; y[0] = 1u32; let b = y[true];\n"
    "  if 3 { barrier; } if global_id.x < 3 { barrier; } break;\n"
    "  let u = q(1); for k in 0..1.5 { } return 4;\n"
    "}\n";

#define MUST(call) assert_null(call)
#define MADE(object) \
  assert_int_equal(s->object == NULL, !kiln_status_is_ok(status));

static kiln_string_view_t text_of(const char* text) {
  const kiln_string_view_t view = {text, strlen(text)};
  return view;
}

// A builder with something of each kind in it.
static void open_builder(scene_t* s) {
  kiln_program_builder_t* b = NULL;
  MUST(kiln_program_builder_create("b", &s->allocator, &b));
  s->builder = b;
  s->x = kiln_program_builder_buffer(b, "x", KILN_PROGRAM_ROLE_INOUT,
                                     KILN_PROGRAM_TYPE_F32);
  s->h = kiln_program_builder_buffer(b, "h", KILN_PROGRAM_ROLE_INOUT,
                                     KILN_PROGRAM_TYPE_U32);
  s->tile = kiln_program_builder_array(b, "tile", KILN_PROGRAM_ROLE_SHARED,
                                       KILN_PROGRAM_TYPE_U32, 64);
  s->f = kiln_program_builder_begin_function(b, "f", KILN_PROGRAM_TYPE_U32);
  const kiln_expr_t x =
      kiln_program_builder_scalar(b, "x", KILN_PROGRAM_TYPE_U32);
  kiln_program_builder_return(b, x);
  kiln_program_builder_end_function(b);
  s->i = kiln_program_builder_let(
      b, "i", kiln_program_builder_id(b, KILN_PROGRAM_ID_GLOBAL_ID, 0));
  s->v = kiln_program_builder_var(b, "v", s->i);
}

static kiln_status_t finish(scene_t* s) {
  kiln_status_t status =
      kiln_program_builder_finish(s->builder, &s->new_report, &s->new_program);
  MADE(new_program)
  return status;
}

#define LET(value) (void)kiln_program_builder_let(b, name, (value));

#define CASE FAULT_CASE_CALL
#define BUILD(function, ...)                          \
  static kiln_status_t build_##function(scene_t* s) { \
    kiln_program_builder_t* b = s->builder;           \
    for (uint32_t k = 0; k < (uint32_t)MANY; k++) {   \
      char name[32];                                  \
      snprintf(name, sizeof(name), "name_%u", k);     \
      __VA_ARGS__                                     \
    }                                                 \
    return finish(s);                                 \
  }
#include "program_cases.inc"
#undef CASE
#undef BUILD

static const case_t kCases[] = {
#define FAULT_PREFIX "kiln_program_"
#define CASE         FAULT_CASE_ROW
#define BUILD(function, ...)                                   \
  {"kiln_program_builder_" #function, "many", 0, open_builder, \
   build_##function},
#include "program_cases.inc"
#undef CASE
#undef BUILD
};
enum { CASES = sizeof(kCases) / sizeof(kCases[0]) };

// ---- A scene ----

static void open_scene(scene_t* s) {
  memset(s, 0, sizeof(*s));
  fault_alloc_init(&s->watch);
  s->allocator = fault_alloc_allocator(&s->watch);
  s->parse = kiln_program_parse_options_default();
  s->parse.allocator = &s->allocator;
  s->lower = kiln_program_lower_options_default();
  s->lower.allocator = &s->allocator;
  program_generate(3, PROGRAM_WITH_MATH, "g", s->generated);
  MUST(kiln_program_parse(text_of(kEverything), &s->parse, NULL, &s->program));
  MUST(kiln_program_parse(text_of(s->generated), &s->parse, NULL, &s->other));
  kiln_status_free(kiln_program_parse(text_of(kWrong), &s->parse, &s->report,
                                      &s->new_program));
  MUST(kiln_program_canonical(s->program, sizeof(s->canonical), s->canonical,
                              &s->canonical_size));
  MUST(kiln_program_lower(s->program, &s->lower, &s->code));
}

static void drop_new(scene_t* s) {
  kiln_program_code_release(s->new_code);
  kiln_program_report_release(s->new_report);
  kiln_program_release(s->new_program);
  kiln_program_builder_release(s->builder);
  s->new_code = NULL;
  s->new_report = NULL;
  s->new_program = NULL;
  s->builder = NULL;
}

static const char* close_scene(scene_t* s) {
  static char wrong[512];
  drop_new(s);
  kiln_program_code_release(s->code);
  kiln_program_report_release(s->report);
  kiln_program_release(s->other);
  kiln_program_release(s->program);
  const char* problem = fault_alloc_problem(&s->watch);
  if (problem != NULL) snprintf(wrong, sizeof(wrong), "%s", problem);
  fault_alloc_deinit(&s->watch);
  return problem != NULL ? wrong : NULL;
}

// ---- A run ----

// NULL, or what is wrong.
static const char* judge(scene_t* s, const case_t* c, bool hit,
                         kiln_status_t status) {
  const bool ok = kiln_status_is_ok(status);
  const bool memory =
      !ok && kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY;
  kiln_status_free(status);
  if (hit && ok) return "something failed, and it says OK";
  if (hit && !memory) return "memory failed, and it says something else";
  if (hit && (s->new_report != NULL || s->new_program != NULL)) {
    return "it gave something though it failed";
  }
  if (!hit && memory) return "nothing failed, and it says memory did";
  if (!hit && ok != ((c->flags & REFUSED) == 0)) {
    return "its answer is not the case's";
  }
  if (!hit || (c->flags & AGAIN) == 0) return NULL;
  drop_new(s);
  status = c->call(s);
  const bool works = kiln_status_is_ok(status);
  kiln_status_free(status);
  return works ? NULL : "it does not work any more";
}

static const char* run(scene_t* s, const case_t* c, uint64_t nth, bool from_on,
                       uint64_t* out_met) {
  if (c->prepare != NULL) c->prepare(s);
  fault_alloc_arm(&s->watch, nth, from_on);
  kiln_status_t status = c->call(s);
  *out_met = fault_alloc_disarm(&s->watch);
  const char* wrong = judge(s, c, nth != 0 && *out_met >= nth, status);
  drop_new(s);
  return wrong;
}

static void tell(const case_t* c, uint64_t nth, bool from_on,
                 const char* wrong) {
  print_message("%s (%s), allocation %llu%s: %s\n", c->function, c->variant,
                (unsigned long long)nth, from_on ? " and on" : "", wrong);
}

static void sweep_case(const case_t* c, fault_sums_t* sums) {
  static scene_t scene;
  uint64_t points = 0, met = 0;
  open_scene(&scene);
  const char* wrong = run(&scene, c, 0, false, &points);
  if (wrong == NULL && ((c->flags & NO_CALLS) != 0) != (points == 0)) {
    wrong = "its flag says otherwise of its allocations";
  }
  if (wrong != NULL) tell(c, 0, false, wrong);
  const uint64_t most =
      getenv("KILN_FAULT_ALL") != NULL ? points : (uint64_t)POINTS_MAX;
  const uint64_t tried = points < most ? points : most;
  for (uint64_t k = 0; k < tried && wrong == NULL; k++) {
    const uint64_t nth = tried == 1 ? 1 : 1 + k * (points - 1) / (tried - 1);
    for (int on = 0; on < 2 && wrong == NULL; on++) {
      wrong = run(&scene, c, nth, on != 0, &met);
      sums->runs++;
      if (wrong != NULL) tell(c, nth, on != 0, wrong);
    }
  }
  const char* left = close_scene(&scene);
  if (left != NULL) tell(c, 0, false, left);
  sums->wrong += (wrong != NULL) + (left != NULL);
  sums->points += points;
}

static void test_allocations(void** state) {
  (void)state;
  fault_sums_t sums = {0, 0, 0};
  for (int i = 0; i < CASES; i++) sweep_case(&kCases[i], &sums);
  fault_judge(&sums, CASES, 300, "allocations");
}

// ---- Whether nothing is missing ----

static void test_every_function(void** state) {
  (void)state;
  const int programs = fault_check_header(FAULT_LIST(kCases), "program");
  const int builders =
      fault_check_header(FAULT_LIST(kCases), "program_builder");
  const int codes = fault_check_header(FAULT_LIST(kCases), "program_code");
  print_message("%d functions, %d cases\n", programs + builders + codes,
                (int)CASES);
  assert_true(programs > 15 && builders > 40 && codes > 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_function),
      cmocka_unit_test(test_allocations),
  };
  return cmocka_run_group_tests_name("fault_programs", tests, NULL, NULL);
}
