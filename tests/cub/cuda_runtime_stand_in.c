// SPDX-License-Identifier: Apache-2.0
//
// tests: the few calls of CUDA's runtime library that host code by nvcc makes
// for CUB, over the software device.
//
// KILN_TEST_PTX names the PTX of the same source, KILN_TEST_WORKERS says how
// many workers there are. A program that is built with -cudart none is linked
// with this in the runtime's place. What CUB does not ask for is not there.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/host.h"
#include "base/thread.h"
#include "soft/soft.h"
#include "table/cuda_table.h"

#define STAND_IN __attribute__((visibility("default")))

enum { MANY = 4096, INVALID_VALUE = 1, INVALID_FUNCTION = 98 };

// As CUDA's dim3. thread-compatible
typedef struct extent_t {
  unsigned int x, y, z;
} extent_t;

// As CUDA's cudaLaunchConfig_t. thread-compatible
typedef struct config_t {
  extent_t grid;
  extent_t block;
  size_t shared_bytes;
  void* stream;
  void* attributes;
  unsigned int attribute_count;
} config_t;

// The beginning of CUDA's cudaFuncAttributes. thread-compatible
typedef struct attributes_t {
  size_t shared_bytes;
  size_t const_bytes;
  size_t local_bytes;
  int threads;
  int registers;
  int ptx_version;
  int binary_version;
} attributes_t;

// A kernel, by the address of its stub. thread-compatible
typedef struct kernel_t {
  const void* stub;
  const char* name;
  kiln_cu_function_t function;
} kernel_t;

static kilni_base_env_t env;
static kiln_host_t host;
static kiln_cuda_table_t cuda;
static kiln_cu_module_t module;
static kernel_t kernels[MANY];
static uint32_t kernel_count;
static config_t pushed;
static int last_error;

static void fail(const char* what, int result) {
  fprintf(stderr, "stand-in: %s: %d\n", what, result);
  exit(1);
}

static void must(kiln_cu_result_t result, const char* what) {
  if (result != KILN_CU_SUCCESS) fail(what, (int)result);
}

static void* read_file(const char* path) {
  FILE* file = path == NULL ? NULL : fopen(path, "rb");
  if (file == NULL) fail("KILN_TEST_PTX names no file", 0);
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char* text = calloc(1, (size_t)size + 1);
  if (text == NULL || fread(text, 1, (size_t)size, file) != (size_t)size) {
    fail("KILN_TEST_PTX", 0);
  }
  fclose(file);
  return text;
}

static void stop(void) {
  kilni_soft_stop();
  kilni_base_env_deinit(&env);
}

// The device begins with the first call that needs it.
static void begin(void) {
  static bool has_begun;
  if (has_begun) return;
  has_begun = true;
  const char* workers = getenv("KILN_TEST_WORKERS");
  host = (kiln_host_t){.allocator = kiln_allocator_libc(),
                       .env = &env,
                       .worker_count = kilni_base_core_count(),
                       .process_id = kilni_base_process_id()};
  if (!kiln_status_is_ok(kilni_base_env_init(&env, host.allocator))) {
    fail("no memory", 0);
  }
  kilni_soft_options_t options = {
      .struct_size = sizeof(options),
      .worker_count =
          workers == NULL ? 0 : (uint32_t)strtoul(workers, NULL, 10)};
  kiln_status_t status = kilni_soft_start(&host, &options, &cuda);
  if (!kiln_status_is_ok(status)) fail(kiln_status_message(status), 0);
  kiln_cu_context_t context = NULL;
  must(cuda.cuInit(0), "cuInit");
  must(cuda.cuDevicePrimaryCtxRetain(&context, 0), "context");
  must(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  void* text = read_file(getenv("KILN_TEST_PTX"));
  must(cuda.cuModuleLoadData(&module, text), "cuModuleLoadData");
  free(text);
  atexit(stop);
}

static int say(kiln_cu_result_t result, const char* what) {
  if (result != KILN_CU_SUCCESS) {
    fprintf(stderr, "stand-in: %s gives %d\n", what, (int)result);
    last_error = (int)result;
  }
  return (int)result;
}

static kiln_cu_function_t find(const void* stub) {
  begin();
  for (uint32_t i = 0; i < kernel_count; i++) {
    kernel_t* kernel = &kernels[i];
    if (kernel->stub != stub) continue;
    if (kernel->function == NULL) {
      must(cuda.cuModuleGetFunction(&kernel->function, module, kernel->name),
           kernel->name);
    }
    return kernel->function;
  }
  return NULL;
}

static int launch(kiln_cu_function_t function, const config_t* config,
                  void** arguments) {
  if (function == NULL) return last_error = INVALID_FUNCTION;
  return say(
      cuda.cuLaunchKernel(function, config->grid.x, config->grid.y,
                          config->grid.z, config->block.x, config->block.y,
                          config->block.z, (unsigned int)config->shared_bytes,
                          config->stream, arguments, NULL),
      "cuLaunchKernel");
}

// ---- What nvcc's host code calls ----

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
STAND_IN void** __cudaRegisterFatBinary(void* image);
STAND_IN void __cudaRegisterFatBinaryEnd(void** handle);
STAND_IN void __cudaUnregisterFatBinary(void** handle);
STAND_IN char __cudaInitModule(void** handle);
STAND_IN void __cudaRegisterVar(void** handle, char* host_variable,
                                char* device_address, const char* name,
                                int is_extern, size_t bytes, int is_constant,
                                int is_global);
STAND_IN void __cudaRegisterFunction(void** handle, const char* stub,
                                     char* device_stub, const char* name,
                                     int limit, void* thread, void* block,
                                     void* block_size, void* grid_size,
                                     int* warp_size);
STAND_IN unsigned __cudaPushCallConfiguration(extent_t grid, extent_t block,
                                              size_t shared_bytes,
                                              void* stream);
STAND_IN int __cudaPopCallConfiguration(extent_t* grid, extent_t* block,
                                        size_t* shared_bytes, void* stream);
STAND_IN int __cudaGetKernel(void** out_kernel, const void* stub);
STAND_IN int __cudaLaunchKernel(void* kernel, extent_t grid, extent_t block,
                                void** arguments, size_t shared_bytes,
                                void* stream);

STAND_IN void** __cudaRegisterFatBinary(void* image) {
  static void* handle;
  handle = image;
  return &handle;
}

STAND_IN void __cudaRegisterFatBinaryEnd(void** handle) {
  (void)handle;
}

STAND_IN void __cudaUnregisterFatBinary(void** handle) {
  (void)handle;
}

STAND_IN char __cudaInitModule(void** handle) {
  (void)handle;
  return 1;
}

STAND_IN void __cudaRegisterVar(void** handle, char* host_variable,
                                char* device_address, const char* name,
                                int is_extern, size_t bytes, int is_constant,
                                int is_global) {
  (void)handle, (void)host_variable, (void)device_address, (void)name;
  (void)is_extern, (void)bytes, (void)is_constant, (void)is_global;
}

STAND_IN void __cudaRegisterFunction(void** handle, const char* stub,
                                     char* device_stub, const char* name,
                                     int limit, void* thread, void* block,
                                     void* block_size, void* grid_size,
                                     int* warp_size) {
  (void)handle, (void)device_stub, (void)limit, (void)thread, (void)block;
  (void)block_size, (void)grid_size, (void)warp_size;
  if (kernel_count == MANY) fail("too many kernels", MANY);
  kernels[kernel_count++] = (kernel_t){stub, name, NULL};
}

STAND_IN unsigned __cudaPushCallConfiguration(extent_t grid, extent_t block,
                                              size_t shared_bytes,
                                              void* stream) {
  pushed = (config_t){grid, block, shared_bytes, stream, NULL, 0};
  return 0;
}

STAND_IN int __cudaPopCallConfiguration(extent_t* grid, extent_t* block,
                                        size_t* shared_bytes, void* stream) {
  *grid = pushed.grid;
  *block = pushed.block;
  *shared_bytes = pushed.shared_bytes;
  *(void**)stream = pushed.stream;
  return 0;
}

STAND_IN int __cudaGetKernel(void** out_kernel, const void* stub) {
  *out_kernel = find(stub);
  return *out_kernel == NULL ? INVALID_FUNCTION : 0;
}

STAND_IN int __cudaLaunchKernel(void* kernel, extent_t grid, extent_t block,
                                void** arguments, size_t shared_bytes,
                                void* stream) {
  config_t config = {grid, block, shared_bytes, stream, NULL, 0};
  return launch(kernel, &config, arguments);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

// ---- What CUB calls ----

STAND_IN int cudaLaunchKernel(const void* stub, extent_t grid, extent_t block,
                              void** arguments, size_t shared_bytes,
                              void* stream);
STAND_IN int cudaLaunchKernelExC(const config_t* config, const void* stub,
                                 void** arguments);
STAND_IN int cudaGetDevice(int* device);
STAND_IN int cudaSetDevice(int device);
STAND_IN int cudaGetDeviceCount(int* count);
STAND_IN int cudaDeviceGetAttribute(int* value, int attribute, int device);
STAND_IN int cudaFuncGetAttributes(attributes_t* out, const void* stub);
STAND_IN int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* stub, int threads, size_t shared_bytes,
    unsigned int flags);
STAND_IN int cudaGetLastError(void);
STAND_IN int cudaPeekAtLastError(void);
STAND_IN const char* cudaGetErrorString(int error);
STAND_IN const char* cudaGetErrorName(int error);
STAND_IN int cudaMalloc(void** address, size_t bytes);
STAND_IN int cudaFree(void* address);
STAND_IN int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind,
                             void* stream);
STAND_IN int cudaMemsetAsync(void* to, int value, size_t bytes, void* stream);
STAND_IN int cudaStreamSynchronize(void* stream);
STAND_IN int cudaDeviceSynchronize(void);

STAND_IN int cudaLaunchKernel(const void* stub, extent_t grid, extent_t block,
                              void** arguments, size_t shared_bytes,
                              void* stream) {
  config_t config = {grid, block, shared_bytes, stream, NULL, 0};
  return launch(find(stub), &config, arguments);
}

// Its attributes are hints that change no result.
STAND_IN int cudaLaunchKernelExC(const config_t* config, const void* stub,
                                 void** arguments) {
  return launch(find(stub), config, arguments);
}

STAND_IN int cudaGetDevice(int* device) {
  *device = 0;
  return 0;
}

STAND_IN int cudaSetDevice(int device) {
  return device == 0 ? 0 : INVALID_VALUE;
}

STAND_IN int cudaGetDeviceCount(int* count) {
  *count = 1;
  return 0;
}

STAND_IN int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  begin();
  return say(cuda.cuDeviceGetAttribute(
                 value, (kiln_cu_device_attribute_t)attribute, device),
             "cuDeviceGetAttribute");
}

// 75, that of the PTX, chooses CUB's tuning.
STAND_IN int cudaFuncGetAttributes(attributes_t* out, const void* stub) {
  kiln_cu_function_t function = find(stub);
  if (function == NULL) return last_error = INVALID_FUNCTION;
  memset(out, 0, sizeof(*out));
  out->threads = 1024;
  out->registers = 32;
  out->ptx_version = 75;
  out->binary_version = 75;
  return 0;
}

STAND_IN int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* stub, int threads, size_t shared_bytes,
    unsigned int flags) {
  (void)flags;
  kiln_cu_function_t function = find(stub);
  if (function == NULL) return last_error = INVALID_FUNCTION;
  return say(cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                 blocks, function, threads, shared_bytes),
             "cuOccupancyMaxActiveBlocksPerMultiprocessor");
}

STAND_IN int cudaGetLastError(void) {
  int error = last_error;
  last_error = 0;
  return error;
}

STAND_IN int cudaPeekAtLastError(void) {
  return last_error;
}

STAND_IN const char* cudaGetErrorString(int error) {
  return error == 0 ? "no error" : "an error of the stand-in";
}

STAND_IN const char* cudaGetErrorName(int error) {
  return cudaGetErrorString(error);
}

STAND_IN int cudaMalloc(void** address, size_t bytes) {
  kiln_cu_deviceptr_t found = 0;
  begin();
  int result = say(cuda.cuMemAlloc(&found, bytes), "cuMemAlloc");
  *address = (void*)(uintptr_t)found;
  return result;
}

STAND_IN int cudaFree(void* address) {
  begin();
  if (address == NULL) return 0;
  return say(cuda.cuMemFree((uintptr_t)address), "cuMemFree");
}

STAND_IN int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind,
                             void* stream) {
  begin();
  kiln_cu_deviceptr_t there = (uintptr_t)to;
  kiln_cu_deviceptr_t here = (uintptr_t)from;
  if (kind == 1) {
    return say(cuda.cuMemcpyHtoDAsync(there, from, bytes, stream), "copy in");
  }
  if (kind == 2) {
    return say(cuda.cuMemcpyDtoHAsync(to, here, bytes, stream), "copy out");
  }
  return say(cuda.cuMemcpyDtoDAsync(there, here, bytes, stream), "copy");
}

STAND_IN int cudaMemsetAsync(void* to, int value, size_t bytes, void* stream) {
  begin();
  return say(
      cuda.cuMemsetD8Async((uintptr_t)to, (unsigned char)value, bytes, stream),
      "cuMemsetD8Async");
}

STAND_IN int cudaStreamSynchronize(void* stream) {
  begin();
  return say(cuda.cuStreamSynchronize(stream), "cuStreamSynchronize");
}

STAND_IN int cudaDeviceSynchronize(void) {
  begin();
  return say(cuda.cuCtxSynchronize(), "cuCtxSynchronize");
}
