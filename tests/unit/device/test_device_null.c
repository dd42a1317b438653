// SPDX-License-Identifier: Apache-2.0
//
// device: ownership, contexts and checks, on the null provider, which knows
// every handle.
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device_world.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"
#include "says.h"

static const char kPtx[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry scale(.param .u64 x, .param .f32 a, .param .u32 n)\n"
    "{ ret; }\n"
    ".visible .entry fixed(.param .align 8 .b8 s[16]) .reqntid 64, 2, 1\n"
    "{ ret; }\n";

// Objects of every kind, over the null provider. one-thread
typedef struct world_t {
  device_world_t in;
  kiln_event_t* event;
  kiln_buffer_t* buffer;
  kiln_module_t* module;
  kiln_kernel_t* kernel;
} world_t;

static kiln_bytes_view_t ptx(void) {
  kiln_bytes_view_t view = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  return view;
}

static void open_device(world_t* world) {
  device_world_open(&world->in, "cuda:0");
}

static void open_all(world_t* world) {
  open_device(world);
  kiln_buffer_options_t with_stream = kiln_buffer_options_default();
  assert_null(kiln_stream_create(world->in.device, NULL, &world->in.stream));
  assert_null(kiln_event_create(world->in.device, NULL, &world->event));
  with_stream.stream = world->in.stream;
  assert_null(
      kiln_buffer_create(world->in.device, 4096, &with_stream, &world->buffer));
  assert_null(
      kiln_module_load(world->in.device, ptx(), NULL, NULL, &world->module));
  assert_null(kiln_kernel_create(world->module, "scale", &world->kernel));
}

enum { OBJECTS = 7 };

static void release_one(world_t* world, int which) {
  switch (which) {
    case 0:
      kiln_runtime_release(world->in.runtime);
      break;
    case 1:
      kiln_device_release(world->in.device);
      break;
    case 2:
      kiln_stream_release(world->in.stream);
      break;
    case 3:
      kiln_event_release(world->event);
      break;
    case 4:
      kiln_buffer_release(world->buffer);
      break;
    case 5:
      kiln_module_release(world->module);
      break;
    default:
      kiln_kernel_release(world->kernel);
      break;
  }
}

static void release_all(world_t* world) {
  for (int i = OBJECTS - 1; i >= 0; i--) release_one(world, i);
}

static int setup(void** state) {
  static world_t world;
  memset(&world, 0, sizeof(world));
  device_world_begin(&world.in);
  *state = &world;
  return 0;
}

static int teardown(void** state) {
  world_t* world = *state;
  device_world_end(&world->in);
  return 0;
}

// ---- Ownership ----

static bool next_permutation(int* order) {
  int i = OBJECTS - 1;
  while (i > 0 && order[i - 1] > order[i]) i--;
  if (i == 0) return false;
  int j = OBJECTS - 1;
  while (order[j] < order[i - 1]) j--;
  int swap = order[i - 1];
  order[i - 1] = order[j];
  order[j] = swap;
  for (int a = i, b = OBJECTS - 1; a < b; a++, b--) {
    swap = order[a];
    order[a] = order[b];
    order[b] = swap;
  }
  return true;
}

static void test_every_order_of_release(void** state) {
  world_t* world = *state;
  int order[OBJECTS] = {0, 1, 2, 3, 4, 5, 6};
  int tried = 0;
  do {
    open_all(world);
    assert_true(kilni_table_cuda_null_live(KILNI_HANDLE_NONE) >= 5);
    for (int i = 0; i < OBJECTS; i++) release_one(world, order[i]);
    assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), 0);
    assert_int_equal(world->in.watch.live_blocks, 0);
    tried++;
  } while (next_permutation(order));
  assert_int_equal(tried, 5040);
}

static void test_retain_counts(void** state) {
  world_t* world = *state;
  open_all(world);
  kiln_buffer_retain(world->buffer);
  kiln_buffer_release(world->buffer);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_MEMORY), 1);
  assert_int_equal(kiln_buffer_size(world->buffer), 4096);
  release_all(world);
}

static void test_null_is_released(void** state) {
  (void)state;
  kiln_runtime_release(NULL);
  kiln_device_release(NULL);
  kiln_stream_release(NULL);
  kiln_event_release(NULL);
  kiln_buffer_release(NULL);
  kiln_module_release(NULL);
  kiln_kernel_release(NULL);
  kiln_load_log_release(NULL);
}

// ---- Contexts ----

static void test_the_callers_context_stays(void** state) {
  world_t* world = *state;
  kiln_cu_context_t foreign = (kiln_cu_context_t)(uintptr_t)0xabcd00;
  const kiln_cu_context_t callers[] = {NULL, foreign};
  for (int i = 0; i < 2; i++) {
    kiln_cu_context_t now = NULL;
    world->in.table.cuCtxSetCurrent(callers[i]);
    open_all(world);
    uint8_t data[16] = {0};
    assert_null(kiln_buffer_write(world->buffer, 0, sizeof(data), data));
    assert_null(kiln_buffer_fill(world->buffer, 0, 64, 7, 4));
    assert_null(kiln_stream_synchronize(world->in.stream));
    assert_null(kiln_device_synchronize(world->in.device));
    world->in.table.cuCtxGetCurrent(&now);
    assert_ptr_equal(now, callers[i]);
    kiln_status_t status = kiln_kernel_create(world->module, "none", NULL);
    kiln_status_free(status);
    release_all(world);
    world->in.table.cuCtxGetCurrent(&now);
    assert_ptr_equal(now, callers[i]);
  }
  world->in.table.cuCtxSetCurrent(NULL);
}

// ---- Memory ----

static void test_ranges_are_checked(void** state) {
  world_t* world = *state;
  open_all(world);
  uint8_t data[64] = {0};
  kiln_buffer_t* b = world->buffer;
  kiln_stream_t* s = world->in.stream;
  assert_says(kiln_buffer_write(b, 4090, 7, data), KILN_STATUS_OUT_OF_RANGE,
              "7 bytes at offset 4090 in a buffer of 4096");
  assert_says(kiln_buffer_read(b, UINT64_MAX, 2, data),
              KILN_STATUS_OUT_OF_RANGE, "18446744073709551615");
  assert_says(kiln_buffer_write_async(b, s, 4097, 0, data),
              KILN_STATUS_OUT_OF_RANGE, "4097");
  assert_says(kiln_buffer_read_async(b, s, 1, UINT32_MAX, data),
              KILN_STATUS_OUT_OF_RANGE, "4294967295");
  assert_says(kiln_buffer_fill(b, 0, 8192, 0, 1), KILN_STATUS_OUT_OF_RANGE,
              "8192");
  assert_says(kiln_buffer_fill(b, 0, 6, 0, 4), KILN_STATUS_INVALID_ARGUMENT,
              "multiples");
  assert_says(kiln_buffer_fill(b, 2, 8, 0, 4), KILN_STATUS_INVALID_ARGUMENT,
              "offset 2");
  assert_says(kiln_buffer_fill_async(b, s, 0, 6, 0, 3),
              KILN_STATUS_INVALID_ARGUMENT, "3 bytes");
  assert_says(kiln_buffer_copy(b, 0, b, 4000, 200), KILN_STATUS_OUT_OF_RANGE,
              "200");
  assert_says(kiln_buffer_copy(b, 0, b, 32, 64), KILN_STATUS_INVALID_ARGUMENT,
              "overlaps");
  assert_null(kiln_buffer_copy_async(b, s, 0, b, 64, 64));
  assert_null(kiln_buffer_write(b, 4096, 0, NULL));
  assert_null(kiln_buffer_fill_async(b, s, 0, 4096, 1, 2));
  release_all(world);
}

static void test_an_empty_buffer(void** state) {
  world_t* world = *state;
  open_device(world);
  kiln_buffer_t* buffer = NULL;
  assert_null(kiln_buffer_create(world->in.device, 0, NULL, &buffer));
  assert_int_equal(kiln_buffer_address(buffer), 0);
  assert_null(kiln_buffer_write(buffer, 0, 0, NULL));
  kiln_buffer_release(buffer);
  kiln_device_release(world->in.device);
  kiln_runtime_release(world->in.runtime);
}

// ---- Modules ----

static void test_kernels_are_listed(void** state) {
  world_t* world = *state;
  open_all(world);
  assert_int_equal(kiln_module_kernel_count(world->module), 2);
  assert_string_equal(kiln_module_kernel_name(world->module, 1), "fixed");
  assert_null(kiln_module_kernel_name(world->module, 2));
  kiln_kernel_t* kernel = NULL;
  assert_says(kiln_kernel_create(world->module, "sclae", &kernel),
              KILN_STATUS_NOT_FOUND, "\"scale\", \"fixed\"");
  assert_null(kernel);
  assert_says(kiln_kernel_create(world->module, NULL, &kernel),
              KILN_STATUS_INVALID_ARGUMENT, "2 kernels");
  const kiln_kernel_info_t* info = kiln_kernel_info(world->kernel);
  assert_int_equal(info->params_known, 1);
  assert_int_equal(info->param_count, 3);
  assert_int_equal(info->param_bytes, 16);
  const kiln_kernel_param_t* param = kiln_kernel_param(world->kernel, 1);
  assert_string_equal(param->name, "a");
  assert_int_equal(param->offset, 8);
  assert_int_equal(param->bytes, 4);
  assert_int_equal(param->kind, KILN_PARAM_KIND_FLOAT);
  assert_null(kiln_kernel_param(world->kernel, 3));
  release_all(world);
}

static kiln_cu_result_t too_new(kiln_cu_module_t* module, const void* image,
                                unsigned int count,
                                kiln_cu_jit_option_t* options, void** values) {
  (void)image;
  (void)count;
  (void)options;
  (void)values;
  *module = (kiln_cu_module_t)(uintptr_t)0xbad;  // what a failed call leaves
  return KILN_CU_ERROR_UNSUPPORTED_PTX_VERSION;
}

static void test_ptx_that_is_too_new(void** state) {
  world_t* world = *state;
  world->in.table.cuModuleLoadDataEx = too_new;
  open_device(world);
  kiln_module_t* module = NULL;
  kiln_load_log_t* log = NULL;
  kiln_module_options_t options = kiln_module_options_default();
  options.name = "new.ptx";
  assert_says(
      kiln_module_load(world->in.device, ptx(), &options, &log, &module),
      KILN_STATUS_INCOMPATIBLE,
      "\"new.ptx\": it is PTX 8.0 and the driver of \"cuda:0\" is for CUDA "
      "13.0");
  assert_null(module);
  assert_string_equal(kiln_load_log_text(log), "");
  kiln_load_log_release(log);
  kiln_device_release(world->in.device);
  kiln_runtime_release(world->in.runtime);
}

// ---- Launches ----

static kiln_status_t launch(world_t* world, const kiln_argument_t* arguments,
                            uint32_t count) {
  return kiln_kernel_launch(world->kernel, world->in.stream, NULL, arguments,
                            count);
}

static void test_arguments_are_checked(void** state) {
  world_t* world = *state;
  open_all(world);
  kiln_argument_t good[] = {kiln_arg_buffer(world->buffer), kiln_arg_f32(2),
                            kiln_arg_i32(9)};
  uint64_t made = world->in.watch.total_blocks;
  assert_null(launch(world, good, 3));
  // Nothing is allocated on the way.
  assert_int_equal(world->in.watch.total_blocks, made);
  const kiln_status_code_t bad = KILN_STATUS_INVALID_ARGUMENT;
  assert_says(launch(world, good, 2), bad, "takes 3 arguments and is given 2");
  assert_says(launch(world, good, 0), bad, "given 0");
  kiln_argument_t a[3];
  memcpy(a, good, sizeof(a));
  a[1] = kiln_arg_i32(2);
  assert_says(launch(world, a, 3), bad, "parameter 1 (\"a\")");
  a[1] = kiln_arg_f64(2);
  assert_says(launch(world, a, 3), bad, "of 8 bytes");
  memcpy(a, good, sizeof(a));
  a[2] = kiln_arg_f32(2);
  assert_says(launch(world, a, 3), bad, "parameter 2 (\"n\")");
  a[2] = kiln_arg_u64(2);
  assert_says(launch(world, a, 3), bad, "parameter 2");
  memcpy(a, good, sizeof(a));
  a[0] = kiln_arg_buffer(NULL);
  assert_says(launch(world, a, 3), bad, "a buffer that is NULL");
  a[0] = kiln_arg_f64(1);
  assert_says(launch(world, a, 3), bad, "parameter 0 (\"x\")");
  a[0] = kiln_arg_u32(1);
  assert_says(launch(world, a, 3), bad, "of 4 bytes");
  a[0] = kiln_arg_bytes(NULL, 8);
  assert_says(launch(world, a, 3), bad, "NULL address");
  a[0].kind = 77;
  assert_says(launch(world, a, 3), bad, "unknown kind");
  // What fits all the same.
  a[0] = kiln_arg_pointer(0);
  uint32_t bits = 0x3f800000;
  a[1] = kiln_arg_bytes(&bits, 4);
  a[2] = kiln_arg_u32(3);
  assert_null(launch(world, a, 3));
  a[0] = kiln_arg_u64(kiln_buffer_address(world->buffer));
  assert_null(launch(world, a, 3));
  release_all(world);
}

static void** handed_params;
static void** handed_extra;

static kiln_cu_result_t keep_launch(kiln_cu_function_t function,
                                    unsigned int grid_x, unsigned int grid_y,
                                    unsigned int grid_z, unsigned int block_x,
                                    unsigned int block_y, unsigned int block_z,
                                    unsigned int shared_bytes,
                                    kiln_cu_stream_t stream, void** params,
                                    void** extra) {
  (void)function;
  (void)grid_x;
  (void)grid_y;
  (void)grid_z;
  (void)block_x;
  (void)block_y;
  (void)block_z;
  (void)shared_bytes;
  (void)stream;
  handed_params = params;
  handed_extra = extra;
  return KILN_CU_SUCCESS;
}

// A kernel that nobody describes, launched without arguments: a driver that
// knows of parameters would read a list that was never written.
static void test_no_arguments_is_no_list(void** state) {
  world_t* world = *state;
  static const char text[] = ".version 12.7\n.target sm_200\n";
  kilni_table_cuda_mark(&world->in.table, KILNI_CUDA_ROW_cuFuncGetParamInfo,
                        false);
  kilni_table_cuda_mark(&world->in.table,
                        KILNI_CUDA_ROW_cuModuleGetFunctionCount, false);
  world->in.table.cuLaunchKernel = keep_launch;
  open_device(world);
  kiln_bytes_view_t image = {(const uint8_t*)text, sizeof(text) - 1};
  assert_null(
      kiln_module_load(world->in.device, image, NULL, NULL, &world->module));
  assert_null(kiln_kernel_create(world->module, "k", &world->kernel));
  assert_false(kiln_kernel_info(world->kernel)->params_known);
  assert_null(kiln_stream_create(world->in.device, NULL, &world->in.stream));
  handed_params = handed_extra = (void**)&handed_params;
  assert_null(launch(world, NULL, 0));
  assert_null(handed_params);
  assert_null(handed_extra);
  kiln_argument_t one = kiln_arg_u32(7);
  assert_null(launch(world, &one, 1));
  assert_null(handed_params);
  assert_non_null(handed_extra);
  release_all(world);
}

static void test_shapes_are_checked(void** state) {
  world_t* world = *state;
  open_all(world);
  const kiln_device_info_t* info = kiln_device_info(world->in.device);
  kiln_argument_t good[] = {kiln_arg_buffer(world->buffer), kiln_arg_f32(2),
                            kiln_arg_i32(9)};
  kiln_launch_config_t config = kiln_launch_config_default();
  kiln_kernel_t* k = world->kernel;
  const kiln_status_code_t over = KILN_STATUS_LIMIT_EXCEEDED;
  config.block[0] = info->max_block[0] + 1;
  assert_says(kiln_kernel_launch(k, world->in.stream, &config, good, 3), over,
              "block.x");
  config.block[0] = info->max_block[0];
  config.block[1] = 2;
  assert_says(kiln_kernel_launch(k, world->in.stream, &config, good, 3), over,
              "threads in a block");
  config = kiln_launch_config_default();
  config.grid[1] = info->max_grid[1] + 1;
  assert_says(kiln_kernel_launch(k, world->in.stream, &config, good, 3), over,
              "grid.y");
  config = kiln_launch_config_default();
  config.shared_bytes = info->shared_optin_bytes + 1;
  assert_says(kiln_kernel_launch(k, world->in.stream, &config, good, 3), over,
              "shared memory");
  config.shared_bytes = info->shared_optin_bytes;
  assert_null(kiln_kernel_launch(k, world->in.stream, &config, good, 3));
  config.struct_size = 0;
  assert_says(kiln_kernel_launch(k, world->in.stream, &config, good, 3),
              KILN_STATUS_INVALID_ARGUMENT, "struct_size");

  kiln_kernel_t* fixed = NULL;
  assert_null(kiln_kernel_create(world->module, "fixed", &fixed));
  uint8_t bytes[16] = {0};
  kiln_argument_t one[] = {kiln_arg_bytes(bytes, 16)};
  config = kiln_launch_config_default();
  config.block[0] = 64;
  assert_says(kiln_kernel_launch(fixed, world->in.stream, &config, one, 1),
              KILN_STATUS_INVALID_ARGUMENT, "64,2,1");
  config.block[1] = 2;
  assert_null(kiln_kernel_launch(fixed, world->in.stream, &config, one, 1));
  one[0] = kiln_arg_bytes(bytes, 12);
  assert_says(kiln_kernel_launch(fixed, world->in.stream, &config, one, 1),
              KILN_STATUS_INVALID_ARGUMENT, "16 bytes");
  kiln_kernel_release(fixed);
  release_all(world);
}

static void test_many_arguments(void** state) {
  world_t* world = *state;
  open_device(world);
  char text[8192];
  int at = snprintf(text, sizeof(text),
                    ".version 8.0\n.target sm_75\n.address_size 64\n"
                    ".visible .entry many(");
  for (int i = 0; i < 100; i++) {
    at += snprintf(text + at, sizeof(text) - (size_t)at, "%s.param .u32 p%d",
                   i ? ", " : "", i);
  }
  at += snprintf(text + at, sizeof(text) - (size_t)at, ")\n{ ret; }\n");
  kiln_bytes_view_t image = {(const uint8_t*)text, (size_t)at};
  kiln_stream_t* stream = NULL;
  assert_null(kiln_stream_create(world->in.device, NULL, &stream));
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  assert_null(kiln_module_load(world->in.device, image, NULL, NULL, &module));
  assert_null(kiln_kernel_create(module, NULL, &kernel));
  kiln_argument_t arguments[100];
  for (uint32_t i = 0; i < 100; i++) arguments[i] = kiln_arg_u32(i);
  assert_null(kiln_kernel_launch(kernel, stream, NULL, arguments, 100));
  arguments[99] = kiln_arg_f32(1);
  assert_says(kiln_kernel_launch(kernel, stream, NULL, arguments, 100),
              KILN_STATUS_INVALID_ARGUMENT, "parameter 99");
  kiln_kernel_release(kernel);
  kiln_module_release(module);
  kiln_stream_release(stream);
  kiln_device_release(world->in.device);
  kiln_runtime_release(world->in.runtime);
}

// ---- Streams and events ----

static void test_events(void** state) {
  world_t* world = *state;
  open_all(world);
  kiln_event_options_t timed = kiln_event_options_default();
  timed.timing = KILN_SWITCH_ON;
  kiln_event_t* start = NULL;
  uint64_t elapsed = 1;
  bool ready = false;
  assert_null(kiln_event_create(world->in.device, &timed, &start));
  assert_says(kiln_event_elapsed(start, world->event, &elapsed),
              KILN_STATUS_INVALID_STATE, "never recorded");
  assert_int_equal(elapsed, 0);
  assert_null(kiln_event_record(start, world->in.stream));
  assert_says(kiln_event_elapsed(start, world->event, &elapsed),
              KILN_STATUS_INVALID_STATE, "without timing");
  assert_null(kiln_event_elapsed(start, start, &elapsed));
  assert_null(kiln_stream_wait_event(world->in.stream, start));
  assert_null(kiln_event_synchronize(start));
  assert_null(kiln_event_query(start, &ready));
  assert_true(ready);
  ready = false;
  assert_null(kiln_stream_query(world->in.stream, &ready));
  assert_true(ready);
  assert_null(kiln_stream_wait(world->in.stream, 1));
  kiln_event_release(start);
  release_all(world);
}

static kiln_cu_result_t never_done(kiln_cu_stream_t stream) {
  (void)stream;
  return KILN_CU_ERROR_NOT_READY;
}

static void test_a_time_limit(void** state) {
  world_t* world = *state;
  kiln_cu_result_t (*const query)(kiln_cu_stream_t) = never_done;
  world->in.table.cuStreamQuery = query;
  open_all(world);
  assert_says(kiln_stream_wait(world->in.stream, 3000000),
              KILN_STATUS_DEVICE_LOST, "0.003 s");
  // Lost: nothing is asked of the driver any more, nor freed.
  assert_says(kiln_device_synchronize(world->in.device),
              KILN_STATUS_DEVICE_LOST, "is lost");
  uint64_t live = kilni_table_cuda_null_live(KILNI_HANDLE_NONE);
  release_all(world);
  assert_int_equal(kilni_table_cuda_null_live(KILNI_HANDLE_NONE), live);
  kilni_table_cuda_null_reset();
}

// The limit is told as it was given, however short.
static void test_a_short_time_limit(void** state) {
  world_t* world = *state;
  world->in.table.cuStreamQuery = never_done;
  open_all(world);
  assert_says(kiln_stream_wait(world->in.stream, 45000),
              KILN_STATUS_DEVICE_LOST, "0.000045 s");
  release_all(world);
  kilni_table_cuda_null_reset();
}

static kiln_cu_result_t faulted(kiln_cu_stream_t stream) {
  (void)stream;
  return KILN_CU_ERROR_ILLEGAL_ADDRESS;
}

static void test_a_sticky_error(void** state) {
  world_t* world = *state;
  world->in.table.cuStreamSynchronize = faulted;
  open_all(world);
  kiln_status_t status = kiln_stream_synchronize(world->in.stream);
  kiln_status_native_t native;
  assert_true(kiln_status_native(status, &native));
  assert_int_equal(native.number, 700);
  assert_says(status, KILN_STATUS_DEVICE_LOST, "CUDA_ERROR_ILLEGAL_ADDRESS");
  kiln_buffer_t* buffer = NULL;
  assert_says(kiln_buffer_create(world->in.device, 16, NULL, &buffer),
              KILN_STATUS_DEVICE_LOST, "is lost");
  assert_null(buffer);
  release_all(world);
  kilni_table_cuda_null_reset();
}

// ---- Other devices, other processes ----

static void test_after_fork(void** state) {
  world_t* world = *state;
  open_all(world);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    kiln_status_t status = kiln_stream_synchronize(world->in.stream);
    bool good = kiln_status_code(status) == KILN_STATUS_INVALID_STATE;
    kiln_status_free(status);
    uint64_t live = kilni_table_cuda_null_live(KILNI_HANDLE_NONE);
    release_all(world);
    good = good && kilni_table_cuda_null_live(KILNI_HANDLE_NONE) == live;
    _exit(good ? 0 : 1);
  }
  int how = 0;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
  release_all(world);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_every_order_of_release),
      TEST(test_retain_counts),
      TEST(test_null_is_released),
      TEST(test_the_callers_context_stays),
      TEST(test_ranges_are_checked),
      TEST(test_an_empty_buffer),
      TEST(test_kernels_are_listed),
      TEST(test_ptx_that_is_too_new),
      TEST(test_arguments_are_checked),
      TEST(test_no_arguments_is_no_list),
      TEST(test_shapes_are_checked),
      TEST(test_many_arguments),
      TEST(test_events),
      TEST(test_a_time_limit),
      TEST(test_a_short_time_limit),
      TEST(test_a_sticky_error),
      TEST(test_after_fork),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
