// SPDX-License-Identifier: Apache-2.0
//
// live: do the columns of cuda_rows.inc tell the truth?
//
// Context: every row is called on a real driver by a thread without a current
// context, on objects that another context made. A row whose column says NONE
// or FROM_STREAM (with a stream of its own) must do its work; one that says
// CURRENT must refuse with CUDA_ERROR_INVALID_CONTEXT. Where the driver is more
// generous than the column, the run fails too, so that no switch of contexts is
// paid that nobody needs, except for the rows of `exceptions`.
//
// Capture: every row is called while another stream is captured in global mode.
// One that says SAFE must do its work and leave the capture whole; one that
// says UNSAFE is listed when this driver does not mind, which is no failure:
// what is unsafe may depend on what is loaded already.
//
// With the word "soft" the rows of the software device are asked, which keeps
// to the same columns. Exit code 77 where there is no driver or no GPU.
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE  // for MAP_ANONYMOUS
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "base/status_make.h"
#include "soft/soft.h"
#include "table/cuda_table.h"

static const char kernel_ptx[] =
    ".version 7.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".global .u32 counter;\n"
    ".visible .global .attribute(.managed) .u32 managed;\n"
    ".visible .entry nothing(.param .u64 at) { ret; }\n";

// Rows of a later space, taken here by hand.
typedef kiln_cu_result_t (*begin_fn_t)(kiln_cu_stream_t stream, int mode);
typedef kiln_cu_result_t (*end_fn_t)(kiln_cu_stream_t stream, void** graph);
typedef kiln_cu_result_t (*destroy_fn_t)(void* graph);

// The table and one object of each kind. one-thread
typedef struct live_t {
  kiln_cuda_table_t t;
  kiln_cu_device_t device;
  kiln_cu_context_t context;
  kiln_cu_stream_t stream;
  kiln_cu_event_t event;
  kiln_cu_event_t second;
  kiln_cu_event_t shared;  // between processes
  kiln_cu_module_t module;
  kiln_cu_function_t function;
  kiln_cu_library_t library;
  kiln_cu_kernel_t kernel;
  kiln_cu_link_state_t link;
  kiln_cu_deviceptr_t memory;
  kiln_cu_deviceptr_t other;
  void* pinned;
  char own[8192];
  bool seen[KILNI_CUDA_ROW_COUNT];
  int failures;

  bool capturing;  // the capture column is asked for, not the context
  kiln_cu_stream_t captured;
  begin_fn_t begin;
  end_fn_t end;
  destroy_fn_t destroy;
  kiln_cu_mempool_t pool;
  kiln_cu_array_t array;
  kiln_cu_texture_t texture;
  kiln_cu_surface_t surface;
  kiln_cu_mipmapped_array_t mipmapped;
  kiln_cu_mempool_t shared_pool;
  kiln_cu_deviceptr_t of_shared_pool;
} live_t;

// Rows for which a more generous driver is not believed.
static const char lazy[] = "may load code lazily, and into the current context";
static const char frees[] =
    "an older driver may want it, and no hot path pays for it";
static const char arrays[] =
    "arrays are asked about where they are made, and on no hot path";
static const char added[] =
    "an older driver may want it, and nodes are added on no hot path";
static const char links[] =
    "links and libraries are made, used and ended in one context, their own";
static const struct {
  kilni_cuda_row_id_t row;
  const char* why;
} exceptions[] = {
    {KILNI_CUDA_ROW_cuMemFree, frees},
    {KILNI_CUDA_ROW_cuMemFreeHost, frees},
    {KILNI_CUDA_ROW_cuMemHostUnregister, frees},
    {KILNI_CUDA_ROW_cuArrayDestroy, frees},
    {KILNI_CUDA_ROW_cuArray3DGetDescriptor, arrays},
    {KILNI_CUDA_ROW_cuMipmappedArrayGetLevel, arrays},
    {KILNI_CUDA_ROW_cuMipmappedArrayDestroy, frees},
    {KILNI_CUDA_ROW_cuTexObjectDestroy, frees},
    {KILNI_CUDA_ROW_cuSurfObjectDestroy, frees},
    {KILNI_CUDA_ROW_cuModuleUnload, frees},
    {KILNI_CUDA_ROW_cuModuleGetFunction, lazy},
    {KILNI_CUDA_ROW_cuModuleGetGlobal, lazy},
    {KILNI_CUDA_ROW_cuModuleGetFunctionCount, lazy},
    {KILNI_CUDA_ROW_cuModuleEnumerateFunctions, lazy},
    {KILNI_CUDA_ROW_cuFuncGetAttribute, lazy},
    {KILNI_CUDA_ROW_cuFuncSetAttribute, lazy},
    {KILNI_CUDA_ROW_cuFuncGetModule, lazy},
    {KILNI_CUDA_ROW_cuFuncGetName, lazy},
    {KILNI_CUDA_ROW_cuFuncGetParamInfo, lazy},
    {KILNI_CUDA_ROW_cuOccupancyMaxPotentialClusterSize, lazy},
    {KILNI_CUDA_ROW_cuOccupancyMaxActiveClusters, lazy},
    {KILNI_CUDA_ROW_cuLibraryLoadData, links},
    {KILNI_CUDA_ROW_cuLibraryLoadFromFile, links},
    {KILNI_CUDA_ROW_cuLibraryUnload, links},
    {KILNI_CUDA_ROW_cuLibraryGetKernel, links},
    {KILNI_CUDA_ROW_cuLibraryGetModule, links},
    {KILNI_CUDA_ROW_cuLibraryGetGlobal, links},
    {KILNI_CUDA_ROW_cuLibraryGetManaged, links},
    {KILNI_CUDA_ROW_cuLibraryGetKernelCount, links},
    {KILNI_CUDA_ROW_cuLibraryEnumerateKernels, links},
    {KILNI_CUDA_ROW_cuKernelGetFunction, links},
    {KILNI_CUDA_ROW_cuKernelGetLibrary, links},
    {KILNI_CUDA_ROW_cuKernelGetAttribute, links},
    {KILNI_CUDA_ROW_cuKernelSetAttribute, links},
    {KILNI_CUDA_ROW_cuKernelGetName, links},
    {KILNI_CUDA_ROW_cuKernelGetParamInfo, links},
    {KILNI_CUDA_ROW_cuLinkCreate, links},
    {KILNI_CUDA_ROW_cuLinkAddData, links},
    {KILNI_CUDA_ROW_cuLinkAddFile, links},
    {KILNI_CUDA_ROW_cuLinkComplete, links},
    {KILNI_CUDA_ROW_cuLinkDestroy, links},
    {KILNI_CUDA_ROW_cuGraphAddMemAllocNode, added},
    {KILNI_CUDA_ROW_cuGraphAddMemFreeNode, added},
};

// Without a context they crash a driver of CUDA 13.0 (580): not asked.
static const kilni_cuda_row_id_t crashing[] = {
    KILNI_CUDA_ROW_cuGraphAddKernelNode,
    KILNI_CUDA_ROW_cuGraphKernelNodeSetParams,
    KILNI_CUDA_ROW_cuGraphExecKernelNodeSetParams};

enum { NO_ROW = KILNI_CUDA_ROW_COUNT, CRASHES_MAX = 16, SECONDS = 30 };

// What a child leaves behind, however it ends. one-thread
typedef struct left_t {
  volatile unsigned asking;  // the row that is being called
  int failures;
  bool ended;
  // Not judged. After one crash called with the context, after two no more.
  uint8_t crashes[KILNI_CUDA_ROW_COUNT];
  // What is said before this row is asked has been said by a child before.
  unsigned silent_to;
} left_t;

static left_t* left;

#define SAY(...) (left->silent_to == NO_ROW ? printf(__VA_ARGS__) : 0)

static const char* exception_of(kilni_cuda_row_id_t row) {
  for (size_t i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++) {
    if (exceptions[i].row == row) return exceptions[i].why;
  }
  return NULL;
}

static bool has_worked(kiln_cu_result_t result) {
  return result == KILN_CU_SUCCESS || result == KILN_CU_ERROR_NOT_READY;
}

static void judge(live_t* live, kilni_cuda_row_id_t row,
                  kiln_cu_result_t result) {
  const kilni_table_row_t* columns = kilni_table_cuda_row(row);
  live->seen[row] = true;
  const bool worked = has_worked(result);
  const bool wants_none = columns->context != KILNI_CONTEXT_CURRENT;
  const char* name = kilni_table_cuda_result_name(result);
  if (wants_none ? worked : result == KILN_CU_ERROR_INVALID_CONTEXT) return;
  const char* why = exception_of(row);
  if (!wants_none && worked && why != NULL) {
    SAY("%s: would do without; the column stays: %s\n", columns->name, why);
    return;
  }
  SAY("%s: the column says %s, the driver gave %s\n", columns->name,
      wants_none ? "NONE or FROM_STREAM" : "CURRENT",
      name != NULL ? name : "an unknown result");
  live->failures++;
}

static void must(kiln_cu_result_t result, const char* what);

static bool is_capture_error(kiln_cu_result_t result) {
  return result >= KILN_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
         result <= KILN_CU_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

static void before(live_t* live, kilni_cuda_row_id_t row) {
  (void)alarm(SECONDS);
  left->asking = (unsigned)row;
  if (left->crashes[row] == 0 && !live->capturing) return;
  must(live->t.cuCtxSetCurrent(live->context), "cuCtxSetCurrent");
  if (left->crashes[row] > 0) return;
  must(live->begin(live->captured, 0), "cuStreamBeginCapture");
}

static void judge_capture(live_t* live, kilni_cuda_row_id_t row,
                          kiln_cu_result_t result) {
  void* graph = NULL;
  must(live->t.cuCtxSetCurrent(live->context), "cuCtxSetCurrent");
  const kiln_cu_result_t ended = live->end(live->captured, &graph);
  if (graph != NULL) must(live->destroy(graph), "cuGraphDestroy");
  const bool broke = is_capture_error(result) || ended != KILN_CU_SUCCESS;
  const kilni_table_row_t* columns = kilni_table_cuda_row(row);
  const bool safe = columns->capture == KILNI_CAPTURE_SAFE;
  const bool worked = has_worked(result);
  live->seen[row] = true;
  if (safe && broke) {
    SAY("%s: the column says SAFE, the driver gave %s, the capture %s\n",
        columns->name, kilni_table_cuda_result_name(result),
        kilni_table_cuda_result_name(ended));
    live->failures++;
  } else if (!broke && !worked) {
    SAY("%s: gave %s under capture\n", columns->name,
        kilni_table_cuda_result_name(result));
    live->failures++;
  } else if (!safe && !broke) {
    SAY("%s: UNSAFE, and this driver did not mind\n", columns->name);
  }
}

static void must(kiln_cu_result_t result, const char* what) {
  if (result == KILN_CU_SUCCESS) return;
  SAY("%s: %s while things were made\n", what,
      kilni_table_cuda_result_name(result));
}

static kiln_cu_mempool_props_t pool_props(const live_t* live) {
  const kiln_cu_mem_location_t here = {KILN_CU_MEM_LOCATION_TYPE_DEVICE,
                                       live->device};
  const kiln_cu_mempool_props_t props = {
      .allocation = KILN_CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
  return props;
}

static const kiln_cu_array_desc_t small_array = {
    16, 4, 0, KILN_CU_AD_FORMAT_FLOAT, 1, KILN_CUDA_ARRAY3D_SURFACE_LDST};

static kiln_cu_texels_t texels_of(const live_t* live) {
  kiln_cu_texels_t texels;
  memset(&texels, 0, sizeof(texels));
  texels.type = KILN_CU_RESOURCE_TYPE_ARRAY;
  texels.of.array = live->array;
  return texels;
}

static void make_textures(live_t* live) {
  kiln_cu_sampler_t sampler;
  memset(&sampler, 0, sizeof(sampler));
  must(live->t.cuArray3DCreate(&live->array, &small_array), "cuArray3DCreate");
  must(live->t.cuMipmappedArrayCreate(&live->mipmapped, &small_array, 2),
       "cuMipmappedArrayCreate");
  const kiln_cu_texels_t texels = texels_of(live);
  must(live->t.cuTexObjectCreate(&live->texture, &texels, &sampler, NULL),
       "cuTexObjectCreate");
  must(live->t.cuSurfObjectCreate(&live->surface, &texels),
       "cuSurfObjectCreate");
}

// Makes everything with the context current, then takes it away.
static void make(live_t* live) {
  kiln_cuda_table_t* t = &live->t;
  must(t->cuCtxSetCurrent(live->context), "cuCtxSetCurrent");
  must(t->cuStreamCreate(&live->stream, KILN_CU_STREAM_NON_BLOCKING),
       "cuStreamCreate");
  must(t->cuEventCreate(&live->event, 0), "cuEventCreate");
  must(t->cuEventCreate(&live->second, 0), "cuEventCreate");
  must(t->cuEventCreate(&live->shared, KILN_CU_EVENT_DISABLE_TIMING |
                                           KILN_CU_EVENT_INTERPROCESS),
       "cuEventCreate");
  must(t->cuEventRecord(live->event, live->stream), "cuEventRecord");
  must(t->cuEventRecord(live->second, live->stream), "cuEventRecord");
  must(t->cuModuleLoadData(&live->module, kernel_ptx), "cuModuleLoadData");
  must(t->cuModuleGetFunction(&live->function, live->module, "nothing"),
       "cuModuleGetFunction");
  must(t->cuLibraryLoadData(&live->library, kernel_ptx, NULL, NULL, 0, NULL,
                            NULL, 0),
       "cuLibraryLoadData");
  must(t->cuLibraryGetKernel(&live->kernel, live->library, "nothing"),
       "cuLibraryGetKernel");
  must(t->cuLinkCreate(0, NULL, NULL, &live->link), "cuLinkCreate");
  must(t->cuMemAlloc(&live->memory, 4096), "cuMemAlloc");
  must(t->cuMemAlloc(&live->other, 4096), "cuMemAlloc");
  must(t->cuMemHostAlloc(&live->pinned, 4096, 0), "cuMemHostAlloc");
  const kiln_cu_mempool_props_t props = pool_props(live);
  must(t->cuMemPoolCreate(&live->pool, &props), "cuMemPoolCreate");
  make_textures(live);
  kiln_cu_mempool_props_t shared = props;
  shared.handle_types = KILN_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  must(t->cuMemPoolCreate(&live->shared_pool, &shared), "cuMemPoolCreate");
  must(t->cuMemAllocFromPoolAsync(&live->of_shared_pool, 4096,
                                  live->shared_pool, live->stream),
       "cuMemAllocFromPoolAsync");
  must(t->cuStreamSynchronize(live->stream), "cuStreamSynchronize");
  must(t->cuCtxSetCurrent(NULL), "cuCtxSetCurrent");
}

// A refusal by another name: the same call works with the context.
static bool is_refusal(const live_t* live, kilni_cuda_row_id_t row,
                       kiln_cu_result_t result) {
  return !live->capturing && left->crashes[row] == 0 &&
         kilni_table_cuda_row(row)->context == KILNI_CONTEXT_CURRENT &&
         result == KILN_CU_ERROR_INVALID_VALUE;
}

static kiln_cu_result_t refused(live_t* live, kilni_cuda_row_id_t row,
                                kiln_cu_result_t again) {
  must(live->t.cuCtxSetCurrent(NULL), "cuCtxSetCurrent");
  if (!has_worked(again)) return KILN_CU_ERROR_INVALID_VALUE;
  SAY("%s: without a context INVALID_VALUE\n", kilni_table_cuda_row(row)->name);
  return KILN_CU_ERROR_INVALID_CONTEXT;
}

static void judge_one(live_t* live, kilni_cuda_row_id_t row,
                      kiln_cu_result_t result) {
  left->asking = NO_ROW;
  if (left->crashes[row] > 0) {
    live->seen[row] = true;
    must(result, kilni_table_cuda_row(row)->name);
    must(live->t.cuCtxSetCurrent(NULL), "cuCtxSetCurrent");
    return;
  }
  (live->capturing ? judge_capture : judge)(live, row, result);
}

static bool is_asked(const live_t* live, kilni_cuda_row_id_t row) {
  return kilni_table_cuda_has(&live->t, row) && left->crashes[row] < 2;
}

static bool comes_to(const live_t* live, kilni_cuda_row_id_t row) {
  if (left->silent_to == (unsigned)row) left->silent_to = NO_ROW;
  return is_asked(live, row);
}

#define ASK_ROW(row, call)                                   \
  do {                                                       \
    if (!comes_to(live, (row))) break;                       \
    before(live, (row));                                     \
    kiln_cu_result_t result_ = (call);                       \
    if (is_refusal(live, (row), result_)) {                  \
      must(live->t.cuCtxSetCurrent(live->context), "again"); \
      result_ = refused(live, (row), (call));                \
    }                                                        \
    judge_one(live, (row), result_);                         \
  } while (0)
#define ASK(name, ...) ASK_ROW(KILNI_CUDA_ROW_##name, live->t.name(__VA_ARGS__))

static void ask_driver_and_device(live_t* live) {
  int number = 0;
  unsigned int flags = 0;
  size_t bytes = 0;
  char text[64];
  const char* words = NULL;
  void* address = NULL;
  kiln_cu_uuid_t uuid;
  kiln_cu_context_t context = NULL;
  kiln_cu_proc_address_query_t found = 0;
  ASK(cuInit, 0);
  ASK(cuDriverGetVersion, &number);
  ASK(cuGetErrorName, 1, &words);
  ASK(cuGetErrorString, 1, &words);
  ASK(cuGetProcAddress, "cuInit", &address, 2000, 0, &found);
  ASK(cuDeviceGet, &live->device, 0);
  ASK(cuDeviceGetCount, &number);
  ASK(cuDeviceGetName, text, (int)sizeof(text), live->device);
  ASK(cuDeviceGetUuid, &uuid, live->device);
  ASK(cuDeviceTotalMem, &bytes, live->device);
  ASK(cuDeviceGetAttribute, &number, KILN_CU_DEVICE_ATTRIBUTE_WARP_SIZE,
      live->device);
  ASK(cuDeviceGetPCIBusId, text, (int)sizeof(text), live->device);
  ASK(cuDevicePrimaryCtxRetain, &context, live->device);
  ASK(cuDevicePrimaryCtxGetState, live->device, &flags, &number);
  ASK(cuDevicePrimaryCtxSetFlags, live->device, flags);
  ASK(cuDevicePrimaryCtxRelease, live->device);
  ASK(cuCtxGetCurrent, &context);
  ASK(cuCtxPopCurrent, &context);
  ASK(cuCtxGetDevice, &number);
  ASK_ROW(KILNI_CUDA_ROW_cuCtxSynchronize, live->t.cuCtxSynchronize());
  ASK(cuCtxGetLimit, &bytes, KILN_CU_LIMIT_STACK_SIZE);
  ASK(cuCtxSetLimit, KILN_CU_LIMIT_STACK_SIZE, 1024);
  ASK(cuCtxGetApiVersion, live->context, &flags);
  ASK(cuCtxGetStreamPriorityRange, &number, &number);
  ASK(cuCtxPushCurrent, live->context);
  must(live->t.cuCtxPopCurrent(&context), "cuCtxPopCurrent");
  ASK(cuCtxSetCurrent, live->context);
  must(live->t.cuCtxSetCurrent(NULL), "cuCtxSetCurrent");
}

// With one GPU there is nobody to ask about.
static void ask_peers(live_t* live) {
  int count = 0;
  int number = 0;
  kiln_cu_context_t peer = NULL;
  ASK(cuDeviceCanAccessPeer, &number, live->device, live->device);
  must(live->t.cuDeviceGetCount(&count), "cuDeviceGetCount");
  if (count < 2) {
    SAY("one GPU: the rows of access to another are not asked\n");
    live->seen[KILNI_CUDA_ROW_cuDeviceGetP2PAttribute] = true;
    live->seen[KILNI_CUDA_ROW_cuCtxEnablePeerAccess] = true;
    live->seen[KILNI_CUDA_ROW_cuCtxDisablePeerAccess] = true;
    return;
  }
  const kiln_cu_device_t other = live->device == 0 ? 1 : 0;
  must(live->t.cuDevicePrimaryCtxRetain(&peer, other),
       "cuDevicePrimaryCtxRetain");
  ASK(cuDeviceGetP2PAttribute, &number, KILN_CU_P2P_ATTRIBUTE_ACCESS_SUPPORTED,
      live->device, other);
  ASK(cuCtxEnablePeerAccess, peer, 0);
  ASK(cuCtxDisablePeerAccess, peer);
  must(live->t.cuDevicePrimaryCtxRelease(other), "cuDevicePrimaryCtxRelease");
}

static void ask_pools(live_t* live) {
  kiln_cu_mempool_t made = NULL;
  const kiln_cu_mempool_t pool = live->pool;
  kiln_cu_mempool_t current = NULL;
  kiln_cu_deviceptr_t memory = 0;
  uint64_t number = 0;
  kiln_cu_mem_access_t access = 0;
  kiln_cu_mem_location_t here = {KILN_CU_MEM_LOCATION_TYPE_DEVICE,
                                 live->device};
  const kiln_cu_mem_access_desc_t desc = {
      here, KILN_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const kiln_cu_mempool_props_t props = pool_props(live);
  ASK(cuDeviceGetMemPool, &current, live->device);
  ASK(cuMemPoolCreate, &made, &props);
  if (made != NULL) must(live->t.cuMemPoolDestroy(made), "cuMemPoolDestroy");
  ASK(cuMemPoolSetAttribute, pool, KILN_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
      &number);
  ASK(cuMemPoolGetAttribute, pool, KILN_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
      &number);
  ASK(cuMemAllocFromPoolAsync, &memory, 512, pool, live->stream);
  if (memory != 0) {
    must(live->t.cuMemFreeAsync(memory, live->stream), "cuMemFreeAsync");
  }
  ASK(cuMemPoolTrimTo, pool, 0);
  ASK(cuMemPoolSetAccess, pool, &desc, 1);
  ASK(cuMemPoolGetAccess, &access, pool, &here);
  ASK(cuMemPoolDestroy, pool);
}

static void ask_shared_memory(live_t* live) {
  kiln_cu_mempool_export_t exported;
  kiln_cu_ipc_mem_handle_t handle;
  int fd = -1;
  ASK(cuMemPoolExportToShareableHandle, &fd, live->shared_pool,
      KILN_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (fd >= 0) close(fd);
  ASK(cuMemPoolExportPointer, &exported, live->of_shared_pool);
  ASK(cuIpcGetMemHandle, &handle, live->memory);
  // Another process must have made what is opened: live_shared.
  live->seen[KILNI_CUDA_ROW_cuMemPoolImportFromShareableHandle] = true;
  live->seen[KILNI_CUDA_ROW_cuMemPoolImportPointer] = true;
  live->seen[KILNI_CUDA_ROW_cuIpcOpenMemHandle] = true;
  live->seen[KILNI_CUDA_ROW_cuIpcCloseMemHandle] = true;
}

static void ask_virtual(live_t* live) {
  kiln_cu_deviceptr_t address = 0;
  kiln_cu_mem_handle_t handle = 0;
  size_t page = 0;
  unsigned long long flags = 0;
  kiln_cu_mem_location_t here = {KILN_CU_MEM_LOCATION_TYPE_DEVICE,
                                 live->device};
  const kiln_cu_mem_access_desc_t desc = {
      here, KILN_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const kiln_cu_mem_allocation_prop_t prop = {
      .type = KILN_CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
  ASK(cuMemGetAllocationGranularity, &page, &prop,
      KILN_CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  ASK(cuMemAddressReserve, &address, page, 0, 0, 0);
  ASK(cuMemCreate, &handle, page, &prop, 0);
  if (address == 0 || handle == 0) return;
  ASK(cuMemMap, address, page, 0, handle, 0);
  ASK(cuMemSetAccess, address, page, &desc, 1);
  ASK(cuMemGetAccess, &flags, &here, address);
  ASK(cuMemUnmap, address, page);
  ASK(cuMemRelease, handle);
  ASK(cuMemAddressFree, address, page);
}

// Parts of the device, made and ended; drivers before 12.4 have no such rows.
static void ask_parts(live_t* live) {
  kiln_cu_dev_resource_t all;
  kiln_cu_dev_resource_t part;
  kiln_cu_resource_desc_t desc = NULL;
  kiln_cu_green_context_t green = NULL;
  kiln_cu_context_t context = NULL;
  kiln_cu_stream_t stream = NULL;
  unsigned int count = 1;
  memset(&all, 0, sizeof(all));
  memset(&part, 0, sizeof(part));
  if (!kilni_table_cuda_has(&live->t, KILNI_CUDA_ROW_cuGreenCtxStreamCreate)) {
    return;
  }
  ASK(cuDeviceGetDevResource, live->device, &all, KILN_CU_DEV_RESOURCE_TYPE_SM);
  ASK(cuDevSmResourceSplitByCount, &part, &count, &all, NULL, 0, 1);
  ASK(cuDevResourceGenerateDesc, &desc, &part, 1);
  ASK(cuGreenCtxCreate, &green, desc, live->device,
      KILN_CU_GREEN_CTX_DEFAULT_STREAM);
  if (green == NULL) return;
  ASK(cuGreenCtxGetDevResource, green, &part, KILN_CU_DEV_RESOURCE_TYPE_SM);
  ASK(cuCtxFromGreenCtx, &context, green);
  ASK(cuGreenCtxStreamCreate, &stream, green, KILN_CU_STREAM_NON_BLOCKING, 0);
  if (stream != NULL) must(live->t.cuStreamDestroy(stream), "cuStreamDestroy");
  ASK(cuGreenCtxDestroy, green);
}

static void ask_textures(live_t* live) {
  kiln_cu_array_t array = NULL;
  kiln_cu_texture_t texture = 0;
  kiln_cu_surface_t surface = 0;
  kiln_cu_sampler_t sampler;
  kiln_cu_copy_3d_t copy;
  const kiln_cu_texels_t texels = texels_of(live);
  memset(&sampler, 0, sizeof(sampler));
  memset(&copy, 0, sizeof(copy));
  copy.from.type = KILN_CU_MEMORYTYPE_HOST;
  copy.from.host = live->own;
  copy.from.row_bytes = 64;
  copy.from.rows = 4;
  copy.to.type = KILN_CU_MEMORYTYPE_ARRAY;
  copy.to.array = live->array;
  copy.width_bytes = 64;
  copy.height = 4;
  copy.depth = 1;
  ASK(cuArray3DCreate, &array, &small_array);
  kiln_cu_array_desc_t desc;
  ASK(cuArray3DGetDescriptor, &desc, live->array);
  ASK(cuMemcpy3DAsync, &copy, live->stream);
  ASK(cuTexObjectCreate, &texture, &texels, &sampler, NULL);
  ASK(cuSurfObjectCreate, &surface, &texels);
  ASK(cuTexObjectDestroy, live->texture);
  ASK(cuSurfObjectDestroy, live->surface);
  ASK(cuArrayDestroy, live->array);
  kiln_cu_mipmapped_array_t mipmapped = NULL;
  ASK(cuMipmappedArrayCreate, &mipmapped, &small_array, 2);
  ASK(cuMipmappedArrayGetLevel, &array, live->mipmapped, 1);
  ASK(cuMipmappedArrayDestroy, live->mipmapped);
  kiln_cu_tensor_map_t map;
  const uint64_t tensor_sizes[1] = {1024};
  const uint64_t tensor_strides[1] = {0};
  const uint32_t tensor_box[1] = {64};
  const uint32_t tensor_steps[1] = {1};
  ASK(cuTensorMapEncodeTiled, &map, 7, 1, (void*)(uintptr_t)live->memory,
      tensor_sizes, tensor_strides, tensor_box, tensor_steps, 0, 0, 0, 0);
  const uint64_t picture_sizes[3] = {16, 8, 1};
  const uint64_t picture_strides[2] = {64, 512};
  const uint32_t picture_steps[3] = {1, 1, 1};
  const int corner[1] = {0};
  ASK(cuTensorMapEncodeIm2col, &map, 7, 3, (void*)(uintptr_t)live->memory,
      picture_sizes, picture_strides, corner, corner, 16, 8, picture_steps, 0,
      0, 0, 0);
  // Only devices of compute capability 10.0 and later have those.
  live->seen[KILNI_CUDA_ROW_cuTensorMapEncodeIm2colWide] = true;
}

static void ask_managed(live_t* live) {
  const kiln_cu_mem_location_t here = {KILN_CU_MEM_LOCATION_TYPE_DEVICE,
                                       live->device};
  kiln_cu_mem_location_t place = here;
  kiln_cu_context_t popped = NULL;
  kiln_cu_deviceptr_t memory = 0;
  size_t bytes = 4096;
  size_t first = 0;
  int number = 0;
  must(live->t.cuCtxPushCurrent(live->context), "cuCtxPushCurrent");
  must(live->t.cuMemAllocManaged(&memory, bytes, KILN_CU_MEM_ATTACH_GLOBAL),
       "cuMemAllocManaged");
  must(live->t.cuCtxPopCurrent(&popped), "cuCtxPopCurrent");
  ASK(cuMemPrefetchAsync, memory, bytes, here, 0, live->stream);
  ASK(cuMemAdvise, memory, bytes, KILN_CU_MEM_ADVISE_SET_READ_MOSTLY, here);
  ASK(cuMemRangeGetAttribute, &number, sizeof(number),
      KILN_CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, bytes);
  ASK(cuMemDiscardBatchAsync, &memory, &bytes, 1, 0, live->stream);
  ASK(cuMemDiscardAndPrefetchBatchAsync, &memory, &bytes, 1, &place, &first, 1,
      0, live->stream);
}

static void ask_memory(live_t* live) {
  size_t bytes = 0, total = 0;
  kiln_cu_deviceptr_t memory = 0;
  void* host = NULL;
  kiln_cu_memory_type_t type = 0;
  kiln_cu_pointer_attribute_t attribute = KILN_CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  void* value = &type;
  const kiln_cu_deviceptr_t a = live->memory, b = live->other;
  char* own = live->own;
  ASK(cuMemGetInfo, &bytes, &total);
  ASK(cuMemAlloc, &memory, 512);
  ASK(cuMemAllocAsync, &memory, 512, live->stream);
  ASK(cuMemFreeAsync, memory, live->stream);
  ASK(cuMemHostAlloc, &host, 4096, 0);
  ASK(cuMemHostGetDevicePointer, &memory, live->pinned, 0);
  ASK(cuMemHostRegister, own, sizeof(live->own), 0);
  ASK(cuPointerGetAttribute, &type, attribute, a);
  ASK(cuPointerGetAttributes, 1, &attribute, &value, a);
  ASK(cuMemAllocManaged, &memory, 4096, KILN_CU_MEM_ATTACH_GLOBAL);
  ask_managed(live);
  ask_shared_memory(live);
  ask_pools(live);
  ask_virtual(live);
  ask_textures(live);
  ASK(cuMemcpy, a, b, 64);
  ASK(cuMemcpyHtoD, a, own, 64);
  ASK(cuMemcpyDtoH, own, a, 64);
  ASK(cuMemcpyDtoD, a, b, 64);
  ASK(cuMemcpyAsync, a, b, 64, live->stream);
  ASK(cuMemcpyHtoDAsync, a, own, 64, live->stream);
  ASK(cuMemcpyDtoHAsync, own, a, 64, live->stream);
  ASK(cuMemcpyDtoDAsync, a, b, 64, live->stream);
  kiln_cu_deviceptr_t to = a;
  kiln_cu_deviceptr_t from = b;
  size_t size = 64;
  size_t first = 0;
  kiln_cu_copy_attributes_t attributes = {
      KILN_CU_COPY_ORDER_STREAM, {0, 0}, {0, 0}, 0};
  ASK(cuMemcpyBatchAsync, &to, &from, &size, 1, &attributes, &first, 1,
      live->stream);
  ASK(cuMemcpyPeer, a, live->context, b, live->context, 64);
  ASK(cuMemcpyPeerAsync, a, live->context, b, live->context, 64, live->stream);
  ASK(cuMemsetD8, a, 1, 64);
  ASK(cuMemsetD16, a, 1, 32);
  ASK(cuMemsetD32, a, 1, 16);
  ASK(cuMemsetD8Async, a, 1, 64, live->stream);
  ASK(cuMemsetD16Async, a, 1, 32, live->stream);
  ASK(cuMemsetD32Async, a, 1, 16, live->stream);
}

static void nothing_on_the_host(void* user) {
  (void)user;
}

static void ask_streams_and_events(live_t* live) {
  kiln_cu_stream_t stream = NULL;
  kiln_cu_event_t event = NULL;
  kiln_cu_context_t context = NULL;
  unsigned int flags = 0;
  int number = 0;
  float elapsed = 0;
  ASK(cuStreamCreate, &stream, 0);
  ASK(cuStreamCreateWithPriority, &stream, 0, 0);
  ASK(cuStreamSynchronize, live->stream);
  ASK(cuStreamQuery, live->stream);
  ASK(cuStreamWaitEvent, live->stream, live->event, 0);
  ASK(cuStreamGetCtx, live->stream, &context);
  ASK(cuStreamGetFlags, live->stream, &flags);
  ASK(cuStreamGetPriority, live->stream, &number);
  kiln_cu_capture_mode_t mode = KILN_CU_STREAM_CAPTURE_MODE_GLOBAL;
  kiln_cu_ipc_event_handle_t handle;
  ASK(cuThreadExchangeStreamCaptureMode, &mode);
  kiln_cu_capture_status_t captured = 0;
  ASK(cuStreamIsCapturing, live->stream, &captured);
  ASK(cuLaunchHostFunc, live->stream, nothing_on_the_host, NULL);
  must(live->t.cuStreamSynchronize(live->stream), "cuStreamSynchronize");
  ASK(cuEventCreate, &event, 0);
  ASK(cuEventQuery, live->event);
  ASK(cuEventSynchronize, live->event);
  ASK(cuEventElapsedTime, &elapsed, live->event, live->second);
  ASK(cuEventRecord, live->event, live->stream);
  ASK(cuIpcGetEventHandle, &handle, live->shared);
  // Another process must have made what is opened: live_streams.
  live->seen[KILNI_CUDA_ROW_cuIpcOpenEventHandle] = true;
}

static void ask_modules_and_launches(live_t* live) {
  kiln_cu_module_t module = NULL;
  kiln_cu_function_t function = NULL;
  kiln_cu_deviceptr_t memory = 0;
  const char* name = NULL;
  size_t offset = 0, bytes = 0;
  unsigned int count = 1;
  int number = 0, other = 0;
  uint64_t argument = live->memory;
  void* params[] = {&argument};
  const kiln_cu_launch_config_t config = {1,    1, 1, 1, 1, 1, 0, live->stream,
                                          NULL, 0};
  kiln_cu_launch_attribute_t one = {
      .id = KILN_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
      .value.cluster = {1, 1, 1}};
  kiln_cu_launch_config_t cluster = config;
  cluster.attributes = &one;
  cluster.attribute_count = 1;
  const kiln_cu_function_t f = live->function;
  ASK(cuModuleLoadData, &module, kernel_ptx);
  ASK(cuModuleLoadDataEx, &module, kernel_ptx, 0, NULL, NULL);
  ASK(cuModuleGetFunction, &function, live->module, "nothing");
  ASK(cuModuleGetGlobal, &memory, &bytes, live->module, "counter");
  ASK(cuModuleGetFunctionCount, &count, live->module);
  ASK(cuModuleEnumerateFunctions, &function, 1, live->module);
  ASK(cuFuncGetAttribute, &number, KILN_CU_FUNC_ATTRIBUTE_NUM_REGS, f);
  ASK(cuFuncSetAttribute, f,
      KILN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024);
  ASK(cuFuncGetModule, &module, f);
  ASK(cuFuncGetName, &name, f);
  ASK(cuFuncGetParamInfo, f, 0, &offset, &bytes);
  ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor, &number, f, 32, 0);
  ASK(cuOccupancyMaxPotentialBlockSize, &number, &other, f, NULL, 0, 0);
  ASK(cuOccupancyAvailableDynamicSMemPerBlock, &bytes, f, 1, 32);
  ASK(cuOccupancyMaxPotentialClusterSize, &number, f, &config);
  ASK(cuOccupancyMaxActiveClusters, &number, f, &cluster);
  ASK(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, live->stream, params, NULL);
  ASK(cuLaunchKernelEx, &config, f, params, NULL);
  ASK(cuLaunchCooperativeKernel, f, 1, 1, 1, 1, 1, 1, 0, live->stream, params);
}

// The path of the text that cuLibraryLoadFromFile and cuLinkAddFile read.
static const char* file_of(void) {
  static const char path[] = "live_table_columns.ptx";
  FILE* file = fopen(path, "wb");
  if (file != NULL) {
    fputs(kernel_ptx, file);
    fclose(file);
  }
  return path;
}

static void ask_libraries(live_t* live) {
  kiln_cu_library_t library = NULL;
  kiln_cu_kernel_t kernel = NULL;
  kiln_cu_module_t module = NULL;
  kiln_cu_function_t function = NULL;
  kiln_cu_deviceptr_t memory = 0;
  const char* name = NULL;
  size_t offset = 0, bytes = 0;
  unsigned int count = 1;
  int number = 0;
  const char* path = file_of();
  ASK(cuLibraryLoadData, &library, kernel_ptx, NULL, NULL, 0, NULL, NULL, 0);
  ASK(cuLibraryLoadFromFile, &library, path, NULL, NULL, 0, NULL, NULL, 0);
  ASK(cuLibraryGetKernel, &kernel, live->library, "nothing");
  ASK(cuLibraryGetModule, &module, live->library);
  ASK(cuLibraryGetGlobal, &memory, &bytes, live->library, "counter");
  ASK(cuLibraryGetManaged, &memory, &bytes, live->library, "managed");
  ASK(cuLibraryGetKernelCount, &count, live->library);
  ASK(cuLibraryEnumerateKernels, &kernel, 1, live->library);
  ASK(cuKernelGetFunction, &function, live->kernel);
  ASK(cuKernelGetLibrary, &library, live->kernel);
  ASK(cuKernelGetAttribute, &number, KILN_CU_FUNC_ATTRIBUTE_NUM_REGS,
      live->kernel, live->device);
  ASK(cuKernelSetAttribute,
      KILN_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024, live->kernel,
      live->device);
  ASK(cuKernelGetName, &name, live->kernel);
  ASK(cuKernelGetParamInfo, live->kernel, 0, &offset, &bytes);
  remove(path);
}

static void ask_links(live_t* live) {
  kiln_cu_link_state_t link = NULL;
  void* image = NULL;
  size_t bytes = 0;
  static char other[] =
      ".version 7.0\n.target sm_50\n.address_size 64\n"
      ".visible .entry other() { ret; }\n";
  const char* path = file_of();
  ASK(cuLinkCreate, 0, NULL, NULL, &link);
  ASK(cuLinkAddData, live->link, KILN_CU_JIT_INPUT_PTX, other, sizeof(other),
      "other", 0, NULL, NULL);
  ASK(cuLinkAddFile, live->link, KILN_CU_JIT_INPUT_PTX, path, 0, NULL, NULL);
  ASK(cuLinkComplete, live->link, &image, &bytes);
  remove(path);
}

// Ends what a refused destroy has left.
static void ask_destroys(live_t* live) {
  kiln_cuda_table_t* t = &live->t;
  must(t->cuCtxSetCurrent(live->context), "cuCtxSetCurrent");
  must(t->cuCtxSynchronize(), "cuCtxSynchronize");
  (void)t->cuMemHostUnregister(live->own);  // if it was registered before
  must(t->cuMemFree(live->of_shared_pool), "cuMemFree");
  must(t->cuMemPoolDestroy(live->shared_pool), "cuMemPoolDestroy");
  must(t->cuMemHostRegister(live->own, sizeof(live->own), 0),
       "cuMemHostRegister");
  must(t->cuCtxSetCurrent(NULL), "cuCtxSetCurrent");
  ASK(cuMemHostUnregister, live->own);
  ASK(cuMemFreeHost, live->pinned);
  ASK(cuMemFree, live->memory);
  ASK(cuModuleUnload, live->module);
  ASK(cuLibraryUnload, live->library);
  ASK(cuLinkDestroy, live->link);
  ASK(cuEventDestroy, live->event);
  ASK(cuStreamDestroy, live->stream);
}

// ---- Graphs ----

// What the rows about graphs are asked of. one-thread
typedef struct graphs_t {
  kiln_cu_graph_t graph;  // of one node of each kind below
  kiln_cu_graph_t other;
  kiln_cu_graph_t spare;
  kiln_cu_graph_node_t nodes[8];
  kiln_cu_graph_node_t spares[2];
  kiln_cu_graph_exec_t exec;
  kiln_cu_user_object_t object;
  uint64_t argument;
  void* arguments[1];
  kiln_cu_kernel_node_t kernel;
  kiln_cu_copy_3d_t copy;
  kiln_cu_memset_node_t fill;
  kiln_cu_host_node_t host;
  kiln_cu_mem_op_t values[1];
  kiln_cu_mem_op_node_t batch;
} graphs_t;

static void describe_nodes(live_t* live, graphs_t* g) {
  memset(g, 0, sizeof(*g));
  g->argument = live->memory;
  g->arguments[0] = &g->argument;
  const kiln_cu_kernel_node_t kernel = {.function = live->function,
                                        .grid_x = 1,
                                        .grid_y = 1,
                                        .grid_z = 1,
                                        .block_x = 1,
                                        .block_y = 1,
                                        .block_z = 1,
                                        .params = g->arguments};
  const kiln_cu_memset_node_t fill = {.to = live->memory,
                                      .value = 1,
                                      .element_bytes = 4,
                                      .width = 4,
                                      .height = 1};
  g->kernel = kernel;
  g->fill = fill;
  g->copy.from.type = KILN_CU_MEMORYTYPE_DEVICE;
  g->copy.from.device = live->memory;
  g->copy.to.type = KILN_CU_MEMORYTYPE_DEVICE;
  g->copy.to.device = live->other;
  g->copy.width_bytes = 16;
  g->copy.height = 1;
  g->copy.depth = 1;
  g->host.fn = nothing_on_the_host;
  g->values[0].value.operation = KILN_CU_STREAM_MEM_OP_WRITE_VALUE_32;
  g->values[0].value.address = live->memory;
  g->batch.context = live->context;
  g->batch.count = 1;
  g->batch.operations = g->values;
}

static void make_graphs(live_t* live, graphs_t* g) {
  kiln_cuda_table_t* t = &live->t;
  kiln_cu_graph_instantiate_t params = {0, NULL, NULL, 0};
  describe_nodes(live, g);
  must(t->cuCtxSetCurrent(live->context), "cuCtxSetCurrent");
  must(t->cuGraphCreate(&g->graph, 0), "cuGraphCreate");
  must(t->cuGraphCreate(&g->other, 0), "cuGraphCreate");
  must(t->cuGraphCreate(&g->spare, 0), "cuGraphCreate");
  must(t->cuGraphAddEmptyNode(&g->spares[0], g->other, NULL, 0), "empty");
  must(t->cuGraphAddEmptyNode(&g->spares[1], g->other, NULL, 0), "empty");
  must(t->cuGraphAddKernelNode(&g->nodes[0], g->graph, NULL, 0, &g->kernel),
       "cuGraphAddKernelNode");
  must(t->cuGraphAddMemcpyNode(&g->nodes[1], g->graph, NULL, 0, &g->copy,
                               live->context),
       "cuGraphAddMemcpyNode");
  must(t->cuGraphAddMemsetNode(&g->nodes[2], g->graph, NULL, 0, &g->fill,
                               live->context),
       "cuGraphAddMemsetNode");
  must(t->cuGraphAddHostNode(&g->nodes[3], g->graph, NULL, 0, &g->host),
       "cuGraphAddHostNode");
  must(t->cuGraphAddChildGraphNode(&g->nodes[4], g->graph, NULL, 0, g->other),
       "cuGraphAddChildGraphNode");
  must(t->cuGraphAddEventRecordNode(&g->nodes[5], g->graph, NULL, 0,
                                    live->event),
       "cuGraphAddEventRecordNode");
  must(
      t->cuGraphAddEventWaitNode(&g->nodes[6], g->graph, NULL, 0, live->second),
      "cuGraphAddEventWaitNode");
  must(t->cuGraphAddBatchMemOpNode(&g->nodes[7], g->graph, NULL, 0, &g->batch),
       "cuGraphAddBatchMemOpNode");
  must(t->cuGraphInstantiateWithParams(&g->exec, g->graph, &params),
       "cuGraphInstantiateWithParams");
  must(t->cuUserObjectCreate(&g->object, NULL, nothing_on_the_host, 8,
                             KILN_CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
       "cuUserObjectCreate");
  must(t->cuCtxSetCurrent(NULL), "cuCtxSetCurrent");
}

static void ask_graph_lists(live_t* live, graphs_t* g) {
  kiln_cu_graph_node_t found[16];
  kiln_cu_graph_node_t ends[16];
  kiln_cu_graph_edge_t edges[16];
  kiln_cu_graph_edge_t plain;
  kiln_cu_graph_t graph = NULL;
  kiln_cu_graph_node_t node = NULL;
  kiln_cu_graph_node_type_t type = 0;
  size_t count = 16;
  memset(&plain, 0, sizeof(plain));
  ASK(cuGraphCreate, &graph, 0);
  ASK(cuGraphClone, &graph, g->graph);
  ASK(cuGraphNodeFindInClone, &node, g->nodes[0], graph);
  ASK(cuGraphGetNodes, g->graph, NULL, &count);
  ASK(cuGraphGetRootNodes, g->graph, NULL, &count);
  ASK(cuGraphAddDependencies, g->other, &g->spares[0], &g->spares[1], 1);
  ASK(cuGraphGetEdges, g->other, NULL, NULL, &count);
  count = 16;
  ASK(cuGraphGetEdges_v2, g->other, found, ends, edges, &count);
  count = 16;
  ASK(cuGraphNodeGetDependencies, g->spares[1], found, &count);
  count = 16;
  ASK(cuGraphNodeGetDependencies_v2, g->spares[1], found, edges, &count);
  count = 16;
  ASK(cuGraphNodeGetDependentNodes, g->spares[0], found, &count);
  count = 16;
  ASK(cuGraphNodeGetDependentNodes_v2, g->spares[0], found, edges, &count);
  ASK(cuGraphRemoveDependencies, g->other, &g->spares[0], &g->spares[1], 1);
  ASK(cuGraphAddDependencies_v2, g->other, &g->spares[0], &g->spares[1], &plain,
      1);
  ASK(cuGraphRemoveDependencies_v2, g->other, &g->spares[0], &g->spares[1],
      &plain, 1);
  ASK(cuGraphNodeGetType, g->spares[0], &type);
  ASK(cuGraphDestroyNode, g->spares[1]);
  ASK(cuGraphDestroy, graph);
}

static void ask_graph_nodes(live_t* live, graphs_t* g) {
  kiln_cu_graph_node_t node = NULL;
  kiln_cu_kernel_node_t kernel;
  kiln_cu_copy_3d_t copy;
  kiln_cu_memset_node_t fill;
  kiln_cu_host_node_t host;
  kiln_cu_mem_op_node_t batch;
  kiln_cu_graph_t child = NULL;
  kiln_cu_event_t event = NULL;
  kiln_cu_launch_attribute_value_t value;
  memset(&value, 0, sizeof(value));
  const kiln_cu_launch_attribute_id_t priority =
      KILN_CU_LAUNCH_ATTRIBUTE_PRIORITY;
  ASK(cuGraphAddKernelNode, &node, g->spare, NULL, 0, &g->kernel);
  must(live->t.cuCtxSetCurrent(live->context), "cuCtxSetCurrent");
  if (node == NULL) {
    must(live->t.cuGraphAddKernelNode(&node, g->spare, NULL, 0, &g->kernel),
         "cuGraphAddKernelNode");
  }
  must(live->t.cuCtxSetCurrent(NULL), "cuCtxSetCurrent");
  ASK(cuGraphKernelNodeCopyAttributes, node, g->nodes[0]);
  ASK(cuGraphKernelNodeGetParams, g->nodes[0], &kernel);
  ASK(cuGraphKernelNodeSetParams, g->nodes[0], &g->kernel);
  ASK(cuGraphKernelNodeGetAttribute, g->nodes[0], priority, &value);
  ASK(cuGraphKernelNodeSetAttribute, g->nodes[0], priority, &value);
  ASK(cuGraphAddMemcpyNode, &node, g->spare, NULL, 0, &g->copy, live->context);
  ASK(cuGraphMemcpyNodeGetParams, g->nodes[1], &copy);
  ASK(cuGraphMemcpyNodeSetParams, g->nodes[1], &g->copy);
  ASK(cuGraphAddMemsetNode, &node, g->spare, NULL, 0, &g->fill, live->context);
  ASK(cuGraphMemsetNodeGetParams, g->nodes[2], &fill);
  ASK(cuGraphMemsetNodeSetParams, g->nodes[2], &g->fill);
  ASK(cuGraphAddHostNode, &node, g->spare, NULL, 0, &g->host);
  ASK(cuGraphHostNodeGetParams, g->nodes[3], &host);
  ASK(cuGraphHostNodeSetParams, g->nodes[3], &g->host);
  ASK(cuGraphAddChildGraphNode, &node, g->spare, NULL, 0, g->other);
  ASK(cuGraphChildGraphNodeGetGraph, g->nodes[4], &child);
  ASK(cuGraphAddEmptyNode, &node, g->spare, NULL, 0);
  ASK(cuGraphAddEventRecordNode, &node, g->spare, NULL, 0, live->event);
  ASK(cuGraphEventRecordNodeGetEvent, g->nodes[5], &event);
  ASK(cuGraphEventRecordNodeSetEvent, g->nodes[5], live->event);
  ASK(cuGraphAddEventWaitNode, &node, g->spare, NULL, 0, live->second);
  ASK(cuGraphEventWaitNodeGetEvent, g->nodes[6], &event);
  ASK(cuGraphEventWaitNodeSetEvent, g->nodes[6], live->second);
  ASK(cuGraphAddBatchMemOpNode, &node, g->spare, NULL, 0, &g->batch);
  ASK(cuGraphBatchMemOpNodeGetParams, g->nodes[7], &batch);
  ASK(cuGraphBatchMemOpNodeSetParams, g->nodes[7], &g->batch);
}

static void ask_graph_memory(live_t* live) {
  kiln_cu_graph_t graph = NULL;
  kiln_cu_graph_node_t alloc = NULL;
  kiln_cu_graph_node_t release = NULL;
  kiln_cu_alloc_node_t params;
  kiln_cu_alloc_node_t seen;
  kiln_cu_deviceptr_t address = 0;
  uint64_t value = 0;
  memset(&params, 0, sizeof(params));
  params.pool = pool_props(live);
  params.bytes = 4096;
  must(live->t.cuGraphCreate(&graph, 0), "cuGraphCreate");
  ASK(cuGraphAddMemAllocNode, &alloc, graph, NULL, 0, &params);
  must(live->t.cuCtxSetCurrent(live->context), "cuCtxSetCurrent");
  if (alloc == NULL) {
    must(live->t.cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params),
         "cuGraphAddMemAllocNode");
  }
  must(live->t.cuCtxSetCurrent(NULL), "cuCtxSetCurrent");
  ASK(cuGraphMemAllocNodeGetParams, alloc, &seen);
  ASK(cuGraphAddMemFreeNode, &release, graph, &alloc, 1, params.address);
  must(live->t.cuCtxSetCurrent(live->context), "cuCtxSetCurrent");
  if (release == NULL) {
    must(live->t.cuGraphAddMemFreeNode(&release, graph, &alloc, 1,
                                       params.address),
         "cuGraphAddMemFreeNode");
  }
  must(live->t.cuCtxSetCurrent(NULL), "cuCtxSetCurrent");
  ASK(cuGraphMemFreeNodeGetParams, release, &address);
  must(live->t.cuGraphDestroy(graph), "cuGraphDestroy");
  ASK(cuDeviceGetGraphMemAttribute, live->device,
      KILN_CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value);
  value = 0;
  ASK(cuDeviceSetGraphMemAttribute, live->device,
      KILN_CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value);
  ASK(cuDeviceGraphMemTrim, live->device);
}

static void ask_graph_generic(live_t* live, graphs_t* g) {
  kiln_cu_graph_node_params_t params;
  kiln_cu_graph_node_t node = NULL;
  kiln_cu_graph_condition_t handle = 0;
  memset(&params, 0, sizeof(params));
  params.type = KILN_CU_GRAPH_NODE_TYPE_HOST;
  params.of.host = g->host;
  ASK(cuGraphAddNode, &node, g->spare, NULL, NULL, 0, &params);
  ASK(cuGraphNodeSetParams, node, &params);
  ASK(cuGraphExecNodeSetParams, g->exec, g->nodes[3], &params);
  ASK(cuGraphConditionalHandleCreate, &handle, g->spare, live->context, 0, 0);
  ASK(cuGraphDebugDotPrint, g->graph, "live_table_columns.dot", 0);
  remove("live_table_columns.dot");
}

static void ask_executables(live_t* live, graphs_t* g) {
  kiln_cu_graph_instantiate_t params = {0, NULL, NULL, 0};
  kiln_cu_graph_exec_t exec = NULL;
  kiln_cu_graph_update_t outcome;
  uint64_t flags = 0;
  unsigned int enabled = 0;
  ASK(cuGraphInstantiateWithParams, &exec, g->graph, &params);
  ASK(cuGraphExecGetFlags, g->exec, &flags);
  ASK(cuGraphUpload, g->exec, live->stream);
  ASK(cuGraphLaunch, g->exec, live->stream);
  must(live->t.cuStreamSynchronize(live->stream), "cuStreamSynchronize");
  ASK(cuGraphExecUpdate, g->exec, g->graph, &outcome);
  ASK(cuGraphNodeSetEnabled, g->exec, g->nodes[0], 1);
  ASK(cuGraphNodeGetEnabled, g->exec, g->nodes[0], &enabled);
  ASK(cuGraphExecKernelNodeSetParams, g->exec, g->nodes[0], &g->kernel);
  ASK(cuGraphExecMemcpyNodeSetParams, g->exec, g->nodes[1], &g->copy,
      live->context);
  ASK(cuGraphExecMemsetNodeSetParams, g->exec, g->nodes[2], &g->fill,
      live->context);
  ASK(cuGraphExecHostNodeSetParams, g->exec, g->nodes[3], &g->host);
  kiln_cu_graph_t child = NULL;
  must(live->t.cuGraphChildGraphNodeGetGraph(g->nodes[4], &child),
       "cuGraphChildGraphNodeGetGraph");
  ASK(cuGraphExecChildGraphNodeSetParams, g->exec, g->nodes[4], child);
  ASK(cuGraphExecEventRecordNodeSetEvent, g->exec, g->nodes[5], live->event);
  ASK(cuGraphExecEventWaitNodeSetEvent, g->exec, g->nodes[6], live->second);
  ASK(cuGraphExecBatchMemOpNodeSetParams, g->exec, g->nodes[7], &g->batch);
  kiln_cu_user_object_t object = NULL;
  ASK(cuUserObjectCreate, &object, NULL, nothing_on_the_host, 1,
      KILN_CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  ASK(cuUserObjectRetain, g->object, 1);
  ASK(cuGraphRetainUserObject, g->graph, g->object, 1, 0);
  ASK(cuGraphReleaseUserObject, g->graph, g->object, 1);
  ASK(cuUserObjectRelease, g->object, 1);
  ASK(cuGraphExecDestroy, g->exec);
}

// Of a stream of its own: in the second round another is captured meanwhile.
static void ask_captures(live_t* live, graphs_t* g) {
  kiln_cu_capture_status_t status = 0;
  kiln_cu_graph_t graph = NULL;
  const kiln_cu_graph_node_t* nodes = NULL;
  const kiln_cu_graph_edge_t* edges = NULL;
  uint64_t id = 0;
  size_t count = 0;
  const kiln_cu_capture_mode_t mode = KILN_CU_STREAM_CAPTURE_MODE_RELAXED;
  ASK(cuStreamWriteValue32, live->stream, live->memory, 0, 0);
  ASK(cuStreamWriteValue64, live->stream, live->memory, 0, 0);
  ASK(cuStreamWaitValue32, live->stream, live->memory, 0, 0);
  ASK(cuStreamWaitValue64, live->stream, live->memory, 0, 0);
  ASK(cuStreamBatchMemOp, live->stream, 1, g->values, 0);
  must(live->t.cuStreamSynchronize(live->stream), "cuStreamSynchronize");
  ASK(cuStreamBeginCapture, live->stream, mode);
  ASK(cuStreamGetCaptureInfo, live->stream, &status, &id, &graph, &nodes,
      &count);
  ASK(cuStreamGetCaptureInfo_v3, live->stream, &status, &id, &graph, &nodes,
      &edges, &count);
  ASK(cuStreamUpdateCaptureDependencies, live->stream, NULL, 0, 1);
  ASK(cuStreamUpdateCaptureDependencies_v2, live->stream, NULL, NULL, 0, 1);
  ASK(cuStreamEndCapture, live->stream, &graph);
  ASK(cuStreamBeginCaptureToGraph, live->stream, g->spare, NULL, NULL, 0, mode);
  must(live->t.cuStreamEndCapture(live->stream, &graph), "cuStreamEndCapture");
}

static void ask_graphs(live_t* live) {
  graphs_t g;
  make_graphs(live, &g);
  ask_graph_lists(live, &g);
  ask_graph_nodes(live, &g);
  ask_graph_memory(live);
  ask_graph_generic(live, &g);
  ask_executables(live, &g);
  ask_captures(live, &g);
  // There is no library here that would export a semaphore.
  static const kilni_cuda_row_id_t kAbsent[] = {
      KILNI_CUDA_ROW_cuImportExternalSemaphore,
      KILNI_CUDA_ROW_cuDestroyExternalSemaphore,
      KILNI_CUDA_ROW_cuGraphAddExternalSemaphoresSignalNode,
      KILNI_CUDA_ROW_cuGraphExternalSemaphoresSignalNodeGetParams,
      KILNI_CUDA_ROW_cuGraphExternalSemaphoresSignalNodeSetParams,
      KILNI_CUDA_ROW_cuGraphAddExternalSemaphoresWaitNode,
      KILNI_CUDA_ROW_cuGraphExternalSemaphoresWaitNodeGetParams,
      KILNI_CUDA_ROW_cuGraphExternalSemaphoresWaitNodeSetParams,
      KILNI_CUDA_ROW_cuGraphExecExternalSemaphoresSignalNodeSetParams,
      KILNI_CUDA_ROW_cuGraphExecExternalSemaphoresWaitNodeSetParams,
  };
  for (size_t i = 0; i < sizeof(kAbsent) / sizeof(kAbsent[0]); i++) {
    live->seen[kAbsent[i]] = true;
  }
}

static void take(live_t* live, const char* name, int version, void* out) {
  kiln_cu_proc_address_query_t found = 0;
  void* address = NULL;
  must(live->t.cuGetProcAddress(name, &address, version,
                                KILN_CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found),
       name);
  memcpy(out, &address, sizeof(address));
}

// Every row once, on objects made for it.
static void ask_all(live_t* live, bool capturing) {
  memset(live->seen, 0, sizeof(live->seen));
  live->capturing = capturing;
  make(live);
  ask_driver_and_device(live);
  ask_peers(live);
  ask_parts(live);
  ask_memory(live);
  ask_streams_and_events(live);
  ask_modules_and_launches(live);
  ask_libraries(live);
  ask_links(live);
  ask_graphs(live);
  ask_destroys(live);
  for (unsigned i = 0; i < KILNI_CUDA_ROW_COUNT; i++) {
    const kilni_cuda_row_id_t row = (kilni_cuda_row_id_t)i;
    if (live->seen[i] || !is_asked(live, row)) continue;
    printf("%s: was not asked\n", kilni_table_cuda_row(row)->name);
    live->failures++;
  }
  printf("%s: %d rows, %d failures so far\n", capturing ? "capture" : "context",
         (int)KILNI_CUDA_ROW_COUNT, live->failures);
}

static kiln_status_t open_table(live_t* live, bool soft) {
  static kiln_host_t host;
  static kilni_base_env_t env;
  static kilni_base_dynlib_t*
      library;  // never closed: the driver keeps threads
  const kilni_soft_options_t options = {
      .struct_size = sizeof(options), .worker_count = 2, .device_count = 2};
  host.allocator = kiln_allocator_libc();
  host.process_id = (uint64_t)getpid();
  if (!soft) {
    return kilni_table_cuda_table_open(&host, NULL, &live->t, &library);
  }
  KILNI_RETURN_IF_ERROR(kilni_base_env_init(&env, host.allocator));
  host.env = &env;
  return kilni_soft_start(&host, &options, &live->t);
}

// In a child of its own: the parent has no driver.
static int ask_in_child(bool soft, bool capturing) {
  static live_t live;
  kiln_status_t status = open_table(&live, soft);
  if (!kiln_status_is_ok(status)) {
    printf("skipped: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    return 77;
  }
  if (live.t.cuInit(0) != KILN_CU_SUCCESS ||
      live.t.cuDeviceGet(&live.device, 0) != KILN_CU_SUCCESS) {
    printf("skipped: the driver has no device\n");
    return 77;
  }
  SAY("driver for CUDA %d from %s\n", live.t.driver_version, live.t.origin);
  must(live.t.cuDevicePrimaryCtxRetain(&live.context, live.device),
       "cuDevicePrimaryCtxRetain");
  if (capturing) {
    take(&live, "cuStreamBeginCapture", 10010, &live.begin);
    take(&live, "cuStreamEndCapture", 10000, &live.end);
    take(&live, "cuGraphDestroy", 10000, &live.destroy);
    must(live.t.cuCtxSetCurrent(live.context), "cuCtxSetCurrent");
    must(live.t.cuStreamCreate(&live.captured, KILN_CU_STREAM_NON_BLOCKING),
         "cuStreamCreate");
  }
  ask_all(&live, capturing);
  left->failures = live.failures;
  left->ended = true;
  live.t.cuDevicePrimaryCtxRelease(live.device);
  return 0;
}

// Failures of one round of all rows; -1 where there is no driver or no GPU.
static int ask_round(bool soft, bool capturing) {
  memset(left, 0, sizeof(*left));
  left->silent_to = NO_ROW;
  for (size_t i = 0; !soft && i < sizeof(crashing) / sizeof(crashing[0]); i++) {
    left->crashes[crashing[i]] = 1;
  }
  for (int crashes = 0; crashes < CRASHES_MAX; crashes++) {
    int how = 0;
    left->asking = NO_ROW;
    fflush(stdout);
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      const int code = ask_in_child(soft, capturing);
      fflush(stdout);
      _exit(code);
    }
    if (waitpid(child, &how, 0) != child) return 1;
    if (WIFEXITED(how) && WEXITSTATUS(how) == 77) return -1;
    if (left->ended) return left->failures + crashes;
    if (left->asking >= NO_ROW) {
      printf("the driver's process ended between two rows, how: %d\n", how);
      return crashes + 1;
    }
    const kilni_cuda_row_id_t row = (kilni_cuda_row_id_t)left->asking;
    printf("%s: the driver %s\n", kilni_table_cuda_row(row)->name,
           WIFSIGNALED(how) && WTERMSIG(how) == SIGALRM ? "hangs" : "crashes");
    left->crashes[row]++;
    left->silent_to = row;
  }
  printf("crashed too often: the rows behind were not asked\n");
  return CRASHES_MAX;
}

int main(int argc, char** argv) {
  const bool soft = argc > 1 && strcmp(argv[1], "soft") == 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  left = mmap(NULL, sizeof(*left), PROT_READ | PROT_WRITE,
              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (left == MAP_FAILED) return 1;
  const int first = ask_round(soft, false);
  if (first < 0) return 77;
  const int second = ask_round(soft, true);
  printf("%d failures without a context, %d under capture\n", first, second);
  return first == 0 && second == 0 ? 0 : 1;
}
