// SPDX-License-Identifier: Apache-2.0
//
// fault: the path of a compilation, over the null providers of NVRTC and
// libNVVM, with a cache and without: every allocation and every call into them
// fails in turn.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/status_make.h"
#include "base/thread.h"
#include "compile/compile.h"
#include "table/cuda_table.h"
#include "table/nvrtc_table.h"
#include "table/nvvm_table.h"
#include "fault_run.h"

// What a run goes over, and what is to fail in it. one-thread
typedef struct path_t {
  kiln_allocator_t allocator;
  kiln_nvrtc_table_t table;
  kiln_nvvm_table_t nvvm;
  uint32_t output;
  bool is_nvvm;
  bool cached;  // twice with one cache: a miss, then a hit
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

// NVVM IR with a second module.
static kiln_status_t compile_nvvm(const path_t* path,
                                  kiln_compiler_t* compiler) {
  static const kiln_compile_file_t more[] = {{"m", {(const uint8_t*)"BC", 2}}};
  kiln_compile_options_t options = kiln_compile_options_default();
  options.output = path->output;
  options.modules = more;
  options.module_count = 1;
  kiln_string_view_t text = {"BC", 2};
  kiln_compile_result_t* result = NULL;
  kiln_status_t status =
      kiln_compiler_compile(compiler, text, &options, &result);
  kiln_code_t* code = kiln_compile_result_code(result);
  assert_int_equal(code != NULL, kiln_status_is_ok(status));
  kiln_compile_result_release(result);
  return status;
}

// A source with a virtual header and files that are looked for in vain.
static kiln_status_t compile_cached(const path_t* path,
                                    kiln_compiler_t* compiler) {
  static const kiln_compile_file_t headers[] = {
      {"a.h", {(const uint8_t*)"#include <no.h>\n", 16}}};
  static const char* const dirs[] = {"/nonexistent", "tests"};
  static const char* const names[] = {"k"};
  static const char source[] = "#include \"a.h\"\n__global__ void k() {}\n";
  kiln_cache_options_t where = kiln_cache_options_default();
  where.disk = KILN_SWITCH_OFF;
  where.allocator = &path->allocator;
  kiln_compile_options_t options = kiln_compile_options_default();
  KILNI_RETURN_IF_ERROR(kiln_cache_create(&where, &options.cache));
  options.headers = headers;
  options.header_count = 1;
  options.include_dirs = dirs;
  options.include_dir_count = 2;
  options.name_expressions = names;
  options.name_expression_count = 1;
  kiln_string_view_t text = {source, sizeof(source) - 1};
  kiln_status_t status = kiln_ok();
  for (int i = 0; i < 2 && kiln_status_is_ok(status); i++) {
    kiln_compile_result_t* result = NULL;
    status = kiln_compiler_compile(compiler, text, &options, &result);
    kiln_code_t* code = kiln_compile_result_code(result);
    assert_int_equal(code != NULL, kiln_status_is_ok(status));
    // A cache without memory keeps nothing, which is no error of its caller.
    if (i == 1 && kiln_status_is_ok(status) &&
        kiln_compile_result_cache(result) != KILN_COMPILE_CACHE_HIT) {
      status = kilni_base_status_bare(KILN_STATUS_OUT_OF_MEMORY);
    }
    kiln_compile_result_release(result);
  }
  kiln_cache_release(options.cache);
  return status;
}

static kiln_status_t run_path(path_t* path) {
  static kilni_base_env_t env;
  kiln_host_t host;
  memset(&host, 0, sizeof(host));
  memset(&env, 0, sizeof(env));
  env.allocator = path->allocator;
  host.allocator = path->allocator;
  host.env = &env;
  host.process_id = kilni_base_process_id();
  kilni_base_keep_t nobody = {0};
  kiln_compiler_t* compiler = NULL;
  kiln_status_t status = path->is_nvvm
                             ? kilni_compile_compiler_create_nvvm(
                                   &host, nobody, &path->nvvm, &compiler)
                             : kilni_compile_compiler_create(
                                   &host, nobody, &path->table, &compiler);
  assert_int_equal(compiler == NULL, !kiln_status_is_ok(status));
  if (kiln_status_is_ok(status)) {
    status = path->is_nvvm  ? compile_nvvm(path, compiler)
             : path->cached ? compile_cached(path, compiler)
                            : compile(path, compiler);
  }
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
  kilni_table_nvrtc_fault_arm(&calls->path.table, nth,
                              from_on ? KILNI_FAULT_FROM : KILNI_FAULT_ONCE,
                              calls->result);
}

static uint64_t disarm_calls(void* user) {
  calls_t* calls = user;
  return kilni_table_nvrtc_fault_disarm(&calls->path.table);
}

static const char* programs_problem(void* user) {
  (void)user;
  if (kilni_table_cuda_null_bad_destroys() != 0) {
    return "a program was destroyed that did not live";
  }
  if (kilni_table_cuda_null_live(KILNI_HANDLE_PROGRAM) != 0) {
    return "a program was never destroyed";
  }
  return NULL;
}

static kiln_status_t call_body(void* user) {
  calls_t* calls = user;
  return fault_run_watched(allocation_body, &calls->path);
}

// ---- The tests ----

static void test_allocations(void** state) {
  (void)state;
  kilni_table_cuda_null_reset();
  path_t path = {.output = KILN_CODE_FORMAT_PTX};
  kilni_table_nvrtc_table_null(&path.table);
  uint64_t count = fault_run_allocations(allocation_body, &path, 0);
  print_message("%llu allocations\n", (unsigned long long)count);
  assert_true(count > 10);
  assert_null(programs_problem(NULL));
}

static void test_allocations_with_a_cache(void** state) {
  (void)state;
  kilni_table_cuda_null_reset();
  path_t path = {.output = KILN_CODE_FORMAT_PTX, .cached = true};
  kilni_table_nvrtc_table_null(&path.table);
  uint64_t count = fault_run_allocations(allocation_body, &path, 0);
  print_message("%llu allocations\n", (unsigned long long)count);
  assert_true(count > 60);
  assert_null(programs_problem(NULL));
}

static void test_allocations_of_nvvm(void** state) {
  (void)state;
  kilni_table_cuda_null_reset();
  path_t path = {.output = KILN_CODE_FORMAT_LTOIR, .is_nvvm = true};
  kilni_table_nvvm_table_null(&path.nvvm);
  path.output = KILN_CODE_FORMAT_PTX;
  uint64_t count = fault_run_allocations(allocation_body, &path, 0);
  print_message("%llu allocations\n", (unsigned long long)count);
  assert_true(count > 10);
  assert_null(programs_problem(NULL));
}

static void arm_nvvm(void* user, uint64_t nth, bool from_on) {
  calls_t* calls = user;
  kilni_table_nvvm_fault_arm(&calls->path.nvvm, nth,
                             from_on ? KILNI_FAULT_FROM : KILNI_FAULT_ONCE,
                             calls->result);
}

static uint64_t disarm_nvvm(void* user) {
  calls_t* calls = user;
  return kilni_table_nvvm_fault_disarm(&calls->path.nvvm);
}

static void test_calls_of_nvvm(void** state) {
  (void)state;
  kilni_table_cuda_null_reset();
  calls_t calls = {.path = {.output = KILN_CODE_FORMAT_PTX, .is_nvvm = true},
                   .result = KILN_NVVM_ERROR_COMPILATION};
  kilni_table_nvvm_table_null(&calls.path.nvvm);
  assert_true(kiln_status_is_ok(
      kilni_table_nvvm_fault_install(&calls.path.nvvm, &calls.path.nvvm)));
  fault_points_t points = {"call into libNVVM", arm_nvvm, disarm_nvvm,
                           programs_problem, &calls};
  uint64_t count = fault_run(&points, call_body, &calls, 0);
  print_message("%llu calls into libNVVM\n", (unsigned long long)count);
  assert_true(count >= 9);
  kilni_table_nvvm_fault_remove(&calls.path.nvvm);
}

static void sweep_calls(kiln_nvrtc_result_t result, uint32_t output) {
  kilni_table_cuda_null_reset();
  calls_t calls = {.path = {.output = output}, .result = result};
  kilni_table_nvrtc_table_null(&calls.path.table);
  assert_true(kiln_status_is_ok(
      kilni_table_nvrtc_fault_install(&calls.path.table, &calls.path.table)));
  fault_points_t points = {"call into NVRTC", arm_calls, disarm_calls,
                           programs_problem, &calls};
  uint64_t count = fault_run(&points, call_body, &calls, 0);
  print_message("%llu calls into NVRTC\n", (unsigned long long)count);
  assert_true(count > 10);
  kilni_table_nvrtc_fault_remove(&calls.path.table);
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
      cmocka_unit_test(test_allocations_with_a_cache),
      cmocka_unit_test(test_allocations_of_nvvm),
      cmocka_unit_test(test_calls_of_nvvm),
      cmocka_unit_test(test_calls),
      cmocka_unit_test(test_calls_without_memory),
      cmocka_unit_test(test_calls_that_refuse_the_source),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
