// SPDX-License-Identifier: Apache-2.0
//
// soft: rows that launch kernels. What a GPU's driver refuses before the kernel
// runs is refused here, with the same result.
#include <string.h>

#include "base/alloc.h"
#include "soft/driver/soft_driver.h"
#include "soft/driver/soft_graph.h"
#include "table/cuda_table.h"

// What the launch rows have in common.
typedef struct launch_t {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  kiln_cu_stream_t stream;
  kiln_cu_function_t function;
  void** params;
  void** extra;
  const kiln_cu_launch_attribute_t* attributes;
  unsigned int attribute_count;
  bool cooperative;
  bool clustered;  // its clusters are specified
  bool early;      // it may begin before the kernel in front has ended
  const char* call;
} launch_t;

static const uint64_t kGridMost[3] = {2147483647, 65535, 65535};
static const uint64_t kBlockMost[3] = {1024, 1024, 64};

static kiln_cu_result_t launch_check_shape(const launch_t* launch,
                                           const kilni_soft_kernel_t* kernel) {
  const kilni_soft_entry_t* entry = kernel->entry;
  uint64_t threads = 1;
  bool required = entry->required_block[0] != 0;
  for (int i = 0; i < 3; i++) {
    if (launch->grid[i] == 0 || launch->grid[i] > kGridMost[i] ||
        launch->block[i] == 0 || launch->block[i] > kBlockMost[i]) {
      return KILN_CU_ERROR_INVALID_VALUE;
    }
    uint32_t wanted = entry->required_block[i] ? entry->required_block[i] : 1;
    if (required && launch->block[i] != wanted) {
      return KILN_CU_ERROR_INVALID_VALUE;
    }
    threads *= launch->block[i];
  }
  if (threads > KILNI_SOFT_MAX_THREADS || threads > entry->max_threads ||
      launch->shared_bytes > (uint32_t)kernel->max_dynamic_shared) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  return KILN_CU_SUCCESS;
}

// Reads the `extra` list: a packed buffer and the address of its size.
static kiln_cu_result_t read_extra(void** extra, const void** out_buffer,
                                   size_t* out_bytes) {
  *out_buffer = NULL;
  *out_bytes = 0;
  for (size_t i = 0; extra[i] != KILN_CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == KILN_CU_LAUNCH_PARAM_BUFFER_POINTER) {
      *out_buffer = extra[i + 1];
    } else if (extra[i] == KILN_CU_LAUNCH_PARAM_BUFFER_SIZE) {
      const size_t* size = extra[i + 1];
      if (size == NULL) return KILN_CU_ERROR_INVALID_VALUE;
      *out_bytes = *size;
    } else {
      return KILN_CU_ERROR_INVALID_VALUE;
    }
  }
  return KILN_CU_SUCCESS;
}

// Packs the arguments into `buffer` (entry->param_bytes).
static kiln_cu_result_t launch_pack(const launch_t* launch,
                                    const kilni_soft_entry_t* entry,
                                    uint8_t* buffer) {
  if (launch->params != NULL && launch->extra != NULL) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  if (launch->extra != NULL) {
    const void* packed;
    size_t bytes;
    kiln_cu_result_t result = read_extra(launch->extra, &packed, &bytes);
    if (result != KILN_CU_SUCCESS) return result;
    // The exact end of the last parameter, as a GPU's driver asks for.
    if (bytes != entry->param_bytes) {
      return KILN_CU_ERROR_LAUNCH_OUT_OF_RESOURCES;
    }
    if (bytes == 0) return KILN_CU_SUCCESS;
    if (packed == NULL) return KILN_CU_ERROR_INVALID_VALUE;
    memcpy(buffer, packed, bytes);
    return KILN_CU_SUCCESS;
  }
  if (entry->param_count > 0 && launch->params == NULL) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  for (uint32_t i = 0; i < entry->param_count; i++) {
    if (launch->params[i] == NULL) return KILN_CU_ERROR_INVALID_VALUE;
    memcpy(buffer + entry->params[i].offset, launch->params[i],
           entry->params[i].bytes);
  }
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t launch_make_grid(kilni_soft_driver_t* driver,
                                         const kilni_soft_stream_t* stream,
                                         const launch_t* launch,
                                         const kilni_soft_entry_t* entry,
                                         const void* params, uint64_t number,
                                         kilni_soft_grid_t** out_grid) {
  kilni_soft_launch_t what = {
      .entry = entry,
      .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
      .block = {launch->block[0], launch->block[1], launch->block[2]},
      .dynamic_shared_bytes = launch->shared_bytes,
      .stack_bytes = (uint32_t)stream->context->stack_bytes,
      .cooperative = launch->cooperative,
      .profiled = driver->profile != NULL,
      .params = params,
      .held = launch->early,
      .stream = stream->handle,
      .work = number,
      .print = driver->print,
      .print_user = driver->print_user,
  };
  // Seed 0 means one fixed order for every launch.
  if (driver->seed != 0) {
    what.seed = driver->seed ^ (number << 32 | number);
    what.released = kilni_soft_queue_released;
    what.pause = kilni_soft_queue_pause;
    what.ahead_user = driver;
  }
  return kilni_soft_result(kilni_soft_grid_create(
      &driver->host, stream->context->memory, &what, out_grid));
}

// Hints that change no result are taken; what would change one is not there.
kiln_cu_result_t kilni_soft_check_attribute(
    const kiln_cu_launch_attribute_t* attribute) {
  switch (attribute->id) {
    case KILN_CU_LAUNCH_ATTRIBUTE_IGNORE:
    case KILN_CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case KILN_CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case KILN_CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case KILN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case KILN_CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case KILN_CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case KILN_CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case KILN_CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      return KILN_CU_SUCCESS;
    case KILN_CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case KILN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case KILN_CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      return KILN_CU_SUCCESS;
    // There is one memory domain, and it is number 0.
    case KILN_CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      return attribute->value.sync_domain <=
                     KILN_CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE
                 ? KILN_CU_SUCCESS
                 : KILN_CU_ERROR_INVALID_VALUE;
    case KILN_CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      return attribute->value.sync_map.normal == 0 &&
                     attribute->value.sync_map.remote == 0
                 ? KILN_CU_SUCCESS
                 : KILN_CU_ERROR_INVALID_VALUE;
    case KILN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
      bool one = attribute->value.cluster.x == 1 &&
                 attribute->value.cluster.y == 1 &&
                 attribute->value.cluster.z == 1;
      return one ? KILN_CU_SUCCESS : KILN_CU_ERROR_NOT_SUPPORTED;
    }
    default:
      return KILN_CU_ERROR_NOT_SUPPORTED;
  }
}

// A cooperative grid is resident as a whole.
static kiln_cu_result_t check_resident(const launch_t* launch,
                                       const kilni_soft_kernel_t* kernel) {
  uint64_t blocks =
      (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
  uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2];
  return blocks <= kilni_soft_resident_blocks(kernel, threads,
                                              launch->shared_bytes)
             ? KILN_CU_SUCCESS
             : KILN_CU_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

// The events that a launch records.
typedef struct recorded_t {
  unsigned int count;
  kilni_soft_event_t* events[2];
} recorded_t;

// An event of an attribute, which must be without timing and of this process
// alone, and of the stream's context.
static kiln_cu_result_t launch_take_event(
    kilni_soft_driver_t* driver, const kilni_soft_stream_t* stream,
    const kiln_cu_launch_attribute_t* attribute, recorded_t* recorded) {
  kiln_cu_event_t handle;
  if (attribute->id == KILN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) {
    handle = attribute->value.programmatic_event.event;
  } else if (attribute->id ==
             KILN_CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
    handle = attribute->value.completion_event.event;
  } else {
    return KILN_CU_SUCCESS;
  }
  kilni_soft_event_t* event = kilni_soft_handle_get(
      &driver->handles, KILNI_SOFT_KIND_EVENT, (uintptr_t)handle);
  if (event == NULL || event->context != stream->context) {
    return KILN_CU_ERROR_INVALID_HANDLE;
  }
  if ((event->flags & KILN_CU_EVENT_DISABLE_TIMING) == 0 ||
      (event->flags & KILN_CU_EVENT_INTERPROCESS) != 0 ||
      recorded->count == 2) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  recorded->events[recorded->count++] = event;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t launch_take_attributes(
    kilni_soft_driver_t* driver, const kilni_soft_stream_t* stream,
    launch_t* launch, recorded_t* recorded) {
  for (unsigned int i = 0; i < launch->attribute_count; i++) {
    const kiln_cu_launch_attribute_t* attribute = &launch->attributes[i];
    kiln_cu_result_t result = kilni_soft_check_attribute(attribute);
    if (result == KILN_CU_SUCCESS) {
      result = launch_take_event(driver, stream, attribute, recorded);
    }
    if (result != KILN_CU_SUCCESS) return result;
    if (attribute->id == KILN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      launch->clustered = true;
    }
    if (attribute->id == KILN_CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      launch->cooperative = attribute->value.cooperative != 0;
    }
    if (attribute->id ==
        KILN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
      launch->early = attribute->value.programmatic_serialization != 0;
    }
  }
  return KILN_CU_SUCCESS;
}

// Code must not rely on an event before the kernel's end: so it is the end.
static void record_events(kilni_soft_driver_t* driver,
                          const recorded_t* recorded, kilni_soft_task_t* task) {
  for (unsigned int i = 0; i < recorded->count; i++) {
    kilni_soft_task_retain(task);
    kilni_soft_task_release(driver, recorded->events[i]->recorded);
    recorded->events[i]->recorded = task;
  }
  kilni_soft_task_release(driver, task);
}

static kiln_cu_result_t launch_locked(kilni_soft_driver_t* driver,
                                      kilni_soft_stream_t* stream,
                                      const launch_t* launch) {
  const kilni_soft_kernel_t* kernel =
      kilni_soft_launchable(driver, launch->function);
  if (kernel == NULL || kernel->module->context != stream->context) {
    return KILN_CU_ERROR_INVALID_HANDLE;
  }
  const kilni_soft_entry_t* entry = kernel->entry;
  kiln_cu_result_t result = launch_check_shape(launch, kernel);
  launch_t wanted = *launch;
  recorded_t recorded = {0, {NULL, NULL}};
  if (result == KILN_CU_SUCCESS) {
    result = launch_take_attributes(driver, stream, &wanted, &recorded);
  }
  if (result == KILN_CU_SUCCESS && entry->explicit_cluster &&
      entry->cluster == 0 && !wanted.clustered) {
    result = KILN_CU_ERROR_INVALID_CLUSTER_SIZE;
  }
  if (result == KILN_CU_SUCCESS && wanted.cooperative) {
    result = check_resident(&wanted, kernel);
  }
  if (result != KILN_CU_SUCCESS) return result;
  uint8_t* params;
  kiln_allocator_t allocator = driver->host.allocator;
  result = kilni_soft_result(
      kilni_base_alloc(allocator, entry->param_bytes, (void**)&params));
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_work_t work = {.kind = KILNI_SOFT_TASK_KERNEL};
  result = launch_pack(launch, entry, params);
  if (result == KILN_CU_SUCCESS) {
    result = launch_make_grid(driver, stream, &wanted, entry, params,
                              driver->queue.tickets + 1, &work.as.grid);
  }
  kilni_base_free(allocator, params, entry->param_bytes);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_task_t* task = NULL;
  kilni_soft_task_t** out_task = recorded.count > 0 ? &task : NULL;
  result = wanted.early
               ? kilni_soft_queue_issue_early(driver, stream, &work, out_task)
               : kilni_soft_queue_issue(driver, stream, &work, NULL, out_task);
  if (result != KILN_CU_SUCCESS) {
    kilni_soft_grid_destroy(work.as.grid);
  } else if (recorded.count > 0) {
    record_events(driver, &recorded, task);
  }
  return result;
}

// ---- Kernels of graphs ----

// The kernel of a node: as a function, or of a library.
static const kilni_soft_kernel_t* find_kernel(
    const kilni_soft_driver_t* driver, const kiln_cu_kernel_node_t* params) {
  if (params->function != NULL) {
    return kilni_soft_handle_get(&driver->handles, KILNI_SOFT_KIND_FUNCTION,
                                 (uintptr_t)params->function);
  }
  return kilni_soft_handle_get(&driver->handles, KILNI_SOFT_KIND_KERNEL,
                               (uintptr_t)params->kernel);
}

static kiln_cu_result_t keep_params(kilni_soft_driver_t* driver,
                                    const launch_t* launch,
                                    const kilni_soft_entry_t* entry,
                                    kilni_soft_kernel_node_t* out_kernel) {
  kiln_allocator_t allocator = driver->host.allocator;
  out_kernel->param_bytes = entry->param_bytes;
  out_kernel->param_count = entry->param_count;
  kiln_status_t status = kilni_base_alloc(allocator, entry->param_bytes,
                                          (void**)&out_kernel->packed);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_alloc_array(allocator, entry->param_count,
                                    sizeof(void*), (void**)&out_kernel->params);
  }
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  for (uint32_t i = 0; i < entry->param_count; i++) {
    out_kernel->params[i] = out_kernel->packed + entry->params[i].offset;
  }
  return launch_pack(launch, entry, out_kernel->packed);
}

kiln_cu_result_t kilni_soft_launch_keep(
    kilni_soft_driver_t* driver, const kiln_cu_kernel_node_t* params,
    const kiln_cu_launch_attribute_t* attributes, unsigned int count,
    kilni_soft_kernel_node_t* out_kernel) {
  memset(out_kernel, 0, sizeof(*out_kernel));
  const kilni_soft_kernel_t* kernel = find_kernel(driver, params);
  if (kernel == NULL) return KILN_CU_ERROR_INVALID_HANDLE;
  launch_t launch = {
      .grid = {params->grid_x, params->grid_y, params->grid_z},
      .block = {params->block_x, params->block_y, params->block_z},
      .shared_bytes = params->shared_bytes,
      .params = params->params,
      .extra = params->extra,
      .attributes = attributes,
      .attribute_count = count};
  recorded_t recorded = {0, {NULL, NULL}};
  kiln_cu_result_t result = launch_check_shape(&launch, kernel);
  if (result == KILN_CU_SUCCESS) {
    result = launch_take_attributes(driver, &kernel->module->context->legacy,
                                    &launch, &recorded);
  }
  if (result == KILN_CU_SUCCESS && launch.cooperative) {
    result = check_resident(&launch, kernel);
  }
  if (result != KILN_CU_SUCCESS) return result;
  out_kernel->function = kernel->handle;
  memcpy(out_kernel->grid, launch.grid, sizeof(launch.grid));
  memcpy(out_kernel->block, launch.block, sizeof(launch.block));
  out_kernel->shared_bytes = launch.shared_bytes;
  result = keep_params(driver, &launch, kernel->entry, out_kernel);
  for (unsigned int i = 0; i < count && result == KILN_CU_SUCCESS; i++) {
    if (attributes[i].id == KILN_CU_LAUNCH_ATTRIBUTE_IGNORE) continue;
    result =
        kilni_soft_kernel_set_attribute(driver, out_kernel, &attributes[i]);
  }
  return result;
}

kiln_cu_result_t kilni_soft_launch_kept(kilni_soft_driver_t* driver,
                                        const kilni_soft_stream_t* stream,
                                        const kilni_soft_kernel_node_t* kernel,
                                        uint64_t number,
                                        kilni_soft_grid_t** out_grid) {
  *out_grid = NULL;
  const kilni_soft_kernel_t* found = kilni_soft_handle_get(
      &driver->handles, KILNI_SOFT_KIND_FUNCTION, kernel->function);
  if (found == NULL) return KILN_CU_ERROR_INVALID_HANDLE;
  const kiln_cu_launch_attribute_t* together =
      kilni_soft_kernel_attribute(kernel, KILN_CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  launch_t launch = {.shared_bytes = kernel->shared_bytes};
  memcpy(launch.grid, kernel->grid, sizeof(launch.grid));
  memcpy(launch.block, kernel->block, sizeof(launch.block));
  launch.cooperative = together != NULL && together->value.cooperative != 0;
  return launch_make_grid(driver, stream, &launch, found->entry, kernel->packed,
                          number, out_grid);
}

// A launch in a captured stream is a node.
static kiln_cu_result_t capture(kilni_soft_driver_t* driver,
                                kilni_soft_captured_t* captured,
                                const launch_t* launch) {
  const kilni_soft_kernel_t* kernel =
      kilni_soft_launchable(driver, launch->function);
  if (kernel == NULL) return KILN_CU_ERROR_INVALID_HANDLE;
  kiln_cu_kernel_node_t params = {
      .function = (kiln_cu_function_t)(uintptr_t)kernel->handle,
      .grid_x = launch->grid[0],
      .grid_y = launch->grid[1],
      .grid_z = launch->grid[2],
      .block_x = launch->block[0],
      .block_y = launch->block[1],
      .block_z = launch->block[2],
      .shared_bytes = launch->shared_bytes,
      .params = launch->params,
      .extra = launch->extra,
  };
  const kiln_cu_launch_attribute_t together = {
      .id = KILN_CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
  bool one = launch->cooperative && launch->attribute_count == 0;
  kilni_soft_doing_t doing;
  memset(&doing, 0, sizeof(doing));
  kiln_cu_result_t result = kilni_soft_launch_keep(
      driver, &params, one ? &together : launch->attributes,
      one ? 1 : launch->attribute_count, &doing.kernel);
  if (result != KILN_CU_SUCCESS) {
    kilni_soft_doing_free(driver, KILN_CU_GRAPH_NODE_TYPE_KERNEL, &doing);
    return result;
  }
  return kilni_soft_capture_add(driver, captured, launch->call,
                                KILN_CU_GRAPH_NODE_TYPE_KERNEL, &doing, NULL);
}

static kiln_cu_result_t launch_row(const launch_t* launch) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* stream;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(launch->stream, true, &driver, &stream);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_captured_t* captured;
  result = kilni_soft_capture_enter(driver, stream, launch->call, &captured);
  if (result == KILN_CU_SUCCESS) {
    result = captured != NULL ? capture(driver, captured, launch)
                              : launch_locked(driver, stream, launch);
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t soft_launch_row_launch(
    kiln_cu_function_t function, unsigned int grid_x, unsigned int grid_y,
    unsigned int grid_z, unsigned int block_x, unsigned int block_y,
    unsigned int block_z, unsigned int shared_bytes, kiln_cu_stream_t stream,
    void** params, void** extra) {
  return launch_row(&(launch_t){.grid = {grid_x, grid_y, grid_z},
                                .block = {block_x, block_y, block_z},
                                .shared_bytes = shared_bytes,
                                .stream = stream,
                                .function = function,
                                .params = params,
                                .extra = extra,
                                .call = "cuLaunchKernel"});
}

static kiln_cu_result_t row_launch_ex(const kiln_cu_launch_config_t* config,
                                      kiln_cu_function_t function,
                                      void** params, void** extra) {
  if (config == NULL ||
      (config->attribute_count > 0 && config->attributes == NULL)) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  return launch_row(
      &(launch_t){.grid = {config->grid_x, config->grid_y, config->grid_z},
                  .block = {config->block_x, config->block_y, config->block_z},
                  .shared_bytes = config->shared_bytes,
                  .stream = config->stream,
                  .function = function,
                  .params = params,
                  .extra = extra,
                  .attributes = config->attributes,
                  .attribute_count = config->attribute_count,
                  .call = "cuLaunchKernelEx"});
}

static kiln_cu_result_t row_launch_cooperative(
    kiln_cu_function_t function, unsigned int grid_x, unsigned int grid_y,
    unsigned int grid_z, unsigned int block_x, unsigned int block_y,
    unsigned int block_z, unsigned int shared_bytes, kiln_cu_stream_t stream,
    void** params) {
  return launch_row(&(launch_t){.grid = {grid_x, grid_y, grid_z},
                                .block = {block_x, block_y, block_z},
                                .shared_bytes = shared_bytes,
                                .stream = stream,
                                .function = function,
                                .params = params,
                                .cooperative = true,
                                .call = "cuLaunchCooperativeKernel"});
}

void kilni_soft_fill_launch(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuLaunchCooperativeKernel, row_launch_cooperative);
  KILNI_CUDA_SET(table, cuLaunchKernel, soft_launch_row_launch);
  KILNI_CUDA_SET(table, cuLaunchKernelEx, row_launch_ex);
}
