// SPDX-License-Identifier: Apache-2.0
//
// device: linking with the driver, on the software device, which writes over
// every byte of the log buffers and option values whenever a driver may.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "base/thread.h"
#include "device/device.h"
#include "kiln/kiln.h"
#include "runtime/runtime.h"
#include "soft/soft.h"
#include "table/cuda_table.h"

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"

static const char kCaller[] = HEAD
    ".extern .func (.param .b32 out) answer();\n"
    ".visible .entry tell(.param .u64 p) {\n"
    "  .reg .b32 %r<2>;\n  .reg .b64 %d<3>;\n"
    "  ld.param.u64 %d1, [p];\n  cvta.to.global.u64 %d2, %d1;\n"
    "  {\n  .param .b32 a;\n  call.uni (a), answer, ();\n"
    "  ld.param.b32 %r1, [a];\n  }\n"
    "  st.global.u32 [%d2], %r1;\n  ret;\n}\n";
static const char kCalled[] = HEAD
    ".visible .func (.param .b32 out) answer() {\n"
    "  .reg .b32 %r<2>;\n  mov.u32 %r1, 42;\n"
    "  st.param.b32 [out], %r1;\n  ret;\n}\n";

// The software device, which scribbles. one-thread
typedef struct world_t {
  kiln_host_t host;
  kilni_base_env_t env;
  kiln_cuda_table_t table;
  kiln_device_t* device;
  kilni_compile_link_backend_t backend;
} world_t;

static int setup(void** state) {
  static world_t world;
  memset(&world, 0, sizeof(world));
  assert_null(kilni_base_env_init(&world.env, kiln_allocator_libc()));
  world.host = (kiln_host_t){.allocator = kiln_allocator_libc(),
                             .env = &world.env,
                             .worker_count = 1,
                             .process_id = kilni_base_process_id()};
  kilni_soft_options_t soft = {.struct_size = sizeof(soft),
                               .worker_count = 1,
                               .scribble = KILN_SWITCH_ON};
  assert_null(kilni_soft_start(&world.host, &soft, &world.table));
  assert_int_equal(world.table.cuInit(0), KILN_CU_SUCCESS);
  kilni_device_source_t source = {.host = &world.host,
                                  .table = &world.table,
                                  .name = "soft",
                                  .kind = KILN_DEVICE_KIND_SOFT};
  assert_null(kilni_device_open(&source, &world.device));
  kilni_device_link_backend(world.device, &world.backend);
  *state = &world;
  return 0;
}

static int teardown(void** state) {
  world_t* world = *state;
  kiln_device_release(world->device);
  kilni_soft_stop();
  kilni_base_env_deinit(&world->env);
  return 0;
}

static kiln_status_t keep_code(void* user, kiln_bytes_view_t bytes) {
  return kiln_code_create(bytes, NULL, user);
}

static kiln_status_t add(world_t* world, void* session, uint32_t format,
                         const char* name, const char* text) {
  kilni_compile_link_input_t input = {
      format, 0, name, {(const uint8_t*)text, strlen(text)}};
  return world->backend.add(session, &input);
}

static void* begin(world_t* world) {
  static const kilni_compile_link_plan_t plan = {KILN_CODE_FORMAT_CUBIN, 0,
                                                 NULL, "linked"};
  void* session = NULL;
  assert_null(world->backend.begin(world->backend.self, &plan, &session));
  return session;
}

static kiln_code_t* link_both(world_t* world) {
  void* session = begin(world);
  assert_null(add(world, session, KILN_CODE_FORMAT_PTX, "caller", kCaller));
  assert_null(add(world, session, KILN_CODE_FORMAT_PTX, "called", kCalled));
  kiln_code_t* code = NULL;
  kilni_compile_link_sink_t sink = {&code, keep_code};
  assert_null(world->backend.finish(session, &sink));
  world->backend.end(session);
  assert_non_null(code);
  return code;
}

static uint32_t run(world_t* world, kiln_code_t* code) {
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  kiln_buffer_t* buffer = NULL;
  kiln_stream_t* stream = NULL;
  uint32_t value = 0;
  assert_null(kiln_module_create(world->device, code, NULL, &module));
  assert_null(kiln_kernel_create(module, "tell", &kernel));
  kiln_module_release(module);
  assert_null(kiln_buffer_create(world->device, 4, NULL, &buffer));
  assert_null(kiln_stream_create(world->device, NULL, &stream));
  kiln_argument_t argument = kiln_arg_buffer(buffer);
  kiln_launch_config_t config = kiln_launch_config_default();
  assert_null(kiln_kernel_launch(kernel, stream, &config, &argument, 1));
  assert_null(kiln_stream_synchronize(stream));
  assert_null(kiln_buffer_read(buffer, 0, 4, &value));
  kiln_kernel_release(kernel);
  kiln_buffer_release(buffer);
  kiln_stream_release(stream);
  return value;
}

static void test_links_and_runs(void** state) {
  world_t* world = *state;
  kiln_code_t* code = link_both(world);
  assert_int_equal(kiln_code_format(code), KILN_CODE_FORMAT_PTX);
  assert_int_equal(run(world, code), 42);
  kiln_code_release(code);
}

// Facts 5.1 L10: what is written too late shows in the address sanitizer.
static void test_many_links(void** state) {
  world_t* world = *state;
  for (int i = 0; i < 100; i++) {
    kiln_code_t* code = link_both(world);
    if (i % 25 == 0) assert_int_equal(run(world, code), 42);
    kiln_code_release(code);
  }
}

static void test_sessions_beside_one_another(void** state) {
  world_t* world = *state;
  void* first = begin(world);
  void* second = begin(world);
  assert_null(add(world, first, KILN_CODE_FORMAT_PTX, "caller", kCaller));
  assert_null(add(world, second, KILN_CODE_FORMAT_PTX, "called", kCalled));
  world->backend.end(first);
  kiln_code_t* code = NULL;
  kilni_compile_link_sink_t sink = {&code, keep_code};
  assert_null(world->backend.finish(second, &sink));
  world->backend.end(second);
  kiln_code_release(code);
  world->backend.end(NULL);
}

static void test_undefined(void** state) {
  world_t* world = *state;
  void* session = begin(world);
  assert_null(add(world, session, KILN_CODE_FORMAT_PTX, "lonely", kCaller));
  kiln_code_t* code = NULL;
  kilni_compile_link_sink_t sink = {&code, keep_code};
  kiln_status_t status = world->backend.finish(session, &sink);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_LINK_FAILED);
  kiln_status_free(status);
  assert_null(code);
  kilni_base_str_t log;
  kilni_base_str_init(&log, kiln_allocator_libc(), SIZE_MAX);
  assert_null(world->backend.log(session, KILN_LINK_LOG_ERROR, &log));
  assert_non_null(strstr(kilni_base_str_cstr(&log),
                         "Undefined reference to 'answer' in 'lonely'"));
  kilni_base_str_deinit(&log);
  world->backend.end(session);
}

// A log longer than the first buffer is there to its last line.
static void test_long_log(void** state) {
  world_t* world = *state;
  enum { NAMES = 2000 };
  kilni_base_str_t text;
  kilni_base_str_init(&text, kiln_allocator_libc(), SIZE_MAX);
  kilni_base_str_add_cstr(&text, HEAD);
  for (int i = 0; i < NAMES; i++) {
    kilni_base_str_addf(&text,
                        ".extern .func a_function_that_nobody_has_%d();\n", i);
  }
  kilni_base_str_add_cstr(&text, ".visible .entry all() {\n");
  for (int i = 0; i < NAMES; i++) {
    kilni_base_str_addf(&text, "call.uni a_function_that_nobody_has_%d, ();\n",
                        i);
  }
  kilni_base_str_add_cstr(&text, "ret;\n}\n");
  void* session = begin(world);
  assert_null(add(world, session, KILN_CODE_FORMAT_PTX, "many",
                  kilni_base_str_cstr(&text)));
  kilni_compile_link_sink_t sink = {NULL, keep_code};
  kiln_status_t status = world->backend.finish(session, &sink);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_LINK_FAILED);
  kiln_status_free(status);
  kilni_base_str_t log;
  kilni_base_str_init(&log, kiln_allocator_libc(), SIZE_MAX);
  assert_null(world->backend.log(session, KILN_LINK_LOG_ERROR, &log));
  int lines = 0;
  for (const char* c = kilni_base_str_cstr(&log); *c != 0; c++) {
    lines += *c == '\n';
  }
  assert_int_equal(lines, NAMES);
  assert_true(log.size > 65536);
  kilni_base_str_deinit(&log);
  kilni_base_str_deinit(&text);
  world->backend.end(session);
}

static void test_refused_inputs(void** state) {
  world_t* world = *state;
  void* session = begin(world);
  kiln_status_t status =
      add(world, session, KILN_CODE_FORMAT_LTOIR, "ir", kCaller);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  assert_non_null(strstr(kiln_status_message(status), "ir"));
  kiln_status_free(status);
  status = add(world, session, KILN_CODE_FORMAT_CUBIN, "cubin", kCaller);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INCOMPATIBLE);
  kiln_status_free(status);
  status = add(world, session, KILN_CODE_FORMAT_PTX, "bad", HEAD "oh no");
  assert_int_equal(kiln_status_code(status), KILN_STATUS_LINK_FAILED);
  kiln_status_free(status);
  world->backend.end(session);
}

// ---- What the driver is given (facts 5.1 L11) ----

// A test function has no other way to tell. one-thread
static unsigned int seen_count;
static kiln_cu_jit_option_t seen_options[16];
static kiln_cu_context_t seen_context;
static kiln_cuda_table_t null_table;

static kiln_cu_result_t see_create(unsigned int count,
                                   kiln_cu_jit_option_t* options, void** values,
                                   kiln_cu_link_state_t* link) {
  kiln_cuda_table_t plain;
  kilni_table_cuda_table_null(&plain);
  plain.cuCtxGetCurrent(&seen_context);
  seen_count = count;
  memcpy(seen_options, options, count * sizeof(*options));
  return plain.cuLinkCreate(count, options, values, link);
}

static void test_options_and_context(void** state) {
  (void)state;
  kilni_table_cuda_null_reset();
  kilni_table_cuda_table_null(&null_table);
  null_table.cuLinkCreate = see_create;
  kilni_runtime_hooks_t hooks = {0};
  hooks.cuda_table = &null_table;
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* device = NULL;
  assert_null(kilni_runtime_create_with(NULL, &hooks, &runtime));
  assert_null(kiln_runtime_open_device(runtime, "cuda:0", &device));
  kilni_compile_link_backend_t backend;
  kilni_device_link_backend(device, &backend);
  assert_int_equal(backend.kind, KILN_LINK_BACKEND_DRIVER);
  assert_int_equal(backend.line, 13000);
  kilni_compile_link_setting_t settings[8];
  memset(settings, 0, sizeof(settings));
  for (uint32_t i = 0; i < 8; i++) settings[i].key = 7 + i;
  kilni_compile_link_plan_t plan = {KILN_CODE_FORMAT_CUBIN, 8, settings, "all"};
  kiln_cu_context_t other = (kiln_cu_context_t)(uintptr_t)0x4444;
  null_table.cuCtxSetCurrent(other);
  void* session = NULL;
  assert_null(backend.begin(backend.self, &plan, &session));
  assert_int_equal(seen_count, 4 + 8);
  assert_int_equal(seen_options[0], KILN_CU_JIT_INFO_LOG_BUFFER);
  assert_int_equal(seen_options[3], KILN_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  assert_int_equal(seen_options[11], 14);
  assert_ptr_not_equal(seen_context, other);  // the device's
  // The session keeps the device, and its end leaves the context as it was.
  kiln_device_release(device);
  kiln_runtime_release(runtime);
  backend.end(session);
  kiln_cu_context_t current = NULL;
  null_table.cuCtxGetCurrent(&current);
  assert_ptr_equal(current, other);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 0);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 0);
  kilni_table_cuda_null_reset();
}

static kiln_cu_result_t leave_garbage(unsigned int count,
                                      kiln_cu_jit_option_t* options,
                                      void** values,
                                      kiln_cu_link_state_t* link) {
  (void)count;
  (void)options;
  (void)values;
  *link = (kiln_cu_link_state_t)(uintptr_t)0xbad;
  return KILN_CU_ERROR_INVALID_VALUE;
}

// What a failed call wrote is no handle.
static void test_a_link_that_does_not_begin(void** state) {
  (void)state;
  kilni_table_cuda_null_reset();
  kilni_table_cuda_table_null(&null_table);
  null_table.cuLinkCreate = leave_garbage;
  kilni_runtime_hooks_t hooks = {0};
  hooks.cuda_table = &null_table;
  kiln_runtime_t* runtime = NULL;
  kiln_device_t* device = NULL;
  assert_null(kilni_runtime_create_with(NULL, &hooks, &runtime));
  assert_null(kiln_runtime_open_device(runtime, "cuda:0", &device));
  kilni_compile_link_backend_t backend;
  kilni_device_link_backend(device, &backend);
  kilni_compile_link_plan_t plan = {KILN_CODE_FORMAT_CUBIN, 0, NULL, "all"};
  void* session = NULL;
  kiln_status_t status = backend.begin(backend.self, &plan, &session);
  assert_int_equal(kiln_status_code(status), KILN_STATUS_INVALID_ARGUMENT);
  kiln_status_free(status);
  assert_null(session);
  kiln_device_release(device);
  kiln_runtime_release(runtime);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 0);
  assert_int_equal(kilni_table_cuda_null_bad_destroys(), 0);
  kilni_table_cuda_null_reset();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_links_and_runs),
      cmocka_unit_test(test_many_links),
      cmocka_unit_test(test_sessions_beside_one_another),
      cmocka_unit_test(test_undefined),
      cmocka_unit_test(test_long_log),
      cmocka_unit_test(test_refused_inputs),
      cmocka_unit_test(test_options_and_context),
      cmocka_unit_test(test_a_link_that_does_not_begin),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
