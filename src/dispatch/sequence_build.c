// SPDX-License-Identifier: Apache-2.0
//
// dispatch: units of a layout become nodes of a graph.
#include "base/alloc.h"
#include "base/status_make.h"
#include "dispatch/sequence_build.h"

#include <stdio.h>
#include <string.h>

// ---- Work ----

// A fill with zeroes. `*out_buffer`, if not NULL, is released when the work
// was given to a node.
static kiln_status_t clear_work(const kiln_prepared_t* prepared, uint32_t index,
                                kiln_buffer_t** out_buffer,
                                kiln_graph_work_t* out_work) {
  const kilni_dispatch_clear_t* clear = &prepared->clears[index];
  kiln_buffer_t* buffer = prepared->buffers[clear->index];
  *out_buffer = NULL;
  if (buffer == NULL) {
    KILNI_RETURN_IF_ERROR(kiln_buffer_adopt(prepared->dispatcher->device,
                                            clear->address, clear->bytes, NULL,
                                            out_buffer));
    buffer = *out_buffer;
  }
  uint64_t offset = clear->address - kiln_buffer_address(buffer);
  uint32_t size = (clear->address | clear->bytes) % 4 == 0 ? 4 : 1;
  *out_work =
      kiln_graph_work_fill(buffer, offset, clear->bytes / size, 0, size);
  return kiln_ok();
}

static kiln_graph_work_t step_work(const kilni_dispatch_instance_t* instance,
                                   const kilni_dispatch_unit_t* unit) {
  if (unit->step == KILNI_NO_STEP || unit->idle != 0) {
    return kiln_graph_work_empty();
  }
  const kilni_dispatch_step_t* step = &instance->sequence->steps[unit->step];
  switch (step->kind) {
    case KILN_STEP_DISPATCH:
      return kiln_graph_work_launch(instance->prepared[unit->step]->launch);
    case KILN_STEP_FILL:
      return kiln_graph_work_fill(step->to.buffer, step->to.offset,
                                  step->to.bytes / step->value_bytes,
                                  step->value, step->value_bytes);
    case KILN_STEP_UPLOAD:
      return kiln_graph_work_move(
          kiln_graph_place_buffer(step->to.buffer, step->to.offset),
          step->pinned != NULL ? kiln_graph_place_buffer(step->pinned, 0)
                               : kiln_graph_place_host_read(step->in),
          step->to.bytes);
    case KILN_STEP_DOWNLOAD:
      return kiln_graph_work_move(
          kiln_graph_place_host(step->out),
          kiln_graph_place_buffer(step->from.buffer, step->from.offset),
          step->from.bytes);
    default:
      return kiln_graph_work_move(
          kiln_graph_place_buffer(step->to.buffer, step->to.offset),
          kiln_graph_place_buffer(step->from.buffer, step->from.offset),
          step->to.bytes);
  }
}

// ---- Nodes ----

static kiln_status_t sequence_build_name_node(kiln_graph_node_t* node,
                                              const char* name) {
  char shortened[256];  // as long as a node's name may be
  (void)snprintf(shortened, sizeof(shortened), "%s", name);
  return kiln_graph_node_set_name(node, shortened);
}

static kiln_status_t sequence_build_add_node(kilni_dispatch_build_t* build,
                                             kiln_graph_t* graph,
                                             kiln_graph_node_t* const* after,
                                             uint32_t after_count,
                                             const kiln_graph_work_t* work,
                                             const char* name,
                                             kiln_graph_node_t** out_node) {
  KILNI_RETURN_IF_ERROR(
      kiln_graph_add(graph, after, after_count, work, out_node));
  build->nodes++;
  return name == NULL ? kiln_ok() : sequence_build_name_node(*out_node, name);
}

static kiln_status_t build_unit(kilni_dispatch_build_t* build,
                                const kilni_dispatch_unit_t* unit,
                                kiln_graph_t* graph,
                                kiln_graph_node_t* const* after,
                                uint32_t after_count,
                                kiln_graph_node_t** nodes) {
  kilni_dispatch_instance_t* instance = build->instance;
  kiln_graph_node_t** own = nodes + unit->first_node;
  for (uint32_t i = 0; i < unit->clears; i++) {
    kiln_buffer_t* adopted = NULL;
    kiln_graph_work_t work;
    KILNI_RETURN_IF_ERROR(
        clear_work(instance->prepared[unit->step], i, &adopted, &work));
    kiln_status_t status = sequence_build_add_node(
        build, graph, after, after_count, &work, "clear", &own[i]);
    kiln_buffer_release(adopted);
    KILNI_RETURN_IF_ERROR(status);
  }
  if (unit->clears > 0) {
    after = own;
    after_count = unit->clears;
  }
  kiln_graph_node_t** out_node = &own[unit->clears];
  if (unit->step != KILNI_NO_STEP && instance->fixpoints[unit->step] != NULL) {
    KILNI_RETURN_IF_ERROR(
        kilni_dispatch_fixpoint_build(instance->fixpoints[unit->step], build,
                                      graph, after, after_count, out_node));
    return sequence_build_name_node(
        *out_node, kilni_dispatch_step_label(instance->sequence, unit->step));
  }
  kiln_graph_work_t work = step_work(instance, unit);
  const char* name =
      unit->step == KILNI_NO_STEP
          ? NULL
          : kilni_dispatch_step_label(instance->sequence, unit->step);
  return sequence_build_add_node(build, graph, after, after_count, &work, name,
                                 out_node);
}

// A step that may start before the preceding dispatch has ended, because it
// waits itself: for that one alone, and so for everything before that.
static bool is_early(const kilni_dispatch_build_t* build,
                     const kilni_dispatch_layout_t* layout,
                     const kilni_dispatch_unit_t* unit) {
  const kilni_dispatch_instance_t* instance = build->instance;
  if (!build->early || unit->step == KILNI_NO_STEP || unit->idle != 0 ||
      unit->clears != 0 || unit->after_count != 1) {
    return false;
  }
  const kiln_prepared_t* asked = instance->sequence->own.prepared[unit->step];
  if (asked == NULL || asked->options.overlap != KILN_SWITCH_ON) return false;
  const kilni_dispatch_unit_t* before =
      &layout->units[layout->after[unit->first_after]];
  return before->step != KILNI_NO_STEP && before->idle == 0 &&
         instance->prepared[before->step] != NULL;
}

static kiln_status_t build_early(kilni_dispatch_build_t* build,
                                 const kilni_dispatch_unit_t* unit,
                                 kiln_graph_t* graph, kiln_graph_node_t* before,
                                 kiln_graph_node_t** nodes) {
  KILNI_RETURN_IF_ERROR(build_unit(build, unit, graph, NULL, 0, nodes));
  kiln_graph_edge_t edge = kiln_graph_edge(before, nodes[unit->first_node]);
  edge.from_port = KILN_GRAPH_PORT_TRIGGER;
  edge.type = KILN_GRAPH_EDGE_PROGRAMMATIC;
  return kiln_graph_connect(graph, &edge, 1);
}

static uint32_t most_after(const kilni_dispatch_layout_t* layout) {
  uint32_t most = 1;
  for (uint32_t i = 0; i < layout->unit_count; i++) {
    if (layout->units[i].after_count > most) {
      most = layout->units[i].after_count;
    }
  }
  return most;
}

kiln_status_t kilni_dispatch_layout_build(kilni_dispatch_build_t* build,
                                          const kilni_dispatch_layout_t* layout,
                                          kiln_graph_t* graph,
                                          kiln_graph_node_t** nodes) {
  uint32_t most = most_after(layout);
  void* block = NULL;
  kiln_status_t status = kilni_base_alloc_array(
      build->allocator, most, sizeof(kiln_graph_node_t*), &block);
  kiln_graph_node_t** after = block;
  for (uint32_t i = 0; i < layout->unit_count && kiln_status_is_ok(status);
       i++) {
    const kilni_dispatch_unit_t* unit = &layout->units[i];
    for (uint32_t j = 0; j < unit->after_count; j++) {
      const kilni_dispatch_unit_t* other =
          &layout->units[layout->after[unit->first_after + j]];
      after[j] = nodes[other->first_node + other->clears];
    }
    status =
        is_early(build, layout, unit)
            ? build_early(build, unit, graph, after[0], nodes)
            : build_unit(build, unit, graph, after, unit->after_count, nodes);
    if (!kiln_status_is_ok(status) && unit->step != KILNI_NO_STEP) {
      char text[KILNI_STEP_TEXT];
      status = KILNI_ANNOTATE(status, "%s",
                              kilni_dispatch_step_text(
                                  build->instance->sequence, unit->step, text));
    }
  }
  kilni_base_free_array(build->allocator, after, most,
                        sizeof(kiln_graph_node_t*));
  return status;
}

kiln_status_t kilni_dispatch_unit_set(const kilni_dispatch_instance_t* instance,
                                      const kilni_dispatch_unit_t* unit,
                                      kiln_graph_exec_t* exec,
                                      kiln_graph_node_t* const* nodes) {
  kiln_graph_node_t* const* own = nodes + unit->first_node;
  for (uint32_t i = 0; i < unit->clears; i++) {
    kiln_buffer_t* adopted = NULL;
    kiln_graph_work_t work;
    KILNI_RETURN_IF_ERROR(
        clear_work(instance->prepared[unit->step], i, &adopted, &work));
    kiln_status_t status = kiln_graph_exec_set(exec, own[i], &work);
    kiln_buffer_release(adopted);
    KILNI_RETURN_IF_ERROR(status);
  }
  if (unit->idle != 0) return kiln_ok();
  kiln_graph_work_t work = step_work(instance, unit);
  return kiln_graph_exec_set(exec, own[unit->clears], &work);
}

// ---- Bodies of fixpoints ----

// Those that no other node waits for; more than `capacity` are joined.
static kiln_status_t find_ends(kilni_dispatch_build_t* build,
                               const kilni_dispatch_layout_t* layout,
                               kiln_graph_t* graph, kiln_graph_node_t** nodes,
                               kiln_graph_node_t** out_ends, uint32_t capacity,
                               uint32_t* out_count) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < layout->after_count; i++) {
    layout->units[layout->after[i]].idle |= 2;
  }
  // The nodes before `count` are not queried again.
  for (uint32_t i = 0; i < layout->unit_count; i++) {
    const kilni_dispatch_unit_t* unit = &layout->units[i];
    if ((unit->idle & 2) != 0) continue;
    nodes[count++] = nodes[unit->first_node + unit->clears];
  }
  if (count > capacity) {
    kiln_graph_work_t work = kiln_graph_work_empty();
    KILNI_RETURN_IF_ERROR(sequence_build_add_node(build, graph, nodes, count,
                                                  &work, NULL, &out_ends[0]));
    *out_count = 1;
    return kiln_ok();
  }
  memcpy(out_ends, nodes, count * sizeof(*nodes));
  *out_count = count;
  return kiln_ok();
}

kiln_status_t kilni_dispatch_steps_build(kilni_dispatch_build_t* build,
                                         kiln_graph_t* graph, uint32_t first,
                                         uint32_t behind,
                                         kiln_graph_node_t** out_ends,
                                         uint32_t capacity,
                                         uint32_t* out_count) {
  kilni_dispatch_layout_t layout;
  void* block = NULL;
  bool early = build->early;
  // What a fixpoint adds by itself may have passed the limit.
  uint32_t most = build->nodes < KILNI_SEQUENCE_NODES
                      ? KILNI_SEQUENCE_NODES - build->nodes
                      : 0;
  if (out_count != NULL) *out_count = 0;
  build->early = false;
  kiln_status_t status =
      kilni_dispatch_layout_init(&layout, build->instance, first, behind, most);
  if (kiln_status_is_ok(status)) {
    status = kilni_base_alloc_array(build->allocator, layout.node_count,
                                    sizeof(kiln_graph_node_t*), &block);
  }
  kiln_graph_node_t** nodes = block;
  if (kiln_status_is_ok(status)) {
    status = kilni_dispatch_layout_build(build, &layout, graph, nodes);
  }
  if (kiln_status_is_ok(status) && out_ends != NULL && out_count != NULL) {
    status =
        find_ends(build, &layout, graph, nodes, out_ends, capacity, out_count);
  }
  kilni_base_free_array(build->allocator, nodes, layout.node_count,
                        sizeof(kiln_graph_node_t*));
  kilni_dispatch_layout_deinit(&layout, build->allocator);
  build->early = early;
  return status;
}
