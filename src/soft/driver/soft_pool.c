// SPDX-License-Identifier: Apache-2.0
//
// soft: rows about memory pools, and allocations from them.
//
// A pool here is books, not memory: how much of it is used and what a driver
// would keep of it from one synchronisation to the next. Its limit and its
// numbers are true to that; the bytes themselves come from the device's one
// memory and go back there at once, so that a use after free is found.
#include <string.h>

#include "base/alloc.h"
#include "soft/driver/soft_driver.h"
#include "soft/driver/soft_graph.h"
#include "table/cuda_table.h"

// What a driver takes at a time for a pool.
#define POOL_STEP_BYTES (2ull << 20)

static uint64_t pool_round_up(uint64_t bytes, uint64_t step) {
  return (bytes + step - 1) / step * step;
}

static uint64_t pool_greater(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

static uint64_t pool_lesser(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

// Gives back what is neither used nor below `keep`.
static void pool_shrink(kilni_soft_pool_t* pool, uint64_t keep) {
  pool->reserved = pool_greater(pool_round_up(pool->used, POOL_STEP_BYTES),
                                pool_lesser(pool->reserved, keep));
}

void kilni_soft_pools_settle(kilni_soft_driver_t* driver) {
  for (kilni_soft_pool_t* p = driver->pools; p != NULL; p = p->next) {
    pool_shrink(p, p->threshold);
  }
}

static void pool_dispose(kilni_soft_driver_t* driver, kilni_soft_pool_t* pool) {
  kilni_soft_pool_t** at = &driver->pools;
  while (*at != pool) at = &(*at)->next;
  *at = pool->next;
  kilni_soft_context_t* context = &driver->contexts[pool->device];
  if (context->default_pool == pool) context->default_pool = NULL;
  if (pool->handle != 0) {
    kilni_soft_handle_remove(&driver->handles, pool->handle);
  }
  kilni_base_free(driver->host.allocator, pool, sizeof(*pool));
}

void kilni_soft_pools_clear(kilni_soft_driver_t* driver) {
  while (driver->pools != NULL) pool_dispose(driver, driver->pools);
}

// What the devices may do with a new pool.
static uint32_t first_access(kilni_soft_alloc_kind_t kind, uint32_t device) {
  if (kind == KILNI_SOFT_ALLOC_ASYNC) {
    return (uint32_t)KILNI_SOFT_ACCESS_ALL << 2 * device;
  }
  return kind == KILNI_SOFT_ALLOC_POOL_HOST ? 0 : UINT32_MAX;
}

static kiln_cu_result_t make_pool(kilni_soft_driver_t* driver,
                                  kilni_soft_alloc_kind_t kind, uint32_t device,
                                  uint64_t max_bytes,
                                  kilni_soft_pool_t** out_pool) {
  kilni_soft_pool_t* pool;
  kiln_status_t status =
      kilni_base_alloc(driver->host.allocator, sizeof(*pool), (void**)&pool);
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  status = kilni_soft_handle_add(&driver->handles, KILNI_SOFT_KIND_POOL, pool,
                                 &pool->handle);
  if (!kiln_status_is_ok(status)) {
    kilni_base_free(driver->host.allocator, pool, sizeof(*pool));
    return kilni_soft_result(status);
  }
  pool->kind = kind;
  pool->max_bytes = max_bytes;
  for (int i = 0; i < KILNI_SOFT_POOL_SWITCHES; i++) pool->reuse[i] = 1;
  pool->device = device;
  pool->access = first_access(kind, device);
  pool->next = driver->pools;
  driver->pools = pool;
  *out_pool = pool;
  return KILN_CU_SUCCESS;
}

kiln_cu_result_t kilni_soft_pool_default(kilni_soft_driver_t* driver,
                                         uint32_t device,
                                         kilni_soft_pool_t** out_pool) {
  kilni_soft_context_t* context = &driver->contexts[device];
  *out_pool = context->default_pool;
  if (*out_pool != NULL) return KILN_CU_SUCCESS;
  kiln_cu_result_t result =
      make_pool(driver, KILNI_SOFT_ALLOC_ASYNC, device, 0, out_pool);
  context->default_pool = *out_pool;
  return result;
}

// ---- Allocations ----

kiln_cu_result_t kilni_soft_pool_take(kilni_soft_driver_t* driver,
                                      const kilni_soft_context_t* context,
                                      kilni_soft_pool_t* pool, uint64_t bytes,
                                      uint64_t* out_address) {
  uint64_t rounded = pool_round_up(bytes, KILNI_SOFT_ALLOC_ALIGN);
  if (rounded < bytes ||
      (pool->max_bytes != 0 &&
       (rounded > pool->max_bytes || pool->used > pool->max_bytes - rounded))) {
    return KILN_CU_ERROR_OUT_OF_MEMORY;
  }
  // Counted first: allocating may wait, and the pool must not end meanwhile.
  pool->used += rounded;
  // Host memory belongs to the device that asks for it.
  uint32_t device =
      pool->kind == KILNI_SOFT_ALLOC_ASYNC ? pool->device : context->device;
  kiln_cu_result_t result =
      kilni_soft_allocate(driver, device, bytes, pool->kind, out_address);
  if (result != KILN_CU_SUCCESS) {
    pool->used -= rounded;
    if (pool->used == 0 && pool->handle == 0) pool_dispose(driver, pool);
    return result;
  }
  kilni_soft_memory_own(driver->memory, *out_address, pool, pool->access);
  pool->used_high = pool_greater(pool->used_high, pool->used);
  pool->reserved =
      pool_greater(pool->reserved, pool_round_up(pool->used, POOL_STEP_BYTES));
  pool->reserved_high = pool_greater(pool->reserved_high, pool->reserved);
  return KILN_CU_SUCCESS;
}

void kilni_soft_pool_give(kilni_soft_driver_t* driver,
                          const kilni_soft_alloc_t* alloc) {
  kilni_soft_pool_t* pool = alloc->owner;
  if (pool == NULL) return;
  pool->used -= pool_round_up(alloc->bytes, KILNI_SOFT_ALLOC_ALIGN);
  if (pool->used == 0 && pool->handle == 0) pool_dispose(driver, pool);
}

static kiln_cu_result_t pool_row_alloc(kiln_cu_deviceptr_t* address,
                                       size_t bytes, kiln_cu_mempool_t pool,
                                       kiln_cu_stream_t stream) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* where;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, false, &driver, &where);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_pool_t* found = kilni_soft_handle_get(
      &driver->handles, KILNI_SOFT_KIND_POOL, (uintptr_t)pool);
  if (address == NULL || found == NULL) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  kilni_soft_captured_t* captured;
  static const char kCall[] = "cuMemAllocFromPoolAsync";
  result = kilni_soft_capture_enter(driver, where, kCall, &captured);
  if (result == KILN_CU_SUCCESS && captured != NULL) {
    return kilni_soft_leave(
        driver, kilni_soft_capture_alloc(driver, captured, kCall, found->device,
                                         bytes, address));
  }
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_capture_unsafe(driver, kCall);
  }
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  uint64_t made = 0;
  if (bytes > 0) {
    result = kilni_soft_pool_take(driver, where->context, found, bytes, &made);
  }
  if (result == KILN_CU_SUCCESS) *address = made;
  return kilni_soft_leave(driver, result);
}

// ---- Pools ----

static kiln_cu_result_t row_current(kiln_cu_mempool_t* pool,
                                    kiln_cu_device_t device) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_pool_t* found = NULL;
  if (pool == NULL) {
    result = KILN_CU_ERROR_INVALID_VALUE;
  } else if (!kilni_soft_is_device(driver, device)) {
    result = KILN_CU_ERROR_INVALID_DEVICE;
  } else {
    result = kilni_soft_pool_default(driver, (uint32_t)device, &found);
  }
  if (result == KILN_CU_SUCCESS) {
    *pool = (kiln_cu_mempool_t)(uintptr_t)found->handle;
  }
  return kilni_soft_leave(driver, result);
}

// What kind of memory a pool of these properties is made of; 0 for none.
static kilni_soft_alloc_kind_t pool_kind_of(
    const kilni_soft_driver_t* driver, const kiln_cu_mempool_props_t* props) {
  const kiln_cu_mem_location_t* at = &props->location;
  bool here = at->type == KILN_CU_MEM_LOCATION_TYPE_DEVICE &&
              kilni_soft_is_device(driver, at->id);
  bool host = at->type == KILN_CU_MEM_LOCATION_TYPE_HOST ||
              (at->type == KILN_CU_MEM_LOCATION_TYPE_HOST_NUMA && at->id == 0);
  if (props->allocation == KILN_CU_MEM_ALLOCATION_TYPE_PINNED) {
    if (here) return KILNI_SOFT_ALLOC_ASYNC;
    if (host) return KILNI_SOFT_ALLOC_POOL_HOST;
  } else if (props->allocation == KILN_CU_MEM_ALLOCATION_TYPE_MANAGED) {
    bool nowhere = at->type == KILN_CU_MEM_LOCATION_TYPE_NONE;
    if (here || host || nowhere) return KILNI_SOFT_ALLOC_POOL_MANAGED;
  }
  return (kilni_soft_alloc_kind_t)0;
}

static bool pool_is_zero(const kiln_cu_mempool_props_t* props) {
  for (size_t i = 0; i < sizeof(props->reserved); i++) {
    if (props->reserved[i] != 0) return false;
  }
  return props->security == NULL;
}

static kiln_cu_result_t pool_row_create(kiln_cu_mempool_t* pool,
                                        const kiln_cu_mempool_props_t* props) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_START, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_unsafe(driver, "cuMemPoolCreate");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  if (pool == NULL || props == NULL || pool_kind_of(driver, props) == 0 ||
      !pool_is_zero(props)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  if (props->handle_types != 0) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_NOT_SUPPORTED);
  }
  kilni_soft_pool_t* made = NULL;
  bool of_device = props->location.type == KILN_CU_MEM_LOCATION_TYPE_DEVICE;
  result = make_pool(driver, pool_kind_of(driver, props),
                     of_device ? (uint32_t)props->location.id : 0,
                     props->max_bytes, &made);
  if (result == KILN_CU_SUCCESS) {
    *pool = (kiln_cu_mempool_t)(uintptr_t)made->handle;
  }
  return kilni_soft_leave(driver, result);
}

// Enters a row about a pool; `good` is what it asks of its other arguments.
static kiln_cu_result_t enter_pool(kiln_cu_mempool_t pool, bool good,
                                   kilni_soft_driver_t** out_driver,
                                   kilni_soft_pool_t** out_pool) {
  kiln_cu_result_t result =
      kilni_soft_enter(KILNI_SOFT_NEEDS_START, out_driver);
  if (result != KILN_CU_SUCCESS) return result;
  *out_pool = kilni_soft_handle_get(&(*out_driver)->handles,
                                    KILNI_SOFT_KIND_POOL, (uintptr_t)pool);
  if (*out_pool != NULL && good) return KILN_CU_SUCCESS;
  return kilni_soft_leave(*out_driver, KILN_CU_ERROR_INVALID_VALUE);
}

// A pool with allocations lives on, without a handle, until the last is freed.
static kiln_cu_result_t pool_row_destroy(kiln_cu_mempool_t pool) {
  kilni_soft_driver_t* driver;
  kilni_soft_pool_t* found;
  kiln_cu_result_t result = enter_pool(pool, true, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_unsafe(driver, "cuMemPoolDestroy");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  if (found == driver->contexts[found->device].default_pool) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  if (found->used == 0) {
    pool_dispose(driver, found);
  } else {
    kilni_soft_handle_remove(&driver->handles, found->handle);
    found->handle = 0;
  }
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

// Where the number of a 64-bit attribute is; NULL for another.
static uint64_t* pool_number_of(kilni_soft_pool_t* pool,
                                kiln_cu_mempool_attribute_t attribute) {
  switch (attribute) {
    case KILN_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return &pool->threshold;
    case KILN_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return &pool->reserved;
    case KILN_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return &pool->reserved_high;
    case KILN_CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return &pool->used;
    case KILN_CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return &pool->used_high;
    default:
      return NULL;
  }
}

static int* switch_of(kilni_soft_pool_t* pool,
                      kiln_cu_mempool_attribute_t attribute) {
  bool is_one = attribute >= 1 && attribute <= KILNI_SOFT_POOL_SWITCHES;
  return is_one ? &pool->reuse[attribute - 1] : NULL;
}

static kiln_cu_result_t pool_row_get_attribute(
    kiln_cu_mempool_t pool, kiln_cu_mempool_attribute_t attribute,
    void* value) {
  kilni_soft_driver_t* driver;
  kilni_soft_pool_t* found;
  kiln_cu_result_t result = enter_pool(pool, value != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_unsafe(driver, "cuMemPoolGetAttribute");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  const uint64_t* number = pool_number_of(found, attribute);
  const int* reuse = switch_of(found, attribute);
  if (number != NULL) {
    memcpy(value, number, sizeof(*number));
  } else if (reuse != NULL) {
    memcpy(value, reuse, sizeof(*reuse));
  } else {
    result = KILN_CU_ERROR_INVALID_VALUE;
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t set_number(kilni_soft_pool_t* pool,
                                   kiln_cu_mempool_attribute_t attribute,
                                   uint64_t number) {
  if (attribute == KILN_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    pool->threshold = number;
    return KILN_CU_SUCCESS;
  }
  // The rest is measured; a high mark can only be let fall.
  if (number != 0) return KILN_CU_ERROR_INVALID_VALUE;
  if (attribute == KILN_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) {
    pool->reserved_high = pool->reserved;
    return KILN_CU_SUCCESS;
  }
  if (attribute == KILN_CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
    pool->used_high = pool->used;
    return KILN_CU_SUCCESS;
  }
  return KILN_CU_ERROR_INVALID_VALUE;
}

static kiln_cu_result_t pool_row_set_attribute(
    kiln_cu_mempool_t pool, kiln_cu_mempool_attribute_t attribute,
    void* value) {
  kilni_soft_driver_t* driver;
  kilni_soft_pool_t* found;
  kiln_cu_result_t result = enter_pool(pool, value != NULL, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_unsafe(driver, "cuMemPoolSetAttribute");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  int* reuse = switch_of(found, attribute);
  if (reuse != NULL) {
    memcpy(reuse, value, sizeof(*reuse));
  } else if (pool_number_of(found, attribute) != NULL) {
    uint64_t number;
    memcpy(&number, value, sizeof(number));
    result = set_number(found, attribute, number);
  } else {
    result = KILN_CU_ERROR_INVALID_VALUE;
  }
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t pool_row_trim(kiln_cu_mempool_t pool,
                                      size_t keep_bytes) {
  kilni_soft_driver_t* driver;
  kilni_soft_pool_t* found;
  kiln_cu_result_t result = enter_pool(pool, true, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_unsafe(driver, "cuMemPoolTrimTo");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  pool_shrink(found, keep_bytes);
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

static bool pool_is_device(const kilni_soft_driver_t* driver,
                           const kiln_cu_mem_location_t* location) {
  return location->type == KILN_CU_MEM_LOCATION_TYPE_DEVICE &&
         kilni_soft_is_device(driver, location->id);
}

// A device cannot lose access to its own memory, and managed memory is
// accessible to all.
static bool may_set(const kilni_soft_driver_t* driver,
                    const kilni_soft_pool_t* pool,
                    const kiln_cu_mem_access_desc_t* access) {
  if (!pool_is_device(driver, &access->location) ||
      pool->kind == KILNI_SOFT_ALLOC_POOL_MANAGED) {
    return false;
  }
  bool own = pool->kind == KILNI_SOFT_ALLOC_ASYNC &&
             access->location.id == (int)pool->device;
  if (access->flags == KILN_CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return true;
  return !own && (access->flags == KILN_CU_MEM_ACCESS_FLAGS_PROT_READ ||
                  access->flags == KILN_CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

static kiln_cu_result_t pool_row_set_access(
    kiln_cu_mempool_t pool, const kiln_cu_mem_access_desc_t* list,
    size_t count) {
  kilni_soft_driver_t* driver;
  kilni_soft_pool_t* found;
  bool good = list != NULL || count == 0;
  kiln_cu_result_t result = enter_pool(pool, good, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_unsafe(driver, "cuMemPoolSetAccess");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  for (size_t i = 0; i < count && result == KILN_CU_SUCCESS; i++) {
    uint32_t shift = 2 * (uint32_t)list[i].location.id;
    if (!may_set(driver, found, &list[i])) {
      result = KILN_CU_ERROR_INVALID_VALUE;
      break;
    }
    found->access &= ~((uint32_t)KILNI_SOFT_ACCESS_ALL << shift);
    found->access |= (uint32_t)list[i].flags << shift;
  }
  kilni_soft_memory_own_access(driver->memory, found, found->access);
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t pool_row_get_access(kiln_cu_mem_access_t* flags,
                                            kiln_cu_mempool_t pool,
                                            kiln_cu_mem_location_t* location) {
  kilni_soft_driver_t* driver;
  kilni_soft_pool_t* found;
  bool good = flags != NULL && location != NULL;
  kiln_cu_result_t result = enter_pool(pool, good, &driver, &found);
  if (result != KILN_CU_SUCCESS) return result;
  result = kilni_soft_capture_unsafe(driver, "cuMemPoolGetAccess");
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  if (!pool_is_device(driver, location)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  *flags = found->access >> 2 * location->id & KILNI_SOFT_ACCESS_ALL;
  return kilni_soft_leave(driver, KILN_CU_SUCCESS);
}

void kilni_soft_fill_pool(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuDeviceGetMemPool, row_current);
  KILNI_CUDA_SET(table, cuMemPoolCreate, pool_row_create);
  KILNI_CUDA_SET(table, cuMemPoolDestroy, pool_row_destroy);
  KILNI_CUDA_SET(table, cuMemPoolSetAttribute, pool_row_set_attribute);
  KILNI_CUDA_SET(table, cuMemPoolGetAttribute, pool_row_get_attribute);
  KILNI_CUDA_SET(table, cuMemPoolTrimTo, pool_row_trim);
  KILNI_CUDA_SET(table, cuMemPoolSetAccess, pool_row_set_access);
  KILNI_CUDA_SET(table, cuMemPoolGetAccess, pool_row_get_access);
  KILNI_CUDA_SET(table, cuMemAllocFromPoolAsync, pool_row_alloc);
}
