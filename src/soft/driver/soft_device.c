// SPDX-License-Identifier: Apache-2.0
//
// soft: rows about the driver as a whole and its devices, which are all alike.
//
// Nothing here depends on the host: a program that tunes itself by attributes
// behaves the same on a laptop and in CI.
#include <stdio.h>
#include <string.h>

#include "soft/driver/soft_driver.h"
#include "table/cuda_table.h"

static const char kName[] = "Kiln software device";
// Of the first device; a further one has its number in the address, and the
// last byte of the UUID counts from 1.
static const char kBusId[] = "0000:00:00.0";
enum { BUS_DIGIT = 9 };
static const unsigned char kUuid[16] = {0x6b, 0x69, 0x6c, 0x6e, 0x73, 0x6f,
                                        0x66, 0x74, 0x80, 0x00, 0x00, 0x00,
                                        0x00, 0x00, 0x00, 0x01};

// Every attribute that is not zero. Textures, surfaces and everything else
// without a row are zero, as a driver reports "none".
#define ATTRIBUTES(X)                              \
  X(MAX_THREADS_PER_BLOCK, KILNI_SOFT_MAX_THREADS) \
  X(MAX_BLOCK_DIM_X, 1024)                         \
  X(MAX_BLOCK_DIM_Y, 1024)                         \
  X(MAX_BLOCK_DIM_Z, 64)                           \
  X(MAX_GRID_DIM_X, 2147483647)                    \
  X(MAX_GRID_DIM_Y, 65535)                         \
  X(MAX_GRID_DIM_Z, 65535)                         \
  X(MAX_SHARED_MEMORY_PER_BLOCK, 49152)            \
  X(TOTAL_CONSTANT_MEMORY, 65536)                  \
  X(WARP_SIZE, 32)                                 \
  X(MAX_PITCH, 2147483647)                         \
  X(MAX_REGISTERS_PER_BLOCK, 65536)                \
  X(CLOCK_RATE, 1000000)                           \
  X(TEXTURE_ALIGNMENT, 512)                        \
  X(GPU_OVERLAP, 1)                                \
  X(MULTIPROCESSOR_COUNT, 16)                      \
  X(CAN_MAP_HOST_MEMORY, 1)                        \
  X(SURFACE_ALIGNMENT, 512)                        \
  X(CONCURRENT_KERNELS, 1)                         \
  X(MEMORY_CLOCK_RATE, 1000000)                    \
  X(GLOBAL_MEMORY_BUS_WIDTH, 512)                  \
  X(L2_CACHE_SIZE, 4194304)                        \
  X(MAX_THREADS_PER_MULTIPROCESSOR, 2048)          \
  X(ASYNC_ENGINE_COUNT, 1)                         \
  X(UNIFIED_ADDRESSING, 1)                         \
  X(TEXTURE_PITCH_ALIGNMENT, 32)                   \
  X(COMPUTE_CAPABILITY_MAJOR, 9)                   \
  X(COMPUTE_CAPABILITY_MINOR, 0)                   \
  X(STREAM_PRIORITIES_SUPPORTED, 1)                \
  X(GLOBAL_L1_CACHE_SUPPORTED, 1)                  \
  X(LOCAL_L1_CACHE_SUPPORTED, 1)                   \
  X(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472)  \
  X(MAX_REGISTERS_PER_MULTIPROCESSOR, 65536)       \
  X(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2)      \
  X(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1)    \
  X(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448)     \
  X(HOST_REGISTER_SUPPORTED, 1)                    \
  X(MAX_BLOCKS_PER_MULTIPROCESSOR, 32)             \
  X(RESERVED_SHARED_MEMORY_PER_BLOCK, 1024)        \
  X(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1)        \
  X(MANAGED_MEMORY, 1)                             \
  X(CONCURRENT_MANAGED_ACCESS, 1)                  \
  X(MEMORY_POOLS_SUPPORTED, 1)                     \
  X(HOST_MEMORY_POOLS_SUPPORTED, 1)                \
  X(MEM_SYNC_DOMAIN_COUNT, 1)                      \
  X(UNIFIED_FUNCTION_POINTERS, 1)                  \
  X(NUMA_ID, -1)                                   \
  X(COOPERATIVE_LAUNCH, 1)                         \
  X(HOST_NUMA_ID, -1)

kiln_cu_result_t kilni_soft_attribute(kiln_cu_device_attribute_t attribute,
                                      uint32_t device, int* out_value) {
  *out_value = 0;
  if (kilni_table_cuda_attribute_name(attribute) == NULL) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  switch (attribute) {
#define CASE(name, value)               \
  case KILN_CU_DEVICE_ATTRIBUTE_##name: \
    *out_value = (value);               \
    break;
    ATTRIBUTES(CASE)
#undef CASE
    case KILN_CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
      *out_value = (int)device;
      break;
    default:
      break;
  }
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t device_row_init(unsigned int flags) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_NOTHING, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (flags != 0) return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  driver->started = true;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t row_driver_version(int* version) {
  if (version == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  *version = KILNI_SOFT_DRIVER_VERSION;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t give_text(const char* known, const char** text) {
  if (text == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  *text = known;
  return known != NULL ? KILN_CU_SUCCESS : KILN_CU_ERROR_INVALID_VALUE;
}

static kiln_cu_result_t row_error_name(kiln_cu_result_t error,
                                       const char** text) {
  const char* known = error == KILN_CU_SUCCESS
                          ? "CUDA_SUCCESS"
                          : kilni_table_cuda_result_name(error);
  return give_text(known, text);
}

static kiln_cu_result_t row_error_string(kiln_cu_result_t error,
                                         const char** text) {
  const char* known = error == KILN_CU_SUCCESS
                          ? "no error"
                          : kilni_table_cuda_result_text(error);
  return give_text(known, text);
}

// The entry point of a row's name, as bits of a data pointer.
static bool device_find_row(const kiln_cuda_table_t* table, const char* symbol,
                            void** out_address, uint32_t* out_version) {
#define KILNI_CUDA_ROW(name, ...)                                          \
  if (strcmp(symbol, #name) == 0) {                                        \
    if (!kilni_table_cuda_has(table, KILNI_CUDA_ROW_##name)) return false; \
    memcpy(out_address, &table->name, sizeof(*out_address));               \
    *out_version = kilni_table_cuda_row(KILNI_CUDA_ROW_##name)->version;   \
    return true;                                                           \
  }
#include "table/cuda_rows.inc"
#undef KILNI_CUDA_ROW
  return false;
}

static kiln_cu_result_t row_proc_address(const char* symbol, void** address,
                                         int version, uint64_t flags,
                                         kiln_cu_proc_address_query_t* found) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_NOTHING, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (symbol == NULL || address == NULL ||
      flags > KILN_CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  uint32_t needed = 0;
  void* entry = NULL;
  kiln_cu_proc_address_query_t state = KILN_CU_GET_PROC_ADDRESS_SUCCESS;
  if (flags == KILN_CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM ||
      !device_find_row(&driver->table, symbol, &entry, &needed)) {
    entry = NULL;
    state = KILN_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  } else if (version < (int)needed) {
    entry = NULL;
    state = KILN_CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  }
  *address = entry;
  if (found != NULL) *found = state;
  return kilni_soft_leave(
      driver, entry != NULL ? KILN_CU_SUCCESS : KILN_CU_ERROR_NOT_FOUND);
}

static kiln_cu_result_t row_device_get(kiln_cu_device_t* device, int ordinal) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (device == NULL) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  } else if (!kilni_soft_is_device(driver, ordinal)) {
    result = KILN_CU_ERROR_INVALID_DEVICE;
  } else {
    *device = ordinal;
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_device_count(int* count) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (count == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  *count = (int)driver->device_count;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

// Checks what every question about a device needs. Not locked afterwards.
static kiln_cu_result_t soft_device_check_device(const void* out,
                                                 kiln_cu_device_t device) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (out == NULL) result = KILN_CU_ERROR_INVALID_VALUE;
  if (!kilni_soft_is_device(driver, device)) {
    result = KILN_CU_ERROR_INVALID_DEVICE;
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_device_name(char* name, int space,
                                        kiln_cu_device_t device) {
  kiln_cu_result_t result = soft_device_check_device(name, device);
  if (result != KILN_CU_SUCCESS) return result;
  if (space <= 0) return KILN_CU_ERROR_INVALID_VALUE;
  snprintf(name, (size_t)space, "%s", kName);
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t row_device_uuid(kiln_cu_uuid_t* uuid,
                                        kiln_cu_device_t device) {
  kiln_cu_result_t result = soft_device_check_device(uuid, device);
  if (result != KILN_CU_SUCCESS) return result;
  memcpy(uuid->bytes, kUuid, sizeof(kUuid));
  uuid->bytes[sizeof(kUuid) - 1] = (char)(device + 1);
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t row_total_mem(size_t* bytes, kiln_cu_device_t device) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = soft_device_check_device(bytes, device);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  *bytes = (size_t)kilni_soft_memory_total(driver->memory);
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t device_row_attribute(
    int* value, kiln_cu_device_attribute_t attribute, kiln_cu_device_t device) {
  kiln_cu_result_t result = soft_device_check_device(value, device);
  if (result != KILN_CU_SUCCESS) return result;
  int found;
  result = kilni_soft_attribute(attribute, (uint32_t)device, &found);
  if (result == KILN_CU_SUCCESS) *value = found;
  return result;
}

static kiln_cu_result_t row_bus_id(char* name, int space,
                                   kiln_cu_device_t device) {
  kiln_cu_result_t result = soft_device_check_device(name, device);
  if (result != KILN_CU_SUCCESS) return result;
  if (space < (int)sizeof(kBusId)) return KILN_CU_ERROR_INVALID_VALUE;
  memcpy(name, kBusId, sizeof(kBusId));
  name[BUS_DIGIT] = (char)('0' + device);
  return KILN_CU_SUCCESS;
}

void kilni_soft_fill_device(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuInit, device_row_init);
  KILNI_CUDA_SET(table, cuDriverGetVersion, row_driver_version);
  KILNI_CUDA_SET(table, cuGetErrorName, row_error_name);
  KILNI_CUDA_SET(table, cuGetErrorString, row_error_string);
  KILNI_CUDA_SET(table, cuGetProcAddress, row_proc_address);
  KILNI_CUDA_SET(table, cuDeviceGet, row_device_get);
  KILNI_CUDA_SET(table, cuDeviceGetCount, row_device_count);
  KILNI_CUDA_SET(table, cuDeviceGetName, row_device_name);
  KILNI_CUDA_SET(table, cuDeviceGetUuid, row_device_uuid);
  KILNI_CUDA_SET(table, cuDeviceTotalMem, row_total_mem);
  KILNI_CUDA_SET(table, cuDeviceGetAttribute, device_row_attribute);
  KILNI_CUDA_SET(table, cuDeviceGetPCIBusId, row_bus_id);
}
