// SPDX-License-Identifier: Apache-2.0
//
// cli: a plan as a pipeline with resident buffers.
#include "cli/run_pipeline.h"
#include "kiln/telemetry.h"

#include <string.h>

enum { MAX_ARGUMENTS = 2 * KILNI_CLI_MAX_PARAMS + 8 };

// What the kernel of a pipeline takes. one-thread
typedef struct described_t {
  kiln_interface_parameter_t items[MAX_ARGUMENTS];
  uint32_t count;
} described_t;

bool kilni_cli_dispatcher_open(kilni_cli_session_t* session,
                               kilni_cli_error_t* error) {
  kiln_dispatcher_options_t options = kiln_dispatcher_options_default();
  options.streams = 1;
  // The device itself checks the limits.
  options.resident_bytes = INT64_MAX;
  if (session->request->telemetry != KILNI_CLI_TELEMETRY_NONE) {
    options.telemetry = KILN_SWITCH_ON;
  }
  return kilni_cli_check(error,
                         kiln_dispatcher_create(session->device, &options,
                                                &session->dispatcher)) &&
         kilni_cli_check(error, kiln_dispatcher_stream(session->dispatcher, 0,
                                                       &session->stream));
}

// ---- Buffers ----

static bool make_buffer(kilni_cli_session_t* s, const kilni_cli_slot_t* slot,
                        kiln_resident_t* out, kilni_cli_error_t* error) {
  // A program's atomics on small elements use the whole words around them.
  uint64_t bytes = slot->shape.bytes;
  if (bytes == 0) return true;
  if (s->request->program != NULL) bytes = (bytes + 3) / 4 * 4;
  if (!kilni_cli_check(error,
                       kiln_resident_allocate(s->dispatcher, bytes, out))) {
    return false;
  }
  kiln_resident_range_t range = {0, slot->shape.bytes};
  kiln_status_t status =
      slot->in != NULL
          ? kiln_resident_upload(s->dispatcher, s->stream, *out, 0,
                                 slot->in->array.data.size,
                                 slot->in->array.data.data)
          : kiln_resident_fill(s->dispatcher, s->stream, *out, range, 0, 1);
  return kilni_cli_check(error, status);
}

bool kilni_cli_residents_make(kilni_cli_session_t* session,
                              const kilni_cli_plan_t* plan,
                              kilni_cli_error_t* error) {
  for (uint32_t i = 0; i < plan->count; i++) {
    if (plan->slots[i].arg == NULL &&
        !make_buffer(session, &plan->slots[i], &session->buffers[i], error)) {
      return false;
    }
  }
  return true;
}

void kilni_cli_residents_free(kilni_cli_session_t* session) {
  for (uint32_t i = 0; i < KILNI_CLI_MAX_PARAMS; i++) {
    if (session->buffers[i].id == 0) continue;
    kiln_status_free(
        kiln_resident_free(session->dispatcher, session->buffers[i]));
    session->buffers[i].id = 0;
  }
}

// ---- The pipeline ----

static uint32_t scalar_type(const kilni_cli_scalar_t* scalar) {
  const kilni_cli_type_info_t* info = kilni_cli_type_info(scalar->type);
  if (info->bytes == scalar->bytes) return kiln_program_type_find(info->text);
  return scalar->bytes == 8   ? KILN_PROGRAM_TYPE_U64
         : scalar->bytes == 4 ? KILN_PROGRAM_TYPE_U32
         : scalar->bytes == 2 ? KILN_PROGRAM_TYPE_U16
                              : KILN_PROGRAM_TYPE_U8;
}

static void describe_slot(const kilni_cli_session_t* s,
                          const kilni_cli_slot_t* slot, uint32_t index,
                          kiln_interface_parameter_t* out) {
  memset(out, 0, sizeof(*out));
  const char* name =
      index < s->facts.param_count ? s->facts.params[index].name : NULL;
  if (name != NULL && name[0] != 0) out->name = name;
  if (slot->bytes != NULL) {
    out->kind = KILN_INTERFACE_BYTES;
    out->value = slot->bytes;
    out->value_bytes = slot->byte_count;
    return;
  }
  if (slot->arg != NULL) {
    out->kind = KILN_INTERFACE_SCALAR;
    out->type = scalar_type(&slot->scalar);
    return;
  }
  out->kind = KILN_INTERFACE_BUFFER;
  out->role = KILN_PROGRAM_ROLE_INOUT;
  out->type =
      s->request->program == NULL
          ? KILN_PROGRAM_TYPE_U8
          : kiln_program_type_find(kilni_cli_type_info(slot->shape.type)->text);
}

// The index-th buffer or scalar among the parameters of a program.
static uint32_t nth_slot(const kilni_cli_plan_t* plan, uint32_t index,
                         bool is_scalar) {
  for (uint32_t i = 0; i < plan->count; i++) {
    if ((plan->slots[i].arg != NULL) == is_scalar && index-- == 0) return i;
  }
  return 0;
}

// The kernel of a program takes more than the program itself. Its buffers and
// scalars are in the order of the program's parameters, each kind by itself;
// `at` is the position of each slot.
static void describe_program(const kilni_cli_session_t* s,
                             const kilni_cli_plan_t* plan, described_t* d,
                             uint32_t at[KILNI_CLI_MAX_PARAMS]) {
  kiln_program_parameter_t p;
  while (d->count < MAX_ARGUMENTS &&
         kiln_program_code_parameter(s->code.lowered, d->count, &p)) {
    kiln_interface_parameter_t* out = &d->items[d->count];
    bool is_scalar = p.kind == KILN_PROGRAM_PARAMETER_SCALAR;
    uint32_t slot = nth_slot(plan, p.index, is_scalar);
    memset(out, 0, sizeof(*out));
    switch (p.kind) {
      case KILN_PROGRAM_PARAMETER_LENGTH:
        out->kind = KILN_INTERFACE_LENGTH;
        out->type = KILN_PROGRAM_TYPE_U64;
        out->of = slot;  // put right below
        break;
      case KILN_PROGRAM_PARAMETER_WORK:
        out->kind = KILN_INTERFACE_WORK;
        out->type = KILN_PROGRAM_TYPE_U32;
        out->of = p.index;
        break;
      case KILN_PROGRAM_PARAMETER_TRAP:
        out->kind = KILN_INTERFACE_TRAP;
        break;
      case KILN_PROGRAM_PARAMETER_GRID:
        out->kind = KILN_INTERFACE_GRID;
        break;
      default:
        describe_slot(s, &plan->slots[slot], slot, out);
        at[slot] = d->count;
        break;
    }
    d->count++;
  }
  for (uint32_t i = 0; i < d->count; i++) {
    if (d->items[i].kind == KILN_INTERFACE_LENGTH) {
      d->items[i].of = at[d->items[i].of];
    }
  }
}

// The order in which the kernel's own parameters are bound.
static void order_slots(const kilni_cli_plan_t* plan, const described_t* d,
                        const uint32_t at[KILNI_CLI_MAX_PARAMS],
                        uint32_t out_order[KILNI_CLI_MAX_PARAMS]) {
  uint32_t bound = 0;
  for (uint32_t i = 0; i < d->count; i++) {
    for (uint32_t slot = 0; slot < plan->count; slot++) {
      if (at[slot] == i && (d->items[i].kind == KILN_INTERFACE_BUFFER ||
                            d->items[i].kind == KILN_INTERFACE_SCALAR)) {
        out_order[slot] = bound++;
      }
    }
  }
}

bool kilni_cli_pipeline_make(kilni_cli_session_t* session,
                             const kilni_cli_plan_t* plan,
                             kilni_cli_error_t* error) {
  described_t d;
  uint32_t at[KILNI_CLI_MAX_PARAMS];
  kiln_interface_t interface = kiln_interface_default();
  d.count = 0;
  for (uint32_t i = 0; i < KILNI_CLI_MAX_PARAMS; i++) at[i] = UINT32_MAX;
  if (session->request->program != NULL) {
    kiln_program_launch_t how;
    kiln_program_code_launch(session->code.lowered, &how);
    describe_program(session, plan, &d, at);
    interface.shared_bytes = how.dynamic_shared_bytes;
    interface.work_per_thread[0] = how.elements;
    if (how.cooperative) interface.grid_barrier = KILN_SWITCH_ON;
  } else {
    interface.shared_bytes = session->request->shared_bytes;
    for (d.count = 0; d.count < plan->count; d.count++) {
      describe_slot(session, &plan->slots[d.count], d.count, &d.items[d.count]);
      at[d.count] = d.count;
    }
  }
  order_slots(plan, &d, at, session->order);
  interface.label = session->facts.name;
  interface.parameters = d.items;
  interface.parameter_count = d.count;
  memcpy(interface.block, plan->block, sizeof(interface.block));
  return kilni_cli_check_launch(
      error, kiln_pipeline_create_kernel(session->dispatcher, session->kernel,
                                         &interface, &session->pipeline));
}

uint32_t kilni_cli_pipeline_bindings(const kilni_cli_session_t* session,
                                     const kilni_cli_plan_t* plan,
                                     kiln_binding_t* out_bindings) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < plan->count; i++) {
    const kilni_cli_slot_t* slot = &plan->slots[i];
    if (slot->bytes != NULL) continue;  // the pipeline has them
    count++;
    kiln_binding_t* out = &out_bindings[session->order[i]];
    if (slot->arg != NULL) {
      *out = kiln_bind_scalar(scalar_type(&slot->scalar), slot->scalar.bits);
    } else if (slot->shape.bytes == 0) {
      *out = kiln_bind_pointer(0, 0);
    } else {
      *out =
          kiln_bind_resident_range(session->buffers[i], 0, slot->shape.bytes);
    }
  }
  return count;
}

bool kilni_cli_pipeline_options(const kilni_cli_session_t* session,
                                const kilni_cli_plan_t* plan,
                                kiln_dispatch_options_t* out_options) {
  *out_options = kiln_dispatch_options_default();
  memcpy(out_options->grid, plan->grid, sizeof(out_options->grid));
  // Zero contents are zero already; file contents must be written.
  out_options->clear_outputs = KILN_SWITCH_OFF;
  if (session->request->cooperative) out_options->cooperative = KILN_SWITCH_ON;
  if (session->request->program == NULL) return true;
  for (int i = 0; i < 3; i++) {
    out_options->work[i] = session->request->work[i];
    if (out_options->work[i] == 0) return false;
  }
  return true;
}

// ---- Telemetry ----

// The command makes the code itself and gives the dispatcher a kernel: the time
// that took is known only here.
static void add_code(const kilni_cli_code_t* code, kiln_telemetry_t* t) {
  bool cached = code->link_cache == KILN_LINK_CACHE_HIT;
  if (code->code == NULL) return;
  t->pipeline_lower_ns += code->times.lower_ns;
  t->pipeline_load_ns += code->times.load_ns;
  t->pipeline_code_bytes += kiln_code_bytes(code->code).size;
  if (kiln_code_format(code->text) == KILN_CODE_FORMAT_PTX) {
    t->pipeline_ptx_bytes += kiln_code_bytes(code->text).size;
  }
  if (code->times.link_ns == 0) return;
  *(cached ? &t->pipeline_cache_ns : &t->pipeline_link_ns) +=
      code->times.link_ns;
  *(cached ? &t->cached_pipelines : &t->linked_pipelines) += 1;
}

bool kilni_cli_telemetry_text(const kilni_cli_session_t* session,
                              kilni_cli_telemetry_t format,
                              kilni_cli_buffer_t* out,
                              kilni_cli_error_t* error) {
  kiln_telemetry_t snapshot = kiln_telemetry_default();
  kiln_telemetry_format_t how = kiln_telemetry_format_default();
  const kiln_telemetry_label_t labels[] = {
      {"device", session->device_name},
      {"kernel", session->facts.name != NULL ? session->facts.name : ""}};
  size_t length = 0;
  how.labels = labels;
  how.label_count = 2;
  if (format == KILNI_CLI_TELEMETRY_JSON) how.format = KILN_TELEMETRY_JSON;
  if (!kilni_cli_check(error,
                       kiln_telemetry_read(session->dispatcher, &snapshot))) {
    return false;
  }
  add_code(&session->code, &snapshot);
  if (!kilni_cli_check(
          error, kiln_telemetry_format(&snapshot, &how, 0, NULL, &length))) {
    return false;
  }
  size_t at = out->size;
  if (!kilni_cli_buffer_resize(out, at + length, error)) return false;
  return kilni_cli_check(error,
                         kiln_telemetry_format(&snapshot, &how, length + 1,
                                               (char*)out->data + at, NULL));
}
