// SPDX-License-Identifier: Apache-2.0
//
// device: a launch, checked before the driver sees it.
//
// For up to 32 arguments this allocates nothing and takes no lock.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "device/device_inside.h"

enum {
  FEW_ARGUMENTS = 32,    // prepared on the stack
  MAX_ARGUMENTS = 4096,  //
  PACKED_BYTES = 4096,   // parameters of a kernel that nobody describes
};

// What the driver is handed. one-thread
typedef struct call_t {
  kiln_kernel_t* kernel;
  kiln_stream_t* stream;
  kiln_launch_config_t config;
  const kiln_argument_t* arguments;
  uint32_t count;
  void** values;        // one address for each argument
  uint64_t* addresses;  // of buffers
} call_t;

// ---- The shape ----

static kiln_status_t over_limit(const call_t* call, const char* what,
                                uint64_t value, uint64_t limit,
                                const char* whose) {
  return kilni_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED, "kernel \"%s\": %s is %llu and %s has %llu",
                 call->kernel->name, what, (unsigned long long)value, whose,
                 (unsigned long long)limit),
      "use %s of at most %llu", what, (unsigned long long)limit);
}

static kiln_status_t check_shape(call_t* call) {
  const kiln_device_info_t* device = &call->kernel->module->device->info;
  kiln_launch_config_t* config = &call->config;
  static const char* const grid[] = {"grid.x", "grid.y", "grid.z"};
  static const char* const block[] = {"block.x", "block.y", "block.z"};
  uint64_t threads = 1;
  for (int i = 0; i < 3; i++) {
    if (config->grid[i] == 0) config->grid[i] = 1;
    if (config->block[i] == 0) config->block[i] = 1;
    if (config->grid[i] > device->max_grid[i]) {
      return over_limit(call, grid[i], config->grid[i], device->max_grid[i],
                        "the device");
    }
    if (config->block[i] > device->max_block[i]) {
      return over_limit(call, block[i], config->block[i], device->max_block[i],
                        "the device");
    }
    threads *= config->block[i];
  }
  if (threads > device->max_threads_per_block) {
    return over_limit(call, "the number of threads in a block", threads,
                      device->max_threads_per_block, "the device");
  }
  uint32_t kernel_max = call->kernel->info.max_threads;
  if (kernel_max != 0 && threads > kernel_max) {
    return over_limit(call, "the number of threads in a block", threads,
                      kernel_max, "the kernel");
  }
  const uint32_t* required = call->kernel->info.required_block;
  bool any = required[0] != 0;
  if (any && memcmp(required, config->block, sizeof(config->block)) != 0) {
    return kilni_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "kernel \"%s\" requires blocks of %u,%u,%u and is launched "
                   "with %u,%u,%u",
                   call->kernel->name, (unsigned)required[0],
                   (unsigned)required[1], (unsigned)required[2],
                   (unsigned)config->block[0], (unsigned)config->block[1],
                   (unsigned)config->block[2]),
        "use its block");
  }
  return NULL;
}

// More than a block has by default must be asked for, once for a kernel. The
// most it may have is asked for, so that no later launch needs to.
static kiln_status_t check_shared(call_t* call) {
  kiln_kernel_t* kernel = call->kernel;
  kiln_device_t* device = kernel->module->device;
  uint64_t fixed = kernel->info.static_shared_bytes;
  uint64_t total = fixed + call->config.shared_bytes;
  uint64_t most = device->info.shared_optin_bytes;
  if (most < device->info.shared_bytes) most = device->info.shared_bytes;
  if (total > most) {
    return over_limit(call, "the shared memory of a block in bytes", total,
                      most, "the device");
  }
  if (call->config.shared_bytes == 0 || total <= device->info.shared_bytes ||
      atomic_load_explicit(&kernel->opted_in, memory_order_acquire)) {
    return NULL;
  }
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuFuncSetAttribute, kernel->handle,
                    KILN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    (int)(most - fixed));
  if (kiln_status_is_ok(status)) {
    atomic_store_explicit(&kernel->opted_in, true, memory_order_release);
  }
  return status;
}

// ---- The arguments ----

static const char* argument_word(uint32_t kind) {
  switch (kind) {
    case KILN_ARGUMENT_INTEGER:
      return "an integer";
    case KILN_ARGUMENT_FLOAT:
      return "a float";
    case KILN_ARGUMENT_BUFFER:
      return "a buffer";
    case KILN_ARGUMENT_POINTER:
      return "a pointer";
    case KILN_ARGUMENT_BYTES:
      return "bytes";
    default:
      return "nothing known";
  }
}

static const char* param_word(uint32_t kind) {
  switch (kind) {
    case KILN_PARAM_KIND_INTEGER:
      return "an integer or address";
    case KILN_PARAM_KIND_FLOAT:
      return "a float";
    case KILN_PARAM_KIND_POINTER:
      return "an address";
    case KILN_PARAM_KIND_BYTES:
      return "a struct";
    default:
      return "a value";
  }
}

// INVALID_ARGUMENT that names the parameter.
static kiln_status_t mismatch(const call_t* call, uint32_t index) {
  const kiln_kernel_param_t* param = &call->kernel->params[index];
  const kiln_argument_t* argument = &call->arguments[index];
  return kilni_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "parameter %u%s%s%s of kernel \"%s\" is %s of %u bytes, and "
                 "the argument is %s of %u bytes",
                 (unsigned)index, param->name[0] ? " (\"" : "", param->name,
                 param->name[0] ? "\")" : "", call->kernel->name,
                 param_word(param->kind), (unsigned)param->bytes,
                 argument_word(argument->kind), (unsigned)argument->bytes),
      "give the argument in the parameter's own type and size");
}

static bool kinds_fit(uint32_t param, uint32_t argument) {
  if (argument == KILN_ARGUMENT_BYTES) return true;
  switch (param) {
    case KILN_PARAM_KIND_INTEGER:
    case KILN_PARAM_KIND_POINTER:
      return argument != KILN_ARGUMENT_FLOAT;
    case KILN_PARAM_KIND_FLOAT:
      return argument == KILN_ARGUMENT_FLOAT;
    default:
      return true;
  }
}

static kiln_status_t bad_argument(const call_t* call, uint32_t index,
                                  const char* why) {
  return kilni_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "argument %u of kernel \"%s\" is %s",
                 (unsigned)index, call->kernel->name, why),
      "make arguments with the kiln_arg_... functions, from live objects");
}

// Where the driver finds the value of one argument.
static kiln_status_t place(call_t* call, uint32_t index) {
  const kiln_argument_t* argument = &call->arguments[index];
  const void* at = &argument->value;
  switch (argument->kind) {
    case KILN_ARGUMENT_INTEGER:
    case KILN_ARGUMENT_FLOAT:
    case KILN_ARGUMENT_POINTER:
      if (argument->bytes != 4 && argument->bytes != 8) {
        return bad_argument(call, index, "a value of neither 4 nor 8 bytes");
      }
      break;
    case KILN_ARGUMENT_BUFFER:
      if (argument->value.buffer == NULL) {
        return bad_argument(call, index, "a buffer that is NULL");
      }
      KILNI_RETURN_IF_ERROR(
          kilni_device_check_same(call->kernel->module->device,
                                  argument->value.buffer->device, "a buffer"));
      call->addresses[index] = argument->value.buffer->address;
      at = &call->addresses[index];
      break;
    case KILN_ARGUMENT_BYTES:
      if (argument->value.data == NULL || argument->bytes == 0) {
        return bad_argument(call, index, "bytes that are not there");
      }
      at = argument->value.data;
      break;
    default:
      return bad_argument(call, index, "of no kind that is known");
  }
  // The driver only reads; its interface says void* all the same.
  memcpy(&call->values[index], &at, sizeof(at));
  return NULL;
}

static kiln_status_t prepare(call_t* call) {
  const kiln_kernel_info_t* info = &call->kernel->info;
  if (info->params_known && call->count != info->param_count) {
    return kilni_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "kernel \"%s\" takes %u argument%s and is given %u",
                   call->kernel->name, (unsigned)info->param_count,
                   info->param_count == 1 ? "" : "s", (unsigned)call->count),
        "give one argument for each parameter; `kiln inspect` lists them");
  }
  for (uint32_t i = 0; i < call->count; i++) {
    KILNI_RETURN_IF_ERROR(place(call, i));
    if (!info->params_known) continue;
    const kiln_kernel_param_t* param = &call->kernel->params[i];
    if (call->arguments[i].bytes != param->bytes ||
        !kinds_fit(param->kind, call->arguments[i].kind)) {
      return mismatch(call, i);
    }
  }
  return NULL;
}

// ---- The call ----

static kiln_status_t launch(const call_t* call, void** values, void** extra) {
  const kiln_launch_config_t* config = &call->config;
  kiln_status_t status;
  KILNI_STREAM_CALL(status, call->stream, cuLaunchKernel, call->kernel->handle,
                    config->grid[0], config->grid[1], config->grid[2],
                    config->block[0], config->block[1], config->block[2],
                    config->shared_bytes, call->stream->handle, values, extra);
  if (kiln_status_is_ok(status)) return NULL;
  return KILNI_ANNOTATE(
      status, "launching \"%s\" with grid %u,%u,%u and block %u,%u,%u",
      call->kernel->name, (unsigned)config->grid[0], (unsigned)config->grid[1],
      (unsigned)config->grid[2], (unsigned)config->block[0],
      (unsigned)config->block[1], (unsigned)config->block[2]);
}

// A kernel that nobody describes (an old driver, a cubin): packed by size,
// since the driver then compares the whole size with the kernel's and refuses
// another, where a list of addresses would be read past its end.
static kiln_status_t launch_packed(const call_t* call) {
  _Alignas(16) uint8_t packed[PACKED_BYTES];
  size_t at = 0;
  for (uint32_t i = 0; i < call->count; i++) {
    size_t bytes = call->arguments[i].bytes;
    size_t align = 1;
    while (align < 8 && bytes % (align * 2) == 0) align *= 2;
    at = (at + align - 1) / align * align;
    if (bytes > sizeof(packed) - at) {
      return over_limit(call, "the size of all arguments in bytes", at + bytes,
                        sizeof(packed), "a kernel without a description");
    }
    memcpy(packed + at, call->values[i], bytes);
    at += bytes;
  }
  void* extra[] = {KILN_CU_LAUNCH_PARAM_BUFFER_POINTER, packed,
                   KILN_CU_LAUNCH_PARAM_BUFFER_SIZE, &at,
                   KILN_CU_LAUNCH_PARAM_END};
  return launch(call, NULL, extra);
}

static kiln_status_t launch_with(call_t* call, void** values,
                                 uint64_t* addresses) {
  call->values = values;
  call->addresses = addresses;
  KILNI_RETURN_IF_ERROR(prepare(call));
  KILNI_RETURN_IF_ERROR(check_shared(call));
  if (!call->kernel->info.params_known && call->count > 0) {
    return launch_packed(call);
  }
  // No arguments are no list: a driver that knows of parameters then refuses,
  // instead of reading what was never written.
  return launch(call, call->count > 0 ? values : NULL, NULL);
}

static kiln_status_t launch_many(call_t* call) {
  if (call->count > MAX_ARGUMENTS) {
    return over_limit(call, "the number of arguments", call->count,
                      MAX_ARGUMENTS, "a launch");
  }
  kiln_allocator_t allocator = call->kernel->module->device->host->allocator;
  void* values = NULL;
  void* addresses = NULL;
  kiln_status_t status =
      kilni_alloc_array(allocator, call->count, sizeof(void*), &values);
  if (kiln_status_is_ok(status)) {
    status =
        kilni_alloc_array(allocator, call->count, sizeof(uint64_t), &addresses);
  }
  if (kiln_status_is_ok(status)) status = launch_with(call, values, addresses);
  kilni_free_array(allocator, addresses, call->count, sizeof(uint64_t));
  kilni_free_array(allocator, values, call->count, sizeof(void*));
  return status;
}

kiln_status_t kiln_kernel_launch(kiln_kernel_t* kernel, kiln_stream_t* stream,
                                 const kiln_launch_config_t* config,
                                 const kiln_argument_t* arguments,
                                 uint32_t argument_count) {
  KILNI_CHECK_ARGUMENT(kernel != NULL, "kernel");
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_CHECK_ARGUMENT(arguments != NULL || argument_count == 0, "arguments");
  call_t call = {0};
  call.kernel = kernel;
  call.stream = stream;
  call.arguments = arguments;
  call.count = argument_count;
  KILNI_RETURN_IF_ERROR(kilni_options_read(config, "kiln_launch_config_t",
                                           sizeof(call.config), &call.config));
  KILNI_RETURN_IF_ERROR(kilni_device_check_same(kernel->module->device,
                                                stream->device, "the stream"));
  KILNI_RETURN_IF_ERROR(check_shape(&call));
  if (argument_count > FEW_ARGUMENTS) return launch_many(&call);
  void* values[FEW_ARGUMENTS];
  uint64_t addresses[FEW_ARGUMENTS];
  return launch_with(&call, values, addresses);
}
