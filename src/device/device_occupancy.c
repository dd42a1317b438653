// SPDX-License-Identifier: Apache-2.0
//
// device: what a kernel is on its device, and how much of it runs at once.
#include <string.h>

#include "base/options.h"
#include "base/status_make.h"
#include "device/device_scope.h"

enum { CLUSTER_COMPUTE_MAJOR = 9 };

// Those that cuFuncSetAttribute changes, also a launch's or another library's.
static bool may_change(uint32_t attribute) {
  return attribute == KILN_KERNEL_ATTRIBUTE_MAX_DYNAMIC_SHARED ||
         attribute == KILN_KERNEL_ATTRIBUTE_SHARED_CARVEOUT ||
         attribute >= KILN_KERNEL_ATTRIBUTE_CLUSTER_WIDTH;
}

kiln_status_t kiln_kernel_attribute(kiln_kernel_t* kernel, uint32_t attribute,
                                    int32_t* out_value) {
  KILNI_CHECK_ARGUMENT(out_value != NULL, "out_value");
  *out_value = 0;
  KILNI_CHECK_ARGUMENT(kernel != NULL, "kernel");
  KILNI_CHECK_ARGUMENT_SAYS(attribute < KILNI_ATTRIBUTES, "attribute",
                            "is not an attribute of a kernel",
                            "use one of KILN_KERNEL_ATTRIBUTE_...");
  unsigned int bit = 1u << attribute;
  if ((atomic_load_explicit(&kernel->known, memory_order_acquire) & bit) != 0) {
    *out_value = atomic_load_explicit(&kernel->attributes[attribute],
                                      memory_order_relaxed);
    return kiln_ok();
  }
  int value = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, kernel->module->device, cuFuncGetAttribute, &value,
                    attribute, kernel->handle);
  KILNI_RETURN_IF_ERROR(status);
  *out_value = value;
  if (!may_change(attribute)) {
    atomic_store_explicit(&kernel->attributes[attribute], value,
                          memory_order_relaxed);
    atomic_fetch_or_explicit(&kernel->known, bit, memory_order_release);
  }
  return kiln_ok();
}

kiln_status_t kiln_kernel_max_blocks(kiln_kernel_t* kernel, uint32_t threads,
                                     uint64_t dynamic_bytes,
                                     uint32_t* out_blocks) {
  KILNI_CHECK_ARGUMENT(out_blocks != NULL, "out_blocks");
  *out_blocks = 0;
  KILNI_CHECK_ARGUMENT(kernel != NULL, "kernel");
  KILNI_CHECK_ARGUMENT(threads > 0 && threads <= INT32_MAX, "threads");
  int blocks = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, kernel->module->device,
                    cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks,
                    kernel->handle, (int)threads, (size_t)dynamic_bytes);
  if (kiln_status_is_ok(status)) *out_blocks = (uint32_t)blocks;
  return status;
}

kiln_status_t kiln_kernel_best_block(kiln_kernel_t* kernel,
                                     kiln_block_shared_fn_t shared_of,
                                     uint64_t dynamic_bytes, uint32_t limit,
                                     uint32_t* out_blocks,
                                     uint32_t* out_threads) {
  KILNI_CHECK_ARGUMENT(out_blocks != NULL, "out_blocks");
  KILNI_CHECK_ARGUMENT(out_threads != NULL, "out_threads");
  *out_blocks = 0;
  *out_threads = 0;
  KILNI_CHECK_ARGUMENT(kernel != NULL, "kernel");
  KILNI_CHECK_ARGUMENT(limit <= INT32_MAX, "limit");
  int blocks = 0;
  int threads = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(
      status, kernel->module->device, cuOccupancyMaxPotentialBlockSize, &blocks,
      &threads, kernel->handle, shared_of, (size_t)dynamic_bytes, (int)limit);
  if (kiln_status_is_ok(status)) {
    *out_blocks = (uint32_t)blocks;
    *out_threads = (uint32_t)threads;
  }
  return status;
}

kiln_status_t kiln_kernel_available_shared(kiln_kernel_t* kernel,
                                           uint32_t blocks, uint32_t threads,
                                           uint64_t* out_bytes) {
  KILNI_CHECK_ARGUMENT(out_bytes != NULL, "out_bytes");
  *out_bytes = 0;
  KILNI_CHECK_ARGUMENT(kernel != NULL, "kernel");
  KILNI_CHECK_ARGUMENT(blocks > 0 && blocks <= INT32_MAX, "blocks");
  KILNI_CHECK_ARGUMENT(threads > 0 && threads <= INT32_MAX, "threads");
  size_t bytes = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, kernel->module->device,
                    cuOccupancyAvailableDynamicSMemPerBlock, &bytes,
                    kernel->handle, (int)blocks, (int)threads);
  if (kiln_status_is_ok(status)) *out_bytes = bytes;
  return status;
}

// ---- Clusters ----

static uint32_t one_or(uint32_t count) {
  return count > 0 ? count : 1;
}

static kiln_status_t occupancy_check_clusters(const kiln_kernel_t* kernel) {
  const kiln_device_t* device = kernel->module->device;
  if (device->info.compute_major >= CLUSTER_COMPUTE_MAJOR) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED,
                 "\"%s\" has no clusters: its compute capability is %u.%u",
                 device->name, (unsigned)device->info.compute_major,
                 (unsigned)device->info.compute_minor),
      "use a GPU of compute capability 9.0 or newer, or launch without "
      "clusters");
}

// What the driver is asked about. A driver divides by the block.
static kiln_status_t occupancy_read_shape(const kiln_kernel_t* kernel,
                                          const kiln_launch_config_t* config,
                                          kiln_cu_launch_config_t* out_shape) {
  kiln_launch_config_t given;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(config, "kiln_launch_config_t",
                                                sizeof(given), &given));
  KILNI_RETURN_IF_ERROR(occupancy_check_clusters(kernel));
  memset(out_shape, 0, sizeof(*out_shape));
  out_shape->grid_x = one_or(given.grid[0]);
  out_shape->grid_y = one_or(given.grid[1]);
  out_shape->grid_z = one_or(given.grid[2]);
  out_shape->block_x = one_or(given.block[0]);
  out_shape->block_y = one_or(given.block[1]);
  out_shape->block_z = one_or(given.block[2]);
  out_shape->shared_bytes = given.shared_bytes;
  const uint32_t* most = kernel->module->device->info.max_block;
  KILNI_CHECK_ARGUMENT_SAYS(
      out_shape->block_x <= most[0] && out_shape->block_y <= most[1] &&
          out_shape->block_z <= most[2],
      "config", "has a block that is larger than the device's",
      "keep `block` within the device's `max_block`");
  return kiln_ok();
}

kiln_status_t kiln_kernel_max_cluster(kiln_kernel_t* kernel,
                                      const kiln_launch_config_t* config,
                                      uint32_t* out_blocks) {
  KILNI_CHECK_ARGUMENT(out_blocks != NULL, "out_blocks");
  *out_blocks = 0;
  KILNI_CHECK_ARGUMENT(kernel != NULL, "kernel");
  kiln_cu_launch_config_t shape;
  KILNI_RETURN_IF_ERROR(occupancy_read_shape(kernel, config, &shape));
  int blocks = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, kernel->module->device,
                    cuOccupancyMaxPotentialClusterSize, &blocks, kernel->handle,
                    &shape);
  if (kiln_status_is_ok(status)) *out_blocks = (uint32_t)blocks;
  return status;
}

kiln_status_t kiln_kernel_active_clusters(kiln_kernel_t* kernel,
                                          const kiln_launch_config_t* config,
                                          const uint32_t cluster[3],
                                          uint32_t* out_clusters) {
  KILNI_CHECK_ARGUMENT(out_clusters != NULL, "out_clusters");
  *out_clusters = 0;
  KILNI_CHECK_ARGUMENT(kernel != NULL, "kernel");
  KILNI_CHECK_ARGUMENT(cluster != NULL, "cluster");
  kiln_cu_launch_config_t shape;
  KILNI_RETURN_IF_ERROR(occupancy_read_shape(kernel, config, &shape));
  kiln_cu_launch_attribute_t attribute;
  memset(&attribute, 0, sizeof(attribute));
  attribute.id = KILN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.cluster.x = one_or(cluster[0]);
  attribute.value.cluster.y = one_or(cluster[1]);
  attribute.value.cluster.z = one_or(cluster[2]);
  shape.attributes = &attribute;
  shape.attribute_count = 1;
  int clusters = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, kernel->module->device,
                    cuOccupancyMaxActiveClusters, &clusters, kernel->handle,
                    &shape);
  if (kiln_status_is_ok(status)) *out_clusters = (uint32_t)clusters;
  return status;
}
