// SPDX-License-Identifier: Apache-2.0
//
// library: what a plan says of the sizes of its parameters.
#include "library_kit.h"

#include "says.h"

enum { MOST = 12 };
#define UNKNOWN KILN_PROGRAM_COUNT_UNKNOWN

// An entry with what is said of its buffers and scalars, and what it makes of
// what is not. one-thread
typedef struct asked_t {
  const char* name;
  kiln_library_options_t options;
  uint64_t given[MOST];  // of scalars: their values
  uint64_t want[MOST];   // where it is not known
} asked_t;

static void ask(dispatch_kit_t* kit, const asked_t* a) {
  kiln_library_options_t options = a->options;
  options.struct_size = sizeof(options);
  kiln_library_plan_t* plan = kit_plan(kit, a->name, &options);
  kiln_program_size_t sizes[MOST];
  kiln_library_plan_info_t info;
  kiln_pipeline_parameter_t p;
  kiln_library_plan_info(plan, &info);
  for (uint32_t i = 0; i < info.parameter_count; i++) {
    assert_true(kiln_library_plan_parameter(plan, i, &p));
    bool is_buffer = p.role != KILN_PROGRAM_ROLE_NONE;
    sizes[i].count = is_buffer ? a->given[i] : UNKNOWN;
    sizes[i].bits = is_buffer ? 0 : a->given[i];
  }
  kiln_status_t status = kiln_library_plan_sizes(plan, sizes);
  if (status != NULL) {
    fail_msg("%s: %s", a->name, kiln_status_message(status));
  }
  for (uint32_t i = 0; i < info.parameter_count; i++) {
    uint64_t want = a->given[i] == UNKNOWN ? a->want[i] : a->given[i];
    assert_true(kiln_library_plan_parameter(plan, i, &p));
    if (p.role == KILN_PROGRAM_ROLE_NONE || sizes[i].count == want) continue;
    fail_msg("%s: parameter %u has %llu elements, should have %llu", a->name, i,
             (unsigned long long)sizes[i].count, (unsigned long long)want);
  }
  kiln_library_plan_release(plan);
}

static const asked_t kAsked[] = {
    {"fold", {.count = 9}, {1000, UNKNOWN}, {0, 1}},
    {"reduce", {.count = 0}, {9000, UNKNOWN}, {0, 3}},
    {"scan", {.count = 9}, {0, UNKNOWN}, {0, 0}},
    {"scan", {.count = 9}, {33, UNKNOWN}, {0, 33}},
    {"compact", {.count = 9}, {7, 7, UNKNOWN, UNKNOWN}, {0, 0, 7, 1}},
    {"runs", {.count = 9}, {7, UNKNOWN, UNKNOWN, UNKNOWN}, {0, 7, 7, 1}},
    {"sort", {.count = 9}, {77, UNKNOWN}, {0, 77}},
    {"sort",
     {.count = 9, .value_type = KILN_PROGRAM_TYPE_F64},
     {77, 77, UNKNOWN, UNKNOWN},
     {0, 0, 77, 77}},
    {"merge_sort",
     {.count = 100000, .value_type = KILN_PROGRAM_TYPE_U8},
     {77, UNKNOWN, UNKNOWN, UNKNOWN},
     {0, 77, 77, 77}},
    {"segments", {.count = 0}, {99, 11, UNKNOWN}, {0, 0, 10}},
    {"histogram", {.bins = 4000}, {99, UNKNOWN}, {0, 4000}},
    {"lines", {.count = 9}, {99, UNKNOWN, UNKNOWN}, {0, 99, 1}},
    {"json_index", {.count = 9}, {99, UNKNOWN, UNKNOWN}, {0, 99, 2}},
    {"blake3", {.count = 9}, {99, UNKNOWN}, {0, 8}},
    {"bfs", {.count = 9}, {6, 40, 1, UNKNOWN}, {0, 0, 0, 5}},
    {"components",
     {.count = 9, .symmetric = KILN_SWITCH_ON},
     {6, 40, UNKNOWN, UNKNOWN},
     {0, 0, 5, 1}},
    {"spmv", {.count = 9}, {6, 40, UNKNOWN, 9, UNKNOWN}, {0, 0, 40, 0, 5}},
    {"fft", {.count = 9, .segment = 8192}, {20000, UNKNOWN, 0}, {0, 20000}},
    {"philox", {.count = 0}, {UNKNOWN, 55, 1, 2}, {55}},
    {"matmul", {.count = 0}, {6, UNKNOWN, UNKNOWN, 2, 5, 3}, {0, 15, 10}},
    {"softmax", {.count = 0}, {64, UNKNOWN, 8}, {0, 64}},
    {"nbody", {.count = 0}, {400, UNKNOWN, 0}, {0, 300}},
    {"mandelbrot", {.count = 0}, {UNKNOWN, 7, 5, 9}, {105}},
};

static void test_sizes(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  for (uint32_t i = 0; i < sizeof(kAsked) / sizeof(kAsked[0]); i++) {
    ask(&kit, &kAsked[i]);
  }
  dispatch_kit_close(&kit);
}

// What is refused names the parameter, and changes nothing.
static void test_refused(void** state) {
  (void)state;
  dispatch_kit_t kit;
  dispatch_kit_open(&kit);
  kiln_library_options_t options = kiln_library_options_default();
  options.count = 10;
  kiln_library_plan_t* plan = kit_plan(&kit, "compact", &options);
  kiln_program_size_t sizes[] = {{8, 0}, {UNKNOWN, 0}, {7, 0}, {UNKNOWN, 0}};
  assert_says(kiln_library_plan_sizes(plan, sizes),
              KILN_STATUS_INVALID_ARGUMENT, "\"kept\"");
  assert_true(sizes[1].count == UNKNOWN && sizes[3].count == UNKNOWN);
  sizes[0].count = UNKNOWN;
  assert_says(kiln_library_plan_sizes(plan, sizes),
              KILN_STATUS_INVALID_ARGUMENT, "\"x\"");
  kiln_status_t status = kiln_library_plan_sizes(NULL, sizes);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  status = kiln_library_plan_sizes(plan, NULL);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  kiln_library_plan_release(plan);
  dispatch_kit_close(&kit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
