// SPDX-License-Identifier: Apache-2.0
//
// soft: what nodes of graphs do: checked when it is asked for, copied with its
// node, and made into work of the queue when its graph is launched.
#include <string.h>

#include "base/alloc.h"
#include "soft/driver/soft_graph.h"
#include "table/cuda_abi.h"

// A context that a caller names: the primary one, or the current one for NULL.
static kiln_cu_result_t check_context(kilni_soft_driver_t* driver,
                                      kiln_cu_context_t context) {
  if (context == NULL) return kilni_soft_current_check(driver);
  return kilni_soft_handle_get(&driver->handles, KILNI_SOFT_KIND_CONTEXT,
                               (uintptr_t)context) != NULL
             ? KILN_CU_SUCCESS
             : KILN_CU_ERROR_INVALID_CONTEXT;
}

// ---- Copies ----

static bool graph_doing_is_known(const kilni_soft_driver_t* driver,
                                 uint64_t address, uint64_t bytes) {
  return kilni_soft_memory_host(driver->memory, address, bytes) != NULL;
}

// One side of a box of `box`.
static kiln_cu_result_t read_side(const kilni_soft_driver_t* driver,
                                  const kiln_cu_copy_side_t* side,
                                  const kilni_soft_box_t* box,
                                  kilni_soft_side_t* out_side) {
  memset(out_side, 0, sizeof(*out_side));
  uint64_t start = side->device;
  if (side->type == KILN_CU_MEMORYTYPE_HOST) start = (uintptr_t)side->host;
  if (side->type == KILN_CU_MEMORYTYPE_ARRAY) {
    return KILN_CU_ERROR_NOT_SUPPORTED;
  }
  if (side->type < KILN_CU_MEMORYTYPE_HOST ||
      side->type > KILN_CU_MEMORYTYPE_UNIFIED || start == 0) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  bool rows = box->height > 1 || box->depth > 1;
  if ((rows && side->row_bytes < side->x_bytes + box->width) ||
      (box->depth > 1 && side->rows < side->y + box->height)) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  out_side->row_bytes = side->row_bytes;
  out_side->slice_bytes = side->row_bytes * side->rows;
  start += side->z * out_side->slice_bytes + side->y * side->row_bytes +
           side->x_bytes;
  uint64_t end = start + (box->depth - 1) * out_side->slice_bytes +
                 (box->height - 1) * out_side->row_bytes;
  bool known = graph_doing_is_known(driver, start, box->width) &&
               graph_doing_is_known(driver, end, box->width);
  bool window = start - KILNI_SOFT_GLOBAL_BASE < KILNI_SOFT_WINDOW_BYTES;
  if (!known && (side->type == KILN_CU_MEMORYTYPE_DEVICE || window)) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  out_side->at.address = start;
  out_side->at.known = known;
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t read_box(const kilni_soft_driver_t* driver,
                                 const kiln_cu_copy_3d_t* copy,
                                 kilni_soft_box_t* out_box) {
  out_box->width = copy->width_bytes;
  out_box->height = copy->height;
  out_box->depth = copy->depth;
  if (copy->width_bytes == 0 || copy->height == 0 || copy->depth == 0) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  kiln_cu_result_t result =
      read_side(driver, &copy->from, out_box, &out_box->from);
  if (result != KILN_CU_SUCCESS) return result;
  return read_side(driver, &copy->to, out_box, &out_box->to);
}

kiln_cu_result_t kilni_soft_doing_memcpy(kilni_soft_driver_t* driver,
                                         const kiln_cu_copy_3d_t* copy,
                                         kiln_cu_context_t context,
                                         kilni_soft_doing_t* out_doing) {
  kilni_soft_box_t box;
  if (copy == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  kiln_cu_result_t result = check_context(driver, context);
  if (result == KILN_CU_SUCCESS) result = read_box(driver, copy, &box);
  if (result != KILN_CU_SUCCESS) return result;
  out_doing->copy.copy = *copy;
  out_doing->copy.context = context;
  return KILN_CU_SUCCESS;
}

// ---- Fills ----

static kiln_cu_result_t graph_doing_check_fill(
    const kilni_soft_driver_t* driver, const kiln_cu_memset_node_t* fill) {
  uint32_t element = fill->element_bytes;
  if ((element != 1 && element != 2 && element != 4) || fill->width == 0 ||
      fill->height == 0 || fill->to % element != 0 ||
      fill->width > UINT32_MAX * (uint64_t)UINT32_MAX / element) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  uint64_t row = fill->width * element;
  if (fill->height > 1 &&
      (fill->row_bytes < row || fill->row_bytes % element != 0)) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  uint64_t last = fill->to + (fill->height - 1) * fill->row_bytes;
  return graph_doing_is_known(driver, fill->to, row) &&
                 graph_doing_is_known(driver, last, row)
             ? KILN_CU_SUCCESS
             : KILN_CU_ERROR_INVALID_VALUE;
}

kiln_cu_result_t kilni_soft_doing_memset(kilni_soft_driver_t* driver,
                                         const kiln_cu_memset_node_t* fill,
                                         kiln_cu_context_t context,
                                         kilni_soft_doing_t* out_doing) {
  if (fill == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  kiln_cu_result_t result = check_context(driver, context);
  if (result == KILN_CU_SUCCESS) result = graph_doing_check_fill(driver, fill);
  if (result != KILN_CU_SUCCESS) return result;
  out_doing->fill.fill = *fill;
  out_doing->fill.context = context;
  return KILN_CU_SUCCESS;
}

// ---- Values in memory ----

static kiln_cu_result_t graph_doing_check_value(
    const kilni_soft_driver_t* driver, const kiln_cu_mem_op_t* operation) {
  uint64_t bytes = 4;
  bool wait = false;
  switch (operation->operation) {
    case KILN_CU_STREAM_MEM_OP_WAIT_VALUE_64:
      bytes = 8;
      wait = true;
      break;
    case KILN_CU_STREAM_MEM_OP_WAIT_VALUE_32:
      wait = true;
      break;
    case KILN_CU_STREAM_MEM_OP_WRITE_VALUE_64:
      bytes = 8;
      break;
    case KILN_CU_STREAM_MEM_OP_WRITE_VALUE_32:
      break;
    case KILN_CU_STREAM_MEM_OP_BARRIER:
      return KILN_CU_SUCCESS;
    case KILN_CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      return KILN_CU_ERROR_NOT_SUPPORTED;
    default:
      return KILN_CU_ERROR_INVALID_VALUE;
  }
  uint64_t address = operation->value.address;
  unsigned int most = wait ? KILN_CU_STREAM_WAIT_VALUE_NOR
                           : KILN_CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
  if (address % bytes != 0 || !graph_doing_is_known(driver, address, bytes) ||
      operation->value.flags > most) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  return KILN_CU_SUCCESS;
}

static kiln_cu_result_t copy_values(kilni_soft_driver_t* driver,
                                    const kiln_cu_mem_op_node_t* params,
                                    kiln_cu_mem_op_t** out_list) {
  kiln_status_t status =
      kilni_base_alloc_array(driver->host.allocator, params->count,
                             sizeof(**out_list), (void**)out_list);
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  memcpy(*out_list, params->operations, params->count * sizeof(**out_list));
  return KILN_CU_SUCCESS;
}

kiln_cu_result_t kilni_soft_doing_values(kilni_soft_driver_t* driver,
                                         const kiln_cu_mem_op_node_t* params,
                                         kilni_soft_doing_t* out_doing) {
  enum { MOST = 256 };  // as a GPU's driver
  if (params == NULL || params->count == 0 || params->count > MOST ||
      params->operations == NULL || params->flags != 0) {
    return KILN_CU_ERROR_INVALID_VALUE;
  }
  kiln_cu_result_t result = check_context(driver, params->context);
  for (unsigned int i = 0; i < params->count && result == KILN_CU_SUCCESS;
       i++) {
    result = graph_doing_check_value(driver, &params->operations[i]);
  }
  if (result != KILN_CU_SUCCESS) return result;
  out_doing->values = *params;
  return copy_values(driver, params, &out_doing->values.operations);
}

// ---- Kernels ----

static kiln_cu_result_t copy_kernel(kilni_soft_driver_t* driver,
                                    const kilni_soft_kernel_node_t* kernel,
                                    kilni_soft_kernel_node_t* out_copy) {
  kiln_allocator_t allocator = driver->host.allocator;
  *out_copy = *kernel;
  out_copy->packed = NULL;
  out_copy->params = NULL;
  out_copy->attributes = NULL;
  out_copy->attribute_count = 0;
  kiln_status_t status = kilni_base_alloc(allocator, kernel->param_bytes,
                                          (void**)&out_copy->packed);
  if (kiln_status_is_ok(status)) {
    memcpy(out_copy->packed, kernel->packed, kernel->param_bytes);
    status = kilni_base_alloc_array(allocator, kernel->param_count,
                                    sizeof(void*), (void**)&out_copy->params);
  }
  for (uint32_t i = 0; kiln_status_is_ok(status) && i < kernel->param_count;
       i++) {
    out_copy->params[i] =
        out_copy->packed + ((uint8_t*)kernel->params[i] - kernel->packed);
  }
  kiln_cu_result_t result = kilni_soft_result(status);
  for (uint32_t i = 0; result == KILN_CU_SUCCESS && i < kernel->attribute_count;
       i++) {
    result = kilni_soft_kernel_set_attribute(driver, out_copy,
                                             &kernel->attributes[i]);
  }
  return result;
}

static void free_kernel(kilni_soft_driver_t* driver,
                        kilni_soft_kernel_node_t* kernel) {
  kiln_allocator_t allocator = driver->host.allocator;
  kilni_base_free(allocator, kernel->packed, kernel->param_bytes);
  kilni_base_free_array(allocator, kernel->params, kernel->param_count,
                        sizeof(void*));
  kilni_base_free_array(allocator, kernel->attributes, kernel->attribute_count,
                        sizeof(*kernel->attributes));
}

kiln_cu_result_t kilni_soft_doing_kernel(kilni_soft_driver_t* driver,
                                         const kiln_cu_kernel_node_t* params,
                                         kilni_soft_doing_t* out_doing) {
  if (params == NULL) return KILN_CU_ERROR_INVALID_VALUE;
  memset(out_doing, 0, sizeof(*out_doing));
  kiln_cu_result_t result =
      kilni_soft_launch_keep(driver, params, NULL, 0, &out_doing->kernel);
  if (result != KILN_CU_SUCCESS) free_kernel(driver, &out_doing->kernel);
  return result;
}

const kiln_cu_launch_attribute_t* kilni_soft_kernel_attribute(
    const kilni_soft_kernel_node_t* kernel, kiln_cu_launch_attribute_id_t id) {
  for (uint32_t i = 0; i < kernel->attribute_count; i++) {
    if (kernel->attributes[i].id == id) return &kernel->attributes[i];
  }
  return NULL;
}

kiln_cu_result_t kilni_soft_kernel_set_attribute(
    kilni_soft_driver_t* driver, kilni_soft_kernel_node_t* kernel,
    const kiln_cu_launch_attribute_t* attribute) {
  for (uint32_t i = 0; i < kernel->attribute_count; i++) {
    if (kernel->attributes[i].id != attribute->id) continue;
    kernel->attributes[i] = *attribute;
    return KILN_CU_SUCCESS;
  }
  kiln_allocator_t allocator = driver->host.allocator;
  kiln_cu_launch_attribute_t* list = NULL;
  uint32_t count = kernel->attribute_count;
  kiln_status_t status = kilni_base_alloc_array(allocator, count + 1u,
                                                sizeof(*list), (void**)&list);
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  if (count > 0) memcpy(list, kernel->attributes, count * sizeof(*list));
  list[count] = *attribute;
  kilni_base_free_array(allocator, kernel->attributes, count, sizeof(*list));
  kernel->attributes = list;
  kernel->attribute_count = count + 1;
  return KILN_CU_SUCCESS;
}

// ---- Graphs inside ----

static kiln_cu_result_t copy_bodies(kilni_soft_driver_t* driver,
                                    const kilni_soft_doing_t* doing,
                                    bool handles,
                                    kilni_soft_doing_t* out_copy) {
  kiln_allocator_t allocator = driver->host.allocator;
  uint32_t count = doing->condition.count;
  out_copy->condition.bodies = NULL;
  out_copy->condition.handles = NULL;
  kiln_status_t status =
      kilni_base_alloc_array(allocator, count, sizeof(kilni_soft_graph_t*),
                             (void**)&out_copy->condition.bodies);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_alloc_array(allocator, count, sizeof(kiln_cu_graph_t),
                                    (void**)&out_copy->condition.handles);
  }
  kiln_cu_result_t result = kilni_soft_result(status);
  for (uint32_t i = 0; i < count && result == KILN_CU_SUCCESS; i++) {
    result = kilni_soft_graph_copy(driver, doing->condition.bodies[i], handles,
                                   &out_copy->condition.bodies[i]);
    if (result != KILN_CU_SUCCESS) break;
    out_copy->condition.handles[i] =
        (kiln_cu_graph_t)(uintptr_t)out_copy->condition.bodies[i]->handle;
  }
  return result;
}

static void free_bodies(kilni_soft_driver_t* driver,
                        kilni_soft_doing_t* doing) {
  uint32_t count = doing->condition.count;
  for (uint32_t i = 0; doing->condition.bodies != NULL && i < count; i++) {
    if (doing->condition.bodies[i] == NULL) continue;
    kilni_soft_graph_free(driver, doing->condition.bodies[i]);
  }
  kilni_base_free_array(driver->host.allocator, doing->condition.bodies, count,
                        sizeof(kilni_soft_graph_t*));
  kilni_base_free_array(driver->host.allocator, doing->condition.handles, count,
                        sizeof(kiln_cu_graph_t));
}

static kiln_cu_result_t copy_access(kilni_soft_driver_t* driver,
                                    kilni_soft_doing_t* copy) {
  size_t count = copy->alloc.params.access_count;
  copy->alloc.access = NULL;
  copy->alloc.store->refs++;
  if (count == 0) return KILN_CU_SUCCESS;
  kiln_status_t status = kilni_base_alloc_array(driver->host.allocator, count,
                                                sizeof(*copy->alloc.access),
                                                (void**)&copy->alloc.access);
  if (!kiln_status_is_ok(status)) return kilni_soft_result(status);
  memcpy(copy->alloc.access, copy->alloc.params.access,
         count * sizeof(*copy->alloc.access));
  copy->alloc.params.access = copy->alloc.access;
  return KILN_CU_SUCCESS;
}

kiln_cu_result_t kilni_soft_doing_copy(kilni_soft_driver_t* driver,
                                       uint32_t type,
                                       const kilni_soft_doing_t* doing,
                                       bool handles,
                                       kilni_soft_doing_t* out_copy) {
  kiln_cu_result_t result = KILN_CU_SUCCESS;
  *out_copy = *doing;
  switch (type) {
    case KILN_CU_GRAPH_NODE_TYPE_KERNEL:
      result = copy_kernel(driver, &doing->kernel, &out_copy->kernel);
      break;
    case KILN_CU_GRAPH_NODE_TYPE_GRAPH:
      out_copy->child = NULL;
      result = kilni_soft_graph_copy(driver, doing->child, handles,
                                     &out_copy->child);
      break;
    case KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL:
      result = copy_bodies(driver, doing, handles, out_copy);
      break;
    case KILN_CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      result = copy_access(driver, out_copy);
      break;
    case KILN_CU_GRAPH_NODE_TYPE_MEM_FREE:
      out_copy->release.store->refs++;
      break;
    case KILN_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      out_copy->values.operations = NULL;
      result =
          copy_values(driver, &doing->values, &out_copy->values.operations);
      break;
    default:
      break;
  }
  if (result != KILN_CU_SUCCESS) kilni_soft_doing_free(driver, type, out_copy);
  return result;
}

void kilni_soft_doing_free(kilni_soft_driver_t* driver, uint32_t type,
                           kilni_soft_doing_t* doing) {
  kiln_allocator_t allocator = driver->host.allocator;
  switch (type) {
    case KILN_CU_GRAPH_NODE_TYPE_KERNEL:
      free_kernel(driver, &doing->kernel);
      break;
    case KILN_CU_GRAPH_NODE_TYPE_GRAPH:
      if (doing->child != NULL) kilni_soft_graph_free(driver, doing->child);
      break;
    case KILN_CU_GRAPH_NODE_TYPE_CONDITIONAL:
      free_bodies(driver, doing);
      break;
    case KILN_CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      kilni_base_free_array(allocator, doing->alloc.access,
                            doing->alloc.params.access_count,
                            sizeof(*doing->alloc.access));
      kilni_soft_store_release(driver, doing->alloc.store);
      break;
    case KILN_CU_GRAPH_NODE_TYPE_MEM_FREE:
      kilni_soft_store_release(driver, doing->release.store);
      break;
    case KILN_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      kilni_base_free_array(allocator, doing->values.operations,
                            doing->values.count,
                            sizeof(*doing->values.operations));
      break;
    default:
      break;
  }
  memset(doing, 0, sizeof(*doing));
}

// ---- Work ----

kiln_cu_result_t kilni_soft_doing_work(kilni_soft_driver_t* driver,
                                       const kilni_soft_stream_t* stream,
                                       const kilni_soft_node_t* node,
                                       uint64_t number,
                                       kilni_soft_work_t* out_work) {
  memset(out_work, 0, sizeof(*out_work));
  out_work->kind = KILNI_SOFT_TASK_MARK;
  if (node->disabled) return KILN_CU_SUCCESS;
  const kiln_cu_memset_node_t* fill = &node->as.fill.fill;
  switch (node->type) {
    case KILN_CU_GRAPH_NODE_TYPE_KERNEL:
      out_work->kind = KILNI_SOFT_TASK_KERNEL;
      return kilni_soft_launch_kept(driver, stream, &node->as.kernel, number,
                                    &out_work->as.grid);
    case KILN_CU_GRAPH_NODE_TYPE_MEMCPY:
      out_work->kind = KILNI_SOFT_TASK_BOX;
      return read_box(driver, &node->as.copy.copy, &out_work->as.box);
    case KILN_CU_GRAPH_NODE_TYPE_MEMSET:
      out_work->kind = KILNI_SOFT_TASK_FILL;
      out_work->as.fill.address = fill->to;
      out_work->as.fill.count = fill->width;
      out_work->as.fill.value = fill->value;
      out_work->as.fill.width = fill->element_bytes;
      out_work->as.fill.rows = fill->height;
      out_work->as.fill.row_bytes = fill->row_bytes;
      return graph_doing_check_fill(driver, fill);
    case KILN_CU_GRAPH_NODE_TYPE_HOST:
      out_work->kind = KILNI_SOFT_TASK_HOST;
      out_work->as.host.fn = node->as.host.fn;
      out_work->as.host.user = node->as.host.user;
      return KILN_CU_SUCCESS;
    case KILN_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      out_work->kind = KILNI_SOFT_TASK_VALUES;
      out_work->as.values.count = node->as.values.count;
      return copy_values(driver, &node->as.values, &out_work->as.values.list);
    default:
      return KILN_CU_SUCCESS;
  }
}
