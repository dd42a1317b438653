// SPDX-License-Identifier: Apache-2.0
//
// device: a launch that is made once: checked, then handed to the driver.
//
// For up to 32 arguments this allocates nothing and takes no lock.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "device/device_scope.h"
#include "device/launch_check.h"

enum {
  FEW_ARGUMENTS = 32,   // prepared on the stack
  PACKED_BYTES = 4096,  // parameters of a kernel without a description
};

// What the driver is handed. one-thread
typedef struct call_t {
  kiln_kernel_t* kernel;
  kiln_stream_t* stream;
  kiln_launch_config_t config;
  const kiln_argument_t* arguments;
  uint32_t count;
  const void** values;  // one address for each argument
  uint64_t* addresses;  // of buffers
} call_t;

static kiln_status_t launch_with_attributes(const call_t* call, void** values,
                                            void** extra) {
  const kiln_launch_config_t* config = &call->config;
  kilni_device_launch_how_t how;
  KILNI_RETURN_IF_ERROR(kilni_device_launch_how(call->kernel, config, &how));
  KILNI_RETURN_IF_ERROR(kilni_device_launch_check_resident(
      call->kernel, &how, call->stream->device,
      (uint64_t)config->grid[0] * config->grid[1] * config->grid[2]));
  kiln_cu_launch_config_t native = {.grid_x = config->grid[0],
                                    .grid_y = config->grid[1],
                                    .grid_z = config->grid[2],
                                    .block_x = config->block[0],
                                    .block_y = config->block[1],
                                    .block_z = config->block[2],
                                    .shared_bytes = config->shared_bytes,
                                    .stream = call->stream->handle,
                                    .attributes = how.list,
                                    .attribute_count = how.count};
  kiln_status_t status;
  KILNI_STREAM_CALL(status, call->stream, cuLaunchKernelEx, &native,
                    call->kernel->handle, values, extra);
  if (kiln_status_is_ok(status)) kilni_device_launch_mark_recorded(&how);
  return status;
}

static kiln_status_t launch_plainly(const call_t* call, void** values,
                                    void** extra) {
  const kiln_launch_config_t* config = &call->config;
  kiln_status_t status;
  KILNI_STREAM_CALL(status, call->stream, cuLaunchKernel, call->kernel->handle,
                    config->grid[0], config->grid[1], config->grid[2],
                    config->block[0], config->block[1], config->block[2],
                    config->shared_bytes, call->stream->handle, values, extra);
  return status;
}

static kiln_status_t device_launch_launch(const call_t* call,
                                          const void** values, void** extra) {
  const kiln_launch_config_t* config = &call->config;
  // The driver only reads, although its interface has void*.
  void** list = NULL;
  memcpy(&list, &values, sizeof(list));
  kiln_status_t status = config->attributes != NULL || call->kernel->in_clusters
                             ? launch_with_attributes(call, list, extra)
                             : launch_plainly(call, list, extra);
  if (kiln_status_is_ok(status)) return kiln_ok();
  return KILNI_ANNOTATE(
      status, "launching \"%s\" with grid %u,%u,%u and block %u,%u,%u",
      call->kernel->name, (unsigned)config->grid[0], (unsigned)config->grid[1],
      (unsigned)config->grid[2], (unsigned)config->block[0],
      (unsigned)config->block[1], (unsigned)config->block[2]);
}

// A kernel without a description (an old driver, a cubin): packed by size,
// since the driver then compares the whole size with the kernel's and refuses
// another, where a list of addresses would be read past its end.
static kiln_status_t launch_packed(const call_t* call) {
  _Alignas(16) uint8_t packed[PACKED_BYTES];
  size_t at = 0;
  for (uint32_t i = 0; i < call->count; i++) {
    size_t bytes = call->arguments[i].bytes;
    at = kilni_device_argument_align(at, bytes);
    if (at > sizeof(packed) || bytes > sizeof(packed) - at) {
      return kilni_device_launch_over(
          call->kernel, "the size of all arguments in bytes", at + bytes,
          sizeof(packed), "a kernel without a description");
    }
    memcpy(packed + at, call->values[i], bytes);
    at += bytes;
  }
  void* extra[] = {KILN_CU_LAUNCH_PARAM_BUFFER_POINTER, packed,
                   KILN_CU_LAUNCH_PARAM_BUFFER_SIZE, &at,
                   KILN_CU_LAUNCH_PARAM_END};
  return device_launch_launch(call, NULL, extra);
}

static kiln_status_t launch_with(call_t* call, const void** values,
                                 uint64_t* addresses) {
  call->values = values;
  call->addresses = addresses;
  KILNI_RETURN_IF_ERROR(
      kilni_device_argument_check_count(call->kernel, call->count));
  for (uint32_t i = 0; i < call->count; i++) {
    KILNI_RETURN_IF_ERROR(kilni_device_argument_read(
        call->kernel, i, &call->arguments[i], &addresses[i], &values[i]));
  }
  KILNI_RETURN_IF_ERROR(
      kilni_device_launch_need_shared(call->kernel, &call->config));
  if (!call->kernel->info.params_known && call->count > 0) {
    return launch_packed(call);
  }
  // Without arguments there is no list: a driver that knows of parameters then
  // refuses, instead of reading uninitialised memory.
  return device_launch_launch(call, call->count > 0 ? values : NULL, NULL);
}

static kiln_status_t launch_many(call_t* call) {
  if (call->count > KILNI_MAX_ARGUMENTS) {
    return kilni_device_launch_over(call->kernel, "the number of arguments",
                                    call->count, KILNI_MAX_ARGUMENTS,
                                    "a launch");
  }
  kiln_allocator_t allocator = call->kernel->module->device->host->allocator;
  void* values = NULL;
  void* addresses = NULL;
  kiln_status_t status =
      kilni_base_alloc_array(allocator, call->count, sizeof(void*), &values);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_alloc_array(allocator, call->count, sizeof(uint64_t),
                                    &addresses);
  }
  if (kiln_status_is_ok(status)) status = launch_with(call, values, addresses);
  kilni_base_free_array(allocator, addresses, call->count, sizeof(uint64_t));
  kilni_base_free_array(allocator, values, call->count, sizeof(void*));
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
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(
      config, "kiln_launch_config_t", sizeof(call.config), &call.config));
  KILNI_RETURN_IF_ERROR(kilni_device_check_memory(
      kernel->module->device, stream->device, "the stream"));
  KILNI_RETURN_IF_ERROR(kilni_device_launch_check_shape(kernel, &call.config));
  if (argument_count > FEW_ARGUMENTS) return launch_many(&call);
  const void* values[FEW_ARGUMENTS];
  uint64_t addresses[FEW_ARGUMENTS];
  return launch_with(&call, values, addresses);
}
