// SPDX-License-Identifier: Apache-2.0
//
// soft: rows that allocate and free.
//
// As on a GPU, a free that is not ordered by a stream waits for everything
// that was issued before it.
#include "base/alloc.h"
#include "soft/driver/soft_driver.h"
#include "soft/driver/soft_graph.h"
#include "table/cuda_table.h"

static const unsigned int kHostAllocFlags = KILN_CU_MEMHOSTALLOC_PORTABLE |
                                            KILN_CU_MEMHOSTALLOC_DEVICEMAP |
                                            KILN_CU_MEMHOSTALLOC_WRITECOMBINED;
static const unsigned int kRegisterFlags =
    KILN_CU_MEMHOSTREGISTER_PORTABLE | KILN_CU_MEMHOSTREGISTER_DEVICEMAP |
    KILN_CU_MEMHOSTREGISTER_IOMEMORY | KILN_CU_MEMHOSTREGISTER_READ_ONLY;

static kiln_cu_result_t alloc_row_info(size_t* available, size_t* total) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  if (available == NULL || total == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  kilni_soft_memory_t* memory = kilni_soft_current(driver)->memory;
  *total = (size_t)kilni_soft_memory_total(memory);
  *available = (size_t)kilni_soft_memory_available(memory);
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

kiln_cu_result_t kilni_soft_allocate(kilni_soft_driver_t* driver,
                                     uint32_t device, uint64_t bytes,
                                     kilni_soft_alloc_kind_t kind,
                                     uint64_t* out_address) {
  kilni_soft_memory_t* memory = driver->contexts[device].memory;
  kiln_status_t status =
      kilni_soft_memory_alloc(memory, bytes, kind, out_address);
  if (kiln_status_code(status) == KILN_STATUS_DEVICE_OUT_OF_MEMORY &&
      driver->freeing_count > 0) {
    kiln_status_free(status);
    kilni_soft_queue_drain(driver, NULL);
    status = kilni_soft_memory_alloc(memory, bytes, kind, out_address);
  }
  return kilni_soft_result(status);
}

static kiln_cu_result_t soft_alloc_row_alloc(kiln_cu_deviceptr_t* address,
                                             size_t bytes) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_unsafe(driver, "cuMemAlloc");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  if (address == NULL || bytes == 0) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  uint64_t made;
  result = kilni_soft_allocate(driver, kilni_soft_current(driver)->device,
                               bytes, KILNI_SOFT_ALLOC_DEVICE, &made);
  if (result == KILN_CU_SUCCESS) *address = made;
  return kilni_soft_leave(driver, result);
}

static bool is_freeing(const kilni_soft_driver_t* driver, uint64_t address) {
  for (size_t i = 0; i < driver->freeing_count; i++) {
    if (driver->freeing[i].address == address) return true;
  }
  return false;
}

void kilni_soft_freeing_done(kilni_soft_driver_t* driver, uint64_t address) {
  for (size_t i = 0; i < driver->freeing_count; i++) {
    if (driver->freeing[i].address != address) continue;
    driver->freeing[i] = driver->freeing[--driver->freeing_count];
    return;
  }
}

// True if `address` starts an allocation that a free may name.
static bool may_free(kilni_soft_driver_t* driver, uint64_t address,
                     kilni_soft_alloc_t* out_alloc) {
  if (!kilni_soft_memory_query(driver->memory, address, out_alloc)) {
    return false;
  }
  bool own = out_alloc->kind == KILNI_SOFT_ALLOC_DEVICE ||
             out_alloc->kind == KILNI_SOFT_ALLOC_ASYNC ||
             (kilni_soft_alloc_is_host(out_alloc->kind) &&
              out_alloc->kind >= KILNI_SOFT_ALLOC_MANAGED);
  return own && out_alloc->address == address && !is_freeing(driver, address);
}

// What a graph allocated and did not free: it is free for the graph's next
// launch.
static kiln_cu_result_t free_store(kilni_soft_driver_t* driver,
                                   kilni_soft_store_t* store) {
  if (!store->used) return KILN_CU_ERROR_INVALID_VALUE;
  kilni_soft_store_use(driver, store, false);
  return kilni_soft_sticky(&driver->contexts[store->device]);
}

static kiln_cu_result_t row_free(kiln_cu_deviceptr_t address) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_CURRENT, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_unsafe(driver, "cuMemFree");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  const kilni_soft_context_t* context = kilni_soft_current(driver);
  if (address == 0) return kilni_soft_leave(driver, kilni_soft_sticky(context));
  kilni_soft_alloc_t alloc;
  kilni_soft_store_t* store = kilni_soft_store_find(driver, address);
  if (store != NULL) {
    kilni_soft_queue_drain(driver, NULL);
    return kilni_soft_leave(driver, free_store(driver, store));
  }
  if (!may_free(driver, address, &alloc)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  // Other devices may use it too.
  kilni_soft_queue_drain(driver, NULL);
  kiln_status_t status =
      kilni_soft_memory_free(driver->memory, address, alloc.kind);
  bool gone = !kiln_status_is_ok(status);
  kiln_status_free(status);
  if (!gone) kilni_soft_pool_give(driver, &alloc);
  return kilni_soft_leave(
      driver, gone ? KILN_CU_ERROR_INVALID_VALUE : kilni_soft_sticky(context));
}

static kiln_cu_result_t row_alloc_async(kiln_cu_deviceptr_t* address,
                                        size_t bytes, kiln_cu_stream_t stream) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* where;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, false, &driver, &where);
  if (result != KILN_CU_SUCCESS) return result;
  if (address == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  kilni_soft_captured_t* captured;
  result =
      kilni_soft_capture_enter(driver, where, "cuMemAllocAsync", &captured);
  if (result == KILN_CU_SUCCESS && captured != NULL) {
    return kilni_soft_leave(
        driver,
        kilni_soft_capture_alloc(driver, captured, "cuMemAllocAsync",
                                 where->context->device, bytes, address));
  }
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_capture_unsafe(driver, "cuMemAllocAsync");
  }
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  // No bytes are the null pointer and a success, as driver 580 has it; it is
  // cuMemAlloc that refuses them.
  uint64_t made = 0;
  kilni_soft_pool_t* pool = NULL;
  if (bytes > 0) {
    result = kilni_soft_pool_default(driver, where->context->device, &pool);
  }
  if (pool != NULL) {
    result = kilni_soft_pool_take(driver, where->context, pool, bytes, &made);
  }
  if (result == KILN_CU_SUCCESS) *address = made;
  return kilni_soft_leave(driver, result);
}

// Puts the free at the end of the stream. The address is marked at once, so
// that a second free of it is refused.
static kiln_cu_result_t issue_free(kilni_soft_driver_t* driver,
                                   kilni_soft_stream_t* stream,
                                   const kilni_soft_alloc_t* alloc) {
  void* list = driver->freeing;
  kiln_status_t status = kilni_base_grow(
      driver->host.allocator, driver->freeing_count + 1,
      sizeof(*driver->freeing), &driver->freeing_capacity, &list);
  driver->freeing = list;
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  driver->freeing[driver->freeing_count++] =
      (kilni_soft_freeing_t){alloc->address, NULL};
  kilni_soft_task_t* task;
  kilni_soft_work_t work = {.kind = KILNI_SOFT_TASK_FREE,
                            .as.release = {alloc->address, alloc->kind}};
  kiln_cu_result_t result =
      kilni_soft_queue_issue(driver, stream, &work, NULL, &task);
  if (result != KILN_CU_SUCCESS) {
    kilni_soft_freeing_done(driver, alloc->address);
    return result;
  }
  // It is still there unless it was done at once, and lives as long.
  for (size_t i = 0; i < driver->freeing_count && !task->done; i++) {
    if (driver->freeing[i].address == alloc->address) {
      driver->freeing[i].task = task;
    }
  }
  kilni_soft_task_release(driver, task);
  return result;
}

static kiln_cu_result_t row_free_async(kiln_cu_deviceptr_t address,
                                       kiln_cu_stream_t stream) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_queue_space(driver);
  kilni_soft_stream_t* where;
  result = kilni_soft_stream_resolve(driver, stream, &where);
  kilni_soft_alloc_t alloc;
  if (where == NULL) return kilni_soft_leave(driver, result);
  kilni_soft_captured_t* captured;
  kilni_soft_store_t* store = kilni_soft_store_find(driver, address);
  kiln_cu_result_t free =
      kilni_soft_capture_enter(driver, where, "cuMemFreeAsync", &captured);
  if (free == KILN_CU_SUCCESS && captured != NULL) {
    return kilni_soft_leave(
        driver,
        kilni_soft_capture_free(driver, captured, "cuMemFreeAsync", address));
  }
  if (free == KILN_CU_SUCCESS) {
    free = kilni_soft_capture_unsafe(driver, "cuMemFreeAsync");
  }
  if (free != KILN_CU_SUCCESS) return kilni_soft_leave(driver, free);
  if (store != NULL) return kilni_soft_leave(driver, free_store(driver, store));
  if (!may_free(driver, address, &alloc) || alloc.owner == NULL ||
      kilni_soft_alloc_is_virtual(alloc.kind)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  kiln_cu_result_t freed = issue_free(driver, where, &alloc);
  if (result == KILN_CU_SUCCESS) result = freed;
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_alloc_managed(kiln_cu_deviceptr_t* address,
                                          size_t bytes, unsigned int flags) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_unsafe(driver, "cuMemAllocManaged");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  bool known =
      flags == KILN_CU_MEM_ATTACH_GLOBAL || flags == KILN_CU_MEM_ATTACH_HOST;
  if (address == NULL || bytes == 0 || !known) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  uint64_t made;
  result = kilni_soft_allocate(driver, kilni_soft_current(driver)->device,
                               bytes, KILNI_SOFT_ALLOC_MANAGED, &made);
  if (result == KILN_CU_SUCCESS) *address = made;
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_host_alloc(void** address, size_t bytes,
                                       unsigned int flags) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_unsafe(driver, "cuMemHostAlloc");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  if (address == NULL || bytes == 0 || (flags & ~kHostAllocFlags) != 0) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  uint64_t made;
  result = kilni_soft_result(kilni_soft_memory_alloc(
      kilni_soft_current(driver)->memory, bytes, KILNI_SOFT_ALLOC_HOST, &made));
  if (result == KILN_CU_SUCCESS) *address = (void*)(uintptr_t)made;
  return kilni_soft_leave(driver, result);
}

// Ends pinned memory of `kind`; `missing` is the result where there is none.
static kiln_cu_result_t end_pinned(void* host, const char* call,
                                   kilni_soft_alloc_kind_t kind,
                                   kiln_cu_result_t missing) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_CURRENT, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_unsafe(driver, call);
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  uint64_t address = (uintptr_t)host;
  kilni_soft_alloc_t alloc;
  if (!kilni_soft_memory_query(driver->memory, address, &alloc) ||
      alloc.kind != kind || alloc.address != address) {
    return kilni_soft_leave(driver, missing);
  }
  const kilni_soft_context_t* context = kilni_soft_current(driver);
  kilni_soft_queue_drain(driver, NULL);
  kiln_status_t status = kilni_soft_memory_free(driver->memory, address, kind);
  bool gone = !kiln_status_is_ok(status);
  kiln_status_free(status);
  return kilni_soft_leave(driver, gone ? missing : kilni_soft_sticky(context));
}

static kiln_cu_result_t row_host_free(void* address) {
  return end_pinned(address, "cuMemFreeHost", KILNI_SOFT_ALLOC_HOST,
                    KILN_CU_ERROR_INVALID_VALUE);
}

static kiln_cu_result_t row_register(void* host, size_t bytes,
                                     unsigned int flags) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_unsafe(driver, "cuMemHostRegister");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  const unsigned int absent =
      KILN_CU_MEMHOSTREGISTER_IOMEMORY | KILN_CU_MEMHOSTREGISTER_READ_ONLY;
  if (host == NULL || bytes == 0 || (flags & ~kRegisterFlags) != 0) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  } else if ((flags & absent) != 0) {
    result = KILN_CU_ERROR_NOT_SUPPORTED;
  } else {
    kiln_status_t status =
        kilni_soft_memory_register(kilni_soft_current(driver)->memory, host,
                                   bytes, KILNI_SOFT_ALLOC_REGISTERED, flags);
    if (kiln_status_code(status) == KILN_STATUS_ALREADY_EXISTS) {
      result = KILN_CU_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
      kiln_status_free(status);
    } else {
      result = kilni_soft_result(status);
    }
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t row_unregister(void* host) {
  return end_pinned(host, "cuMemHostUnregister", KILNI_SOFT_ALLOC_REGISTERED,
                    KILN_CU_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

void kilni_soft_fill_alloc(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuMemGetInfo, alloc_row_info);
  KILNI_CUDA_SET(table, cuMemAlloc, soft_alloc_row_alloc);
  KILNI_CUDA_SET(table, cuMemFree, row_free);
  KILNI_CUDA_SET(table, cuMemAllocAsync, row_alloc_async);
  KILNI_CUDA_SET(table, cuMemFreeAsync, row_free_async);
  KILNI_CUDA_SET(table, cuMemAllocManaged, row_alloc_managed);
  KILNI_CUDA_SET(table, cuMemHostAlloc, row_host_alloc);
  KILNI_CUDA_SET(table, cuMemFreeHost, row_host_free);
  KILNI_CUDA_SET(table, cuMemHostRegister, row_register);
  KILNI_CUDA_SET(table, cuMemHostUnregister, row_unregister);
}
