// SPDX-License-Identifier: Apache-2.0
//
// dispatch: the plan of what is ordinary, in one pass: no options, device
// memory of as many elements as the pipeline specifies, nothing to clear.
//
// Declines everything else, and every error: kilni_dispatch_plan_make then
// starts again and reports the error. Where both accept, they make the same
// plan.
#include <string.h>

#include "dispatch/pipeline_inside.h"

enum { QUICK_PARAMETERS = 16 };

// ---- Once for a pipeline ----

static bool pipeline_quick_is_written(uint32_t role) {
  return role == KILN_PROGRAM_ROLE_OUT || role == KILN_PROGRAM_ROLE_INOUT ||
         role == KILN_PROGRAM_ROLE_RESIDENT;
}

static bool is_one(const kiln_interface_number_t* number) {
  return number->from == KILN_INTERFACE_BY_CALLER ||
         (number->from == KILN_INTERFACE_BY_VALUE && number->value <= 1);
}

void kilni_dispatch_quick_see(kiln_pipeline_t* pipeline) {
  const kiln_pipeline_info_t* info = &pipeline->info;
  kilni_dispatch_quick_t* quick = &pipeline->quick;
  quick->possible = info->parameter_count <= QUICK_PARAMETERS &&
                    info->work_dimensions != 0 && info->cooperative == 0 &&
                    info->grid_barrier == 0 && !pipeline->kernel->in_clusters &&
                    (pipeline->program == NULL || pipeline->simple);
  for (uint32_t i = 0; i < 3; i++) {
    uint64_t per_block = (uint64_t)info->block[i] * info->work_per_thread[i];
    if (per_block == 0 || per_block > UINT32_MAX) quick->possible = false;
    quick->per_block[i] = (uint32_t)per_block;
    if (!is_one(&pipeline->work[i])) quick->axes = i + 1;
  }
  for (uint32_t i = 0; i < info->parameter_count; i++) {
    kilni_dispatch_place_t* place = &pipeline->places[i];
    uint32_t bytes = place->info.type_bytes;
    place->mask = bytes < 8 ? (UINT64_C(1) << (8 * bytes)) - 1 : UINT64_MAX;
    if (!place->is_buffer) continue;
    place->written = pipeline_quick_is_written(place->info.role);
    if (place->shift == KILNI_NO_SHIFT ||
        (place->info.role == KILN_PROGRAM_ROLE_OUT &&
         place->info.writes_all == 0)) {
      quick->possible = false;
    }
  }
}

// ---- For each dispatch ----

static bool find_memory(kiln_pipeline_t* pipeline,
                        const kiln_binding_t* binding,
                        kilni_dispatch_resident_view_t* view) {
  if (binding->kind == KILN_BINDING_RESIDENT) {
    return kilni_dispatch_resident_find(&pipeline->dispatcher->residents,
                                        binding->value.resident, view);
  }
  const kiln_buffer_t* buffer = binding->value.buffer;
  if (binding->kind != KILN_BINDING_BUFFER || buffer == NULL ||
      buffer->device != pipeline->dispatcher->device) {
    return false;
  }
  view->address = buffer->address;
  view->bytes = buffer->size;
  return true;
}

static bool bind_memory(kiln_pipeline_t* pipeline,
                        const kilni_dispatch_place_t* place,
                        const kiln_binding_t* binding,
                        kilni_dispatch_bound_t* bound) {
  kilni_dispatch_resident_view_t view;
  if (!find_memory(pipeline, binding, &view)) return false;
  uint64_t offset = binding->offset;
  uint64_t bytes = binding->bytes;
  if (offset > view.bytes || bytes > view.bytes - offset) return false;
  bound->open = bytes == 0;
  if (bytes == 0) bytes = view.bytes - offset;
  bound->address = view.address + offset;
  bound->value = bytes >> place->shift;
  bound->bytes = bound->value << place->shift;
  return (bound->address & (place->align - 1)) == 0 &&
         (bound->bytes == bytes ||
          (bound->open && place->info.is_counted != 0));
}

static bool pipeline_quick_bind_all(kiln_pipeline_t* pipeline,
                                    const kiln_binding_t* bindings,
                                    uint32_t count,
                                    kilni_dispatch_plan_t* plan) {
  uint64_t largest = 0;
  for (uint32_t i = 0; i < count; i++) {
    const kilni_dispatch_place_t* place = &pipeline->places[i];
    kilni_dispatch_bound_t* bound = &plan->bound[i];
    memset(bound, 0, sizeof(*bound));
    if (place->is_buffer) {
      if (!bind_memory(pipeline, place, &bindings[i], bound)) return false;
      largest |= bound->value;
    } else {
      if (bindings[i].kind != KILN_BINDING_SCALAR ||
          bindings[i].type != place->info.type) {
        return false;
      }
      bound->value = bindings[i].value.bits & place->mask;
    }
  }
  return largest <= UINT32_MAX;
}

// Of a number that does not come from the caller.
static uint64_t pipeline_quick_number_of(
    const kilni_dispatch_plan_t* plan, const kiln_interface_number_t* number) {
  return number->from == KILN_INTERFACE_BY_VALUE
             ? number->value
             : plan->bound[number->of].value;
}

// Whether all have the specified number of elements, and none that is written
// overlaps another that must not be.
static bool pipeline_quick_check_all(const kiln_pipeline_t* pipeline,
                                     uint32_t count,
                                     const kilni_dispatch_plan_t* plan) {
  bool apart = pipeline->info.overlapping == 0;
  for (uint32_t i = 0; i < count; i++) {
    const kilni_dispatch_place_t* place = &pipeline->places[i];
    const kilni_dispatch_bound_t* a = &plan->bound[i];
    if (!place->is_buffer) continue;
    if (place->count.from != KILN_INTERFACE_BY_CALLER &&
        pipeline_quick_number_of(plan, &place->count) != a->value) {
      return false;
    }
    if (!place->written) continue;
    uint64_t end = a->address + a->bytes;
    for (uint32_t j = 0; j < count; j++) {
      const kilni_dispatch_bound_t* b = &plan->bound[j];
      if (a->address < b->address + b->bytes && b->address < end && i != j &&
          (apart || pipeline->places[j].relied_on)) {
        return false;
      }
    }
  }
  return true;
}

static bool shape_all(const kiln_pipeline_t* pipeline,
                      kilni_dispatch_plan_t* plan) {
  const uint32_t* most = pipeline->dispatcher->device->info.max_grid;
  for (uint32_t i = 0; i < 3; i++) {
    plan->shown.block[i] = pipeline->info.block[i];
    plan->shown.work[i] = 1;
    plan->shown.grid[i] = 1;
    if (i >= pipeline->quick.axes) continue;
    uint64_t work = pipeline_quick_number_of(plan, &pipeline->work[i]);
    uint32_t per_block = pipeline->quick.per_block[i];
    if (work == 0 || work > UINT32_MAX) return false;
    uint32_t blocks =
        work <= per_block ? 1 : (uint32_t)((work - 1) / per_block) + 1;
    if (blocks > most[i]) return false;
    plan->shown.work[i] = work;
    plan->shown.grid[i] = blocks;
  }
  return true;
}

bool kilni_dispatch_quick_plan(kiln_pipeline_t* pipeline,
                               const kiln_binding_t* bindings, uint32_t count,
                               kilni_dispatch_plan_t* plan) {
  if (!pipeline->quick.possible || count != pipeline->info.parameter_count ||
      (bindings == NULL && count > 0) ||
      !pipeline_quick_bind_all(pipeline, bindings, count, plan) ||
      !pipeline_quick_check_all(pipeline, count, plan) ||
      !shape_all(pipeline, plan)) {
    return false;
  }
  plan->label = pipeline->label;
  plan->options.iterations = 1;
  plan->shown.shared_bytes =
      pipeline->info.static_shared_bytes + pipeline->info.dynamic_shared_bytes;
  return true;
}
