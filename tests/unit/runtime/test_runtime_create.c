// SPDX-License-Identifier: Apache-2.0
//
// runtime: options, labels, and drivers that are not there.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "fault_run.h"
#include "kiln/kiln.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"

static void assert_says(kiln_status_t status, kiln_status_code_t code,
                        const char* word) {
  assert_string_equal(kiln_status_code_name(kiln_status_code(status)),
                      kiln_status_code_name(code));
  char text[8192];
  kiln_status_format(status, sizeof(text), text, NULL);
  if (strstr(text, word) == NULL) fail_msg("no \"%s\" in: %s", word, text);
  assert_non_null(kiln_status_fix(status));
  kiln_status_free(status);
}

static kiln_runtime_t* make(const kiln_runtime_options_t* options) {
  kiln_runtime_t* runtime = NULL;
  assert_null(kiln_runtime_create(options, &runtime));
  assert_non_null(runtime);
  return runtime;
}

static void test_options(void** state) {
  (void)state;
  kiln_runtime_release(make(NULL));
  kiln_runtime_options_t options = kiln_runtime_options_default();
  kiln_runtime_release(make(&options));
  kiln_runtime_t* runtime = NULL;
  const kiln_status_code_t bad = KILN_STATUS_INVALID_ARGUMENT;
  options.trace = 9;
  assert_says(kiln_runtime_create(&options, &runtime), bad, "`trace`");
  assert_null(runtime);
  options = kiln_runtime_options_default();
  options.soft_page_check = 3;
  assert_says(kiln_runtime_create(&options, &runtime), bad, "soft_page_check");
  options = kiln_runtime_options_default();
  options.soft_lanes = "sse9";
  assert_says(kiln_runtime_create(&options, &runtime), bad, "sse9");
  options = kiln_runtime_options_default();
  options.soft_workers = 100000;
  assert_says(kiln_runtime_create(&options, &runtime), bad, "100000");
  options = kiln_runtime_options_default();
  options.soft_devices = 9;
  assert_says(kiln_runtime_create(&options, &runtime), bad, "9 software");
  options = kiln_runtime_options_default();
  options.struct_size = 0;
  assert_says(kiln_runtime_create(&options, &runtime), bad, "struct_size");
}

// What a program says counts, and not the variable.
static void test_modes_of_the_software_device(void** state) {
  (void)state;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  kiln_device_t* device = NULL;
  kiln_runtime_t* runtime = NULL;
  setenv("KILN_SOFT_REPORT", "other", 1);
  assert_says(kiln_runtime_create(NULL, &runtime), KILN_STATUS_INVALID_ARGUMENT,
              "\"other\"");
  assert_null(runtime);
  options.soft_report = "freed";
  options.soft_order = "latest";
  runtime = make(&options);
  assert_null(kiln_runtime_open_device(runtime, "soft", &device));
  kiln_device_release(device);
  kiln_runtime_release(runtime);
  unsetenv("KILN_SOFT_REPORT");
  options.soft_order = "first";
  assert_says(kiln_runtime_create(&options, &runtime),
              KILN_STATUS_INVALID_ARGUMENT, "`soft_order`");
  options.soft_order = NULL;
  options.soft_report = "freed,bogus";
  assert_says(kiln_runtime_create(&options, &runtime),
              KILN_STATUS_INVALID_ARGUMENT, "\"bogus\"");
}

static void test_the_toolkit(void** state) {
  (void)state;
  kiln_runtime_t* runtime = make(NULL);
  assert_int_equal(kiln_toolkit_mode(kiln_runtime_toolkit(runtime)),
                   KILN_COMPAT_MODE_WARN);
  kiln_runtime_release(runtime);
  kiln_toolkit_options_t how = kiln_toolkit_options_default();
  how.mode = KILN_COMPAT_MODE_STRICT;
  how.cuda_library = "/nowhere/libcuda.so.1";
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.toolkit = &how;
  runtime = make(&options);
  kiln_toolkit_t* toolkit = kiln_runtime_toolkit(runtime);
  assert_int_equal(kiln_toolkit_mode(toolkit), KILN_COMPAT_MODE_STRICT);
  kiln_compat_driver_t driver;
  assert_null(kiln_toolkit_driver(toolkit, &driver));
  assert_int_equal(driver.state, KILN_COMPAT_DRIVER_NONE);
  kiln_runtime_release(runtime);
  how.ctk_version = "13.2";
  assert_says(kiln_runtime_create(&options, &runtime),
              KILN_STATUS_INVALID_ARGUMENT, "13.2");
  assert_null(runtime);
}

static void test_variables(void** state) {
  (void)state;
  static const char* const bad[][2] = {{"KILN_TRACE", "perhaps"},
                                       {"KILN_SOFT_CHECK", "some"},
                                       {"KILN_SOFT_LANES", "mmx"},
                                       {"KILN_SOFT_WORKERS", "many"},
                                       {"KILN_SOFT_SEED", "-1"}};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    kiln_runtime_t* runtime = NULL;
    setenv(bad[i][0], bad[i][1], 1);
    kiln_status_t status = kiln_runtime_create(NULL, &runtime);
    unsetenv(bad[i][0]);
    assert_null(runtime);
    assert_says(status, KILN_STATUS_INVALID_ARGUMENT, bad[i][0]);
  }
}

static void test_labels(void** state) {
  (void)state;
  kiln_runtime_t* runtime = make(NULL);
  static const char* const bad[] = {
      "",       "gpu",     "cuda",  "cuda:",  "cuda:-1",
      "cuda:x", "cuda:0x", "soft:", "CUDA:0", "cuda:99999999999999999999"};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    kiln_device_t* device = NULL;
    assert_says(kiln_runtime_open_device(runtime, bad[i], &device),
                KILN_STATUS_INVALID_ARGUMENT, "no device is called");
    assert_null(device);
  }
  kiln_device_t* device = NULL;
  kiln_status_t status = kiln_runtime_open_device(runtime, NULL, &device);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  kiln_runtime_release(runtime);
}

// A number names one of several software devices.
static void test_several_devices(void** state) {
  (void)state;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.soft_devices = 2;
  kiln_runtime_t* runtime = make(&options);
  static const char* const labels[] = {"soft", "soft:0", "soft:1"};
  for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
    kiln_device_t* device = NULL;
    assert_true(kiln_status_is_ok(
        kiln_runtime_open_device(runtime, labels[i], &device)));
    assert_int_equal(kiln_device_info(device)->ordinal, i / 2);
    assert_string_equal(kiln_device_name(device), i < 2 ? "soft" : "soft:1");
    kiln_device_release(device);
  }
  kiln_device_t* device = NULL;
  assert_says(kiln_runtime_open_device(runtime, "soft:2", &device),
              KILN_STATUS_NOT_FOUND, "the number of devices is 2");
  assert_null(device);
  kiln_runtime_release(runtime);
}

static void test_no_driver(void** state) {
  (void)state;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.cuda_library = "libcuda-which-is-nowhere.so.1";
  kiln_runtime_t* runtime = make(&options);
  kiln_device_t* device = NULL;
  assert_says(kiln_runtime_open_device(runtime, "cuda:0", &device),
              KILN_STATUS_NOT_FOUND, "libcuda-which-is-nowhere.so.1");
  assert_null(device);
  kiln_runtime_release(runtime);
}

static void test_no_such_gpu(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_table_cuda_null_reset();
  kilni_table_cuda_table_null(&table);
  kilni_runtime_hooks_t hooks = {0};
  hooks.cuda_table = &table;
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* device = NULL;
  assert_null(kilni_runtime_create_with(NULL, &hooks, &runtime));
  assert_says(kiln_runtime_open_device(runtime, "cuda:77", &device),
              KILN_STATUS_NOT_FOUND, "cuda:77");
  assert_null(device);
  assert_null(kiln_runtime_open_device(runtime, "auto", &device));
  assert_string_equal(kiln_device_name(device), "cuda:0");
  assert_string_equal(kiln_device_note(device), "");
  uint64_t executed = 0;
  assert_says(kiln_device_executed(device, &executed), KILN_STATUS_UNSUPPORTED,
              "does not count");
  char text[8] = "x";
  size_t length = 9;
  kiln_device_fault_text(device, sizeof(text), text, &length);
  assert_int_equal(length, 0);
  assert_string_equal(text, "");
  kiln_runtime_release(runtime);
  kiln_device_release(device);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 0);
}

// ---- Trace ----

// Lines of the log. one-thread
typedef struct lines_t {
  int count;
  bool saw_init;
} lines_t;

static void take_line(kiln_log_level_t level, const char* space,
                      const char* line, void* user) {
  lines_t* lines = user;
  (void)space;
  if (level != KILN_LOG_TRACE) return;
  lines->count++;
  if (strstr(line, "cuInit") != NULL) lines->saw_init = true;
}

static void test_trace(void** state) {
  (void)state;
  kiln_cuda_table_t table;
  kilni_table_cuda_null_reset();
  kilni_table_cuda_table_null(&table);
  kilni_runtime_hooks_t hooks = {0};
  hooks.cuda_table = &table;
  lines_t lines = {0, false};
  kiln_log_sink_t sink = {take_line, &lines, KILN_LOG_TRACE, 0};
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.trace = KILN_SWITCH_ON;
  options.log = &sink;
  // The places for wrappers are given back: many runtimes, one after another.
  for (int i = 0; i < 5; i++) {
    kiln_runtime_t* runtime = NULL;
    kiln_device_t* device = NULL;
    lines.count = 0;
    assert_null(kilni_runtime_create_with(&options, &hooks, &runtime));
    assert_null(kiln_runtime_open_device(runtime, "cuda:0", &device));
    assert_true(lines.saw_init);
    assert_true(lines.count > 10);
    kiln_runtime_release(runtime);
    kiln_device_release(device);
  }
}

static kiln_status_t create_body(kiln_allocator_t allocator, void* user) {
  (void)user;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.allocator = &allocator;
  options.cuda_library = "libnothing.so";
  kiln_runtime_t* runtime = NULL;
  kiln_status_t status = kiln_runtime_create(&options, &runtime);
  assert_int_equal(runtime == NULL, !kiln_status_is_ok(status));
  kiln_runtime_release(runtime);
  return status;
}

static void test_memory_may_run_out(void** state) {
  (void)state;
  assert_true(fault_run_allocations(create_body, NULL, 0) >= 3);
}

// ---- The cache ----

// What the runtime's cache says goes to its log. one-thread
typedef struct warned_t {
  uint32_t warnings;
} warned_t;

static void count_warning(kiln_log_level_t level, const char* space,
                          const char* line, void* user) {
  warned_t* warned = user;
  (void)line;
  if (level == KILN_LOG_WARNING && strcmp(space, "cache") == 0) {
    warned->warnings++;
  }
}

static void test_the_cache(void** state) {
  (void)state;
  assert_int_equal(setenv("KILN_CACHE_DIR", "/nonexistent/kiln", 1), 0);
  kiln_runtime_t* runtime = make(NULL);
  assert_string_equal(kiln_cache_directory(kiln_runtime_cache(runtime)),
                      "/nonexistent/kiln");
  kiln_runtime_release(runtime);
  // An option goes before the variable, limits are taken, off is off.
  kiln_runtime_options_t options = kiln_runtime_options_default();
  kiln_cache_options_t cache = kiln_cache_options_default();
  kiln_cache_stats_t stats;
  options.cache = &cache;
  cache.directory = "/nonexistent/other";
  cache.disk_bytes = 12345678;
  cache.memory_bytes = 1000;
  runtime = make(&options);
  assert_string_equal(kiln_cache_directory(kiln_runtime_cache(runtime)),
                      "/nonexistent/other");
  kiln_cache_stats(kiln_runtime_cache(runtime), &stats);
  assert_int_equal(stats.disk_limit_bytes, 12345678);
  assert_int_equal(stats.memory_limit_bytes, 1000);
  kiln_runtime_release(runtime);
  cache.disk = KILN_SWITCH_OFF;
  runtime = make(&options);
  assert_string_equal(kiln_cache_directory(kiln_runtime_cache(runtime)), "");
  kiln_runtime_release(runtime);
  // One that is no path is an error of the runtime, by its name.
  cache = kiln_cache_options_default();
  cache.directory = "relative";
  runtime = NULL;
  assert_says(kiln_runtime_create(&options, &runtime),
              KILN_STATUS_INVALID_ARGUMENT, "relative");
  assert_null(runtime);
  assert_int_equal(unsetenv("KILN_CACHE_DIR"), 0);
}

static kiln_status_t make_nothing(void* user, kiln_cache_output_t* out) {
  (void)user;
  out->payload = (kiln_bytes_view_t){(const uint8_t*)"x", 1};
  return kiln_ok();
}

// A folder that cannot be made costs one warning; things are kept in memory.
static void test_a_cache_without_a_disk(void** state) {
  (void)state;
  warned_t warned = {0};
  kiln_log_sink_t log = {count_warning, &warned, KILN_LOG_WARNING, 0};
  kiln_runtime_options_t options = kiln_runtime_options_default();
  kiln_cache_options_t cache = kiln_cache_options_default();
  cache.directory = "/proc/kiln/none";
  options.cache = &cache;
  options.log = &log;
  kiln_runtime_t* runtime = make(&options);
  uint32_t from = 0;
  for (int i = 0; i < 6; i++) {
    const char* key = i % 2 == 0 ? "a" : "b";
    kiln_cache_request_t request = kiln_cache_request_default();
    kiln_cache_entry_t* entry = NULL;
    request.key.kind = "test";
    request.key.bytes = (kiln_bytes_view_t){(const uint8_t*)key, 1};
    request.make = make_nothing;
    assert_null(kiln_cache_get_or_make(kiln_runtime_cache(runtime), &request,
                                       &entry, &from));
    assert_int_equal(from,
                     i < 2 ? KILN_CACHE_FROM_MAKE : KILN_CACHE_FROM_MEMORY);
    kiln_cache_entry_release(entry);
  }
  assert_int_equal(warned.warnings, 1);
  kiln_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_options),
      cmocka_unit_test(test_modes_of_the_software_device),
      cmocka_unit_test(test_the_toolkit),
      cmocka_unit_test(test_variables),
      cmocka_unit_test(test_labels),
      cmocka_unit_test(test_several_devices),
      cmocka_unit_test(test_no_driver),
      cmocka_unit_test(test_no_such_gpu),
      cmocka_unit_test(test_trace),
      cmocka_unit_test(test_memory_may_run_out),
      cmocka_unit_test(test_the_cache),
      cmocka_unit_test(test_a_cache_without_a_disk),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
