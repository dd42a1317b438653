// SPDX-License-Identifier: Apache-2.0
//
// cli: an entry of the library as its plan.
#include "cli/run_library.h"

#include <inttypes.h>
#include <string.h>

#include "cli/cli_clock.h"
#include "cli/cli_data.h"
#include "cli/cli_program.h"
#include "cli/cli_report.h"
#include "cli/run_pipeline.h"

// ---- Options ----

static bool is_given(const kilni_cli_request_t* r, uint32_t index,
                     const char* name) {
  uint64_t position;
  for (size_t i = 0; i < r->binding_count; ++i) {
    const kilni_cli_binding_t* b = &r->bindings[i];
    if (strlen(name) == b->parameter_size &&
        memcmp(name, b->parameter, b->parameter_size) == 0)
      return true;
    if (kilni_cli_u64_parse(b->parameter, b->parameter_size, &position) &&
        position == index)
      return true;
  }
  return false;
}

static uint32_t as_switch(const char* value) {
  return strcmp(value, "0") == 0 ? KILN_SWITCH_OFF : KILN_SWITCH_ON;
}

// What a const or type of the program is among the plan's options.
static bool take_define(kiln_library_options_t* options, const char* name,
                        size_t size, const char* value,
                        kilni_cli_error_t* error) {
  static const char kNames[] = "T V DESCENDING EXCLUSIVE SYMMETRIC";
  uint32_t* types[] = {&options->type, &options->value_type};
  uint32_t* switches[] = {&options->descending, &options->exclusive,
                          &options->symmetric};
  const char* at = kNames;
  for (uint32_t i = 0; i < 5; ++i) {
    size_t length = strcspn(at, " ");
    if (length == size && memcmp(at, name, size) == 0) {
      if (i < 2) *types[i] = kiln_program_type_find(value);
      if (i >= 2) *switches[i - 2] = as_switch(value);
      return true;
    }
    at += length + (at[length] == ' ');
  }
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "--define %.*s of an entry with several launches",
                       (int)size, name);
  kilni_cli_error_fix(error, "use those of %s", kNames);
  return false;
}

bool kilni_cli_library_options(kilni_cli_request_t* request,
                               const kilni_cli_call_t* call,
                               kilni_cli_error_t* error) {
  kiln_program_parameter_info_t p;
  if (kilni_cli_library_name(request->file) == NULL) return true;
  for (uint32_t i = 0; kiln_program_parameter(request->program, i, &p); ++i)
    if (!is_given(request, i, p.name)) request->whole = true;
  if (!request->whole) return true;
  request->options = kiln_library_options_default();
  request->options.max_ulp = request->max_ulp;
  for (size_t i = 0; i < call->given_count; ++i) {
    const kilni_cli_given_t* given = &call->given[i];
    if (strcmp(given->option->name, "define") != 0) continue;
    size_t size = strcspn(given->value, "=");
    if (!take_define(&request->options, given->value, size,
                     given->value + size + 1, error))
      return false;
  }
  return true;
}

// ---- Parameters ----

static void fill_facts(kilni_cli_session_t* s,
                       const kiln_library_plan_t* plan) {
  kiln_pipeline_parameter_t p;
  uint32_t count = 0;
  for (; kiln_library_plan_parameter(plan, count, &p); ++count) {
    kilni_cli_param_t* param = &s->facts.params[count];
    bool is_buffer = p.role != KILN_PROGRAM_ROLE_NONE;
    kilni_cli_type_t type = kilni_cli_program_type(p.type);
    param->name = p.name;
    param->bytes = is_buffer ? 8 : p.type_bytes;
    param->kind = is_buffer ? KILN_PARAM_KIND_POINTER
                  : kilni_cli_type_info(type)->kind == 'f'
                      ? KILN_PARAM_KIND_FLOAT
                      : KILN_PARAM_KIND_INTEGER;
  }
  s->facts.name = kilni_cli_library_name(s->request->file);
  s->facts.params_known = true;
  s->facts.param_count = count;
}

static bool find(const kiln_library_plan_t* plan, const kilni_cli_binding_t* b,
                 kiln_pipeline_parameter_t* out) {
  uint64_t position = 0;
  for (uint32_t i = 0; kiln_library_plan_parameter(plan, i, out); ++i)
    if (strlen(out->name) == b->parameter_size &&
        memcmp(out->name, b->parameter, b->parameter_size) == 0)
      return true;
  return kilni_cli_u64_parse(b->parameter, b->parameter_size, &position) &&
         position < UINT32_MAX &&
         kiln_library_plan_parameter(plan, (uint32_t)position, out);
}

// Raw inputs and bare numbers get the type that the plan says.
static bool give_types(kilni_cli_request_t* r, const kiln_library_plan_t* plan,
                       kilni_cli_error_t* error) {
  for (size_t i = 0; i < r->binding_count; ++i) {
    kilni_cli_binding_t* b = &r->bindings[i];
    kiln_pipeline_parameter_t p;
    if (!find(plan, b, &p)) continue;
    kilni_cli_type_t type = kilni_cli_program_type(p.type);
    if (b->is_arg) {
      if (b->untyped != NULL &&
          !kilni_cli_value_parse_as(b->untyped, type, &b->value.scalar, error))
        return false;
      continue;
    }
    const char* path = (const char*)b->path.data;
    bool is_raw = kilni_cli_format_of(path) == KILNI_CLI_FORMAT_RAW;
    if (b->is_in && is_raw && b->spec.kind == KILNI_CLI_SPEC_NONE) {
      b->spec.kind = KILNI_CLI_SPEC_TYPE;
      b->spec.shape.type = type;
    }
  }
  return true;
}

// Elements are of the plan's types; tells how many all buffers have together.
static bool check_types(const kilni_cli_plan_t* plan,
                        const kiln_library_plan_t* entry, uint64_t* out_count,
                        kilni_cli_error_t* error) {
  *out_count = 1;
  for (uint32_t i = 0; i < plan->count; ++i) {
    kiln_pipeline_parameter_t p;
    const kilni_cli_slot_t* slot = &plan->slots[i];
    if (slot->arg != NULL || !kiln_library_plan_parameter(entry, i, &p))
      continue;
    *out_count += slot->shape.count;
    if (slot->shape.type == kilni_cli_program_type(p.type)) continue;
    (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                         "parameter \"%s\" is given as %s; the entry says %s",
                         p.name, kilni_cli_type_info(slot->shape.type)->text,
                         kiln_program_type_name(p.type));
    kilni_cli_error_fix(error, "give it as %s", kiln_program_type_name(p.type));
    return false;
  }
  return true;
}

// ---- Running ----

static bool make_entry(kilni_cli_session_t* s, uint64_t count,
                       kiln_library_plan_t** out, kilni_cli_error_t* error) {
  kiln_library_options_t options = s->request->options;
  options.count = count;
  return kilni_cli_check(
      error, kiln_library_plan_create(s->dispatcher,
                                      kilni_cli_library_name(s->request->file),
                                      &options, out));
}

static bool run_entry(kilni_cli_session_t* s, const kilni_cli_plan_t* plan,
                      kiln_library_plan_t* entry, kilni_cli_error_t* error) {
  kiln_binding_t bindings[KILNI_CLI_MAX_PARAMS];
  uint64_t limit = s->request->time_limit_ns;
  uint32_t rounds = 0;
  for (uint32_t i = 0; i < plan->count; ++i) s->order[i] = i;
  kilni_cli_pipeline_bindings(s, plan, bindings);
  uint64_t began = kilni_cli_now_ns();
  if (!kilni_cli_check(error,
                       kiln_library_plan_begin(entry, s->stream, bindings,
                                               plan->count, &s->pending)) ||
      !kilni_cli_check(
          error, kiln_pending_wait(
                     s->pending, limit != 0 ? limit : KILN_PENDING_FOREVER))) {
    s->leave_at_once = error->code == KILN_STATUS_TIMED_OUT;
    return false;
  }
  s->elapsed_ns = kilni_cli_now_ns() - began;
  if (!kilni_cli_check(error, kiln_library_plan_rounds(entry, &rounds)))
    return false;
  if (rounds != 0) kilni_cli_note("rounds: %" PRIu32, rounds);
  return true;
}

bool kilni_cli_library_run(kilni_cli_session_t* session, kilni_cli_plan_t* plan,
                           kilni_cli_error_t* error) {
  // One for a single element tells what it takes.
  kiln_library_plan_t* first = NULL;
  kiln_library_plan_t* entry = NULL;
  uint64_t count = 0;
  if (!make_entry(session, 1, &first, error)) return false;
  fill_facts(session, first);
  bool ok =
      give_types(session->request, first, error) &&
      kilni_cli_request_read(session->request, error) &&
      kilni_cli_plan_make(&session->facts, session->request, plan, error) &&
      check_types(plan, first, &count, error) &&
      make_entry(session, count, &entry, error) &&
      kilni_cli_residents_make(session, plan, error) &&
      run_entry(session, plan, entry, error);
  kiln_library_plan_release(entry);
  // The facts have its names.
  session->facts.param_count = 0;
  kiln_library_plan_release(first);
  return ok;
}
