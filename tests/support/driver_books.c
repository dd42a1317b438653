// SPDX-License-Identifier: Apache-2.0
//
// support: a driver's books: who made what in which context, and who ended it.
#include "driver_books.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "table/cuda_table.h"

enum { BOOKS_ENTRIES = 4096, BOOKS_DEVICES = 2, BOOKS_GREATEST = -5 };

// A live handle. thread-compatible
typedef struct entry_t {
  uint64_t value;
  kiln_cu_context_t context;
  uint32_t kind;  // KILNI_HANDLE_*
  uint32_t reserved;
} entry_t;

// Under `lock`, but for the table, which is const once it is set. thread-safe
static struct {
  kiln_cuda_table_t under;
  bool over_null;
  atomic_bool forgives;
  kilni_base_mutex_t lock;
  entry_t entries[BOOKS_ENTRIES];
  size_t count;
  kiln_cu_mempool_t own_pools[BOOKS_DEVICES];  // the devices' own
  driver_books_counts_t counts;
} books;

// Of each thread. one-thread
static _Thread_local struct {
  kiln_cu_context_t current;  // over the null provider
  kiln_cu_capture_mode_t mode;
  kiln_cu_context_t token_context;
  uint32_t fail_switch;
  uint32_t fail_exchange;
  kiln_cu_result_t fail_with;
} here;

static void wrong_locked(const char* what) {
  if (books.counts.wrong++ == 0) books.counts.first_wrong = what;
}

static void wrong(const char* what) {
  kilni_base_mutex_lock(&books.lock);
  wrong_locked(what);
  kilni_base_mutex_unlock(&books.lock);
}

static entry_t* find_locked(uint32_t kind, uint64_t value) {
  for (size_t i = 0; i < books.count; i++) {
    entry_t* entry = &books.entries[i];
    if (entry->kind == kind && entry->value == value) return entry;
  }
  return NULL;
}

static void note_made(uint32_t kind, uint64_t value,
                      kiln_cu_context_t context) {
  kilni_base_mutex_lock(&books.lock);
  if (kind != KILNI_HANDLE_PRIMARY_CONTEXT && find_locked(kind, value)) {
    wrong_locked("a handle was made that lives");
  }
  if (books.count == BOOKS_ENTRIES) {
    wrong_locked("the books are full");
  } else {
    entry_t entry = {value, context, kind, 0};
    books.entries[books.count++] = entry;
  }
  books.counts.made[kind]++;
  kilni_base_mutex_unlock(&books.lock);
}

// Before the driver is told: it may give out the value again at once.
static void note_ended(uint32_t kind, uint64_t value) {
  kilni_base_mutex_lock(&books.lock);
  entry_t* entry = find_locked(kind, value);
  if (entry == NULL) {
    wrong_locked("a handle was ended that does not live");
  } else {
    *entry = books.entries[--books.count];
    books.counts.ended[kind]++;
  }
  kilni_base_mutex_unlock(&books.lock);
}

static kiln_cu_context_t context_of(uint32_t kind, uint64_t value,
                                    const char* otherwise) {
  kilni_base_mutex_lock(&books.lock);
  entry_t* entry = find_locked(kind, value);
  kiln_cu_context_t context = entry != NULL ? entry->context : NULL;
  if (entry == NULL) wrong_locked(otherwise);
  kilni_base_mutex_unlock(&books.lock);
  return context;
}

static kiln_cu_context_t event_context(kiln_cu_event_t event) {
  return context_of(KILNI_HANDLE_EVENT, (uintptr_t)event,
                    "an event was used that does not live");
}

// What a stream's context is; that of a default stream is the current one.
static kiln_cu_context_t stream_context(kiln_cu_stream_t stream) {
  if ((uintptr_t)stream > 2) {
    return context_of(KILNI_HANDLE_STREAM, (uintptr_t)stream,
                      "a stream was used that does not live");
  }
  here.token_context = driver_books_current();
  if (here.token_context == NULL && !atomic_load(&books.forgives)) {
    wrong("a default stream was used without a current context");
  }
  return here.token_context;
}

static void need_current(void) {
  if (driver_books_current() == NULL && !atomic_load(&books.forgives)) {
    wrong("a call that needs a context was made without one");
  }
}

static void need_relaxed(void) {
  if (driver_books_mode() != KILN_CU_STREAM_CAPTURE_MODE_RELAXED &&
      !atomic_load(&books.forgives)) {
    wrong("a call that captures forbid was made outside of the relaxed mode");
  }
}

// ---- Devices and contexts ----

static kiln_cu_result_t books_cuDeviceGetCount(int* count) {
  *count = BOOKS_DEVICES;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t books_cuDeviceGet(kiln_cu_device_t* device,
                                          int ordinal) {
  *device = ordinal;
  return ordinal < BOOKS_DEVICES ? KILN_CU_SUCCESS
                                 : KILN_CU_ERROR_INVALID_DEVICE;
}

static uint64_t context_value(kiln_cu_device_t device) {
  return UINT64_C(0xc0de00) + (uint64_t)device * 0x100;
}

static kiln_cu_result_t books_cuDevicePrimaryCtxRetain(
    kiln_cu_context_t* context, kiln_cu_device_t device) {
  kiln_cu_result_t result =
      books.under.cuDevicePrimaryCtxRetain(context, device);
  if (result != KILN_CU_SUCCESS) return result;
  if (books.over_null) {
    *context = (kiln_cu_context_t)(uintptr_t)context_value(device);
  }
  note_made(KILNI_HANDLE_PRIMARY_CONTEXT, (uint64_t)device + 1, *context);
  return result;
}

// Access stands in the books under no kind of handle: that of the current
// context to another.
static uint64_t access_value(kiln_cu_context_t peer) {
  return (uint64_t)(uintptr_t)driver_books_current() * 1000003 +
         (uint64_t)(uintptr_t)peer;
}

static kiln_cu_result_t books_cuCtxEnablePeerAccess(kiln_cu_context_t peer,
                                                    unsigned int flags) {
  uint64_t value = access_value(peer);
  kilni_base_mutex_lock(&books.lock);
  bool is_there = find_locked(KILNI_HANDLE_NONE, value) != NULL;
  kilni_base_mutex_unlock(&books.lock);
  if (is_there) return KILN_CU_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  kiln_cu_result_t result = books.under.cuCtxEnablePeerAccess(peer, flags);
  if (result == KILN_CU_SUCCESS) {
    note_made(KILNI_HANDLE_NONE, value, driver_books_current());
  }
  return result;
}

static kiln_cu_result_t books_cuCtxDisablePeerAccess(kiln_cu_context_t peer) {
  note_ended(KILNI_HANDLE_NONE, access_value(peer));
  return books.under.cuCtxDisablePeerAccess(peer);
}

static kiln_cu_result_t books_cuDevicePrimaryCtxRelease(
    kiln_cu_device_t device) {
  note_ended(KILNI_HANDLE_PRIMARY_CONTEXT, (uint64_t)device + 1);
  return books.under.cuDevicePrimaryCtxRelease(device);
}

static kiln_cu_result_t books_cuCtxGetCurrent(kiln_cu_context_t* context) {
  if (!books.over_null) return books.under.cuCtxGetCurrent(context);
  *context = here.current;
  return KILN_CU_SUCCESS;
}

static bool is_due(uint32_t* left) {
  return *left != 0 && --*left == 0;
}

static kiln_cu_result_t books_cuCtxSetCurrent(kiln_cu_context_t context) {
  if (is_due(&here.fail_switch)) return here.fail_with;
  if (!books.over_null) return books.under.cuCtxSetCurrent(context);
  here.current = context;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t books_cuThreadExchangeStreamCaptureMode(
    kiln_cu_capture_mode_t* mode) {
  kilni_base_mutex_lock(&books.lock);
  books.counts.exchanges++;
  kilni_base_mutex_unlock(&books.lock);
  if (is_due(&here.fail_exchange)) return here.fail_with;
  kiln_cu_capture_mode_t before = here.mode;
  here.mode = *mode;
  *mode = before;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t books_cuCtxGetStreamPriorityRange(int* least,
                                                          int* greatest) {
  need_current();
  *least = 0;
  *greatest = BOOKS_GREATEST;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t books_cuCtxSynchronize(void) {
  need_current();
  need_relaxed();
  return books.under.cuCtxSynchronize();
}

// ---- Streams ----

static kiln_cu_result_t books_cuStreamCreate(kiln_cu_stream_t* stream,
                                             unsigned int flags) {
  need_current();
  kiln_cu_result_t result = books.under.cuStreamCreate(stream, flags);
  if (result == KILN_CU_SUCCESS) {
    note_made(KILNI_HANDLE_STREAM, (uintptr_t)*stream, driver_books_current());
  }
  return result;
}

static kiln_cu_result_t books_cuStreamCreateWithPriority(
    kiln_cu_stream_t* stream, unsigned int flags, int priority) {
  need_current();
  kiln_cu_result_t result =
      books.under.cuStreamCreateWithPriority(stream, flags, priority);
  if (result == KILN_CU_SUCCESS) {
    note_made(KILNI_HANDLE_STREAM, (uintptr_t)*stream, driver_books_current());
  }
  return result;
}

// Of a part: needs no current context.
static kiln_cu_result_t books_cuGreenCtxStreamCreate(
    kiln_cu_stream_t* stream, kiln_cu_green_context_t green, unsigned int flags,
    int priority) {
  kiln_cu_context_t context = NULL;
  kiln_cu_result_t result =
      books.under.cuGreenCtxStreamCreate(stream, green, flags, priority);
  books.under.cuCtxFromGreenCtx(&context, green);
  if (result == KILN_CU_SUCCESS) {
    note_made(KILNI_HANDLE_STREAM, (uintptr_t)*stream, context);
  }
  return result;
}

static kiln_cu_result_t books_cuStreamDestroy(kiln_cu_stream_t stream) {
  note_ended(KILNI_HANDLE_STREAM, (uintptr_t)stream);
  return books.under.cuStreamDestroy(stream);
}

static kiln_cu_result_t books_cuStreamGetCtx(kiln_cu_stream_t stream,
                                             kiln_cu_context_t* context) {
  *context = stream_context(stream);
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t books_cuStreamSynchronize(kiln_cu_stream_t stream) {
  need_relaxed();
  stream_context(stream);
  return books.under.cuStreamSynchronize(stream);
}

static kiln_cu_result_t books_cuStreamQuery(kiln_cu_stream_t stream) {
  need_relaxed();
  stream_context(stream);
  return books.under.cuStreamQuery(stream);
}

static kiln_cu_result_t books_cuStreamWaitEvent(kiln_cu_stream_t stream,
                                                kiln_cu_event_t event,
                                                unsigned int flags) {
  stream_context(stream);
  event_context(event);
  return books.under.cuStreamWaitEvent(stream, event, flags);
}

static kiln_cu_result_t books_cuLaunchHostFunc(kiln_cu_stream_t stream,
                                               kiln_cu_host_fn_t fn,
                                               void* user) {
  stream_context(stream);
  return books.under.cuLaunchHostFunc(stream, fn, user);
}

static kiln_cu_result_t books_cuMemsetD8Async(kiln_cu_deviceptr_t to,
                                              unsigned char value, size_t count,
                                              kiln_cu_stream_t stream) {
  stream_context(stream);
  return books.under.cuMemsetD8Async(to, value, count, stream);
}

// ---- Events ----

static kiln_cu_result_t books_cuEventCreate(kiln_cu_event_t* event,
                                            unsigned int flags) {
  need_current();
  kiln_cu_result_t result = books.under.cuEventCreate(event, flags);
  if (result == KILN_CU_SUCCESS) {
    note_made(KILNI_HANDLE_EVENT, (uintptr_t)*event, driver_books_current());
  }
  return result;
}

static kiln_cu_result_t books_cuEventDestroy(kiln_cu_event_t event) {
  note_ended(KILNI_HANDLE_EVENT, (uintptr_t)event);
  return books.under.cuEventDestroy(event);
}

static kiln_cu_result_t books_cuEventRecord(kiln_cu_event_t event,
                                            kiln_cu_stream_t stream) {
  if (event_context(event) != stream_context(stream)) {
    wrong("an event was recorded on a stream of another context");
  }
  return books.under.cuEventRecord(event, stream);
}

static kiln_cu_result_t books_cuEventQuery(kiln_cu_event_t event) {
  need_relaxed();
  event_context(event);
  return books.under.cuEventQuery(event);
}

static kiln_cu_result_t books_cuEventSynchronize(kiln_cu_event_t event) {
  need_relaxed();
  event_context(event);
  return books.under.cuEventSynchronize(event);
}

static kiln_cu_result_t books_cuIpcOpenEventHandle(
    kiln_cu_event_t* event, kiln_cu_ipc_event_handle_t handle) {
  need_current();
  need_relaxed();
  kiln_cu_result_t result = books.under.cuIpcOpenEventHandle(event, handle);
  if (result == KILN_CU_SUCCESS) {
    note_made(KILNI_HANDLE_EVENT, (uintptr_t)*event, driver_books_current());
  }
  return result;
}

// ---- Memory ----

static kiln_cu_result_t books_cuMemAlloc(kiln_cu_deviceptr_t* address,
                                         size_t bytes) {
  need_current();
  need_relaxed();
  kiln_cu_result_t result = books.under.cuMemAlloc(address, bytes);
  if (result == KILN_CU_SUCCESS) {
    note_made(KILNI_HANDLE_MEMORY, *address, driver_books_current());
  }
  return result;
}

static kiln_cu_result_t books_cuMemFree(kiln_cu_deviceptr_t address) {
  need_current();
  need_relaxed();
  note_ended(KILNI_HANDLE_MEMORY, address);
  return books.under.cuMemFree(address);
}

static kiln_cu_result_t books_cuMemAllocAsync(kiln_cu_deviceptr_t* address,
                                              size_t bytes,
                                              kiln_cu_stream_t stream) {
  need_relaxed();
  kiln_cu_context_t context = stream_context(stream);
  kiln_cu_result_t result = books.under.cuMemAllocAsync(address, bytes, stream);
  if (result == KILN_CU_SUCCESS) {
    note_made(KILNI_HANDLE_MEMORY, *address, context);
  }
  return result;
}

static kiln_cu_result_t books_cuMemFreeAsync(kiln_cu_deviceptr_t address,
                                             kiln_cu_stream_t stream) {
  need_relaxed();
  stream_context(stream);
  note_ended(KILNI_HANDLE_MEMORY, address);
  return books.under.cuMemFreeAsync(address, stream);
}

static kiln_cu_result_t books_cuMemAllocManaged(kiln_cu_deviceptr_t* address,
                                                size_t bytes,
                                                unsigned int flags) {
  need_current();
  need_relaxed();
  kiln_cu_result_t result =
      books.under.cuMemAllocManaged(address, bytes, flags);
  if (result == KILN_CU_SUCCESS) {
    note_made(KILNI_HANDLE_MEMORY, *address, driver_books_current());
  }
  return result;
}

static kiln_cu_result_t books_cuMemHostAlloc(void** address, size_t bytes,
                                             unsigned int flags) {
  need_current();
  need_relaxed();
  kiln_cu_result_t result = books.under.cuMemHostAlloc(address, bytes, flags);
  if (result == KILN_CU_SUCCESS) {
    note_made(KILNI_HANDLE_HOST_MEMORY, (uintptr_t)*address,
              driver_books_current());
  }
  return result;
}

static kiln_cu_result_t books_cuMemFreeHost(void* address) {
  need_current();
  need_relaxed();
  note_ended(KILNI_HANDLE_HOST_MEMORY, (uintptr_t)address);
  return books.under.cuMemFreeHost(address);
}

static kiln_cu_result_t books_cuDeviceGetMemPool(kiln_cu_mempool_t* pool,
                                                 kiln_cu_device_t device) {
  kiln_cu_result_t result = books.under.cuDeviceGetMemPool(pool, device);
  if (result == KILN_CU_SUCCESS && device < BOOKS_DEVICES) {
    kilni_base_mutex_lock(&books.lock);
    books.own_pools[device] = *pool;
    kilni_base_mutex_unlock(&books.lock);
  }
  return result;
}

static void need_pool(kiln_cu_mempool_t pool) {
  kilni_base_mutex_lock(&books.lock);
  bool lives = find_locked(KILNI_HANDLE_MEMORY_POOL, (uintptr_t)pool) != NULL;
  for (int i = 0; i < BOOKS_DEVICES; i++) {
    lives = lives || books.own_pools[i] == pool;
  }
  if (!lives) wrong_locked("a pool was used that does not live");
  kilni_base_mutex_unlock(&books.lock);
}

static kiln_cu_result_t books_cuMemAllocFromPoolAsync(
    kiln_cu_deviceptr_t* address, size_t bytes, kiln_cu_mempool_t pool,
    kiln_cu_stream_t stream) {
  need_relaxed();
  need_pool(pool);
  kiln_cu_context_t context = stream_context(stream);
  kiln_cu_result_t result =
      books.under.cuMemAllocFromPoolAsync(address, bytes, pool, stream);
  if (result == KILN_CU_SUCCESS) {
    note_made(KILNI_HANDLE_MEMORY, *address, context);
  }
  return result;
}

static kiln_cu_result_t books_cuMemPoolCreate(
    kiln_cu_mempool_t* pool, const kiln_cu_mempool_props_t* props) {
  need_relaxed();
  kiln_cu_result_t result = books.under.cuMemPoolCreate(pool, props);
  if (result == KILN_CU_SUCCESS) {
    note_made(KILNI_HANDLE_MEMORY_POOL, (uintptr_t)*pool, NULL);
  }
  return result;
}

static kiln_cu_result_t books_cuMemPoolImportFromShareableHandle(
    kiln_cu_mempool_t* pool, void* shared, kiln_cu_mem_handle_type_t type,
    unsigned long long flags) {
  need_relaxed();
  kiln_cu_result_t result =
      books.under.cuMemPoolImportFromShareableHandle(pool, shared, type, flags);
  if (result == KILN_CU_SUCCESS) {
    note_made(KILNI_HANDLE_MEMORY_POOL, (uintptr_t)*pool, NULL);
  }
  return result;
}

static kiln_cu_result_t books_cuMemPoolImportPointer(
    kiln_cu_deviceptr_t* address, kiln_cu_mempool_t pool,
    kiln_cu_mempool_export_t* shared) {
  need_relaxed();
  need_pool(pool);
  kiln_cu_result_t result =
      books.under.cuMemPoolImportPointer(address, pool, shared);
  if (result == KILN_CU_SUCCESS) {
    note_made(KILNI_HANDLE_MEMORY, *address, NULL);
  }
  return result;
}

static kiln_cu_result_t books_cuMemPoolDestroy(kiln_cu_mempool_t pool) {
  need_relaxed();
  note_ended(KILNI_HANDLE_MEMORY_POOL, (uintptr_t)pool);
  return books.under.cuMemPoolDestroy(pool);
}

// ---- Arrays, textures and surfaces ----

static kiln_cu_result_t books_cuArray3DCreate(
    kiln_cu_array_t* array, const kiln_cu_array_desc_t* desc) {
  need_current();
  need_relaxed();
  kiln_cu_result_t result = books.under.cuArray3DCreate(array, desc);
  if (result == KILN_CU_SUCCESS) {
    note_made(KILNI_HANDLE_ARRAY, (uintptr_t)*array, driver_books_current());
  }
  return result;
}

static kiln_cu_result_t books_cuArrayDestroy(kiln_cu_array_t array) {
  need_current();
  note_ended(KILNI_HANDLE_ARRAY, (uintptr_t)array);
  return books.under.cuArrayDestroy(array);
}

static kiln_cu_result_t books_cuMipmappedArrayCreate(
    kiln_cu_mipmapped_array_t* mipmapped, const kiln_cu_array_desc_t* desc,
    unsigned int levels) {
  need_current();
  need_relaxed();
  kiln_cu_result_t result =
      books.under.cuMipmappedArrayCreate(mipmapped, desc, levels);
  if (result == KILN_CU_SUCCESS) {
    note_made(KILNI_HANDLE_MIPMAPPED_ARRAY, (uintptr_t)*mipmapped,
              driver_books_current());
  }
  return result;
}

static kiln_cu_result_t books_cuMipmappedArrayDestroy(
    kiln_cu_mipmapped_array_t mipmapped) {
  need_current();
  note_ended(KILNI_HANDLE_MIPMAPPED_ARRAY, (uintptr_t)mipmapped);
  return books.under.cuMipmappedArrayDestroy(mipmapped);
}

static kiln_cu_result_t books_cuTexObjectCreate(
    kiln_cu_texture_t* texture, const kiln_cu_texels_t* texels,
    const kiln_cu_sampler_t* sampler, const kiln_cu_texel_view_t* view) {
  need_current();
  kiln_cu_result_t result =
      books.under.cuTexObjectCreate(texture, texels, sampler, view);
  if (result == KILN_CU_SUCCESS) {
    note_made(KILNI_HANDLE_TEXTURE, *texture, driver_books_current());
  }
  return result;
}

static kiln_cu_result_t books_cuTexObjectDestroy(kiln_cu_texture_t texture) {
  need_current();
  note_ended(KILNI_HANDLE_TEXTURE, texture);
  return books.under.cuTexObjectDestroy(texture);
}

static kiln_cu_result_t books_cuSurfObjectCreate(
    kiln_cu_surface_t* surface, const kiln_cu_texels_t* texels) {
  need_current();
  kiln_cu_result_t result = books.under.cuSurfObjectCreate(surface, texels);
  if (result == KILN_CU_SUCCESS) {
    note_made(KILNI_HANDLE_SURFACE, *surface, driver_books_current());
  }
  return result;
}

static kiln_cu_result_t books_cuSurfObjectDestroy(kiln_cu_surface_t surface) {
  need_current();
  note_ended(KILNI_HANDLE_SURFACE, surface);
  return books.under.cuSurfObjectDestroy(surface);
}

// ---- The books ----

static void cover_textures(kiln_cuda_table_t* t) {
  KILNI_CUDA_SET(t, cuGreenCtxStreamCreate, books_cuGreenCtxStreamCreate);
  KILNI_CUDA_SET(t, cuArray3DCreate, books_cuArray3DCreate);
  KILNI_CUDA_SET(t, cuArrayDestroy, books_cuArrayDestroy);
  KILNI_CUDA_SET(t, cuMipmappedArrayCreate, books_cuMipmappedArrayCreate);
  KILNI_CUDA_SET(t, cuMipmappedArrayDestroy, books_cuMipmappedArrayDestroy);
  KILNI_CUDA_SET(t, cuTexObjectCreate, books_cuTexObjectCreate);
  KILNI_CUDA_SET(t, cuTexObjectDestroy, books_cuTexObjectDestroy);
  KILNI_CUDA_SET(t, cuSurfObjectCreate, books_cuSurfObjectCreate);
  KILNI_CUDA_SET(t, cuSurfObjectDestroy, books_cuSurfObjectDestroy);
}

static void cover_memory(kiln_cuda_table_t* t) {
  KILNI_CUDA_SET(t, cuMemAlloc, books_cuMemAlloc);
  KILNI_CUDA_SET(t, cuMemFree, books_cuMemFree);
  KILNI_CUDA_SET(t, cuMemAllocManaged, books_cuMemAllocManaged);
  KILNI_CUDA_SET(t, cuMemHostAlloc, books_cuMemHostAlloc);
  KILNI_CUDA_SET(t, cuMemFreeHost, books_cuMemFreeHost);
  KILNI_CUDA_SET(t, cuMemAllocAsync, books_cuMemAllocAsync);
  KILNI_CUDA_SET(t, cuMemFreeAsync, books_cuMemFreeAsync);
  KILNI_CUDA_SET(t, cuMemAllocFromPoolAsync, books_cuMemAllocFromPoolAsync);
  KILNI_CUDA_SET(t, cuDeviceGetMemPool, books_cuDeviceGetMemPool);
  KILNI_CUDA_SET(t, cuMemPoolCreate, books_cuMemPoolCreate);
  KILNI_CUDA_SET(t, cuMemPoolDestroy, books_cuMemPoolDestroy);
  if (!books.over_null) return;
  KILNI_CUDA_SET(t, cuMemPoolImportFromShareableHandle,
                 books_cuMemPoolImportFromShareableHandle);
  KILNI_CUDA_SET(t, cuMemPoolImportPointer, books_cuMemPoolImportPointer);
}

static void cover_streams(kiln_cuda_table_t* t) {
  KILNI_CUDA_SET(t, cuStreamCreate, books_cuStreamCreate);
  KILNI_CUDA_SET(t, cuStreamCreateWithPriority,
                 books_cuStreamCreateWithPriority);
  KILNI_CUDA_SET(t, cuStreamDestroy, books_cuStreamDestroy);
  KILNI_CUDA_SET(t, cuStreamGetCtx, books_cuStreamGetCtx);
  KILNI_CUDA_SET(t, cuStreamSynchronize, books_cuStreamSynchronize);
  KILNI_CUDA_SET(t, cuStreamQuery, books_cuStreamQuery);
  KILNI_CUDA_SET(t, cuStreamWaitEvent, books_cuStreamWaitEvent);
  KILNI_CUDA_SET(t, cuLaunchHostFunc, books_cuLaunchHostFunc);
  KILNI_CUDA_SET(t, cuMemsetD8Async, books_cuMemsetD8Async);
  KILNI_CUDA_SET(t, cuEventCreate, books_cuEventCreate);
  KILNI_CUDA_SET(t, cuEventDestroy, books_cuEventDestroy);
  KILNI_CUDA_SET(t, cuEventRecord, books_cuEventRecord);
  KILNI_CUDA_SET(t, cuEventQuery, books_cuEventQuery);
  KILNI_CUDA_SET(t, cuEventSynchronize, books_cuEventSynchronize);
}

void driver_books_open(kiln_cuda_table_t* t) {
  memset(&books, 0, sizeof(books));
  memset(&here, 0, sizeof(here));
  here.fail_with = KILN_CU_ERROR_INVALID_CONTEXT;
  assert_null(kilni_base_mutex_init(&books.lock));
  books.under = *t;
  books.over_null = strstr(t->provider, "null") != NULL;
  if (books.over_null) {
    KILNI_CUDA_SET(t, cuDeviceGetCount, books_cuDeviceGetCount);
    KILNI_CUDA_SET(t, cuDeviceGet, books_cuDeviceGet);
    KILNI_CUDA_SET(t, cuCtxGetStreamPriorityRange,
                   books_cuCtxGetStreamPriorityRange);
    KILNI_CUDA_SET(t, cuIpcOpenEventHandle, books_cuIpcOpenEventHandle);
    cover_textures(t);
  }
  KILNI_CUDA_SET(t, cuDevicePrimaryCtxRetain, books_cuDevicePrimaryCtxRetain);
  KILNI_CUDA_SET(t, cuDevicePrimaryCtxRelease, books_cuDevicePrimaryCtxRelease);
  KILNI_CUDA_SET(t, cuCtxEnablePeerAccess, books_cuCtxEnablePeerAccess);
  KILNI_CUDA_SET(t, cuCtxDisablePeerAccess, books_cuCtxDisablePeerAccess);
  KILNI_CUDA_SET(t, cuCtxGetCurrent, books_cuCtxGetCurrent);
  KILNI_CUDA_SET(t, cuCtxSetCurrent, books_cuCtxSetCurrent);
  KILNI_CUDA_SET(t, cuCtxSynchronize, books_cuCtxSynchronize);
  KILNI_CUDA_SET(t, cuThreadExchangeStreamCaptureMode,
                 books_cuThreadExchangeStreamCaptureMode);
  cover_memory(t);
  cover_streams(t);
}

driver_books_counts_t driver_books_counts(void) {
  kilni_base_mutex_lock(&books.lock);
  driver_books_counts_t counts = books.counts;
  counts.live = books.count;
  // Access stays where the context cannot be switched to: no call for it made
  // in another one would do.
  for (size_t i = 0; atomic_load(&books.forgives) && i < books.count; i++) {
    if (books.entries[i].kind == KILNI_HANDLE_NONE) counts.live--;
  }
  kilni_base_mutex_unlock(&books.lock);
  return counts;
}

void driver_books_close(void) {
  driver_books_counts_t counts = driver_books_counts();
  if (counts.wrong != 0) {
    fail_msg("%llu wrong: %s", (unsigned long long)counts.wrong,
             counts.first_wrong);
  }
  if (counts.live != 0) {
    fail_msg("%llu handles live", (unsigned long long)counts.live);
  }
  kilni_base_mutex_deinit(&books.lock);
}

kiln_cu_context_t driver_books_current(void) {
  if (books.over_null) return here.current;
  kiln_cu_context_t current = NULL;
  books.under.cuCtxGetCurrent(&current);
  return current;
}

kiln_cu_capture_mode_t driver_books_mode(void) {
  return here.mode;
}

kiln_cu_context_t driver_books_token_context(void) {
  return here.token_context;
}

void driver_books_forgive(bool forgives) {
  atomic_store(&books.forgives, forgives);
}

void driver_books_fail_switch(uint32_t nth) {
  here.fail_switch = nth;
}

void driver_books_fail_exchange(uint32_t nth) {
  here.fail_exchange = nth;
}

void driver_books_fail_with(kiln_cu_result_t result) {
  here.fail_with = result;
}
