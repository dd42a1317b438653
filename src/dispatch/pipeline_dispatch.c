// SPDX-License-Identifier: Apache-2.0
//
// dispatch: what was planned is put on a stream: once, or many of one pipeline
// over several streams.
#include <string.h>

#include "base/options.h"
#include "base/status_make.h"
#include "device/device_scope.h"
#include "dispatch/pipeline_inside.h"

// ---- Arguments and launches ----

void kilni_dispatch_plan_arguments(const kiln_pipeline_t* pipeline,
                                   const kilni_dispatch_plan_t* plan,
                                   const void** list) {
  const uint8_t* base = (const uint8_t*)plan;
  const kilni_dispatch_argument_source_t* argument = pipeline->arguments;
  for (uint32_t i = pipeline->argument_count; i > 0; i--, argument++) {
    const uint8_t* at = base + argument->offset;
    *list++ = argument->value != NULL ? argument->value : at;
  }
}

// For a kernel without a description, the driver requires all arguments in one
// block.
static kiln_status_t launch_undescribed(const kiln_pipeline_t* pipeline,
                                        const kilni_dispatch_plan_t* plan,
                                        kiln_stream_t* stream,
                                        const void** list) {
  kiln_argument_t arguments[KILNI_PIPELINE_ARGUMENTS];
  kiln_launch_config_t config;
  kiln_launch_attributes_t attributes;
  for (uint32_t i = 0; i < pipeline->argument_count; i++) {
    arguments[i] = kiln_arg_bytes(list[i], pipeline->arguments[i].bytes);
  }
  kilni_dispatch_plan_launch(pipeline, plan, &config, &attributes);
  return kiln_kernel_launch(pipeline->kernel, stream, &config, arguments,
                            pipeline->argument_count);
}

static kiln_status_t pipeline_dispatch_launch(const kiln_pipeline_t* pipeline,
                                              kilni_dispatch_plan_t* plan,
                                              kiln_stream_t* stream,
                                              const void** list) {
  const uint32_t* grid = plan->shown.grid;
  const uint32_t* block = plan->shown.block;
  void** values = NULL;
  kiln_status_t status;
  if (!pipeline->kernel->info.params_known) {
    return launch_undescribed(pipeline, plan, stream, list);
  }
  // The driver only reads, although its interface has void*.
  if (pipeline->argument_count > 0) memcpy(&values, &list, sizeof(values));
  if (!plan->has_how && !plan->early) {
    KILNI_STREAM_CALL(status, stream, cuLaunchKernel, pipeline->kernel->handle,
                      grid[0], grid[1], grid[2], block[0], block[1], block[2],
                      pipeline->info.dynamic_shared_bytes, stream->handle,
                      values, NULL);
    return status;
  }
  kiln_cu_launch_attribute_t early = kilni_device_launch_early();
  kiln_cu_launch_config_t native = {
      .grid_x = grid[0],
      .grid_y = grid[1],
      .grid_z = grid[2],
      .block_x = block[0],
      .block_y = block[1],
      .block_z = block[2],
      .shared_bytes = pipeline->info.dynamic_shared_bytes,
      .stream = stream->handle,
      .attributes = plan->has_how ? plan->how.list : &early,
      .attribute_count = plan->has_how ? plan->how.count : 1};
  KILNI_STREAM_CALL(status, stream, cuLaunchKernelEx, &native,
                    pipeline->kernel->handle, values, NULL);
  return status;
}

kiln_status_t kilni_dispatch_clear(kiln_stream_t* stream, uint64_t address,
                                   uint64_t bytes) {
  kiln_status_t status;
  KILNI_STREAM_CALL(status, stream, cuMemsetD8Async, address, 0, (size_t)bytes,
                    stream->handle);
  return status;
}

// ---- One dispatch ----

// Device memory that lives as long as the work. one-thread
typedef struct taken_t {
  kiln_buffer_t* buffers[KILNI_PIPELINE_PARAMETERS];
  kiln_buffer_t* grid;
} taken_t;

static kiln_status_t bring_in(kiln_pipeline_t* pipeline,
                              kilni_dispatch_plan_t* plan,
                              const kiln_binding_t* bindings,
                              kiln_stream_t* stream, taken_t* taken) {
  kiln_dispatcher_t* dispatcher = pipeline->dispatcher;
  uint32_t count = pipeline->info.parameter_count;
  if (!plan->has_host && plan->shown.cleared_bytes == 0) count = 0;
  for (uint32_t i = 0; i < count; i++) {
    kilni_dispatch_bound_t* bound = &plan->bound[i];
    if ((bound->uploads || bound->downloads) && bound->bytes > 0) {
      // Whole words: atomics on narrow elements use those around them.
      uint64_t bytes = (bound->bytes + 3) / 4 * 4;
      KILNI_RETURN_IF_ERROR(kilni_dispatch_transient_buffer(
          dispatcher, stream, bytes, &taken->buffers[i]));
      kilni_dispatch_count(dispatcher->counters, KILNI_COUNTER_TRANSIENT_BYTES,
                           bytes);
      bound->address = kiln_buffer_address(taken->buffers[i]);
    }
    if (bound->uploads && bound->bytes > 0) {
      KILNI_RETURN_IF_ERROR(kilni_dispatch_staging_upload(
          dispatcher->staging, stream, taken->buffers[i], 0, bound->bytes,
          bindings[i].value.in));
    }
    if (bound->clears) {
      KILNI_RETURN_IF_ERROR(
          kilni_dispatch_clear(stream, bound->address, bound->bytes));
    }
  }
  kilni_dispatch_count(dispatcher->counters, KILNI_COUNTER_CLEARED_BYTES,
                       plan->shown.cleared_bytes);
  if (!pipeline->info.grid_barrier) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_dispatch_transient_buffer(
      dispatcher, stream, KILNI_GRID_BYTES, &taken->grid));
  return kilni_dispatch_clear(stream, kiln_buffer_address(taken->grid),
                              KILNI_GRID_BYTES);
}

static kiln_status_t launch_all(kiln_pipeline_t* pipeline,
                                kilni_dispatch_plan_t* plan,
                                kiln_stream_t* stream, const taken_t* taken,
                                const kilni_dispatch_trap_record_t* trap) {
  const void* list[KILNI_PIPELINE_ARGUMENTS];
  if (trap != NULL) plan->extras.trap = trap->address;
  if (taken->grid != NULL) plan->extras.grid = kiln_buffer_address(taken->grid);
  if (plan->idle) return kiln_ok();
  kilni_dispatch_plan_arguments(pipeline, plan, list);
  for (uint32_t i = 0; i < plan->options.iterations; i++) {
    KILNI_RETURN_IF_ERROR(
        pipeline_dispatch_launch(pipeline, plan, stream, list));
  }
  kilni_dispatch_counters_t* counters = pipeline->dispatcher->counters;
  if (counters == NULL) return kiln_ok();
  kilni_dispatch_counter_shard_t* shard = kilni_dispatch_count_shard(counters);
  uint64_t threads = plan->options.iterations;
  uint64_t work = plan->options.iterations;
  uint64_t slots = 1;
  for (int i = 0; i < 3; i++) {
    threads *= (uint64_t)plan->shown.grid[i] * plan->shown.block[i];
    work *= plan->shown.work[i];
    slots *= pipeline->info.work_per_thread[i];
  }
  kilni_dispatch_count_in(shard, KILNI_COUNTER_LAUNCHES,
                          plan->options.iterations);
  kilni_dispatch_count_in(shard, KILNI_COUNTER_THREADS, threads);
  kilni_dispatch_count_in(shard, KILNI_COUNTER_WORK, work);
  kilni_dispatch_count_in(shard, KILNI_COUNTER_WORK_SLOTS, threads * slots);
  return kiln_ok();
}

static kiln_status_t bring_out(kiln_pipeline_t* pipeline,
                               const kilni_dispatch_plan_t* plan,
                               const kiln_binding_t* bindings,
                               kiln_stream_t* stream, const taken_t* taken) {
  for (uint32_t i = 0; i < pipeline->info.parameter_count; i++) {
    const kilni_dispatch_bound_t* bound = &plan->bound[i];
    if (!bound->downloads || bound->bytes == 0) continue;
    kiln_status_t status = kilni_dispatch_staging_download(
        pipeline->dispatcher->staging, stream, taken->buffers[i], 0,
        bound->bytes, bindings[i].value.out, false);
    if (kiln_status_is_ok(status)) continue;
    // Some of the caller's memory may be written later: wait for that here.
    return kilni_base_status_join(status, kiln_stream_synchronize(stream));
  }
  return kiln_ok();
}

// Copies, clears, launches, copies back. What was taken for it is freed after
// it.
static kiln_status_t plan_run(kiln_pipeline_t* pipeline,
                              kilni_dispatch_plan_t* plan,
                              const kiln_binding_t* bindings,
                              kiln_stream_t* stream,
                              const kilni_dispatch_trap_record_t* trap) {
  taken_t taken;
  uint32_t count = pipeline->info.parameter_count;
  taken.grid = NULL;
  plan->early = pipeline->overlaps && !plan->has_how &&
                plan->options.overlap != KILN_SWITCH_OFF &&
                kilni_dispatch_stream_is_ours(pipeline->dispatcher, stream);
  if (!plan->has_host) count = 0;  // nothing is taken
  memset(taken.buffers, 0, count * sizeof(taken.buffers[0]));
  kiln_status_t status = bring_in(pipeline, plan, bindings, stream, &taken);
  if (kiln_status_is_ok(status)) {
    status = launch_all(pipeline, plan, stream, &taken, trap);
  }
  if (kiln_status_is_ok(status) && plan->has_host) {
    status = bring_out(pipeline, plan, bindings, stream, &taken);
  }
  for (uint32_t i = 0; i < count; i++) kiln_buffer_release(taken.buffers[i]);
  if (taken.grid != NULL) kiln_buffer_release(taken.grid);
  if (kiln_status_is_ok(status)) {
    kilni_dispatch_count(pipeline->dispatcher->counters,
                         KILNI_COUNTER_DISPATCHES, 1);
  }
  return status;
}

// ---- What is around it ----

// What of a dispatch happens once, where a graph is launched many times.
static kiln_status_t pipeline_dispatch_check_capture(
    const kilni_dispatch_plan_t* plan, kiln_stream_t* stream,
    bool wants_pending, bool batch) {
  bool captured = false;
  KILNI_RETURN_IF_ERROR(kilni_device_stream_ask_capture(stream, &captured));
  if (!captured) return kiln_ok();
  const char* what = "code that can trap";
  const char* fix =
      "prepare the dispatch (kiln_pipeline_prepare) and run that without a "
      "pending";
  if (plan->has_host) {
    what = "host memory";
    fix =
        "bind resident buffers or buffers of the device, and copy before the "
        "capture and after the graph's launch";
  } else if (wants_pending) {
    what = "a pending";
    fix = "leave the pending out, and wait for what the graph is launched on";
  } else if (batch) {
    what = "a batch";
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_STATE,
                 "%s (\"%s\") on a stream that is being captured", what,
                 plan->label),
      "%s", fix);
}

static kiln_status_t pipeline_dispatch_before(const kilni_dispatch_plan_t* plan,
                                              kiln_stream_t* stream,
                                              kiln_pending_t* pending) {
  for (uint32_t i = 0; i < plan->options.wait_count; i++) {
    KILNI_CHECK_ARGUMENT(plan->options.waits[i] != NULL, "options.waits");
    KILNI_RETURN_IF_ERROR(
        kiln_stream_wait_event(stream, plan->options.waits[i]));
  }
  if (pending == NULL || pending->start == NULL) return kiln_ok();
  return kiln_event_record(pending->start, stream);
}

// The work is on the stream. What can no longer be tracked is waited for, so
// that nothing it uses is freed.
static kiln_status_t pipeline_dispatch_behind(const kilni_dispatch_plan_t* plan,
                                              kiln_stream_t* stream,
                                              kiln_pending_t* pending) {
  kiln_status_t status = kiln_ok();
  if (plan->options.record != NULL) {
    status = kiln_event_record(plan->options.record, stream);
  }
  if (pending != NULL) {
    status = kilni_base_status_join(
        status, kilni_dispatch_pending_finish(pending, stream));
  }
  if (kiln_status_is_ok(status)) return kiln_ok();
  return kilni_base_status_join(status, kiln_stream_synchronize(stream));
}

static kiln_status_t pipeline_dispatch_make_pending(
    kiln_pipeline_t* pipeline, const kilni_dispatch_plan_t* plan,
    kiln_pending_t** out_pending) {
  kiln_dispatcher_t* dispatcher = pipeline->dispatcher;
  KILNI_RETURN_IF_ERROR(kilni_dispatch_pending_create(
      dispatcher, plan->label, plan->options.timed == KILN_SWITCH_ON,
      out_pending));
  kiln_pending_t* pending = *out_pending;
  pending->timeout_ns = plan->options.timeout_ns;
  pending->kernel = pipeline->kernel;
  kiln_kernel_retain(pipeline->kernel);
  if (!pipeline->info.traps) return kiln_ok();
  kiln_status_t status = kilni_dispatch_trap_take(dispatcher, &pending->record);
  if (kiln_status_is_ok(status)) return kiln_ok();
  kiln_pending_release(pending);
  *out_pending = NULL;
  return status;
}

static kiln_status_t pipeline_dispatch_check_usable(
    const kiln_pipeline_t* pipeline) {
  kiln_device_t* device = pipeline->dispatcher->device;
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  return kilni_device_is_lost(device) ? kilni_device_lost_status(device)
                                      : kiln_ok();
}

static kiln_status_t pipeline_dispatch_run(kiln_pipeline_t* pipeline,
                                           kilni_dispatch_plan_t* plan,
                                           const kiln_binding_t* bindings,
                                           kiln_stream_t* stream,
                                           kiln_pending_t** out_pending) {
  kiln_pending_t* pending = NULL;
  bool needs = out_pending != NULL || pipeline->info.traps != 0;
  if (needs || plan->has_host) {
    KILNI_RETURN_IF_ERROR(pipeline_dispatch_check_capture(
        plan, stream, out_pending != NULL, false));
  }
  if (needs) {
    KILNI_RETURN_IF_ERROR(
        pipeline_dispatch_make_pending(pipeline, plan, &pending));
  }
  kiln_status_t status = pipeline_dispatch_before(plan, stream, pending);
  if (kiln_status_is_ok(status)) {
    status = plan_run(pipeline, plan, bindings, stream,
                      pending != NULL ? pending->record : NULL);
    status = kilni_base_status_join(
        status, pipeline_dispatch_behind(plan, stream, pending));
  }
  if (!kiln_status_is_ok(status) || out_pending == NULL) {
    kiln_pending_release(pending);
    return status;
  }
  *out_pending = pending;
  return kiln_ok();
}

kiln_status_t kiln_pipeline_dispatch(kiln_pipeline_t* pipeline,
                                     kiln_stream_t* stream,
                                     const kiln_binding_t* bindings,
                                     uint32_t binding_count,
                                     const kiln_dispatch_options_t* options,
                                     kiln_pending_t** out_pending) {
  if (out_pending != NULL) *out_pending = NULL;
  KILNI_CHECK_ARGUMENT(pipeline != NULL, "pipeline");
  KILNI_RETURN_IF_ERROR(pipeline_dispatch_check_usable(pipeline));
  KILNI_RETURN_IF_ERROR(
      kilni_dispatch_stream(pipeline->dispatcher, stream, &stream));
  kilni_dispatch_plan_t plan;
  KILNI_RETURN_IF_ERROR(kilni_dispatch_plan_make(
      pipeline, bindings, binding_count, options, false, &plan));
  const kiln_nvtx_table_t* ranges = pipeline->dispatcher->ranges;
  if (ranges != NULL) {
    kilni_dispatch_range_begin(ranges, KILNI_RANGE_DISPATCH, plan.label);
  }
  kiln_status_t status =
      pipeline_dispatch_run(pipeline, &plan, bindings, stream, out_pending);
  if (ranges != NULL) kilni_dispatch_range_end(ranges);
  if (kiln_status_is_ok(status)) return kiln_ok();
  return KILNI_ANNOTATE(status, "dispatching \"%s\"", plan.label);
}

// ---- Batches ----

static kiln_status_t pipeline_dispatch_check_batch(
    kiln_pipeline_t* pipeline, const kiln_dispatch_batch_t* batch,
    const kiln_dispatch_options_t* options, kilni_dispatch_plan_t* plan) {
  for (uint32_t i = 0; i < batch->count; i++) {
    kiln_status_t status = kilni_dispatch_plan_make(
        pipeline, batch->bindings + (size_t)i * batch->binding_count,
        batch->binding_count, options, false, plan);
    if (!kiln_status_is_ok(status)) {
      return KILNI_ANNOTATE(status, "number %u of the batch", (unsigned)i);
    }
    if (plan->options.timed == KILN_SWITCH_ON) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(UNSUPPORTED, "`timed` for a batch of \"%s\"", plan->label),
          "time a single dispatch, or the batch with events of your own");
    }
  }
  return kiln_ok();
}

// Puts each on its stream; the streams used are in `streams`.
static kiln_status_t spread(kiln_pipeline_t* pipeline, kiln_stream_t* stream,
                            const kiln_dispatch_batch_t* batch,
                            const kiln_dispatch_options_t* options,
                            const kilni_dispatch_trap_record_t* trap) {
  kiln_dispatcher_t* dispatcher = pipeline->dispatcher;
  uint32_t width = batch->streams;
  if (width == 0 || width > dispatcher->stream_count) {
    width = dispatcher->stream_count;
  }
  if (width > batch->count) width = batch->count;
  kiln_stream_t* streams[KILNI_OWN_STREAMS];
  kiln_status_t status = kiln_ok();
  for (uint32_t i = 0; i < width; i++) {
    streams[i] = stream;
    if (width == 1) break;
    KILNI_RETURN_IF_ERROR(
        kilni_dispatch_own_stream(dispatcher, i, &streams[i]));
  }
  for (uint32_t i = 0; i < width && kiln_status_is_ok(status); i++) {
    if (streams[i] != stream) {
      status = kiln_stream_wait_stream(streams[i], stream);
    }
  }
  for (uint32_t i = 0; i < batch->count && kiln_status_is_ok(status); i++) {
    const kiln_binding_t* bindings =
        batch->bindings + (size_t)i * batch->binding_count;
    kilni_dispatch_plan_t plan;
    status = kilni_dispatch_plan_make(pipeline, bindings, batch->binding_count,
                                      options, false, &plan);
    if (kiln_status_is_ok(status)) {
      // A dispatcher has streams, and this batch has something in it.
      // NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
      status = plan_run(pipeline, &plan, bindings, streams[i % width], trap);
    }
  }
  // Also after a failure: the work already on the stream precedes any later
  // work.
  for (uint32_t i = 0; i < width; i++) {
    if (streams[i] == stream) continue;
    status = kilni_base_status_join(
        status, kiln_stream_wait_stream(stream, streams[i]));
  }
  return status;
}

static kiln_status_t run_batch(kiln_pipeline_t* pipeline,
                               kilni_dispatch_plan_t* plan,
                               kiln_stream_t* stream,
                               const kiln_dispatch_batch_t* batch,
                               const kiln_dispatch_options_t* options,
                               kiln_pending_t** out_pending) {
  kiln_pending_t* pending = NULL;
  KILNI_RETURN_IF_ERROR(
      pipeline_dispatch_check_capture(plan, stream, out_pending != NULL, true));
  if (out_pending != NULL || pipeline->info.traps != 0) {
    KILNI_RETURN_IF_ERROR(
        pipeline_dispatch_make_pending(pipeline, plan, &pending));
  }
  kiln_status_t status = pipeline_dispatch_before(plan, stream, pending);
  if (kiln_status_is_ok(status)) {
    status = spread(pipeline, stream, batch, options,
                    pending != NULL ? pending->record : NULL);
    // Host memory of those before a failure may still be written.
    if (!kiln_status_is_ok(status)) {
      status = kilni_base_status_join(status, kiln_stream_synchronize(stream));
    }
    status = kilni_base_status_join(
        status, pipeline_dispatch_behind(plan, stream, pending));
  }
  if (!kiln_status_is_ok(status) || out_pending == NULL) {
    kiln_pending_release(pending);
    return status;
  }
  *out_pending = pending;
  return kiln_ok();
}

kiln_status_t kiln_pipeline_dispatch_batch(
    kiln_pipeline_t* pipeline, kiln_stream_t* stream,
    const kiln_dispatch_batch_t* batch, const kiln_dispatch_options_t* options,
    kiln_pending_t** out_pending) {
  if (out_pending != NULL) *out_pending = NULL;
  KILNI_CHECK_ARGUMENT(pipeline != NULL, "pipeline");
  kiln_dispatch_batch_t given;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(batch, "kiln_dispatch_batch_t",
                                                sizeof(given), &given));
  KILNI_CHECK_ARGUMENT(given.count > 0, "batch.count");
  KILNI_CHECK_ARGUMENT(given.bindings != NULL || given.binding_count == 0,
                       "batch.bindings");
  KILNI_RETURN_IF_ERROR(pipeline_dispatch_check_usable(pipeline));
  KILNI_RETURN_IF_ERROR(
      kilni_dispatch_stream(pipeline->dispatcher, stream, &stream));
  kilni_dispatch_plan_t plan;
  KILNI_RETURN_IF_ERROR(
      pipeline_dispatch_check_batch(pipeline, &given, options, &plan));
  const kiln_nvtx_table_t* ranges = pipeline->dispatcher->ranges;
  if (ranges != NULL) {
    kilni_dispatch_range_begin(ranges, KILNI_RANGE_DISPATCH, plan.label);
  }
  kiln_status_t status =
      run_batch(pipeline, &plan, stream, &given, options, out_pending);
  if (ranges != NULL) kilni_dispatch_range_end(ranges);
  if (kiln_status_is_ok(status)) {
    kilni_dispatch_count(pipeline->dispatcher->counters, KILNI_COUNTER_BATCHES,
                         1);
    return kiln_ok();
  }
  return KILNI_ANNOTATE(status, "dispatching a batch of \"%s\"", plan.label);
}
