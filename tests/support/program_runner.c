// SPDX-License-Identifier: Apache-2.0
//
// test: programs run by the evaluator and by a device, and compared.
#define _POSIX_C_SOURCE 200809L
#include "program_runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "evaluator_values.h"
#include "program/ir/program_object.h"
#include "program_generate.h"
#include "ptx_defined.h"

enum { ALIGNMENT = 256, ARGUMENTS_MAX = 128, GRID_BYTES = 24 };

static bool is_parameter(const kilni_program_ir_t* ir, uint32_t buffer) {
  const kilni_program_buffer_record_t* b = &ir->buffers.items[buffer];
  return b->function == 0U && b->role < KILN_PROGRAM_ROLE_SHARED;
}

static uint64_t size_of(const program_case_t* c, uint32_t buffer) {
  return c->world.buffers[buffer].count *
         program_type_bytes(c->ir->buffers.items[buffer].type);
}

static uint64_t place(program_case_t* c, uint64_t bytes) {
  const uint64_t at = c->bytes;
  c->bytes += (bytes + 2U * ALIGNMENT - 1U) / ALIGNMENT * ALIGNMENT;
  return at;
}

static void fill(program_case_t* c, uint32_t buffer, uint64_t* seed) {
  const kilni_program_buffer_record_t* b = &c->ir->buffers.items[buffer];
  const uint32_t size = program_type_bytes(b->type);
  uint8_t* to = c->inputs + c->offsets[buffer];
  if (b->role == KILN_PROGRAM_ROLE_OUT) return;
  for (uint64_t i = 0; i < c->world.buffers[buffer].count; i++) {
    const uint64_t value = program_random_value(seed, b->type);
    memcpy(to + i * size, &value, size);
  }
}

// Pairs of edges: the first buffer's change slowly, the second's quickly.
static void fill_edges(program_case_t* c, uint32_t buffer, uint32_t which) {
  const kilni_program_buffer_record_t* b = &c->ir->buffers.items[buffer];
  const uint32_t size = program_type_bytes(b->type);
  uint8_t* to = c->inputs + c->offsets[buffer];
  if (b->role == KILN_PROGRAM_ROLE_OUT) return;
  for (uint32_t i = 0; i < c->world.buffers[buffer].count; i++) {
    const uint32_t at = which == 0U   ? i / PROGRAM_EDGES
                        : which == 1U ? i
                                      : i * 7U + i / PROGRAM_EDGES * 3U;
    const uint64_t value = program_edge_value(b->type, at % PROGRAM_EDGES);
    memcpy(to + (size_t)i * size, &value, size);
  }
}

// Ends that follow each other in each buffer in an order of its own, all of
// them in 40 elements; in every fourth turn any values.
static void fill_spread(program_case_t* c, uint32_t buffer, uint32_t which,
                        uint64_t* seed) {
  static const uint32_t steps[] = {7, 1, 11, 13};
  const kilni_program_buffer_record_t* b = &c->ir->buffers.items[buffer];
  const uint32_t size = program_type_bytes(b->type);
  uint8_t* to = c->inputs + c->offsets[buffer];
  if (b->role == KILN_PROGRAM_ROLE_OUT) return;
  for (uint32_t i = 0; i < c->world.buffers[buffer].count; i++) {
    const uint32_t turn = i / PROGRAM_EDGES;
    const uint32_t at = i * steps[which % 4U] + turn * (which + 1U);
    const uint64_t value =
        turn % 4U == 3U ? program_random_value(seed, b->type)
                        : program_edge_value(b->type, at % PROGRAM_EDGES);
    memcpy(to + (size_t)i * size, &value, size);
  }
}

// Counts, places and inputs of all buffers; scalars.
static bool make_inputs(program_case_t* c,
                        const program_run_options_t* options) {
  const kilni_program_ir_t* ir = c->ir;
  uint64_t seed = c->seed;
  for (uint32_t i = 1; i < ir->scalars.count; i++) {
    c->world.scalars[i] =
        program_random_value(&seed, ir->scalars.items[i].type);
  }
  for (uint32_t b = 1; b < ir->buffers.count; b++) {
    if (!is_parameter(ir, b)) continue;
    const uint32_t count = ir->buffers.items[b].count;
    c->world.buffers[b].count =
        count != 0U               ? program_evaluate_count(ir, &c->world, count)
        : options->elements != 0U ? options->elements
                                  : (uint64_t)PROGRAM_RUNTIME_COUNT;
    c->offsets[b] = place(c, size_of(c, b));
  }
  c->trap_offset = place(c, sizeof(kiln_program_trap_t));
  c->grid_offset = place(c, GRID_BYTES);
  c->inputs = calloc(c->bytes, 1);
  c->outputs = calloc(c->bytes, 1);
  if (c->inputs == NULL || c->outputs == NULL) return false;
  for (uint32_t b = 1, which = 0; b < ir->buffers.count; b++) {
    if (!is_parameter(ir, b)) continue;
    if (options->spread) {
      fill_spread(c, b, which++, &seed);
    } else if (options->edges) {
      fill_edges(c, b, which++);
    } else {
      fill(c, b, &seed);
    }
  }
  memcpy(c->outputs, c->inputs, c->bytes);
  for (uint32_t b = 1; b < ir->buffers.count; b++) {
    if (is_parameter(ir, b)) {
      c->world.buffers[b].data = c->outputs + c->offsets[b];
    }
  }
  return true;
}

static bool take(program_case_t* c, const char* what, kiln_status_t status) {
  if (kiln_status_is_ok(status)) return true;
  snprintf(c->reason, sizeof c->reason, "%s: %s", what,
           kiln_status_message(status));
  kiln_status_free(status);
  return false;
}

// Whether all buffers in `got` are as the evaluator left them.
static bool same_results(const program_case_t* c, const uint8_t* got,
                         char reason[PROGRAM_REASON_BYTES]) {
  for (uint32_t b = 1; b < c->ir->buffers.count; b++) {
    const kilni_program_buffer_record_t* record = &c->ir->buffers.items[b];
    if (!is_parameter(c->ir, b)) continue;
    const uint32_t size = program_type_bytes(record->type);
    for (uint64_t i = 0; i < c->world.buffers[b].count; i++) {
      uint64_t want = 0, have = 0;
      memcpy(&want, c->outputs + c->offsets[b] + i * size, size);
      memcpy(&have, got + c->offsets[b] + i * size, size);
      if (program_same(record->type, want, have)) continue;
      snprintf(reason, PROGRAM_REASON_BYTES, "%s[%llu] is %llx, evaluator %llx",
               &c->ir->names.items[record->name], (unsigned long long)i,
               (unsigned long long)have, (unsigned long long)want);
      return false;
    }
  }
  return true;
}

// Runs it backwards, then as usual: what differs is a race.
static bool evaluate_both_ways(program_case_t* c) {
  c->world.backwards = true;
  const char* error = program_evaluate(c->ir, &c->world);
  const program_trap_t trap = c->world.trap;
  uint8_t* backwards = malloc(c->bytes);
  if (backwards == NULL) return false;
  memcpy(backwards, c->outputs, c->bytes);
  memcpy(c->outputs, c->inputs, c->bytes);
  c->world.backwards = false;
  if (error == NULL) error = program_evaluate(c->ir, &c->world);
  if (error == NULL && trap.set == 0U &&
      !same_results(c, backwards, c->reason)) {
    error = "a race";
  }
  free(backwards);
  if (error == NULL) return true;
  snprintf(c->reason, sizeof c->reason, "evaluator: %s", error);
  return false;
}

bool program_case_open(program_case_t* c, const char* text, uint64_t seed,
                       const program_run_options_t* options) {
  memset(c, 0, sizeof *c);
  c->seed = seed;
  const kiln_string_view_t view = {text, strlen(text)};
  if (!take(c, "parse", kiln_program_parse(view, NULL, NULL, &c->program))) {
    return false;
  }
  c->ir = kilni_program_ir(c->program);
  if (c->ir->buffers.count > PROGRAM_BUFFERS_MAX ||
      c->ir->scalars.count > PROGRAM_SCALARS_MAX || !make_inputs(c, options)) {
    snprintf(c->reason, sizeof c->reason, "too large to be run");
    return false;
  }
  if (!evaluate_both_ways(c)) return false;
  kiln_program_lower_options_t lower = kiln_program_lower_options_default();
  lower.sm = options->sm;
  lower.newest_isa = options->newest_isa;
  lower.without = options->without;
  if (!take(c, "lower", kiln_program_lower(c->program, &lower, &c->code))) {
    return false;
  }
  char found[PTX_DEFINED_BYTES];
  const char* problem =
      ptx_defined_text(kiln_program_code_text(c->code), found);
  if (problem != NULL) {
    snprintf(c->reason, sizeof c->reason, "lowered: %s", problem);
  }
  return problem == NULL;
}

void program_case_close(program_case_t* c) {
  kiln_program_code_release(c->code);
  kiln_program_release(c->program);
  free(c->inputs);
  free(c->outputs);
  memset(c, 0, sizeof *c);
}

// -- a batch ----------------------------------------------------------------

// The text of all cases as one module: the newest version, the newest target,
// then each one's own without its head.
static char* join(program_case_t* cases, uint32_t count) {
  size_t space = 256;
  kiln_program_launch_t most = {.sm = 0};
  for (uint32_t i = 0; i < count; i++) {
    kiln_program_launch_t launch;
    kiln_program_code_launch(cases[i].code, &launch);
    if (launch.isa > most.isa) most.isa = launch.isa;
    if (launch.sm > most.sm) most.sm = launch.sm;
    space += kiln_program_code_text(cases[i].code).size + 1U;
  }
  char* text = malloc(space);
  if (text == NULL) return NULL;
  size_t size = (size_t)snprintf(
      text, space, ".version %u.%u\n.target sm_%u\n.address_size 64\n",
      most.isa / 10U, most.isa % 10U, most.sm);
  for (uint32_t i = 0; i < count; i++) {
    const kiln_string_view_t own = kiln_program_code_text(cases[i].code);
    const char* at = strstr(own.data, ".address_size");
    at = at != NULL ? strchr(at, '\n') : own.data;
    const size_t left = own.size - (size_t)(at - own.data);
    memcpy(text + size, at, left);
    size += left;
  }
  text[size] = '\0';
  return text;
}

static bool argument(const program_case_t* c, kiln_buffer_t* memory,
                     const kiln_program_parameter_t* p, kiln_argument_t* out) {
  const uint64_t base = kiln_buffer_address(memory);
  uint32_t at = 0, seen = 0;
  switch (p->kind) {
    case KILN_PROGRAM_PARAMETER_ADDRESS:
    case KILN_PROGRAM_PARAMETER_LENGTH:
      for (at = 1; at < c->ir->buffers.count; at++) {
        if (is_parameter(c->ir, at) && seen++ == p->index) break;
      }
      *out = kiln_arg_u64(p->kind == KILN_PROGRAM_PARAMETER_ADDRESS
                              ? base + c->offsets[at]
                              : c->world.buffers[at].count);
      return true;
    case KILN_PROGRAM_PARAMETER_SCALAR:
      at = p->index + 1U;
      *out = kiln_arg_bytes(&c->world.scalars[at],
                            program_type_bytes(c->ir->scalars.items[at].type));
      return true;
    case KILN_PROGRAM_PARAMETER_WORK:
      *out = kiln_arg_u32(c->world.work[p->index]);
      return true;
    case KILN_PROGRAM_PARAMETER_TRAP:
      *out = kiln_arg_u64(base + c->trap_offset);
      return true;
    case KILN_PROGRAM_PARAMETER_GRID:
      *out = kiln_arg_u64(base + c->grid_offset);
      return true;
    default:
      return false;
  }
}

static kiln_status_t launch(program_case_t* c, kiln_module_t* module,
                            kiln_stream_t* stream, kiln_buffer_t* memory) {
  kiln_argument_t arguments[ARGUMENTS_MAX];
  kiln_program_parameter_t parameter;
  kiln_program_launch_t shape;
  kiln_launch_config_t config = kiln_launch_config_default();
  kiln_launch_attributes_t attributes = kiln_launch_attributes_default();
  kiln_kernel_t* kernel = NULL;
  uint32_t count = 0;
  kiln_program_code_launch(c->code, &shape);
  while (count < ARGUMENTS_MAX &&
         kiln_program_code_parameter(c->code, count, &parameter)) {
    if (!argument(c, memory, &parameter, &arguments[count])) break;
    count++;
  }
  uint64_t work[3];
  for (uint32_t k = 0; k < 3U; k++) {
    work[k] = c->world.work[k];
    config.block[k] = shape.block[k];
    if (work[k] == 0U) return kiln_ok();
  }
  kiln_program_code_grid(c->code, work, config.grid);
  config.shared_bytes = shape.dynamic_shared_bytes;
  if (shape.cooperative != 0U) {
    attributes.cooperative = KILN_SWITCH_ON;
    config.attributes = &attributes;
  }
  kiln_status_t status =
      kiln_kernel_create(module, kiln_program_code_entry(c->code), &kernel);
  if (kiln_status_is_ok(status)) {
    status = kiln_kernel_launch(kernel, stream, &config, arguments, count);
  }
  kiln_kernel_release(kernel);
  return status;
}

static void compare(program_case_t* c, const uint8_t* got) {
  kiln_program_trap_t trap;
  memcpy(&trap, got + c->trap_offset, sizeof trap);
  if (trap.set != c->world.trap.set || trap.tag != c->world.trap.tag ||
      trap.address != c->world.trap.address) {
    snprintf(c->reason, sizeof c->reason,
             "trap: %u, tag %u, address %llx; evaluator %u, %u, %llx", trap.set,
             trap.tag, (unsigned long long)trap.address, c->world.trap.set,
             c->world.trap.tag, (unsigned long long)c->world.trap.address);
    return;
  }
  // Those who meet at a barrier behind a trap may have stopped there.
  if (trap.set == 0U) (void)same_results(c, got, c->reason);
}

static kiln_status_t run_all(kiln_device_t* device, kiln_stream_t* stream,
                             kiln_module_t* module, program_case_t* cases,
                             uint32_t count) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (cases[i].bytes > most) most = cases[i].bytes;
  }
  kiln_buffer_t* memory = NULL;
  uint8_t* got = calloc(most + 1, 1);
  kiln_status_t status = kiln_buffer_create(device, most, NULL, &memory);
  for (uint32_t i = 0; i < count && kiln_status_is_ok(status); i++) {
    program_case_t* c = &cases[i];
    status = kiln_buffer_write(memory, 0, (size_t)c->bytes, c->inputs);
    if (kiln_status_is_ok(status)) status = launch(c, module, stream, memory);
    if (kiln_status_is_ok(status)) status = kiln_stream_synchronize(stream);
    if (kiln_status_is_ok(status)) {
      status = kiln_buffer_read(memory, 0, (size_t)c->bytes, got);
    }
    if (kiln_status_is_ok(status)) compare(c, got);
  }
  kiln_buffer_release(memory);
  free(got);
  return status;
}

static double seconds(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool program_batch_run(kiln_device_t* device, kiln_stream_t* stream,
                       program_case_t* cases, uint32_t count,
                       char out_error[PROGRAM_REASON_BYTES],
                       program_times_t* times) {
  kiln_module_t* module = NULL;
  char* text = join(cases, count);
  out_error[0] = '\0';
  if (text == NULL) return false;
  kiln_bytes_view_t image = {(const uint8_t*)text, strlen(text) + 1U};
  if (cases[0].image != NULL) {
    image = (kiln_bytes_view_t){cases[0].image, cases[0].image_size};
  }
  const double start = seconds();
  kiln_status_t status = kiln_module_load(device, image, NULL, NULL, &module);
  const double loaded = seconds();
  if (kiln_status_is_ok(status)) {
    status = run_all(device, stream, module, cases, count);
  }
  if (times != NULL) {
    times->load += loaded - start;
    times->run += seconds() - loaded;
  }
  if (!kiln_status_is_ok(status)) {
    snprintf(out_error, PROGRAM_REASON_BYTES, "%s",
             kiln_status_message(status));
    kiln_status_free(status);
  }
  kiln_module_release(module);
  free(text);
  return out_error[0] == '\0';
}

int program_try(kiln_device_t* device, kiln_stream_t* stream, const char* text,
                uint64_t seed, const program_run_options_t* options,
                char reason[PROGRAM_REASON_BYTES]) {
  program_case_t* c = calloc(1, sizeof *c);
  int result = 2;
  if (c == NULL) return 2;
  reason[0] = '\0';
  if (!program_case_open(c, text, seed, options)) {
    snprintf(reason, PROGRAM_REASON_BYTES, "%s", c->reason);
    // What the evaluator can run and the lowering refuses is a difference.
    result = strncmp(c->reason, "lower", 5) == 0 ? 1 : 2;
  } else if (!program_batch_run(device, stream, c, 1, reason, NULL)) {
    result = 1;
  } else {
    snprintf(reason, PROGRAM_REASON_BYTES, "%s", c->reason);
    result = c->reason[0] != '\0';
  }
  program_case_close(c);
  free(c);
  return result;
}

void program_case_print(const program_case_t* c) {
  printf("inputs by seed %llu, work (%u, %u, %u)\n",
         (unsigned long long)c->seed, c->world.work[0], c->world.work[1],
         c->world.work[2]);
  for (uint32_t i = 1; i < c->ir->scalars.count; i++) {
    printf("%s = %llx\n", &c->ir->names.items[c->ir->scalars.items[i].name],
           (unsigned long long)c->world.scalars[i]);
  }
  for (uint32_t b = 1; b < c->ir->buffers.count; b++) {
    if (!is_parameter(c->ir, b)) continue;
    const kilni_program_buffer_record_t* record = &c->ir->buffers.items[b];
    const uint32_t size = program_type_bytes(record->type);
    printf("%s:", &c->ir->names.items[record->name]);
    for (uint64_t i = 0; i < c->world.buffers[b].count && i < 32U; i++) {
      uint64_t value = 0;
      memcpy(&value, c->inputs + c->offsets[b] + i * size, size);
      printf(" %llx", (unsigned long long)value);
    }
    printf("\n");
  }
}
