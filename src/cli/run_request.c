// SPDX-License-Identifier: Apache-2.0
//
// cli: the request of `kiln run`.
#include "cli/run_request.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_data.h"
#include "cli/cli_output.h"
#include "cli/cli_visible.h"
#include "cli/run_defaults.h"

#define MAX_SECONDS 1e9

const char* kilni_cli_library_name(const char* file) {
  return strncmp(file, "lib:", 4) == 0 ? file + 4 : NULL;
}

bool kilni_cli_code_kind_of(const char* file, kilni_cli_code_kind_t* out_kind,
                            kilni_cli_error_t* error) {
  static const struct {
    const char* end;
    kilni_cli_code_kind_t kind;
  } KINDS[] = {{".ptx", KILNI_CLI_CODE_PTX},
               {".cubin", KILNI_CLI_CODE_CUBIN},
               {".cu", KILNI_CLI_CODE_SOURCE},
               {".ltoir", KILNI_CLI_CODE_LTOIR},
               {".kiln", KILNI_CLI_CODE_PROGRAM}};
  static const char* const LATER[][2] = {
      {".fatbin",
       "extract the .ptx (cuobjdump -xptx) or the .cubin (cuobjdump -xelf) and "
       "give that"}};
  if (kilni_cli_library_name(file) != NULL) {
    *out_kind = KILNI_CLI_CODE_PROGRAM;
    return true;
  }
  for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++) {
    if (kilni_cli_name_ends(file, KINDS[i].end)) {
      *out_kind = KINDS[i].kind;
      return true;
    }
  }
  for (size_t i = 0; i < sizeof(LATER) / sizeof(LATER[0]); i++) {
    if (kilni_cli_name_ends(file, LATER[i][0])) {
      return kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED, LATER[i][1],
                            "running the %s file \"%s\"", LATER[i][0] + 1,
                            file);
    }
  }
  return kilni_cli_fail(error, KILN_STATUS_UNSUPPORTED,
                        "give CUDA C++ (.cu), a program (.kiln), PTX (.ptx), "
                        "LTO-IR (.ltoir) or device code (.cubin)",
                        "running \"%s\": its name does not imply a format",
                        file);
}

// Names by which the library identifies a GPU: "GPU-...", "MIG-...",
// "0000:3b:00.0".
static bool run_request_is_name(const char* text) {
  if (strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0) {
    return text[4] != 0;
  }
  const char* point = strchr(text, '.');
  return point != NULL && point[1] != 0 && strchr(text, ':') != NULL &&
         strspn(text, "0123456789abcdefABCDEF:.") == strlen(text);
}

// Names separated by commas, each one of `known`; NULL is valid too.
static bool run_request_check_names(const char* option, const char* text,
                                    const char* const* known, const char* all,
                                    kilni_cli_error_t* error) {
  const char* at = text;
  while (at != NULL) {
    size_t size = strcspn(at, ",");
    int i = 0;
    while (known[i] != NULL &&
           (strlen(known[i]) != size || memcmp(known[i], at, size) != 0)) {
      i++;
    }
    if (known[i] == NULL) {
      return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, all,
                            "--%s \"%s\" is not known", option, text);
    }
    at = at[size] == ',' ? at + size + 1 : NULL;
  }
  return true;
}

static bool read_modes(kilni_cli_request_t* out, const kilni_cli_call_t* call,
                       kilni_cli_error_t* error) {
  static const char* const reports[] = {"none", "unwritten", "freed", "all",
                                        NULL};
  static const char* const orders[] = {"auto", "latest", NULL};
  out->report = kilni_cli_option_value(call, "report");
  out->order = kilni_cli_option_value(call, "order");
  if (!run_request_check_names(
          "report", out->report, reports,
          "write unwritten, freed, all or none; several with commas "
          "between",
          error) ||
      !run_request_check_names("order", out->order, orders,
                               "write auto or latest", error)) {
    return false;
  }
  if (out->report != NULL && strcmp(out->report, "none") == 0) out->report = "";
  return true;
}

bool kilni_cli_device_read(kilni_cli_request_t* r, const char* text,
                           kilni_cli_error_t* error) {
  if (text == NULL || strcmp(text, "auto") == 0) {
    r->device_kind = KILNI_CLI_DEVICE_AUTO;
  } else if (strcmp(text, "soft") == 0) {
    r->device_kind = KILNI_CLI_DEVICE_SOFT;
  } else if (kilni_cli_cuda_name_parse(text, &r->ordinal)) {
    r->device_kind = KILNI_CLI_DEVICE_CUDA;
  } else if (run_request_is_name(text)) {
    r->device_kind = KILNI_CLI_DEVICE_NAMED;
    r->label = text;
  } else {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write --device auto, --device cuda:0, --device "
                          "soft, or a UUID or an address of the PCI bus from "
                          "kiln doctor",
                          "there is no device \"%s\"", text);
  }
  return true;
}

static bool run_request_read_u64(const char* option, const char* text,
                                 uint64_t most, uint64_t* out,
                                 kilni_cli_error_t* error) {
  *out = 0;
  if (text == NULL) return true;
  if (kilni_cli_u64_parse(text, strlen(text), out) && *out <= most) return true;
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                        "write a whole number that is not negative",
                        "--%s \"%s\" is not a number from 0 to %llu", option,
                        text, (unsigned long long)most);
}

bool kilni_cli_seconds_read(const char* text, uint64_t* out,
                            kilni_cli_error_t* error) {
  *out = 0;
  if (text == NULL) return true;
  char* end = NULL;
  double seconds = strtod(text, &end);
  if (end == text || *end != 0 || !(seconds > 0) || seconds > MAX_SECONDS ||
      strspn(text, "0123456789.eE+-") != strlen(text)) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write seconds, such as 10 or 0.5",
                          "--time-limit \"%s\" is not a number above 0", text);
  }
  double ns = ceil(seconds * 1e9);
  *out = (uint64_t)ns;
  return true;
}

// Its type and shape, as after the name of a file.
static bool read_made(kilni_cli_binding_t* b, const char* rest,
                      kilni_cli_error_t* error) {
  b->is_in = true;
  if (!kilni_cli_buffer_add(&b->path, "-:", 2, error) ||
      !kilni_cli_buffer_add(&b->path, rest, strlen(rest), error) ||
      !kilni_cli_spec_parse((const char*)b->path.data, &b->spec, error)) {
    return false;
  }
  if (b->spec.kind == KILNI_CLI_SPEC_SHAPE) return true;
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                        "write a type and a shape, such as x=f32[1048576]",
                        "--buffer \"%.*s=%s\" is not a type with a shape",
                        (int)b->parameter_size, b->parameter, rest);
}

// Numbers that vary and are safe for any kernel: floats from 0.5 to 1, integers
// from 0 to 99.
static void make_up(const kilni_cli_shape_t* shape, uint8_t* data) {
  const kilni_cli_type_info_t* info = kilni_cli_type_info(shape->type);
  uint64_t state = 0x9e3779b97f4a7c15u;
  for (uint64_t i = 0; i < shape->count; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint64_t random = state >> 33;
    uint64_t value = info->kind == 'b' ? random & 1 : random % 100;
    if (info->kind == 'f') {
      value = shape->type == KILNI_CLI_TYPE_F64
                  ? 0x3fe0000000000000u | random << 21
              : shape->type == KILNI_CLI_TYPE_F32  ? 0x3f000000u | random >> 8
              : shape->type == KILNI_CLI_TYPE_BF16 ? 0x3f00u | (random & 0x7f)
                                                   : 0x3800u | (random & 0x3ff);
    }
    memcpy(data + i * info->bytes, &value, info->bytes);
  }
}

static bool read_made_up(kilni_cli_binding_t* b, kilni_cli_error_t* error) {
  b->array.shape = b->spec.shape;
  if (!kilni_cli_buffer_resize(&b->array.data, (size_t)b->spec.shape.bytes,
                               error)) {
    return false;
  }
  make_up(&b->array.shape, b->array.data.data);
  return true;
}

// A struct: its members, or the file of its bytes, which is read later.
static bool read_bytes(kilni_cli_binding_t* b, const char* rest,
                       kilni_cli_error_t* error) {
  b->is_bytes = true;
  if (rest[0] == '{') {
    b->members = rest;
    return kilni_cli_struct_parse(rest, &b->array.data, error);
  }
  if (rest[1] != 0) {
    return kilni_cli_buffer_add(&b->path, rest + 1, strlen(rest + 1), error);
  }
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                        "write --arg P=@FILE", "--arg \"%.*s=@\" has no file",
                        (int)b->parameter_size, b->parameter);
}

// `is_program`: it declares the types of its numbers itself.
static bool read_binding(kilni_cli_binding_t* b, const kilni_cli_given_t* given,
                         bool is_program, kilni_cli_error_t* error) {
  const char* name = given->option->name;
  const char* rest;
  b->option = name;
  b->parameter = given->value;
  b->is_in = strcmp(name, "in") == 0 || strcmp(name, "inout") == 0;
  b->is_out = strcmp(name, "out") == 0 || strcmp(name, "inout") == 0;
  b->is_arg = strcmp(name, "arg") == 0;
  b->is_expect = strcmp(name, "expect") == 0;
  b->is_made = strcmp(name, "buffer") == 0;
  // A program knows its parameters: FILE alone is that of the only one.
  bool is_bare = is_program && (b->is_in || b->is_out) &&
                 strchr(given->value, '=') == NULL && given->value[0] != 0;
  if (is_bare) {
    rest = given->value;
  } else if (!kilni_cli_split_assignment(name, given->value, &b->parameter_size,
                                         &rest, error)) {
    return false;
  }
  if (b->is_made) return read_made(b, rest, error);
  if (b->is_arg && !is_program && (rest[0] == '@' || rest[0] == '{')) {
    if (read_bytes(b, rest, error)) return true;
    kilni_cli_error_prefix(error, "--%s %.*s", name, (int)b->parameter_size,
                           given->value);
    return false;
  }
  if (b->is_arg && is_program && !kilni_cli_value_is_typed(rest)) {
    b->untyped = rest;
    return true;
  }
  bool ok = b->is_arg ? kilni_cli_value_parse(rest, &b->value, error)
                      : kilni_cli_spec_parse(rest, &b->spec, error);
  if (!ok) {
    kilni_cli_error_prefix(error, "--%s %.*s", name, (int)b->parameter_size,
                           given->value);
    return false;
  }
  if (b->is_arg) return true;
  if (b->is_out && !b->is_in && b->spec.kind == KILNI_CLI_SPEC_TYPE) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write the extents too, such as :f32[1024]",
                          "--%s \"%s\" has a type and no shape", name,
                          given->value);
  }
  return kilni_cli_buffer_add(&b->path, rest, b->spec.path_size, error);
}

// No output is a file that is read; --inout alone changes the file it reads.
static bool add_binding(kilni_cli_files_t* files, const kilni_cli_binding_t* b,
                        kilni_cli_error_t* error) {
  const char* path = (const char*)b->path.data;
  char what[64];
  bool has_file = b->is_bytes && b->path.size != 0;
  if ((b->is_arg && !has_file) || b->is_made) return true;
  int size = (int)(b->parameter_size < 48 ? b->parameter_size : 48);
  (void)snprintf(what, sizeof(what), "--%s %.*s", b->option, size,
                 b->parameter);
  return b->is_out ? kilni_cli_files_add_output(files, path, what, error)
                   : kilni_cli_files_add_input(files, path, what, error);
}

// The binding that takes `parameter` from the file that `b` goes to.
static bool changes_its_input(const kilni_cli_request_t* r,
                              const kilni_cli_binding_t* b) {
  for (size_t i = 0; i < r->binding_count; i++) {
    const kilni_cli_binding_t* in = &r->bindings[i];
    if (in->is_in && !in->is_out && !in->is_made && b->is_out && !b->is_in &&
        in->parameter_size == b->parameter_size &&
        memcmp(in->parameter, b->parameter, b->parameter_size) == 0) {
      return true;
    }
  }
  return false;
}

static bool run_request_check_files(kilni_cli_request_t* r,
                                    kilni_cli_error_t* error) {
  bool ok = kilni_cli_library_name(r->file) != NULL ||
            kilni_cli_files_add_input(&r->files, r->file, "the code", error);
  for (uint32_t i = 0; ok && i < r->source.options.pre_include_count; i++) {
    ok = kilni_cli_files_add_input(&r->files, r->source.options.pre_includes[i],
                                   "--pre-include", error);
  }
  // Inputs first, so that a conflict is reported for the output.
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; ok && i < r->binding_count; i++) {
      const kilni_cli_binding_t* b = &r->bindings[i];
      if (b->is_out != (pass == 1)) continue;
      ok = add_binding(&r->files, b, error);
      if (!ok && changes_its_input(r, b) &&
          error->code == KILN_STATUS_INVALID_ARGUMENT) {
        kilni_cli_error_fix(error,
                            "write the output to another file, or --inout "
                            "%.*s=FILE to change the file",
                            (int)b->parameter_size, b->parameter);
      }
    }
  }
  return ok;
}

static bool is_binding(const char* option) {
  static const char* const OPTIONS[] = {"in",  "out",    "inout",
                                        "arg", "expect", "buffer"};
  for (size_t i = 0; i < sizeof(OPTIONS) / sizeof(OPTIONS[0]); i++) {
    if (strcmp(OPTIONS[i], option) == 0) return true;
  }
  return false;
}

static bool read_bindings(kilni_cli_request_t* r, const kilni_cli_call_t* call,
                          kilni_cli_error_t* error) {
  if (!kilni_cli_buffer_resize(
          &r->storage, (call->given_count + 1) * sizeof(kilni_cli_binding_t),
          error)) {
    return false;
  }
  r->bindings = (kilni_cli_binding_t*)(void*)r->storage.data;
  for (size_t i = 0; i < call->given_count; i++) {
    if (!is_binding(call->given[i].option->name)) continue;
    if (!read_binding(&r->bindings[r->binding_count++], &call->given[i],
                      r->code_kind == KILNI_CLI_CODE_PROGRAM, error)) {
      return false;
    }
  }
  return run_request_check_files(r, error);
}

// For what --expect compares.
static bool read_tolerance(kilni_cli_request_t* out,
                           const kilni_cli_call_t* call,
                           kilni_cli_error_t* error) {
  const char* text = kilni_cli_option_value(call, "tolerance");
  if (text == NULL) return true;
  char* end = NULL;
  out->tolerance = strtod(text, &end);
  if (end == text || *end != 0 || !(out->tolerance >= 0) ||
      out->tolerance > DBL_MAX ||
      strspn(text, "0123456789.eE+-") != strlen(text)) {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write a number that is not negative, such as 1e-5",
                          "--tolerance \"%s\" is not a number of 0 or more",
                          text);
  }
  if (kilni_cli_option_value(call, "expect") != NULL) return true;
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                        "write --expect P=FILE, or omit --tolerance",
                        "--tolerance without --expect");
}

bool kilni_cli_ulp_read(const kilni_cli_call_t* call, uint32_t* out,
                        kilni_cli_error_t* error) {
  uint64_t value;
  bool ok =
      run_request_read_u64("max-ulp", kilni_cli_option_value(call, "max-ulp"),
                           UINT32_MAX, &value, error);
  *out = (uint32_t)value;
  return ok;
}

// Options of programs do not apply to other code.
bool kilni_cli_program_only(const kilni_cli_call_t* call, const char* option,
                            kilni_cli_error_t* error) {
  if (kilni_cli_option_value(call, option) == NULL) return true;
  return kilni_cli_fail(
      error, KILN_STATUS_INVALID_ARGUMENT, "omit it, or give a program (.kiln)",
      "--%s for \"%s\", which is not a program", option, call->operands[0]);
}

const char* kilni_cli_instance_of(const char* entry) {
  size_t size = entry != NULL ? strlen(entry) : 0;
  bool is_one =
      size != 0 && entry[size - 1] == '>' && strchr(entry, '<') != NULL;
  return is_one ? entry : NULL;
}

// Compiler options do not apply to code that is not compiled; --define applies
// to programs.
static bool run_request_read_source(kilni_cli_request_t* out,
                                    const kilni_cli_call_t* call,
                                    kilni_cli_error_t* error) {
  bool is_source = out->code_kind == KILNI_CLI_CODE_SOURCE;
  if (is_source) {
    return kilni_cli_source_read(&out->source, call,
                                 kilni_cli_instance_of(out->entry), error);
  }
  const char* asked = kilni_cli_source_asked(call);
  if (asked == NULL && out->code_kind != KILNI_CLI_CODE_PROGRAM &&
      kilni_cli_option_value(call, "define") != NULL) {
    asked = "define";
  }
  if (asked == NULL) return true;
  (void)kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT, NULL,
                       "--%s for \"%s\", which is not compiled", asked,
                       out->file);
  kilni_cli_error_fix(
      error, "omit --%s, or give CUDA C++ (.cu)%s", asked,
      strcmp(asked, "define") == 0 ? " or a program (.kiln)" : "");
  return false;
}

static bool read_telemetry(kilni_cli_request_t* out, const char* text,
                           kilni_cli_error_t* error) {
  if (text == NULL) return true;
  if (strcmp(text, "json") == 0) {
    out->telemetry = KILNI_CLI_TELEMETRY_JSON;
  } else if (strcmp(text, "prometheus") == 0) {
    out->telemetry = KILNI_CLI_TELEMETRY_PROMETHEUS;
  } else {
    return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                          "write --telemetry json or --telemetry prometheus",
                          "--telemetry \"%s\" is not a format", text);
  }
  return true;
}

bool kilni_cli_request_init(kilni_cli_request_t* out,
                            const kilni_cli_call_t* call,
                            kilni_cli_error_t* error) {
  memset(out, 0, sizeof(*out));
  const char* grid = kilni_cli_option_value(call, "grid");
  const char* block = kilni_cli_option_value(call, "block");
  const char* seed = kilni_cli_option_value(call, "seed");
  uint64_t shared = 0;
  out->file = call->operands[0];
  out->given = call->given;
  out->given_count = call->given_count;
  out->entry = kilni_cli_option_value(call, "entry");
  out->cooperative = kilni_cli_option_value(call, "cooperative") != NULL;
  out->has_grid = grid != NULL;
  out->has_block = block != NULL;
  out->has_seed = seed != NULL;
  out->stats = kilni_cli_option_value(call, "stats") != NULL;
  bool ok =
      kilni_cli_code_kind_of(out->file, &out->code_kind, error) &&
      kilni_cli_device_read(out, kilni_cli_option_value(call, "device"),
                            error) &&
      (grid == NULL || kilni_cli_dims_parse("grid", grid, out->grid, error)) &&
      (block == NULL ||
       kilni_cli_dims_parse("block", block, out->block, error)) &&
      run_request_read_u64("shared", kilni_cli_option_value(call, "shared"),
                           UINT32_MAX, &shared, error) &&
      run_request_read_u64("seed", seed, UINT64_MAX, &out->seed, error) &&
      kilni_cli_seconds_read(kilni_cli_option_value(call, "time-limit"),
                             &out->time_limit_ns, error) &&
      read_modes(out, call, error) &&
      read_telemetry(out, kilni_cli_option_value(call, "telemetry"), error) &&
      kilni_cli_ulp_read(call, &out->max_ulp, error) &&
      (out->code_kind == KILNI_CLI_CODE_PROGRAM ||
       kilni_cli_program_only(call, "max-ulp", error)) &&
      run_request_read_source(out, call, error) &&
      read_tolerance(out, call, error) &&
      kilni_cli_cache_read(&out->cache, call, error) &&
      read_bindings(out, call, error);
  out->shared_bytes = (uint32_t)shared;
  return ok;
}

void kilni_cli_request_deinit(kilni_cli_request_t* request) {
  for (size_t i = 0; i < request->binding_count; i++) {
    kilni_cli_buffer_deinit(&request->bindings[i].path);
    kilni_cli_array_deinit(&request->bindings[i].array);
  }
  kilni_cli_buffer_deinit(&request->storage);
  kilni_cli_files_deinit(&request->files);
  kilni_cli_source_deinit(&request->source);
  kilni_cli_cache_deinit(&request->cache);
  kiln_program_release(request->program);
  request->program = NULL;
  request->bindings = NULL;
  request->binding_count = 0;
}

kilni_cli_binding_t* kilni_cli_request_add(kilni_cli_request_t* request,
                                           const char* name,
                                           kilni_cli_error_t* error) {
  size_t bytes = (request->binding_count + 1) * sizeof(kilni_cli_binding_t);
  if (!kilni_cli_buffer_resize(&request->storage, bytes, error)) return NULL;
  request->bindings = (kilni_cli_binding_t*)(void*)request->storage.data;
  kilni_cli_binding_t* b = &request->bindings[request->binding_count];
  memset(b, 0, sizeof(*b));
  b->parameter = name;
  b->parameter_size = strlen(name);
  if (!kilni_cli_buffer_add(&b->path, "", 0, error)) return NULL;
  request->binding_count++;
  return b;
}

bool kilni_cli_request_add_output(kilni_cli_request_t* request,
                                  const char* name, kilni_cli_error_t* error) {
  kilni_cli_binding_t* b = kilni_cli_request_add(request, name, error);
  if (b == NULL) return false;
  b->option = "out";
  b->is_out = true;
  b->is_unnamed = true;
  return true;
}

bool kilni_cli_request_has(const kilni_cli_request_t* request, uint32_t index,
                           const char* name) {
  uint64_t position;
  for (size_t i = 0; i < request->binding_count; i++) {
    const kilni_cli_binding_t* b = &request->bindings[i];
    if (strlen(name) == b->parameter_size &&
        memcmp(name, b->parameter, b->parameter_size) == 0) {
      return true;
    }
    if (kilni_cli_u64_parse(b->parameter, b->parameter_size, &position) &&
        position == index) {
      return true;
    }
  }
  return false;
}

// A file's own type and shape count as given; raw bytes have none.
static void take_shape(kilni_cli_binding_t* b) {
  if (b->spec.kind == KILNI_CLI_SPEC_NONE &&
      kilni_cli_format_of((const char*)b->path.data) == KILNI_CLI_FORMAT_RAW) {
    return;
  }
  b->spec.kind = KILNI_CLI_SPEC_SHAPE;
  b->spec.shape = b->array.shape;
}

// An empty file would agree with everything.
static bool check_something(const kilni_cli_binding_t* b,
                            kilni_cli_error_t* error) {
  if (b->array.data.size != 0) return true;
  return kilni_cli_fail(error, KILN_STATUS_INVALID_ARGUMENT,
                        "give a file with the elements that the run is to make",
                        "the file \"%.200s\" of --expect has no elements, so "
                        "there is nothing to compare",
                        (const char*)b->path.data);
}

bool kilni_cli_request_read(kilni_cli_request_t* request,
                            kilni_cli_error_t* error) {
  for (size_t i = 0; i < request->binding_count; i++) {
    kilni_cli_binding_t* b = &request->bindings[i];
    const char* path = (const char*)b->path.data;
    if (b->is_made || b->content != NULL) {
      bool ok = b->is_made ? read_made_up(b, error)
                           : kilni_cli_defaults_fill(request, b, error);
      if (!ok) return false;
      continue;
    }
    if ((b->is_in || b->is_expect) &&
        !kilni_cli_data_read(path, &b->spec, &b->array, error)) {
      return false;
    }
    if (b->is_expect && !check_something(b, error)) return false;
    if (b->is_expect) take_shape(b);
    if (b->is_bytes && b->path.size != 0 &&
        !kilni_cli_buffer_read_some(&b->array.data, path,
                                    KILNI_CLI_MAX_STRUCT_BYTES, error)) {
      return false;
    }
    if (b->is_in && b->is_out &&
        !kilni_cli_data_check(path, &b->array.shape, error)) {
      return false;
    }
    if (b->is_out && !b->is_unnamed && !kilni_cli_output_check(path, error)) {
      return false;
    }
  }
  return kilni_cli_defaults_settle(request, error);
}
