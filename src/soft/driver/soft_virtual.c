// SPDX-License-Identifier: Apache-2.0
//
// soft: rows about virtual memory: reserved addresses, memory with a handle,
// and the mappings between them.
//
// Memory with a handle is real: it keeps its content when it is unmapped, and
// mapped twice it is the same memory at both places. It lives until its handle
// is released and its last mapping gone. None of this belongs to a context.
#include <string.h>

#include "base/alloc.h"
#include "base/vm.h"
#include "soft/driver/soft_driver.h"
#include "table/cuda_table.h"

#define PAGE ((uint64_t)KILNI_SOFT_PAGE_BYTES)

// Memory that can be mapped. thread-compatible
struct kilni_soft_physical_t {
  uint64_t handle;  // 0: released
  uint64_t bytes;
  int share;
  uint32_t mappings;
  uint32_t device;
  uint32_t reserved;
  kilni_soft_physical_t* next;
};

static void virtual_dispose(kilni_soft_driver_t* driver,
                            kilni_soft_physical_t* physical) {
  kilni_soft_physical_t** at = &driver->physicals;
  while (*at != physical) at = &(*at)->next;
  *at = physical->next;
  if (physical->handle != 0) {
    kilni_soft_handle_remove(&driver->handles, physical->handle);
  }
  kilni_base_vm_share_close(physical->share);
  kilni_soft_memory_uncharge(driver->contexts[physical->device].memory,
                             physical->bytes);
  kilni_base_free(driver->host.allocator, physical, sizeof(*physical));
}

void kilni_soft_physicals_clear(kilni_soft_driver_t* driver) {
  while (driver->physicals != NULL) virtual_dispose(driver, driver->physicals);
}

static bool virtual_is_device(const kilni_soft_driver_t* driver,
                              const kiln_cu_mem_location_t* location) {
  return location->type == KILN_CU_MEM_LOCATION_TYPE_DEVICE &&
         kilni_soft_is_device(driver, location->id);
}

static kiln_cu_result_t check_properties(
    const kilni_soft_driver_t* driver,
    const kiln_cu_mem_allocation_prop_t* prop) {
  if (prop == NULL || prop->type != KILN_CU_MEM_ALLOCATION_TYPE_PINNED ||
      !virtual_is_device(driver, &prop->location)) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  return prop->handle_types == 0 ? KILN_CU_SUCCESS
                                 : KILN_CU_ERROR_NOT_SUPPORTED;
}

static bool virtual_is_whole(uint64_t bytes) {
  return bytes != 0 && bytes % PAGE == 0;
}

// Enters with the result of a check of the arguments.
static kiln_cu_result_t virtual_enter(kiln_cu_result_t checked,
                                      kilni_soft_driver_t** out_driver) {
  kiln_cu_result_t result =
      kilni_soft_enter(KILNI_SOFT_NEEDS_START, out_driver);
  if (result != KILN_CU_SUCCESS || checked == KILN_CU_SUCCESS) return result;
  return kilni_soft_leave(*out_driver, checked);
}

static kiln_cu_result_t good_if(bool condition) {
  return condition ? KILN_CU_SUCCESS : KILN_CU_ERROR_INVALID_VALUE;
}

static kiln_cu_result_t row_granularity(
    size_t* bytes, const kiln_cu_mem_allocation_prop_t* prop,
    kiln_cu_mem_granularity_t option) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = virtual_enter(
      good_if(bytes != NULL &&
              option <= KILN_CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
      &driver);
  if (result != KILN_CU_SUCCESS) return result;
  result = check_properties(driver, prop);
  if (result == KILN_CU_SUCCESS) *bytes = (size_t)PAGE;
  return kilni_soft_leave(driver, result);
}

// ---- Addresses ----

static kiln_cu_result_t row_reserve(kiln_cu_deviceptr_t* address, size_t bytes,
                                    size_t align, kiln_cu_deviceptr_t hint,
                                    unsigned long long flags) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result =
      virtual_enter(good_if(address != NULL && virtual_is_whole(bytes) &&
                            flags == 0 && (align & (align - 1)) == 0),
                    &driver);
  if (result != KILN_CU_SUCCESS) return result;
  uint64_t made = 0;
  uint64_t step = align > PAGE ? align : PAGE;
  result = kilni_soft_result(
      kilni_soft_memory_reserve(driver->memory, bytes, step, hint, &made));
  if (result == KILN_CU_SUCCESS) *address = made;
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_unreserve(kiln_cu_deviceptr_t address,
                                      size_t bytes) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = virtual_enter(KILN_CU_SUCCESS, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  return kilni_soft_leave(driver, good_if(kilni_soft_memory_unreserve(
                                      driver->memory, address, bytes)));
}

// ---- Memory ----

static kiln_cu_result_t virtual_make(kilni_soft_driver_t* driver,
                                     uint32_t device, uint64_t bytes,
                                     kilni_soft_physical_t** out_physical) {
  kilni_soft_physical_t* physical;
  kilni_soft_memory_t* memory = driver->contexts[device].memory;
  if (!kilni_soft_memory_charge(memory, bytes)) {
    return KILN_CU_ERROR_OUT_OF_MEMORY;
  }
  kiln_status_t status = kilni_base_alloc(driver->host.allocator,
                                          sizeof(*physical), (void**)&physical);
  if (!kiln_status_is_ok(status)) {
    kilni_soft_memory_uncharge(memory, bytes);
    return kilni_soft_result(status);
  }
  physical->bytes = bytes;
  physical->device = device;
  physical->share = -1;
  physical->next = driver->physicals;
  driver->physicals = physical;
  status = kilni_base_vm_share_create((size_t)bytes, &physical->share);
  if (kiln_status_is_ok(status)) {
    status = kilni_soft_handle_add(&driver->handles, KILNI_SOFT_KIND_PHYSICAL,
                                   physical, &physical->handle);
  }
  if (!kiln_status_is_ok(status)) {
    virtual_dispose(driver, physical);
    return kilni_soft_result(status);
  }
  *out_physical = physical;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t virtual_row_create(
    kiln_cu_mem_handle_t* handle, size_t bytes,
    const kiln_cu_mem_allocation_prop_t* prop, unsigned long long flags) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = virtual_enter(
      good_if(handle != NULL && virtual_is_whole(bytes) && flags == 0),
      &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_physical_t* made = NULL;
  result = check_properties(driver, prop);
  if (result == KILN_CU_SUCCESS) {
    result = virtual_make(driver, (uint32_t)prop->location.id, bytes, &made);
  }
  if (result == KILN_CU_SUCCESS) *handle = made->handle;
  return kilni_soft_leave(driver, result);
}

static kilni_soft_physical_t* virtual_find(kilni_soft_driver_t* driver,
                                           kiln_cu_mem_handle_t handle) {
  return kilni_soft_handle_get(&driver->handles, KILNI_SOFT_KIND_PHYSICAL,
                               handle);
}

static kiln_cu_result_t virtual_row_release(kiln_cu_mem_handle_t handle) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = virtual_enter(KILN_CU_SUCCESS, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_physical_t* found = virtual_find(driver, handle);
  if (found == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  kilni_soft_handle_remove(&driver->handles, found->handle);
  found->handle = 0;
  if (found->mappings == 0) virtual_dispose(driver, found);
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

// ---- Mappings ----

static kiln_cu_result_t row_map(kiln_cu_deviceptr_t address, size_t bytes,
                                size_t offset, kiln_cu_mem_handle_t handle,
                                unsigned long long flags) {
  kilni_soft_driver_t* driver;
  // As driver 580 returns for a page of a handle: it maps the whole or nothing.
  kiln_cu_result_t result =
      offset != 0 ? KILN_CU_ERROR_NOT_SUPPORTED
                  : good_if(flags == 0 && virtual_is_whole(bytes) &&
                            address % PAGE == 0);
  result = virtual_enter(result, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_physical_t* found = virtual_find(driver, handle);
  if (found == NULL || found->bytes != bytes) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  result = kilni_soft_result(
      kilni_soft_memory_map(driver->contexts[found->device].memory, address,
                            bytes, found->share, found));
  if (result == KILN_CU_SUCCESS) found->mappings++;
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_unmap(kiln_cu_deviceptr_t address, size_t bytes) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = virtual_enter(KILN_CU_SUCCESS, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  uint64_t end = address + bytes;
  if (!virtual_is_whole(bytes) ||
      !kilni_soft_memory_is_mapped(driver->memory, address, bytes)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  while (address < end) {
    kilni_soft_alloc_t gone;
    kilni_soft_memory_unmap(driver->memory, address, &gone);
    address += gone.bytes;
    kilni_soft_physical_t* physical = gone.owner;
    if (--physical->mappings == 0 && physical->handle == 0) {
      virtual_dispose(driver, physical);
    }
  }
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static kiln_cu_result_t virtual_row_set_access(
    kiln_cu_deviceptr_t address, size_t bytes,
    const kiln_cu_mem_access_desc_t* list, size_t count) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = virtual_enter(
      good_if(list != NULL && count > 0 && virtual_is_whole(bytes)), &driver);
  if (result != KILN_CU_SUCCESS) return result;
  bool good = kilni_soft_memory_is_mapped(driver->memory, address, bytes);
  for (size_t i = 0; good && i < count; i++) {
    good = virtual_is_device(driver, &list[i].location) &&
           (list[i].flags == KILN_CU_MEM_ACCESS_FLAGS_PROT_NONE ||
            list[i].flags == KILN_CU_MEM_ACCESS_FLAGS_PROT_READ ||
            list[i].flags == KILN_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }
  for (size_t i = 0; good && i < count; i++) {
    kilni_soft_memory_set_access(driver->contexts[list[i].location.id].memory,
                                 address, bytes, list[i].flags);
  }
  return kilni_soft_leave(driver, good_if(good));
}

static kiln_cu_result_t virtual_row_get_access(
    unsigned long long* flags, const kiln_cu_mem_location_t* location,
    kiln_cu_deviceptr_t address) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result =
      virtual_enter(good_if(flags != NULL && location != NULL), &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_alloc_t alloc;
  bool mapped = virtual_is_device(driver, location) &&
                kilni_soft_memory_query(driver->memory, address, &alloc) &&
                alloc.kind == KILNI_SOFT_ALLOC_MAPPED;
  if (mapped) *flags = alloc.access >> 2 * location->id & KILNI_SOFT_ACCESS_ALL;
  return kilni_soft_leave(driver, good_if(mapped));
}

void kilni_soft_fill_virtual(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuMemGetAllocationGranularity, row_granularity);
  KILNI_CUDA_SET(table, cuMemAddressReserve, row_reserve);
  KILNI_CUDA_SET(table, cuMemAddressFree, row_unreserve);
  KILNI_CUDA_SET(table, cuMemCreate, virtual_row_create);
  KILNI_CUDA_SET(table, cuMemRelease, virtual_row_release);
  KILNI_CUDA_SET(table, cuMemMap, row_map);
  KILNI_CUDA_SET(table, cuMemUnmap, row_unmap);
  KILNI_CUDA_SET(table, cuMemSetAccess, virtual_row_set_access);
  KILNI_CUDA_SET(table, cuMemGetAccess, virtual_row_get_access);
}
