// SPDX-License-Identifier: Apache-2.0
//
// soft: rows by which a stream writes values to memory or waits for them.
//
// A wait is looked at again and again by a worker that has nothing else to do
// (soft_queue.c): the host, or another stream, may write what it waits for.
#include <string.h>

#include "soft/driver/soft_graph.h"
#include "table/cuda_table.h"

bool kilni_soft_values_run(kilni_soft_driver_t* driver, kilni_soft_work_t* work,
                           bool* out_gone) {
  *out_gone = false;
  for (; work->as.values.at < work->as.values.count; work->as.values.at++) {
    const kiln_cu_mem_op_t* one = &work->as.values.list[work->as.values.at];
    bool wide = one->operation == KILN_CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
                one->operation == KILN_CU_STREAM_MEM_OP_WRITE_VALUE_64;
    bool wait = one->operation == KILN_CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
                one->operation == KILN_CU_STREAM_MEM_OP_WAIT_VALUE_32;
    if (one->operation == KILN_CU_STREAM_MEM_OP_BARRIER) continue;
    void* at = kilni_soft_memory_host(driver->memory, one->value.address,
                                      wide ? 8 : 4);
    if (at == NULL) {
      *out_gone = true;
      return true;
    }
    uint64_t wanted = wide ? one->value.value : (uint32_t)one->value.value;
    if (!wait) {
      const kilni_soft_marks_t* marks = kilni_soft_memory_marks(driver->memory);
      if (marks != NULL) {
        kilni_soft_marks_set(marks, one->value.address, wide ? 8 : 4);
      }
      if (wide) {
        __atomic_store_n((uint64_t*)at, wanted, __ATOMIC_SEQ_CST);
      } else {
        __atomic_store_n((uint32_t*)at, (uint32_t)wanted, __ATOMIC_SEQ_CST);
      }
      continue;
    }
    uint64_t is = wide ? __atomic_load_n((uint64_t*)at, __ATOMIC_SEQ_CST)
                       : __atomic_load_n((uint32_t*)at, __ATOMIC_SEQ_CST);
    bool holds = true;
    switch (one->value.flags) {
      case KILN_CU_STREAM_WAIT_VALUE_GEQ:
        holds = wide ? (int64_t)(is - wanted) >= 0
                     : (int32_t)((uint32_t)is - (uint32_t)wanted) >= 0;
        break;
      case KILN_CU_STREAM_WAIT_VALUE_EQ:
        holds = is == wanted;
        break;
      case KILN_CU_STREAM_WAIT_VALUE_AND:
        holds = (is & wanted) != 0;
        break;
      default:
        holds = wide ? ~(is | wanted) != 0
                     : (uint32_t)~((uint32_t)is | (uint32_t)wanted) != 0;
        break;
    }
    if (!holds) return false;
  }
  return true;
}

static kiln_cu_result_t values_issue(kiln_cu_stream_t stream, const char* call,
                                     unsigned int count,
                                     kiln_cu_mem_op_t* operations,
                                     unsigned int flags) {
  kilni_soft_driver_t* driver;
  kilni_soft_stream_t* where;
  kilni_soft_captured_t* captured;
  kiln_cu_result_t result =
      kilni_soft_enter_stream(stream, true, &driver, &where);
  if (result != KILN_CU_SUCCESS) return result;
  const kiln_cu_mem_op_node_t params = {
      .context = (kiln_cu_context_t)(uintptr_t)where->context->handle,
      .count = count,
      .operations = operations,
      .flags = flags};
  kilni_soft_doing_t doing;
  memset(&doing, 0, sizeof(doing));
  result = kilni_soft_doing_values(driver, &params, &doing);
  if (result != KILN_CU_SUCCESS) return kilni_soft_leave(driver, result);
  const uint32_t type = KILN_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  result = kilni_soft_capture_enter(driver, where, call, &captured);
  if (result == KILN_CU_SUCCESS && captured != NULL) {
    result = kilni_soft_capture_add(driver, captured, call, type, &doing, NULL);
    return kilni_soft_leave(driver, result);
  }
  const kilni_soft_work_t work = {
      .kind = KILNI_SOFT_TASK_VALUES,
      .as.values = {.list = doing.values.operations, .count = count}};
  if (result == KILN_CU_SUCCESS) {
    result = kilni_soft_queue_issue(driver, where, &work, NULL, NULL);
  }
  if (result != KILN_CU_SUCCESS) kilni_soft_doing_free(driver, type, &doing);
  return kilni_soft_leave(driver, result);
}

static kiln_cu_result_t values_row_batch(kiln_cu_stream_t stream,
                                         unsigned int count,
                                         kiln_cu_mem_op_t* operations,
                                         unsigned int flags) {
  return values_issue(stream, "cuStreamBatchMemOp", count, operations, flags);
}

static kiln_cu_result_t issue_one(kiln_cu_stream_t stream, const char* call,
                                  unsigned int operation,
                                  kiln_cu_deviceptr_t address, uint64_t value,
                                  unsigned int flags) {
  kiln_cu_mem_op_t one;
  memset(&one, 0, sizeof(one));
  one.value.operation = operation;
  one.value.address = address;
  one.value.value = value;
  one.value.flags = flags;
  return values_issue(stream, call, 1, &one, 0);
}

static kiln_cu_result_t row_wait32(kiln_cu_stream_t stream,
                                   kiln_cu_deviceptr_t address, uint32_t value,
                                   unsigned int flags) {
  return issue_one(stream, "cuStreamWaitValue32",
                   KILN_CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}

static kiln_cu_result_t row_write32(kiln_cu_stream_t stream,
                                    kiln_cu_deviceptr_t address, uint32_t value,
                                    unsigned int flags) {
  return issue_one(stream, "cuStreamWriteValue32",
                   KILN_CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}

static kiln_cu_result_t row_wait64(kiln_cu_stream_t stream,
                                   kiln_cu_deviceptr_t address, uint64_t value,
                                   unsigned int flags) {
  return issue_one(stream, "cuStreamWaitValue64",
                   KILN_CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}

static kiln_cu_result_t row_write64(kiln_cu_stream_t stream,
                                    kiln_cu_deviceptr_t address, uint64_t value,
                                    unsigned int flags) {
  return issue_one(stream, "cuStreamWriteValue64",
                   KILN_CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}

void kilni_soft_fill_values(kiln_cuda_table_t* table) {
  KILNI_CUDA_SET(table, cuStreamWaitValue32, row_wait32);
  KILNI_CUDA_SET(table, cuStreamWriteValue32, row_write32);
  KILNI_CUDA_SET(table, cuStreamWaitValue64, row_wait64);
  KILNI_CUDA_SET(table, cuStreamWriteValue64, row_write64);
  KILNI_CUDA_SET(table, cuStreamBatchMemOp, values_row_batch);
}
