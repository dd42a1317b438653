// SPDX-License-Identifier: Apache-2.0
//
// dispatch: pipelines of kernels that came from anywhere, with a description
// of what they take.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "dispatch/pipeline_inside.h"

enum { NAME_BYTES = 16, DEFAULT_THREADS = 256 };

// What a description becomes. one-thread
typedef struct reading_t {
  const kiln_interface_t* given;
  kiln_kernel_t* kernel;
  kiln_pipeline_t* pipeline;
  const char* label;
  uint32_t bound;         // parameters that are bound, so far
  size_t constant_bytes;  // so far
  uint32_t places[KILNI_PIPELINE_ARGUMENTS];  // by position in the kernel
} reading_t;

static kiln_status_t pipeline_kernel_refuse(const reading_t* r,
                                            uint32_t position,
                                            const char* why) {
  const char* name = r->given->parameters[position].name;
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "parameter %u%s%s%s of \"%s\": %s",
                 (unsigned)position, name != NULL ? " (\"" : "",
                 name != NULL ? name : "", name != NULL ? "\")" : "", r->label,
                 why),
      "describe the parameters as the kernel declares them; `kiln inspect` "
      "lists them");
}

// ---- One parameter ----

static bool is_scalar_type(uint32_t type) {
  return kiln_program_type_name(type)[0] != 0;
}

static uint32_t pipeline_kernel_type_bytes(uint32_t type) {
  static const uint8_t kBytes[] = {
      [KILN_PROGRAM_TYPE_U8] = 1,   [KILN_PROGRAM_TYPE_I8] = 1,
      [KILN_PROGRAM_TYPE_U16] = 2,  [KILN_PROGRAM_TYPE_I16] = 2,
      [KILN_PROGRAM_TYPE_U32] = 4,  [KILN_PROGRAM_TYPE_I32] = 4,
      [KILN_PROGRAM_TYPE_U64] = 8,  [KILN_PROGRAM_TYPE_I64] = 8,
      [KILN_PROGRAM_TYPE_F16] = 2,  [KILN_PROGRAM_TYPE_BF16] = 2,
      [KILN_PROGRAM_TYPE_F32] = 4,  [KILN_PROGRAM_TYPE_F64] = 8,
      [KILN_PROGRAM_TYPE_BOOL] = 1,
  };
  return is_scalar_type(type) && type < sizeof(kBytes) ? kBytes[type] : 0;
}

static bool pipeline_kernel_is_word(uint32_t type) {
  return type == KILN_PROGRAM_TYPE_U32 || type == KILN_PROGRAM_TYPE_U64 ||
         type == KILN_PROGRAM_TYPE_I32 || type == KILN_PROGRAM_TYPE_I64;
}

static bool pipeline_kernel_is_bound(uint32_t kind) {
  return kind == KILN_INTERFACE_BUFFER || kind == KILN_INTERFACE_SCALAR;
}

// How many bytes the kernel is given; 0 for what contradicts itself.
static uint32_t pipeline_kernel_argument_bytes(
    const kiln_interface_parameter_t* p) {
  switch (p->kind) {
    case KILN_INTERFACE_BUFFER:
    case KILN_INTERFACE_TRAP:
    case KILN_INTERFACE_GRID:
      return 8;
    case KILN_INTERFACE_SCALAR:
      return pipeline_kernel_type_bytes(p->type);
    case KILN_INTERFACE_LENGTH:
    case KILN_INTERFACE_WORK:
      return pipeline_kernel_is_word(p->type)
                 ? pipeline_kernel_type_bytes(p->type)
                 : 0;
    case KILN_INTERFACE_BYTES:
      return p->value != NULL ? p->value_bytes : 0;
    default:
      return 0;
  }
}

static kiln_status_t pipeline_kernel_check_buffer(const reading_t* r,
                                                  uint32_t position) {
  const kiln_interface_parameter_t* p = &r->given->parameters[position];
  if (p->role != KILN_PROGRAM_ROLE_IN && p->role != KILN_PROGRAM_ROLE_OUT &&
      p->role != KILN_PROGRAM_ROLE_INOUT) {
    return pipeline_kernel_refuse(
        r, position, "a buffer whose role is not IN, OUT or INOUT");
  }
  if ((p->type == KILN_PROGRAM_TYPE_NONE) == (p->element_bytes == 0) ||
      (p->type != KILN_PROGRAM_TYPE_NONE &&
       pipeline_kernel_type_bytes(p->type) == 0)) {
    return pipeline_kernel_refuse(
        r, position, "a buffer needs a type, or `element_bytes` in its place");
  }
  if (p->writes_all == KILN_SWITCH_ON && p->role != KILN_PROGRAM_ROLE_OUT) {
    return pipeline_kernel_refuse(r, position,
                                  "`writes_all` is for OUT buffers only");
  }
  return kiln_ok();
}

static kiln_status_t pipeline_kernel_check_one(const reading_t* r,
                                               uint32_t position) {
  const kiln_interface_parameter_t* p = &r->given->parameters[position];
  if (p->kind == KILN_INTERFACE_BUFFER) {
    KILNI_RETURN_IF_ERROR(pipeline_kernel_check_buffer(r, position));
  }
  KILNI_CHECK_RESERVED(p->reserved, kiln_interface_parameter_t);
  if (p->writes_all > KILN_SWITCH_ON) {
    return pipeline_kernel_refuse(r, position, "a field out of its range");
  }
  uint32_t bytes = pipeline_kernel_argument_bytes(p);
  if (bytes == 0) {
    return pipeline_kernel_refuse(r, position,
                                  "its kind and its type do not fit");
  }
  if (!r->kernel->info.params_known) return kiln_ok();
  uint32_t has = r->kernel->params[position].bytes;
  if (has == bytes) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "parameter %u of \"%s\" is described as %u bytes; the kernel "
                 "has %u",
                 (unsigned)position, r->label, (unsigned)bytes, (unsigned)has),
      "describe the parameters as the kernel declares them; `kiln inspect` "
      "lists them");
}

static kiln_status_t too_many(const reading_t* r, uint32_t count) {
  return kilni_base_status_with_fix(
      KILNI_FAIL(LIMIT_EXCEEDED, "%u parameters of \"%s\"", (unsigned)count,
                 r->label),
      "put them into a struct; a pipeline takes at most %u that are bound, and "
      "%u in all",
      (unsigned)KILNI_PIPELINE_PARAMETERS, (unsigned)KILNI_PIPELINE_ARGUMENTS);
}

static kiln_status_t check_parameters(reading_t* r) {
  const kiln_interface_t* given = r->given;
  if (given->parameter_count > KILNI_PIPELINE_ARGUMENTS) {
    return too_many(r, given->parameter_count);
  }
  if (r->kernel->info.params_known &&
      given->parameter_count != r->kernel->info.param_count) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "%u parameters are described; kernel \"%s\" has %u",
                   (unsigned)given->parameter_count, r->kernel->name,
                   (unsigned)r->kernel->info.param_count),
        "describe each of them, in the order of the kernel");
  }
  for (uint32_t i = 0; i < given->parameter_count; i++) {
    const kiln_interface_parameter_t* p = &given->parameters[i];
    KILNI_RETURN_IF_ERROR(pipeline_kernel_check_one(r, i));
    r->places[i] = UINT32_MAX;
    if (pipeline_kernel_is_bound(p->kind)) r->places[i] = r->bound++;
    if (p->kind == KILN_INTERFACE_BYTES) {
      r->constant_bytes += ((size_t)p->value_bytes + 15) / 16 * 16;
    }
  }
  if (r->bound > KILNI_PIPELINE_PARAMETERS) return too_many(r, r->bound);
  return kiln_ok();
}

// ---- Numbers ----

// Checks where a number comes from, and turns a position in the kernel into
// that of what is bound. `depth` bounds how often counts lead to counts.
static kiln_status_t pipeline_kernel_take_number(
    const reading_t* r, const char* what, const kiln_interface_number_t* number,
    kiln_interface_number_t* out_number) {
  *out_number = *number;
  if (number->from <= KILN_INTERFACE_BY_VALUE) return kiln_ok();
  uint32_t kind = number->of < r->given->parameter_count
                      ? r->given->parameters[number->of].kind
                      : 0;
  bool fits = number->from == KILN_INTERFACE_BY_BUFFER
                  ? kind == KILN_INTERFACE_BUFFER
                  : number->from == KILN_INTERFACE_BY_SCALAR &&
                        kind == KILN_INTERFACE_SCALAR &&
                        pipeline_kernel_type_bytes(
                            r->given->parameters[number->of].type) > 0;
  if (fits && number->from == KILN_INTERFACE_BY_BUFFER &&
      r->given->parameters[number->of].count.from == KILN_INTERFACE_BY_BUFFER) {
    fits = false;
  }
  if (!fits) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(
            INVALID_ARGUMENT,
            "%s of \"%s\" is taken from parameter %u, which cannot specify it",
            what, r->label, (unsigned)number->of),
        "name a scalar of an integer type, or a buffer whose count does not "
        "come from another buffer");
  }
  out_number->of = r->places[number->of];
  return kiln_ok();
}

static kiln_status_t pipeline_kernel_take_work(reading_t* r) {
  kiln_pipeline_t* pipeline = r->pipeline;
  uint32_t said = 0;
  for (uint32_t i = 0; i < 3; i++) {
    KILNI_RETURN_IF_ERROR(pipeline_kernel_take_number(
        r, "the work size", &r->given->work[i], &pipeline->work[i]));
    if (r->given->work[i].from != KILN_INTERFACE_BY_CALLER) said = i + 1;
    pipeline->info.work_per_thread[i] =
        r->given->work_per_thread[i] != 0 ? r->given->work_per_thread[i] : 1;
  }
  pipeline->info.work_dimensions = said;
  return kiln_ok();
}

// ---- Filling in ----

static kiln_status_t pipeline_kernel_take_name(reading_t* r, uint32_t position,
                                               kilni_dispatch_place_t* place) {
  const char* name = r->given->parameters[position].name;
  char own[NAME_BYTES];
  void* block = NULL;
  (void)snprintf(own, sizeof(own), "p%u", (unsigned)position);
  if (name == NULL) name = own;
  size_t size = strlen(name) + 1;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc_unset(r->pipeline->dispatcher->allocator, size, &block));
  memcpy(block, name, size);
  place->info.name = block;
  place->has_own_name = true;
  return kiln_ok();
}

static kiln_status_t pipeline_kernel_take_place(reading_t* r,
                                                uint32_t position) {
  const kiln_interface_parameter_t* p = &r->given->parameters[position];
  kilni_dispatch_place_t* place = &r->pipeline->places[r->places[position]];
  place->is_buffer = p->kind == KILN_INTERFACE_BUFFER;
  place->info.type = p->type;
  place->info.type_bytes = p->type == KILN_PROGRAM_TYPE_NONE
                               ? p->element_bytes
                               : pipeline_kernel_type_bytes(p->type);
  KILNI_RETURN_IF_ERROR(pipeline_kernel_take_name(r, position, place));
  if (!place->is_buffer) return kiln_ok();
  place->info.role = p->role;
  place->info.is_counted = p->count.from != KILN_INTERFACE_BY_CALLER;
  place->info.writes_all = p->writes_all == KILN_SWITCH_ON;
  return pipeline_kernel_take_number(r, "a count", &p->count, &place->count);
}

static kiln_status_t take_argument(reading_t* r, uint32_t position) {
  const kiln_interface_parameter_t* p = &r->given->parameters[position];
  kilni_dispatch_argument_source_t* argument =
      &r->pipeline->arguments[position];
  argument->kind = p->kind;
  argument->bytes = pipeline_kernel_argument_bytes(p);
  switch (p->kind) {
    case KILN_INTERFACE_BUFFER:
    case KILN_INTERFACE_SCALAR:
      argument->of = r->places[position];
      break;
    case KILN_INTERFACE_LENGTH:
      if (p->of >= r->given->parameter_count ||
          r->given->parameters[p->of].kind != KILN_INTERFACE_BUFFER) {
        return pipeline_kernel_refuse(
            r, position, "the length of a parameter that is not a buffer");
      }
      argument->of = r->places[p->of];
      break;
    case KILN_INTERFACE_WORK:
      if (p->of > 2) {
        return pipeline_kernel_refuse(r, position, "an axis above 2");
      }
      argument->of = p->of;
      break;
    case KILN_INTERFACE_BYTES:
      argument->value = r->pipeline->constants + r->constant_bytes;
      memcpy(r->pipeline->constants + r->constant_bytes, p->value,
             p->value_bytes);
      r->constant_bytes += ((size_t)p->value_bytes + 15) / 16 * 16;
      break;
    case KILN_INTERFACE_TRAP:
      r->pipeline->info.traps = 1;
      break;
    default:
      r->pipeline->info.grid_barrier = 1;
      break;
  }
  return kiln_ok();
}

static void take_block(reading_t* r) {
  const uint32_t* required = r->kernel->info.required_block;
  uint32_t* block = r->pipeline->info.block;
  memcpy(block, r->given->block, sizeof(r->pipeline->info.block));
  if (block[0] != 0 || block[1] != 0 || block[2] != 0) return;
  memcpy(block, required, sizeof(r->pipeline->info.block));
  if (required[0] != 0) return;
  block[0] = DEFAULT_THREADS;
  if (r->kernel->info.max_threads != 0 &&
      r->kernel->info.max_threads < DEFAULT_THREADS) {
    block[0] = r->kernel->info.max_threads;
  }
}

static kiln_status_t pipeline_kernel_fill(reading_t* r) {
  kiln_pipeline_t* pipeline = r->pipeline;
  void* block = NULL;
  pipeline->kernel = r->kernel;
  kiln_kernel_retain(r->kernel);
  KILNI_RETURN_IF_ERROR(kilni_base_alloc(pipeline->dispatcher->allocator,
                                         r->constant_bytes, &block));
  pipeline->constants = block;
  pipeline->constant_bytes = r->constant_bytes;
  r->constant_bytes = 0;
  for (uint32_t i = 0; i < r->given->parameter_count; i++) {
    KILNI_RETURN_IF_ERROR(take_argument(r, i));
    if (r->places[i] != UINT32_MAX) {
      KILNI_RETURN_IF_ERROR(pipeline_kernel_take_place(r, i));
    }
  }
  KILNI_RETURN_IF_ERROR(pipeline_kernel_take_work(r));
  take_block(r);
  kiln_pipeline_info_t* info = &pipeline->info;
  info->dynamic_shared_bytes = r->given->shared_bytes;
  if (r->given->grid_barrier == KILN_SWITCH_ON) info->grid_barrier = 1;
  info->cooperative = info->grid_barrier;
  info->overlapping = r->given->overlapping == KILN_SWITCH_ON;
  info->waits = r->given->waits == KILN_SWITCH_ON;
  return kilni_dispatch_pipeline_finish(pipeline);
}

static kiln_status_t pipeline_kernel_check_usable(
    const kiln_dispatcher_t* dispatcher, const kiln_kernel_t* kernel) {
  kiln_device_t* device = dispatcher->device;
  KILNI_RETURN_IF_ERROR(kilni_base_host_check_fork(device->host));
  if (kilni_device_is_lost(device)) return kilni_device_lost_status(device);
  return kilni_device_check_memory(device, kernel->module->device,
                                   "the kernel");
}

kiln_status_t kiln_pipeline_create_kernel(kiln_dispatcher_t* dispatcher,
                                          kiln_kernel_t* kernel,
                                          const kiln_interface_t* interface,
                                          kiln_pipeline_t** out_pipeline) {
  KILNI_CHECK_ARGUMENT(out_pipeline != NULL, "out_pipeline");
  *out_pipeline = NULL;
  KILNI_CHECK_ARGUMENT(dispatcher != NULL, "dispatcher");
  KILNI_CHECK_ARGUMENT(kernel != NULL, "kernel");
  kiln_interface_t given;
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(interface, "kiln_interface_t",
                                                sizeof(given), &given));
  KILNI_CHECK_ARGUMENT(given.parameters != NULL || given.parameter_count == 0,
                       "interface.parameters");
  KILNI_CHECK_ARGUMENT(given.grid_barrier <= KILN_SWITCH_ON,
                       "interface.grid_barrier");
  KILNI_CHECK_ARGUMENT(given.waits <= KILN_SWITCH_ON, "interface.waits");
  KILNI_CHECK_ARGUMENT(given.overlapping <= KILN_SWITCH_ON,
                       "interface.overlapping");
  KILNI_RETURN_IF_ERROR(pipeline_kernel_check_usable(dispatcher, kernel));
  uint64_t began = kilni_dispatch_count_clock(dispatcher->counters);
  reading_t r;
  memset(&r, 0, sizeof(r));
  r.given = &given;
  r.kernel = kernel;
  r.label = given.label != NULL ? given.label : kernel->name;
  KILNI_RETURN_IF_ERROR(check_parameters(&r));
  KILNI_RETURN_IF_ERROR(kilni_dispatch_pipeline_make(
      dispatcher, r.label, r.bound, given.parameter_count, &r.pipeline));
  kiln_status_t status = pipeline_kernel_fill(&r);
  if (!kiln_status_is_ok(status)) {
    kiln_pipeline_release(r.pipeline);
    return status;
  }
  if (began != 0) r.pipeline->trace.total_ns = kilni_base_time_ns() - began;
  *out_pipeline = r.pipeline;
  return kiln_ok();
}
