// SPDX-License-Identifier: Apache-2.0
//
// library: plans: made by a recipe, run as dispatches one behind the other.
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "base/status_make.h"
#include "dispatch/dispatch.h"
#include "kiln/dispatch.h"
#include "kiln/library.h"
#include "kiln/pipeline.h"
#include "kiln/program.h"
#include "kiln/resident.h"
#include "kiln/sequence.h"
#include "library/library_inside.h"

// ---- Making ----

void kilni_library_define(kilni_library_make_t* make, const char* name,
                          const char* value) {
  make->defines[make->define_count].name = name;
  make->defines[make->define_count].value = value;
  make->define_count++;
}

static kiln_status_t plan_read_program(kilni_library_make_t* make,
                                       const char* name,
                                       kiln_program_t** out_program) {
  kiln_library_entry_t entry;
  if (!kiln_library_find(name, &entry)) {
    return KILNI_FAIL(INTERNAL, "the library has no text \"%s\"", name);
  }
  kiln_program_parse_options_t options = kiln_program_parse_options_default();
  options.file_name = name;
  options.defines = make->defines;
  options.define_count = make->define_count;
  options.allocator = &make->plan->allocator;
  make->define_count = 0;
  if (make->options.order == NULL) {
    return kiln_program_parse(entry.text, &options, NULL, out_program);
  }
  char* text = NULL;
  size_t bytes = 0;
  KILNI_RETURN_IF_ERROR(kilni_library_reorder(make, &entry, &text, &bytes));
  kiln_string_view_t view = {text, bytes - 1};
  kiln_status_t status = kiln_program_parse(view, &options, NULL, out_program);
  kilni_base_free(make->plan->allocator, text, bytes);
  return status;
}

const kiln_device_info_t* kilni_library_device(
    const kilni_library_make_t* make) {
  static const kiln_device_info_t kAny = {.multiprocessors = 1};
  const kiln_dispatcher_t* dispatcher = make->plan->dispatcher;
  return dispatcher == NULL
             ? &kAny
             : kiln_device_info(kiln_dispatcher_device(dispatcher));
}

// The plan's parameters that this step is the first to name.
static void note_parameters(kiln_library_plan_t* plan, uint32_t at) {
  const kilni_library_step_t* step = &plan->steps[at];
  for (uint32_t i = 0; i < step->place_count; i++) {
    if (step->places[i].kind != KILNI_PLACE_GIVEN) continue;
    uint32_t index = step->places[i].index;
    if (plan->parameters[index].is_known) continue;
    plan->parameters[index].is_known = true;
    plan->parameters[index].step = at;
    plan->parameters[index].place = i;
    if (plan->parameter_count <= index) plan->parameter_count = index + 1;
  }
}

kiln_status_t kilni_library_add(kilni_library_make_t* make, const char* name,
                                const kilni_library_place_t* places,
                                uint32_t place_count, uint32_t clears) {
  kiln_library_plan_t* plan = make->plan;
  kiln_program_t* program = NULL;
  KILNI_RETURN_IF_ERROR(plan_read_program(make, name, &program));
  kiln_pipeline_options_t options = kiln_pipeline_options_default();
  options.max_ulp = make->options.max_ulp;
  kilni_library_step_t* step = &plan->steps[plan->step_count];
  step->program = program;
  // Without a device it is checked as far as it is read.
  if (plan->dispatcher != NULL) {
    KILNI_RETURN_IF_ERROR(kiln_pipeline_create(plan->dispatcher, program,
                                               &options, &step->pipeline));
    kilni_dispatch_pipeline_keep_options(step->pipeline);
  }
  uint32_t taken = kiln_program_parameter_count(program);
  if (place_count == KILNI_LIBRARY_EVERY && taken <= KILNI_LIBRARY_PLACES) {
    place_count = taken;
  }
  if (place_count != taken) {
    return KILNI_FAIL(INTERNAL, "\"%s\" has %u parameters", name,
                      (unsigned)taken);
  }
  step->place_count = place_count;
  step->clears = clears;
  memcpy(step->places, places, place_count * sizeof(*places));
  note_parameters(plan, plan->step_count++);
  return kiln_ok();
}

static void drop_step(kilni_library_step_t* step) {
  kiln_pipeline_release(step->pipeline);
  kiln_program_release(step->program);
  step->pipeline = NULL;
  step->program = NULL;
}

static kiln_status_t run_step(const kiln_library_plan_t* plan,
                              const kilni_library_step_t* step,
                              kiln_stream_t* stream,
                              const kiln_binding_t* bindings,
                              kiln_pending_t** out_pending);

kiln_status_t kilni_library_once(kilni_library_make_t* make, const char* name,
                                 uint32_t memory) {
  kiln_library_plan_t* plan = make->plan;
  const kilni_library_place_t place = {KILNI_PLACE_MEMORY, memory};
  KILNI_RETURN_IF_ERROR(
      kilni_library_add(make, name, &place, 1, KILN_SWITCH_OFF));
  kilni_library_step_t* step = &plan->steps[--plan->step_count];
  kiln_pending_t* pending = NULL;
  kiln_status_t status = kiln_ok();
  if (plan->dispatcher != NULL) {
    status = run_step(plan, step, NULL, NULL, &pending);
  }
  if (pending != NULL) {
    status = kiln_pending_wait(pending, KILN_PENDING_FOREVER);
  }
  kiln_pending_release(pending);
  drop_step(step);
  return status;
}

void kilni_library_again(kilni_library_make_t* make, uint32_t step,
                         const kilni_library_place_t* places) {
  kiln_library_plan_t* plan = make->plan;
  kilni_library_step_t* next = &plan->steps[plan->step_count];
  *next = plan->steps[step];
  kiln_pipeline_retain(next->pipeline);
  kiln_program_retain(next->program);
  memcpy(next->places, places, next->place_count * sizeof(*places));
  note_parameters(plan, plan->step_count++);
}

kiln_status_t kilni_library_memory(kilni_library_make_t* make, uint64_t bytes) {
  kiln_library_plan_t* plan = make->plan;
  if (plan->dispatcher == NULL) return kiln_ok();
  kiln_device_t* device = kiln_dispatcher_device(plan->dispatcher);
  kiln_buffer_t** buffer = &plan->memories[plan->memory_count];
  KILNI_RETURN_IF_ERROR(kiln_buffer_create(device, bytes, NULL, buffer));
  plan->memory_count++;
  plan->memory_bytes += bytes;
  return kiln_buffer_fill(*buffer, 0, bytes, 0, 4);
}

kiln_status_t kilni_library_need_count(const kilni_library_make_t* make) {
  uint64_t count = make->options.count;
  if (count > 0 && count < KILNI_LIBRARY_COUNT_MOST) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "`options.count` is %llu for \"%s\"",
                 (unsigned long long)count, make->entry.name),
      "say how many elements a run has at most: fewer than 2^32 - 2^16");
}

static void plan_destroy(kiln_library_plan_t* plan) {
  kiln_dispatcher_t* dispatcher = plan->dispatcher;
  kiln_sequence_release(plan->rounds.sequence);
  for (uint32_t i = 0; i < KILNI_LIBRARY_STEPS; i++) {
    drop_step(&plan->steps[i]);
  }
  for (uint32_t i = 0; i < KILNI_LIBRARY_MEMORIES; i++) {
    kiln_buffer_release(plan->memories[i]);
  }
  kilni_base_free(plan->allocator, plan, sizeof(*plan));
  kiln_dispatcher_release(dispatcher);
}

// Makes a plan; `dispatcher` NULL makes one that can do nothing.
static kiln_status_t plan_create(kiln_dispatcher_t* dispatcher,
                                 kiln_allocator_t allocator, const char* name,
                                 const kiln_library_options_t* options,
                                 kiln_library_plan_t** out_plan) {
  KILNI_CHECK_ARGUMENT(name != NULL, "name");
  kilni_library_make_t make;
  memset(&make, 0, sizeof(make));
  KILNI_RETURN_IF_ERROR(kilni_base_options_read(
      options, "kiln_library_options_t", sizeof(make.options), &make.options));
  if (!kiln_library_find(name, &make.entry)) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(NOT_FOUND, "the library has no entry \"%s\"", name),
        "`kiln lib list` has them all");
  }
  if (make.entry.part_of != NULL) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT, "\"%s\" is a part of the library's \"%s\"",
                   name, make.entry.part_of),
        "plan \"%s\"", make.entry.part_of);
  }
  void* block = NULL;
  KILNI_RETURN_IF_ERROR(
      kilni_base_alloc(allocator, sizeof(kiln_library_plan_t), &block));
  kiln_library_plan_t* plan = block;
  plan->dispatcher = dispatcher;
  if (dispatcher != NULL) kiln_dispatcher_retain(dispatcher);
  plan->allocator = allocator;
  atomic_init(&plan->references, 1);
  plan->name = make.entry.name;
  plan->count = make.options.count;
  make.plan = plan;
  kiln_status_t status = kilni_library_recipe(&make);
  if (!kiln_status_is_ok(status)) {
    plan_destroy(plan);
    return KILNI_ANNOTATE(status, "a plan of the library's \"%s\"",
                          make.entry.name);
  }
  *out_plan = plan;
  return kiln_ok();
}

kiln_status_t kiln_library_plan_create(kiln_dispatcher_t* dispatcher,
                                       const char* name,
                                       const kiln_library_options_t* options,
                                       kiln_library_plan_t** out_plan) {
  KILNI_CHECK_ARGUMENT(out_plan != NULL, "out_plan");
  *out_plan = NULL;
  KILNI_CHECK_ARGUMENT(dispatcher != NULL, "dispatcher");
  return plan_create(dispatcher,
                     kiln_dispatcher_device(dispatcher)->host->allocator, name,
                     options, out_plan);
}

kiln_status_t kiln_library_check(const char* name,
                                 const kiln_library_options_t* options,
                                 const kiln_allocator_t* allocator) {
  kiln_library_plan_t* plan = NULL;
  kiln_allocator_t own = allocator != NULL ? *allocator : kiln_allocator_libc();
  KILNI_RETURN_IF_ERROR(plan_create(NULL, own, name, options, &plan));
  kiln_library_plan_release(plan);
  return kiln_ok();
}

void kiln_library_plan_retain(kiln_library_plan_t* plan) {
  if (plan != NULL) atomic_fetch_add(&plan->references, 1);
}

void kiln_library_plan_release(kiln_library_plan_t* plan) {
  if (plan != NULL && atomic_fetch_sub(&plan->references, 1) == 1) {
    plan_destroy(plan);
  }
}

// ---- Running ----

// How many bytes are bound.
static kiln_status_t find_bytes(const kiln_library_plan_t* plan,
                                const kiln_binding_t* binding,
                                uint64_t* out_bytes) {
  *out_bytes = binding->bytes;
  if (binding->bytes != 0 || binding->kind == KILN_BINDING_POINTER) {
    return kiln_ok();
  }
  uint64_t all = 0;
  if (binding->kind == KILN_BINDING_RESIDENT) {
    KILNI_RETURN_IF_ERROR(
        kiln_resident_size(plan->dispatcher, binding->value.resident, &all));
  } else if (binding->kind == KILN_BINDING_BUFFER &&
             binding->value.buffer != NULL) {
    all = kiln_buffer_size(binding->value.buffer);
  }
  *out_bytes = binding->offset < all ? all - binding->offset : 0;
  return kiln_ok();
}

// Its whole words; none where it stands between words. What Kiln allocates
// begins at a word's place.
static kiln_status_t plan_find_words(const kiln_library_plan_t* plan,
                                     const kiln_binding_t* binding,
                                     kiln_binding_t* out_words) {
  uint64_t bytes = 0;
  KILNI_RETURN_IF_ERROR(find_bytes(plan, binding, &bytes));
  uint64_t place = binding->kind == KILN_BINDING_POINTER
                       ? binding->value.address
                       : binding->offset;
  *out_words = *binding;
  out_words->bytes = bytes / 4 * 4;
  if (bytes < 4 || place % 4 != 0) *out_words = kiln_bind_pointer(0, 0);
  return kiln_ok();
}

kiln_status_t kilni_library_bind(const kiln_library_plan_t* plan,
                                 const kilni_library_step_t* step,
                                 const kiln_binding_t* bindings,
                                 kiln_binding_t* bound) {
  uint64_t bytes;
  for (uint32_t i = 0; i < step->place_count; i++) {
    uint32_t index = step->places[i].index;
    if (step->places[i].kind == KILNI_PLACE_GIVEN) {
      bound[i] = bindings[index];
    } else if (step->places[i].kind == KILNI_PLACE_MEMORY) {
      bound[i] = kiln_bind_buffer(plan->memories[index]);
    } else if (step->places[i].kind == KILNI_PLACE_VALUE) {
      bound[i] = kiln_bind_u32(index);
    } else if (step->places[i].kind == KILNI_PLACE_WORDS) {
      KILNI_RETURN_IF_ERROR(plan_find_words(plan, &bindings[index], &bound[i]));
    } else if (step->places[i].kind == KILNI_PLACE_ALIKE) {
      KILNI_RETURN_IF_ERROR(find_bytes(plan, &bindings[0], &bytes));
      kiln_buffer_t* memory = plan->memories[index];
      uint64_t most = kiln_buffer_size(memory);
      bound[i] = kiln_bind_pointer(kiln_buffer_address(memory),
                                   bytes < most ? bytes : most);
    } else {
      bound[i] = kiln_bind_pointer(0, 0);
    }
  }
  return kiln_ok();
}

static kiln_status_t run_step(const kiln_library_plan_t* plan,
                              const kilni_library_step_t* step,
                              kiln_stream_t* stream,
                              const kiln_binding_t* bindings,
                              kiln_pending_t** out_pending) {
  kiln_binding_t bound[KILNI_LIBRARY_PLACES];
  KILNI_RETURN_IF_ERROR(kilni_library_bind(plan, step, bindings, bound));
  kiln_dispatch_options_t options = kiln_dispatch_options_default();
  options.clear_outputs = step->clears;
  return kiln_pipeline_dispatch(step->pipeline, stream, bound,
                                step->place_count, &options, out_pending);
}

static kiln_status_t check_bindings(const kiln_library_plan_t* plan,
                                    const kiln_binding_t* bindings,
                                    uint32_t count) {
  if (count != plan->parameter_count) {
    return kilni_base_status_with_fix(
        KILNI_FAIL(INVALID_ARGUMENT,
                   "the library's \"%s\" takes %u bindings, not %u", plan->name,
                   (unsigned)plan->parameter_count, (unsigned)count),
        "docs/library/ lists them for each entry");
  }
  KILNI_CHECK_ARGUMENT(bindings != NULL, "bindings");
  for (uint32_t i = 0; i < count; i++) {
    if (bindings[i].kind < KILN_BINDING_HOST_IN ||
        bindings[i].kind > KILN_BINDING_STATIC) {
      continue;
    }
    return kilni_base_status_with_fix(
        KILNI_FAIL(UNSUPPORTED, "host memory for binding %u of \"%s\"",
                   (unsigned)i, plan->name),
        "bind a resident buffer, and copy to and from it");
  }
  return kiln_ok();
}

// No more elements than its memory is for.
static kiln_status_t plan_check_count(const kiln_library_plan_t* plan,
                                      const kiln_binding_t* bindings) {
  kiln_pipeline_parameter_t first;
  uint64_t bytes = 0;
  if (plan->count == 0 || !kiln_library_plan_parameter(plan, 0, &first) ||
      first.type_bytes == 0) {
    return kiln_ok();
  }
  KILNI_RETURN_IF_ERROR(find_bytes(plan, &bindings[0], &bytes));
  if (bytes / first.type_bytes <= plan->count) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT,
                 "%llu elements for a plan of \"%s\" for at most %llu",
                 (unsigned long long)(bytes / first.type_bytes), plan->name,
                 (unsigned long long)plan->count),
      "make the plan with the `count` of the largest run");
}

static kiln_status_t find_address(const kiln_library_plan_t* plan,
                                  const kiln_binding_t* binding,
                                  uint64_t* out_address) {
  *out_address = 0;
  if (binding->kind == KILN_BINDING_POINTER) {
    *out_address = binding->value.address;
  } else if (binding->kind == KILN_BINDING_RESIDENT) {
    KILNI_RETURN_IF_ERROR(kiln_resident_address(
        plan->dispatcher, binding->value.resident, out_address));
  } else if (binding->kind == KILN_BINDING_BUFFER &&
             binding->value.buffer != NULL) {
    *out_address = kiln_buffer_address(binding->value.buffer);
  }
  *out_address += binding->offset;
  return kiln_ok();
}

// Each launch sees to what it is bound to itself.
static kiln_status_t plan_check_apart(const kiln_library_plan_t* plan,
                                      const kiln_binding_t* bindings) {
  uint64_t begins[2], bytes[2];
  if (plan->apart[0] == plan->apart[1]) return kiln_ok();
  for (uint32_t i = 0; i < 2; i++) {
    const kiln_binding_t* binding = &bindings[plan->apart[i]];
    KILNI_RETURN_IF_ERROR(find_bytes(plan, binding, &bytes[i]));
    KILNI_RETURN_IF_ERROR(find_address(plan, binding, &begins[i]));
  }
  uint32_t low = begins[0] <= begins[1] ? 0 : 1;
  if (bytes[0] == 0 || bytes[1] == 0 ||
      begins[1 - low] - begins[low] >= bytes[low]) {
    return kiln_ok();
  }
  kiln_pipeline_parameter_t first, second;
  (void)kiln_library_plan_parameter(plan, plan->apart[0], &first);
  (void)kiln_library_plan_parameter(plan, plan->apart[1], &second);
  return kilni_base_status_with_fix(
      KILNI_FAIL(INVALID_ARGUMENT, "\"%s\" and \"%s\" of \"%s\" overlap",
                 first.name, second.name, plan->name),
      "bind memory that does not overlap");
}

// The pending, where one is wanted, is that of what comes last.
static kiln_status_t plan_run_all(kiln_library_plan_t* plan,
                                  kiln_stream_t* stream,
                                  const kiln_binding_t* bindings,
                                  kiln_pending_t** out_pending) {
  bool has_rounds = plan->rounds.count != 0;
  uint32_t count = has_rounds ? plan->rounds.first : plan->step_count;
  for (uint32_t i = 0; i < count; i++) {
    bool is_last = !has_rounds && i + 1 == count;
    KILNI_RETURN_IF_ERROR(run_step(plan, &plan->steps[i], stream, bindings,
                                   is_last ? out_pending : NULL));
  }
  if (!has_rounds) return kiln_ok();
  return kilni_library_run_rounds(plan, stream, bindings, out_pending);
}

// Before anything is put on it, so that a graph has all of a run or nothing:
// the last step would refuse a pending, and rounds may be a graph of their own,
// which no other one can hold.
static kiln_status_t plan_check_capture(const kiln_library_plan_t* plan,
                                        kiln_stream_t* stream,
                                        bool wants_pending) {
  bool has_rounds = plan->rounds.count != 0, captured = false;
  if (stream == NULL || (!wants_pending && !has_rounds)) return kiln_ok();
  KILNI_RETURN_IF_ERROR(kilni_device_stream_ask_capture(stream, &captured));
  if (!captured) return kiln_ok();
  return kilni_base_status_with_fix(
      KILNI_FAIL(
          INVALID_STATE,
          "%s of the library's \"%s\" on a stream that is being captured",
          has_rounds ? "rounds" : "a pending", plan->name),
      has_rounds ? "run it in front of the capture, or behind it"
                 : "call kiln_library_plan_run, which has none");
}

static kiln_status_t library_plan_run(kiln_library_plan_t* plan,
                                      kiln_stream_t* stream,
                                      const kiln_binding_t* bindings,
                                      uint32_t count,
                                      kiln_pending_t** out_pending) {
  KILNI_CHECK_ARGUMENT(plan != NULL, "plan");
  KILNI_RETURN_IF_ERROR(check_bindings(plan, bindings, count));
  KILNI_RETURN_IF_ERROR(plan_check_count(plan, bindings));
  KILNI_RETURN_IF_ERROR(plan_check_apart(plan, bindings));
  KILNI_RETURN_IF_ERROR(plan_check_capture(plan, stream, out_pending != NULL));
  kiln_status_t status = plan_run_all(plan, stream, bindings, out_pending);
  if (kiln_status_is_ok(status)) return kiln_ok();
  return KILNI_ANNOTATE(
      status, "the library's \"%s\", planned for at most %llu elements",
      plan->name, (unsigned long long)plan->count);
}

kiln_status_t kiln_library_plan_run(kiln_library_plan_t* plan,
                                    kiln_stream_t* stream,
                                    const kiln_binding_t* bindings,
                                    uint32_t binding_count) {
  return library_plan_run(plan, stream, bindings, binding_count, NULL);
}

kiln_status_t kiln_library_plan_begin(kiln_library_plan_t* plan,
                                      kiln_stream_t* stream,
                                      const kiln_binding_t* bindings,
                                      uint32_t binding_count,
                                      kiln_pending_t** out_pending) {
  KILNI_CHECK_ARGUMENT(out_pending != NULL, "out_pending");
  *out_pending = NULL;
  return library_plan_run(plan, stream, bindings, binding_count, out_pending);
}

// ---- Questions ----

void kiln_library_plan_info(const kiln_library_plan_t* plan,
                            kiln_library_plan_info_t* out_info) {
  memset(out_info, 0, sizeof(*out_info));
  if (plan == NULL) return;
  out_info->name = plan->name;
  out_info->temporary_bytes = plan->memory_bytes;
  out_info->parameter_count = plan->parameter_count;
  out_info->launches = plan->step_count;
}

bool kiln_library_plan_parameter(const kiln_library_plan_t* plan,
                                 uint32_t index,
                                 kiln_pipeline_parameter_t* out_parameter) {
  memset(out_parameter, 0, sizeof(*out_parameter));
  if (plan == NULL || index >= plan->parameter_count) return false;
  const kilni_library_step_t* step = &plan->steps[plan->parameters[index].step];
  return kiln_pipeline_parameter(step->pipeline, plan->parameters[index].place,
                                 out_parameter);
}
