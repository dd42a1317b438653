// SPDX-License-Identifier: Apache-2.0
//
// dispatch: the steps of a sequence as units of a graph, and what each of them
// waits for.
#include "base/alloc.h"
#include "base/status_make.h"
#include "dispatch/sequence_layout.h"
#include "dispatch/sequence_order.h"

#include <string.h>

// What is needed while units are added. one-thread
typedef struct laying_t {
  kilni_dispatch_layout_t* layout;
  const kilni_dispatch_instance_t* instance;
  kiln_allocator_t allocator;
  uint32_t most;
  kilni_dispatch_order_t order;
  kilni_dispatch_access_t* accesses;
  size_t access_capacity;
  uint32_t access_count;
} laying_t;

// ---- What a step touches ----

static kiln_status_t sequence_layout_touch(laying_t* laying, uint64_t address,
                                           uint64_t bytes, bool writes) {
  void* block = laying->accesses;
  if (bytes == 0) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_base_grow(
      laying->allocator, (size_t)laying->access_count + 1,
      sizeof(kilni_dispatch_access_t), &laying->access_capacity, &block));
  laying->accesses = block;
  kilni_dispatch_access_t* access = &laying->accesses[laying->access_count++];
  access->address = address;
  access->bytes = bytes;
  access->writes = writes;
  return kiln_ok();
}

static kiln_status_t touch_binding(laying_t* laying,
                                   const kiln_prepared_t* prepared,
                                   uint32_t index) {
  const kiln_binding_t* binding = &prepared->bindings[index];
  const kilni_dispatch_place_t* place = &prepared->pipeline->places[index];
  const kiln_buffer_t* buffer = prepared->buffers[index];
  uint32_t role = place->info.role;
  bool writes = role == KILN_PROGRAM_ROLE_OUT ||
                role == KILN_PROGRAM_ROLE_INOUT ||
                role == KILN_PROGRAM_ROLE_RESIDENT;
  if (!place->is_buffer) return kiln_ok();
  if (binding->kind == KILN_BINDING_POINTER) {
    return sequence_layout_touch(laying, binding->value.address, binding->bytes,
                                 writes);
  }
  if (buffer == NULL) return kiln_ok();
  if (binding->kind == KILN_BINDING_STATIC) {
    return sequence_layout_touch(laying, kiln_buffer_address(buffer),
                                 kiln_buffer_size(buffer), writes);
  }
  uint64_t bytes = binding->bytes != 0
                       ? binding->bytes
                       : kiln_buffer_size(buffer) - binding->offset;
  return sequence_layout_touch(
      laying, kiln_buffer_address(buffer) + binding->offset, bytes, writes);
}

static kiln_status_t touch_step(laying_t* laying, uint32_t index) {
  const kilni_dispatch_step_t* step = &laying->instance->sequence->steps[index];
  const kiln_prepared_t* prepared = laying->instance->prepared[index];
  if (prepared != NULL) {
    for (uint32_t i = 0; i < prepared->count; i++) {
      KILNI_RETURN_IF_ERROR(touch_binding(laying, prepared, i));
    }
    if (prepared->grid == NULL) return kiln_ok();
    // Its blocks count there: not two of its launches at once.
    return sequence_layout_touch(laying, kiln_buffer_address(prepared->grid),
                                 KILNI_GRID_BYTES, true);
  }
  KILNI_RETURN_IF_ERROR(
      sequence_layout_touch(laying, step->to.address, step->to.bytes, true));
  KILNI_RETURN_IF_ERROR(sequence_layout_touch(laying, step->from.address,
                                              step->from.bytes, false));
  if (step->kind == KILN_STEP_UPLOAD && step->pinned == NULL) {
    return sequence_layout_touch(laying, (uintptr_t)step->in, step->to.bytes,
                                 false);
  }
  if (step->kind != KILN_STEP_DOWNLOAD) return kiln_ok();
  return sequence_layout_touch(laying, (uintptr_t)step->out, step->from.bytes,
                               true);
}

// A loop or a fixpoint as one: all that is inside.
static kiln_status_t touch_all(laying_t* laying, uint32_t index) {
  uint32_t behind = index + 1 + laying->instance->sequence->steps[index].body;
  laying->access_count = 0;
  if (laying->instance->sequence->order == KILN_SEQUENCE_IN_LINE) {
    return sequence_layout_touch(laying, 0, UINT64_MAX, true);
  }
  for (uint32_t i = index; i < behind; i++) {
    KILNI_RETURN_IF_ERROR(touch_step(laying, i));
  }
  return kiln_ok();
}

// ---- Units ----

static kiln_status_t check_limit(const laying_t* laying, uint32_t more) {
  if (laying->layout->node_count + more <= laying->most) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED, "a replay of \"%s\" has more than %d nodes",
                 laying->instance->sequence->label, (int)KILNI_SEQUENCE_NODES),
      "let loops repeat less, and run the replay several times");
}

static kiln_status_t add_unit(laying_t* laying, uint32_t step,
                              const kilni_dispatch_access_t* accesses,
                              uint32_t count,
                              kilni_dispatch_unit_t** out_unit) {
  kilni_dispatch_layout_t* layout = laying->layout;
  void* block = layout->units;
  KILNI_RETURN_IF_ERROR(check_limit(laying, 1));
  KILNI_RETURN_IF_ERROR(kilni_base_grow(
      laying->allocator, (size_t)layout->unit_count + 1,
      sizeof(kilni_dispatch_unit_t), &layout->unit_capacity, &block));
  layout->units = block;
  KILNI_RETURN_IF_ERROR(
      kilni_dispatch_order_add(&laying->order, accesses, count));
  uint32_t after_count = laying->order.after_count;
  block = layout->after;
  KILNI_RETURN_IF_ERROR(kilni_base_grow(
      laying->allocator, (size_t)layout->after_count + after_count,
      sizeof(uint32_t), &layout->after_capacity, &block));
  layout->after = block;
  if (after_count > 0) {
    memcpy(layout->after + layout->after_count, laying->order.after,
           after_count * sizeof(uint32_t));
  }
  kilni_dispatch_unit_t* unit = &layout->units[layout->unit_count++];
  memset(unit, 0, sizeof(*unit));
  unit->step = step;
  unit->first_after = layout->after_count;
  unit->after_count = after_count;
  unit->first_node = layout->node_count++;
  layout->after_count += after_count;
  *out_unit = unit;
  return kiln_ok();
}

static kiln_status_t sequence_layout_add_step(laying_t* laying,
                                              uint32_t index) {
  const kilni_dispatch_step_t* step = &laying->instance->sequence->steps[index];
  const kiln_prepared_t* prepared = laying->instance->prepared[index];
  kilni_dispatch_unit_t* unit = NULL;
  if (kilni_dispatch_order_is_full(&laying->order)) {
    kilni_dispatch_access_t all = kilni_dispatch_access_all();
    KILNI_RETURN_IF_ERROR(add_unit(laying, KILNI_NO_STEP, &all, 1, &unit));
  }
  KILNI_RETURN_IF_ERROR(touch_all(laying, index));
  KILNI_RETURN_IF_ERROR(
      add_unit(laying, index, laying->accesses, laying->access_count, &unit));
  if (prepared == NULL) {
    unit->idle = step->kind != KILN_STEP_FIXPOINT && step->to.bytes == 0 &&
                 step->from.bytes == 0;
    return kiln_ok();
  }
  unit->idle = prepared->idle;
  unit->clears = prepared->clear_count;
  KILNI_RETURN_IF_ERROR(check_limit(laying, unit->clears));
  laying->layout->node_count += unit->clears;
  return kiln_ok();
}

static kiln_status_t lay(laying_t* laying, uint32_t first, uint32_t behind) {
  const kiln_sequence_t* sequence = laying->instance->sequence;
  for (uint32_t i = first; i < behind; i += 1 + sequence->steps[i].body) {
    const kilni_dispatch_step_t* step = &sequence->steps[i];
    if (step->kind != KILN_STEP_LOOP) {
      KILNI_RETURN_IF_ERROR(sequence_layout_add_step(laying, i));
      continue;
    }
    for (uint32_t round = 0; round < step->count; round++) {
      KILNI_RETURN_IF_ERROR(lay(laying, i + 1, i + 1 + step->body));
    }
  }
  return kiln_ok();
}

kiln_status_t kilni_dispatch_layout_init(
    kilni_dispatch_layout_t* layout, const kilni_dispatch_instance_t* instance,
    uint32_t first, uint32_t behind, uint32_t most) {
  laying_t laying;
  memset(layout, 0, sizeof(*layout));
  memset(&laying, 0, sizeof(laying));
  laying.layout = layout;
  laying.instance = instance;
  laying.allocator = instance->sequence->dispatcher->allocator;
  laying.most = most;
  kilni_dispatch_order_init(&laying.order, laying.allocator);
  kiln_status_t status = lay(&laying, first, behind);
  kilni_dispatch_order_deinit(&laying.order);
  kilni_base_free_array(laying.allocator, laying.accesses,
                        laying.access_capacity,
                        sizeof(kilni_dispatch_access_t));
  return status;
}

void kilni_dispatch_layout_deinit(kilni_dispatch_layout_t* layout,
                                  kiln_allocator_t allocator) {
  kilni_base_free_array(allocator, layout->units, layout->unit_capacity,
                        sizeof(kilni_dispatch_unit_t));
  kilni_base_free_array(allocator, layout->after, layout->after_capacity,
                        sizeof(uint32_t));
  memset(layout, 0, sizeof(*layout));
}

bool kilni_dispatch_layout_is_same(const kilni_dispatch_layout_t* a,
                                   const kilni_dispatch_layout_t* b) {
  return a->unit_count == b->unit_count && a->after_count == b->after_count &&
         (a->unit_count == 0 ||
          memcmp(a->units, b->units, a->unit_count * sizeof(*a->units)) == 0) &&
         (a->after_count == 0 ||
          memcmp(a->after, b->after, a->after_count * sizeof(*a->after)) == 0);
}
