// SPDX-License-Identifier: Apache-2.0
//
// cli: what a program defines about its own run: types, lengths, work size.
#include "cli/run_program.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli_data.h"
#include "cli/cli_program.h"
#include "cli/cli_report.h"
#include "cli/run_defaults.h"
#include "cli/run_missing.h"

// The parameter that a binding means; false for none, which the plan reports.
static bool run_program_find(const kiln_program_t* program, const char* text,
                             size_t size, uint32_t* out_index,
                             kiln_program_parameter_info_t* out) {
  uint64_t position;
  for (uint32_t i = 0; kiln_program_parameter(program, i, out); i++) {
    if (strlen(out->name) == size && memcmp(out->name, text, size) == 0) {
      *out_index = i;
      return true;
    }
  }
  *out_index = 0;
  if (!kilni_cli_u64_parse(text, size, &position) || position > UINT32_MAX) {
    return false;
  }
  *out_index = (uint32_t)position;
  return kiln_program_parameter(program, *out_index, out);
}

static bool find_binding(const kilni_cli_request_t* r,
                         const kilni_cli_binding_t* b, uint32_t* out_index,
                         kiln_program_parameter_info_t* out) {
  return run_program_find(r->program, b->parameter, b->parameter_size,
                          out_index, out);
}

static bool run_program_fail_type(const kiln_program_parameter_info_t* p,
                                  const char* given, kilni_cli_error_t* error) {
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "parameter \"%s\" is given as %s; the program declares "
                       "%s",
                       p->name, given, kiln_program_type_name(p->type));
  kilni_cli_error_fix(error, "give it as %s", kiln_program_type_name(p->type));
  return false;
}

static const char* given_type(const kilni_cli_binding_t* b) {
  bool is_read = b->array.shape.type != KILNI_CLI_TYPE_NONE;
  return kilni_cli_type_info(is_read ? b->array.shape.type : b->spec.shape.type)
      ->text;
}

// The precision of that type in bits.
static uint32_t run_program_bits_of(const kilni_cli_type_info_t* info) {
  if (info->kind != 'f') return info->bytes * 8 - (info->kind == 'i' ? 1 : 0);
  if (strcmp(info->text, "bf16") == 0) return 8;
  return info->bytes == 8 ? 53 : info->bytes == 4 ? 24 : 11;
}

// Whether every number of `from` is one of `to`.
static bool is_whole_in(const kilni_cli_type_info_t* from,
                        const kilni_cli_type_info_t* to) {
  if (from->kind == 'f') {
    return to->kind == 'f' && to->bytes >= from->bytes &&
           run_program_bits_of(to) >= run_program_bits_of(from);
  }
  if (from->kind == 'i' && to->kind == 'u') return false;
  return run_program_bits_of(to) >= run_program_bits_of(from);
}

static const kilni_cli_type_info_t* run_program_info_of(uint32_t type) {
  const char* name = kiln_program_type_name(type);
  return kilni_cli_type_info(kilni_cli_type_find(name, strlen(name)));
}

// Whether the entry adds elements up, in their own type.
static bool adds_up(const kilni_cli_request_t* r) {
  kiln_library_entry_t entry;
  for (size_t i = 0; i < r->given_count; i++) {
    const kilni_cli_given_t* given = &r->given[i];
    if (strcmp(given->option->name, "define") == 0 &&
        strncmp(given->value, "OPERATION=", 10) == 0 &&
        strcmp(given->value + 10, "0") != 0) {
      return false;
    }
  }
  return kiln_library_find(kilni_cli_library_name(r->file), &entry) &&
         (strcmp(entry.name, "reduce") == 0 ||
          strstr(entry.text.data, "\nconst OPERATION = 0") != NULL);
}

void kilni_cli_program_fix_define(const kilni_cli_request_t* r,
                                  const kilni_cli_binding_t* b,
                                  const char* verb, const char* define,
                                  const char* name, uint32_t type,
                                  kilni_cli_error_t* error) {
  const char* given = given_type(b);
  const kilni_cli_type_info_t* info =
      kilni_cli_type_info(kilni_cli_type_find(given, strlen(given)));
  bool is_raw =
      kilni_cli_format_of((const char*)b->path.data) == KILNI_CLI_FORMAT_RAW;
  char other[96];
  (void)snprintf(other, sizeof(other),
                 b->is_made ? "give it as %s"
                 : is_raw ? "write :%s, or nothing, after the name of the file"
                          : "convert the file to %s",
                 kiln_program_type_name(type));
  if (define == NULL) {
    kilni_cli_error_fix(error, "%s; no --define makes \"%s\" %s", other, name,
                        given);
  } else if (info->kind != 'f' && info->bytes < 4 && adds_up(r)) {
    // Almost any sum would overflow their own type.
    const char* wide = info->kind == 'i' ? "i32" : "u32";
    kilni_cli_error_fix(error,
                        "%s %s and %s --define %s=%s; with --define %s=%s sums "
                        "wrap at %" PRIu32,
                        b->is_made ? "give it as" : "convert the file to", wide,
                        verb, define, wide, define, given,
                        (uint32_t)1 << run_program_bits_of(info));
  } else {
    kilni_cli_error_fix(
        error, "%s --define %s=%s, so that the program takes %s; or %s", verb,
        define, given, given, other);
  }
}

// A type that a --define can give the parameter and that can represent the
// file's values, or at least the nonnegative ones; NONE if there is none.
static uint32_t find_wider(const kilni_cli_request_t* r,
                           const kilni_cli_call_t* call, const char* name,
                           const kilni_cli_type_info_t* given,
                           char out[KILNI_CLI_DEFINE_BYTES]) {
  for (uint32_t round = 0; round < 2; round++) {
    for (uint32_t type = KILN_PROGRAM_TYPE_NONE + 1;
         kiln_program_type_name(type)[0] != 0; type++) {
      const kilni_cli_type_info_t* info = run_program_info_of(type);
      bool fits = round == 0 ? is_whole_in(given, info)
                             : given->kind == 'i' && info->kind == 'u' &&
                                   info->bytes >= given->bytes;
      if (fits && kilni_cli_program_define_of(r->file, call, name, type, out)) {
        return type;
      }
    }
  }
  return KILN_PROGRAM_TYPE_NONE;
}

// The verb for adding or changing a definition.
static const char* verb_of(const kilni_cli_request_t* r, const char* define) {
  size_t size = strlen(define);
  for (size_t i = 0; i < r->given_count; i++) {
    const kilni_cli_given_t* given = &r->given[i];
    if (strcmp(given->option->name, "define") == 0 &&
        strncmp(given->value, define, size) == 0 && given->value[size] == '=') {
      return "write";
    }
  }
  return "add";
}

void kilni_cli_program_fix_type(const kilni_cli_request_t* r,
                                const kilni_cli_binding_t* b, const char* name,
                                uint32_t type, kilni_cli_error_t* error) {
  char define[KILNI_CLI_DEFINE_BYTES];
  const char* text = given_type(b);
  const kilni_cli_type_info_t* given =
      kilni_cli_type_info(kilni_cli_type_find(text, strlen(text)));
  kilni_cli_call_t call;
  memset(&call, 0, sizeof(call));
  call.given = r->given;
  call.given_count = r->given_count;
  bool has = kilni_cli_program_define_of(r->file, &call, name,
                                         kiln_program_type_find(text), define);
  uint32_t wider = KILN_PROGRAM_TYPE_NONE;
  if (!has && !is_whole_in(given, run_program_info_of(type))) {
    wider = find_wider(r, &call, name, given, define);
  }
  if (wider == KILN_PROGRAM_TYPE_NONE) {
    kilni_cli_program_fix_define(r, b, has ? verb_of(r, define) : "add",
                                 has ? define : NULL, name, type, error);
    return;
  }
  kilni_cli_error_fix(error,
                      "%s %s and %s --define %s=%s, since none makes \"%s\" "
                      "%s",
                      b->is_made ? "give it as" : "convert the file to",
                      kiln_program_type_name(wider), verb_of(r, define), define,
                      kiln_program_type_name(wider), name, text);
}

// The same for a file with a type of its own.
static bool fail_file_type(const kilni_cli_request_t* r,
                           const kilni_cli_binding_t* b,
                           const kiln_program_parameter_info_t* p,
                           kilni_cli_error_t* error) {
  (void)run_program_fail_type(p, kilni_cli_type_info(b->array.shape.type)->text,
                              error);
  kilni_cli_program_fix_type(r, b, p->name, p->type, error);
  return false;
}

// A number without a type gets the program's; one with another is refused.
static bool run_program_take_number(kilni_cli_binding_t* b,
                                    const kiln_program_parameter_info_t* p,
                                    kilni_cli_type_t type,
                                    kilni_cli_error_t* error) {
  kilni_cli_scalar_t* scalar = &b->value.scalar;
  if (p->role != KILN_PROGRAM_ROLE_NONE) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "give it as --in, --out or --inout",
                          "parameter \"%s\" is a buffer, not a number",
                          p->name);
  }
  if (b->untyped != NULL) {
    if (kilni_cli_value_parse_as(b->untyped, type, scalar, error)) return true;
    kilni_cli_error_prefix(error, "--arg %s", p->name);
    return false;
  }
  // Halves are given by their bits.
  bool is_half = p->type_bytes == 2 && scalar->type == KILNI_CLI_TYPE_U16 &&
                 kilni_cli_type_info(type)->kind == 'f';
  if (b->value.is_length || is_half || scalar->type == type) return true;
  return run_program_fail_type(p, kilni_cli_type_info(scalar->type)->text,
                               error);
}

bool kilni_cli_program_check_role(const kilni_cli_binding_t* b, uint32_t role,
                                  const char* name, kilni_cli_error_t* error) {
  bool is_read =
      role == KILN_PROGRAM_ROLE_IN || role == KILN_PROGRAM_ROLE_UNIFORM;
  if ((!b->is_out && !b->is_expect) || !is_read) return true;
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "--%s of the parameter \"%s\", which is only read",
                       b->option, name);
  kilni_cli_error_fix(error,
                      "write --in %s=FILE, and --%s of a parameter "
                      "that the program writes",
                      name, b->is_expect ? "expect" : "out");
  return false;
}

bool kilni_cli_program_launch(const kilni_cli_request_t* request,
                              kilni_cli_error_t* error) {
  if (request->has_block) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "omit it, or write it into the program",
                          "--block for a program, which has a block of its "
                          "own");
  }
  if (request->cooperative) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "omit it: a program with a grid_barrier is launched "
                          "cooperatively by itself",
                          "--cooperative for a program");
  }
  if (request->shared_bytes != 0) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "omit it: a program declares its shared memory",
                          "--shared for a program");
  }
  if (request->whole && (request->has_grid || request->entry != NULL)) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, "omit it",
                          "--%s for \"%s\", which has launches of its own",
                          request->has_grid ? "grid" : "entry", request->file);
  }
  return true;
}

bool kilni_cli_program_types(kilni_cli_request_t* request,
                             kilni_cli_error_t* error) {
  if (request->program == NULL) return true;
  if (!kilni_cli_program_launch(request, error)) return false;
  for (size_t i = 0; i < request->binding_count; i++) {
    kilni_cli_binding_t* b = &request->bindings[i];
    kiln_program_parameter_info_t p;
    uint32_t index;
    if (!find_binding(request, b, &index, &p)) continue;
    if (!kilni_cli_program_check_role(b, p.role, p.name, error)) return false;
    kilni_cli_type_t type = kilni_cli_program_type(p.type);
    if (b->is_arg && b->extents != NULL) {
      b->value.scalar.type = type;
      continue;
    }
    if (b->is_arg) {
      if (!run_program_take_number(b, &p, type, error)) return false;
      continue;
    }
    if (!kilni_cli_defaults_space(request, b, type, error)) return false;
    bool says = b->spec.kind == KILNI_CLI_SPEC_TYPE ||
                b->spec.kind == KILNI_CLI_SPEC_SHAPE;
    if (says && b->spec.shape.type != type) {
      (void)run_program_fail_type(
          &p, kilni_cli_type_info(b->spec.shape.type)->text, error);
      kilni_cli_program_fix_type(request, b, p.name, p.type, error);
      return false;
    }
    const char* path = (const char*)b->path.data;
    if ((b->is_in || b->is_expect) && b->spec.kind == KILNI_CLI_SPEC_NONE &&
        kilni_cli_format_of(path) == KILNI_CLI_FORMAT_RAW) {
      b->spec.kind = KILNI_CLI_SPEC_TYPE;
      b->spec.shape.type = type;
    }
  }
  return true;
}

// ---- Sizes ----

// What the request gives for each parameter. one-thread
typedef struct said_t {
  kiln_program_size_t sizes[KILNI_CLI_MAX_PARAMS];
  bool given[KILNI_CLI_MAX_PARAMS];
} said_t;

// Whether the parameter starts as a file: then it has the file's shape.
static bool starts_as_file(const kilni_cli_request_t* r, uint32_t index) {
  for (size_t i = 0; i < r->binding_count; i++) {
    kiln_program_parameter_info_t p;
    uint32_t at;
    if (r->bindings[i].is_in && find_binding(r, &r->bindings[i], &at, &p) &&
        at == index) {
      return true;
    }
  }
  return false;
}

// Whether an expected file determines the parameter's length.
static bool is_expected(const kilni_cli_request_t* r, uint32_t index) {
  for (size_t i = 0; i < r->binding_count; i++) {
    kiln_program_parameter_info_t p;
    uint32_t at;
    if (r->bindings[i].is_expect && find_binding(r, &r->bindings[i], &at, &p) &&
        at == index) {
      return true;
    }
  }
  return false;
}

// An output of unspecified length.
static bool fail_length(const kilni_cli_binding_t* b,
                        const kiln_program_parameter_info_t* p,
                        kilni_cli_error_t* error) {
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "the program does not define the length of \"%s\"",
                       p->name);
  kilni_cli_error_fix(error, "write --out %s=%s:%s[N]", p->name,
                      (const char*)b->path.data,
                      kiln_program_type_name(p->type));
  return false;
}

static bool run_program_gather(const kilni_cli_request_t* r, said_t* said,
                               kilni_cli_error_t* error) {
  for (size_t i = 0; i < r->binding_count; i++) {
    const kilni_cli_binding_t* b = &r->bindings[i];
    kiln_program_parameter_info_t p;
    uint32_t index;
    if (!find_binding(r, b, &index, &p) || index >= KILNI_CLI_MAX_PARAMS) {
      continue;
    }
    said->given[index] = true;
    if (b->is_out && !b->is_in && b->spec.kind == KILNI_CLI_SPEC_NONE &&
        p.role != KILN_PROGRAM_ROLE_NONE && p.is_counted == 0 &&
        !starts_as_file(r, index) && !is_expected(r, index)) {
      return fail_length(b, &p, error);
    }
    if (b->is_arg) {
      said->sizes[index].bits = b->value.scalar.bits;
    } else if (b->is_in) {
      if (b->array.shape.type != kilni_cli_program_type(p.type)) {
        return fail_file_type(r, b, &p, error);
      }
      said->sizes[index].count = b->array.shape.count;
    } else if (b->is_expect) {
      if (b->array.shape.type != kilni_cli_program_type(p.type)) {
        return fail_file_type(r, b, &p, error);
      }
      // The plan checks this against anything else that determines the length.
      if (said->sizes[index].count == KILN_PROGRAM_COUNT_UNKNOWN) {
        said->sizes[index].count = b->array.shape.count;
      }
    } else if (b->spec.kind == KILNI_CLI_SPEC_SHAPE) {
      said->sizes[index].count = b->spec.shape.count;
    }
  }
  return true;
}

// len(P), now that the lengths of the given buffers are known.
static void gather_lengths(const kilni_cli_request_t* r, said_t* said) {
  for (size_t i = 0; i < r->binding_count; i++) {
    const kilni_cli_binding_t* b = &r->bindings[i];
    kiln_program_parameter_info_t p, of;
    uint32_t index, from;
    if (!b->is_arg || !b->value.is_length || !find_binding(r, b, &index, &p) ||
        index >= KILNI_CLI_MAX_PARAMS ||
        !run_program_find(r->program, b->value.parameter,
                          b->value.parameter_size, &from, &of) ||
        from >= KILNI_CLI_MAX_PARAMS) {
      continue;
    }
    if (said->sizes[from].count != KILN_PROGRAM_COUNT_UNKNOWN) {
      said->sizes[index].bits = said->sizes[from].count;
    }
  }
}

// Outputs get the length that the program defines.
static bool run_program_fill_outputs(kilni_cli_request_t* r, const said_t* said,
                                     kilni_cli_error_t* error) {
  for (size_t i = 0; i < r->binding_count; i++) {
    kilni_cli_binding_t* b = &r->bindings[i];
    kiln_program_parameter_info_t p;
    uint32_t index;
    if (!b->is_out || b->is_in || b->spec.kind != KILNI_CLI_SPEC_NONE ||
        !find_binding(r, b, &index, &p) || starts_as_file(r, index)) {
      continue;
    }
    uint64_t count = said->sizes[index].count;
    if (count == KILN_PROGRAM_COUNT_UNKNOWN) continue;
    kilni_cli_shape_t* shape = &b->spec.shape;
    memset(shape, 0, sizeof(*shape));
    shape->type = kilni_cli_program_type(p.type);
    shape->rank = 1;
    shape->dims[0] = count;
    kilni_cli_defaults_shape(r, p.name, shape);
    if (!kilni_cli_shape_finish(shape, error)) return false;
    b->spec.kind = KILNI_CLI_SPEC_SHAPE;
  }
  return true;
}

// All missing parameters. For a measurement the plan decides: it has outputs of
// its own.
static bool run_program_check_missing(const kilni_cli_request_t* r,
                                      const said_t* said,
                                      kilni_cli_error_t* error) {
  kilni_cli_missing_t missing;
  kiln_program_parameter_info_t p;
  if (r->makes_outputs) return true;
  memset(&missing, 0, sizeof(missing));
  missing.request = r;
  missing.program = r->program;
  memcpy(missing.known, said->sizes, sizeof(missing.known));
  for (; missing.count < KILNI_CLI_MAX_PARAMS &&
         kiln_program_parameter(r->program, missing.count, &p);
       missing.count++) {
    missing.wanted[missing.count] =
        (kilni_cli_wanted_t){p.name, p.role, p.type, p.is_counted != 0};
  }
  return kilni_cli_missing_check(&missing, error);
}

bool kilni_cli_program_sizes(kilni_cli_request_t* request,
                             kilni_cli_error_t* error) {
  if (request->program == NULL) return true;
  said_t said;
  memset(&said, 0, sizeof(said));
  uint32_t count = kiln_program_parameter_count(request->program);
  for (uint32_t i = 0; i < KILNI_CLI_MAX_PARAMS; i++) {
    said.sizes[i].count = KILN_PROGRAM_COUNT_UNKNOWN;
  }
  if (!run_program_gather(request, &said, error)) return false;
  gather_lengths(request, &said);
  if (!run_program_check_missing(request, &said, error)) return false;
  // The plan reports what is missing entirely, with all the others.
  for (uint32_t i = 0; i < count; i++) {
    if (!said.given[i]) return true;
  }
  if (!kilni_cli_check(error, kiln_program_sizes(request->program, said.sizes,
                                                 request->work))) {
    return false;
  }
  return run_program_fill_outputs(request, &said, error);
}

// ---- The kernel ----

void kilni_cli_program_facts(const kiln_program_t* program,
                             const kiln_program_code_t* code,
                             kilni_cli_kernel_t* out_facts) {
  kiln_program_launch_t launch;
  kiln_program_code_launch(code, &launch);
  out_facts->name = kiln_program_name(program);
  out_facts->params_known = true;
  memcpy(out_facts->required_block, launch.block, sizeof(launch.block));
  kiln_program_parameter_info_t p;
  uint32_t count = 0;
  for (; count < KILNI_CLI_MAX_PARAMS &&
         kiln_program_parameter(program, count, &p);
       count++) {
    kilni_cli_param_t* param = &out_facts->params[count];
    param->name = p.name;
    param->bytes = p.role != KILN_PROGRAM_ROLE_NONE ? 8 : p.type_bytes;
    param->kind =
        p.role != KILN_PROGRAM_ROLE_NONE ? KILN_PARAM_KIND_POINTER
        : kilni_cli_type_info(kilni_cli_program_type(p.type))->kind == 'f'
            ? KILN_PARAM_KIND_FLOAT
            : KILN_PARAM_KIND_INTEGER;
    param->type = p.role != KILN_PROGRAM_ROLE_NONE
                      ? NULL
                      : kiln_program_type_name(p.type);
  }
  out_facts->param_count = count;
}

bool kilni_cli_program_shape(kilni_cli_request_t* request,
                             const kiln_program_code_t* code,
                             kilni_cli_plan_t* plan, kilni_cli_error_t* error) {
  if (request->program == NULL) return true;
  if (kiln_program_work_dimensions(request->program) == 0) {
    for (int i = 0; i < 3; i++) {
      request->work[i] = (uint64_t)plan->grid[i] * plan->block[i];
    }
    if (plan->grid_chosen) request->work[0] = plan->grid_covers;
    return true;
  }
  if (request->has_grid) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, "omit it",
                          "--grid for a program that has a work size");
  }
  kiln_program_code_grid(code, request->work, plan->grid);
  for (int i = 0; i < 3; i++) {
    if (plan->grid[i] == 0) plan->grid[i] = 1;
  }
  plan->grid_chosen = false;
  kilni_cli_note("work: %" PRIu64 ",%" PRIu64 ",%" PRIu64
                 ", in blocks of %" PRIu32 ",%" PRIu32 ",%" PRIu32,
                 request->work[0], request->work[1], request->work[2],
                 plan->block[0], plan->block[1], plan->block[2]);
  return true;
}
