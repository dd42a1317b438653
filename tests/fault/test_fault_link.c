// SPDX-License-Identifier: Apache-2.0
//
// fault: the path of a link, over nvJitLink's null provider: every allocation
// and every call into nvJitLink fails in turn.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "compile/compile.h"
#include "table/cuda_table.h"
#include "table/nvjitlink_table.h"
#include "fault_run.h"

// What a run goes over. one-thread
typedef struct path_t {
  kiln_allocator_t allocator;
  kiln_nvjitlink_table_t table;
  uint32_t output;
} path_t;

// ---- The body ----

static kiln_status_t add_inputs(kiln_link_t* link, bool all_ltoir) {
  static const char ptx[] = ".version 8.0\n.target sm_75\n.address_size 64\n";
  static const uint8_t ltoir[32] = {0xed, 0x43,      0x4e,
                                    0x7f, [12] = 24, [24] = 0x63};
  static const kiln_code_name_t names[] = {{"add<float>", "_Z3addIfEv"}};
  kiln_code_options_t options = kiln_code_options_default();
  kiln_code_t* code = NULL;
  options.names = names;
  options.name_count = 1;
  kiln_status_t status = kiln_code_create(
      (kiln_bytes_view_t){ltoir, sizeof(ltoir)}, &options, &code);
  if (kiln_status_is_ok(status)) status = kiln_link_add(link, code);
  kiln_code_release(code);
  if (!kiln_status_is_ok(status)) return status;
  if (all_ltoir) {
    return kiln_link_add_bytes(link, (kiln_bytes_view_t){ltoir, sizeof(ltoir)},
                               0, "k.ltoir");
  }
  return kiln_link_add_bytes(
      link, (kiln_bytes_view_t){(const uint8_t*)ptx, sizeof(ptx) - 1}, 0,
      "k.ptx");
}

static kiln_status_t link_once(const path_t* path, kiln_linker_t* linker) {
  static const char* const words[] = {"-Xnvvm=-a", "-Xnvvm=-b"};
  kiln_link_options_t options = kiln_link_options_default();
  options.output = path->output;
  options.ftz = KILN_SWITCH_ON;
  options.extra = words;
  options.extra_count = 2;
  kiln_link_t* link = NULL;
  kiln_code_t* code = NULL;
  kiln_link_choice_t* choice = NULL;
  kiln_link_settings_t* settings = NULL;
  kiln_status_t status = kiln_link_create(linker, &options, &link);
  assert_int_equal(link == NULL, !kiln_status_is_ok(status));
  if (kiln_status_is_ok(status)) {
    status = add_inputs(link, path->output != KILN_CODE_FORMAT_CUBIN);
  }
  if (kiln_status_is_ok(status)) status = kiln_link_explain(link, &choice);
  if (kiln_status_is_ok(status)) status = kiln_link_settings(link, &settings);
  if (kiln_status_is_ok(status)) status = kiln_link_finish(link, &code);
  assert_int_equal(code != NULL, kiln_status_is_ok(status));
  kiln_link_choice_release(choice);
  kiln_link_settings_release(settings);
  kiln_code_release(code);
  kiln_link_close(link);
  assert_non_null(kiln_link_log(link, KILN_LINK_LOG_ERROR));
  kiln_link_release(link);
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
  kilni_compile_linker_wish_t wish = {0};
  wish.table = &path->table;
  wish.arch = "sm_90";
  kiln_linker_t* linker = NULL;
  kiln_status_t status =
      kilni_compile_linker_create(&host, nobody, &wish, &linker);
  assert_int_equal(linker == NULL, !kiln_status_is_ok(status));
  if (kiln_status_is_ok(status)) status = link_once(path, linker);
  kiln_linker_release(linker);
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
  kiln_nvjitlink_result_t result;
} calls_t;

static void arm_calls(void* user, uint64_t nth, bool from_on) {
  calls_t* calls = user;
  kilni_table_nvjitlink_fault_arm(&calls->path.table, nth,
                                  from_on ? KILNI_FAULT_FROM : KILNI_FAULT_ONCE,
                                  calls->result);
}

static uint64_t disarm_calls(void* user) {
  calls_t* calls = user;
  return kilni_table_nvjitlink_fault_disarm(&calls->path.table);
}

static const char* links_problem(void* user) {
  (void)user;
  if (kilni_table_cuda_null_bad_destroys() != 0) {
    return "a link was destroyed that did not live";
  }
  if (kilni_table_cuda_null_live(KILNI_HANDLE_LINK) != 0) {
    return "a link was never destroyed";
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
  kilni_table_nvjitlink_table_null(&path.table);
  uint64_t count = fault_run_allocations(allocation_body, &path, 0);
  print_message("%llu allocations\n", (unsigned long long)count);
  assert_true(count > 40);
  assert_null(links_problem(NULL));
}

// A log that cannot be read, and an end that is refused, are no failure of the
// link: both are survived, and nothing is destroyed twice.
static void sweep_calls(kiln_nvjitlink_result_t result, uint32_t output) {
  kilni_table_cuda_null_reset();
  calls_t calls = {.path = {.output = output}, .result = result};
  kilni_table_nvjitlink_table_null(&calls.path.table);
  assert_true(kiln_status_is_ok(kilni_table_nvjitlink_fault_install(
      &calls.path.table, &calls.path.table)));
  fault_points_t points = {"call into nvJitLink", arm_calls, disarm_calls,
                           links_problem, &calls};
  uint64_t count = fault_run(&points, call_body, &calls, FAULT_RUN_MAY_PASS);
  print_message("%llu calls into nvJitLink\n", (unsigned long long)count);
  assert_int_equal(count, 15);
  kilni_table_nvjitlink_fault_remove(&calls.path.table);
}

static void test_calls(void** state) {
  (void)state;
  sweep_calls(KILN_NVJITLINK_ERROR_INTERNAL, KILN_CODE_FORMAT_PTX);
  sweep_calls(KILN_NVJITLINK_ERROR_FINALIZE, KILN_CODE_FORMAT_CUBIN);
  sweep_calls(KILN_NVJITLINK_ERROR_OUTDATED_LIBRARY, KILN_CODE_FORMAT_LTOIR);
}

// The calls that a link depends on, one after the other: each failure is one
// of the link.
static void test_calls_that_count(void** state) {
  (void)state;
  kilni_table_cuda_null_reset();
  calls_t calls = {.path = {.output = KILN_CODE_FORMAT_PTX},
                   .result = KILN_NVJITLINK_ERROR_INTERNAL};
  kilni_table_nvjitlink_table_null(&calls.path.table);
  assert_true(kiln_status_is_ok(kilni_table_nvjitlink_fault_install(
      &calls.path.table, &calls.path.table)));
  uint32_t failed = 0;
  for (uint64_t nth = 1; nth <= 15; nth++) {
    arm_calls(&calls, nth, false);
    kiln_status_t status = call_body(&calls);
    const char* hit = kilni_table_nvjitlink_fault_hit(&calls.path.table);
    bool counts = strstr(hit, "Log") == NULL && strstr(hit, "Destroy") == NULL;
    assert_int_equal(kiln_status_is_ok(status), !counts);
    failed += counts;
    kiln_status_free(status);
    disarm_calls(&calls);
    assert_null(links_problem(NULL));
  }
  assert_int_equal(failed, 6);  // create, two adds, complete, size, get
  kilni_table_nvjitlink_fault_remove(&calls.path.table);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_allocations),
      cmocka_unit_test(test_calls),
      cmocka_unit_test(test_calls_that_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
