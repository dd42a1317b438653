// SPDX-License-Identifier: Apache-2.0
//
// live: what is left of a process behind each kind of error: whether the device
// goes on, and that a lost one stays lost: every call says so, nothing is freed
// any more, the primary context is kept. Each case in a process of its own.
//
//   live_errors            everything on cuda:0; exit 77 without a GPU
//   live_errors soft       the same on the software device
//
// What the driver itself does behind the error, with its primary context and
// with a new one, is printed: docs/reference/lost-devices.md says how to read
// it.
#define _POSIX_C_SOURCE 200809L
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/kiln.h"
#include "live_check.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"

extern char** environ;

enum { N = 1000 };

// A row of a later space, taken by hand.
typedef kiln_cu_result_t (*create_fn_t)(kiln_cu_context_t* context,
                                        unsigned int flags,
                                        kiln_cu_device_t device);

// One process. one-thread
typedef struct live_t {
  const char* name;  // of the device
  kiln_runtime_t* runtime;
  kiln_device_t* device;
  kiln_cuda_table_t cu;
  bool soft;
  bool runs_on;   // a kernel is still running: the process ends by itself
  uint32_t ends;  // calls that free, unload, destroy or reset
} live_t;

static live_t g_live;

static const char kStep[] =
    "program step(x: inout u32[]) work length(x)\n"
    "{ let i = global_id.x; x[i] = x[i] * 2u32 + 1u32; }\n";
static const char kTrapping[] =
    "program trapping(x: inout u32[]) work length(x)\n"
    "{ let i = global_id.x; if x[i] == 7u32 { trap(3, u64(i)); }\n"
    "  x[i] = 1u32; }\n";
static const char kEndless[] =
    "program endless(x: inout u32[]) work 1\n"
    "{ var a = 0u32; while a < 4000000000u32 {\n"
    "  a = atomic_add(x[0], 1u32); if a > 3000000000u32 { x[0] = 0u32; } } }\n";

// clang-format off
static const char kPtx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".extern .func __assertfail(.param .b64 message, .param .b64 file,\n"
    "  .param .b32 line, .param .b64 function, .param .b64 size);\n"
    ".global .align 1 .b8 text[4] = {98,97,100,0};\n"
    ".visible .entry stray(.param .u64 p) {\n"
    "  .reg .b32 %r<2>;\n  .reg .b64 %d<2>;\n"
    "  ld.param.u64 %d1, [p];\n  mov.u32 %r1, 1;\n"
    "  st.global.u32 [%d1], %r1;\n  ret;\n}\n"
    ".visible .entry trapped(.param .u64 p) {\n  trap;\n}\n"
    ".visible .entry asserted(.param .u64 p) {\n"
    "  .reg .b32 %r<2>;\n  .reg .b64 %d<3>;\n"
    "  mov.u64 %d1, text;\n  cvta.global.u64 %d1, %d1;\n"
    "  mov.u32 %r1, 42;\n  mov.u64 %d2, 1;\n  {\n"
    "  .param .b64 a0;\n  .param .b64 a1;\n  .param .b32 a2;\n"
    "  .param .b64 a3;\n  .param .b64 a4;\n"
    "  st.param.b64 [a0], %d1;\n  st.param.b64 [a1], %d1;\n"
    "  st.param.b32 [a2], %r1;\n  st.param.b64 [a3], %d1;\n"
    "  st.param.b64 [a4], %d2;\n"
    "  call.uni __assertfail, (a0, a1, a2, a3, a4);\n  }\n  ret;\n}\n";
// clang-format on

// ---- What ends something at the driver ----

#define COUNTED(call, parameter, argument)                     \
  static kiln_cu_result_t counted_##call(parameter argument) { \
    g_live.ends++;                                             \
    return g_live.cu.call(argument);                           \
  }
COUNTED(cuMemFree, kiln_cu_deviceptr_t, address)
COUNTED(cuMemFreeHost, void*, address)
COUNTED(cuStreamDestroy, kiln_cu_stream_t, stream)
COUNTED(cuEventDestroy, kiln_cu_event_t, event)
COUNTED(cuModuleUnload, kiln_cu_module_t, module)
COUNTED(cuLibraryUnload, kiln_cu_library_t, library)
COUNTED(cuDevicePrimaryCtxRelease, kiln_cu_device_t, device)
#undef COUNTED

static kiln_cu_result_t counted_cuMemFreeAsync(kiln_cu_deviceptr_t address,
                                               kiln_cu_stream_t stream) {
  g_live.ends++;
  return g_live.cu.cuMemFreeAsync(address, stream);
}

static kiln_status_t watch(void* user, kiln_cuda_table_t* inout_table) {
  (void)user;
  g_live.cu = *inout_table;
#define COUNTED(call)                                             \
  if (kilni_table_cuda_has(inout_table, KILNI_CUDA_ROW_##call)) { \
    KILNI_CUDA_SET(inout_table, call, counted_##call);            \
  }
  COUNTED(cuMemFree)
  COUNTED(cuMemFreeHost)
  COUNTED(cuMemFreeAsync)
  COUNTED(cuStreamDestroy)
  COUNTED(cuEventDestroy)
  COUNTED(cuModuleUnload)
  COUNTED(cuLibraryUnload)
  COUNTED(cuDevicePrimaryCtxRelease)
#undef COUNTED
  return kiln_ok();
}

// ---- Work ----

// Dispatches a program once over `x` and waits. `address`: in place of host
// memory.
static kiln_status_t dispatch(kiln_dispatcher_t* dispatcher, const char* text,
                              uint32_t* x, uint64_t address,
                              uint64_t timeout_ns) {
  kiln_program_t* program = NULL;
  kiln_pipeline_t* pipeline = NULL;
  kiln_pending_t* pending = NULL;
  kiln_string_view_t view = {text, strlen(text)};
  kiln_dispatch_options_t options = kiln_dispatch_options_default();
  kiln_binding_t binding = address != 0 ? kiln_bind_pointer(address, 4)
                                        : kiln_bind_host_inout(x, N * 4);
  options.timeout_ns = timeout_ns;
  OK(kiln_program_parse(view, NULL, NULL, &program));
  kiln_status_t status =
      kiln_pipeline_create(dispatcher, program, NULL, &pipeline);
  if (kiln_status_is_ok(status)) {
    status =
        kiln_pipeline_dispatch(pipeline, NULL, &binding, 1, &options, &pending);
  }
  if (kiln_status_is_ok(status)) {
    status = kiln_pending_wait(pending, KILN_PENDING_FOREVER);
  }
  kiln_pending_release(pending);
  kiln_pipeline_release(pipeline);
  kiln_program_release(program);
  return status;
}

// Whether a device does work, and does it right.
static kiln_status_t work(kiln_device_t* device) {
  kiln_dispatcher_t* dispatcher = NULL;
  kiln_status_t status = kiln_dispatcher_create(device, NULL, &dispatcher);
  if (!kiln_status_is_ok(status)) return status;
  uint32_t x[N];
  for (uint32_t i = 0; i < N; i++) x[i] = i;
  status = dispatch(dispatcher, kStep, x, 0, 0);
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < N; i++) wrong += x[i] != i * 2 + 1;
  IS(wrong == 0 || !kiln_status_is_ok(status));
  kiln_dispatcher_release(dispatcher);
  return status;
}

// ---- Errors ----

static kiln_status_t program_trap(live_t* live) {
  kiln_dispatcher_t* dispatcher = NULL;
  uint32_t x[N] = {0};
  x[77] = 7;
  OK(kiln_dispatcher_create(live->device, NULL, &dispatcher));
  kiln_status_t status = dispatch(dispatcher, kTrapping, x, 0, 0);
  kiln_dispatcher_release(dispatcher);
  return status;
}

static kiln_status_t load(live_t* live, const char* text,
                          kiln_module_t** out_module) {
  kiln_bytes_view_t view = {(const uint8_t*)text, strlen(text)};
  return kiln_module_load(live->device, view, NULL, NULL, out_module);
}

// One thread of a kernel of kPtx, and a wait for it.
static kiln_status_t run(live_t* live, const char* name, uint64_t address) {
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  kiln_stream_t* stream = NULL;
  kiln_launch_config_t config = kiln_launch_config_default();
  kiln_argument_t argument = kiln_arg_pointer(address);
  OK(load(live, kPtx, &module));
  OK(kiln_kernel_create(module, name, &kernel));
  OK(kiln_stream_create(live->device, NULL, &stream));
  OK(kiln_kernel_launch(kernel, stream, &config, &argument, 1));
  kiln_status_t status = kiln_stream_synchronize(stream);
  kiln_stream_release(stream);
  kiln_kernel_release(kernel);
  kiln_module_release(module);
  return status;
}

static kiln_status_t illegal_address(live_t* live) {
  return run(live, "stray", 64);
}

static kiln_status_t misaligned_address(live_t* live) {
  kiln_buffer_t* buffer = NULL;
  OK(kiln_buffer_create(live->device, 64, NULL, &buffer));
  kiln_status_t status = run(live, "stray", kiln_buffer_address(buffer) + 2);
  kiln_buffer_release(buffer);
  return status;
}

static kiln_status_t trap_instruction(live_t* live) {
  return run(live, "trapped", 0);
}

static kiln_status_t device_assert(live_t* live) {
  return run(live, "asserted", 0);
}

// On soft nothing runs before somebody waits for it (run_case): the limit
// passes.
static kiln_status_t time_limit(live_t* live) {
  kiln_dispatcher_t* dispatcher = NULL;
  kiln_buffer_t* buffer = NULL;
  live->runs_on = !live->soft;
  OK(kiln_buffer_create(live->device, 64, NULL, &buffer));
  OK(kiln_buffer_fill(buffer, 0, 64, 0, 4));
  OK(kiln_dispatcher_create(live->device, NULL, &dispatcher));
  kiln_status_t status =
      dispatch(dispatcher, live->soft ? kStep : kEndless, NULL,
               kiln_buffer_address(buffer), live->soft ? 1 : 300000000);
  kiln_dispatcher_release(dispatcher);
  kiln_buffer_release(buffer);
  return status;
}

static kiln_status_t refused_launch(live_t* live) {
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  kiln_stream_t* stream = NULL;
  kiln_launch_config_t config = kiln_launch_config_default();
  kiln_argument_t argument = kiln_arg_pointer(64);
  config.block[0] = 4096;
  OK(load(live, kPtx, &module));
  OK(kiln_kernel_create(module, "stray", &kernel));
  OK(kiln_stream_create(live->device, NULL, &stream));
  // The driver, who is not asked by the other one, refuses it too.
  uint64_t bad = 64;
  void* params[] = {&bad};
  IS(live->cu.cuLaunchKernel(kiln_kernel_handle(kernel), 1, 1, 1, 4096, 1, 1, 0,
                             kiln_stream_handle(stream), params,
                             NULL) == KILN_CU_ERROR_INVALID_VALUE);
  kiln_status_t status =
      kiln_kernel_launch(kernel, stream, &config, &argument, 1);
  kiln_stream_release(stream);
  kiln_kernel_release(kernel);
  kiln_module_release(module);
  return status;
}

static kiln_status_t bad_code(live_t* live) {
  kiln_module_t* module = NULL;
  return load(live,
              ".version 7.0\n.target sm_70\n.address_size 64\n"
              ".visible .entry k() {\n  no.such.instruction %r1;\n}\n",
              &module);
}

static kiln_status_t out_of_memory(live_t* live) {
  kiln_buffer_t* buffer = NULL;
  return kiln_buffer_create(live->device, UINT64_C(1) << 44, NULL, &buffer);
}

// What is left: a device that goes on; a context that is broken for ever; one
// that works, but whose kernel may run on.
enum { GOES_ON = 0, BROKEN = 1, GIVEN_UP = 2 };

static const struct {
  const char* name;
  kiln_status_t (*make)(live_t* live);
  kiln_status_code_t code;
  uint32_t behind;
} kCases[] = {
    {"trap of a program", program_trap, KILN_STATUS_LAUNCH_FAILED, GOES_ON},
    {"refused launch", refused_launch, KILN_STATUS_LIMIT_EXCEEDED, GOES_ON},
    {"bad code", bad_code, KILN_STATUS_COMPILE_FAILED, GOES_ON},
    {"out of memory", out_of_memory, KILN_STATUS_DEVICE_OUT_OF_MEMORY, GOES_ON},
    {"illegal address", illegal_address, KILN_STATUS_DEVICE_LOST, BROKEN},
    {"misaligned address", misaligned_address, KILN_STATUS_DEVICE_LOST, BROKEN},
    {"trap instruction", trap_instruction, KILN_STATUS_DEVICE_LOST, BROKEN},
    {"assert", device_assert, KILN_STATUS_DEVICE_LOST, BROKEN},
    {"time limit", time_limit, KILN_STATUS_DEVICE_LOST, GIVEN_UP},
};
enum { CASES = sizeof(kCases) / sizeof(kCases[0]) };

// ---- What is left ----

static void show(const char* what, kiln_status_t status) {
  kiln_status_native_t native;
  bool has = kiln_status_native(status, &native);
  printf("  %s: %s%s%s\n", what,
         kiln_status_code_name(kiln_status_code(status)), has ? ", " : "",
         has ? native.name : "");
  kiln_status_free(status);
}

static void show_result(const char* what, kiln_cu_result_t result) {
  const char* name = kilni_table_cuda_result_name(result);
  printf("  %s: %s\n", what, name != NULL ? name : "an unknown result");
}

// The driver alone, whatever Kiln thinks of the device.
static void ask_driver(live_t* live, kiln_cu_context_t context) {
  kiln_cu_deviceptr_t address = 0;
  uint32_t word = 0;
  kiln_cu_result_t result = live->cu.cuCtxSetCurrent(context);
  if (result == 0) result = live->cu.cuMemAlloc(&address, 4096);
  if (result == 0) result = live->cu.cuMemsetD32(address, 5, 1024);
  if (result == 0) result = live->cu.cuMemcpyDtoH(&word, address, 4);
  IS(result != 0 || word == 5);
  if (address != 0) (void)live->cu.cuMemFree(address);
  show_result(context == kiln_device_context(live->device)
                  ? "the driver, in the primary context"
                  : "the driver, in a new context",
              result);
  (void)live->cu.cuCtxSetCurrent(NULL);
}

static void ask_new_context(live_t* live) {
  kiln_cu_proc_address_query_t found = 0;
  kiln_cu_context_t context = NULL;
  kiln_cu_device_t device = 0;
  void* address = NULL;
  create_fn_t create = NULL;
  if (live->soft) return;  // it has primary contexts alone
  kiln_cu_result_t result =
      live->cu.cuGetProcAddress("cuCtxCreate", &address, 3020,
                                KILN_CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
  if (result != 0 || address == NULL) {
    show_result("the driver, of cuCtxCreate", result);
    return;
  }
  memcpy(&create, &address, sizeof(create));
  result = live->cu.cuDeviceGet(&device, 0);
  if (result == 0) result = create(&context, 0, device);
  if (result != 0) {
    show_result("the driver, asked for a new context", result);
    return;
  }
  ask_driver(live, context);
}

static void goes_on(live_t* live) {
  kiln_device_t* again = NULL;
  OK(work(live->device));
  OK(kiln_device_synchronize(live->device));
  if (OK(kiln_runtime_open_device(live->runtime, live->name, &again))) {
    OK(work(again));
  }
  kiln_device_release(again);
  IS(live->ends > 0);  // those that are watched
}

static void stays_lost(live_t* live) {
  kiln_buffer_t* buffer = NULL;
  kiln_stream_t* stream = NULL;
  kiln_device_t* adopted = NULL;
  REFUSED(work(live->device), DEVICE_LOST, "lost");
  REFUSED(kiln_device_synchronize(live->device), DEVICE_LOST, "lost");
  REFUSED(kiln_buffer_create(live->device, 64, NULL, &buffer), DEVICE_LOST,
          "end the process");
  REFUSED(kiln_stream_create(live->device, NULL, &stream), DEVICE_LOST, "lost");
  REFUSED(kiln_device_adopt(live->device, kiln_device_context(live->device),
                            NULL, &adopted),
          DEVICE_LOST, "lost");
  IS(buffer == NULL && stream == NULL && adopted == NULL);
}

// A device that is opened now has the same context: broken is broken.
static void open_again(live_t* live, uint32_t behind) {
  kiln_device_t* again = NULL;
  if (live->runs_on) return;  // what waits for the device would wait for ever
  kiln_status_t status =
      kiln_runtime_open_device(live->runtime, live->name, &again);
  if (kiln_status_is_ok(status)) status = work(again);
  IS(behind != BROKEN || kiln_status_code(status) == KILN_STATUS_DEVICE_LOST);
  show("Kiln, with the device opened anew", status);
  kiln_device_release(again);
  ask_driver(live, kiln_device_context(live->device));
  ask_new_context(live);
}

static int judge(live_t* live, int number) {
  uint32_t behind = kCases[number].behind;
  OK(work(live->device));
  printf("%s on %s\n", kCases[number].name, live->name);
  uint32_t before = live->ends;
  kiln_status_t status = kCases[number].make(live);
  kiln_status_code_t code = kiln_status_code(status);
  // Kiln's own reader may refuse code before a driver does.
  IS(code == kCases[number].code ||
     (kCases[number].make == bad_code && code == KILN_STATUS_BAD_DATA));
  show("Kiln", status);
  if (behind == GOES_ON) {
    goes_on(live);
  } else {
    stays_lost(live);
    // What was made for it was released, and nothing of that freed.
    IS(live->ends == before);
  }
  open_again(live, behind);
  before = live->ends;
  kiln_device_release(live->device);
  IS((live->ends == before) == (behind != GOES_ON));
  (void)fflush(stdout);
  // With a kernel that never ends the driver does not let go by itself.
  if (live->runs_on) _exit(atomic_load(&failures) == 0 ? 0 : 1);
  kiln_runtime_release(live->runtime);
  return atomic_load(&failures) == 0 ? 0 : 1;
}

static int run_case(const char* name, int number) {
  live_t* live = &g_live;
  live->name = name;
  kilni_runtime_hooks_t hooks = {0};
  kiln_runtime_options_t options = kiln_runtime_options_default();
  hooks.wrap = watch;
  if (kCases[number].make == time_limit) options.soft_order = "latest";
  if (!OK(kilni_runtime_create_with(&options, &hooks, &live->runtime))) {
    return 1;
  }
  kiln_status_t status =
      kiln_runtime_open_device(live->runtime, name, &live->device);
  if (kiln_status_is_ok(status)) {
    live->soft = kiln_device_info(live->device)->kind == KILN_DEVICE_KIND_SOFT;
    return judge(live, number);
  }
  printf("skipped: %s\n", kiln_status_message(status));
  kiln_status_free(status);
  kiln_runtime_release(live->runtime);
  return 77;
}

// The exit code of another process, or 128 and the signal that ended it.
static int spawn_case(const char* program, const char* device, int number) {
  char text[16];
  char* own = NULL;
  char* where = NULL;
  memcpy(&own, &program, sizeof(own));
  memcpy(&where, &device, sizeof(where));
  (void)snprintf(text, sizeof(text), "%d", number);
  char* arguments[] = {own, where, text, NULL};
  pid_t child = 0;
  int ended = 0;
  if (posix_spawn(&child, program, NULL, NULL, arguments, environ) != 0 ||
      waitpid(child, &ended, 0) != child) {
    return 1;
  }
  return WIFSIGNALED(ended) ? 128 + WTERMSIG(ended) : WEXITSTATUS(ended);
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  const char* device = argc > 1 ? argv[1] : "cuda:0";
  if (argc > 2) {
    long number = strtol(argv[2], NULL, 10);
    return number >= 0 && number < CASES ? run_case(device, (int)number) : 2;
  }
  int bad = 0;
  for (int i = 0; i < CASES; i++) {
    int code = spawn_case(argv[0], device, i);
    if (code == 77) return 77;
    if (code != 0) printf("%s ended with %d\n", kCases[i].name, code);
    bad += code != 0;
  }
  printf("%d of %d cases failed\n", bad, (int)CASES);
  return bad == 0 ? 0 : 1;
}
