// SPDX-License-Identifier: Apache-2.0
//
// graph: the memory that allocation nodes take, of a whole device.
//
// A driver keeps what launches have allocated and freed for the next launch;
// these functions query that memory and have the driver release it.
#include <string.h>

#include "base/status_make.h"
#include "device/device_scope.h"
#include "kiln/graph.h"

static kiln_status_t memory_need(const kiln_device_t* device,
                                 kilni_cuda_row_id_t row) {
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  return kilni_table_cuda_need(device->table, row);
}

static kiln_status_t memory_ask(kiln_device_t* device,
                                kiln_cu_graph_mem_attribute_t attribute,
                                uint64_t* out_bytes) {
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuDeviceGetGraphMemAttribute,
                    device->handle, attribute, out_bytes);
  return status;
}

kiln_status_t kiln_graph_memory_describe(kiln_device_t* device,
                                         kiln_graph_memory_t* out_memory) {
  KILNI_CHECK_ARGUMENT(out_memory != NULL, "out_memory");
  memset(out_memory, 0, sizeof(*out_memory));
  KILNI_RETURN_IF_ERROR(
      memory_need(device, KILNI_CUDA_ROW_cuDeviceGetGraphMemAttribute));
  kiln_graph_memory_t memory = {0, 0, 0, 0};
  KILNI_RETURN_IF_ERROR(memory_ask(
      device, KILN_CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &memory.used));
  KILNI_RETURN_IF_ERROR(memory_ask(device, KILN_CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
                                   &memory.used_peak));
  KILNI_RETURN_IF_ERROR(memory_ask(
      device, KILN_CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &memory.reserved));
  KILNI_RETURN_IF_ERROR(memory_ask(
      device, KILN_CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &memory.reserved_peak));
  *out_memory = memory;
  return kiln_ok();
}

static kiln_status_t reset(kiln_device_t* device,
                           kiln_cu_graph_mem_attribute_t attribute) {
  uint64_t none = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuDeviceSetGraphMemAttribute,
                    device->handle, attribute, &none);
  return status;
}

kiln_status_t kiln_graph_memory_reset_peaks(kiln_device_t* device) {
  KILNI_RETURN_IF_ERROR(
      memory_need(device, KILNI_CUDA_ROW_cuDeviceSetGraphMemAttribute));
  KILNI_RETURN_IF_ERROR(reset(device, KILN_CU_GRAPH_MEM_ATTR_USED_MEM_HIGH));
  return reset(device, KILN_CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH);
}

kiln_status_t kiln_graph_memory_trim(kiln_device_t* device) {
  KILNI_RETURN_IF_ERROR(
      memory_need(device, KILNI_CUDA_ROW_cuDeviceGraphMemTrim));
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuDeviceGraphMemTrim, device->handle);
  return status;
}
