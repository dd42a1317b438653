// SPDX-License-Identifier: Apache-2.0
//
// table: the null provider. Nothing is executed and nothing fails, but every
// handle is known: what is created and not destroyed, or destroyed and not
// created, is counted for the tests of the modules above.
//
// It answers as a driver would wherever a caller needs an answer to go on: a
// device with plausible attributes, page-locked host memory that can be
// written, host functions that are called. Its memory is the C library's, as a
// driver's is its own, so that allocation faults of a test do not reach it.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "table/cuda_table.h"
#include "table/table_inside.h"
#include "table/table_state.h"

enum {
  NULL_DRIVER_VERSION = 13000,
  NULL_ADDRESS_STEP = 512,  // alignment of device addresses
  NULL_GLOBAL_BYTES = 256,  // of every module's every global
  NULL_MAX_FUNCTION_THREADS = 1024,
  NULL_REGISTERS = 32,
  NULL_SHARED_BYTES = 49152,
  NULL_CLUSTER_BLOCKS = 8,
  NULL_PAGE_BYTES = 2 << 20,
  NULL_MULTIPROCESSORS = 4,
  NULL_PART_STEP = 2,
};

static const uint64_t kNullMemoryBytes = UINT64_C(1) << 34;
static const uint64_t kNullFirstAddress = UINT64_C(0x700000000000);
static const uint64_t kNullFirstHandle = UINT64_C(0x10000);
static const uint64_t kNullContextValue = UINT64_C(0x1000);
static const uint64_t kNullPoolValue = UINT64_C(0x2000);
static const uint64_t kNullDescValue = UINT64_C(0x3000);

static kilni_null_state_t* null_lock(void) {
  kilni_null_state_t* state = &kilni_table_state.null;
  while (
      atomic_flag_test_and_set_explicit(&state->busy, memory_order_acquire)) {
  }
  return state;
}

static void null_unlock(kilni_null_state_t* state) {
  atomic_flag_clear_explicit(&state->busy, memory_order_release);
}

// ---- Handles ----

// Adds a live handle. `value` 0 asks for a new one. Under the lock.
static bool null_add(kilni_null_state_t* state, uint32_t kind, uint64_t bytes,
                     uint64_t* inout_value) {
  void* handles = state->handles;
  kiln_status_t status =
      kilni_base_grow(kiln_allocator_libc(), state->count + 1,
                      sizeof(*state->handles), &state->capacity, &handles);
  state->handles = handles;
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(status);
    return false;
  }
  if (*inout_value == 0) {
    *inout_value = kNullFirstHandle + 16 * state->made++;
  }
  const kilni_null_handle_t handle = {*inout_value, bytes, kind, 0};
  state->handles[state->count++] = handle;
  return true;
}

bool kilni_table_null_create(uint32_t kind, uint64_t bytes,
                             uint64_t* inout_value) {
  kilni_null_state_t* state = null_lock();
  const bool added = null_add(state, kind, bytes, inout_value);
  null_unlock(state);
  if (!added) *inout_value = 0;
  return added;
}

static kiln_cu_result_t cuda_null_create(uint32_t kind, uint64_t bytes,
                                         uint64_t* inout_value) {
  return kilni_table_null_create(kind, bytes, inout_value)
             ? KILN_CU_SUCCESS
             : KILN_CU_ERROR_OUT_OF_MEMORY;
}

bool kilni_table_null_take(uint32_t kind, uint64_t value, uint64_t* out_bytes) {
  kilni_null_state_t* state = null_lock();
  bool found = false;
  for (size_t i = state->count; i-- > 0 && !found;) {
    const kilni_null_handle_t handle = state->handles[i];
    if (handle.kind != kind || handle.value != value) continue;
    *out_bytes = handle.bytes;
    state->handles[i] = state->handles[--state->count];
    found = true;
  }
  if (!found) state->bad_destroys++;
  if (state->count == 0) {
    kilni_base_free_array(kiln_allocator_libc(), state->handles,
                          state->capacity, sizeof(*state->handles));
    state->handles = NULL;
    state->capacity = 0;
  }
  null_unlock(state);
  return found;
}

static kiln_cu_result_t cuda_null_destroy(uint32_t kind, uint64_t value) {
  uint64_t bytes = 0;
  if (kind == KILNI_HANDLE_MEMORY && value == 0) return KILN_CU_SUCCESS;
  return kilni_table_null_take(kind, value, &bytes)
             ? KILN_CU_SUCCESS
             : KILN_CU_ERROR_INVALID_HANDLE;
}

uint64_t kilni_table_cuda_null_live(uint32_t kind) {
  kilni_null_state_t* state = null_lock();
  uint64_t live = 0;
  for (size_t i = 0; i < state->count; i++) {
    if (kind == KILNI_HANDLE_NONE || state->handles[i].kind == kind) live++;
  }
  null_unlock(state);
  return live;
}

uint64_t kilni_table_cuda_null_bad_destroys(void) {
  kilni_null_state_t* state = null_lock();
  const uint64_t bad = state->bad_destroys;
  null_unlock(state);
  return bad;
}

void kilni_table_cuda_null_reset(void) {
  kilni_null_state_t* state = null_lock();
  for (size_t i = 0; i < state->count; i++) {
    const kilni_null_handle_t handle = state->handles[i];
    if (handle.kind != KILNI_HANDLE_HOST_MEMORY) continue;
    kilni_base_free_aligned(kiln_allocator_libc(),
                            (void*)(uintptr_t)handle.value,
                            (size_t)handle.bytes, NULL_ADDRESS_STEP);
  }
  kilni_base_free_array(kiln_allocator_libc(), state->handles, state->capacity,
                        sizeof(*state->handles));
  state->handles = NULL;
  state->count = 0;
  state->capacity = 0;
  state->made = 0;
  state->next_address = 0;
  state->bad_destroys = 0;
  kilni_base_free_array(kiln_allocator_libc(), state->objects,
                        state->objects_capacity, sizeof(*state->objects));
  state->objects = NULL;
  state->objects_count = 0;
  state->objects_capacity = 0;
  memset(state->captures, 0, sizeof(state->captures));
  state->captures_begun = 0;
  state->depth = 0;
  state->capture_mode = KILN_CU_STREAM_CAPTURE_MODE_GLOBAL;
  null_unlock(state);
}

// ---- The driver as a whole ----

static kiln_cu_result_t null_cuDriverGetVersion(int* version) {
  *version = NULL_DRIVER_VERSION;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuGetErrorName(kiln_cu_result_t error,
                                            const char** text) {
  *text = kilni_table_cuda_result_name(error);
  return *text != NULL ? KILN_CU_SUCCESS : KILN_CU_ERROR_INVALID_VALUE;
}

static kiln_cu_result_t null_cuGetErrorString(kiln_cu_result_t error,
                                              const char** text) {
  *text = kilni_table_cuda_result_text(error);
  return *text != NULL ? KILN_CU_SUCCESS : KILN_CU_ERROR_INVALID_VALUE;
}

// There is no library behind this table to take a symbol from.
static kiln_cu_result_t null_cuGetProcAddress(
    const char* symbol, void** address, int version, uint64_t flags,
    kiln_cu_proc_address_query_t* found) {
  (void)symbol;
  (void)version;
  (void)flags;
  *address = NULL;
  if (found != NULL) *found = KILN_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return KILN_CU_ERROR_NOT_FOUND;
}

// ---- The device ----

static kiln_cu_result_t null_cuDeviceGet(kiln_cu_device_t* device,
                                         int ordinal) {
  *device = 0;
  return ordinal == 0 ? KILN_CU_SUCCESS : KILN_CU_ERROR_INVALID_DEVICE;
}

static kiln_cu_result_t null_cuDeviceGetCount(int* count) {
  *count = 1;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuDeviceGetName(char* name, int space,
                                             kiln_cu_device_t device) {
  (void)device;
  if (space > 0) snprintf(name, (size_t)space, "Kiln null device");
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuDeviceGetUuid(kiln_cu_uuid_t* uuid,
                                             kiln_cu_device_t device) {
  (void)device;
  memset(uuid, 0, sizeof(*uuid));
  memcpy(uuid->bytes, "kiln null", sizeof("kiln null") - 1);
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuDeviceTotalMem(size_t* bytes,
                                              kiln_cu_device_t device) {
  (void)device;
  *bytes = (size_t)kNullMemoryBytes;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuDeviceGetAttribute(
    int* value, kiln_cu_device_attribute_t attribute, kiln_cu_device_t device) {
  static const struct {
    uint32_t attribute;
    int value;
  } values[] = {
      {KILN_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {KILN_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
      {KILN_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
      {KILN_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
      {KILN_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
      {KILN_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
      {KILN_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
      {KILN_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
      {KILN_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
      {KILN_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
      {KILN_CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
      {KILN_CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {KILN_CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
      {KILN_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, NULL_MULTIPROCESSORS},
      {KILN_CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
      {KILN_CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
      {KILN_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
      {KILN_CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
      {KILN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
      {KILN_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
      {KILN_CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
      {KILN_CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
      {KILN_CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
      {KILN_CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, 1},
      {KILN_CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 1},
      {KILN_CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
      {KILN_CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 1},
      {KILN_CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
      {KILN_CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, 131072},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, 131072},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, 65536},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, 16384},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, 16384},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH, 16384},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, 8192},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, 8192},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, 32768},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH, 32768},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, 131072},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT, 65536},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH, 16384},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT, 16384},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH, 16384},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 32768},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS, 2048},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH, 32768},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, 16384},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS, 2048},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH, 32760},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT, 32750},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH, 32740},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, 32730},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, 2046},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, 32720},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, 32710},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, 32700},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH, 32600},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS, 1048},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH, 32500},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT, 16284},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS, 1040},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH, 32400},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, 32300},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, 1038},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 268435456},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 131072},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, 65000},
      {KILN_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH, 2097120},
  };
  (void)device;
  *value = 0;
  for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
    if (values[i].attribute == attribute) *value = values[i].value;
  }
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuDeviceGetPCIBusId(char* name, int space,
                                                 kiln_cu_device_t device) {
  (void)device;
  if (space > 0) snprintf(name, (size_t)space, "0000:00:00.0");
  return KILN_CU_SUCCESS;
}

// ---- Contexts: one, retained any number of times ----

static kiln_cu_context_t null_context(void) {
  return (kiln_cu_context_t)(uintptr_t)kNullContextValue;
}

static kiln_cu_result_t null_cuDevicePrimaryCtxRetain(
    kiln_cu_context_t* context, kiln_cu_device_t device) {
  (void)device;
  uint64_t value = kNullContextValue;
  const kiln_cu_result_t result =
      cuda_null_create(KILNI_HANDLE_PRIMARY_CONTEXT, 0, &value);
  *context = result == KILN_CU_SUCCESS ? null_context() : NULL;
  return result;
}

static kiln_cu_result_t null_cuDevicePrimaryCtxRelease(
    kiln_cu_device_t device) {
  (void)device;
  return cuda_null_destroy(KILNI_HANDLE_PRIMARY_CONTEXT, kNullContextValue);
}

static kiln_cu_result_t null_cuDevicePrimaryCtxGetState(kiln_cu_device_t device,
                                                        unsigned int* flags,
                                                        int* active) {
  (void)device;
  if (flags != NULL) *flags = 0;
  if (active != NULL) {
    *active = kilni_table_cuda_null_live(KILNI_HANDLE_PRIMARY_CONTEXT) != 0;
  }
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuCtxGetCurrent(kiln_cu_context_t* context) {
  kilni_null_state_t* state = null_lock();
  *context = state->depth != 0 ? state->contexts[state->depth - 1] : NULL;
  null_unlock(state);
  return KILN_CU_SUCCESS;
}

// As the driver: replaces the top of the stack; NULL takes it off.
static kiln_cu_result_t null_cuCtxSetCurrent(kiln_cu_context_t context) {
  kilni_null_state_t* state = null_lock();
  if (context == NULL) {
    if (state->depth != 0) state->depth--;
  } else {
    if (state->depth == 0) state->depth++;
    state->contexts[state->depth - 1] = context;
  }
  null_unlock(state);
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuCtxPushCurrent(kiln_cu_context_t context) {
  kilni_null_state_t* state = null_lock();
  const bool space = state->depth < KILNI_NULL_STACK && context != NULL;
  if (space) state->contexts[state->depth++] = context;
  null_unlock(state);
  return space ? KILN_CU_SUCCESS : KILN_CU_ERROR_INVALID_VALUE;
}

static kiln_cu_result_t null_cuCtxPopCurrent(kiln_cu_context_t* context) {
  kilni_null_state_t* state = null_lock();
  const bool any = state->depth != 0;
  kiln_cu_context_t popped = any ? state->contexts[--state->depth] : NULL;
  null_unlock(state);
  if (context != NULL) *context = popped;
  return any ? KILN_CU_SUCCESS : KILN_CU_ERROR_INVALID_CONTEXT;
}

static kiln_cu_result_t null_cuCtxGetApiVersion(kiln_cu_context_t context,
                                                unsigned int* version) {
  (void)context;
  *version = 3020;
  return KILN_CU_SUCCESS;
}

// ---- Parts of the device: even numbers of multiprocessors ----

static void null_resource(kiln_cu_dev_resource_t* resource,
                          unsigned int count) {
  memset(resource, 0, sizeof(*resource));
  if (count == 0) return;
  resource->kind = KILN_CU_DEV_RESOURCE_TYPE_SM;
  resource->of.sm.count = count;
  resource->of.sm.least = NULL_PART_STEP;
  resource->of.sm.step = NULL_PART_STEP;
}

static kiln_cu_result_t null_cuDeviceGetDevResource(
    kiln_cu_device_t device, kiln_cu_dev_resource_t* resource,
    kiln_cu_resource_kind_t kind) {
  (void)device;
  if (kind != KILN_CU_DEV_RESOURCE_TYPE_SM) {
    return KILN_CU_ERROR_INVALID_RESOURCE_TYPE;
  }
  null_resource(resource, NULL_MULTIPROCESSORS);
  return KILN_CU_SUCCESS;
}

// Nothing is remembered of what a part was made of.
static kiln_cu_result_t null_cuGreenCtxGetDevResource(
    kiln_cu_green_context_t green, kiln_cu_dev_resource_t* resource,
    kiln_cu_resource_kind_t kind) {
  (void)green;
  return null_cuDeviceGetDevResource(0, resource, kind);
}

static kiln_cu_result_t null_cuDevSmResourceSplitByCount(
    kiln_cu_dev_resource_t* groups, unsigned int* count,
    const kiln_cu_dev_resource_t* input, kiln_cu_dev_resource_t* rest,
    unsigned int flags, unsigned int least) {
  const unsigned int step =
      (flags & KILN_CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0
          ? 1
          : NULL_PART_STEP;
  const unsigned int all = input->of.sm.count;
  if (least > all) return KILN_CU_ERROR_INVALID_VALUE;
  if (least == 0) least = 1;
  const unsigned int size = (least + step - 1) / step * step;
  const unsigned int most = all / size;
  if (groups == NULL || *count > most) *count = most;
  for (unsigned int i = 0; groups != NULL && i < *count; i++) {
    null_resource(&groups[i], size);
  }
  if (rest != NULL) null_resource(rest, all - *count * size);
  return KILN_CU_SUCCESS;
}

// Owned by the driver, never freed.
static kiln_cu_result_t null_cuDevResourceGenerateDesc(
    kiln_cu_resource_desc_t* desc, kiln_cu_dev_resource_t* resources,
    unsigned int count) {
  *desc = NULL;
  if (resources == NULL || count == 0) return KILN_CU_ERROR_INVALID_VALUE;
  *desc = (kiln_cu_resource_desc_t)(uintptr_t)kNullDescValue;
  return KILN_CU_SUCCESS;
}

// The one next to it: steps of handles leave space.
static kiln_cu_result_t null_cuCtxFromGreenCtx(kiln_cu_context_t* context,
                                               kiln_cu_green_context_t green) {
  *context = (kiln_cu_context_t)((uintptr_t)green + 1);
  return KILN_CU_SUCCESS;
}

// All arrays are alike.
static kiln_cu_result_t null_cuArray3DGetDescriptor(kiln_cu_array_desc_t* desc,
                                                    kiln_cu_array_t array) {
  const kiln_cu_array_desc_t alike = {
      8, 4, 0, KILN_CU_AD_FORMAT_FLOAT, 1, KILN_CUDA_ARRAY3D_SURFACE_LDST};
  (void)array;
  *desc = alike;
  return KILN_CU_SUCCESS;
}

// Levels are arrays that are never created: the mipmap's neighbours.
static kiln_cu_result_t null_cuMipmappedArrayGetLevel(
    kiln_cu_array_t* array, kiln_cu_mipmapped_array_t mipmapped,
    unsigned int level) {
  *array = (kiln_cu_array_t)((uintptr_t)mipmapped + 1 + level);
  return KILN_CU_SUCCESS;
}

// ---- Memory ----

static kiln_cu_result_t null_cuMemGetInfo(size_t* available, size_t* total) {
  *available = (size_t)kNullMemoryBytes;
  *total = (size_t)kNullMemoryBytes;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuMemAlloc(kiln_cu_deviceptr_t* address,
                                        size_t bytes) {
  *address = 0;
  if (bytes == 0) return KILN_CU_ERROR_INVALID_VALUE;
  if (bytes > kNullMemoryBytes) return KILN_CU_ERROR_OUT_OF_MEMORY;
  kilni_null_state_t* state = null_lock();
  uint64_t value = kNullFirstAddress + state->next_address;
  const uint64_t steps = (bytes + NULL_ADDRESS_STEP - 1) / NULL_ADDRESS_STEP;
  // One step between two allocations belongs to neither.
  state->next_address += (steps + 1) * NULL_ADDRESS_STEP;
  const bool added = null_add(state, KILNI_HANDLE_MEMORY, bytes, &value);
  null_unlock(state);
  if (!added) return KILN_CU_ERROR_OUT_OF_MEMORY;
  *address = value;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuMemAllocAsync(kiln_cu_deviceptr_t* address,
                                             size_t bytes,
                                             kiln_cu_stream_t stream) {
  (void)stream;
  return null_cuMemAlloc(address, bytes);
}

// An address like any other: nothing of it can be read or written.
static kiln_cu_result_t null_cuMemAllocManaged(kiln_cu_deviceptr_t* address,
                                               size_t bytes,
                                               unsigned int flags) {
  (void)flags;
  return null_cuMemAlloc(address, bytes);
}

static kiln_cu_result_t null_cuMemAllocFromPoolAsync(
    kiln_cu_deviceptr_t* address, size_t bytes, kiln_cu_mempool_t pool,
    kiln_cu_stream_t stream) {
  (void)pool;
  return null_cuMemAllocAsync(address, bytes, stream);
}

static kiln_cu_result_t null_cuMemGetAllocationGranularity(
    size_t* bytes, const kiln_cu_mem_allocation_prop_t* prop,
    kiln_cu_mem_granularity_t option) {
  (void)prop;
  (void)option;
  *bytes = NULL_PAGE_BYTES;
  return KILN_CU_SUCCESS;
}

// The ended handle is the address, so that is what is remembered.
static kiln_cu_result_t null_cuMemMap(kiln_cu_deviceptr_t address, size_t bytes,
                                      size_t offset,
                                      kiln_cu_mem_handle_t handle,
                                      unsigned long long flags) {
  (void)offset;
  (void)handle;
  (void)flags;
  uint64_t value = address;
  return cuda_null_create(KILNI_HANDLE_MAPPING, bytes, &value);
}

// The device's own pool, which is never created.
static kiln_cu_result_t null_cuDeviceGetMemPool(kiln_cu_mempool_t* pool,
                                                kiln_cu_device_t device) {
  (void)device;
  *pool = (kiln_cu_mempool_t)(uintptr_t)kNullPoolValue;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuMemPoolGetAttribute(
    kiln_cu_mempool_t pool, kiln_cu_mempool_attribute_t attribute,
    void* value) {
  (void)pool;
  const bool wide = attribute >= KILN_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
  memset(value, 0, wide ? sizeof(uint64_t) : sizeof(int));
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuMemHostAlloc(void** address, size_t bytes,
                                            unsigned int flags) {
  (void)flags;
  *address = NULL;
  if (bytes == 0) return KILN_CU_ERROR_INVALID_VALUE;
  void* block = NULL;
  kiln_status_t status = kilni_base_alloc_aligned(kiln_allocator_libc(), bytes,
                                                  NULL_ADDRESS_STEP, &block);
  kiln_cu_result_t result = KILN_CU_ERROR_OUT_OF_MEMORY;
  if (kiln_status_is_ok(status)) {
    uint64_t value = (uint64_t)(uintptr_t)block;
    result = cuda_null_create(KILNI_HANDLE_HOST_MEMORY, bytes, &value);
  }
  kiln_status_free(status);
  if (result != KILN_CU_SUCCESS) {
    kilni_base_free_aligned(kiln_allocator_libc(), block, bytes,
                            NULL_ADDRESS_STEP);
    return result;
  }
  *address = block;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuMemFreeHost(void* address) {
  uint64_t bytes = 0;
  if (!kilni_table_null_take(KILNI_HANDLE_HOST_MEMORY,
                             (uint64_t)(uintptr_t)address, &bytes)) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  kilni_base_free_aligned(kiln_allocator_libc(), address, (size_t)bytes,
                          NULL_ADDRESS_STEP);
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuMemHostGetDevicePointer(
    kiln_cu_deviceptr_t* address, void* host, unsigned int flags) {
  (void)flags;
  *address = (kiln_cu_deviceptr_t)(uintptr_t)host;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuMemHostRegister(void* host, size_t bytes,
                                               unsigned int flags) {
  (void)flags;
  uint64_t value = (uint64_t)(uintptr_t)host;
  if (value == 0 || bytes == 0) return KILN_CU_ERROR_INVALID_VALUE;
  return cuda_null_create(KILNI_HANDLE_HOST_REGISTRATION, bytes, &value);
}

// Kind and range of a live allocation. Anything else is host memory that the
// driver does not know, which it reports as INVALID_VALUE.
static kiln_cu_result_t null_cuPointerGetAttribute(
    void* value, kiln_cu_pointer_attribute_t attribute,
    kiln_cu_deviceptr_t address) {
  kilni_null_handle_t found = {0, 0, KILNI_HANDLE_NONE, 0};
  kilni_null_state_t* state = null_lock();
  for (size_t i = 0; i < state->count; i++) {
    const kilni_null_handle_t handle = state->handles[i];
    if ((handle.kind == KILNI_HANDLE_MEMORY ||
         handle.kind == KILNI_HANDLE_HOST_MEMORY ||
         handle.kind == KILNI_HANDLE_HOST_REGISTRATION) &&
        address - handle.value < handle.bytes) {
      found = handle;
    }
  }
  null_unlock(state);
  if (found.kind == KILNI_HANDLE_NONE) return KILN_CU_ERROR_INVALID_VALUE;
  const bool device = found.kind == KILNI_HANDLE_MEMORY;
  const kiln_cu_context_t context = null_context();
  const kiln_cu_memory_type_t type =
      device ? KILN_CU_MEMORYTYPE_DEVICE : KILN_CU_MEMORYTYPE_HOST;
  const int ordinal = 0;
  void* const host = device ? NULL : (void*)(uintptr_t)address;
  const size_t bytes = (size_t)found.bytes;
  switch (attribute) {
    case KILN_CU_POINTER_ATTRIBUTE_CONTEXT:
      memcpy(value, &context, sizeof(context));
      return KILN_CU_SUCCESS;
    case KILN_CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      memcpy(value, &type, sizeof(type));
      return KILN_CU_SUCCESS;
    case KILN_CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      memcpy(value, &address, sizeof(address));
      return KILN_CU_SUCCESS;
    case KILN_CU_POINTER_ATTRIBUTE_HOST_POINTER:
      memcpy(value, &host, sizeof(host));
      return device ? KILN_CU_ERROR_INVALID_VALUE : KILN_CU_SUCCESS;
    case KILN_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      memcpy(value, &ordinal, sizeof(ordinal));
      return KILN_CU_SUCCESS;
    case KILN_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      memcpy(value, &found.value, sizeof(found.value));
      return KILN_CU_SUCCESS;
    case KILN_CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      memcpy(value, &bytes, sizeof(bytes));
      return KILN_CU_SUCCESS;
    default:
      return KILN_CU_ERROR_NOT_SUPPORTED;
  }
}

// As the driver: an attribute that cannot be had leaves its value alone.
static kiln_cu_result_t null_cuPointerGetAttributes(
    unsigned int count, kiln_cu_pointer_attribute_t* attributes, void** values,
    kiln_cu_deviceptr_t address) {
  for (unsigned int i = 0; i < count; i++) {
    null_cuPointerGetAttribute(values[i], attributes[i], address);
  }
  return KILN_CU_SUCCESS;
}

// ---- Streams, modules, functions ----

static kiln_cu_result_t null_cuStreamGetCtx(kiln_cu_stream_t stream,
                                            kiln_cu_context_t* context) {
  (void)stream;
  *context = null_context();
  return KILN_CU_SUCCESS;
}

// One for all threads, like the current context.
static kiln_cu_result_t null_cuThreadExchangeStreamCaptureMode(
    kiln_cu_capture_mode_t* mode) {
  if (mode == NULL || *mode > KILN_CU_STREAM_CAPTURE_MODE_RELAXED) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  kilni_null_state_t* state = null_lock();
  const kiln_cu_capture_mode_t before = state->capture_mode;
  state->capture_mode = *mode;
  null_unlock(state);
  *mode = before;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuLaunchHostFunc(kiln_cu_stream_t stream,
                                              kiln_cu_host_fn_t fn,
                                              void* user) {
  (void)stream;
  fn(user);
  return KILN_CU_SUCCESS;
}

// A function is its module's handle and a number made of its name, so that
// equal queries get equal answers and the module can be found again.
static kiln_cu_result_t null_cuModuleGetFunction(kiln_cu_function_t* function,
                                                 kiln_cu_module_t module,
                                                 const char* name) {
  uint64_t sum = 1;
  for (const char* c = name; *c != '\0'; c++) {
    sum = sum * 31 + (unsigned char)*c;
  }
  const uint64_t low = (sum % 15) + 1;
  *function = (kiln_cu_function_t)((uintptr_t)module + (uintptr_t)low);
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuFuncGetModule(kiln_cu_module_t* module,
                                             kiln_cu_function_t function) {
  *module = (kiln_cu_module_t)((uintptr_t)function & ~(uintptr_t)15);
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuModuleGetGlobal(kiln_cu_deviceptr_t* address,
                                               size_t* bytes,
                                               kiln_cu_module_t module,
                                               const char* name) {
  (void)name;
  if (address != NULL) {
    *address = kNullFirstAddress / 2 +
               (kiln_cu_deviceptr_t)(uintptr_t)module * NULL_GLOBAL_BYTES;
  }
  if (bytes != NULL) *bytes = NULL_GLOBAL_BYTES;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuFuncGetName(const char** name,
                                           kiln_cu_function_t function) {
  (void)function;
  *name = "null";
  return KILN_CU_SUCCESS;
}

// Every kernel has no parameters: a caller that counts them ends here.
static kiln_cu_result_t null_cuFuncGetParamInfo(kiln_cu_function_t function,
                                                size_t index, size_t* offset,
                                                size_t* bytes) {
  (void)function;
  (void)index;
  if (offset != NULL) *offset = 0;
  if (bytes != NULL) *bytes = 0;
  return KILN_CU_ERROR_INVALID_VALUE;
}

static kiln_cu_result_t null_cuFuncGetAttribute(
    int* value, kiln_cu_function_attribute_t attribute,
    kiln_cu_function_t function) {
  (void)function;
  *value = 0;
  if (attribute == KILN_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) {
    *value = NULL_MAX_FUNCTION_THREADS;
  } else if (attribute == KILN_CU_FUNC_ATTRIBUTE_NUM_REGS) {
    *value = NULL_REGISTERS;
  }
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuOccupancyMaxActiveBlocksPerMultiprocessor(
    int* blocks, kiln_cu_function_t function, int block_size,
    size_t dynamic_bytes) {
  (void)function;
  (void)block_size;
  (void)dynamic_bytes;
  *blocks = 1;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuOccupancyMaxPotentialBlockSize(
    int* grid_size, int* block_size, kiln_cu_function_t function,
    kiln_cu_occupancy_fn_t dynamic_bytes_of, size_t dynamic_bytes,
    int block_limit) {
  (void)function;
  (void)dynamic_bytes_of;
  (void)dynamic_bytes;
  *grid_size = 1;
  *block_size = block_limit > 0 && block_limit < 256 ? block_limit : 256;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuOccupancyAvailableDynamicSMemPerBlock(
    size_t* dynamic_bytes, kiln_cu_function_t function, int blocks,
    int block_size) {
  (void)function;
  (void)blocks;
  (void)block_size;
  *dynamic_bytes = NULL_SHARED_BYTES;
  return KILN_CU_SUCCESS;
}

// A cluster of any size is taken, and one runs at a time.
static kiln_cu_result_t null_cuOccupancyMaxPotentialClusterSize(
    int* blocks, kiln_cu_function_t function,
    const kiln_cu_launch_config_t* config) {
  (void)function;
  (void)config;
  *blocks = NULL_CLUSTER_BLOCKS;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuOccupancyMaxActiveClusters(
    int* clusters, kiln_cu_function_t function,
    const kiln_cu_launch_config_t* config) {
  (void)function;
  (void)config;
  *clusters = 1;
  return KILN_CU_SUCCESS;
}

// ---- Libraries: a module whose handle is the library's own number ----

static kiln_cu_result_t null_cuLibraryGetModule(kiln_cu_module_t* module,
                                                kiln_cu_library_t library) {
  *module = (kiln_cu_module_t)(uintptr_t)library;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuLibraryGetKernel(kiln_cu_kernel_t* kernel,
                                                kiln_cu_library_t library,
                                                const char* name) {
  kiln_cu_function_t function = NULL;
  null_cuModuleGetFunction(&function, (kiln_cu_module_t)(uintptr_t)library,
                           name);
  *kernel = (kiln_cu_kernel_t)(uintptr_t)function;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuLibraryGetGlobal(kiln_cu_deviceptr_t* address,
                                                size_t* bytes,
                                                kiln_cu_library_t library,
                                                const char* name) {
  return null_cuModuleGetGlobal(address, bytes,
                                (kiln_cu_module_t)(uintptr_t)library, name);
}

// No variable is a managed one.
static kiln_cu_result_t null_cuLibraryGetManaged(kiln_cu_deviceptr_t* address,
                                                 size_t* bytes,
                                                 kiln_cu_library_t library,
                                                 const char* name) {
  (void)address;
  (void)bytes;
  (void)library;
  (void)name;
  return KILN_CU_ERROR_NOT_FOUND;
}

static kiln_cu_result_t null_cuLibraryEnumerateKernels(
    kiln_cu_kernel_t* kernels, unsigned int count, kiln_cu_library_t library) {
  for (unsigned int i = 0; i < count; i++) {
    null_cuLibraryGetKernel(&kernels[i], library, "null");
  }
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuKernelGetFunction(kiln_cu_function_t* function,
                                                 kiln_cu_kernel_t kernel) {
  *function = (kiln_cu_function_t)(uintptr_t)kernel;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuKernelGetLibrary(kiln_cu_library_t* library,
                                                kiln_cu_kernel_t kernel) {
  kiln_cu_module_t module = NULL;
  null_cuFuncGetModule(&module, (kiln_cu_function_t)(uintptr_t)kernel);
  *library = (kiln_cu_library_t)(uintptr_t)module;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuKernelGetAttribute(
    int* value, kiln_cu_function_attribute_t attribute, kiln_cu_kernel_t kernel,
    kiln_cu_device_t device) {
  (void)device;
  return null_cuFuncGetAttribute(value, attribute,
                                 (kiln_cu_function_t)(uintptr_t)kernel);
}

static kiln_cu_result_t null_cuKernelGetName(const char** name,
                                             kiln_cu_kernel_t kernel) {
  (void)kernel;
  *name = "null";
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t null_cuKernelGetParamInfo(kiln_cu_kernel_t kernel,
                                                  size_t index, size_t* offset,
                                                  size_t* bytes) {
  return null_cuFuncGetParamInfo((kiln_cu_function_t)(uintptr_t)kernel, index,
                                 offset, bytes);
}

// ---- Links: whatever goes in, a cubin without anything in it comes out ----

static kiln_cu_result_t null_cuLinkComplete(kiln_cu_link_state_t link,
                                            void** image, size_t* bytes) {
  // The head of a 64-bit ELF file for CUDA (machine 190).
  static const uint8_t cubin[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x41,
                                    8,    0,   0,   0,   0, 0, 0, 0,
                                    2,    0,   190, 0,   1, 0, 0, 0};
  (void)link;
  if (image == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  *image = (void*)(uintptr_t)cubin;
  if (bytes != NULL) *bytes = sizeof(cubin);
  return KILN_CU_SUCCESS;
}

#include "table/cuda_null_graph.inc"

#include "table/cuda_null_gen.inc"

void kilni_table_cuda_table_null(kiln_cuda_table_t* out_table) {
  kilni_table_cuda_table_init(out_table, "null", "built in");
  out_table->driver_version = NULL_DRIVER_VERSION;
  fill_null(out_table);
}
