// SPDX-License-Identifier: Apache-2.0
//
// fault: the path of a compilation, over NVRTC's null provider: every
// allocation and every call into NVRTC fails in turn.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "compile/compile.h"
#include "fault_run.h"

// What a run goes over, and what is to fail in it. one-thread
typedef struct path_t {
  kiln_allocator_t allocator;
  kiln_nvrtc_table_t table;
  uint32_t output;
} path_t;

// ---- The body ----

static kiln_status_t compile(const path_t* path, kiln_compiler_t* compiler) {
  static const char source[] = "__global__ void k() {}";
  static const char* const names[] = {"k", "add<float>"};
  static const char* const defines[] = {"N=3"};
  kiln_compile_options_t options = kiln_compile_options_default();
  options.output = path->output;
  options.arch = path->output == KILN_CODE_FORMAT_CUBIN ? "sm_75" : NULL;
  options.name_expressions = names;
  options.name_expression_count = 2;
  options.defines = defines;
  options.define_count = 1;
  kiln_string_view_t text = {source, sizeof(source) - 1};
  kiln_compile_result_t* result = NULL;
  kiln_status_t status =
      kiln_compiler_compile(compiler, text, &options, &result);
  kiln_bytes_view_t code = kiln_code_bytes(kiln_compile_result_code(result));
  assert_int_equal(code.size > 0, kiln_status_is_ok(status));
  if (kiln_status_is_ok(status)) {
    assert_string_equal(
        kiln_code_lowered(kiln_compile_result_code(result), 1)->lowered,
        names[1]);
  }
  kiln_compile_result_release(result);
  return status;
}

static kiln_status_t run_path(path_t* path) {
  static kilni_env_t env;
  kiln_host_t host;
  memset(&host, 0, sizeof(host));
  memset(&env, 0, sizeof(env));
  env.allocator = path->allocator;
  host.allocator = path->allocator;
  host.env = &env;
  host.process_id = kilni_process_id();
  kilni_keep_t nobody = {0};
  kiln_compiler_t* compiler = NULL;
  kiln_status_t status =
      kilni_compiler_create(&host, nobody, &path->table, &compiler);
  assert_int_equal(compiler == NULL, !kiln_status_is_ok(status));
  if (kiln_status_is_ok(status)) status = compile(path, compiler);
  kiln_compiler_release(compiler);
  return status;
}

// ---- What fails ----

static kiln_status_t allocation_body(kiln_allocator_t allocator, void* user) {
  path_t* path = user;
  path->allocator = allocator;
  return run_path(path);
}

// The result that a failed call gives. one-thread
typedef struct calls_t {
  path_t path;
  kiln_nvrtc_result_t result;
} calls_t;

static void arm_calls(void* user, uint64_t nth, bool from_on) {
  calls_t* calls = user;
  kilni_nvrtc_fault_arm(&calls->path.table, nth,
                        from_on ? KILNI_FAULT_FROM : KILNI_FAULT_ONCE,
                        calls->result);
}

static uint64_t disarm_calls(void* user) {
  calls_t* calls = user;
  return kilni_nvrtc_fault_disarm(&calls->path.table);
}

static const char* programs_problem(void* user) {
  (void)user;
  if (kilni_cuda_null_bad_destroys() != 0) {
    return "a program was destroyed that did not live";
  }
  if (kilni_cuda_null_live(KILNI_HANDLE_PROGRAM) != 0) {
    return "a program was never destroyed";
  }
  return NULL;
}

static kiln_status_t call_body(void* user) {
  calls_t* calls = user;
  static fault_alloc_t watch;
  fault_alloc_init(&watch);
  calls->path.allocator = fault_alloc_allocator(&watch);
  kiln_status_t status = run_path(&calls->path);
  fault_alloc_assert_clean(&watch);
  fault_alloc_deinit(&watch);
  return status;
}

// ---- The tests ----

static void test_allocations(void** state) {
  (void)state;
  kilni_cuda_null_reset();
  path_t path = {.output = KILN_CODE_FORMAT_PTX};
  kilni_nvrtc_table_null(&path.table);
  uint64_t count = fault_run_allocations(allocation_body, &path, 0);
  print_message("%llu allocations\n", (unsigned long long)count);
  assert_true(count > 10);
  assert_null(programs_problem(NULL));
}

static void sweep_calls(kiln_nvrtc_result_t result, uint32_t output) {
  kilni_cuda_null_reset();
  calls_t calls = {.path = {.output = output}, .result = result};
  kilni_nvrtc_table_null(&calls.path.table);
  assert_true(kiln_status_is_ok(
      kilni_nvrtc_fault_install(&calls.path.table, &calls.path.table)));
  fault_points_t points = {"call into NVRTC", arm_calls, disarm_calls,
                           programs_problem, &calls};
  uint64_t count = fault_run(&points, call_body, &calls, 0);
  print_message("%llu calls into NVRTC\n", (unsigned long long)count);
  assert_true(count > 10);
  kilni_nvrtc_fault_remove(&calls.path.table);
}

static void test_calls(void** state) {
  (void)state;
  sweep_calls(KILN_NVRTC_ERROR_INTERNAL_ERROR, KILN_CODE_FORMAT_PTX);
  sweep_calls(KILN_NVRTC_ERROR_INTERNAL_ERROR, KILN_CODE_FORMAT_CUBIN);
}

static void test_calls_without_memory(void** state) {
  (void)state;
  sweep_calls(KILN_NVRTC_ERROR_OUT_OF_MEMORY, KILN_CODE_FORMAT_PTX);
}

static void test_calls_that_refuse_the_source(void** state) {
  (void)state;
  sweep_calls(KILN_NVRTC_ERROR_COMPILATION, KILN_CODE_FORMAT_PTX);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_allocations),
      cmocka_unit_test(test_calls),
      cmocka_unit_test(test_calls_without_memory),
      cmocka_unit_test(test_calls_that_refuse_the_source),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
