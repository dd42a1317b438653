// SPDX-License-Identifier: Apache-2.0
//
// soft: rows that ask what an address is. Sizes of the answers are the
// driver's: a handle, an address or a size is 8 bytes, the rest 4.
#include <string.h>

#include "soft/driver/soft_driver.h"
#include "table/cuda_table.h"

// The answer to one question and its size in bytes. `alloc` NULL: the address
// is unknown, and every answer "nothing".
static kiln_cu_result_t pointer_answer(const kilni_soft_driver_t* driver,
                                       kiln_cu_pointer_attribute_t attribute,
                                       const kilni_soft_alloc_t* alloc,
                                       uint64_t address, uint64_t* out_value,
                                       size_t* out_bytes) {
  bool known = alloc != NULL;
  bool host = known && kilni_soft_alloc_is_host(alloc->kind);
  bool managed = known && kilni_soft_alloc_is_managed(alloc->kind);
  const kilni_soft_pool_t* pool =
      known && !kilni_soft_alloc_is_virtual(alloc->kind) ? alloc->owner : NULL;
  uint64_t wide = 0;
  uint32_t narrow = 0;
  *out_bytes = sizeof(uint64_t);
  switch (attribute) {
    case KILN_CU_POINTER_ATTRIBUTE_CONTEXT:
      wide = known ? driver->contexts[alloc->device].handle : 0;
      break;
    case KILN_CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      wide = known ? address : 0;
      break;
    case KILN_CU_POINTER_ATTRIBUTE_HOST_POINTER:
      wide = host ? address : 0;
      break;
    case KILN_CU_POINTER_ATTRIBUTE_BUFFER_ID:
      wide = known ? alloc->id : 0;
      break;
    case KILN_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      wide = known ? alloc->address : 0;
      break;
    case KILN_CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      wide = known ? alloc->bytes : 0;
      break;
    case KILN_CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      break;
    case KILN_CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *out_bytes = sizeof(uint32_t);
      if (known) {
        narrow = host && !managed ? KILN_CU_MEMORYTYPE_HOST
                                  : KILN_CU_MEMORYTYPE_DEVICE;
      }
      break;
    case KILN_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *out_bytes = sizeof(uint32_t);
      narrow = known ? alloc->device : (uint32_t)-2;
      break;
    case KILN_CU_POINTER_ATTRIBUTE_MAPPED:
      *out_bytes = sizeof(uint32_t);
      narrow = known;
      break;
    case KILN_CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      wide = pool != NULL ? pool->handle : 0;
      break;
    case KILN_CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *out_bytes = sizeof(uint32_t);
      narrow = managed;
      break;
    case KILN_CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case KILN_CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case KILN_CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      *out_bytes = sizeof(uint32_t);
      break;
    default:
      return KILN_CU_ERROR_INVALID_VALUE;
  }
  *out_value = *out_bytes == sizeof(uint32_t) ? narrow : wide;
  return KILN_CU_SUCCESS;
}

static void pointer_put(void* to, uint64_t value, size_t bytes) {
  uint32_t narrow = (uint32_t)value;
  if (bytes == sizeof(narrow)) {
    memcpy(to, &narrow, sizeof(narrow));
  } else {
    memcpy(to, &value, sizeof(value));
  }
}

static kiln_cu_result_t pointer_row_attribute(
    void* value, kiln_cu_pointer_attribute_t attribute,
    kiln_cu_deviceptr_t address) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_alloc_t alloc;
  uint64_t found = 0;
  size_t bytes = 0;
  if (value == NULL ||
      !kilni_soft_memory_query(driver->memory, address, &alloc)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  result = pointer_answer(driver, attribute, &alloc, address, &found, &bytes);
  if (attribute == KILN_CU_POINTER_ATTRIBUTE_HOST_POINTER && found == 0) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  }
  if (result == KILN_CU_SUCCESS) pointer_put(value, found, bytes);
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_attributes(unsigned int count,
                                       kiln_cu_pointer_attribute_t* attributes,
                                       void** values,
                                       kiln_cu_deviceptr_t address) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (count == 0 || attributes == NULL || values == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  kilni_soft_alloc_t alloc;
  bool known = kilni_soft_memory_query(driver->memory, address, &alloc);
  for (unsigned int i = 0; i < count && result == KILN_CU_SUCCESS; i++) {
    uint64_t found = 0;
    size_t bytes = 0;
    if (values[i] == NULL) {
      result = KILN_CU_ERROR_INVALID_VALUE;
      break;
    }
    result = pointer_answer(driver, attributes[i], known ? &alloc : NULL,
                            address, &found, &bytes);
    if (result == KILN_CU_SUCCESS) pointer_put(values[i], found, bytes);
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_host_device_pointer(kiln_cu_deviceptr_t* address,
                                                void* host,
                                                unsigned int flags) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_alloc_t alloc;
  bool pinned =
      kilni_soft_memory_query(driver->memory, (uintptr_t)host, &alloc) &&
      kilni_soft_alloc_is_host(alloc.kind);
  if (address == NULL || flags != 0 || !pinned) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  *address = (uintptr_t)host;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

void kilni_soft_fill_pointer(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuMemHostGetDevicePointer, row_host_device_pointer);
  KILNI_CUDA_SET(table, cuPointerGetAttribute, pointer_row_attribute);
  KILNI_CUDA_SET(table, cuPointerGetAttributes, row_attributes);
}
