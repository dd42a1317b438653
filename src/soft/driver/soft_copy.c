// SPDX-License-Identifier: Apache-2.0
//
// soft: rows that copy and fill.
//
// Plain host memory is handled as a GPU's driver does: an asynchronous copy
// from it has read it when the call returns, one to it has written it. Between
// device memory and pinned memory everything is as asynchronous as the name
// implies, and copies within the device never wait.
#include <string.h>

#include "base/alloc.h"
#include "soft/driver/soft_driver.h"
#include "soft/driver/soft_graph.h"
#include "table/cuda_table.h"

// Larger copies from plain host memory wait instead of being staged.
enum { STAGE_BYTES = 64 << 10 };

typedef enum end_kind_t {
  END_PLAIN,   // host memory that the device does not know
  END_PINNED,  // host memory that it knows
  END_DEVICE,
} end_kind_t;

// How a row specifies an end.
typedef enum end_must_t { MUST_KNOWN, MUST_HOST, MUST_ANY } end_must_t;

// Finds out what is at [address, address + bytes).
static kiln_cu_result_t classify(kilni_soft_driver_t* driver, uint64_t address,
                                 uint64_t bytes, end_must_t must,
                                 kilni_soft_end_t* out_end,
                                 end_kind_t* out_kind) {
  kilni_soft_alloc_t alloc;
  *out_end = (kilni_soft_end_t){.address = address};
  *out_kind = END_PLAIN;
  if (kilni_soft_memory_query(driver->memory, address, &alloc)) {
    bool host = kilni_soft_alloc_is_host(alloc.kind);
    bool inside =
        bytes <= alloc.bytes - (address - alloc.address) ||
        kilni_soft_memory_host(driver->memory, address, bytes) != NULL;
    // Memory of a context that is lost is lost with it, to all others too;
    // mapped memory is of none.
    const kilni_soft_context_t* owner = &driver->contexts[alloc.device];
    if (!host && alloc.kind != KILNI_SOFT_ALLOC_MAPPED &&
        kilni_soft_sticky(owner) != KILN_CU_SUCCESS) {
      return kilni_soft_sticky(owner);
    }
    if (inside) {
      out_end->known = 1;
      *out_kind = host ? END_PINNED : END_DEVICE;
      return KILN_CU_SUCCESS;
    }
    // Pinned memory may be a part of what the host program copies.
    if (!host || must == MUST_KNOWN) return KILN_CU_ERROR_INVALID_VALUE;
    return KILN_CU_SUCCESS;
  }
  bool in_window = kilni_soft_memory_in_window(driver->memory, address);
  if (must == MUST_KNOWN || address == 0 || in_window) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  return KILN_CU_SUCCESS;
}

// Copies the source now if it is small plain host memory.
static kiln_cu_result_t stage(kilni_soft_driver_t* driver,
                              kilni_soft_work_t* work, end_kind_t from) {
  uint64_t bytes = work->as.copy.bytes;
  if (from != END_PLAIN || bytes > STAGE_BYTES) return KILN_CU_SUCCESS;
  kiln_status_t status = kilni_base_alloc(driver->host.allocator, (size_t)bytes,
                                          &work->as.copy.staged);
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  memcpy(work->as.copy.staged,
         (const void*)(uintptr_t)work->as.copy.from.address, (size_t)bytes);
  return KILN_CU_SUCCESS;
}

// A copy in a captured stream is a node, which reads and writes when it runs.
static kiln_cu_result_t capture_copy(kilni_soft_driver_t* driver,
                                     kilni_soft_captured_t* captured,
                                     const char* call, uint64_t to,
                                     uint64_t from, uint64_t bytes) {
  kilni_soft_doing_t doing;
  memset(&doing, 0, sizeof(doing));
  kiln_cu_copy_3d_t* copy = &doing.copy.copy;
  copy->from.type = KILN_CU_MEMORYTYPE_UNIFIED;
  copy->from.device = from;
  copy->to.type = KILN_CU_MEMORYTYPE_UNIFIED;
  copy->to.device = to;
  copy->width_bytes = (size_t)bytes;
  copy->height = 1;
  copy->depth = 1;
  return kilni_soft_capture_add(driver, captured, call,
                                KILN_CU_GRAPH_NODE_TYPE_MEMCPY, &doing, NULL);
}

static kiln_cu_result_t issue_and_wait(kilni_soft_driver_t* driver,
                                       kilni_soft_stream_t* stream,
                                       const kilni_soft_work_t* work,
                                       bool wait) {
  kilni_soft_task_t* task = NULL;
  const kilni_soft_context_t* context = stream->context;
  kiln_cu_result_t result =
      kilni_soft_queue_issue(driver, stream, work, NULL, wait ? &task : NULL);
  if (result != KILN_CU_SUCCESS || !wait) return result;
  kilni_soft_queue_wait(driver, task);
  kilni_soft_task_release(driver, task);
  return kilni_soft_sticky(context);
}

// What the copy rows differ in.
typedef struct copy_t {
  uint64_t to;
  uint64_t from;
  uint64_t bytes;
  end_must_t to_must;
  end_must_t from_must;
  bool wait;  // unless both ends are device memory
  const char* call;
} copy_t;

static kiln_cu_result_t copy_locked(kilni_soft_driver_t* driver,
                                    kilni_soft_stream_t* stream,
                                    const copy_t* copy) {
  if (copy->bytes == 0) return KILN_CU_SUCCESS;
  end_kind_t to;
  end_kind_t from;
  kilni_soft_work_t work = {.kind = KILNI_SOFT_TASK_COPY,
                            .as.copy = {.bytes = copy->bytes}};
  kiln_cu_result_t result = classify(driver, copy->to, copy->bytes,
                                     copy->to_must, &work.as.copy.to, &to);
  if (result != KILN_CU_SUCCESS) return result;
  result = classify(driver, copy->from, copy->bytes, copy->from_must,
                    &work.as.copy.from, &from);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_captured_t* captured;
  result = kilni_soft_capture_enter(driver, stream, copy->call, &captured);
  if (result != KILN_CU_SUCCESS) return result;
  if (captured != NULL) {
    return capture_copy(driver, captured, copy->call, copy->to, copy->from,
                        copy->bytes);
  }
  bool inside = to == END_DEVICE && from == END_DEVICE;
  bool wait = (copy->wait && !inside) || to == END_PLAIN;
  if (!wait) {
    result = stage(driver, &work, from);
    if (result != KILN_CU_SUCCESS) return result;
    wait = from == END_PLAIN && work.as.copy.staged == NULL;
  }
  result = issue_and_wait(driver, stream, &work, wait);
  if (result != KILN_CU_SUCCESS && !wait) {
    kilni_base_free(driver->host.allocator, work.as.copy.staged,
                    (size_t)copy->bytes);
  }
  return result;
}

static kiln_cu_result_t soft_copy_copy_in(kiln_cu_stream_t stream,
                                          const copy_t* copy) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* where;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, true, &driver, &where);
  if (result != KILN_CU_SUCCESS) return result;
  return kilni_soft_leave(driver, copy_locked(driver, where, copy));
}

// A copy in the legacy default stream of the current context.
static kiln_cu_result_t copy_now(const copy_t* copy) {
  return soft_copy_copy_in(KILN_CU_STREAM_LEGACY, copy);
}

static kiln_cu_result_t row_copy(kiln_cu_deviceptr_t to,
                                 kiln_cu_deviceptr_t from, size_t bytes) {
  return copy_now(
      &(copy_t){to, from, bytes, MUST_ANY, MUST_ANY, true, "cuMemcpy"});
}

static kiln_cu_result_t row_copy_async(kiln_cu_deviceptr_t to,
                                       kiln_cu_deviceptr_t from, size_t bytes,
                                       kiln_cu_stream_t stream) {
  return soft_copy_copy_in(stream, &(copy_t){to, from, bytes, MUST_ANY,
                                             MUST_ANY, false, "cuMemcpyAsync"});
}

static kiln_cu_result_t row_htod(kiln_cu_deviceptr_t to, const void* from,
                                 size_t bytes) {
  return copy_now(&(copy_t){to, (uintptr_t)from, bytes, MUST_KNOWN, MUST_HOST,
                            true, "cuMemcpyHtoD"});
}

static kiln_cu_result_t row_htod_async(kiln_cu_deviceptr_t to, const void* from,
                                       size_t bytes, kiln_cu_stream_t stream) {
  return soft_copy_copy_in(
      stream, &(copy_t){to, (uintptr_t)from, bytes, MUST_KNOWN, MUST_HOST,
                        false, "cuMemcpyHtoDAsync"});
}

static kiln_cu_result_t row_dtoh(void* to, kiln_cu_deviceptr_t from,
                                 size_t bytes) {
  return copy_now(&(copy_t){(uintptr_t)to, from, bytes, MUST_HOST, MUST_KNOWN,
                            true, "cuMemcpyDtoH"});
}

static kiln_cu_result_t row_dtoh_async(void* to, kiln_cu_deviceptr_t from,
                                       size_t bytes, kiln_cu_stream_t stream) {
  return soft_copy_copy_in(
      stream, &(copy_t){(uintptr_t)to, from, bytes, MUST_HOST, MUST_KNOWN,
                        false, "cuMemcpyDtoHAsync"});
}

static kiln_cu_result_t row_dtod(kiln_cu_deviceptr_t to,
                                 kiln_cu_deviceptr_t from, size_t bytes) {
  return copy_now(&(copy_t){to, from, bytes, MUST_KNOWN, MUST_KNOWN, false,
                            "cuMemcpyDtoD"});
}

static kiln_cu_result_t row_dtod_async(kiln_cu_deviceptr_t to,
                                       kiln_cu_deviceptr_t from, size_t bytes,
                                       kiln_cu_stream_t stream) {
  return soft_copy_copy_in(
      stream, &(copy_t){to, from, bytes, MUST_KNOWN, MUST_KNOWN, false,
                        "cuMemcpyDtoDAsync"});
}

// ---- Batches ----

static bool good_attributes(const kiln_cu_copy_attributes_t* attributes,
                            const size_t* first, size_t attribute_count,
                            size_t count) {
  if (attributes == NULL || first == NULL || attribute_count == 0 ||
      attribute_count > count || first[0] != 0) {
    return false;
  }
  for (size_t i = 0; i < attribute_count; i++) {
    if (attributes[i].order < KILN_CU_COPY_ORDER_STREAM ||
        attributes[i].order > KILN_CU_COPY_ORDER_ANY ||
        (i > 0 && first[i] <= first[i - 1]) || first[i] >= count) {
      return false;
    }
  }
  return true;
}

// One after another on the stream, in any order.
static kiln_cu_result_t copy_row_batch(kiln_cu_deviceptr_t* to,
                                       kiln_cu_deviceptr_t* from, size_t* sizes,
                                       size_t count,
                                       kiln_cu_copy_attributes_t* attributes,
                                       size_t* first, size_t attribute_count,
                                       kiln_cu_stream_t stream) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* where;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, true, &driver, &where);
  if (result != KILN_CU_SUCCESS) return result;
  // Without a current context a driver returns this, whatever the stream.
  if (kilni_soft_current(driver) == NULL || to == NULL || from == NULL ||
      sizes == NULL || count == 0 || where == &where->context->legacy ||
      !good_attributes(attributes, first, attribute_count, count)) {
    return kilni_soft_leave(driver, KILN_CU_ERROR_INVALID_VALUE);
  }
  result = kilni_soft_capture_refuse(driver, where, "cuMemcpyBatchAsync");
  bool waits = false;
  for (size_t i = 0; i < attribute_count; i++) {
    waits |= attributes[i].order == KILN_CU_COPY_ORDER_DURING_CALL;
  }
  for (size_t i = 0; i < count && result == KILN_CU_SUCCESS; i++) {
    const copy_t copy = {to[i],
                         from[i],
                         sizes[i],
                         MUST_ANY,
                         MUST_ANY,
                         false,
                         "cuMemcpyBatchAsync"};
    result = copy_locked(driver, where, &copy);
  }
  if (waits) kilni_soft_queue_wait(driver, where->last);
  return kilni_soft_leave(driver, result);
}

// ---- Between devices ----

// An address identifies its memory's owner: the contexts need only be alive,
// and without a sticky error.
static kiln_cu_result_t check_contexts(kilni_soft_driver_t* driver,
                                       kiln_cu_context_t to,
                                       kiln_cu_context_t from) {
  const kilni_soft_context_t* target = kilni_soft_handle_get(
      &driver->handles, KILNI_SOFT_KIND_CONTEXT, (uintptr_t)to);
  const kilni_soft_context_t* source = kilni_soft_handle_get(
      &driver->handles, KILNI_SOFT_KIND_CONTEXT, (uintptr_t)from);
  if (target == NULL || source == NULL) return KILN_CU_ERROR_INVALID_CONTEXT;
  kiln_cu_result_t result = kilni_soft_sticky(target);
  return result != KILN_CU_SUCCESS ? result : kilni_soft_sticky(source);
}

static kiln_cu_result_t row_peer_async(kiln_cu_deviceptr_t to,
                                       kiln_cu_context_t to_context,
                                       kiln_cu_deviceptr_t from,
                                       kiln_cu_context_t from_context,
                                       size_t bytes, kiln_cu_stream_t stream) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* where;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, true, &driver, &where);
  if (result != KILN_CU_SUCCESS) return result;
  result = check_contexts(driver, to_context, from_context);
  if (result == KILN_CU_SUCCESS) {
    const copy_t copy = {
        to, from, bytes, MUST_KNOWN, MUST_KNOWN, false, "cuMemcpyPeerAsync"};
    result = copy_locked(driver, where, &copy);
  }
  return kilni_soft_leave(driver, result);
}

// After all work of both devices, and before any later work.
static kiln_cu_result_t row_peer(kiln_cu_deviceptr_t to,
                                 kiln_cu_context_t to_context,
                                 kiln_cu_deviceptr_t from,
                                 kiln_cu_context_t from_context, size_t bytes) {
  kilni_soft_driver_t* driver;
  kiln_cu_result_t result = kilni_soft_enter(KILNI_SOFT_NEEDS_HEALTHY, &driver);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_context_t* current = kilni_soft_current(driver);
  kilni_soft_queue_drain(driver, NULL);
  result = check_contexts(driver, to_context, from_context);
  if (result == KILN_CU_SUCCESS) {
    const copy_t copy = {to,         from,  bytes,         MUST_KNOWN,
                         MUST_KNOWN, false, "cuMemcpyPeer"};
    result = copy_locked(driver, &current->legacy, &copy);
    kilni_soft_queue_drain(driver, NULL);
  }
  return kilni_soft_leave(driver, result);
}

// ---- Fills ----

// What the fill rows differ in.
typedef struct fill_t {
  uint64_t to;
  uint64_t count;
  uint32_t value;
  uint32_t width;
  const char* call;
} fill_t;

static kiln_cu_result_t fill_locked(kilni_soft_driver_t* driver,
                                    kilni_soft_stream_t* stream,
                                    const fill_t* fill, bool sync) {
  if (fill->count == 0) return KILN_CU_SUCCESS;
  if (fill->to % fill->width != 0 || fill->count > UINT64_MAX / fill->width) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  kilni_soft_end_t end;
  end_kind_t kind;
  kiln_cu_result_t result = classify(
      driver, fill->to, fill->count * fill->width, MUST_KNOWN, &end, &kind);
  if (result != KILN_CU_SUCCESS) return result;
  kilni_soft_captured_t* captured;
  result = kilni_soft_capture_enter(driver, stream, fill->call, &captured);
  if (result != KILN_CU_SUCCESS) return result;
  if (captured != NULL) {
    kilni_soft_doing_t doing;
    memset(&doing, 0, sizeof(doing));
    doing.fill.fill.to = fill->to;
    doing.fill.fill.value = fill->value;
    doing.fill.fill.element_bytes = fill->width;
    doing.fill.fill.width = (size_t)fill->count;
    doing.fill.fill.height = 1;
    return kilni_soft_capture_add(driver, captured, fill->call,
                                  KILN_CU_GRAPH_NODE_TYPE_MEMSET, &doing, NULL);
  }
  kilni_soft_work_t work = {.kind = KILNI_SOFT_TASK_FILL,
                            .as.fill = {.address = fill->to,
                                        .count = fill->count,
                                        .value = fill->value,
                                        .width = fill->width}};
  return issue_and_wait(driver, stream, &work, sync && kind == END_PINNED);
}

static kiln_cu_result_t fill_in(kiln_cu_stream_t stream, const fill_t* fill,
                                bool sync) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* where;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, true, &driver, &where);
  if (result != KILN_CU_SUCCESS) return result;
  return kilni_soft_leave(driver, fill_locked(driver, where, fill, sync));
}

static kiln_cu_result_t row_fill8(kiln_cu_deviceptr_t to, unsigned char value,
                                  size_t count) {
  return fill_in(KILN_CU_STREAM_LEGACY,
                 &(fill_t){to, count, value, 1, "cuMemsetD8"}, true);
}

static kiln_cu_result_t row_fill16(kiln_cu_deviceptr_t to, unsigned short value,
                                   size_t count) {
  return fill_in(KILN_CU_STREAM_LEGACY,
                 &(fill_t){to, count, value, 2, "cuMemsetD16"}, true);
}

static kiln_cu_result_t row_fill32(kiln_cu_deviceptr_t to, unsigned int value,
                                   size_t count) {
  return fill_in(KILN_CU_STREAM_LEGACY,
                 &(fill_t){to, count, value, 4, "cuMemsetD32"}, true);
}

static kiln_cu_result_t row_fill8_async(kiln_cu_deviceptr_t to,
                                        unsigned char value, size_t count,
                                        kiln_cu_stream_t stream) {
  return fill_in(stream, &(fill_t){to, count, value, 1, "cuMemsetD8Async"},
                 false);
}

static kiln_cu_result_t row_fill16_async(kiln_cu_deviceptr_t to,
                                         unsigned short value, size_t count,
                                         kiln_cu_stream_t stream) {
  return fill_in(stream, &(fill_t){to, count, value, 2, "cuMemsetD16Async"},
                 false);
}

static kiln_cu_result_t row_fill32_async(kiln_cu_deviceptr_t to,
                                         unsigned int value, size_t count,
                                         kiln_cu_stream_t stream) {
  return fill_in(stream, &(fill_t){to, count, value, 4, "cuMemsetD32Async"},
                 false);
}

void kilni_soft_fill_copy(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuMemcpy, row_copy);
  KILNI_CUDA_SET(table, cuMemcpyHtoD, row_htod);
  KILNI_CUDA_SET(table, cuMemcpyDtoH, row_dtoh);
  KILNI_CUDA_SET(table, cuMemcpyDtoD, row_dtod);
  KILNI_CUDA_SET(table, cuMemcpyAsync, row_copy_async);
  KILNI_CUDA_SET(table, cuMemcpyHtoDAsync, row_htod_async);
  KILNI_CUDA_SET(table, cuMemcpyDtoHAsync, row_dtoh_async);
  KILNI_CUDA_SET(table, cuMemcpyDtoDAsync, row_dtod_async);
  KILNI_CUDA_SET(table, cuMemcpyBatchAsync, copy_row_batch);
  KILNI_CUDA_SET(table, cuMemcpyPeer, row_peer);
  KILNI_CUDA_SET(table, cuMemcpyPeerAsync, row_peer_async);
  KILNI_CUDA_SET(table, cuMemsetD8, row_fill8);
  KILNI_CUDA_SET(table, cuMemsetD16, row_fill16);
  KILNI_CUDA_SET(table, cuMemsetD32, row_fill32);
  KILNI_CUDA_SET(table, cuMemsetD8Async, row_fill8_async);
  KILNI_CUDA_SET(table, cuMemsetD16Async, row_fill16_async);
  KILNI_CUDA_SET(table, cuMemsetD32Async, row_fill32_async);
}
