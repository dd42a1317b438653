// SPDX-License-Identifier: Apache-2.0
//
// graph: what a node is to do, checked and put into the driver's words.
//
// Every error is found here, with a text, since a driver reports only "invalid
// value". Adding a node, giving it other work and giving one of an executable
// other work all come through here.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "graph/graph_inside.h"
#include "kiln/graph.h"
#include "table/cuda_abi.h"

const char* kilni_graph_kind_name(uint32_t kind) {
  static const char* const kNames[] = {
      "kernel",         "copy",       "fill",
      "host",           "child",      "empty",
      "wait",           "record",     "semaphore signal",
      "semaphore wait", "allocate",   "free",
      "memory ops",     "conditional"};
  return kind < sizeof(kNames) / sizeof(kNames[0]) ? kNames[kind] : "unknown";
}

const char* kilni_graph_kind_article(uint32_t kind) {
  const char first = kilni_graph_kind_name(kind)[0];
  return first == 'a' || first == 'e' || first == 'u' ? "an" : "a";
}

static void work_want(kilni_graph_work_t* work, void* object, uint32_t kind) {
  if (object == NULL) return;
  kilni_graph_owned_t owned = {object, kind, 0};
  work->wanted.items[work->wanted.count++] = owned;
}

static kiln_status_t work_bad(const char* what, const char* fix) {
  return kilni_base_status_with_fix(KILNI_FAIL(INVALID_ARGUMENT, "%s", what),
                                    "%s", fix);
}

// ---- Kernels ----

static const char* attribute_name(kiln_cu_launch_attribute_id_t id) {
  switch (id) {
    case KILN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      return "overlap";
    case KILN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      return "programmatic_event";
    case KILN_CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      return "completion_event";
    default:
      return NULL;
  }
}

static kiln_status_t check_how(const kilni_device_launch_how_t* how) {
  for (uint32_t i = 0; i < how->count; i++) {
    const char* name = attribute_name(how->list[i].id);
    if (name == NULL) continue;
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "a graph node does not support the launch attribute `%s`",
                   name),
        "%s",
        how->list[i].id ==
                KILN_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            ? "leave it out, and connect the nodes with "
              "KILN_GRAPH_EDGE_PROGRAMMATIC"
            : "leave it out, and add a RECORD node");
  }
  return kiln_ok();
}

kiln_status_t kilni_graph_work_kernel(const kiln_graph_t* graph,
                                      kiln_launch_t* launch,
                                      kiln_cu_kernel_node_t* out_kernel) {
  if (launch->missing != 0) return kilni_device_launch_check_given(launch);
  if (launch->device != graph->device) {
    KILNI_RETURN_IF_ERROR(
        kilni_device_check_memory(launch->device, graph->device, "the graph"));
  }
  if (launch->how.count > 0) KILNI_RETURN_IF_ERROR(check_how(&launch->how));
  *out_kernel = launch->node;
  return kiln_ok();
}

kiln_status_t kilni_graph_work_same_how(const kiln_graph_node_t* node,
                                        const kiln_launch_t* launch) {
  const kilni_device_launch_how_t* how =
      node->more == NULL ? NULL : node->more->how;
  uint32_t count = how == NULL ? 0 : how->count;
  if (count == launch->how.count &&
      (count == 0 || memcmp(how->list, launch->how.list,
                            count * sizeof(how->list[0])) == 0)) {
    return kiln_ok();
  }
  char text[KILNI_NODE_TEXT];
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "the launch has attributes that differ from those of the "
                 "kernel node \"%s\", which cannot change",
                 kilni_graph_node_says(node, text)),
      "give a launch with the same attributes, or remove the node and add "
      "another");
}

// ---- Copies and fills ----

static kiln_status_t out_of(const char* what, uint64_t offset, uint64_t bytes,
                            uint64_t size) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(OUT_OF_RANGE,
                 "%s from byte %llu on needs %llu bytes, and the buffer has "
                 "%llu",
                 what, (unsigned long long)offset, (unsigned long long)bytes,
                 (unsigned long long)size),
      "stay inside the buffer");
}

// Bytes from the first to the last one that is touched; false if they are more
// than can be counted.
static bool span_of(uint64_t bytes, uint64_t rows, uint64_t slices,
                    uint64_t row_bytes, uint64_t slice_rows,
                    uint64_t* out_span) {
  uint64_t slice_bytes;
  uint64_t behind;
  uint64_t more;
  if (__builtin_mul_overflow(row_bytes, slice_rows, &slice_bytes) ||
      __builtin_mul_overflow(slice_bytes, slices - 1, &behind) ||
      __builtin_mul_overflow(row_bytes, rows - 1, &more) ||
      __builtin_add_overflow(behind, more, &behind) ||
      __builtin_add_overflow(behind, bytes, &behind)) {
    return false;
  }
  *out_span = behind;
  return true;
}

static kiln_status_t work_check_buffer(const kiln_graph_t* graph,
                                       const kiln_buffer_t* buffer,
                                       const char* what, uint64_t offset,
                                       uint64_t span) {
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_memory(graph->device, buffer->device, what));
  if (offset <= buffer->size && span <= buffer->size - offset) return kiln_ok();
  return out_of(what, offset, span, buffer->size);
}

static kiln_status_t work_take_place(kilni_graph_work_t* work,
                                     const kiln_graph_t* graph,
                                     const kiln_graph_place_t* place,
                                     const char* what,
                                     kiln_cu_copy_side_t* side) {
  const kiln_graph_copy_t* copy = &work->given->as.copy;
  uint64_t rows = copy->rows == 0 ? 1 : copy->rows;
  uint64_t slices = copy->slices == 0 ? 1 : copy->slices;
  int given = (place->buffer != NULL) + (place->array != NULL) +
              (place->host.from != NULL);
  if (given != 1) {
    return work_bad(
        "each side of a copy must be exactly one of a buffer, an array and "
        "host memory",
        "make places with the kiln_graph_place_... functions");
  }
  if (place->array != NULL) {
    KILNI_RETURN_IF_ERROR(kilni_device_check_memory(
        graph->device, kiln_array_device(place->array), what));
    side->type = KILN_CU_MEMORYTYPE_ARRAY;
    side->array = kiln_array_handle(place->array);
    side->x_bytes = place->x_bytes;
    side->y = place->y;
    side->z = place->z;
    work_want(work, place->array, KILNI_OWNED_ARRAY);
    return kiln_ok();
  }
  side->row_bytes = place->row_bytes == 0 ? copy->bytes : place->row_bytes;
  side->rows = place->rows == 0 ? rows : place->rows;
  uint64_t span = 0;
  if (side->row_bytes < copy->bytes || side->rows < rows ||
      !span_of(copy->bytes, rows, slices, side->row_bytes, side->rows, &span)) {
    return work_bad(
        "rows or slices of a copy overlap, or their number overflows",
        "give `row_bytes` of at least a row, and `rows` of at least a "
        "slice");
  }
  if (place->buffer == NULL) {
    side->type = KILN_CU_MEMORYTYPE_HOST;
    side->host = (const char*)place->host.from + place->offset;
    return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(
      work_check_buffer(graph, place->buffer, what, place->offset, span));
  bool pinned = place->buffer->kind == KILN_MEMORY_PINNED;
  side->type = pinned ? KILN_CU_MEMORYTYPE_HOST : KILN_CU_MEMORYTYPE_DEVICE;
  if (place->buffer->kind == KILN_MEMORY_MANAGED) {
    side->type = KILN_CU_MEMORYTYPE_UNIFIED;
  }
  if (pinned) side->host = (const char*)place->buffer->host + place->offset;
  if (!pinned) side->device = place->buffer->address + place->offset;
  work_want(work, place->buffer, KILNI_OWNED_BUFFER);
  return kiln_ok();
}

// Of one dimension, as in the stream operation: rows may interleave.
static kiln_status_t work_check_apart(const kiln_graph_copy_t* copy) {
  uint64_t to = copy->to.offset;
  uint64_t from = copy->from.offset;
  uint64_t distance = to > from ? to - from : from - to;
  if (copy->to.buffer == NULL || copy->to.buffer != copy->from.buffer ||
      copy->rows > 1 || copy->slices > 1 || distance >= copy->bytes) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "a copy of %llu bytes from offset %llu to %llu of one buffer "
                 "overlaps itself",
                 (unsigned long long)copy->bytes, (unsigned long long)from,
                 (unsigned long long)to),
      "copy through another buffer");
}

static kiln_status_t work_take_copy(kilni_graph_work_t* work,
                                    const kiln_graph_t* graph) {
  const kiln_graph_copy_t* copy = &work->given->as.copy;
  kiln_cu_copy_3d_t* to = &work->to.copy;
  memset(to, 0, sizeof(*to));
  if (copy->bytes == 0) {
    return work_bad("a node cannot copy 0 bytes",
                    "leave it out, or add an EMPTY "
                    "node");
  }
  KILNI_RETURN_IF_ERROR(work_take_place(work, graph, &copy->from,
                                        "the copy's source", &to->from));
  KILNI_RETURN_IF_ERROR(
      work_take_place(work, graph, &copy->to, "the copy's target", &to->to));
  KILNI_RETURN_IF_ERROR(work_check_apart(copy));
  to->width_bytes = copy->bytes;
  to->height = copy->rows == 0 ? 1 : copy->rows;
  to->depth = copy->slices == 0 ? 1 : copy->slices;
  return kiln_ok();
}

static kiln_status_t take_fill(kilni_graph_work_t* work,
                               const kiln_graph_t* graph) {
  const kiln_graph_fill_t* fill = &work->given->as.fill;
  uint64_t rows = fill->rows == 0 ? 1 : fill->rows;
  uint64_t bytes;
  uint64_t span = 0;
  if (fill->buffer == NULL) {
    return work_bad("a fill without a buffer",
                    "give the buffer that is filled");
  }
  if (fill->value_bytes != 1 && fill->value_bytes != 2 &&
      fill->value_bytes != 4) {
    return work_bad("the value of a fill must have 1, 2 or 4 bytes",
                    "set `value_bytes` to 1, 2 or 4");
  }
  if (fill->count == 0 ||
      __builtin_mul_overflow(fill->count, fill->value_bytes, &bytes)) {
    return work_bad("a fill of 0 values, or of more than fit an address range",
                    "give the number of values in a row");
  }
  uint64_t row_bytes = fill->row_bytes == 0 ? bytes : fill->row_bytes;
  if (row_bytes < bytes || row_bytes % fill->value_bytes != 0 ||
      fill->offset % fill->value_bytes != 0 ||
      !span_of(bytes, rows, 1, row_bytes, rows, &span)) {
    return work_bad(
        "the offset and rows of a fill must be multiples of its value, and its "
        "rows must not overlap",
        "set `offset` and `row_bytes` accordingly");
  }
  KILNI_RETURN_IF_ERROR(
      work_check_buffer(graph, fill->buffer, "the fill", fill->offset, span));
  uint32_t value = fill->value;
  if (fill->value_bytes < 4) value &= (1u << (8 * fill->value_bytes)) - 1;
  work->to.fill.to = fill->buffer->address + fill->offset;
  work->to.fill.row_bytes = rows == 1 ? 0 : row_bytes;
  work->to.fill.value = value;
  work->to.fill.element_bytes = fill->value_bytes;
  work->to.fill.width = fill->count;
  work->to.fill.height = rows;
  work_want(work, fill->buffer, KILNI_OWNED_BUFFER);
  return kiln_ok();
}

// ---- Hosts, events, graphs ----

static kiln_status_t work_take_host(kilni_graph_work_t* work) {
  const kiln_graph_host_t* host = &work->given->as.host;
  if (host->fn == NULL) {
    return work_bad("a host node without a function", "give the function");
  }
  if (host->copied_bytes > 0 && host->user_data == NULL) {
    return work_bad("a host node copies bytes from NULL",
                    "give `user_data`, or 0 for `copied_bytes`");
  }
  work->to.host.fn = host->fn;
  work->to.host.user = host->user_data;
  work->wanted.owner = host->owner;
  work->wanted.data = host->user_data;
  work->wanted.data_bytes = host->copied_bytes;
  return kiln_ok();
}

void kilni_graph_work_use_copy(kilni_graph_work_t* work,
                               const kilni_graph_bundle_t* bundle) {
  if (work->given->kind != KILN_GRAPH_HOST || bundle == NULL) return;
  if (bundle->data != NULL) work->to.host.user = bundle->data;
}

static kiln_status_t work_take_event(kilni_graph_work_t* work,
                                     const kiln_graph_t* graph) {
  kiln_event_t* event = work->given->as.event;
  if (event == NULL) {
    return work_bad("an event node without an event", "give the event");
  }
  bool records = work->given->kind == KILN_GRAPH_RECORD;
  KILNI_RETURN_IF_ERROR(
      records
          ? kilni_device_check_same(graph->device, event->device, "the event")
          : kilni_device_check_driver(graph->device, event->device,
                                      "the event"));
  work->to.event = event->handle;
  work_want(work, event, KILNI_OWNED_EVENT);
  return kiln_ok();
}

void kilni_graph_work_taken(const kilni_graph_work_t* work) {
  const kiln_graph_work_t* given = work->given;
  if (given->kind == KILN_GRAPH_CHILD) kilni_graph_owners_seal(given->as.child);
  if (given->kind != KILN_GRAPH_RECORD) return;
  atomic_store(&given->as.event->recorded, true);
}

kiln_status_t kilni_graph_work_want_child(kilni_graph_work_t* work,
                                          kilni_graph_hold_t** out_hold) {
  *out_hold = NULL;
  if (work->given->kind != KILN_GRAPH_CHILD) return kiln_ok();
  KILNI_RETURN_IF_ERROR(
      kilni_graph_hold_make(work->given->as.child->root, out_hold));
  if ((*out_hold)->count > 0) work_want(work, *out_hold, KILNI_OWNED_HOLD);
  return kiln_ok();
}

static kiln_status_t work_take_child(kilni_graph_work_t* work,
                                     const kiln_graph_t* graph) {
  kiln_graph_t* child = work->given->as.child;
  if (child == NULL) {
    return work_bad("a child node without a graph", "give the graph");
  }
  KILNI_RETURN_IF_ERROR(kilni_graph_check(child));
  KILNI_RETURN_IF_ERROR(
      kilni_device_check_driver(graph->device, child->device, "the child"));
  if (child->root == graph->root) {
    return work_bad(
        "a graph cannot be a node of itself or of a graph inside it",
        "clone it first (kiln_graph_clone)");
  }
  work->to.child = child->handle;
  return kiln_ok();
}

static kiln_status_t take_allocation(kilni_graph_work_t* work,
                                     const kiln_graph_t* graph) {
  const kiln_graph_allocation_t* given = &work->given->as.allocation;
  kiln_cu_alloc_node_t* to = &work->to.allocation;
  memset(to, 0, sizeof(*to));
  if (given->bytes == 0) {
    return work_bad("an allocation of 0 bytes", "give the number of bytes");
  }
  to->pool.allocation = KILN_CU_MEM_ALLOCATION_TYPE_PINNED;
  to->pool.location.type = KILN_CU_MEM_LOCATION_TYPE_DEVICE;
  to->pool.location.id = graph->device->handle;
  to->bytes = given->bytes;
  if (given->peer_count == 0) return kiln_ok();
  if (given->peers == NULL) {
    return work_bad("`peers` is NULL", "give as many devices as `peer_count`");
  }
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(graph->device->host->allocator, given->peer_count,
                             sizeof(kiln_cu_mem_access_desc_t), &block));
  work->allocated = block;
  work->allocated_bytes = given->peer_count * sizeof(kiln_cu_mem_access_desc_t);
  kiln_cu_mem_access_desc_t* list = block;
  for (uint64_t i = 0; i < given->peer_count; i++) {
    if (given->peers[i] == NULL) {
      return work_bad("a peer is NULL",
                      "give the devices that may use the memory");
    }
    KILNI_RETURN_IF_ERROR(
        kilni_device_check_driver(graph->device, given->peers[i], "a peer"));
    list[i].location.type = KILN_CU_MEM_LOCATION_TYPE_DEVICE;
    list[i].location.id = given->peers[i]->handle;
    list[i].flags = KILN_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  to->access = list;
  to->access_count = given->peer_count;
  return kiln_ok();
}

// ---- Lists ----

static kiln_status_t work_take_list(kilni_graph_work_t* work,
                                    const kiln_graph_t* graph, const void* list,
                                    uint64_t count, size_t bytes) {
  if (list == NULL || count == 0 || count > KILNI_GRAPH_OPS) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "%s %s node of %llu operations; the limits are 1 and %d",
                   kilni_graph_kind_article(work->given->kind),
                   kilni_graph_kind_name(work->given->kind),
                   (unsigned long long)count, KILNI_GRAPH_OPS),
        "spread them over several nodes");
  }
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(graph->device->host->allocator,
                                               count, bytes, &work->allocated));
  work->allocated_bytes = count * bytes;
  return kiln_ok();
}

static kiln_status_t take_op(const kiln_graph_t* graph,
                             const kiln_graph_memory_op_t* op,
                             kiln_cu_mem_op_t* to) {
  static const unsigned int kWaits[] = {
      0, KILN_CU_STREAM_WAIT_VALUE_EQ, KILN_CU_STREAM_WAIT_VALUE_GEQ,
      KILN_CU_STREAM_WAIT_VALUE_AND, KILN_CU_STREAM_WAIT_VALUE_NOR};
  bool writes = op->kind == KILN_GRAPH_WRITE_VALUE;
  if (op->buffer == NULL || op->kind > KILN_GRAPH_WAIT_NOR ||
      (op->word_bytes != 4 && op->word_bytes != 8) ||
      op->offset % op->word_bytes != 0) {
    return work_bad(
        "a memory operation without a buffer, of an unknown kind, or of words "
        "that are not 4 or 8 bytes at an aligned offset",
        "set `buffer`, `kind`, `word_bytes` and `offset` accordingly");
  }
  KILNI_RETURN_IF_ERROR(work_check_buffer(
      graph, op->buffer, "the memory operation", op->offset, op->word_bytes));
  bool wide = op->word_bytes == 8;
  to->value.operation = writes ? (wide ? KILN_CU_STREAM_MEM_OP_WRITE_VALUE_64
                                       : KILN_CU_STREAM_MEM_OP_WRITE_VALUE_32)
                               : (wide ? KILN_CU_STREAM_MEM_OP_WAIT_VALUE_64
                                       : KILN_CU_STREAM_MEM_OP_WAIT_VALUE_32);
  to->value.address = op->buffer->address + op->offset;
  to->value.value = wide ? op->value : (uint32_t)op->value;
  to->value.flags = writes ? 0 : kWaits[op->kind];
  return kiln_ok();
}

static kiln_status_t take_ops(kilni_graph_work_t* work,
                              const kiln_graph_t* graph) {
  const kiln_graph_memory_ops_t* given = &work->given->as.memory_ops;
  KILNI_RETURN_IF_ERROR(work_take_list(work, graph, given->ops, given->count,
                                       sizeof(kiln_cu_mem_op_t)));
  kiln_cu_mem_op_t* list = work->allocated;
  for (uint64_t i = 0; i < given->count; i++) {
    KILNI_RETURN_IF_ERROR(take_op(graph, &given->ops[i], &list[i]));
  }
  work->to.ops.context = graph->device->context;
  work->to.ops.count = (unsigned int)given->count;
  work->to.ops.operations = list;
  work->to.ops.flags = 0;
  work->wanted.ops = given;
  return kiln_ok();
}

// Handles, followed by the new setting of each.
static kiln_status_t take_semaphores(kilni_graph_work_t* work,
                                     const kiln_graph_t* graph) {
  const kiln_graph_semaphores_t* given = &work->given->as.semaphores;
  bool signals = work->given->kind == KILN_GRAPH_SIGNAL_SEMAPHORES;
  size_t bytes = signals ? sizeof(kiln_cu_semaphore_signal_t)
                         : sizeof(kiln_cu_semaphore_wait_t);
  KILNI_RETURN_IF_ERROR(work_take_list(work, graph, given->list, given->count,
                                       bytes + sizeof(kiln_cu_semaphore_t)));
  kiln_cu_semaphore_t* handles = work->allocated;
  char* params = (char*)(handles + given->count);
  for (uint64_t i = 0; i < given->count; i++) {
    if (given->list[i].handle == NULL) {
      return work_bad("a semaphore is NULL", "give the driver's handle");
    }
    handles[i] = given->list[i].handle;
    unsigned long long value = given->list[i].value;
    memcpy(params + i * bytes, &value, sizeof(value));
  }
  work->wanted.owner = given->owner;
  if (signals) {
    work->to.signal.semaphores = handles;
    work->to.signal.params = (void*)params;
    work->to.signal.count = (unsigned int)given->count;
  } else {
    work->to.wait.semaphores = handles;
    work->to.wait.params = (void*)params;
    work->to.wait.count = (unsigned int)given->count;
  }
  return kiln_ok();
}

// ---- All ----

static kiln_status_t work_take(kilni_graph_work_t* work, kiln_graph_t* graph) {
  switch (work->given->kind) {
    case KILN_GRAPH_KERNEL:
      if (work->given->as.launch == NULL) {
        return work_bad("a kernel node without a launch",
                        "prepare one with kiln_launch_create");
      }
      work->wanted.launch = work->given->as.launch;
      return kilni_graph_work_kernel(graph, work->given->as.launch,
                                     &work->to.kernel);
    case KILN_GRAPH_COPY:
      return work_take_copy(work, graph);
    case KILN_GRAPH_FILL:
      return take_fill(work, graph);
    case KILN_GRAPH_HOST:
      return work_take_host(work);
    case KILN_GRAPH_CHILD:
      return work_take_child(work, graph);
    case KILN_GRAPH_EMPTY:
    case KILN_GRAPH_CONDITIONAL:
      return kiln_ok();
    case KILN_GRAPH_WAIT:
    case KILN_GRAPH_RECORD:
      return work_take_event(work, graph);
    case KILN_GRAPH_SIGNAL_SEMAPHORES:
    case KILN_GRAPH_WAIT_SEMAPHORES:
      return take_semaphores(work, graph);
    case KILN_GRAPH_ALLOCATE:
      return take_allocation(work, graph);
    case KILN_GRAPH_FREE:
      work->to.address = work->given->as.address;
      if (work->to.address != 0) return kiln_ok();
      return work_bad("a free of address 0",
                      "give kiln_graph_node_address of an ALLOCATE node");
    case KILN_GRAPH_MEMORY_OPS:
      return take_ops(work, graph);
    default:
      return work_bad("work of an unknown kind",
                      "make work with the kiln_graph_work_... functions");
  }
}

kiln_status_t kilni_graph_work_init(kilni_graph_work_t* work,
                                    kiln_graph_t* graph,
                                    const kiln_graph_work_t* given) {
  work->given = given;
  memset(&work->wanted, 0, sizeof(work->wanted));
  work->allocated = NULL;
  work->allocated_bytes = 0;
  KILNI_CHECK_RESERVED(given->reserved, kiln_graph_work_t);
  return work_take(work, graph);
}

void kilni_graph_work_deinit(kilni_graph_work_t* work,
                             const kiln_graph_t* graph) {
  kilni_base_free(graph->device->host->allocator, work->allocated,
                  work->allocated_bytes);
}

kiln_status_t kilni_graph_work_wrong_kind(const kiln_graph_node_t* node,
                                          uint32_t kind) {
  char text[KILNI_NODE_TEXT];
  const char* is = kilni_graph_kind_name(node->kind);
  if (node->kind != kind) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "the %s node \"%s\" cannot become %s %s node", is,
                   kilni_graph_node_says(node, text),
                   kilni_graph_kind_article(kind), kilni_graph_kind_name(kind)),
        "give it work of its own kind, or remove it and add another");
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "the work of the %s node \"%s\" cannot be changed", is,
                 kilni_graph_node_says(node, text)),
      "remove it and add another");
}
