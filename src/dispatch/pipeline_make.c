// SPDX-License-Identifier: Apache-2.0
//
// dispatch: pipelines as objects, and those of programs.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "dispatch/pipeline_inside.h"
#include "kiln/compat.h"
#include "program/program.h"

enum { ARCH_BYTES = 32 };

// ---- Objects ----

static void pipeline_make_destroy(kiln_pipeline_t* pipeline) {
  kiln_dispatcher_t* dispatcher = pipeline->dispatcher;
  kiln_allocator_t allocator = dispatcher->allocator;
  for (uint32_t i = 0;
       pipeline->places != NULL && i < pipeline->info.parameter_count; i++) {
    kilni_dispatch_place_t* place = &pipeline->places[i];
    if (!place->has_own_name) continue;
    char* name = NULL;
    memcpy(&name, &place->info.name, sizeof(name));
    kilni_base_free(allocator, name, strlen(name) + 1);
  }
  kilni_base_free_array(allocator, pipeline->places,
                        pipeline->info.parameter_count,
                        sizeof(kilni_dispatch_place_t));
  kilni_base_free_array(allocator, pipeline->arguments,
                        pipeline->argument_count,
                        sizeof(kilni_dispatch_argument_source_t));
  kilni_base_free(allocator, pipeline->constants, pipeline->constant_bytes);
  if (pipeline->label != NULL) {
    kilni_base_free(allocator, pipeline->label, strlen(pipeline->label) + 1);
  }
  kiln_kernel_release(pipeline->kernel);
  kiln_program_code_release(pipeline->code);
  kiln_program_release(pipeline->program);
  kilni_base_free(allocator, pipeline, sizeof(*pipeline));
  atomic_fetch_sub(&dispatcher->pipelines, 1);
  kiln_dispatcher_release(dispatcher);
}

static kiln_status_t pipeline_make_fill(kiln_pipeline_t* pipeline,
                                        const char* label) {
  kiln_allocator_t allocator = pipeline->dispatcher->allocator;
  void* block = NULL;
  size_t size = strlen(label) + 1;
  KILNI_RETURN_IF_ERROR(kilni_base_alloc_unset(allocator, size, &block));
  pipeline->label = block;
  memcpy(pipeline->label, label, size);
  pipeline->info.label = pipeline->label;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(allocator, pipeline->info.parameter_count,
                             sizeof(kilni_dispatch_place_t), &block));
  pipeline->places = block;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_array(allocator, pipeline->argument_count,
                             sizeof(kilni_dispatch_argument_source_t), &block));
  pipeline->arguments = block;
  return kiln_ok();
}

kiln_status_t kilni_dispatch_pipeline_make(kiln_dispatcher_t* dispatcher,
                                           const char* label,
                                           uint32_t parameters,
                                           uint32_t arguments,
                                           kiln_pipeline_t** out_pipeline) {
  void* block = NULL;
  *out_pipeline = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(dispatcher->allocator, sizeof(kiln_pipeline_t), &block));
  kiln_pipeline_t* pipeline = block;
  pipeline->dispatcher = dispatcher;
  pipeline->argument_count = arguments;
  pipeline->trace = kiln_pipeline_trace_default();
  pipeline->info.parameter_count = parameters;
  for (int i = 0; i < 3; i++) pipeline->info.work_per_thread[i] = 1;
  atomic_init(&pipeline->references, 1);
  kiln_dispatcher_retain(dispatcher);
  atomic_fetch_add(&dispatcher->pipelines, 1);
  kiln_status_t status = pipeline_make_fill(pipeline, label);
  if (!kiln_status_is_ok(status)) {
    pipeline_make_destroy(pipeline);
    return status;
  }
  *out_pipeline = pipeline;
  return kiln_ok();
}

void kiln_pipeline_retain(kiln_pipeline_t* pipeline) {
  if (pipeline == NULL) return;
  atomic_fetch_add_explicit(&pipeline->references, 1, memory_order_relaxed);
}

void kiln_pipeline_release(kiln_pipeline_t* pipeline) {
  if (pipeline == NULL ||
      kilni_device_is_forked(pipeline->dispatcher->device)) {
    return;
  }
  if (atomic_fetch_sub_explicit(&pipeline->references, 1,
                                memory_order_acq_rel) == 1) {
    pipeline_make_destroy(pipeline);
  }
}

static void note_use(kiln_pipeline_t* pipeline,
                     const kiln_interface_number_t* number) {
  if (number->from == KILN_INTERFACE_BY_SCALAR) {
    pipeline->places[number->of].sizes_use = true;
  }
}

// Where a plan has the value of an argument.
static uint32_t pipeline_make_offset_of(
    const kilni_dispatch_argument_source_t* argument) {
  size_t bound = offsetof(kilni_dispatch_plan_t, bound);
  size_t at = 0;
  switch (argument->kind) {
    case KILN_INTERFACE_BUFFER:
      at = bound + argument->of * sizeof(kilni_dispatch_bound_t) +
           offsetof(kilni_dispatch_bound_t, address);
      break;
    case KILN_INTERFACE_SCALAR:
    case KILN_INTERFACE_LENGTH:
      at = bound + argument->of * sizeof(kilni_dispatch_bound_t) +
           offsetof(kilni_dispatch_bound_t, value);
      break;
    case KILN_INTERFACE_WORK:
      at = offsetof(kilni_dispatch_plan_t, shown) +
           offsetof(kiln_dispatch_plan_t, work) +
           argument->of * sizeof(uint64_t);
      break;
    case KILN_INTERFACE_TRAP:
      at = offsetof(kilni_dispatch_plan_t, extras) +
           offsetof(kilni_dispatch_extras_t, trap);
      break;
    default:
      at = offsetof(kilni_dispatch_plan_t, extras) +
           offsetof(kilni_dispatch_extras_t, grid);
      break;
  }
  return (uint32_t)at;
}

static void see_scalars(kiln_pipeline_t* pipeline) {
  bool opaque = pipeline->program != NULL && !pipeline->simple;
  for (uint32_t i = 0; i < pipeline->info.parameter_count; i++) {
    pipeline->places[i].sizes_use |= opaque;
    note_use(pipeline, &pipeline->places[i].count);
  }
  for (int i = 0; i < 3; i++) note_use(pipeline, &pipeline->work[i]);
  for (uint32_t i = 0; i < pipeline->argument_count; i++) {
    if (pipeline->arguments[i].kind == KILN_INTERFACE_SCALAR) {
      pipeline->places[pipeline->arguments[i].of].argument = i;
    }
    pipeline->arguments[i].offset =
        pipeline_make_offset_of(&pipeline->arguments[i]);
  }
}

static void see_elements(kiln_pipeline_t* pipeline) {
  for (uint32_t i = 0; i < pipeline->info.parameter_count; i++) {
    kilni_dispatch_place_t* place = &pipeline->places[i];
    uint32_t size = place->info.type_bytes;
    place->shift = KILNI_NO_SHIFT;
    // Structs are as their compiler lays them out; elements of a type, as long
    // as they are.
    place->align = size & (0u - size);
    if (place->align == size && size != 0) {
      place->shift = (uint32_t)__builtin_ctz(size);
    }
    if (place->align > 16) place->align = 16;
  }
}

// A kernel defines its clusters: a dispatch cannot specify them. Its minimum
// grid is one cluster.
static kiln_status_t take_clusters(const kiln_pipeline_t* pipeline,
                                   kiln_launch_config_t* config) {
  const kiln_kernel_t* kernel = pipeline->kernel;
  if (!kernel->in_clusters) return kiln_ok();
  if (kernel->cluster[0] == 0) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(
            UNSUPPORTED,
            "\"%s\" is launched in clusters only, and pipelines specify none",
            pipeline->label),
        "compile the kernel with a size of its own (`.reqnctapercluster`, "
        "`__cluster_dims__`), or launch it with kiln_kernel_launch");
  }
  memcpy(config->grid, kernel->cluster, sizeof(config->grid));
  return kiln_ok();
}

kiln_status_t kilni_dispatch_pipeline_finish(kiln_pipeline_t* pipeline) {
  kiln_pipeline_info_t* info = &pipeline->info;
  kiln_launch_config_t config = kiln_launch_config_default();
  kiln_launch_attributes_t attributes = kiln_launch_attributes_default();
  memcpy(config.block, info->block, sizeof(config.block));
  config.shared_bytes = info->dynamic_shared_bytes;
  KILNI_RETURN_IF_ERROR(
      kilni_device_launch_check_shape(pipeline->kernel, &config));
  KILNI_RETURN_IF_ERROR(
      kilni_device_launch_need_shared(pipeline->kernel, &config));
  KILNI_RETURN_IF_ERROR(take_clusters(pipeline, &config));
  memcpy(info->block, config.block, sizeof(config.block));
  info->registers = pipeline->kernel->info.registers;
  info->static_shared_bytes = pipeline->kernel->info.static_shared_bytes;
  see_scalars(pipeline);
  see_elements(pipeline);
  kilni_dispatch_quick_see(pipeline);
  kilni_dispatch_count(pipeline->dispatcher->counters, KILNI_COUNTER_PIPELINES,
                       1);
  if (!info->cooperative) return kiln_ok();
  if (!kiln_dispatcher_has_grid_barrier(pipeline->dispatcher)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED,
                   "\"%s\" has a grid barrier, and device \"%s\" no "
                   "cooperative launches",
                   pipeline->label, pipeline->dispatcher->device->name),
        "use a device with cooperative launches, or divide the work into two "
        "pipelines at the barrier");
  }
  attributes.cooperative = KILN_SWITCH_ON;
  config.attributes = &attributes;
  return kilni_device_launch_how(pipeline->kernel, &config, &pipeline->how);
}

// ---- Questions ----

const kiln_pipeline_info_t* kiln_pipeline_info(
    const kiln_pipeline_t* pipeline) {
  return &pipeline->info;
}

bool kiln_pipeline_parameter(const kiln_pipeline_t* pipeline, uint32_t index,
                             kiln_pipeline_parameter_t* out_parameter) {
  memset(out_parameter, 0, sizeof(*out_parameter));
  if (index >= pipeline->info.parameter_count) return false;
  *out_parameter = pipeline->places[index].info;
  return true;
}

bool kiln_pipeline_find_parameter(const kiln_pipeline_t* pipeline,
                                  const char* name, uint32_t* out_index) {
  *out_index = 0;
  for (uint32_t i = 0; i < pipeline->info.parameter_count; i++) {
    if (strcmp(pipeline->places[i].info.name, name) != 0) continue;
    *out_index = i;
    return true;
  }
  return false;
}

kiln_dispatcher_t* kiln_pipeline_dispatcher(const kiln_pipeline_t* pipeline) {
  return pipeline->dispatcher;
}

kiln_kernel_t* kiln_pipeline_kernel(const kiln_pipeline_t* pipeline) {
  return pipeline->kernel;
}

kiln_program_code_t* kiln_pipeline_code(const kiln_pipeline_t* pipeline) {
  return pipeline->code;
}

// ---- Of a program ----

// The index-th buffer or scalar among the parameters.
static uint32_t pipeline_make_nth(const kiln_pipeline_t* pipeline,
                                  uint32_t index, bool buffer) {
  for (uint32_t i = 0; i < pipeline->info.parameter_count; i++) {
    if (pipeline->places[i].is_buffer == buffer && index-- == 0) return i;
  }
  return 0;
}

static void pipeline_make_take_parameters(kiln_pipeline_t* pipeline) {
  kiln_program_parameter_info_t p;
  for (uint32_t i = 0; kiln_program_parameter(pipeline->program, i, &p); i++) {
    kilni_dispatch_place_t* place = &pipeline->places[i];
    place->is_buffer = p.role != KILN_PROGRAM_ROLE_NONE;
    place->info.name = p.name;
    place->info.type = p.type;
    place->info.type_bytes = p.type_bytes;
    place->info.role = p.role;
    place->info.is_counted = p.is_counted;
    place->info.writes_all = kilni_program_writes_all(pipeline->program, i);
  }
}

// Without `overlapping` no parameter that is only read is written.
static kiln_status_t see_relied_on(kiln_pipeline_t* pipeline) {
  uint32_t count = pipeline->info.overlapping != 0
                       ? kiln_program_parameter_count(pipeline->program)
                       : 0;
  for (uint32_t i = 0; i < count; i++) {
    KILNI_RETURN_IF_ERROR(kilni_program_relies_on(
        pipeline->program, i, &pipeline->places[i].relied_on));
  }
  return kiln_ok();
}

// Turns a number of the program into one that a dispatch reads without the
// program; false for one that is more than a length, a scalar or a value. A
// number from a length is known when its buffer comes earlier, or has the bound
// length.
static bool pipeline_make_take_number(const kiln_pipeline_t* pipeline,
                                      uint32_t place,
                                      kilni_program_number_t number,
                                      kiln_interface_number_t* out_number) {
  out_number->of = number.of;
  out_number->value = number.value;
  switch (number.kind) {
    case KILNI_PROGRAM_NUMBER_NONE:
      out_number->from = KILN_INTERFACE_BY_CALLER;
      return true;
    case KILNI_PROGRAM_NUMBER_VALUE:
      out_number->from = KILN_INTERFACE_BY_VALUE;
      return number.value > 0;
    case KILNI_PROGRAM_NUMBER_LENGTH:
      out_number->from = KILN_INTERFACE_BY_BUFFER;
      return number.of < place || !pipeline->places[number.of].info.is_counted;
    case KILNI_PROGRAM_NUMBER_SCALAR:
      out_number->from = KILN_INTERFACE_BY_SCALAR;
      return true;
    default:
      return false;
  }
}

static void pipeline_make_take_numbers(kiln_pipeline_t* pipeline) {
  uint32_t count = pipeline->info.parameter_count;
  pipeline->simple = true;
  for (uint32_t i = 0; i < count; i++) {
    if (!pipeline->places[i].is_buffer) continue;
    if (!pipeline_make_take_number(pipeline, i,
                                   kilni_program_count(pipeline->program, i),
                                   &pipeline->places[i].count)) {
      pipeline->simple = false;
    }
  }
  for (uint32_t i = 0; i < 3; i++) {
    if (!pipeline_make_take_number(pipeline, count,
                                   kilni_program_work(pipeline->program, i),
                                   &pipeline->work[i])) {
      pipeline->simple = false;
    }
  }
}

static void take_arguments(kiln_pipeline_t* pipeline) {
  static const uint32_t kKinds[] = {
      [KILN_PROGRAM_PARAMETER_ADDRESS] = KILN_INTERFACE_BUFFER,
      [KILN_PROGRAM_PARAMETER_LENGTH] = KILN_INTERFACE_LENGTH,
      [KILN_PROGRAM_PARAMETER_SCALAR] = KILN_INTERFACE_SCALAR,
      [KILN_PROGRAM_PARAMETER_WORK] = KILN_INTERFACE_WORK,
      [KILN_PROGRAM_PARAMETER_TRAP] = KILN_INTERFACE_TRAP,
      [KILN_PROGRAM_PARAMETER_GRID] = KILN_INTERFACE_GRID,
  };
  kiln_program_parameter_t p;
  for (uint32_t i = 0; kiln_program_code_parameter(pipeline->code, i, &p);
       i++) {
    kilni_dispatch_argument_source_t* argument = &pipeline->arguments[i];
    argument->kind = kKinds[p.kind];
    argument->bytes = 8;
    if (p.kind == KILN_PROGRAM_PARAMETER_WORK) {
      argument->of = p.index;
      argument->bytes = 4;
    } else if (p.kind == KILN_PROGRAM_PARAMETER_SCALAR) {
      argument->of = pipeline_make_nth(pipeline, p.index, false);
      argument->bytes = pipeline->places[argument->of].info.type_bytes;
    } else if (p.kind == KILN_PROGRAM_PARAMETER_TRAP) {
      pipeline->info.traps = 1;
    } else if (p.kind == KILN_PROGRAM_PARAMETER_GRID) {
      pipeline->info.grid_barrier = 1;
    } else {
      argument->of = pipeline_make_nth(pipeline, p.index, true);
    }
  }
}

// Whether code for a device can wait for the preceding kernel: sm_90, and a
// driver that has the attribute and reads PTX 7.8. Both are CUDA 11.8.
static bool can_wait(const kiln_device_info_t* device) {
  return device->compute_major >= 9 && device->driver_version >= 11080;
}

// `rounds` as in kiln_program_lower_options_t.
static kiln_status_t lower_with(kiln_dispatcher_t* dispatcher,
                                const kiln_program_t* program,
                                const kiln_pipeline_options_t* given,
                                bool waits, uint32_t rounds,
                                kiln_program_code_t** out_code) {
  const kiln_device_info_t* device = &dispatcher->device->info;
  kiln_program_lower_options_t how = kiln_program_lower_options_default();
  how.sm = device->compute_major * 10 + device->compute_minor;
  how.newest_isa = kiln_compat_line_ptx_isa(device->driver_version / 10 * 10);
  how.max_ulp = given->max_ulp;
  how.without = given->without;
  how.rounds = rounds;
  how.allocator = &dispatcher->allocator;
  if (given->overlapping == KILN_SWITCH_ON) {
    how.without |= KILN_PROGRAM_WITHOUT_READ_ONLY;
  }
  if (waits) how.waits = KILN_SWITCH_ON;
  return kiln_program_lower(program, &how, out_code);
}

static kiln_status_t cannot_wait(const kiln_dispatcher_t* dispatcher,
                                 const kiln_program_t* program,
                                 const char* why) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(UNSUPPORTED, "`overlap` for \"%s\" on device \"%s\": %s",
                 kiln_program_name(program), dispatcher->device->name, why),
      "omit `overlap`");
}

static kiln_status_t pipeline_make_lower(kiln_dispatcher_t* dispatcher,
                                         const kiln_program_t* program,
                                         const kiln_pipeline_options_t* given,
                                         kiln_program_code_t** out_code) {
  bool waits =
      given->overlap != KILN_SWITCH_OFF && can_wait(&dispatcher->device->info);
  if (given->overlap == KILN_SWITCH_ON && !waits) {
    return cannot_wait(dispatcher, program,
                       "it requires compute capability 9.0 and CUDA 11.8");
  }
  KILNI_RETURN_IF_ERROR(
      lower_with(dispatcher, program, given, waits, 0, out_code));
  kiln_program_launch_t launch;
  kiln_program_code_launch(*out_code, &launch);
  if (!waits || !launch.cooperative) return kiln_ok();
  // Its launches never overlap the preceding work.
  kiln_program_code_release(*out_code);
  *out_code = NULL;
  if (given->overlap == KILN_SWITCH_ON) {
    return cannot_wait(dispatcher, program, "the program has a grid barrier");
  }
  return lower_with(dispatcher, program, given, false, 0, out_code);
}

// Machine code of `text` by the linker, which consults the cache first. Where
// linking fails, the driver may still load it, or report a better reason.
static kiln_status_t pipeline_make_link_text(const kiln_pipeline_t* pipeline,
                                             kiln_code_t* text,
                                             bool* out_cached,
                                             kiln_code_t** out_code) {
  kiln_dispatcher_t* dispatcher = pipeline->dispatcher;
  const kiln_device_info_t* device = &dispatcher->device->info;
  kiln_link_options_t options = kiln_link_options_default();
  kiln_link_t* link = NULL;
  char arch[ARCH_BYTES];
  *out_code = NULL;
  *out_cached = false;
  if (dispatcher->linker == NULL) return kiln_ok();
  (void)snprintf(arch, sizeof(arch), "sm_%u%u", (unsigned)device->compute_major,
                 (unsigned)device->compute_minor);
  options.name = pipeline->label;
  options.arch = arch;
  options.cache = dispatcher->cache;
  KILNI_RETURN_IF_ERROR(kiln_link_create(dispatcher->linker, &options, &link));
  kiln_status_t status = kiln_link_add(link, text);
  if (kiln_status_is_ok(status)) status = kiln_link_finish(link, out_code);
  if (kiln_status_is_ok(status)) {
    *out_cached = kiln_link_cache(link) == KILN_LINK_CACHE_HIT;
  }
  kiln_link_release(link);
  if (kiln_status_code(status) == KILN_STATUS_OUT_OF_MEMORY ||
      kiln_status_code(status) == KILN_STATUS_DEVICE_LOST) {
    return status;
  }
  kiln_status_free(status);
  return kiln_ok();
}

static void note_link(kiln_pipeline_t* pipeline, bool cached, uint64_t began) {
  kilni_dispatch_counters_t* counters = pipeline->dispatcher->counters;
  kilni_dispatch_count(
      counters,
      cached ? KILNI_COUNTER_CACHED_PIPELINES : KILNI_COUNTER_LINKED_PIPELINES,
      1);
  kilni_dispatch_trace_phase(
      pipeline, cached ? KILNI_COUNTER_CACHE_NS : KILNI_COUNTER_LINK_NS,
      &pipeline->trace.link_ns, began);
  pipeline->trace.from_cache = cached;
}

static kiln_status_t pipeline_make_load(kiln_pipeline_t* pipeline) {
  kiln_dispatcher_t* dispatcher = pipeline->dispatcher;
  kiln_string_view_t view = kiln_program_code_text(pipeline->code);
  kiln_bytes_view_t bytes = {(const uint8_t*)view.data, view.size};
  kiln_code_options_t how = kiln_code_options_default();
  kiln_code_t* text = NULL;
  kiln_code_t* machine = NULL;
  kiln_module_t* module = NULL;
  bool cached = false;
  how.name = pipeline->label;
  how.format = KILN_CODE_FORMAT_PTX;
  how.allocator = &dispatcher->allocator;
  KILNI_RETURN_IF_ERROR(kiln_code_create(bytes, &how, &text));
  uint64_t began = kilni_dispatch_count_clock(dispatcher->counters);
  kiln_status_t status =
      pipeline_make_link_text(pipeline, text, &cached, &machine);
  if (machine != NULL) note_link(pipeline, cached, began);
  began = kilni_dispatch_count_clock(dispatcher->counters);
  if (kiln_status_is_ok(status)) {
    kiln_module_options_t options = kiln_module_options_default();
    options.name = pipeline->label;
    if (machine != NULL) options.described_by = text;
    status = kiln_module_load(dispatcher->device,
                              kiln_code_bytes(machine != NULL ? machine : text),
                              &options, NULL, &module);
  }
  if (kiln_status_is_ok(status)) {
    pipeline->info.from_cache = cached;
    status = kiln_kernel_create(module, kiln_program_code_entry(pipeline->code),
                                &pipeline->kernel);
    kilni_dispatch_trace_phase(pipeline, KILNI_COUNTER_LOAD_NS,
                               &pipeline->trace.load_ns, began);
    kilni_dispatch_trace_code(
        pipeline, view.size,
        machine != NULL ? kiln_code_bytes(machine).size : view.size);
  }
  kiln_module_release(module);
  kiln_code_release(machine);
  kiln_code_release(text);
  return status;
}

// Whether the driver has the attribute that the code waits for.
static kiln_status_t see_overlap(kiln_pipeline_t* pipeline,
                                 const kiln_pipeline_options_t* given) {
  kiln_launch_config_t config = kiln_launch_config_default();
  kiln_launch_attributes_t attributes = kiln_launch_attributes_default();
  kilni_device_launch_how_t how;
  attributes.overlap = KILN_SWITCH_ON;
  config.attributes = &attributes;
  kiln_status_t status =
      kilni_device_launch_how(pipeline->kernel, &config, &how);
  pipeline->overlaps =
      kiln_status_is_ok(status) && pipeline->kernel->info.params_known;
  if (kiln_status_is_ok(status) || given->overlap == KILN_SWITCH_ON) {
    return status;
  }
  kiln_status_free(status);
  return kiln_ok();
}

static kiln_status_t fill_program(kiln_pipeline_t* pipeline,
                                  const kiln_pipeline_options_t* given) {
  kiln_program_launch_t launch;
  kiln_pipeline_info_t* info = &pipeline->info;
  kiln_program_code_launch(pipeline->code, &launch);
  pipeline_make_take_parameters(pipeline);
  pipeline_make_take_numbers(pipeline);
  take_arguments(pipeline);
  memcpy(info->block, launch.block, sizeof(info->block));
  info->work_per_thread[0] = launch.elements;
  info->dynamic_shared_bytes = launch.dynamic_shared_bytes;
  info->cooperative = launch.cooperative;
  info->waits = launch.waits;
  info->max_ulp = given->max_ulp;
  info->overlapping = given->overlapping == KILN_SWITCH_ON;
  info->work_dimensions = kiln_program_work_dimensions(pipeline->program);
  KILNI_RETURN_IF_ERROR(see_relied_on(pipeline));
  KILNI_RETURN_IF_ERROR(pipeline_make_load(pipeline));
  KILNI_RETURN_IF_ERROR(kilni_dispatch_pipeline_finish(pipeline));
  return info->waits == 0 ? kiln_ok() : see_overlap(pipeline, given);
}

static kiln_status_t pipeline_make_check_usable(
    const kiln_dispatcher_t* dispatcher) {
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(dispatcher->device->host));
  if (!kilni_device_is_lost(dispatcher->device)) return kiln_ok();
  return kilni_device_lost_status(dispatcher->device);
}

static kiln_status_t make_of_program(kiln_dispatcher_t* dispatcher,
                                     kiln_program_t* program,
                                     const kiln_pipeline_options_t* given,
                                     const char* label,
                                     kiln_pipeline_t** out_pipeline) {
  kiln_program_code_t* code = NULL;
  kiln_pipeline_t* pipeline = NULL;
  uint64_t began = kilni_dispatch_count_clock(dispatcher->counters);
  KILNI_RETURN_IF_ERROR(pipeline_make_lower(dispatcher, program, given, &code));
  uint64_t lower_ns = kilni_dispatch_count_since(dispatcher->counters,
                                                 KILNI_COUNTER_LOWER_NS, began);
  kiln_status_t status = kilni_dispatch_pipeline_make(
      dispatcher, label, kiln_program_parameter_count(program),
      kiln_program_code_parameter_count(code), &pipeline);
  if (!kiln_status_is_ok(status)) {
    kiln_program_code_release(code);
    return status;
  }
  pipeline->code = code;
  pipeline->program = program;
  pipeline->without = given->without;
  pipeline->trace.lower_ns = lower_ns;
  kiln_program_retain(program);
  status = fill_program(pipeline, given);
  if (!kiln_status_is_ok(status)) {
    status = KILNI_ANNOTATE(status, "making pipeline \"%s\"", pipeline->label);
    pipeline_make_destroy(pipeline);
    return status;
  }
  if (began != 0) pipeline->trace.total_ns = kilni_base_time_ns() - began;
  *out_pipeline = pipeline;
  return kiln_ok();
}

kiln_status_t kiln_pipeline_create(kiln_dispatcher_t* dispatcher,
                                   kiln_program_t* program,
                                   const kiln_pipeline_options_t* options,
                                   kiln_pipeline_t** out_pipeline) {
  KILNI_CHECK_ARGUMENT(out_pipeline != NULL, "out_pipeline");
  *out_pipeline = NULL;
  KILNI_CHECK_ARGUMENT(dispatcher != NULL, "dispatcher");
  KILNI_CHECK_ARGUMENT(program != NULL, "program");
  kiln_pipeline_options_t given;
  KILNI_RETURN_IF_ERROR(
      KILNI_OPTIONS_READ(options, kiln_pipeline_options_t, &given));
  KILNI_CHECK_ARGUMENT(given.overlapping <= KILN_SWITCH_ON,
                       "options.overlapping");
  KILNI_CHECK_ARGUMENT(given.overlap <= KILN_SWITCH_ON, "options.overlap");
  KILNI_RETURN_IF_ERROR(pipeline_make_check_usable(dispatcher));
  const char* label =
      given.label != NULL ? given.label : kiln_program_name(program);
  if (dispatcher->ranges == NULL) {
    return make_of_program(dispatcher, program, &given, label, out_pipeline);
  }
  kilni_dispatch_range_begin(dispatcher->ranges, KILNI_RANGE_PIPELINE, label);
  kiln_status_t status =
      make_of_program(dispatcher, program, &given, label, out_pipeline);
  kilni_dispatch_range_end(dispatcher->ranges);
  return status;
}

kiln_status_t kilni_dispatch_pipeline_repeat(kiln_pipeline_t* pipeline,
                                             uint32_t flag,
                                             kiln_program_code_t** out_code,
                                             kiln_kernel_t** out_kernel) {
  kiln_pipeline_options_t given = kiln_pipeline_options_default();
  kiln_pipeline_t other;
  given.max_ulp = pipeline->info.max_ulp;
  given.without = pipeline->without;
  *out_code = NULL;
  *out_kernel = NULL;
  KILNI_RETURN_IF_ERROR(lower_with(pipeline->dispatcher, pipeline->program,
                                   &given, false, flag + 1, out_code));
  memset(&other, 0, sizeof(other));
  other.dispatcher = pipeline->dispatcher;
  other.label = pipeline->label;
  other.code = *out_code;
  kiln_status_t status = pipeline_make_load(&other);
  *out_kernel = other.kernel;
  return status;
}
