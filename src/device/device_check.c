// SPDX-License-Identifier: Apache-2.0
//
// device: a launch, checked before the driver sees it: shape, shared memory,
// arguments.
#include <string.h>

#include "base/status_make.h"
#include "device/device_scope.h"
#include "device/launch_check.h"

// Bytes of all arguments; more since CUDA 12.1, on compute capability 7.0.
enum {
  ARGUMENT_BYTES = 4096,
  MORE_ARGUMENT_BYTES = 32764,
  MORE_ARGUMENTS_SINCE = 12010,
  MORE_ARGUMENTS_COMPUTE = 7,
};

// ---- The shape ----

kiln_status_t kilni_device_launch_over(const kiln_kernel_t* kernel,
                                       const char* what, uint64_t value,
                                       uint64_t limit, const char* whose) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED, "kernel \"%s\": %s is %llu and %s has %llu",
                 kernel->name, what, (unsigned long long)value, whose,
                 (unsigned long long)limit),
      "use at most %llu", (unsigned long long)limit);
}

kiln_status_t kilni_device_launch_check_shape(const kiln_kernel_t* kernel,
                                              kiln_launch_config_t* config) {
  const kiln_device_info_t* device = &kernel->module->device->info;
  static const char* const grid[] = {"grid.x", "grid.y", "grid.z"};
  static const char* const block[] = {"block.x", "block.y", "block.z"};
  uint64_t threads = 1;
  uint64_t argument_limit =
      kilni_device_launch_argument_limit(kernel->module->device);
  if (kernel->info.param_bytes > argument_limit) {
    return kilni_device_launch_over(
        kernel, "the size of all arguments in bytes", kernel->info.param_bytes,
        argument_limit, "a launch on this device and driver");
  }
  for (int i = 0; i < 3; i++) {
    if (config->grid[i] == 0) config->grid[i] = 1;
    if (config->block[i] == 0) config->block[i] = 1;
    if (config->grid[i] > device->max_grid[i]) {
      return kilni_device_launch_over(kernel, grid[i], config->grid[i],
                                      device->max_grid[i], "the device");
    }
    if (config->block[i] > device->max_block[i]) {
      return kilni_device_launch_over(kernel, block[i], config->block[i],
                                      device->max_block[i], "the device");
    }
    threads *= config->block[i];
  }
  if (threads > device->max_threads_per_block) {
    return kilni_device_launch_over(kernel, "the number of threads in a block",
                                    threads, device->max_threads_per_block,
                                    "the device");
  }
  uint32_t kernel_max = kernel->info.max_threads;
  if (kernel_max != 0 && threads > kernel_max) {
    return kilni_device_launch_over(kernel, "the number of threads in a block",
                                    threads, kernel_max, "the kernel");
  }
  const uint32_t* required = kernel->info.required_block;
  bool any = required[0] != 0;
  if (any && memcmp(required, config->block, sizeof(config->block)) != 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "kernel \"%s\" requires blocks of %u,%u,%u and is launched "
                   "with %u,%u,%u",
                   kernel->name, (unsigned)required[0], (unsigned)required[1],
                   (unsigned)required[2], (unsigned)config->block[0],
                   (unsigned)config->block[1], (unsigned)config->block[2]),
        "use its block");
  }
  return kiln_ok();
}

// More than a block has by default must be requested, once for each kernel. The
// maximum is requested, so that no later launch needs to.
kiln_status_t kilni_device_launch_need_shared(
    kiln_kernel_t* kernel, const kiln_launch_config_t* config) {
  kiln_device_t* device = kernel->module->device;
  uint64_t fixed = kernel->info.static_shared_bytes;
  uint64_t total = fixed + config->shared_bytes;
  uint64_t most = device->info.shared_optin_bytes;
  if (most < device->info.shared_bytes) most = device->info.shared_bytes;
  if (total > most) {
    return kilni_device_launch_over(kernel,
                                    "the shared memory of a block in bytes",
                                    total, most, "the device");
  }
  if (config->shared_bytes == 0 || total <= device->info.shared_bytes ||
      atomic_load_explicit(&kernel->opted_in, memory_order_acquire)) {
    return kiln_ok();
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
      return "of unknown type";
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
static kiln_status_t mismatch(const kiln_kernel_t* kernel, uint32_t index,
                              const kiln_argument_t* argument) {
  const kiln_kernel_param_t* param = &kernel->params[index];
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "parameter %u%s%s%s of kernel \"%s\" is %s of %u bytes, and "
                 "the argument is %s of %u bytes",
                 (unsigned)index, param->name[0] ? " (\"" : "", param->name,
                 param->name[0] ? "\")" : "", kernel->name,
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

static kiln_status_t bad_argument(const kiln_kernel_t* kernel, uint32_t index,
                                  const char* why) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "argument %u of kernel \"%s\" is %s",
                 (unsigned)index, kernel->name, why),
      "make arguments with the kiln_arg_... functions, from live objects");
}

// Where the bytes of an argument are.
static kiln_status_t device_check_place(const kiln_kernel_t* kernel,
                                        uint32_t index,
                                        const kiln_argument_t* argument,
                                        uint64_t* scratch,
                                        const void** out_at) {
  *out_at = &argument->value;
  switch (argument->kind) {
    case KILN_ARGUMENT_INTEGER:
    case KILN_ARGUMENT_FLOAT:
    case KILN_ARGUMENT_POINTER:
      if (argument->bytes != 4 && argument->bytes != 8) {
        return bad_argument(kernel, index, "a value of neither 4 nor 8 bytes");
      }
      return kiln_ok();
    case KILN_ARGUMENT_BUFFER:
      if (argument->value.buffer == NULL) {
        return bad_argument(kernel, index, "a buffer that is NULL");
      }
      if (argument->bytes != sizeof(*scratch)) {
        return bad_argument(kernel, index,
                            "a buffer's address, of other than "
                            "8 bytes");
      }
      KILNI_RETURN_IF_ERROR(kilni_device_check_memory(
          kernel->module->device, argument->value.buffer->device, "a buffer"));
      *scratch = argument->value.buffer->address;
      *out_at = scratch;
      return kiln_ok();
    case KILN_ARGUMENT_BYTES:
      if (argument->value.data == NULL || argument->bytes == 0) {
        return bad_argument(kernel, index, "bytes at a NULL address");
      }
      *out_at = argument->value.data;
      return kiln_ok();
    default:
      return bad_argument(kernel, index, "of an unknown kind");
  }
}

kiln_status_t kilni_device_argument_read(const kiln_kernel_t* kernel,
                                         uint32_t index,
                                         const kiln_argument_t* argument,
                                         uint64_t* scratch,
                                         const void** out_at) {
  KILNI_RETURN_IF_ERROR(
      device_check_place(kernel, index, argument, scratch, out_at));
  if (!kernel->info.params_known) return kiln_ok();
  const kiln_kernel_param_t* param = &kernel->params[index];
  if (argument->bytes != param->bytes ||
      !kinds_fit(param->kind, argument->kind)) {
    return mismatch(kernel, index, argument);
  }
  return kiln_ok();
}

kiln_status_t kilni_device_argument_check_count(const kiln_kernel_t* kernel,
                                                uint32_t count) {
  const kiln_kernel_info_t* info = &kernel->info;
  if (!info->params_known || count == info->param_count) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "kernel \"%s\" takes %u argument%s and is given %u",
                 kernel->name, (unsigned)info->param_count,
                 info->param_count == 1 ? "" : "s", (unsigned)count),
      "give one argument for each parameter; `kiln inspect` lists them");
}

uint64_t kilni_device_launch_argument_limit(const kiln_device_t* device) {
  bool more = device->info.driver_version >= MORE_ARGUMENTS_SINCE &&
              device->info.compute_major >= MORE_ARGUMENTS_COMPUTE;
  return more ? MORE_ARGUMENT_BYTES : ARGUMENT_BYTES;
}
