// SPDX-License-Identifier: Apache-2.0
//
// cli: one launch through the library, from code file to results.
#define _POSIX_C_SOURCE 200809L
#include "cli/run_session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli_clock.h"
#include "cli/cli_fault.h"
#include "cli/cli_log.h"
#include "cli/cli_progress.h"
#include "cli/cli_report.h"
#include "cli/cli_visible.h"
#include "cli/run_entry.h"
#include "cli/run_facts.h"
#include "cli/run_pipeline.h"
#include "cli/run_program.h"
#include "cli/run_template.h"
#include "kiln/image.h"
#include "kiln/runtime.h"
#include "kiln/soft.h"

#define MAX_KERNELS 4096

// A kernel's own output does not belong among the results.
static void on_print(const char* text, size_t size, void* user) {
  (void)user;
  (void)fwrite(text, 1, size, stderr);
}

// Incompatible components of a toolkit are worth a line; the rest of the log is
// internal.
static void run_session_on_log(kiln_log_level_t level, const char* space,
                               const char* line, void* user) {
  (void)user;
  if (kilni_cli_log_trace(level, line)) return;
  if (kilni_cli_log_matters(level, space)) kilni_cli_note("warning: %s", line);
}

static bool run_session_make_runtime(kilni_cli_session_t* s,
                                     kilni_cli_error_t* error) {
  kiln_runtime_options_t options = kiln_runtime_options_default();
  kiln_log_sink_t log = {run_session_on_log, NULL, kilni_cli_log_level(), 0};
  options.log = &log;
  options.print = on_print;
  options.cache = &s->request->cache.options;
  if (s->request->has_seed) options.soft_seed = s->request->seed;
  options.soft_report = s->request->report;
  options.soft_order = s->request->order;
  return kilni_cli_check(error, kiln_runtime_create(&options, &s->runtime));
}

// Only `auto` falls back: a requested GPU must exist.
static const char* choose_device(kilni_cli_session_t* s, bool* out_ok,
                                 kilni_cli_error_t* error) {
  *out_ok = true;
  if (s->request->device_kind == KILNI_CLI_DEVICE_SOFT) return "soft";
  if (s->request->device_kind == KILNI_CLI_DEVICE_NAMED) {
    return s->request->label;
  }
  bool visible = kilni_cli_visible_apply(s->request->ordinal, error);
  if (s->request->device_kind == KILNI_CLI_DEVICE_AUTO) {
    if (!visible) kilni_cli_note("no GPU used: %s", error->message);
    return visible ? "auto" : "soft";
  }
  *out_ok = visible;
  return "cuda:0";
}

bool kilni_cli_session_open(kilni_cli_session_t* session,
                            kilni_cli_request_t* request,
                            kilni_cli_error_t* error) {
  memset(session, 0, sizeof(*session));
  session->request = request;
  bool ok;
  const char* label = choose_device(session, &ok, error);
  if (!ok || !run_session_make_runtime(session, error)) return false;
  kilni_cli_progress_t progress;
  kilni_cli_progress_start(&progress, "starting %s", label);
  ok = kilni_cli_check(error, kiln_runtime_open_device(session->runtime, label,
                                                       &session->device));
  kilni_cli_progress_stop(&progress);
  if (!ok) {
    if (request->device_kind == KILNI_CLI_DEVICE_CUDA) {
      kilni_cli_visible_explain(request->ordinal, error);
    }
    return false;
  }
  bool soft = kiln_device_info(session->device)->kind == KILN_DEVICE_KIND_SOFT;
  if (soft) {
    memcpy(session->device_name, "soft", 5);
  } else if (request->device_kind == KILNI_CLI_DEVICE_NAMED) {
    (void)snprintf(session->device_name, sizeof(session->device_name), "%s",
                   kiln_device_name(session->device));
  } else {
    (void)snprintf(session->device_name, sizeof(session->device_name),
                   "cuda:%" PRIu32, request->ordinal);
  }
  if (request->device_kind == KILNI_CLI_DEVICE_AUTO) {
    const char* why = kiln_device_note(session->device);
    kilni_cli_note("device: %s%s%s%s", session->device_name,
                   why[0] != 0 ? " (" : "", why, why[0] != 0 ? ")" : "");
  }
  return kilni_cli_dispatcher_open(session, error);
}

static bool run_session_open_kernel(kilni_cli_session_t* s,
                                    kilni_cli_error_t* error) {
  const char* names[MAX_KERNELS];
  uint32_t count = kiln_module_kernel_count(s->module);
  if (count > MAX_KERNELS) count = MAX_KERNELS;
  for (uint32_t i = 0; i < count; i++) {
    names[i] = kiln_module_kernel_name(s->module, i);
  }
  // In a format whose kernels cannot be listed, a kernel can still be looked up
  // by name.
  const char* name = s->request->entry;
  const char* lowered =
      name != NULL ? kiln_code_lowered_name(s->code.text, name) : NULL;
  if (lowered != NULL) name = lowered;
  bool listed = count != 0 || s->request->code_kind != KILNI_CLI_CODE_CUBIN;
  if (listed) {
    uint32_t index;
    if (!kilni_cli_entry_find(names, count, name, s->request->file,
                              "--entry NAME", &index, error)) {
      if (s->request->code_kind == KILNI_CLI_CODE_SOURCE) {
        kilni_cli_template_fix(s->request->file, s->request->entry, "--entry ",
                               '\'', error);
      }
      return false;
    }
    name = names[index];
  }
  return kilni_cli_check(error,
                         kiln_kernel_create(s->module, name, &s->kernel));
}

static bool run_session_fill_facts(kilni_cli_session_t* s,
                                   kilni_cli_error_t* error) {
  if (s->request->program != NULL) {
    kilni_cli_program_facts(s->request->program, s->code.lowered, &s->facts);
    return true;
  }
  return kilni_cli_facts_make(s->kernel, &s->code, &s->facts, &s->use, error);
}

bool kilni_cli_session_load(kilni_cli_session_t* session,
                            kilni_cli_error_t* error) {
  kilni_cli_code_t* code = &session->code;
  code->runtime = session->runtime;
  code->device = session->device;
  code->cache =
      session->request->cache.off ? NULL : kiln_runtime_cache(session->runtime);
  code->file = session->request->file;
  code->kind = session->request->code_kind;
  code->program = session->request->program;
  code->max_ulp = session->request->max_ulp;
  if (code->kind == KILNI_CLI_CODE_SOURCE) {
    code->asked = &session->request->source.options;
  }
  code->time_limit_ns = session->request->time_limit_ns;
  code->files = &session->request->files;
  bool ok = kilni_cli_module_load(code, &session->module, error);
  session->leave_at_once = code->left;
  return ok && run_session_open_kernel(session, error) &&
         run_session_fill_facts(session, error);
}

kiln_argument_t kilni_cli_scalar_argument(const kilni_cli_scalar_t* scalar,
                                          bool is_pointer) {
  bool is_float = kilni_cli_type_info(scalar->type)->kind == 'f';
  if (is_float && scalar->bytes == 4) {
    uint32_t bits = (uint32_t)scalar->bits;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return kiln_arg_f32(value);
  }
  if (is_float && scalar->bytes == 8) {
    double value;
    memcpy(&value, &scalar->bits, sizeof(value));
    return kiln_arg_f64(value);
  }
  if (scalar->bytes == 4) return kiln_arg_u32((uint32_t)scalar->bits);
  if (scalar->bytes == 8 && is_pointer) return kiln_arg_pointer(scalar->bits);
  if (scalar->bytes == 8) return kiln_arg_u64(scalar->bits);
  return kiln_arg_bytes(&scalar->bits, scalar->bytes);
}

static bool fail_trap(const kiln_trap_t* trap, const char* name,
                      kilni_cli_error_t* error) {
  return kilni_cli_fail(
      error, KILN_STATUS_LAUNCH_FAILED,
      "look for trap() in the program; its second operand is the address",
      "the program \"%s\" trapped with tag %" PRIu32 " and address 0x%" PRIx64
      " in thread %" PRIu32 ",%" PRIu32 ",%" PRIu32 " of block %" PRIu32
      ",%" PRIu32 ",%" PRIu32,
      name, trap->tag, trap->address, trap->thread[0], trap->thread[1],
      trap->thread[2], trap->block[0], trap->block[1], trap->block[2]);
}

// Programs of the library trap for one reason only: an argument beyond their
// limits.
static bool fail_limit(const kiln_trap_t* trap, const char* name,
                       kilni_cli_error_t* error) {
  (void)kilni_cli_fail(error, KILN_STATUS_LAUNCH_FAILED, NULL,
                       "lib:%s was given %" PRIu64
                       ", which is more than it takes",
                       name, trap->address);
  kilni_cli_error_fix(error,
                      "give an argument within the limits in the first lines "
                      "of `kiln lib show %s`",
                      name);
  return false;
}

bool kilni_cli_trap_check(kiln_buffer_t* trap_or_null, const char* name,
                          kilni_cli_error_t* error) {
  if (trap_or_null == NULL) return true;
  kiln_program_trap_t trap;
  memset(&trap, 0, sizeof(trap));
  if (!kilni_cli_check(
          error, kiln_buffer_read(trap_or_null, 0, sizeof(trap), &trap))) {
    return false;
  }
  if (trap.set == 0) return true;
  kiln_trap_t told = {.address = trap.address, .tag = trap.tag};
  memcpy(told.block, trap.block, sizeof(told.block));
  memcpy(told.thread, trap.thread, sizeof(told.thread));
  return fail_trap(&told, name, error);
}

// The blocks of a cooperative launch wait for each other: all must be resident
// at once.
static bool check_together(kilni_cli_session_t* s, const kilni_cli_plan_t* plan,
                           kilni_cli_error_t* error) {
  const kiln_device_info_t* device = kiln_device_info(s->device);
  if (!s->request->cooperative || device->cooperative_launch == 0) return true;
  uint64_t threads = (uint64_t)plan->block[0] * plan->block[1] * plan->block[2];
  uint64_t blocks = (uint64_t)plan->grid[0] * plan->grid[1] * plan->grid[2];
  uint32_t each = 0;
  // The launch itself refuses larger sizes than exist.
  if (threads > device->max_threads_per_block) return true;
  if (!kilni_cli_check(
          error, kiln_kernel_max_blocks(s->kernel, (uint32_t)threads,
                                        s->request->shared_bytes, &each))) {
    return false;
  }
  uint64_t most = (uint64_t)each * device->multiprocessors;
  if (blocks <= most || most == 0) return true;
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "a cooperative grid of %" PRIu64 " blocks of %" PRIu64
                       " threads: %s fits %" PRIu64 " of them at once (%" PRIu32
                       " on each of its %" PRIu32 " multiprocessors)",
                       blocks, threads, s->device_name, most, each,
                       device->multiprocessors);
  kilni_cli_error_fix(error,
                      "write --grid %" PRIu64
                      ", and let each thread do more than one element "
                      "(i += gridDim.x * blockDim.x)",
                      most);
  return false;
}

bool kilni_cli_shared_check(const kilni_cli_session_t* session,
                            kiln_kernel_t* kernel, const char* option,
                            uint32_t asked, kilni_cli_error_t* error) {
  const kiln_device_info_t* device = kiln_device_info(session->device);
  const kiln_kernel_info_t* info = kiln_kernel_info(kernel);
  uint32_t own = info->static_shared_bytes;
  uint32_t most = device->shared_optin_bytes > device->shared_bytes
                      ? device->shared_optin_bytes
                      : device->shared_bytes;
  if (asked == 0 || most == 0 || (asked <= most && own <= most - asked)) {
    return true;
  }
  char name[KILNI_CLI_ENTRY_SHOWN], beside[80] = "";
  if (own != 0) {
    (void)snprintf(beside, sizeof(beside),
                   " beside the %" PRIu32 " bytes that it has itself", own);
  }
  (void)kilni_cli_fail(
      error, KILN_STATUS_INVALID_ARGUMENT, NULL,
      "%s %" PRIu32
      " for the kernel \"%s\"%s: a block on %s has at most %" PRIu32
      " bytes of shared memory",
      option, asked, kilni_cli_entry_shown(info->name, name), beside,
      session->device_name, most);
  if (own < most) {
    kilni_cli_error_fix(error, "write at most %s %" PRIu32, option, most - own);
  } else {
    kilni_cli_error_fix(error, "omit %s", option);
  }
  return false;
}

// A program declares its shared memory.
static bool run_session_check_shared(const kilni_cli_session_t* s,
                                     kilni_cli_error_t* error) {
  return s->kernel == NULL ||
         kilni_cli_shared_check(s, s->kernel, "--shared",
                                s->request->shared_bytes, error);
}

static bool run_session_launch(kilni_cli_session_t* s,
                               const kilni_cli_plan_t* plan,
                               kilni_cli_error_t* error) {
  kiln_binding_t bindings[KILNI_CLI_MAX_PARAMS];
  kiln_dispatch_options_t options;
  if (!run_session_check_shared(s, error) || !check_together(s, plan, error) ||
      !kilni_cli_pipeline_make(s, plan, error)) {
    return false;
  }
  if (!kilni_cli_pipeline_options(s, plan, &options)) return true;
  options.timed = KILN_SWITCH_ON;
  uint32_t count = kilni_cli_pipeline_bindings(s, plan, bindings);
  return kilni_cli_check_launch(
      error, kiln_pipeline_dispatch(s->pipeline, s->stream, bindings, count,
                                    &options, &s->pending));
}

bool kilni_cli_session_overdue(kilni_cli_session_t* session, uint64_t began_ns,
                               const char* what, const char* name,
                               const char* look, kilni_cli_error_t* error) {
  uint64_t limit = session->request->time_limit_ns;
  bool is_late = error->code == KILN_STATUS_DEVICE_LOST ||
                 error->code == KILN_STATUS_TIMED_OUT;
  if (limit == 0 || !is_late || kilni_cli_now_ns() - began_ns < limit) {
    return false;
  }
  session->leave_at_once = true;
  (void)kilni_cli_fail(error, KILN_STATUS_DEVICE_LOST, NULL,
                       "%s \"%s\" had not ended after %.3g s", what, name,
                       (double)limit * 1e-9);
  kilni_cli_error_fix(
      error, "give it more time with --time-limit, or look for %s", look);
  kilni_cli_fault_place(session->device, error);
  return true;
}

static bool wait_for_kernel(kilni_cli_session_t* s, kilni_cli_error_t* error) {
  uint64_t limit = s->request->time_limit_ns;
  uint64_t began = kilni_cli_now_ns();
  kilni_cli_progress_t progress;
  char shown[KILNI_CLI_ENTRY_SHOWN];
  const char* name = kilni_cli_entry_shown(s->facts.name, shown);
  kilni_cli_progress_start(&progress, "running %s on %s", name, s->device_name);
  kiln_status_t status = limit == 0 ? kiln_stream_synchronize(s->stream)
                                    : kiln_stream_wait(s->stream, limit);
  kilni_cli_progress_stop(&progress);
  if (kilni_cli_check(error, status)) return true;
  (void)kilni_cli_session_overdue(s, began, "the kernel", name,
                                  KILNI_CLI_ENDLESS_KERNEL, error);
  return false;
}

// How it ended, and how long it took.
static bool look_at_end(kilni_cli_session_t* s, kilni_cli_error_t* error) {
  if (s->pending == NULL) return true;
  kiln_pending_times_t times;
  kiln_trap_t trap;
  if (kiln_pending_trap(s->pending, &trap)) {
    const char* name = kilni_cli_library_name(s->request->file);
    return name != NULL ? fail_limit(&trap, name, error)
                        : fail_trap(&trap, s->facts.name, error);
  }
  if (!kilni_cli_check(error,
                       kiln_pending_wait(s->pending, KILN_PENDING_FOREVER)) ||
      !kilni_cli_check(error, kiln_pending_times(s->pending, &times))) {
    return false;
  }
  s->elapsed_ns = times.device_ns;
  return true;
}

// The name of a buffer: the kernel's parameter name, except for names that a
// compiler numbers.
static bool run_session_name_buffer(void* user, uint64_t address,
                                    char* out_name, size_t capacity) {
  const kilni_cli_session_t* s = user;
  for (uint32_t i = 0; i < KILNI_CLI_MAX_PARAMS; i++) {
    uint64_t at = 0;
    if (s->buffers[i].id == 0) continue;
    kiln_status_free(kiln_resident_address(s->dispatcher, s->buffers[i], &at));
    if (at != address) continue;
    const char* name =
        i < s->facts.param_count ? s->facts.params[i].name : NULL;
    if (name == NULL || name[0] == 0 || strstr(name, "_param_") != NULL) {
      (void)snprintf(out_name, capacity, "parameter %" PRIu32, i);
    } else {
      (void)snprintf(out_name, capacity, "%s", name);
    }
    return true;
  }
  return false;
}

// An empty input has no memory, and is a null pointer to the kernel.
static void point_at_empty(const kilni_cli_plan_t* plan,
                           kilni_cli_error_t* error) {
  for (uint32_t i = 0; i < plan->count; i++) {
    const kilni_cli_binding_t* in = plan->slots[i].in;
    if (in == NULL || in->is_made || plan->slots[i].shape.count != 0) continue;
    kilni_cli_error_fix(error,
                        "the file \"%.200s\" of parameter %" PRIu32
                        " is empty, so there is no data at its address: give "
                        "one that is not empty",
                        (const char*)in->path.data, i);
    return;
  }
}

void kilni_cli_session_explain(kilni_cli_session_t* session,
                               const kilni_cli_plan_t* plan,
                               kilni_cli_error_t* error) {
  if (error->code != KILN_STATUS_DEVICE_LOST || session->leave_at_once ||
      session->device == NULL ||
      !kilni_cli_fault_tell(session->device, run_session_name_buffer, session,
                            error)) {
    return;
  }
  if (error->fault.kind == KILN_FAULT_NULL_POINTER) point_at_empty(plan, error);
  if (error->fault.cause == KILN_FAULT_CAUSE_GRID_SYNC) {
    kilni_cli_error_fix(error,
                        "add --cooperative, or remove the grid-wide barrier "
                        "(grid.sync())");
  }
}

static bool run_session_run_kernel(kilni_cli_session_t* session,
                                   const kilni_cli_plan_t* plan,
                                   kilni_cli_error_t* error) {
  uint64_t before = 0;
  kiln_status_t status = kiln_device_executed(session->device, &before);
  session->counted = kiln_status_is_ok(status);
  kiln_status_free(status);
  if (session->counted && session->request->stats &&
      !kilni_cli_check(error, kiln_soft_profile_start())) {
    return false;
  }
  if (!kilni_cli_residents_make(session, plan, error) ||
      !run_session_launch(session, plan, error) ||
      !wait_for_kernel(session, error) || !look_at_end(session, error)) {
    return false;
  }
  if (session->counted) {
    status = kiln_device_executed(session->device, &session->instructions);
    session->instructions -= before;
    session->counted = kiln_status_is_ok(status);
    kiln_status_free(status);
  }
  if (!session->counted || !session->request->stats) return true;
  session->profile = kiln_soft_profile_default();
  session->profiled =
      kilni_cli_check(error, kiln_soft_profile_read(&session->profile));
  return session->profiled;
}

bool kilni_cli_session_run(kilni_cli_session_t* session,
                           const kilni_cli_plan_t* plan,
                           kilni_cli_error_t* error) {
  bool ok = run_session_run_kernel(session, plan, error);
  // Any call after the launch may report the fault.
  if (!ok) kilni_cli_session_explain(session, plan, error);
  return ok;
}

bool kilni_cli_session_read(kilni_cli_session_t* session,
                            const kilni_cli_plan_t* plan, uint32_t index,
                            kilni_cli_array_t* out, kilni_cli_error_t* error) {
  memset(out, 0, sizeof(*out));
  out->shape = plan->slots[index].shape;
  size_t bytes = (size_t)out->shape.bytes;
  return kilni_cli_buffer_resize(&out->data, bytes, error) &&
         (bytes == 0 ||
          kilni_cli_check(
              error, kiln_resident_download(
                         session->dispatcher, session->stream,
                         session->buffers[index], 0, bytes, out->data.data)));
}

void kilni_cli_session_share(kilni_cli_session_t* session,
                             const kilni_cli_session_t* first,
                             kilni_cli_request_t* request) {
  memset(session, 0, sizeof(*session));
  session->request = request;
  session->runtime = first->runtime;
  session->device = first->device;
  session->dispatcher = first->dispatcher;
  session->stream = first->stream;
  kiln_runtime_retain(session->runtime);
  kiln_device_retain(session->device);
  kiln_dispatcher_retain(session->dispatcher);
  memcpy(session->device_name, first->device_name,
         sizeof(session->device_name));
}

void kilni_cli_session_close(kilni_cli_session_t* session) {
  kiln_pending_release(session->pending);
  kiln_pipeline_release(session->pipeline);
  kilni_cli_residents_free(session);
  kiln_dispatcher_release(session->dispatcher);
  kiln_image_use_release(session->use);
  kiln_kernel_release(session->kernel);
  kiln_module_release(session->module);
  kilni_cli_code_deinit(&session->code);
  kiln_device_release(session->device);
  kiln_runtime_release(session->runtime);
  memset(session, 0, sizeof(*session));
}
