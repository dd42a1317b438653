// SPDX-License-Identifier: Apache-2.0
//
// dispatch: dispatches that are checked once and run often.
//
// A run asks whether anything was freed, whether a run has trapped, and puts
// the launch that was prepared on a stream.
#include <string.h>

#include "base/alloc.h"
#include "base/status_make.h"
#include "dispatch/prepared_inside.h"
#include "table/table.h"

// ---- Buffers ----

kiln_status_t kilni_dispatch_binding_keep(kiln_dispatcher_t* dispatcher,
                                          const kiln_binding_t* binding,
                                          kiln_buffer_t** out_buffer) {
  *out_buffer = NULL;
  // Every binding has been checked.
  // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
  if (binding->kind == KILN_BINDING_RESIDENT) {
    return kilni_dispatch_resident_get(dispatcher, binding->value.resident,
                                       out_buffer);
  }
  if (binding->kind == KILN_BINDING_BUFFER) {
    *out_buffer = binding->value.buffer;
    kiln_buffer_retain(*out_buffer);
  }
  if (binding->kind != KILN_BINDING_STATIC || binding->bytes == 0) {
    return kiln_ok();
  }
  kiln_stream_t* stream = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_dispatch_own_stream(dispatcher, dispatcher->stream_count, &stream));
  KILNI_RETURN_IF_ERROR(kilni_dispatch_memory_allocate(
      dispatcher, (binding->bytes + 3) / 4 * 4, out_buffer));
  kiln_status_t status =
      kilni_dispatch_staging_upload(dispatcher->staging, stream, *out_buffer, 0,
                                    binding->bytes, binding->value.in);
  status = kilni_base_status_join(status, kiln_stream_synchronize(stream));
  if (kiln_status_is_ok(status)) return kiln_ok();
  kiln_buffer_release(*out_buffer);
  *out_buffer = NULL;
  return status;
}

void kilni_dispatch_binding_let_go(kiln_dispatcher_t* dispatcher,
                                   const kiln_binding_t* binding,
                                   kiln_buffer_t* buffer) {
  if (buffer == NULL) return;
  bool is_last = binding->kind == KILN_BINDING_STATIC;
  if (binding->kind == KILN_BINDING_RESIDENT) {
    // As long as the table has it, a free that comes will see to the order.
    kilni_dispatch_resident_view_t view = {0, 0};
    kiln_status_t status = kilni_dispatch_resident_look(
        dispatcher, binding->value.resident, &view);
    is_last = !kiln_status_is_ok(status);
    kiln_status_free(status);
  }
  if (is_last) {
    kiln_status_free(kilni_dispatch_memory_let_go(dispatcher, buffer));
  } else {
    kiln_buffer_release(buffer);
  }
}

// ---- Putting a plan into the launch ----

static kiln_status_t pipeline_prepared_give_arguments(
    kiln_prepared_t* prepared, kilni_dispatch_plan_t* plan) {
  kiln_pipeline_t* pipeline = prepared->pipeline;
  const void* list[KILNI_PIPELINE_ARGUMENTS];
  kiln_argument_t arguments[KILNI_PIPELINE_ARGUMENTS];
  if (prepared->record != NULL) plan->extras.trap = prepared->record->address;
  if (prepared->grid != NULL) {
    plan->extras.grid = kiln_buffer_address(prepared->grid);
  }
  kilni_dispatch_plan_arguments(pipeline, plan, list);
  for (uint32_t i = 0; i < pipeline->argument_count; i++) {
    const kilni_dispatch_argument_source_t* source = &pipeline->arguments[i];
    arguments[i] = kiln_arg_bytes(list[i], source->bytes);
    if (source->kind != KILN_INTERFACE_BUFFER) continue;
    // Graphs keep the buffers of a launch, where it names them.
    kiln_buffer_t* buffer = prepared->buffers[source->of];
    uint64_t address = plan->bound[source->of].address;
    if (buffer != NULL && kiln_buffer_address(buffer) == address &&
        address != 0) {
      arguments[i] = kiln_arg_buffer(buffer);
    }
  }
  return kiln_launch_set_all(prepared->launch, arguments,
                             pipeline->argument_count);
}

static void take_clears(kiln_prepared_t* prepared,
                        const kilni_dispatch_plan_t* plan) {
  prepared->clear_count = 0;
  for (uint32_t i = 0; i < prepared->count; i++) {
    const kilni_dispatch_bound_t* bound = &plan->bound[i];
    if (!bound->clears) continue;
    kilni_dispatch_clear_t* clear = &prepared->clears[prepared->clear_count++];
    clear->index = i;
    clear->address = bound->address;
    clear->bytes = bound->bytes;
  }
}

static void take_plan(kiln_prepared_t* prepared,
                      const kilni_dispatch_plan_t* plan) {
  prepared->plan = plan->shown;
  prepared->idle = plan->idle;
  prepared->threads = 1;
  prepared->work = 1;
  for (int i = 0; i < 3; i++) {
    prepared->threads *= (uint64_t)plan->shown.grid[i] * plan->shown.block[i];
    prepared->work *= plan->shown.work[i];
  }
  take_clears(prepared, plan);
}

// The address of what was uploaded when it was bound.
static void take_statics(const kiln_prepared_t* prepared,
                         kilni_dispatch_plan_t* plan) {
  for (uint32_t i = 0; i < prepared->count; i++) {
    if (prepared->bindings[i].kind != KILN_BINDING_STATIC) continue;
    plan->bound[i].address = prepared->buffers[i] == NULL
                                 ? 0
                                 : kiln_buffer_address(prepared->buffers[i]);
  }
}

// ---- Making and ending ----

static void pipeline_prepared_destroy(kiln_prepared_t* prepared) {
  kiln_dispatcher_t* dispatcher = prepared->dispatcher;
  kiln_pipeline_t* pipeline = prepared->pipeline;
  kiln_allocator_t allocator = dispatcher->allocator;
  for (uint32_t i = 0; prepared->buffers != NULL && i < prepared->count; i++) {
    kilni_dispatch_binding_let_go(dispatcher, &prepared->bindings[i],
                                  prepared->buffers[i]);
  }
  kiln_status_free(kilni_dispatch_memory_let_go(dispatcher, prepared->grid));
  if (prepared->record != NULL) {
    kilni_dispatch_trap_retire(dispatcher, prepared->record);
  }
  kiln_stream_release(prepared->grid_stream);
  kiln_launch_release(prepared->launch);
  kilni_base_free_array(allocator, prepared->clears, prepared->count,
                        sizeof(kilni_dispatch_clear_t));
  kilni_base_free_array(allocator, prepared->buffers, prepared->count,
                        sizeof(kiln_buffer_t*));
  kilni_base_free_array(allocator, prepared->bindings, prepared->count,
                        sizeof(kiln_binding_t));
  if (prepared->label != NULL) {
    kilni_base_free(allocator, prepared->label, strlen(prepared->label) + 1);
  }
  kilni_base_free(allocator, prepared, sizeof(*prepared));
  kiln_pipeline_release(pipeline);
}

static kiln_status_t pipeline_prepared_make_lists(
    kiln_prepared_t* prepared, const kiln_binding_t* bindings,
    const kilni_dispatch_plan_t* plan) {
  kiln_allocator_t allocator = prepared->dispatcher->allocator;
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(allocator, prepared->count,
                                               sizeof(kiln_binding_t), &block));
  prepared->bindings = block;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(allocator, prepared->count,
                                               sizeof(kiln_buffer_t*), &block));
  prepared->buffers = block;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_array(
      allocator, prepared->count, sizeof(kilni_dispatch_clear_t), &block));
  prepared->clears = block;
  if (prepared->count > 0) {
    memcpy(prepared->bindings, bindings, prepared->count * sizeof(*bindings));
  }
  if (plan->options.label == NULL) return kiln_ok();
  size_t size = strlen(plan->options.label) + 1;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_unset(allocator, size, &block));
  prepared->label = block;
  memcpy(prepared->label, plan->options.label, size);
  prepared->options.label = prepared->label;
  return kiln_ok();
}

static kiln_status_t make_own(kiln_prepared_t* prepared) {
  kiln_dispatcher_t* dispatcher = prepared->dispatcher;
  kiln_stream_t* stream = NULL;
  if (prepared->pipeline->info.traps) {
    KILNI_RETURN_IF_ERROR(
        kilni_dispatch_trap_take(dispatcher, &prepared->record));
  }
  if (!prepared->pipeline->info.grid_barrier) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_dispatch_memory_allocate(
      dispatcher, KILNI_GRID_BYTES, &prepared->grid));
  KILNI_RETURN_IF_ERROR(
      kilni_dispatch_own_stream(dispatcher, dispatcher->stream_count, &stream));
  kiln_status_t status = kilni_dispatch_clear(
      stream, kiln_buffer_address(prepared->grid), KILNI_GRID_BYTES);
  if (kiln_status_is_ok(status)) status = kiln_stream_synchronize(stream);
  if (kiln_status_is_ok(status)) return kiln_ok();
  // After the clear, which may be in progress: in the order of its stream,
  // which the stream of frees does not wait for.
  kiln_buffer_release(prepared->grid);
  prepared->grid = NULL;
  return status;
}

static kiln_status_t pipeline_prepared_make_launch(
    kiln_prepared_t* prepared, const kilni_dispatch_plan_t* plan) {
  kiln_launch_config_t config;
  kiln_launch_attributes_t attributes;
  kilni_dispatch_plan_launch(prepared->pipeline, plan, &config, &attributes);
  return kiln_launch_create(prepared->pipeline->kernel, &config,
                            &prepared->launch);
}

static kiln_status_t pipeline_prepared_fill(kiln_prepared_t* prepared,
                                            const kiln_binding_t* bindings,
                                            kilni_dispatch_plan_t* plan) {
  kiln_dispatcher_t* dispatcher = prepared->dispatcher;
  KILNI_RETURN_IF_ERROR(pipeline_prepared_make_lists(prepared, bindings, plan));
  atomic_store(&prepared->frees, atomic_load(&dispatcher->residents.frees));
  for (uint32_t i = 0; i < prepared->count; i++) {
    KILNI_RETURN_IF_ERROR(kilni_dispatch_binding_keep(dispatcher, &bindings[i],
                                                      &prepared->buffers[i]));
  }
  KILNI_RETURN_IF_ERROR(make_own(prepared));
  KILNI_RETURN_IF_ERROR(pipeline_prepared_make_launch(prepared, plan));
  take_statics(prepared, plan);
  take_plan(prepared, plan);
  return pipeline_prepared_give_arguments(prepared, plan);
}

static kiln_status_t pipeline_prepared_check_usable(
    const kiln_dispatcher_t* dispatcher) {
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(dispatcher->device->host));
  if (!kilni_device_is_lost(dispatcher->device)) return kiln_ok();
  return kilni_device_lost_status(dispatcher->device);
}

kiln_status_t kiln_pipeline_prepare(kiln_pipeline_t* pipeline,
                                    const kiln_binding_t* bindings,
                                    uint32_t binding_count,
                                    const kiln_dispatch_options_t* options,
                                    kiln_prepared_t** out_prepared) {
  KILNI_CHECK_ARGUMENT(out_prepared != NULL, "out_prepared");
  *out_prepared = NULL;
  KILNI_CHECK_ARGUMENT(pipeline != NULL, "pipeline");
  kiln_dispatcher_t* dispatcher = pipeline->dispatcher;
  KILNI_RETURN_IF_ERROR(pipeline_prepared_check_usable(dispatcher));
  kilni_dispatch_plan_t plan;
  KILNI_RETURN_IF_ERROR(kilni_dispatch_plan_make(
      pipeline, bindings, binding_count, options, true, &plan));
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(dispatcher->allocator, sizeof(kiln_prepared_t), &block));
  kiln_prepared_t* prepared = block;
  prepared->pipeline = pipeline;
  prepared->dispatcher = dispatcher;
  prepared->count = binding_count;
  prepared->options = plan.options;
  prepared->options.struct_size = (uint32_t)sizeof(prepared->options);
  prepared->overlaps = pipeline->overlaps && !plan.has_how &&
                       plan.options.overlap != KILN_SWITCH_OFF;
  atomic_init(&prepared->references, 1);
  kiln_pipeline_retain(pipeline);
  kiln_status_t status = pipeline_prepared_fill(prepared, bindings, &plan);
  if (!kiln_status_is_ok(status)) {
    pipeline_prepared_destroy(prepared);
    return KILNI_ANNOTATE(status, "preparing \"%s\"", pipeline->label);
  }
  *out_prepared = prepared;
  return kiln_ok();
}

kiln_status_t kilni_dispatch_prepared_clone(kiln_prepared_t* prepared,
                                            bool for_graph,
                                            kiln_prepared_t** out_prepared) {
  kiln_binding_t bindings[KILNI_PIPELINE_PARAMETERS];
  kiln_dispatch_options_t options = prepared->options;
  if (for_graph) options.overlap = KILN_SWITCH_OFF;
  for (uint32_t i = 0; i < prepared->count; i++) {
    bindings[i] = prepared->bindings[i];
    if (bindings[i].kind != KILN_BINDING_STATIC ||
        prepared->buffers[i] == NULL) {
      continue;
    }
    bindings[i] =
        kiln_bind_buffer_range(prepared->buffers[i], 0, bindings[i].bytes);
  }
  return kiln_pipeline_prepare(prepared->pipeline, bindings, prepared->count,
                               &options, out_prepared);
}

void kiln_prepared_retain(kiln_prepared_t* prepared) {
  if (prepared == NULL) return;
  atomic_fetch_add_explicit(&prepared->references, 1, memory_order_relaxed);
}

void kiln_prepared_release(kiln_prepared_t* prepared) {
  if (prepared == NULL ||
      kilni_device_is_forked(prepared->dispatcher->device)) {
    return;
  }
  if (atomic_fetch_sub_explicit(&prepared->references, 1,
                                memory_order_acq_rel) == 1) {
    pipeline_prepared_destroy(prepared);
  }
}

// ---- Running ----

// Something was freed, perhaps not what this one uses; or a stream forgotten.
kiln_status_t kilni_dispatch_prepared_check_freed(kiln_prepared_t* prepared) {
  uint32_t frees = atomic_load(&prepared->dispatcher->residents.frees);
  for (uint32_t i = 0; i < prepared->count; i++) {
    const kiln_binding_t* binding = &prepared->bindings[i];
    kilni_dispatch_resident_view_t view = {0, 0};
    if (binding->kind != KILN_BINDING_RESIDENT) continue;
    kiln_status_t status = kilni_dispatch_resident_look(
        prepared->dispatcher, binding->value.resident, &view);
    if (kiln_status_is_ok(status)) continue;
    kiln_status_free(status);
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_STATE,
                   "parameter %u (\"%s\") of a prepared \"%s\": its resident "
                   "buffer was freed",
                   (unsigned)i, prepared->pipeline->places[i].info.name,
                   prepared->pipeline->label),
        "bind another one (kiln_prepared_rebind)");
  }
  atomic_store(&prepared->last, NULL);
  atomic_store(&prepared->frees, frees);
  return kiln_ok();
}

static kiln_status_t pipeline_prepared_has_trapped(
    const kiln_prepared_t* prepared) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE, "a run of the prepared \"%s\" has trapped",
                 prepared->pipeline->label),
      "synchronise its stream and call kiln_prepared_check, which reports "
      "where");
}

// Runs share the counter of the blocks: one after the other.
static kiln_status_t order_grid(kiln_prepared_t* prepared,
                                kiln_stream_t* stream) {
  if (prepared->grid_stream == stream) return kiln_ok();
  if (prepared->grid_stream != NULL) {
    KILNI_RETURN_IF_ERROR(
        kiln_stream_wait_stream(stream, prepared->grid_stream));
  }
  kiln_stream_retain(stream);
  kiln_stream_release(prepared->grid_stream);
  prepared->grid_stream = stream;
  return kiln_ok();
}

static kiln_status_t pipeline_prepared_find_stream(kiln_prepared_t* prepared,
                                                   kiln_stream_t* stream) {
  KILNI_RETURN_IF_ERROR(
      kilni_dispatch_stream(prepared->dispatcher, stream, &stream));
  atomic_store_explicit(&prepared->last, stream, memory_order_relaxed);
  return kiln_ok();
}

static void count_run(const kiln_prepared_t* prepared) {
  const uint32_t* each = prepared->pipeline->info.work_per_thread;
  kilni_dispatch_counter_shard_t* shard =
      kilni_dispatch_count_shard(prepared->dispatcher->counters);
  kilni_dispatch_count_in(shard, KILNI_COUNTER_PREPARED_RUNS, 1);
  kilni_dispatch_count_in(shard, KILNI_COUNTER_CLEARED_BYTES,
                          prepared->plan.cleared_bytes);
  if (prepared->idle) return;
  kilni_dispatch_count_in(shard, KILNI_COUNTER_LAUNCHES, 1);
  kilni_dispatch_count_in(shard, KILNI_COUNTER_THREADS, prepared->threads);
  kilni_dispatch_count_in(shard, KILNI_COUNTER_WORK, prepared->work);
  kilni_dispatch_count_in(shard, KILNI_COUNTER_WORK_SLOTS,
                          prepared->threads * each[0] * each[1] * each[2]);
}

static kiln_status_t pipeline_prepared_put(kiln_prepared_t* prepared,
                                           kiln_stream_t* stream, bool early) {
  kiln_dispatcher_t* dispatcher = prepared->dispatcher;
  for (uint32_t i = 0; i < prepared->clear_count; i++) {
    KILNI_RETURN_IF_ERROR(kilni_dispatch_clear(
        stream, prepared->clears[i].address, prepared->clears[i].bytes));
  }
  if (prepared->grid != NULL) {
    KILNI_RETURN_IF_ERROR(order_grid(prepared, stream));
  }
  if (dispatcher->counters != NULL) count_run(prepared);
  if (prepared->idle) return kiln_ok();
  return early ? kilni_device_launch_run_early(prepared->launch, stream)
               : kiln_launch_run(prepared->launch, stream);
}

kiln_status_t kilni_dispatch_prepared_put(kiln_prepared_t* prepared,
                                          kiln_stream_t* stream) {
  return pipeline_prepared_put(prepared, stream, false);
}

static kiln_status_t put_in_range(kiln_prepared_t* prepared,
                                  kiln_stream_t* stream, bool early) {
  const kiln_nvtx_table_t* ranges = prepared->dispatcher->ranges;
  kilni_dispatch_range_begin(
      ranges, KILNI_RANGE_DISPATCH,
      prepared->label != NULL ? prepared->label : prepared->pipeline->label);
  kiln_status_t status = pipeline_prepared_put(prepared, stream, early);
  kilni_dispatch_range_end(ranges);
  return status;
}

kiln_status_t kiln_prepared_run(kiln_prepared_t* prepared,
                                kiln_stream_t* stream) {
  KILNI_CHECK_ARGUMENT(prepared != NULL, "prepared");
  kiln_dispatcher_t* dispatcher = prepared->dispatcher;
  if (atomic_load_explicit(&dispatcher->residents.frees,
                           memory_order_relaxed) !=
      atomic_load_explicit(&prepared->frees, memory_order_relaxed)) {
    KILNI_RETURN_IF_ERROR(kilni_dispatch_prepared_check_freed(prepared));
  }
  if (prepared->record != NULL &&
      kilni_dispatch_trap_is_set(prepared->record)) {
    return pipeline_prepared_has_trapped(prepared);
  }
  bool early = false;
  if (stream == NULL) {
    const kilni_dispatch_own_stream_t* own = &dispatcher->own[0];
    stream = atomic_load_explicit(&own->stream, memory_order_relaxed);
    early = prepared->overlaps &&
            !atomic_load_explicit(&own->given_out, memory_order_relaxed);
  } else if (stream !=
             atomic_load_explicit(&prepared->last, memory_order_relaxed)) {
    KILNI_RETURN_IF_ERROR(pipeline_prepared_find_stream(prepared, stream));
  }
  if (dispatcher->ranges != NULL) {
    return put_in_range(prepared, stream, early);
  }
  return pipeline_prepared_put(prepared, stream, early);
}

// ---- Changing ----

// Plans with one binding changed, and takes it over if all of it is right.
static kiln_status_t pipeline_prepared_change(kiln_prepared_t* prepared,
                                              uint32_t index,
                                              const kiln_binding_t* binding) {
  kiln_dispatcher_t* dispatcher = prepared->dispatcher;
  kiln_binding_t before = prepared->bindings[index];
  kiln_buffer_t* buffer_before = prepared->buffers[index];
  kiln_buffer_t* buffer = NULL;
  kilni_dispatch_plan_t plan;
  prepared->bindings[index] = *binding;
  kiln_status_t status = kilni_dispatch_plan_make(
      prepared->pipeline, prepared->bindings, prepared->count,
      &prepared->options, true, &plan);
  if (kiln_status_is_ok(status)) {
    status = kilni_dispatch_binding_keep(dispatcher, binding, &buffer);
  }
  if (kiln_status_is_ok(status)) {
    status = kiln_launch_set_grid(prepared->launch, plan.shown.grid[0],
                                  plan.shown.grid[1], plan.shown.grid[2]);
  }
  if (!kiln_status_is_ok(status)) {
    kilni_dispatch_binding_let_go(dispatcher, binding, buffer);
    prepared->bindings[index] = before;
    return status;
  }
  prepared->buffers[index] = buffer;
  take_statics(prepared, &plan);
  take_plan(prepared, &plan);
  kilni_dispatch_binding_let_go(dispatcher, &before, buffer_before);
  // What the kernel takes was compared when the pipeline was made.
  return pipeline_prepared_give_arguments(prepared, &plan);
}

kiln_status_t kiln_prepared_rebind(kiln_prepared_t* prepared, uint32_t index,
                                   const kiln_binding_t* binding) {
  KILNI_CHECK_ARGUMENT(prepared != NULL, "prepared");
  KILNI_CHECK_ARGUMENT(binding != NULL, "binding");
  KILNI_RETURN_IF_ERROR(pipeline_prepared_check_usable(prepared->dispatcher));
  if (index >= prepared->count) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "\"%s\" takes %u bindings; number %u does not exist",
                   prepared->pipeline->label, (unsigned)prepared->count,
                   (unsigned)index),
        "count its parameters from 0");
  }
  return pipeline_prepared_change(prepared, index, binding);
}

kiln_status_t kiln_prepared_set_scalar(kiln_prepared_t* prepared,
                                       uint32_t index, uint64_t bits) {
  KILNI_CHECK_ARGUMENT(prepared != NULL, "prepared");
  const kiln_pipeline_t* pipeline = prepared->pipeline;
  const kilni_dispatch_place_t* place =
      index < prepared->count ? &pipeline->places[index] : NULL;
  uint32_t type = place != NULL ? place->info.type : 0;
  kiln_binding_t binding = kiln_bind_scalar(type, bits);
  if (place == NULL || place->is_buffer || place->sizes_use ||
      !pipeline->kernel->info.params_known) {
    return kiln_prepared_rebind(prepared, index, &binding);
  }
  // Nothing else depends on it.
  KILNI_RETURN_IF_ERROR(kiln_launch_set(
      prepared->launch, place->argument,
      kiln_arg_bytes(&bits, pipeline->arguments[place->argument].bytes)));
  prepared->bindings[index] = binding;
  return kiln_ok();
}

// ---- Questions ----

kiln_status_t kiln_prepared_check(kiln_prepared_t* prepared,
                                  kiln_trap_t* out_trap) {
  kiln_trap_t trap;
  memset(&trap, 0, sizeof(trap));
  if (out_trap != NULL) *out_trap = trap;
  KILNI_CHECK_ARGUMENT(prepared != NULL, "prepared");
  KILNI_RETURN_IF_ERROR(pipeline_prepared_check_usable(prepared->dispatcher));
  if (prepared->record == NULL ||
      !kilni_dispatch_trap_is_set(prepared->record)) {
    return kiln_ok();
  }
  kilni_dispatch_trap_read(prepared->record->host, &trap);
  if (out_trap != NULL) *out_trap = trap;
  kilni_dispatch_count(prepared->dispatcher->counters, KILNI_COUNTER_TRAPS, 1);
  if (prepared->grid != NULL) {
    // Blocks that left early may have left the count as it was.
    KILNI_RETURN_IF_ERROR(
        kiln_buffer_fill(prepared->grid, 0, KILNI_GRID_BYTES, 0, 1));
  }
  memset(prepared->record->host, 0, sizeof(*prepared->record->host));
  return kilni_dispatch_trap_status(prepared->pipeline->label, &trap);
}

void kiln_prepared_plan(const kiln_prepared_t* prepared,
                        kiln_dispatch_plan_t* out_plan) {
  *out_plan = prepared->plan;
}

kiln_pipeline_t* kiln_prepared_pipeline(const kiln_prepared_t* prepared) {
  return prepared->pipeline;
}

kiln_launch_t* kiln_prepared_launch(const kiln_prepared_t* prepared) {
  return prepared->launch;
}
