// SPDX-License-Identifier: Apache-2.0
//
// live: a host program's own context, stream, events, memory and pool, which
// Kiln uses and leaves as it found them: still there, with the same settings
// and the bytes that were asked for, and with the same context current.
//
//   live_host_program [DEVICE]    cuda:0
#include <stdio.h>
#include <string.h>

#include "kiln/kiln.h"
#include "live_check.h"
#include "runtime/runtime.h"
#include "table/cuda_table.h"

enum { BYTES = 1 << 16, PRIORITY = -1, THRESHOLD = 12345, OWNERS = 6 };

// What the host program has. one-thread
typedef struct host_t {
  kiln_cuda_table_t cu;
  kiln_runtime_t* runtime;
  kiln_device_t* device;  // of Kiln
  bool soft;
  kiln_cu_device_t ordinal;
  kiln_cu_context_t context;
  kiln_cu_stream_t stream;
  kiln_cu_event_t event;
  kiln_cu_mempool_t pool;
  kiln_cu_deviceptr_t memory;
  kiln_cu_deviceptr_t managed;
  void* pinned;
  int told;
} host_t;

// All that Kiln might have changed. thread-compatible
typedef struct look_t {
  kiln_cu_context_t current;
  kiln_cu_context_t stream_context;
  kiln_cu_capture_mode_t mode;
  unsigned int context_flags;
  int active;
  unsigned int stream_flags;
  int priority;
  uint64_t threshold;
  uint64_t device_threshold;
  size_t stack;
  size_t heap;
  size_t printed;
} look_t;

static kiln_status_t keep_table(void* user, kiln_cuda_table_t* inout_table) {
  ((host_t*)user)->cu = *inout_table;
  return kiln_ok();
}

static void told(void* user) {
  ++((host_t*)user)->told;
}

// ---- The host program ----

static void host_begin(host_t* h) {
  const kiln_cuda_table_t* cu = &h->cu;
  CU(cu->cuDeviceGet(&h->ordinal, 0));
  CU(cu->cuDevicePrimaryCtxRetain(&h->context, h->ordinal));
  CU(cu->cuCtxSetCurrent(h->context));
  CU(cu->cuStreamCreateWithPriority(&h->stream, KILN_CU_STREAM_NON_BLOCKING,
                                    PRIORITY));
  CU(cu->cuEventCreate(&h->event, 0));
  CU(cu->cuMemAlloc(&h->memory, BYTES));
  CU(cu->cuMemAllocManaged(&h->managed, BYTES, KILN_CU_MEM_ATTACH_GLOBAL));
  CU(cu->cuMemHostAlloc(&h->pinned, BYTES, KILN_CU_MEMHOSTALLOC_DEVICEMAP));
  kiln_cu_mempool_props_t props;
  memset(&props, 0, sizeof(props));
  props.allocation = KILN_CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = KILN_CU_MEM_LOCATION_TYPE_DEVICE;
  props.location.id = h->ordinal;
  uint64_t threshold = THRESHOLD;
  CU(cu->cuMemPoolCreate(&h->pool, &props));
  CU(cu->cuMemPoolSetAttribute(h->pool, KILN_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                               &threshold));
}

static void host_end(host_t* h) {
  const kiln_cuda_table_t* cu = &h->cu;
  kiln_cu_deviceptr_t more = 0;
  // They are the host program's still, and work.
  CU(cu->cuCtxSetCurrent(h->context));
  CU(cu->cuMemAllocFromPoolAsync(&more, BYTES, h->pool, h->stream));
  CU(cu->cuMemFreeAsync(more, h->stream));
  CU(cu->cuEventRecord(h->event, h->stream));
  CU(cu->cuStreamSynchronize(h->stream));
  CU(cu->cuEventQuery(h->event));
  CU(cu->cuMemPoolDestroy(h->pool));
  CU(cu->cuMemFreeHost(h->pinned));
  CU(cu->cuMemFree(h->managed));
  CU(cu->cuMemFree(h->memory));
  CU(cu->cuEventDestroy(h->event));
  CU(cu->cuStreamDestroy(h->stream));
  CU(cu->cuCtxSetCurrent(NULL));
  CU(cu->cuDevicePrimaryCtxRelease(h->ordinal));
}

static void look(host_t* h, look_t* out) {
  const kiln_cuda_table_t* cu = &h->cu;
  memset(out, 0, sizeof(*out));
  out->mode = KILN_CU_STREAM_CAPTURE_MODE_GLOBAL;
  CU(cu->cuThreadExchangeStreamCaptureMode(&out->mode));
  kiln_cu_capture_mode_t mode = out->mode;
  CU(cu->cuThreadExchangeStreamCaptureMode(&mode));
  CU(cu->cuCtxGetCurrent(&out->current));
  CU(cu->cuDevicePrimaryCtxGetState(h->ordinal, &out->context_flags,
                                    &out->active));
  CU(cu->cuStreamGetCtx(h->stream, &out->stream_context));
  CU(cu->cuStreamGetFlags(h->stream, &out->stream_flags));
  CU(cu->cuStreamGetPriority(h->stream, &out->priority));
  CU(cu->cuMemPoolGetAttribute(h->pool, KILN_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                               &out->threshold));
  kiln_cu_mempool_t pool = NULL;
  CU(cu->cuDeviceGetMemPool(&pool, h->ordinal));
  CU(cu->cuMemPoolGetAttribute(pool, KILN_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                               &out->device_threshold));
  // Limits are those of the context that is current.
  CU(cu->cuCtxSetCurrent(h->context));
  CU(cu->cuCtxGetLimit(&out->stack, KILN_CU_LIMIT_STACK_SIZE));
  CU(cu->cuCtxGetLimit(&out->heap, KILN_CU_LIMIT_MALLOC_HEAP_SIZE));
  CU(cu->cuCtxGetLimit(&out->printed, KILN_CU_LIMIT_PRINTF_FIFO_SIZE));
  CU(cu->cuCtxSetCurrent(out->current));
}

// ---- Kiln on it ----

// What Kiln has of it. one-thread
typedef struct ours_t {
  kiln_stream_t* stream;
  kiln_event_t* event;
  kiln_pool_t* pool;
  kiln_buffer_t* memory;
  kiln_buffer_t* managed;
  kiln_buffer_t* pinned;
  kiln_buffer_t* taken;
} ours_t;

static bool adopt(host_t* h, ours_t* o) {
  kiln_owner_t owner = {told, h};
  kiln_buffer_options_t options = kiln_buffer_options_default();
  bool good =
      OK(kiln_stream_adopt(h->device, h->stream, &owner, &o->stream)) &&
      OK(kiln_event_adopt(h->device, h->event, &owner, &o->event)) &&
      OK(kiln_pool_adopt(h->device, KILN_MEMORY_DEVICE, h->pool, &owner,
                         &o->pool)) &&
      OK(kiln_buffer_adopt(h->device, h->memory, BYTES, &owner, &o->memory)) &&
      OK(kiln_buffer_adopt(h->device, h->managed, BYTES, &owner,
                           &o->managed)) &&
      OK(kiln_buffer_adopt(h->device, (uintptr_t)h->pinned, BYTES, &owner,
                           &o->pinned));
  if (!good) return false;
  options.pool = o->pool;
  options.stream = o->stream;
  IS(kiln_stream_priority(o->stream) == PRIORITY || h->soft);
  IS(kiln_buffer_kind(o->managed) == KILN_MEMORY_MANAGED);
  IS(kiln_buffer_kind(o->pinned) == KILN_MEMORY_PINNED);
  IS(kiln_buffer_host(o->pinned) == h->pinned);
  return OK(kiln_buffer_create(h->device, BYTES, &options, &o->taken));
}

static void work(host_t* h, ours_t* o) {
  static uint8_t bytes[BYTES];
  OK(kiln_buffer_fill_async(o->memory, o->stream, 0, BYTES, 0x5a, 1));
  OK(kiln_buffer_copy_async(o->taken, o->stream, 0, o->memory, 0, BYTES));
  OK(kiln_buffer_copy_async(o->managed, o->stream, 0, o->taken, 0, BYTES));
  OK(kiln_buffer_copy_async(o->pinned, o->stream, 0, o->managed, 0, BYTES));
  OK(kiln_event_record(o->event, o->stream));
  OK(kiln_event_synchronize(o->event));
  IS(memcmp(h->pinned, (const uint8_t*)h->pinned + 1, BYTES - 1) == 0);
  IS(*(const uint8_t*)h->pinned == 0x5a);
  OK(kiln_buffer_write(o->memory, 0, 1, "x"));
  OK(kiln_buffer_read(o->memory, 0, BYTES, bytes));
  IS(bytes[0] == 'x' && bytes[1] == 0x5a && bytes[BYTES - 1] == 0x5a);
}

// Seven things, from any one of them on.
static void release(ours_t* o, int first) {
  for (int i = 0; i < 7; i++) {
    switch ((first + i) % 7) {
      case 0:
        kiln_stream_release(o->stream);
        break;
      case 1:
        kiln_event_release(o->event);
        break;
      case 2:
        kiln_pool_release(o->pool);
        break;
      case 3:
        kiln_buffer_release(o->memory);
        break;
      case 4:
        kiln_buffer_release(o->managed);
        break;
      case 5:
        kiln_buffer_release(o->pinned);
        break;
      default:
        kiln_buffer_release(o->taken);
        break;
    }
  }
}

static void use(host_t* h, int first) {
  ours_t ours;
  look_t before;
  look_t after;
  memset(&ours, 0, sizeof(ours));
  h->told = 0;
  look(h, &before);
  if (adopt(h, &ours)) work(h, &ours);
  release(&ours, first);
  IS(h->told == OWNERS);
  look(h, &after);
  // `look` clears what lies between the members.
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
  IS(memcmp(&before, &after, sizeof(before)) == 0);
}

// A fault of what Kiln is asked for leaves them as well.
static void refused(host_t* h) {
  kiln_owner_t owner = {told, h};
  kiln_buffer_t* buffer = NULL;
  kiln_stream_t* stream = NULL;
  look_t before;
  look_t after;
  look(h, &before);
  h->told = 0;
  kiln_status_t status = kiln_buffer_adopt(h->device, h->memory,
                                           UINT64_C(1) << 40, &owner, &buffer);
  IS(buffer == NULL && !kiln_status_is_ok(status));
  kiln_status_free(status);
  status = kiln_stream_adopt(NULL, h->stream, &owner, &stream);
  IS(stream == NULL && !kiln_status_is_ok(status));
  kiln_status_free(status);
  IS(h->told == 0);
  look(h, &after);
  // `look` clears what lies between the members.
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
  IS(memcmp(&before, &after, sizeof(before)) == 0);
}

// ---- A context of the host program's own ----

typedef kiln_cu_result_t (*create_fn_t)(kiln_cu_context_t* context,
                                        unsigned int flags,
                                        kiln_cu_device_t device);
typedef kiln_cu_result_t (*destroy_fn_t)(kiln_cu_context_t context);

// Rows that Kiln has no use for.
static void* by_hand(host_t* h, const char* name) {
  void* address = NULL;
  kiln_cu_proc_address_query_t found = 0;
  CU(h->cu.cuGetProcAddress(name, &address, 4000,
                            KILN_CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found));
  return address;
}

static void own_context(host_t* h) {
  kiln_owner_t owner = {told, h};
  kiln_cu_context_t context = NULL;
  kiln_cu_context_t now = NULL;
  kiln_device_t* device = NULL;
  kiln_stream_t* stream = NULL;
  kiln_buffer_t* buffer = NULL;
  uint32_t words[16] = {0};
  create_fn_t create;
  destroy_fn_t destroy;
  void* address = by_hand(h, "cuCtxCreate");
  memcpy(&create, &address, sizeof(create));
  address = by_hand(h, "cuCtxDestroy");
  memcpy(&destroy, &address, sizeof(destroy));
  CU(h->cu.cuCtxSetCurrent(NULL));
  CU(create(&context, 0, h->ordinal));
  CU(h->cu.cuCtxSetCurrent(h->context));
  h->told = 0;
  if (OK(kiln_device_adopt(h->device, context, &owner, &device)) &&
      OK(kiln_stream_create(device, NULL, &stream)) &&
      OK(kiln_buffer_create(device, sizeof(words), NULL, &buffer))) {
    CU(h->cu.cuStreamGetCtx(kiln_stream_handle(stream), &now));
    IS(now == context);
    OK(kiln_buffer_fill_async(buffer, stream, 0, sizeof(words), 7, 4));
    OK(kiln_buffer_read_async(buffer, stream, 0, sizeof(words), words));
    OK(kiln_stream_synchronize(stream));
    IS(words[0] == 7 && words[15] == 7);
    CU(h->cu.cuCtxGetCurrent(&now));
    IS(now == h->context);
  }
  kiln_device_release(device);
  kiln_buffer_release(buffer);
  IS(h->told == 0);
  kiln_stream_release(stream);
  IS(h->told == 1);
  // It is there still, and its owner's to end.
  CU(h->cu.cuCtxSetCurrent(context));
  CU(h->cu.cuCtxSynchronize());
  CU(h->cu.cuCtxSetCurrent(h->context));
  CU(destroy(context));
}

int main(int argc, char** argv) {
  static host_t h;
  const char* name = argc > 1 ? argv[1] : "cuda:0";
  h.soft = strcmp(name, "soft") == 0;
  kilni_runtime_hooks_t hooks = {0};
  hooks.wrap = keep_table;
  hooks.user = &h;
  kiln_status_t status = kilni_runtime_create_with(NULL, &hooks, &h.runtime);
  if (kiln_status_is_ok(status)) {
    status = kiln_runtime_open_device(h.runtime, name, &h.device);
  }
  if (!kiln_status_is_ok(status)) {
    printf("skipped: %s\n", kiln_status_message(status));
    kiln_status_free(status);
    kiln_runtime_release(h.runtime);
    return 77;
  }
  host_begin(&h);
  IS(kiln_device_context(h.device) == h.context);
  int runs = 0;
  for (int first = 0; first < 7; first++) {
    CU(h.cu.cuCtxSetCurrent(first % 2 == 0 ? h.context : NULL));
    use(&h, first);
    refused(&h);
    runs++;
  }
  if (!h.soft) own_context(&h);
  host_end(&h);
  kiln_device_release(h.device);
  kiln_runtime_release(h.runtime);
  printf("%s: %d runs, %d failures\n", name, runs, failures);
  return failures == 0 ? 0 : 1;
}
