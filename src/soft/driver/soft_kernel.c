// SPDX-License-Identifier: Apache-2.0
//
// soft: rows that ask about kernels and set what a launch may use.
#include "soft/driver/soft_driver.h"
#include "table/cuda_table.h"

enum {
  SM_NUMBER = 90,
  SM_THREADS = 2048,
  SM_REGISTERS = 65536,
  SM_BLOCKS = 32,
  SM_SHARED = 228 << 10,
  BLOCK_SHARED = 1 << 10,  // the system's own, of every block
  REGISTERS_MOST = 255,    // of a thread
  REGISTER_UNIT = 8,       // registers of a thread come in such steps
  WARP = 32,
  SHARED_UNIT = 128,  // shared memory of a block comes in such steps
};

// Enters a row that asks of or changes a kernel.
static kiln_cu_result_t soft_kernel_enter_kernel(
    kiln_cu_function_t function, bool good, kilni_soft_driver_t** out_driver,
    kilni_soft_kernel_t** out_kernel) {
  void* found;
  kiln_cu_result_t result = kilni_soft_enter_object(
      KILNI_SOFT_NEEDS_HEALTHY, KILNI_SOFT_KIND_FUNCTION, function, good,
      out_driver, &found);
  *out_kernel = found;
  return result;
}

kilni_soft_kernel_t* kilni_soft_launchable(kilni_soft_driver_t* driver,
                                           kiln_cu_function_t function) {
  uint64_t handle = (uintptr_t)function;
  kilni_soft_kernel_t* kernel =
      kilni_soft_handle_get(&driver->handles, KILNI_SOFT_KIND_FUNCTION, handle);
  if (kernel != NULL) return kernel;
  return kilni_soft_handle_get(&driver->handles, KILNI_SOFT_KIND_KERNEL,
                               handle);
}

// The same for a row that asks how many blocks fit.
static kiln_cu_result_t enter_occupancy(kiln_cu_function_t function, bool good,
                                        kilni_soft_driver_t** out_driver,
                                        kilni_soft_kernel_t** out_kernel) {
  *out_kernel = NULL;
  kiln_cu_result_t result =
      kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, out_driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (!good) return kilni_soft_leave(*out_driver, KILN_CU_ERROR_INVALID_VALUE);
  *out_kernel = kilni_soft_launchable(*out_driver, function);
  if (*out_kernel != NULL) return KILN_CU_SUCCESS;
  return kilni_soft_leave(*out_driver, KILN_CU_ERROR_INVALID_HANDLE);
}

// The limit of a GPU's compiler: no kernel takes more, the excess is spilled.
static int register_count(const kilni_soft_entry_t* entry) {
  return entry->register_count < REGISTERS_MOST ? (int)entry->register_count
                                                : REGISTERS_MOST;
}

kiln_cu_result_t kilni_soft_kernel_read(const kilni_soft_kernel_t* kernel,
                                        kiln_cu_function_attribute_t attribute,
                                        int* out_value) {
  const kilni_soft_entry_t* entry = kernel->entry;
  int value = 0;
  switch (attribute) {
    case KILN_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      value = (int)entry->max_threads;
      break;
    case KILN_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      value = (int)entry->static_shared_bytes;
      break;
    case KILN_CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      value = (int)entry->local_bytes;
      break;
    case KILN_CU_FUNC_ATTRIBUTE_NUM_REGS:
      value = register_count(entry);
      break;
    case KILN_CU_FUNC_ATTRIBUTE_PTX_VERSION:
      value = (int)kernel->module->tree->target_sm;
      break;
    case KILN_CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      value = SM_NUMBER;
      break;
    case KILN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      value = kernel->max_dynamic_shared;
      break;
    case KILN_CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      value = kernel->carveout;
      break;
    case KILN_CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      value = entry->explicit_cluster;
      break;
    case KILN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case KILN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case KILN_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      value = (int)entry->cluster;
      break;
    case KILN_CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case KILN_CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case KILN_CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case KILN_CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      break;
    default:
      return KILN_CU_ERROR_INVALID_VALUE;
  }
  *out_value = value;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t kernel_row_get_attribute(
    int* value, kiln_cu_function_attribute_t attribute,
    kiln_cu_function_t function) {
  kilni_soft_driver_t* driver;
  kilni_soft_kernel_t* kernel;
  kiln_cu_result_t result =
      soft_kernel_enter_kernel(function, value != NULL, &driver, &kernel);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_kernel_read(kernel, attribute, value);
  return kilni_soft_leave(driver, result);
}

kiln_cu_result_t kilni_soft_kernel_set(kilni_soft_kernel_t* kernel,
                                       kiln_cu_function_attribute_t attribute,
                                       int value) {
  int shared_most =
      KILNI_SOFT_SHARED_MOST - (int)kernel->entry->static_shared_bytes;
  if (attribute == KILN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
      value >= 0 && value <= shared_most) {
    kernel->max_dynamic_shared = value;
  } else if (attribute ==
                 KILN_CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT &&
             value >= -1 && value <= 100) {
    kernel->carveout = value;
  } else {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t kernel_row_set_attribute(
    kiln_cu_function_t function, kiln_cu_function_attribute_t attribute,
    int value) {
  kilni_soft_driver_t* driver;
  kilni_soft_kernel_t* kernel;
  kiln_cu_result_t result =
      soft_kernel_enter_kernel(function, true, &driver, &kernel);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_kernel_set(kernel, attribute, value);
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t kernel_row_get_module(kiln_cu_module_t* module,
                                              kiln_cu_function_t function) {
  kilni_soft_driver_t* driver;
  kilni_soft_kernel_t* kernel;
  kiln_cu_result_t result =
      soft_kernel_enter_kernel(function, module != NULL, &driver, &kernel);
  if (result != KILN_CU_SUCCESS) return result;
  *module = (kiln_cu_module_t)(uintptr_t)kernel->module->handle;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t kernel_row_get_name(const char** name,
                                            kiln_cu_function_t function) {
  kilni_soft_driver_t* driver;
  kilni_soft_kernel_t* kernel;
  kiln_cu_result_t result =
      soft_kernel_enter_kernel(function, name != NULL, &driver, &kernel);
  if (result != KILN_CU_SUCCESS) return result;
  *name = kernel->entry->name;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

kiln_cu_result_t kilni_soft_kernel_param(const kilni_soft_kernel_t* kernel,
                                         size_t index, size_t* offset,
                                         size_t* bytes) {
  const kilni_soft_entry_t* entry = kernel->entry;
  // The driver returns this for an index past the last parameter, too.
  if (index >= entry->param_count) return KILN_CU_ERROR_INVALID_VALUE;
  *offset = entry->params[index].offset;
  if (bytes != NULL) *bytes = entry->params[index].bytes;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t kernel_row_param_info(kiln_cu_function_t function,
                                              size_t index, size_t* offset,
                                              size_t* bytes) {
  kilni_soft_driver_t* driver;
  kilni_soft_kernel_t* kernel;
  kiln_cu_result_t result =
      soft_kernel_enter_kernel(function, offset != NULL, &driver, &kernel);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_kernel_param(kernel, index, offset, bytes);
  return kilni_soft_leave(driver, result);
}

// ---- Occupancy ----

static int kernel_least(int a, int b) {
  return a < b ? a : b;
}

// Blocks of `block_size` threads that fit one SM at once; 0 if one is too
// large.
static int blocks_per_sm(const kilni_soft_kernel_t* kernel, int block_size,
                         size_t dynamic_bytes) {
  const kilni_soft_entry_t* entry = kernel->entry;
  if (block_size > (int)entry->max_threads ||
      dynamic_bytes > (size_t)kernel->max_dynamic_shared) {
    return 0;
  }
  int warps = (block_size + WARP - 1) / WARP;
  int registers = register_count(entry);
  if (registers < 1) registers = 1;
  registers = (registers + REGISTER_UNIT - 1) / REGISTER_UNIT * REGISTER_UNIT;
  int blocks = kernel_least(SM_BLOCKS, SM_THREADS / (warps * WARP));
  blocks = kernel_least(blocks, SM_REGISTERS / (registers * warps * WARP));
  int shared = (int)(entry->static_shared_bytes + dynamic_bytes) + BLOCK_SHARED;
  return kernel_least(blocks, SM_SHARED / shared);
}

uint64_t kilni_soft_resident_blocks(const kilni_soft_kernel_t* kernel,
                                    uint32_t threads, uint32_t dynamic_bytes) {
  int sm_count;
  kilni_soft_attribute(KILN_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0,
                       &sm_count);
  int blocks = blocks_per_sm(kernel, (int)threads, dynamic_bytes);
  return (uint64_t)blocks * (uint64_t)sm_count;
}

static kiln_cu_result_t row_max_blocks(int* blocks, kiln_cu_function_t function,
                                       int block_size, size_t dynamic_bytes) {
  kilni_soft_driver_t* driver;
  kilni_soft_kernel_t* kernel;
  kiln_cu_result_t result = enter_occupancy(
      function, blocks != NULL && block_size > 0, &driver, &kernel);
  if (result != KILN_CU_SUCCESS) return result;
  *blocks = blocks_per_sm(kernel, block_size, dynamic_bytes);
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

// What is left of an SM's shared memory for each of `blocks` of its blocks.
static kiln_cu_result_t row_dynamic_bytes(size_t* dynamic_bytes,
                                          kiln_cu_function_t function,
                                          int blocks, int block_size) {
  kilni_soft_driver_t* driver;
  kilni_soft_kernel_t* kernel;
  bool good = dynamic_bytes != NULL && blocks > 0 && block_size > 0;
  kiln_cu_result_t result = enter_occupancy(function, good, &driver, &kernel);
  if (result != KILN_CU_SUCCESS) return result;
  if (blocks_per_sm(kernel, block_size, 0) < blocks) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  int each = SM_SHARED / blocks / SHARED_UNIT * SHARED_UNIT - BLOCK_SHARED -
             (int)kernel->entry->static_shared_bytes;
  int most = KILNI_SOFT_SHARED_MOST - (int)kernel->entry->static_shared_bytes;
  each = kernel_least(each, most);
  *dynamic_bytes = each > 0 ? (size_t)each : 0;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

// The block size with the most threads on an SM, of what one function gives.
typedef struct choice_t {
  int block_size;
  int blocks;
} choice_t;

static kiln_cu_result_t row_best_block(int* grid_size, int* block_size,
                                       kiln_cu_function_t function,
                                       kiln_cu_occupancy_fn_t dynamic_bytes_of,
                                       size_t dynamic_bytes, int block_limit) {
  kilni_soft_driver_t* driver;
  kilni_soft_kernel_t* kernel;
  bool good = grid_size != NULL && block_size != NULL && block_limit >= 0;
  kiln_cu_result_t result = enter_occupancy(function, good, &driver, &kernel);
  if (result != KILN_CU_SUCCESS) return result;
  // The callback is called unlocked, from a copy: the function may go.
  kilni_soft_entry_t entry = *kernel->entry;
  kilni_soft_kernel_t copy = *kernel;
  copy.entry = &entry;
  kilni_base_mutex_unlock(&driver->lock);
  int most = (int)entry.max_threads;
  if (block_limit > 0) most = kernel_least(most, block_limit);
  choice_t best = {0, 0};
  int size = most < WARP ? most : most / WARP * WARP;
  for (; size > 0; size -= WARP) {
    size_t bytes =
        dynamic_bytes_of != NULL ? dynamic_bytes_of(size) : dynamic_bytes;
    int blocks = blocks_per_sm(&copy, size, bytes);
    if (blocks * size > best.blocks * best.block_size) {
      best = (choice_t){size, blocks};
    }
  }
  int sm_count;
  kilni_soft_attribute(KILN_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0,
                       &sm_count);
  *block_size = best.block_size;
  *grid_size = best.blocks * sm_count;
  return KILN_CU_SUCCESS;
}

// ---- Clusters: every block is one, by itself ----

static kiln_cu_result_t row_cluster_size(
    int* blocks, kiln_cu_function_t function,
    const kiln_cu_launch_config_t* config) {
  kilni_soft_driver_t* driver;
  kilni_soft_kernel_t* kernel;
  kiln_cu_result_t result = enter_occupancy(
      function, blocks != NULL && config != NULL, &driver, &kernel);
  if (result != KILN_CU_SUCCESS) return result;
  *blocks = 1;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

// INVALID_VALUE for the blocks of a launch that cannot be.
static kiln_cu_result_t kernel_check_clusters(
    const kiln_cu_launch_config_t* config) {
  uint64_t threads =
      (uint64_t)config->block_x * config->block_y * config->block_z;
  if (threads == 0 || threads > INT32_MAX ||
      (config->attribute_count > 0 && config->attributes == NULL)) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  kiln_cu_result_t result = KILN_CU_SUCCESS;
  for (unsigned int i = 0;
       i < config->attribute_count && result == KILN_CU_SUCCESS; i++) {
    result = kilni_soft_check_attribute(&config->attributes[i]);
  }
  return result;
}

static kiln_cu_result_t row_clusters(int* clusters, kiln_cu_function_t function,
                                     const kiln_cu_launch_config_t* config) {
  kilni_soft_driver_t* driver;
  kilni_soft_kernel_t* kernel;
  kiln_cu_result_t result = enter_occupancy(
      function, clusters != NULL && config != NULL, &driver, &kernel);
  if (result != KILN_CU_SUCCESS) return result;
  result = kernel_check_clusters(config);
  if (result == KILN_CU_SUCCESS) {
    *clusters = (int)kilni_soft_resident_blocks(
        kernel, config->block_x * config->block_y * config->block_z,
        config->shared_bytes);
  }
  return kilni_soft_leave(driver, result);
}

void kilni_soft_fill_kernel(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuFuncGetAttribute, kernel_row_get_attribute);
  KILNI_CUDA_SET(table, cuFuncSetAttribute, kernel_row_set_attribute);
  KILNI_CUDA_SET(table, cuFuncGetModule, kernel_row_get_module);
  KILNI_CUDA_SET(table, cuFuncGetName, kernel_row_get_name);
  KILNI_CUDA_SET(table, cuFuncGetParamInfo, kernel_row_param_info);
  KILNI_CUDA_SET(table, cuOccupancyMaxActiveBlocksPerMultiprocessor,
                 row_max_blocks);
  KILNI_CUDA_SET(table, cuOccupancyMaxPotentialBlockSize, row_best_block);
  KILNI_CUDA_SET(table, cuOccupancyAvailableDynamicSMemPerBlock,
                 row_dynamic_bytes);
  KILNI_CUDA_SET(table, cuOccupancyMaxPotentialClusterSize, row_cluster_size);
  KILNI_CUDA_SET(table, cuOccupancyMaxActiveClusters, row_clusters);
}
