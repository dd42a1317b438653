// SPDX-License-Identifier: Apache-2.0
//
// device: batches of copies: one call where the driver has it, else one each.
#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "device/device_scope.h"

// As many need no memory.
enum { BATCH_INLINE = 32 };

// What the driver is given: three lists, in one block of memory. one-thread
typedef struct batch_t {
  kiln_allocator_t allocator;
  kiln_cu_deviceptr_t* to;
  kiln_cu_deviceptr_t* from;
  size_t* sizes;
  size_t count;  // of copies with bytes
  size_t space;
  uint64_t inline_words[3 * BATCH_INLINE];
} batch_t;

static kiln_status_t init_batch(batch_t* batch, kiln_allocator_t allocator,
                                const kiln_copy_t* copies, uint32_t count) {
  void* words = batch->inline_words;
  batch->allocator = allocator;
  batch->count = 0;
  batch->space = count;
  if (count > BATCH_INLINE) {
    KILNI_RETURN_IF_ERROR(
        kilni_base_alloc_array(allocator, count, 3 * sizeof(uint64_t), &words));
  }
  batch->to = words;
  batch->from = batch->to + count;
  batch->sizes = (size_t*)(void*)(batch->from + count);
  for (uint32_t i = 0; i < count; i++) {
    const kiln_copy_t* copy = &copies[i];
    if (copy->bytes == 0) continue;
    batch->to[batch->count] = copy->target->address + copy->target_offset;
    batch->from[batch->count] = copy->source->address + copy->source_offset;
    batch->sizes[batch->count++] = (size_t)copy->bytes;
  }
  return kiln_ok();
}

static void deinit_batch(batch_t* batch) {
  if (batch->space <= BATCH_INLINE) return;
  kilni_base_free_array(batch->allocator, batch->to, batch->space,
                        3 * sizeof(uint64_t));
}

static kiln_status_t batch_check_stream(kiln_stream_t* stream) {
  if (stream->kind == KILN_STREAM_LEGACY) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "a batch of copies on the legacy default stream of \"%s\"",
                   stream->device->name),
        "use a stream of kiln_stream_create");
  }
  bool captured = false;
  KILNI_RETURN_IF_ERROR(kilni_device_stream_ask_capture(stream, &captured));
  if (!captured) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "a batch of copies on a stream of \"%s\" that is being "
                 "captured; a graph cannot contain one",
                 stream->device->name),
      "copy one by one with kiln_buffer_copy_async while a stream is captured");
}

static kiln_status_t check_copies(const kiln_stream_t* stream,
                                  const kiln_copy_t* copies, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const kiln_copy_t* copy = &copies[i];
    KILNI_CHECK_ARGUMENT(copy->target != NULL, "copies[].target");
    KILNI_CHECK_ARGUMENT(copy->source != NULL, "copies[].source");
    kiln_status_t status = kilni_device_buffer_check_copy(
        copy->target, stream, copy->target_offset, copy->source,
        copy->source_offset, copy->bytes);
    if (!kiln_status_is_ok(status)) {
      return KILNI_ANNOTATE(status, "copy %u of a batch", (unsigned)i);
    }
  }
  return kiln_ok();
}

static kiln_status_t at_once(kiln_stream_t* stream, const kiln_copy_t* copies,
                             uint32_t count, uint32_t order) {
  static const kiln_cu_copy_order_t orders[] = {KILN_CU_COPY_ORDER_STREAM,
                                                KILN_CU_COPY_ORDER_DURING_CALL,
                                                KILN_CU_COPY_ORDER_ANY};
  batch_t batch;
  KILNI_RETURN_IF_ERROR(
      init_batch(&batch, stream->device->host->allocator, copies, count));
  kiln_cu_copy_attributes_t attributes = {orders[order], {0, 0}, {0, 0}, 0};
  size_t first = 0;
  kiln_status_t status = kiln_ok();
  if (batch.count > 0) {
    KILNI_STREAM_CALL(status, stream, cuMemcpyBatchAsync, batch.to, batch.from,
                      batch.sizes, batch.count, &attributes, &first, 1,
                      stream->handle);
  }
  deinit_batch(&batch);
  return status;
}

static kiln_status_t batch_one_by_one(kiln_stream_t* stream,
                                      const kiln_copy_t* copies, uint32_t count,
                                      uint32_t order) {
  for (uint32_t i = 0; i < count; i++) {
    const kiln_copy_t* copy = &copies[i];
    KILNI_RETURN_IF_ERROR(
        kiln_buffer_copy_async(copy->target, stream, copy->target_offset,
                               copy->source, copy->source_offset, copy->bytes));
  }
  return order == KILN_COPY_DURING_CALL ? kiln_stream_synchronize(stream)
                                        : NULL;
}

kiln_status_t kiln_copy_batch(kiln_stream_t* stream, const kiln_copy_t* copies,
                              uint32_t count,
                              const kiln_copy_options_t* options) {
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  KILNI_CHECK_ARGUMENT(copies != NULL || count == 0, "copies");
  kiln_copy_options_t given;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(options, "kiln_copy_options_t",
                                                sizeof(given), &given));
  KILNI_CHECK_ARGUMENT(given.source_order <= KILN_COPY_ANY_TIME,
                       "options.source_order");
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(stream->device->host));
  KILNI_RETURN_IF_ERROR(check_copies(stream, copies, count));
  KILNI_RETURN_IF_ERROR(batch_check_stream(stream));
  // The driver's batch wants a current context, which that of a part may be for
  // one thread alone; copies on its streams may come from any.
  if (stream->device->parent == NULL &&
      kilni_table_cuda_has(stream->device->table,
                           KILNI_CUDA_ROW_cuMemcpyBatchAsync)) {
    return at_once(stream, copies, count, given.source_order);
  }
  return batch_one_by_one(stream, copies, count, given.source_order);
}
