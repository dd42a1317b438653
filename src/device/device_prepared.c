// SPDX-License-Identifier: Apache-2.0
//
// device: launches that are prepared once. Errors are found when an argument is
// set; a run checks that everything was set, and passes the driver lists that
// were made before.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "device/device_scope.h"
#include "device/launch_check.h"

// ---- Making and ending ----

// The node follows what a launch was given. Every change of one calls it.
static void prepared_set_node(kiln_launch_t* launch) {
  const kiln_cu_launch_config_t* config = &launch->config;
  kiln_cu_kernel_node_t* node = &launch->node;
  node->function = launch->kernel->handle;
  node->grid_x = config->grid_x;
  node->grid_y = config->grid_y;
  node->grid_z = config->grid_z;
  node->block_x = config->block_x;
  node->block_y = config->block_y;
  node->block_z = config->block_z;
  node->shared_bytes = config->shared_bytes;
  node->params = launch->params;
  node->extra = launch->extra;
}

static kiln_status_t prepared_make_lists(kiln_launch_t* launch) {
  const kiln_kernel_info_t* info = &launch->kernel->info;
  kiln_allocator_t allocator = launch->device->host->allocator;
  void* block = NULL;
  launch->count = info->params_known ? info->param_count : 0;
  launch->missing = launch->count;
  launch->space =
      info->params_known
          ? info->param_bytes
          : (uint32_t)kilni_device_launch_argument_limit(launch->device);
  if (launch->space > 0) {
    KILNI_RETURN_IF_ERROR(kilni_base_alloc(allocator, launch->space, &block));
    launch->packed = block;
  }
  if (launch->count == 0) return kiln_ok();
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(allocator, launch->count, sizeof(void*), &block));
  launch->values = block;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(allocator, launch->count,
                                               sizeof(*launch->given), &block));
  launch->given = block;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(allocator, launch->count, sizeof(void*), &block));
  launch->buffers = block;
  launch->buffer_space = launch->count;
  for (uint32_t i = 0; i < launch->count; i++) {
    launch->values[i] = launch->packed + launch->kernel->params[i].offset;
  }
  launch->params = launch->values;
  return kiln_ok();
}

// The attributes; the events among them are ours from here on.
static kiln_status_t prepared_take_attributes(
    kiln_launch_t* launch, const kiln_launch_config_t* config) {
  kilni_device_launch_how_t* how = &launch->how;
  kiln_status_t status = kilni_device_launch_how(launch->kernel, config, how);
  for (int i = 0; i < 2; i++) {
    if (!kiln_status_is_ok(status)) how->recorded[i] = NULL;
    kiln_event_retain(how->recorded[i]);
  }
  return status;
}

static kiln_status_t prepared_prepare(kiln_launch_t* launch,
                                      const kiln_launch_config_t* config) {
  kiln_launch_config_t given;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(config, "kiln_launch_config_t",
                                                sizeof(given), &given));
  KILNI_RETURN_IF_ERROR(
      kilni_device_launch_check_shape(launch->kernel, &given));
  KILNI_RETURN_IF_ERROR(
      kilni_device_launch_need_shared(launch->kernel, &given));
  KILNI_RETURN_IF_ERROR(prepared_take_attributes(launch, &given));
  launch->config.grid_x = given.grid[0];
  launch->config.grid_y = given.grid[1];
  launch->config.grid_z = given.grid[2];
  launch->config.block_x = given.block[0];
  launch->config.block_y = given.block[1];
  launch->config.block_z = given.block[2];
  launch->config.shared_bytes = given.shared_bytes;
  launch->config.attributes = launch->how.count > 0 ? launch->how.list : NULL;
  launch->config.attribute_count = launch->how.count;
  launch->attributes = launch->how.count;
  return prepared_make_lists(launch);
}

kiln_status_t kiln_launch_create(kiln_kernel_t* kernel,
                                 const kiln_launch_config_t* config,
                                 kiln_launch_t** out_launch) {
  KILNI_CHECK_ARGUMENT(out_launch != NULL, "out_launch");
  *out_launch = NULL;
  KILNI_CHECK_ARGUMENT(kernel != NULL, "kernel");
  kiln_device_t* device = kernel->module->device;
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(device->host->allocator, sizeof(kiln_launch_t), &block));
  kiln_launch_t* launch = block;
  launch->kernel = kernel;
  launch->device = device;
  launch->alive = kilni_device_alive(device);
  launch->call = device->table->cuLaunchKernel;
  launch->number = atomic_fetch_add_explicit(&device->whole->launches, 1,
                                             memory_order_relaxed);
  kiln_kernel_retain(kernel);
  atomic_init(&launch->references, 1);
  kiln_status_t status = prepared_prepare(launch, config);
  if (!kiln_status_is_ok(status)) {
    kiln_launch_release(launch);
    return status;
  }
  prepared_set_node(launch);
  *out_launch = launch;
  return kiln_ok();
}

void kiln_launch_retain(kiln_launch_t* launch) {
  if (launch == NULL) return;
  atomic_fetch_add_explicit(&launch->references, 1, memory_order_relaxed);
}

void kiln_launch_release(kiln_launch_t* launch) {
  if (launch == NULL || kilni_device_is_forked(launch->device)) return;
  if (atomic_fetch_sub_explicit(&launch->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kiln_allocator_t allocator = launch->device->host->allocator;
  kiln_kernel_t* kernel = launch->kernel;
  for (int i = 0; i < 2; i++) kiln_event_release(launch->how.recorded[i]);
  kilni_base_free(allocator, launch->packed, launch->space);
  kilni_base_free_array(allocator, launch->given, launch->count,
                        sizeof(*launch->given));
  kilni_base_free_array(allocator, launch->buffers, launch->buffer_space,
                        sizeof(launch->buffers[0]));
  kilni_base_free_array(allocator, launch->values, launch->count,
                        sizeof(void*));
  kilni_base_free(allocator, launch, sizeof(*launch));
  kiln_kernel_release(kernel);
}

kiln_kernel_t* kiln_launch_kernel(const kiln_launch_t* launch) {
  return launch->kernel;
}

// ---- Arguments ----

// Remembers a buffer for graphs, which keep what their nodes use.
static void note_buffer(kiln_launch_t* launch, uint32_t index,
                        const kiln_argument_t* argument) {
  kiln_buffer_t* buffer = NULL;
  if (argument->kind == KILN_ARGUMENT_BUFFER) {
    memcpy(&buffer, &argument->value.buffer, sizeof(buffer));
  }
  if (launch->buffers[index] == buffer) return;
  launch->buffers[index] = buffer;
  launch->version++;
}

static bool prepared_is_plain(const kiln_argument_t* argument) {
  return argument->kind == KILN_ARGUMENT_INTEGER ||
         argument->kind == KILN_ARGUMENT_FLOAT ||
         argument->kind == KILN_ARGUMENT_POINTER;
}

static kiln_status_t set(kiln_launch_t* launch, uint32_t index,
                         const kiln_argument_t* argument) {
  uint64_t scratch;
  const void* at;
  KILNI_RETURN_IF_ERROR(kilni_device_argument_read(launch->kernel, index,
                                                   argument, &scratch, &at));
  memcpy(launch->values[index], at, argument->bytes);
  note_buffer(launch, index, argument);
  launch->missing -= launch->given[index] == KILNI_GIVEN_NOTHING;
  launch->given[index] = prepared_is_plain(argument)
                             ? kilni_device_argument_shape(argument)
                             : KILNI_GIVEN_OTHER;
  return kiln_ok();
}

static __attribute__((noinline)) kiln_status_t prepared_set_anyhow(
    kiln_launch_t* launch, uint32_t index, const kiln_argument_t* argument) {
  KILNI_CHECK_ARGUMENT(launch != NULL, "launch");
  if (index < launch->count) return set(launch, index, argument);
  if (!launch->kernel->info.params_known) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INSUFFICIENT_METADATA,
                   "the parameters of kernel \"%s\" are unknown",
                   launch->kernel->name),
        "give all arguments at once (kiln_launch_set_all), or the PTX that the "
        "code was made from (`described_by`)");
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "kernel \"%s\" has no parameter %u: it takes %u argument%s",
                 launch->kernel->name, (unsigned)index, (unsigned)launch->count,
                 launch->count == 1 ? "" : "s"),
      "give one argument for each parameter; `kiln inspect` lists them");
}

kiln_status_t kiln_launch_set(kiln_launch_t* launch, uint32_t index,
                              kiln_argument_t argument) {
  if (kilni_device_launch_set_shortly(launch, index, &argument)) {
    return kiln_ok();
  }
  return prepared_set_anyhow(launch, index, &argument);
}

// Of a kernel without a description: as many as are given now.
static kiln_status_t need_buffers(kiln_launch_t* launch, uint32_t count) {
  void* buffers = launch->buffers;
  kiln_status_t status =
      kilni_base_grow(launch->device->host->allocator, count, sizeof(void*),
                      &launch->buffer_space, &buffers);
  launch->buffers = buffers;
  for (size_t i = 0; i < launch->buffer_space; i++) launch->buffers[i] = NULL;
  launch->version++;
  return status;
}

// Of a kernel without a description: packed by size, because the driver then
// compares the whole size with the kernel's.
static kiln_status_t prepared_pack(kiln_launch_t* launch,
                                   const kiln_argument_t* arguments,
                                   uint32_t count) {
  size_t at = 0;
  launch->extra = NULL;
  prepared_set_node(launch);
  KILNI_RETURN_IF_ERROR(need_buffers(launch, count));
  for (uint32_t i = 0; i < count; i++) {
    uint64_t scratch;
    const void* from;
    KILNI_RETURN_IF_ERROR(kilni_device_argument_read(
        launch->kernel, i, &arguments[i], &scratch, &from));
    size_t bytes = arguments[i].bytes;
    at = kilni_device_argument_align(at, bytes);
    if (at > launch->space || bytes > launch->space - at) {
      return kilni_device_launch_over(
          launch->kernel, "the size of all arguments in bytes", at + bytes,
          launch->space, "a launch on this device and driver");
    }
    memcpy(launch->packed + at, from, bytes);
    note_buffer(launch, i, &arguments[i]);
    at += bytes;
  }
  if (count == 0) return kiln_ok();
  launch->packed_bytes = at;
  launch->extra_list[0] = KILN_CU_LAUNCH_PARAM_BUFFER_POINTER;
  launch->extra_list[1] = launch->packed;
  launch->extra_list[2] = KILN_CU_LAUNCH_PARAM_BUFFER_SIZE;
  launch->extra_list[3] = &launch->packed_bytes;
  launch->extra_list[4] = KILN_CU_LAUNCH_PARAM_END;
  launch->extra = launch->extra_list;
  prepared_set_node(launch);
  return kiln_ok();
}

kiln_status_t kiln_launch_set_all(kiln_launch_t* launch,
                                  const kiln_argument_t* arguments,
                                  uint32_t argument_count) {
  KILNI_CHECK_ARGUMENT(launch != NULL, "launch");
  KILNI_CHECK_ARGUMENT(arguments != NULL || argument_count == 0, "arguments");
  if (!launch->kernel->info.params_known) {
    return prepared_pack(launch, arguments, argument_count);
  }
  KILNI_RETURN_IF_ERROR(
      kilni_device_argument_check_count(launch->kernel, argument_count));
  for (uint32_t i = 0; i < argument_count; i++) {
    KILNI_RETURN_IF_ERROR(set(launch, i, &arguments[i]));
  }
  return kiln_ok();
}

kiln_status_t kiln_launch_set_grid(kiln_launch_t* launch, uint32_t x,
                                   uint32_t y, uint32_t z) {
  KILNI_CHECK_ARGUMENT(launch != NULL, "launch");
  const kiln_device_info_t* device = &launch->device->info;
  static const char* const kNames[] = {"grid.x", "grid.y", "grid.z"};
  uint32_t grid[3] = {x == 0 ? 1 : x, y == 0 ? 1 : y, z == 0 ? 1 : z};
  for (int i = 0; i < 3; i++) {
    if (grid[i] <= device->max_grid[i]) continue;
    return kilni_device_launch_over(launch->kernel, kNames[i], grid[i],
                                    device->max_grid[i], "the device");
  }
  KILNI_RETURN_IF_ERROR(
      kilni_device_launch_check_grid(launch->kernel, &launch->how, grid));
  launch->config.grid_x = grid[0];
  launch->config.grid_y = grid[1];
  launch->config.grid_z = grid[2];
  prepared_set_node(launch);
  return kiln_ok();
}

// ---- Running ----

static kiln_status_t not_given(const kiln_launch_t* launch) {
  uint32_t index = 0;
  while (launch->given[index] != 0) index++;
  const char* name = launch->kernel->params[index].name;
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "argument %u%s%s%s of kernel \"%s\" was never given",
                 (unsigned)index, name[0] ? " (\"" : "", name,
                 name[0] ? "\")" : "", launch->kernel->name),
      "give it with kiln_launch_set before the launch runs");
}

kiln_status_t kilni_device_launch_check_given(const kiln_launch_t* launch) {
  return launch->missing == 0 ? kiln_ok() : not_given(launch);
}

static kiln_status_t prepared_refused(const kiln_launch_t* launch,
                                      kiln_status_t status) {
  const kiln_cu_launch_config_t* config = &launch->config;
  return KILNI_ANNOTATE(
      status, "launching \"%s\" with grid %u,%u,%u and block %u,%u,%u",
      launch->kernel->name, config->grid_x, config->grid_y, config->grid_z,
      config->block_x, config->block_y, config->block_z);
}

static kiln_status_t run_with_attributes(const kiln_launch_t* launch,
                                         kiln_stream_t* stream) {
  kiln_cu_launch_config_t config = launch->config;
  config.stream = stream->handle;
  KILNI_RETURN_IF_ERROR(kilni_device_launch_check_resident(
      launch->kernel, &launch->how, stream->device,
      (uint64_t)config.grid_x * config.grid_y * config.grid_z));
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuLaunchKernelEx, &config,
                    launch->kernel->handle, launch->params, launch->extra);
  if (!kiln_status_is_ok(status)) return prepared_refused(launch, status);
  kilni_device_launch_mark_recorded(&launch->how);
  return kiln_ok();
}

kiln_status_t kilni_device_launch_run_early(kiln_launch_t* launch,
                                            kiln_stream_t* stream) {
  if (launch->missing != 0) return not_given(launch);
  kiln_cu_launch_attribute_t early = kilni_device_launch_early();
  kiln_cu_launch_config_t config = launch->config;
  config.stream = stream->handle;
  config.attributes = &early;
  config.attribute_count = 1;
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuLaunchKernelEx, &config,
                    launch->kernel->handle, launch->params, launch->extra);
  return kiln_status_is_ok(status) ? kiln_ok()
                                   : prepared_refused(launch, status);
}

static kiln_status_t run_plainly(const kiln_launch_t* launch,
                                 kiln_stream_t* stream) {
  const kiln_cu_kernel_node_t* node = &launch->node;
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuLaunchKernel, node->function,
                    node->grid_x, node->grid_y, node->grid_z, node->block_x,
                    node->block_y, node->block_z, node->shared_bytes,
                    stream->handle, node->params, node->extra);
  return kiln_status_is_ok(status) ? kiln_ok()
                                   : prepared_refused(launch, status);
}

// Whatever the short path does not accept.
static __attribute__((noinline)) kiln_status_t
run_anyhow(const kiln_launch_t* launch, kiln_stream_t* stream) {
  KILNI_CHECK_ARGUMENT(launch != NULL, "launch");
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  if (launch->missing != 0) return not_given(launch);
  if (stream->device != launch->device) {
    KILNI_RETURN_IF_ERROR(kilni_device_check_memory(
        launch->device, stream->device, "the stream"));
  }
  return launch->attributes > 0 ? run_with_attributes(launch, stream)
                                : run_plainly(launch, stream);
}

static __attribute__((noinline)) kiln_status_t
run_failed(const kiln_launch_t* launch, kiln_cu_result_t result) {
  return prepared_refused(
      launch, KILNI_DEVICE_CHECK(launch->device, result, "cuLaunchKernel"));
}

// The row needs nothing around it but what a stream brings: a column that
// changes must change this, too.
_Static_assert(KILNI_WAY_cuLaunchKernel == 0,
               "a launch does not change the context");

// The whole short path in one function: nothing to be made current, all
// arguments given, no attributes, and the driver's call.
kiln_status_t kiln_launch_run(kiln_launch_t* launch, kiln_stream_t* stream) {
  if (launch == NULL || stream == NULL ||
      (atomic_load_explicit(&stream->way, memory_order_relaxed) |
       launch->detour) != 0 ||
      stream->device != launch->device ||
      !kilni_device_is_alive(&launch->alive)) {
    return run_anyhow(launch, stream);
  }
  const kiln_cu_kernel_node_t* node = &launch->node;
  kiln_cu_result_t result = launch->call(
      node->function, node->grid_x, node->grid_y, node->grid_z, node->block_x,
      node->block_y, node->block_z, node->shared_bytes, stream->handle,
      node->params, node->extra);
  return result == KILN_CU_SUCCESS ? kiln_ok() : run_failed(launch, result);
}
