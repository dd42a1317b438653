// SPDX-License-Identifier: Apache-2.0
//
// cli: an entry of the library as its plan.
#include "cli/run_library.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli_clock.h"
#include "cli/cli_data.h"
#include "cli/cli_program.h"
#include "cli/cli_report.h"
#include "cli/run_defaults.h"
#include "cli/run_missing.h"
#include "cli/run_pipeline.h"
#include "cli/run_program.h"

// ---- Options ----

// How the value of an option is written.
typedef enum how_t { TYPE, SWITCH, OPERATION, NUMBER, ROUNDS, TEXT } how_t;

// What --define can set in a plan: options, under the names of the consts and
// types in the texts, or under their own. thread-safe
static const struct {
  const char* name;
  how_t how;
  size_t at;    // of the field
  bool is_own;  // not in any text: it requires a plan
} kKnown[] = {
    {"T", TYPE, offsetof(kiln_library_options_t, type), false},
    {"V", TYPE, offsetof(kiln_library_options_t, value_type), false},
    {"OPERATION", OPERATION, offsetof(kiln_library_options_t, operation),
     false},
    {"EXCLUSIVE", SWITCH, offsetof(kiln_library_options_t, exclusive), false},
    {"DESCENDING", SWITCH, offsetof(kiln_library_options_t, descending), false},
    {"SYMMETRIC", SWITCH, offsetof(kiln_library_options_t, symmetric), false},
    {"REST", SWITCH, offsetof(kiln_library_options_t, rest), false},
    {"BINS", NUMBER, offsetof(kiln_library_options_t, bins), false},
    {"SIZE", NUMBER, offsetof(kiln_library_options_t, segment), false},
    {"WIDTH", NUMBER, offsetof(kiln_library_options_t, segment), false},
    {"SEGMENT", NUMBER, offsetof(kiln_library_options_t, segment), true},
    {"ROUNDS", ROUNDS, offsetof(kiln_library_options_t, rounds), true},
    {"ORDER", TEXT, offsetof(kiln_library_options_t, order), true},
};
enum { KNOWN = sizeof(kKnown) / sizeof(kKnown[0]) };

// Its place among them, or KNOWN.
static uint32_t known_at(const char* name, size_t size) {
  uint32_t i = 0;
  while (i < KNOWN && (strlen(kKnown[i].name) != size ||
                       memcmp(kKnown[i].name, name, size) != 0)) {
    i++;
  }
  return i;
}

bool kilni_cli_library_is_own(const char* name, size_t size) {
  uint32_t at = known_at(name, size);
  return at < KNOWN && kKnown[at].is_own;
}

static bool run_library_take_value(kiln_library_options_t* options,
                                   uint32_t known, const char* value) {
  void* field = (char*)options + kKnown[known].at;
  uint64_t number = 0;
  bool is_number = kilni_cli_u64_parse(value, strlen(value), &number);
  switch (kKnown[known].how) {
    case TYPE:
      *(uint32_t*)field = kiln_program_type_find(value);
      return *(uint32_t*)field != KILN_PROGRAM_TYPE_NONE;
    case SWITCH:
      *(uint32_t*)field = number != 0 ? KILN_SWITCH_ON : KILN_SWITCH_OFF;
      return is_number && number < 2;
    case OPERATION:
      *(uint32_t*)field = (uint32_t)number;
      return is_number && number <= KILN_LIBRARY_MAX;
    // 0 would mean the default, which no one who writes a number intends.
    case NUMBER:
      *(uint64_t*)field = number;
      return is_number && number != 0;
    case ROUNDS:
      *(uint32_t*)field = (uint32_t)number;
      return is_number && number != 0 && number <= UINT32_MAX;
    default:
      *(const char**)field = value;
      return true;
  }
}

static bool fail_define(const char* file, const char* given, size_t size,
                        bool is_known, kilni_cli_error_t* error) {
  static const char* const kHow[] = {"a type, such as f32",
                                     "0 or 1",
                                     "0, 1 or 2: sum, minimum or maximum",
                                     "a whole number above 0",
                                     "a whole number above 0",
                                     "the body of `fn before`"};
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "--define %s of the plan of \"%s\"", given, file);
  if (is_known) {
    kilni_cli_error_fix(error, "write %s",
                        kHow[kKnown[known_at(given, size)].how]);
    return false;
  }
  char names[160] = "";
  for (uint32_t i = 0; i < KNOWN; i++) {
    strcat(names, kKnown[i].name);
    if (i + 1 < KNOWN) strcat(names, " ");
  }
  kilni_cli_error_fix(error, "use those of %s", names);
  return false;
}

// --define as options of a plan.
static bool take_defines(kilni_cli_request_t* r, const kilni_cli_call_t* call,
                         kilni_cli_error_t* error) {
  r->options = kiln_library_options_default();
  r->options.max_ulp = r->max_ulp;
  for (size_t i = 0; i < call->given_count; i++) {
    const kilni_cli_given_t* given = &call->given[i];
    if (strcmp(given->option->name, "define") != 0) continue;
    size_t size = strcspn(given->value, "=");
    uint32_t known = known_at(given->value, size);
    if (known == KNOWN ||
        !run_library_take_value(&r->options, known, given->value + size + 1)) {
      return fail_define(r->file, given->value, size, known < KNOWN, error);
    }
  }
  return true;
}

// Whether the request certainly means the plan: a parameter of the text is
// missing, or an option is given that no text has. `*out_defines` reports
// whether anything is defined.
static bool wants_plan(const kilni_cli_request_t* request,
                       const kilni_cli_call_t* call, bool* out_defines) {
  kiln_program_parameter_info_t p;
  bool whole = false;
  *out_defines = false;
  for (uint32_t i = 0; kiln_program_parameter(request->program, i, &p); i++) {
    if (!kilni_cli_request_has(request, i, p.name) &&
        !(request->makes_outputs && p.role == KILN_PROGRAM_ROLE_OUT &&
          p.is_counted != 0)) {
      whole = true;
    }
  }
  for (size_t i = 0; i < call->given_count; i++) {
    const kilni_cli_given_t* given = &call->given[i];
    if (strcmp(given->option->name, "define") != 0) continue;
    *out_defines = true;
    if (kilni_cli_library_is_own(given->value, strcspn(given->value, "="))) {
      whole = true;
    }
  }
  return whole;
}

// Whether --define has the name of an option.
static bool defines_known(const kilni_cli_call_t* call) {
  for (size_t i = 0; i < call->given_count; i++) {
    const kilni_cli_given_t* given = &call->given[i];
    if (strcmp(given->option->name, "define") != 0) continue;
    if (known_at(given->value, strcspn(given->value, "=")) < KNOWN) return true;
  }
  return false;
}

bool kilni_cli_library_read(kilni_cli_request_t* request,
                            const kilni_cli_call_t* call,
                            kilni_cli_error_t* error) {
  bool defines = false;
  if (kilni_cli_library_name(request->file) == NULL) {
    return kilni_cli_program_read(request->file, call, &request->program,
                                  error) &&
           kilni_cli_defaults_name(request, error);
  }
  // Unchanged: with an option of the plan alone the text may be invalid.
  if (!kilni_cli_program_read(request->file, NULL, &request->program, error) ||
      !kilni_cli_defaults_name(request, error) ||
      (request->takes_defaults && !kilni_cli_defaults_take(request, error))) {
    return false;
  }
  request->whole = wants_plan(request, call, &defines);
  if (request->whole) return take_defines(request, call, error);
  if (!defines) return true;
  // Those that a plan has as well may be meant for it.
  kilni_cli_error_t none;
  request->defines_option = defines_known(call);
  request->maybe_whole = take_defines(request, call, &none);
  kiln_program_release(request->program);
  request->program = NULL;
  return kilni_cli_program_read(request->file, call, &request->program, error);
}

// ---- Parameters ----

static void run_library_fill_facts(kilni_cli_session_t* s,
                                   const kiln_library_plan_t* plan) {
  kiln_pipeline_parameter_t p;
  uint32_t count = 0;
  for (; kiln_library_plan_parameter(plan, count, &p); count++) {
    kilni_cli_param_t* param = &s->facts.params[count];
    bool is_buffer = p.role != KILN_PROGRAM_ROLE_NONE;
    kilni_cli_type_t type = kilni_cli_program_type(p.type);
    param->name = p.name;
    param->bytes = is_buffer ? 8 : p.type_bytes;
    param->kind = is_buffer ? KILN_PARAM_KIND_POINTER
                  : kilni_cli_type_info(type)->kind == 'f'
                      ? KILN_PARAM_KIND_FLOAT
                      : KILN_PARAM_KIND_INTEGER;
    param->type = is_buffer ? NULL : kiln_program_type_name(p.type);
  }
  s->facts.name = kilni_cli_library_name(s->request->file);
  s->facts.params_known = true;
  s->facts.param_count = count;
}

static bool run_library_find(const kiln_library_plan_t* plan,
                             const kilni_cli_binding_t* b, uint32_t* out_index,
                             kiln_pipeline_parameter_t* out) {
  uint64_t position = 0;
  for (*out_index = 0; kiln_library_plan_parameter(plan, *out_index, out);
       ++*out_index) {
    if (strlen(out->name) == b->parameter_size &&
        memcmp(out->name, b->parameter, b->parameter_size) == 0) {
      return true;
    }
  }
  if (!kilni_cli_u64_parse(b->parameter, b->parameter_size, &position) ||
      position >= UINT32_MAX) {
    return false;
  }
  *out_index = (uint32_t)position;
  return kiln_library_plan_parameter(plan, *out_index, out);
}

// Raw inputs and bare numbers get the plan's type.
static bool give_types(kilni_cli_request_t* r, const kiln_library_plan_t* plan,
                       kilni_cli_error_t* error) {
  for (size_t i = 0; i < r->binding_count; i++) {
    kilni_cli_binding_t* b = &r->bindings[i];
    kiln_pipeline_parameter_t p;
    uint32_t at;
    if (!run_library_find(plan, b, &at, &p)) continue;
    if (!kilni_cli_program_check_role(b, p.role, p.name, error)) return false;
    kilni_cli_type_t type = kilni_cli_program_type(p.type);
    if (b->is_arg && b->extents != NULL) {
      b->value.scalar.type = type;
      continue;
    }
    if (b->is_arg) {
      if (b->untyped != NULL &&
          !kilni_cli_value_parse_as(b->untyped, type, &b->value.scalar,
                                    error)) {
        return false;
      }
      continue;
    }
    if (!kilni_cli_defaults_space(r, b, type, error)) return false;
    const char* path = (const char*)b->path.data;
    bool is_raw = kilni_cli_format_of(path) == KILNI_CLI_FORMAT_RAW;
    if (b->is_in && is_raw && b->spec.kind == KILNI_CLI_SPEC_NONE) {
      b->spec.kind = KILNI_CLI_SPEC_TYPE;
      b->spec.shape.type = type;
    }
  }
  return true;
}

// What the request gives for each parameter of the plan. one-thread
typedef struct said_t {
  kiln_program_size_t sizes[KILNI_CLI_MAX_PARAMS];
  kilni_cli_binding_t* outputs[KILNI_CLI_MAX_PARAMS];  // without a shape
  bool starts_as_file[KILNI_CLI_MAX_PARAMS];           // and has its shape
  bool is_wanted;
} said_t;

static void run_library_gather(const kilni_cli_request_t* r,
                               const kiln_library_plan_t* plan, said_t* said) {
  memset(said, 0, sizeof(*said));
  for (uint32_t i = 0; i < KILNI_CLI_MAX_PARAMS; i++) {
    said->sizes[i].count = KILN_PROGRAM_COUNT_UNKNOWN;
  }
  for (size_t i = 0; i < r->binding_count; i++) {
    kilni_cli_binding_t* b = &r->bindings[i];
    kiln_pipeline_parameter_t p;
    uint32_t at;
    if (!run_library_find(plan, b, &at, &p) || at >= KILNI_CLI_MAX_PARAMS) {
      continue;
    }
    kiln_program_size_t* size = &said->sizes[at];
    if (b->is_arg) size->bits = b->value.scalar.bits;
    if (b->is_in) size->count = b->array.shape.count;
    if (b->is_in) said->starts_as_file[at] = true;
    if (b->is_arg || b->is_in) continue;
    if (b->spec.kind == KILNI_CLI_SPEC_SHAPE) size->count = b->spec.shape.count;
    if (b->spec.kind != KILNI_CLI_SPEC_NONE) continue;
    said->outputs[at] = b;
    said->is_wanted = true;
  }
}

// All parameters of the plan that are not given.
static bool run_library_check_missing(const kilni_cli_request_t* r,
                                      const kiln_library_plan_t* plan,
                                      kilni_cli_error_t* error) {
  kilni_cli_missing_t missing;
  kiln_pipeline_parameter_t p;
  said_t said;
  if (r->makes_outputs) return true;
  run_library_gather(r, plan, &said);
  memset(&missing, 0, sizeof(missing));
  missing.request = r;
  missing.plan = plan;
  memcpy(missing.known, said.sizes, sizeof(missing.known));
  for (; missing.count < KILNI_CLI_MAX_PARAMS &&
         kiln_library_plan_parameter(plan, missing.count, &p);
       missing.count++) {
    missing.wanted[missing.count] =
        (kilni_cli_wanted_t){p.name, p.role, p.type, p.is_counted != 0};
  }
  return kilni_cli_missing_check(&missing, error);
}

// Unnamed outputs, if they are made.
static bool run_library_add_outputs(kilni_cli_request_t* r,
                                    const kiln_library_plan_t* plan,
                                    kilni_cli_error_t* error) {
  kiln_pipeline_parameter_t p;
  for (uint32_t i = 0;
       r->makes_outputs && kiln_library_plan_parameter(plan, i, &p); i++) {
    if (p.role == KILN_PROGRAM_ROLE_OUT &&
        !kilni_cli_request_has(r, i, p.name) &&
        !kilni_cli_request_add_output(r, p.name, error)) {
      return false;
    }
  }
  return true;
}

// Whether every parameter is given, and the plan defines the length of each
// output without a shape: then no size is missing.
static bool all_said(const kilni_cli_request_t* r,
                     const kiln_library_plan_t* plan, const said_t* said) {
  kiln_pipeline_parameter_t p;
  for (uint32_t i = 0; kiln_library_plan_parameter(plan, i, &p); i++) {
    bool open = i < KILNI_CLI_MAX_PARAMS && said->outputs[i] != NULL &&
                !said->starts_as_file[i] && p.is_counted == 0;
    if (open || !kilni_cli_request_has(r, i, p.name)) return false;
  }
  return true;
}

// Outputs without a shape get the plan's, if it has one.
static bool run_library_fill_outputs(kilni_cli_request_t* r,
                                     const kiln_library_plan_t* plan,
                                     kilni_cli_error_t* error) {
  said_t said;
  run_library_gather(r, plan, &said);
  if (!said.is_wanted) return true;
  kiln_status_t status = kiln_library_plan_sizes(plan, said.sizes);
  if (!kiln_status_is_ok(status)) {
    // Missing parameters are reported with their fix later; if none is missing,
    // this reports contradictions.
    if (all_said(r, plan, &said)) return kilni_cli_check(error, status);
    kiln_status_free(status);
    return true;
  }
  for (uint32_t i = 0; i < KILNI_CLI_MAX_PARAMS; i++) {
    kiln_pipeline_parameter_t p;
    if (said.outputs[i] == NULL || said.starts_as_file[i] ||
        !kiln_library_plan_parameter(plan, i, &p)) {
      continue;
    }
    kilni_cli_shape_t* shape = &said.outputs[i]->spec.shape;
    memset(shape, 0, sizeof(*shape));
    shape->type = kilni_cli_program_type(p.type);
    shape->rank = 1;
    shape->dims[0] = said.sizes[i].count;
    kilni_cli_defaults_shape(r, p.name, shape);
    if (!kilni_cli_shape_finish(shape, error)) return false;
    said.outputs[i]->spec.kind = KILNI_CLI_SPEC_SHAPE;
  }
  return true;
}

// The --define of a plan's type that gives the parameter type `given`: the text
// alone may not accept it, since the plan constrains the type further.
static bool fix_option(const kilni_cli_request_t* r,
                       const kilni_cli_binding_t* b, const char* name,
                       uint32_t wanted, uint32_t given,
                       kilni_cli_error_t* error) {
  kiln_library_entry_t entry;
  kilni_cli_error_t none;
  char word[128];
  if (given == KILN_PROGRAM_TYPE_NONE ||
      !kiln_library_find(kilni_cli_library_name(r->file), &entry)) {
    return false;
  }
  for (uint32_t i = 0; i < KNOWN; i++) {
    kiln_library_options_t options = r->options;
    uint32_t* field = (uint32_t*)(void*)((char*)&options + kKnown[i].at);
    if (kKnown[i].how != TYPE) continue;
    (void)snprintf(word, sizeof(word), "%s: in %s[", name, kKnown[i].name);
    if (strstr(entry.text.data, word) == NULL) continue;
    bool is_said = *field != KILN_PROGRAM_TYPE_NONE;
    *field = given;
    options.count = 1;
    if (!kilni_cli_check(&none,
                         kiln_library_check(entry.name, &options, NULL))) {
      continue;
    }
    kilni_cli_program_fix_define(r, b, is_said ? "write" : "add",
                                 kKnown[i].name, name, wanted, error);
    return true;
  }
  return false;
}

// Checks that elements have the plan's types; returns their total count.
static bool run_library_check_types(const kilni_cli_request_t* r,
                                    const kilni_cli_plan_t* plan,
                                    const kiln_library_plan_t* entry,
                                    uint64_t* out_count,
                                    kilni_cli_error_t* error) {
  *out_count = 1;
  for (uint32_t i = 0; i < plan->count; i++) {
    kiln_pipeline_parameter_t p;
    const kilni_cli_slot_t* slot = &plan->slots[i];
    if (slot->arg != NULL || !kiln_library_plan_parameter(entry, i, &p)) {
      continue;
    }
    *out_count += slot->shape.count;
    if (slot->shape.type == kilni_cli_program_type(p.type)) continue;
    (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                         "parameter \"%s\" is given as %s; the entry declares "
                         "%s",
                         p.name, kilni_cli_type_info(slot->shape.type)->text,
                         kiln_program_type_name(p.type));
    kilni_cli_error_fix(error, "give it as %s", kiln_program_type_name(p.type));
    const char* given = kilni_cli_type_info(slot->shape.type)->text;
    if (slot->in != NULL && !fix_option(r, slot->in, p.name, p.type,
                                        kiln_program_type_find(given), error)) {
      kilni_cli_program_fix_type(r, slot->in, p.name, p.type, error);
    }
    return false;
  }
  return true;
}

// ---- Running ----

static bool run_library_make_entry(kilni_cli_session_t* s, uint64_t count,
                                   kiln_library_plan_t** out,
                                   kilni_cli_error_t* error) {
  kiln_library_options_t options = s->request->options;
  options.count = count;
  return kilni_cli_check(
      error, kiln_library_plan_create(s->dispatcher,
                                      kilni_cli_library_name(s->request->file),
                                      &options, out));
}

// A value that is valid for every entry that uses the option.
static const char* tame_value(how_t how) {
  return how == TYPE ? "u32" : how == NUMBER ? "32" : "1";
}

// Whether the entry's plan uses an option of the table, whatever its value;
// otherwise the name in the text is unrelated.
static bool uses_option(const char* file, uint32_t known) {
  kilni_cli_error_t error;
  kiln_library_options_t options = kiln_library_options_default();
  options.count = 1;
  (void)run_library_take_value(&options, known, tame_value(kKnown[known].how));
  return kilni_cli_check(
             &error, kiln_library_check(kilni_cli_library_name(file), &options,
                                        NULL)) ||
         error.code != KILN_STATUS_INVALID_ARGUMENT;
}

// Reads as options the definitions that the entry's plan uses. `*out_all`:
// there are no others.
static bool take_used(const char* file, const kilni_cli_given_t* given,
                      size_t count, kiln_library_options_t* out, bool* out_all,
                      kilni_cli_error_t* error) {
  *out_all = true;
  for (size_t i = 0; i < count; i++) {
    if (strcmp(given[i].option->name, "define") != 0) continue;
    size_t size = strcspn(given[i].value, "=");
    uint32_t known = known_at(given[i].value, size);
    if (known == KNOWN || !uses_option(file, known)) {
      *out_all = false;
    } else if (!run_library_take_value(out, known, given[i].value + size + 1)) {
      return fail_define(file, given[i].value, size, true, error);
    }
  }
  return true;
}

bool kilni_cli_library_check(const char* file, const kilni_cli_call_t* call,
                             kilni_cli_error_t* error) {
  const char* name = kilni_cli_library_name(file);
  kiln_library_entry_t entry;
  bool all;
  if (name == NULL || !kiln_library_find(name, &entry) ||
      entry.part_of != NULL || !defines_known(call)) {
    return true;
  }
  kiln_library_options_t options = kiln_library_options_default();
  options.count = 1;
  if (!take_used(file, call->given, call->given_count, &options, &all, error)) {
    return false;
  }
  if (kilni_cli_check(error, kiln_library_check(name, &options, NULL))) {
    return true;
  }
  kilni_cli_error_prefix(error, "--define of \"%s\"", file);
  return false;
}

bool kilni_cli_library_decide(kilni_cli_session_t* session,
                              kilni_cli_error_t* error) {
  kilni_cli_request_t* r = session->request;
  kiln_library_plan_t* plan = NULL;
  kiln_library_plan_info_t info;
  bool all = r->maybe_whole;
  if (r->whole || !r->defines_option) return true;
  // What the plan refuses, its text must not do either: only the plan has an
  // entry's limits.
  if (!all || !run_library_make_entry(session, 1, &plan, error)) {
    // A part of an entry has no plan, and so no options.
    kiln_library_entry_t entry;
    if (kiln_library_find(kilni_cli_library_name(r->file), &entry) &&
        entry.part_of != NULL) {
      return true;
    }
    r->options = kiln_library_options_default();
    r->options.max_ulp = r->max_ulp;
    if (!take_used(r->file, r->given, r->given_count, &r->options, &all,
                   error) ||
        !run_library_make_entry(session, 1, &plan, error)) {
      kilni_cli_error_prefix(error, "--define of \"%s\"", r->file);
      return false;
    }
  }
  kiln_library_plan_info(plan, &info);
  kiln_library_plan_release(plan);
  r->whole =
      all && info.parameter_count == kiln_program_parameter_count(r->program);
  return true;
}

// A parameter that exists only with values of a type is reported first: without
// the type it does not exist.
static bool run_library_check_values(kilni_cli_session_t* s,
                                     const kiln_library_plan_t* first,
                                     kilni_cli_error_t* error) {
  kilni_cli_request_t* r = s->request;
  kiln_pipeline_parameter_t p;
  uint32_t at;
  if (r->options.value_type != KILN_PROGRAM_TYPE_NONE) return true;
  for (size_t i = 0; i < r->binding_count; i++) {
    const kilni_cli_binding_t* b = &r->bindings[i];
    kiln_library_plan_t* with = NULL;
    kilni_cli_error_t none;
    if (b->is_arg || run_library_find(first, b, &at, &p)) continue;
    kilni_cli_type_t given = b->array.shape.type != KILNI_CLI_TYPE_NONE
                                 ? b->array.shape.type
                                 : b->spec.shape.type;
    const char* text =
        given != KILNI_CLI_TYPE_NONE ? kilni_cli_type_info(given)->text : "u32";
    r->options.value_type = kiln_program_type_find(text);
    bool has = r->options.value_type != KILN_PROGRAM_TYPE_NONE &&
               run_library_make_entry(s, 1, &with, &none) &&
               run_library_find(with, b, &at, &p);
    kiln_library_plan_release(with);
    r->options.value_type = KILN_PROGRAM_TYPE_NONE;
    if (!has) continue;
    (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                         "\"%s\" has \"%.*s\" only with values of a type",
                         r->file, (int)b->parameter_size, b->parameter);
    kilni_cli_error_fix(
        error, "add --define V=%s%s", text,
        given != KILNI_CLI_TYPE_NONE ? "" : ", or the type of the values");
    return false;
  }
  return true;
}

bool kilni_cli_library_prepare(kilni_cli_session_t* session,
                               kilni_cli_plan_t* plan,
                               kiln_library_plan_t** out_entry,
                               kilni_cli_error_t* error) {
  // A plan for a single element shows its parameters.
  kilni_cli_request_t* r = session->request;
  kiln_library_plan_t* first = NULL;
  uint64_t count = 0;
  *out_entry = NULL;
  if (!kilni_cli_program_launch(r, error) ||
      !run_library_make_entry(session, 1, &first, error)) {
    return false;
  }
  run_library_fill_facts(session, first);
  bool ok = (r->maybe_whole || (give_types(r, first, error) &&
                                kilni_cli_request_read(r, error))) &&
            run_library_check_values(session, first, error) &&
            run_library_check_missing(r, first, error) &&
            run_library_add_outputs(r, first, error) &&
            run_library_fill_outputs(r, first, error) &&
            kilni_cli_plan_make(&session->facts, r, plan, error) &&
            run_library_check_types(r, plan, first, &count, error) &&
            run_library_make_entry(session, count, out_entry, error) &&
            kilni_cli_residents_make(session, plan, error);
  for (uint32_t i = 0; ok && i < plan->count; i++) session->order[i] = i;
  // Names of the first plan are used by the facts and by added outputs.
  session->facts.param_count = 0;
  for (size_t i = 0; i < r->binding_count; i++) {
    if (!r->bindings[i].is_unnamed) continue;
    r->bindings[i].parameter = "";
    r->bindings[i].parameter_size = 0;
  }
  kiln_library_plan_release(first);
  return ok;
}

bool kilni_cli_library_wait(kilni_cli_session_t* session,
                            kiln_library_plan_t* entry,
                            const kiln_binding_t* bindings, uint32_t count,
                            kilni_cli_error_t* error) {
  uint64_t limit = session->request->time_limit_ns;
  uint64_t began = kilni_cli_now_ns();
  if (!kilni_cli_check(error,
                       kiln_library_plan_begin(entry, session->stream, bindings,
                                               count, &session->pending))) {
    return false;
  }
  bool ok = kilni_cli_check(
      error, kiln_pending_wait(session->pending,
                               limit != 0 ? limit : KILN_PENDING_FOREVER));
  if (!ok) {
    (void)kilni_cli_session_overdue(session, began, "the program",
                                    session->request->file,
                                    KILNI_CLI_ENDLESS_KERNEL, error);
  }
  if (!ok && error->code == KILN_STATUS_NOT_CONVERGED) {
    kilni_cli_error_fix(
        error, "allow more with --define ROUNDS=N, or omit the one given");
  }
  return ok;
}

bool kilni_cli_library_run(kilni_cli_session_t* session, kilni_cli_plan_t* plan,
                           kilni_cli_error_t* error) {
  kiln_binding_t bindings[KILNI_CLI_MAX_PARAMS];
  kiln_library_plan_t* entry = NULL;
  uint32_t rounds = 0;
  uint64_t began = 0;
  bool ok = kilni_cli_library_prepare(session, plan, &entry, error);
  if (ok) {
    kilni_cli_pipeline_bindings(session, plan, bindings);
    began = kilni_cli_now_ns();
    ok = kilni_cli_library_wait(session, entry, bindings, plan->count, error);
    session->elapsed_ns = kilni_cli_now_ns() - began;
  }
  ok = ok && kilni_cli_check(error, kiln_library_plan_rounds(entry, &rounds));
  if (rounds != 0) kilni_cli_note("rounds: %" PRIu32, rounds);
  kiln_library_plan_release(entry);
  return ok;
}
