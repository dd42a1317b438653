// SPDX-License-Identifier: Apache-2.0
//
// device: memory pools of the driver. Not the streams and events that a device
// keeps for itself (device_pool.c).
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "device/device_scope.h"

enum {
  NEEDS_MAX_BYTES = 12020,   // the CUDA version with pools that have a limit
  NEEDS_OTHER_KIND = 13000,  // and with pools of host memory
  PEERS = 64,                // bits of kiln_pool_t.peers
};

// ---- Making and ending ----

kiln_status_t kilni_device_pool_make(kiln_device_t* device, uint32_t kind,
                                     kiln_pool_t** out_pool) {
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(device->host->allocator, sizeof(kiln_pool_t), &block));
  kiln_pool_t* pool = block;
  pool->device = device;
  kiln_device_retain(device);
  atomic_init(&pool->references, 1);
  atomic_init(&pool->peers, 0);
  pool->kind = kind;
  *out_pool = pool;
  return kiln_ok();
}

static kilni_base_registry_key_t mempool_key_of(kiln_cu_mempool_t handle) {
  return (kilni_base_registry_key_t){(uint64_t)(uintptr_t)handle,
                                     KILNI_REGISTERED_POOL, 0};
}

void kilni_device_pool_enter(kiln_pool_t* pool) {
  kilni_base_registry_put(&pool->device->whole->registry, &pool->entry,
                          mempool_key_of(pool->handle), pool,
                          &pool->references);
}

static kiln_status_t mempool_check_kind(uint32_t kind) {
  if (kind <= KILN_MEMORY_MANAGED) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "memory of kind %u", (unsigned)kind),
      "use one of the values KILN_MEMORY_*");
}

static kiln_status_t need_version(const kiln_device_t* device, uint32_t version,
                                  const char* what) {
  if (device->info.driver_version >= version) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED,
                 "%s need a driver for CUDA %u.%u; that of \"%s\" is for %u.%u",
                 what, version / 1000, version / 10 % 100, device->name,
                 device->info.driver_version / 1000,
                 device->info.driver_version / 10 % 100),
      "update the driver, or do without");
}

static kiln_status_t no_such_pool(const kiln_device_t* device,
                                  const char* what) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED, "\"%s\" has no %s", device->name, what),
      "make buffers without a pool there");
}

static kiln_status_t mempool_check_can(kiln_device_t* device, uint32_t kind) {
  KILNI_RETURN_IF_ERROR(mempool_check_kind(kind));
  if (!device->info.memory_pools) return no_such_pool(device, "memory pools");
  if (kind == KILN_MEMORY_DEVICE) return kiln_ok();
  KILNI_RETURN_IF_ERROR(need_version(device, NEEDS_OTHER_KIND,
                                     kind == KILN_MEMORY_PINNED
                                         ? "pools of pinned memory"
                                         : "pools of managed memory"));
  if (kind != KILN_MEMORY_PINNED) return kiln_ok();
  int can = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuDeviceGetAttribute, &can,
                    KILN_CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED,
                    device->handle);
  KILNI_RETURN_IF_ERROR(status);
  return can ? kiln_ok() : no_such_pool(device, "pools of pinned memory");
}

// Whether other processes may open it.
static kiln_status_t check_interprocess(kiln_device_t* device,
                                        const kiln_pool_options_t* given) {
  KILNI_CHECK_ARGUMENT(given->interprocess <= KILN_SWITCH_ON,
                       "options.interprocess");
  if (given->interprocess != KILN_SWITCH_ON) return kiln_ok();
  if (given->kind != KILN_MEMORY_DEVICE) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "a pool of host or managed memory that other processes may "
                   "open"),
        "leave `kind` in kiln_pool_options_t at 0");
  }
  KILNI_RETURN_IF_ERROR(kilni_table_cuda_need(
      device->table, KILNI_CUDA_ROW_cuMemPoolExportToShareableHandle));
  int types = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuDeviceGetAttribute, &types,
                    KILN_CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,
                    device->handle);
  KILNI_RETURN_IF_ERROR(status);
  bool can = (types & KILN_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0;
  return can ? NULL
             : no_such_pool(device, "pools that other processes may open");
}

static kiln_cu_mem_access_desc_t mempool_access_of(int ordinal,
                                                   uint32_t access) {
  kiln_cu_mem_access_desc_t desc = {{KILN_CU_MEM_LOCATION_TYPE_DEVICE, ordinal},
                                    access};
  return desc;
}

static kiln_status_t set_access(kiln_pool_t* pool, int ordinal,
                                uint32_t access) {
  kiln_cu_mem_access_desc_t desc = mempool_access_of(ordinal, access);
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, pool->device, cuMemPoolSetAccess, pool->handle,
                    &desc, 1);
  return status;
}

static kiln_status_t mempool_create(kiln_pool_t* pool,
                                    const kiln_pool_options_t* given) {
  kiln_device_t* device = pool->device;
  kiln_cu_mempool_props_t props;
  memset(&props, 0, sizeof(props));
  props.allocation = pool->kind == KILN_MEMORY_MANAGED
                         ? KILN_CU_MEM_ALLOCATION_TYPE_MANAGED
                         : KILN_CU_MEM_ALLOCATION_TYPE_PINNED;
  if (pool->kind == KILN_MEMORY_PINNED) {
    props.location.type = KILN_CU_MEM_LOCATION_TYPE_HOST;
  } else {
    props.location.type = KILN_CU_MEM_LOCATION_TYPE_DEVICE;
    props.location.id = device->handle;
  }
  props.max_bytes = (size_t)given->max_bytes;
  if (pool->interprocess) {
    props.handle_types = KILN_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  }
  kiln_status_t status;
  KILNI_DEVICE_CREATE(status, device, &pool->handle, cuMemPoolCreate, &props);
  pool->is_made = pool->handle != NULL;
  KILNI_RETURN_IF_ERROR(status);
  if (pool->kind == KILN_MEMORY_PINNED) {
    // Only the host may use it until access is granted to others.
    KILNI_RETURN_IF_ERROR(
        set_access(pool, device->handle, KILN_ACCESS_READ_WRITE));
  }
  if (given->threshold_bytes == 0) return kiln_ok();
  return kiln_pool_set_threshold(pool, given->threshold_bytes);
}

kiln_status_t kiln_pool_create(kiln_device_t* device,
                               const kiln_pool_options_t* options,
                               kiln_pool_t** out_pool) {
  KILNI_CHECK_ARGUMENT(out_pool != NULL, "out_pool");
  *out_pool = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  kiln_pool_options_t given;
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_pool_options_t, &given));
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  KILNI_RETURN_IF_ERROR(mempool_check_can(device, given.kind));
  if (given.max_bytes != 0) {
    KILNI_RETURN_IF_ERROR(
        need_version(device, NEEDS_MAX_BYTES, "pools with a limit"));
  }
  KILNI_RETURN_IF_ERROR(check_interprocess(device, &given));
  kiln_pool_t* pool = NULL;
  KILNI_RETURN_IF_ERROR(kilni_device_pool_make(device, given.kind, &pool));
  pool->interprocess = given.interprocess == KILN_SWITCH_ON;
  pool->max_bytes = given.max_bytes;
  kiln_status_t status = mempool_create(pool, &given);
  if (!kiln_status_is_ok(status)) {
    kiln_pool_release(pool);
    return status;
  }
  kilni_device_pool_enter(pool);
  *out_pool = pool;
  return kiln_ok();
}

static kiln_status_t mempool_ask(kiln_pool_t* pool,
                                 kiln_cu_mempool_attribute_t attribute,
                                 uint64_t* out_value) {
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, pool->device, cuMemPoolGetAttribute, pool->handle,
                    attribute, out_value);
  return status;
}

static kiln_status_t mempool_tell(kiln_pool_t* pool,
                                  kiln_cu_mempool_attribute_t attribute,
                                  uint64_t value) {
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, pool->device, cuMemPoolSetAttribute, pool->handle,
                    attribute, &value);
  return status;
}

static kiln_status_t find_default(kiln_pool_t* pool, uint64_t threshold) {
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, pool->device, cuDeviceGetMemPool, &pool->handle,
                    pool->device->handle);
  KILNI_RETURN_IF_ERROR(status);
  if (threshold == 0) return kiln_ok();
  uint64_t now = 0;
  KILNI_RETURN_IF_ERROR(
      mempool_ask(pool, KILN_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &now));
  return now == 0 ? kiln_pool_set_threshold(pool, threshold) : kiln_ok();
}

kiln_status_t kiln_pool_default(kiln_device_t* device, uint64_t threshold_bytes,
                                kiln_pool_t** out_pool) {
  KILNI_CHECK_ARGUMENT(out_pool != NULL, "out_pool");
  *out_pool = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  KILNI_RETURN_IF_ERROR(mempool_check_can(device, KILN_MEMORY_DEVICE));
  kiln_pool_t* pool = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_device_pool_make(device, KILN_MEMORY_DEVICE, &pool));
  kiln_status_t status = find_default(pool, threshold_bytes);
  if (!kiln_status_is_ok(status)) {
    kiln_pool_release(pool);
    return status;
  }
  *out_pool = pool;
  return kiln_ok();
}

// The reference of a look-up goes to the caller, or is given back.
static kiln_status_t take_known(kiln_pool_t* known, uint32_t kind,
                                const kiln_owner_t* owner,
                                kiln_pool_t** out_pool) {
  if (known->kind != kind) {
    const uint32_t is = known->kind;
    kiln_pool_release(known);
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "a pool of kind %u is adopted as one of kind %u",
                   (unsigned)is, (unsigned)kind),
        "set `kind` to the pool's kind: KILN_MEMORY_*");
  }
  if (owner != NULL) kilni_device_owner_release(*owner);
  *out_pool = known;
  return kiln_ok();
}

kiln_status_t kiln_pool_adopt(kiln_device_t* device, uint32_t kind,
                              void* handle, const kiln_owner_t* owner,
                              kiln_pool_t** out_pool) {
  KILNI_CHECK_ARGUMENT(out_pool != NULL, "out_pool");
  *out_pool = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(handle != NULL, "handle");
  KILNI_RETURN_IF_ERROR(mempool_check_kind(kind));
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  const bool owned = owner != NULL && owner->release != NULL;
  kilni_base_registry_t* registry = &device->whole->registry;
  kiln_pool_t* known =
      kilni_base_registry_find(registry, mempool_key_of(handle));
  if (known != NULL && (!owned || known->is_made)) {
    return take_known(known, kind, owner, out_pool);
  }
  // Other code keeps that object's handle alive, for an unknown time.
  kiln_pool_release(known);
  kiln_pool_t* pool = NULL;
  KILNI_RETURN_IF_ERROR(kilni_device_pool_make(device, kind, &pool));
  pool->handle = handle;
  *out_pool = pool;
  if (owned) {
    pool->owner = *owner;
    return kiln_ok();
  }
  known = kilni_base_registry_add(
      registry, &pool->entry, mempool_key_of(handle), pool, &pool->references);
  if (known == NULL) return kiln_ok();
  kiln_pool_release(pool);
  *out_pool = NULL;
  return take_known(known, kind, owner, out_pool);
}

void kiln_pool_retain(kiln_pool_t* pool) {
  if (pool == NULL) return;
  atomic_fetch_add_explicit(&pool->references, 1, memory_order_relaxed);
}

// A driver may crash over a pool that ends while others may still use it.
static void mempool_end(kiln_pool_t* pool) {
  kiln_device_t* device = pool->device;
  uint64_t peers = atomic_load(&pool->peers);
  for (int i = 0; i < PEERS; i++) {
    if (((peers >> i) & 1) == 0) continue;
    kiln_cu_mem_access_desc_t desc = mempool_access_of(i, KILN_ACCESS_NONE);
    KILNI_DEVICE_END(device, cuMemPoolSetAccess, pool->handle, &desc, 1);
  }
  KILNI_DEVICE_END(device, cuMemPoolDestroy, pool->handle);
}

void kiln_pool_release(kiln_pool_t* pool) {
  if (pool == NULL || kilni_device_is_forked(pool->device)) return;
  if (atomic_fetch_sub_explicit(&pool->references, 1, memory_order_acq_rel) !=
      1) {
    return;
  }
  kiln_device_t* device = pool->device;
  kiln_owner_t owner = pool->owner;
  kilni_base_registry_remove(&device->whole->registry, &pool->entry);
  if (pool->is_made) mempool_end(pool);
  if (pool->has_imports) {
    kilni_base_cond_deinit(&pool->imports.changed);
    kilni_base_mutex_deinit(&pool->imports.lock);
  }
  kilni_base_free(device->host->allocator, pool, sizeof(*pool));
  kilni_device_owner_release(owner);
  kiln_device_release(device);
}

kiln_device_t* kiln_pool_device(const kiln_pool_t* pool) {
  return pool->device;
}

void* kiln_pool_handle(const kiln_pool_t* pool) {
  return pool->handle;
}

uint32_t kiln_pool_kind(const kiln_pool_t* pool) {
  return pool->kind;
}

// ---- Numbers ----

kiln_status_t kiln_pool_set_threshold(kiln_pool_t* pool,
                                      uint64_t threshold_bytes) {
  KILNI_CHECK_ARGUMENT(pool != NULL, "pool");
  return mempool_tell(pool, KILN_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                      threshold_bytes);
}

kiln_status_t kiln_pool_stats(kiln_pool_t* pool, kiln_pool_stats_t* out_stats) {
  KILNI_CHECK_ARGUMENT(out_stats != NULL, "out_stats");
  memset(out_stats, 0, sizeof(*out_stats));
  KILNI_CHECK_ARGUMENT(pool != NULL, "pool");
  kiln_pool_stats_t stats;
  memset(&stats, 0, sizeof(stats));
  KILNI_RETURN_IF_ERROR(mempool_ask(pool, KILN_CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
                                    &stats.used_bytes));
  KILNI_RETURN_IF_ERROR(mempool_ask(pool, KILN_CU_MEMPOOL_ATTR_USED_MEM_HIGH,
                                    &stats.used_peak_bytes));
  KILNI_RETURN_IF_ERROR(mempool_ask(
      pool, KILN_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &stats.reserved_bytes));
  KILNI_RETURN_IF_ERROR(mempool_ask(pool,
                                    KILN_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
                                    &stats.reserved_peak_bytes));
  KILNI_RETURN_IF_ERROR(mempool_ask(
      pool, KILN_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &stats.threshold_bytes));
  *out_stats = stats;
  return kiln_ok();
}

kiln_status_t kiln_pool_reset_peaks(kiln_pool_t* pool) {
  KILNI_CHECK_ARGUMENT(pool != NULL, "pool");
  KILNI_RETURN_IF_ERROR(
      mempool_tell(pool, KILN_CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0));
  return mempool_tell(pool, KILN_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0);
}

kiln_status_t kiln_pool_trim(kiln_pool_t* pool, uint64_t keep_bytes) {
  KILNI_CHECK_ARGUMENT(pool != NULL, "pool");
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, pool->device, cuMemPoolTrimTo, pool->handle,
                    (size_t)keep_bytes);
  return status;
}

// ---- Other devices ----

static kiln_status_t check_other(const kiln_pool_t* pool,
                                 const kiln_device_t* other) {
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_driver(pool->device, other, "the device"));
  if (other->handle != pool->device->handle) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "the access of \"%s\" to a pool of its own cannot be changed",
                 other->name),
      "name another device");
}

// A device with access is recorded as soon as the driver has granted it,
// whatever fails afterwards, and is never dropped: revoking access twice does
// no harm.
static kiln_status_t mempool_let_in(kiln_pool_t* pool, int ordinal,
                                    uint32_t access) {
  kiln_device_t* device = pool->device;
  kiln_cu_mem_access_desc_t desc = mempool_access_of(ordinal, access);
  kilni_device_scope_t scope;
  KILNI_RETURN_IF_ERROR(
      kilni_device_scope_begin(&scope, device, KILNI_WAY_cuMemPoolSetAccess));
  kiln_cu_result_t result =
      device->table->cuMemPoolSetAccess(pool->handle, &desc, 1);
  if (result == KILN_CU_SUCCESS && access != KILN_ACCESS_NONE) {
    atomic_fetch_or(&pool->peers, UINT64_C(1) << ordinal);
  }
  return kilni_device_scope_leave(
      &scope, KILNI_DEVICE_CHECK(device, result, "cuMemPoolSetAccess"));
}

kiln_status_t kiln_pool_allow(kiln_pool_t* pool, kiln_device_t* other,
                              uint32_t access) {
  KILNI_CHECK_ARGUMENT(pool != NULL, "pool");
  KILNI_CHECK_ARGUMENT(other != NULL, "other");
  KILNI_CHECK_ARGUMENT(access == KILN_ACCESS_NONE ||
                           access == KILN_ACCESS_READ ||
                           access == KILN_ACCESS_READ_WRITE,
                       "access");
  KILNI_RETURN_IF_ERROR(check_other(pool, other));
  if (other->handle < 0 || other->handle >= PEERS) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "device number %d as a user of a pool",
                   (int)other->handle),
        "hide devices with CUDA_VISIBLE_DEVICES: up to number %d can be "
        "allowed",
        PEERS - 1);
  }
  return mempool_let_in(pool, other->handle, access);
}

kiln_status_t kiln_pool_query_access(kiln_pool_t* pool, kiln_device_t* device,
                                     uint32_t* out_access) {
  KILNI_CHECK_ARGUMENT(out_access != NULL, "out_access");
  *out_access = KILN_ACCESS_NONE;
  KILNI_CHECK_ARGUMENT(pool != NULL, "pool");
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_driver(pool->device, device, "the device"));
  kiln_cu_mem_location_t where = {KILN_CU_MEM_LOCATION_TYPE_DEVICE,
                                  device->handle};
  kiln_cu_mem_access_t flags = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, pool->device, cuMemPoolGetAccess, &flags,
                    pool->handle, &where);
  if (kiln_status_is_ok(status)) *out_access = flags;
  return status;
}
