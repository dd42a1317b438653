// SPDX-License-Identifier: Apache-2.0
//
// dispatch: what a dispatch would do: bindings, sizes, shape; and all that can
// be wrong with it, before anything is put on a device. Allocates nothing.
#include <string.h>

#include "base/options.h"
#include "base/status_make.h"
#include "dispatch/dispatch.h"
#include "dispatch/pipeline_inside.h"

#define NAME(pipeline, i) ((pipeline)->places[i].info.name)

// ---- Options ----

static kiln_status_t unsupported(const kilni_dispatch_plan_t* plan,
                                 const char* option, const char* fix) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED, "`%s` for \"%s\"", option, plan->label), "%s",
      fix);
}

static kiln_status_t check_ulp(const kiln_pipeline_t* pipeline,
                               const kilni_dispatch_plan_t* plan) {
  uint32_t wanted = plan->options.max_ulp;
  uint32_t has = pipeline->info.max_ulp;
  if (wanted == 0 || wanted == has ||
      (wanted == KILN_DISPATCH_STRICT && has == 0)) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "\"%s\" was made with `max_ulp` %u",
                 plan->label, (unsigned)has),
      "make another pipeline with the wanted `max_ulp`");
}

static kiln_status_t pipeline_plan_check_block(const kiln_pipeline_t* pipeline,
                                               kilni_dispatch_plan_t* plan) {
  uint32_t* block = plan->shown.block;
  const uint32_t* wanted = plan->options.block;
  memcpy(block, pipeline->info.block, sizeof(plan->shown.block));
  if (wanted[0] == 0 && wanted[1] == 0 && wanted[2] == 0) return kiln_ok();
  for (int i = 0; i < 3; i++) block[i] = wanted[i] == 0 ? 1 : wanted[i];
  if (memcmp(block, pipeline->info.block, sizeof(plan->shown.block)) == 0) {
    return kiln_ok();
  }
  if (pipeline->program != NULL) {
    return unsupported(plan, "block",
                       "write the block into the program: its code depends on "
                       "it");
  }
  kiln_launch_config_t config = kiln_launch_config_default();
  memcpy(config.block, block, sizeof(config.block));
  config.shared_bytes = pipeline->info.dynamic_shared_bytes;
  return kilni_device_launch_check_shape(pipeline->kernel, &config);
}

static kiln_status_t check_prepared(const kilni_dispatch_plan_t* plan) {
  const kiln_dispatch_options_t* options = &plan->options;
  const char* what = options->wait_count > 0    ? "waits"
                     : options->record != NULL  ? "record"
                     : options->timed != 0      ? "timed"
                     : options->timeout_ns != 0 ? "timeout_ns"
                     : options->iterations > 1  ? "iterations"
                                                : NULL;
  if (what == NULL) return kiln_ok();
  return unsupported(plan, what,
                     "record events on the stream before and after the run, or "
                     "dispatch it without preparing");
}

static kiln_status_t pipeline_plan_check_switches(
    const kilni_dispatch_plan_t* plan) {
  const kiln_dispatch_options_t* options = &plan->options;
  KILNI_CHECK_ARGUMENT(options->cooperative <= KILN_SWITCH_ON,
                       "options.cooperative");
  KILNI_CHECK_ARGUMENT(options->clear_outputs <= KILN_SWITCH_ON,
                       "options.clear_outputs");
  KILNI_CHECK_ARGUMENT(options->overlap <= KILN_SWITCH_ON, "options.overlap");
  KILNI_CHECK_ARGUMENT(options->timed <= KILN_SWITCH_ON, "options.timed");
  KILNI_CHECK_ARGUMENT(options->speculation <= KILN_DISPATCH_FORCE,
                       "options.speculation");
  KILNI_CHECK_ARGUMENT(options->persistent <= KILN_DISPATCH_FORCE,
                       "options.persistent");
  KILNI_CHECK_ARGUMENT(options->wait_count == 0 || options->waits != NULL,
                       "options.waits");
  return kiln_ok();
}

static kiln_status_t pipeline_plan_read_options(
    const kiln_pipeline_t* pipeline, const kiln_dispatch_options_t* options,
    bool prepares, kilni_dispatch_plan_t* plan) {
  if (options != NULL) {
    KILNI_RETURN_IF_ERROR(
        KILNI_OPTIONS_READ(options, kiln_dispatch_options_t, &plan->options));
  }
  plan->label =
      plan->options.label != NULL ? plan->options.label : pipeline->label;
  if (options == NULL) {
    memcpy(plan->shown.block, pipeline->info.block, sizeof(plan->shown.block));
    plan->options.iterations = 1;
    return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(pipeline_plan_check_switches(plan));
  if (plan->options.profile != NULL) {
    return unsupported(plan, "profile", "make another pipeline on that device");
  }
  if (plan->options.speculation == KILN_DISPATCH_FORCE) {
    return unsupported(plan, "speculation", "leave it at KILN_DISPATCH_AUTO");
  }
  if (plan->options.persistent == KILN_DISPATCH_FORCE) {
    return unsupported(plan, "persistent", "leave it at KILN_DISPATCH_AUTO");
  }
  if (plan->options.iterations == 0) plan->options.iterations = 1;
  if (prepares) KILNI_RETURN_IF_ERROR(check_prepared(plan));
  KILNI_RETURN_IF_ERROR(check_ulp(pipeline, plan));
  return pipeline_plan_check_block(pipeline, plan);
}

// ---- Bindings ----

static kiln_status_t pipeline_plan_refuse(const kiln_pipeline_t* pipeline,
                                          uint32_t index, const char* why,
                                          const char* fix) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "parameter %u (\"%s\") of \"%s\": %s",
                 (unsigned)index, NAME(pipeline, index), pipeline->label, why),
      "%s", fix);
}

static kiln_status_t pipeline_plan_check_range(const kiln_pipeline_t* pipeline,
                                               uint32_t index,
                                               const kiln_binding_t* binding,
                                               uint64_t size,
                                               kilni_dispatch_bound_t* bound) {
  uint64_t offset = binding->offset;
  bound->open = binding->bytes == 0;
  if (offset <= size && binding->bytes <= size - offset) {
    bound->bytes = bound->open ? size - offset : binding->bytes;
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(OUT_OF_RANGE,
                 "parameter %u (\"%s\") of \"%s\": %llu bytes at %llu of a "
                 "buffer of %llu",
                 (unsigned)index, NAME(pipeline, index), pipeline->label,
                 (unsigned long long)binding->bytes, (unsigned long long)offset,
                 (unsigned long long)size),
      "bind a range inside the buffer");
}

static kiln_status_t bind_resident(const kiln_pipeline_t* pipeline,
                                   uint32_t index,
                                   const kiln_binding_t* binding,
                                   kilni_dispatch_bound_t* bound) {
  kilni_dispatch_resident_view_t view = {0, 0};
  kiln_status_t status = kilni_dispatch_resident_look(
      pipeline->dispatcher, binding->value.resident, &view);
  if (!kiln_status_is_ok(status)) {
    return KILNI_ANNOTATE(status, "parameter %u (\"%s\") of \"%s\"",
                          (unsigned)index, NAME(pipeline, index),
                          pipeline->label);
  }
  bound->address = view.address + binding->offset;
  return pipeline_plan_check_range(pipeline, index, binding, view.bytes, bound);
}

static kiln_status_t bind_buffer(const kiln_pipeline_t* pipeline,
                                 uint32_t index, const kiln_binding_t* binding,
                                 kilni_dispatch_bound_t* bound) {
  const kiln_buffer_t* buffer = binding->value.buffer;
  if (buffer == NULL) {
    return pipeline_plan_refuse(pipeline, index, "no buffer", "bind one");
  }
  kiln_device_t* device = pipeline->dispatcher->device;
  if (buffer->device != device) {
    kiln_status_t status =
        kilni_device_check_memory(device, buffer->device, "the buffer");
    if (!kiln_status_is_ok(status)) {
      return KILNI_ANNOTATE(status, "parameter %u (\"%s\") of \"%s\"",
                            (unsigned)index, NAME(pipeline, index),
                            pipeline->label);
    }
  }
  bound->address = buffer->address + binding->offset;
  return pipeline_plan_check_range(pipeline, index, binding, buffer->size,
                                   bound);
}

static bool pipeline_plan_is_read(uint32_t role) {
  return role != KILN_PROGRAM_ROLE_OUT;
}

static bool pipeline_plan_is_written(uint32_t role) {
  return role == KILN_PROGRAM_ROLE_OUT || role == KILN_PROGRAM_ROLE_INOUT ||
         role == KILN_PROGRAM_ROLE_RESIDENT;
}

static kiln_status_t bind_host(const kiln_pipeline_t* pipeline, uint32_t index,
                               const kiln_binding_t* binding,
                               kilni_dispatch_plan_t* plan) {
  uint32_t role = pipeline->places[index].info.role;
  kilni_dispatch_bound_t* bound = &plan->bound[index];
  bound->uploads = binding->kind != KILN_BINDING_HOST_OUT;
  bound->downloads = binding->kind == KILN_BINDING_HOST_OUT ||
                     binding->kind == KILN_BINDING_HOST_INOUT;
  bound->bytes = binding->bytes;
  plan->has_host = plan->has_host || binding->bytes > 0;
  if (binding->value.in == NULL && binding->bytes > 0) {
    return pipeline_plan_refuse(pipeline, index, "no memory",
                                "bind memory of so many bytes");
  }
  if (role == KILN_PROGRAM_ROLE_RESIDENT) {
    return pipeline_plan_refuse(pipeline, index,
                                "host memory for data that stays on the device",
                                "bind a resident buffer");
  }
  if (pipeline_plan_is_written(role) && !bound->downloads) {
    return pipeline_plan_refuse(
        pipeline, index, "memory that is only read is written",
        "bind it with kiln_bind_host_out or kiln_bind_host_inout");
  }
  if (pipeline_plan_is_read(role) && !bound->uploads) {
    return pipeline_plan_refuse(
        pipeline, index, "memory that is only written is read",
        "bind it with kiln_bind_host_in or kiln_bind_host_inout");
  }
  if (!pipeline_plan_is_written(role) && bound->downloads) {
    return pipeline_plan_refuse(pipeline, index,
                                "memory that is only read was to be fetched",
                                "bind it with kiln_bind_host_in");
  }
  if (!pipeline_plan_is_read(role)) bound->uploads = false;
  return kiln_ok();
}

// Of memory that only its address is known of: whole words of it must end
// before addresses do.
static kiln_status_t check_extent(const kiln_pipeline_t* pipeline,
                                  uint32_t index,
                                  const kiln_binding_t* binding) {
  uint64_t address = binding->kind == KILN_BINDING_POINTER
                         ? binding->value.address
                         : (uintptr_t)binding->value.in;
  if (binding->bytes <= UINT64_MAX - 3 - address) return kiln_ok();
  return pipeline_plan_refuse(
      pipeline, index,
      "more bytes than the address space has after its address",
      "give the number of bytes");
}

static kiln_status_t bind_one(const kiln_pipeline_t* pipeline, uint32_t index,
                              const kiln_binding_t* binding, bool prepares,
                              kilni_dispatch_plan_t* plan) {
  const kilni_dispatch_place_t* place = &pipeline->places[index];
  kilni_dispatch_bound_t* bound = &plan->bound[index];
  memset(bound, 0, sizeof(*bound));
  if (binding->kind == KILN_BINDING_SCALAR) {
    if (place->is_buffer) {
      return pipeline_plan_refuse(
          pipeline, index, "a scalar for a buffer",
          "bind a buffer; bindings follow the order of the parameters");
    }
    if (binding->type != place->info.type) {
      return kilni_base_status_with_fix(
          KILNI_FAIL(INVALID_ARGUMENT,
                     "parameter %u (\"%s\") of \"%s\" is of type %s, not %s",
                     (unsigned)index, NAME(pipeline, index), pipeline->label,
                     kiln_program_type_name(place->info.type),
                     kiln_program_type_name(binding->type)),
          "bind a value of its type");
    }
    bound->value = binding->value.bits;
    if (place->info.type_bytes < 8) {
      bound->value &= (UINT64_C(1) << (8 * place->info.type_bytes)) - 1;
    }
    return kiln_ok();
  }
  if (!place->is_buffer) {
    return pipeline_plan_refuse(pipeline, index, "not a scalar",
                                "bind a value (kiln_bind_scalar)");
  }
  if (binding->kind == KILN_BINDING_RESIDENT) {
    return bind_resident(pipeline, index, binding, bound);
  }
  if (binding->kind == KILN_BINDING_BUFFER) {
    return bind_buffer(pipeline, index, binding, bound);
  }
  KILNI_RETURN_IF_ERROR(check_extent(pipeline, index, binding));
  switch (binding->kind) {
    case KILN_BINDING_POINTER:
      bound->address = binding->value.address;
      bound->bytes = binding->bytes;
      if (bound->address != 0 || bound->bytes == 0) return kiln_ok();
      return pipeline_plan_refuse(pipeline, index, "bytes at address 0",
                                  "bind the address of device memory");
    case KILN_BINDING_HOST_IN:
    case KILN_BINDING_HOST_OUT:
    case KILN_BINDING_HOST_INOUT:
      if (!prepares) return bind_host(pipeline, index, binding, plan);
      return kilni_base_status_with_fix(
          KILNI_FAIL(UNSUPPORTED,
                     "parameter %u (\"%s\") of \"%s\": host memory in a "
                     "prepared dispatch",
                     (unsigned)index, NAME(pipeline, index), pipeline->label),
          "bind a resident buffer, or kiln_bind_static for what never changes");
    case KILN_BINDING_STATIC:
      if (!prepares) {
        return pipeline_plan_refuse(
            pipeline, index, "STATIC outside a prepared dispatch",
            "prepare it, or bind it with kiln_bind_host_in");
      }
      if (pipeline_plan_is_written(place->info.role)) {
        return pipeline_plan_refuse(pipeline, index,
                                    "STATIC for memory that is written",
                                    "bind a resident buffer");
      }
      bound->uploads = true;
      bound->bytes = binding->bytes;
      if (binding->value.in != NULL || binding->bytes == 0) return kiln_ok();
      return pipeline_plan_refuse(pipeline, index, "no memory",
                                  "bind so many bytes");
    default:
      return pipeline_plan_refuse(pipeline, index,
                                  "a binding of an unknown kind",
                                  "make it with a kiln_bind_... function");
  }
}

static kiln_status_t badly_aligned(const kiln_pipeline_t* pipeline,
                                   uint32_t index,
                                   const kilni_dispatch_bound_t* bound) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "parameter %u (\"%s\") of \"%s\": address 0x%llx is not a "
                 "multiple of %u",
                 (unsigned)index, NAME(pipeline, index), pipeline->label,
                 (unsigned long long)bound->address,
                 (unsigned)pipeline->places[index].align),
      "bind it at an offset that is a multiple of its elements");
}

static kiln_status_t pipeline_plan_check_elements(
    const kiln_pipeline_t* pipeline, uint32_t index,
    kilni_dispatch_bound_t* bound) {
  const kilni_dispatch_place_t* place = &pipeline->places[index];
  uint32_t size = place->info.type_bytes;
  if ((bound->address & (place->align - 1)) != 0) {
    return badly_aligned(pipeline, index, bound);
  }
  bound->value = place->shift != KILNI_NO_SHIFT ? bound->bytes >> place->shift
                                                : bound->bytes / size;
  if (bound->value * size == bound->bytes ||
      (bound->open && place->info.is_counted != 0)) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "parameter %u (\"%s\") of \"%s\": %llu bytes are not whole "
                 "elements of %u bytes",
                 (unsigned)index, NAME(pipeline, index), pipeline->label,
                 (unsigned long long)bound->bytes, (unsigned)size),
      "bind a multiple of the element's size");
}

static kiln_status_t pipeline_plan_bind_all(const kiln_pipeline_t* pipeline,
                                            const kiln_binding_t* bindings,
                                            uint32_t count, bool prepares,
                                            kilni_dispatch_plan_t* plan) {
  if (count != pipeline->info.parameter_count) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "\"%s\" takes %u binding%s, not %u",
                   pipeline->label, (unsigned)pipeline->info.parameter_count,
                   pipeline->info.parameter_count == 1 ? "" : "s",
                   (unsigned)count),
        "give one binding for each parameter; shared ones have none");
  }
  KILNI_CHECK_ARGUMENT(bindings != NULL || count == 0, "bindings");
  for (uint32_t i = 0; i < count; i++) {
    KILNI_RETURN_IF_ERROR(bind_one(pipeline, i, &bindings[i], prepares, plan));
    if (!pipeline->places[i].is_buffer) continue;
    KILNI_RETURN_IF_ERROR(
        pipeline_plan_check_elements(pipeline, i, &plan->bound[i]));
  }
  return kiln_ok();
}

// ---- Sizes ----

static kiln_status_t take_count(const kiln_pipeline_t* pipeline, uint32_t index,
                                uint64_t count, kilni_dispatch_bound_t* bound) {
  uint32_t size = pipeline->places[index].info.type_bytes;
  if (count == bound->value) {
    // The pipeline specifies how many; bytes past them are unused.
    bound->bytes = count * size;
    return kiln_ok();
  }
  if (bound->open && count < bound->value) {
    bound->value = count;
    bound->bytes = count * size;
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "parameter %u (\"%s\") of \"%s\" has %llu elements; the "
                 "pipeline specifies %llu",
                 (unsigned)index, NAME(pipeline, index), pipeline->label,
                 (unsigned long long)bound->value, (unsigned long long)count),
      "bind a buffer of the size that the pipeline specifies");
}

// A number that does not come from the caller; false for one that does.
static bool find_number(const kilni_dispatch_plan_t* plan,
                        const kiln_interface_number_t* number,
                        uint64_t* out_value) {
  *out_value = number->value;
  if (number->from == KILN_INTERFACE_BY_CALLER) return false;
  if (number->from != KILN_INTERFACE_BY_VALUE) {
    *out_value = plan->bound[number->of].value;
  }
  return true;
}

static kiln_status_t numbers(const kiln_pipeline_t* pipeline,
                             kilni_dispatch_plan_t* plan) {
  uint64_t value;
  for (uint32_t i = 0; i < pipeline->info.parameter_count; i++) {
    const kilni_dispatch_place_t* place = &pipeline->places[i];
    if (!place->is_buffer) continue;
    if (!find_number(plan, &place->count, &value)) {
      value = plan->bound[i].value;
    }
    KILNI_RETURN_IF_ERROR(take_count(pipeline, i, value, &plan->bound[i]));
  }
  for (int i = 0; i < 3; i++) {
    if (!find_number(plan, &pipeline->work[i], &value) ||
        (pipeline->work[i].from == KILN_INTERFACE_BY_VALUE && value == 0)) {
      value = 1;
    }
    plan->shown.work[i] = value;
  }
  return kiln_ok();
}

// Whether the numbers are such that nothing else has to be asked of a program:
// what is large it refuses in its own words.
static bool all_small(const kiln_pipeline_t* pipeline,
                      const kilni_dispatch_plan_t* plan) {
  for (uint32_t i = 0; i < pipeline->info.parameter_count; i++) {
    if (pipeline->places[i].is_buffer && plan->bound[i].value > UINT32_MAX) {
      return false;
    }
  }
  return plan->shown.work[0] <= UINT32_MAX &&
         plan->shown.work[1] <= UINT32_MAX && plan->shown.work[2] <= UINT32_MAX;
}

static kiln_status_t program_sizes(const kiln_pipeline_t* pipeline,
                                   kilni_dispatch_plan_t* plan) {
  if (pipeline->simple) {
    KILNI_RETURN_IF_ERROR(numbers(pipeline, plan));
    if (all_small(pipeline, plan)) return kiln_ok();
  }
  kiln_program_size_t sizes[KILNI_PIPELINE_PARAMETERS];
  uint32_t count = pipeline->info.parameter_count;
  for (uint32_t i = 0; i < count; i++) {
    const kilni_dispatch_place_t* place = &pipeline->places[i];
    sizes[i].bits = place->is_buffer ? 0 : plan->bound[i].value;
    sizes[i].count = !place->is_buffer || (place->info.is_counted != 0 &&
                                           plan->bound[i].open)
                         ? KILN_PROGRAM_COUNT_UNKNOWN
                         : plan->bound[i].value;
  }
  KILNI_RETURN_IF_ERROR(
      kiln_program_sizes(pipeline->program, sizes, plan->shown.work));
  for (uint32_t i = 0; i < count; i++) {
    if (!pipeline->places[i].is_buffer) continue;
    KILNI_RETURN_IF_ERROR(
        take_count(pipeline, i, sizes[i].count, &plan->bound[i]));
  }
  return kiln_ok();
}

// ---- Shape ----

// An option specifies it: the work size, or the grid alone.
static kiln_status_t work_of_caller(const kiln_pipeline_t* pipeline,
                                    kilni_dispatch_plan_t* plan) {
  const kiln_dispatch_options_t* options = &plan->options;
  bool has_grid = false;
  bool has_work = false;
  for (int i = 0; i < 3; i++) {
    has_grid = has_grid || options->grid[i] != 0;
    has_work = has_work || options->work[i] != 0;
  }
  if (!has_grid && !has_work) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "the work size of \"%s\" is unknown",
                   plan->label),
        "give `work` or `grid` in the options of the dispatch");
  }
  for (int i = 0; i < 3; i++) {
    uint64_t grid = options->grid[i] == 0 ? 1 : options->grid[i];
    uint64_t per_block =
        (uint64_t)plan->shown.block[i] * pipeline->info.work_per_thread[i];
    plan->shown.work[i] = has_work ? options->work[i] : grid * per_block;
    if (plan->shown.work[i] == 0) plan->shown.work[i] = 1;
  }
  return kiln_ok();
}

// Whether the kernel is given its work size.
static bool takes_work(const kiln_pipeline_t* pipeline) {
  for (uint32_t i = 0; i < pipeline->argument_count; i++) {
    if (pipeline->arguments[i].kind == KILN_INTERFACE_WORK) return true;
  }
  return pipeline->program != NULL;
}

static kiln_status_t check_work(const kiln_pipeline_t* pipeline,
                                kilni_dispatch_plan_t* plan) {
  if (pipeline->info.work_dimensions == 0) {
    KILNI_RETURN_IF_ERROR(work_of_caller(pipeline, plan));
  } else if (plan->options.work[0] != 0 || plan->options.work[1] != 0 ||
             plan->options.work[2] != 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "`work` for \"%s\", which specifies its own work size",
                   plan->label),
        "omit `work`");
  }
  for (int i = 0; i < 3; i++) {
    if (plan->shown.work[i] <= UINT32_MAX || !takes_work(pipeline)) continue;
    return kilni_base_status_with_fix(
        KILNI_FAIL(OUT_OF_RANGE,
                   "the work size of \"%s\" is over 2^32 - 1 along an axis",
                   plan->label),
        "use smaller buffers, or divide the work");
  }
  return kiln_ok();
}

static kiln_status_t too_few_blocks(const kilni_dispatch_plan_t* plan, int axis,
                                    uint64_t needed) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "`grid` of %u blocks along axis %d for \"%s\", whose work "
                 "needs %llu",
                 (unsigned)plan->options.grid[axis], axis, plan->label,
                 (unsigned long long)needed),
      "omit `grid`, or give as many blocks as are needed");
}

static kiln_status_t pipeline_plan_make_grid(const kiln_pipeline_t* pipeline,
                                             kilni_dispatch_plan_t* plan) {
  const kiln_device_info_t* device = &pipeline->dispatcher->device->info;
  static const char* const kNames[] = {"grid.x", "grid.y", "grid.z"};
  for (int i = 0; i < 3; i++) {
    uint64_t per_block =
        (uint64_t)plan->shown.block[i] * pipeline->info.work_per_thread[i];
    uint64_t work = plan->shown.work[i];
    uint64_t needed =
        work <= per_block ? work != 0 : (work + per_block - 1) / per_block;
    uint64_t blocks = needed;
    plan->idle = plan->idle || needed == 0;
    if (plan->options.grid[i] != 0) {
      blocks = plan->options.grid[i];
      if (blocks < needed) return too_few_blocks(plan, i, needed);
    }
    if (blocks > device->max_grid[i]) {
      return kilni_device_launch_over(pipeline->kernel, kNames[i], blocks,
                                      device->max_grid[i], "the device");
    }
    plan->shown.grid[i] = blocks == 0 ? 1 : (uint32_t)blocks;
  }
  return kiln_ok();
}

// ---- How it is launched ----

static kiln_status_t check_overlap_option(const kiln_pipeline_t* pipeline,
                                          const kilni_dispatch_plan_t* plan) {
  if (plan->options.overlap != KILN_SWITCH_ON) return kiln_ok();
  if (plan->shown.cooperative != 0) {
    return unsupported(plan, "overlap",
                       "its blocks all run at once, and the preceding kernel "
                       "may occupy their multiprocessors; omit `overlap`");
  }
  if (pipeline->info.waits == 0) {
    return unsupported(plan, "overlap",
                       "its code does not wait for the preceding kernel "
                       "(griddepcontrol.wait); omit `overlap`");
  }
  return kiln_ok();
}

static kiln_status_t check_cooperative(const kiln_pipeline_t* pipeline,
                                       kilni_dispatch_plan_t* plan) {
  uint32_t option = plan->options.cooperative;
  plan->shown.cooperative =
      pipeline->info.cooperative != 0 || option == KILN_SWITCH_ON;
  if (pipeline->info.cooperative != 0 && option == KILN_SWITCH_OFF) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "`cooperative` off for \"%s\", which has a grid barrier",
                   plan->label),
        "omit `cooperative`");
  }
  if (plan->shown.cooperative == 0 ||
      kiln_dispatcher_has_grid_barrier(pipeline->dispatcher)) {
    return kiln_ok();
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED,
                 "`cooperative` for \"%s\": device \"%s\" has no cooperative "
                 "launches",
                 plan->label, pipeline->dispatcher->device->name),
      "omit `cooperative`, or use another device");
}

static kiln_status_t make_how(kiln_pipeline_t* pipeline,
                              kilni_dispatch_plan_t* plan) {
  const kiln_dispatch_options_t* options = &plan->options;
  KILNI_RETURN_IF_ERROR(check_cooperative(pipeline, plan));
  KILNI_RETURN_IF_ERROR(check_overlap_option(pipeline, plan));
  bool own_block = memcmp(plan->shown.block, pipeline->info.block,
                          sizeof(plan->shown.block)) != 0;
  bool asks = options->overlap == KILN_SWITCH_ON || options->priority != 0;
  bool in_clusters = pipeline->kernel->in_clusters;
  plan->has_how = plan->shown.cooperative != 0 || asks || in_clusters;
  if (!plan->has_how) return kiln_ok();
  if (pipeline->info.cooperative != 0 && !asks && !own_block && !in_clusters) {
    plan->how = pipeline->how;
  } else {
    kiln_launch_attributes_t attributes = kiln_launch_attributes_default();
    kiln_launch_config_t config = kiln_launch_config_default();
    memcpy(config.block, plan->shown.block, sizeof(config.block));
    memcpy(config.grid, plan->shown.grid, sizeof(config.grid));
    config.shared_bytes = pipeline->info.dynamic_shared_bytes;
    config.attributes = &attributes;
    if (plan->shown.cooperative) attributes.cooperative = KILN_SWITCH_ON;
    if (options->overlap == KILN_SWITCH_ON) attributes.overlap = KILN_SWITCH_ON;
    if (options->priority != 0) {
      attributes.given = KILN_LAUNCH_GIVEN_PRIORITY;
      attributes.priority = options->priority;
    }
    KILNI_RETURN_IF_ERROR(
        kilni_device_launch_how(pipeline->kernel, &config, &plan->how));
  }
  return kilni_device_launch_check_resident(
      pipeline->kernel, &plan->how, pipeline->dispatcher->device,
      (uint64_t)plan->shown.grid[0] * plan->shown.grid[1] *
          plan->shown.grid[2]);
}

// ---- Buffers among each other, and what is moved ----

void kilni_dispatch_pipeline_keep_options(kiln_pipeline_t* pipeline) {
  pipeline->keeps_options = true;
}

static kiln_status_t overlap(const kiln_pipeline_t* pipeline, uint32_t written,
                             uint32_t other) {
  if (pipeline->info.overlapping == 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "parameters \"%s\" and \"%s\" of \"%s\" overlap, and the "
                   "first is written",
                   NAME(pipeline, written), NAME(pipeline, other),
                   pipeline->label),
        "bind memory that does not overlap%s",
        pipeline->keeps_options ? ""
                                : ", or make the pipeline with `overlapping`");
  }
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "parameters \"%s\" and \"%s\" of \"%s\" overlap, and the "
                 "first is written: an operation of all threads together, such "
                 "as a barrier, depends on what they read in the second, which "
                 "must be the same for all",
                 NAME(pipeline, written), NAME(pipeline, other),
                 pipeline->label),
      "bind memory to \"%s\" that the dispatch does not write",
      NAME(pipeline, other));
}

static kiln_status_t check_overlaps(const kiln_pipeline_t* pipeline,
                                    const kilni_dispatch_plan_t* plan) {
  bool apart = pipeline->info.overlapping == 0;
  for (uint32_t i = 0; i < pipeline->info.parameter_count; i++) {
    const kilni_dispatch_bound_t* a = &plan->bound[i];
    if (!pipeline_plan_is_written(pipeline->places[i].info.role) ||
        a->address == 0) {
      continue;
    }
    for (uint32_t j = 0; j < pipeline->info.parameter_count; j++) {
      const kilni_dispatch_bound_t* b = &plan->bound[j];
      if (i == j || b->address == 0 || a->address >= b->address + b->bytes ||
          b->address >= a->address + a->bytes) {
        continue;
      }
      if (apart || pipeline->places[j].relied_on) {
        return overlap(pipeline, i, j);
      }
    }
  }
  return kiln_ok();
}

static uint64_t whole_words(uint64_t bytes) {
  return (bytes + 3) / 4 * 4;
}

static kiln_status_t add_up(const kiln_pipeline_t* pipeline,
                            kilni_dispatch_plan_t* plan) {
  kiln_dispatch_plan_t* shown = &plan->shown;
  uint32_t clear = plan->options.clear_outputs;
  for (uint32_t i = 0; i < pipeline->info.parameter_count; i++) {
    const kilni_dispatch_place_t* place = &pipeline->places[i];
    kilni_dispatch_bound_t* bound = &plan->bound[i];
    if (!place->is_buffer) continue;
    if (place->info.role == KILN_PROGRAM_ROLE_OUT && bound->bytes > 0 &&
        (clear == KILN_SWITCH_ON ||
         (clear == KILN_SWITCH_DEFAULT &&
          (place->info.writes_all == 0 || plan->idle)))) {
      bound->clears = true;
      shown->cleared_bytes += bound->bytes;
    }
    if (bound->uploads) shown->upload_bytes += bound->bytes;
    if (bound->downloads) shown->download_bytes += bound->bytes;
    if (bound->uploads || bound->downloads) {
      shown->device_bytes += whole_words(bound->bytes);
    }
  }
  if (pipeline->info.grid_barrier) shown->device_bytes += KILNI_GRID_BYTES;
  shown->shared_bytes =
      pipeline->info.static_shared_bytes + pipeline->info.dynamic_shared_bytes;
  uint64_t most = plan->options.max_output_bytes;
  if (most == 0 || shown->download_bytes <= most) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED,
                 "\"%s\" would copy %llu bytes to the host; "
                 "`max_output_bytes` is %llu",
                 plan->label, (unsigned long long)shown->download_bytes,
                 (unsigned long long)most),
      "allow more, or bind resident buffers and fetch what is needed");
}

// In parts: compilers turn them into stores, but a larger clear into a string
// instruction, whose startup takes longer than all of this.
static void begin_plan(kilni_dispatch_plan_t* plan) {
  enum { PIECE = 64, PIECES = offsetof(kilni_dispatch_plan_t, how) / PIECE };
  uint8_t* at = (uint8_t*)plan;
  memset(at + PIECE * PIECES, 0, offsetof(kilni_dispatch_plan_t, how) % PIECE);
  for (uint32_t i = 0; i < PIECES; i++, at += PIECE) memset(at, 0, PIECE);
}

kiln_status_t kilni_dispatch_plan_make(kiln_pipeline_t* pipeline,
                                       const kiln_binding_t* bindings,
                                       uint32_t count,
                                       const kiln_dispatch_options_t* options,
                                       bool prepares,
                                       kilni_dispatch_plan_t* plan) {
  begin_plan(plan);
  if (options == NULL &&
      kilni_dispatch_quick_plan(pipeline, bindings, count, plan)) {
    return kiln_ok();
  }
  begin_plan(plan);
  KILNI_RETURN_IF_ERROR(
      pipeline_plan_read_options(pipeline, options, prepares, plan));
  KILNI_RETURN_IF_ERROR(
      pipeline_plan_bind_all(pipeline, bindings, count, prepares, plan));
  KILNI_RETURN_IF_ERROR(pipeline->program != NULL
                            ? program_sizes(pipeline, plan)
                            : numbers(pipeline, plan));
  KILNI_RETURN_IF_ERROR(check_work(pipeline, plan));
  KILNI_RETURN_IF_ERROR(pipeline_plan_make_grid(pipeline, plan));
  KILNI_RETURN_IF_ERROR(make_how(pipeline, plan));
  KILNI_RETURN_IF_ERROR(check_overlaps(pipeline, plan));
  return add_up(pipeline, plan);
}

kiln_status_t kiln_pipeline_plan(kiln_pipeline_t* pipeline,
                                 const kiln_binding_t* bindings,
                                 uint32_t binding_count,
                                 const kiln_dispatch_options_t* options,
                                 kiln_dispatch_plan_t* out_plan) {
  KILNI_CHECK_ARGUMENT(out_plan != NULL, "out_plan");
  memset(out_plan, 0, sizeof(*out_plan));
  KILNI_CHECK_ARGUMENT(pipeline != NULL, "pipeline");
  kilni_dispatch_plan_t plan;
  KILNI_RETURN_IF_ERROR(kilni_dispatch_plan_make(
      pipeline, bindings, binding_count, options, false, &plan));
  *out_plan = plan.shown;
  return kiln_ok();
}

void kilni_dispatch_plan_launch(const kiln_pipeline_t* pipeline,
                                const kilni_dispatch_plan_t* plan,
                                kiln_launch_config_t* out_config,
                                kiln_launch_attributes_t* out_attributes) {
  *out_config = kiln_launch_config_default();
  *out_attributes = kiln_launch_attributes_default();
  memcpy(out_config->grid, plan->shown.grid, sizeof(out_config->grid));
  memcpy(out_config->block, plan->shown.block, sizeof(out_config->block));
  out_config->shared_bytes = pipeline->info.dynamic_shared_bytes;
  if (plan->shown.cooperative) out_attributes->cooperative = KILN_SWITCH_ON;
  if (plan->options.overlap == KILN_SWITCH_ON) {
    out_attributes->overlap = KILN_SWITCH_ON;
  }
  if (plan->options.priority != 0) {
    out_attributes->given = KILN_LAUNCH_GIVEN_PRIORITY;
    out_attributes->priority = plan->options.priority;
  }
  if (plan->has_how) out_config->attributes = out_attributes;
}
