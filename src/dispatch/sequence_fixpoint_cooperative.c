// SPDX-License-Identifier: Apache-2.0
//
// dispatch: fixpoints of one dispatch as one cooperative launch: the program
// repeats itself until a round changes nothing (kiln_program_lower_options_t,
// `rounds`), and its blocks wait for each other.
#include "base/status_make.h"
#include "dispatch/sequence_fixpoint.h"

static kiln_status_t cannot(const char* why, const char* fix) {
  return kilni_base_status_with_fix(KILNI_FAIL(UNSUPPORTED, "%s", why), "%s",
                                    fix);
}

// ---- Whether it can be ----

static kiln_status_t cooperative_check_body(
    const kilni_dispatch_fixpoint_t* fixpoint) {
  const kilni_dispatch_step_t* step = kilni_dispatch_fixpoint_step(fixpoint);
  const kiln_prepared_t* prepared =
      fixpoint->instance->prepared[fixpoint->step + 1];
  if (step->body != 1 || prepared == NULL) {
    return cannot("its body is more than one dispatch",
                  "use a WHILE node (KILN_FIXPOINT_WHILE)");
  }
  if (prepared->pipeline->program == NULL) {
    return cannot("its body is a kernel that is not a program",
                  "use a WHILE node (KILN_FIXPOINT_WHILE), or write the kernel "
                  "as a program");
  }
  if (!kiln_dispatcher_has_grid_barrier(fixpoint->dispatcher)) {
    return cannot("the device has no cooperative launches",
                  "use a WHILE node (KILN_FIXPOINT_WHILE)");
  }
  if (prepared->pipeline->info.overlapping != 0) {
    return cannot("its buffers may overlap its flag",
                  "make the pipeline without `overlapping`");
  }
  const uint32_t* grid = prepared->options.grid;
  if (grid[0] != 0 || grid[1] != 0 || grid[2] != 0) {
    return cannot("its dispatch specifies the number of blocks",
                  "leave `grid` to the pipeline");
  }
  return kiln_ok();
}

// The plan of the dispatch, with what was uploaded for it.
static kiln_status_t make_plan_of(const kiln_prepared_t* prepared,
                                  const kiln_binding_t* bindings,
                                  kilni_dispatch_plan_t* plan) {
  KILNI_RETURN_IF_ERROR(
      kilni_dispatch_plan_make(prepared->pipeline, bindings, prepared->count,
                               &prepared->options, true, plan));
  for (uint32_t i = 0; i < prepared->count; i++) {
    if (bindings[i].kind != KILN_BINDING_STATIC) continue;
    plan->bound[i].address = prepared->buffers[i] == NULL
                                 ? 0
                                 : kiln_buffer_address(prepared->buffers[i]);
  }
  return kiln_ok();
}

static kiln_status_t cooperative_make_plan(const kiln_prepared_t* prepared,
                                           kilni_dispatch_plan_t* plan) {
  return make_plan_of(prepared, prepared->bindings, plan);
}

static kiln_status_t find_flag(const kilni_dispatch_fixpoint_t* fixpoint,
                               const kilni_dispatch_plan_t* plan,
                               uint32_t* out_flag) {
  const kilni_dispatch_step_t* step = kilni_dispatch_fixpoint_step(fixpoint);
  const kiln_prepared_t* prepared =
      fixpoint->instance->prepared[fixpoint->step + 1];
  const kiln_pipeline_t* pipeline = prepared->pipeline;
  *out_flag = UINT32_MAX;
  for (uint32_t i = 0; i < prepared->count; i++) {
    const kilni_dispatch_bound_t* bound = &plan->bound[i];
    if (pipeline->places[i].is_buffer && bound->address == step->to.address &&
        bound->bytes == 4) {
      *out_flag = i;
    }
  }
  if (*out_flag == UINT32_MAX) {
    return cannot(
        "no parameter of its dispatch is bound to the 4 bytes of the "
        "flag",
        "bind a buffer of one u32 to them");
  }
  for (uint32_t i = 0; i < prepared->count; i++) {
    if (!plan->bound[i].clears || i == *out_flag) continue;
    return cannot("an output has to be cleared before each round",
                  "declare it inout, or write every element of it");
  }
  return kiln_ok();
}

// ---- Code ----

static kiln_status_t cooperative_make_code(kilni_dispatch_fixpoint_t* fixpoint,
                                           kiln_kernel_t** out_kernel) {
  const kiln_prepared_t* prepared =
      fixpoint->instance->prepared[fixpoint->step + 1];
  const kilni_dispatch_fixpoint_t* first =
      kilni_dispatch_fixpoint_first(fixpoint);
  if (first != NULL && first->flag == fixpoint->flag) {
    fixpoint->code = first->code;
    kiln_program_code_retain(fixpoint->code);
    *out_kernel = kiln_launch_kernel(first->launch);
    kiln_kernel_retain(*out_kernel);
    return kiln_ok();
  }
  return kilni_dispatch_pipeline_repeat(prepared->pipeline, fixpoint->flag,
                                        &fixpoint->code, out_kernel);
}

// As many blocks as run at once, and no more than there is work for.
static kiln_status_t choose_grid(const kilni_dispatch_fixpoint_t* fixpoint,
                                 kiln_kernel_t* kernel,
                                 const kilni_dispatch_plan_t* plan,
                                 uint32_t* out_grid) {
  kiln_program_launch_t launch;
  uint32_t grid[3], each = 0;
  uint64_t blocks = 1;
  kiln_program_code_launch(fixpoint->code, &launch);
  kiln_program_code_grid(fixpoint->code, plan->shown.work, grid);
  for (int i = 0; i < 3; i++) {
    blocks = grid[i] != 0 && blocks > UINT32_MAX / grid[i] ? UINT32_MAX
                                                           : blocks * grid[i];
  }
  uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  KILNI_RETURN_IF_ERROR(kiln_kernel_max_blocks(
      kernel, threads, launch.dynamic_shared_bytes, &each));
  uint64_t most =
      (uint64_t)each * fixpoint->dispatcher->device->info.multiprocessors;
  if (most == 0) {
    return cannot(
        "no block of it fits a multiprocessor together with what the rounds "
        "need",
        "use a WHILE node (KILN_FIXPOINT_WHILE)");
  }
  *out_grid = (uint32_t)(blocks < most ? blocks : most);
  if (*out_grid == 0) *out_grid = 1;
  return kiln_ok();
}

static kiln_status_t cooperative_make_launch(
    kilni_dispatch_fixpoint_t* fixpoint, kiln_kernel_t* kernel,
    const kilni_dispatch_plan_t* plan) {
  kiln_launch_config_t config = kiln_launch_config_default();
  kiln_launch_attributes_t attributes = kiln_launch_attributes_default();
  kiln_program_launch_t launch;
  kiln_program_code_launch(fixpoint->code, &launch);
  KILNI_RETURN_IF_ERROR(choose_grid(fixpoint, kernel, plan, &config.grid[0]));
  memcpy(config.block, launch.block, sizeof(config.block));
  config.shared_bytes = launch.dynamic_shared_bytes;
  attributes.cooperative = KILN_SWITCH_ON;
  if (plan->options.priority != 0) {
    attributes.given = KILN_LAUNCH_GIVEN_PRIORITY;
    attributes.priority = plan->options.priority;
  }
  config.attributes = &attributes;
  return kiln_launch_create(kernel, &config, &fixpoint->launch);
}

// ---- Arguments ----

// The index-th buffer or scalar among the parameters.
static uint32_t cooperative_nth(const kiln_pipeline_t* pipeline, uint32_t index,
                                bool buffer) {
  for (uint32_t i = 0; i < pipeline->info.parameter_count; i++) {
    if (pipeline->places[i].is_buffer == buffer && index-- == 0) return i;
  }
  return 0;
}

// A buffer by its name where it is all of it, so that graphs keep it.
static kiln_argument_t cooperative_address_of(const kiln_prepared_t* prepared,
                                              const kilni_dispatch_plan_t* plan,
                                              uint32_t place) {
  kiln_buffer_t* buffer = prepared->buffers[place];
  uint64_t address = plan->bound[place].address;
  if (buffer != NULL && address != 0 &&
      kiln_buffer_address(buffer) == address) {
    return kiln_arg_buffer(buffer);
  }
  return kiln_arg_u64(address);
}

static kiln_argument_t cooperative_argument_of(
    const kilni_dispatch_fixpoint_t* fixpoint,
    const kilni_dispatch_plan_t* plan, const kiln_program_parameter_t* p) {
  const kiln_prepared_t* prepared =
      fixpoint->instance->prepared[fixpoint->step + 1];
  const kiln_pipeline_t* pipeline = prepared->pipeline;
  uint32_t buffer = cooperative_nth(pipeline, p->index, true);
  uint32_t scalar = cooperative_nth(pipeline, p->index, false);
  switch (p->kind) {
    case KILN_PROGRAM_PARAMETER_ADDRESS:
      return cooperative_address_of(prepared, plan, buffer);
    case KILN_PROGRAM_PARAMETER_LENGTH:
      return kiln_arg_u64(plan->bound[buffer].value);
    case KILN_PROGRAM_PARAMETER_SCALAR:
      return kiln_arg_bytes(&plan->bound[scalar].value,
                            pipeline->places[scalar].info.type_bytes);
    case KILN_PROGRAM_PARAMETER_WORK:
      return kiln_arg_u32((uint32_t)plan->shown.work[p->index]);
    case KILN_PROGRAM_PARAMETER_TRAP:
      return kiln_arg_u64(prepared->record->address);
    case KILN_PROGRAM_PARAMETER_MEET:
      return kiln_arg_buffer(fixpoint->state);
    case KILN_PROGRAM_PARAMETER_ROUNDS:
      return kiln_arg_u64(kilni_dispatch_fixpoint_told(fixpoint));
    default:
      return kiln_arg_u32(fixpoint->limit);
  }
}

static kiln_status_t cooperative_give_arguments(
    const kilni_dispatch_fixpoint_t* fixpoint,
    const kilni_dispatch_plan_t* plan) {
  kiln_argument_t arguments[KILNI_PIPELINE_ARGUMENTS];
  kiln_program_parameter_t p;
  uint32_t count = 0;
  while (kiln_program_code_parameter(fixpoint->code, count, &p)) {
    arguments[count++] = cooperative_argument_of(fixpoint, plan, &p);
  }
  return kiln_launch_set_all(fixpoint->launch, arguments, count);
}

// ---- The strategy ----

kiln_status_t kilni_dispatch_fixpoint_make_cooperative(
    kilni_dispatch_fixpoint_t* fixpoint) {
  kilni_dispatch_plan_t plan;
  kiln_kernel_t* kernel = NULL;
  KILNI_RETURN_IF_ERROR(cooperative_check_body(fixpoint));
  KILNI_RETURN_IF_ERROR(cooperative_make_plan(
      fixpoint->instance->prepared[fixpoint->step + 1], &plan));
  KILNI_RETURN_IF_ERROR(find_flag(fixpoint, &plan, &fixpoint->flag));
  KILNI_RETURN_IF_ERROR(cooperative_make_code(fixpoint, &kernel));
  kiln_status_t status = cooperative_make_launch(fixpoint, kernel, &plan);
  kiln_kernel_release(kernel);
  KILNI_RETURN_IF_ERROR(status);
  KILNI_RETURN_IF_ERROR(kilni_dispatch_fixpoint_state(fixpoint, NULL, 0));
  return cooperative_give_arguments(fixpoint, &plan);
}

// Whether the flag is where it was.
static kiln_status_t cooperative_check_flag(
    const kilni_dispatch_fixpoint_t* fixpoint,
    const kilni_dispatch_plan_t* plan) {
  uint32_t flag = 0;
  KILNI_RETURN_IF_ERROR(find_flag(fixpoint, plan, &flag));
  if (flag == fixpoint->flag) return kiln_ok();
  return cannot("a different parameter than before is bound to the flag",
                "bind the flag where it was");
}

kiln_status_t kilni_dispatch_fixpoint_check_cooperative(
    const kilni_dispatch_fixpoint_t* fixpoint, uint32_t index,
    const kiln_binding_t* binding) {
  const kiln_prepared_t* prepared =
      fixpoint->instance->prepared[fixpoint->step + 1];
  kiln_binding_t bindings[KILNI_PIPELINE_PARAMETERS];
  kilni_dispatch_plan_t plan;
  if (index >= prepared->count) return kiln_ok();
  memcpy(bindings, prepared->bindings, prepared->count * sizeof(bindings[0]));
  bindings[index] = *binding;
  kiln_status_t status = make_plan_of(prepared, bindings, &plan);
  if (kiln_status_is_ok(status)) return cooperative_check_flag(fixpoint, &plan);
  kiln_status_free(status);
  return kiln_ok();
}

kiln_status_t kilni_dispatch_fixpoint_bind_cooperative(
    kilni_dispatch_fixpoint_t* fixpoint) {
  kilni_dispatch_plan_t plan;
  uint32_t grid = 0;
  KILNI_RETURN_IF_ERROR(cooperative_make_plan(
      fixpoint->instance->prepared[fixpoint->step + 1], &plan));
  KILNI_RETURN_IF_ERROR(cooperative_check_flag(fixpoint, &plan));
  KILNI_RETURN_IF_ERROR(choose_grid(
      fixpoint, kiln_launch_kernel(fixpoint->launch), &plan, &grid));
  KILNI_RETURN_IF_ERROR(kiln_launch_set_grid(fixpoint->launch, grid, 1, 1));
  return cooperative_give_arguments(fixpoint, &plan);
}
