// SPDX-License-Identifier: Apache-2.0
//
// graph: traces: a graph with a record before and after each of its nodes.
#include "base/status_make.h"
#include "graph/graph_picture.h"
#include "graph/graph_trace.h"

#include <string.h>

#include "base/alloc.h"
#include "base/sort.h"
#include "base/options.h"
#include "kiln/graph.h"
#include "kiln/picture.h"

// ---- Records ----

static kiln_status_t trace_make_event(kiln_device_t* device,
                                      kiln_event_t** out) {
  kiln_event_options_t timing = kiln_event_options_default();
  timing.timing = KILN_SWITCH_ON;
  return kiln_event_create(device, &timing, out);
}

// A node that records a new event after `count` nodes.
static kiln_status_t add_record(kiln_graph_t* graph,
                                kiln_graph_node_t* const* after, uint32_t count,
                                kiln_event_t** out_event,
                                kiln_graph_node_t** out_node) {
  KILNI_RETURN_IF_ERROR(trace_make_event(graph->device, out_event));
  kiln_graph_work_t work = kiln_graph_work_record(*out_event);
  return kiln_graph_add(graph, after, count, &work, out_node);
}

// Between what the node waits for and the node.
static kiln_status_t add_start(kiln_graph_t* graph, kiln_graph_node_t* node,
                               kiln_graph_node_t* const* after, uint32_t count,
                               kilni_graph_slice_t* slice) {
  kiln_graph_node_t* record = NULL;
  KILNI_RETURN_IF_ERROR(
      add_record(graph, after, count, &slice->start, &record));
  kiln_graph_edge_t edge = kiln_graph_edge(record, node);
  kiln_status_t status = kiln_graph_connect(graph, &edge, 1);
  if (!kiln_status_is_ok(status)) {
    kiln_status_free(kiln_graph_node_remove(record));
    return status;
  }
  slice->start_record = record;
  return kiln_ok();
}

// ---- Slices ----

static kiln_status_t trace_add_name(kiln_graph_trace_t* trace,
                                    kilni_graph_slice_t* slice,
                                    const kiln_graph_node_t* node,
                                    const char* above, uint32_t number) {
  kilni_base_str_t name;
  kilni_base_str_init(&name, trace->allocator, KILNI_TRACE_MAX_NAME);
  if (above != NULL) {
    kilni_base_str_add_cstr(&name, above);
    kilni_base_str_add_char(&name, '/');
  }
  kilni_graph_picture_add_name(&name, node, number);
  return kilni_base_str_take(&name, &slice->name);
}

static kiln_status_t trace_add_kernel(kiln_graph_trace_t* trace,
                                      kilni_graph_slice_t* slice,
                                      kiln_graph_node_t* node) {
  if (slice->kind != KILN_GRAPH_KERNEL) return kiln_ok();
  kiln_graph_node_info_t info;
  KILNI_RETURN_IF_ERROR(kiln_graph_node_describe(node, &info));
  return kilni_base_strdup(trace->allocator, kilni_base_sv(info.kernel),
                           &slice->kernel);
}

static kiln_status_t trace_grow(kiln_graph_trace_t* trace) {
  if (trace->count < trace->space) return kiln_ok();
  uint32_t space = trace->space == 0 ? 64 : trace->space * 2;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(trace->allocator, space,
                                               sizeof(*trace->slices), &block));
  if (trace->count != 0) {
    memcpy(block, trace->slices, trace->count * sizeof(*trace->slices));
  }
  kilni_base_free_array(trace->allocator, trace->slices, trace->space,
                        sizeof(*trace->slices));
  trace->slices = block;
  trace->space = space;
  return kiln_ok();
}

static kiln_status_t trace_take_graph(kiln_graph_trace_t* trace,
                                      kiln_graph_t* graph,
                                      const uint32_t* above, uint32_t depth);

static kiln_status_t trace_take_child(kiln_graph_trace_t* trace,
                                      kiln_graph_node_t* node, uint32_t slice,
                                      uint32_t depth) {
  if (depth + 1 >= KILNI_PICTURE_MAX_DEPTH) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(LIMIT_EXCEEDED, "graphs nested more than %d deep",
                   KILNI_PICTURE_MAX_DEPTH),
        "trace one of the inner graphs by itself (kiln_graph_clone)");
  }
  kiln_graph_t* inner = NULL;
  KILNI_RETURN_IF_ERROR(kiln_graph_node_inner(node, 0, &inner));
  kiln_status_t status = trace_take_graph(trace, inner, &slice, depth + 1);
  kiln_graph_release(inner);
  return status;
}

// A graph whose nodes get their records. one-thread
typedef struct taking_t {
  kiln_graph_trace_t* trace;
  kiln_graph_t* graph;
  const kilni_graph_picture_graph_t* all;
  uint32_t* first;             // edges that end at node n: first[n] to
  uint32_t* list;              // first[n + 1] of `list`
  uint32_t* slices;            // of each node, or KILNI_TRACE_NONE
  kiln_graph_node_t** before;  // as many as there are edges
} taking_t;

// A slice with the record after the node.
static kiln_status_t take_node(const taking_t* t, uint32_t number,
                               const uint32_t* above, uint32_t depth) {
  kiln_graph_trace_t* trace = t->trace;
  kiln_graph_node_t* node = t->all->nodes[number];
  uint32_t kind = kiln_graph_node_kind(node);
  t->slices[number] = KILNI_TRACE_NONE;
  if (kind == KILN_GRAPH_EMPTY) return kiln_ok();
  KILNI_RETURN_IF_ERROR(trace_grow(trace));
  t->slices[number] = trace->count++;
  kilni_graph_slice_t* slice = &trace->slices[t->slices[number]];
  memset(slice, 0, sizeof(*slice));
  slice->kind = kind;
  slice->depth = depth;
  const char* path = above == NULL ? NULL : trace->slices[*above].name;
  KILNI_RETURN_IF_ERROR(trace_add_name(trace, slice, node, path, number));
  KILNI_RETURN_IF_ERROR(trace_add_kernel(trace, slice, node));
  return add_record(t->graph, &node, 1, &slice->end, &slice->end_record);
}

// What a node waits for, as seen after their records; false where it does not
// wait for their ends.
static bool find_before(const taking_t* t, uint32_t node, uint32_t* out_count) {
  uint32_t count = 0;
  for (uint32_t i = t->first[node]; i < t->first[node + 1]; i++) {
    const kilni_graph_picture_edge_t* edge = &t->all->edges[t->list[i]];
    if (edge->from_port != 0 || edge->to_port != 0 || edge->type != 0) {
      return false;
    }
    uint32_t slice = t->slices[edge->from];
    t->before[count++] = slice == KILNI_TRACE_NONE
                             ? t->all->nodes[edge->from]
                             : t->trace->slices[slice].end_record;
  }
  *out_count = count;
  return true;
}

// The record before the node, and then what is inside of it.
static kiln_status_t finish_node(const taking_t* t, uint32_t number,
                                 uint32_t depth) {
  uint32_t slice = t->slices[number];
  uint32_t count = 0;
  if (slice == KILNI_TRACE_NONE) return kiln_ok();
  kiln_graph_node_t* node = t->all->nodes[number];
  if (find_before(t, number, &count)) {
    KILNI_RETURN_IF_ERROR(
        add_start(t->graph, node, t->before, count, &t->trace->slices[slice]));
  }
  return kiln_graph_node_kind(node) == KILN_GRAPH_CHILD
             ? trace_take_child(t->trace, node, slice, depth)
             : NULL;
}

static void sort_by_end(const taking_t* t) {
  const kilni_graph_picture_graph_t* all = t->all;
  uint32_t* first = t->first;
  for (uint32_t i = 0; i < all->edge_count; i++) first[all->edges[i].to + 1]++;
  for (uint32_t i = 0; i < all->node_count; i++) first[i + 1] += first[i];
  for (uint32_t i = all->edge_count; i-- > 0;) {
    t->list[--first[all->edges[i].to + 1]] = i;
  }
  // Each start is now one place too late.
  for (uint32_t i = 0; i < all->node_count; i++) first[i] = first[i + 1];
  first[all->node_count] = all->edge_count;
}

static kiln_status_t take_nodes(const taking_t* t, const uint32_t* above,
                                uint32_t depth) {
  sort_by_end(t);
  for (uint32_t i = 0; i < t->all->node_count; i++) {
    KILNI_RETURN_IF_ERROR(take_node(t, i, above, depth));
  }
  for (uint32_t i = 0; i < t->all->node_count; i++) {
    KILNI_RETURN_IF_ERROR(finish_node(t, i, depth));
  }
  return kiln_ok();
}

static kiln_status_t trace_take_all(kiln_graph_trace_t* trace,
                                    kiln_graph_t* graph,
                                    const kilni_graph_picture_graph_t* all,
                                    const uint32_t* above, uint32_t depth) {
  size_t words = 2 * (size_t)all->node_count + 2 + all->edge_count;
  void* numbers = NULL;
  void* nodes = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(trace->allocator, words,
                                               sizeof(uint32_t), &numbers));
  kiln_status_t status =
      kilni_base_alloc_array(trace->allocator, (size_t)all->edge_count + 1,
                             sizeof(kiln_graph_node_t*), &nodes);
  if (kiln_status_is_ok(status)) {
    uint32_t* first = numbers;
    taking_t taking = {trace,
                       graph,
                       all,
                       first,
                       first + all->node_count + 1,
                       first + all->node_count + 1 + all->edge_count,
                       nodes};
    status = take_nodes(&taking, above, depth);
    kilni_base_free_array(trace->allocator, nodes, (size_t)all->edge_count + 1,
                          sizeof(kiln_graph_node_t*));
  }
  kilni_base_free_array(trace->allocator, numbers, words, sizeof(uint32_t));
  return status;
}

static kiln_status_t trace_take_graph(kiln_graph_trace_t* trace,
                                      kiln_graph_t* graph,
                                      const uint32_t* above, uint32_t depth) {
  kilni_graph_picture_graph_t all;
  kiln_status_t status = kilni_graph_picture_read(graph, &all);
  if (kiln_status_is_ok(status)) {
    status = trace_take_all(trace, graph, &all, above, depth);
  }
  kilni_graph_picture_deinit(&all);
  return status;
}

// ---- Making and ending ----

// A graph that was to have records and got only some of them is as it was.
static void trace_take_back(kiln_graph_trace_t* trace) {
  for (uint32_t i = trace->count; i-- > 0;) {
    kilni_graph_slice_t* slice = &trace->slices[i];
    if (slice->end_record != NULL) {
      kiln_status_free(kiln_graph_node_remove(slice->end_record));
    }
    if (slice->start_record != NULL) {
      kiln_status_free(kiln_graph_node_remove(slice->start_record));
    }
  }
}

static void trace_end(kiln_graph_trace_t* trace) {
  kiln_allocator_t allocator = trace->allocator;
  for (uint32_t i = 0; i < trace->count; i++) {
    kiln_event_release(trace->slices[i].start);
    kiln_event_release(trace->slices[i].end);
    kilni_base_strfree(allocator, trace->slices[i].name);
    kilni_base_strfree(allocator, trace->slices[i].kernel);
  }
  kilni_base_free_array(allocator, trace->slices, trace->space,
                        sizeof(*trace->slices));
  kiln_event_release(trace->begin);
  kiln_event_release(trace->done);
  kiln_graph_exec_release(trace->exec);
  kiln_device_t* device = trace->device;
  kilni_base_free(allocator, trace, sizeof(*trace));
  kiln_device_release(device);
}

static kiln_status_t trace_fill(kiln_graph_trace_t* trace, kiln_graph_t* graph,
                                const kiln_graph_trace_options_t* given) {
  kiln_graph_exec_options_t options = kiln_graph_exec_options_default();
  options.free_on_launch = given->free_on_launch;
  KILNI_RETURN_IF_ERROR(trace_make_event(trace->device, &trace->begin));
  KILNI_RETURN_IF_ERROR(trace_make_event(trace->device, &trace->done));
  kiln_status_t status = trace_take_graph(trace, graph, NULL, 0);
  if (kiln_status_is_ok(status)) {
    status = kiln_graph_exec_create(graph, &options, &trace->exec);
  }
  if (!kiln_status_is_ok(status)) trace_take_back(trace);
  return status;
}

static kiln_status_t trace_check_source(const kiln_graph_t* graph) {
  KILNI_RETURN_IF_ERROR(kilni_graph_check(graph));
  if (graph->inside == NULL) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "a graph inside a node runs as a part of that node"),
      "trace the graph around it, or a clone (kiln_graph_clone)");
}

kiln_status_t kiln_graph_trace_create(kiln_graph_t* graph,
                                      const kiln_graph_trace_options_t* options,
                                      kiln_graph_trace_t** out_trace) {
  KILNI_CHECK_ARGUMENT(out_trace != NULL, "out_trace");
  *out_trace = NULL;
  KILNI_CHECK_ARGUMENT(graph != NULL, "graph");
  KILNI_RETURN_IF_ERROR(trace_check_source(graph));
  kiln_graph_trace_options_t given;
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_graph_trace_options_t, &given));
  KILNI_CHECK_ARGUMENT(given.in_place <= KILN_SWITCH_ON, "options.in_place");
  KILNI_CHECK_ARGUMENT(given.free_on_launch <= KILN_SWITCH_ON,
                       "options.free_on_launch");
  void* block = NULL;
  kiln_allocator_t allocator = graph->device->host->allocator;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kiln_graph_trace_t), &block));
  kiln_graph_trace_t* trace = block;
  trace->allocator = allocator;
  trace->device = graph->device;
  kiln_device_retain(trace->device);
  atomic_init(&trace->references, 1);
  kiln_graph_t* source = graph;
  kiln_graph_retain(graph);
  kiln_status_t status = kiln_ok();
  if (given.in_place != KILN_SWITCH_ON) {
    kiln_graph_release(graph);
    status = kiln_graph_clone(graph, &source);
  }
  if (kiln_status_is_ok(status)) status = trace_fill(trace, source, &given);
  kiln_graph_release(source);
  if (!kiln_status_is_ok(status)) {
    trace_end(trace);
    return status;
  }
  *out_trace = trace;
  return kiln_ok();
}

void kiln_graph_trace_retain(kiln_graph_trace_t* trace) {
  if (trace == NULL) return;
  (void)atomic_fetch_add_explicit(&trace->references, 1, memory_order_relaxed);
}

void kiln_graph_trace_release(kiln_graph_trace_t* trace) {
  if (trace == NULL || kilni_device_is_forked(trace->device)) return;
  if (atomic_fetch_sub_explicit(&trace->references, 1, memory_order_acq_rel) ==
      1) {
    trace_end(trace);
  }
}

// ---- Running and reading ----

kiln_status_t kiln_graph_trace_launch(kiln_graph_trace_t* trace,
                                      kiln_stream_t* stream) {
  KILNI_CHECK_ARGUMENT(trace != NULL, "trace");
  KILNI_CHECK_ARGUMENT(stream != NULL, "stream");
  // A failure halfway leaves the start of this run with the nodes of the
  // previous one.
  trace->is_launched = false;
  KILNI_RETURN_IF_ERROR(kiln_event_record(trace->begin, stream));
  KILNI_RETURN_IF_ERROR(kiln_graph_exec_launch(trace->exec, stream));
  KILNI_RETURN_IF_ERROR(kiln_event_record(trace->done, stream));
  trace->is_launched = true;
  return kiln_ok();
}

// Of a node without a record before it only the end is known.
static kiln_status_t read_slice(const kiln_graph_trace_t* trace,
                                kilni_graph_slice_t* slice) {
  bool known = slice->start != NULL;
  KILNI_RETURN_IF_ERROR(kiln_event_elapsed(
      trace->begin, known ? slice->start : slice->end, &slice->start_ns));
  uint64_t elapsed = 0;
  // Not the difference of two times: drivers give them as floats.
  if (known) {
    KILNI_RETURN_IF_ERROR(
        kiln_event_elapsed(slice->start, slice->end, &elapsed));
  }
  slice->end_ns = slice->start_ns + elapsed;
  return kiln_ok();
}

static bool starts_before(const void* left, const void* right) {
  const kilni_graph_slice_t* a = *(kilni_graph_slice_t* const*)left;
  const kilni_graph_slice_t* b = *(kilni_graph_slice_t* const*)right;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns;
  return a < b;
}

// Each slice in turn goes on the first lane that is free when it begins, which
// needs as few lanes as there are slices at once.
static kiln_status_t set_lanes(kiln_graph_trace_t* trace) {
  size_t count = trace->count;
  if (count == 0) return kiln_ok();
  void* block = NULL;
  void* free_at_block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      trace->allocator, count, sizeof(kilni_graph_slice_t*), &block));
  kiln_status_t status = kilni_base_alloc_array(
      trace->allocator, count, sizeof(uint64_t), &free_at_block);
  if (kiln_status_is_ok(status)) {
    kilni_graph_slice_t** order = block;
    uint64_t* free_at = free_at_block;
    for (size_t i = 0; i < count; i++) order[i] = &trace->slices[i];
    kilni_base_sort(order, count, sizeof(order[0]), starts_before);
    trace->lanes = 0;
    for (size_t i = 0; i < count; i++) {
      uint32_t lane = 0;
      while (lane < trace->lanes && free_at[lane] > order[i]->start_ns) lane++;
      if (lane == trace->lanes) trace->lanes++;
      order[i]->lane = lane;
      free_at[lane] = order[i]->end_ns;
    }
    kilni_base_free_array(trace->allocator, free_at, count, sizeof(uint64_t));
  }
  kilni_base_free_array(trace->allocator, block, count,
                        sizeof(kilni_graph_slice_t*));
  return status;
}

static kiln_status_t trace_read_all(kiln_graph_trace_t* trace) {
  KILNI_RETURN_IF_ERROR(
      kiln_event_elapsed(trace->begin, trace->done, &trace->elapsed_ns));
  for (uint32_t i = 0; i < trace->count; i++) {
    KILNI_RETURN_IF_ERROR(read_slice(trace, &trace->slices[i]));
  }
  return set_lanes(trace);
}

kiln_status_t kiln_graph_trace_read(kiln_graph_trace_t* trace) {
  KILNI_CHECK_ARGUMENT(trace != NULL, "trace");
  trace->is_read = false;
  trace->elapsed_ns = 0;
  if (!trace->is_launched) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE, "no run of the trace was launched"),
        "call kiln_graph_trace_launch and wait for the stream");
  }
  kiln_status_t status = trace_read_all(trace);
  trace->is_read = kiln_status_is_ok(status);
  return status;
}

uint32_t kiln_graph_trace_count(const kiln_graph_trace_t* trace) {
  return trace == NULL ? 0 : trace->count;
}

uint64_t kiln_graph_trace_elapsed(const kiln_graph_trace_t* trace) {
  return trace != NULL && trace->is_read ? trace->elapsed_ns : 0;
}

kiln_status_t kiln_graph_trace_slice(const kiln_graph_trace_t* trace,
                                     uint32_t index,
                                     kiln_graph_slice_t* out_slice) {
  KILNI_CHECK_ARGUMENT(out_slice != NULL, "out_slice");
  memset(out_slice, 0, sizeof(*out_slice));
  out_slice->name = "";
  out_slice->kernel = "";
  KILNI_CHECK_ARGUMENT(trace != NULL, "trace");
  KILNI_CHECK_ARGUMENT(index < trace->count, "index");
  const kilni_graph_slice_t* slice = &trace->slices[index];
  out_slice->name = slice->name;
  if (slice->kernel != NULL) out_slice->kernel = slice->kernel;
  out_slice->kind = slice->kind;
  out_slice->depth = slice->depth;
  out_slice->is_start_known = slice->start != NULL;
  if (!trace->is_read) return kiln_ok();
  out_slice->lane = slice->lane;
  out_slice->start_ns = slice->start_ns;
  out_slice->elapsed_ns = slice->end_ns - slice->start_ns;
  return kiln_ok();
}
