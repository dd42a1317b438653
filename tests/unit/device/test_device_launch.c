// SPDX-License-Identifier: Apache-2.0
//
// device: prepared launches and launch attributes: what the driver is handed,
// and what is refused before it is asked. Over the null provider, with a device
// and a driver version of the test's own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "device_world.h"
#include "says.h"

static const char kPtx[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry mixed(.param .u64 x, .param .f32 a, .param .u8 b,\n"
    "    .param .align 8 .b8 s[24], .param .u32 n) { ret; }\n"
    ".visible .entry none() { ret; }\n";

// What the driver was handed last, and what the device is. one-thread
typedef struct seen_t {
  int version;
  int compute;  // 10 * major + minor
  int clusters;
  int cooperative;
  int domains;
  int window;
  int must_cluster;
  int non_portable;
  int required[3];
  uint32_t launches;
  uint32_t launches_ex;
  uint32_t asked;  // attributes and occupancy
  unsigned int grid[3];
  unsigned int block[3];
  unsigned int shared;
  void* stream;
  bool packed;
  size_t packed_bytes;
  uint8_t bytes[64];  // of the arguments of `mixed`, by offset
  unsigned int attribute_count;
  kiln_cu_launch_attribute_t attributes[16];
  kiln_cu_result_t result;
} seen_t;

static seen_t g_seen;
static kiln_cuda_table_t g_under;

static void take_arguments(void** params, void** extra) {
  static const uint32_t kAt[] = {0, 8, 12, 16, 40};
  static const uint32_t kBytes[] = {8, 4, 1, 24, 4};
  memset(g_seen.bytes, 0, sizeof(g_seen.bytes));
  g_seen.packed = extra != NULL;
  if (extra != NULL) g_seen.packed_bytes = *(const size_t*)extra[3];
  if (params == NULL) return;
  for (int i = 0; i < 5; i++) {
    memcpy(g_seen.bytes + kAt[i], params[i], kBytes[i]);
  }
}

static kiln_cu_result_t see_launch(kiln_cu_function_t function,
                                   unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x,
                                   unsigned int block_y, unsigned int block_z,
                                   unsigned int shared_bytes,
                                   kiln_cu_stream_t stream, void** params,
                                   void** extra) {
  (void)function;
  const unsigned int grid[] = {grid_x, grid_y, grid_z};
  const unsigned int block[] = {block_x, block_y, block_z};
  memcpy(g_seen.grid, grid, sizeof(grid));
  memcpy(g_seen.block, block, sizeof(block));
  g_seen.shared = shared_bytes;
  g_seen.stream = stream;
  g_seen.launches++;
  g_seen.attribute_count = 0;
  take_arguments(params, extra);
  return g_seen.result;
}

static kiln_cu_result_t see_launch_ex(const kiln_cu_launch_config_t* config,
                                      kiln_cu_function_t function,
                                      void** params, void** extra) {
  kiln_cu_result_t result =
      see_launch(function, config->grid_x, config->grid_y, config->grid_z,
                 config->block_x, config->block_y, config->block_z,
                 config->shared_bytes, config->stream, params, extra);
  g_seen.launches--;
  g_seen.launches_ex++;
  g_seen.attribute_count = config->attribute_count;
  assert_true(config->attribute_count <= 16);
  for (unsigned int i = 0; i < config->attribute_count; i++) {
    g_seen.attributes[i] = config->attributes[i];
  }
  return result;
}

static kiln_cu_result_t see_version(int* version) {
  *version = g_seen.version;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t see_attribute(int* value,
                                      kiln_cu_device_attribute_t attribute,
                                      kiln_cu_device_t device) {
  switch (attribute) {
    case KILN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = g_seen.compute / 10;
      return KILN_CU_SUCCESS;
    case KILN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = g_seen.compute % 10;
      return KILN_CU_SUCCESS;
    case KILN_CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
      *value = g_seen.clusters;
      return KILN_CU_SUCCESS;
    case KILN_CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
      *value = g_seen.cooperative;
      return KILN_CU_SUCCESS;
    case KILN_CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
      *value = g_seen.domains;
      return KILN_CU_SUCCESS;
    case KILN_CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE:
      *value = g_seen.window;
      return KILN_CU_SUCCESS;
    default:
      return g_under.cuDeviceGetAttribute(value, attribute, device);
  }
}

static kiln_cu_result_t see_function(int* value,
                                     kiln_cu_function_attribute_t attribute,
                                     kiln_cu_function_t function) {
  g_seen.asked++;
  switch (attribute) {
    case KILN_CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      *value = g_seen.must_cluster;
      return KILN_CU_SUCCESS;
    case KILN_CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      *value = g_seen.non_portable;
      return KILN_CU_SUCCESS;
    case KILN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case KILN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case KILN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      *value = g_seen.required[attribute -
                               KILN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
      return KILN_CU_SUCCESS;
    default:
      return g_under.cuFuncGetAttribute(value, attribute, function);
  }
}

static kiln_cu_result_t set_function(kiln_cu_function_t function,
                                     kiln_cu_function_attribute_t attribute,
                                     int value) {
  g_seen.asked++;
  if (attribute == KILN_CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
    g_seen.non_portable = value;
  }
  return g_under.cuFuncSetAttribute(function, attribute, value);
}

static kiln_cu_result_t see_blocks(int* blocks, kiln_cu_function_t function,
                                   int block_size, size_t dynamic_bytes) {
  (void)function;
  (void)dynamic_bytes;
  g_seen.asked++;
  *blocks = block_size > 512 ? 1 : 2;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t see_priorities(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return KILN_CU_SUCCESS;
}

// ---- The world ----

// one-thread
typedef struct world_t {
  device_world_t in;
  kiln_buffer_t* buffer;
  kiln_module_t* module;
  kiln_kernel_t* kernel;
  kiln_launch_config_t config;
  kiln_launch_attributes_t with;
} world_t;

static void open_world(world_t* w) {
  kiln_bytes_view_t image = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  device_world_open_stream(&w->in, "cuda:0");
  assert_null(kiln_buffer_create(w->in.device, 64, NULL, &w->buffer));
  assert_null(kiln_module_load(w->in.device, image, NULL, NULL, &w->module));
  assert_null(kiln_kernel_create(w->module, "mixed", &w->kernel));
}

static void close_world(world_t* w) {
  kiln_kernel_release(w->kernel);
  kiln_module_release(w->module);
  kiln_buffer_release(w->buffer);
  device_world_close(&w->in);
}

static int setup(void** state) {
  static world_t world;
  memset(&world, 0, sizeof(world));
  memset(&g_seen, 0, sizeof(g_seen));
  g_seen.version = 13020;
  g_seen.compute = 90;
  g_seen.clusters = 1;
  g_seen.cooperative = 1;
  g_seen.domains = 4;
  g_seen.window = 1 << 20;
  device_world_begin(&world.in);
  world.config = kiln_launch_config_default();
  world.with = kiln_launch_attributes_default();
  world.config.attributes = &world.with;
  g_under = world.in.table;
  KILNI_CUDA_SET(&world.in.table, cuLaunchKernel, see_launch);
  KILNI_CUDA_SET(&world.in.table, cuLaunchKernelEx, see_launch_ex);
  KILNI_CUDA_SET(&world.in.table, cuDriverGetVersion, see_version);
  KILNI_CUDA_SET(&world.in.table, cuDeviceGetAttribute, see_attribute);
  KILNI_CUDA_SET(&world.in.table, cuFuncGetAttribute, see_function);
  KILNI_CUDA_SET(&world.in.table, cuFuncSetAttribute, set_function);
  KILNI_CUDA_SET(&world.in.table, cuOccupancyMaxActiveBlocksPerMultiprocessor,
                 see_blocks);
  KILNI_CUDA_SET(&world.in.table, cuCtxGetStreamPriorityRange, see_priorities);
  *state = &world;
  return 0;
}

static int teardown(void** state) {
  world_t* w = *state;
  device_world_end(&w->in);
  return 0;
}

static void fill(world_t* w, kiln_argument_t arguments[5], const void* bytes,
                 const uint8_t* small) {
  arguments[0] = kiln_arg_buffer(w->buffer);
  arguments[1] = kiln_arg_f32(2.5f);
  arguments[2] = kiln_arg_bytes(small, 1);
  arguments[3] = kiln_arg_bytes(bytes, 24);
  arguments[4] = kiln_arg_u32(77);
}

static kiln_status_t create(world_t* w, kiln_launch_t** out_launch) {
  return kiln_launch_create(w->kernel, &w->config, out_launch);
}

// A launch that is refused when it is made.
static void refused(world_t* w, kiln_status_code_t code, const char* word) {
  kiln_launch_t* launch = (kiln_launch_t*)w;
  assert_says(create(w, &launch), code, word);
  assert_null(launch);
  // And the same at once.
  kiln_argument_t arguments[5];
  uint8_t bytes[24] = {0};
  fill(w, arguments, bytes, bytes);
  assert_says(
      kiln_kernel_launch(w->kernel, w->in.stream, &w->config, arguments, 5),
      code, word);
  w->with = kiln_launch_attributes_default();
}

// What the driver is handed for attributes that are taken: by both ways.
static void taken(world_t* w, kiln_cu_launch_attribute_id_t id) {
  kiln_launch_t* launch = NULL;
  kiln_argument_t arguments[5];
  uint8_t bytes[24] = {0};
  kiln_cu_launch_attribute_t first;
  fill(w, arguments, bytes, bytes);
  assert_null(
      kiln_kernel_launch(w->kernel, w->in.stream, &w->config, arguments, 5));
  assert_true(g_seen.attribute_count >= 1);
  first = g_seen.attributes[g_seen.attribute_count - 1];
  assert_int_equal(first.id, id);
  assert_null(create(w, &launch));
  assert_null(kiln_launch_set_all(launch, arguments, 5));
  g_seen.attribute_count = 0;
  assert_null(kiln_launch_run(launch, w->in.stream));
  assert_true(g_seen.attribute_count >= 1);
  assert_memory_equal(&g_seen.attributes[g_seen.attribute_count - 1], &first,
                      sizeof(first));
  kiln_launch_release(launch);
  w->with = kiln_launch_attributes_default();
}

static const kiln_cu_launch_attribute_value_t* last_value(void) {
  return &g_seen.attributes[g_seen.attribute_count - 1].value;
}

// ---- Prepared launches ----

static void test_arguments_arrive(void** state) {
  world_t* w = *state;
  kiln_launch_t* launch = NULL;
  kiln_argument_t arguments[5];
  uint8_t bytes[24];
  uint8_t small = 200;
  uint8_t wanted[64] = {0};
  uint64_t address;
  float half = 2.5f;
  uint32_t number = 77;
  open_world(w);
  for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (uint8_t)(i + 1);
  fill(w, arguments, bytes, &small);
  w->config.attributes = NULL;
  w->config.grid[0] = 7;
  w->config.block[0] = 64;
  w->config.shared_bytes = 128;
  assert_null(create(w, &launch));
  assert_ptr_equal(kiln_launch_kernel(launch), w->kernel);
  assert_null(kiln_launch_set_all(launch, arguments, 5));
  address = kiln_buffer_address(w->buffer);
  memcpy(wanted, &address, 8);
  memcpy(wanted + 8, &half, 4);
  wanted[12] = 200;
  memcpy(wanted + 16, bytes, 24);
  memcpy(wanted + 40, &number, 4);
  memset(bytes, 0, sizeof(bytes));  // they were copied
  small = 0;
  uint64_t live = w->in.watch.live_blocks;
  fault_alloc_arm(&w->in.watch, 1, true);  // none may be made
  g_seen.asked = 0;
  for (int i = 0; i < 3; i++) {
    assert_null(kiln_launch_run(launch, w->in.stream));
  }
  assert_int_equal(w->in.watch.live_blocks, live);
  assert_int_equal(g_seen.asked, 0);
  assert_int_equal(g_seen.launches, 3);
  assert_int_equal(g_seen.launches_ex, 0);
  assert_memory_equal(g_seen.bytes, wanted, sizeof(wanted));
  assert_int_equal(g_seen.grid[0], 7);
  assert_int_equal(g_seen.grid[2], 1);
  assert_int_equal(g_seen.block[0], 64);
  assert_int_equal(g_seen.shared, 128);
  assert_ptr_equal(g_seen.stream, kiln_stream_handle(w->in.stream));
  // One changes; the others stay.
  number = 78;
  memcpy(wanted + 40, &number, 4);
  assert_null(kiln_launch_set(launch, 4, kiln_arg_u32(78)));
  assert_null(kiln_launch_run(launch, w->in.stream));
  assert_memory_equal(g_seen.bytes, wanted, sizeof(wanted));
  assert_int_equal(w->in.watch.live_blocks, live);
  assert_int_equal(fault_alloc_disarm(&w->in.watch), 0);
  kiln_launch_release(launch);
  close_world(w);
}

static void test_wrong_arguments(void** state) {
  world_t* w = *state;
  kiln_launch_t* launch = NULL;
  kiln_argument_t arguments[5];
  uint8_t bytes[24] = {0};
  const kiln_status_code_t invalid = KILN_STATUS_INVALID_ARGUMENT;
  open_world(w);
  w->config.attributes = NULL;
  assert_null(create(w, &launch));
  assert_says(kiln_launch_run(launch, w->in.stream), KILN_STATUS_INVALID_STATE,
              "argument 0 (\"x\") of kernel \"mixed\" was never given");
  fill(w, arguments, bytes, bytes);
  for (uint32_t i = 0; i < 5; i++) {
    if (i != 2) assert_null(kiln_launch_set(launch, i, arguments[i]));
  }
  assert_says(kiln_launch_run(launch, w->in.stream), KILN_STATUS_INVALID_STATE,
              "argument 2 (\"b\")");
  assert_says(kiln_launch_set(launch, 2, kiln_arg_u32(1)), invalid,
              "parameter 2 (\"b\") of kernel \"mixed\" is an integer or "
              "address of 1 bytes");
  assert_says(kiln_launch_set(launch, 1, kiln_arg_u32(1)), invalid,
              "parameter 1 (\"a\")");
  assert_says(kiln_launch_set(launch, 3, kiln_arg_bytes(bytes, 23)), invalid,
              "parameter 3 (\"s\") of kernel \"mixed\" is a struct of 24");
  assert_says(kiln_launch_set(launch, 3, kiln_arg_bytes(NULL, 24)), invalid,
              "bytes at a NULL address");
  assert_says(kiln_launch_set(launch, 0, kiln_arg_buffer(NULL)), invalid,
              "a buffer that is NULL");
  assert_says(kiln_launch_set(launch, 5, kiln_arg_u32(1)), invalid,
              "no parameter 5: it takes 5 arguments");
  assert_says(kiln_launch_set_all(launch, arguments, 4), invalid,
              "takes 5 arguments and is given 4");
  assert_int_equal(g_seen.launches, 0);
  assert_null(kiln_launch_set(launch, 2, arguments[2]));
  assert_null(kiln_launch_run(launch, w->in.stream));
  kiln_launch_retain(launch);
  kiln_launch_release(launch);
  kiln_launch_release(launch);
  kiln_launch_release(NULL);
  close_world(w);
}

static void test_no_arguments(void** state) {
  world_t* w = *state;
  kiln_launch_t* launch = NULL;
  kiln_kernel_t* none = NULL;
  open_world(w);
  assert_null(kiln_kernel_create(w->module, "none", &none));
  assert_null(kiln_launch_create(none, NULL, &launch));
  assert_null(kiln_launch_set_all(launch, NULL, 0));
  assert_null(kiln_launch_run(launch, w->in.stream));
  assert_int_equal(g_seen.launches, 1);
  assert_says(kiln_launch_set(launch, 0, kiln_arg_u32(1)),
              KILN_STATUS_INVALID_ARGUMENT, "takes 0 arguments");
  // The kernel lives as long as its launch.
  kiln_kernel_release(none);
  assert_null(kiln_launch_run(launch, w->in.stream));
  kiln_launch_release(launch);
  close_world(w);
}

// Code that nothing describes: all arguments at once, packed by their sizes.
static void test_unknown_parameters(void** state) {
  world_t* w = *state;
  static const char text[] = ".version 12.7\n.target sm_200\n";
  kiln_bytes_view_t image = {(const uint8_t*)text, sizeof(text) - 1};
  kiln_module_t* module = NULL;
  kiln_kernel_t* kernel = NULL;
  kiln_launch_t* launch = NULL;
  static uint8_t many[40000];
  kilni_table_cuda_mark(&w->in.table, KILNI_CUDA_ROW_cuFuncGetParamInfo, false);
  kilni_table_cuda_mark(&w->in.table, KILNI_CUDA_ROW_cuModuleGetFunctionCount,
                        false);
  open_world(w);
  assert_null(kiln_module_load(w->in.device, image, NULL, NULL, &module));
  assert_null(kiln_kernel_create(module, "k", &kernel));
  assert_null(kiln_launch_create(kernel, NULL, &launch));
  assert_says(kiln_launch_set(launch, 0, kiln_arg_u32(1)),
              KILN_STATUS_INSUFFICIENT_METADATA, "are unknown");
  kiln_argument_t arguments[] = {kiln_arg_u32(7), kiln_arg_u64(9)};
  assert_null(kiln_launch_set_all(launch, arguments, 2));
  assert_null(kiln_launch_run(launch, w->in.stream));
  assert_true(g_seen.packed);
  assert_int_equal(g_seen.packed_bytes, 16);
  // An address has 8 bytes, whatever its argument says.
  arguments[0] = kiln_arg_buffer(w->buffer);
  arguments[0].bytes = 4096;
  assert_says(kiln_launch_set_all(launch, arguments, 1),
              KILN_STATUS_INVALID_ARGUMENT,
              "a buffer's address, of other than 8 bytes");
  arguments[0] = kiln_arg_bytes(many, 32764);
  assert_null(kiln_launch_set_all(launch, arguments, 1));
  assert_null(kiln_launch_run(launch, w->in.stream));
  assert_int_equal(g_seen.packed_bytes, 32764);
  arguments[0] = kiln_arg_bytes(many, 32768);
  assert_says(kiln_launch_set_all(launch, arguments, 1),
              KILN_STATUS_LIMIT_EXCEEDED,
              "arguments in bytes is 32768 and a launch on this device and "
              "driver has 32764");
  kiln_launch_release(launch);
  kiln_kernel_release(kernel);
  kiln_module_release(module);
  close_world(w);
}

static void test_argument_bytes_by_version(void** state) {
  world_t* w = *state;
  static const char text[] =
      ".version 8.1\n.target sm_75\n.address_size 64\n"
      ".visible .entry big(.param .align 4 .b8 s[5000]) { ret; }\n";
  kiln_bytes_view_t image = {(const uint8_t*)text, sizeof(text) - 1};
  for (int old = 0; old < 2; old++) {
    kiln_module_t* module = NULL;
    kiln_kernel_t* kernel = NULL;
    kiln_launch_t* launch = NULL;
    g_seen.version = old ? 12000 : 12010;
    open_world(w);
    assert_null(kiln_module_load(w->in.device, image, NULL, NULL, &module));
    assert_null(kiln_kernel_create(module, "big", &kernel));
    if (old) {
      assert_says(kiln_launch_create(kernel, NULL, &launch),
                  KILN_STATUS_LIMIT_EXCEEDED, "is 5000");
    } else {
      assert_null(kiln_launch_create(kernel, NULL, &launch));
    }
    kiln_launch_release(launch);
    kiln_kernel_release(kernel);
    kiln_module_release(module);
    close_world(w);
  }
}

static void test_the_grid_changes(void** state) {
  world_t* w = *state;
  kiln_launch_t* launch = NULL;
  kiln_argument_t arguments[5];
  uint8_t bytes[24] = {0};
  open_world(w);
  w->config.block[0] = 256;
  w->with.cooperative = KILN_SWITCH_ON;
  w->with.cluster[0] = 2;
  w->config.grid[0] = 2;
  assert_null(create(w, &launch));
  fill(w, arguments, bytes, bytes);
  assert_null(kiln_launch_set_all(launch, arguments, 5));
  g_seen.asked = 0;
  assert_null(kiln_launch_set_grid(launch, 4, 0, 2));
  assert_null(kiln_launch_run(launch, w->in.stream));
  assert_int_equal(g_seen.grid[0], 4);
  assert_int_equal(g_seen.grid[1], 1);
  assert_int_equal(g_seen.grid[2], 2);
  // 4 multiprocessors with 2 blocks each.
  assert_says(kiln_launch_set_grid(launch, 10, 1, 1),
              KILN_STATUS_LIMIT_EXCEEDED,
              "cooperative launch is 10 and \"cuda:0\" at once has 8");
  assert_says(kiln_launch_set_grid(launch, 3, 1, 1),
              KILN_STATUS_INVALID_ARGUMENT, "grid.x is 3");
  assert_says(kiln_launch_set_grid(launch, 2, 65536, 1),
              KILN_STATUS_LIMIT_EXCEEDED, "grid.y is 65536");
  assert_int_equal(g_seen.asked, 0);
  assert_null(kiln_launch_run(launch, w->in.stream));
  assert_int_equal(g_seen.grid[0], 4);
  kiln_launch_release(launch);
  close_world(w);
}

static void test_a_refusal_of_the_driver(void** state) {
  world_t* w = *state;
  kiln_launch_t* launch = NULL;
  kiln_argument_t arguments[5];
  uint8_t bytes[24] = {0};
  open_world(w);
  fill(w, arguments, bytes, bytes);
  for (int ex = 0; ex < 2; ex++) {
    w->with.overlap = ex ? KILN_SWITCH_ON : KILN_SWITCH_DEFAULT;
    assert_null(create(w, &launch));
    assert_null(kiln_launch_set_all(launch, arguments, 5));
    g_seen.result = KILN_CU_ERROR_LAUNCH_OUT_OF_RESOURCES;
    assert_says(kiln_launch_run(launch, w->in.stream),
                KILN_STATUS_LAUNCH_FAILED,
                "launching \"mixed\" with grid 1,1,1");
    g_seen.result = KILN_CU_SUCCESS;
    kiln_launch_release(launch);
  }
  close_world(w);
}

// A refused run is not tried again, nothing goes to a lost device, and nothing
// from a forked child.
static void test_runs_that_must_not_be(void** state) {
  world_t* w = *state;
  kiln_launch_t* launch = NULL;
  kiln_argument_t arguments[5];
  uint8_t bytes[24] = {0};
  open_world(w);
  fill(w, arguments, bytes, bytes);
  w->config.attributes = NULL;
  assert_null(create(w, &launch));
  assert_null(kiln_launch_set_all(launch, arguments, 5));
  assert_null(kiln_launch_run(launch, w->in.stream));
  assert_int_equal(g_seen.launches, 1);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    kiln_status_t status = kiln_launch_run(launch, w->in.stream);
    bool good = kiln_status_code(status) == KILN_STATUS_INVALID_STATE;
    _exit(good && g_seen.launches == 1 ? 0 : 1);
  }
  int how = 0;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
  g_seen.result = KILN_CU_ERROR_LAUNCH_OUT_OF_RESOURCES;
  assert_says(kiln_launch_run(launch, w->in.stream), KILN_STATUS_LAUNCH_FAILED,
              "launching \"mixed\"");
  assert_int_equal(g_seen.launches, 2);
  g_seen.result = KILN_CU_ERROR_ILLEGAL_ADDRESS;
  assert_says(kiln_launch_run(launch, w->in.stream), KILN_STATUS_DEVICE_LOST,
              "CUDA_ERROR_ILLEGAL_ADDRESS");
  g_seen.result = KILN_CU_SUCCESS;
  assert_says(kiln_launch_run(launch, w->in.stream), KILN_STATUS_DEVICE_LOST,
              "is lost");
  assert_int_equal(g_seen.launches, 3);
  kiln_launch_release(launch);
  w->config.attributes = &w->with;
  close_world(w);
  kilni_table_cuda_null_reset();
}

// ---- Attributes ----

static void test_cooperative(void** state) {
  world_t* w = *state;
  open_world(w);
  w->with.cooperative = KILN_SWITCH_ON;
  w->config.grid[0] = 8;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  assert_int_equal(last_value()->cooperative, 1);
  w->with.cooperative = KILN_SWITCH_ON;
  w->config.grid[0] = 9;
  refused(w, KILN_STATUS_LIMIT_EXCEEDED, "is 9 and \"cuda:0\" at once has 8");
  w->with.cooperative = 3;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "`cooperative` is 3");
  close_world(w);
  g_seen.cooperative = 0;
  w->config.grid[0] = 1;
  open_world(w);
  w->with.cooperative = KILN_SWITCH_ON;
  refused(w, KILN_STATUS_UNSUPPORTED, "`cooperative`");
  close_world(w);
}

static void test_clusters(void** state) {
  world_t* w = *state;
  open_world(w);
  w->config.grid[0] = 32;
  w->with.cluster[0] = 4;
  w->with.cluster[1] = 1;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  assert_int_equal(last_value()->cluster.x, 4);
  assert_int_equal(last_value()->cluster.z, 1);
  w->with.cluster[0] = 2;
  w->with.cluster_policy = KILN_CLUSTER_POLICY_SPREAD;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
  assert_int_equal(last_value()->cluster_policy, 1);
  w->with.cluster[0] = 2;
  w->with.preferred_cluster[0] = 8;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION);
  assert_int_equal(last_value()->preferred_cluster.x, 8);
  assert_int_equal(last_value()->preferred_cluster.y, 1);
  w->with.cluster[0] = 3;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "grid.x is 32");
  w->with.cluster[0] = 4;
  w->with.preferred_cluster[0] = 6;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "`preferred_cluster` is 6,1,1");
  w->with.preferred_cluster[0] = 6;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "`cluster` of 0,0,0");
  w->with.cluster_policy = 3;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "`cluster_policy` is 3");
  w->with.cluster[0] = 4;
  w->with.cluster_size = 3;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "`cluster_size` is 3");
  g_seen.required[0] = 2;
  g_seen.required[1] = g_seen.required[2] = 1;
  w->with.cluster[0] = 4;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "requires clusters of 2,1,1");
  w->with.cluster[0] = 2;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  close_world(w);
  g_seen.clusters = 0;
  open_world(w);
  w->with.cluster[0] = 1;
  refused(w, KILN_STATUS_UNSUPPORTED, "`cluster`");
  w->with.cluster_policy = KILN_CLUSTER_POLICY_BALANCE;
  refused(w, KILN_STATUS_UNSUPPORTED, "`cluster_policy`");
  close_world(w);
}

static void test_large_clusters(void** state) {
  world_t* w = *state;
  w->config.grid[0] = 64;
  open_world(w);
  w->with.cluster[0] = 16;
  refused(w, KILN_STATUS_LIMIT_EXCEEDED, "is 16 and a portable cluster has 8");
  w->with.cluster[0] = 16;
  w->with.cluster_size = KILN_CLUSTER_SIZE_ANY;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  assert_int_equal(g_seen.attribute_count, 2);
  assert_int_equal(g_seen.attributes[0].id,
                   KILN_CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE);
  assert_int_equal(g_seen.attributes[0].value.cluster_size_mode, 2);
  assert_int_equal(g_seen.non_portable, 0);
  w->with.cluster[0] = 32;
  w->with.cluster_size = KILN_CLUSTER_SIZE_ANY;
  refused(w, KILN_STATUS_LIMIT_EXCEEDED, "the largest cluster has 16");
  // 2^64 blocks are not none.
  w->with.cluster[0] = 1u << 22;
  w->with.cluster[1] = w->with.cluster[2] = 1u << 21;
  refused(w, KILN_STATUS_LIMIT_EXCEEDED, "a portable cluster has 8");
  close_world(w);
  // An older driver is asked for the kernel.
  g_seen.version = 12000;
  open_world(w);
  w->with.cluster[0] = 16;
  w->with.cluster_size = KILN_CLUSTER_SIZE_ANY;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  assert_int_equal(g_seen.attribute_count, 1);
  assert_int_equal(g_seen.non_portable, 1);
  w->with.cluster[0] = 16;  // which stays
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  close_world(w);
}

// A driver that takes any code, and has the kernels of kPtx.
static kiln_cu_result_t load_plain(kiln_cu_module_t* module, const void* image,
                                   unsigned int count,
                                   kiln_cu_jit_option_t* options,
                                   void** values) {
  (void)image;
  return g_under.cuModuleLoadDataEx(module, kPtx, count, options, values);
}

// The world's kernel, of a file that says more of it.
static void take_kernel(world_t* w, const char* ptx) {
  kiln_bytes_view_t image = {(const uint8_t*)ptx, strlen(ptx)};
  kiln_kernel_release(w->kernel);
  kiln_module_release(w->module);
  w->kernel = NULL;
  assert_null(kiln_module_load(w->in.device, image, NULL, NULL, &w->module));
  assert_null(kiln_kernel_create(w->module, "none", &w->kernel));
}

static kiln_status_t launch_now(world_t* w) {
  return kiln_kernel_launch(w->kernel, w->in.stream, &w->config, NULL, 0);
}

// Refused by every way to launch it, with attributes and without.
static void refused_unclustered(world_t* w, kiln_status_code_t code,
                                const char* word) {
  kiln_launch_t* launch = NULL;
  uint32_t before = g_seen.launches + g_seen.launches_ex;
  for (int with = 0; with < 2; with++) {
    w->config.attributes = with ? &w->with : NULL;
    assert_says(create(w, &launch), code, word);
    assert_null(launch);
    assert_says(launch_now(w), code, word);
  }
  assert_int_equal(g_seen.launches + g_seen.launches_ex, before);
}

#define CLUSTER_HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

// Its file says so.
static void test_a_kernel_for_clusters_only(void** state) {
  world_t* w = *state;
  KILNI_CUDA_SET(&w->in.table, cuModuleLoadDataEx, load_plain);
  open_world(w);
  take_kernel(
      w, CLUSTER_HEAD ".visible .entry none() .explicitcluster { ret; }\n");
  refused_unclustered(w, KILN_STATUS_INVALID_ARGUMENT, "in clusters only");
  w->with.cluster[0] = 1;
  assert_null(launch_now(w));
  kiln_launch_t* launch = NULL;
  assert_null(create(w, &launch));
  kiln_launch_release(launch);
  close_world(w);
  g_seen.clusters = 0;
  w->with.cluster[0] = 0;
  open_world(w);
  take_kernel(
      w, CLUSTER_HEAD ".visible .entry none() .explicitcluster { ret; }\n");
  refused_unclustered(w, KILN_STATUS_UNSUPPORTED, "\"cuda:0\" has none");
  close_world(w);
}

// It brings its clusters: they need not be said, and divide the grid.
static void test_a_kernel_with_its_own_clusters(void** state) {
  world_t* w = *state;
  kiln_launch_t* launch = NULL;
  KILNI_CUDA_SET(&w->in.table, cuModuleLoadDataEx, load_plain);
  open_world(w);
  take_kernel(
      w, CLUSTER_HEAD ".visible .entry none() .reqnctapercluster 2 { ret; }\n");
  w->config.grid[0] = 3;
  refused_unclustered(w, KILN_STATUS_INVALID_ARGUMENT, "grid.x is 3");
  w->config.grid[0] = 4;
  w->config.attributes = NULL;
  assert_null(launch_now(w));
  assert_null(create(w, &launch));
  kiln_launch_release(launch);
  take_kernel(w, CLUSTER_HEAD
              ".visible .entry none() .explicitcluster\n"
              "    .reqnctapercluster 4, 1, 1 { ret; }\n");
  assert_null(launch_now(w));
  w->config.grid[0] = 6;
  refused_unclustered(w, KILN_STATUS_INVALID_ARGUMENT, "clusters of 4");
  // Its grid counts clusters.
  take_kernel(w,
              ".version 9.0\n.target sm_90\n.address_size 64\n"
              ".visible .entry none() .blocksareclusters .reqntid 32\n"
              "    .reqnctapercluster 4, 1, 1 { ret; }\n");
  w->config.block[0] = 32;
  w->config.attributes = NULL;
  assert_null(launch_now(w));
  close_world(w);
}

// Nobody but the driver says so.
static void test_a_stranger_for_clusters_only(void** state) {
  world_t* w = *state;
  kiln_kernel_t* adopted = NULL;
  for (int required = 0; required < 3; required += 2) {
    g_seen.must_cluster = 1;
    g_seen.required[0] = required;
    open_world(w);
    kiln_kernel_release(w->kernel);
    assert_null(kiln_kernel_create(w->module, "none", &w->kernel));
    void* handle = NULL;
    kiln_cu_library_t library = NULL;
    kiln_cu_kernel_t kernel = NULL;
    assert_int_equal(
        g_under.cuLibraryLoadData(&library, kPtx, NULL, NULL, 0, NULL, NULL, 0),
        KILN_CU_SUCCESS);
    assert_int_equal(g_under.cuLibraryGetKernel(&kernel, library, "none"),
                     KILN_CU_SUCCESS);
    handle = kernel;
    assert_null(kiln_kernel_adopt(w->in.device, handle, NULL, &adopted));
    kiln_kernel_release(w->kernel);
    w->kernel = adopted;
    w->config.attributes = NULL;
    if (required == 0) {
      refused_unclustered(w, KILN_STATUS_INVALID_ARGUMENT, "in clusters only");
      w->with.cluster[0] = 1;
    }
    assert_null(launch_now(w));
    w->with.cluster[0] = 0;
    kiln_kernel_release(w->kernel);
    w->kernel = NULL;
    assert_int_equal(g_under.cuLibraryUnload(library), KILN_CU_SUCCESS);
    close_world(w);
  }
}

static void test_events(void** state) {
  world_t* w = *state;
  kiln_event_t* event = NULL;
  kiln_event_t* timed = NULL;
  kiln_event_options_t options = kiln_event_options_default();
  bool ready = false;
  open_world(w);
  assert_null(kiln_event_create(w->in.device, NULL, &event));
  options.timing = KILN_SWITCH_ON;
  assert_null(kiln_event_create(w->in.device, &options, &timed));
  w->with.programmatic_event = event;
  w->with.trigger_at_start = KILN_SWITCH_ON;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT);
  assert_ptr_equal(last_value()->programmatic_event.event,
                   kiln_event_handle(event));
  assert_int_equal(last_value()->programmatic_event.trigger_at_block_start, 1);
  assert_null(kiln_event_query(event, &ready));
  w->with.completion_event = event;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
  assert_ptr_equal(last_value()->completion_event.event,
                   kiln_event_handle(event));
  w->with.completion_event = timed;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "an event with timing");
  w->with.programmatic_event = timed;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "`programmatic_event` is an event");
  // An attribute behind it that is refused: the event is not held.
  w->with.programmatic_event = event;
  w->with.given = KILN_LAUNCH_GIVEN_PRIORITY;
  w->with.priority = 1;
  refused(w, KILN_STATUS_LIMIT_EXCEEDED, "`priority` is 1");
  w->with.trigger_at_start = 3;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "`trigger_at_start` is 3");
  // The launch keeps its event.
  kiln_launch_t* launch = NULL;
  w->with.completion_event = event;
  assert_null(create(w, &launch));
  kiln_event_release(event);
  kiln_launch_release(launch);
  kiln_event_release(timed);
  close_world(w);
}

static void test_order_and_place(void** state) {
  world_t* w = *state;
  open_world(w);
  w->with.overlap = KILN_SWITCH_ON;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  assert_int_equal(last_value()->programmatic_serialization, 1);
  w->with.given = KILN_LAUNCH_GIVEN_PRIORITY;
  w->with.priority = -5;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_PRIORITY);
  assert_int_equal(last_value()->priority, -5);
  w->with.nvlink_centric = KILN_SWITCH_ON;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING);
  assert_int_equal(last_value()->nvlink_centric, 1);
  w->with.nvlink_centric = KILN_SWITCH_OFF;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING);
  assert_int_equal(last_value()->nvlink_centric, 0);
  w->with.given = KILN_LAUNCH_GIVEN_PRIORITY;
  w->with.priority = -6;
  refused(w, KILN_STATUS_LIMIT_EXCEEDED, "-5 to 0");
  // A bit of a later version asks for what this one does not do.
  w->with.given = KILN_LAUNCH_GIVEN_PRIORITY | 8;
  refused(w, KILN_STATUS_INCOMPATIBLE, "`given` is 0x9");
  w->with.overlap = 9;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "`overlap` is 9");
  w->with.nvlink_centric = 9;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "`nvlink_centric` is 9");
  w->with.struct_size = 0;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "kiln_launch_attributes_t");
  close_world(w);
}

static void test_memory(void** state) {
  world_t* w = *state;
  open_world(w);
  w->with.sync_domain = KILN_SYNC_DOMAIN_REMOTE;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN);
  assert_int_equal(last_value()->sync_domain, 1);
  w->with.given = KILN_LAUNCH_GIVEN_SYNC_MAP;
  w->with.sync_map_remote = 3;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP);
  assert_int_equal(last_value()->sync_map.normal, 0);
  assert_int_equal(last_value()->sync_map.remote, 3);
  w->with.given = KILN_LAUNCH_GIVEN_SYNC_MAP;
  w->with.sync_map_default = 4;
  refused(w, KILN_STATUS_LIMIT_EXCEEDED, "memory domain is 4 and the device");
  w->with.sync_domain = 3;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "`sync_domain` is 3");
  w->with.given = KILN_LAUNCH_GIVEN_CARVEOUT;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  assert_int_equal(last_value()->carveout, 0);
  w->with.given = KILN_LAUNCH_GIVEN_CARVEOUT;
  w->with.carveout = 101;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "`carveout` is 101");
  w->with.shared_mode = KILN_SHARED_MODE_OPTIN;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE);
  assert_int_equal(last_value()->shared_mode, 2);
  w->with.shared_mode = 5;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "`shared_mode` is 5");
  close_world(w);
}

static void test_windows(void** state) {
  world_t* w = *state;
  open_world(w);
  w->with.window_address = 0x12345;
  w->with.window_bytes = 1 << 20;
  w->with.window_ratio = 0.5f;
  w->with.window_hit = KILN_CACHE_ACCESS_PERSISTING;
  w->with.window_miss = KILN_CACHE_ACCESS_STREAMING;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW);
  assert_true(last_value()->window.address == (void*)(uintptr_t)0x12345);
  assert_int_equal(last_value()->window.bytes, 1 << 20);
  assert_true(last_value()->window.hit_ratio == 0.5f);
  assert_int_equal(last_value()->window.hit, 2);
  assert_int_equal(last_value()->window.miss, 1);
  w->with.window_bytes = (1 << 20) + 1;
  refused(w, KILN_STATUS_LIMIT_EXCEEDED, "is 1048577 and the device has");
  w->with.window_bytes = 1;
  w->with.window_ratio = 1.5f;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "`window_ratio` is 1.5");
  w->with.window_bytes = 1;
  w->with.window_miss = KILN_CACHE_ACCESS_PERSISTING;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "`window_miss` is 2");
  w->with.window_bytes = 1;
  w->with.window_hit = 3;
  refused(w, KILN_STATUS_INVALID_ARGUMENT, "`window_hit` is 3");
  close_world(w);
  g_seen.window = 0;
  g_seen.domains = 0;
  open_world(w);
  w->with.window_bytes = 1;
  refused(w, KILN_STATUS_UNSUPPORTED, "access policy windows");
  w->with.sync_domain = KILN_SYNC_DOMAIN_DEFAULT;
  refused(w, KILN_STATUS_UNSUPPORTED, "synchronization domains");
  w->with.given = KILN_LAUNCH_GIVEN_SYNC_MAP;
  refused(w, KILN_STATUS_UNSUPPORTED, "synchronization domains");
  close_world(w);
}

// A part has fewer multiprocessors than the device of the kernel: what counts
// is where the stream is, and that is known when the launch runs.
static void test_cooperative_on_a_part(void** state) {
  world_t* w = *state;
  kiln_device_t* parts[2] = {NULL, NULL};
  kiln_stream_t* stream = NULL;
  kiln_kernel_t* none = NULL;
  kiln_launch_t* launch = NULL;
  kiln_module_t* module = NULL;
  const kiln_bytes_view_t image = {(const uint8_t*)kPtx, sizeof(kPtx) - 1};
  open_world(w);
  assert_null(kiln_device_split(w->in.device, NULL, 2, parts, NULL));
  assert_null(kiln_stream_create(parts[1], NULL, &stream));
  assert_null(kiln_kernel_create(w->module, "none", &none));
  w->with.cooperative = KILN_SWITCH_ON;
  w->config.grid[0] = 4;
  assert_null(kiln_launch_create(none, &w->config, &launch));
  assert_null(kiln_launch_run(launch, stream));
  assert_null(kiln_kernel_launch(none, stream, &w->config, NULL, 0));
  const uint32_t launches = g_seen.launches_ex;
  w->config.grid[0] = 5;
  assert_null(kiln_launch_set_grid(launch, 5, 1, 1));
  assert_says(kiln_launch_run(launch, stream), KILN_STATUS_LIMIT_EXCEEDED,
              "is 5 and \"cuda:0/1\" at once has 4");
  assert_says(kiln_kernel_launch(none, stream, &w->config, NULL, 0),
              KILN_STATUS_LIMIT_EXCEEDED, "is 5 and \"cuda:0/1\"");
  assert_int_equal(g_seen.launches_ex, launches);
  assert_null(kiln_launch_run(launch, w->in.stream));
  kiln_launch_release(launch);
  kiln_kernel_release(none);
  // A kernel that was loaded on a part is not of that part alone.
  assert_null(kiln_module_load(parts[0], image, NULL, NULL, &module));
  assert_null(kiln_kernel_create(module, "none", &none));
  w->config.grid[0] = 8;
  assert_null(kiln_kernel_launch(none, w->in.stream, &w->config, NULL, 0));
  kiln_kernel_release(none);
  kiln_module_release(module);
  kiln_stream_release(stream);
  kiln_device_release(parts[0]);
  kiln_device_release(parts[1]);
  close_world(w);
}

// Each attribute on the driver before the one that brought it.
static void test_old_drivers(void** state) {
  world_t* w = *state;
  kiln_event_t* event = NULL;
  g_seen.version = 12000;
  open_world(w);
  assert_null(kiln_event_create(w->in.device, NULL, &event));
  const kiln_status_code_t code = KILN_STATUS_INCOMPATIBLE;
  w->with.completion_event = event;
  refused(w, code, "`completion_event` needs a driver for CUDA 12.3");
  w->with.given = KILN_LAUNCH_GIVEN_CARVEOUT;
  refused(w, code, "`carveout` needs a driver for CUDA 12.5");
  w->with.cluster[0] = w->with.preferred_cluster[0] = 1;
  refused(w, code, "`preferred_cluster` needs a driver for CUDA 12.8");
  w->with.nvlink_centric = KILN_SWITCH_ON;
  refused(w, code, "`nvlink_centric` needs a driver for CUDA 13.0");
  w->with.shared_mode = KILN_SHARED_MODE_PORTABLE;
  refused(w, code, "that of \"cuda:0\" is for 12.0");
  kiln_event_release(event);
  close_world(w);
}

static void test_old_devices(void** state) {
  world_t* w = *state;
  kiln_event_t* event = NULL;
  g_seen.compute = 89;
  open_world(w);
  assert_null(kiln_event_create(w->in.device, NULL, &event));
  w->with.overlap = KILN_SWITCH_ON;
  refused(w, KILN_STATUS_UNSUPPORTED,
          "`overlap` needs compute capability 9.0, and \"cuda:0\" has 8.9");
  w->with.programmatic_event = event;
  refused(w, KILN_STATUS_UNSUPPORTED, "`programmatic_event`");
  w->with.completion_event = event;
  taken(w, KILN_CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
  kiln_event_release(event);
  close_world(w);
}

// ---- Every allocation fails ----

static void test_every_allocation_fails(void** state) {
  world_t* w = *state;
  kiln_launch_t* launch = NULL;
  kiln_event_t* event = NULL;
  uint64_t points = 0;
  open_world(w);
  assert_null(kiln_event_create(w->in.device, NULL, &event));
  w->with.completion_event = event;
  for (;;) {
    fault_alloc_arm(&w->in.watch, points + 1, false);
    kiln_status_t status = create(w, &launch);
    (void)fault_alloc_disarm(&w->in.watch);
    if (kiln_status_is_ok(status)) break;
    assert_int_equal(kiln_status_code(status), KILN_STATUS_OUT_OF_MEMORY);
    assert_null(launch);
    points++;
  }
  assert_int_equal(points, 5);  // object, bytes, list, marks, buffers
  kiln_launch_release(launch);
  kiln_event_release(event);
  close_world(w);
}

// Every driver call of a launch with attributes fails in turn: a status and
// nothing else is left, and the caller's context is what it was.
static void test_every_call_fails(void** state) {
  world_t* w = *state;
  kiln_argument_t arguments[5];
  uint8_t bytes[24] = {0};
  uint64_t points = 0;
  kiln_cu_context_t foreign = (kiln_cu_context_t)(uintptr_t)0xf04e1600;
  g_seen.version = 13000;  // the kernel is asked for a large cluster
  assert_null(kilni_table_cuda_fault_install(&w->in.table, &w->in.table));
  open_world(w);
  fill(w, arguments, bytes, bytes);
  assert_int_equal(g_under.cuCtxSetCurrent(foreign), KILN_CU_SUCCESS);
  for (uint64_t nth = 1;; nth++) {
    kiln_launch_t* launch = NULL;
    kiln_cu_context_t now = NULL;
    w->with.cooperative = KILN_SWITCH_ON;
    w->with.cluster[0] = 2;
    w->with.cluster_size = KILN_CLUSTER_SIZE_ANY;
    w->with.given = KILN_LAUNCH_GIVEN_PRIORITY;
    w->config.grid[0] = 2;
    w->config.shared_bytes = 100000;
    kilni_table_cuda_fault_arm(&w->in.table, nth, KILNI_FAULT_ONCE,
                               KILN_CU_ERROR_INVALID_HANDLE);
    kiln_status_t status = create(w, &launch);
    assert_int_equal(launch == NULL, !kiln_status_is_ok(status));
    if (launch != NULL) status = kiln_launch_set_all(launch, arguments, 5);
    if (launch != NULL && kiln_status_is_ok(status)) {
      status = kiln_launch_run(launch, w->in.stream);
    }
    bool hit = kilni_table_cuda_fault_hit(&w->in.table) != NULL;
    points = kilni_table_cuda_fault_disarm(&w->in.table);
    kiln_launch_release(launch);
    assert_int_equal(hit, !kiln_status_is_ok(status));
    kiln_status_free(status);
    // Where putting it back was what failed, the device's stays.
    assert_int_equal(g_under.cuCtxGetCurrent(&now), KILN_CU_SUCCESS);
    assert_true(now == foreign || hit);
    assert_int_equal(g_under.cuCtxSetCurrent(foreign), KILN_CU_SUCCESS);
    if (!hit) break;
  }
  print_message("%u calls failed in turn\n", (unsigned)points);
  assert_true(points >= 10);
  assert_int_equal(g_under.cuCtxSetCurrent(NULL), KILN_CU_SUCCESS);
  close_world(w);
  kilni_table_cuda_fault_remove(&w->in.table);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_arguments_arrive, setup, teardown),
      cmocka_unit_test_setup_teardown(test_wrong_arguments, setup, teardown),
      cmocka_unit_test_setup_teardown(test_no_arguments, setup, teardown),
      cmocka_unit_test_setup_teardown(test_unknown_parameters, setup, teardown),
      cmocka_unit_test_setup_teardown(test_argument_bytes_by_version, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_the_grid_changes, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_refusal_of_the_driver, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_runs_that_must_not_be, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_cooperative, setup, teardown),
      cmocka_unit_test_setup_teardown(test_cooperative_on_a_part, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_clusters, setup, teardown),
      cmocka_unit_test_setup_teardown(test_large_clusters, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_kernel_for_clusters_only, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_a_kernel_with_its_own_clusters,
                                      setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_stranger_for_clusters_only, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_events, setup, teardown),
      cmocka_unit_test_setup_teardown(test_order_and_place, setup, teardown),
      cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
      cmocka_unit_test_setup_teardown(test_windows, setup, teardown),
      cmocka_unit_test_setup_teardown(test_old_drivers, setup, teardown),
      cmocka_unit_test_setup_teardown(test_old_devices, setup, teardown),
      cmocka_unit_test_setup_teardown(test_every_allocation_fails, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(test_every_call_fails, setup, teardown),
  };
  return cmocka_run_group_tests_name("device: launch", tests, NULL, NULL);
}
