// SPDX-License-Identifier: Apache-2.0
//
// tests: the path of `kiln run`, failing one point after the other: open a
// device, load PTX, allocate, copy, launch, read back, release.
//
// Twice: on the null provider, which knows every handle and so shows one that
// is destroyed twice or never; and on the software device, which computes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "device/device.h"
#include "fault_run.h"
#include "kiln/kiln.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"

enum { COUNT = 256, BYTES = COUNT * 4 };

static const char kPtx[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry add_one(.param .u64 p)\n"
    "{\n"
    "  .reg .b32 %r<6>;\n"
    "  .reg .b64 %rd<5>;\n"
    "  ld.param.u64 %rd1, [p];\n"
    "  cvta.to.global.u64 %rd2, %rd1;\n"
    "  mov.u32 %r1, %ctaid.x;\n"
    "  mov.u32 %r2, %ntid.x;\n"
    "  mov.u32 %r3, %tid.x;\n"
    "  mad.lo.s32 %r4, %r1, %r2, %r3;\n"
    "  mul.wide.s32 %rd3, %r4, 4;\n"
    "  add.s64 %rd4, %rd2, %rd3;\n"
    "  ld.global.u32 %r5, [%rd4];\n"
    "  add.s32 %r5, %r5, 1;\n"
    "  st.global.u32 [%rd4], %r5;\n"
    "  ret;\n"
    "}\n";

// The same in two texts, for the driver's linker.
static const char kCaller[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".extern .func (.param .b32 out) next(.param .b32 in);\n"
    ".visible .entry add_one(.param .u64 p)\n"
    "{\n"
    "  .reg .b32 %r<6>;\n"
    "  .reg .b64 %rd<5>;\n"
    "  ld.param.u64 %rd1, [p];\n"
    "  cvta.to.global.u64 %rd2, %rd1;\n"
    "  mov.u32 %r1, %ctaid.x;\n"
    "  mov.u32 %r2, %ntid.x;\n"
    "  mov.u32 %r3, %tid.x;\n"
    "  mad.lo.s32 %r4, %r1, %r2, %r3;\n"
    "  mul.wide.s32 %rd3, %r4, 4;\n"
    "  add.s64 %rd4, %rd2, %rd3;\n"
    "  ld.global.u32 %r5, [%rd4];\n"
    "  {\n"
    "  .param .b32 a;\n"
    "  .param .b32 b;\n"
    "  st.param.b32 [a], %r5;\n"
    "  call.uni (b), next, (a);\n"
    "  ld.param.b32 %r5, [b];\n"
    "  }\n"
    "  st.global.u32 [%rd4], %r5;\n"
    "  ret;\n"
    "}\n";
static const char kCalled[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 4 .u32 step = 1;\n"
    ".visible .func (.param .b32 out) next(.param .b32 in)\n"
    "{\n"
    "  .reg .b32 %r<4>;\n"
    "  ld.param.u32 %r1, [in];\n"
    "  ld.global.u32 %r2, [step];\n"
    "  add.s32 %r3, %r1, %r2;\n"
    "  st.param.b32 [out], %r3;\n"
    "  ret;\n"
    "}\n";

// What a run goes over, and what is to fail in it. one-thread
typedef struct path_t {
  bool soft;
  bool linked;  // by the driver, and loaded when it is first used
  kiln_allocator_t allocator;
  kiln_allocator_t own;  // of the software device
  kiln_cuda_table_t null_table;
  // The driver calls.
  bool count_calls;
  uint64_t nth;
  bool from_on;
  kiln_cu_result_t result;
  bool wrapped;
  kiln_cuda_table_t table;
  uint64_t met;
  // Where the failing call was, if the work passed all the same.
  bool work_passed;
  bool hit_in_work;
  bool hit_in_end;  // of a link: nobody is told
} path_t;

// ---- The body ----

static kiln_status_t load(kiln_device_t* device, kiln_module_t** module,
                          kiln_kernel_t** kernel) {
  kiln_bytes_view_t image = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  kiln_load_log_t* log = NULL;
  kiln_status_t status = kiln_module_load(device, image, NULL, &log, module);
  assert_int_equal(*module == NULL, !kiln_status_is_ok(status));
  if (kiln_status_is_ok(status)) assert_non_null(log);
  kiln_load_log_release(log);
  if (!kiln_status_is_ok(status)) return status;
  status = kiln_kernel_create(*module, "add_one", kernel);
  assert_int_equal(*kernel == NULL, !kiln_status_is_ok(status));
  return status;
}

static kiln_status_t take_code(void* user, kiln_bytes_view_t bytes) {
  kiln_code_t** code = user;
  return kiln_code_create(bytes, NULL, code);
}

static kiln_status_t play(const kilni_compile_link_backend_t* backend,
                          void* session, kiln_code_t** out_code) {
  static const char* const kTexts[] = {kCaller, kCalled};
  for (int i = 0; i < 2; i++) {
    kilni_compile_link_input_t input = {
        KILN_CODE_FORMAT_PTX,
        0,
        i == 0 ? "caller" : "called",
        {(const uint8_t*)kTexts[i], strlen(kTexts[i])}};
    kiln_status_t status = backend->add(session, &input);
    if (!kiln_status_is_ok(status)) return status;
  }
  kilni_compile_link_sink_t sink = {out_code, take_code};
  kiln_status_t status = backend->finish(session, &sink);
  assert_int_equal(*out_code == NULL, !kiln_status_is_ok(status));
  return status;
}

static bool is_hit(const path_t* path) {
  return path->wrapped && kilni_table_cuda_fault_hit(&path->table);
}

static kiln_status_t link_texts(path_t* path, kiln_device_t* device,
                                kiln_code_t** out_code) {
  kilni_compile_link_backend_t backend;
  kilni_device_link_backend(device, &backend);
  static const kilni_compile_link_setting_t setting = {
      KILN_CU_JIT_OPTIMIZATION_LEVEL, 0, 3, "-O3"};
  kilni_compile_link_plan_t plan = {KILN_CODE_FORMAT_CUBIN, 1, &setting, "sum"};
  void* session = NULL;
  kiln_status_t status = backend.begin(backend.self, &plan, &session);
  assert_int_equal(session == NULL, !kiln_status_is_ok(status));
  if (kiln_status_is_ok(status)) status = play(&backend, session, out_code);
  bool hit = is_hit(path);
  backend.end(session);
  path->hit_in_end = !hit && is_hit(path);
  return status;
}

// The null device links to nothing that has a kernel: it takes the one text.
static kiln_status_t load_linked(path_t* path, kiln_device_t* device,
                                 kiln_module_t** module,
                                 kiln_kernel_t** kernel) {
  kiln_code_t* code = NULL;
  kiln_status_t status = link_texts(path, device, &code);
  if (!kiln_status_is_ok(status)) return status;
  if (!path->soft) {
    kiln_code_release(code);
    code = NULL;
    kiln_bytes_view_t image = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
    kiln_code_options_t options = kiln_code_options_default();
    options.allocator = &path->allocator;
    status = kiln_code_create(image, &options, &code);
    if (!kiln_status_is_ok(status)) return status;
  }
  status = kiln_module_create(device, code, NULL, module);
  kiln_code_release(code);
  assert_int_equal(*module == NULL, !kiln_status_is_ok(status));
  if (!kiln_status_is_ok(status)) return status;
  assert_false(kiln_module_is_loaded(*module));
  status = kiln_kernel_create(*module, "add_one", kernel);
  assert_int_equal(*kernel == NULL, !kiln_status_is_ok(status));
  if (!kiln_status_is_ok(status)) return status;
  uint64_t address;
  uint64_t bytes;
  return kiln_module_global(*module, "step", &address, &bytes);
}

static kiln_status_t compute(const path_t* path, kiln_kernel_t* kernel,
                             kiln_stream_t* stream, kiln_buffer_t* buffer) {
  uint32_t data[COUNT];
  for (uint32_t i = 0; i < COUNT; i++) data[i] = i;
  kiln_status_t status = kiln_buffer_fill(buffer, 0, BYTES, 0, 4);
  if (!kiln_status_is_ok(status)) return status;
  status = kiln_buffer_write_async(buffer, stream, 0, BYTES, data);
  kiln_argument_t arguments[] = {kiln_arg_buffer(buffer)};
  kiln_launch_config_t config = kiln_launch_config_default();
  config.grid[0] = 2;
  config.block[0] = COUNT / 2;
  if (kiln_status_is_ok(status)) {
    status = kiln_kernel_launch(kernel, stream, &config, arguments, 1);
  }
  // Host memory of the write must outlive it, whatever happened since.
  kiln_status_t waited = kiln_stream_synchronize(stream);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(waited);
    return status;
  }
  if (!kiln_status_is_ok(waited)) return waited;
  status = kiln_buffer_read(buffer, 0, BYTES, data);
  if (!kiln_status_is_ok(status) || !path->soft) return status;
  for (uint32_t i = 0; i < COUNT; i++) assert_int_equal(data[i], i + 1);
  return status;
}

static kiln_status_t work(path_t* path, kiln_device_t* device) {
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  kiln_stream_t* stream = NULL;
  kiln_buffer_t* buffer = NULL;
  kiln_buffer_t* ordered = NULL;
  kiln_event_t* event = NULL;
  kiln_status_t status = path->linked
                             ? load_linked(path, device, &module, &kernel)
                             : load(device, &module, &kernel);
  if (kiln_status_is_ok(status)) {
    status = kiln_stream_create(device, NULL, &stream);
    assert_int_equal(stream == NULL, !kiln_status_is_ok(status));
  }
  if (kiln_status_is_ok(status)) {
    status = kiln_buffer_create(device, BYTES, NULL, &buffer);
    assert_int_equal(buffer == NULL, !kiln_status_is_ok(status));
  }
  if (kiln_status_is_ok(status)) {
    kiln_buffer_options_t options = kiln_buffer_options_default();
    options.stream = stream;
    status = kiln_buffer_create(device, BYTES, &options, &ordered);
    assert_int_equal(ordered == NULL, !kiln_status_is_ok(status));
  }
  if (kiln_status_is_ok(status)) {
    status = kiln_event_create(device, NULL, &event);
    assert_int_equal(event == NULL, !kiln_status_is_ok(status));
  }
  if (kiln_status_is_ok(status)) status = kiln_event_record(event, stream);
  if (kiln_status_is_ok(status)) {
    status = compute(path, kernel, stream, buffer);
  }
  path->work_passed = kiln_status_is_ok(status);
  path->hit_in_work = is_hit(path) && !path->hit_in_end;
  kiln_kernel_release(kernel);
  kiln_module_release(module);
  kiln_buffer_release(ordered);
  kiln_buffer_release(buffer);
  kiln_event_release(event);
  kiln_stream_release(stream);
  return status;
}

static kiln_status_t wrap(void* user, kiln_cuda_table_t* inout_table) {
  path_t* path = user;
  if (!path->count_calls) return kiln_ok();
  kiln_status_t status =
      kilni_table_cuda_fault_install(inout_table, inout_table);
  if (!kiln_status_is_ok(status)) return status;
  path->table = *inout_table;
  path->wrapped = true;
  kilni_table_cuda_fault_arm(
      &path->table, path->nth,
      path->from_on ? KILNI_FAULT_FROM : KILNI_FAULT_ONCE, path->result);
  return kiln_ok();
}

static void unwrap(void* user, const kiln_cuda_table_t* table) {
  path_t* path = user;
  if (!path->wrapped) return;
  path->met += kilni_table_cuda_fault_disarm(table);
  kilni_table_cuda_fault_remove(table);
  path->wrapped = false;
}

static kiln_status_t run_path(path_t* path) {
  kilni_runtime_hooks_t hooks = {0};
  hooks.wrap = wrap;
  hooks.unwrap = unwrap;
  hooks.user = path;
  hooks.cuda_table = &path->null_table;
  hooks.soft_allocator = &path->own;
  kiln_runtime_options_t options = kiln_runtime_options_default();
  options.allocator = &path->allocator;
  options.soft_workers = 1;
  options.soft_lanes = "plain";
  path->work_passed = false;
  path->hit_in_work = false;
  path->hit_in_end = false;
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* device = NULL;
  kiln_status_t status = kilni_runtime_create_with(&options, &hooks, &runtime);
  assert_int_equal(runtime == NULL, !kiln_status_is_ok(status));
  if (!kiln_status_is_ok(status)) return status;
  status = kiln_runtime_open_device(runtime, path->soft ? "soft" : "cuda:0",
                                    &device);
  assert_int_equal(device == NULL, !kiln_status_is_ok(status));
  kiln_runtime_release(runtime);
  if (kiln_status_is_ok(status)) status = work(path, device);
  kiln_device_release(device);
  // A call that failed while there was work to do shows in the status.
  assert_false(path->work_passed && path->hit_in_work);
  return status;
}

// ---- Allocations ----

static kiln_status_t allocation_body(kiln_allocator_t allocator, void* user) {
  path_t* path = user;
  path->allocator = allocator;
  return run_path(path);
}

// ---- Driver calls ----

static void arm_calls(void* user, uint64_t nth, bool from_on) {
  path_t* path = user;
  path->nth = nth;
  path->from_on = from_on;
  path->met = 0;
}

static uint64_t disarm_calls(void* user) {
  return ((path_t*)user)->met;
}

static const char* null_problem(void* user) {
  (void)user;
  if (kilni_table_cuda_null_bad_destroys() != 0) {
    return "a handle was destroyed that did not live";
  }
  if (kilni_table_cuda_null_live(KILNI_HANDLE_NONE) != 0) {
    return "a handle was never destroyed";
  }
  return NULL;
}

static kiln_status_t call_body(void* user) {
  return fault_run_watched(allocation_body, user);
}

// ---- The tests ----

static path_t make_path(bool soft) {
  path_t path;
  memset(&path, 0, sizeof(path));
  path.soft = soft;
  path.own = kiln_allocator_libc();
  kilni_table_cuda_null_reset();
  kilni_table_cuda_table_null(&path.null_table);
  return path;
}

static void sweep_calls_of(path_t path, kiln_cu_result_t result,
                           bool balanced) {
  path.count_calls = true;
  path.result = result;
  fault_points_t points = {"driver call", arm_calls, disarm_calls,
                           balanced ? null_problem : NULL, &path};
  // A failed destroy is reported by nobody, so a run may pass; run_path sees
  // to it that one whose work was hit does not.
  uint64_t count = fault_run(&points, call_body, &path, FAULT_RUN_MAY_PASS);
  print_message("%llu driver calls\n", (unsigned long long)count);
  assert_true(count > 40);
  kilni_table_cuda_null_reset();
}

static void sweep_calls(bool soft, kiln_cu_result_t result, bool balanced) {
  sweep_calls_of(make_path(soft), result, balanced);
}

static path_t make_linked(bool soft) {
  path_t path = make_path(soft);
  path.linked = true;
  return path;
}

static void sweep_allocations_of(path_t path) {
  uint64_t count = fault_run_allocations(allocation_body, &path, 0);
  print_message("%llu allocations\n", (unsigned long long)count);
  assert_true(count > 10);
  assert_null(null_problem(NULL));
}

static void sweep_allocations(bool soft) {
  sweep_allocations_of(make_path(soft));
}

// Linked by the driver, loaded at the first kernel.
static void test_linked_allocations(void** state) {
  (void)state;
  sweep_allocations_of(make_linked(false));
  sweep_allocations_of(make_linked(true));
}

static void test_linked_calls(void** state) {
  (void)state;
  sweep_calls_of(make_linked(false), KILN_CU_ERROR_OUT_OF_MEMORY, true);
  sweep_calls_of(make_linked(false), KILN_CU_ERROR_DEINITIALIZED, true);
  sweep_calls_of(make_linked(false), KILN_CU_ERROR_ILLEGAL_ADDRESS, false);
  sweep_calls_of(make_linked(true), KILN_CU_ERROR_OUT_OF_MEMORY, false);
}

static void test_null_allocations(void** state) {
  (void)state;
  sweep_allocations(false);
}

static void test_null_calls(void** state) {
  (void)state;
  sweep_calls(false, KILN_CU_ERROR_OUT_OF_MEMORY, true);
}

// What a lost device held is left alone, so only the host's side is balanced.
static void test_null_calls_sticky(void** state) {
  (void)state;
  sweep_calls(false, KILN_CU_ERROR_ILLEGAL_ADDRESS, false);
}

static void test_null_calls_at_the_end(void** state) {
  (void)state;
  sweep_calls(false, KILN_CU_ERROR_DEINITIALIZED, true);
}

static void test_soft_allocations(void** state) {
  (void)state;
  sweep_allocations(true);
}

static void test_soft_calls(void** state) {
  (void)state;
  sweep_calls(true, KILN_CU_ERROR_OUT_OF_MEMORY, false);
}

static void test_soft_calls_sticky(void** state) {
  (void)state;
  sweep_calls(true, KILN_CU_ERROR_ILLEGAL_ADDRESS, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_null_allocations),
      cmocka_unit_test(test_null_calls),
      cmocka_unit_test(test_null_calls_sticky),
      cmocka_unit_test(test_null_calls_at_the_end),
      cmocka_unit_test(test_soft_allocations),
      cmocka_unit_test(test_soft_calls),
      cmocka_unit_test(test_soft_calls_sticky),
      cmocka_unit_test(test_linked_allocations),
      cmocka_unit_test(test_linked_calls),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
