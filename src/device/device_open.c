// SPDX-License-Identifier: Apache-2.0
//
// device: a device opened over a table: its facts, its primary context.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "device/device_scope.h"
#include "kiln/fault.h"

void kiln_device_retain(kiln_device_t* device) {
  if (device == NULL) return;
  atomic_fetch_add_explicit(&device->references, 1, memory_order_relaxed);
}

static void device_open_destroy(kiln_device_t* device) {
  kilni_device_late_stop(atomic_load(&device->late));
  if (device->has_context) {
    kilni_device_pools_drain(device);
    if (device->parent != NULL) {
      kilni_device_green_end(device);
    } else if (!device->foreign) {
      KILNI_DEVICE_END(device, cuDevicePrimaryCtxRelease, device->handle);
    }
  }
  if (device->has_pools) {
    kilni_device_spares_drain(device);
    kilni_device_pools_deinit(&device->pools);
  }
  if (device->has_registry) kilni_base_registry_deinit(&device->registry);
  kilni_base_keep_t keep = device->keep;
  kiln_device_t* parent = device->parent;
  kiln_owner_t owner = device->owner;
  kilni_base_free(device->host->allocator, device, sizeof(*device));
  kilni_device_owner_release(owner);
  kiln_device_release(parent);
  kilni_base_keep_release(keep);
}

void kiln_device_release(kiln_device_t* device) {
  if (device == NULL || kilni_device_is_forked(device)) return;
  if (atomic_fetch_sub_explicit(&device->references, 1, memory_order_acq_rel) ==
      1) {
    device_open_destroy(device);
  }
}

const char* kiln_device_name(const kiln_device_t* device) {
  return device->name;
}

const char* kiln_device_note(const kiln_device_t* device) {
  return device->note;
}

const kiln_device_info_t* kiln_device_info(const kiln_device_t* device) {
  return &device->info;
}

// A driver's attribute and where it goes. thread-safe
typedef struct attribute_t {
  kiln_cu_device_attribute_t id;
  size_t offset;
} attribute_t;

#define FIELD(name) offsetof(kiln_device_info_t, name)
#define ID(name)    KILN_CU_DEVICE_ATTRIBUTE_##name
static const attribute_t kAttributes[] = {
    {ID(COMPUTE_CAPABILITY_MAJOR), FIELD(compute_major)},
    {ID(COMPUTE_CAPABILITY_MINOR), FIELD(compute_minor)},
    {ID(MULTIPROCESSOR_COUNT), FIELD(multiprocessors)},
    {ID(WARP_SIZE), FIELD(warp_size)},
    {ID(MAX_THREADS_PER_BLOCK), FIELD(max_threads_per_block)},
    {ID(MAX_BLOCK_DIM_X), FIELD(max_block)},
    {ID(MAX_BLOCK_DIM_Y), FIELD(max_block) + 4},
    {ID(MAX_BLOCK_DIM_Z), FIELD(max_block) + 8},
    {ID(MAX_GRID_DIM_X), FIELD(max_grid)},
    {ID(MAX_GRID_DIM_Y), FIELD(max_grid) + 4},
    {ID(MAX_GRID_DIM_Z), FIELD(max_grid) + 8},
    {ID(MAX_SHARED_MEMORY_PER_BLOCK), FIELD(shared_bytes)},
    {ID(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), FIELD(shared_optin_bytes)},
    {ID(MEMORY_POOLS_SUPPORTED), FIELD(memory_pools)},
    {ID(COOPERATIVE_LAUNCH), FIELD(cooperative_launch)},
    {ID(CLUSTER_LAUNCH), FIELD(cluster_launch)},
    {ID(MEM_SYNC_DOMAIN_COUNT), FIELD(sync_domains)},
    {ID(MAX_ACCESS_POLICY_WINDOW_SIZE), FIELD(window_bytes)},
};
#undef FIELD
#undef ID

static kiln_status_t open_read_attributes(kiln_device_t* device) {
  const kiln_cuda_table_t* table = device->table;
  for (size_t i = 0; i < sizeof(kAttributes) / sizeof(kAttributes[0]); i++) {
    int value = 0;
    kiln_cu_result_t result =
        table->cuDeviceGetAttribute(&value, kAttributes[i].id, device->handle);
    // A driver from before an attribute: the device has none of it.
    if (result == KILN_CU_ERROR_INVALID_VALUE) value = 0;
    if (result != KILN_CU_ERROR_INVALID_VALUE) {
      KILNI_RETURN_IF_ERROR(
          KILNI_DEVICE_CHECK(device, result, "cuDeviceGetAttribute"));
    }
    uint32_t number = value > 0 ? (uint32_t)value : 0;
    memcpy((char*)&device->info + kAttributes[i].offset, &number,
           sizeof(number));
  }
  if (!kilni_table_cuda_has(table, KILNI_CUDA_ROW_cuMemAllocAsync)) {
    device->info.memory_pools = 0;
  }
  return kiln_ok();
}

static kiln_status_t open_read_facts(kiln_device_t* device) {
  const kiln_cuda_table_t* table = device->table;
  int version = 0;
  KILNI_RETURN_IF_ERROR(KILNI_DEVICE_CHECK(
      device, table->cuDriverGetVersion(&version), "cuDriverGetVersion"));
  device->info.driver_version = (uint32_t)version;
  KILNI_RETURN_IF_ERROR(KILNI_DEVICE_CHECK(
      device,
      table->cuDeviceGetName(device->model, (int)sizeof(device->model) - 1,
                             device->handle),
      "cuDeviceGetName"));
  device->info.model = device->model;
  size_t bytes = 0;
  KILNI_RETURN_IF_ERROR(KILNI_DEVICE_CHECK(
      device, table->cuDeviceTotalMem(&bytes, device->handle),
      "cuDeviceTotalMem"));
  device->info.memory_bytes = bytes;
  return open_read_attributes(device);
}

static kiln_status_t open_find(kiln_device_t* device, uint32_t ordinal) {
  const kiln_cuda_table_t* table = device->table;
  KILNI_RETURN_IF_ERROR(KILNI_DEVICE_CHECK(device, table->cuInit(0), "cuInit"));
  int count = 0;
  KILNI_RETURN_IF_ERROR(KILNI_DEVICE_CHECK(
      device, table->cuDeviceGetCount(&count), "cuDeviceGetCount"));
  if (count <= 0 || ordinal >= (uint32_t)count) {
    if (device->info.kind == KILN_DEVICE_KIND_SOFT) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(NOT_FOUND, "no device \"%s\": the number of devices is %d",
                     device->name, count),
          "ask for more software devices (`soft_devices`, KILN_SOFT_DEVICES)");
    }
    return kilni_base_status_with_fix(
        KILNI_FAIL(NOT_FOUND, "no device \"%s\": the driver lists %d",
                   device->name, count),
        "%s",
        count > 0 ? "choose a lower number; CUDA_VISIBLE_DEVICES decides which "
                    "GPUs are listed"
                  : "check `nvidia-smi` and CUDA_VISIBLE_DEVICES, or use the "
                    "software device (`--device soft`)");
  }
  device->info.ordinal = ordinal;
  return KILNI_DEVICE_CHECK(
      device, table->cuDeviceGet(&device->handle, (int)ordinal), "cuDeviceGet");
}

// Where a device of this driver was lost it may be this one, and an open that
// works would leave the error to the next call. A software device may have been
// lost by another runtime, too. The query is one that a capture elsewhere
// allows and that returns a sticky fault.
static kiln_status_t check_not_lost(kiln_device_t* device) {
  kiln_fault_t fault = kiln_fault_default();
  if (device->fault != NULL && !kilni_device_is_forked(device)) {
    device->fault((uint32_t)device->handle, &fault);
  }
  bool lost = device->lost_too != NULL &&
              atomic_load_explicit(device->lost_too, memory_order_acquire);
  if (!lost && fault.kind == KILN_FAULT_NONE) return kiln_ok();
  size_t available = 0;
  size_t total = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuMemGetInfo, &available, &total);
  return status;
}

static kiln_status_t open_start(kiln_device_t* device, uint32_t ordinal) {
  KILNI_RETURN_IF_ERROR(kilni_base_registry_init(&device->registry));
  device->has_registry = true;
  KILNI_RETURN_IF_ERROR(kilni_device_pools_init(&device->pools));
  device->has_pools = true;
  KILNI_RETURN_IF_ERROR(open_find(device, ordinal));
  KILNI_RETURN_IF_ERROR(open_read_facts(device));
  KILNI_RETURN_IF_ERROR(KILNI_DEVICE_CHECK(
      device,
      device->table->cuDevicePrimaryCtxRetain(&device->context, device->handle),
      "cuDevicePrimaryCtxRetain"));
  device->has_context = true;
  return check_not_lost(device);
}

kiln_status_t kilni_device_open(const kilni_device_source_t* source,
                                kiln_device_t** out_device) {
  *out_device = NULL;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(source->host->allocator, sizeof(kiln_device_t), &block));
  kiln_device_t* device = block;
  device->host = source->host;
  device->whole = device;
  device->keep = source->keep;
  kilni_base_keep_retain(device->keep);
  device->table = source->table;
  device->fault = source->fault;
  device->name_node = source->name_node;
  device->act_for = source->act_for;
  device->offer = source->offer;
  device->give_up = source->give_up;
  device->executed = source->executed;
  device->lost_too = source->lost;
  device->peers = source->peers;
  device->info.kind = source->kind;
  atomic_init(&device->references, 1);
  atomic_init(&device->lost, false);
  atomic_init(&device->place_state, KILNI_PLACE_NONE);
  snprintf(device->name, sizeof(device->name), "%s", source->name);
  snprintf(device->note, sizeof(device->note), "%s",
           source->note ? source->note : "");
  kiln_status_t status = open_start(device, source->ordinal);
  if (!kiln_status_is_ok(status)) {
    kiln_device_release(device);
    return status;
  }
  *out_device = device;
  return kiln_ok();
}

// ---- A host program's own context ----

// What is the same for every context of a GPU.
static void take_facts(kiln_device_t* guest, const kiln_device_t* device) {
  guest->host = device->host;
  guest->whole = guest;
  guest->keep = device->keep;
  kilni_base_keep_retain(guest->keep);
  guest->table = device->table;
  guest->fault = device->fault;
  guest->name_node = device->name_node;
  guest->act_for = device->act_for;
  guest->offer = device->offer;
  guest->give_up = device->give_up;
  guest->executed = device->executed;
  guest->lost_too = device->lost_too;
  guest->peers = device->peers;
  guest->handle = device->handle;
  guest->info = device->whole->info;
  memcpy(guest->model, device->model, sizeof(guest->model));
  guest->info.model = guest->model;
  atomic_init(&guest->references, 1);
  atomic_init(&guest->lost, false);
  atomic_init(&guest->place_state, KILNI_PLACE_NONE);
  snprintf(guest->name, sizeof(guest->name), "%.*s/foreign",
           KILNI_DEVICE_NAME_BYTES - 16, device->name);
}

static kiln_status_t enter_context(kiln_device_t* guest,
                                   kiln_cu_context_t context) {
  KILNI_RETURN_IF_ERROR(kilni_base_registry_init(&guest->registry));
  guest->has_registry = true;
  KILNI_RETURN_IF_ERROR(kilni_device_pools_init(&guest->pools));
  guest->has_pools = true;
  guest->foreign = true;
  guest->context = context;
  kiln_cu_device_t handle = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, guest, cuCtxGetDevice, &handle);
  KILNI_RETURN_IF_ERROR(status);
  if (handle != guest->handle) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "the context %p belongs to GPU %d, and \"%s\" is GPU %d",
                   (void*)context, (int)handle, guest->name,
                   (int)guest->handle),
        "adopt it on the device of its own GPU");
  }
  guest->has_context = true;
  return kiln_ok();
}

kiln_status_t kiln_device_adopt(kiln_device_t* device, void* context,
                                const kiln_owner_t* owner,
                                kiln_device_t** out_device) {
  KILNI_CHECK_ARGUMENT(out_device != NULL, "out_device");
  *out_device = NULL;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_CHECK_ARGUMENT(context != NULL, "context");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  if (context == (void*)device->context) {
    kiln_device_retain(device);
    if (owner != NULL) kilni_device_owner_release(*owner);
    *out_device = device;
    return kiln_ok();
  }
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(device->host->allocator, sizeof(kiln_device_t), &block));
  kiln_device_t* guest = block;
  take_facts(guest, device);
  kiln_status_t status = enter_context(guest, context);
  if (!kiln_status_is_ok(status)) {
    kiln_device_release(guest);
    return status;
  }
  if (owner != NULL) guest->owner = *owner;
  *out_device = guest;
  return kiln_ok();
}

// ---- Questions ----

kiln_status_t kiln_device_attribute(kiln_device_t* device, uint32_t attribute,
                                    int32_t* out_value) {
  KILNI_CHECK_ARGUMENT(out_value != NULL, "out_value");
  *out_value = 0;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  int value = 0;
  kiln_cu_result_t result =
      device->table->cuDeviceGetAttribute(&value, attribute, device->handle);
  if (result == KILN_CU_ERROR_INVALID_VALUE) return kiln_ok();
  KILNI_RETURN_IF_ERROR(
      KILNI_DEVICE_CHECK(device, result, "cuDeviceGetAttribute"));
  *out_value = value;
  return kiln_ok();
}

kiln_status_t kiln_device_query_free(kiln_device_t* device,
                                     uint64_t* out_free_bytes) {
  KILNI_CHECK_ARGUMENT(out_free_bytes != NULL, "out_free_bytes");
  *out_free_bytes = 0;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  size_t available = 0;
  size_t total = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuMemGetInfo, &available, &total);
  if (kiln_status_is_ok(status)) *out_free_bytes = available;
  return status;
}

kiln_status_t kiln_device_synchronize(kiln_device_t* device) {
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  kilni_device_scope_t scope;
  KILNI_RETURN_IF_ERROR(kilni_device_scope_enter(
      &scope, device, KILNI_CUDA_ROW_cuCtxSynchronize));
  return kilni_device_scope_leave(
      &scope, KILNI_DEVICE_CHECK(device, device->table->cuCtxSynchronize(),
                                 "cuCtxSynchronize"));
}

void* kiln_device_context(const kiln_device_t* device) {
  return device->context;
}

kiln_status_t kiln_device_priorities(kiln_device_t* device, int32_t* out_least,
                                     int32_t* out_greatest) {
  KILNI_CHECK_ARGUMENT(out_least != NULL, "out_least");
  *out_least = 0;
  KILNI_CHECK_ARGUMENT(out_greatest != NULL, "out_greatest");
  *out_greatest = 0;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  int least = 0;
  int greatest = 0;
  kiln_status_t status;
  KILNI_DEVICE_CALL(status, device, cuCtxGetStreamPriorityRange, &least,
                    &greatest);
  if (!kiln_status_is_ok(status)) return status;
  *out_least = least;
  *out_greatest = greatest;
  return kiln_ok();
}

kiln_status_t kiln_device_executed(const kiln_device_t* device,
                                   uint64_t* out_instructions) {
  KILNI_CHECK_ARGUMENT(out_instructions != NULL, "out_instructions");
  *out_instructions = 0;
  KILNI_CHECK_ARGUMENT(device != NULL, "device");
  if (device->executed == NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED, "\"%s\" does not count instructions",
                   device->name),
        "use the software device, which does");
  }
  *out_instructions = device->executed();
  return kiln_ok();
}
